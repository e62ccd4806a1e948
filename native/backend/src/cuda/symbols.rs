//! What the driver does not tell of a module: the names of its variables, for which it answers without listing them, and
//! whether its kernels allocate. From PTX, or from the symbols of machine code (ELF, as the System V ABI describes it).

use crate::soft::image::all_of;
use sluice_softgpu::Module;
use std::collections::BTreeSet;

/// Section of symbols.
const SYMBOLS: u32 = 2;
/// A symbol's kind.
const OBJECT: u8 = 1;
/// What CUDA's heap needs to be there for.
const OF_HEAP: [&str; 2] = ["malloc", "free"];
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

/// Whether its kernels use the heap of `malloc`, on any of the devices that it has code for.
pub fn uses_heap(image: &[u8]) -> bool {
    all_of(image).iter().any(|part| {
        if part.starts_with(b"\x7fELF") {
            let symbols = symbols(part).unwrap_or_default();
            return symbols.iter().any(|symbol| !symbol.defined && OF_HEAP.contains(&symbol.name));
        }
        let lines = part.split(|byte| *byte == b'\n').map(|line| String::from_utf8_lossy(line));
        lines.into_iter().any(|line| {
            let code = line.split("//").next().unwrap_or_default();
            let mut words = code.split(|c: char| !(c.is_ascii_alphanumeric() || "_$%.".contains(c)));
            words.any(|word| OF_HEAP.contains(&word))
        })
    })
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
    let objects = symbols(elf)?.into_iter().filter(|symbol| symbol.defined && symbol.kind == OBJECT);
    Some(objects.map(|symbol| symbol.name.to_owned()).collect())
}

struct Symbol<'a> {
    name: &'a str,
    kind: u8,
    defined: bool,
}

/// All symbols; None when it is no ELF file that can be read.
fn symbols(elf: &[u8]) -> Option<Vec<Symbol<'_>>> {
    let (headers, size, count) = (long(elf, 40)?, half(elf, 58)?, half(elf, 60)?);
    let section = |index: usize| elf.get(headers.checked_add(index.checked_mul(size)?)?..);
    let contents = |section: &[u8]| {
        let (begin, bytes) = (long(section, 24)?, long(section, 32)?);
        elf.get(begin..begin.checked_add(bytes)?)
    };
    let mut found = Vec::new();
    for index in 0..count {
        let header = section(index)?;
        if word(header, 4)? != SYMBOLS {
            continue;
        }
        let (table, texts) = (contents(header)?, contents(section(word(header, 40)? as usize)?)?);
        for symbol in table.chunks_exact(SYMBOL_BYTES) {
            let (kind, defined) = (*symbol.get(4)? & 15, half(symbol, 6)? != 0);
            let text = texts.get(word(symbol, 0)? as usize..)?;
            let length = text.iter().position(|byte| *byte == 0)?;
            found.extend(std::str::from_utf8(text.get(..length)?).map(|name| Symbol { name, kind, defined }));
        }
    }
    Some(found)
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
    fn a_module_whose_kernels_allocate_is_known() {
        assert!(uses_heap(&elf(&[("kernel", 0x12, 4), ("malloc", 0x12, 0)])));
        assert!(!uses_heap(&elf(&[("kernel", 0x12, 4), ("mallocate", 0x12, 0), ("free", 0x12, 4)])));
        let head = ".version 7.0\n.target sm_75\n.address_size 64\n";
        let declared = ".extern .func (.param .b64 result) malloc\n(\n.param .b64 bytes\n)\n;\n";
        assert!(uses_heap(format!("{head}{declared}").as_bytes()));
        assert!(!uses_heap(format!("{head}// malloc\n.visible .global .u32 malloc_count;\n").as_bytes()));
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
            let _ = (variables(&image[..length]), uses_heap(&image[..length]));
        }
        for at in 4..image.len() {
            let mut damaged = image.clone();
            damaged[at] = 0xff;
            let _ = (variables(&damaged), uses_heap(&damaged));
        }
    }
}
