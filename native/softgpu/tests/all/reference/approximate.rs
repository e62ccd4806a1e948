//! Approximations: their results go nowhere but to memory, where they are compared within what the PTX ISA promises.

use super::Kind::{self, *};
use super::exact::{BF16, F16, F32, F64, Way};
use super::{Block, Maker, Statement, Text, name, put};

/// Results of approximations that a thread keeps.
pub const NEAR: usize = 4;

/// A number that has been approximated, and how far one may be from it: relative to it, and at all.
#[derive(Clone, Copy, Default, Debug)]
pub struct Near {
    pub value: f64,
    relative: f64,
    absolute: f64,
}

impl Near {
    /// Whether a number is near enough.
    pub fn accepts(&self, got: f64) -> bool {
        let far = (got - self.value).abs();
        got == self.value
            || (got.is_nan() && self.value.is_nan())
            || far <= self.relative * self.value.abs() + self.absolute
    }
}

/// An approximation: its name, type, sources, value, and how far from it one may be, relatively and at all.
type Function = (&'static str, Kind, usize, fn(f64, f64) -> f64, f64, f64);

/// 2 to this power.
const fn power(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// Less than the least normal number of single precision: it may be rounded to a multiple of 2^-149.
const LITTLE: f64 = power(-149);

/// By more than 2^126 it is zero; of infinity it is no number.
fn near_quotient(x: f64, y: f64) -> f64 {
    if y.abs() > power(126) { x * 0.0 } else { x / y }
}

const FUNCTIONS: [Function; 26] = [
    ("rcp.approx.f32", F, 1, |x, _| 1.0 / x, power(-23), LITTLE),
    ("sqrt.approx.f32", F, 1, |x, _| x.sqrt(), power(-23), LITTLE),
    ("rsqrt.approx.f32", F, 1, |x, _| 1.0 / x.sqrt(), power(-22), LITTLE),
    ("div.approx.f32", F, 2, near_quotient, power(-22), LITTLE),
    ("div.full.f32", F, 2, |x, y| x / y, power(-22), LITTLE),
    ("ex2.approx.f32", F, 1, |x, _| x.exp2(), power(-22), LITTLE),
    ("lg2.approx.f32", F, 1, |x, _| x.log2(), power(-22), power(-22)),
    ("tanh.approx.f32", F, 1, |x, _| x.tanh(), power(-11), LITTLE),
    ("sin.approx.f32", F, 1, |x, _| x.sin(), 0.0, power(-20)),
    ("cos.approx.f32", F, 1, |x, _| x.cos(), 0.0, power(-20)),
    ("rcp.approx.ftz.f32", F, 1, |x, _| 1.0 / x, power(-23), LITTLE),
    ("sqrt.approx.ftz.f32", F, 1, |x, _| x.sqrt(), power(-23), LITTLE),
    ("rsqrt.approx.ftz.f32", F, 1, |x, _| 1.0 / x.sqrt(), power(-22), LITTLE),
    ("div.full.ftz.f32", F, 2, |x, y| x / y, power(-22), LITTLE),
    ("ex2.approx.ftz.f32", F, 1, |x, _| x.exp2(), power(-22), LITTLE),
    ("lg2.approx.ftz.f32", F, 1, |x, _| x.log2(), power(-22), power(-22)),
    ("rcp.approx.ftz.f64", E, 1, |x, _| 1.0 / x, power(-20), power(-1022)),
    ("rsqrt.approx.ftz.f64", E, 1, |x, _| 1.0 / x.sqrt(), power(-20), power(-1022)),
    ("rsqrt.approx.f64", E, 1, |x, _| 1.0 / x.sqrt(), power(-20), power(-1022)),
    ("ex2.approx.f16", H, 1, |x, _| x.exp2(), power(-9), power(-24)),
    ("tanh.approx.f16", H, 1, |x, _| x.tanh(), power(-9), power(-24)),
    ("ex2.approx.ftz.bf16", H, 1, |x, _| x.exp2(), power(-7), power(-126)),
    ("tanh.approx.bf16", H, 1, |x, _| x.tanh(), power(-7), power(-126)),
    ("ex2.approx.f16x2", R, 1, |x, _| x.exp2(), power(-9), power(-24)),
    ("tanh.approx.f16x2", R, 1, |x, _| x.tanh(), power(-9), power(-24)),
    ("tanh.approx.bf16x2", R, 1, |x, _| x.tanh(), power(-7), power(-126)),
];

/// A function with its sources, and where its result is kept.
struct Approximate(usize, [usize; 2], usize);

pub fn make(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let sources = [maker.register(), maker.register()];
    Some(Box::new(Approximate(maker.pick(FUNCTIONS.len()), sources, maker.pick(NEAR))))
}

impl Statement for Approximate {
    fn write(&self, text: &mut Text) {
        let Approximate(function, sources, place) = self;
        let (operation, kind, count, ..) = FUNCTIONS[*function];
        let sources: Vec<String> = sources[..count].iter().map(|n| name(kind, *n)).collect();
        let (sources, brain) = (sources.join(", "), operation.contains("bf16"));
        // Every format has its values among those of double precision.
        let widened = if brain {
            "cvt.u32.u16 %t6, %w0; shl.b32 %t6, %t6, 16; mov.b32 %x0, %t6;"
        } else {
            "cvt.f32.f16 %x0, %w0;"
        };
        match kind {
            F => put!(text, "{operation} %x0, {sources}; cvt.f64.f32 %y0, %x0;"),
            E => put!(text, "{operation} %y0, {sources};"),
            H => put!(text, "{operation} %w0, {sources}; {widened} cvt.f64.f32 %y0, %x0;"),
            // Of a pair the upper half is kept.
            _ => put!(text, "{operation} %t7, {sources}; mov.b32 {{%w1, %w0}}, %t7; {widened} cvt.f64.f32 %y0, %x0;"),
        }
        put!(text, "st.global.f64 [%o4+{}], %y0;", 8 * place);
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let Approximate(function, sources, place) = self;
        let (operation, kind, _, value, relative, absolute) = FUNCTIONS[*function];
        let format = match kind {
            F => F32,
            E => F64,
            _ if operation.contains("bf16") => BF16,
            _ => F16,
        };
        let flushes = operation.contains(".ftz.");
        let wide = |bits: u64| {
            let number = format.decode(if flushes { format.flushed(bits) } else { bits });
            f64::from_bits(F64.encode(&number, Way::Nearest))
        };
        for at in active {
            let lane = &mut block.lanes[*at];
            let [x, y] = sources.map(|n| wide(lane.get(kind, n) >> if kind == R { 16 } else { 0 }));
            // What is too large for the format is infinite.
            let value = wide(format.encode(&F64.decode(value(x, y).to_bits()), Way::Nearest));
            lane.near[*place] = Near { value, relative, absolute };
        }
    }
}
