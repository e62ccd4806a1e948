//! TLS 1.3 with a self-signed certificate that the client pins by its SHA-256; no certificate authority takes part.
//!
//! rustls shakes hands. What follows are our own [`records`], because rustls keeps one state for both directions, which
//! their two threads would wait for, copies every record three times, and cannot hand a connection to another process.

mod records;

use ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, Error, KeyLog, ServerConfig,
    ServerConnection, SignatureScheme,
};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub use records::Keys;
use records::{Opener, Sealer};

/// A server's certificate and key.
pub struct Identity {
    config: ServerConfig,
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
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .map_err(io::Error::other)?;
        // Nobody resumes a session, and a ticket would be a record of which the keys' numbers know nothing.
        config.send_tls13_tickets = 0;
        Ok(Self { config, fingerprint })
    }
}

fn provider() -> Arc<CryptoProvider> {
    // The fastest first. Each is good for what is secret until a program ends.
    let cipher_suites = vec![TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256];
    Arc::new(CryptoProvider { cipher_suites, ..rustls::crypto::ring::default_provider() })
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

/// Takes both directions' first traffic secrets from the handshake.
#[derive(Default)]
struct Secrets {
    client: OnceLock<Vec<u8>>,
    server: OnceLock<Vec<u8>>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secrets")
    }
}

impl Secrets {
    fn place(&self, label: &str) -> Option<&OnceLock<Vec<u8>>> {
        match label {
            "CLIENT_TRAFFIC_SECRET_0" => Some(&self.client),
            "SERVER_TRAFFIC_SECRET_0" => Some(&self.server),
            _ => None,
        }
    }
}

impl KeyLog for Secrets {
    fn will_log(&self, label: &str) -> bool {
        self.place(label).is_some()
    }

    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        if let Some(place) = self.place(label) {
            // There is one handshake, which tells each of them once.
            let _ = place.set(secret.to_vec());
        }
    }
}

/// Reads from a socket until a moment, however slowly the bytes come.
struct Until<'a> {
    socket: &'a TcpStream,
    deadline: Option<Instant>,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.socket.set_read_timeout(Some(left))?;
        }
        self.socket.read(buffer)
    }
}

/// A TLS connection before it is split.
pub struct TlsStream {
    socket: TcpStream,
    /// Longest time of one call that reads, however many records and pieces of them come meanwhile.
    timeout: Option<Duration>,
    opener: Opener,
    sealer: Sealer,
}

impl TlsStream {
    pub(crate) fn connect(socket: TcpStream, fingerprint: &[u8; 32], timeout: Duration) -> io::Result<Self> {
        let provider = provider();
        let verifier = Pinned { fingerprint: *fingerprint, provider: Arc::clone(&provider) };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let secrets = Arc::<Secrets>::default();
        config.key_log = Arc::clone(&secrets) as _;
        let name = ServerName::try_from("gpud").map_err(io::Error::other)?;
        let state = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        Self::shake_hands(socket, Connection::Client(state), &secrets, timeout)
    }

    /// The server's side of a fresh TCP connection.
    pub fn accept(socket: TcpStream, identity: &Identity, timeout: Duration) -> io::Result<Self> {
        let secrets = Arc::<Secrets>::default();
        let mut config = identity.config.clone();
        config.key_log = Arc::clone(&secrets) as _;
        let state = ServerConnection::new(Arc::new(config)).map_err(io::Error::other)?;
        Self::shake_hands(socket, Connection::Server(state), &secrets, timeout)
    }

    fn shake_hands(
        mut socket: TcpStream,
        mut state: Connection,
        secrets: &Secrets,
        timeout: Duration,
    ) -> io::Result<Self> {
        let deadline = Some(Instant::now() + timeout);
        socket.set_write_timeout(Some(timeout))?;
        send(&mut state, &mut socket)?;
        while state.is_handshaking() {
            let outcome = take_record(&mut state, &mut Until { socket: &socket, deadline });
            // What is wrong is told to the other end, too.
            send(&mut state, &mut socket)?;
            outcome?;
        }
        let suite = state.negotiated_cipher_suite().map(|suite| u16::from(suite.suite()));
        let (Some(suite), Some(client), Some(server)) = (suite, secrets.client.get(), secrets.server.get()) else {
            return Err(io::Error::other("the TLS handshake left no keys"));
        };
        let (reading, writing) =
            if matches!(state, Connection::Client(_)) { (server, client) } else { (client, server) };
        let keys = Keys::fresh(suite, reading.clone(), writing.clone());
        let mut stream = Self::take_up(socket, keys)?;
        stream.set_timeout(None)?;
        Ok(stream)
    }

    /// Goes on with a connection that [`TlsStream::hand_over`] gave away.
    pub(crate) fn take_up(socket: TcpStream, keys: Keys) -> io::Result<Self> {
        let (opener, sealer) = records::take_up(keys)?;
        Ok(Self { socket, timeout: None, opener, sealer })
    }

    pub(crate) fn holds_bytes(&self) -> bool {
        self.opener.holds_bytes()
    }

    /// The connection for another process, when it holds no bytes.
    pub(crate) fn hand_over(self) -> io::Result<(OwnedFd, Keys)> {
        Ok((self.socket.into(), records::hand_over(self.opener, self.sealer)?))
    }

    pub(crate) fn split(self) -> io::Result<(TlsReadHalf, TlsWriteHalf)> {
        let Self { socket, mut opener, sealer, .. } = self;
        opener.read_ahead();
        Ok((TlsReadHalf { socket: socket.try_clone()?, opener }, TlsWriteHalf { socket, sealer }))
    }

    pub(crate) fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.timeout = timeout;
        self.socket.set_read_timeout(timeout)?;
        self.socket.set_write_timeout(timeout)
    }
}

fn send(state: &mut Connection, socket: &mut TcpStream) -> io::Result<()> {
    while state.wants_write() {
        state.write_tls(socket)?;
    }
    Ok(())
}

/// Reads one record of the handshake and nothing behind it.
fn take_record(state: &mut Connection, socket: &mut Until<'_>) -> io::Result<()> {
    let mut header = [0; records::HEADER_BYTES];
    socket.read_exact(&mut header)?;
    // rustls says what is wrong with a header before it waits for what it announces.
    feed(state, &header)?;
    let mut body = vec![0; records::length_of(header)];
    socket.read_exact(&mut body)?;
    feed(state, &body)
}

fn feed(state: &mut Connection, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        state.read_tls(&mut bytes)?;
        state.process_new_packets().map_err(io::Error::other)?;
    }
    Ok(())
}

impl AsRawFd for TlsStream {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        self.opener.read(&mut Until { socket: &self.socket, deadline }, buffer)
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sealer.write(&mut self.socket, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads decrypted bytes.
pub struct TlsReadHalf {
    socket: TcpStream,
    opener: Opener,
}

/// Writes bytes to be encrypted.
pub struct TlsWriteHalf {
    socket: TcpStream,
    sealer: Sealer,
}

impl AsRawFd for TlsReadHalf {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsRawFd for TlsWriteHalf {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Read for TlsReadHalf {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.opener.read(&mut self.socket, buffer)
    }
}

impl TlsReadHalf {
    /// Bytes wait to be read that the socket does not show any more.
    pub(crate) fn holds_bytes(&self) -> bool {
        self.opener.holds_bytes()
    }
}

impl Write for TlsWriteHalf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sealer.write(&mut self.socket, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsWriteHalf {
    pub(crate) fn shutdown(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Both)
    }
}
