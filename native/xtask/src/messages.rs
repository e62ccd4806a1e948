//! Message structs, opcodes and the dispatch of `protocol`.

use crate::MARK;
use sluice_api::{OPERATIONS, Operation, Travel, Type};
use std::fmt::Write;

fn request_type(kind: Type) -> &'static str {
    match kind {
        Type::Bytes => "&'a [u8]",
        Type::Text => "&'a str",
        other => reply_type(other),
    }
}

fn reply_type(kind: Type) -> &'static str {
    match kind {
        Type::U8 => "u8",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::I32 => "i32",
        Type::F32 => "f32",
        Type::Hash => "[u8; 32]",
        Type::Dim3 => "[u32; 3]",
        Type::Bytes => "Blob",
        Type::Text => "String",
        Type::Named(name) => name,
    }
}

fn borrows(operation: &Operation) -> bool {
    operation.request.iter().any(|(_, kind)| matches!(kind, Type::Bytes | Type::Text))
}

/// `MemAlloc` → `mem_alloc`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for (index, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && index > 0 {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

fn derives(fields: &[(&str, Type)]) -> &'static str {
    let copy = fields.iter().all(|(_, kind)| !matches!(kind, Type::Named(_) | Type::Bytes | Type::Text));
    let eq = fields.iter().all(|(_, kind)| *kind != Type::F32);
    match (copy, eq) {
        (true, true) => "#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]",
        (true, false) => "#[derive(Clone, Copy, Debug, Default, PartialEq)]",
        (false, true) => "#[derive(Clone, Debug, Default, PartialEq, Eq)]",
        (false, false) => "#[derive(Clone, Debug, Default, PartialEq)]",
    }
}

fn structure(out: &mut String, doc: &str, name: &str, lifetime: bool, fields: &[(&str, &str)], derive: &str) {
    let a = if lifetime { "<'a>" } else { "" };
    let _ = writeln!(out, "/// {doc}\n{derive}");
    if fields.is_empty() {
        let _ = writeln!(out, "pub struct {name};");
    } else {
        let _ = writeln!(out, "pub struct {name}{a} {{");
        for (field, kind) in fields {
            let _ = writeln!(out, "pub {field}: {kind},");
        }
        let _ = writeln!(out, "}}");
    }
    let unused = if fields.is_empty() { "_" } else { "" };
    let _ = writeln!(out, "impl<'a> Wire<'a> for {name}{a} {{");
    let _ = writeln!(out, "fn put(&self, {unused}out: &mut Vec<u8>) {{");
    for (field, _) in fields {
        let _ = writeln!(out, "self.{field}.put(out);");
    }
    let _ = writeln!(out, "}}\nfn take({unused}reader: &mut Reader<'a>) -> Result<Self, DecodeError> {{");
    let body: Vec<String> = fields.iter().map(|(field, _)| format!("{field}: Wire::take(reader)?")).collect();
    let body = if body.is_empty() { String::new() } else { format!("{{ {} }}", body.join(", ")) };
    let _ = writeln!(out, "Ok(Self {body})\n}}\n}}\n");
}

/// `protocol/src/generated/messages.rs`.
pub fn messages() -> String {
    let mut out = format!(
        "//! {MARK}\n\nuse crate::graph::{{GraphChange, GraphNode, LaunchAttribute, MemoryOperation}};\n\
         use crate::tensor_map::TensorMap;\nuse crate::types::{{LeaseProcess, ModuleInfo}};\nuse crate::wire::{{Blob, DecodeError, Reader, Wire}};\n\n"
    );
    out.push_str(
        "/// A request of the declaration list.\npub trait Request<'a>: Wire<'a> {\n/// Its opcode.\nconst OPCODE: u16;\n}\n\n\
         /// A request that is answered.\npub trait CallRequest<'a>: Request<'a> {\n/// Its answer.\n\
         type Reply: for<'r> Wire<'r>;\n}\n\n",
    );
    for operation in OPERATIONS {
        let name = operation.name;
        let lifetime = borrows(operation);
        let a = if lifetime { "<'a>" } else { "" };
        let fields: Vec<_> = operation.request.iter().map(|(field, kind)| (*field, request_type(*kind))).collect();
        structure(&mut out, operation.doc, name, lifetime, &fields, derives(operation.request));
        let _ = writeln!(out, "impl<'a> Request<'a> for {name}{a} {{ const OPCODE: u16 = {}; }}\n", operation.opcode);
        if operation.travel == Travel::Call {
            let fields: Vec<_> = operation.reply.iter().map(|(field, kind)| (*field, reply_type(*kind))).collect();
            let doc = format!("Answer to [`{name}`].");
            structure(&mut out, &doc, &format!("{name}Reply"), false, &fields, derives(operation.reply));
            let _ = writeln!(out, "impl<'a> CallRequest<'a> for {name}{a} {{ type Reply = {name}Reply; }}\n");
        }
    }
    out
}

/// `protocol/src/generated/mod.rs`: names and the dispatch.
pub fn module() -> String {
    let mut out = format!(
        "//! {MARK}\n\npub mod messages;\n\nuse crate::frame::Frame;\nuse crate::reply::{{Failure, ReplySink, ReplyTo}};\n\
         use crate::wire::{{DecodeError, Reader, Wire}};\nuse messages::*;\nuse std::sync::Arc;\n\n"
    );
    out.push_str("/// The name of an operation, for logs and counters.\npub fn name(opcode: u16) -> Option<&'static str> {\nmatch opcode {\n");
    for operation in OPERATIONS {
        let _ = writeln!(out, "{} => Some(\"{}\"),", operation.opcode, operation.name);
    }
    out.push_str("_ => None,\n}\n}\n\n");
    out.push_str(
        "/// What executes the operations on the server. `thread` is the client's thread. A posted operation that fails\n\
         /// returns its error (it becomes an `AsyncError`); a call answers through `reply`, now or later.\npub trait Handler {\n",
    );
    for operation in OPERATIONS {
        let method = snake(operation.name);
        let a = if borrows(operation) { "<'_>" } else { "" };
        let _ = writeln!(out, "/// {}", operation.doc);
        let name = operation.name;
        let _ = match operation.travel {
            Travel::Posted => {
                writeln!(out, "fn {method}(&mut self, thread: u32, request: {name}{a}) -> Result<(), Failure>;")
            }
            Travel::Call => {
                writeln!(out, "fn {method}(&mut self, thread: u32, request: {name}{a}, reply: ReplyTo<{name}Reply>);")
            }
        };
    }
    out.push_str(
        "}\n\n/// Decodes one operation frame and hands it to the handler. The outer error is a broken protocol (end the\n\
         /// session), the inner one the failure of a posted operation.\n\
         pub fn dispatch<H: Handler>(handler: &mut H, frame: &Frame, sink: &Arc<dyn ReplySink>) -> Result<Result<(), Failure>, DecodeError> {\n\
         let thread = frame.header.thread;\nlet mut reader = Reader::new(&frame.payload);\n\
         match frame.header.opcode {\n",
    );
    for operation in OPERATIONS {
        let method = snake(operation.name);
        let _ = writeln!(
            out,
            "{} => {{ let request = {}::take(&mut reader)?; reader.finish()?;",
            operation.opcode, operation.name
        );
        let _ = match operation.travel {
            Travel::Posted => writeln!(out, "Ok(handler.{method}(thread, request)) }}"),
            Travel::Call => writeln!(
                out,
                "handler.{method}(thread, request, ReplyTo::new(frame.header.seq, thread, Arc::clone(sink))); Ok(Ok(())) }}"
            ),
        };
    }
    out.push_str("other => Err(DecodeError::Opcode(other)),\n}\n}\n");
    out
}
