//! Level 3: matrices.

use super::tiles::Product;
use crate::arguments::{Call, mirrored, triangle};
use crate::memory::{Fault, Matrix, Memory, Place, bytes_of, collected, load};
use crate::number::{Field, Op, applied, gemm as multiply};
use crate::objects::{Job, job};
use crate::{Problem, invalid};

/// The product of a call whose matrices are all of `T`.
fn product_of<T: Field>(call: &Call) -> Result<Product, Problem> {
    Product::of(call, [bytes_of::<T>(call.single()); 3])
}

fn run<T: Field>(product: &Product, memory: &dyn Memory, alpha: T, beta: T) -> Result<(), Fault> {
    product.run([alpha, beta], |_, place| place.load(memory), |place, tile| place.store(memory, tile))
}

pub fn gemm<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (product, alpha, beta) = (product_of::<T>(call)?, call.scalar("alpha")?, call.scalar("beta")?);
    job(move |memory, _| run::<T>(&product, memory, alpha.one(memory)?, beta.one(memory)?))
}

pub fn gemm_strided<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (product, alpha, beta) = (product_of::<T>(call)?, call.scalar("alpha")?, call.scalar("beta")?);
    let strides = [call.int("stridea")?, call.int("strideb")?, call.int("stridec")?];
    let batch = call.size("batch")?;
    job(move |memory, _| {
        let (alpha, beta): (T, T) = (alpha.one(memory)?, beta.one(memory)?);
        product.strided(strides, batch).try_for_each(|product| run(&product, memory, alpha, beta))
    })
}

pub fn gemm_batched<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (product, alpha, beta) = (product_of::<T>(call)?, call.scalar("alpha")?, call.scalar("beta")?);
    let arrays = [call.device("aarray")?, call.device("barray")?, call.device("carray")?];
    let batch = call.size("batch")?;
    job(move |memory, _| {
        let (alpha, beta): (T, T) = (alpha.one(memory)?, beta.one(memory)?);
        product.listed(memory, arrays, batch)?.try_for_each(|product| run(&product, memory, alpha, beta))
    })
}

fn sided<T: Field>(call: &Call, hermitian: bool) -> Result<Job, Problem> {
    let (m, n, right, upper) = (call.size("m")?, call.size("n")?, call.flag("side")?, call.upper()?);
    let order = if right { n } else { m };
    let (a, b, c) = (call.matrix("a", order, order)?, call.matrix("b", m, n)?, call.matrix("c", m, n)?);
    let (alpha, beta) = (call.scalar("alpha")?, call.scalar("beta")?);
    job(move |memory, _| {
        let (alpha, beta): (T, T) = (alpha.one(memory)?, beta.one(memory)?);
        let whole = mirrored(&a.load::<T>(memory)?, upper, hermitian);
        let b = b.load::<T>(memory)?;
        let mut out = if beta == T::zero() { Matrix::zero(m, n) } else { c.load(memory)? };
        let (first, second) = if right { (&b, &whole) } else { (&whole, &b) };
        multiply(alpha, first, Op::None, second, Op::None, beta, &mut out);
        c.store(memory, &out)
    })
}

pub fn symm<T: Field>(call: &Call) -> Result<Job, Problem> {
    sided::<T>(call, false)
}

pub fn hemm<T: Field>(call: &Call) -> Result<Job, Problem> {
    sided::<T>(call, true)
}

/// The kinds of rank-k updates.
#[derive(Clone, Copy, PartialEq)]
enum Rank {
    /// a·aᵀ
    One,
    /// a·bᵀ + b·aᵀ
    Two,
    /// a·bᵀ, of which the result is known to be symmetric
    Mixed,
}

fn rank<T: Field>(call: &Call, kind: Rank, hermitian: bool) -> Result<Job, Problem> {
    let (n, k, upper) = (call.size("n")?, call.size("k")?, call.upper()?);
    let op = match call.op("trans")? {
        // For complex symmetric updates the conjugate is not allowed, for Hermitian ones it is what is meant.
        Op::Conjugate if T::COMPLEX && !hermitian => return Err(invalid("trans")),
        Op::Transpose if T::COMPLEX && hermitian => return Err(invalid("trans")),
        op => op,
    };
    let (rows, columns) = op.stored(n, k);
    let a = call.matrix("a", rows, columns)?;
    let b = if kind == Rank::One { a } else { call.matrix("b", rows, columns)? };
    let c = call.matrix("c", n, n)?;
    let (alpha, beta) = (call.scalar("alpha")?, call.scalar("beta")?);
    let other = if hermitian { Op::Conjugate } else { Op::Transpose };
    let (left, right) = if op == Op::None { (Op::None, other) } else { (other, Op::None) };
    job(move |memory, _| {
        let real_alpha = hermitian && kind == Rank::One;
        let alpha: T = if real_alpha { T::from_real(alpha.one(memory)?) } else { alpha.one(memory)? };
        let beta: T = if hermitian { T::from_real(beta.one(memory)?) } else { beta.one(memory)? };
        let (a, b) = (a.load::<T>(memory)?, b.load::<T>(memory)?);
        let mut out = if beta == T::zero() { Matrix::zero(n, n) } else { c.load(memory)? };
        multiply(alpha, &a, left, &b, right, beta, &mut out);
        if kind == Rank::Two {
            let alpha = if hermitian { alpha.conj() } else { alpha };
            multiply(alpha, &b, left, &a, right, T::one(), &mut out);
        }
        if hermitian {
            (0..n).for_each(|at| *out.at_mut(at, at) = T::from_real(out.at(at, at).re()));
        }
        c.store_triangle(memory, &out, upper)
    })
}

pub fn syrk<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank::<T>(call, Rank::One, false)
}

pub fn herk<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank::<T>(call, Rank::One, true)
}

pub fn syr2k<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank::<T>(call, Rank::Two, false)
}

pub fn her2k<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank::<T>(call, Rank::Two, true)
}

pub fn syrkx<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank::<T>(call, Rank::Mixed, false)
}

pub fn herkx<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank::<T>(call, Rank::Mixed, true)
}

/// What trmm and trsm have in common.
struct Triangular {
    right: bool,
    upper: bool,
    unit: bool,
    op: Op,
    a: Place,
    b: Place,
}

impl Triangular {
    fn of(call: &Call) -> Result<Self, Problem> {
        let (m, n, right) = (call.size("m")?, call.size("n")?, call.flag("side")?);
        let order = if right { n } else { m };
        let place = |name: &str, rows: usize, columns: usize| -> Result<Place, Problem> {
            let address = if call.has(name) { call.device(name)? } else { 0 };
            Ok(Place { address, rows, columns, lead: call.lead(name, rows)?, single: call.single() })
        };
        let (a, b) = (place("a", order, order)?, place("b", m, n)?);
        Ok(Self { right, upper: call.upper()?, unit: call.flag("diag")?, op: call.op("trans")?, a, b })
    }

    /// op(a) written out, and whether it is an upper triangle.
    fn matrix<T: Field>(&self, memory: &dyn Memory) -> Result<(Matrix<T>, bool), Fault> {
        let a = triangle(&self.a.load::<T>(memory)?, self.upper, self.unit);
        Ok((applied(&a, self.op), self.upper == (self.op == Op::None)))
    }

    fn solve<T: Field>(&self, memory: &dyn Memory, alpha: T) -> Result<(), Fault> {
        let (a, upper) = self.matrix(memory)?;
        let mut b = self.b.load::<T>(memory)?;
        b.data.iter_mut().for_each(|value| *value *= alpha);
        if self.right {
            // x·a = b is aᵀ·xᵀ = bᵀ.
            let mut turned = applied(&b, Op::Transpose);
            solve(&applied(&a, Op::Transpose), !upper, &mut turned);
            b = applied(&turned, Op::Transpose);
        } else {
            solve(&a, upper, &mut b);
        }
        self.b.store(memory, &b)
    }
}

/// `b = a⁻¹ b` for a triangle `a`, column by column.
pub fn solve<T: Field>(a: &Matrix<T>, upper: bool, b: &mut Matrix<T>) {
    let n = a.rows;
    for column in b.data.chunks_exact_mut(n.max(1)) {
        for step in 0..n {
            let at = if upper { n - 1 - step } else { step };
            let value = column[at] / a.at(at, at);
            column[at] = value;
            let rest = if upper { 0..at } else { at + 1..n };
            let below = &a.column(at)[rest.clone()];
            column[rest].iter_mut().zip(below).for_each(|(b, a)| *b -= value * *a);
        }
    }
}

pub fn trmm<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (triangular, alpha) = (Triangular::of(call)?, call.scalar("alpha")?);
    let c = call.matrix("c", triangular.b.rows, triangular.b.columns)?;
    job(move |memory, _| {
        let alpha: T = alpha.one(memory)?;
        let ((a, _), b) = (triangular.matrix::<T>(memory)?, triangular.b.load::<T>(memory)?);
        let mut out = Matrix::zero(c.rows, c.columns);
        let (first, second) = if triangular.right { (&b, &a) } else { (&a, &b) };
        multiply(alpha, first, Op::None, second, Op::None, T::zero(), &mut out);
        c.store(memory, &out)
    })
}

pub fn trsm<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (triangular, alpha) = (Triangular::of(call)?, call.scalar("alpha")?);
    job(move |memory, _| triangular.solve::<T>(memory, alpha.one(memory)?))
}

pub fn trsm_batched<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (mut triangular, alpha) = (Triangular::of(call)?, call.scalar("alpha")?);
    let (a, b, batch) = (call.device("aarray")?, call.device("barray")?, call.size("batch")?);
    job(move |memory, _| {
        let alpha: T = alpha.one(memory)?;
        let (a, b) = (load::<u64>(memory, a, batch)?, load::<u64>(memory, b, batch)?);
        for (a, b) in a.into_iter().zip(b) {
            (triangular.a.address, triangular.b.address) = (a, b);
            triangular.solve(memory, alpha)?;
        }
        Ok(())
    })
}

pub fn geam<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (m, n) = (call.size("m")?, call.size("n")?);
    let (op_a, op_b) = (call.op("transa")?, call.op("transb")?);
    let ((ra, ca), (rb, cb)) = (op_a.stored(m, n), op_b.stored(m, n));
    let (alpha, beta) = (call.scalar("alpha")?, call.scalar("beta")?);
    // A matrix whose factor is 0 is not read and may be null.
    let (a, b, c) = (call.matrix("a", ra, ca)?, call.matrix("b", rb, cb)?, call.matrix("c", m, n)?);
    job(move |memory, _| {
        let (alpha, beta): (T, T) = (alpha.one(memory)?, beta.one(memory)?);
        let mut out = Matrix::<T>::zero(m, n);
        for (factor, place, op) in [(alpha, a, op_a), (beta, b, op_b)] {
            if factor != T::zero() {
                let term = applied(&place.load::<T>(memory)?, op);
                out.data.iter_mut().zip(term.data).for_each(|(out, term)| *out += factor * term);
            }
        }
        c.store(memory, &out)
    })
}

pub fn dgmm<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (m, n, right) = (call.size("m")?, call.size("n")?, call.flag("mode")?);
    let (a, c) = (call.matrix("a", m, n)?, call.matrix("c", m, n)?);
    let mut x = crate::memory::Vector {
        address: call.device("x")?,
        count: if right { n } else { m },
        step: call.int("incx")?,
        single: call.single(),
    };
    // Step 0 repeats one number.
    let repeated = (x.step == 0 && x.count > 0).then_some(x.count);
    if repeated.is_some() {
        (x.count, x.step) = (1, 1);
    }
    job(move |memory, _| {
        let mut x = x.load::<T>(memory)?;
        if let Some(count) = repeated {
            x = collected(count, std::iter::repeat_n(x[0], count));
        }
        let mut out = a.load::<T>(memory)?;
        for column in 0..n {
            for (row, value) in out.column_mut(column).iter_mut().enumerate() {
                *value *= x[if right { column } else { row }];
            }
        }
        c.store(memory, &out)
    })
}
