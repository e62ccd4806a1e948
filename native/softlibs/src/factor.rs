//! Factorisations in LAPACK's forms.

use crate::arguments::triangle;
use crate::blas::level3::solve;
use crate::memory::Matrix;
use crate::number::{Field, Op, applied};
use num_traits::{Float, Zero};

/// LU with partial pivoting in place: row exchanges from 1, and 0 or the first zero pivot (from 1).
pub fn lu<T: Field>(a: &mut Matrix<T>, pivot: bool) -> (Vec<i32>, i32) {
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
