//! Random programs, and a slow interpreter of them: one lane, one statement at a time.
//!
//! A program is made as a tree of statements, written out as PTX, and evaluated here by Rust's own arithmetic.

mod matrix;

use crate::common::Random;

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
/// Words of the table that every thread reads.
pub const TABLE: usize = 256;
/// Words that a thread writes to.
pub const OWN: usize = 16;

fn name(kind: Kind, number: usize) -> String {
    format!("%{}{number}", ["p", "h", "r", "d", "f", "e"][kind as usize])
}

/// An instruction: its text up to the operands, its result, its sources, and what it computes from their bits.
type Form = (&'static str, Kind, &'static [Kind], fn(&[u64]) -> u64);

fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}
fn e(bits: u64) -> f64 {
    f64::from_bits(bits)
}
/// A result of single precision; where it is no number, the bits that GPUs give.
fn of(v: f32) -> u64 {
    u64::from(if v.is_nan() { 0x7fff_ffff } else { v.to_bits() })
}
fn w(v: u32) -> u64 {
    u64::from(v)
}
fn s(v: u64) -> i32 {
    v as i32
}
fn least(a: f64, b: f64) -> f64 {
    if a.is_nan() || (b < a) || (a == b && b.is_sign_negative()) { b } else { a }
}
fn most(a: f64, b: f64) -> f64 {
    if a.is_nan() || (b > a) || (a == b && b.is_sign_positive()) { b } else { a }
}

/// A direction of rounding.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Down,
    Up,
    Zero,
}

/// The number in single precision that lies in a direction from a value.
fn toward(v: f64, way: Way) -> f32 {
    let near = v as f32;
    let (low, high) = (f64::from(near) < v, f64::from(near) > v);
    match way {
        Way::Down | Way::Zero if high && (way == Way::Down || v > 0.0) => near.next_down(),
        Way::Up | Way::Zero if low && (way == Way::Up || v < 0.0) => near.next_up(),
        _ => near,
    }
}

/// A sum that lies in a direction from the exact one: of the doubles on both sides of that, one tells.
fn sum(a: f32, b: f32, way: Way) -> f32 {
    let (a, b) = (f64::from(a), f64::from(b));
    let near = a + b;
    if near == 0.0 {
        let negative = a.is_sign_negative() && b.is_sign_negative();
        let differ = a.is_sign_negative() != b.is_sign_negative();
        return if negative || (differ && way == Way::Down) { -0.0 } else { 0.0 };
    }
    if !near.is_finite() {
        return near as f32;
    }
    // What the double lacks, the smaller operand first taken off the larger.
    let (large, little) = if a.abs() > b.abs() { (a, b) } else { (b, a) };
    let lacks = little - (near - large);
    let exact = match lacks {
        l if l > 0.0 && f64::from(near as f32) == near => near.next_up(),
        l if l < 0.0 && f64::from(near as f32) == near => near.next_down(),
        _ => near,
    };
    toward(exact, way)
}

/// The nearest f16, ties to even, found by halving.
fn half_of(v: f64) -> u64 {
    let sign = u64::from(v.is_sign_negative()) << 15;
    if v.is_nan() {
        return 0x7fff;
    }
    let (mut low, mut high) = (0u64, 0x7c00u64);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if half(middle) <= v.abs() { low = middle } else { high = middle }
    }
    // Infinity stands where the next number would.
    let above = if high == 0x7c00 { 65536.0 } else { half(high) };
    let (down, up) = (v.abs() - half(low), above - v.abs());
    sign | if down < up || (down == up && low % 2 == 0) { low } else { high }
}

/// The value of an 8-bit float with so many fraction bits and such a bias; its NaNs and infinities are not asked for.
fn small(code: u64, fraction_bits: i32, bias: i32) -> f64 {
    let exponent = (code as i32 & 0x7f) >> fraction_bits;
    let fraction = f64::from(code as i32 & ((1 << fraction_bits) - 1)) / f64::from(1 << fraction_bits);
    let magnitude = match exponent {
        0 => fraction * f64::powi(2.0, 1 - bias),
        _ => (1.0 + fraction) * f64::powi(2.0, exponent - bias),
    };
    if code & 0x80 != 0 { -magnitude } else { magnitude }
}

/// The code of the nearest finite value, found by trying all; of two equally near ones the even.
fn nearest(v: f64, fraction_bits: i32, bias: i32, most: u64) -> u64 {
    if v.is_nan() {
        return 0x7f;
    }
    // What is larger than all becomes the largest.
    let magnitude = v.abs().min(small(most, fraction_bits, bias));
    let mut best = 0;
    for code in 1..=most {
        let distance = |code| (small(code, fraction_bits, bias) - magnitude).abs();
        let (new, old) = (distance(code), distance(best));
        if new < old || (new == old && code % 2 == 0) {
            best = code;
        }
    }
    best | u64::from(v.is_sign_negative()) << 7
}
fn e4m3(v: f64) -> u64 {
    nearest(v, 3, 7, 0x7e)
}
fn e5m2(v: f64) -> u64 {
    nearest(v, 2, 15, 0x7b)
}
fn half(bits: u64) -> f64 {
    let magnitude = match (bits >> 10 & 31, bits & 1023) {
        (31, 0) => f64::INFINITY,
        (31, _) => return f64::NAN,
        (0, fraction) => fraction as f64 * f64::powi(2.0, -24),
        (exponent, fraction) => (1024 + fraction) as f64 * f64::powi(2.0, exponent as i32 - 25),
    };
    if bits >> 15 & 1 == 1 { -magnitude } else { magnitude }
}
/// A value that an f16 has, as one.
fn to_half(v: f64) -> u64 {
    if v.is_nan() { 0x7fff } else { (0..0xffff).find(|h| half(*h).to_bits() == v.to_bits()).unwrap_or(0x7fff) }
}
fn from_e4m3(code: u64) -> u64 {
    to_half(if code & 0x7f == 0x7f { f64::NAN } else { small(code, 3, 7) })
}
fn from_e5m2(code: u64) -> u64 {
    to_half(match code & 0x7f {
        0x7d..=0x7f => f64::NAN,
        0x7c if code & 0x80 == 0 => f64::INFINITY,
        0x7c => f64::NEG_INFINITY,
        _ => small(code, 2, 15),
    })
}

const FORMS: &[Form] = &[
    ("cvt.rn.satfinite.e4m3x2.f32", H, &[F, F], |x| e4m3(f(x[0]).into()) << 8 | e4m3(f(x[1]).into())),
    ("cvt.rn.satfinite.e5m2x2.f32", H, &[F, F], |x| e5m2(f(x[0]).into()) << 8 | e5m2(f(x[1]).into())),
    ("cvt.rn.satfinite.e4m3x2.f16x2", H, &[R], |x| e4m3(half(x[0] >> 16)) << 8 | e4m3(half(x[0] & 0xffff))),
    ("cvt.rn.satfinite.e5m2x2.f16x2", H, &[R], |x| e5m2(half(x[0] >> 16)) << 8 | e5m2(half(x[0] & 0xffff))),
    ("cvt.rn.f16x2.e4m3x2", R, &[H], |x| from_e4m3(x[0] >> 8) << 16 | from_e4m3(x[0] & 0xff)),
    ("cvt.rn.f16x2.e5m2x2", R, &[H], |x| from_e5m2(x[0] >> 8) << 16 | from_e5m2(x[0] & 0xff)),
    ("mov.b32", R, &[R], |x| x[0]),
    ("mov.b64", D, &[D], |x| x[0]),
    ("add.u32", R, &[R, R], |x| w((x[0] as u32).wrapping_add(x[1] as u32))),
    ("sub.u32", R, &[R, R], |x| w((x[0] as u32).wrapping_sub(x[1] as u32))),
    ("mul.lo.u32", R, &[R, R], |x| w((x[0] as u32).wrapping_mul(x[1] as u32))),
    ("mul.hi.u32", R, &[R, R], |x| (x[0] * x[1]) >> 32),
    ("mul.hi.s32", R, &[R, R], |x| w(((i64::from(s(x[0])) * i64::from(s(x[1]))) >> 32) as u32)),
    ("mul.wide.u32", D, &[R, R], |x| x[0] * x[1]),
    ("mul.wide.s32", D, &[R, R], |x| (i64::from(s(x[0])) * i64::from(s(x[1]))) as u64),
    ("mad.lo.s32", R, &[R, R, R], |x| w((x[0] as u32).wrapping_mul(x[1] as u32).wrapping_add(x[2] as u32))),
    ("mad.wide.u32", D, &[R, R, D], |x| (x[0] * x[1]).wrapping_add(x[2])),
    ("mad.wide.s32", D, &[R, R, D], |x| (i64::from(s(x[0])) * i64::from(s(x[1]))).wrapping_add(x[2] as i64) as u64),
    ("div.u32", R, &[R, R], |x| w((x[0] as u32).checked_div(x[1] as u32).unwrap_or(u32::MAX))),
    ("rem.u32", R, &[R, R], |x| w((x[0] as u32).checked_rem(x[1] as u32).unwrap_or(x[0] as u32))),
    ("min.s32", R, &[R, R], |x| w(s(x[0]).min(s(x[1])) as u32)),
    ("max.s32", R, &[R, R], |x| w(s(x[0]).max(s(x[1])) as u32)),
    ("min.u32", R, &[R, R], |x| x[0].min(x[1])),
    ("max.u32", R, &[R, R], |x| x[0].max(x[1])),
    ("and.b32", R, &[R, R], |x| x[0] & x[1]),
    ("or.b32", R, &[R, R], |x| x[0] | x[1]),
    ("xor.b32", R, &[R, R], |x| x[0] ^ x[1]),
    ("not.b32", R, &[R], |x| w(!x[0] as u32)),
    ("neg.s32", R, &[R], |x| w((x[0] as u32).wrapping_neg())),
    ("abs.s32", R, &[R], |x| w(s(x[0]).wrapping_abs() as u32)),
    ("shl.b32", R, &[R, R], |x| w((x[0] as u32).checked_shl(x[1] as u32).unwrap_or(0))),
    ("shr.u32", R, &[R, R], |x| w((x[0] as u32).checked_shr(x[1] as u32).unwrap_or(0))),
    ("shr.s32", R, &[R, R], |x| w((s(x[0]) >> (x[1] as u32).min(31)) as u32)),
    ("popc.b32", R, &[R], |x| w(x[0].count_ones())),
    ("clz.b32", R, &[R], |x| w((x[0] as u32).leading_zeros())),
    ("brev.b32", R, &[R], |x| w((x[0] as u32).reverse_bits())),
    ("sad.u32", R, &[R, R, R], |x| w((x[0] as u32).abs_diff(x[1] as u32).wrapping_add(x[2] as u32))),
    ("add.u64", D, &[D, D], |x| x[0].wrapping_add(x[1])),
    ("sub.u64", D, &[D, D], |x| x[0].wrapping_sub(x[1])),
    ("mul.lo.u64", D, &[D, D], |x| x[0].wrapping_mul(x[1])),
    ("mul.hi.u64", D, &[D, D], |x| ((u128::from(x[0]) * u128::from(x[1])) >> 64) as u64),
    ("mad.lo.s64", D, &[D, D, D], |x| x[0].wrapping_mul(x[1]).wrapping_add(x[2])),
    ("min.s64", D, &[D, D], |x| (x[0] as i64).min(x[1] as i64) as u64),
    ("max.u64", D, &[D, D], |x| x[0].max(x[1])),
    ("and.b64", D, &[D, D], |x| x[0] & x[1]),
    ("xor.b64", D, &[D, D], |x| x[0] ^ x[1]),
    ("not.b64", D, &[D], |x| !x[0]),
    ("neg.s64", D, &[D], |x| x[0].wrapping_neg()),
    ("shl.b64", D, &[D, R], |x| x[0].checked_shl(x[1] as u32).unwrap_or(0)),
    ("shr.u64", D, &[D, R], |x| x[0].checked_shr(x[1] as u32).unwrap_or(0)),
    ("shr.s64", D, &[D, R], |x| ((x[0] as i64) >> (x[1] as u32).min(63)) as u64),
    ("div.s64", D, &[D, D], |x| {
        let (a, b) = (x[0] as i64, x[1] as i64);
        if b == 0 { u64::MAX } else { a.wrapping_div(b) as u64 }
    }),
    ("add.s16", H, &[H, H], |x| (x[0] + x[1]) & 0xffff),
    ("sub.s16", H, &[H, H], |x| x[0].wrapping_sub(x[1]) & 0xffff),
    ("mul.lo.s16", H, &[H, H], |x| (x[0] * x[1]) & 0xffff),
    ("mul.wide.s16", R, &[H, H], |x| w((i32::from(x[0] as i16) * i32::from(x[1] as i16)) as u32)),
    ("mul.wide.u16", R, &[H, H], |x| w(u32::from(x[0] as u16) * u32::from(x[1] as u16))),
    ("min.s16", H, &[H, H], |x| u64::from((x[0] as i16).min(x[1] as i16) as u16)),
    ("max.u16", H, &[H, H], |x| x[0].max(x[1])),
    ("not.b16", H, &[H], |x| !x[0] & 0xffff),
    ("shr.s16", H, &[H, R], |x| u64::from(((x[0] as i16) >> (x[1] as u32).min(15)) as u16)),
    ("cvt.u32.u64", R, &[D], |x| w(x[0] as u32)),
    ("cvt.u64.u32", D, &[R], |x| x[0]),
    ("cvt.s64.s32", D, &[R], |x| i64::from(s(x[0])) as u64),
    ("cvt.u16.u32", H, &[R], |x| x[0] & 0xffff),
    ("cvt.s32.s16", R, &[H], |x| w(i32::from(x[0] as i16) as u32)),
    ("cvt.u32.u16", R, &[H], |x| x[0]),
    ("cvt.s32.s8", R, &[R], |x| w(i32::from(x[0] as i8) as u32)),
    ("cvt.sat.u8.s32", R, &[R], |x| w(s(x[0]).clamp(0, 255) as u32)),
    ("cvt.rn.f32.s32", F, &[R], |x| of(s(x[0]) as f32)),
    ("cvt.rn.f32.u32", F, &[R], |x| of(x[0] as u32 as f32)),
    ("cvt.rn.f64.s32", E, &[R], |x| f64::from(s(x[0])).to_bits()),
    ("cvt.rn.f64.u32", E, &[R], |x| f64::from(x[0] as u32).to_bits()),
    ("cvt.rn.f64.s64", E, &[D], |x| (x[0] as i64 as f64).to_bits()),
    ("cvt.rzi.s32.f32", R, &[F], |x| w(f(x[0]) as i32 as u32)),
    ("cvt.rzi.u32.f32", R, &[F], |x| w(f(x[0]) as u32)),
    ("cvt.rni.s32.f32", R, &[F], |x| w(f(x[0]).round_ties_even() as i32 as u32)),
    ("cvt.rzi.s32.f64", R, &[E], |x| w(if e(x[0]).is_nan() { 1 << 31 } else { e(x[0]) as i32 as u32 })),
    ("cvt.rmi.u32.f64", R, &[E], |x| w(if e(x[0]).is_nan() { 1 << 31 } else { e(x[0]).floor() as u32 })),
    ("cvt.rn.satfinite.f16.f32", H, &[F], |x| match half_of(f(x[0]).into()) {
        0x7fff => 0x7fff,
        bits => bits.min(0x7bff | bits & 0x8000),
    }),
    ("cvt.rz.f32.f64", F, &[E], |x| of(toward(e(x[0]), Way::Zero))),
    ("cvt.rp.f32.s64", F, &[D], |x| {
        let (n, near) = (x[0] as i64, x[0] as i64 as f32);
        of(if (near as i128) < i128::from(n) { near.next_up() } else { near })
    }),
    ("add.rm.f32", F, &[F, F], |x| of(sum(f(x[0]), f(x[1]), Way::Down))),
    ("add.rp.f32", F, &[F, F], |x| of(sum(f(x[0]), f(x[1]), Way::Up))),
    ("sub.rz.f32", F, &[F, F], |x| of(sum(f(x[0]), -f(x[1]), Way::Zero))),
    ("mul.rm.f32", F, &[F, F], |x| of(toward(f64::from(f(x[0])) * f64::from(f(x[1])), Way::Down))),
    ("mul.rp.f32", F, &[F, F], |x| of(toward(f64::from(f(x[0])) * f64::from(f(x[1])), Way::Up))),
    ("mul.rz.f32", F, &[F, F], |x| of(toward(f64::from(f(x[0])) * f64::from(f(x[1])), Way::Zero))),
    ("setp.lt.f16", P, &[H, H], |x| u64::from(half(x[0]) < half(x[1]))),
    ("setp.gtu.bf16", P, &[H, H], |x| u64::from(f(x[0] << 16).partial_cmp(&f(x[1] << 16)).is_none_or(|o| o.is_gt()))),
    ("set.eq.f16x2.f16x2", R, &[R, R], |x| {
        let one =
            |shift: u32| if half(x[0] >> shift & 0xffff) == half(x[1] >> shift & 0xffff) { 0x3c00 << shift } else { 0 };
        one(0) | one(16)
    }),
    ("cvt.f64.f32", E, &[F], |x| f64::from(f(x[0])).to_bits()),
    ("cvt.rn.f32.f64", F, &[E], |x| of(e(x[0]) as f32)),
    ("add.f32", F, &[F, F], |x| of(f(x[0]) + f(x[1]))),
    ("sub.f32", F, &[F, F], |x| of(f(x[0]) - f(x[1]))),
    ("mul.f32", F, &[F, F], |x| of(f(x[0]) * f(x[1]))),
    ("add.sat.f32", F, &[F, F], |x| {
        let v = f(x[0]) + f(x[1]);
        of(if v > 0.0 { v.min(1.0) } else { 0.0 })
    }),
    ("fma.rn.f32", F, &[F, F, F], |x| of(f(x[0]).mul_add(f(x[1]), f(x[2])))),
    ("div.rn.f32", F, &[F, F], |x| of(f(x[0]) / f(x[1]))),
    ("sqrt.rn.f32", F, &[F], |x| of(f(x[0]).sqrt())),
    ("min.f32", F, &[F, F], |x| of(least(f64::from(f(x[0])), f64::from(f(x[1]))) as f32)),
    ("max.f32", F, &[F, F], |x| of(most(f64::from(f(x[0])), f64::from(f(x[1]))) as f32)),
    ("abs.f32", F, &[F], |x| x[0] & 0x7fff_ffff),
    ("neg.f32", F, &[F], |x| x[0] ^ 0x8000_0000),
    ("mov.b32", F, &[R], |x| x[0]),
    ("add.f64", E, &[E, E], |x| (e(x[0]) + e(x[1])).to_bits()),
    ("mul.f64", E, &[E, E], |x| (e(x[0]) * e(x[1])).to_bits()),
    ("fma.rn.f64", E, &[E, E, E], |x| e(x[0]).mul_add(e(x[1]), e(x[2])).to_bits()),
    ("div.rn.f64", E, &[E, E], |x| (e(x[0]) / e(x[1])).to_bits()),
    ("sqrt.rn.f64", E, &[E], |x| e(x[0]).sqrt().to_bits()),
    ("min.f64", E, &[E, E], |x| least(e(x[0]), e(x[1])).to_bits()),
    ("max.f64", E, &[E, E], |x| most(e(x[0]), e(x[1])).to_bits()),
    ("neg.f64", E, &[E], |x| x[0] ^ 1 << 63),
    ("setp.lt.s32", P, &[R, R], |x| u64::from(s(x[0]) < s(x[1]))),
    ("setp.hi.u32", P, &[R, R], |x| u64::from(x[0] > x[1])),
    ("setp.eq.u32", P, &[R, R], |x| u64::from(x[0] == x[1])),
    ("setp.ne.b64", P, &[D, D], |x| u64::from(x[0] != x[1])),
    ("setp.le.u64", P, &[D, D], |x| u64::from(x[0] <= x[1])),
    ("setp.gt.s64", P, &[D, D], |x| u64::from(x[0] as i64 > x[1] as i64)),
    ("setp.lt.s16", P, &[H, H], |x| u64::from((x[0] as i16) < x[1] as i16)),
    ("setp.lt.f32", P, &[F, F], |x| u64::from(f(x[0]) < f(x[1]))),
    ("setp.geu.f32", P, &[F, F], |x| u64::from(!f(x[0]).partial_cmp(&f(x[1])).is_some_and(|o| o.is_lt()))),
    ("setp.ne.f32", P, &[F, F], |x| u64::from(f(x[0]).partial_cmp(&f(x[1])).is_some_and(|o| o.is_ne()))),
    ("setp.equ.f64", P, &[E, E], |x| u64::from(e(x[0]).partial_cmp(&e(x[1])).is_none_or(|o| o.is_eq()))),
    ("setp.nan.f64", P, &[E, E], |x| u64::from(e(x[0]).is_nan() || e(x[1]).is_nan())),
    ("and.pred", P, &[P, P], |x| x[0] & x[1]),
    ("or.pred", P, &[P, P], |x| x[0] | x[1]),
    ("xor.pred", P, &[P, P], |x| x[0] ^ x[1]),
    ("not.pred", P, &[P], |x| x[0] ^ 1),
    ("selp.b32", R, &[R, R, P], |x| if x[2] == 1 { x[0] } else { x[1] }),
    ("selp.b64", D, &[D, D, P], |x| if x[2] == 1 { x[0] } else { x[1] }),
    ("selp.f32", F, &[F, F, P], |x| if x[2] == 1 { x[0] } else { x[1] }),
    ("selp.f64", E, &[E, E, P], |x| if x[2] == 1 { x[0] } else { x[1] }),
];

/// A source: a register, or a constant of an integer kind.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    Register(usize),
    Constant(u64),
}

/// A statement of a program.
#[derive(Clone, Debug)]
pub enum Statement {
    /// A form with its result and sources, where the guard holds.
    Compute(usize, usize, Vec<Source>, Option<(usize, bool)>),
    /// `lop3` with its table.
    Lop3(usize, [usize; 3], u32),
    /// A word of the table: at the register's value, or at the thread's number plus so much.
    Load(usize, Option<usize>, u32),
    /// A word of the table at the thread's number plus so much, by the address or a copy of it.
    LoadCopied(usize, u32, bool),
    /// A 64-bit element of the table, at the register's value.
    LoadLong(usize, usize),
    /// Two words of the table.
    LoadPair([usize; 2], usize),
    /// A byte of the table, sign-extended.
    LoadByte(usize, usize),
    /// A word to the thread's own place; `spread`: the threads side by side.
    Store(usize, usize, bool),
    /// A word from there.
    Fetch(usize, usize, bool),
    /// Two or four words to the thread's places that lie together.
    StoreVector([usize; 4], usize, usize),
    /// 64 bits to two of them.
    StoreLong(usize, usize),
    /// The warp's tile in shared memory: the product of a row that all lanes read and each lane's own element, so many
    /// terms, is added to the first register.
    Tile(usize, [usize; 2], usize),
    /// Memory of the thread's own while the statements run: its number, how many words (the low four bits of the register
    /// and one more), and where it comes from.
    Scratch(usize, usize, Origin, Vec<Statement>),
    /// A word to, and from, such memory: its number, the register whose remainder is the place, the value.
    Keep(usize, usize, usize),
    Recall(usize, usize, usize),
    If(usize, Vec<Statement>, Vec<Statement>),
    /// As often as the low two bits of the register say, and once more.
    Loop(usize, usize, Vec<Statement>),
    /// Two words with carry or borrow: low and high results, their sources in the same order.
    Chain([usize; 2], [usize; 2], [usize; 2], bool),
    /// An atomic on a word of the thread's own: its number, the old value, the operand, the place.
    Update(usize, usize, usize, usize),
    /// A call of the program's function.
    Call(usize, [usize; 2]),
    /// Butterfly between all lanes of the warp.
    Shuffle(usize, usize, u32),
    /// Which lanes have the predicate.
    Ballot(usize, usize),
    /// A product of matrices: its form, and the first registers of result, factors and accumulator.
    Matrices(usize, [usize; 4]),
}

/// Atomics: name and what becomes of the old value.
type Update = (&'static str, fn(u32, u32) -> u32);

const UPDATES: &[Update] = &[
    ("add.u32", u32::wrapping_add),
    ("min.s32", |old, v| (old as i32).min(v as i32) as u32),
    ("max.u32", |old, v| old.max(v)),
    ("and.b32", |old, v| old & v),
    ("xor.b32", |old, v| old ^ v),
    ("exch.b32", |_, v| v),
    ("inc.u32", |old, v| if old >= v { 0 } else { old + 1 }),
    ("dec.u32", |old, v| if old == 0 || old > v { v } else { old - 1 }),
];

/// The function that programs call.
const FUNCTION: &str = ".func (.param .b32 r) mix(.param .b32 a, .param .b32 b)\n{\n.reg .pred %p; .reg .b32 %r<4>;\n\
    ld.param.u32 %r0, [a]; ld.param.u32 %r1, [b]; mad.lo.u32 %r2, %r0, 3, %r1; setp.gt.s32 %p, %r2, 0;\n\
    @%p bra end; xor.b32 %r2, %r2, 255;\nend: st.param.b32 [r], %r2; ret;\n}\n";

fn mix(a: u32, b: u32) -> u32 {
    let sum = a.wrapping_mul(3).wrapping_add(b);
    if sum as i32 > 0 { sum } else { sum ^ 255 }
}

/// Where memory of a thread comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `alloca`, with `stackrestore` behind; accessed as local memory.
    Stack,
    /// `alloca`, left until the thread ends; accessed by generic addresses.
    Left,
    /// `malloc` and `free`.
    Heap,
}

/// A program with the numbers it starts from.
pub struct Program {
    pub body: Vec<Statement>,
    loops: usize,
    /// Blocks with memory of their own, and those that are open.
    scratches: usize,
    open: Vec<usize>,
}

fn pick(r: &mut Random, n: usize) -> usize {
    (r.bits() >> 20) as usize % n
}

impl Program {
    /// A random program of about so many statements.
    pub fn random(r: &mut Random, size: usize) -> Program {
        let mut program = Program { body: Vec::new(), loops: 0, scratches: 0, open: Vec::new() };
        program.body = program.block(r, size, 0);
        program
    }

    fn block(&mut self, r: &mut Random, size: usize, depth: usize) -> Vec<Statement> {
        let mut out = Vec::new();
        let mut left = size;
        while left > 0 {
            left -= 1;
            let reg = |r: &mut Random| pick(r, EACH);
            out.push(match pick(r, 37) {
                36 if depth == 0 => Statement::Matrices(pick(r, matrix::FORMS.len()), [0; 4].map(|_| pick(r, EACH))),
                32 => Statement::Chain([reg(r), reg(r)], [reg(r), reg(r)], [reg(r), reg(r)], pick(r, 2) == 0),
                33 | 34 => Statement::Update(pick(r, UPDATES.len()), reg(r), reg(r), pick(r, OWN)),
                35 => Statement::Call(reg(r), [reg(r), reg(r)]),
                30 | 31 => Statement::LoadCopied(reg(r), pick(r, 192) as u32, pick(r, 2) == 0),
                11 => Statement::StoreVector([0; 4].map(|_| pick(r, EACH)), 2 + 2 * pick(r, 2), pick(r, OWN / 4) * 4),
                12 => Statement::StoreLong(reg(r), pick(r, OWN / 2) * 2),
                13 if depth == 0 => Statement::Tile(reg(r), [reg(r), reg(r)], [1, 3, 9, 16][pick(r, 4)]),
                14 if depth < 3 && left > 3 => {
                    let part = left / 2;
                    left -= part;
                    self.scratches += 1;
                    let (number, origin) =
                        (self.scratches - 1, [Origin::Stack, Origin::Left, Origin::Heap][pick(r, 3)]);
                    self.open.push(number);
                    let body = self.block(r, part, depth + 1);
                    self.open.pop();
                    Statement::Scratch(number, reg(r), origin, body)
                }
                15 | 16 if !self.open.is_empty() => {
                    Statement::Keep(self.open[pick(r, self.open.len())], reg(r), reg(r))
                }
                17 | 18 if !self.open.is_empty() => {
                    Statement::Recall(self.open[pick(r, self.open.len())], reg(r), reg(r))
                }
                0 => Statement::Load(reg(r), (pick(r, 2) == 0).then(|| pick(r, EACH)), pick(r, 64) as u32),
                1 => Statement::LoadLong(reg(r), reg(r)),
                2 => Statement::LoadPair([pick(r, 4), 4 + pick(r, 4)], reg(r)),
                3 => Statement::LoadByte(reg(r), reg(r)),
                4 => Statement::Store(reg(r), pick(r, OWN), pick(r, 2) == 0),
                5 => Statement::Fetch(reg(r), pick(r, OWN), pick(r, 2) == 0),
                6 => Statement::Lop3(reg(r), [reg(r), reg(r), reg(r)], pick(r, 256) as u32),
                7 if depth < 3 && left > 4 => {
                    let part = left / 3;
                    left -= 2 * part;
                    Statement::If(reg(r), self.block(r, part, depth + 1), self.block(r, part, depth + 1))
                }
                8 if depth < 2 && left > 4 => {
                    let part = left / 3;
                    left -= part;
                    self.loops += 1;
                    Statement::Loop(self.loops - 1, reg(r), self.block(r, part, depth + 1))
                }
                9 if depth == 0 => Statement::Shuffle(reg(r), reg(r), pick(r, 32) as u32),
                10 if depth == 0 => Statement::Ballot(reg(r), reg(r)),
                _ => {
                    let form = pick(r, FORMS.len());
                    let sources = FORMS[form].2.iter().map(|kind| {
                        let integer = matches!(kind, R | D) && !FORMS[form].0.contains('f');
                        if integer && pick(r, 3) == 0 {
                            Source::Constant([0, 1, 2, 5, 16, 31, 32, 255, 0x7fff_ffff][pick(r, 9)])
                        } else {
                            Source::Register(pick(r, EACH))
                        }
                    });
                    let sources = sources.collect();
                    let guard = (pick(r, 6) == 0).then(|| (pick(r, EACH), pick(r, 2) == 0));
                    Statement::Compute(form, pick(r, EACH), sources, guard)
                }
            });
        }
        out
    }

    /// The program as PTX: `k(table, own, out, threads)`.
    pub fn ptx(&self) -> String {
        let mut text = format!(
            ".version 8.1\n.target sm_89\n.address_size 64\n{FUNCTION}\
             .extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n\
             .shared .align 16 .b8 tile[512];\n.visible .entry k(.param .u64 table, .param .u64 own, \
             .param .u64 out, .param .u32 threads)\n{{\n",
        );
        for (kind, declared) in KINDS.iter().zip(DECLARED) {
            text += &format!(".reg .{declared} {}<{EACH}>;\n", name(*kind, 0).trim_end_matches('0'));
        }
        text +=
            &format!(".reg .b32 %t<8>, %n<{}>;\n.reg .b64 %a<8>;\n.reg .pred %q;\n.reg .f32 %x<3>;\n", self.loops + 1);
        let scratches = self.scratches + 1;
        text += &format!(".reg .b32 %m<{scratches}>;\n.reg .b64 %k<{scratches}>, %s<{scratches}>;\n");
        text += "ld.param.u64 %a0, [table]; ld.param.u64 %a1, [own]; ld.param.u64 %a2, [out]; ld.param.u32 %t4, [threads];\n\
                 mov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.s32 %t0, %t0, %t1, %t2;\n\
                 mul.wide.u32 %a3, %t2, 4; add.u64 %a3, %a0, %a3;\n";
        for number in 0..EACH {
            // What a thread starts from; the reference has the same in `Lane::new`.
            text += &format!(
                "mul.lo.u32 %r{number}, %t0, {}; xor.b32 %r{number}, %r{number}, {};\n\
                 mul.wide.u32 %d{number}, %r{number}, {}; cvt.u16.u32 %h{number}, %r{number};\n\
                 cvt.rn.f32.s32 %f{number}, %r{number}; mul.f32 %f{number}, %f{number}, 0f38000000;\n\
                 cvt.f64.f32 %e{number}, %f{number}; setp.lt.s32 %p{number}, %r{number}, 0;\n",
                MIX[number],
                number,
                MIX[7 - number]
            );
        }
        let mut labels = 0;
        write(&self.body, &mut text, &mut labels, &[]);
        let step = (KINDS.len() - 1) * EACH * 8;
        text += &format!("mul.wide.u32 %a4, %t0, {step}; add.u64 %a4, %a2, %a4;\n");
        for (at, kind) in KINDS[1..].iter().enumerate() {
            for number in 0..EACH {
                let from = name(*kind, number);
                let to = at * EACH * 8 + number * 8;
                let wide = match kind {
                    H => format!("cvt.u64.u16 %a5, {from};"),
                    R => format!("cvt.u64.u32 %a5, {from};"),
                    F => format!("mov.b32 %t5, {from}; cvt.u64.u32 %a5, %t5;"),
                    _ => format!("mov.b64 %a5, {from};"),
                };
                text += &format!("{wide} st.global.u64 [%a4+{to}], %a5;\n");
            }
        }
        text + "ret;\n}\n"
    }

    /// What the program does to the lanes of one warp, to their own words, and (in place) to their registers.
    pub fn evaluate(&self, lanes: &mut [Lane], table: &[u32]) {
        let all: Vec<usize> = (0..lanes.len()).collect();
        execute(&self.body, lanes, &all, table);
    }
}

const MIX: [u32; 8] = [1, 0x9e37, 0x0100_0193, 3, 0x85eb_ca6b, 17, 0x27d4_eb2f, 255];

fn kept(number: usize, place: usize) -> String {
    format!("rem.u32 %t6, %r{place}, %m{number}; mad.wide.u32 %a6, %t6, 4, %k{number};")
}

/// Writes statements; `origins`: of the memory that is there around them.
fn write(body: &[Statement], text: &mut String, labels: &mut usize, origins: &[(usize, Origin)]) {
    let space = |number| if origins.contains(&(number, Origin::Stack)) { ".local" } else { "" };
    for statement in body {
        match statement {
            Statement::Compute(form, d, sources, guard) => {
                let (opcode, to, kinds, _) = FORMS[*form];
                if let Some((p, negate)) = guard {
                    *text += &format!("@{}%p{p} ", if *negate { "!" } else { "" });
                }
                let mut operands = vec![name(to, *d)];
                for (source, kind) in sources.iter().zip(kinds) {
                    operands.push(match source {
                        Source::Register(n) => name(*kind, *n),
                        Source::Constant(v) => v.to_string(),
                    });
                }
                *text += &format!("{opcode} {};\n", operands.join(", "));
            }
            Statement::Lop3(d, [a, b, c], table) => {
                *text += &format!("lop3.b32 %r{d}, %r{a}, %r{b}, %r{c}, {table};\n");
            }
            Statement::Load(d, Some(index), _) => {
                *text += &format!(
                    "and.b32 %t6, %r{index}, 255; mul.wide.u32 %a6, %t6, 4; add.u64 %a6, %a0, %a6; ld.global.u32 %r{d}, [%a6];\n"
                );
            }
            Statement::Load(d, None, offset) => *text += &format!("ld.global.u32 %r{d}, [%a3+{}];\n", 4 * offset),
            Statement::LoadCopied(d, offset, copied) => {
                let address = if *copied { "cvta.global.u64 %a6, %a3; ld.global.u32" } else { "ld.global.u32" };
                let from = if *copied { "%a6" } else { "%a3" };
                *text += &format!("{address} %r{d}, [{from}+{}];\n", 4 * offset);
            }
            Statement::LoadLong(d, index) => {
                *text += &format!(
                    "and.b32 %t6, %r{index}, 127; mul.wide.u32 %a6, %t6, 8; add.u64 %a6, %a0, %a6; ld.global.u64 %d{d}, [%a6];\n"
                );
            }
            Statement::LoadPair([d, q], index) => {
                *text += &format!(
                    "and.b32 %t6, %r{index}, 127; mul.wide.u32 %a6, %t6, 8; add.u64 %a6, %a0, %a6; ld.global.v2.u32 {{%r{d}, %r{q}}}, [%a6];\n"
                );
            }
            Statement::LoadByte(d, index) => {
                *text += &format!(
                    "and.b32 %t6, %r{index}, 1023; cvt.u64.u32 %a6, %t6; add.u64 %a6, %a0, %a6; ld.global.s8 %r{d}, [%a6];\n"
                );
            }
            Statement::Store(from, place, spread) => {
                *text += &format!("{} st.global.u32 [%a6], %r{from};\n", own(*place, *spread));
            }
            Statement::Fetch(to, place, spread) => {
                *text += &format!("{} ld.global.u32 %r{to}, [%a6];\n", own(*place, *spread));
            }
            Statement::StoreVector(from, count, place) => {
                let values: Vec<String> = from[..*count].iter().map(|n| format!("%r{n}")).collect();
                let values = values.join(", ");
                *text += &format!("{} st.global.v{count}.u32 [%a6], {{{values}}};\n", own(*place, false));
            }
            Statement::StoreLong(from, place) => {
                *text += &format!("{} st.global.u64 [%a6], %d{from};\n", own(*place, false));
            }
            Statement::Tile(d, [a, b], terms) => {
                *text += &format!(
                    "mov.u64 %a5, tile; mul.wide.u32 %a6, %t2, 4; add.u64 %a6, %a5, %a6; and.b32 %t6, %t2, -32; \
                     mul.wide.u32 %a7, %t6, 4; add.u64 %a5, %a5, %a7;\n\
                     st.shared.f32 [%a6], %f{a}; st.shared.f32 [%a6+256], %f{b}; bar.sync 0;\n"
                );
                for term in 0..*terms {
                    let at = 4 * term;
                    *text += &format!(
                        "ld.shared.f32 %x0, [%a5+{at}]; ld.shared.f32 %x1, [%a6+256]; fma.rn.f32 %f{d}, %x0, %x1, %f{d};\n"
                    );
                }
                *text += "bar.sync 0;\n";
            }
            Statement::Scratch(number, words, origin, body) => {
                *labels += 1;
                let label = *labels;
                *text += &format!(
                    "and.b32 %m{number}, %r{words}, 15; add.u32 %m{number}, %m{number}, 1; mul.wide.u32 %a6, %m{number}, 4;\n"
                );
                *text += &match origin {
                    Origin::Stack => format!("stacksave.u64 %s{number}; alloca.u64 %k{number}, %a6;\n"),
                    Origin::Left => format!("alloca.u64 %k{number}, %a6, 64; cvta.local.u64 %k{number}, %k{number};\n"),
                    Origin::Heap => format!(
                        "{{ .param .b64 n; .param .b64 r; st.param.b64 [n], %a6; call (r), malloc, (n); \
                         ld.param.b64 %k{number}, [r]; }}\n"
                    ),
                };
                let store = if *origin == Origin::Stack { "st.local" } else { "st" };
                *text += &format!(
                    "mov.b32 %t6, 0;\n$fill{label}:\nmad.wide.u32 %a6, %t6, 4, %k{number}; {store}.u32 [%a6], %t6;\n\
                     add.u32 %t6, %t6, 1; setp.lt.u32 %q, %t6, %m{number};\n@%q bra $fill{label};\n"
                );
                write(body, text, labels, &[origins, &[(*number, *origin)]].concat());
                *text += &match origin {
                    Origin::Stack => format!("stackrestore.u64 %s{number};\n"),
                    Origin::Left => String::new(),
                    Origin::Heap => {
                        format!("{{ .param .b64 p; st.param.b64 [p], %k{number}; call free, (p); }}\n")
                    }
                };
            }
            Statement::Keep(number, place, value) => {
                *text += &format!("{} st{}.u32 [%a6], %r{value};\n", kept(*number, *place), space(*number));
            }
            Statement::Recall(number, place, to) => {
                *text += &format!("{} ld{}.u32 %r{to}, [%a6];\n", kept(*number, *place), space(*number));
            }
            Statement::Chain([low, high], a, b, subtract) => {
                let name = if *subtract { "sub" } else { "add" };
                let ([a, c], [b, e]) = (a, b);
                *text += &format!("{name}.cc.u32 %r{low}, %r{a}, %r{b}; {name}c.u32 %r{high}, %r{c}, %r{e};\n");
            }
            Statement::Update(which, old, value, place) => {
                let (name, _) = UPDATES[*which];
                *text += &format!("{} atom.global.{name} %r{old}, [%a6], %r{value};\n", own(*place, false));
            }
            Statement::Call(d, [a, b]) => {
                *text += &format!(
                    "{{ .param .b32 x; .param .b32 y; .param .b32 z; st.param.b32 [x], %r{a}; st.param.b32 [y], %r{b};\n\
                     call (z), mix, (x, y); ld.param.b32 %r{d}, [z]; }}\n"
                );
            }
            Statement::If(p, yes, no) => {
                *labels += 1;
                let label = *labels;
                *text += &format!("@!%p{p} bra $else{label};\n");
                write(yes, text, labels, origins);
                *text += &format!("bra $end{label};\n$else{label}:\n");
                write(no, text, labels, origins);
                *text += &format!("$end{label}:\n");
            }
            Statement::Loop(counter, times, body) => {
                *labels += 1;
                let label = *labels;
                *text += &format!("and.b32 %n{counter}, %r{times}, 3;\n$loop{label}:\n");
                write(body, text, labels, origins);
                *text += &format!(
                    "sub.u32 %n{counter}, %n{counter}, 1; setp.ge.s32 %q, %n{counter}, 0;\n@%q bra $loop{label};\n"
                );
            }
            Statement::Shuffle(d, a, with) => {
                *text += &format!("shfl.sync.bfly.b32 %r{d}, %r{a}, {with}, 31, -1;\n");
            }
            Statement::Matrices(form, registers) => *text += &matrix::FORMS[*form].text(*registers),
            Statement::Ballot(d, p) => *text += &format!("vote.sync.ballot.b32 %r{d}, %p{p}, -1;\n"),
        }
    }
}

fn own(place: usize, spread: bool) -> String {
    if spread {
        format!("mad.lo.u32 %t6, %t4, {place}, %t0; mul.wide.u32 %a6, %t6, 4; add.u64 %a6, %a1, %a6;")
    } else {
        format!(
            "mad.lo.u32 %t6, %t0, {OWN}, {place}; mad.wide.u32 %a6, %t4, {}, %a1; mad.wide.u32 %a6, %t6, 4, %a6;",
            4 * OWN
        )
    }
}

/// One thread's registers and words.
#[derive(Clone)]
pub struct Lane {
    /// By kind and number.
    pub registers: [[u64; EACH]; 6],
    thread: u32,
    counters: Vec<i64>,
    scratches: Vec<Vec<u32>>,
    /// Its own words: those side by side, those apart.
    pub own: [[u32; OWN]; 2],
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
            registers[R as usize][number] = w(r);
            registers[D as usize][number] = w(r) * w(MIX[7 - number]);
            registers[F as usize][number] = of(single);
            registers[E as usize][number] = f64::from(single).to_bits();
        }
        Lane { registers, thread, counters: vec![0; 1000], scratches: vec![Vec::new(); 1000], own: [[0; OWN]; 2] }
    }
}

fn execute(body: &[Statement], lanes: &mut [Lane], active: &[usize], table: &[u32]) {
    let word = |at: u64| table[at as usize];
    for statement in body {
        if let Statement::Shuffle(d, a, with) = statement {
            let values: Vec<u64> = lanes.iter().map(|l| l.registers[R as usize][*a]).collect();
            for (at, lane) in lanes.iter_mut().enumerate() {
                lane.registers[R as usize][*d] = values[at ^ *with as usize];
            }
            continue;
        }
        if let Statement::Ballot(d, p) = statement {
            let set = lanes.iter().enumerate().fold(0, |set, (at, l)| set | l.registers[P as usize][*p] << at);
            lanes.iter_mut().for_each(|l| l.registers[R as usize][*d] = set);
            continue;
        }
        if let Statement::Matrices(form, [d, a, b, c]) = statement {
            let form = &matrix::FORMS[*form];
            let before: Vec<[u64; EACH]> = lanes.iter().map(|l| l.registers[R as usize]).collect();
            let register = |of: usize, lane: usize, n: usize| before[lane][([*a, *b, *c][of] + n) % EACH];
            for (at, lane) in lanes.iter_mut().enumerate() {
                for n in 0..form.registers()[0] {
                    lane.registers[R as usize][(d + n) % EACH] = form.result(at, n, register);
                }
            }
            continue;
        }
        if let Statement::Tile(d, [a, b], terms) = statement {
            let row: Vec<u64> = lanes.iter().map(|l| l.registers[F as usize][*a]).collect();
            for lane in lanes.iter_mut() {
                let own = f(lane.registers[F as usize][*b]);
                let sum = f(lane.registers[F as usize][*d]);
                lane.registers[F as usize][*d] = of(row[..*terms].iter().fold(sum, |sum, x| f(*x).mul_add(own, sum)));
            }
            continue;
        }
        if let Statement::Scratch(number, words, _, body) = statement {
            for at in active {
                let words = (lanes[*at].registers[R as usize][*words] & 15) as u32 + 1;
                lanes[*at].scratches[*number] = (0..words).collect();
            }
            execute(body, lanes, active, table);
            continue;
        }
        if let Statement::If(p, yes, no) = statement {
            let (with, without): (Vec<usize>, Vec<usize>) =
                active.iter().partition(|at| lanes[**at].registers[P as usize][*p] == 1);
            execute(yes, lanes, &with, table);
            execute(no, lanes, &without, table);
            continue;
        }
        if let Statement::Loop(counter, times, body) = statement {
            for at in active {
                lanes[*at].counters[*counter] = (lanes[*at].registers[R as usize][*times] & 3) as i64;
            }
            let mut left: Vec<usize> = active.to_vec();
            while !left.is_empty() {
                execute(body, lanes, &left, table);
                left.retain(|at| {
                    lanes[*at].counters[*counter] -= 1;
                    lanes[*at].counters[*counter] >= 0
                });
            }
            continue;
        }
        for at in active {
            let lane = &mut lanes[*at];
            let thread = u64::from(lane.thread);
            let r = R as usize;
            match statement {
                Statement::Compute(form, d, sources, guard) => {
                    if guard.is_some_and(|(p, negate)| (lane.registers[P as usize][p] == 1) == negate) {
                        continue;
                    }
                    let (_, to, kinds, compute) = FORMS[*form];
                    let values: Vec<u64> = sources
                        .iter()
                        .zip(kinds)
                        .map(|(source, kind)| match source {
                            Source::Register(n) => lane.registers[*kind as usize][*n],
                            Source::Constant(v) => *v,
                        })
                        .collect();
                    lane.registers[to as usize][*d] = compute(&values);
                }
                Statement::Lop3(d, sources, table) => {
                    let [x, y, z] = sources.map(|n| lane.registers[r][n]);
                    let bit = |i: u32| {
                        let at = (x >> i & 1) << 2 | (y >> i & 1) << 1 | z >> i & 1;
                        u64::from(table >> at & 1) << i
                    };
                    lane.registers[r][*d] = (0..32).map(bit).sum();
                }
                Statement::Load(d, Some(index), _) => {
                    lane.registers[r][*d] = w(word(lane.registers[r][*index] & 255));
                }
                Statement::Load(d, None, offset) => lane.registers[r][*d] = w(word(thread + u64::from(*offset))),
                Statement::LoadCopied(d, offset, _) => lane.registers[r][*d] = w(word(thread + u64::from(*offset))),
                Statement::LoadLong(d, index) => {
                    let at = 2 * (lane.registers[r][*index] & 127);
                    lane.registers[D as usize][*d] = w(word(at)) | w(word(at + 1)) << 32;
                }
                Statement::LoadPair([d, q], index) => {
                    let at = 2 * (lane.registers[r][*index] & 127);
                    (lane.registers[r][*d], lane.registers[r][*q]) = (w(word(at)), w(word(at + 1)));
                }
                Statement::LoadByte(d, index) => {
                    let at = lane.registers[r][*index] & 1023;
                    let byte = (word(at / 4) >> (8 * (at % 4))) as i8;
                    lane.registers[r][*d] = w(i32::from(byte) as u32);
                }
                Statement::Store(from, place, spread) => {
                    lane.own[usize::from(!spread)][*place] = lane.registers[r][*from] as u32;
                }
                Statement::StoreVector(from, count, place) => {
                    for (k, n) in from[..*count].iter().enumerate() {
                        lane.own[1][place + k] = lane.registers[r][*n] as u32;
                    }
                }
                Statement::StoreLong(from, place) => {
                    let value = lane.registers[D as usize][*from];
                    (lane.own[1][*place], lane.own[1][place + 1]) = (value as u32, (value >> 32) as u32);
                }
                Statement::Keep(number, place, value) => {
                    let value = lane.registers[r][*value] as u32;
                    let words = &mut lane.scratches[*number];
                    let place = lane.registers[r][*place] as usize % words.len();
                    words[place] = value;
                }
                Statement::Recall(number, place, to) => {
                    let words = &lane.scratches[*number];
                    let value = words[lane.registers[r][*place] as usize % words.len()];
                    lane.registers[r][*to] = w(value);
                }
                Statement::Chain([low, high], a, b, subtract) => {
                    let get = |lane: &Lane, n: usize| lane.registers[r][n] as u32;
                    let (x, y) = (get(lane, a[0]), get(lane, b[0]));
                    let (sum, carry) = if *subtract { x.overflowing_sub(y) } else { x.overflowing_add(y) };
                    lane.registers[r][*low] = w(sum);
                    let (x, y) = (get(lane, a[1]), get(lane, b[1]));
                    let carry = u32::from(carry);
                    lane.registers[r][*high] = w(match subtract {
                        true => x.wrapping_sub(y).wrapping_sub(carry),
                        false => x.wrapping_add(y).wrapping_add(carry),
                    });
                }
                Statement::Update(which, old, value, place) => {
                    let value = lane.registers[r][*value] as u32;
                    let before = lane.own[1][*place];
                    lane.own[1][*place] = UPDATES[*which].1(before, value);
                    lane.registers[r][*old] = w(before);
                }
                Statement::Call(d, [a, b]) => {
                    lane.registers[r][*d] = w(mix(lane.registers[r][*a] as u32, lane.registers[r][*b] as u32));
                }
                Statement::Fetch(to, place, spread) => {
                    lane.registers[r][*to] = w(lane.own[usize::from(!spread)][*place]);
                }
                _ => {}
            }
        }
    }
}
