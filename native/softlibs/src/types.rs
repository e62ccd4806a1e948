//! Elements of any cudaDataType, computed with in one of the four types of BLAS.

use crate::memory::{Fault, Matrix, Memory, Place, Vector, collected, load, store, zeros};
use crate::number::Field;
use crate::{Problem, unsupported};
use bytemuck::Pod;
use num_complex::{Complex32, Complex64};
use num_traits::ToPrimitive;
use sluice_softgpu::half::{from_bf16, from_f16, to_bf16, to_f16};
use std::any::TypeId;

/// A cudaDataType that can be computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    F32,
    F64,
    F16,
    Bf16,
    C32,
    C64,
    I8,
    U8,
    I32,
}

impl Kind {
    /// By its number.
    pub fn of(number: i64) -> Result<Kind, Problem> {
        Ok(match number {
            0 => Kind::F32,
            1 => Kind::F64,
            2 => Kind::F16,
            3 => Kind::I8,
            4 => Kind::C32,
            5 => Kind::C64,
            8 => Kind::U8,
            10 => Kind::I32,
            14 => Kind::Bf16,
            other => return Err(unsupported(format!("data type {other}"))),
        })
    }

    /// Size in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Kind::I8 | Kind::U8 => 1,
            Kind::F16 | Kind::Bf16 => 2,
            Kind::F32 | Kind::I32 => 4,
            Kind::F64 | Kind::C32 => 8,
            Kind::C64 => 16,
        }
    }

    /// Whether it has an imaginary part.
    pub fn is_complex(self) -> bool {
        matches!(self, Kind::C32 | Kind::C64)
    }

    /// The type of an alpha or beta for a compute type and result.
    pub fn of_scale(compute: i64, result: Kind) -> Result<Kind, Problem> {
        Ok(match (compute, result.is_complex()) {
            (64 | 65, false) => Kind::F16,
            (68 | 69 | 74 | 75 | 77 | 78, false) => Kind::F32,
            (68 | 69 | 74 | 75 | 77 | 78, true) => Kind::C32,
            (70 | 71, false) => Kind::F64,
            (70 | 71, true) => Kind::C64,
            (72 | 73, false) => Kind::I32,
            _ => return Err(unsupported(format!("compute type {compute}"))),
        })
    }
}

/// The type to compute in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    F32,
    F64,
    C32,
    C64,
}

impl Wide {
    /// For operands and a scale of these kinds; real and complex ones do not mix.
    pub fn of(kinds: &[Kind], scale: Kind) -> Result<Wide, Problem> {
        let complex = kinds[0].is_complex();
        if kinds.iter().any(|kind| kind.is_complex() != complex) || (scale.is_complex() && !complex) {
            return Err(unsupported("a mix of real and complex matrices"));
        }
        // Whole numbers are exact in f64.
        let long = |kind: &Kind| matches!(kind, Kind::F64 | Kind::C64 | Kind::I32);
        let long = kinds.iter().any(long) || long(&scale);
        Ok(match (complex, long) {
            (false, false) => Wide::F32,
            (false, true) => Wide::F64,
            (true, false) => Wide::C32,
            (true, true) => Wide::C64,
        })
    }
}

fn widened<S: Pod, T: Field>(
    memory: &dyn Memory,
    address: u64,
    count: usize,
    parts: impl Fn(S) -> (f64, f64),
) -> Result<Vec<T>, Fault> {
    if TypeId::of::<S>() == TypeId::of::<T>() {
        return load(memory, address, count);
    }
    let given: Vec<S> = load(memory, address, count)?;
    let wide = given.into_iter().map(|value| {
        let (real, imaginary) = parts(value);
        T::from_parts(real, imaginary)
    });
    Ok(collected(count, wide))
}

/// Elements of a kind, computed with as `T`.
pub fn load_as<T: Field>(memory: &dyn Memory, kind: Kind, address: u64, count: usize) -> Result<Vec<T>, Fault> {
    match kind {
        Kind::F32 => widened(memory, address, count, |value: f32| (f64::from(value), 0.0)),
        Kind::F64 => widened(memory, address, count, |value: f64| (value, 0.0)),
        Kind::F16 => widened(memory, address, count, |bits| (f64::from(from_f16(bits)), 0.0)),
        Kind::Bf16 => widened(memory, address, count, |bits| (f64::from(from_bf16(bits)), 0.0)),
        Kind::C32 => widened(memory, address, count, |value: Complex32| (f64::from(value.re), f64::from(value.im))),
        Kind::C64 => widened(memory, address, count, |value: Complex64| (value.re, value.im)),
        Kind::I8 => widened(memory, address, count, |value: i8| (f64::from(value), 0.0)),
        Kind::U8 => widened(memory, address, count, |value: u8| (f64::from(value), 0.0)),
        Kind::I32 => widened(memory, address, count, |value: i32| (f64::from(value), 0.0)),
    }
}

/// Elements as their kind's bytes; whole numbers are rounded and stay in range.
pub fn bytes_as<T: Field>(kind: Kind, data: &[T]) -> Vec<u8> {
    fn cast<S: Pod, T: Field>(data: &[T], narrow: impl Fn(f64, f64) -> S) -> Vec<u8> {
        if TypeId::of::<S>() == TypeId::of::<T>() {
            return collected(size_of_val(data), bytemuck::cast_slice(data).iter().copied());
        }
        let part = |value: T::Real| value.to_f64().unwrap_or(f64::NAN);
        let mut bytes = zeros(data.len() * size_of::<S>());
        for (to, value) in bytes.chunks_exact_mut(size_of::<S>()).zip(data) {
            to.copy_from_slice(bytemuck::bytes_of(&narrow(part(value.re()), part(value.im()))));
        }
        bytes
    }
    match kind {
        Kind::F32 => cast(data, |real, _| real as f32),
        Kind::F64 => cast(data, |real, _| real),
        Kind::F16 => cast(data, |real, _| to_f16(real)),
        Kind::Bf16 => cast(data, |real, _| to_bf16(real)),
        Kind::C32 => cast(data, |real, imaginary| Complex32::new(real as f32, imaginary as f32)),
        Kind::C64 => cast(data, Complex64::new),
        Kind::I8 => cast(data, |real, _| real.round_ties_even() as i8),
        Kind::U8 => cast(data, |real, _| real.round_ties_even() as u8),
        Kind::I32 => cast(data, |real, _| real.round_ties_even() as i32),
    }
}

/// A vector of a kind.
pub fn load_vector<T: Field>(memory: &dyn Memory, kind: Kind, vector: Vector) -> Result<Vec<T>, Fault> {
    if vector.count == 0 {
        return Ok(Vec::new());
    }
    let step = vector.step.unsigned_abs() as usize;
    let all: Vec<T> = load_as(memory, kind, vector.address, (vector.count - 1) * step + 1)?;
    let mut out = collected(vector.count, all.into_iter().step_by(step));
    if vector.step < 0 {
        out.reverse();
    }
    Ok(out)
}

/// Sets a vector of a kind.
pub fn store_vector<T: Field>(memory: &dyn Memory, kind: Kind, vector: Vector, data: &[T]) -> Result<(), Fault> {
    let bytes = bytes_as(kind, data);
    if vector.step == 1 {
        return store(memory, vector.address, &bytes);
    }
    let step = vector.step.unsigned_abs() as usize;
    for (index, value) in bytes.chunks_exact(kind.bytes()).enumerate() {
        let index = if vector.step < 0 { vector.count - 1 - index } else { index };
        store(memory, vector.address + (index * step * kind.bytes()) as u64, value)?;
    }
    Ok(())
}

/// A matrix of a kind.
pub fn load_matrix<T: Field>(memory: &dyn Memory, kind: Kind, place: Place) -> Result<Matrix<T>, Fault> {
    place.gather(kind.bytes(), |address, count| load_as(memory, kind, address, count))
}

/// Writes a matrix of a kind; what lies between the columns stays.
pub fn store_matrix<T: Field>(memory: &dyn Memory, kind: Kind, place: Place, matrix: &Matrix<T>) -> Result<(), Fault> {
    if place.rows == 0 || place.columns == 0 {
        return Ok(());
    }
    let bytes = bytes_as(kind, &matrix.data);
    if place.lead == place.rows {
        return store(memory, place.address, &bytes);
    }
    for (column, data) in bytes.chunks_exact(place.rows * kind.bytes()).enumerate() {
        store(memory, place.address + (column * place.lead * kind.bytes()) as u64, data)?;
    }
    Ok(())
}

/// Runs a function of one of the four types.
#[macro_export]
macro_rules! in_wide {
    ($wide:expr, $function:ident($($argument:expr),*)) => {
        match $wide {
            $crate::types::Wide::F32 => $function::<f32>($($argument),*),
            $crate::types::Wide::F64 => $function::<f64>($($argument),*),
            $crate::types::Wide::C32 => $function::<num_complex::Complex32>($($argument),*),
            $crate::types::Wide::C64 => $function::<num_complex::Complex64>($($argument),*),
        }
    };
}

/// Runs a function in double precision, real or complex.
#[macro_export]
macro_rules! in_double {
    ($wide:expr, $function:ident($($argument:expr),*)) => {
        match $wide {
            $crate::types::Wide::F32 | $crate::types::Wide::F64 => $function::<f64>($($argument),*),
            $crate::types::Wide::C32 | $crate::types::Wide::C64 => $function::<num_complex::Complex64>($($argument),*),
        }
    };
}
