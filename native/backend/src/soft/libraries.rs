//! The libraries beside the driver, computed by sluice-softlibs in stream order.

use super::{Shared, SoftDevice, Waiting};
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
        let library = sluice_api::libraries::library((call.library >> 16) as u16);
        let name =
            library.and_then(|library| library.numbered(call.function)).map_or("", |function| function.symbol.as_str());
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
                let (job, waiting) = (self.posted(name, work), Waiting::of(&self.shared, call.arguments.len()));
                let job = move || {
                    drop(waiting);
                    job()
                };
                self.timeline.submit(call.stream, Box::new(job))?;
                done(Ok(LibraryAnswer::default()));
                Ok(())
            }
            Ok(Step::Wait(work)) => {
                let job = self.job(name, work);
                let answer = Arc::new(Mutex::new(LibraryAnswer::default()));
                let written = Arc::clone(&answer);
                let short = library.map_or(1, |library| library.source.status.alloc_failed);
                let work = Box::new(move || {
                    *written.lock().unwrap_or_else(PoisonError::into_inner) = match job()? {
                        Ok(outputs) => LibraryAnswer { outputs, ..LibraryAnswer::default() },
                        Err(text) => LibraryAnswer { status: short, text, outputs: Vec::new() },
                    };
                    Ok(())
                });
                let reply: Done<()> = Box::new(move |outcome| {
                    let answer = std::mem::take(&mut *answer.lock().unwrap_or_else(PoisonError::into_inner));
                    done(outcome.map(|()| answer));
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
            Ok(Step::Queue(work)) => Ok(StepWork::Heavy(Box::new(self.posted(recorded.name(), work)))),
            Ok(Step::Done(_)) => Ok(StepWork::Marker),
            // Both were ruled out when it was recorded.
            Ok(Step::Wait(_)) => Err(CudaError::new(code::NOT_SUPPORTED, "the host waits for this call's result")),
            Err(refused) => Err(CudaError::new(code::INVALID_VALUE, refused.text)),
        }
    }

    fn recordings(&self) -> MutexGuard<'_, HashMap<RecordingId, Recorded>> {
        self.recordings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work that nobody waits for: what follows must not go on without its results.
    fn posted(&self, name: &'static str, work: Work) -> impl FnOnce() -> CudaResult<()> + Send + 'static {
        let job = self.job(name, work);
        move || job()?.map(drop).map_err(|text| CudaError::new(code::LAUNCH_FAILED, text))
    }

    /// The work with its time measured, and a fault in CUDA's words; or a sentence where the lease had no memory for it.
    fn job(
        &self,
        name: &'static str,
        work: Work,
    ) -> impl FnOnce() -> CudaResult<Result<Vec<u8>, String>> + Send + 'static {
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
            match outcome {
                Ok(Ok(outputs)) => Ok(Ok(outputs)),
                Ok(Err(Fault { address, bytes })) => {
                    let text = format!("{name}: {bytes} bytes at {address:#x} are not allocated");
                    Err(CudaError::new(code::ILLEGAL_ADDRESS, text))
                }
                Err(Short { bytes }) => {
                    let mib = bytes >> 20;
                    Ok(Err(format!("{name}: the lease has no memory for the {mib} MiB that the call copies")))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::gate::Gate;
    use crate::types::StreamId;
    use sluice_protocol::Wire;
    use sluice_protocol::library::Argument;
    use sluice_softlibs::Metered;
    use std::sync::mpsc::channel;

    #[global_allocator]
    static ALLOCATOR: Metered = Metered;

    /// A lease with memory for copies or without.
    struct Lease(bool);

    impl Gate for Lease {
        fn enter(&self) -> bool {
            false
        }
        fn leave(&self) {}
        fn charge(&self, _bytes: u64) -> bool {
            self.0
        }
        fn discharge(&self, _bytes: u64) {}
    }

    const BASE: u64 = 0x30_0000_0000;
    const COUNT: u64 = 4 << 20;

    /// Calls a function of cuBLAS on the vector at [`BASE`].
    fn call(device: &SoftDevice, symbol: &str, arguments: &[Argument<'_>]) -> CudaResult<LibraryAnswer> {
        let library = (0..u16::MAX).filter_map(sluice_api::libraries::library).find(|it| it.named(symbol).is_some());
        let library = library.expect("a library has it");
        let function = library.named(symbol).expect("just found").number;
        let mut bytes = Vec::new();
        arguments.iter().for_each(|argument| argument.put(&mut bytes));
        let (answer, answered) = channel();
        let library = u32::from(library.source.number) << 16;
        let call = LibraryCall { library, function, stream: StreamId::LEGACY, arguments: &bytes, waits: true };
        device.call_library(call, Box::new(move |outcome| answer.send(outcome).expect("waited for")))?;
        answered.recv().expect("answered")
    }

    #[test]
    fn without_memory_a_call_that_is_waited_for_answers_so_and_another_ends_the_context() {
        for (place, rich) in [(0, true), (1, false)] {
            let device = SoftDevice::open(1, false, Box::new(|_| {})).expect("opened");
            device.ask(Arc::new(Lease(rich)));
            let x = BASE + (place << 33);
            device.reserve(x, 4 << 30).expect("a range");
            device.alloc(x, COUNT * 8).expect("allocated");
            call(&device, "cublasCreate_v2", &[Argument::New(1)]).expect("a handle");
            let vector = [Argument::Object(1), Argument::Word(COUNT), Argument::Word(x), Argument::Word(1)];
            let norm = [vector.as_slice(), &[Argument::Out(8)]].concat();
            let norm = call(&device, "cublasDnrm2_v2", &norm).expect("answered");
            let two = 2f64.to_le_bytes();
            let scaled = [&vector[..2], &[Argument::In(&two)], &vector[2..]].concat();
            assert_eq!(call(&device, "cublasDscal_v2", &scaled), Ok(LibraryAnswer::default()));
            let (done, ended) = channel();
            let _ = device.synchronize(Box::new(move |outcome| done.send(outcome).expect("waited for")));
            let ended = ended.recv().expect("ended").map_err(|error| error.code);
            if rich {
                assert_eq!((norm.status, norm.outputs), (0, vec![0; 8]));
                assert_eq!(ended, Ok(()));
            } else {
                // CUBLAS_STATUS_ALLOC_FAILED
                assert_eq!((norm.status, norm.outputs.len()), (3, 0), "{}", norm.text);
                assert!(norm.text.contains("cublasDnrm2_v2: the lease has no memory"), "{}", norm.text);
                assert_eq!(ended, Err(code::LAUNCH_FAILED));
            }
        }
    }
}
