//! Level 1: vectors.

use crate::Problem;
use crate::arguments::Call;
use crate::number::Field;
use crate::objects::{Job, job};
use num_traits::{Float, One, Zero};

/// Terms that are summed up before they are added to the sum: keeps the error of long sums small.
const CHUNK: usize = 256;

/// A sum of products, in pieces.
pub fn dot_of<T: Field>(x: &[T], y: &[T], conjugate: bool) -> T {
    let piece = |(x, y): (&[T], &[T])| -> T {
        x.iter().zip(y).map(|(a, b)| if conjugate { a.conj() * *b } else { *a * *b }).sum()
    };
    // Of nothing it is zero, which a sum of floats begins below.
    T::zero() + x.chunks(CHUNK).zip(y.chunks(CHUNK)).map(piece).sum::<T>()
}

/// The Euclidean norm, without overflow.
pub fn norm_of<T: Field>(x: &[T]) -> T::Real {
    let largest = x.iter().fold(T::Real::zero(), |most, value| most.max(value.re().abs()).max(value.im().abs()));
    if largest.is_zero() || !largest.is_finite() {
        return T::Real::zero() + x.iter().map(|value| value.modulus()).sum::<T::Real>();
    }
    let scaled = |piece: &[T]| -> T::Real {
        piece.iter().map(|value| (value.re() / largest).powi(2) + (value.im() / largest).powi(2)).sum()
    };
    largest * x.chunks(CHUNK).map(scaled).sum::<T::Real>().sqrt()
}

fn size1<T: Field>(value: T) -> T::Real {
    value.re().abs() + value.im().abs()
}

fn extreme<T: Field>(call: &Call, better: fn(T::Real, T::Real) -> bool) -> Result<Job, Problem> {
    let x = call.stepped("x", call.size("n")?)?;
    let result = call.target("result")?;
    let empty = x.count == 0 || x.step <= 0;
    job(move |memory, outputs| {
        let mut found = 0i32;
        if !empty {
            let x: Vec<T> = x.load(memory)?;
            let mut best = size1(x[0]);
            for (index, value) in x.iter().enumerate().skip(1) {
                if better(size1(*value), best) {
                    best = size1(*value);
                    found = index as i32;
                }
            }
            found += 1;
        }
        result.store_as_is(memory, outputs, &[found])
    })
}

pub fn amax<T: Field>(call: &Call) -> Result<Job, Problem> {
    extreme::<T>(call, |a, b| a > b)
}

pub fn amin<T: Field>(call: &Call) -> Result<Job, Problem> {
    extreme::<T>(call, |a, b| a < b)
}

pub fn asum<T: Field>(call: &Call) -> Result<Job, Problem> {
    let x = call.stepped("x", call.size("n")?)?;
    let result = call.target("result")?;
    job(move |memory, outputs| {
        let x: Vec<T> = if x.step > 0 { x.load(memory)? } else { Vec::new() };
        let sum: T::Real = x.chunks(CHUNK).map(|piece| piece.iter().map(|value| size1(*value)).sum::<T::Real>()).sum();
        result.store(memory, outputs, &[T::Real::zero() + sum])
    })
}

pub fn nrm2<T: Field>(call: &Call) -> Result<Job, Problem> {
    let x = call.stepped("x", call.size("n")?)?;
    let result = call.target("result")?;
    job(move |memory, outputs| result.store(memory, outputs, &[norm_of(&x.load::<T>(memory)?)]))
}

pub fn axpy<T: Field>(call: &Call) -> Result<Job, Problem> {
    let n = call.size("n")?;
    let (x, y, alpha) = (call.stepped("x", n)?, call.stepped("y", n)?, call.scalar("alpha")?);
    job(move |memory, _| {
        let alpha: T = alpha.one(memory)?;
        let (x, mut out) = (x.load::<T>(memory)?, y.load::<T>(memory)?);
        out.iter_mut().zip(x).for_each(|(y, x)| *y += alpha * x);
        y.store(memory, &out)
    })
}

pub fn copy<T: Field>(call: &Call) -> Result<Job, Problem> {
    let n = call.size("n")?;
    let (x, y) = (call.stepped("x", n)?, call.stepped("y", n)?);
    job(move |memory, _| y.store(memory, &x.load::<T>(memory)?))
}

pub fn swap<T: Field>(call: &Call) -> Result<Job, Problem> {
    let n = call.size("n")?;
    let (x, y) = (call.stepped("x", n)?, call.stepped("y", n)?);
    job(move |memory, _| {
        let (first, second) = (x.load::<T>(memory)?, y.load::<T>(memory)?);
        x.store(memory, &second)?;
        y.store(memory, &first)
    })
}

fn product<T: Field>(call: &Call, conjugate: bool) -> Result<Job, Problem> {
    let n = call.size("n")?;
    let (x, y, result) = (call.stepped("x", n)?, call.stepped("y", n)?, call.target("result")?);
    job(move |memory, outputs| {
        let sum = dot_of(&x.load::<T>(memory)?, &y.load::<T>(memory)?, conjugate);
        result.store(memory, outputs, &[sum])
    })
}

pub fn dot<T: Field>(call: &Call) -> Result<Job, Problem> {
    product::<T>(call, false)
}

pub fn dotc<T: Field>(call: &Call) -> Result<Job, Problem> {
    product::<T>(call, true)
}

pub fn scal<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (x, alpha) = (call.stepped("x", call.size("n")?)?, call.scalar("alpha")?);
    job(move |memory, _| {
        let alpha: T = alpha.one(memory)?;
        let mut out = x.load::<T>(memory)?;
        out.iter_mut().for_each(|value| *value *= alpha);
        x.store(memory, &out)
    })
}

/// A complex vector times a real number.
pub fn scal_real<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (x, alpha) = (call.stepped("x", call.size("n")?)?, call.scalar("alpha")?);
    job(move |memory, _| {
        let alpha = T::from_real(alpha.one(memory)?);
        let mut out = x.load::<T>(memory)?;
        out.iter_mut().for_each(|value| *value *= alpha);
        x.store(memory, &out)
    })
}

fn rotate<T: Field>(call: &Call, real_sine: bool) -> Result<Job, Problem> {
    let n = call.size("n")?;
    let (x, y) = (call.stepped("x", n)?, call.stepped("y", n)?);
    let (cosine, sine) = (call.scalar("c")?, call.scalar("s")?);
    job(move |memory, _| {
        let c = T::from_real(cosine.one(memory)?);
        let s: T = if real_sine { T::from_real(sine.one(memory)?) } else { sine.one(memory)? };
        let (mut first, mut second) = (x.load::<T>(memory)?, y.load::<T>(memory)?);
        for (x, y) in first.iter_mut().zip(&mut second) {
            (*x, *y) = (c * *x + s * *y, c * *y - s.conj() * *x);
        }
        x.store(memory, &first)?;
        y.store(memory, &second)
    })
}

pub fn rot<T: Field>(call: &Call) -> Result<Job, Problem> {
    rotate::<T>(call, false)
}

pub fn rot_real<T: Field>(call: &Call) -> Result<Job, Problem> {
    rotate::<T>(call, true)
}

/// Makes a rotation: (r, z, c, s) of (a, b), as the reference BLAS defines them.
fn rotation<T: Field>(a: T, b: T) -> (T, T, T::Real, T) {
    let (zero, one) = (T::Real::zero(), T::Real::one());
    let scale = a.modulus() + b.modulus();
    if T::COMPLEX {
        if a.modulus().is_zero() {
            return (b, b, zero, T::one());
        }
        let norm = scale * ((a.modulus() / scale).powi(2) + (b.modulus() / scale).powi(2)).sqrt();
        let phase = a / T::from_real(a.modulus());
        return (phase * T::from_real(norm), b, a.modulus() / norm, phase * b.conj() / T::from_real(norm));
    }
    if scale.is_zero() {
        return (T::zero(), T::zero(), one, T::zero());
    }
    let larger = if a.modulus() > b.modulus() { a.re() } else { b.re() };
    let length = scale * ((a.re() / scale).powi(2) + (b.re() / scale).powi(2)).sqrt();
    let r = if larger < zero { -length } else { length };
    let (c, s) = (a.re() / r, b.re() / r);
    let z = if a.modulus() > b.modulus() {
        s
    } else if c.is_zero() {
        one
    } else {
        one / c
    };
    (T::from_real(r), T::from_real(z), c, T::from_real(s))
}

pub fn rotg<T: Field>(call: &Call) -> Result<Job, Problem> {
    let (a, b) = (call.scalar("a")?, call.scalar("b")?);
    let [to_a, to_b, to_c, to_s] = ["a", "b", "c", "s"].map(|name| call.target(name));
    let (to_a, to_b, to_c, to_s) = (to_a?, to_b?, to_c?, to_s?);
    job(move |memory, outputs| {
        let (r, z, c, s) = rotation::<T>(a.one(memory)?, b.one(memory)?);
        to_a.store(memory, outputs, &[r])?;
        to_b.store(memory, outputs, &[z])?;
        to_c.store(memory, outputs, &[c])?;
        to_s.store(memory, outputs, &[s])
    })
}

pub fn rotm<T: Field + Float>(call: &Call) -> Result<Job, Problem> {
    let n = call.size("n")?;
    let (x, y, param) = (call.stepped("x", n)?, call.stepped("y", n)?, call.scalar("param")?);
    job(move |memory, _| {
        let param = param.load::<T>(memory, 5)?;
        let (one, flag) = (<T as One>::one(), param[0]);
        let [[h11, h12], [h21, h22]] = if flag == -one {
            [[param[1], param[3]], [param[2], param[4]]]
        } else if flag == <T as Zero>::zero() {
            [[one, param[3]], [param[2], one]]
        } else if flag == one {
            [[param[1], one], [-one, param[4]]]
        } else {
            return Ok(());
        };
        let (mut first, mut second) = (x.load::<T>(memory)?, y.load::<T>(memory)?);
        for (x, y) in first.iter_mut().zip(&mut second) {
            (*x, *y) = (h11 * *x + h12 * *y, h21 * *x + h22 * *y);
        }
        x.store(memory, &first)?;
        y.store(memory, &second)
    })
}

/// The modified rotation of the reference BLAS: new d1, d2, x1 and the parameters.
fn modified<T: Field + Float>(mut d1: T, mut d2: T, mut x1: T, y1: T) -> ([T; 3], [T; 5]) {
    let (zero, one) = (<T as Zero>::zero(), <T as One>::one());
    let gamma = T::from_parts(4096.0, 0.0);
    let (mut h11, mut h12, mut h21, mut h22) = (zero, zero, zero, zero);
    let mut flag;
    if d1 < zero {
        return ([zero, zero, zero], [-one, zero, zero, zero, zero]);
    }
    let p2 = d2 * y1;
    if p2 == zero {
        return ([d1, d2, x1], [-(one + one), zero, zero, zero, zero]);
    }
    let p1 = d1 * x1;
    let (q1, q2) = (p1 * x1, p2 * y1);
    if q1.abs() > q2.abs() {
        h21 = -y1 / x1;
        h12 = p2 / p1;
        let u = one - h12 * h21;
        if u <= zero {
            return ([zero, zero, zero], [-one, zero, zero, zero, zero]);
        }
        flag = zero;
        d1 /= u;
        d2 /= u;
        x1 *= u;
    } else if q2 < zero {
        return ([zero, zero, zero], [-one, zero, zero, zero, zero]);
    } else {
        flag = one;
        h11 = p1 / p2;
        h22 = x1 / y1;
        let u = one + h11 * h22;
        (d1, d2) = (d2 / u, d1 / u);
        x1 = y1 * u;
    }
    // Keeps the scale factors within gamma² of one; then all four elements are given.
    let whole = |flag: &mut T, h11: &mut T, h12: &mut T, h21: &mut T, h22: &mut T| {
        if *flag == zero {
            (*h11, *h22) = (one, one);
        } else if *flag == one {
            (*h21, *h12) = (-one, one);
        }
        *flag = -one;
    };
    while d1 != zero && (d1 <= one / (gamma * gamma) || d1 >= gamma * gamma) {
        whole(&mut flag, &mut h11, &mut h12, &mut h21, &mut h22);
        let up = if d1 <= one / (gamma * gamma) { gamma } else { one / gamma };
        d1 = d1 * up * up;
        x1 /= up;
        h11 /= up;
        h12 /= up;
    }
    while d2 != zero && (d2.abs() <= one / (gamma * gamma) || d2.abs() >= gamma * gamma) {
        whole(&mut flag, &mut h11, &mut h12, &mut h21, &mut h22);
        let up = if d2.abs() <= one / (gamma * gamma) { gamma } else { one / gamma };
        d2 = d2 * up * up;
        h21 /= up;
        h22 /= up;
    }
    ([d1, d2, x1], [flag, h11, h21, h12, h22])
}

pub fn rotmg<T: Field + Float>(call: &Call) -> Result<Job, Problem> {
    let (d1, d2, x1, y1) = (call.scalar("d1")?, call.scalar("d2")?, call.scalar("x1")?, call.scalar("y1")?);
    let targets = [call.target("d1")?, call.target("d2")?, call.target("x1")?];
    let param = call.target("param")?;
    job(move |memory, outputs| {
        let (values, h) = modified::<T>(d1.one(memory)?, d2.one(memory)?, x1.one(memory)?, y1.one(memory)?);
        for (target, value) in targets.iter().zip(values) {
            target.store(memory, outputs, &[value])?;
        }
        param.store(memory, outputs, &h)
    })
}
