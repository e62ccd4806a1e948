//! `wmma`: each shape, type and layout against a product by hand.

use crate::common::{Device, Params, Random};
use sluice_softgpu::half::{to_bf16, to_f16};

/// Columns between two rows beyond those that the matrix has (rows, where it lies by columns).
const GAP: usize = 16;

/// A type of factors: its name, bytes, registers that hold 16 times 16 of it (f16 has eight whatever the shape),
/// and the bits of a small integer.
struct Factor {
    name: &'static str,
    bytes: usize,
    bits: fn(i32) -> u32,
    /// The least and the largest integer to try.
    range: [i32; 2],
}

const FACTORS: [Factor; 5] = [
    Factor { name: "f16", bytes: 2, bits: |v| to_f16(f64::from(v)).into(), range: [-9, 9] },
    Factor { name: "bf16", bytes: 2, bits: |v| to_bf16(f64::from(v)).into(), range: [-9, 9] },
    Factor { name: "tf32", bytes: 4, bits: |v| (v as f32).to_bits(), range: [-9, 9] },
    Factor { name: "s8", bytes: 1, bits: |v| v as u8 as u32, range: [-128, 127] },
    Factor { name: "u8", bytes: 1, bits: |v| v as u8 as u32, range: [0, 255] },
];

/// A matrix in memory: its values in rows, and how it lies.
struct Matrix {
    values: Vec<i32>,
    rows: usize,
    columns: usize,
    by_column: bool,
}

impl Matrix {
    fn random(r: &mut Random, [rows, columns]: [usize; 2], [least, most]: [i32; 2], by_column: bool) -> Matrix {
        let span = (most - least + 1) as u64;
        let values = (0..rows * columns).map(|_| least + ((r.bits() >> 20) % span) as i32).collect();
        Matrix { values, rows, columns, by_column }
    }

    fn stride(&self) -> usize {
        GAP + if self.by_column { self.rows } else { self.columns }
    }

    fn lines(&self) -> usize {
        if self.by_column { self.columns } else { self.rows }
    }

    fn place(&self, row: usize, column: usize) -> usize {
        if self.by_column { column * self.stride() + row } else { row * self.stride() + column }
    }

    fn layout(&self) -> &'static str {
        if self.by_column { "col" } else { "row" }
    }

    /// The bytes, and between the lines what nobody may read or write.
    fn bytes(&self, bytes: usize, bits: impl Fn(i32) -> u32) -> Vec<u8> {
        let mut out = vec![0x7f; self.lines() * self.stride() * bytes];
        for (at, value) in self.values.iter().enumerate() {
            let place = self.place(at / self.columns, at % self.columns) * bytes;
            out[place..place + bytes].copy_from_slice(&bits(*value).to_le_bytes()[..bytes]);
        }
        out
    }
}

fn list(name: &str, count: usize) -> String {
    format!("{{{}}}", (0..count).map(|i| format!("%{name}{i}")).collect::<Vec<_>>().join(", "))
}

/// One product, `[a, b, c, d]` by columns or not, sums of type `[d, c]`, from and to shared memory or global; with sums
/// that pass the largest integer, and whether they are to end there.
fn product(
    factor: &Factor,
    [m, n, k]: [usize; 3],
    by_column: [bool; 4],
    [td, tc]: [&str; 2],
    shared: bool,
    large: Option<bool>,
) {
    let mut r = Random::new((m * 64 + n) as u64);
    let a = Matrix::random(&mut r, [m, k], factor.range, by_column[0]);
    let b = Matrix::random(&mut r, [k, n], factor.range, by_column[1]);
    let saturate = large == Some(true);
    let sums = if large.is_some() { [i32::MAX - 200_000, i32::MAX - 1000] } else { [-50, 50] };
    let c = Matrix::random(&mut r, [m, n], sums, by_column[2]);
    let d = Matrix { values: Vec::new(), rows: m, columns: n, by_column: by_column[3] };

    let registers = |rows: usize, columns: usize| match factor.name {
        "f16" => 8,
        _ => rows * columns * factor.bytes / 4 / 32,
    };
    let sum_registers = |ty: &str| if ty == "f16" { 4 } else { 8 };
    let sum_bytes = |ty: &str| if ty == "f16" { 2 } else { 4 };
    let sum_bits = |ty: &str, v: i32| match ty {
        "f16" => to_f16(f64::from(v)).into(),
        "f32" => (v as f32).to_bits(),
        _ => v as u32,
    };
    let (x, y) = (list("a", registers(m, k)), list("b", registers(k, n)));
    let (z, w) = (list("c", sum_registers(tc)), list("d", sum_registers(td)));
    let (shape, ty, space) = (format!("m{m}n{n}k{k}"), factor.name, if shared { "shared" } else { "global" });
    let types = match ty {
        "f16" => format!("{td}.{tc}"),
        _ => format!("{td}.{ty}.{ty}.{tc}"),
    };
    let most = if saturate { ".satfinite" } else { "" };
    let parts = [
        a.bytes(factor.bytes, factor.bits),
        b.bytes(factor.bytes, factor.bits),
        c.bytes(sum_bytes(tc), |v| sum_bits(tc, v)),
    ];
    let size = d.lines() * d.stride() * sum_bytes(td);
    let untouched = vec![0x5a; size];
    let all: Vec<u8> = parts.iter().flatten().copied().chain(untouched.iter().copied()).collect();
    let starts = [0, parts[0].len(), parts[0].len() + parts[1].len(), all.len() - size];
    // For shared memory everything is copied there and back by one thread after the other.
    let copy = |from: &str, to: &str, source: &str, target: &str, name: &str| {
        format!(
            "mov.u64 %e, 0;\n{name}: add.u64 %g, {from}, %e; add.u64 %h, {to}, %e; ld.{source}.u16 %s, [%g];\n\
             st.{target}.u16 [%h], %s; add.u64 %e, %e, 2; setp.lt.u64 %p, %e, {}; @%p bra {name}; bar.sync 0;\n",
            all.len()
        )
    };
    let (base, before, after) = if shared {
        ("%m", copy("%i", "%m", "global", "shared", "in"), copy("%m", "%i", "shared", "global", "back"))
    } else {
        ("%i", String::new(), String::new())
    };
    let text = format!(
        ".version 9.0\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .b32 %a<8>, %b<8>, %c<8>, %d<8>, %l<4>; .reg .b64 %i, %m, %e, %g, %h; .reg .pred %p; .reg .b16 %s;\n\
         .shared .align 32 .b8 tile[{}];\nld.param.u64 %i, [p]; mov.u64 %m, tile;\n{before}\
         mov.u32 %l0, {}; mov.u32 %l1, {}; mov.u32 %l2, {}; mov.u32 %l3, {};\n\
         wmma.load.a.sync.aligned.{la}.{shape}.{space}.{ty} {x}, [{base}+{}], %l0;\n\
         wmma.load.b.sync.aligned.{lb}.{shape}.{space}.{ty} {y}, [{base}+{}], %l1;\n\
         wmma.load.c.sync.aligned.{lc}.{shape}.{space}.{tc} {z}, [{base}+{}], %l2;\n\
         wmma.mma.sync.aligned.{la}.{lb}.{shape}.{types}{most} {w}, {x}, {y}, {z};\n\
         wmma.store.d.sync.aligned.{ld}.{shape}.{space}.{td} [{base}+{}], {w}, %l3;\n{after}ret;\n}}\n",
        all.len(),
        a.stride(),
        b.stride(),
        c.stride(),
        d.stride(),
        starts[0],
        starts[1],
        starts[2],
        starts[3],
        la = a.layout(),
        lb = b.layout(),
        lc = c.layout(),
        ld = d.layout(),
    );
    let device = Device::new(1);
    let module = device.load(&text);
    assert_eq!(module.kernel("k").unwrap().unsupported, None, "{text}");
    let at = device.upload(&all);
    device.launch(&module, "k", [1; 3], [32, 1, 1], &Params::new().u64(at)).unwrap();
    let got: Vec<u8> = device.download(at, all.len());
    assert_eq!(got[..starts[3]], all[..starts[3]], "the factors were changed by\n{text}");

    let mut want = untouched;
    for row in 0..m {
        for column in 0..n {
            let terms = (0..k).map(|e| i64::from(a.values[row * k + e]) * i64::from(b.values[e * n + column]));
            let sum = terms.sum::<i64>() + i64::from(c.values[row * n + column]);
            let sum = if saturate { sum.min(i32::MAX.into()) } else { sum };
            let place = d.place(row, column) * sum_bytes(td);
            let bits = sum_bits(td, sum as i32).to_le_bytes();
            want[place..place + sum_bytes(td)].copy_from_slice(&bits[..sum_bytes(td)]);
        }
    }
    if let Some(wrong) = (0..size).find(|at| got[starts[3] + at] != want[*at]) {
        let element = wrong / sum_bytes(td);
        let (line, place) = (element / d.stride(), element % d.stride());
        panic!("line {line}, place {place} of the result is wrong in\n{text}");
    }
}

const SHAPES: [[usize; 3]; 3] = [[16, 16, 16], [32, 8, 16], [8, 32, 16]];

#[test]
fn every_type_shape_and_layout() {
    for factor in &FACTORS {
        let shapes = if factor.name == "tf32" { &[[16, 16, 8]][..] } else { &SHAPES };
        let sums: &[[&str; 2]] = match factor.name {
            "f16" => &[["f32", "f32"], ["f16", "f16"], ["f32", "f16"], ["f16", "f32"]],
            "s8" | "u8" => &[["s32", "s32"]],
            _ => &[["f32", "f32"]],
        };
        for shape in shapes {
            for sum in sums {
                for layouts in 0..16 {
                    let by_column = [0, 1, 2, 3].map(|bit| layouts >> bit & 1 == 1);
                    product(factor, *shape, by_column, *sum, layouts % 5 == 2, None);
                }
            }
        }
    }
}

#[test]
fn sums_of_integers_end_at_the_largest_or_wrap() {
    for factor in &FACTORS[3..] {
        for shape in SHAPES {
            for saturate in [false, true] {
                product(factor, shape, [false, true, false, false], ["s32", "s32"], false, Some(saturate));
            }
        }
    }
}

#[test]
fn tf32_has_ten_bits_of_fraction() {
    let fractions = [1.0f32 + 1.0 / 1024.0, 1.0 + 1.0 / 1024.0 + 1.0 / 4096.0];
    let text = ".version 9.0\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n\
        .reg .b32 %a<4>, %b<4>, %c<8>, %h<8>; .reg .b64 %i; .reg .f32 %f;\nld.param.u64 %i, [p];\n\
        wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {%a0, %a1, %a2, %a3}, [%i], 8;\n\
        wmma.load.b.sync.aligned.col.m16n16k8.global.tf32 {%b0, %b1, %b2, %b3}, [%i+512], 8;\n\
        wmma.load.c.sync.aligned.row.m16n16k8.global.f32 {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}, [%i+1024], 16;\n\
        wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32 {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}, \
        {%a0, %a1, %a2, %a3}, {%b0, %b1, %b2, %b3}, {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7};\n\
        wmma.store.d.sync.aligned.row.m16n16k8.global.f32 [%i+1024], {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}, 16;\nret;\n}\n";
    let d = Device::new(1);
    let m = d.load(text);
    // a is the identity, so that each element of b comes out as it was read.
    let mut data = vec![0f32; 512];
    for k in 0..8 {
        data[k * 8 + k] = 1.0;
        data[128 + k] = fractions[k % 2];
    }
    let at = d.upload(&data);
    d.launch(&m, "k", [1; 3], [32, 1, 1], &Params::new().u64(at)).unwrap();
    let got: Vec<f32> = d.download(at + 1024, 256);
    assert!((0..8).all(|k| got[k * 16] == fractions[0]), "{:?}", (0..8).map(|k| got[k * 16]).collect::<Vec<_>>());
}
