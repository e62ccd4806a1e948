//! Nodes as gpud is told of them: handles and addresses of this generation, checked.

use super::layout::{ARRAY, Copy3D, DEVICE, Fill, HOST, Side};
use super::{Kernel, Work, refused};
use crate::device::Device;
use crate::driver::copy::{is_device, names_device};
use crate::driver::launch;
use crate::driver::memory::{check_range, check_reachable};
use crate::error::{CudaResult, INVALID_VALUE};
use crate::host::Call;
use crate::host::rows::Rows;
use crate::process::Process;
use crate::session::Session;
use sluice_protocol::graph::{Extent, GraphWork, MemoryOperation, Planes};

/// A node's work for gpud.
pub fn to_wire(device: Device, session: &Session, work: &Work) -> CudaResult<GraphWork> {
    Ok(match work {
        // Memory of a graph is there as long as the graph.
        Work::Empty | Work::Alloc(_) | Work::Free(_) | Work::Child(_) => GraphWork::Empty,
        Work::Kernel(kernel) => kernel_to_wire(device, session, kernel)?,
        Work::Copy(copy) => copy_to_wire(device, session, copy)?,
        Work::Fill(fill) => {
            check_fill(device.process, session, fill)?;
            GraphWork::Fill {
                address: fill.address,
                pitch: fill.pitch as u64,
                value: fill.value,
                element: fill.element,
                width: fill.width as u64,
                height: fill.height as u64,
            }
        }
        Work::Host { function, data } => {
            let call = Call::Function { function: *function, data: *data };
            GraphWork::Host { function: session.shared.host.add_function(call, false) }
        }
        Work::RecordEvent(event) => {
            event.ensure(session)?;
            GraphWork::RecordEvent { event: event.handle }
        }
        Work::WaitEvent(event) => {
            event.ensure(session)?;
            GraphWork::WaitEvent { event: event.handle }
        }
        Work::Memory(operations) => {
            check_operations(device.process, session, operations)?;
            GraphWork::Memory { operations: operations.clone() }
        }
        Work::Library(recording) => GraphWork::Library { recording: recording.number_in(session)? },
    })
}

fn kernel_to_wire(device: Device, session: &Session, kernel: &Kernel) -> CudaResult<GraphWork> {
    let resolved = kernel.function.resolve(session)?;
    let work = launch::Work { grid: kernel.grid, block: kernel.block, shared_bytes: kernel.shared_bytes, stream: 0 };
    launch::check(device, session, &kernel.function, &resolved, &work, &kernel.attributes)?;
    if device.process.has_ended() {
        launch::check_pointers(device.process, &resolved, &kernel.parameters)?;
    }
    Ok(GraphWork::Kernel {
        module: kernel.function.module.handle,
        function: resolved.index,
        grid: kernel.grid,
        block: kernel.block,
        shared_bytes: kernel.shared_bytes,
        attributes: kernel.attributes.clone(),
        parameters: kernel.parameters.clone(),
    })
}

/// Which side of the bus an address is on.
fn on_device(device: Device, side: &Side) -> CudaResult<bool> {
    match side.kind {
        HOST => Ok(false),
        DEVICE => Ok(names_device(device.process, side.address(), 1)),
        ARRAY => Err(refused("copies to and from CUDA arrays inside a graph are not supported")),
        _ => Ok(is_device(device.process, side.address())),
    }
}

/// Bytes from the first to the last of a copy's side.
fn span(side: &Side, [width, height, depth]: Extent) -> CudaResult<u64> {
    if (height > 1 && (side.pitch as u64) < width) || (depth > 1 && (side.height as u64) < height) {
        return Err(INVALID_VALUE);
    }
    let rows = (side.pitch as u64).checked_mul(height - 1);
    let planes = (side.slice() as u64).checked_mul(depth - 1);
    rows.zip(planes).and_then(|(rows, planes)| rows.checked_add(planes)?.checked_add(width)).ok_or(INVALID_VALUE)
}

fn copy_to_wire(device: Device, session: &Session, copy: &Copy3D) -> CudaResult<GraphWork> {
    let extent = [copy.width as u64, copy.height as u64, copy.depth as u64];
    if extent.contains(&0) {
        return Ok(GraphWork::Empty);
    }
    let planes = |side: &Side| -> CudaResult<Planes> {
        check_reachable(device.process, session, side.address(), span(side, extent)?)?;
        Ok(Planes { address: side.address(), pitch: side.pitch as u64, slice: side.slice() as u64 })
    };
    let rows = |side: &Side| -> CudaResult<Rows> {
        span(side, extent)?;
        if side.address() == 0 {
            return Err(INVALID_VALUE);
        }
        let extent = [copy.width, copy.height, copy.depth];
        Ok(Rows { address: side.address() as usize, pitch: side.pitch, slice: side.slice(), extent })
    };
    match (on_device(device, &copy.target)?, on_device(device, &copy.source)?) {
        (true, true) => Ok(GraphWork::Copy { target: planes(&copy.target)?, source: planes(&copy.source)?, extent }),
        (true, false) => {
            let target = planes(&copy.target)?;
            let copy = session.shared.host.add_copy(rows(&copy.source)?);
            Ok(GraphWork::CopyIn { target, extent, copy })
        }
        (false, true) => {
            let source = planes(&copy.source)?;
            let copy = session.shared.host.add_copy(rows(&copy.target)?);
            Ok(GraphWork::CopyOut { source, extent, copy })
        }
        (false, false) => Err(refused("copies from host to host inside a graph are not supported: use a host node")),
    }
}

fn check_fill(process: &'static Process, session: &Session, fill: &Fill) -> CudaResult {
    if !matches!(fill.element, 1 | 2 | 4) || !fill.address.is_multiple_of(u64::from(fill.element)) {
        return Err(INVALID_VALUE);
    }
    if fill.width == 0 || fill.height == 0 {
        return Err(INVALID_VALUE);
    }
    let width = (fill.width as u64).checked_mul(u64::from(fill.element)).ok_or(INVALID_VALUE)?;
    let rows = (fill.pitch as u64).checked_mul(fill.height as u64 - 1).ok_or(INVALID_VALUE)?;
    check_reachable(process, session, fill.address, rows.checked_add(width).ok_or(INVALID_VALUE)?)
}

/// Waits for and writes of words: each word is device memory of its length.
pub fn check_operations(process: &Process, session: &Session, operations: &[MemoryOperation]) -> CudaResult {
    for operation in operations {
        let bytes = match operation.kind {
            1 | 2 => 4,
            4 | 5 => 8,
            6 => continue,
            _ => return Err(refused("this operation on a stream's memory is not supported")),
        };
        if !operation.address.is_multiple_of(bytes) {
            return Err(INVALID_VALUE);
        }
        check_range(process, session, operation.address, bytes)?;
    }
    Ok(())
}
