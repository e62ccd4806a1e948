//! What gpud was told when it was started.

use crate::orders::BackendChoice;
use crate::token::Keys;
use sluice_transport::Address;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// See the module; `gpud --help` explains each.
#[derive(Clone, Debug)]
pub struct Config {
    pub state: PathBuf,
    /// `https://…`, or `http://…` on this machine; nothing: clients are admitted by `trusted_keys` alone.
    pub broker: Option<String>,
    /// A file with the token of gpud's account on a cluster.
    pub account: Option<PathBuf>,
    /// Nothing: chosen by where the broker is, see [`crate::listening`].
    pub listen: Option<Address>,
    /// The inherited socket that listens at `listen`; nothing: gpud binds one.
    pub listen_descriptor: Option<RawFd>,
    /// Where clients reach the data plane, if it is not where gpud listens.
    pub advertise: Option<String>,
    pub name: String,
    /// Nothing: a real driver if it reports a device, else the software GPU.
    pub backend: Option<BackendChoice>,
    /// The driver's library: a name that the dynamic linker finds, or a path.
    pub driver: String,
    /// NVIDIA's management library, likewise.
    pub nvml: String,
    /// Environment variables that workers get besides those that say where libraries and devices are.
    pub worker_env: Vec<String>,
    pub soft_devices: u32,
    pub soft_memory: u64,
    /// Most bytes of host memory that parked leases may take.
    pub park_limit: u64,
    /// Most bytes of host memory that images of modules may take which clients have sent.
    pub image_limit: u64,
    /// A folder for a Unix socket that processes of this host can take instead of `listen`.
    pub sockets: Option<PathBuf>,
    /// How long a session waits for a client whose connection was lost.
    pub return_time: Duration,
    /// Whether leases get their shares of a device; without, their work runs as it comes.
    pub arbiter: bool,
    /// Whether devices of one client may reach each other's memory.
    pub peer_memory: bool,
    pub trusted_keys: Keys,
}

/// Reads a token that lies in a file.
pub fn read_token(file: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text.trim().to_owned())
}

/// Reads an amount of bytes: a number, or one with K, M, G or T (powers of 1024).
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let factor: u64 = match unit.to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return Err(format!("{text}: use bytes, or a number with K, M, G or T")),
    };
    let number: u64 = number.parse().map_err(|_| format!("{text}: not an amount of memory"))?;
    number.checked_mul(factor).ok_or_else(|| format!("{text}: too much"))
}

/// Reads where to listen: `HOST:PORT` is TCP on a local address and TLS on any other; `unix:///PATH` is a socket.
pub fn parse_listen(text: &str) -> Result<Address, String> {
    if text.contains("://") {
        return match text.parse()? {
            Address::Tcp(host) if !is_loopback(&host) => {
                Err(format!("{text}: an address that is not local needs tls://"))
            }
            address => Ok(address),
        };
    }
    if !text.contains(':') {
        return Err(format!("{text}: use HOST:PORT"));
    }
    Ok(if is_loopback(text) { Address::Tcp(text.to_owned()) } else { Address::Tls(text.to_owned()) })
}

/// Whether `HOST:PORT` is reachable from this host alone.
pub fn is_loopback(host_port: &str) -> bool {
    let host = host_port.rsplit_once(':').map_or(host_port, |(host, _)| host);
    is_local(host.trim_start_matches('[').trim_end_matches(']'))
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Where a broker is, as [`parse_broker`] read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerAddress {
    pub secure: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// Host and port as they were written.
    pub authority: String,
    /// Empty, or a path that begins with a slash and does not end with one.
    pub path: String,
}

/// Reads a broker's URL: `https://…`, or `http://…` on this machine.
pub fn parse_broker(text: &str) -> Result<BrokerAddress, String> {
    let invalid = || format!("{text}: not a broker's address; use https://HOST or https://HOST:PORT");
    let (secure, rest) = match text.split_once("://").ok_or_else(invalid)? {
        ("https", rest) => (true, rest),
        ("http", rest) => (false, rest),
        _ => return Err(invalid()),
    };
    // What stands before an @ or after one of the others would be read as a host by one reader and not by another.
    if rest.contains(|c: char| matches!(c, '@' | '?' | '#' | '\\') || c.is_whitespace() || c.is_control()) {
        return Err(invalid());
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(invalid)?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(number) => number.parse().map_err(|_| invalid())?,
        None if !port.is_empty() => return Err(invalid()),
        None if secure => 443,
        None => 80,
    };
    if host.is_empty() {
        return Err(invalid());
    }
    if !secure && !is_local(host) {
        return Err(format!("{text}: a broker on another machine is reached with https:// only; use https://{rest}"));
    }
    let path = path.trim_end_matches('/');
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    Ok(BrokerAddress { secure, host: host.to_owned(), port, authority: authority.to_owned(), path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_are_read() {
        assert_eq!(parse_bytes("8G"), Ok(8 << 30));
        assert_eq!(parse_bytes("512MiB"), Ok(512 << 20));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert!(parse_bytes("many").is_err());
        assert!(parse_bytes("99999999T").is_err());
    }

    #[test]
    fn an_address_that_is_not_local_is_never_plain() {
        assert_eq!(parse_listen("127.0.0.1:0"), Ok(Address::Tcp("127.0.0.1:0".to_owned())));
        assert_eq!(parse_listen("[::1]:0"), Ok(Address::Tcp("[::1]:0".to_owned())));
        assert_eq!(parse_listen("0.0.0.0:3010"), Ok(Address::Tls("0.0.0.0:3010".to_owned())));
        assert!(parse_listen("tcp://10.0.0.1:3010").is_err());
    }

    #[test]
    fn a_broker_elsewhere_is_never_spoken_to_in_the_clear() {
        for text in ["http://pool.example", "http://10.0.0.1:3001", "http://[2001:db8::1]:3001", "http://127.0.0.1.x"] {
            let refusal = parse_broker(text).expect_err(text);
            assert!(refusal.contains(&format!("use {}", text.replace("http:", "https:"))), "{refusal}");
        }
        for text in [
            "http://127.0.0.1:1@pool.example",
            "http://localhost#@pool.example",
            "ws://pool.example",
            "pool",
            "http://",
        ] {
            assert!(parse_broker(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_brokers_address_is_read() {
        let parts = |text: &str| parse_broker(text).map(|url| (url.secure, url.host, url.port, url.path));
        let expected = |secure, host: &str, port, path: &str| Ok((secure, host.to_owned(), port, path.to_owned()));
        assert_eq!(parts("https://pool.example"), expected(true, "pool.example", 443, ""));
        assert_eq!(parts("https://pool.example:8443/sluice/"), expected(true, "pool.example", 8443, "/sluice"));
        assert_eq!(parts("http://127.0.0.1:3001"), expected(false, "127.0.0.1", 3001, ""));
        assert_eq!(parts("http://localhost/"), expected(false, "localhost", 80, ""));
        assert_eq!(parts("http://[::1]:3001"), expected(false, "::1", 3001, ""));
        assert_eq!(parts("http://[::1]"), expected(false, "::1", 80, ""));
    }
}
