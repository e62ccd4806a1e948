//! `setp` and `set`.

use super::Kind::*;
use super::floats::{FLOATS, PAIRS};
use super::forms::Forms;
use super::integers::INTS;
use std::cmp::Ordering;

/// A relation: its name, whether it holds of less, equal, greater, and of numbers that are not ordered.
type Relation = (&'static str, [bool; 4]);

const RELATIONS: [Relation; 14] = [
    ("eq", [false, true, false, false]),
    ("ne", [true, false, true, false]),
    ("lt", [true, false, false, false]),
    ("le", [true, true, false, false]),
    ("gt", [false, false, true, false]),
    ("ge", [false, true, true, false]),
    ("equ", [false, true, false, true]),
    ("neu", [true, false, true, true]),
    ("ltu", [true, false, false, true]),
    ("leu", [true, true, false, true]),
    ("gtu", [false, false, true, true]),
    ("geu", [false, true, true, true]),
    ("num", [true, true, true, false]),
    ("nan", [false, false, false, true]),
];
/// Names for unsigned integers.
const UNSIGNED: [(&str, usize); 4] = [("lo", 2), ("ls", 3), ("hi", 4), ("hs", 5)];

fn holds(relation: [bool; 4], order: Option<Ordering>) -> bool {
    relation[match order {
        Some(Ordering::Less) => 0,
        Some(Ordering::Equal) => 1,
        Some(Ordering::Greater) => 2,
        None => 3,
    }]
}

/// What a comparison is combined with a predicate by.
type Combination = (&'static str, fn(u64, u64) -> u64);

const COMBINATIONS: [Combination; 3] = [("and", |a, b| a & b), ("or", |a, b| a | b), ("xor", |a, b| a ^ b)];

pub fn forms(out: &mut Forms) {
    let mut turn = 0;
    let mut combination = move || {
        turn += 1;
        COMBINATIONS[turn % 3]
    };
    for ty in INTS {
        let names = RELATIONS[..6].iter().copied();
        let unsigned = UNSIGNED.iter().filter(|_| !ty.signed).map(|(name, at)| (*name, RELATIONS[*at].1));
        for (relation, table) in names.chain(unsigned) {
            let compare = move |x: &[u64]| u64::from(holds(table, Some(ty.value(x[0]).cmp(&ty.value(x[1])))));
            write(out, relation, ty.name, ty.kind(), combination(), compare);
            if relation == "eq" || relation == "ne" {
                out.one(format!("setp.{relation}.b{}", ty.bits), P, &[ty.kind(); 2], compare);
            }
        }
    }
    for ty in FLOATS {
        for (relation, table) in RELATIONS {
            let compare =
                move |x: &[u64]| u64::from(holds(table, ty.format.decode(x[0]).order(&ty.format.decode(x[1]))));
            write(out, relation, ty.name, ty.kind, combination(), compare);
        }
    }
    for ty in [PAIRS[0], PAIRS[1]] {
        for (relation, table) in RELATIONS {
            let part = move |x: &[u64], shift: u32| {
                let [a, b] = [x[0], x[1]].map(|x| ty.format.decode(x >> shift & 0xffff));
                u64::from(holds(table, a.order(&b)))
            };
            let (name, (combined, combine)) = (ty.name, combination());
            out.two(format!("setp.{relation}.{name}"), [P, P], &[R, R], move |x| [part(x, 0), part(x, 16)]);
            out.two(format!("setp.{relation}.{combined}.{name}"), [P, P], &[R, R, P], move |x| {
                [combine(part(x, 0), x[2]), combine(part(x, 16), x[2])]
            });
            let one = if name == "f16x2" { 0x3c00 } else { 0x3f80 };
            for (to, yes) in [(name, one), ("u32", 0xffff)] {
                out.one(format!("set.{relation}.{to}.{name}"), R, &[R, R], move |x| {
                    (part(x, 0) * yes) | ((part(x, 16) * yes) << 16)
                });
            }
        }
    }
}

/// The forms of one comparison.
fn write(
    out: &mut Forms,
    relation: &str,
    ty: &str,
    kind: super::Kind,
    (combined, combine): Combination,
    compare: impl Fn(&[u64]) -> u64 + Copy + Send + Sync + 'static,
) {
    let half = ty.ends_with("f16");
    out.one(format!("setp.{relation}.{ty}"), P, &[kind; 2], compare);
    out.one(format!("setp.{relation}.{combined}.{ty}"), P, &[kind, kind, P], move |x| combine(compare(x), x[2]));
    if !half {
        out.two(format!("setp.{relation}.{ty}"), [P, P], &[kind; 2], move |x| [compare(x), 1 - compare(x)]);
        out.two(format!("setp.{relation}.{combined}.{ty}"), [P, P], &[kind, kind, P], move |x| {
            [combine(compare(x), x[2]), combine(1 - compare(x), x[2])]
        });
    }
    let wide = [("u32", R, 0xffff_ffff), ("s32", R, 0xffff_ffff), ("f32", F, 0x3f80_0000)];
    for (to, register, yes) in wide.into_iter().take(if half { 2 } else { 3 }) {
        out.one(format!("set.{relation}.{to}.{ty}"), register, &[kind; 2], move |x| compare(x) * yes);
        out.one(format!("set.{relation}.{combined}.{to}.{ty}"), register, &[kind, kind, P], move |x| {
            combine(compare(x), x[2]) * yes
        });
    }
    for (to, yes) in [("f16", 0x3c00), ("bf16", 0x3f80)].into_iter().filter(|(to, _)| !half || *to == ty) {
        out.one(format!("set.{relation}.{to}.{ty}"), H, &[kind; 2], move |x| compare(x) * yes);
    }
    if half {
        out.one(format!("set.{relation}.u16.{ty}"), H, &[kind; 2], move |x| compare(x) * 0xffff);
    }
}
