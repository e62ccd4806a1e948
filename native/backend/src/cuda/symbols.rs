//! Names of a module's variables, which the driver answers for but does not list: from PTX, or from the symbols of
//! machine code (ELF, as the System V ABI describes it).

use crate::soft::image::all_of;
use sluice_softgpu::Module;
use std::collections::BTreeSet;

/// Section of symbols.
const SYMBOLS: u32 = 2;
/// A symbol's kind.
const OBJECT: u8 = 1;
const SYMBOL_BYTES: usize = 24;

/// Names of what may be variables; the driver is asked which of them are.
pub fn variables(image: &[u8]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for part in all_of(image) {
        if part.starts_with(b"\x7fELF") {
            names.extend(objects(&part).unwrap_or_default());
        } else {
            names.extend(Module::names_of_variables(&part));
        }
    }
    names
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn half(bytes: &[u8], at: usize) -> Option<usize> {
    number(bytes, at).map(|found| usize::from(u16::from_le_bytes(found)))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(number(bytes, at)?)).ok()
}

/// The objects among the symbols; None when it is no ELF file that can be read. nvcc makes the variables of a program that
/// is compiled as a whole local ones, and the driver answers for them like for the others.
fn objects(elf: &[u8]) -> Option<Vec<String>> {
    let (headers, size, count) = (long(elf, 40)?, half(elf, 58)?, half(elf, 60)?);
    let section = |index: usize| elf.get(headers.checked_add(index.checked_mul(size)?)?..);
    let contents = |section: &[u8]| {
        let (begin, bytes) = (long(section, 24)?, long(section, 32)?);
        elf.get(begin..begin.checked_add(bytes)?)
    };
    let mut names = Vec::new();
    for index in 0..count {
        let header = section(index)?;
        if word(header, 4)? != SYMBOLS {
            continue;
        }
        let (symbols, texts) = (contents(header)?, contents(section(word(header, 40)? as usize)?)?);
        for symbol in symbols.chunks_exact(SYMBOL_BYTES) {
            let (kind, defined) = (*symbol.get(4)?, half(symbol, 6)? != 0);
            if defined && kind & 15 == OBJECT {
                let text = texts.get(word(symbol, 0)? as usize..)?;
                let length = text.iter().position(|byte| *byte == 0)?;
                names.extend(std::str::from_utf8(text.get(..length)?).map(str::to_owned));
            }
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with these symbols: name, kind and section.
    fn elf(symbols: &[(&str, u8, u16)]) -> Vec<u8> {
        let (mut texts, mut table) = (vec![0u8], vec![0u8; SYMBOL_BYTES]);
        for (name, kind, section) in symbols {
            let mut symbol = vec![0u8; SYMBOL_BYTES];
            symbol[..4].copy_from_slice(&(texts.len() as u32).to_le_bytes());
            symbol[4] = *kind;
            symbol[6..8].copy_from_slice(&section.to_le_bytes());
            table.extend(symbol);
            texts.extend(name.bytes().chain([0]));
        }
        let header = |kind: u32, begin: usize, bytes: usize, link: u32| {
            let mut header = vec![0u8; 64];
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&(begin as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(bytes as u64).to_le_bytes());
            header[40..44].copy_from_slice(&link.to_le_bytes());
            header
        };
        let mut file = vec![0u8; 64];
        file[..4].copy_from_slice(b"\x7fELF");
        let sections = 64 + table.len() + texts.len();
        file[40..48].copy_from_slice(&(sections as u64).to_le_bytes());
        file[58..60].copy_from_slice(&64u16.to_le_bytes());
        file[60..62].copy_from_slice(&3u16.to_le_bytes());
        let (symbols, strings) = (header(2, 64, table.len(), 2), header(3, 64 + table.len(), texts.len(), 0));
        [file, table, texts, vec![0; 64], symbols, strings].concat()
    }

    #[test]
    fn machine_code_names_its_variables() {
        let image = elf(&[
            ("counter", 0x11, 5),
            ("local", 0x01, 5),
            ("kernel", 0x12, 4),
            ("elsewhere", 0x11, 0),
            ("table", 0x21, 6),
        ]);
        assert_eq!(variables(&image).into_iter().collect::<Vec<_>>(), ["counter", "local", "table"]);
    }

    #[test]
    fn ptx_names_its_variables() {
        let text = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 counter;\n";
        assert_eq!(variables(text.as_bytes()).into_iter().collect::<Vec<_>>(), ["counter"]);
    }

    #[test]
    fn ptx_of_any_version_names_its_variables() {
        let text = ".version 12.3\n.target sm_250z, something\n.address_size 64\n.directive of, the, future;\n\
            .global .texref image;\n\
            .visible .global .attribute(.managed) .align 8 .b64 table[2][3] = {{other, 1}, {2}}, more;\n\
            .const .new .b8 text[3] = {1, 2, 3};\n.extern .global .v4 .f32 vector[];\n\
            .shared .b32 scratch;\n\
            .visible .entry k(.param .u64 .ptr .global .align 4 data)\n{\nnew.thing.global %r1, {a, b};\nret;\n}\n\
            .visible .global .u32 last;\n";
        let names: Vec<_> = variables(text.as_bytes()).into_iter().collect();
        assert_eq!(names, ["last", "more", "table", "text", "vector"]);
    }

    #[test]
    fn a_damaged_file_names_nothing() {
        let image = elf(&[("counter", 0x11, 5)]);
        for length in 0..image.len() {
            let _ = variables(&image[..length]);
        }
        for at in 4..image.len() {
            let mut damaged = image.clone();
            damaged[at] = 0xff;
            let _ = variables(&damaged);
        }
    }
}
