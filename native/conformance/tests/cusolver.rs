//! cuSOLVER through the wire on the software GPU: factors are multiplied out again, and what cannot be factored is said.

use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{attach, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::libraries::{Library, download, upload};
use sluice_conformance::numbers::{Letter, Number, assert_close};
use std::sync::Arc;

/// A column-major matrix.
#[derive(Clone, Debug)]
struct Matrix {
    rows: usize,
    data: Vec<Number>,
}

impl Matrix {
    fn build(rows: usize, columns: usize, element: impl Fn(usize, usize) -> Number) -> Self {
        Self { rows, data: (0..rows * columns).map(|at| element(at % rows, at / rows)).collect() }
    }

    fn columns(&self) -> usize {
        self.data.len() / self.rows
    }

    fn at(&self, row: usize, column: usize) -> Number {
        self.data[column * self.rows + row]
    }

    fn adjoint(&self) -> Self {
        Self::build(self.columns(), self.rows, |row, column| self.at(column, row).conj())
    }

    fn times(&self, other: &Self) -> Self {
        Self::build(self.rows, other.columns(), |row, column| {
            (0..other.rows).fold(Number::default(), |sum, k| sum + self.at(row, k) * other.at(k, column))
        })
    }

    fn scaled(&self, factors: &[Number]) -> Self {
        Self::build(self.rows, factors.len(), |row, column| self.at(row, column) * factors[column])
    }

    fn first(&self, columns: usize) -> Self {
        Self { rows: self.rows, data: self.data[..columns * self.rows].to_vec() }
    }

    fn identity(order: usize) -> Self {
        Self::build(order, order, |row, column| Number(f64::from(row == column), 0.0))
    }

    /// One triangle, with ones on the diagonal where `unit`.
    fn triangle(&self, upper: bool, unit: bool) -> Self {
        let order = self.rows.min(self.columns());
        let (rows, columns) = if upper { (order, self.columns()) } else { (self.rows, order) };
        Self::build(rows, columns, |row, column| match row == column {
            true if unit => Number(1.0, 0.0),
            false if (row < column) != upper => Number::default(),
            _ => self.at(row, column),
        })
    }
}

/// Functions of one type, with a handle and an algorithm's objects.
struct Solver {
    library: Library,
    letter: Letter,
    handle: usize,
    params: usize,
    jacobi: usize,
    info: usize,
}

impl Solver {
    fn new(library: Library, letter: Letter) -> Self {
        let make = |symbol: &str| {
            let mut made = 0usize;
            library.run(symbol, &[std::ptr::from_mut(&mut made) as usize]);
            made
        };
        let jacobi = make("cusolverDnCreateGesvdjInfo");
        library.run("cusolverDnXgesvdjSetTolerance", &[jacobi, 1e-12f64.to_bits() as usize]);
        let (handle, params) = (make("cusolverDnCreate"), make("cusolverDnCreateParams"));
        Self { library, letter, handle, params, jacobi, info: upload(&[0xff; 64]) as usize }
    }

    fn put(&self, matrix: &Matrix) -> usize {
        upload(&self.letter.encode(&matrix.data)) as usize
    }

    fn get(&self, address: usize, rows: usize, columns: usize) -> Matrix {
        let bytes = rows * columns * self.letter.bytes();
        Matrix { rows, data: self.letter.decode(&download(address as u64, bytes)) }
    }

    /// Values are real.
    fn values(&self, address: usize, count: usize) -> Vec<Number> {
        let real = Letter(if matches!(self.letter.0, 'S' | 'C') { 'S' } else { 'D' });
        real.decode(&download(address as u64, count * real.bytes()))
    }

    /// A function's name: real and complex types have names of their own for some.
    fn name(&self, real: &str, complex: &str) -> String {
        format!("cusolverDn{}{}", self.letter.0, if self.letter.is_complex() { complex } else { real })
    }

    fn run(&self, name: &str, slots: &[usize]) {
        self.library.run(&self.name(name, name), &[&[self.handle], slots].concat());
    }

    /// What the device was told about the last work.
    fn told(&self) -> i32 {
        let bytes = download(self.info as u64, 4);
        i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    fn equal(&self, what: &str, got: &Matrix, wanted: &Matrix) {
        let tolerance = self.letter.tolerance() * 5.0;
        assert_close(&format!("{} {what}", self.letter.0), &got.data, &wanted.data, tolerance);
    }

    fn random(&self, seed: u64, rows: usize, columns: usize) -> Matrix {
        Matrix { rows, data: self.letter.random(seed, rows * columns) }
    }

    fn room(&self, elements: usize) -> usize {
        upload(&vec![0xff; elements * self.letter.bytes()]) as usize
    }

    fn lu(&self) {
        let (m, n) = (9, 7);
        let a = self.random(1, m, n);
        let (da, pivots) = (self.put(&a), self.room(16));
        let mut work = 0i32;
        self.run("getrf_bufferSize", &[m, n, da, m, std::ptr::from_mut(&mut work) as usize]);
        assert!(work > 0);
        self.run("getrf", &[m, n, da, m, 0, pivots, self.info]);
        assert_eq!(self.told(), 0);
        let factors = self.get(da, m, n);
        let mut exchanged = a.clone();
        let pivot_bytes = download(pivots as u64, 4 * n);
        for (at, bytes) in pivot_bytes.chunks_exact(4).enumerate() {
            let other = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize - 1;
            (0..n).for_each(|column| exchanged.data.swap(column * m + at, column * m + other));
        }
        self.equal("LU", &factors.triangle(false, true).times(&factors.triangle(true, false)), &exchanged);
        // Systems, also with the conjugate transpose, by the functions of any type.
        let kind = match self.letter.0 {
            'S' => 0,
            'D' => 1,
            'C' => 4,
            _ => 5,
        };
        let (a, x) = (self.random(2, n, n), self.random(3, n, 2));
        for (operation, matrix) in [(0, a.clone()), (2, a.adjoint())] {
            let (da, db) = (self.put(&a), self.put(&matrix.times(&x)));
            let (mut device, mut host) = (0u64, 0u64);
            let sizes = [std::ptr::from_mut(&mut device) as usize, std::ptr::from_mut(&mut host) as usize];
            let any = |name: &str, slots: &[usize]| {
                self.library.run(&format!("cusolverDnX{name}"), &[&[self.handle, self.params], slots].concat());
            };
            any("getrf_bufferSize", &[&[n, n, kind, da, n, kind], &sizes[..]].concat());
            any("getrf", &[n, n, kind, da, n, pivots, kind, 0, device as usize, 0, host as usize, self.info]);
            any("getrs", &[operation, n, 2, kind, da, n, pivots, kind, db, n, self.info]);
            self.equal("getrs", &self.get(db, n, 2), &x);
        }
        // The third column is a multiple of the first.
        let singular = Matrix::build(
            n,
            n,
            |row, column| {
                if column == 2 { a.at(row, 0) + a.at(row, 0) } else { a.at(row, column) }
            },
        );
        let da = self.put(&Matrix::build(n, n, |row, column| {
            if column < 3 && row >= 2 { Number::default() } else { singular.at(row, column) }
        }));
        self.run("getrf", &[n, n, da, n, 0, pivots, self.info]);
        assert_eq!(self.told(), 3);
    }

    fn cholesky(&self) {
        let n = 8;
        let b = self.random(4, n, n);
        let mut a = b.times(&b.adjoint());
        (0..n).for_each(|at| a.data[at * n + at] = a.data[at * n + at] + Number(1.0, 0.0));
        let x = self.random(5, n, 3);
        for upper in [0, 1] {
            let (da, db) = (self.put(&a), self.put(&a.times(&x)));
            self.run("potrf", &[upper, n, da, n, 0, 0, self.info]);
            assert_eq!(self.told(), 0);
            let whole = self.get(da, n, n);
            let factor = whole.triangle(upper == 1, false);
            let factor = if upper == 1 { factor.adjoint() } else { factor };
            self.equal("Cholesky", &factor.times(&factor.adjoint()), &a);
            // What lies in the other triangle stays.
            let (row, column) = if upper == 1 { (n - 1, 0) } else { (0, n - 1) };
            let kept = Matrix { rows: 1, data: vec![whole.at(row, column)] };
            self.equal("the other triangle", &kept, &Matrix { rows: 1, data: vec![a.at(row, column)] });
            self.run("potrs", &[upper, n, 3, da, n, db, n, self.info]);
            self.equal("potrs", &self.get(db, n, 3), &x);
        }
        // A batch of which the second is indefinite from its fourth row on.
        let mut indefinite = a.clone();
        indefinite.data[3 * n + 3] = Number(-5.0, 0.0);
        let addresses = [self.put(&a) as u64, self.put(&indefinite) as u64];
        let bytes: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        let array = upload(&bytes) as usize;
        self.run("potrfBatched", &[0, n, array, n, self.info, 2]);
        assert_eq!(download(self.info as u64, 8), [0, 0, 0, 0, 4, 0, 0, 0]);
        let right = self.put(&a.times(&x));
        let array_b = upload(&(right as u64).to_le_bytes()) as usize;
        self.run("potrsBatched", &[0, n, 3, array, n, array_b, n, self.info, 1]);
        self.equal("potrsBatched", &self.get(right, n, 3), &x);
    }

    fn qr(&self) {
        for (m, n) in [(9, 6), (5, 8)] {
            let a = self.random(6, m, n);
            let (da, tau, few) = (self.put(&a), self.room(8), m.min(n));
            self.run("geqrf", &[m, n, da, m, tau, 0, 0, self.info]);
            assert_eq!(self.told(), 0);
            let factors = self.get(da, m, n);
            let r = factors.triangle(true, false);
            // Qᴴ a is r, with zeros below it; a Qᴴ from the right is its like.
            let multiply = self.name("ormqr", "unmqr");
            let adjoint = if self.letter.is_complex() { 2 } else { 1 };
            let c = self.put(&a);
            self.library.run(&multiply, &[self.handle, 0, adjoint, m, n, few, da, m, tau, c, m, 0, 0, self.info]);
            let wanted =
                Matrix::build(m, n, |row, column| if row < few { r.at(row, column) } else { Number::default() });
            self.equal("Qᴴ a", &self.get(c, m, n), &wanted);
            let c = self.put(&Matrix::identity(m));
            self.library.run(&multiply, &[self.handle, 1, 0, m, m, few, da, m, tau, c, m, 0, 0, self.info]);
            let whole = self.get(c, m, m);
            self.equal("Q", &whole.adjoint().times(&whole), &Matrix::identity(m));
            self.library.run(&self.name("orgqr", "ungqr"), &[self.handle, m, few, few, da, m, tau, 0, 0, self.info]);
            let q = self.get(da, m, few);
            self.equal("Q's columns", &q, &whole.first(few));
            self.equal("QR", &q.times(&r), &a);
        }
    }

    fn eigenvalues(&self) {
        let n = 12;
        let b = self.random(7, n, n);
        let a = Matrix::build(n, n, |row, column| b.at(row, column) + b.at(column, row).conj());
        let repeated =
            Matrix::build(n, n, |row, column| if row == column { Number(2.0, 0.0) } else { Number::default() });
        for (a, upper) in [(a.clone(), 0), (a, 1), (repeated, 0)] {
            // Only one triangle is looked at.
            let given = Matrix::build(n, n, |row, column| match (row > column) == (upper == 1) && row != column {
                true => Number(1e3, 0.0),
                false => a.at(row, column),
            });
            let (da, w) = (self.put(&given), self.room(n));
            self.library.run(&self.name("syevd", "heevd"), &[self.handle, 1, upper, n, da, n, w, 0, 0, self.info]);
            assert_eq!(self.told(), 0);
            let (vectors, values) = (self.get(da, n, n), self.values(w, n));
            assert!(values.is_sorted_by(|a, b| a.0 <= b.0));
            self.equal("eigenvectors", &vectors.adjoint().times(&vectors), &Matrix::identity(n));
            self.equal("eigenvalues", &vectors.scaled(&values).times(&vectors.adjoint()), &a);
            // Values alone are the same.
            let da = self.put(&given);
            self.library.run(&self.name("syevd", "heevd"), &[self.handle, 0, upper, n, da, n, w, 0, 0, self.info]);
            assert_close("values alone", &self.values(w, n), &values, self.letter.tolerance());
        }
        let broken = self.put(&Matrix::build(n, n, |_, _| Number(f64::NAN, 0.0)));
        let w = self.room(n);
        self.library.run(&self.name("syevd", "heevd"), &[self.handle, 1, 0, n, broken, n, w, 0, 0, self.info]);
        assert!(self.told() > 0 && self.values(w, n).iter().all(|value| value.0.is_nan()));
    }

    fn check_svd(&self, a: &Matrix, u: &Matrix, s: &[Number], v: &Matrix) {
        let few = s.len();
        assert!(s.is_sorted_by(|a, b| a.0 >= b.0) && s.iter().all(|value| value.0 >= 0.0));
        self.equal("U", &u.adjoint().times(u), &Matrix::identity(u.columns()));
        self.equal("V", &v.adjoint().times(v), &Matrix::identity(v.columns()));
        self.equal("U s Vᴴ", &u.first(few).scaled(s).times(&v.first(few).adjoint()), a);
    }

    fn singular_values(&self) {
        let thin = self.random(8, 9, 2);
        let low_rank = thin.times(&self.random(9, 6, 2).adjoint());
        for a in [self.random(10, 9, 6), self.random(11, 6, 9), low_rank, Matrix::build(5, 5, |_, _| Number::default())]
        {
            let (m, n) = (a.rows, a.columns());
            let few = m.min(n);
            for (job, columns_u, rows_v) in [(b'A', m, n), (b'S', few, few)] {
                let (da, s, u, v) = (self.put(&a), self.room(few), self.room(m * m), self.room(n * n));
                let job = usize::from(job);
                self.run("gesvd", &[job, job, m, n, da, m, s, u, m, v, rows_v, 0, 0, 0, self.info]);
                assert_eq!(self.told(), 0);
                let (u, v) = (self.get(u, m, columns_u), self.get(v, rows_v, n).adjoint());
                self.check_svd(&a, &u, &self.values(s, few), &v);
            }
            for (economic, columns_u, columns_v) in [(0, m, n), (1, few, few)] {
                let (da, s, u, v) = (self.put(&a), self.room(few), self.room(m * m), self.room(n * n));
                self.run("gesvdj", &[1, economic, m, n, da, m, s, u, m, v, n, 0, 0, self.info, self.jacobi]);
                let (u, v) = (self.get(u, m, columns_u), self.get(v, n, columns_v));
                self.check_svd(&a, &u, &self.values(s, few), &v);
            }
        }
        // A batch, and the first values of one.
        let (m, n, batch) = (7, 4, 3);
        let all = self.random(12, m, n * batch);
        let (da, s, u, v) = (self.put(&all), self.room(n * batch), self.room(m * m * batch), self.room(n * n * batch));
        self.run("gesvdjBatched", &[1, m, n, da, m, s, u, m, v, n, 0, 0, self.info, self.jacobi, batch]);
        let (s, u, v) = (self.values(s, n * batch), self.get(u, m, m * batch), self.get(v, n, n * batch));
        for index in 0..batch {
            let part = |matrix: &Matrix, columns: usize| {
                let elements = columns * matrix.rows;
                Matrix { rows: matrix.rows, data: matrix.data[index * elements..][..elements].to_vec() }
            };
            self.check_svd(&part(&all, n), &part(&u, m), &s[index * n..][..n], &part(&v, n));
        }
        let (da, kept, u, v) = (self.put(&all.first(n)), self.room(4), self.room(m * 2), self.room(n * 2));
        let (mut left_out, rank) = ([0f64; 1], 2);
        let slots = [1, rank, m, n, da, m, m * n, kept, 2, u, m, m * 2, v, n, n * 2, 0, 0, self.info];
        self.run("gesvdaStridedBatched", &[&slots[..], &[left_out.as_mut_ptr() as usize, 1]].concat());
        assert_close("the first values", &self.values(kept, rank), &s[..rank], self.letter.tolerance());
        assert_close("the rest", &[Number(left_out[0], 0.0)], &[Number(s[2].0.hypot(s[3].0), 0.0)], 1e-3);
        self.equal("U's first", &self.get(u, m, rank).adjoint().times(&self.get(u, m, rank)), &Matrix::identity(rank));
        let broken = self.put(&Matrix::build(m, n, |_, _| Number(f64::INFINITY, 0.0)));
        self.run("gesvdj", &[0, 1, m, n, broken, m, kept, 0, m, 0, n, 0, 0, self.info, self.jacobi]);
        assert_eq!(self.told(), n as i32 + 1);
    }
}

#[test]
fn factors_multiply_to_what_was_factored() {
    let gpud = Gpud::start("soft", &[]).expect("gpud");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    start();
    attach();
    let library = Library::load("cusolver", 12);
    for letter in ['S', 'D', 'C', 'Z'] {
        let solver = Solver::new(library, Letter(letter));
        solver.lu();
        solver.cholesky();
        solver.qr();
        solver.eigenvalues();
        solver.singular_values();
        for (symbol, object) in [
            ("cusolverDnDestroyGesvdjInfo", solver.jacobi),
            ("cusolverDnDestroyParams", solver.params),
            ("cusolverDnDestroy", solver.handle),
        ] {
            library.run(symbol, &[object]);
        }
    }
    // What is not served is refused by name, in the library's own number.
    let mut handle = 0usize;
    library.run("cusolverDnCreate", &[std::ptr::from_mut(&mut handle) as usize]);
    let mut work = 0i32;
    let slots = [handle, 4, 0, 4, std::ptr::from_mut(&mut work) as usize];
    assert_eq!(library.call("cusolverDnDsytrf_bufferSize", &slots), 9);
    process::get().device(0).any_session().expect("attached").close();
}
