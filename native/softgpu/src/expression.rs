//! Constant expressions: numbers and what is computed of them, with the types that the PTX ISA gives each operator
//! ("Constant Expressions"): `.s64`, `.u64` and `.f64`.

use crate::error::PtxError;
use crate::lexer::Kind;
use crate::parser::Parser;
use crate::types::Type;

/// The value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Signed(i64),
    Unsigned(u64),
    /// A single-precision literal in bits, which nothing but a sign has changed.
    Single(u32),
    /// In bits.
    Double(u64),
}

/// Binary operators, those of two characters first, and how strongly each binds.
const OPERATORS: [(&str, u32); 18] = [
    ("||", 1),
    ("&&", 2),
    ("==", 6),
    ("!=", 6),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];
/// How strongly shifts bind, which are what may stand between `<` and `>`.
const SHIFT: u32 = 8;
/// Most parentheses, signs and choices inside each other.
const MOST_NESTED: u32 = 64;
/// Lanes of a warp.
const WARP_SIZE: i64 = 32;

impl Value {
    /// The bits of a constant of this type.
    pub fn bits(self, ty: Type) -> u64 {
        match (ty, self) {
            (Type::F32, Value::Single(bits)) => u64::from(bits),
            (Type::F32, Value::Signed(v)) => u64::from((v as f32).to_bits()),
            (Type::F32, Value::Unsigned(v)) => u64::from((v as f32).to_bits()),
            (Type::F32, Value::Double(bits)) => u64::from((f64::from_bits(bits) as f32).to_bits()),
            (Type::F64, Value::Single(bits)) => f64::from(f32::from_bits(bits)).to_bits(),
            (Type::F64, Value::Signed(v)) => (v as f64).to_bits(),
            (Type::F64, Value::Unsigned(v)) => (v as f64).to_bits(),
            (_, Value::Signed(v)) => v as u64,
            (_, Value::Unsigned(v) | Value::Double(v)) => v,
            (_, Value::Single(bits)) => u64::from(bits),
        }
    }

    /// As an integer in bits, if it is one.
    pub fn integer(self) -> Option<u64> {
        match self {
            Value::Signed(v) => Some(v as u64),
            Value::Unsigned(v) => Some(v),
            Value::Single(_) | Value::Double(_) => None,
        }
    }

    /// An integer is signed unless one of those that it comes of is not.
    fn like(bits: u64, unsigned: bool) -> Value {
        if unsigned { Value::Unsigned(bits) } else { Value::Signed(bits as i64) }
    }

    fn unary(self, operator: u8) -> Option<Value> {
        Some(match (operator, self) {
            (b'+', _) => self,
            (b'-', Value::Signed(v)) => Value::Signed(v.wrapping_neg()),
            (b'-', Value::Unsigned(v)) => Value::Unsigned(v.wrapping_neg()),
            (b'-', Value::Single(bits)) => Value::Single(bits ^ 1 << 31),
            (b'-', Value::Double(bits)) => Value::Double(bits ^ 1 << 63),
            (b'!', _) => Value::Signed(i64::from(self.integer()? == 0)),
            _ => Value::Unsigned(!self.integer()?),
        })
    }

    /// Nothing where the operator is not one of these operands, or divides by zero. Integers and floats do not mix.
    fn binary(self, operator: &str, other: Value) -> Option<Value> {
        let truth = |holds: bool| Some(Value::Signed(i64::from(holds)));
        if let (Value::Double(a), Value::Double(b)) = (self, other) {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            let number = |v: f64| Some(Value::Double(v.to_bits()));
            return match operator {
                "+" => number(a + b),
                "-" => number(a - b),
                "*" => number(a * b),
                "/" => number(a / b),
                "<" => truth(a < b),
                ">" => truth(a > b),
                "<=" => truth(a <= b),
                ">=" => truth(a >= b),
                "==" => truth(a == b),
                "!=" => truth(a != b),
                _ => None,
            };
        }
        let (a, b) = (self.integer()?, other.integer()?);
        let unsigned = [self, other].iter().any(|v| matches!(v, Value::Unsigned(_)));
        let order = if unsigned { a.cmp(&b) } else { (a as i64).cmp(&(b as i64)) };
        // As NVIDIA's assembler does it: by the lowest six bits.
        let shift = (b & 63) as u32;
        match (operator, self) {
            ("+", _) => Some(Value::like(a.wrapping_add(b), unsigned)),
            ("-", _) => Some(Value::like(a.wrapping_sub(b), unsigned)),
            ("*", _) => Some(Value::like(a.wrapping_mul(b), unsigned)),
            ("/", _) if b == 0 => None,
            ("/", _) if unsigned => Some(Value::Unsigned(a / b)),
            ("/", _) => Some(Value::Signed((a as i64).wrapping_div(b as i64))),
            ("%", _) => Some(Value::Signed(a.checked_rem(b)? as i64)),
            ("<<", _) => Some(Value::like(a << shift, matches!(self, Value::Unsigned(_)))),
            (">>", Value::Signed(v)) => Some(Value::Signed(v >> shift)),
            (">>", _) => Some(Value::Unsigned(a >> shift)),
            ("&", _) => Some(Value::Unsigned(a & b)),
            ("|", _) => Some(Value::Unsigned(a | b)),
            ("^", _) => Some(Value::Unsigned(a ^ b)),
            ("&&", _) => truth(a != 0 && b != 0),
            ("||", _) => truth(a != 0 || b != 0),
            ("<", _) => truth(order.is_lt()),
            (">", _) => truth(order.is_gt()),
            ("<=", _) => truth(order.is_le()),
            (">=", _) => truth(order.is_ge()),
            ("==", _) => truth(a == b),
            _ => truth(a != b),
        }
    }
}

impl Parser<'_, '_> {
    /// Whether a constant expression begins here; `!` and `(` may begin something else.
    pub fn at_number(&self) -> bool {
        let token = self.peek();
        match token.kind {
            Kind::Int(_) | Kind::Single(_) | Kind::Double(_) => true,
            Kind::Punct(c) => matches!(c, b'-' | b'+' | b'~'),
            _ => token.kind == Kind::Word && token.text == "WARP_SZ",
        }
    }

    /// Takes a constant expression.
    pub fn expression(&mut self) -> Result<Value, PtxError> {
        self.choice(0)
    }

    /// Takes a constant expression that is an integer, in bits.
    pub fn integer(&mut self) -> Result<u64, PtxError> {
        let token = self.peek();
        let value = self.expression()?;
        value.integer().ok_or_else(|| PtxError::syntax(token.line, token.column, "expected an integer"))
    }

    /// Takes `+` or `-` and what follows, if there is one; else it is zero.
    pub fn offset(&mut self) -> Result<i64, PtxError> {
        if self.eat(b'+') || self.peek().kind == Kind::Punct(b'-') { Ok(self.integer()? as i64) } else { Ok(0) }
    }

    /// Takes an integer that fits in 32 bits.
    pub fn small(&mut self) -> Result<u32, PtxError> {
        self.small_of(0)
    }

    /// Takes one before a `>`.
    pub fn small_in_angles(&mut self) -> Result<u32, PtxError> {
        self.small_of(SHIFT)
    }

    fn small_of(&mut self, least: u32) -> Result<u32, PtxError> {
        let token = self.peek();
        let value = if least == 0 { self.choice(0)? } else { self.operators(least, 0)? };
        let fits = value.integer().and_then(|v| u32::try_from(v).ok());
        fits.ok_or_else(|| PtxError::syntax(token.line, token.column, "a number out of range"))
    }

    fn choice(&mut self, depth: u32) -> Result<Value, PtxError> {
        let token = self.peek();
        let condition = self.operators(1, depth)?;
        if !self.eat(b'?') {
            return Ok(condition);
        }
        let first = self.choice(depth + 1)?;
        self.expect(b':')?;
        let second = self.choice(depth + 1)?;
        let of_integers = [condition.integer(), first.integer(), second.integer()];
        let [Some(condition), one, other] = of_integers else {
            return Err(PtxError::syntax(token.line, token.column, "a choice by what is no integer"));
        };
        if one.is_some() != other.is_some() {
            return Err(PtxError::syntax(token.line, token.column, "a choice between an integer and a float"));
        }
        Ok(if condition == 0 { second } else { first })
    }

    /// Operators that bind at least so strongly.
    fn operators(&mut self, least: u32, depth: u32) -> Result<Value, PtxError> {
        let mut value = self.unary(depth)?;
        while let Some((operator, strength)) = self.operator().filter(|(_, strength)| *strength >= least) {
            let token = self.peek();
            for _ in 0..operator.len() {
                self.next();
            }
            let other = self.operators(strength + 1, depth)?;
            value = value.binary(operator, other).ok_or_else(|| {
                let divides = matches!(operator, "/" | "%") && other.integer() == Some(0);
                let why = if divides { "a division by zero" } else { "it does not join these two types" };
                PtxError::syntax(token.line, token.column, format!("`{operator}`: {why}"))
            })?;
        }
        Ok(value)
    }

    fn operator(&self) -> Option<(&'static str, u32)> {
        let is = |k: usize, c: &str| {
            let token = self.peek_behind(k);
            token.text == c && matches!(token.kind, Kind::Punct(_) | Kind::Word)
        };
        OPERATORS.into_iter().find(|(name, _)| (0..name.len()).all(|k| is(k, &name[k..=k])))
    }

    fn unary(&mut self, depth: u32) -> Result<Value, PtxError> {
        if depth > MOST_NESTED {
            return Err(self.error("an expression nested too deeply"));
        }
        let token = self.next();
        let expected = || PtxError::syntax(token.line, token.column, "expected a number");
        match token.kind {
            Kind::Int(v) => Ok(Value::like(v, v > i64::MAX as u64 || token.text.ends_with(['U', 'u']))),
            Kind::Single(bits) => Ok(Value::Single(bits)),
            Kind::Double(bits) => Ok(Value::Double(bits)),
            Kind::Word if token.text == "WARP_SZ" => Ok(Value::Signed(WARP_SIZE)),
            Kind::Punct(operator @ (b'+' | b'-' | b'!' | b'~')) => {
                self.unary(depth + 1)?.unary(operator).ok_or_else(expected)
            }
            Kind::Punct(b'(') => {
                let cast = self.peek();
                if cast.kind == Kind::Dot {
                    self.next();
                    self.expect(b')')?;
                    let bits = self.unary(depth + 1)?.integer().ok_or_else(expected)?;
                    return match cast.text {
                        "s64" => Ok(Value::Signed(bits as i64)),
                        "u64" => Ok(Value::Unsigned(bits)),
                        _ => Err(PtxError::syntax(cast.line, cast.column, "expected `.s64` or `.u64`")),
                    };
                }
                let value = self.choice(depth + 1)?;
                self.expect(b')')?;
                Ok(value)
            }
            _ => Err(expected()),
        }
    }
}
