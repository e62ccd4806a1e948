//! Accesses behind the end of an allocation.

use crate::support::{ADD_ONE, Client, Gpud, hello_on, key, range, sign};
use sluice_protocol::messages as m;
use sluice_protocol::{EXACT_BOUNDS, Failure};

const MIB: u64 = 1 << 20;
/// `cudaErrorIllegalAddress`.
const ILLEGAL_ADDRESS: u32 = 700;

/// Adds one to each of 256 numbers, of which fewer are allocated, and waits for it.
fn add_too_many(features: &[&str], numbers: u64) -> Result<(), Failure> {
    let gpud = Gpud::start(&[]);
    let token = sign(&gpud.claims(&key(1), "lea-1", 64 * MIB));
    let stream = gpud.open();
    let (stream, welcome) = hello_on(stream, &key(1), &token, vec![range()], None, features).expect("welcome");
    let mut client = Client::around(stream, welcome, key(1), token);
    client.load(1, ADD_ONE).expect("loaded");
    let data = client.alloc(numbers * 4)?;
    client.launch(1, 1, 256, &data.to_le_bytes());
    client.call(&m::ContextSynchronize).map(|_| ())
}

#[test]
fn an_allocation_ends_with_its_granule_as_on_a_card() {
    add_too_many(&[], 250).expect("1000 bytes lie in two granules");
    assert_eq!(add_too_many(&[], 100).expect_err("400 bytes lie in one").code, ILLEGAL_ADDRESS);
}

#[test]
fn exact_bounds_tell_of_the_first_element_too_far() {
    add_too_many(&[EXACT_BOUNDS], 256).expect("what is allocated");
    let failure = add_too_many(&[EXACT_BOUNDS], 255).expect_err("one too far");
    assert_eq!(failure.code, ILLEGAL_ADDRESS);
    assert!(failure.text.contains("block (0,0,0), thread (255,0,0), PTX line "), "{}", failure.text);
    assert!(failure.text.contains("0 bytes behind the allocation of 1020 bytes"), "{}", failure.text);
}

#[test]
fn rows_that_overlap_or_are_empty_take_no_time() {
    let gpud = Gpud::start(&[]);
    let token = sign(&gpud.claims(&key(1), "lea-1", 64 * MIB));
    let connect = || {
        let stream = gpud.open();
        let (stream, welcome) = hello_on(stream, &key(1), &token, vec![range()], None, &[]).expect("welcome");
        Client::around(stream, welcome, key(1), token.clone())
    };
    let mut client = connect();
    let data = client.alloc(4096).expect("allocated");
    let fill =
        |pitch, width, height| m::FillRows { address: data, pitch, pattern: 7, element: 1, width, height, stream: 0 };
    let copy = |pitch, width, height| m::CopyRowsOnDevice {
        target: data,
        target_pitch: pitch,
        source: data + 2048,
        source_pitch: pitch,
        width,
        height,
        stream: 0,
    };
    client.send(&fill(0, 0, 1 << 63));
    client.send(&fill(16, 1 << 63, 0));
    client.send(&copy(0, 0, 1 << 63));
    client.send(&fill(16, 8, 4));
    client.call(&m::ContextSynchronize).expect("nothing to do is no mistake");
    let want: Vec<u8> = (0..64).map(|at| if at % 16 < 8 { 7 } else { 0 }).collect();
    let got = client.read(data, 64).expect("read");
    assert!((0..64).all(|at| at % 16 >= 8 || got[at] == want[at]), "{got:?}");
    client.send(&fill(0, 1, 1 << 40));
    assert_eq!(client.call(&m::ContextSynchronize).expect_err("rows on one another").code, 1);
}
