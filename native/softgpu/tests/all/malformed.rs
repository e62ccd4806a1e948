//! Whatever the bytes are, reading them ends, with a place or with kernels that end: broken variants of every checked-in
//! kernel, and of random programs. `SLUICE_FUZZ_SECONDS` and `SLUICE_FUZZ_FROM` are those of `fuzz.rs`.

use crate::common::{Device, Params, Random, kernels};
use crate::fuzz::{Given, number, program};
use sluice_softgpu::{LoadedModule, Module, OPCODES, PtxError};
use std::collections::HashSet;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

fn corpus() -> Vec<Vec<u8>> {
    let mut names: Vec<_> = std::fs::read_dir(kernels()).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "ptx"));
    names.sort();
    assert!(names.len() > 15);
    names.iter().map(|p| std::fs::read(p).unwrap()).collect()
}

#[test]
fn every_kernel_of_the_corpus_is_supported() {
    for mut text in corpus() {
        // Images of the driver API end in NULs.
        text.extend([0; 3]);
        let module = Module::parse(&text).unwrap_or_else(|e| panic!("{e}"));
        assert!(module.kernels().count() > 0);
        for kernel in module.kernels() {
            assert_eq!(kernel.unsupported, None, "{}", kernel.name);
        }
    }
}

/// How long those go on that find more the longer they do.
fn time() -> Duration {
    Duration::from_secs(number("SLUICE_FUZZ_SECONDS").unwrap_or(4))
}

/// How long reading one text may take.
const READ: Duration = Duration::from_secs(2);
/// How long a kernel may run, and a launch with all that belongs to it take: compiling, on a machine with other work.
const RUN: Duration = Duration::from_millis(250);
const LAUNCH: Duration = Duration::from_secs(30);

/// Does the work on a thread of its own; a test whose work does not end fails.
fn within<T: Send + 'static>(time: Duration, text: &[u8], work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        let _ = tell.send(work());
    });
    match told.recv_timeout(time) {
        Ok(done) => done,
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            let _ = worker.join();
            panic!("a panic on\n{}", String::from_utf8_lossy(text))
        }
        Err(_) => panic!("no end after {time:?} of\n{}", String::from_utf8_lossy(text)),
    }
}

/// Reads texts, whatever they are, and launches what of them can be read.
struct Trial {
    device: Arc<Device>,
    data: u64,
    r: Random,
    refused: u32,
    launches: u32,
    faults: u32,
}

impl Trial {
    fn new(seed: u64) -> Trial {
        let (device, data) = Trial::device();
        // Each test and each beginning has a sequence of its own.
        let seed =
            (number("SLUICE_FUZZ_FROM").unwrap_or(0).wrapping_mul(64) + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Trial { device, data, r: Random::new(seed), refused: 0, launches: 0, faults: 0 }
    }

    fn device() -> (Arc<Device>, u64) {
        let device = Device::with_heap(2, 1 << 20);
        device.engine.set_limit(Some(RUN));
        let data = device.upload(&[1u32; 4096]);
        (Arc::new(device), data)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.r.bits() >> 8) as usize % end
    }

    /// Reads the text; an error names a place in it.
    fn read(&mut self, text: &[u8]) -> Option<Module> {
        let own = text.to_vec();
        match within(READ, text, move || Module::parse(&own)) {
            Ok(module) => {
                module.kernels().filter_map(|k| k.unsupported.as_ref()).for_each(|error| names_a_place(error, text));
                Some(module)
            }
            Err(error) => {
                names_a_place(&error, text);
                self.refused += 1;
                None
            }
        }
    }

    /// Reads the text and launches its first kernels, which end, with these parameters and, where they want more, any.
    fn run(&mut self, text: &[u8], given: &Params) {
        let Some(module) = self.read(text) else { return };
        if module.globals().any(|g| g.size > 1 << 20) {
            return;
        }
        let device = Arc::clone(&self.device);
        let Ok(module) = LoadedModule::new(Arc::new(module), |g| Ok::<_, ()>(device.alloc(g.size))) else { return };
        let kernels: Vec<_> = module.module().kernels().take(2).cloned().collect();
        let module = Arc::new(module);
        for kernel in kernels {
            let mut params = given.clone();
            while params.0.len() < kernel.param_bytes as usize {
                params = params.u64([self.data, self.data, self.data, 64, 0, 4, 1 << 33][self.below(7)]);
            }
            let (device, module) = (Arc::clone(&self.device), Arc::clone(&module));
            let done =
                within(LAUNCH, text, move || device.launch(&module, &kernel.name, [2, 1, 1], [64, 1, 1], &params));
            self.launches += 1;
            self.faults += u32::from(done.is_err());
        }
    }

    fn report(&self) {
        println!("{} refused, {} launches, {} faults", self.refused, self.launches, self.faults);
        assert!(self.refused > 0 && self.launches > self.faults && self.faults > 0);
    }
}

fn names_a_place(error: &PtxError, text: &[u8]) {
    let line = text.split(|b| *b == b'\n').nth((error.line as usize).wrapping_sub(1));
    let inside = line.is_some_and(|line| (1..=line.len() + 1).contains(&(error.column as usize)));
    assert!(inside, "{error}, which is no place of\n{}", String::from_utf8_lossy(text));
    assert!(!error.message.is_empty());
}

/// How many braces are open at the end of a text.
fn depth(text: &[u8]) -> i32 {
    let code = text.split(|b| *b == b'\n').map(|line| {
        let end = line.windows(2).position(|two| two == b"//").unwrap_or(line.len());
        &line[..end]
    });
    code.flatten().map(|b| i32::from(*b == b'{') - i32::from(*b == b'}')).sum()
}

#[test]
fn truncated_text() {
    let (mut t, mut inside) = (Trial::new(1), 0);
    for text in corpus() {
        for _ in 0..60 {
            let cut = t.below(text.len());
            let text = &text[..cut];
            if depth(text) > 0 {
                inside += 1;
                assert!(t.read(text).is_none(), "accepted:\n{}", String::from_utf8_lossy(text));
            } else {
                t.run(text, &Params::new());
            }
        }
    }
    assert!(inside > 500);
}

#[test]
fn changed_bytes() {
    let mut t = Trial::new(2);
    for text in corpus() {
        for round in 0..60 {
            let mut text = text.clone();
            for _ in 0..=round % 8 {
                let (at, other) = (t.below(text.len()), t.below(text.len()));
                text[at] = if round % 2 == 0 { text[other] } else { t.below(128) as u8 };
            }
            t.run(&text, &Params::new());
        }
    }
    t.report();
}

#[test]
fn moved_and_repeated_lines() {
    let mut t = Trial::new(3);
    for text in corpus() {
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for _ in 0..40 {
            let mut lines = lines.clone();
            for _ in 0..4 {
                let (from, to) = (t.below(lines.len()), t.below(lines.len()));
                lines[to] = lines[from];
            }
            t.run(lines.join("\n").as_bytes(), &Params::new());
        }
    }
    t.report();
}

#[test]
fn tokens_swapped_between_instructions() {
    let mut t = Trial::new(4);
    for text in corpus() {
        let text = String::from_utf8(text).unwrap();
        let words: Vec<&str> = text.split_inclusive([' ', '\t', '\n', ',']).collect();
        for _ in 0..40 {
            let mut words = words.clone();
            // Most texts with several are refused: one is launched more often.
            for _ in 0..=t.below(3) {
                let (a, b) = (t.below(words.len()), t.below(words.len()));
                words.swap(a, b);
            }
            t.run(words.concat().as_bytes(), &Params::new());
        }
    }
    t.report();
}

/// Kernels whose numbers (offsets, registers, sizes) were changed compute anything or fail; whoever runs them does not.
#[test]
fn changed_numbers_in_programs_that_run() {
    let corpus: Vec<_> = corpus().into_iter().filter(|text| text.len() < 12_000).collect();
    let (began, mut t) = (Instant::now(), Trial::new(5));
    while began.elapsed() < time() {
        (t.device, t.data) = Trial::device();
        for text in &corpus {
            let mut text = text.clone();
            for _ in 0..=t.below(3) {
                let at = t.below(text.len());
                if let Some(digit) = text[at..].iter_mut().find(|b| b.is_ascii_digit()) {
                    *digit = b'0' + t.below(10) as u8;
                }
            }
            t.run(&text, &Params::new());
        }
    }
    t.report();
}

/// These have every instruction.
#[test]
fn words_and_numbers_out_of_place_in_random_programs() {
    let (began, mut t) = (Instant::now(), Trial::new(6));
    while began.elapsed() < time() {
        (t.device, t.data) = Trial::device();
        // Compiling counts, and there is more to compile than in the corpus.
        t.device.engine.set_limit(Some(Duration::from_secs(1)));
        for _ in 0..20 {
            let program = program(t.r.bits() >> 8);
            let given = Given::new(&t.device, &program);
            let text = program.ptx();
            let mut words: Vec<&str> = text.split_inclusive([' ', '\n', ',', '.', '[', '{']).collect();
            for _ in 0..=t.below(3) {
                let (a, b) = (t.below(words.len()), t.below(words.len()));
                match t.below(3) {
                    0 => words.swap(a, b),
                    1 => words[a] = words[b],
                    _ => words[a] = "",
                }
            }
            let mut text = words.concat().into_bytes();
            for _ in 0..t.below(3) {
                let at = t.below(text.len());
                if let Some(digit) = text[at..].iter_mut().find(|b| b.is_ascii_digit()) {
                    *digit = b'0' + t.below(10) as u8;
                }
            }
            t.run(&text, &given.params);
        }
    }
    t.report();
}

/// Every instruction of random programs without its last operand, and with it twice: each takes so many and no others.
#[test]
fn operands_left_out_and_repeated() {
    // These have operands that may be left out.
    let optional = [
        "alloca", "atom", "bar", "barrier", "call", "cp", "cvt", "lop3", "max", "mbarrier", "min", "red", "set",
        "setp", "wmma",
    ];
    let (mut t, mut seen, mut refused) = (Trial::new(7), HashSet::new(), 0);
    for seed in 0..30 {
        let text = program(seed).ptx();
        let mut end = 0;
        for statement in text.split_inclusive(';') {
            end += statement.len();
            let line = statement.trim_end_matches(';').rsplit('\n').next().unwrap_or_default().trim_start();
            let line = if line.starts_with('@') { line.split_once(' ').map_or("", |two| two.1) } else { line };
            let (name, operands) = line.split_once(' ').unwrap_or_default();
            let opcode = name.split('.').next().unwrap_or_default();
            if !OPCODES.contains(&opcode) || optional.contains(&opcode) || !seen.insert(name.to_owned()) {
                continue;
            }
            let mut open = 0;
            let comma = operands.rfind(|c| {
                open += i32::from(matches!(c, ']' | '}' | ')')) - i32::from(matches!(c, '[' | '{' | '('));
                c == ',' && open == 0
            });
            let (others, last) = comma.map_or(("", operands), |at| (&operands[..at], &operands[at + 1..]));
            let start = end - 1 - operands.len();
            for changed in [others.to_owned(), format!("{operands}, {last}")] {
                let changed = [&text[..start], &changed, &text[end - 1..]].concat();
                let module = t.read(changed.as_bytes());
                let taken = module.is_some_and(|module| module.kernels().all(|kernel| kernel.unsupported.is_none()));
                assert!(!taken, "taken, and {changed:?} of {line}", changed = &changed[start..][..40]);
                refused += 1;
            }
        }
    }
    assert!(refused > 300, "{refused}");
}

#[test]
fn numbers_that_are_too_large() {
    for line in [
        ".reg .b32 %r<4000000000>;",
        ".reg .b64 %r<65535>;\n.reg .b64 %q<65535>;",
        ".local .b8 x[99999999999];",
        ".local .b8 x[4000000000];",
        ".shared .b8 s[9999999999][99999999];",
        ".param .b8 p[4294967295];",
        ".reg .b32 %r<2>;\nadd.u32 %r1, %r1, 0xffffffffffffffffff;",
        ".local .align 3 .b8 x[4];",
    ] {
        let text = format!(".version 7.5\n.target sm_75\n.address_size 64\n.entry k()\n{{\n{line}\nret;\n}}\n");
        assert!(Module::parse(text.as_bytes()).is_err(), "{line}");
    }
    for line in [".global .b8 g[99999999999999999];", ".global .align 0 .b8 g[4] = {1, 2, 3, 4, 5, 6, 7};"] {
        let _ = Module::parse(format!(".version 7.5\n.target sm_75\n{line}\n").as_bytes());
    }
    // Each ends, and within the time that reading may take.
    let many = |count: usize, one: &str| one.repeat(count);
    for text in [
        many(300_000, "{"),
        many(200_000, "{") + &many(200_000, "}"),
        ".local .b8 x<4294967295>[0];".to_string(),
        ".param .b8 x<4294967295>[0];".to_string(),
        format!("mov.u32 %r1, %r{}1;", many(200_000, "0")),
        format!("mov.u32 %r1, {};", many(400_000, "9")),
        format!("mov.u32 %r1, {}1;", many(400_000, "-")),
        format!("mov.u32 %r1, {}", many(400_000, "(")),
        format!("mov.u32 %r1, 1{};", many(200_000, " ? 1 : 1")),
        format!("mov.b64 %r1, {{{}%r1}};", many(200_000, "%r1, ")),
        format!("call f, ({}0);", many(200_000, "0, ")),
        format!("add{} %r1, %r1, %r1;", many(200_000, ".nothing")),
        format!("t: .branchtargets {}t;\nbrx.idx %r1, t;", many(200_000, "t, ")),
        "bra nowhere;".to_string(),
        "/* without an end".to_string(),
        ".pragma \"without an end".to_string(),
        many(200_000, "/*"),
    ] {
        let text = format!(
            ".version 7.5\n.target sm_75\n.address_size 64\n.entry k()\n{{\n.reg .b32 %r<9>;\n{text}\nret;\n}}\n"
        );
        let own = text.clone();
        let read = within(READ, &text.as_bytes()[..200.min(text.len())], move || Module::parse(own.as_bytes()));
        let refused = read.map(|module| module.kernels().find_map(|kernel| kernel.unsupported.clone()));
        let error = refused.unwrap_or_else(Some);
        assert!(error.is_some_and(|error| error.line > 6), "{}", &text[..200.min(text.len())]);
    }
    // Aliases that would repeat more than fits, and words without an end.
    let large = format!(".func f()\n{{\n.reg .b32 %r<2>;\n{}ret;\n}}\n", many(1000, "add.u32 %r1, %r1, 1;\n"));
    let aliases: String = (0..5000).map(|k| format!(".func a{k}();\n.alias a{k}, f;\n")).collect();
    for text in [large + &aliases, many(400_000, ".visible ")] {
        let text = format!(".version 7.5\n.target sm_75\n.address_size 64\n{text}");
        let own = text.clone();
        let read = within(Duration::from_secs(20), &text.as_bytes()[..200], move || Module::parse(own.as_bytes()));
        assert!(read.is_err(), "{}", &text[..200]);
    }
    // What is large and right is read.
    let functions: String = (0..3000)
        .map(|k| format!(".func f{k}() {{ call f{}; ret; }}\n.entry k{k}() {{ call f{k}; ret; }}\n", (k + 1) % 3000))
        .collect();
    let declared: String = (0..3000).map(|k| format!(".func f{k}();\n")).collect();
    let labels: String = (0..50_000).map(|k| format!("l{k}: bra l{};\n", (k + 7) % 50_000)).collect();
    let zeros: String = (0..40).map(|k| format!(".global .b8 z{k}[2][2000000] = {{{{1}}, {{1}}}};\n")).collect();
    for (text, fits) in [
        (declared + &functions, true),
        (format!(".entry k() {{\n{labels}ret;\n}}\n"), true),
        (zeros.lines().take(10).collect::<Vec<_>>().join("\n"), true),
        (zeros, false),
    ] {
        let text = format!(".version 7.5\n.target sm_75\n.address_size 64\n{text}");
        let own = text.clone();
        let read = within(Duration::from_secs(20), &text.as_bytes()[..200], move || Module::parse(own.as_bytes()));
        assert_eq!(read.map(drop).map_err(|error| error.message).is_ok(), fits, "{}", &text[..200]);
    }
    let nested = "[".repeat(100_000);
    let text = format!(".version 7.5\n.target sm_75\n.entry k()\n{{\nmov.u32 {nested}\n}}\n");
    assert!(Module::parse(text.as_bytes()).is_err());
}
