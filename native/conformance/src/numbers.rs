//! Straightforward reference computation: complex f64 numbers and the four types of BLAS as bytes.

use std::ops::{Add, Mul, Neg, Sub};

/// A complex number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Number(pub f64, pub f64);

impl Number {
    /// The conjugate.
    pub fn conj(self) -> Self {
        Self(self.0, -self.1)
    }

    /// The absolute value.
    pub fn abs(self) -> f64 {
        self.0.hypot(self.1)
    }
}

impl Add for Number {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0, self.1 + other.1)
    }
}

impl Sub for Number {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0, self.1 - other.1)
    }
}

impl Neg for Number {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

impl Mul for Number {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0 - self.1 * other.1, self.0 * other.1 + self.1 * other.0)
    }
}

/// One of `S`, `D`, `C`, `Z`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Letter(pub char);

impl Letter {
    /// Whether it is complex.
    pub fn is_complex(self) -> bool {
        matches!(self.0, 'C' | 'Z')
    }

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self.0 {
            'S' => 4,
            'D' | 'C' => 8,
            _ => 16,
        }
    }

    /// What results may differ by, for numbers near one.
    pub fn tolerance(self) -> f64 {
        if matches!(self.0, 'S' | 'C') { 2e-4 } else { 1e-11 }
    }

    /// Elements as bytes; real types take the real parts.
    pub fn encode(self, numbers: &[Number]) -> Vec<u8> {
        let put = |number: &Number| -> Vec<u8> {
            match self.0 {
                'S' => (number.0 as f32).to_le_bytes().to_vec(),
                'D' => number.0.to_le_bytes().to_vec(),
                'C' => [number.0 as f32, number.1 as f32].iter().flat_map(|part| part.to_le_bytes()).collect(),
                _ => [number.0, number.1].iter().flat_map(|part| part.to_le_bytes()).collect(),
            }
        };
        numbers.iter().flat_map(put).collect()
    }

    /// Bytes as elements.
    pub fn decode(self, bytes: &[u8]) -> Vec<Number> {
        let f32_at = |b: &[u8]| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let f64_at = |b: &[u8]| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
        let take = |bytes: &[u8]| match self.0 {
            'S' => Number(f32_at(bytes), 0.0),
            'D' => Number(f64_at(bytes), 0.0),
            'C' => Number(f32_at(bytes), f32_at(&bytes[4..])),
            _ => Number(f64_at(bytes), f64_at(&bytes[8..])),
        };
        bytes.chunks_exact(self.bytes()).map(take).collect()
    }

    /// Numbers between -1 and 1 that are always the same; real for real types.
    pub fn random(self, seed: u64, count: usize) -> Vec<Number> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f64 / f64::from(1 << 23) - 1.0
        };
        (0..count).map(|_| Number(next(), if self.is_complex() { next() } else { 0.0 })).collect()
    }
}

/// op(a) of a column-major matrix: 0 as it is, 1 transposed, 2 conjugated.
pub fn op(a: &[Number], lead: usize, op: usize, row: usize, column: usize) -> Number {
    match op {
        0 => a[column * lead + row],
        1 => a[row * lead + column],
        _ => a[row * lead + column].conj(),
    }
}

/// Fails when two lists differ by more than the tolerance, scaled by how large they are.
pub fn assert_close(what: &str, got: &[Number], wanted: &[Number], tolerance: f64) {
    assert_eq!(got.len(), wanted.len(), "{what}");
    let scale = wanted.iter().fold(1.0f64, |most, number| most.max(number.abs()));
    for (at, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        let difference = (*got - *wanted).abs();
        assert!(difference <= tolerance * scale, "{what}: element {at} is {got:?}, not {wanted:?}");
    }
}
