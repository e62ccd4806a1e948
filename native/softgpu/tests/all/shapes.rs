//! Loads and stores whose lanes lie side by side, for blocks of many shapes: compiled code takes several of a warp's
//! lanes at once where it can.

use crate::common::{Device, Params};
use sluice_softgpu::{Fault, PAGE};

/// Steps of a tile's loop.
const STEPS: u32 = 3;

/// A tile of integers of so many bytes goes through shared memory, step by step: out = sum of (in + own row's) * 3^step.
fn tile(bytes: u32) -> String {
    let (bits, shift) = (8 * bytes, bytes.ilog2());
    format!(
        ".version 7.5\n.target sm_75\n.address_size 64\n\
         .visible .entry k(.param .u64 in, .param .u64 rows, .param .u64 out, .param .u32 pitch, .param .u32 step)\n{{\n\
         .reg .pred %p;\n.reg .b32 %r<16>;\n.reg .b64 %d<16>;\n.reg .b{bits} %v<8>;\n\
         .shared .align 8 .b8 tile[8192];\n\
         ld.param.u64 %d1, [in]; ld.param.u64 %d2, [rows]; ld.param.u64 %d3, [out];\n\
         ld.param.u32 %r1, [pitch]; ld.param.u32 %r2, [step];\n\
         mov.u32 %r3, %tid.x; mov.u32 %r4, %tid.y; mov.u32 %r5, %ntid.x;\n\
         mad.lo.u32 %r6, %r4, %r5, %r3; mad.lo.u32 %r7, %r4, %r1, %r3;\n\
         shl.b32 %r8, %r6, {shift}; mov.u32 %r9, tile; add.u32 %r8, %r8, %r9;\n\
         mul.wide.u32 %d4, %r4, {bytes}; add.u64 %d4, %d2, %d4;\n\
         mov.u{bits} %v1, 0; mov.u32 %r10, 0;\n\
         again:\n\
         mul.wide.u32 %d5, %r7, {bytes}; add.u64 %d5, %d1, %d5;\n\
         ld.global.u{bits} %v2, [%d5]; st.shared.u{bits} [%r8], %v2;\n\
         bar.sync 0;\n\
         ld.shared.u{bits} %v3, [%r8]; ld.global.u{bits} %v4, [%d4];\n\
         mul.lo.u{bits} %v1, %v1, 3; add.u{bits} %v1, %v1, %v3; add.u{bits} %v1, %v1, %v4;\n\
         bar.sync 0;\n\
         add.u32 %r7, %r7, %r2; add.u32 %r10, %r10, 1; setp.lt.u32 %p, %r10, {STEPS}; @%p bra again;\n\
         mul.wide.u32 %d6, %r6, {bytes}; add.u64 %d6, %d3, %d6; st.global.u{bits} [%d6], %v1;\nret;\n}}\n"
    )
}

/// The n-th number of an input, small enough that no sum of a tile overflows.
fn number(n: usize) -> u64 {
    n as u64 * 2_654_435_761 % 100_003
}

fn check<T: Copy + Default + Into<u64>>(make: fn(u64) -> T, [width, height]: [u32; 2], pitch: u32, step: u32) {
    let d = Device::new(1);
    let m = d.load(&tile(size_of::<T>() as u32));
    let numbers = |count: u32| (0..count as usize).map(|n| make(number(n))).collect::<Vec<T>>();
    let (data, rows) = (numbers(pitch * height + width + step * STEPS), numbers(height));
    let out = d.alloc(u64::from(width * height) * 8);
    let p = Params::new().u64(d.upload(&data)).u64(d.upload(&rows)).u64(out).u32(pitch).u32(step);
    d.launch(&m, "k", [1, 1, 1], [width, height, 1], &p).unwrap();
    let got = d.download::<T>(out, (width * height) as usize);
    for (thread, got) in got.into_iter().enumerate() {
        let (x, y) = (thread as u32 % width, thread as u32 / width);
        let want = (0..STEPS).fold(0, |sum, k| {
            let own: u64 = data[(y * pitch + x + k * step) as usize].into();
            3 * sum + own + rows[y as usize].into()
        });
        assert_eq!(got.into(), want, "thread {x},{y} of {width} x {height}, pitch {pitch}, step {step}");
    }
}

#[test]
fn tiles_of_all_shapes_are_as_computed_one_by_one() {
    for [width, height] in [[32, 1], [16, 2], [16, 16], [8, 8], [20, 5], [4, 8], [33, 3], [64, 2], [1, 32], [48, 3]] {
        for (pitch, step) in [(width, 1), (width + 3, 16), (0, 7), (128, 0)] {
            check::<u32>(|v| v as u32, [width, height], pitch, step);
            check::<u64>(|v| v, [width, height], pitch, step);
        }
    }
}

/// Executes a whole warp's access of four bytes a lane, side by side from an address on.
fn side_by_side(d: &Device, access: &str, address: u64) -> Result<(), Fault> {
    let m = d.load(&format!(
        ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .b32 %r<4>;\n.reg .b64 %d<4>;\nld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x;\n\
         mad.wide.u32 %d2, %r1, 4, %d1;\n{access}\nret;\n}}\n"
    ));
    d.launch(&m, "k", [1, 1, 1], [32, 1, 1], &Params::new().u64(address)).map(|_| ())
}

#[test]
fn a_fault_names_its_lane_among_many() {
    let d = Device::new(1);
    let at = d.alloc(PAGE);
    for access in ["ld.global.u32 %r2, [%d2];", "st.global.u32 [%d2], %r1;"] {
        side_by_side(&d, access, at + PAGE - 128).unwrap();
        for lanes in [1, 15, 16, 20, 31] {
            match side_by_side(&d, access, at + PAGE - 4 * lanes) {
                Err(Fault::IllegalAddress { address, place, .. }) => {
                    assert_eq!((address, place.thread), (at + PAGE, [lanes as u32, 0, 0]), "{access}");
                }
                other => panic!("{access} with {lanes} lanes: {other:?}"),
            }
        }
        match side_by_side(&d, access, at + 2) {
            Err(Fault::Misaligned { place, .. }) => assert_eq!(place.thread, [0; 3], "{access}"),
            other => panic!("{access}: {other:?}"),
        }
    }
}
