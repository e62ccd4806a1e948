//! The four types of BLAS and what they have in common.

use crate::memory::Matrix;
use bytemuck::Pod;
use num_complex::{Complex, Complex32, Complex64};
use num_traits::{Float, NumAssign};
use std::ops::Neg;

/// f32, f64 and their complex numbers.
pub trait Field: Pod + NumAssign + Neg<Output = Self> + Send + Sync + std::fmt::Debug + std::iter::Sum {
    /// The same in single precision: how a function of type S or C has it in memory.
    type Single: Pod;
    /// The type of its parts.
    type Real: Field<Real = Self::Real> + Float;
    /// Whether it has an imaginary part.
    const COMPLEX: bool;

    /// From single precision.
    fn widened(single: Self::Single) -> Self;
    /// To single precision.
    fn rounded(self) -> Self::Single;
    /// From a real number.
    fn from_real(real: Self::Real) -> Self;
    /// From two parts; a real number takes the first.
    fn from_parts(real: f64, imaginary: f64) -> Self;
    /// The conjugate.
    fn conj(self) -> Self;
    /// The real part.
    fn re(self) -> Self::Real;
    /// The imaginary part.
    fn im(self) -> Self::Real;
    /// The absolute value.
    fn modulus(self) -> Self::Real;

    /// The square of the absolute value.
    fn square(self) -> Self::Real {
        self.re() * self.re() + self.im() * self.im()
    }

    /// `c = alpha a b + beta c` on strided data: (pointer, row step, column step).
    ///
    /// # Safety
    /// `a` holds m×k, `b` k×n and `c` m×n elements at these steps.
    unsafe fn gemm_raw(
        size: [usize; 3],
        alpha: Self,
        a: (*const Self, isize, isize),
        b: (*const Self, isize, isize),
        beta: Self,
        c: (*mut Self, isize, isize),
    );
}

macro_rules! real {
    ($type:ty, $gemm:ident) => {
        impl Field for $type {
            type Single = f32;
            type Real = Self;
            const COMPLEX: bool = false;
            fn widened(single: f32) -> Self {
                single.into()
            }
            fn rounded(self) -> f32 {
                self as f32
            }
            fn from_real(real: Self) -> Self {
                real
            }
            fn from_parts(real: f64, _imaginary: f64) -> Self {
                real as Self
            }
            fn conj(self) -> Self {
                self
            }
            fn re(self) -> Self {
                self
            }
            fn im(self) -> Self {
                0.0
            }
            fn modulus(self) -> Self {
                self.abs()
            }
            unsafe fn gemm_raw(
                [m, k, n]: [usize; 3],
                alpha: Self,
                a: (*const Self, isize, isize),
                b: (*const Self, isize, isize),
                beta: Self,
                c: (*mut Self, isize, isize),
            ) {
                // SAFETY: as the caller's.
                unsafe {
                    matrixmultiply::$gemm(m, k, n, alpha, a.0, a.1, a.2, b.0, b.1, b.2, beta, c.0, c.1, c.2);
                }
            }
        }
    };
}
real!(f32, sgemm);
real!(f64, dgemm);

macro_rules! complex {
    ($type:ty, $real:ty, $gemm:ident) => {
        impl Field for $type {
            type Single = Complex32;
            type Real = $real;
            const COMPLEX: bool = true;
            fn widened(single: Complex32) -> Self {
                Complex::new(single.re.into(), single.im.into())
            }
            fn rounded(self) -> Complex32 {
                Complex::new(self.re as f32, self.im as f32)
            }
            fn from_real(real: $real) -> Self {
                Complex::new(real, 0.0)
            }
            fn from_parts(real: f64, imaginary: f64) -> Self {
                Complex::new(real as $real, imaginary as $real)
            }
            fn conj(self) -> Self {
                Complex::conj(&self)
            }
            fn re(self) -> $real {
                self.re
            }
            fn im(self) -> $real {
                self.im
            }
            fn modulus(self) -> $real {
                self.norm()
            }
            unsafe fn gemm_raw(
                [m, k, n]: [usize; 3],
                alpha: Self,
                a: (*const Self, isize, isize),
                b: (*const Self, isize, isize),
                beta: Self,
                c: (*mut Self, isize, isize),
            ) {
                let plain = matrixmultiply::CGemmOption::Standard;
                let (alpha, beta) = ([alpha.re, alpha.im], [beta.re, beta.im]);
                // SAFETY: as the caller's; a complex number is two reals without padding.
                unsafe {
                    matrixmultiply::$gemm(
                        plain,
                        plain,
                        m,
                        k,
                        n,
                        alpha,
                        a.0.cast(),
                        a.1,
                        a.2,
                        b.0.cast(),
                        b.1,
                        b.2,
                        beta,
                        c.0.cast(),
                        c.1,
                        c.2,
                    );
                }
            }
        }
    };
}
complex!(Complex32, f32, cgemm);
complex!(Complex64, f64, zgemm);

/// What is done to a matrix before it is used: cublasOperation_t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    None,
    Transpose,
    Conjugate,
}

impl Op {
    /// By its number.
    pub fn of(number: i64) -> Option<Op> {
        match number {
            0 => Some(Op::None),
            1 => Some(Op::Transpose),
            2 => Some(Op::Conjugate),
            _ => None,
        }
    }

    /// Rows and columns of the matrix in memory for op(matrix) of this size.
    pub fn stored(self, rows: usize, columns: usize) -> (usize, usize) {
        if self == Op::None { (rows, columns) } else { (columns, rows) }
    }
}

/// op(matrix), written out.
pub fn applied<T: Field>(matrix: &Matrix<T>, op: Op) -> Matrix<T> {
    match op {
        Op::None => matrix.clone(),
        Op::Transpose => Matrix::build(matrix.columns, matrix.rows, |row, column| matrix.at(column, row)),
        Op::Conjugate => Matrix::build(matrix.columns, matrix.rows, |row, column| matrix.at(column, row).conj()),
    }
}

/// A part of a column-major matrix.
#[derive(Clone, Copy)]
pub struct Part<'a, T> {
    /// From its first element on.
    pub data: &'a [T],
    pub rows: usize,
    pub columns: usize,
    /// Elements from one column to the next.
    pub lead: usize,
}

/// One that is changed.
pub struct PartMut<'a, T> {
    pub data: &'a mut [T],
    pub rows: usize,
    pub columns: usize,
    pub lead: usize,
}

impl<'a, T> From<&'a Matrix<T>> for Part<'a, T> {
    fn from(matrix: &'a Matrix<T>) -> Self {
        Self { data: &matrix.data, rows: matrix.rows, columns: matrix.columns, lead: matrix.rows }
    }
}

impl<'a, T> From<&'a mut Matrix<T>> for PartMut<'a, T> {
    fn from(matrix: &'a mut Matrix<T>) -> Self {
        Self { rows: matrix.rows, columns: matrix.columns, lead: matrix.rows, data: &mut matrix.data }
    }
}

impl<T: Field> Part<'_, T> {
    fn conjugated(&self) -> Matrix<T> {
        Matrix::build(self.rows, self.columns, |row, column| self.data[column * self.lead + row].conj())
    }
}

/// Elements from the first to the last of a part.
fn span(rows: usize, columns: usize, lead: usize) -> usize {
    assert!(lead >= rows);
    if rows == 0 || columns == 0 { 0 } else { (columns - 1) * lead + rows }
}

/// `c = alpha op(a) op(b) + beta c`.  With beta 0, `c` is not read.
pub fn gemm<T: Field>(alpha: T, a: &Matrix<T>, op_a: Op, b: &Matrix<T>, op_b: Op, beta: T, c: &mut Matrix<T>) {
    gemm_of_parts(alpha, a.into(), op_a, b.into(), op_b, beta, c.into());
}

/// As [`gemm`], of parts of matrices.
pub fn gemm_of_parts<T: Field>(
    alpha: T,
    a: Part<'_, T>,
    op_a: Op,
    b: Part<'_, T>,
    op_b: Op,
    beta: T,
    c: PartMut<'_, T>,
) {
    let conjugated = |part: &Part<'_, T>, op: Op| (op == Op::Conjugate && T::COMPLEX).then(|| part.conjugated());
    let (own_a, own_b) = (conjugated(&a, op_a), conjugated(&b, op_b));
    let (a, b) = (own_a.as_ref().map_or(a, Part::from), own_b.as_ref().map_or(b, Part::from));
    let (rows, depth) = op_a.stored(a.rows, a.columns);
    let (depth_b, columns) = op_b.stored(b.rows, b.columns);
    assert!(rows == c.rows && depth == depth_b && columns == c.columns);
    assert!(a.data.len() >= span(a.rows, a.columns, a.lead) && b.data.len() >= span(b.rows, b.columns, b.lead));
    assert!(c.data.len() >= span(c.rows, c.columns, c.lead));
    if c.rows == 0 || c.columns == 0 {
        return;
    }
    if beta == T::zero() || depth == 0 {
        for column in c.data.chunks_mut(c.lead).take(c.columns) {
            column[..c.rows].iter_mut().for_each(|value| *value = if beta == T::zero() { beta } else { *value * beta });
        }
    }
    if depth == 0 {
        return;
    }
    let steps = |lead: usize, op: Op| if op == Op::None { (1, lead as isize) } else { (lead as isize, 1) };
    let (step_a, step_b) = (steps(a.lead, op_a), steps(b.lead, op_b));
    // SAFETY: the sizes were just compared, and steps lie inside of the parts.
    unsafe {
        T::gemm_raw(
            [c.rows, depth, c.columns],
            alpha,
            (a.data.as_ptr(), step_a.0, step_a.1),
            (b.data.as_ptr(), step_b.0, step_b.1),
            beta,
            (c.data.as_mut_ptr(), 1, c.lead as isize),
        );
    }
}
