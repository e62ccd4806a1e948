//! One warp: its registers, its lanes' places in the code, and the loop that executes them.
//!
//! Lanes that stand at the same instruction in the same frame run together.  Among several such groups the one in
//! the deepest call and then at the lowest address goes first, because lanes meet again at later addresses.  A group
//! that keeps jumping backward is set aside after a while, so that the lane that it waits for (the holder of a spin
//! lock) comes to run.

use super::block::Barriers;
use super::jit::{Environment, Known};
use super::lanes::{Frame, Row};
use super::loaded::Prepared;
use super::progress::Progress;
use super::queue::Queue;
use super::room::Room;
use super::trail::{Trail, Trails};
use super::{builtin, collective, matrix, memory};
use crate::arena::Arena;
use crate::error::{Fault, Place};
use crate::heap::Heap;
use crate::ir::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Backward jumps that a diverged group may make before others get a turn.
const GROUP_FUEL: u32 = 64;
/// Backward jumps and calls that a warp may make before its block looks around.
const WARP_FUEL: u32 = 8192;
/// Instructions after which its next backward jump ends a warp's turn, however few jumps there were.
const WARP_INSTRUCTIONS: u64 = 1 << 17;
/// Most rows of registers in a lane's stack of frames.
const MOST_ROWS: usize = 1 << 20;
/// Most local memory of a lane, in bytes.
pub const MOST_LOCAL: u64 = 512 * 1024;

const OVERFLOW: &str = "the stack of a thread overflowed";

/// Bytes of a cooperative launch's workspace.
pub const WORKSPACE: u64 = 16;

/// What all warps of a block share.
pub struct Context<'a> {
    pub arena: &'a Arena,
    pub kernel: &'a Prepared,
    pub params: &'a [u8],
    pub block: [u32; 3],
    /// Special registers that all threads share, by their number.
    pub uniform: [u32; 32],
    /// What compiled code knows of its accesses.
    pub known: *mut Known,
    pub shared: *mut u8,
    pub shared_len: u32,
    /// Where 16 bytes for the grid's own barrier lie; zero unless the launch is cooperative.
    pub workspace: u64,
    pub heap: Option<&'a Heap>,
    pub room: &'a Room<'a>,
    /// The blocks that have not begun.
    pub queue: &'a Queue,
    pub progress: &'a Progress,
    pub started: Instant,
    /// Set by those who want the block to end its turn soon; the first of them by a fault of the launch.
    pub asks: [&'a AtomicBool; 3],
    pub printed: &'a Mutex<builtin::Printed>,
}

impl Context<'_> {
    /// Whether somebody wants the block to end its turn.
    pub fn asked(&self) -> bool {
        self.asks.iter().any(|flag| flag.load(Ordering::Relaxed))
    }

    /// Whether it is to end its turn for another reason than a fault of the launch.
    pub fn ends(&self) -> bool {
        self.asks[1..].iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Why a warp's turn ended.
pub enum Stop {
    /// All lanes have exited.
    Done,
    /// Every lane waits at a barrier.
    Blocked,
    /// The turn is over.
    Turn,
    Fault(Fault),
}

/// A result that `bar.red` delivers later.
pub struct Pending {
    pub mask: u32,
    pub barrier: u8,
    pub row: u32,
    pub reduction: Reduction,
}

/// Lanes that have come to barriers that count warps, and wait for the others of their own.
#[derive(Clone, Copy, Default)]
pub struct Coming {
    pub lanes: u32,
    /// Those that only arrive.
    arriving: u32,
    /// Those with a true predicate.
    yes: u32,
    /// Threads that complete the barrier.
    count: u32,
}

/// The state of a warp.
pub struct Warp {
    regs: Vec<Row>,
    /// Special registers that differ from lane to lane: the thread in three dimensions, the lane, and its masks.
    lanes: [Row; 9],
    local: Vec<[u64; 32]>,
    pc: [u32; 32],
    base: [u32; 32],
    /// All lanes are where the first one is; what the others have in `pc` and `base` means nothing.
    together: bool,
    /// Lanes that have not exited.
    pub live: u32,
    /// Lanes that wait at a barrier of the block, and at which.
    pub waiting: u32,
    pub barrier: [u8; 32],
    pub coming: Coming,
    pub pending: Vec<Pending>,
    /// Lanes that wait for the other members of a warp-wide instruction.
    gathering: u32,
    /// Nobody else can come: what gathers executes with who is there.
    forced: bool,
    /// Groups that have used up their turn.
    spent: u32,
    trails: Trails,
    /// Times that a group fell behind another by a backward jump.
    hops: u32,
    /// Number of the warp in its block.
    pub index: u32,
    pub instructions: u64,
}

/// The lanes and place of the group that runs.
struct Group {
    function: u32,
    pc: u32,
    base: u32,
    mask: u32,
    /// An address at which other lanes wait to be joined.
    join: u32,
    alone: bool,
}

enum Next {
    /// On to the following instruction.
    Step,
    /// The group's own places are stored; choose again.
    Choose,
}

impl Warp {
    /// A warp that has not begun.
    pub fn new() -> Warp {
        Warp {
            regs: Vec::new(),
            lanes: [Row::ZERO; 9],
            local: Vec::new(),
            pc: [0; 32],
            base: [0; 32],
            together: true,
            live: 0,
            waiting: 0,
            barrier: [0; 32],
            coming: Coming::default(),
            pending: Vec::new(),
            gathering: 0,
            forced: false,
            spent: 0,
            trails: Trails::default(),
            hops: 0,
            index: 0,
            instructions: 0,
        }
    }

    /// Puts the warp at the kernel's beginning with these lanes.  `fresh`: the registers hold another kernel's
    /// constants.
    pub fn reset(&mut self, c: &Context, index: u32, lanes: u32, fresh: bool) {
        let kernel = c.kernel;
        let entry = kernel.function(0);
        if fresh {
            for lane in 0..32u32 {
                let (thread, l) = (32 * index + lane, lane as usize);
                self.lanes[0].0[l] = thread % c.block[0];
                self.lanes[1].0[l] = thread / c.block[0] % c.block[1];
                self.lanes[2].0[l] = thread / c.block[0] / c.block[1];
                self.lanes[3].0[l] = lane;
                self.lanes[4].0[l] = 1 << lane;
                self.lanes[5].0[l] = u32::MAX >> (31 - lane);
                self.lanes[6].0[l] = (1 << lane) - 1;
                self.lanes[7].0[l] = u32::MAX << lane;
                self.lanes[8].0[l] = (u64::from(u32::MAX) << (lane + 1)) as u32;
            }
        }
        let rows = entry.rows as usize;
        if fresh || self.regs.len() < rows {
            self.regs.clear();
            self.regs.resize(rows, Row::ZERO);
            write_constants(&mut self.regs, 0, &kernel.functions[0].constants, u32::MAX);
        }
        for row in &mut self.regs[..HEADER_ROWS as usize] {
            *row = Row::ZERO;
        }
        if let Some(stack) = entry.stack {
            self.regs[stack as usize] = Row::ZERO;
        }
        let granules = entry.local_bytes as usize / 8;
        if self.local.len() < granules {
            self.local.resize(granules, [0; 32]);
        }
        (self.pc[0], self.base[0], self.together) = (0, 0, true);
        self.live = lanes;
        self.waiting = 0;
        self.coming = Coming::default();
        self.pending.clear();
        self.gathering = 0;
        self.forced = false;
        self.spent = 0;
        self.index = index;
    }

    /// Where a lane stands, for the report of a fault.
    pub fn place(&self, c: &Context, lane: usize, line: u32) -> Place {
        let block = [c.uniform[6], c.uniform[7], c.uniform[8]];
        let thread = [0, 1, 2].map(|k| self.lanes[k].0[lane & 31]);
        Place { kernel: c.kernel.name.clone(), block, thread, line, source: c.kernel.module.source_of(line) }
    }

    /// The end of a kernel that cannot go on, at a lane's instruction.
    fn failed(&self, c: &Context, lane: usize, line: u32, what: &str) -> Stop {
        Stop::Fault(Fault::LaunchFailure(format!("{what}, {}", self.place(c, lane, line))))
    }

    /// The line of the instruction that a lane has left.
    pub fn line(&self, c: &Context, lane: usize) -> u32 {
        let last = self.pc[if self.together { 0 } else { lane }].saturating_sub(1);
        let function = c.kernel.find(last);
        let at = last - c.kernel.functions[function as usize].start;
        c.kernel.function(function).code.get(at as usize).map_or(0, |i| i.line)
    }

    /// Where a byte of a lane's local memory lies: granules of 8 bytes, 32 lanes side by side.
    pub fn local_pointer(&mut self, lane: usize, address: u64, size: u32) -> Option<u64> {
        let granule = (address >> 3) as usize;
        if address >= MOST_LOCAL || (address & 7) + u64::from(size) > 8 {
            return None;
        }
        let cell = self.local.get_mut(granule)?;
        Some((&raw mut cell[lane]) as u64 + (address & 7))
    }

    fn frame(&mut self, base: u32) -> Frame {
        // SAFETY: every base lies within `regs`, with all rows of its function behind it (`enter` grows it so).
        Frame(unsafe { self.regs.as_mut_ptr().add(base as usize) })
    }

    /// Delivers what barriers computed, and lets their lanes go on; not those whose warp has yet to come.
    pub fn release(&mut self, barrier: u8, result: impl Fn(Reduction) -> u32) {
        if self.barrier == [barrier; 32] {
            self.waiting &= self.coming.lanes;
        } else {
            let mut lanes = 0;
            for l in 0..32 {
                lanes |= u32::from(self.barrier[l] == barrier) << l;
            }
            self.waiting &= !lanes | self.coming.lanes;
        }
        if self.pending.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        for p in pending {
            if p.barrier != barrier || p.mask & self.coming.lanes != 0 {
                self.pending.push(p);
                continue;
            }
            let value = result(p.reduction);
            let frame = self.frame(0);
            // SAFETY: the row is absolute and was that of a register of a frame that is still in place.
            unsafe {
                match p.reduction {
                    Reduction::Popc => frame.put(p.row, &[value; 32], p.mask),
                    _ => frame.set_mask(p.row, value, p.mask),
                }
            }
        }
    }

    fn save(&mut self, g: &Group, pc: u32) {
        if g.mask == self.live {
            (self.pc[0], self.base[0], self.together) = (pc, g.base, true);
            return;
        }
        self.spread();
        for l in 0..32 {
            if g.mask >> l & 1 == 1 {
                self.pc[l] = pc;
                self.base[l] = g.base;
            }
        }
    }

    /// Writes down where each lane is.
    fn spread(&mut self) {
        if self.together {
            self.pc = [self.pc[0]; 32];
            self.base = [self.base[0]; 32];
            self.together = false;
        }
    }

    /// Puts lanes at an address of the frame that they are in.
    fn put(&mut self, mask: u32, pc: u32) {
        self.spread();
        for l in 0..32 {
            if mask >> l & 1 == 1 {
                self.pc[l] = pc;
            }
        }
    }

    /// Chooses the group to run.
    fn choose(&mut self, kernel: &Prepared) -> Result<Group, Stop> {
        let mut runnable = self.live & !self.waiting & !self.gathering;
        if runnable == 0 {
            if self.live == 0 {
                return Err(Stop::Done);
            }
            if self.gathering & self.live == 0 {
                return Err(Stop::Blocked);
            }
            // The missing members are at a barrier or in a loop that never comes here: go on without them.
            runnable = self.gathering & self.live;
            self.gathering = 0;
            self.forced = true;
        }
        if self.together {
            self.spent &= !runnable;
            let (pc, base) = (self.pc[0], self.base[0]);
            return Ok(Group { function: kernel.find(pc), pc, base, mask: runnable, join: u32::MAX, alone: true });
        }
        let mut candidates = runnable & !self.spent;
        if candidates == 0 {
            self.spent = 0;
            candidates = runnable;
        }
        let first = candidates.trailing_zeros() as usize;
        let (mut base, mut pc) = (self.base[first], self.pc[first]);
        for l in first + 1..32 {
            if candidates >> l & 1 == 1 && (self.base[l] > base || (self.base[l] == base && self.pc[l] < pc)) {
                (base, pc) = (self.base[l], self.pc[l]);
            }
        }
        let (mut mask, mut join) = (0, u32::MAX);
        for l in 0..32 {
            if runnable >> l & 1 == 1 && self.base[l] == base {
                if self.pc[l] == pc {
                    mask |= 1 << l;
                } else if self.pc[l] > pc {
                    join = join.min(self.pc[l]);
                }
            }
        }
        self.spent &= !mask;
        Ok(Group { function: kernel.find(pc), pc, base, mask, join, alone: mask == runnable })
    }

    /// Runs until the warp is done, waits, or has had its turn.
    pub fn run(&mut self, c: &Context, barriers: &mut Barriers) -> Stop {
        let mut fuel = WARP_FUEL;
        let mut executed = 0u64;
        let stop = 'choose: loop {
            let mut g = match self.choose(c.kernel) {
                Ok(g) => g,
                Err(stop) => break stop,
            };
            let function = c.kernel.function(g.function);
            let segments = c.kernel.compiled.functions[g.function as usize].as_slice();
            let prepared = &c.kernel.functions[g.function as usize];
            let start = prepared.start;
            let code = function.code.as_slice();
            let mut at = (g.pc - start) as usize;
            let mut join = if g.join == u32::MAX { usize::MAX } else { (g.join - start) as usize };
            let mut group_fuel = GROUP_FUEL;
            let f = self.frame(g.base);
            let (lanes, trails) = (self.lanes.as_ptr(), self.trails.as_mut_ptr());
            let mut environment = Environment::new(c, self, lanes, trails, function);
            loop {
                if let Some(Some(segment)) = segments.get(at) {
                    executed += u64::from(segment.end) - at as u64;
                    // SAFETY: the segment was compiled for the function whose frame `f` is; the environment is that of
                    // this warp, and nothing else refers to the warp meanwhile.
                    if unsafe { (segment.code)(&raw mut environment, f.0, g.mask) } != 0 {
                        let defect = || Stop::Fault(Fault::LaunchFailure("a failure without its reason".to_string()));
                        break 'choose environment.stop.take().unwrap_or_else(defect);
                    }
                    at = segment.end as usize;
                    if at == join {
                        self.save(&g, start + at as u32);
                        continue 'choose;
                    }
                }
                let Some(i) = code.get(at) else {
                    let (lane, line) = (g.mask.trailing_zeros() as usize, code.last().map_or(0, |i| i.line));
                    break 'choose self.failed(c, lane, line, "ran past the end of a function");
                };
                if segments[at].is_some() {
                    continue;
                }
                executed += 1;
                let mut mask = g.mask;
                if i.guard != NONE {
                    // SAFETY: decoding checked the row.
                    let p = unsafe { f.mask(i.guard) };
                    mask &= if i.negate { !p } else { p };
                    if mask == 0 {
                        at += 1;
                        if at == join {
                            self.save(&g, start + at as u32);
                            continue 'choose;
                        }
                        continue;
                    }
                }
                if i.op == Op::Branch {
                    let target = i.e as usize;
                    if mask == g.mask {
                        let backward = target <= at;
                        at = target;
                        if backward {
                            fuel -= 1;
                            if fuel == 0 || executed >= WARP_INSTRUCTIONS {
                                self.save(&g, start + at as u32);
                                self.spent |= g.mask;
                                break 'choose Stop::Turn;
                            }
                        }
                        if g.alone {
                            continue;
                        }
                        if backward {
                            group_fuel -= 1;
                            if group_fuel == 0 {
                                self.save(&g, start + at as u32);
                                self.spent |= g.mask;
                                continue 'choose;
                            }
                            if let Some(next) = self.join_ahead(&g, start + at as u32) {
                                join = if next == u32::MAX { usize::MAX } else { (next - start) as usize };
                                continue;
                            }
                            self.hops = self.hops.wrapping_add(1);
                            if self.hops.is_multiple_of(GROUP_FUEL) {
                                self.spent |= g.mask;
                            }
                        } else if at < join {
                            continue;
                        }
                        // Where the group stands among the others has changed.
                        self.save(&g, start + at as u32);
                        continue 'choose;
                    }
                    if target <= at {
                        fuel -= 1;
                    }
                    self.save(&g, start + at as u32 + 1);
                    self.put(mask, start + i.e);
                    if fuel == 0 || (target <= at && executed >= WARP_INSTRUCTIONS) {
                        self.spent |= mask;
                        break 'choose Stop::Turn;
                    }
                    continue 'choose;
                }
                if i.op == Op::Barrier
                    && mask == self.live
                    && let Some(number) = prepared.plain_barriers[i.e as usize]
                {
                    self.wait_together(barriers, number);
                    self.save(&g, start + at as u32 + 1);
                    self.trails[..c.kernel.compiled.trails].as_flattened_mut().iter_mut().for_each(Trail::ahead);
                    break 'choose Stop::Blocked;
                }
                if i.op == Op::Exit && mask == self.live && self.coming.lanes == 0 {
                    (self.live, self.spent, self.gathering) = (0, 0, 0);
                    barriers.exited(mask.count_ones());
                    break 'choose Stop::Done;
                }
                g.pc = start + at as u32;
                match self.control(c, barriers, &g, f, function, i, mask) {
                    Ok(Next::Step) => {}
                    Ok(Next::Choose) => {
                        fuel -= 1;
                        if fuel == 0 || executed >= WARP_INSTRUCTIONS {
                            break 'choose Stop::Turn;
                        }
                        continue 'choose;
                    }
                    Err(stop) => break 'choose stop,
                }
                at += 1;
                if at == join {
                    self.save(&g, start + at as u32);
                    continue 'choose;
                }
            }
        };
        self.instructions += executed;
        stop
    }

    /// All lanes come to a plain barrier at once.
    fn wait_together(&mut self, barriers: &mut Barriers, number: u8) {
        barriers.arrive(number, self.live.count_ones(), 0, true, None);
        self.waiting = self.live;
        self.barrier = [number; 32];
    }

    /// The warp arrives where the last of its lanes has come.
    fn complete(&mut self, barriers: &mut Barriers) {
        let Coming { lanes, arriving, yes, count } = self.coming;
        let id = self.barrier[(lanes.trailing_zeros() & 31) as usize];
        if lanes == 0 || lanes != self.live || (0..32).any(|l| lanes >> l & 1 == 1 && self.barrier[l] != id) {
            return;
        }
        barriers.arrive(id, lanes.count_ones(), yes.count_ones(), true, Some(count));
        self.coming = Coming::default();
        self.waiting &= !arriving;
    }

    /// Where the group, now at `pc`, would meet other lanes; nothing if another group should go first.
    fn join_ahead(&mut self, g: &Group, pc: u32) -> Option<u32> {
        self.spread();
        let others = self.live & !self.waiting & !self.gathering & !g.mask;
        let mut join = u32::MAX;
        for l in 0..32 {
            if others >> l & 1 == 0 {
                continue;
            }
            let fresh = self.spent >> l & 1 == 0;
            let (at, base) = (self.pc[l], self.base[l]);
            if (base == g.base && (at == pc || (at < pc && fresh))) || (base > g.base && fresh) {
                return None;
            }
            if base == g.base && at > pc {
                join = join.min(at);
            }
        }
        Some(join)
    }

    /// Enters a function: grows the registers and local memory and writes the constants of its frame.  Whether there is
    /// room for it.
    fn enter(&mut self, c: &Context, target: u32, base: u32, local: u32, mask: u32) -> bool {
        let function = c.kernel.function(target);
        let rows = base as usize + function.rows as usize;
        if rows > MOST_ROWS || u64::from(local) + u64::from(function.local_bytes) > MOST_LOCAL {
            return false;
        }
        if self.regs.len() < rows {
            let rows = rows.next_power_of_two();
            if !c.room.take(((rows - self.regs.len()) * size_of::<Row>()) as u64) {
                return false;
            }
            self.regs.resize(rows, Row::ZERO);
        }
        if !self.grow_local(c, u64::from(local + function.local_bytes)) {
            return false;
        }
        write_constants(&mut self.regs, base, &c.kernel.functions[target as usize].constants, mask);
        if let Some(stack) = function.stack {
            // SAFETY: there is room for all rows of the function.
            unsafe { self.frame(base).put(stack, &[0u32; 32], mask) };
        }
        true
    }

    /// Makes so many bytes of local memory for each lane, at most [`MOST_LOCAL`].  Whether there is room for them.
    fn grow_local(&mut self, c: &Context, bytes: u64) -> bool {
        let granules = bytes as usize / 8;
        if self.local.len() < granules {
            if !c.room.take(((granules - self.local.len()) * size_of::<[u64; 32]>()) as u64) {
                return false;
            }
            self.local.resize(granules, [0; 32]);
        }
        true
    }

    /// `alloca`, `stacksave` and `stackrestore`: the frame's stack begins where its local memory ends.
    fn stack(&mut self, c: &Context, f: Frame, function: &Function, i: &Ins, mask: u32) -> Result<(), Stop> {
        let Some(stack) = function.stack else { return Ok(()) };
        // SAFETY: decoding checked the rows and their widths.
        let (bottom, top, mut value) = unsafe {
            let bottom = f.get::<u32>(ROW_LOCAL).map(|b| u64::from(b) + u64::from(function.local_bytes));
            let value = match (i.a, i.imm) {
                (NONE, _) => [0; 32],
                (a, 0) => f.get::<u32>(a).map(u64::from),
                (a, _) => f.get::<u64>(a),
            };
            (bottom, top(f, function).map(u64::from), value)
        };
        let mut used = [0u32; 32];
        let (mut end, mut deepest) = (0, 0);
        for l in (0..32).filter(|l| mask >> l & 1 == 1) {
            let new = match i.op {
                Op::Alloca => {
                    let at = top[l].next_multiple_of(u64::from(i.e));
                    // Frames begin at multiples of 16.
                    let new = at.saturating_add(value[l]).checked_next_multiple_of(16).filter(|new| *new <= MOST_LOCAL);
                    value[l] = at;
                    new.ok_or_else(|| self.failed(c, l, i.line, OVERFLOW))?
                }
                Op::StackSave => {
                    value[l] = top[l];
                    top[l]
                }
                _ if value[l] >= bottom[l] && value[l] <= top[l] => value[l],
                _ => {
                    let what = format!("stackrestore of {:#x}, which is no place of the stack", value[l]);
                    return Err(self.failed(c, l, i.line, &what));
                }
            };
            used[l] = (new - bottom[l]) as u32;
            if new > end {
                (end, deepest) = (new, l);
            }
        }
        if !self.grow_local(c, end) {
            return Err(self.failed(c, deepest, i.line, OVERFLOW));
        }
        // SAFETY: as above.
        unsafe {
            f.put(stack, &used, mask);
            match (i.d, i.imm) {
                (NONE, _) => {}
                (d, 0) => f.put(d, &value.map(|v| v as u32), mask),
                (d, _) => f.put(d, &value, mask),
            }
        }
        Ok(())
    }

    /// Copies granules of local memory between two frames of the lanes in the mask.
    fn copy_local(&mut self, from: [u32; 32], to: [u32; 32], size: u32, mask: u32) {
        for l in 0..32 {
            if mask >> l & 1 == 0 {
                continue;
            }
            for k in 0..size.div_ceil(8) {
                let (source, target) = ((from[l] / 8 + k) as usize, (to[l] / 8 + k) as usize);
                let value = self.local.get(source).map_or(0, |g| g[l]);
                if let Some(granule) = self.local.get_mut(target) {
                    granule[l] = value;
                }
            }
        }
    }

    /// Where the frame of a function begins that lanes call from the frame at `caller`, which ends at `first`.
    ///
    /// Lanes have rows in common, and of a predicate's row all have one word, so it may not lie over frames of other
    /// functions that other lanes are in.  Where some of these have called it from the same frame it lies as theirs, so
    /// that all meet in it.
    fn place_for(&mut self, c: &Context, target: u32, caller: u32, first: u32, mask: u32) -> u32 {
        let others = self.live & !mask;
        if others == 0 {
            return first;
        }
        self.spread();
        let (mut seen, mut held) = (Vec::new(), Vec::new());
        for l in (0..32).filter(|l| others >> l & 1 == 1) {
            let (mut pc, mut base) = (self.pc[l], self.base[l]);
            if seen.contains(&(pc, base)) {
                continue;
            }
            seen.push((pc, base));
            loop {
                let function = c.kernel.find(pc);
                let end = base + c.kernel.function(function).rows;
                if end <= first {
                    break;
                }
                let frame = self.frame(base);
                // SAFETY: the header belongs to every frame.
                let (back, from) = unsafe { (frame.get::<u32>(ROW_RETURN)[l], frame.get::<u32>(ROW_CALLER)[l]) };
                held.push((function, base..end, from));
                (pc, base) = (back, from);
            }
        }
        let rows = c.kernel.function(target).rows;
        let free = |at: u32| {
            let apart = |held: &std::ops::Range<u32>| held.end <= at || at + rows <= held.start;
            held.iter().all(|(function, rows, _)| apart(rows) || (*function == target && rows.start == at))
        };
        let same = held.iter().filter(|(function, _, from)| *function == target && *from == caller);
        let places = same.map(|(_, rows, _)| rows.start).chain([first]);
        let behind = held.iter().map(|(_, rows, _)| rows.end).max().unwrap_or(first);
        places.into_iter().find(|at| free(*at)).unwrap_or(behind)
    }

    #[allow(clippy::too_many_arguments)]
    #[inline(never)]
    fn control(
        &mut self,
        c: &Context,
        barriers: &mut Barriers,
        g: &Group,
        f: Frame,
        function: &Function,
        i: &Ins,
        mask: u32,
    ) -> Result<Next, Stop> {
        // Lanes whose guard is false go on behind the instruction.
        let pass = |w: &mut Warp| w.save(g, g.pc + 1);
        match i.op {
            Op::Fence => std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst),
            Op::NanoSleep => {
                pass(self);
                self.spent |= mask;
                return Ok(Next::Choose);
            }
            Op::Alloca | Op::StackSave | Op::StackRestore => self.stack(c, f, function, i, mask)?,
            Op::BranchTable => {
                let start = c.kernel.functions[g.function as usize].start;
                // SAFETY: decoding checked the row.
                let index = unsafe { f.get::<u32>(i.a) };
                pass(self);
                self.spread();
                let table = &function.tables[i.e as usize];
                for (l, index) in index.iter().enumerate() {
                    if mask >> l & 1 == 1 {
                        let target = table
                            .get(*index as usize)
                            .ok_or_else(|| self.failed(c, l, i.line, "brx.idx beyond its targets"))?;
                        self.pc[l] = start + target;
                    }
                }
                return Ok(Next::Choose);
            }
            Op::Call => return self.call(c, g, f, function, i, mask),
            Op::CallEnd => {
                let site = &function.calls[i.e as usize];
                // SAFETY: the header belongs to every frame.
                let (local, top) = unsafe { (f.get::<u32>(ROW_LOCAL), top(f, function)) };
                if matches!(site.callee, Callee::Function(_) | Callee::Pointer(_)) && !self.provided(c, site) {
                    let mut at = 0u32;
                    for (offset, size, align) in &site.results {
                        at = at.next_multiple_of((*align).max(8));
                        let from = top.map(|b| b.wrapping_add(at));
                        self.copy_local(from, local.map(|b| b.wrapping_add(*offset)), *size, mask);
                        at += size;
                    }
                }
            }
            Op::Return => {
                // SAFETY: the header belongs to every frame.
                let (to, base) = unsafe { (f.get::<u32>(ROW_RETURN), f.get::<u32>(ROW_CALLER)) };
                pass(self);
                self.spread();
                for l in 0..32 {
                    if mask >> l & 1 == 1 {
                        self.pc[l] = to[l];
                        self.base[l] = base[l];
                    }
                }
                return Ok(Next::Choose);
            }
            Op::Exit => {
                pass(self);
                self.live &= !mask;
                self.spent &= self.live;
                self.gathering &= self.live;
                barriers.exited(mask.count_ones());
                self.complete(barriers);
                return Ok(Next::Choose);
            }
            Op::Trap => {
                return Err(Stop::Fault(Fault::Trap { place: self.place(c, mask.trailing_zeros() as usize, i.line) }));
            }
            Op::Barrier => {
                let site = &function.barriers[i.e as usize];
                // SAFETY: decoding checked the rows.
                let (id, count) = unsafe {
                    let lane = mask.trailing_zeros() as usize;
                    let id = f.get::<u32>(site.id)[lane];
                    (id, (site.count != NONE).then(|| f.get::<u32>(site.count)[lane]))
                };
                if id > 15 {
                    let what = format!("barrier {id} does not exist");
                    return Err(self.failed(c, mask.trailing_zeros() as usize, i.line, &what));
                }
                let id = id as u8;
                let mut yes = 0;
                if site.reduction.is_some() {
                    // SAFETY: decoding checked the row.
                    let p = unsafe { f.mask(site.predicate) };
                    yes = (if site.negate { !p } else { p }) & mask;
                }
                pass(self);
                match count {
                    Some(count) if count == 0 || !count.is_multiple_of(32) => {
                        let what = format!("barrier {id} for {count} threads, which are no whole warps");
                        return Err(self.failed(c, mask.trailing_zeros() as usize, i.line, &what));
                    }
                    // The others of the warp, too, have to come to this barrier.
                    Some(count) if mask != self.live => {
                        self.coming.lanes |= mask;
                        self.coming.arriving |= if site.arrive { mask } else { 0 };
                        self.coming.yes |= yes;
                        self.coming.count = count;
                    }
                    _ => barriers.arrive(id, mask.count_ones(), yes.count_ones(), mask == self.live, count),
                }
                if site.arrive && self.coming.lanes == 0 {
                    return Ok(Next::Choose);
                }
                self.waiting |= mask;
                if mask == self.live {
                    self.barrier = [id; 32];
                } else {
                    for l in 0..32 {
                        if mask >> l & 1 == 1 {
                            self.barrier[l] = id;
                        }
                    }
                }
                if let Some(reduction) = site.reduction {
                    self.pending.push(Pending { mask, barrier: id, row: g.base + site.result, reduction });
                }
                self.complete(barriers);
                return Ok(Next::Choose);
            }
            Op::WarpSync | Op::Vote | Op::Shuffle | Op::Match | Op::Redux | Op::Elect | Op::Matrix => {
                // SAFETY: decoding checked the row.
                let members = (i.c != NONE).then(|| unsafe { f.get::<u32>(i.c) });
                if let Some(members) = &members {
                    let own = members[mask.trailing_zeros() as usize];
                    let same = same_members(members, mask, own);
                    // A lane whose guard is false will not come.
                    let absent = !self.live | (g.mask & !mask);
                    let all = (0..32).filter(|l| mask >> l & 1 == 1).fold(0, |all, l| all | members[l]);
                    // Lanes of several sets, one of which is not whole: each set by itself, the others stay here.
                    let split = i.op != Op::Matrix && same != mask && all & !mask & !absent != 0;
                    let set = if split { same } else { mask };
                    let here = self.gathered(g) & own;
                    let missing = if same == mask || split { own & !(set | here) & !absent } else { 0 };
                    if split || (missing != 0 && !self.forced) || here & !set != 0 {
                        self.save(g, g.pc + 1);
                        self.put(mask, g.pc);
                        if missing != 0 && !self.forced {
                            self.gathering |= set;
                            return Ok(Next::Choose);
                        }
                        if here & !set != 0 {
                            // The lanes that waited join, and all of them execute it together.
                            self.gathering &= !here;
                            return Ok(Next::Choose);
                        }
                        self.forced = false;
                        // SAFETY: decoding checked the rows.
                        unsafe { collective::execute(f, i, set) };
                        self.put(set, g.pc + 1);
                        return Ok(Next::Choose);
                    }
                    self.forced = false;
                }
                if i.op == Op::Matrix {
                    let matrix = &function.matrices[i.e as usize];
                    let write = matches!(matrix, Matrix::Put { .. });
                    // SAFETY: decoding checked the rows.
                    let done = unsafe { matrix::execute(c, self, f, matrix, mask) };
                    return done.map(|()| Next::Step).map_err(|bad| memory::fault(c, self, bad, i.line, write));
                }
                let Some(members) = members else {
                    // SAFETY: decoding checked the rows.
                    unsafe { collective::execute(f, i, mask) };
                    return Ok(Next::Step);
                };
                // Lanes see those of their own set: the tiles of a warp come here together.
                let mut rest = mask;
                while rest != 0 {
                    let set = same_members(&members, rest, members[rest.trailing_zeros() as usize]);
                    // SAFETY: decoding checked the rows.
                    unsafe { collective::execute(f, i, set) };
                    rest &= !set;
                }
            }
            Op::ActiveMask => {
                // SAFETY: decoding checked the row.
                unsafe { f.put(i.d, &[mask; 32], mask) };
            }
            _ => {
                return Err(Stop::Fault(Fault::LaunchFailure(format!("an instruction out of place: {:?}", i.op))));
            }
        }
        Ok(Next::Step)
    }

    /// Lanes that wait at the group's instruction in its frame.
    fn gathered(&mut self, g: &Group) -> u32 {
        if self.gathering == 0 {
            return 0;
        }
        self.spread();
        let mut here = 0;
        for l in 0..32 {
            here |= u32::from(self.gathering >> l & 1 == 1 && self.pc[l] == g.pc && self.base[l] == g.base) << l;
        }
        here
    }

    fn provided(&self, c: &Context, site: &CallSite) -> bool {
        match site.callee {
            Callee::Function(index) => !c.kernel.by_index.contains_key(&index),
            _ => false,
        }
    }

    fn call(
        &mut self,
        c: &Context,
        g: &Group,
        f: Frame,
        function: &Function,
        i: &Ins,
        mask: u32,
    ) -> Result<Next, Stop> {
        let site = &function.calls[i.e as usize];
        // SAFETY: the frame is the function's.
        let (local, inner) = unsafe { (f.get::<u32>(ROW_LOCAL), top(f, function)) };
        let mut mask = mask;
        let target = match site.callee {
            Callee::Function(index) => match c.kernel.by_index.get(&index) {
                Some(target) => *target,
                None => {
                    let name = &c.kernel.module.functions[index as usize].name;
                    builtin::call(c, self, name, site, local, mask, i.line)?;
                    return Ok(Next::Step);
                }
            },
            Callee::Pointer(row) => {
                // SAFETY: decoding checked the row.
                let pointers = unsafe { f.get::<u64>(row) };
                let pointer = pointers[mask.trailing_zeros() as usize];
                // Lanes that call another function stay here and call it next.
                let mut same = 0;
                for (l, p) in pointers.iter().enumerate() {
                    same |= u32::from(*p == pointer) << l;
                }
                let later = mask & !same;
                mask &= same;
                self.save(g, g.pc + 1);
                self.put(later, g.pc);
                let index = pointer.checked_sub(FUNCTION_WINDOW).map(|o| (o / 16) as u32);
                let target = index.and_then(|i| c.kernel.by_index.get(&i));
                *target.ok_or_else(|| {
                    let what = format!("a call of {pointer:#x}, which is no function");
                    self.failed(c, mask.trailing_zeros() as usize, i.line, &what)
                })?
            }
            _ => return Err(self.failed(c, mask.trailing_zeros() as usize, i.line, "a call that was not resolved")),
        };
        if !matches!(site.callee, Callee::Pointer(_)) {
            self.save(g, g.pc + 1);
        }
        let callee = c.kernel.function(target);
        let base = self.place_for(c, target, g.base, g.base + function.rows, mask);
        let mut deepest = mask.trailing_zeros() as usize;
        for (l, at) in inner.iter().enumerate() {
            if mask >> l & 1 == 1 && *at > inner[deepest] {
                deepest = l;
            }
        }
        if !self.enter(c, target, base, inner[deepest], mask) {
            return Err(self.failed(c, deepest, i.line, OVERFLOW));
        }
        let frame = self.frame(base);
        // SAFETY: `enter` made room for the frame, whose header these are.
        unsafe {
            frame.put(ROW_RETURN, &[g.pc + 1; 32], mask);
            frame.put(ROW_CALLER, &[g.base; 32], mask);
            frame.put(ROW_LOCAL, &inner, mask);
        }
        if site.arguments.len() != callee.params.len() {
            let what = format!("`{}` called with another number of arguments than it takes", callee.name);
            return Err(self.failed(c, mask.trailing_zeros() as usize, i.line, &what));
        }
        for ((offset, size), param) in site.arguments.iter().zip(&callee.params) {
            let size = (*size).min(param.size);
            self.copy_local(
                local.map(|b| b.wrapping_add(*offset)),
                inner.map(|b| b.wrapping_add(param.offset)),
                size,
                mask,
            );
        }
        let start = c.kernel.functions[target as usize].start;
        if mask == self.live {
            (self.pc[0], self.base[0], self.together) = (start, base, true);
            return Ok(Next::Choose);
        }
        self.put(mask, start);
        for l in 0..32 {
            if mask >> l & 1 == 1 {
                self.base[l] = base;
            }
        }
        Ok(Next::Choose)
    }

    /// Reads a special register that changes by itself: the time, or the number of the warp.
    ///
    /// # Safety
    /// The instruction was decoded for the frame's function.
    #[inline(never)]
    pub unsafe fn special(&self, c: &Context, f: Frame, i: &Ins, mask: u32) {
        let value = match i.e {
            13 => u64::from(self.index),
            18 => c.started.elapsed().as_nanos() as u64,
            19 => c.started.elapsed().as_nanos() as u64 >> 32,
            20 | 21 => {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                let now = now.map_or(0, |d| d.as_nanos() as u64);
                if i.e == 21 { now >> 32 } else { now }
            }
            _ => 0,
        };
        // SAFETY: decoding checked the row and its width.
        unsafe {
            if i.c == Width::W64 as u32 {
                f.put(i.d, &[value; 32], mask);
            } else {
                let cut = if i.c == Width::W16 as u32 { 0xffff } else { u32::MAX };
                f.put(i.d, &[value as u32 & cut; 32], mask);
            }
        }
    }

    /// Each lane takes a block that has not begun, if there is one; its own block does that one's work.
    ///
    /// # Safety
    /// The instruction was decoded for the frame's function.
    pub unsafe fn take_block(&self, c: &Context, f: Frame, i: &Ins, mask: u32) {
        let mut answers = [[0u64; 32]; 2];
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            let Some(number) = c.queue.take() else { break };
            c.progress.blocks_done(1);
            [answers[0][lane], answers[1][lane]] = crate::cancelled::answer(c.queue.place(number));
        }
        // SAFETY: decoding checked the rows.
        unsafe {
            f.put(i.d, &answers[0], mask);
            f.put(i.imm as u32, &answers[1], mask);
        }
    }
}

/// Where the local memory of the frames above this one begins.
///
/// # Safety
/// The frame is one of the function's.
unsafe fn top(f: Frame, function: &Function) -> [u32; 32] {
    // SAFETY: the caller's; the header belongs to every frame.
    unsafe {
        let local = f.get::<u32>(ROW_LOCAL);
        let mut used = function.stack.map_or([0; 32], |row| f.get::<u32>(row));
        for (used, local) in used.iter_mut().zip(local) {
            *used = used.wrapping_add(local).wrapping_add(function.local_bytes);
        }
        used
    }
}

/// The lanes of a mask that name these members.
fn same_members(members: &[u32; 32], mask: u32, wanted: u32) -> u32 {
    let mut same = 0;
    for (l, named) in members.iter().enumerate() {
        same |= u32::from(*named == wanted) << l;
    }
    same & mask
}

fn write_constants(regs: &mut [Row], base: u32, constants: &[(u32, bool, u64)], mask: u32) {
    let frame = Frame(&raw mut regs[base as usize]);
    for (row, wide, value) in constants {
        // SAFETY: the caller made room for all rows of the function whose constants these are.
        unsafe {
            if *wide {
                frame.put(*row, &[*value; 32], mask);
            } else {
                frame.put(*row, &[*value as u32; 32], mask);
            }
        }
    }
}
