//! cuBLASLt: products by description, with what is done to their results.

use crate::arguments::{Call, Goal, Outputs, Scalar};
use crate::blas::mixed::scalar;
use crate::description::Description;
use crate::memory::{Fault, Matrix, Memory, Place, zeros};
use crate::number::{Field, Op, applied, gemm};
use crate::objects::{Descriptions, Job, Step, job};
use crate::types::{Kind, Wide, bytes_as, load_as, load_matrix, store_matrix};
use crate::{Problem, in_wide, invalid, unsupported};
use num_traits::{Float, NumCast, One, Zero};

/// A matrix of a layout, and its batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub kind: Kind,
    pub place: Place,
    /// The order is by rows: what lies in memory is the transpose.
    pub by_rows: bool,
    pub batch: usize,
    pub stride: i64,
}

impl Layout {
    fn of(description: &Description, address: u64) -> Result<Self, Problem> {
        let number =
            |attribute: u32, name: &str| description.number(attribute).map_or_else(|| description.made_with(name), Ok);
        let (rows, columns) = (number(2, "rows")? as usize, number(3, "cols")? as usize);
        let lead = number(4, "ld")? as usize;
        let by_rows = match description.number(1).unwrap_or(0) {
            0 => false,
            1 => true,
            order => return Err(unsupported(format!("matrix order {order}"))),
        };
        let (rows, columns) = if by_rows { (columns, rows) } else { (rows, columns) };
        if lead < rows || lead > 1 << 40 {
            return Err(invalid("a leading dimension"));
        }
        let kind = Kind::of(number(0, "type")?)?;
        if !address.is_multiple_of(kind.bytes() as u64) {
            return Err(invalid("the address of a matrix that is no multiple of its elements"));
        }
        Ok(Self {
            kind,
            place: Place { address, rows, columns, lead, single: false },
            by_rows,
            batch: description.number(5).unwrap_or(1).max(0) as usize,
            stride: description.number(6).unwrap_or(0),
        })
    }

    /// Rows and columns as the layout says them.
    pub fn size(&self) -> (usize, usize) {
        if self.by_rows { (self.place.columns, self.place.rows) } else { (self.place.rows, self.place.columns) }
    }

    fn at(&self, index: usize) -> Place {
        let offset = (index as i64 * self.stride).wrapping_mul(self.kind.bytes() as i64);
        Place { address: self.place.address.wrapping_add(offset as u64), ..self.place }
    }

    pub fn load<T: Field>(&self, memory: &dyn Memory, index: usize) -> Result<Matrix<T>, Fault> {
        let matrix = load_matrix(memory, self.kind, self.at(index))?;
        Ok(if self.by_rows { applied(&matrix, Op::Transpose) } else { matrix })
    }

    pub fn store<T: Field>(&self, memory: &dyn Memory, index: usize, matrix: &Matrix<T>) -> Result<(), Fault> {
        if self.by_rows {
            store_matrix(memory, self.kind, self.at(index), &applied(matrix, Op::Transpose))
        } else {
            store_matrix(memory, self.kind, self.at(index), matrix)
        }
    }
}

/// What is done to each element of the product.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Activation {
    None,
    Relu,
    Gelu,
    /// The product times the derivative at what the auxiliary buffer has.
    ReluGradient,
    GeluGradient,
}

/// What the bias pointer is for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BiasUse {
    None,
    /// Added to each column.
    Added,
    /// Receives the sums of the result's rows.
    OfResult,
    /// Receives the sums of the rows of op(a).
    OfA,
    /// Receives the sums of the columns of op(b).
    OfB,
}

/// A cublasLtEpilogue_t: what follows the product.
#[derive(Clone, Copy, Debug)]
struct Epilogue {
    activation: Activation,
    /// The auxiliary buffer is written or read.
    auxiliary: bool,
    bias: BiasUse,
}

impl Epilogue {
    fn of(number: i64) -> Result<Self, Problem> {
        let (activation, auxiliary, bias) = match number {
            0 | 1 => (Activation::None, false, BiasUse::None),
            2 => (Activation::Relu, false, BiasUse::None),
            4 => (Activation::None, false, BiasUse::Added),
            6 => (Activation::Relu, false, BiasUse::Added),
            32 => (Activation::Gelu, false, BiasUse::None),
            36 => (Activation::Gelu, false, BiasUse::Added),
            130 => (Activation::Relu, true, BiasUse::None),
            134 => (Activation::Relu, true, BiasUse::Added),
            136 => (Activation::ReluGradient, true, BiasUse::None),
            152 => (Activation::ReluGradient, true, BiasUse::OfResult),
            160 => (Activation::Gelu, true, BiasUse::None),
            164 => (Activation::Gelu, true, BiasUse::Added),
            192 => (Activation::GeluGradient, true, BiasUse::None),
            208 => (Activation::GeluGradient, true, BiasUse::OfResult),
            256 => (Activation::None, false, BiasUse::OfA),
            512 => (Activation::None, false, BiasUse::OfB),
            other => return Err(unsupported(format!("epilogue {other}"))),
        };
        Ok(Self { activation, auxiliary, bias })
    }

    /// The auxiliary buffer is one bit an element.
    fn is_mask(self) -> bool {
        matches!(self.activation, Activation::Relu | Activation::ReluGradient)
    }
}

/// The vector of a bias or its gradient.
#[derive(Clone, Copy, Debug)]
struct Bias {
    address: u64,
    kind: Kind,
    stride: i64,
}

impl Bias {
    fn at(&self, index: usize) -> u64 {
        let offset = (index as i64).wrapping_mul(self.stride).wrapping_mul(self.kind.bytes() as i64);
        self.address.wrapping_add(offset as u64)
    }

    fn store<T: Field>(&self, memory: &dyn Memory, index: usize, sums: &[T]) -> Result<(), Fault> {
        crate::memory::store(memory, self.at(index), &bytes_as(self.kind, sums))
    }
}

/// The auxiliary buffer: what came into the activation, or one bit an element that says whether it was not negative.
/// Bits start at the least significant one of a byte, and columns at a multiple of 128.
#[derive(Clone, Copy, Debug)]
struct Auxiliary {
    address: u64,
    /// None for bits.
    kind: Option<Kind>,
    rows: usize,
    columns: usize,
    /// In elements, which may be bits, as the stride is.
    lead: usize,
    stride: i64,
}

impl Auxiliary {
    fn of(operation: &Description, epilogue: Epilogue, d: &Layout) -> Result<Self, Problem> {
        if d.by_rows {
            return Err(unsupported("an auxiliary buffer for a result by rows"));
        }
        let (rows, columns) = d.size();
        let (lead, stride) = (operation.number(12).unwrap_or(0), operation.number(13).unwrap_or(0));
        let unit = if epilogue.is_mask() { 128 } else { 8 };
        let lead = usize::try_from(lead).ok().filter(|lead| *lead >= rows && lead % unit == 0 && *lead <= 1 << 40);
        let lead = lead.ok_or_else(|| invalid("the leading dimension of the auxiliary buffer"))?;
        if stride % unit as i64 != 0 {
            return Err(invalid("the stride of the auxiliary buffer"));
        }
        let kind = match operation.number(22).filter(|kind| *kind >= 0) {
            _ if epilogue.is_mask() => None,
            Some(kind) => Some(Kind::of(kind)?),
            None => Some(d.kind),
        };
        Ok(Self { address: operation.number(11).unwrap_or(0) as u64, kind, rows, columns, lead, stride })
    }

    fn at(&self, index: usize) -> Place {
        let elements = (index as i64).wrapping_mul(self.stride);
        let offset = self.kind.map_or(elements / 8, |kind| elements.wrapping_mul(kind.bytes() as i64));
        let (address, rows) = (self.address.wrapping_add(offset as u64), self.rows);
        Place { address, rows, columns: self.columns, lead: self.lead, single: false }
    }

    /// Where a column's bits are.
    fn bits(&self, index: usize, column: usize) -> (u64, usize) {
        (self.at(index).address.wrapping_add((column * self.lead / 8) as u64), self.rows.div_ceil(8))
    }

    fn store<T: Field>(&self, memory: &dyn Memory, index: usize, values: &Matrix<T>) -> Result<(), Fault> {
        if let Some(kind) = self.kind {
            return store_matrix(memory, kind, self.at(index), values);
        }
        (0..self.columns).try_for_each(|column| {
            let (address, bytes) = self.bits(index, column);
            let mut bits = zeros::<u8>(bytes);
            for (row, value) in values.column(column).iter().enumerate() {
                bits[row / 8] |= <u8 as From<bool>>::from(is_kept(*value)) << (row % 8);
            }
            crate::memory::store(memory, address, &bits)
        })
    }

    /// What [`Auxiliary::store`] wrote; bits as one and zero.
    fn load<T: Field>(&self, memory: &dyn Memory, index: usize) -> Result<Matrix<T>, Fault> {
        if let Some(kind) = self.kind {
            return load_matrix(memory, kind, self.at(index));
        }
        let mut out = Matrix::zero(self.rows, self.columns);
        for column in 0..self.columns {
            let (address, bytes) = self.bits(index, column);
            let bits: Vec<u8> = crate::memory::load(memory, address, bytes)?;
            for (row, value) in out.column_mut(column).iter_mut().enumerate() {
                if bits[row / 8] >> (row % 8) & 1 == 1 {
                    *value = T::one();
                }
            }
        }
        Ok(out)
    }
}

/// A whole matmul.
#[derive(Clone, Copy, Debug)]
struct Matmul {
    ops: [Op; 2],
    a: Layout,
    b: Layout,
    c: Layout,
    d: Layout,
    scale: Kind,
    wide: Wide,
    epilogue: Epilogue,
    bias: Option<Bias>,
    auxiliary: Option<Auxiliary>,
}

impl Matmul {
    fn of(operation: &Description, layouts: [&Description; 4], addresses: [u64; 4]) -> Result<Self, Problem> {
        let op =
            |attribute: u32| Op::of(operation.number(attribute).unwrap_or(0)).ok_or_else(|| invalid("an operation"));
        let ops = [op(3)?, op(4)?];
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| Layout::of(layouts[at], addresses[at]));
        let (a, b, c, d) = (a?, b?, c?, d?);
        if operation.number(5).unwrap_or(0) != 0 {
            return Err(unsupported("a transposed c"));
        }
        let set = |attribute: u32| operation.number(attribute).unwrap_or(0) != 0;
        if (17..=20).any(set) || set(23) {
            return Err(unsupported("a matrix with a scale of its own"));
        }
        if set(21) || set(24) {
            return Err(unsupported("the largest value of a result"));
        }
        let scale = match operation.number(1) {
            Some(kind) => Kind::of(kind)?,
            None => Kind::of(operation.made_with("scale")?)?,
        };
        let (m, k) = turned(a.size(), ops[0]);
        let (k_b, n) = turned(b.size(), ops[1]);
        if k != k_b || d.size() != (m, n) || c.size() != (m, n) {
            return Err(invalid("the sizes of the matrices"));
        }
        let epilogue = Epilogue::of(operation.number(7).unwrap_or(1))?;
        let bias = if epilogue.bias == BiasUse::None {
            None
        } else {
            let kind = operation.number(26).filter(|kind| *kind >= 0).map_or(Ok(d.kind), Kind::of)?;
            let address = operation.number(8).unwrap_or(0) as u64;
            Some(Bias { address, kind, stride: operation.number(10).unwrap_or(0) })
        };
        let auxiliary = if epilogue.auxiliary { Some(Auxiliary::of(operation, epilogue, &d)?) } else { None };
        let wide = Wide::of(&[a.kind, b.kind, c.kind, d.kind], scale)?;
        Ok(Self { ops, a, b, c, d, scale, wide, epilogue, bias, auxiliary })
    }

    fn run<T: Field>(&self, memory: &dyn Memory, scalars: &[Scalar; 2]) -> Result<(), Fault> {
        let alpha: T = scalar(&scalars[0], self.scale, memory)?;
        let beta: T = scalar(&scalars[1], self.scale, memory)?;
        let (rows, columns) = self.d.size();
        // Nothing is made, however many columns of nothing a program names; only sums over an operand may be asked for.
        let sums = matches!(self.epilogue.bias, BiasUse::OfA | BiasUse::OfB);
        let batches = if (rows == 0 || columns == 0) && !sums { 0 } else { self.d.batch.max(1) };
        for index in 0..batches {
            let mut out =
                if beta == T::zero() { Matrix::zero(rows, columns) } else { self.c.load::<T>(memory, index)? };
            let (a, b) = (self.a.load(memory, index)?, self.b.load(memory, index)?);
            gemm(alpha, &a, self.ops[0], &b, self.ops[1], beta, &mut out);
            if let (Some(bias), BiasUse::Added) = (&self.bias, self.epilogue.bias) {
                let bias: Vec<T> = load_as(memory, bias.kind, bias.at(index), rows)?;
                for column in 0..columns {
                    out.column_mut(column).iter_mut().zip(&bias).for_each(|(value, bias)| *value += *bias);
                }
            }
            self.activate(memory, index, &mut out)?;
            if let Some(bias) = &self.bias {
                match self.epilogue.bias {
                    BiasUse::None | BiasUse::Added => {}
                    BiasUse::OfResult => bias.store(memory, index, &row_sums(&out))?,
                    BiasUse::OfA => bias.store(memory, index, &row_sums(&applied(&a, self.ops[0])))?,
                    BiasUse::OfB => {
                        let turned = applied(&applied(&b, self.ops[1]), Op::Transpose);
                        bias.store(memory, index, &row_sums(&turned))?;
                    }
                }
            }
            self.d.store(memory, index, &out)?;
        }
        Ok(())
    }

    /// The activation or its derivative, with the auxiliary buffer where there is one.
    fn activate<T: Field>(&self, memory: &dyn Memory, index: usize, out: &mut Matrix<T>) -> Result<(), Fault> {
        let function: fn(T) -> T = match self.epilogue.activation {
            Activation::None => return Ok(()),
            Activation::Relu => relu,
            Activation::Gelu => gelu,
            gradient => {
                let Some(auxiliary) = &self.auxiliary else { return Ok(()) };
                let given = auxiliary.load::<T>(memory, index)?;
                for (value, given) in out.data.iter_mut().zip(given.data) {
                    *value = match gradient {
                        Activation::GeluGradient => *value * gelu_slope(given),
                        _ if given == T::zero() => T::zero(),
                        _ => *value,
                    };
                }
                return Ok(());
            }
        };
        if let Some(auxiliary) = &self.auxiliary {
            auxiliary.store(memory, index, out)?;
        }
        out.data.iter_mut().for_each(|value| *value = function(*value));
        Ok(())
    }
}

/// The sum of each row.
fn row_sums<T: Field>(matrix: &Matrix<T>) -> Vec<T> {
    let mut sums: Vec<T> = zeros(matrix.rows);
    for column in 0..matrix.columns {
        sums.iter_mut().zip(matrix.column(column)).for_each(|(sum, value)| *sum += *value);
    }
    sums
}

fn turned((rows, columns): (usize, usize), op: Op) -> (usize, usize) {
    if op == Op::None { (rows, columns) } else { (columns, rows) }
}

/// Whether the rectifier keeps a value, which is also its bit in the mask: a NaN stays what it is, in both directions.
fn is_kept<T: Field>(value: T) -> bool {
    value.re() >= T::Real::zero() || value.re().is_nan()
}

fn relu<T: Field>(value: T) -> T {
    if is_kept(value) { value } else { T::zero() }
}

fn constant<T: Field>(number: f64) -> T::Real {
    <T::Real as NumCast>::from(number).unwrap_or_else(T::Real::zero)
}

/// sqrt(2 / pi)
const ROOT: f64 = 0.797_884_560_802_865_4;
const CUBIC: f64 = 0.044_715;

/// The approximation by tanh, which is what cuBLASLt computes.
fn gelu<T: Field>(value: T) -> T {
    let x = value.re();
    let inner = constant::<T>(ROOT) * (x + constant::<T>(CUBIC) * x * x * x);
    T::from_real(constant::<T>(0.5) * x * (T::Real::one() + inner.tanh()))
}

/// Its derivative.
fn gelu_slope<T: Field>(value: T) -> T {
    let (x, one) = (value.re(), T::Real::one());
    let tanh = (constant::<T>(ROOT) * (x + constant::<T>(CUBIC) * x * x * x)).tanh();
    let inner = constant::<T>(ROOT) * (one + constant::<T>(3.0 * CUBIC) * x * x);
    T::from_real(constant::<T>(0.5) * (one + tanh + x * (one - tanh * tanh) * inner))
}

fn queue<T: Field>(matmul: Matmul, scalars: [Scalar; 2]) -> Result<Job, Problem> {
    job(move |memory, _| matmul.run::<T>(memory, &scalars))
}

fn described<'a>(call: &Call, known: &'a Descriptions, names: [&str; 5]) -> Result<[&'a Description; 5], Problem> {
    let [operation, a, b, c, d] = names.map(|name| known.get(call, name));
    Ok([operation?, a?, b?, c?, d?])
}

fn matmul(call: &Call, known: &Descriptions) -> Result<Job, Problem> {
    let names = ["desc", "alayout", "blayout", "clayout", "dlayout"];
    let [operation, a, b, c, d] = described(call, known, names)?;
    let addresses = [call.device("a")?, call.device("b")?, call.device("c")?, call.device("d")?];
    let matmul = Matmul::of(operation, [a, b, c, d], addresses)?;
    if operation.number(2).unwrap_or(0) > 1 {
        return Err(unsupported("a vector of alphas"));
    }
    // The question which algorithm to take may come before the buffers are there; the product may not.
    if matmul.bias.is_some_and(|bias| bias.address == 0) || matmul.auxiliary.is_some_and(|aux| aux.address == 0) {
        return Err(invalid("an epilogue without its buffer"));
    }
    let scalars = [call.scalar("alpha")?, call.scalar_or_none("beta")?];
    in_wide!(matmul.wide, queue(matmul, scalars))
}

/// A cublasLtMatmulHeuristicResult_t: no workspace, success, one wave.
fn result() -> [u8; 96] {
    let mut result = [0; 96];
    result[76..80].copy_from_slice(&1f32.to_le_bytes());
    result
}

/// Writes an output by name.
fn answer(call: &Call, outputs: &mut Outputs, name: &str, data: &[u8]) -> Result<(), Problem> {
    if let Goal::Host(number) = call.target(name)?.place {
        outputs.set(number, data);
    }
    Ok(())
}

fn ask(call: &Call, known: &Descriptions) -> Result<Step, Problem> {
    let mut outputs = call.outputs();
    let one = 1i32.to_le_bytes();
    match call.function.symbol.as_str() {
        "cublasLtMatmulAlgoGetHeuristic" | "cublasLtMatmulAlgoCheck" => {
            let [operation, a, b, c, d] = described(call, known, ["desc", "a", "b", "c", "d"])?;
            Matmul::of(operation, [a, b, c, d], [0; 4])?;
            if call.has("results") {
                answer(call, &mut outputs, "results", &result())?;
                answer(call, &mut outputs, "found", &one)?;
            } else {
                answer(call, &mut outputs, "result", &result())?;
            }
        }
        "cublasLtMatmulAlgoInit" => {}
        "cublasLtMatmulAlgoGetIds" => answer(call, &mut outputs, "found", &one)?,
        "cublasLtMatmulAlgoConfigSetAttribute" => {
            let (at, data) = (call.size("attribute")? * 4, call.bytes("data")?.unwrap_or(&[]));
            let algo = &mut outputs.0[0];
            let room = algo.get_mut(at..at + data.len().min(4)).ok_or_else(|| invalid("the attribute"))?;
            room.copy_from_slice(&data[..data.len().min(4)]);
        }
        "cublasLtMatmulAlgoConfigGetAttribute" => {
            let (at, algo) = (call.size("attribute")? * 4, call.bytes("algo")?.unwrap_or(&[]));
            let value = algo.get(at..at + 4).ok_or_else(|| invalid("the attribute"))?;
            answer(call, &mut outputs, "data", value)?;
            answer(call, &mut outputs, "written", &4u64.to_le_bytes())?;
        }
        _ => return Err(invalid("not served")),
    }
    Ok(Step::Done(outputs.joined()))
}

/// Whether a function that is not about descriptions is served.
pub fn serves(symbol: &str) -> bool {
    symbol != "cublasLtMatrixTransform"
}

/// Prepares a call.
pub fn prepare(call: &Call, known: &Descriptions) -> Result<Step, Problem> {
    match call.function.symbol.as_str() {
        "cublasLtMatmul" => Ok(crate::objects::scheduled(call, matmul(call, known)?)),
        _ => ask(call, known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rectifier_keeps_nans_and_marks_what_it_keeps() {
        for (value, kept) in [(1.5, true), (0.0, true), (-0.0, true), (-1e-300, false), (f64::NEG_INFINITY, false)] {
            assert_eq!((is_kept(value), relu(value)), (kept, if kept { value } else { 0.0 }));
        }
        assert!(is_kept(f64::NAN) && relu(f64::NAN).is_nan());
    }
}
