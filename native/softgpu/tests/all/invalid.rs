//! PTX that is none is refused when it is loaded, with its place; what the engine lacks of the ISA fails its kernels alone.

use crate::common::{Random, kernels};
use crate::fuzz::program;
use sluice_softgpu::{Module, PtxError};

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n\
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %d<4>; .reg .f64 %e<4>;\n";

/// Reads a kernel whose body is on line 7.
fn read(body: &str) -> Result<Option<PtxError>, PtxError> {
    let module = Module::parse(format!("{HEAD}{body}\nL: ret;\n}}\n").as_bytes())?;
    Ok(module.kernel("k").unwrap().unsupported.clone())
}

/// Each is refused by NVIDIA's assembler (13.5) too.
#[test]
fn what_is_no_ptx_is_refused_when_it_is_loaded() {
    for (body, column, message) in [
        ("st.u33 [%d1], %r1;", 1, "`st` has no modifier `.u33`"),
        ("fro.u32 %r1, %r2;", 1, "`fro` is no instruction of PTX"),
        ("nonsense.u32 %r1;", 1, "`nonsense` is no instruction of PTX"),
        ("st.globl.u32 [%d1], %r1;", 1, "`st` has no modifier `.globl`"),
        ("add.ftzz.f32 %f1, %f1, %f1;", 1, "`add` has no modifier `.ftzz`"),
        ("add.global.u32 %r1, %r1, %r1;", 1, "`add` has no modifier `.global`"),
        (
            "wgmma.mma_async.sync.aligned.m64n9k16.f32.f16.f16 {%f1}, %d1, %d2;",
            1,
            "`wgmma` has no modifier `.m64n9k16`",
        ),
        ("tex.4d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%d1, {%r1}];", 1, "`tex` has no modifier `.4d`"),
        ("add.u32 %r1, %r1, %q1;", 19, "no register `%q1`"),
        ("add.u32 %r1, %r1, %envreg32;", 19, "no register `%envreg32`"),
        ("add.u32 %r1, %r1, x;", 19, "no variable `x`"),
        ("ld.global.u32 %r1, [x+4];", 20, "no variable `x`"),
        ("prefetch.global.L1 [x];", 20, "no variable `x`"),
        ("tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [x, {%r1}];", 39, "no variable `x`"),
        ("tex.1d.v4.f32.s32 {%f0,%f1,%f2,%q3}, [%d1, {%r1}];", 32, "no register `%q3`"),
        ("bra nowhere;", 1, "no label `nowhere`"),
        ("call undeclared, (%r1);", 1, "no function `undeclared`"),
        ("call %d1, (%r1), undeclared;", 1, "no prototype `undeclared`"),
        ("add.u32 %r1, %r1, 0f3F800000;", 1, "a floating-point number where the instruction takes none of its size"),
        ("setp.eq.s64 %p1, %d1, 1.5;", 1, "a floating-point number where the instruction takes none of its size"),
        ("st.u32 [%d1], 0f3F800000;", 1, "a floating-point number where the instruction takes none of its size"),
        ("mov.b64 %d1, 0f3F800000;", 1, "a floating-point number where the instruction takes none of its size"),
        ("mov.b32 %r1, 0d3FF0000000000000;", 1, "a floating-point number where the instruction takes none of its size"),
        ("add.f32 %f1, %f1, 1;", 1, "an integer where the instruction takes a floating-point number"),
        ("selp.f64 %e1, %e1, 1, %p1;", 1, "an integer where the instruction takes a floating-point number"),
        (".reg .u33 %x;", 6, "`.u33` is no type of PTX"),
        (".local .align 4 .b9 x[4];", 17, "`.b9` is no type of PTX"),
        (".regs .u32 %x;", 1, "`.regs` is no directive of PTX"),
        // Behind an instruction that the engine lacks.
        ("wgmma.fence.sync.aligned; st.u33 [%d1], %r1;", 27, "`st` has no modifier `.u33`"),
        ("wgmma.fence.sync.aligned; bra nowhere;", 27, "no label `nowhere`"),
    ] {
        let error = read(body).expect_err(body);
        let place = (error.line, error.column, error.code);
        assert_eq!((place, error.message.as_str()), ((7, column, 218), message), "{body}");
    }
    for (text, line, message) in [
        (".globl .u32 g;", 4, "`.globl` is no directive of PTX"),
        (".global .u33 g;", 4, "`.u33` is no type of PTX"),
        (".global .u64 g = nothing;", 4, "no variable `nothing`"),
        (".visible .func f() .maxntidd 3 { ret; }", 4, "`.maxntidd` is no directive of PTX"),
        (".visible nonsense f() { ret; }", 4, "unexpected `nonsense`"),
    ] {
        let text = format!(".version 8.0\n.target sm_90\n.address_size 64\n{text}\n");
        let error = Module::parse(text.as_bytes()).expect_err(&text);
        assert_eq!((error.line, error.code, error.message.as_str()), (line, 218, message), "{text}");
    }
}

#[test]
fn what_the_engine_lacks_of_the_isa_is_unsupported_and_not_invalid() {
    for body in [
        "wgmma.mma_async.sync.aligned.m64n104k16.f32.f16.f16 {%f1}, %d1, %d2, 1, 1, 1, 0, 0;",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64;",
        "tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%d1, {%r1}];",
        "vmad.s32.s32.u32.shr7 %r1, %r2.b0, -%r3.h1, %r1;",
        "suld.b.1d.b32.trap %r1, [%d1, {WARP_SZ}]; add.u32 %r1, %r1, %tid.x;",
    ] {
        let error = read(body).unwrap_or_else(|e| panic!("{body}: {e}")).expect(body);
        assert_eq!((error.line, error.column, error.code), (7, 1, 209), "{body}");
    }
}

#[test]
fn constants_of_the_kind_that_the_type_takes_are_read() {
    for body in [
        "mov.b32 %r1, 0f3F800000;",
        "and.b32 %r1, %r1, 0f3F800000;",
        "st.b32 [%d1], 0f3F800000;",
        "mov.b64 %d1, 0d3FF0000000000000;",
        "mov.b64 %d1, 1.0;",
        "add.f64 %e1, %e1, 0f3F800000;",
        "add.f32 %f1, %f1, 0d3FF0000000000000;",
        "add.f32 %f1, %f1, 1.0;",
        "cvt.rn.f32.s32 %f1, 5;",
        "slct.f32.s32 %f1, %f1, %f1, 1;",
        "set.eq.f32.u32 %f1, %r1, 5;",
        "shfl.sync.idx.b32 %r1, %r1, 1, 31, -1;",
        "proto: .callprototype _ (.param .b32 _);\ncall.uni %d1, (%r1), proto;",
    ] {
        assert_eq!(read(body), Ok(None), "{body}");
    }
}

/// Whether a word of a statement stands for itself: not inside a string or a comment.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The statements of bodies: where each instruction's name begins and ends, behind a guard and a label.
fn instructions(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        if !matches!(byte, b';' | b'{' | b'}' | b':' | b'\n') {
            continue;
        }
        let statement = &text[start..at];
        let mut name = statement.trim_start();
        if name.starts_with('@') {
            name = name.find(' ').map_or("", |end| name[end..].trim_start());
        }
        let begin = start + (statement.len() - name.len());
        let end = begin + name.bytes().take_while(|b| is_name(*b) || matches!(b, b'.' | b':')).count();
        if byte == b';' && name.starts_with(|c: char| c.is_ascii_lowercase()) && text[begin..end].contains('.') {
            found.push((begin, end));
        }
        start = at + 1;
    }
    found
}

/// Valid PTX in which one name of an instruction, a modifier or an operand has a letter more: never accepted.
#[test]
fn a_name_with_another_letter_is_never_accepted() {
    let mut texts: Vec<String> = std::fs::read_dir(kernels())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    texts.extend((0..8).map(|seed| program(seed).ptx()));
    let (mut r, mut refused) = (Random::new(99), [0, 0, 0]);
    let mut below = |end: usize| (r.bits() >> 8) as usize % end;
    for text in texts {
        let code: String =
            text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect();
        let found = instructions(&code);
        for _ in 0..40.min(found.len()) {
            let (begin, end) = found[below(found.len())];
            let name = &code[begin..end];
            let dots: Vec<usize> = name.match_indices('.').map(|(at, _)| at).chain([name.len()]).collect();
            let operands = code[end..].find(';').map_or("", |length| &code[end..end + length]);
            let register = operands.find('%').filter(|_| !operands.contains("%tid"));
            let (kind, at) = match (below(3), register) {
                (0, _) => (0, begin + dots[0]),
                (2, Some(at)) => {
                    let length = operands[at + 1..].bytes().take_while(|b| is_name(*b)).count();
                    (2, end + at + 1 + length)
                }
                _ => (1, begin + dots[1 + below(dots.len() - 1)]),
            };
            let changed = format!("{}z{}", &code[..at], &code[at..]);
            let line = code[..begin].matches('\n').count() as u32 + 1;
            let error = Module::parse(changed.as_bytes())
                .err()
                .unwrap_or_else(|| panic!("accepted: {}", changed[begin..].split(';').next().unwrap_or_default()));
            assert_eq!((error.line, error.code), (line, 218), "{error}: {}", &changed[begin..end + 1]);
            assert!(error.column > 0);
            refused[kind] += 1;
        }
    }
    assert!(refused.iter().all(|count| *count > 100), "{refused:?}");
}
