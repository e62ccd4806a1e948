//! Registers that are a function of the kernel's parameters and the thread's place in the grid alone, like the index
//! `blockIdx.x * blockDim.x + threadIdx.x` and the addresses made of it.  Whoever wants one computes it again where that is
//! less work than to keep it in memory.

use super::plan::{Constants, reads, touches, writes};
use super::recipe::Recipe;
use crate::ir::*;
use std::collections::HashMap;

/// Most instructions that compute an address again.
const MOST: u32 = 16;
/// Most that compute anything else again.
const FEW: u32 = 4;

/// The fixed registers of a function: the instruction that computes each, and how many instructions that takes with those
/// that compute its sources.
pub struct Fixed(HashMap<u32, (usize, u32)>);

impl Fixed {
    /// Finds those of a function.
    pub fn new(f: &Function, recipes: &[Option<Recipe>], constants: &Constants) -> Fixed {
        let mut writers: HashMap<u32, Option<usize>> = HashMap::new();
        for (at, i) in f.code.iter().enumerate() {
            let rows = if recipes[at].is_some() {
                writes(i, f)
            } else if matches!(i.op, Op::Store | Op::Branch | Op::Return | Op::Exit) {
                Vec::new()
            } else {
                touches(i, f)
            };
            for row in rows {
                writers.entry(row).and_modify(|only| *only = None).or_insert(Some(at));
            }
        }
        let mut fixed = Fixed(HashMap::new());
        // A register is computed before the code that reads it in most functions, so that one pass finds nearly all.
        for _ in 0..2 {
            for (at, i) in f.code.iter().enumerate() {
                let [row] = writes(i, f)[..] else { continue };
                let only = writers.get(&row) == Some(&Some(at)) && recipes[at].is_some() && i.guard == NONE;
                if row < HEADER_ROWS || !only || !is_fixed(i, f) {
                    continue;
                }
                let sources = reads(i, f).into_iter().filter(|row| constants.get(*row).is_none());
                let work = sources.map(|row| fixed.0.get(&row).map(|(_, work)| *work)).sum::<Option<u32>>();
                if let Some(work) = work.filter(|work| *work < MOST) {
                    fixed.0.insert(row, (at, work + 1));
                }
            }
        }
        fixed
    }

    /// The instruction that computes a register, if it is fixed.
    pub fn of(&self, row: u32) -> Option<usize> {
        self.0.get(&row).map(|(at, _)| *at)
    }

    /// Whether whoever reads it computes it again, so that it need not be in memory; `address`: for the address of an
    /// access.
    pub fn is_recomputed(&self, row: u32, address: bool) -> bool {
        self.0.get(&row).is_some_and(|(_, work)| address || *work <= FEW)
    }

    /// Whether it takes no more than to read it from memory.
    pub fn is_free(&self, row: u32) -> bool {
        self.0.get(&row).is_some_and(|(_, work)| *work == 1)
    }
}

/// Whether an instruction makes what is fixed of what is fixed.
fn is_fixed(i: &Ins, f: &Function) -> bool {
    use Op::*;
    match i.op {
        LoadParam => f.memories[i.e as usize].values.len() == 1,
        // The thread, the block and the grid, and the lane with its masks.
        Special => matches!(i.e, 0..=12 | 22..=26),
        Mov32 | Mov64 | U64U32 | S64S32 | U32U64 | Add32 | Add64 | Sub32 | Sub64 | Shl32 | Shl64 | MulLo32
        | MulLo64 | MulWideU32 | MulWideS32 | MadLo32 | MadLo64 | MadWideU32 | MadWideS32 => true,
        _ => false,
    }
}
