//! PTX text to tokens.

use crate::error::PtxError;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// An identifier, register or opcode.
    Word,
    /// A directive or suffix; the text is without its dot.
    Dot,
    /// An integer constant.
    Int(u64),
    /// A single-precision constant in bits (`0f...`).
    Single(u32),
    /// A double-precision constant in bits (`0d...`, or a decimal).
    Double(u64),
    /// A string; the text is what stands between the quotes.
    Text,
    /// One character of punctuation.
    Punct(u8),
    /// The end of the input.
    End,
}

/// A token and where it stands (line and column from 1).
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub line: u32,
    pub column: u32,
}

/// Splits the text; the last token is always [`Kind::End`].
pub fn tokens(text: &str) -> Result<Vec<Token<'_>>, PtxError> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len() / 4);
    let (mut at, mut line, mut line_start) = (0usize, 1u32, 0usize);
    while at < bytes.len() {
        let c = bytes[at];
        let column = (at - line_start + 1) as u32;
        let start = at;
        let kind = match c {
            b'\n' => {
                at += 1;
                line += 1;
                line_start = at;
                continue;
            }
            b' ' | b'\t' | b'\r' => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let began = line;
                at += 2;
                while at < bytes.len() && !(bytes[at] == b'*' && bytes.get(at + 1) == Some(&b'/')) {
                    if bytes[at] == b'\n' {
                        line += 1;
                        line_start = at + 1;
                    }
                    at += 1;
                }
                if at == bytes.len() {
                    return Err(PtxError::syntax(began, column, "a comment without its end"));
                }
                at += 2;
                continue;
            }
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' && bytes[at] != b'\n' {
                    at += 1;
                }
                if bytes.get(at) != Some(&b'"') {
                    return Err(PtxError::syntax(line, column, "a string without its end"));
                }
                at += 1;
                out.push(Token { kind: Kind::Text, text: &text[start + 1..at - 1], line, column });
                continue;
            }
            b'.' if bytes.get(at + 1).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') => {
                at += 1;
                while at < bytes.len() {
                    if word_byte(bytes[at]) {
                        at += 1;
                    } else if bytes[at] == b':'
                        && bytes.get(at + 1) == Some(&b':')
                        && bytes.get(at + 2).is_some_and(|b| word_byte(*b))
                    {
                        at += 2;
                    } else {
                        break;
                    }
                }
                out.push(Token { kind: Kind::Dot, text: &text[start + 1..at], line, column });
                continue;
            }
            b'0'..=b'9' => {
                let (hexadecimal, mut float) = (text[start..].starts_with("0x"), false);
                at += 1;
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'.') {
                    float |= bytes[at] == b'.';
                    let exponent = float && !hexadecimal && matches!(bytes[at], b'e' | b'E');
                    at += 1;
                    if exponent && matches!(bytes.get(at), Some(b'-' | b'+')) {
                        at += 1;
                    }
                }
                number(&text[start..at])
                    .ok_or_else(|| PtxError::syntax(line, column, "a number that cannot be read"))?
            }
            _ if word_byte(c) || c == b'%' => {
                at += 1;
                while at < bytes.len() && word_byte(bytes[at]) {
                    at += 1;
                }
                Kind::Word
            }
            _ if c.is_ascii() => {
                at += 1;
                Kind::Punct(c)
            }
            _ => return Err(PtxError::syntax(line, column, "a character outside ASCII")),
        };
        out.push(Token { kind, text: &text[start..at], line, column });
    }
    let column = (at - line_start + 1) as u32;
    out.push(Token { kind: Kind::End, text: "", line, column });
    Ok(out)
}

fn word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$'
}

fn number(text: &str) -> Option<Kind> {
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let (first, rest) = text.split_at(text.len().min(2));
    match first {
        "0f" | "0F" if rest.len() == 8 => return Some(Kind::Single(hex(rest)? as u32)),
        "0d" | "0D" if rest.len() == 16 => return Some(Kind::Double(hex(rest)?)),
        _ => {}
    }
    if text.contains('.') {
        return text.parse::<f64>().ok().map(|v| Kind::Double(v.to_bits()));
    }
    let digits = text.strip_suffix(['U', 'u']).unwrap_or(text);
    let value = match first {
        "0x" | "0X" => hex(digits.get(2..)?)?,
        "0b" | "0B" => u64::from_str_radix(digits.get(2..)?, 2).ok()?,
        _ if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(&digits[1..], 8).ok()?,
        _ => digits.parse().ok()?,
    };
    Some(Kind::Int(value))
}
