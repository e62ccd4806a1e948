//! 16-bit floating point through wider types.

use crate::float::{NAN32, sum_to_odd};

/// The value of an f16.
pub fn from_f16(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let (exponent, fraction) = (u32::from(bits >> 10 & 31), u32::from(bits & 0x3ff));
    match exponent {
        0 => {
            let magnitude = fraction as f32 * (1.0 / 16_777_216.0);
            f32::from_bits(magnitude.to_bits() | sign)
        }
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

/// The f16 nearest to a value, ties to even.
pub fn to_f16(value: f64) -> u16 {
    narrow(value, 10, 15)
}

/// The value of a bf16.
pub fn from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The bf16 nearest to a value, ties to even.
pub fn to_bf16(value: f64) -> u16 {
    narrow(value, 7, 127)
}

/// Rounds to a 16-bit format with so many fraction bits and such an exponent bias.
fn narrow(value: f64, fraction_bits: u32, bias: i64) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 63) as u16) << 15;
    let special = ((1u16 << (15 - fraction_bits)) - 1) << fraction_bits;
    let exponent = (bits >> 52 & 0x7ff) as i64;
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0x7ff {
        return if fraction == 0 { sign | special } else { 0x7fff };
    }
    let unbiased = exponent - 1023 + bias;
    if exponent == 0 || unbiased < -i64::from(fraction_bits) - 1 {
        return sign;
    }
    let mantissa = fraction | 1 << 52;
    let shift = 52 - fraction_bits as i64 + if unbiased <= 0 { 1 - unbiased } else { 0 };
    let mut kept = (mantissa >> shift) as u32;
    let rest = mantissa & ((1u64 << shift) - 1);
    let half = 1u64 << (shift - 1);
    if rest > half || (rest == half && kept & 1 == 1) {
        kept += 1;
    }
    // A carry out of the fraction raises the exponent by itself.
    let magnitude = if unbiased <= 0 { kept } else { kept + ((unbiased as u32 - 1) << fraction_bits) };
    sign | magnitude.min(u32::from(special)) as u16
}

/// A binary operation on f16.
pub fn op16(a: u16, b: u16, f: impl Fn(f64, f64) -> f64) -> u16 {
    to_f16(f(f64::from(from_f16(a)), f64::from(from_f16(b))))
}

/// A binary operation on both halves.
pub fn op16x2(a: u32, b: u32, f: impl Fn(f64, f64) -> f64 + Copy) -> u32 {
    u32::from(op16(a as u16, b as u16, f)) | u32::from(op16((a >> 16) as u16, (b >> 16) as u16, f)) << 16
}

/// A binary operation on bf16.
pub fn op_bf16(a: u16, b: u16, f: impl Fn(f64, f64) -> f64) -> u16 {
    to_bf16(f(f64::from(from_bf16(a)), f64::from(from_bf16(b))))
}

/// Fused multiply-add on f16; the product of two is exact in f64.
pub fn fma16(a: u16, b: u16, c: u16) -> u16 {
    let [a, b, c] = [a, b, c].map(|v| f64::from(from_f16(v)));
    to_f16(sum_to_odd(a * b, c))
}

/// [`fma16`] on both halves.
pub fn fma16x2(a: u32, b: u32, c: u32) -> u32 {
    let high = fma16((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16);
    u32::from(fma16(a as u16, b as u16, c as u16)) | u32::from(high) << 16
}

/// Fused multiply-add on bf16.
pub fn fma_bf16(a: u16, b: u16, c: u16) -> u16 {
    let [a, b, c] = [a, b, c].map(|v| f64::from(from_bf16(v)));
    to_bf16(sum_to_odd(a * b, c))
}

/// [`fma_bf16`] on both halves.
pub fn fma_bf16x2(a: u32, b: u32, c: u32) -> u32 {
    let high = fma_bf16((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16);
    u32::from(fma_bf16(a as u16, b as u16, c as u16)) | u32::from(high) << 16
}

/// A binary operation on both halves as bf16.
pub fn op_bf16x2(a: u32, b: u32, f: impl Fn(f64, f64) -> f64 + Copy) -> u32 {
    u32::from(op_bf16(a as u16, b as u16, f)) | u32::from(op_bf16((a >> 16) as u16, (b >> 16) as u16, f)) << 16
}

/// A function of both halves as bf16.
pub fn each_bf16(a: u32, f: impl Fn(f64) -> f64) -> u32 {
    let one = |bits: u16| u32::from(to_bf16(f(f64::from(from_bf16(bits)))));
    one(a as u16) | one((a >> 16) as u16) << 16
}

/// A function of both halves.
pub fn each16(a: u32, f: impl Fn(f64) -> f64) -> u32 {
    let one = |bits: u16| u32::from(to_f16(f(f64::from(from_f16(bits)))));
    one(a as u16) | one((a >> 16) as u16) << 16
}

/// A magnitude with the sign of another number; a NaN stays as it is.
pub fn xor_sign(magnitude: u16, sign: u16) -> u16 {
    if magnitude == 0x7fff { magnitude } else { magnitude | sign & 0x8000 }
}

/// `.sat` on f16: between 0 and 1, a NaN becomes 0.
pub fn saturate(a: u16) -> u16 {
    let v = from_f16(a);
    if v > 0.0 { to_f16(f64::from(v.min(1.0))) } else { 0 }
}

/// `.relu` on a 16-bit float with these exponent bits: negative becomes 0, a NaN stays one.
pub fn relu(a: u16, exponent: u16) -> u16 {
    let nan = a & 0x7fff > exponent;
    if nan {
        0x7fff
    } else if a & 0x8000 != 0 {
        0
    } else {
        a
    }
}

/// `.ftz` on a 16-bit float with these exponent bits: without an exponent its sign alone is left.
pub fn flush(a: u16, exponent: u16) -> u16 {
    if a & exponent == 0 { a & 0x8000 } else { a }
}

/// How a value in single precision becomes one with 10 bits of fraction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tf32 {
    Even,
    Away,
    Cut,
}

/// A single-precision value with 10 bits of fraction.
pub fn to_tf32(a: u32, how: Tf32) -> u32 {
    if a & 0x7f80_0000 == 0x7f80_0000 {
        return if a & 0x007f_ffff == 0 { a } else { NAN32 };
    }
    let half = match how {
        Tf32::Even => 0xfff + (a >> 13 & 1),
        Tf32::Away => 0x1000,
        Tf32::Cut => 0,
    };
    a.wrapping_add(half) & !0x1fff
}

/// `.satfinite` on what [`to_tf32`] gave: the largest value instead of infinity.
pub fn finite_tf32(a: u32) -> u32 {
    if a & 0x7fff_ffff == 0x7f80_0000 { a & 0x8000_0000 | 0x7f7f_e000 } else { a }
}

/// `.relu` in single precision: negative becomes 0, a NaN stays one.
pub fn relu32(a: u32) -> u32 {
    match f32::from_bits(a) {
        v if v.is_nan() => NAN32,
        _ if a >> 31 == 1 => 0,
        _ => a,
    }
}
