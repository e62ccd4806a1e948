//! Stores in compiled code: lanes that all take part and lie side by side in memory that is known to be mapped, several
//! groups of four at a time where the whole warp takes part, else one group after the other.  The first group that is
//! otherwise makes a call for itself and all behind it, so that no lane stores twice: another thread may have written
//! there in between.

use super::emit::{Emitter, ROW, flags, loose};
use super::recipe::*;
use super::runtime::Site;
use crate::ir::*;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8X16, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value};

/// Groups of four lanes that are stored at a time if the whole warp takes part.
const GROUPS: usize = 4;

impl Emitter<'_, '_> {
    fn unless(&mut self, holds: Value, otherwise: Block, args: &[BlockArg]) {
        let go_on = self.b.create_block();
        self.b.ins().brif(holds, go_on, &[], otherwise, args);
        self.b.switch_to_block(go_on);
    }

    /// `st`
    pub fn store(&mut self, number: usize) {
        let i = &self.o.function.code[number];
        let m = &self.o.function.memories[i.e as usize];
        let site = self.site(i, 4 * GROUPS as u32 * m.size);
        let [wide, header, other, quick, next, learn, slow, done] = [(); 8].map(|()| self.b.create_block());
        for block in [other, learn, slow] {
            self.b.set_cold_block(block);
        }
        let unknown = self.b.append_block_param(learn, I64);
        let wide_at = self.b.append_block_param(wide, I64);
        let (at, rest) = (self.b.append_block_param(header, I64), self.b.append_block_param(header, I32));
        let start = self.b.ins().iconst(I64, 0);
        let full = self.b.ins().icmp_imm(IntCC::Equal, self.mask, -1);
        self.b.ins().brif(full, wide, &[start.into()], header, &[start.into(), self.mask.into()]);

        self.b.switch_to_block(wide);
        // All lanes from here on are left.
        let narrow: [BlockArg; 2] = [wide_at.into(), self.mask.into()];
        self.beside(m, site, wide_at, GROUPS, (header, &narrow), None);
        let further = self.b.ins().iadd_imm(wide_at, 16 * GROUPS as i64);
        let more = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, further, i64::from(ROW));
        self.b.ins().brif(more, wide, &[further.into()], done, &[]);

        self.b.switch_to_block(header);
        let active = self.b.ins().band_imm(rest, 15);
        let full = self.b.ins().icmp_imm(IntCC::Equal, active, 15);
        self.b.ins().brif(full, quick, &[], other, &[]);
        self.b.switch_to_block(other);
        self.b.ins().brif(active, slow, &[], next, &[]);

        self.b.switch_to_block(quick);
        self.beside(m, site, at, 1, (slow, &[]), Some(learn));
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

    /// Stores so many groups of lanes from the one at `at` on, if they lie side by side.  Where they do not it goes to
    /// `otherwise`, and to `learn` with an address that is not known to be mapped.
    fn beside(
        &mut self,
        m: &Memory,
        site: u32,
        at: Value,
        groups: usize,
        (otherwise, args): (Block, &[BlockArg]),
        learn: Option<Block>,
    ) {
        let p32 = self.b.ins().iadd(self.frame, at);
        let twice = self.b.ins().ishl_imm(at, 1);
        let p64 = self.b.ins().iadd(self.frame, twice);
        let (ty, from, count) = if m.address.wide { (I64X2, p64, 2 * groups) } else { (I32X4, p32, groups) };
        let row = m.address.row as i32 * ROW;
        let vectors: Vec<Value> =
            (0..count as i32).map(|k| self.b.ins().load(ty, flags(), from, row + 16 * k)).collect();
        let apart = self.apart(&vectors, i64::from(m.size));
        let apart = self.b.ins().vany_true(apart);
        let near = self.b.ins().icmp_imm(IntCC::Equal, apart, 0);
        self.unless(near, otherwise, args);
        let lane = self.first_address(vectors[0]);
        let start = self.b.ins().iadd_imm(lane, m.address.offset);
        let beyond = self.b.ins().band_imm(start, i64::from(m.size - 1));
        let aligned = self.b.ins().icmp_imm(IntCC::Equal, beyond, 0);
        self.unless(aligned, otherwise, args);
        let bytes = 4 * groups as u32 * m.size;
        let known = self.is_known(m.space, site, start, bytes, !m.address.wide && m.address.offset >= 0);
        match learn {
            Some(learn) => self.unless(known, learn, &[start.into()]),
            None => self.unless(known, otherwise, args),
        }
        let host = self.host(m.space, start);
        let value = m.values[0].0;
        let from = if m.size == 8 { p64 } else { p32 };
        for part in 0..bytes as i32 / 16 {
            let v = match self.o.constants.get(value) {
                Some(v) if m.size == 8 => splat64(&mut self.b, v),
                Some(v) => splat32(&mut self.b, v as u32),
                None => self.b.ins().load(I8X16, flags(), from, value as i32 * ROW + 16 * part),
            };
            self.b.ins().store(loose(), v, host, 16 * part);
        }
    }
}
