//! Stores in compiled code: where all lanes take part and each four lie side by side in memory that is known to be
//! mapped.  All are looked at before the first byte is written; any other store is a call.

use super::emit::{Emitter, ROW, flags, loose};
use super::recipe::*;
use super::runtime::Site;
use crate::ir::*;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8X16, I32X4, I64, I64X2};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, StackSlotData, StackSlotKind, Value};

impl Emitter<'_, '_> {
    fn unless(&mut self, holds: Value, otherwise: Block, args: &[BlockArg]) {
        let go_on = self.b.create_block();
        self.b.ins().brif(holds, go_on, &[], otherwise, args);
        self.b.switch_to_block(go_on);
    }

    /// `st`
    pub fn store(&mut self, at: usize) {
        let function = self.o.function;
        let i = &function.code[at];
        let m = &function.memories[i.e as usize];
        let bytes = 4 * m.size;
        let site = self.site(i, bytes);
        let [header, write, learn, slow, done] = [(); 5].map(|()| self.b.create_block());
        self.b.set_cold_block(learn);
        self.b.set_cold_block(slow);
        let unknown = self.b.append_block_param(learn, I64);
        let places = StackSlotData::new(StackSlotKind::ExplicitSlot, 64, 3);
        let places = self.b.create_sized_stack_slot(places);
        let places = self.b.ins().stack_addr(I64, places, 0);
        let all = self.b.ins().icmp_imm(IntCC::Equal, self.mask, -1);
        self.unless(all, slow, &[]);
        let first = self.b.ins().iconst(I64, 0);
        let (p, number) = (self.b.append_block_param(header, I64), self.b.append_block_param(header, I64));
        self.b.ins().jump(header, &[self.frame.into(), first.into()]);

        self.b.switch_to_block(header);
        let offset = m.address.row as i32 * ROW;
        let step = u64::from(m.size);
        let (lane, beside) = if m.address.wide {
            let v = [0, 16].map(|h| self.b.ins().load(I64X2, flags(), p, offset + h));
            let lane = self.b.ins().extractlane(v[0], 0);
            let splat = self.b.ins().splat(I64X2, lane);
            let parts: Vec<Value> = (0..2u64)
                .map(|h| {
                    let d = self.b.ins().isub(v[h as usize], splat);
                    let steps: Vec<u8> =
                        [2 * h * step, (2 * h + 1) * step].iter().flat_map(|v| v.to_le_bytes()).collect();
                    let steps = vector(&mut self.b, I64X2, &steps);
                    self.b.ins().bxor(d, steps)
                })
                .collect();
            (lane, self.b.ins().bor(parts[0], parts[1]))
        } else {
            let v = self.b.ins().load(I32X4, flags(), p, offset);
            let lane = self.b.ins().extractlane(v, 0);
            let splat = self.b.ins().splat(I32X4, lane);
            let d = self.b.ins().isub(v, splat);
            let steps: Vec<u8> = (0..4).flat_map(|l| (l * step as u32).to_le_bytes()).collect();
            let steps = vector(&mut self.b, I32X4, &steps);
            (self.b.ins().uextend(I64, lane), self.b.ins().bxor(d, steps))
        };
        let apart = self.b.ins().vany_true(beside);
        let near = self.b.ins().icmp_imm(IntCC::Equal, apart, 0);
        self.unless(near, slow, &[]);
        let start = self.b.ins().iadd_imm(lane, m.address.offset);
        let rest = self.b.ins().band_imm(start, i64::from(m.size - 1));
        let aligned = self.b.ins().icmp_imm(IntCC::Equal, rest, 0);
        self.unless(aligned, slow, &[]);
        let known = self.is_known(m.space, site, start, bytes);
        self.unless(known, learn, &[start.into()]);
        let host = if m.space == Space::Shared { self.b.ins().iadd(start, self.shared) } else { start };
        let place = self.b.ins().iadd(places, number);
        self.b.ins().store(flags(), host, place, 0);
        let p = self.b.ins().iadd_imm(p, if m.address.wide { 32 } else { 16 });
        let number = self.b.ins().iadd_imm(number, 8);
        let more = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, number, 64);
        self.b.ins().brif(more, header, &[p.into(), number.into()], write, &[]);

        self.b.switch_to_block(write);
        let value = m.values[0].0 as i32 * ROW;
        for group in 0..8 {
            let host = self.b.ins().load(I64, flags(), places, 8 * group);
            for part in 0..bytes as i32 / 16 {
                let v = match self.o.constants.get(m.values[0].0) {
                    Some(v) if m.size == 8 => splat64(&mut self.b, v),
                    Some(v) => splat32(&mut self.b, v as u32),
                    None => self.b.ins().load(I8X16, flags(), self.frame, value + bytes as i32 * group + 16 * part),
                };
                self.b.ins().store(loose(), v, host, 16 * part);
            }
        }
        self.b.ins().jump(done, &[]);

        self.b.switch_to_block(learn);
        let callee = self.b.ins().iconst(I64, self.o.learn as i64);
        let place = std::ptr::from_ref::<Site>(&self.o.sites[site as usize]) as i64;
        let place = self.b.ins().iconst(I64, place);
        self.b.ins().call_indirect(self.learn, callee, &[self.environment, place, unknown]);
        self.b.ins().jump(slow, &[]);

        self.b.switch_to_block(slow);
        self.call(at);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(done);
    }
}
