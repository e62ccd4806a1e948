//! Threads that run the program's host functions.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// One job.
pub type Job = Box<dyn FnOnce() + Send>;

/// Idle threads are used again, and as many are made as functions overlap: one function may wait for another.
#[derive(Clone, Default)]
pub struct Threads {
    idle: Arc<Mutex<Vec<Sender<Job>>>>,
}

impl Threads {
    /// Runs a job on a thread of its own; does not wait. `false` when the system gives no thread.
    pub fn run(&self, mut job: Job) -> bool {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(thread) = idle else { break };
            match thread.send(job) {
                Ok(()) => return true,
                Err(unsent) => job = unsent.0,
            }
        }
        let (sender, receiver) = channel::<Job>();
        let (idle, own) = (Arc::clone(&self.idle), sender.clone());
        let made = std::thread::Builder::new().name("sluice-host".into()).spawn(move || {
            while let Ok(job) = receiver.recv() {
                job();
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(own.clone());
            }
        });
        made.is_ok() && sender.send(job).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn jobs_that_wait_for_each_other_run_side_by_side() {
        let threads = Threads::default();
        let (first, first_done) = channel::<()>();
        let (second, second_done) = channel::<()>();
        assert!(threads.run(Box::new(move || {
            let _ = second_done.recv();
            let _ = first.send(());
        })));
        assert!(threads.run(Box::new(move || {
            let _ = second.send(());
        })));
        assert_eq!(first_done.recv_timeout(Duration::from_secs(10)), Ok(()));
    }
}
