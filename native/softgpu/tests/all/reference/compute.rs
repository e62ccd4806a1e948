//! Statements that compute registers from registers.

use super::Kind::*;
use super::forms::{FORMS, From};
use super::integers::{INTS, Int};
use super::{Block, EACH, Kind, Lane, Maker, Statement, Text, name, put};

/// A source: a register, or a constant as its kind writes it.
enum Source {
    Register(Kind, usize),
    Single(u64),
    Double(u64),
    Number(u64),
}

impl Source {
    fn text(&self) -> String {
        match self {
            Source::Register(kind, n) => name(*kind, *n),
            Source::Single(bits) => format!("0f{bits:08X}"),
            Source::Double(bits) => format!("0d{bits:016X}"),
            Source::Number(v) => v.to_string(),
        }
    }

    fn value(&self, lane: &Lane) -> u64 {
        match self {
            Source::Register(kind, n) => lane.get(*kind, *n),
            Source::Single(v) | Source::Double(v) | Source::Number(v) => *v,
        }
    }
}

/// A form with its results and sources, where the guard holds.
struct Compute {
    form: usize,
    results: [usize; 2],
    sources: Vec<Source>,
    guard: Option<(usize, bool)>,
}

const NUMBERS: [u64; 10] = [0, 1, 2, 5, 16, 31, 32, 33, 255, 0x7fff];
const SINGLES: [u64; 8] = [0, 0x8000_0000, 0x3f80_0000, 0x7f80_0000, 0x7fff_ffff, 1, 0x4b00_0001, 0xc2c8_0000];

pub fn make(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let form = maker.pick(FORMS.len());
    let mut sources = Vec::new();
    for from in &FORMS[form].from {
        let constant = FORMS[form].constants && maker.pick(4) == 0;
        sources.push(match from {
            From::Upto(most) => Source::Number(maker.pick(*most as usize + 1) as u64),
            From::Register(F) if constant => Source::Single(maker.of(&SINGLES)),
            From::Register(E) if constant => {
                Source::Double(f64::from(f32::from_bits(maker.of(&SINGLES) as u32)).to_bits())
            }
            From::Register(H | R | D) if constant => Source::Number(maker.of(&NUMBERS)),
            From::Register(kind) => Source::Register(*kind, maker.register()),
        });
    }
    let first = maker.register();
    let results = [first, (first + 1 + maker.pick(EACH - 1)) % EACH];
    let guard = (maker.pick(6) == 0).then(|| (maker.register(), maker.coin()));
    Some(Box::new(Compute { form, results, sources, guard }))
}

impl Statement for Compute {
    fn write(&self, text: &mut Text) {
        let form = &FORMS[self.form];
        let results: Vec<String> = form.to.iter().zip(self.results).map(|(kind, n)| name(*kind, n)).collect();
        let sources: Vec<String> = self.sources.iter().map(Source::text).collect();
        let guard = self.guard.map_or(String::new(), |(p, negate)| format!("@{}%p{p} ", if negate { "!" } else { "" }));
        put!(text, "{guard}{} {}, {};", form.name, results.join("|"), sources.join(", "));
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let form = &FORMS[self.form];
        for at in active {
            let lane = &mut block.lanes[*at];
            if self.guard.is_some_and(|(p, negate)| lane.holds(p) == negate) {
                continue;
            }
            let values: Vec<u64> = self.sources.iter().map(|source| source.value(lane)).collect();
            let results = (form.compute)(&values);
            for ((kind, n), result) in form.to.iter().zip(self.results).zip(results) {
                lane.set(*kind, n, result);
            }
        }
    }
}

/// A link of a chain with carry: its name, whether it takes the flag and sets it, and what it adds to its last source, or
/// takes it from.
type Link = (&'static str, bool, bool, fn(Int, u64, u64) -> u64);

const LINKS: [Link; 12] = [
    ("add.cc", false, true, |_, a, _| a),
    ("addc.cc", true, true, |_, a, _| a),
    ("addc", true, false, |_, a, _| a),
    ("mad.lo.cc", false, true, |ty, a, b| ty.cut(ty.product(a, b)[0])),
    ("mad.hi.cc", false, true, |ty, a, b| ty.cut(ty.product(a, b)[1])),
    ("madc.lo.cc", true, true, |ty, a, b| ty.cut(ty.product(a, b)[0])),
    ("madc.hi.cc", true, true, |ty, a, b| ty.cut(ty.product(a, b)[1])),
    ("madc.lo", true, false, |ty, a, b| ty.cut(ty.product(a, b)[0])),
    ("madc.hi", true, false, |ty, a, b| ty.cut(ty.product(a, b)[1])),
    ("sub.cc", false, true, |_, a, _| a),
    ("subc.cc", true, true, |_, a, _| a),
    ("subc", true, false, |_, a, _| a),
];

/// Sums and differences with carry, one after the other.
struct Chain {
    ty: Int,
    links: Vec<(Link, usize, [usize; 3])>,
}

pub fn make_chain(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let ty = maker.of(&INTS[2..]);
    let setting: Vec<Link> = LINKS.iter().copied().filter(|link| !link.1).collect();
    let mut chain = vec![maker.of(&setting)];
    let count = 1 + maker.pick(3);
    chain.extend((0..count).map(|_| maker.of(&LINKS)));
    let links = chain.into_iter().map(|link| (link, maker.register(), [0; 3].map(|_| maker.register()))).collect();
    Some(Box::new(Chain { ty, links }))
}

impl Statement for Chain {
    fn write(&self, text: &mut Text) {
        let register = |n: usize| name(self.ty.kind(), n);
        for ((link, ..), d, [a, b, c]) in &self.links {
            let factor = if link.starts_with("mad") { format!("{}, ", register(*b)) } else { String::new() };
            put!(text, "{link}.{} {}, {}, {factor}{};", self.ty.name, register(*d), register(*a), register(*c));
        }
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let kind = self.ty.kind();
        for at in active {
            let (lane, mut flag) = (&mut block.lanes[*at], false);
            for ((link, takes, sets, compute), d, [a, b, c]) in &self.links {
                let value = i128::from(compute(self.ty, lane.get(kind, *a), lane.get(kind, *b)));
                let last = i128::from(lane.get(kind, *c));
                // A difference sets the flag where it borrows nothing, and borrows where it finds none.
                let (exact, set) = if link.starts_with("sub") {
                    let exact = value - last - i128::from(*takes && !flag);
                    (exact, exact >= 0)
                } else {
                    let exact = value + last + i128::from(*takes && flag);
                    (exact, exact >> self.ty.bits > 0)
                };
                lane.set(kind, *d, self.ty.cut(exact));
                if *sets {
                    flag = set;
                }
            }
        }
    }
}

/// Registers into a wider one, or out of it.
struct Repack {
    whole: (Kind, usize),
    part: Kind,
    parts: Vec<usize>,
    unpacks: bool,
}

pub fn make_repack(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let (whole, part, count) = maker.of(&[(R, H, 2), (D, R, 2), (D, H, 4)]);
    let first = maker.register();
    let parts = (0..count).map(|n| (first + n) % EACH).collect();
    Some(Box::new(Repack { whole: (whole, maker.register()), part, parts, unpacks: maker.coin() }))
}

impl Statement for Repack {
    fn write(&self, text: &mut Text) {
        let parts: Vec<String> = self.parts.iter().map(|n| name(self.part, *n)).collect();
        let (parts, whole) = (format!("{{{}}}", parts.join(", ")), name(self.whole.0, self.whole.1));
        let (to, from) = if self.unpacks { (&parts, &whole) } else { (&whole, &parts) };
        put!(text, "mov.b{} {to}, {from};", if self.whole.0 == D { 64 } else { 32 });
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let bits = if self.part == H { 16 } else { 32 };
        let (kind, whole) = self.whole;
        for at in active {
            let lane = &mut block.lanes[*at];
            let before = lane.get(kind, whole);
            let packed = self.parts.iter().rev().fold(0, |all, n| all << bits | lane.get(self.part, *n));
            if !self.unpacks {
                lane.set(kind, whole, packed);
                continue;
            }
            for (place, n) in self.parts.iter().enumerate() {
                lane.set(self.part, *n, before >> (bits * place) & ((1 << bits) - 1));
            }
        }
    }
}

/// A special register: its name, and its value by the thread's number in the grid and in its block.
type Read = (&'static str, fn(u32, u32) -> u32);

/// A register that gets a special one.
struct Special(usize, usize);

const SPECIALS: [Read; 10] = [
    ("%laneid", |_, thread| thread % 32),
    ("%lanemask_eq", |_, thread| 1 << (thread % 32)),
    ("%lanemask_lt", |_, thread| (1 << (thread % 32)) - 1),
    ("%lanemask_le", |_, thread| u32::MAX >> (31 - thread % 32)),
    ("%lanemask_gt", |_, thread| !(u32::MAX >> (31 - thread % 32))),
    ("%lanemask_ge", |_, thread| !((1 << (thread % 32)) - 1)),
    ("%tid.x", |_, thread| thread),
    ("%ctaid.x", |global, _| global / super::THREADS as u32),
    ("%ntid.x", |_, _| super::THREADS as u32),
    ("%tid.y", |_, _| 0),
];

pub fn make_special(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    Some(Box::new(Special(maker.register(), maker.pick(SPECIALS.len()))))
}

impl Statement for Special {
    fn write(&self, text: &mut Text) {
        put!(text, "mov.u32 %r{}, {};", self.0, SPECIALS[self.1].0);
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        for at in active {
            let lane = &mut block.lanes[*at];
            let value = SPECIALS[self.1].1(lane.global, lane.thread);
            lane.set(R, self.0, u64::from(value));
        }
    }
}
