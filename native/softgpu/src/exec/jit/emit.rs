//! A segment as a function of the host.
//!
//! Each loop over the lanes has two bodies.  The *quick* one is for four lanes that all take part and whose loads lie
//! side by side; it has no effect before its end, so that it can give up at any load and let the *general* one begin
//! again, which blends by the mask and loads lane by lane.  In a long loop the general one is a function of its own, so
//! that what it needs of the processor's registers is not taken from the quick one.
//!
//! Where all lanes of the warp take part and the processor's registers suffice, a *wide* quick body goes first, for
//! several groups of four lanes at a time: one check of a load then serves all of them.  Where it gives up, the loop
//! over single groups takes over for the rest of the warp.

use super::affine::Affine;
use super::load::is_windowed;
use super::plan::{Constants, Part, Plan, Segment, most_live, writes};
use super::recipe::*;
use super::runtime::{Environment, Site};
use crate::float::NAN32;
use crate::ir::*;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32X4, F64X2, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{
    Block, BlockArg, FuncRef, InstBuilder, MemFlags, SigRef, StackSlot, StackSlotData, StackSlotKind, Value,
};
use cranelift_frontend::FunctionBuilder;
use std::collections::{HashMap, HashSet};
use std::mem::offset_of;
use std::ops::Range;

/// Bytes of a row.
pub const ROW: i32 = 128;
/// Most instructions of a loop whose general body lies beside its quick one.
const MOST_INLINE: usize = 24;
/// Most elements of a vector load.
const MOST_ELEMENTS: usize = 8;
/// Vectors that a wide body may hold at the same time: the processor's registers.
const VECTORS: usize = 16;

/// A register's four lanes.
#[derive(Clone, Copy)]
pub enum Slot {
    Int(Value),
    /// The same after arithmetic in single precision: a NaN has any bits until somebody looks at them.
    Float(Value),
    Long(Pair),
    /// All bits of a lane are those of the predicate.
    Mask(Value),
}

/// Where compiled code finds what it needs of the outside.
pub struct Outside<'a, 'o> {
    pub function: &'a Function,
    pub plan: &'a Plan,
    pub constants: &'a Constants,
    /// Addresses of [`super::runtime::call`] and its neighbours.
    pub call: usize,
    pub load: usize,
    pub learn: usize,
    #[expect(clippy::vec_box, reason = "code refers to them by address")]
    pub sites: &'o mut Vec<Box<Site>>,
    /// How many accesses are followed.
    pub trails: &'o mut usize,
    /// The function's accesses by their description.
    pub of_memory: &'o mut HashMap<u32, u32>,
}

/// A function under construction.
pub struct Emitter<'a, 'b> {
    pub b: FunctionBuilder<'b>,
    pub o: Outside<'a, 'b>,
    pub environment: Value,
    pub frame: Value,
    pub mask: Value,
    fault: Block,
    call: SigRef,
    pub load: SigRef,
    pub learn: SigRef,
    /// Room for the arguments of [`super::runtime::load`], if it is called.
    scratch: Option<[StackSlot; 2]>,
}

/// The lanes of a group, or of several, while their instructions are emitted.
pub struct Body {
    /// Where 32-bit and 64-bit lanes of the first group begin in row 0.
    p32: Value,
    p64: Value,
    /// Four times the number of the first lane.
    pub at: Value,
    /// Number of the first lane.
    pub first: Value,
    /// How many groups of four lanes there are, and which of them instructions are emitted for.
    pub groups: usize,
    pub group: usize,
    /// General body: the lanes that take part, as bits and as a mask.
    pub active: Option<(Value, Value)>,
    /// Quick body: where to begin again.
    pub again: Option<Block>,
    /// By row and group.
    slots: HashMap<(u32, usize), Slot>,
    dirty: Vec<u32>,
    /// Address patterns that were checked.
    pub patterns: super::load::Patterns,
    /// Quick body: registers whose lanes lie evenly apart, on conditions; and conditions that were found to hold.
    pub affine: HashMap<u32, Option<Affine>>,
    pub held: HashSet<Value>,
}

impl Body {
    /// Where the 32-bit lanes of the group lie in a row, counted from [`Body::p32`].
    fn at32(&self, row: u32) -> i32 {
        row as i32 * ROW + 16 * self.group as i32
    }

    /// Where the 64-bit lanes of the group lie in a register, counted from [`Body::p64`].
    fn at64(&self, row: u32) -> i32 {
        row as i32 * ROW + 32 * self.group as i32
    }

    /// Whether an instruction of the body has computed the register.
    pub fn wrote(&self, row: u32) -> bool {
        self.dirty.contains(&row)
    }

    fn slot(&self, row: u32) -> Option<Slot> {
        self.slots.get(&(row, self.group)).copied()
    }

    fn set(&mut self, row: u32, slot: Slot) {
        self.slots.insert((row, self.group), slot);
    }
}

/// Whether a loop's general body is a function of its own.
pub fn is_long(range: &Range<usize>) -> bool {
    range.len() > MOST_INLINE
}

pub fn flags() -> MemFlags {
    MemFlags::trusted()
}

/// Memory that device code may write at any time.
pub fn loose() -> MemFlags {
    MemFlags::new().with_notrap()
}

impl<'a, 'b> Emitter<'a, 'b> {
    /// Begins a function; the signatures are those of `call`, `load` and `learn` in [`super::runtime`].
    pub fn new(mut b: FunctionBuilder<'b>, o: Outside<'a, 'b>, [call, load, learn]: [SigRef; 3]) -> Emitter<'a, 'b> {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let fault = b.create_block();
        b.set_cold_block(fault);
        let [environment, frame, mask] = [0, 1, 2].map(|k| b.block_params(entry)[k]);
        Emitter { b, o, environment, frame, mask, fault, call, load, learn, scratch: None }
    }

    /// Emits a segment and finishes the function.  `general`: the functions of its loops.
    pub fn segment(mut self, segment: &Segment, general: &[FuncRef]) {
        let mut general = general.iter();
        for part in &segment.parts {
            match part {
                Part::Call(at) => self.call(*at, self.mask),
                Part::Store(at) => self.store(*at),
                Part::Loop(range) => {
                    let general = if is_long(range) { general.next().copied() } else { None };
                    self.lanes(range, general);
                }
            }
        }
        self.end();
    }

    /// Emits the general body of a loop and finishes the function.  It is called with the segment's arguments, four
    /// times the number of the group's first lane, and where to store the bits of the predicates.
    pub fn general(mut self, code: &'a [Ins]) {
        let predicates = self.predicates(code);
        let entry = self.b.current_block();
        let [at, to] = [3, 4].map(|k| entry.map_or(self.mask, |entry| self.b.block_params(entry)[k]));
        let bits = self.general_body(at, code, &predicates);
        for (k, bits) in bits.into_iter().enumerate() {
            self.b.ins().store(flags(), bits, to, 4 * k as i32);
        }
        self.end();
    }

    fn general_body(&mut self, at: Value, code: &'a [Ins], predicates: &[u32]) -> Vec<Value> {
        let mut body = self.body(at, 1);
        let active = self.b.ins().ushr(self.mask, body.first);
        let active = self.b.ins().band_imm(active, 15);
        let lanes = self.mask_of(active, 0);
        body.active = Some((active, lanes));
        self.emit(&mut body, code);
        self.finish(&mut body, predicates)
    }

    fn end(mut self) {
        let zero = self.b.ins().iconst(I32, 0);
        self.b.ins().return_(&[zero]);
        self.b.switch_to_block(self.fault);
        let one = self.b.ins().iconst(I32, 1);
        self.b.ins().return_(&[one]);
        self.b.seal_all_blocks();
        self.b.finalize();
    }

    /// A field of the environment, by its offset.
    pub fn field(&mut self, offset: usize) -> Value {
        self.b.ins().load(I64, flags().with_readonly(), self.environment, offset as i32)
    }

    /// Room for four addresses, and for the elements that they lead to.
    pub fn scratch(&mut self) -> [StackSlot; 2] {
        let b = &mut self.b;
        *self.scratch.get_or_insert_with(|| {
            [32, 32 * MOST_ELEMENTS as u32]
                .map(|bytes| b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4)))
        })
    }

    /// Leaves the function where a call says that the kernel failed.
    pub fn check(&mut self, status: Value) {
        let go_on = self.b.create_block();
        self.b.ins().brif(status, self.fault, &[], go_on, &[]);
        self.b.switch_to_block(go_on);
    }

    /// Executes an instruction by a function, for the lanes in the mask.
    pub fn call(&mut self, at: usize, mask: Value) {
        let i = std::ptr::from_ref(&self.o.function.code[at]) as usize;
        let i = self.b.ins().iconst(I64, i as i64);
        let callee = self.b.ins().iconst(I64, self.o.call as i64);
        let call = self.b.ins().call_indirect(self.call, callee, &[self.environment, self.frame, i, mask]);
        let status = self.b.inst_results(call)[0];
        self.check(status);
    }

    /// Predicates that are wanted behind a loop that computes them.
    fn predicates(&self, code: &[Ins]) -> Vec<u32> {
        let mut out: Vec<u32> = Vec::new();
        for i in code {
            if matches!(self.predicate_of(i), Some(())) {
                let rows = writes(i, self.o.function);
                out.extend(rows.into_iter().filter(|row| self.o.plan.exposed.contains(row)));
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    pub fn body(&mut self, at: Value, groups: usize) -> Body {
        let p32 = self.b.ins().iadd(self.frame, at);
        let twice = self.b.ins().ishl_imm(at, 1);
        let p64 = self.b.ins().iadd(self.frame, twice);
        let first = self.b.ins().ushr_imm(at, 2);
        let first = self.b.ins().ireduce(I32, first);
        Body {
            p32,
            p64,
            at,
            first,
            groups,
            group: 0,
            active: None,
            again: None,
            slots: HashMap::new(),
            dirty: Vec::new(),
            patterns: HashMap::new(),
            affine: HashMap::new(),
            held: HashSet::new(),
        }
    }

    fn lanes(&mut self, range: &Range<usize>, general: Option<FuncRef>) {
        let code = &self.o.function.code[range.clone()];
        let predicates = self.predicates(code);
        let [header, other, quick, again, next, done] = [(); 6].map(|()| self.b.create_block());
        self.b.set_cold_block(other);
        self.b.set_cold_block(again);
        let add = |e: &mut Self, block: Block, ty| e.b.append_block_param(block, ty);
        let (at, rest) = (add(self, header, I64), add(self, header, I32));
        let [sums, next_sums, all] =
            [header, next, done].map(|block| predicates.iter().map(|_| add(self, block, I32)).collect::<Vec<Value>>());
        let start = self.b.ins().iconst(I64, 0);
        let zero = self.b.ins().iconst(I32, 0);
        let mut args: Vec<BlockArg> = vec![start.into(), self.mask.into()];
        args.extend(predicates.iter().map(|_| BlockArg::from(zero)));
        let groups = self.groups(range);
        if groups > 1 {
            self.wide(code, groups, &predicates, (header, &args), done);
        } else {
            self.b.ins().jump(header, &args);
        }

        self.b.switch_to_block(header);
        let active = self.b.ins().band_imm(rest, 15);
        let full = self.b.ins().icmp_imm(IntCC::Equal, active, 15);
        self.b.ins().brif(full, quick, &[], other, &[]);
        self.b.switch_to_block(other);
        let same: Vec<BlockArg> = sums.iter().map(|s| BlockArg::from(*s)).collect();
        self.b.ins().brif(active, again, &[], next, &same);

        self.b.switch_to_block(quick);
        let mut body = self.body(at, 1);
        body.again = Some(again);
        self.emit(&mut body, code);
        let bits = self.finish(&mut body, &predicates);
        let args = self.joined(&sums, &bits);
        self.b.ins().jump(next, &args);

        self.b.switch_to_block(again);
        let bits = match general {
            Some(general) => {
                let to = StackSlotData::new(StackSlotKind::ExplicitSlot, 4 * predicates.len().max(1) as u32, 2);
                let to = self.b.create_sized_stack_slot(to);
                let place = self.b.ins().stack_addr(I64, to, 0);
                let call = self.b.ins().call(general, &[self.environment, self.frame, self.mask, at, place]);
                let status = self.b.inst_results(call)[0];
                self.check(status);
                (0..predicates.len()).map(|k| self.b.ins().stack_load(I32, to, 4 * k as i32)).collect()
            }
            None => self.general_body(at, code, &predicates),
        };
        let args = self.joined(&sums, &bits);
        self.b.ins().jump(next, &args);

        self.b.switch_to_block(next);
        let at = self.b.ins().iadd_imm(at, 16);
        let rest = self.b.ins().ushr_imm(rest, 4);
        let more = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, at, i64::from(ROW));
        let next_sums: Vec<BlockArg> = next_sums.into_iter().map(BlockArg::from).collect();
        let mut args: Vec<BlockArg> = vec![at.into(), rest.into()];
        args.extend(&next_sums);
        self.b.ins().brif(more, header, &args, done, &next_sums);

        self.b.switch_to_block(done);
        for (row, sum) in predicates.iter().zip(all) {
            let offset = *row as i32 * ROW;
            let word = self.b.ins().load(I32, flags(), self.frame, offset);
            let word = self.b.ins().band_not(word, self.mask);
            let word = self.b.ins().bor(word, sum);
            self.b.ins().store(flags(), word, self.frame, offset);
        }
    }

    /// The loop of the wide body, for a warp whose lanes all take part.  It goes to `narrow`, with the arguments given
    /// or with what it leaves to do, or to `done`.
    fn wide(
        &mut self,
        code: &'a [Ins],
        groups: usize,
        predicates: &[u32],
        (narrow, begin): (Block, &[BlockArg]),
        done: Block,
    ) {
        let [quick, again] = [(); 2].map(|()| self.b.create_block());
        self.b.set_cold_block(again);
        let at = self.b.append_block_param(quick, I64);
        let sums: Vec<Value> = predicates.iter().map(|_| self.b.append_block_param(quick, I32)).collect();
        let full = self.b.ins().icmp_imm(IntCC::Equal, self.mask, -1);
        let from: Vec<BlockArg> = begin[..1].iter().chain(&begin[2..]).copied().collect();
        self.b.ins().brif(full, quick, &from, narrow, begin);

        self.b.switch_to_block(quick);
        let mut body = self.body(at, groups);
        body.again = Some(again);
        self.emit(&mut body, code);
        let bits = self.finish(&mut body, predicates);
        let further = self.b.ins().iadd_imm(at, 16 * groups as i64);
        let more = self.b.ins().icmp_imm(IntCC::UnsignedLessThan, further, i64::from(ROW));
        let joined = self.joined(&sums, &bits);
        let mut args = vec![BlockArg::from(further)];
        args.extend(&joined);
        self.b.ins().brif(more, quick, &args, done, &joined);

        self.b.switch_to_block(again);
        // All lanes from here on are left.
        let mut args: Vec<BlockArg> = vec![at.into(), self.mask.into()];
        args.extend(sums.iter().map(|s| BlockArg::from(*s)));
        self.b.ins().jump(narrow, &args);
    }

    /// How many groups of lanes a quick body takes at once: more than one where it loads, the addresses of all its loads
    /// are guessed, and the values of so many lanes fit into the processor's registers.
    fn groups(&self, range: &Range<usize>) -> usize {
        let f = self.o.function;
        let mut loads = f.code[range.clone()].iter().filter(|i| i.op == Op::Load).map(|i| &f.memories[i.e as usize]);
        let live = most_live(range, f, self.o.plan, self.o.constants);
        let fits = || [4, 2].into_iter().find(|groups| groups * live <= VECTORS);
        let worth = loads.clone().next().is_some() || range.len() <= MOST_INLINE;
        if worth && loads.all(|m| is_windowed(m) && self.step(m).is_some()) { fits().unwrap_or(1) } else { 1 }
    }

    fn joined(&mut self, sums: &[Value], bits: &[Value]) -> Vec<BlockArg> {
        sums.iter().zip(bits).map(|(sum, bits)| BlockArg::from(self.b.ins().bor(*sum, *bits))).collect()
    }

    /// Says something if the instruction's results are predicates.
    fn predicate_of(&self, i: &Ins) -> Option<()> {
        let at = (std::ptr::from_ref(i) as usize - self.o.function.code.as_ptr() as usize) / size_of::<Ins>();
        use Recipe::*;
        matches!(self.o.plan.recipes[at], Some(Compare | CompareLong | CompareFloat | CompareDouble | Logic))
            .then_some(())
    }

    /// Bits of a group's four lanes as a mask.
    fn mask_of(&mut self, bits: Value, group: usize) -> Value {
        let lanes = self.b.ins().splat(I32X4, bits);
        let each: Vec<u8> = (0..4).flat_map(|l| (1u32 << (4 * group + l)).to_le_bytes()).collect();
        let each = vector(&mut self.b, I32X4, &each);
        let set = self.b.ins().band(lanes, each);
        self.b.ins().icmp(IntCC::Equal, set, each)
    }

    /// Stores what is wanted of the results, and gives the bits of the predicates at their places.
    fn finish(&mut self, body: &mut Body, predicates: &[u32]) -> Vec<Value> {
        let zero = self.b.ins().iconst(I32, 0);
        let mut out = vec![zero; predicates.len()];
        for row in std::mem::take(&mut body.dirty) {
            if !self.o.plan.exposed.contains(&row) {
                continue;
            }
            for group in 0..body.groups {
                body.group = group;
                match body.slot(row) {
                    Some(Slot::Int(v)) => self.put_int(body, row, v),
                    Some(Slot::Float(v)) => {
                        let v = self.with_one_nan(v);
                        self.put_int(body, row, v);
                    }
                    Some(Slot::Long(pair)) => self.put_long(body, row, pair),
                    Some(Slot::Mask(v)) => {
                        let Some(at) = predicates.iter().position(|p| *p == row) else { continue };
                        let bits = self.bits(body, v);
                        out[at] = self.b.ins().bor(out[at], bits);
                    }
                    None => {}
                }
            }
        }
        out
    }

    pub fn put_int(&mut self, body: &Body, row: u32, v: Value) {
        let (mut v, offset) = (v, body.at32(row));
        if let Some((_, lanes)) = body.active {
            let old = self.b.ins().load(I32X4, flags(), body.p32, offset);
            v = self.b.ins().bitselect(lanes, v, old);
        }
        self.b.ins().store(flags(), v, body.p32, offset);
    }

    pub fn put_long(&mut self, body: &Body, row: u32, pair: Pair) {
        let wide = body.active.map(|(_, lanes)| widen_mask(&mut self.b, lanes));
        for (h, v) in pair.into_iter().enumerate() {
            let (mut v, offset) = (v, body.at64(row) + 16 * h as i32);
            if let Some(wide) = wide {
                let old = self.b.ins().load(I64X2, flags(), body.p64, offset);
                v = self.b.ins().bitselect(wide[h], v, old);
            }
            self.b.ins().store(flags(), v, body.p64, offset);
        }
    }

    /// The bits of the group's lanes, at the lanes' numbers.
    fn bits(&mut self, body: &Body, mask: Value) -> Value {
        let mut bits = self.b.ins().vhigh_bits(I32, mask);
        if let Some((active, _)) = body.active {
            bits = self.b.ins().band(bits, active);
        }
        if body.group > 0 {
            bits = self.b.ins().ishl_imm(bits, 4 * body.group as i64);
        }
        self.b.ins().ishl(bits, body.first)
    }

    /// The lanes of a 32-bit register.
    pub fn int(&mut self, body: &mut Body, row: u32) -> Value {
        if let Some(v) = self.o.constants.get(row) {
            return splat32(&mut self.b, v as u32);
        }
        let v = match body.slot(row) {
            Some(Slot::Int(v)) => return v,
            Some(Slot::Float(v)) => self.with_one_nan(v),
            _ => match self.recompute(body, row) {
                Some(Slot::Int(v)) => v,
                _ => self.b.ins().load(I32X4, flags(), body.p32, body.at32(row)),
            },
        };
        body.set(row, Slot::Int(v));
        v
    }

    /// The lanes of a 32-bit register for arithmetic in single precision.
    fn float(&mut self, body: &mut Body, row: u32) -> Value {
        let v = match body.slot(row) {
            Some(Slot::Float(v)) if self.o.constants.get(row).is_none() => v,
            _ => self.int(body, row),
        };
        cast(&mut self.b, F32X4, v)
    }

    /// Results of arithmetic in single precision, whose NaNs are those of a GPU.
    fn with_one_nan(&mut self, v: Value) -> Value {
        let f = cast(&mut self.b, F32X4, v);
        let nan = self.b.ins().fcmp(FloatCC::Unordered, f, f);
        let one = splat32(&mut self.b, NAN32);
        self.b.ins().bitselect(nan, one, v)
    }

    /// The lanes of a 64-bit register.
    pub fn long(&mut self, body: &mut Body, row: u32) -> Pair {
        if let Some(v) = self.o.constants.get(row) {
            return [splat64(&mut self.b, v); 2];
        }
        if let Some(Slot::Long(v)) = body.slot(row) {
            return v;
        }
        let v = match self.recompute(body, row) {
            Some(Slot::Long(v)) => v,
            _ => [0, 16].map(|h| self.b.ins().load(I64X2, flags(), body.p64, body.at64(row) + h)),
        };
        body.set(row, Slot::Long(v));
        v
    }

    /// The lanes of a register that is computed again rather than read from memory (see [`super::fixed`]).
    fn recompute(&mut self, body: &mut Body, row: u32) -> Option<Slot> {
        let (fixed, exposed) = (&self.o.plan.fixed, &self.o.plan.exposed);
        if body.wrote(row) || (exposed.contains(&row) && !fixed.is_free(row)) {
            return None;
        }
        let i = &self.o.function.code[fixed.of(row)?];
        self.instruction(body, i, None);
        body.dirty.retain(|dirty| *dirty != row);
        body.slot(row)
    }

    /// A predicate as a mask.
    pub fn predicate(&mut self, body: &mut Body, row: u32) -> Value {
        if let Some(Slot::Mask(v)) = body.slot(row) {
            return v;
        }
        let word = self.b.ins().load(I32, flags(), self.frame, row as i32 * ROW);
        let bits = self.b.ins().ushr(word, body.first);
        let v = self.mask_of(bits, body.group);
        body.set(row, Slot::Mask(v));
        v
    }

    fn set_int(&mut self, body: &mut Body, row: u32, v: Value, guard: Option<Value>) {
        let mut v = cast(&mut self.b, I32X4, v);
        if let Some(guard) = guard {
            let old = self.int(body, row);
            v = self.b.ins().bitselect(guard, v, old);
        }
        body.set(row, Slot::Int(v));
        self.mark(body, row);
    }

    fn set_float(&mut self, body: &mut Body, row: u32, v: Value, guard: Option<Value>) {
        let v = cast(&mut self.b, I32X4, v);
        if guard.is_some() {
            let v = self.with_one_nan(v);
            return self.set_int(body, row, v, guard);
        }
        body.set(row, Slot::Float(v));
        self.mark(body, row);
    }

    fn set_long(&mut self, body: &mut Body, row: u32, v: Pair, guard: Option<Value>) {
        let mut v = v.map(|v| cast(&mut self.b, I64X2, v));
        if let Some(guard) = guard {
            let (old, guard) = (self.long(body, row), widen_mask(&mut self.b, guard));
            v = [0, 1].map(|h| self.b.ins().bitselect(guard[h], v[h], old[h]));
        }
        body.set(row, Slot::Long(v));
        self.mark(body, row);
    }

    fn set_mask(&mut self, body: &mut Body, row: u32, v: Value, guard: Option<Value>) {
        let mut v = v;
        if let Some(guard) = guard {
            let old = self.predicate(body, row);
            v = self.b.ins().bitselect(guard, v, old);
        }
        body.set(row, Slot::Mask(v));
        self.mark(body, row);
    }

    fn mark(&mut self, body: &mut Body, row: u32) {
        if !body.dirty.contains(&row) {
            body.dirty.push(row);
        }
    }

    /// Writes what was loaded: 32-bit lanes (zero-extended) or 64-bit ones, as `ld` extends them.
    pub fn deliver(&mut self, body: &mut Body, m: &Memory, (row, width): (u32, Width), v: Slot, guard: Option<Value>) {
        match v {
            Slot::Int(v) => {
                let mut v = v;
                if m.signed && m.size < 4 {
                    let up = i64::from(32 - 8 * m.size);
                    v = self.b.ins().ishl_imm(v, up);
                    v = self.b.ins().sshr_imm(v, up);
                }
                match width {
                    Width::W64 => {
                        let wide = if m.signed {
                            widen_mask(&mut self.b, v)
                        } else {
                            [self.b.ins().uwiden_low(v), self.b.ins().uwiden_high(v)]
                        };
                        self.set_long(body, row, wide, guard);
                    }
                    Width::W32 => self.set_int(body, row, v, guard),
                    Width::W16 => {
                        let cut = splat32(&mut self.b, 0xffff);
                        let v = self.b.ins().band(v, cut);
                        self.set_int(body, row, v, guard);
                    }
                }
            }
            Slot::Long(v) => self.set_long(body, row, v, guard),
            Slot::Float(_) | Slot::Mask(_) => {}
        }
    }

    fn emit(&mut self, body: &mut Body, code: &'a [Ins]) {
        for (at, i) in code.iter().enumerate() {
            if i.op == Op::Load {
                self.load(body, i, &code[at..]);
                for row in writes(i, self.o.function) {
                    body.affine.insert(row, None);
                }
                continue;
            }
            let affine = if body.again.is_some() { self.affine_result(body, i) } else { None };
            for group in 0..body.groups {
                body.group = group;
                let guard = self.guard(body, i);
                self.instruction(body, i, guard);
            }
            for row in writes(i, self.o.function) {
                body.affine.insert(row, affine.clone());
            }
        }
    }

    /// The lanes of the group in which an instruction is executed; nothing: all of them.
    pub fn guard(&mut self, body: &mut Body, i: &Ins) -> Option<Value> {
        (i.guard != NONE).then(|| {
            let g = self.predicate(body, i.guard);
            if i.negate { self.b.ins().bnot(g) } else { g }
        })
    }

    fn instruction(&mut self, body: &mut Body, i: &Ins, guard: Option<Value>) {
        let at = (std::ptr::from_ref(i) as usize - self.o.function.code.as_ptr() as usize) / size_of::<Ins>();
        let Some(recipe) = self.o.plan.recipes[at] else { return };
        use Recipe::*;
        match recipe {
            Int1(..) | Int2(..) | Int3(..) | Shift(..) => {
                let (v, bits) = match recipe {
                    Int1(op, bits) => {
                        let a = self.int(body, i.a);
                        (op(&mut self.b, a), bits)
                    }
                    Int2(op, bits) => {
                        let (x, y) = (self.int(body, i.a), self.int(body, i.b));
                        (op(&mut self.b, x, y), bits)
                    }
                    Int3(op, bits) => {
                        let (x, y, z) = (self.int(body, i.a), self.int(body, i.b), self.int(body, i.c));
                        (op(&mut self.b, x, y, z), bits)
                    }
                    Shift(op, amount, bits) => {
                        let a = self.int(body, i.a);
                        (op(&mut self.b, a, amount), bits)
                    }
                    _ => return,
                };
                let mut v = cast(&mut self.b, I32X4, v);
                if bits == 16 {
                    let cut = splat32(&mut self.b, 0xffff);
                    v = self.b.ins().band(v, cut);
                }
                self.set_int(body, i.d, v, guard);
            }
            Float1(..) | Float2(..) | Float3(..) => {
                let x = self.float(body, i.a);
                let v = match recipe {
                    Float1(op) => op(&mut self.b, x),
                    Float2(op) => {
                        let y = self.float(body, i.b);
                        op(&mut self.b, x, y)
                    }
                    Float3(op) => {
                        let (y, z) = (self.float(body, i.b), self.float(body, i.c));
                        op(&mut self.b, x, y, z)
                    }
                    _ => return,
                };
                self.set_float(body, i.d, v, guard);
            }
            Long1(op) => {
                let v = self.long(body, i.a).map(|a| op(&mut self.b, a));
                self.set_long(body, i.d, v, guard);
            }
            Long2(op) => {
                let (x, y) = (self.long(body, i.a), self.long(body, i.b));
                let v = [0, 1].map(|h| op(&mut self.b, x[h], y[h]));
                self.set_long(body, i.d, v, guard);
            }
            Long3(op) => {
                let (x, y, z) = (self.long(body, i.a), self.long(body, i.b), self.long(body, i.c));
                let v = [0, 1].map(|h| op(&mut self.b, x[h], y[h], z[h]));
                self.set_long(body, i.d, v, guard);
            }
            LongShift(op, amount) => {
                let v = self.long(body, i.a).map(|a| op(&mut self.b, a, amount));
                self.set_long(body, i.d, v, guard);
            }
            Double1(..) | Double2(..) | Double3(..) => {
                let get = |e: &mut Self, body: &mut Body, row| e.long(body, row).map(|v| cast(&mut e.b, F64X2, v));
                let x = get(self, body, i.a);
                let v = match recipe {
                    Double1(op) => x.map(|x| op(&mut self.b, x)),
                    Double2(op) => {
                        let y = get(self, body, i.b);
                        [0, 1].map(|h| op(&mut self.b, x[h], y[h]))
                    }
                    Double3(op) => {
                        let (y, z) = (get(self, body, i.b), get(self, body, i.c));
                        [0, 1].map(|h| op(&mut self.b, x[h], y[h], z[h]))
                    }
                    _ => return,
                };
                self.set_long(body, i.d, v, guard);
            }
            Widen(op) => {
                let a = self.int(body, i.a);
                let v = op(&mut self.b, a);
                self.set_long(body, i.d, v, guard);
            }
            Widen2(op) => {
                let (x, y) = (self.int(body, i.a), self.int(body, i.b));
                let v = op(&mut self.b, x, y);
                self.set_long(body, i.d, v, guard);
            }
            WidenShift(op, amount) => {
                let a = self.int(body, i.a);
                let v = op(&mut self.b, a, amount);
                self.set_long(body, i.d, v, guard);
            }
            WidenAdd(op) => {
                let (x, y, z) = (self.int(body, i.a), self.int(body, i.b), self.long(body, i.c));
                let v = op(&mut self.b, x, y);
                let v = [0, 1].map(|h| self.b.ins().iadd(v[h], z[h]));
                self.set_long(body, i.d, v, guard);
            }
            Narrow(op) => {
                let a = self.long(body, i.a);
                let v = op(&mut self.b, a);
                if i.op == Op::F32F64 {
                    return self.set_float(body, i.d, v, guard);
                }
                self.set_int(body, i.d, v, guard);
            }
            Half(half) => {
                let a = self.long(body, i.a);
                let v = if half == 0 { low_words(&mut self.b, a) } else { high_words(&mut self.b, a) };
                self.set_int(body, i.d, v, guard);
            }
            Compare | CompareLong | CompareFloat | CompareDouble => self.compare(body, i, recipe, guard),
            Logic => self.logic(body, i, guard),
            Select => {
                let p = self.predicate(body, i.c);
                let (x, y) = (self.int(body, i.a), self.int(body, i.b));
                let v = self.b.ins().bitselect(p, x, y);
                self.set_int(body, i.d, v, guard);
            }
            SelectLong => {
                let p = self.predicate(body, i.c);
                let p = widen_mask(&mut self.b, p);
                let (x, y) = (self.long(body, i.a), self.long(body, i.b));
                let v = [0, 1].map(|h| self.b.ins().bitselect(p[h], x[h], y[h]));
                self.set_long(body, i.d, v, guard);
            }
            Lop3 => {
                let (x, y, z) = (self.int(body, i.a), self.int(body, i.b), self.int(body, i.c));
                let v = self.lop3(x, y, z, i.e);
                self.set_int(body, i.d, v, guard);
            }
            Special => self.special(body, i, guard),
            FrameAddress => {
                let base = self.int(body, ROW_LOCAL);
                if i.op == Op::FrameAddress32 {
                    let offset = splat32(&mut self.b, i.imm as u32);
                    let v = self.b.ins().iadd(base, offset);
                    self.set_int(body, i.d, v, guard);
                } else {
                    let offset = splat64(&mut self.b, i.imm as u64);
                    let wide = [self.b.ins().uwiden_low(base), self.b.ins().uwiden_high(base)];
                    let v = wide.map(|v| self.b.ins().iadd(v, offset));
                    self.set_long(body, i.d, v, guard);
                }
            }
            LoadParam => self.load_param(body, i, guard),
            Load => {}
        }
    }

    fn compare(&mut self, body: &mut Body, i: &Ins, recipe: Recipe, guard: Option<Value>) {
        let signed = matches!(i.op, Op::CmpS16 | Op::CmpS32 | Op::CmpS64);
        let v = match recipe {
            Recipe::Compare => {
                let (mut x, mut y) = (self.int(body, i.a), self.int(body, i.b));
                if i.op == Op::CmpS16 {
                    (x, y) = (signed16(&mut self.b, x), signed16(&mut self.b, y));
                }
                self.b.ins().icmp(integer_relation(i.e, signed), x, y)
            }
            Recipe::CompareLong => {
                let (mut x, mut y) = (self.long(body, i.a), self.long(body, i.b));
                if !signed {
                    let sign = splat64(&mut self.b, 1 << 63);
                    x = x.map(|x| self.b.ins().bxor(x, sign));
                    y = y.map(|y| self.b.ins().bxor(y, sign));
                }
                let parts = [0, 1].map(|h| self.b.ins().icmp(integer_relation(i.e, true), x[h], y[h]));
                low_words(&mut self.b, parts)
            }
            Recipe::CompareFloat => {
                let (x, y) = (self.float(body, i.a), self.float(body, i.b));
                self.float_relation(i.e, x, y)
            }
            _ => {
                let (x, y) = (self.long(body, i.a), self.long(body, i.b));
                let parts = [0, 1].map(|h| {
                    let (x, y) = (cast(&mut self.b, F64X2, x[h]), cast(&mut self.b, F64X2, y[h]));
                    self.float_relation(i.e, x, y)
                });
                low_words(&mut self.b, parts)
            }
        };
        if i.d != NONE {
            self.set_mask(body, i.d, v, guard);
        }
        if i.c != NONE {
            let v = self.b.ins().bnot(v);
            self.set_mask(body, i.c, v, guard);
        }
    }

    fn float_relation(&mut self, code: u32, x: Value, y: Value) -> Value {
        let mut is = |cc| self.b.ins().fcmp(cc, x, y);
        let relation = Relation::of(code);
        use Relation::*;
        match relation {
            Eq => is(FloatCC::Equal),
            Lt => is(FloatCC::LessThan),
            Le => is(FloatCC::LessThanOrEqual),
            Gt => is(FloatCC::GreaterThan),
            Ge => is(FloatCC::GreaterThanOrEqual),
            Neu => is(FloatCC::NotEqual),
            Num => is(FloatCC::Ordered),
            Nan => is(FloatCC::Unordered),
            Ne => {
                let (differs, ordered) = (is(FloatCC::NotEqual), is(FloatCC::Ordered));
                self.b.ins().band(differs, ordered)
            }
            Equ => {
                let (equal, unordered) = (is(FloatCC::Equal), is(FloatCC::Unordered));
                self.b.ins().bor(equal, unordered)
            }
            // The unordered relations hold where the opposite does not.
            Ltu | Leu | Gtu | Geu => {
                let opposite = is(match relation {
                    Ltu => FloatCC::GreaterThanOrEqual,
                    Leu => FloatCC::GreaterThan,
                    Gtu => FloatCC::LessThanOrEqual,
                    _ => FloatCC::LessThan,
                });
                self.b.ins().bnot(opposite)
            }
        }
    }

    fn logic(&mut self, body: &mut Body, i: &Ins, guard: Option<Value>) {
        if i.op == Op::PredConst {
            let v = splat32(&mut self.b, if i.e == 1 { u32::MAX } else { 0 });
            return self.set_mask(body, i.d, v, guard);
        }
        let mut get = |e: &mut Self, row: u32, bit: u32| {
            let v = e.predicate(body, row);
            if i.e >> bit & 1 == 1 { e.b.ins().bnot(v) } else { v }
        };
        let x = get(self, i.a, 0);
        let v = match i.op {
            Op::PredMov => self.predicate(body, i.a),
            Op::PredNot => self.b.ins().bnot(x),
            op => {
                let y = get(self, i.b, 1);
                match op {
                    Op::PredAnd => self.b.ins().band(x, y),
                    Op::PredOr => self.b.ins().bor(x, y),
                    _ => self.b.ins().bxor(x, y),
                }
            }
        };
        self.set_mask(body, i.d, v, guard);
    }

    /// `lop3` by its table, one operand after the other.
    fn lop3(&mut self, x: Value, y: Value, z: Value, table: u32) -> Value {
        match table & 255 {
            0x96 => {
                let v = self.b.ins().bxor(x, y);
                return self.b.ins().bxor(v, z);
            }
            0x80 => {
                let v = self.b.ins().band(x, y);
                return self.b.ins().band(v, z);
            }
            0xfe => {
                let v = self.b.ins().bor(x, y);
                return self.b.ins().bor(v, z);
            }
            _ => {}
        }
        // The four values for x and y, each a function of z.
        let of_z: Vec<Value> = (0..4)
            .map(|pair| match table >> (2 * pair) & 3 {
                0 => splat32(&mut self.b, 0),
                1 => self.b.ins().bnot(z),
                2 => z,
                _ => splat32(&mut self.b, u32::MAX),
            })
            .collect();
        let without = self.b.ins().bitselect(y, of_z[1], of_z[0]);
        let with = self.b.ins().bitselect(y, of_z[3], of_z[2]);
        self.b.ins().bitselect(x, with, without)
    }

    fn special(&mut self, body: &mut Body, i: &Ins, guard: Option<Value>) {
        let v = match lane_row(i.e) {
            Some(row) => {
                let lanes = self.field(offset_of!(Environment, lanes));
                let at = self.b.ins().isub(body.p32, self.frame);
                let at = self.b.ins().iadd(lanes, at);
                self.b.ins().load(I32X4, flags().with_readonly(), at, body.at32(row))
            }
            None => {
                let v = self.uniform(i.e);
                self.b.ins().splat(I32X4, v)
            }
        };
        if i.c == Width::W64 as u32 {
            let wide = [self.b.ins().uwiden_low(v), self.b.ins().uwiden_high(v)];
            return self.set_long(body, i.d, wide, guard);
        }
        let mut v = v;
        if i.c == Width::W16 as u32 {
            let cut = splat32(&mut self.b, 0xffff);
            v = self.b.ins().band(v, cut);
        }
        self.set_int(body, i.d, v, guard);
    }

    fn load_param(&mut self, body: &mut Body, i: &Ins, guard: Option<Value>) {
        let function = self.o.function;
        let fixed = flags().with_readonly();
        let m = &function.memories[i.e as usize];
        for (k, value) in m.values.iter().enumerate().filter(|(_, v)| v.0 != NONE) {
            let offset = m.address.offset as i32 + (m.size as usize * k) as i32;
            let params = self.field(offset_of!(Environment, params));
            let v = match m.size {
                8 => {
                    let v = self.b.ins().load(I64, fixed, params, offset);
                    Slot::Long([self.b.ins().splat(I64X2, v); 2])
                }
                size => {
                    let v = match size {
                        1 => self.b.ins().uload8(I32, fixed, params, offset),
                        2 => self.b.ins().uload16(I32, fixed, params, offset),
                        _ => self.b.ins().load(I32, fixed, params, offset),
                    };
                    Slot::Int(self.b.ins().splat(I32X4, v))
                }
            };
            self.deliver(body, m, *value, v, guard);
        }
    }
}

/// The row of [`Environment::lanes`] that holds a special register, if it differs from lane to lane.
pub fn lane_row(special: u32) -> Option<u32> {
    match special {
        // The thread in x, y and z, the lane, and its masks.
        0..=2 => Some(special),
        12 => Some(3),
        22..=26 => Some(special - 18),
        _ => None,
    }
}

fn integer_relation(code: u32, signed: bool) -> IntCC {
    use Relation::*;
    match (Relation::of(code), signed) {
        (Ne, _) => IntCC::NotEqual,
        (Lt, true) => IntCC::SignedLessThan,
        (Lt, false) => IntCC::UnsignedLessThan,
        (Le, true) => IntCC::SignedLessThanOrEqual,
        (Le, false) => IntCC::UnsignedLessThanOrEqual,
        (Gt, true) => IntCC::SignedGreaterThan,
        (Gt, false) => IntCC::UnsignedGreaterThan,
        (Ge, true) => IntCC::SignedGreaterThanOrEqual,
        (Ge, false) => IntCC::UnsignedGreaterThanOrEqual,
        _ => IntCC::Equal,
    }
}
