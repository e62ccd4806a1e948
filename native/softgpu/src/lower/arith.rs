//! The dispatcher over opcodes, and arithmetic.

use super::{Builder, Operand, Variable, width_of};
use crate::error::PtxError;
use crate::float::Arithmetic;
use crate::ir::*;
use crate::types::Type;

/// The instruction for an integer type of 16, 32 or 64 bits.
macro_rules! by_width {
    ($ty:expr, $w16:ident, $w32:ident, $w64:ident) => {
        match $ty.size() {
            8 => Op::$w64,
            4 => Op::$w32,
            _ => Op::$w16,
        }
    };
}

/// The instruction for signed and unsigned types of 16, 32 or 64 bits.
macro_rules! by_sign {
    ($ty:expr, $u16:ident, $u32:ident, $u64:ident, $s16:ident, $s32:ident, $s64:ident) => {
        if $ty.signed() { by_width!($ty, $s16, $s32, $s64) } else { by_width!($ty, $u16, $u32, $u64) }
    };
}

/// Opcodes that the engine has (with at least one of their forms), in the order of the alphabet.
pub const OPCODES: &[&str] = &[
    "abs",
    "activemask",
    "add",
    "addc",
    "alloca",
    "and",
    "applypriority",
    "atom",
    "bar",
    "barrier",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "bra",
    "brev",
    "brkpt",
    "brx",
    "call",
    "clusterlaunchcontrol",
    "clz",
    "cnot",
    "copysign",
    "cos",
    "cp",
    "createpolicy",
    "cvt",
    "cvta",
    "discard",
    "div",
    "dp2a",
    "dp4a",
    "elect",
    "ex2",
    "exit",
    "fence",
    "fma",
    "fns",
    "getctarank",
    "griddepcontrol",
    "isspacep",
    "ld",
    "ldmatrix",
    "ldu",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "mapa",
    "match",
    "max",
    "mbarrier",
    "membar",
    "min",
    "mma",
    "mov",
    "movmatrix",
    "mul",
    "mul24",
    "nanosleep",
    "neg",
    "not",
    "or",
    "pmevent",
    "popc",
    "prefetch",
    "prefetchu",
    "prmt",
    "rcp",
    "red",
    "redux",
    "rem",
    "ret",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setmaxnreg",
    "setp",
    "shf",
    "shfl",
    "shl",
    "shr",
    "sin",
    "slct",
    "sqrt",
    "st",
    "stackrestore",
    "stacksave",
    "stmatrix",
    "sub",
    "subc",
    "szext",
    "tanh",
    "testp",
    "trap",
    "vabsdiff2",
    "vabsdiff4",
    "vote",
    "wmma",
    "xor",
];

impl Builder {
    /// Whether the engine has some form of this opcode.
    pub fn knows(opcode: &str) -> bool {
        OPCODES.binary_search(&opcode).is_ok()
    }

    /// The instruction's name with its suffixes.
    pub fn full(opcode: &str, mods: &[&str]) -> String {
        let mut name = opcode.to_string();
        for m in mods {
            name.push('.');
            name.push_str(m);
        }
        name
    }

    /// Begins a statement.
    pub fn start(&mut self, guard: Option<(u32, bool)>, line: u32, column: u32) {
        (self.guard, self.negate) = guard.unwrap_or((NONE, false));
        self.at = (line, column);
    }

    /// Lowers one instruction.
    pub fn lower(&mut self, opcode: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        if self.f.rows > super::MOST_ROWS {
            return Err(self.unsupported("a function of more than 65536 registers"));
        }
        self.check_modifiers(opcode, mods)?;
        self.check_count(opcode, mods, ops.len())?;
        self.check_needed(opcode, mods)?;
        if let Some(Operand::Pair(p, q)) = ops.first()
            && [p, q].into_iter().any(|result| matches!(**result, Operand::Register(row, _) if row == self.guard))
        {
            // The first result is written before the second, which still goes by the guard as it was.
            let (guard, negate) = (std::mem::replace(&mut self.guard, NONE), std::mem::take(&mut self.negate));
            let kept = self.fresh(Type::Pred);
            self.alu(Op::PredMov, kept, &[guard]);
            (self.guard, self.negate) = (kept, negate);
        }
        if mods.contains(&"ftz") { self.flushing(opcode, mods, ops) } else { self.dispatch(opcode, mods, ops) }
    }

    /// An instruction with `.ftz`: a subnormal number that it takes or makes counts as the zero of its sign.
    fn flushing(&mut self, opcode: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let kinds: Vec<&str> = mods.iter().copied().filter(|m| *m == "f32x2" || Type::parse(m).is_some()).collect();
        let pair = kinds.first().is_some_and(|kind| kind.ends_with("x2"));
        if kinds.len() > 1 && !(matches!(opcode, "set" | "slct") || opcode == "cvt" && !pair) {
            return Err(self.unsupported(Builder::full(opcode, mods)));
        }
        // `cvt` speaks of single precision alone.
        let flush = |kind: Option<&&str>| {
            let (op, ty) = flush_of(kind?)?;
            (opcode != "cvt" || ty == Type::F32).then_some((op, ty))
        };
        let (taken, made) = match opcode {
            "setp" | "set" => (1..3, None),
            "slct" => (3..4, None),
            _ => (1..ops.len(), flush(kinds.first())),
        };
        let mut flushed = ops.to_vec();
        if let Some((op, ty)) = flush(kinds.last()) {
            for operand in flushed.get_mut(taken).into_iter().flatten() {
                let (from, to) = (self.source(operand, ty)?, self.fresh(ty));
                self.alu(op, to, &[from]);
                *operand = Operand::Register(to, ty);
            }
        }
        self.dispatch(opcode, mods, &flushed)?;
        if let (Some((op, ty)), Some(operand)) = (made, ops.first()) {
            let d = self.target_or_sink(operand, ty)?;
            self.alu(op, d, &[d]);
        }
        Ok(())
    }

    fn dispatch(&mut self, opcode: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        match opcode {
            "ld" | "ldu" => self.load(opcode, mods, ops),
            "st" => self.store(opcode, mods, ops),
            "atom" | "red" => self.atomic(opcode, mods, ops),
            "cvta" => self.cvta(opcode, mods, ops),
            "isspacep" => self.isspacep(mods, ops),
            "alloca" | "stacksave" | "stackrestore" => self.stack(opcode, mods, ops),
            "bra" => self.branch(ops),
            "brx" => self.branch_table(ops),
            "call" => self.call(ops),
            "bar" | "barrier" => self.barrier(opcode, mods, ops),
            "vote" => self.vote(mods, ops),
            "shfl" => self.shuffle(mods, ops),
            "match" => self.matching(mods, ops),
            "redux" => self.redux(mods, ops),
            "activemask" => {
                let [d] = ops else { return Err(self.error("activemask takes one operand")) };
                let d = self.target(d, Type::B32)?;
                self.alu(Op::ActiveMask, d, &[]);
                Ok(())
            }
            "ret" => {
                self.end();
                Ok(())
            }
            "exit" => self.plain(Op::Exit),
            "trap" | "brkpt" => self.plain(Op::Trap),
            "membar" | "fence" => self.plain(Op::Fence),
            "nanosleep" => self.plain(Op::NanoSleep),
            // Hints to caches and schedulers, and waits for what has already happened.
            "prefetch" | "prefetchu" | "pmevent" | "discard" | "applypriority" | "griddepcontrol" | "setmaxnreg" => {
                Ok(())
            }
            "createpolicy" => {
                let [d, ..] = ops else { return Err(self.error("too few operands")) };
                self.simple(Op::Mov64, Type::B64, &[d.clone(), Operand::Int(0)], &[Type::B64])
            }
            "cp" => self.copy(mods, ops),
            "mbarrier" => self.mbarrier(mods, ops),
            "clusterlaunchcontrol" => self.launch_control(mods, ops),
            "elect" => self.elect(ops),
            "mapa" | "getctarank" => self.in_cluster(opcode, mods, ops),
            "mma" | "ldmatrix" | "stmatrix" | "movmatrix" | "wmma" => self.matrix(opcode, mods, ops),
            "mov" => self.mov(opcode, mods, ops),
            "cvt" => self.cvt(opcode, mods, ops),
            "setp" => self.setp(opcode, mods, ops),
            "set" => self.set(opcode, mods, ops),
            _ => self.arithmetic(opcode, mods, ops),
        }
    }

    fn plain(&mut self, op: Op) -> Result<(), PtxError> {
        self.alu(op, NONE, &[]);
        Ok(())
    }

    fn ty(&self, opcode: &str, mods: &[&str]) -> Result<Type, PtxError> {
        let ty = mods.iter().rev().find_map(|m| Type::parse(m)).filter(|ty| *ty != Type::Tf32);
        ty.ok_or_else(|| self.unsupported(Builder::full(opcode, mods)))
    }

    /// Lowers `op d, sources...` where each source has its type.
    pub(super) fn simple(&mut self, op: Op, to: Type, ops: &[Operand], types: &[Type]) -> Result<(), PtxError> {
        let [d, sources @ ..] = ops else { return Err(self.error("too few operands")) };
        if sources.len() != types.len() {
            return Err(self.error(format!("expected {} operands", types.len() + 1)));
        }
        let mut rows = Vec::with_capacity(3);
        for (source, ty) in sources.iter().zip(types) {
            rows.push(self.source(source, *ty)?);
        }
        let d = self.target_or_sink(d, to)?;
        self.alu(op, d, &rows);
        Ok(())
    }

    fn rounding(mods: &[&str]) -> Rounding {
        let find = |m: &&&str| matches!(**m, "rz" | "rm" | "rp" | "rzi" | "rmi" | "rpi");
        match mods.iter().find(find).map(|m| &m[1..2]) {
            Some("z") => Rounding::Zero,
            Some("m") => Rounding::Down,
            Some("p") => Rounding::Up,
            _ => Rounding::Nearest,
        }
    }

    /// Floating-point arithmetic with rounding and `.sat`.
    pub(super) fn floating(
        &mut self,
        what: Arithmetic,
        op: Op,
        ty: Type,
        mods: &[&str],
        ops: &[Operand],
    ) -> Result<(), PtxError> {
        let rounding = Builder::rounding(mods);
        let count = ops.len().saturating_sub(1);
        if rounding != Rounding::Nearest && !matches!(ty, Type::F32 | Type::F64) {
            return Err(self.unsupported("directed rounding of 16-bit floating point"));
        }
        if rounding == Rounding::Nearest {
            self.simple(op, ty, ops, &vec![ty; count])?;
        } else {
            let directed = if ty == Type::F64 { Op::Directed64 } else { Op::Directed32 };
            let index = self.f.code.len();
            self.simple(directed, ty, ops, &vec![ty; count])?;
            if let Some(ins) = self.f.code.get_mut(index..).and_then(|s| s.last_mut()) {
                ins.e = (what as u32) << 8 | rounding as u32;
            }
        }
        if mods.contains(&"sat") {
            let sat = match ty {
                Type::F32 => Op::SatF32,
                Type::F64 => Op::SatF64,
                Type::F16 => Op::SatF16,
                Type::F16x2 => Op::SatF16x2,
                _ => return Err(self.unsupported("saturation of 16-bit floating point")),
            };
            let d = self.target_or_sink(&ops[0], ty)?;
            self.alu(sat, d, &[d]);
        }
        Ok(())
    }

    fn carry(&mut self, ty: Type, d: &Operand, a: u32, b: u32, flags: u32) -> Result<(), PtxError> {
        let d = self.target_or_sink(d, ty)?;
        let op = if ty.wide() { Op::Carry64 } else { Op::Carry32 };
        self.emit(op, d, a, b, NONE, flags, 0);
        Ok(())
    }

    fn arithmetic(&mut self, opcode: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        if !Builder::knows(opcode) {
            return Err(self.unsupported(Builder::full(opcode, mods)));
        }
        if mods.iter().any(|m| matches!(*m, "u16x2" | "s16x2")) {
            return self.pair_of_integers(opcode, mods, ops);
        }
        if mods.contains(&"f32x2") {
            return self.pair_of_floats(opcode, mods, ops);
        }
        let ty = self.ty(opcode, mods)?;
        let no = |b: &Builder| Err(b.unsupported(Builder::full(opcode, mods)));
        let has = |m: &str| mods.contains(&m);
        use Type::*;
        let kinds: Vec<Type> = mods.iter().filter_map(|m| Type::parse(m)).collect();
        if let ("add" | "sub" | "fma", [first, half]) = (opcode, kinds.as_slice()) {
            return if *first == F32 && matches!(half, F16 | Bf16) {
                self.mixed(opcode, *half, mods, ops)
            } else {
                no(self)
            };
        }
        let rounded = mods.iter().any(|m| matches!(*m, "rn" | "rz" | "rm" | "rp" | "ftz" | "sat" | "relu" | "approx"));
        let saturating = ty == S32 && !mods.iter().any(|m| matches!(*m, "rn" | "rz" | "rm" | "rp" | "ftz"));
        if rounded
            && !ty.float()
            && !(saturating && matches!(opcode, "add" | "sub" | "mad" | "mad24" | "min" | "max"))
            && opcode != "slct"
        {
            return no(self);
        }
        match opcode {
            "add" | "sub" | "addc" | "subc" => {
                let sub = opcode.starts_with("sub");
                if has("cc") || opcode.ends_with('c') {
                    let [d, a, b] = ops else { return Err(self.error("expected 3 operands")) };
                    let (a, b) = (self.source(a, ty)?, self.source(b, ty)?);
                    let flags = u32::from(opcode.ends_with('c')) | u32::from(has("cc")) << 1 | u32::from(sub) << 2;
                    return self.carry(ty, d, a, b, flags);
                }
                let what = if sub { Arithmetic::Sub } else { Arithmetic::Add };
                let op = match (ty, sub) {
                    (F32, false) => Op::AddF32,
                    (F32, true) => Op::SubF32,
                    (F64, false) => Op::AddF64,
                    (F64, true) => Op::SubF64,
                    (F16, false) => Op::AddF16,
                    (F16, true) => Op::SubF16,
                    (F16x2, false) => Op::AddF16x2,
                    (F16x2, true) => Op::SubF16x2,
                    (Bf16, false) => Op::AddBf16,
                    (Bf16, true) => Op::SubBf16,
                    (Bf16x2, false) => Op::AddBf16x2,
                    (Bf16x2, true) => Op::SubBf16x2,
                    (S32, false) if has("sat") => return self.simple(Op::AddSat32, ty, ops, &[ty, ty]),
                    (S32, true) if has("sat") => return self.simple(Op::SubSat32, ty, ops, &[ty, ty]),
                    (Pred, _) => return no(self),
                    (_, false) => return self.simple(by_width!(ty, Add16, Add32, Add64), ty, ops, &[ty, ty]),
                    (_, true) => return self.simple(by_width!(ty, Sub16, Sub32, Sub64), ty, ops, &[ty, ty]),
                };
                self.floating(what, op, ty, mods, ops)
            }
            "mul" => {
                let op = match ty {
                    F32 => Op::MulF32,
                    F64 => Op::MulF64,
                    F16 => Op::MulF16,
                    F16x2 => Op::MulF16x2,
                    Bf16 => Op::MulBf16,
                    Bf16x2 => Op::MulBf16x2,
                    _ if ty.float() || ty == Pred => return no(self),
                    _ if has("wide") => {
                        let (op, to) = match ty {
                            U16 => (Op::MulWideU16, U32),
                            S16 => (Op::MulWideS16, S32),
                            U32 => (Op::MulWideU32, U64),
                            S32 => (Op::MulWideS32, S64),
                            _ => return no(self),
                        };
                        return self.simple(op, to, ops, &[ty, ty]);
                    }
                    _ if has("hi") => {
                        let op = by_sign!(ty, MulHiU16, MulHiU32, MulHiU64, MulHiS16, MulHiS32, MulHiS64);
                        return self.simple(op, ty, ops, &[ty, ty]);
                    }
                    _ => return self.simple(by_width!(ty, MulLo16, MulLo32, MulLo64), ty, ops, &[ty, ty]),
                };
                self.floating(Arithmetic::Mul, op, ty, mods, ops)
            }
            "mad" | "madc" | "fma" => {
                if ty.float() {
                    let op = match ty {
                        F32 => Op::FmaF32,
                        F64 => Op::FmaF64,
                        F16 => Op::FmaF16,
                        F16x2 => Op::FmaF16x2,
                        Bf16 => Op::FmaBf16,
                        _ => Op::FmaBf16x2,
                    };
                    let relu = match ty {
                        _ if has("oob") => return no(self),
                        _ if !has("relu") => None,
                        F16 => Some(Op::ReluF16),
                        F16x2 => Some(Op::ReluF16x2),
                        Bf16 => Some(Op::ReluBf16),
                        Bf16x2 => Some(Op::ReluBf16x2),
                        _ => return no(self),
                    };
                    self.floating(Arithmetic::Fma, op, ty, mods, ops)?;
                    if let (Some(relu), [d, ..]) = (relu, ops) {
                        let d = self.target_or_sink(d, ty)?;
                        self.alu(relu, d, &[d]);
                    }
                    return Ok(());
                }
                if has("cc") || opcode == "madc" {
                    let [d, a, b, c] = ops else { return Err(self.error("expected 4 operands")) };
                    let (a, b, c) = (self.source(a, ty)?, self.source(b, ty)?, self.source(c, ty)?);
                    let product = self.fresh(ty);
                    let op = if has("hi") {
                        by_sign!(ty, MulHiU16, MulHiU32, MulHiU64, MulHiS16, MulHiS32, MulHiS64)
                    } else {
                        by_width!(ty, MulLo16, MulLo32, MulLo64)
                    };
                    self.alu(op, product, &[a, b]);
                    let flags = u32::from(opcode == "madc") | u32::from(has("cc")) << 1;
                    return self.carry(ty, d, product, c, flags);
                }
                if has("wide") {
                    let (op, to) = match ty {
                        U16 => (Op::MadWideU16, U32),
                        S16 => (Op::MadWideS16, S32),
                        U32 => (Op::MadWideU32, U64),
                        S32 => (Op::MadWideS32, S64),
                        _ => return no(self),
                    };
                    return self.simple(op, to, ops, &[ty, ty, to]);
                }
                if has("hi") {
                    if has("sat") && ty == S32 {
                        return self.simple(Op::MadSatHi32, ty, ops, &[ty, ty, ty]);
                    }
                    if has("sat") {
                        return no(self);
                    }
                    if ty.size() < 4 {
                        let [d, a, b, c] = ops else { return Err(self.error("expected 4 operands")) };
                        let product = Operand::Register(self.fresh(ty), ty);
                        let high = if ty == S16 { Op::MulHiS16 } else { Op::MulHiU16 };
                        self.simple(high, ty, &[product.clone(), a.clone(), b.clone()], &[ty, ty])?;
                        return self.simple(Op::Add16, ty, &[d.clone(), product, c.clone()], &[ty, ty]);
                    }
                    let op = by_sign!(ty, MadHiU32, MadHiU32, MadHiU64, MadHiS32, MadHiS32, MadHiS64);
                    return self.simple(op, ty, ops, &[ty, ty, ty]);
                }
                if has("sat") {
                    return no(self);
                }
                self.simple(by_width!(ty, MadLo16, MadLo32, MadLo64), ty, ops, &[ty, ty, ty])
            }
            "mul24" => {
                let op = match (ty, has("hi")) {
                    (U32, false) => Op::Mul24LoU32,
                    (S32, false) => Op::Mul24LoS32,
                    (U32, true) => Op::Mul24HiU32,
                    (S32, true) => Op::Mul24HiS32,
                    _ => return no(self),
                };
                self.simple(op, ty, ops, &[ty, ty])
            }
            "mad24" => {
                let op = match (ty, has("hi")) {
                    _ if has("sat") && !has("hi") => return no(self),
                    (U32, false) => Op::Mad24LoU32,
                    (S32, false) => Op::Mad24LoS32,
                    (U32 | S32, true) => {
                        let [d, a, b, c] = ops else { return Err(self.error("expected 4 operands")) };
                        let product = Operand::Register(self.fresh(ty), ty);
                        let high = if ty == S32 { Op::Mul24HiS32 } else { Op::Mul24HiU32 };
                        self.simple(high, ty, &[product.clone(), a.clone(), b.clone()], &[ty, ty])?;
                        let sum = if has("sat") { Op::AddSat32 } else { Op::Add32 };
                        return self.simple(sum, ty, &[d.clone(), product, c.clone()], &[ty, ty]);
                    }
                    _ => return no(self),
                };
                self.simple(op, ty, ops, &[ty, ty, ty])
            }
            "div" => match ty {
                F32 if has("approx") => self.divide_nearly(ops),
                F32 => self.floating(Arithmetic::Div, Op::DivF32, ty, mods, ops),
                F64 => self.floating(Arithmetic::Div, Op::DivF64, ty, mods, ops),
                _ if ty.float() || ty == Pred => no(self),
                _ => self.simple(by_sign!(ty, DivU16, DivU32, DivU64, DivS16, DivS32, DivS64), ty, ops, &[ty, ty]),
            },
            "rem" if ty.float() || ty == Pred => no(self),
            "rem" => self.simple(by_sign!(ty, RemU16, RemU32, RemU64, RemS16, RemS32, RemS64), ty, ops, &[ty, ty]),
            "min" | "max" => {
                if ty.float() {
                    return self.extreme(opcode, ty, mods, ops);
                }
                if ty == Pred || mods.iter().any(|m| Type::parse(m).is_none() && *m != "relu") {
                    return no(self);
                }
                let op = if opcode == "min" {
                    by_sign!(ty, MinU16, MinU32, MinU64, MinS16, MinS32, MinS64)
                } else {
                    by_sign!(ty, MaxU16, MaxU32, MaxU64, MaxS16, MaxS32, MaxS64)
                };
                self.simple(op, ty, ops, &[ty, ty])?;
                if has("relu") {
                    let d = self.target_or_sink(&ops[0], ty)?;
                    self.alu(Op::ReluS32, d, &[d]);
                }
                Ok(())
            }
            "abs" | "neg" => {
                let op = match (ty, opcode == "neg") {
                    (F32, true) => Op::NegF32,
                    (F32, false) => Op::AbsF32,
                    (F64, true) => Op::NegF64,
                    (F64, false) => Op::AbsF64,
                    (F16 | Bf16, true) => Op::NegF16,
                    (F16 | Bf16, false) => Op::AbsF16,
                    (F16x2 | Bf16x2, true) => Op::NegF16x2,
                    (F16x2 | Bf16x2, false) => Op::AbsF16x2,
                    (Pred, _) => return no(self),
                    (_, true) => by_width!(ty, Neg16, Neg32, Neg64),
                    (_, false) => by_width!(ty, Abs16, Abs32, Abs64),
                };
                self.simple(op, ty, ops, &[ty])
            }
            "and" | "or" | "xor" | "not" if ty == Pred => {
                let [d, sources @ ..] = ops else { return Err(self.error("too few operands")) };
                let d = self.target_or_sink(d, Pred)?;
                let mut rows = [NONE, NONE];
                let mut flags = 0;
                if sources.len() != if opcode == "not" { 1 } else { 2 } {
                    return Err(self.error("a wrong number of operands"));
                }
                for (i, s) in sources.iter().enumerate() {
                    let (row, negate) = self.predicate(s)?;
                    rows[i] = row;
                    flags |= u32::from(negate) << i;
                }
                let op = match opcode {
                    "and" => Op::PredAnd,
                    "or" => Op::PredOr,
                    "xor" => Op::PredXor,
                    _ => Op::PredNot,
                };
                self.emit(op, d, rows[0], rows[1], NONE, flags, 0);
                Ok(())
            }
            "and" => self.simple(by_width!(ty, And16, And32, And64), ty, ops, &[ty, ty]),
            "or" => self.simple(by_width!(ty, Or16, Or32, Or64), ty, ops, &[ty, ty]),
            "xor" => self.simple(by_width!(ty, Xor16, Xor32, Xor64), ty, ops, &[ty, ty]),
            "not" => self.simple(by_width!(ty, Not16, Not32, Not64), ty, ops, &[ty]),
            "cnot" => self.simple(by_width!(ty, Cnot16, Cnot32, Cnot64), ty, ops, &[ty]),
            "shl" => self.simple(by_width!(ty, Shl16, Shl32, Shl64), ty, ops, &[ty, U32]),
            "shr" => self.simple(by_sign!(ty, ShrU16, ShrU32, ShrU64, ShrS16, ShrS32, ShrS64), ty, ops, &[ty, U32]),
            "shf" => {
                let op = match (has("l"), has("wrap")) {
                    (true, true) => Op::ShfLWrap,
                    (true, false) => Op::ShfLClamp,
                    (false, true) => Op::ShfRWrap,
                    (false, false) => Op::ShfRClamp,
                };
                self.simple(op, ty, ops, &[B32, B32, U32])
            }
            "popc" => self.simple(if ty.wide() { Op::Popc64 } else { Op::Popc32 }, U32, ops, &[ty]),
            "clz" => self.simple(if ty.wide() { Op::Clz64 } else { Op::Clz32 }, U32, ops, &[ty]),
            "brev" => self.simple(if ty.wide() { Op::Brev64 } else { Op::Brev32 }, ty, ops, &[ty]),
            "bfind" => {
                let op = match (ty, has("shiftamt")) {
                    (U32 | B32, false) => Op::BfindU32,
                    (S32, false) => Op::BfindS32,
                    (U64 | B64, false) => Op::BfindU64,
                    (S64, false) => Op::BfindS64,
                    (U32 | B32, true) => Op::BfindShiftU32,
                    (S32, true) => Op::BfindShiftS32,
                    (U64 | B64, true) => Op::BfindShiftU64,
                    (S64, true) => Op::BfindShiftS64,
                    _ => return no(self),
                };
                self.simple(op, U32, ops, &[ty])
            }
            "bfe" => {
                let op = match ty {
                    U32 => Op::BfeU32,
                    S32 => Op::BfeS32,
                    U64 => Op::BfeU64,
                    S64 => Op::BfeS64,
                    _ => return no(self),
                };
                self.simple(op, ty, ops, &[ty, U32, U32])
            }
            "bfi" => {
                let [d, a, b, c, length] = ops else { return Err(self.error("bfi takes 5 operands")) };
                let (a, b) = (self.source(a, ty)?, self.source(b, ty)?);
                let (c, length) = (self.source(c, U32)?, self.source(length, U32)?);
                let d = self.target_or_sink(d, ty)?;
                self.emit(if ty.wide() { Op::Bfi64 } else { Op::Bfi32 }, d, a, b, c, length, 0);
                Ok(())
            }
            "prmt" => {
                let op = match mods.last() {
                    Some(&"f4e") => Op::PrmtF4e,
                    Some(&"b4e") => Op::PrmtB4e,
                    Some(&"rc8") => Op::PrmtRc8,
                    Some(&"ecl") => Op::PrmtEcl,
                    Some(&"ecr") => Op::PrmtEcr,
                    Some(&"rc16") => Op::PrmtRc16,
                    _ => Op::Prmt,
                };
                self.simple(op, B32, ops, &[B32, B32, B32])
            }
            "lop3" => {
                let [d, a, b, c, Operand::Int(table), rest @ ..] = ops else { return no(self) };
                let (d, p) = match d {
                    Operand::Pair(d, p) => (&**d, Some(&**p)),
                    d => (d, None),
                };
                let combine = Builder::combination(mods);
                let (a, b, c) = (self.source(a, B32)?, self.source(b, B32)?, self.source(c, B32)?);
                let d = self.target_or_sink(d, B32)?;
                self.emit(Op::Lop3, d, a, b, c, *table as u32 & 255, 0);
                let (Some(combine), Some(p), [q]) = (combine, p, rest) else {
                    return if combine.is_none() && p.is_none() && rest.is_empty() { Ok(()) } else { no(self) };
                };
                // Whether a bit is set, combined with another predicate.
                let (q, negate) = self.predicate(q)?;
                let (set, zero) = (self.fresh(Pred), self.constant(Constant::Bits(0), false));
                self.emit(Op::CmpU32, set, d, zero, NONE, Relation::Ne as u32, 0);
                let p = self.target_or_sink(p, Pred)?;
                self.emit(combine, p, set, q, NONE, u32::from(negate) << 1, 0);
                Ok(())
            }
            "vabsdiff2" => {
                let op = match (kinds.as_slice(), has("add")) {
                    ([_, U32, U32], false) => Op::VAbsDiff2U,
                    ([_, S32, S32], false) => Op::VAbsDiff2S,
                    ([_, U32, U32], true) => Op::VAbsDiff2AddU,
                    ([_, S32, S32], true) => Op::VAbsDiff2AddS,
                    _ => return no(self),
                };
                self.simple(op, B32, ops, &[B32, B32, B32])
            }
            "vabsdiff4" => {
                let op = match (kinds.as_slice(), has("add")) {
                    ([_, U32, U32], false) => Op::VAbsDiff4U,
                    ([_, S32, S32], false) => Op::VAbsDiff4S,
                    ([_, U32, U32], true) => Op::VAbsDiff4AddU,
                    ([_, S32, S32], true) => Op::VAbsDiff4AddS,
                    _ => return no(self),
                };
                self.simple(op, B32, ops, &[B32, B32, B32])
            }
            "sad" => {
                let op = match ty {
                    U16 => Op::SadU16,
                    S16 => Op::SadS16,
                    U32 => Op::SadU32,
                    S32 => Op::SadS32,
                    U64 => Op::SadU64,
                    S64 => Op::SadS64,
                    _ => return no(self),
                };
                self.simple(op, ty, ops, &[ty, ty, ty])
            }
            "dp4a" => {
                let op = match kinds.as_slice() {
                    [U32, U32] => Op::Dp4aU,
                    [S32, S32] => Op::Dp4aS,
                    [U32, S32] => Op::Dp4aUS,
                    [S32, U32] => Op::Dp4aSU,
                    _ => return no(self),
                };
                self.simple(op, ty, ops, &[B32, B32, B32])
            }
            "dp2a" => {
                let op = match (kinds.as_slice(), has("hi")) {
                    ([U32, U32], false) => Op::Dp2aLoU,
                    ([S32, S32], false) => Op::Dp2aLoS,
                    ([U32, S32], false) => Op::Dp2aLoUS,
                    ([S32, U32], false) => Op::Dp2aLoSU,
                    ([U32, U32], true) => Op::Dp2aHiU,
                    ([S32, S32], true) => Op::Dp2aHiS,
                    ([U32, S32], true) => Op::Dp2aHiUS,
                    ([S32, U32], true) => Op::Dp2aHiSU,
                    _ => return no(self),
                };
                self.simple(op, ty, ops, &[B32, B32, B32])
            }
            "fns" => self.simple(Op::Fns, B32, ops, &[B32, B32, S32]),
            "bmsk" => self.simple(if has("wrap") { Op::BmskWrap } else { Op::BmskClamp }, B32, ops, &[B32, B32]),
            "szext" => {
                let [d, a, width] = ops else { return Err(self.error("szext takes three operands")) };
                let (a, mut width) = (self.source(a, B32)?, self.source(width, U32)?);
                if has("wrap") {
                    let (given, most) = (width, self.constant(Constant::Bits(31), false));
                    width = self.fresh(B32);
                    self.alu(Op::And32, width, &[given, most]);
                }
                let d = self.target_or_sink(d, B32)?;
                self.alu(if ty.signed() { Op::SzextS } else { Op::SzextU }, d, &[a, width]);
                Ok(())
            }
            "selp" => {
                let [d, a, b, p] = ops else { return Err(self.error("selp takes 4 operands")) };
                let (a, b) = (self.source(a, ty)?, self.source(b, ty)?);
                let (p, negate) = self.predicate(p)?;
                let d = self.target_or_sink(d, ty)?;
                let op = if ty.wide() { Op::Sel64 } else { Op::Sel32 };
                let (a, b) = if negate { (b, a) } else { (a, b) };
                self.alu(op, d, &[a, b, p]);
                Ok(())
            }
            "slct" => {
                let [value, selector] = kinds.as_slice() else { return no(self) };
                let op = match (value.wide(), *selector) {
                    (false, S32) => Op::SlctS32B32,
                    (true, S32) => Op::SlctS32B64,
                    (false, F32) => Op::SlctF32B32,
                    (true, F32) => Op::SlctF32B64,
                    _ => return no(self),
                };
                self.simple(op, *value, ops, &[*value, *value, *selector])
            }
            "testp" => {
                let kind = match mods.first() {
                    Some(&"finite") => 0,
                    Some(&"infinite") => 1,
                    Some(&"number") => 2,
                    Some(&"notanumber") => 3,
                    Some(&"normal") => 4,
                    Some(&"subnormal") => 5,
                    _ => return no(self),
                };
                let [d, a] = ops else { return Err(self.error("testp takes 2 operands")) };
                let op = match ty {
                    F32 => Op::TestpF32,
                    F64 => Op::TestpF64,
                    _ => return no(self),
                };
                let a = self.source(a, ty)?;
                let d = self.target(d, Pred)?;
                self.emit(op, d, a, NONE, NONE, kind, 0);
                Ok(())
            }
            "copysign" => match ty {
                F32 => self.simple(Op::CopySignF32, ty, ops, &[ty, ty]),
                F64 => self.simple(Op::CopySignF64, ty, ops, &[ty, ty]),
                _ => no(self),
            },
            "sqrt" | "rcp" => {
                let (what, op) = match (opcode, ty) {
                    ("sqrt", F32) => (Arithmetic::Sqrt, Op::SqrtF32),
                    ("sqrt", F64) => (Arithmetic::Sqrt, Op::SqrtF64),
                    ("rcp", F32) => (Arithmetic::Rcp, Op::RcpF32),
                    ("rcp", F64) => (Arithmetic::Rcp, Op::RcpF64),
                    _ => return no(self),
                };
                self.floating(what, op, ty, mods, ops)
            }
            "rsqrt" => match ty {
                F32 => self.simple(Op::RsqrtF32, ty, ops, &[ty]),
                F64 => self.simple(Op::RsqrtF64, ty, ops, &[ty]),
                _ => no(self),
            },
            "sin" | "cos" | "ex2" | "lg2" | "tanh" => {
                let op = match (opcode, ty) {
                    ("sin", F32) => Op::SinF32,
                    ("cos", F32) => Op::CosF32,
                    ("ex2", F32) => Op::Ex2F32,
                    ("lg2", F32) => Op::Lg2F32,
                    ("tanh", F32) => Op::TanhF32,
                    ("ex2", F16) => Op::Ex2F16,
                    ("tanh", F16) => Op::TanhF16,
                    ("ex2", F16x2) => Op::Ex2F16x2,
                    ("tanh", F16x2) => Op::TanhF16x2,
                    ("ex2", Bf16) => Op::Ex2Bf16,
                    ("tanh", Bf16) => Op::TanhBf16,
                    ("ex2", Bf16x2) => Op::Ex2Bf16x2,
                    ("tanh", Bf16x2) => Op::TanhBf16x2,
                    _ => return no(self),
                };
                self.simple(op, ty, ops, &[ty])
            }
            _ => no(self),
        }
    }

    /// `mov.b128`: a register of 128 bits is two of 64, as what it is packed from and unpacked to.
    fn mov_long(&mut self, ops: &[Operand]) -> Result<(), PtxError> {
        let [Operand::Vector(d), Operand::Vector(a)] = ops else {
            return Err(self.error("mov.b128 takes registers of 128 bits, or two of 64"));
        };
        if d.len() != 2 || a.len() != 2 {
            return Err(self.error("mov.b128 takes two registers of 64 bits"));
        }
        let mut held = Vec::new();
        for a in a {
            let (a, copy) = (self.source(a, Type::B64)?, self.fresh(Type::B64));
            self.alu(Op::Mov64, copy, &[a]);
            held.push(copy);
        }
        for (d, copy) in d.iter().zip(held) {
            let d = self.target_or_sink(d, Type::B64)?;
            self.alu(Op::Mov64, d, &[copy]);
        }
        Ok(())
    }

    /// `div.approx.f32`: a product with the divisor's inverse, which is zero where the divisor is above 2^126.
    fn divide_nearly(&mut self, ops: &[Operand]) -> Result<(), PtxError> {
        let [d, a, b] = ops else { return Err(self.error("expected 3 operands")) };
        let (a, b) = (self.source(a, Type::F32)?, self.source(b, Type::F32)?);
        let [most, infinity] = [2f32.powi(126), f32::INFINITY]
            .map(|value| self.constant(Constant::Bits(u64::from(value.to_bits())), false));
        let (size, divisor, beyond) = (self.fresh(Type::F32), self.fresh(Type::F32), self.fresh(Type::Pred));
        self.alu(Op::AbsF32, size, &[b]);
        self.emit(Op::CmpF32, beyond, size, most, NONE, Relation::Gt as u32, 0);
        self.alu(Op::MulF32, divisor, &[b, infinity]);
        self.alu(Op::Sel32, divisor, &[divisor, b, beyond]);
        let d = self.target_or_sink(d, Type::F32)?;
        self.alu(Op::DivF32, d, &[a, divisor]);
        Ok(())
    }

    /// `mov.v2`, `mov.v4`: elements may go where others come from.
    fn mov_vector(&mut self, ty: Type, four: bool, d: &Operand, a: &Operand) -> Result<(), PtxError> {
        let count = if four { 4 } else { 2 };
        let (Operand::Vector(to), Operand::Vector(from)) = (d, a) else {
            return Err(self.error("mov of a vector takes two vectors"));
        };
        if to.len() != count || from.len() != count {
            return Err(self.error("a vector of another length than the instruction's"));
        }
        let mov = if ty.wide() { Op::Mov64 } else { Op::Mov32 };
        let mut kept = Vec::new();
        for element in from {
            let row = self.source(element, ty)?;
            kept.push(self.fresh(ty));
            self.alu(mov, kept[kept.len() - 1], &[row]);
        }
        for (element, row) in to.iter().zip(kept) {
            let d = self.target_or_sink(element, ty)?;
            self.alu(mov, d, &[row]);
        }
        Ok(())
    }

    /// `mov` of bytes into a register of 16 or 32 bits; each lies in a register of 16.
    fn pack_bytes(&mut self, d: &Operand, ty: Type, parts: &[Operand]) -> Result<(), PtxError> {
        let mut whole = self.constant(Constant::Bits(0), false);
        for (k, part) in parts.iter().enumerate() {
            let (part, next) = (self.source(part, Type::B16)?, self.fresh(Type::B32));
            let [place, bits] = [8 * k as u64, 8].map(|bits| self.constant(Constant::Bits(bits), false));
            self.emit(Op::Bfi32, next, part, whole, place, bits, 0);
            whole = next;
        }
        let d = self.target_or_sink(d, ty)?;
        self.alu(Op::Mov32, d, &[whole]);
        Ok(())
    }

    fn mov(&mut self, opcode: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        if mods == ["b128"] {
            return self.mov_long(ops);
        }
        let ty = self.ty(opcode, mods)?;
        let [d, a] = ops else { return Err(self.error("mov takes 2 operands")) };
        if let ["v2" | "v4", _] = mods {
            return self.mov_vector(ty, mods[0] == "v4", d, a);
        }
        match (d, a) {
            (Operand::Vector(parts), _) => {
                let a = self.source(a, ty)?;
                let each = ty.size() / parts.len().max(1) as u32;
                for (i, part) in parts.iter().enumerate() {
                    if matches!(part, Operand::Sink) {
                        continue;
                    }
                    let (op, to) = match (ty.size(), each) {
                        (4, 2) => (Op::Extract16, Type::B16),
                        (8, 2) => (Op::Extract16From64, Type::B16),
                        (8, 4) => (Op::Extract32, Type::B32),
                        (2 | 4, 1) => (Op::Extract8, Type::B16),
                        _ => return Err(self.unsupported(Builder::full(opcode, mods))),
                    };
                    let shift = self.constant(Constant::Bits(u64::from(8 * each) * i as u64), false);
                    let d = self.target(part, to)?;
                    self.alu(op, d, &[a, shift]);
                }
                Ok(())
            }
            (_, Operand::Vector(parts)) => {
                let mut rows = Vec::new();
                let each = match (ty.size(), parts.len()) {
                    (2, 2) | (4, 4) => return self.pack_bytes(d, ty, parts),
                    (4, 2) | (8, 4) => Type::B16,
                    (8, 2) => Type::B32,
                    _ => return Err(self.unsupported(Builder::full(opcode, mods))),
                };
                for part in parts {
                    rows.push(self.source(part, each)?);
                }
                let d = self.target_or_sink(d, ty)?;
                if rows.len() == 2 {
                    self.alu(if ty.wide() { Op::Pack32 } else { Op::Pack16 }, d, &rows);
                } else {
                    let (low, high) = (self.fresh(Type::B32), self.fresh(Type::B32));
                    self.alu(Op::Pack16, low, &rows[..2]);
                    self.alu(Op::Pack16, high, &rows[2..]);
                    self.alu(Op::Pack32, d, &[low, high]);
                }
                Ok(())
            }
            _ if ty == Type::Pred => {
                let (a, negate) = self.predicate(a)?;
                let d = self.target_or_sink(d, ty)?;
                self.alu(if negate { Op::PredNot } else { Op::PredMov }, d, &[a]);
                let last = self.f.code.len() - 1;
                self.f.code[last].e = 0;
                Ok(())
            }
            (_, Operand::Special(code)) => {
                let d = self.target_or_sink(d, ty)?;
                self.emit(Op::Special, d, NONE, NONE, width_of(ty) as u32, *code, 0);
                Ok(())
            }
            (_, Operand::Symbol(Variable::Register(..), _)) => Err(self.error("expected a variable")),
            _ => self.simple(if ty.wide() { Op::Mov64 } else { Op::Mov32 }, ty, ops, &[ty]),
        }
    }

    fn cvt(&mut self, opcode: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        if mods.iter().any(|m| matches!(*m, "e4m3x2" | "e5m2x2")) {
            return self.cvt_fp8(opcode, mods, ops);
        }
        if mods.first() == Some(&"pack") {
            return self.cvt_pack(mods, ops);
        }
        let kinds: Vec<Type> = mods.iter().filter_map(|m| Type::parse(m)).collect();
        let no = |b: &Builder| Err(b.unsupported(Builder::full(opcode, mods)));
        let known = |m: &&str| {
            Type::parse(m).is_some()
                || matches!(
                    *m,
                    "rn" | "rna"
                        | "rz"
                        | "rm"
                        | "rp"
                        | "rni"
                        | "rzi"
                        | "rmi"
                        | "rpi"
                        | "ftz"
                        | "sat"
                        | "satfinite"
                        | "relu"
                )
        };
        let ([to, from], true) = (kinds.as_slice(), mods.iter().all(known)) else { return no(self) };
        let (to, from) = (*to, *from);
        let relu = mods.contains(&"relu");
        let has = |m: &str| mods.contains(&m);
        if to == Type::Tf32 && from == Type::F32 {
            let op = match mods[0] {
                "rna" if !relu => Op::Tf32Away,
                "rn" => Op::Tf32Nearest,
                "rz" => Op::Tf32Zero,
                _ => return no(self),
            };
            self.simple(op, Type::B32, ops, &[Type::F32])?;
            let d = self.target_or_sink(&ops[0], Type::B32)?;
            if has("satfinite") {
                self.alu(Op::FiniteTf32, d, &[d]);
            }
            if relu {
                self.alu(Op::ReluF32, d, &[d]);
            }
            return Ok(());
        }
        let halves = matches!(to, Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2);
        if has("rna") || (has("satfinite") && !(halves && from == Type::F32)) {
            return no(self);
        }
        if to == Type::Tf32 || from == Type::Tf32 {
            return no(self);
        }
        // Two floats packed into one register.
        if let (Type::F16x2 | Type::Bf16x2, Type::F32, [d, high, low]) = (to, from, ops) {
            let half = if to == Type::F16x2 { Type::F16 } else { Type::Bf16 };
            let mut rows = Vec::new();
            for source in [low, high] {
                let row = self.fresh(Type::B16);
                let a = self.source(source, Type::F32)?;
                self.cast(row, a, half, Type::F32, mods, Width::W16);
                rows.push(row);
            }
            let d = self.target_or_sink(d, Type::B32)?;
            self.alu(Op::Pack16, d, &rows);
            if relu {
                self.alu(if to == Type::F16x2 { Op::ReluF16x2 } else { Op::ReluBf16x2 }, d, &[d]);
            }
            return Ok(());
        }
        if matches!(to, Type::F16x2 | Type::Bf16x2 | Type::Pred)
            || matches!(from, Type::F16x2 | Type::Bf16x2 | Type::Pred)
        {
            return no(self);
        }
        let [d, a] = ops else { return Err(self.error("cvt takes 2 operands")) };
        // Registers may be wider than the types; the source is cut, the destination extended.
        let a = match a {
            Operand::Register(row, actual) if *actual != Type::Pred && actual.size() >= from.size() => {
                if actual.wide() && !from.wide() {
                    let low = self.fresh(Type::B32);
                    self.alu(Op::U32U64, low, &[*row]);
                    low
                } else {
                    *row
                }
            }
            Operand::Register(..) => return Err(self.error("a register smaller than the conversion's type")),
            other => self.source(other, from)?,
        };
        let (d, width) = match d {
            Operand::Register(row, actual) if *actual != Type::Pred && actual.size() >= to.size() => {
                (*row, width_of(*actual))
            }
            Operand::Sink => (self.fresh(to), width_of(to)),
            _ => return Err(self.error("a destination that does not fit the conversion's type")),
        };
        self.cast(d, a, to, from, mods, width);
        if relu {
            let op = match to {
                Type::F16 => Op::ReluF16,
                Type::Bf16 => Op::ReluBf16,
                _ => return no(self),
            };
            self.alu(op, d, &[d]);
        }
        Ok(())
    }

    /// `cvt` between pairs of 8-bit floats and pairs of wider ones.
    /// `cvt.pack`: two numbers cut to the range of fewer bits, above them the lowest bits of a third one.
    fn cvt_pack(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let (to, above) = match mods {
            ["pack", "sat", to @ ("u16" | "s16"), "s32"] => (*to, false),
            ["pack", "sat", to @ ("u2" | "s2" | "u4" | "s4" | "u8" | "s8"), "s32", "b32"] => (*to, true),
            _ => return Err(self.unsupported(Builder::full("cvt", mods))),
        };
        let bits: u32 = to[1..].parse().unwrap_or(16);
        let (least, most) =
            if to.starts_with('s') { (-1i32 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        let [d, numbers @ ..] = ops else { return Err(self.error("too few operands")) };
        if numbers.len() != 2 + usize::from(above) {
            return Err(self.error(format!("expected {} operands", 3 + usize::from(above))));
        }
        let fixed = |b: &mut Builder, v: i32| b.constant(Constant::Bits(u64::from(v as u32)), false);
        let (least, most, mask) = (fixed(self, least), fixed(self, most), fixed(self, (1 << bits) - 1));
        let mut packed = match numbers.get(2) {
            Some(rest) => self.source(rest, Type::B32)?,
            None => fixed(self, 0),
        };
        let shift = fixed(self, bits as i32);
        for number in &numbers[..2] {
            let number = self.source(number, Type::S32)?;
            let [cut, shifted, next] = [(); 3].map(|()| self.fresh(Type::B32));
            self.alu(Op::MaxS32, cut, &[number, least]);
            self.alu(Op::MinS32, cut, &[cut, most]);
            self.alu(Op::And32, cut, &[cut, mask]);
            self.alu(Op::Shl32, shifted, &[packed, shift]);
            self.alu(Op::Or32, next, &[shifted, cut]);
            packed = next;
        }
        let d = self.target_or_sink(d, Type::B32)?;
        self.alu(Op::Mov32, d, &[packed]);
        Ok(())
    }

    fn cvt_fp8(&mut self, opcode: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let mut mods_left = mods.to_vec();
        let relu = mods_left.contains(&"relu");
        mods_left.retain(|m| *m != "relu");
        let (op, to, from, after): (_, _, &[Type], _) = match mods_left.as_slice() {
            ["rn", "satfinite", "e4m3x2", "f32"] => (Op::E4m3x2F32, Type::B16, &[Type::F32; 2], Op::ReluFp8x2),
            ["rn", "satfinite", "e5m2x2", "f32"] => (Op::E5m2x2F32, Type::B16, &[Type::F32; 2], Op::ReluFp8x2),
            ["rn", "satfinite", "e4m3x2", "f16x2"] => (Op::E4m3x2F16x2, Type::B16, &[Type::B32], Op::ReluFp8x2),
            ["rn", "satfinite", "e5m2x2", "f16x2"] => (Op::E5m2x2F16x2, Type::B16, &[Type::B32], Op::ReluFp8x2),
            ["rn", "f16x2", "e4m3x2"] => (Op::F16x2E4m3x2, Type::B32, &[Type::B16], Op::ReluF16x2),
            ["rn", "f16x2", "e5m2x2"] => (Op::F16x2E5m2x2, Type::B32, &[Type::B16], Op::ReluF16x2),
            _ => return Err(self.unsupported(Builder::full(opcode, mods))),
        };
        self.simple(op, to, ops, from)?;
        if relu {
            let d = self.target_or_sink(&ops[0], to)?;
            self.alu(after, d, &[d]);
        }
        Ok(())
    }

    fn cast(&mut self, d: u32, a: u32, to: Type, from: Type, mods: &[&str], width: Width) {
        use Type::*;
        let rounding = Builder::rounding(mods);
        let (saturate, finite) = (mods.contains(&"sat"), mods.contains(&"satfinite"));
        let integral = mods.iter().any(|m| matches!(*m, "rni" | "rzi" | "rmi" | "rpi"));
        if rounding == Rounding::Nearest && !saturate && !finite && width == width_of(to) && (!integral || !to.float())
        {
            let fast = match (to, from) {
                (S64 | U64, S32) => Some(Op::S64S32),
                (U64 | S64, U32) => Some(Op::U64U32),
                (U32 | S32, U64 | S64) => Some(Op::U32U64),
                (U16 | S16, U32 | S32) => Some(Op::U16U32),
                (S32 | U32, S16) => Some(Op::S32S16),
                // The register may be wider than the type.
                (U32 | S32, U16) => Some(Op::U16U32),
                (U32 | S32, S32 | U32) | (F32, F32) => Some(Op::Mov32),
                (U64 | S64, S64 | U64) | (F64, F64) => Some(Op::Mov64),
                (F64, F32) => Some(Op::F64F32),
                (F32, F64) => Some(Op::F32F64),
                (F32, S32) => Some(Op::F32S32),
                (F32, U32) => Some(Op::F32U32),
                (F64, S32) => Some(Op::F64S32),
                (F64, U32) => Some(Op::F64U32),
                (F64, S64) => Some(Op::F64S64),
                (F64, U64) => Some(Op::F64U64),
                (F32, F16) => Some(Op::F32F16),
                (F16, F32) => Some(Op::F16F32),
                _ => None,
            };
            if let Some(op) = fast {
                self.alu(op, d, &[a]);
                return;
            }
        }
        if rounding == Rounding::Zero && to == S32 && from == F32 && width == Width::W32 {
            self.alu(Op::S32F32, d, &[a]);
            return;
        }
        let index = self.f.casts.len() as u32;
        self.f.casts.push(Cast { to, from, rounding, integral, saturate, finite, width });
        self.emit(Op::Cast, d, a, NONE, NONE, index, 0);
    }

    fn relation(&self, opcode: &str, mods: &[&str], ty: Type) -> Result<(Relation, Type), PtxError> {
        use Relation::*;
        let unsigned = |t: Type| match t {
            Type::S16 | Type::B16 => Type::U16,
            Type::S32 | Type::B32 => Type::U32,
            Type::S64 | Type::B64 => Type::U64,
            other => other,
        };
        let found = mods.iter().find_map(|m| {
            Some(match *m {
                "eq" => (Eq, ty),
                "ne" => (Ne, ty),
                "lt" => (Lt, ty),
                "le" => (Le, ty),
                "gt" => (Gt, ty),
                "ge" => (Ge, ty),
                "lo" => (Lt, unsigned(ty)),
                "ls" => (Le, unsigned(ty)),
                "hi" => (Gt, unsigned(ty)),
                "hs" => (Ge, unsigned(ty)),
                "equ" => (Equ, ty),
                "neu" => (Neu, ty),
                "ltu" => (Ltu, ty),
                "leu" => (Leu, ty),
                "gtu" => (Gtu, ty),
                "geu" => (Geu, ty),
                "num" => (Num, ty),
                "nan" => (Nan, ty),
                _ => return None,
            })
        });
        found.ok_or_else(|| self.unsupported(Builder::full(opcode, mods)))
    }

    /// Emits a comparison into a predicate, and its complement into another (or [`NONE`]).
    #[allow(clippy::too_many_arguments)]
    fn compare(
        &mut self,
        opcode: &str,
        mods: &[&str],
        ty: Type,
        a: &Operand,
        b: &Operand,
        out: u32,
        complement: u32,
    ) -> Result<(), PtxError> {
        let (relation, ty) = self.relation(opcode, mods, ty)?;
        let op = match ty {
            Type::U16 | Type::B16 => Op::CmpU16,
            Type::S16 => Op::CmpS16,
            Type::U32 | Type::B32 => Op::CmpU32,
            Type::S32 => Op::CmpS32,
            Type::U64 | Type::B64 => Op::CmpU64,
            Type::S64 => Op::CmpS64,
            Type::F32 | Type::Bf16 => Op::CmpF32,
            Type::F64 => Op::CmpF64,
            Type::F16 => Op::CmpF16,
            _ => return Err(self.unsupported(Builder::full(opcode, mods))),
        };
        if !ty.float() && relation as u32 >= Relation::Equ as u32 {
            return Err(self.error("a relation of floating point on integers"));
        }
        let (mut a, mut b) = (self.source(a, ty)?, self.source(b, ty)?);
        if ty == Type::Bf16 {
            (a, b) = (self.widened(a, ty), self.widened(b, ty));
        }
        self.emit(op, out, a, b, complement, relation as u32, 0);
        Ok(())
    }

    fn combination(mods: &[&str]) -> Option<Op> {
        mods.iter().find_map(|m| match *m {
            "and" => Some(Op::PredAnd),
            "or" => Some(Op::PredOr),
            "xor" => Some(Op::PredXor),
            _ => None,
        })
    }

    fn setp(&mut self, opcode: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let ty = self.ty(opcode, mods)?;
        let [d, a, b, rest @ ..] = ops else { return Err(self.error("too few operands")) };
        let (p, q) = match d {
            Operand::Pair(p, q) => (self.target_or_sink(p, Type::Pred)?, self.target_or_sink(q, Type::Pred)?),
            d => (self.target_or_sink(d, Type::Pred)?, NONE),
        };
        if let Some(half) = half_of(ty) {
            // Each half has its own predicate.
            let outs = self.compare_pair(opcode, mods, half, a, b, rest)?;
            self.alu(Op::PredMov, p, &[outs[0]]);
            if q != NONE {
                self.alu(Op::PredMov, q, &[outs[1]]);
            }
            return Ok(());
        }
        if matches!(ty, Type::F16 | Type::Bf16) && q != NONE {
            return Err(self.unsupported(Builder::full(opcode, mods)));
        }
        let Some(combine) = Builder::combination(mods) else {
            return self.compare(opcode, mods, ty, a, b, p, q);
        };
        let [c] = rest else { return Err(self.error("expected a predicate to combine with")) };
        let (c, negate) = self.predicate(c)?;
        let (yes, no) = (self.fresh(Type::Pred), self.fresh(Type::Pred));
        self.compare(opcode, mods, ty, a, b, yes, no)?;
        let flags = u32::from(negate) << 1;
        if q != NONE {
            // p may be c: compute both before either is written.
            let both = self.fresh(Type::Pred);
            self.emit(combine, both, yes, c, NONE, flags, 0);
            self.emit(combine, q, no, c, NONE, flags, 0);
            self.alu(Op::PredMov, p, &[both]);
        } else {
            self.emit(combine, p, yes, c, NONE, flags, 0);
        }
        Ok(())
    }

    fn set(&mut self, opcode: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let kinds: Vec<Type> = mods.iter().filter_map(|m| Type::parse(m)).collect();
        let no = |b: &Builder| Err(b.unsupported(Builder::full(opcode, mods)));
        let [to, from] = kinds.as_slice() else { return no(self) };
        let (to, from) = (*to, *from);
        let [d, a, b, rest @ ..] = ops else { return Err(self.error("too few operands")) };
        let yes = match (to, half_of(from)) {
            (Type::U32 | Type::S32, None) => 0xffff_ffff,
            (Type::F32, None) => u64::from(1f32.to_bits()),
            (Type::U16 | Type::S16, None) | (Type::U32 | Type::S32, Some(_)) => 0xffff,
            (Type::F16, None) | (Type::F16x2, Some(Type::F16)) => 0x3c00,
            (Type::Bf16, None) | (Type::Bf16x2, Some(Type::Bf16)) => 0x3f80,
            _ => return no(self),
        };
        let (yes, none) = (self.constant(Constant::Bits(yes), false), self.constant(Constant::Bits(0), false));
        if let Some(half) = half_of(from) {
            let outs = self.compare_pair(opcode, mods, half, a, b, rest)?;
            let rows = outs.map(|p| {
                let row = self.fresh(Type::B16);
                self.alu(Op::Sel32, row, &[yes, none, p]);
                row
            });
            let d = self.target_or_sink(d, Type::B32)?;
            self.alu(Op::Pack16, d, &rows);
            return Ok(());
        }
        let mut p = self.fresh(Type::Pred);
        self.compare(opcode, mods, from, a, b, p, NONE)?;
        if let Some(combine) = Builder::combination(mods) {
            let [c] = rest else { return Err(self.error("expected a predicate to combine with")) };
            let (c, negate) = self.predicate(c)?;
            let out = self.fresh(Type::Pred);
            self.emit(combine, out, p, c, NONE, u32::from(negate) << 1, 0);
            p = out;
        }
        let d = self.target_or_sink(d, to)?;
        self.alu(Op::Sel32, d, &[yes, none, p]);
        Ok(())
    }

    /// Compares both halves of two registers; each result is combined with the predicate that may follow.
    fn compare_pair(
        &mut self,
        opcode: &str,
        mods: &[&str],
        half: Type,
        a: &Operand,
        b: &Operand,
        rest: &[Operand],
    ) -> Result<[u32; 2], PtxError> {
        let (a, b) = (self.halves(a)?, self.halves(b)?);
        let mut outs = [0, 1].map(|_| self.fresh(Type::Pred));
        for (k, out) in outs.iter_mut().enumerate() {
            let [a, b] = [a[k], b[k]].map(|row| Operand::Register(row, half));
            self.compare(opcode, mods, half, &a, &b, *out, NONE)?;
            if let Some(combine) = Builder::combination(mods) {
                let [c] = rest else { return Err(self.error("expected a predicate to combine with")) };
                let (c, negate) = self.predicate(c)?;
                let both = self.fresh(Type::Pred);
                self.emit(combine, both, *out, c, NONE, u32::from(negate) << 1, 0);
                *out = both;
            }
        }
        Ok(outs)
    }
}

/// What makes zeros of a type's subnormal numbers, and the type of the register.
fn flush_of(kind: &str) -> Option<(Op, Type)> {
    Some(match kind {
        "f16" => (Op::FlushF16, Type::F16),
        "f16x2" => (Op::FlushF16x2, Type::F16x2),
        "bf16" => (Op::FlushBf16, Type::Bf16),
        "bf16x2" => (Op::FlushBf16x2, Type::Bf16x2),
        "f32" => (Op::FlushF32, Type::F32),
        "f32x2" => (Op::FlushF32x2, Type::B64),
        "f64" => (Op::FlushF64, Type::F64),
        _ => return None,
    })
}

/// What a register of two halves holds.
fn half_of(ty: Type) -> Option<Type> {
    match ty {
        Type::F16x2 => Some(Type::F16),
        Type::Bf16x2 => Some(Type::Bf16),
        _ => None,
    }
}
