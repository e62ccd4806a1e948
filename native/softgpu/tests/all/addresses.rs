//! Random arithmetic of parameters and the thread's place.  Compiled code follows such values from lane to lane, and
//! computes them again where they are used; each thread is to find and to reach what it would alone.

use crate::common::{Device, Params, Random};
use std::fmt::Write;

const PROGRAMS: u64 = 200;
/// Bytes that are loaded; as many behind them are stored.
const REACH: u64 = 1 << 16;
/// Most threads of a launch, and registers of a program.
const THREADS: usize = 256;
const REGISTERS: usize = 24;
/// Where 32 bits end, with their sign and without, and what is far from there.
const EDGES: [u32; 6] = [0, 3, 0x7fff_ffd0, 0x8000_0010, 0xffff_ffd0, 0xffff_ffff];
/// Factors that keep lanes near each other, and some that drive them apart.
const FACTORS: [u32; 8] = [1, 2, 4, 0xffff_ffff, 0xffff_fffc, 0x1_0000, 0x4000_0001, 0x8000_0000];

/// A register of 32 bits or (`wide`) 64, with its value in each thread.
#[derive(Clone)]
struct Register {
    name: String,
    wide: bool,
    values: Vec<u64>,
}

/// A kernel in the making.
struct Program {
    random: Random,
    text: String,
    grid: u32,
    block: [u32; 3],
    /// The parameters `a` and `b`.
    params: [u32; 2],
    /// The first of a block's threads in which `%p` is true.
    late: usize,
    registers: Vec<Register>,
}

impl Program {
    fn random(seed: u64) -> Program {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for _ in 0..8 {
            random.bits();
        }
        let shapes = [[32, 1, 1], [64, 1, 1], [45, 1, 1], [16, 2, 2], [8, 8, 1], [5, 3, 4], [1, 32, 1], [1, 1, 40]];
        let mut below = |count: usize| random.bits() as usize % count;
        let (block, grid) = (shapes[below(shapes.len())], 1 + below(3) as u32);
        let (late, params) = (below(80), [0; 2].map(|_| EDGES[below(EDGES.len())]));
        let mut p = Program { random, text: String::new(), grid, block, params, late, registers: Vec::new() };
        p.add(false, "mov.u32 $, %tid.x;", |t| u64::from(t % block[0]));
        p.add(true, "cvt.u64.u32 $, %r0;", |t| u64::from(t % block[0]));
        for _ in 0..4 + p.below(12) {
            p.step();
        }
        p
    }

    fn below(&mut self, count: usize) -> usize {
        self.random.bits() as usize % count
    }

    fn threads(&self) -> u32 {
        self.block.iter().product::<u32>()
    }

    /// Adds an instruction that writes a new register, `$` in its text; `of` gives the value for a thread of the grid.
    fn add(&mut self, wide: bool, text: &str, of: impl Fn(u32) -> u64) {
        let name = format!("%{}{}", if wide { 'd' } else { 'r' }, self.registers.len());
        writeln!(self.text, "{}", text.replace('$', &name)).unwrap();
        let cut = if wide { u64::MAX } else { 0xffff_ffff };
        let values = (0..self.grid * self.threads()).map(|t| of(t) & cut).collect();
        self.registers.push(Register { name, wide, values });
    }

    /// A register of this width, mostly one of the last.
    fn pick(&mut self, wide: bool) -> Register {
        let fit: Vec<Register> = self.registers.iter().filter(|r| r.wide == wide).cloned().collect();
        let back = self.below(fit.len()).min(self.random.bits() as usize % 4);
        fit[fit.len() - 1 - back].clone()
    }

    fn step(&mut self) {
        let wide = self.below(3) == 0;
        let (x, y, w) = (self.pick(wide), self.pick(wide), self.pick(false));
        let (a, b, c, bits) = (x.name.clone(), y.name.clone(), w.name.clone(), if wide { 64 } else { 32 });
        let (x, y, w) = (|t: u32| x.values[t as usize], |t: u32| y.values[t as usize], |t: u32| w.values[t as usize]);
        let factor = FACTORS[self.below(FACTORS.len())];
        let (k, s) = (u64::from(factor), factor as i32 as i64 as u64);
        let (block, each, [p, q], late) = (self.block, self.threads(), self.params.map(u64::from), self.late);
        let is_late = |t: u32| (t % each) as usize >= late;
        match self.below(17) {
            0 => {
                let [own, of]: [fn(u32, [u32; 3]) -> u32; 2] = [|t, b| t / b[0] % b[1], |t, b| t / b[0] / b[1]];
                let (axis, at) = if self.below(2) == 0 { ('y', own) } else { ('z', of) };
                self.add(false, &format!("mov.u32 $, %tid.{axis};"), |t| at(t % each, block).into());
            }
            1 => self.add(false, "mov.u32 $, %laneid;", |t| u64::from(t % each % 32)),
            2 => self.add(false, "mov.u32 $, %ctaid.x;", |t| u64::from(t / each)),
            3 => self.add(false, "ld.param.u32 $, [a];", |_| p),
            4 => self.add(false, "ld.param.u32 $, [a]; @%p ld.param.u32 $, [b];", |t| if is_late(t) { q } else { p }),
            5 => self.add(wide, &format!("mov.b{bits} $, {a}; @%p mov.b{bits} $, {b};"), |t| {
                if is_late(t) { y(t) } else { x(t) }
            }),
            6 | 7 => self.add(wide, &format!("add.u{bits} $, {a}, {b};"), |t| x(t).wrapping_add(y(t))),
            8 => self.add(wide, &format!("sub.u{bits} $, {a}, {b};"), |t| x(t).wrapping_sub(y(t))),
            9 => {
                let amount = [0, 1, 2, 16, 31][self.below(5)];
                self.add(wide, &format!("shl.b{bits} $, {a}, {amount};"), |t| x(t) << amount);
            }
            10 => self.add(wide, &format!("mul.lo.s{bits} $, {a}, {};", s as i64), |t| x(t).wrapping_mul(s)),
            11 => self.add(wide, &format!("mad.lo.s{bits} $, {a}, {}, {b};", s as i64), |t| {
                x(t).wrapping_mul(s).wrapping_add(y(t))
            }),
            12 => self.add(true, &format!("cvt.u64.u32 $, {c};"), w),
            13 => self.add(true, &format!("cvt.s64.s32 $, {c};"), |t| w(t) as i32 as i64 as u64),
            14 => self.add(true, &format!("mul.wide.u32 $, {c}, {factor};"), |t| w(t).wrapping_mul(k)),
            15 => self.add(true, &format!("mul.wide.s32 $, {c}, {};", s as i64), |t| {
                (w(t) as i32 as i64 as u64).wrapping_mul(s)
            }),
            _ if wide => self.add(false, &format!("cvt.u32.u64 $, {a};"), x),
            _ => self.text += "bar.sync 0;\n",
        }
    }

    /// Code that stores each register in one of several ways, by `%a6` (8 bytes a thread) and `%a7` (4 bytes), and the
    /// words that are there then.
    fn keep(&mut self) -> (String, Vec<u32>) {
        let mut text = String::from("bar.sync 0;\n");
        let mut words = vec![0; REGISTERS * 2 * THREADS];
        for (number, r) in self.registers.clone().into_iter().enumerate() {
            let (name, bits, at) = (&r.name, if r.wide { 64 } else { 32 }, 8 * THREADS * number);
            let (mut each, mut flip) = (2, 0);
            let line = match self.below(5) {
                0 => format!("st.global.u{bits} [%a6+{at}], {name};"),
                1 => format!("red.global.xor.b{bits} [%a6+{at}], {name};"),
                2 => format!("@%p st.global.u{bits} [%a6+{at}], {name}; @!%p st.global.u{bits} [%a6+{at}], {name};"),
                3 if r.wide => {
                    flip = u64::MAX;
                    format!("not.b64 %a8, {name}; st.global.u64 [%a6+{at}], %a8;")
                }
                _ if r.wide => format!("mov.b64 {{%i8, %i9}}, {name}; st.global.v2.u32 [%a6+{at}], {{%i8, %i9}};"),
                _ => {
                    each = 1;
                    format!("st.global.u32 [%a7+{at}], {name};")
                }
            };
            writeln!(text, "{line}").unwrap();
            for (thread, value) in r.values.iter().enumerate() {
                let halves = [(value ^ flip) as u32, ((value ^ flip) >> 32) as u32];
                let place = number * 2 * THREADS + each * thread;
                let count = if r.wide { 2 } else { 1 };
                words[place..place + count].copy_from_slice(&halves[..count]);
            }
        }
        (text, words)
    }

    /// Keeps all registers, and loads and stores by the last one of 64 bits, four bytes for each that it counts; whether
    /// all threads that do so find what they may access.
    fn run(mut self, d: &Device, [from, out, kept]: [u64; 3], seed: u64) -> bool {
        let last = self.registers.iter().rfind(|r| r.wide).cloned().unwrap();
        let (keep, words) = self.keep();
        let leave = self.below(4) == 0;
        // Arithmetic and access are compiled as one, unless other code stands between them.
        let (before, behind) = if self.below(3) == 0 { (keep.as_str(), "") } else { ("", keep.as_str()) };
        let text = format!(
            ".version 7.5\n.target sm_75\n.address_size 64\n\
             .visible .entry k(.param .u64 start, .param .u64 out, .param .u64 kept,\n\
             .param .u32 a, .param .u32 b)\n{{\n\
             .reg .pred %p;\n.reg .b32 %r<64>;\n.reg .b64 %d<64>;\n.reg .b32 %i<16>;\n.reg .b64 %a<16>;\n\
             mov.u32 %i1, %tid.x; mov.u32 %i2, %tid.y; mov.u32 %i3, %tid.z; mov.u32 %i4, %ntid.x; mov.u32 %i5, %ntid.y;\n\
             mad.lo.u32 %i2, %i3, %i5, %i2; mad.lo.u32 %i1, %i2, %i4, %i1; setp.ge.u32 %p, %i1, {};\n\
             mov.u32 %i10, %ctaid.x; mad.lo.u32 %i11, %i10, {}, %i1; ld.param.u64 %a9, [kept];\n\
             mad.wide.u32 %a6, %i11, 8, %a9; mad.wide.u32 %a7, %i11, 4, %a9;\n{}{before}\
             {}\nshl.b64 %a1, {}, 2; ld.param.u64 %a2, [start]; add.u64 %a3, %a1, %a2;\n\
             ld.global.u32 %i6, [%a3]; cvt.u32.u64 %i7, %a3; st.global.u32 [%a3+{REACH}], %i7;\n\
             ld.param.u64 %a4, [out]; mad.wide.u32 %a5, %i11, 4, %a4; st.global.u32 [%a5], %i6;\n\
             over:\n{behind}ret;\n}}\n",
            self.late,
            self.threads(),
            self.text,
            if leave { "@%p bra over;" } else { "" },
            last.name,
        );
        let m = d.load(&text);
        let numbers: Vec<u8> = (0..2 * REACH as u32 / 4).flat_map(u32::to_le_bytes).collect();
        d.arena.write(from, &numbers).unwrap();
        d.arena.write(out, &[0xff; 4 * THREADS]).unwrap();
        d.arena.write(kept, &[0; 8 * THREADS * REGISTERS]).unwrap();
        // Thread 0 is in the middle.
        let start = (from + REACH / 2).wrapping_sub(last.values[0] << 2);
        let params = Params::new().u64(start).u64(out).u64(kept).u32(self.params[0]).u32(self.params[1]);
        let launched = d.launch(&m, "k", [self.grid, 1, 1], self.block, &params);

        let (mut loaded, mut stored) = (vec![u32::MAX; THREADS], vec![None; REACH as usize / 4]);
        let mut all = true;
        for (thread, value) in last.values.iter().enumerate() {
            if leave && thread % self.threads() as usize >= self.late {
                continue;
            }
            let address = start.wrapping_add(value << 2);
            let at = (address.wrapping_sub(from) / 4) as usize;
            match stored.get_mut(at) {
                Some(word) => (*word, loaded[thread]) = (Some(address as u32), at as u32),
                None => all = false,
            }
        }
        if !all {
            assert!(launched.is_err(), "seed {seed}\n{text}");
            return false;
        }
        launched.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{text}"));
        assert_eq!(d.download::<u32>(kept, words.len()), words, "seed {seed}\n{text}");
        assert_eq!(d.download::<u32>(out, THREADS), loaded, "seed {seed}\n{text}");
        let behind = d.download::<u32>(from + REACH, stored.len());
        let stored = stored.iter().zip((REACH as u32 / 4)..).map(|(word, old)| word.unwrap_or(old));
        assert_eq!(behind, stored.collect::<Vec<u32>>(), "seed {seed}\n{text}");
        true
    }
}

#[test]
fn each_thread_finds_and_reaches_what_its_own_arithmetic_says() {
    let d = Device::new(1);
    let memory = [2 * REACH as usize, 4 * THREADS, 8 * THREADS * REGISTERS].map(|bytes| d.alloc(bytes as u64));
    let within = (0..PROGRAMS).filter(|seed| Program::random(*seed).run(&d, memory, *seed)).count() as u64;
    assert!(4 * within > PROGRAMS, "{within} of {PROGRAMS} programs stay where they may access");
}
