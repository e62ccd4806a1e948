//! Whatever the bytes are, parsing returns: broken variants of every checked-in kernel.

use crate::common::{Device, Params, Random};
use sluice_softgpu::{LoadedModule, Module};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn corpus() -> Vec<Vec<u8>> {
    let folder = format!("{}/tests/ptx", env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "ptx"));
    names.sort();
    assert!(names.len() > 15);
    names.iter().map(|p| std::fs::read(p).unwrap()).collect()
}

#[test]
fn every_kernel_of_the_corpus_is_supported() {
    for mut text in corpus() {
        // Images of the driver API end in NULs.
        text.extend([0; 3]);
        let module = Module::parse(&text).unwrap_or_else(|e| panic!("{e}"));
        assert!(module.kernels().count() > 0);
        for kernel in module.kernels() {
            assert_eq!(kernel.unsupported, None, "{}", kernel.name);
        }
    }
}

#[test]
fn truncated_text() {
    let mut r = Random::new(1);
    for text in corpus() {
        for _ in 0..60 {
            let cut = r.bits() as usize % text.len();
            let _ = Module::parse(&text[..cut]);
        }
    }
}

#[test]
fn changed_bytes() {
    let mut r = Random::new(2);
    for text in corpus() {
        for round in 0..60 {
            let mut text = text.clone();
            for _ in 0..=round % 8 {
                let at = r.bits() as usize % text.len();
                let other = r.bits() as usize % text.len();
                text[at] = if round % 2 == 0 { text[other] } else { (r.bits() % 128) as u8 };
            }
            let _ = Module::parse(&text);
        }
    }
}

#[test]
fn moved_and_repeated_lines() {
    let mut r = Random::new(3);
    for text in corpus() {
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for _ in 0..40 {
            let mut lines = lines.clone();
            for _ in 0..4 {
                let (from, to) = (r.bits() as usize % lines.len(), r.bits() as usize % lines.len());
                lines[to] = lines[from];
            }
            let _ = Module::parse(lines.join("\n").as_bytes());
        }
    }
}

#[test]
fn tokens_swapped_between_instructions() {
    let mut r = Random::new(4);
    for text in corpus() {
        let text = String::from_utf8(text).unwrap();
        let words: Vec<&str> = text.split_inclusive([' ', '\t', '\n', ',']).collect();
        for _ in 0..40 {
            let mut words = words.clone();
            for _ in 0..3 {
                let (a, b) = (r.bits() as usize % words.len(), r.bits() as usize % words.len());
                words.swap(a, b);
            }
            let _ = Module::parse(words.concat().as_bytes());
        }
    }
}

/// Kernels whose numbers (offsets, registers, sizes) were changed compute anything or fail; whoever runs them does not.
#[test]
fn changed_numbers_in_programs_that_run() {
    let mut r = Random::new(5);
    let corpus: Vec<_> = corpus().into_iter().filter(|text| text.len() < 12_000).collect();
    let began = Instant::now();
    let (mut launches, mut faults) = (0, 0);
    let seconds = std::env::var("SLUICE_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(4);
    while began.elapsed() < Duration::from_secs(seconds) {
        let d = Device::with_heap(2, 1 << 20);
        d.engine.set_limit(Some(Duration::from_millis(40)));
        let data = d.upload(&[1u32; 4096]);
        for text in &corpus {
            let mut text = text.clone();
            for _ in 0..=r.bits() % 3 {
                let at = (r.bits() >> 8) as usize % text.len();
                if let Some(digit) = text[at..].iter_mut().find(|b| b.is_ascii_digit()) {
                    *digit = b'0' + (r.bits() % 10) as u8;
                }
            }
            let Ok(module) = Module::parse(&text) else { continue };
            if module.globals().any(|g| g.size > 1 << 20) {
                continue;
            }
            let Ok(module) = LoadedModule::new(Arc::new(module), |g| Ok::<_, ()>(d.alloc(g.size))) else { continue };
            let kernels: Vec<_> = module.module().kernels().take(2).cloned().collect();
            for kernel in kernels {
                let mut params = Params::new();
                for _ in 0..kernel.param_bytes.div_ceil(8) {
                    params = params.u64([data, 64, 0, 4, 1 << 33][(r.bits() >> 9) as usize % 5]);
                }
                let done = d.launch(&module, &kernel.name, [2, 1, 1], [64, 1, 1], &params);
                launches += 1;
                faults += u32::from(done.is_err());
            }
        }
    }
    println!("{launches} launches, {faults} faults");
    assert!(launches > 10 && faults > 0 && faults < launches);
}

#[test]
fn numbers_that_are_too_large() {
    for line in [
        ".reg .b32 %r<4000000000>;",
        ".reg .b64 %r<65535>;\n.reg .b64 %q<65535>;",
        ".local .b8 x[99999999999];",
        ".local .b8 x[4000000000];",
        ".shared .b8 s[9999999999][99999999];",
        ".param .b8 p[4294967295];",
        ".reg .b32 %r<2>;\nadd.u32 %r1, %r1, 0xffffffffffffffffff;",
        ".local .align 3 .b8 x[4];",
    ] {
        let text = format!(".version 7.5\n.target sm_75\n.address_size 64\n.entry k()\n{{\n{line}\nret;\n}}\n");
        assert!(Module::parse(text.as_bytes()).is_err(), "{line}");
    }
    for line in [".global .b8 g[99999999999999999];", ".global .align 0 .b8 g[4] = {1, 2, 3, 4, 5, 6, 7};"] {
        let _ = Module::parse(format!(".version 7.5\n.target sm_75\n{line}\n").as_bytes());
    }
    let nested = "[".repeat(100_000);
    let text = format!(".version 7.5\n.target sm_75\n.entry k()\n{{\nmov.u32 {nested}\n}}\n");
    assert!(Module::parse(text.as_bytes()).is_err());
}
