//! The instructions that compute without touching memory or control.

use super::lanes::{Frame, map1, map2, map3, test2};
use crate::float::Arithmetic;
use crate::ir::*;

macro_rules! define_simple {
    (
        unary { $($u:ident: $ua:ty => $ur:ty = $uf:expr;)* }
        binary { $($b:ident: $ba:ty, $bb:ty => $br:ty = $bf:expr;)* }
        ternary { $($t:ident: $ta:ty, $tb:ty, $tc:ty => $tr:ty = $tf:expr;)* }
    ) => {
        /// Executes an instruction of the table; false if it is none.
        ///
        /// # Safety
        /// The instruction was decoded for the frame's function.
        #[inline(always)]
        pub unsafe fn simple(f: Frame, i: &Ins, mask: u32) -> bool {
            // SAFETY: decoding checked the rows.
            unsafe {
                match i.op {
                    $(Op::$u => map1::<$ua, $ur>(f, i.d, i.a, mask, $uf),)*
                    $(Op::$b => map2::<$ba, $bb, $br>(f, i.d, i.a, i.b, mask, $bf),)*
                    $(Op::$t => map3::<$ta, $tb, $tc, $tr>(f, i.d, (i.a, i.b, i.c), mask, $tf),)*
                    _ => return false,
                }
            }
            true
        }
    };
}
with_alu_table!(define_simple);

#[allow(clippy::neg_cmp_op_on_partial_ord, clippy::double_comparisons)]
#[inline(always)]
unsafe fn compare<const V3: bool, T: super::lanes::Lane + PartialOrd>(f: Frame, i: &Ins) -> u32 {
    let code = i.e;
    let unordered = |x: T, y: T| x.partial_cmp(&y).is_none();
    macro_rules! go {
        ($test:expr) => {
            // SAFETY: decoding checked the rows.
            unsafe { test2::<V3, T>(f, i.a, i.b, $test) }
        };
    }
    const EQ: u32 = Relation::Eq as u32;
    const NE: u32 = Relation::Ne as u32;
    const LT: u32 = Relation::Lt as u32;
    const LE: u32 = Relation::Le as u32;
    const GT: u32 = Relation::Gt as u32;
    const GE: u32 = Relation::Ge as u32;
    const EQU: u32 = Relation::Equ as u32;
    const NEU: u32 = Relation::Neu as u32;
    const LTU: u32 = Relation::Ltu as u32;
    const LEU: u32 = Relation::Leu as u32;
    const GTU: u32 = Relation::Gtu as u32;
    const GEU: u32 = Relation::Geu as u32;
    const NUM: u32 = Relation::Num as u32;
    // The negations below are how the unordered relations are defined: true when either operand is a NaN.
    match code {
        EQ => go!(|x, y| x == y),
        // Ordered: false when either is a NaN.
        NE => go!(|x, y| x < y || x > y),
        LT => go!(|x, y| x < y),
        LE => go!(|x, y| x <= y),
        GT => go!(|x, y| x > y),
        GE => go!(|x, y| x >= y),
        EQU => go!(|x, y| x == y || unordered(x, y)),
        NEU => go!(|x, y| x != y),
        LTU => go!(|x, y| !(x >= y)),
        LEU => go!(|x, y| !(x > y)),
        GTU => go!(|x, y| !(x <= y)),
        GEU => go!(|x, y| !(x < y)),
        NUM => go!(|x, y| !unordered(x, y)),
        _ => go!(unordered),
    }
}

/// Executes predicate logic, comparisons and what has operands beyond the table; false if the instruction is none.
///
/// # Safety
/// The instruction was decoded for the frame's function.
#[inline(always)]
pub unsafe fn special<const V3: bool>(f: Frame, i: &Ins, mask: u32) -> bool {
    // SAFETY (all of the function): decoding checked the rows.
    unsafe {
        let flipped = |row: u32, bit: u32| f.mask(row) ^ if i.e >> bit & 1 == 1 { u32::MAX } else { 0 };
        let result = match i.op {
            Op::CmpS32 => compare::<V3, i32>(f, i),
            Op::CmpU32 => compare::<V3, u32>(f, i),
            Op::CmpS64 => compare::<V3, i64>(f, i),
            Op::CmpU64 => compare::<V3, u64>(f, i),
            Op::CmpF32 => compare::<V3, f32>(f, i),
            Op::CmpF64 => compare::<V3, f64>(f, i),
            Op::CmpU16 => compare::<V3, u16>(f, i),
            Op::CmpS16 => compare::<V3, i16>(f, i),
            Op::CmpF16 => compare_f16(f, i),
            Op::PredAnd => {
                f.set_mask(i.d, flipped(i.a, 0) & flipped(i.b, 1), mask);
                return true;
            }
            Op::PredOr => {
                f.set_mask(i.d, flipped(i.a, 0) | flipped(i.b, 1), mask);
                return true;
            }
            Op::PredXor => {
                f.set_mask(i.d, flipped(i.a, 0) ^ flipped(i.b, 1), mask);
                return true;
            }
            Op::PredNot => {
                f.set_mask(i.d, !flipped(i.a, 0), mask);
                return true;
            }
            Op::PredMov => {
                f.set_mask(i.d, f.mask(i.a), mask);
                return true;
            }
            Op::PredConst => {
                f.set_mask(i.d, if i.e == 1 { u32::MAX } else { 0 }, mask);
                return true;
            }
            Op::Sel32 => {
                let (a, b, p) = (f.get::<u32>(i.a), f.get::<u32>(i.b), f.mask(i.c));
                let mut out = [0u32; 32];
                for l in 0..32 {
                    out[l] = if p >> l & 1 == 1 { a[l] } else { b[l] };
                }
                f.put(i.d, &out, mask);
                return true;
            }
            Op::Sel64 => {
                let (a, b, p) = (f.get::<u64>(i.a), f.get::<u64>(i.b), f.mask(i.c));
                let mut out = [0u64; 32];
                for l in 0..32 {
                    out[l] = if p >> l & 1 == 1 { a[l] } else { b[l] };
                }
                f.put(i.d, &out, mask);
                return true;
            }
            Op::FrameAddress64 => {
                let out = f.get::<u32>(ROW_LOCAL).map(|b| u64::from(b).wrapping_add(i.imm as u64));
                f.put(i.d, &out, mask);
                return true;
            }
            Op::FrameAddress32 => {
                let out = f.get::<u32>(ROW_LOCAL).map(|b| b.wrapping_add(i.imm as u32));
                f.put(i.d, &out, mask);
                return true;
            }
            Op::Lop3 => {
                let table = i.e;
                map3::<u32, u32, u32, u32>(f, i.d, (i.a, i.b, i.c), mask, |a, b, c| crate::bits::lop3(a, b, c, table));
                return true;
            }
            Op::Bfi32 => {
                let length = f.get::<u32>(i.e);
                let (a, b, c) = (f.get::<u32>(i.a), f.get::<u32>(i.b), f.get::<u32>(i.c));
                let mut out = [0u32; 32];
                for l in 0..32 {
                    out[l] = crate::bits::bfi(u64::from(a[l]), u64::from(b[l]), c[l], length[l], 32) as u32;
                }
                f.put(i.d, &out, mask);
                return true;
            }
            Op::Bfi64 => {
                let length = f.get::<u32>(i.e);
                let (a, b, c) = (f.get::<u64>(i.a), f.get::<u64>(i.b), f.get::<u32>(i.c));
                let mut out = [0u64; 32];
                for l in 0..32 {
                    out[l] = crate::bits::bfi(a[l], b[l], c[l], length[l], 64);
                }
                f.put(i.d, &out, mask);
                return true;
            }
            Op::TestpF32 => test_class(f.get::<f32>(i.a).map(class32), i.e),
            Op::TestpF64 => test_class(f.get::<f64>(i.a).map(|b| f64::from_bits(b).classify()), i.e),
            Op::Carry32 => {
                carry32(f, i, mask);
                return true;
            }
            Op::Carry64 => {
                carry64(f, i, mask);
                return true;
            }
            Op::Directed32 => {
                directed32(f, i, mask);
                return true;
            }
            Op::Directed64 => {
                directed64(f, i, mask);
                return true;
            }
            Op::IsSpace => {
                let a = f.get::<u64>(i.a);
                let mut out = 0;
                for (l, a) in a.iter().enumerate() {
                    let space = match *a {
                        a if a < SHARED_WINDOW => Space::Global as u32,
                        a if a < LOCAL_WINDOW => Space::Shared as u32,
                        a if a < PARAM_WINDOW => Space::Local as u32,
                        _ => Space::Param as u32,
                    };
                    out |= u32::from(space == i.e) << l;
                }
                out
            }
            _ => return false,
        };
        f.set_mask(i.d, result, mask);
        if i.c != NONE {
            f.set_mask(i.c, !result, mask);
        }
    }
    true
}

fn class32(bits: u32) -> std::num::FpCategory {
    f32::from_bits(bits).classify()
}

fn test_class(classes: [std::num::FpCategory; 32], kind: u32) -> u32 {
    use std::num::FpCategory::*;
    let mut out = 0;
    for (l, class) in classes.iter().enumerate() {
        let yes = match kind {
            0 => !matches!(class, Nan | Infinite),
            1 => *class == Infinite,
            2 => *class != Nan,
            3 => *class == Nan,
            4 => *class == Normal,
            _ => *class == Subnormal,
        };
        out |= u32::from(yes) << l;
    }
    out
}

#[inline(never)]
unsafe fn compare_f16(f: Frame, i: &Ins) -> u32 {
    // SAFETY: decoding checked the rows; the copies live in a frame of our own.
    unsafe {
        let mut rows = [super::lanes::Row::ZERO; 2];
        for (row, source) in rows.iter_mut().zip([i.a, i.b]) {
            row.0 = f.get::<u32>(source).map(|b| crate::half::from_f16(b as u16).to_bits());
        }
        compare::<false, f32>(Frame(rows.as_mut_ptr()), &Ins { a: 0, b: 1, ..*i })
    }
}

macro_rules! carry {
    ($name:ident, $t:ty) => {
        #[inline(never)]
        unsafe fn $name(f: Frame, i: &Ins, mask: u32) {
            // SAFETY: decoding checked the rows.
            unsafe {
                let (a, b, carry) = (f.get::<$t>(i.a), f.get::<$t>(i.b), f.mask(ROW_CARRY));
                let (uses, sets, subtracts) = (i.e & 1, i.e & 2, i.e & 4);
                let mut out = [0; 32];
                let mut flags = 0u32;
                for l in 0..32 {
                    let c = if uses != 0 { <$t>::from((carry >> l & 1) as u8) } else { 0 };
                    // The flag after a subtraction is the borrow.
                    let (r, flag) = if subtracts != 0 {
                        let (r, x) = a[l].overflowing_sub(b[l]);
                        let (r, y) = r.overflowing_sub(c);
                        (r, x | y)
                    } else {
                        let (r, x) = a[l].overflowing_add(b[l]);
                        let (r, y) = r.overflowing_add(c);
                        (r, x | y)
                    };
                    out[l] = r;
                    flags |= u32::from(flag) << l;
                }
                f.put(i.d, &out, mask);
                if sets != 0 {
                    f.set_mask(ROW_CARRY, flags, mask);
                }
            }
        }
    };
}
carry!(carry32, u32);
carry!(carry64, u64);

fn arithmetic(code: u32) -> Arithmetic {
    use Arithmetic::*;
    [Add, Sub, Mul, Fma, Div, Rcp, Sqrt].into_iter().find(|a| *a as u32 == code).unwrap_or(Sqrt)
}

fn rounding(code: u32) -> Rounding {
    use Rounding::*;
    [Zero, Down, Up].into_iter().find(|r| *r as u32 == code).unwrap_or(Nearest)
}

macro_rules! directed {
    ($name:ident, $f:ty, $raw:ty) => {
        #[inline(never)]
        unsafe fn $name(f: Frame, i: &Ins, mask: u32) {
            // SAFETY: decoding checked the rows; an absent operand is not read.
            unsafe {
                let get = |row: u32| if row == NONE { [0 as $raw; 32] } else { f.get::<$f>(row) };
                let (a, b, c) = (get(i.a), get(i.b), get(i.c));
                let (what, rounding) = (arithmetic(i.e >> 8), rounding(i.e & 255));
                let mut out = [0 as $raw; 32];
                for l in 0..32 {
                    let [a, b, c] = [a[l], b[l], c[l]].map(<$f>::from_bits);
                    out[l] = crate::float::$name(what, rounding, a, b, c).to_bits();
                }
                f.put(i.d, &out, mask);
            }
        }
    };
}
directed!(directed32, f32, u32);
directed!(directed64, f64, u64);
