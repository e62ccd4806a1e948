//! The libraries beside the driver, computed by sluice-softlibs in stream order.

use super::{Shared, SoftDevice};
use crate::device::Done;
use crate::error::{CudaError, CudaResult, code};
use crate::graph::RecordingId;
use crate::timeline::StepWork;
use crate::types::{LibraryAnswer, LibraryCall};
use sluice_softlibs::{Fault, Libraries, Recorded, Short, Step, Work, metered};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The functions of a library that the software GPU cannot execute.
pub fn open(library: u32) -> CudaResult<Vec<u32>> {
    Libraries::refused(library).ok_or_else(|| {
        let found = sluice_api::libraries::library((library >> 16) as u16);
        let title = found.map_or("this library", |library| library.source.title);
        let text = format!("the software GPU has no {title}; a GPU of another type has (%gpu attach --type names one)");
        CudaError::new(code::NOT_SUPPORTED, text)
    })
}

fn unknown_recording() -> CudaError {
    CudaError::new(code::INVALID_HANDLE, "there is no such recorded library call")
}

impl sluice_softlibs::Memory for Shared {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Fault> {
        let fault = Fault { address, bytes: out.len() as u64 };
        self.memory.get().ok_or(fault)?.arena().read(address, out).map_err(|_| fault)
    }

    fn write(&self, address: u64, data: &[u8]) -> Result<(), Fault> {
        let fault = Fault { address, bytes: data.len() as u64 };
        self.memory.get().ok_or(fault)?.arena().write(address, data).map_err(|_| fault)
    }
}

impl SoftDevice {
    /// Checks a call now and queues its work.
    pub(super) fn run_library(&self, call: LibraryCall<'_>, done: Done<LibraryAnswer>) -> CudaResult<()> {
        if let Some(failure) = self.timeline.failure() {
            return Err(failure);
        }
        let mut libraries = self.libraries.lock().unwrap_or_else(PoisonError::into_inner);
        let step = libraries.prepare(call.library, call.function, call.arguments);
        drop(libraries);
        let name = sluice_api::libraries::library((call.library >> 16) as u16)
            .and_then(|library| library.numbered(call.function))
            .map_or("", |function| function.symbol.as_str());
        match step {
            Err(refused) => {
                done(Ok(LibraryAnswer { status: refused.status, text: refused.text, outputs: Vec::new() }));
                Ok(())
            }
            Ok(Step::Done(outputs)) => {
                done(Ok(LibraryAnswer { outputs, ..LibraryAnswer::default() }));
                Ok(())
            }
            Ok(Step::Queue(work)) => {
                let job = self.job(name, work);
                self.timeline.submit(call.stream, Box::new(move || job().map(drop)))?;
                done(Ok(LibraryAnswer::default()));
                Ok(())
            }
            Ok(Step::Wait(work)) => {
                let job = self.job(name, work);
                let result = Arc::new(Mutex::new(Vec::new()));
                let written = Arc::clone(&result);
                let work = Box::new(move || {
                    *written.lock().unwrap_or_else(PoisonError::into_inner) = job()?;
                    Ok(())
                });
                let reply: Done<()> = Box::new(move |outcome| {
                    let outputs = std::mem::take(&mut *result.lock().unwrap_or_else(PoisonError::into_inner));
                    done(outcome.map(|()| LibraryAnswer { outputs, ..LibraryAnswer::default() }));
                });
                self.timeline.submit_call(call.stream, false, work, reply)
            }
        }
    }

    /// Keeps a call for graphs; see [`crate::Device::record_library`].
    pub(super) fn keep_library(&self, recording: RecordingId, call: LibraryCall<'_>) -> CudaResult<LibraryAnswer> {
        if let Some(failure) = self.timeline.failure() {
            return Err(failure);
        }
        let mut libraries = self.libraries.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = libraries.record(call.library, call.function, call.arguments);
        drop(libraries);
        Ok(match recorded {
            Err(refused) => LibraryAnswer { status: refused.status, text: refused.text, outputs: Vec::new() },
            Ok(recorded) => {
                self.recordings().insert(recording, recorded);
                LibraryAnswer::default()
            }
        })
    }

    /// Forgets a recording.
    pub(super) fn drop_library(&self, recording: RecordingId) -> CudaResult<()> {
        self.recordings().remove(&recording).map(drop).ok_or_else(unknown_recording)
    }

    /// One run of a recorded call.
    pub(super) fn library_step(&self, recording: RecordingId) -> CudaResult<StepWork> {
        let recordings = self.recordings();
        let recorded = recordings.get(&recording).ok_or_else(unknown_recording)?;
        match recorded.step() {
            Ok(Step::Queue(work)) => {
                let job = self.job(recorded.name(), work);
                Ok(StepWork::Heavy(Box::new(move || job().map(drop))))
            }
            Ok(Step::Done(_)) => Ok(StepWork::Marker),
            // Both were ruled out when it was recorded.
            Ok(Step::Wait(_)) => Err(CudaError::new(code::NOT_SUPPORTED, "the host waits for this call's result")),
            Err(refused) => Err(CudaError::new(code::INVALID_VALUE, refused.text)),
        }
    }

    fn recordings(&self) -> MutexGuard<'_, HashMap<RecordingId, Recorded>> {
        self.recordings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work with its time measured, and a fault in CUDA's words.
    fn job(&self, name: &'static str, work: Work) -> impl FnOnce() -> CudaResult<Vec<u8>> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            if shared.cancel.load(Ordering::Acquire) {
                return Err(CudaError::new(702, "the lease was ended"));
            }
            let began = Instant::now();
            let occupied = shared.engine.occupy();
            // Copies of operands are the lease's memory, as what a card's libraries take is.
            let outcome = match shared.engine.lender() {
                Some(lender) => metered(lender, || work(&*shared)),
                None => Ok(work(&*shared)),
            };
            drop(occupied);
            shared.library_time_ns.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
            let outcome = outcome.map_err(|Short { bytes }| {
                let text = format!("{name}: the lease has no memory for the {} MiB that the call copies", bytes >> 20);
                // Nobody waits for a posted call's status, so what follows must not go on without its results.
                CudaError::new(code::LAUNCH_FAILED, text)
            })?;
            outcome.map_err(|fault| {
                let text = format!("{name}: {} bytes at {:#x} are not allocated", fault.bytes, fault.address);
                CudaError::new(code::ILLEGAL_ADDRESS, text)
            })
        }
    }
}
