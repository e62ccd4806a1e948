//! A device for tests: an arena, an engine, and parameter buffers as numba and nvcc lay them out.
#![allow(dead_code, reason = "the bench uses a part")]

use sluice_softgpu::{Arena, Engine, Fault, Heap, Launch, LaunchStats, LoadedModule, Module, PAGE};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of a test's arena.
pub const ARENA: u64 = 1 << 30;

static NEXT: AtomicU64 = AtomicU64::new(0x2000_0000_0000);

/// An arena and an engine, with the next free address.
pub struct Device {
    pub arena: Arena,
    pub engine: Engine,
    pub heap: Option<Heap>,
    next: AtomicU64,
}

impl Device {
    pub fn new(threads: usize) -> Device {
        Device::sized(threads, ARENA)
    }

    /// A device whose arena has so many bytes.
    pub fn sized(threads: usize, bytes: u64) -> Device {
        let base = NEXT.fetch_add(2 * bytes, Ordering::Relaxed);
        let arena = Arena::reserve(base, bytes).unwrap();
        Device { arena, engine: Engine::new(threads), heap: None, next: AtomicU64::new(base + PAGE) }
    }

    /// A device whose kernels have a heap.
    pub fn with_heap(threads: usize, bytes: u64) -> Device {
        let mut device = Device::new(threads);
        // SAFETY: mapped as long as the device lives.
        device.heap = Some(unsafe { Heap::new(device.alloc(bytes), bytes) });
        device
    }

    /// Exactly so many bytes, with an unmapped page behind theirs.
    pub fn alloc(&self, bytes: u64) -> u64 {
        let bytes = bytes.max(1);
        let at = self.next.fetch_add(bytes.next_multiple_of(PAGE) + PAGE, Ordering::Relaxed);
        self.arena.allocate(at, bytes).unwrap();
        at
    }

    pub fn upload<T: Copy>(&self, data: &[T]) -> u64 {
        let at = self.alloc(size_of_val(data) as u64);
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), size_of_val(data)) };
        self.arena.write(at, bytes).unwrap();
        at
    }

    pub fn download<T: Copy + Default>(&self, at: u64, count: usize) -> Vec<T> {
        let mut out = vec![T::default(); count];
        let bytes = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<u8>(), count * size_of::<T>()) };
        self.arena.read(at, bytes).unwrap();
        out
    }

    pub fn load(&self, ptx: &str) -> LoadedModule {
        let module = Arc::new(Module::parse(ptx.as_bytes()).unwrap_or_else(|e| panic!("{e}")));
        let loaded = LoadedModule::new(module, |g| Ok::<_, ()>(self.alloc(g.size))).unwrap();
        loaded.initialise(&self.arena).unwrap();
        loaded
    }

    pub fn launch(
        &self,
        module: &LoadedModule,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        params: &Params,
    ) -> Result<LaunchStats, Fault> {
        self.launch_with(module, kernel, grid, block, params, 0, false)
    }

    #[allow(clippy::too_many_arguments)]
    pub fn launch_with(
        &self,
        module: &LoadedModule,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        params: &Params,
        dynamic_shared: u32,
        cooperative: bool,
    ) -> Result<LaunchStats, Fault> {
        let (params, heap) = (&params.0, self.heap.as_ref());
        let launch = Launch { module, kernel, grid, block, dynamic_shared, params, cooperative, heap };
        self.engine.launch(&self.arena, &launch, &AtomicBool::new(false))
    }
}

/// A parameter buffer under construction.
#[derive(Clone, Default)]
pub struct Params(pub Vec<u8>);

impl Params {
    pub fn new() -> Params {
        Params::default()
    }

    fn push(mut self, bytes: &[u8]) -> Params {
        self.0.resize(self.0.len().next_multiple_of(bytes.len()), 0);
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn u32(self, v: u32) -> Params {
        self.push(&v.to_le_bytes())
    }

    pub fn f32(self, v: f32) -> Params {
        self.push(&v.to_le_bytes())
    }

    pub fn u64(self, v: u64) -> Params {
        self.push(&v.to_le_bytes())
    }

    pub fn f64(self, v: f64) -> Params {
        self.push(&v.to_le_bytes())
    }

    /// An array as numba passes it: meminfo, parent, nitems, itemsize, data, shape..., strides...
    pub fn array(self, data: u64, itemsize: u64, shape: &[u64]) -> Params {
        let mut p = self.u64(0).u64(0).u64(shape.iter().product()).u64(itemsize).u64(data);
        for extent in shape {
            p = p.u64(*extent);
        }
        for at in 0..shape.len() {
            p = p.u64(itemsize * shape[at + 1..].iter().product::<u64>());
        }
        p
    }
}

/// A reproducible sequence of numbers in 0..1.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The folder of the kernels that are checked in. Asked at run time: the program may have been compiled in another
/// checkout. Cargo, `npm test` and `npm run bench` set the variable.
pub fn kernels() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("CARGO_MANIFEST_DIR")).join("tests/ptx")
}

/// The kernel checked in under this name.
pub fn ptx(name: &str) -> String {
    let path = kernels().join(name).with_extension("ptx");
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
