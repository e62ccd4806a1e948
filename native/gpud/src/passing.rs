//! Messages between supervisor and worker: JSON over a sequenced-packet socket pair, with descriptors alongside.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Longest message; a session token is about a kilobyte.
const MESSAGE_BYTES: usize = 128 << 10;
/// Most descriptors beside one message.
const DESCRIPTORS: usize = 3;

/// One end of the pair.
pub struct Channel {
    socket: OwnedFd,
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Room for the control message of [`DESCRIPTORS`] descriptors, aligned as `cmsghdr` must be.
#[repr(C, align(8))]
struct ControlSpace([u8; 64]);

impl Channel {
    /// Both ends; each is closed at exec.
    pub fn pair() -> io::Result<(Channel, Channel)> {
        let mut ends = [-1; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: `ends` has room for two descriptors.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: fresh descriptors that nobody else owns.
        let [left, right] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        Ok((Channel { socket: left }, Channel { socket: right }))
    }

    /// Takes over a descriptor that is such an end.
    ///
    /// # Safety
    /// The descriptor is open and owned by nobody else.
    pub unsafe fn from_raw(descriptor: RawFd) -> Channel {
        // SAFETY: promised by the caller.
        Channel { socket: unsafe { OwnedFd::from_raw_fd(descriptor) } }
    }

    /// Takes over a descriptor that is such an end.
    pub fn from_end(socket: OwnedFd) -> Channel {
        Channel { socket }
    }

    /// The descriptor.
    pub fn as_raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sends a message and descriptors with it; waits for room.
    pub fn send<T: Serialize>(&self, message: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.transmit(message, descriptors, 0)
    }

    /// The same, without waiting: an end that does not take what it is told, or cannot be told it, is of no more use, and
    /// the channel ends.
    pub fn order<T: Serialize>(&self, message: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.transmit(message, descriptors, libc::MSG_DONTWAIT).inspect_err(|_| self.end())
    }

    /// Both ends find the channel's end.
    pub fn end(&self) {
        // SAFETY: the descriptor is open as long as self lives.
        unsafe { libc::shutdown(self.as_raw(), libc::SHUT_RDWR) };
    }

    fn transmit<T: Serialize>(
        &self,
        message: &T,
        descriptors: &[BorrowedFd<'_>],
        flags: libc::c_int,
    ) -> io::Result<()> {
        let text = serde_json::to_vec(message)?;
        if text.len() > MESSAGE_BYTES || descriptors.len() > DESCRIPTORS {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "message too long"));
        }
        let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let mut part = libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.len() };
        let mut space = ControlSpace([0; 64]);
        // SAFETY: a zeroed msghdr is valid; every pointer set below outlives the call; the control space is large
        // enough for DESCRIPTORS descriptors and aligned for cmsghdr.
        let sent = unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            if !raw.is_empty() {
                let bytes = size_of_val(raw.as_slice());
                header.msg_control = space.0.as_mut_ptr().cast();
                header.msg_controllen = libc::CMSG_SPACE(bytes as u32) as usize;
                let control = libc::CMSG_FIRSTHDR(&header);
                (*control).cmsg_level = libc::SOL_SOCKET;
                (*control).cmsg_type = libc::SCM_RIGHTS;
                (*control).cmsg_len = libc::CMSG_LEN(bytes as u32) as usize;
                std::ptr::copy_nonoverlapping(raw.as_ptr().cast::<u8>(), libc::CMSG_DATA(control), bytes);
            }
            libc::sendmsg(self.as_raw(), &header, libc::MSG_NOSIGNAL | flags)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives the next message; `None` when the other side is gone.
    pub fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let mut text = vec![0; MESSAGE_BYTES];
        let mut part = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: text.len() };
        let mut space = ControlSpace([0; 64]);
        let mut descriptors = Vec::new();
        // SAFETY: as in `send`; the kernel writes at most the given lengths.
        let (received, flags) = unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            header.msg_control = space.0.as_mut_ptr().cast();
            header.msg_controllen = size_of::<ControlSpace>();
            let received = loop {
                let received = libc::recvmsg(self.as_raw(), &mut header, libc::MSG_CMSG_CLOEXEC);
                if received >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                    break received;
                }
            };
            if received >= 0 {
                let mut control = libc::CMSG_FIRSTHDR(&header);
                while !control.is_null() {
                    if (*control).cmsg_level == libc::SOL_SOCKET && (*control).cmsg_type == libc::SCM_RIGHTS {
                        let bytes = (*control).cmsg_len - libc::CMSG_LEN(0) as usize;
                        for index in 0..bytes / size_of::<RawFd>() {
                            let raw = libc::CMSG_DATA(control).cast::<RawFd>().add(index).read_unaligned();
                            descriptors.push(OwnedFd::from_raw_fd(raw));
                        }
                    }
                    control = libc::CMSG_NXTHDR(&header, control);
                }
            }
            (received, header.msg_flags)
        };
        match received {
            ..0 => {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::ConnectionReset { Ok(None) } else { Err(error) }
            }
            0 => Ok(None),
            length if flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) == 0 => {
                let message = serde_json::from_slice(text.get(..length as usize).unwrap_or_default())?;
                Ok(Some((message, descriptors)))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "message too long")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_message_brings_its_descriptors() {
        let (left, right) = Channel::pair().expect("pair");
        let (mut read, write) = io::pipe().expect("pipe");
        left.send(&"hello", &[write.as_fd()]).expect("sent");
        drop(write);
        let (text, mut descriptors) = right.receive::<String>().expect("received").expect("there");
        assert_eq!(text, "hello");
        File::from(descriptors.pop().expect("one")).write_all(b"x").expect("written");
        let mut got = String::new();
        read.read_to_string(&mut got).expect("read");
        assert_eq!(got, "x");
    }

    #[test]
    fn the_end_of_the_other_side_is_told() {
        let (left, right) = Channel::pair().expect("pair");
        drop(left);
        assert!(right.receive::<String>().expect("received").is_none());
    }
}
