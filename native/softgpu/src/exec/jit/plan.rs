//! Which instructions are compiled together, and which registers have to be in memory between them.
//!
//! A *segment* is a run of instructions that every lane of a group executes: it ends where control may go elsewhere.
//! Inside it, instructions with a recipe form *loops* over the lanes, four at a time; the others are calls for the
//! whole warp.  A loop never stores to memory, so that all lanes have loaded before one of them stores.

use super::fixed::Fixed;
use super::hint::Hints;
use super::recipe::{Recipe, recipe};
use crate::ir::*;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Rows whose value is known.
pub struct Constants(pub HashMap<u32, u64>);

impl Constants {
    /// The value of a row, if it is a constant.
    pub fn get(&self, row: u32) -> Option<u64> {
        self.0.get(&row).copied()
    }
}

/// A part of a segment.
#[derive(Clone, Debug)]
pub enum Part {
    /// Instructions with recipes.
    Loop(Range<usize>),
    /// A store whose lanes may lie side by side.
    Store(usize),
    /// One instruction that is a call.
    Call(usize),
}

/// Instructions that are compiled into one function.
#[derive(Clone, Debug)]
pub struct Segment {
    pub start: usize,
    pub end: usize,
    pub parts: Vec<Part>,
}

/// What is to be compiled of a function.
pub struct Plan {
    pub recipes: Vec<Option<Recipe>>,
    pub segments: Vec<Segment>,
    /// Rows that somebody reads from memory.
    pub exposed: HashSet<u32>,
    pub fixed: Fixed,
    pub hints: Hints,
}

/// Whether the interpreter of control executes the instruction.
pub fn is_control(op: Op) -> bool {
    matches!(
        op,
        Op::Branch
            | Op::BranchTable
            | Op::Call
            | Op::CallEnd
            | Op::Return
            | Op::Exit
            | Op::Trap
            | Op::Barrier
            | Op::WarpSync
            | Op::Fence
            | Op::NanoSleep
            | Op::Alloca
            | Op::StackSave
            | Op::StackRestore
            | Op::Vote
            | Op::Shuffle
            | Op::Match
            | Op::ActiveMask
            | Op::Redux
            | Op::Elect
            | Op::Matrix
    )
}

impl Plan {
    /// Plans a function.
    pub fn new(f: &Function, constants: &Constants, native_fma: bool) -> Plan {
        let recipes: Vec<_> = f.code.iter().map(|i| recipe(i, constants, native_fma)).collect();
        let segments = segments(f, &recipes);
        let fixed = Fixed::new(f, &recipes, constants);
        let exposed = exposed(f, &segments, &recipes, constants, &fixed);
        Plan { recipes, segments, exposed, fixed, hints: Hints::new(f, constants) }
    }
}

fn segments(f: &Function, recipes: &[Option<Recipe>]) -> Vec<Segment> {
    let mut leader = vec![false; f.code.len() + 1];
    for (at, i) in f.code.iter().enumerate() {
        if is_control(i.op) {
            leader[at + 1] = true;
        }
        if i.op == Op::Branch {
            leader[i.e as usize] = true;
        }
    }
    for target in f.tables.iter().flatten() {
        leader[*target as usize] = true;
    }
    let mut out: Vec<Segment> = Vec::new();
    let mut open = false;
    for (at, i) in f.code.iter().enumerate() {
        if is_control(i.op) {
            open = false;
            continue;
        }
        if !open || leader[at] {
            out.push(Segment { start: at, end: at, parts: Vec::new() });
            open = true;
        }
        if let Some(segment) = out.last_mut() {
            segment.end = at + 1;
            match (segment.parts.last_mut(), recipes[at].is_some()) {
                (Some(Part::Loop(range)), true) => range.end = at + 1,
                (_, true) => segment.parts.push(Part::Loop(at..at + 1)),
                (_, false) if is_plain_store(i, f) => segment.parts.push(Part::Store(at)),
                (_, false) => segment.parts.push(Part::Call(at)),
            }
        }
    }
    out
}

/// Whether an instruction stores whole registers of all lanes of a group where all can reach.
fn is_plain_store(i: &Ins, f: &Function) -> bool {
    if i.op != Op::Store || i.guard != NONE {
        return false;
    }
    let m = &f.memories[i.e as usize];
    let reachable = matches!(m.space, Space::Global | Space::Shared | Space::Generic);
    let [(_, width)] = m.values.as_slice() else { return false };
    let whole = matches!((m.size, width), (4, Width::W32) | (8, Width::W64));
    reachable && whole && !m.address.frame && m.address.row != NONE
}

/// Rows that an instruction with a recipe reads.
pub fn reads(i: &Ins, f: &Function) -> Vec<u32> {
    let mut out = vec![i.guard];
    match i.op {
        Op::Special | Op::LoadParam | Op::PredConst => {}
        Op::FrameAddress32 | Op::FrameAddress64 => out.push(ROW_LOCAL),
        Op::Load => out.push(f.memories[i.e as usize].address.row),
        Op::CmpU16 | Op::CmpS16 | Op::CmpU32 | Op::CmpS32 | Op::CmpU64 | Op::CmpS64 | Op::CmpF32 | Op::CmpF64 => {
            out.extend([i.a, i.b]);
        }
        _ => out.extend([i.a, i.b, i.c]),
    }
    out.retain(|row| *row != NONE);
    out
}

/// Rows that an instruction with a recipe writes.
pub fn writes(i: &Ins, f: &Function) -> Vec<u32> {
    let mut out = match i.op {
        Op::Load | Op::LoadParam => f.memories[i.e as usize].values.iter().map(|v| v.0).collect(),
        Op::CmpU16 | Op::CmpS16 | Op::CmpU32 | Op::CmpS32 | Op::CmpU64 | Op::CmpS64 | Op::CmpF32 | Op::CmpF64 => {
            vec![i.d, i.c]
        }
        _ => vec![i.d],
    };
    out.retain(|row| *row != NONE);
    out
}

/// How many vectors of four lanes the values of a loop take at most at the same time: those that are computed or read
/// more than once.  A register that is wanted behind the loop is kept until its end, an address until its first load,
/// and what is fixed not at all.
pub fn most_live(range: &Range<usize>, f: &Function, plan: &Plan, constants: &Constants) -> usize {
    let code = &f.code[range.clone()];
    let mut last: HashMap<u32, usize> = HashMap::new();
    for (at, i) in code.iter().enumerate() {
        for row in reads(i, f) {
            if i.op == Op::Load && row != i.guard {
                last.entry(row).or_insert(at);
            } else {
                last.insert(row, at);
            }
        }
        for row in writes(i, f) {
            last.insert(row, if plan.exposed.contains(&row) { code.len() } else { at });
        }
    }
    let mut live: HashMap<u32, usize> = HashMap::new();
    let mut most = 0;
    for (at, i) in code.iter().enumerate() {
        let (operand, result) = vectors(i, plan.recipes[range.start + at], f);
        for row in reads(i, f) {
            live.entry(row).or_insert(operand);
        }
        for row in writes(i, f) {
            live.insert(row, result);
        }
        let kept = |row: u32| constants.get(row).is_none() && plan.fixed.of(row).is_none();
        live.retain(|row, _| last[row] > at && kept(*row));
        most = most.max(live.values().sum());
    }
    most
}

/// How many vectors the lanes of a group take: each operand of an instruction, and its result.
fn vectors(i: &Ins, recipe: Option<Recipe>, f: &Function) -> (usize, usize) {
    use Recipe::*;
    let one_or_two = |wide: bool| if wide { 2 } else { 1 };
    match recipe {
        Some(Long1(_) | Long2(_) | Long3(_) | LongShift(..) | Double1(_) | Double2(_) | Double3(_) | SelectLong) => {
            (2, 2)
        }
        Some(Widen(_) | Widen2(_) | WidenAdd(_) | WidenShift(..)) => (1, 2),
        Some(Narrow(_) | Half(_) | CompareLong | CompareDouble) => (2, 1),
        Some(Special) => (1, one_or_two(i.c == Width::W64 as u32)),
        Some(FrameAddress) => (1, one_or_two(i.op == Op::FrameAddress64)),
        Some(Load | LoadParam) => {
            (1, one_or_two(f.memories[i.e as usize].values.iter().any(|(_, width)| *width == Width::W64)))
        }
        _ => (1, 1),
    }
}

/// Every row that an instruction may touch.
pub fn touches(i: &Ins, f: &Function) -> Vec<u32> {
    let mut out = vec![i.guard, i.d, i.a, i.b, i.c];
    match i.op {
        Op::Load | Op::Store | Op::LoadParam => {
            let m = &f.memories[i.e as usize];
            out.push(m.address.row);
            out.extend(m.values.iter().map(|v| v.0));
        }
        Op::Atomic => {
            let a = &f.atomics[i.e as usize];
            out.extend([a.address.row, a.old, a.operand, a.swap]);
        }
        Op::Long => {
            let long = &f.longs[i.e as usize];
            out.push(long.address.row);
            out.extend([long.old, long.operand, long.swap].concat());
        }
        Op::Barrier => {
            let s = &f.barriers[i.e as usize];
            out.extend([s.id, s.count, s.predicate, s.result]);
        }
        Op::Call => {
            if let Callee::Pointer(row) = f.calls[i.e as usize].callee {
                out.push(row);
            }
        }
        Op::Shuffle | Op::Match | Op::Elect | Op::TakeBlock => out.extend([i.imm as u32, (i.imm >> 32) as u32]),
        Op::CopyAsync => {
            let copy = &f.copies[i.e as usize];
            out.extend([copy.to.row, copy.from.row, copy.given, copy.length, copy.bytes]);
            out.extend(copy.skipped);
        }
        Op::Matrix => out.extend(f.matrices[i.e as usize].rows()),
        Op::Bfi32 | Op::Bfi64 => out.push(i.e),
        _ => {}
    }
    out.retain(|row| *row != NONE);
    out
}

/// Rows that somebody reads from memory: not those that every reader has computed itself before, or computes again.
fn exposed(
    f: &Function,
    segments: &[Segment],
    recipes: &[Option<Recipe>],
    constants: &Constants,
    fixed: &Fixed,
) -> HashSet<u32> {
    let mut out: HashSet<u32> = (0..HEADER_ROWS).collect();
    for (at, i) in f.code.iter().enumerate() {
        if is_plain_store(i, f) {
            // What is computed again is put there when the store turns out to need it.
            let address = f.memories[i.e as usize].address.row;
            out.extend(touches(i, f).into_iter().filter(|row| !fixed.is_recomputed(*row, *row == address)));
        } else if is_control(i.op) || recipes[at].is_none() {
            out.extend(touches(i, f));
        }
    }
    for segment in segments {
        for part in &segment.parts {
            let Part::Loop(range) = part else { continue };
            let mut defined = HashSet::new();
            for i in &f.code[range.clone()] {
                let mut used = reads(i, f);
                if i.guard != NONE {
                    // Where the guard is false the old value stays.
                    used.extend(writes(i, f));
                }
                let recomputed = |row: u32| fixed.is_recomputed(row, i.op == Op::Load && row != i.guard);
                let known = |row: u32| defined.contains(&row) || constants.get(row).is_some() || recomputed(row);
                out.extend(used.into_iter().filter(|row| !known(*row)));
                defined.extend(writes(i, f));
            }
        }
    }
    out
}
