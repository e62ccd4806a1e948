//! `mbarrier`: phases by arrivals and by bytes, waited for by token and by parity, as `cuda::barrier` uses them.

use crate::common::{Device, Params};
use sluice_softgpu::Fault;

const THREADS: u32 = 96;

fn run(body: &str) -> Result<Vec<u32>, Fault> {
    let text = format!(
        ".version 8.6\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %d<16>;\n.shared .align 16 .b8 tile[512];\n.shared .align 8 .b64 b;\n\
         ld.param.u64 %d0, [from]; ld.param.u64 %d1, [to]; mov.u32 %r0, %tid.x; mov.u32 %r1, tile;\n\
         mov.u32 %r2, b; shl.b32 %r3, %r0, 2; add.u32 %r4, %r1, %r3; cvt.u64.u32 %d2, %r3; add.u64 %d3, %d0, %d2;\n\
         add.u64 %d4, %d1, %d2; setp.ne.u32 %p1, %r0, 0; mov.u32 %r9, 0;\n{body}\nst.global.u32 [%d4], %r9;\nret;\n}}\n"
    );
    let d = Device::new(1);
    let m = d.load(&text);
    assert_eq!(m.kernel("k").unwrap().unsupported, None);
    let from = d.upload(&(0..128u32).map(|k| 7 * k).collect::<Vec<_>>());
    let to = d.alloc(4 * u64::from(THREADS));
    d.launch(&m, "k", [1; 3], [THREADS, 1, 1], &Params::new().u64(from).u64(to))?;
    Ok(d.download(to, THREADS as usize))
}

#[test]
fn threads_meet_phase_after_phase() {
    // Each phase every thread reads what another has written in it.
    let out = run("@!%p1 mbarrier.init.shared.b64 [%r2], 96; bar.sync 0; mov.u32 %r5, 0;\n\
        again: mad.lo.u32 %r6, %r5, 1000, %r0; st.shared.u32 [%r4], %r6;\n\
        mbarrier.arrive.shared::cta.b64 %d5, [%r2], 1;\n\
        wait: mbarrier.try_wait.shared::cta.b64 %p2, [%r2], %d5; @!%p2 bra wait;\n\
        sub.u32 %r7, 95, %r0; shl.b32 %r7, %r7, 2; add.u32 %r7, %r7, %r1; ld.shared.u32 %r8, [%r7]; add.u32 %r9, %r9, %r8;\n\
        mbarrier.arrive.release.cta.shared.b64 _, [%r2]; and.b32 %r10, 1, 1;\n\
        last: mbarrier.test_wait.parity.shared.b64 %p2, [%r2], %r10; @!%p2 bra last;\n\
        add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 5; @%p3 bra again;\n\
        @!%p1 mbarrier.inval.shared.b64 [%r2];")
    .unwrap();
    for (thread, sum) in out.into_iter().enumerate() {
        assert_eq!(sum, (0..5).map(|k| 1000 * k + 95 - thread as u32).sum::<u32>(), "thread {thread}");
    }
}

#[test]
fn bytes_are_waited_for_as_well() {
    for arrive in [
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 384; mbarrier.arrive.shared.b64 _, [%r2];",
        "mbarrier.arrive.expect_tx.shared.b64 %d6, [%r2], 384;",
    ] {
        let copy = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%d0], 384, [%r2];";
        // The copy comes before the bytes are announced, or after; only one thread arrives.
        for order in [format!("{copy} {arrive}"), format!("{arrive} {copy}")] {
            let out = run(&format!(
                "@%p1 bra others; mbarrier.init.shared.b64 [%r2], 1; {order}\nothers: bar.sync 0;\n\
                 wait: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra wait; ld.shared.u32 %r9, [%r4];"
            ))
            .unwrap();
            assert!(out.iter().enumerate().all(|(k, v)| *v == 7 * k as u32), "{order}: {out:?}");
        }
    }
    let out = run("mbarrier.init.shared.b64 [%r2], 97; bar.sync 0; cp.async.ca.shared.global [%r4], [%d3], 4;\n\
        cp.async.mbarrier.arrive.noinc.shared.b64 [%r2]; @!%p1 mbarrier.arrive.shared.b64 %d5, [%r2];\n\
        @!%p1 mbarrier.pending_count.b64 %r9, %d5;\n\
        wait: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra wait; ld.shared.u32 %r8, [%r4];\n\
        @%p1 mov.u32 %r9, %r8;")
    .unwrap();
    assert!((1..=96).contains(&out[0]));
    assert!(out[1..].iter().enumerate().all(|(k, v)| *v == 7 * (k as u32 + 1)));
}

#[test]
fn who_drops_out_is_not_waited_for() {
    let out = run("@!%p1 mbarrier.init.shared.b64 [%r2], 96; bar.sync 0; setp.lt.u32 %p3, %r0, 64;\n\
        @%p3 mbarrier.arrive_drop.shared.b64 %d5, [%r2]; @%p3 bra end; mov.u32 %r5, 3;\n\
        again: mbarrier.arrive.shared.b64 %d5, [%r2];\nwait: mbarrier.test_wait.shared.b64 %p2, [%r2], %d5; @!%p2 bra wait;\n\
        add.u32 %r9, %r9, 1; sub.u32 %r5, %r5, 1; setp.ne.u32 %p2, %r5, 0; @%p2 bra again;\nend:")
    .unwrap();
    assert!(out.iter().enumerate().all(|(k, v)| *v == if k < 64 { 0 } else { 3 }), "{out:?}");
}

#[test]
fn copies_and_barriers_are_checked_too() {
    for (body, code) in [
        ("mbarrier.init.shared.b64 [%r2+4], 1;", 716),
        ("mbarrier.arrive.shared.b64 _, [%r2+8192];", 700),
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%d0], 1024, [%r2];", 700),
        ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%d0], 24, [%r2];", 716),
        ("cp.async.bulk.global.shared::cta.bulk_group [%d0+8], [%r1], 16;", 716),
    ] {
        assert_eq!(run(body).unwrap_err().cuda_code(), code, "{body}");
    }
}
