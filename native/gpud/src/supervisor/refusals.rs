//! What the log says of connections that come to nothing. Whoever reaches the port makes as many as they like, so of each
//! interval the first few are told one by one, and of the others how many there were.

use sluice_backend::log;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So many are told one by one,
const MOST_TOLD: usize = 10;
/// and then in each of these.
const INTERVAL: Duration = Duration::from_secs(10);

/// Connections that were not admitted in the interval of now.
#[derive(Default)]
struct Interval {
    told: usize,
    /// Others, by kind.
    untold: BTreeMap<&'static str, u64>,
}

impl Interval {
    /// One more; whether it is told.
    fn take(&mut self, error: &io::Error) -> bool {
        if self.told < MOST_TOLD {
            self.told += 1;
            return true;
        }
        *self.untold.entry(kind(error)).or_default() += 1;
        false
    }

    /// Begins anew; a line on what was not told.
    fn end(&mut self) -> Option<String> {
        let Interval { untold, .. } = std::mem::take(self);
        let all: u64 = untold.values().sum();
        let kinds: Vec<String> = untold.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let seconds = INTERVAL.as_secs();
        let text = || format!("{all} more connections were not admitted in the last {seconds} s: {}", kinds.join(", "));
        (all > 0).then(text)
    }
}

/// In a word why a connection came to nothing.
fn kind(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => "refused",
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "too slow",
        ErrorKind::UnexpectedEof
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::NotConnected
        | ErrorKind::BrokenPipe => "gone",
        _ => "not understood",
    }
}

/// See the module.
#[derive(Default)]
pub struct Refusals {
    now: Mutex<Interval>,
}

impl Refusals {
    /// Begins to count.
    pub fn start() -> io::Result<Arc<Refusals>> {
        let refusals = Arc::<Refusals>::default();
        let counted = Arc::clone(&refusals);
        std::thread::Builder::new().name("refusals".to_owned()).spawn(move || {
            loop {
                std::thread::sleep(INTERVAL);
                let text = counted.now().end();
                if let Some(text) = text {
                    log!("gpud: {text}");
                }
            }
        })?;
        Ok(refusals)
    }

    /// A connection was not admitted.
    pub fn note(&self, error: &io::Error) {
        let is_told = self.now().take(error);
        if is_told {
            log!("gpud: a connection was not admitted: {error}");
        }
    }

    fn now(&self) -> MutexGuard<'_, Interval> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_an_interval_are_told_and_the_others_counted_by_kind() {
        let mut interval = Interval::default();
        let [refused, slow, reset] =
            [ErrorKind::PermissionDenied, ErrorKind::WouldBlock, ErrorKind::ConnectionReset].map(io::Error::from);
        assert!((0..MOST_TOLD).all(|_| interval.take(&refused)));
        assert!((0..3).all(|_| !interval.take(&refused)));
        assert!(!interval.take(&slow) && !interval.take(&reset) && !interval.take(&io::Error::other("what is this")));
        let expected =
            "6 more connections were not admitted in the last 10 s: 1 gone, 1 not understood, 3 refused, 1 too slow";
        assert_eq!(interval.end().as_deref(), Some(expected));
        assert!(interval.take(&slow), "another interval");
        assert_eq!(interval.end(), None, "all of it was told");
        assert_eq!(interval.end(), None);
    }
}
