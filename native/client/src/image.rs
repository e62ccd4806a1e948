//! Module images: how long one is, and what PTX text says about its kernels.

use crate::{fat_binary, process};
use sluice_protocol::{FunctionInfo, ModuleInfo, ParameterInfo};

pub(crate) const ELF: [u8; 4] = [0x7f, b'E', b'L', b'F'];
const FATBIN_WRAPPER: u32 = 0x466243b1;
const FATBIN: u32 = sluice_protocol::fat_binary::MAGIC;

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(offset..offset + 2)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
}

/// Copies the image that a program points at: PTX text up to its NUL, a cubin (ELF), or of a fat binary what
/// this process's device can use.
///
/// # Safety
/// `image` points at one of these, whole.
pub unsafe fn copy(image: *const u8) -> Option<Vec<u8>> {
    // SAFETY: every image is at least four bytes long (a magic number, or text with its NUL behind it; shorter text
    // is read byte by byte below and is no valid PTX).
    let magic = unsafe { std::slice::from_raw_parts(image, 4) };
    if magic == ELF {
        // SAFETY: an ELF file starts with a header of 64 bytes.
        let header = unsafe { std::slice::from_raw_parts(image, 64) };
        let length = elf_length(header)?;
        // SAFETY: the header names the tables' ends; the image is whole.
        return Some(unsafe { std::slice::from_raw_parts(image, length) }.to_vec());
    }
    match u32::from_le_bytes([magic[0], magic[1], magic[2], magic[3]]) {
        FATBIN_WRAPPER => {
            // SAFETY: the wrapper is { magic u32, version u32, data pointer, … }.
            let data = unsafe { image.add(8).cast::<*const u8>().read_unaligned() };
            // SAFETY: the wrapper points at a fat binary.
            unsafe { copy(data) }
        }
        FATBIN => {
            // SAFETY: a fat binary starts with { magic u32, version u16, header size u16, size u64 }.
            let header = unsafe { std::slice::from_raw_parts(image, 16) };
            let length = usize::from(u16_at(header, 6)?) + usize::try_from(u64_at(header, 8)?).ok()?;
            // SAFETY: the header names the length; the image is whole.
            let whole = unsafe { std::slice::from_raw_parts(image, length) };
            Some(fat_binary::for_device(whole, process::get().profile()))
        }
        _ => {
            // SAFETY: anything else is text that ends with NUL.
            Some(unsafe { std::ffi::CStr::from_ptr(image.cast()) }.to_bytes().to_vec())
        }
    }
}

fn elf_length(header: &[u8]) -> Option<usize> {
    let program = u64_at(header, 32)? + u64::from(u16_at(header, 54)?) * u64::from(u16_at(header, 56)?);
    let sections = u64_at(header, 40)? + u64::from(u16_at(header, 58)?) * u64::from(u16_at(header, 60)?);
    usize::try_from(program.max(sections)).ok()
}

/// Whether the image is PTX text.
pub fn is_ptx(image: &[u8]) -> bool {
    image.get(..4) != Some(&ELF) && !matches!(u32_at(image, 0), Some(FATBIN | FATBIN_WRAPPER))
}

/// Kernels and parameter layouts of PTX text, for questions that come before it is loaded at gpud. Attributes are a
/// lower bound (gpud knows better); None when the image is binary.
pub fn describe_ptx(image: &[u8]) -> Option<ModuleInfo> {
    if !is_ptx(image) {
        return None;
    }
    let text = std::str::from_utf8(image).ok()?;
    let mut functions = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(".entry") {
        rest = &rest[at + ".entry".len()..];
        let Some(name) = rest.split_whitespace().next() else { break };
        let name = name.split('(').next().unwrap_or(name).trim_end_matches('{').to_owned();
        let open = rest.find('(');
        let body = rest.find('{').unwrap_or(rest.len());
        let parameters = match open {
            Some(open) if open < body => {
                let close = rest[open..].find(')').map_or(rest.len(), |close| open + close);
                parameters(&rest[open + 1..close])
            }
            _ => Vec::new(),
        };
        functions.push(FunctionInfo {
            name,
            parameters,
            attributes: vec![
                (0, 1024),
                (1, 0),
                (2, 0),
                (3, 0),
                (4, 32),
                (5, 75),
                (6, 75),
                (7, 0),
                (8, 48 << 10),
                (9, -1),
            ],
        });
    }
    Some(ModuleInfo { functions, globals: Vec::new(), heap: 0 })
}

fn parameters(list: &str) -> Vec<ParameterInfo> {
    let mut offset = 0u32;
    list.split(',')
        .filter(|declaration| declaration.contains(".param"))
        .map(|declaration| {
            let (mut bytes, mut align) = (0u32, 0u32);
            let mut words = declaration.split_whitespace();
            while let Some(word) = words.next() {
                match word {
                    ".align" => align = words.next().and_then(|number| number.parse().ok()).unwrap_or(1),
                    ".b8" | ".u8" | ".s8" => bytes = 1,
                    ".b16" | ".u16" | ".s16" | ".f16" => bytes = 2,
                    ".b32" | ".u32" | ".s32" | ".f32" => bytes = 4,
                    ".b64" | ".u64" | ".s64" | ".f64" => bytes = 8,
                    _ => {
                        if let Some((_, count)) = word.split_once('[') {
                            bytes *= count.trim_end_matches(']').parse::<u32>().unwrap_or(1);
                        }
                    }
                }
                if align == 0 {
                    align = bytes;
                }
            }
            offset = offset.next_multiple_of(align.max(1));
            let parameter = ParameterInfo { offset, bytes };
            offset += bytes;
            parameter
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".version 8.0\n.target sm_75\n.address_size 64\n\
        .visible .entry add(\n .param .u64 a,\n .param .align 4 .b8 b[12],\n .param .f64 c\n)\n{\n ret;\n}\n\
        .entry nothing()\n{ ret; }\n";

    #[test]
    fn kernels_and_layouts_are_read_from_ptx() {
        let info = describe_ptx(PTX.as_bytes()).expect("is PTX");
        assert_eq!(info.functions[0].name, "add");
        let layout: Vec<(u32, u32)> = info.functions[0].parameters.iter().map(|p| (p.offset, p.bytes)).collect();
        assert_eq!(layout, [(0, 8), (8, 12), (24, 8)]);
        assert_eq!(info.functions[1].name, "nothing");
        assert!(info.functions[1].parameters.is_empty());
    }

    #[test]
    fn text_is_copied_up_to_its_nul() {
        let bytes = b".version 8.0\0rubbish";
        // SAFETY: text with a NUL.
        assert_eq!(unsafe { copy(bytes.as_ptr()) }.as_deref(), Some(&b".version 8.0"[..]));
    }
}
