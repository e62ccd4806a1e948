//! Lines on which nothing comes any more, and nobody says so: a host that lost its power, a path that drops everything.
//! Only the system can tell, which acknowledges for a program however busy that is.

use std::io;
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

/// Tries without an answer after which a line is taken for dead. Of 200 ms and then twice as long each: 6 s.
const TRIES: u8 = 5;
/// While nothing is sent, the system asks the other side after so many seconds, and then each second.
const ASK_AFTER: libc::c_int = 5;

/// Has the system end a connection on which the other side has been silent for ten seconds.
pub fn notice(stream: &TcpStream) -> io::Result<()> {
    let options = [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, ASK_AFTER),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, libc::c_int::from(TRIES)),
    ];
    options.into_iter().try_for_each(|(level, name, value)| {
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the pointer refers to a live local of the length given.
        let set = unsafe { libc::setsockopt(stream.as_raw_fd(), level, name, (&raw const value).cast(), length) };
        if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    })
}

/// Whether what was sent on a TCP connection has been repeated again and again without a sign from the other side. The
/// system alone would go on for a quarter of an hour.
pub fn is_silent(socket: RawFd) -> bool {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: room of the length given; a structure of numbers that is zero where the system writes less.
    let info = unsafe {
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        let asked = libc::getsockopt(socket, level, name, info.as_mut_ptr().cast(), &raw mut length);
        (asked == 0).then(|| info.assume_init())
    };
    // A Unix socket has no such line.
    info.is_some_and(|info| info.tcpi_retransmits >= TRIES)
}
