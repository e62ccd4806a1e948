//! gpud's listening side.

use crate::address::Address;
use crate::peer::Peer;
use crate::silence;
use crate::stream::{Closer, Stream};
use crate::tls::{Identity, TlsStream};
use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

/// Accepts connections on one address.
pub enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
    Tls(TcpListener, Arc<Identity>),
}

/// An accepted connection whose TLS handshake (if any) is still to be done, on the connection's own thread.
pub struct Incoming {
    kind: IncomingKind,
    peer: Peer,
}

enum IncomingKind {
    Ready(Stream),
    Tls(std::net::TcpStream, Arc<Identity>),
}

impl Incoming {
    /// A second handle, to end the connection from another thread.
    pub fn closer(&self) -> io::Result<Closer> {
        match &self.kind {
            IncomingKind::Ready(stream) => stream.closer(),
            IncomingKind::Tls(socket, _) => Closer::of(socket.as_raw_fd()),
        }
    }

    /// Who has connected.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Finishes the transport's own handshake.
    pub fn open(self, timeout: Duration) -> io::Result<Stream> {
        match self.kind {
            IncomingKind::Ready(stream) => Ok(stream),
            IncomingKind::Tls(socket, identity) => {
                Ok(Stream::Tls(Box::new(TlsStream::accept(socket, &identity, timeout)?)))
            }
        }
    }
}

impl Listener {
    /// Listens; `identity` is needed for `tls://`. Port 0 takes a free one.
    pub fn bind(address: &Address, identity: Option<Arc<Identity>>) -> io::Result<Self> {
        match address {
            Address::Tcp(host) => Ok(Self::Tcp(TcpListener::bind(host.as_str())?)),
            Address::Unix(path) => {
                // A socket file that a killed gpud left behind would refuse the next one.
                if path.exists() && std::os::unix::net::UnixStream::connect(path).is_err() {
                    std::fs::remove_file(path)?;
                }
                Ok(Self::Unix(UnixListener::bind(path)?))
            }
            Address::Tls(host) => {
                let identity =
                    identity.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "tls:// needs an identity"))?;
                Ok(Self::Tls(TcpListener::bind(host.as_str())?, identity))
            }
        }
    }

    /// Takes over the listening TCP socket that this process has inherited as `descriptor`. `address` says where the socket
    /// listens; `identity` is needed for `tls://`.
    pub fn inherit(descriptor: RawFd, address: &Address, identity: Option<Arc<Identity>>) -> io::Result<Self> {
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
        let host = match address {
            Address::Tcp(host) | Address::Tls(host) => host,
            Address::Unix(_) => return Err(invalid(format!("{address}: an inherited socket is a TCP socket"))),
        };
        if !is_listening(descriptor) {
            return Err(invalid(format!("descriptor {descriptor} is no listening socket")));
        }
        // SAFETY: the descriptor is open, and it is a listening socket, of which the caller has opened none: the descriptor
        // comes from the parent process, and no other value of this process owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        close_on_exec(&socket)?;
        let listener = TcpListener::from(socket);
        // All descriptors of a socket share this flag, and the parent may have set the flag.
        listener.set_nonblocking(false)?;
        let bound = listener.local_addr()?;
        // The address decides between TLS and plain TCP, so a socket at another address must not pass.
        if !host.as_str().to_socket_addrs()?.any(|named| named == bound) {
            return Err(invalid(format!("descriptor {descriptor} listens at {bound} and not at {address}")));
        }
        match (address, identity) {
            (Address::Tls(_), Some(identity)) => Ok(Self::Tls(listener, identity)),
            (Address::Tls(_), None) => Err(invalid("tls:// needs an identity".to_owned())),
            _ => Ok(Self::Tcp(listener)),
        }
    }

    /// Where it listens, with the real port.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Self::Tcp(listener) => Ok(Address::Tcp(listener.local_addr()?.to_string())),
            Self::Tls(listener, _) => Ok(Address::Tls(listener.local_addr()?.to_string())),
            Self::Unix(listener) => {
                let address = listener.local_addr()?;
                let path = address.as_pathname().ok_or_else(|| io::Error::other("the socket has no path"))?;
                Ok(Address::Unix(path.to_owned()))
            }
        }
    }

    /// Waits for the next connection.
    pub fn accept(&self) -> io::Result<Incoming> {
        let (kind, peer) = match self {
            Self::Tcp(listener) => {
                let (socket, address) = listener.accept()?;
                socket.set_nodelay(true)?;
                silence::notice(&socket)?;
                (IncomingKind::Ready(Stream::Tcp(socket)), Peer::at(address))
            }
            Self::Unix(listener) => {
                let (socket, _) = listener.accept()?;
                let peer = Peer::on(socket.as_raw_fd())?;
                (IncomingKind::Ready(Stream::Unix(socket)), peer)
            }
            Self::Tls(listener, identity) => {
                let (socket, address) = listener.accept()?;
                socket.set_nodelay(true)?;
                silence::notice(&socket)?;
                (IncomingKind::Tls(socket, Arc::clone(identity)), Peer::at(address))
            }
        };
        Ok(Incoming { kind, peer })
    }
}

/// Whether the descriptor is open and a socket that listens.
fn is_listening(descriptor: RawFd) -> bool {
    let mut accepts: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_ACCEPTCONN);
    // SAFETY: both pointers refer to live locals, the length is the first one's; any descriptor may be asked.
    let asked = unsafe { libc::getsockopt(descriptor, level, name, (&raw mut accepts).cast(), &raw mut length) };
    asked == 0 && accepts == 1
}

/// Keeps programs that this process starts from inheriting the descriptor.
fn close_on_exec(descriptor: &OwnedFd) -> io::Result<()> {
    // SAFETY: an open descriptor; the operation changes its flag alone.
    let set = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::os::fd::IntoRawFd;

    fn listening() -> (RawFd, Address) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        listener.set_nonblocking(true).expect("sets a flag");
        let address = listener.local_addr().expect("address");
        (listener.into_raw_fd(), Address::Tcp(address.to_string()))
    }

    #[test]
    fn an_inherited_socket_accepts_the_connections_that_waited() {
        let (descriptor, address) = listening();
        let Address::Tcp(host) = &address else { unreachable!("just made") };
        let waiting = TcpStream::connect(host.as_str()).expect("connects");
        let listener = Listener::inherit(descriptor, &address, None).expect("takes over");
        assert_eq!(listener.address().expect("address"), address);
        listener.accept().expect("accepts");
        drop(waiting);
        // SAFETY: the listener keeps the descriptor open.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
        assert_eq!(flags, libc::FD_CLOEXEC);
    }

    #[test]
    fn a_socket_at_another_address_is_refused() {
        let (descriptor, _) = listening();
        let refused = Listener::inherit(descriptor, &Address::Tcp("127.0.0.1:1".to_owned()), None);
        assert!(refused.err().expect("refused").to_string().contains("and not at"));
    }

    #[test]
    fn a_descriptor_that_does_not_listen_is_refused() {
        let file = std::fs::File::open("/dev/null").expect("opens");
        let address = Address::Tcp("127.0.0.1:1".to_owned());
        for descriptor in [file.as_raw_fd(), 9_999] {
            let refused = Listener::inherit(descriptor, &address, None).err().expect("refused");
            assert!(refused.to_string().contains("no listening socket"));
        }
    }
}
