//! Copies between the arena and memory of the host, by several threads where they are long: one alone does not keep the
//! host's memory busy.

use crate::pinned::PinnedPart;
use crate::window::Way;
use sluice_softgpu::Arena;
use std::io;

/// What a thread copies at least.
const LEAST_BYTES: usize = 4 << 20;
/// Most threads of one copy.
const MOST_THREADS: usize = 4;

/// Copies all of a part.
pub fn copy(arena: &Arena, way: Way, address: u64, part: &PinnedPart) -> io::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (part.bytes() / LEAST_BYTES).clamp(1, cores.min(MOST_THREADS));
    let each = part.bytes().div_ceil(threads);
    let run = |index: usize| {
        let from = index * each;
        piece(arena, way, address, part, from, each.min(part.bytes() - from))
    };
    std::thread::scope(|scope| {
        let run = &run;
        let others: Vec<_> = (1..threads).map(|index| scope.spawn(move || run(index))).collect();
        let own = run(0);
        let lost = |_| Err(io::Error::other("a thread that copied memory is gone"));
        others.into_iter().map(|other| other.join().unwrap_or_else(lost)).fold(own, Result::and)
    })
}

fn piece(arena: &Arena, way: Way, address: u64, part: &PinnedPart, from: usize, bytes: usize) -> io::Result<()> {
    let there = address + from as u64;
    // SAFETY: mapped, and as long as the part; bytes that the client changes meanwhile are copied with either value.
    unsafe {
        let here = part.start().add(from);
        match way {
            Way::In => arena.write(there, std::slice::from_raw_parts(here, bytes)),
            Way::Out => arena.read(there, std::slice::from_raw_parts_mut(here, bytes)),
        }
    }
}
