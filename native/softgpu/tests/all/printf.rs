//! `printf`: what C's conversions give, and what CUDA's returns.

use crate::common::{Device, Params};
use sluice_softgpu::Launch;
use std::sync::atomic::AtomicBool;

/// A call: format, arguments (their bits, and whether they have 64), what is printed.
type Call = (&'static str, &'static [(u64, bool)], &'static str);

const fn double(v: f64) -> (u64, bool) {
    (v.to_bits(), true)
}

const CALLS: &[Call] = &[
    ("plain %%", &[], "plain %"),
    ("%d %5d|%-5d|%05d", &[(7, false), (7, false), (7, false), (0xffff_fff9, false)], "7     7|7    |-0007"),
    ("%.3d %6.3d %+d % d", &[(7, false), (0xffff_fff9, false), (1, false), (2, false)], "007   -007 +1  2"),
    ("%hd %hhd %hu %hhx", &[(0x1ffff, false), (0x180, false), (0x1ffff, false), (0x1ff, false)], "-1 -128 65535 ff"),
    (
        "%#x %#o %o %X %#08x",
        &[(255, false), (8, false), (8, false), (255, false), (255, false)],
        "0xff 010 10 FF 0x0000ff",
    ),
    ("%lld %llu %u", &[(u64::MAX, true), (u64::MAX, true), (0xffff_ffff, false)], "-1 18446744073709551615 4294967295"),
    ("%e %E %.2e", &[double(12345.678), double(12345.678), double(0.0)], "1.234568e+04 1.234568E+04 0.00e+00"),
    ("%g %G %#g %g", &[double(0.5), double(1e-10), double(0.5), double(1e20)], "0.5 1E-10 0.500000 1e+20"),
    ("%f %F %+.1f", &[double(-1.5), double(f64::INFINITY), double(2.25)], "-1.500000 INF +2.2"),
    ("%a %A %.1a %a", &[double(1.0), double(-10.5), double(1.97), double(0.0)], "0x1p+0 -0X1.5P+3 0x2.0p+0 0x0p+0"),
    ("%c%c", &[(72, false), (105, false)], "Hi"),
    (
        "%*d|%-*d|%*d|",
        &[(6, false), (42, false), (6, false), (42, false), (0xffff_fffc, false), (7, false)],
        "    42|42    |7   |",
    ),
    ("%.*f %8.*f", &[(2, false), double(2.728), (0xffff_ffff, false), double(1.5)], "2.73 1.500000"),
    ("%08f|%-8f|% f", &[double(f64::INFINITY), double(f64::NEG_INFINITY), double(f64::NAN)], "     inf|-inf    | nan"),
    ("%c%c%c", &[(0xe2, false), (0x82, false), (0xac, false)], "€"),
    ("%#.0f %.0f %p %p", &[double(3.0), double(3.0), (0, true), (0xbeef, true)], "3. 3 (nil) 0xbeef"),
];

#[test]
fn conversions_are_those_of_c() {
    let (mut globals, mut body) = (String::new(), String::new());
    for (number, (format, arguments, _)) in CALLS.iter().enumerate() {
        let bytes: Vec<String> = format.bytes().chain([b'\n', 0]).map(|b| b.to_string()).collect();
        globals += &format!(".global .b8 f{number}[{}] = {{{}}};\n", bytes.len(), bytes.join(", "));
        let mut at = 0;
        for (bits, wide) in *arguments {
            let size = if *wide { 8 } else { 4 };
            at = u32::next_multiple_of(at, size);
            body += &format!("mov.b64 %d2, {bits}; ");
            body += &match wide {
                true => format!("st.local.b64 [buffer+{at}], %d2;\n"),
                false => format!("cvt.u32.u64 %r0, %d2; st.local.b32 [buffer+{at}], %r0;\n"),
            };
            at += size;
        }
        body += &format!(
            "mov.u64 %d0, f{number}; mov.u64 %d1, buffer; cvta.local.u64 %d1, %d1;\n\
             {{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %d0; st.param.b64 [b], %d1;\n\
             call.uni (r), vprintf, (a, b); ld.param.b32 %r1, [r]; }}\nst.global.u32 [%d3+{}], %r1;\n",
            4 * number
        );
    }
    let text = format!(
        ".version 8.0\n.target sm_75\n.address_size 64\n.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
         {globals}.visible .entry k(.param .u64 out)\n{{\n.local .align 8 .b8 buffer[64];\n.reg .b32 %r<4>; .reg .b64 %d<4>;\n\
         ld.param.u64 %d3, [out];\n{body}ret;\n}}\n"
    );
    let d = Device::new(1);
    let m = d.load(&text);
    let out = d.alloc(4 * CALLS.len() as u64);
    let printed = d.launch(&m, "k", [1; 3], [1; 3], &Params::new().u64(out)).unwrap().printed;
    for ((format, _, want), got) in CALLS.iter().zip(printed.lines()) {
        assert_eq!(got, *want, "{format}");
    }
    let counts = d.download::<u32>(out, CALLS.len());
    assert!(CALLS.iter().zip(counts).all(|((_, arguments, _), count)| arguments.len() as u32 == count));
}

#[test]
fn what_was_printed_before_a_fault_is_kept() {
    let text = ".version 8.0\n.target sm_75\n.address_size 64\n\
        .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.global .b8 f[4] = {72, 105, 10, 0};\n\
        .visible .entry k()\n{\n.reg .b64 %d<2>;\nmov.u64 %d0, f; mov.u64 %d1, 0;\n\
        { .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %d0; st.param.b64 [b], %d1;\n\
        call.uni (r), vprintf, (a, b); }\ntrap;\n}\n";
    let d = Device::new(1);
    let m = d.load(text);
    let (grid, block) = ([1; 3], [1; 3]);
    let launch =
        Launch { module: &m, kernel: "k", grid, block, dynamic_shared: 0, params: &[], cooperative: false, heap: None };
    let mut printed = String::new();
    let done = d.engine.launch_printing(&d.arena, &launch, &AtomicBool::new(false), &mut printed);
    assert_eq!((done.unwrap_err().cuda_code(), printed.as_str()), (719, "Hi\n"));
}

/// A kernel that prints its 20,000 lines, of 90 bytes and a number each.
fn many_lines() -> String {
    let line = format!("{}%d\n", "-".repeat(90));
    let bytes: Vec<String> = line.bytes().chain([0]).map(|b| b.to_string()).collect();
    format!(
        ".version 8.0\n.target sm_75\n.address_size 64\n.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
         .global .b8 f[{}] = {{{}}};\n.visible .entry k()\n{{\n.local .align 8 .b8 buffer[8];\n.reg .pred %p; .reg .b32 %n;\n\
         .reg .b64 %d<2>;\nmov.u32 %n, 0;\nagain:\nst.local.u32 [buffer], %n;\nmov.u64 %d0, f; mov.u64 %d1, buffer;\n\
         cvta.local.u64 %d1, %d1;\n\
         {{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %d0; st.param.b64 [b], %d1;\n\
         call.uni (r), vprintf, (a, b); }}\nadd.u32 %n, %n, 1; setp.lt.u32 %p, %n, 20000; @%p bra again;\nret;\n}}\n",
        bytes.len(),
        bytes.join(", ")
    )
}

#[test]
fn the_last_mebibyte_of_what_a_kernel_prints_is_kept_or_as_much_as_was_asked_for() {
    let d = Device::new(1);
    let m = d.load(&many_lines());
    for bytes in [None, Some(500), Some(3 << 20), Some(1)] {
        if let Some(bytes) = bytes {
            d.engine.keep_printed(bytes);
        }
        let printed = d.launch(&m, "k", [1; 3], [1; 3], &Params::new()).unwrap().printed;
        let (most, all) = (bytes.unwrap_or(1 << 20), 20_000 * 91 + 88_890);
        assert!((most.saturating_sub(100)..=most).contains(&printed.len()) || printed.len() == all.min(most));
        let numbers: Vec<u32> = printed.lines().map(|line| line.trim_start_matches('-').parse().unwrap()).collect();
        assert_eq!(numbers.last(), (most > 100).then_some(&19_999));
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }
}

#[test]
fn a_call_without_a_format_is_answered_with_minus_one() {
    let text = ".version 8.0\n.target sm_75\n.address_size 64\n\
        .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.visible .entry k(.param .u64 out)\n{\n\
        .reg .b64 %d<3>; .reg .b32 %r;\nmov.u64 %d0, 0; mov.u64 %d1, 0;\n\
        { .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %d0; st.param.b64 [b], %d1;\n\
        call.uni (r), vprintf, (a, b); ld.param.b32 %r, [r]; }\n\
        ld.param.u64 %d2, [out]; st.global.u32 [%d2], %r;\nret;\n}\n";
    let d = Device::new(1);
    let out = d.alloc(4);
    let stats = d.launch(&d.load(text), "k", [1; 3], [1; 3], &Params::new().u64(out)).unwrap();
    assert_eq!((d.download::<i32>(out, 1), stats.printed.as_str()), (vec![-1], ""));
}

#[test]
fn a_call_prints_thirty_two_arguments_and_leaves_further_conversions_as_they_are() {
    let format = format!("{}%d%% %s", "%d".repeat(32));
    let bytes: Vec<String> = format.bytes().chain([b'\n', 0]).map(|b| b.to_string()).collect();
    let text = format!(
        ".version 8.0\n.target sm_75\n.address_size 64\n\
         .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.global .b8 f[{}] = {{{}}};\n\
         .visible .entry k(.param .u64 out)\n{{\n.local .align 8 .b8 buffer[136];\n.reg .b32 %r<2>; .reg .b64 %d<3>;\n\
         ld.param.u64 %d2, [out]; mov.u64 %d0, f; mov.u64 %d1, buffer; cvta.local.u64 %d1, %d1;\n\
         {{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %d0; st.param.b64 [b], %d1;\n\
         call.uni (r), vprintf, (a, b); ld.param.b32 %r0, [r]; }}\nst.global.u32 [%d2], %r0;\nret;\n}}\n",
        bytes.len(),
        bytes.join(", ")
    );
    let d = Device::new(1);
    let (m, out) = (d.load(&text), d.alloc(4));
    let printed = d.launch(&m, "k", [1; 3], [1; 3], &Params::new().u64(out)).unwrap().printed;
    assert_eq!(printed, format!("{}%d% %s\n", "0".repeat(32)));
    assert_eq!(d.download::<u32>(out, 1), [32]);
}
