//! The shim's exported functions, and the client's entry points and table for `cuGetProcAddress`.

use crate::MARK;
use sluice_api::driver::{BEFORE_INIT, TOLD, functions};
use sluice_api::{Function, Way};
use std::collections::BTreeSet;
use std::fmt::Write;

fn parameters(function: &Function) -> String {
    function.parameters.iter().map(|p| format!("{}: {}", p.name, p.kind)).collect::<Vec<_>>().join(", ")
}

fn arguments(function: &Function) -> String {
    function.parameters.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")
}

/// The C structures that parameters name.
pub fn structures() -> BTreeSet<&'static str> {
    let kinds = functions().flat_map(|function| function.parameters).map(|parameter| parameter.kind);
    let words = kinds.flat_map(|kind| kind.split(|letter: char| !letter.is_alphanumeric()));
    words.filter(|word| word.len() > 1 && word.starts_with(char::is_uppercase) && *word != "Option").collect()
}

/// `shims/cuda/src/generated/mod.rs`: `libcuda.so.1` hands every call on to `libsluice_client.so`.
pub fn shim() -> String {
    let mut out = format!(
        "//! {MARK}\n#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]\n\n\
         use std::ffi::{{c_char, c_void}};\n\n"
    );
    for name in structures() {
        let _ = writeln!(out, "/// Read by the client alone.\npub type {name} = c_void;\n");
    }
    out.push_str("unsafe extern \"C\" {\n");
    for function in functions() {
        for export in function.exports() {
            let _ = writeln!(out, "fn sluice_{}({}) -> u32;", export.symbol, parameters(function));
        }
    }
    out.push_str("}\n\n");
    for function in functions() {
        for export in function.exports() {
            let _ = writeln!(
                out,
                "/// `{0}`: see the CUDA Driver API.\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {0}({1}) -> u32 {{\n\
                 // SAFETY: the caller keeps the contract of the CUDA Driver API, which the client relies on.\n\
                 unsafe {{ sluice_{0}({2}) }}\n}}\n",
                export.symbol,
                parameters(function),
                arguments(function)
            );
        }
    }
    out
}

/// What an entry point does.
fn body(function: &Function, symbol: &str, per_thread: bool) -> String {
    if let Way::Refused(reason) = function.way {
        let refusal = match function.symbol {
            symbol if BEFORE_INIT.contains(&symbol) => "Always",
            symbol if TOLD.contains(&symbol) => "Told",
            _ => "Initialised",
        };
        return format!("refused({symbol:?}, {reason:?}, Refusal::{refusal})");
    }
    let call = format!("driver::{}({})", function.implementation, arguments(function));
    let safety = "// SAFETY: the caller keeps the contract of the CUDA Driver API.\n";
    if per_thread {
        format!("{safety}guard({symbol:?}, || per_thread(|| unsafe {{ {call} }}))")
    } else {
        format!("{safety}guard({symbol:?}, || unsafe {{ {call} }})")
    }
}

/// `client/src/generated/mod.rs`.
pub fn table() -> String {
    let mut out = format!(
        "//! {MARK}\n#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]\n\n\
         use crate::driver;\nuse crate::driver::guard::{{Entry, Refusal, guard, refused}};\n\
         use crate::driver::stream::per_thread;\nuse std::ffi::{{c_char, c_void}};\n"
    );
    let _ = writeln!(out, "use crate::driver::abi::{{{}}};\n", structures().into_iter().collect::<Vec<_>>().join(", "));
    for function in functions() {
        for export in function.exports() {
            let _ = writeln!(
                out,
                "/// Entry of `{0}`.\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn sluice_{0}({1}) -> u32 {{\n{2}\n}}\n",
                export.symbol,
                parameters(function),
                body(function, &export.symbol, export.per_thread)
            );
        }
    }
    out.push_str("/// What `cuGetProcAddress` finds.\npub fn entries() -> Vec<Entry> {\nvec![\n");
    for function in functions() {
        for export in function.exports() {
            let _ = writeln!(
                out,
                "Entry {{ name: {:?}, since: {}, per_thread: {}, address: sluice_{} as *const () as usize }},",
                function.name(),
                export.since,
                export.per_thread,
                export.symbol
            );
        }
    }
    out.push_str("]\n}\n");
    out
}

/// `shims/nvml/src/generated/mod.rs`: the functions of NVML that are not served.
pub fn nvml() -> String {
    let mut out =
        format!("//! {MARK}\n#![allow(non_snake_case)]\n\nuse crate::refused;\nuse crate::status::NvmlReturn;\n\n");
    for name in sluice_api::nvml::names().filter(|name| !sluice_api::nvml::SERVED.contains(name)) {
        // The arguments are never read, so their types do not matter: the caller cleans them up.
        let _ = writeln!(
            out,
            "/// Not served.\n#[unsafe(no_mangle)]\npub extern \"C\" fn {name}() -> NvmlReturn {{\nrefused()\n}}\n"
        );
    }
    out
}
