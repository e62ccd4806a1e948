//! `mbarrier` and what arrives at one, copies and answers of the launch: atomics on its word, which waiting reads.

use super::memory::{atomic_of, flushes, space_of};
use super::{Builder, Operand};
use crate::cancelled;
use crate::error::PtxError;
use crate::ir::*;
use crate::mbarrier::{COUNT, LAYOUT, PHASE};
use crate::types::Type;

/// What an operation on an `mbarrier` may be told first.
const FIRST: &[&str] = &["expect_tx", "noComplete", "parity"];
const TYPE: &[&str] = &["b64"];
const SCOPES: &[&str] = &["cta", "cluster"];
const OWN: &[&str] = &["shared", "shared::cta"];
const CLUSTER: &[&str] = &["shared", "shared::cta", "shared::cluster"];

/// What each of the operations on an `mbarrier` may be told beside its type: of each group one, in any order.
fn modifiers(what: &str) -> &'static [&'static [&'static str]] {
    match what {
        "init" => &[&["layout::v0", "layout::v1"], OWN],
        "inval" => &[OWN],
        "expect_tx" | "complete_tx" => &[&["relaxed"], SCOPES, CLUSTER],
        "arrive" | "arrive_drop" => &[&["expect_tx", "noComplete"], &["release", "relaxed"], SCOPES, CLUSTER],
        "test_wait" | "try_wait" => {
            &[&["parity"], &["phase_type::primary", "phase_type::conditional"], &["acquire", "relaxed"], SCOPES, OWN]
        }
        "pending_count" => &[&["layout::v0"]],
        "check_layout" => &[&["layout::v0", "layout::v1"], OWN],
        _ => &[],
    }
}

impl Builder {
    /// An atomic on the word at an address; gives the row of what it was before.
    fn on_barrier(&mut self, op: AtomicOp, space: Space, address: &Operand, operand: u32) -> Result<u32, PtxError> {
        let address = self.address(address)?;
        if address.frame || !matches!(space, Space::Shared | Space::Generic) {
            return Err(self.unsupported("an mbarrier outside of shared memory"));
        }
        let old = self.fresh(Type::B64);
        let index = self.f.atomics.len() as u32;
        let ty = Type::U64;
        self.f.atomics.push(Atomic { space, op, ty, flushes: false, address, align: 8, old, operand, swap: NONE });
        self.emit(Op::Atomic, NONE, NONE, NONE, NONE, index, 0);
        Ok(old)
    }

    /// A count of 32 bits in 64, one if there is none.
    fn count(&mut self, operand: Option<&Operand>) -> Result<u32, PtxError> {
        let Some(operand) = operand else { return Ok(self.constant(Constant::Bits(1), true)) };
        let count = self.source(operand, Type::U32)?;
        let wide = self.fresh(Type::B64);
        self.alu(Op::U64U32, wide, &[count]);
        Ok(wide)
    }

    /// A bit of a barrier's word as a number of 32 bits, differing from that of a state if there is one.
    fn bit_of_barrier(
        &mut self,
        space: Space,
        address: &Operand,
        bit: u32,
        state: Option<u32>,
    ) -> Result<u32, PtxError> {
        let address = self.address(address)?;
        if address.frame {
            return Err(self.unsupported("an mbarrier outside of shared memory"));
        }
        let (word, shifted, number) = (self.fresh(Type::B64), self.fresh(Type::B64), self.fresh(Type::B32));
        let index = self.f.memories.len() as u32;
        let values = vec![(word, Width::W64)];
        self.f.memories.push(Memory { space, size: 8, signed: false, strong: true, values, address });
        self.emit(Op::Load, NONE, NONE, NONE, NONE, index, 0);
        if let Some(state) = state {
            self.alu(Op::Xor64, word, &[word, state]);
        }
        let shift = self.constant(Constant::Bits(u64::from(bit)), false);
        self.alu(Op::ShrU64, shifted, &[word, shift]);
        self.alu(Op::U32U64, number, &[shifted]);
        let one = self.constant(Constant::Bits(1), false);
        self.alu(Op::And32, number, &[number, one]);
        Ok(number)
    }

    /// `mbarrier`
    pub(super) fn mbarrier(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let no = |b: &Builder| Err(b.unsupported(Builder::full("mbarrier", mods)));
        let [what, rest @ ..] = mods else { return no(self) };
        let has = |name: &str| rest.contains(&name);
        let ordered = has("acquire") || has("release") || has("relaxed");
        let groups = modifiers(what);
        let known = |m: &&str| *m == "b64" || groups.iter().any(|group| group.contains(m));
        let times = |group: &[&str]| rest.iter().filter(|m| group.contains(m)).count();
        if !rest.iter().all(known)
            || times(TYPE) != 1
            || groups.iter().any(|group| times(group) > 1)
            || rest.iter().skip(1).any(|m| FIRST.contains(m))
            || ordered != (has("cta") || has("cluster"))
        {
            return no(self);
        }
        let space = rest.iter().find_map(|m| space_of(m)).unwrap_or(Space::Generic);
        match (*what, ops) {
            ("init", [address, count]) => {
                let mut count = self.count(Some(count))?;
                if has("layout::v1") {
                    let (layout, number) = (self.constant(Constant::Bits(1 << LAYOUT), true), self.fresh(Type::B64));
                    self.alu(Op::Or64, number, &[count, layout]);
                    count = number;
                }
                self.on_barrier(AtomicOp::BarrierInit, space, address, count)?;
            }
            ("inval", [_]) => {}
            ("expect_tx" | "complete_tx", [address, bytes]) => {
                let bytes = self.count(Some(bytes))?;
                let op = if *what == "expect_tx" { AtomicOp::BarrierExpect } else { AtomicOp::BarrierComplete };
                self.on_barrier(op, space, address, bytes)?;
            }
            ("arrive" | "arrive_drop", [state, address, count @ ..]) if count.len() < 2 => {
                let (counts, sink) = (has("expect_tx") || has("noComplete"), matches!(state, Operand::Sink));
                if (counts && count.is_empty())
                    || (has("noComplete") && ["relaxed", "cluster", "shared::cluster"].iter().any(|m| has(m)))
                    || (has("shared::cluster") && !sink)
                {
                    return no(self);
                }
                let op = if *what == "arrive" { AtomicOp::BarrierArrive } else { AtomicOp::BarrierDrop };
                let mut count = count.first();
                if has("expect_tx") {
                    let bytes = self.count(count.take())?;
                    self.on_barrier(AtomicOp::BarrierExpect, space, address, bytes)?;
                }
                let count = self.count(count)?;
                let old = self.on_barrier(op, space, address, count)?;
                if !sink {
                    let state = self.target(state, Type::B64)?;
                    self.alu(Op::Mov64, state, &[old]);
                }
            }
            ("test_wait" | "try_wait", [done, rest @ ..]) => {
                // Nothing reports on what has come: both kinds of phases end together, and reports are empty.
                let reports = has("phase_type::primary");
                let (done, report) = match done {
                    Operand::Pair(done, report) => (&**done, Some(&**report)),
                    done => (done, None),
                };
                let report = report.filter(|report| !matches!(report, Operand::Sink));
                let (value, rest) = match rest {
                    [Operand::Address(..), ..] => (None, rest),
                    [value, rest @ ..] if reports => (Some(value), rest),
                    _ => return no(self),
                };
                if matches!(done, Operand::Sink) || (report.is_some() && !reports) {
                    return no(self);
                }
                let [address, phase, hint @ ..] = rest else { return no(self) };
                let hints = if *what == "try_wait" { 1 } else { 0 };
                if hint.len() > hints || (has("phase_type::conditional") && !has("parity")) {
                    return no(self);
                }
                let (state, other) = if has("parity") {
                    (None, self.source(phase, Type::U32)?)
                } else {
                    (Some(self.source(phase, Type::B64)?), self.constant(Constant::Bits(0), false))
                };
                let parity = self.bit_of_barrier(space, address, PHASE, state)?;
                let done = self.target(done, Type::Pred)?;
                self.emit(Op::CmpU32, done, parity, other, NONE, Relation::Ne as u32, 0);
                if let Some(report) = report {
                    let report = self.target(report, Type::Pred)?;
                    self.emit(Op::PredConst, report, NONE, NONE, NONE, 0, 0);
                }
                if let Some(value) = value {
                    let (value, zero) = (self.target(value, Type::B8)?, self.constant(Constant::Bits(0), false));
                    self.alu(Op::Mov32, value, &[zero]);
                }
            }
            ("check_layout", [yes, address]) => {
                let number = match rest {
                    ["layout::v0", ..] => 0,
                    ["layout::v1", ..] => 1,
                    _ => return no(self),
                };
                let layout = self.bit_of_barrier(space, address, LAYOUT, None)?;
                let (yes, number) = (self.target(yes, Type::Pred)?, self.constant(Constant::Bits(number), false));
                self.emit(Op::CmpU32, yes, layout, number, NONE, Relation::Eq as u32, 0);
            }
            ("pending_count", [count, state]) => {
                let state = self.source(state, Type::B64)?;
                let (low, cut) = (self.fresh(Type::B32), self.constant(Constant::Bits(COUNT), false));
                self.alu(Op::U32U64, low, &[state]);
                let count = self.target_or_sink(count, Type::B32)?;
                self.alu(Op::And32, count, &[low, cut]);
            }
            _ => return no(self),
        }
        Ok(())
    }

    /// `cp.async.mbarrier.arrive`: the copies before it have been made.  Without `.noinc` the phase waits for this
    /// arrival besides its own, which changes nothing.
    pub(super) fn copies_arrive(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let ["async", "mbarrier", "arrive", rest @ ..] = mods else {
            return Err(self.unsupported(Builder::full("cp", mods)));
        };
        let ([address], true) = (ops, rest.iter().all(|m| matches!(*m, "noinc" | "shared" | "shared::cta" | "b64")))
        else {
            return Err(self.unsupported(Builder::full("cp", mods)));
        };
        if rest.contains(&"noinc") {
            let space = rest.iter().find_map(|m| space_of(m)).unwrap_or(Space::Generic);
            let one = self.count(None)?;
            self.on_barrier(AtomicOp::BarrierArrive, space, address, one)?;
        }
        Ok(())
    }

    /// `cp.async.bulk` between global and shared memory: made at once, and told to the barrier if it names one.
    pub(super) fn copy_bulk(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let ["async", "bulk", way @ ..] = mods else { return Err(self.unsupported(Builder::full("cp", mods))) };
        let (into, out_of) = ((Space::Shared, Space::Global), (Space::Global, Space::Shared));
        let (spaces, tells, rest) = match way {
            ["commit_group"]
            | ["wait_group"]
            | ["wait_group", "read" | "sync_restrict::proxy::async"]
            | ["prefetch", "L2", "global"]
            | ["prefetch", "L2", "global", "L2::cache_hint"] => return Ok(()),
            ["shared::cta" | "shared::cluster", "global", "mbarrier::complete_tx::bytes", rest @ ..] => {
                (into, true, rest)
            }
            ["shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes"] => {
                ((Space::Shared, Space::Shared), true, [].as_slice())
            }
            ["global", "shared::cta", "bulk_group", rest @ ..] => (out_of, false, rest),
            _ => return Err(self.unsupported(Builder::full("cp", mods))),
        };
        // A cache policy comes last.
        let (rest, ops) = match (rest, ops) {
            ([rest @ .., "L2::cache_hint"], [ops @ .., _]) => (rest, ops),
            whole => whole,
        };
        let (mut mask, mut skipped) = (NONE, [NONE; 2]);
        let (to, from, bytes, barrier) = match (tells, rest, ops) {
            (true, [], [to, from, bytes, barrier]) => (to, from, bytes, Some(barrier)),
            (true, ["ignore_oob"], [to, from, bytes, left, right, barrier]) => {
                skipped = [self.source(left, Type::U32)?, self.source(right, Type::U32)?];
                (to, from, bytes, Some(barrier))
            }
            (false, [], [to, from, bytes]) => (to, from, bytes, None),
            (false, ["cp_mask"], [to, from, bytes, wanted]) => {
                let wanted = self.source(wanted, Type::U16)?;
                mask = self.fresh(Type::B32);
                self.alu(Op::Mov32, mask, &[wanted]);
                (to, from, bytes, None)
            }
            (_, [] | ["ignore_oob"] | ["cp_mask"], _) => return Err(self.error("a wrong number of operands")),
            _ => return Err(self.unsupported(Builder::full("cp", mods))),
        };
        let (to, from) = (self.address(to)?, self.address(from)?);
        let length = self.source(bytes, Type::U32)?;
        let copy = Copy { to, from, spaces, size: 16, length, given: NONE, bytes: mask, skipped, reduction: None };
        self.bulk(copy, bytes, barrier)
    }

    /// A copy in bulk, told to the barrier if there is one.
    fn bulk(&mut self, copy: Copy, bytes: &Operand, barrier: Option<&Operand>) -> Result<(), PtxError> {
        let index = self.f.copies.len() as u32;
        self.f.copies.push(copy);
        self.emit(Op::CopyAsync, NONE, NONE, NONE, NONE, index, 0);
        if let Some(barrier) = barrier {
            let bytes = self.count(Some(bytes))?;
            self.on_barrier(AtomicOp::BarrierComplete, Space::Shared, barrier, bytes)?;
        }
        Ok(())
    }

    /// `cp.reduce.async.bulk`: elements of shared memory update those of global memory, or of the block's own shared
    /// memory, which is all that its cluster has.
    pub(super) fn reduce_bulk(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let no = |b: &Builder| Err(b.unsupported(Builder::full("cp", mods)));
        // Each update is an atomic for the whole device, whatever is asked of it.
        let of_order = |m: &&str| matches!(*m, "relaxed" | "cta" | "cluster" | "gpu" | "sys");
        let (order, way): (Vec<&str>, Vec<&str>) = mods.iter().copied().skip(3).partition(of_order);
        let hinted = way.contains(&"L2::cache_hint");
        let way: Vec<&str> = way.into_iter().filter(|m| *m != "L2::cache_hint").collect();
        let (to, tells, what) = match way[..] {
            ["global", "shared::cta", "bulk_group", ref what @ ..] => (Space::Global, false, what),
            ["shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes", ref what @ ..] if !hinted => {
                (Space::Shared, true, what)
            }
            _ => return no(self),
        };
        let (name, preserves, ty) = match *what {
            [name, ty] => (name, false, ty),
            [name, "noftz", ty] => (name, true, ty),
            _ => return no(self),
        };
        let (Some(op), Some(ty)) = (atomic_of(name), Type::parse(ty)) else { return no(self) };
        let global = to == Space::Global;
        let known = match (op, ty) {
            (AtomicOp::Add, Type::U32 | Type::S32 | Type::U64) => !preserves,
            (AtomicOp::Add, Type::F16 | Type::Bf16) => preserves && global,
            (AtomicOp::Add, Type::F32) => global,
            (AtomicOp::Add, Type::F64) => !preserves && global,
            (AtomicOp::Min | AtomicOp::Max, Type::U32 | Type::S32) | (AtomicOp::Inc | AtomicOp::Dec, Type::U32) => {
                !preserves
            }
            (AtomicOp::Min | AtomicOp::Max, Type::U64 | Type::S64 | Type::F16 | Type::Bf16) => !preserves && global,
            (AtomicOp::And | AtomicOp::Or | AtomicOp::Xor, Type::B32) => !preserves,
            (AtomicOp::And | AtomicOp::Or | AtomicOp::Xor, Type::B64) => !preserves && global,
            _ => false,
        };
        let ordered = match order[..] {
            [] | ["relaxed", "cta" | "cluster"] => true,
            ["relaxed", "gpu" | "sys"] => global,
            _ => false,
        };
        if !known || !ordered {
            return no(self);
        }
        let (into, from, bytes, barrier) = match (tells, hinted, ops) {
            (true, _, [into, from, bytes, barrier]) => (into, from, bytes, Some(barrier)),
            (false, false, [into, from, bytes]) | (false, true, [into, from, bytes, _]) => (into, from, bytes, None),
            _ => return Err(self.error("a wrong number of operands")),
        };
        let (into, from) = (self.address(into)?, self.address(from)?);
        let (spaces, length) = ((to, Space::Shared), self.source(bytes, Type::U32)?);
        let (given, skipped) = (NONE, [NONE; 2]);
        let reduction = Some(Reducing { op, ty, flushes: flushes(what) });
        let copy = Copy { to: into, from, spaces, size: 16, length, given, bytes: NONE, skipped, reduction };
        self.bulk(copy, bytes, barrier)
    }

    /// `clusterlaunchcontrol`: a cluster is one block, and the answer is there at once.
    pub(super) fn launch_control(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        match (mods, ops) {
            (["try_cancel", "async", way @ .., "b128"], [address, barrier]) => {
                let space = match way {
                    ["shared::cta", "mbarrier::complete_tx::bytes", rest @ ..] if one_block(rest) => Space::Shared,
                    ["mbarrier::complete_tx::bytes", rest @ ..] if one_block(rest) => Space::Generic,
                    _ => return Err(self.unsupported(Builder::full("clusterlaunchcontrol", mods))),
                };
                let answer = [self.fresh(Type::B64), self.fresh(Type::B64)];
                self.emit(Op::TakeBlock, answer[0], NONE, NONE, NONE, 0, i64::from(answer[1]));
                self.store_long(space, address, answer)?;
                let bytes = self.constant(Constant::Bits(cancelled::BYTES), true);
                self.on_barrier(AtomicOp::BarrierComplete, space, barrier, bytes)?;
            }
            (["query_cancel", "is_canceled", "pred", "b128"], [done, answer]) => {
                let [low, _] = self.long_source(answer)?;
                let (word, zero) = (self.fresh(Type::B32), self.constant(Constant::Bits(0), false));
                self.alu(Op::U32U64, word, &[low]);
                let done = self.target_or_sink(done, Type::Pred)?;
                self.emit(Op::CmpU32, done, word, zero, NONE, Relation::Ne as u32, 0);
            }
            (["query_cancel", "get_first_ctaid", "v4", "b32", "b128"], [Operand::Vector(to), answer])
                if to.len() == 4 =>
            {
                for (to, part) in to.iter().zip(cancelled::PLACE) {
                    self.part_of_answer(to, answer, part)?;
                }
            }
            (["query_cancel", first, "b32", "b128"], [to, answer]) => {
                let axis =
                    ["x", "y", "z"].iter().position(|axis| first.strip_prefix("get_first_ctaid::") == Some(axis));
                let Some(axis) = axis else {
                    return Err(self.unsupported(Builder::full("clusterlaunchcontrol", mods)));
                };
                self.part_of_answer(to, answer, cancelled::PLACE[axis])?;
            }
            _ => return Err(self.unsupported(Builder::full("clusterlaunchcontrol", mods))),
        }
        Ok(())
    }

    /// 32 bits of an answer: the half that they are in, and where in it.
    fn part_of_answer(&mut self, to: &Operand, answer: &Operand, part: (usize, u64)) -> Result<(), PtxError> {
        let half = self.long_source(answer)?[part.0];
        let shift = self.constant(Constant::Bits(part.1), false);
        let to = self.target_or_sink(to, Type::B32)?;
        self.alu(Op::Extract32, to, &[half, shift]);
        Ok(())
    }
}

/// Whether these modifiers name the one block of the cluster, or nothing.
fn one_block(mods: &[&str]) -> bool {
    matches!(mods, [] | ["multicast::cluster::all"])
}
