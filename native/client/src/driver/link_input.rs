//! What a program gives the linker, taken apart: PTX, machine code, fat binaries, object files of the host with device
//! code in them, and archives of such. Pure.
//!
//! An object file is ELF with fat binaries in the section `.nv_fatbin`, or in `__nv_relfatbin` when its device code is to
//! be linked (`nvcc -dc`); an archive is `ar`'s, in the ways of GNU and of BSD.

use crate::error::{CudaError, CudaResult};
use crate::fat_binary::{for_device, ptx_for_device};
use crate::image::{ELF, is_ptx, u16_at, u32_at, u64_at};
use crate::profile::Profile;
use sluice_protocol::cuda;
use sluice_protocol::fat_binary::{extent, is_fat};

/// CUjitInputType
const PTX: u32 = 1;
const OBJECT: u32 = 3;
const LIBRARY: u32 = 4;
/// `e_machine` of a cubin.
const EM_CUDA: u16 = 190;
const ARCHIVE: &[u8] = b"!<arch>\n";
/// Sections of an object file that hold device code, and whether that is complete in itself.
const SECTIONS: [(&[u8], bool); 2] = [(b".nv_fatbin", true), (b"__nv_relfatbin", false)];

/// One piece of device code.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// PTX, for this device to compile; None where there is machine code alone.
    pub ptx: Option<Vec<u8>>,
    /// What can be loaded as it is, by itself; None for code that is yet to be linked.
    pub image: Option<Vec<u8>>,
    /// Of an archive: taken when it is needed.
    pub spare: bool,
    /// As a person knows it.
    pub name: String,
}

fn bad(code: u32, text: String) -> CudaError {
    CudaError::new(code, text)
}

/// The device code in an input of a kind of CUjitInputType.
pub fn take_apart(kind: u32, data: &[u8], name: &str, profile: &Profile) -> CudaResult<Vec<Part>> {
    let parts = match kind {
        // CU_JIT_INPUT_CUBIN, _PTX and _FATBINARY name what the image says itself.
        0..=2 => vec![image(data, name, profile, kind == PTX)?],
        OBJECT => object(data, name, profile)?,
        LIBRARY => {
            let mut parts = Vec::new();
            let members = members(data);
            let broken = || bad(cuda::ERROR_INVALID_IMAGE, format!("{name} is no archive of object files (.a)"));
            for (member, data) in members.ok_or_else(broken)? {
                // Nothing of CUDA's device runtime (libcudadevrt.a) is needed: who loads the result brings its own.
                if member == "cuda_device_runtime.o" {
                    continue;
                }
                let found = object(data, &format!("{name}({member})"), profile)?;
                parts.extend(found.into_iter().map(|part| Part { spare: true, ..part }));
            }
            return Ok(parts);
        }
        _ => {
            let text = "this kind of linker input is not served; hand over PTX, an object file or a library";
            return Err(bad(cuda::ERROR_NOT_SUPPORTED, text.to_owned()));
        }
    };
    if parts.is_empty() {
        return Err(bad(cuda::ERROR_NO_BINARY_FOR_GPU, format!("{name} has no code for a GPU in it")));
    }
    Ok(parts)
}

/// A single image: text, a cubin or a fat binary.
fn image(data: &[u8], name: &str, profile: &Profile, text: bool) -> CudaResult<Part> {
    let name = name.to_owned();
    if is_fat(data) {
        let (ptx, image) = (ptx_for_device(data, profile), Some(for_device(data, profile)));
        return Ok(Part { ptx, image, spare: false, name });
    }
    if is_ptx(data) && (text || data.windows(8).any(|word| word == b".version")) {
        let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
        return Ok(Part { ptx: Some(data[..end].to_vec()), image: None, spare: false, name });
    }
    Ok(Part { ptx: None, image: Some(data.to_vec()), spare: false, name })
}

/// The device code of an object file; one of the host alone has none.
fn object(data: &[u8], name: &str, profile: &Profile) -> CudaResult<Vec<Part>> {
    let broken = || bad(cuda::ERROR_INVALID_IMAGE, format!("{name} is no object file, or a damaged one"));
    if data.get(..4) != Some(&ELF) {
        return Err(broken());
    }
    if u16_at(data, 18) == Some(EM_CUDA) {
        return Ok(vec![image(data, name, profile, false)?]);
    }
    let mut parts = Vec::new();
    for (complete, mut section) in sections(data).ok_or_else(broken)? {
        while is_fat(section) {
            let (_, end) = extent(section).ok_or_else(broken)?;
            let part = image(section.get(..end).ok_or_else(broken)?, name, profile, false)?;
            parts.push(Part { image: part.image.filter(|_| complete), ..part });
            // Each begins at a multiple of eight.
            section = section.get(end.next_multiple_of(8)..).unwrap_or_default();
        }
    }
    Ok(parts)
}

/// The sections of [`SECTIONS`]: whether their code is complete, and what is in them. None when the file is damaged.
fn sections(data: &[u8]) -> Option<Vec<(bool, &[u8])>> {
    // 64-bit, little-endian
    if data.get(4..6)? != [2, 1] {
        return None;
    }
    let (table, size) = (usize::try_from(u64_at(data, 40)?).ok()?, usize::from(u16_at(data, 58)?));
    let header = |index: usize| data.get(table.checked_add(index.checked_mul(size)?)?..)?.get(..64);
    let (count, names) = match (u16_at(data, 60)?, u16_at(data, 62)?) {
        // Where these do not fit into their fields, they stand in the first section's header.
        (0, _) if table != 0 => (u64_at(header(0)?, 32)? as usize, u32_at(header(0)?, 40)? as usize),
        (count, 0xffff) => (usize::from(count), u32_at(header(0)?, 40)? as usize),
        (count, names) => (usize::from(count), usize::from(names)),
    };
    let content = |header: &[u8]| {
        let (offset, bytes) = (usize::try_from(u64_at(header, 24)?).ok()?, usize::try_from(u64_at(header, 32)?).ok()?);
        data.get(offset..offset.checked_add(bytes)?)
    };
    let names = if count == 0 { &[][..] } else { content(header(names)?)? };
    let mut found = Vec::new();
    for index in 0..count {
        let header = header(index)?;
        let name = names.get(u32_at(header, 0)? as usize..)?;
        let name = &name[..name.iter().position(|byte| *byte == 0).unwrap_or(name.len())];
        if let Some((_, complete)) = SECTIONS.iter().find(|(section, _)| *section == name) {
            found.push((*complete, content(header)?));
        }
    }
    Some(found)
}

/// Names and contents of an archive's members; None when it is none, or damaged.
fn members(data: &[u8]) -> Option<Vec<(String, &[u8])>> {
    let mut rest = data.strip_prefix(ARCHIVE)?;
    let (mut found, mut long_names) = (Vec::new(), &[][..]);
    while !rest.is_empty() {
        let header = rest.get(..60)?;
        let text = |range: std::ops::Range<usize>| std::str::from_utf8(&header[range]).map(str::trim_end).ok();
        let (name, bytes) = (text(0..16)?, text(48..58)?.parse::<usize>().ok()?);
        if &header[58..] != b"`\n" {
            return None;
        }
        let content = rest.get(60..60usize.checked_add(bytes)?)?;
        let until = |bytes: &[u8], ends: &[u8]| {
            let end = bytes.iter().position(|byte| ends.contains(byte)).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        match name {
            // Indices of symbols.
            "/" | "/SYM64/" | "__.SYMDEF" | "__.SYMDEF SORTED" => {}
            "//" => long_names = content,
            _ if name.starts_with("#1/") => {
                let length: usize = name[3..].parse().ok()?;
                let (name, content) = content.split_at_checked(length)?;
                let name = until(name, b"\0");
                if !name.starts_with("__.SYMDEF") {
                    found.push((name, content));
                }
            }
            _ => {
                let name = match name.strip_prefix('/').map(str::parse::<usize>) {
                    Some(Ok(at)) => until(long_names.get(at..)?, b"/\n"),
                    _ => name.trim_end_matches('/').to_owned(),
                };
                found.push((name, content));
            }
        }
        // Each begins at an even place.
        rest = rest.get(60 + bytes.next_multiple_of(2)..).unwrap_or_default();
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b".version 8.0\n.target sm_75\n.visible .func f() { ret; }\n";

    fn profile(gpu_type: &str) -> Profile {
        let mut profile = Profile { gpu_type: gpu_type.into(), device: Default::default(), ..Profile::load() };
        profile.device.compute_capability_major = 7;
        profile.device.compute_capability_minor = 5;
        profile
    }

    /// A fat binary: (kind, architecture, what is in it).
    fn fat(entries: &[(u16, u32, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, arch, bytes) in entries {
            let mut header = [0; 64];
            header[..2].copy_from_slice(&kind.to_le_bytes());
            header[4..8].copy_from_slice(&64u32.to_le_bytes());
            header[8..16].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            header[28..32].copy_from_slice(&arch.to_le_bytes());
            body.extend(header);
            body.extend(*bytes);
        }
        let mut image = 0xba55_ed50u32.to_le_bytes().to_vec();
        image.extend([1, 0, 16, 0]);
        image.extend((body.len() as u64).to_le_bytes());
        image.extend(body);
        image
    }

    /// An object file with these sections.
    fn elf(sections: &[(&str, &[u8])]) -> Vec<u8> {
        let mut names = vec![0u8];
        let (mut contents, mut headers) = (Vec::new(), vec![0u8; 64]);
        let mut header = |name: usize, at: usize, bytes: usize| {
            let mut header = [0; 64];
            header[..4].copy_from_slice(&(name as u32).to_le_bytes());
            header[24..32].copy_from_slice(&(64 + at as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(bytes as u64).to_le_bytes());
            headers.extend(header);
        };
        for (name, content) in sections {
            header(names.len(), contents.len(), content.len());
            names.extend(name.as_bytes());
            names.push(0);
            contents.extend(*content);
        }
        header(0, contents.len(), names.len());
        contents.extend(names);
        let mut file = [0; 64];
        file[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        file[18..20].copy_from_slice(&62u16.to_le_bytes());
        file[40..48].copy_from_slice(&(64 + contents.len() as u64).to_le_bytes());
        file[58..60].copy_from_slice(&64u16.to_le_bytes());
        file[60..62].copy_from_slice(&(sections.len() as u16 + 2).to_le_bytes());
        file[62..64].copy_from_slice(&(sections.len() as u16 + 1).to_le_bytes());
        [&file[..], &contents, &headers].concat()
    }

    fn member(name: &str, content: &[u8]) -> Vec<u8> {
        let mut member = format!("{name:<16}{:<32}{:<10}`\n", "", content.len()).into_bytes();
        member.extend(content);
        member.resize(member.len().next_multiple_of(2), b'\n');
        member
    }

    #[test]
    fn code_that_is_to_be_linked_is_its_ptx_and_complete_code_can_be_loaded_as_well() {
        let (card, both) = (profile("t4"), fat(&[(2, 75, b"machine code"), (1, 75, TEXT)]));
        let two = [&both[..], &vec![0; both.len().next_multiple_of(8) - both.len()], &fat(&[(1, 70, TEXT)])].concat();
        let file = elf(&[(".text", b"of the host"), ("__nv_relfatbin", &two), (".nv_fatbin", &both)]);
        let parts = take_apart(OBJECT, &file, "a.o", &card).expect("parts");
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|part| part.ptx.as_deref() == Some(TEXT) && part.name == "a.o" && !part.spare));
        assert_eq!(parts.iter().map(|part| part.image.is_some()).collect::<Vec<_>>(), [false, false, true]);
        let alone = fat(&[(2, 75, b"machine code")]);
        let parts = take_apart(OBJECT, &elf(&[("__nv_relfatbin", &alone)]), "b.o", &card).expect("parts");
        assert_eq!((parts[0].ptx.as_ref(), parts[0].image.as_ref()), (None, None));
    }

    #[test]
    fn members_of_an_archive_are_spare_and_the_device_runtime_is_left_out() {
        let file = elf(&[("__nv_relfatbin", &fat(&[(1, 75, TEXT)]))]);
        let archive = [
            ARCHIVE.to_vec(),
            member("/", b"index"),
            member("//", b"a_name_that_is_long.o/\ncuda_device_runtime.o/\n"),
            member("/0", &file),
            member("host.o/", &elf(&[(".text", b"of the host")])),
            member("/23", b"whatever"),
            member("#1/8", &[b"other.o\0", &file[..]].concat()),
        ]
        .concat();
        let parts = take_apart(LIBRARY, &archive, "lib.a", &profile("soft")).expect("parts");
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["lib.a(a_name_that_is_long.o)", "lib.a(other.o)"]);
        assert!(parts.iter().all(|part| part.spare && part.ptx.as_deref() == Some(TEXT)));
    }

    #[test]
    fn what_is_no_device_code_is_refused_by_its_name() {
        let soft = profile("soft");
        let host = take_apart(OBJECT, &elf(&[(".text", b"of the host")]), "host.o", &soft).unwrap_err();
        assert_eq!(host.code, cuda::ERROR_NO_BINARY_FOR_GPU);
        assert!(host.text.is_some_and(|text| text.contains("host.o")));
        for (kind, data) in [(OBJECT, &b"rubbish"[..]), (LIBRARY, b"rubbish"), (OBJECT, &elf(&[])[..80])] {
            assert_eq!(take_apart(kind, data, "x", &soft).unwrap_err().code, cuda::ERROR_INVALID_IMAGE);
        }
        assert_eq!(take_apart(5, b"BC", "x", &soft).unwrap_err().code, cuda::ERROR_NOT_SUPPORTED);
    }

    #[test]
    fn every_way_to_cut_or_change_an_object_file_ends() {
        let file = elf(&[("__nv_relfatbin", &fat(&[(1, 75, TEXT)]))]);
        let archive = [ARCHIVE.to_vec(), member("a.o/", &file), member("b.o/", &file)].concat();
        let soft = profile("soft");
        for (kind, data) in [(OBJECT, file), (LIBRARY, archive)] {
            for at in 0..data.len() {
                let _ = take_apart(kind, &data[..at], "cut", &soft);
                let mut changed = data.clone();
                changed[at] = 0xff;
                let _ = take_apart(kind, &changed, "changed", &soft);
            }
        }
    }
}
