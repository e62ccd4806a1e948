//! `mma`: each element of the result by itself, its factors taken from the lanes and registers where the PTX ISA's
//! figures put them.

use super::{R, half, half_of, of};

/// What a register of 32 bits holds of a matrix: how many elements, and the value of one.
type Elements = (usize, fn(u64, usize) -> f64);

/// A form: its modifiers, rows, inner extent, and the elements of both factors.  Columns are eight.
pub struct Form {
    pub modifiers: &'static str,
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

pub const FORMS: &[Form] = &[
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
    pub fn registers(&self) -> [usize; 3] {
        let [(a, _), (b, _)] = self.factors;
        let result = self.rows * 8 / 32;
        [if self.halves() { result / 2 } else { result }, self.rows * self.inner / 32 / a, self.inner * 8 / 32 / b]
    }

    /// Register `n` of a lane's result; `register` gives a lane's register of a factor (0, 1) or the accumulator (2).
    pub fn result(&self, lane: usize, n: usize, register: impl Fn(usize, usize, usize) -> u64) -> u64 {
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
            return of((f64::from(f32::from_bits(before as u32)) + sum) as f32);
        }
        let total = i64::from(before as i32) + sum as i64;
        let most = if self.has("satfinite") { total.clamp(i32::MIN.into(), i32::MAX.into()) } else { total };
        u64::from(most as u32)
    }

    /// The instruction on these registers.
    pub fn text(&self, [d, a, b, c]: [usize; 4]) -> String {
        let list = |first: usize, count: usize| {
            let names: Vec<String> = (0..count).map(|n| super::name(R, (first + n) % super::EACH)).collect();
            format!("{{{}}}", names.join(", "))
        };
        let [results, of_a, of_b] = self.registers();
        let operands = [list(d, results), list(a, of_a), list(b, of_b), list(c, results)];
        format!("mma.sync.aligned.{} {};\n", self.modifiers, operands.join(", "))
    }
}
