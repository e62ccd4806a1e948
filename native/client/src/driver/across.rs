//! Between the devices of a lease. Each has a worker of its own: on one server they reach each other's memory where the
//! devices can, and tell each other how far their work is; else, and from server to server, memory travels through this
//! process, and a stream's wait for an event of another device is kept here.

use super::context::Current;
use super::copy::{from_device, to_device};
use super::memory::check_range;
use super::{capture, stream};
use crate::device::Device;
use crate::error::CudaResult;
use crate::host::Call;
use crate::objects::{Event, Stream, new_handle};
use crate::session::Session;
use sluice_protocol::messages::{
    EventCreate, EventDestroy, EventRecord, EventSynchronize, HostFunction, PeerMark, PeerWait, StreamCreate,
    StreamDestroy, StreamWaitEvent,
};
use std::sync::Arc;

/// Bytes of a copy that are in this process at a time.
const PIECE: usize = 16 << 20;
/// CU_STREAM_NON_BLOCKING
const NON_BLOCKING: u32 = 1;
/// CU_EVENT_DISABLE_TIMING
const NO_TIMING: u32 = 2;

/// Work in a stream on memory of a device that is not the current one.
pub(super) struct Turn {
    /// The stream's device.
    home: Device,
    on: usize,
    /// The memory's device.
    owner: Device,
}

impl Turn {
    /// None when stream and memory are the current device's, as all are when there is no other.
    #[inline]
    pub fn of(device: Device, on: usize, address: u64) -> CudaResult<Option<Self>> {
        if device.process.count() == 1 { Ok(None) } else { Self::look(device, on, address) }
    }

    fn look(device: Device, on: usize, address: u64) -> CudaResult<Option<Self>> {
        let home = stream::home(device, on)?;
        let owner = device.process.device_at(address).unwrap_or(home);
        Ok((home != device || owner != device).then_some(Self { home, on, owner }))
    }

    /// Does the work where the memory is, in the stream's turn: after what the stream holds, before what it is given.
    pub fn take(self, work: impl FnOnce(Device, usize) -> CudaResult) -> CudaResult {
        if self.home == self.owner {
            return work(self.home, self.on);
        }
        settle(self.home, self.on)?;
        let own = copies(self.owner);
        work(self.owner, own)?;
        stream::synchronize(self.owner, own)
    }
}

/// Waits for what a stream holds. Of the default stream that is the work of all streams that wait for it.
pub(super) fn settle(home: Device, on: usize) -> CudaResult {
    capture::refuse(home, on)?;
    stream::synchronize(home, on)
}

/// The device's stream for copies that come from or go to another device; it waits for no other stream.
pub(super) fn copies(device: Device) -> usize {
    *device.state.copies.get_or_init(|| {
        let handle = new_handle();
        let context = Current { context: 0, device: device.ordinal };
        device.process.objects.streams.put(handle, Stream::new(handle, context, NON_BLOCKING, 0));
        handle as usize
    })
}

/// Whether two addresses lie on different devices: which, the target's first.
#[inline]
pub(super) fn apart(device: Device, target: u64, source: u64) -> Option<(Device, Device)> {
    if device.process.count() == 1 {
        return None;
    }
    let pair = (device.process.device_at(target)?, device.process.device_at(source)?);
    (pair.0 != pair.1).then_some(pair)
}

/// Waits for what comes before a copy between two devices in a stream: of the default stream, which is what the copies
/// without a stream are in, what comes before on both.
pub(super) fn settle_pair(device: Device, on: usize, pair: (Device, Device)) -> CudaResult {
    settle(stream::home(device, on)?, on)?;
    if stream::handle(device, on)? == 0 {
        settle(pair.0, stream::LEGACY)?;
        settle(pair.1, stream::LEGACY)?;
    }
    Ok(())
}

/// Where a copy between two devices can run without this process: in a stream of one of them that reaches the memory of
/// the other one.
pub(super) struct Direct {
    home: Device,
    on: usize,
    /// The copy is in no stream: it comes between what is in the default streams of both and of the current device.
    among: Option<[Device; 3]>,
}

/// See [`Direct`]; of the target and the source, the devices and the addresses.
pub(super) fn direct(
    device: Device,
    on: usize,
    pair: (Device, Device),
    (target, source): (u64, u64),
) -> CudaResult<Option<Direct>> {
    let (of_none, current) = (stream::handle(device, on)? == 0, stream::home(device, on)?);
    let home = if of_none && current != pair.0 && current != pair.1 { pair.0 } else { current };
    let (other, address) = match pair {
        (to, from) if home == to => (from, source),
        (to, from) if home == from => (to, target),
        _ => return Ok(None),
    };
    let (own, owner) = (home.session()?, other.session()?);
    if !owner.lends(address, 0) || !own.reach(&owner) {
        return Ok(None);
    }
    let among = of_none.then_some([pair.0, pair.1, current]);
    if of_none {
        capture::refuse(home, on)?;
    }
    for other in among.into_iter().flatten() {
        follow(home, stream::LEGACY, (other, stream::LEGACY))?;
    }
    Ok(Some(Direct { home, on, among }))
}

impl Direct {
    /// Issues the copy.
    pub fn run(self, copy: impl FnOnce(Device, usize) -> CudaResult) -> CudaResult {
        copy(self.home, self.on)?;
        let others = self.among.into_iter().flatten();
        others.into_iter().try_for_each(|other| follow(other, stream::LEGACY, (self.home, stream::LEGACY)))
    }
}

/// What a stream is given from now on comes after what one of another device holds now; their servers see to it where they
/// are one, else this waits.
fn follow(device: Device, on: usize, there: (Device, usize)) -> CudaResult {
    if device == there.0 {
        return Ok(());
    }
    there.0.check_lost()?;
    if device.any_session().is_none() || there.0.any_session().is_none() {
        // Neither has had work.
        return Ok(());
    }
    let (session, owner) = (device.session()?, there.0.session()?);
    let stream = stream::at_server(there.0, &owner, there.1)?;
    if owner.progress.is_idle(stream, owner.connection.newest()) {
        return Ok(());
    }
    if session.reach(&owner) {
        return follow_mark(&session, stream::at_server(device, &session, on)?, &owner, stream);
    }
    settle(there.0, there.1)
}

/// A stream of one session waits for what one of another session holds now, without this process.
fn follow_mark(session: &Session, on: u64, there: &Session, stream: u64) -> CudaResult {
    let mark = new_handle();
    there.connection.post(&PeerMark { mark, stream })?;
    session.connection.post(&PeerWait { stream: on, nonce: &there.welcome.nonce, mark })
}

/// Behind a copy whose call returns when it is done: that of short ones to the device is posted, which is soon enough for
/// the device's own work; where others reach its memory, they have to have run.
pub(super) fn arrived(device: Device) -> CudaResult {
    match device.session_now() {
        Some(session) if session.is_lent() => stream::synchronize(device, stream::LEGACY),
        _ => Ok(()),
    }
}

/// Copies from one device to another; done when it returns.
pub(super) fn copy(
    device: Device,
    on: usize,
    pair: (Device, Device),
    target: u64,
    source: u64,
    bytes: usize,
) -> CudaResult {
    let (to, from) = pair;
    check_range(to.process, &*to.session()?, target, bytes as u64)?;
    check_range(from.process, &*from.session()?, source, bytes as u64)?;
    settle_pair(device, on, pair)?;
    let mut piece = vec![0u8; bytes.min(PIECE)];
    for start in (0..bytes).step_by(PIECE) {
        let length = (bytes - start).min(PIECE);
        let (target, source) = (target + start as u64, source + start as u64);
        // SAFETY: the buffer holds `length` bytes, and is read before it is filled again.
        unsafe {
            from_device(from, piece.as_mut_ptr().cast(), source, length, copies(from))?;
            to_device(to, target, piece.as_ptr().cast(), length, copies(to))?;
        }
    }
    stream::synchronize(to, copies(to))
}

/// A stream waits for the newest record of another device's event. Where that is on another server, this one comes to a
/// function of this process, which waits for the event and lets the stream go on. Nobody waits here.
pub(super) fn wait_event(device: Device, on: usize, event: &Event) -> CudaResult {
    capture::refuse_captured(device.process, event)?;
    capture::refuse(device, on)?;
    let there = device.process.device(event.device).session_now().filter(|session| event.is_in(session));
    let Some(there) = there else { return Ok(()) };
    {
        let mut recording = event.recording();
        if recording.generation != there.generation || event.is_passed(&mut recording, &there.progress) {
            return Ok(());
        }
    }
    let session = device.session()?;
    let stream = stream::at_server(device, &session, on)?;
    // The event may be recorded anew before the stream comes to this wait: what it marks now a stream of its own waits for.
    let (waiting, mark) = (new_handle(), new_handle());
    let linked = session.reach(&there);
    there.connection.post(&StreamCreate { stream: waiting, flags: NON_BLOCKING, priority: 0 })?;
    there.connection.post(&StreamWaitEvent { stream: waiting, event: event.handle })?;
    if linked {
        follow_mark(&session, stream, &there, waiting)?;
        return there.connection.post(&StreamDestroy { stream: waiting });
    }
    there.connection.post(&EventCreate { event: mark, flags: NO_TIMING })?;
    there.connection.post(&EventRecord { event: mark, stream: waiting })?;
    let wait = move || {
        // A device that is lost holds up no other one; who uses it gets the error.
        let _ = there.connection.call(&EventSynchronize { event: mark });
        let _ = there.connection.post(&EventDestroy { event: mark });
        let _ = there.connection.post(&StreamDestroy { stream: waiting });
    };
    let function = session.shared.host.add_function(Call::Own(Arc::new(wait)), true);
    session
        .connection
        .post(&HostFunction { stream, function })
        .inspect_err(|_| session.shared.host.remove_function(function))
}
