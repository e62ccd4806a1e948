//! What the module's `.version` and `.target` may be, and what an instruction asks of them, as NVIDIA's assembler has it.

use std::collections::HashMap;
use std::sync::LazyLock;

/// One of these opcodes with all of these modifiers (`a|b` is either of them) asks for this `.version` (71 is 7.1) and
/// this `.target`. All rows that fit count. What is in no row is always there: a family is left out where it is not
/// certain what it asks for.
const NEEDS: &[(&str, &str, u32, u32)] = &[
    // Arithmetic
    ("add sub mul fma neg set setp", "f16|f16x2", 42, 53),
    ("abs", "f16|f16x2", 65, 53),
    ("set", "s32|u32 f16|f16x2", 65, 53),
    ("min max", "f16|f16x2", 70, 80),
    ("fma neg abs min max", "bf16|bf16x2", 70, 80),
    ("add sub mul set setp tanh ex2", "bf16|bf16x2", 78, 90),
    ("add sub fma", "f32 f16|bf16", 86, 100),
    ("add sub mul fma", "f32x2", 86, 100),
    ("add min max", "s16x2|u16x2", 80, 90),
    ("fma min max cvt", "relu", 70, 80),
    ("min max", "s32 relu", 80, 90),
    ("min max", "NaN", 70, 80),
    ("min max", "xorsign", 72, 86),
    ("tanh", "", 70, 75),
    ("ex2", "f16|f16x2", 70, 75),
    ("dp2a dp4a", "", 50, 61),
    ("lop3", "", 43, 50),
    ("shf", "", 31, 32),
    ("fns", "", 60, 30),
    ("bmsk szext", "", 76, 70),
    // Conversions
    ("cvt", "bf16|bf16x2|tf32", 70, 80),
    ("cvt", "f16x2 f32", 70, 80),
    ("cvt", "bf16 f16|f64|s8|s16|s32|s64|u8|u16|u32|u64", 78, 90),
    ("cvt", "tf32 rn|rz", 78, 90),
    ("cvt", "e4m3x2|e5m2x2", 78, 89),
    ("cvt", "satfinite f16", 81, 70),
    ("cvt", "satfinite bf16|tf32", 81, 80),
    ("cvta isspacep", "param", 77, 70),
    ("mov ld st", "b128", 83, 70),
    // Memory
    ("ld", "nc", 31, 32),
    ("ld st", "weak", 60, 70),
    ("ld st", "mmio", 82, 70),
    ("ld st", "v8", 88, 100),
    ("ld st", "v4 b64|f64|s64|u64", 88, 100),
    ("ld st", "L1::no_allocate", 74, 70),
    ("ld", "L2::128B", 74, 75),
    ("ld st atom red", "L2::cache_hint", 74, 80),
    ("ld st atom red", "shared::cta", 78, 20),
    ("ld st atom red", "relaxed|acquire|release|acq_rel", 60, 70),
    ("ld st atom red fence barrier", "cluster", 78, 90),
    ("ld st atom red isspacep", "shared::cluster", 78, 90),
    ("atom red", "cta|gpu|sys", 50, 60),
    ("atom red", "add f64", 50, 60),
    ("atom red", "f16x2", 62, 60),
    ("atom red", "f16", 63, 70),
    ("atom red", "bf16|bf16x2", 78, 90),
    ("atom red", "v2|v4|v8", 81, 90),
    ("atom red cp", "noftz f32", 94, 90),
    ("atom", "cas b16", 63, 70),
    ("atom", "b128", 83, 90),
    ("createpolicy applypriority discard", "", 74, 80),
    ("alloca stacksave stackrestore", "", 73, 52),
    ("fence", "", 60, 70),
    ("fence", "proxy", 75, 70),
    ("fence", "async|mbarrier_init", 80, 90),
    ("cp", "async", 70, 80),
    ("cp", "bulk", 80, 90),
    ("cp", "reduce relaxed", 93, 90),
    ("mbarrier", "", 70, 80),
    ("mbarrier", "parity", 71, 80),
    ("mbarrier", "try_wait", 78, 90),
    ("mbarrier", "expect_tx|complete_tx", 80, 90),
    ("mbarrier", "shared::cta", 78, 80),
    ("mbarrier", "acquire|release", 80, 80),
    ("mbarrier", "cluster|shared::cluster", 80, 90),
    ("mbarrier", "relaxed arrive|arrive_drop|test_wait|try_wait", 86, 90),
    ("mbarrier", "layout::v0|layout::v1|phase_type::primary|phase_type::conditional", 93, 90),
    // Threads together
    ("shfl", "", 30, 30),
    ("vote shfl", "sync", 60, 30),
    ("bar", "warp", 60, 30),
    ("barrier", "", 60, 30),
    ("activemask", "", 62, 30),
    ("match", "", 60, 70),
    ("nanosleep", "", 62, 70),
    ("redux", "", 70, 80),
    ("redux", "f32", 86, 100),
    ("elect", "", 80, 90),
    ("mapa getctarank griddepcontrol", "", 78, 90),
    ("setmaxnreg", "", 80, 90),
    ("clusterlaunchcontrol", "", 86, 100),
    // Matrices
    ("ldmatrix", "", 65, 75),
    ("stmatrix", "", 78, 90),
    ("movmatrix", "", 78, 75),
    ("wmma", "", 60, 70),
    ("wmma", "s8|u8", 63, 72),
    ("wmma", "s4|u4|b1", 63, 75),
    ("mma", "", 64, 70),
    ("mma", "m16n8k8|m8n8k16|m8n8k32", 65, 75),
    ("mma", "m8n8k128", 70, 75),
    ("mma", "m16n8k16|m16n8k32|m16n8k64|m16n8k128|m16n8k256", 70, 80),
    ("wmma mma", "bf16|tf32|f64", 70, 80),
    ("wmma mma", "and", 71, 80),
    ("mma", "f64 m16n8k4|m16n8k8|m16n8k16", 78, 90),
];

/// The last minor version of each major one; of the newest those count too that are yet to come.
const VERSIONS: [(u32, u32); 9] = [(1, 5), (2, 3), (3, 2), (4, 3), (5, 1), (6, 5), (7, 8), (8, 8), (9, 9)];

const TARGETS: [u32; 33] = [
    10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 82, 86, 87, 88, 89, 90, 100, 101,
    103, 107, 110, 120, 121,
];

/// The `.version` of this text, as tens and ones: there is none like it, if it is nothing.
pub fn version_of(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once('.')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    VERSIONS.iter().any(|(known, last)| *known == major && minor <= *last).then_some(10 * major + minor)
}

/// The number of a `.target`: 75 of `sm_75`, 120 of `sm_120a`.
pub fn target_of(name: &str) -> Option<u32> {
    let name = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_"))?;
    let digits = name.trim_end_matches(['a', 'f']);
    let number = TARGETS.into_iter().find(|number| number.to_string() == digits)?;
    let least = match &name[digits.len()..] {
        "" => 0,
        "a" => 90,
        "f" => 100,
        _ => return None,
    };
    (number >= least).then_some(number)
}

/// A row of [`NEEDS`], taken apart.
struct Need {
    modifiers: Vec<Vec<&'static str>>,
    version: u32,
    target: u32,
}

static BY_OPCODE: LazyLock<HashMap<&str, Vec<Need>>> = LazyLock::new(|| {
    let mut all: HashMap<&str, Vec<Need>> = HashMap::new();
    for (opcodes, modifiers, version, target) in NEEDS {
        for opcode in opcodes.split(' ') {
            let modifiers = modifiers.split_ascii_whitespace().map(|any| any.split('|').collect()).collect();
            all.entry(opcode).or_default().push(Need { modifiers, version: *version, target: *target });
        }
    }
    all
});

/// What an instruction lacks in a module of this version and target, and what to do.
pub fn lacking(opcode: &str, mods: &[&str], version: u32, target: u32) -> Option<String> {
    let fits = |need: &&Need| need.modifiers.iter().all(|any| any.iter().any(|one| mods.contains(one)));
    let (mut least_version, mut least_target) = (0, 0);
    for need in BY_OPCODE.get(opcode)?.iter().filter(fits) {
        (least_version, least_target) = (need.version.max(least_version), need.target.max(least_target));
    }
    if least_target > target {
        return Some(format!(
            "requires .target sm_{least_target} or higher; this module is for sm_{target}: compile it for \
             compute_{least_target}"
        ));
    }
    (least_version > version).then(|| {
        let [least, own] = [least_version, version].map(|version| format!("{}.{}", version / 10, version % 10));
        format!("requires PTX ISA .version {least} or later; this module's is {own}: raise it")
    })
}
