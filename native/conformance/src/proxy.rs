//! A line between client and gpud that can be cut, and be down for a while.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Passes bytes on, and cuts all connections when told.
pub struct Proxy {
    pub address: String,
    line: Arc<Line>,
}

#[derive(Default)]
struct Line {
    open: Mutex<Vec<TcpStream>>,
    down: AtomicBool,
    /// Clients that have not ended their side.
    clients: AtomicUsize,
    /// Clients that were turned away.
    refused: AtomicUsize,
}

impl Proxy {
    /// A line to `upstream` (`tcp://host:port`).
    pub fn start(upstream: &str) -> io::Result<Self> {
        let upstream = upstream.trim_start_matches("tcp://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("tcp://{}", listener.local_addr()?);
        let line: Arc<Line> = Arc::default();
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
            copy(from_client, server);
            line.clients.fetch_sub(1, Ordering::AcqRel);
        });
        std::thread::spawn(move || copy(from_server, client));
        Ok(())
    }
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
