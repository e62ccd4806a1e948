//! `tcp://HOST:PORT`, `tls://HOST:PORT`, `unix:///PATH`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where gpud listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(String),
    Tls(String),
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(host) = text.strip_prefix("tcp://") {
            Ok(Self::Tcp(host.to_owned()))
        } else if let Some(host) = text.strip_prefix("tls://") {
            Ok(Self::Tls(host.to_owned()))
        } else if let Some(path) = text.strip_prefix("unix://") {
            Ok(Self::Unix(PathBuf::from(path)))
        } else {
            Err(format!("{text}: an address starts with tcp://, tls:// or unix://"))
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host) => write!(f, "tcp://{host}"),
            Self::Tls(host) => write!(f, "tls://{host}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_they_are_written() {
        for text in ["tcp://127.0.0.1:3010", "tls://gpu-1:3010", "unix:///run/gpud.sock"] {
            assert_eq!(text.parse::<Address>().expect(text).to_string(), text);
        }
        assert!("http://x".parse::<Address>().is_err());
    }
}
