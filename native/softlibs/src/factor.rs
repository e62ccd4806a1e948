//! Factorisations in LAPACK's forms.

use crate::arguments::triangle;
use crate::blas::level3::solve;
use crate::memory::Matrix;
use crate::number::{Field, Op, Part, PartMut, applied, gemm, gemm_of_parts};
use num_traits::{Float, Zero};

/// Columns that are factored one by one, before all of them change the rest in one product.
const BLOCK: usize = 32;

/// Columns of a matrix from a row on.
fn part<T>(data: &[T], lead: usize, first: usize, columns: usize) -> Part<'_, T> {
    Part { data: data.get(first..).unwrap_or_default(), rows: lead - first, columns, lead }
}

/// Columns of a matrix from a row on, to be changed.
fn part_mut<T>(data: &mut [T], lead: usize, first: usize) -> PartMut<'_, T> {
    let columns = data.len() / lead.max(1);
    PartMut { data: data.get_mut(first..).unwrap_or_default(), rows: lead - first, columns, lead }
}

/// Some columns of a matrix from a row on, copied.
fn panel<T: Field>(a: &Matrix<T>, first: usize, columns: usize) -> Matrix<T> {
    Matrix::build(a.rows - first, columns, |row, column| a.at(first + row, first + column))
}

/// Writes such a copy back.
fn put_panel<T: Field>(a: &mut Matrix<T>, first: usize, panel: &Matrix<T>) {
    for column in 0..panel.columns {
        a.column_mut(first + column)[first..].copy_from_slice(panel.column(column));
    }
}

/// LU with partial pivoting in place: row exchanges from 1, and 0 or the first zero pivot (from 1).
pub fn lu<T: Field>(a: &mut Matrix<T>, pivot: bool) -> (Vec<i32>, i32) {
    let (m, few) = (a.rows, a.rows.min(a.columns));
    if few <= BLOCK {
        return lu_by_columns(a, pivot);
    }
    let (mut pivots, mut info) = (Vec::with_capacity(few), 0);
    for at in (0..few).step_by(BLOCK) {
        let width = BLOCK.min(few - at);
        let mut factors = panel(a, at, width);
        let (exchanged, zero) = lu_by_columns(&mut factors, pivot);
        if zero != 0 && info == 0 {
            info = at as i32 + zero;
        }
        for column in a.data.chunks_exact_mut(m) {
            for (step, other) in exchanged.iter().enumerate() {
                column.swap(at + step, at + *other as usize - 1);
            }
        }
        put_panel(a, at, &factors);
        pivots.extend(exchanged.iter().map(|other| at as i32 + other));
        let right = &mut a.data[(at + width) * m..];
        let mut above = Matrix::zero(width, right.len() / m);
        for (column, own) in right.chunks_exact_mut(m).zip(above.data.chunks_exact_mut(width)) {
            let (solved, _) = column[at..].split_at_mut(width);
            for step in 0..width {
                let (value, below) = (solved[step], &factors.column(step)[step + 1..width]);
                solved[step + 1..].iter_mut().zip(below).for_each(|(x, factor)| *x -= *factor * value);
            }
            own.copy_from_slice(solved);
        }
        let below = part(&factors.data, m - at, width, width);
        gemm_of_parts(-T::one(), below, Op::None, (&above).into(), Op::None, T::one(), part_mut(right, m, at + width));
    }
    (pivots, info)
}

fn lu_by_columns<T: Field>(a: &mut Matrix<T>, pivot: bool) -> (Vec<i32>, i32) {
    let (m, n) = (a.rows, a.columns);
    let mut pivots = Vec::with_capacity(m.min(n));
    let mut info = 0;
    for at in 0..m.min(n) {
        let column = a.column(at);
        let best = if pivot {
            (at..m).fold(at, |best, row| if column[row].modulus() > column[best].modulus() { row } else { best })
        } else {
            at
        };
        pivots.push(best as i32 + 1);
        if best != at {
            (0..n).for_each(|column| a.column_mut(column).swap(at, best));
        }
        let value = a.at(at, at);
        if value.is_zero() {
            info = if info == 0 { at as i32 + 1 } else { info };
            continue;
        }
        a.column_mut(at)[at + 1..].iter_mut().for_each(|below| *below /= value);
        let (left, right) = a.data.split_at_mut((at + 1) * m);
        let factors = &left[at * m + at + 1..(at + 1) * m];
        for column in right.chunks_exact_mut(m) {
            let value = column[at];
            if !value.is_zero() {
                column[at + 1..].iter_mut().zip(factors).for_each(|(below, factor)| *below -= *factor * value);
            }
        }
    }
    (pivots, info)
}

/// Exchanges the rows of `b` as `pivots` says, forwards or backwards.
pub fn exchange<T: Field>(b: &mut Matrix<T>, pivots: &[i32], forwards: bool) {
    let rows = b.rows;
    let mut swap = |(at, pivot): (usize, &i32)| {
        let other = (*pivot as usize).wrapping_sub(1);
        if other != at && other < rows {
            b.data.chunks_exact_mut(rows).for_each(|column| column.swap(at, other));
        }
    };
    if forwards {
        pivots.iter().enumerate().for_each(&mut swap)
    } else {
        pivots.iter().enumerate().rev().for_each(swap)
    }
}

/// QR by Householder reflections in place: the factors of the reflections.
pub fn qr<T: Field>(a: &mut Matrix<T>) -> Vec<T> {
    let (m, few) = (a.rows, a.rows.min(a.columns));
    if few <= BLOCK {
        return qr_by_columns(a);
    }
    let mut taus = Vec::with_capacity(few);
    for at in (0..few).step_by(BLOCK) {
        let width = BLOCK.min(few - at);
        let mut reflections = panel(a, at, width);
        let factors = qr_by_columns(&mut reflections);
        put_panel(a, at, &reflections);
        let right = &mut a.data[(at + width) * m..];
        Reflections::of(reflections, &factors).apply(true, &mut part_mut(right, m, at));
        taus.extend(factors);
    }
    taus
}

/// Some reflections as one: 1 - v t vᴴ (Schreiber and Van Loan, "A storage-efficient WY representation", 1989).
struct Reflections<T> {
    v: Matrix<T>,
    /// The upper triangle of a small matrix.
    t: Matrix<T>,
}

impl<T: Field> Reflections<T> {
    /// From the lower triangle of a panel and the factors of its columns.
    fn of(mut v: Matrix<T>, taus: &[T]) -> Self {
        let width = taus.len();
        for at in 0..width {
            let column = v.column_mut(at);
            column[..at].fill(T::zero());
            column[at] = T::one();
        }
        let mut products = Matrix::zero(width, width);
        gemm(T::one(), &v, Op::Conjugate, &v, Op::None, T::zero(), &mut products);
        let mut t = Matrix::zero(width, width);
        for (at, tau) in taus.iter().enumerate() {
            if tau.is_zero() {
                continue;
            }
            *t.at_mut(at, at) = *tau;
            for row in 0..at {
                let sum: T = (row..at).map(|k| t.at(row, k) * products.at(k, at)).sum();
                *t.at_mut(row, at) = -*tau * sum;
            }
        }
        Self { v, t }
    }

    /// Multiplies `c` from the left, by the conjugate transpose if `adjoint`.
    fn apply(&self, adjoint: bool, c: &mut PartMut<'_, T>) {
        let width = self.t.rows;
        let (mut inner, mut turned) = (Matrix::zero(width, c.columns), Matrix::zero(width, c.columns));
        let whole = Part { data: &*c.data, rows: c.rows, columns: c.columns, lead: c.lead };
        gemm_of_parts(T::one(), (&self.v).into(), Op::Conjugate, whole, Op::None, T::zero(), (&mut inner).into());
        let op = if adjoint { Op::Conjugate } else { Op::None };
        gemm(T::one(), &self.t, op, &inner, Op::None, T::zero(), &mut turned);
        let to = PartMut { data: &mut *c.data, rows: c.rows, columns: c.columns, lead: c.lead };
        gemm_of_parts(-T::one(), (&self.v).into(), Op::None, (&turned).into(), Op::None, T::one(), to);
    }
}

fn qr_by_columns<T: Field>(a: &mut Matrix<T>) -> Vec<T> {
    let (m, n) = (a.rows, a.columns);
    let mut taus = Vec::with_capacity(m.min(n));
    for at in 0..m.min(n) {
        let tau = reflection(&mut a.column_mut(at)[at..]);
        taus.push(tau);
        if tau.is_zero() {
            continue;
        }
        let (left, right) = a.data.split_at_mut((at + 1) * m);
        let vector = &left[at * m + at + 1..(at + 1) * m];
        for column in right.chunks_exact_mut(m) {
            reflect(vector, tau.conj(), &mut column[at..]);
        }
    }
    taus
}

/// The reflection H = 1 - tau v vᴴ with Hᴴ x = (beta, 0, …) and beta real: `x` becomes beta and v without its first
/// element, which is 1.
pub fn reflection<T: Field>(x: &mut [T]) -> T {
    let (alpha, below) = (x[0], crate::blas::level1::norm_of(&x[1..]));
    if below.is_zero() && alpha.im().is_zero() {
        return T::zero();
    }
    let length = (alpha.square() + below * below).sqrt();
    let beta = if alpha.re() > T::Real::zero() { -length } else { length };
    let scale = T::one() / (alpha - T::from_real(beta));
    x[0] = T::from_real(beta);
    x[1..].iter_mut().for_each(|value| *value *= scale);
    T::one() - alpha / T::from_real(beta)
}

/// `x -= tau v vᴴ x` with v = (1, vector).
pub fn reflect<T: Field>(vector: &[T], tau: T, x: &mut [T]) {
    let sum: T = x[0] + vector.iter().zip(&x[1..]).map(|(v, x)| v.conj() * *x).sum::<T>();
    let factor = tau * sum;
    x[0] -= factor;
    x[1..].iter_mut().zip(vector).for_each(|(x, v)| *x -= *v * factor);
}

/// Multiplies `c` from the left by Q (or its conjugate transpose) of a QR factorisation.
pub fn apply_q<T: Field>(qr: &Matrix<T>, taus: &[T], adjoint: bool, c: &mut Matrix<T>) {
    if taus.len() > BLOCK && c.columns > BLOCK {
        let rows = c.rows;
        let mut some = |at: usize| {
            let taus = &taus[at..(at + BLOCK).min(taus.len())];
            let reflections = Reflections::of(panel(qr, at, taus.len()), taus);
            reflections.apply(adjoint, &mut part_mut(&mut c.data, rows, at));
        };
        let blocks = (0..taus.len()).step_by(BLOCK);
        return if adjoint { blocks.for_each(&mut some) } else { blocks.rev().for_each(some) };
    }
    let mut one = |at: usize| {
        let tau = if adjoint { taus[at].conj() } else { taus[at] };
        let vector = &qr.column(at)[at + 1..];
        let rows = c.rows;
        c.data.chunks_exact_mut(rows.max(1)).for_each(|column| reflect(vector, tau, &mut column[at..]));
    };
    if adjoint { (0..taus.len()).for_each(&mut one) } else { (0..taus.len()).rev().for_each(one) }
}

/// Cholesky's factor in place, of the triangle that is given: 0, or the first leading minor (from 1) that is not
/// positive definite.
pub fn cholesky<T: Field>(a: &mut Matrix<T>, upper: bool) -> i32 {
    if upper {
        let mut lower = applied(a, Op::Conjugate);
        let info = cholesky(&mut lower, false);
        *a = applied(&lower, Op::Conjugate);
        return info;
    }
    let n = a.rows;
    if n <= BLOCK {
        return cholesky_by_columns(a);
    }
    for at in (0..n).step_by(BLOCK) {
        let width = BLOCK.min(n - at);
        let mut corner = Matrix::build(width, width, |row, column| a.at(at + row, at + column));
        let info = cholesky_by_columns(&mut corner);
        let mut below = panel(a, at, width);
        for column in 0..width {
            below.column_mut(column)[..width].copy_from_slice(corner.column(column));
        }
        if info != 0 {
            put_panel(a, at, &below);
            return at as i32 + info;
        }
        for column in 0..width {
            let (left, right) = below.data.split_at_mut(column * (n - at));
            let own = &mut right[width..n - at];
            for (before, known) in left.chunks_exact(n - at).enumerate() {
                let factor = corner.at(column, before).conj();
                own.iter_mut().zip(&known[width..]).for_each(|(x, known)| *x -= *known * factor);
            }
            let root = corner.at(column, column);
            own.iter_mut().for_each(|x| *x /= root);
        }
        put_panel(a, at, &below);
        for first in (at + width..n).step_by(BLOCK) {
            let columns = BLOCK.min(n - first);
            let left = part(&below.data, n - at, first - at, width);
            let right = Part { rows: columns, ..left };
            let to = part_mut(&mut a.data[first * n..(first + columns) * n], n, first);
            gemm_of_parts(-T::one(), left, Op::None, right, Op::Conjugate, T::one(), to);
        }
    }
    0
}

fn cholesky_by_columns<T: Field>(a: &mut Matrix<T>) -> i32 {
    let n = a.rows;
    for at in 0..n {
        let diagonal = a.at(at, at).re();
        if diagonal.is_nan() || diagonal <= T::Real::zero() {
            return at as i32 + 1;
        }
        let root = T::from_real(diagonal.sqrt());
        *a.at_mut(at, at) = root;
        a.column_mut(at)[at + 1..].iter_mut().for_each(|below| *below /= root);
        let (left, right) = a.data.split_at_mut((at + 1) * n);
        let factors = &left[at * n..];
        for (index, column) in right.chunks_exact_mut(n).enumerate() {
            let first = at + 1 + index;
            let factor = factors[first].conj();
            column[first..].iter_mut().zip(&factors[first..]).for_each(|(value, below)| *value -= *below * factor);
        }
    }
    0
}

/// `b = a⁻¹ b` with Cholesky's factor of `a`.
pub fn solve_cholesky<T: Field>(factor: &Matrix<T>, upper: bool, b: &mut Matrix<T>) {
    let factor = triangle(factor, upper, false);
    let lower = if upper { applied(&factor, Op::Conjugate) } else { factor };
    solve(&lower, false, b);
    solve(&applied(&lower, Op::Conjugate), true, b);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use num_complex::Complex64;

    /// Numbers between -0.5 and 0.5 that are the same each time.
    pub fn random<T: Field>(rows: usize, columns: usize) -> Matrix<T> {
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let mut a = Matrix::zero(rows, columns);
        a.data.iter_mut().for_each(|value| *value = T::from_parts(next(), next()));
        a
    }

    pub fn product<T: Field>(a: &Matrix<T>, op_a: Op, b: &Matrix<T>, op_b: Op) -> Matrix<T> {
        let ((rows, _), (_, columns)) = (op_a.stored(a.rows, a.columns), op_b.stored(b.rows, b.columns));
        let mut c = Matrix::zero(rows, columns);
        gemm(T::one(), a, op_a, b, op_b, T::zero(), &mut c);
        c
    }

    pub fn assert_same<T: Field<Real = f64>>(a: &Matrix<T>, b: &Matrix<T>, what: &str) {
        assert_eq!((a.rows, a.columns), (b.rows, b.columns), "{what}");
        let apart = a.data.iter().zip(&b.data).fold(0f64, |most, (a, b)| most.max((*a - *b).modulus()));
        assert!(apart < 1e-11, "{what}: {apart}");
    }

    const SIZES: [(usize, usize); 5] = [(BLOCK, BLOCK), (BLOCK + 1, BLOCK + 1), (100, 70), (70, 100), (97, 97)];

    fn factors_multiply_to_the_matrix<T: Field<Real = f64>>() {
        for (m, n) in SIZES {
            let (a, few, what) = (random::<T>(m, n), m.min(n), format!("{m} {n}"));
            for pivot in [true, false] {
                // Without pivoting it needs a large diagonal.
                let heavy = |row, column| if row == column && !pivot { T::from_real(n as f64) } else { T::zero() };
                let a = Matrix::build(m, n, |row, column| a.at(row, column) + heavy(row, column));
                let (mut blocks, mut columns) = (a.clone(), a.clone());
                let (by_blocks, by_columns) = (lu(&mut blocks, pivot), lu_by_columns(&mut columns, pivot));
                assert_eq!(by_blocks, by_columns, "{what}");
                assert_same(&blocks, &columns, &what);
                let one = |row, column| if row == column { T::one() } else { T::zero() };
                let left = |row, column| if row > column { blocks.at(row, column) } else { one(row, column) };
                let right = |row, column| if row > column { T::zero() } else { blocks.at(row, column) };
                let (left, right) = (Matrix::build(m, few, left), Matrix::build(few, n, right));
                let mut again = product(&left, Op::None, &right, Op::None);
                exchange(&mut again, &by_blocks.0, false);
                assert_same(&again, &a, &what);
            }
            let mut factors = a.clone();
            let taus = qr(&mut factors);
            let mut q = Matrix::build(m, m, |row, column| if row == column { T::one() } else { T::zero() });
            apply_q(&factors, &taus, false, &mut q);
            let right = |row, column| if row > column { T::zero() } else { factors.at(row, column) };
            assert_same(&product(&q, Op::None, &Matrix::build(m, n, right), Op::None), &a, &what);
            assert_eq!((0..few).find(|at| factors.at(*at, *at).im() != 0.0), None, "real on the diagonal");
            apply_q(&factors, &taus, true, &mut q);
            let one = Matrix::build(m, m, |row, column| if row == column { T::one() } else { T::zero() });
            assert_same(&q, &one, &what);
            // As a product of few columns, which takes the reflections one by one.
            let (mut few_columns, mut all) = (random::<T>(m, BLOCK), random::<T>(m, BLOCK + 1));
            let first = few_columns.data.len();
            apply_q(&factors, &taus, true, &mut few_columns);
            all.data[..first].copy_from_slice(&random::<T>(m, BLOCK).data);
            apply_q(&factors, &taus, true, &mut all);
            all.columns = BLOCK;
            all.data.truncate(first);
            assert_same(&all, &few_columns, &what);
            let mut positive = product(&a, Op::None, &a, Op::Conjugate);
            (0..m).for_each(|at| *positive.at_mut(at, at) += T::one());
            for upper in [false, true] {
                let mut factor = positive.clone();
                assert_eq!(cholesky(&mut factor, upper), 0);
                let factor = triangle(&factor, upper, false);
                let ops = if upper { [Op::Conjugate, Op::None] } else { [Op::None, Op::Conjugate] };
                assert_same(&product(&factor, ops[0], &factor, ops[1]), &positive, &what);
            }
        }
    }

    #[test]
    fn factors_of_several_blocks_multiply_to_the_matrix() {
        factors_multiply_to_the_matrix::<f64>();
        factors_multiply_to_the_matrix::<Complex64>();
    }

    #[test]
    fn what_cannot_be_factored_is_told_by_its_place_in_any_block() {
        for at in [0, BLOCK - 1, BLOCK, 70, 99] {
            let mut zero: Matrix<f64> = random(100, 100);
            zero.column_mut(at).fill(0.0);
            assert_eq!(lu(&mut zero, true).1, at as i32 + 1);
            for upper in [false, true] {
                let mut negative = Matrix::build(100, 100, |row, column| if row == column { 2.0 } else { 0.0 });
                *negative.at_mut(at, at) = -1.0;
                assert_eq!(cholesky::<f64>(&mut negative, upper), at as i32 + 1);
            }
        }
    }
}
