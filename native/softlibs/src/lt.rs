//! cuBLASLt: products by description, with what is done to their results.

use crate::arguments::{Call, Goal, Outputs, Scalar};
use crate::blas::mixed::scalar;
use crate::description::Description;
use crate::memory::{Fault, Matrix, Memory, Place};
use crate::number::{Field, Op, applied, gemm};
use crate::objects::{Descriptions, Job, Step, job};
use crate::types::{Kind, Wide, load_as, load_matrix, store_matrix};
use crate::{Problem, in_wide, invalid, unsupported};
use num_traits::{Float, NumCast, Zero};

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
        Ok(Self {
            kind: Kind::of(number(0, "type")?)?,
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

/// What follows the product.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Activation {
    None,
    Relu,
    Gelu,
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
    activation: Activation,
    /// Address, type and stride of the batch.
    bias: Option<(u64, Kind, i64)>,
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
        if (17..=20).any(|attribute| operation.number(attribute).unwrap_or(0) != 0) {
            return Err(unsupported("a matrix with a scale of its own"));
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
        let epilogue = operation.number(7).unwrap_or(1);
        let activation = match epilogue & !4 {
            0 | 1 => Activation::None,
            2 => Activation::Relu,
            32 => Activation::Gelu,
            other => return Err(unsupported(format!("epilogue {other}"))),
        };
        let bias = if epilogue & 4 != 0 {
            let address = operation.number(8).unwrap_or(0) as u64;
            let kind = operation.number(26).filter(|kind| *kind >= 0).map_or(Ok(d.kind), Kind::of)?;
            Some((address, kind, operation.number(10).unwrap_or(0)))
        } else {
            None
        };
        let wide = Wide::of(&[a.kind, b.kind, c.kind, d.kind], scale)?;
        Ok(Self { ops, a, b, c, d, scale, wide, activation, bias })
    }

    fn run<T: Field>(&self, memory: &dyn Memory, scalars: &[Scalar; 2]) -> Result<(), Fault> {
        let alpha: T = scalar(&scalars[0], self.scale, memory)?;
        let beta: T = scalar(&scalars[1], self.scale, memory)?;
        let (rows, columns) = self.d.size();
        for index in 0..self.d.batch.max(1) {
            let mut out =
                if beta == T::zero() { Matrix::zero(rows, columns) } else { self.c.load::<T>(memory, index)? };
            let (a, b) = (self.a.load(memory, index)?, self.b.load(memory, index)?);
            gemm(alpha, &a, self.ops[0], &b, self.ops[1], beta, &mut out);
            if let Some((address, kind, stride)) = self.bias {
                let offset = (index as i64 * stride).wrapping_mul(kind.bytes() as i64);
                let bias: Vec<T> = load_as(memory, kind, address.wrapping_add(offset as u64), rows)?;
                for column in 0..columns {
                    out.column_mut(column).iter_mut().zip(&bias).for_each(|(value, bias)| *value += *bias);
                }
            }
            match self.activation {
                Activation::None => {}
                Activation::Relu => out.data.iter_mut().for_each(|value| *value = relu(*value)),
                Activation::Gelu => out.data.iter_mut().for_each(|value| *value = gelu(*value)),
            }
            self.d.store(memory, index, &out)?;
        }
        Ok(())
    }
}

fn turned((rows, columns): (usize, usize), op: Op) -> (usize, usize) {
    if op == Op::None { (rows, columns) } else { (columns, rows) }
}

fn relu<T: Field>(value: T) -> T {
    if value.re() < T::Real::zero() { T::zero() } else { value }
}

/// The approximation by tanh, which is what cuBLASLt computes.
fn gelu<T: Field>(value: T) -> T {
    let x = value.re();
    let constant = |number: f64| <T::Real as NumCast>::from(number).unwrap_or_else(T::Real::zero);
    let inner = constant(0.797_884_560_802_865_4) * (x + constant(0.044_715) * x * x * x);
    T::from_real(constant(0.5) * x * (constant(1.0) + inner.tanh()))
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
    let scalars = [call.scalar("alpha")?, call.scalar("beta")?];
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
