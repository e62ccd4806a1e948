//! Arguments of library calls. Each names its kind, so that a server can pass them on to a function of which it knows
//! only the name: one byte of kind, then the value.

use crate::wire::{DecodeError, Reader, Wire};

/// Most arguments that a function has.
pub const MOST_ARGUMENTS: usize = 40;

/// One argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument<'a> {
    /// A number of up to 64 bits, a device address, or a null pointer.
    Word(u64),
    /// A floating-point number that is passed by value: its bits.
    F32(u32),
    F64(u64),
    /// A stream's handle.
    Stream(u64),
    /// An object or description by the number that the client gave it.
    Object(u64),
    /// A pointer to where the new object of this number is to be put.
    New(u64),
    /// An object that ends with this call.
    End(u64),
    /// A pointer to host memory with these contents.
    In(&'a [u8]),
    /// A pointer to host memory of so many bytes, whose contents the client wants afterwards.
    Out(u32),
    /// Both.
    InOut(&'a [u8]),
    /// A pointer to host memory with the objects of these numbers (64 bits each), 0 for none.
    Objects(&'a [u8]),
    /// A pointer to host memory with these addresses (64 bits each), which stays as long as the object of the call. The
    /// second names those of them that are of host memory, [`HOST_RECORD`] bytes each: place and contents.
    Addresses(&'a [u8], &'a [u8]),
    /// A structure that is passed by value.
    Block(&'a [u8]),
    /// The calls of a group, each a function's number and its arguments: the only argument of the call that closes it.
    Calls(&'a [u8]),
}

/// One call of a group.
pub fn put_call(function: u32, arguments: &[u8], out: &mut Vec<u8>) {
    function.put(out);
    arguments.put(out);
}

/// The calls of a group.
pub fn take_calls(bytes: &[u8]) -> Result<Vec<(u32, &[u8])>, DecodeError> {
    let (mut reader, mut calls) = (Reader::new(bytes), Vec::new());
    while !reader.rest().is_empty() {
        calls.push((u32::take(&mut reader)?, <&[u8]>::take(&mut reader)?));
    }
    Ok(calls)
}

/// Contents of host memory behind an address: one number of up to 128 bits.
pub const HOST_BYTES: usize = 16;

/// A place in an array of addresses, and the contents.
pub const HOST_RECORD: usize = 8 + HOST_BYTES;

/// The 64-bit numbers of an array.
pub fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

impl Argument<'_> {
    /// Bytes that the client wants back.
    pub fn output_bytes(&self) -> usize {
        match self {
            Self::Out(bytes) => *bytes as usize,
            Self::InOut(data) => data.len(),
            _ => 0,
        }
    }
}

impl<'a> Wire<'a> for Argument<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        let mut tagged = |tag: u8, value: u64| {
            out.push(tag);
            value.put(out);
        };
        match *self {
            Self::Word(value) => tagged(0, value),
            Self::Stream(value) => tagged(1, value),
            Self::Object(value) => tagged(2, value),
            Self::New(value) => tagged(3, value),
            Self::End(value) => tagged(4, value),
            Self::F64(value) => tagged(5, value),
            Self::F32(value) => {
                out.push(6);
                value.put(out);
            }
            Self::Out(bytes) => {
                out.push(7);
                bytes.put(out);
            }
            Self::In(data) => {
                out.push(8);
                data.put(out);
            }
            Self::InOut(data) => {
                out.push(9);
                data.put(out);
            }
            Self::Objects(numbers) => {
                out.push(10);
                numbers.put(out);
            }
            Self::Addresses(addresses, hosts) => {
                out.push(11);
                addresses.put(out);
                hosts.put(out);
            }
            Self::Block(data) => {
                out.push(12);
                data.put(out);
            }
            Self::Calls(calls) => {
                out.push(13);
                calls.put(out);
            }
        }
    }

    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match u8::take(reader)? {
            0 => Self::Word(u64::take(reader)?),
            1 => Self::Stream(u64::take(reader)?),
            2 => Self::Object(u64::take(reader)?),
            3 => Self::New(u64::take(reader)?),
            4 => Self::End(u64::take(reader)?),
            5 => Self::F64(u64::take(reader)?),
            6 => Self::F32(u32::take(reader)?),
            7 => Self::Out(u32::take(reader)?),
            8 => Self::In(<&[u8]>::take(reader)?),
            9 => Self::InOut(<&[u8]>::take(reader)?),
            10 => Self::Objects(<&[u8]>::take(reader)?),
            11 => Self::Addresses(<&[u8]>::take(reader)?, <&[u8]>::take(reader)?),
            12 => Self::Block(<&[u8]>::take(reader)?),
            13 => Self::Calls(<&[u8]>::take(reader)?),
            _ => return Err(DecodeError::Text),
        })
    }
}

/// Largest sum of a call's outputs.
pub const MOST_OUTPUT: u64 = 16 << 20;

/// Reads all arguments of a call; one that asks for more than [`MOST_OUTPUT`] or has too many is refused.
pub fn take_arguments(bytes: &[u8]) -> Result<Vec<Argument<'_>>, DecodeError> {
    let (mut reader, mut all, mut outputs) = (Reader::new(bytes), Vec::new(), 0);
    while !reader.rest().is_empty() {
        let argument = Argument::take(&mut reader)?;
        outputs += argument.output_bytes() as u64;
        all.push(argument);
        if all.len() > MOST_ARGUMENTS || outputs > MOST_OUTPUT {
            return Err(DecodeError::TooLong(outputs));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_back_as_they_were_and_excess_is_refused() {
        let all = [
            Argument::Word(7),
            Argument::F32(1.5f32.to_bits()),
            Argument::F64(2.5f64.to_bits()),
            Argument::Stream(1),
            Argument::Object(2),
            Argument::New(3),
            Argument::End(4),
            Argument::In(b"abc"),
            Argument::Out(9),
            Argument::InOut(b""),
            Argument::Objects(&[7; 16]),
            Argument::Addresses(&[8; 8], &[0; HOST_RECORD]),
            Argument::Block(&[9; 128]),
            Argument::Calls(b"calls"),
        ];
        let mut bytes = Vec::new();
        all.iter().for_each(|argument| argument.put(&mut bytes));
        assert_eq!(take_arguments(&bytes), Ok(all.to_vec()));
        assert!(take_arguments(&bytes[..bytes.len() - 1]).is_err());
        assert!(take_arguments(&[14, 0]).is_err());
        let mut group = Vec::new();
        put_call(7, b"one", &mut group);
        put_call(8, b"", &mut group);
        assert_eq!(take_calls(&group), Ok(vec![(7, &b"one"[..]), (8, b"")]));
        assert!(take_calls(&group[..group.len() - 1]).is_err());
        let mut greedy = Vec::new();
        Argument::Out(u32::MAX).put(&mut greedy);
        assert!(take_arguments(&greedy).is_err());
        assert!(take_arguments(&[0; 9 * (MOST_ARGUMENTS + 1)]).is_err());
    }
}
