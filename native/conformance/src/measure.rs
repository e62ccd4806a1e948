//! What benchmarks measure with.

/// The value below which `part` (0 to 1) of the samples lie.
pub fn percentile(mut samples: Vec<f64>, part: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * part) as usize]
}

/// CPU time of this process, microseconds.
pub fn own_cpu_us() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live local.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
