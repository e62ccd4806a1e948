//! Loads, stores and atomics.  Every address is checked before it is used.

use super::lanes::Frame;
use super::warp::{Context, Stop, WORKSPACE, Warp};
use crate::error::Space;
use crate::ir::*;
use crate::types::Type;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Why an access was not made; the line is added by the caller.
pub enum Bad {
    Illegal(u64, Space),
    Misaligned(u64, u32),
}

/// The addresses of an access, in its own state space.
///
/// # Safety
/// The address was decoded for the frame's function.
#[inline(always)]
unsafe fn addresses(f: Frame, address: &Address) -> [u64; 32] {
    // SAFETY: the caller's.
    unsafe {
        let mut out = if address.frame {
            f.get::<u32>(ROW_LOCAL).map(u64::from)
        } else if address.row == NONE {
            [0; 32]
        } else if address.wide {
            f.get::<u64>(address.row)
        } else {
            f.get::<u32>(address.row).map(u64::from)
        };
        for a in &mut out {
            *a = a.wrapping_add(address.offset as u64);
        }
        if !address.wide {
            for a in &mut out {
                *a &= 0xffff_ffff;
            }
        }
        out
    }
}

/// Smallest, largest, and all bits of the addresses of the active lanes.
#[inline(always)]
fn extent(a: &[u64; 32], mask: u32) -> (u64, u64, u64) {
    let (mut low, mut high, mut bits) = (u64::MAX, 0, 0);
    if mask == u32::MAX {
        for v in a {
            low = low.min(*v);
            high = high.max(*v);
            bits |= v;
        }
    } else {
        for (l, v) in a.iter().enumerate() {
            let on = mask >> l & 1 == 1;
            low = low.min(if on { *v } else { u64::MAX });
            high = high.max(if on { *v } else { 0 });
            bits |= if on { *v } else { 0 };
        }
    }
    (low, high, bits)
}

/// Where an access of one lane lies in this process.
#[derive(Clone, Copy)]
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
pub fn resolve(c: &Context, w: &mut Warp, space: Space, lane: usize, address: u64, whole: u32) -> Result<Host, Bad> {
    if address & u64::from(whole - 1) != 0 {
        return Err(Bad::Misaligned(address, whole));
    }
    let illegal = Err(Bad::Illegal(address, space));
    let (window, offset) = match space {
        Space::Shared | Space::Local => (space, address),
        Space::Global | Space::Const => (Space::Global, address),
        _ if address >= FUNCTION_WINDOW => return illegal,
        _ if address >= PARAM_WINDOW => (Space::Param, address - PARAM_WINDOW),
        _ if address >= LOCAL_WINDOW => (Space::Local, address - LOCAL_WINDOW),
        _ if address >= SHARED_WINDOW => (Space::Shared, address - SHARED_WINDOW),
        _ => (Space::Global, address),
    };
    let end = offset.saturating_add(u64::from(whole));
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
        Space::Param if end <= c.params.len() as u64 => c.params.as_ptr() as u64 + offset,
        // An aligned access lies in one page.
        Space::Global if c.arena.touches(offset) => offset,
        Space::Global if c.workspace != 0 && offset.wrapping_sub(c.workspace) <= WORKSPACE - u64::from(whole) => offset,
        _ => return illegal,
    };
    Ok(Host { granule: host & !7, within: host & 7, step: 8 })
}

/// Turns addresses of one element (`size` bytes, `whole` for the vector that it begins) into host pointers.
#[inline(always)]
fn translate(
    c: &Context,
    w: &mut Warp,
    space: Space,
    a: &mut [u64; 32],
    size: u32,
    whole: u32,
    mask: u32,
) -> Result<(), Bad> {
    let (low, high, bits) = extent(a, mask);
    if bits & u64::from(whole - 1) != 0 {
        return Err(misaligned(a, mask, whole));
    }
    match space {
        Space::Shared => {
            if high >= u64::from(c.shared_len) || u64::from(c.shared_len) - high < u64::from(whole) {
                return Err(outside(a, mask, Space::Shared, |v| {
                    v < u64::from(c.shared_len) && u64::from(c.shared_len) - v >= u64::from(whole)
                }));
            }
            for v in a.iter_mut() {
                *v = v.wrapping_add(c.shared as u64);
            }
            Ok(())
        }
        Space::Global | Space::Const => global(c, space, a, low, high, whole, mask),
        Space::Generic | Space::Param if high < SHARED_WINDOW => global(c, Space::Global, a, low, high, whole, mask),
        _ => windows(c, w, space, a, size, whole, mask),
    }
}

#[inline(always)]
fn global(c: &Context, space: Space, a: &[u64; 32], low: u64, high: u64, whole: u32, mask: u32) -> Result<(), Bad> {
    // All within a few pages: check those; else each lane.
    if high - low < 32 * 1024 && c.arena.contains(low, high - low + u64::from(whole)) {
        return Ok(());
    }
    // An aligned access lies in one page.
    for (l, v) in a.iter().enumerate() {
        let workspace = c.workspace != 0 && v.wrapping_sub(c.workspace) < WORKSPACE - u64::from(whole - 1);
        if mask >> l & 1 == 1 && !c.arena.touches(*v) && !workspace {
            return Err(Bad::Illegal(*v, space));
        }
    }
    Ok(())
}

#[cold]
fn misaligned(a: &[u64; 32], mask: u32, size: u32) -> Bad {
    let wrong = |(l, v): &(usize, &u64)| mask >> l & 1 == 1 && **v & u64::from(size - 1) != 0;
    let address = a.iter().enumerate().find(wrong).map_or(0, |(_, v)| *v);
    Bad::Misaligned(address, size)
}

#[cold]
fn outside(a: &[u64; 32], mask: u32, space: Space, ok: impl Fn(u64) -> bool) -> Bad {
    let wrong = |(l, v): &(usize, &u64)| mask >> l & 1 == 1 && !ok(**v);
    let address = a.iter().enumerate().find(wrong).map_or(0, |(_, v)| *v);
    Bad::Illegal(address, space)
}

/// Local memory, and generic addresses that reach other windows.
#[inline(never)]
fn windows(
    c: &Context,
    w: &mut Warp,
    space: Space,
    a: &mut [u64; 32],
    size: u32,
    whole: u32,
    mask: u32,
) -> Result<(), Bad> {
    for (l, v) in a.iter_mut().enumerate() {
        if mask >> l & 1 == 0 {
            continue;
        }
        let address = *v;
        let illegal = Bad::Illegal(address, space);
        let (window, offset) = match space {
            Space::Local => (Space::Local, address),
            _ if address >= FUNCTION_WINDOW => return Err(illegal),
            _ if address >= PARAM_WINDOW => (Space::Param, address - PARAM_WINDOW),
            _ if address >= LOCAL_WINDOW => (Space::Local, address - LOCAL_WINDOW),
            _ if address >= SHARED_WINDOW => (Space::Shared, address - SHARED_WINDOW),
            _ => (Space::Global, address),
        };
        let end = offset.saturating_add(u64::from(whole));
        *v = match window {
            Space::Local => w.local_pointer(l, offset, size).ok_or(illegal)?,
            Space::Shared if end <= u64::from(c.shared_len) => c.shared as u64 + offset,
            Space::Param if end <= c.params.len() as u64 => c.params.as_ptr() as u64 + offset,
            Space::Global if c.arena.touches(offset) => offset,
            _ => return Err(illegal),
        };
    }
    Ok(())
}

/// Whether an access in this space must be translated element by element.
fn scattered(space: Space, a: &[u64; 32], mask: u32) -> bool {
    match space {
        Space::Local => true,
        Space::Generic | Space::Param => extent(a, mask).1 >= SHARED_WINDOW,
        _ => false,
    }
}

/// `st`, wherever the lanes point.
///
/// # Safety
/// The access was decoded for the frame's function, and the mask is not empty.
#[inline(never)]
pub unsafe fn store(c: &Context, w: &mut Warp, f: Frame, m: &Memory, mask: u32) -> Result<(), Bad> {
    // SAFETY: as in `load`.
    unsafe {
        let start = addresses(f, &m.address);
        if !matches!(m.space, Space::Global | Space::Shared | Space::Local | Space::Generic) {
            return Err(outside(&start, mask, m.space, |_| false));
        }
        let whole = m.size * m.values.len() as u32;
        let each = scattered(m.space, &start, mask);
        if each
            && m.space != Space::Local
            && start.iter().enumerate().any(|(l, a)| mask >> l & 1 == 1 && *a >= PARAM_WINDOW)
        {
            return Err(outside(&start, mask, m.space, |a| a < PARAM_WINDOW));
        }
        let mut host = start;
        if !each {
            translate(c, w, m.space, &mut host, m.size, whole, mask)?;
        }
        for (k, (row, width)) in m.values.iter().enumerate() {
            let mut offset = u64::from(m.size) * k as u64;
            if each {
                host = start.map(|a| a.wrapping_add(offset));
                let needed = if k == 0 { whole } else { m.size };
                translate(c, w, m.space, &mut host, m.size, needed, mask)?;
                offset = 0;
            }
            match (m.size, width) {
                (4, Width::W32) => {
                    let values = f.get::<u32>(*row);
                    let first = host[0] + offset;
                    let contiguous = mask == u32::MAX && (0..32).all(|l| host[l] + offset == first + 4 * l as u64);
                    if contiguous {
                        *(first as *mut [u32; 32]) = values;
                    } else {
                        for l in 0..32 {
                            if mask >> l & 1 == 1 {
                                *((host[l] + offset) as *mut u32) = values[l];
                            }
                        }
                    }
                }
                _ => {
                    let values =
                        if *width == Width::W64 { f.get::<u64>(*row) } else { f.get::<u32>(*row).map(u64::from) };
                    for l in 0..32 {
                        if mask >> l & 1 == 1 {
                            let p = host[l] + offset;
                            match m.size {
                                1 => *(p as *mut u8) = values[l] as u8,
                                2 => *(p as *mut u16) = values[l] as u16,
                                4 => *(p as *mut u32) = values[l] as u32,
                                _ => *(p as *mut u64) = values[l],
                            }
                        }
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
        (Add, Type::F32) => u64::from((f32::from_bits(old as u32) + f32::from_bits(x as u32)).to_bits()),
        (Add, Type::F64) => (f64::from_bits(old) + f64::from_bits(x)).to_bits(),
        (Add, Type::F16) => u64::from(crate::half::op16(old as u16, x as u16, |a, b| a + b)),
        (Add, Type::Bf16) => u64::from(crate::half::op_bf16(old as u16, x as u16, |a, b| a + b)),
        (Add, Type::F16x2) => u64::from(crate::half::op16x2(old as u32, x as u32, |a, b| a + b)),
        (Add, Type::Bf16x2) => {
            let low = crate::half::op_bf16(old as u16, x as u16, |a, b| a + b);
            let high = crate::half::op_bf16((old >> 16) as u16, (x >> 16) as u16, |a, b| a + b);
            u64::from(low) | u64::from(high) << 16
        }
        (Min, Type::F32) => {
            u64::from(crate::float::min32(f32::from_bits(old as u32), f32::from_bits(x as u32)).to_bits())
        }
        (Max, Type::F32) => {
            u64::from(crate::float::max32(f32::from_bits(old as u32), f32::from_bits(x as u32)).to_bits())
        }
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

/// `atom` and `red`, lane by lane in order.
///
/// # Safety
/// The access was decoded for the frame's function.
#[inline(never)]
pub unsafe fn atomic(c: &Context, w: &mut Warp, f: Frame, m: &Atomic, mask: u32) -> Result<(), Bad> {
    // SAFETY: the caller's for the registers; `translate` for the pointers.
    unsafe {
        let mut host = addresses(f, &m.address);
        let size = m.ty.size();
        let wide = size == 8;
        let local = |v: &u64| (LOCAL_WINDOW..FUNCTION_WINDOW).contains(v);
        if host.iter().enumerate().any(|(l, v)| mask >> l & 1 == 1 && local(v)) {
            return Err(outside(&host, mask, m.space, |v| !local(&v)));
        }
        translate(c, w, m.space, &mut host, size, size, mask)?;
        let read = |row: u32| if wide { f.get::<u64>(row) } else { f.get::<u32>(row).map(u64::from) };
        let x = read(m.operand);
        let swap = if m.swap == NONE { [0; 32] } else { read(m.swap) };
        let mut old = [0u64; 32];
        for l in 0..32 {
            if mask >> l & 1 == 0 {
                continue;
            }
            let new = |old: u64| combine(m.op, m.ty, old, x[l], swap[l]);
            old[l] = match size {
                8 => {
                    let cell = AtomicU64::from_ptr(host[l] as *mut u64);
                    match m.op {
                        AtomicOp::Add if !m.ty.float() => cell.fetch_add(x[l], Ordering::SeqCst),
                        AtomicOp::Exch => cell.swap(x[l], Ordering::SeqCst),
                        _ => update!(AtomicU64, u64, host[l], new),
                    }
                }
                4 => {
                    let cell = AtomicU32::from_ptr(host[l] as *mut u32);
                    match m.op {
                        AtomicOp::Add if !m.ty.float() => u64::from(cell.fetch_add(x[l] as u32, Ordering::SeqCst)),
                        AtomicOp::Exch => u64::from(cell.swap(x[l] as u32, Ordering::SeqCst)),
                        _ => update!(AtomicU32, u32, host[l], new),
                    }
                }
                _ => update!(AtomicU16, u16, host[l], new),
            };
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

/// The fault for an access that was not made.
#[cold]
pub fn fault(c: &Context, bad: Bad, line: u32, write: bool) -> Stop {
    use crate::error::Fault;
    let kernel = c.kernel.name.clone();
    Stop::Fault(match bad {
        Bad::Illegal(address, space) => Fault::IllegalAddress { address, space, write, kernel, line },
        Bad::Misaligned(address, size) => Fault::Misaligned { address, size, kernel, line },
    })
}
