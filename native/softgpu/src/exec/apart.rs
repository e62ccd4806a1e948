//! Keeps the threads of a pool off the processor of the thread that launches.
//!
//! A launch wakes pool threads and begins to work itself.  Linux often wakes a thread on the processor of the one that
//! wakes it, and moves it to an idle one only some ticks of its clock later: for that long the launch has one
//! processor instead of two.  Among leases that take turns it happened at the beginning of every fifth turn, on a machine
//! with two processors; where there are many, one thread less is little, and as many system calls are much.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Threads of larger pools go wherever the system puts them.
const MOST_THREADS: usize = 8;

/// See the module.
#[derive(Default)]
pub struct Apart {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The pool's threads, by the system's numbers.
    threads: Vec<libc::pid_t>,
    launches: u32,
    /// The processor that the threads stay away from.
    avoided: Option<usize>,
}

/// A launch that runs, as long as this lives.
pub struct Launching<'a>(&'a Apart);

impl Apart {
    /// The calling thread belongs to the pool.
    pub fn join(&self) {
        // SAFETY: takes nothing.
        self.state().threads.push(unsafe { libc::gettid() });
    }

    /// The calling thread begins a launch that takes threads of the pool.  While there is one launch they work beside
    /// it; threads of several go wherever the system puts them.
    pub fn launch(&self) -> Launching<'_> {
        let mut state = self.state();
        state.launches += 1;
        let here = if state.launches == 1 { processor() } else { None };
        // The system calls are made when the launch comes from another processor than the last one.
        if state.avoided != here && state.threads.len() <= MOST_THREADS {
            state.avoid(here);
        }
        Launching(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Lets the threads run where the calling thread may, but not on this processor.
    fn avoid(&mut self, processor: Option<usize>) {
        self.avoided = processor;
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: a set of processors is a field of bits, valid when it is zero; the calls read or write as many bytes as
        // they are told, and a processor's number is checked against the set's size.
        unsafe {
            let mut allowed: libc::cpu_set_t = std::mem::zeroed();
            if libc::sched_getaffinity(0, size, &raw mut allowed) != 0 {
                return;
            }
            if let Some(processor) = processor.filter(|number| *number < libc::CPU_SETSIZE as usize) {
                libc::CPU_CLR(processor, &mut allowed);
            }
            // A thread that may run nowhere else stays where it is: the system refuses an empty set.
            for thread in &self.threads {
                libc::sched_setaffinity(*thread, size, &raw const allowed);
            }
        }
    }
}

impl Drop for Launching<'_> {
    fn drop(&mut self) {
        self.0.state().launches -= 1;
    }
}

/// The processor that the calling thread runs on.
fn processor() -> Option<usize> {
    // SAFETY: takes nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn allowed(thread: libc::pid_t) -> Vec<usize> {
        // SAFETY: as above.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            assert_eq!(libc::sched_getaffinity(thread, size_of::<libc::cpu_set_t>(), &raw mut set), 0);
            (0..libc::CPU_SETSIZE as usize).filter(|number| libc::CPU_ISSET(*number, &set)).collect()
        }
    }

    #[test]
    fn the_pool_works_beside_one_launch_and_anywhere_for_several() {
        let apart = Apart::default();
        let (release, held) = channel::<()>();
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            let pool = &apart;
            scope.spawn(move || {
                pool.join();
                // SAFETY: takes nothing.
                tell.send(unsafe { libc::gettid() }).expect("the test waits");
                let _ = held.recv();
            });
            let thread = told.recv().expect("joins");
            let everywhere = allowed(0);
            let one = apart.launch();
            let avoided = apart.state().avoided;
            let expected: Vec<_> = everywhere.iter().copied().filter(|number| Some(*number) != avoided).collect();
            assert_eq!(allowed(thread), if expected.is_empty() { everywhere.clone() } else { expected });
            let other = apart.launch();
            assert_eq!(allowed(thread), everywhere);
            drop((one, other));
            assert_eq!(apart.state().launches, 0);
            drop(release);
        });
    }
}
