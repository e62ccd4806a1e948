//! A guess at how the lanes of a register differ: the distance from each lane to the next, where it looks constant.
//!
//! It assumes that four lanes of a group are neighbours in x, and knows nothing of divergence.  Compiled code checks
//! what it makes of it.

use super::plan::{Constants, writes};
use crate::ir::*;
use std::collections::HashMap;

/// The guessed distance between neighbouring lanes of each register; [`None`]: none.
pub struct Hints(HashMap<u32, Option<i64>>);

impl Hints {
    /// The guess for a register.
    pub fn of(&self, row: u32, constants: &Constants) -> Option<i64> {
        if row == ROW_LOCAL || constants.get(row).is_some() {
            return Some(0);
        }
        self.0.get(&row).copied().flatten()
    }

    /// Guesses for all registers of a function.
    pub fn new(f: &Function, constants: &Constants) -> Hints {
        let mut hints = Hints(HashMap::new());
        // Each guess changes at most twice: from nothing known to a distance to none.
        for _ in 0..8 {
            let mut changed = false;
            for i in &f.code {
                for row in writes(i, f) {
                    let Some(new) = hints.result(i, f, constants) else { continue };
                    let old = hints.0.get(&row).copied();
                    let met = if old.is_none_or(|old| old == new) { new } else { None };
                    changed |= old != Some(met);
                    hints.0.insert(row, met);
                }
            }
            if !changed {
                break;
            }
        }
        hints
    }

    /// What an instruction makes of the guesses so far; nothing if one of its sources has none yet.
    fn result(&self, i: &Ins, f: &Function, constants: &Constants) -> Option<Option<i64>> {
        let source = |row: u32| {
            if row == NONE || row == ROW_LOCAL || constants.get(row).is_some() {
                Some(Some(0))
            } else {
                self.0.get(&row).copied()
            }
        };
        let value = |row: u32| constants.get(row).map(|v| v as i32 as i64);
        let product = |a: u32, b: u32| -> Option<Option<i64>> {
            let (x, y) = (source(a)?, source(b)?);
            Some(match (x, y) {
                (Some(0), Some(0)) => Some(0),
                (Some(s), _) if value(b).is_some() => value(b).map(|v| s.wrapping_mul(v)),
                (_, Some(s)) if value(a).is_some() => value(a).map(|v| s.wrapping_mul(v)),
                _ => None,
            })
        };
        let sum =
            |x: Option<i64>, y: Option<i64>, sign: i64| x.zip(y).map(|(x, y)| x.wrapping_add(y.wrapping_mul(sign)));
        Some(match i.op {
            Op::Special => match i.e {
                0 | 12 => Some(1),
                22..=26 => None,
                _ => Some(0),
            },
            Op::LoadParam | Op::FrameAddress32 | Op::FrameAddress64 | Op::PredConst => Some(0),
            Op::Mov32 | Op::Mov64 | Op::U64U32 | Op::S64S32 | Op::U32U64 => source(i.a)?,
            Op::Add32 | Op::Add64 => sum(source(i.a)?, source(i.b)?, 1),
            Op::Sub32 | Op::Sub64 => sum(source(i.a)?, source(i.b)?, -1),
            Op::MulLo32 | Op::MulLo64 | Op::MulWideU32 | Op::MulWideS32 => product(i.a, i.b)?,
            Op::MadLo32 | Op::MadLo64 | Op::MadWideU32 | Op::MadWideS32 => sum(product(i.a, i.b)?, source(i.c)?, 1),
            Op::Shl32 | Op::Shl64 => match (source(i.a)?, value(i.b)) {
                (Some(s), Some(n)) if n < 32 => Some(s << n),
                (Some(0), _) if source(i.b)? == Some(0) => Some(0),
                _ => None,
            },
            Op::Load => match source(f.memories[i.e as usize].address.row)? {
                Some(0) => Some(0),
                _ => None,
            },
            _ => {
                let all = [i.a, i.b, i.c].map(source);
                if all.contains(&None) {
                    return None;
                }
                if all.iter().all(|s| *s == Some(Some(0))) && !matches!(i.op, Op::Atomic | Op::Shuffle) {
                    Some(0)
                } else {
                    None
                }
            }
        })
    }
}
