//! Barriers for a number of threads: they count warps, whatever lanes these have left.

use crate::common::{Device, Params};
use sluice_softgpu::Fault;

/// Runs `body` in one block.  %r1 is the thread, [%r2] its word of shared memory, [s] the first; gives each thread's %r0.
fn run(threads: u32, body: &str) -> Result<Vec<u32>, Fault> {
    let text = format!(
        ".version 9.0\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %d<4>; .shared .align 4 .b8 s[1024];\n\
         ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;\n\
         mov.u32 %r2, s; mad.lo.u32 %r2, %r1, 4, %r2; mov.u32 %r0, 0;\n\
         {body}\nst.global.u32 [%d1], %r0;\nret;\n}}\n"
    );
    let d = Device::new(1);
    let m = d.load(&text);
    let out = d.alloc(4 * u64::from(threads));
    d.launch(&m, "k", [1; 3], [threads, 1, 1], &Params::new().u64(out))?;
    Ok(d.download(out, threads as usize))
}

fn check(threads: u32, body: &str, want: impl Fn(u32) -> u32) {
    let got = run(threads, body).unwrap_or_else(|fault| panic!("{fault}\n{body}"));
    let want: Vec<u32> = (0..threads).map(want).collect();
    assert_eq!(got, want, "{body}");
}

/// Each thread writes its number, passes the barrier, and reads that of the last thread first.
fn exchange(threads: u32, barrier: &str) -> String {
    format!(
        "st.shared.u32 [%r2], %r1; {barrier} sub.u32 %r3, {}, %r1; mov.u32 %r4, s; mad.lo.u32 %r4, %r3, 4, %r4;\n\
         ld.shared.u32 %r0, [%r4];",
        threads - 1
    )
}

#[test]
fn a_last_warp_that_is_not_full_counts_as_a_warp() {
    for barrier in ["bar.sync 1, 64;", "barrier.sync 1, 64;", "barrier.cta.sync.aligned 1, 64;", "bar.sync 1;"] {
        check(48, &exchange(48, barrier), |t| 47 - t);
    }
    check(33, &exchange(33, "bar.sync 1, 64;"), |t| 32 - t);
    check(1, &exchange(1, "bar.sync 1, 32;"), |_| 0);
}

#[test]
fn a_warp_that_lanes_have_left_counts_as_a_warp() {
    // Three of four threads leave, before the others come and after; whoever is left meets the other warp.
    let before = "and.b32 %r5, %r1, 3; setp.ne.u32 %p1, %r5, 0; @%p1 exit;\n";
    let want = |t: u32| if t.is_multiple_of(4) { 96 + (31 - t % 32) / 4 * 4 } else { 0 };
    let read = "xor.b32 %r3, %r1, 31; and.b32 %r3, %r3, 28; mov.u32 %r4, s; mad.lo.u32 %r4, %r3, 4, %r4;\n\
        ld.shared.u32 %r0, [%r4+384];";
    check(128, &format!("{before}st.shared.u32 [%r2], %r1; bar.sync 1, 128; {read}"), want);
    let after = format!(
        "st.shared.u32 [%r2], %r1; and.b32 %r5, %r1, 3; setp.eq.u32 %p1, %r5, 0; @%p1 bra stay;\n\
         mov.u32 %r6, 0; go: add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 500; @%p2 bra go; exit;\n\
         stay: bar.sync 1, 128; {read}"
    );
    check(128, &after, want);
}

#[test]
fn a_warp_arrives_once_however_its_lanes_come() {
    // The lanes of the first warp arrive in two groups, and meet the second warp once in each of three rounds.
    for first in ["bar.arrive", "bar.sync"] {
        let body = format!(
            "mov.u32 %r5, 0; mov.u32 %r6, s; setp.ge.u32 %p1, %r1, 32; @%p1 bra second;\n\
             first: add.u32 %r7, %r5, %r1; st.shared.u32 [%r2], %r7; and.b32 %r8, %r1, 1; setp.eq.u32 %p2, %r8, 0;\n\
             @%p2 bra even; {first} 1, 64; bra next;\neven: {first} 1, 64;\n\
             next: bar.sync 2, 64; add.u32 %r5, %r5, 100; setp.lt.u32 %p3, %r5, 300; @%p3 bra first; bra end;\n\
             second: bar.sync 1, 64; ld.shared.u32 %r7, [%r2+-128]; add.u32 %r0, %r0, %r7; bar.arrive 2, 64;\n\
             add.u32 %r5, %r5, 100; setp.lt.u32 %p3, %r5, 300; @%p3 bra second;\nend:"
        );
        check(64, &body, |t| if t < 32 { 0 } else { 300 + 3 * (t - 32) });
    }
}

#[test]
fn half_a_warp_does_not_stand_for_it() {
    // Of the third warp half comes early; the first two come later, meet without it, and it meets the first afterwards.
    let body = "st.shared.u32 [%r2], %r1; setp.ge.u32 %p1, %r1, 64; and.b32 %r3, %r1, 1; setp.eq.u32 %p2, %r3, 0;\n\
        setp.ge.u32 %p4, %r1, 32; mov.u32 %r5, 0; @%p1 bra third;\n\
        wait: add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 30000; @%p3 bra wait;\n\
        bar.sync 1, 64; mov.u32 %r0, 1; @%p4 bra end; st.shared.u32 [%r2+512], 9; bar.sync 1, 64;\n\
        ld.shared.u32 %r0, [%r2+256]; bra end;\n\
        third: @%p2 bra early;\ngo: add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 90000; @%p3 bra go;\n\
        st.shared.u32 [%r2], 7; bar.sync 1, 64; bra read;\nearly: st.shared.u32 [%r2], 8; bar.sync 1, 64;\n\
        read: ld.shared.u32 %r0, [%r2+256];\nend:";
    check(96, body, |t| match t {
        0..32 => 8 - t % 2,
        32..64 => 1,
        _ => 9,
    });
}

#[test]
fn reductions_count_threads() {
    let left = "setp.ge.u32 %p1, %r1, 40; @%p1 exit; and.b32 %r3, %r1, 1; setp.eq.u32 %p2, %r3, 0;\n";
    for barrier in ["1, 64", "1"] {
        let at = |what: &str| format!("{left}bar.red.{what}");
        let want = |value: u32| move |t: u32| if t < 40 { value } else { 0 };
        check(48, &at(&format!("popc.u32 %r0, {barrier}, %p2;")), want(20));
        check(48, &at(&format!("popc.u32 %r0, {barrier}, !%p1;")), want(40));
        check(48, &at(&format!("and.pred %p3, {barrier}, !%p1; selp.u32 %r0, 5, 6, %p3;")), want(5));
        check(48, &at(&format!("and.pred %p3, {barrier}, %p2; selp.u32 %r0, 5, 6, %p3;")), want(6));
        check(48, &at(&format!("or.pred %p3, {barrier}, %p1; selp.u32 %r0, 5, 6, %p3;")), want(6));
    }
    // In two groups, of which each waits for the other.
    let apart = "and.b32 %r3, %r1, 3; setp.eq.u32 %p2, %r3, 0; setp.lt.u32 %p3, %r1, 40; @%p2 bra some;\n\
        bar.red.popc.u32 %r0, 1, 64, %p3; bra end;\nsome: bar.red.popc.u32 %r0, 1, 64, %p3;\nend:";
    check(48, apart, |_| 40);
}

#[test]
fn what_cannot_complete_or_counts_no_warps_is_told() {
    let text = |threads: u32, body: &str| {
        let fault = run(threads, body).unwrap_err();
        assert_eq!(fault.cuda_code(), 719);
        fault.to_string()
    };
    let place = "in k, block (0,0,0), thread (0,0,0), PTX line 9";
    let stuck = text(48, "bar.sync 1, 96;");
    assert_eq!(stuck, format!("launch failed: barrier 1 cannot complete: 64 of 96 threads have come, {place}"));
    for count in [0, 16, 48] {
        let wrong = text(64, &format!("bar.sync 1, {count};"));
        let why = format!("launch failed: barrier 1 for {count} threads, which are no whole warps, {place}");
        assert_eq!(wrong, why);
    }
    // The halves of a warp wait at different barriers.
    let halves = text(32, "setp.lt.u32 %p1, %r1, 12; @%p1 bar.sync 1, 32; @!%p1 bar.sync 2, 32;");
    let why = "barrier 1 cannot complete: 12 of a warp's 32 threads have come, ";
    assert!(halves.contains(why) && halves.contains(place), "{halves}");
}

#[test]
fn lanes_that_wait_elsewhere_are_not_waited_for_by_their_warp() {
    // The odd lanes are at the barrier, which waits for the even ones; those vote for all of the warp.
    let body = "and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 1; setp.eq.u32 %p2, %r5, 0; @%p1 bra odd;\n\
        vote.sync.ballot.b32 %r0, %p2, -1;\nodd: bar.sync 1;";
    check(64, body, |t| if t % 2 == 0 { 0x5555_5555 } else { 0 });
}

/// Gives its first argument's sum over a warp, and how many of eight predicates hold of a number: all, or none.
const FUNCTIONS: &str = ".func (.param .b32 r) total(.param .b32 a)\n{\n.reg .b32 %r<12>;\n\
    ld.param.u32 %r0, [a]; mov.u32 %r1, %r0; mov.u32 %r2, %r0; mov.u32 %r3, %r0; mov.u32 %r4, %r0; mov.u32 %r5, %r0;\n\
    redux.sync.add.u32 %r6, %r0, -1; sub.u32 %r6, %r6, %r1; sub.u32 %r6, %r6, %r2; add.u32 %r6, %r6, %r3;\n\
    sub.u32 %r6, %r6, %r4; add.u32 %r6, %r6, %r5; add.u32 %r6, %r6, %r0; st.param.b32 [r], %r6; ret;\n}\n\
    .func (.param .b32 r) flags(.param .b32 a)\n{\n.reg .pred %p<8>; .reg .b32 %r<3>;\n\
    ld.param.u32 %r0, [a]; setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %r0, 0; setp.ne.u32 %p2, %r0, 0;\n\
    setp.ne.u32 %p3, %r0, 0; setp.ne.u32 %p4, %r0, 0; setp.ne.u32 %p5, %r0, 0; setp.ne.u32 %p6, %r0, 0;\n\
    setp.ne.u32 %p7, %r0, 0; mov.u32 %r1, 0; bar.warp.sync 0xaaaaaaaa;\n\
    @%p0 add.u32 %r1, %r1, 1;\n@%p1 add.u32 %r1, %r1, 1;\n@%p2 add.u32 %r1, %r1, 1;\n@%p3 add.u32 %r1, %r1, 1;\n\
    @%p4 add.u32 %r1, %r1, 1;\n@%p5 add.u32 %r1, %r1, 1;\n@%p6 add.u32 %r1, %r1, 1;\n@%p7 add.u32 %r1, %r1, 1;\n\
    st.param.b32 [r], %r1; ret;\n}\n";

#[test]
fn lanes_in_different_functions_keep_their_registers_apart() {
    // The even lanes wait in one function for the odd ones, which call another one before it.
    let call = |function: &str, from: &str, to: &str| {
        format!(
            "{{ .param .b32 a; .param .b32 b; st.param.b32 [a], {from}; call (b), {function}, (a); ld.param.b32 {to}, [b]; }}\n"
        )
    };
    let text = format!(
        ".version 9.0\n.target sm_120\n.address_size 64\n{FUNCTIONS}.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>;\nld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x;\n\
         mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; add.u32 %r3, %r1, 100; mov.u32 %r4, 0;\n\
         and.b32 %r2, %r1, 1; setp.eq.u32 %p, %r2, 0; @%p bra join; nanosleep.u32 1;\n{}join:\n{}\
         mad.lo.u32 %r0, %r4, 65536, %r5; st.global.u32 [%d1], %r0;\nret;\n}}\n",
        call("flags", "%r1", "%r4"),
        call("total", "%r3", "%r5"),
    );
    let d = Device::new(1);
    let m = d.load(&text);
    let out = d.alloc(4 * 32);
    d.launch(&m, "k", [1; 3], [32, 1, 1], &Params::new().u64(out)).unwrap();
    let sum = 100 * 32 + 31 * 16;
    let want: Vec<u32> = (0..32).map(|t| sum + if t % 2 == 1 { 8 << 16 } else { 0 }).collect();
    assert_eq!(d.download::<u32>(out, 32), want);
}
