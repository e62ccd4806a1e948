//! `vprintf`, `__assertfail`, `malloc` and `free`: functions that device code calls without defining them.

use super::loaded;
use super::warp::{Context, Stop, Warp};
use crate::error::{Fault, Place, Space};
use crate::heap::NotAllocated;
use crate::ir::*;
use std::collections::VecDeque;

/// Bytes that are kept of what a launch prints unless somebody says otherwise, as in CUDA's default buffer.
pub const DEFAULT_PRINTED: usize = 1 << 20;
/// What a call takes of them at least, as in a card's buffer, where its format and arguments lie.
const LEAST_OF_CALL: usize = 32;

/// What the calls of `printf` wrote; as in a card's buffer, the last ones push the first ones out.
pub struct Printed {
    most: usize,
    text: VecDeque<u8>,
    /// Bytes of each call's text.
    calls: VecDeque<u32>,
    taken: usize,
}

impl Printed {
    /// A buffer of so many bytes.
    pub fn new(most: usize) -> Printed {
        Printed { most, text: VecDeque::new(), calls: VecDeque::new(), taken: 0 }
    }

    fn push(&mut self, call: &[u8]) {
        if call.is_empty() {
            return;
        }
        self.taken += call.len().max(LEAST_OF_CALL);
        self.text.extend(call);
        self.calls.push_back(call.len() as u32);
        while self.taken > self.most
            && let Some(first) = self.calls.pop_front()
        {
            self.taken -= (first as usize).max(LEAST_OF_CALL);
            self.text.drain(..first as usize);
        }
    }

    /// All that is left, one call after the other.
    pub fn text(self) -> String {
        String::from_utf8_lossy(&Vec::from(self.text)).into_owned()
    }
}

/// Calls a provided function for each lane in the mask.
#[allow(clippy::too_many_arguments)]
pub fn call(
    c: &Context,
    w: &mut Warp,
    name: &str,
    site: &CallSite,
    local: [u32; 32],
    mask: u32,
    line: u32,
) -> Result<(), Stop> {
    let Some(callee) = loaded::provided(name) else {
        return Err(Stop::Fault(Fault::Unsupported { instruction: format!("call of {name}"), line }));
    };
    // Each thread that fails an assertion says so.
    let (mut failed, mut asserting) = (Vec::new(), String::new());
    for lane in (0..32).filter(|l| mask >> l & 1 == 1) {
        let mut arguments = [0u64; 5];
        for (value, (offset, size)) in arguments.iter_mut().zip(&site.arguments) {
            let at = u64::from(local[lane] + offset);
            *value = read_local(w, lane, at, (*size).min(8));
        }
        let result = match callee {
            Callee::Print => {
                let (text, count) = format_one(c, w, (lane, line), arguments[0], arguments[1])?;
                c.printed.lock().unwrap_or_else(|e| e.into_inner()).push(&text);
                count
            }
            Callee::Assert => {
                let [message, file, at, function, _] = arguments;
                let mut text = |p: u64| read_text(c, w, (lane, line), p);
                let (message, file, function) = (text(message)?, text(file)?, text(function)?);
                let Place { kernel, block: [bx, by, bz], thread: [x, y, z], .. } = w.place(c, lane, line);
                // As CUDA writes it.
                failed.push(format!(
                    "{file}:{}: {function}: block: [{bx},{by},{bz}], thread: [{x},{y},{z}] Assertion `{message}` failed.",
                    at as u32
                ));
                asserting = kernel;
                0
            }
            Callee::Malloc => c.heap.map_or(0, |heap| heap.malloc(arguments[0])),
            Callee::Free => {
                let freed = match c.heap {
                    Some(heap) => heap.free(arguments[0]),
                    None if arguments[0] == 0 => Ok(()),
                    None => Err(NotAllocated(arguments[0])),
                };
                let failed = |wrong| {
                    let place = w.place(c, lane, line);
                    Stop::Fault(Fault::LaunchFailure(format!("{wrong}, {place}")))
                };
                freed.map_err(failed)?;
                0
            }
            Callee::Function(_) | Callee::Pointer(_) => 0,
        };
        if let Some((offset, size, _)) = site.results.first() {
            let at = u64::from(local[lane] + offset);
            for (k, byte) in result.to_le_bytes().iter().take((*size).min(8) as usize).enumerate() {
                if let Some(p) = w.local_pointer(lane, at + k as u64, 1) {
                    // SAFETY: `local_pointer` gave a byte of the warp's own memory.
                    unsafe { *(p as *mut u8) = *byte };
                }
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Stop::Fault(Fault::Assert { kernel: asserting, message: failed.join("\n") }))
}

fn read_local(w: &mut Warp, lane: usize, at: u64, size: u32) -> u64 {
    let mut bytes = [0; 8];
    for k in 0..size {
        if let Some(p) = w.local_pointer(lane, at + u64::from(k), 1) {
            // SAFETY: `local_pointer` gave a byte of the warp's own memory.
            bytes[k as usize] = unsafe { *(p as *const u8) };
        }
    }
    u64::from_le_bytes(bytes)
}

/// The lane that reads, and the line of its instruction.
type By = (usize, u32);

/// Reads one byte at a generic address.
fn read_byte(c: &Context, w: &mut Warp, by: By, address: u64) -> Result<u8, Stop> {
    let pointer = if address >= PARAM_WINDOW {
        None
    } else if address >= LOCAL_WINDOW {
        w.local_pointer(by.0, address - LOCAL_WINDOW, 1)
    } else if address >= SHARED_WINDOW {
        let offset = address - SHARED_WINDOW;
        (offset < u64::from(c.shared_len)).then(|| c.shared as u64 + offset)
    } else {
        c.arena.touches(address, 1).then_some(address)
    };
    let space = Space::Generic;
    let illegal = || {
        let place = w.place(c, by.0, by.1);
        Stop::Fault(Fault::IllegalAddress { address, space, write: false, shared_bytes: None, place })
    };
    // SAFETY: the byte was just found to be mapped.
    pointer.map(|p| unsafe { *(p as *const u8) }).ok_or_else(illegal)
}

fn read_word(c: &Context, w: &mut Warp, by: By, address: u64, size: u64) -> Result<u64, Stop> {
    let mut out = 0;
    for k in 0..size {
        out |= u64::from(read_byte(c, w, by, address + k)?) << (8 * k);
    }
    Ok(out)
}

/// Most bytes of a format or of a text that it prints.
const LONGEST: usize = 1 << 16;

/// Bytes up to the NUL behind them.
fn read_bytes(c: &Context, w: &mut Warp, by: By, address: u64) -> Result<Vec<u8>, Stop> {
    let mut bytes = Vec::new();
    if address == 0 {
        return Ok(b"(null)".to_vec());
    }
    while bytes.len() < LONGEST {
        match read_byte(c, w, by, address + bytes.len() as u64)? {
            0 => break,
            b => bytes.push(b),
        }
    }
    Ok(bytes)
}

fn read_text(c: &Context, w: &mut Warp, by: By, address: u64) -> Result<String, Stop> {
    Ok(String::from_utf8_lossy(&read_bytes(c, w, by, address)?).into_owned())
}

/// Arguments that a call prints; the conversions of further ones stay as they are (CUDA C++ Programming Guide, "Formatted
/// Output").
const MOST_ARGUMENTS: u64 = 32;

/// What CUDA's `printf` returns without a format: -1.
const NO_FORMAT: u64 = u64::MAX;

/// Formats one call: `%` conversions of C, arguments one after the other, each aligned to its size.  Gives how many
/// there were, too: what CUDA's `printf` returns.
fn format_one(c: &Context, w: &mut Warp, by: By, format: u64, arguments: u64) -> Result<(Vec<u8>, u64), Stop> {
    if format == 0 {
        return Ok((Vec::new(), NO_FORMAT));
    }
    let format = read_text(c, w, by, format)?;
    let (mut out, mut count) = (Vec::new(), 0);
    let mut at = arguments;
    let mut rest = format.as_str();
    while let Some(percent) = rest.find('%') {
        out.extend_from_slice(&rest.as_bytes()[..percent]);
        rest = &rest[percent + 1..];
        if let Some(tail) = rest.strip_prefix('%') {
            out.push(b'%');
            rest = tail;
            continue;
        }
        if count >= MOST_ARGUMENTS {
            out.push(b'%');
            continue;
        }
        let end = rest.find(|ch: char| ch.is_ascii_alphabetic() && !matches!(ch, 'l' | 'h' | 'z' | 'j' | 't' | 'L'));
        let Some(end) = end else { break };
        let (mut spec, conversion) = (rest[..end].to_string(), rest.as_bytes()[end] as char);
        rest = &rest[end + 1..];
        while let Some((head, tail)) = spec.split_once('*') {
            at = at.next_multiple_of(4);
            let given = read_word(c, w, by, at, 4)? as i32;
            at += 4;
            count += 1;
            spec = match head.strip_suffix('.') {
                // As C has it: a negative precision is none, a negative width one to the left.
                Some(head) if given < 0 => format!("{head}{tail}"),
                _ if given < 0 => format!("-{head}{}{tail}", given.unsigned_abs()),
                _ => format!("{head}{given}{tail}"),
            };
        }
        let long = spec.contains(['l', 'z', 'j', 't']);
        let float = matches!(conversion, 'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A');
        let size = if long || float || matches!(conversion, 's' | 'p') { 8 } else { 4 };
        at = at.next_multiple_of(size);
        let value = read_word(c, w, by, at, size)?;
        at += size;
        count += 1;
        let flags = spec.trim_end_matches(['l', 'h', 'z', 'j', 't', 'L']);
        let (head, precision) = match flags.split_once('.') {
            Some((head, p)) => (head, p.parse::<usize>().ok().or(Some(0))),
            None => (flags, None),
        };
        let width_at = head.find(|ch: char| ch.is_ascii_digit() && ch != '0').unwrap_or(head.len());
        let width = head[width_at..].parse::<usize>().unwrap_or(0).min(4096);
        let flags = &head[..width_at];
        let precision = precision.map(|p| p.min(4096));
        let bits = if spec.ends_with("hh") {
            8
        } else if spec.ends_with('h') {
            16
        } else {
            8 * size
        };
        let signed = (value << (64 - bits)) as i64 >> (64 - bits);
        let value = if float || matches!(conversion, 's' | 'p') { value } else { value << (64 - bits) >> (64 - bits) };
        let integer = matches!(conversion, 'd' | 'i' | 'u' | 'x' | 'X' | 'o');
        // At least so many digits.
        let digits = |text: String| match precision {
            Some(0) if value == 0 => String::new(),
            Some(p) => "0".repeat(p.saturating_sub(text.len())) + &text,
            None => text,
        };
        let plus = |negative: bool| match (negative, flags.contains('+'), flags.contains(' ')) {
            (true, ..) => "",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let number = || match conversion {
            'd' | 'i' if signed < 0 => format!("-{}", digits(signed.unsigned_abs().to_string())),
            'd' | 'i' => format!("{}{}", plus(false), digits(signed.to_string())),
            'u' => digits(value.to_string()),
            'x' => {
                format!("{}{}", if flags.contains('#') && value != 0 { "0x" } else { "" }, digits(format!("{value:x}")))
            }
            'X' => {
                format!("{}{}", if flags.contains('#') && value != 0 { "0X" } else { "" }, digits(format!("{value:X}")))
            }
            'o' => {
                let text = digits(format!("{value:o}"));
                if flags.contains('#') && !text.starts_with('0') { format!("0{text}") } else { text }
            }
            'p' if value == 0 => "(nil)".to_string(),
            'p' => format!("{value:#x}"),
            _ if float => {
                let v = f64::from_bits(value);
                let text = float_text(v, conversion, precision, flags.contains('#'));
                let text = if conversion.is_ascii_uppercase() { text.to_uppercase() } else { text };
                format!("{}{text}", plus(v.is_sign_negative()))
            }
            _ => String::new(),
        };
        let text = match conversion {
            // What is no number is bytes: a character of several may come in parts.
            'c' => vec![value as u8],
            's' => {
                let mut text = read_bytes(c, w, by, value)?;
                text.truncate(precision.unwrap_or(text.len()));
                text
            }
            _ => number().into_bytes(),
        };
        let missing = width.saturating_sub(text.len());
        let finite = !float || f64::from_bits(value).is_finite();
        let zeros =
            flags.contains('0') && finite && !matches!(conversion, 's' | 'c') && !(integer && precision.is_some());
        let (before, inside, behind) = match (flags.contains('-'), zeros) {
            (true, _) => (0, 0, missing),
            (_, true) => (0, missing, 0),
            _ => (missing, 0, 0),
        };
        let sign = text.iter().take_while(|b| matches!(b, b'-' | b'+' | b' ')).count();
        let based = matches!(text.get(sign..sign + 2), Some(b"0x" | b"0X"));
        let front = if based { sign + 2 } else { sign };
        let (front, back) = text.split_at(if zeros { front } else { 0 });
        out.resize(out.len() + before, b' ');
        out.extend_from_slice(front);
        out.resize(out.len() + inside, b'0');
        out.extend_from_slice(back);
        out.resize(out.len() + behind, b' ');
    }
    out.extend_from_slice(rest.as_bytes());
    Ok((out, count))
}

/// `%a`: the mantissa's bits as they are.
fn hexadecimal_text(v: f64, precision: Option<usize>) -> String {
    let (field, fraction) = (v.to_bits() >> 52 & 0x7ff, v.to_bits() & ((1 << 52) - 1));
    let exponent = if v == 0.0 { 0 } else { field.max(1) as i64 - 1023 };
    let mut mantissa = fraction | u64::from(field != 0) << 52;
    let digits = match precision {
        Some(p) if p < 13 => {
            let cut = 4 * (13 - p);
            let (rest, half) = (mantissa & ((1 << cut) - 1), 1 << (cut - 1));
            mantissa = (mantissa >> cut) + u64::from(rest > half || (rest == half && mantissa >> cut & 1 == 1));
            mantissa <<= cut;
            format!("{:013x}", mantissa & ((1 << 52) - 1))[..p].to_string()
        }
        Some(p) => format!("{:013x}{}", fraction, "0".repeat(p - 13)),
        None => format!("{fraction:013x}").trim_end_matches('0').to_string(),
    };
    let (sign, point) = (if v.is_sign_negative() { "-" } else { "" }, if digits.is_empty() { "" } else { "." });
    format!("{sign}0x{}{point}{digits}p{exponent:+}", mantissa >> 52)
}

fn float_text(v: f64, conversion: char, precision: Option<usize>, whole: bool) -> String {
    if !v.is_finite() {
        let text = if v.is_nan() { "nan" } else { "inf" };
        return format!("{}{text}", if v.is_sign_negative() { "-" } else { "" });
    }
    if conversion.eq_ignore_ascii_case(&'a') {
        return hexadecimal_text(v, precision);
    }
    let precision = precision.unwrap_or(6);
    match conversion.to_ascii_lowercase() {
        'e' => exponent_text(v, precision),
        'g' => {
            let precision = precision.max(1);
            let exponent = if v == 0.0 { 0 } else { exponent_of(v, precision - 1) };
            let text = if exponent < -4 || exponent >= precision as i32 {
                exponent_text(v, precision - 1)
            } else {
                format!("{v:.*}", (precision as i32 - 1 - exponent) as usize)
            };
            match text.split_once('e') {
                _ if whole => text,
                Some((m, e)) if m.contains('.') => format!("{}e{e}", m.trim_end_matches('0').trim_end_matches('.')),
                None if text.contains('.') => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                _ => text,
            }
        }
        _ => format!("{v:.precision$}{}", if whole && precision == 0 { "." } else { "" }),
    }
}

fn exponent_of(v: f64, precision: usize) -> i32 {
    let text = format!("{v:.precision$e}");
    text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0)
}

fn exponent_text(v: f64, precision: usize) -> String {
    let text = format!("{v:.precision$e}");
    match text.split_once('e') {
        Some((m, e)) => {
            let e: i32 = e.parse().unwrap_or(0);
            format!("{m}e{}{:02}", if e < 0 { '-' } else { '+' }, e.abs())
        }
        None => text,
    }
}
