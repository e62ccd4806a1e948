//! Who is let in, and what happens to those who are not.

use crate::support::broker::Broker;
use crate::support::{BASE64URL, Client, Gpud, HelloError, PATIENCE, hello, key, now, range, sign, sign_with, unique};
use base64::Engine as _;
use serde_json::{Value, json};
use sluice_protocol::frame::{Header, put_frame};
use sluice_protocol::handshake::{Hello, RefusedCode, Resume};
use sluice_protocol::messages::Goodbye;
use sluice_protocol::opcode;
use sluice_transport::{Address, Stream, read_handshake, write_handshake};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn refusal(gpud: &Gpud, seed: u8, token: &str) -> RefusedCode {
    match hello(&gpud.address, &key(seed), token, vec![range()], None) {
        Err(HelloError::Refused(refused)) => {
            assert!(!refused.text.is_empty());
            refused.code
        }
        other => panic!("not refused: {:?}", other.map(|(_, welcome)| welcome)),
    }
}

fn claims(gpud: &Gpud, change: impl Fn(&mut Value)) -> Value {
    let mut claims = gpud.claims(&key(9), "lea-1", 64 * MIB);
    change(&mut claims);
    claims
}

#[test]
fn a_stolen_token_is_of_no_use() {
    let gpud = Gpud::start(&[]);
    let token = sign(&claims(&gpud, |_| {}));
    assert_eq!(refusal(&gpud, 8, &token), RefusedCode::Credential);
    // Its owner is still let in, and the thief still is not.
    let mut owner = Client::connect(&gpud.address, key(9), token.clone()).expect("welcome");
    assert_eq!(refusal(&gpud, 8, &token), RefusedCode::Credential);
    owner.alloc(MIB).expect("undisturbed");
}

#[test]
fn tokens_that_do_not_hold_are_refused() {
    let gpud = Gpud::start(&[]);
    let credential = [
        claims(&gpud, |c| c["exp"] = json!(now() - 1)),
        claims(&gpud, |c| c["iat"] = json!(now() + 3600)),
        claims(&gpud, |c| c["aud"] = json!("gpud:another")),
        claims(&gpud, |c| c["iss"] = json!("somebody")),
        claims(&gpud, |c| c["lease"]["memoryBytes"] = json!(-1)),
        claims(&gpud, |c| c["cnf"] = json!({})),
    ];
    for claims in credential {
        assert_eq!(refusal(&gpud, 9, &sign(&claims)), RefusedCode::Credential, "{claims}");
    }
    assert_eq!(refusal(&gpud, 9, &sign_with(2, &claims(&gpud, |_| {}))), RefusedCode::Credential);
    assert_eq!(refusal(&gpud, 9, "nonsense"), RefusedCode::Credential);
    let over = claims(&gpud, |c| c["lease"]["expiresAt"] = json!(now() - 1));
    assert_eq!(refusal(&gpud, 9, &sign(&over)), RefusedCode::Lease);
    let elsewhere = claims(&gpud, |c| c["lease"]["deviceUuid"] = json!("GPU-elsewhere"));
    assert_eq!(refusal(&gpud, 9, &sign(&elsewhere)), RefusedCode::Unavailable);
}

#[test]
fn an_unknown_key_is_unavailable_until_the_broker_tells_its_keys() {
    let mut broker = Broker::new();
    let gpud = Gpud::join(&mut broker, &[]);
    let signed = sign(&claims(&gpud, |_| {}));
    let (_, rest) = signed.split_once('.').expect("three parts");
    let newer = format!("{}.{rest}", BASE64URL.encode(r#"{"alg":"EdDSA","kid":"k2","typ":"JWT"}"#));
    assert_eq!(refusal(&gpud, 9, &newer), RefusedCode::Unavailable);
    let until = |code: RefusedCode| {
        let deadline = Instant::now() + PATIENCE;
        while refusal(&gpud, 9, &newer) != code {
            assert!(Instant::now() < deadline, "not {code:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    broker.welcome(1, &[]);
    until(RefusedCode::Credential);
    // While the channel is away, the broker may sign with another key.
    broker.hang_up();
    until(RefusedCode::Unavailable);
}

#[test]
fn a_session_is_taken_up_only_by_its_own_key() {
    let gpud = Gpud::start(&[]);
    let mut owner = gpud.connect("lea-1", 64 * MIB);
    let resume = || Some(Resume { session_id: owner.welcome.session_id.clone(), received: 0 });
    // The thief has the broker sign a token for the same session id with a key of its own.
    let mut stolen = gpud.claims(&key(8), "lea-1", 64 * MIB);
    stolen["sid"] = json!(owner.welcome.session_id);
    let Err(HelloError::Refused(refused)) = hello(&gpud.address, &key(8), &sign(&stolen), vec![], resume()) else {
        panic!("not refused")
    };
    assert_eq!(refused.code, RefusedCode::Credential);
    let unknown = Some(Resume { session_id: "gws-unknown".to_owned(), received: 0 });
    let token = sign(&gpud.claims(&key(8), "lea-1", 64 * MIB));
    let Err(HelloError::Refused(refused)) = hello(&gpud.address, &key(8), &token, vec![], unknown) else {
        panic!("not refused")
    };
    assert_eq!(refused.code, RefusedCode::Gone);
    owner.alloc(MIB).expect("undisturbed");
}

fn of_another_version() -> Hello {
    Hello {
        version: [99, 0],
        features: vec![],
        token: String::new(),
        signature: String::new(),
        ranges: vec![],
        resume: None,
        lane: None,
        pid: 0,
    }
}

#[test]
fn another_major_version_is_told_which_one_is_spoken() {
    let gpud = Gpud::start(&[]);
    let mut stream = gpud.open();
    read_handshake(&mut stream).expect("challenge");
    write_handshake(&mut stream, &of_another_version()).expect("sent");
    let frame = read_handshake(&mut stream).expect("answer");
    assert_eq!(frame.header.opcode, opcode::REFUSED);
    assert!(String::from_utf8_lossy(&frame.payload).contains("version"));
}

#[test]
fn an_encrypted_connection_begins_with_a_hello_alone() {
    let gpud = Gpud::start(&["--listen", "tls://127.0.0.1:0"]);
    let connect = || {
        let mut stream = gpud.open();
        read_handshake(&mut stream).expect("challenge");
        stream
    };
    let mut hello = Vec::new();
    write_handshake(&mut hello, &of_another_version()).expect("written");
    let mut alone = connect();
    alone.write_all(&hello).expect("sent");
    assert_eq!(read_handshake(&mut alone).expect("answer").header.opcode, opcode::REFUSED);
    // What the same record holds behind it would be lost to the worker.
    let mut longer = connect();
    longer.write_all(&[&hello[..], &[0; 10]].concat()).expect("sent");
    assert!(read_handshake(&mut longer).is_err());
}

/// Dripping byte by byte, a TLS handshake or a hello's record takes no longer than a hello may.
#[test]
fn whoever_says_a_byte_now_and_then_is_not_waited_for_longer_with_tls() {
    let gpud = Gpud::start(&["--listen", "tls://127.0.0.1:0"]);
    let Address::Tls(address) = &gpud.address else { panic!("TLS") };
    let mut opened = gpud.open();
    read_handshake(&mut opened).expect("challenge");
    let within_hello = TcpStream::from(opened.into_parts().expect("comes apart").0);
    let within_handshake = TcpStream::connect(address).expect("connected");
    let drips =
        [(within_hello, [23, 3, 3, 0x40, 0]), (within_handshake, [22, 3, 1, 0x40, 0])].map(|(mut line, header)| {
            std::thread::spawn(move || {
                let began = Instant::now();
                line.write_all(&header).expect("sent");
                while line.write_all(&[1]).is_ok() && began.elapsed() < PATIENCE {
                    std::thread::sleep(Duration::from_millis(200));
                }
                began.elapsed()
            })
        });
    for drip in drips {
        assert!(drip.join().expect("ended") < Duration::from_secs(15));
    }
}

#[test]
fn five_hundred_that_say_nothing_stop_nobody() {
    let gpud = Gpud::start(&[]);
    let mut silent: Vec<Stream> = (0..500).map(|_| gpud.open()).collect();
    let began = Instant::now();
    gpud.connect("lea-1", 64 * MIB).alloc(MIB).expect("served");
    assert!(began.elapsed() < Duration::from_secs(5), "served after {:?}", began.elapsed());
    // The oldest have given way.
    assert!(silent.iter_mut().take(300).all(|stream| ends(stream, Duration::from_secs(5))));
}

/// A TCP connection to gpud from another address of this host.
fn open_from(gpud: &Gpud, from: [u8; 4]) -> Stream {
    let Address::Tcp(address) = &gpud.address else { panic!("TCP") };
    let to: std::net::SocketAddrV4 = address.parse().expect("an address");
    let name = |ip: [u8; 4], port: u16| libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(ip) },
        sin_zero: [0; 8],
    };
    let (from, to) = (name(from, 0), name(to.ip().octets(), to.port()));
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: two live addresses of the length given; the descriptor is nobody else's.
    unsafe {
        let socket = OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0));
        assert_eq!(libc::bind(socket.as_raw_fd(), (&raw const from).cast(), length), 0);
        assert_eq!(libc::connect(socket.as_raw_fd(), (&raw const to).cast(), length), 0);
        Stream::from_parts(socket, None).expect("TCP")
    }
}

/// A client on a slow line is in the middle of its hello while a stranger opens connections without end.
#[test]
fn a_flood_from_one_address_closes_no_hello_of_another() {
    let gpud = Gpud::start(&[]);
    let slow = open_from(&gpud, [127, 0, 0, 2]);
    let mut flood: Vec<Stream> = (0..200).map(|_| gpud.open()).collect();
    assert!(flood.iter_mut().take(60).all(|stream| ends(stream, Duration::from_secs(5))));
    let client = key(9);
    let token = sign(&gpud.claims(&client, "lea-1", 64 * MIB));
    let mut client = Client::connect_on(slow, client, token).expect("still open");
    client.alloc(MIB).expect("served");
}

/// Whether gpud ends the connection within a time.
fn ends(stream: &mut Stream, within: Duration) -> bool {
    let began = Instant::now();
    stream.set_timeout(Some(within)).expect("timeout");
    let mut sink = vec![0; 4096];
    loop {
        match stream.read(&mut sink) {
            Ok(0) => return began.elapsed() < within,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// The numbers that stand before these words in a log.
fn numbers_before(log: &str, words: &str) -> Vec<usize> {
    let told = log.lines().filter_map(|line| line.split_once(words)?.0.rsplit(' ').next()?.parse().ok());
    told.collect()
}

#[test]
fn a_burst_of_bad_connections_is_told_in_a_few_lines() {
    const BURST: usize = 300;
    let path = std::env::temp_dir().join(format!("gpud-burst-{}.log", std::process::id()));
    let gpud = Gpud::start_logging(std::fs::File::create(&path).expect("log"), &[]);
    for _ in 0..BURST {
        let mut stream = gpud.open();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: nobody-here\r\n\r\n").expect("sent");
        assert!(ends(&mut stream, PATIENCE));
    }
    let began = Instant::now();
    loop {
        let log = std::fs::read_to_string(&path).expect("log");
        let told = log.lines().filter(|line| line.contains("a connection was not admitted: ")).count();
        let counted = numbers_before(&log, " more connections were not admitted in the last ");
        assert!(told <= 20, "at most two intervals: {log}");
        if told + counted.iter().sum::<usize>() == BURST {
            assert!(log.contains(" not understood"), "{log}");
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{told} and {counted:?} are not all: {log}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = std::fs::remove_file(path);
}

/// Of a device with 512 places, a lease of 5 percent has 25.
#[test]
fn a_lease_takes_no_place_of_another() {
    let gpud = Gpud::start(&[]);
    let connect = |lease: &str| {
        let client = key(unique() as u8 | 0x80);
        let mut claims = gpud.claims(&client, lease, 64 * MIB);
        claims["lease"]["milli"] = json!(50);
        Client::connect(&gpud.address, client, sign(&claims))
    };
    let mut clients = Vec::new();
    let refused = loop {
        match connect("lea-1") {
            Ok(client) => clients.push(client),
            Err(HelloError::Refused(refused)) => break refused,
            Err(error) => panic!("{error:?}"),
        }
        assert!(clients.len() < 60, "one lease has {} processes", clients.len());
    };
    assert_eq!((clients.len(), refused.code), (25, RefusedCode::Unavailable));
    assert!(refused.text.contains("your lease has 25 client processes already"), "{}", refused.text);
    connect("lea-2").expect("a place of its own").alloc(MIB).expect("served");
    // A process that ends gives its place up.
    clients.pop().expect("one").send(&Goodbye);
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = connect("lea-1") {
        assert!(Instant::now() < deadline, "the place is not free: {error:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn random_bytes_end_only_their_own_connection() {
    let gpud = Gpud::start(&[]);
    let mut good = gpud.connect("lea-1", 64 * MIB);
    let mut state = 1u64;
    for round in 0..20 {
        let mut stream = gpud.open();
        let noise: Vec<u8> = (0..200 + round * 50)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 56) as u8
            })
            .collect();
        let _ = stream.write_all(&noise);
        if let Stream::Tcp(socket) = &stream {
            let _ = socket.shutdown(std::net::Shutdown::Write);
        }
        assert!(ends(&mut stream, PATIENCE));
    }
    good.alloc(MIB).expect("undisturbed");
}

#[test]
fn an_unknown_operation_or_half_a_frame_ends_only_its_session() {
    let gpud = Gpud::start(&[]);
    let mut good = gpud.connect("lea-1", 64 * MIB);
    for (code, payload) in [(9_999, vec![]), (256, vec![1, 2, 3]), (259, vec![0xff; 20])] {
        let mut bad = gpud.connect("lea-1", 64 * MIB);
        let mut bytes = Vec::new();
        put_frame(&mut bytes, Header { opcode: code, seq: 1, ..Header::default() }, |out| out.extend(&payload));
        bad.stream.write_all(&bytes).expect("sent");
        assert!(ends(&mut bad.stream, PATIENCE), "opcode {code}");
    }
    let mut long = gpud.connect("lea-1", 64 * MIB);
    long.stream.write_all(&Header { len: u32::MAX, opcode: 256, seq: 1, ..Header::default() }.encode()).expect("sent");
    assert!(ends(&mut long.stream, PATIENCE));
    good.alloc(MIB).expect("undisturbed");
}

#[test]
fn whoever_says_nothing_is_not_waited_for() {
    let gpud = Gpud::start(&[]);
    let mut silent: Vec<Stream> = (0..8).map(|_| gpud.open()).collect();
    let mut half = gpud.open();
    half.write_all(&Header { len: 100, opcode: opcode::HELLO, ..Header::default() }.encode()[..10]).expect("sent");
    let slow = gpud.open();
    let Stream::Tcp(socket) = &slow else { panic!("TCP") };
    let mut drip = socket.try_clone().expect("clone");
    let dripping = std::thread::spawn(move || {
        let began = Instant::now();
        drip.write_all(&Header { len: 100_000, opcode: opcode::HELLO, ..Header::default() }.encode()).expect("sent");
        while drip.write_all(&[0]).is_ok() && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(200));
        }
        began.elapsed()
    });
    // Meanwhile others are served.
    gpud.connect("lea-1", 64 * MIB).alloc(MIB).expect("served");
    assert!(ends(&mut half, Duration::from_secs(15)));
    assert!(silent.iter_mut().all(|stream| ends(stream, Duration::from_secs(15))));
    assert!(dripping.join().expect("ended") < Duration::from_secs(15));
}
