//! Each form of the instructions by which threads work together, against what PTX says it does.

use crate::common::{Device, Params};
use sluice_softgpu::{Fault, Module};

const THREADS: usize = 128;

/// Runs a body on one block; every thread's `%r0` comes back. `s` is shared memory, `%r1` the thread, `%d1` where its
/// answer goes, `%d2` 256 bytes of global memory that hold zeros.
fn run(body: &str) -> Result<Vec<u32>, Fault> {
    let text = format!(
        ".version 9.4\n.target sm_120\n.address_size 64\n.const .align 8 .b64 fixed[2];\n.global .b64 beside;\n\
         .const .b8 few[3];\n.visible .entry k(.param .u64 out, .param .u64 global)\n{{\n\
         .reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<16>;\n.reg .f32 %f<4>;\n.reg .f64 %e<4>;\n.reg .b64 %d<16>;\n\
         .shared .align 16 .b8 s[1024];\n.local .align 8 .b8 own[16];\n\
         ld.param.u64 %d0, [out]; ld.param.u64 %d2, [global]; mov.u32 %r0, 0; mov.u32 %r1, %tid.x;\n\
         mad.wide.u32 %d1, %r1, 4, %d0;\n{body}\nst.global.u32 [%d1], %r0;\nret;\n}}\n"
    );
    let d = Device::new(1);
    let m = d.load(&text);
    assert_eq!(m.kernel("k").unwrap().unsupported, None, "{body}");
    let (out, global) = (d.alloc(4 * THREADS as u64), d.upload(&[0u64; 32]));
    d.launch(&m, "k", [1; 3], [THREADS as u32, 1, 1], &Params::new().u64(out).u64(global))?;
    Ok(d.download(out, THREADS))
}

fn check(body: &str, want: impl Fn(u32) -> u32) {
    for (thread, got) in (0..).zip(run(body).unwrap()) {
        assert_eq!(got, want(thread), "{body} thread {thread}");
    }
}

#[test]
fn barriers_reduce_over_the_threads_that_meet_there() {
    // Two halves of the block at barriers of their own; predicates: every third thread, all, and the last one of all.
    let halves = "shr.u32 %r2, %r1, 6; add.u32 %r2, %r2, 3; rem.u32 %r3, %r1, 3; setp.eq.u32 %p1, %r3, 0;\n\
        setp.lt.u32 %p2, %r1, 1000; setp.eq.u32 %p3, %r1, 127;\n";
    let thirds = |t: u32| (0..64).filter(|k| (t / 64 * 64 + k).is_multiple_of(3)).count() as u32;
    for bar in ["bar", "barrier"] {
        let at = |what: &str| format!("{halves}{bar}.red.{what}");
        check(&at("popc.u32 %r0, %r2, 64, %p1;"), thirds);
        check(&at("popc.u32 %r0, %r2, 64, !%p1;"), |t| 64 - thirds(t));
        check(&at("and.pred %p4, %r2, 64, %p2; selp.u32 %r0, 1, 0, %p4;"), |_| 1);
        check(&at("and.pred %p4, %r2, 64, !%p3; selp.u32 %r0, 1, 0, %p4;"), |t| u32::from(t < 64));
        check(&at("or.pred %p4, %r2, 64, %p3; selp.u32 %r0, 1, 0, %p4;"), |t| u32::from(t >= 64));
        check(&at("popc.u32 %r0, 0, %p1;"), |_| 43);
    }
}

#[test]
fn who_only_arrives_does_not_wait() {
    // The first half hands a number to the second, twice, and waits only where it would overwrite it.
    let body = "setp.ge.u32 %p1, %r1, 64; mov.u32 %r2, s; and.b32 %r3, %r1, 63; mad.lo.u32 %r2, %r3, 4, %r2;\n\
        mov.u32 %r4, 0; @%p1 bra reads;\n\
        writes: mad.lo.u32 %r5, %r4, 1000, %r1; st.shared.u32 [%r2], %r5; bar.arrive 1, 128; bar.sync 2, 128;\n\
        add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 2; @%p2 bra writes; bra end;\n\
        reads: bar.sync 1, 128; ld.shared.u32 %r5, [%r2]; add.u32 %r0, %r0, %r5; bar.arrive 2, 128;\n\
        add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 2; @%p2 bra reads;\nend:";
    check(body, |t| if t < 64 { 0 } else { 1000 + 2 * (t - 64) });
}

#[test]
fn a_warp_reduces_and_matches_over_its_members() {
    // Lanes 4 to 11 take part; what they bring is lane - 8, or its square.
    let members = "mov.u32 %r2, %laneid; sub.u32 %r3, %r2, 8; mul.lo.u32 %r4, %r3, %r3; mov.u32 %r0, 77;\n\
        setp.ge.u32 %p1, %r2, 4; setp.lt.and.u32 %p1, %r2, 12, %p1; @!%p1 bra end;\n";
    let lanes = || (4..12).map(|l: i32| l - 8);
    let squares = || lanes().map(|v| (v * v) as u32);
    let inside = |t: u32| (4..12).contains(&(t % 32));
    let all = |what: &str, want: u32| {
        check(&format!("{members}{what}\nend:"), |t| if inside(t) { want } else { 77 });
    };
    all("redux.sync.add.s32 %r0, %r3, 0xff0;", lanes().sum::<i32>() as u32);
    all("redux.sync.add.u32 %r0, %r4, 0xff0;", squares().sum());
    all("redux.sync.min.s32 %r0, %r3, 0xff0;", -4i32 as u32);
    all("redux.sync.max.s32 %r0, %r3, 0xff0;", 3);
    all("redux.sync.min.u32 %r0, %r3, 0xff0;", 0);
    all("redux.sync.max.u32 %r0, %r3, 0xff0;", u32::MAX);
    all("redux.sync.and.b32 %r0, %r4, 0xff0;", squares().fold(u32::MAX, |a, b| a & b));
    all("redux.sync.or.b32 %r0, %r4, 0xff0;", squares().fold(0, |a, b| a | b));
    all("redux.sync.xor.b32 %r0, %r4, 0xff0;", squares().fold(0, |a, b| a ^ b));
    all(
        "mov.b64 %d3, {%r2, %r4}; mov.u32 %r5, 5; mov.b64 %d3, {%r5, %r5}; match.all.sync.b64 %r0|%p2, %d3, 0xff0;",
        0xff0,
    );
    all("match.all.sync.b32 %r5|%p2, %r4, 0xff0; selp.u32 %r6, 1, 2, %p2; add.u32 %r0, %r5, %r6;", 2);
    let same = |t: u32| {
        let own = (t % 32) as i32 - 8;
        (4..12).filter(|l: &i32| (l - 8).abs() == own.abs()).fold(0, |mask, l| mask | 1 << l)
    };
    for ty in ["mov.b64 %d3, {%r4, %r4}; match.any.sync.b64 %r0, %d3, 0xff0;", "match.any.sync.b32 %r0, %r4, 0xff0;"] {
        check(&format!("{members}{ty}\nend:"), |t| if inside(t) { same(t) } else { 77 });
    }
    all("setp.lt.s32 %p2, %r3, 0; vote.sync.ballot.b32 %r0, %p2, 0xff0;", 0xf0);
    all("setp.lt.s32 %p2, %r3, 9; vote.sync.uni.pred %p3, %p2, 0xff0; selp.u32 %r0, 1, 0, %p3;", 1);
}

/// The sum of the halves of a word, 100 at first, that all threads have changed by an atomic.
fn folded(space: &str, body: &str) -> u32 {
    let word = at(space);
    let text = format!(
        "mov.u64 %d3, s; cvta.shared.u64 %d4, %d3; setp.eq.u32 %p1, %r1, 0; mov.u64 %d5, 100; cvt.u64.u32 %d6, %r1;\n\
         sub.u32 %r2, %r1, 50; cvt.s64.s32 %d7, %r2; @%p1 st{space} [{word}], %d5; bar.sync 0;\n{body}\nbar.sync 0;\n\
         ld{space} %d8, [{word}]; mov.b64 {{%r5, %r6}}, %d8; add.u32 %r0, %r5, %r6;"
    );
    let got = run(&text).unwrap_or_else(|fault| panic!("{body}: {fault}"));
    assert!(got.iter().all(|v| *v == got[0]), "{body}: {got:?}");
    got[0]
}

/// The register with the word's address in this space.
fn at(space: &str) -> &'static str {
    match space {
        ".shared.u64" => "%d3",
        ".global.u64" => "%d2",
        _ => "%d4",
    }
}

#[test]
fn atomics_of_every_operation_type_scope_and_space() {
    let n = THREADS as i64;
    let sum: i64 = (0..n).sum();
    let halves = |v: u64| (v as u32).wrapping_add((v >> 32) as u32);
    let cases: Vec<(&str, u64)> = vec![
        ("add.u32 [A], %r1;", (100 + sum) as u64),
        ("add.s32 [A], %r2;", (100 + sum - 50 * n) as u64 & 0xffff_ffff),
        ("add.u64 [A], %d6;", (100 + sum) as u64),
        ("min.u32 [A], %r2;", 0),
        ("max.u32 [A], %r2;", u64::from(u32::MAX)),
        ("min.s32 [A], %r2;", u64::from(-50i32 as u32)),
        ("max.s32 [A], %r1;", 127),
        ("min.u64 [A], %d6;", 0),
        ("max.u64 [A], %d7;", u64::MAX),
        ("min.s64 [A], %d7;", -50i64 as u64),
        ("max.s64 [A], %d7;", 100),
        ("and.b32 [A], %r1;", 0),
        ("or.b32 [A], %r1;", 127),
        ("xor.b32 [A], %r1;", 100),
        ("and.b64 [A], %d6;", 0),
        ("or.b64 [A], %d6;", 127),
        ("xor.b64 [A], %d7;", 100 ^ (0..n).fold(0, |x, t| x ^ (t - 50)) as u64),
        // 100 is above 40: 0 is next, then the 127 others count from there; downwards 40 is next.
        ("inc.u32 [A], 40;", 127 % 41),
        ("dec.u32 [A], 40;", 40 - 127 % 41),
    ];
    let scopes = ["", ".relaxed.cta", ".relaxed.gpu", ".relaxed.sys"];
    for (turn, space) in [".global.u64", ".shared.u64", ".u64"].into_iter().enumerate() {
        let prefix = space.strip_suffix(".u64").unwrap_or_default();
        for (number, (body, want)) in cases.iter().enumerate() {
            let scope = scopes[(number + turn) % scopes.len()];
            let name = body.replace('A', at(space));
            let red = format!("red{scope}{prefix}.{name}");
            assert_eq!(folded(space, &red), halves(*want), "{red}");
            let (op, rest) = name.split_once(' ').unwrap();
            let old = if op.ends_with("64") { "%d9" } else { "%r7" };
            let atom = format!("atom{scope}{prefix}.{op} {old}, {rest}");
            assert_eq!(folded(space, &atom), halves(*want), "{atom}");
        }
    }
}

#[test]
fn words_are_exchanged_and_compared_in_every_width() {
    // A lock of 16, 32 and 64 bits: each thread adds its number in turn, to a word that is no atomic's.
    for (bits, one, zero, old) in [(16, "%h1", "%h2", "%h3"), (32, "%r8", "%r9", "%r7"), (64, "%d10", "%d11", "%d9")] {
        let body = format!(
            "mov.b{bits} {one}, 1; mov.b{bits} {zero}, 0; mov.u32 %r2, s; setp.eq.u32 %p1, %r1, 0;\n\
             @%p1 st.shared.u64 [%r2], 0; @%p1 st.shared.u64 [%r2+8], 0; bar.sync 0; mov.u32 %r3, 0;\n\
             try: atom.acquire.cta.shared.cas.b{bits} {old}, [%r2], {zero}, {one}; setp.ne.s{bits} %p2, {old}, 0; @%p2 bra try;\n\
             ld.volatile.shared.u32 %r4, [%r2+8]; add.u32 %r4, %r4, %r1; st.volatile.shared.u32 [%r2+8], %r4; membar.cta;\n\
             {}\nbar.sync 0; ld.shared.u32 %r0, [%r2+8];",
            if bits == 16 {
                format!("atom.release.cta.shared.cas.b16 {old}, [%r2], {one}, {zero};")
            } else {
                format!("atom.release.cta.shared.exch.b{bits} {old}, [%r2], {zero};")
            }
        );
        check(&body, |_| (0..THREADS as u32).sum());
    }
    let floats = [
        "cvt.rn.f32.u32 %f0, %r1; atom.global.add.f32 %f1, [%d2], %f0; bar.sync 0; ld.global.f32 %f2, [%d2]; cvt.rzi.u32.f32 %r0, %f2;",
        "cvt.rn.f64.u32 %e0, %r1; red.global.add.f64 [%d2], %e0; bar.sync 0; ld.global.f64 %e2, [%d2]; cvt.rzi.u32.f64 %r0, %e2;",
    ];
    for body in floats {
        check(body, |_| (0..THREADS as u32).sum());
    }
}

#[test]
fn sums_in_global_memory_are_without_numbers_below_the_smallest_normal_one() {
    // What is there, what is added, and the sum without such numbers and with them.
    for (there, added, flushed, kept) in [
        (0x0000_0001u32, 0x8000_0002u32, 0u32, 0x8000_0001u32),
        (0x0080_0000, 0x8080_0001, 0x8000_0000, 0x8000_0001),
        (0x807f_ffff, 0x8000_0000, 0x8000_0000, 0x807f_ffff),
        (0x0040_0000, 0x0040_0000, 0, 0x0080_0000),
        (0x3f80_0000, 0x0000_0001, 0x3f80_0000, 0x3f80_0000),
        (0x8080_0000, 0x007f_ffff, 0x8080_0000, 0x8000_0001),
    ] {
        let numbers =
            format!("mov.b32 %f1, {there}; mov.b32 %f2, {added}; mov.u64 %d3, s; mad.wide.u32 %d3, %r1, 8, %d3;");
        for (space, address, ftz, sum) in [
            (".global", "%d1", "", flushed),
            ("", "%d1", "", flushed),
            (".global", "%d1", ".noftz", kept),
            ("", "%d1", ".noftz", kept),
            (".shared", "%d3", "", kept),
            ("", "%d4", "", kept),
        ] {
            let begin = format!("{numbers} cvta.shared.u64 %d4, %d3; st{space}.f32 [{address}], %f1;");
            let body = format!("{begin} red{space}.add{ftz}.f32 [{address}], %f2; ld{space}.b32 %r0, [{address}];");
            check(&body, |_| sum);
            let body =
                format!("{begin} atom{space}.add{ftz}.f32 %f3, [{address}], %f2; ld{space}.b32 %r2, [{address}];");
            check(&format!("{body} mov.b32 %r0, %f3; xor.b32 %r0, %r0, %r2;"), |_| there ^ sum);
        }
        for (ftz, sum) in [("", flushed), (".noftz", kept)] {
            let first = "setp.ne.u32 %p1, %r1, 0; @%p1 bra end;";
            let body = format!(
                "{numbers} {first} st.global.f32 [%d2+4], %f1; red.global.add{ftz}.v2.f32 [%d2], {{%f1, %f2}};\n\
                 ld.global.b32 %r0, [%d2+4];\nend:"
            );
            check(&body, |t| if t == 0 { sum } else { 0 });
        }
    }
}

#[test]
fn clocks_go_on_while_a_thread_sleeps() {
    for (clock, ty, register) in
        [("%clock64", "u64", "%d"), ("%globaltimer", "u64", "%d"), ("%clock", "u32", "%r"), ("%clock_hi", "u32", "%r")]
    {
        let [from, to, spent] = [3, 4, 5].map(|n| format!("{register}{n}"));
        // 2^32 ns pass seldom: what the upper half of a clock shows does not fall.
        let more = if clock == "%clock_hi" { "ge" } else { "gt" };
        let body = format!(
            "mov.{ty} {from}, {clock}; mov.u32 %r6, 200;\nsleeps: nanosleep.u32 1000; sub.u32 %r6, %r6, 1;\n\
             setp.ne.u32 %p1, %r6, 0; @%p1 bra sleeps; mov.{ty} {to}, {clock}; sub.{ty} {spent}, {to}, {from};\n\
             setp.{more}.s{} %p2, {spent}, 0; selp.u32 %r0, 1, 0, %p2;",
            &ty[1..]
        );
        check(&body, |_| 1);
    }
}

#[test]
fn an_address_tells_its_space() {
    let addresses = "mov.u64 %d3, s; cvta.shared.u64 %d3, %d3; mov.u64 %d4, own; cvta.local.u64 %d4, %d4; st.u64 [%d4], 5;\n\
         mov.u64 %d5, fixed; cvta.const.u64 %d5, %d5; mov.u64 %d6, few+2; mov.u64 %d7, beside; add.u64 %d8, %d5, 15;\n\
         add.u64 %d9, %d5, 16; add.u64 %d10, %d5, -1; add.u64 %d11, %d6, 1;\n";
    for (address, names) in [
        ("%d3", ["shared", "shared::cta", "shared::cluster"].as_slice()),
        ("%d4", &["local"]),
        ("%d2", &["global"]),
        // Constants, from their first bytes to their last, and what lies between them.
        ("%d5", &["const"]),
        ("%d8", &["const"]),
        ("%d6", &["const"]),
        ("%d7", &["global"]),
        ("%d9", &["global"]),
        ("%d10", &["global"]),
        ("%d11", &["global"]),
    ] {
        for space in ["shared", "shared::cta", "shared::cluster", "local", "global", "const", "param"] {
            let body = format!("{addresses}isspacep.{space} %p1, {address}; selp.u32 %r0, 1, 0, %p1;");
            check(&body, |_| u32::from(names.contains(&space)));
        }
    }
}

#[test]
fn a_barrier_that_some_never_reach_names_who_waits() {
    // The first warp has ended; the others wait for it.
    let text = run("setp.lt.u32 %p1, %r1, 32; @%p1 bra end;\nbar.sync 5, 128;\nend:").unwrap_err().to_string();
    for part in
        ["barrier 5 cannot complete: 96 of 128 threads have come, in k, block (0,0,0), thread (32,0,0)", "PTX line"]
    {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn numbers_are_packed_in_few_bits() {
    // From thread 0 on: numbers on both sides of each range.
    let numbers =
        "mul.lo.u32 %r2, %r1, %r1; sub.s32 %r2, %r2, 300; mul.lo.s32 %r3, %r1, -3; mov.u32 %r4, 0xcafe1234;\n";
    let a = |t: u32| (t * t) as i32 - 300;
    let b = |t: u32| t as i32 * -3;
    for (ty, bits, range) in [
        ("u8", 8, 0..=255),
        ("s8", 8, -128..=127),
        ("u4", 4, 0..=15),
        ("s4", 4, -8..=7),
        ("u2", 2, 0..=3),
        ("s2", 2, -2..=1),
    ] {
        let cut = |v: i32| v.clamp(*range.start(), *range.end()) as u32 & ((1 << bits) - 1);
        let body = format!("{numbers}cvt.pack.sat.{ty}.s32.b32 %r0, %r2, %r3, %r4;");
        check(&body, |t| 0xcafe_1234 << (2 * bits) | cut(a(t)) << bits | cut(b(t)));
    }
    let wide = format!("{numbers}mul.lo.s32 %r2, %r2, 100; cvt.pack.sat.s16.s32 %r0, %r2, %r3;");
    check(&wide, |t| ((100 * a(t)).clamp(-32768, 32767) as u32) << 16 | b(t) as u32 & 0xffff);
    check("szext.wrap.s32 %r0, 0x1234fffb, %r1;", |t| {
        let width = t % 32;
        if width == 0 { 0 } else { ((0x1234_fffbu32 << (32 - width)) as i32 >> (32 - width)) as u32 }
    });
}

#[test]
fn tiles_change_their_rows_and_columns() {
    // Lane l holds 2l and 2l + 1: the element in row i and column j of the tile is 8i + j.
    let tile = "mov.u32 %r2, %laneid; mad.lo.u32 %r3, %r2, 0x00020002, 0x00010000; setp.lt.u32 %p1, %r1, 32; @!%p1 bra end;\n\
        mov.u32 %r4, s; and.b32 %r5, %r2, 15; mad.lo.u32 %r5, %r5, 16, %r4; add.u32 %r6, %r3, 0x01000100;\n";
    let pair = |low: u32, high: u32| low | high << 16;
    let row = |l: u32| (l / 4, l % 4 * 2);
    let first = |body: &str, want: &dyn Fn(u32) -> u32| {
        check(&format!("{tile}{body}\nend:"), |t| if t < 32 { want(t) } else { 0 });
    };
    first("movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r3;", &|l| {
        let (i, j) = row(l);
        pair(8 * j + i, 8 * (j + 1) + i)
    });
    // What lies in memory behind it is read word by word: two tiles of 32 words.
    let word = "mad.lo.u32 %r7, %r2, 4, %r4; ld.shared.u32 %r8, [%r7]; ld.shared.u32 %r9, [%r7+128]; mad.lo.u32 %r0, %r9, 3, %r8;";
    let both = |one: u32| (one + 0x0100_0100).wrapping_mul(3).wrapping_add(one);
    first(&format!("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r5], {{%r3, %r6}}; bar.warp.sync -1; {word}"), &|l| {
        both(pair(2 * l, 2 * l + 1))
    });
    first(
        &format!("stmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 [%r5], {{%r3, %r6}}; bar.warp.sync -1; {word}"),
        &|l| {
            let (i, j) = row(l);
            both(pair(8 * j + i, 8 * (j + 1) + i))
        },
    );
    first(
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r3}; bar.warp.sync -1;\n\
         ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r7}, [%r5]; movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r7;",
        &|l| pair(2 * l, 2 * l + 1),
    );
}

#[test]
fn a_kernel_for_clusters_of_several_blocks_is_refused_and_no_other_one() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .visible .entry one() .explicitcluster .reqnctapercluster 1, 1, 1\n{\nret;\n}\n\
        .visible .entry two() .explicitcluster .reqnctapercluster 2, 1, 1 .maxntid 64\n{\nret;\n}\n\
        .visible .entry old() .maxntid 64, 1, 1 .maxnctapersm 2\n{\nret;\n}\n";
    let module = Module::parse(text.as_bytes()).unwrap();
    let refused: Vec<_> = module.kernels().filter_map(|k| Some((k.name.as_str(), k.unsupported.clone()?))).collect();
    let [("two", error)] = refused.as_slice() else { panic!("{refused:?}") };
    assert_eq!((error.line, error.unsupported.as_deref()), (8, Some(".reqnctapercluster of 2 blocks")));
}

#[test]
fn bytes_are_packed_into_a_register() {
    let bytes = "cvt.u16.u32 %h0, %r1; add.u16 %h1, %h0, 256; mov.b16 %h2, 0x1ff; mov.b16 %h3, 7;\n";
    check(&format!("{bytes}mov.b32 %r0, {{%h0, %h1, %h2, %h3}};"), |t| 0x07ff_0000 | t << 8 | t);
    check(&format!("{bytes}mov.b16 %h4, {{%h2, %h0}}; cvt.u32.u16 %r0, %h4;"), |t| t << 8 | 0xff);
}

#[test]
fn variables_are_declared_in_lists() {
    let text = ".version 9.0\n.target sm_75\n.address_size 64\n.shared .b32 first, second[2];\n\
        .visible .entry k(.param .u64 out)\n{\n.shared .b32 third, fourth;\n.global .b32 fifth = 5, sixth = 6;\n\
        .reg .b32 %r<4>; .reg .b64 %d;\nld.param.u64 %d, [out]; st.shared.u32 [second+4], 2; st.shared.u32 [fourth], 4;\n\
        ld.shared.u32 %r0, [second+4]; ld.shared.u32 %r1, [fourth]; ld.global.u32 %r2, [sixth];\n\
        st.global.u32 [%d], %r0; st.global.u32 [%d+4], %r1; st.global.u32 [%d+8], %r2;\nret;\n}\n";
    let d = Device::new(1);
    let (m, out) = (d.load(text), d.alloc(12));
    d.launch(&m, "k", [1; 3], [1; 3], &Params::new().u64(out)).unwrap();
    assert_eq!(d.download::<u32>(out, 3), [2, 4, 6]);
}

/// A block counts in a word as long as another has not seen it change between two loads that stand side by side.
#[test]
fn volatile_loads_are_each_made() {
    for way in ["volatile.global", "relaxed.gpu.global", "acquire.gpu.global"] {
        let text = format!(
            ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 words)\n{{\n\
             .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %d;\nld.param.u64 %d, [words]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, 0;\n\
             setp.ne.u32 %p0, %r0, 0; @%p0 bra count;\n\
             look: add.u32 %r1, %r1, 1;\n\
             ld.{way}.u32 %r2, [%d]; xor.b32 %r4, %r1, %r2; mul.lo.u32 %r4, %r4, %r4; ld.{way}.u32 %r3, [%d];\n\
             setp.ne.u32 %p1, %r2, %r3; setp.gt.u32 %p2, %r1, 200000000; or.pred %p1, %p1, %p2; @!%p1 bra look;\n\
             st.volatile.global.u32 [%d+4], 1; @%p2 ret; st.global.u32 [%d+8], 1; ret;\n\
             count: add.u32 %r1, %r1, 1; st.volatile.global.u32 [%d], %r1; ld.volatile.global.u32 %r2, [%d+4];\n\
             setp.eq.u32 %p1, %r2, 0; @%p1 bra count;\nret;\n}}\n"
        );
        let d = Device::new(2);
        let (m, words) = (d.load(&text), d.upload(&[0u32; 3]));
        d.launch(&m, "k", [2, 1, 1], [1; 3], &Params::new().u64(words)).unwrap();
        assert_eq!(d.download::<u32>(words, 3)[2], 1, "{way}: never saw it change");
    }
}
