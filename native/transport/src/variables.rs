//! The variables that a launcher sets for the programs of a workspace. A program whose environment was cleared (`env -i`,
//! `sudo`, cron, some builds) has none of them; the workspace's first process has written them to a file.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Read;
use std::sync::OnceLock;

/// Where `init.sh` writes them, one `NAME=value` a line.
const FILE: &str = "/run/sluice/variables";
/// Bytes that are read of it.
const LONGEST: u64 = 64 << 10;
/// Every workspace has it: without it the environment was cleared.
const ALWAYS: &str = "SLUICE_BROKER_URL";

/// A variable of Sluice: from the environment, else from the file where the environment was cleared.
pub fn var(name: &str) -> Option<OsString> {
    std::env::var_os(name).or_else(|| restored().get(name).map(OsString::from))
}

/// As [`var`], where it is UTF-8 and not empty.
pub fn text(name: &str) -> Option<String> {
    var(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty())
}

/// The file's variables where this process was started without any; else nothing.
pub fn restored() -> &'static HashMap<String, String> {
    static RESTORED: OnceLock<HashMap<String, String>> = OnceLock::new();
    RESTORED.get_or_init(|| {
        if std::env::var_os(ALWAYS).is_some() {
            return HashMap::new();
        }
        let mut text = String::new();
        let file = std::fs::File::open(FILE);
        match file.and_then(|file| file.take(LONGEST).read_to_string(&mut text)) {
            Ok(_) => parse(&text),
            Err(_) => HashMap::new(),
        }
    })
}

/// The lines that name variables of Sluice.
fn parse(text: &str) -> HashMap<String, String> {
    let named = |line: &str| {
        let (name, value) = line.split_once('=')?;
        name.starts_with("SLUICE_").then(|| (name.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_the_variables_of_sluice_alone() {
        let found =
            parse("SLUICE_BROKER_URL=http://a/?b=c\nPATH=/bin\n\nSLUICE_EMPTY=\nSLUICE_BROKEN\nLD_PRELOAD=x.so\n");
        assert_eq!(found.get("SLUICE_BROKER_URL").map(String::as_str), Some("http://a/?b=c"));
        assert_eq!(found.get("SLUICE_EMPTY").map(String::as_str), Some(""));
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
