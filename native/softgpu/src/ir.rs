//! The decoded form of a kernel: a register machine whose registers are rows of 32 lanes.
//!
//! A row is 32 x 32 bits; a 64-bit register takes two.  16-bit registers hold their value zero-extended, a predicate
//! holds a lane mask in the first word of its row.  Every frame begins with a header ([`ROW_RETURN`] and so on), then
//! come the function's constants, then its registers: an operand is always the number of a row.

use crate::error::PtxError;
use crate::types::Type;

/// Row of the frame header that holds the return address (an instruction index).
pub const ROW_RETURN: u32 = 0;
/// Row of the frame header that holds the caller's frame base.
pub const ROW_CALLER: u32 = 1;
/// Row of the frame header that holds where the frame's local memory begins.
pub const ROW_LOCAL: u32 = 2;
/// Row of the frame header that holds the carry flags as a lane mask.
pub const ROW_CARRY: u32 = 3;
/// Rows of the frame header.
pub const HEADER_ROWS: u32 = 4;
/// "No register": an operand that is absent, or the sink `_`.
pub const NONE: u32 = u32::MAX;

/// Where shared memory appears among generic addresses (above every host address).
pub const SHARED_WINDOW: u64 = 1 << 48;
/// Where a thread's local memory appears among generic addresses.
pub const LOCAL_WINDOW: u64 = (1 << 48) + (1 << 44);
/// Where a kernel's parameters appear among generic addresses.
pub const PARAM_WINDOW: u64 = (1 << 48) + (2 << 44);
/// Function pointers: this plus 16 times the function's index.
pub const FUNCTION_WINDOW: u64 = (1 << 48) + (3 << 44);

/// What a constant row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// The bits themselves.
    Bits(u64),
    /// The address of a `.global` or `.const` variable, plus an offset.
    Global(u32, i64),
    /// The offset of a `.shared` variable in the block's shared memory, plus an offset.
    Shared(u32, i64),
    /// A function's address.
    Function(u32),
}

macro_rules! with_alu_table {
    ($m:ident) => {
        $m! {
            unary {
                Abs16: i16 => i16 = |a| a.wrapping_abs();
                Abs64: i64 => i64 = |a| a.wrapping_abs();
                Cnot16: u16 => u16 = |a| u16::from(a == 0);
                Cnot32: u32 => u32 = |a| u32::from(a == 0);
                Cnot64: u64 => u64 = |a| u64::from(a == 0);
                Popc32: u32 => u32 = |a| a.count_ones();
                Popc64: u64 => u32 = |a| a.count_ones();
                Clz32: u32 => u32 = |a| a.leading_zeros();
                Clz64: u64 => u32 = |a| a.leading_zeros();
                Brev32: u32 => u32 = |a| a.reverse_bits();
                Brev64: u64 => u64 = |a| a.reverse_bits();
                BfindU32: u32 => u32 = |a| 31u32.wrapping_sub(a.leading_zeros());
                BfindS32: i32 => u32 = |a| 31u32.wrapping_sub((if a < 0 { !a } else { a }).leading_zeros());
                BfindU64: u64 => u32 = |a| 63u32.wrapping_sub(a.leading_zeros());
                BfindS64: i64 => u32 = |a| 63u32.wrapping_sub((if a < 0 { !a } else { a }).leading_zeros());
                BfindShiftU32: u32 => u32 = |a| if a == 0 { u32::MAX } else { a.leading_zeros() };
                BfindShiftS32: i32 => u32 = |a| {
                    let b = if a < 0 { !a } else { a };
                    if b == 0 { u32::MAX } else { b.leading_zeros() }
                };
                BfindShiftU64: u64 => u32 = |a| if a == 0 { u32::MAX } else { a.leading_zeros() };
                BfindShiftS64: i64 => u32 = |a| {
                    let b = if a < 0 { !a } else { a };
                    if b == 0 { u32::MAX } else { b.leading_zeros() }
                };
                NegF16: u16 => u16 = |a| a ^ 0x8000;
                AbsF16: u16 => u16 = |a| a & 0x7fff;
                NegF16x2: u32 => u32 = |a| a ^ 0x8000_8000;
                AbsF16x2: u32 => u32 = |a| a & 0x7fff_7fff;
                SinF32: f32 => f32 = |a| a.sin();
                CosF32: f32 => f32 = |a| a.cos();
                Ex2F32: f32 => f32 = |a| a.exp2();
                Lg2F32: f32 => f32 = |a| a.log2();
                TanhF32: f32 => f32 = |a| a.tanh();
                F64S64: i64 => f64 = |a| a as f64;
                F64U64: u64 => f64 = |a| a as f64;
                F32F16: u16 => f32 = |a| crate::half::from_f16(a);
                F16F32: f32 => u16 = |a| crate::half::to_f16(f64::from(a));
                Ex2F16x2: u32 => u32 = |a| crate::half::each16(a, |x| x.exp2());
                TanhF16x2: u32 => u32 = |a| crate::half::each16(a, |x| x.tanh());
                SatF16: u16 => u16 = |a| crate::half::saturate(a);
                SatF16x2: u32 => u32 = |a|
                    u32::from(crate::half::saturate(a as u16)) | u32::from(crate::half::saturate((a >> 16) as u16)) << 16;
                ReluF16: u16 => u16 = |a| crate::half::relu(a, 0x7c00);
                ReluF16x2: u32 => u32 = |a|
                    u32::from(crate::half::relu(a as u16, 0x7c00)) | u32::from(crate::half::relu((a >> 16) as u16, 0x7c00)) << 16;
                ReluBf16: u16 => u16 = |a| crate::half::relu(a, 0x7f80);
                ReluBf16x2: u32 => u32 = |a|
                    u32::from(crate::half::relu(a as u16, 0x7f80)) | u32::from(crate::half::relu((a >> 16) as u16, 0x7f80)) << 16;
                Tf32Nearest: u32 => u32 = |a| crate::half::to_tf32(a, crate::half::Tf32::Even);
                Tf32Away: u32 => u32 = |a| crate::half::to_tf32(a, crate::half::Tf32::Away);
                Tf32Zero: u32 => u32 = |a| crate::half::to_tf32(a, crate::half::Tf32::Cut);
                FiniteTf32: u32 => u32 = |a| crate::half::finite_tf32(a);
                ReluF32: u32 => u32 = |a| crate::half::relu32(a);
                FlushF16: u16 => u16 = |a| crate::half::flush(a, 0x7c00);
                FlushF16x2: u32 => u32 = |a| crate::bits::each16(a, 0, |x, _| crate::half::flush(x, 0x7c00));
                FlushBf16: u16 => u16 = |a| crate::half::flush(a, 0x7f80);
                FlushBf16x2: u32 => u32 = |a| crate::bits::each16(a, 0, |x, _| crate::half::flush(x, 0x7f80));
                ReluS16x2: u32 => u32 = |a| crate::bits::each16(a, 0, |x, _| (x as i16).max(0) as u16);
                ReluS32: i32 => i32 = |a| a.max(0);
                E4m3x2F16x2: u32 => u16 = |a| crate::fp8::e4m3x2_of_halves(a);
                E5m2x2F16x2: u32 => u16 = |a| crate::fp8::e5m2x2_of_halves(a);
                F16x2E4m3x2: u16 => u32 = |a| crate::fp8::halves_of_e4m3x2(a);
                F16x2E5m2x2: u16 => u32 = |a| crate::fp8::halves_of_e5m2x2(a);
                ReluFp8x2: u16 => u16 = |a| crate::fp8::relu(a);
                Ex2F16: u16 => u16 = |a| crate::half::to_f16(f64::from(crate::half::from_f16(a)).exp2());
                TanhF16: u16 => u16 = |a| crate::half::to_f16(f64::from(crate::half::from_f16(a)).tanh());
                Ex2Bf16: u16 => u16 = |a| crate::half::to_bf16(f64::from(crate::half::from_bf16(a)).exp2());
                TanhBf16: u16 => u16 = |a| crate::half::to_bf16(f64::from(crate::half::from_bf16(a)).tanh());
                Ex2Bf16x2: u32 => u32 = |a| crate::half::each_bf16(a, |x| x.exp2());
                TanhBf16x2: u32 => u32 = |a| crate::half::each_bf16(a, |x| x.tanh());
            }
            binary {
                AddSat32: i32, i32 => i32 = |a, b| a.saturating_add(b);
                SubSat32: i32, i32 => i32 = |a, b| a.saturating_sub(b);
                MulHiU16: u16, u16 => u16 = |a, b| ((u32::from(a) * u32::from(b)) >> 16) as u16;
                MulHiS16: i16, i16 => i16 = |a, b| ((i32::from(a) * i32::from(b)) >> 16) as i16;
                MulHiU64: u64, u64 => u64 = |a, b| ((u128::from(a) * u128::from(b)) >> 64) as u64;
                MulHiS64: i64, i64 => i64 = |a, b| ((i128::from(a) * i128::from(b)) >> 64) as i64;
                Mul24LoU32: u32, u32 => u32 = |a, b| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff);
                Mul24LoS32: i32, i32 => i32 = |a, b| ((a << 8) >> 8).wrapping_mul((b << 8) >> 8);
                Mul24HiU32: u32, u32 => u32 = |a, b|
                    ((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 16) as u32;
                Mul24HiS32: i32, i32 => i32 = |a, b|
                    ((i64::from((a << 8) >> 8) * i64::from((b << 8) >> 8)) >> 16) as i32;
                DivU16: u16, u16 => u16 = |a, b| a.checked_div(b).unwrap_or(u16::MAX);
                DivS16: i16, i16 => i16 = |a, b| if b == 0 { -1 } else { a.wrapping_div(b) };
                DivU32: u32, u32 => u32 = |a, b| a.checked_div(b).unwrap_or(u32::MAX);
                DivS32: i32, i32 => i32 = |a, b| if b == 0 { -1 } else { a.wrapping_div(b) };
                DivU64: u64, u64 => u64 = |a, b| a.checked_div(b).unwrap_or(u64::MAX);
                DivS64: i64, i64 => i64 = |a, b| if b == 0 { -1 } else { a.wrapping_div(b) };
                RemU16: u16, u16 => u16 = |a, b| a.checked_rem(b).unwrap_or(a);
                RemS16: i16, i16 => i16 = |a, b| if b == 0 { a } else { a.wrapping_rem(b) };
                RemU32: u32, u32 => u32 = |a, b| a.checked_rem(b).unwrap_or(a);
                RemS32: i32, i32 => i32 = |a, b| if b == 0 { a } else { a.wrapping_rem(b) };
                RemU64: u64, u64 => u64 = |a, b| a.checked_rem(b).unwrap_or(a);
                RemS64: i64, i64 => i64 = |a, b| if b == 0 { a } else { a.wrapping_rem(b) };
                MinS16: i16, i16 => i16 = |a, b| a.min(b);
                MaxS16: i16, i16 => i16 = |a, b| a.max(b);
                Shl16: u16, u32 => u16 = |a, b| if b > 15 { 0 } else { a << b };
                Shl32: u32, u32 => u32 = |a, b| if b > 31 { 0 } else { a << b };
                Shl64: u64, u32 => u64 = |a, b| if b > 63 { 0 } else { a << b };
                ShrU16: u16, u32 => u16 = |a, b| if b > 15 { 0 } else { a >> b };
                ShrU32: u32, u32 => u32 = |a, b| if b > 31 { 0 } else { a >> b };
                ShrU64: u64, u32 => u64 = |a, b| if b > 63 { 0 } else { a >> b };
                ShrS16: i16, u32 => i16 = |a, b| a >> b.min(15);
                ShrS32: i32, u32 => i32 = |a, b| a >> b.min(31);
                ShrS64: i64, u32 => i64 = |a, b| a >> b.min(63);
                MinNanF32: f32, f32 => f32 = |a, b|
                    if a.is_nan() || b.is_nan() { f32::NAN } else { crate::float::min32(a, b) };
                MaxNanF32: f32, f32 => f32 = |a, b|
                    if a.is_nan() || b.is_nan() { f32::NAN } else { crate::float::max32(a, b) };
                E4m3x2F32: f32, f32 => u16 = |a, b| crate::fp8::e4m3x2(a, b);
                E5m2x2F32: f32, f32 => u16 = |a, b| crate::fp8::e5m2x2(a, b);
                CopySignF32: u32, u32 => u32 = |a, b| b & 0x7fff_ffff | a & 0x8000_0000;
                CopySignF64: f64, f64 => f64 = |a, b| b.copysign(a);
                Extract16: u32, u32 => u16 = |a, b| a.wrapping_shr(b) as u16;
                Extract16From64: u64, u32 => u16 = |a, b| a.wrapping_shr(b) as u16;
                Extract32: u64, u32 => u32 = |a, b| a.wrapping_shr(b) as u32;
                Extract8: u32, u32 => u16 = |a, b| u16::from(a.wrapping_shr(b) as u8);
                AddF16: u16, u16 => u16 = |a, b| crate::half::op16(a, b, |x, y| x + y);
                SubF16: u16, u16 => u16 = |a, b| crate::half::op16(a, b, |x, y| x - y);
                MulF16: u16, u16 => u16 = |a, b| crate::half::op16(a, b, |x, y| x * y);
                MinF16: u16, u16 => u16 = |a, b| crate::half::op16(a, b, crate::float::min64);
                MaxF16: u16, u16 => u16 = |a, b| crate::half::op16(a, b, crate::float::max64);
                Add16x2: u32, u32 => u32 = |a, b| crate::bits::each16(a, b, u16::wrapping_add);
                MinU16x2: u32, u32 => u32 = |a, b| crate::bits::each16(a, b, |x, y| x.min(y));
                MaxU16x2: u32, u32 => u32 = |a, b| crate::bits::each16(a, b, |x, y| x.max(y));
                MinS16x2: u32, u32 => u32 = |a, b| crate::bits::each16(a, b, |x, y| (x as i16).min(y as i16) as u16);
                MaxS16x2: u32, u32 => u32 = |a, b| crate::bits::each16(a, b, |x, y| (x as i16).max(y as i16) as u16);
                MinNanF16: u16, u16 => u16 = |a, b| crate::half::op16(a, b, crate::float::min_nan64);
                MaxNanF16: u16, u16 => u16 = |a, b| crate::half::op16(a, b, crate::float::max_nan64);
                MinNanF16x2: u32, u32 => u32 = |a, b| crate::half::op16x2(a, b, crate::float::min_nan64);
                MaxNanF16x2: u32, u32 => u32 = |a, b| crate::half::op16x2(a, b, crate::float::max_nan64);
                MinNanBf16: u16, u16 => u16 = |a, b| crate::half::op_bf16(a, b, crate::float::min_nan64);
                MaxNanBf16: u16, u16 => u16 = |a, b| crate::half::op_bf16(a, b, crate::float::max_nan64);
                MinNanBf16x2: u32, u32 => u32 = |a, b| crate::half::op_bf16x2(a, b, crate::float::min_nan64);
                MaxNanBf16x2: u32, u32 => u32 = |a, b| crate::half::op_bf16x2(a, b, crate::float::max_nan64);
                AddF16x2: u32, u32 => u32 = |a, b| crate::half::op16x2(a, b, |x, y| x + y);
                SubF16x2: u32, u32 => u32 = |a, b| crate::half::op16x2(a, b, |x, y| x - y);
                MulF16x2: u32, u32 => u32 = |a, b| crate::half::op16x2(a, b, |x, y| x * y);
                MinF16x2: u32, u32 => u32 = |a, b| crate::half::op16x2(a, b, crate::float::min64);
                MaxF16x2: u32, u32 => u32 = |a, b| crate::half::op16x2(a, b, crate::float::max64);
                AddBf16x2: u32, u32 => u32 = |a, b| crate::half::op_bf16x2(a, b, |x, y| x + y);
                SubBf16x2: u32, u32 => u32 = |a, b| crate::half::op_bf16x2(a, b, |x, y| x - y);
                MulBf16x2: u32, u32 => u32 = |a, b| crate::half::op_bf16x2(a, b, |x, y| x * y);
                MinBf16x2: u32, u32 => u32 = |a, b| crate::half::op_bf16x2(a, b, crate::float::min64);
                MaxBf16x2: u32, u32 => u32 = |a, b| crate::half::op_bf16x2(a, b, crate::float::max64);
                BmskClamp: u32, u32 => u32 = |a, b| crate::bits::bmsk(a, b, true);
                BmskWrap: u32, u32 => u32 = |a, b| crate::bits::bmsk(a, b, false);
                SzextU: u32, u32 => u32 = |a, b| if b >= 32 { a } else { a & ((1u32 << b) - 1) };
                SzextS: u32, u32 => u32 = |a, b|
                    if b == 0 { 0 } else if b >= 32 { a } else { ((a << (32 - b)) as i32 >> (32 - b)) as u32 };
                AddBf16: u16, u16 => u16 = |a, b| crate::half::op_bf16(a, b, |x, y| x + y);
                SubBf16: u16, u16 => u16 = |a, b| crate::half::op_bf16(a, b, |x, y| x - y);
                MulBf16: u16, u16 => u16 = |a, b| crate::half::op_bf16(a, b, |x, y| x * y);
                MinBf16: u16, u16 => u16 = |a, b| crate::half::op_bf16(a, b, crate::float::min64);
                MaxBf16: u16, u16 => u16 = |a, b| crate::half::op_bf16(a, b, crate::float::max64);
            }
            ternary {
                MadHiU32: u32, u32, u32 => u32 = |a, b, c|
                    (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c);
                MadHiS32: i32, i32, i32 => i32 = |a, b, c|
                    (((i64::from(a) * i64::from(b)) >> 32) as i32).wrapping_add(c);
                MadHiU64: u64, u64, u64 => u64 = |a, b, c|
                    (((u128::from(a) * u128::from(b)) >> 64) as u64).wrapping_add(c);
                MadHiS64: i64, i64, i64 => i64 = |a, b, c|
                    (((i128::from(a) * i128::from(b)) >> 64) as i64).wrapping_add(c);
                MadWideU16: u16, u16, u32 => u32 = |a, b, c| (u32::from(a) * u32::from(b)).wrapping_add(c);
                MadWideS16: i16, i16, i32 => i32 = |a, b, c| (i32::from(a) * i32::from(b)).wrapping_add(c);
                Mad24LoU32: u32, u32, u32 => u32 = |a, b, c|
                    (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c);
                Mad24LoS32: i32, i32, i32 => i32 = |a, b, c|
                    ((a << 8) >> 8).wrapping_mul((b << 8) >> 8).wrapping_add(c);
                FmaF32: f32, f32, f32 => f32 = |a, b, c| a.mul_add(b, c);
                FmaF64: f64, f64, f64 => f64 = |a, b, c| a.mul_add(b, c);
                FmaF16: u16, u16, u16 => u16 = |a, b, c| crate::half::fma16(a, b, c);
                FmaF16x2: u32, u32, u32 => u32 = |a, b, c| crate::half::fma16x2(a, b, c);
                FmaBf16: u16, u16, u16 => u16 = |a, b, c| crate::half::fma_bf16(a, b, c);
                FmaBf16x2: u32, u32, u32 => u32 = |a, b, c| crate::half::fma_bf16x2(a, b, c);
                XorSignF32: u32, u32, u32 => u32 = |a, b, c|
                    if a == crate::float::NAN32 { a } else { a | (b ^ c) & 0x8000_0000 };
                XorSign16: u16, u16, u16 => u16 = |a, b, c| crate::half::xor_sign(a, b ^ c);
                XorSign16x2: u32, u32, u32 => u32 = |a, b, c| crate::bits::each16(a, b ^ c, crate::half::xor_sign);
                VAbsDiff2U: u32, u32, u32 => u32 = |a, b, _| crate::bits::absolute_differences2(a, b, false);
                VAbsDiff2S: u32, u32, u32 => u32 = |a, b, _| crate::bits::absolute_differences2(a, b, true);
                VAbsDiff2AddU: u32, u32, u32 => u32 = |a, b, c|
                    c.wrapping_add(crate::bits::sum2(crate::bits::absolute_differences2(a, b, false)));
                VAbsDiff2AddS: u32, u32, u32 => u32 = |a, b, c|
                    c.wrapping_add(crate::bits::sum2(crate::bits::absolute_differences2(a, b, true)));
                VAbsDiff4U: u32, u32, u32 => u32 = |a, b, _| crate::bits::absolute_differences4(a, b, false);
                VAbsDiff4S: u32, u32, u32 => u32 = |a, b, _| crate::bits::absolute_differences4(a, b, true);
                VAbsDiff4AddU: u32, u32, u32 => u32 = |a, b, c|
                    c.wrapping_add(crate::bits::sum4(crate::bits::absolute_differences4(a, b, false)));
                VAbsDiff4AddS: u32, u32, u32 => u32 = |a, b, c|
                    c.wrapping_add(crate::bits::sum4(crate::bits::absolute_differences4(a, b, true)));
                SadU16: u16, u16, u16 => u16 = |a, b, c| a.abs_diff(b).wrapping_add(c);
                SadS16: u16, u16, u16 => u16 = |a, b, c| (a as i16).abs_diff(b as i16).wrapping_add(c);
                SadU32: u32, u32, u32 => u32 = |a, b, c| a.abs_diff(b).wrapping_add(c);
                SadS32: i32, i32, u32 => u32 = |a, b, c| a.abs_diff(b).wrapping_add(c);
                SadU64: u64, u64, u64 => u64 = |a, b, c| a.abs_diff(b).wrapping_add(c);
                SadS64: i64, i64, u64 => u64 = |a, b, c| a.abs_diff(b).wrapping_add(c);
                BfeU32: u32, u32, u32 => u32 = |a, b, c| crate::bits::bfe_u32(a, b, c);
                BfeS32: u32, u32, u32 => u32 = |a, b, c| crate::bits::bfe_s32(a, b, c);
                BfeU64: u64, u32, u32 => u64 = |a, b, c| crate::bits::bfe_u64(a, b, c);
                BfeS64: u64, u32, u32 => u64 = |a, b, c| crate::bits::bfe_s64(a, b, c);
                Prmt: u32, u32, u32 => u32 = |a, b, c| crate::bits::prmt(a, b, c);
                PrmtF4e: u32, u32, u32 => u32 = |a, b, c| crate::bits::prmt_mode(a, b, c, 0);
                PrmtB4e: u32, u32, u32 => u32 = |a, b, c| crate::bits::prmt_mode(a, b, c, 1);
                PrmtRc8: u32, u32, u32 => u32 = |a, b, c| crate::bits::prmt_mode(a, b, c, 2);
                PrmtEcl: u32, u32, u32 => u32 = |a, b, c| crate::bits::prmt_mode(a, b, c, 3);
                PrmtEcr: u32, u32, u32 => u32 = |a, b, c| crate::bits::prmt_mode(a, b, c, 4);
                PrmtRc16: u32, u32, u32 => u32 = |a, b, c| crate::bits::prmt_mode(a, b, c, 5);
                ShfLWrap: u32, u32, u32 => u32 = |a, b, c|
                    (((u64::from(b) << 32 | u64::from(a)) << (c & 31)) >> 32) as u32;
                ShfLClamp: u32, u32, u32 => u32 = |a, b, c|
                    (((u64::from(b) << 32 | u64::from(a)) << c.min(32)) >> 32) as u32;
                ShfRWrap: u32, u32, u32 => u32 = |a, b, c| ((u64::from(b) << 32 | u64::from(a)) >> (c & 31)) as u32;
                ShfRClamp: u32, u32, u32 => u32 = |a, b, c| ((u64::from(b) << 32 | u64::from(a)) >> c.min(32)) as u32;
                SlctS32B32: u32, u32, i32 => u32 = |a, b, c| if c >= 0 { a } else { b };
                SlctS32B64: u64, u64, i32 => u64 = |a, b, c| if c >= 0 { a } else { b };
                SlctF32B32: u32, u32, f32 => u32 = |a, b, c| if c >= 0.0 { a } else { b };
                SlctF32B64: u64, u64, f32 => u64 = |a, b, c| if c >= 0.0 { a } else { b };
                Fns: u32, u32, i32 => u32 = |a, b, c| crate::bits::fns(a, b, c);
                MadSatHi32: i32, i32, i32 => i32 = |a, b, c|
                    (((i64::from(a) * i64::from(b)) >> 32) as i32).saturating_add(c);
                Dp2aLoU: u32, u32, u32 => u32 = |a, b, c| crate::bits::dp2a(a, b, c, false, false, 0);
                Dp2aLoS: u32, u32, u32 => u32 = |a, b, c| crate::bits::dp2a(a, b, c, true, true, 0);
                Dp2aLoUS: u32, u32, u32 => u32 = |a, b, c| crate::bits::dp2a(a, b, c, false, true, 0);
                Dp2aLoSU: u32, u32, u32 => u32 = |a, b, c| crate::bits::dp2a(a, b, c, true, false, 0);
                Dp2aHiU: u32, u32, u32 => u32 = |a, b, c| crate::bits::dp2a(a, b, c, false, false, 2);
                Dp2aHiS: u32, u32, u32 => u32 = |a, b, c| crate::bits::dp2a(a, b, c, true, true, 2);
                Dp2aHiUS: u32, u32, u32 => u32 = |a, b, c| crate::bits::dp2a(a, b, c, false, true, 2);
                Dp2aHiSU: u32, u32, u32 => u32 = |a, b, c| crate::bits::dp2a(a, b, c, true, false, 2);
                Dp4aU: u32, u32, u32 => u32 = |a, b, c| crate::bits::dp4a(a, b, c, false, false);
                Dp4aS: u32, u32, u32 => u32 = |a, b, c| crate::bits::dp4a(a, b, c, true, true);
                Dp4aUS: u32, u32, u32 => u32 = |a, b, c| crate::bits::dp4a(a, b, c, false, true);
                Dp4aSU: u32, u32, u32 => u32 = |a, b, c| crate::bits::dp4a(a, b, c, true, false);
            }
        }
    };
}
pub(crate) use with_alu_table;

macro_rules! define_op {
    (
        unary { $($u:ident: $ua:ty => $ur:ty = $uf:expr;)* }
        binary { $($b:ident: $ba:ty, $bb:ty => $br:ty = $bf:expr;)* }
        ternary { $($t:ident: $ta:ty, $tb:ty, $tc:ty => $tr:ty = $tf:expr;)* }
    ) => {
        /// What an instruction does.  The first part (see `with_alu_table`) maps lanes to lanes by functions, the second
        /// by compiled code; the rest is spelled out in `exec`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Op {
            $($u,)* $($b,)* $($t,)*
            // The same kind, but always compiled: see `exec::jit::recipe`.
            Mov32, Mov64, Neg16, Neg32, Neg64, Abs32, Not16, Not32, Not64, NegF32, NegF64, AbsF32,
            AbsF64, SatF32, SatF64, FlushF32, FlushF32x2, FlushF64, SqrtF32, SqrtF64, RcpF32, RcpF64, RsqrtF32, RsqrtF64, S64S32,
            U64U32, U32U64, U16U32, S32S16, F64F32, F32F64, F32S32, F32U32, F64S32, F64U32, S32F32,
            Add16, Add32, Add64, Sub16, Sub32, Sub64, MulLo16, MulLo32, MulLo64, MulHiU32, MulHiS32,
            MulWideU16, MulWideS16, MulWideU32, MulWideS32, MinU16, MinU32, MinS32, MinU64, MinS64,
            MaxU16, MaxU32, MaxS32, MaxU64, MaxS64, And16, And32, And64, Or16, Or32, Or64, Xor16,
            Xor32, Xor64, AddF32, AddF64, SubF32, SubF64, MulF32, MulF64, DivF32, DivF64, MinF32,
            MinF64, MaxF32, MaxF64, Pack16, Pack32, MadLo16, MadLo32, MadLo64, MadWideU32,
            MadWideS32,
            // a, b, c -> d with an immediate table in `e`
            Lop3,
            // bfi a into b at c, length in `e`
            Bfi32, Bfi64,
            // compare a and b by the relation in `e` -> predicate d; `c`: its complement's predicate (or NONE)
            CmpU16, CmpS16, CmpU32, CmpS32, CmpU64, CmpS64, CmpF32, CmpF64, CmpF16,
            // predicate logic: d = a op b
            PredAnd, PredOr, PredXor, PredNot, PredMov, PredConst,
            // d = c ? a : b
            Sel32, Sel64,
            // floating-point class test, relation in `e`
            TestpF32, TestpF64,
            // carry chains: flags in `e`
            Carry32, Carry64,
            // conversions by the description in `casts[e]`
            Cast,
            // arithmetic with a directed rounding: operation and mode in `e`
            Directed32, Directed64,
            // special register `e`
            Special,
            // local frame: d = frame base + imm (64 or 32 bits)
            FrameAddress64, FrameAddress32,
            // memory: `mems[e]`
            Load, Store, LoadParam,
            Atomic,
            // 16 bytes at once: `longs[e]`
            Long,
            // control
            Branch, BranchTable, Call, CallEnd, Return, Exit, Trap,
            Barrier, WarpSync, Fence, NanoSleep,
            // the frame's own stack: d = a bytes aligned to `e` (64-bit operands if `imm`); d = its top; the top = a
            Alloca, StackSave, StackRestore,
            // warp: vote and friends, mode in `e`
            Vote, Shuffle, Match, ActiveMask, Redux, Elect,
            // matrix products and their fragments: `matrices[e]`
            Matrix,
            // `cp.async`: `copies[e]`
            CopyAsync,
            // `clusterlaunchcontrol`: the answer's halves in d and `imm`
            TakeBlock,
            // 64-bit address space tests (isspacep): space in `e`
            IsSpace,
        }
    };
}
with_alu_table!(define_op);

/// One decoded instruction.  Operands are rows of the frame.
#[derive(Clone, Copy, Debug)]
pub struct Ins {
    pub op: Op,
    /// Executes only where the guard predicate is false, instead of true.
    pub negate: bool,
    /// Row of the guard predicate, or [`NONE`].
    pub guard: u32,
    pub d: u32,
    pub a: u32,
    pub b: u32,
    pub c: u32,
    pub e: u32,
    pub imm: i64,
    /// Line in the PTX.
    pub line: u32,
}

/// A comparison as `setp` and `set` name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

impl Relation {
    /// The relation with this number.
    pub fn of(code: u32) -> Relation {
        use Relation::*;
        let all = [Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan];
        all.get(code as usize).copied().unwrap_or(Nan)
    }

    /// Whether it holds of two values in this order (nothing: one of them is a NaN).
    pub fn holds(self, order: Option<std::cmp::Ordering>) -> bool {
        use Relation::*;
        match self {
            Num => order.is_some(),
            Nan => order.is_none(),
            Equ | Neu | Ltu | Leu | Gtu | Geu if order.is_none() => true,
            _ => order.is_some_and(|o| match self {
                Eq | Equ => o.is_eq(),
                Ne | Neu => o.is_ne(),
                Lt | Ltu => o.is_lt(),
                Le | Leu => o.is_le(),
                Gt | Gtu => o.is_gt(),
                _ => o.is_ge(),
            }),
        }
    }
}

/// Which memory an access goes to.
pub use crate::error::Space;

/// A load or store.
#[derive(Clone, Debug)]
pub struct Memory {
    pub space: Space,
    /// Bytes of one element: 1, 2, 4 or 8.
    pub size: u32,
    /// Sign-extend what was loaded.
    pub signed: bool,
    /// Volatile or ordered: never made one with another.
    pub strong: bool,
    /// Destination or source rows, one an element ([`NONE`]: the sink), and whether each is 64 bits wide.
    pub values: Vec<(u32, Width)>,
    pub address: Address,
}

/// How wide a register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    W16,
    W32,
    W64,
}

/// An address operand.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// Row of the base, or [`NONE`].
    pub row: u32,
    /// The base is 64 bits wide.
    pub wide: bool,
    /// Added to the base.
    pub offset: i64,
    /// The base is the frame's local memory.
    pub frame: bool,
}

/// A copy between global and shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    pub to: Address,
    pub from: Address,
    /// Where each of them is.
    pub spaces: (Space, Space),
    /// Bytes of an element: 4, 8 or 16.
    pub size: u32,
    /// Row of the number of bytes in all, or [`NONE`]: one element.
    pub length: u32,
    /// Row of the number of bytes that are read (the rest becomes zero), or [`NONE`].
    pub given: u32,
    /// Row of the bytes of each element that are copied, a bit each, or [`NONE`]: all.
    pub bytes: u32,
    /// Rows of how many bytes are not copied at the beginning and at the end, or [`NONE`].
    pub skipped: [u32; 2],
    /// What is done with what lies there already, instead of replacing it.
    pub reduction: Option<Reducing>,
}

/// An update of each element that a copy comes to.
#[derive(Clone, Copy, Debug)]
pub struct Reducing {
    pub op: AtomicOp,
    pub ty: Type,
    /// In global memory numbers below the smallest normal one are zeros.
    pub flushes: bool,
}

/// An instruction on matrices; registers are rows of the frame.
#[derive(Clone, Debug)]
pub enum Matrix {
    /// `mma`: rows, columns and inner extent; types of d, a, b and c.  `differ`: single bits that differ are counted,
    /// instead of those that both have.
    Mma {
        shape: [usize; 3],
        types: [Type; 4],
        d: Vec<u32>,
        a: Vec<u32>,
        b: Vec<u32>,
        c: Vec<u32>,
        saturate: bool,
        differ: bool,
    },
    /// `mma.m8n8k4` of halves: four products, each of a quad of the lower lanes and one of the upper; types of d and c,
    /// and whether a and b are in columns.
    Quads { types: [Type; 2], by_column: [bool; 2], d: Vec<u32>, a: Vec<u32>, b: Vec<u32>, c: Vec<u32> },
    /// `ldmatrix`: tiles of 8 x 8 16-bit elements.
    Load { d: Vec<u32>, address: Address, space: Space, transposed: bool },
    /// `stmatrix`: the same the other way.
    Store { s: Vec<u32>, address: Address, space: Space, transposed: bool },
    /// `movmatrix`: a tile, its rows as columns.
    Transpose { d: u32, a: u32 },
    /// `wmma.load`
    Fetch {
        d: Vec<u32>,
        address: Address,
        space: Space,
        stride: u32,
        rows: usize,
        columns: usize,
        ty: Type,
        by_column: bool,
    },
    /// `wmma.store`
    Put {
        s: Vec<u32>,
        address: Address,
        space: Space,
        stride: u32,
        rows: usize,
        columns: usize,
        ty: Type,
        by_column: bool,
    },
    /// `wmma.mma`
    Wmma {
        shape: [usize; 3],
        types: [Type; 4],
        d: Vec<u32>,
        a: Vec<u32>,
        b: Vec<u32>,
        c: Vec<u32>,
        saturate: bool,
        differ: bool,
    },
}

impl Matrix {
    /// Every row that it touches.
    pub fn rows(&self) -> Vec<u32> {
        match self {
            Matrix::Mma { d, a, b, c, .. } | Matrix::Wmma { d, a, b, c, .. } | Matrix::Quads { d, a, b, c, .. } => {
                [d, a, b, c].into_iter().flatten().copied().collect()
            }
            Matrix::Load { d: registers, address, .. } | Matrix::Store { s: registers, address, .. } => {
                registers.iter().copied().chain([address.row]).collect()
            }
            Matrix::Transpose { d, a } => vec![*d, *a],
            Matrix::Fetch { d: registers, address, stride, .. } | Matrix::Put { s: registers, address, stride, .. } => {
                registers.iter().copied().chain([address.row, *stride]).collect()
            }
        }
    }
}

/// What an atomic does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Inc,
    Dec,
    /// On the word of an `mbarrier` (see [`crate::mbarrier`]).
    BarrierInit,
    BarrierArrive,
    BarrierDrop,
    BarrierExpect,
    BarrierComplete,
}

/// What is done to 16 bytes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongOp {
    Load,
    Store,
    Exch,
    Cas,
}

/// An access to 16 bytes that no other one of its kind may cut in two: rows of the two halves, the low one first.
#[derive(Clone, Debug)]
pub struct Long {
    pub op: LongOp,
    pub space: Space,
    pub address: Address,
    /// The old value, or [`NONE`].
    pub old: [u32; 2],
    /// The new one (what is compared by `cas`), or [`NONE`].
    pub operand: [u32; 2],
    /// What `cas` puts there, or [`NONE`].
    pub swap: [u32; 2],
}

/// An atomic (`atom` or `red`).
#[derive(Clone, Debug)]
pub struct Atomic {
    pub space: Space,
    pub op: AtomicOp,
    pub ty: Type,
    /// In global memory numbers below the smallest normal one are zeros.
    pub flushes: bool,
    pub address: Address,
    /// What the address is a multiple of: the size, or that of the vector that this element begins.
    pub align: u32,
    /// Row of the old value, or [`NONE`].
    pub old: u32,
    pub operand: u32,
    /// Second operand (`cas`), or [`NONE`].
    pub swap: u32,
}

/// How a conversion rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
}

/// A conversion.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    pub to: Type,
    pub from: Type,
    pub rounding: Rounding,
    /// Round to an integral value (`.rni` and so on).
    pub integral: bool,
    pub saturate: bool,
    /// What is too large becomes the largest finite value (`.satfinite`).
    pub finite: bool,
    /// The destination register is wider than the type: extend its sign or zeros to this width.
    pub width: Width,
}

/// Whom a call goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function of the module, by index.
    Function(u32),
    /// A function pointer in this row.
    Pointer(u32),
    /// `vprintf`.
    Print,
    /// `__assertfail`.
    Assert,
    /// `malloc` and `free` on the device's heap.
    Malloc,
    Free,
}

/// A call site.  Parameters live in the frame's local memory.
#[derive(Clone, Debug)]
pub struct CallSite {
    pub callee: Callee,
    /// Offset and size of each argument in the caller's frame.
    pub arguments: Vec<(u32, u32)>,
    /// Offset, size and alignment of each result in the caller's frame.
    pub results: Vec<(u32, u32, u32)>,
}

/// A barrier instruction.
#[derive(Clone, Copy, Debug)]
pub struct BarrierSite {
    /// Row of the barrier's number.
    pub id: u32,
    /// Row of the thread count, or [`NONE`] for the whole block.
    pub count: u32,
    /// Does not wait (`bar.arrive`).
    pub arrive: bool,
    pub reduction: Option<Reduction>,
    /// Row of the predicate that is reduced, and whether it is negated.
    pub predicate: u32,
    pub negate: bool,
    /// Where the result goes.
    pub result: u32,
}

/// What `bar.red` computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    Popc,
    And,
    Or,
}

/// A parameter, variable of the frame or shared variable: where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    pub name: String,
    pub offset: u32,
    pub size: u32,
    pub align: u32,
}

/// A function or kernel, decoded.
#[derive(Clone, Debug, Default)]
pub struct Function {
    pub name: String,
    pub entry: bool,
    pub code: Vec<Ins>,
    pub constants: Vec<(Constant, bool)>,
    /// Row of each constant.
    pub constant_rows: Vec<u32>,
    pub rows: u32,
    /// Bytes of local memory in the frame, parameters of functions and call arguments included.
    pub local_bytes: u32,
    /// Bytes of `.local` variables alone.
    pub depot_bytes: u32,
    /// Row of the bytes that the frame's stack holds behind its local memory, if it may hold any.
    pub stack: Option<u32>,
    pub params: Vec<Slot>,
    pub results: Vec<Slot>,
    pub memories: Vec<Memory>,
    pub atomics: Vec<Atomic>,
    pub longs: Vec<Long>,
    pub casts: Vec<Cast>,
    pub calls: Vec<CallSite>,
    pub barriers: Vec<BarrierSite>,
    pub copies: Vec<Copy>,
    pub matrices: Vec<Matrix>,
    pub tables: Vec<Vec<u32>>,
    /// Shared variables that the function names, by index in the module.
    pub shared: Vec<u32>,
    /// Functions that it calls or whose address it takes.
    pub callees: Vec<u32>,
    /// Those whose address it takes.
    pub taken: Vec<u32>,
    /// Why it cannot run.
    pub unsupported: Option<PtxError>,
    pub registers: u32,
    /// What `.maxnreg` allows; zero without it.
    pub most_registers: u32,
    pub max_threads: u32,
    pub required: Option<[u32; 3]>,
    pub defined: bool,
    pub line: u32,
}

impl Function {
    /// The function that says why it cannot run.
    pub fn into_unsupported(self, error: PtxError) -> Function {
        Function { code: Vec::new(), unsupported: Some(error), ..self }
    }
}
