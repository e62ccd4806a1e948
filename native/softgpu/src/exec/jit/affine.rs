//! Registers whose lanes lie evenly apart: the first lane's value and the distance to the next one, followed through
//! arithmetic.  An address that is known so takes one calculation for all lanes, not one for each.
//!
//! What holds only on conditions carries them; they are tested where the register is used, and where one fails the quick
//! body gives up.

use super::emit::{Body, Emitter, ROW, flags, lane_row};
use super::runtime::Environment;
use crate::ir::*;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use std::mem::offset_of;

/// A register of all lanes of a body: `first + step * lane`, of 32 or 64 bits, if all conditions are true.  Of a register
/// of 32 bits the step counts to its lowest 32 bits alone.
#[derive(Clone)]
pub struct Affine {
    pub first: Value,
    pub step: i64,
    conditions: Vec<Value>,
}

impl Affine {
    fn same(first: Value) -> Affine {
        Affine { first, step: 0, conditions: Vec::new() }
    }
}

impl<'a> Emitter<'a, '_> {
    /// The address of a body's first lane, without its offset; begins again unless the others lie `step` apart.
    pub fn evenly_from(&mut self, body: &mut Body, address: &Address, step: i64) -> Value {
        let (frame, row) = (address.frame, address.row);
        let affine = if frame || row == NONE { None } else { self.affine(body, row, address.wide) };
        let first = match affine.filter(|affine| affine.step == step) {
            Some(affine) => {
                self.hold(body, &affine.conditions);
                affine.first
            }
            None => {
                let vectors = self.addresses(body, address);
                let even = self.are_even(&vectors, step);
                self.hold(body, &[even]);
                self.b.ins().extractlane(vectors[0], 0)
            }
        };
        if self.b.func.dfg.value_type(first) == I64 { first } else { self.b.ins().uextend(I64, first) }
    }

    /// Begins again unless these hold; what was found to hold is not tested twice.
    fn hold(&mut self, body: &mut Body, conditions: &[Value]) {
        for condition in conditions {
            if body.held.insert(*condition) {
                self.or_again(body, *condition);
            }
        }
    }

    /// Whether each lane is the one before plus the step.
    fn are_even(&mut self, vectors: &[Value], step: i64) -> Value {
        let apart = self.apart(vectors, step);
        let apart = self.b.ins().vany_true(apart);
        self.b.ins().icmp_imm(IntCC::Equal, apart, 0)
    }

    /// What is known of a register of 32 or (`wide`) 64 bits.
    fn affine(&mut self, body: &mut Body, row: u32, wide: bool) -> Option<Affine> {
        if let Some(value) = self.o.constants.get(row) {
            let (ty, value) = if wide { (I64, value) } else { (I32, value & 0xffff_ffff) };
            return Some(Affine::same(self.b.ins().iconst(ty, value as i64)));
        }
        if let Some(known) = body.affine.get(&row) {
            return known.clone();
        }
        let known = if body.wrote(row) {
            None
        } else if let Some(at) = self.o.plan.fixed.of(row) {
            self.affine_of(body, &self.o.function.code[at])
        } else {
            self.as_guessed(body, row, wide)
        };
        body.affine.insert(row, known.clone());
        known
    }

    /// What is guessed of a register that is read from memory.
    fn as_guessed(&mut self, body: &mut Body, row: u32, wide: bool) -> Option<Affine> {
        let step = self.o.plan.hints.of(row, self.o.constants)?;
        let address = Address { row, wide, offset: 0, frame: false };
        let vectors = self.addresses(body, &address);
        let even = self.are_even(&vectors, step);
        Some(Affine { first: self.b.ins().extractlane(vectors[0], 0), step, conditions: vec![even] })
    }

    /// What is known of an instruction's result before the instruction, in a quick body.
    pub fn affine_result(&mut self, body: &mut Body, i: &Ins) -> Option<Affine> {
        let guessed = i.d != NONE && self.o.plan.hints.of(i.d, self.o.constants).is_some();
        let worth = i.guard == NONE && (guessed || i.op == Op::LoadParam);
        if worth { self.affine_of(body, i) } else { None }
    }

    fn affine_of(&mut self, body: &mut Body, i: &Ins) -> Option<Affine> {
        use Op::*;
        let constant = |e: &Self, row: u32| e.o.constants.get(row);
        match i.op {
            LoadParam => self.affine_param(i),
            Special => self.affine_special(body, i),
            Mov32 => self.affine(body, i.a, false),
            Mov64 => self.affine(body, i.a, true),
            U64U32 | S64S32 => self.affine_wide(body, i.a, i.op == S64S32),
            U32U64 => {
                let a = self.affine(body, i.a, true)?;
                Some(Affine { first: self.b.ins().ireduce(I32, a.first), step: i64::from(a.step as i32), ..a })
            }
            Add32 | Add64 | Sub32 | Sub64 => {
                let wide = matches!(i.op, Add64 | Sub64);
                let (x, y) = (self.affine(body, i.a, wide)?, self.affine(body, i.b, wide)?);
                Some(self.affine_sum(x, y, matches!(i.op, Sub32 | Sub64)))
            }
            Shl32 | Shl64 => {
                let (wide, bits) = (i.op == Shl64, if i.op == Shl64 { 64 } else { 32 });
                let amount = constant(self, i.b).filter(|amount| *amount < bits)? as i64;
                let a = self.affine(body, i.a, wide)?;
                Some(Affine { first: self.b.ins().ishl_imm(a.first, amount), step: a.step << amount, ..a })
            }
            MulLo32 | MadLo32 | MulLo64 | MadLo64 => {
                let wide = matches!(i.op, MulLo64 | MadLo64);
                let (x, y) = (self.affine(body, i.a, wide)?, self.affine(body, i.b, wide)?);
                let of = |v: u64| if wide { v as i64 } else { i64::from(v as i32) };
                let values = [i.a, i.b].map(|row| constant(self, row).map(of));
                let product = self.affine_product(x, y, values)?;
                self.affine_plus(body, product, i, wide)
            }
            MulWideU32 | MulWideS32 | MadWideU32 | MadWideS32 => {
                let signed = matches!(i.op, MulWideS32 | MadWideS32);
                let (x, y) = (self.affine_wide(body, i.a, signed)?, self.affine_wide(body, i.b, signed)?);
                let of = |v: u64| if signed { i64::from(v as i32) } else { i64::from(v as u32) };
                let values = [i.a, i.b].map(|row| constant(self, row).map(of));
                let product = self.affine_product(x, y, values)?;
                self.affine_plus(body, product, i, true)
            }
            _ => None,
        }
    }

    /// The sum of a product and the third operand, if the instruction has one.
    fn affine_plus(&mut self, body: &mut Body, product: Affine, i: &Ins, wide: bool) -> Option<Affine> {
        if i.c == NONE {
            return Some(product);
        }
        let c = self.affine(body, i.c, wide)?;
        Some(self.affine_sum(product, c, false))
    }

    fn affine_sum(&mut self, x: Affine, y: Affine, minus: bool) -> Affine {
        let first = if minus { self.b.ins().isub(x.first, y.first) } else { self.b.ins().iadd(x.first, y.first) };
        let step = if minus { x.step.wrapping_sub(y.step) } else { x.step.wrapping_add(y.step) };
        Affine { first, step, conditions: [x.conditions, y.conditions].concat() }
    }

    /// A product of which one factor is the same in all lanes, and a constant (`values`) if the other is not.
    fn affine_product(&mut self, x: Affine, y: Affine, values: [Option<i64>; 2]) -> Option<Affine> {
        let step = match (x.step, y.step, values) {
            (0, 0, _) => 0,
            (step, 0, [_, Some(factor)]) | (0, step, [Some(factor), _]) => step.wrapping_mul(factor),
            _ => return None,
        };
        let first = self.b.ins().imul(x.first, y.first);
        Some(Affine { first, step, conditions: [x.conditions, y.conditions].concat() })
    }

    /// A register of 32 bits made 64 bits wide, on the condition that its lanes do not wrap.
    fn affine_wide(&mut self, body: &mut Body, row: u32, signed: bool) -> Option<Affine> {
        let mut a = self.affine(body, row, false)?;
        let widen = |e: &mut Self, v| if signed { e.b.ins().sextend(I64, v) } else { e.b.ins().uextend(I64, v) };
        a.first = widen(self, a.first);
        // With a step that fits, the lanes between the first and the last one do not wrap if the last one does not.
        a.step = i64::from(a.step as i32);
        if a.step != 0 {
            let last = self.b.ins().iadd_imm(a.first, a.step.wrapping_mul(4 * body.groups as i64 - 1));
            let cut = self.b.ins().ireduce(I32, last);
            let cut = widen(self, cut);
            a.conditions.push(self.b.ins().icmp(IntCC::Equal, cut, last));
        }
        Some(a)
    }

    fn affine_param(&mut self, i: &Ins) -> Option<Affine> {
        let m = &self.o.function.memories[i.e as usize];
        let ty = match (m.size, m.values.as_slice()) {
            (4, [(_, Width::W32)]) => I32,
            (8, [(_, Width::W64)]) => I64,
            _ => return None,
        };
        let params = self.field(offset_of!(Environment, params));
        let offset = m.address.offset as i32;
        Some(Affine::same(self.b.ins().load(ty, flags().with_readonly(), params, offset)))
    }

    fn affine_special(&mut self, body: &Body, i: &Ins) -> Option<Affine> {
        let lanes = 4 * body.groups as i64;
        let step = i64::from(matches!(i.e, 0 | 12));
        let mut conditions = Vec::new();
        let first = match (i.e, lane_row(i.e)) {
            (0..=2 | 12, Some(row)) => {
                let table = self.field(offset_of!(Environment, lanes));
                let at = self.b.ins().iadd(table, body.at);
                let row = ROW * row as i32;
                let [first, last] = [0, lanes as i32 - 1]
                    .map(|lane| self.b.ins().load(I32, flags().with_readonly(), at, row + 4 * lane));
                // A row of threads that ends in between makes the last one's x smaller.  Its y may come back to the first
                // one's, but not if a row has as many threads as there are lanes; its z does not come back.
                let right = self.b.ins().iadd_imm(first, step * (lanes - 1));
                conditions.push(self.b.ins().icmp(IntCC::Equal, last, right));
                if i.e == 1 {
                    let width = self.uniform(3);
                    let most = IntCC::UnsignedGreaterThanOrEqual;
                    conditions.push(self.b.ins().icmp_imm(most, width, lanes));
                }
                first
            }
            (3..=11, _) => self.uniform(i.e),
            _ => return None,
        };
        let first = match i.c {
            width if width == Width::W32 as u32 => first,
            width if width == Width::W64 as u32 => self.b.ins().uextend(I64, first),
            _ => return None,
        };
        Some(Affine { first, step, conditions })
    }

    /// A special register that all lanes share.
    pub fn uniform(&mut self, number: u32) -> Value {
        let table = self.field(offset_of!(Environment, uniform));
        self.b.ins().load(I32, flags().with_readonly(), table, 4 * number as i32)
    }
}
