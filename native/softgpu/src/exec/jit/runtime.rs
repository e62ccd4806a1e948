//! What compiled code calls, and what it finds in its environment.

use super::super::lanes::{Frame, Row};
use super::super::memory::{self, Bad};
use super::super::trail::Trail;
use super::super::warp::{Context, Stop, Warp};
use super::super::{alu, cast};
use crate::error::{Fault, Space};
use crate::ir::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Addresses that an access may use without being looked up: `at - low < room`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Known {
    pub low: u64,
    pub room: u64,
}

/// What compiled code is handed besides the frame and the lanes.  Its layout is known to [`super::emit`].
#[repr(C)]
pub struct Environment {
    pub shared: *mut u8,
    pub shared_len: u64,
    pub params: *const u8,
    /// Rows of special registers that differ from lane to lane.
    pub lanes: *const Row,
    /// Special registers that all lanes share, by their number.
    pub uniform: *const u32,
    /// For each access the addresses known to be mapped.
    pub known: *mut Known,
    /// Where the accesses lie that are followed.
    pub trails: *mut [Trail; 2],
    // From here on only for the functions below.
    context: *const (),
    warp: *mut Warp,
    function: *const Function,
    pub stop: Option<Stop>,
}

/// A load in compiled code.
pub struct Site {
    pub memory: *const Memory,
    pub line: u32,
    /// Its place in [`Environment::known`].
    pub known: u32,
    /// Bytes that the compiled access covers from an address that is known.
    pub span: u32,
}

/// A segment of a kernel, compiled.  It gives zero, or anything else when [`Environment::stop`] says why it stopped.
pub type Code = unsafe extern "C" fn(*mut Environment, *mut Row, u32) -> u32;

impl Environment {
    /// The environment for code of this function.
    pub fn new(
        c: &Context,
        warp: *mut Warp,
        lanes: *const Row,
        trails: *mut [Trail; 2],
        function: &Function,
    ) -> Environment {
        Environment {
            shared: c.shared,
            shared_len: u64::from(c.shared_len),
            params: c.params.as_ptr(),
            lanes,
            uniform: c.uniform.as_ptr(),
            known: c.known,
            trails,
            context: std::ptr::from_ref(c).cast(),
            warp,
            function,
            stop: None,
        }
    }

    /// # Safety
    /// The context given to [`Environment::new`] still lives.
    unsafe fn context<'a>(&self) -> &'a Context<'a> {
        // SAFETY: the caller's.
        unsafe { &*self.context.cast() }
    }
}

/// Runs a function on behalf of compiled code: nothing unwinds through it.
fn guarded(environment: &mut Environment, work: impl FnOnce(&mut Environment) -> Result<(), Stop>) -> u32 {
    let done = catch_unwind(AssertUnwindSafe(|| work(environment)));
    let defect =
        || Err(Stop::Fault(Fault::LaunchFailure("the software GPU failed; this is a defect in it".to_string())));
    match done.unwrap_or_else(|_| defect()) {
        Ok(()) => 0,
        Err(stop) => {
            environment.stop = Some(stop);
            1
        }
    }
}

/// Executes one instruction for the lanes in the mask.
unsafe fn step(e: &mut Environment, frame: *mut Row, i: &Ins, mask: u32) -> Result<(), Stop> {
    let f = Frame(frame);
    // SAFETY (all of the function): `i` was decoded for the function whose frame `f` is; the environment's pointers
    // are those of the warp that runs.
    unsafe {
        let mut mask = mask;
        if i.guard != NONE {
            let p = f.mask(i.guard);
            mask &= if i.negate { !p } else { p };
        }
        if mask == 0 {
            return Ok(());
        }
        let (c, w, function) = (e.context(), &mut *e.warp, &*e.function);
        let done = match i.op {
            Op::Store => memory::store(c, w, f, &function.memories[i.e as usize], mask),
            Op::CopyAsync => memory::copy(c, w, f, &function.copies[i.e as usize], mask),
            Op::Atomic => memory::atomic(c, w, f, &function.atomics[i.e as usize], mask),
            Op::Long => memory::long(c, w, f, &function.longs[i.e as usize], mask),
            Op::Cast => {
                cast::cast(f, &function.casts[i.e as usize], i.d, i.a, mask);
                Ok(())
            }
            Op::TakeBlock => {
                w.take_block(c, f, i, mask);
                Ok(())
            }
            Op::IsSpace => {
                memory::is_space(c, f, i, mask);
                Ok(())
            }
            Op::Special => {
                w.special(c, f, i, mask);
                Ok(())
            }
            _ => {
                if !alu::simple(f, i, mask) && !alu::special(f, i, mask) {
                    let message =
                        format!("no code for {:?}, PTX line {}; this is a defect of the software GPU", i.op, i.line);
                    return Err(Stop::Fault(Fault::LaunchFailure(message)));
                }
                Ok(())
            }
        };
        done.map_err(|bad| memory::fault(c, &*e.warp, bad, i.line, !matches!(i.op, Op::CopyAsync)))
    }
}

/// A call of [`step`] from compiled code.
///
/// # Safety
/// The arguments are those that compiled code was called with, and an instruction of its function.
pub unsafe extern "C" fn call(e: *mut Environment, frame: *mut Row, i: *const Ins, mask: u32) -> u32 {
    // SAFETY: the caller's.
    unsafe { guarded(&mut *e, |e| step(e, frame, &*i, mask)) }
}

/// Loads for up to four lanes, wherever they point: `lanes` has a bit for each, the first of them is `first`.
///
/// # Safety
/// `addresses` and `out` hold four lanes (`out` as many for each element), the environment is the code's own.
pub unsafe extern "C" fn load(
    e: *mut Environment,
    site: *const Site,
    addresses: *const [u64; 4],
    out: *mut [u64; 4],
    lanes: u32,
    first: u32,
) -> u32 {
    // SAFETY: the caller's; every pointer that is read was found mapped and aligned just before.
    unsafe {
        guarded(&mut *e, |e| {
            let (c, w, site) = (e.context(), &mut *e.warp, &*site);
            let m = &*site.memory;
            let count = m.values.len();
            let whole = m.size * count as u32;
            for l in (0..4).filter(|l| lanes >> l & 1 == 1) {
                let mut address = (*addresses)[l].wrapping_add(m.address.offset as u64);
                if !m.address.wide {
                    address &= 0xffff_ffff;
                }
                let lane = first as usize + l;
                let host = memory::resolve(c, w, m.space, lane, address, whole, false);
                let host = host.map_err(|bad: Bad| memory::fault(c, w, bad, site.line, false))?;
                for k in 0..count {
                    let p = host.at(k as u64 * u64::from(m.size));
                    let value = match m.size {
                        1 => u64::from(*(p as *const u8)),
                        2 => u64::from(*(p as *const u16)),
                        4 => u64::from(*(p as *const u32)),
                        _ => *(p as *const u64),
                    };
                    (*out.add(k))[l] = value;
                }
                remember(e, c, site, address);
            }
            Ok(())
        })
    }
}

/// Notes the mapped memory around an address, if it is mapped.
///
/// # Safety
/// The site belongs to the environment's kernel.
unsafe fn remember(e: &Environment, c: &Context, site: &Site, address: u64) {
    // SAFETY: the caller's.
    let (space, known) = unsafe { ((*site.memory).space, &mut *e.known.add(site.known as usize)) };
    let arena = matches!(space, Space::Global | Space::Const | Space::Generic) && c.arena.touches(address, 1);
    if arena && address.wrapping_sub(known.low) >= known.room {
        let (low, end) = c.arena.run(address);
        *known = Known { low, room: (end - low).saturating_sub(u64::from(site.span) - 1) };
    }
}

/// Notes the mapped memory around an address that compiled code did not know.
///
/// # Safety
/// The arguments are those of compiled code.
pub unsafe extern "C" fn learn(e: *mut Environment, site: *const Site, address: u64) {
    // SAFETY: the caller's.
    unsafe { remember(&*e, (*e).context(), &*site, address) }
}
