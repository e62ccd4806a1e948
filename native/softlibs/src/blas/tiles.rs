//! Products of matrices tile by tile: what a product copies of its operands does not grow with them.

use crate::Problem;
use crate::arguments::Call;
use crate::memory::{Fault, Matrix, Memory, Place, load};
use crate::number::{Field, Op, gemm};
use std::ops::Range;

/// Rows and columns of a tile of such numbers: about 4 MiB.
const fn tile<T>() -> usize {
    match size_of::<T>() {
        ..=4 => 1024,
        5..=8 => 768,
        _ => 512,
    }
}

/// `c = alpha op(a) op(b) + beta c` where they lie in memory.
#[derive(Clone, Copy)]
pub struct Product {
    pub ops: [Op; 2],
    pub a: Place,
    pub b: Place,
    pub c: Place,
    /// Bytes of an element of each.
    pub bytes: [usize; 3],
}

fn tiles<T>(length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length).step_by(tile::<T>()).map(move |first| first..(first + tile::<T>()).min(length))
}

/// A part of a matrix.
fn part(whole: Place, bytes: usize, rows: &Range<usize>, columns: &Range<usize>) -> Place {
    let offset = (columns.start * whole.lead + rows.start) * bytes;
    Place { address: whole.address.wrapping_add(offset as u64), rows: rows.len(), columns: columns.len(), ..whole }
}

impl Product {
    /// The product of a call, whose addresses may be told elsewhere.
    pub fn of(call: &Call, bytes: [usize; 3]) -> Result<Self, Problem> {
        let (m, n, k) = (call.size("m")?, call.size("n")?, call.size("k")?);
        let ops = [call.op("transa")?, call.op("transb")?];
        let ((ra, ca), (rb, cb)) = (ops[0].stored(m, k), ops[1].stored(k, n));
        let place = |name: &str, rows: usize, columns: usize| -> Result<Place, Problem> {
            let address = if call.has(name) { call.device(name)? } else { 0 };
            Ok(Place { address, rows, columns, lead: call.lead(name, rows)?, single: call.single() })
        };
        Ok(Self { ops, a: place("a", ra, ca)?, b: place("b", rb, cb)?, c: place("c", m, n)?, bytes })
    }

    /// The same of matrices that begin elsewhere.
    fn moved(&self, [a, b, c]: [u64; 3]) -> Self {
        let at = |address: u64, place: Place| Place { address, ..place };
        Self { a: at(a, self.a), b: at(b, self.b), c: at(c, self.c), ..*self }
    }

    /// Those of a batch whose matrices lie so many elements apart.
    pub fn strided(self, strides: [i64; 3], batch: usize) -> impl Iterator<Item = Self> {
        let first = [self.a.address, self.b.address, self.c.address];
        (0..batch as i64).map(move |index| {
            let by = |at: usize| (index * strides[at] * self.bytes[at] as i64) as u64;
            self.moved([0, 1, 2].map(|at| first[at].wrapping_add(by(at))))
        })
    }

    /// Those of a batch whose matrices begin where three arrays in memory say.
    pub fn listed(
        &self,
        memory: &dyn Memory,
        arrays: [u64; 3],
        batch: usize,
    ) -> Result<impl Iterator<Item = Self>, Fault> {
        let [a, b, c] = arrays.map(|array| load::<u64>(memory, array, batch));
        let (a, b, c) = (a?, b?, c?);
        Ok((0..batch).map(move |at| self.moved([a[at], b[at], c[at]])))
    }

    /// Computes it with these ways to copy tiles of `a`, `b` and `c` (0, 1 and 2) from memory and `c` back. With beta 0
    /// `c` is not read, with alpha 0 `a` and `b` are not.
    pub fn run<T: Field>(
        &self,
        [alpha, beta]: [T; 2],
        load: impl Fn(usize, Place) -> Result<Matrix<T>, Fault>,
        store: impl Fn(Place, &Matrix<T>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let depth = if self.ops[0] == Op::None { self.a.columns } else { self.a.rows };
        let depth = if alpha == T::zero() { 0 } else { depth };
        for columns in tiles::<T>(self.c.columns) {
            for rows in tiles::<T>(self.c.rows) {
                let place = part(self.c, self.bytes[2], &rows, &columns);
                let mut c = if beta == T::zero() { Matrix::zero(rows.len(), columns.len()) } else { load(2, place)? };
                if depth == 0 {
                    c.data.iter_mut().for_each(|value| *value *= beta);
                }
                for inner in tiles::<T>(depth) {
                    let stored = |op, rows, columns| if op == Op::None { (rows, columns) } else { (columns, rows) };
                    let (ra, ca) = stored(self.ops[0], &rows, &inner);
                    let (rb, cb) = stored(self.ops[1], &inner, &columns);
                    let a = load(0, part(self.a, self.bytes[0], ra, ca))?;
                    let b = load(1, part(self.b, self.bytes[1], rb, cb))?;
                    let onto = if inner.start == 0 { beta } else { T::one() };
                    gemm(alpha, &a, self.ops[0], &b, self.ops[1], onto, &mut c);
                }
                store(place, &c)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// Memory that remembers the largest piece that was copied.
    struct Counted {
        bytes: RefCell<Vec<u8>>,
        largest: Cell<usize>,
    }

    impl Memory for Counted {
        fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Fault> {
            self.largest.set(self.largest.get().max(out.len()));
            let from = address as usize;
            out.copy_from_slice(&self.bytes.borrow()[from..from + out.len()]);
            Ok(())
        }

        fn write(&self, address: u64, data: &[u8]) -> Result<(), Fault> {
            self.bytes.borrow_mut()[address as usize..][..data.len()].copy_from_slice(data);
            Ok(())
        }
    }

    #[test]
    fn products_of_a_batch_lie_apart_or_where_arrays_say() {
        let place = |address| Place { address, rows: 2, columns: 2, lead: 2, single: false };
        let product = Product { ops: [Op::None; 2], a: place(64), b: place(128), c: place(256), bytes: [4, 4, 8] };
        let addresses = |product: Product| [product.a.address, product.b.address, product.c.address];
        let apart: Vec<_> = product.strided([4, 0, -2], 3).map(addresses).collect();
        assert_eq!(apart, [[64, 128, 256], [80, 128, 240], [96, 128, 224]]);
        let arrays = [1u64, 2, 3, 4, 5, 6];
        let memory = Counted { bytes: RefCell::new(bytemuck::cast_slice(&arrays).to_vec()), largest: Cell::new(0) };
        let listed: Vec<_> = product.listed(&memory, [0, 16, 32], 2).unwrap().map(addresses).collect();
        assert_eq!(listed, [[1, 3, 5], [2, 4, 6]]);
    }

    #[test]
    fn a_product_of_several_tiles_is_that_of_the_whole() {
        let (m, n, k) = (tile::<f32>() + 5, tile::<f32>() + 3, 2 * tile::<f32>() + 1);
        for ops in [[Op::None, Op::None], [Op::Transpose, Op::None], [Op::None, Op::Transpose]] {
            let mut first = 0;
            let mut place = |rows: usize, columns: usize| {
                let place = Place { address: first, rows, columns, lead: rows + 2, single: false };
                first += 4 * ((rows + 2) * columns) as u64;
                place
            };
            let ((ra, ca), (rb, cb)) = (ops[0].stored(m, k), ops[1].stored(k, n));
            let product = Product { ops, a: place(ra, ca), b: place(rb, cb), c: place(m, n), bytes: [4; 3] };
            // Small whole numbers: sums are exact.
            let values: Vec<f32> = (0..first / 4).map(|at| (at * 7 % 11) as f32 - 5.0).collect();
            let bytes = RefCell::new(bytemuck::cast_slice(&values).to_vec());
            let memory = Counted { bytes, largest: Cell::new(0) };
            let before = product.c.load::<f32>(&memory).unwrap();
            memory.largest.set(0);
            product
                .run([2.0, 3.0f32], |_, place| place.load(&memory), |place, tile| place.store(&memory, tile))
                .unwrap();
            assert!(memory.largest.get() <= 4 * tile::<f32>() * tile::<f32>(), "{} bytes", memory.largest.get());
            let at = |whole: Place, op: Op, row: usize, column: usize| {
                let (row, column) = if op == Op::None { (row, column) } else { (column, row) };
                values[whole.address as usize / 4 + column * whole.lead + row]
            };
            let after = product.c.load::<f32>(&memory).unwrap();
            for (i, j) in [
                (0, 0),
                (m - 1, n - 1),
                (tile::<f32>(), 0),
                (tile::<f32>() - 1, tile::<f32>()),
                (17, tile::<f32>() + 1),
            ] {
                let sum: f32 = (0..k).map(|x| at(product.a, ops[0], i, x) * at(product.b, ops[1], x, j)).sum();
                assert_eq!(after.at(i, j), 2.0 * sum + 3.0 * before.at(i, j), "{i} {j}");
            }
            // What lies between the columns stays.
            let gap = product.c.address + 4 * m as u64;
            assert_eq!(load::<f32>(&memory, gap, 2).unwrap(), values[gap as usize / 4..][..2]);
        }
    }
}
