//! Random programs, and a slow interpreter of them: one lane, one statement at a time.
//!
//! A program is made as a tree of statements, written out as PTX, and evaluated here: integers by numbers of 128 bits,
//! bits one by one, floats by numbers without bounds that are rounded once (`exact`).  Each file has statements of one
//! kind: how they are made, written, and executed.

mod approximate;
mod atomics;
mod barriers;
mod bits;
mod calls;
mod comparisons;
mod compute;
mod control;
mod conversions;
mod exact;
mod floats;
mod forms;
mod fragments;
mod integers;
mod matrix;
mod memory;
mod warp;

use crate::common::Random;
pub use approximate::{NEAR, Near};
pub use atomics::{WORDS, initial};

/// Kinds of registers; each has eight of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `.pred`
    P,
    /// `.b16`
    H,
    /// `.b32`
    R,
    /// `.b64`
    D,
    /// `.f32`
    F,
    /// `.f64`
    E,
}

use Kind::*;

/// Registers of each kind.
pub const EACH: usize = 8;
const KINDS: [Kind; 6] = [P, H, R, D, F, E];
const DECLARED: [&str; 6] = ["pred", "b16", "b32", "b64", "f32", "f64"];
/// Bytes of the table that every thread reads.
pub const TABLE: usize = 1024;
/// Bytes of each memory that a thread has for itself.
pub const OWN: usize = 64;
/// Threads of a block: two warps.
pub const THREADS: usize = 64;
/// Numbers of 64 bits that a thread leaves: its registers but for predicates, and two of its memories.
pub const LEFT: usize = 5 * EACH + 2 * OWN / 8;

fn name(kind: Kind, number: usize) -> String {
    format!("%{}{number}", ["p", "h", "r", "d", "f", "e"][kind as usize])
}

/// A number as a constant expression, in one of several ways.
fn spelled(number: usize) -> String {
    match (number / 4 + number) % 6 {
        0 => number.to_string(),
        1 => format!("{} - 7", number + 7),
        2 => format!("~-{}", number + 1),
        3 => format!("WARP_SZ * {} + {}", number / 32, number % 32),
        4 => format!("(1 > 2 ? 5 : {number} ^ 0)"),
        _ => format!("{} / 3 | 0", number * 3),
    }
}

/// Writes a line of a program.
macro_rules! put {
    ($text:expr, $($part:tt)*) => {{
        let line = format!($($part)*);
        $text.lines.push_str(&line);
        $text.lines.push('\n');
    }};
}
use put;

/// A program's PTX while it is written.
#[derive(Default)]
pub struct Text {
    lines: String,
    labels: usize,
    /// Registers that count rounds of loops, and those with the lanes that run some statements together.
    counters: usize,
    masks: usize,
    /// The one with the lanes that run what is written next.
    mask: usize,
    scratches: usize,
}

impl Text {
    fn label(&mut self) -> usize {
        self.labels += 1;
        self.labels
    }

    /// The register with the lanes that run what is written next.
    fn members(&self) -> String {
        format!("%g{}", if self.mask == usize::MAX { 0 } else { self.mask })
    }

    /// A new register for a mask.
    fn new_mask(&mut self) -> usize {
        self.masks += 1;
        self.masks
    }

    fn block(&mut self, body: &[Box<dyn Statement>], mask: usize) {
        let outside = std::mem::replace(&mut self.mask, mask);
        for statement in body {
            statement.write(self);
        }
        self.mask = outside;
    }
}

/// A statement of a program.
pub trait Statement {
    fn write(&self, text: &mut Text);

    /// What it does to those lanes of the block that come to it.
    fn execute(&self, block: &mut Block, active: &[usize]);
}

/// Makes the statements of a program.
pub struct Maker<'r> {
    random: &'r mut Random,
    /// How deep in diverged code.
    depth: usize,
    /// Lanes know which others run with them, so that they can work together in diverged code too.
    together: bool,
    /// Memories that are open here.
    open: Vec<(usize, memory::Origin)>,
    scratches: usize,
}

/// Makes a statement of one kind, which may take more of what is left; nothing if there is none here.
type Family = fn(&mut Maker, &mut usize) -> Option<Box<dyn Statement>>;

/// The kinds of statements, each as often as it stands here against the others.
const FAMILIES: &[(usize, Family)] = &[
    (28, compute::make),
    (2, compute::make_chain),
    (2, compute::make_repack),
    (1, compute::make_special),
    (5, memory::make_table),
    (6, memory::make_own),
    (1, memory::make_copy),
    (2, memory::make_scratch),
    (3, memory::make_scratch_access),
    (4, atomics::make_own),
    (1, atomics::make_vector),
    (1, atomics::make_bulk),
    (3, atomics::make_common),
    (3, control::make_if),
    (2, control::make_loop),
    (1, control::make_switch),
    (3, calls::make),
    (8, warp::make),
    (1, fragments::make),
    (1, matrix::make),
    (2, barriers::make),
    (2, approximate::make),
];

impl Maker<'_> {
    fn pick(&mut self, n: usize) -> usize {
        (self.random.bits() >> 20) as usize % n
    }

    fn coin(&mut self) -> bool {
        self.pick(2) == 0
    }

    /// Of some things one.
    fn of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.pick(things.len())]
    }

    fn register(&mut self) -> usize {
        self.pick(EACH)
    }

    /// All threads of the block come here together, equally often.
    fn uniform(&self) -> bool {
        self.depth == 0
    }

    /// Lanes can work together here.
    fn collective(&self) -> bool {
        self.together || self.uniform()
    }

    fn deeper(&mut self, size: usize) -> Vec<Box<dyn Statement>> {
        self.depth += 1;
        let body = self.block(size);
        self.depth -= 1;
        body
    }

    fn block(&mut self, size: usize) -> Vec<Box<dyn Statement>> {
        let (mut out, mut left) = (Vec::new(), size);
        let weights: usize = FAMILIES.iter().map(|(weight, _)| weight).sum();
        while left > 0 {
            let mut at = self.pick(weights);
            let chosen = FAMILIES.iter().find(|(weight, _)| {
                let found = at < *weight;
                at = at.wrapping_sub(*weight);
                found
            });
            if let Some(statement) = chosen.and_then(|(_, make)| make(self, &mut left)) {
                left = left.saturating_sub(1);
                out.push(statement);
            }
        }
        out
    }
}

/// A program with the table that it reads.
pub struct Program {
    body: Vec<Box<dyn Statement>>,
    together: bool,
    pub table: Vec<u8>,
}

/// Bits that arithmetic meets rarely: infinities, NaNs, zeros and numbers near them, in several formats.
const STRANGE: [u32; 16] = [
    0x7f80_0000,
    0xff80_0000,
    0x7fff_ffff,
    0x8000_0000,
    0,
    1,
    0x007f_ffff,
    0x7f7f_ffff,
    0x7c00_fc00,
    0x7fff_8000,
    0x0001_83ff,
    0x7bff_0400,
    0x3c00_3c00,
    0x3f80_bf80,
    0xffff_ffff,
    0x7ff0_0000,
];

impl Program {
    /// A random program of about so many statements.
    pub fn random(random: &mut Random, size: usize) -> Program {
        let words = (0..TABLE / 4).map(|_| match random.bits() >> 20 {
            strange if strange.is_multiple_of(4) => STRANGE[strange as usize / 4 % STRANGE.len()],
            _ => (random.bits() >> 16) as u32,
        });
        let table = words.flat_map(u32::to_le_bytes).collect();
        let together = random.bits() >> 20 & 1 == 1;
        let mut maker = Maker { random, depth: 0, together, open: Vec::new(), scratches: 0 };
        let body = maker.block(size);
        Program { body, together, table }
    }

    /// The statements alone.
    pub fn statements(&self) -> String {
        self.written().lines
    }

    fn written(&self) -> Text {
        let mut text = Text::default();
        let mask = if self.together { 0 } else { usize::MAX };
        text.block(&self.body, mask);
        text
    }

    /// The program as PTX: `k(table, own, out, threads, near, sums)`.
    pub fn ptx(&self) -> String {
        let Text { lines, counters, masks, scratches, .. } = self.written();
        let mut text = Text::default();
        let table: Vec<String> = self.table.iter().map(u8::to_string).collect();
        put!(text, ".version 9.4\n.target sm_100a\n.address_size 64\n{}", calls::FUNCTIONS);
        put!(text, ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);");
        put!(text, ".const .align 16 .b8 fixed[{TABLE}] = {{{}}};", table.join(", "));
        put!(text, ".shared .align 16 .b8 tile[512];\n.shared .align 16 .b8 mine[{}];", THREADS * OWN);
        put!(text, ".shared .align 16 .b8 sums[{}];\n.shared .b64 bars[{THREADS}];", 8 * WORDS);
        put!(text, ".visible .entry k(.param .u64 table, .param .u64 own, .param .u64 out, .param .u32 threads,");
        put!(text, ".param .u64 near, .param .u64 common)\n{{\n.local .align 16 .b8 kept[{OWN}];");
        for (kind, declared) in KINDS.iter().zip(DECLARED) {
            put!(text, ".reg .{declared} {}<{EACH}>;", name(*kind, 0).trim_end_matches('0'));
        }
        put!(text, ".reg .b32 %t<16>, %n<{}>, %g<{}>, %m<{}>;", counters + 1, masks + 1, scratches + 1);
        put!(text, ".reg .b64 %a<8>, %o<6>, %k<{0}>, %s<{0}>;", scratches + 1);
        put!(text, ".reg .pred %q<4>;\n.reg .f32 %x<4>;\n.reg .f64 %y<2>;\n.reg .b16 %w<2>;");
        put!(text, "ld.param.u64 %a0, [table]; ld.param.u64 %a1, [own]; ld.param.u64 %a2, [out];");
        put!(text, "ld.param.u32 %t4, [threads]; ld.param.u64 %o4, [near]; ld.param.u64 %o5, [common];");
        put!(text, "mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.s32 %t0, %t0, %t1, %t2;");
        put!(text, "mul.wide.u32 %a3, %t2, 4; add.u64 %a3, %a0, %a3; mov.b32 %g0, -1; mov.u32 %t3, %laneid;");
        put!(text, "mov.u64 %o0, mine; mad.wide.u32 %o0, %t2, {OWN}, %o0; mov.u64 %o1, kept;");
        put!(text, "cvta.shared.u64 %o2, %o0; cvta.local.u64 %o3, %o1; mad.wide.u32 %o4, %t0, {}, %o4;", 8 * NEAR);
        for at in (0..OWN).step_by(8) {
            put!(text, "st.shared.u64 [%o0+{at}], 0; st.local.u64 [%o1+{at}], 0;");
        }
        // The words of each block lie behind those of the grid.
        let words = "mov.u64 %a4, sums; mad.wide.u32 %a4, %t2, 8, %a4; mov.u32 %t5, %ctaid.x;";
        put!(text, "setp.lt.u32 %q0, %t2, {WORDS}; {words} mad.lo.u32 %t5, %t5, {WORDS}, %t2;");
        put!(
            text,
            "mad.wide.u32 %a6, %t5, 8, %o5;\n@%q0 ld.global.u64 %a5, [%a6+{}];\n@%q0 st.shared.u64 [%a4], %a5;\nbar.sync 0;",
            8 * WORDS
        );
        for number in 0..EACH {
            // What a thread starts from; the reference has the same in `Lane::new`.
            put!(
                text,
                "mul.lo.u32 %r{number}, %t0, {}; xor.b32 %r{number}, %r{number}, {number};\n\
                 mul.wide.u32 %d{number}, %r{number}, {}; cvt.u16.u32 %h{number}, %r{number};\n\
                 cvt.rn.f32.s32 %f{number}, %r{number}; mul.f32 %f{number}, %f{number}, 0f38000000;\n\
                 cvt.f64.f32 %e{number}, %f{number}; setp.lt.s32 %p{number}, %r{number}, 0;",
                MIX[number],
                MIX[7 - number]
            );
        }
        text.lines += &lines;
        put!(text, "bar.sync 0;\nmad.wide.u32 %a4, %t0, {}, %a2;", 8 * LEFT);
        for (at, kind) in KINDS[1..].iter().enumerate() {
            for number in 0..EACH {
                let (from, to) = (name(*kind, number), at * EACH * 8 + number * 8);
                let wide = match kind {
                    H => format!("cvt.u64.u16 %a5, {from};"),
                    R => format!("cvt.u64.u32 %a5, {from};"),
                    F => format!("mov.b32 %t5, {from}; cvt.u64.u32 %a5, %t5;"),
                    _ => format!("mov.b64 %a5, {from};"),
                };
                put!(text, "{wide} st.global.u64 [%a4+{to}], %a5;");
            }
        }
        for (space, own, first) in [("shared", 0, 5 * EACH * 8), ("local", 1, 5 * EACH * 8 + OWN)] {
            for at in (0..OWN).step_by(8) {
                put!(text, "ld.{space}.u64 %a5, [%o{own}+{at}]; st.global.u64 [%a4+{}], %a5;", first + at);
            }
        }
        put!(text, "setp.ge.u32 %q0, %t2, {WORDS};\n@%q0 exit;\n{words} mad.lo.u32 %t5, %t5, {WORDS}, %t2;");
        put!(text, "mad.wide.u32 %a6, %t5, 8, %o5;");
        put!(text, "ld.shared.u64 %a5, [%a4]; st.global.u64 [%a6+{}], %a5;\nret;\n}}", 8 * WORDS);
        text.lines
    }

    /// What the program does to the lanes of one block.
    pub fn evaluate(&self, block: &mut Block) {
        let all: Vec<usize> = (0..block.lanes.len()).collect();
        block.run(&self.body, &all);
    }
}

const MIX: [u32; 8] = [1, 0x9e37, 0x0100_0193, 3, 0x85eb_ca6b, 17, 0x27d4_eb2f, 255];

/// One thread's registers and memories.
#[derive(Clone)]
pub struct Lane {
    /// By kind and number.
    pub registers: [[u64; EACH]; 6],
    /// Thread of the grid, and of the block.
    global: u32,
    thread: u32,
    scratches: std::collections::HashMap<usize, Vec<u32>>,
    /// Memories of its own, by [`memory::Area`].
    pub own: [[u8; OWN]; 4],
    pub near: [Near; NEAR],
}

impl Lane {
    /// Thread `global` of the grid, `thread` in its block.
    pub fn new(global: u32, thread: u32) -> Lane {
        let mut registers = [[0; EACH]; 6];
        for number in 0..EACH {
            let r = global.wrapping_mul(MIX[number]) ^ number as u32;
            let single = r as i32 as f32 * f32::from_bits(0x3800_0000);
            registers[P as usize][number] = u64::from((r as i32) < 0);
            registers[H as usize][number] = u64::from(r as u16);
            registers[R as usize][number] = u64::from(r);
            registers[D as usize][number] = u64::from(r) * u64::from(MIX[7 - number]);
            registers[F as usize][number] = u64::from(single.to_bits());
            registers[E as usize][number] = f64::from(single).to_bits();
        }
        let scratches = std::collections::HashMap::new();
        Lane { registers, global, thread, scratches, own: [[0; OWN]; 4], near: [Near::default(); NEAR] }
    }

    fn get(&self, kind: Kind, number: usize) -> u64 {
        self.registers[kind as usize][number]
    }

    fn set(&mut self, kind: Kind, number: usize, value: u64) {
        self.registers[kind as usize][number] = value;
    }

    fn holds(&self, predicate: usize) -> bool {
        self.get(P, predicate) == 1
    }
}

/// A block in the reference: its threads, and what they share.
pub struct Block<'p> {
    pub lanes: Vec<Lane>,
    table: &'p [u8],
    /// Words that all threads update: those of the block, and those of the grid.
    pub sums: [u64; WORDS],
    pub grid: &'p mut [u64; WORDS],
}

impl Block<'_> {
    /// Block `number` of the grid.
    pub fn new<'p>(number: usize, table: &'p [u8], grid: &'p mut [u64; WORDS]) -> Block<'p> {
        let lanes = (0..THREADS).map(|thread| Lane::new((number * THREADS + thread) as u32, thread as u32)).collect();
        Block { lanes, table, sums: std::array::from_fn(initial), grid }
    }

    fn run(&mut self, body: &[Box<dyn Statement>], active: &[usize]) {
        if active.is_empty() {
            return;
        }
        for statement in body {
            statement.execute(self, active);
        }
    }
}

/// The lanes of each warp.
fn warps(active: &[usize]) -> Vec<Vec<usize>> {
    let warp = |number: usize| active.iter().copied().filter(|at| at / 32 == number).collect::<Vec<_>>();
    (0..THREADS / 32).map(warp).filter(|warp| !warp.is_empty()).collect()
}
