//! Copies of rectangles and boxes, fills, copies between contexts and in batches.

use super::{Program, alloc, download, start, upload};
use crate::driver::{Driver, table};
use sluice_client::driver::abi::{Copy2D, Copy3D};
use std::ffi::c_void;

pub const PROGRAMS: &[Program] = &[
    ("rectangles", rectangles),
    ("captured_rectangles", captured_rectangles),
    ("boxes", boxes),
    ("fills", fills),
    ("other_copies", other_copies),
];

table! {
    Copies;
    cuMemAllocPitch_v2(*mut u64, *mut usize, usize, usize, u32);
    cuMemcpy2D_v2(*const Copy2D);
    cuMemcpy2DUnaligned_v2(*const Copy2D);
    cuMemcpy2DAsync_v2(*const Copy2D, usize);
    cuMemcpy3D_v2(*const Copy3D);
    cuMemcpy3DAsync_v2(*const Copy3D, usize);
    cuStreamBeginCapture_v2(usize, u32);
    cuStreamEndCapture(usize, *mut usize);
    cuGraphGetNodes(usize, *mut usize, *mut usize);
    cuGraphInstantiateWithFlags(*mut usize, usize, u64);
    cuGraphLaunch(usize, usize);
    cuGraphExecDestroy(usize);
    cuGraphDestroy(usize);
    cuMemcpy3DPeer(*const Copy3D);
    cuMemsetD2D8_v2(u64, usize, u8, usize, usize);
    cuMemsetD2D16Async(u64, usize, u16, usize, usize, usize);
    cuMemsetD2D32_v2(u64, usize, u32, usize, usize);
    cuMemcpy(u64, u64, usize);
    cuMemcpyPeer(u64, usize, u64, usize, usize);
    cuMemcpyBatchAsync(*const u64, *const u64, *const usize, usize, *const c_void, *const usize, usize, *mut usize, usize);
    cuMemcpyWithAttributesAsync(u64, u64, usize, *const c_void, usize);
}

const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;

fn numbers(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn device(driver: &Driver, bytes: &[u8]) -> u64 {
    let address = alloc(driver, bytes.len());
    // SAFETY: the slice is live and as long as the allocation.
    assert_eq!(unsafe { (driver.cuMemcpyHtoD_v2)(address, bytes.as_ptr().cast(), bytes.len()) }, 0);
    address
}

fn host(driver: &Driver, address: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    // SAFETY: the vector has room.
    assert_eq!(unsafe { (driver.cuMemcpyDtoH_v2)(bytes.as_mut_ptr().cast(), address, count) }, 0);
    bytes
}

/// One side of a copy: kind, address, pitch, rows of a layer, x, y, z.
#[derive(Clone, Copy)]
struct Side(u32, u64, usize, usize, [usize; 3]);

fn two(target: Side, source: Side, width: usize, height: usize) -> Copy2D {
    Copy2D {
        source_x: source.4[0],
        source_y: source.4[1],
        source_kind: source.0,
        source_host: source.1 as *const c_void,
        source_device: source.1,
        source_array: 0,
        source_pitch: source.2,
        target_x: target.4[0],
        target_y: target.4[1],
        target_kind: target.0,
        target_host: target.1 as *mut c_void,
        target_device: target.1,
        target_array: 0,
        target_pitch: target.2,
        width,
        height,
    }
}

fn three(target: Side, source: Side, [width, height, depth]: [usize; 3], contexts: usize) -> Copy3D {
    Copy3D {
        source_x: source.4[0],
        source_y: source.4[1],
        source_z: source.4[2],
        source_level: 0,
        source_kind: source.0,
        source_host: source.1 as *const c_void,
        source_device: source.1,
        source_array: 0,
        source_context: contexts,
        source_pitch: source.2,
        source_height: source.3,
        target_x: target.4[0],
        target_y: target.4[1],
        target_z: target.4[2],
        target_level: 0,
        target_kind: target.0,
        target_host: target.1 as *mut c_void,
        target_device: target.1,
        target_array: 0,
        target_context: contexts,
        target_pitch: target.2,
        target_height: target.3,
        width,
        height,
        depth,
    }
}

/// What a copy should do, in the plainest way.
fn reference(target: &mut [u8], to: Side, source: &[u8], from: Side, [width, height, depth]: [usize; 3]) {
    for z in 0..depth {
        for y in 0..height {
            let at = |side: Side| ((z + side.4[2]) * side.3 + y + side.4[1]) * side.2 + side.4[0];
            target[at(to)..][..width].copy_from_slice(&source[at(from)..][..width]);
        }
    }
}

fn rectangles(driver: &Driver) {
    start(driver);
    let copies = Copies::of(driver.library);
    let (mut pitched, mut pitch) = (0, 0);
    // SAFETY: live locals.
    assert_eq!(unsafe { (copies.cuMemAllocPitch_v2)(&raw mut pitched, &raw mut pitch, 1000, 40, 4) }, 0);
    assert!(pitch >= 1000 && pitch % 256 == 0);
    // Wide rows, narrow rows, rows far apart, and a part that begins inside.
    for (width, height, [x, y]) in [(1000, 40, [0, 0]), (12, 39, [8, 1]), (1, 40, [999, 0]), (500, 1, [3, 7])] {
        let source = numbers(1200 * 45);
        for kinds in [[HOST, DEVICE], [UNIFIED, UNIFIED]] {
            // SAFETY: every side is live and as large as the copy says.
            unsafe {
                let there = Side(kinds[1], pitched, pitch, 40, [x, y, 0]);
                let here = Side(kinds[0], source.as_ptr() as u64, 1200, 45, [5, 2, 0]);
                assert_eq!((copies.cuMemcpy2D_v2)(&two(there, here, width, height)), 0);
                let second = alloc(driver, 1100 * 41);
                let middle = Side(kinds[1], second, 1100, 41, [7, 1, 0]);
                assert_eq!((copies.cuMemcpy2DUnaligned_v2)(&two(middle, there, width, height)), 0);
                let mut back = vec![9u8; 1300 * 41];
                let last = Side(kinds[0], back.as_mut_ptr() as u64, 1300, 41, [11, 1, 0]);
                assert_eq!((copies.cuMemcpy2DAsync_v2)(&two(last, middle, width, height), 0), 0);
                assert_eq!((driver.cuCtxSynchronize)(), 0);
                let mut expected = vec![9u8; 1300 * 41];
                reference(&mut expected, last, &source, here, [width, height, 1]);
                assert!(back == expected, "{width} x {height} at {x}, {y}");
                assert_eq!((driver.cuMemFree_v2)(second), 0);
            }
        }
    }
    // A pitch that is shorter than a row, a copy that leaves the allocation, an array.
    let source = numbers(64 * 64);
    let here = Side(HOST, source.as_ptr() as u64, 64, 64, [0; 3]);
    let there = |kind, pitch| Side(kind, pitched, pitch, 40, [0; 3]);
    // SAFETY: refused before anything is read.
    unsafe {
        assert_eq!((copies.cuMemcpy2D_v2)(&two(there(DEVICE, 32), here, 64, 8)), 1);
        assert_eq!((copies.cuMemcpy2D_v2)(&two(there(DEVICE, pitch), here, 64, 41)), 1);
        assert_ne!((copies.cuMemcpy2D_v2)(&two(there(3, pitch), here, 64, 8)), 0);
        assert_eq!((copies.cuMemcpy2D_v2)(&two(there(DEVICE, pitch), here, 0, 8)), 0);
    }
}

/// Copies and fills of rectangles in a stream that captures are nodes: nothing of them runs before the graph does.
fn captured_rectangles(driver: &Driver) {
    start(driver);
    let copies = Copies::of(driver.library);
    let mut source = numbers(20 * 10);
    let (first, second) = (device(driver, &[0; 32 * 10]), device(driver, &[0; 64 * 10 * 2]));
    let mut back = vec![9u8; 24 * 10 * 2];
    let here = Side(HOST, source.as_ptr() as u64, 20, 10, [2, 1, 0]);
    let there = Side(DEVICE, first, 32, 10, [4, 2, 0]);
    let middle = Side(DEVICE, second, 64, 10, [8, 3, 1]);
    let last = Side(HOST, back.as_mut_ptr() as u64, 24, 10, [1, 0, 0]);
    let (mut stream, mut graph, mut count, mut exec) = (0, 0, 0, 0);
    // SAFETY: every side is live and as large as the copy says, and handles are made here.
    unsafe {
        assert_eq!((driver.cuStreamCreate)(&raw mut stream, 1), 0);
        assert_eq!((driver.cuCtxSynchronize)(), 0);
        assert_eq!((copies.cuStreamBeginCapture_v2)(stream, 0), 0);
        assert_eq!((copies.cuMemcpy2DAsync_v2)(&two(there, here, 16, 7), stream), 0);
        assert_eq!((copies.cuMemsetD2D16Async)(second, 64, 0x0503, 30, 20, stream), 0);
        assert_eq!((copies.cuMemcpy3DAsync_v2)(&three(middle, there, [16, 7, 1], 0), stream), 0);
        let whole = Side(DEVICE, second, 64, 10, [0; 3]);
        assert_eq!((copies.cuMemcpy3DAsync_v2)(&three(last, whole, [23, 10, 2], 0), stream), 0);
        assert_eq!((copies.cuStreamEndCapture)(stream, &raw mut graph), 0);
        assert_eq!((copies.cuGraphGetNodes)(graph, std::ptr::null_mut(), &raw mut count), 0);
        assert_eq!(count, 4);
        assert!(host(driver, first, 32 * 10).iter().chain(&back).all(|byte| [0, 9].contains(byte)), "nothing has run");
        assert_eq!((copies.cuGraphInstantiateWithFlags)(&raw mut exec, graph, 0), 0);
        // The host's bytes are read when it runs.
        source.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        assert_eq!((copies.cuGraphLaunch)(exec, stream), 0);
        assert_eq!((driver.cuStreamSynchronize)(stream), 0);
        let mut filled = vec![0u8; 64 * 10 * 2];
        filled.chunks_mut(64).flat_map(|row| row[..60].as_chunks_mut::<2>().0).for_each(|word| *word = [3, 5]);
        reference(&mut filled, middle, &source, here, [16, 7, 1]);
        let mut expected = vec![9u8; 24 * 10 * 2];
        reference(&mut expected, last, &filled, whole, [23, 10, 2]);
        assert!(back == expected);
        assert_eq!(((copies.cuGraphExecDestroy)(exec), (copies.cuGraphDestroy)(graph)), (0, 0));
    }
}

fn boxes(driver: &Driver) {
    let context = start(driver);
    let copies = Copies::of(driver.library);
    let source = numbers(20 * 10 * 6);
    let from = Side(HOST, source.as_ptr() as u64, 20, 10, [2, 1, 1]);
    let cube = device(driver, &vec![0; 32 * 12 * 8]);
    let inside = Side(DEVICE, cube, 32, 12, [4, 2, 3]);
    let other = device(driver, &vec![0; 15 * 9 * 4]);
    let packed = Side(DEVICE, other, 15, 9, [0; 3]);
    let mut back = vec![0u8; 15 * 9 * 4];
    let to = Side(HOST, back.as_mut_ptr() as u64, 15, 9, [0; 3]);
    let extent = [15, 9, 4];
    let mut expected = vec![0; 15 * 9 * 4];
    reference(&mut expected, to, &source, from, extent);
    // SAFETY: every side is live and as large as the copy says.
    unsafe {
        assert_eq!((copies.cuMemcpy3D_v2)(&three(inside, from, extent, 0)), 0);
        assert_eq!((copies.cuMemcpy3DPeer)(&three(packed, inside, extent, context)), 0);
        assert_eq!((copies.cuMemcpy3D_v2)(&three(to, packed, extent, 0)), 0);
        assert!(back == expected);
        back.fill(0);
        assert_eq!((copies.cuMemcpy3D_v2)(&three(to, inside, extent, 0)), 0);
        assert!(back == expected);
        // One layer more than there is.
        assert_eq!((copies.cuMemcpy3D_v2)(&three(inside, from, [15, 9, 6], 0)), 1);
    }
}

fn fills(driver: &Driver) {
    start(driver);
    let copies = Copies::of(driver.library);
    let address = device(driver, &[1; 64 * 10]);
    // SAFETY: inside the allocation, but for the last three, which are refused.
    unsafe {
        assert_eq!((copies.cuMemsetD2D8_v2)(address + 3, 64, 7, 5, 10), 0);
        assert_eq!((copies.cuMemsetD2D16Async)(address + 16, 64, 0x0203, 4, 9, 0), 0);
        assert_eq!((copies.cuMemsetD2D32_v2)(address + 32, 64, 0x0405_0607, 8, 2), 0);
        assert_eq!((copies.cuMemsetD2D32_v2)(address + 2, 64, 0, 8, 2), 1);
        // Far beyond its end: a driver may round an allocation up.
        assert_eq!((copies.cuMemsetD2D8_v2)(address, 64, 7, 64, 100), 1);
        assert_eq!((copies.cuMemsetD2D8_v2)(address, 32, 7, 64, 2), 1);
    }
    let mut expected = vec![1u8; 640];
    for row in 0..10 {
        expected[row * 64 + 3..][..5].fill(7);
        if row < 9 {
            expected[row * 64 + 16..][..8].copy_from_slice(&[3, 2].repeat(4));
        }
        if row < 2 {
            expected[row * 64 + 32..][..32].copy_from_slice(&[7, 6, 5, 4].repeat(8));
        }
    }
    assert!(host(driver, address, 640) == expected);
}

fn other_copies(driver: &Driver) {
    let context = start(driver);
    let copies = Copies::of(driver.library);
    let bytes = numbers(4096);
    let (first, second) = (device(driver, &bytes), alloc(driver, 4096));
    let (mut stream, mut failed) = (0, 0);
    let (mut a, mut b) = (vec![0u8; 1024], vec![0u8; 1024]);
    // SAFETY: every address has so many bytes.
    unsafe {
        assert_eq!((copies.cuMemcpyPeer)(second, context, first, context, 4096), 0);
        if driver.is_ours() {
            assert_eq!((copies.cuMemcpyPeer)(second, context + 1, first, context, 4096), 201);
        }
        assert_eq!((driver.cuStreamCreate)(&raw mut stream, 0), 0);
        // Copies of one batch have no order: what one writes, no other reads.
        let targets = [first, a.as_mut_ptr() as u64, second + 3072];
        let sources = [second + 1024, second, bytes.as_ptr() as u64];
        let sizes = [512, 1024, 100];
        // CUmemcpyAttributes of all three: CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, no hints.
        let (in_order, begins) = ([1u32, 0, 0, 0, 0, 0], 0);
        let attributes: *const c_void = (&raw const in_order).cast();
        let batch = |count, stream, failed: *mut usize| {
            let (targets, sources, sizes) = (targets.as_ptr(), sources.as_ptr(), sizes.as_ptr());
            (copies.cuMemcpyBatchAsync)(
                targets,
                sources,
                sizes,
                count,
                attributes,
                &raw const begins,
                1,
                failed,
                stream,
            )
        };
        assert_eq!(batch(3, stream, &raw mut failed), 0);
        assert_eq!(batch(3, 0, std::ptr::null_mut()), 1);
        let back = b.as_mut_ptr() as u64;
        if driver.has("cuMemcpyWithAttributesAsync") {
            assert_eq!((copies.cuMemcpyWithAttributesAsync)(back, first, 1024, attributes, stream), 0);
        } else {
            println!("cuMemcpyWithAttributesAsync is left out");
            assert_eq!((copies.cuMemcpy)(back, first, 1024), 0);
        }
        assert_eq!((driver.cuStreamSynchronize)(stream), 0);
        assert!(a == bytes[..1024] && b[..512] == bytes[1024..1536] && b[512..] == bytes[512..1024]);
        // Between two places in host memory.
        assert_eq!((copies.cuMemcpy)(b.as_mut_ptr() as u64, a.as_ptr() as u64, 1024), 0);
        assert!(a == b);
    }
    upload(driver, first, &[5; 4]);
    assert_eq!(download(driver, first, 4), [5; 4]);
    assert!(host(driver, second + 3072, 100) == bytes[..100]);
}
