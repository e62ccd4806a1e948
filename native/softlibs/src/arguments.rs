//! A call's arguments by the names of its declaration.

use crate::memory::{Fault, Matrix, Memory, Place, Vector, collected, load_numbers, store, zeros};
use crate::number::{Field, Op};
use crate::{Problem, invalid};
use bytemuck::Pod;
use sluice_api::libraries::{Function, Kind};
use sluice_protocol::library::Argument;

/// One call.
pub struct Call<'a> {
    pub function: &'static Function,
    pub arguments: Vec<Argument<'a>>,
}

/// Where scalars are read.
#[derive(Clone, Debug)]
pub struct Scalar {
    pub source: Source,
    /// They lie there in single precision.
    single: bool,
}

/// See [`Scalar`].
#[derive(Clone, Debug)]
pub enum Source {
    Host(Vec<u8>),
    Device(u64),
    Null,
}

impl Scalar {
    /// The scalars there.
    pub fn load<T: Field>(&self, memory: &dyn Memory, count: usize) -> Result<Vec<T>, Fault> {
        match &self.source {
            Source::Device(address) => load_numbers(memory, *address, count, self.single),
            Source::Null => Ok(zeros(count)),
            Source::Host(bytes) => load_numbers(&Host(bytes), 0, count, self.single),
        }
    }

    /// The scalar there.
    pub fn one<T: Field>(&self, memory: &dyn Memory) -> Result<T, Fault> {
        Ok(self.load(memory, 1)?[0])
    }
}

/// Bytes from the host, read as if they were memory.
pub struct Host<'a>(pub &'a [u8]);

impl Memory for Host<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Fault> {
        let fault = Fault { address, bytes: out.len() as u64 };
        let from = address as usize;
        out.copy_from_slice(self.0.get(from..from + out.len()).ok_or(fault)?);
        Ok(())
    }

    fn write(&self, address: u64, data: &[u8]) -> Result<(), Fault> {
        Err(Fault { address, bytes: data.len() as u64 })
    }
}

/// Where a result is written.
#[derive(Clone, Debug)]
pub struct Target {
    pub place: Goal,
    /// Numbers are written in single precision.
    single: bool,
}

/// See [`Target`].
#[derive(Clone, Debug)]
pub enum Goal {
    /// The output of this number.
    Host(usize),
    Device(u64),
}

/// What the host gets back, output by output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs(pub Vec<Vec<u8>>);

impl Outputs {
    /// One after the other.
    pub fn joined(self) -> Vec<u8> {
        self.0.concat()
    }

    /// Sets the beginning of an output.
    pub fn set(&mut self, number: usize, data: &[u8]) {
        let length = data.len().min(self.0[number].len());
        self.0[number][..length].copy_from_slice(&data[..length]);
    }
}

impl Target {
    /// Writes numbers.
    pub fn store<T: Field>(&self, memory: &dyn Memory, outputs: &mut Outputs, data: &[T]) -> Result<(), Fault> {
        if self.single {
            let rounded: Vec<T::Single> = collected(data.len(), data.iter().map(|value| value.rounded()));
            return self.store_as_is(memory, outputs, &rounded);
        }
        self.store_as_is(memory, outputs, data)
    }

    /// Writes what is no number of the function's type.
    pub fn store_as_is<T: Pod>(&self, memory: &dyn Memory, outputs: &mut Outputs, data: &[T]) -> Result<(), Fault> {
        match &self.place {
            Goal::Device(address) => store(memory, *address, data),
            Goal::Host(number) => {
                outputs.set(*number, bytemuck::cast_slice(data));
                Ok(())
            }
        }
    }
}

impl<'a> Call<'a> {
    fn at(&self, name: &str) -> Result<usize, Problem> {
        let at = self.function.parameters.iter().position(|parameter| parameter.name == name);
        at.filter(|at| *at < self.arguments.len()).ok_or_else(|| invalid(format!("there is no argument {name}")))
    }

    fn argument(&self, name: &str) -> Result<&Argument<'a>, Problem> {
        Ok(&self.arguments[self.at(name)?])
    }

    /// Checks that the arguments have the kinds of the declaration: what comes over the wire is not trusted.
    pub fn check(&self) -> Result<(), Problem> {
        let fits = |kind: &Kind, argument: &Argument| match kind {
            Kind::New => matches!(argument, Argument::New(_)),
            Kind::End => matches!(argument, Argument::End(_)),
            Kind::Object | Kind::Subject | Kind::Which => matches!(argument, Argument::Object(_)),
            Kind::Optional => matches!(argument, Argument::Object(_) | Argument::Word(0)),
            Kind::Value => matches!(argument, Argument::Object(_) | Argument::Word(0) | Argument::End(_)),
            Kind::Stream => matches!(argument, Argument::Stream(_)),
            Kind::Streams => matches!(argument, Argument::Word(0) | Argument::Stream(_)),
            Kind::F32 => matches!(argument, Argument::F32(_)),
            Kind::F64 | Kind::Complex => matches!(argument, Argument::F64(_)),
            Kind::Scalar(_) => matches!(argument, Argument::Word(_) | Argument::In(_)),
            Kind::Result(_) => matches!(argument, Argument::Word(_) | Argument::Out(_)),
            Kind::Both(_) => matches!(argument, Argument::Word(_) | Argument::InOut(_)),
            Kind::In(_) => matches!(argument, Argument::Word(0) | Argument::In(_)),
            Kind::Out(_) => matches!(argument, Argument::Word(0) | Argument::Out(_)),
            Kind::InOut(_) => matches!(argument, Argument::Word(0) | Argument::InOut(_)),
            // No library with these is computed here.
            Kind::Any | Kind::Block(_) | Kind::Config | Kind::Elements { .. } | Kind::Into { .. } => false,
            _ => matches!(argument, Argument::Word(_)),
        };
        let parameters = &self.function.parameters;
        let all = parameters.len() == self.arguments.len()
            && parameters.iter().zip(&self.arguments).all(|(parameter, argument)| fits(&parameter.kind, argument));
        if all { Ok(()) } else { Err(invalid("the arguments do not fit the function")) }
    }

    /// Room for the outputs; those that are read as well hold what came.
    pub fn outputs(&self) -> Outputs {
        let outputs = self.arguments.iter().filter_map(|argument| match argument {
            Argument::Out(bytes) => Some(vec![0; *bytes as usize]),
            Argument::InOut(data) => Some(data.to_vec()),
            _ => None,
        });
        Outputs(outputs.collect())
    }

    /// A number.
    pub fn int(&self, name: &str) -> Result<i64, Problem> {
        match self.argument(name)? {
            Argument::Word(value) => Ok(*value as i64),
            _ => Err(invalid(name)),
        }
    }

    /// A number that may not be negative.
    pub fn size(&self, name: &str) -> Result<usize, Problem> {
        usize::try_from(self.int(name)?).map_err(|_| invalid(format!("{name} is negative")))
    }

    /// A device address.
    pub fn device(&self, name: &str) -> Result<u64, Problem> {
        Ok(self.int(name)? as u64)
    }

    /// A floating-point number that was passed by value.
    pub fn float(&self, name: &str) -> Result<f64, Problem> {
        match self.argument(name)? {
            Argument::F32(bits) => Ok(f64::from(f32::from_bits(*bits))),
            Argument::F64(bits) => Ok(f64::from_bits(*bits)),
            _ => Err(invalid(name)),
        }
    }

    /// The number of an object, 0 for none.
    pub fn object(&self, name: &str) -> Result<u64, Problem> {
        match self.argument(name)? {
            Argument::Object(number) | Argument::End(number) | Argument::New(number) => Ok(*number),
            _ => Ok(0),
        }
    }

    /// Host memory; none for null.
    pub fn bytes(&self, name: &str) -> Result<Option<&'a [u8]>, Problem> {
        match self.argument(name)? {
            Argument::In(data) | Argument::InOut(data) => Ok(Some(data)),
            _ => Ok(None),
        }
    }

    /// Whether there is an argument of this name.
    pub fn has(&self, name: &str) -> bool {
        self.at(name).is_ok()
    }

    /// Whether this is a function of single precision, by its letter or its matrix's type; the others compute with the
    /// same code.
    pub fn single(&self) -> bool {
        if let Some(name) = self.function.symbol.strip_prefix("cusolverDn") {
            let any = name.starts_with('X');
            return if any { matches!(self.int("atype"), Ok(0 | 4)) } else { name.starts_with(['S', 'C']) };
        }
        let name = self.function.symbol.strip_prefix("cublas").unwrap_or("");
        name.strip_prefix('I').unwrap_or(name).starts_with(['S', 's', 'C', 'c'])
    }

    /// A scalar, wherever it lies.
    pub fn scalar(&self, name: &str) -> Result<Scalar, Problem> {
        let scalar = self.scalar_or_none(name)?;
        if matches!(scalar.source, Source::Null) { Err(invalid(format!("{name} is null"))) } else { Ok(scalar) }
    }

    /// As [`Call::scalar`], zero where there is none.
    pub fn scalar_or_none(&self, name: &str) -> Result<Scalar, Problem> {
        let source = match self.argument(name)? {
            Argument::In(data) | Argument::InOut(data) => Source::Host(data.to_vec()),
            Argument::Word(0) => Source::Null,
            Argument::Word(address) => Source::Device(*address),
            _ => return Err(invalid(name)),
        };
        Ok(Scalar { source, single: self.single() })
    }

    /// A result, wherever it goes.
    pub fn target(&self, name: &str) -> Result<Target, Problem> {
        let at = self.at(name)?;
        let is_output = |argument: &&Argument| matches!(argument, Argument::Out(_) | Argument::InOut(_));
        let place = match &self.arguments[at] {
            Argument::Word(address) => Goal::Device(*address),
            _ => Goal::Host(self.arguments[..at].iter().filter(is_output).count()),
        };
        Ok(Target { place, single: self.single() })
    }

    /// `trans`, `transa` or `transb`; for real numbers the conjugate is the transpose.
    pub fn op(&self, name: &str) -> Result<Op, Problem> {
        Op::of(self.int(name)?).ok_or_else(|| invalid(name))
    }

    /// The vector `name` with its step `inc{name}`, `count` long.
    pub fn vector(&self, name: &str, count: usize) -> Result<Vector, Problem> {
        let vector = self.stepped(name, count)?;
        if vector.step == 0 { Err(invalid(format!("inc{name} is 0"))) } else { Ok(vector) }
    }

    /// As [`Call::vector`]; with step 0 it is one number again and again, which level 1 allows.
    pub fn stepped(&self, name: &str, count: usize) -> Result<Vector, Problem> {
        let step = self.int(&format!("inc{name}"))?;
        Ok(Vector { address: self.device(name)?, count, step, single: self.single() })
    }

    /// The matrix `name` with its leading dimension `ld{name}`.
    pub fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Place, Problem> {
        let lead = self.lead(name, rows)?;
        Ok(Place { address: self.device(name)?, rows, columns, lead, single: self.single() })
    }

    /// The leading dimension of a matrix of so many rows.
    pub fn lead(&self, name: &str, rows: usize) -> Result<usize, Problem> {
        let lead = self.size(&format!("ld{name}"))?;
        if lead < rows.max(1) { Err(invalid(format!("ld{name} is smaller than the rows"))) } else { Ok(lead) }
    }

    /// `uplo`: whether the upper triangle is meant.
    pub fn upper(&self) -> Result<bool, Problem> {
        match self.int("uplo")? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(invalid("uplo")),
        }
    }

    /// A choice of two.
    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.int(name)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(invalid(name)),
        }
    }
}

/// The whole of a symmetric or Hermitian matrix of which one triangle is given.
pub fn mirrored<T: Field>(matrix: &Matrix<T>, upper: bool, hermitian: bool) -> Matrix<T> {
    Matrix::build(matrix.rows, matrix.columns, |row, column| {
        let given = if upper { row <= column } else { row >= column };
        let value = if given { matrix.at(row, column) } else { matrix.at(column, row) };
        match (hermitian, row == column) {
            (true, true) => T::from_real(value.re()),
            (true, false) if !given => value.conj(),
            _ => value,
        }
    })
}

/// A triangle with zeros in the other one, and ones on the diagonal where `unit`.
pub fn triangle<T: Field>(matrix: &Matrix<T>, upper: bool, unit: bool) -> Matrix<T> {
    Matrix::build(matrix.rows, matrix.columns, |row, column| {
        if row == column && unit {
            T::one()
        } else if if upper { row <= column } else { row >= column } {
            matrix.at(row, column)
        } else {
            T::zero()
        }
    })
}
