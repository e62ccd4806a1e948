//! `cvt`: numbers without bounds, rounded to what they become.

use super::Kind::{self, *};
use super::exact::{F16, F32, Number, TF32, WAYS, Way};
use super::floats::{FLOATS, Float};
use super::forms::Forms;
use super::integers::{BYTES, INTS, Int};

/// Directions in which a number becomes a whole one.
const WHOLE: [(&str, Way); 4] = [("rni", Way::Nearest), ("rzi", Way::Zero), ("rmi", Way::Down), ("rpi", Way::Up)];

/// Registers that can hold an integer, this one or another as the turn goes.
fn registers(ty: Int, turn: usize) -> Kind {
    let choices: &[Kind] = match ty.bits {
        8 | 16 => &[H, R],
        32 => &[R, R, R, D],
        _ => &[D],
    };
    choices[turn % choices.len()]
}

/// The lowest bits of a number, and above them copies of its sign as far as the register goes.
fn spread(ty: Int, v: i128, register: Kind) -> u64 {
    let bits = match register {
        H => 16,
        R => 32,
        _ => 64,
    };
    Int { bits, ..ty }.cut(ty.value(ty.cut(v)))
}

pub fn forms(out: &mut Forms) {
    let integers = || INTS.into_iter().chain(BYTES);
    let mut turn = 0;
    for from in integers() {
        for to in integers() {
            turn += 1;
            let (source, target) = (registers(from, turn), registers(to, turn / 2));
            let (least, most) = to.range();
            out.one(format!("cvt.{}.{}", to.name, from.name), target, &[source], move |x| {
                spread(to, from.value(x[0]), target)
            });
            out.one(format!("cvt.sat.{}.{}", to.name, from.name), target, &[source], move |x| {
                spread(to, from.value(x[0]).clamp(least, most), target)
            });
        }
        for to in FLOATS {
            turn += 1;
            let source = registers(from, turn);
            for (suffix, way) in WAYS {
                let number = move |x: &[u64]| Number::of_integer(from.value(x[0]));
                out.one(format!("cvt.{suffix}.{}.{}", to.name, from.name), to.kind, &[source], move |x| {
                    to.format.encode(&number(x), way)
                });
                if to.name != "bf16" {
                    out.one(format!("cvt.{suffix}.sat.{}.{}", to.name, from.name), to.kind, &[source], move |x| {
                        to.format.encode(&number(x).saturated(), way)
                    });
                }
            }
        }
    }
    for from in FLOATS {
        for to in integers() {
            turn += 1;
            let target = registers(to, turn);
            for (suffix, way) in WHOLE {
                out.one(format!("cvt.{suffix}.{}.{}", to.name, from.name), target, &[from.kind], move |x| {
                    spread(to, to_integer(&from.format.decode(x[0]), way, from, to), target)
                });
            }
        }
        for to in FLOATS {
            between(out, from, to);
        }
    }
    pairs(out);
    tensor_floats(out);
    bytes(out);
}

/// A NaN becomes zero, or the first bit alone where 64 bits are on either side.
fn to_integer(number: &Number, way: Way, from: Float, to: Int) -> i128 {
    let (least, most) = to.range();
    let nan = if from.format.bits == 64 || to.bits == 64 { 1 << (to.bits - 1) } else { 0 };
    number.integer(way, least, most).unwrap_or(nan)
}

/// From one format to another.
fn between(out: &mut Forms, from: Float, to: Float) {
    let pair = format!("{}.{}", to.name, from.name);
    if from.name == to.name {
        if from.name == "bf16" {
            return;
        }
        for (suffix, way) in WHOLE {
            out.one(format!("cvt.{suffix}.{pair}"), to.kind, &[from.kind], move |x| {
                to.format.encode(&from.format.decode(x[0]).whole(way), way)
            });
        }
        out.one(format!("cvt.sat.{pair}"), to.kind, &[from.kind], move |x| {
            to.format.encode(&from.format.decode(x[0]).saturated(), Way::Nearest)
        });
        return;
    }
    if from.format.bits < to.format.bits {
        out.one(format!("cvt.{pair}"), to.kind, &[from.kind], move |x| {
            to.format.encode(&from.format.decode(x[0]), Way::Nearest)
        });
        return;
    }
    for (suffix, way) in WAYS {
        let rounded = move |x: &[u64], f: fn(Number) -> Number| to.format.encode(&f(from.format.decode(x[0])), way);
        out.one(format!("cvt.{suffix}.{pair}"), to.kind, &[from.kind], move |x| rounded(x, |n| n));
        if to.name != "bf16" {
            out.one(format!("cvt.{suffix}.sat.{pair}"), to.kind, &[from.kind], move |x| rounded(x, |n| n.saturated()));
        }
        if to.half() && from.name == "f32" && matches!(suffix, "rn" | "rz") {
            out.one(format!("cvt.{suffix}.relu.{pair}"), to.kind, &[from.kind], move |x| rounded(x, |n| n.positive()));
            out.one(format!("cvt.{suffix}.satfinite.{pair}"), to.kind, &[from.kind], move |x| {
                finite(to, rounded(x, |n| n))
            });
            out.one(format!("cvt.{suffix}.relu.satfinite.{pair}"), to.kind, &[from.kind], move |x| {
                finite(to, rounded(x, |n| n.positive()))
            });
        }
    }
}

/// The largest number instead of infinity.
fn finite(ty: Float, bits: u64) -> u64 {
    let infinity = ty.format.encode(&Number::Infinite(false), Way::Nearest);
    if bits & 0x7fff == infinity { bits - 1 } else { bits }
}

/// Two of single precision become a register of halves, the first one the upper half.
fn pairs(out: &mut Forms) {
    for half in [FLOATS[0], FLOATS[1]] {
        for (suffix, way) in &WAYS[..2] {
            let way = *way;
            let one = move |bits: u64, relu: bool| {
                let number = F32.decode(bits);
                half.format.encode(&if relu { number.positive() } else { number }, way)
            };
            for (name, relu, bound) in [
                ("", false, false),
                (".relu", true, false),
                (".satfinite", false, true),
                (".relu.satfinite", true, true),
            ] {
                out.one(format!("cvt.{suffix}{name}.{}x2.f32", half.name), R, &[F, F], move |x| {
                    let [high, low] = [x[0], x[1]].map(|x| one(x, relu));
                    let cut = |bits| if bound { finite(half, bits) } else { bits };
                    cut(high) << 16 | cut(low)
                });
            }
        }
    }
    for (to, bits, signed) in [("u16", 16, false), ("s16", 16, true)] {
        let ty = Int { name: to, bits, signed };
        out.one(format!("cvt.pack.sat.{to}.s32"), R, &[R, R], move |x| packed(ty, x, 0));
    }
    for (to, bits, signed) in
        [("u2", 2, false), ("s2", 2, true), ("u4", 4, false), ("s4", 4, true), ("u8", 8, false), ("s8", 8, true)]
    {
        let ty = Int { name: to, bits, signed };
        out.one(format!("cvt.pack.sat.{to}.s32.b32"), R, &[R, R, R], move |x| packed(ty, x, x[2]));
    }
}

fn packed(ty: Int, x: &[u64], above: u64) -> u64 {
    let (least, most) = ty.range();
    let [high, low] = [x[0], x[1]].map(|x| ty.cut(INTS[3].value(x).clamp(least, most)));
    (above << (2 * ty.bits) | high << ty.bits | low) & 0xffff_ffff
}

fn tensor_floats(out: &mut Forms) {
    for (suffix, way) in [("rna", Way::Away), ("rn", Way::Nearest), ("rz", Way::Zero)] {
        let round = move |x: &[u64], relu: bool| {
            let number = F32.decode(x[0]);
            if number.is_nan() {
                return 0x7fff_ffff;
            }
            TF32.encode(&if relu { number.positive() } else { number }, way) << 13
        };
        let bound = |bits: u64| if bits & 0x7fff_ffff == 0x7f80_0000 { bits - 0x2000 } else { bits };
        out.one(format!("cvt.{suffix}.tf32.f32"), R, &[F], move |x| round(x, false));
        out.one(format!("cvt.{suffix}.satfinite.tf32.f32"), R, &[F], move |x| bound(round(x, false)));
        if suffix != "rna" {
            out.one(format!("cvt.{suffix}.relu.tf32.f32"), R, &[F], move |x| round(x, true));
            out.one(format!("cvt.{suffix}.relu.satfinite.tf32.f32"), R, &[F], move |x| bound(round(x, true)));
        }
    }
}

/// A format of 8 bits.
#[derive(Clone, Copy)]
struct Byte {
    name: &'static str,
    fraction: i32,
    bias: i32,
    /// The code of the largest number.
    most: u64,
}

impl Byte {
    /// The value of a code for a finite number.
    fn value(self, code: u64) -> f64 {
        let exponent = (code as i32 & 0x7f) >> self.fraction;
        let fraction = f64::from(code as i32 & ((1 << self.fraction) - 1)) / f64::from(1 << self.fraction);
        let magnitude = match exponent {
            0 => fraction * f64::powi(2.0, 1 - self.bias),
            _ => (1.0 + fraction) * f64::powi(2.0, exponent - self.bias),
        };
        if code & 0x80 != 0 { -magnitude } else { magnitude }
    }

    /// The code of the nearest finite value, found by trying all; of two equally near ones the even.
    fn nearest(self, v: f64, relu: bool) -> u64 {
        if v.is_nan() {
            return 0x7f;
        }
        if relu && v.is_sign_negative() {
            return 0;
        }
        // What is larger than all becomes the largest.
        let magnitude = v.abs().min(self.value(self.most));
        let mut best = 0;
        for code in 1..=self.most {
            let distance = |code| (self.value(code) - magnitude).abs();
            let (new, old) = (distance(code), distance(best));
            if new < old || (new == old && code % 2 == 0) {
                best = code;
            }
        }
        best | u64::from(v.is_sign_negative()) << 7
    }

    /// The f16 of a code.
    fn half(self, code: u64, relu: bool) -> u64 {
        let negative = code & 0x80 != 0;
        let number = match code & 0x7f {
            magnitude if magnitude <= self.most => super::exact::F64.decode(self.value(code).to_bits()),
            0x7c => Number::Infinite(negative),
            _ => Number::Nan,
        };
        F16.encode(&if relu { number.positive() } else { number }, Way::Nearest)
    }
}

fn bytes(out: &mut Forms) {
    let formats = [
        Byte { name: "e4m3x2", fraction: 3, bias: 7, most: 0x7e },
        Byte { name: "e5m2x2", fraction: 2, bias: 15, most: 0x7b },
    ];
    let half = |bits: u64| f64::from_bits(super::exact::F64.encode(&F16.decode(bits), Way::Nearest));
    let single = |bits: u64| f64::from(f32::from_bits(bits as u32));
    for ty in formats {
        let name = ty.name;
        for (suffix, relu) in [("", false), (".relu", true)] {
            out.one(format!("cvt.rn.satfinite{suffix}.{name}.f32"), H, &[F, F], move |x| {
                ty.nearest(single(x[0]), relu) << 8 | ty.nearest(single(x[1]), relu)
            });
            out.one(format!("cvt.rn.satfinite{suffix}.{name}.f16x2"), H, &[R], move |x| {
                ty.nearest(half(x[0] >> 16), relu) << 8 | ty.nearest(half(x[0] & 0xffff), relu)
            });
            out.one(format!("cvt.rn{suffix}.f16x2.{name}"), R, &[H], move |x| {
                ty.half(x[0] >> 8, relu) << 16 | ty.half(x[0] & 0xff, relu)
            });
        }
    }
}
