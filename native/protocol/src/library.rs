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
        ];
        let mut bytes = Vec::new();
        all.iter().for_each(|argument| argument.put(&mut bytes));
        assert_eq!(take_arguments(&bytes), Ok(all.to_vec()));
        assert!(take_arguments(&bytes[..bytes.len() - 1]).is_err());
        assert!(take_arguments(&[10, 0]).is_err());
        let mut greedy = Vec::new();
        Argument::Out(u32::MAX).put(&mut greedy);
        assert!(take_arguments(&greedy).is_err());
        assert!(take_arguments(&[0; 9 * (MOST_ARGUMENTS + 1)]).is_err());
    }
}
