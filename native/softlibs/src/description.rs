//! Descriptions: what a descriptor says.

use crate::arguments::Call;
use crate::{Problem, invalid};
use sluice_api::libraries::Kind;
use std::collections::HashMap;

/// Bytes of one attribute.
const MOST_BYTES: usize = 4 << 10;
/// Attributes of one description.
const MOST_ATTRIBUTES: usize = 256;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// The maker's numbers, by parameter.
    made: HashMap<String, i64>,
    /// Attributes, by their numbers.
    attributes: HashMap<u32, Vec<u8>>,
}

impl Description {
    /// What a maker's call says.
    pub fn of(call: &Call) -> Description {
        let numbers = call.function.parameters.iter().filter_map(|parameter| {
            let value = call.int(&parameter.name).ok()?;
            Some((parameter.name.clone(), value))
        });
        Description { made: numbers.collect(), attributes: HashMap::new() }
    }

    /// Takes over a change.
    pub fn change(&mut self, call: &Call) -> Result<(), Problem> {
        let attribute = call.function.parameters.iter().find(|parameter| parameter.kind == Kind::Enum);
        let attribute = attribute.ok_or_else(|| invalid("a change without an attribute"))?;
        let number = call.int(&attribute.name)? as u32;
        let data = call.bytes("data")?.unwrap_or(&[]);
        // What is said stays in memory: no more than any library's attributes are.
        if data.len() > MOST_BYTES || self.attributes.len() >= MOST_ATTRIBUTES {
            return Err(invalid("the attribute is longer than any, or there are too many of them"));
        }
        self.attributes.insert(number, data.to_vec());
        Ok(())
    }

    /// Sets a number under a name.
    pub fn put(&mut self, name: &str, number: i64) {
        self.made.insert(name.to_owned(), number);
    }

    /// Takes over a call that gives the maker's numbers anew.
    pub fn set(&mut self, call: &Call) -> Result<(), Problem> {
        if call.has("data") {
            return self.change(call);
        }
        self.made.extend(Description::of(call).made);
        Ok(())
    }

    /// A number of the maker's.
    pub fn made_with(&self, name: &str) -> Result<i64, Problem> {
        self.made.get(name).copied().ok_or_else(|| invalid(name))
    }

    /// An attribute as a number, if it was set: four bytes have a sign.
    pub fn number(&self, attribute: u32) -> Option<i64> {
        match *self.attributes.get(&attribute)?.as_slice() {
            [a] => Some(i64::from(a)),
            [a, b, c, d] => Some(i64::from(i32::from_le_bytes([a, b, c, d]))),
            [a, b, c, d, e, f, g, h] => Some(i64::from_le_bytes([a, b, c, d, e, f, g, h])),
            _ => None,
        }
    }
}
