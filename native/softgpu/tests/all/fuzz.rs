//! Random programs do what the slow interpreter of `reference` says they do.
//!
//! A few seconds of them in the tests; `SLUICE_FUZZ_SECONDS=600 cargo test --release -p sluice-softgpu --test all` for
//! longer, `SLUICE_FUZZ_FROM` for where to begin, `SLUICE_FUZZ_SEED` for one program again.

use crate::common::{Device, Params, Random};
use crate::reference::{Block, EACH, LEFT, NEAR, OWN, Program, THREADS, WORDS, initial};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const BLOCKS: usize = 2;
/// What all threads together can allocate at once.
const HEAP: u64 = 1 << 20;

/// A number of the environment.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The program of this number.
pub fn program(seed: u64) -> Program {
    let mut r = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for _ in 0..8 {
        r.bits();
    }
    Program::random(&mut r, 12 + seed as usize % 50)
}

/// What a program is given: memory, and the parameters that name it.
pub struct Given {
    own: u64,
    common: u64,
    out: u64,
    near: u64,
    pub params: Params,
}

impl Given {
    pub fn new(d: &Device, program: &Program) -> Given {
        let threads = THREADS * BLOCKS;
        let words: Vec<u64> = (0..WORDS * (BLOCKS + 1)).map(|at| initial(at % WORDS)).collect();
        let (from, own, common) = (d.upload(&program.table), d.alloc((2 * OWN * threads) as u64), d.upload(&words));
        let (out, near) = (d.alloc((8 * LEFT * threads) as u64), d.alloc((8 * NEAR * threads) as u64));
        let params = Params::new().u64(from).u64(own).u64(out).u32(threads as u32).u64(near).u64(common);
        Given { own, common, out, near, params }
    }
}

fn one(d: &Device, seed: u64) {
    let program = program(seed);
    let threads = THREADS * BLOCKS;
    let given = Given::new(d, &program);
    let text = program.ptx();
    let module = d.load(&text);
    let launched = d.launch(&module, "k", [BLOCKS as u32, 1, 1], [THREADS as u32, 1, 1], &given.params);
    launched.unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{text}"));
    let left: Vec<u64> = d.download(given.out, LEFT * threads);
    let memory: Vec<u8> = d.download(given.own, 2 * OWN * threads);
    let near: Vec<f64> = d.download(given.near, NEAR * threads);
    let words: Vec<u64> = d.download(given.common, WORDS * (BLOCKS + 1));
    let mut grid = std::array::from_fn(initial);
    for number in 0..BLOCKS {
        let mut block = Block::new(number, &program.table, &mut grid);
        program.evaluate(&mut block);
        for (thread, lane) in (number * THREADS..).zip(&block.lanes) {
            let own: Vec<u64> = lane.own[2..].as_flattened().chunks(8).map(word).collect();
            let wanted = lane.registers[1..].as_flattened().iter().chain(&own);
            for (at, (want, got)) in wanted.zip(&left[thread * LEFT..]).enumerate() {
                let doubles = (4 * EACH..5 * EACH).contains(&at);
                let nan = doubles && f64::from_bits(*want).is_nan() && f64::from_bits(*got).is_nan();
                let same = want == got || nan;
                assert!(same, "seed {seed}, thread {thread}, {}: {got:#x}, not {want:#x}\n{text}", place(at));
            }
            let beside: Vec<u8> = (0..OWN).map(|at| memory[(at / 4 * threads + thread) * 4 + at % 4]).collect();
            let apart = &memory[OWN * (threads + thread)..][..OWN];
            assert_eq!([beside.as_slice(), apart], [lane.own[0].as_slice(), &lane.own[1]], "seed {seed}\n{text}");
            for (want, got) in lane.near.iter().zip(&near[thread * NEAR..]) {
                assert!(want.accepts(*got), "seed {seed}, thread {thread}: {got:e} is not near {want:?}\n{text}");
            }
        }
        assert_eq!(block.sums, words[WORDS * (number + 1)..][..WORDS], "seed {seed}, block {number}\n{text}");
    }
    assert_eq!(grid, words[..WORDS], "seed {seed}\n{text}");
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// What number `at` of those that a thread leaves is.
fn place(at: usize) -> String {
    match ["%h", "%r", "%d", "%f", "%e"].get(at / EACH) {
        Some(name) => format!("{name}{}", at % EACH),
        None => format!("bytes {} of shared and local memory", 8 * (at - 5 * EACH)),
    }
}

#[test]
fn random_programs_agree_with_the_reference() {
    if let Some(seed) = number("SLUICE_FUZZ_SEED") {
        return one(&Device::with_heap(1, HEAP), seed);
    }
    let time = Duration::from_secs(number("SLUICE_FUZZ_SECONDS").unwrap_or(5));
    let first = number("SLUICE_FUZZ_FROM").unwrap_or(1);
    let (began, mut seed) = (Instant::now(), first);
    while began.elapsed() < time {
        let d = Device::with_heap(2, HEAP);
        for _ in 0..50 {
            one(&d, seed);
            seed += 1;
        }
    }
    println!("{} programs", seed - first);
}

/// Opcodes that the statements of random programs do not have, and why.
const ELSEWHERE: &[(&str, &str)] = &[
    ("brkpt", "ends the program"),
    ("clusterlaunchcontrol", "who gets a block is open"),
    ("createpolicy", "gives a number that means nothing"),
    ("discard", "leaves memory undefined"),
    ("exit", "what is around the statements has it"),
    ("getctarank", "a cluster is one block: `breadth.rs`"),
    ("griddepcontrol", "does nothing"),
    ("isspacep", "`instructions.rs`"),
    ("ldu", "`ld` by another name"),
    ("mapa", "a cluster is one block: `breadth.rs`"),
    ("ret", "what is around the statements has it"),
    ("setmaxnreg", "does nothing"),
    ("trap", "ends the program"),
    ("wmma", "how fragments lie is open: `wmma.rs`"),
];

/// Families of instructions: what they are, and how the names of their members begin and end.
const FAMILIES: &[(&str, &[&str], &[&str])] = &[
    (
        "halves",
        &["add.rn", "sub.rn", "mul.rn", "fma.rn", "fma.rn.relu", "min", "max.NaN", "min.xorsign.abs", "neg", "abs"],
        &HALVES,
    ),
    ("halves that saturate", &["add.rn.sat", "sub.rn.sat", "mul.rn.sat", "fma.rn.sat"], &["f16", "f16x2"]),
    ("halves, compared", &["setp.lt", "setp.geu", "setp.nan", "set.eq"], &HALVES),
    (
        "no subnormal numbers",
        &[
            "add.rn.ftz",
            "sub.rz.ftz",
            "mul.rn.ftz.sat",
            "fma.rp.ftz",
            "div.rn.ftz",
            "neg.ftz",
            "min.ftz",
            "setp.lt.ftz",
        ],
        &["f32"],
    ),
    ("no subnormal halves", &["add.rn.ftz", "fma.rn.ftz.relu", "max.ftz.NaN", "setp.geu.ftz"], &["f16", "f16x2"]),
    ("conversions without subnormal numbers", &["cvt.rn.ftz", "cvt.rz.ftz"], &["f32.f64", "f16.f32"]),
    ("halves among single precision", &["add.rz", "sub.rn.sat", "fma.rp"], &["f32.f16", "f32.bf16"]),
    (
        "directed rounding",
        &[
            "add.rz", "add.rm", "add.rp", "sub.rm", "mul.rz", "mul.rp", "fma.rz", "fma.rm", "fma.rp", "div.rm",
            "rcp.rp", "sqrt.rz",
        ],
        &["f32", "f64"],
    ),
    ("pairs of single precision", &["add.rn", "sub.rz", "mul.rm", "fma.rp"], &["f32x2"]),
    ("integers", &["add", "sub", "mul.lo", "mul.hi", "mad.lo", "mad.hi", "div", "rem", "min", "max", "sad"], &INTEGERS),
    ("wide products", &["mul.wide", "mad.wide"], &["u16", "s16", "u32", "s32"]),
    ("carry", &["add.cc", "addc.cc", "sub.cc", "subc", "mad.lo.cc", "madc.hi.cc", "madc.hi"], &["u32", "s64"]),
    ("pairs of integers", &["add", "min", "max"], &["u16x2", "s16x2"]),
    ("bit fields", &["bfe", "bfind", "bfind.shiftamt"], &["u32", "s32", "u64", "s64"]),
    ("bits", &["bfi", "brev", "popc", "clz", "shl", "not", "cnot"], &["b32", "b64"]),
    ("bytes", &["prmt"], &["b32", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]),
    ("funnel shifts", &["shf.l.wrap", "shf.l.clamp", "shf.r.wrap", "shf.r.clamp"], &["b32"]),
    ("sums of products", &["dp4a", "dp2a.lo", "dp2a.hi"], &["u32.u32", "u32.s32", "s32.u32", "s32.s32"]),
    (
        "to integers",
        &["cvt.rni", "cvt.rzi", "cvt.rmi", "cvt.rpi"],
        &["s8.f16", "u16.bf16", "s32.f32", "u32.f64", "s64.f32", "u64.f64"],
    ),
    (
        "from integers",
        &["cvt.rn", "cvt.rz", "cvt.rm", "cvt.rp"],
        &["f16.s32", "bf16.u64", "f32.s64", "f32.u32", "f64.u64", "f16.s8"],
    ),
    ("narrower floats", &["cvt.rn", "cvt.rz", "cvt.rm", "cvt.rp"], &["f32.f64", "f16.f32", "f16.f64", "bf16.f32"]),
    ("whole floats", &["cvt.rni", "cvt.rzi", "cvt.rmi", "cvt.rpi"], &["f16.f16", "f32.f32", "f64.f64"]),
    ("pairs of halves", &["cvt.rn", "cvt.rz.relu", "cvt.rn.satfinite"], &["f16x2.f32", "bf16x2.f32"]),
    (
        "other conversions",
        &["cvt"],
        &["tf32.f32", "e4m3x2.f32", "f16x2.e5m2x2", "s8.s32", "u64.s16", "pack.sat.s8.s32.b32"],
    ),
    (
        "loads",
        &["ld.global", "ld.const", "ld.shared", "ld.local", "ld"],
        &[
            ".u8", ".s8", ".u16", ".s16", ".u32", ".s32", ".u64", ".f32", ".f64", "v2.u8", "v4.s16", "v2.u32",
            "v4.f32", "v2.u64",
        ],
    ),
    (
        "stores",
        &["st.global", "st.shared", "st.local", "st"],
        &[".u8", ".u16", ".u32", ".u64", ".f64", "v4.u8", "v2.b32", "v2.f64"],
    ),
    ("ordered", &["ld.acquire.gpu", "st.release.gpu", "ld.volatile", "st.relaxed.gpu"], &["v2.u32", ".u64", "v4.b32"]),
    (
        "atomics",
        &["atom.global", "atom.shared", "atom.relaxed.gpu.global", "atom.acq_rel.sys.shared"],
        &[
            "add.u32",
            "add.u64",
            "min.s32",
            "max.u64",
            "and.b64",
            "xor.b32",
            "exch.b64",
            "cas.b32",
            "cas.b16",
            "inc.u32",
            "dec.u32",
            "add.f32",
            "add.noftz.f32",
            "add.noftz.f16x2",
            "add.noftz.bf16",
        ],
    ),
    (
        "reductions",
        &["red.global", "red.shared", "red"],
        &[
            "add.u32", "add.s32", "add.u64", "min.s64", "max.s32", "min.u32", "or.b32", "xor.b64", "inc.u32",
            "dec.u32", "add.f32", "add.f64",
        ],
    ),
    (
        "atomics of vectors",
        &["atom.global", "red.global"],
        &["add.v4.f32", "add.noftz.v2.f32", "add.noftz.v8.f16", "min.noftz.v2.bf16x2"],
    ),
    (
        "reductions in bulk",
        &["cp.reduce.async.bulk.global.shared::cta.bulk_group"],
        &["add.u32", "min.s64", "inc.u32", "xor.b64", "add.f32", "add.noftz.f32", "add.noftz.bf16", "max.f16"],
    ),
    (
        "reductions in bulk, told to a barrier",
        &["cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"],
        &["add.u64", "max.s32", "dec.u32", "and.b32"],
    ),
    (
        "lanes among each other",
        &["shfl.sync", "vote.sync", "match", "redux.sync", "elect", "bar.warp"],
        &["", " diverged", " guarded"],
    ),
    ("shuffles", &["shfl.sync.up", "shfl.sync.down", "shfl.sync.bfly", "shfl.sync.idx"], &["b32"]),
    ("votes", &["vote.sync.all", "vote.sync.any", "vote.sync.uni"], &["pred"]),
    ("matches", &["match.any.sync", "match.all.sync"], &["b32", "b64"]),
    (
        "reductions of warps",
        &["redux.sync"],
        &["add.s32", "min.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "max.abs.f32", "min.NaN.f32"],
    ),
    ("barriers", &["bar.red", "barrier.red"], &["popc.u32", "and.pred", "or.pred"]),
    ("named barriers", &["bar.arrive", "bar.sync", "barrier.sync"], &[""]),
    ("functions", &["call"], &[" mix", " spread", " steps", " divided", " total", " %a5", " malloc", " free"]),
    ("fragments", &["ldmatrix", "stmatrix"], &["x1.shared.b16", "x4.trans.shared.b16"]),
    (
        "products of matrices",
        &["mma.sync.aligned"],
        &["s32.s8.s8.s32", "f16.f16.f16.f16", "f32.bf16.bf16.f32", "f32.tf32.tf32.f32"],
    ),
];
const HALVES: [&str; 4] = [".f16", ".f16x2", ".bf16", ".bf16x2"];
const INTEGERS: [&str; 6] = ["u16", "s16", "u32", "s32", "u64", "s64"];

/// The names of a program's instructions; behind some what is said of them by their operands.
fn instructions(text: &str, names: &mut BTreeSet<String>) {
    for statement in text.split([';', '\n']) {
        let mut words = statement.split_whitespace().skip_while(|word| matches!(*word, "{" | "}"));
        let Some(first) = words.next() else { continue };
        let guarded = first.starts_with('@');
        let Some(name) = (if guarded { words.next() } else { Some(first) }) else { continue };
        names.insert(name.to_string());
        if guarded {
            names.insert(format!("{name} guarded"));
        }
        let operands: Vec<&str> = words.map(|word| word.trim_end_matches(',')).collect();
        if operands.last().is_some_and(|mask| mask.starts_with("%g") && *mask != "%g0") {
            names.insert(format!("{name} diverged"));
        }
        if name == "call" {
            names.extend(operands.iter().map(|operand| format!("{name} {operand}")));
        }
    }
}

#[test]
fn random_programs_have_every_instruction() {
    let mut names = BTreeSet::new();
    for seed in 1..=3000 {
        instructions(&program(seed).statements(), &mut names);
    }
    let opcodes: BTreeSet<&str> = names.iter().filter_map(|name| name.split(['.', ' ']).next()).collect();
    let elsewhere = |opcode: &str| ELSEWHERE.iter().any(|(name, _)| *name == opcode);
    let wrong: Vec<&&str> =
        sluice_softgpu::OPCODES.iter().filter(|opcode| opcodes.contains(**opcode) == elsewhere(opcode)).collect();
    assert_eq!(wrong, [&""; 0], "opcodes that random programs lack, or have though `ELSEWHERE` says that they do not");
    let mut missing = Vec::new();
    for (family, beginnings, ends) in FAMILIES {
        for (begin, end) in beginnings.iter().flat_map(|begin| ends.iter().map(move |end| (begin, end))) {
            if !names.iter().any(|name| name.starts_with(begin) && name.ends_with(end)) {
                missing.push(format!("{family}: {begin} … {end}"));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
}
