//! The runtime libraries: what `libcudart.so.12` and `.13` export, the client's entries behind it, and their coverage.

use crate::MARK;
use crate::exports::structures;
use sluice_api::driver::TOLD;
use sluice_api::runtime::{Answer, Libraries, Needs, Twin};
use sluice_api::{Parameter, RuntimeFunction, Way, runtime_functions};
use std::collections::BTreeSet;
use std::fmt::Write;

/// `shims/cudart<major>/src/generated.rs`: each exported symbol and the client's entry that it stands for.
pub fn shim(major: u32) -> String {
    let mut out = format!("//! {MARK}\n#![allow(non_snake_case)]\n\nsluice_shim_forward::forward! {{\n");
    for function in runtime_functions().filter(|function| function.libraries.has(major)) {
        let entry = function.entry();
        let _ = writeln!(out, "{} => sluice_{entry},", function.symbol);
        if let Some(suffix) = function.twin.suffix() {
            // A refusal is the same for both.
            let of_twin = if matches!(function.way(), Way::Refused(_)) { "" } else { suffix };
            let _ = writeln!(out, "{}{suffix} => sluice_{entry}{of_twin},", function.symbol);
        }
    }
    out.push_str("}\n");
    out
}

fn parameters(list: &[Parameter]) -> String {
    let of_c = list.iter().filter(|parameter| parameter.name != "default_stream");
    of_c.map(|p| format!("{}: {}", p.name, p.kind)).collect::<Vec<_>>().join(", ")
}

/// What is handed on; in a twin, stream 0 is the thread's own.
fn arguments(list: &[Parameter], twin: Twin) -> String {
    let argument = |parameter: &Parameter| match (parameter.name, twin) {
        ("default_stream", Twin::None) => "0".to_owned(),
        ("default_stream", _) => "PER_THREAD".to_owned(),
        ("stream", Twin::Ptsz) => "per_thread(stream)".to_owned(),
        (name, _) => name.to_owned(),
    };
    list.iter().map(argument).collect::<Vec<_>>().join(", ")
}

fn entry(out: &mut String, function: &RuntimeFunction, twin: Twin) {
    let name = format!("{}{}", function.entry(), twin.suffix().unwrap_or(""));
    let symbol = format!("{}{}", function.symbol, twin.suffix().unwrap_or(""));
    let (list, returns, body) = match (function.way(), function.answer) {
        (Way::Refused(reason), answer) => {
            let is_told = matches!(answer, Answer::Driver { symbol, .. } if TOLD.contains(&symbol));
            (&[][..], None, format!("refused({symbol:?}, {reason:?}, {is_told})"))
        }
        (_, Answer::Own { parameters, returns, .. }) => {
            let call = format!("runtime::{}({})", function.entry(), arguments(parameters, twin));
            let around = if returns.is_some() { "plain" } else { "guard" };
            (parameters, returns, format!("{SAFETY}{around}({symbol:?}, || unsafe {{ {call} }})"))
        }
        (_, Answer::Driver { needs, .. }) => {
            let Some(function) = function.driver() else { return };
            let (driver, parameters) = (function.implementation, function.parameters);
            let first = if needs == Needs::Context { "context" } else { "initialised" };
            let call = format!("{first}()?; driver::{driver}({})", arguments(parameters, Twin::None));
            // The driver's functions know both meanings of stream 0, wherever it stands in their parameters.
            let body = match twin {
                Twin::None => format!("{SAFETY}guard({symbol:?}, || unsafe {{ {call} }})"),
                _ => format!("{SAFETY}guard({symbol:?}, || driver::stream::per_thread(|| unsafe {{ {call} }}))"),
            };
            (parameters, None, body)
        }
        (_, Answer::Refused(_)) => return,
    };
    let _ = writeln!(
        out,
        "/// Entry of `{symbol}`.\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn sluice_{name}({}){} {{\n{body}\n}}\n",
        parameters(list),
        match returns {
            Some("()") => String::new(),
            other => format!(" -> {}", other.unwrap_or("u32")),
        }
    );
}

const SAFETY: &str = "// SAFETY: the caller keeps the contract of the CUDA Runtime API.\n";

/// `client/src/runtime/generated.rs`.
pub fn entries() -> String {
    let (mut body, mut as_driver) = (String::new(), String::new());
    for function in runtime_functions() {
        entry(&mut body, function, Twin::None);
        if matches!(function.answer, Answer::Driver { .. }) {
            entry(&mut as_driver, function, Twin::None);
        }
        if function.twin != Twin::None && !matches!(function.way(), Way::Refused(_)) {
            entry(&mut body, function, function.twin);
        }
    }
    // The runtime has structures of its own by these names; a driver's function takes the driver's.
    let words: BTreeSet<&str> = as_driver.split(|letter: char| !letter.is_alphanumeric()).collect();
    let shared: Vec<&str> = structures().into_iter().filter(|name| words.contains(name)).collect();
    format!(
        "//! {MARK}\n#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]\n\n\
         use super::context::{{context, initialised}};\nuse super::guard::{{guard, plain, refused}};\n\
         use super::types::*;\nuse super::{{PER_THREAD, per_thread}};\nuse crate::driver;\n\
         use crate::driver::abi::{{{}}};\nuse crate::runtime;\nuse std::ffi::{{c_char, c_void}};\n\n{body}",
        shared.join(", ")
    )
}

/// The section of `docs/api-coverage.md`.
pub fn coverage() -> String {
    let all = || runtime_functions().flat_map(|function| function.symbols().map(move |symbol| (symbol, function)));
    let refused = all().filter(|(_, function)| matches!(function.way(), Way::Refused(_))).count();
    let mut out = format!(
        "\n## CUDA Runtime API (`libcudart.so.12`, `libcudart.so.13`)\n\n\
         Every public symbol of both libraries is exported. {} are served, {refused} answer cudaErrorNotSupported with a \
         reason.\n\n| symbol | library | travels |\n| --- | --- | --- |\n",
        all().count() - refused
    );
    for (symbol, function) in all() {
        let library = match function.libraries {
            Libraries::Both => "12, 13",
            Libraries::Only12 => "12",
            Libraries::Only13 => "13",
        };
        let way = match function.way() {
            Way::Local => "local".to_owned(),
            Way::Posted => "posted".to_owned(),
            Way::Call => "call".to_owned(),
            Way::Refused(reason) => format!("refused: {reason}"),
        };
        let driver = match function.answer {
            Answer::Driver { symbol, .. } => format!("as {symbol}: "),
            _ => String::new(),
        };
        let _ = writeln!(out, "| {symbol} | {library} | {driver}{way} |");
    }
    out
}
