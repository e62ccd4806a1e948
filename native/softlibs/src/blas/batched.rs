//! Factorisations of many small matrices.

use super::level3::solve;
use crate::arguments::{Call, triangle};
use crate::factor::{apply_q, exchange, lu, qr};
use crate::memory::{Fault, Matrix, Memory, Place, load, store, store_numbers};
use crate::number::{Field, Op, applied};
use crate::objects::{Job, job};
use crate::{Problem, invalid};

/// Addresses of a batch's matrices.
pub fn addresses(memory: &dyn Memory, array: u64, batch: usize) -> Result<Vec<u64>, Fault> {
    load(memory, array, batch)
}

/// The pivots of one matrix; without pivoting, none.
fn pivots_of(memory: &dyn Memory, pivots: u64, n: usize, index: usize) -> Result<Vec<i32>, Fault> {
    if pivots == 0 { Ok(Vec::new()) } else { load(memory, pivots + (index * n * 4) as u64, n) }
}

pub fn getrf<T: Field>(call: &Call) -> Result<Job, Problem> {
    let single = call.single();
    let (n, lead, batch) = (call.size("n")?, call.lead("a", call.size("n")?)?, call.size("batch")?);
    let (array, pivots, infos) = (call.device("aarray")?, call.device("pivots")?, call.device("info")?);
    job(move |memory, _| {
        for (index, address) in addresses(memory, array, batch)?.into_iter().enumerate() {
            let place = Place { address, rows: n, columns: n, lead, single };
            let mut a = place.load::<T>(memory)?;
            let (exchanged, info) = lu(&mut a, pivots != 0);
            place.store(memory, &a)?;
            if pivots != 0 {
                store(memory, pivots + (index * n * 4) as u64, &exchanged)?;
            }
            store(memory, infos + index as u64 * 4, &[info])?;
        }
        Ok(())
    })
}

/// `b = op(a)⁻¹ b` with a's LU factors.
pub fn solve_lu<T: Field>(factors: &Matrix<T>, pivots: &[i32], op: Op, b: &mut Matrix<T>) {
    let (lower, upper) = (triangle(factors, false, true), triangle(factors, true, false));
    if op == Op::None {
        exchange(b, pivots, true);
        solve(&lower, false, b);
        solve(&upper, true, b);
    } else {
        solve(&applied(&upper, op), false, b);
        solve(&applied(&lower, op), true, b);
        exchange(b, pivots, false);
    }
}

/// Says to the host that the arguments were good.
fn no_info(call: &Call) -> Result<crate::arguments::Target, Problem> {
    call.target("info")
}

pub fn getrs<T: Field>(call: &Call) -> Result<Job, Problem> {
    let single = call.single();
    let (n, columns, batch, op) = (call.size("n")?, call.size("nrhs")?, call.size("batch")?, call.op("trans")?);
    let (lead, lead_b) = (call.lead("a", n)?, call.lead("b", n)?);
    let (a, b, pivots) = (call.device("aarray")?, call.device("barray")?, call.device("pivots")?);
    let info = no_info(call)?;
    job(move |memory, outputs| {
        let pairs = addresses(memory, a, batch)?.into_iter().zip(addresses(memory, b, batch)?);
        for (index, (a, b)) in pairs.enumerate() {
            let factors = Place { address: a, rows: n, columns: n, lead, single }.load::<T>(memory)?;
            let place = Place { address: b, rows: n, columns, lead: lead_b, single };
            let mut right = place.load::<T>(memory)?;
            solve_lu(&factors, &pivots_of(memory, pivots, n, index)?, op, &mut right);
            place.store(memory, &right)?;
        }
        info.store_as_is(memory, outputs, &[0i32])
    })
}

/// The inverse from LU factors, or the first zero pivot.
fn inverse<T: Field>(factors: &Matrix<T>, pivots: &[i32]) -> (Matrix<T>, i32) {
    let n = factors.rows;
    let mut out = Matrix::build(n, n, |row, column| if row == column { T::one() } else { T::zero() });
    if let Some(zero) = (0..n).find(|at| factors.at(*at, *at) == T::zero()) {
        return (out, zero as i32 + 1);
    }
    solve_lu(factors, pivots, Op::None, &mut out);
    (out, 0)
}

pub fn getri<T: Field>(call: &Call) -> Result<Job, Problem> {
    let single = call.single();
    let (n, batch, pivots, infos) =
        (call.size("n")?, call.size("batch")?, call.device("pivots")?, call.device("info")?);
    let (lead, lead_c) = (call.lead("a", n)?, call.lead("c", n)?);
    let (a, c) = (call.device("aarray")?, call.device("carray")?);
    job(move |memory, _| {
        let pairs = addresses(memory, a, batch)?.into_iter().zip(addresses(memory, c, batch)?);
        for (index, (a, c)) in pairs.enumerate() {
            let factors = Place { address: a, rows: n, columns: n, lead, single }.load::<T>(memory)?;
            let (out, info) = inverse(&factors, &pivots_of(memory, pivots, n, index)?);
            if info == 0 {
                Place { address: c, rows: n, columns: n, lead: lead_c, single }.store(memory, &out)?;
            }
            store(memory, infos + index as u64 * 4, &[info])?;
        }
        Ok(())
    })
}

pub fn matinv<T: Field>(call: &Call) -> Result<Job, Problem> {
    let single = call.single();
    let (n, batch, infos) = (call.size("n")?, call.size("batch")?, call.device("info")?);
    if n > 32 {
        return Err(invalid("a matrix of more than 32 rows"));
    }
    let (lead, lead_inverse) = (call.lead("a", n)?, call.size("ldinv")?);
    let (a, inverses) = (call.device("aarray")?, call.device("inverse")?);
    job(move |memory, _| {
        let pairs = addresses(memory, a, batch)?.into_iter().zip(addresses(memory, inverses, batch)?);
        for (index, (a, target)) in pairs.enumerate() {
            let mut factors = Place { address: a, rows: n, columns: n, lead, single }.load::<T>(memory)?;
            let (pivots, _) = lu(&mut factors, true);
            let (out, info) = inverse(&factors, &pivots);
            if info == 0 {
                Place { address: target, rows: n, columns: n, lead: lead_inverse, single }.store(memory, &out)?;
            }
            store(memory, infos + index as u64 * 4, &[info])?;
        }
        Ok(())
    })
}

pub fn geqrf<T: Field>(call: &Call) -> Result<Job, Problem> {
    let single = call.single();
    let (m, n, batch) = (call.size("m")?, call.size("n")?, call.size("batch")?);
    let (lead, a, taus) = (call.lead("a", m)?, call.device("aarray")?, call.device("tauarray")?);
    let info = no_info(call)?;
    job(move |memory, outputs| {
        for (a, tau) in addresses(memory, a, batch)?.into_iter().zip(addresses(memory, taus, batch)?) {
            let place = Place { address: a, rows: m, columns: n, lead, single };
            let mut matrix = place.load::<T>(memory)?;
            let factors = qr(&mut matrix);
            place.store(memory, &matrix)?;
            store_numbers(memory, tau, &factors, single)?;
        }
        info.store_as_is(memory, outputs, &[0i32])
    })
}

/// Least squares of tall matrices: the solution lies in the first rows of `c`, the residual in the others.
pub fn gels<T: Field>(call: &Call) -> Result<Job, Problem> {
    let single = call.single();
    let (m, n, columns, batch) = (call.size("m")?, call.size("n")?, call.size("nrhs")?, call.size("batch")?);
    if call.op("trans")? != Op::None || m < n {
        return Err(crate::unsupported("least squares of a wide or transposed matrix"));
    }
    let (lead, lead_c) = (call.lead("a", m)?, call.lead("c", m)?);
    let (a, c, infos) = (call.device("aarray")?, call.device("carray")?, call.device("infos")?);
    let info = no_info(call)?;
    job(move |memory, outputs| {
        let pairs = addresses(memory, a, batch)?.into_iter().zip(addresses(memory, c, batch)?);
        for (index, (a, c)) in pairs.enumerate() {
            let (place_a, place_c) = (
                Place { address: a, rows: m, columns: n, lead, single },
                Place { address: c, rows: m, columns, lead: lead_c, single },
            );
            let (mut matrix, mut right) = (place_a.load::<T>(memory)?, place_c.load::<T>(memory)?);
            let taus = qr(&mut matrix);
            apply_q(&matrix, &taus, true, &mut right);
            let top = Matrix::build(n, n, |row, column| if row <= column { matrix.at(row, column) } else { T::zero() });
            let singular = (0..n).find(|at| top.at(*at, *at) == T::zero()).map_or(0, |at| at as i32 + 1);
            if singular == 0 {
                let mut solution = Matrix::build(n, columns, |row, column| right.at(row, column));
                solve(&top, true, &mut solution);
                for column in 0..columns {
                    right.column_mut(column)[..n].copy_from_slice(solution.column(column));
                }
            }
            place_a.store(memory, &matrix)?;
            place_c.store(memory, &right)?;
            if infos != 0 {
                store(memory, infos + index as u64 * 4, &[singular])?;
            }
        }
        info.store_as_is(memory, outputs, &[0i32])
    })
}
