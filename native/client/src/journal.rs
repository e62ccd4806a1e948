//! The last things that happened to this process's GPU, for `%gpu logs`: what gpud said, what failed, when the lease
//! came and went.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Lines that are kept.
const MOST: usize = 200;

static LINES: Mutex<VecDeque<(f64, String)>> = Mutex::new(VecDeque::new());

/// Keeps one line. A line that repeats the last one is kept once.
pub fn note(text: impl Into<String>) {
    let text = text.into();
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.back().is_some_and(|(_, last)| *last == text) {
        return;
    }
    if lines.len() == MOST {
        lines.pop_front();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    lines.push_back((now, text));
}

/// `{"lines": [{"at": seconds since 1970, "text"}]}`, the oldest first.
pub fn read() -> Value {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    json!({ "lines": lines.iter().map(|(at, text)| json!({ "at": at, "text": text })).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_last_lines_are_kept_and_a_repeated_one_once() {
        for number in 0..250 {
            super::note(format!("line {number}"));
            super::note(format!("line {number}"));
        }
        let read = super::read();
        let lines = read["lines"].as_array().expect("lines");
        assert_eq!(lines.len(), super::MOST);
        assert_eq!(lines[0]["text"], "line 50");
    }
}
