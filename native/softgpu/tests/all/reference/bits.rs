//! Bits one by one.

use super::Kind::*;
use super::forms::{Forms, From};
use super::integers::{Int, kind_of};

fn bit(x: u64, n: u64) -> u64 {
    if n < 64 { x >> n & 1 } else { 0 }
}

/// A number of so many bits, each by itself.
fn from_bits(bits: u64, of: impl Fn(u64) -> u64) -> u64 {
    (0..bits).fold(0, |all, n| all | of(n) << n)
}

fn last(bits: u64, x: u64) -> Option<u64> {
    (0..bits).rev().find(|n| bit(x, *n) == 1)
}

pub fn forms(out: &mut Forms) {
    for bits in [16u64, 32, 64] {
        let kind = kind_of(bits as u32);
        let all = u64::MAX >> (64 - bits);
        out.one(format!("and.b{bits}"), kind, &[kind; 2], |x| x[0] & x[1]);
        out.one(format!("or.b{bits}"), kind, &[kind; 2], |x| x[0] | x[1]);
        out.one(format!("xor.b{bits}"), kind, &[kind; 2], |x| x[0] ^ x[1]);
        out.one(format!("not.b{bits}"), kind, &[kind], move |x| !x[0] & all);
        out.one(format!("cnot.b{bits}"), kind, &[kind], |x| u64::from(x[0] == 0));
        let below = |n: u64, by: u64| n.checked_sub(by);
        out.one(format!("shl.b{bits}"), kind, &[kind, R], move |x| {
            from_bits(bits, |n| below(n, x[1]).map_or(0, |n| bit(x[0], n)))
        });
        for (name, signed) in [("b", false), ("u", false), ("s", true)] {
            out.one(format!("shr.{name}{bits}"), kind, &[kind, R], move |x| {
                let sign = if signed { bit(x[0], bits - 1) } else { 0 };
                from_bits(bits, |n| if n + x[1] < bits { bit(x[0], n + x[1]) } else { sign })
            });
        }
        if bits == 16 {
            continue;
        }
        out.one(format!("popc.b{bits}"), R, &[kind], move |x| (0..bits).map(|n| bit(x[0], n)).sum());
        out.one(format!("clz.b{bits}"), R, &[kind], move |x| last(bits, x[0]).map_or(bits, |n| bits - 1 - n));
        out.one(format!("brev.b{bits}"), kind, &[kind], move |x| from_bits(bits, |n| bit(x[0], bits - 1 - n)));
        for (name, signed) in [("u", false), ("s", true)] {
            let first = move |x: u64| last(bits, if signed && bit(x, bits - 1) == 1 { !x & all } else { x });
            out.one(format!("bfind.{name}{bits}"), R, &[kind], move |x| first(x[0]).unwrap_or(0xffff_ffff));
            out.one(format!("bfind.shiftamt.{name}{bits}"), R, &[kind], move |x| {
                first(x[0]).map_or(0xffff_ffff, |n| bits - 1 - n)
            });
            out.one(format!("bfe.{name}{bits}"), kind, &[kind, R, R], move |x| {
                let (position, length) = (x[1] & 255, x[2] & 255);
                let sign = if signed && length > 0 { bit(x[0], (position + length - 1).min(bits - 1)) } else { 0 };
                from_bits(bits, |n| if n < length && position + n < bits { bit(x[0], position + n) } else { sign })
            });
        }
        out.one(format!("bfi.b{bits}"), kind, &[kind, kind, R, R], move |x| {
            let (position, length) = (x[2] & 255, x[3] & 255);
            from_bits(
                bits,
                |n| if n >= position && n < position + length { bit(x[0], n - position) } else { bit(x[1], n) },
            )
        });
    }
    words(out);
}

/// A mode of `prmt`: its name, and which byte goes to a place (the second) for a selector.
type Mode = (&'static str, fn(u64, u64) -> u64);

/// What there is for words alone.
fn words(out: &mut Forms) {
    let lop3 = |x: &[u64]| from_bits(32, |n| bit(x[3], bit(x[0], n) << 2 | bit(x[1], n) << 1 | bit(x[2], n)));
    let table = [From::Register(R), From::Register(R), From::Register(R), From::Upto(255)];
    out.with_numbers("lop3.b32", R, &table, lop3);
    for (name, left, wrap) in
        [("l.wrap", true, true), ("l.clamp", true, false), ("r.wrap", false, true), ("r.clamp", false, false)]
    {
        out.one(format!("shf.{name}.b32"), R, &[R, R, R], move |x| {
            let by = if wrap { x[2] & 31 } else { x[2].min(32) };
            let pair = |n: u64| if n < 32 { bit(x[0], n) } else { bit(x[1], n - 32) };
            from_bits(32, |n| pair(if left { n + 32 - by } else { n + by }))
        });
    }
    let bytes = |x: &[u64], n: u64| if n < 4 { x[0] >> (8 * n) & 255 } else { x[1] >> (8 * (n - 4)) & 255 };
    out.one("prmt.b32", R, &[R, R, R], move |x| {
        let chosen = |n: u64| {
            let selector = x[2] >> (4 * n) & 15;
            let byte = bytes(x, selector & 7);
            if selector > 7 { byte / 128 * 255 } else { byte }
        };
        (0..4).fold(0, |all, n| all | chosen(n) << (8 * n))
    });
    let modes: [Mode; 6] = [
        ("f4e", |s, n| s + n),
        ("b4e", |s, n| (s + 8 - n) % 8),
        ("rc8", |s, _| s),
        ("ecl", |s, n| s.max(n)),
        ("ecr", |s, n| s.min(n)),
        ("rc16", |s, n| s % 2 * 2 + n % 2),
    ];
    for (mode, from) in modes {
        out.one(format!("prmt.b32.{mode}"), R, &[R, R, R], move |x| {
            (0..4).fold(0, |all, n| all | bytes(x, from(x[2] & 3, n)) << (8 * n))
        });
    }
    out.with_numbers("fns.b32", R, &[From::Register(R), From::Upto(31), From::Register(R)], |x| {
        let set = |n: &u64| bit(x[0], *n) == 1;
        let found = match i64::from(x[2] as i32) {
            0 => Some(x[1]).filter(set),
            up @ 1.. => (x[1]..32).filter(set).nth(up as usize - 1),
            down => (0..=x[1]).rev().filter(set).nth(down.unsigned_abs() as usize - 1),
        };
        found.unwrap_or(0xffff_ffff)
    });
    for (name, wrap) in [("clamp", false), ("wrap", true)] {
        let range = move |x: u64| if wrap { x & 31 } else { x.min(32) };
        out.one(format!("bmsk.{name}.b32"), R, &[R, R], move |x| {
            let (first, count) = (range(x[0]), range(x[1]));
            from_bits(32, |n| u64::from(n >= first && n < first + count))
        });
        for (ty, signed) in [("u32", false), ("s32", true)] {
            out.one(format!("szext.{name}.{ty}"), R, &[R, R], move |x| {
                let width = range(x[1]);
                let field = Int { name: "", bits: width.max(1) as u32, signed };
                if width == 0 { 0 } else { Int { bits: 32, ..field }.cut(field.value(x[0])) }
            });
        }
    }
}
