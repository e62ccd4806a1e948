//! What goes wrong is reported with CUDA's code, before anything outside the arena is touched.

use crate::common::{Device, Params};
use sluice_softgpu::{Arena, Fault, Launch, LoadedModule, Module, PAGE};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

fn kernel(params: &str, body: &str) -> String {
    format!(
        ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry k({params})\n{{\n.reg .pred %p<8>;\n\
         .reg .b16 %h<8>;\n.reg .b32 %r<16>;\n.reg .b64 %d<16>;\n.reg .f32 %f<8>;\n{body}\n}}\n"
    )
}

fn run(d: &Device, body: &str, at: u64) -> Result<(), Fault> {
    let m = d.load(&kernel(".param .u64 p", &format!("ld.param.u64 %d1, [p];\n{body}\nret;")));
    d.launch(&m, "k", [1, 1, 1], [32, 1, 1], &Params::new().u64(at)).map(|_| ())
}

#[test]
fn wild_addresses_are_error_700() {
    let d = Device::new(1);
    let mapped = d.alloc(PAGE);
    let accesses = [
        "ld.global.u32 %r1, [%d1];",
        "st.global.u32 [%d1], %r1;",
        "ld.u8 %r1, [%d1];",
        "atom.global.add.u32 %r1, [%d1], 1;",
        "ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%d1];",
        "st.u64 [%d1], %d2;",
    ];
    let stack = 0u64;
    let wild = [
        0,
        16,
        mapped + PAGE,
        mapped - PAGE * 100_000,
        (&raw const stack as u64) & !15,
        1 << 47,
        u64::MAX - 15,
        1 << 63,
        (1 << 48) + 4096,
        (1 << 48) + (1 << 44) + (1 << 20),
        (1 << 48) + (2 << 44) + 64,
        (1 << 48) + (3 << 44),
    ];
    for body in accesses {
        for address in wild {
            match run(&d, body, address) {
                Err(fault @ Fault::IllegalAddress { .. }) => assert_eq!(fault.cuda_code(), 700),
                other => panic!("{body} at {address:#x}: {other:?}"),
            }
        }
        run(&d, body, mapped).unwrap();
    }
}

#[test]
fn one_wild_lane_is_enough_and_nothing_is_written() {
    let d = Device::new(1);
    let at = d.alloc(PAGE);
    let body = "mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 256; add.u64 %d3, %d1, %d2; st.global.u32 [%d3], %r1;";
    match run(&d, body, at) {
        Err(fault @ Fault::IllegalAddress { .. }) => {
            let text = fault.to_string();
            let Fault::IllegalAddress { address, write, place, .. } = fault else { return };
            assert_eq!(address, at + PAGE);
            assert!(write);
            assert_eq!((place.kernel.as_str(), place.line, place.block), ("k", 12, [0; 3]));
            assert_eq!(place.thread, [(PAGE / 256) as u32, 0, 0]);
            assert!(text.contains("thread (16,0,0)"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert!(d.download::<u32>(at, 1024).iter().all(|v| *v == 0));
}

#[test]
fn shared_memory_ends_where_it_ends() {
    let d = Device::new(1);
    let body = |offset: u32| {
        format!(
            ".shared .align 4 .b8 s[128];\nmov.u32 %r1, s; st.shared.u32 [%r1+{offset}], %r1; st.shared.u32 [s], %r1;"
        )
    };
    run(&d, &body(124), 0).unwrap();
    assert_eq!(run(&d, &body(128), 0).unwrap_err().cuda_code(), 700);
}

#[test]
fn a_fault_says_what_where_and_who() {
    let d = Device::new(1);
    let at = d.alloc(PAGE);
    // Thread (5,2,0) of block (1,0,0) alone.
    let only = "ld.param.u64 %d1, [p]; .shared .align 8 .b8 s[64]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;\n\
        mov.u32 %r3, %ctaid.x; mad.lo.u32 %r1, %r2, 100, %r1; mad.lo.u32 %r1, %r3, 10000, %r1;\n\
        setp.eq.u32 %p1, %r1, 10205; mov.u32 %r4, s;\n";
    for (body, code, what) in [
        ("@%p1 ld.global.u32 %r5, [%d1+2];", 716, format!("misaligned address {:#x} for an access of 4 bytes", at + 2)),
        ("@%p1 st.shared.u64 [%r4+4], %d1;", 716, "misaligned address 0x4 for an access of 8 bytes".to_string()),
        ("@%p1 ld.shared.u32 %r5, [%r4+64];", 700, "out of bounds: read from shared memory at 0x40 of 64 bytes".into()),
        (
            "@%p1 st.shared.u32 [%r4+-4], %r5;",
            700,
            "out of bounds: write to shared memory at 0xfffffffc of 64 bytes".into(),
        ),
        (
            "@%p1 atom.shared.add.u32 %r5, [%r4+96], 1;",
            700,
            "out of bounds: write to shared memory at 0x60 of 64 bytes".into(),
        ),
        (
            "@%p1 st.global.u32 [%d1+4096], %r5;",
            700,
            format!("out of bounds: write to global address {:#x}", at + PAGE),
        ),
        ("@%p1 trap;", 719, "trap".to_string()),
        ("@%p1 bar.sync 16;", 719, "launch failed: barrier 16 does not exist".to_string()),
        (
            "@%p1 mov.u64 %d2, -1; @%p1 alloca.u64 %d3, %d2;",
            719,
            "launch failed: the stack of a thread overflowed".into(),
        ),
        (
            "mov.u64 %d2, deep; @%p1 call.uni %d2, (), proto;",
            719,
            "launch failed: the stack of a thread overflowed".into(),
        ),
        (
            "mov.u64 %d2, none; @%p1 call.uni %d2, (), proto;",
            719,
            "launch failed: `none` called with another number of arguments than it takes".into(),
        ),
        (
            "mov.u64 %d2, 24; @%p1 call.uni %d2, (), proto;",
            719,
            "launch failed: a call of 0x18, which is no function".into(),
        ),
        (
            "@!%p1 exit; bar.sync 3, 128;",
            719,
            "launch failed: barrier 3 cannot complete: 32 of 128 threads have come".into(),
        ),
    ] {
        let source = format!("{only}{body}\nret;\nproto: .callprototype _ ();");
        let deep = ".version 7.5\n.target sm_75\n.address_size 64\n.func deep() { .local .b8 l[99999]; call deep; ret; }\n\
            .func none(.param .b32 x) { ret; }\n";
        let source = kernel(".param .u64 p", &source).replace(".version 7.5\n.target sm_75\n.address_size 64\n", deep);
        let m = d.load(&source);
        let fault = d.launch(&m, "k", [3, 1, 1], [8, 4, 1], &Params::new().u64(at)).unwrap_err();
        assert_eq!(fault.cuda_code(), code, "{body}: {fault}");
        let line = if body.contains("deep") { 4 } else { 16 };
        let place = format!("in k, block (1,0,0), thread (5,2,0), PTX line {line}");
        let want = if what == "trap" { format!("trap {place}") } else { format!("{what}, {place}") };
        assert_eq!(fault.to_string(), want, "{body}");
    }
}

#[test]
fn a_fault_names_the_line_of_the_program() {
    let d = Device::new(1);
    let body = "ld.param.u64 %d1, [p];\n.loc 1 42 5\nst.global.u32 [%d1], %r1;\n.loc 1 43 1\nret;";
    let m = d.load(&format!("{}.file 1 \"saxpy.cu\"\n", kernel(".param .u64 p", body)));
    let fault = d.launch(&m, "k", [1; 3], [1; 3], &Params::new().u64(16)).unwrap_err();
    assert!(fault.to_string().contains("saxpy.cu:42"), "{fault}");
}

/// The warp stands still: nobody gets past a barrier without it, and who waits for it in a loop is not waited for.
#[test]
fn a_failed_assertion_ends_the_block_though_others_wait_for_its_thread() {
    let d = Device::new(1);
    for wait in ["bar.sync 0;", "$l: bra $l;", "bar.sync 0, 96;"] {
        let text = format!(
            ".version 7.5\n.target sm_75\n.address_size 64\n\
             .extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);\n\
             .global .b8 t[2] = {{120, 0}};\n.visible .entry k()\n{{\n.reg .pred %p<3>; .reg .b32 %r<2>; .reg .b64 %d<2>;\n\
             mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 33; @!%p1 bra wait;\nfail:\nmov.u64 %d1, t;\n\
             {{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s; st.param.b64 [m], %d1;\n\
             st.param.b64 [f], %d1; st.param.b32 [l], 7; st.param.b64 [n], %d1; st.param.b64 [s], 1;\n\
             call.uni __assertfail, (m, f, l, n, s); }}\nwait:\n{wait}\nbra fail;\n}}\n"
        );
        let m = d.load(&text);
        match d.launch(&m, "k", [1; 3], [96, 1, 1], &Params::new()) {
            Err(Fault::Assert { message, .. }) => {
                assert_eq!(message, "x:7: x: block: [0,0,0], thread: [33,0,0] Assertion `x` failed.", "{wait}");
            }
            other => panic!("{wait}: {other:?}"),
        }
    }
}

#[test]
fn a_kernel_that_runs_too_long_is_ended() {
    let d = Device::new(1);
    d.engine.set_limit(Some(Duration::from_millis(50)));
    let m = d.load(&kernel("", "$l: bra $l;"));
    let fault = d.launch(&m, "k", [1; 3], [32, 1, 1], &Params::new()).unwrap_err();
    assert_eq!(fault.cuda_code(), 702);
    assert!(fault.to_string().starts_with("k ran longer"), "{fault}");
}

#[test]
fn misaligned_addresses_are_error_716() {
    let d = Device::new(1);
    let at = d.alloc(PAGE);
    for (body, offset) in [
        ("ld.global.u32 %r1, [%d1];", 2),
        ("st.global.u64 [%d1], %d2;", 4),
        ("ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%d1];", 8),
        ("atom.global.add.u64 %d2, [%d1], 1;", 4),
    ] {
        assert_eq!(run(&d, body, at + offset).unwrap_err().cuda_code(), 716, "{body}");
    }
}

#[test]
fn freed_memory_is_gone() {
    let d = Device::new(1);
    let at = d.upload(&[7u32]);
    run(&d, "ld.global.u32 %r1, [%d1];", at).unwrap();
    d.arena.unmap(at, PAGE).unwrap();
    assert_eq!(run(&d, "ld.global.u32 %r1, [%d1];", at).unwrap_err().cuda_code(), 700);
    d.arena.map(at, PAGE).unwrap();
    assert_eq!(d.download::<u32>(at, 1), [0]);
}

#[test]
fn trap_is_error_719() {
    let d = Device::new(2);
    assert!(matches!(run(&d, "trap;", 0), Err(f @ Fault::Trap { .. }) if f.cuda_code() == 719));
    run(&d, "setp.ne.u64 %p1, %d1, 0; @%p1 trap;", 0).unwrap();
}

#[test]
fn an_instruction_that_is_missing_is_named() {
    let source = kernel(".param .u64 p", "wgmma.fence.sync.aligned;\nret;") + ".visible .entry fine() { ret; }\n";
    let m = Module::parse(source.as_bytes()).unwrap();
    let error = m.kernel("k").unwrap().unsupported.clone().unwrap();
    assert_eq!(error.unsupported.as_deref(), Some("wgmma.fence.sync.aligned"));
    assert_eq!((error.line, error.column), (11, 1));
    assert_eq!(m.kernel("fine").unwrap().unsupported, None);
    let d = Device::new(1);
    let m = d.load(&source);
    let p = Params::new().u64(0);
    match d.launch(&m, "k", [1, 1, 1], [1, 1, 1], &p) {
        Err(fault @ Fault::Unsupported { .. }) => assert_eq!(fault.cuda_code(), 209),
        other => panic!("{other:?}"),
    }
    d.launch(&m, "fine", [1, 1, 1], [1, 1, 1], &Params::new()).unwrap();
}

#[test]
fn textures_fail_the_kernels_that_name_them() {
    let source = ".version 8.0\n.target sm_75\n.address_size 64\n.global .texref picture, other[2];\n\
        .global .samplerref how = { addr_mode_0 = clamp_to_border, filter_mode = nearest };\n.global .surfref surface;\n\
        .visible .entry reads()\n{\n.reg .f32 %f<4>; .reg .s32 %r;\ntex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [picture, {%r}];\nret;\n}\n\
        .visible .entry names()\n{\n.reg .b64 %d;\nmov.u64 %d, surface;\nret;\n}\n\
        .visible .entry takes(.param .texref t, .param .u64 p)\n{\nret;\n}\n.visible .entry fine() { ret; }\n";
    let d = Device::new(1);
    let m = d.load(source);
    for (name, what, line) in
        [("reads", "tex.1d.v4.f32.s32", 10), ("names", ".surfref surface", 16), ("takes", ".param .texref", 19)]
    {
        let error = m.kernel(name).unwrap().unsupported.clone().unwrap();
        assert_eq!((error.unsupported.as_deref(), error.line), (Some(what), line), "{name}");
        let fault = d.launch(&m, name, [1; 3], [1; 3], &Params::new().u64(0).u64(0)).unwrap_err();
        assert_eq!(fault.cuda_code(), 209, "{name}: {fault}");
    }
    d.launch(&m, "fine", [1; 3], [1; 3], &Params::new()).unwrap();
}

#[test]
fn syntax_errors_say_where() {
    let error = Module::parse(kernel("", "add.u32 %r1, %r2 %r3;").as_bytes()).unwrap_err();
    assert_eq!((error.line, error.column), (11, 18));
    let error = Module::parse(kernel("", "add.u32 %r1, %r2, %r99;").as_bytes()).unwrap_err();
    assert!(error.message.contains("%r99"), "{error}");
    assert!(Module::parse(b"\x7fELF").is_err());
    assert!(Module::parse(b"").is_err());
}

#[test]
fn an_instruction_says_what_it_needs() {
    for (line, what) in [
        ("add.f16 %h1;", "`add.f16` takes 3 operands; these are 1"),
        ("fma.rn.f32 %f1, %f2;", "`fma.rn.f32` takes 4 operands; these are 2"),
        ("add.f32 %f1, %f2, %f3, %f4;", "`add.f32` takes 3 operands; these are 4"),
        ("lop3.b32 %r1, %r2, %r3, %r4;", "`lop3.b32` takes 5 to 6 operands; these are 4"),
        ("ld.global.u32 %r1, [%d1], %d2;", "`ld.global.u32` takes 2 operands; these are 3"),
        ("mul.u32 %r1, %r2, %r3;", "`mul.u32` needs .lo or .hi or .wide"),
        ("mad24.s32 %r1, %r2, %r3, %r4;", "`mad24.s32` needs .lo or .hi"),
        ("div.f32 %f1, %f2, %f3;", "`div.f32` needs .approx or .full or .rn or .rz or .rm or .rp"),
        ("fma.f32 %f1, %f2, %f3, %f4;", "`fma.f32` needs .rn or .rz or .rm or .rp"),
        ("ex2.f32 %f1, %f2;", "`ex2.f32` needs .approx"),
        ("shf.l.b32 %r1, %r2, %r3, %r4;", "`shf.l.b32` needs .wrap or .clamp"),
        ("cvt.s32.f32 %r1, %f1;", "`cvt.s32.f32` needs .rni or .rzi or .rmi or .rpi"),
        ("cvt.rn.s32.f32 %r1, %f1;", "`cvt.rn.s32.f32` needs .rni or .rzi or .rmi or .rpi"),
        ("cvt.f32.s32 %f1, %r1;", "`cvt.f32.s32` needs .rn or .rz or .rm or .rp or .rna or .rs"),
        ("cvt.f32.f64 %f1, %d1;", "`cvt.f32.f64` needs .rn or .rz or .rm or .rp or .rna or .rs"),
    ] {
        let error = Module::parse(kernel("", line).as_bytes()).expect_err(line);
        assert_eq!((error.line, error.column, error.message.as_str()), (11, 1, what), "{line}");
    }
    for line in ["cvt.f64.f32 %d1, %f1;", "cvt.f32.f16 %f1, %h1;", "cvt.u16.u32 %h1, %r1;", "cvt.rzi.f32.f32 %f1, %f2;"]
    {
        Module::parse(kernel("", line).as_bytes()).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
}

/// Bytes and halves of registers stand only in instructions that are missing: those are named, and other kernels run.
#[test]
fn a_missing_instruction_with_parts_of_registers_fails_its_kernel_alone() {
    let source =
        kernel("", "vmad.s32.s32.u32.shr7 %r1, %r2.b0, -%r3.h1, %r4;\nret;") + ".visible .entry fine() { ret; }\n";
    let m = Module::parse(source.as_bytes()).unwrap();
    let error = m.kernel("k").unwrap().unsupported.clone().unwrap();
    assert_eq!((error.unsupported.as_deref(), error.line), (Some("vmad.s32.s32.u32.shr7"), 11));
    assert_eq!(m.kernel("fine").unwrap().unsupported, None);
}

#[test]
fn a_fault_calls_the_kernel_as_its_function() {
    let d = Device::new(1);
    let m = d.load(&kernel(".param .u64 p", "trap;").replace("entry k", "entry _Z4failPi"));
    let fault = d.launch(&m, "_Z4failPi", [1; 3], [1; 3], &Params::new().u64(0)).unwrap_err();
    assert_eq!(fault.to_string(), "trap in fail, block (0,0,0), thread (0,0,0), PTX line 11");
}

#[test]
fn an_endless_kernel_can_be_cancelled() {
    for (body, grid) in [("$l: bra $l;", 4u32), ("$l: bar.sync 0; bra $l;", 1), ("$l: @%p1 bra $m; $m: bra $l;", 1)] {
        for cooperative in [false, true] {
            let d = Device::new(2);
            let m = d.load(&kernel("", body));
            let cancel = AtomicBool::new(false);
            let launch = Launch {
                module: &m,
                kernel: "k",
                grid: [grid, 1, 1],
                block: [64, 1, 1],
                dynamic_shared: 0,
                params: &[],
                cooperative,
                heap: None,
            };
            let result = std::thread::scope(|s| {
                s.spawn(|| {
                    std::thread::sleep(Duration::from_millis(30));
                    cancel.store(true, Ordering::Relaxed);
                });
                d.engine.launch(&d.arena, &launch, &cancel)
            });
            assert_eq!(result, Err(Fault::Cancelled));
        }
    }
}

#[test]
fn a_barrier_in_diverged_code_completes() {
    let d = Device::new(1);
    let out = d.alloc(256);
    // Odd lanes wait at one bar.sync, even lanes at another; then each reads what the other wrote.
    let body = ".shared .align 4 .b8 s[256];\nmov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;\n\
        shl.b32 %r3, %r1, 2; mov.u32 %r4, s; add.u32 %r5, %r4, %r3; xor.b32 %r6, %r3, 4; add.u32 %r7, %r4, %r6;\n\
        st.shared.u32 [%r5], %r1;\n\
        @%p1 bra $even;\nbar.sync 0;\nbra $join;\n$even: bar.sync 0;\n$join: ld.shared.u32 %r8, [%r7];\n\
        cvt.u64.u32 %d2, %r3; add.u64 %d3, %d1, %d2; st.global.u32 [%d3], %r8;";
    run(&d, body, out).unwrap();
    for (i, v) in d.download::<u32>(out, 32).into_iter().enumerate() {
        assert_eq!(v, i as u32 ^ 1);
    }
}

#[test]
fn a_barrier_that_cannot_complete_is_an_error() {
    let d = Device::new(1);
    let fault = run(&d, "bar.sync 1, 64;", 0).unwrap_err();
    assert_eq!(fault.cuda_code(), 719);
}

#[test]
fn launches_are_checked() {
    let d = Device::new(1);
    let m = d.load(&kernel(".param .u64 p", "ret;").replace(".param .u64 p)", ".param .u64 p) .maxntid 64, 1, 1"));
    let p = Params::new().u64(0);
    let code = |grid, block, p: &Params, shared| {
        d.launch_with(&m, "k", grid, block, p, shared, false).err().map(|f| f.cuda_code())
    };
    assert_eq!(code([1, 1, 1], [64, 1, 1], &p, 0), None);
    assert_eq!(code([1, 1, 1], [65, 1, 1], &p, 0), Some(1));
    assert_eq!(code([0, 1, 1], [1, 1, 1], &p, 0), Some(1));
    assert_eq!(code([1, 65536, 1], [1, 1, 1], &p, 0), Some(1));
    assert_eq!(code([1, 1, 1], [1, 1, 65], &p, 0), Some(1));
    assert_eq!(code([1, 1, 1], [1, 1, 1], &Params::new(), 0), Some(1));
    assert_eq!(code([1, 1, 1], [1, 1, 1], &p, 1 << 20), Some(1));
    assert!(matches!(d.launch(&m, "nothing", [1; 3], [1; 3], &p), Err(Fault::InvalidLaunch(_))));
}

#[test]
fn endless_recursion_ends() {
    let d = Device::new(1);
    let m = d.load(
        ".version 7.5\n.target sm_75\n.address_size 64\n.func f()\n{\ncall.uni f;\nret;\n}\n\
         .visible .entry k()\n{\ncall.uni f;\nret;\n}\n",
    );
    assert_eq!(d.launch(&m, "k", [1; 3], [32, 1, 1], &Params::new()).unwrap_err().cuda_code(), 719);
}

#[test]
fn arenas_do_not_overlap() {
    let d = Device::new(1);
    assert!(Arena::reserve(d.arena.base(), PAGE).is_err());
    assert!(Arena::reserve(d.arena.base() + PAGE, PAGE).is_err());
    assert!(Arena::reserve(0, PAGE).is_err());
    assert!(Arena::reserve(PAGE + 1, PAGE).is_err());
    assert!(Arena::reserve((1 << 47) - PAGE, 2 * PAGE).is_err());
    assert!(d.arena.map(d.arena.base() - PAGE, PAGE).is_err());
    let mut byte = [0];
    assert!(d.arena.read(d.arena.base(), &mut byte).is_err());
}

#[test]
fn launches_from_several_threads() {
    let d = Device::new(2);
    let m = d.load(&kernel(
        ".param .u64 p",
        "ld.param.u64 %d1, [p]; mov.u32 %r1, %ctaid.x; atom.global.add.u32 %r2, [%d1], 1; ret;",
    ));
    let at = d.alloc(4);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..10 {
                    d.launch(&m, "k", [20, 1, 1], [32, 1, 1], &Params::new().u64(at)).unwrap();
                }
            });
        }
    });
    assert_eq!(d.download::<u32>(at, 1), [4 * 10 * 20 * 32]);
}

fn endless<'a>(m: &'a LoadedModule, kernel: &'a str, grid: u32, threads: u32) -> Launch<'a> {
    let (grid, block) = ([grid, 1, 1], [threads, 1, 1]);
    Launch { module: m, kernel, grid, block, dynamic_shared: 0, params: &[], cooperative: false, heap: None }
}

#[test]
fn an_endless_kernel_stops_within_a_second_whatever_its_shape() {
    let long = format!("$l: {} bra $l;", "sin.approx.f32 %f1, %f1;\n".repeat(3000));
    let apart = "mov.u32 %r1, %tid.x; $l: and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0; @%p1 bra $m;\n\
                 sin.approx.f32 %f1, %f1; $m: add.u32 %r1, %r1, 1; bra $l;";
    for body in [&long, apart] {
        let d = Device::new(2);
        let m = d.load(&kernel("", body));
        let cancel = AtomicBool::new(false);
        let took = std::thread::scope(|s| {
            let running = s.spawn(|| d.engine.launch(&d.arena, &endless(&m, "k", 8, 1024), &cancel));
            std::thread::sleep(Duration::from_millis(300));
            let began = Instant::now();
            cancel.store(true, Ordering::Relaxed);
            assert_eq!(running.join().unwrap(), Err(Fault::Cancelled));
            began.elapsed()
        });
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
}

#[test]
fn a_paused_engine_works_no_further_until_it_goes_on() {
    let d = Device::new(2);
    let m = d.load(&kernel("", "mov.u32 %r1, %ctaid.x; setp.lt.u32 %p1, %r1, 3; @%p1 ret; $l: bra $l;"));
    let cancel = AtomicBool::new(false);
    let asides = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asides);
    d.engine.when_paused(Box::new(move |wait| {
        counted.fetch_add(1, Ordering::Relaxed);
        wait();
    }));
    let pass = || std::thread::sleep(Duration::from_millis(100));
    std::thread::scope(|s| {
        let running = s.spawn(|| d.engine.launch(&d.arena, &endless(&m, "k", 5, 64), &cancel));
        pass();
        let before = d.engine.running();
        assert_eq!((before.len(), before[0].kernel.as_str(), before[0].done, before[0].blocks), (1, "k", 3, 5));
        d.engine.pause(true);
        pass();
        let paused = (d.engine.worked(), d.engine.active());
        pass();
        assert_eq!((d.engine.worked(), d.engine.active()), paused);
        assert_eq!(asides.load(Ordering::Relaxed), 1, "once for the launch, not for each thread");
        d.engine.pause(false);
        pass();
        assert!(d.engine.worked() > paused.0 && d.engine.active() > paused.1);
        d.engine.pause(true);
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(running.join().unwrap(), Err(Fault::Cancelled));
        assert_eq!(d.engine.running(), []);
    });
}

/// What a card tells as SM activity: a kernel of one block works as long as one of many, and keeps one thread busy.
#[test]
fn a_kernel_of_few_blocks_keeps_as_many_threads_active() {
    let d = Device::new(4);
    let m = d.load(&kernel("", "$l: bra $l;"));
    for blocks in [1, 3, 64] {
        let cancel = AtomicBool::new(false);
        std::thread::scope(|s| {
            let running = s.spawn(|| d.engine.launch(&d.arena, &endless(&m, "k", blocks, 32), &cancel));
            // On a busy machine the engine's threads begin one after the other.
            std::thread::sleep(Duration::from_millis(500));
            let (worked, active) = (d.engine.worked(), d.engine.active());
            std::thread::sleep(Duration::from_millis(400));
            // It still runs: what is under way counts.
            let (worked, active) = (d.engine.worked() - worked, d.engine.active() - active);
            // Before anything is asserted: a failure would wait for it.
            cancel.store(true, Ordering::Relaxed);
            assert_eq!(running.join().unwrap(), Err(Fault::Cancelled));
            let share = active.as_secs_f64() / worked.as_secs_f64();
            let wanted = f64::from(blocks.min(4)) / 4.0;
            assert!(worked > Duration::from_millis(200), "{worked:?}");
            assert!((share - wanted).abs() < 0.15, "{blocks} blocks: {share} of the time, not {wanted}");
        });
        let after = d.engine.active();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(d.engine.active(), after, "nothing runs, nothing is active");
    }
}

#[test]
fn a_launch_does_not_wait_for_an_endless_one() {
    let d = Device::new(2);
    let m = d.load(&kernel("", "$l: bra $l;").replace("entry k", "entry endless"));
    let quick = d.load(&kernel("", "ret;"));
    let cancel = AtomicBool::new(false);
    let endless = endless(&m, "endless", 8, 32);
    std::thread::scope(|s| {
        let first = s.spawn(|| d.engine.launch(&d.arena, &endless, &cancel));
        let second = s.spawn(|| d.engine.launch(&d.arena, &endless, &cancel));
        std::thread::sleep(Duration::from_millis(20));
        for _ in 0..5 {
            d.launch(&quick, "k", [8, 1, 1], [32, 1, 1], &Params::new()).unwrap();
        }
        let running = !first.is_finished() && !second.is_finished();
        cancel.store(true, Ordering::Relaxed);
        assert!(running);
    });
}
