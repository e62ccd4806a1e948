//! Loads in compiled code.
//!
//! Quick: the lanes lie as [`super::hint`] guessed, side by side or at the same place; four lanes without a guess, within
//! 16 bytes (two lanes of 64 bits: each pair in its own 16), which takes one vector load and one shuffle.  General: each
//! lane by itself.  Either way the addresses are first compared with what is known to be mapped; what is not known is
//! looked up by [`super::runtime::load`].

use super::super::trail;
use super::emit::{Body, Emitter, Slot, flags, loose};
use super::plan::writes;
use super::recipe::*;
use super::runtime::{Environment, Site};
use crate::ir::*;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F32X4, F64, F64X2, I8, I8X16, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlags, Value};
use std::collections::HashMap;
use std::mem::offset_of;

/// How the addresses of a checked access lie, by the host's address for offset zero.
#[derive(Clone)]
pub enum Pattern {
    /// All lanes at one place.
    Same(Value),
    /// Side by side.
    Beside(Value),
    /// Within 16 bytes: where they begin, and how the bytes are shuffled.
    Near(Vec<(Value, Value)>),
}

/// A pattern, and the offsets for which it was checked: every multiple of the element's size from the first to the last.
pub struct Checked {
    low: i64,
    high: i64,
    pattern: Pattern,
}

impl Checked {
    /// Whether an access of elements of this size at such an offset was checked.
    fn covers(&self, offset: i64, size: u32) -> bool {
        (self.low..=self.high).contains(&offset) && (offset - self.low) % i64::from(size) == 0
    }
}

/// Patterns by the addresses without their offsets, the size of an element and the state space.
pub type Patterns = HashMap<(Vec<Value>, u32, Space), Vec<Checked>>;

/// Most bytes between the first and the last offset that are checked at once.
const MOST_REACH: i64 = 1 << 20;

/// The addresses of a group's access.
enum Lanes {
    Short(Value),
    Wide(Pair),
}

impl Lanes {
    /// The vectors, in the order of their lanes.
    fn vectors(&self) -> &[Value] {
        match self {
            Lanes::Short(v) => std::slice::from_ref(v),
            Lanes::Wide(v) => v,
        }
    }
}

/// Whether a load of lanes that lie near each other is made of whole vectors.
pub fn is_windowed(m: &Memory) -> bool {
    m.values.len() == 1 && matches!(m.space, Space::Global | Space::Const | Space::Shared | Space::Generic)
}

impl<'a> Emitter<'a, '_> {
    /// What is known of an access of `span` bytes.  Both bodies share it.
    pub fn site(&mut self, i: &Ins, span: u32) -> u32 {
        let memory = std::ptr::from_ref(&self.o.function.memories[i.e as usize]);
        let number = *self.o.of_memory.entry(i.e).or_insert(self.o.sites.len() as u32);
        match self.o.sites.get_mut(number as usize) {
            Some(site) => site.span = site.span.max(span),
            None => self.o.sites.push(Box::new(Site { memory, line: i.line, known: number, span })),
        }
        number
    }

    /// The addresses of all groups of a body, without the offset, in the order of their lanes.
    pub fn addresses(&mut self, body: &mut Body, address: &Address) -> Vec<Value> {
        let mut out = Vec::new();
        let group = body.group;
        for number in 0..body.groups {
            body.group = number;
            out.extend(self.address_lanes(body, address).vectors());
        }
        body.group = group;
        out
    }

    fn address_lanes(&mut self, body: &mut Body, address: &Address) -> Lanes {
        if address.frame {
            let v = self.int(body, ROW_LOCAL);
            Lanes::Wide([self.b.ins().uwiden_low(v), self.b.ins().uwiden_high(v)])
        } else if address.row == NONE {
            Lanes::Wide([splat64(&mut self.b, 0); 2])
        } else if address.wide {
            Lanes::Wide(self.long(body, address.row))
        } else {
            Lanes::Short(self.int(body, address.row))
        }
    }

    /// Whether an address, offset included, is known to be mapped for `span` bytes.  `small`: it cannot be near the end
    /// of 64 bits.
    pub fn is_known(&mut self, space: Space, site: u32, address: Value, span: u32, small: bool) -> Value {
        if space == Space::Shared && small {
            let last = self.b.ins().iadd_imm(address, i64::from(span) - 1);
            let len = self.field(offset_of!(Environment, shared_len));
            return self.b.ins().icmp(IntCC::UnsignedLessThan, last, len);
        }
        if space == Space::Shared {
            let len = self.field(offset_of!(Environment, shared_len));
            let room = self.b.ins().iadd_imm(len, 1 - i64::from(span));
            let none = self.b.ins().iconst(I64, 0);
            let room = self.b.ins().smax(room, none);
            return self.b.ins().icmp(IntCC::UnsignedLessThan, address, room);
        }
        let at = 16 * site as i32;
        let known = self.field(offset_of!(Environment, known));
        let low = self.b.ins().load(I64, loose(), known, at);
        let room = self.b.ins().load(I64, loose(), known, at + 8);
        let distance = self.b.ins().isub(address, low);
        self.b.ins().icmp(IntCC::UnsignedLessThan, distance, room)
    }

    /// Where an address of a state space lies in this process.
    pub fn host(&mut self, space: Space, address: Value) -> Value {
        if space != Space::Shared {
            return address;
        }
        let shared = self.field(offset_of!(Environment, shared));
        self.b.ins().iadd(address, shared)
    }

    /// `ld`, for all groups of the body.
    pub fn load(&mut self, body: &mut Body, i: &'a Ins, rest: &'a [Ins]) {
        let m = &self.o.function.memories[i.e as usize];
        self.in_order(m);
        let quick = body.active.is_none();
        let mut lanes = Vec::new();
        for group in 0..body.groups {
            body.group = group;
            let guard = self.guard(body, i);
            let addresses = self.address_lanes(body, &m.address);
            if quick && let Some(guard) = guard {
                let all = self.b.ins().vall_true(guard);
                self.or_again(body, all);
            }
            if quick && is_windowed(m) {
                lanes.push(addresses);
            } else {
                self.lane_by_lane(body, i, m, addresses, guard);
            }
        }
        if !lanes.is_empty() {
            self.window(body, i, m, &lanes, rest);
        }
        self.in_order(m);
    }

    /// Keeps a volatile or ordered access in its place: what was loaded before does not stand for it, since others may
    /// have written in between.
    pub fn in_order(&mut self, m: &Memory) {
        if m.strong && cfg!(target_arch = "x86_64") {
            // The processor keeps the order, and the compiler does around an atomic load of anything.
            self.b.ins().atomic_load(I64, flags(), self.frame);
        } else if m.strong {
            self.b.ins().fence();
        }
    }

    /// Begins again in the general body unless the condition holds.
    pub fn or_again(&mut self, body: &Body, holds: Value) {
        let Some(again) = body.again else { return };
        let go_on = self.b.create_block();
        self.b.ins().brif(holds, go_on, &[], again, &[]);
        self.b.switch_to_block(go_on);
    }

    /// Offsets of this and the later unguarded loads of the same size by the same address register.
    fn offsets(&self, i: &Ins, rest: &[Ins]) -> (i64, i64) {
        let f = self.o.function;
        let m = &f.memories[i.e as usize];
        let (mut low, mut high) = (m.address.offset, m.address.offset);
        if i.guard != NONE {
            return (low, high);
        }
        for other in rest {
            if other.op == Op::Load && other.guard == NONE {
                let n = &f.memories[other.e as usize];
                let same = n.address.row == m.address.row && n.space == m.space && n.size == m.size;
                let (first, last) = (low.min(n.address.offset), high.max(n.address.offset));
                if same && n.values.len() == 1 && last - first < MOST_REACH {
                    (low, high) = (first, last);
                }
            }
            if writes(other, f).contains(&m.address.row) {
                break;
            }
        }
        (low, high)
    }

    fn window(&mut self, body: &mut Body, i: &Ins, m: &Memory, lanes: &[Lanes], rest: &[Ins]) {
        // Another register may hold the same addresses, and be used with other offsets.
        let addresses = lanes.iter().flat_map(Lanes::vectors).copied().collect();
        let key = (addresses, m.size, m.space);
        let checked = body.patterns.get(&key).into_iter().flatten().find(|c| c.covers(m.address.offset, m.size));
        let pattern = match checked {
            Some(checked) => checked.pattern.clone(),
            None => {
                let (low, high) = self.offsets(i, rest);
                let pattern = self.pattern(body, i, m, lanes, (low, high));
                body.patterns.entry(key).or_default().push(Checked { low, high, pattern: pattern.clone() });
                pattern
            }
        };
        let Some(value) = m.values.first().filter(|v| v.0 != NONE) else { return };
        let mut loaded = None;
        for group in 0..body.groups {
            body.group = group;
            // What all lanes share is loaded once.
            let one = loaded.filter(|_| matches!(pattern, Pattern::Same(_)));
            let Some(slot) = one.or_else(|| self.loaded(&pattern, m, group)) else { return };
            loaded = Some(slot);
            // The guard was found true in every lane.
            self.deliver(body, m, *value, slot, None);
        }
    }

    /// Loads a group's lanes, which lie as the pattern says.
    fn loaded(&mut self, pattern: &Pattern, m: &Memory, group: usize) -> Option<Slot> {
        let offset = m.address.offset as i32;
        let beside = offset + (4 * m.size as usize * group) as i32;
        Some(match pattern {
            Pattern::Same(base) => match m.size {
                8 => {
                    let v = self.b.ins().load(F64, loose(), *base, offset);
                    let v = self.b.ins().splat(F64X2, v);
                    Slot::Long([cast(&mut self.b, I64X2, v); 2])
                }
                4 => {
                    let v = self.b.ins().load(F32, loose(), *base, offset);
                    let v = self.b.ins().splat(F32X4, v);
                    Slot::Int(cast(&mut self.b, I32X4, v))
                }
                size => {
                    let v = if size == 2 {
                        self.b.ins().uload16(I32, loose(), *base, offset)
                    } else {
                        self.b.ins().uload8(I32, loose(), *base, offset)
                    };
                    Slot::Int(self.b.ins().splat(I32X4, v))
                }
            },
            Pattern::Beside(base) if m.size == 8 => {
                Slot::Long([0, 16].map(|h| self.b.ins().load(I64X2, loose(), *base, beside + h)))
            }
            Pattern::Beside(base) => Slot::Int(self.b.ins().load(I32X4, loose(), *base, beside)),
            Pattern::Near(parts) => {
                let mut picked = Vec::new();
                for (base, index) in parts {
                    let bytes = self.b.ins().load(I8X16, loose(), *base, offset);
                    picked.push(self.pick(bytes, *index));
                }
                match picked.as_slice() {
                    [one] => Slot::Int(cast(&mut self.b, I32X4, *one)),
                    [low, high] => Slot::Long([cast(&mut self.b, I64X2, *low), cast(&mut self.b, I64X2, *high)]),
                    _ => return None,
                }
            }
        })
    }

    fn pick(&mut self, bytes: Value, index: Value) -> Value {
        if cfg!(target_arch = "x86_64") {
            self.b.ins().x86_pshufb(bytes, index)
        } else {
            self.b.ins().swizzle(bytes, index)
        }
    }

    /// The distance from each lane's address to the next one's, if it was guessed and takes a simple load.
    pub fn step(&self, m: &Memory) -> Option<i64> {
        let each = i64::from(m.size);
        let guess = if m.address.frame { Some(0) } else { self.o.plan.hints.of(m.address.row, self.o.constants) };
        guess.filter(|s| *s == 0 || (*s == each && each >= 4))
    }

    /// Checks how the addresses lie, and that they are mapped from the first offset to the last.
    fn pattern(&mut self, body: &mut Body, i: &Ins, m: &Memory, lanes: &[Lanes], (low, high): (i64, i64)) -> Pattern {
        let each = i64::from(m.size);
        let step = self.step(m);
        let reach = match step {
            Some(0) => each,
            Some(_) => 4 * body.groups as i64 * each,
            None => 16,
        };
        let span = (high - low + reach) as u32;
        let site = self.site(i, span);
        let first = &lanes[0];
        let small = matches!(first, Lanes::Short(_));
        let (bases, distances) = match step {
            Some(step) => (vec![self.evenly_from(body, &m.address, step)], vec![]),
            None => {
                let (firsts, distances, wrong) = self.within(first, m.size);
                let wrong = self.b.ins().vany_true(wrong);
                let right = self.b.ins().icmp_imm(IntCC::Equal, wrong, 0);
                self.or_again(body, right);
                (firsts.into_iter().map(|first| self.first_address(first)).collect(), distances)
            }
        };
        let mut hosts = Vec::new();
        for base in bases {
            let start = self.b.ins().iadd_imm(base, low);
            if m.size > 1 {
                let rest = self.b.ins().band_imm(start, each - 1);
                let aligned = self.b.ins().icmp_imm(IntCC::Equal, rest, 0);
                self.or_again(body, aligned);
            }
            let known = self.is_known(m.space, site, start, span, small && low >= 0);
            self.or_again(body, known);
            if step.is_some_and(|step| step != 0) && m.space != Space::Shared {
                self.follow(body, start);
            }
            hosts.push(self.host(m.space, base));
        }
        match step {
            Some(0) => Pattern::Same(hosts[0]),
            Some(_) => Pattern::Beside(hosts[0]),
            None => {
                let parts = hosts.into_iter().zip(distances);
                Pattern::Near(parts.map(|(host, d)| (host, self.index(d, m.size))).collect())
            }
        }
    }

    /// Notes where half a warp's load begins (see [`trail`]), if the kernel has barriers and not too many such loads.
    fn follow(&mut self, body: &Body, start: Value) {
        let followed = body.groups == 4 && !self.o.function.barriers.is_empty() && *self.o.trails < trail::MOST;
        if !followed || !trail::works() {
            return;
        }
        let trails = self.field(offset_of!(Environment, trails));
        // From one half to the other `at` goes on by 64.
        let half = self.b.ins().ushr_imm(body.at, 6 - size_of::<trail::Trail>().ilog2() as i64);
        let place = self.b.ins().iadd(trails, half);
        let offset = *self.o.trails * size_of::<[trail::Trail; 2]>();
        self.b.ins().store(flags(), start, place, offset as i32);
        *self.o.trails += 1;
    }

    /// The address in a vector's first lane.
    pub fn first_address(&mut self, v: Value) -> Value {
        let first = self.b.ins().extractlane(v, 0);
        if self.b.func.dfg.value_type(first) == I64 { first } else { self.b.ins().uextend(I64, first) }
    }

    /// Bits that are set unless each lane is the one before plus a step.  The vectors are in the order of their lanes.
    pub fn apart(&mut self, vectors: &[Value], step: i64) -> Value {
        let ty = self.b.func.dfg.value_type(vectors[0]);
        let first = splat_first(&mut self.b, vectors[0]);
        let each = ty.lane_count() as usize;
        let mut wrong = None;
        for (k, v) in vectors.iter().enumerate() {
            let mut right = first;
            if step != 0 {
                let bytes = ty.lane_type().bytes() as usize;
                let steps = (0..each).map(|l| step.wrapping_mul((k * each + l) as i64));
                let steps: Vec<u8> = steps.flat_map(|s| s.to_le_bytes().into_iter().take(bytes)).collect();
                let steps = vector(&mut self.b, ty, &steps);
                right = self.b.ins().iadd(first, steps);
            }
            let differs = self.b.ins().bxor(*v, right);
            wrong = Some(wrong.map_or(differs, |wrong| self.b.ins().bor(wrong, differs)));
        }
        wrong.unwrap_or(first)
    }

    /// For elements of a group within 16 bytes of its first one (of 8 bytes: each pair within 16 bytes of its own): a
    /// vector with that one in front, how far the others lie from it, and bits that are set where one lies elsewhere.
    fn within(&mut self, lanes: &Lanes, size: u32) -> (Vec<Value>, Vec<Value>, Value) {
        let beyond = !u64::from(16 - size);
        match (lanes, size) {
            (Lanes::Short(v), 8) => {
                let pair = shuffle(&mut self.b, *v, *v, [0, 0, 2, 2]);
                let third = shuffle(&mut self.b, *v, *v, [2, 2, 2, 2]);
                let d = self.b.ins().isub(*v, pair);
                let d = [self.b.ins().uwiden_low(d), self.b.ins().uwiden_high(d)];
                let either = self.b.ins().bor(d[0], d[1]);
                let beyond = splat64(&mut self.b, beyond);
                (vec![*v, third], d.to_vec(), self.b.ins().band(either, beyond))
            }
            (Lanes::Short(v), _) => {
                let splat = splat_first(&mut self.b, *v);
                let d = self.b.ins().isub(*v, splat);
                let beyond = splat32(&mut self.b, beyond as u32);
                (vec![*v], vec![d], self.b.ins().band(d, beyond))
            }
            (Lanes::Wide(v), _) => {
                let d = [0, 1].map(|h| {
                    let splat = splat_first(&mut self.b, v[if size == 8 { h } else { 0 }]);
                    self.b.ins().isub(v[h], splat)
                });
                let either = self.b.ins().bor(d[0], d[1]);
                let beyond = splat64(&mut self.b, beyond);
                let wrong = self.b.ins().band(either, beyond);
                if size == 8 {
                    (v.to_vec(), d.to_vec(), wrong)
                } else {
                    (vec![v[0]], vec![low_words(&mut self.b, d)], wrong)
                }
            }
        }
    }

    /// The bytes to take for lanes at these distances.
    fn index(&mut self, distances: Value, size: u32) -> Value {
        let d = cast(&mut self.b, I8X16, distances);
        let lane = if size == 8 { 8 } else { 4 };
        let firsts: Vec<u8> = (0..16).map(|k| k / lane * lane).collect();
        let firsts = vector(&mut self.b, I8X16, &firsts);
        let d = self.pick(d, firsts);
        // Bytes beyond the element become zero: their index is out of range.
        let steps: Vec<u8> = (0..16u8).map(|k| if u32::from(k % lane) < size { k % lane } else { 0x80 }).collect();
        let steps = vector(&mut self.b, I8X16, &steps);
        self.b.ins().iadd(d, steps)
    }

    fn lane_by_lane(&mut self, body: &mut Body, i: &Ins, m: &Memory, lanes: Lanes, guard: Option<Value>) {
        let whole = m.size * m.values.len() as u32;
        let site = self.site(i, whole);
        let count = m.values.len();
        let wide = m.size == 8;
        let (go, slow, join) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(slow);
        let ty = if wide { I64X2 } else { I32X4 };
        let results: Vec<Value> =
            (0..count * if wide { 2 } else { 1 }).map(|_| self.b.append_block_param(join, ty)).collect();
        // Which lanes: all of them may be loaded here, else only those in need by the function.
        let mut active = body.active.map(|(bits, _)| bits);
        if let Some(guard) = guard
            && let Some(bits) = active
        {
            let guarded = self.b.ins().vhigh_bits(I32, guard);
            active = Some(self.b.ins().band(bits, guarded));
        }
        let small = matches!(lanes, Lanes::Short(_));
        let mut addresses = Vec::new();
        for l in 0..4u8 {
            let a = match &lanes {
                Lanes::Short(v) => {
                    let a = self.b.ins().extractlane(*v, l);
                    let a = self.b.ins().iadd_imm(a, m.address.offset);
                    self.b.ins().uextend(I64, a)
                }
                Lanes::Wide(v) => {
                    let a = self.b.ins().extractlane(v[usize::from(l / 2)], l % 2);
                    self.b.ins().iadd_imm(a, m.address.offset)
                }
            };
            addresses.push(a);
        }
        let mut good = self.is_known(m.space, site, addresses[0], whole, small);
        let mut bits = addresses[0];
        for a in &addresses[1..] {
            let known = self.is_known(m.space, site, *a, whole, small);
            good = self.b.ins().band(good, known);
            bits = self.b.ins().bor(bits, *a);
        }
        if whole > 1 {
            let rest = self.b.ins().band_imm(bits, i64::from(whole - 1));
            let aligned = self.b.ins().icmp_imm(IntCC::Equal, rest, 0);
            good = self.b.ins().band(good, aligned);
        }
        if matches!(m.space, Space::Local | Space::Param) {
            good = self.b.ins().iconst(I8, 0);
        }
        if let Some(active) = active {
            let all = self.b.ins().icmp_imm(IntCC::Equal, active, 15);
            good = self.b.ins().band(good, all);
        }
        self.b.ins().brif(good, go, &[], slow, &[]);

        self.b.switch_to_block(go);
        let mut values: Vec<Value> = Vec::new();
        let host: Vec<Value> = addresses.iter().map(|a| self.host(m.space, *a)).collect();
        for k in 0..count {
            let offset = (m.size as usize * k) as i32;
            let zero = if wide { splat64(&mut self.b, 0) } else { splat32(&mut self.b, 0) };
            let mut parts = [zero; 2];
            for (l, host) in host.iter().enumerate() {
                let v = match m.size {
                    1 => self.b.ins().uload8(I32, loose(), *host, offset),
                    2 => self.b.ins().uload16(I32, loose(), *host, offset),
                    4 => self.b.ins().load(I32, loose(), *host, offset),
                    _ => self.b.ins().load(I64, loose(), *host, offset),
                };
                let (part, lane) = if wide { (l / 2, l % 2) } else { (0, l) };
                parts[part] = self.b.ins().insertlane(parts[part], v, lane as u8);
            }
            values.extend(&parts[..if wide { 2 } else { 1 }]);
        }
        let args: Vec<BlockArg> = values.iter().map(|v| (*v).into()).collect();
        self.b.ins().jump(join, &args);

        self.b.switch_to_block(slow);
        let [from, to] = self.scratch();
        // The function adds the offset itself.
        for (l, a) in addresses.iter().enumerate() {
            let a = self.b.ins().iadd_imm(*a, m.address.offset.wrapping_neg());
            self.b.ins().stack_store(a, from, 8 * l as i32);
        }
        let (from, to) = (self.b.ins().stack_addr(I64, from, 0), self.b.ins().stack_addr(I64, to, 0));
        let place = std::ptr::from_ref::<Site>(&self.o.sites[site as usize]) as i64;
        let place = self.b.ins().iconst(I64, place);
        let lanes = match active {
            Some(active) => active,
            None => self.b.ins().iconst(I32, 15),
        };
        let callee = self.b.ins().iconst(I64, self.o.load as i64);
        let args = [self.environment, place, from, to, lanes, body.first];
        let call = self.b.ins().call_indirect(self.load, callee, &args);
        let status = self.b.inst_results(call)[0];
        self.check(status);
        let mut args: Vec<BlockArg> = Vec::new();
        for k in 0..count as i32 {
            let pair = [0, 16].map(|h| self.b.ins().load(I64X2, MemFlags::trusted(), to, 32 * k + h));
            if wide {
                args.extend(pair.map(BlockArg::from));
            } else {
                args.push(low_words(&mut self.b, pair).into());
            }
        }
        self.b.ins().jump(join, &args);

        self.b.switch_to_block(join);
        for (k, value) in m.values.iter().enumerate().filter(|(_, v)| v.0 != NONE) {
            let v = if wide { Slot::Long([results[2 * k], results[2 * k + 1]]) } else { Slot::Int(results[k]) };
            self.deliver(body, m, *value, v, guard);
        }
    }
}
