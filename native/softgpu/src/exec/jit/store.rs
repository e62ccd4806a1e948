//! Stores in compiled code: groups of four lanes that all take part and lie side by side in memory that is known to be
//! mapped.  The first group that is otherwise makes a call for itself and all behind it, so that no lane stores twice:
//! another thread may have written there in between.

use super::emit::{Emitter, ROW, flags, loose};
use super::recipe::*;
use super::runtime::Site;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8X16, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value};

impl Emitter<'_, '_> {
    fn unless(&mut self, holds: Value, otherwise: Block, args: &[BlockArg]) {
        let go_on = self.b.create_block();
        self.b.ins().brif(holds, go_on, &[], otherwise, args);
        self.b.switch_to_block(go_on);
    }

    /// `st`
    pub fn store(&mut self, number: usize) {
        let function = self.o.function;
        let i = &function.code[number];
        let m = &function.memories[i.e as usize];
        let bytes = 4 * m.size;
        let site = self.site(i, bytes);
        let [header, other, quick, next, learn, slow, done] = [(); 7].map(|()| self.b.create_block());
        for block in [other, learn, slow] {
            self.b.set_cold_block(block);
        }
        let unknown = self.b.append_block_param(learn, I64);
        let (at, rest) = (self.b.append_block_param(header, I64), self.b.append_block_param(header, I32));
        let start = self.b.ins().iconst(I64, 0);
        self.b.ins().jump(header, &[start.into(), self.mask.into()]);

        self.b.switch_to_block(header);
        let active = self.b.ins().band_imm(rest, 15);
        let full = self.b.ins().icmp_imm(IntCC::Equal, active, 15);
        self.b.ins().brif(full, quick, &[], other, &[]);
        self.b.switch_to_block(other);
        self.b.ins().brif(active, slow, &[], next, &[]);

        self.b.switch_to_block(quick);
        let p32 = self.b.ins().iadd(self.frame, at);
        let twice = self.b.ins().ishl_imm(at, 1);
        let p64 = self.b.ins().iadd(self.frame, twice);
        let offset = m.address.row as i32 * ROW;
        let step = u64::from(m.size);
        let (lane, beside) = if m.address.wide {
            let v = [0, 16].map(|h| self.b.ins().load(I64X2, flags(), p64, offset + h));
            let lane = self.b.ins().extractlane(v[0], 0);
            let splat = first_of_pair(&mut self.b, v[0]);
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
            let v = self.b.ins().load(I32X4, flags(), p32, offset);
            let lane = self.b.ins().extractlane(v, 0);
            let splat = shuffle(&mut self.b, v, v, [0; 4]);
            let d = self.b.ins().isub(v, splat);
            let steps: Vec<u8> = (0..4).flat_map(|l| (l * step as u32).to_le_bytes()).collect();
            let steps = vector(&mut self.b, I32X4, &steps);
            (self.b.ins().uextend(I64, lane), self.b.ins().bxor(d, steps))
        };
        let apart = self.b.ins().vany_true(beside);
        let near = self.b.ins().icmp_imm(IntCC::Equal, apart, 0);
        self.unless(near, slow, &[]);
        let start = self.b.ins().iadd_imm(lane, m.address.offset);
        let beyond = self.b.ins().band_imm(start, i64::from(m.size - 1));
        let aligned = self.b.ins().icmp_imm(IntCC::Equal, beyond, 0);
        self.unless(aligned, slow, &[]);
        let known = self.is_known(m.space, site, start, bytes, !m.address.wide && m.address.offset >= 0);
        self.unless(known, learn, &[start.into()]);
        let host = self.host(m.space, start);
        let value = m.values[0].0 as i32 * ROW;
        for part in 0..bytes as i32 / 16 {
            let v = match self.o.constants.get(m.values[0].0) {
                Some(v) if m.size == 8 => splat64(&mut self.b, v),
                Some(v) => splat32(&mut self.b, v as u32),
                None => self.b.ins().load(I8X16, flags(), if m.size == 8 { p64 } else { p32 }, value + 16 * part),
            };
            self.b.ins().store(loose(), v, host, 16 * part);
        }
        self.b.ins().jump(next, &[]);

        self.b.switch_to_block(next);
        let further = self.b.ins().iadd_imm(at, 16);
        let rest = self.b.ins().ushr_imm(rest, 4);
        let more = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, further, i64::from(ROW));
        self.b.ins().brif(more, header, &[further.into(), rest.into()], done, &[]);

        self.b.switch_to_block(learn);
        let callee = self.b.ins().iconst(I64, self.o.learn as i64);
        let place = std::ptr::from_ref::<Site>(&self.o.sites[site as usize]) as i64;
        let place = self.b.ins().iconst(I64, place);
        self.b.ins().call_indirect(self.learn, callee, &[self.environment, place, unknown]);
        self.b.ins().jump(slow, &[]);

        self.b.switch_to_block(slow);
        // The lanes that have not stored.
        let first = self.b.ins().ushr_imm(at, 2);
        let first = self.b.ins().ireduce(I32, first);
        let all = self.b.ins().iconst(I32, -1);
        let left = self.b.ins().ishl(all, first);
        let left = self.b.ins().band(self.mask, left);
        self.call(number, left);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(done);
    }
}
