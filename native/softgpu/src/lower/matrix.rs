//! Matrix products, their fragments, and asynchronous copies.

use super::memory::space_of;
use super::{Builder, Operand};
use crate::error::PtxError;
use crate::ir::*;
use crate::types::Type;

/// Registers, where their tiles are, and whether rows become columns.
type Tiles = (Vec<u32>, Address, Space, bool);

/// The extents in `m16n8k16`.
fn shape_of(name: &str) -> Option<[usize; 3]> {
    let (m, rest) = name.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    let shape = [m.parse().ok()?, n.parse().ok()?, k.parse().ok()?];
    shape.iter().all(|extent| (1..=256).contains(extent)).then_some(shape)
}

impl Builder {
    fn registers(&mut self, operand: &Operand, ty: Type, target: bool) -> Result<Vec<u32>, PtxError> {
        let items = match operand {
            Operand::Vector(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        let ty = if ty == Type::F64 { Type::B64 } else { Type::B32 };
        items.iter().map(|item| if target { self.target_or_sink(item, ty) } else { self.source(item, ty) }).collect()
    }

    fn emit_matrix(&mut self, matrix: Matrix) {
        let members = self.constant(Constant::Bits(0xffff_ffff), false);
        let index = self.f.matrices.len() as u32;
        self.f.matrices.push(matrix);
        self.emit(Op::Matrix, NONE, NONE, NONE, members, index, 0);
    }

    /// `mma`, `wmma`, and how tiles get to their registers
    pub(super) fn matrix(&mut self, opcode: &str, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let no = |b: &Builder| Err(b.unsupported(Builder::full(opcode, mods)));
        let has = |m: &str| mods.contains(&m);
        match opcode {
            "ldmatrix" => return self.load_matrix(mods, ops),
            "stmatrix" => return self.store_matrix(mods, ops),
            "movmatrix" => return self.move_matrix(mods, ops),
            _ => {}
        }
        let types: Vec<Type> = mods.iter().filter_map(|m| Type::of_elements(m)).collect();
        let Some(shape) = mods.iter().find_map(|m| shape_of(m)) else { return no(self) };
        let [m, n, k] = shape;
        let fits = |registers: usize, ty: Type, elements: usize| registers * ty.elements() * 32 >= elements;
        if opcode == "mma" || has("mma") {
            let types = match (opcode, types.as_slice()) {
                (_, [d, a, b, c]) => [*d, *a, *b, *c],
                ("wmma", [d, c]) => [*d, Type::F16, Type::F16, *c],
                _ => return no(self),
            };
            let [td, ta, tb, tc] = types;
            let factors = [ta, tb].iter().all(|t| {
                use Type::*;
                matches!(t, F16 | Bf16 | Tf32 | S8 | U8 | S4 | U4 | B1 | F64)
            });
            // Sums of doubles are rounded to the nearest alone.
            let directed = ["rz", "rm", "rp"].into_iter().any(has);
            let sums = !directed && [td, tc].iter().all(|t| matches!(t, Type::F16 | Type::F32 | Type::S32 | Type::F64));
            let [d, a, b, c, ..] = ops else { return Err(self.error("expected four matrices")) };
            let (d, a) = (self.registers(d, td, true)?, self.registers(a, ta, false)?);
            let (b, c) = (self.registers(b, tb, false)?, self.registers(c, tc, false)?);
            let enough = fits(d.len(), td, m * n)
                && fits(a.len(), ta, m * k)
                && fits(b.len(), tb, k * n)
                && fits(c.len(), tc, m * n);
            if !factors || !sums || !enough {
                return no(self);
            }
            let saturate = has("satfinite");
            let differ = has("xor");
            // Of single bits those are counted that differ, or that both have.
            if (ta == Type::B1 || tb == Type::B1) != has("popc")
                || has("popc") != (differ || has("and"))
                || ta.element_bits() != tb.element_bits()
            {
                return no(self);
            }
            if opcode == "wmma" {
                self.emit_matrix(Matrix::Wmma { shape, types, d, a, b, c, saturate, differ });
                return Ok(());
            }
            let exact = a.len() * ta.elements() * 32 == m * k
                && b.len() * tb.elements() * 32 == k * n
                && d.len() * td.elements() * 32 == m * n;
            if let ([8, 8, 4], [_, Type::F16, Type::F16, _]) = (shape, types) {
                let layouts: Vec<bool> =
                    mods.iter().filter(|m| matches!(**m, "row" | "col")).map(|m| *m == "col").collect();
                let Ok(by_column) = <[bool; 2]>::try_from(layouts) else { return no(self) };
                let whole = |registers: &[u32], ty: Type| registers.len() * ty.elements() == 8;
                let known = matches!([td, tc], [Type::F16 | Type::F32, Type::F16] | [Type::F32, Type::F32]);
                if !known || a.len() != 2 || b.len() != 2 || !whole(&d, td) || !whole(&c, tc) || saturate {
                    return no(self);
                }
                self.emit_matrix(Matrix::Quads { types: [td, tc], by_column, d, a, b, c });
                return Ok(());
            }
            if n != 8
                || (m != 8 && m != 16)
                || !exact
                || c.len() * tc.elements() * 32 != m * n
                || !has("row")
                || !has("col")
            {
                return no(self);
            }
            self.emit_matrix(Matrix::Mma { shape, types, d, a, b, c, saturate, differ });
            return Ok(());
        }
        let [ty] = types.as_slice() else { return no(self) };
        let ty = *ty;
        let (rows, columns) = match mods.get(1) {
            Some(&"a") => (m, k),
            Some(&"b") => (k, n),
            Some(&"c" | &"d") => (m, n),
            _ => return no(self),
        };
        let (load, by_column) = (has("load"), has("col"));
        let space = mods.iter().find_map(|m| space_of(m)).unwrap_or(Space::Generic);
        let known = {
            use Type::*;
            matches!(ty, F16 | Bf16 | Tf32 | F32 | F64 | S8 | U8 | S32) || (load && matches!(ty, S4 | U4 | B1))
        };
        let (first, second, rest) = match ops {
            [first, second, rest @ ..] => (first, second, rest),
            _ => return Err(self.error("too few operands")),
        };
        let stride = match rest {
            [stride, ..] => self.source(stride, Type::U32)?,
            [] => self.constant(Constant::Bits(if by_column { rows } else { columns } as u64), false),
        };
        let (registers, address) = if load { (first, second) } else { (second, first) };
        let registers = self.registers(registers, ty, load)?;
        let address = self.address(address)?;
        if !known || !fits(registers.len(), ty, rows * columns) || (!load && !has("store")) {
            return no(self);
        }
        self.emit_matrix(if load {
            Matrix::Fetch { d: registers, address, space, stride, rows, columns, ty, by_column }
        } else {
            Matrix::Put { s: registers, address, space, stride, rows, columns, ty, by_column }
        });
        Ok(())
    }

    /// `ldmatrix` and `stmatrix`: the registers and where the tiles are.
    fn tiles(&mut self, name: &str, mods: &[&str], tiles: &Operand, at: &Operand) -> Result<Tiles, PtxError> {
        if !mods.contains(&"m8n8") || !mods.contains(&"b16") {
            return Err(self.unsupported(Builder::full(name, mods)));
        }
        let space = mods.iter().find_map(|m| space_of(m)).unwrap_or(Space::Generic);
        let registers = self.registers(tiles, Type::B32, name == "ldmatrix")?;
        if !matches!(registers.len(), 1 | 2 | 4) {
            return Err(self.error(format!("{name} has 1, 2 or 4 matrices")));
        }
        Ok((registers, self.address(at)?, space, mods.contains(&"trans")))
    }

    fn load_matrix(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let [d, at, ..] = ops else { return Err(self.error("too few operands")) };
        let (d, address, space, transposed) = self.tiles("ldmatrix", mods, d, at)?;
        self.emit_matrix(Matrix::Load { d, address, space, transposed });
        Ok(())
    }

    fn store_matrix(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let [at, s] = ops else { return Err(self.error("stmatrix takes an address and registers")) };
        let (s, address, space, transposed) = self.tiles("stmatrix", mods, s, at)?;
        self.emit_matrix(Matrix::Store { s, address, space, transposed });
        Ok(())
    }

    fn move_matrix(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        let (["sync", "aligned", "m8n8", "trans", "b16"], [d, a]) = (mods, ops) else {
            return Err(self.unsupported(Builder::full("movmatrix", mods)));
        };
        let (d, a) = (self.target(d, Type::B32)?, self.source(a, Type::B32)?);
        self.emit_matrix(Matrix::Transpose { d, a });
        Ok(())
    }

    /// `cp.async`: the copy is made at once, so that there is nothing to wait for.
    pub(super) fn copy(&mut self, mods: &[&str], ops: &[Operand]) -> Result<(), PtxError> {
        match mods {
            ["async", "commit_group" | "wait_group" | "wait_all", ..] => return Ok(()),
            ["async", "mbarrier", ..] => return self.copies_arrive(mods, ops),
            ["async", "bulk", ..] => return self.copy_bulk(mods, ops),
            ["reduce", "async", "bulk", ..] => return self.reduce_bulk(mods, ops),
            ["async", "ca" | "cg", ..] => {}
            _ => return Err(self.unsupported(Builder::full("cp", mods))),
        }
        let [to, from, Operand::Int(size @ (4 | 8 | 16)), rest @ ..] = ops else {
            return Err(self.error("expected two addresses and 4, 8 or 16 bytes"));
        };
        let size = *size as u32;
        let (to, from) = (self.address(to)?, self.address(from)?);
        let given = match rest.first() {
            Some(Operand::Register(row, Type::Pred)) => {
                let (none, all) =
                    (self.constant(Constant::Bits(0), false), self.constant(Constant::Bits(u64::from(size)), false));
                let given = self.fresh(Type::B32);
                self.alu(Op::Sel32, given, &[none, all, *row]);
                given
            }
            // A cache policy.
            Some(Operand::Register(_, ty)) if ty.wide() => NONE,
            Some(given) => self.source(given, Type::U32)?,
            None => NONE,
        };
        let index = self.f.copies.len() as u32;
        let spaces = (Space::Shared, Space::Global);
        let skipped = [NONE; 2];
        let copy = Copy { to, from, spaces, size, length: NONE, given, bytes: NONE, skipped, reduction: None };
        self.f.copies.push(copy);
        self.emit(Op::CopyAsync, NONE, NONE, NONE, NONE, index, 0);
        Ok(())
    }

    /// `elect.sync d|p, members`
    pub(super) fn elect(&mut self, ops: &[Operand]) -> Result<(), PtxError> {
        let [Operand::Pair(d, p), members] = ops else { return Err(self.error("elect takes d|p and a mask")) };
        let (d, p) = (self.target_or_sink(d, Type::B32)?, self.target_or_sink(p, Type::Pred)?);
        let members = self.source(members, Type::B32)?;
        self.emit(Op::Elect, d, NONE, NONE, members, 0, i64::from(p));
        Ok(())
    }
}
