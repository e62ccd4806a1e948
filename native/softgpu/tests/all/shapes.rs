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

/// A kernel of parameters `p` and `q` with the linear index of its thread in `%r1`, in blocks of three dimensions.
fn indexed(body: &str) -> String {
    format!(
        ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q)\n{{\n\
         .reg .pred %p;\n.reg .b32 %r<16>;\n.reg .b64 %d<16>;\n\
         ld.param.u64 %d1, [p]; ld.param.u64 %d2, [q];\n\
         mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %tid.z; mov.u32 %r5, %ntid.x; mov.u32 %r6, %ntid.y;\n\
         mad.lo.u32 %r7, %r4, %r6, %r3; mad.lo.u32 %r1, %r7, %r5, %r2;\n{body}\nret;\n}}\n"
    )
}

#[test]
fn an_index_of_three_dimensions_reaches_each_element_once() {
    // The pitch between rows and planes makes lanes of several rows lie apart.
    let body = "ld.param.u64 %d3, [p]; mul.lo.u32 %r8, %r7, 3; add.u32 %r8, %r8, %r1; mul.wide.u32 %d4, %r8, 4;\n\
                add.u64 %d5, %d1, %d4; ld.global.u32 %r9, [%d5]; add.u32 %r9, %r9, 1; st.global.u32 [%d5], %r9;";
    for [x, y, z] in [[1, 1, 64], [1, 3, 15], [2, 16, 2], [5, 3, 4], [16, 1, 3], [16, 2, 2], [15, 2, 2], [32, 2, 2]] {
        let d = Device::new(1);
        let m = d.load(&indexed(body));
        let count = (y * z * (x + 3)) as usize;
        let out = d.upload(&vec![7u32; count]);
        d.launch(&m, "k", [1, 1, 1], [x, y, z], &Params::new().u64(out).u64(0)).unwrap();
        let want: Vec<u32> = (0..count).map(|at| 7 + u32::from(at % (x as usize + 3) < x as usize)).collect();
        assert_eq!(d.download::<u32>(out, count), want, "a block of {x} x {y} x {z}");
    }
}

#[test]
fn a_row_of_threads_reads_what_is_its_own() {
    let body = "mul.wide.u32 %d3, %r3, 4; add.u64 %d3, %d3, %d1; ld.global.u32 %r9, [%d3];\n\
                mul.wide.u32 %d4, %r1, 4; add.u64 %d4, %d4, %d2; st.global.u32 [%d4], %r9;";
    for [x, y, z] in [[1, 3, 15], [1, 5, 9], [3, 5, 3], [4, 4, 4], [8, 2, 3], [16, 2, 2], [17, 3, 2], [32, 3, 1]] {
        let d = Device::new(1);
        let m = d.load(&indexed(body));
        let count = (x * y * z) as usize;
        let (rows, out) = (d.upload(&(0..y).map(|y| 100 + y).collect::<Vec<u32>>()), d.alloc(4 * count as u64));
        d.launch(&m, "k", [1, 1, 1], [x, y, z], &Params::new().u64(rows).u64(out)).unwrap();
        let want: Vec<u32> = (0..count as u32).map(|t| 100 + t / x % y).collect();
        assert_eq!(d.download::<u32>(out, count), want, "a block of {x} x {y} x {z}");
    }
}

#[test]
fn what_is_stored_lane_by_lane_may_be_computed_again() {
    // Neither the address nor the value is in a register that anybody else reads.
    let body = "mad.wide.u32 %d3, %r1, 12, %d1; st.global.u32 [%d3], %r1;\n\
                setp.gt.u32 %p, %r1, 40; @%p bra over; mad.wide.u32 %d4, %r1, 8, %d2; st.global.u64 [%d4], %d4;\nover:";
    for threads in [1, 20, 32, 45, 96] {
        let d = Device::new(1);
        let m = d.load(&indexed(body));
        let (p, q) = (d.alloc(12 * 96), d.alloc(8 * 96));
        d.launch(&m, "k", [1, 1, 1], [threads, 1, 1], &Params::new().u64(p).u64(q)).unwrap();
        let (apart, beside) = (d.download::<u32>(p, 3 * 96), d.download::<u64>(q, 96));
        for t in 0..96 {
            let runs = t < threads;
            assert_eq!(apart[3 * t as usize], if runs { t } else { 0 }, "thread {t} of {threads}");
            let address = q + 8 * u64::from(t);
            assert_eq!(beside[t as usize], if runs && t <= 40 { address } else { 0 }, "thread {t} of {threads}");
        }
    }
}

/// Warps read on to an index that passes the end of 32 bits between their lanes, where it goes back by 4 GiB.
#[test]
fn an_index_that_wraps_between_lanes_does_not_go_on_beside_them() {
    const BLOCKS: u32 = 6;
    let d = Device::sized(1, 5 << 30);
    let arena = &d.arena;
    let (low, high) = (arena.base(), arena.base() + (4 << 30));
    for page in [low, high - PAGE, high] {
        arena.map(page, PAGE).unwrap();
    }
    let numbers = |from: u32| (from..from + 40).flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    arena.write(high - 160, &numbers(100)).unwrap();
    arena.write(low, &numbers(200)).unwrap();
    arena.write(high, &numbers(300)).unwrap();
    let (out, middle) = (low + 1024, low + (2 << 30));
    for (first, widen, from) in [("0xffffff60", "cvt.u64.u32", low), ("0x7fffff60", "cvt.s64.s32", middle)] {
        let ptx = indexed(&format!(
            "mov.u32 %r8, %ctaid.x; mad.lo.u32 %r9, %r8, 32, %r1; mad.lo.u32 %r10, %r8, 8, %r1;\n\
             mad.lo.u32 %r11, %r10, 4, {first}; {widen} %d3, %r11; add.u64 %d4, %d3, %d1; ld.global.u32 %r12, [%d4];\n\
             mul.wide.u32 %d5, %r9, 4; add.u64 %d6, %d5, %d2; st.global.u32 [%d6], %r12;"
        ));
        let params = Params::new().u64(from).u64(out);
        d.launch(&d.load(&ptx), "k", [BLOCKS, 1, 1], [32, 1, 1], &params).unwrap();
        let got = d.download::<u32>(out, 32 * BLOCKS as usize);
        let want: Vec<u32> = (0..32 * BLOCKS).map(|at| at / 32 * 8 + at % 32).collect();
        let want: Vec<u32> = want.into_iter().map(|at| if at < 40 { 100 + at } else { 160 + at }).collect();
        assert_eq!(got, want, "{widen} of {first} and on");
    }
}

#[test]
fn a_guarded_parameter_replaces_an_address_only_where_the_guard_holds() {
    let body = "ld.param.u64 %d3, [p]; and.b32 %r8, %r1, 1; setp.eq.u32 %p, %r8, 1; @%p ld.param.u64 %d3, [q];\n\
                ld.global.u32 %r9, [%d3]; mad.wide.u32 %d4, %r1, 4, %d3; ld.global.u32 %r10, [%d4+256];\n\
                mad.wide.u32 %d5, %r1, 8, %d1; st.global.v2.u32 [%d5+512], {%r9, %r10};";
    for threads in [4, 20, 32] {
        let d = Device::new(1);
        let m = d.load(&indexed(body));
        let [p, q] = [100, 1000].map(|from| d.upload(&(from..from + 192).collect::<Vec<u32>>()));
        d.launch(&m, "k", [1, 1, 1], [threads, 1, 1], &Params::new().u64(p).u64(q)).unwrap();
        let want: Vec<u32> =
            (0..threads).flat_map(|t| [0, 64 + t].map(|at| [100, 1000][t as usize % 2] + at)).collect();
        assert_eq!(d.download::<u32>(p + 512, 2 * threads as usize), want, "{threads} threads");
    }
}

/// A factor of 2^32 + 1, which is one in 32 bits, makes the distance from lane to lane a third in 64 bits, so that the
/// distance of the addresses, twelve times as much, seems to be four bytes.
#[test]
fn a_distance_beyond_32_bits_does_not_come_back_as_one_of_bytes() {
    let (threads, blocks) = (4u64, 3);
    let d = Device::sized(1, 40 << 30);
    let middle = d.arena.base() + (20 << 30);
    let addresses = [0, 1, 2, 3].map(|t| {
        let index = 0xaaaa_aaab_u32.wrapping_mul(t) as i32;
        middle.wrapping_add_signed(12 * i64::from(index))
    });
    for address in &addresses[..3] {
        d.arena.map(address & !(PAGE - 1), PAGE).unwrap();
    }
    let ptx = indexed(
        "shl.b32 %r8, %r2, 16; shl.b32 %r9, %r8, 16; add.u32 %r10, %r9, %r2; mul.lo.u32 %r11, %r10, 0xaaaaaaab;\n\
         mul.wide.s32 %d3, %r11, 12; add.u64 %d4, %d3, %d1;\n\
         ld.global.u32 %r12, [%d4]; add.u32 %r12, %r12, 1; st.global.u32 [%d4], %r12;",
    );
    let params = Params::new().u64(middle).u64(0);
    d.launch(&d.load(&ptx), "k", [blocks, 1, 1], [threads as u32, 1, 1], &params).unwrap();
    for address in (0..threads).map(|t| middle + 4 * t).chain(addresses) {
        let want = if addresses.contains(&address) { blocks } else { 0 };
        assert_eq!(d.download::<u32>(address, 1), [want], "at {:#x} from the middle", address.wrapping_sub(middle));
    }
}

#[test]
fn every_block_runs_once_however_many_are_taken_at_a_time() {
    let d = Device::new(4);
    let body = "mov.u32 %r8, %ctaid.x; mad.wide.u32 %d3, %r8, 4, %d1; atom.global.add.u32 %r9, [%d3], 1;";
    let m = d.load(&indexed(body));
    for blocks in [1, 3, 64, 1000, 40_003] {
        let out = d.alloc(4 * u64::from(blocks));
        let stats = d.launch(&m, "k", [blocks, 1, 1], [1, 1, 1], &Params::new().u64(out).u64(0)).unwrap();
        assert_eq!(stats.blocks, u64::from(blocks));
        assert_eq!(d.download::<u32>(out, blocks as usize), vec![1; blocks as usize]);
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
