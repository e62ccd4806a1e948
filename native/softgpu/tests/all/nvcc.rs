//! Kernels that nvcc compiled from samples.cu and lines.cu.

use crate::common::{Device, Params, Random, ptx};
use sluice_softgpu::{Fault, LoadedModule, Module};

fn samples(threads: usize) -> (Device, LoadedModule) {
    let d = Device::new(threads);
    let m = d.load(&ptx("samples"));
    (d, m)
}

#[test]
fn the_largest_block_of_a_kernel_fits_its_registers() {
    let (d, _m) = samples(1);
    for (threads, registers) in [(64, 255), (384, 168), (512, 128), (1024, 64)] {
        let m = d.load(&format!(
            ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry k()\n.maxntid {threads}, 1, 1\n\
             {{\n.reg .b32 %r<400>;\nret;\n}}\n"
        ));
        assert_eq!(m.kernel("k").unwrap().registers, registers, "{threads} threads");
    }
}

#[test]
fn kernels_are_described() {
    let (_d, m) = samples(1);
    let saxpy = m.kernel("saxpy").unwrap();
    let layout: Vec<(u32, u32)> = saxpy.params.iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(layout, [(0, 4), (4, 4), (8, 8), (16, 8)]);
    assert_eq!(saxpy.param_bytes, 24);
    assert_eq!(saxpy.target, "sm_75");
    // The architecture, not the version of the language, which is 8 or 9.
    assert_eq!(saxpy.ptx_version, 75);
    assert_eq!(saxpy.unsupported, None);
    assert_eq!(m.kernel("matmul").unwrap().shared_bytes, 2048);
    assert_eq!(m.kernel("check").unwrap().local_bytes, 24);
    assert!(m.kernel("twice").is_none());
    for kernel in m.module().kernels() {
        assert_eq!(kernel.unsupported, None, "{}", kernel.name);
    }
}

#[test]
fn saxpy() {
    let (d, m) = samples(2);
    let n = 10_000;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..n).map(|i| (n - i) as f32).collect();
    let (px, py) = (d.upload(&x), d.upload(&y));
    let p = Params::new().u32(n).f32(2.0).u64(px).u64(py);
    d.launch(&m, "saxpy", [n.div_ceil(256), 1, 1], [256, 1, 1], &p).unwrap();
    let out: Vec<f32> = d.download(py, n as usize);
    assert!((0..n as usize).all(|i| out[i] == 2.0 * x[i] + y[i]));
}

#[test]
fn matmul() {
    let (d, m) = samples(2);
    let n = 64usize;
    let mut r = Random::new(11);
    let a: Vec<f32> = (0..n * n).map(|_| r.unit() as f32).collect();
    let b: Vec<f32> = (0..n * n).map(|_| r.unit() as f32).collect();
    let (pa, pb, pc) = (d.upload(&a), d.upload(&b), d.alloc(4 * (n * n) as u64));
    let p = Params::new().u64(pa).u64(pb).u64(pc).u32(n as u32);
    d.launch(&m, "matmul", [4, 4, 1], [16, 16, 1], &p).unwrap();
    let c: Vec<f32> = d.download(pc, n * n);
    for y in 0..n {
        for x in 0..n {
            let want = (0..n).fold(0f32, |s, k| a[y * n + k].mul_add(b[k * n + x], s));
            assert_eq!(c[y * n + x], want);
        }
    }
}

#[test]
fn softmax_with_dynamic_shared_memory() {
    let (d, m) = samples(2);
    let (rows, columns) = (5usize, 300usize);
    let mut r = Random::new(13);
    let x: Vec<f32> = (0..rows * columns).map(|_| (r.unit() * 10.0) as f32).collect();
    let (px, py) = (d.upload(&x), d.alloc(4 * x.len() as u64));
    let p = Params::new().u64(px).u64(py).u32(columns as u32);
    d.launch_with(&m, "softmax", [rows as u32, 1, 1], [128, 1, 1], &p, 512, false).unwrap();
    let y: Vec<f32> = d.download(py, x.len());
    for (x, y) in x.chunks(columns).zip(y.chunks(columns)) {
        let top = x.iter().copied().fold(f32::MIN, f32::max);
        let sum: f64 = x.iter().map(|v| f64::from(v - top).exp()).sum();
        for (x, y) in x.iter().zip(y) {
            assert!((f64::from(*y) - f64::from(x - top).exp() / sum).abs() < 1e-6);
        }
    }
}

#[test]
fn constants_and_pointers_in_initial_values() {
    let (d, m) = samples(1);
    let x: Vec<f32> = (0..40).map(|i| i as f32 * 0.1).collect();
    let (px, py) = (d.upload(&x), d.alloc(160));
    let p = Params::new().u64(px).u64(py).u32(40);
    d.launch(&m, "polynomial", [1, 1, 1], [64, 1, 1], &p).unwrap();
    for (x, y) in x.iter().zip(d.download::<f32>(py, 40)) {
        let want = [4.0f32, 3.0, 2.0, 1.0].iter().fold(0f32, |r, c| r.mul_add(*x, *c));
        assert_eq!(y, want);
    }
    let counter = m.global("counter").unwrap();
    assert_eq!(counter.1, 4);
    assert_eq!(d.download::<i32>(counter.0, 1), [7]);
}

#[test]
fn half_precision() {
    let (d, m) = samples(1);
    let x = vec![0.5f32, 1.25, -3.0, 100.0];
    let (px, py) = (d.upload(&x), d.alloc(32));
    d.launch(&m, "half_math", [1, 1, 1], [32, 1, 1], &Params::new().u64(px).u64(py).u32(4)).unwrap();
    let y: Vec<f32> = d.download(py, 8);
    for (i, x) in x.iter().enumerate() {
        // All intermediate values but the last pair are exact in half precision.
        let want = x * x + 0.5 + (x * x) * (x * x) + 0.5;
        if *x < 100.0 {
            assert!((y[2 * i] - want).abs() / want < 2e-3, "{x}: {} instead of {want}", y[2 * i]);
        } else {
            assert_eq!(y[2 * i], f32::INFINITY);
        }
        assert_eq!(y[2 * i + 1], *x);
    }
}

#[test]
fn bit_operations_in_a_switch() {
    let (d, m) = samples(1);
    let x: Vec<i32> = (0..64).map(|i| i % 10).collect();
    let before: Vec<i32> = (0..64i32).map(|i| i.wrapping_mul(0x0123_4567) ^ 0x5a5a).collect();
    let (px, py) = (d.upload(&x), d.upload(&before));
    d.launch(&m, "switches", [1, 1, 1], [64, 1, 1], &Params::new().u64(px).u64(py).u32(64)).unwrap();
    for (i, got) in d.download::<i32>(py, 64).into_iter().enumerate() {
        let v = before[i];
        let want = match x[i] {
            0 => 17,
            1 => v.wrapping_mul(3),
            2 => v.count_ones() as i32,
            3 => v.leading_zeros() as i32,
            4 => {
                if v == 0 {
                    0
                } else {
                    v.trailing_zeros() as i32 + 1
                }
            }
            5 => v.reverse_bits(),
            6 => {
                let bytes = (0x1234_5678u64 << 32 | u64::from(v as u32)).to_le_bytes();
                i32::from_le_bytes([bytes[5], bytes[1], bytes[7], bytes[3]])
            }
            7 => (((0x9abc_def0u64 << 32 | u64::from(v as u32)) << 7) >> 32) as u32 as i32,
            _ => -1,
        };
        assert_eq!(got, want, "case {} of {v:#x}", x[i]);
    }
}

#[test]
fn recursion_with_diverging_depth() {
    let (d, m) = samples(1);
    let out = d.alloc(8 * 64);
    d.launch(&m, "recurse", [1, 1, 1], [64, 1, 1], &Params::new().u64(out)).unwrap();
    let fibonacci = [0i64, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
    for (i, got) in d.download::<i64>(out, 64).into_iter().enumerate() {
        assert_eq!(got, fibonacci[i % 12]);
    }
}

#[test]
fn an_alias_is_the_function_that_it_stands_for() {
    // Called by its other name, before the alias is given and by a pointer.
    let text = |aliases: &str| {
        format!(
            ".version 7.5\n.target sm_75\n.address_size 64\n.func (.param .b32 r) other(.param .b32 x);\n\
             .func (.param .b32 r) triple(.param .b32 x)\n{{\n.reg .b32 %r<2>; ld.param.u32 %r0, [x];\n\
             mul.lo.u32 %r1, %r0, 3; st.param.b32 [r], %r1; ret;\n}}\n\
             .visible .entry k(.param .u64 out)\n{{\n.reg .b32 %r<4>; .reg .b64 %d<4>;\nld.param.u64 %d0, [out];\n\
             {{ .param .b32 x; .param .b32 r; st.param.b32 [x], 7; call.uni (r), other, (x); ld.param.b32 %r0, [r]; }}\n\
             mov.u64 %d1, other;\n\
             {{ .param .b32 x; .param .b32 r; st.param.b32 [x], %r0; call (r), %d1, (x), proto; ld.param.b32 %r1, [r]; }}\n\
             proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n\
             st.global.u32 [%d0], %r1; ret;\n}}\n{aliases}\n"
        )
    };
    let d = Device::new(1);
    let m = d.load(&text(".alias other, triple;"));
    let out = d.alloc(4);
    d.launch(&m, "k", [1, 1, 1], [1, 1, 1], &Params::new().u64(out)).unwrap();
    assert_eq!(d.download::<u32>(out, 1), [63]);
    for wrong in [".alias other, k;", ".alias other, nothing;", ".alias triple, other;", ".alias other triple;"] {
        let error = Module::parse(text(wrong).as_bytes()).unwrap_err();
        assert_eq!(error.line, 20, "{wrong}: {error}");
    }
}

#[test]
fn calls_through_a_table_of_functions() {
    let (d, m) = samples(1);
    let data: Vec<i32> = (0..32).collect();
    let at = d.upload(&data);
    d.launch(&m, "indirect", [1, 1, 1], [32, 1, 1], &Params::new().u64(at)).unwrap();
    for (i, got) in d.download::<i32>(at, 32).into_iter().enumerate() {
        let i = i as i32;
        assert_eq!(got, if i % 2 == 0 { 2 * i } else { i * i });
    }
}

#[test]
fn printf_and_assert() {
    let (d, m) = samples(1);
    let good = d.upload(&[4, 5, 6]);
    let stats = d.launch(&m, "check", [1, 1, 1], [3, 1, 1], &Params::new().u64(good)).unwrap();
    assert_eq!(stats.printed, "x[0] = 4,  1.50 text\nx[1] = 5,  1.50 text\nx[2] = 6,  1.50 text\n");
    let bad = d.upload(&[4, 7, 6]);
    match d.launch(&m, "check", [1, 1, 1], [3, 1, 1], &Params::new().u64(bad)) {
        Err(fault @ Fault::Assert { .. }) => {
            assert_eq!(fault.cuda_code(), 710);
            let text = fault.to_string();
            assert!(text.starts_with("device-side assertion failed in check: "), "{text}");
            assert!(
                text.ends_with("block: [0,0,0], thread: [1,0,0] Assertion `x[threadIdx.x] != 7` failed."),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
    // Each thread of the block that fails says so.
    let mut values = [4; 160];
    for bad in [3, 5, 96, 159] {
        values[bad] = 7;
    }
    let bad = d.upload(&values);
    let failed = d.launch(&m, "check", [1, 1, 1], [160, 1, 1], &Params::new().u64(bad));
    let Err(Fault::Assert { message, .. }) = failed else { panic!("{failed:?}") };
    let thread = |line: &str| line.split_once("thread: [")?.1.split_once(',')?.0.parse::<u32>().ok();
    assert_eq!(message.lines().filter_map(thread).collect::<Vec<_>>(), [3, 5, 96, 159], "{message}");
}

#[test]
fn a_fault_names_the_line_that_lineinfo_gives() {
    let d = Device::new(1);
    let m = d.load(&ptx("lines"));
    let data = d.upload(&[1.5f32; 1024]);
    let launch = |y: u64, x: u64| {
        d.launch(&m, "scale", [1; 3], [32, 1, 1], &Params::new().u64(y).u64(x).f32(2.0).u32(32))
            .map_err(|f| f.to_string())
    };
    launch(data, data).unwrap();
    assert_eq!(d.download::<f32>(data, 33), [[3.0; 32].as_slice(), &[1.5]].concat());
    // In the function that was inlined, and in the kernel itself.
    for (y, x, line) in [(data, 16, 3), (16, data, 10)] {
        let text = launch(y, x).unwrap_err();
        assert!(
            text.contains(&format!("in scale, block (0,0,0), thread (0,0,0), lines.cu:{line}, PTX line ")),
            "{text}"
        );
    }
}

#[test]
fn synchronisation_of_the_whole_grid() {
    for threads in [1, 2, 3] {
        let (d, m) = samples(threads);
        let n = 5 * 64;
        let data: Vec<i32> = (0..n).collect();
        let at = d.upload(&data);
        let p = Params::new().u64(at).u32(3);
        d.launch_with(&m, "grid_sync", [5, 1, 1], [64, 1, 1], &p, 0, true).unwrap();
        let out: Vec<i32> = d.download(at, n as usize);
        assert!((0..n).all(|i| out[i as usize] == (i + 3) % n));
    }
}

#[test]
fn blocks_that_wait_for_earlier_blocks() {
    for threads in [1, 2, 4] {
        let (d, m) = samples(threads);
        let flags = d.alloc(4 * 50);
        let out = d.alloc(4 * 50 * 32);
        d.launch(&m, "lookback", [50, 1, 1], [32, 1, 1], &Params::new().u64(flags).u64(out)).unwrap();
        for (i, got) in d.download::<u32>(out, 50 * 32).into_iter().enumerate() {
            assert_eq!(got, i as u32 / 32);
        }
    }
}
