//! Descriptions: what a program wrote into a descriptor, until something uses it.

use sluice_protocol::Wire;
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
