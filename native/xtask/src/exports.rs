//! The shim's exported functions, and the client's entry points and table for `cuGetProcAddress`.

use crate::MARK;
use sluice_api::{Function, Way, functions};
use std::fmt::Write;

fn parameters(function: &Function) -> String {
    function.parameters.iter().map(|p| format!("{}: {}", p.name, p.kind)).collect::<Vec<_>>().join(", ")
}

fn arguments(function: &Function) -> String {
    function.parameters.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")
}

/// `shims/cuda/src/generated/mod.rs`: `libcuda.so.1` hands every call on to `libsluice_client.so`.
pub fn shim() -> String {
    let mut out = format!(
        "//! {MARK}\n#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]\n\n\
         use std::ffi::{{c_char, c_void}};\n\n/// Read by the client alone.\npub type LaunchConfig = c_void;\n\nunsafe extern \"C\" {{\n"
    );
    for function in functions() {
        let _ = writeln!(out, "fn sluice_{}({}) -> u32;", function.symbol, parameters(function));
    }
    out.push_str("}\n\n");
    for function in functions() {
        let _ = writeln!(
            out,
            "/// `{0}`: see the CUDA Driver API.\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {0}({1}) -> u32 {{\n\
             // SAFETY: the caller keeps the contract of the CUDA Driver API, which the client relies on.\n\
             unsafe {{ sluice_{0}({2}) }}\n}}\n",
            function.symbol,
            parameters(function),
            arguments(function)
        );
    }
    out
}

/// `client/src/generated/mod.rs`.
pub fn table() -> String {
    let mut out = format!(
        "//! {MARK}\n#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]\n\n\
         use crate::driver;\nuse crate::driver::guard::{{Entry, guard, refused}};\nuse crate::driver::launch::LaunchConfig;\n\
         use std::ffi::{{c_char, c_void}};\n\n"
    );
    for function in functions() {
        let symbol = function.symbol;
        let body = match function.way {
            Way::Refused(reason) => format!("refused({symbol:?}, {reason:?})"),
            _ => format!(
                "// SAFETY: the caller keeps the contract of the CUDA Driver API.\n\
                 guard({symbol:?}, || unsafe {{ driver::{symbol}({}) }})",
                arguments(function)
            ),
        };
        let _ = writeln!(
            out,
            "/// Entry of `{symbol}`.\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn sluice_{symbol}({}) -> u32 {{\n{body}\n}}\n",
            parameters(function)
        );
    }
    out.push_str("/// What `cuGetProcAddress` finds.\npub fn entries() -> Vec<Entry> {\nvec![\n");
    for function in functions() {
        let _ = writeln!(
            out,
            "Entry {{ name: {:?}, since: {}, address: sluice_{} as *const () as usize }},",
            function.name, function.since, function.symbol
        );
    }
    out.push_str("]\n}\n");
    out
}
