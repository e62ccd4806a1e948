//! Integer arithmetic, by integers of 128 bits.

use super::Kind::{self, *};
use super::forms::Forms;

/// A type of integers.
#[derive(Clone, Copy)]
pub struct Int {
    pub name: &'static str,
    pub bits: u32,
    pub signed: bool,
}

const fn int(name: &'static str, bits: u32, signed: bool) -> Int {
    Int { name, bits, signed }
}

pub const INTS: [Int; 6] = [
    int("u16", 16, false),
    int("s16", 16, true),
    int("u32", 32, false),
    int("s32", 32, true),
    int("u64", 64, false),
    int("s64", 64, true),
];
pub const BYTES: [Int; 2] = [int("u8", 8, false), int("s8", 8, true)];

impl Int {
    /// The registers that hold it.
    pub fn kind(self) -> Kind {
        kind_of(self.bits)
    }

    pub fn value(self, bits: u64) -> i128 {
        let low = i128::from(bits) & ((1 << self.bits) - 1);
        if self.signed && low >> (self.bits - 1) == 1 { low - (1 << self.bits) } else { low }
    }

    pub fn range(self) -> (i128, i128) {
        if self.signed { (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1) } else { (0, (1 << self.bits) - 1) }
    }

    /// The lowest bits of a number.
    pub fn cut(self, v: i128) -> u64 {
        (v & ((1 << self.bits) - 1)) as u64
    }

    /// Both halves of a product.
    pub fn product(self, a: u64, b: u64) -> [i128; 2] {
        let product = self.value(a).wrapping_mul(self.value(b));
        let high = if self.signed { product >> self.bits } else { (product as u128 >> self.bits) as i128 };
        [product, high]
    }
}

pub fn kind_of(bits: u32) -> Kind {
    match bits {
        64 => D,
        32 => R,
        _ => H,
    }
}

pub fn forms(out: &mut Forms) {
    for ty in INTS {
        let Int { name, bits, signed } = ty;
        let kind = ty.kind();
        let (two, three) = ([kind; 2], [kind; 3]);
        let v = move |x: &[u64], n: usize| ty.value(x[n]);
        out.one(format!("add.{name}"), kind, &two, move |x| ty.cut(v(x, 0) + v(x, 1)));
        out.one(format!("sub.{name}"), kind, &two, move |x| ty.cut(v(x, 0) - v(x, 1)));
        out.one(format!("mul.lo.{name}"), kind, &two, move |x| ty.cut(ty.product(x[0], x[1])[0]));
        out.one(format!("mul.hi.{name}"), kind, &two, move |x| ty.cut(ty.product(x[0], x[1])[1]));
        out.one(format!("mad.lo.{name}"), kind, &three, move |x| {
            ty.cut(ty.product(x[0], x[1])[0].wrapping_add(v(x, 2)))
        });
        out.one(format!("mad.hi.{name}"), kind, &three, move |x| ty.cut(ty.product(x[0], x[1])[1] + v(x, 2)));
        // What a division by zero gives is the engine's choice: all ones, and the dividend as the rest.
        out.one(format!("div.{name}"), kind, &two, move |x| ty.cut(v(x, 0).checked_div(v(x, 1)).unwrap_or(-1)));
        out.one(format!("rem.{name}"), kind, &two, move |x| ty.cut(v(x, 0).checked_rem(v(x, 1)).unwrap_or(v(x, 0))));
        out.one(format!("min.{name}"), kind, &two, move |x| ty.cut(v(x, 0).min(v(x, 1))));
        out.one(format!("max.{name}"), kind, &two, move |x| ty.cut(v(x, 0).max(v(x, 1))));
        out.one(format!("sad.{name}"), kind, &three, move |x| ty.cut((v(x, 0) - v(x, 1)).abs() + v(x, 2)));
        if signed {
            out.one(format!("neg.{name}"), kind, &[kind], move |x| ty.cut(-v(x, 0)));
            out.one(format!("abs.{name}"), kind, &[kind], move |x| ty.cut(v(x, 0).abs()));
        }
        if bits < 64 {
            let (wide, double) = (Int { bits: 2 * bits, ..ty }, kind_of(2 * bits));
            out.one(format!("mul.wide.{name}"), double, &two, move |x| wide.cut(v(x, 0) * v(x, 1)));
            out.one(format!("mad.wide.{name}"), double, &[kind, kind, double], move |x| {
                wide.cut(v(x, 0) * v(x, 1) + wide.value(x[2]))
            });
        }
        if bits == 32 {
            short_products(out, ty);
        }
    }
    let s32 = INTS[3];
    let v = move |x: &[u64], n: usize| s32.value(x[n]);
    let bound = move |value: i128| s32.cut(value.clamp(s32.range().0, s32.range().1));
    out.one("add.sat.s32", R, &[R, R], move |x| bound(v(x, 0) + v(x, 1)));
    out.one("sub.sat.s32", R, &[R, R], move |x| bound(v(x, 0) - v(x, 1)));
    out.one("mad.hi.sat.s32", R, &[R, R, R], move |x| bound(s32.product(x[0], x[1])[1] + v(x, 2)));
    out.one("min.relu.s32", R, &[R, R], move |x| s32.cut(v(x, 0).min(v(x, 1)).max(0)));
    out.one("max.relu.s32", R, &[R, R], move |x| s32.cut(v(x, 0).max(v(x, 1)).max(0)));
    for ty in [INTS[0], INTS[1]] {
        let each = move |x: &[u64], f: fn(i128, i128) -> i128| {
            let half = |shift: u32| ty.cut(f(ty.value(x[0] >> shift), ty.value(x[1] >> shift))) << shift;
            half(0) | half(16)
        };
        let name = ty.name;
        out.one(format!("add.{name}x2"), R, &[R, R], move |x| each(x, |a, b| a + b));
        out.one(format!("min.{name}x2"), R, &[R, R], move |x| each(x, i128::min));
        out.one(format!("max.{name}x2"), R, &[R, R], move |x| each(x, i128::max));
        if ty.signed {
            out.one(format!("min.relu.{name}x2"), R, &[R, R], move |x| each(x, |a, b| a.min(b).max(0)));
            out.one(format!("max.relu.{name}x2"), R, &[R, R], move |x| each(x, |a, b| a.max(b).max(0)));
        }
    }
    sums_of_parts(out);
}

/// Products of 24 bits.
fn short_products(out: &mut Forms, ty: Int) {
    let short = Int { bits: 24, ..ty };
    let product = move |x: &[u64]| short.value(x[0]) * short.value(x[1]);
    let name = ty.name;
    out.one(format!("mul24.lo.{name}"), R, &[R, R], move |x| ty.cut(product(x)));
    out.one(format!("mul24.hi.{name}"), R, &[R, R], move |x| ty.cut(product(x) >> 16));
    out.one(format!("mad24.lo.{name}"), R, &[R, R, R], move |x| ty.cut(product(x) + ty.value(x[2])));
    out.one(format!("mad24.hi.{name}"), R, &[R, R, R], move |x| ty.cut((product(x) >> 16) + ty.value(x[2])));
    if ty.signed {
        let (least, most) = ty.range();
        // The upper 32 of 48 bits as a number of 32 bits.
        out.one(format!("mad24.hi.sat.{name}"), R, &[R, R, R], move |x| {
            ty.cut((ty.value((product(x) >> 16) as u64) + ty.value(x[2])).clamp(least, most))
        });
    }
}

/// Products and differences of bytes and halves, added up.
fn sums_of_parts(out: &mut Forms) {
    let part = |bits: u32, signed: bool, x: u64, n: u32| Int { name: "", bits, signed }.value(x >> (bits * n));
    let word = INTS[2];
    for (a, of_a) in [("u32", false), ("s32", true)] {
        for (b, of_b) in [("u32", false), ("s32", true)] {
            out.one(format!("dp4a.{a}.{b}"), R, &[R, R, R], move |x| {
                let products = (0..4).map(|n| part(8, of_a, x[0], n) * part(8, of_b, x[1], n));
                word.cut(products.sum::<i128>() + word.value(x[2]))
            });
            for (half, first) in [("lo", 0), ("hi", 2)] {
                out.one(format!("dp2a.{half}.{a}.{b}"), R, &[R, R, R], move |x| {
                    let products = (0..2).map(|n| part(16, of_a, x[0], n) * part(8, of_b, x[1], first + n));
                    word.cut(products.sum::<i128>() + word.value(x[2]))
                });
            }
        }
        for (name, bits) in [("vabsdiff2", 16), ("vabsdiff4", 8)] {
            let differences = move |x: &[u64]| {
                (0..32 / bits)
                    .map(move |n| (n, (part(bits, of_a, x[0], n) - part(bits, of_a, x[1], n)).unsigned_abs() as u64))
                    .collect::<Vec<(u32, u64)>>()
            };
            out.one(format!("{name}.u32.{a}.{a}"), R, &[R, R, R], move |x| {
                differences(x).into_iter().fold(0, |all, (n, difference)| all | difference << (bits * n))
            });
            out.one(format!("{name}.u32.{a}.{a}.add"), R, &[R, R, R], move |x| {
                word.cut(
                    differences(x).into_iter().map(|(_, difference)| i128::from(difference)).sum::<i128>()
                        + word.value(x[2]),
                )
            });
        }
    }
}
