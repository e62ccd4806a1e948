//! One connection of a client: frames in, acknowledgements out.

use crate::worker::behind::Behind;
use crate::worker::outbox::Outbox;
use crate::worker::session::Session;
use sluice_backend::BACKLOG;
use sluice_backend::log;
use sluice_protocol::frame::Header;
use sluice_protocol::generated::dispatch;
use sluice_protocol::messages::{CopyFromDevice, Goodbye, Request};
use sluice_protocol::{Frame, HEADER_BYTES, ReplySink, opcode};
use sluice_transport::silence::is_silent;
use sluice_transport::spin::readable_within;
use sluice_transport::stream::Closer;
use sluice_transport::{FrameReader, ReadHalf, Spin};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A client whose frames have been taken over hears of it at the latest after this silence.
const ACK_MILLISECONDS: i32 = 2;
/// … or after this many frames,
const ACK_FRAMES: u64 = 1024;
/// … or bytes.
const ACK_BYTES: u64 = 4 << 20;

/// How often it is looked whether a line on which nothing comes is dead, milliseconds.
const LOOK_EVERY: i32 = 1000;

/// How long reading pauses while the device is behind.
const BACKLOG_PAUSE: Duration = Duration::from_millis(1);

/// How long a client has to read the last words.
pub const LINGER_TIME: Duration = Duration::from_millis(500);

/// How long what came before a goodbye may take.
const GOODBYE_TIME: Duration = Duration::from_secs(10);

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing came any more, as when the network fails; the client may come back.
    Silent,
    /// The other end closed it: the client's process has ended, or something between cut it, and the client comes back.
    Closed,
    /// The client broke the protocol.
    Broken,
    /// The client is done.
    Goodbye,
}

/// Says no more, and waits a moment for the client to have read what was said: closing a socket on which unread
/// frames lie would make the client's system throw our last words away.
pub fn linger(connection: &Closer) {
    let socket = connection.as_raw_fd();
    // SAFETY: a valid descriptor; failure (not connected) leaves nothing to do.
    unsafe { libc::shutdown(socket, libc::SHUT_WR) };
    let deadline = Instant::now() + LINGER_TIME;
    let mut sink = vec![0u8; 64 << 10];
    while Instant::now() < deadline {
        // SAFETY: a valid descriptor, and as much room as is told.
        if readable_within(socket, 20) && unsafe { libc::recv(socket, sink.as_mut_ptr().cast(), sink.len(), 0) } < 1 {
            return;
        }
    }
}

/// Executes frames until the connection ends.
pub fn serve(
    connection: &mut ReadHalf,
    closer: &Closer,
    session: &Arc<Mutex<Session>>,
    outbox: &Arc<Outbox>,
    behind: &Arc<Behind>,
) -> End {
    let end = match frames(connection, session, outbox, behind) {
        Ok(end) => end,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            log!("gpud worker: the client broke the protocol: {error}");
            End::Broken
        }
        Err(error) if is_silence(error.kind()) => End::Silent,
        Err(_) => End::Closed,
    };
    if end != End::Goodbye {
        // Where a record of TLS was spoiled, the line itself still holds: its client would wait for an answer.
        closer.close();
    }
    end
}

/// Whether a failed read says that nothing comes from the other end any more, and not that it closed the line: the kernel's
/// keepalive answers so when the network is out.
fn is_silence(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable, TimedOut};
    matches!(kind, TimedOut | HostUnreachable | NetworkUnreachable | NetworkDown)
}

fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

fn frames(
    connection: &mut ReadHalf,
    session: &Arc<Mutex<Session>>,
    outbox: &Arc<Outbox>,
    behind: &Arc<Behind>,
) -> io::Result<End> {
    let sink: Arc<dyn ReplySink> = Arc::clone(outbox) as Arc<dyn ReplySink>;
    let socket = connection.as_raw_fd();
    let mut reader = FrameReader::new(connection);
    let mut frame = Frame { header: Header::default(), payload: Vec::new() };
    let mut unconfirmed_bytes = 0;
    let mut confirmed = 0;
    let mut spin = Spin::default();
    loop {
        let ready = reader.has_frame() || reader.source().holds_bytes();
        if !ready && !spin.until(|| readable_within(socket, 0)) {
            let began = Instant::now();
            if outbox.unconfirmed() > 0 && !readable_within(socket, ACK_MILLISECONDS) {
                outbox.send_unnumbered(opcode::ACK, &[]);
            }
            while !readable_within(socket, LOOK_EVERY) {
                if is_silent(socket) {
                    return Ok(End::Silent);
                }
            }
            spin.slept(began.elapsed());
        }
        if outbox.unconfirmed() >= ACK_FRAMES || (outbox.unconfirmed() > 0 && unconfirmed_bytes >= ACK_BYTES) {
            outbox.send_unnumbered(opcode::ACK, &[]);
        }
        if outbox.unconfirmed() == 0 {
            unconfirmed_bytes = 0;
        }
        match reader.next_into(&mut frame.payload)? {
            Some(header) => frame.header = header,
            None => return Ok(End::Closed),
        }
        if frame.header.ack != confirmed {
            confirmed = frame.header.ack;
            outbox.confirm(confirmed);
        }
        match frame.header.opcode {
            opcode::ACK | opcode::PONG => continue,
            opcode::PING => {
                outbox.send_unnumbered(opcode::PONG, &frame.payload);
                continue;
            }
            _ => {}
        }
        match outbox.take_over(frame.header.seq) {
            Some(true) => {}
            Some(false) => continue,
            None => return Err(invalid("a frame is missing")),
        }
        let bytes = (frame.payload.len() + HEADER_BYTES) as u64;
        unconfirmed_bytes += bytes;
        let goodbye = frame.header.opcode == Goodbye::OPCODE;
        if !behind.is_needed() && outbox.has_room() {
            execute(session, outbox, &sink, behind, &frame, true)?;
        } else if let Some(taken) = behind.take(&frame, bytes) {
            if let Err(failure) = taken.map_err(invalid)? {
                lock(session).posted_failed(frame.header.seq, failure);
            }
        } else {
            let kept = Frame { header: frame.header, payload: std::mem::take(&mut frame.payload) };
            behind.push(kept, || {
                let (session, outbox, sink, behind) =
                    (Arc::clone(session), Arc::clone(outbox), Arc::clone(&sink), Arc::clone(behind));
                Box::new(move |frame| {
                    if frame.header.opcode == CopyFromDevice::OPCODE {
                        outbox.wait_for_room(|| behind.is_full());
                    }
                    execute(&session, &outbox, &sink, &behind, frame, false)
                })
            })?;
        }
        if goodbye {
            behind.settle(GOODBYE_TIME);
            return Ok(End::Goodbye);
        }
    }
}

/// Executes one frame, and waits while the device is behind; `reads`: the calling thread reads acknowledgements.
fn execute(
    session: &Mutex<Session>,
    outbox: &Outbox,
    sink: &Arc<dyn ReplySink>,
    behind: &Behind,
    frame: &Frame,
    reads: bool,
) -> io::Result<()> {
    let bytes = (frame.payload.len() + HEADER_BYTES) as u64;
    let written = outbox.bytes_written();
    let mut session_now = lock(session);
    if let Err(failure) = dispatch(&mut *session_now, frame, sink).map_err(invalid)? {
        session_now.posted_failed(frame.header.seq, failure);
    }
    let [calls, more] = behind.uncounted();
    session_now.count(1 + calls, bytes + more, outbox.bytes_written() - written);
    while session_now.device.backlog() > BACKLOG
        && session_now.host.is_idle()
        && session_now.bulk.is_idle()
        && (!reads || outbox.has_room())
    {
        // The client runs ahead of the device: its window fills, and its calls wait.  Not while the device waits
        // for the client, or answers for their acknowledgement: what they wait for comes behind what the client has sent.
        drop(session_now);
        std::thread::sleep(BACKLOG_PAUSE);
        session_now = lock(session);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_silence;
    use std::io;

    #[test]
    fn what_the_kernel_reports_of_a_dead_network_is_silence_and_a_reset_is_not() {
        let is_silent = |code| is_silence(io::Error::from_raw_os_error(code).kind());
        assert!([libc::ETIMEDOUT, libc::EHOSTUNREACH, libc::ENETUNREACH, libc::ENETDOWN].into_iter().all(is_silent));
        assert!(![libc::ECONNRESET, libc::EPIPE, libc::ECONNABORTED].into_iter().any(is_silent));
    }
}
