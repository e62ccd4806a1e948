//! HTTP over a Unix socket, for the broker of a workspace with its own network.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport};
use ureq::{Agent, Error};

/// `http+unix://%2Frun%2Fbroker.sock`: the spelling of jupyter_server and others.
const SCHEME: &str = "http+unix://";

/// Base URL of requests to the socket; the host is neither resolved nor dialed.
pub const BASE: &str = "http://127.0.0.1";

/// The socket that a broker's address names; None for an address of another kind.
pub fn socket_of(url: &str) -> Option<PathBuf> {
    let mut decoded = Vec::new();
    let mut rest = url.strip_prefix(SCHEME)?.split('/').next()?.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        decoded.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    Some(PathBuf::from(String::from_utf8(decoded).ok()?))
}

/// An agent whose requests all go to `socket`, whatever host they name.
pub fn agent(config: ureq::config::Config, socket: &Path) -> Agent {
    Agent::with_parts(config, UnixConnector { socket: socket.to_owned() }, DefaultResolver::default())
}

#[derive(Debug)]
struct UnixConnector {
    socket: PathBuf,
}

impl Connector<()> for UnixConnector {
    type Out = UnixTransport;

    fn connect(&self, details: &ConnectionDetails, _chained: Option<()>) -> Result<Option<Self::Out>, Error> {
        let stream = UnixStream::connect(&self.socket)?;
        let buffers = LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(UnixTransport { stream, buffers }))
    }
}

#[derive(Debug)]
struct UnixTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.set_write_timeout(limit(timeout))?;
        let output = &self.buffers.output()[..amount];
        self.stream.write_all(output).map_err(|error| in_time(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.set_read_timeout(limit(timeout))?;
        let input = self.buffers.input_append_buf();
        let amount = self.stream.read(input).map_err(|error| in_time(error, timeout))?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        let mut byte = 0_u8;
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        // SAFETY: the pointer refers to one live byte, and the descriptor is the stream's own.
        let seen = unsafe { libc::recv(self.stream.as_raw_fd(), (&raw mut byte).cast(), 1, flags) };
        // An idle connection has nothing to read; the end or stray bytes make it useless.
        seen < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
    }
}

/// What is left, at least a millisecond: zero would mean no limit.
fn limit(timeout: NextTimeout) -> Option<Duration> {
    timeout.not_zero().map(|left| (*left).max(Duration::from_millis(1)))
}

fn in_time(error: io::Error, timeout: NextTimeout) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => Error::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;
    use std::os::unix::net::UnixListener;

    #[test]
    fn an_address_names_its_socket() {
        assert_eq!(socket_of("http+unix://%2Frun%2Fa%20b.sock"), Some(PathBuf::from("/run/a b.sock")));
        assert_eq!(socket_of("http+unix://%2Frun%2Fa.sock/v1"), Some(PathBuf::from("/run/a.sock")));
        for other in ["http://127.0.0.1:3001", "http+unix://%2", "http+unix://%zz"] {
            assert_eq!(socket_of(other), None, "{other}");
        }
    }

    #[test]
    fn requests_reach_the_socket_and_use_a_connection_again() {
        let path = std::env::temp_dir().join(format!("sluice-http-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("bound");
        let server = std::thread::spawn(move || {
            // One connection for both requests, and another after it has ended.
            let mut lines = Vec::new();
            for requests in [2, 1] {
                let (stream, _) = listener.accept().expect("accepted");
                let mut reader = io::BufReader::new(stream.try_clone().expect("cloned"));
                for _ in 0..requests {
                    lines.push(first_line(&mut reader));
                    (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").expect("answered");
                }
            }
            lines
        });
        let config = Agent::config_builder().timeout_global(Some(Duration::from_secs(5))).build();
        let agent = agent(config, &path);
        for number in 1..=3 {
            let mut answer = agent.get(format!("{BASE}/v1/{number}")).call().expect("an answer");
            assert_eq!(answer.body_mut().read_to_string().expect("text"), "ok");
        }
        assert_eq!(server.join().expect("ended"), ["GET /v1/1 HTTP/1.1", "GET /v1/2 HTTP/1.1", "GET /v1/3 HTTP/1.1"]);
        std::fs::remove_file(&path).expect("removed");
    }

    fn first_line(reader: &mut impl BufRead) -> String {
        let mut first = String::new();
        reader.read_line(&mut first).expect("a line");
        let mut line = first.clone();
        while line.trim() != "" {
            line.clear();
            reader.read_line(&mut line).expect("a line");
        }
        first.trim().to_owned()
    }
}
