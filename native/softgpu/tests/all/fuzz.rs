//! Random programs do what the slow interpreter of `reference` says they do.
//!
//! A few seconds of them in the tests; `SLUICE_FUZZ_SECONDS=600 cargo test --release -p sluice-softgpu --test fuzz` for
//! longer, `SLUICE_FUZZ_SEED` for one program again.

use crate::common::{Device, Params, Random};
use crate::reference::{EACH, Lane, OWN, Program, TABLE};
use std::time::{Duration, Instant};

/// Threads of a block: two warps.
const THREADS: usize = 64;
const BLOCKS: usize = 2;
/// What all threads together can allocate at once.
const HEAP: u64 = 1 << 20;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn one(d: &Device, seed: u64) {
    let mut r = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for _ in 0..8 {
        r.bits();
    }
    let program = Program::random(&mut r, 12 + seed as usize % 40);
    let table: Vec<u32> = (0..TABLE).map(|_| (r.bits() >> 16) as u32).collect();
    let threads = THREADS * BLOCKS;
    let (from, own) = (d.upload(&table), d.alloc((8 * OWN * threads) as u64));
    let out = d.alloc((5 * EACH * 8 * threads) as u64);
    let text = program.ptx();
    let module = d.load(&text);
    let params = Params::new().u64(from).u64(own).u64(out).u32(threads as u32);
    let launched = d.launch(&module, "k", [BLOCKS as u32, 1, 1], [THREADS as u32, 1, 1], &params);
    launched.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{text}"));
    let registers: Vec<u64> = d.download(out, 5 * EACH * threads);
    let words: Vec<u32> = d.download(own, 2 * OWN * threads);
    for warp in 0..threads / 32 {
        let mut lanes: Vec<Lane> =
            (0..32).map(|l| Lane::new((32 * warp + l) as u32, ((32 * warp + l) % THREADS) as u32)).collect();
        program.evaluate(&mut lanes, &table);
        for (l, lane) in lanes.iter().enumerate() {
            let thread = 32 * warp + l;
            for kind in 1..6 {
                for n in 0..EACH {
                    let (want, got) = (lane.registers[kind][n], registers[(thread * 5 + kind - 1) * EACH + n]);
                    let nan = match kind {
                        5 => f64::from_bits(want).is_nan() && f64::from_bits(got).is_nan(),
                        _ => false,
                    };
                    let place = format!("seed {seed}, thread {thread}, register {n} of kind {kind}");
                    assert!(want == got || nan, "{place}: {got:#x}, not {want:#x}\n{text}");
                }
            }
            for place in 0..OWN {
                let beside = words[place * threads + thread];
                let apart = words[OWN * threads + thread * OWN + place];
                assert_eq!([beside, apart], [lane.own[0][place], lane.own[1][place]], "seed {seed}\n{text}");
            }
        }
    }
}

#[test]
fn random_programs_agree_with_the_reference() {
    if let Some(seed) = number("SLUICE_FUZZ_SEED") {
        return one(&Device::with_heap(1, HEAP), seed);
    }
    let time = Duration::from_secs(number("SLUICE_FUZZ_SECONDS").unwrap_or(5));
    let (began, mut seed) = (Instant::now(), 1);
    while began.elapsed() < time {
        let d = Device::with_heap(2, HEAP);
        for _ in 0..50 {
            one(&d, seed);
            seed += 1;
        }
    }
    println!("{seed} programs");
}
