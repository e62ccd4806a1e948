//! Drafts: what a program writes into a library's descriptors is kept here, and travels with the call that closes or
//! uses them. What one call alone uses (a variant pack) costs no round trip of its own.

use super::encode::Encoder;
use super::object::{Object, Remembered, new_number, post};
use super::remote;
use super::{Loaded, Outcome, Refusal, call};
use crate::device::Device;
use crate::process::Process;
use crate::session::Session;
use sluice_api::libraries::{Function, Kind, Way};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Answers a function of [`Way::Draft`], [`Way::Write`], [`Way::Finish`] or [`Way::Read`].
///
/// # Safety
/// Slots are what the declaration says.
pub(super) unsafe fn answer(
    process: &'static Process,
    loaded: Loaded,
    function: &'static Function,
    slots: &[usize],
) -> Outcome {
    let (device, session) = call::begun(loaded)?;
    session.libraries.check(&session, loaded, &function.symbol, function.number)?;
    let encoder = |to| Encoder { process, to, loaded, function, slots, fresh: 0 };
    match function.way {
        Way::Draft => {
            let encoder = Encoder { fresh: new_number(false), ..encoder(None) };
            // SAFETY: as the caller's.
            let mut encoded = unsafe { encoder.encode()? };
            let target = encoded.made.unwrap_or(0);
            let make = Remembered::new(function, slots[0], &mut encoded);
            let object = Object::new(loaded, encoder.fresh, make, true, &session);
            process.objects.libraries.objects.put(encoder.fresh, object);
            // SAFETY: the caller's output, a pointer's size.
            unsafe { (target as *mut u64).write_unaligned(encoder.fresh) };
        }
        Way::Write => {
            // SAFETY: as the caller's.
            let mut encoded = unsafe { encoder(None).encode()? };
            let object = encoded.object.take().ok_or(Refusal::status(loaded.status().invalid_value))?;
            let finish = loaded.library.functions.iter().find(|other| other.way == Way::Finish);
            if finish.is_some_and(|finish| object.value_of(finish.number).is_some()) {
                return Err(Refusal::new(loaded.status().not_initialized, "the descriptor is finalized"));
            }
            if let Some(at) = function.parameter("type").filter(|at| function.parameters[*at].kind == Kind::Enum) {
                object.data_type.store(slots[at] as u32, Ordering::Relaxed);
            }
            // SAFETY: as the caller's.
            if let Some(second) = unsafe { second_dimension(function, slots) } {
                object.second_dimension.store(second, Ordering::Relaxed);
            }
            let known = object.is_in(&session);
            object.remember(Remembered::new(function, slots.get(1).copied().unwrap_or(0), &mut encoded));
            if known {
                // SAFETY: as the caller's.
                let encoded = unsafe { encoder(Some((device, &session))).encode()? };
                post(&session, loaded, function.number, 0, &encoded.arguments)?;
            }
        }
        // SAFETY: as the caller's.
        Way::Finish => unsafe { finish(&encoder(None), device, &session)? },
        _ => {
            // SAFETY: as the caller's.
            let mut encoded = unsafe { encoder(Some((device, &session))).encode()? };
            let answer = remote::call(&session, loaded, function.number, 0, &encoded.arguments)?;
            // SAFETY: as the caller's.
            unsafe { call::deliver(loaded, &answer, &encoded)? };
            if !encoded.filled.is_empty() {
                let filled = std::mem::take(&mut encoded.filled);
                let source = encoded.object.take();
                let mut question = Remembered::new(function, 0, &mut encoded);
                question.references = source.into_iter().collect();
                question.fill = Some(super::object::Fill::new(&filled, &session));
                filled.iter().for_each(|target| target.remember(question.clone()));
            }
        }
    }
    Ok(0)
}

/// The second dimension that a call writes, where it writes dimensions: of images, or as many as it says.
///
/// # Safety
/// As [`answer`].
unsafe fn second_dimension(function: &Function, slots: &[usize]) -> Option<u32> {
    if let Some(at) = function.parameter("c") {
        return Some(slots[at] as u32);
    }
    if function.parameter("x").is_some() {
        // Derived from another tensor.
        return Some(0);
    }
    let (count, dims) = (slots[function.parameter("count")?] as i32, slots[function.parameter("dims")?]);
    if count < 2 || dims == 0 {
        return Some(0);
    }
    // SAFETY: the caller's array, of two or more.
    Some(unsafe { (dims as *const u32).add(1).read_unaligned() })
}

/// Has the server close a draft.
///
/// # Safety
/// As [`answer`].
unsafe fn finish(encoder: &Encoder<'_>, device: Device, session: &Arc<Session>) -> Outcome<()> {
    let (loaded, function) = (encoder.loaded, encoder.function);
    // SAFETY: as the caller's.
    let mut encoded = unsafe { encoder.encode()? };
    let object = encoded.object.take().ok_or(Refusal::status(loaded.status().invalid_value))?;
    let close = Remembered::new(function, 1, &mut encoded);
    let used_once = function.note.parse() == Ok(object.made_as());
    if !used_once {
        object.ensure(device, session)?;
        let answer = remote::call(session, loaded, function.number, 0, &close.arguments)?;
        // SAFETY: no outputs.
        if let Err(refusal) = unsafe { call::deliver(loaded, &answer, &encoded) } {
            // The program may write something else into it and try again, or end it.
            object.unmake(session);
            return Err(refusal);
        }
    }
    object.remember(close);
    Ok(())
}
