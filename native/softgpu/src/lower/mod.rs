//! From the statements of a function to [`crate::ir`]: names, registers, constants, labels.

mod arith;
mod control;
mod forms;
mod isa;
mod matrix;
mod mbarrier;
mod memory;
mod modifiers;
mod operand;
mod packed;
mod targets;

use crate::error::PtxError;
use crate::ir::*;
use crate::types::Type;
use std::collections::{HashMap, HashSet};

pub use arith::OPCODES;
pub use control::{REDUX_ABS, REDUX_FLOAT, REDUX_MAX, REDUX_NAN};
pub use isa::{is_directive, is_type, unknown};
pub use operand::{Operand, is_special};
pub use targets::{lacking, target_of, version_of};

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Variable {
    Register(u32, Type),
    /// As many registers one after the other: `.reg .v4`.
    Vector(u32, Type, u32),
    /// A `.local` variable of the frame.
    Local(u32),
    /// A `.param` of a function or of a call, in the frame's local memory: offset and size and alignment.
    FrameParam(u32, u32, u32),
    /// A kernel's parameter.
    KernelParam(u32),
    Global(u32),
    Shared(u32),
    Function(u32),
    /// Of a texture, a sampler or a surface: what PTX calls it.
    Handle(&'static str),
}

/// A parameter or a result of a function.
pub struct Formal<'n> {
    pub name: &'n str,
    pub size: u64,
    pub align: u32,
    /// The type of a `.reg`; nothing for a `.param`.
    pub register: Option<Type>,
}

#[derive(Default)]
struct Scope {
    parent: Option<usize>,
    names: HashMap<String, Variable>,
    /// `%r<n>`: the first of them, and their count.
    ranges: HashMap<String, (Variable, u32)>,
    labels: HashMap<String, u32>,
    tables: HashMap<String, u32>,
}

struct Fixup {
    instruction: usize,
    scope: usize,
    label: String,
    table: bool,
    at: (u32, u32),
}

/// A `.branchtargets` list: its number, the scope it stands in, its labels and where it stands.
type PendingTable = (u32, usize, Vec<String>, (u32, u32));

/// Most rows that a frame may have (32 KiB of registers a lane).
const MOST_ROWS: u32 = 1 << 16;

/// Most digits of a register's number among those of its name.
const MOST_DIGITS: usize = 10;

/// A function under construction.
pub struct Builder {
    pub f: Function,
    scopes: Vec<Scope>,
    scope: usize,
    constants: HashMap<(Constant, bool), u32>,
    fixups: Vec<Fixup>,
    tables: Vec<PendingTable>,
    /// Names of `.callprototype` and `.calltargets`.
    prototypes: HashSet<String>,
    /// Prototypes that calls name, with the place of the call.
    prototypes_named: Vec<(String, (u32, u32))>,
    /// Results that are registers: where the caller finds each, and its row.
    returned: Vec<(u32, u32, Type)>,
    guard: u32,
    negate: bool,
    /// Line and column of the statement being lowered.
    at: (u32, u32),
}

impl Builder {
    /// Starts a function whose header is already filled in.
    pub fn new(f: Function) -> Builder {
        Builder {
            f,
            scopes: vec![Scope::default()],
            scope: 0,
            constants: HashMap::new(),
            fixups: Vec::new(),
            tables: Vec::new(),
            prototypes: HashSet::new(),
            prototypes_named: Vec::new(),
            returned: Vec::new(),
            guard: NONE,
            negate: false,
            at: (1, 1),
        }
    }

    /// Places results and parameters.
    pub fn formals(&mut self, entry: bool, results: &[Formal], params: &[Formal]) -> Result<(), String> {
        let least = if entry { 1 } else { 8 };
        let registers = results.iter().chain(params).map(|formal| formal.register);
        let place = |formals: &[Formal], from| {
            crate::parser::place(formals.iter().map(|formal| (formal.name, formal.size, formal.align)), from, least)
        };
        let (results, end) = place(results, 0)?;
        let (params, end) = place(params, end)?;
        for slot in results.iter().chain(&params) {
            let variable = if entry {
                Variable::KernelParam(slot.offset)
            } else {
                Variable::FrameParam(slot.offset, slot.size, slot.align)
            };
            self.declare(&slot.name, variable);
        }
        self.f.local_bytes = if entry { 0 } else { end.next_multiple_of(8) };
        for (number, (slot, register)) in results.iter().chain(&params).zip(registers).enumerate() {
            let Some(ty) = register.filter(|ty| !entry && *ty != Type::Pred) else { continue };
            // Between caller and callee it lies where a `.param` would.
            let row = self.f.rows;
            self.register(&slot.name, (ty, 1), None)?;
            if number < results.len() {
                self.returned.push((slot.offset, row, ty));
            } else {
                self.frame_access(Op::Load, slot.offset, row, ty);
            }
        }
        self.f.results = results;
        self.f.params = params;
        Ok(())
    }

    /// Opens a `{`.
    pub fn open(&mut self) {
        self.scopes.push(Scope { parent: Some(self.scope), ..Scope::default() });
        self.scope = self.scopes.len() - 1;
    }

    /// Closes a `}`.
    pub fn close(&mut self) {
        self.scope = self.scopes[self.scope].parent.unwrap_or(0);
    }

    /// Gives a name a meaning in the present scope.
    pub fn declare(&mut self, name: &str, variable: Variable) {
        self.scopes[self.scope].names.insert(name.to_string(), variable);
    }

    /// Declares registers, or vectors of so many of them.
    pub fn register(&mut self, name: &str, (ty, vector): (Type, u32), many: Option<u32>) -> Result<(), String> {
        let count = many.unwrap_or(1);
        let total = (rows_of(ty) * vector).checked_mul(count).filter(|n| *n <= MOST_ROWS - self.f.rows.min(MOST_ROWS));
        let total = total.ok_or("more registers than the engine has")?;
        let first = self.f.rows;
        self.f.rows += total;
        if ty != Type::Pred {
            self.f.registers += total;
        }
        let variable = if vector == 1 { Variable::Register(first, ty) } else { Variable::Vector(first, ty, vector) };
        if many.is_some() {
            self.scopes[self.scope].ranges.insert(name.to_string(), (variable, count));
        } else {
            self.declare(name, variable);
        }
        Ok(())
    }

    /// Declares a `.local` variable or a `.param` of a call.
    pub fn frame_variable(&mut self, name: &str, size: u64, align: u32, local: bool) -> Result<(), String> {
        let size = u32::try_from(size).ok().filter(|s| *s <= 1 << 20).ok_or("too large for local memory")?;
        let offset = self.f.local_bytes.next_multiple_of(align.max(8));
        let end = offset + size.next_multiple_of(8);
        if end > 1 << 24 {
            return Err("too much local memory".to_string());
        }
        self.f.local_bytes = end;
        if local {
            self.f.depot_bytes += size;
        }
        self.declare(name, if local { Variable::Local(offset) } else { Variable::FrameParam(offset, size, align) });
        Ok(())
    }

    fn chain(&self, from: usize) -> impl Iterator<Item = &Scope> {
        let mut at = Some(from);
        std::iter::from_fn(move || {
            let scope = &self.scopes[at?];
            at = scope.parent;
            Some(scope)
        })
    }

    /// What a name means here, within the function.
    pub fn lookup(&self, name: &str) -> Option<Variable> {
        let digits = name.bytes().rev().take(MOST_DIGITS).take_while(u8::is_ascii_digit).count();
        for scope in self.chain(self.scope) {
            if let Some(v) = scope.names.get(name) {
                return Some(v.clone());
            }
            // A stem may itself end in digits (`%r1<4>`): try every split.
            for cut in name.len() - digits..name.len() {
                if let (Some((first, count)), Ok(n)) = (scope.ranges.get(&name[..cut]), name[cut..].parse::<u32>())
                    && n < *count
                {
                    return match *first {
                        Variable::Register(row, ty) => Some(Variable::Register(row + n * rows_of(ty), ty)),
                        Variable::Vector(row, ty, parts) => {
                            Some(Variable::Vector(row + n * parts * rows_of(ty), ty, parts))
                        }
                        _ => None,
                    };
                }
            }
        }
        None
    }

    /// Defines a label here.
    pub fn label(&mut self, name: &str, line: u32, column: u32) -> Result<(), PtxError> {
        let here = self.f.code.len() as u32;
        if self.scopes[self.scope].labels.insert(name.to_string(), here).is_some() {
            return Err(PtxError::syntax(line, column, format!("`{name}` is defined twice")));
        }
        Ok(())
    }

    /// Declares a list of branch targets.
    pub fn branch_targets(&mut self, name: &str, labels: Vec<String>, line: u32, column: u32) {
        let index = self.f.tables.len() as u32;
        self.f.tables.push(Vec::new());
        self.scopes[self.scope].tables.insert(name.to_string(), index);
        self.tables.push((index, self.scope, labels, (line, column)));
    }

    /// Declares the prototype of a call by pointer.
    pub fn prototype(&mut self, name: &str) {
        self.prototypes.insert(name.to_string());
    }

    fn find_label(&self, scope: usize, label: &str, at: (u32, u32)) -> Result<u32, PtxError> {
        let found = self.chain(scope).find_map(|s| s.labels.get(label).copied());
        found.ok_or_else(|| PtxError::syntax(at.0, at.1, format!("no label `{label}`")))
    }

    /// `ret`
    fn end(&mut self) {
        for (at, row, ty) in self.returned.clone() {
            self.frame_access(Op::Store, at, row, ty);
        }
        let last = if self.f.entry { Op::Exit } else { Op::Return };
        self.emit(last, NONE, NONE, NONE, NONE, 0, 0);
    }

    /// Resolves labels and hands the function over.  Leaves `self` empty.
    pub fn finish(&mut self) -> Result<Function, PtxError> {
        self.guard = NONE;
        self.end();
        for fixup in std::mem::take(&mut self.fixups) {
            let value = if fixup.table {
                let found = self.chain(fixup.scope).find_map(|s| s.tables.get(&fixup.label).copied());
                found.ok_or_else(|| {
                    PtxError::syntax(fixup.at.0, fixup.at.1, format!("no branch targets `{}`", fixup.label))
                })?
            } else {
                self.find_label(fixup.scope, &fixup.label, fixup.at)?
            };
            self.f.code[fixup.instruction].e = value;
        }
        for (index, scope, labels, at) in std::mem::take(&mut self.tables) {
            let targets: Result<Vec<u32>, _> = labels.iter().map(|l| self.find_label(scope, l, at)).collect();
            self.f.tables[index as usize] = targets?;
        }
        for (name, at) in &self.prototypes_named {
            if !self.prototypes.contains(name) {
                return Err(PtxError::syntax(at.0, at.1, format!("no prototype `{name}`")));
            }
        }
        if self.f.rows > MOST_ROWS {
            return Err(PtxError::unsupported(self.f.line, 1, "a function of more than 65536 registers"));
        }
        self.f.local_bytes = self.f.local_bytes.next_multiple_of(16);
        Ok(std::mem::take(&mut self.f))
    }

    fn error(&self, message: impl Into<String>) -> PtxError {
        PtxError::syntax(self.at.0, self.at.1, message)
    }

    fn unsupported(&self, name: impl Into<String>) -> PtxError {
        PtxError::unsupported(self.at.0, self.at.1, name)
    }

    #[allow(clippy::too_many_arguments)]
    fn emit(&mut self, op: Op, d: u32, a: u32, b: u32, c: u32, e: u32, imm: i64) {
        let (guard, negate, line) = (self.guard, self.negate, self.at.0);
        self.f.code.push(Ins { op, negate, guard, d, a, b, c, e, imm, line });
    }

    fn alu(&mut self, op: Op, d: u32, operands: &[u32]) {
        let get = |i: usize| operands.get(i).copied().unwrap_or(NONE);
        self.emit(op, d, get(0), get(1), get(2), 0, 0);
    }

    fn fresh(&mut self, ty: Type) -> u32 {
        let row = self.f.rows;
        self.f.rows += rows_of(ty);
        row
    }

    fn constant(&mut self, constant: Constant, wide: bool) -> u32 {
        if let Some(row) = self.constants.get(&(constant, wide)) {
            return *row;
        }
        let row = self.fresh(if wide { Type::B64 } else { Type::B32 });
        self.constants.insert((constant, wide), row);
        self.f.constants.push((constant, wide));
        self.f.constant_rows.push(row);
        row
    }

    fn fix(&mut self, label: &str, table: bool) {
        self.fixups.push(Fixup {
            instruction: self.f.code.len() - 1,
            scope: self.scope,
            label: label.to_string(),
            table,
            at: self.at,
        });
    }
}

/// Rows that a register of this type takes.
pub fn rows_of(ty: Type) -> u32 {
    ty.size().div_ceil(4)
}

/// The width of a register of this type.
pub fn width_of(ty: Type) -> Width {
    match ty.size() {
        8 => Width::W64,
        4 => Width::W32,
        _ => Width::W16,
    }
}
