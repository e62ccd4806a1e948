//! 8-bit floating point: `e4m3` (no infinity, one NaN for each sign) and `e5m2` (as IEEE 754 would have it).

use crate::half::from_f16;

/// A format of 8 bits.
struct Format {
    fraction_bits: u32,
    bias: i64,
    /// The largest finite value.
    most: u8,
}

const E4M3: Format = Format { fraction_bits: 3, bias: 7, most: 0x7e };
const E5M2: Format = Format { fraction_bits: 2, bias: 15, most: 0x7b };
/// What a NaN becomes.
const NAN: u8 = 0x7f;

/// Rounds to nearest, ties to even; what is too large becomes the largest finite value.
fn narrow(value: f64, format: &Format) -> u8 {
    if value.is_nan() {
        return NAN;
    }
    let Format { fraction_bits, bias, most } = *format;
    let sign = u8::from(value.is_sign_negative()) << 7;
    let bits = value.abs().to_bits();
    // The exponent as the format counts it; subnormals share that of the smallest normal value.
    let exponent = ((bits >> 52) as i64 - 1023 + bias).clamp(1, 32);
    // In units of the format's last place there, exactly: a power of two more or less.
    let places = value.abs() * 2f64.powi((bias - exponent) as i32 + fraction_bits as i32);
    let magnitude = places.round_ties_even() as u64 + ((exponent as u64 - 1) << fraction_bits);
    sign | magnitude.min(u64::from(most)) as u8
}

/// The value of an `e4m3`.
fn from_e4m3(bits: u8) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 3 & 15), f32::from(bits & 7));
    let magnitude = match (exponent, bits & 7) {
        (15, 7) => return f32::NAN,
        (0, _) => fraction / 512.0,
        _ => (1.0 + fraction / 8.0) * 2f32.powi(exponent - 7),
    };
    if bits & 0x80 == 0 { magnitude } else { -magnitude }
}

fn pack(high: u8, low: u8) -> u16 {
    u16::from(high) << 8 | u16::from(low)
}

/// `cvt.e4m3x2.f32`
pub fn e4m3x2(high: f32, low: f32) -> u16 {
    pack(narrow(f64::from(high), &E4M3), narrow(f64::from(low), &E4M3))
}

/// `cvt.e5m2x2.f32`
pub fn e5m2x2(high: f32, low: f32) -> u16 {
    pack(narrow(f64::from(high), &E5M2), narrow(f64::from(low), &E5M2))
}

/// `cvt.e4m3x2.f16x2`
pub fn e4m3x2_of_halves(a: u32) -> u16 {
    e4m3x2(from_f16((a >> 16) as u16), from_f16(a as u16))
}

/// `cvt.e5m2x2.f16x2`
pub fn e5m2x2_of_halves(a: u32) -> u16 {
    e5m2x2(from_f16((a >> 16) as u16), from_f16(a as u16))
}

/// `cvt.f16x2.e4m3x2`: every value is one of f16.
pub fn halves_of_e4m3x2(a: u16) -> u32 {
    let one = |bits: u8| u32::from(crate::half::to_f16(f64::from(from_e4m3(bits))));
    one((a >> 8) as u8) << 16 | one(a as u8)
}

/// `cvt.f16x2.e5m2x2`: the upper half of an f16, but for NaNs.
pub fn halves_of_e5m2x2(a: u16) -> u32 {
    let one = |bits: u8| if bits & 0x7f > 0x7c { 0x7fff } else { u32::from(bits) << 8 };
    one((a >> 8) as u8) << 16 | one(a as u8)
}

/// `.relu` on both: what is negative becomes zero, a NaN stays one.
pub fn relu(a: u16) -> u16 {
    let one = |bits: u8| if bits & 0x80 != 0 { 0 } else { bits };
    pack(one((a >> 8) as u8), one(a as u8))
}
