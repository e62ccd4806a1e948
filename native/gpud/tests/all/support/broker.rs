//! The broker's end of the control channel, moved by hand.  The real broker meets gpud in the end-to-end tests.

use super::{BASE64URL, PATIENCE};
use base64::Engine as _;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};
use sluice_gpud::control::messages::{BrokerMessage, EndMode, GpudMessage, JoinInput};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tungstenite::{Message, WebSocket};

pub const SERVER_ID: &str = "gsv-test";

pub struct Broker {
    listener: TcpListener,
    pub url: String,
    public_key: Vec<u8>,
    channel: Option<WebSocket<TcpStream>>,
    heard: Vec<GpudMessage>,
}

impl Broker {
    pub fn new() -> Broker {
        let listener = TcpListener::bind("127.0.0.1:0").expect("port");
        let url = format!("http://{}", listener.local_addr().expect("address"));
        Broker { listener, url, public_key: Vec::new(), channel: None, heard: Vec::new() }
    }

    /// Answers one join.
    pub fn admit(&mut self, token: &str) {
        let (stream, _) = self.listener.accept().expect("join");
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).expect("request");
        assert!(line.starts_with("POST /v1/gpu-servers/join "), "{line}");
        let mut length = 0;
        loop {
            line.clear();
            reader.read_line(&mut line).expect("header");
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("number");
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("body");
        let input: JoinInput = serde_json::from_slice(&body).expect("join input");
        let (status, answer) = if input.token == token {
            self.public_key = BASE64URL.decode(input.public_key).expect("key");
            ("200 OK", json!({"serverId": SERVER_ID}))
        } else {
            ("403 Forbidden", json!({"error": {"code": "forbidden", "message": "the token was used already"}}))
        };
        let answer = answer.to_string();
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
        reader.get_mut().write_all((head + &answer).as_bytes()).expect("answer");
    }

    /// Whether somebody has called since.
    pub fn called(&self) -> bool {
        self.listener.set_nonblocking(true).expect("mode");
        let called = self.listener.accept().is_ok();
        self.listener.set_nonblocking(false).expect("mode");
        called
    }

    /// Opens the channel: challenge, hello (whose signature is checked), welcome.  Answers the hello.
    pub fn welcome(&mut self, epoch: u64, leases: &[&str]) -> Value {
        self.welcome_after(epoch, leases, || ())
    }

    /// The same; `meanwhile` happens between hello and welcome.
    pub fn welcome_after(&mut self, epoch: u64, leases: &[&str], meanwhile: impl FnOnce()) -> Value {
        let (stream, _) = self.listener.accept().expect("control");
        // The upgrade request is read whole before messages are waited for in short turns.
        let mut channel = tungstenite::accept(stream).unwrap_or_else(|error| panic!("{error}"));
        channel.get_ref().set_read_timeout(Some(Duration::from_millis(20))).expect("timeout");
        let nonce = [7u8; 32];
        let challenge = BrokerMessage::Challenge { nonce: BASE64URL.encode(nonce) };
        channel.send(Message::text(serde_json::to_string(&challenge).expect("JSON"))).expect("sent");
        self.channel = Some(channel);
        let hello = self.hear(|message| matches!(message, GpudMessage::Hello { .. }));
        let hello = serde_json::to_value(hello).expect("JSON");
        let signature = BASE64URL.decode(hello["signature"].as_str().expect("text")).expect("base64url");
        let signed = [b"sluice-control-1".as_slice(), &nonce].concat();
        UnparsedPublicKey::new(&ED25519, &self.public_key).verify(&signed, &signature).expect("gpud's own key");
        meanwhile();
        let leases = leases.iter().map(|lease| (*lease).to_owned()).collect();
        let keys = Default::default();
        self.say(&BrokerMessage::Welcome { server_id: SERVER_ID.to_owned(), epoch, keys, leases });
        hello
    }

    pub fn say(&mut self, message: &BrokerMessage) {
        let text = serde_json::to_string(message).expect("JSON");
        self.channel.as_mut().expect("open").send(Message::text(text)).expect("sent");
    }

    pub fn end_lease(&mut self, lease: &str, mode: EndMode, reason: &str) {
        self.say(&BrokerMessage::EndLease { lease_id: lease.to_owned(), mode, reason: reason.to_owned() });
    }

    /// The first message of this kind, heard already or to come.
    pub fn hear(&mut self, wanted: impl Fn(&GpudMessage) -> bool) -> GpudMessage {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.heard.iter().position(&wanted) {
                return self.heard.remove(at);
            }
            assert!(Instant::now() < deadline, "not heard; instead: {:?}", self.heard);
            match self.channel.as_mut().expect("open").read() {
                Ok(Message::Text(text)) => {
                    self.heard.push(serde_json::from_str(text.as_str()).expect("a message of the contract"));
                }
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}; heard {:?}", self.heard),
            }
        }
    }

    /// The end of a lease: parked bytes.
    pub fn lease_ended(&mut self, lease: &str) -> u64 {
        let message = self.hear(|m| matches!(m, GpudMessage::LeaseEnded { lease_id, .. } if lease_id == lease));
        let GpudMessage::LeaseEnded { parked_bytes, .. } = message else { unreachable!("just matched") };
        parked_bytes
    }

    pub fn hang_up(&mut self) {
        self.channel = None;
    }
}
