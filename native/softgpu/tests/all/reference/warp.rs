//! Instructions in which the lanes of a warp see each other: all that come here, tiles of them, or those with a predicate.

use super::Kind::*;
use super::exact::{F32, Way};
use super::{Block, Maker, Statement, Text, put, warps};

/// Which lanes work together.
#[derive(Clone, Copy)]
enum Members {
    All,
    /// Tiles of so many.
    Tiles(usize),
    /// Those that have the predicate.
    Guarded(usize),
}

/// What they do.
#[derive(Clone, Copy)]
enum Work {
    /// Mode, lane or distance (a register or a number), and the last operand.
    Shuffle(&'static str, Result<usize, u32>, u32),
    /// A value of a lane that is chosen among the members by a register.
    Broadcast(usize),
    /// Mode; the source is a predicate, perhaps negated.
    Vote(&'static str, bool),
    /// All or any; the source has 64 bits or 32.
    Match(bool, bool),
    /// Operation and type.
    Redux(&'static str),
    Elect,
    ActiveMask,
    /// `bar.warp.sync` between a store to shared memory and a load of another lane's.
    Exchange,
}

struct Collective {
    work: Work,
    members: Members,
    d: usize,
    a: usize,
    /// A predicate that is a result too.
    p: Option<usize>,
}

const REDUCTIONS: [&str; 12] = [
    "add.u32",
    "add.s32",
    "min.u32",
    "min.s32",
    "max.u32",
    "max.s32",
    "and.b32",
    "or.b32",
    "xor.b32",
    "min.f32",
    "max.abs.f32",
    "min.NaN.f32",
];

pub fn make(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    if !maker.collective() {
        return None;
    }
    let work = match maker.pick(10) {
        0 | 1 if maker.uniform() => {
            let by = if maker.coin() { Ok(maker.register()) } else { Err(maker.pick(33) as u32) };
            let mode = maker.of(&["up", "down", "bfly", "idx"]);
            // The last lanes of segments of 32, 8 and 16, and a bound in the middle of one.
            let bounds = if mode == "up" { [0, 0x1800, 0x1000, 5] } else { [31, 0x181f, 0x100f, 20] };
            Work::Shuffle(mode, by, maker.of(&bounds))
        }
        2 => Work::Broadcast(maker.register()),
        3 | 4 => Work::Vote(maker.of(&["all", "any", "uni", "ballot"]), maker.coin()),
        5 => Work::Match(maker.coin(), maker.coin()),
        6 | 7 => Work::Redux(maker.of(&REDUCTIONS)),
        8 => maker.of(&[Work::Elect, Work::ActiveMask]),
        _ => Work::Exchange,
    };
    let members = match (work, maker.pick(4)) {
        (Work::Shuffle(..) | Work::ActiveMask, _) => Members::All,
        (_, 0) => Members::Tiles(maker.of(&[2, 4, 8, 16])),
        (_, 1) => Members::Guarded(maker.register()),
        _ => Members::All,
    };
    let p = maker.coin().then(|| maker.register());
    Some(Box::new(Collective { work, members, d: maker.register(), a: maker.register(), p }))
}

impl Statement for Collective {
    fn write(&self, text: &mut Text) {
        let (all, Collective { work, d, a, p, .. }) = (text.members(), self);
        let mut guard = "";
        let mask = match self.members {
            Members::All => all.clone(),
            Members::Tiles(lanes) => {
                let ones = (1u64 << lanes) - 1;
                put!(text, "and.b32 %t9, %t3, {}; shl.b32 %t9, {ones}, %t9; and.b32 %t9, %t9, {all};", 32 - lanes);
                "%t9".to_string()
            }
            Members::Guarded(p) => {
                put!(text, "vote.sync.ballot.b32 %t9, %p{p}, {all}; mov.pred %q1, %p{p};");
                guard = "@%q1 ";
                "%t9".to_string()
            }
        };
        let with = |register: &str| p.map_or(format!("%{register}{d}"), |p| format!("%{register}{d}|%p{p}"));
        match work {
            Work::Shuffle(mode, by, bound) => {
                let by = by.map_or_else(|by| by.to_string(), |by| format!("%r{by}"));
                put!(text, "shfl.sync.{mode}.b32 {}, %r{a}, {by}, {bound}, {mask};", with("r"));
            }
            Work::Broadcast(by) => {
                put!(
                    text,
                    "popc.b32 %t10, {mask}; max.u32 %t10, %t10, 1; rem.u32 %t10, %r{by}, %t10; add.u32 %t10, %t10, 1;"
                );
                put!(
                    text,
                    "fns.b32 %t10, {mask}, 0, %t10;\n{guard}shfl.sync.idx.b32 {}, %r{a}, %t10, 31, {mask};",
                    with("r")
                );
            }
            Work::Vote(mode, negated) => {
                let source = format!("{}%p{a}", if *negated { "!" } else { "" });
                let to = if *mode == "ballot" { format!("b32 %r{d}") } else { format!("pred %p{d}") };
                put!(text, "{guard}vote.sync.{mode}.{to}, {source}, {mask};");
            }
            Work::Match(every, wide) => {
                // Few values, so that some are equal.
                let (source, bits) = if *wide { ("%a5", 64) } else { ("%t10", 32) };
                let from = if *wide { format!("%d{a}") } else { format!("%r{a}") };
                put!(text, "and.b{bits} {source}, {from}, 3;");
                let (mode, to) = if *every { ("all", with("r")) } else { ("any", format!("%r{d}")) };
                put!(text, "{guard}match.{mode}.sync.b{bits} {to}, {source}, {mask};");
            }
            Work::Redux(operation) if operation.ends_with("f32") => {
                put!(text, "{guard}redux.sync.{operation} %f{d}, %f{a}, {mask};");
            }
            Work::Redux(operation) => put!(text, "{guard}redux.sync.{operation} %r{d}, %r{a}, {mask};"),
            // Which lane it is stays open; all members know it, and no other lane has been chosen.
            Work::Elect => {
                put!(text, "{guard}elect.sync %t10|%q2, {mask};\n{guard}vote.sync.ballot.b32 %t11, %q2, {mask};");
                put!(text, "shl.b32 %t10, 1, %t10;\n{guard}xor.b32 %r{d}, %t10, %t11;");
            }
            // Which lanes happen to be here stays open, but for oneself and those that cannot come.
            Work::ActiveMask => {
                put!(text, "activemask.b32 %t10; not.b32 %t11, {mask}; mov.u32 %t12, %lanemask_eq;");
                put!(text, "or.b32 %t11, %t11, %t12; and.b32 %r{d}, %t10, %t11;");
            }
            Work::Exchange => {
                put!(
                    text,
                    "mov.u64 %a7, tile; mad.wide.u32 %a7, %t2, 4, %a7; popc.b32 %t10, {mask}; max.u32 %t10, %t10, 1;"
                );
                put!(text, "rem.u32 %t10, %t3, %t10; add.u32 %t10, %t10, 1;");
                put!(text, "fns.b32 %t10, {mask}, 0, %t10; sub.u32 %t10, %t10, %t3; mad.wide.s32 %a6, %t10, 4, %a7;");
                put!(text, "{guard}st.shared.u32 [%a7], %r{a};\n{guard}bar.warp.sync {mask};");
                put!(text, "{guard}ld.shared.u32 %r{d}, [%a6];\n{guard}bar.warp.sync {mask};");
            }
        }
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        for warp in warps(active) {
            match self.members {
                Members::All => self.work(block, &warp),
                Members::Tiles(lanes) => {
                    for tile in 0..32 / lanes {
                        let members: Vec<usize> = warp.iter().copied().filter(|at| at % 32 / lanes == tile).collect();
                        self.work(block, &members);
                    }
                }
                Members::Guarded(p) => {
                    let members: Vec<usize> = warp.iter().copied().filter(|at| block.lanes[*at].holds(p)).collect();
                    self.work(block, &members);
                }
            }
        }
    }
}

impl Collective {
    /// What they do, when these lanes of one warp are all the members.
    fn work(&self, block: &mut Block, members: &[usize]) {
        if members.is_empty() {
            return;
        }
        let Collective { work, d, a, p, .. } = *self;
        let values = |kind| members.iter().map(|at| block.lanes[*at].get(kind, a)).collect::<Vec<u64>>();
        let (words, longs, singles, predicates) = (values(R), values(D), values(F), values(P));
        let bits = |which: &dyn Fn(usize) -> bool| {
            (0..members.len()).filter(|n| which(*n)).fold(0u64, |set, n| set | 1 << (members[n] % 32))
        };
        for (n, at) in members.iter().enumerate() {
            let own = &block.lanes[*at];
            let chosen = |by: usize| by % members.len();
            let (kind, result, also) = match work {
                Work::Shuffle(mode, by, bound) => {
                    let by = by.map_or_else(u64::from, |by| own.get(R, by)) as i64 & 31;
                    let (lane, segment) = ((at % 32) as i64, i64::from(bound >> 8));
                    let (first, last) = (lane & segment, lane & segment | i64::from(bound & 31) & !segment);
                    let (from, inside) = match mode {
                        "up" => (lane - by, lane - by >= last),
                        "down" => (lane + by, lane + by <= last),
                        "bfly" => (lane ^ by, lane ^ by <= last),
                        _ => (first | by & !segment, first | by & !segment <= last),
                    };
                    (R, words[if inside { from as usize } else { n }], Some(inside))
                }
                Work::Broadcast(by) => (R, words[chosen(own.get(R, by) as usize)], Some(true)),
                Work::Vote(mode, negated) => {
                    let yes = |n: usize| (predicates[n] == 1) != negated;
                    let count = (0..members.len()).filter(|n| yes(*n)).count();
                    match mode {
                        "ballot" => (R, bits(&yes), None),
                        "all" => (P, u64::from(count == members.len()), None),
                        "any" => (P, u64::from(count > 0), None),
                        _ => (P, u64::from(count == 0 || count == members.len()), None),
                    }
                }
                Work::Match(every, wide) => {
                    let values = if wide { &longs } else { &words };
                    let same = bits(&|other| values[other] & 3 == values[n] & 3);
                    let all = same == bits(&|_| true);
                    if every { (R, if all { same } else { 0 }, Some(all)) } else { (R, same, None) }
                }
                Work::Redux(operation) if operation.ends_with("f32") => (F, reduced(operation, &singles), None),
                Work::Redux(operation) => (R, reduced(operation, &words), None),
                Work::Elect => (R, 0, None),
                Work::ActiveMask => (R, 1 << (at % 32), None),
                Work::Exchange => (R, words[chosen(at % 32)], None),
            };
            block.lanes[*at].set(kind, d, result);
            if let (Some(p), Some(also)) = (p, also) {
                block.lanes[*at].set(P, p, u64::from(also));
            }
        }
    }
}

fn reduced(operation: &str, values: &[u64]) -> u64 {
    let signed = |f: fn(i32, i32) -> i32| {
        let values = values.iter().map(|v| *v as u32 as i32);
        values.reduce(f).map_or(0, |v| u64::from(v as u32))
    };
    let plain = |f: fn(u64, u64) -> u64| values.iter().copied().reduce(f).unwrap_or(0);
    let floats = |f: fn(&super::exact::Number, &super::exact::Number) -> super::exact::Number| {
        let magnitudes = operation.contains("abs");
        let numbers = values.iter().map(|v| F32.decode(if magnitudes { v & 0x7fff_ffff } else { *v }));
        numbers.reduce(|a, b| f(&a, &b)).map_or(0, |n| F32.encode(&n, Way::Nearest))
    };
    match operation {
        "add.u32" | "add.s32" => plain(|a, b| (a + b) & 0xffff_ffff),
        "min.u32" => plain(u64::min),
        "max.u32" => plain(u64::max),
        "min.s32" => signed(i32::min),
        "max.s32" => signed(i32::max),
        "and.b32" => plain(|a, b| a & b),
        "or.b32" => plain(|a, b| a | b),
        "xor.b32" => plain(|a, b| a ^ b),
        "min.f32" => floats(|a, b| a.least(b, false)),
        "min.NaN.f32" => floats(|a, b| a.least(b, true)),
        _ => floats(|a, b| a.most(b, false)),
    }
}
