//! What programs link from CUDA's device runtime.

use crate::common::{Device, Params};

/// Each block writes its number, waits for the grid, and reads its neighbour's; `steps` times over.
const RING: &str = ".version 7.5\n.target sm_75\n.address_size 64\n\
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);\n\
.extern .func (.param .b32 r) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags);\n\
.extern .func (.param .b32 r) cudaCGGetRank(.param .b64 a, .param .b64 b, .param .b64 handle);\n\
.visible .entry ring(.param .u64 data, .param .u64 out, .param .u32 steps)\n{\n\
.local .align 4 .b8 rank[4];\n\
.reg .pred %p<3>;\n.reg .b32 %r<12>;\n.reg .b64 %d<12>;\n\
ld.param.u64 %d0, [data]; ld.param.u64 %d1, [out]; ld.param.u32 %r0, [steps];\n\
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %tid.x; mov.u32 %r10, 0;\n\
{ .param .b32 scope; .param .b64 r; st.param.b32 [scope], 1; call (r), cudaCGGetIntrinsicHandle, (scope);\n\
ld.param.b64 %d2, [r]; }\n\
mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d3, %d0;\n\
add.u32 %r4, %r1, 1; rem.u32 %r4, %r4, %r2; mul.wide.u32 %d4, %r4, 4; add.u64 %d4, %d4, %d0;\n\
setp.ne.u32 %p1, %r3, 0;\n\
mov.u32 %r5, %r1;\n\
loop:\n\
@!%p1 st.global.u32 [%d3], %r5;\n\
{ .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], %d2; st.param.b32 [f], 0;\n\
call (r), cudaCGSynchronizeGrid, (h, f); ld.param.b32 %r11, [r]; }\n\
ld.volatile.global.u32 %r5, [%d4];\n\
{ .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], %d2; st.param.b32 [f], 0;\n\
call (r), cudaCGSynchronizeGrid, (h, f); ld.param.b32 %r6, [r]; }\n\
or.b32 %r11, %r11, %r6; or.b32 %r10, %r10, %r11;\n\
sub.u32 %r0, %r0, 1; setp.ne.u32 %p2, %r0, 0; @%p2 bra loop;\n\
mov.u64 %d5, rank; cvta.local.u64 %d5, %d5; mov.u64 %d6, 0;\n\
{ .param .b64 a; .param .b64 b; .param .b64 h; .param .b32 r; st.param.b64 [a], %d5; st.param.b64 [b], %d6;\n\
st.param.b64 [h], %d2; call (r), cudaCGGetRank, (a, b, h); }\n\
ld.u32 %r7, [%d5]; mul.wide.u32 %d7, %r7, 8; add.u64 %d7, %d7, %d1;\n\
st.global.u32 [%d7], %r5; st.global.u32 [%d7+4], %r10;\nret;\n}\n";

fn ring(cooperative: bool) -> Vec<[u32; 2]> {
    let device = Device::new(2);
    let module = device.load(RING);
    assert_eq!(module.kernel("ring").unwrap().unsupported, None);
    let (data, out) = (device.alloc(6 * 4), device.alloc(6 * 64 * 8));
    let params = Params::new().u64(data).u64(out).u32(10);
    device.launch_with(&module, "ring", [6, 1, 1], [64, 1, 1], &params, 0, cooperative).unwrap();
    device.download(out, 6 * 64)
}

#[test]
fn a_cooperative_grid_waits_for_itself() {
    for (at, [value, error]) in ring(true).into_iter().enumerate() {
        assert_eq!((value, error), (((at / 64 + 10) % 6) as u32, 0), "thread {at}");
    }
}

#[test]
fn a_grid_that_is_not_cooperative_gets_an_error() {
    assert!(ring(false).iter().all(|[_, error]| *error == 720));
}
