//! How fast the engine is, without client and gpud around it: `sluice-softgpu-bench [threads]`.
//!
//! A line for each kernel, with the processor time beside the time that passed (other programs disturb it less), and a
//! last line of JSON for `npm run bench -- softgpu`.

#[path = "../tests/all/common/mod.rs"]
mod common;

use common::{Device, Params, Random, ptx};
use sluice_softgpu::LoadedModule;
use std::time::{Duration, Instant};

/// Processor time of this process.
fn processor_time() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `t` only.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// The best of so many runs, in seconds.
fn best(name: &str, runs: usize, mut work: impl FnMut()) -> f64 {
    let (mut wall, mut cpu) = (f64::MAX, f64::MAX);
    for _ in 0..runs {
        let (began, from) = (Instant::now(), processor_time());
        work();
        wall = wall.min(began.elapsed().as_secs_f64());
        cpu = cpu.min((processor_time() - from).as_secs_f64());
    }
    println!("{name:<24} {:>10.3} ms {:>10.3} ms of processors", wall * 1e3, cpu * 1e3);
    wall
}

/// `c = a b` with tiles of 16 x 16 in shared memory, the programming guide's kernel.
fn matmul(d: &Device, m: &LoadedModule, n: u32, runs: usize) -> f64 {
    let data = vec![1.0f32; (n * n) as usize];
    let (a, b, c) = (d.upload(&data), d.upload(&data), d.alloc(4 * u64::from(n * n)));
    let p = Params::new().u64(a).u64(b).u64(c).u32(n);
    let seconds = best(&format!("matmul {n}"), runs, || {
        d.launch(m, "matmul", [n / 16, n / 16, 1], [16, 16, 1], &p).unwrap();
    });
    assert!(d.download::<f32>(c, n as usize).iter().all(|v| *v == n as f32));
    seconds
}

fn mandelbrot(d: &Device, m: &LoadedModule, n: u64, runs: usize) -> f64 {
    let out = d.alloc(4 * n * n);
    let step = 2.5 / n as f64;
    let p = Params::new().array(out, 4, &[n, n]).f64(-2.0).f64(-1.25).f64(step).f64(step).u64(200);
    let blocks = n.div_ceil(16) as u32;
    best(&format!("mandelbrot {n}"), runs, || {
        d.launch(m, "mandelbrot", [blocks, blocks, 1], [16, 16, 1], &p).unwrap();
    })
}

/// The assignment step of k-means: so many points of 16 dimensions, 16 centres.
fn kmeans(d: &Device, m: &LoadedModule, n: u64, runs: usize) -> f64 {
    let mut r = Random::new(7);
    let points: Vec<f64> = (0..n * 16).map(|_| r.unit()).collect();
    let centres: Vec<f64> = (0..16 * 16).map(|_| r.unit()).collect();
    let (points, centres, labels) = (d.upload(&points), d.upload(&centres), d.alloc(4 * n));
    let p = Params::new().array(points, 8, &[n, 16]).array(centres, 8, &[16, 16]).array(labels, 4, &[n]);
    best(&format!("k-means {n}"), runs, || {
        d.launch(m, "kmeans_assign", [n.div_ceil(128) as u32, 1, 1], [128, 1, 1], &p).unwrap();
    })
}

/// Arithmetic that stays in registers: seconds for the same on each of so many threads. What two processors give over
/// one here is what a kernel can get at most: two that share a core give less than two.
fn arithmetic(threads: usize) -> f64 {
    let work = || {
        let mut numbers: [f32; 64] = std::array::from_fn(|index| index as f32);
        for _ in 0..4_000_000 {
            numbers.iter_mut().for_each(|number| *number = *number * 0.999 + 0.001);
        }
        std::hint::black_box(numbers);
    };
    best(&format!("arithmetic, {threads} threads"), 1, || {
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    })
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(2);
    let only = std::env::args().nth(2);
    let (one, d) = (Device::new(1), Device::new(threads));
    let samples = d.load(&ptx("samples"));
    let large = matmul(&d, &samples, 1024, 8);
    if only.as_deref() == Some("matmul") {
        return;
    }
    // In turns, so that what else the machine does meets both.
    let samples_alone = one.load(&ptx("samples"));
    let mut least = [f64::MAX; 4];
    for _ in 0..8 {
        let (alone, shared) = (matmul(&one, &samples_alone, 512, 2), matmul(&d, &samples, 512, 2));
        let seconds = [alone, shared, arithmetic(1), arithmetic(2)];
        least.iter_mut().zip(seconds).for_each(|(least, seconds)| *least = least.min(seconds));
    }
    let [alone, shared, plain_alone, plain_shared] = least;
    let n = 16u32 << 20;
    let x = vec![1.0f32; n as usize];
    let (px, py) = (d.upload(&x), d.upload(&x));
    let p = Params::new().u32(n).f32(2.0).u64(px).u64(py);
    let saxpy = best("saxpy 16M", 20, || {
        d.launch(&samples, "saxpy", [n / 256, 1, 1], [256, 1, 1], &p).unwrap();
    });
    let (fractal, assign, tiled) = (d.load(&ptx("mandelbrot")), d.load(&ptx("kmeans_assign")), d.load(&ptx("samples")));
    let mandelbrot_large = mandelbrot(&d, &fractal, 2048, 2);
    let kmeans_large = kmeans(&d, &assign, 1 << 20, 2);
    // What numba's simulator can finish as well.
    let small = [mandelbrot(&d, &fractal, 32, 20), kmeans(&d, &assign, 512, 20), matmul(&d, &tiled, 32, 20)];
    let jit = best("from text to first block", 10, || {
        let m = d.load(&ptx("matmul_shared"));
        let zero = Params(vec![0; m.kernel("matmul_shared").unwrap().param_bytes as usize]);
        d.launch(&m, "matmul_shared", [1, 1, 1], [1, 1, 1], &zero).unwrap();
    });
    let figures = [
        ("matmul_gflops", 2.0 * 1024f64.powi(3) / large / 1e9),
        ("scaling_2", alone / shared),
        ("machine_scaling_2", 2.0 * plain_alone / plain_shared),
        ("saxpy_ms", saxpy * 1e3),
        ("mandelbrot_ms", mandelbrot_large * 1e3),
        ("kmeans_ms", kmeans_large * 1e3),
        ("small_mandelbrot_ms", small[0] * 1e3),
        ("small_kmeans_ms", small[1] * 1e3),
        ("small_matmul_ms", small[2] * 1e3),
        ("jit_ms", jit * 1e3),
    ];
    let fields: Vec<String> = figures.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    println!("{{{}}}", fields.join(", "));
}
