//! Memory that a call takes for copies of its operands and for itself, counted where it is allocated.
//!
//! The program's global allocator is [`Metered`]; while a call runs in [`metered`], what its thread allocates in large
//! pieces is borrowed of the lease.  So what is counted is what is there, whatever an algorithm does.

use sluice_softgpu::Lender;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

/// Smaller pieces are not counted: they cost a call more time to count than memory to have.
const LARGE: usize = 64 << 10;
/// What a call takes without asking: a product of matrices copies three tiles.
const FREE: u64 = 16 << 20;
/// Beyond that, memory is borrowed in pieces of this size.
const PIECE: u64 = 1 << 20;

/// The system's allocator, which counts for the call that runs on a thread.
pub struct Metered;

/// The lease has no memory for what a call would take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// What the call would have had then.
    pub bytes: u64,
}

struct Call<'a> {
    lender: &'a dyn Lender,
    taken: Cell<u64>,
    lent: Cell<u64>,
    short: Cell<Option<Short>>,
}

thread_local! {
    static CALL: Cell<Option<NonNull<Call<'static>>>> = const { Cell::new(None) };
}

/// Runs a call, whose memory is borrowed until it ends.
pub fn metered<R>(lender: &dyn Lender, work: impl FnOnce() -> R) -> Result<R, Short> {
    let call = Call { lender, taken: Cell::new(0), lent: Cell::new(0), short: Cell::new(None) };
    let outer = CALL.replace(Some(NonNull::from(&call).cast()));
    let outcome = catch_unwind(AssertUnwindSafe(work));
    CALL.set(outer);
    if call.lent.get() > 0 {
        lender.take_back(call.lent.get());
    }
    #[cfg(test)]
    tests::LATE.set(outcome.is_ok() && call.short.get().is_some());
    match (outcome, call.short.get()) {
        // What it computed without memory to copy into is nothing.
        (_, Some(short)) => Err(short),
        (Ok(answer), None) => Ok(answer),
        (Err(panic), None) => resume_unwind(panic),
    }
}

/// Ends the call if the lease has no memory for what was allocated, before that is written to.
pub(crate) fn check() {
    if let Some(short) = current(|call| call.short.get()).flatten() {
        resume_unwind(Box::new(short));
    }
}

/// Ends the call if the lease has no memory for so many bytes more, which others allocate and write at once.
pub(crate) fn expect(bytes: usize) {
    current(|call| {
        call.take(bytes);
        call.give(bytes);
    });
    check();
}

fn current<R>(look: impl FnOnce(&Call<'_>) -> R) -> Option<R> {
    // SAFETY: `metered` puts the call there while it is alive, and takes it away before.
    CALL.try_with(Cell::get).ok().flatten().map(|call| look(unsafe { call.as_ref() }))
}

impl Call<'_> {
    fn take(&self, bytes: usize) {
        let taken = self.taken.get() + bytes as u64;
        self.taken.set(taken);
        let due = taken.saturating_sub(FREE).next_multiple_of(PIECE);
        let more = due.saturating_sub(self.lent.get());
        if more == 0 || self.short.get().is_some() {
            #[cfg(test)]
            tests::TAKEN_AFTER.set(tests::TAKEN_AFTER.get() || more > 0);
            return;
        }
        if self.lender.lend(more) {
            self.lent.set(due);
        } else {
            self.short.set(Some(Short { bytes: taken }));
        }
    }

    /// What is not needed any more is there for the next copy, and given back when the call ends.
    fn give(&self, bytes: usize) {
        // A plan that was made before the call may end in it.
        self.taken.set(self.taken.get().saturating_sub(bytes as u64));
    }
}

fn take(bytes: usize) {
    if bytes >= LARGE {
        current(|call| call.take(bytes));
    }
}

fn give(bytes: usize) {
    if bytes >= LARGE {
        current(|call| call.give(bytes));
    }
}

// SAFETY: everything is the system allocator's; counting allocates nothing.
unsafe impl GlobalAlloc for Metered {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give(layout.size());
        // SAFETY: as the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        give(layout.size());
        take(size);
        // SAFETY: as the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::memory::{Fault, Matrix, Memory, load, store_numbers};
    use crate::types::{Kind, bytes_as, load_as};
    use std::sync::atomic::{AtomicU64, Ordering};

    #[global_allocator]
    static ALLOCATOR: Metered = Metered;

    /// So many bytes are left, and so many were at least.
    struct Purse(AtomicU64, AtomicU64);

    impl Purse {
        fn with(bytes: u64) -> Purse {
            Purse(AtomicU64::new(bytes), AtomicU64::new(bytes))
        }
    }

    impl Lender for Purse {
        fn lend(&self, bytes: u64) -> bool {
            let lent = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(bytes)).is_ok();
            self.1.fetch_min(self.0.load(Ordering::SeqCst), Ordering::SeqCst);
            lent
        }

        fn take_back(&self, bytes: u64) {
            self.0.fetch_add(bytes, Ordering::SeqCst);
        }
    }

    thread_local! {
        /// Whether a call that was short of memory went on to its end, or took more.
        pub static LATE: Cell<bool> = const { Cell::new(false) };
        pub static TAKEN_AFTER: Cell<bool> = const { Cell::new(false) };
    }

    /// MiB that a call needs, more or less; with less it ends where it is short of memory.
    pub fn needed(call: impl Fn()) -> u64 {
        for mib in (0..).step_by(5) {
            TAKEN_AFTER.set(false);
            match metered(&Purse::with(mib * MIB), &call) {
                Ok(()) => return mib,
                Err(short) => assert!(!LATE.get() && !TAKEN_AFTER.get(), "{mib} MiB, {short:?}"),
            }
        }
        unreachable!("the call needs more than there is")
    }

    /// Bytes that a call takes at most at the same time, to a whole MiB.
    pub fn taken<R>(call: impl FnOnce() -> R) -> u64 {
        let purse = Purse::with(1 << 40);
        let outcome = metered(&purse, || {
            let free: Vec<u8> = Vec::with_capacity(FREE as usize);
            call();
            drop(free);
        });
        assert_eq!(outcome, Ok(()));
        (1 << 40) - purse.1.load(Ordering::SeqCst)
    }

    pub struct Ones;

    impl Memory for Ones {
        fn read(&self, _address: u64, out: &mut [u8]) -> Result<(), Fault> {
            out.fill(1);
            Ok(())
        }

        fn write(&self, _address: u64, _data: &[u8]) -> Result<(), Fault> {
            Ok(())
        }
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_is_there_at_the_same_time_is_borrowed_and_given_back() {
        let purse = Purse::with(100 * MIB);
        let sum = metered(&purse, || {
            let copies: Vec<u8> = load(&Ones, 0, 20 << 20).expect("there");
            drop(load::<u8>(&Ones, 0, 30 << 20).expect("there"));
            drop(load::<u8>(&Ones, 0, 30 << 20).expect("there"));
            copies.iter().map(|one| u64::from(*one)).sum::<u64>()
        });
        assert_eq!(sum, Ok(20 << 20));
        assert_eq!(purse.0.load(Ordering::SeqCst), 100 * MIB, "given back");
        assert_eq!(
            purse.1.load(Ordering::SeqCst),
            (100 - 50 + 16) * MIB,
            "one of the two and the first, less the free"
        );
    }

    #[test]
    fn a_call_that_would_take_more_than_is_left_ends_before_it_writes_there() {
        let purse = Purse::with(10 * MIB);
        let mut reached = false;
        let outcome = metered(&purse, || {
            let small = Matrix::<f64>::zero(1024, 1024);
            let large = Matrix::<f64>::zero(1 << 14, 1 << 14);
            reached = true;
            small.at(0, 0) + large.at(0, 0)
        });
        assert_eq!(outcome, Err(Short { bytes: 8 * MIB + (2 << 30) }));
        assert!(!reached);
        assert_eq!(purse.0.load(Ordering::SeqCst), 10 * MIB);
        assert_eq!(metered(&purse, || load::<u8>(&Ones, 0, 1 << 20).map(|all| all.len())), Ok(Ok(1 << 20)));
    }

    #[test]
    fn what_is_turned_into_other_types_is_memory_too() {
        let count = 4 << 20;
        let both = needed(|| {
            let wide: Vec<f64> = load_as(&Ones, Kind::F16, 0, count).expect("there");
            store_numbers(&Ones, 0, &wide, true).expect("there");
            drop(bytes_as(Kind::Bf16, &wide));
        });
        assert!((32 - 16 + 16 - 5..=32 - 16 + 16 + 5).contains(&both), "{both} MiB");
    }

    #[test]
    fn a_small_call_asks_nobody_and_a_panic_gives_back() {
        let purse = Purse::with(0);
        assert_eq!(metered(&purse, || load::<u8>(&Ones, 0, 15 << 20).map(|all| all.len())), Ok(Ok(15 << 20)));
        let purse = Purse::with(100 * MIB);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            metered(&purse, || {
                let copy: Vec<u8> = load(&Ones, 0, 20 << 20).expect("there");
                assert!(copy.is_empty(), "as a fault of our own would");
            })
        }));
        assert!(panic.is_err());
        assert_eq!(purse.0.load(Ordering::SeqCst), 100 * MIB);
    }
}
