//! A line between client and gpud that can be cut, be down for a while, and take its time.

use crate::gpud::Gpud;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Passes bytes on, and cuts all connections when told.
pub struct Proxy {
    pub address: String,
    line: Arc<Line>,
}

#[derive(Default)]
struct Line {
    open: Mutex<Vec<TcpStream>>,
    /// Where clients come in.
    listener: RawFd,
    down: AtomicBool,
    /// What each byte takes longer.
    one_way: Duration,
    /// Clients that have not ended their side.
    clients: AtomicUsize,
    /// Clients that were turned away.
    refused: AtomicUsize,
}

impl Proxy {
    /// A line to `upstream` (`tcp://host:port`, or `tls://…`: what passes is not looked at).
    pub fn start(upstream: &str) -> io::Result<Self> {
        Self::with_round_trip(upstream, Duration::ZERO)
    }

    /// A line in front of a gpud, by which it is found from now on.
    pub fn before(gpud: &mut Gpud) -> io::Result<Self> {
        let proxy = Self::start(&gpud.address)?;
        gpud.address.clone_from(&proxy.address);
        Ok(proxy)
    }

    /// As [`Proxy::start`], with this much added to each round trip.
    pub fn with_round_trip(upstream: &str, round_trip: Duration) -> io::Result<Self> {
        let (scheme, upstream) = upstream.split_once("://").unwrap_or(("tcp", upstream));
        let upstream = upstream.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("{scheme}://{}", listener.local_addr()?);
        let line = Arc::new(Line { one_way: round_trip / 2, listener: listener.as_raw_fd(), ..Line::default() });
        let shared = Arc::clone(&line);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let _ = shared.pass(client, &upstream);
            }
        });
        Ok(Self { address, line })
    }

    /// Cuts every connection; new ones are taken at once.
    pub fn cut(&self) {
        for socket in self.line.sockets().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Takes no connections while `down`; cuts those that are there.
    pub fn set_down(&self, down: bool) {
        self.line.down.store(down, Ordering::Release);
        if down {
            self.cut();
        }
    }

    /// Silent, the line drops every packet of its clients and says nothing: none is acknowledged.
    pub fn set_silent(&self, silent: bool) {
        let sockets = self.line.sockets();
        let sockets = sockets.iter().map(AsRawFd::as_raw_fd).chain([self.line.listener]);
        sockets.for_each(|socket| drop_packets(socket, silent));
    }

    /// Connections of which the client's side is open.
    pub fn clients(&self) -> usize {
        self.line.clients.load(Ordering::Acquire)
    }

    /// How many connections were turned away.
    pub fn refused(&self) -> usize {
        self.line.refused.load(Ordering::Acquire)
    }
}

impl Line {
    fn sockets(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(self: &Arc<Self>, client: TcpStream, upstream: &str) -> io::Result<()> {
        if self.down.load(Ordering::Acquire) {
            self.refused.fetch_add(1, Ordering::AcqRel);
            return Ok(());
        }
        let server = TcpStream::connect(upstream)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        {
            // Looked at under the lock: what `cut` does not find here is not let through either.
            let mut sockets = self.sockets();
            if self.down.load(Ordering::Acquire) {
                return Ok(());
            }
            sockets.extend([client.try_clone()?, server.try_clone()?]);
        }
        let (from_client, from_server) = (client.try_clone()?, server.try_clone()?);
        self.clients.fetch_add(1, Ordering::AcqRel);
        let line = Arc::clone(self);
        std::thread::spawn(move || {
            line.copy(from_client, server);
            line.clients.fetch_sub(1, Ordering::AcqRel);
        });
        let line = Arc::clone(self);
        std::thread::spawn(move || line.copy(from_server, client));
        Ok(())
    }

    fn copy(&self, from: TcpStream, to: TcpStream) {
        if self.one_way.is_zero() { copy(from, to) } else { copy_late(from, to, self.one_way) }
    }
}

/// Has the system throw away what arrives at a socket, before it is acknowledged; a filter that takes no byte.
fn drop_packets(socket: RawFd, dropping: bool) {
    // BPF_RET | BPF_K, 0
    let mut nothing = libc::sock_filter { code: 6, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut nothing };
    let (name, length) = if dropping {
        (libc::SO_ATTACH_FILTER, size_of::<libc::sock_fprog>())
    } else {
        (libc::SO_DETACH_FILTER, size_of::<libc::c_int>())
    };
    // SAFETY: an open socket, and a live program of the length given, which detaching does not look at.
    let set = unsafe {
        libc::setsockopt(socket, libc::SOL_SOCKET, name, (&raw const program).cast(), length as libc::socklen_t)
    };
    assert_eq!(set, 0, "the filter: {}", io::Error::last_os_error());
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 1500];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Passes bytes on, each this much after it came.
fn copy_late(mut from: TcpStream, mut to: TcpStream, late: Duration) {
    // A line of 4 GB/s and 1 ms holds 4 MB: what is on the way is bounded by the senders' windows.
    let (sender, receiver) = channel::<(Instant, Vec<u8>)>();
    let passing = std::thread::spawn(move || {
        for (due, bytes) in receiver {
            while let Some(left) = due.checked_duration_since(Instant::now()) {
                // Sleeping is exact to some 60 us only.
                if left > Duration::from_micros(120) {
                    std::thread::sleep(left - Duration::from_micros(100));
                } else {
                    std::thread::yield_now();
                }
            }
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let mut buffer = vec![0; 256 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if sender.send((Instant::now() + late, buffer[..count].to_vec())).is_err() {
            break;
        }
    }
    drop(sender);
    let _ = passing.join();
}
