//! Loads and stores: of the table, and of memories that a thread has for itself.

use super::Kind::*;
use super::exact::F64;
use super::{Block, EACH, Kind, Maker, OWN, Statement, TABLE, Text, name, put, spelled};

/// A memory of a thread's own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// Global memory, the threads' words side by side.
    Beside,
    /// Global memory, each thread's bytes together.
    Apart,
    Shared,
    Local,
}

use Area::*;

/// What a load or store moves: its type, and the registers that hold it.
#[derive(Clone, Copy)]
struct Moved {
    ty: &'static str,
    bytes: usize,
    signed: bool,
    kind: Kind,
}

const fn moved(ty: &'static str, bytes: usize, signed: bool, kind: Kind) -> Moved {
    Moved { ty, bytes, signed, kind }
}

const MOVED: [Moved; 20] = [
    moved("u8", 1, false, H),
    moved("s8", 1, true, R),
    moved("b8", 1, false, R),
    moved("s8", 1, true, H),
    moved("u8", 1, false, D),
    moved("u16", 2, false, H),
    moved("s16", 2, true, R),
    moved("b16", 2, false, H),
    moved("u16", 2, false, R),
    moved("s16", 2, true, D),
    moved("u32", 4, false, R),
    moved("s32", 4, true, R),
    moved("b32", 4, false, R),
    moved("s32", 4, true, D),
    moved("f32", 4, false, F),
    moved("f32", 4, false, F),
    moved("b32", 4, false, R),
    moved("u64", 8, false, D),
    moved("b64", 8, false, D),
    moved("f64", 8, false, E),
];

impl Moved {
    /// A value in memory, as the register holds it.
    fn loaded(&self, bytes: &[u8]) -> u64 {
        let value = bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let shift = 64 - 8 * self.bytes;
        let value = if self.signed { ((value << shift) as i64 >> shift) as u64 } else { value };
        match self.kind {
            H => value & 0xffff,
            D | E => value,
            _ => value & 0xffff_ffff,
        }
    }
}

/// Registers of an access, one after the other.
#[derive(Clone, Copy)]
struct Vector {
    moved: Moved,
    count: usize,
    first: usize,
}

impl Vector {
    fn random(maker: &mut Maker, most: usize) -> Vector {
        let moved = maker.of(&MOVED);
        let fits: Vec<usize> = [1, 1, 2, 4, 8]
            .into_iter()
            .filter(|count| count * moved.bytes <= most && (*count < 8 || moved.bytes == 4))
            .collect();
        Vector { moved, count: maker.of(&fits), first: maker.register() }
    }

    fn bytes(&self) -> usize {
        self.moved.bytes * self.count
    }

    fn register(&self, at: usize) -> usize {
        (self.first + at) % EACH
    }

    /// The modifiers from the vector on, and its registers.
    fn text(&self) -> (String, String) {
        let names: Vec<String> = (0..self.count).map(|at| name(self.moved.kind, self.register(at))).collect();
        match self.count {
            1 => (self.moved.ty.to_string(), names.concat()),
            count => (format!("v{count}.{}", self.moved.ty), format!("{{{}}}", names.join(", "))),
        }
    }
}

/// A load from the table: how it is accessed, and the register that says where; or the thread's number and so many words.
struct FromTable {
    vector: Vector,
    access: &'static str,
    index: Option<usize>,
    words: usize,
}

const TABLES: [&str; 10] = [
    ".global",
    ".global",
    ".global",
    ".const",
    ".global.nc",
    ".global.ca",
    ".volatile.global",
    ".relaxed.gpu.global",
    ".acquire.gpu.global",
    "",
];

pub fn make_table(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let access = maker.of(&TABLES);
    let vector = Vector::random(maker, if access == ".global" { 32 } else { 16 });
    // A thread's own place is aligned for single words.
    let index = (maker.coin() || vector.bytes() > 4 || access == ".const").then(|| maker.register());
    Some(Box::new(FromTable { vector, access, index, words: maker.pick(192) }))
}

impl Statement for FromTable {
    fn write(&self, text: &mut Text) {
        let (ty, registers) = self.vector.text();
        let (bytes, access) = (self.vector.bytes(), self.access);
        let Some(index) = self.index else {
            put!(text, "ld{access}.{ty} {registers}, [%a3+{}];", spelled(4 * self.words));
            return;
        };
        let base = if access == ".const" {
            put!(text, "mov.u64 %a5, fixed;");
            "%a5"
        } else {
            "%a0"
        };
        put!(text, "and.b32 %t6, %r{index}, {}; mad.wide.u32 %a6, %t6, {bytes}, {base};", TABLE / bytes - 1);
        put!(text, "ld{access}.{ty} {registers}, [%a6];");
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let Vector { moved, count, .. } = self.vector;
        for at in active {
            let lane = &mut block.lanes[*at];
            let first = match self.index {
                Some(index) => lane.get(R, index) as usize % (TABLE / self.vector.bytes()) * self.vector.bytes(),
                None => 4 * (lane.thread as usize + self.words),
            };
            for n in 0..count {
                let from = first + n * moved.bytes;
                lane.set(moved.kind, self.vector.register(n), moved.loaded(&block.table[from..from + moved.bytes]));
            }
        }
    }
}

/// A load or store of the thread's own memory.
struct Access {
    vector: Vector,
    store: bool,
    area: Area,
    /// By a generic address.
    generic: bool,
    order: &'static str,
    /// A place in units of the access, or the register that says which.
    place: usize,
    by_register: bool,
}

pub fn make_own(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let area = maker.of(&[Beside, Apart, Apart, Shared, Shared, Local, Local]);
    let mut vector = Vector::random(maker, 16);
    if area == Beside {
        let word = Moved { ty: "u32", bytes: 4, signed: false, kind: R };
        vector = Vector { moved: word, count: 1, ..vector };
    }
    let store = maker.coin();
    let strong = if store { ".release.gpu" } else { ".acquire.gpu" };
    let order =
        if area == Local || area == Beside { "" } else { maker.of(&["", "", "", ".volatile", ".relaxed.gpu", strong]) };
    let by_register = area != Beside && maker.coin();
    let place = if by_register { maker.register() } else { maker.pick(OWN / vector.bytes()) };
    let generic = area != Beside && maker.pick(3) == 0;
    Some(Box::new(Access { vector, store, area, generic, order, place, by_register }))
}

/// Writes the address of a byte of the thread's own memory: its base register, and the offset behind it.
pub fn address(text: &mut Text, area: Area, generic: bool) -> &'static str {
    match (area, generic) {
        (Beside, _) => "%a1",
        (Apart, _) => {
            put!(text, "mad.wide.u32 %a5, %t4, {OWN}, %a1; mad.wide.u32 %a5, %t0, {OWN}, %a5;");
            "%a5"
        }
        (Shared, false) => "%o0",
        (Shared, true) => "%o2",
        (Local, false) => "%o1",
        (Local, true) => "%o3",
    }
}

pub fn space(area: Area, generic: bool) -> &'static str {
    match area {
        _ if generic => "",
        Shared => ".shared",
        Local => ".local",
        _ => ".global",
    }
}

impl Statement for Access {
    fn write(&self, text: &mut Text) {
        let (ty, registers) = self.vector.text();
        let base = address(text, self.area, self.generic);
        let bytes = self.vector.bytes();
        let at = match self.area {
            Beside => {
                put!(
                    text,
                    "mad.lo.u32 %t6, %t4, {}, %t0; mul.wide.u32 %a6, %t6, 4; add.u64 %a6, {base}, %a6;",
                    self.place
                );
                "%a6".to_string()
            }
            _ if self.by_register => {
                put!(
                    text,
                    "and.b32 %t6, %r{}, {}; mad.wide.u32 %a6, %t6, {bytes}, {base};",
                    self.place,
                    OWN / bytes - 1
                );
                "%a6".to_string()
            }
            _ => format!("{base}+{}", spelled(self.place * bytes)),
        };
        let access = format!("{}{}", self.order, space(self.area, self.generic));
        if self.store && self.vector.moved.kind == E {
            // Which NaN it is stays open in registers, not in memory.
            for n in 0..self.vector.count {
                let from = self.vector.register(n);
                put!(
                    text,
                    "setp.nan.f64 %q0, %e{from}, %e{from}; selp.f64 %y{n}, 0d{:016X}, %e{from}, %q0;",
                    F64.nan()
                );
            }
            let registers = if self.vector.count == 1 { "%y0" } else { "{%y0, %y1}" };
            put!(text, "st{access}.{ty} [{at}], {registers};");
        } else if self.store {
            put!(text, "st{access}.{ty} [{at}], {registers};");
        } else {
            put!(text, "ld{access}.{ty} {registers}, [{at}];");
        }
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let Vector { moved, count, .. } = self.vector;
        for at in active {
            let lane = &mut block.lanes[*at];
            let places = OWN / self.vector.bytes();
            let place = if self.by_register { lane.get(R, self.place) as usize % places } else { self.place };
            for n in 0..count {
                let (from, register) = (place * self.vector.bytes() + n * moved.bytes, self.vector.register(n));
                if self.store {
                    let value = match lane.get(moved.kind, register) {
                        nan if moved.kind == E && f64::from_bits(nan).is_nan() => F64.nan(),
                        value => value,
                    };
                    let value = value.to_le_bytes();
                    lane.own[self.area as usize][from..from + moved.bytes].copy_from_slice(&value[..moved.bytes]);
                } else {
                    let value = moved.loaded(&lane.own[self.area as usize][from..from + moved.bytes]);
                    lane.set(moved.kind, register, value);
                }
            }
        }
    }
}

/// `cp.async` of the table to the thread's shared memory: bytes, how many of them are copied, from where, and to where.
struct Copy {
    bytes: usize,
    copied: usize,
    index: usize,
    place: usize,
}

pub fn make_copy(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let bytes = maker.of(&[4, 8, 16]);
    let copied = if maker.coin() { bytes } else { maker.pick(bytes + 1) };
    Some(Box::new(Copy { bytes, copied, index: maker.register(), place: maker.pick(OWN / bytes) * bytes }))
}

impl Statement for Copy {
    fn write(&self, text: &mut Text) {
        let Copy { bytes, copied, index, place } = self;
        put!(text, "and.b32 %t6, %r{index}, {}; mad.wide.u32 %a6, %t6, {bytes}, %a0;", TABLE / bytes - 1);
        let given = if copied == bytes { String::new() } else { format!(", {copied}") };
        put!(
            text,
            "cp.async.ca.shared.global [%o0+{place}], [%a6], {bytes}{given};\ncp.async.commit_group;\ncp.async.wait_group 0;"
        );
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        for at in active {
            let lane = &mut block.lanes[*at];
            let from = lane.get(R, self.index) as usize % (TABLE / self.bytes) * self.bytes;
            for n in 0..self.bytes {
                lane.own[Shared as usize][self.place + n] = if n < self.copied { block.table[from + n] } else { 0 };
            }
        }
    }
}

/// Where memory of a thread comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `alloca`, with `stackrestore` behind; accessed as local memory.
    Stack,
    /// `alloca`, left until the thread ends; accessed by generic addresses.
    Left,
    /// `malloc` and `free`.
    Heap,
}

/// Memory of the thread's own while the statements run: its number, how many words (the low four bits of the register
/// and one more), and where it comes from.
struct Scratch(usize, usize, Origin, Vec<Box<dyn Statement>>);

pub fn make_scratch(maker: &mut Maker, left: &mut usize) -> Option<Box<dyn Statement>> {
    if maker.depth >= 3 || *left <= 3 {
        return None;
    }
    let part = *left / 2;
    *left -= part;
    maker.scratches += 1;
    let (number, origin) = (maker.scratches, maker.of(&[Origin::Stack, Origin::Left, Origin::Heap]));
    maker.open.push((number, origin));
    let body = maker.block(part);
    maker.open.pop();
    Some(Box::new(Scratch(number, maker.register(), origin, body)))
}

impl Statement for Scratch {
    fn write(&self, text: &mut Text) {
        let (label, Scratch(number, words, origin, body)) = (text.label(), self);
        text.scratches = text.scratches.max(*number);
        put!(
            text,
            "and.b32 %m{number}, %r{words}, 15; add.u32 %m{number}, %m{number}, 1; mul.wide.u32 %a6, %m{number}, 4;"
        );
        match origin {
            Origin::Stack => put!(text, "stacksave.u64 %s{number}; alloca.u64 %k{number}, %a6;"),
            Origin::Left => put!(text, "alloca.u64 %k{number}, %a6, 64; cvta.local.u64 %k{number}, %k{number};"),
            Origin::Heap => put!(
                text,
                "{{ .param .b64 n; .param .b64 r; st.param.b64 [n], %a6; call (r), malloc, (n); \
                 ld.param.b64 %k{number}, [r]; }}"
            ),
        }
        let store = if *origin == Origin::Stack { "st.local" } else { "st" };
        put!(text, "mov.b32 %t6, 0;\n$fill{label}:\nmad.wide.u32 %a6, %t6, 4, %k{number}; {store}.u32 [%a6], %t6;");
        put!(text, "add.u32 %t6, %t6, 1; setp.lt.u32 %q0, %t6, %m{number};\n@%q0 bra $fill{label};");
        text.block(body, text.mask);
        match origin {
            Origin::Stack => put!(text, "stackrestore.u64 %s{number};"),
            Origin::Left => {}
            Origin::Heap => put!(text, "{{ .param .b64 p; st.param.b64 [p], %k{number}; call free, (p); }}"),
        }
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let Scratch(number, words, _, body) = self;
        for at in active {
            let lane = &mut block.lanes[*at];
            let words = (lane.get(R, *words) & 15) as u32 + 1;
            lane.scratches.insert(*number, (0..words).collect());
        }
        block.run(body, active);
    }
}

/// A word to or from such memory: the register whose remainder is the place, and the value.
struct ScratchAccess {
    number: usize,
    origin: Origin,
    store: bool,
    place: usize,
    value: usize,
}

pub fn make_scratch_access(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    if maker.open.is_empty() {
        return None;
    }
    let open = maker.open.clone();
    let (number, origin) = maker.of(&open);
    Some(Box::new(ScratchAccess {
        number,
        origin,
        store: maker.coin(),
        place: maker.register(),
        value: maker.register(),
    }))
}

impl Statement for ScratchAccess {
    fn write(&self, text: &mut Text) {
        let ScratchAccess { number, place, value, .. } = self;
        let space = if self.origin == Origin::Stack { ".local" } else { "" };
        put!(text, "rem.u32 %t6, %r{place}, %m{number}; mad.wide.u32 %a6, %t6, 4, %k{number};");
        if self.store {
            put!(text, "st{space}.u32 [%a6], %r{value};");
        } else {
            put!(text, "ld{space}.u32 %r{value}, [%a6];");
        }
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        for at in active {
            let lane = &mut block.lanes[*at];
            let (place, value) = (lane.get(R, self.place) as usize, lane.get(R, self.value) as u32);
            let Some(words) = lane.scratches.get_mut(&self.number) else { continue };
            let count = words.len();
            if self.store {
                words[place % count] = value;
            } else {
                let value = u64::from(words[place % count]);
                lane.set(R, self.value, value);
            }
        }
    }
}
