//! A block: its warps, its shared memory, its barriers.

use super::jit::Known;
use super::warp::{Context, Stop, Warp};
use crate::error::Fault;
use crate::ir::Reduction;

/// The sixteen barriers of a block.
pub struct Barriers {
    barriers: [Barrier; 16],
    /// Threads that have not exited.
    live: u32,
    /// Barriers at which threads have arrived, and those that may be complete: one bit each.
    awaited: u16,
    touched: u16,
}

#[derive(Clone, Copy, Default)]
struct Barrier {
    /// Threads that have come, and with a true predicate.
    arrived: u32,
    yes: u32,
    /// Warps of which all threads have come.
    warps: u32,
    /// Threads that complete it, a whole warp for each 32; nothing means all threads of the block.
    expected: Option<u32>,
}

impl Barrier {
    /// How many have come of how many, as whoever waits counts.
    fn progress(&self, live: u32) -> (u32, u32) {
        self.expected.map_or((self.arrived, live), |expected| (32 * self.warps, expected))
    }
}

impl Barriers {
    fn new(live: u32) -> Barriers {
        Barriers { barriers: [Barrier::default(); 16], live, awaited: 0, touched: 0 }
    }

    /// Threads arrive, so many of them with a true predicate; whether with them all of their warp have.
    pub fn arrive(&mut self, id: u8, threads: u32, yes: u32, whole: bool, expected: Option<u32>) {
        let barrier = &mut self.barriers[usize::from(id)];
        barrier.arrived += threads;
        barrier.yes += yes;
        barrier.warps += u32::from(whole);
        barrier.expected = expected;
        let (arrived, expected) = barrier.progress(self.live);
        self.awaited |= 1 << id;
        self.touched |= u16::from(arrived >= expected) << id;
    }

    /// Threads exit: barriers of the whole block no longer wait for them.
    pub fn exited(&mut self, threads: u32) {
        self.live -= threads;
        self.touched = self.awaited;
    }

    /// Completes what is complete.
    fn release(&mut self, warps: &mut [Warp]) {
        let mut touched = std::mem::take(&mut self.touched);
        while touched != 0 {
            let id = touched.trailing_zeros() as u8;
            touched &= touched - 1;
            let barrier = &mut self.barriers[usize::from(id)];
            let (arrived, expected) = barrier.progress(self.live);
            if arrived == 0 || arrived < expected {
                continue;
            }
            let done = std::mem::take(barrier);
            self.awaited &= !(1 << id);
            for warp in warps.iter_mut() {
                warp.release(id, |reduction| match reduction {
                    Reduction::Popc => done.yes,
                    Reduction::And => {
                        if done.yes == done.arrived {
                            u32::MAX
                        } else {
                            0
                        }
                    }
                    Reduction::Or => {
                        if done.yes > 0 {
                            u32::MAX
                        } else {
                            0
                        }
                    }
                });
            }
        }
    }
}

/// Turns that each warp of a block has after an assertion of another one has failed.
const ROUNDS_AFTER_ASSERT: u32 = 8;

/// A block that is running.
pub struct Block {
    pub warps: Vec<Warp>,
    pub shared: Vec<u128>,
    barriers: Barriers,
    known: Vec<Known>,
}

/// How a block's turn ended.
pub enum Turn {
    Finished,
    Unfinished,
}

impl Block {
    /// A block without anything in it.
    pub fn new() -> Block {
        Block { warps: Vec::new(), shared: Vec::new(), barriers: Barriers::new(0), known: Vec::new() }
    }

    /// What compiled code has learnt about so many accesses.
    pub fn known(&mut self, accesses: usize) -> *mut Known {
        self.known.resize(accesses, Known::default());
        self.known.as_mut_ptr()
    }

    /// Begins the block that the context describes.  `fresh`: this is the first block of a kernel here.
    pub fn begin(&mut self, c: &Context, fresh: bool) {
        let threads = c.block[0] * c.block[1] * c.block[2];
        let count = threads.div_ceil(32);
        self.warps.resize_with(count as usize, Warp::new);
        for (index, warp) in self.warps.iter_mut().enumerate() {
            let lanes = (threads - 32 * index as u32).min(32);
            warp.reset(c, index as u32, if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 }, fresh);
        }
        self.barriers = Barriers::new(threads);
    }

    /// Gives each warp a turn until the block is finished, so many rounds have passed, or somebody asks.
    pub fn run(&mut self, c: &Context, rounds: u32) -> Result<Turn, Fault> {
        for _ in 0..rounds {
            let mut progress = false;
            let mut finished = true;
            for at in 0..self.warps.len() {
                let warp = &mut self.warps[at];
                if warp.live == 0 {
                    continue;
                }
                if warp.live & !warp.waiting == 0 {
                    finished = false;
                    continue;
                }
                progress = true;
                let stop = warp.run(c, &mut self.barriers);
                if self.barriers.touched != 0 {
                    self.barriers.release(&mut self.warps);
                }
                match stop {
                    Stop::Done => {}
                    Stop::Blocked => finished = false,
                    // Such a turn may have been long.
                    Stop::Turn if c.asked() => return Ok(Turn::Unfinished),
                    Stop::Turn => finished = false,
                    Stop::Fault(fault @ Fault::Assert { .. }) => return Err(self.failed(c, at, fault)),
                    Stop::Fault(fault) => return Err(fault),
                }
            }
            if finished {
                return Ok(Turn::Finished);
            }
            if !progress && self.warps.iter().all(|w| w.live & !w.waiting == 0) {
                return Err(Fault::LaunchFailure(self.stuck(c)));
            }
            if c.asked() {
                break;
            }
        }
        Ok(Turn::Unfinished)
    }

    /// An assertion of a warp has failed: as on a card it stops there, without leaving the barriers, and the others go
    /// on for a while, so that those that fail too say so.
    fn failed(&mut self, c: &Context, at: usize, mut fault: Fault) -> Fault {
        self.warps[at].live = 0;
        for _ in 0..ROUNDS_AFTER_ASSERT {
            for at in (at..self.warps.len()).chain(0..at) {
                let warp = &mut self.warps[at];
                if warp.live & !warp.waiting == 0 {
                    continue;
                }
                let stop = warp.run(c, &mut self.barriers);
                if let Stop::Fault(other) = stop {
                    warp.live = 0;
                    fault = fault.and(other);
                }
                if self.barriers.touched != 0 {
                    self.barriers.release(&mut self.warps);
                }
                if c.ends() {
                    return fault;
                }
            }
        }
        fault
    }

    /// Says where the threads of a block wait that can never go on.
    fn stuck(&self, c: &Context) -> String {
        let waiting =
            self.warps.iter().find_map(|w| (w.waiting != 0).then(|| (w, w.waiting.trailing_zeros() as usize)));
        let Some((warp, lane)) = waiting else { return "a block in which no thread can go on".to_string() };
        let barrier = warp.barrier[lane];
        let place = warp.place(c, lane, warp.line(c, lane));
        if warp.coming.lanes >> lane & 1 == 1 {
            let some = (0..32).filter(|l| warp.coming.lanes >> l & 1 == 1 && warp.barrier[*l] == barrier).count();
            let all = warp.live.count_ones();
            return format!("barrier {barrier} cannot complete: {some} of a warp's {all} threads have come, {place}");
        }
        let (arrived, expected) = self.barriers.barriers[usize::from(barrier)].progress(self.barriers.live);
        format!("barrier {barrier} cannot complete: {arrived} of {expected} threads have come, {place}")
    }

    /// Instructions that the block's warps have executed; counts from zero again.
    pub fn take_instructions(&mut self) -> u64 {
        self.warps.iter_mut().map(|w| std::mem::take(&mut w.instructions)).sum()
    }
}
