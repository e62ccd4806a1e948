//! The instructions that compute without touching memory or control.

use super::lanes::{Frame, Lane, map1, map2, map3};
use crate::float::Arithmetic;
use crate::ir::*;
use crate::{exact, float};

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

/// Executes what has operands beyond the table; false if the instruction is none.
///
/// # Safety
/// The instruction was decoded for the frame's function.
#[inline(always)]
pub unsafe fn special(f: Frame, i: &Ins, mask: u32) -> bool {
    // SAFETY (all of the function): decoding checked the rows.
    unsafe {
        let result = match i.op {
            Op::CmpF16 => compare_f16(f, i),
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
            // Zeros are normal numbers, the PTX ISA says.
            4 => matches!(class, Normal | Zero),
            _ => *class == Subnormal,
        };
        out |= u32::from(yes) << l;
    }
    out
}

/// Comparisons of 16-bit floats, through `f32`.
#[inline(never)]
unsafe fn compare_f16(f: Frame, i: &Ins) -> u32 {
    // SAFETY: decoding checked the rows.
    let (a, b) = unsafe { (f.get::<u32>(i.a), f.get::<u32>(i.b)) };
    let mut out = 0;
    for l in 0..32 {
        let order = crate::half::from_f16(a[l] as u16).partial_cmp(&crate::half::from_f16(b[l] as u16));
        out |= u32::from(Relation::of(i.e).holds(order)) << l;
    }
    out
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
                    let set = carry >> l & 1 != 0;
                    // A difference is a sum with the complement and one: its flag says that nothing was borrowed.
                    let (r, flag) = if subtracts != 0 {
                        let (r, x) = a[l].overflowing_sub(b[l]);
                        let (r, y) = r.overflowing_sub(<$t>::from(uses != 0 && !set));
                        (r, !(x | y))
                    } else {
                        let (r, x) = a[l].overflowing_add(b[l]);
                        let (r, y) = r.overflowing_add(<$t>::from(uses != 0 && set));
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
    ($place:ident, $name:ident, $f:ty, $raw:ty) => {
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
                    out[l] = $place::$name(what, rounding, a, b, c).raw();
                }
                f.put(i.d, &out, mask);
            }
        }
    };
}
directed!(float, directed32, f32, u32);
directed!(exact, directed64, f64, u64);
