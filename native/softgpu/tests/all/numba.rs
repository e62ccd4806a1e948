//! Kernels that numba-cuda compiled (see generate.py), compared with the same computation here.

use crate::common::{Device, Params, Random, ptx};

fn one(n: u32) -> [u32; 3] {
    [n, 1, 1]
}

#[test]
fn vector_add() {
    let d = Device::new(2);
    let m = d.load(&ptx("vector_add"));
    let n = 1000usize;
    let a: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
    let b: Vec<f32> = (0..n).map(|i| 1000.0 - i as f32).collect();
    let (pa, pb, po) = (d.upload(&a), d.upload(&b), d.alloc(4 * n as u64));
    let p = Params::new().array(pa, 4, &[n as u64]).array(pb, 4, &[n as u64]).array(po, 4, &[n as u64]);
    let stats = d.launch(&m, "vector_add", one(8), one(128), &p).unwrap();
    assert_eq!(stats.blocks, 8);
    let out: Vec<f32> = d.download(po, n);
    for i in 0..n {
        assert_eq!(out[i], a[i] + b[i], "{i}");
    }
}

#[test]
fn mandelbrot() {
    let d = Device::new(2);
    let m = d.load(&ptx("mandelbrot"));
    let (w, h, limit) = (100usize, 70usize, 60i32);
    let (x0, y0, dx, dy) = (-2.0, -1.25, 2.5 / w as f64, 2.5 / h as f64);
    let po = d.alloc(4 * (w * h) as u64);
    let p = Params::new().array(po, 4, &[h as u64, w as u64]).f64(x0).f64(y0).f64(dx).f64(dy).u64(limit as u64);
    d.launch(&m, "mandelbrot", [7, 5, 1], [16, 16, 1], &p).unwrap();
    let out: Vec<i32> = d.download(po, w * h);
    let mut wrong = 0;
    for y in 0..h {
        for x in 0..w {
            let (cr, ci) = (x0 + x as f64 * dx, y0 + y as f64 * dy);
            let (mut zr, mut zi, mut n) = (0.0f64, 0.0f64, limit);
            for k in 0..limit {
                let t = zr * zr - zi * zi + cr;
                zi = 2.0 * zr * zi + ci;
                zr = t;
                if zr * zr + zi * zi > 4.0 {
                    n = k;
                    break;
                }
            }
            wrong += i32::from(out[y * w + x] != n);
        }
    }
    // The compiler fuses multiplications: points on the border may differ.
    assert!(wrong < 20, "{wrong} of {}", w * h);
}

#[test]
fn kmeans() {
    let d = Device::new(2);
    let (assign, update) = (d.load(&ptx("kmeans_assign")), d.load(&ptx("kmeans_update")));
    let (n, dims, k) = (777usize, 5usize, 4usize);
    let mut r = Random::new(7);
    let points: Vec<f64> = (0..n * dims).map(|_| r.unit()).collect();
    let centres: Vec<f64> = (0..k * dims).map(|_| r.unit()).collect();
    let (pp, pc) = (d.upload(&points), d.upload(&centres));
    let (pl, ps, pn) = (d.alloc(4 * n as u64), d.alloc(8 * (k * dims) as u64), d.alloc(4 * k as u64));
    let shape = [n as u64, dims as u64];
    let p = Params::new().array(pp, 8, &shape).array(pc, 8, &[k as u64, dims as u64]).array(pl, 4, &[n as u64]);
    d.launch(&assign, "kmeans_assign", one(7), one(128), &p).unwrap();
    let labels: Vec<i32> = d.download(pl, n);
    let p = Params::new().array(pp, 8, &shape).array(pl, 4, &[n as u64]).array(ps, 8, &[k as u64, dims as u64]).array(
        pn,
        4,
        &[k as u64],
    );
    d.launch(&update, "kmeans_update", one(7), one(128), &p).unwrap();
    let sums: Vec<f64> = d.download(ps, k * dims);
    let counts: Vec<i32> = d.download(pn, k);
    let mut expected_sums = vec![0.0; k * dims];
    let mut expected_counts = vec![0; k];
    for i in 0..n {
        let distance =
            |c: usize| (0..dims).map(|j| (points[i * dims + j] - centres[c * dims + j]).powi(2)).sum::<f64>();
        let best = (0..k).min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap();
        assert_eq!(labels[i], best as i32, "{i}");
        expected_counts[best] += 1;
        for j in 0..dims {
            expected_sums[best * dims + j] += points[i * dims + j];
        }
    }
    assert_eq!(counts, expected_counts);
    for (got, want) in sums.iter().zip(&expected_sums) {
        assert!((got - want).abs() < 1e-9);
    }
}

#[test]
fn atomics_on_floats() {
    let d = Device::new(2);
    let m = d.load(&ptx("atomics_f32"));
    let n = 500usize;
    let mut r = Random::new(3);
    let values: Vec<f32> = (0..n).map(|_| (r.unit() * 20.0 - 10.0) as f32).collect();
    let v = d.upload(&values);
    let (total, low, high) = (d.upload(&[0f32]), d.upload(&[0f32]), d.upload(&[0f32]));
    let p = Params::new().array(v, 4, &[n as u64]).array(total, 4, &[1]).array(low, 4, &[1]).array(high, 4, &[1]);
    d.launch(&m, "atomics_f32", one(4), one(128), &p).unwrap();
    let sum: f32 = values.iter().sum();
    assert!((d.download::<f32>(total, 1)[0] - sum).abs() < 1e-2);
    assert_eq!(d.download::<f32>(low, 1)[0], values.iter().copied().fold(f32::MAX, f32::min));
    assert_eq!(d.download::<f32>(high, 1)[0], values.iter().copied().fold(f32::MIN, f32::max));
}

#[test]
fn matmul_with_shared_memory() {
    let d = Device::new(2);
    let m = d.load(&ptx("matmul_shared"));
    let (h, n, w) = (50usize, 41usize, 37usize);
    let mut r = Random::new(5);
    let a: Vec<f32> = (0..h * n).map(|_| r.unit() as f32).collect();
    let b: Vec<f32> = (0..n * w).map(|_| r.unit() as f32).collect();
    let (pa, pb, pc) = (d.upload(&a), d.upload(&b), d.alloc(4 * (h * w) as u64));
    let p = Params::new().array(pa, 4, &[h as u64, n as u64]).array(pb, 4, &[n as u64, w as u64]).array(
        pc,
        4,
        &[h as u64, w as u64],
    );
    d.launch(&m, "matmul_shared", [3, 4, 1], [16, 16, 1], &p).unwrap();
    let c: Vec<f32> = d.download(pc, h * w);
    for y in 0..h {
        for x in 0..w {
            let want: f64 = (0..n).map(|k| f64::from(a[y * n + k]) * f64::from(b[k * w + x])).sum();
            assert!((f64::from(c[y * w + x]) - want).abs() < 1e-4, "{y} {x}");
        }
    }
}

#[test]
fn reduction_with_shared_memory() {
    let d = Device::new(2);
    let m = d.load(&ptx("reduce_shared"));
    let n = 5000usize;
    let values: Vec<f64> = (0..n).map(|i| (i % 17) as f64).collect();
    let (v, t) = (d.upload(&values), d.upload(&[0f64]));
    let p = Params::new().array(v, 8, &[n as u64]).array(t, 8, &[1]);
    d.launch(&m, "reduce_shared", one(20), one(256), &p).unwrap();
    assert_eq!(d.download::<f64>(t, 1)[0], values.iter().sum::<f64>());
}

fn close(got: f64, want: f64, tolerance: f64, what: &str) {
    let scale = want.abs().max(1e-300);
    let same = got == want || (got.is_nan() && want.is_nan());
    assert!(same || (got - want).abs() / scale < tolerance, "{what}: {got} instead of {want}");
}

#[test]
fn mathematics_in_double_precision() {
    let d = Device::new(2);
    let m = d.load(&ptx("math_f64"));
    let x: Vec<f64> = (-100..100).map(|i| f64::from(i) * 0.37 + 0.01).chain([1e6, -3e9, 0.0, 1e-310]).collect();
    let n = x.len();
    let (px, po) = (d.upload(&x), d.alloc(8 * 12 * n as u64));
    let p = Params::new().array(px, 8, &[n as u64]).array(po, 8, &[n as u64, 12]);
    d.launch(&m, "math_f64", one(4), one(64), &p).unwrap();
    let out: Vec<f64> = d.download(po, 12 * n);
    for (i, v) in x.iter().copied().enumerate() {
        let o = &out[12 * i..12 * i + 12];
        close(o[0], v.sin(), 1e-12, &format!("sin {v}"));
        close(o[1], v.exp(), 1e-14, &format!("exp {v}"));
        close(o[2], v.abs().sqrt(), 1e-15, &format!("sqrt {v}"));
        close(o[3], v.abs().powf(1.7), 1e-14, &format!("pow {v}"));
        close(o[4], v.cos(), 1e-12, &format!("cos {v}"));
        close(o[5], (v.abs() + 1.0).ln(), 1e-14, &format!("log {v}"));
        close(o[6], v.atan2(2.0), 1e-14, &format!("atan2 {v}"));
        close(o[7], v.tanh(), 1e-14, &format!("tanh {v}"));
        assert!(o[8].abs() <= 1.0 && (o[8] >= 0.0) == (v >= 0.0), "erf {v}: {}", o[8]);
        assert_eq!(o[9], v.floor());
        close(o[11], v % 0.75, 1e-15, &format!("fmod {v}"));
    }
    // erf(0.38) and lgamma(0.88), from tables.
    let at = x.iter().position(|v| (*v - 0.38).abs() < 1e-9).unwrap();
    close(out[12 * at + 8], 0.409_009_453_4, 1e-9, "erf");
    close(out[12 * at + 10], 0.081_863_621_8, 1e-9, "lgamma");
}

#[test]
fn mathematics_in_single_precision() {
    let d = Device::new(2);
    let m = d.load(&ptx("math_f32"));
    let x: Vec<f32> = (-60..60).map(|i| i as f32 * 0.71 + 0.03).chain([1e5, 2e9]).collect();
    let n = x.len();
    let (px, po) = (d.upload(&x), d.alloc(4 * 6 * n as u64));
    let p = Params::new().array(px, 4, &[n as u64]).array(po, 4, &[n as u64, 6]);
    d.launch(&m, "math_f32", one(4), one(64), &p).unwrap();
    let out: Vec<f32> = d.download(po, 6 * n);
    for (i, x) in x.iter().enumerate() {
        let v = f64::from(*x);
        let o: Vec<f64> = out[6 * i..6 * i + 6].iter().map(|v| f64::from(*v)).collect();
        assert!((o[0] - v.sin()).abs() < 3e-7, "sin {v}: {}", o[0]);
        if v.exp() < f64::from(f32::MAX) {
            close(o[1], v.exp(), 1e-6, &format!("exp {v}"));
        }
        close(o[2], v.abs().sqrt(), 1e-7, &format!("sqrt {v}"));
        close(o[3], f64::from(x.abs() + 1.0).ln(), 1e-5, &format!("log {v}"));
        close(o[4], v.abs().powf(f64::from(1.7f32)), 1e-5, &format!("pow {v}"));
        assert_eq!(out[6 * i + 5], x / 3.0);
    }
}

#[test]
fn complex_numbers() {
    let d = Device::new(1);
    let m = d.load(&ptx("complex_square"));
    let z: Vec<[f64; 2]> = (0..100).map(|i| [f64::from(i) * 0.1 - 3.0, f64::from(i) * 0.05]).collect();
    let (pz, po) = (d.upload(&z), d.alloc(1600));
    let p = Params::new().array(pz, 16, &[100]).array(po, 16, &[100]);
    d.launch(&m, "complex_square", one(4), one(32), &p).unwrap();
    let out: Vec<[f64; 2]> = d.download(po, 100);
    for (z, o) in z.iter().zip(&out) {
        let (sr, si) = (z[0] * z[0] - z[1] * z[1], 2.0 * z[0] * z[1]);
        let (dr, di) = (z[0] + 2.0, z[1]);
        let norm = dr * dr + di * di;
        close(o[0], (sr * dr + si * di) / norm, 1e-9, "real");
        assert!((o[1] - (si * dr - sr * di) / norm).abs() < 1e-9);
    }
}

#[test]
fn division_of_64_bit_integers() {
    let d = Device::new(1);
    let m = d.load(&ptx("int64_divide"));
    let a: Vec<i64> = vec![7, -7, 7, -7, i64::MAX, i64::MIN + 1, 1 << 40, 0];
    let b: Vec<i64> = vec![2, 2, -2, -2, 3, 1 << 33, -(1 << 20), 5];
    let (pa, pb, pq, pr) = (d.upload(&a), d.upload(&b), d.alloc(64), d.alloc(64));
    let p = [pa, pb, pq, pr].iter().fold(Params::new(), |p, at| p.array(*at, 8, &[8]));
    d.launch(&m, "int64_divide", one(1), one(32), &p).unwrap();
    let (q, r): (Vec<i64>, Vec<i64>) = (d.download(pq, 8), d.download(pr, 8));
    for i in 0..8 {
        let floor = a[i].div_euclid(b[i]) - i64::from(b[i] < 0 && a[i].rem_euclid(b[i]) != 0);
        assert_eq!(q[i], floor, "{} // {}", a[i], b[i]);
        assert_eq!(r[i], a[i] - floor * b[i]);
    }
}

#[test]
fn device_function_with_a_loop() {
    let d = Device::new(2);
    let m = d.load(&ptx("collatz"));
    let start: Vec<i64> = (1..=300).collect();
    let (ps, po) = (d.upload(&start), d.alloc(2400));
    let p = Params::new().array(ps, 8, &[300]).array(po, 8, &[300]);
    d.launch(&m, "collatz", one(3), one(128), &p).unwrap();
    let out: Vec<i64> = d.download(po, 300);
    for (n, got) in start.iter().zip(&out) {
        let (mut n, mut steps) = (*n, 0);
        while n != 1 {
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
            steps += 1;
        }
        assert_eq!(*got, steps);
    }
}

#[test]
fn boolean_logic() {
    let d = Device::new(1);
    let m = d.load(&ptx("boolean_logic"));
    let mut r = Random::new(9);
    let a: Vec<f64> = (0..256).map(|_| r.unit()).collect();
    let b: Vec<f64> = (0..256).map(|_| r.unit()).collect();
    let (pa, pb, po) = (d.upload(&a), d.upload(&b), d.alloc(256));
    let p = Params::new().array(pa, 8, &[256]).array(pb, 8, &[256]).array(po, 1, &[256]);
    d.launch(&m, "boolean_logic", one(2), one(128), &p).unwrap();
    let out: Vec<u8> = d.download(po, 256);
    for i in 0..256 {
        let (p, q) = (a[i] > 0.5, b[i] < 0.5);
        let want = (p && !q) || (q && a[i] > 0.9) || (p != q && b[i] > 0.75);
        assert_eq!(out[i], u8::from(want), "{i}");
    }
}

#[test]
fn local_arrays() {
    let d = Device::new(1);
    let m = d.load(&ptx("local_histogram"));
    let data: Vec<i32> = (0..100 * 20).map(|i| i * i % 23).collect();
    let (pd, po) = (d.upload(&data), d.alloc(3200));
    let p = Params::new().array(pd, 4, &[100, 20]).array(po, 4, &[100, 8]);
    d.launch(&m, "local_histogram", one(4), one(32), &p).unwrap();
    let out: Vec<i32> = d.download(po, 800);
    for i in 0..100 {
        let mut want = [0; 8];
        for v in &data[20 * i..20 * i + 20] {
            want[(v & 7) as usize] += 1;
        }
        assert_eq!(out[8 * i..8 * i + 8], want);
    }
}

#[test]
fn barrier_that_counts() {
    let d = Device::new(1);
    let m = d.load(&ptx("count_positive"));
    let values: Vec<f32> = (0..384).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
    let (pv, po) = (d.upload(&values), d.alloc(16));
    let p = Params::new().array(pv, 4, &[384]).array(po, 4, &[4]);
    d.launch(&m, "count_positive", one(4), one(96), &p).unwrap();
    assert_eq!(d.download::<i32>(po, 4), [32; 4]);
}

#[test]
fn warp_shuffles_and_ballots() {
    let d = Device::new(1);
    let m = d.load(&ptx("warp_sum"));
    let values: Vec<i32> = (0..128).map(|i| i * 7 % 31 - 10).collect();
    let (pv, po) = (d.upload(&values), d.alloc(32));
    let p = Params::new().array(pv, 4, &[128]).array(po, 4, &[4, 2]);
    d.launch(&m, "warp_sum", one(2), one(64), &p).unwrap();
    let out: Vec<i32> = d.download(po, 8);
    for (w, lanes) in values.chunks(32).enumerate() {
        assert_eq!(out[2 * w], lanes.iter().sum::<i32>());
        assert_eq!(out[2 * w + 1], lanes.iter().filter(|v| **v > 0).count() as i32);
    }
}

#[test]
fn atomics_on_64_bit_integers() {
    let d = Device::new(2);
    let m = d.load(&ptx("atomic_mix"));
    let values: Vec<i64> = (0..200).map(|i| i * 37 % 101 + (1 << 35)).collect();
    let (pv, ph, pl, ps) = (d.upload(&values), d.upload(&[i64::MIN]), d.upload(&[i64::MAX]), d.alloc(8 * 16));
    let p = Params::new().array(pv, 8, &[200]).array(ph, 8, &[1]).array(pl, 8, &[1]).array(ps, 8, &[16]);
    d.launch(&m, "atomic_mix", one(2), one(128), &p).unwrap();
    assert_eq!(d.download::<i64>(ph, 1)[0], *values.iter().max().unwrap());
    assert_eq!(d.download::<i64>(pl, 1)[0], *values.iter().min().unwrap());
    for (slot, got) in d.download::<i64>(ps, 16).iter().enumerate() {
        assert!(values.iter().any(|v| v % 16 == slot as i64 && v + 1 == *got), "slot {slot} holds {got}");
    }
}

#[test]
fn spin_lock_between_the_lanes_of_a_warp() {
    for threads in [1, 2] {
        let d = Device::new(threads);
        let m = d.load(&ptx("spin_lock"));
        let (lock, total) = (d.upload(&[0i32]), d.upload(&[0i32]));
        let p = Params::new().array(lock, 4, &[1]).array(total, 4, &[1]).u32(5);
        d.launch(&m, "spin_lock", one(3), one(64), &p).unwrap();
        assert_eq!(d.download::<i32>(total, 1)[0], 3 * 64 * 5);
    }
}

#[test]
fn debug_build_reports_its_exception() {
    let d = Device::new(1);
    let m = d.load(&ptx("checked_divide"));
    let a: Vec<i64> = vec![10, 20, 30];
    let code = m.global("checked_divide__errcode__").unwrap().0;
    for (b, fails) in [(vec![2i64, 5, 7], false), (vec![2, 0, 7], true)] {
        let (pa, pb, po) = (d.upload(&a), d.upload(&b), d.alloc(24));
        let p = [pa, pb, po].iter().fold(Params::new(), |p, at| p.array(*at, 8, &[3]));
        d.launch(&m, "checked_divide", one(1), one(32), &p).unwrap();
        assert_eq!(d.download::<u32>(code, 1)[0] != 0, fails);
        let out: Vec<i64> = d.download(po, 3);
        assert_eq!((out[0], out[2]), (5, 4));
    }
}

#[test]
fn printing() {
    let d = Device::new(1);
    let m = d.load(&ptx("print_value"));
    let v = d.upload(&[5i64, -6]);
    let stats = d.launch(&m, "print_value", one(1), one(32), &Params::new().array(v, 8, &[2])).unwrap();
    assert_eq!(stats.printed, "value 0 5\nvalue 1 -6\n");
}
