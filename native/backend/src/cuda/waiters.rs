//! Threads that wait for the device, so that the thread which issues work never does.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

type Job = Box<dyn FnOnce() + Send>;

/// Idle threads are used again; as many are made as waits overlap.
#[derive(Clone, Default)]
pub struct Waiters {
    idle: Arc<Mutex<Vec<Sender<Job>>>>,
}

impl Waiters {
    /// Runs a wait on a thread of its own.
    pub fn run(&self, job: Job) {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let job = match idle {
            None => job,
            Some(thread) => match thread.send(job) {
                Ok(()) => return,
                Err(unsent) => unsent.0,
            },
        };
        self.make(job);
    }

    fn make(&self, first: Job) {
        let (sender, receiver) = channel::<Job>();
        let idle = Arc::clone(&self.idle);
        let own = sender.clone();
        let made = std::thread::Builder::new().name("wait".to_owned()).spawn(move || {
            while let Ok(job) = receiver.recv() {
                job();
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(own.clone());
            }
        });
        // Without a thread the wait is done here: late is better than never.
        match made {
            Ok(_) => {
                let _ = sender.send(first);
            }
            Err(_) => first(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_that_overlap_run_side_by_side() {
        let waiters = Waiters::default();
        let (first, first_done) = channel::<()>();
        let (second, second_done) = channel::<()>();
        // The first ends only when the second has run.
        waiters.run(Box::new(move || {
            let _ = second_done.recv();
            let _ = first.send(());
        }));
        waiters.run(Box::new(move || {
            let _ = second.send(());
        }));
        first_done.recv_timeout(std::time::Duration::from_secs(10)).expect("both ran");
    }
}
