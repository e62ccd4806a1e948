//! Memory of this process for the registers, local and shared memory of the threads of launches.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Most bytes that the threads of a launch may have at the same time: a block of 1024 threads with 256 KiB of local
/// memory each, and their registers.
pub const MOST: u64 = 288 << 20;
/// What all launches of an engine together take without asking; a card has its registers and shared memory on chip.
pub const FREE: u64 = 16 << 20;
/// Beyond that, memory is lent in pieces of this size.
const PIECE: u64 = 1 << 20;

/// Who lends memory for launches that take much of it.
pub trait Lender: Send + Sync {
    /// Lends so many bytes, or says that there are no more.
    fn lend(&self, bytes: u64) -> bool;
    /// Gets bytes back.
    fn take_back(&self, bytes: u64);
}

/// What the launches of an engine take together.
#[derive(Default)]
pub struct Account {
    state: Mutex<State>,
    lender: OnceLock<Box<dyn Lender>>,
}

#[derive(Default)]
struct State {
    used: u64,
    lent: u64,
}

impl State {
    /// What has to be lent now.
    fn due(&self) -> u64 {
        self.used.saturating_sub(FREE).next_multiple_of(PIECE)
    }
}

impl Account {
    /// Names the lender, once; without one nobody is asked.
    pub fn borrow_from(&self, lender: Box<dyn Lender>) {
        let _ = self.lender.set(lender);
    }

    /// Who lends, if that was said.
    pub fn lender(&self) -> Option<&dyn Lender> {
        self.lender.get().map(|lender| &**lender)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, bytes: u64) -> bool {
        let mut state = self.state();
        state.used += bytes;
        let more = state.due().saturating_sub(state.lent);
        let Some(lender) = self.lender.get().filter(|_| more > 0) else { return true };
        if !lender.lend(more) {
            state.used -= bytes;
            return false;
        }
        state.lent += more;
        true
    }

    fn give(&self, bytes: u64) {
        let mut state = self.state();
        state.used -= bytes;
        let less = state.lent.saturating_sub(state.due());
        if let Some(lender) = self.lender.get().filter(|_| less > 0) {
            lender.take_back(less);
            state.lent -= less;
        }
    }
}

/// What one launch has taken, and may still take; given back when it ends.
pub struct Room<'a> {
    account: &'a Account,
    left: AtomicU64,
}

impl Room<'_> {
    /// The room of a launch that begins with so many bytes; nothing if there are fewer.
    pub fn begin(account: &Account, bytes: u64) -> Option<Room<'_>> {
        let room = Room { account, left: AtomicU64::new(MOST) };
        room.take(bytes).then_some(room)
    }

    /// Takes so many bytes; false if there are fewer.
    pub fn take(&self, bytes: u64) -> bool {
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        if taken.is_err() {
            return false;
        }
        let lent = self.account.take(bytes);
        if !lent {
            self.left.fetch_add(bytes, Ordering::Relaxed);
        }
        lent
    }

    /// Gives back what was taken.
    pub fn give(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
        self.account.give(bytes);
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.account.give(MOST - *self.left.get_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    struct Purse(Arc<AtomicU64>);

    impl Lender for Purse {
        fn lend(&self, bytes: u64) -> bool {
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
        }

        fn take_back(&self, bytes: u64) {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    #[test]
    fn launches_borrow_what_is_beyond_the_first_bytes_and_give_it_back() {
        let (account, purse) = (Account::default(), Arc::new(AtomicU64::new(8 << 20)));
        account.borrow_from(Box::new(Purse(Arc::clone(&purse))));
        let left = || purse.load(Ordering::Relaxed) >> 20;
        let first = Room::begin(&account, FREE).expect("asks nobody");
        assert_eq!(left(), 8);
        let second = Room::begin(&account, 1).expect("lent");
        assert_eq!(left(), 7);
        assert!(second.take(6 << 20) && !second.take(2 << 20), "seven MiB are left, and no eight");
        assert_eq!(left(), 1);
        drop(first);
        assert_eq!(left(), 8);
        drop(second);
        assert!(Room::begin(&account, MOST + 1).is_none() && Room::begin(&account, MOST).is_none());
        assert_eq!(left(), 8);
    }
}
