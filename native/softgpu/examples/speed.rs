//! How fast the engine is: `cargo run --release -p sluice-softgpu --example speed [threads]`.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Device, Params, ptx};

fn main() {
    let threads = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(2);
    let d = Device::new(threads);
    let m = d.load(&ptx("samples"));
    for n in [512u32, 1024] {
        let data = vec![1.0f32; (n * n) as usize];
        let (a, b, c) = (d.upload(&data), d.upload(&data), d.alloc(4 * u64::from(n * n)));
        let p = Params::new().u64(a).u64(b).u64(c).u32(n);
        let stats = d.launch(&m, "matmul", [n / 16, n / 16, 1], [16, 16, 1], &p).unwrap();
        let seconds = stats.elapsed.as_secs_f64();
        let flops = 2.0 * f64::from(n).powi(3);
        let rate = stats.instructions as f64 / seconds / 1e6;
        println!("matmul {n}: {:.2} GFLOP/s, {rate:.0} M warp instructions/s", flops / seconds / 1e9);
    }
    let n = 16u32 << 20;
    let x = vec![1.0f32; n as usize];
    let (px, py) = (d.upload(&x), d.upload(&x));
    let p = Params::new().u32(n).f32(2.0).u64(px).u64(py);
    let stats = d.launch(&m, "saxpy", [n / 256, 1, 1], [256, 1, 1], &p).unwrap();
    println!("saxpy 16M: {:.1} ms", stats.elapsed.as_secs_f64() * 1e3);
    let m = d.load(&ptx("mandelbrot"));
    let out = d.alloc(4 * 1000 * 1000);
    let p = Params::new().array(out, 4, &[1000, 1000]).f64(-2.0).f64(-1.25).f64(0.0025).f64(0.0025).u64(200);
    let stats = d.launch(&m, "mandelbrot", [63, 63, 1], [16, 16, 1], &p).unwrap();
    println!("mandelbrot 1000x1000x200: {:.1} ms", stats.elapsed.as_secs_f64() * 1e3);
}
