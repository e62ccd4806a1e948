//! Stores and atomics, copies between memories, and where a lane's address lies.  Every address is checked before it is
//! used.

use super::lanes::Frame;
use super::warp::{Context, Stop, WORKSPACE, Warp};
use crate::error::{Fault, Space};
use crate::float::{flushed32, single};
use crate::ir::*;
use crate::types::Type;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Why an access of a lane was not made.
pub enum Bad {
    Illegal(u64, Space, usize),
    Misaligned(u64, u32, usize),
}

/// The addresses of an access, in its own state space.
///
/// # Safety
/// The address was decoded for the frame's function.
pub unsafe fn addresses(f: Frame, address: &Address) -> [u64; 32] {
    // SAFETY: the caller's.
    let base = unsafe {
        if address.frame {
            f.get::<u32>(ROW_LOCAL).map(u64::from)
        } else if address.row == NONE {
            [0; 32]
        } else if address.wide {
            f.get::<u64>(address.row)
        } else {
            f.get::<u32>(address.row).map(u64::from)
        }
    };
    let cut = if address.wide { u64::MAX } else { 0xffff_ffff };
    base.map(|a| a.wrapping_add(address.offset as u64) & cut)
}

/// The lanes of a mask, in order.
fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |l| mask >> l & 1 == 1)
}

/// Where an access of one lane lies in this process.
#[derive(Clone, Copy, Default)]
pub struct Host {
    /// The granule of 8 bytes that it begins in, the place in it, and the distance to the next granule.
    granule: u64,
    within: u64,
    step: u64,
}

impl Host {
    /// A byte of the access.
    #[inline(always)]
    pub fn at(&self, offset: u64) -> u64 {
        let at = self.within + offset;
        self.granule + at / 8 * self.step + at % 8
    }
}

/// Finds where a lane's access of `whole` bytes lies, if it may be made.
pub fn resolve(
    c: &Context,
    w: &mut Warp,
    space: Space,
    lane: usize,
    address: u64,
    whole: u32,
    write: bool,
) -> Result<Host, Bad> {
    if address & u64::from(whole - 1) != 0 {
        return Err(Bad::Misaligned(address, whole, lane));
    }
    let (window, offset) = match space {
        Space::Shared | Space::Local => (space, address),
        Space::Const if write => return Err(Bad::Illegal(address, space, lane)),
        Space::Global | Space::Const => (Space::Global, address),
        _ if address >= FUNCTION_WINDOW => return Err(Bad::Illegal(address, space, lane)),
        _ if address >= PARAM_WINDOW => (Space::Param, address - PARAM_WINDOW),
        _ if address >= LOCAL_WINDOW => (Space::Local, address - LOCAL_WINDOW),
        _ if address >= SHARED_WINDOW => (Space::Shared, address - SHARED_WINDOW),
        _ => (Space::Global, address),
    };
    let illegal = Err(Bad::Illegal(offset, window, lane));
    let end = offset.saturating_add(u64::from(whole));
    let in_workspace = |offset: u64| {
        c.workspace != 0 && offset.wrapping_sub(c.workspace) <= WORKSPACE.saturating_sub(u64::from(whole))
    };
    let host = match window {
        Space::Local => {
            for first in (0..u64::from(whole)).step_by(8) {
                if w.local_pointer(lane, offset + first, whole.min(8)).is_none() {
                    return illegal;
                }
            }
            let granule = w.local_pointer(lane, offset & !7, 8).unwrap_or_default();
            return Ok(Host { granule, within: offset & 7, step: 256 });
        }
        Space::Shared if end <= u64::from(c.shared_len) => c.shared as u64 + offset,
        Space::Param if !write && end <= c.params.len() as u64 => c.params.as_ptr() as u64 + offset,
        Space::Global if c.arena.touches(offset, u64::from(whole)) || in_workspace(offset) => offset,
        _ => return illegal,
    };
    Ok(Host { granule: host & !7, within: host & 7, step: 8 })
}

/// `isspacep`: the lanes whose addresses lie in the state space.
///
/// # Safety
/// The instruction was decoded for the frame's function.
pub unsafe fn is_space(c: &Context, f: Frame, i: &Ins, mask: u32) {
    // SAFETY: the caller's.
    unsafe {
        let mut out = 0;
        for (l, a) in f.get::<u64>(i.a).into_iter().enumerate() {
            let space = match a {
                a if a < SHARED_WINDOW && c.kernel.is_constant(a) => Space::Const,
                a if a < SHARED_WINDOW => Space::Global,
                a if a < LOCAL_WINDOW => Space::Shared,
                a if a < PARAM_WINDOW => Space::Local,
                _ => Space::Param,
            };
            out |= u32::from(space as u32 == i.e) << l;
        }
        f.set_mask(i.d, out, mask);
    }
}

/// Where the processor does not keep accesses in order by itself, volatile and ordered ones are kept.
#[inline(always)]
fn in_order(m: &Memory) {
    if m.strong && !cfg!(target_arch = "x86_64") {
        std::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// `st`: all lanes are looked at before the first one is stored.
///
/// # Safety
/// The access was decoded for the frame's function.
#[inline(never)]
pub unsafe fn store(c: &Context, w: &mut Warp, f: Frame, m: &Memory, mask: u32) -> Result<(), Bad> {
    in_order(m);
    let whole = m.size * m.values.len() as u32;
    // SAFETY (all of the function): the caller's for the registers; `resolve` gave mapped and aligned memory, for
    // which plain stores are what the GPU's memory model promises too.
    unsafe {
        let at = addresses(f, &m.address);
        let mut hosts = [Host::default(); 32];
        for l in lanes_of(mask) {
            hosts[l] = resolve(c, w, m.space, l, at[l], whole, true)?;
        }
        for (k, (row, width)) in m.values.iter().enumerate() {
            let values = if *width == Width::W64 { f.get::<u64>(*row) } else { f.get::<u32>(*row).map(u64::from) };
            for l in lanes_of(mask) {
                let p = hosts[l].at(u64::from(m.size) * k as u64);
                match m.size {
                    1 => *(p as *mut u8) = values[l] as u8,
                    2 => *(p as *mut u16) = values[l] as u16,
                    4 => *(p as *mut u32) = values[l] as u32,
                    _ => *(p as *mut u64) = values[l],
                }
            }
        }
    }
    Ok(())
}

/// Updates the elements of a piece of memory by those of another; both may be accessed as a whole.
///
/// # Safety
/// Both are mapped and aligned, and not local memory.
unsafe fn reduce(reduction: Reducing, space: Space, target: Host, source: Host, bytes: u64) {
    let Reducing { op, ty, flushes } = reduction;
    let update = Update { op, ty, flushes: flushes && space == Space::Global };
    let size = ty.size();
    for k in (0..bytes).step_by(size as usize) {
        // SAFETY: the caller's.
        unsafe {
            let x = match size {
                2 => u64::from(*(source.at(k) as *const u16)),
                4 => u64::from(*(source.at(k) as *const u32)),
                _ => *(source.at(k) as *const u64),
            };
            update.at(target.at(k), x, 0);
        }
    }
}

/// `cp.async`, done at once.
///
/// # Safety
/// The copy was decoded for the frame's function.
#[inline(never)]
pub unsafe fn copy(c: &Context, w: &mut Warp, f: Frame, copy: &Copy, mask: u32) -> Result<(), Bad> {
    // SAFETY (all of the function): the caller's for the registers; `resolve` for the pointers.
    unsafe {
        let (to, from) = (addresses(f, &copy.to), addresses(f, &copy.from));
        let read = |row: u32, otherwise: u32| if row == NONE { [otherwise; 32] } else { f.get::<u32>(row) };
        let (given, length) = (read(copy.given, copy.size), read(copy.length, copy.size));
        let (bytes, skipped) = (read(copy.bytes, u32::MAX), copy.skipped.map(|row| read(row, 0)));
        for l in lanes_of(mask) {
            // One side of a copy in bulk is shared memory, whatever of it is left out.
            if copy.length != NONE && length[l] > c.shared_len {
                let first = if copy.spaces.0 == Space::Shared { to[l] } else { from[l] };
                return Err(Bad::Illegal(first.wrapping_add(u64::from(length[l]) - 1), Space::Shared, l));
            }
            if length[l] % copy.size != 0 {
                return Err(Bad::Misaligned(u64::from(length[l]), copy.size, l));
            }
            let given = given[l].min(copy.size);
            let whole = u64::from(length[l]);
            let inside = u64::from(skipped[0][l])..whole.saturating_sub(u64::from(skipped[1][l]));
            let wanted = |at: u64, k: u64| bytes[l] >> k & 1 == 1 && inside.contains(&(at + k));
            for at in (0..whole).step_by(copy.size as usize) {
                let (to, from) = (to[l].wrapping_add(at), from[l].wrapping_add(at));
                if let Some(wrong) = [to, from].into_iter().find(|address| address & u64::from(copy.size - 1) != 0) {
                    return Err(Bad::Misaligned(wrong, copy.size, l));
                }
                // Bytes that are left out or not read need not be there: copies of any length are rounded up to pieces.
                let all = given == copy.size && (0..u64::from(given)).all(|k| wanted(at, k));
                let piece = if all { copy.size } else { 1 };
                for first in (0..u64::from(copy.size)).step_by(piece as usize).filter(|k| wanted(at, *k)) {
                    let target = resolve(c, w, copy.spaces.0, l, to.wrapping_add(first), piece, true)?;
                    if first >= u64::from(given) {
                        *(target.at(0) as *mut u8) = 0;
                        continue;
                    }
                    let source = resolve(c, w, copy.spaces.1, l, from.wrapping_add(first), piece, false)?;
                    if let Some(reduction) = copy.reduction {
                        reduce(reduction, copy.spaces.0, target, source, u64::from(piece));
                        continue;
                    }
                    for k in 0..u64::from(piece) {
                        *(target.at(k) as *mut u8) = *(source.at(k) as *const u8);
                    }
                }
            }
        }
    }
    Ok(())
}

fn combine(op: AtomicOp, ty: Type, old: u64, x: u64, swap: u64) -> u64 {
    use AtomicOp::*;
    let bits = 8 * ty.size();
    let signed = |v: u64| (v << (64 - bits)) as i64 >> (64 - bits);
    let value = match (op, ty) {
        (BarrierInit, _) => crate::mbarrier::init(x),
        (BarrierArrive, _) => crate::mbarrier::arrive(old, x),
        (BarrierDrop, _) => crate::mbarrier::arrive_and_drop(old, x),
        (BarrierExpect, _) => crate::mbarrier::expect(old, x),
        (BarrierComplete, _) => crate::mbarrier::complete(old, x),
        (Exch, _) => x,
        (Cas, _) => {
            if old == x {
                swap
            } else {
                old
            }
        }
        (And, _) => old & x,
        (Or, _) => old | x,
        (Xor, _) => old ^ x,
        (Inc, _) => {
            if old >= x {
                0
            } else {
                old + 1
            }
        }
        (Dec, _) => {
            if old == 0 || old > x {
                x
            } else {
                old - 1
            }
        }
        (Add, Type::F32) => u64::from(single(f32::from_bits(old as u32) + f32::from_bits(x as u32))),
        (Add, Type::F64) => (f64::from_bits(old) + f64::from_bits(x)).to_bits(),
        (Add, Type::F16) => u64::from(crate::half::op16(old as u16, x as u16, |a, b| a + b)),
        (Add, Type::Bf16) => u64::from(crate::half::op_bf16(old as u16, x as u16, |a, b| a + b)),
        (Add, Type::F16x2) => u64::from(crate::half::op16x2(old as u32, x as u32, |a, b| a + b)),
        (Add, Type::Bf16x2) => u64::from(crate::half::op_bf16x2(old as u32, x as u32, |a, b| a + b)),
        (Min, Type::F32) => {
            u64::from(single(crate::float::min32(f32::from_bits(old as u32), f32::from_bits(x as u32))))
        }
        (Max, Type::F32) => {
            u64::from(single(crate::float::max32(f32::from_bits(old as u32), f32::from_bits(x as u32))))
        }
        (Min, Type::F16) => u64::from(crate::half::op16(old as u16, x as u16, crate::float::min64)),
        (Max, Type::F16) => u64::from(crate::half::op16(old as u16, x as u16, crate::float::max64)),
        (Min, Type::F16x2) => u64::from(crate::half::op16x2(old as u32, x as u32, crate::float::min64)),
        (Max, Type::F16x2) => u64::from(crate::half::op16x2(old as u32, x as u32, crate::float::max64)),
        (Min, Type::Bf16) => u64::from(crate::half::op_bf16(old as u16, x as u16, crate::float::min64)),
        (Max, Type::Bf16) => u64::from(crate::half::op_bf16(old as u16, x as u16, crate::float::max64)),
        (Min, Type::Bf16x2) => u64::from(crate::half::op_bf16x2(old as u32, x as u32, crate::float::min64)),
        (Max, Type::Bf16x2) => u64::from(crate::half::op_bf16x2(old as u32, x as u32, crate::float::max64)),
        (Min, Type::F64) => crate::float::min64(f64::from_bits(old), f64::from_bits(x)).to_bits(),
        (Max, Type::F64) => crate::float::max64(f64::from_bits(old), f64::from_bits(x)).to_bits(),
        (Add, _) => old.wrapping_add(x),
        (Min, ty) if ty.signed() => signed(old).min(signed(x)) as u64,
        (Max, ty) if ty.signed() => signed(old).max(signed(x)) as u64,
        (Min, _) => old.min(x),
        (Max, _) => old.max(x),
    };
    if bits == 64 { value } else { value & ((1 << bits) - 1) }
}

macro_rules! update {
    ($atomic:ty, $t:ty, $p:expr, $f:expr) => {{
        // The pointer is mapped and aligned; other threads' plain accesses to it are the kernel's own concern.
        let cell = <$atomic>::from_ptr($p as *mut $t);
        let mut old = cell.load(Ordering::SeqCst);
        loop {
            let new = $f(u64::from(old)) as $t;
            match cell.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => break u64::from(old),
                Err(now) => old = now,
            }
        }
    }};
}

/// What becomes of an element in memory.
#[derive(Clone, Copy)]
struct Update {
    op: AtomicOp,
    ty: Type,
    /// Numbers of single precision below the smallest normal one are zeros.
    flushes: bool,
}

impl Update {
    /// Updates the element there, which no other update cuts in two; gives what it was.
    ///
    /// # Safety
    /// The element is mapped and aligned.
    #[inline(always)]
    unsafe fn at(self, host: u64, x: u64, swap: u64) -> u64 {
        let Update { op, ty, flushes } = self;
        let kept = |bits: u64| {
            if flushes { u64::from(flushed32(f32::from_bits(bits as u32)).to_bits()) } else { bits }
        };
        let new = |old: u64| kept(combine(op, ty, kept(old), kept(x), swap));
        // SAFETY: the caller's.
        unsafe {
            match ty.size() {
                8 => {
                    let cell = AtomicU64::from_ptr(host as *mut u64);
                    match op {
                        AtomicOp::Add if !ty.float() => cell.fetch_add(x, Ordering::SeqCst),
                        AtomicOp::Exch => cell.swap(x, Ordering::SeqCst),
                        _ => update!(AtomicU64, u64, host, new),
                    }
                }
                4 => {
                    let cell = AtomicU32::from_ptr(host as *mut u32);
                    match op {
                        AtomicOp::Add if !ty.float() => u64::from(cell.fetch_add(x as u32, Ordering::SeqCst)),
                        AtomicOp::Exch => u64::from(cell.swap(x as u32, Ordering::SeqCst)),
                        _ => update!(AtomicU32, u32, host, new),
                    }
                }
                _ => update!(AtomicU16, u16, host, new),
            }
        }
    }
}

/// `atom` and `red`, lane by lane in order.
///
/// # Safety
/// The access was decoded for the frame's function.
#[inline(never)]
pub unsafe fn atomic(c: &Context, w: &mut Warp, f: Frame, m: &Atomic, mask: u32) -> Result<(), Bad> {
    // SAFETY: the caller's for the registers; `resolve` for the pointers.
    unsafe {
        let at = addresses(f, &m.address);
        let size = m.ty.size();
        let wide = size == 8;
        let mut hosts = [0u64; 32];
        for l in lanes_of(mask) {
            if at[l] & u64::from(m.align - 1) != 0 {
                return Err(Bad::Misaligned(at[l], m.align, l));
            }
            hosts[l] = resolve(c, w, m.space, l, at[l], size, true)?.at(0);
        }
        let read = |row: u32| if wide { f.get::<u64>(row) } else { f.get::<u32>(row).map(u64::from) };
        let x = read(m.operand);
        let swap = if m.swap == NONE { [0; 32] } else { read(m.swap) };
        let mut old = [0u64; 32];
        for l in lanes_of(mask) {
            let global = m.space == Space::Global || (m.space == Space::Generic && at[l] < SHARED_WINDOW);
            let update = Update { op: m.op, ty: m.ty, flushes: m.flushes && global };
            old[l] = update.at(hosts[l], x[l], swap[l]);
        }
        if m.old != NONE {
            if wide {
                f.put(m.old, &old, mask);
            } else {
                f.put(m.old, &old.map(|v| v as u32), mask);
            }
        }
    }
    Ok(())
}

/// Held while 16 bytes are read or written at once, for which there is no instruction on every host.
static LONG: Mutex<()> = Mutex::new(());

/// `ld`, `st` and `atom` of 128 bits, lane by lane in order.
///
/// # Safety
/// The access was decoded for the frame's function.
#[inline(never)]
pub unsafe fn long(c: &Context, w: &mut Warp, f: Frame, m: &Long, mask: u32) -> Result<(), Bad> {
    // SAFETY: the caller's for the registers; `resolve` gave mapped and aligned memory.
    unsafe {
        let at = addresses(f, &m.address);
        let read = |rows: [u32; 2]| rows.map(|row| if row == NONE { [0; 32] } else { f.get::<u64>(row) });
        let (operand, swap) = (read(m.operand), read(m.swap));
        let mut old = [[0u64; 32]; 2];
        for l in lanes_of(mask) {
            let host = resolve(c, w, m.space, l, at[l], 16, m.op != LongOp::Load)?;
            let halves = [host.at(0), host.at(8)].map(|p| p as *mut u64);
            let (operand, swap) = (operand.map(|half| half[l]), swap.map(|half| half[l]));
            let _held = LONG.lock().unwrap_or_else(PoisonError::into_inner);
            let before = halves.map(|p| p.read_volatile());
            let new = match m.op {
                LongOp::Load => None,
                LongOp::Store | LongOp::Exch => Some(operand),
                LongOp::Cas => (before == operand).then_some(swap),
            };
            for (half, p) in halves.into_iter().enumerate() {
                old[half][l] = before[half];
                if let Some(new) = new {
                    p.write_volatile(new[half]);
                }
            }
        }
        for (row, old) in m.old.into_iter().zip(old).filter(|(row, _)| *row != NONE) {
            f.put(row, &old, mask);
        }
    }
    Ok(())
}

/// The fault for an access that was not made.
#[cold]
pub fn fault(c: &Context, w: &Warp, bad: Bad, line: u32, write: bool) -> Stop {
    Stop::Fault(match bad {
        Bad::Illegal(address, space, lane) => {
            let beyond = (space == Space::Shared).then_some(c.shared_len);
            Fault::IllegalAddress { address, space, write, shared_bytes: beyond, place: w.place(c, lane, line) }
        }
        Bad::Misaligned(address, size, lane) => Fault::Misaligned { address, size, place: w.place(c, lane, line) },
    })
}
