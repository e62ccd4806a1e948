//! `cvt` in all its forms.

use super::lanes::Frame;
use crate::float::{integer_to_odd, narrow32, single};
use crate::half::{from_bf16, from_f16, to_bf16, to_f16};
use crate::ir::{Cast, Rounding, Width};
use crate::types::Type;

/// Converts the lanes of a row.
///
/// # Safety
/// The rows belong to the frame and have the conversion's widths.
#[inline(never)]
pub unsafe fn cast(f: Frame, c: &Cast, d: u32, a: u32, mask: u32) {
    // SAFETY: the caller's.
    unsafe {
        let source: [u64; 32] = if c.from.wide() { f.get::<u64>(a) } else { f.get::<u32>(a).map(u64::from) };
        let out = source.map(|bits| convert(c, bits));
        if c.width == Width::W64 {
            f.put(d, &out, mask);
        } else {
            let cut = if c.width == Width::W16 { 0xffff } else { u32::MAX };
            f.put(d, &out.map(|v| v as u32 & cut), mask);
        }
    }
}

fn integer(ty: Type, bits: u64) -> i128 {
    let shift = 64 - 8 * ty.size();
    if ty.signed() { i128::from((bits << shift) as i64 >> shift) } else { i128::from(bits << shift >> shift) }
}

fn range(ty: Type) -> (i128, i128) {
    let bits = 8 * ty.size();
    if ty.signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

fn integral(v: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => v.round_ties_even(),
        Rounding::Zero => v.trunc(),
        Rounding::Down => v.floor(),
        Rounding::Up => v.ceil(),
    }
}

/// Moves a nearest result to where the direction wants it; `order` compares the result with the exact value.
fn direct64(r: f64, order: Option<std::cmp::Ordering>, rounding: Rounding) -> f64 {
    use std::cmp::Ordering::*;
    match (rounding, order) {
        (Rounding::Down, Some(Greater)) => r.next_down(),
        (Rounding::Up, Some(Less)) => r.next_up(),
        (Rounding::Zero, Some(Greater)) if r > 0.0 => r.next_down(),
        (Rounding::Zero, Some(Less)) if r < 0.0 => r.next_up(),
        _ => r,
    }
}

/// A value, exact or rounded to odd, in the wanted format; `integer`: what it was.
fn to_float(c: &Cast, v: f64, integer: Option<i128>) -> u64 {
    let v = if c.integral { integral(v, c.rounding) } else { v };
    let v = if c.saturate { if v > 0.0 { v.min(1.0) } else { 0.0 } } else { v };
    let largest = if c.to == Type::F16 { 0x7bff } else { 0x7f7f };
    let bound = |bits: u16| match bits & 0x7fff {
        magnitude if c.finite && magnitude == largest + 1 => bits - 1,
        _ => bits,
    };
    match c.to {
        Type::F64 => match integer.filter(|_| !c.saturate) {
            Some(n) => {
                let nearest = if n < 0 { n as i64 as f64 } else { n as u64 as f64 };
                direct64(nearest, Some((nearest as i128).cmp(&n)), c.rounding).to_bits()
            }
            None => v.to_bits(),
        },
        Type::F32 => u64::from(single(narrow32(v, c.rounding))),
        Type::F16 => {
            let r = to_f16(v);
            u64::from(bound(direct16(r, f64::from(from_f16(r)), v, c)))
        }
        _ => {
            let r = to_bf16(v);
            u64::from(bound(direct16(r, f64::from(from_bf16(r)), v, c)))
        }
    }
}

/// The neighbour of a 16-bit float in the wanted direction; magnitudes are ordered as their bits are.
fn direct16(r: u16, value: f64, exact: f64, c: &Cast) -> u16 {
    let toward_zero = match c.rounding {
        _ if c.integral || value == exact || value.is_nan() => return r,
        Rounding::Nearest => return r,
        Rounding::Zero => value.abs() > exact.abs(),
        Rounding::Down if value > exact => value > 0.0,
        Rounding::Up if value < exact => value < 0.0,
        _ => return r,
    };
    if toward_zero {
        r - 1
    } else if c.rounding == Rounding::Zero {
        r
    } else {
        r + 1
    }
}

/// Converts one value; the result is extended to 64 bits as the destination's type says.
fn convert(c: &Cast, bits: u64) -> u64 {
    if c.from.float() {
        let v = match c.from {
            Type::F64 => f64::from_bits(bits),
            Type::F32 => f64::from(f32::from_bits(bits as u32)),
            Type::F16 => f64::from(from_f16(bits as u16)),
            _ => f64::from(from_bf16(bits as u16)),
        };
        if c.to.float() {
            return to_float(c, v, None);
        }
        // PTX clamps; a NaN becomes zero, or the first bit alone where 64 bits are on either side.
        let (low, high) = range(c.to);
        if v.is_nan() {
            let none = c.from == Type::F64 || c.to.wide();
            let first = if c.to.signed() { low } else { (high >> 1) + 1 };
            return if none { first as u64 } else { 0 };
        }
        let n = (integral(v, c.rounding) as i128).clamp(low, high);
        return n as u64;
    }
    let n = integer(c.from, bits);
    if c.to.float() {
        return to_float(c, integer_to_odd(n), Some(n));
    }
    let (low, high) = range(c.to);
    let n = if c.saturate { n.clamp(low, high) } else { integer(c.to, n as u64) };
    n as u64
}
