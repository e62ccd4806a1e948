//! Frames on a byte stream.

use sluice_protocol::frame::{Frame, HEADER_BYTES, Header, MAX_FRAME_BYTES, MAX_HANDSHAKE_BYTES, put_frame};
use sluice_protocol::handshake::Handshake;
use std::io::{self, Read, Write};

/// Reads frames through one buffer: many small frames by one system call, large payloads straight into place.
pub struct FrameReader<R> {
    source: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

const BUFFER_BYTES: usize = 256 << 10;

impl<R: Read> FrameReader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self { source, buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    /// What it reads from.
    pub fn source(&self) -> &R {
        &self.source
    }

    /// True when a whole further frame is already here: a reader may put off its acknowledgement until it is false.
    pub fn has_frame(&self) -> bool {
        let ready = &self.buffer[self.start..self.end];
        match ready.first_chunk::<HEADER_BYTES>() {
            Some(bytes) => Header::decode(bytes, MAX_FRAME_BYTES)
                .is_ok_and(|header| ready.len() >= HEADER_BYTES + header.len as usize),
            None => false,
        }
    }

    /// The next frame; None at the orderly end of the stream.
    #[allow(clippy::should_implement_trait, reason = "it fails, and ends by None inside Ok")]
    pub fn next(&mut self) -> io::Result<Option<Frame>> {
        let mut payload = Vec::new();
        Ok(self.next_into(&mut payload)?.map(|header| Frame { header, payload }))
    }

    /// As [`FrameReader::next`], with the payload in the caller's buffer.
    pub fn next_into(&mut self, payload: &mut Vec<u8>) -> io::Result<Option<Header>> {
        if !self.fill(HEADER_BYTES)? {
            return Ok(None);
        }
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(&self.buffer[self.start..self.start + HEADER_BYTES]);
        self.start += HEADER_BYTES;
        let header = Header::decode(&bytes, MAX_FRAME_BYTES).map_err(invalid)?;
        let length = header.len as usize;
        payload.clear();
        let ready = length.min(self.end - self.start);
        payload.extend_from_slice(&self.buffer[self.start..self.start + ready]);
        self.start += ready;
        if ready < length {
            let missing = length - ready;
            if missing < BUFFER_BYTES / 2 {
                if !self.fill(missing)? {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                payload.extend_from_slice(&self.buffer[self.start..self.start + missing]);
                self.start += missing;
            } else {
                let got = (&mut self.source).take(missing as u64).read_to_end(payload)?;
                if got < missing {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        Ok(Some(header))
    }

    /// Has at least `count` bytes in the buffer; false when the stream ended before the first of them.
    fn fill(&mut self, count: usize) -> io::Result<bool> {
        if self.end - self.start >= count {
            return Ok(true);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        while self.end < count {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) if self.end == 0 => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => self.end += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Reads one handshake frame, byte for byte: nothing behind it is taken from the stream, which may then be handed to
/// another process. Returns its header and payload.
pub fn read_handshake(stream: &mut impl Read) -> io::Result<Frame> {
    let mut bytes = [0; HEADER_BYTES];
    stream.read_exact(&mut bytes)?;
    let header = Header::decode(&bytes, MAX_HANDSHAKE_BYTES).map_err(invalid)?;
    let mut payload = vec![0; header.len as usize];
    stream.read_exact(&mut payload)?;
    Ok(Frame { header, payload })
}

/// Writes one handshake frame.
pub fn write_handshake<M: Handshake>(stream: &mut impl Write, message: &M) -> io::Result<()> {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, Header { opcode: M::OPCODE, ..Header::default() }, |out| {
        out.extend_from_slice(&message.encode());
    });
    stream.write_all(&bytes)?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(sizes: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (index, size) in sizes.iter().enumerate() {
            let header = Header { opcode: 256, seq: index as u64 + 1, ..Header::default() };
            put_frame(&mut bytes, header, |out| out.resize(out.len() + size, index as u8));
        }
        bytes
    }

    #[test]
    fn frames_of_all_sizes_come_out_as_they_went_in() {
        let sizes = [0, 5, 100_000, 3, 1 << 20, 200_000, 0];
        let bytes = frames(&sizes);
        let mut reader = FrameReader::new(&bytes[..]);
        for (index, size) in sizes.iter().enumerate() {
            let frame = reader.next().expect("readable").expect("a frame");
            assert_eq!(frame.header.seq, index as u64 + 1);
            assert_eq!(frame.payload, vec![index as u8; *size]);
        }
        assert!(reader.next().expect("readable").is_none());
    }

    #[test]
    fn a_stream_cut_inside_a_frame_is_an_error() {
        let bytes = frames(&[10]);
        let mut reader = FrameReader::new(&bytes[..bytes.len() - 1]);
        assert!(reader.next().is_err());
    }
}
