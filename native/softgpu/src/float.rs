//! Floating-point details: minimum and maximum as PTX defines them, and directed rounding.

use crate::ir::Rounding;

/// `min.f32`: a NaN loses, -0 is less than +0.
#[inline(always)]
pub fn min32(a: f32, b: f32) -> f32 {
    if a < b || b.is_nan() || (a == b && a.is_sign_negative()) { a } else { b }
}

/// `max.f32`
#[inline(always)]
pub fn max32(a: f32, b: f32) -> f32 {
    if a > b || b.is_nan() || (a == b && a.is_sign_positive()) { a } else { b }
}

/// `min.f64`
#[inline(always)]
pub fn min64(a: f64, b: f64) -> f64 {
    if a < b || b.is_nan() || (a == b && a.is_sign_negative()) { a } else { b }
}

/// `max.f64`
#[inline(always)]
pub fn max64(a: f64, b: f64) -> f64 {
    if a > b || b.is_nan() || (a == b && a.is_sign_positive()) { a } else { b }
}

/// Operations that exist with `.rz`, `.rm` and `.rp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Rcp,
    Sqrt,
}

macro_rules! directed {
    ($name:ident, $f:ty) => {
        /// The operation rounded in the given direction: the nearest result, moved by one unit when the exact
        /// result lies on its other side.
        pub fn $name(op: Arithmetic, rounding: Rounding, a: $f, b: $f, c: $f) -> $f {
            let (r, error) = match op {
                Arithmetic::Add => (a + b, two_sum_error(a, b)),
                Arithmetic::Sub => (a - b, two_sum_error(a, -b)),
                Arithmetic::Mul => {
                    let r = a * b;
                    (r, a.mul_add(b, -r))
                }
                Arithmetic::Fma => {
                    let r = a.mul_add(b, c);
                    let product = a * b;
                    let low = a.mul_add(b, -product);
                    // The exact value is product + low + c; subtract r from it in an order that keeps its sign.
                    let sum = product + c;
                    let sum_error = two_sum_error(product, c);
                    (r, (sum - r) + (sum_error + low))
                }
                Arithmetic::Div => {
                    let r = a / b;
                    (r, -r.mul_add(b, -a) * b.signum())
                }
                Arithmetic::Rcp => {
                    let r = 1.0 / a;
                    (r, -r.mul_add(a, -1.0) * a.signum())
                }
                Arithmetic::Sqrt => {
                    let r = a.sqrt();
                    (r, -r.mul_add(r, -a))
                }
            };
            if !r.is_finite() || error.is_nan() || error == 0.0 {
                return r;
            }
            let up = error > 0.0;
            match rounding {
                Rounding::Nearest => r,
                Rounding::Up if up => r.next_up(),
                Rounding::Down if !up => r.next_down(),
                Rounding::Zero if r > 0.0 && !up => r.next_down(),
                Rounding::Zero if r < 0.0 && up => r.next_up(),
                _ => r,
            }
        }
    };
}

trait TwoSum: Sized {
    fn error(self, other: Self) -> Self;
}

macro_rules! two_sum {
    ($f:ty) => {
        impl TwoSum for $f {
            fn error(self, other: Self) -> Self {
                let s = self + other;
                let t = s - self;
                (self - (s - t)) + (other - t)
            }
        }
    };
}
two_sum!(f32);
two_sum!(f64);

fn two_sum_error<T: TwoSum>(a: T, b: T) -> T {
    a.error(b)
}

directed!(directed32, f32);
directed!(directed64, f64);
