//! gpud's log: lines on standard error.

use std::fmt;
use std::io::{self, Write};

/// Writes one line to gpud's log. Takes what `format!` takes.
///
/// `eprintln!` panics where the line cannot be written, on a full disk or a pipe that nobody reads, and takes the
/// calling thread with it. So gpud and its workers use this macro, and a lint denies the other one.
#[macro_export]
macro_rules! log {
    ($($part:tt)*) => {
        $crate::log::line(::std::format_args!($($part)*))
    };
}

/// Writes a line in one piece. A line that cannot be written is lost.
pub fn line(text: fmt::Arguments<'_>) {
    put(&mut io::stderr(), text);
}

fn put(log: &mut impl Write, text: fmt::Arguments<'_>) {
    // One write for each line: workers share the file, and their lines do not mix.
    let _ = log.write_all(format!("{text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_whole() {
        let mut written = Vec::new();
        put(&mut written, format_args!("gpud: {} of {}", 1, 2));
        assert_eq!(written, b"gpud: 1 of 2\n");
    }

    #[test]
    fn a_line_that_cannot_be_written_is_lost() {
        let mut full = std::fs::File::create("/dev/full").expect("every Linux has it");
        put(&mut full, format_args!("nobody reads this"));
    }
}
