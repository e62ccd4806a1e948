//! Functions whose types are arguments.

use super::level1::{dot_of, norm_of};
use super::tiles;
use crate::arguments::{Call, Host, Scalar, Source};
use crate::memory::{Fault, Memory};
use crate::number::Field;
use crate::objects::{Job, job};
use crate::types::{Kind, Wide, bytes_as, load_as, load_matrix, load_vector, store_matrix, store_vector};
use crate::{Problem, in_double, in_wide, unsupported};

/// A scalar of a kind, wherever it lies.
pub fn scalar<T: Field>(scalar: &Scalar, kind: Kind, memory: &dyn Memory) -> Result<T, Fault> {
    match &scalar.source {
        Source::Null => Ok(T::zero()),
        Source::Device(address) => Ok(load_as::<T>(memory, kind, *address, 1)?[0]),
        Source::Host(bytes) => {
            let host = Host(bytes);
            Ok(load_as::<T>(&host, kind, 0, 1)?[0])
        }
    }
}

/// A product of matrices of any kinds.
#[derive(Clone, Copy)]
struct Product {
    of: tiles::Product,
    kinds: [Kind; 3],
    scale: Kind,
    wide: Wide,
}

impl Product {
    fn of(call: &Call) -> Result<Self, Problem> {
        let kind = |name: &str| if call.has(name) { Kind::of(call.int(name)?) } else { Ok(Kind::F16) };
        let kinds = [kind("atype")?, kind("btype")?, kind("ctype")?];
        if kinds[0] != kinds[1] {
            return Err(unsupported("a product of matrices of two types"));
        }
        let symbol = call.function.symbol.as_str();
        let scale = match symbol {
            "cublasSgemmEx" => Kind::F32,
            "cublasCgemmEx" => Kind::C32,
            _ if call.has("compute") => Kind::of_scale(call.int("compute")?, kinds[2])?,
            _ => Kind::F16,
        };
        let wide = Wide::of(&kinds, scale)?;
        Ok(Self { of: tiles::Product::of(call, kinds.map(Kind::bytes))?, kinds, scale, wide })
    }

    fn run<T: Field>(&self, memory: &dyn Memory, alpha: T, beta: T) -> Result<(), Fault> {
        let load = |operand: usize, place| load_matrix::<T>(memory, self.kinds[operand], place);
        self.of.run([alpha, beta], load, |place, tile| store_matrix(memory, self.kinds[2], place, tile))
    }
}

/// The products of a batch.
type Batch = Box<dyn FnOnce(&dyn Memory) -> Result<Vec<tiles::Product>, Fault> + Send>;

/// Runs a product of each of these matrices.
fn run_all<T: Field>(product: Product, scalars: [Scalar; 2], batch: Batch) -> Result<Job, Problem> {
    job(move |memory, _| {
        let [alpha, beta] = &scalars;
        let (alpha, beta) = (scalar::<T>(alpha, product.scale, memory)?, scalar::<T>(beta, product.scale, memory)?);
        batch(memory)?.into_iter().try_for_each(|of| Product { of, ..product }.run(memory, alpha, beta))
    })
}

fn scalars(call: &Call) -> Result<[Scalar; 2], Problem> {
    Ok([call.scalar("alpha")?, call.scalar("beta")?])
}

pub fn gemm(call: &Call) -> Result<Job, Problem> {
    let product = Product::of(call)?;
    in_wide!(product.wide, run_all(product, scalars(call)?, Box::new(move |_| Ok(vec![product.of]))))
}

pub fn gemm_strided(call: &Call) -> Result<Job, Problem> {
    let product = Product::of(call)?;
    let strides = [call.int("stridea")?, call.int("strideb")?, call.int("stridec")?];
    let size = call.size("batch")?;
    let batch = move |_: &dyn Memory| Ok(product.of.strided(strides, size).collect());
    in_wide!(product.wide, run_all(product, scalars(call)?, Box::new(batch)))
}

pub fn gemm_batched(call: &Call) -> Result<Job, Problem> {
    let product = Product::of(call)?;
    let arrays = [call.device("aarray")?, call.device("barray")?, call.device("carray")?];
    let size = call.size("batch")?;
    let batch = move |memory: &dyn Memory| Ok(product.of.listed(memory, arrays, size)?.collect());
    in_wide!(product.wide, run_all(product, scalars(call)?, Box::new(batch)))
}

fn product_of<T: Field>(call: &Call, kinds: [Kind; 3], conjugate: bool) -> Result<Job, Problem> {
    let n = call.size("n")?;
    let (x, y, result) = (call.vector("x", n)?, call.vector("y", n)?, call.target("result")?);
    job(move |memory, outputs| {
        let (x, y) = (load_vector::<T>(memory, kinds[0], x)?, load_vector::<T>(memory, kinds[1], y)?);
        result.store_as_is(memory, outputs, &bytes_as(kinds[2], &[dot_of(&x, &y, conjugate)]))
    })
}

fn dots(call: &Call, conjugate: bool) -> Result<Job, Problem> {
    let kinds = [Kind::of(call.int("xtype")?)?, Kind::of(call.int("ytype")?)?, Kind::of(call.int("rtype")?)?];
    let wide = Wide::of(&kinds, Kind::of(call.int("etype")?)?)?;
    in_double!(wide, product_of(call, kinds, conjugate))
}

pub fn dot(call: &Call) -> Result<Job, Problem> {
    dots(call, false)
}

pub fn dotc(call: &Call) -> Result<Job, Problem> {
    dots(call, true)
}

fn norm<T: Field>(call: &Call, kinds: [Kind; 2]) -> Result<Job, Problem> {
    let (x, result) = (call.vector("x", call.size("n")?)?, call.target("result")?);
    job(move |memory, outputs| {
        let norm = norm_of(&load_vector::<T>(memory, kinds[0], x)?);
        result.store_as_is(memory, outputs, &bytes_as(kinds[1], &[T::from_real(norm)]))
    })
}

pub fn nrm2(call: &Call) -> Result<Job, Problem> {
    let kinds = [Kind::of(call.int("xtype")?)?, Kind::of(call.int("rtype")?)?];
    let wide = Wide::of(&kinds[..1], kinds[1])?;
    in_double!(wide, norm(call, kinds))
}

fn add<T: Field>(call: &Call, kinds: [Kind; 3]) -> Result<Job, Problem> {
    let n = call.size("n")?;
    let (x, y, alpha) = (call.vector("x", n)?, call.vector("y", n)?, call.scalar("alpha")?);
    job(move |memory, _| {
        let alpha = scalar::<T>(&alpha, kinds[0], memory)?;
        let (x, mut out) = (load_vector::<T>(memory, kinds[1], x)?, load_vector::<T>(memory, kinds[2], y)?);
        out.iter_mut().zip(x).for_each(|(y, x)| *y += alpha * x);
        store_vector(memory, kinds[2], y, &out)
    })
}

pub fn axpy(call: &Call) -> Result<Job, Problem> {
    let kinds = [Kind::of(call.int("atype")?)?, Kind::of(call.int("xtype")?)?, Kind::of(call.int("ytype")?)?];
    let wide = Wide::of(&kinds[1..], kinds[0])?;
    in_double!(wide, add(call, kinds))
}

fn scale<T: Field>(call: &Call, kinds: [Kind; 2]) -> Result<Job, Problem> {
    let (x, alpha) = (call.vector("x", call.size("n")?)?, call.scalar("alpha")?);
    job(move |memory, _| {
        let alpha = scalar::<T>(&alpha, kinds[0], memory)?;
        let mut out = load_vector::<T>(memory, kinds[1], x)?;
        out.iter_mut().for_each(|value| *value *= alpha);
        store_vector(memory, kinds[1], x, &out)
    })
}

pub fn scal(call: &Call) -> Result<Job, Problem> {
    let kinds = [Kind::of(call.int("atype")?)?, Kind::of(call.int("xtype")?)?];
    let wide = Wide::of(&kinds[1..], kinds[0])?;
    in_double!(wide, scale(call, kinds))
}
