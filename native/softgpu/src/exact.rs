//! Double precision rounded once, in any direction: results have more bits than a double, and are then cut.

use crate::float::{Arithmetic, zero_sum};
use crate::ir::Rounding;

/// Bits of a double's mantissa, the first one included.
const BITS: i32 = 53;
/// Exponents of the last place: of subnormal values, and of the largest.
const LEAST: i32 = -1074;
const MOST: i32 = 971;
/// Where the first bit of a number is that sums and quotients are made of.
const FIRST: u32 = 125;

/// A number other than zero: `mantissa * 2^exponent`.  The last bit also stands for everything behind it.
#[derive(Clone, Copy)]
struct Exact {
    negative: bool,
    exponent: i32,
    mantissa: u128,
}

/// Moves bits to the right; those that fall out leave a trace in the last.
fn down(mantissa: u128, by: u32) -> u128 {
    match by {
        0 => mantissa,
        128.. => u128::from(mantissa != 0),
        _ => mantissa >> by | u128::from(mantissa << (128 - by) != 0),
    }
}

impl Exact {
    /// A finite value; nothing if it is zero.
    fn of(v: f64) -> Option<Exact> {
        let (field, fraction) = (v.to_bits() >> 52 & 0x7ff, v.to_bits() & ((1 << 52) - 1));
        let mantissa = if field == 0 { fraction } else { fraction | 1 << 52 };
        let exponent = field.max(1) as i32 + LEAST - 1;
        (mantissa != 0).then_some(Exact { negative: v.is_sign_negative(), exponent, mantissa: mantissa.into() })
    }

    /// The same number with its first bit at [`FIRST`].
    fn normal(self) -> Exact {
        let up = self.mantissa.leading_zeros() as i32 - (127 - FIRST as i32);
        let mantissa = if up < 0 { down(self.mantissa, up.unsigned_abs()) } else { self.mantissa << up };
        Exact { exponent: self.exponent - up, mantissa, ..self }
    }

    fn times(self, other: Exact) -> Exact {
        Exact {
            negative: self.negative != other.negative,
            exponent: self.exponent + other.exponent,
            mantissa: self.mantissa * other.mantissa,
        }
    }

    /// The sum; nothing if it is zero.
    fn plus(self, other: Exact) -> Option<Exact> {
        let (mut a, mut b) = (self.normal(), other.normal());
        if (a.exponent, a.mantissa) < (b.exponent, b.mantissa) {
            (a, b) = (b, a);
        }
        let b_mantissa = down(b.mantissa, (a.exponent - b.exponent) as u32);
        let mantissa = if a.negative == b.negative { a.mantissa + b_mantissa } else { a.mantissa - b_mantissa };
        (mantissa != 0).then_some(Exact { mantissa, ..a })
    }

    fn over(self, other: Exact) -> Exact {
        let a = self.normal();
        let (quotient, rest) = (a.mantissa / other.mantissa, a.mantissa % other.mantissa);
        Exact {
            negative: self.negative != other.negative,
            exponent: a.exponent - other.exponent,
            mantissa: quotient | u128::from(rest != 0),
        }
    }

    fn root(self) -> Exact {
        let mut a = self.normal();
        if a.exponent % 2 != 0 {
            (a.mantissa, a.exponent) = (a.mantissa << 1, a.exponent - 1);
        }
        let root = a.mantissa.isqrt();
        Exact { mantissa: root | u128::from(root * root != a.mantissa), exponent: a.exponent / 2, ..a }
    }

    fn round(self, rounding: Rounding) -> f64 {
        let first = self.exponent + 127 - self.mantissa.leading_zeros() as i32;
        let mut last = (first - BITS + 1).max(LEAST);
        let (mut kept, rest, half) = match last - self.exponent {
            lost @ ..1 => (self.mantissa << -lost, 0, 1),
            lost @ 1..128 => (self.mantissa >> lost, self.mantissa & ((1 << lost) - 1), 1 << (lost - 1)),
            _ => (0, 1, 2),
        };
        let up = match rounding {
            Rounding::Nearest => rest > half || (rest == half && kept & 1 == 1),
            Rounding::Zero => false,
            Rounding::Down => self.negative && rest != 0,
            Rounding::Up => !self.negative && rest != 0,
        };
        kept += u128::from(up);
        if kept >> BITS != 0 {
            (kept, last) = (kept >> 1, last + 1);
        }
        let magnitude = if last > MOST {
            let infinite = match rounding {
                Rounding::Nearest => true,
                Rounding::Zero => false,
                Rounding::Down => self.negative,
                Rounding::Up => !self.negative,
            };
            if infinite { f64::INFINITY } else { f64::MAX }
        } else if kept >> (BITS - 1) == 0 {
            f64::from_bits(kept as u64)
        } else {
            f64::from_bits(((last - LEAST + 1) as u64) << 52 | kept as u64 & ((1 << 52) - 1))
        };
        if self.negative { -magnitude } else { magnitude }
    }
}

/// An operation of double precision, rounded as asked.
pub fn directed64(op: Arithmetic, rounding: Rounding, a: f64, b: f64, c: f64) -> f64 {
    use Arithmetic::*;
    let nearest = match op {
        Add => a + b,
        Sub => a - b,
        Mul => a * b,
        Fma => a.mul_add(b, c),
        Div => a / b,
        Rcp => 1.0 / a,
        Sqrt => a.sqrt(),
    };
    // Operands that are no numbers, and results without bounds or that are none, are the same in all directions.
    let without = match op {
        Div => b == 0.0,
        Rcp => a == 0.0,
        Sqrt => a <= 0.0,
        _ => false,
    };
    if without || ![a, b, c].into_iter().all(f64::is_finite) {
        return nearest;
    }
    let product = |a: f64, b: f64| Exact::of(a).zip(Exact::of(b)).map(|(a, b)| a.times(b));
    let sum = |a: Option<Exact>, b: Option<Exact>| match (a, b) {
        (Some(a), Some(b)) => a.plus(b),
        (a, b) => a.or(b),
    };
    let exact = match op {
        Add => sum(Exact::of(a), Exact::of(b)),
        Sub => sum(Exact::of(a), Exact::of(-b)),
        Mul => product(a, b),
        Fma => sum(product(a, b), Exact::of(c)),
        Div => Exact::of(a).zip(Exact::of(b)).map(|(a, b)| a.over(b)),
        Rcp => Exact::of(1.0).zip(Exact::of(a)).map(|(one, a)| one.over(a)),
        Sqrt => Exact::of(a).map(Exact::root),
    };
    match (exact, op) {
        (Some(exact), _) => exact.round(rounding),
        (None, Add) => zero_sum(a, b, rounding),
        (None, Sub) => zero_sum(a, -b, rounding),
        (None, Fma) => zero_sum(0f64.copysign(a) * 1f64.copysign(b), c, rounding),
        (None, _) => nearest,
    }
}
