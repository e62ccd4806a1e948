//! How each instruction becomes vector instructions: for four lanes of 32 bits, or twice two lanes of 64.
//!
//! An instruction without a recipe is a call of its function in [`crate::exec::alu`] or [`crate::exec::memory`].

use super::plan::Constants;
use crate::ir::*;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32X4, F64X2, I8X16, I32X4, I64X2};
use cranelift_codegen::ir::{ConstantData, Endianness, InstBuilder, MemFlags, Type as Clif, Value};
use cranelift_frontend::FunctionBuilder;

type B<'a> = FunctionBuilder<'a>;
pub type Unary = fn(&mut B, Value) -> Value;
pub type Binary = fn(&mut B, Value, Value) -> Value;
pub type Ternary = fn(&mut B, Value, Value, Value) -> Value;
/// A pair of vectors: four lanes of 64 bits.
pub type Pair = [Value; 2];

/// What stands for an instruction.
#[derive(Clone, Copy)]
pub enum Recipe {
    /// 32-bit lanes as integers; the result is cut to so many bits.
    Int1(Unary, u32),
    Int2(Binary, u32),
    Int3(Ternary, u32),
    /// 64-bit lanes as integers, two at a time.
    Long1(Unary),
    Long2(Binary),
    Long3(Ternary),
    /// `f32` and `f64` lanes.
    Float1(Unary),
    Float2(Binary),
    Float3(Ternary),
    Double1(Unary),
    Double2(Binary),
    Double3(Ternary),
    /// 32-bit lanes shifted or taken apart by a constant amount.
    Shift(fn(&mut B, Value, u32) -> Value, u32, u32),
    LongShift(fn(&mut B, Value, u32) -> Value, u32),
    /// From 32-bit lanes to 64-bit ones.
    Widen(fn(&mut B, Value) -> Pair),
    Widen2(fn(&mut B, Value, Value) -> Pair),
    WidenAdd(fn(&mut B, Value, Value) -> Pair),
    /// The 32-bit lanes widened, and shifted by a constant amount.
    WidenShift(fn(&mut B, Value, i64) -> Pair, i64),
    /// From 64-bit lanes to 32-bit ones.
    Narrow(fn(&mut B, Pair) -> Value),
    /// 32-bit lanes of 64-bit ones from the given half.
    Half(u32),
    Compare,
    CompareLong,
    CompareFloat,
    CompareDouble,
    Logic,
    Select,
    SelectLong,
    Lop3,
    Special,
    FrameAddress,
    LoadParam,
    Load,
}

/// The same bits as another vector type.
pub fn cast(b: &mut B, to: Clif, v: Value) -> Value {
    if b.func.dfg.value_type(v) == to {
        return v;
    }
    b.ins().bitcast(to, MemFlags::new().with_endianness(Endianness::Little), v)
}

/// A vector of the same 32-bit value.
pub fn splat32(b: &mut B, v: u32) -> Value {
    let bytes: Vec<u8> = (0..4).flat_map(|_| v.to_le_bytes()).collect();
    vector(b, I32X4, &bytes)
}

/// A vector of the same 64-bit value.
pub fn splat64(b: &mut B, v: u64) -> Value {
    let bytes: Vec<u8> = (0..2).flat_map(|_| v.to_le_bytes()).collect();
    vector(b, I64X2, &bytes)
}

/// A constant vector.
pub fn vector(b: &mut B, ty: Clif, bytes: &[u8]) -> Value {
    let handle = b.func.dfg.constants.insert(ConstantData::from(bytes));
    b.ins().vconst(ty, handle)
}

/// Bytes of two vectors (0 to 15 of the first, 16 to 31 of the second), as 32-bit lanes.
pub fn shuffle(b: &mut B, x: Value, y: Value, lanes: [u8; 4]) -> Value {
    let bytes: Vec<u8> = lanes.iter().flat_map(|l| (0..4).map(move |k| 4 * l + k)).collect();
    let (x, y) = (cast(b, I8X16, x), cast(b, I8X16, y));
    let mask = b.func.dfg.immediates.push(ConstantData::from(bytes.as_slice()));
    let out = b.ins().shuffle(x, y, mask);
    cast(b, I32X4, out)
}

/// The low words of four 64-bit lanes.
pub fn low_words(b: &mut B, v: Pair) -> Value {
    shuffle(b, v[0], v[1], [0, 2, 4, 6])
}

/// The high words of four 64-bit lanes.
pub fn high_words(b: &mut B, v: Pair) -> Value {
    shuffle(b, v[0], v[1], [1, 3, 5, 7])
}

/// The first lane of 32-bit or 64-bit ones in all places.
pub fn splat_first(b: &mut B, v: Value) -> Value {
    let ty = b.func.dfg.value_type(v);
    let out = shuffle(b, v, v, if ty == I64X2 { [0, 1, 0, 1] } else { [0; 4] });
    cast(b, ty, out)
}

/// A lane mask of 32-bit lanes for 64-bit ones.
pub fn widen_mask(b: &mut B, v: Value) -> Pair {
    [b.ins().swiden_low(v), b.ins().swiden_high(v)]
}

fn unsigned_wide(b: &mut B, v: Value) -> Pair {
    [b.ins().uwiden_low(v), b.ins().uwiden_high(v)]
}

fn floats(b: &mut B, v: Value) -> Value {
    cast(b, F32X4, v)
}

fn high_floats(b: &mut B, v: Value) -> Value {
    let high = shuffle(b, v, v, [2, 3, 2, 3]);
    floats(b, high)
}

fn demote(b: &mut B, v: Pair) -> Value {
    let parts = v.map(|v| {
        let d = cast(b, F64X2, v);
        b.ins().fvdemote(d)
    });
    shuffle(b, parts[0], parts[1], [0, 1, 4, 5])
}

fn promote(b: &mut B, v: Value) -> Pair {
    let (low, high) = (floats(b, v), high_floats(b, v));
    [b.ins().fvpromote_low(low), b.ins().fvpromote_low(high)]
}

/// `min` and `max` as PTX defines them (see [`crate::float`]): a NaN loses, -0 is less than +0.
fn extreme(b: &mut B, x: Value, y: Value, less: bool) -> Value {
    let wide = b.func.dfg.value_type(x) == F64X2;
    let int = if wide { I64X2 } else { I32X4 };
    let before = b.ins().fcmp(if less { FloatCC::LessThan } else { FloatCC::GreaterThan }, x, y);
    let nan = b.ins().fcmp(FloatCC::NotEqual, y, y);
    let equal = b.ins().fcmp(FloatCC::Equal, x, y);
    let bits = cast(b, int, x);
    let zero = if wide { splat64(b, 0) } else { splat32(b, 0) };
    let negative = b.ins().icmp(IntCC::SignedLessThan, bits, zero);
    let negative = if less { negative } else { b.ins().bnot(negative) };
    let tie = b.ins().band(equal, negative);
    let take = b.ins().bor(before, nan);
    let take = b.ins().bor(take, tie);
    let y = cast(b, int, y);
    let out = b.ins().bitselect(take, bits, y);
    cast(b, if wide { F64X2 } else { F32X4 }, out)
}

fn saturate(b: &mut B, v: Value) -> Value {
    let wide = b.func.dfg.value_type(v) == F64X2;
    let (int, zero, one) = if wide {
        (I64X2, splat64(b, 0), splat64(b, 1f64.to_bits()))
    } else {
        (I32X4, splat32(b, 0), splat32(b, 1f32.to_bits()))
    };
    let float = b.func.dfg.value_type(v);
    let (fzero, fone) = (cast(b, float, zero), cast(b, float, one));
    let above = b.ins().fcmp(FloatCC::GreaterThan, v, fzero);
    let below = b.ins().fcmp(FloatCC::LessThan, v, fone);
    let bits = cast(b, int, v);
    let cut = b.ins().bitselect(below, bits, one);
    let out = b.ins().band(above, cut);
    cast(b, float, out)
}

/// Of lanes without an exponent the sign alone.
fn flush(b: &mut B, v: Value, [sign, exponent, zero]: [Value; 3]) -> Value {
    let signed = b.ins().band(v, sign);
    let exponent = b.ins().band(v, exponent);
    let none = b.ins().icmp(IntCC::Equal, exponent, zero);
    b.ins().bitselect(none, signed, v)
}

fn flush32(b: &mut B, v: Value) -> Value {
    let parts = [1 << 31, 0x7f80_0000, 0].map(|bits| splat32(b, bits));
    flush(b, v, parts)
}

/// The product of 32-bit lanes in 64 bits.
fn product(b: &mut B, x: Value, y: Value, signed: bool) -> Pair {
    if signed {
        let (x, y) = (widen_mask(b, x), widen_mask(b, y));
        [b.ins().imul(x[0], y[0]), b.ins().imul(x[1], y[1])]
    } else {
        let (x, y) = (unsigned_wide(b, x), unsigned_wide(b, y));
        [b.ins().imul(x[0], y[0]), b.ins().imul(x[1], y[1])]
    }
}

pub fn signed16(b: &mut B, v: Value) -> Value {
    let up = b.ins().ishl_imm(v, 16);
    b.ins().sshr_imm(up, 16)
}

/// Whether unsigned x is less than y in 64-bit lanes.
pub fn below64(b: &mut B, x: Value, y: Value) -> Value {
    let sign = splat64(b, 1 << 63);
    let (x, y) = (b.ins().bxor(x, sign), b.ins().bxor(y, sign));
    b.ins().icmp(IntCC::SignedLessThan, x, y)
}

fn pick(b: &mut B, mask: Value, x: Value, y: Value) -> Value {
    b.ins().bitselect(mask, x, y)
}

fn bounded_left(b: &mut B, v: Value, amount: u32, bits: u32) -> Value {
    if amount >= bits {
        return if bits == 64 { splat64(b, 0) } else { splat32(b, 0) };
    }
    b.ins().ishl_imm(v, i64::from(amount))
}

fn bounded_right(b: &mut B, v: Value, amount: u32, bits: u32) -> Value {
    if amount >= bits {
        return if bits == 64 { splat64(b, 0) } else { splat32(b, 0) };
    }
    b.ins().ushr_imm(v, i64::from(amount))
}

/// The recipe of an instruction, if it has one.  `native_fma`: the processor multiplies and adds in one step.
pub fn recipe(i: &Ins, constants: &Constants, native_fma: bool) -> Option<Recipe> {
    use Recipe::*;
    let amount = || constants.get(i.b).map(|v| v as u32);
    // Which power of two a row is.
    let power = |row: u32| {
        let v = constants.get(row)? as u32;
        (v.is_power_of_two() && v >> 31 == 0).then(|| i64::from(v.trailing_zeros()))
    };
    Some(match i.op {
        Op::Mov32 => Int1(|_, a| a, 32),
        Op::Mov64 => Long1(|_, a| a),
        Op::Neg16 => Int1(|b, a| b.ins().ineg(a), 16),
        Op::Neg32 => Int1(|b, a| b.ins().ineg(a), 32),
        Op::Neg64 => Long1(|b, a| b.ins().ineg(a)),
        Op::Abs32 => Int1(|b, a| b.ins().iabs(a), 32),
        Op::Not16 => Int1(|b, a| b.ins().bnot(a), 16),
        Op::Not32 => Int1(|b, a| b.ins().bnot(a), 32),
        Op::Not64 => Long1(|b, a| b.ins().bnot(a)),
        Op::NegF32 => Int1(
            |b, a| {
                let sign = splat32(b, 1 << 31);
                b.ins().bxor(a, sign)
            },
            32,
        ),
        Op::AbsF32 => Int1(
            |b, a| {
                let rest = splat32(b, !(1 << 31));
                b.ins().band(a, rest)
            },
            32,
        ),
        Op::NegF64 => Long1(|b, a| {
            let sign = splat64(b, 1 << 63);
            b.ins().bxor(a, sign)
        }),
        Op::AbsF64 => Long1(|b, a| {
            let rest = splat64(b, !(1 << 63));
            b.ins().band(a, rest)
        }),
        Op::SatF32 => Float1(saturate),
        Op::SatF64 => Double1(saturate),
        Op::FlushF32 => Int1(flush32, 32),
        Op::FlushF32x2 => Long1(|b, v| {
            let words = cast(b, I32X4, v);
            let flushed = flush32(b, words);
            cast(b, I64X2, flushed)
        }),
        Op::FlushF64 => Long1(|b, v| {
            let parts = [1 << 63, 0x7ff << 52, 0].map(|bits| splat64(b, bits));
            flush(b, v, parts)
        }),
        Op::SqrtF32 => Float1(|b, a| b.ins().sqrt(a)),
        Op::SqrtF64 => Double1(|b, a| b.ins().sqrt(a)),
        Op::RcpF32 => Float1(|b, a| {
            let one = splat32(b, 1f32.to_bits());
            let one = cast(b, F32X4, one);
            b.ins().fdiv(one, a)
        }),
        Op::RcpF64 => Double1(|b, a| {
            let one = splat64(b, 1f64.to_bits());
            let one = cast(b, F64X2, one);
            b.ins().fdiv(one, a)
        }),
        Op::RsqrtF32 => Float1(|b, a| {
            let one = splat64(b, 1f64.to_bits());
            let one = cast(b, F64X2, one);
            let parts = promote(b, a).map(|d| {
                let root = b.ins().sqrt(d);
                b.ins().fdiv(one, root)
            });
            demote(b, parts)
        }),
        Op::RsqrtF64 => Double1(|b, a| {
            let one = splat64(b, 1f64.to_bits());
            let one = cast(b, F64X2, one);
            let root = b.ins().sqrt(a);
            b.ins().fdiv(one, root)
        }),
        Op::S64S32 => Widen(widen_mask),
        Op::U64U32 => Widen(unsigned_wide),
        Op::U32U64 => Narrow(low_words),
        Op::U16U32 => Int1(|_, a| a, 16),
        Op::S32S16 => Int1(signed16, 32),
        Op::F64F32 => Widen(promote),
        Op::F32F64 => Narrow(demote),
        Op::F32S32 => Int1(|b, a| b.ins().fcvt_from_sint(F32X4, a), 32),
        Op::F32U32 => Int1(|b, a| b.ins().fcvt_from_uint(F32X4, a), 32),
        Op::F64S32 => Widen(|b, a| widen_mask(b, a).map(|v| b.ins().fcvt_from_sint(F64X2, v))),
        Op::F64U32 => Widen(|b, a| unsigned_wide(b, a).map(|v| b.ins().fcvt_from_uint(F64X2, v))),
        Op::S32F32 => Int1(
            |b, a| {
                let a = cast(b, F32X4, a);
                b.ins().fcvt_to_sint_sat(I32X4, a)
            },
            32,
        ),
        Op::Add16 => Int2(|b, x, y| b.ins().iadd(x, y), 16),
        Op::Add32 => Int2(|b, x, y| b.ins().iadd(x, y), 32),
        Op::Add64 => Long2(|b, x, y| b.ins().iadd(x, y)),
        Op::Sub16 => Int2(|b, x, y| b.ins().isub(x, y), 16),
        Op::Sub32 => Int2(|b, x, y| b.ins().isub(x, y), 32),
        Op::Sub64 => Long2(|b, x, y| b.ins().isub(x, y)),
        Op::MulLo16 => Int2(|b, x, y| b.ins().imul(x, y), 16),
        Op::MulLo32 => Int2(|b, x, y| b.ins().imul(x, y), 32),
        Op::MulLo64 => Long2(|b, x, y| b.ins().imul(x, y)),
        Op::MulHiU32 => Int2(
            |b, x, y| {
                let wide = product(b, x, y, false);
                high_words(b, wide)
            },
            32,
        ),
        Op::MulHiS32 => Int2(
            |b, x, y| {
                let wide = product(b, x, y, true);
                high_words(b, wide)
            },
            32,
        ),
        Op::MulWideU32 if power(i.b).is_some() => {
            WidenShift(|b, x, n| unsigned_wide(b, x).map(|v| b.ins().ishl_imm(v, n)), power(i.b)?)
        }
        Op::MulWideS32 if power(i.b).is_some() => {
            WidenShift(|b, x, n| widen_mask(b, x).map(|v| b.ins().ishl_imm(v, n)), power(i.b)?)
        }
        Op::MulWideU16 => Int2(|b, x, y| b.ins().imul(x, y), 32),
        Op::MulWideS16 => Int2(
            |b, x, y| {
                let (x, y) = (signed16(b, x), signed16(b, y));
                b.ins().imul(x, y)
            },
            32,
        ),
        Op::MulWideU32 => Widen2(|b, x, y| product(b, x, y, false)),
        Op::MulWideS32 => Widen2(|b, x, y| product(b, x, y, true)),
        Op::MinU16 | Op::MinU32 => Int2(|b, x, y| b.ins().umin(x, y), 32),
        Op::MaxU16 | Op::MaxU32 => Int2(|b, x, y| b.ins().umax(x, y), 32),
        Op::MinS32 => Int2(|b, x, y| b.ins().smin(x, y), 32),
        Op::MaxS32 => Int2(|b, x, y| b.ins().smax(x, y), 32),
        Op::MinS64 => Long2(|b, x, y| {
            let m = b.ins().icmp(IntCC::SignedLessThan, x, y);
            pick(b, m, x, y)
        }),
        Op::MaxS64 => Long2(|b, x, y| {
            let m = b.ins().icmp(IntCC::SignedLessThan, x, y);
            pick(b, m, y, x)
        }),
        Op::MinU64 => Long2(|b, x, y| {
            let m = below64(b, x, y);
            pick(b, m, x, y)
        }),
        Op::MaxU64 => Long2(|b, x, y| {
            let m = below64(b, x, y);
            pick(b, m, y, x)
        }),
        Op::And16 | Op::And32 => Int2(|b, x, y| b.ins().band(x, y), 32),
        Op::Or16 | Op::Or32 => Int2(|b, x, y| b.ins().bor(x, y), 32),
        Op::Xor16 | Op::Xor32 => Int2(|b, x, y| b.ins().bxor(x, y), 32),
        Op::And64 => Long2(|b, x, y| b.ins().band(x, y)),
        Op::Or64 => Long2(|b, x, y| b.ins().bor(x, y)),
        Op::Xor64 => Long2(|b, x, y| b.ins().bxor(x, y)),
        Op::Shl16 => Shift(|b, v, n| bounded_left(b, v, n, 32), amount()?, 16),
        Op::Shl32 => Shift(|b, v, n| bounded_left(b, v, n, 32), amount()?, 32),
        Op::Shl64 => LongShift(|b, v, n| bounded_left(b, v, n, 64), amount()?),
        Op::ShrU16 | Op::ShrU32 => Shift(|b, v, n| bounded_right(b, v, n, 32), amount()?, 32),
        Op::ShrU64 => LongShift(|b, v, n| bounded_right(b, v, n, 64), amount()?),
        Op::ShrS16 => Shift(
            |b, v, n| {
                let v = signed16(b, v);
                b.ins().sshr_imm(v, i64::from(n.min(15)))
            },
            amount()?,
            16,
        ),
        Op::ShrS32 => Shift(|b, v, n| b.ins().sshr_imm(v, i64::from(n.min(31))), amount()?, 32),
        Op::ShrS64 => LongShift(|b, v, n| b.ins().sshr_imm(v, i64::from(n.min(63))), amount()?),
        Op::Extract16 => Shift(|b, v, n| b.ins().ushr_imm(v, i64::from(n & 31)), amount()?, 16),
        Op::Extract8 => Shift(
            |b, v, n| {
                let v = b.ins().ushr_imm(v, i64::from(n & 31));
                let cut = splat32(b, 255);
                b.ins().band(v, cut)
            },
            amount()?,
            32,
        ),
        Op::Extract32 => Half((amount()? / 32) & 1),
        Op::Pack16 => Int2(
            |b, x, y| {
                let high = b.ins().ishl_imm(y, 16);
                b.ins().bor(x, high)
            },
            32,
        ),
        Op::Pack32 => Widen2(|b, x, y| [shuffle(b, x, y, [0, 4, 1, 5]), shuffle(b, x, y, [2, 6, 3, 7])]),
        Op::AddF32 => Float2(|b, x, y| b.ins().fadd(x, y)),
        Op::AddF64 => Double2(|b, x, y| b.ins().fadd(x, y)),
        Op::SubF32 => Float2(|b, x, y| b.ins().fsub(x, y)),
        Op::SubF64 => Double2(|b, x, y| b.ins().fsub(x, y)),
        Op::MulF32 => Float2(|b, x, y| b.ins().fmul(x, y)),
        Op::MulF64 => Double2(|b, x, y| b.ins().fmul(x, y)),
        Op::DivF32 => Float2(|b, x, y| b.ins().fdiv(x, y)),
        Op::DivF64 => Double2(|b, x, y| b.ins().fdiv(x, y)),
        Op::MinF32 => Float2(|b, x, y| extreme(b, x, y, true)),
        Op::MaxF32 => Float2(|b, x, y| extreme(b, x, y, false)),
        Op::MinF64 => Double2(|b, x, y| extreme(b, x, y, true)),
        Op::MaxF64 => Double2(|b, x, y| extreme(b, x, y, false)),
        Op::MadLo16 => Int3(
            |b, x, y, z| {
                let p = b.ins().imul(x, y);
                b.ins().iadd(p, z)
            },
            16,
        ),
        Op::MadLo32 => Int3(
            |b, x, y, z| {
                let p = b.ins().imul(x, y);
                b.ins().iadd(p, z)
            },
            32,
        ),
        Op::MadLo64 => Long3(|b, x, y, z| {
            let p = b.ins().imul(x, y);
            b.ins().iadd(p, z)
        }),
        Op::MadWideU32 => WidenAdd(|b, x, y| product(b, x, y, false)),
        Op::MadWideS32 => WidenAdd(|b, x, y| product(b, x, y, true)),
        Op::FmaF32 if native_fma => Float3(|b, x, y, z| b.ins().fma(x, y, z)),
        Op::FmaF64 if native_fma => Double3(|b, x, y, z| b.ins().fma(x, y, z)),
        Op::CmpU16 | Op::CmpS16 | Op::CmpU32 | Op::CmpS32 if i.e < Relation::Equ as u32 => Compare,
        Op::CmpU64 | Op::CmpS64 if i.e < Relation::Equ as u32 => CompareLong,
        Op::CmpF32 => CompareFloat,
        Op::CmpF64 => CompareDouble,
        Op::PredAnd | Op::PredOr | Op::PredXor | Op::PredNot | Op::PredMov | Op::PredConst => Logic,
        Op::Sel32 => Select,
        Op::Sel64 => SelectLong,
        Op::Lop3 => Lop3,
        // Time and the warp's number are asked for, not computed.
        Op::Special if !matches!(i.e, 13 | 18..=21 | 29) => Special,
        Op::FrameAddress32 | Op::FrameAddress64 => FrameAddress,
        Op::LoadParam => LoadParam,
        Op::Load => Load,
        _ => return None,
    })
}
