//! Each kind of connection carries bulk data both ways at once.

use rustls::crypto::ring::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned, SupportedCipherSuite};
use sluice_transport::tls::Identity;
use sluice_transport::{Address, Listener, Stream};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
/// More than the buffers of a connection hold, both ways.
const BYTES: usize = 64 << 20;

/// Sends bytes to a server that sends back what it reads, and reads them while they are sent. The reader begins when the
/// writer has filled all buffers: neither then gets on unless the other does.
fn echo_at_once(address: &Address, identity: Option<Arc<Identity>>, pin: Option<[u8; 32]>) {
    let listener = Listener::bind(address, identity).expect("listens");
    let address = listener.address().expect("has an address");
    let server = std::thread::spawn(move || {
        let stream = listener.accept().expect("accepts").open(TIMEOUT).expect("opens");
        let (mut read, mut write) = stream.split().expect("splits");
        let mut buffer = vec![0; 64 << 10];
        let mut total = 0;
        while total < BYTES {
            let count = read.read(&mut buffer).expect("reads");
            assert_ne!(count, 0, "the stream ended early");
            write.write_all(&buffer[..count]).expect("writes");
            write.flush().expect("flushes");
            total += count;
        }
    });
    let stream = Stream::connect(&address, pin.as_ref(), TIMEOUT).expect("connects");
    let (mut read, mut write) = stream.split().expect("splits");
    let sent: Vec<u8> = (0..BYTES).map(|index| (index * 7 + index / 251) as u8).collect();
    let copy = sent.clone();
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let writer = std::thread::spawn(move || {
        for piece in copy.chunks(64 << 10) {
            write.write_all(piece).expect("writes");
            write.flush().expect("flushes");
            count.fetch_add(piece.len(), Relaxed);
        }
    });
    wait_until_still(&written);
    let (done, finished) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut received = vec![0; BYTES];
        read.read_exact(&mut received).expect("reads");
        done.send(received).expect("the test waits");
    });
    let received = finished.recv_timeout(TIMEOUT).expect("reads all while it is written");
    assert!(received == sent, "bytes changed on the way");
    for thread in [reader, writer, server] {
        thread.join().expect("ends");
    }
}

fn wait_until_still(count: &AtomicUsize) {
    let mut before = usize::MAX;
    while count.load(Relaxed) != before {
        before = count.load(Relaxed);
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn tcp() {
    echo_at_once(&Address::Tcp("127.0.0.1:0".into()), None, None);
}

#[test]
fn unix() {
    let path = std::env::temp_dir().join(format!("sluice-transport-{}.sock", std::process::id()));
    echo_at_once(&Address::Unix(path.clone()), None, None);
    std::fs::remove_file(path).expect("removes its socket");
}

#[test]
fn tls_with_the_right_pin() {
    let (identity, pem) = Identity::generate("gpud").expect("makes a certificate");
    let pin = identity.fingerprint;
    assert_eq!(Identity::from_pem(&pem).expect("reads its own PEM").fingerprint, pin);
    echo_at_once(&Address::Tls("127.0.0.1:0".into()), Some(Arc::new(identity)), Some(pin));
}

#[test]
fn tls_with_another_pin_is_refused() {
    let (identity, _) = Identity::generate("gpud").expect("makes a certificate");
    let listener = Listener::bind(&Address::Tls("127.0.0.1:0".into()), Some(Arc::new(identity))).expect("listens");
    let address = listener.address().expect("has an address");
    let server = std::thread::spawn(move || listener.accept().expect("accepts").open(TIMEOUT).is_err());
    assert!(Stream::connect(&address, Some(&[7; 32]), TIMEOUT).is_err());
    assert!(server.join().expect("server"), "the server saw no refusal");
}

type Made<T> = Result<T, rustls::Error>;

fn provider_of(suite: SupportedCipherSuite) -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { cipher_suites: vec![suite], ..ring::default_provider() })
}

/// A server of rustls alone, which gives back what it reads and asks for new keys again and again.
fn rustls_echoes(mut peer: StreamOwned<ServerConnection, TcpStream>) {
    let mut buffer = vec![0; 100_000];
    for round in 0.. {
        // Our end closes without saying so: a session's own goodbye says it.
        let Ok(count @ 1..) = peer.read(&mut buffer) else { return };
        if round % 3 == 0 {
            peer.conn.refresh_traffic_keys().expect("asks for new keys");
        }
        peer.write_all(&buffer[..count]).expect("writes");
    }
}

/// Our records are the standard's: rustls reads and writes them, with each cipher suite, and with tickets and updates of
/// the keys between them.
#[test]
fn a_server_of_rustls_is_understood() -> Made<()> {
    for suite in [TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256] {
        let (identity, pem) = Identity::generate("gpud").expect("makes a certificate");
        let config = ServerConfig::builder_with_provider(provider_of(suite))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")],
                PrivateKeyDer::from_pem_slice(pem.as_bytes()).expect("a key"),
            )?;
        let state = ServerConnection::new(Arc::new(config))?;
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let address = Address::Tls(listener.local_addr().expect("has an address").to_string());
        let server = std::thread::spawn(move || {
            rustls_echoes(StreamOwned::new(state, listener.accept().expect("accepts").0));
        });
        let mut stream = Stream::connect(&address, Some(&identity.fingerprint), TIMEOUT).expect("connects");
        let ask = |write: &mut dyn Write, read: &mut dyn Read, round: usize| {
            let sent: Vec<u8> = (0..round * 3001).map(|at| (at * 7 + round) as u8).collect();
            write.write_all(&sent).expect("writes");
            let mut back = vec![0; sent.len()];
            read.read_exact(&mut back).expect("reads");
            assert!(back == sent, "round {round} of {suite:?}");
        };
        // Before it is split, and after.
        stream.write_all(b"hello").expect("writes");
        let mut hello = [0; 5];
        stream.read_exact(&mut hello).expect("reads");
        assert_eq!(hello, *b"hello");
        let (mut read, mut write) = stream.split().expect("splits");
        (1..40).for_each(|round| ask(&mut write, &mut read, round));
        write.shutdown();
        server.join().expect("server");
    }
    Ok(())
}

/// A server hands a connection to another process in the middle: its client, of rustls alone, does not notice.
#[test]
fn a_client_of_rustls_is_understood_and_handed_over() {
    for suite in [TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256] {
        let (identity, pem) = Identity::generate("gpud").expect("makes a certificate");
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")).expect("a root");
        let listener = Listener::bind(&Address::Tls("127.0.0.1:0".into()), Some(Arc::new(identity))).expect("listens");
        let Address::Tls(address) = listener.address().expect("has an address") else { panic!("not TLS") };
        let client = std::thread::spawn(move || {
            let config = ClientConfig::builder_with_provider(provider_of(suite))
                .with_protocol_versions(&[&rustls::version::TLS13])
                .expect("TLS 1.3")
                .with_root_certificates(roots)
                .with_no_client_auth();
            let name = ServerName::try_from("gpud").expect("a name");
            let state = ClientConnection::new(Arc::new(config), name).expect("a client");
            let mut peer = StreamOwned::new(state, TcpStream::connect(address).expect("connects"));
            for round in 1..20 {
                peer.write_all(&vec![round; 1 << round.min(17)]).expect("writes");
                if round % 3 == 0 {
                    peer.conn.refresh_traffic_keys().expect("asks for new keys");
                }
                let mut answer = vec![0; 1 << round.min(17)];
                peer.read_exact(&mut answer).expect("reads");
                assert!(answer.iter().all(|byte| *byte == round + 1));
            }
        });
        let mut stream = listener.accept().expect("accepts").open(TIMEOUT).expect("opens");
        for round in 1..20u8 {
            let mut bytes = vec![0; 1 << round.min(17)];
            stream.read_exact(&mut bytes).expect("reads");
            assert!(bytes.iter().all(|byte| *byte == round), "round {round} of {suite:?}");
            // The client's first new keys are in use by then.
            if round == 6 {
                let (socket, keys) = stream.into_parts().expect("comes apart");
                assert!(keys.is_some());
                stream = Stream::from_parts(socket, keys).expect("is put together");
            }
            bytes.fill(round + 1);
            stream.write_all(&bytes).expect("writes");
        }
        client.join().expect("client");
    }
}

/// How many descriptors of this process are the same socket.
fn descriptors_of(descriptor: RawFd) -> usize {
    let target = |path: PathBuf| std::fs::read_link(path).ok();
    let wanted = target(format!("/proc/self/fd/{descriptor}").into());
    assert!(wanted.is_some(), "the descriptor is open");
    let open = std::fs::read_dir("/proc/self/fd").expect("Linux").flatten();
    open.filter(|entry| target(entry.path()) == wanted).count()
}

/// A forked child closes the descriptors that the halves and the closer name: there are no others.
#[test]
fn every_descriptor_of_a_connection_can_be_named() {
    let local = "127.0.0.1:0".to_owned();
    for address in [Address::Tcp(local.clone()), Address::Tls(local)] {
        let (made, _) = Identity::generate("gpud").expect("makes a certificate");
        let pin = made.fingerprint;
        let listener = Listener::bind(&address, Some(Arc::new(made))).expect("listens");
        let address = listener.address().expect("has an address");
        let server = std::thread::spawn(move || listener.accept().expect("accepts").open(TIMEOUT).expect("opens"));
        let stream = Stream::connect(&address, Some(&pin), TIMEOUT).expect("connects");
        let served = server.join().expect("server");
        let (read, write) = stream.split().expect("splits");
        let closer = write.closer().expect("a closer");
        let named = [read.as_raw_fd(), write.as_raw_fd(), closer.as_raw_fd()];
        assert!(named[0] != named[1] && named[1] != named[2] && named[0] != named[2]);
        assert_eq!(descriptors_of(named[0]), named.len(), "{address}");
        write.shutdown();
        drop((read, write, closer, served));
    }
}
