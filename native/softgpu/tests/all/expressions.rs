//! Constant expressions, and registers that are vectors.

use crate::common::{Device, Params};
use sluice_softgpu::{Module, PtxError};

const HEAD: &str = ".version 8.0\n.target sm_75\n.address_size 64\n";

fn refused(text: &str) -> PtxError {
    Module::parse(format!("{HEAD}{text}").as_bytes()).expect_err(text)
}

/// Runs one thread and gives the words that it leaves at `[%out]`.
fn run(module: &str, body: &str, words: usize) -> Vec<u32> {
    let text = format!(
        "{HEAD}{module}\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %w<8>;\n\
         .reg .f32 %f<8>;\n.reg .b64 %out;\nld.param.u64 %out, [out];\n{body}\nret;\n}}\n"
    );
    let d = Device::new(1);
    let m = d.load(&text);
    let out = d.upload(&vec![0u32; words]);
    d.launch(&m, "k", [1, 1, 1], [1, 1, 1], &Params::new().u64(out)).unwrap();
    d.download(out, words)
}

/// What each expression of 64 bits is worth, by the PTX ISA's table of types; NVIDIA's assembler (CUDA 13.5) agrees.
#[test]
fn expressions_are_worth_what_their_types_say() {
    let cases: &[(&str, i64)] = &[
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("10 - 4 - 3", 3),
        ("-7 / 2", -3),
        ("-7U / 2", (7u64.wrapping_neg() / 2) as i64),
        ("0xFFFFFFFFFFFFFFF9 / 2", ((u64::MAX - 6) / 2) as i64),
        ("(.s64)0xFFFFFFFFFFFFFFF9 / 2", -3),
        ("(.u64)-7 / 2", ((u64::MAX - 6) / 2) as i64),
        // The remainder takes its operands as unsigned.
        ("-7 % 4", 1),
        ("1 << 40 | 1", 1 << 40 | 1),
        ("-16 >> 2", -4),
        ("(.u64)-16 >> 2", ((u64::MAX - 15) >> 2) as i64),
        ("1 << 65", 2),
        ("-1 >> 64", -1),
        ("1 << 2 + 3", 32),
        ("~0", -1),
        ("~0 / 2", i64::MAX),
        ("~5 & 0xFF ^ 3", (!5 & 0xff) ^ 3),
        ("!0 + !7", 1),
        ("!!9", 1),
        ("- -5", 5),
        ("+5", 5),
        ("3 < 2", 0),
        ("-1 < 1", 1),
        // One operand without a sign makes both of them so.
        ("-1 < 1U", 0),
        ("2 >= 2 && 1 != 2 || 0", 1),
        ("3 & 1 == 1", 1),
        ("1 ? 2 : 3 ? 4 : 5", 2),
        ("0 ? 2 : 0 ? 4 : 5", 5),
        ("(1 ? -8 : 1U) / 2", -4),
        ("WARP_SZ * 2 - 1", 63),
        ("(((((1))))) + 0b101 + 017 + 0x10", 37),
        ("1.5 < 2.0", 1),
        ("9223372036854775807 + 1", i64::MIN),
    ];
    let values: Vec<&str> = cases.iter().map(|(text, _)| *text).collect();
    let module = format!("{HEAD}.global .s64 all[{} + 0] = {{{}}};\n", cases.len(), values.join(", "));
    let d = Device::new(1);
    let m = d.load(&module);
    let got = d.download::<i64>(m.global("all").unwrap().0, cases.len());
    for ((text, want), got) in cases.iter().zip(got) {
        assert_eq!(got, *want, "{text}");
    }
}

#[test]
fn first_values_of_floats_are_computed_in_double_precision() {
    let module = format!(
        "{HEAD}.global .f64 d[6] = {{1.0 / 3.0, -0.0, 2.0 * 0.25, 0f3F800000, 1 ? 2.5 : 1.0, -3}};\n\
         .global .f32 f[3] = {{1.0 / 3.0, -0f3F800000, 7 / 2}};\n"
    );
    let d = Device::new(1);
    let m = d.load(&module);
    let doubles = d.download::<f64>(m.global("d").unwrap().0, 6);
    assert_eq!(doubles, [1.0 / 3.0, 0.0, 0.5, 1.0, 2.5, -3.0]);
    assert!(doubles[1].is_sign_negative());
    assert_eq!(d.download::<f32>(m.global("f").unwrap().0, 3), [(1.0 / 3.0) as f32, -1.0, 3.0]);
}

#[test]
fn expressions_stand_wherever_numbers_may() {
    let module = ".global .align 2 * 4 .b8 bytes[2 * 4][1 << 2];\n.const .u32 table[WARP_SZ / 8] = {1, 2, 3, 4};\n\
         .global .u64 there = generic(bytes) + 4 * 3;\n";
    let words = run(
        module,
        ".local .align 8 .b8 own[8 * 2];\n\
         mov.u32 %r0, (1 << 4) + WARP_SZ;\nadd.u32 %r0, %r0, ~0 & 0xF;\nst.global.u32 [%out + 4 * 0], %r0;\n\
         ld.const.u32 %r1, [table + 4 * (1 + 1)];\nst.global.u32 [%out + (8 - 4)], %r1;\n\
         mov.u64 %w1, bytes + 2 * 6;\nld.global.u64 %w2, [there];\nsub.u64 %w1, %w1, %w2;\n\
         st.global.u64 [%out + -8 + 16], %w1;\n\
         add.u64 %w3, %out, 100;\nst.global.u32 [%w3 - 100 + 16], 5 > 3 ? 77 : 1;\n\
         st.local.u32 [own + 4 + 4], 6 * 7;\nld.local.u32 %r3, [own + 2 * 4];\nst.global.u32 [%out + 20], %r3;\n\
         mov.f32 %f1, 1.0 / 4.0;\nst.global.f32 [%out + 24], %f1;\n\
         setp.ne.u32 %p1, 1 + 1, 3 - 1;\nselp.u32 %r4, 1, 2, %p1;\nst.global.u32 [%out+28], %r4;",
        8,
    );
    assert_eq!(words, [48 + 15, 3, 0, 0, 77, 42, 0.25f32.to_bits(), 2]);
}

#[test]
fn a_wrong_expression_is_refused_at_its_place() {
    for (text, column) in [
        ("1 / 0", 19),
        ("1 % 0", 19),
        ("1.5 % 2", 21),
        ("~1.5", 17),
        ("1.5 + 1", 21),
        ("0f3F800000 + 0.5", 28),
        ("1 ? 1.5 : 2", 17),
        ("1 +", 20),
        ("(1", 19),
        ("(.f64)1", 19),
        ("1 ? 2", 22),
        ("1.0 ? 2 : 3", 17),
        ("2 3", 19),
    ] {
        let error = refused(&format!(".global .s64 a = {text};\n"));
        assert_eq!((error.line, error.unsupported), (4, None), "{text}: {}", error.message);
        assert!(error.column.abs_diff(column) <= 3, "{text}: column {} and not {column}", error.column);
    }
    for size in ["-1", "1.5", "1 << 32", "0 - 1", "9999999999"] {
        assert_eq!(refused(&format!(".global .b8 a[{size}];\n")).line, 4, "{size}");
    }
    let deep = |text: &str, n: usize| refused(&format!(".global .s64 a = {}1;\n", text.repeat(n))).message;
    assert!(deep("(", 100_000).contains("deeply") && deep("-", 100_000).contains("deeply"));
    assert!(deep("1 ? 2 : ", 100_000).contains("deeply"));
    let sum = format!("{HEAD}.global .s64 a = 1{};\n", " + 1".repeat(50_000));
    assert_eq!(Module::parse(sum.as_bytes()).unwrap().globals().next().unwrap().init, 50_001u64.to_le_bytes());
}

#[test]
fn registers_may_be_vectors() {
    let words = run(
        ".global .align 16 .u32 in[4] = {1, 2, 3, 4};",
        ".reg .v4 .u32 %v, %turned, %many<3>;\n.reg .v2 .f32 pair;\n.reg .v2 .b64 %long;\n\
         ld.global.v4.u32 %v, [in];\nmov.v4.u32 %turned, {%v.w, %v.z, %v.y, %v.x};\nst.global.v4.u32 [%out], %turned;\n\
         mov.v4.u32 %v, {%v.g, %v.r, %v.a, %v.b};\nadd.u32 %many2.w, %v.x, %v.a;\nst.global.u32 [%out+16], %many2.w;\n\
         mov.f32 pair.x, 1.5;\nmov.f32 pair.y, 2.5;\nadd.f32 pair.r, pair.x, pair.g;\nst.global.v2.f32 [%out+24], pair;\n\
         mov.b64 %w1, pair;\nmov.b64 {%r0, %r1}, %w1;\nst.global.u32 [%out+20], %r1;\n\
         mov.v2.b64 %long, {%w1, 7};\nst.global.v2.b64 [%out+32], %long;\n\
         mov.v4.u32 %many0, %ntid;\nst.global.v4.u32 [%out+48], %many0;\nmov.u32 %r2, %tid.w;\nst.global.u32 [%out+64], %r2;",
        17,
    );
    let [sum, second] = [4.0f32.to_bits(), 2.5f32.to_bits()];
    assert_eq!(words, [4, 3, 2, 1, 2 + 3, second, sum, second, sum, second, 7, 0, 1, 1, 1, 0, 0]);
    let kernel = |body: &str| format!(".visible .entry k()\n{{\n.reg .v2 .u32 %v;\n.reg .u32 %r;\n{body}\nret;\n}}\n");
    for wrong in [
        "mov.u32 %r, %v.z;",
        "mov.v4.u32 %v, %v;",
        "mov.v2.u32 %v, %r;",
        "add.u32 %r, %v, 1;",
        "ld.global.u32 %v, [4];",
    ] {
        assert_eq!(refused(&kernel(wrong)).line, 8, "{wrong}");
    }
    let large = format!("{HEAD}{}", kernel(".reg .v4 .f64 %w;"));
    let module = Module::parse(large.as_bytes()).unwrap();
    assert!(module.kernels().next().unwrap().unsupported.is_some());
}
