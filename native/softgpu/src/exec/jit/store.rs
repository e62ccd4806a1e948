//! Stores in compiled code: lanes that all take part and lie side by side in memory that is known to be mapped, several
//! groups of four at a time where the whole warp takes part, else one group after the other.  The first group that is
//! otherwise makes a call for itself and all behind it, so that no lane stores twice: another thread may have written
//! there in between.

use super::emit::{Emitter, ROW, loose};
use super::runtime::Site;
use crate::ir::*;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, Value};

/// Groups of four lanes that are stored at a time if the whole warp takes part.
const GROUPS: usize = 4;

impl Emitter<'_, '_> {
    /// `st`
    pub fn store(&mut self, number: usize) {
        let i = &self.o.function.code[number];
        let m = &self.o.function.memories[i.e as usize];
        self.in_order(m);
        let site = self.site(i, 4 * GROUPS as u32 * m.size);
        let [wide, narrow, header, other, quick, next, learn, slow, done] = [(); 9].map(|()| self.b.create_block());
        for block in [narrow, other, learn, slow] {
            self.b.set_cold_block(block);
        }
        let unknown = self.b.append_block_param(learn, I64);
        let wide_at = self.b.append_block_param(wide, I64);
        let (at, rest) = (self.b.append_block_param(header, I64), self.b.append_block_param(header, I32));
        let start = self.b.ins().iconst(I64, 0);
        let full = self.b.ins().icmp_imm(IntCC::Equal, self.mask, -1);
        self.b.ins().brif(full, wide, &[start.into()], header, &[start.into(), self.mask.into()]);

        self.b.switch_to_block(wide);
        self.beside(m, site, wide_at, GROUPS, narrow, None);
        let further = self.b.ins().iadd_imm(wide_at, 16 * GROUPS as i64);
        let more = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, further, i64::from(ROW));
        self.b.ins().brif(more, wide, &[further.into()], done, &[]);

        self.b.switch_to_block(narrow);
        // All lanes from here on are left.
        self.b.ins().jump(header, &[wide_at.into(), self.mask.into()]);

        self.b.switch_to_block(header);
        let active = self.b.ins().band_imm(rest, 15);
        let full = self.b.ins().icmp_imm(IntCC::Equal, active, 15);
        self.b.ins().brif(full, quick, &[], other, &[]);
        self.b.switch_to_block(other);
        self.b.ins().brif(active, slow, &[], next, &[]);

        self.b.switch_to_block(quick);
        self.beside(m, site, at, 1, slow, Some(learn));
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
        self.put_fixed(m);
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

    /// Writes the store's registers that nobody keeps in memory (see [`super::fixed`]) where the function that is called
    /// reads them: in all lanes, since they mean the same whether or not a lane takes part.
    fn put_fixed(&mut self, m: &Memory) {
        let (row, width) = m.values[0];
        let rows = [(m.address.row, m.address.wide), (row, width == Width::W64)];
        let kept = |row: u32| self.o.plan.fixed.of(row).is_none() || self.o.plan.exposed.contains(&row);
        let rows: Vec<_> = rows.into_iter().filter(|(row, _)| !kept(*row)).collect();
        if rows.is_empty() {
            return;
        }
        let [each, behind] = [(); 2].map(|()| self.b.create_block());
        let at = self.b.append_block_param(each, I64);
        let start = self.b.ins().iconst(I64, 0);
        self.b.ins().jump(each, &[start.into()]);
        self.b.switch_to_block(each);
        let mut body = self.body(at, 1);
        for (row, wide) in rows {
            if wide {
                let v = self.long(&mut body, row);
                self.put_long(&body, row, v);
            } else {
                let v = self.int(&mut body, row);
                self.put_int(&body, row, v);
            }
        }
        let at = self.b.ins().iadd_imm(at, 16);
        let more = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, at, i64::from(ROW));
        self.b.ins().brif(more, each, &[at.into()], behind, &[]);
        self.b.switch_to_block(behind);
    }

    /// Stores so many groups of lanes from the one at `at` on, if they lie side by side.  Where they do not it goes to
    /// `otherwise`, and to `learn` with an address that is not known to be mapped.
    fn beside(&mut self, m: &Memory, site: u32, at: Value, groups: usize, otherwise: Block, learn: Option<Block>) {
        let mut body = self.body(at, groups);
        body.again = Some(otherwise);
        let lane = self.evenly_from(&mut body, &m.address, i64::from(m.size));
        let start = self.b.ins().iadd_imm(lane, m.address.offset);
        let beyond = self.b.ins().band_imm(start, i64::from(m.size - 1));
        let aligned = self.b.ins().icmp_imm(IntCC::Equal, beyond, 0);
        self.or_again(&body, aligned);
        let bytes = 4 * groups as u32 * m.size;
        let known = self.is_known(m.space, site, start, bytes, !m.address.wide && m.address.offset >= 0);
        match learn {
            Some(learn) => {
                let go_on = self.b.create_block();
                self.b.ins().brif(known, go_on, &[], learn, &[start.into()]);
                self.b.switch_to_block(go_on);
            }
            None => self.or_again(&body, known),
        }
        let host = self.host(m.space, start);
        let value = m.values[0].0;
        let mut to = 0;
        for group in 0..groups {
            body.group = group;
            let parts =
                if m.size == 8 { self.long(&mut body, value).to_vec() } else { vec![self.int(&mut body, value)] };
            for v in parts {
                self.b.ins().store(loose(), v, host, to);
                to += 16;
            }
        }
    }
}
