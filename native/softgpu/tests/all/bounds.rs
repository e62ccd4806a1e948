//! No program reads or writes outside what is checked, and none takes the memory of the process that runs it.

use crate::common::{Device, Params, Random};
use sluice_softgpu::{Fault, Module, PAGE};

fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q)\n{{\n\
         .reg .pred %p<4>;\n.reg .b16 %h<16>;\n.reg .b32 %r<32>;\n.reg .b64 %d<32>;\n.shared .align 16 .b8 s[512];\n\
         ld.param.u64 %d1, [p]; ld.param.u64 %d2, [q];\n{body}\nret;\n}}\n"
    )
}

fn run(d: &Device, body: &str, p: u64, q: u64) -> Result<(), Fault> {
    let m = d.load(&kernel(body));
    d.launch(&m, "k", [1; 3], [32, 1, 1], &Params::new().u64(p).u64(q)).map(|_| ())
}

/// Registers with this thread's place in shared memory and in global memory, both already used by a load.
const USED: &str = "mov.u32 %r5, %tid.x; shl.b32 %r4, %r5, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r4;\n\
    st.shared.u32 [%r3], %r5; ld.shared.u32 %r0, [%r3]; mov.u32 %r6, %r3; cvta.shared.u64 %d6, %d6;\n\
    mul.wide.u32 %d3, %r5, 4; add.u64 %d3, %d1, %d3; ld.global.u32 %r1, [%d3]; mov.u64 %d4, %d3;\n\
    cvta.global.u64 %d5, %d4;";

#[test]
fn another_offset_is_another_check() {
    let d = Device::new(1);
    let at = d.alloc(PAGE);
    for (load, code) in [
        ("ld.shared.u32 %r7, [%r6+512];", 700),
        ("ld.shared.u32 %r7, [%r3+512];", 700),
        ("ld.shared.u32 %r7, [%r3+2000000];", 700),
        ("ld.shared.u32 %r7, [%r6+2];", 716),
        ("ld.shared.u32 %r7, [%r3+2];", 716),
        ("ld.shared.u32 %r7, [%r6+-4];", 700),
        ("ld.global.u32 %r7, [%d4+4096];", 700),
        ("ld.global.u32 %r7, [%d5+4096];", 700),
        ("ld.global.u32 %r7, [%d3+2000000];", 700),
        ("ld.global.u32 %r7, [%d3+1073741824];", 700),
        ("ld.global.u32 %r7, [%d4+1];", 716),
        ("ld.global.u32 %r7, [%d4+-4];", 700),
    ] {
        let fault = run(&d, &format!("{USED}\n{load} st.global.u32 [%d3], %r7;"), at, 0).unwrap_err();
        assert_eq!(fault.cuda_code(), code, "{load}: {fault}");
    }
    run(&d, &format!("{USED}\nld.shared.u32 %r7, [%r6+384]; ld.global.u32 %r8, [%d5+3968];"), at, 0).unwrap();
}

/// Accesses of every kind along an allocation of any length: all those inside are made, the first one behind its last byte
/// is not, and the thread that wanted it is named.
#[test]
fn the_last_byte_of_an_allocation_is_its_last() {
    let d = Device::new(2);
    let mut r = Random::new(23);
    for (size, access) in [
        (1, "st.global.u8 [%d3], %r5;"),
        (2, "ld.global.u16 %h1, [%d3]; st.global.u16 [%d3], %h1;"),
        (4, "ld.global.u32 %r7, [%d3]; add.u32 %r7, %r7, 1; st.global.u32 [%d3], %r7;"),
        (4, "atom.global.add.u32 %r7, [%d3], 1;"),
        (4, "ld.u32 %r7, [%d3]; st.u32 [%d3], %r7;"),
        (8, "st.global.u64 [%d3], %d1;"),
        (8, "ld.global.v2.u32 {%r7, %r8}, [%d3]; st.global.v2.u32 [%d3], {%r8, %r7};"),
        (8, "atom.global.exch.b64 %d4, [%d3], %d1;"),
        (16, "ld.global.v4.u32 {%r7, %r8, %r9, %r10}, [%d3];"),
        (16, "st.global.v2.u64 [%d3], {%d1, %d3};"),
    ] {
        let text = format!(
            "mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ntid.x; mov.u32 %r1, %tid.x; mad.lo.u32 %r5, %r5, %r6, %r1;\n\
             mul.wide.u32 %d3, %r5, {size}; add.u64 %d3, %d1, %d3; cvt.u32.u64 %r2, %d2;\n\
             setp.ge.u32 %p1, %r5, %r2; @%p1 bra out;\n{access}\nout:"
        );
        let m = d.load(&kernel(&text));
        for _ in 0..12 {
            let bytes = 1 + (r.bits() >> 20) % [100, 600, 5000, 40_000][(r.bits() >> 20) as usize % 4];
            let (at, fits) = (d.alloc(bytes), bytes / size);
            let go = |threads: u64| {
                let grid = [threads.div_ceil(64).max(1) as u32, 1, 1];
                d.launch(&m, "k", grid, [64, 1, 1], &Params::new().u64(at).u64(threads))
            };
            go(fits).unwrap_or_else(|fault| panic!("{access} {fits} times in {bytes} bytes: {fault}"));
            let Err(Fault::IllegalAddress { address, place, .. }) = go(fits + 1) else {
                panic!("{access}: one more than {bytes} bytes hold was let through")
            };
            assert_eq!(
                (address, u64::from(place.block[0] * 64 + place.thread[0])),
                (at + fits * size, fits),
                "{access}"
            );
        }
    }
}

/// A copy that reads fewer bytes than it writes reads no others, and one that goes past its end by a whole byte is refused.
#[test]
fn copies_read_no_byte_more_than_they_say() {
    let d = Device::new(1);
    let (source, out) = (d.upload(&[1u8, 2, 3, 4, 5]), d.alloc(16));
    let text = |bytes: u32| {
        let body = format!(
            "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra out;\n\
             cp.async.ca.shared.global [s], [%d1], 16, {bytes}; cp.async.wait_all;\n\
             ld.shared.v2.u64 {{%d3, %d4}}, [s]; st.global.v2.u64 [%d2], {{%d3, %d4}};\nout:"
        );
        kernel(&body).replace("sm_75", "sm_80")
    };
    let go = |bytes| {
        d.launch(&d.load(&text(bytes)), "k", [1; 3], [32, 1, 1], &Params::new().u64(source).u64(out)).map(|_| ())
    };
    go(5).unwrap();
    assert_eq!(d.download::<u8>(out, 16), [1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let Err(Fault::IllegalAddress { address, .. }) = go(6) else { panic!("a sixth byte was read") };
    assert_eq!(address, source + 5);
    go(0).unwrap();
    assert_eq!(d.download::<u8>(out, 16), [0; 16]);
}

/// Loads of a random program.
const EACH: usize = 8;

/// Loads through registers and copies of them, at offsets that were checked or not: values, or a fault where one is due.
#[test]
fn random_loads_are_made_or_refused() {
    let d = Device::new(1);
    let mut r = Random::new(11);
    let bytes: Vec<u8> = (0..PAGE as usize).map(|k| ((k * 151) >> 3) as u8).collect();
    let (table, out) = (d.upload(&bytes), d.alloc(32 * 8 * 8));
    let mut refused = 0;
    for round in 0..60 {
        let mut pick = |n: u64| (r.bits() >> 20) % n;
        // How far apart the lanes lie, and from where they count.
        let step = [0, 1, 2, 4, 8, 12][pick(6) as usize];
        let wild = pick(3) == 0;
        let mut text = format!(
            "mov.u32 %r5, %tid.x; mul.lo.u32 %r6, %r5, {step}; mov.u32 %r7, s; add.u32 %r8, %r6, %r7;\n\
             mul.wide.u32 %d3, %r5, {step}; add.u64 %d3, %d1, %d3; mul.wide.u32 %d8, %r5, 64; add.u64 %d8, %d2, %d8;\n\
             mov.u32 %r10, 0; fill: add.u64 %d9, %d1, %d10; mov.u32 %r12, s; add.u32 %r12, %r12, %r10;\n\
             cvt.u64.u32 %d10, %r10; add.u64 %d9, %d1, %d10; ld.global.u32 %r11, [%d9]; st.shared.u32 [%r12], %r11;\n\
             add.u32 %r10, %r10, 4; setp.lt.u32 %p1, %r10, 512; @%p1 bra fill;\nbar.sync 0;\n"
        );
        let mut due = Vec::new();
        let mut want = Vec::new();
        for k in 0..EACH {
            let shared = pick(2) == 0;
            let length = if shared { 512 } else { PAGE as i64 };
            let size = [1i64, 2, 4, 8][pick(4) as usize];
            let offset = match pick(if wild { 8 } else { 4 }) {
                0 => 0,
                1..=3 => pick((length as u64 - 31 * step - 8) / 8) as i64 * 8 + if pick(4) == 0 { size } else { 0 },
                4 => length - 8,
                5 => pick(16) as i64,
                6 => [1 << 20, 1 << 30, i64::from(i32::MAX) - 7][pick(3) as usize],
                _ => -(pick(4) as i64) * 4,
            };
            let copied = pick(3);
            let (space, base) = if shared { ("shared", "%r8") } else { ("global", "%d3") };
            let base = match (copied, shared) {
                (0, _) => base.to_string(),
                (_, true) => {
                    text += &format!("mov.u32 %r{}, %r8;\n", 13 + k);
                    format!("%r{}", 13 + k)
                }
                (_, false) => {
                    text += &format!("cvta.global.u64 %d{}, %d3;\n", 12 + k);
                    format!("%d{}", 12 + k)
                }
            };
            text += &format!("ld.{space}.u{} %d{}, [{base}+{offset}];\n", 8 * size, 20 + k);
            let mut values = [0u64; 32];
            for (lane, value) in values.iter_mut().enumerate() {
                let lane = lane as i64;
                let at = lane * step as i64 + offset;
                if at % size != 0 {
                    due.push(716);
                } else if at < 0 || at + size > length {
                    due.push(700);
                } else {
                    *value = (0..size as usize).rev().fold(0, |v, b| v << 8 | u64::from(bytes[at as usize + b]));
                }
            }
            want.push(values);
        }
        for k in 0..EACH {
            text += &format!("st.global.u64 [%d8+{}], %d{};\n", 8 * k, 20 + k);
        }
        match run(&d, &text, table, out) {
            Ok(()) => {
                assert!(due.is_empty(), "round {round}: no fault\n{text}");
                let got = d.download::<u64>(out, 32 * EACH);
                for (at, got) in got.into_iter().enumerate() {
                    assert_eq!(got, want[at % EACH][at / EACH], "round {round}, lane {}\n{text}", at / EACH);
                }
            }
            Err(fault) => {
                assert!(due.contains(&fault.cuda_code()), "round {round}: {fault}\n{text}");
                refused += 1;
            }
        }
    }
    assert!((8..52).contains(&refused), "{refused}");
}

#[test]
fn offsets_that_no_address_has_are_refused_where_they_stand() {
    for (body, column) in [
        ("ld.param.u64 %d3, [p+64];", 1),
        ("ld.param.u64 %d3, [q+1];", 1),
        ("ld.param.u64 %d3, [p+100000000];", 1),
        ("ld.param.u64 %d3, [p+-8];", 1),
        ("mov.u32 %r1, 0; ld.param.v2.u64 {%d3, %d4}, [q];", 17),
        ("ld.global.u32 %r1, [%d1+4294967296];", 1),
        ("st.global.u32 [%d1+4294967296], %r1;", 1),
        ("ld.global.u32 %r1, [%d1+-2147483649];", 1),
        ("atom.global.add.u32 %r1, [%d1+2147483648], 1;", 1),
    ] {
        let error = Module::parse(kernel(body).as_bytes()).unwrap_err();
        assert_eq!((error.line, error.column), (12, column), "{body}: {error}");
    }
    let d = Device::new(1);
    let at = d.alloc(PAGE);
    run(&d, "ld.param.v2.u64 {%d3, %d4}, [p]; ld.param.u32 %r1, [q+4];", at, 0).unwrap();
    assert_eq!(run(&d, "ld.global.u32 %r1, [4294967296];", at, 0).unwrap_err().cuda_code(), 700);
}

#[test]
fn what_does_not_fit_the_process_is_refused_before_it_begins() {
    let d = Device::new(4);
    let launch = |bytes: u32, grid: u32, threads: u32, cooperative: bool| {
        let m = d.load(&kernel(&format!(".local .align 8 .b8 l[{bytes}];\nst.local.u32 [l], %r1;")));
        let p = Params::new().u64(0).u64(0);
        d.launch_with(&m, "k", [grid, 1, 1], [threads, 1, 1], &p, 0, cooperative).err().map(|fault| fault.cuda_code())
    };
    assert_eq!(launch(1 << 20, 1, 32, false), Some(701));
    assert_eq!(launch(512 << 10, 1, 1024, false), Some(701));
    assert_eq!(launch(512 << 10, 1, 32, false), None);
    assert_eq!(launch(64 << 10, 64, 1024, true), Some(701));
    // Four at a time would be too much, one after the other is not.
    assert_eq!(launch(128 << 10, 4, 1024, false), None);
}

#[test]
fn blocks_that_wait_for_each_other_meet() {
    let d = Device::new(2);
    let text = "atom.global.add.u32 %r1, [%d1], 1; mov.u32 %r2, %nctaid.x;\n\
        again: ld.volatile.global.u32 %r3, [%d1]; setp.lt.u32 %p1, %r3, %r2; @%p1 bra again;\n\
        atom.global.add.u32 %r1, [%d1+4], 1;";
    let m = d.load(&kernel(text));
    for blocks in [4, 12] {
        let at = d.upload(&[0u32; 2]);
        d.launch(&m, "k", [blocks, 1, 1], [1, 1, 1], &Params::new().u64(at).u64(0)).unwrap();
        assert_eq!(d.download::<u32>(at, 2), [blocks; 2]);
    }
}

#[test]
fn a_function_may_be_called_whose_address_another_kernel_took() {
    let d = Device::new(1);
    let text = ".version 8.0\n.target sm_75\n.address_size 64\n\
        .func (.param .b32 r) three(.param .b32 a)\n{\n.reg .b32 %r<2>;\nld.param.b32 %r0, [a]; mul.lo.u32 %r0, %r0, 3;\n\
        st.param.b32 [r], %r0; ret;\n}\n\
        .visible .entry take(.param .u64 p)\n{\n.reg .b64 %d<4>;\nld.param.u64 %d0, [p]; mov.u64 %d1, three;\n\
        st.global.u64 [%d0], %d1; ret;\n}\n\
        .visible .entry k(.param .u64 p)\n{\n.reg .b64 %d<4>; .reg .b32 %r<4>;\nld.param.u64 %d0, [p];\n\
        ld.global.u64 %d1, [%d0]; mov.u32 %r0, 14;\n\
        { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0;\nproto: .callprototype (.param .b32 _) _ (.param .b32 _);\n\
        call (b), %d1, (a), proto; ld.param.b32 %r1, [b]; }\nst.global.u32 [%d0+8], %r1; ret;\n}\n";
    let m = d.load(text);
    let at = d.upload(&[0u64; 2]);
    for name in ["take", "k"] {
        d.launch(&m, name, [1; 3], [1; 3], &Params::new().u64(at)).unwrap();
    }
    assert_eq!(d.download::<u64>(at, 2)[1], 42);
}

#[test]
fn eight_numbers_at_once() {
    let d = Device::new(1);
    let (from, to) = (d.upload(&(0..256u32).collect::<Vec<_>>()), d.alloc(1024));
    let body = "mov.u32 %r0, %tid.x; mul.wide.u32 %d3, %r0, 32; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;\n\
        ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d1];\n\
        st.global.v8.b32 [%d2], {%r8, %r7, %r6, %r5, %r4, %r3, %r2, %r1};";
    run(&d, body, from, to).unwrap();
    for (at, got) in d.download::<u32>(to, 256).into_iter().enumerate() {
        assert_eq!(got as usize, at / 8 * 8 + 7 - at % 8);
    }
    assert_eq!(run(&d, body, from + 16, to).unwrap_err().cuda_code(), 716);
}
