//! 16-bit floats: every sum, difference, product and fused product rounded once, against whole numbers that hold it
//! exactly; their atomics, and those of double precision in shared memory.

use crate::common::{Device, Params, Random};
use sluice_softgpu::Module;

/// Bits of exponent and of fraction.
#[derive(Clone, Copy)]
struct Format {
    name: &'static str,
    exponent: u32,
    fraction: u32,
}

const F16: Format = Format { name: "f16", exponent: 5, fraction: 10 };
const BF16: Format = Format { name: "bf16", exponent: 8, fraction: 7 };
const NAN: u16 = 0x7fff;

/// A finite number: `mantissa` times two to the power of `exponent`.
#[derive(Clone, Copy)]
struct Number {
    negative: bool,
    mantissa: u128,
    exponent: i32,
}

impl Format {
    fn infinity(self) -> u16 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    fn one(self) -> u16 {
        ((1 << (self.exponent - 1)) - 1) << self.fraction
    }

    /// The exponent of the last bit of the smallest numbers.
    fn least(self) -> i32 {
        2 - (1 << (self.exponent - 1)) - self.fraction as i32
    }

    fn is_nan(self, bits: u16) -> bool {
        bits & 0x7fff > self.infinity()
    }

    fn is_infinite(self, bits: u16) -> bool {
        bits & 0x7fff == self.infinity()
    }

    fn number(self, bits: u16) -> Number {
        let (field, fraction) = (bits >> self.fraction & ((1 << self.exponent) - 1), bits & ((1 << self.fraction) - 1));
        let mantissa = u128::from(fraction) | u128::from(field != 0) << self.fraction;
        Number { negative: bits >> 15 == 1, mantissa, exponent: self.least() + i32::from(field.max(1)) - 1 }
    }

    /// The nearest number of the format, of two the even one.
    fn round(self, n: Number) -> u16 {
        let sign = u16::from(n.negative) << 15;
        if n.mantissa == 0 {
            return sign;
        }
        let top = n.mantissa.ilog2() as i32 + n.exponent;
        let last = (top - self.fraction as i32).max(self.least());
        let drop = last - n.exponent;
        let kept = if drop <= 0 {
            n.mantissa << -drop
        } else if drop > 127 {
            0
        } else {
            let (kept, rest, half) = (n.mantissa >> drop, n.mantissa & ((1 << drop) - 1), 1 << (drop - 1));
            kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
        };
        let field = (last - self.least()) as u128;
        // A leading bit raises the exponent by one: of subnormal numbers it is missing.
        let magnitude = kept + (field << self.fraction);
        sign | magnitude.min(self.infinity().into()) as u16
    }

    /// `a` times `b`, plus `c`.
    fn fused(self, a: u16, b: u16, c: u16) -> u16 {
        let sign = (a ^ b) & 0x8000;
        let zero = |v: u16| v & 0x7fff == 0;
        let product_infinite = self.is_infinite(a) || self.is_infinite(b);
        if [a, b, c].iter().any(|v| self.is_nan(*v)) || (product_infinite && (zero(a) || zero(b))) {
            return NAN;
        }
        match (product_infinite, self.is_infinite(c)) {
            (true, true) if sign != c & 0x8000 => return NAN,
            (true, _) => return sign | self.infinity(),
            (_, true) => return c,
            _ => {}
        }
        let (x, y, z) = (self.number(a), self.number(b), self.number(c));
        let product =
            Number { negative: sign != 0, mantissa: x.mantissa * y.mantissa, exponent: x.exponent + y.exponent };
        self.round(sum(product, z))
    }

    fn compute(self, op: &str, [a, b, c]: [u16; 3]) -> u16 {
        match op {
            "add" => self.fused(a, self.one(), b),
            "sub" => self.fused(a, self.one(), if self.is_nan(b) { b } else { b ^ 0x8000 }),
            // The zero that does not change the sign of another.
            "mul" => self.fused(a, b, (a ^ b) & 0x8000),
            _ => self.fused(a, b, c),
        }
    }
}

/// The exact sum; of numbers that lie too far apart for that, one that is rounded as it would be.
fn sum(a: Number, b: Number) -> Number {
    let (high, low) = match (a.mantissa, b.mantissa) {
        (0, 0) => return Number { negative: a.negative && b.negative, ..a },
        (0, _) => return b,
        (_, 0) => return a,
        _ if a.exponent >= b.exponent => (a, b),
        _ => (b, a),
    };
    // Mantissas have 22 bits at most. 90 more hold every overlap; beyond, the lower one is a trace.
    let apart = high.exponent - low.exponent;
    let (high, low) = if apart <= 90 {
        (Number { mantissa: high.mantissa << apart, exponent: low.exponent, ..high }, low)
    } else {
        let exponent = high.exponent - 90;
        (Number { mantissa: high.mantissa << 90, exponent, ..high }, Number { mantissa: 1, exponent, ..low })
    };
    let signed = |n: Number| if n.negative { -(n.mantissa as i128) } else { n.mantissa as i128 };
    let total = signed(high) + signed(low);
    Number { negative: total < 0, mantissa: total.unsigned_abs(), exponent: low.exponent }
}

/// Between 0 and 1; what is no number becomes 0.
fn saturated(f: Format, bits: u16) -> u16 {
    if f.is_nan(bits) || bits >> 15 == 1 { 0 } else { bits.min(f.one()) }
}

/// Operands: each of the 65,536 numbers with others that are special, near it, of its size, or any.
fn operands(f: Format, seed: u64) -> Vec<[u16; 3]> {
    let (infinity, one, last) = (f.infinity(), f.one(), 1u16 << f.fraction);
    let special =
        [0, 1, 2, last - 1, last, last + 1, one - 1, one, one + 1, one + last, infinity - 1, infinity, infinity + 1];
    let mut r = Random::new(seed);
    let mut any = move || (r.bits() >> 16) as u16;
    let mut out = Vec::new();
    for a in 0..=u16::MAX {
        let sign = any() & 0x8000;
        let near = a ^ 0x8000 ^ (any() & 7);
        let alike = a & infinity | any() & (last - 1) | sign;
        // Some exponents away, where a last bit is decided.
        let away =
            ((a & 0x7fff).wrapping_sub((any() % (f.fraction as u16 + 6)) << f.fraction) & 0x7fff) ^ (any() & 3) | sign;
        let factor = one | any() & (last - 1) | sign;
        let chosen = special[any() as usize % special.len()] | sign;
        out.push([
            a,
            [near, alike, away, chosen, any()][any() as usize % 5],
            [near, away, chosen, any()][any() as usize % 4],
        ]);
        out.push([a, factor, [near, away, alike][any() as usize % 3]]);
    }
    out
}

/// Runs `body` for each triple in %a, %b, %c (low halves %i, %j, %l); gives %o.
fn run(body: &str, triples: &[[u32; 3]]) -> Vec<u32> {
    let text = format!(
        ".version 9.0\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .b16 %i, %j, %l, %h<4>; .reg .b32 %a, %b, %c, %o, %t, %r<4>; .reg .b64 %x, %y, %w;\n\
         ld.param.u64 %x, [in]; ld.param.u64 %y, [out]; mov.u32 %t, %ctaid.x; mov.u32 %r0, %tid.x;\n\
         mad.lo.u32 %t, %t, 128, %r0; mad.wide.u32 %x, %t, 12, %x; mad.wide.u32 %y, %t, 4, %y;\n\
         ld.global.u32 %a, [%x]; ld.global.u32 %b, [%x+4]; ld.global.u32 %c, [%x+8];\n\
         cvt.u16.u32 %i, %a; cvt.u16.u32 %j, %b; cvt.u16.u32 %l, %c; mov.u32 %o, 0;\n{body}\n\
         st.global.u32 [%y], %o;\nret;\n}}\n"
    );
    let d = Device::new(1);
    let m = d.load(&text);
    assert_eq!(m.kernel("k").unwrap().unsupported, None, "{body}");
    assert!(triples.len().is_multiple_of(128));
    let flat: Vec<u32> = triples.iter().flatten().copied().collect();
    let (input, output) = (d.upload(&flat), d.alloc(4 * triples.len() as u64));
    let blocks = (triples.len() / 128) as u32;
    d.launch(&m, "k", [blocks, 1, 1], [128, 1, 1], &Params::new().u64(input).u64(output)).unwrap();
    d.download(output, triples.len())
}

const OPERATIONS: [&str; 4] = ["add", "sub", "mul", "fma"];

#[test]
fn the_exact_computation_knows_what_is_known() {
    for (f, ops, want) in [
        (F16, ("add", [0x3c00, 0x1000, 0]), 0x3c00),
        (F16, ("add", [0x3c01, 0x1000, 0]), 0x3c02),
        (F16, ("add", [0x3c00, 0x1001, 0]), 0x3c01),
        (F16, ("sub", [0x3c00, 0x3c00, 0]), 0),
        (F16, ("add", [0x8000, 0x8000, 0]), 0x8000),
        (F16, ("mul", [0x0001, 0x3800, 0]), 0),
        (F16, ("mul", [0x0003, 0xb800, 0]), 0x8002),
        (F16, ("mul", [0x7bff, 0x4000, 0]), 0x7c00),
        (F16, ("mul", [0x7c00, 0, 0]), NAN),
        (F16, ("fma", [0x3c01, 0x3c01, 0xbc02]), 0x0010),
        (F16, ("add", [0x7bff, 0x4c00, 0]), 0x7c00),
        (F16, ("add", [0x7bff, 0x4bff, 0]), 0x7bff),
        (BF16, ("add", [0x3f80, 0x3b80, 0]), 0x3f80),
        (BF16, ("add", [0x3f81, 0x3b80, 0]), 0x3f82),
        (BF16, ("fma", [0x7f7f, 0x7f7f, 0xff7f]), 0x7f80),
        (BF16, ("fma", [0x3f80, 0x3b80, 0x0001]), 0x3b80),
        (BF16, ("fma", [0x3f81, 0x3f81, 0x0001]), 0x3f82),
    ] {
        assert_eq!(f.compute(ops.0, ops.1), want, "{} {ops:x?}", f.name);
    }
}

#[test]
fn halves_are_rounded_once() {
    for (f, seed) in [(F16, 11), (BF16, 12)] {
        let cases = operands(f, seed);
        // The upper halves are those of another triple.
        let other = |at: usize| cases[(at * 7919 + 13) % cases.len()];
        let triples: Vec<[u32; 3]> = (0..cases.len())
            .map(|at| [0, 1, 2].map(|k| u32::from(cases[at][k]) | u32::from(other(at)[k]) << 16))
            .collect();
        for op in OPERATIONS {
            let modifier = if op == "fma" { ".rn" } else { "" };
            for saturate in [false, true] {
                // Only f16 has it.
                if saturate && f.name == "bf16" {
                    continue;
                }
                let sat = if saturate { ".sat" } else { "" };
                let want = |triple: [u16; 3]| {
                    let exact = f.compute(op, triple);
                    if saturate { saturated(f, exact) } else { exact }
                };
                let last = |names: [&str; 3]| names[..if op == "fma" { 3 } else { 2 }].join(", ");
                let scalar =
                    format!("{op}{modifier}{sat}.{} %h0, {}; cvt.u32.u16 %o, %h0;", f.name, last(["%i", "%j", "%l"]));
                for (at, got) in run(&scalar, &triples).into_iter().enumerate() {
                    assert_eq!(got, want(cases[at]).into(), "{scalar} {:x?}", cases[at]);
                }
                let pair = format!("{op}{modifier}{sat}.{}x2 %o, {};", f.name, last(["%a", "%b", "%c"]));
                for (at, got) in run(&pair, &triples).into_iter().enumerate() {
                    let want = u32::from(want(cases[at])) | u32::from(want(other(at))) << 16;
                    assert_eq!(got, want, "{pair} {:x?} {:x?}", cases[at], other(at));
                }
            }
        }
    }
}

#[test]
fn bf16_does_not_saturate() {
    for line in ["add.sat.bf16 %h1, %h1, %h1;", "fma.rn.sat.bf16x2 %r1, %r1, %r1, %r1;", "mul.sat.bf16 %h1, %h1, %h1;"]
    {
        let text = format!(
            ".version 9.0\n.target sm_120\n.address_size 64\n.entry k()\n{{\n.reg .b16 %h<2>; .reg .b32 %r<2>;\n{line}\nret;\n}}\n"
        );
        let module = Module::parse(text.as_bytes()).unwrap();
        let error = module.kernel("k").unwrap().unsupported.clone();
        assert_eq!(error.map(|e| e.line), Some(7), "{line}");
    }
}

#[test]
fn atomics_of_halves_are_rounded_once() {
    for (f, seed) in [(F16, 21), (BF16, 22)] {
        let cases: Vec<_> = operands(f, seed).into_iter().step_by(8).collect();
        let triples: Vec<[u32; 3]> = cases
            .iter()
            .map(|c| [u32::from(c[0]) | u32::from(c[1]) << 16, u32::from(c[1]) | u32::from(c[0]) << 16, 0])
            .collect();
        let (first, both) = (|c: [u16; 3]| f.compute("add", c), |c: [u16; 3]| f.compute("add", [c[1], c[0], 0]));
        let shared =
            "{ .shared .align 4 .b8 s[512]; mov.u32 %r2, s; mad.lo.u32 %r2, %r0, 4, %r2; st.shared.u32 [%r2], %a;\n";
        for (body, old) in [
            // The old value and the new one, alone and with its neighbour.
            (
                format!(
                    "st.global.u32 [%x], %a; atom.global.add.noftz.{} %h0, [%x], %j; ld.global.u32 %o, [%x];",
                    f.name
                ),
                false,
            ),
            (format!("st.global.u32 [%x], %a; atom.add.noftz.{} %h0, [%x], %j; cvt.u32.u16 %o, %h0;", f.name), true),
            (
                format!(
                    "st.global.u32 [%x], %a; red.relaxed.gpu.global.add.noftz.{} [%x], %j; ld.global.u32 %o, [%x];",
                    f.name
                ),
                false,
            ),
            (format!("{shared} atom.shared.add.noftz.{} %h0, [%r2], %j; ld.shared.u32 %o, [%r2]; }}", f.name), false),
        ] {
            for (at, got) in run(&body, &triples).into_iter().enumerate() {
                let c = cases[at];
                let want = if old { c[0].into() } else { u32::from(first(c)) | u32::from(c[1]) << 16 };
                assert_eq!(got, want, "{body} {c:x?}");
            }
        }
        for (body, old) in [
            (
                format!(
                    "st.global.u32 [%x], %a; atom.global.add.noftz.{}x2 %r1, [%x], %b; ld.global.u32 %o, [%x];",
                    f.name
                ),
                false,
            ),
            (format!("st.global.u32 [%x], %a; atom.global.add.noftz.{}x2 %o, [%x], %b;", f.name), true),
            (format!("{shared} red.shared.add.noftz.{}x2 [%r2], %b; ld.shared.u32 %o, [%r2]; }}", f.name), false),
        ] {
            for (at, got) in run(&body, &triples).into_iter().enumerate() {
                let c = cases[at];
                let want = if old { triples[at][0] } else { u32::from(first(c)) | u32::from(both(c)) << 16 };
                assert_eq!(got, want, "{body} {c:x?}");
            }
        }
    }
}

#[test]
fn many_threads_add_to_one_half() {
    // 1024 threads in blocks on two host threads add one to the upper of two halves; the lower keeps its bits.
    for (name, counted, one) in [("f16", 1024u32, 0x3c00), ("bf16", 256, 0x3f80)] {
        for (instruction, want) in [
            (format!("atom.global.add.noftz.{name} %h0, [%d0+2], %h1;"), [0, 1]),
            (format!("red.global.add.noftz.{name}x2 [%d0], %r0;"), [1, 1]),
        ] {
            let text = format!(
                ".version 9.0\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
                 .reg .b16 %h<2>; .reg .b32 %r<2>; .reg .b64 %d<2>;\nld.param.u64 %d0, [p]; mov.b16 %h1, {one};\n\
                 mov.b32 %r0, {{%h1, %h1}}; {instruction} ret;\n}}\n"
            );
            let d = Device::new(2);
            let m = d.load(&text);
            let at = d.alloc(4);
            d.launch(&m, "k", [counted / 64, 1, 1], [64, 1, 1], &Params::new().u64(at)).unwrap();
            let sum = if name == "f16" { 0x6400 } else { 0x4380 };
            assert_eq!(d.download::<u16>(at, 2), want.map(|times| times * sum), "{instruction}");
        }
    }
}

#[test]
fn doubles_are_added_in_shared_memory() {
    // Thread t of 128 adds t + t/1024 to one of two sums, and finds what was there before.
    for atomic in [
        "atom.shared.add.f64 %e1, [%r2], %e0;",
        "atom.shared::cta.relaxed.cta.add.f64 %e1, [%r2], %e0;",
        "red.shared.add.f64 [%r2], %e0;",
        "atom.add.f64 %e1, [%d2], %e0;",
    ] {
        let text = format!(
            ".version 9.0\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .f64 %e<4>; .shared .align 8 .b8 s[16];\n\
             ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 1; mov.u32 %r2, s;\n\
             mad.lo.u32 %r2, %r1, 8, %r2; cvt.u64.u32 %d2, %r2; cvta.shared.u64 %d2, %d2;\n\
             setp.lt.u32 %p, %r0, 2; mov.f64 %e2, 0d4090000000000000; @%p st.shared.f64 [%r2], %e2; bar.sync 0;\n\
             cvt.rn.f64.u32 %e0, %r0; div.rn.f64 %e3, %e0, %e2; add.f64 %e0, %e0, %e3; mov.f64 %e1, %e2;\n\
             {atomic} bar.sync 0; ld.shared.f64 %e3, [%r2]; mad.wide.u32 %d1, %r0, 16, %d0;\n\
             st.global.v2.f64 [%d1], {{%e3, %e1}};\nret;\n}}\n"
        );
        let d = Device::new(1);
        let m = d.load(&text);
        let at = d.alloc(128 * 16);
        d.launch(&m, "k", [1; 3], [128, 1, 1], &Params::new().u64(at)).unwrap();
        let out: Vec<f64> = d.download(at, 256);
        let part = |t: usize| t as f64 * (1.0 + 1.0 / 1024.0);
        for t in 0..128 {
            let want = 1024.0 + (t % 2..128).step_by(2).map(part).sum::<f64>();
            assert_eq!(out[2 * t], want, "{atomic}");
        }
        if atomic.starts_with("atom") {
            // Each old value and what was added to it is the next old value, or the sum.
            for half in 0..2 {
                let mut olds: Vec<_> = (half..128).step_by(2).map(|t| (out[2 * t + 1], part(t))).collect();
                olds.sort_by(|a, b| a.partial_cmp(b).unwrap());
                let mut reached = 1024.0;
                // Thread 0 adds nothing.
                for (old, added) in olds {
                    assert_eq!(old, reached, "{atomic}");
                    reached = old + added;
                }
                assert_eq!(reached, out[2 * half]);
            }
        }
    }
}
