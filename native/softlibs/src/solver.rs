//! cuSOLVER's dense part: LU, Cholesky, QR, eigenvalues of Hermitian matrices and singular values, in double precision.
//! What Jacobi's method and its like are asked for is computed as everything else: the results are the same.

use crate::arguments::{Call, mirrored};
use crate::blas::batched::{addresses, solve_lu};
use crate::factor::{apply_q, cholesky, lu, qr, solve_cholesky};
use crate::memory::{Fault, Matrix, Memory, Place, bytes_of, collected, load, store, store_numbers};
use crate::number::{Op, applied};
use crate::objects::{Job, Step, job, scheduled};
use crate::spectral::{Double, eigen, singular};
use crate::{Problem, invalid, unsupported};
use num_complex::Complex64;
use sluice_api::libraries::Way;

/// The operation that a name ends in, without the type before it.
fn operation(symbol: &str) -> &str {
    symbol.strip_prefix("cusolverDn").and_then(|name| name.get(1..)).unwrap_or("")
}

/// Whether a function that is not about objects is served.
pub fn serves(symbol: &str) -> bool {
    let name = operation(symbol);
    matches!(
        name.trim_end_matches("_bufferSize"),
        "getrf"
            | "getrs"
            | "potrf"
            | "potrs"
            | "potrfBatched"
            | "potrsBatched"
            | "geqrf"
            | "orgqr"
            | "ungqr"
            | "ormqr"
            | "unmqr"
            | "syevd"
            | "heevd"
            | "syevj"
            | "heevj"
            | "syevjBatched"
            | "heevjBatched"
            | "syevBatched"
            | "gesvd"
            | "gesvdj"
            | "gesvdjBatched"
            | "gesvdaStridedBatched"
            | "gesvdp"
    )
}

/// Prepares a call.
pub fn prepare(call: &Call) -> Result<Step, Problem> {
    let symbol = call.function.symbol.as_str();
    let complex = if call.has("atype") {
        let kind = call.int("atype")?;
        for other in ["compute", "btype"].into_iter().filter(|name| call.has(name)) {
            if call.int(other)? != kind {
                return Err(unsupported("a type that is not the matrix's"));
            }
        }
        match kind {
            0 | 1 => false,
            4 | 5 => true,
            other => return Err(unsupported(format!("data type {other}"))),
        }
    } else {
        symbol.strip_prefix("cusolverDn").is_some_and(|name| name.starts_with(['C', 'Z']))
    };
    if call.function.way == Way::Ask {
        // No work area is needed; one element is asked for, as not every program bears a size of nothing.
        let mut outputs = call.outputs();
        if let Some(first) = outputs.0.first_mut() {
            first[0] = if call.has("atype") { 16 } else { 1 };
        }
        return Ok(Step::Done(outputs.joined()));
    }
    let job = if complex { find::<Complex64>(call)? } else { find::<f64>(call)? };
    Ok(scheduled(call, job))
}

fn find<T: Double>(call: &Call) -> Result<Job, Problem> {
    match operation(&call.function.symbol) {
        "getrf" => getrf::<T>(call),
        "getrs" => getrs::<T>(call),
        "potrf" => potrf::<T>(call),
        "potrs" => potrs::<T>(call),
        "potrfBatched" => potrf_batched::<T>(call),
        "potrsBatched" => potrs_batched::<T>(call),
        "geqrf" => geqrf::<T>(call),
        "orgqr" | "ungqr" => orgqr::<T>(call),
        "ormqr" | "unmqr" => ormqr::<T>(call),
        "syevd" | "heevd" | "syevj" | "heevj" | "syevjBatched" | "heevjBatched" | "syevBatched" => syev::<T>(call),
        "gesvd" => gesvd::<T>(call),
        "gesvdj" | "gesvdjBatched" | "gesvdaStridedBatched" | "gesvdp" => gesvdj::<T>(call),
        _ => Err(unsupported(&call.function.symbol)),
    }
}

/// The place of matrix `index` of a batch without gaps.
fn in_batch<T: Double>(place: Place, index: usize) -> Place {
    let bytes = index * place.lead * place.columns * bytes_of::<T>(place.single);
    Place { address: place.address + bytes as u64, ..place }
}

/// Pivots are C ints, and 64 bits wide in the functions of any type.
fn store_pivots(memory: &dyn Memory, address: u64, pivots: &[i32], wide: bool) -> Result<(), Fault> {
    if !wide {
        return store(memory, address, pivots);
    }
    store(memory, address, &collected(pivots.len(), pivots.iter().map(|pivot| i64::from(*pivot))))
}

fn load_pivots(memory: &dyn Memory, address: u64, count: usize, wide: bool) -> Result<Vec<i32>, Fault> {
    match (address, wide) {
        (0, _) => Ok(Vec::new()),
        (_, false) => load(memory, address, count),
        _ => Ok(collected(count, load::<i64>(memory, address, count)?.into_iter().map(|pivot| pivot as i32))),
    }
}

fn getrf<T: Double>(call: &Call) -> Result<Job, Problem> {
    let (m, n, wide) = (call.size("m")?, call.size("n")?, call.has("atype"));
    let (a, pivots, info) = (call.matrix("a", m, n)?, call.device("pivots")?, call.device("info")?);
    job(move |memory, _| {
        let mut matrix = a.load::<T>(memory)?;
        let (exchanged, zero) = lu(&mut matrix, pivots != 0);
        a.store(memory, &matrix)?;
        if pivots != 0 {
            store_pivots(memory, pivots, &exchanged, wide)?;
        }
        store(memory, info, &[zero])
    })
}

fn getrs<T: Double>(call: &Call) -> Result<Job, Problem> {
    let (n, columns, op, wide) = (call.size("n")?, call.size("nrhs")?, call.op("trans")?, call.has("atype"));
    let (a, b) = (call.matrix("a", n, n)?, call.matrix("b", n, columns)?);
    let (pivots, info) = (call.device("pivots")?, call.device("info")?);
    job(move |memory, _| {
        let (factors, mut right) = (a.load::<T>(memory)?, b.load(memory)?);
        solve_lu(&factors, &load_pivots(memory, pivots, n, wide)?, op, &mut right);
        b.store(memory, &right)?;
        store(memory, info, &[0i32])
    })
}

fn factor_at<T: Double>(memory: &dyn Memory, a: Place, upper: bool) -> Result<i32, Fault> {
    let mut matrix = a.load::<T>(memory)?;
    let info = cholesky(&mut matrix, upper);
    a.store_triangle(memory, &matrix, upper)?;
    Ok(info)
}

fn solve_at<T: Double>(memory: &dyn Memory, a: Place, b: Place, upper: bool) -> Result<(), Fault> {
    let mut right = b.load::<T>(memory)?;
    solve_cholesky(&a.load(memory)?, upper, &mut right);
    b.store(memory, &right)
}

fn potrf<T: Double>(call: &Call) -> Result<Job, Problem> {
    let (n, upper, info) = (call.size("n")?, call.upper()?, call.device("info")?);
    let a = call.matrix("a", n, n)?;
    job(move |memory, _| store(memory, info, &[factor_at::<T>(memory, a, upper)?]))
}

fn potrs<T: Double>(call: &Call) -> Result<Job, Problem> {
    let (n, columns, upper, info) = (call.size("n")?, call.size("nrhs")?, call.upper()?, call.device("info")?);
    let (a, b) = (call.matrix("a", n, n)?, call.matrix("b", n, columns)?);
    job(move |memory, _| {
        solve_at::<T>(memory, a, b, upper)?;
        store(memory, info, &[0i32])
    })
}

fn potrf_batched<T: Double>(call: &Call) -> Result<Job, Problem> {
    let (n, upper, single, batch) = (call.size("n")?, call.upper()?, call.single(), call.size("batch")?);
    let (array, lead, infos) = (call.device("aarray")?, call.lead("a", n)?, call.device("info")?);
    job(move |memory, _| {
        for (index, address) in addresses(memory, array, batch)?.into_iter().enumerate() {
            let info = factor_at::<T>(memory, Place { address, rows: n, columns: n, lead, single }, upper)?;
            store(memory, infos + index as u64 * 4, &[info])?;
        }
        Ok(())
    })
}

fn potrs_batched<T: Double>(call: &Call) -> Result<Job, Problem> {
    let (n, columns, upper, single) = (call.size("n")?, call.size("nrhs")?, call.upper()?, call.single());
    let (lead, lead_b, batch, info) =
        (call.lead("a", n)?, call.lead("b", n)?, call.size("batch")?, call.device("info")?);
    let (a, b) = (call.device("aarray")?, call.device("barray")?);
    job(move |memory, _| {
        for (a, b) in addresses(memory, a, batch)?.into_iter().zip(addresses(memory, b, batch)?) {
            let a = Place { address: a, rows: n, columns: n, lead, single };
            solve_at::<T>(memory, a, Place { address: b, rows: n, columns, lead: lead_b, single }, upper)?;
        }
        store(memory, info, &[0i32])
    })
}

fn geqrf<T: Double>(call: &Call) -> Result<Job, Problem> {
    let (a, single) = (call.matrix("a", call.size("m")?, call.size("n")?)?, call.single());
    let (tau, info) = (call.device("tau")?, call.device("info")?);
    job(move |memory, _| {
        let mut matrix = a.load::<T>(memory)?;
        let taus = qr(&mut matrix);
        a.store(memory, &matrix)?;
        store_numbers(memory, tau, &taus, single)?;
        store(memory, info, &[0i32])
    })
}

fn orgqr<T: Double>(call: &Call) -> Result<Job, Problem> {
    let (m, n, k, single) = (call.size("m")?, call.size("n")?, call.size("k")?, call.single());
    if n > m || k > n {
        return Err(invalid("the number of columns or reflections"));
    }
    let (a, tau, info) = (call.matrix("a", m, n)?, call.device("tau")?, call.device("info")?);
    job(move |memory, _| {
        let reflections = a.load::<T>(memory)?;
        let taus = crate::memory::load_numbers(memory, tau, k, single)?;
        let mut q = Matrix::build(m, n, |row, column| if row == column { T::one() } else { T::zero() });
        apply_q(&reflections, &taus, false, &mut q);
        a.store(memory, &q)?;
        store(memory, info, &[0i32])
    })
}

fn ormqr<T: Double>(call: &Call) -> Result<Job, Problem> {
    let (m, n, k, right, single) =
        (call.size("m")?, call.size("n")?, call.size("k")?, call.flag("side")?, call.single());
    let adjoint = match call.op("trans")? {
        Op::None => false,
        Op::Transpose if T::COMPLEX => return Err(invalid("trans")),
        _ => true,
    };
    let rows = if right { n } else { m };
    if k > rows {
        return Err(invalid("the number of reflections"));
    }
    let (a, c) = (call.matrix("a", rows, k)?, call.matrix("c", m, n)?);
    let (tau, info) = (call.device("tau")?, call.device("info")?);
    job(move |memory, _| {
        let (reflections, mut target) = (a.load::<T>(memory)?, c.load::<T>(memory)?);
        let taus = crate::memory::load_numbers(memory, tau, k, single)?;
        if right {
            // c q is the conjugate transpose of qᴴ cᴴ.
            let mut turned = applied(&target, Op::Conjugate);
            apply_q(&reflections, &taus, !adjoint, &mut turned);
            target = applied(&turned, Op::Conjugate);
        } else {
            apply_q(&reflections, &taus, adjoint, &mut target);
        }
        c.store(memory, &target)?;
        store(memory, info, &[0i32])
    })
}

/// What is written where values did not converge.
fn not_numbers(count: usize) -> Vec<f64> {
    vec![f64::NAN; count]
}

/// `jobz`: whether vectors are wanted.
fn wants_vectors(call: &Call) -> Result<bool, Problem> {
    call.flag("jobz")
}

/// Eigenvalues of one matrix or a batch.
fn syev<T: Double>(call: &Call) -> Result<Job, Problem> {
    let (n, upper, vectors, single) = (call.size("n")?, call.upper()?, wants_vectors(call)?, call.single());
    let (a, w, info) = (call.matrix("a", n, n)?, call.device("w")?, call.device("info")?);
    let batch = if call.has("batch") { call.size("batch")? } else { 1 };
    job(move |memory, _| {
        for index in 0..batch {
            let a = in_batch::<T>(a, index);
            let whole = mirrored(&a.load::<T>(memory)?, upper, true);
            let found = eigen(whole, vectors);
            let failed = if found.is_some() { 0 } else { n as i32 };
            let values = found.as_ref().map_or_else(|| not_numbers(n), |found| found.values.clone());
            if let Some(found) = found.filter(|_| vectors) {
                a.store(memory, &found.vectors)?;
            }
            store_numbers(memory, w + (index * n * bytes_of::<f64>(single)) as u64, &values, single)?;
            store(memory, info + index as u64 * 4, &[failed])?;
        }
        Ok(())
    })
}

/// The first columns of a matrix.
fn first_columns<T: Double>(mut matrix: Matrix<T>, columns: usize) -> Matrix<T> {
    matrix.data.truncate(matrix.rows * columns);
    matrix.columns = columns;
    matrix
}

/// What is written where of `a = u s vᴴ`.
#[derive(Clone, Copy)]
struct Parts {
    s: u64,
    /// How many of the values.
    count: usize,
    u: Option<Place>,
    v: Option<Place>,
    /// The conjugate transpose of `v` is written.
    turned: bool,
    info: u64,
}

impl Parts {
    /// Answers the Frobenius norm of what the written values leave out.
    fn compute<T: Double>(&self, memory: &dyn Memory, a: Place) -> Result<f64, Fault> {
        let few = a.rows.min(a.columns);
        let wanted_v = |place: Place| if self.turned { place.rows } else { place.columns };
        let columns = |count: Option<usize>, all: usize| count.map_or(0, |count| if count > few { all } else { few });
        let columns_u = columns(self.u.map(|place| place.columns), a.rows);
        let columns_v = columns(self.v.map(wanted_v), a.columns);
        let Some(found) = singular(a.load::<T>(memory)?, columns_u, columns_v) else {
            store_numbers(memory, self.s, &not_numbers(self.count), a.single)?;
            store(memory, self.info, &[few as i32 + 1])?;
            return Ok(f64::NAN);
        };
        store_numbers(memory, self.s, &found.values[..self.count], a.single)?;
        if let Some(place) = self.u {
            place.store(memory, &first_columns(found.u, place.columns))?;
        }
        if let Some(place) = self.v {
            let v = first_columns(found.v, wanted_v(place));
            place.store(memory, &if self.turned { applied(&v, Op::Conjugate) } else { v })?;
        }
        store(memory, self.info, &[0i32])?;
        Ok(found.values[self.count..].iter().map(|value| value * value).sum::<f64>().sqrt())
    }
}

fn gesvd<T: Double>(call: &Call) -> Result<Job, Problem> {
    let (m, n) = (call.size("m")?, call.size("n")?);
    let (a, few) = (call.matrix("a", m, n)?, m.min(n));
    let columns = |name: &str, all: usize| match call.int(name)? as u8 {
        b'A' => Ok(Some((all, false))),
        b'S' => Ok(Some((few, false))),
        b'O' => Ok(Some((few, true))),
        b'N' => Ok(None),
        _ => Err(invalid(name)),
    };
    let u = match columns("jobu", m)? {
        None => None,
        Some((columns, true)) => Some(Place { columns, ..a }),
        Some((columns, false)) => Some(call.matrix("u", m, columns)?),
    };
    let v = match columns("jobvt", n)? {
        None => None,
        Some((rows, true)) => Some(Place { rows, ..a }),
        Some((rows, false)) => Some(call.matrix("vt", rows, n)?),
    };
    let parts = Parts { s: call.device("s")?, count: few, u, v, turned: true, info: call.device("info")? };
    job(move |memory, _| parts.compute::<T>(memory, a).map(drop))
}

/// Those that give `v` itself, of one matrix or a batch.
fn gesvdj<T: Double>(call: &Call) -> Result<Job, Problem> {
    let (m, n, vectors, single) = (call.size("m")?, call.size("n")?, wants_vectors(call)?, call.single());
    let few = m.min(n);
    let count = if call.has("rank") { call.size("rank")? } else { few };
    if count > few {
        return Err(invalid("rank"));
    }
    let a = call.matrix("a", m, n)?;
    let econ = call.has("rank") || (call.has("econ") && call.int("econ")? != 0);
    let (u, v) = if vectors {
        let columns = |all: usize| if econ { count } else { all };
        (Some(call.matrix("u", m, columns(m))?), Some(call.matrix("v", n, columns(n))?))
    } else {
        (None, None)
    };
    let batch = if call.has("batch") { call.size("batch")? } else { 1 };
    // Elements from one of a batch to the next.
    let stride = |name: &str, alone: usize| -> Result<u64, Problem> {
        Ok(if call.has("rank") { call.int(name)? as u64 } else { alone as u64 })
    };
    let alone = |place: Option<Place>| place.map_or(0, |place| place.lead * place.columns);
    let strides = [
        stride("stridea", a.lead * n)?,
        stride("strides", few)?,
        stride("strideu", alone(u))?,
        stride("stridev", alone(v))?,
    ];
    let (s, info) = (call.device("s")?, call.device("info")?);
    let residual = if call.has("residual") { Some(call.target("residual")?) } else { None };
    job(move |memory, outputs| {
        let mut left_out = Vec::with_capacity(batch);
        for index in 0..batch as u64 {
            let [to_a, to_s, to_u, to_v] = strides.map(|stride| stride.wrapping_mul(index));
            let moved = |place: Place, by: u64| {
                let bytes = by.wrapping_mul(bytes_of::<T>(single) as u64);
                Place { address: place.address.wrapping_add(bytes), ..place }
            };
            let parts = Parts {
                s: s.wrapping_add(to_s.wrapping_mul(bytes_of::<f64>(single) as u64)),
                count,
                u: u.map(|place| moved(place, to_u)),
                v: v.map(|place| moved(place, to_v)),
                turned: false,
                info: info + index * 4,
            };
            left_out.push(parts.compute::<T>(memory, moved(a, to_a))?);
        }
        match residual {
            Some(target) => target.store_as_is(memory, outputs, &left_out),
            None => Ok(()),
        }
    })
}
