//! Finds the PTX in what a program hands over: text, or a fat binary as nvcc embeds it.

use crate::error::{CudaError, CudaResult, code};
use sluice_protocol::cuda::PTX_ONLY;
use sluice_protocol::fat_binary::{Entry, Kind, entries, is_fat};
use std::borrow::Cow;

/// The software GPU's compute capability.
const OURS: u32 = 75;

/// The PTX for this device.
pub fn ptx_of(image: &[u8]) -> CudaResult<Cow<'_, [u8]>> {
    if image.starts_with(b"\x7fELF") {
        return Err(machine_code("module"));
    }
    if is_fat(image) { from_fat_binary(image) } else { Ok(Cow::Borrowed(image)) }
}

/// There is nothing that this device could run in what a program handed over.
fn machine_code(what: &str) -> CudaError {
    let text = format!("this {what} holds machine code for NVIDIA GPUs and no PTX; {PTX_ONLY}");
    CudaError::new(code::NO_BINARY_FOR_GPU, text)
}

/// The newest PTX that is not newer than the device, else the oldest.
fn from_fat_binary(image: &[u8]) -> CudaResult<Cow<'_, [u8]>> {
    let broken = || CudaError::new(code::INVALID_IMAGE, "the fat binary is damaged");
    let found = entries(image).ok_or_else(broken)?;
    let ptx = || found.iter().filter(|entry| entry.kind == Kind::Ptx);
    let best = ptx().filter(|entry| entry.arch <= OURS).max_by_key(|entry| entry.arch);
    let best = best.or_else(|| ptx().min_by_key(|entry| entry.arch)).ok_or_else(|| machine_code("fat binary"))?;
    best.unpacked().ok_or_else(broken)
}

/// Everything that can be read in what a program hands over: PTX and machine code, unpacked.
pub fn all_of(image: &[u8]) -> Vec<Cow<'_, [u8]>> {
    if !is_fat(image) {
        return vec![Cow::Borrowed(image)];
    }
    entries(image).unwrap_or_default().iter().filter_map(Entry::unpacked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAT_MAGIC: u32 = 0xba55_ed50;
    const LZ4: u64 = 0x2000;
    const ZSTD: u64 = 0x8000;

    fn fat(entries: &[(u16, u32, u64, &[u8], usize)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, arch, flags, bytes, full) in entries {
            let mut header = [0u8; 64];
            header[0..2].copy_from_slice(&kind.to_le_bytes());
            header[4..8].copy_from_slice(&64u32.to_le_bytes());
            header[8..16].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            header[16..20].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
            header[28..32].copy_from_slice(&arch.to_le_bytes());
            header[40..48].copy_from_slice(&flags.to_le_bytes());
            header[56..64].copy_from_slice(&(*full as u64).to_le_bytes());
            body.extend_from_slice(&header);
            body.extend_from_slice(bytes);
        }
        let mut image = FAT_MAGIC.to_le_bytes().to_vec();
        image.extend_from_slice(&1u16.to_le_bytes());
        image.extend_from_slice(&16u16.to_le_bytes());
        image.extend_from_slice(&(body.len() as u64).to_le_bytes());
        image.extend_from_slice(&body);
        image
    }

    #[test]
    fn the_newest_ptx_that_fits_is_taken() {
        let image =
            fat(&[(2, 75, 0, b"sass", 4), (1, 52, 0, b"old", 3), (1, 75, 0, b"ours", 4), (1, 90, 0, b"new", 3)]);
        assert_eq!(ptx_of(&image).as_deref(), Ok(b"ours".as_slice()));
        let newer = fat(&[(1, 120, 0, b"b", 1), (1, 90, 0, b"a", 1)]);
        assert_eq!(ptx_of(&newer).as_deref(), Ok(b"a".as_slice()));
    }

    #[test]
    fn machine_code_alone_is_refused_with_its_reason() {
        let error = ptx_of(&fat(&[(2, 75, 0, b"sass", 4)])).expect_err("no PTX");
        assert_eq!(error.code, code::NO_BINARY_FOR_GPU);
        assert!(ptx_of(b"\x7fELF...").expect_err("no PTX").text.contains("PTX only"));
    }

    #[test]
    fn zstd_is_unpacked_and_damage_is_seen() {
        let text = ".version 9.0\n.target sm_75\n".repeat(100).into_bytes();
        let packed = ruzstd::encoding::compress_to_vec(text.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        assert!(packed.len() < text.len());
        let image = fat(&[(1, 75, ZSTD, &packed, text.len())]);
        assert_eq!(ptx_of(&image).as_deref(), Ok(text.as_slice()));
        assert!(ptx_of(&fat(&[(1, 75, ZSTD, &packed[..packed.len() / 2], text.len())])).is_err());
        assert!(ptx_of(&fat(&[(1, 75, ZSTD, &packed, text.len() - 1)])).is_err());
        assert!(ptx_of(&fat(&[(1, 75, ZSTD, &packed, usize::MAX)])).is_err());
    }

    #[test]
    fn lz4_is_unpacked_and_damage_is_seen() {
        // "abcabcabcabcX": three literals, a match of nine at offset 3, one literal.
        let packed = [0x35, b'a', b'b', b'c', 3, 0, 0x10, b'X'];
        let image = fat(&[(1, 75, LZ4, &packed, 13)]);
        assert_eq!(ptx_of(&image).as_deref(), Ok(b"abcabcabcabcX".as_slice()));
        assert!(ptx_of(&fat(&[(1, 75, LZ4, &packed[..5], 13)])).is_err());
        assert!(ptx_of(&image[..60]).is_err());
    }
}
