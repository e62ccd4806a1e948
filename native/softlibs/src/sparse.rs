//! cuSPARSE: products of sparse matrices with vectors and dense matrices, and the conversions between formats, in double
//! precision. Matrices and vectors are objects that say where their numbers lie.

use crate::arguments::{Call, Goal, Scalar};
use crate::blas::mixed::scalar;
use crate::description::Description;
use crate::lt::Layout;
use crate::memory::{Fault, Matrix, Memory, Place, collected, load, room, store, zeros};
use crate::number::{Field, Op, applied};
use crate::objects::{Job, Step, job, scheduled};
use crate::types::{Kind, Wide, bytes_as, load_as};
use crate::{Problem, in_double, invalid, unsupported};
use sluice_api::libraries::{Kind as Parameter, Way};

/// Finds the object that an argument names.
pub(crate) type Find<'a> = &'a dyn Fn(&str) -> Result<&'a Description, Problem>;

/// What an object's maker makes; kept beside its numbers.
const CSR: i64 = 1;
const CSC: i64 = 2;
const COO: i64 = 3;

/// The object that a call makes.
pub fn made(call: &Call) -> Description {
    let mut description = Description::of(call);
    let symbol = call.function.symbol.as_str();
    let formats = [("Csr", CSR), ("Csc", CSC), ("Coo", COO)];
    if let Some((_, format)) = formats.iter().find(|(name, _)| symbol.ends_with(name)) {
        description.put("format", *format);
    }
    description
}

/// Indices of 32 or 64 bits, from zero on.
#[derive(Clone, Copy)]
struct Indices {
    address: u64,
    wide: bool,
    base: i64,
}

impl Indices {
    fn load(&self, memory: &dyn Memory, count: usize) -> Result<Vec<usize>, Fault> {
        let from_base = |index: i64| usize::try_from(index - self.base).unwrap_or(usize::MAX);
        Ok(if self.wide {
            load::<i64>(memory, self.address, count)?.into_iter().map(from_base).collect()
        } else {
            let indices = load::<i32>(memory, self.address, count)?;
            collected(count, indices.into_iter().map(|index| from_base(index.into())))
        })
    }

    fn store(&self, memory: &dyn Memory, indices: &[usize]) -> Result<(), Fault> {
        let based = indices.iter().map(|index| *index as i64 + self.base);
        if self.wide {
            store(memory, self.address, &collected(indices.len(), based))
        } else {
            store(memory, self.address, &collected(indices.len(), based.map(|index| index as i32)))
        }
    }
}

/// A sparse matrix.
#[derive(Clone, Copy)]
struct Sparse {
    format: i64,
    rows: usize,
    columns: usize,
    count: usize,
    /// Offsets of rows or columns; the row of each element in coordinates.
    first: Indices,
    second: Indices,
    values: u64,
    kind: Kind,
}

/// Element by element: row, column and value.
type Entries<T> = Vec<(usize, usize, T)>;

fn index_width(number: i64) -> Result<bool, Problem> {
    match number {
        2 => Ok(false),
        3 => Ok(true),
        other => Err(unsupported(format!("index type {other}"))),
    }
}

impl Sparse {
    fn of(known: &Description) -> Result<Self, Problem> {
        let number = |name: &str| known.made_with(name);
        let size = |name: &str| usize::try_from(number(name)?).map_err(|_| invalid(name));
        if known.made_with("batch").is_ok_and(|batch| batch > 1) {
            return Err(unsupported("a batch of sparse matrices"));
        }
        let (format, base) = (number("format").map_err(|_| invalid("this is no sparse matrix"))?, number("base")?);
        let second_wide = index_width(number("indextype")?)?;
        let first_wide = if format == COO { second_wide } else { index_width(number("offsetstype")?)? };
        let [first, second] = if format == COO { ["rowindices", "indices"] } else { ["offsets", "indices"] };
        Ok(Self {
            format,
            rows: size("rows")?,
            columns: size("cols")?,
            count: size("nnz")?,
            first: Indices { address: number(first)? as u64, wide: first_wide, base },
            second: Indices { address: number(second)? as u64, wide: second_wide, base },
            values: number("values")? as u64,
            kind: Kind::of(number("type")?)?,
        })
    }

    /// Every element; one outside the matrix is a fault at its index.
    fn entries<T: Field>(&self, memory: &dyn Memory) -> Result<Entries<T>, Fault> {
        let values: Vec<T> = load_as(memory, self.kind, self.values, self.count)?;
        let second = self.second.load(memory, self.count)?;
        let first = if self.format == COO {
            self.first.load(memory, self.count)?
        } else {
            let outer = if self.format == CSR { self.rows } else { self.columns };
            spread(&self.first.load(memory, outer + 1)?, self.count)
        };
        let entries = first.into_iter().zip(second).zip(values).map(|((first, second), value)| {
            if self.format == CSC { (second, first, value) } else { (first, second, value) }
        });
        let entries: Entries<T> = collected(self.count, entries);
        match entries.iter().position(|(row, column, _)| *row >= self.rows || *column >= self.columns) {
            Some(at) => Err(Fault { address: self.second.address + at as u64 * 4, bytes: 4 }),
            None => Ok(entries),
        }
    }
}

/// The row of each element, from the offsets of rows.
fn spread(offsets: &[usize], count: usize) -> Vec<usize> {
    let mut rows = room(count);
    rows.resize(count, usize::MAX);
    for (row, pair) in offsets.windows(2).enumerate() {
        if let Some(part) = rows.get_mut(pair[0]..pair[1]) {
            part.fill(row);
        }
    }
    rows
}

/// Where each row begins, from the row of each element.
fn gathered(rows: &[usize], count: usize) -> Vec<usize> {
    let mut offsets = zeros(count + 1);
    rows.iter().filter(|row| **row < count).for_each(|row| offsets[*row + 1] += 1);
    for row in 0..count {
        offsets[row + 1] += offsets[row];
    }
    offsets
}

/// A dense matrix, or a vector as one of a single column.
fn dense(known: &Description) -> Result<Layout, Problem> {
    let number = |name: &str| known.made_with(name);
    let size = |name: &str| usize::try_from(number(name)?).map_err(|_| invalid(name));
    let (kind, address) = (Kind::of(number("type")?)?, number("values")? as u64);
    let Ok(order) = number("order") else {
        let rows = size("size")?;
        let place = Place { address, rows, columns: 1, lead: rows.max(1), single: false };
        return Ok(Layout { kind, place, by_rows: false, batch: 1, stride: 0 });
    };
    if known.made_with("batch").is_ok_and(|batch| batch > 1) {
        return Err(unsupported("a batch of dense matrices beside a sparse one"));
    }
    let by_rows = order == 2;
    let (rows, columns) = if by_rows { (size("cols")?, size("rows")?) } else { (size("rows")?, size("cols")?) };
    let lead = size("ld")?;
    if lead < rows || lead > 1 << 40 {
        return Err(invalid("a leading dimension"));
    }
    Ok(Layout { kind, place: Place { address, rows, columns, lead, single: false }, by_rows, batch: 1, stride: 0 })
}

/// `c = alpha op(a) op(b) + beta c`
struct Product {
    a: Sparse,
    b: Layout,
    c: Layout,
    ops: [Op; 2],
    compute: Kind,
    scalars: [Scalar; 2],
}

impl Product {
    fn of(call: &Call, known: Find) -> Result<Self, Problem> {
        let [a, b, c] = if call.has("opb") { ["a", "b", "c"] } else { ["a", "x", "y"] };
        let ops = [call.op("opa")?, if call.has("opb") { call.op("opb")? } else { Op::None }];
        let product = Self {
            a: Sparse::of(known(a)?)?,
            b: dense(known(b)?)?,
            c: dense(known(c)?)?,
            ops,
            compute: Kind::of(call.int("compute")?)?,
            scalars: [call.scalar("alpha")?, call.scalar("beta")?],
        };
        let turned = |(rows, columns): (usize, usize), op: Op| op.stored(rows, columns);
        let (m, k) = turned((product.a.rows, product.a.columns), ops[0]);
        let (k_b, n) = turned(product.b.size(), ops[1]);
        if k != k_b || product.c.size() != (m, n) {
            return Err(invalid("the sizes of the matrices"));
        }
        Ok(product)
    }

    fn queue<T: Field>(self) -> Result<Job, Problem> {
        job(move |memory, _| {
            let (alpha, beta): (T, T) =
                (scalar(&self.scalars[0], self.compute, memory)?, scalar(&self.scalars[1], self.compute, memory)?);
            let b: Matrix<T> = applied(&self.b.load(memory, 0)?, self.ops[1]);
            let (rows, columns) = self.c.size();
            let mut out = Matrix::<T>::zero(rows, columns);
            if beta != T::zero() {
                out = self.c.load(memory, 0)?;
                out.data.iter_mut().for_each(|value| *value *= beta);
            }
            let entries = self.a.entries::<T>(memory)?;
            for column in 0..columns {
                let (from, to) = (b.column(column), out.column_mut(column));
                for &(row, middle, value) in &entries {
                    match self.ops[0] {
                        Op::None => to[row] += alpha * value * from[middle],
                        Op::Transpose => to[middle] += alpha * value * from[row],
                        Op::Conjugate => to[middle] += alpha * value.conj() * from[row],
                    }
                }
            }
            self.c.store(memory, 0, &out)
        })
    }
}

fn product(call: &Call, known: Find) -> Result<Job, Problem> {
    let product = Product::of(call, known)?;
    let wide = Wide::of(&[product.a.kind, product.b.kind, product.c.kind], product.compute)?;
    in_double!(wide, start(product))
}

fn start<T: Field>(product: Product) -> Result<Job, Problem> {
    product.queue::<T>()
}

fn to_dense<T: Field>(a: Sparse, b: Layout) -> Result<Job, Problem> {
    job(move |memory, _| {
        let mut out = Matrix::<T>::zero(a.rows, a.columns);
        a.entries::<T>(memory)?.into_iter().for_each(|(row, column, value)| *out.at_mut(row, column) = value);
        b.store(memory, 0, &out)
    })
}

/// Values by their indices.
fn gather(known: Find) -> Result<Job, Problem> {
    let (x, y) = (known("x")?, known("y")?);
    let (kind, count) = (Kind::of(x.made_with("type")?)?, x.made_with("nnz")?.max(0) as usize);
    let indices = Indices {
        address: x.made_with("indices")? as u64,
        wide: index_width(x.made_with("indextype")?)?,
        base: x.made_with("base")?,
    };
    let (target, source) = (x.made_with("values")? as u64, y.made_with("values")? as u64);
    let size = y.made_with("size")?.max(0) as usize;
    job(move |memory, _| {
        let all: Vec<u8> = load(memory, source, size * kind.bytes())?;
        let mut out = room(count * kind.bytes());
        for index in indices.load(memory, count)? {
            let fault = Fault { address: indices.address, bytes: 4 };
            let at = index.checked_mul(kind.bytes()).ok_or(fault)?;
            out.extend_from_slice(all.get(at..at + kind.bytes()).ok_or(fault)?);
        }
        store(memory, target, &out)
    })
}

fn narrow(address: u64, base: i64) -> Indices {
    Indices { address, wide: false, base }
}

/// From rows to columns: the transpose.
fn turn<T: Field>(call: &Call, kind: Kind) -> Result<Job, Problem> {
    let (m, n, count, base) = (call.size("m")?, call.size("n")?, call.size("nnz")?, call.int("base")?);
    let a = Sparse {
        format: CSR,
        rows: m,
        columns: n,
        count,
        first: narrow(call.device("offsets")?, base),
        second: narrow(call.device("indices")?, base),
        values: call.device("values")?,
        kind,
    };
    let with_values = call.int("action")? == 1;
    let (values, offsets, rows) = (call.device("newvalues")?, call.device("newoffsets")?, call.device("newindices")?);
    job(move |memory, _| {
        let outer = spread(&a.first.load(memory, m + 1)?, count);
        let inner = a.second.load(memory, count)?;
        let mut order = collected(count, 0..count);
        // Without memory beside it, which a stable one takes; of equal ones the first stays first.
        order.sort_unstable_by_key(|at| (inner[*at], outer[*at], *at));
        let sorted = collected(count, order.iter().map(|at| outer[*at]));
        narrow(offsets, base).store(memory, &gathered(&inner, n))?;
        narrow(rows, base).store(memory, &sorted)?;
        if with_values {
            let all: Vec<T> = load_as(memory, kind, a.values, count)?;
            let turned = collected(count, order.iter().map(|at| all[*at]));
            store(memory, values, &bytes_as(kind, &turned))?;
        }
        Ok(())
    })
}

/// Sorts indices, and the permutation with them: first by the outer ones, then by the inner ones.
fn sort(call: &Call, by_columns: bool) -> Result<Job, Problem> {
    let (m, n, count) = (call.size("m")?, call.size("n")?, call.size("nnz")?);
    let permutation = call.device("permutation")?;
    let inner = narrow(call.device("indices")?, 0);
    let compressed = call.has("offsets");
    let outer = narrow(call.device(if compressed { "offsets" } else { "rowindices" })?, 0);
    let lines = if call.function.symbol == "cusparseXcscsort" { n } else { m };
    job(move |memory, _| {
        let inner_indices = inner.load(memory, count)?;
        let outer_indices = if compressed {
            // Offsets may begin with one; only their differences count.
            let offsets = outer.load(memory, lines + 1)?;
            let begin = offsets[0];
            spread(&collected(lines + 1, offsets.iter().map(|offset| offset - begin)), count)
        } else {
            outer.load(memory, count)?
        };
        let mut order = collected(count, 0..count);
        order.sort_unstable_by_key(|at| {
            let (outer, inner) = (outer_indices[*at], inner_indices[*at]);
            if by_columns { (inner, outer, *at) } else { (outer, inner, *at) }
        });
        let ordered = |all: &[usize]| collected(count, order.iter().map(|at| all[*at]));
        inner.store(memory, &ordered(&inner_indices))?;
        if !compressed {
            outer.store(memory, &ordered(&outer_indices))?;
        }
        if permutation != 0 {
            let place = narrow(permutation, 0);
            let known = place.load(memory, count)?;
            place.store(memory, &ordered(&known))?;
        }
        Ok(())
    })
}

/// Whether a function that is not about objects is served.
pub fn serves(symbol: &str) -> bool {
    let name = symbol.strip_prefix("cusparse").unwrap_or("");
    let name = name.strip_suffix("_bufferSize").or_else(|| name.strip_suffix("_bufferSizeExt")).unwrap_or(name);
    matches!(
        name,
        "SpMV"
            | "SpMV_preprocess"
            | "SpMM"
            | "SpMM_preprocess"
            | "SparseToDense"
            | "Gather"
            | "CreateIdentityPermutation"
            | "Xcoo2csr"
            | "Xcsr2coo"
            | "Csr2cscEx2"
            | "Xcoosort"
            | "XcoosortByRow"
            | "XcoosortByColumn"
            | "Xcsrsort"
            | "Xcscsort"
    ) || is_question(name)
}

/// Whether it asks what an object says.
fn is_question(name: &str) -> bool {
    ["SpMatGet", "SpVecGet", "DnMatGet", "DnVecGet", "CsrGet", "CscGet", "CooGet"]
        .iter()
        .any(|kind| name.starts_with(kind))
}

/// Prepares a call.
pub fn prepare(call: &Call, known: Find) -> Result<Step, Problem> {
    let name = call.function.symbol.strip_prefix("cusparse").unwrap_or("");
    let mut outputs = call.outputs();
    if call.function.way == Way::Ask {
        // No work area is needed; not every program bears a size of nothing.
        if let Some(first) = outputs.0.first_mut() {
            first[0] = 16;
        }
        return Ok(Step::Done(outputs.joined()));
    }
    if is_question(name) {
        let object = known("object")?;
        for parameter in call.function.parameters.iter().filter(|parameter| matches!(parameter.kind, Parameter::Out(_)))
        {
            if let Goal::Host(number) = call.target(&parameter.name)?.place {
                let value = match object.made_with(&parameter.name) {
                    Err(_) if parameter.name == "batch" => 1,
                    Err(_) if parameter.name == "stride" => 0,
                    other => other?,
                };
                outputs.set(number, &value.to_le_bytes());
            }
        }
        return Ok(Step::Done(outputs.joined()));
    }
    let job = match name {
        "SpMV" | "SpMM" => product(call, known)?,
        // Nothing is gained by looking at a matrix beforehand.
        "SpMV_preprocess" | "SpMM_preprocess" => return Ok(Step::Done(outputs.joined())),
        "SparseToDense" => {
            let (a, b) = (Sparse::of(known("a")?)?, dense(known("b")?)?);
            if b.size() != (a.rows, a.columns) {
                return Err(invalid("the sizes of the matrices"));
            }
            in_double!(Wide::of(&[a.kind, b.kind], b.kind)?, to_dense(a, b))?
        }
        "Gather" => gather(known)?,
        "CreateIdentityPermutation" => {
            let (count, place) = (call.size("n")?, narrow(call.device("permutation")?, 0));
            job(move |memory, _| place.store(memory, &(0..count).collect::<Vec<usize>>()))?
        }
        "Xcoo2csr" => {
            let (count, m, base) = (call.size("nnz")?, call.size("m")?, call.int("base")?);
            let (from, to) = (narrow(call.device("rowindices")?, base), narrow(call.device("offsets")?, base));
            job(move |memory, _| to.store(memory, &gathered(&from.load(memory, count)?, m)))?
        }
        "Xcsr2coo" => {
            let (count, m, base) = (call.size("nnz")?, call.size("m")?, call.int("base")?);
            let (from, to) = (narrow(call.device("offsets")?, base), narrow(call.device("rowindices")?, base));
            job(move |memory, _| to.store(memory, &spread(&from.load(memory, m + 1)?, count)))?
        }
        "Csr2cscEx2" => {
            let kind = Kind::of(call.int("type")?)?;
            in_double!(Wide::of(&[kind], kind)?, turn(call, kind))?
        }
        "XcoosortByRow" | "Xcsrsort" | "Xcscsort" => sort(call, false)?,
        "XcoosortByColumn" => sort(call, true)?,
        _ => return Err(unsupported(&call.function.symbol)),
    };
    Ok(scheduled(call, job))
}
