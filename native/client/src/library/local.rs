//! Functions that are answered here: versions, the words for statuses, and copies that are the driver's.

use super::{LAST_REASON, Loaded, Outcome, Refusal, call, group, release, text};
use crate::driver;
use crate::error::CudaResult;
use crate::message::interned;
use crate::process;
use sluice_api::libraries::{Function, number_of};
use sluice_protocol::library::{Argument, take_arguments};
use std::ffi::c_void;
use std::sync::PoisonError;

/// Answers a function of [`sluice_api::libraries::Way::Local`].
///
/// # Safety
/// Slots are what the declaration says.
pub(super) unsafe fn answer(loaded: Loaded, function: &'static Function, slots: &[usize]) -> Outcome {
    let words = |text: &str| Ok(interned(text).as_ptr() as usize);
    match function.symbol.as_str() {
        "cublasGetStatusName" | "cublasLtGetStatusName" => words(text::cublas(slots[0] as u32).0),
        "cublasGetStatusString" | "cublasLtGetStatusString" => words(text::cublas(slots[0] as u32).1),
        "cusparseGetErrorName" | "cusparseLtGetErrorName" => words(text::cusparse(slots[0] as u32).0),
        "cusparseGetErrorString" | "cusparseLtGetErrorString" => words(text::cusparse(slots[0] as u32).1),
        "cudnnGetErrorString" => words(text::cudnn(slots[0] as u32).0),
        "ncclGetErrorString" => words(text::nccl(slots[0] as u32)),
        "ncclGetLastError" => words(&LAST_REASON.with_borrow(String::clone)),
        // SAFETY: the caller's output, as long as it says.
        "cudnnGetLastErrorString" => unsafe { last_reason(slots[0], slots[1]) },
        "ncclGroupStart" => group::start(),
        "ncclGroupEnd" => group::end(loaded),
        // SAFETY: as the caller's.
        "ncclCommInitAll" => unsafe { group::join_all(loaded, slots[0], slots[1] as i32, slots[2]) },
        // SAFETY: the caller's output, an int.
        "ncclCommCuDevice" => unsafe { put(loaded, slots[1], group::device_of(loaded, slots[0])? as u32) },
        // Any memory serves; registering it is the library's business on the server.
        // SAFETY: the caller's output, a pointer; and its own memory.
        "ncclMemAlloc" => cuda(loaded, unsafe { driver::cuMemAlloc_v2(slots[0] as *mut u64, slots[1]) }),
        // SAFETY: as above.
        "ncclMemFree" => cuda(loaded, unsafe { driver::cuMemFree_v2(slots[0] as u64) }),
        // Parts of one library, all of the same release.
        "cudnnGraphVersionCheck" | "cudnnOpsVersionCheck" | "cudnnCnnVersionCheck" | "cudnnAdvVersionCheck" => Ok(0),
        // SAFETY: as the caller's: its first three arguments are those of the call that the graph is to hold.
        "cudnnBackendPopulateCudaGraph" => unsafe { call::populate(loaded, "cudnnBackendExecute", slots, false) },
        // SAFETY: as above.
        "cudnnBackendUpdateCudaGraph" => unsafe { call::populate(loaded, "cudnnBackendExecute", slots, true) },
        // SAFETY: the caller's outputs.
        "cudnnGetRNNDescriptor_v8" => unsafe { network(loaded, slots) },
        "cudnnGetCudartVersion" => Ok(13_000),
        "cublasGetCudartVersion" | "cublasLtGetCudartVersion" => Ok((loaded.shim().abi() * 1000) as usize),
        // SAFETY: the caller's output, a pointer.
        "cuptiGetResultString" => unsafe { put_words(loaded, slots[1], text::cupti(slots[0] as u32).0) },
        // SAFETY: the caller's output, a pointer.
        "cuptiGetErrorMessage" => unsafe { put_words(loaded, slots[1], text::cupti(slots[0] as u32).1) },
        // SAFETY: the caller's output, an int.
        "cuptiGetVersion" => unsafe { put(loaded, slots[0], loaded.shim().version) },
        "cudnnGetVersion" | "cublasLtGetVersion" => Ok(release::version(loaded) as usize),
        "ncclGetVersion" | "cufftGetVersion" | "curandGetVersion" | "cusolverGetVersion" => {
            // SAFETY: the caller's output, an int.
            unsafe { put(loaded, slots[0], release::version(loaded)) }
        }
        // The handle may be null: versions are asked for before anything is made.
        "cublasGetVersion_v2" | "cusparseGetVersion" | "cusparseLtGetVersion" => {
            // SAFETY: the caller's output, an int.
            unsafe { put(loaded, slots[1], release::version(loaded)) }
        }
        // SAFETY: as the caller's.
        "cublasLtMatmulDescGetAttribute" | "cublasLtMatrixLayoutGetAttribute" => unsafe { attribute(loaded, slots) },
        "cublasGetProperty"
        | "cublasLtGetProperty"
        | "cudnnGetProperty"
        | "cufftGetProperty"
        | "curandGetProperty"
        | "cusolverGetProperty"
        | "cusparseGetProperty"
        | "cusparseLtGetProperty" => {
            let part = release::parts(loaded).get(slots[0] as u32 as usize).copied();
            let part = part.ok_or_else(|| Refusal::status(loaded.status().invalid_value))?;
            // SAFETY: the caller's output, an int.
            unsafe { put(loaded, slots[1], part) }
        }
        // SAFETY: as the caller's.
        "cublasSetVector" | "cublasSetVectorAsync" | "cublasGetVector" | "cublasGetVectorAsync" => unsafe {
            let [n, element, source, inc_source, target, inc_target] = [0, 1, 2, 3, 4, 5].map(|at| slots[at]);
            let block =
                Block { rows: 1, columns: n, element, source, lead: inc_source, target, lead_target: inc_target };
            block.copy(loaded, function, slots.get(6).copied())
        },
        // SAFETY: as the caller's.
        "cublasSetMatrix" | "cublasSetMatrixAsync" | "cublasGetMatrix" | "cublasGetMatrixAsync" => unsafe {
            let [rows, columns, element, source, lead, target, lead_target] = [0, 1, 2, 3, 4, 5, 6].map(|at| slots[at]);
            let block = Block { rows, columns, element, source, lead, target, lead_target };
            block.copy(loaded, function, slots.get(7).copied())
        },
        _ => Err(Refusal::new(loaded.status().not_supported, "not supported yet")),
    }
}

/// An attribute of a matmul's or matrix's description.
unsafe fn attribute(loaded: Loaded, slots: &[usize]) -> Outcome {
    let [description, attribute, data, bytes, written] = [0, 1, 2, 3, 4].map(|at| slots[at]);
    let invalid = || Refusal::status(loaded.status().invalid_value);
    let value = process::get().objects.libraries.values.get(description).map_err(|_| invalid())?;
    let value = value.lock().unwrap_or_else(PoisonError::into_inner).attribute(attribute as u32);
    let value = value.ok_or_else(invalid)?;
    if bytes < value.len() && !(bytes == 0 && written != 0) {
        return Err(invalid());
    }
    // SAFETY: the caller's outputs: as many bytes as it says, and a size.
    unsafe {
        if bytes != 0 {
            std::ptr::copy_nonoverlapping(value.as_ptr(), data as *mut u8, value.len());
        }
        if written != 0 {
            (written as *mut usize).write_unaligned(value.len());
        }
    }
    Ok(0)
}

/// cudnnGetRNNDescriptor_v8: what cudnnSetRNNDescriptor_v8 said last. The dropout's descriptor is an object of this
/// process, so the server could not name it.
unsafe fn network(loaded: Loaded, slots: &[usize]) -> Outcome {
    let unknown = || Refusal::status(loaded.status().invalid_value);
    let object = process::get().objects.libraries.objects.get(slots[0]).map_err(|_| unknown())?;
    let said = object.said_by(number_of("cudnnSetRNNDescriptor_v8")).ok_or_else(unknown)?;
    let arguments = take_arguments(&said).map_err(|_| unknown())?;
    for (argument, target) in arguments.iter().zip(slots).skip(1).filter(|(_, target)| **target != 0) {
        // SAFETY: the caller's outputs: enumerations and numbers of 32 bits, and one handle.
        unsafe {
            match (argument, target) {
                (Argument::Object(number), _) => (*target as *mut u64).write_unaligned(*number),
                (Argument::Word(_), target) if *target == slots[13] => (*target as *mut u64).write_unaligned(0),
                (Argument::Word(value), _) => (*target as *mut u32).write_unaligned(*value as u32),
                _ => return Err(unknown()),
            }
        }
    }
    Ok(0)
}

/// Writes the last reason as a C string, as much of it as fits.
unsafe fn last_reason(target: usize, room: usize) -> Outcome {
    let Some(most) = room.checked_sub(1).filter(|_| target != 0) else { return Ok(0) };
    LAST_REASON.with_borrow(|reason| {
        let bytes = most.min(reason.len());
        // SAFETY: as the caller's: `room` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(reason.as_ptr(), target as *mut u8, bytes);
            (target as *mut u8).add(bytes).write(0);
        }
    });
    Ok(0)
}

/// A driver's answer in the library's words.
fn cuda(loaded: Loaded, outcome: CudaResult) -> Outcome {
    outcome.map(|()| 0).map_err(|error| Refusal::from_cuda(loaded.status(), error))
}

/// Writes the place of a text that stays.
///
/// # Safety
/// The target has room for a pointer.
unsafe fn put_words(loaded: Loaded, target: usize, text: &str) -> Outcome {
    if target == 0 {
        return Err(Refusal::status(loaded.status().invalid_value));
    }
    // SAFETY: as the caller's.
    unsafe { (target as *mut usize).write_unaligned(interned(text).as_ptr() as usize) };
    Ok(0)
}

unsafe fn put(loaded: Loaded, target: usize, value: u32) -> Outcome {
    if target == 0 {
        return Err(Refusal::status(loaded.status().invalid_value));
    }
    // SAFETY: as the caller's.
    unsafe { (target as *mut u32).write_unaligned(value) };
    Ok(0)
}

/// Columns with gaps between them, on both sides. Numbers are C ints in slots.
struct Block {
    rows: usize,
    columns: usize,
    element: usize,
    source: usize,
    lead: usize,
    target: usize,
    lead_target: usize,
}

impl Block {
    /// Copies to or from the device, as the function's name says.
    unsafe fn copy(&self, loaded: Loaded, function: &Function, stream: Option<usize>) -> Outcome {
        let [rows, columns, element, lead, lead_target] =
            [self.rows, self.columns, self.element, self.lead, self.lead_target].map(|slot| slot as i32);
        if rows < 0 || columns < 0 || element <= 0 || lead < rows || lead_target < rows {
            return Err(Refusal::status(loaded.status().invalid_value));
        }
        let (rows, columns, element) = (rows as usize, columns as usize, element as usize);
        let (lead, lead_target) = (lead as usize, lead_target as usize);
        // Columns without gaps are one piece.
        let (pieces, bytes) = if lead == rows && lead_target == rows {
            (usize::from(columns > 0), rows * columns * element)
        } else {
            (columns, rows * element)
        };
        let to_device = function.symbol.starts_with("cublasSet");
        for piece in 0..pieces {
            let source = self.source + piece * lead * element;
            let target = self.target + piece * lead_target * element;
            // SAFETY: the caller's memory, as long as rows, columns and leading dimensions say.
            let outcome: CudaResult = unsafe {
                match (to_device, stream) {
                    (true, None) => driver::cuMemcpyHtoD_v2(target as u64, source as *const c_void, bytes),
                    (true, Some(on)) => driver::cuMemcpyHtoDAsync_v2(target as u64, source as *const c_void, bytes, on),
                    (false, None) => driver::cuMemcpyDtoH_v2(target as *mut c_void, source as u64, bytes),
                    (false, Some(on)) => driver::cuMemcpyDtoHAsync_v2(target as *mut c_void, source as u64, bytes, on),
                }
            };
            outcome.map_err(|error| Refusal::from_cuda(loaded.status(), error))?;
        }
        Ok(0)
    }
}
