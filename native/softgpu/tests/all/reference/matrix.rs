//! `mma`: each element of the result by itself, its factors taken from the lanes and registers where the PTX ISA's
//! figures put them.

use super::Kind::R;
use super::exact::{F16, F32, F64, Way};
use super::{Block, EACH, Maker, Statement, Text, put, warps};

fn half(bits: u64) -> f64 {
    f64::from_bits(F64.encode(&F16.decode(bits), Way::Nearest))
}
fn half_of(v: f64) -> u64 {
    F16.encode(&F64.decode(v.to_bits()), Way::Nearest)
}
fn single_of(v: f64) -> u64 {
    F32.encode(&F64.decode(v.to_bits()), Way::Nearest)
}

/// What a register of 32 bits holds of a matrix: how many elements, and the value of one.
type Elements = (usize, fn(u64, usize) -> f64);

/// A form: its modifiers, rows, inner extent, and the elements of both factors.  Columns are eight.
struct Form {
    modifiers: &'static str,
    rows: usize,
    inner: usize,
    factors: [Elements; 2],
}

const S8: Elements = (4, |bits, k| f64::from((bits >> (8 * k)) as i8));
const U8: Elements = (4, |bits, k| f64::from((bits >> (8 * k)) as u8));
const S4: Elements =
    (8, |bits, k| f64::from((bits >> (4 * k) & 15) as i8 - if bits >> (4 * k + 3) & 1 == 1 { 16 } else { 0 }));
const U4: Elements = (8, |bits, k| f64::from((bits >> (4 * k) & 15) as u8));
const B1: Elements = (32, |bits, k| f64::from((bits >> k & 1) as u8));
const HALF: Elements = (2, |bits, k| half(bits >> (16 * k) & 0xffff));
const BRAIN: Elements = (2, |bits, k| f64::from(f32::from_bits((bits >> (16 * k) << 16) as u32)));
const TF32: Elements = (1, |bits, _| f64::from(f32::from_bits(bits as u32 & 0xffff_e000)));

const fn form(modifiers: &'static str, rows: usize, inner: usize, factors: [Elements; 2]) -> Form {
    Form { modifiers, rows, inner, factors }
}

const FORMS: &[Form] = &[
    form("m8n8k16.row.col.s32.s8.s8.s32", 8, 16, [S8, S8]),
    form("m16n8k16.row.col.s32.u8.s8.s32", 16, 16, [U8, S8]),
    form("m16n8k32.row.col.satfinite.s32.s8.u8.s32", 16, 32, [S8, U8]),
    form("m8n8k32.row.col.s32.s4.s4.s32", 8, 32, [S4, S4]),
    form("m16n8k32.row.col.s32.u4.u4.s32", 16, 32, [U4, U4]),
    form("m16n8k64.row.col.satfinite.s32.u4.s4.s32", 16, 64, [U4, S4]),
    form("m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 8, 128, [B1, B1]),
    form("m16n8k256.row.col.s32.b1.b1.s32.and.popc", 16, 256, [B1, B1]),
    form("m16n8k8.row.col.f16.f16.f16.f16", 16, 8, [HALF, HALF]),
    form("m16n8k16.row.col.f32.f16.f16.f32", 16, 16, [HALF, HALF]),
    form("m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, [BRAIN, BRAIN]),
    form("m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, [TF32, TF32]),
];

impl Form {
    fn has(&self, modifier: &str) -> bool {
        self.modifiers.split('.').any(|one| one == modifier)
    }

    fn halves(&self) -> bool {
        self.modifiers.ends_with("f16")
    }

    /// Registers of the result and the accumulator, of a, and of b.
    fn registers(&self) -> [usize; 3] {
        let [(a, _), (b, _)] = self.factors;
        let result = self.rows * 8 / 32;
        [if self.halves() { result / 2 } else { result }, self.rows * self.inner / 32 / a, self.inner * 8 / 32 / b]
    }

    /// Register `n` of a lane's result; `register` gives a lane's register of a factor (0, 1) or the accumulator (2).
    fn result(&self, lane: usize, n: usize, register: impl Fn(usize, usize, usize) -> u64) -> u64 {
        let [(a, of_a), (b, of_b)] = self.factors;
        let cell = |row: usize, column: usize| {
            let pairs = (0..self.inner).map(|k| {
                let holder = row % 8 * 4 + k / a % 4;
                let x = of_a(register(0, holder, row / 8 + self.rows / 8 * (k / (4 * a))), k % a);
                let y = of_b(register(1, column * 4 + k / b % 4, k / (4 * b)), k % b);
                if self.has("xor") { f64::from(u8::from(x != y)) } else { x * y }
            });
            pairs.sum::<f64>()
        };
        let (row, column) = (lane / 4, lane % 4 * 2);
        let before = register(2, lane, n);
        if self.halves() {
            let one = |k: usize| half_of(half(before >> (16 * k) & 0xffff) + cell(row + 8 * n, column + k)) << (16 * k);
            return one(0) | one(1);
        }
        let sum = cell(row + n / 2 * 8, column + n % 2);
        if !self.has("s32") {
            return single_of(f64::from(f32::from_bits(before as u32)) + sum);
        }
        let total = i64::from(before as i32) + sum as i64;
        let most = if self.has("satfinite") { total.clamp(i32::MIN.into(), i32::MAX.into()) } else { total };
        u64::from(most as u32)
    }

    /// The instruction on these registers.
    fn text(&self, [d, a, b, c]: [usize; 4]) -> String {
        let list = |first: usize, count: usize| {
            let names: Vec<String> = (0..count).map(|n| super::name(R, (first + n) % EACH)).collect();
            format!("{{{}}}", names.join(", "))
        };
        let [results, of_a, of_b] = self.registers();
        let operands = [list(d, results), list(a, of_a), list(b, of_b), list(c, results)];
        format!("mma.sync.aligned.{} {};", self.modifiers, operands.join(", "))
    }
}

/// A product of matrices: its form, and the first registers of result, factors and accumulator.
struct Matrices(usize, [usize; 4]);

pub fn make(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let form = maker.pick(FORMS.len());
    maker.uniform().then(|| Box::new(Matrices(form, [0; 4].map(|_| maker.register()))) as Box<dyn Statement>)
}

impl Statement for Matrices {
    fn write(&self, text: &mut Text) {
        put!(text, "{}", FORMS[self.0].text(self.1));
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let Matrices(form, [d, a, b, c]) = self;
        let form = &FORMS[*form];
        for warp in warps(active) {
            let before: Vec<[u64; EACH]> = warp.iter().map(|at| block.lanes[*at].registers[R as usize]).collect();
            let register = |of: usize, lane: usize, n: usize| before[lane][([*a, *b, *c][of] + n) % EACH];
            for (lane, at) in warp.iter().enumerate() {
                for n in 0..form.registers()[0] {
                    block.lanes[*at].set(R, (d + n) % EACH, form.result(lane, n, register));
                }
            }
        }
    }
}
