//! Arguments of a library's call in words, for recordings: a string each, its kind before what it is.

use serde_json::{Value, json};
use sluice_protocol::library::{Argument, take_arguments, take_calls, words};

/// A JSON list. Of numbers: digits; of memory: its bytes in hexadecimal digits; a group's calls are lists of their own.
pub fn list(library: u32, arguments: &[Argument<'_>]) -> Value {
    arguments.iter().map(|argument| say(library, argument)).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn numbers(bytes: &[u8]) -> String {
    words(bytes).map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

fn say(library: u32, argument: &Argument<'_>) -> Value {
    let text = match argument {
        Argument::Word(value) => format!("word {value}"),
        Argument::F32(bits) => format!("f32 {}", f32::from_bits(*bits)),
        Argument::F64(bits) => format!("f64 {}", f64::from_bits(*bits)),
        Argument::Stream(handle) => format!("stream {handle}"),
        Argument::Object(number) => format!("object {number}"),
        Argument::New(number) => format!("new {number}"),
        Argument::End(number) => format!("end {number}"),
        Argument::In(data) => format!("in {}", hex(data)),
        Argument::Out(bytes) => format!("out {bytes}"),
        Argument::InOut(data) => format!("inout {}", hex(data)),
        Argument::Objects(list) => format!("objects {}", numbers(list)),
        Argument::Addresses(list, hosts) => format!("addresses {} hosts {}", numbers(list), hex(hosts)),
        Argument::Block(data) => format!("block {}", hex(data)),
        Argument::Calls(calls) => return group(library, calls),
    };
    Value::String(text)
}

/// The calls of a group: the function's name, then its arguments.
fn group(library: u32, calls: &[u8]) -> Value {
    let declared = sluice_api::libraries::library((library >> 16) as u16);
    let say = |(function, arguments): (u32, &[u8])| {
        let name = declared.and_then(|library| library.numbered(function)).map(|function| function.symbol.as_str());
        json!([name, list(library, &take_arguments(arguments).unwrap_or_default())])
    };
    take_calls(calls).unwrap_or_default().into_iter().map(say).collect()
}
