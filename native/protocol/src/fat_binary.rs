//! Fat binaries, as nvcc embeds them: PTX and machine code for several devices, packed or not.

use std::borrow::Cow;
use std::io::Read;

/// First word of a fat binary.
pub const MAGIC: u32 = 0xba55_ed50;
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ptx,
    MachineCode,
}

/// One image of a fat binary.
pub struct Entry<'a> {
    pub kind: Kind,
    /// Compute capability, e.g. 75.
    pub arch: u32,
    /// With its header, as it stands in the fat binary.
    pub whole: &'a [u8],
    flags: u64,
    full_size: usize,
    bytes: &'a [u8],
}

/// Whether these bytes are a fat binary.
pub fn is_fat(image: &[u8]) -> bool {
    word(image, 0) == Some(MAGIC)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Bytes of a fat binary's header, and of the fat binary with it: { magic u32, version u16, header bytes u16, body bytes
/// u64 }.
pub fn extent(image: &[u8]) -> Option<(usize, usize)> {
    let (header, body) = (half(image, 6)? as usize, usize::try_from(long(image, 8)?).ok()?);
    Some((header, header.checked_add(body)?))
}

/// All images; None when the fat binary is damaged.
pub fn entries(image: &[u8]) -> Option<Vec<Entry<'_>>> {
    let (header, end) = extent(image)?;
    let mut rest = image.get(header..end)?;
    let mut found = Vec::new();
    while rest.len() >= 64 {
        let kind = match half(rest, 0)? {
            1 => Some(Kind::Ptx),
            2 => Some(Kind::MachineCode),
            _ => None,
        };
        let (begin, length) = (word(rest, 4)? as usize, long(rest, 8)? as usize);
        let payload = rest.get(begin..begin.checked_add(length)?)?;
        if let Some(kind) = kind {
            let (packed, flags) = (word(rest, 16)? as usize, long(rest, 40)?);
            let compressed = flags & (LZ4 | ZSTD) != 0;
            let bytes = if compressed { payload.get(..packed)? } else { payload };
            let (arch, whole) = (word(rest, 28)?, rest.get(..begin + length)?);
            found.push(Entry { kind, arch, whole, flags, full_size: long(rest, 56)? as usize, bytes });
        }
        rest = rest.get(begin + length..)?;
    }
    Some(found)
}

impl<'a> Entry<'a> {
    /// The image itself; None when it is damaged.
    pub fn unpacked(&self) -> Option<Cow<'a, [u8]>> {
        if self.flags & ZSTD != 0 {
            return unpack_zstd(self.bytes, self.full_size).map(Cow::Owned);
        }
        if self.flags & LZ4 != 0 {
            return unpack_lz4(self.bytes, self.full_size).map(Cow::Owned);
        }
        Some(Cow::Borrowed(self.bytes))
    }
}

/// Most bytes that an image may have when it is unpacked.
const MOST_BYTES: usize = 256 << 20;

/// Unpacks a zstd frame of so many bytes.
fn unpack_zstd(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    if size > MOST_BYTES {
        return None;
    }
    let decoder = ruzstd::decoding::StreamingDecoder::new(packed).ok()?;
    let mut out = Vec::with_capacity(size);
    decoder.take(size as u64 + 1).read_to_end(&mut out).ok()?;
    (out.len() == size).then_some(out)
}

/// Unpacks one LZ4 block (lz4_Block_format.md of the LZ4 project).
fn unpack_lz4(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    if size > MOST_BYTES {
        return None;
    }
    let mut out = Vec::with_capacity(size);
    let mut rest = packed.iter().copied();
    let length = |rest: &mut dyn Iterator<Item = u8>, nibble: u8| {
        let mut total = usize::from(nibble);
        if nibble == 15 {
            loop {
                let more = rest.next()?;
                total = total.checked_add(usize::from(more))?;
                if more != 255 {
                    break;
                }
            }
        }
        Some(total)
    };
    while let Some(token) = rest.next() {
        let literals = length(&mut rest, token >> 4)?;
        let before = out.len();
        out.extend(rest.by_ref().take(literals));
        if out.len() - before < literals || out.len() > size {
            return None;
        }
        let Some(low) = rest.next() else { break };
        let offset = usize::from(u16::from_le_bytes([low, rest.next()?]));
        let matched = length(&mut rest, token & 15)? + 4;
        if offset == 0 || offset > out.len() || matched > size - out.len() {
            return None;
        }
        for _ in 0..matched {
            out.push(*out.get(out.len() - offset)?);
        }
    }
    (out.len() == size).then_some(out)
}
