//! A stream between two processes of one host: beside their Unix socket, memory that both have mapped.
//!
//! What is short travels on the socket. What is longer lies in a *slot* of the memory, of which each direction has as
//! many, and the socket says in which and how much: its writer copies once, its reader once, and the system copies
//! nothing. Nothing but data lies in the memory. Numbers and lengths come by the socket, are read once and checked, so
//! that a process that writes to the memory when it must not spoils its own data alone. The end of either process is
//! the end of the socket, and the memory goes with the last of the two.
//!
//! gpud makes the memory and hands it over ([`Memory::create`]); it is sealed, so that nobody can make it shorter under
//! a process that reads it, or longer at gpud's cost.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a slot.
const SLOT_BYTES: usize = 512 << 10;
/// Slots of each direction.
const SLOTS: usize = 4;
/// What is not longer goes through the socket.
const INLINE_BYTES: usize = 512;
/// Most slots and bytes that a client takes from gpud's word.
const MOST: (usize, usize) = (64, 16 << 20);
/// How often who waits for a slot looks whether the other side is gone.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A message: `kind u8 | slot u8 | 0 u16 | length u32`.
const MESSAGE_BYTES: usize = 8;
/// So many bytes follow on the socket.
const INLINE: u8 = 1;
/// So many bytes lie in this slot of the sender's.
const SLOT: u8 = 2;
/// This slot of the receiver's can be used again.
const FREE: u8 = 3;
/// What has to be there of a memory's seals.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

fn broken(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Which end of the stream this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Gpud,
    Client,
}

/// The memory of one stream, mapped.
pub struct Memory {
    /// To be handed over; gone afterwards.
    descriptor: Option<OwnedFd>,
    start: NonNull<u8>,
    slots: usize,
    slot_bytes: usize,
}

// SAFETY: a mapping that lives as long as the value; its bytes are only reached by `put` and `take`.
unsafe impl Send for Memory {}
// SAFETY: as above; the two processes and their threads agree by messages on who uses a slot, and bytes of a slot that
// somebody writes at the wrong time are copied as they are and never looked at in place.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory for both directions. Its pages are taken when they are first used.
    pub fn create() -> io::Result<Self> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string.
        let descriptor = unsafe { libc::memfd_create(c"sluice-lane".as_ptr(), flags) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, and nobody else's.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // SAFETY: numbers alone.
        let sealed = unsafe {
            libc::ftruncate(descriptor.as_raw_fd(), (2 * SLOTS * SLOT_BYTES) as libc::off_t) == 0
                && libc::fcntl(descriptor.as_raw_fd(), libc::F_ADD_SEALS, SEALS | libc::F_SEAL_SEAL) == 0
        };
        if !sealed {
            return Err(io::Error::last_os_error());
        }
        Self::map(descriptor, SLOTS, SLOT_BYTES)
    }

    /// Maps memory of which somebody says that it has so many slots.
    fn map(descriptor: OwnedFd, slots: usize, slot_bytes: usize) -> io::Result<Self> {
        let bytes = 2 * slots * slot_bytes;
        // SAFETY: a zeroed stat is valid; the calls take a descriptor that is open and a live local.
        let fits = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            let seals = libc::fcntl(descriptor.as_raw_fd(), libc::F_GET_SEALS);
            libc::fstat(descriptor.as_raw_fd(), &raw mut status) == 0
                && seals >= 0
                && seals & SEALS == SEALS
                && status.st_size >= bytes as libc::off_t
        };
        if !fits {
            return Err(broken("the shared memory is not what was said"));
        }
        // SAFETY: a shared mapping of a file that is long enough and stays so; the address is the kernel's choice.
        let address = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, descriptor.as_raw_fd(), 0)
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping was just made. A forked child has no use for it.
        unsafe { libc::madvise(address, bytes, libc::MADV_DONTFORK) };
        let start = NonNull::new(address.cast()).ok_or_else(|| broken("memory at no address"))?;
        Ok(Self { descriptor: Some(descriptor), start, slots, slot_bytes })
    }

    fn slot(&self, of: End, slot: usize) -> *mut u8 {
        assert!(slot < self.slots, "slots are checked where they come from");
        let place = (slot + if of == End::Client { self.slots } else { 0 }) * self.slot_bytes;
        // SAFETY: inside the mapping, which has twice as many slots.
        unsafe { self.start.as_ptr().add(place) }
    }

    fn put(&self, of: End, slot: usize, bytes: &[u8]) {
        assert!(bytes.len() <= self.slot_bytes, "as long as a slot");
        // SAFETY: a slot is as long; it is not the caller's slice, which no other process can reach.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.slot(of, slot), bytes.len()) };
    }

    fn take(&self, of: End, slot: usize, at: usize, bytes: &mut [u8]) {
        assert!(at + bytes.len() <= self.slot_bytes, "inside a slot");
        // SAFETY: as in `put`.
        unsafe { std::ptr::copy_nonoverlapping(self.slot(of, slot).add(at), bytes.as_mut_ptr(), bytes.len()) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and used through `self` alone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), 2 * self.slots * self.slot_bytes) };
    }
}

/// Sends through a Unix socket, without the signal that a closed one would raise in programs that do not expect it.
pub(crate) fn send(socket: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: a live slice and an open socket.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// Room for the control message of one descriptor, aligned as `cmsghdr` must be.
#[repr(C, align(8))]
struct ControlSpace([u8; 64]);

/// Sends a few bytes with a descriptor beside them.
pub(crate) fn send_with(socket: &UnixStream, bytes: &[u8], descriptor: RawFd) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut space = ControlSpace([0; 64]);
    let length = size_of::<RawFd>() as u32;
    // SAFETY: a zeroed msghdr is valid; what it points at outlives the call; the space is large enough and aligned.
    let sent = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = space.0.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(length) as usize;
        let control = libc::CMSG_FIRSTHDR(&header);
        (*control).cmsg_level = libc::SOL_SOCKET;
        (*control).cmsg_type = libc::SCM_RIGHTS;
        (*control).cmsg_len = libc::CMSG_LEN(length) as usize;
        libc::CMSG_DATA(control).cast::<RawFd>().write_unaligned(descriptor);
        libc::sendmsg(socket.as_raw_fd(), &header, libc::MSG_NOSIGNAL)
    };
    match sent {
        ..0 => Err(io::Error::last_os_error()),
        sent if sent as usize == bytes.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Receives so many bytes, and the descriptor beside them.
pub(crate) fn receive_with(socket: &UnixStream, bytes: &mut [u8]) -> io::Result<OwnedFd> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut space = ControlSpace([0; 64]);
    let mut descriptors = Vec::new();
    // SAFETY: as in `send_with`; the kernel writes at most the given lengths, and descriptors that it names are ours.
    let received = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = space.0.as_mut_ptr().cast();
        header.msg_controllen = size_of::<ControlSpace>();
        let received = libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC | libc::MSG_WAITALL);
        if received < 0 {
            return Err(io::Error::last_os_error());
        }
        let control = libc::CMSG_FIRSTHDR(&header);
        if !control.is_null() && (*control).cmsg_level == libc::SOL_SOCKET && (*control).cmsg_type == libc::SCM_RIGHTS {
            let length = (*control).cmsg_len - libc::CMSG_LEN(0) as usize;
            for index in 0..length / size_of::<RawFd>() {
                let raw = libc::CMSG_DATA(control).cast::<RawFd>().add(index).read_unaligned();
                descriptors.push(OwnedFd::from_raw_fd(raw));
            }
        }
        received as usize
    };
    match descriptors.pop() {
        Some(descriptor) if received == bytes.len() && descriptors.is_empty() => Ok(descriptor),
        _ => Err(broken("no memory came with the word of it")),
    }
}

/// What both halves use.
struct Common {
    socket: UnixStream,
    memory: Memory,
    end: End,
    /// Messages go out whole: both halves send some.
    sending: Mutex<()>,
    slots: Mutex<Slots>,
    freed: Condvar,
}

/// The slots of this end.
struct Slots {
    used: Vec<bool>,
    /// Nobody reads any more who would tell of a free one.
    over: bool,
}

impl Common {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message, and what follows it on the socket.
    fn tell(&self, kind: u8, slot: usize, length: usize, bytes: &[u8]) -> io::Result<()> {
        let mut message = [0; MESSAGE_BYTES + INLINE_BYTES];
        message[0] = kind;
        message[1] = slot as u8;
        message[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        let whole = &mut message[..MESSAGE_BYTES + bytes.len()];
        whole[MESSAGE_BYTES..].copy_from_slice(bytes);
        let _one = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = &*whole;
        while !rest.is_empty() {
            match send(&self.socket, rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A slot of this end; waits until the other end has read one.
    fn take_slot(&self) -> io::Result<usize> {
        let mut slots = self.slots();
        loop {
            if slots.over || self.is_cut() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if let Some(free) = slots.used.iter().position(|used| !used) {
                slots.used[free] = true;
                return Ok(free);
            }
            slots = self.freed.wait_timeout(slots, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether the other end is gone, or this one was closed.
    fn is_cut(&self) -> bool {
        let mut asked = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
        // SAFETY: one live entry.
        let ready = unsafe { libc::poll(&raw mut asked, 1, 0) };
        ready > 0 && asked.revents & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
    }
}

/// The reading side.
pub struct SharedReadHalf {
    common: Arc<Common>,
    socket: BufReader<UnixStream>,
    /// The slot that is being read, else what is read comes by the socket.
    slot: Option<usize>,
    at: usize,
    left: usize,
}

/// The writing side.
pub struct SharedWriteHalf {
    common: Arc<Common>,
}

impl Drop for SharedReadHalf {
    fn drop(&mut self) {
        self.common.slots().over = true;
        self.common.freed.notify_all();
    }
}

impl SharedReadHalf {
    /// Takes the next message that brings bytes; false at the orderly end of the stream.
    fn next(&mut self) -> io::Result<bool> {
        loop {
            if self.socket.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let mut message = [0; MESSAGE_BYTES];
            self.socket.read_exact(&mut message)?;
            let [kind, slot, _, _, length @ ..] = message;
            let (slot, length) = (usize::from(slot), u32::from_le_bytes(length) as usize);
            let memory = &self.common.memory;
            match kind {
                INLINE if (1..=INLINE_BYTES).contains(&length) => (self.slot, self.left) = (None, length),
                SLOT if slot < memory.slots && (1..=memory.slot_bytes).contains(&length) => {
                    (self.slot, self.at, self.left) = (Some(slot), 0, length);
                }
                FREE if slot < memory.slots => {
                    if !std::mem::replace(&mut self.common.slots().used[slot], false) {
                        return Err(broken("a slot that was not in use is free"));
                    }
                    self.common.freed.notify_one();
                    continue;
                }
                _ => return Err(broken("not a message of shared memory")),
            }
            return Ok(true);
        }
    }
}

impl Read for SharedReadHalf {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || (self.left == 0 && !self.next()?) {
            return Ok(0);
        }
        let length = buffer.len().min(self.left);
        let Some(slot) = self.slot else {
            let read = self.socket.read(&mut buffer[..length])?;
            self.left -= read;
            return if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) };
        };
        let other = if self.common.end == End::Gpud { End::Client } else { End::Gpud };
        self.common.memory.take(other, slot, self.at, &mut buffer[..length]);
        self.at += length;
        self.left -= length;
        if self.left == 0 {
            self.common.tell(FREE, slot, 0, &[])?;
        }
        Ok(length)
    }
}

impl SharedWriteHalf {
    /// Ends the stream in both directions.
    pub fn shutdown(&self) -> io::Result<()> {
        self.common.socket.shutdown(Shutdown::Both)
    }
}

impl Write for SharedWriteHalf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() <= INLINE_BYTES {
            if !bytes.is_empty() {
                self.common.tell(INLINE, 0, bytes.len(), bytes)?;
            }
            return Ok(bytes.len());
        }
        let slot = self.common.take_slot()?;
        let length = bytes.len().min(self.common.memory.slot_bytes);
        self.common.memory.put(self.common.end, slot, &bytes[..length]);
        self.common.tell(SLOT, slot, length, &[])?;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for SharedReadHalf {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.get_ref().as_raw_fd()
    }
}

impl AsRawFd for SharedWriteHalf {
    fn as_raw_fd(&self) -> RawFd {
        self.common.socket.as_raw_fd()
    }
}

/// Both halves.
pub struct SharedStream {
    pub(crate) read: SharedReadHalf,
    pub(crate) write: SharedWriteHalf,
}

impl SharedStream {
    fn new(socket: UnixStream, memory: Memory, end: End) -> io::Result<Self> {
        let reading = BufReader::with_capacity(4096, socket.try_clone()?);
        let slots = Mutex::new(Slots { used: vec![false; memory.slots], over: false });
        let common = Arc::new(Common { socket, memory, end, sending: Mutex::default(), slots, freed: Condvar::new() });
        let read = SharedReadHalf { common: Arc::clone(&common), socket: reading, slot: None, at: 0, left: 0 };
        Ok(Self { read, write: SharedWriteHalf { common } })
    }

    /// As [`crate::Stream::set_timeout`].
    pub(crate) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        let socket = &self.write.common.socket;
        socket.set_read_timeout(timeout)?;
        socket.set_write_timeout(timeout)
    }

    /// gpud's end: hands the memory over. Nothing else may be under way on the socket to the other side.
    pub fn offer(socket: UnixStream, mut memory: Memory) -> io::Result<Self> {
        let mut word = [0; 8];
        word[..4].copy_from_slice(&(memory.slots as u32).to_le_bytes());
        word[4..].copy_from_slice(&(memory.slot_bytes as u32).to_le_bytes());
        let descriptor = memory.descriptor.take().ok_or_else(|| broken("the memory was handed over before"))?;
        send_with(&socket, &word, descriptor.as_raw_fd())?;
        Self::new(socket, memory, End::Gpud)
    }

    /// The client's end: receives the memory, which is the next thing that comes. Fails where the socket leads to
    /// another process that carries bytes alone, as to another host.
    pub fn accept(socket: UnixStream) -> io::Result<Self> {
        let mut word = [0; 8];
        let descriptor = receive_with(&socket, &mut word)?;
        let [a, b, c, d, rest @ ..] = word;
        let (slots, slot_bytes) = (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes(rest) as usize);
        if slots == 0 || slots > MOST.0 || slot_bytes <= INLINE_BYTES || slot_bytes > MOST.1 {
            return Err(broken("no sensible shared memory"));
        }
        let mut memory = Memory::map(descriptor, slots, slot_bytes)?;
        // Mapped is enough.
        memory.descriptor = None;
        Self::new(socket, memory, End::Client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread::{sleep, spawn};

    fn pair() -> (SharedStream, SharedStream) {
        let (near, far) = UnixStream::pair().expect("pair");
        let accepting = spawn(move || SharedStream::accept(far).expect("memory"));
        let memory = Memory::create().expect("memory");
        (SharedStream::offer(near, memory).expect("offered"), accepting.join().expect("no panic"))
    }

    /// One end of shared memory, and the bare socket of the other.
    fn bare() -> (SharedStream, UnixStream) {
        let (near, far) = UnixStream::pair().expect("pair");
        let stream = SharedStream::offer(near, Memory::create().expect("memory")).expect("offered");
        receive_with(&far, &mut [0; 8]).expect("the memory");
        (stream, far)
    }

    fn pattern(bytes: usize, seed: usize) -> Vec<u8> {
        (0..bytes).map(|index| (index * 31 + index / 4093 + seed) as u8).collect()
    }

    #[test]
    fn bytes_of_all_lengths_come_out_as_they_went_in_on_both_ways_at_once() {
        let lengths = [1, INLINE_BYTES, INLINE_BYTES + 1, SLOT_BYTES, SLOT_BYTES + 1, 9 * SLOT_BYTES + 7, 3, 40];
        let (gpud, client) = pair();
        let (all_read, has_read) = channel();
        let run = |stream: SharedStream, seed: usize| {
            let (SharedStream { mut read, mut write }, all_read) = (stream, all_read.clone());
            let writing = spawn(move || {
                for (index, length) in lengths.into_iter().enumerate() {
                    write.write_all(&pattern(length, seed + index)).expect("written");
                }
                write
            });
            let reading = spawn(move || {
                for (index, length) in lengths.into_iter().enumerate() {
                    let mut here = vec![0; length];
                    read.read_exact(&mut here).expect("read");
                    assert!(here == pattern(length, 100 - seed + index), "bytes changed on the way");
                }
                all_read.send(()).expect("is waited for");
                // Until the end: who writes at this end hears by it of slots that are free again.
                assert_eq!(read.read(&mut [0]).expect("an orderly end"), 0);
            });
            (writing, reading)
        };
        let (ends, others) = (run(gpud, 10), run(client, 90));
        let writers = [ends.0, others.0].map(|writing| writing.join().expect("no panic"));
        (0..2).for_each(|_| has_read.recv().expect("both read everything"));
        writers[0].shutdown().expect("shut");
        for reading in [ends.1, others.1] {
            reading.join().expect("no panic");
        }
    }

    #[test]
    fn the_end_of_the_other_side_ends_reading_and_a_wait_for_room() {
        let (mut gpud, client) = pair();
        let writing = spawn(move || {
            let SharedStream { read: _read, mut write } = client;
            // Nobody reads it.
            write.write_all(&vec![1; (SLOTS + 1) * SLOT_BYTES]).expect_err("the other side is gone")
        });
        sleep(Duration::from_millis(50));
        let mut first = [0; 10];
        gpud.read.read_exact(&mut first).expect("the first bytes");
        drop(gpud);
        writing.join().expect("no panic");

        let (gpud, mut client) = pair();
        gpud.write.common.socket.shutdown(Shutdown::Both).expect("shut");
        assert_eq!(client.read.read(&mut [0; 10]).expect("an orderly end"), 0);
    }

    #[test]
    fn a_message_that_does_not_fit_the_memory_is_refused() {
        let message = |kind: u8, slot: u8, length: u32| {
            let [a, b, c, d] = length.to_le_bytes();
            [kind, slot, 0, 0, a, b, c, d]
        };
        for message in [
            message(0, 0, 1),
            message(4, 0, 1),
            message(INLINE, 0, 0),
            message(INLINE, 0, INLINE_BYTES as u32 + 1),
            message(SLOT, 0, 0),
            message(SLOT, 0, SLOT_BYTES as u32 + 1),
            message(SLOT, 0, u32::MAX),
            message(SLOT, SLOTS as u8, 1),
            message(SLOT, u8::MAX, 1),
            message(FREE, SLOTS as u8, 0),
            message(FREE, 0, 0),
        ] {
            let (mut stream, far) = bare();
            send(&far, &message).expect("sent");
            let error = stream.read.read(&mut [0; 16]).expect_err("a broken message");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{message:?}");
        }
        let (mut stream, far) = bare();
        send(&far, &message(SLOT, 1, SLOT_BYTES as u32)).expect("sent");
        assert_eq!(stream.read.read(&mut [7; 16]).expect("of the slot"), 16);
    }

    #[test]
    fn memory_that_could_be_made_shorter_is_not_taken() {
        // SAFETY: a C string and no flags.
        let descriptor = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC)) };
        // SAFETY: numbers alone.
        assert_eq!(unsafe { libc::ftruncate(descriptor.as_raw_fd(), 2 * 4096) }, 0);
        assert!(Memory::map(descriptor, 1, 4096).is_err());
        let sealed = Memory::create().expect("memory");
        let descriptor = sealed.descriptor.as_ref().expect("not handed over");
        assert!(Memory::map(descriptor.try_clone().expect("copy"), SLOTS + 1, SLOT_BYTES).is_err());
        // SAFETY: numbers alone.
        assert_ne!(unsafe { libc::ftruncate(descriptor.as_raw_fd(), 0) }, 0);
    }

    #[test]
    fn a_socket_that_carries_bytes_alone_brings_no_memory() {
        let (near, far) = UnixStream::pair().expect("pair");
        send(&near, &[1; 8]).expect("sent");
        assert!(SharedStream::accept(far).is_err());
    }
}
