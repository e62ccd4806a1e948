//! The four types of BLAS and what they have in common.

use crate::memory::{Matrix, collected};
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

/// `c = alpha op(a) op(b) + beta c`.  With beta 0, `c` is not read.
pub fn gemm<T: Field>(alpha: T, a: &Matrix<T>, op_a: Op, b: &Matrix<T>, op_b: Op, beta: T, c: &mut Matrix<T>) {
    let conjugated = |matrix: &Matrix<T>, op: Op| {
        (op == Op::Conjugate && T::COMPLEX).then(|| Matrix {
            rows: matrix.rows,
            columns: matrix.columns,
            data: collected(matrix.data.len(), matrix.data.iter().map(|value| value.conj())),
        })
    };
    let (own_a, own_b) = (conjugated(a, op_a), conjugated(b, op_b));
    let (a, b) = (own_a.as_ref().unwrap_or(a), own_b.as_ref().unwrap_or(b));
    let depth = if op_a == Op::None { a.columns } else { a.rows };
    let size = [c.rows, depth, c.columns];
    let steps = |matrix: &Matrix<T>, op: Op| {
        if op == Op::None { (1, matrix.rows as isize) } else { (matrix.rows as isize, 1) }
    };
    let (step_a, step_b) = (steps(a, op_a), steps(b, op_b));
    if beta == T::zero() {
        c.data.fill(T::zero());
    }
    if c.data.is_empty() {
        return;
    }
    if depth == 0 {
        c.data.iter_mut().for_each(|value| *value *= beta);
        return;
    }
    assert!(a.data.len() >= c.rows * depth && b.data.len() >= depth * c.columns);
    // SAFETY: the sizes were just compared; matrices have no gaps, and steps lie inside them.
    unsafe {
        T::gemm_raw(
            size,
            alpha,
            (a.data.as_ptr(), step_a.0, step_a.1),
            (b.data.as_ptr(), step_b.0, step_b.1),
            beta,
            (c.data.as_mut_ptr(), 1, c.rows as isize),
        );
    }
}
