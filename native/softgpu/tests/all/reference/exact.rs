//! Numbers without bounds, and how they are rounded to a format: nothing here is floating point.

use num_bigint::BigUint;
use std::cmp::Ordering;

/// A binary format of IEEE 754: its width, the bits of its fraction, and the bias of its exponent.
#[derive(Clone, Copy)]
pub struct Format {
    pub bits: u32,
    pub fraction: u32,
    pub bias: i64,
}

pub const F16: Format = Format { bits: 16, fraction: 10, bias: 15 };
pub const BF16: Format = Format { bits: 16, fraction: 7, bias: 127 };
pub const F32: Format = Format { bits: 32, fraction: 23, bias: 127 };
pub const F64: Format = Format { bits: 64, fraction: 52, bias: 1023 };
/// Its 19 bits are the upper ones of a register.
pub const TF32: Format = Format { bits: 19, fraction: 10, bias: 127 };

/// A direction of rounding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Nearest,
    /// To nearest, ties away from zero.
    Away,
    Zero,
    Down,
    Up,
}

/// The directions that arithmetic has, by their modifiers.
pub const WAYS: [(&str, Way); 4] = [("rn", Way::Nearest), ("rz", Way::Zero), ("rm", Way::Down), ("rp", Way::Up)];

impl Way {
    /// Whether a magnitude goes up, which lies so between two neighbours, the lower of which is odd.
    fn up(self, negative: bool, rest: &BigUint, half: &BigUint, odd: bool) -> bool {
        let some = rest.bits() > 0;
        match self {
            Way::Nearest => rest > half || (rest == half && odd),
            Way::Away => rest >= half,
            Way::Zero => false,
            Way::Down => negative && some,
            Way::Up => !negative && some,
        }
    }
}

/// `magnitude * 2^exponent` with its sign, and what is no such number.
#[derive(Clone, Debug)]
pub enum Number {
    Nan,
    Infinite(bool),
    Finite { negative: bool, magnitude: BigUint, exponent: i64 },
}

use Number::*;

impl Format {
    /// The same bits, or the zero of their sign where they are a subnormal number.
    pub fn flushed(&self, bits: u64) -> u64 {
        let sign = 1 << (self.bits - 1);
        if bits & !sign < 1 << self.fraction { bits & sign } else { bits }
    }

    fn infinity(&self) -> u64 {
        ((1 << (self.bits - 1 - self.fraction)) - 1) << self.fraction
    }

    /// The NaN that cards give.
    pub fn nan(&self) -> u64 {
        (1 << (self.bits - 1)) - 1
    }

    pub fn decode(&self, bits: u64) -> Number {
        let negative = bits >> (self.bits - 1) & 1 == 1;
        let magnitude = bits & self.nan();
        if magnitude >= self.infinity() {
            return if magnitude == self.infinity() { Infinite(negative) } else { Nan };
        }
        let (field, fraction) = (magnitude >> self.fraction, magnitude & ((1 << self.fraction) - 1));
        let whole = if field == 0 { fraction } else { fraction | 1 << self.fraction };
        let exponent = field.max(1) as i64 - self.bias - i64::from(self.fraction);
        Finite { negative, magnitude: whole.into(), exponent }
    }

    pub fn encode(&self, number: &Number, way: Way) -> u64 {
        let sign = |negative: bool| u64::from(negative) << (self.bits - 1);
        let (negative, magnitude, exponent) = match number {
            Nan => return self.nan(),
            Infinite(negative) => return sign(*negative) | self.infinity(),
            Finite { negative, magnitude, exponent } => (*negative, magnitude, *exponent),
        };
        let least = 1 - self.bias - i64::from(self.fraction);
        let last = (exponent + magnitude.bits() as i64 - 1 - i64::from(self.fraction)).max(least);
        let (mut kept, mut last) = match last - exponent {
            lost @ 1.. => {
                let kept = magnitude >> lost;
                let (rest, half) = (magnitude - (&kept << lost), BigUint::from(1u8) << (lost - 1));
                let up = way.up(negative, &rest, &half, kept.bit(0));
                (kept + u8::from(up), last)
            }
            lost => (magnitude << -lost, last),
        };
        if kept.bits() > u64::from(self.fraction) + 1 {
            (kept, last) = (kept >> 1, last + 1);
        }
        let kept = kept.iter_u64_digits().next().unwrap_or(0);
        let magnitude = if kept >> self.fraction == 0 {
            kept
        } else {
            ((last - least + 1) as u64) * (1 << self.fraction) + (kept - (1 << self.fraction))
        };
        if magnitude < self.infinity() {
            return sign(negative) | magnitude;
        }
        let inward = way == Way::Zero || way == if negative { Way::Up } else { Way::Down };
        sign(negative) | (self.infinity() - u64::from(inward))
    }
}

impl Number {
    pub fn of_integer(v: i128) -> Number {
        Finite { negative: v < 0, magnitude: v.unsigned_abs().into(), exponent: 0 }
    }

    pub fn is_nan(&self) -> bool {
        matches!(self, Nan)
    }

    pub fn negative(&self) -> bool {
        match self {
            Nan => false,
            Infinite(negative) | Finite { negative, .. } => *negative,
        }
    }

    fn is_zero(&self) -> bool {
        matches!(self, Finite { magnitude, .. } if magnitude.bits() == 0)
    }

    /// The same with this sign.
    pub fn signed(&self, negative: bool) -> Number {
        match self.clone() {
            Nan => Nan,
            Infinite(_) => Infinite(negative),
            Finite { magnitude, exponent, .. } => Finite { negative, magnitude, exponent },
        }
    }

    pub fn minus(&self) -> Number {
        self.signed(!self.negative())
    }

    /// The exact sum; the direction says which zero it is where numbers cancel.
    pub fn plus(&self, other: &Number, way: Way) -> Number {
        let (a, b) = match (self, other) {
            (Nan, _) | (_, Nan) => return Nan,
            (Infinite(a), Infinite(b)) if a != b => return Nan,
            (Infinite(a), _) | (_, Infinite(a)) => return Infinite(*a),
            pair => pair,
        };
        let (Finite { negative: n, magnitude: m, exponent: e }, Finite { negative: o, magnitude: p, exponent: f }) =
            (a, b)
        else {
            return Nan;
        };
        let exponent = *e.min(f);
        let (m, p) = (m << (e - exponent), p << (f - exponent));
        let (negative, magnitude) = match (n == o, m.cmp(&p)) {
            (true, _) => (*n, m + p),
            (_, Ordering::Equal) => (way == Way::Down, BigUint::ZERO),
            (_, Ordering::Greater) => (*n, m - p),
            _ => (*o, p - m),
        };
        Finite { negative, magnitude, exponent }
    }

    pub fn times(&self, other: &Number) -> Number {
        let negative = self.negative() != other.negative();
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinite(_), x) | (x, Infinite(_)) => {
                if x.is_zero() {
                    Nan
                } else {
                    Infinite(negative)
                }
            }
            (Finite { magnitude: m, exponent: e, .. }, Finite { magnitude: p, exponent: f, .. }) => {
                Finite { negative, magnitude: m * p, exponent: e + f }
            }
        }
    }

    /// The quotient: exact, or with more bits than any format has and a last one that stands for the rest.
    pub fn over(&self, other: &Number) -> Number {
        let negative = self.negative() != other.negative();
        match (self, other) {
            (Nan, _) | (_, Nan) | (Infinite(_), Infinite(_)) => Nan,
            (Infinite(_), _) => Infinite(negative),
            (_, Infinite(_)) => Number::of_integer(0).signed(negative),
            (a, b) if b.is_zero() => {
                if a.is_zero() {
                    Nan
                } else {
                    Infinite(negative)
                }
            }
            (Finite { magnitude: m, exponent: e, .. }, Finite { magnitude: p, exponent: f, .. }) => {
                let m = m << 160u32;
                let (quotient, rest) = (&m / p, &m % p);
                let magnitude = (quotient << 1u32) + u8::from(rest.bits() > 0);
                Finite { negative, magnitude, exponent: e - f - 161 }
            }
        }
    }

    /// The root, as exact as [`Number::over`].
    pub fn root(&self) -> Number {
        match self {
            _ if self.is_zero() => self.clone(),
            Finite { negative: false, magnitude, exponent } => {
                let even = exponent - exponent.rem_euclid(2);
                let square = magnitude << (200 + (exponent - even));
                let root = square.sqrt();
                let rest = &root * &root != square;
                Finite { negative: false, magnitude: (root << 1u32) + u8::from(rest), exponent: (even - 200) / 2 - 1 }
            }
            Infinite(false) => Infinite(false),
            _ => Nan,
        }
    }

    /// How two numbers are ordered; the zeros are equal, and NaNs are not ordered.
    pub fn order(&self, other: &Number) -> Option<Ordering> {
        let rank = |infinite: bool| if infinite { -1 } else { 1 };
        match (self, other) {
            (Nan, _) | (_, Nan) => None,
            (Infinite(a), Infinite(b)) => Some(rank(*a).cmp(&rank(*b))),
            (Infinite(a), _) => Some(rank(*a).cmp(&0)),
            (_, Infinite(b)) => Some(0.cmp(&rank(*b))),
            _ => Some(match self.plus(&other.minus(), Way::Nearest) {
                difference if difference.is_zero() => Ordering::Equal,
                difference if difference.negative() => Ordering::Less,
                _ => Ordering::Greater,
            }),
        }
    }

    /// The whole number in a direction; what is less than one keeps its sign.
    pub fn whole(&self, way: Way) -> Number {
        let Finite { negative, magnitude, exponent: exponent @ ..0 } = self else { return self.clone() };
        let kept = magnitude >> -exponent;
        let rest = magnitude - (&kept << -exponent);
        let half = BigUint::from(1u8) << (-exponent - 1);
        let up = way.up(*negative, &rest, &half, kept.bit(0));
        Finite { negative: *negative, magnitude: kept + u8::from(up), exponent: 0 }
    }

    /// The whole number in a direction, between bounds; nothing of a NaN.
    pub fn integer(&self, way: Way, least: i128, most: i128) -> Option<i128> {
        Some(match self.whole(way) {
            Nan => return None,
            Infinite(negative) => {
                if negative {
                    least
                } else {
                    most
                }
            }
            Finite { negative, magnitude, exponent } => {
                if magnitude.bits() as i64 + exponent > 100 {
                    return Some(if negative { least } else { most });
                }
                let magnitude =
                    (magnitude << exponent).iter_u32_digits().rev().fold(0, |v, digit| v << 32 | i128::from(digit));
                (if negative { -magnitude } else { magnitude }).clamp(least, most)
            }
        })
    }

    /// `.sat`: between zero and one; a NaN is zero.
    pub fn saturated(&self) -> Number {
        let one = Number::of_integer(1);
        match self.order(&one) {
            _ if self.is_nan() || self.negative() => Number::of_integer(0),
            Some(Ordering::Greater) => one,
            _ => self.clone(),
        }
    }

    /// `.relu`: nothing below zero.
    pub fn positive(&self) -> Number {
        if self.negative() { Number::of_integer(0) } else { self.clone() }
    }

    /// The lesser one; a NaN loses, or wins, and of the zeros the negative one is less.
    pub fn least(&self, other: &Number, nan_wins: bool) -> Number {
        match self.order(other) {
            None if nan_wins || (self.is_nan() && other.is_nan()) => Nan,
            None => (if self.is_nan() { other } else { self }).clone(),
            Some(Ordering::Greater) => other.clone(),
            Some(Ordering::Equal) if other.negative() => other.clone(),
            _ => self.clone(),
        }
    }

    /// The greater one, as [`Number::least`].
    pub fn most(&self, other: &Number, nan_wins: bool) -> Number {
        self.minus().least(&other.minus(), nan_wins).minus()
    }
}
