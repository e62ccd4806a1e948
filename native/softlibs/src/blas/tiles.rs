//! Products of matrices tile by tile: what a product copies of its operands does not grow with them.

use crate::memory::{Fault, Matrix, Place};
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
    use crate::memory::{Memory, load};
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
