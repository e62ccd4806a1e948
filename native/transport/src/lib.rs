//! Byte streams between a client and gpud: TCP (Nagle off), Unix sockets, TLS 1.3 with a pinned certificate; and
//! framed reading and writing on them.

pub mod address;
pub mod framed;
pub mod listener;
pub mod stream;
pub mod tls;

pub use address::Address;
pub use framed::{FrameReader, read_handshake, write_handshake};
pub use listener::Listener;
pub use stream::{ReadHalf, Stream, WriteHalf};
