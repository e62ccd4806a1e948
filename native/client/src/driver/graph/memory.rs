//! Memory nodes. A graph's memory is taken from the lease when its node is made and stays as long as the graph, its
//! executable graphs, or the program's hold on it after a launch; so its address is known and kept, as CUDA promises.

use super::flat::Layout;
use super::layout::AllocNode;
use super::{Graph, Work};
use crate::device::Device;
use crate::driver::device::check;
use crate::driver::{current, put};
use crate::error::{CudaResult, INVALID_VALUE};
use crate::process::{self, Process};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// One piece of a graph's memory.
pub struct Allocation {
    pub address: u64,
    pub bytes: u64,
    generation: u64,
    /// As the program asked for it.
    pub parameters: Mutex<Option<AllocParameters>>,
}

/// See [`Allocation::parameters`].
#[derive(Clone, Copy)]
pub struct AllocParameters {
    pool: [u64; 11],
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let process = process::get();
        process.objects.graphs.memory.gone(self);
        let session = process.device_at(self.address).and_then(|device| device.any_session());
        if let Some(session) = session.filter(|session| session.generation == self.generation) {
            // A lease that has ended took the memory with it.
            let _ = session.free(self.address);
        }
    }
}

/// Allocations of graphs, by address.
#[derive(Default)]
pub struct Memory {
    count: AtomicUsize,
    pieces: Mutex<HashMap<u64, Piece>>,
    reserved: AtomicU64,
    reserved_most: AtomicU64,
    used_most: AtomicU64,
}

struct Piece {
    allocation: Weak<Allocation>,
    /// Between a launch that allocated it and its freeing.
    live: Option<Arc<Allocation>>,
}

impl Memory {
    fn pieces(&self) -> MutexGuard<'_, HashMap<u64, Piece>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes memory for a node.
    pub fn allocate(&self, device: Device, bytes: usize, pool: Option<[u64; 11]>) -> CudaResult<Arc<Allocation>> {
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        let session = device.session()?;
        let address = session.alloc(bytes as u64, 0)?;
        let parameters = Mutex::new(pool.map(|pool| AllocParameters { pool }));
        let made = Arc::new(Allocation { address, bytes: bytes as u64, generation: session.generation, parameters });
        self.pieces().insert(address, Piece { allocation: Arc::downgrade(&made), live: None });
        self.count.fetch_add(1, Ordering::AcqRel);
        let reserved = self.reserved.fetch_add(bytes as u64, Ordering::AcqRel) + bytes as u64;
        self.reserved_most.fetch_max(reserved, Ordering::AcqRel);
        Ok(made)
    }

    fn gone(&self, allocation: &Allocation) {
        self.pieces().remove(&allocation.address);
        self.count.fetch_sub(1, Ordering::AcqRel);
        self.reserved.fetch_sub(allocation.bytes, Ordering::AcqRel);
    }

    /// The piece that begins at an address.
    pub fn find(&self, address: u64) -> Option<Arc<Allocation>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.pieces().get(&address).and_then(|piece| piece.allocation.upgrade())
    }

    /// The program frees what a launch has allocated; None when it is no graph's memory.
    pub fn free(&self, address: u64) -> Option<CudaResult> {
        self.find(address)?;
        let ended = self.pieces().get_mut(&address).and_then(|piece| piece.live.take());
        Some(ended.map(drop).ok_or(INVALID_VALUE))
    }

    /// A launch allocates and frees what its nodes say. What the launch before left allocated is freed first when the
    /// program asked for that, else it is an error.
    pub fn launched(&self, layout: &Layout, auto_free: bool) -> CudaResult {
        let nodes = || layout.flats.iter().map(|flat| &flat.work);
        if !nodes().any(|work| matches!(work, Work::Alloc(_) | Work::Free(_))) {
            return Ok(());
        }
        // Ended below, when the lock is given back.
        let mut ended = Vec::new();
        let mut pieces = self.pieces();
        for work in nodes() {
            if let Work::Alloc(allocation) = work
                && let Some(piece) = pieces.get_mut(&allocation.address)
                && piece.live.is_some()
                && !auto_free
            {
                return Err(INVALID_VALUE);
            }
        }
        for work in nodes() {
            if let Work::Alloc(allocation) = work
                && let Some(piece) = pieces.get_mut(&allocation.address)
            {
                ended.extend(piece.live.replace(Arc::clone(allocation)));
            }
        }
        let used = pieces.values().filter_map(|piece| piece.live.as_ref()).map(|live| live.bytes).sum();
        self.used_most.fetch_max(used, Ordering::AcqRel);
        for work in nodes() {
            if let Work::Free(address) = work
                && let Some(piece) = pieces.get_mut(address)
            {
                ended.extend(piece.live.take());
            }
        }
        drop(pieces);
        Ok(())
    }
}

/// Adds an alloc node; used by captures too.
pub(crate) fn alloc_work(device: Device, bytes: usize) -> CudaResult<(Work, u64)> {
    let made = device.process.objects.graphs.memory.allocate(device, bytes, None)?;
    let address = made.address;
    Ok((Work::Alloc(made), address))
}

/// A free node's work: the address has to be of a graph.
pub(crate) fn free_work(process: &Process, address: u64) -> CudaResult<Work> {
    process.objects.graphs.memory.find(address).map(|_| Work::Free(address)).ok_or(INVALID_VALUE)
}

pub unsafe fn cuGraphAddMemAllocNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    parameters: *mut c_void,
) -> CudaResult {
    let device = current()?;
    let graph = Graph::find(device.process, graph)?;
    // SAFETY: null, or the caller's CUDA_MEM_ALLOC_NODE_PARAMS; the list is `count` long.
    let (parameters, after) =
        unsafe { (parameters.cast::<AllocNode>().as_mut().ok_or(INVALID_VALUE)?, super::nodes::edges(after, count)?) };
    if graph.state().owner.is_some() {
        return Err(super::refused("memory nodes inside a child graph are not supported"));
    }
    let made = device.process.objects.graphs.memory.allocate(device, parameters.bytes, Some(parameters.pool))?;
    let address = made.address;
    let handle = graph.add(device.process, Work::Alloc(made), after)?;
    parameters.address = address;
    // SAFETY: the caller's output.
    unsafe { put(node, handle as usize) }
}

pub unsafe fn cuGraphMemAllocNodeGetParams(node: usize, parameters: *mut c_void) -> CudaResult {
    let process = current()?.process;
    let work = super::nodes::work_of(process, node)?;
    let Work::Alloc(allocation) = work else { return Err(INVALID_VALUE) };
    let pool = allocation.parameters.lock().unwrap_or_else(PoisonError::into_inner).map_or([0; 11], |p| p.pool);
    let found = AllocNode {
        pool,
        access: std::ptr::null(),
        access_count: 0,
        bytes: allocation.bytes as usize,
        address: allocation.address,
    };
    // SAFETY: the caller's output.
    unsafe { put(parameters.cast(), found) }
}

pub unsafe fn cuGraphAddMemFreeNode(
    node: *mut usize,
    graph: usize,
    after: *const usize,
    count: usize,
    address: u64,
) -> CudaResult {
    let process = current()?.process;
    let work = free_work(process, address)?;
    // SAFETY: the caller's output and list.
    unsafe { super::nodes::add(process, node, graph, super::nodes::edges(after, count)?, work) }
}

pub unsafe fn cuGraphMemFreeNodeGetParams(node: usize, address: *mut u64) -> CudaResult {
    let Work::Free(found) = super::nodes::work_of(current()?.process, node)? else { return Err(INVALID_VALUE) };
    // SAFETY: the caller's output.
    unsafe { put(address, found) }
}

/// Nothing is kept that no graph uses.
pub unsafe fn cuDeviceGraphMemTrim(device: i32) -> CudaResult {
    check(device).map(|_| ())
}

pub unsafe fn cuDeviceGetGraphMemAttribute(device: i32, attribute: u32, value: *mut c_void) -> CudaResult {
    let memory = &check(device)?.process.objects.graphs.memory;
    let found: u64 = match attribute {
        // CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, …_HIGH, …_RESERVED_MEM_CURRENT, …_HIGH
        0 => memory.pieces().values().filter_map(|piece| piece.live.as_ref()).map(|live| live.bytes).sum(),
        1 => memory.used_most.load(Ordering::Acquire),
        2 => memory.reserved.load(Ordering::Acquire),
        3 => memory.reserved_most.load(Ordering::Acquire),
        _ => return Err(INVALID_VALUE),
    };
    // SAFETY: the caller's 64-bit output.
    unsafe { put(value.cast(), found) }
}

/// High water marks can be set to 0 alone.
pub unsafe fn cuDeviceSetGraphMemAttribute(device: i32, attribute: u32, value: *mut c_void) -> CudaResult {
    let memory = &check(device)?.process.objects.graphs.memory;
    // SAFETY: null, or the caller's 64-bit value.
    if unsafe { value.cast::<u64>().as_ref() } != Some(&0) {
        return Err(INVALID_VALUE);
    }
    match attribute {
        1 => memory.used_most.store(0, Ordering::Release),
        3 => memory.reserved_most.store(memory.reserved.load(Ordering::Acquire), Ordering::Release),
        _ => return Err(INVALID_VALUE),
    }
    Ok(())
}
