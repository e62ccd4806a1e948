//! Arithmetic on two numbers in one register, and on numbers of two widths.

use super::{Builder, Operand};
use crate::error::PtxError;
use crate::float::Arithmetic;
use crate::ir::*;
use crate::types::Type;

impl Builder {
    /// `add`, `min` and `max` of two 16-bit integers.
    pub(super) fn pair_of_integers(&mut self, opcode: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let (signed, relu) = (mods.contains(&"s16x2"), mods.contains(&"relu"));
        let known = mods.iter().all(|m| matches!(*m, "u16x2" | "s16x2" | "relu"));
        let op = match (opcode, signed) {
            _ if !known => return Err(self.unsupported(Builder::full(opcode, mods))),
            ("add", _) if !relu => Op::Add16x2,
            ("min", true) => Op::MinS16x2,
            ("max", true) => Op::MaxS16x2,
            ("min", false) if !relu => Op::MinU16x2,
            ("max", false) if !relu => Op::MaxU16x2,
            _ => return Err(self.unsupported(Builder::full(opcode, mods))),
        };
        self.simple(op, Type::B32, ops, &[Type::B32; 2])?;
        if relu {
            let d = self.target_or_sink(&ops[0], Type::B32)?;
            self.alu(Op::ReluS16x2, d, &[d]);
        }
        Ok(())
    }

    /// `add`, `sub`, `mul` and `fma` of two numbers in single precision.
    pub(super) fn pair_of_floats(&mut self, opcode: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let (what, op, count) = match opcode {
            "add" => (Arithmetic::Add, Op::AddF32, 3),
            "sub" => (Arithmetic::Sub, Op::SubF32, 3),
            "mul" => (Arithmetic::Mul, Op::MulF32, 3),
            "fma" => (Arithmetic::Fma, Op::FmaF32, 4),
            _ => return Err(self.unsupported(Builder::full(opcode, mods))),
        };
        if ops.len() != count || mods.contains(&"sat") || mods.contains(&"relu") {
            return Err(self.unsupported(Builder::full(opcode, mods)));
        }
        let mut sources = Vec::new();
        for operand in &ops[1..] {
            sources.push(self.source(operand, Type::B64)?);
        }
        let mut results = Vec::new();
        for shift in [0, 32] {
            let shift = self.constant(Constant::Bits(shift), false);
            let result = self.fresh(Type::F32);
            let mut half = vec![Operand::Register(result, Type::F32)];
            for source in &sources {
                let row = self.fresh(Type::F32);
                self.alu(Op::Extract32, row, &[*source, shift]);
                half.push(Operand::Register(row, Type::F32));
            }
            self.floating(what, op, Type::F32, mods, &half)?;
            results.push(result);
        }
        let d = self.target_or_sink(&ops[0], Type::B64)?;
        self.alu(Op::Pack32, d, &results);
        Ok(())
    }

    /// A 16-bit float in single precision.
    pub(super) fn widened(&mut self, row: u32, half: Type) -> u32 {
        let wide = self.fresh(Type::F32);
        if half == Type::F16 {
            self.alu(Op::F32F16, wide, &[row]);
        } else {
            let shift = self.constant(Constant::Bits(16), false);
            self.alu(Op::Shl32, wide, &[row, shift]);
        }
        wide
    }

    /// `add.f32.f16` and its like: computed in single precision; all operands but the last are halves.
    pub(super) fn mixed(&mut self, opcode: &str, half: Type, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let (what, op) = match (opcode, ops.len()) {
            ("add", 3) => (Arithmetic::Add, Op::AddF32),
            ("sub", 3) => (Arithmetic::Sub, Op::SubF32),
            ("fma", 4) => (Arithmetic::Fma, Op::FmaF32),
            _ => return Err(self.unsupported(Builder::full(opcode, mods))),
        };
        let mut wide = ops.to_vec();
        for operand in &mut wide[1..ops.len() - 1] {
            let row = self.source(operand, half)?;
            *operand = Operand::Register(self.widened(row, half), Type::F32);
        }
        self.floating(what, op, Type::F32, mods, &wide)
    }

    /// Both halves of a register, each in its own.
    pub(super) fn halves(&mut self, operand: &Operand) -> Result<[u32; 2], PtxError> {
        let row = self.source(operand, Type::B32)?;
        Ok([0, 16].map(|shift| {
            let (half, shift) = (self.fresh(Type::B16), self.constant(Constant::Bits(shift), false));
            self.alu(Op::Extract16, half, &[row, shift]);
            half
        }))
    }

    /// `min` and `max`, of two numbers or three.
    pub(super) fn extreme(&mut self, opcode: &str, ty: Type, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        use Type::*;
        let has = |m: &str| mods.contains(&m);
        let (min, nan, sign) = (opcode == "min", has("NaN"), has("xorsign"));
        let pick = |least: Op, most: Op| if min { least } else { most };
        let op = match (ty, nan) {
            (F32, false) => pick(Op::MinF32, Op::MaxF32),
            (F32, true) => pick(Op::MinNanF32, Op::MaxNanF32),
            (F64, false) => pick(Op::MinF64, Op::MaxF64),
            (F16, false) => pick(Op::MinF16, Op::MaxF16),
            (F16, true) => pick(Op::MinNanF16, Op::MaxNanF16),
            (F16x2, false) => pick(Op::MinF16x2, Op::MaxF16x2),
            (F16x2, true) => pick(Op::MinNanF16x2, Op::MaxNanF16x2),
            (Bf16, false) => pick(Op::MinBf16, Op::MaxBf16),
            (Bf16, true) => pick(Op::MinNanBf16, Op::MaxNanBf16),
            (Bf16x2, false) => pick(Op::MinBf16x2, Op::MaxBf16x2),
            (Bf16x2, true) => pick(Op::MinNanBf16x2, Op::MaxNanBf16x2),
            _ => return Err(self.unsupported(Builder::full(opcode, mods))),
        };
        let three = ops.len() == 4;
        // Magnitudes only: of two numbers with the product of their signs, of three numbers without.
        if has("relu") || has("abs") != (sign || (three && has("abs"))) || (three && (ty != F32 || sign)) {
            return Err(self.unsupported(Builder::full(opcode, mods)));
        }
        if !has("abs") && !three {
            return self.simple(op, ty, ops, &[ty; 2]);
        }
        let [d, sources @ ..] = ops else { return Err(self.error("too few operands")) };
        if sources.len() != if three { 3 } else { 2 } {
            return Err(self.error("expected 3 operands"));
        }
        let (mut rows, mut plain) = (Vec::new(), Vec::new());
        for source in sources {
            let row = self.source(source, ty)?;
            plain.push(row);
            rows.push(row);
            if has("abs") {
                let magnitude = self.fresh(ty);
                let abs = match ty {
                    F32 => Op::AbsF32,
                    F64 => Op::AbsF64,
                    F16 | Bf16 => Op::AbsF16,
                    _ => Op::AbsF16x2,
                };
                self.alu(abs, magnitude, &[row]);
                rows.pop();
                rows.push(magnitude);
            }
        }
        let mut out = rows[0];
        for row in &rows[1..] {
            let next = self.fresh(ty);
            self.alu(op, next, &[out, *row]);
            out = next;
        }
        let d = self.target_or_sink(d, ty)?;
        let signed = match ty {
            _ if !sign => Op::Mov32,
            F32 => Op::XorSignF32,
            F16 | Bf16 => Op::XorSign16,
            F16x2 | Bf16x2 => Op::XorSign16x2,
            _ => return Err(self.unsupported(Builder::full(opcode, mods))),
        };
        self.alu(signed, d, &if sign { vec![out, plain[0], plain[1]] } else { vec![out] });
        Ok(())
    }
}
