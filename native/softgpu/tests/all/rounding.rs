//! Results that are rounded, saturated or not numbers: against the processor itself in each direction, and against what
//! the PTX ISA says.

use crate::common::{Device, Params, Random};
use sluice_softgpu::half::from_f16;
use sluice_softgpu::{Module, PtxError};

type Lane = [u64; 3];

/// Runs `body` with operands in %x, %y, %z (64 bits), %a, %b, %c (their low halves), %i, %j, %l (16 bits of them), %f,
/// %g, %h and %d, %e, %q (the same bits as floating point); gives %o.
fn run(body: &str, lanes: &[Lane]) -> Vec<u64> {
    let text = format!(
        ".version 8.8\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)\n{{\n\
         .reg .pred %p<8>, %t0;\n.reg .b16 %i, %j, %l, %s<8>;\n.reg .b32 %a, %b, %c, %r<8>, %t, %n;\n\
         .reg .b64 %x, %y, %z, %o, %w<8>;\n.reg .f32 %f, %g, %h, %v<8>;\n.reg .f64 %d, %e, %q, %u<8>;\n\
         ld.param.u64 %w0, [in]; ld.param.u64 %w1, [out]; ld.param.u32 %n, [n];\n\
         mov.u32 %t, %ctaid.x; shl.b32 %t, %t, 7; mov.u32 %r0, %tid.x; add.u32 %t, %t, %r0;\n\
         setp.ge.u32 %t0, %t, %n; @%t0 ret;\n\
         mad.wide.u32 %w2, %t, 24, %w0; mad.wide.u32 %w3, %t, 8, %w1;\n\
         ld.global.u64 %x, [%w2]; ld.global.u64 %y, [%w2+8]; ld.global.u64 %z, [%w2+16];\n\
         cvt.u32.u64 %a, %x; cvt.u32.u64 %b, %y; cvt.u32.u64 %c, %z;\n\
         cvt.u16.u64 %i, %x; cvt.u16.u64 %j, %y; cvt.u16.u64 %l, %z;\n\
         mov.b64 %d, %x; mov.b64 %e, %y; mov.b64 %q, %z; mov.b32 %f, %a; mov.b32 %g, %b; mov.b32 %h, %c;\n\
         mov.u64 %o, 0;\n{body}\nst.global.u64 [%w3], %o;\nret;\n}}\n"
    );
    let d = Device::new(1);
    let m = d.load(&text);
    assert_eq!(m.kernel("k").unwrap().unsupported, None);
    let flat: Vec<u64> = lanes.iter().flatten().copied().collect();
    let (input, output) = (d.upload(&flat), d.alloc(8 * lanes.len() as u64));
    let p = Params::new().u64(input).u64(output).u32(lanes.len() as u32);
    d.launch(&m, "k", [lanes.len().div_ceil(128) as u32, 1, 1], [128, 1, 1], &p).unwrap();
    d.download(output, lanes.len())
}

fn check(body: &str, lanes: &[Lane], want: impl Fn(Lane) -> u64) {
    for (lane, got) in lanes.iter().zip(run(body, lanes)) {
        let want = want(*lane);
        assert_eq!(got, want, "{body} of {lane:x?}: {got:#x}, not {want:#x}");
    }
}

/// The result in %v0, %r0 or %s0 becomes the output.
fn out(body: &str) -> String {
    let end = if body.contains("%v0") {
        "mov.b32 %r0, %v0; cvt.u64.u32 %o, %r0;"
    } else if body.contains("%s0") {
        "cvt.u64.u16 %o, %s0;"
    } else {
        "cvt.u64.u32 %o, %r0;"
    };
    format!("{body} {end}")
}

/// The processor's own arithmetic with its rounding mode set.
#[cfg(target_arch = "x86_64")]
mod processor {
    use std::arch::asm;

    /// Rounding modes as the processor numbers them.
    pub const MODES: [(&str, u32); 4] = [("rn", 0), ("rm", 1), ("rp", 2), ("rz", 3)];

    macro_rules! arithmetic {
        ($name:ident, $t:ty, $add:literal, $sub:literal, $mul:literal, $div:literal, $sqrt:literal, $fma:literal) => {
            pub fn $name(op: &str, mode: u32, [a, b, c]: [$t; 3]) -> $t {
                let (new, old) = (0x1f80u32 | mode << 13, 0x1f80u32);
                macro_rules! with {
                    ($code:literal, $first:expr, $second:expr) => {{
                        let mut r: $t = $first;
                        // SAFETY: registers alone are touched, and the mode is put back.
                        unsafe {
                            asm!("ldmxcsr [{new}]", $code, "ldmxcsr [{old}]", new = in(reg) &new, old = in(reg) &old,
                                r = inout(xmm_reg) r, s = in(xmm_reg) $second, t = in(xmm_reg) c, options(nostack))
                        };
                        r
                    }};
                }
                match op {
                    "add" => with!($add, a, b),
                    "sub" => with!($sub, a, b),
                    "mul" => with!($mul, a, b),
                    "div" => with!($div, a, b),
                    "rcp" => with!($div, 1.0, a),
                    "sqrt" => with!($sqrt, a, a),
                    _ => with!($fma, a, b),
                }
            }
        };
    }
    arithmetic!(
        single,
        f32,
        "addss {r}, {s} // {t}",
        "subss {r}, {s} // {t}",
        "mulss {r}, {s} // {t}",
        "divss {r}, {s} // {t}",
        "sqrtss {r}, {s} // {t}",
        "vfmadd213ss {r}, {s}, {t}"
    );
    arithmetic!(
        double,
        f64,
        "addsd {r}, {s} // {t}",
        "subsd {r}, {s} // {t}",
        "mulsd {r}, {s} // {t}",
        "divsd {r}, {s} // {t}",
        "sqrtsd {r}, {s} // {t}",
        "vfmadd213sd {r}, {s}, {t}"
    );
}

/// Numbers of a format with so many bits of exponent and of fraction: the ends, and others near each other.
#[cfg(target_arch = "x86_64")]
fn numbers(seed: u64, exponent: u32, fraction: u32) -> Vec<Lane> {
    let sign = 1u64 << (exponent + fraction);
    let (one, infinity) = (((1 << (exponent - 1)) - 1) << fraction, ((1u64 << exponent) - 1) << fraction);
    let least = 1u64 << fraction;
    let half = infinity - (infinity - one) / 2;
    let special = [
        0,
        1,
        2,
        3,
        least - 1,
        least,
        least + 1,
        one - 1,
        one,
        one + 1,
        half,
        infinity - 1,
        infinity,
        infinity + least / 2,
    ];
    let special: Vec<u64> = special.into_iter().flat_map(|v| [v, v | sign]).collect();
    let mut r = Random::new(seed);
    let mut lanes = Vec::new();
    for a in &special {
        for b in &special {
            lanes.push([*a, *b, special[(r.bits() >> 20) as usize % special.len()]]);
        }
    }
    for k in 0..3000u64 {
        let mut any = || r.bits() & (2 * sign - 1);
        lanes.push(match k % 3 {
            0 => [any(), any(), any()],
            // Close to each other, so that sums cancel.
            1 => {
                let (a, far) = (any(), any() & infinity);
                [a, a ^ sign ^ (any() & (4 * least - 1)), far | any() & (least - 1)]
            }
            // A product near one, and what takes away all but its end.
            _ => {
                let (a, b) = (one | any() & (least - 1), one | any() & (least - 1));
                [a, b, (one | sign) + (any() & (least - 1))]
            }
        });
    }
    lanes
}

#[cfg(target_arch = "x86_64")]
#[test]
fn every_direction_is_the_processors() {
    let fused = std::arch::is_x86_feature_detected!("fma");
    let (singles, doubles) = (numbers(3, 8, 23), numbers(5, 11, 52));
    for op in ["add", "sub", "mul", "div", "rcp", "sqrt", "fma"] {
        if op == "fma" && !fused {
            continue;
        }
        for (name, mode) in processor::MODES {
            let (single, double) = match op {
                "fma" => ("%f, %g, %h", "%d, %e, %q"),
                "sqrt" | "rcp" => ("%f", "%d"),
                _ => ("%f, %g", "%d, %e"),
            };
            check(&out(&format!("{op}.{name}.f32 %v0, {single};")), &singles, |l| {
                let v = processor::single(op, mode, l.map(|v| f32::from_bits(v as u32)));
                u64::from(if v.is_nan() { 0x7fff_ffff } else { v.to_bits() })
            });
            let body = format!(
                "{op}.{name}.f64 %u0, {double}; mov.b64 %o, %u0; testp.notanumber.f64 %p0, %u0; @%p0 mov.u64 %o, 1;"
            );
            check(&body, &doubles, |l| {
                let v = processor::double(op, mode, l.map(f64::from_bits));
                if v.is_nan() { 1 } else { v.to_bits() }
            });
        }
    }
}

fn single(v: f32) -> u64 {
    u64::from(v.to_bits())
}

fn bf16(v: f32) -> u64 {
    u64::from(v.to_bits() >> 16)
}

#[test]
fn what_is_no_number_looks_as_on_a_card() {
    let (nan, infinity) = (0x7fff_ffff, single(f32::INFINITY));
    let minus = infinity | 1 << 31;
    for (body, lane) in [
        ("add.f32 %v0, %f, %g;", [infinity, minus, 0]),
        ("sub.f32 %v0, %f, %g;", [infinity, infinity, 0]),
        ("mul.f32 %v0, %f, %g;", [infinity, 0, 0]),
        ("div.rn.f32 %v0, %f, %g;", [0, 0, 0]),
        ("sqrt.rn.f32 %v0, %f;", [single(-1.0), 0, 0]),
        ("rsqrt.approx.f32 %v0, %f;", [single(-1.0), 0, 0]),
        ("lg2.approx.f32 %v0, %f;", [single(-1.0), 0, 0]),
        ("fma.rn.f32 %v0, %f, %g, %h;", [0xffc0_0001, 0, 0]),
        ("add.f32 %v0, %f, %g;", [0x7fa0_0000, 0, 0]),
        ("min.f32 %v0, %f, %g;", [0xffc0_0001, 0x7fc0_0001, 0]),
        ("max.NaN.f32 %v0, %f, %g;", [0xffc0_0001, 0, 0]),
        ("cvt.rn.f32.f64 %v0, %d;", [f64::NAN.to_bits() | 1 << 63, 0, 0]),
        ("add.f32 %v0, %f, %g; mov.f32 %v0, %v0;", [infinity, minus, 0]),
    ] {
        check(&out(body), &[lane; 5], |_| nan);
    }
    // What another instruction left in a register stays, where the guard is false.
    let body = out("mov.b32 %v0, %c; setp.eq.u32 %p1, %a, 1; @%p1 add.f32 %v0, %g, %g;");
    check(&body, &[[0, 0, 0xffc0_1234], [1, 0xffc0_0000, 5]], |l| if l[0] == 1 { nan } else { l[2] });
    for ty in ["f16", "bf16"] {
        let none = if ty == "f16" { 0x7e01 } else { 0x7fc1 };
        check(&out(&format!("add.{ty} %s0, %i, %j;")), &[[none, 0, 0]], |_| 0x7fff);
    }
}

#[test]
fn integers_from_what_is_no_number() {
    let double = f64::NAN.to_bits();
    let single = u64::from(f32::NAN.to_bits());
    for (body, lane, want) in [
        ("cvt.rzi.s32.f64 %r0, %d;", double, 0x8000_0000),
        ("cvt.rzi.u32.f64 %r0, %d;", double, 0x8000_0000),
        ("cvt.rni.s16.f64 %s0, %d;", double, 0x8000),
        ("cvt.rni.u16.f64 %s0, %d;", double, 0x8000),
        ("cvt.rzi.s32.f32 %r0, %f;", single, 0),
        ("cvt.rzi.u32.f32 %r0, %f;", single, 0),
        ("cvt.rni.u16.f32 %s0, %f;", single, 0),
        ("cvt.rzi.s32.f16 %r0, %i;", 0x7e00, 0),
    ] {
        check(&out(body), &[[lane, 0, 0]], |_| want);
    }
    check("cvt.rzi.s64.f64 %o, %d;", &[[double, 0, 0]], |_| 1 << 63);
    check("cvt.rzi.u64.f32 %o, %f;", &[[single, 0, 0]], |_| 1 << 63);
    check("cvt.rzi.s64.f16 %o, %i;", &[[0x7e00, 0, 0]], |_| 1 << 63);
}

#[test]
fn conversions_saturate_and_are_rounded_once() {
    let big = [[single(1e6), 0, 0], [single(-1e9), 0, 0], [single(f32::INFINITY), 0, 0], [single(f32::NAN), 0, 0]];
    let f16 = [0x7bff, 0xfbff, 0x7bff, 0x7fff];
    for (lane, want) in big.iter().zip(f16) {
        check(&out("cvt.rn.satfinite.f16.f32 %s0, %f;"), &[*lane], |_| want);
    }
    check(&out("cvt.rn.satfinite.bf16.f32 %s0, %f;"), &[[0x7f7f_ffff, 0, 0], [0x7f80_0000, 0, 0]], |_| 0x7f7f);
    check(&out("cvt.rn.bf16.f32 %s0, %f;"), &[[0x7f7f_ffff, 0, 0]], |_| 0x7f80);
    check(&out("cvt.rz.f16x2.f32 %r0, %f, %g;"), &[[single(1e6), single(1.0), 0]], |_| 0x7bff_3c00);
    let pair = [[single(1e6), single(-1e6), 0]];
    check(&out("cvt.rn.satfinite.f16x2.f32 %r0, %f, %g;"), &pair, |_| 0x7bff_fbff);
    check(&out("cvt.rna.satfinite.tf32.f32 %r0, %f;"), &[[0x7f7f_ffff, 0, 0]], |_| 0x7f7f_e000);
    check(&out("cvt.rn.relu.tf32.f32 %r0, %f;"), &[[single(-1.5), 0, 0]], |_| 0);
    check(&out("cvt.rz.tf32.f32 %r0, %f;"), &[[0x3fff_ffff, 0, 0]], |_| 0x3fff_e000);
    // Just above the middle between two neighbours, which a double does not see.
    check(&out("cvt.rn.bf16.s64 %s0, %x;"), &[[(1 << 62) + (1 << 54) + 1, 0, 0]], |_| 0x5e81);
    check(&out("cvt.rn.f32.u64 %v0, %x;"), &[[(1 << 63) + (1 << 39) + 1, 0, 0]], |_| 0x5f00_0001);
    check(&out("cvt.rp.f32.s64 %v0, %x;"), &[[(1 << 62) + 1, 0, 0]], |_| 0x5e80_0001);
    check("cvt.rm.f64.u64 %u0, %x; mov.b64 %o, %u0;", &[[u64::MAX, 0, 0]], |_| 0x43ef_ffff_ffff_ffff);
    let tiny = |v: f32| [bf16(1.0625), bf16(1.0625), bf16(v)];
    let fma = out("fma.rn.bf16 %s0, %i, %j, %l;");
    check(&fma, &[tiny(2f32.powi(-70))], |_| 0x3f91);
    check(&fma, &[tiny(-2f32.powi(-70)), tiny(0.0)], |_| 0x3f90);
}

#[test]
fn two_widths_and_two_numbers_at_a_time() {
    let lanes = [[0x3c01, 0x4200, 0], [0x7bff, 0xbc00, 0], [0x0001, 0x8001, 0]];
    let halves = |l: Lane| l.map(|v| from_f16(v as u16));
    let c = single(1e-5);
    let lanes = lanes.map(|[a, b, _]| [a, b, c]);
    check(&out("add.f32.f16 %v0, %i, %h;"), &lanes, |l| single(halves(l)[0] + 1e-5));
    check(&out("sub.rn.f32.f16 %v0, %i, %h;"), &lanes, |l| single(halves(l)[0] - 1e-5));
    check(&out("fma.rn.f32.f16 %v0, %i, %j, %h;"), &lanes, |l| single(halves(l)[0].mul_add(halves(l)[1], 1e-5)));
    check(&out("add.rz.f32.bf16 %v0, %i, %h;"), &[[0x3f80, 0, 1]], |_| single(1.0));
    check(&out("add.rp.f32.bf16 %v0, %i, %h;"), &[[0x3f80, 0, 1]], |_| single(1.0) + 1);
    let two = |low: f32, high: f32| single(low) | single(high) << 32;
    let pairs = [[two(1.5, -2.0), two(3.0, 1e30), two(0.25, f32::INFINITY)]];
    let parts = |v: u64| [f32::from_bits(v as u32), f32::from_bits((v >> 32) as u32)];
    for (body, f) in [
        ("add.f32x2 %o, %x, %y;", (|a, b, _| a + b) as fn(f32, f32, f32) -> f32),
        ("sub.rn.f32x2 %o, %x, %y;", |a, b, _| a - b),
        ("mul.ftz.f32x2 %o, %x, %y;", |a, b, _| a * b),
        ("fma.rn.f32x2 %o, %x, %y, %z;", f32::mul_add),
    ] {
        check(body, &pairs, |l| {
            let [a, b, c] = l.map(parts);
            two(f(a[0], b[0], c[0]), f(a[1], b[1], c[1]))
        });
    }
    let words = [[0x7fff_0001, 0x0001_ffff, 0], [0x8000_ffff, 0x7fff_8000, 0]];
    let each = |l: Lane, f: fn(i16, i16) -> i16| {
        let one = |shift: u32| u64::from(f((l[0] >> shift) as i16, (l[1] >> shift) as i16) as u16) << shift;
        one(0) | one(16)
    };
    check(&out("add.u16x2 %r0, %a, %b;"), &words, |l| each(l, i16::wrapping_add));
    check(&out("min.s16x2 %r0, %a, %b;"), &words, |l| each(l, i16::min));
    check(&out("max.relu.s16x2 %r0, %a, %b;"), &words, |l| each(l, |a, b| a.max(b).max(0)));
    check(&out("max.s16x2.relu %r0, %a, %b;"), &words, |l| each(l, |a, b| a.max(b).max(0)));
    check(&out("max.u16x2 %r0, %a, %b;"), &words, |l| each(l, |a, b| (a as u16).max(b as u16) as i16));
    check(&out("min.relu.s32 %r0, %a, %b;"), &words, |l| u64::from((l[0] as i32).min(l[1] as i32).max(0) as u32));
    let far = |l: Lane| (l[0] as u32).to_le_bytes().into_iter().zip((l[1] as u32).to_le_bytes());
    check(&out("vabsdiff4.u32.u32.u32.add %r0, %a, %b, %c;"), &[[0x10ff_0280, 0x2000_0380, 7]], |l| {
        7 + far(l).map(|(a, b)| u64::from(a.abs_diff(b))).sum::<u64>()
    });
    check(&out("vabsdiff4.s32.s32.s32 %r0, %a, %b, %c;"), &[[0x10ff_0280, 0x2000_037f, 0]], |_| 0x1001_01ff);
    check(&out("vabsdiff2.u32.u32.u32.add %r0, %a, %b, %c;"), &[[0x0001_ffff, 0xffff_0001, 7]], |_| {
        7 + 0xfffe + 0xfffe
    });
    check(&out("vabsdiff2.s32.s32.s32 %r0, %a, %b, %c;"), &[[0x8000_0001, 0x7fff_ffff, 0]], |_| 0xffff_0002);
    check(&out("lop3.or.b32 %r0|%p1, %a, %b, %c, 0x80, %p2; selp.u32 %r0, 1, 0, %p1;"), &[[7, 4, 6]], |_| 1);
    check(&out("mad.hi.s16 %s0, %i, %j, %l;"), &[[0x8000, 0x7fff, 3]], |_| 0xc003);
    check(&out("mad24.hi.u32 %r0, %a, %b, %c;"), &[[0xffffff, 0xffffff, 1]], |_| 0xffff_fe01);
    // 24 bits with a sign: their product has 48, of which the upper 32 count.
    let signed = |v: u64| i64::from((v as i32) << 8 >> 8);
    let high = |l: Lane| (signed(l[0]) * signed(l[1])) >> 16;
    let clamped = |v: i64| u64::from(v.clamp(i32::MIN.into(), i32::MAX.into()) as i32 as u32);
    let added = [[0x7f_ffff, 0x7f_ffff, 0x7fff_ffff], [0x80_0000, 0x7f_ffff, 0x8000_0000], [0xff12_3456, 0xff, 5]];
    check(&out("mad24.hi.sat.s32 %r0, %a, %b, %c;"), &added, |l| clamped(high(l) + i64::from(l[2] as i32)));
    check(&out("mad24.hi.s32 %r0, %a, %b, %c;"), &added, |l| (high(l) + l[2] as i64) as u64 & 0xffff_ffff);
    check(&out("mad24.lo.s32 %r0, %a, %b, %c;"), &added, |l| {
        (signed(l[0]) * signed(l[1]) + l[2] as i64) as u64 & 0xffff_ffff
    });
    let far = [[0x8000, 0x7fff, 2], [0x7fff, 0x8000, 0xffff], [3, 3, 7], [0xffff, 0, 1]];
    let sad = |l: Lane, sign: fn(u64) -> i64| (l[2] as i64 + (sign(l[0]) - sign(l[1])).abs()) as u64 & 0xffff;
    check(&out("sad.u16 %s0, %i, %j, %l;"), &far, |l| sad(l, |v| v as i64));
    check(&out("sad.s16 %s0, %i, %j, %l;"), &far, |l| sad(l, |v| i64::from(v as i16)));
    let wide = [[i64::MIN as u64, i64::MAX as u64, 7], [5, u64::MAX, 1]];
    check("sad.s32 %r0, %a, %b, %c; cvt.u64.u32 %o, %r0;", &wide, |l| {
        u64::from((l[0] as i32).abs_diff(l[1] as i32).wrapping_add(l[2] as u32))
    });
    check("sad.u64 %o, %x, %y, %z;", &wide, |l| l[0].abs_diff(l[1]).wrapping_add(l[2]));
    check("sad.s64 %o, %x, %y, %z;", &wide, |l| (l[0] as i64).abs_diff(l[1] as i64).wrapping_add(l[2]));
}

/// Halves and their values.
fn half_lanes(ty: &str) -> Vec<(u64, f32)> {
    let value = |bits: u64| if ty == "f16" { from_f16(bits as u16) } else { f32::from_bits((bits as u32) << 16) };
    let infinity = if ty == "f16" { 0x7c00 } else { 0x7f80 };
    [0, 0x8000, 1, 0x8001, 0x3c00, 0xbc00, 0x3c01, infinity, infinity | 0x8000, infinity + 1, 0xffff]
        .map(|bits| (bits, value(bits)))
        .to_vec()
}

#[test]
fn halves_are_compared() {
    type Relation = fn(f32, f32) -> bool;
    let relations: [(&str, Relation); 8] = [
        ("eq", |a, b| a == b),
        ("ne", |a, b| a.partial_cmp(&b).is_some_and(|o| o.is_ne())),
        ("lt", |a, b| a < b),
        ("geu", |a, b| a >= b || a.is_nan() || b.is_nan()),
        ("neu", |a, b| a != b),
        ("gtu", |a, b| a > b || a.is_nan() || b.is_nan()),
        ("num", |a, b| !a.is_nan() && !b.is_nan()),
        ("nan", |a, b| a.is_nan() || b.is_nan()),
    ];
    for ty in ["f16", "bf16"] {
        let values = half_lanes(ty);
        let pairs: Vec<_> = values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))).collect();
        let lanes: Vec<Lane> = pairs.iter().map(|(a, b)| [a.0 | b.0 << 16, b.0 | a.0 << 16, 0]).collect();
        let one = if ty == "f16" { 0x3c00 } else { 0x3f80 };
        for (name, holds) in relations {
            let want = |k: usize, yes: [u64; 2]| {
                let ((_, a), (_, b)) = pairs[k];
                (if holds(a, b) { yes[0] } else { 0 }) | if holds(b, a) { yes[1] } else { 0 }
            };
            for (body, yes) in [
                (format!("setp.{name}.{ty} %p0, %i, %j; selp.u32 %r0, 1, 0, %p0;"), [1, 0]),
                (
                    format!("setp.{name}.{ty}x2 %p0|%p1, %a, %b; selp.u32 %r0, 1, 0, %p0; @%p1 add.u32 %r0, %r0, 2;"),
                    [1, 2],
                ),
                (format!("set.{name}.{ty}x2.{ty}x2 %r0, %a, %b;"), [one, one << 16]),
                (format!("set.{name}.u32.{ty}x2 %r0, %a, %b;"), [0xffff, 0xffff_0000]),
                (format!("set.{name}.u32.{ty} %r0, %i, %j;"), [0xffff_ffff, 0]),
                (format!("set.{name}.{ty}.{ty} %s0, %i, %j;"), [one, 0]),
                (format!("set.{name}.u16.{ty} %s0, %i, %j;"), [0xffff, 0]),
            ] {
                for (k, got) in run(&out(&body), &lanes).into_iter().enumerate() {
                    assert_eq!(got, want(k, yes), "{body} {:x?}", lanes[k]);
                }
            }
        }
    }
    let body = "setp.eq.u32 %p2, 1, 1; setp.lt.and.f16x2 %p0|%p1, %a, %b, !%p2; selp.u32 %r0, 1, 2, %p0;";
    check(&out(body), &[[0, 0x3c00_3c00, 0]], |_| 2);
    // Both results are written by the guard as it was, which is one of them.
    let body = "setp.eq.u32 %p0, 1, 1; setp.eq.u32 %p1, 1, 2; @%p0 setp.lt.f16x2 %p0|%p1, %b, %a;\n\
        selp.u32 %r0, 1, 0, %p0; @%p1 add.u32 %r0, %r0, 2;";
    check(&out(body), &[[0x3c00_0000, 0x0000_3c00, 0]], |_| 2);
}

#[test]
fn the_smaller_of_halves_and_of_three() {
    for ty in ["f16", "bf16"] {
        let values = half_lanes(ty);
        let pairs: Vec<_> = values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))).collect();
        let lanes: Vec<Lane> = pairs.iter().map(|(a, b)| [a.0 | b.0 << 16, b.0 | a.0 << 16, 0]).collect();
        let pick = |a: (u64, f32), b: (u64, f32), min: bool, nan: bool| match (a.1.is_nan(), b.1.is_nan()) {
            (true, true) => 0x7fff,
            (true, false) | (false, true) if nan => 0x7fff,
            (true, false) => b.0,
            (false, true) => a.0,
            _ if a.1 == b.1 => {
                if (a.0 >> 15 == 1) == min {
                    a.0
                } else {
                    b.0
                }
            }
            _ => {
                if (a.1 < b.1) == min {
                    a.0
                } else {
                    b.0
                }
            }
        };
        for (name, min, nan) in
            [("min", true, false), ("max", false, false), ("min.NaN", true, true), ("max.NaN", false, true)]
        {
            let body = out(&format!("{name}.{ty}x2 %r0, %a, %b;"));
            for (k, got) in run(&body, &lanes).into_iter().enumerate() {
                let (a, b) = pairs[k];
                let want = pick(a, b, min, nan) | pick(b, a, min, nan) << 16;
                assert_eq!(got, want, "{body} {:x?}", lanes[k]);
            }
            let body = out(&format!("{name}.{ty} %s0, %i, %j;"));
            for (k, got) in run(&body, &lanes).into_iter().enumerate() {
                assert_eq!(got, pick(pairs[k].0, pairs[k].1, min, nan), "{body} {:x?}", lanes[k]);
            }
        }
    }
    let three = [[single(-2.0), single(1.0), single(0.5)]];
    check(&out("min.f32 %v0, %f, %g, %h;"), &three, |_| single(-2.0));
    check(&out("max.NaN.abs.f32 %v0, %f, %g, %h;"), &three, |_| single(2.0));
    check(&out("max.xorsign.abs.f32 %v0, %f, %g;"), &three, |_| single(-2.0));
    check(&out("min.xorsign.abs.f16 %s0, %i, %j;"), &[[0xc000, 0xbc00, 0]], |_| 0x3c00);
}

#[test]
fn a_warp_finds_its_smallest_number() {
    let lanes: Vec<Lane> = (0..32).map(|l| [single(if l == 7 { -3.5 } else { l as f32 * 0.25 }), 0, 0]).collect();
    check(&out("redux.sync.min.f32 %v0, %f, -1;"), &lanes, |_| single(-3.5));
    check(&out("redux.sync.max.f32 %v0, %f, -1;"), &lanes, |_| single(7.75));
    check(&out("redux.sync.min.abs.f32 %v0, %f, -1;"), &lanes, |_| single(0.0));
    let mut with = lanes.clone();
    with[3][0] = 0xffc0_0000;
    check(&out("redux.sync.min.f32 %v0, %f, -1;"), &with, |_| single(-3.5));
    check(&out("redux.sync.max.NaN.f32 %v0, %f, -1;"), &with, |_| 0x7fff_ffff);
}

/// With `.ftz` numbers that are almost zero are taken and given as zeros of their signs; without it they stay.
#[test]
fn subnormal_numbers_are_zeros_where_ftz_says_so() {
    let (small, least, minus) = (0x0040_0000u64, 0x0080_0000u64, 1 << 31);
    let double = |bits: u32| f64::from(f32::from_bits(bits)).to_bits();
    for (body, lane, flushed, kept) in [
        ("add.ftz.f32 %v0, %f, %g;", [small, 1, 0], 0, small + 1),
        ("sub.ftz.f32 %v0, %f, %g;", [least, 1, 0], least, least - 1),
        ("mul.ftz.f32 %v0, %f, %g;", [least, single(0.5), 0], 0, small),
        ("mul.ftz.f32 %v0, %f, %g;", [small, single(-1.0), 0], minus, small | minus),
        ("mul.rz.ftz.sat.f32 %v0, %f, %g;", [least, single(0.5), 0], 0, small),
        ("fma.rn.ftz.f32 %v0, %f, %g, %h;", [small, single(1.0), 3], 0, small + 3),
        ("div.rn.ftz.f32 %v0, %f, %g;", [least, single(2.0), 0], 0, small),
        (
            "div.rn.ftz.f32 %v0, %f, %g;",
            [single(1.0), 1 | minus, 0],
            single(f32::NEG_INFINITY),
            single(f32::NEG_INFINITY),
        ),
        ("rcp.rn.ftz.f32 %v0, %f;", [small, 0, 0], single(f32::INFINITY), single(2f32.powi(127))),
        ("min.ftz.f32 %v0, %f, %g;", [small, single(1.0), 0], 0, small),
        ("abs.ftz.f32 %v0, %f;", [small | minus, 0, 0], 0, small),
        ("neg.ftz.f32 %v0, %f;", [small, 0, 0], minus, small | minus),
        ("cvt.rn.ftz.f32.f64 %v0, %d;", [double(5), 0, 0], 0, 5),
        ("cvt.rpi.ftz.s32.f32 %r0, %f;", [1, 0, 0], 0, 1),
        ("setp.gt.ftz.f32 %p0, %f, 0f00000000; selp.u32 %r0, 1, 0, %p0;", [1, 0, 0], 0, 1),
        ("set.ne.ftz.u32.f32 %r0, %f, %g;", [1, 2, 0], 0, 0xffff_ffff),
        ("slct.ftz.f32.f32 %v0, %f, %g, %h;", [small, 0, 1 | minus], small, 0),
        ("setp.ne.u32 %p0, %a, %a; mov.b32 %v0, %f; @%p0 add.ftz.f32 %v0, %f, %g;", [small, 1, 0], small, small),
        ("add.ftz.f32 %v0, %f, 0f00000001;", [small, 0, 0], 0, small + 1),
        ("add.ftz.f16 %s0, %i, %j;", [1, 2, 0], 0, 3),
        ("add.ftz.f16x2 %r0, %a, %b;", [0x0001_3c00, 0x8002_0003, 0], 0x0000_3c00, 0x8001_3c00),
    ] {
        check(&out(body), &[lane], |_| flushed);
        check(&out(&body.replace(".ftz", "")), &[lane], |_| kept);
    }
    let two = 2 | 1 << 32 | 1 << 63;
    check("mul.ftz.f32x2 %o, %x, %y;", &[[two, single(1.0) << 32 | single(1.0), 0]], |_| 1 << 63);
}

#[test]
fn unknown_modifiers_are_refused() {
    for body in [
        "add.bogus.u32 %r1, %r1, %r1;",
        "add.rz.u32 %r1, %r1, %r1;",
        "add.sat.u32 %r1, %r1, %r1;",
        "add.u32.u32 %r1, %r1, %r1;",
        "mul.lo.sat.s32 %r1, %r1, %r1;",
        "add.rz.f16 %h1, %h1, %h1;",
        "add.ftz.f32.f16 %r1, %h1, %r1;",
        "cvt.rn.ftz.f16x2.f32 %r1, %r1, %r1;",
        "min.NaN.s32 %r1, %r1, %r1;",
        "setp.lt.sync.u32 %p1, %r1, %r1;",
        "redux.sync.add.f32 %r1, %r1, -1;",
        "shfl.sync.idx.relaxed.b32 %r1, %r1, 0, 31, -1;",
        "cvt.rn.satfinite.f32.f64 %r1, %d1;",
        "cvta.far.global.u64 %d1, %d1;",
        "bra.never $end;",
        "mad24.lo.sat.s32 %r1, %r1, %r1, %r1;",
        "mad24.hi.sat.u32 %r1, %r1, %r1, %r1;",
        "atom.global.min.noftz.f16 %h1, [%d1], %h1;",
        "red.global.v8.f32.add [%d1], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1};",
        "red.global.v2.f32.min [%d1], {%r1, %r1};",
        "mma.sync.aligned.m8n8k4.row.f16.f16.f16.f16 {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%r1, %r1}, {%r1, %r1, %r1, %r1};",
    ] {
        let error = refused(body);
        assert_eq!((error.line, error.column), (8, 17), "{body}: {error}");
    }
}

/// Why a module with this body is refused, or why its kernel cannot run.
fn refused(body: &str) -> PtxError {
    let text = format!(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n.reg .pred %p<4>; .reg .b16 %h<4>;\n\
         .reg .b32 %r<4>; .reg .b64 %d<4>;\nmov.u32 %r1, 0; {body}\n$end: ret;\n}}\n"
    );
    let refused = Module::parse(text.as_bytes()).map(|module| module.kernel("k").unwrap().unsupported.clone());
    refused.unwrap_or_else(Some).unwrap_or_else(|| panic!("{body} is accepted"))
}

#[test]
fn what_the_documentation_says_is_missing_is_refused_by_name() {
    for body in [
        "tex.1d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%d1, {%r1}];",
        "tld4.r.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%d1, {%r1, %r2}];",
        "txq.width.b32 %r1, [%d1];",
        "istypep.texref %p1, %d1;",
        "suld.b.1d.b32.trap %r1, [%d1, {%r1}];",
        "sust.b.1d.b32.trap [%d1, {%r1}], %r1;",
        "sured.b.add.1d.u32.trap [%d1, {%r1}], %r1;",
        "suq.width.b32 %r1, [%d1];",
        "wgmma.fence.sync.aligned;",
        "tcgen05.fence::before_thread_sync;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [%r1], 128;",
        "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%d1, {%r1}], [%r2];",
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%d1, {%r1}], [%r2];",
        "mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [%r1], 1, %r2;",
        "multimem.ld_reduce.weak.global.add.u32 %r1, [%d1];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3];",
        "st.bulk.shared::cta [%r1], %d1, 0;",
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3}, {%r0, %r1}, \
         {%r0, %r1, %r2, %r3};",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1}, {%r0, %r1}, \
         {%r0, %r1, %r2, %r3}, %r1, 0;",
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2];",
        "cvt.rn.satfinite.e2m1x2.f32 %h1, %r1, %r2;",
        "cvt.rs.f16x2.f32 %r0, %r1, %r2, %r3;",
        "vadd.s32.s32.s32 %r0, %r1, %r2;",
        "vset2.u32.u32.eq %r0, %r1, %r2, %r3;",
        "fma.rn.oob.f16 %h1, %h1, %h1, %h1;",
    ] {
        let error = refused(body);
        assert!(error.unsupported.is_some_and(|name| body.starts_with(&name)), "{body}");
    }
    let narrow = Module::parse(b".version 8.0\n.target sm_75\n.address_size 32\n").unwrap_err();
    assert_eq!((narrow.line, narrow.unsupported.as_deref()), (3, Some(".address_size 32")));
}
