//! cuSPARSE through the wire on the software GPU, against dense computation.

use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{attach, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::libraries::{Library, download, upload};
use sluice_conformance::numbers::{Letter, Number, assert_close};
use std::sync::Arc;

const ROWS: usize = 5;
const COLUMNS: usize = 4;
/// Row, column: by rows, the third one empty.
const PLACES: [(usize, usize); 7] = [(0, 1), (0, 3), (1, 0), (3, 0), (3, 2), (3, 3), (4, 1)];

fn at<T>(data: &T) -> usize {
    std::ptr::from_ref(data) as usize
}

fn out<T>(data: &mut T) -> usize {
    std::ptr::from_mut(data) as usize
}

fn put_indices(indices: &[i64], wide: bool) -> usize {
    let bytes = |index: &i64| if wide { index.to_le_bytes().to_vec() } else { (*index as i32).to_le_bytes().to_vec() };
    upload(&indices.iter().flat_map(bytes).collect::<Vec<u8>>()) as usize
}

fn get_indices(address: usize, count: usize) -> Vec<i32> {
    let bytes = download(address as u64, 4 * count);
    bytes.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// Functions with a handle, and numbers of one type.
struct Sparse {
    library: Library,
    handle: usize,
    letter: Letter,
    kind: usize,
}

impl Sparse {
    fn make(&self, symbol: &str, slots: &[usize]) -> usize {
        let mut made = 0usize;
        self.library.run(symbol, &[&[out(&mut made)], slots].concat());
        made
    }

    fn put(&self, numbers: &[Number]) -> usize {
        upload(&self.letter.encode(numbers)) as usize
    }

    fn get(&self, address: usize, count: usize) -> Vec<Number> {
        self.letter.decode(&download(address as u64, count * self.letter.bytes()))
    }

    /// The same matrix in the three formats, with indices from 0 and 1, of 32 and 64 bits.
    fn matrices(&self, values: &[Number]) -> Vec<usize> {
        let count = PLACES.len();
        let mut made = Vec::new();
        for (base, wide) in [(0, false), (1, true)] {
            let width = if wide { 3 } else { 2 };
            let begin = |before: &dyn Fn(&(usize, usize)) -> bool| {
                PLACES.iter().filter(|place| before(place)).count() as i64 + base
            };
            let rows: Vec<i64> = PLACES.iter().map(|place| place.0 as i64 + base).collect();
            let columns: Vec<i64> = PLACES.iter().map(|place| place.1 as i64 + base).collect();
            let offsets: Vec<i64> = (0..=ROWS).map(|row| begin(&|place| place.0 < row)).collect();
            let (dr, dc, doff) = (put_indices(&rows, wide), put_indices(&columns, wide), put_indices(&offsets, wide));
            let dv = self.put(values);
            let base = base as usize;
            made.push(
                self.make("cusparseCreateCsr", &[ROWS, COLUMNS, count, doff, dc, dv, width, width, base, self.kind]),
            );
            made.push(self.make("cusparseCreateConstCoo", &[ROWS, COLUMNS, count, dr, dc, dv, width, base, self.kind]));
            let mut order: Vec<usize> = (0..count).collect();
            order.sort_by_key(|at| (PLACES[*at].1, PLACES[*at].0));
            let rows: Vec<i64> = order.iter().map(|at| rows[*at]).collect();
            let offsets: Vec<i64> = (0..=COLUMNS).map(|column| begin(&|place| place.1 < column)).collect();
            let dv = self.put(&order.iter().map(|at| values[*at]).collect::<Vec<Number>>());
            let (doff, dr) = (put_indices(&offsets, wide), put_indices(&rows, wide));
            made.push(
                self.make("cusparseCreateCsc", &[ROWS, COLUMNS, count, doff, dr, dv, width, width, base, self.kind]),
            );
        }
        made
    }

    fn products(&self) {
        let values = self.letter.random(1, PLACES.len());
        let host = |number: Number| self.letter.encode(&[number]);
        let (alpha, beta) = (Number(1.5, if self.letter.is_complex() { 0.5 } else { 0.0 }), Number(-2.0, 0.0));
        let (host_alpha, host_beta, nothing) = (host(alpha), host(beta), host(Number::default()));
        for matrix in self.matrices(&values) {
            let (mut rows, mut columns, mut count) = (0i64, 0i64, 0i64);
            self.library.run("cusparseSpMatGetSize", &[matrix, out(&mut rows), out(&mut columns), out(&mut count)]);
            assert_eq!((rows, columns, count), (ROWS as i64, COLUMNS as i64, PLACES.len() as i64));
            for operation in 0..3 {
                let (m, k) = if operation == 0 { (ROWS, COLUMNS) } else { (COLUMNS, ROWS) };
                let element = |row: usize, middle: usize| {
                    let place = if operation == 0 { (row, middle) } else { (middle, row) };
                    let found =
                        PLACES.iter().position(|other| *other == place).map_or(Number::default(), |at| values[at]);
                    if operation == 2 { found.conj() } else { found }
                };
                let (x, y) = (self.letter.random(2, k), self.letter.random(3, m));
                let dy = self.put(&y);
                let vx = self.make("cusparseCreateConstDnVec", &[k, self.put(&x), self.kind]);
                let vy = self.make("cusparseCreateDnVec", &[m, dy, self.kind]);
                let (mut bytes, none) = (0u64, 0);
                let start = [self.handle, operation, host_alpha.as_ptr() as usize, matrix, vx];
                let end = [host_beta.as_ptr() as usize, vy, self.kind, none];
                self.library.run("cusparseSpMV_bufferSize", &[&start[..], &end, &[out(&mut bytes)]].concat());
                self.library.run("cusparseSpMV", &[&start[..], &end, &[0]].concat());
                let sum = |row: usize, x: &dyn Fn(usize) -> Number| {
                    (0..k).fold(Number::default(), |sum, middle| sum + element(row, middle) * x(middle))
                };
                let wanted: Vec<Number> = (0..m).map(|row| alpha * sum(row, &|at| x[at]) + beta * y[row]).collect();
                assert_close("SpMV", &self.get(dy, m), &wanted, self.letter.tolerance());
                // Matrices by columns, and by rows with a gap and transposed.
                let n = 3;
                let b = self.letter.random(4, 20);
                let dc = upload(&vec![0xff; 20 * self.letter.bytes()]) as usize;
                let column_b = self.make("cusparseCreateDnMat", &[k, n, k, self.put(&b), self.kind, 1]);
                let column_c = self.make("cusparseCreateDnMat", &[m, n, m, dc, self.kind, 1]);
                let multiply = |b: usize, turned: usize, c: usize| {
                    let start = [self.handle, operation, turned, host_alpha.as_ptr() as usize, matrix, b];
                    let end = [nothing.as_ptr() as usize, c, self.kind, none, 0];
                    self.library.run("cusparseSpMM", &[&start[..], &end].concat());
                };
                multiply(column_b, 0, column_c);
                let wanted: Vec<Number> = (0..m * n).map(|i| alpha * sum(i % m, &|at| b[i / m * k + at])).collect();
                assert_close("SpMM", &self.get(dc, m * n), &wanted, self.letter.tolerance());
                let row_b = self.make("cusparseCreateDnMat", &[n, k, k + 1, self.put(&b), self.kind, 2]);
                let row_c = self.make("cusparseCreateDnMat", &[m, n, n, dc, self.kind, 2]);
                multiply(row_b, 1, row_c);
                let wanted: Vec<Number> =
                    (0..m * n).map(|i| alpha * sum(i / n, &|at| b[i % n * (k + 1) + at])).collect();
                assert_close("SpMM by rows", &self.get(dc, m * n), &wanted, self.letter.tolerance());
                // Sizes that do not fit are refused at the call, with an algorithm that was not used before.
                let start = [self.handle, operation, 0, host_alpha.as_ptr() as usize, matrix, column_b];
                let end = [nothing.as_ptr() as usize, column_b, self.kind, 3, 0];
                assert_eq!(self.library.call("cusparseSpMM", &[&start[..], &end].concat()), 3);
                for (symbol, object) in [
                    ("cusparseDestroyDnVec", vx),
                    ("cusparseDestroyDnVec", vy),
                    ("cusparseDestroyDnMat", column_b),
                    ("cusparseDestroyDnMat", row_c),
                ] {
                    self.library.run(symbol, &[object]);
                }
            }
            let dense = upload(&vec![0xff; ROWS * COLUMNS * self.letter.bytes()]) as usize;
            let target = self.make("cusparseCreateDnMat", &[ROWS, COLUMNS, ROWS, dense, self.kind, 1]);
            self.library.run("cusparseSparseToDense", &[self.handle, matrix, target, 0, 0]);
            let mut wanted = vec![Number::default(); ROWS * COLUMNS];
            PLACES.iter().zip(&values).for_each(|((row, column), value)| wanted[column * ROWS + row] = *value);
            assert_close("SparseToDense", &self.get(dense, ROWS * COLUMNS), &wanted, 0.0);
            self.library.run("cusparseDestroySpMat", &[matrix]);
        }
    }

    /// Coordinates in any order become rows, rows become columns.
    fn conversions(&self) {
        let count = PLACES.len();
        let shuffled = [4, 0, 6, 2, 5, 1, 3];
        let values = self.letter.random(5, count);
        let pick = |part: &dyn Fn(&(usize, usize)) -> usize| -> Vec<i64> {
            shuffled.iter().map(|at| part(&PLACES[*at]) as i64).collect()
        };
        let (rows, columns) = (put_indices(&pick(&|p| p.0), false), put_indices(&pick(&|p| p.1), false));
        let permutation = put_indices(&vec![-1; count], false);
        let given = self.put(&shuffled.iter().map(|at| values[*at]).collect::<Vec<Number>>());
        let sorted = upload(&vec![0; count * self.letter.bytes()]) as usize;
        self.library.run("cusparseCreateIdentityPermutation", &[self.handle, count, permutation]);
        let mut bytes = 0u64;
        let sizes = [self.handle, ROWS, COLUMNS, count, rows, columns];
        self.library.run("cusparseXcoosort_bufferSizeExt", &[&sizes[..], &[out(&mut bytes)]].concat());
        self.library.run("cusparseXcoosortByRow", &[&sizes[..], &[permutation, 0]].concat());
        let source = self.make("cusparseCreateDnVec", &[count, given, self.kind]);
        let target = self.make("cusparseCreateSpVec", &[count, count, permutation, sorted, 2, 0, self.kind]);
        self.library.run("cusparseGather", &[self.handle, source, target]);
        assert_close("sorted", &self.get(sorted, count), &values, 0.0);
        let offsets = put_indices(&[-1; ROWS + 1], false);
        self.library.run("cusparseXcoo2csr", &[self.handle, rows, count, ROWS, offsets, 0]);
        assert_eq!(get_indices(offsets, ROWS + 1), [0, 2, 3, 3, 6, 7]);
        self.library.run("cusparseXcsr2coo", &[self.handle, offsets, count, ROWS, rows, 0]);
        assert_eq!(get_indices(rows, count), PLACES.map(|place| place.0 as i32));
        let (new_offsets, new_rows) = (put_indices(&[-1; COLUMNS + 1], false), put_indices(&vec![-1; count], false));
        let new_values = upload(&vec![0; count * self.letter.bytes()]) as usize;
        let places = [sorted, offsets, columns, new_values, new_offsets, new_rows, self.kind, 1, 0, 1, 0];
        self.library.run("cusparseCsr2cscEx2", &[&[self.handle, ROWS, COLUMNS, count], &places[..]].concat());
        assert_eq!(get_indices(new_offsets, COLUMNS + 1), [0, 2, 4, 5, 7]);
        assert_eq!(get_indices(new_rows, count), [1, 3, 0, 4, 3, 0, 3]);
        let wanted = [2, 3, 0, 6, 4, 1, 5].map(|at| values[at]);
        assert_close("by columns", &self.get(new_values, count), &wanted, 0.0);
        // Columns inside a row are put in order.
        let descriptor = self.make("cusparseCreateMatDescr", &[]);
        let columns = put_indices(&[3, 1, 0, 3, 0, 2, 1], false);
        self.library.run("cusparseCreateIdentityPermutation", &[self.handle, count, permutation]);
        let slots = [self.handle, ROWS, COLUMNS, count, descriptor, offsets, columns, permutation, 0];
        self.library.run("cusparseXcsrsort", &slots);
        assert_eq!(get_indices(columns, count), PLACES.map(|place| place.1 as i32));
        assert_eq!(get_indices(permutation, count), [1, 0, 2, 4, 5, 3, 6]);
        self.library.run("cusparseDestroyMatDescr", &[descriptor]);
    }

    /// What a matrix says can be read back and changed; an index outside it is a fault.
    fn objects(&self) {
        let (offsets, columns) = (put_indices(&[0, 1, 2], false), put_indices(&[0, 7], false));
        let values = self.put(&[Number(1.0, 0.0); 2]);
        let matrix = self.make("cusparseCreateCsr", &[2, 2, 2, offsets, 0, 0, 2, 2, 0, self.kind]);
        let fill = 1u32;
        self.library.run("cusparseSpMatSetAttribute", &[matrix, 0, at(&fill), 4]);
        self.library.run("cusparseCsrSetPointers", &[matrix, offsets, columns, values]);
        let mut numbers = [0i64; 6];
        let mut kinds = [0u32; 4];
        let slots: Vec<usize> = numbers.iter_mut().map(out).chain(kinds.iter_mut().map(out)).collect();
        self.library.run("cusparseCsrGet", &[&[matrix], &slots[..]].concat());
        assert_eq!(numbers, [2, 2, 2, offsets as i64, columns as i64, values as i64]);
        assert_eq!(kinds, [2, 2, 0, self.kind as u32]);
        let mut format = 0u32;
        self.library.run("cusparseSpMatGetFormat", &[matrix, out(&mut format)]);
        assert_eq!(format, 1);
        self.library.run("cusparseDestroySpMat", &[matrix]);
        assert_ne!(self.library.call("cusparseDestroySpMat", &[matrix]), 0);
    }
}

#[test]
fn sparse_matrices_multiply_and_change_their_format() {
    let gpud = Gpud::start("soft", &[]).expect("gpud");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    start();
    attach();
    let library = Library::load("cusparse", 12);
    let mut handle = 0usize;
    library.run("cusparseCreate", &[out(&mut handle)]);
    for (letter, kind) in [('S', 0), ('D', 1), ('C', 4), ('Z', 5)] {
        let sparse = Sparse { library, handle, letter: Letter(letter), kind };
        sparse.products();
        sparse.conversions();
        sparse.objects();
    }
    // What is not served is refused by name, in the library's own number.
    let mut work = 0usize;
    assert_eq!(library.call("cusparseSpGEMM_createDescr", &[out(&mut work)]), 10);
    library.run("cusparseDestroy", &[handle]);
    process::get().device(0).any_session().expect("attached").close();
}
