//! Level 2: a matrix and vectors.

use crate::Problem;
use crate::arguments::{Call, mirrored, triangle};
use crate::memory::{Matrix, Memory, Place, load_numbers, store_numbers};
use crate::number::{Field, Op, applied};
use crate::objects::{Job, job};

/// `alpha op(a) x + beta y`
pub fn product<T: Field>(alpha: T, a: &Matrix<T>, op: Op, x: &[T], beta: T, y: &mut [T]) {
    for value in y.iter_mut() {
        *value = if beta == T::zero() { T::zero() } else { beta * *value };
    }
    for column in 0..a.columns {
        match op {
            Op::None => {
                let factor = alpha * x[column];
                y.iter_mut().zip(a.column(column)).for_each(|(y, a)| *y += factor * *a);
            }
            Op::Transpose => y[column] += alpha * a.column(column).iter().zip(x).map(|(a, x)| *a * *x).sum::<T>(),
            Op::Conjugate => {
                y[column] += alpha * a.column(column).iter().zip(x).map(|(a, x)| a.conj() * *x).sum::<T>();
            }
        }
    }
}

/// A call with `alpha`, a matrix `a`, `x`, `beta` and `y`; the matrix is made by `make`.
fn multiply<T: Field>(
    call: &Call,
    op: Op,
    [rows, columns]: [usize; 2],
    place: Place,
    make: impl FnOnce(Matrix<T>) -> Matrix<T> + Send + 'static,
) -> Result<Job, Problem> {
    let (wide, long) = if op == Op::None { (columns, rows) } else { (rows, columns) };
    let (x, y) = (call.vector("x", wide)?, call.vector("y", long)?);
    let (alpha, beta) = (call.scalar("alpha")?, call.scalar("beta")?);
    job(move |memory, _| {
        let (alpha, beta): (T, T) = (alpha.one(memory)?, beta.one(memory)?);
        let matrix = make(place.load(memory)?);
        let mut out = if beta == T::zero() { vec![T::zero(); y.count] } else { y.load(memory)? };
        product(alpha, &matrix, op, &x.load::<T>(memory)?, beta, &mut out);
        y.store(memory, &out)
    })
}

pub fn gemv<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (m, n) = (call.size("m")?, call.size("n")?);
    multiply::<T>(call, call.op("trans")?, [m, n], call.matrix("a", m, n)?, |matrix| matrix)
}

/// A band matrix, written out.
pub fn gbmv<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (m, n, kl, ku) = (call.size("m")?, call.size("n")?, call.size("kl")?, call.size("ku")?);
    let band = call.matrix("a", kl + ku + 1, n)?;
    multiply::<T>(call, call.op("trans")?, [m, n], band, move |band| {
        Matrix::build(m, n, |row, column| {
            let inside = row + ku >= column && row <= column + kl;
            if inside { band.at(ku + row - column, column) } else { T::zero() }
        })
    })
}

fn symmetric<T: Field>(call: &Call, hermitian: bool) -> Result<Job, Problem> {
    let (n, upper) = (call.size("n")?, call.upper()?);
    multiply::<T>(call, Op::None, [n, n], call.matrix("a", n, n)?, move |a| mirrored(&a, upper, hermitian))
}

pub fn symv<T: Field>(call: &Call) -> Result<Job, Problem> {
    symmetric::<T>(call, false)
}

pub fn hemv<T: Field>(call: &Call) -> Result<Job, Problem> {
    symmetric::<T>(call, true)
}

pub fn sbmv<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (n, k, upper) = (call.size("n")?, call.size("k")?, call.upper()?);
    let band = call.matrix("a", k + 1, n)?;
    multiply::<T>(call, Op::None, [n, n], band, move |band| {
        Matrix::build(n, n, |row, column| {
            let (low, high) = (row.min(column), row.max(column));
            if high - low > k {
                T::zero()
            } else if upper {
                band.at(k + low - high, high)
            } else {
                band.at(high - low, low)
            }
        })
    })
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
    place: Place,
    upper: bool,
    hermitian: bool,
    term: impl Fn(usize, usize) -> T,
) -> Result<(), crate::Fault> {
    let mut a = place.load::<T>(memory)?;
    for column in 0..a.columns {
        let rows = if upper { 0..column + 1 } else { column..a.rows };
        for row in rows {
            let value = a.at(row, column) + term(row, column);
            *a.at_mut(row, column) = if hermitian && row == column { T::from_real(value.re()) } else { value };
        }
    }
    place.store_triangle(memory, &a, upper)
}

fn rank1<T: Field>(call: &Call, hermitian: bool) -> Result<Job, Problem> {
    let (n, upper) = (call.size("n")?, call.upper()?);
    let (x, place, alpha) = (call.vector("x", n)?, call.matrix("a", n, n)?, call.scalar("alpha")?);
    job(move |memory, _| {
        let alpha: T = if hermitian { T::from_real(alpha.one(memory)?) } else { alpha.one(memory)? };
        let x = x.load::<T>(memory)?;
        let other = |value: T| if hermitian { value.conj() } else { value };
        update(memory, place, upper, hermitian, |row, column| alpha * x[row] * other(x[column]))
    })
}

pub fn syr<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank1::<T>(call, false)
}

pub fn her<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank1::<T>(call, true)
}

fn rank2<T: Field>(call: &Call, hermitian: bool) -> Result<Job, Problem> {
    let (n, upper) = (call.size("n")?, call.upper()?);
    let (x, y, place) = (call.vector("x", n)?, call.vector("y", n)?, call.matrix("a", n, n)?);
    let alpha = call.scalar("alpha")?;
    job(move |memory, _| {
        let alpha: T = alpha.one(memory)?;
        let (x, y) = (x.load::<T>(memory)?, y.load::<T>(memory)?);
        let other = |value: T| if hermitian { value.conj() } else { value };
        update(memory, place, upper, hermitian, |row, column| {
            alpha * x[row] * other(y[column]) + other(alpha) * y[row] * other(x[column])
        })
    })
}

pub fn syr2<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank2::<T>(call, false)
}

pub fn her2<T: Field>(call: &Call) -> Result<Job, Problem> {
    rank2::<T>(call, true)
}

pub fn trmv<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (n, upper, op, unit) = (call.size("n")?, call.upper()?, call.op("trans")?, call.flag("diag")?);
    let (x, place) = (call.vector("x", n)?, call.matrix("a", n, n)?);
    job(move |memory, _| {
        let a = triangle(&place.load::<T>(memory)?, upper, unit);
        let mut out = vec![T::zero(); n];
        product(T::one(), &a, op, &x.load::<T>(memory)?, T::zero(), &mut out);
        x.store(memory, &out)
    })
}

pub fn trsv<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (n, upper, op, unit) = (call.size("n")?, call.upper()?, call.op("trans")?, call.flag("diag")?);
    let (x, place) = (call.vector("x", n)?, call.matrix("a", n, n)?);
    job(move |memory, _| {
        let a = applied(&triangle(&place.load::<T>(memory)?, upper, unit), op);
        let mut b = Matrix { rows: n, columns: 1, data: x.load::<T>(memory)? };
        super::level3::solve(&a, upper == (op == Op::None), &mut b);
        x.store(memory, &b.data)
    })
}

/// Where an element of a packed triangle lies.
fn packed(n: usize, upper: bool, row: usize, column: usize) -> usize {
    if upper { row + column * (column + 1) / 2 } else { row + (2 * n - column - 1) * column / 2 }
}

pub fn tpttr<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (n, upper, from, place) =
        (call.size("n")?, call.upper()?, call.device("ap")?, call.matrix("a", call.size("n")?, call.size("n")?)?);
    job(move |memory, _| {
        let given: Vec<T> = load_numbers(memory, from, n * (n + 1) / 2, place.single)?;
        let inside = |row: usize, column: usize| if upper { row <= column } else { row >= column };
        let whole =
            Matrix::build(
                n,
                n,
                |row, column| {
                    if inside(row, column) { given[packed(n, upper, row, column)] } else { T::zero() }
                },
            );
        place.store_triangle(memory, &whole, upper)
    })
}

pub fn trttp<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (n, upper, to, place) =
        (call.size("n")?, call.upper()?, call.device("ap")?, call.matrix("a", call.size("n")?, call.size("n")?)?);
    job(move |memory, _| {
        let a = place.load::<T>(memory)?;
        let mut out = vec![T::zero(); n * (n + 1) / 2];
        for column in 0..n {
            let rows = if upper { 0..column + 1 } else { column..n };
            for row in rows {
                out[packed(n, upper, row, column)] = a.at(row, column);
            }
        }
        store_numbers(memory, to, &out, place.single)
    })
}
