//! Operands: parsing them, and turning them into rows.

use super::{Builder, Variable, rows_of, width_of};
use crate::error::PtxError;
use crate::expression::Value;
use crate::ir::*;
use crate::lexer::Kind;
use crate::parser::{Parser, undeclared};
use crate::types::Type;

/// An operand as written.
#[derive(Clone, Debug)]
pub enum Operand {
    Register(u32, Type),
    /// `!%p`
    Not(u32),
    /// An integer, sign applied.
    Int(u64),
    Single(u32),
    Double(u64),
    /// `{a, b, ...}`
    Vector(Vec<Operand>),
    /// `[...]`
    Address(Box<Operand>, i64),
    /// A name with an offset.
    Symbol(Variable, i64),
    /// A special register: see [`special`].
    Special(u32),
    /// `_`
    Sink,
    /// A label or another name that means nothing as a value.
    Name(String),
    /// `d|p`
    Pair(Box<Operand>, Box<Operand>),
    /// `(a, b)`
    List(Vec<Operand>),
}

/// What is always zero, such as the fourth part of a place.
const ZERO: u32 = 29;

/// The number of a special register, as [`crate::exec`] reads it.
pub fn special(name: &str, part: Option<&str>) -> Option<u32> {
    let component = |base: u32| match part {
        Some("x") => Some(base),
        Some("y") => Some(base + 1),
        Some("z") => Some(base + 2),
        Some("w") => Some(ZERO),
        _ => None,
    };
    Some(match name {
        "%tid" => component(0)?,
        "%ntid" => component(3)?,
        "%ctaid" => component(6)?,
        "%nctaid" => component(9)?,
        "%laneid" => 12,
        "%warpid" => 13,
        "%nwarpid" => 14,
        "%smid" => 15,
        "%nsmid" => 16,
        "%gridid" => 17,
        "%clock" | "%clock64" => 18,
        "%clock_hi" => 19,
        "%globaltimer" | "%globaltimer_lo" => 20,
        "%globaltimer_hi" => 21,
        "%lanemask_eq" => 22,
        "%lanemask_le" => 23,
        "%lanemask_lt" => 24,
        "%lanemask_ge" => 25,
        "%lanemask_gt" => 26,
        "%dynamic_smem_size" => 27,
        "%total_smem_size" => 28,
        "%envreg1" => 30,
        "%envreg2" => 31,
        // A cluster is one block; there are no performance counters.
        "%clusterid" => component(6)?,
        "%nclusterid" => component(9)?,
        "%cluster_nctaid" | "%cluster_nctarank" => 17,
        "%aggr_smem_size" => 28,
        "%cluster_ctaid" | "%cluster_ctarank" | "%is_explicit_cluster" | "%current_graph_exec" => ZERO,
        "%reserved_smem_offset_begin" | "%reserved_smem_offset_end" | "%reserved_smem_offset_cap" => ZERO,
        "%reserved_smem_offset_0" | "%reserved_smem_offset_1" => ZERO,
        _ if numbered(name, "%envreg", 32) || numbered(name.trim_end_matches("_64"), "%pm", 8) => ZERO,
        _ => return None,
    })
}

/// Whether the name is this one with a number below `end`.
fn numbered(name: &str, stem: &str, end: u32) -> bool {
    let number =
        name.strip_prefix(stem).and_then(|digits| digits.parse::<u32>().ok().filter(|n| n.to_string() == digits));
    number.is_some_and(|number| number < end)
}

/// Whether there is a special register of this name.
pub fn is_special(name: &str) -> bool {
    special(name, None).or_else(|| special(name, Some("x"))).is_some()
}

impl Operand {
    /// A name in it that means nothing as a value.
    pub fn name(&self) -> Option<&str> {
        match self {
            Operand::Name(name) => Some(name),
            Operand::Address(base, _) => base.name(),
            Operand::Vector(parts) | Operand::List(parts) => parts.iter().find_map(Operand::name),
            Operand::Pair(first, second) => first.name().or_else(|| second.name()),
            _ => None,
        }
    }
}

impl Parser<'_, '_> {
    /// Reads one operand; with `lists` parentheses are around several, else around a part of a constant expression.
    pub fn operand(&mut self, builder: &Builder, lists: bool) -> Result<Operand, PtxError> {
        if lists && self.eat(b'(') {
            return Ok(Operand::List(self.items(builder, 0, b')')?));
        }
        let first = self.simple(builder, 0)?;
        if self.eat(b'|') {
            let second = self.simple(builder, 0)?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    fn simple(&mut self, builder: &Builder, depth: u32) -> Result<Operand, PtxError> {
        if depth > 4 {
            return Err(self.error("operands nested too deeply"));
        }
        let not = self.peek().kind == Kind::Punct(b'!') && self.peek_behind(1).kind == Kind::Word;
        if self.at_number() || matches!(self.peek().kind, Kind::Punct(b'(' | b'!')) && !not {
            return Ok(match self.expression()? {
                Value::Signed(v) => Operand::Int(v as u64),
                Value::Unsigned(v) => Operand::Int(v),
                Value::Single(bits) => Operand::Single(bits),
                Value::Double(bits) => Operand::Double(bits),
            });
        }
        let token = self.next();
        Ok(match token.kind {
            Kind::Punct(b'!') => {
                let name = self.word()?;
                match builder.lookup(name) {
                    Some(Variable::Register(row, Type::Pred)) => Operand::Not(row),
                    _ => return Err(self.error("expected a predicate")),
                }
            }
            Kind::Punct(b'{') => Operand::Vector(self.items(builder, depth, b'}')?),
            Kind::Punct(b'[') => {
                let base = self.simple(builder, depth + 1)?;
                let (base, mut offset) = match base {
                    Operand::Symbol(v, o) => (Operand::Symbol(v, 0), o),
                    other => (other, 0),
                };
                offset = offset.wrapping_add(self.offset()?);
                self.expect(b']')?;
                Operand::Address(Box::new(base), offset)
            }
            Kind::Word if token.text == "_" => Operand::Sink,
            Kind::Word if token.text.starts_with('%') && builder.lookup(token.text).is_none() => {
                let part = (self.peek().kind == Kind::Dot).then(|| self.peek().text);
                let component = part.filter(|p| matches!(*p, "x" | "y" | "z" | "w"));
                if component.is_some() {
                    self.next();
                }
                match special(token.text, component) {
                    Some(code) => Operand::Special(code),
                    None if special(token.text, Some("x")).is_some() => {
                        let parts = ["x", "y", "z", "w"].map(|part| special(token.text, Some(part)));
                        Operand::Vector(parts.into_iter().flatten().map(Operand::Special).collect())
                    }
                    None => return Err(undeclared(token, token.text)),
                }
            }
            Kind::Word => match builder.lookup(token.text).or_else(|| self.names.get(token.text).cloned()) {
                Some(Variable::Register(row, Type::B128)) => {
                    Operand::Vector([row, row + rows_of(Type::B64)].map(|row| Operand::Register(row, Type::B64)).into())
                }
                Some(Variable::Register(row, ty)) => Operand::Register(row, ty),
                Some(Variable::Handle(kind)) => {
                    let name = format!(".{kind} {}", token.text);
                    return Err(PtxError::unsupported(token.line, token.column, name));
                }
                Some(Variable::Vector(row, ty, count)) => {
                    let register = |k| Operand::Register(row + k * rows_of(ty), ty);
                    let part = self.peek();
                    match part_of_vector(part.text).filter(|k| part.kind == Kind::Dot && *k < count) {
                        Some(k) => {
                            self.next();
                            register(k)
                        }
                        None => Operand::Vector((0..count).map(register).collect()),
                    }
                }
                Some(variable) => Operand::Symbol(variable, self.offset()?),
                None => Operand::Name(token.text.to_string()),
            },
            _ => return Err(PtxError::syntax(token.line, token.column, format!("unexpected `{}`", token.text))),
        })
    }
}

/// The element of a vector that `.x`, or `.r` as the colours have it, names.
fn part_of_vector(name: &str) -> Option<u32> {
    let part = ["x", "y", "z", "w"].iter().position(|part| *part == name);
    part.or_else(|| ["r", "g", "b", "a"].iter().position(|part| *part == name)).map(|k| k as u32)
}

impl Parser<'_, '_> {
    /// Reads the operands up to the closing mark.
    fn items(&mut self, builder: &Builder, depth: u32, close: u8) -> Result<Vec<Operand>, PtxError> {
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(self.simple(builder, depth + 1)?);
            if items.len() > 256 {
                return Err(self.error("too many operands"));
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(close)?;
        Ok(items)
    }
}

impl Builder {
    /// The row of a source operand of this type.
    pub(super) fn source(&mut self, operand: &Operand, ty: Type) -> Result<u32, PtxError> {
        let wide = ty.wide();
        Ok(match operand {
            Operand::Register(row, actual) => {
                if (*actual == Type::Pred) != (ty == Type::Pred) || actual.wide() != wide {
                    return Err(self.error("a register of another size than the instruction's type"));
                }
                *row
            }
            Operand::Int(_) if ty.float() => {
                return Err(self.error("an integer where the instruction takes a floating-point number"));
            }
            Operand::Int(v) => {
                let bits = if ty.size() == 8 { *v } else { v & ((1u64 << (8 * ty.size())) - 1) };
                if ty == Type::Pred {
                    let row = self.fresh(Type::Pred);
                    self.emit(Op::PredConst, row, NONE, NONE, NONE, u32::from(*v != 0), 0);
                    return Ok(row);
                }
                self.constant(Constant::Bits(bits), wide)
            }
            Operand::Single(v) if matches!(ty, Type::F32 | Type::B32) => {
                self.constant(Constant::Bits(u64::from(*v)), false)
            }
            Operand::Single(v) if ty == Type::F64 => {
                self.constant(Constant::Bits(f64::from(f32::from_bits(*v)).to_bits()), true)
            }
            Operand::Double(v) if matches!(ty, Type::F64 | Type::B64) => self.constant(Constant::Bits(*v), true),
            Operand::Double(v) if ty == Type::F32 => {
                self.constant(Constant::Bits(u64::from((f64::from_bits(*v) as f32).to_bits())), false)
            }
            Operand::Single(_) | Operand::Double(_) => {
                return Err(self.error("a floating-point number where the instruction takes none of its size"));
            }
            Operand::Special(_) if ty == Type::Pred => {
                let row = self.fresh(Type::Pred);
                self.emit(Op::PredConst, row, NONE, NONE, NONE, 0, 0);
                row
            }
            Operand::Special(code) => {
                let row = self.fresh(ty);
                let width = width_of(ty) as u32;
                self.emit(Op::Special, row, NONE, NONE, width, *code, 0);
                row
            }
            Operand::Symbol(variable, offset) => self.symbol(variable, *offset, wide)?,
            Operand::Not(row) if ty == Type::Pred => {
                let out = self.fresh(Type::Pred);
                self.emit(Op::PredNot, out, *row, NONE, NONE, 0, 0);
                out
            }
            Operand::Name(name) => return Err(self.error(format!("no variable `{name}`"))),
            _ => return Err(self.error("an operand that does not fit the instruction")),
        })
    }

    fn symbol(&mut self, variable: &Variable, offset: i64, wide: bool) -> Result<u32, PtxError> {
        Ok(match variable {
            Variable::Global(index) => self.constant(Constant::Global(*index, offset), wide),
            Variable::Shared(index) => {
                self.uses_shared(*index);
                self.constant(Constant::Shared(*index, offset), wide)
            }
            Variable::Function(index) => {
                self.calls(*index);
                self.f.taken.push(*index);
                self.constant(Constant::Function(*index), wide)
            }
            Variable::KernelParam(at) => self
                .constant(Constant::Bits(PARAM_WINDOW.wrapping_add(u64::from(*at)).wrapping_add(offset as u64)), wide),
            Variable::Local(at) => self.frame_address(offset.wrapping_add(i64::from(*at)), wide),
            Variable::FrameParam(at, ..) => {
                self.frame_address(offset.wrapping_add(i64::from(*at) + LOCAL_WINDOW as i64), wide)
            }
            Variable::Register(..) | Variable::Vector(..) | Variable::Handle(_) => {
                return Err(self.error("expected a variable"));
            }
        })
    }

    fn frame_address(&mut self, offset: i64, wide: bool) -> u32 {
        let row = self.fresh(if wide { Type::B64 } else { Type::B32 });
        let op = if wide { Op::FrameAddress64 } else { Op::FrameAddress32 };
        self.emit(op, row, NONE, NONE, NONE, 0, offset);
        row
    }

    pub(super) fn uses_shared(&mut self, index: u32) {
        if !self.f.shared.contains(&index) {
            self.f.shared.push(index);
        }
    }

    pub(super) fn calls(&mut self, index: u32) {
        if !self.f.callees.contains(&index) {
            self.f.callees.push(index);
        }
    }

    /// The row of a destination register of this type.
    pub(super) fn target(&self, operand: &Operand, ty: Type) -> Result<u32, PtxError> {
        match operand {
            Operand::Register(row, actual)
                if (*actual == Type::Pred) == (ty == Type::Pred) && actual.wide() == ty.wide() =>
            {
                Ok(*row)
            }
            Operand::Register(..) => Err(self.error("a register of another size than the instruction's type")),
            _ => Err(self.error("expected a register to write to")),
        }
    }

    /// The row of a destination, or of a new register for the sink.
    pub(super) fn target_or_sink(&mut self, operand: &Operand, ty: Type) -> Result<u32, PtxError> {
        if matches!(operand, Operand::Sink) { Ok(self.fresh(ty)) } else { self.target(operand, ty) }
    }

    /// A predicate as a source: its row and whether it is negated.
    pub(super) fn predicate(&mut self, operand: &Operand) -> Result<(u32, bool), PtxError> {
        match operand {
            Operand::Not(row) => Ok((*row, true)),
            other => Ok((self.source(other, Type::Pred)?, false)),
        }
    }

    /// The address in an operand.
    pub(super) fn address(&mut self, operand: &Operand) -> Result<Address, PtxError> {
        let Operand::Address(base, offset) = operand else {
            return Err(self.error("expected an address"));
        };
        let offset = *offset;
        if i32::try_from(offset).is_err() {
            return Err(self.error(format!("the offset {offset} of an address, which has 32 bits with their sign")));
        }
        Ok(match &**base {
            Operand::Register(_, Type::Pred) => return Err(self.error("a predicate is no address")),
            Operand::Register(row, ty) => Address { row: *row, wide: ty.wide(), offset, frame: false },
            Operand::Int(v) => {
                let row = self.constant(Constant::Bits(v.wrapping_add(offset as u64)), true);
                Address { row, wide: true, offset: 0, frame: false }
            }
            Operand::Symbol(Variable::Local(at) | Variable::FrameParam(at, ..), _) => {
                Address { row: NONE, wide: true, offset: i64::from(*at) + offset, frame: true }
            }
            Operand::Symbol(variable, _) => {
                let row = self.symbol(variable, offset, true)?;
                Address { row, wide: true, offset: 0, frame: false }
            }
            Operand::Name(name) => return Err(self.error(format!("no variable `{name}`"))),
            _ => return Err(self.error("an address that cannot be read")),
        })
    }
}
