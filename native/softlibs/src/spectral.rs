//! Eigenvalues of Hermitian matrices and singular values: Householder reflections to a real tridiagonal or bidiagonal
//! matrix, then shifted QL or QR steps (Golub and Van Loan, "Matrix Computations", chapters 8.3 and 8.6).

use crate::factor::{apply_q, reflection};
use crate::memory::Matrix;
use crate::number::{Field, Op, applied};

/// A number in double precision.
pub trait Double: Field<Real = f64> {}
impl<T: Field<Real = f64>> Double for T {}

/// Steps for one value; two or three are usual.
const MOST_STEPS: usize = 75;

/// Values and, where wanted, the vectors that belong to them: column by column.
pub struct Eigen<T> {
    /// Ascending.
    pub values: Vec<f64>,
    pub vectors: Matrix<T>,
}

/// `a = u s vᴴ`.
pub struct Singular<T> {
    /// Descending.
    pub values: Vec<f64>,
    pub u: Matrix<T>,
    pub v: Matrix<T>,
}

/// Eigenvalues of a Hermitian matrix, of which both triangles are given; none when the steps do not converge, as with
/// numbers that are not finite.
pub fn eigen<T: Double>(mut a: Matrix<T>, vectors: bool) -> Option<Eigen<T>> {
    let n = a.rows;
    let scale = scale_down(&mut a)?;
    let mut off = Vec::with_capacity(n);
    let mut taus = Vec::with_capacity(n);
    for at in 0..n.saturating_sub(1) {
        let tau = reflection(&mut a.column_mut(at)[at + 1..]);
        off.push(a.at(at + 1, at).re());
        taus.push(tau);
        if tau != T::zero() {
            reflect_both_sides(&mut a, at + 1, tau);
        }
    }
    let mut values: Vec<f64> = (0..n).map(|at| a.at(at, at).re()).collect();
    let basis = if vectors { unshifted(&a, &taus) } else { Matrix::zero(0, n) };
    let mut basis = Basis(basis);
    ql(&mut values, off, &mut basis)?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    Some(Eigen { values: order.iter().map(|at| values[*at] * scale).collect(), vectors: basis.ordered(&order) })
}

/// `a = Hᴴ a H` on the rows and columns from `first` on, with the reflection that lies in the column before.
fn reflect_both_sides<T: Double>(a: &mut Matrix<T>, first: usize, tau: T) {
    let n = a.rows;
    let (left, right) = a.data.split_at_mut(first * n);
    let mut v = left[(first - 1) * n + first..].to_vec();
    v[0] = T::one();
    // w = tau a v - ½ |tau|² (vᴴ a v) v
    let mut w = vec![T::zero(); n - first];
    for (column, factor) in right.chunks_exact(n).zip(&v) {
        let factor = *factor * tau;
        w.iter_mut().zip(&column[first..]).for_each(|(w, value)| *w += *value * factor);
    }
    let product: T = w.iter().zip(&v).map(|(w, v)| w.conj() * *v).sum();
    let half = tau * product * T::from_real(0.5);
    w.iter_mut().zip(&v).for_each(|(w, v)| *w -= half * *v);
    for (index, column) in right.chunks_exact_mut(n).enumerate() {
        let (v_here, w_here) = (v[index].conj(), w[index].conj());
        let both = v.iter().zip(&w);
        column[first..].iter_mut().zip(both).for_each(|(value, (v, w))| *value -= *v * w_here + *w * v_here);
    }
}

/// The product of reflections of which the first begins in the second row of the first column.
fn unshifted<T: Double>(reflections: &Matrix<T>, taus: &[T]) -> Matrix<T> {
    let n = reflections.columns;
    let one = |row: usize, column: usize| if row == column { T::one() } else { T::zero() };
    if n < 2 {
        return Matrix::build(n, n, one);
    }
    let lower = Matrix::build(n - 1, n - 1, |row, column| reflections.at(row + 1, column));
    let mut inner = Matrix::build(n - 1, n - 1, one);
    apply_q(&lower, taus, false, &mut inner);
    Matrix::build(
        n,
        n,
        |row, column| {
            if row == 0 || column == 0 { one(row, column) } else { inner.at(row - 1, column - 1) }
        },
    )
}

/// Divides by the largest part of an element, so that squares neither overflow nor vanish; none where one is not
/// finite.
fn scale_down<T: Double>(a: &mut Matrix<T>) -> Option<f64> {
    let largest = a.data.iter().fold(0.0, |most: f64, value| {
        let size = value.re().abs() + value.im().abs();
        if size > most || size.is_nan() { size } else { most }
    });
    if !largest.is_finite() {
        return None;
    }
    if largest == 0.0 {
        return Some(1.0);
    }
    let factor = T::from_real(largest);
    a.data.iter_mut().for_each(|value| *value /= factor);
    Some(largest)
}

/// Columns that are rotated in pairs.
struct Basis<T>(Matrix<T>);

impl<T: Double> Basis<T> {
    /// Columns x and y become c x + s y and c y - s x.
    fn rotate(&mut self, x: usize, y: usize, c: f64, s: f64) {
        let rows = self.0.rows;
        let (low, high) = (x.min(y), x.max(y));
        let (left, right) = self.0.data.split_at_mut(high * rows);
        let low: &mut [f64] = bytemuck::cast_slice_mut(&mut left[low * rows..][..rows]);
        let high: &mut [f64] = bytemuck::cast_slice_mut(&mut right[..rows]);
        let (first, second) = if x < y { (low, high) } else { (high, low) };
        for (x, y) in first.iter_mut().zip(second) {
            (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
        }
    }

    fn negate(&mut self, column: usize) {
        self.0.column_mut(column).iter_mut().for_each(|value| *value = -*value);
    }

    /// Its first columns in another order; further ones stay.
    fn ordered(self, order: &[usize]) -> Matrix<T> {
        let from = |column: usize| order.get(column).copied().unwrap_or(column);
        Matrix::build(self.0.rows, self.0.columns, |row, column| self.0.at(row, from(column)))
    }
}

/// Eigenvalues of the symmetric tridiagonal matrix with these diagonals, by QL steps with implicit shifts.
fn ql<T: Double>(d: &mut [f64], mut e: Vec<f64>, basis: &mut Basis<T>) -> Option<()> {
    let n = d.len();
    e.resize(n, 0.0);
    for low in 0..n {
        let mut steps = 0;
        loop {
            let negligible = |at: usize| e[at].abs() <= f64::EPSILON * (d[at].abs() + d[at + 1].abs());
            let high = (low..n - 1).find(|at| negligible(*at)).unwrap_or(n - 1);
            if high == low {
                break;
            }
            steps += 1;
            if steps > MOST_STEPS {
                return None;
            }
            let mut g = (d[low + 1] - d[low]) / (2.0 * e[low]);
            g = d[high] - d[low] + e[low] / (g + g.hypot(1.0).copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut split = false;
            for at in (low..high).rev() {
                let (f, b) = (s * e[at], c * e[at]);
                let mut r = f.hypot(g);
                e[at + 1] = r;
                if r == 0.0 {
                    d[at + 1] -= p;
                    e[high] = 0.0;
                    split = true;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[at + 1] - p;
                r = (d[at] - g) * s + 2.0 * c * b;
                p = s * r;
                d[at + 1] = g + p;
                g = c * r - b;
                basis.rotate(at, at + 1, c, -s);
            }
            if !split {
                d[low] -= p;
                e[low] = g;
                e[high] = 0.0;
            }
        }
    }
    Some(())
}

/// Singular values, with so many columns of `u` and `v`: none, as many as there are values, or all. None when the steps
/// do not converge, as with numbers that are not finite.
pub fn singular<T: Double>(mut a: Matrix<T>, columns_u: usize, columns_v: usize) -> Option<Singular<T>> {
    if a.rows < a.columns {
        let turned = singular(applied(&a, Op::Conjugate), columns_v, columns_u)?;
        return Some(Singular { values: turned.values, u: turned.v, v: turned.u });
    }
    let (m, n) = (a.rows, a.columns);
    let scale = scale_down(&mut a)?;
    let (mut d, mut e) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let (mut taus, mut taus_right) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let mut right = Matrix::zero(n, n);
    for at in 0..n {
        let tau = reflection(&mut a.column_mut(at)[at..]);
        d.push(a.at(at, at).re());
        taus.push(tau);
        let vector = a.column(at)[at + 1..].to_vec();
        for column in at + 1..n {
            crate::factor::reflect(&vector, tau.conj(), &mut a.column_mut(column)[at..]);
        }
        if at + 1 == n {
            break;
        }
        let mut row: Vec<T> = (at + 1..n).map(|column| a.at(at, column).conj()).collect();
        let tau = reflection(&mut row);
        e.push(row[0].re());
        taus_right.push(tau);
        right.column_mut(at)[at + 1..].copy_from_slice(&row);
        row[0] = T::one();
        reflect_rows(&mut a, at + 1, &row, tau);
    }
    e.resize(n, 0.0);
    let identity = |row: usize, column: usize| if row == column { T::one() } else { T::zero() };
    let mut u = Matrix::build(if columns_u > 0 { m } else { 0 }, columns_u.max(n), identity);
    if columns_u > 0 {
        apply_q(&a, &taus, false, &mut u);
    }
    let v = if columns_v > 0 { unshifted(&right, &taus_right) } else { Matrix::zero(0, n) };
    let (mut u, mut v) = (Basis(u), Basis(v));
    qr(&mut d, &mut e, &mut u, &mut v)?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| d[*b].total_cmp(&d[*a]));
    let values = order.iter().map(|at| d[*at] * scale).collect();
    Some(Singular { values, u: u.ordered(&order), v: v.ordered(&order) })
}

/// `a = a (1 - tau v vᴴ)` on the rows and columns from `first` on.
fn reflect_rows<T: Double>(a: &mut Matrix<T>, first: usize, v: &[T], tau: T) {
    if tau == T::zero() {
        return;
    }
    let m = a.rows;
    let columns = &mut a.data[first * m..];
    let mut product = vec![T::zero(); m - first];
    for (column, factor) in columns.chunks_exact(m).zip(v) {
        product.iter_mut().zip(&column[first..]).for_each(|(sum, value)| *sum += *value * *factor);
    }
    for (column, factor) in columns.chunks_exact_mut(m).zip(v) {
        let factor = tau * factor.conj();
        column[first..].iter_mut().zip(&product).for_each(|(value, sum)| *value -= *sum * factor);
    }
}

/// Cosine, sine and length of the rotation that takes (x, y) to (length, 0).
fn rotation(x: f64, y: f64) -> (f64, f64, f64) {
    let length = x.hypot(y);
    if length == 0.0 { (1.0, 0.0, 0.0) } else { (x / length, y / length, length) }
}

/// Singular values of the bidiagonal matrix with these diagonals, by QR steps with implicit shifts.
fn qr<T: Double>(d: &mut [f64], e: &mut [f64], u: &mut Basis<T>, v: &mut Basis<T>) -> Option<()> {
    let mut end = d.len();
    let mut steps = 0;
    while end > 0 {
        let small = |at: usize, around: f64| d[at].abs() <= f64::EPSILON * around;
        // The block that ends here begins after the last negligible number beside the diagonal.
        let beside = |at: &usize| e[*at].abs() <= f64::EPSILON * (d[*at].abs() + d[*at + 1].abs());
        let begin = (0..end - 1).rev().find(beside).map_or(0, |at| at + 1);
        if begin > 0 {
            e[begin - 1] = 0.0;
        }
        if begin + 1 == end {
            if d[begin] < 0.0 {
                d[begin] = -d[begin];
                v.negate(begin);
            }
            end -= 1;
            steps = 0;
            continue;
        }
        steps += 1;
        if steps > MOST_STEPS {
            return None;
        }
        let around = |at: usize| {
            let before = if at > begin { e[at - 1].abs() } else { 0.0 };
            before + if at + 1 < end { e[at].abs() } else { 0.0 }
        };
        match (begin..end).rev().find(|at| small(*at, around(*at))) {
            // The last value is zero: the number above it is rotated away.
            Some(zero) if zero + 1 == end => {
                d[zero] = 0.0;
                let mut f = std::mem::take(&mut e[zero - 1]);
                for at in (begin..zero).rev() {
                    let (c, s, length) = rotation(d[at], f);
                    d[at] = length;
                    if at > begin {
                        f = -s * e[at - 1];
                        e[at - 1] *= c;
                    }
                    v.rotate(at, zero, c, s);
                }
            }
            // Another is: the number beside it is rotated away, and the block falls into two.
            Some(zero) => {
                d[zero] = 0.0;
                let mut f = std::mem::take(&mut e[zero]);
                for at in zero + 1..end {
                    let (c, s, length) = rotation(d[at], f);
                    d[at] = length;
                    f = -s * e[at];
                    e[at] *= c;
                    u.rotate(at, zero, c, s);
                }
            }
            None => step(d, e, begin, end, u, v),
        }
    }
    Some(())
}

/// One QR step on a block, with the shift of its last two values.
fn step<T: Double>(d: &mut [f64], e: &mut [f64], begin: usize, end: usize, u: &mut Basis<T>, v: &mut Basis<T>) {
    let last = end - 1;
    let numbers = [d[last], d[last - 1], e[last - 1], d[begin], e[begin]];
    let scale = numbers.iter().fold(0.0, |most: f64, number| most.max(number.abs()));
    let [last_d, before_d, last_e, first_d, first_e] = numbers.map(|number| number / scale);
    let b = ((before_d + last_d) * (before_d - last_d) + last_e * last_e) / 2.0;
    let c = (last_d * last_e).powi(2);
    let shift = if b == 0.0 && c == 0.0 { 0.0 } else { c / (b + (b * b + c).sqrt().copysign(b)) };
    let (mut f, mut g) = ((first_d + last_d) * (first_d - last_d) + shift, first_d * first_e);
    for at in begin..last {
        let (c, s, length) = rotation(f, g);
        if at > begin {
            e[at - 1] = length;
        }
        f = c * d[at] + s * e[at];
        e[at] = c * e[at] - s * d[at];
        g = s * d[at + 1];
        d[at + 1] *= c;
        v.rotate(at, at + 1, c, s);
        let (c, s, length) = rotation(f, g);
        d[at] = length;
        f = c * e[at] + s * d[at + 1];
        d[at + 1] = c * d[at + 1] - s * e[at];
        g = s * e[at + 1];
        e[at + 1] *= c;
        u.rotate(at, at + 1, c, s);
    }
    e[last - 1] = f;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::tests::{assert_same, product, random};
    use num_complex::Complex64;

    /// `u s vᴴ`
    fn again<T: Double>(u: &Matrix<T>, values: &[f64], v: &Matrix<T>) -> Matrix<T> {
        let scaled = |row, column| u.at(row, column) * T::from_real(values[column]);
        let scaled = Matrix::build(u.rows, values.len(), scaled);
        let v = Matrix::build(v.rows, values.len(), |row, column| v.at(row, column));
        product(&scaled, Op::None, &v, Op::Conjugate)
    }

    fn is_orthonormal<T: Double>(a: &Matrix<T>, what: &str) {
        let one = |row, column| if row == column { T::one() } else { T::zero() };
        let one = Matrix::build(a.columns, a.columns, one);
        assert_same(&product(a, Op::Conjugate, a, Op::None), &one, what);
    }

    fn vectors_multiply_to_the_matrix<T: Double>() {
        for (m, n) in [(1, 1), (3, 2), (90, 40), (40, 90), (300, 300)] {
            let (a, few, what) = (random::<T>(m, n), m.min(n), format!("{m} {n}"));
            for (columns_u, columns_v) in [(few, few), (m, n)] {
                let found = singular(a.clone(), columns_u, columns_v).expect("converges");
                is_orthonormal(&found.u, &what);
                is_orthonormal(&found.v, &what);
                assert_same(&again(&found.u, &found.values, &found.v), &a, &what);
                assert!(found.values.is_sorted_by(|a, b| a >= b) && found.values[few - 1] >= 0.0, "{what}");
                let alone = singular(a.clone(), 0, 0).expect("converges").values;
                assert!(alone.iter().zip(&found.values).all(|(a, b)| (a - b).abs() < 1e-11), "{what}");
            }
            let hermitian = Matrix::build(m, m, |row, column| a.at(row, column % n) + a.at(column, row % n).conj());
            let found = eigen(hermitian.clone(), true).expect("converges");
            is_orthonormal(&found.vectors, &what);
            assert_same(&again(&found.vectors, &found.values, &found.vectors), &hermitian, &what);
        }
    }

    #[test]
    fn values_and_vectors_multiply_to_the_matrix() {
        vectors_multiply_to_the_matrix::<f64>();
        vectors_multiply_to_the_matrix::<Complex64>();
    }
}
