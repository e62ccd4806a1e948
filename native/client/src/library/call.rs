//! Calls that the server executes, and descriptions.

use super::encode::{Encoded, Encoder};
use super::object::{Object, Remembered, new_number, post};
use super::recording::Recording;
use super::remote::{self, Answer, Operands};
use super::value::Contents;
use super::{Loaded, Outcome, Refusal, draft};
use crate::device::Device;
use crate::driver;
use crate::driver::capture;
use crate::driver::context::is_missing;
use crate::driver::graph::nodes::set as set_node;
use crate::driver::graph::{Graph, Work};
use crate::error::{CudaError, CudaResult};
use crate::process::{self, Process};
use crate::runtime::context::initialised;
use crate::session::Session;
use sluice_api::libraries::{Function, Kind, Way, number_of};
use sluice_protocol::cuda;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// The question for algorithms of a product. A cublasLtMatmulHeuristicResult_t begins with the algorithm and the bytes of
/// its work space; its state says whether it serves.
const PROPOSALS: &str = "cublasLtMatmulAlgoGetHeuristic";
const PROPOSAL: usize = 96;
const PROPOSAL_WORKSPACE: usize = 64;
const PROPOSAL_STATE: usize = 72;
/// CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES and those of B, C and D: what the asker says of its matrices.
const PREFERRED_ALIGNMENTS: [u32; 4] = [5, 6, 7, 8];

/// CUSPARSE_STATUS_ZERO_PIVOT: where the pivot is, is told beside it.
const CUSPARSE_ZERO_PIVOT: (u32, &str) = (9, "cusparse");

/// The current device and its session, with CUDA started.
pub(super) fn begun(loaded: Loaded) -> Outcome<(Device, Arc<Session>)> {
    let found = || -> CudaResult<(Device, Arc<Session>)> {
        begin()?;
        let device = driver::current()?;
        Ok((device, device.session()?))
    };
    found().map_err(|error| Refusal::from_cuda(loaded.status(), error))
}

/// Starts CUDA and makes a context current, as the library itself would do it.
fn begin() -> CudaResult<()> {
    initialised()?;
    if is_missing()? {
        let mut context = 0;
        // SAFETY: a live local.
        unsafe {
            driver::cuDevicePrimaryCtxRetain(&raw mut context, 0)?;
            driver::cuCtxSetCurrent(context)?;
        }
    }
    Ok(())
}

/// Answers everything that is neither local nor refused.
///
/// # Safety
/// Slots are what the declaration says.
pub(super) unsafe fn answer(loaded: Loaded, function: &'static Function, slots: &[usize]) -> Outcome {
    // What exists may be ended by a destructor that runs when the thread is past everything: no context is asked for.
    let process = process::get();
    match function.way {
        // SAFETY: as the caller's.
        Way::Describe | Way::Change | Way::Drop => unsafe { describe(process, loaded, function, slots) },
        // SAFETY: as the caller's.
        Way::Get => unsafe { get(process, loaded, function, slots) },
        // SAFETY: as the caller's.
        Way::End => unsafe { end(process, loaded, function, slots) },
        // SAFETY: as the caller's.
        Way::Draft | Way::Write | Way::Finish | Way::Read => unsafe { draft::answer(process, loaded, function, slots) },
        _ => {
            let (device, session) = begun(loaded)?;
            session.libraries.check(&session, loaded, &function.symbol, function.number)?;
            let fresh = if function.way == Way::Make { new_number(loaded.library.source.small_handles) } else { 0 };
            let encoder = Encoder { process, to: Some((device, &session)), loaded, function, slots, fresh };
            // SAFETY: as the caller's.
            let encoded = unsafe { encoder.encode()? };
            // SAFETY: as the caller's.
            unsafe { send(device, &session, loaded, function, slots, encoded, fresh) }
        }
    }
}

/// Sends an encoded call in the way that its function travels.
///
/// # Safety
/// Slots are what the declaration says, and so are the encoded outputs.
pub(super) unsafe fn send(
    device: Device,
    session: &Arc<Session>,
    loaded: Loaded,
    function: &'static Function,
    slots: &[usize],
    mut encoded: Encoded,
    fresh: u64,
) -> Outcome {
    if function.way == Way::Run && captured(device, session, loaded, function, &encoded)? {
        return Ok(0);
    }
    let waits = match function.way {
        Way::Make => true,
        // What a program writes into its own structures is checked at once.
        Way::Set => !encoded.outputs.is_empty() || loaded.library.source.in_place,
        Way::Run => {
            !encoded.outputs.is_empty()
                || function.reads_samples
                || !session.libraries.is_accepted(encoded.choices, &encoded.operands)
        }
        _ => true,
    };
    if function.way == Way::Ask {
        let answer =
            remote::ask(session, loaded, function.number, encoded.stream, (&encoded.arguments, &encoded.question()))?;
        if function.symbol == PROPOSALS {
            accept_proposals(session, loaded, &answer, &encoded, preferred_alignments(device.process, slots));
        }
        // SAFETY: as the caller's.
        return unsafe { deliver(loaded, &answer, &encoded) };
    }
    if !waits {
        post(session, loaded, function.number, encoded.stream, &encoded.arguments)?;
    } else {
        let answer = remote::call(session, loaded, function.number, encoded.stream, &encoded.arguments)?;
        // SAFETY: as the caller's.
        unsafe { deliver(loaded, &answer, &encoded)? };
        session.libraries.accept(encoded.choices, encoded.operands);
    }
    let remembered = |mut encoded: Encoded| Remembered::new(function, slots.get(1).copied().unwrap_or(0), &mut encoded);
    match function.way {
        Way::Make => {
            let target = encoded.made.unwrap_or(0);
            let objects = &device.process.objects.libraries.objects;
            let place = if loaded.library.source.in_place { target } else { 0 };
            if place != 0 {
                // SAFETY: the caller's structure.
                let before = unsafe { (place as *const usize).read_unaligned() };
                if objects.get(before).is_ok_and(|object| object.place == place)
                    && let Ok(gone) = objects.remove(before)
                {
                    gone.forget();
                }
            }
            encoded.references.extend(encoded.object.take());
            let mut object = Object::new(loaded, fresh, remembered(encoded), false, session);
            object.place = place;
            objects.put(fresh, object);
            // SAFETY: the caller's output; where handles are C ints it has room for one.
            unsafe { put_number(loaded, target, fresh) };
        }
        Way::Set => {
            if let Some(object) = encoded.object.clone() {
                if let Some(stream) = encoded.named_stream {
                    object.stream.store(encoded.stream, Ordering::Relaxed);
                    object.named_stream.store(stream, Ordering::Relaxed);
                } else if function.symbol == loaded.library.source.set_pointer_mode {
                    object.pointer_mode.store(slots[1] as u32, Ordering::Relaxed);
                }
                object.remember(remembered(encoded));
            }
        }
        _ => {}
    }
    Ok(0)
}

/// The alignments of a product's addresses that a question for proposals assumes: its own, or all that there is.
fn preferred_alignments(process: &Process, slots: &[usize]) -> [u16; 8] {
    let preference = process.objects.libraries.values.get(slots[6]).ok();
    let numbers = preference.map(|value| value.lock().unwrap_or_else(PoisonError::into_inner).numbers.clone());
    let preferred = PREFERRED_ALIGNMENTS.map(|number| {
        let set = numbers.as_ref().and_then(|numbers| numbers.get(&number)).copied();
        set.map_or(Operands::ALIGNED, |bytes| bytes.min(u64::from(Operands::ALIGNED)) as u16)
    });
    let [a, b, c, d] = preferred;
    [a, b, c, d, Operands::ALIGNED, 0, 0, 0]
}

/// What cuBLASLt proposes for a product, it accepts of operands like those that it was asked for: that product need not
/// wait.
fn accept_proposals(session: &Session, loaded: Loaded, answer: &Answer, asked: &Encoded, alignments: [u16; 8]) {
    let Some((results, found)) = answer.outputs.split_last_chunk() else { return };
    let (Some(product), Some(descriptions)) = (loaded.library.named("cublasLtMatmul"), asked.descriptions.get(..5))
    else {
        return;
    };
    for proposal in results.as_chunks::<PROPOSAL>().0.iter().take(u32::from_le_bytes(*found) as usize) {
        if proposal[PROPOSAL_STATE..][..4] == [0; 4] {
            let mut choices = DefaultHasher::new();
            (loaded.id, product.number).hash(&mut choices);
            let (algorithm, rest) = proposal.split_at(PROPOSAL_WORKSPACE);
            algorithm.hash(&mut choices);
            descriptions.hash(&mut choices);
            let workspace = rest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            session.libraries.accept(choices.finish(), Operands { alignments, workspace });
        }
    }
}

/// Makes work a node when its stream captures. What the host would wait for cannot be one, and ends the capture.
fn captured(
    device: Device,
    session: &Session,
    loaded: Loaded,
    function: &'static Function,
    encoded: &Encoded,
) -> Outcome<bool> {
    let status = loaded.status();
    let of_object = || Some(encoded.object.as_ref()?.named_stream.load(Ordering::Relaxed));
    let on = encoded.named_stream.or_else(of_object).unwrap_or(0);
    let with_the_host = match (function.reads_samples, encoded.outputs.is_empty()) {
        (true, _) => Some(
            "it reads host memory, which a captured graph would look for at each launch: call the function of the next \
             version, which reads the device's, or call it outside the capture",
        ),
        (false, false) => Some(
            "its result goes to the host, which a captured graph does not wait for: use a pointer mode that leaves it on \
             the device, or call it outside the capture",
        ),
        (false, true) => None,
    };
    if let Some(text) = with_the_host {
        let refused = capture::refuse(device, on);
        return refused
            .map(|()| false)
            .map_err(|error| Refusal { text: Some(text.to_owned()), ..Refusal::from_cuda(status, error) });
    }
    let mut refusal = None;
    let made = capture::library(device, on, || {
        Recording::make(session, loaded, function, encoded).map_err(|refused| {
            refusal = Some(refused);
            CudaError::code(cuda::ERROR_STREAM_CAPTURE_UNSUPPORTED)
        })
    });
    made.map_err(|error| refusal.unwrap_or_else(|| Refusal::from_cuda(status, error)))
}

/// Makes a call the one node of a graph that has none, or with `again` the work of the node that it was before. The
/// last slot is the graph, those before it are the call's.
///
/// # Safety
/// The slots before the last are what the called function's declaration says.
pub(super) unsafe fn populate(loaded: Loaded, called: &str, slots: &[usize], again: bool) -> Outcome {
    let status = loaded.status();
    let (Some(function), [of_call @ .., graph]) = (loaded.library.named(called), slots) else {
        return Err(Refusal::status(status.not_supported));
    };
    let (device, session) = begun(loaded)?;
    session.libraries.check(&session, loaded, &function.symbol, function.number)?;
    let refused = |error| Refusal::from_cuda(status, error);
    let (process, graph) = (device.process, Graph::find(device.process, *graph).map_err(refused)?);
    let nodes: Vec<u64> = graph.state().nodes.keys().copied().collect();
    if nodes.len() != usize::from(again) {
        let wanted = if again { "the one node that was made for it" } else { "no nodes yet" };
        return Err(Refusal::new(status.invalid_value, format!("the graph must have {wanted}")));
    }
    let encoder = Encoder { process, to: Some((device, &session)), loaded, function, slots: of_call, fresh: 0 };
    // SAFETY: as the caller's.
    let encoded = unsafe { encoder.encode()? };
    let work = Work::Library(Recording::make(&session, loaded, function, &encoded)?);
    let done = match nodes.first() {
        Some(node) => set_node(process, *node as usize, work),
        None => graph.add(process, work, Vec::new()).map(|_| ()),
    };
    done.map(|()| 0).map_err(refused)
}

/// Writes a handle in its library's width.
///
/// # Safety
/// `target` has room for a handle.
pub(super) unsafe fn put_number(loaded: Loaded, target: usize, number: u64) {
    // SAFETY: as the caller's.
    unsafe {
        if loaded.library.source.small_handles {
            (target as *mut u32).write_unaligned(number as u32);
        } else {
            (target as *mut u64).write_unaligned(number);
        }
    }
}

/// Writes outputs where the program wants them.
///
/// # Safety
/// The outputs are the caller's.
pub(super) unsafe fn deliver(loaded: Loaded, answer: &Answer, encoded: &Encoded) -> Outcome {
    let is_told = answer.status == 0 || (answer.status, loaded.library.source.name) == CUSPARSE_ZERO_PIVOT;
    if is_told {
        // SAFETY: as the caller's.
        unsafe { put_outputs(loaded, answer, encoded)? };
    }
    if answer.status != 0 {
        // A framework tries what cuDNN may refuse, and asks for the reason where it wants to tell it.
        let asked_for = loaded.library.named("cudnnGetLastErrorString").is_some();
        if asked_for {
            super::keep_reason(&answer.text);
        }
        let text = (!answer.text.is_empty() && !asked_for).then(|| answer.text.clone());
        return Err(Refusal { status: answer.status, text });
    }
    Ok(0)
}

unsafe fn put_outputs(loaded: Loaded, answer: &Answer, encoded: &Encoded) -> Outcome<()> {
    let mut at = 0;
    for &(target, bytes) in &encoded.outputs {
        let Some(data) = answer.outputs.get(at..at + bytes) else {
            return Err(Refusal::new(loaded.status().execution_failed, "the GPU server sent too little"));
        };
        // SAFETY: the caller's output of this length.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), target as *mut u8, bytes) };
        at += bytes;
    }
    Ok(())
}

/// What was set last, or 0.
unsafe fn get(process: &'static Process, loaded: Loaded, function: &'static Function, slots: &[usize]) -> Outcome {
    let encoder = Encoder { process, to: None, loaded, function, slots, fresh: 0 };
    let object = process.objects.libraries.objects.get(encoder.object_number(slots[0]) as usize);
    let object = object.map_err(|_| Refusal::status(loaded.status().not_initialized))?;
    let value = object.value_of(number_of(&function.note)).unwrap_or(0);
    let set = loaded.library.named(&function.note);
    let is_stream = set.is_some_and(|set| set.parameters.get(1).is_some_and(|p| p.kind == Kind::Stream));
    if slots[1] == 0 {
        return Err(Refusal::status(loaded.status().invalid_value));
    }
    // SAFETY: the caller's output: a stream or an enumeration.
    unsafe {
        if is_stream {
            (slots[1] as *mut usize).write_unaligned(value);
        } else {
            (slots[1] as *mut u32).write_unaligned(value as u32);
        }
    }
    Ok(0)
}

/// Ends an object, at the server too where it lives there now.
unsafe fn end(process: &'static Process, loaded: Loaded, function: &'static Function, slots: &[usize]) -> Outcome {
    let encoder = Encoder { process, to: None, loaded, function, slots, fresh: 0 };
    // SAFETY: as the caller's.
    let encoded = unsafe { encoder.encode()? };
    let Some(object) = encoded.object else { return Err(Refusal::status(loaded.status().invalid_value)) };
    let _ = process.objects.libraries.objects.remove(encoded.number as usize);
    object.end(function.number, encoded.arguments);
    Ok(0)
}

/// Makes, changes or ends a description, here.
unsafe fn describe(process: &'static Process, loaded: Loaded, function: &'static Function, slots: &[usize]) -> Outcome {
    let values = &process.objects.libraries.values;
    let invalid = || Refusal::status(loaded.status().invalid_value);
    if function.way == Way::Drop {
        return values.remove(slots[0]).map(|_| 0).map_err(|_| invalid());
    }
    // Descriptions in descriptions are sent before what they are part of.
    let device = driver::current().ok();
    let session = device.and_then(Device::session_now);
    let parameters = &function.parameters;
    let fresh = if function.way == Way::Describe { new_number(false) } else { 0 };
    let encoder = Encoder { process, to: device.zip(session.as_deref()), loaded, function, slots, fresh };
    // SAFETY: as the caller's.
    let (mut encoded, skipped) = unsafe { (encoder.encode_after_first()?, slots[0]) };
    let choices: Vec<u32> = parameters
        .iter()
        .zip(slots)
        .filter(|(parameter, _)| parameter.kind == Kind::Enum)
        .map(|(_, slot)| *slot as u32)
        .collect();
    let arguments = std::mem::take(&mut encoded.arguments);
    if function.way == Way::Describe {
        if skipped == 0 {
            return Err(invalid());
        }
        let end = loaded.library.end_of(function, Way::Drop).map_or("", |other| other.symbol.as_str());
        let contents = Contents {
            describe: function.number,
            end: end.to_owned(),
            arguments,
            choices,
            changes: Default::default(),
            numbers: Default::default(),
        };
        values.put(fresh, Mutex::new(contents));
        // SAFETY: the caller's output, a pointer's size.
        unsafe { (skipped as *mut u64).write_unaligned(fresh) };
        return Ok(0);
    }
    let value = values.get(skipped).map_err(|_| invalid())?;
    let attribute = choices.first().copied().unwrap_or(0);
    let mut contents = value.lock().unwrap_or_else(PoisonError::into_inner);
    // A small attribute is kept as a number too, for what the client itself has to know.
    if let Some(at) = parameters.iter().position(|p| matches!(p.kind, Kind::In(_)))
        && let (Some(&bytes @ 1..=8), true) = (slots.get(at + 1), slots[at] != 0)
    {
        let mut number = [0; 8];
        // SAFETY: the caller's attribute of this length.
        let data = unsafe { std::slice::from_raw_parts(slots[at] as *const u8, bytes) };
        number[..bytes].copy_from_slice(data);
        contents.numbers.insert(attribute, u64::from_le_bytes(number));
    }
    contents.changes.insert((function.number, attribute), arguments);
    Ok(0)
}
