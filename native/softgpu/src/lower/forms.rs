//! What an instruction has to have: how many operands, and the modifiers without which it is none.

use super::Builder;
use crate::error::PtxError;
use crate::types::Type;

/// The least and the most operands of an opcode with all of these modifiers; the first row that fits counts.
const OPERANDS: &[(&str, &str, usize, usize)] = &[
    ("exit ret trap brkpt membar griddepcontrol", "", 0, 0),
    ("fence", "acquire tensormap::generic", 2, 2),
    ("fence", "", 0, 0),
    ("activemask bra nanosleep pmevent prefetch prefetchu setmaxnreg stacksave stackrestore", "", 1, 1),
    ("mov cvta isspacep not cnot abs neg popc clz brev bfind testp", "", 2, 2),
    ("sqrt rcp rsqrt sin cos lg2 ex2 tanh", "", 2, 2),
    ("brx ldu discard applypriority getctarank elect", "", 2, 2),
    ("alloca", "", 2, 3),
    ("cvt", "", 2, 5),
    ("add sub addc subc mul mul24 div rem and or xor shl shr copysign bmsk szext match redux mapa", "", 3, 3),
    ("min max", "f32", 3, 4),
    ("min max", "", 3, 3),
    ("set setp", "", 3, 4),
    ("mad madc fma mad24 sad bfe shf prmt dp2a dp4a slct selp fns vabsdiff2 vabsdiff4", "", 4, 4),
    ("bfi", "", 5, 5),
    ("lop3", "", 5, 6),
    ("st", "async", 2, 3),
    ("st", "bulk", 3, 3),
    ("ld st", "L2::cache_hint", 3, 3),
    ("ld st", "", 2, 2),
    ("atom", "", 3, 5),
    ("red", "", 2, 3),
    ("createpolicy", "range", 4, 4),
    ("createpolicy", "cvt", 2, 2),
    ("createpolicy", "", 1, 2),
    ("vote", "sync", 3, 3),
    ("vote", "", 2, 2),
    ("shfl", "sync", 5, 5),
    ("shfl", "", 4, 4),
    ("bar barrier", "cluster", 0, 0),
    ("bar barrier", "warp", 1, 1),
    ("bar barrier", "red", 3, 4),
    ("bar barrier", "arrive", 2, 2),
    ("bar barrier", "", 1, 2),
    ("mma", "block_scale", 8, 12),
    ("mma", "sp", 6, 6),
    ("mma", "", 4, 4),
    ("ldmatrix stmatrix movmatrix clusterlaunchcontrol", "", 2, 2),
    ("wmma", "mma", 4, 4),
    ("wmma", "", 2, 3),
    ("call", "", 1, 4),
    ("cp", "", 0, 8),
    ("mbarrier", "", 1, 5),
];

/// What number a row of [`NEEDED`] is about.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Any,
    Integers,
    Floats,
}

/// One of these modifiers is needed by an opcode for such numbers: there is no default.
const NEEDED: &[(&str, Of, &[&str])] = &[
    ("mul mad", Of::Integers, &["lo", "hi", "wide"]),
    ("madc mul24 mad24", Of::Any, &["lo", "hi"]),
    ("dp2a", Of::Any, &["lo", "hi"]),
    ("mad fma", Of::Floats, &["rn", "rz", "rm", "rp"]),
    ("div", Of::Floats, &["approx", "full", "rn", "rz", "rm", "rp"]),
    ("sqrt rcp", Of::Any, &["approx", "rn", "rz", "rm", "rp"]),
    ("rsqrt sin cos lg2 ex2 tanh", Of::Any, &["approx"]),
    ("shf", Of::Any, &["l", "r"]),
    ("shf szext bmsk", Of::Any, &["wrap", "clamp"]),
    ("match redux", Of::Any, &["sync"]),
];

impl Builder {
    /// Refuses an instruction with fewer or more operands than it has.
    pub(super) fn check_count(&self, opcode: &str, mods: &[&str], count: usize) -> Result<(), PtxError> {
        let fits = |(opcodes, modifiers, ..): &&(&str, &str, usize, usize)| {
            opcodes.split(' ').any(|one| one == opcode)
                && modifiers.split_ascii_whitespace().all(|one| mods.contains(&one))
        };
        match OPERANDS.iter().find(fits) {
            Some((.., least, most)) if !(*least..=*most).contains(&count) => {
                let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
                let name = Builder::full(opcode, mods);
                Err(self.error(format!("`{name}` takes {wanted} operands; these are {count}")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an instruction that leaves out what it has to say: how it rounds, or which half of a product it is.
    pub(super) fn check_needed(&self, opcode: &str, mods: &[&str]) -> Result<(), PtxError> {
        let types: Vec<Type> = mods.iter().filter_map(|m| Type::parse(m)).collect();
        let float = types.first().is_some_and(|ty| ty.float()) || mods.contains(&"f32x2");
        let of = if float { Of::Floats } else { Of::Integers };
        for (opcodes, numbers, any) in NEEDED {
            let concerns = (*numbers == Of::Any || *numbers == of) && opcodes.split(' ').any(|one| one == opcode);
            if concerns {
                self.one_of(opcode, mods, any)?;
            }
        }
        match types.as_slice() {
            [to, from] if opcode == "cvt" && from.float() && !to.float() => {
                self.one_of(opcode, mods, &["rni", "rzi", "rmi", "rpi"])
            }
            // A float that has room for all of the number is not rounded.
            [to, from] if opcode == "cvt" && to.float() => {
                let narrower = to.size() < from.size() || matches!(to, Type::F16x2 | Type::Bf16x2 | Type::Tf32);
                let any: &[&str] = &["rn", "rz", "rm", "rp", "rna", "rs"];
                if narrower || !from.float() { self.one_of(opcode, mods, any) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn one_of(&self, opcode: &str, mods: &[&str], any: &[&str]) -> Result<(), PtxError> {
        if any.iter().any(|one| mods.contains(one)) {
            return Ok(());
        }
        let name = Builder::full(opcode, mods);
        let names: Vec<String> = any.iter().map(|one| format!(".{one}")).collect();
        Err(self.error(format!("`{name}` needs {}", names.join(" or "))))
    }
}

#[cfg(test)]
mod tests {
    use super::OPERANDS;

    #[test]
    fn every_opcode_has_a_number_of_operands() {
        for opcode in super::super::OPCODES {
            let always = OPERANDS.iter().any(|row| row.1.is_empty() && row.0.split(' ').any(|one| one == *opcode));
            assert!(always, "{opcode}");
        }
    }
}
