//! Values on the wire: little-endian, no padding, lengths as u32.

use thiserror::Error;

/// What a frame's payload can be wrong in.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    #[error("the message ends {missing} bytes too early")]
    Short { missing: usize },
    #[error("text is not UTF-8")]
    Text,
    #[error("{left} bytes follow the message")]
    Trailing { left: usize },
    #[error("opcode {0} is not known")]
    Opcode(u16),
    #[error("kind {0} of a value is not known")]
    Tag(u8),
    #[error("frame of {0} bytes is longer than allowed")]
    TooLong(u64),
    #[error("handshake message: {0}")]
    Json(String),
}

/// Reads values from a payload, front to back.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front of `payload`.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        if self.rest.len() < n {
            return Err(DecodeError::Short { missing: n - self.rest.len() });
        }
        let (head, rest) = self.rest.split_at(n);
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut value = [0; N];
        value.copy_from_slice(self.bytes(N)?);
        Ok(value)
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Fails when something is left over.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::Trailing { left: self.rest.len() }) }
    }
}

/// A value that can be written to and read from a payload.
pub trait Wire<'a>: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes the value from the front.
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl<'a> Wire<'a> for $number {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                Ok(<$number>::from_le_bytes(reader.array()?))
            }
        }
    )* };
}
numbers!(u8, u16, u32, u64, i32, i64, f32);

impl<'a, const N: usize> Wire<'a> for [u8; N] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.array()
    }
}

impl<'a> Wire<'a> for [u32; 3] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.put(out));
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok([u32::take(reader)?, u32::take(reader)?, u32::take(reader)?])
    }
}

impl<'a> Wire<'a> for &'a [u8] {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        out.extend_from_slice(self);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let length = u32::take(reader)? as usize;
        reader.bytes(length)
    }
}

impl<'a> Wire<'a> for &'a str {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_bytes().put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        std::str::from_utf8(<&[u8]>::take(reader)?).map_err(|_| DecodeError::Text)
    }
}

impl<'a> Wire<'a> for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        <&str>::take(reader).map(str::to_owned)
    }
}

/// Raw bytes of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blob(pub Vec<u8>);

impl<'a> Wire<'a> for Blob {
    fn put(&self, out: &mut Vec<u8>) {
        (self.0.len() as u32).put(out);
        out.extend_from_slice(&self.0);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self(<&[u8]>::take(reader)?.to_vec()))
    }
}

impl<'a, T: Wire<'a>> Wire<'a> for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(self, out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        take_list(reader)
    }
}

/// Writes a list with its length.
pub fn put_list<'a, T: Wire<'a>>(list: &[T], out: &mut Vec<u8>) {
    (list.len() as u32).put(out);
    list.iter().for_each(|item| item.put(out));
}

/// Reads a list; its length is checked against what is there, so that a false one reserves nothing.
pub fn take_list<'a, T: Wire<'a>>(reader: &mut Reader<'a>) -> Result<Vec<T>, DecodeError> {
    let count = u32::take(reader)? as usize;
    if count > reader.rest().len() {
        return Err(DecodeError::Short { missing: count - reader.rest().len() });
    }
    (0..count).map(|_| T::take(reader)).collect()
}
