//! Page-locked host memory under its address as the device knows it, which with unified addressing is its own: JAX copies
//! between `pinned_host` and the device by `cuMemcpyDtoDAsync`.

use super::{Program, alloc, start};
use crate::driver::{Driver, table};
use sluice_client::driver::abi::{Copy2D, Copy3D};
use std::ffi::c_void;

pub(super) const PROGRAMS: &[Program] = &[
    ("page_locked_memory_as_a_device_address", copies),
    ("page_locked_memory_in_rectangles", rectangles),
    ("page_locked_memory_in_a_capture", captured),
    ("other_memory_is_no_device_address", other_memory),
];

table! {
    Copies;
    cuMemHostAlloc(*mut *mut c_void, usize, u32);
    cuMemFreeHost(*mut c_void);
    cuMemcpyDtoDAsync_v2(u64, u64, usize, usize);
    cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, usize);
    cuMemcpyDtoHAsync_v2(*mut c_void, u64, usize, usize);
    cuMemcpyPeerAsync(u64, usize, u64, usize, usize, usize);
    cuMemcpy2D_v2(*const Copy2D);
    cuMemcpy2DAsync_v2(*const Copy2D, usize);
    cuMemcpy3D_v2(*const Copy3D);
    cuMemcpy3DAsync_v2(*const Copy3D, usize);
    cuStreamBeginCapture_v2(usize, u32);
    cuStreamEndCapture(usize, *mut usize);
    cuGraphInstantiateWithFlags(*mut usize, usize, u64);
    cuGraphLaunch(usize, usize);
}

const BYTES: usize = 3 << 20;
/// CU_MEMORYTYPE_DEVICE
const DEVICE: u32 = 2;

fn pattern(seed: usize) -> Vec<u8> {
    (0..BYTES).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

struct World<'a> {
    driver: &'a Driver,
    copies: Copies,
    context: usize,
    stream: usize,
    device: u64,
    /// Two pieces of page-locked memory.
    locked: [u64; 2],
}

impl<'a> World<'a> {
    fn new(driver: &'a Driver) -> Self {
        let context = start(driver);
        let (copies, mut stream) = (Copies::of(driver.library), 0);
        // SAFETY: live locals; the memory is filled before it is read.
        unsafe {
            assert_eq!((driver.cuStreamCreate)(&raw mut stream, 1), 0);
            let locked = [0; 2].map(|_| {
                let mut memory = std::ptr::null_mut();
                assert_eq!((copies.cuMemHostAlloc)(&raw mut memory, BYTES, 0), 0);
                memory.write_bytes(0, BYTES);
                memory as u64
            });
            Self { driver, copies, context, stream, device: alloc(driver, BYTES), locked }
        }
    }

    /// Fills the first piece, carries it to the device and from there to the second one, and compares.
    #[track_caller]
    fn carries(&self, seed: usize, there: impl FnOnce(u64, u64) -> u32, back: impl FnOnce(u64, u64) -> u32) {
        let [from, to] = self.locked;
        let data = pattern(seed);
        // SAFETY: each piece is so long; no copy is under way when the host reads or writes.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), from as *mut u8, BYTES);
            (to as *mut u8).write_bytes(0, BYTES);
            assert_eq!((self.driver.cuMemsetD8Async)(self.device, 0, BYTES, self.stream), 0);
            assert_eq!((self.driver.cuStreamSynchronize)(self.stream), 0);
            assert_eq!(there(self.device, from), 0, "to the device");
            self.wait();
            assert_eq!(back(to, self.device), 0, "from the device");
            self.wait();
            assert!(std::slice::from_raw_parts(to as *const u8, BYTES) == data, "bytes changed on the way");
        }
    }

    fn wait(&self) {
        // SAFETY: no arguments beyond the stream.
        assert_eq!(unsafe { (self.driver.cuCtxSynchronize)() }, 0);
    }
}

fn copies(driver: &Driver) {
    let world = World::new(driver);
    let (copies, stream) = (&world.copies, world.stream);
    // SAFETY: every address has room for the bytes, in both directions.
    unsafe {
        let asynchronous = |target, source| (copies.cuMemcpyDtoDAsync_v2)(target, source, BYTES, stream);
        world.carries(1, asynchronous, asynchronous);
        let at_once = |target, source| (driver.cuMemcpyDtoD_v2)(target, source, BYTES);
        world.carries(2, at_once, at_once);
        let context = world.context;
        let peer = |target, source| (copies.cuMemcpyPeerAsync)(target, context, source, context, BYTES, stream);
        world.carries(3, peer, peer);
        // Inside the host: one address is the host's, the other page-locked memory named as the device's.
        let [first, second] = world.locked;
        let data = pattern(4);
        let mut back = vec![0u8; BYTES];
        assert_eq!((driver.cuMemcpyHtoD_v2)(first, data.as_ptr().cast(), BYTES), 0);
        assert_eq!((copies.cuMemcpyDtoDAsync_v2)(second, first, BYTES, stream), 0);
        assert_eq!((driver.cuStreamSynchronize)(stream), 0);
        assert_eq!((driver.cuMemcpyDtoH_v2)(back.as_mut_ptr().cast(), second, BYTES), 0);
        assert!(back == data, "bytes changed inside the host");
        assert_eq!((copies.cuMemcpyHtoDAsync_v2)(first, pattern(5).as_ptr().cast(), BYTES, stream), 0);
        assert_eq!((driver.cuStreamSynchronize)(stream), 0);
        assert_eq!((copies.cuMemcpyDtoHAsync_v2)(back.as_mut_ptr().cast(), first, BYTES, stream), 0);
        assert_eq!((driver.cuStreamSynchronize)(stream), 0);
        assert!(back == pattern(5), "bytes changed inside the host, asynchronously");
        for memory in world.locked {
            assert_eq!((copies.cuMemFreeHost)(memory as *mut c_void), 0);
        }
    }
}

fn rectangles(driver: &Driver) {
    let world = World::new(driver);
    let (copies, stream) = (&world.copies, world.stream);
    let (width, height) = (BYTES / 512, 512);
    // SAFETY: plain numbers and null pointers, for which zeros are valid; every address has room for the rows.
    unsafe {
        let flat = |target, source| Copy2D {
            source_kind: DEVICE,
            source_device: source,
            source_pitch: width,
            target_kind: DEVICE,
            target_device: target,
            target_pitch: width,
            width,
            height,
            ..std::mem::zeroed()
        };
        let at_once = |target, source| (copies.cuMemcpy2D_v2)(&flat(target, source));
        world.carries(1, at_once, at_once);
        let asynchronous = |target, source| (copies.cuMemcpy2DAsync_v2)(&flat(target, source), stream);
        world.carries(2, asynchronous, asynchronous);
        let deep = |target, source| Copy3D {
            source_kind: DEVICE,
            source_device: source,
            source_pitch: width,
            source_height: height / 4,
            target_kind: DEVICE,
            target_device: target,
            target_pitch: width,
            target_height: height / 4,
            width,
            height: height / 4,
            depth: 4,
            ..std::mem::zeroed()
        };
        let at_once = |target, source| (copies.cuMemcpy3D_v2)(&deep(target, source));
        world.carries(3, at_once, at_once);
        let asynchronous = |target, source| (copies.cuMemcpy3DAsync_v2)(&deep(target, source), stream);
        world.carries(4, asynchronous, asynchronous);
    }
}

/// A graph of the copy, launched.
fn captured(driver: &Driver) {
    let world = World::new(driver);
    let (copies, stream) = (&world.copies, world.stream);
    let launched = |target: u64, source: u64| {
        let (mut graph, mut executable) = (0, 0);
        // SAFETY: live locals; both addresses have room for the bytes.
        unsafe {
            assert_eq!((copies.cuStreamBeginCapture_v2)(stream, 2), 0);
            assert_eq!((copies.cuMemcpyDtoDAsync_v2)(target, source, BYTES, stream), 0);
            assert_eq!((copies.cuStreamEndCapture)(stream, &raw mut graph), 0);
            assert_eq!((copies.cuGraphInstantiateWithFlags)(&raw mut executable, graph, 0), 0);
            (copies.cuGraphLaunch)(executable, stream)
        }
    };
    world.carries(1, launched, launched);
}

/// Pageable memory has no device address, nor has what lies behind a piece of page-locked memory.
fn other_memory(driver: &Driver) {
    let world = World::new(driver);
    let pageable = vec![1u8; 4096];
    let behind = world.locked[0] + BYTES as u64 - 16;
    if !driver.is_ours() {
        // A driver may reach pageable memory by the kernel's help, and rounds what it locks.
        return;
    }
    for source in [pageable.as_ptr() as u64, behind] {
        // SAFETY: the source is refused, so nothing is read.
        assert_eq!(unsafe { (driver.cuMemcpyDtoD_v2)(world.device, source, 4096) }, 1);
    }
}
