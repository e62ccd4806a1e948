//! `mbarrier`: phases by arrivals and by bytes, waited for by token and by parity, as `cuda::barrier` uses them.

use crate::common::{Device, Params};
use sluice_softgpu::Fault;

const THREADS: u32 = 96;

fn run(body: &str) -> Result<Vec<u32>, Fault> {
    let text = format!(
        ".version 9.4\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to)\n{{\n\
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
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0+8], [%r1], 16;", 716),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%d0], [%r1+8], 16;", 716),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [%d0], [%r1], 24;", 716),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [%d0], [%r1], 1024;", 700),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.b64 [%d0+1048576], [%r1], 16;", 700),
        (
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r1+8192], [%r1], 16, [%r2];",
            700,
        ),
        // Of which nothing would be copied: no reason to look at each of its pieces.
        (
            ".reg .b16 %h; mov.b16 %h, 0; cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d0], [%r1], 4294967280, %h;",
            700,
        ),
    ] {
        assert_eq!(run(body).unwrap_err().cuda_code(), code, "{body}");
    }
}

/// Blocks that take others out of the launch and do their work: each adds one to its tile's word of `out`, thread 0
/// counts the blocks that began in the word behind them.
const STEALING: &str = ".version 8.7\n.target sm_120\n.address_size 64\n\
.visible .entry k(.param .u64 out, .param .u32 width, .param .u32 height, .param .u32 tiles)\n{\n.reg .pred %p<8>;\n\
.reg .b32 %r<32>;\n.reg .b64 %d<16>;\n.reg .b128 %q;\n.shared .align 16 .b8 answer[16];\n.shared .align 8 .b64 b;\n\
ld.param.u64 %d0, [out]; ld.param.u32 %r0, [width]; ld.param.u32 %r1, [height]; ld.param.u32 %r2, [tiles];\n\
mov.u32 %r3, %tid.x; setp.ne.u32 %p0, %r3, 0; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;\n\
mul.wide.u32 %d2, %r2, 4; add.u64 %d2, %d2, %d0; mov.u32 %r7, answer; mov.u32 %r8, b; mov.u32 %r9, 0;\n\
@%p0 bra begun; mbarrier.init.shared.b64 [%r8], 1; red.global.add.u32 [%d2], 1;\nbegun: bar.sync 0;\n\
again: mad.lo.u32 %r10, %r6, %r1, %r5; mad.lo.u32 %r10, %r10, %r0, %r4; mul.wide.u32 %d1, %r10, 4; add.u64 %d1, %d1, %d0;\n\
red.global.add.u32 [%d1], 1;\n\
@%p0 bra asked; mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %d3, [%r8], 16;\n\
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r7], [%r8];\nasked:\n\
wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r8], %r9; @!%p1 bra wait; xor.b32 %r9, %r9, 1;\n\
ld.shared.v2.b64 {%d4, %d5}, [%r7]; mov.b128 %q, {%d4, %d5};\n\
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q; bar.sync 0; @!%p2 bra end;\n\
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r4, %r5, %r6, _}, %q;\n\
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r11, %q; setp.ne.u32 %p3, %r11, %r4; @%p3 trap;\n\
clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r11, %q; setp.ne.u32 %p3, %r11, %r5; @%p3 trap;\n\
clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r11, %q; setp.ne.u32 %p3, %r11, %r6; @%p3 trap;\n\
bra again;\nend: ret;\n}\n";

#[test]
fn a_block_takes_others_out_of_the_launch_and_each_is_done_once() {
    let grid = [5, 7, 3];
    let tiles = grid.iter().product::<u32>();
    for threads in [1, 2] {
        let d = Device::new(threads);
        let m = d.load(STEALING);
        assert_eq!(m.kernel("k").unwrap().unsupported, None);
        for cooperative in [false, true] {
            let out = d.upload(&vec![0u32; tiles as usize + 1]);
            let p = Params::new().u64(out).u32(grid[0]).u32(grid[1]).u32(tiles);
            d.launch_with(&m, "k", grid, [64, 1, 1], &p, 0, cooperative).unwrap();
            let seen: Vec<u32> = d.download(out, tiles as usize + 1);
            let (begun, done) = seen.split_last().unwrap();
            assert!(done.iter().all(|n| *n == 64), "{seen:?}");
            // The blocks of a cooperative launch have all begun, so that none is left to take.
            let most = if cooperative { tiles } else { tiles / 2 };
            assert!(*begun >= 1 && *begun <= most && (!cooperative || *begun == tiles), "{begun} of {tiles} began");
        }
    }
}

#[test]
fn a_block_is_its_cluster_at_the_clusters_barrier() {
    // What all threads wrote before they arrived is there for those that have waited, round after round.
    let out = run("mov.u32 %r5, 0; mov.u32 %r10, %cluster_nctaid.x; mov.u32 %r11, %cluster_ctarank;\n\
        again: mad.lo.u32 %r6, %r5, 1000, %r0; st.shared.u32 [%r4], %r6;\n\
        barrier.cluster.arrive.release.aligned; add.u32 %r12, %r5, 1; barrier.cluster.wait.acquire.aligned;\n\
        sub.u32 %r7, 95, %r0; shl.b32 %r7, %r7, 2; add.u32 %r7, %r7, %r1; ld.shared.u32 %r8, [%r7]; add.u32 %r9, %r9, %r8;\n\
        fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait;\n\
        mov.u32 %r5, %r12; setp.lt.u32 %p3, %r5, 5; @%p3 bra again; mad.lo.u32 %r9, %r10, 100000, %r9; add.u32 %r9, %r9, %r11;")
    .unwrap();
    for (thread, sum) in out.into_iter().enumerate() {
        assert_eq!(sum, 100_000 + (0..5).map(|k| 1000 * k + 95 - thread as u32).sum::<u32>(), "thread {thread}");
    }
}

#[test]
fn bulk_copies_leave_bytes_out() {
    let tile = |k: usize| 7 * k as u32;
    // The first and the last word of 64 bytes are not copied; 64 are told to the barrier.
    let out = run(
        "mov.u32 %r5, 77; st.shared.u32 [%r4], %r5; bar.sync 0; @%p1 bra others; mbarrier.init.shared.b64 [%r2], 1;\n\
        mov.u32 %r6, 64; mov.u32 %r7, 4;\n\
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r1], [%d0], %r6, %r7, 4, [%r2];\n\
        mbarrier.arrive.expect_tx.shared.b64 %d6, [%r2], 64;\nothers: bar.sync 0;\n\
        wait: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra wait; ld.shared.u32 %r9, [%r4];",
    )
    .unwrap();
    assert!(out.iter().enumerate().all(|(k, v)| *v == if (1..15).contains(&k) { tile(k) } else { 77 }), "{out:?}");
    // Of every 16 bytes the first two and the last word: two blocks of 16 behind `to`'s first word, which each thread
    // reads back before it is overwritten.
    let out = run(".reg .b16 %h; mov.u16 %h, 0xf003; mov.u32 %r5, 0x55555555; st.global.u32 [%d4], %r5;\n\
        not.b32 %r6, %r0; st.shared.u32 [%r4], %r6; bar.sync 0; @%p1 bra others;\n\
        cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d1], [%r1], 32, %h; cp.async.bulk.commit_group;\n\
        cp.async.bulk.wait_group.read 0;\nothers: bar.sync 0; ld.global.u32 %r9, [%d4];")
    .unwrap();
    for (k, v) in out.into_iter().enumerate() {
        let own = !(k as u32);
        let wanted = match k {
            0 | 4 => 0x5555_0000 | own & 0xffff,
            3 | 7 => own,
            _ => 0x5555_5555,
        };
        assert_eq!(v, wanted, "word {k}");
    }
}

#[test]
fn the_clusters_shared_memory_is_the_blocks() {
    // The first half of the tile is copied to the second, by addresses of the cluster.
    let out = run("st.shared.u32 [%r4], %r0; bar.sync 0; @%p1 bra others; mbarrier.init.shared::cta.b64 [%r2], 1;\n\
        fence.mbarrier_init.release.cluster; add.u32 %r5, %r1, 256;\n\
        mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r2], 128;\n\
        cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r5], [%r1], 128, [%r2];\n\
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2], 1;\nothers: bar.sync 0;\n\
        wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra wait; ld.shared.u32 %r9, [%r4];")
    .unwrap();
    assert!(out.iter().enumerate().all(|(k, v)| *v as usize == if k < 64 { k } else { k - 64 }), "{out:?}");
    let out = run("mapa.shared::cluster.u32 %r5, %r4, 0; st.shared::cluster.u32 [%r5], %r0; cvt.u64.u32 %d5, %r4;\n\
        cvta.shared::cluster.u64 %d5, %d5; mapa.u64 %d5, %d5, 0; getctarank.u64 %r5, %d5; ld.u32 %r9, [%d5];\n\
        add.u32 %r9, %r9, %r5;")
    .unwrap();
    assert!(out.iter().enumerate().all(|(k, v)| *v as usize == k), "{out:?}");
}

/// Each block's numbers update the 64 bytes at `to`, of which each block reads its own copy of those at `from`.
fn reduce(form: &str, from: &[u64; 8], to: &[u64; 8], blocks: u32) -> Vec<u64> {
    let text = format!(
        ".version 9.4\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to)\n{{\n\
         .reg .b32 %r<4>;\n.reg .b64 %d<8>;\n.shared .align 16 .b8 tile[64];\nld.param.u64 %d0, [from]; ld.param.u64 %d1, [to];\n\
         mov.u32 %r0, tile; mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 8, %d0; ld.global.u64 %d3, [%d2];\n\
         shl.b32 %r2, %r1, 3; add.u32 %r2, %r2, %r0; st.shared.u64 [%r2], %d3; bar.sync 0;\n\
         {{.reg .pred %p; setp.ne.u32 %p, %r1, 0; @%p ret;}}\n\
         cp.reduce.async.bulk.{form} [%d1], [%r0], 64; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nret;\n}}\n"
    );
    let d = Device::new(4);
    let m = d.load(&text);
    assert_eq!(m.kernel("k").unwrap().unsupported, None, "{form}");
    let (from, to) = (d.upload(from), d.upload(to));
    d.launch(&m, "k", [blocks, 1, 1], [8, 1, 1], &Params::new().u64(from).u64(to)).unwrap();
    d.download(to, 8)
}

#[test]
fn many_blocks_reduce_into_the_same_memory() {
    const BLOCKS: u32 = 500;
    let global = "global.shared::cta.bulk_group";
    let words: [u64; 8] = std::array::from_fn(|k| ((k as u64 + 1) << 32) | (7 * k as u64 + 3));
    let halves = |a: u64, f: &dyn Fn(u32) -> u32| u64::from(f((a >> 32) as u32)) << 32 | u64::from(f(a as u32));
    let times = |w: u32| w * BLOCKS;
    let sums = reduce(&format!("{global}.add.u32"), &words, &[0; 8], BLOCKS);
    assert_eq!(sums, words.map(|w| halves(w, &times)));
    let sums = reduce(&format!("relaxed.gpu.{global}.add.u64"), &words, &[5; 8], BLOCKS);
    assert_eq!(sums, words.map(|w| 5 + w * u64::from(BLOCKS)));
    let counts = reduce(&format!("{global}.inc.u32"), &[0x0000_0009_ffff_ffff; 8], &[0; 8], BLOCKS);
    assert_eq!(counts, [u64::from(BLOCKS % 10) << 32 | u64::from(BLOCKS); 8]);
    let bits = reduce(&format!("{global}.xor.b64"), &words, &[0; 8], 501);
    assert_eq!(bits, words);
    // Sums of small whole numbers are exact, whatever their order.
    let single = |v: f32| u64::from(v.to_bits()) << 32 | u64::from((-v).to_bits());
    let sums = reduce(&format!("{global}.add.f32"), &[single(3.0); 8], &[0; 8], BLOCKS);
    assert_eq!(sums, [single(3.0 * BLOCKS as f32); 8]);
    let sums = reduce(&format!("{global}.add.f64"), &[0.25f64.to_bits(); 8], &[1f64.to_bits(); 8], BLOCKS);
    assert_eq!(sums, [(1.0 + 0.25 * f64::from(BLOCKS)).to_bits(); 8]);
    let four = |h: u64| h << 48 | h << 32 | h << 16 | h;
    // 1 in half precision 500 times is 500; in bfloats 1 more than 256 is 256 again.
    let sums = reduce(&format!("{global}.add.noftz.f16"), &[four(0x3c00); 8], &[0; 8], BLOCKS);
    assert_eq!(sums, [four(0x5fd0); 8]);
    let sums = reduce(&format!("{global}.add.noftz.bf16"), &[four(0x3f80); 8], &[0; 8], BLOCKS);
    assert_eq!(sums, [four(0x4380); 8]);
    let most = reduce(&format!("{global}.max.bf16"), &[four(0x3f80); 8], &[0x4000_bf80_0000_3f00; 8], 2);
    assert_eq!(most, [0x4000_3f80_3f80_3f80; 8]);
    // Numbers below the smallest normal one are zeros, unless they are to be kept.
    let sums = reduce(&format!("{global}.add.f32"), &[0x0000_0001_8000_0001; 8], &[0x0080_0000_8000_0000; 8], 1);
    assert_eq!(sums, [0x0080_0000_8000_0000; 8]);
    let sums = reduce(&format!("{global}.add.noftz.f32"), &[0x0000_0001_8000_0001; 8], &[0x0080_0000_8000_0000; 8], 1);
    assert_eq!(sums, [0x0080_0001_8000_0001; 8]);
}

#[test]
fn a_reduction_within_the_block_tells_a_barrier() {
    // The first half of the tile is added to the second.
    let out = run("st.shared.u32 [%r4], %r0; bar.sync 0; @%p1 bra others; mbarrier.init.shared::cta.b64 [%r2], 1;\n\
        add.u32 %r5, %r1, 256; mbarrier.arrive.expect_tx.relaxed.cta.shared.b64 _, [%r2], 128;\n\
        cp.reduce.async.bulk.relaxed.cluster.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s32 [%r5], [%r1], 128, [%r2];\n\
        others: bar.sync 0;\nwait: mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p2, [%r2], 0, 1000; @!%p2 bra wait;\n\
        ld.shared.u32 %r9, [%r4];")
    .unwrap();
    assert!(out.iter().enumerate().all(|(k, v)| *v as usize == if k < 64 { k } else { 2 * k - 64 }), "{out:?}");
}

#[test]
fn barriers_of_the_newer_layout_report_nothing() {
    // Each bit of the answer is right by itself: which layout it has, before and after phases; what waiting says, with
    // its report, by parity and by state, of either kind of phases; and what is left of a barrier of the older layout.
    let out = run(".reg .pred %q<4>; .reg .b8 %c<2>; .reg .b16 %h<2>; cvt.u64.u32 %d5, %r2; cvta.shared.u64 %d5, %d5; @%p1 bra end; mbarrier.init.layout::v1.shared.b64 [%r2], 2;\n\
        mbarrier.check_layout.layout::v1.shared::cta.b64 %p2, [%r2]; @%p2 or.b32 %r9, %r9, 1;\n\
        mbarrier.check_layout.layout::v0.b64 %p2, [%d5]; @!%p2 or.b32 %r9, %r9, 2;\n\
        mbarrier.arrive.noComplete.release.cta.shared.b64 %d6, [%r2], 1;\n\
        mbarrier.test_wait.phase_type::primary.shared.b64 %p2, [%r2], %d6; @!%p2 or.b32 %r9, %r9, 4;\n\
        mbarrier.arrive.expect_tx.relaxed.cta.shared.b64 _, [%r2], 32; mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 32;\n\
        setp.eq.u32 %q1, 0, 0; mov.b16 %h1, 0x1234; mov.b16 {%c1, %c0}, %h1;\n\
        mbarrier.test_wait.phase_type::primary.acquire.cta.shared.b64 %p2|%q1, %c1, [%r2], %d6;\n\
        @%p2 or.b32 %r9, %r9, 8; @!%q1 or.b32 %r9, %r9, 16; cvt.u32.u8 %r10, %c1; setp.eq.u32 %q2, %r10, 0; @%q2 or.b32 %r9, %r9, 32;\n\
        setp.eq.u32 %q1, 0, 0; mbarrier.try_wait.parity.phase_type::primary.relaxed.cluster.shared::cta.b64 %p2|%q1, [%r2], 0, 20;\n\
        @%p2 or.b32 %r9, %r9, 64; @!%q1 or.b32 %r9, %r9, 128;\n\
        mbarrier.try_wait.parity.phase_type::conditional.shared.b64 %p2, [%r2], 0; @%p2 or.b32 %r9, %r9, 256;\n\
        mbarrier.test_wait.parity.phase_type::conditional.shared.b64 %p2|_, [%r2], 1; @!%p2 or.b32 %r9, %r9, 512;\n\
        mbarrier.check_layout.layout::v1.shared.b64 %p2, [%r2]; @%p2 or.b32 %r9, %r9, 1024;\n\
        mbarrier.inval.shared.b64 [%r2]; mbarrier.init.layout::v0.shared.b64 [%r2], 3;\n\
        mbarrier.check_layout.layout::v0.shared.b64 %p2, [%r2]; @%p2 or.b32 %r9, %r9, 2048;\n\
        mbarrier.arrive.noComplete.shared.b64 %d6, [%r2], 2; mbarrier.pending_count.layout::v0.b64 %r10, %d6;\n\
        shl.b32 %r10, %r10, 12; or.b32 %r9, %r9, %r10;\n\
        mbarrier.arrive_drop.expect_tx.release.cta.shared.b64 %d6, [%r2], 16; mbarrier.pending_count.b64 %r10, %d6;\n\
        shl.b32 %r10, %r10, 16; or.b32 %r9, %r9, %r10;\nend:")
    .unwrap();
    assert_eq!(out[0], 0x0001_3fff, "{:#x}", out[0]);
}

#[test]
fn forms_of_barriers_that_there_are_not_are_refused() {
    for wrong in [
        "mbarrier.init.parity.shared.b64 [%r2], 1;",
        "mbarrier.init.shared::cluster.b64 [%r2], 1;",
        "mbarrier.inval.layout::v1.shared.b64 [%r2];",
        "mbarrier.arrive.acquire.cta.shared.b64 _, [%r2];",
        "mbarrier.arrive.release.shared.b64 _, [%r2];",
        "mbarrier.arrive.noComplete.relaxed.cta.shared.b64 %d5, [%r2], 1;",
        "mbarrier.arrive.noComplete.shared.b64 %d5, [%r2];",
        "mbarrier.arrive.noComplete.release.cluster.shared.b64 %d5, [%r2], 1;",
        "mbarrier.arrive.noComplete.shared::cluster.b64 _, [%r2], 1;",
        "mbarrier.arrive.shared.expect_tx.b64 %d5, [%r2], 16;",
        "mbarrier.arrive.release.relaxed.cta.shared.b64 %d5, [%r2];",
        "mbarrier.arrive.shared %d5, [%r2];",
        "mbarrier.arrive.shared::cluster.b64 %d5, [%r2];",
        "mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [%r2], 1, %r1;",
        "mbarrier.expect_tx.release.cta.shared.b64 [%r2], 16;",
        "mbarrier.test_wait.release.cta.shared.b64 %p2, [%r2], %d5;",
        "mbarrier.test_wait.shared.b64 %p2|%p3, [%r2], %d5;",
        "mbarrier.test_wait.shared.b64 _, [%r2], %d5;",
        "mbarrier.test_wait.phase_type::primary.shared.b64 _|%p3, [%r2], %d5;",
        "mbarrier.test_wait.phase_type::conditional.shared.b64 %p2, [%r2], %d5;",
        "mbarrier.test_wait.parity.phase_type::conditional.shared.b64 %p2|%p3, [%r2], %r0;",
        "mbarrier.test_wait.shared.b64 %p2, [%r2], %d5, 20;",
        "mbarrier.try_wait.shared::cluster.b64 %p2, [%r2], %d5;",
        "mbarrier.pending_count.layout::v1.b64 %r5, %d5;",
        "mbarrier.check_layout.shared.b64 %p2, [%r2];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%d0], [%r1], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%d0], [%r1], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f32 [%d0], [%r1], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.noftz.f16 [%d0], [%r1], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.exch.b32 [%d0], [%r1], 16;",
        "cp.reduce.async.bulk.relaxed.global.shared::cta.bulk_group.add.u32 [%d0], [%r1], 16;",
        "cp.reduce.async.bulk.relaxed.gpu.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r1], [%r1], 16, [%r2];",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [%r1], [%r1], 16, [%r2];",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.u64 [%r1], [%r1], 16, [%r2];",
    ] {
        let text = format!(
            ".version 9.4\n.target sm_120\n.address_size 64\n.visible .entry k()\n{{\n\
             .reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %d<16>;\n{wrong}\nret;\n}}\n"
        );
        let refused = sluice_softgpu::Module::parse(text.as_bytes()).unwrap().kernel("k").unwrap().unsupported.clone();
        assert!(refused.is_some_and(|e| e.unsupported.is_some_and(|name| wrong.starts_with(&name))), "{wrong}");
    }
}
