//! gpud's listening side.

use crate::address::Address;
use crate::silence;
use crate::stream::{Closer, Stream};
use crate::tls::{Identity, TlsStream};
use std::io;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
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
        let kind = match self {
            Self::Tcp(listener) => {
                let (socket, _) = listener.accept()?;
                socket.set_nodelay(true)?;
                silence::notice(&socket)?;
                IncomingKind::Ready(Stream::Tcp(socket))
            }
            Self::Unix(listener) => IncomingKind::Ready(Stream::Unix(listener.accept()?.0)),
            Self::Tls(listener, identity) => {
                let (socket, _) = listener.accept()?;
                socket.set_nodelay(true)?;
                silence::notice(&socket)?;
                IncomingKind::Tls(socket, Arc::clone(identity))
            }
        };
        Ok(Incoming { kind })
    }
}
