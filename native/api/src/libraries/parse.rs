//! Reads the declarations of a library.

use super::{Element, Factor, Function, Kind, Length, Parameter, Source, Way, number_of};

/// All functions of a library. A line that cannot be read is a mistake of the list: it ends the program that reads it,
/// which is a test before it is anything else.
pub fn functions(source: &'static Source) -> Vec<Function> {
    let mut all = Vec::new();
    let mut reason = String::new();
    for line in source.functions.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(text) = line.strip_prefix("refused ") {
            reason = text.trim_end_matches(':').to_owned();
            continue;
        }
        if !line.contains('(') {
            assert!(!reason.is_empty(), "{}: {line}: no reason", source.name);
            for family in words(line) {
                let (family, refusal) = match family.split_once('=') {
                    Some((family, value)) => {
                        let value = value.parse().unwrap_or_else(|_| panic!("{}: {line}: no number", source.name));
                        (family, Some(value))
                    }
                    None => (family, None),
                };
                all.extend(letters(family).into_iter().map(|(symbol, _)| Function {
                    refusal,
                    reads_samples: false,
                    number: number_of(&symbol),
                    symbol,
                    way: Way::Refused,
                    parameters: Vec::new(),
                    note: reason.clone(),
                }));
            }
            continue;
        }
        let (way, rest) = line.split_once(' ').unwrap_or((line, ""));
        let way = match way {
            "make" => Way::Make,
            "join" => Way::Join,
            "end" => Way::End,
            "set" => Way::Set,
            "get" => Way::Get,
            "describe" => Way::Describe,
            "change" => Way::Change,
            "drop" => Way::Drop,
            "draft" => Way::Draft,
            "write" => Way::Write,
            "finish" => Way::Finish,
            "read" => Way::Read,
            "run" => Way::Run,
            "ask" => Way::Ask,
            "local" => Way::Local,
            other => panic!("{}: {line}: {other} is no way to travel", source.name),
        };
        let (family, rest) = rest.trim().split_once('(').unwrap_or((rest, ""));
        let (list, note) = rest.rsplit_once(')').unwrap_or((rest, ""));
        for (symbol, letter) in letters(family) {
            let parameters = parameters(list, &letter)
                .unwrap_or_else(|what| panic!("{}: {symbol}: {what} is not understood", source.name));
            let note = note.trim().trim_start_matches("= ").to_owned();
            let reads_samples = parameters.iter().any(|parameter| is_of_samples(&parameter.kind));
            let number = number_of(&symbol);
            all.push(Function { number, symbol, way, parameters, note, reads_samples, refusal: None });
        }
    }
    all
}

/// Whether it is read, and as long as a tensor has samples.
fn is_of_samples(kind: &Kind) -> bool {
    matches!(kind, Kind::In(length) if length.times.iter().any(|factor| matches!(factor, Factor::Batch(_))))
}

/// `rule(name)` → (`rule`, `name`).
fn rule_of(text: &str) -> Option<(&str, &str)> {
    text.strip_suffix(')')?.split_once('(')
}

/// Words, with `{a,b}` kept together.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace()
}

/// `cublas{S,D}scal` → (`cublasSscal`, `S`), (`cublasDscal`, `D`).
fn letters(family: &str) -> Vec<(String, String)> {
    let Some((before, rest)) = family.split_once('{') else { return vec![(family.to_owned(), String::new())] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![(family.to_owned(), String::new())] };
    let choices = choices.split(',').flat_map(|choice| {
        let tails = letters(after);
        tails.into_iter().map(move |(tail, deeper)| {
            let letter = if deeper.is_empty() { choice.to_owned() } else { deeper };
            (format!("{before}{choice}{tail}"), letter)
        })
    });
    choices.collect()
}

/// Bytes of the element and of its real part, for a family's letters.
fn letter_bytes(letter: &str) -> (u32, u32) {
    match letter.to_ascii_uppercase().as_str() {
        "H" => (2, 2),
        "D" => (8, 8),
        "C" | "CS" | "SC" => (8, 4),
        "Z" | "ZD" | "DZ" => (16, 8),
        _ => (4, 4),
    }
}

fn parameters(list: &str, letter: &str) -> Result<Vec<Parameter>, String> {
    let parts: Vec<&str> = list.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let names: Vec<&str> = parts.iter().map(|part| part.split_once(' ').map_or(*part, |(_, name)| name)).collect();
    let place = |name: &str| names.iter().position(|n| *n == name).ok_or(format!("parameter {name}"));
    let element = |text: &str| -> Result<Element, String> {
        let (whole, real) = letter_bytes(letter);
        if let Some((rule, of)) = rule_of(text) {
            if rule == "anywhere" {
                return of.parse().map(Element::Anywhere).map_err(|_| of.to_owned());
            }
            let of = place(of)?;
            return match rule {
                "data" => Ok(Element::Data(of)),
                "compute" => Ok(Element::Compute(of)),
                "scale" => Ok(Element::Scale(of)),
                "tensor" => Ok(Element::Tensor(of)),
                "reduced" => Ok(Element::Reduced(of)),
                _ => Err(rule.to_owned()),
            };
        }
        let (text, count) = text.split_once('*').unwrap_or((text, "1"));
        let count: u32 = count.parse().map_err(|_| text.to_owned())?;
        let bytes = match text {
            "T" => whole,
            "R" => real,
            number => number.parse().map_err(|_| number.to_owned())?,
        };
        Ok(Element::Fixed(bytes * count))
    };
    let length = |text: &str| -> Result<Length, String> {
        let mut length = Length { bytes: 1, times: Vec::new() };
        for factor in text.split('*') {
            match (rule_of(factor), factor, factor.parse::<u32>()) {
                (Some(("batch", of)), ..) => length.times.push(Factor::Batch(place(of)?)),
                (Some(("sum", of)), ..) => length.times.push(Factor::Sum(place(of)?)),
                (Some((rule, _)), ..) => return Err(rule.to_owned()),
                (None, _, Ok(number)) => length.bytes *= number,
                (None, "T", _) => length.bytes *= letter_bytes(letter).0,
                (None, name, _) => length.times.push(Factor::Value(place(name)?)),
            }
        }
        Ok(length)
    };
    let mut out = Vec::new();
    for (part, name) in parts.iter().zip(&names) {
        let kind = part.split_once(' ').map_or(*part, |(kind, _)| kind);
        let (kind, detail) = kind.split_once(':').unwrap_or((kind, ""));
        let kind = match kind {
            "new" => Kind::New,
            "end" => Kind::End,
            "object" => Kind::Object,
            "subject" => Kind::Subject,
            "optional" => Kind::Optional,
            "which" => Kind::Which,
            "value" => Kind::Value,
            "stream" => Kind::Stream,
            "streams" => Kind::Streams,
            "device" => Kind::Device,
            "i32" => Kind::I32,
            "u32" => Kind::U32,
            "i64" => Kind::I64,
            "u64" => Kind::U64,
            "f32" => Kind::F32,
            "f64" => Kind::F64,
            "complex" => Kind::Complex,
            "dim" => Kind::Dim,
            "dim64" => Kind::Dim64,
            "enum" => Kind::Enum,
            "elements" | "into" => {
                let (of, count) = detail.split_once('*').ok_or("an array without a count")?;
                let (of, count) = (place(of)?, place(count)?);
                if kind == "into" { Kind::Into { of, count } } else { Kind::Elements { of, count } }
            }
            "config" => Kind::Config,
            "block" => Kind::Block(detail.parse().map_err(|_| detail.to_owned())?),
            "any" => Kind::Any,
            "scalar" => Kind::Scalar(element(detail)?),
            "result" => Kind::Result(element(detail)?),
            "both" => Kind::Both(element(detail)?),
            "in" => Kind::In(length(detail)?),
            "out" => Kind::Out(length(detail)?),
            "inout" => Kind::InOut(length(detail)?),
            other => return Err(other.to_owned()),
        };
        out.push(Parameter { name: (*name).to_owned(), kind });
    }
    Ok(out)
}
