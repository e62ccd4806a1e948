//! Barriers of the block, and what passes through shared memory from one thread to another between them.

use super::Kind::*;
use super::{Block, Maker, Statement, THREADS, Text, put};

/// The warp's tile in shared memory: the product of a row that all lanes read and each lane's own element, so many terms,
/// is added to the first register.
struct Tile(usize, [usize; 2], usize);

/// How many threads have a predicate, or whether all or some do: which barrier, how, result, predicate, and whether the
/// lanes come there on two ways.
struct Reduce {
    barrier: usize,
    how: &'static str,
    d: usize,
    p: usize,
    negated: bool,
    parted: Option<usize>,
}

/// The first warp hands a register over to the second, which waits for it.
struct Handover(usize, usize);

/// Each thread gets a register of the thread at the block's other end.
struct Mirror(usize, usize);

/// What computes nothing: fences, hints, pauses.
struct Hint(&'static str);

const HINTS: [&str; 9] = [
    "membar.cta;",
    "membar.gl;",
    "fence.acq_rel.gpu;",
    "fence.sc.sys;",
    "nanosleep.u32 1;",
    "prefetch.global.L2 [%a3];",
    "prefetchu.L1 [%a3];",
    "applypriority.global.L2::evict_normal [%a3], 128;",
    "pmevent 1;",
];

pub fn make(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    if !maker.uniform() {
        return Some(Box::new(Hint(maker.of(&HINTS))));
    }
    Some(match maker.pick(6) {
        0 => {
            let terms = maker.of(&[1, 3, 9, 16]);
            Box::new(Tile(maker.register(), [maker.register(), maker.register()], terms))
        }
        1 | 2 => {
            let parted = maker.coin().then(|| maker.register());
            let how = maker.of(&["popc.u32", "and.pred", "or.pred"]);
            let (barrier, negated) = (maker.pick(16), maker.coin());
            Box::new(Reduce { barrier, how, d: maker.register(), p: maker.register(), negated, parted })
        }
        3 => Box::new(Handover(maker.register(), maker.register())),
        4 => Box::new(Mirror(maker.register(), maker.register())),
        _ => Box::new(Hint(maker.of(&HINTS))),
    })
}

impl Statement for Tile {
    fn write(&self, text: &mut Text) {
        let Tile(d, [a, b], terms) = self;
        put!(text, "mov.u64 %a5, tile; mul.wide.u32 %a6, %t2, 4; add.u64 %a6, %a5, %a6; and.b32 %t6, %t2, -32;");
        put!(text, "mul.wide.u32 %a7, %t6, 4; add.u64 %a5, %a5, %a7; bar.sync 0;");
        put!(text, "st.shared.f32 [%a6], %f{a}; st.shared.f32 [%a6+256], %f{b}; bar.sync 0;");
        for term in 0..*terms {
            put!(
                text,
                "ld.shared.f32 %x0, [%a5+{}]; ld.shared.f32 %x1, [%a6+256]; fma.rn.f32 %f{d}, %x0, %x1, %f{d};",
                4 * term
            );
        }
        put!(text, "bar.sync 0;");
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let Tile(d, [a, b], terms) = self;
        let first: Vec<u64> = active.iter().map(|at| block.lanes[*at].get(F, *a)).collect();
        for at in active {
            let lane = &mut block.lanes[*at];
            let (own, mut sum) = (lane.get(F, *b), lane.get(F, *d));
            for term in 0..*terms {
                sum = super::floats::fused(first[at / 32 * 32 + term], own, sum);
            }
            lane.set(F, *d, sum);
        }
    }
}

impl Statement for Reduce {
    fn write(&self, text: &mut Text) {
        let Reduce { barrier, how, d, p, negated, parted } = self;
        let to = if how.starts_with("popc") { format!("%r{d}") } else { format!("%p{d}") };
        let rest = format!("red.{how} {to}, {barrier}, {}%p{p};", if *negated { "!" } else { "" });
        let Some(by) = parted else {
            put!(text, "bar.{rest}");
            return;
        };
        let label = text.label();
        put!(
            text,
            "@%p{by} bra $else{label};\nbarrier.{rest}\nbra $end{label};\n$else{label}:\nbarrier.{rest}\n$end{label}:"
        );
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let yes = active.iter().filter(|at| block.lanes[**at].holds(self.p) != self.negated).count();
        let (kind, result) = match self.how {
            "popc.u32" => (R, yes),
            "and.pred" => (P, usize::from(yes == active.len())),
            _ => (P, usize::from(yes > 0)),
        };
        active.iter().for_each(|at| block.lanes[*at].set(kind, self.d, result as u64));
    }
}

impl Statement for Handover {
    fn write(&self, text: &mut Text) {
        let Handover(d, a) = self;
        put!(text, "mov.u64 %a5, tile; mad.wide.u32 %a6, %t2, 4, %a5; setp.lt.u32 %q0, %t2, 32;");
        put!(text, "@%q0 st.shared.u32 [%a6], %r{a};\n@%q0 bar.arrive 7, {THREADS};\n@!%q0 bar.sync 7, {THREADS};");
        put!(text, "@!%q0 ld.shared.u32 %r{d}, [%a6+-128];\nbarrier.sync 8, {THREADS};");
    }

    fn execute(&self, block: &mut Block, _: &[usize]) {
        for at in 32..THREADS {
            let value = block.lanes[at - 32].get(R, self.1);
            block.lanes[at].set(R, self.0, value);
        }
    }
}

impl Statement for Mirror {
    fn write(&self, text: &mut Text) {
        let Mirror(d, a) = self;
        put!(text, "mov.u64 %a5, tile; mad.wide.u32 %a6, %t2, 8, %a5; sub.u32 %t6, {}, %t2;", THREADS - 1);
        put!(text, "mad.wide.u32 %a7, %t6, 8, %a5; bar.sync 5; st.shared.u64 [%a6], %d{a}; bar.sync 3;");
        put!(text, "ld.shared.u64 %d{d}, [%a7]; barrier.sync.aligned 4;");
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let values: Vec<u64> = active.iter().map(|at| block.lanes[*at].get(D, self.1)).collect();
        for at in active {
            block.lanes[*at].set(D, self.0, values[THREADS - 1 - at]);
        }
    }
}

impl Statement for Hint {
    fn write(&self, text: &mut Text) {
        put!(text, "{}", self.0);
    }

    fn execute(&self, _: &mut Block, _: &[usize]) {}
}
