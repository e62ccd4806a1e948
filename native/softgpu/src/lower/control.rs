//! Branches, calls, barriers and warp-wide instructions.

use super::{Builder, Operand, Variable};
use crate::error::PtxError;
use crate::ir::*;
use crate::types::Type;

/// Modes of [`Op::Redux`] in `e` for single precision.
pub const REDUX_FLOAT: u32 = 8;
pub const REDUX_MAX: u32 = 16;
pub const REDUX_ABS: u32 = 32;
pub const REDUX_NAN: u32 = 64;

/// Modes of [`Op::Vote`] in `e`.
pub const VOTE_ALL: u32 = 0;
pub const VOTE_ANY: u32 = 1;
pub const VOTE_UNI: u32 = 2;
pub const VOTE_BALLOT: u32 = 3;

impl Builder {
    /// `bra`
    pub(super) fn branch(&mut self, ops: &[Operand]) -> Result<(), PtxError> {
        let [Operand::Name(label)] = ops else { return Err(self.error("expected a label")) };
        self.emit(Op::Branch, NONE, NONE, NONE, NONE, 0, 0);
        self.fix(label, false);
        Ok(())
    }

    /// `brx.idx`
    pub(super) fn branch_table(&mut self, ops: &[Operand]) -> Result<(), PtxError> {
        let [index, Operand::Name(table)] = ops else { return Err(self.error("expected an index and targets")) };
        let index = self.source(index, Type::U32)?;
        self.emit(Op::BranchTable, NONE, index, NONE, NONE, 0, 0);
        self.fix(table, true);
        Ok(())
    }

    /// `call`
    pub(super) fn call(&mut self, ops: &[Operand]) -> Result<(), PtxError> {
        let (results, rest) = match ops {
            [Operand::List(results), rest @ ..] => (results.as_slice(), rest),
            rest => (&[][..], rest),
        };
        let [callee, rest @ ..] = rest else { return Err(self.error("a call of nothing")) };
        let arguments = match rest {
            [Operand::List(arguments), ..] => arguments.as_slice(),
            _ => &[],
        };
        let callee = match callee {
            Operand::Symbol(Variable::Function(index), _) => Callee::Function(*index),
            Operand::Register(row, Type::U64 | Type::B64 | Type::S64) => Callee::Pointer(*row),
            Operand::Name(name) => return Err(self.error(format!("no function `{name}`"))),
            _ => return Err(self.error("a call of something that is no function")),
        };
        if let [.., Operand::Name(prototype)] = rest {
            self.prototypes_named.push((prototype.clone(), self.at));
        }
        let mut slots = Vec::new();
        for (i, argument) in arguments.iter().enumerate() {
            slots.push(match argument {
                Operand::Symbol(Variable::FrameParam(at, size, _), _) => (*at, *size),
                Operand::Register(row, ty) if *ty != Type::Pred => {
                    // Old style: the value itself instead of a .param variable.
                    let at = self.temporary(ty.size(), i)?;
                    self.frame_access(Op::Store, at, *row, *ty);
                    (at, ty.size())
                }
                Operand::Int(v) => {
                    let row = self.constant(Constant::Bits(*v), true);
                    let at = self.temporary(8, i)?;
                    self.frame_access(Op::Store, at, row, Type::B64);
                    (at, 8)
                }
                _ => return Err(self.error("an argument that is no parameter")),
            });
        }
        let mut out = Vec::new();
        let mut loads = Vec::new();
        for (i, result) in results.iter().enumerate() {
            out.push(match result {
                Operand::Symbol(Variable::FrameParam(at, size, align), _) => (*at, *size, *align),
                Operand::Register(row, ty) if *ty != Type::Pred => {
                    let at = self.temporary(ty.size(), 1000 + i)?;
                    loads.push((at, *row, *ty));
                    (at, ty.size(), ty.size())
                }
                Operand::Sink => (self.temporary(8, 1000 + i)?, 8, 8),
                _ => return Err(self.error("a result that is no parameter")),
            });
        }
        let index = self.f.calls.len() as u32;
        self.f.calls.push(CallSite { callee, arguments: slots, results: out });
        if let Callee::Function(function) = callee {
            self.calls(function);
        }
        self.emit(Op::Call, NONE, NONE, NONE, NONE, index, 0);
        self.emit(Op::CallEnd, NONE, NONE, NONE, NONE, index, 0);
        for (at, row, ty) in loads {
            self.frame_access(Op::Load, at, row, ty);
        }
        Ok(())
    }

    fn temporary(&mut self, size: u32, number: usize) -> Result<u32, PtxError> {
        // A name that PTX cannot spell.
        let name = format!("call {} {number}", self.f.calls.len());
        self.frame_variable(&name, u64::from(size), 8, false).map_err(|m| self.error(m))?;
        match self.lookup(&name) {
            Some(Variable::FrameParam(at, ..)) => Ok(at),
            _ => Err(self.error("no room for an argument")),
        }
    }

    pub(super) fn frame_access(&mut self, op: Op, at: u32, row: u32, ty: Type) {
        let index = self.f.memories.len() as u32;
        self.f.memories.push(Memory {
            space: Space::Local,
            size: ty.size(),
            signed: false,
            strong: false,
            values: vec![(row, super::width_of(ty))],
            address: Address { row: NONE, wide: true, offset: i64::from(at), frame: true },
        });
        self.emit(op, NONE, NONE, NONE, NONE, index, 0);
    }

    /// `bar`, `barrier`
    pub(super) fn barrier(&mut self, name: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        if mods.contains(&"warp") {
            let [mask] = ops else { return Err(self.error("bar.warp.sync takes a mask")) };
            let mask = self.source(mask, Type::B32)?;
            self.emit(Op::WarpSync, NONE, NONE, NONE, mask, 0, 0);
            return Ok(());
        }
        if mods.contains(&"cluster") {
            // A cluster is one block: who arrives meets the others when it waits.
            if mods.contains(&"wait") {
                let (id, arrive) = (self.constant(Constant::Bits(0), false), false);
                self.wait_at(BarrierSite {
                    id,
                    count: NONE,
                    arrive,
                    reduction: None,
                    predicate: NONE,
                    negate: false,
                    result: NONE,
                });
            }
            return Ok(());
        }
        let mut site = BarrierSite {
            id: NONE,
            count: NONE,
            arrive: mods.contains(&"arrive"),
            reduction: None,
            predicate: NONE,
            negate: false,
            result: NONE,
        };
        let mut ops = ops;
        if mods.contains(&"red") {
            let [d, rest @ .., p] = ops else { return Err(self.error("too few operands")) };
            ops = rest;
            let reduction = if mods.contains(&"popc") {
                Reduction::Popc
            } else if mods.contains(&"and") {
                Reduction::And
            } else if mods.contains(&"or") {
                Reduction::Or
            } else {
                return Err(self.unsupported(Builder::full(name, mods)));
            };
            site.reduction = Some(reduction);
            site.result = self.target(d, if reduction == Reduction::Popc { Type::U32 } else { Type::Pred })?;
            (site.predicate, site.negate) = self.predicate(p)?;
        } else if !mods.contains(&"sync") && !site.arrive {
            return Err(self.unsupported(Builder::full(name, mods)));
        }
        let [id, rest @ ..] = ops else { return Err(self.error("too few operands")) };
        site.id = self.source(id, Type::U32)?;
        if let [count, ..] = rest {
            site.count = self.source(count, Type::U32)?;
        }
        if site.arrive && site.count == NONE {
            return Err(self.error("bar.arrive needs a thread count"));
        }
        self.wait_at(site);
        Ok(())
    }

    fn wait_at(&mut self, site: BarrierSite) {
        let index = self.f.barriers.len() as u32;
        self.f.barriers.push(site);
        self.emit(Op::Barrier, NONE, NONE, NONE, NONE, index, 0);
    }

    fn member_mask(&mut self, mods: &[&str], operand: Option<&Operand>) -> Result<u32, PtxError> {
        match (mods.contains(&"sync"), operand) {
            (false, _) => Ok(NONE),
            (true, Some(mask)) => self.source(mask, Type::B32),
            (true, None) => Err(self.error("a .sync instruction without its member mask")),
        }
    }

    /// `vote`
    pub(super) fn vote(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let [d, p, rest @ ..] = ops else { return Err(self.error("too few operands")) };
        let mode = match mods.iter().find(|m| matches!(**m, "all" | "any" | "uni" | "ballot")) {
            Some(&"all") => VOTE_ALL,
            Some(&"any") => VOTE_ANY,
            Some(&"uni") => VOTE_UNI,
            Some(&"ballot") => VOTE_BALLOT,
            _ => return Err(self.unsupported(Builder::full("vote", mods))),
        };
        let d = self.target_or_sink(d, if mode == VOTE_BALLOT { Type::B32 } else { Type::Pred })?;
        let (p, negate) = self.predicate(p)?;
        let mask = self.member_mask(mods, rest.first())?;
        self.emit(Op::Vote, d, p, u32::from(negate), mask, mode, 0);
        Ok(())
    }

    /// `shfl`: lane in b, clamp in `imm`'s row, mask in c.
    pub(super) fn shuffle(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let [d, a, b, clamp, rest @ ..] = ops else { return Err(self.error("too few operands")) };
        let mode = match mods.iter().find(|m| matches!(**m, "up" | "down" | "bfly" | "idx")) {
            Some(&"up") => 0,
            Some(&"down") => 1,
            Some(&"bfly") => 2,
            Some(&"idx") => 3,
            _ => return Err(self.unsupported(Builder::full("shfl", mods))),
        };
        let (d, valid) = match d {
            Operand::Pair(d, p) => (self.target_or_sink(d, Type::B32)?, self.target_or_sink(p, Type::Pred)?),
            d => (self.target_or_sink(d, Type::B32)?, NONE),
        };
        let a = self.source(a, Type::B32)?;
        let b = self.source(b, Type::B32)?;
        let clamp = self.source(clamp, Type::B32)?;
        let mask = self.member_mask(mods, rest.first())?;
        self.emit(Op::Shuffle, d, a, b, mask, mode, i64::from(clamp) << 32 | i64::from(valid));
        Ok(())
    }

    /// `match`
    pub(super) fn matching(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let [d, a, mask] = ops else { return Err(self.error("match takes three operands")) };
        let wide = mods.contains(&"b64");
        let (d, valid) = match d {
            Operand::Pair(d, p) => (self.target_or_sink(d, Type::B32)?, self.target_or_sink(p, Type::Pred)?),
            d => (self.target_or_sink(d, Type::B32)?, NONE),
        };
        let a = self.source(a, if wide { Type::B64 } else { Type::B32 })?;
        let mask = self.source(mask, Type::B32)?;
        let e = u32::from(mods.contains(&"all")) | u32::from(wide) << 1;
        self.emit(Op::Match, d, a, NONE, mask, e, i64::from(valid));
        Ok(())
    }

    /// `redux.sync`
    pub(super) fn redux(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let [d, a, mask] = ops else { return Err(self.error("redux takes three operands")) };
        let has = |m: &str| mods.contains(&m);
        let (signed, float) = (has("s32"), has("f32"));
        let flag = |name: &str, flag: u32| if has(name) { flag } else { 0 };
        let what = mods.iter().find(|m| matches!(**m, "add" | "min" | "max" | "and" | "or" | "xor"));
        let mode = match what {
            Some(&("min" | "max")) if float => {
                REDUX_FLOAT | flag("max", REDUX_MAX) | flag("abs", REDUX_ABS) | flag("NaN", REDUX_NAN)
            }
            _ if float || has("abs") || has("NaN") => return Err(self.unsupported(Builder::full("redux", mods))),
            Some(&"add") => 0,
            Some(&"min") => 1 + u32::from(signed),
            Some(&"max") => 3 + u32::from(signed),
            Some(&"and") => 5,
            Some(&"or") => 6,
            Some(&"xor") => 7,
            _ => return Err(self.unsupported(Builder::full("redux", mods))),
        };
        let d = self.target(d, Type::B32)?;
        let a = self.source(a, Type::B32)?;
        let mask = self.source(mask, Type::B32)?;
        self.emit(Op::Redux, d, a, NONE, mask, mode, 0);
        Ok(())
    }
}
