//! Who is at the other end of a connection.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// `SO_PEERPIDFD` (Linux 6.5), which the libc crate does not name.
const SO_PEERPIDFD: libc::c_int = 77;
/// To be filled in.
const NOBODY: libc::ucred = libc::ucred { pid: 0, uid: 0, gid: 0 };

/// What a stranger cannot have many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// An IPv4 address, or an IPv6 network of 64 bits, of which a host has all addresses.
    Network(IpAddr),
    /// A user of this host, by a Unix socket.
    User(u32),
}

impl Peer {
    /// The peer with this address.
    pub fn at(address: SocketAddr) -> Peer {
        match address.ip().to_canonical() {
            IpAddr::V6(ip) => Peer::Network(IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64))),
            ip => Peer::Network(ip),
        }
    }

    /// The user whose process connected a Unix socket.
    pub fn on(socket: RawFd) -> io::Result<Peer> {
        option(socket, libc::SO_PEERCRED, NOBODY).map(|peer| Peer::User(peer.uid))
    }
}

/// A handle on the process that made a connection. Its number may be reused; the handle still means that process.
pub struct PeerProcess(OwnedFd);

impl PeerProcess {
    /// The process that connected `socket`, if that process calls itself `pid`.
    ///
    /// `None` where the end of the client cannot be seen from here: on TCP, where a forwarder made the connection, and
    /// where this process's `/proc` does not show the peer.
    pub fn of(socket: RawFd, pid: u32) -> Option<PeerProcess> {
        let process = PeerProcess(handle(socket)?);
        (process.own_number() == Some(pid)).then_some(process)
    }

    /// Whether the process has ended, reaped or not.
    pub fn has_ended(&self) -> bool {
        let mut polled = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live structure.
        unsafe { libc::poll(&raw mut polled, 1, 0) > 0 }
    }

    /// The process's number in its own PID namespace.
    fn own_number(&self) -> Option<u32> {
        let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", self.0.as_raw_fd())).ok()?;
        let numbers = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        // The outermost namespace comes first. A process that `/proc` does not show is 0 here.
        numbers.split_whitespace().last()?.parse().ok().filter(|number| *number > 0)
    }
}

/// A descriptor of the process that connected `socket`.
fn handle(socket: RawFd) -> Option<OwnedFd> {
    let descriptor = option(socket, SO_PEERPIDFD, -1).or_else(|_| {
        // An older kernel only tells the number, which may be another process's by now. Then the descriptor means that
        // one, and `PeerProcess::of` compares its number in its own namespace.
        let number = option(socket, libc::SO_PEERCRED, NOBODY)?.pid;
        // SAFETY: takes numbers.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) };
        if opened < 0 { Err(io::Error::last_os_error()) } else { Ok(opened as RawFd) }
    });
    let descriptor = descriptor.ok().filter(|descriptor| *descriptor >= 0)?;
    // SAFETY: the kernel has just made this descriptor for the caller.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// An option of `SOL_SOCKET`, of which `value` is an empty one.
fn option<T: Copy>(socket: RawFd, name: libc::c_int, mut value: T) -> io::Result<T> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is a live local with room for `length` bytes. The callers' types are numbers alone, so that any bytes
    // are a value.
    let result = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut length) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};

    fn listener() -> (UnixListener, std::path::PathBuf) {
        let path =
            std::env::temp_dir().join(format!("sluice-peer-{}-{:?}", std::process::id(), std::thread::current().id()));
        let _ = std::fs::remove_file(&path);
        (UnixListener::bind(&path).expect("listens"), path)
    }

    #[test]
    fn the_end_of_the_process_that_connected_is_seen_before_it_is_reaped() {
        let (listener, path) = listener();
        let address = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec();
        // SAFETY: the child makes system calls alone, and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: an address of the length given, in zeroed memory of its type.
            unsafe {
                let mut name: libc::sockaddr_un = std::mem::zeroed();
                name.sun_family = libc::AF_UNIX as u16;
                address.iter().zip(&mut name.sun_path).for_each(|(from, to)| *to = *from as libc::c_char);
                let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
                libc::connect(socket, (&raw const name).cast(), size_of::<libc::sockaddr_un>() as u32);
                libc::pause();
                libc::_exit(0);
            }
        }
        let (stream, _) = listener.accept().expect("accepts");
        assert!(PeerProcess::of(stream.as_raw_fd(), std::process::id()).is_none(), "it calls itself otherwise");
        let process = PeerProcess::of(stream.as_raw_fd(), child as u32).expect("known");
        assert!(!process.has_ended());
        // SAFETY: the child made above; a live local.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, child as u32, &raw mut info, libc::WEXITED | libc::WNOWAIT);
        }
        assert!(process.has_ended(), "it is a zombie");
        // SAFETY: as above.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        assert!(process.has_ended());
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn a_process_at_the_other_end_of_tcp_is_not_known() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let _near = TcpStream::connect(listener.local_addr().expect("address")).expect("connects");
        let (far, _) = listener.accept().expect("accepts");
        assert!(PeerProcess::of(far.as_raw_fd(), std::process::id()).is_none());
        let (listener, path) = self::listener();
        let _near = UnixStream::connect(&path).expect("connects");
        let (far, _) = listener.accept().expect("accepts");
        assert!(PeerProcess::of(far.as_raw_fd(), std::process::id()).is_some());
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn peers_are_told_apart_by_what_a_stranger_cannot_have_many_of() {
        let at = |text: &str| Peer::at(text.parse().expect("an address"));
        assert_eq!(at("192.0.2.1:1"), at("192.0.2.1:2"));
        assert_eq!(at("192.0.2.1:1"), at("[::ffff:192.0.2.1]:1"));
        assert_ne!(at("192.0.2.1:1"), at("192.0.2.2:1"));
        assert_eq!(at("[2001:db8::1]:1"), at("[2001:db8::ffff:0:0:2]:1"));
        assert_ne!(at("[2001:db8::1]:1"), at("[2001:db8:0:1::1]:1"));
        let (near, _far) = UnixStream::pair().expect("a pair");
        // SAFETY: has no preconditions.
        assert_eq!(Peer::on(near.as_raw_fd()).expect("a Unix socket"), Peer::User(unsafe { libc::geteuid() }));
    }
}
