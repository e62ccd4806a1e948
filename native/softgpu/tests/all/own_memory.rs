//! Memory that threads ask for themselves: the heap of `malloc`, the stack of `alloca`.

use crate::common::{Device, Params};
use sluice_softgpu::Fault;

/// Each thread allocates `bytes`, writes its number to the ends, and leaves the address in `out`.
const TAKE: &str = ".version 7.5\n.target sm_75\n.address_size 64\n\
.extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n\
.visible .entry take(.param .u64 out, .param .u64 bytes)\n{\n.reg .pred %p;\n.reg .b32 %r<4>;\n.reg .b64 %d<8>;\n\
ld.param.u64 %d0, [out]; ld.param.u64 %d1, [bytes];\n\
mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r0, %r0, %r1, %r2;\n\
{ .param .b64 n; .param .b64 r; st.param.b64 [n], %d1; call.uni (r), malloc, (n); ld.param.b64 %d2, [r]; }\n\
mad.wide.u32 %d3, %r0, 8, %d0; st.global.u64 [%d3], %d2;\n\
setp.eq.u64 %p, %d2, 0; @%p ret;\n\
st.u32 [%d2], %r0; add.u64 %d4, %d2, %d1; st.u32 [%d4-4], %r0;\nret;\n}\n\
.visible .entry give(.param .u64 from, .param .u64 out)\n{\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n\
ld.param.u64 %d0, [from]; ld.param.u64 %d1, [out];\n\
mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r0, %r0, %r1, %r2;\n\
mad.wide.u32 %d2, %r0, 8, %d0; ld.global.u64 %d3, [%d2]; ld.global.u32 %r3, [%d3];\n\
mad.wide.u32 %d4, %r0, 4, %d1; st.global.u32 [%d4], %r3;\n\
{ .param .b64 p; st.param.b64 [p], %d3; call.uni free, (p); }\nret;\n}\n";

#[test]
fn what_a_kernel_allocates_is_there_for_the_next_until_it_is_freed() {
    let d = Device::with_heap(2, 1 << 20);
    let m = d.load(TAKE);
    assert_eq!(m.kernel("take").unwrap().unsupported, None);
    assert!(m.module().uses_heap());
    let (threads, bytes) = (512, 1000);
    let (pointers, numbers) = (d.alloc(8 * threads), d.alloc(4 * threads));
    for _ in 0..5 {
        d.launch(&m, "take", [4, 1, 1], [128, 1, 1], &Params::new().u64(pointers).u64(bytes)).unwrap();
        let mut at: Vec<u64> = d.download(pointers, threads as usize);
        let heap = d.heap.as_ref().unwrap();
        assert!(at.iter().all(|at| *at >= heap.base() && at + bytes <= heap.base() + heap.bytes() && at % 16 == 0));
        at.sort_unstable();
        assert!(at.windows(2).all(|pair| pair[0] + bytes <= pair[1]));
        d.launch(&m, "give", [4, 1, 1], [128, 1, 1], &Params::new().u64(pointers).u64(numbers)).unwrap();
        assert!(d.download::<u32>(numbers, threads as usize).into_iter().eq(0..threads as u32));
    }
}

#[test]
fn a_heap_that_is_used_up_answers_null() {
    let d = Device::with_heap(2, 1 << 20);
    let m = d.load(TAKE);
    let pointers = d.alloc(8 * 1024);
    d.launch(&m, "take", [8, 1, 1], [128, 1, 1], &Params::new().u64(pointers).u64(4000)).unwrap();
    let at: Vec<u64> = d.download(pointers, 1024);
    let got = at.iter().filter(|at| **at != 0).count();
    assert!((255..=261).contains(&got), "{got} of 4000 bytes each in 1 MiB");
    d.launch(&m, "take", [1, 1, 1], [1, 1, 1], &Params::new().u64(pointers).u64(u64::MAX)).unwrap();
    assert_eq!(d.download::<u64>(pointers, 1), [0]);
}

#[test]
fn without_a_heap_there_is_nothing_to_allocate() {
    let d = Device::new(1);
    let pointers = d.upload(&[1u64]);
    d.launch(&d.load(TAKE), "take", [1, 1, 1], [1, 1, 1], &Params::new().u64(pointers).u64(8)).unwrap();
    assert_eq!(d.download::<u64>(pointers, 1), [0]);
}

#[test]
fn freeing_twice_names_the_thread() {
    let d = Device::with_heap(1, 1 << 20);
    let m = d.load(TAKE);
    let (pointers, numbers) = (d.alloc(8 * 64), d.alloc(4 * 64));
    d.launch(&m, "take", [1, 1, 1], [64, 1, 1], &Params::new().u64(pointers).u64(8)).unwrap();
    let at: Vec<u64> = d.download(pointers, 64);
    d.arena.write(pointers + 8 * 40, &at[3].to_le_bytes()).unwrap();
    let fault = d.launch(&m, "give", [1, 1, 1], [64, 1, 1], &Params::new().u64(pointers).u64(numbers)).unwrap_err();
    assert_eq!(fault.cuda_code(), 719);
    let text = fault.to_string();
    assert!(text.contains(&format!("free({:#x})", at[3])) && text.contains("thread (40,0,0)"), "{text}");
}

/// Recursion to the depth of the lane's number, each level with as many words as its depth, filled before and summed
/// after the deeper level has run.
const DEEP: &str = ".version 7.5\n.target sm_75\n.address_size 64\n\
.visible .func (.param .b32 r) deep(.param .b32 depth)\n{\n.reg .pred %p;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n\
ld.param.b32 %r0, [depth]; mov.u32 %r1, 0; setp.eq.u32 %p, %r0, 0; @%p bra done;\n\
stacksave.u64 %d0; mul.wide.u32 %d1, %r0, 4; alloca.u64 %d2, %d1, 32;\n\
and.b64 %d5, %d2, 31; cvt.u32.u64 %r1, %d5;\n\
mov.u32 %r2, 0;\nfill: mad.wide.u32 %d3, %r2, 4, %d2; st.local.u32 [%d3], %r0; add.u32 %r2, %r2, 1;\n\
setp.lt.u32 %p, %r2, %r0; @%p bra fill;\n\
sub.u32 %r3, %r0, 1;\n\
{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r3; call (b), deep, (a); ld.param.b32 %r4, [b]; }\n\
add.u32 %r1, %r1, %r4; mov.u32 %r2, 0; cvta.local.u64 %d4, %d2;\n\
sum: mad.wide.u32 %d3, %r2, 4, %d4; ld.u32 %r5, [%d3]; add.u32 %r1, %r1, %r5; add.u32 %r2, %r2, 1;\n\
setp.lt.u32 %p, %r2, %r0; @%p bra sum;\nstackrestore.u64 %d0;\n\
done: st.param.b32 [r], %r1; ret;\n}\n\
.visible .entry k(.param .u64 out, .param .u32 rounds)\n{\n.reg .pred %p;\n.reg .b32 %r<8>;\n.reg .b64 %d<4>;\n\
ld.param.u64 %d0, [out]; ld.param.u32 %r2, [rounds]; mov.u32 %r0, %tid.x; mov.u32 %r3, 0;\n\
again:\n{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call (b), deep, (a); ld.param.b32 %r1, [b]; }\n\
add.u32 %r3, %r3, %r1; sub.u32 %r2, %r2, 1; setp.ne.u32 %p, %r2, 0; @%p bra again;\n\
mad.wide.u32 %d1, %r0, 4, %d0; st.global.u32 [%d1], %r3;\nret;\n}\n";

#[test]
fn each_call_has_a_stack_of_its_own() {
    let d = Device::new(1);
    let m = d.load(DEEP);
    assert_eq!(m.kernel("k").unwrap().unsupported, None);
    let out = d.alloc(4 * 64);
    d.launch(&m, "k", [1, 1, 1], [64, 1, 1], &Params::new().u64(out).u32(3)).unwrap();
    for (lane, sum) in d.download::<u32>(out, 64).into_iter().enumerate() {
        let squares: usize = (1..=lane).map(|depth| depth * depth).sum();
        assert_eq!(sum as usize, 3 * squares, "lane {lane}");
    }
}

fn stack(body: &str) -> Result<(), Fault> {
    let text = format!(
        ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry k()\n{{\n.reg .pred %p;\n.reg .b32 %r<4>;\n\
         .reg .b64 %d<4>;\n{body}\nret;\n}}\n"
    );
    let d = Device::new(1);
    d.launch(&d.load(&text), "k", [1, 1, 1], [32, 1, 1], &Params::new()).map(|_| ())
}

#[test]
fn a_stack_ends_where_local_memory_does() {
    stack("alloca.u64 %d0, 500000; st.local.u32 [%d0+499996], %r0;").unwrap();
    stack(
        "mov.u32 %r0, 1000;\nagain: stacksave.u64 %d1; alloca.u64 %d0, 4096; st.local.u32 [%d0], %r0;\n\
         stackrestore.u64 %d1; sub.u32 %r0, %r0, 1; setp.ne.u32 %p, %r0, 0; @%p bra again;",
    )
    .unwrap();
    for body in
        ["alloca.u64 %d0, 600000;", "mov.u64 %d1, -1; alloca.u64 %d0, %d1;", "again: alloca.u64 %d0, 4096; bra again;"]
    {
        let fault = stack(body).unwrap_err();
        let why = "launch failed: the stack of a thread overflowed, in k, block (0,0,0), thread (0,0,0), PTX line 9";
        assert_eq!(fault.to_string(), why, "{body}");
    }
    let fault = stack("mov.u64 %d1, 4096; stackrestore.u64 %d1;").unwrap_err();
    assert!(fault.to_string().contains("stackrestore of 0x1000"), "{fault}");
    let beyond = stack("alloca.u32 %r0, 16; st.local.u32 [%r0+64], %r1;").unwrap_err();
    assert_eq!(beyond.cuda_code(), 700);
}
