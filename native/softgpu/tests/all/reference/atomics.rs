//! Atomics and reductions: on the thread's own memory with every operation, and on words that all threads update, where
//! the order does not matter.

use super::Kind::*;
use super::exact::{BF16, F16, F32, F64, Format, Way};
use super::memory::{Area, address, space};
use super::{Block, EACH, Kind, Maker, OWN, Statement, Text, name, put, spelled};

/// Words that all threads of a block, or of the grid, update.
pub const WORDS: usize = 32;

/// An atomic: its name, its bytes, its registers, and what becomes of the old value with its operands.
type Update = (&'static str, usize, Kind, fn(u64, u64, u64) -> u64);

fn float(format: Format, a: u64, b: u64) -> u64 {
    format.encode(&format.decode(a).plus(&format.decode(b), Way::Nearest), Way::Nearest)
}

/// A sum of single precision in global memory, where numbers below the smallest normal one are zeros.
fn flushing(old: u64, x: u64) -> u64 {
    F32.flushed(float(F32, F32.flushed(old), F32.flushed(x)))
}

fn halves(format: Format, a: u64, b: u64, f: fn(Format, u64, u64) -> u64) -> u64 {
    f(format, a & 0xffff, b & 0xffff) | f(format, a >> 16, b >> 16) << 16
}

fn least(format: Format, a: u64, b: u64) -> u64 {
    format.encode(&format.decode(a).least(&format.decode(b), false), Way::Nearest)
}

fn most(format: Format, a: u64, b: u64) -> u64 {
    format.encode(&format.decode(a).most(&format.decode(b), false), Way::Nearest)
}

const UPDATES: [Update; 35] = [
    ("add.u32", 4, R, |old, x, _| old.wrapping_add(x)),
    ("add.s32", 4, R, |old, x, _| old.wrapping_add(x)),
    ("add.u64", 8, D, |old, x, _| old.wrapping_add(x)),
    ("min.s32", 4, R, |old, x, _| (old as i32).min(x as i32) as u64),
    ("max.s32", 4, R, |old, x, _| (old as i32).max(x as i32) as u64),
    ("min.u32", 4, R, |old, x, _| old.min(x)),
    ("max.u32", 4, R, |old, x, _| old.max(x)),
    ("min.s64", 8, D, |old, x, _| (old as i64).min(x as i64) as u64),
    ("max.s64", 8, D, |old, x, _| (old as i64).max(x as i64) as u64),
    ("min.u64", 8, D, |old, x, _| old.min(x)),
    ("max.u64", 8, D, |old, x, _| old.max(x)),
    ("and.b32", 4, R, |old, x, _| old & x),
    ("or.b32", 4, R, |old, x, _| old | x),
    ("xor.b32", 4, R, |old, x, _| old ^ x),
    ("and.b64", 8, D, |old, x, _| old & x),
    ("or.b64", 8, D, |old, x, _| old | x),
    ("xor.b64", 8, D, |old, x, _| old ^ x),
    ("inc.u32", 4, R, |old, x, _| if old >= x { 0 } else { old + 1 }),
    ("dec.u32", 4, R, |old, x, _| if old == 0 || old > x { x } else { old - 1 }),
    ("add.f32", 4, F, |old, x, _| float(F32, old, x)),
    ("add.noftz.f32", 4, F, |old, x, _| float(F32, old, x)),
    ("add.noftz.f16", 2, H, |old, x, _| float(F16, old, x)),
    ("add.noftz.bf16", 2, H, |old, x, _| float(BF16, old, x)),
    ("add.noftz.f16x2", 4, R, |old, x, _| halves(F16, old, x, float)),
    ("add.noftz.bf16x2", 4, R, |old, x, _| halves(BF16, old, x, float)),
    // From here on there is no reduction of that name.
    ("exch.b32", 4, R, |_, x, _| x),
    ("exch.b64", 8, D, |_, x, _| x),
    ("cas.b32", 4, R, |old, x, y| if old == x { y } else { old }),
    ("cas.b64", 8, D, |old, x, y| if old == x { y } else { old }),
    ("cas.b16", 2, H, |old, x, y| if old == x { y } else { old }),
    // What the words below are updated with.
    ("inc.u32", 4, R, |old, _, _| if old >= 6 { 0 } else { old + 1 }),
    ("dec.u32", 4, R, |old, _, _| if old == 0 || old > 9 { 9 } else { old - 1 }),
    ("add.f32", 4, F, |old, x, _| float(F32, old, x)),
    ("add.f64", 8, E, |old, x, _| float(F64, old, x)),
    ("add.noftz.f16x2", 4, R, |old, x, _| halves(F16, old, x, float)),
];
const REDUCTIONS: usize = 25;
const OWN_UPDATES: usize = 30;

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// An atomic on the thread's own memory: what, the old value's register (nothing: a reduction), the operands, where.
struct Own {
    update: usize,
    old: Option<usize>,
    operands: [usize; 2],
    area: Area,
    generic: bool,
    order: &'static str,
    place: usize,
}

pub fn make_own(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let update = maker.pick(OWN_UPDATES);
    let old = (update >= REDUCTIONS || maker.pick(3) > 0).then(|| maker.register());
    let orders = ["", "", ".relaxed.cta", ".relaxed.gpu", ".acq_rel.sys", ".acquire.cta"];
    let order = if old.is_some() { maker.of(&orders) } else { maker.of(&["", ".relaxed.gpu", ".release.sys"]) };
    Some(Box::new(Own {
        update,
        old,
        operands: [maker.register(), maker.register()],
        area: maker.of(&[Area::Apart, Area::Shared]),
        generic: maker.pick(3) == 0,
        order,
        place: maker.pick(OWN / UPDATES[update].1),
    }))
}

impl Statement for Own {
    fn write(&self, text: &mut Text) {
        let (update, bytes, kind, _) = UPDATES[self.update];
        let base = address(text, self.area, self.generic);
        let access = format!("{}{}.{update}", self.order, space(self.area, self.generic));
        let mut operands = vec![format!("[{base}+{}]", spelled(self.place * bytes)), name(kind, self.operands[0])];
        if update.starts_with("cas") {
            operands.push(name(kind, self.operands[1]));
        }
        match self.old {
            Some(old) => put!(text, "atom{access} {}, {};", name(kind, old), operands.join(", ")),
            None => put!(text, "red{access} {};", operands.join(", ")),
        }
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let (update, bytes, kind, new) = UPDATES[self.update];
        let flushes = update == "add.f32" && self.area == Area::Apart;
        for at in active {
            let lane = &mut block.lanes[*at];
            let [x, y] = self.operands.map(|n| lane.get(kind, n));
            let cell = &mut lane.own[self.area as usize][self.place * bytes..(self.place + 1) * bytes];
            let before = number(cell);
            let after = if flushes { flushing(before, x) } else { new(before, x, y) };
            cell.copy_from_slice(&after.to_le_bytes()[..bytes]);
            if let Some(old) = self.old {
                lane.set(kind, old, before);
            }
        }
    }
}

/// An atomic on a vector of the thread's global memory.
struct Vector {
    update: usize,
    count: usize,
    /// The first registers of the old values (nothing: a reduction) and of the operands.
    old: Option<usize>,
    operand: usize,
    place: usize,
}

/// Atomics of vectors: name up to the vector, the type behind it, bytes, registers, most elements, and the update.
type VectorUpdate = (&'static str, &'static str, usize, Kind, usize, fn(u64, u64) -> u64);

const VECTORS: [VectorUpdate; 10] = [
    ("add", "f32", 4, F, 4, flushing),
    ("add.noftz", "f32", 4, F, 4, |old, x| float(F32, old, x)),
    ("add.noftz", "f16", 2, H, 8, |old, x| float(F16, old, x)),
    ("min.noftz", "f16", 2, H, 8, |old, x| least(F16, old, x)),
    ("max.noftz", "bf16", 2, H, 8, |old, x| most(BF16, old, x)),
    ("add.noftz", "f16x2", 4, R, 4, |old, x| halves(F16, old, x, float)),
    ("min.noftz", "f16x2", 4, R, 4, |old, x| halves(F16, old, x, least)),
    ("max.noftz", "f16x2", 4, R, 4, |old, x| halves(F16, old, x, most)),
    ("min.noftz", "bf16x2", 4, R, 4, |old, x| halves(BF16, old, x, least)),
    ("add.noftz", "bf16x2", 4, R, 4, |old, x| halves(BF16, old, x, float)),
];

pub fn make_vector(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let update = maker.pick(VECTORS.len());
    let (_, _, bytes, _, most, _) = VECTORS[update];
    let counts: Vec<usize> = [2, 4, 8].into_iter().filter(|count| count <= &most).collect();
    let count = maker.of(&counts);
    let old = maker.coin().then(|| maker.register());
    let place = maker.pick(OWN / (bytes * count)) * bytes * count;
    Some(Box::new(Vector { update, count, old, operand: maker.register(), place }))
}

impl Statement for Vector {
    fn write(&self, text: &mut Text) {
        let (update, ty, _, kind, _, _) = VECTORS[self.update];
        let base = address(text, Area::Apart, false);
        let list = |first: usize| {
            let names: Vec<String> = (0..self.count).map(|n| name(kind, (first + n) % EACH)).collect();
            format!("{{{}}}", names.join(", "))
        };
        let rest = format!("[{base}+{}], {}", spelled(self.place), list(self.operand));
        match self.old {
            Some(old) => put!(text, "atom.global.{update}.v{}.{ty} {}, {rest};", self.count, list(old)),
            None => put!(text, "red.global.{update}.v{}.{ty} {rest};", self.count),
        }
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let (_, _, bytes, kind, _, new) = VECTORS[self.update];
        for at in active {
            let lane = &mut block.lanes[*at];
            let operands: Vec<u64> = (0..self.count).map(|n| lane.get(kind, (self.operand + n) % EACH)).collect();
            for (n, x) in operands.into_iter().enumerate() {
                let from = self.place + n * bytes;
                let cell = &mut lane.own[Area::Apart as usize][from..from + bytes];
                let before = number(cell);
                cell.copy_from_slice(&new(before, x).to_le_bytes()[..bytes]);
                if let Some(old) = self.old {
                    lane.set(kind, (old + n) % EACH, before);
                }
            }
        }
    }
}

/// Elements of the thread's shared memory that update those of its global memory, or others of its shared memory, and
/// tell a barrier.
struct Bulk {
    update: usize,
    /// Where they come from and go to, and how many they are, in pieces of 16 bytes.
    from: usize,
    to: usize,
    pieces: usize,
    /// The predicate that says that all have come to shared memory (nothing: to global memory).
    done: Option<usize>,
}

/// Updates in bulk: name, bytes, and what becomes of the old value.
type BulkUpdate = (&'static str, usize, fn(u64, u64) -> u64);

const BULK: [BulkUpdate; 26] = [
    ("add.u32", 4, |old, x| old.wrapping_add(x)),
    ("add.s32", 4, |old, x| old.wrapping_add(x)),
    ("add.u64", 8, |old, x| old.wrapping_add(x)),
    ("min.u32", 4, |old, x| old.min(x)),
    ("max.u32", 4, |old, x| old.max(x)),
    ("min.s32", 4, |old, x| (old as i32).min(x as i32) as u64),
    ("max.s32", 4, |old, x| (old as i32).max(x as i32) as u64),
    ("inc.u32", 4, |old, x| if old >= x { 0 } else { old + 1 }),
    ("dec.u32", 4, |old, x| if old == 0 || old > x { x } else { old - 1 }),
    ("and.b32", 4, |old, x| old & x),
    ("or.b32", 4, |old, x| old | x),
    ("xor.b32", 4, |old, x| old ^ x),
    // From here on only in global memory.
    ("min.u64", 8, |old, x| old.min(x)),
    ("max.u64", 8, |old, x| old.max(x)),
    ("min.s64", 8, |old, x| (old as i64).min(x as i64) as u64),
    ("max.s64", 8, |old, x| (old as i64).max(x as i64) as u64),
    ("and.b64", 8, |old, x| old & x),
    ("or.b64", 8, |old, x| old | x),
    ("xor.b64", 8, |old, x| old ^ x),
    ("add.f32", 4, flushing),
    ("add.noftz.f32", 4, |old, x| float(F32, old, x)),
    ("add.noftz.f16", 2, |old, x| float(F16, old, x)),
    ("add.noftz.bf16", 2, |old, x| float(BF16, old, x)),
    ("min.f16", 2, |old, x| least(F16, old, x)),
    ("max.f16", 2, |old, x| most(F16, old, x)),
    ("min.bf16", 2, |old, x| least(BF16, old, x)),
];
const BULK_SHARED: usize = 12;

pub fn make_bulk(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let all = OWN / 16;
    if maker.pick(3) == 0 {
        let from = maker.pick(all);
        let to = (from + 1 + maker.pick(all - 1)) % all;
        let done = Some(maker.register());
        return Some(Box::new(Bulk { update: maker.pick(BULK_SHARED), from, to, pieces: 1, done }));
    }
    let pieces = 1 + maker.pick(all);
    let [from, to] = [(); 2].map(|()| maker.pick(all + 1 - pieces));
    Some(Box::new(Bulk { update: maker.pick(BULK.len()), from, to, pieces, done: None }))
}

impl Statement for Bulk {
    fn write(&self, text: &mut Text) {
        let (update, ..) = BULK[self.update];
        let (from, to, bytes) = (16 * self.from, 16 * self.to, 16 * self.pieces);
        let Some(done) = self.done else {
            let base = address(text, Area::Apart, false);
            put!(
                text,
                "cp.reduce.async.bulk.global.shared::cta.bulk_group.{update} [{base}+{to}], [%o0+{from}], {bytes};"
            );
            put!(text, "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;");
            return;
        };
        put!(text, "mov.u64 %a6, bars; mad.wide.u32 %a6, %t2, 8, %a6; mbarrier.init.shared.b64 [%a6], 1;");
        put!(text, "mbarrier.arrive.expect_tx.shared.b64 _, [%a6], {bytes};");
        put!(
            text,
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{update} [%o0+{to}], [%o0+{from}], {bytes}, [%a6];"
        );
        put!(text, "mbarrier.try_wait.parity.shared.b64 %p{done}, [%a6], 0; mbarrier.inval.shared.b64 [%a6];");
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let (_, bytes, new) = BULK[self.update];
        let area = if self.done.is_some() { Area::Shared } else { Area::Apart };
        for at in active {
            let lane = &mut block.lanes[*at];
            for k in (0..16 * self.pieces).step_by(bytes) {
                let x = number(&lane.own[Area::Shared as usize][16 * self.from + k..][..bytes]);
                let cell = &mut lane.own[area as usize][16 * self.to + k..][..bytes];
                let after = new(number(cell), x);
                cell.copy_from_slice(&after.to_le_bytes()[..bytes]);
            }
            if let Some(done) = self.done {
                lane.set(P, done, 1);
            }
        }
    }
}

/// A word that all threads update, each word in one way, whatever it was before; so the order does not matter.
struct Common {
    grid: bool,
    generic: bool,
    word: usize,
    operand: usize,
    /// The old value is asked for, and not looked at.
    atom: bool,
}

/// What word `number` is updated with: those of one operand that commute, and of those that count the last.
fn common(number: usize) -> usize {
    const SAME: [usize; 22] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 30, 31, 32, 33, 34];
    SAME[number % SAME.len()]
}

/// What word `number` is before all updates: where the least counts, or what all have, much.
pub fn initial(number: usize) -> u64 {
    let (update, bytes, ..) = UPDATES[common(number)];
    let shrinks = update.starts_with("min") || update.starts_with("and");
    if shrinks { (1 << (8 * bytes - 1)) - 1 } else { 0 }
}

pub fn make_common(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let (grid, generic, word, operand) = (maker.coin(), maker.pick(3) == 0, maker.pick(WORDS), maker.register());
    Some(Box::new(Common { grid, generic, word, operand, atom: maker.coin() }))
}

impl Statement for Common {
    fn write(&self, text: &mut Text) {
        let (update, _, kind, _) = UPDATES[common(self.word)];
        let own = name(kind, self.operand);
        // Sums of small whole numbers are exact, whatever their order.
        let operand = match (update, kind) {
            ("inc.u32", _) => "6".to_string(),
            ("dec.u32", _) => "9".to_string(),
            (_, F | E) => {
                let to = if kind == F { "%x0" } else { "%y0" };
                put!(
                    text,
                    "and.b32 %t6, %r{}, 255; cvt.rn.f{}.u32 {to}, %t6;",
                    self.operand,
                    if kind == F { 32 } else { 64 }
                );
                to.to_string()
            }
            (update, _) if update.ends_with("f16x2") => {
                put!(text, "and.b32 %t6, %r{}, 1; mul.lo.u32 %t6, %t6, 0x3c003c00;", self.operand);
                "%t6".to_string()
            }
            _ => own,
        };
        let base = if self.grid {
            "%o5"
        } else {
            put!(text, "mov.u64 %a6, sums;{}", if self.generic { " cvta.shared.u64 %a6, %a6;" } else { "" });
            "%a6"
        };
        let space = if self.generic {
            ""
        } else if self.grid {
            ".global"
        } else {
            ".shared"
        };
        let at = format!("[{base}+{}]", spelled(8 * self.word));
        if self.atom {
            put!(text, "atom{space}.{update} _, {at}, {operand};");
        } else {
            put!(text, "red{space}.{update} {at}, {operand};");
        }
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let (update, bytes, kind, new) = UPDATES[common(self.word)];
        for at in active {
            let lane = &block.lanes[*at];
            let word = lane.get(R, self.operand);
            let operand = match kind {
                F => u64::from(((word & 255) as f32).to_bits()),
                E => ((word & 255) as f64).to_bits(),
                _ if update.ends_with("f16x2") => (word & 1) * 0x3c00_3c00,
                kind => lane.get(kind, self.operand),
            };
            let words = if self.grid { &mut *block.grid } else { &mut block.sums };
            let mask = u64::MAX >> (64 - 8 * bytes);
            words[self.word] = new(words[self.word], operand, 0) & mask;
        }
    }
}
