//! One connection, and its two halves for the reading and the writing thread.

use crate::address::Address;
use crate::shared::{self, Memory, SharedReadHalf, SharedStream, SharedWriteHalf};
use crate::silence;
use crate::tls::{Keys, TlsReadHalf, TlsStream, TlsWriteHalf};
use crate::variables;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connection of any kind.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Shared(Box<SharedStream>),
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Connects. `fingerprint` is the SHA-256 of the server's certificate (needed by `tls://`, unused otherwise).
    pub fn connect(address: &Address, fingerprint: Option<&[u8; 32]>, timeout: Duration) -> io::Result<Self> {
        match address {
            Address::Tcp(host) => Ok(Self::Tcp(connect_outside(host, timeout)?)),
            Address::Unix(path) => Ok(Self::Unix(UnixStream::connect(path)?)),
            Address::Tls(host) => {
                let pin = fingerprint.ok_or_else(|| {
                    io::Error::new(io::ErrorKind::InvalidInput, "tls:// needs the fingerprint of the server")
                })?;
                Ok(Self::Tls(Box::new(TlsStream::connect(connect_outside(host, timeout)?, pin, timeout)?)))
            }
        }
    }

    /// Bounds every read and write; used during the handshake and taken off (None) afterwards.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Self::Unix(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Self::Shared(stream) => stream.set_timeout(timeout),
            Self::Tls(stream) => stream.set_timeout(timeout),
        }
    }

    /// A second handle on the socket, that can end the connection from another thread.
    pub fn closer(&self) -> io::Result<Closer> {
        Closer::of(self.as_raw_fd())
    }

    /// Splits into halves that two threads own.
    pub fn split(self) -> io::Result<(ReadHalf, WriteHalf)> {
        match self {
            Self::Tcp(stream) => Ok((ReadHalf::Tcp(stream.try_clone()?), WriteHalf::Tcp(stream))),
            Self::Unix(stream) => Ok((ReadHalf::Unix(stream.try_clone()?), WriteHalf::Unix(stream))),
            Self::Shared(stream) => {
                let SharedStream { read, write } = *stream;
                Ok((ReadHalf::Shared(read), WriteHalf::Shared(write)))
            }
            Self::Tls(stream) => {
                let (read, write) = stream.split()?;
                Ok((ReadHalf::Tls(Box::new(read)), WriteHalf::Tls(Box::new(write))))
            }
        }
    }

    /// Whether it is a bare Unix socket: its other end is a process of this host.
    pub fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// gpud's end of a Unix socket whose bytes are to go through memory from now on, as it has told the client.
    pub fn offer(self, memory: Memory) -> io::Result<Self> {
        match self {
            Self::Unix(socket) => Ok(Self::Shared(Box::new(SharedStream::offer(socket, memory)?))),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The client's end, when gpud has told so.
    pub fn accept(self) -> io::Result<Self> {
        match self {
            Self::Unix(socket) => Ok(Self::Shared(Box::new(SharedStream::accept(socket)?))),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Hands a descriptor to the process at the other end of a Unix socket.
    pub fn hand_over(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        match self {
            Self::Unix(socket) => shared::send_with(socket, &[0], descriptor.as_raw_fd()),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Takes what [`Stream::hand_over`] has sent, which is the next thing that comes. Fails as [`Stream::accept`] where the
    /// socket leads to another host.
    pub fn take_over(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Unix(socket) => shared::receive_with(socket, &mut [0]),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Bytes can be read that the socket does not show any more.
    pub fn holds_bytes(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.holds_bytes())
    }

    /// The socket, to hand the connection to another process, and what that has to know where TLS is spoken on it. Shared
    /// memory cannot be handed over, nor a connection that holds bytes.
    pub fn into_parts(self) -> io::Result<(OwnedFd, Option<Keys>)> {
        match self {
            Self::Tcp(stream) => Ok((stream.into(), None)),
            Self::Unix(stream) => Ok((stream.into(), None)),
            Self::Shared(_) => Err(io::ErrorKind::Unsupported.into()),
            Self::Tls(stream) => stream.hand_over().map(|(socket, keys)| (socket, Some(keys))),
        }
    }

    /// A stream of the parts that another process handed over.
    pub fn from_parts(socket: OwnedFd, keys: Option<Keys>) -> io::Result<Self> {
        if let Some(keys) = keys {
            return Ok(Self::Tls(Box::new(TlsStream::take_up(socket.into(), keys)?)));
        }
        if is_unix(socket.as_raw_fd())? { Ok(Self::Unix(socket.into())) } else { Ok(Self::Tcp(socket.into())) }
    }
}

/// `SLUICE_GPUD_PROXY` (`host:port`) names the egress proxy of a workspace with a network of its own, which speaks HTTP CONNECT.
fn connect_outside(host: &str, timeout: Duration) -> io::Result<TcpStream> {
    match variables::text("SLUICE_GPUD_PROXY") {
        Some(proxy) => connect_through(&proxy, host, timeout),
        None => connect_tcp(host, timeout),
    }
}

/// Longest answer of a proxy to CONNECT.
const LONGEST_ANSWER: usize = 4096;

fn connect_through(proxy: &str, host: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut stream = connect_tcp(proxy, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    stream.write_all(format!("CONNECT {host} HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        // Byte by byte: what comes behind the answer is the server's.
        if answer.len() == LONGEST_ANSWER || stream.read(&mut byte)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the workspace's egress proxy gave no answer"));
        }
        answer.push(byte[0]);
    }
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    let answer = String::from_utf8_lossy(&answer);
    let line = answer.lines().next().unwrap_or_default();
    match line.split(' ').nth(1) {
        Some("200") => Ok(stream),
        _ => Err(io::Error::new(io::ErrorKind::ConnectionRefused, format!("the workspace's egress proxy: {line}"))),
    }
}

fn connect_tcp(host: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                silence::notice(&stream)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn is_unix(fd: RawFd) -> io::Result<bool> {
    let mut domain: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointers refer to live locals of the sizes given.
    let result =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_DOMAIN, (&raw mut domain).cast(), &raw mut length) };
    if result == 0 { Ok(domain == libc::AF_UNIX) } else { Err(io::Error::last_os_error()) }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            Self::Shared(stream) => stream.read.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => shared::send(stream, bytes),
            Self::Shared(stream) => stream.write.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Unix(stream) => stream.flush(),
            Self::Shared(stream) => stream.write.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// The reading side.
pub enum ReadHalf {
    Tcp(TcpStream),
    Unix(UnixStream),
    Shared(SharedReadHalf),
    Tls(Box<TlsReadHalf>),
}

impl ReadHalf {
    /// Bytes can be read that the socket does not show any more.
    pub fn holds_bytes(&self) -> bool {
        matches!(self, Self::Tls(half) if half.holds_bytes())
    }
}

impl Read for ReadHalf {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            Self::Shared(half) => half.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

/// The writing side.
pub enum WriteHalf {
    Tcp(TcpStream),
    Unix(UnixStream),
    Shared(SharedWriteHalf),
    Tls(Box<TlsWriteHalf>),
}

impl WriteHalf {
    /// Ends the connection in both directions: the reading thread sees its end.
    pub fn shutdown(&self) {
        // A connection that is gone already needs no shutdown.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Shared(half) => half.shutdown(),
            Self::Tls(stream) => stream.shutdown(),
        };
    }

    /// A second handle on the socket that can end the connection while another thread writes.
    pub fn closer(&self) -> io::Result<Closer> {
        Closer::of(self.as_raw_fd())
    }
}

/// Ends a connection from any thread.
pub struct Closer(OwnedFd);

impl Closer {
    pub(crate) fn of(socket: RawFd) -> io::Result<Self> {
        // SAFETY: the caller's socket is open; the duplicate is owned by the new OwnedFd alone.
        let copy = unsafe { libc::fcntl(socket, libc::F_DUPFD_CLOEXEC, 0) };
        if copy < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: copy was just made and belongs to nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(copy) }))
    }

    /// Reading and writing threads see the end.
    pub fn close(&self) {
        // SAFETY: the descriptor is open as long as self lives.
        unsafe { libc::shutdown(self.0.as_raw_fd(), libc::SHUT_RDWR) };
    }

    /// The descriptor itself, for a forked child that only closes.
    pub fn into_raw(self) -> RawFd {
        self.0.into_raw_fd()
    }
}

impl AsRawFd for Closer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Shared(stream) => stream.write.as_raw_fd(),
            Self::Tls(stream) => stream.as_raw_fd(),
        }
    }
}

impl AsRawFd for ReadHalf {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Shared(half) => half.as_raw_fd(),
            Self::Tls(stream) => stream.as_raw_fd(),
        }
    }
}

impl AsRawFd for WriteHalf {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Shared(half) => half.as_raw_fd(),
            Self::Tls(stream) => stream.as_raw_fd(),
        }
    }
}

impl Write for WriteHalf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => shared::send(stream, bytes),
            Self::Shared(half) => half.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Unix(stream) => stream.flush(),
            Self::Shared(half) => half.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
