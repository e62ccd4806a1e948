//! Floating-point arithmetic, by numbers without bounds that are rounded once.

use super::Kind::{self, *};
use super::exact::{BF16, F16, F32, F64, Format, Number, WAYS, Way};
use super::forms::Forms;

/// A type of floats: its name, its registers, its format, and how far one is from the next in a register.
#[derive(Clone, Copy)]
pub struct Float {
    pub name: &'static str,
    pub kind: Kind,
    pub format: Format,
    pub parts: u32,
}

const fn float(name: &'static str, kind: Kind, format: Format, parts: u32) -> Float {
    Float { name, kind, format, parts }
}

/// Those of which a register holds one.
pub const FLOATS: [Float; 4] =
    [float("f16", H, F16, 1), float("bf16", H, BF16, 1), float("f32", F, F32, 1), float("f64", E, F64, 1)];
/// Those of which it holds two.
pub const PAIRS: [Float; 3] = [float("f16x2", R, F16, 2), float("bf16x2", R, BF16, 2), float("f32x2", D, F32, 2)];

impl Float {
    pub fn half(self) -> bool {
        self.format.bits == 16
    }

    /// A function of bits, for each part of the registers.
    pub fn each(self, x: &[u64], f: impl Fn(&[u64]) -> u64) -> u64 {
        let bits = self.format.bits;
        let mask = u64::MAX >> (64 - bits);
        (0..self.parts).fold(0, |all, part| {
            let parts: Vec<u64> = x.iter().map(|x| x >> (bits * part) & mask).collect();
            all | f(&parts) << (bits * part)
        })
    }

    /// Subnormal numbers become the zeros of their signs.
    pub fn flushed(self, x: u64) -> u64 {
        self.each(&[x], |x| self.format.flushed(x[0]))
    }

    /// A function of numbers, rounded, for each part of the registers.
    pub fn rounded(self, x: &[u64], way: Way, f: impl Fn(&[Number]) -> Number) -> u64 {
        self.each(x, |parts| {
            let numbers: Vec<Number> = parts.iter().map(|bits| self.format.decode(*bits)).collect();
            self.format.encode(&f(&numbers), way)
        })
    }
}

/// What arithmetic does, but for rounding.
pub fn sum(x: &[Number], way: Way) -> Number {
    x[0].plus(&x[1], way)
}
pub fn difference(x: &[Number], way: Way) -> Number {
    x[0].plus(&x[1].minus(), way)
}
pub fn product_and_sum(x: &[Number], way: Way) -> Number {
    x[0].times(&x[1]).plus(&x[2], way)
}

/// `fma.rn.f32` of bits.
pub fn fused(a: u64, b: u64, c: u64) -> u64 {
    FLOATS[2].rounded(&[a, b, c], Way::Nearest, |x| product_and_sum(x, Way::Nearest))
}

type Operation = (&'static str, usize, fn(&[Number], Way) -> Number);

const ARITHMETIC: [Operation; 4] =
    [("add", 2, sum), ("sub", 2, difference), ("mul", 2, |x, _| x[0].times(&x[1])), ("fma", 3, product_and_sum)];
const DIVISIONS: [Operation; 3] = [
    ("div", 2, |x, _| x[0].over(&x[1])),
    ("rcp", 1, |x, _| Number::of_integer(1).over(&x[0])),
    ("sqrt", 1, |x, _| x[0].root()),
];

pub fn forms(out: &mut Forms) {
    for ty in FLOATS.into_iter().chain(PAIRS) {
        let Float { name, kind, .. } = ty;
        let ways = if ty.half() { 1 } else { 4 };
        let divided = name == "f32" || name == "f64";
        for (suffix, way) in &WAYS[..ways] {
            for (operation, sources, compute) in ARITHMETIC.iter().chain(DIVISIONS.iter().filter(|_| divided)).copied()
            {
                let from = vec![kind; sources];
                let way = *way;
                out.one(format!("{operation}.{suffix}.{name}"), kind, &from, move |x| {
                    ty.rounded(x, way, |x| compute(x, way))
                });
                let saturates = matches!(name, "f16" | "f16x2" | "f32") && ARITHMETIC.iter().any(|a| a.0 == operation);
                if saturates {
                    out.one(format!("{operation}.{suffix}.sat.{name}"), kind, &from, move |x| {
                        ty.rounded(x, way, |x| compute(x, way).saturated())
                    });
                }
            }
        }
        if ty.half() {
            out.one(format!("fma.rn.relu.{name}"), kind, &[kind; 3], move |x| {
                ty.rounded(x, Way::Nearest, |x| product_and_sum(x, Way::Nearest).positive())
            });
        }
        if name == "f32x2" {
            continue;
        }
        let sign = 1u64 << (ty.format.bits - 1);
        out.one(format!("neg.{name}"), kind, &[kind], move |x| ty.each(x, |x| x[0] ^ sign));
        out.one(format!("abs.{name}"), kind, &[kind], move |x| ty.each(x, |x| x[0] & !sign));
        extremes(out, ty);
    }
    for ty in [FLOATS[2], FLOATS[3]] {
        let sign = 1u64 << (ty.format.bits - 1);
        out.one(format!("copysign.{}", ty.name), ty.kind, &[ty.kind; 2], move |x| x[0] & sign | x[1] & !sign);
        classes(out, ty);
    }
    mixed(out);
}

/// `min` and `max`.
fn extremes(out: &mut Forms, ty: Float) {
    let Float { name, kind, .. } = ty;
    let choose =
        |least: bool, a: &Number, b: &Number, wins: bool| if least { a.least(b, wins) } else { a.most(b, wins) };
    for (operation, least) in [("min", true), ("max", false)] {
        for (nan, wins) in [("", false), (".NaN", true)] {
            if wins && name == "f64" {
                continue;
            }
            out.one(format!("{operation}{nan}.{name}"), kind, &[kind; 2], move |x| {
                ty.rounded(x, Way::Nearest, |x| choose(least, &x[0], &x[1], wins))
            });
            if name == "f64" {
                continue;
            }
            let sign = 1u64 << (ty.format.bits - 1);
            out.one(format!("{operation}{nan}.xorsign.abs.{name}"), kind, &[kind; 2], move |x| {
                ty.each(x, |bits| {
                    let [a, b] = [bits[0], bits[1]].map(|x| ty.format.decode(x & !sign));
                    let chosen = choose(least, &a, &b, wins);
                    let magnitude = ty.format.encode(&chosen, Way::Nearest);
                    if chosen.is_nan() { magnitude } else { magnitude | (bits[0] ^ bits[1]) & sign }
                })
            });
            if name == "f32" {
                out.one(format!("{operation}{nan}.{name}"), kind, &[kind; 3], move |x| {
                    ty.rounded(x, Way::Nearest, |x| choose(least, &choose(least, &x[0], &x[1], wins), &x[2], wins))
                });
            }
        }
    }
}

/// `testp`: zeros are normal numbers there.
fn classes(out: &mut Forms, ty: Float) {
    type Class = (&'static str, fn(u64, u64, bool) -> bool);
    // Of the exponent field, the largest one, and whether the fraction is more than zero.
    const CLASSES: [Class; 6] = [
        ("finite", |field, most, _| field < most),
        ("infinite", |field, most, some| field == most && !some),
        ("number", |field, most, some| field < most || !some),
        ("notanumber", |field, most, some| field == most && some),
        ("normal", |field, most, some| field < most && (field > 0 || !some)),
        ("subnormal", |field, _, some| field == 0 && some),
    ];
    for (name, holds) in CLASSES {
        let Format { bits, fraction, .. } = ty.format;
        let most = (1 << (bits - 1 - fraction)) - 1;
        out.one(format!("testp.{name}.{}", ty.name), P, &[ty.kind], move |x| {
            u64::from(holds(x[0] >> fraction & most, most, x[0] & ((1 << fraction) - 1) != 0))
        });
    }
}

/// Halves among single precision: all operands but the last are halves.
fn mixed(out: &mut Forms) {
    for half in [FLOATS[0], FLOATS[1]] {
        for (suffix, way) in WAYS {
            for (operation, sources, compute) in [ARITHMETIC[0], ARITHMETIC[1], ARITHMETIC[3]] {
                let mut from = vec![H; sources];
                from[sources - 1] = F;
                for (sat, saturates) in [("", false), (".sat", true)] {
                    out.one(format!("{operation}.{suffix}{sat}.f32.{}", half.name), F, &from, move |x| {
                        let number =
                            |n: usize| if n + 1 < sources { half.format.decode(x[n]) } else { F32.decode(x[n]) };
                        let result = compute(&(0..sources).map(number).collect::<Vec<_>>(), way);
                        F32.encode(&if saturates { result.saturated() } else { result }, way)
                    });
                }
            }
        }
    }
}
