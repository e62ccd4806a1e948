//! The modifiers that each instruction may have besides its types: an unknown one would change what it does.

use super::Builder;
use crate::error::PtxError;
use crate::types::Type;

const RELATIONS: &[&str] = &[
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
    "and", "or", "xor", "ftz",
];
const PLAIN: &[&str] = &[];

/// An instruction's modifiers, and how many types it names at most; nothing where its own part of the lowering knows
/// them, or where they are hints.
fn allowed(opcode: &str) -> Option<(&'static [&'static str], usize)> {
    Some(match opcode {
        "add" | "sub" => (&["cc", "sat", "ftz", "rn", "rz", "rm", "rp"], 2),
        "addc" | "subc" => (&["cc"], 1),
        "mul" => (&["lo", "hi", "wide", "sat", "ftz", "rn", "rz", "rm", "rp"], 1),
        "mad" => (&["lo", "hi", "wide", "cc", "sat", "ftz", "rn", "rz", "rm", "rp"], 1),
        "madc" => (&["lo", "hi", "cc"], 1),
        "fma" => (&["sat", "ftz", "relu", "rn", "rz", "rm", "rp"], 2),
        "mul24" => (&["lo", "hi"], 1),
        "mad24" => (&["lo", "hi", "sat"], 1),
        "div" => (&["ftz", "approx", "full", "rn", "rz", "rm", "rp"], 1),
        "sqrt" | "rcp" => (&["ftz", "approx", "rn", "rz", "rm", "rp"], 1),
        "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" => (&["ftz", "approx"], 1),
        "min" | "max" => (&["ftz", "NaN", "xorsign", "abs", "relu"], 1),
        "abs" | "neg" => (&["ftz"], 1),
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "rem" | "popc" | "clz" | "brev" | "bfe" | "bfi"
        | "sad" | "selp" | "copysign" | "fns" | "activemask" | "nanosleep" => (PLAIN, 1),
        "mov" => (&["b128", "v2", "v4"], 1),
        "shf" => (&["l", "r", "wrap", "clamp"], 1),
        "bfind" => (&["shiftamt"], 1),
        "prmt" => (&["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"], 1),
        "lop3" => (&["and", "or"], 1),
        "dp4a" => (PLAIN, 2),
        "dp2a" => (&["lo", "hi"], 2),
        "vabsdiff2" | "vabsdiff4" => (&["add"], 3),
        "bmsk" | "szext" => (&["wrap", "clamp"], 1),
        "slct" => (&["ftz"], 2),
        "testp" => (&["finite", "infinite", "number", "notanumber", "normal", "subnormal"], 1),
        "setp" => (RELATIONS, 1),
        "set" => (RELATIONS, 2),
        "vote" => (&["sync", "all", "any", "uni", "ballot"], 1),
        "shfl" => (&["sync", "up", "down", "bfly", "idx"], 1),
        "match" => (&["sync", "any", "all"], 1),
        "redux" => (&["sync", "add", "min", "max", "and", "or", "xor", "abs", "NaN"], 1),
        "bar" | "barrier" => (
            &[
                "sync", "arrive", "red", "popc", "and", "or", "cta", "warp", "aligned", "cluster", "wait", "acquire",
                "release", "relaxed",
            ],
            1,
        ),
        "cvta" => (
            &["to", "global", "const", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"],
            1,
        ),
        "isspacep" => {
            (&["global", "const", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"], 0)
        }
        "mapa" | "getctarank" => (&["shared::cluster"], 1),
        "bra" | "call" | "ret" => (&["uni"], 0),
        "brx" => (&["idx", "uni"], 0),
        "exit" | "trap" | "brkpt" => (PLAIN, 0),
        _ => return None,
    })
}

impl Builder {
    /// Refuses modifiers that the instruction does not have.
    pub(super) fn check_modifiers(&self, opcode: &str, mods: &[&str]) -> Result<(), PtxError> {
        let Some((names, most_types)) = allowed(opcode) else { return Ok(()) };
        // Pairs of numbers in one register.
        let is_type = |m: &str| Type::parse(m).is_some() || matches!(m, "u16x2" | "s16x2" | "f32x2");
        let types = mods.iter().filter(|m| is_type(m)).count();
        if types > most_types || mods.iter().any(|m| !is_type(m) && !names.contains(m)) {
            return Err(self.unsupported(Builder::full(opcode, mods)));
        }
        Ok(())
    }
}
