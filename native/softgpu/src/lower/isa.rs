//! The instructions of the PTX ISA with their modifiers, types and state spaces, whether the engine has them or not.
//!
//! From chapter 9 of NVIDIA's "PTX ISA" (<https://docs.nvidia.com/cuda/parallel-thread-execution/>), 1.0 to 9.5,
//! and compared with what NVIDIA's assembler 13.5 calls unknown. An instruction outside this list is no PTX
//! (`CUDA_ERROR_INVALID_PTX`); one inside that the engine lacks is valid and unsupported. The list says which modifiers an opcode takes in some form, not which of them go together.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// The newest `.version` that the list describes.
const NEWEST: u32 = 95;

/// Modifiers that many instructions share, by a name that PTX cannot spell.
const GROUPS: &[(&str, &str)] = &[
    ("@integers", "s16 s32 s64 u16 u32 u64"),
    ("@words", "s32 s64 u32 u64"),
    ("@bits", "b16 b32 b64"),
    ("@numbers", "b16 b32 b64 s16 s32 s64 u16 u32 u64 f32 f64"),
    ("@halves", "f16 f16x2 bf16 bf16x2"),
    ("@rounding", "rn rz rm rp"),
    ("@comparisons", "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor"),
    ("@scopes", "cta cluster gpu sys"),
    ("@shared", "shared shared::cta shared::cluster"),
    ("@spaces", "const global local param param::entry param::func shared shared::cta shared::cluster"),
    ("@memory", "b8 b16 b32 b64 b128 s8 s16 s32 s64 u8 u16 u32 u64 f32 f64 v2 v4 v8"),
    ("@caches", "ca cg cs cv lu wb wt L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last"),
    ("@caches", "L1::no_allocate L2::evict_normal L2::evict_first L2::evict_last L2::cache_hint"),
    ("@multicast", "multicast::cluster multicast::cluster::all multicast::cluster::32b"),
    ("@pair", "cta_group::1 cta_group::2"),
    ("@tensors", "tensor 1d 2d 3d 4d 5d tile tile::gather4 tile::scatter4"),
    ("@tensors", "im2col im2col::w im2col::w::128 im2col_no_offs"),
    ("@updates", "add and cas dec exch inc max min or xor noftz"),
    ("@packed", "e4m3 e5m2 e4m3x2 e4m3x4 e5m2x2 e5m2x4 e3m2 e3m2x2 e3m2x4 e2m3 e2m3x2 e2m3x4 e2m1 e2m1x2 e2m1x4"),
    ("@packed", "ue8m0 ue8m0x2 ue4m3"),
    ("@images", "1d 2d 3d a1d a2d cube acube 2dms a2dms v2 v4"),
    ("@elements", "b1 s4 u4 s8 u8 s32 u32 f16 bf16 tf32 f32 f64 b4 b8 b16"),
];

/// Opcodes, and the modifiers and groups of modifiers that they take.
const INSTRUCTIONS: &[(&str, &str)] = &[
    // Integers and floating point
    ("add sub", "@integers @rounding @halves f32 f64 f32x2 u16x2 s16x2 u8x4 s8x4 sat ftz cc"),
    ("addc subc", "@words cc"),
    ("mul", "@integers @rounding @halves f32 f64 f32x2 lo hi wide sat ftz"),
    ("mad", "@integers @rounding f32 f64 lo hi wide sat ftz cc"),
    ("madc", "@words lo hi cc"),
    ("fma", "@rounding @halves f32 f64 f32x2 sat ftz relu oob"),
    ("mul24", "s32 u32 lo hi"),
    ("mad24", "s32 u32 lo hi sat"),
    ("sad rem", "@integers"),
    ("div", "@integers @rounding f32 f64 approx full ftz"),
    ("abs neg", "s16 s32 s64 s8x4 @halves f32 f64 ftz"),
    ("min max", "@integers @halves f32 f64 u16x2 s16x2 u8x4 s8x4 ftz NaN xorsign abs relu"),
    ("rcp sqrt", "@rounding f32 f64 approx ftz"),
    ("rsqrt", "f32 f64 approx ftz"),
    ("sin cos lg2", "f32 approx ftz"),
    ("ex2", "@halves f32 approx ftz"),
    ("tanh", "@halves f32 approx"),
    ("testp", "f32 f64 finite infinite number notanumber normal subnormal"),
    ("copysign", "f32 f64"),
    ("popc clz brev bfi", "b32 b64"),
    ("bfind", "@words shiftamt"),
    ("bfe", "@words"),
    ("fns", "b32"),
    ("szext", "s32 u32 wrap clamp"),
    ("bmsk", "b32 wrap clamp"),
    ("dp4a", "s32 u32"),
    ("dp2a", "s32 u32 lo hi"),
    // Comparisons, logic and shifts
    ("set", "@comparisons @numbers @halves ftz"),
    ("setp", "@comparisons @numbers @halves ftz"),
    ("selp", "@numbers"),
    ("slct", "@numbers ftz"),
    ("and or xor not", "@bits pred"),
    ("cnot shl", "@bits"),
    ("shr", "@bits @integers"),
    ("shf", "b32 l r wrap clamp"),
    ("lop3", "b32 and or"),
    ("prmt", "b32 f4e b4e rc8 ecl ecr rc16"),
    // Data movement and conversion
    ("mov", "@numbers b128 pred v2 v4"),
    ("shfl", "b32 sync up down bfly idx"),
    ("ld", "@spaces @scopes @memory @caches L2::64B L2::128B L2::256B"),
    ("ld", "weak relaxed acquire volatile mmio nc unified"),
    ("ldu", "@memory global"),
    (
        "st",
        "@spaces @scopes @memory @caches mbarrier::complete_tx::bytes weak relaxed release volatile mmio async bulk",
    ),
    ("multimem", "ld_reduce st red cp reduce async bulk bulk_group global shared::cta weak relaxed acquire release"),
    ("multimem", "@scopes @updates @halves @packed acc::f16 acc::f32 v2 v4 v8 b32 b64 s32 s64 u32 u64 f32 f64"),
    ("prefetch", "global local const param tensormap L1 L2 L2::evict_last L2::evict_normal"),
    ("prefetchu", "L1"),
    ("applypriority", "global L2::evict_normal"),
    ("discard", "global L2"),
    ("createpolicy", "fractional range cvt global L2 b64 L2::evict_last L2::evict_normal L2::evict_first"),
    ("createpolicy", "L2::evict_unchanged"),
    ("isspacep", "@spaces"),
    ("cvta", "@spaces to u32 u64"),
    ("cvt", "@rounding rni rzi rmi rpi rna rs ftz sat satfinite relu scaled::n2::ue8m0 pack"),
    ("cvt", "@integers @halves @packed s8 u8 s2 u2 s4 u4 b32 f32 f64 tf32 s2f6x2"),
    ("mapa getctarank", "@shared u32 u64"),
    ("alloca stacksave stackrestore", "u32 u64"),
    ("cp", "async ca cg global @shared L2::cache_hint L2::64B L2::128B L2::256B commit_group wait_group wait_all"),
    (
        "cp",
        "mbarrier arrive noinc b64 bulk bulk_group read cp_mask ignore_oob prefetch L2 reduce mbarrier::complete_tx::bytes",
    ),
    ("cp", "@multicast @tensors @pair @updates @scopes relaxed f16 bf16 f32 f64 b32 s32 s64 u32 u64"),
    ("tensormap", "replace cp_fenceproxy tile global @shared tensormap::generic release sync aligned @scopes b32 b64"),
    ("tensormap", "b1024 global_address rank box_dim global_dim global_stride element_stride elemtype"),
    ("tensormap", "interleave_layout swizzle_mode swizzle_atomicity fill_mode"),
    // Textures and surfaces
    ("tex", "@images base level grad s32 u32 f16 f16x2 f32"),
    ("tld4", "2d a2d cube acube v4 r g b a s32 u32 f32"),
    ("txq", "width height depth channel_data_type channel_order normalized_coords array_size num_mipmap_levels"),
    ("txq", "num_samples level filter_mode addr_mode_0 addr_mode_1 addr_mode_2 force_unnormalized_coords b32"),
    ("istypep", "texref samplerref surfref"),
    ("suld", "@images b ca cg cs cv trap clamp zero b8 b16 b32 b64"),
    ("sust", "@images b p wb cg cs wt trap clamp zero b8 b16 b32 b64"),
    ("sured", "1d 2d 3d a1d a2d b p add min max and or trap clamp zero b32 b64 s32 s64 u32 u64"),
    ("suq", "width height depth channel_data_type channel_order array_size memory_layout b32"),
    // Control
    ("bra call ret", "uni"),
    ("brx", "idx uni"),
    ("exit trap brkpt", ""),
    // Threads together
    ("bar", "sync arrive red cta warp aligned popc and or pred u32"),
    ("barrier", "sync arrive red cta cluster aligned popc and or pred u32 wait acquire release relaxed"),
    ("membar", "cta gl sys proxy alias async async::generic global @shared"),
    ("fence", "sc acq_rel acquire release @scopes proxy alias async async::generic global @shared"),
    ("fence", "tensormap::generic mbarrier_init sync_restrict::shared::cta sync_restrict::shared::cluster"),
    ("atom", "@updates @scopes @shared @halves @bits @words b128 f32 f64 global relaxed acquire release acq_rel"),
    ("atom", "L2::cache_hint v2 v4 v8"),
    (
        "red",
        "add and dec inc max min or xor noftz @scopes @shared @halves @bits @words f32 f64 global relaxed acquire release acq_rel",
    ),
    ("red", "L2::cache_hint v2 v4 v8 async mmio mbarrier::complete_tx::bytes"),
    ("vote", "sync all any uni ballot pred b32"),
    ("match", "sync any all b32 b64"),
    ("activemask", "b32"),
    ("redux", "sync add min max and or xor abs NaN b32 s32 u32 f32"),
    ("griddepcontrol", "launch_dependents wait"),
    ("elect", "sync"),
    ("mbarrier", "init inval expect_tx complete_tx arrive arrive_drop noComplete test_wait try_wait pending_count"),
    ("mbarrier", "check_layout layout::v0 layout::v1 phase_type::primary phase_type::conditional parity @multicast"),
    ("mbarrier", "@shared @scopes acquire release relaxed b64"),
    ("clusterlaunchcontrol", "try_cancel query_cancel async is_canceled get_first_ctaid get_first_ctaid::x"),
    (
        "clusterlaunchcontrol",
        "get_first_ctaid::y get_first_ctaid::z shared::cta mbarrier::complete_tx::bytes @multicast v4",
    ),
    ("clusterlaunchcontrol", "pred b32 b128"),
    // Matrices
    ("wmma", "load store mma a b c d sync aligned row col global @shared and xor popc @rounding satfinite"),
    ("wmma", "@elements m16n16k16 m32n8k16 m8n32k16 m16n16k8 m8n8k4 m8n8k32 m8n8k128"),
    ("mma", "sync aligned row col sp sp::ordered_metadata and xor popc satfinite @rounding @elements @packed"),
    ("mma", "block_scale scale_vec::1X scale_vec::2X scale_vec::4X kind::f8f6f4 kind::mxf8f6f4 kind::mxf4"),
    ("mma", "kind::mxf4nvf4 m8n8k4 m8n8k16 m8n8k32 m8n8k128 m16n8k4 m16n8k8 m16n8k16 m16n8k32 m16n8k64"),
    ("mma", "m16n8k128 m16n8k256"),
    ("ldmatrix", "sync aligned m8n8 m8n16 m16n16 x1 x2 x4 trans @shared b16 b8 b8x16 b4x16_p64 b6x16_p32"),
    ("stmatrix", "sync aligned m8n8 m16n8 x1 x2 x4 trans @shared b16 b8"),
    ("movmatrix", "sync aligned m8n8 trans b16"),
    ("wgmma", "fence commit_group wait_group mma_async sp sync aligned and popc satfinite @elements @packed @wgmma"),
    ("tcgen05", "alloc dealloc relinquish_alloc_permit ld st wait cp shift mma ws sp commit fence red @pair"),
    ("tcgen05", "wait::ld wait::st fence::before_thread_sync fence::after_thread_sync sync aligned @shared b32 b64"),
    ("tcgen05", "16x64b 16x128b 16x256b 32x32b 16x32bx2 x1 x2 x4 x8 x16 x32 x64 x128 pack::16b unpack::16b"),
    ("tcgen05", "128x256b 4x256b 128x128b 64x128b 32x128b warpx2::02_13 warpx2::01_23 warpx4 b8x16"),
    ("tcgen05", "b6x16_p32 b4x16_p64 down kind::f16 kind::tf32 kind::f8f6f4 kind::i8 kind::mxf8f6f4 kind::mxf4"),
    ("tcgen05", "kind::mxf4nvf4 block_scale block16 block32 scale_vec::1X scale_vec::2X scale_vec::4X min max abs"),
    ("tcgen05", "NaN u32 s32 f32 ashift collector::a::fill collector::a::use collector::a::lastuse"),
    ("tcgen05", "collector::a::discard collector::b0::fill collector::b0::use collector::b0::lastuse"),
    ("tcgen05", "collector::b0::discard collector::b1::fill collector::b1::use collector::b1::lastuse"),
    ("tcgen05", "collector::b1::discard collector::b2::fill collector::b2::use collector::b2::lastuse"),
    ("tcgen05", "collector::b2::discard collector::b3::fill collector::b3::use collector::b3::lastuse"),
    ("tcgen05", "collector::b3::discard mbarrier::arrive::one @multicast"),
    // Video
    ("vadd vsub vabsdiff vmin vmax", "u32 s32 sat add min max"),
    ("vshl vshr", "u32 s32 sat clamp wrap add min max"),
    ("vmad", "u32 s32 sat po shr7 shr15"),
    ("vset", "u32 s32 eq ne lt le gt ge add min max"),
    ("vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2", "u32 s32 sat add"),
    ("vset2", "u32 s32 eq ne lt le gt ge add"),
    ("vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4", "u32 s32 sat add"),
    ("vset4", "u32 s32 eq ne lt le gt ge add"),
    // The rest
    ("nanosleep", "u32"),
    ("pmevent", "mask"),
    ("setmaxnreg", "inc dec sync aligned u32"),
];

/// Types that variables, registers and parameters may have.
const TYPES: &str = "pred b8 b16 b32 b64 b128 s8 s16 s32 s64 u8 u16 u32 u64 f16 f16x2 bf16 bf16x2 f32 f64";

/// Directives of modules, functions and their bodies.
const DIRECTIVES: &str = "abi_preserve abi_preserve_control address_size alias align attribute blocksareclusters \
    branchtargets callprototype calltargets common const entry explicitcluster extern file func global loc local \
    maxclusterrank maxnctapersm maxnreg maxntid minnctapersm noreturn param pragma reg reqnctapercluster reqntid \
    samplerref section shared sreg surfref target tex texref version visible weak";

static LIST: LazyLock<HashMap<&str, HashSet<&str>>> = LazyLock::new(|| {
    let mut list: HashMap<&str, HashSet<&str>> = HashMap::new();
    for (opcodes, modifiers) in INSTRUCTIONS {
        for opcode in opcodes.split(' ') {
            let taken = list.entry(opcode).or_default();
            for one in modifiers.split_ascii_whitespace() {
                taken.insert(one);
                let groups = GROUPS.iter().filter(|(name, _)| *name == one);
                taken.extend(groups.flat_map(|(_, members)| members.split(' ')));
            }
        }
    }
    list
});

/// A sentence with the part of an instruction that the list lacks. Undefined parts of modules newer than the list are
/// allowed.
pub fn unknown(opcode: &str, mods: &[&str], version: u32) -> Option<String> {
    if version > NEWEST {
        return None;
    }
    let Some(taken) = LIST.get(opcode) else { return Some(format!("`{opcode}` is no instruction of PTX")) };
    let strange = mods.iter().find(|one| !(taken.contains(*one) || taken.contains("@wgmma") && is_wgmma_shape(one)))?;
    Some(format!("`{opcode}` has no modifier `.{strange}`"))
}

/// `m64n8k16` to `m64n256k256`: the columns are a multiple of 8.
fn is_wgmma_shape(name: &str) -> bool {
    let shape = name.strip_prefix("m64n").and_then(|rest| rest.split_once('k'));
    shape.is_some_and(|(columns, depth)| {
        let columns = (1..=32).any(|eights| (8 * eights).to_string() == columns);
        columns && matches!(depth, "8" | "16" | "32" | "64" | "256")
    })
}

/// Whether variables may have this type.
pub fn is_type(name: &str) -> bool {
    TYPES.split(' ').any(|one| one == name)
}

/// Whether there is a directive of this name.
pub fn is_directive(name: &str) -> bool {
    DIRECTIVES.split_ascii_whitespace().any(|one| one == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_of_the_engine_is_in_the_list() {
        for opcode in super::super::OPCODES {
            assert_eq!(unknown(opcode, &[], NEWEST), None);
        }
    }

    #[test]
    fn groups_are_used_and_nothing_else_has_their_mark() {
        let used: HashSet<&str> = INSTRUCTIONS.iter().flat_map(|row| row.1.split_ascii_whitespace()).collect();
        for (name, members) in GROUPS {
            assert!(used.contains(name) && !members.contains('@'), "{name}");
        }
        for mark in used.iter().filter(|one| one.starts_with('@') && **one != "@wgmma") {
            assert!(GROUPS.iter().any(|(name, _)| name == mark), "{mark}");
        }
    }

    #[test]
    fn shapes_of_wgmma_have_columns_in_steps_of_eight() {
        for shape in ["m64n8k16", "m64n256k256", "m64n104k8"] {
            assert_eq!(unknown("wgmma", &[shape], NEWEST), None, "{shape}");
        }
        for shape in ["m64n4k16", "m64n264k16", "m64n08k16", "m64n8k7", "m32n8k16"] {
            assert!(unknown("wgmma", &[shape], NEWEST).is_some(), "{shape}");
        }
    }
}
