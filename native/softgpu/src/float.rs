//! Floating-point details: minimum and maximum as PTX defines them, NaNs, and results that are rounded once, whatever the
//! direction.

use crate::ir::Rounding;

/// `min.f32`: a NaN loses, -0 is less than +0.
#[inline(always)]
pub fn min32(a: f32, b: f32) -> f32 {
    if a < b || b.is_nan() || (a == b && a.is_sign_negative()) { a } else { b }
}

/// `max.f32`
#[inline(always)]
pub fn max32(a: f32, b: f32) -> f32 {
    if a > b || b.is_nan() || (a == b && a.is_sign_positive()) { a } else { b }
}

/// `min.f64`
#[inline(always)]
pub fn min64(a: f64, b: f64) -> f64 {
    if a < b || b.is_nan() || (a == b && a.is_sign_negative()) { a } else { b }
}

/// `max.f64`
#[inline(always)]
pub fn max64(a: f64, b: f64) -> f64 {
    if a > b || b.is_nan() || (a == b && a.is_sign_positive()) { a } else { b }
}

/// `min.NaN`: a NaN wins.
pub fn min_nan64(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { min64(a, b) }
}

/// `max.NaN`
pub fn max_nan64(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { max64(a, b) }
}

/// A number of single precision, or a zero of its sign if it is below the smallest normal one.
pub fn flushed32(v: f32) -> f32 {
    if v.is_subnormal() { 0f32.copysign(v) } else { v }
}

/// Operations that exist with `.rz`, `.rm` and `.rp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Rcp,
    Sqrt,
}

/// What arithmetic in single precision gives where there is no number: PTX leaves it open, GPUs have this.
pub const NAN32: u32 = 0x7fff_ffff;

/// The bits of a result in single precision.
#[inline(always)]
pub fn single(v: f32) -> u32 {
    if v.is_nan() { NAN32 } else { v.to_bits() }
}

/// A sum that is exactly zero: negative if both numbers are, or where a direction goes down and they differ.
pub fn zero_sum(a: f64, b: f64, rounding: Rounding) -> f64 {
    let (a, b) = (a.is_sign_negative(), b.is_sign_negative());
    if (a && b) || (a != b && rounding == Rounding::Down) { -0.0 } else { 0.0 }
}

/// A result rounded to odd: the exact one if it is a double, else of its two neighbours the one whose last bit is set.
/// Rounding it again to a format of at most 51 bits is as if the exact result had been rounded.  `nearest` is the double
/// nearest to the exact result, `error` has the sign of what it lacks.
fn odd(nearest: f64, error: f64) -> f64 {
    let bits = nearest.to_bits();
    if bits & 1 == 1 || !nearest.is_finite() || error == 0.0 || error.is_nan() {
        return nearest;
    }
    f64::from_bits(if (error > 0.0) == (nearest > 0.0) { bits + 1 } else { bits - 1 })
}

/// `a + b`, rounded to [`odd`].  Their magnitudes are far from a double's ends.
pub fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let other = sum - a;
    odd(sum, (a - (sum - other)) + (b - other))
}

/// An integer of 64 bits, rounded to [`odd`].
pub fn integer_to_odd(n: i128) -> f64 {
    let nearest = if n < 0 { n as i64 as f64 } else { n as u64 as f64 };
    odd(nearest, (n - nearest as i128) as f64)
}

fn quotient_to_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    odd(quotient, (-quotient).mul_add(b, a) * b.signum())
}

fn root_to_odd(a: f64) -> f64 {
    let root = a.sqrt();
    odd(root, (-root).mul_add(root, a))
}

/// A double that is exact, or rounded to [`odd`], in single precision.
pub fn narrow32(v: f64, rounding: Rounding) -> f32 {
    let nearest = v as f32;
    let value = f64::from(nearest);
    match rounding {
        Rounding::Down if value > v => nearest.next_down(),
        Rounding::Up if value < v => nearest.next_up(),
        Rounding::Zero if value.abs() > v.abs() && v > 0.0 => nearest.next_down(),
        Rounding::Zero if value.abs() > v.abs() => nearest.next_up(),
        _ => nearest,
    }
}

/// An operation of single precision, rounded as asked.  Products are exact in double precision.
pub fn directed32(op: Arithmetic, rounding: Rounding, a: f32, b: f32, c: f32) -> f32 {
    use Arithmetic::*;
    let [a, b, c] = [a, b, c].map(f64::from);
    let (x, y) = match op {
        Add => (a, b),
        Sub => (a, -b),
        Fma => (a * b, c),
        Mul => return narrow32(a * b, rounding),
        Div => return narrow32(quotient_to_odd(a, b), rounding),
        Rcp => return narrow32(quotient_to_odd(1.0, a), rounding),
        Sqrt => return narrow32(root_to_odd(a), rounding),
    };
    let sum = sum_to_odd(x, y);
    narrow32(if sum == 0.0 { zero_sum(x, y, rounding) } else { sum }, rounding)
}
