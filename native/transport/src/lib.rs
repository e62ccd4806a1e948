//! Byte streams between a client and gpud: TCP (Nagle off), Unix sockets, Unix sockets with shared memory, TLS 1.3 with a
//! pinned certificate; and framed reading and writing on them, and bulk data over several at once.

pub mod address;
pub mod authorities;
pub mod framed;
pub mod lanes;
pub mod listener;
pub mod peer;
pub mod shared;
pub mod silence;
pub mod spin;
pub mod stream;
pub mod tls;
pub mod unix_http;
pub mod variables;

pub use address::Address;
pub use framed::{FrameReader, read_handshake, write_handshake};
pub use lanes::Lanes;
pub use listener::Listener;
pub use peer::{Peer, PeerProcess};
pub use spin::Spin;
pub use stream::{ReadHalf, Stream, WriteHalf};
