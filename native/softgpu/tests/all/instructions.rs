//! Instructions by family: each is run on 32 lanes of chosen and random operands and compared with Rust.

use crate::common::{Device, Params, Random};
use sluice_softgpu::half::from_f16;

/// Operands of one lane, as bits.
type Lane = [u64; 3];

/// Instructions and what each computes from a lane's three operands.
type Cases<'a, T> = &'a [(&'a str, &'a dyn Fn(T, T, T) -> T)];

fn lanes(seed: u64) -> Vec<Lane> {
    let special = [0u64, 1, 31, 32, 33, 63, 64, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 63, u64::MAX];
    let mut r = Random::new(seed);
    (0..32)
        .map(|i| [0, 1, 2].map(|k| if i < 12 { special[(i + 5 * k) % 12] } else { r.bits() >> (r.bits() % 60) }))
        .collect()
}

fn float_lanes(seed: u64) -> Vec<Lane> {
    let special = [0.0, -0.0, 1.0, -1.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 3e9, -3e9, 1e300, 0.3, 2.5];
    let mut r = Random::new(seed);
    (0..32)
        .map(|i| {
            [0, 1, 2].map(|k| if i < 12 { special[(i + 5 * k) % 12] } else { (r.unit() - 0.5) * 1000.0 }.to_bits())
        })
        .collect()
}

/// Runs `body` with each lane's operands in %x, %y, %z (64 bits), %a, %b, %c (their low halves), %f, %g, %h (as f32)
/// and %d, %e, %q (as f64); gives %o.
fn run(body: &str, lanes: &[Lane]) -> Vec<u64> {
    let text = format!(
        ".version 9.0\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .pred %p<8>;\n.reg .b16 %s<8>;\n.reg .b32 %a, %b, %c, %r<8>, %t;\n.reg .b64 %x, %y, %z, %o, %w<8>;\n\
         .reg .f32 %f, %g, %h, %v<8>;\n.reg .f64 %d, %e, %q, %u<8>;\n\
         ld.param.u64 %w0, [in]; ld.param.u64 %w1, [out]; mov.u32 %t, %tid.x;\n\
         mad.wide.u32 %w2, %t, 24, %w0; mad.wide.u32 %w3, %t, 8, %w1;\n\
         ld.global.u64 %x, [%w2]; ld.global.u64 %y, [%w2+8]; ld.global.u64 %z, [%w2+16];\n\
         cvt.u32.u64 %a, %x; cvt.u32.u64 %b, %y; cvt.u32.u64 %c, %z;\n\
         mov.b64 %d, %x; mov.b64 %e, %y; mov.b64 %q, %z;\n\
         cvt.rn.f32.f64 %f, %d; cvt.rn.f32.f64 %g, %e; cvt.rn.f32.f64 %h, %q; mov.u64 %o, 0;\n\
         {body}\nst.global.u64 [%w3], %o;\nret;\n}}\n"
    );
    let d = Device::new(1);
    let m = d.load(&text);
    let flat: Vec<u64> = lanes.iter().flatten().copied().collect();
    let (input, output) = (d.upload(&flat), d.alloc(256));
    d.launch(&m, "k", [1, 1, 1], [lanes.len() as u32, 1, 1], &Params::new().u64(input).u64(output)).unwrap();
    d.download(output, lanes.len())
}

fn check(cases: &[(&str, &dyn Fn(Lane) -> u64)], lanes: &[Lane]) {
    for (body, want) in cases {
        for (lane, (got, operands)) in run(body, lanes).into_iter().zip(lanes).enumerate() {
            let want = want(*operands);
            let both_nan = |a: u64, b: u64| {
                f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan()
                    || (a >> 32 == 0 && f32::from_bits(a as u32).is_nan() && f32::from_bits(b as u32).is_nan())
            };
            assert!(got == want || both_nan(got, want), "{body} lane {lane} {operands:x?}: {got:#x}, not {want:#x}");
        }
    }
}

/// A 32-bit instruction's result in %r0 becomes the output.
fn narrow(body: &str) -> String {
    format!("{body} cvt.u64.u32 %o, %r0;")
}

#[test]
fn integers_of_32_bits() {
    let cases: Cases<u32> = &[
        ("add.u32 %r0, %a, %b;", &|a, b, _| a.wrapping_add(b)),
        ("sub.s32 %r0, %a, %b;", &|a, b, _| a.wrapping_sub(b)),
        ("add.sat.s32 %r0, %a, %b;", &|a, b, _| (a as i32).saturating_add(b as i32) as u32),
        ("mul.lo.s32 %r0, %a, %b;", &|a, b, _| a.wrapping_mul(b)),
        ("mul.hi.u32 %r0, %a, %b;", &|a, b, _| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        ("mul.hi.s32 %r0, %a, %b;", &|a, b, _| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
        ("mad.lo.u32 %r0, %a, %b, %c;", &|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        ("mul24.lo.s32 %r0, %a, %b;", &|a, b, _| {
            let cut = |v: u32| (v << 8) as i32 >> 8;
            cut(a).wrapping_mul(cut(b)) as u32
        }),
        ("div.u32 %r0, %a, %b;", &|a, b, _| a.checked_div(b).unwrap_or(u32::MAX)),
        ("rem.s32 %r0, %a, %b;", &|a, b, _| if b == 0 { a } else { (a as i32).wrapping_rem(b as i32) as u32 }),
        ("min.s32 %r0, %a, %b;", &|a, b, _| (a as i32).min(b as i32) as u32),
        ("max.u32 %r0, %a, %b;", &|a, b, _| a.max(b)),
        ("abs.s32 %r0, %a;", &|a, _, _| (a as i32).wrapping_abs() as u32),
        ("neg.s32 %r0, %a;", &|a, _, _| a.wrapping_neg()),
        ("sad.u32 %r0, %a, %b, %c;", &|a, b, c| a.abs_diff(b).wrapping_add(c)),
        ("shl.b32 %r0, %a, %b;", &|a, b, _| a.checked_shl(b).unwrap_or(0)),
        ("shr.u32 %r0, %a, %b;", &|a, b, _| a.checked_shr(b).unwrap_or(0)),
        ("shr.s32 %r0, %a, %b;", &|a, b, _| ((a as i32) >> b.min(31)) as u32),
        ("xor.b32 %r0, %a, %b;", &|a, b, _| a ^ b),
        ("not.b32 %r0, %a;", &|a, _, _| !a),
        ("cnot.b32 %r0, %a;", &|a, _, _| u32::from(a == 0)),
        ("lop3.b32 %r0, %a, %b, %c, 0xe8;", &|a, b, c| a & b | a & c | b & c),
        ("lop3.b32 %r0, %a, %b, %c, 0x1d;", &|a, b, c| {
            (0..32).fold(0, |o, i| {
                let bit = |v: u32| v >> i & 1;
                o | (0x1d >> (bit(a) * 4 + bit(b) * 2 + bit(c)) & 1) << i
            })
        }),
        ("popc.b32 %r0, %a;", &|a, _, _| a.count_ones()),
        ("clz.b32 %r0, %a;", &|a, _, _| a.leading_zeros()),
        ("brev.b32 %r0, %a;", &|a, _, _| a.reverse_bits()),
        ("bfind.u32 %r0, %a;", &|a, _, _| a.checked_ilog2().unwrap_or(u32::MAX)),
        ("bfe.u32 %r0, %a, 5, 9;", &|a, _, _| a >> 5 & 0x1ff),
        ("bfe.s32 %r0, %a, 5, 9;", &|a, _, _| ((a << 18) as i32 >> 23) as u32),
        ("bfi.b32 %r0, %a, %b, 4, 8;", &|a, b, _| b & !0xff0 | (a & 0xff) << 4),
        ("prmt.b32 %r0, %a, %b, 0x7531;", &|a, b, _| {
            let v = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
            u32::from_le_bytes([v[1], v[3], v[5], v[7]])
        }),
        ("prmt.b32 %r0, %a, %b, 0x8888;", &|a, _, _| if a >> 7 & 1 == 1 { u32::MAX } else { 0 }),
        ("shf.l.wrap.b32 %r0, %a, %b, %c;", &|a, b, c| {
            (((u64::from(b) << 32 | u64::from(a)) << (c % 32)) >> 32) as u32
        }),
        ("shf.r.clamp.b32 %r0, %a, %b, %c;", &|a, b, c| ((u64::from(b) << 32 | u64::from(a)) >> c.min(32)) as u32),
        ("slct.s32.s32 %r0, %a, %b, %c;", &|a, b, c| if c as i32 >= 0 { a } else { b }),
        ("setp.lt.s32 %p1, %a, %b; selp.u32 %r0, 7, %c, %p1;", &|a, b, c| if (a as i32) < b as i32 { 7 } else { c }),
        ("setp.hi.u32 %p1|%p2, %a, %b; selp.u32 %r0, 1, 0, %p2;", &|a, b, _| u32::from(a <= b)),
        (
            "setp.eq.u32 %p1, %c, 1; setp.gt.or.u32 %p2|%p3, %a, %b, !%p1; selp.u32 %r0, 2, 0, %p2; @%p3 add.u32 %r0, %r0, 1;",
            &|a, b, c| 2 * u32::from(a > b || c != 1) + u32::from(a <= b || c != 1),
        ),
        ("set.ge.u32.s32 %r0, %a, %b;", &|a, b, _| if a as i32 >= b as i32 { u32::MAX } else { 0 }),
        ("dp4a.s32.s32 %r0, %a, %b, %c;", &|a, b, c| {
            let bytes = |v: u32| v.to_le_bytes().map(|b| i32::from(b as i8));
            bytes(a).iter().zip(bytes(b)).fold(c as i32, |s, (x, y)| s.wrapping_add(x * y)) as u32
        }),
        (
            "mov.b32 {%s0, %s1}, %a; add.s16 %s2, %s0, %s1; mul.wide.s16 %r1, %s0, %s1; mov.b32 %r0, {%s2, %s1}; xor.b32 %r0, %r0, %r1;",
            &|a, _, _| {
                let (x, y) = (a as u16, (a >> 16) as u16);
                let sum = u32::from(x.wrapping_add(y)) | u32::from(y) << 16;
                sum ^ (i32::from(x as i16) * i32::from(y as i16)) as u32
            },
        ),
    ];
    let lanes = lanes(1);
    for (body, want) in cases {
        check(&[(&narrow(body), &|l: Lane| u64::from(want(l[0] as u32, l[1] as u32, l[2] as u32)))], &lanes);
    }
}

#[test]
fn integers_of_64_bits() {
    let carry = "add.cc.u32 %r0, %a, %b; addc.cc.u32 %r1, %a, %b; addc.u32 %r2, 0, 0; mov.b64 %o, {%r1, %r2};";
    let borrow = "sub.cc.u32 %r0, %a, %b; subc.cc.u32 %r1, %c, 0; subc.u32 %r2, 0, 0; mov.b64 %o, {%r1, %r2};";
    let product =
        "mul.lo.u32 %r0, %a, %b; mad.lo.cc.u32 %r1, %a, %b, %c; madc.hi.u32 %r2, %a, %b, 0; mov.b64 %o, {%r1, %r2};";
    check(
        &[
            ("add.s64 %o, %x, %y;", &|[x, y, _]| x.wrapping_add(y)),
            ("mul.lo.u64 %o, %x, %y;", &|[x, y, _]| x.wrapping_mul(y)),
            ("mul.hi.u64 %o, %x, %y;", &|[x, y, _]| ((u128::from(x) * u128::from(y)) >> 64) as u64),
            ("mul.hi.s64 %o, %x, %y;", &|[x, y, _]| ((i128::from(x as i64) * i128::from(y as i64)) >> 64) as u64),
            ("mul.wide.s32 %o, %a, %b;", &|[x, y, _]| (i64::from(x as i32) * i64::from(y as i32)) as u64),
            ("mad.wide.u32 %o, %a, %b, %z;", &|[x, y, z]| (x as u32 as u64 * u64::from(y as u32)).wrapping_add(z)),
            ("div.s64 %o, %x, %y;", &|[x, y, _]| {
                if y == 0 { u64::MAX } else { (x as i64).wrapping_div(y as i64) as u64 }
            }),
            ("rem.u64 %o, %x, %y;", &|[x, y, _]| x.checked_rem(y).unwrap_or(x)),
            ("shl.b64 %o, %x, %b;", &|[x, y, _]| x.checked_shl(y as u32).unwrap_or(0)),
            ("shr.s64 %o, %x, %b;", &|[x, y, _]| ((x as i64) >> (y as u32).min(63)) as u64),
            ("bfe.u64 %o, %x, 10, 40;", &|[x, _, _]| x >> 10 & ((1 << 40) - 1)),
            ("bfi.b64 %o, %x, %y, 8, 16;", &|[x, y, _]| y & !0xff_ff00 | (x & 0xffff) << 8),
            ("clz.b64 %r0, %x; cvt.u64.u32 %o, %r0;", &|[x, _, _]| u64::from(x.leading_zeros())),
            ("min.s64 %o, %x, %y;", &|[x, y, _]| (x as i64).min(y as i64) as u64),
            ("setp.ltu.f64 %p1, %d, %e; selp.b64 %o, %x, %y, %p1;", &|[x, y, _]| {
                let less = !(f64::from_bits(x).partial_cmp(&f64::from_bits(y)).is_some_and(|o| o.is_ge()));
                if less { x } else { y }
            }),
            (carry, &|[x, y, _]| {
                let s = u64::from(x as u32) + u64::from(y as u32);
                s + (s >> 32)
            }),
            (borrow, &|[x, y, z]| {
                let first = u64::from((x as u32) < y as u32);
                let r = u64::from(z as u32).wrapping_sub(first);
                r & 0xffff_ffff | (r >> 32 & 0xffff_ffff) << 32
            }),
            (product, &|[x, y, z]| (u64::from(x as u32) * u64::from(y as u32)).wrapping_add(u64::from(z as u32))),
        ],
        &lanes(2),
    );
}

fn single(body: &str) -> String {
    format!("{body} mov.b32 %r0, %v0; cvt.u64.u32 %o, %r0;")
}

#[test]
fn floating_point() {
    let f = |bits: u64| f64::from_bits(bits) as f32;
    let cases: Cases<f32> = &[
        ("add.f32 %v0, %f, %g;", &|a, b, _| a + b),
        ("sub.rn.f32 %v0, %f, %g;", &|a, b, _| a - b),
        ("mul.ftz.f32 %v0, %f, %g;", &|a, b, _| a * b),
        ("fma.rn.f32 %v0, %f, %g, %h;", &|a, b, c| a.mul_add(b, c)),
        ("div.rn.f32 %v0, %f, %g;", &|a, b, _| a / b),
        ("sqrt.rn.f32 %v0, %f;", &|a, _, _| a.sqrt()),
        ("abs.f32 %v0, %f;", &|a, _, _| a.abs()),
        ("neg.f32 %v0, %f;", &|a, _, _| -a),
        ("add.sat.f32 %v0, %f, %g;", &|a, b, _| if (a + b).is_nan() { 0.0 } else { (a + b).clamp(0.0, 1.0) }),
        ("copysign.f32 %v0, %f, %g;", &|a, b, _| b.copysign(a)),
        ("min.f32 %v0, %f, %g;", &|a, b, _| {
            if a.is_nan() {
                b
            } else if b.is_nan() || a.total_cmp(&b).is_lt() {
                a
            } else {
                b
            }
        }),
        ("setp.gt.f32 %p1, %f, %g; selp.f32 %v0, %f, %g, %p1;", &|a, b, _| if a > b { a } else { b }),
        ("setp.neu.f32 %p1, %f, %g; selp.f32 %v0, 0f3F800000, 0f00000000, %p1;", &|a, b, _| {
            f32::from(u8::from(a != b))
        }),
        ("setp.ne.f32 %p1, %f, %g; selp.f32 %v0, 0f3F800000, 0f00000000, %p1;", &|a, b, _| {
            f32::from(u8::from(a != b && !a.is_nan() && !b.is_nan()))
        }),
        ("setp.nan.f32 %p1, %f, %g; selp.f32 %v0, 0f3F800000, 0f00000000, %p1;", &|a, b, _| {
            f32::from(u8::from(a.is_nan() || b.is_nan()))
        }),
        ("testp.finite.f32 %p1, %f; selp.f32 %v0, 0f3F800000, 0f00000000, %p1;", &|a, _, _| {
            f32::from(u8::from(a.is_finite()))
        }),
        // Zeros are normal numbers.
        ("testp.normal.f32 %p1, %f; selp.f32 %v0, 0f3F800000, 0f00000000, %p1;", &|a, _, _| {
            f32::from(u8::from(a.is_normal() || a == 0.0))
        }),
        ("testp.subnormal.f32 %p1, 0f00000001; selp.f32 %v0, 0f3F800000, 0f00000000, %p1;", &|_, _, _| 1.0),
        ("cvt.rzi.f32.f32 %v0, %f;", &|a, _, _| a.trunc()),
        ("cvt.rpi.f32.f32 %v0, %f;", &|a, _, _| a.ceil()),
    ];
    let lanes = float_lanes(3);
    for (body, want) in cases {
        let want = |l: Lane| u64::from(want(f(l[0]), f(l[1]), f(l[2])).to_bits());
        check(&[(&single(body), &want)], &lanes);
    }
    let doubles: Cases<f64> = &[
        ("add.f64 %u0, %d, %e;", &|a, b, _| a + b),
        ("mul.f64 %u0, %d, %e;", &|a, b, _| a * b),
        ("fma.rn.f64 %u0, %d, %e, %q;", &|a, b, c| a.mul_add(b, c)),
        ("div.rn.f64 %u0, %d, %e;", &|a, b, _| a / b),
        ("sqrt.rn.f64 %u0, %d;", &|a, _, _| a.sqrt()),
        ("cvt.rmi.f64.f64 %u0, %d;", &|a, _, _| a.floor()),
        ("cvt.rni.f64.f64 %u0, %d;", &|a, _, _| a.round_ties_even()),
        ("cvt.sat.f64.f64 %u0, %d;", &|a, _, _| if a > 0.0 { a.min(1.0) } else { 0.0 }),
    ];
    for (body, want) in doubles {
        let want = |l: Lane| want(f64::from_bits(l[0]), f64::from_bits(l[1]), f64::from_bits(l[2])).to_bits();
        check(&[(&format!("{body} mov.b64 %o, %u0;"), &want)], &lanes);
    }
}

#[test]
fn directed_rounding() {
    // Single precision against double, in which these operations are exact or nearly so.
    let lanes: Vec<Lane> = float_lanes(4).into_iter().skip(12).collect();
    for (name, exact) in [
        ("add", (|a, b, _| a + b) as fn(f64, f64, f64) -> f64),
        ("mul", |a, b, _| a * b),
        ("div", |a, b, _| a / b),
        ("fma", |a, b, c| a * b + c),
        ("sqrt", |a, _, _| a.abs().sqrt()),
    ] {
        for mode in ["rz", "rm", "rp"] {
            let operands = match name {
                "fma" => "%f, %g, %h",
                "sqrt" => "%v1",
                _ => "%f, %g",
            };
            let body = single(&format!("abs.f32 %v1, %f; {name}.{mode}.f32 %v0, {operands};"));
            for (got, l) in run(&body, &lanes).into_iter().zip(&lanes) {
                let [a, b, c] = l.map(|v| f64::from(f64::from_bits(v) as f32));
                let want = exact(a, b, c);
                let near = want as f32;
                let low = if f64::from(near) > want { near.next_down() } else { near };
                let high = if f64::from(near) < want { near.next_up() } else { near };
                let want = match mode {
                    "rm" => low,
                    "rp" => high,
                    _ if near > 0.0 => low,
                    _ => high,
                };
                assert_eq!(f32::from_bits(got as u32), want, "{name}.{mode} {a} {b} {c}");
            }
        }
    }
}

#[test]
fn conversions() {
    let lanes = float_lanes(5);
    let d = |l: Lane| f64::from_bits(l[0]);
    let wide_nan = |v: f64, n: i64| if v.is_nan() { i64::MIN as u64 } else { n as u64 };
    check(
        &[
            ("cvt.rzi.s32.f64 %r0, %d; cvt.u64.u32 %o, %r0;", &|l| {
                u64::from(if d(l).is_nan() { 1 << 31 } else { d(l) as i32 as u32 })
            }),
            ("cvt.rni.s32.f32 %r0, %f; cvt.u64.u32 %o, %r0;", &|l| {
                u64::from((d(l) as f32).round_ties_even() as i32 as u32)
            }),
            ("cvt.rmi.u32.f32 %r0, %f; cvt.u64.u32 %o, %r0;", &|l| u64::from((d(l) as f32).floor() as u32)),
            ("cvt.rzi.s64.f64 %o, %d;", &|l| wide_nan(d(l), d(l) as i64)),
            ("cvt.rzi.u8.f32 %s0, %f; cvt.u64.u16 %o, %s0;", &|l| u64::from(d(l) as f32 as u8)),
            ("cvt.rn.f32.f64 %v0, %d; mov.b32 %r0, %v0; cvt.u64.u32 %o, %r0;", &|l| u64::from((d(l) as f32).to_bits())),
            ("cvt.f64.f32 %u0, %f; mov.b64 %o, %u0;", &|l| f64::from(d(l) as f32).to_bits()),
        ],
        &lanes,
    );
    check(
        &[
            ("cvt.s64.s8 %o, %a;", &|[x, ..]| x as i8 as i64 as u64),
            ("cvt.u64.u16 %o, %a;", &|[x, ..]| u64::from(x as u16)),
            ("cvt.u32.u16 %r0, %a; cvt.u64.u32 %o, %r0;", &|[x, ..]| u64::from(x as u16)),
            ("cvt.s32.s16 %r0, %a; cvt.u64.u32 %o, %r0;", &|[x, ..]| u64::from(x as i16 as i32 as u32)),
            ("cvt.sat.s16.s32 %s0, %a; cvt.u64.u16 %o, %s0;", &|[x, ..]| {
                u64::from((x as i32).clamp(-32768, 32767) as u16)
            }),
            ("cvt.sat.u8.s64 %s0, %x; cvt.u64.u16 %o, %s0;", &|[x, ..]| (x as i64).clamp(0, 255) as u64),
            ("cvt.rn.f64.u64 %u0, %x; mov.b64 %o, %u0;", &|[x, ..]| (x as f64).to_bits()),
            ("cvt.rn.f32.s64 %v0, %x; mov.b32 %r0, %v0; cvt.u64.u32 %o, %r0;", &|[x, ..]| {
                u64::from((x as i64 as f32).to_bits())
            }),
            ("cvt.rz.f32.u32 %v0, %a; mov.b32 %r0, %v0; cvt.u64.u32 %o, %r0;", &|[x, ..]| {
                let near = x as u32 as f32;
                let low = if f64::from(near) > f64::from(x as u32) { near.next_down() } else { near };
                u64::from(low.to_bits())
            }),
        ],
        &lanes_of_bits(),
    );
}

fn lanes_of_bits() -> Vec<Lane> {
    lanes(6)
}

#[test]
fn half_precision_converts_both_ways() {
    let values =
        [0.0f32, 1.0, -2.5, 65504.0, 65520.0, 6e-8, 2.98e-8, 1e-5, 0.1, 1.0 + 1.0 / 2048.0, f32::INFINITY, f32::NAN];
    let bits = [0u64, 0x3c00, 0xc100, 0x7bff, 0x7c00, 1, 0, 0xa8, 0x2e66, 0x3c00, 0x7c00, 0x7fff];
    let lanes: Vec<Lane> = (0..32).map(|i| [f64::from(values[i % 12]).to_bits(), 0, 0]).collect();
    for (i, got) in run("cvt.rn.f16.f32 %s0, %f; cvt.u64.u16 %o, %s0;", &lanes).into_iter().enumerate() {
        assert_eq!(got, bits[i % 12], "{}", values[i % 12]);
    }
    let lanes: Vec<Lane> = (0..32).map(|i| [bits[i % 12], 0, 0]).collect();
    let back = run("cvt.u16.u32 %s0, %a; cvt.f32.f16 %v0, %s0; mov.b32 %r0, %v0; cvt.u64.u32 %o, %r0;", &lanes);
    for (i, got) in back.into_iter().enumerate() {
        let got = f32::from_bits(got as u32);
        let want = values[i % 12];
        assert!((got - want).abs() <= want.abs() * 5e-4 + 6e-8 || got.is_nan() && want.is_nan() || got.is_infinite());
    }
}

#[test]
fn approximations_are_close() {
    let lanes: Vec<Lane> = (0..32).map(|i| [(0.1 + f64::from(i) * 0.2).to_bits(), 0, 0]).collect();
    for (name, f) in [
        ("sin.approx.f32", f64::sin as fn(f64) -> f64),
        ("cos.approx.ftz.f32", f64::cos),
        ("ex2.approx.f32", f64::exp2),
        ("lg2.approx.f32", f64::log2),
        ("rcp.approx.f32", f64::recip),
        ("rsqrt.approx.f32", |v| 1.0 / v.sqrt()),
        ("sqrt.approx.f32", f64::sqrt),
        ("tanh.approx.f32", f64::tanh),
    ] {
        for (got, l) in run(&single(&format!("{name} %v0, %f;")), &lanes).into_iter().zip(&lanes) {
            let (got, want) = (f64::from(f32::from_bits(got as u32)), f(f64::from(f64::from_bits(l[0]) as f32)));
            assert!((got - want).abs() <= 4e-7 * want.abs().max(1.0), "{name}: {got} instead of {want}");
        }
    }
}

#[test]
fn warp_wide_instructions() {
    let lanes: Vec<Lane> = (0..32).map(|i| [i, i * i % 7, 0]).collect();
    let value = |l: u64| l * l % 7;
    let cases: &[(&str, &dyn Fn(u64) -> u64)] = &[
        ("shfl.sync.up.b32 %r0, %a, 3, 0, -1;", &|l| if l >= 3 { l - 3 } else { l }),
        ("shfl.sync.down.b32 %r0|%p1, %a, 5, 31, -1; @!%p1 mov.u32 %r0, 99;", &|l| if l + 5 < 32 { l + 5 } else { 99 }),
        ("shfl.sync.bfly.b32 %r0, %a, 6, 31, -1;", &|l| l ^ 6),
        ("shfl.sync.idx.b32 %r0, %a, 2, 0x181f, -1;", &|l| l & 24 | 2),
        ("setp.eq.u32 %p1, %b, 1; vote.sync.ballot.b32 %r0, %p1, -1;", &|_| {
            (0..32).filter(|l| value(*l) == 1).fold(0, |m, l| m | 1 << l)
        }),
        ("setp.eq.u32 %p1, %b, 1; vote.sync.any.pred %p2, %p1, -1; selp.u32 %r0, 1, 0, %p2;", &|_| 1),
        ("setp.eq.u32 %p1, %b, 1; vote.sync.all.pred %p2, !%p1, -1; selp.u32 %r0, 1, 0, %p2;", &|_| 0),
        ("match.any.sync.b32 %r0, %b, -1;", &|l| (0..32).filter(|m| value(*m) == value(l)).fold(0, |m, l| m | 1 << l)),
        ("match.all.sync.b32 %r0|%p1, %b, -1;", &|_| 0),
        ("redux.sync.add.s32 %r0, %a, -1;", &|_| 496),
        ("redux.sync.max.u32 %r0, %b, -1;", &|_| 4),
        ("mov.u32 %r0, %lanemask_lt;", &|l| (1 << l) - 1),
        ("mov.u32 %r0, %lanemask_gt;", &|l| !((2 << l) - 1) & 0xffff_ffff),
        ("setp.lt.u32 %p1, %a, 9; mov.u32 %r0, 0; @%p1 activemask.b32 %r0;", &|l| if l < 9 { 0x1ff } else { 0 }),
    ];
    for (body, want) in cases {
        for (l, got) in run(&narrow(body), &lanes).into_iter().enumerate() {
            assert_eq!(got, want(l as u64), "{body} lane {l}");
        }
    }
}

#[test]
fn members_of_a_warp_instruction_wait_for_each_other() {
    // Half of the lanes arrive by another way, and later.
    let body = "and.b32 %r1, %a, 1; setp.eq.u32 %p1, %r1, 1; mov.u32 %r2, 1;\n@%p1 bra $odd;\nadd.u32 %r2, %r2, %a;\n\
                bra $meet;\n$odd: mul.lo.u32 %r2, %a, 3;\nbra $meet;\n$meet: shfl.sync.bfly.b32 %r0, %r2, 1, 31, -1;";
    let lanes: Vec<Lane> = (0..32).map(|i| [i, 0, 0]).collect();
    for (l, got) in run(&narrow(body), &lanes).into_iter().enumerate() {
        let other = l as u64 ^ 1;
        assert_eq!(got, if other % 2 == 1 { other * 3 } else { other + 1 });
    }
}

#[test]
fn indexed_branches() {
    let body = "$t: .branchtargets $zero, $one, $two;\nrem.u32 %r1, %a, 3;\nbrx.idx %r1, $t;\n$zero: mov.u32 %r0, 10; bra $e;\n\
                $one: mov.u32 %r0, 20; bra $e;\n$two: mov.u32 %r0, 30;\n$e:";
    let lanes: Vec<Lane> = (0..32).map(|i| [i, 0, 0]).collect();
    for (l, got) in run(&narrow(body), &lanes).into_iter().enumerate() {
        assert_eq!(got, 10 * (l as u64 % 3 + 1));
    }
}

#[test]
fn vectors_and_small_types_in_memory() {
    let body = ".local .align 16 .b8 m[32];\n.shared .align 16 .b8 s[1024];\n\
        st.local.v2.u64 [m], {%x, %y}; ld.local.v4.u32 {%r1, %r2, %r3, %r4}, [m]; ld.local.s8 %r5, [m+1];\n\
        mov.u64 %w4, m; cvta.local.u64 %w4, %w4; ld.u16 %s0, [%w4+2]; cvt.u32.u16 %r6, %s0;\n\
        mov.u32 %r7, s; mad.lo.u32 %r7, %t, 16, %r7; st.shared.v4.b32 [%r7], {%r1, %r2, %r3, %r4};\n\
        ld.shared.u8 %r4, [%r7+9]; xor.b32 %r1, %r1, %r3; xor.b32 %r2, %r5, %r6; xor.b32 %r2, %r2, %r4; mov.b64 %o, {%r1, %r2};";
    let lanes = lanes(7);
    for (got, [x, y, _]) in run(body, &lanes).into_iter().zip(&lanes) {
        let low = *x as u32 ^ *y as u32;
        let high = (*x >> 8) as i8 as i32 as u32 ^ (*x >> 16) as u16 as u32 ^ u32::from((*y >> 8) as u8);
        assert_eq!(got, u64::from(high) << 32 | u64::from(low));
    }
}

#[test]
fn atomics_in_shared_memory() {
    let body = ".shared .align 8 .b8 s[64];\nsetp.eq.u32 %p1, %t, 0; mov.u64 %w4, 100; @%p1 st.shared.u64 [s], %w4;\n\
        @%p1 st.shared.u64 [s+8], 0; @%p1 st.shared.u64 [s+16], 0; bar.sync 0;\n\
        atom.shared.add.u64 %w5, [s], %x; atom.shared.inc.u32 %r1, [s+8], 4; red.shared.max.s32 [s+12], %a;\n\
        atom.shared.add.f32 %v1, [s+16], 0f3F000000; bar.sync 0;\n\
        ld.shared.u64 %o, [s]; ld.shared.v2.u32 {%r1, %r2}, [s+8]; ld.shared.f32 %v2, [s+16]; cvt.rzi.u32.f32 %r3, %v2;\n\
        mul.lo.u32 %r1, %r1, 1000; mad.lo.u32 %r1, %r2, 10000, %r1; mad.lo.u32 %r1, %r3, 1000000, %r1;\n\
        cvt.u64.u32 %w6, %r1; add.u64 %o, %o, %w6;";
    let lanes: Vec<Lane> = (0..32).map(|i| [i, 0, 0]).collect();
    // 100 + the sum of the lanes; 32 increments modulo 5; the largest lane; 32 halves.
    let want = 100 + 496 + 1000 * 2 + 10_000 * 31 + 1_000_000 * 16;
    assert!(run(body, &lanes).iter().all(|v| *v == want));
}

#[test]
fn atomics_on_vectors() {
    let lanes = float_lanes(11);
    let pair = |l: Lane| [f64::from_bits(l[0]) as f32, f64::from_bits(l[1]) as f32];
    let bits = |[low, high]: [f32; 2]| u64::from(high.to_bits()) << 32 | u64::from(low.to_bits());
    let add = "red.global.add.v2.f32 [%w3], {%f, %g};";
    // The old values go where the operands are, the other way round.
    let swapped = format!(
        "{add} mov.b32 %v0, %f; mov.b32 %v1, %g; atom.global.v2.f32.add {{%v1, %v0}}, [%w3], {{%v0, %v1}}; \
         ld.global.u64 %o, [%w3]; setp.lt.u32 %p0, %t, 16; @%p0 mov.b64 %o, {{%v1, %v0}};"
    );
    for (lane, (got, l)) in run(&swapped, &lanes).into_iter().zip(&lanes).enumerate() {
        let [x, y] = pair(*l);
        let want = if lane < 16 { [0.0 + x, 0.0 + y] } else { [x + x, y + y] };
        let part = |v: u64, k: u32| f32::from_bits((v >> (32 * k)) as u32);
        for k in 0..2 {
            let (got, want) = (part(got, k), part(bits(want), k));
            assert!(got == want || (got.is_nan() && want.is_nan()), "lane {lane}: {got}, not {want}");
        }
    }
    let halves = "mov.b32 %r0, 0x3c004000; mov.b32 %r1, 0x4200c000; red.global.add.noftz.v2.f16x2 [%w3], {%r0, %r1}; \
        red.global.add.noftz.v2.f16x2 [%w3], {%r0, %r1}; ld.global.u64 %o, [%w3];";
    // Twice 2 and 1, twice -2 and 3.
    assert!(run(halves, &lanes).iter().all(|v| *v == 0x4600_c400_4000_4400));
}

#[test]
fn the_least_and_the_greatest_of_vectors_of_halves() {
    // In memory, the operand, the least and the greatest: a NaN loses (two stay one), -0 is less than +0.
    let f16: [[u16; 4]; 8] = [
        [0x3c00, 0x4000, 0x3c00, 0x4000],
        [0x7e01, 0xbc00, 0xbc00, 0xbc00],
        [0xc000, 0xfe00, 0xc000, 0xc000],
        [0x0000, 0x8000, 0x8000, 0x0000],
        [0x8000, 0x0000, 0x8000, 0x0000],
        [0x7e00, 0xfe00, 0x7fff, 0x7fff],
        [0xfc00, 0x7c00, 0xfc00, 0x7c00],
        [0x0001, 0x8001, 0x8001, 0x0001],
    ];
    let bf16: [[u16; 4]; 8] = [
        [0x3f80, 0x4000, 0x3f80, 0x4000],
        [0x7fc1, 0xbf80, 0xbf80, 0xbf80],
        [0xc000, 0xffc0, 0xc000, 0xc000],
        [0x0000, 0x8000, 0x8000, 0x0000],
        [0x8000, 0x0000, 0x8000, 0x0000],
        [0x7fc0, 0xffc0, 0x7fff, 0x7fff],
        [0xff80, 0x7f80, 0xff80, 0x7f80],
        [0x0001, 0x8001, 0x8001, 0x0001],
    ];
    let column = |table: &[[u16; 4]; 8], k: usize| table.map(|row| row[k]).to_vec();
    for (ty, table) in [("f16", f16), ("bf16", bf16)] {
        for (op, want) in [("min", column(&table, 2)), ("max", column(&table, 3))] {
            let [before, operand] = [column(&table, 0), column(&table, 1)];
            let words = |from: &[u16]| -> Vec<String> {
                from.chunks(2).map(|pair| format!("{:#x}", u32::from(pair[0]) | u32::from(pair[1]) << 16)).collect()
            };
            let (store, operands) = (words(&before).join(", "), words(&operand));
            let operands: String =
                operands.iter().enumerate().map(|(i, word)| format!("mov.b32 %a{i}, {word};\n")).collect();
            let start = format!("st.global.v4.b32 [%i1], {{{store}}};\n{operands}setp.ne.u32 %p0, %t0, 0; @%p0 ret;\n");
            let split =
                "mov.b32 {%h0, %h1}, %a0; mov.b32 {%h2, %h3}, %a1; mov.b32 {%h4, %h5}, %a2; mov.b32 {%h6, %h7}, %a3;\n";
            let halves = "{%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}";
            let pairs = "{%a0, %a1, %a2, %a3}";
            // Once in halves, once in pairs of them; `atom` gives what was there before, then there is nothing to change.
            for body in [
                format!("{split} red.global.{op}.noftz.v8.{ty} [%i1], {halves};"),
                format!("red.relaxed.gpu.global.{op}.noftz.v4.{ty}x2 [%i1], {pairs};"),
                format!(
                    "{split} atom.global.v4.{ty}.{op}.noftz {{%h8, %h9, _, _}}, [%i1], {{%h0, %h1, %h2, %h3}};\n\
                         red.global.v2.{ty}x2.{op}.noftz [%i1+8], {{%a2, %a3}}; mov.b32 %a4, {{%h8, %h9}}; st.global.b32 [%i1+16], %a4;"
                ),
            ] {
                let reads = body.contains("%a4");
                let got = warp(".reg .b32 %a<5>;\n.reg .b16 %h<10>;", &format!("{start}{body}"), &[0], 5);
                let got: Vec<u16> = got.iter().flat_map(|v| [v.to_bits() as u16, (v.to_bits() >> 16) as u16]).collect();
                assert_eq!(got[..8], want, "{body}");
                assert!(!reads || got[8..] == before[..2], "{body}");
            }
        }
    }
}

#[test]
fn dot_products_bits_and_halves() {
    let lanes = lanes(21);
    let low = |l: Lane| (l[0] as u32, l[1] as u32, l[2] as u32);
    let dot = |l: Lane, first: u32| {
        let (a, b, c) = low(l);
        (0..2).fold(c as i32, |sum, i| {
            let (x, y) = ((a >> (16 * i)) as i16, (b >> (8 * (first + i))) as i8);
            sum.wrapping_add(i32::from(x) * i32::from(y))
        }) as u32
    };
    let nth = |l: Lane| {
        let (a, _, _) = low(l);
        (0..32u32).filter(|i| a >> i & 1 == 1).nth(2).unwrap_or(u32::MAX)
    };
    let relu = |l: Lane| {
        let half = |h: u32| {
            if h & 0x7fff > 0x7c00 {
                0x7fff
            } else if h & 0x8000 != 0 {
                0
            } else {
                h
            }
        };
        let (a, _, _) = low(l);
        half(a & 0xffff) | half(a >> 16) << 16
    };
    check(
        &[
            (&narrow("dp2a.lo.s32.s32 %r0, %a, %b, %c;"), &|l| u64::from(dot(l, 0))),
            (&narrow("dp2a.hi.s32.s32 %r0, %a, %b, %c;"), &|l| u64::from(dot(l, 2))),
            (&narrow("fns.b32 %r0, %a, 0, 3;"), &|l| u64::from(nth(l))),
            (&narrow("bmsk.clamp.b32 %r0, 4, 8;"), &|_| 0xff0),
            (&narrow("szext.clamp.s32 %r0, %a, 7;"), &|l| u64::from(((low(l).0 << 25) as i32 >> 25) as u32)),
            // 1 * x - 0 keeps a half as it is, up to the kind of NaN.
            (&narrow("mov.b32 %r1, 0x3c003c00; mov.b32 %r2, 0x80008000; fma.rn.relu.f16x2 %r0, %a, %r1, %r2;"), &|l| {
                u64::from(relu(l))
            }),
        ],
        &lanes,
    );
    let tf32 = |l: Lane| {
        let v = (f64::from_bits(l[0]) as f32).to_bits();
        u64::from(if v & 0x7f80_0000 == 0x7f80_0000 { v } else { (v + 0x1000) & !0x1fff })
    };
    check(&[(&narrow("cvt.rna.tf32.f32 %r0, %f;"), &tf32)], &float_lanes(22));
}

/// Runs a warp whose body reads `in` (u16 elements, by %i0) and writes to `out` (by %i1).
fn warp(registers: &str, body: &str, input: &[u16], output: usize) -> Vec<f32> {
    let text = format!(
        ".version 9.0\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .b32 %t<16>, %z;\n.reg .b64 %i<8>;\n.reg .pred %p<4>;\n{registers}\n.shared .align 16 .b8 s[4096];\n\
         ld.param.u64 %i0, [in]; ld.param.u64 %i1, [out]; mov.u32 %t0, %tid.x; mov.u32 %z, 0;\n{body}\nret;\n}}\n"
    );
    let d = Device::new(1);
    let m = d.load(&text);
    let (from, to) = (d.upload(input), d.alloc(4 * output as u64));
    d.launch(&m, "k", [1, 1, 1], [32, 1, 1], &Params::new().u64(from).u64(to)).unwrap();
    d.download(to, output)
}

/// f16 for small integers, exactly.
fn half(v: i32) -> u16 {
    let magnitude = v.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let exponent = magnitude.ilog2();
    let fraction = (magnitude << (10 - exponent)) & 0x3ff;
    (if v < 0 { 0x8000 } else { 0 }) | ((exponent + 15) << 10 | fraction) as u16
}

/// Matrices of small integers, in rows, and their product.
fn matrices(rows: usize, inner: usize, columns: usize) -> (Vec<i32>, Vec<i32>, Vec<f32>) {
    matrices_of(31, rows, inner, columns)
}

fn matrices_of(seed: u64, rows: usize, inner: usize, columns: usize) -> (Vec<i32>, Vec<i32>, Vec<f32>) {
    let mut r = Random::new(seed);
    let mut some = |n: usize| (0..n).map(|_| (r.bits() % 17) as i32 - 8).collect::<Vec<i32>>();
    let (a, b) = (some(rows * inner), some(inner * columns));
    let sum = |i: usize, j: usize| (0..inner).map(|k| a[i * inner + k] * b[k * columns + j]).sum::<i32>() as f32;
    let product = (0..rows * columns).map(|e| sum(e / columns, e % columns)).collect();
    (a, b, product)
}

#[test]
fn a_tile_by_cp_async_ldmatrix_and_mma() {
    // a is 16 x 16 in rows; b is given by columns, 8 x 16: what ldmatrix without .trans hands to mma.
    let (a, b, product) = matrices(16, 16, 8);
    let mut input: Vec<u16> = a.iter().map(|v| half(*v)).collect();
    input.extend((0..8).flat_map(|j| (0..16).map(move |k| (k, j))).map(|(k, j)| half(b[k * 8 + j])));
    // 768 bytes: each lane copies 16, and the first 16 lanes 16 more.
    let body = "shl.b32 %t1, %t0, 4; mov.u32 %t2, s; add.u32 %t2, %t2, %t1; cvt.u64.u32 %i2, %t1; add.u64 %i2, %i0, %i2;\n\
        cp.async.ca.shared.global [%t2], [%i2], 16;\nsetp.lt.u32 %p0, %t0, 16;\n\
        @%p0 cp.async.cg.shared.global [%t2+512], [%i2+512], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0;\n\
        and.b32 %t3, %t0, 15; shl.b32 %t3, %t3, 5; shr.u32 %t4, %t0, 4; shl.b32 %t4, %t4, 4; mov.u32 %t5, s;\n\
        add.u32 %t3, %t3, %t4; add.u32 %t3, %t3, %t5;\n\
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0, %a1, %a2, %a3}, [%t3];\n\
        and.b32 %t6, %t0, 7; shl.b32 %t6, %t6, 5; shr.u32 %t7, %t0, 3; and.b32 %t7, %t7, 1; shl.b32 %t7, %t7, 4;\n\
        add.u32 %t6, %t6, %t7; add.u32 %t6, %t6, %t5; ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%b0, %b1}, [%t6+512];\n\
        mov.f32 %c0, 0f3f800000; mov.f32 %c1, %c0; mov.f32 %c2, %c0; mov.f32 %c3, %c0;\n\
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%c0,%c1,%c2,%c3}, {%a0,%a1,%a2,%a3}, {%b0,%b1}, {%c0,%c1,%c2,%c3};\n\
        shr.u32 %t8, %t0, 2; and.b32 %t9, %t0, 3; shl.b32 %t8, %t8, 3; mad.lo.u32 %t8, %t9, 2, %t8;\n\
        mul.wide.u32 %i3, %t8, 4; add.u64 %i3, %i1, %i3; st.global.v2.f32 [%i3], {%c0, %c1}; st.global.v2.f32 [%i3+256], {%c2, %c3};";
    let got = warp(".reg .b32 %a<4>, %b<2>;\n.reg .f32 %c<4>;", body, &input, 128);
    for (e, (got, want)) in got.iter().zip(&product).enumerate() {
        assert_eq!(*got, want + 1.0, "row {}, column {}", e / 8, e % 8);
    }
}

#[test]
fn four_products_by_pairs_of_quads() {
    // Lane l and element i: where the PTX ISA puts them in the matrices of the lane's pair of quads.
    let second = |l: usize| if l < 16 { 0 } else { 4 };
    let of_a = |layout: &str, l: usize, i: usize| match layout {
        "row" => (l % 4 + second(l), i),
        _ => (i + second(l), l % 4),
    };
    let of_b = |layout: &str, l: usize, i: usize| match layout {
        "row" => (l % 4, i + second(l)),
        _ => (i, l % 4 + second(l)),
    };
    let of_sum = |ty: &str, l: usize, i: usize| match ty {
        "f16" => (l % 4 + second(l), i),
        _ => ((l & 1) + (i & 2) + second(l), (i & 4) + (l & 2) + (i & 1)),
    };
    let products: Vec<_> = (0..4).map(|pair| matrices_of(31 + pair, 8, 4, 8)).collect();
    for (layouts, types) in ["row.row", "row.col", "col.row", "col.col"]
        .into_iter()
        .flat_map(|layouts| [("f16", "f16"), ("f32", "f16"), ("f32", "f32")].map(|types| (layouts, types)))
    {
        let ((first, second), (to, from)) = (layouts.split_once('.').unwrap(), types);
        // What is added: its row and column as a number, apart in each product.
        let addend = |pair: usize, (i, j): (usize, usize)| (i * 8 + j) as i32 - 20 * pair as i32;
        let mut input = Vec::new();
        for l in 0..32 {
            let (pair, (a, b, _)) = (l % 16 / 4, &products[l % 16 / 4]);
            input.extend((0..4).map(|i| of_a(first, l, i)).map(|(i, k)| half(a[i * 4 + k])));
            input.extend((0..4).map(|i| of_b(second, l, i)).map(|(k, j)| half(b[k * 8 + j])));
            let sums = (0..8).map(|i| addend(pair, of_sum(from, l, i)));
            if from == "f16" {
                input.extend(sums.map(half).chain([0; 8]));
            } else {
                input.extend(sums.flat_map(|v| {
                    let bits = (v as f32).to_bits();
                    [bits as u16, (bits >> 16) as u16]
                }));
            }
        }
        let list = |name: &str, n: usize| (0..n).map(|i| format!("%{name}{i}")).collect::<Vec<_>>().join(", ");
        let count = |ty: &str| if ty == "f16" { 4 } else { 8 };
        let widen: String = if to == "f16" {
            let one = |i: usize| {
                format!(
                    "mov.b32 {{%h0, %h1}}, %d{i}; cvt.f32.f16 %f{}, %h0; cvt.f32.f16 %f{}, %h1;\n",
                    2 * i,
                    2 * i + 1
                )
            };
            (0..4).map(one).collect()
        } else {
            (0..8).map(|i| format!("mov.b32 %f{i}, %d{i};\n")).collect()
        };
        let body = format!(
            "mad.wide.u32 %i2, %t0, 48, %i0; ld.global.v4.b32 {{%a0, %a1, %b0, %b1}}, [%i2];\n\
             ld.global.v4.b32 {{%c0, %c1, %c2, %c3}}, [%i2+16]; ld.global.v4.b32 {{%c4, %c5, %c6, %c7}}, [%i2+32];\n\
             mma.sync.aligned.m8n8k4.{layouts}.{to}.f16.f16.{from} {{{}}}, {{%a0, %a1}}, {{%b0, %b1}}, {{{}}};\n{widen}\
             mad.wide.u32 %i3, %t0, 32, %i1; st.global.v4.f32 [%i3], {{%f0, %f1, %f2, %f3}};\n\
             st.global.v4.f32 [%i3+16], {{%f4, %f5, %f6, %f7}};",
            list("d", count(to)),
            list("c", count(from)),
        );
        let registers = ".reg .b32 %a<2>, %b<2>, %c<8>, %d<8>;\n.reg .b16 %h<2>;\n.reg .f32 %f<8>;";
        for (e, got) in warp(registers, &body, &input, 256).into_iter().enumerate() {
            let (l, (pair, cell)) = (e / 8, (e / 8 % 16 / 4, of_sum(to, e / 8, e % 8)));
            let want = products[pair].2[cell.0 * 8 + cell.1] + addend(pair, cell) as f32;
            assert_eq!(got, want, "{layouts} {types:?}, lane {l}, element {}", e % 8);
        }
    }
}

#[test]
fn a_tile_by_wmma() {
    let (a, b, product) = matrices(16, 16, 16);
    let mut input: Vec<u16> = a.iter().map(|v| half(*v)).collect();
    // b by columns.
    input.extend((0..256).map(|e| half(b[e % 16 * 16 + e / 16])));
    let list = |name: &str| (0..8).map(|i| format!("%{name}{i}")).collect::<Vec<_>>().join(", ");
    let (x, y, z) = (list("a"), list("b"), list("c"));
    let body = format!(
        "mov.u32 %t1, 16; add.u64 %i2, %i0, 512;\n\
         wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {{{x}}}, [%i0], %t1;\n\
         wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {{{y}}}, [%i2], %t1;\n{}\n\
         wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {{{z}}}, {{{x}}}, {{{y}}}, {{{z}}};\n\
         wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%i1], {{{z}}}, %t1;",
        (0..8).map(|i| format!("mov.f32 %c{i}, 0f40000000;")).collect::<String>()
    );
    let got = warp(".reg .b32 %a<8>, %b<8>;\n.reg .f32 %c<8>;", &body, &input, 256);
    for (e, got) in got.iter().enumerate() {
        assert_eq!(*got, product[e % 16 * 16 + e / 16] + 2.0, "column {}, row {}", e / 16, e % 16);
    }
}

#[test]
fn integer_matrices() {
    let (a, b, product) = matrices(16, 32, 8);
    let bytes = |v: &[i32]| v.chunks(2).map(|p| u16::from_le_bytes([p[0] as u8, p[1] as u8])).collect::<Vec<u16>>();
    let mut input = bytes(&a);
    let columns: Vec<i32> = (0..8 * 32).map(|e| b[e % 32 * 8 + e / 32]).collect();
    input.extend(bytes(&columns));
    // Rows of 32 bytes: four bytes a lane, eight rows and sixteen columns apart.
    let body = "shr.u32 %t1, %t0, 2; and.b32 %t2, %t0, 3; shl.b32 %t1, %t1, 5; mad.lo.u32 %t1, %t2, 4, %t1;\n\
        cvt.u64.u32 %i2, %t1; add.u64 %i2, %i0, %i2;\n\
        ld.global.u32 %a0, [%i2]; ld.global.u32 %a1, [%i2+256]; ld.global.u32 %a2, [%i2+16]; ld.global.u32 %a3, [%i2+272];\n\
        ld.global.u32 %b0, [%i2+512]; ld.global.u32 %b1, [%i2+528];\n\
        mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%c0,%c1,%c2,%c3}, {%a0,%a1,%a2,%a3}, {%b0,%b1}, {%z,%z,%z,%z};\n\
        cvt.rn.f32.s32 %f0, %c0; cvt.rn.f32.s32 %f1, %c1; cvt.rn.f32.s32 %f2, %c2; cvt.rn.f32.s32 %f3, %c3;\n\
        shr.u32 %t8, %t0, 2; and.b32 %t9, %t0, 3; shl.b32 %t8, %t8, 3; mad.lo.u32 %t8, %t9, 2, %t8;\n\
        mul.wide.u32 %i3, %t8, 4; add.u64 %i3, %i1, %i3; st.global.v2.f32 [%i3], {%f0, %f1}; st.global.v2.f32 [%i3+256], {%f2, %f3};";
    let got = warp(".reg .b32 %a<4>, %b<2>, %c<4>;\n.reg .f32 %f<4>;", body, &input, 128);
    assert_eq!(got, product);
}

#[test]
fn matrices_of_less_than_a_byte() {
    // As `nvcuda::wmma::experimental` uses them: a in rows, b in columns, each row or column one word or four.
    let mut r = Random::new(3);
    type Case = (&'static str, &'static str, usize, usize, fn(u32, u32) -> i32);
    let cases: [Case; 3] = [
        ("s4", "mma", 32, 4, |a, b| {
            let signed = |v: u32, k: u32| ((v >> (4 * k)) << 28) as i32 >> 28;
            (0..8).map(|k| signed(a, k) * signed(b, k)).sum()
        }),
        ("u4", "mma", 32, 4, |a, b| (0..8).map(|k| ((a >> (4 * k) & 15) * (b >> (4 * k) & 15)) as i32).sum()),
        ("b1", "mma.xor.popc", 128, 1, |a, b| (a ^ b).count_ones() as i32),
    ];
    for (ty, product, inner, bits, term) in cases {
        let words = inner * bits / 32;
        let input: Vec<u32> = (0..16 * words).map(|_| (r.bits() >> 16) as u32).collect();
        let shape = format!("m8n8k{inner}");
        let body = format!(
            "mov.u32 %t1, {inner}; mov.u32 %t2, 8; add.u64 %i2, %i0, {};\n\
             wmma.load.a.sync.aligned.row.{shape}.global.{ty} {{%a}}, [%i0], %t1;\n\
             wmma.load.b.sync.aligned.col.{shape}.global.{ty} {{%b}}, [%i2], %t1;\n\
             mov.u32 %c0, 5; mov.u32 %c1, 5;\n\
             wmma.{product}.sync.aligned.row.col.{shape}.s32.{ty}.{ty}.s32 {{%c0, %c1}}, {{%a}}, {{%b}}, {{%c0, %c1}};\n\
             cvt.rn.f32.s32 %f0, %c0; cvt.rn.f32.s32 %f1, %c1; mov.b32 %c0, %f0; mov.b32 %c1, %f1;\n\
             wmma.store.d.sync.aligned.row.{shape}.global.s32 [%i1], {{%c0, %c1}}, %t2;",
            32 * words
        );
        let halves: Vec<u16> = input.iter().flat_map(|w| [*w as u16, (*w >> 16) as u16]).collect();
        let got = warp(".reg .b32 %a, %b, %c<2>;\n.reg .f32 %f<2>;", &body, &halves, 64);
        for (e, got) in got.iter().enumerate() {
            let (row, column) = (e / 8 * words, (8 + e % 8) * words);
            let want = 5 + (0..words).map(|k| term(input[row + k], input[column + k])).sum::<i32>();
            assert_eq!(*got, want as f32, "{ty}, element {e}");
        }
    }
}

#[test]
fn a_vector_with_an_order_is_written_and_read_whole() {
    // What scans with look-back rely on: a status and the number that belongs to it.
    for (kind, list, copies) in [
        ("v2.u32", "{%r0, %r0}", "{%r3, %r4}"),
        ("v4.u32", "{%r0, %r0, %r0, %r0}", "{%r3, %r5, %r6, %r4}"),
        ("v2.u64", "{%d2, %d2}", "{%d3, %d4}"),
    ] {
        let differ = if kind == "v2.u64" { "setp.ne.u64 %p0, %d3, %d4" } else { "setp.ne.u32 %p0, %r3, %r4" };
        let text = format!(
            ".version 9.0\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 bad)\n{{\n\
             .reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n\
             ld.param.u64 %d0, [p]; ld.param.u64 %d1, [bad];\n\
             mov.u32 %r0, %ctaid.x; cvt.u64.u32 %d2, %r0; mov.u32 %r2, 0;\n$again:\n\
             st.relaxed.gpu.{kind} [%d0], {list};\n ld.relaxed.gpu.{kind} {copies}, [%d0]; {differ};\n\
             @%p0 st.global.u64 [%d1], %d2;\n\
             add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20000; @%p1 bra $again;\nret;\n}}\n"
        );
        let d = Device::new(2);
        let m = d.load(&text);
        let (memory, bad) = (d.alloc(16), d.upload(&[u64::MAX]));
        d.launch(&m, "k", [2, 1, 1], [32, 1, 1], &Params::new().u64(memory).u64(bad)).unwrap();
        assert_eq!(d.download::<u64>(bad, 1), [u64::MAX], "{kind}");
    }
}

#[test]
fn registers_of_128_bits_are_read_and_written_whole() {
    // Each thread puts the same number into both halves, and sees nothing else there; then one of all wins.
    let text = ".version 9.0\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 bad)\n{\n\
        .reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %d<16>;\n.reg .b128 %q<4>, _d;\n\
        ld.param.u64 %d0, [p]; ld.param.u64 %d1, [bad];\n\
        mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r0, %r1, 64, %r0; cvt.u64.u32 %d2, %r0; mov.u32 %r2, 0;\n\
        mov.b128 %q0, {%d2, %d2};\n$again:\n\
        st.relaxed.gpu.global.b128 [%d0], %q0;\n ld.acquire.gpu.b128 _d, [%d0]; mov.b128 {%d3, %d4}, _d;\n\
        setp.ne.u64 %p0, %d3, %d4; @%p0 st.global.u64 [%d1], %d3;\n\
        atom.exch.relaxed.gpu.global.b128 %q1, [%d0], %q0; mov.b128 {%d3, %d4}, %q1;\n\
        setp.ne.u64 %p0, %d3, %d4; @%p0 st.global.u64 [%d1], %d4;\n\
        add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 200; @%p1 bra $again;\n\
        mov.u64 %d5, 0; mov.b128 %q2, {%d5, %d5}; mad.wide.u32 %d6, %r0, 16, %d0;\n\
        st.b128 [%d6+16], %q0; ld.b128 %q3, [%d6+16]; mov.b128 {%d7, %d8}, %q3; mov.b128 {%d7, %d8}, {%d8, %d7};\n\
        setp.ne.u64 %p0, %d7, %d2; @%p0 st.global.u64 [%d1], %d7;\n\
        add.u64 %d9, %d2, 1; mov.b128 %q1, {%d9, %d2}; atom.cas.b128 %q2, [%d6+16], %q0, %q1;\n\
        atom.cas.b128 _, [%d6+16], %q0, %q3; ret;\n}\n";
    let d = Device::new(2);
    let m = d.load(text);
    assert_eq!(m.kernel("k").unwrap().unsupported, None);
    let (memory, bad) = (d.alloc(16 * 129), d.upload(&[u64::MAX]));
    d.launch(&m, "k", [2, 1, 1], [64, 1, 1], &Params::new().u64(memory).u64(bad)).unwrap();
    assert_eq!(d.download::<u64>(bad, 1), [u64::MAX]);
    let words: Vec<u64> = d.download(memory, 2 * 129);
    assert_eq!(words[0], words[1]);
    for thread in 0..128u64 {
        assert_eq!(words[2 + 2 * thread as usize..][..2], [thread + 1, thread]);
    }
}

#[test]
fn one_lane_is_elected() {
    let body = "setp.lt.u32 %p1, %t0, 4; @%p1 bra $out;\n\
        elect.sync %t1|%p0, 0xfffffff0; selp.f32 %f0, 0f3f800000, 0f00000000, %p0; mul.wide.u32 %i2, %t0, 4;\n\
        add.u64 %i2, %i1, %i2; st.global.f32 [%i2], %f0;\n$out:";
    let got = warp(".reg .f32 %f<2>;", body, &[0], 32);
    assert_eq!(got.iter().sum::<f32>(), 1.0);
    assert_eq!(got[4], 1.0);
}

#[test]
fn lanes_see_only_those_that_they_name() {
    let lanes = lanes(11);
    let odd = |l: usize| lanes[l][0] & 1;
    // Tiles of 8 lanes come together, or in two halves of the warp of which the second comes later.
    let tiles = "and.b32 %r0, %t, 24; shl.b32 %r1, 255, %r0; and.b32 %r2, %a, 1; setp.eq.u32 %p0, %r2, 1;";
    let vote = "vote.sync.ballot.b32 %r3, %p0, %r1; match.any.sync.b32 %r4, %r2, %r1; mov.b64 %o, {%r3, %r4};";
    let halves = format!("{tiles} setp.lt.u32 %p1, %t, 12; @%p1 bra go; add.u32 %r5, %r5, 1; go: {vote}");
    for body in [format!("{tiles} {vote}"), halves] {
        for (l, got) in run(&body, &lanes).into_iter().enumerate() {
            let tile = l / 8 * 8..l / 8 * 8 + 8;
            let ballot = tile.clone().fold(0, |set, k| set | odd(k) << k);
            let equal = tile.fold(0, |set, k| set | u64::from(odd(k) == odd(l)) << k);
            assert_eq!(got, ballot | equal << 32, "lane {l} of {body}");
        }
    }
}

/// The 8-bit floats of both formats, written out: sign and bits, and the value that IEEE 754's rules give them.
fn eight_bit(fraction_bits: u32, bias: i32, special: impl Fn(u64) -> Option<f64>) -> Vec<f64> {
    let value = |code: u64| {
        let (exponent, fraction) = (code as i32 >> fraction_bits, (code & ((1 << fraction_bits) - 1)) as f64);
        let unit = 2f64.powi(exponent.max(1) - bias - fraction_bits as i32);
        special(code).unwrap_or((fraction + if exponent > 0 { f64::from(1 << fraction_bits) } else { 0.0 }) * unit)
    };
    (0..128).map(value).collect()
}

#[test]
fn eight_bit_floats_are_what_their_table_says() {
    let e4m3 = eight_bit(3, 7, |code| (code == 0x7f).then_some(f64::NAN));
    let e5m2 = eight_bit(2, 15, |code| match code {
        0x7c => Some(f64::INFINITY),
        0x7d.. => Some(f64::NAN),
        _ => None,
    });
    assert_eq!((e4m3[1], e4m3[0x7e], e5m2[1], e5m2[0x7b]), (2f64.powi(-9), 448.0, 2f64.powi(-16), 57344.0));
    for (name, table) in [("e4m3x2", &e4m3), ("e5m2x2", &e5m2)] {
        let finite = table.iter().take_while(|v| v.is_finite()).count();
        // Every code to an f16, both signs, in both halves.
        for first in (0..128u64).step_by(32) {
            let lanes: Vec<Lane> = (0..32).map(|l| [((first + l) * 0x101) | 0x8000, 0, 0]).collect();
            let body = format!("cvt.u16.u32 %s1, %a; cvt.rn.f16x2.{name} %r1, %s1; cvt.u64.u32 %o, %r1;");
            for (got, [code, ..]) in run(&body, &lanes).into_iter().zip(&lanes) {
                let want = table[(code & 0x7f) as usize];
                let (low, high) = (f64::from(from_f16(got as u16)), f64::from(from_f16((got >> 16) as u16)));
                let same = low == want && high == -want && high.is_sign_negative();
                assert!(same || (want.is_nan() && got == 0x7fff_7fff), "{name} {code:#x}: {got:#x}");
            }
        }
        // Every value, the middle to the next, and what lies just beside the middle, to a code.
        let mut cases: Vec<(f64, u64)> = Vec::new();
        for code in 0..finite {
            let at = table[code];
            cases.push((at, code as u64));
            if let Some(next) = table.get(code + 1).filter(|next| next.is_finite()) {
                let middle = (at + next) / 2.0;
                cases.push((middle, (code + code % 2) as u64));
                cases.push((f64::from((middle as f32).next_down()), code as u64));
                cases.push((f64::from((middle as f32).next_up()), code as u64 + 1));
            }
        }
        let most = finite as u64 - 1;
        cases.extend([(1e9, most), (f64::INFINITY, most), (1e-9, 0), (f64::from(f32::from_bits(1)), 0)]);
        for chunk in cases.chunks(32) {
            let value = |l: usize| chunk.get(l).map_or(0.0, |case| case.0);
            let lanes: Vec<Lane> = (0..32).map(|l| [value(l).to_bits(), (-value(l)).to_bits(), 0]).collect();
            let single = run(&format!("cvt.rn.satfinite.{name}.f32 %s1, %g, %f; cvt.u64.u16 %o, %s1;"), &lanes);
            let relu = run(&format!("cvt.rn.satfinite.relu.{name}.f32 %s1, %g, %f; cvt.u64.u16 %o, %s1;"), &lanes);
            let halves =
                format!("cvt.rn.f16x2.f32 %r1, %g, %f; cvt.rn.satfinite.{name}.f16x2 %s1, %r1; cvt.u64.u16 %o, %s1;");
            let halves = run(&halves, &lanes);
            for (l, (value, code)) in chunk.iter().enumerate() {
                assert_eq!(single[l], (code | 0x80) << 8 | code, "{name} of {value:e}");
                assert_eq!(relu[l], *code, "{name} of {value:e} with relu");
                if f64::from(from_f16(sluice_softgpu::half::to_f16(*value))) == *value {
                    assert_eq!(halves[l], single[l], "{name} of {value:e} as a half");
                }
            }
        }
        let nan = [[f64::NAN.to_bits(), (-f64::NAN).to_bits(), 0]; 32];
        for relu in ["", ".relu"] {
            let body = format!("cvt.rn.satfinite{relu}.{name}.f32 %s1, %g, %f; cvt.u64.u16 %o, %s1;");
            assert!(run(&body, &nan).iter().all(|got| *got == 0x7f7f), "{name} of NaN");
        }
    }
}

/// As NVIDIA's assembler folds them: a difference sets the flag where nothing was borrowed, a sum where it carried, and
/// either may take what the other has set.
#[test]
fn sums_and_differences_share_one_flag() {
    let body = "sub.cc.u32 %r0, %a, %b; addc.u32 %r1, 0, 0; add.cc.u32 %r0, %a, %b; subc.u32 %r2, 10, 4;\n\
                sub.cc.u64 %w4, %x, %y; addc.u64 %w5, 0, 0; add.cc.u64 %w4, %x, %y; subc.u64 %w6, 10, 4;\n\
                cvt.u32.u64 %r3, %w5; cvt.u32.u64 %r4, %w6; mad.lo.u32 %r1, %r3, 16, %r1; mad.lo.u32 %r2, %r4, 16, %r2;\n\
                mov.b64 %o, {%r1, %r2};";
    let lanes = lanes(29);
    for (got, [x, y, _]) in run(body, &lanes).into_iter().zip(lanes) {
        let (a, b) = (x as u32, y as u32);
        let after_difference = u64::from(a >= b) | u64::from(x >= y) << 4;
        let after_sum = u64::from(6 - u32::from(a.checked_add(b).is_some()));
        let after_sum = after_sum | (6 - u64::from(x.checked_add(y).is_some())) << 4;
        assert_eq!(got, after_difference | after_sum << 32, "{x:#x} and {y:#x}");
    }
}

#[test]
fn functions_take_and_give_registers() {
    let text = ".version 9.0\n.target sm_120\n.address_size 64\n\
        .func (.reg .u32 twice, .reg .u64 wide) both(.reg .u32 n, .param .b32 by, .reg .b64 to)\n{\n\
        .reg .b32 %r<4>;\n.reg .pred %p;\nld.param.u32 %r1, [by]; add.u32 twice, n, n; mul.wide.u32 wide, n, %r1;\n\
        st.global.u32 [to], n; setp.lt.u32 %p, n, 8; @%p ret;\nadd.u32 twice, twice, 1;\n}\n\
        .visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n.param .b32 factor;\n\
        ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %d1, %r0, 24, %d0; st.param.b32 [factor], 1000000;\n\
        call (%r1, %d2), both, (%r0, factor, %d1);\n\
        st.global.u32 [%d1+4], %r1; st.global.u64 [%d1+8], %d2; st.global.u32 [%d1+16], %r0;\nret;\n}\n";
    let d = Device::new(1);
    let m = d.load(text);
    let out = d.alloc(24 * 32);
    d.launch(&m, "k", [1; 3], [32, 1, 1], &Params::new().u64(out)).unwrap();
    for (n, got) in (0..32u32).zip(d.download::<[u32; 6]>(out, 32)) {
        let twice = 2 * n + u32::from(n >= 8);
        assert_eq!(got[..5], [n, twice, 1_000_000 * n, 0, n], "thread {n}");
    }
}

#[test]
fn a_near_quotient_by_more_than_2_to_126_is_zero() {
    let number = |v: f32| f64::from(v).to_bits();
    let most = 2f32.powi(126);
    let above = f32::from_bits(most.to_bits() + 1);
    let lanes: Vec<Lane> = [
        (1e38, above),
        (-1e38, above),
        (1e38, -f32::MAX),
        (3e38, most),
        (f32::INFINITY, above),
        (f32::INFINITY, most),
        (0.0, above),
        (5.0, f32::INFINITY),
        (f32::NAN, above),
        (1.0, f32::NAN),
        (6.0, 1.5),
    ]
    .iter()
    .map(|(a, b)| [number(*a), number(*b), 0])
    .collect();
    let lanes: Vec<Lane> = lanes.iter().cycle().take(32).copied().collect();
    let bits = |v: f64| u64::from((v as f32).to_bits());
    let values = |l: Lane| (f64::from_bits(l[0]), f64::from_bits(l[1]));
    let near = |l: Lane| {
        let (a, b) = values(l);
        let beyond = b.abs() > f64::from(most);
        bits(if beyond && a.is_infinite() {
            f64::NAN
        } else if beyond {
            a * 0.0 * b.signum()
        } else {
            a / b
        })
    };
    check(
        &[(&single("div.approx.f32 %v0, %f, %g;"), &near), (&single("div.approx.ftz.f32 %v0, %f, %g;"), &near)],
        &lanes,
    );
    let full = |l: Lane| bits(values(l).0 / values(l).1);
    check(&[(&single("div.full.f32 %v0, %f, %g;"), &full)], &lanes);
}

#[test]
fn products_of_doubles_are_fused() {
    // 8 x 4 by 4 x 8: a and b have one element a lane, c and d two.
    let (mut r, mut input) = (Random::new(41), Vec::new());
    let mut some = |n: usize| (0..n).map(|_| r.unit() - 0.5).collect::<Vec<f64>>();
    let (a, b, c) = (some(32), some(32), some(64));
    for value in a.iter().chain(&b).chain(&c) {
        input.extend([0, 16, 32, 48].map(|shift| (value.to_bits() >> shift) as u16));
    }
    // Lane l has row l/4 and column l%4 of a, row l%4 and column l/4 of b, row l/4 and columns 2(l%4) and one more of c.
    let body = "mul.wide.u32 %i2, %t0, 8; add.u64 %i3, %i0, %i2; ld.global.f64 %a, [%i3];\n\
        and.b32 %t1, %t0, 3; shr.u32 %t2, %t0, 2; mad.lo.u32 %t3, %t1, 8, %t2; mul.wide.u32 %i4, %t3, 8;\n\
        add.u64 %i4, %i4, %i0; ld.global.f64 %b, [%i4+256]; mul.wide.u32 %i5, %t0, 16; add.u64 %i6, %i0, %i5;\n\
        ld.global.v2.f64 {%c0, %c1}, [%i6+512];\n\
        mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%c0, %c1}, {%a}, {%b}, {%c0, %c1};\n\
        add.u64 %i7, %i1, %i5; st.global.v2.f64 [%i7], {%c0, %c1};";
    let got = warp(".reg .f64 %a, %b, %c<2>;", body, &input, 128);
    for (at, pair) in got.chunks(2).enumerate() {
        let (i, j) = (at / 8, at % 8);
        let want = (0..4).fold(c[at], |sum, k| a[i * 4 + k].mul_add(b[k * 8 + j], sum));
        let bits = u64::from(pair[0].to_bits()) | u64::from(pair[1].to_bits()) << 32;
        assert_eq!(f64::from_bits(bits), want, "row {i}, column {j}");
    }
}
