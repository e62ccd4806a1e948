//! Several PTX modules made into one: what one defines and another declares comes together by name.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// One statement at the top of a module.
struct Item<'a> {
    text: &'a str,
    /// `.visible`, `.weak`, `.extern`, `.common`, or nothing for a name of the module's own.
    linking: &'a str,
    name: &'a str,
    function: bool,
    /// A variable with its memory, or a function with its body.
    defines: bool,
}

/// A module taken apart.
struct Part<'a> {
    version: (u32, u32),
    target: u32,
    /// The `.target` directive as it stands there.
    target_line: &'a str,
    files: Vec<(u32, &'a str)>,
    items: Vec<Item<'a>>,
}

/// Joins modules; the error is a sentence for the program's log.
pub fn merge(modules: &[&str]) -> Result<String, String> {
    let parts = modules.iter().map(|text| take_apart(text)).collect::<Result<Vec<_>, _>>()?;
    let newest = parts.iter().map(|part| part.version).max().unwrap_or_default();
    let target = parts.iter().max_by_key(|part| part.target).map_or("", |part| part.target_line);
    let mut out = format!(".version {}.{}\n{target}\n.address_size 64\n", newest.0, newest.1);
    let owners = owners(&parts)?;
    let mut bodies = String::new();
    let mut file_offset = 0;
    let (mut declared, mut variables) = (HashSet::new(), String::new());
    for (number, part) in parts.iter().enumerate() {
        let own: HashMap<&str, String> = own_names(&parts, number).map(|n| (n, format!("{n}$part{number}"))).collect();
        let rewrite = |text: &str| rename(text, &own, file_offset);
        for (file, rest) in &part.files {
            let _ = writeln!(out, ".file {} {rest}", file + file_offset);
        }
        for item in &part.items {
            let shared = !item.linking.is_empty();
            let owner = if shared { owners.get(item.name) } else { None };
            if item.function {
                let head = item.text.split_once('{').map_or(item.text.trim_end_matches(';'), |(head, _)| head);
                if !item.text.contains(".entry") && (!shared || declared.insert(item.name)) {
                    // Where the definition is in one of the parts, the declaration has its linkage.
                    let head = match owner {
                        Some((_, linking)) if item.linking == ".extern" => head.replacen(".extern", linking, 1),
                        _ => head.to_owned(),
                    };
                    let _ = writeln!(out, "{};", rewrite(head.trim_end()));
                }
                if item.defines && owner.is_none_or(|(at, _)| *at == number) {
                    bodies.push_str(&rewrite(item.text));
                    bodies.push('\n');
                }
            } else {
                let here = match owner {
                    Some((at, _)) => item.defines && *at == number,
                    None => !shared || declared.insert(item.name),
                };
                if here {
                    variables.push_str(&rewrite(item.text));
                    variables.push('\n');
                }
            }
        }
        file_offset += part.files.iter().map(|(file, _)| *file).max().unwrap_or(0);
    }
    Ok(out + &variables + &bodies)
}

/// The modules to link: all of `firm`, and of `spare` (members of libraries) those with a kernel and those that define
/// what one of the others declares.
pub fn needed<'a>(firm: &'a [String], spare: &'a [String]) -> Result<Vec<&'a str>, String> {
    let mut taken: Vec<&str> = firm.iter().map(String::as_str).collect();
    let mut open: HashSet<&str> = HashSet::new();
    let mut defined: HashSet<&str> = HashSet::new();
    let mut take = |part: &Part<'a>, open: &mut HashSet<&'a str>| {
        let shared = || part.items.iter().filter(|item| !item.linking.is_empty());
        defined.extend(shared().filter(|item| item.defines).map(|item| item.name));
        open.extend(shared().filter(|item| !item.defines).map(|item| item.name));
        open.retain(|name| !defined.contains(name));
    };
    for text in firm {
        take(&take_apart(text)?, &mut open);
    }
    let mut left = spare.iter().map(|text| Ok((text, take_apart(text)?))).collect::<Result<Vec<_>, String>>()?;
    loop {
        let wanted = |item: &Item<'_>| item.defines && (item.text.contains(".entry") || open.contains(item.name));
        let Some(at) = left.iter().position(|(_, part)| part.items.iter().any(wanted)) else { return Ok(taken) };
        let (text, part) = left.remove(at);
        take(&part, &mut open);
        taken.push(text);
    }
}

/// Puts `.maxnreg` to each kernel that does not say it itself.
pub fn limit_registers(text: &str, most: u32) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(".entry") {
        let Some(body) = rest[at..].find('{') else { break };
        let (head, more) = rest.split_at(at + body);
        out.push_str(head);
        if !head[at..].contains(".maxnreg") {
            let _ = writeln!(out, ".maxnreg {most}");
        }
        rest = more;
    }
    out + rest
}

/// Which part's definition of a shared name counts, and its linkage: a strong one, else the first weak one.
fn owners<'a>(parts: &[Part<'a>]) -> Result<HashMap<&'a str, (usize, &'a str)>, String> {
    let mut owners: HashMap<&str, (usize, &str)> = HashMap::new();
    for (number, part) in parts.iter().enumerate() {
        for item in part.items.iter().filter(|item| item.defines && !item.linking.is_empty()) {
            let strong = item.linking == ".visible";
            match owners.get(item.name) {
                Some((_, ".visible")) if strong => {
                    return Err(format!("Multiple definition of '{}' in the modules to link", item.name));
                }
                Some(_) if !strong => {}
                _ => {
                    owners.insert(item.name, (number, item.linking));
                }
            }
        }
    }
    Ok(owners)
}

/// Names of one module's own that another module uses too.
fn own_names<'a>(parts: &'a [Part<'a>], number: usize) -> impl Iterator<Item = &'a str> {
    let elsewhere: HashSet<&str> = parts
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != number)
        .flat_map(|(_, part)| part.items.iter().map(|item| item.name))
        .collect();
    let own = parts[number].items.iter().filter(|item| item.linking.is_empty());
    own.map(|item| item.name).filter(move |name| elsewhere.contains(name))
}

/// The text with names replaced, and with the numbers of its source files moved.
fn rename(text: &str, names: &HashMap<&str, String>, file_offset: u32) -> String {
    if names.is_empty() && file_offset == 0 {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut before) = (text, "");
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |at| at + 2),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, more) = rest.split_at(end);
        match names.get(token) {
            Some(name) => out.push_str(name),
            None => match token.parse::<u32>() {
                Ok(file) if matches!(before, ".loc" | "inlined_at") => {
                    let _ = write!(out, "{}", file + file_offset);
                }
                _ => out.push_str(token),
            },
        }
        if !token.trim().is_empty() {
            before = token;
        }
        rest = more;
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.')
}

fn take_apart(text: &str) -> Result<Part<'_>, String> {
    let mut part = Part { version: (0, 0), target: 0, target_line: "", files: Vec::new(), items: Vec::new() };
    let mut rest = skip_blank(text);
    while !rest.is_empty() {
        let word = rest.split(|c: char| !is_word(c)).next().unwrap_or("");
        let line = rest.find('\n').map_or(rest, |end| &rest[..end]).trim_end();
        let length = match word {
            ".version" | ".target" | ".address_size" | ".file" => line.len(),
            _ => statement(rest).ok_or_else(|| format!("the PTX to link ends within `{line}`"))?,
        };
        let (statement, more) = rest.split_at(length);
        match word {
            ".version" => part.version = version(line),
            ".target" => {
                part.target_line = line;
                let digits = line.find("sm_").map_or("", |at| &line[at + 3..]);
                let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                part.target = digits[..end].parse().unwrap_or(0);
            }
            ".file" => {
                let mut words = line.trim_start_matches(".file").trim_start().splitn(2, char::is_whitespace);
                if let (Some(Ok(file)), Some(name)) = (words.next().map(str::parse), words.next()) {
                    part.files.push((file, name));
                }
            }
            // What debuggers read describes one module alone.
            ".address_size" | ".section" | ".pragma" | "" => {}
            _ => part.items.push(item(statement)),
        }
        rest = skip_blank(more);
    }
    if part.version == (0, 0) {
        return Err("one of the modules to link is not PTX".to_owned());
    }
    Ok(part)
}

fn version(line: &str) -> (u32, u32) {
    let number = line.trim_start_matches(".version").trim();
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
    (digits(major), digits(minor))
}

/// Without blanks and comments in front.
fn skip_blank(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        if text.starts_with("//") {
            text = text.find('\n').map_or("", |end| &text[end..]);
        } else if text.starts_with("/*") {
            text = text.find("*/").map_or("", |end| &text[end + 2..]);
        } else {
            return text;
        }
    }
}

/// Length of a statement: to its `;`, or to the end of its body. An initial value in braces is no body.
fn statement(text: &str) -> Option<usize> {
    let (mut depth, mut value, mut at) = (0u32, false, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at += text[at + 1..].find('"')? + 1,
            b'/' if text[at..].starts_with("//") => at += text[at..].find('\n')?,
            b'/' if text[at..].starts_with("/*") => at += text[at..].find("*/")? + 1,
            b'=' if depth == 0 => value = true,
            b'{' => depth += 1,
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && !value {
                    return Some(at + 1);
                }
            }
            b';' if depth == 0 => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

fn item(text: &str) -> Item<'_> {
    let first = text.split(|c: char| !is_word(c)).next().unwrap_or("");
    let linking = match first {
        ".visible" | ".weak" | ".extern" | ".common" => first,
        _ => "",
    };
    let head = text.split(['{', '=', ';']).next().unwrap_or("");
    let kind = head.split(|c: char| !is_word(c)).find(|word| matches!(*word, ".func" | ".entry"));
    let name = match kind {
        Some(kind) => {
            let after = head.split_once(kind).map_or("", |(_, after)| after).trim_start();
            // What the function returns stands before its name.
            let after =
                if after.starts_with('(') { after.split_once(')').map_or("", |(_, after)| after) } else { after };
            after.split(|c: char| !is_word(c)).find(|word| !word.is_empty() && !word.starts_with('.')).unwrap_or("")
        }
        None => {
            let name = head.split('[').next().unwrap_or("");
            name.split(|c: char| !is_word(c)).rfind(|word| !word.is_empty()).unwrap_or("")
        }
    };
    let function = kind.is_some();
    let defines = if function { text.ends_with('}') } else { linking != ".extern" };
    // An entry is known outside its module with or without saying so.
    let linking = if kind == Some(".entry") && linking.is_empty() { ".visible" } else { linking };
    Item { text, linking, name, function, defines }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: &str = ".version 8.0\n.target sm_75\n.address_size 64\n.file 1 \"main.cu\"\n\
        .extern .func (.param .b32 r) twice(.param .b32 x);\n.extern .global .align 4 .u32 shared_word;\n\
        .global .align 1 .b8 text[3] = {97, 98, 0};\n.weak .func helper()\n{\nret;\n}\n\
        .visible .entry main()\n{\n.loc 1 7 0\nmov.u64 %rd1, text;\ncall twice;\nret;\n}\n";
    const OTHER: &str = "// made elsewhere\n.version 8.4\n.target sm_75, debug\n.address_size 64\n.file 1 \"other.cu\"\n\
        .visible .global .align 4 .u32 shared_word = 5;\n.global .align 1 .b8 text[2] = {99, 0};\n\
        .weak .func helper()\n{\ntrap;\n}\n\
        .visible .func (.param .b32 r) twice(.param .b32 x)\n{\n.loc 1 3 0\nmov.u64 %rd1, text;\nret;\n}\n\
        .section .debug_str { .b8 1 }\n";

    #[test]
    fn declarations_meet_definitions_and_own_names_stay_apart() {
        let joined = merge(&[MAIN, OTHER]).unwrap();
        assert!(joined.starts_with(".version 8.4\n.target sm_75"), "{joined}");
        assert_eq!(joined.matches(".version").count(), 1);
        assert!(!joined.contains(".extern") && !joined.contains(".section"), "{joined}");
        // One declaration, one body, of the first module's weak function.
        assert_eq!(joined.matches(".func helper()").count(), 2);
        assert!(!joined.contains("trap"));
        assert_eq!(joined.matches("shared_word").count(), 1);
        assert!(joined.contains("text$part0[3]") && joined.contains("mov.u64 %rd1, text$part0;"), "{joined}");
        assert!(joined.contains("text$part1[2]") && joined.contains("mov.u64 %rd1, text$part1;"), "{joined}");
        assert!(joined.contains(".file 2 \"other.cu\"") && joined.contains(".loc 2 3 0"), "{joined}");
        let declared = joined.find(".visible .func (.param .b32 r) twice(.param .b32 x);").unwrap();
        assert!(declared < joined.find(".entry main").unwrap());
    }

    #[test]
    fn the_most_registers_stand_at_each_kernel() {
        assert_eq!(
            limit_registers(".entry a() { ret; }\n.entry b()\n.maxnreg 9\n{ ret; }", 38),
            ".entry a() .maxnreg 38\n{ ret; }\n.entry b()\n.maxnreg 9\n{ ret; }"
        );
        assert_eq!(limit_registers("no kernel", 38), "no kernel");
    }

    #[test]
    fn of_a_library_only_what_is_needed_is_linked() {
        let head = ".version 8.0\n.target sm_75\n.address_size 64\n";
        let part = |text: &str| format!("{head}{text}");
        let firm = [part(".extern .func f();\n.visible .entry k() { call f; ret; }\n")];
        let spare = [
            part(".visible .func unused() { ret; }\n"),
            part(".visible .func g() { ret; }\n"),
            part(".extern .func g();\n.visible .func f() { call g; ret; }\n"),
            part(".visible .func f() { trap; }\n"),
        ];
        let taken = needed(&firm, &spare).unwrap();
        assert_eq!(taken, [&firm[0], &spare[2], &spare[1]]);
        assert_eq!(needed(&[], &[firm[0].clone(), spare[0].clone()]).unwrap(), [&firm[0]]);
        assert!(needed(&firm, &["nothing".to_owned()]).is_err());
    }

    #[test]
    fn one_name_with_two_definitions_is_an_error() {
        let error = merge(&[OTHER, OTHER]).unwrap_err();
        assert!(error.contains("twice") || error.contains("shared_word"), "{error}");
        assert!(merge(&[MAIN, "nothing"]).is_err());
    }
}
