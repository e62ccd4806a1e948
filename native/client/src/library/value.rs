//! Descriptions: what a program wrote into a descriptor, until something uses it.

use sluice_protocol::Wire;
use sluice_protocol::library::{Argument, take_arguments};
use std::collections::BTreeMap;

/// What a description says.
#[derive(Clone)]
pub struct Contents {
    /// The function that makes it.
    pub describe: u32,
    /// The name of the one that ends it.
    pub end: String,
    /// The maker's arguments after the new description itself.
    pub arguments: Vec<u8>,
    /// The values of the maker's choices, in order.
    pub choices: Vec<u32>,
    /// What was set: function and attribute to the arguments after the description.
    pub changes: BTreeMap<(u32, u32), Vec<u8>>,
    /// Small attributes as numbers, by attribute.
    pub numbers: BTreeMap<u32, u64>,
}

impl Contents {
    /// What cuBLASLt answers when it is asked for an attribute of a matmul's or matrix's description: what was set, what
    /// it was made with, or the default.
    pub fn attribute(&self, attribute: u32) -> Option<Vec<u8>> {
        let set = self.changes.iter().find(|((_, number), _)| *number == attribute).map(|(_, arguments)| arguments);
        if let Some(arguments) = set {
            return take_arguments(arguments).ok()?.into_iter().find_map(|argument| match argument {
                Argument::In(data) => Some(data.to_vec()),
                _ => None,
            });
        }
        let made: Vec<u64> = take_arguments(&self.arguments)
            .ok()?
            .into_iter()
            .filter_map(|argument| if let Argument::Word(word) = argument { Some(word) } else { None })
            .collect();
        // Bytes and value; addresses, sizes and strides have 8.
        let (bytes, value) = match (self.end.contains("Layout"), attribute) {
            (true, 0) => (4, *made.first()?),
            (true, 2..=4) => (8, *made.get(attribute as usize - 1)?),
            (true, 5) => (4, 1),
            (true, 6 | 7) => (8, 0),
            (false, 0 | 1) => (4, *made.get(attribute as usize)?),
            (false, 7) => (4, 1),
            // A type that follows from the others.
            (false, 22 | 26) => (4, u64::MAX),
            (false, 8 | 10..=14 | 17..=21 | 23 | 24) => (8, 0),
            (true, 1) | (false, 2..=6 | 15) => (4, 0),
            (false, 25) => (1, 0),
            _ => return None,
        };
        Some(value.to_le_bytes()[..bytes].to_vec())
    }

    /// Equal descriptions have equal keys.
    pub fn key(&self, library: u32) -> Vec<u8> {
        let mut key = Vec::new();
        library.put(&mut key);
        self.describe.put(&mut key);
        self.arguments.as_slice().put(&mut key);
        for ((function, attribute), arguments) in &self.changes {
            function.put(&mut key);
            attribute.put(&mut key);
            arguments.as_slice().put(&mut key);
        }
        key
    }
}
