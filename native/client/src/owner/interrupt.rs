//! Ctrl-C, and Jupyter's Stop, while a program waits for a GPU inside of a CUDA call.
//!
//! Python notes the signal and raises `KeyboardInterrupt` when the call returns, so the call has to return. While
//! somebody waits, the program's own handler is called by one of ours that notes the signal too. Where the program has
//! none, the signal ends it as always, and the broker drops a request that nobody asks about.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Interrupts so far.
static CAME: AtomicUsize = AtomicUsize::new(0);
/// The program's handler, and whether it takes three arguments (`SA_SIGINFO`).
static HANDLER: AtomicUsize = AtomicUsize::new(0);
static FLAGS: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    CAME.fetch_add(1, Ordering::AcqRel);
    let handler = HANDLER.load(Ordering::Acquire);
    // SAFETY: the program's handler, as it gave it to sigaction, with the arguments that its flags ask for.
    unsafe {
        if FLAGS.load(Ordering::Acquire) & libc::SA_SIGINFO == 0 {
            std::mem::transmute::<usize, extern "C" fn(i32)>(handler)(signal);
        } else {
            type Informed = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<usize, Informed>(handler)(signal, info, context);
        }
    }
}

/// What SIGINT does now.
fn current() -> Option<libc::sigaction> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a live local, which sigaction fills in when it succeeds.
    unsafe {
        let asked = libc::sigaction(libc::SIGINT, std::ptr::null(), action.as_mut_ptr());
        (asked == 0).then(|| action.assume_init())
    }
}

/// Our handler, as `sigaction` has it.
fn ours() -> libc::sighandler_t {
    note as *const () as libc::sighandler_t
}

/// Notes interrupts as long as it lives.
pub struct Interrupts {
    before: usize,
    /// What SIGINT did; nothing where it is left as it is.
    program: Option<libc::sigaction>,
}

impl Interrupts {
    /// From now on.
    pub fn noted() -> Self {
        let before = CAME.load(Ordering::Acquire);
        // Where another thread waits, ours is there already.
        let has_handler =
            |action: &libc::sigaction| ![libc::SIG_DFL, libc::SIG_IGN, ours()].contains(&action.sa_sigaction);
        let program = current().filter(has_handler);
        if let Some(program) = &program {
            HANDLER.store(program.sa_sigaction, Ordering::Release);
            FLAGS.store(program.sa_flags, Ordering::Release);
            let mut action = *program;
            action.sa_sigaction = ours();
            action.sa_flags |= libc::SA_SIGINFO;
            // SAFETY: our function takes what SA_SIGINFO gives it, and calls nothing but the program's handler.
            unsafe { libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut()) };
        }
        Self { before, program }
    }

    /// Whether there was one.
    pub fn came(&self) -> bool {
        CAME.load(Ordering::Acquire) != self.before
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        let Some(program) = &self.program else { return };
        // Another handler that was set meanwhile stays.
        if current().is_some_and(|action| action.sa_sigaction == ours()) {
            // SAFETY: what sigaction gave.
            unsafe { libc::sigaction(libc::SIGINT, program, std::ptr::null_mut()) };
        }
    }
}
