//! Before `cuInit`, in a process that never calls it.

use sluice_api::driver::{BEFORE_INIT, functions};
use sluice_client::generated::entries;
use std::collections::HashMap;

const NOT_INITIALIZED: u32 = 3;

/// A call with more arguments than any function has: the caller cleans up the rest.
type Call = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u32;

#[test]
fn every_function_of_the_driver_but_the_documented_exceptions_is_not_initialized() {
    let entries = entries();
    let by_variant: HashMap<_, _> =
        entries.iter().map(|entry| ((entry.name, entry.since, entry.per_thread), entry.address)).collect();
    let (mut wrong, mut called) = (Vec::new(), 0);
    for function in functions().filter(|function| function.symbol != "cuInit") {
        for export in function.exports() {
            let address = by_variant[&(function.name(), export.since, export.per_thread)];
            // SAFETY: the address is the entry of a function of C that takes integers and pointers.
            let call = unsafe { std::mem::transmute::<usize, Call>(address) };
            // SAFETY: null pointers and zeros, which no function may read before it has answered.
            let code = unsafe { call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) };
            let is_exception = BEFORE_INIT.contains(&function.symbol);
            if (code == NOT_INITIALIZED) == is_exception {
                wrong.push(format!("{}: {code}", export.symbol));
            }
            called += 1;
        }
    }
    assert!(called > 600, "{called} functions");
    assert!(wrong.is_empty(), "{wrong:?}");
}
