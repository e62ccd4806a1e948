//! NCCL: calls go to the device of their communicator, and those of a group are collected on the thread until it ends.
//!
//! A group travels as one message for each device that it names, to all of them at the same time: communicators are made
//! together and wait for one another.

use super::call::{begun, deliver, put_number, send};
use super::encode::{Encoded, Encoder};
use super::object::{Object, Remembered};
use super::{Loaded, Outcome, Refusal, remote};
use crate::device::Device;
use crate::objects::new_handle;
use crate::process;
use crate::session::Session;
use sluice_api::libraries::{Function, Kind, Way};
use sluice_protocol::Wire;
use sluice_protocol::library::{Argument, put_call};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Bytes of an ncclUniqueId.
const UNIQUE_ID: usize = 128;

#[derive(Default)]
struct Group {
    depth: u32,
    calls: Vec<Collected>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

/// A call of a group.
struct Collected {
    device: usize,
    function: &'static Function,
    encoded: Encoded,
    /// The number of the communicator that it makes.
    fresh: u64,
}

/// ncclGroupStart.
pub(super) fn start() -> Outcome {
    GROUP.with_borrow_mut(|group| group.depth += 1);
    Ok(0)
}

/// ncclGroupEnd: sends what was collected when the outermost group ends.
pub(super) fn end(loaded: Loaded) -> Outcome {
    let ended = GROUP.with_borrow_mut(|group| {
        group.depth = group.depth.checked_sub(1)?;
        Some(if group.depth == 0 { std::mem::take(&mut group.calls) } else { Vec::new() })
    });
    let calls = ended.ok_or_else(|| Refusal::new(loaded.status().not_supported, "no group was started"))?;
    send_all(loaded, calls)
}

/// The device and session of a call: those of its communicator, else the current ones.
fn route(loaded: Loaded, function: &Function, slots: &[usize]) -> Outcome<(Device, Arc<Session>)> {
    let here = begun(loaded);
    let Some(at) = function.parameters.iter().position(|p| p.kind == Kind::Object) else { return here };
    let device = process::get().device(device_of(loaded, slots[at])?);
    let session = device.session().map_err(|error| Refusal::from_cuda(loaded.status(), error))?;
    Ok((device, session))
}

/// The ordinal of a communicator's device.
pub(super) fn device_of(loaded: Loaded, communicator: usize) -> Outcome<usize> {
    let found = process::get().objects.libraries.objects.get(communicator);
    let object = found.map_err(|_| Refusal::status(loaded.status().invalid_value))?;
    Ok(object.device)
}

/// Answers what is neither local nor ends a communicator.
///
/// # Safety
/// Slots are what the declaration says.
pub(super) unsafe fn answer(loaded: Loaded, function: &'static Function, slots: &[usize]) -> Outcome {
    let (device, session) = route(loaded, function, slots)?;
    session.libraries.check(&session, loaded, &function.symbol, function.number)?;
    let process = process::get();
    let fresh = if function.way == Way::Join { new_handle() } else { 0 };
    let encoder = Encoder { process, to: Some((device, &session)), loaded, function, slots, fresh };
    // SAFETY: as the caller's.
    let encoded = unsafe { encoder.encode()? };
    // In the end of a thread its group is gone.
    let in_group = GROUP.try_with(|group| group.borrow().depth > 0).unwrap_or(false);
    let collects = matches!(function.way, Way::Run | Way::Join) && in_group;
    if collects || function.way == Way::Join {
        let call = Collected { device: device.ordinal, function, encoded, fresh };
        if !collects {
            return send_all(loaded, vec![call]);
        }
        GROUP.with_borrow_mut(|group| group.calls.push(call));
        return Ok(0);
    }
    if function.way == Way::Read {
        let answer = remote::call(&session, loaded, function.number, 0, &encoded.arguments)?;
        // SAFETY: as the caller's.
        return unsafe { deliver(loaded, &answer, &encoded) };
    }
    // SAFETY: as the caller's.
    unsafe { send(device, &session, loaded, function, slots, encoded, 0) }
}

/// ncclCommInitAll: every device's communicator is made by the device's own worker, all at the same time.
///
/// # Safety
/// Room for `count` communicators, and as many ordinals unless that is null.
pub(super) unsafe fn join_all(loaded: Loaded, communicators: usize, count: i32, ordinals: usize) -> Outcome {
    let invalid = || Refusal::status(loaded.status().invalid_value);
    let (Ok(count), false) = (usize::try_from(count), communicators == 0) else { return Err(invalid()) };
    let (_, first) = begun(loaded)?;
    let function = loaded.library.named("ncclCommInitRank").ok_or_else(invalid)?;
    let asked = loaded.library.named("ncclGetUniqueId").ok_or_else(invalid)?;
    first.libraries.check(&first, loaded, &asked.symbol, asked.number)?;
    let mut question = Vec::new();
    Argument::Out(UNIQUE_ID as u32).put(&mut question);
    let id = remote::call(&first, loaded, asked.number, 0, &question)?;
    if id.status != 0 {
        return Err(Refusal { status: id.status, text: None });
    }
    let process = process::get();
    let calls = (0..count).map(|rank| {
        // SAFETY: the caller's array.
        let named = |rank: usize| unsafe { (ordinals as *const i32).add(rank).read_unaligned() };
        let device = if ordinals == 0 { rank } else { usize::try_from(named(rank)).map_err(|_| invalid())? };
        if device >= process.count() {
            return Err(invalid());
        }
        let (fresh, mut encoded) = (new_handle(), Encoded::default());
        encoded.made = Some(communicators + 8 * rank);
        for argument in [
            Argument::New(fresh),
            Argument::Word(count as u64),
            Argument::Block(&id.outputs),
            Argument::Word(rank as u64),
        ] {
            argument.put(&mut encoded.arguments);
        }
        Ok(Collected { device, function, encoded, fresh })
    });
    let calls = calls.collect::<Outcome<Vec<Collected>>>()?;
    send_all(loaded, calls)
}

/// Sends the calls of a group to their devices, to several at the same time; the first refusal counts.
fn send_all(loaded: Loaded, calls: Vec<Collected>) -> Outcome {
    let mut devices: BTreeMap<usize, Vec<Collected>> = BTreeMap::new();
    calls.into_iter().for_each(|call| devices.entry(call.device).or_default().push(call));
    if devices.len() <= 1 {
        return devices.into_iter().try_for_each(|(device, calls)| send_to(loaded, device, calls)).map(|()| 0);
    }
    std::thread::scope(|scope| {
        let sent: Vec<_> =
            devices.into_iter().map(|(device, calls)| scope.spawn(move || send_to(loaded, device, calls))).collect();
        let failed = || Refusal::status(loaded.status().execution_failed);
        let outcomes: Vec<Outcome<()>> =
            sent.into_iter().map(|one| one.join().unwrap_or_else(|_| Err(failed()))).collect();
        outcomes.into_iter().collect::<Outcome<()>>().map(|()| 0)
    })
}

fn send_to(loaded: Loaded, device: usize, calls: Vec<Collected>) -> Outcome<()> {
    let device = process::get().device(device);
    let session = device.session().map_err(|error| Refusal::from_cuda(loaded.status(), error))?;
    let status = loaded.status();
    let group = loaded.library.named("ncclGroupEnd").ok_or(Refusal::status(status.not_supported))?;
    let (mut whole, mut choices, mut list) = (Encoded::default(), DefaultHasher::new(), Vec::new());
    group.number.hash(&mut choices);
    for call in &calls {
        session.libraries.check(&session, loaded, &call.function.symbol, call.function.number)?;
        put_call(call.function.number, &call.encoded.arguments, &mut list);
        call.encoded.choices.hash(&mut choices);
        whole.named_stream = whole.named_stream.or(call.encoded.named_stream);
        if whole.stream == 0 {
            whole.stream = call.encoded.stream;
        }
    }
    Argument::Calls(&list).put(&mut whole.arguments);
    whole.choices = choices.finish();
    if calls.iter().all(|call| call.function.way == Way::Run) {
        // SAFETY: no outputs.
        return unsafe { send(device, &session, loaded, group_run(loaded)?, &[], whole, 0) }.map(drop);
    }
    let answer = remote::call(&session, loaded, group.number, whole.stream, &whole.arguments)?;
    // SAFETY: no outputs.
    unsafe { deliver(loaded, &answer, &whole)? };
    for call in calls.into_iter().filter(|call| call.function.way == Way::Join) {
        let Collected { function, mut encoded, fresh, .. } = call;
        let target = encoded.made.unwrap_or(0);
        let object = Object::new(loaded, fresh, Remembered::new(function, 0, &mut encoded), false, &session);
        process::get().objects.libraries.objects.put(fresh, object);
        // SAFETY: the caller's output, which NCCL writes when the group ends.
        unsafe { put_number(loaded, target, fresh) };
    }
    Ok(())
}

/// The declaration of a whole group as work.
fn group_run(loaded: Loaded) -> Outcome<&'static Function> {
    static RUN: std::sync::OnceLock<Option<Function>> = std::sync::OnceLock::new();
    let made = || {
        let declared = loaded.library.named("ncclGroupEnd")?;
        Some(Function { way: Way::Run, ..declared.clone() })
    };
    RUN.get_or_init(made).as_ref().ok_or(Refusal::status(loaded.status().not_supported))
}
