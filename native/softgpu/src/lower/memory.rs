//! Loads, stores, atomics and address conversions.

use super::{Builder, Operand, Variable, width_of};
use crate::error::PtxError;
use crate::ir::*;
use crate::types::Type;

struct Access {
    space: Space,
    ty: Type,
    count: usize,
    strong: bool,
    /// A vector that others may not see half of: tiles of scans with look-back are told so.
    whole: bool,
}

pub(super) fn space_of(name: &str) -> Option<Space> {
    Some(match name {
        "global" => Space::Global,
        "const" => Space::Const,
        // A cluster is one block.
        "shared" | "shared::cta" | "shared::cluster" => Space::Shared,
        "local" => Space::Local,
        "param" | "param::entry" | "param::func" => Space::Param,
        _ => return None,
    })
}

/// The operation of an atomic.
pub(super) fn atomic_of(name: &str) -> Option<AtomicOp> {
    Some(match name {
        "add" => AtomicOp::Add,
        "min" => AtomicOp::Min,
        "max" => AtomicOp::Max,
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        "xor" => AtomicOp::Xor,
        "exch" => AtomicOp::Exch,
        "cas" => AtomicOp::Cas,
        "inc" => AtomicOp::Inc,
        "dec" => AtomicOp::Dec,
        _ => return None,
    })
}

/// Whether an update of global memory takes and gives numbers below the smallest normal one as zeros: sums of single
/// precision do.
pub(super) fn flushes(mods: &[&str]) -> bool {
    mods.contains(&"add") && mods.contains(&"f32") && !mods.contains(&"noftz")
}

impl Builder {
    fn access(&self, name: &str, mods: &[&str]) -> Result<Access, PtxError> {
        let mut access = Access { space: Space::Generic, ty: Type::B32, count: 1, strong: false, whole: false };
        let mut typed = false;
        for m in mods {
            if let Some(space) = space_of(m) {
                access.space = space;
            } else if let Some(ty) = Type::parse(m) {
                access.ty = ty;
                typed = true;
            } else {
                match *m {
                    "v2" => access.count = 2,
                    "v4" => access.count = 4,
                    "v8" => access.count = 8,
                    // Two halves.
                    "b128" => (access.ty, access.count, typed) = (Type::B64, 2, true),
                    "volatile" | "relaxed" | "acquire" | "release" | "mmio" => access.strong = true,
                    // Every access goes to memory at once, so that these ask for nothing more.
                    "weak" | "cta" | "gpu" | "sys" | "cluster" | "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt"
                    | "nc" => {}
                    m if m.starts_with("L1::") || m.starts_with("L2::") || m.starts_with("level::") => {}
                    _ => return Err(self.unsupported(Builder::full(name, mods))),
                }
            }
        }
        if !typed || access.ty == Type::Pred {
            return Err(self.error("a memory access without a type"));
        }
        access.whole = access.strong && access.count > 1;
        if access.count as u32 * access.ty.size() > 32 || (access.count == 8 && access.ty.size() != 4) {
            return Err(self.unsupported(Builder::full(name, mods)));
        }
        Ok(access)
    }

    fn elements(&mut self, operand: &Operand, access: &Access, write: bool) -> Result<Vec<(u32, Width)>, PtxError> {
        let items = match operand {
            Operand::Vector(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        if items.len() != access.count {
            return Err(self.error("a vector of another length than the instruction's"));
        }
        let mut out = Vec::new();
        for item in items {
            out.push(match item {
                Operand::Register(_, Type::Pred) => return Err(self.error("a predicate in memory")),
                Operand::Register(row, ty) if ty.size() >= access.ty.size() => (*row, width_of(*ty)),
                Operand::Sink if !write => (NONE, width_of(access.ty)),
                Operand::Register(..) => return Err(self.error("a register smaller than the access")),
                other if write => (self.source(other, access.ty)?, width_of(access.ty)),
                _ => return Err(self.error("expected a register to write to")),
            });
        }
        Ok(out)
    }

    /// `ld`, `ldu`
    pub(super) fn load(&mut self, name: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let access = self.access(name, mods)?;
        let [d, a, ..] = ops else { return Err(self.error("too few operands")) };
        let values = self.elements(d, &access, false)?;
        if access.whole {
            return self.whole(false, access, values, a);
        }
        let (size, signed) = (access.ty.size(), access.ty.signed());
        if let (Space::Param, Operand::Address(base, offset)) = (access.space, a)
            && let Operand::Symbol(Variable::KernelParam(at), _) = &**base
        {
            let offset = i64::from(*at).saturating_add(*offset);
            let end = offset.saturating_add(i64::from(size) * values.len() as i64);
            let whole = self.f.params.last().map_or(0, |p| i64::from(p.offset) + i64::from(p.size));
            if offset < 0 || end > whole {
                return Err(self.error(format!("a load of parameter bytes {offset} to {end}, where there are {whole}")));
            }
            let address = Address { row: NONE, wide: true, offset, frame: false };
            let index = self.f.memories.len() as u32;
            self.f.memories.push(Memory { space: Space::Param, size, signed, strong: false, values, address });
            self.emit(Op::LoadParam, NONE, NONE, NONE, NONE, index, 0);
            return Ok(());
        }
        self.memory(Op::Load, access, values, a)
    }

    /// `st`
    pub(super) fn store(&mut self, name: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let access = self.access(name, mods)?;
        let [a, v, ..] = ops else { return Err(self.error("too few operands")) };
        let values = self.elements(v, &access, true)?;
        if access.whole {
            return self.whole(true, access, values, a);
        }
        self.memory(Op::Store, access, values, a)
    }

    fn memory(&mut self, op: Op, access: Access, values: Vec<(u32, Width)>, a: &Operand) -> Result<(), PtxError> {
        let address = self.address(a)?;
        let space = match access.space {
            _ if address.frame => Space::Local,
            Space::Param => Space::Generic,
            space => space,
        };
        let index = self.f.memories.len() as u32;
        let (size, signed, strong) = (access.ty.size(), access.ty.signed(), access.strong);
        self.f.memories.push(Memory { space, size, signed, strong, values, address });
        self.emit(op, NONE, NONE, NONE, NONE, index, 0);
        Ok(())
    }

    /// A vector that others may not see half of: as one number of 64 bits, or as two that are accessed at once.
    fn whole(&mut self, store: bool, access: Access, values: Vec<(u32, Width)>, a: &Operand) -> Result<(), PtxError> {
        let op = if store { Op::Store } else { Op::Load };
        let words = access.ty.size() == 4 && values.iter().all(|(_, width)| *width == Width::W32);
        let pairs: Vec<u32> = match (values.as_slice(), access.ty.size()) {
            ([(low, _), (high, _)], 8) => vec![*low, *high],
            ([_, _] | [_, _, _, _], 4) if words => values.chunks(2).map(|_| self.fresh(Type::B64)).collect(),
            _ => return self.memory(op, access, values, a),
        };
        if store && words {
            for (pair, words) in pairs.iter().zip(values.chunks(2)) {
                self.alu(Op::Pack32, *pair, &[words[0].0, words[1].0]);
            }
        }
        match pairs[..] {
            [low, high] => {
                let long = if store { LongOp::Store } else { LongOp::Load };
                let (old, operand) = if store { ([NONE; 2], [low, high]) } else { ([low, high], [NONE; 2]) };
                let address = self.address(a)?;
                self.long(Long { op: long, space: access.space, address, old, operand, swap: [NONE; 2] });
            }
            _ => {
                let one = Access { ty: Type::B64, count: 1, ..access };
                self.memory(op, one, vec![(pairs[0], Width::W64)], a)?;
            }
        }
        if !store && words {
            for (k, (row, _)) in values.iter().enumerate().filter(|(_, (row, _))| *row != NONE) {
                let shift = self.constant(Constant::Bits(32 * (k as u64 % 2)), false);
                self.alu(Op::Extract32, *row, &[pairs[k / 2], shift]);
            }
        }
        Ok(())
    }

    fn long(&mut self, long: Long) {
        let space = if long.address.frame { Space::Local } else { long.space };
        let index = self.f.longs.len() as u32;
        self.f.longs.push(Long { space, ..long });
        self.emit(Op::Long, NONE, NONE, NONE, NONE, index, 0);
    }

    fn long_halves<'o>(&self, operand: &'o Operand) -> Result<[&'o Operand; 2], PtxError> {
        match operand {
            Operand::Vector(halves) if halves.len() == 2 => Ok([&halves[0], &halves[1]]),
            _ => Err(self.error("expected a register of 128 bits")),
        }
    }

    /// The rows of a source of 128 bits.
    pub(super) fn long_source(&mut self, operand: &Operand) -> Result<[u32; 2], PtxError> {
        let [low, high] = self.long_halves(operand)?;
        Ok([self.source(low, Type::B64)?, self.source(high, Type::B64)?])
    }

    /// Stores 16 bytes that others see whole.
    pub(super) fn store_long(&mut self, space: Space, to: &Operand, halves: [u32; 2]) -> Result<(), PtxError> {
        let address = self.address(to)?;
        self.long(Long { op: LongOp::Store, space, address, old: [NONE; 2], operand: halves, swap: [NONE; 2] });
        Ok(())
    }

    /// `atom.exch.b128`, `atom.cas.b128`
    fn long_atomic(&mut self, op: LongOp, space: Space, ops: &[Operand]) -> Result<(), PtxError> {
        let [d, a, operands @ ..] = ops else { return Err(self.error("too few operands")) };
        let address = self.address(a)?;
        let mut long = Long { op, space, address, old: [NONE; 2], operand: [NONE; 2], swap: [NONE; 2] };
        if !matches!(d, Operand::Sink) {
            let [low, high] = self.long_halves(d)?;
            long.old = [self.target_or_sink(low, Type::B64)?, self.target_or_sink(high, Type::B64)?];
        }
        for (operand, rows) in operands.iter().zip([&mut long.operand, &mut long.swap]) {
            *rows = self.long_source(operand)?;
        }
        self.long(long);
        Ok(())
    }

    /// `atom`, `red`
    pub(super) fn atomic(&mut self, name: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let (mut space, mut op, mut ty, mut count, mut long) = (Space::Generic, None, None, 1, false);
        let flushes = flushes(mods);
        for m in mods {
            if let Some(s) = space_of(m) {
                space = s;
                continue;
            }
            if let Some(t) = Type::parse(m) {
                ty = Some(t);
                continue;
            }
            match *m {
                name if atomic_of(name).is_some() => op = atomic_of(name),
                "v2" => count = 2,
                "v4" => count = 4,
                "v8" => count = 8,
                "b128" => long = true,
                "relaxed" | "acquire" | "release" | "acq_rel" | "cta" | "gpu" | "sys" | "cluster" | "noftz" => {}
                m if m.starts_with("L2::") => {}
                _ => return Err(self.unsupported(Builder::full(name, mods))),
            }
        }
        if long {
            return match (name, op, ops) {
                ("atom", Some(AtomicOp::Exch), [_, _, _]) => self.long_atomic(LongOp::Exch, space, ops),
                ("atom", Some(AtomicOp::Cas), [_, _, _, _]) => self.long_atomic(LongOp::Cas, space, ops),
                _ => Err(self.unsupported(Builder::full(name, mods))),
            };
        }
        let (Some(op), Some(ty)) = (op, ty) else { return Err(self.error("an atomic without operation or type")) };
        let half = matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2);
        let float_ok = match op {
            AtomicOp::Add | AtomicOp::Exch => true,
            // Of halves only in vectors.
            AtomicOp::Min | AtomicOp::Max => !half || count > 1,
            _ => false,
        };
        if matches!(ty, Type::Pred | Type::B8 | Type::U8 | Type::S8) || (ty.float() && !float_ok) {
            return Err(self.unsupported(Builder::full(name, mods)));
        }
        if count > 1 {
            // The elements of a vector are atomic each by itself.
            let known = match ty {
                Type::F32 => op == AtomicOp::Add,
                _ => half && matches!(op, AtomicOp::Add | AtomicOp::Min | AtomicOp::Max),
            };
            if !known || count as u32 * ty.size() > 16 || !matches!(space, Space::Global | Space::Generic) {
                return Err(self.unsupported(Builder::full(name, mods)));
            }
            return self.vector_atomic((name, op, count), space, (ty, flushes), ops);
        }
        let (old, ops) = match (name, ops) {
            ("atom", [Operand::Sink, rest @ ..]) => (NONE, rest),
            ("atom", [d, rest @ ..]) => (self.target(d, ty)?, rest),
            (_, rest) => (NONE, rest),
        };
        let [a, x, rest @ ..] = ops else { return Err(self.error("too few operands")) };
        let operand = self.source(x, ty)?;
        let swap = match (op, rest) {
            (AtomicOp::Cas, [y, ..]) => self.source(y, ty)?,
            (AtomicOp::Cas, []) => return Err(self.error("too few operands")),
            _ => NONE,
        };
        let address = self.address(a)?;
        if address.frame || matches!(space, Space::Local | Space::Param | Space::Const) {
            return Err(self.unsupported("an atomic on local memory"));
        }
        let index = self.f.atomics.len() as u32;
        self.f.atomics.push(Atomic { space, op, ty, flushes, address, align: ty.size(), old, operand, swap });
        self.emit(Op::Atomic, NONE, NONE, NONE, NONE, index, 0);
        Ok(())
    }

    /// `atom` and `red` of a vector: one atomic for each element.
    fn vector_atomic(
        &mut self,
        (name, op, count): (&str, AtomicOp, usize),
        space: Space,
        (ty, flushes): (Type, bool),
        ops: &[Operand],
    ) -> Result<(), PtxError> {
        let (old, ops) = match (name, ops) {
            ("atom", [Operand::Vector(old), rest @ ..]) => (old.as_slice(), rest),
            ("red", rest) => (&[][..], rest),
            _ => return Err(self.error("expected a vector to write to")),
        };
        let [a, Operand::Vector(values), ..] = ops else { return Err(self.error("expected an address and a vector")) };
        if values.len() != count || (name == "atom" && old.len() != count) {
            return Err(self.error("a vector of another length than the instruction's"));
        }
        let address = self.address(a)?;
        if address.frame {
            return Err(self.unsupported("an atomic on local memory"));
        }
        let mut operands = Vec::new();
        for value in values {
            let mut operand = self.source(value, ty)?;
            if !old.is_empty() {
                // An old value may go where another element's operand is.
                let kept = self.fresh(ty);
                self.alu(Op::Mov32, kept, &[operand]);
                operand = kept;
            }
            operands.push(operand);
        }
        for (k, operand) in operands.into_iter().enumerate() {
            let old = match old.get(k) {
                None | Some(Operand::Sink) => NONE,
                Some(d) => self.target(d, ty)?,
            };
            let align = if k == 0 { ty.size() * count as u32 } else { ty.size() };
            let address = Address { offset: address.offset + i64::from(ty.size()) * k as i64, ..address };
            let index = self.f.atomics.len() as u32;
            self.f.atomics.push(Atomic { space, op, ty, flushes, address, align, old, operand, swap: NONE });
            self.emit(Op::Atomic, NONE, NONE, NONE, NONE, index, 0);
        }
        Ok(())
    }

    /// `cvta`
    pub(super) fn cvta(&mut self, name: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let to = mods.contains(&"to");
        let space = mods.iter().find_map(|m| space_of(m)).ok_or_else(|| self.error("cvta without a state space"))?;
        let [d, a] = ops else { return Err(self.error("cvta takes two operands")) };
        if !mods.contains(&"u64") {
            return Err(self.unsupported(Builder::full(name, mods)));
        }
        let d = self.target(d, Type::U64)?;
        let a = match a {
            Operand::Symbol(Variable::FrameParam(..), _) if space == Space::Param => {
                let row = self.source(a, Type::U64)?;
                self.alu(Op::Mov64, d, &[row]);
                return Ok(());
            }
            other => self.source(other, Type::U64)?,
        };
        let window = match space {
            Space::Shared => SHARED_WINDOW,
            Space::Local => LOCAL_WINDOW,
            // Global, constant and parameter addresses are generic already.
            _ => {
                self.alu(Op::Mov64, d, &[a]);
                return Ok(());
            }
        };
        let window = self.constant(Constant::Bits(window), true);
        self.alu(if to { Op::Sub64 } else { Op::Add64 }, d, &[a, window]);
        Ok(())
    }

    /// `alloca`, `stacksave`, `stackrestore`
    pub(super) fn stack(&mut self, name: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let ty = match mods {
            ["u32" | "b32" | "s32"] => Type::U32,
            ["u64" | "b64" | "s64"] => Type::U64,
            _ => return Err(self.unsupported(Builder::full(name, mods))),
        };
        if self.f.stack.is_none() {
            self.f.stack = Some(self.fresh(Type::B32));
        }
        let wide = i64::from(ty.wide());
        match (name, ops) {
            ("stacksave", [d]) => {
                let d = self.target(d, ty)?;
                self.emit(Op::StackSave, d, NONE, NONE, NONE, 0, wide);
            }
            ("stackrestore", [a]) => {
                let a = self.source(a, ty)?;
                self.emit(Op::StackRestore, NONE, a, NONE, NONE, 0, wide);
            }
            ("alloca", [d, size, rest @ ..]) => {
                let align = match rest {
                    [] => 8,
                    [Operand::Int(align)] if align.is_power_of_two() && *align <= 1 << 23 => *align as u32,
                    _ => return Err(self.error("alloca's alignment is a power of two up to 2^23")),
                };
                let (d, size) = (self.target(d, ty)?, self.source(size, ty)?);
                self.emit(Op::Alloca, d, size, NONE, NONE, align, wide);
            }
            _ => return Err(self.error(format!("too few or too many operands for {name}"))),
        }
        Ok(())
    }

    /// `mapa` and `getctarank`: shared memory of the cluster is that of its one block, whose rank is 0.
    pub(super) fn in_cluster(&mut self, name: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let ty = match mods.last() {
            Some(&"u32") => Type::U32,
            Some(&"u64") => Type::U64,
            _ => return Err(self.unsupported(Builder::full(name, mods))),
        };
        match (name, ops) {
            ("mapa", [d, a, rank]) => {
                self.source(rank, Type::U32)?;
                let mov = if ty.wide() { Op::Mov64 } else { Op::Mov32 };
                self.simple(mov, ty, &[d.clone(), a.clone()], &[ty])
            }
            ("getctarank", [d, a]) => {
                self.source(a, ty)?;
                self.simple(Op::Mov32, Type::U32, &[d.clone(), Operand::Int(0)], &[Type::U32])
            }
            _ => Err(self.error(format!("too few or too many operands for {name}"))),
        }
    }

    /// `isspacep`
    pub(super) fn isspacep(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let space =
            mods.iter().find_map(|m| space_of(m)).ok_or_else(|| self.unsupported(Builder::full("isspacep", mods)))?;
        let [d, a] = ops else { return Err(self.error("isspacep takes two operands")) };
        let d = self.target(d, Type::Pred)?;
        let a = self.source(a, Type::U64)?;
        self.emit(Op::IsSpace, d, a, NONE, NONE, space as u32, 0);
        Ok(())
    }
}
