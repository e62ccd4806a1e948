//! Instructions in which the lanes of a warp see each other.

use super::lanes::Frame;
use crate::float::{max32, min32, single};
use crate::ir::*;
use crate::lower::{REDUX_ABS, REDUX_FLOAT, REDUX_MAX, REDUX_NAN};

/// Executes `vote`, `shfl`, `match`, `redux` for the lanes in the mask.
///
/// # Safety
/// The instruction was decoded for the frame's function.
pub unsafe fn execute(f: Frame, i: &Ins, mask: u32) {
    // SAFETY (all of the function): decoding checked the rows.
    unsafe {
        match i.op {
            Op::Vote => {
                let p = f.mask(i.a) ^ if i.b == 1 { u32::MAX } else { 0 };
                let yes = p & mask;
                if i.e == 3 {
                    f.put(i.d, &[yes; 32], mask);
                } else {
                    let result = match i.e {
                        0 => yes == mask,
                        1 => yes != 0,
                        _ => yes == mask || yes == 0,
                    };
                    f.set_mask(i.d, if result { u32::MAX } else { 0 }, mask);
                }
            }
            Op::Shuffle => shuffle(f, i, mask),
            Op::Match => {
                let a = if i.e & 2 != 0 { f.get::<u64>(i.a) } else { f.get::<u32>(i.a).map(u64::from) };
                let equal = |l: usize| {
                    (0..32).filter(|m| mask >> m & 1 == 1 && a[*m] == a[l]).fold(0u32, |set, m| set | 1 << m)
                };
                let mut out = [0u32; 32];
                let mut valid = 0;
                for (l, out) in out.iter_mut().enumerate() {
                    if mask >> l & 1 == 1 {
                        let same = equal(l);
                        if i.e & 1 == 0 {
                            *out = same;
                        } else if same == mask {
                            *out = mask;
                            valid |= 1 << l;
                        }
                    }
                }
                f.put(i.d, &out, mask);
                if i.imm as u32 != NONE {
                    f.set_mask(i.imm as u32, valid, mask);
                }
            }
            Op::Redux => {
                let a = f.get::<u32>(i.a);
                let values = (0..32).filter(|l| mask >> l & 1 == 1).map(|l| a[l]);
                let result = match i.e {
                    kind if kind & REDUX_FLOAT != 0 => reduce(values, kind),
                    0 => values.fold(0u32, u32::wrapping_add),
                    1 => values.min().unwrap_or(0),
                    2 => values.map(|v| v as i32).min().unwrap_or(0) as u32,
                    3 => values.max().unwrap_or(0),
                    4 => values.map(|v| v as i32).max().unwrap_or(0) as u32,
                    5 => values.fold(u32::MAX, |x, y| x & y),
                    6 => values.fold(0, |x, y| x | y),
                    _ => values.fold(0, |x, y| x ^ y),
                };
                f.put(i.d, &[result; 32], mask);
            }
            Op::Elect => {
                let leader = mask.trailing_zeros();
                f.put(i.d, &[leader; 32], mask);
                f.set_mask(i.imm as u32, 1 << leader, mask);
            }
            _ => {}
        }
    }
}

/// `redux` of single precision: NaNs lose, or with `.NaN` win.
fn reduce(values: impl Iterator<Item = u32>, kind: u32) -> u32 {
    let values = values.map(|v| f32::from_bits(if kind & REDUX_ABS != 0 { v & 0x7fff_ffff } else { v }));
    let chosen = values.reduce(|x, y| match kind & REDUX_MAX != 0 {
        _ if kind & REDUX_NAN != 0 && (x.is_nan() || y.is_nan()) => f32::NAN,
        true => max32(x, y),
        false => min32(x, y),
    });
    single(chosen.unwrap_or(0.0))
}

/// `shfl` as the PTX ISA's pseudocode has it.
unsafe fn shuffle(f: Frame, i: &Ins, mask: u32) {
    // SAFETY: decoding checked the rows.
    unsafe {
        let (a, b) = (f.get::<u32>(i.a), f.get::<u32>(i.b));
        let clamp = f.get::<u32>((i.imm >> 32) as u32);
        let valid_row = i.imm as u32;
        let mut out = [0u32; 32];
        let mut valid = 0u32;
        for (l, out) in out.iter_mut().enumerate() {
            let lane = l as u32;
            let shift = b[l] & 31;
            let segment = clamp[l] >> 8 & 31;
            let limit = lane & segment | clamp[l] & 31 & !segment;
            let (source, ok) = match i.e {
                0 => (lane.wrapping_sub(shift), lane as i32 - shift as i32 >= limit as i32),
                1 => (lane + shift, lane + shift <= limit),
                2 => (lane ^ shift, lane ^ shift <= limit),
                _ => {
                    let source = lane & segment | shift & !segment;
                    (source, source <= limit)
                }
            };
            *out = a[if ok { source as usize & 31 } else { l }];
            valid |= u32::from(ok) << l;
        }
        f.put(i.d, &out, mask);
        if valid_row != NONE {
            f.set_mask(valid_row, valid, mask);
        }
    }
}
