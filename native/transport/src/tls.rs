//! TLS 1.3 with a self-signed certificate that the client pins by its SHA-256; no certificate authority takes part.
//!
//! rustls keeps one state for both directions. The halves share it under a lock that is never held while the socket
//! is read or written, so that a blocked reader does not stop the writer. Nor does a blocked writer stop the reader, which
//! never writes: what TLS 1.3 wants said after the handshake (the answer to a key update) goes out before the next data.

use ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, Error, ServerConfig,
    ServerConnection, SignatureScheme,
};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A server's certificate and key.
pub struct Identity {
    config: Arc<ServerConfig>,
    /// SHA-256 of the certificate: what clients pin.
    pub fingerprint: [u8; 32],
}

impl Identity {
    /// Makes a new self-signed identity; returns it with its PEM (certificate, then key) to be kept by the caller.
    pub fn generate(name: &str) -> io::Result<(Self, String)> {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).map_err(io::Error::other)?;
        let pem = format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem());
        Ok((Self::from_pem(&pem)?, pem))
    }

    /// Reads what `generate` returned.
    pub fn from_pem(pem: &str) -> io::Result<Self> {
        use rustls::pki_types::pem::PemObject;
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(io::Error::other)?;
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(io::Error::other)?;
        let fingerprint = sha256(&certificate);
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .map_err(io::Error::other)?;
        Ok(Self { config: Arc::new(config), fingerprint })
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, bytes).as_ref());
    out
}

#[derive(Debug)]
struct Pinned {
    fingerprint: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if sha256(certificate) == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not used".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A TLS connection before it is split.
pub struct TlsStream {
    socket: TcpStream,
    state: Connection,
}

impl TlsStream {
    pub(crate) fn connect(socket: TcpStream, fingerprint: &[u8; 32], timeout: Duration) -> io::Result<Self> {
        let provider = provider();
        let verifier = Pinned { fingerprint: *fingerprint, provider: Arc::clone(&provider) };
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let name = ServerName::try_from("gpud").map_err(io::Error::other)?;
        let state = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        Self { socket, state: Connection::Client(state) }.shake_hands(timeout)
    }

    /// The server's side of a fresh TCP connection.
    pub fn accept(socket: TcpStream, identity: &Identity, timeout: Duration) -> io::Result<Self> {
        let state = ServerConnection::new(identity.config()).map_err(io::Error::other)?;
        Self { socket, state: Connection::Server(state) }.shake_hands(timeout)
    }

    fn shake_hands(mut self, timeout: Duration) -> io::Result<Self> {
        self.set_timeout(Some(timeout))?;
        while self.state.is_handshaking() {
            self.state.complete_io(&mut self.socket)?;
        }
        self.flush()?;
        self.set_timeout(None)?;
        Ok(self)
    }

    pub(crate) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(timeout)?;
        self.socket.set_write_timeout(timeout)
    }
}

impl AsRawFd for TlsStream {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.state.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            if self.state.complete_io(&mut self.socket)? == (0, 0) {
                return Ok(0);
            }
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.state.writer().write(bytes)?;
        self.flush()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.state.wants_write() {
            self.state.write_tls(&mut self.socket)?;
        }
        Ok(())
    }
}

struct Shared {
    state: Mutex<Connection>,
    /// Order of encrypted bytes on the socket: held from taking them out of the state until they are written.
    writing: Mutex<TcpStream>,
    /// The descriptor of `writing`, which another thread may hold for long.
    descriptor: RawFd,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, Connection> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_pending(&self) -> io::Result<()> {
        let mut socket = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut bytes = Vec::new();
            {
                let mut state = self.state();
                while state.wants_write() {
                    state.write_tls(&mut bytes)?;
                }
            }
            if bytes.is_empty() {
                return Ok(());
            }
            socket.write_all(&bytes)?;
        }
    }
}

/// Reads decrypted bytes.
pub struct TlsReadHalf {
    shared: Arc<Shared>,
    socket: TcpStream,
    encrypted: Vec<u8>,
    plain: Vec<u8>,
    /// Bytes of `plain` that were handed out.
    taken: usize,
}

/// Writes bytes to be encrypted.
pub struct TlsWriteHalf {
    shared: Arc<Shared>,
}

pub(crate) fn split(stream: TlsStream) -> io::Result<(TlsReadHalf, TlsWriteHalf)> {
    let read = stream.socket.try_clone()?;
    let descriptor = stream.socket.as_raw_fd();
    let shared = Arc::new(Shared { state: Mutex::new(stream.state), writing: Mutex::new(stream.socket), descriptor });
    Ok((
        TlsReadHalf {
            shared: Arc::clone(&shared),
            socket: read,
            encrypted: vec![0; 64 << 10],
            plain: Vec::new(),
            taken: 0,
        },
        TlsWriteHalf { shared },
    ))
}

impl AsRawFd for TlsReadHalf {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsRawFd for TlsWriteHalf {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.descriptor
    }
}

impl Read for TlsReadHalf {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.plain.len() {
            self.plain.clear();
            self.taken = 0;
            self.drain()?;
            if !self.plain.is_empty() {
                break;
            }
            let count = self.socket.read(&mut self.encrypted)?;
            if count == 0 {
                return Ok(0);
            }
            let mut done = 0;
            while done < count {
                let mut rest = &self.encrypted[done..count];
                let before = rest.len();
                {
                    let mut state = self.shared.state();
                    state.read_tls(&mut rest)?;
                    state.process_new_packets().map_err(io::Error::other)?;
                }
                done += before - rest.len();
                self.drain()?;
            }
        }
        let count = buffer.len().min(self.plain.len() - self.taken);
        buffer[..count].copy_from_slice(&self.plain[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

impl TlsReadHalf {
    /// Decrypted bytes wait to be read.
    pub(crate) fn holds_bytes(&self) -> bool {
        self.taken < self.plain.len()
    }

    /// Takes what is decrypted out of the state, which holds only a little.
    fn drain(&mut self) -> io::Result<()> {
        let mut state = self.shared.state();
        let ready = state.process_new_packets().map_err(io::Error::other)?.plaintext_bytes_to_read();
        let start = self.plain.len();
        self.plain.resize(start + ready, 0);
        state.reader().read_exact(&mut self.plain[start..])
    }
}

impl Write for TlsWriteHalf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(256 << 10)];
        let count = self.shared.state().writer().write(piece)?;
        self.shared.send_pending()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.shared.send_pending()
    }
}

impl TlsWriteHalf {
    pub(crate) fn shutdown(&self) -> io::Result<()> {
        // SAFETY: the socket is open as long as `shared` lives.
        if unsafe { libc::shutdown(self.shared.descriptor, libc::SHUT_RDWR) } == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}
