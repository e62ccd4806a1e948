//! Level 2: a matrix and vectors.

use super::level1::dot_of;
use crate::Problem;
use crate::arguments::Call;
use crate::memory::{Fault, Memory, Place, bytes_of, load_numbers, store_numbers, zeros};
use crate::number::{Field, Op};
use crate::objects::{Job, job};
use std::ops::Range;

/// How the elements of a matrix lie in memory.
#[derive(Clone, Copy)]
enum Form {
    /// All of each column.
    Whole,
    /// The upper or lower triangle of a whole matrix.
    Triangle { upper: bool },
    /// So many diagonals below the main one and above it.
    Band { below: usize, above: usize },
    /// One triangle without gaps.
    Packed { upper: bool },
}

/// A matrix of which each column holds one range of rows, and where that lies.
#[derive(Clone, Copy)]
struct Stored {
    form: Form,
    address: u64,
    rows: usize,
    columns: usize,
    /// Elements from one column to the next; not of a packed one.
    lead: usize,
    single: bool,
}

impl Stored {
    fn of(place: Place, form: Form) -> Self {
        let Place { address, rows, columns, lead, single } = place;
        Self { form, address, rows, columns, lead, single }
    }

    /// The packed triangle `ap`.
    fn packed(call: &Call) -> Result<Self, Problem> {
        let (n, form) = (call.size("n")?, Form::Packed { upper: call.upper()? });
        Ok(Self::of(Place { address: call.device("ap")?, rows: n, columns: n, lead: 0, single: call.single() }, form))
    }

    /// The triangle `a` of a whole matrix.
    fn triangle(call: &Call) -> Result<Self, Problem> {
        let n = call.size("n")?;
        Ok(Self::of(call.matrix("a", n, n)?, Form::Triangle { upper: call.upper()? }))
    }

    /// The triangle of a call, in the form that its parameters say.
    fn one_of(call: &Call) -> Result<Self, Problem> {
        if call.has("ap") {
            return Self::packed(call);
        }
        if !call.has("k") {
            return Self::triangle(call);
        }
        let (n, k) = (call.size("n")?, call.size("k")?);
        let (below, above) = if call.upper()? { (0, k) } else { (k, 0) };
        Ok(Self { rows: n, ..Self::of(call.matrix("a", k.saturating_add(1), n)?, Form::Band { below, above }) })
    }

    /// The rows that a column holds, and where the first of them is.
    fn span(&self, column: usize) -> (Range<usize>, usize) {
        let (start, n) = (column * self.lead, self.rows);
        match self.form {
            Form::Whole => (0..n, start),
            Form::Triangle { upper: true } => (0..column + 1, start),
            Form::Triangle { upper: false } => (column..n, start + column),
            Form::Packed { upper: true } => (0..column + 1, column * (column + 1) / 2),
            Form::Packed { upper: false } => (column..n, (2 * n - column + 1) * column / 2),
            Form::Band { below, above } => {
                let first = column.saturating_sub(above);
                if first >= n {
                    return (n..n, start);
                }
                let end = column.saturating_add(below).saturating_add(1).min(n);
                (first..end, start + above + first - column)
            }
        }
    }

    fn load<T: Field>(&self, memory: &dyn Memory) -> Result<Columns<T>, Fault> {
        // The columns to the right of a band hold nothing.
        let columns = match self.form {
            Form::Band { above, .. } => self.columns.min(self.rows.saturating_add(above)),
            _ => self.columns,
        };
        let count = match columns.checked_sub(1).map(|last| self.span(last)) {
            Some((rows, start)) if !rows.is_empty() => start + rows.len(),
            _ => 0,
        };
        Ok(Columns { stored: *self, data: load_numbers(memory, self.address, count, self.single)? })
    }
}

/// The elements of a [`Stored`].
struct Columns<T> {
    stored: Stored,
    data: Vec<T>,
}

impl<T: Field> Columns<T> {
    fn column(&self, column: usize) -> (Range<usize>, &[T]) {
        let (rows, start) = self.stored.span(column);
        let start = start.min(self.data.len());
        let end = start + rows.len();
        (rows, &self.data[start..end])
    }

    fn column_mut(&mut self, column: usize) -> (Range<usize>, &mut [T]) {
        let (rows, start) = self.stored.span(column);
        let start = start.min(self.data.len());
        let end = start + rows.len();
        (rows, &mut self.data[start..end])
    }

    /// A column of a triangle: its element on the diagonal, and the others with their rows.
    fn split(&self, column: usize) -> (T, Range<usize>, &[T]) {
        let (rows, data) = self.column(column);
        if rows.start == column {
            (data[0], rows.start + 1..rows.end, &data[1..])
        } else {
            (data[data.len() - 1], rows.start..rows.end - 1, &data[..data.len() - 1])
        }
    }

    /// Writes the elements; what lies between the columns stays.
    fn store(&self, memory: &dyn Memory) -> Result<(), Fault> {
        (0..self.stored.columns).try_for_each(|column| {
            let (_, start) = self.stored.span(column);
            let address = self.stored.address + (start * bytes_of::<T>(self.stored.single)) as u64;
            store_numbers(memory, address, self.column(column).1, self.stored.single)
        })
    }

    /// `y += alpha op(a) x`
    fn product(&self, alpha: T, op: Op, x: &[T], y: &mut [T]) {
        for column in 0..self.stored.columns {
            let (rows, data) = self.column(column);
            if op == Op::None {
                add(alpha * x[column], data, &mut y[rows]);
            } else {
                y[column] += alpha * dot_of(data, &x[rows], op == Op::Conjugate);
            }
        }
    }

    /// `y += alpha a x` for the whole of which this is one triangle.
    fn symmetric_product(&self, alpha: T, hermitian: bool, x: &[T], y: &mut [T]) {
        for column in 0..self.stored.columns {
            let (diagonal, rows, data) = self.split(column);
            let diagonal = if hermitian { T::from_real(diagonal.re()) } else { diagonal };
            y[column] += alpha * (diagonal * x[column] + dot_of(data, &x[rows.clone()], hermitian));
            add(alpha * x[column], data, &mut y[rows]);
        }
    }

    /// `op(a) x` for a triangle, with ones on the diagonal where `unit`.
    fn triangular_product(&self, op: Op, unit: bool, x: &[T]) -> Vec<T> {
        let mut y: Vec<T> = zeros(x.len());
        for column in 0..self.stored.columns {
            let (diagonal, rows, data) = self.split(column);
            y[column] += turned(diagonal, op, unit) * x[column];
            if op == Op::None {
                add(x[column], data, &mut y[rows]);
            } else {
                y[column] += dot_of(data, &x[rows], op == Op::Conjugate);
            }
        }
        y
    }

    /// `x = op(a)⁻¹ x` for a triangle, with ones on the diagonal where `unit`.
    fn solve(&self, upper: bool, op: Op, unit: bool, x: &mut [T]) {
        let n = self.stored.columns;
        for step in 0..n {
            // From the column of which all but one unknown is known.
            let column = if upper == (op == Op::None) { n - 1 - step } else { step };
            let (diagonal, rows, data) = self.split(column);
            let diagonal = turned(diagonal, op, unit);
            if op == Op::None {
                x[column] /= diagonal;
                add(-x[column], data, &mut x[rows]);
            } else {
                let known = dot_of(data, &x[rows], op == Op::Conjugate);
                x[column] = (x[column] - known) / diagonal;
            }
        }
    }
}

/// An element of the diagonal as op(a) has it.
fn turned<T: Field>(value: T, op: Op, unit: bool) -> T {
    match op {
        _ if unit => T::one(),
        Op::Conjugate => value.conj(),
        _ => value,
    }
}

/// `y += factor x`
fn add<T: Field>(factor: T, x: &[T], y: &mut [T]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += factor * *x);
}

/// A call with `alpha`, a matrix, `x`, `beta` and `y`: `run` adds the product to `y`.
fn multiply<T: Field>(
    call: &Call,
    stored: Stored,
    [wide, long]: [usize; 2],
    run: impl FnOnce(Columns<T>, T, &[T], &mut [T]) + Send + 'static,
) -> Result<Job, Problem> {
    let (x, y) = (call.vector("x", wide)?, call.vector("y", long)?);
    let (alpha, beta) = (call.scalar("alpha")?, call.scalar("beta")?);
    job(move |memory, _| {
        let (alpha, beta): (T, T) = (alpha.one(memory)?, beta.one(memory)?);
        // With beta 0, y is not read.
        let mut out = if beta == T::zero() { zeros(y.count) } else { y.load(memory)? };
        out.iter_mut().for_each(|value| *value *= beta);
        run(stored.load(memory)?, alpha, &x.load::<T>(memory)?, &mut out);
        y.store(memory, &out)
    })
}

fn general<T: Field>(call: &Call, stored: Stored) -> Result<Job, Problem> {
    let op = call.op("trans")?;
    let (long, wide) = op.stored(stored.rows, stored.columns);
    multiply::<T>(call, stored, [wide, long], move |a, alpha, x, y| a.product(alpha, op, x, y))
}

pub fn gemv<T: Field>(call: &Call) -> Result<Job, Problem> {
    general::<T>(call, Stored::of(call.matrix("a", call.size("m")?, call.size("n")?)?, Form::Whole))
}

pub fn gbmv<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (m, n, below, above) = (call.size("m")?, call.size("n")?, call.size("kl")?, call.size("ku")?);
    let place = call.matrix("a", below.saturating_add(above).saturating_add(1), n)?;
    general::<T>(call, Stored { rows: m, ..Stored::of(place, Form::Band { below, above }) })
}

fn symmetric<T: Field>(call: &Call, hermitian: bool) -> Result<Job, Problem> {
    let stored = Stored::one_of(call)?;
    let sizes = [stored.rows; 2];
    multiply::<T>(call, stored, sizes, move |a, alpha, x, y| a.symmetric_product(alpha, hermitian, x, y))
}

/// symv, sbmv and spmv
pub fn symv<T: Field>(call: &Call) -> Result<Job, Problem> {
    symmetric::<T>(call, false)
}

/// hemv, hbmv and hpmv
pub fn hemv<T: Field>(call: &Call) -> Result<Job, Problem> {
    symmetric::<T>(call, true)
}

fn outer<T: Field>(call: &Call, conjugate: bool) -> Result<Job, Problem> {
    let (m, n) = (call.size("m")?, call.size("n")?);
    let (x, y, place) = (call.vector("x", m)?, call.vector("y", n)?, call.matrix("a", m, n)?);
    let alpha = call.scalar("alpha")?;
    job(move |memory, _| {
        let alpha: T = alpha.one(memory)?;
        let (x, y, mut a) = (x.load::<T>(memory)?, y.load::<T>(memory)?, place.load::<T>(memory)?);
        for (column, y) in y.iter().enumerate() {
            let factor = alpha * if conjugate { y.conj() } else { *y };
            a.column_mut(column).iter_mut().zip(&x).for_each(|(a, x)| *a += *x * factor);
        }
        place.store(memory, &a)
    })
}

pub fn ger<T: Field>(call: &Call) -> Result<Job, Problem> {
    outer::<T>(call, false)
}

pub fn gerc<T: Field>(call: &Call) -> Result<Job, Problem> {
    outer::<T>(call, true)
}

/// `a += term(row, column)` in one triangle; a Hermitian result has a real diagonal.
fn update<T: Field>(
    memory: &dyn Memory,
    stored: Stored,
    hermitian: bool,
    term: impl Fn(usize, usize) -> T,
) -> Result<(), Fault> {
    let mut a = stored.load::<T>(memory)?;
    for column in 0..stored.columns {
        let (rows, data) = a.column_mut(column);
        for (row, value) in rows.zip(data) {
            *value += term(row, column);
            if hermitian && row == column {
                *value = T::from_real(value.re());
            }
        }
    }
    a.store(memory)
}

fn rank1<T: Field>(call: &Call, hermitian: bool) -> Result<Job, Problem> {
    let stored = Stored::one_of(call)?;
    let (x, alpha) = (call.vector("x", stored.rows)?, call.scalar("alpha")?);
    job(move |memory, _| {
        let alpha: T = if hermitian { T::from_real(alpha.one(memory)?) } else { alpha.one(memory)? };
        let x = x.load::<T>(memory)?;
        let other = |value: T| if hermitian { value.conj() } else { value };
        update(memory, stored, hermitian, |row, column| alpha * x[row] * other(x[column]))
    })
}

/// syr and spr
pub fn syr<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank1::<T>(call, false)
}

/// her and hpr
pub fn her<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank1::<T>(call, true)
}

fn rank2<T: Field>(call: &Call, hermitian: bool) -> Result<Job, Problem> {
    let stored = Stored::one_of(call)?;
    let (x, y, alpha) = (call.vector("x", stored.rows)?, call.vector("y", stored.rows)?, call.scalar("alpha")?);
    job(move |memory, _| {
        let alpha: T = alpha.one(memory)?;
        let (x, y) = (x.load::<T>(memory)?, y.load::<T>(memory)?);
        let other = |value: T| if hermitian { value.conj() } else { value };
        update(memory, stored, hermitian, |row, column| {
            alpha * x[row] * other(y[column]) + other(alpha) * y[row] * other(x[column])
        })
    })
}

/// syr2 and spr2
pub fn syr2<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank2::<T>(call, false)
}

/// her2 and hpr2
pub fn her2<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank2::<T>(call, true)
}

/// trmv, tbmv and tpmv
pub fn trmv<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (stored, op, unit) = (Stored::one_of(call)?, call.op("trans")?, call.flag("diag")?);
    let x = call.vector("x", stored.rows)?;
    job(move |memory, _| {
        let out = stored.load::<T>(memory)?.triangular_product(op, unit, &x.load::<T>(memory)?);
        x.store(memory, &out)
    })
}

/// trsv, tbsv and tpsv
pub fn trsv<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (stored, upper, op, unit) = (Stored::one_of(call)?, call.upper()?, call.op("trans")?, call.flag("diag")?);
    let x = call.vector("x", stored.rows)?;
    job(move |memory, _| {
        let mut out = x.load::<T>(memory)?;
        stored.load::<T>(memory)?.solve(upper, op, unit, &mut out);
        x.store(memory, &out)
    })
}

/// The elements of one triangle in another form.
fn moved<T: Field>(memory: &dyn Memory, from: Stored, to: Stored) -> Result<(), Fault> {
    let given = from.load::<T>(memory)?;
    (0..from.columns).try_for_each(|column| {
        let address = to.address + (to.span(column).1 * bytes_of::<T>(to.single)) as u64;
        store_numbers(memory, address, given.column(column).1, to.single)
    })
}

pub fn tpttr<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (from, to) = (Stored::packed(call)?, Stored::triangle(call)?);
    job(move |memory, _| moved::<T>(memory, from, to))
}

pub fn trttp<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (from, to) = (Stored::triangle(call)?, Stored::packed(call)?);
    job(move |memory, _| moved::<T>(memory, from, to))
}
