//! `.version` and `.target`: what there is of them, and what an instruction asks for.

use sluice_softgpu::{Module, PtxError};

/// The lowest `.version` and `.target` with which NVIDIA's assembler (CUDA 13.5) takes each instruction.
const MEASURED: &[(&str, u32, u32)] = &[
    ("add.rn.f16 %h0,%h1,%h2", 42, 53),
    ("add.rn.f16x2 %r0,%r1,%r2", 42, 53),
    ("abs.f16 %h0,%h1", 65, 53),
    ("set.lt.u32.f16 %r0,%h1,%h2", 65, 53),
    ("min.f16 %h0,%h1,%h2", 70, 80),
    ("max.NaN.f16x2 %r0,%r1,%r2", 70, 80),
    ("fma.rn.bf16 %h0,%h1,%h2,%h3", 70, 80),
    ("fma.rn.bf16x2 %r0,%r1,%r2,%r3", 70, 80),
    ("add.rn.bf16 %h0,%h1,%h2", 78, 90),
    ("add.rn.bf16x2 %r0,%r1,%r2", 78, 90),
    ("add.rn.f32.f16 %f0,%h1,%f2", 86, 100),
    ("sub.rn.f32.bf16 %f0,%h1,%f2", 86, 100),
    ("add.rn.f32x2 %d0,%d1,%d2", 86, 100),
    ("mul.rn.f32x2 %d0,%d1,%d2", 86, 100),
    ("add.u16x2 %r0,%r1,%r2", 80, 90),
    ("add.s16x2 %r0,%r1,%r2", 80, 90),
    ("fma.rn.relu.f16 %h0,%h1,%h2,%h3", 70, 80),
    ("fma.rn.relu.bf16x2 %r0,%r1,%r2,%r3", 70, 80),
    ("min.relu.s32 %r0,%r1,%r2", 80, 90),
    ("min.NaN.f32 %f0,%f1,%f2", 70, 80),
    ("max.xorsign.abs.f32 %f0,%f1,%f2", 72, 86),
    ("min.xorsign.abs.f16 %h0,%h1,%h2", 72, 86),
    ("tanh.approx.f32 %f0,%f1", 70, 75),
    ("tanh.approx.f16 %h0,%h1", 70, 75),
    ("ex2.approx.f16 %h0,%h1", 70, 75),
    ("ex2.approx.f16x2 %r0,%r1", 70, 75),
    ("dp4a.u32.u32 %r0,%r1,%r2,%r3", 50, 61),
    ("dp2a.lo.u32.u32 %r0,%r1,%r2,%r3", 50, 61),
    ("lop3.b32 %r0,%r1,%r2,%r3,0x11", 43, 50),
    ("shf.l.wrap.b32 %r0,%r1,%r2,%r3", 31, 32),
    ("fns.b32 %r0,%r1,%r2,%r3", 60, 30),
    ("bmsk.clamp.b32 %r0,%r1,%r2", 76, 70),
    ("szext.clamp.u32 %r0,%r1,%r2", 76, 70),
    ("cvt.rn.bf16.f32 %h0,%f1", 70, 80),
    ("cvt.rz.bf16.f32 %h0,%f1", 70, 80),
    ("cvt.rn.f16x2.f32 %r0,%f1,%f2", 70, 80),
    ("cvt.rn.bf16.s32 %h0,%r1", 78, 90),
    ("cvt.rni.s32.bf16 %r0,%h1", 78, 90),
    ("cvt.rn.tf32.f32 %r0,%f1", 78, 90),
    ("cvt.rz.tf32.f32 %r0,%f1", 78, 90),
    ("cvt.rn.satfinite.e4m3x2.f32 %h0,%f1,%f2", 78, 89),
    ("cvt.rn.satfinite.e5m2x2.f16x2 %h0,%r1", 78, 89),
    ("cvt.rn.satfinite.f16.f32 %h0,%f1", 81, 70),
    ("cvt.rna.satfinite.tf32.f32 %r0,%f1", 81, 80),
    ("cvt.rn.satfinite.bf16.f32 %h0,%f1", 81, 80),
    ("cvta.param.u64 %d0,%d1", 77, 70),
    ("isspacep.param %p0,%d0", 77, 70),
    ("ld.global.nc.u32 %r0,[%d1]", 31, 32),
    ("ld.weak.global.u32 %r0,[%d1]", 60, 70),
    ("st.weak.global.u32 [%d1],%r0", 60, 70),
    ("ld.mmio.relaxed.sys.global.u32 %r0,[%d1]", 82, 70),
    ("st.mmio.relaxed.sys.global.u32 [%d1],%r0", 82, 70),
    ("ld.global.v8.b32 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7},[%d1]", 88, 100),
    ("st.global.v8.b32 [%d1],{%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}", 88, 100),
    ("ld.global.v4.b64 {%d2,%d3,%d4,%d5},[%d1]", 88, 100),
    ("st.global.v4.b64 [%d1],{%d2,%d3,%d4,%d5}", 88, 100),
    ("ld.global.L1::no_allocate.u32 %r0,[%d1]", 74, 70),
    ("ld.global.L2::128B.u32 %r0,[%d1]", 74, 75),
    ("ld.global.L2::cache_hint.u32 %r0,[%d1],%d2", 74, 80),
    ("st.global.L2::cache_hint.u32 [%d1],%r0,%d2", 74, 80),
    ("atom.relaxed.gpu.global.add.u32 %r0,[%d1],%r2", 60, 70),
    ("atom.acquire.gpu.global.add.u32 %r0,[%d1],%r2", 60, 70),
    ("barrier.cluster.arrive", 78, 90),
    ("barrier.cluster.wait", 78, 90),
    ("isspacep.shared::cluster %p0,%d0", 78, 90),
    ("atom.shared::cluster.add.u32 %r0,[%d1],%r2", 78, 90),
    ("atom.cta.global.add.u32 %r0,[%d1],%r2", 50, 60),
    ("atom.gpu.global.add.u32 %r0,[%d1],%r2", 50, 60),
    ("atom.global.add.f64 %d0,[%d1],%d2", 50, 60),
    ("red.global.add.f64 [%d1],%d2", 50, 60),
    ("atom.global.add.noftz.f16x2 %r0,[%d1],%r2", 62, 60),
    ("atom.global.add.noftz.f16 %h0,[%d1],%h2", 63, 70),
    ("atom.global.add.noftz.bf16 %h0,[%d1],%h2", 78, 90),
    ("atom.global.add.noftz.bf16x2 %r0,[%d1],%r2", 78, 90),
    ("atom.global.v2.f32.add {%f0,%f1},[%d1],{%f2,%f3}", 81, 90),
    ("red.global.v2.f32.add [%d1],{%f2,%f3}", 81, 90),
    ("atom.global.add.noftz.f32 %f0,[%d1],%f2", 94, 90),
    ("red.global.add.noftz.v2.f32 [%d1],{%f2,%f3}", 94, 90),
    ("atom.global.cas.b16 %h0,[%d1],%h2,%h3", 63, 70),
    ("createpolicy.fractional.L2::evict_last.b64 %d0,1.0", 74, 80),
    ("applypriority.global.L2::evict_normal [%d1],128", 74, 80),
    ("alloca.u64 %d0,16", 73, 52),
    ("stacksave.u64 %d0", 73, 52),
    ("fence.acq_rel.gpu", 60, 70),
    ("fence.sc.cta", 60, 70),
    ("fence.proxy.alias", 75, 70),
    ("fence.proxy.async", 80, 90),
    ("fence.mbarrier_init.release.cluster", 80, 90),
    ("cp.async.ca.shared.global [%r1],[%d1],16", 70, 80),
    ("cp.async.commit_group", 70, 80),
    ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1],[%d1],%r2,[%r3]", 80, 90),
    ("cp.async.bulk.global.shared::cta.bulk_group [%d1],[%r1],%r2", 80, 90),
    ("mbarrier.init.shared.b64 [%r1],%r2", 70, 80),
    ("mbarrier.arrive.shared.b64 %d0,[%r1]", 70, 80),
    ("mbarrier.test_wait.parity.shared.b64 %p0,[%r1],%r0", 71, 80),
    ("mbarrier.try_wait.shared.b64 %p0,[%r1],%d0", 78, 90),
    ("mbarrier.arrive.expect_tx.shared.b64 %d0,[%r1],%r2", 80, 90),
    ("mbarrier.expect_tx.relaxed.cta.shared.b64 [%r1],%r2", 80, 90),
    ("mbarrier.inval.shared::cta.b64 [%r1]", 78, 80),
    ("mbarrier.arrive.release.cta.shared.b64 %d0,[%r1]", 80, 80),
    ("mbarrier.arrive.release.cluster.shared.b64 %d0,[%r1]", 80, 90),
    ("mbarrier.arrive.shared::cluster.b64 _,[%r1]", 80, 90),
    ("mbarrier.arrive.relaxed.cta.shared.b64 %d0,[%r1]", 86, 90),
    ("mbarrier.test_wait.acquire.cta.shared.b64 %p0,[%r1],%d0", 80, 80),
    ("mbarrier.test_wait.relaxed.cta.shared.b64 %p0,[%r1],%d0", 86, 90),
    ("mbarrier.init.layout::v1.shared.b64 [%r1],%r2", 93, 90),
    ("mbarrier.check_layout.layout::v0.shared.b64 %p0,[%r1]", 93, 90),
    ("mbarrier.pending_count.layout::v0.b64 %r0,%d1", 93, 90),
    ("mbarrier.try_wait.parity.phase_type::conditional.shared.b64 %p0,[%r1],%r0", 93, 90),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%d1],[%r1],%r2", 80, 90),
    ("cp.reduce.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.add.u32 [%d1],[%r1],%r2", 93, 90),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f32 [%d1],[%r1],%r2", 94, 90),
    ("shfl.idx.b32 %r0,%r1,%r2,31", 30, 30),
    ("vote.sync.all.pred %p0,%p1,%r1", 60, 30),
    ("shfl.sync.idx.b32 %r0,%r1,%r2,31,%r3", 60, 30),
    ("bar.warp.sync %r0", 60, 30),
    ("barrier.sync 0", 60, 30),
    ("activemask.b32 %r0", 62, 30),
    ("match.any.sync.b32 %r0,%r1,%r2", 60, 70),
    ("nanosleep.u32 %r0", 62, 70),
    ("redux.sync.add.s32 %r0,%r1,%r2", 70, 80),
    ("redux.sync.min.f32 %f0,%f1,%r2", 86, 100),
    ("elect.sync %r0|%p0,%r1", 80, 90),
    ("mapa.u64 %d0,%d1,%r0", 78, 90),
    ("getctarank.u64 %r0,%d1", 78, 90),
    ("setmaxnreg.inc.sync.aligned.u32 232", 80, 90),
    ("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1],[%r2]", 86, 100),
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0},[%r1]", 65, 75),
    ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1],{%r0}", 78, 90),
    ("movmatrix.sync.aligned.m8n8.trans.b16 %r0,%r1", 78, 75),
    ("wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%r0,%r1},[%d1],%r8", 63, 72),
    ("wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r0},[%d1],%r8", 63, 75),
    ("wmma.load.a.sync.aligned.row.m8n8k128.global.b1 {%r0},[%d1],%r8", 63, 75),
    ("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%r0,%r1,%r2,%r3},{%r4,%r5},{%r6,%r7},{%r0,%r1,%r2,%r3}", 64, 70),
    ("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r0,%r1},{%r2,%r3},{%r4},{%r5,%r6}", 65, 75),
    ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3},{%r2,%r3},{%r4},{%f0,%f1,%f2,%f3}", 65, 75),
    ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%r0,%r1},{%r2},{%r3},{%r4,%r5}", 70, 75),
    (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3},{%r2,%r3,%r4,%r5},{%r6,%r7},{%f0,%f1,%f2,%f3}",
        70,
        80,
    ),
    (
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0,%f1,%f2,%f3},{%r2,%r3,%r4,%r5},{%r6,%r7},{%f0,%f1,%f2,%f3}",
        70,
        80,
    ),
    ("wmma.load.a.sync.aligned.row.m16n16k16.global.bf16 {%r0,%r1,%r2,%r3},[%d1],%r8", 70, 80),
    ("wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {%r0,%r1,%r2,%r3},[%d1],%r8", 70, 80),
    ("wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r0,%r1},{%r2},{%r3},{%r4,%r5}", 71, 80),
    (
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%r0,%r1,%r2,%r3},{%r4,%r5,%r6,%r7},{%r0,%r1},{%r0,%r1,%r2,%r3}",
        71,
        80,
    ),
    ("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%d0,%d1,%d2,%d3},{%d4,%d5},{%d6},{%d0,%d1,%d2,%d3}", 78, 90),
];

const TARGETS: [u32; 21] = [20, 30, 32, 35, 50, 52, 53, 60, 61, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 120, 121];

const VERSIONS: [u32; 31] = [
    23, 30, 31, 42, 43, 50, 60, 61, 62, 63, 64, 65, 70, 71, 72, 74, 75, 76, 77, 78, 80, 81, 82, 86, 87, 88, 90, 91, 92,
    93, 94,
];

/// One instruction in a module of this version and target.
fn read(instruction: &str, version: u32, target: u32) -> Result<Module, PtxError> {
    let text = format!(
        ".version {}.{}\n.target sm_{target}\n.address_size 64\n.visible .entry k()\n{{\n\
         .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b16 %h<9>; .reg .b64 %d<9>; .reg .pred %p<4>;\n{instruction};\nret;\n}}\n",
        version / 10,
        version % 10
    );
    Module::parse(text.as_bytes())
}

#[test]
fn an_instruction_is_refused_where_the_module_is_for_less() {
    for (instruction, version, target) in MEASURED {
        read(instruction, *version, *target).unwrap_or_else(|e| panic!("{instruction}: {e}"));
        read(instruction, 94, 121).unwrap_or_else(|e| panic!("{instruction}: {e}"));
        let lower = TARGETS.into_iter().rfind(|t| t < target).unwrap();
        let error = read(instruction, 94, lower).expect_err(instruction);
        assert_eq!((error.line, error.column, error.code), (7, 1, 218), "{instruction}");
        assert!(error.message.contains(&format!("requires .target sm_{target} or higher")), "{}", error.message);
        assert!(error.message.contains(&format!("compile it for compute_{target}")), "{}", error.message);
        let older = VERSIONS.into_iter().rfind(|v| v < version).unwrap();
        let error = read(instruction, older, *target).expect_err(instruction);
        let [needs, is] = [*version, older].map(|v| format!("{}.{}", v / 10, v % 10));
        let message = format!("requires PTX ISA .version {needs} or later; this module's is {is}");
        assert!(error.message.contains(&message), "{instruction}: {}", error.message);
    }
}

#[test]
fn a_version_that_is_not_known_is_told_by_its_own_error() {
    let read =
        |version: &str| Module::parse(format!(".version {version}\n.target sm_75\n.address_size 64\n").as_bytes());
    for known in ["1.0", "2.3", "3.2", "4.3", "5.1", "6.5", "7.8", "8.8", "9.0", "9.5", "9.9"] {
        read(known).unwrap_or_else(|e| panic!("{known}: {e}"));
    }
    for unknown in ["10.0", "7.9", "8.9", "6.6", "4.4", "1.6", "0.9", "9.10", "8", "four", "4294967297.0"] {
        let error = read(unknown).expect_err(unknown);
        assert_eq!((error.line, error.column, error.code), (1, 10, 222), "{unknown}: {}", error.message);
    }
}

#[test]
fn a_target_is_one_that_there_is() {
    let read = |target: &str| Module::parse(format!(".version 9.4\n.target {target}\n.address_size 64\n").as_bytes());
    for known in ["sm_20", "sm_52", "sm_75", "compute_80", "sm_90a", "sm_100f", "sm_103a", "sm_110", "sm_121a"] {
        read(known).unwrap_or_else(|e| panic!("{known}: {e}"));
    }
    read("sm_75, debug, texmode_independent").unwrap();
    for unknown in ["sm_99", "sm_75a", "sm_90f", "sm_75x", "sm_", "sm_075", "75", "gfx90a", "sm_80, nonsense"] {
        let error = read(unknown).expect_err(unknown);
        let column = if unknown.contains(',') { 16 } else { 9 };
        assert_eq!((error.line, error.column, error.code), (2, column, 218), "{unknown}: {}", error.message);
    }
}

#[test]
fn a_module_begins_with_its_version_and_target() {
    for (text, line) in [
        ("", 1),
        (".target sm_75\n.version 8.0\n", 1),
        (".address_size 64\n.version 8.0\n.target sm_75\n", 1),
        (".version 8.0\n.address_size 64\n.target sm_75\n", 2),
        (".version 8.0\n// no target\n.visible .entry k()\n{\nret;\n}\n", 3),
    ] {
        let error = Module::parse(text.as_bytes()).expect_err(text);
        assert_eq!((error.line, error.code), (line, 218), "{text}: {}", error.message);
    }
}
