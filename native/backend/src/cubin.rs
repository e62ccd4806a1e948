//! What machine code for an NVIDIA GPU says of its kernels: names, parameter layouts, resources. Nothing here runs it.
//!
//! A cubin is an ELF file. A kernel is a section `.text.NAME`; a section `.nv.info.NAME` beside it lists attributes,
//! each { format u8, attribute u8, value u16 or length u16 and so many bytes }.

use crate::types::{FunctionInfo, ModuleInfo};

/// Formats of an attribute: only this one has a length.
const WITH_LENGTH: u8 = 4;
/// One parameter: { index u32, ordinal u16, offset u16, flags u32 with the size from bit 18 on }.
const PARAMETER: u8 = 0x17;
/// Largest block: three words.
const MAX_THREADS: u8 = 0x05;

const DEFAULT_SHARED: u32 = 48 << 10;

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?).try_into().ok()
}

struct Section<'a> {
    name: &'a str,
    info: u32,
    size: usize,
    /// Empty for sections that only take room.
    bytes: &'a [u8],
}

/// Sections of a 64-bit ELF file.
fn sections(image: &[u8]) -> Option<Vec<Section<'_>>> {
    let (table, entry) = (long(image, 40)?, usize::from(half(image, 58)?));
    let (count, names) = (usize::from(half(image, 60)?), usize::from(half(image, 62)?));
    let header = |index: usize| {
        let from = table.checked_add(index.checked_mul(entry)?)?;
        image.get(from..from.checked_add(64)?)
    };
    let contents = |header: &[u8]| {
        let (from, size) = (long(header, 24)?, long(header, 32)?);
        image.get(from..from.checked_add(size)?)
    };
    let names = contents(header(names)?)?;
    let read = |index| {
        let header = header(index)?;
        let name = names.get(word(header, 0)? as usize..)?;
        let name = std::str::from_utf8(name.split(|byte| *byte == 0).next()?).ok()?;
        let takes_room_only = word(header, 4)? == 8;
        let bytes = if takes_room_only { &[][..] } else { contents(header)? };
        Some(Section { name, info: word(header, 44)?, size: long(header, 32)?, bytes })
    };
    (0..count).map(read).collect()
}

/// The attributes of a `.nv.info` section: number and value.
fn attributes(mut rest: &[u8]) -> Vec<(u8, &[u8])> {
    let mut found = Vec::new();
    while let (Some(&[format, attribute]), Some(value)) = (rest.get(..2), half(rest, 2)) {
        let end = if format == WITH_LENGTH { 4 + usize::from(value) } else { 4 };
        let begin = if format == WITH_LENGTH { 4 } else { 2 };
        let Some((this, next)) = rest.split_at_checked(end) else { break };
        found.push((attribute, &this[begin..]));
        rest = next;
    }
    found
}

/// The kernels of a cubin in the order of their sections; None when the file is damaged.
pub fn describe(image: &[u8]) -> Option<ModuleInfo> {
    let all = sections(image)?;
    let named = |prefix: &str, name: &str| all.iter().find(|section| section.name.strip_prefix(prefix) == Some(name));
    let kernel = |text: &Section<'_>| {
        let name = text.name.strip_prefix(".text.")?;
        let (mut params, mut max_threads) = (Vec::new(), 1024);
        for (attribute, value) in attributes(named(".nv.info.", name)?.bytes) {
            match attribute {
                PARAMETER => {
                    let (ordinal, offset, flags) = (half(value, 4)?, half(value, 6)?, word(value, 8)?);
                    params.push((ordinal, (u32::from(offset), flags >> 18)));
                }
                MAX_THREADS => max_threads = (0..3).filter_map(|at| word(value, at * 4)).product(),
                _ => {}
            }
        }
        params.sort_unstable();
        let shared = named(".nv.shared.", name).map_or(0, |section| section.size as u32);
        Some(FunctionInfo {
            name: name.to_owned(),
            params: params.into_iter().map(|(_, place)| place).collect(),
            max_threads_per_block: max_threads,
            static_shared_bytes: shared,
            const_bytes: 0,
            local_bytes: 0,
            registers: text.info >> 24,
            ptx_version: 75,
            binary_version: 75,
            max_dynamic_shared_bytes: DEFAULT_SHARED.saturating_sub(shared),
        })
    };
    Some(ModuleInfo {
        functions: all.iter().filter_map(kernel).collect(),
        globals: Vec::new(),
        ..ModuleInfo::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with these sections: name, kind, info, contents.
    fn elf(sections: &[(&str, u32, u32, &[u8])]) -> Vec<u8> {
        let mut names = vec![0];
        let mut contents = vec![0u8; 64];
        let mut headers = vec![0u8; 64];
        let mut add = |names: &mut Vec<u8>, name: &str, kind: u32, info: u32, bytes: &[u8]| {
            let mut header = [0u8; 64];
            header[0..4].copy_from_slice(&(names.len() as u32).to_le_bytes());
            names.extend(name.bytes().chain([0]));
            let bytes = if name == ".shstrtab" { names.clone() } else { bytes.to_vec() };
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&(contents.len() as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            header[44..48].copy_from_slice(&info.to_le_bytes());
            if kind != 8 {
                contents.extend(&bytes);
            }
            headers.extend(header);
        };
        for (name, kind, info, bytes) in sections {
            add(&mut names, name, *kind, *info, bytes);
        }
        add(&mut names, ".shstrtab", 3, 0, &[]);
        let table = contents.len() as u64;
        contents[..4].copy_from_slice(b"\x7fELF");
        contents[40..48].copy_from_slice(&table.to_le_bytes());
        contents[58..60].copy_from_slice(&64u16.to_le_bytes());
        contents[60..62].copy_from_slice(&(sections.len() as u16 + 2).to_le_bytes());
        contents[62..64].copy_from_slice(&(sections.len() as u16 + 1).to_le_bytes());
        contents.extend(headers);
        contents
    }

    fn parameter(ordinal: u16, offset: u16, bytes: u32) -> Vec<u8> {
        let mut out = vec![WITH_LENGTH, PARAMETER, 12, 0, 0, 0, 0, 0];
        out.extend(ordinal.to_le_bytes());
        out.extend(offset.to_le_bytes());
        out.extend((bytes << 18 | 0x1f000).to_le_bytes());
        out
    }

    #[test]
    fn kernels_and_layouts_are_read() {
        let bound = [WITH_LENGTH, MAX_THREADS, 12, 0, 128, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0];
        let info = [parameter(1, 8, 4), vec![3, 0x1b, 0xff, 0], parameter(0, 0, 8), bound.to_vec()].concat();
        let image = elf(&[
            (".nv.info.add", 0x7000_0000, 0, &info),
            (".text.add", 1, 24 << 24 | 7, &[0; 32]),
            (".text.helper", 1, 0, &[0; 32]),
            (".nv.shared.add", 8, 0, &[0; 1024]),
        ]);
        let module = describe(&image).expect("whole");
        let [add] = &module.functions[..] else { panic!("{module:?}") };
        assert_eq!((add.name.as_str(), &add.params[..]), ("add", &[(0, 8), (8, 4)][..]));
        assert_eq!((add.max_threads_per_block, add.registers, add.static_shared_bytes), (256, 24, 1024));
    }

    #[test]
    fn damage_is_seen() {
        let image = elf(&[(".text.add", 1, 0, &[0; 32])]);
        for length in 0..image.len() {
            assert!(describe(&image[..length]).is_none(), "{length}");
        }
    }
}
