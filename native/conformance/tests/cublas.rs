//! cuBLAS through the wire on the software GPU, against straightforward computation.

use serde_json::json;
use sluice_client::connection::Notices;
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{ask, attach, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::libraries::{Library, download, upload};
use sluice_conformance::numbers::{Letter, Number, assert_close, op};
use std::sync::Arc;

const LETTERS: [Letter; 4] = [Letter('S'), Letter('D'), Letter('C'), Letter('Z')];

/// cuBLAS with one handle, and the names of one type.
#[derive(Clone, Copy)]
struct Blas {
    library: Library,
    handle: usize,
    letter: Letter,
}

fn at(data: &[u8]) -> usize {
    data.as_ptr() as usize
}

impl Blas {
    fn run(&self, name: &str, slots: &[usize]) {
        let symbol = format!("cublas{}{name}", self.letter.0);
        self.library.run(&symbol, &[&[self.handle], slots].concat());
    }

    fn put(&self, numbers: &[Number]) -> usize {
        upload(&self.letter.encode(numbers)) as usize
    }

    fn get(&self, address: usize, count: usize) -> Vec<Number> {
        self.letter.decode(&download(address as u64, count * self.letter.bytes()))
    }

    fn host(&self, number: Number) -> Vec<u8> {
        self.letter.encode(&[number])
    }

    fn close(&self, what: &str, got: &[Number], wanted: &[Number]) {
        assert_close(&format!("{} {what}", self.letter.0), got, wanted, self.letter.tolerance());
    }

    fn level1(&self) {
        let n = 37;
        let (x, y) = (self.letter.random(1, 2 * n), self.letter.random(2, n));
        let (dx, dy) = (self.put(&x), self.put(&y));
        let alpha = Number(0.5, if self.letter.is_complex() { -1.5 } else { 0.0 });
        self.run("axpy_v2", &[n, at(&self.host(alpha)), dx, 2, dy, 1]);
        let wanted: Vec<Number> = (0..n).map(|i| alpha * x[2 * i] + y[i]).collect();
        self.close("axpy", &self.get(dy, n), &wanted);
        // A negative step runs backwards.
        self.run("copy_v2", &[n, dx, 2, dy, -1i32 as usize]);
        let wanted: Vec<Number> = (0..n).map(|i| x[2 * (n - 1 - i)]).collect();
        self.close("copy", &self.get(dy, n), &wanted);
        let sum = x[..n].iter().fold(Number::default(), |sum, x| sum + *x * *x);
        let mut result = self.host(Number::default());
        let dot = if self.letter.is_complex() { "dotu_v2" } else { "dot_v2" };
        self.run(dot, &[n, dx, 1, dx, 1, result.as_mut_ptr() as usize]);
        self.close("dot", &self.letter.decode(&result), &[sum]);
        self.run("scal_v2", &[n, at(&self.host(alpha)), dx, 1]);
        let wanted: Vec<Number> = x[..n].iter().map(|x| alpha * *x).collect();
        self.close("scal", &self.get(dx, n), &wanted);
        let norm = wanted.iter().map(|x| x.abs().powi(2)).sum::<f64>().sqrt();
        let (symbol, real) = match self.letter.0 {
            'C' => ("cublasScnrm2_v2", Letter('S')),
            'Z' => ("cublasDznrm2_v2", Letter('D')),
            'S' => ("cublasSnrm2_v2", Letter('S')),
            _ => ("cublasDnrm2_v2", Letter('D')),
        };
        let mut result = real.encode(&[Number::default()]);
        self.library.run(symbol, &[self.handle, n, dx, 1, result.as_mut_ptr() as usize]);
        self.close("nrm2", &real.decode(&result), &[Number(norm, 0.0)]);
        let mut place = [0u8; 4];
        let symbol = format!("cublasI{}amax_v2", self.letter.0.to_lowercase());
        self.library.run(&symbol, &[self.handle, n, dx, 1, place.as_mut_ptr() as usize]);
        let size = |x: &Number| x.0.abs() + x.1.abs();
        let largest = (0..n).fold(0, |best, i| if size(&wanted[i]) > size(&wanted[best]) { i } else { best });
        assert_eq!(i32::from_le_bytes(place), largest as i32 + 1);
    }

    fn level2(&self) {
        let (m, n, lead) = (9, 7, 11);
        let a = self.letter.random(3, lead * n);
        let (x, y) = (self.letter.random(4, 16), self.letter.random(5, 16));
        let (alpha, beta) = (Number(1.5, 0.0), Number(-0.5, 0.0));
        let da = self.put(&a);
        for trans in 0..3 {
            let (long, wide) = if trans == 0 { (m, n) } else { (n, m) };
            let (dx, dy) = (self.put(&x), self.put(&y));
            let (a1, b1) = (self.host(alpha), self.host(beta));
            self.run("gemv_v2", &[trans, m, n, at(&a1), da, lead, dx, 1, at(&b1), dy, 1]);
            let product =
                |row: usize| (0..wide).fold(Number::default(), |sum, k| sum + op(&a, lead, trans, row, k) * x[k]);
            let wanted: Vec<Number> = (0..long).map(|row| alpha * product(row) + beta * y[row]).collect();
            self.close("gemv", &self.get(dy, long), &wanted);
        }
        let (dx, dy, dc) = (self.put(&x), self.put(&y), self.put(&a));
        let ger = if self.letter.is_complex() { "gerc_v2" } else { "ger_v2" };
        self.run(ger, &[m, n, at(&self.host(alpha)), dx, 1, dy, 1, dc, lead]);
        let mut wanted = a.clone();
        for column in 0..n {
            for row in 0..m {
                let term = alpha * x[row] * y[column].conj();
                wanted[column * lead + row] = wanted[column * lead + row] + term;
            }
        }
        self.close("ger", &self.get(dc, lead * n), &wanted);
        // x = op(a)⁻¹ x and back.
        for (uplo, trans) in [(0, 0), (1, 0), (0, 1), (1, 2)] {
            let mut triangle = a.clone();
            (0..n).for_each(|i| triangle[i * lead + i] = Number(3.0, 0.0));
            let (da, dx) = (self.put(&triangle), self.put(&x));
            self.run("trsv_v2", &[uplo, trans, 0, n, da, lead, dx, 1]);
            self.run("trmv_v2", &[uplo, trans, 0, n, da, lead, dx, 1]);
            self.close("trsv and trmv", &self.get(dx, n), &x[..n]);
        }
    }

    fn gemm(&self) {
        let (m, n, k) = (13, 17, 19);
        let (la, lb, lc) = (23, 24, 15);
        let (a, b, c) = (self.letter.random(6, la * 23), self.letter.random(7, lb * 23), self.letter.random(8, lc * n));
        let alpha = Number(1.25, if self.letter.is_complex() { 0.5 } else { 0.0 });
        let beta = Number(-0.75, 0.0);
        let (da, db) = (self.put(&a), self.put(&b));
        for (ta, tb) in (0..3).flat_map(|ta| (0..3).map(move |tb| (ta, tb))) {
            let dc = self.put(&c);
            let (a1, b1) = (self.host(alpha), self.host(beta));
            self.run("gemm_v2", &[ta, tb, m, n, k, at(&a1), da, la, db, lb, at(&b1), dc, lc]);
            let mut wanted = c.clone();
            for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let terms = (0..k).map(|i| op(&a, la, ta, row, i) * op(&b, lb, tb, i, column));
                let sum = terms.fold(Number::default(), |sum, term| sum + term);
                wanted[column * lc + row] = alpha * sum + beta * wanted[column * lc + row];
            }
            self.close("gemm", &self.get(dc, lc * n), &wanted);
        }
    }

    /// Batches: strided, and by arrays of pointers.
    fn batches(&self) {
        let (n, batch) = (5, 4);
        let (a, b) = (self.letter.random(9, n * n * batch), self.letter.random(10, n * n * batch));
        let (da, db) = (self.put(&a), self.put(&b));
        let (one, zero) = (self.host(Number(1.0, 0.0)), self.host(Number::default()));
        let mut wanted = Vec::new();
        for matrix in 0..batch {
            let (a, b) = (&a[matrix * n * n..], &b[matrix * n * n..]);
            for (column, row) in (0..n).flat_map(|column| (0..n).map(move |row| (column, row))) {
                wanted.push((0..n).fold(Number::default(), |sum, i| sum + a[i * n + row] * b[column * n + i]));
            }
        }
        // With beta 0 what lies in c is not read.
        let dc = self.put(&vec![Number(f64::NAN, f64::NAN); n * n * batch]);
        let step = n * n;
        self.run(
            "gemmStridedBatched",
            &[0, 0, n, n, n, at(&one), da, n, step, db, n, step, at(&zero), dc, n, step, batch],
        );
        self.close("gemmStridedBatched", &self.get(dc, wanted.len()), &wanted);
        let pointers = |first: usize| {
            let list = (0..batch).flat_map(|i| (first + i * step * self.letter.bytes()).to_le_bytes());
            upload(&list.collect::<Vec<u8>>()) as usize
        };
        let dc = self.put(&vec![Number::default(); n * n * batch]);
        let [pa, pb, pc] = [da, db, dc].map(pointers);
        self.run("gemmBatched", &[0, 0, n, n, n, at(&one), pa, n, pb, n, at(&zero), pc, n, batch]);
        self.close("gemmBatched", &self.get(dc, wanted.len()), &wanted);

        // LU, solutions and inverses: a · (a⁻¹ b) is b.
        let (pivots, infos) = (upload(&vec![0; 4 * n * batch]) as usize, upload(&vec![1; 4 * batch]) as usize);
        let copy = self.put(&a);
        let pointers_copy = pointers(copy);
        self.run("getrfBatched", &[n, pointers_copy, n, pivots, infos, batch]);
        assert_eq!(download(infos as u64, 4 * batch), vec![0; 4 * batch]);
        let right = self.put(&b);
        let pointers_right = pointers(right);
        let mut info = [9u8; 4];
        self.run(
            "getrsBatched",
            &[0, n, n, pointers_copy, n, pivots, pointers_right, n, info.as_mut_ptr() as usize, batch],
        );
        assert_eq!(info, [0; 4]);
        self.run("gemmBatched", &[0, 0, n, n, n, at(&one), pa, n, pointers_right, n, at(&zero), pc, n, batch]);
        let loose = self.letter.tolerance() * 100.0;
        assert_close("getrs", &self.get(dc, wanted.len()), &b, loose);
        let inverse = self.put(&a);
        let pointers_inverse = pointers(inverse);
        self.run("getriBatched", &[n, pointers_copy, n, pivots, pointers_inverse, n, infos, batch]);
        self.run("gemmBatched", &[0, 0, n, n, n, at(&one), pa, n, pointers_inverse, n, at(&zero), pc, n, batch]);
        let unit: Vec<Number> =
            (0..n * n * batch).map(|i| Number(f64::from(i % (n * n) % (n + 1) == 0), 0.0)).collect();
        assert_close("getri", &self.get(dc, unit.len()), &unit, loose);
    }

    fn level3(&self) {
        let (n, k) = (8, 6);
        let (a, b, c) = (self.letter.random(11, n * n), self.letter.random(12, n * n), self.letter.random(13, n * n));
        let (alpha, beta) = (Number(0.75, 0.0), Number(0.5, 0.0));
        let (a1, b1) = (self.host(alpha), self.host(beta));
        let (da, db) = (self.put(&a), self.put(&b));
        let hermitian = self.letter.is_complex();
        for uplo in 0..2 {
            // symm and hemm: the other triangle follows from the given one.
            for conjugate in [false, true].into_iter().take(1 + usize::from(hermitian)) {
                let dc = self.put(&c);
                let whole = |row: usize, column: usize| {
                    let given = if uplo == 1 { row <= column } else { row >= column };
                    let value = if given { a[column * n + row] } else { a[row * n + column] };
                    match (conjugate, row == column) {
                        (true, true) => Number(value.0, 0.0),
                        (true, false) if !given => value.conj(),
                        _ => value,
                    }
                };
                let name = if conjugate { "hemm_v2" } else { "symm_v2" };
                self.run(name, &[0, uplo, n, n, at(&a1), da, n, db, n, at(&b1), dc, n]);
                let mut wanted = c.clone();
                for (row, column) in (0..n).flat_map(|row| (0..n).map(move |column| (row, column))) {
                    let terms = (0..n).map(|i| whole(row, i) * b[column * n + i]);
                    let sum = terms.fold(Number::default(), |sum, term| sum + term);
                    wanted[column * n + row] = alpha * sum + beta * wanted[column * n + row];
                }
                self.close(name, &self.get(dc, n * n), &wanted);
            }
            // syrk and herk touch one triangle.
            let dc = self.put(&c);
            let name = if hermitian { "herk_v2" } else { "syrk_v2" };
            let real = if matches!(self.letter.0, 'S' | 'C') { Letter('S') } else { Letter('D') };
            let (ra, rb) = (real.encode(&[alpha]), real.encode(&[beta]));
            self.run(name, &[uplo, 0, n, k, at(&ra), da, n, at(&rb), dc, n]);
            let mut wanted = c.clone();
            for (row, column) in (0..n).flat_map(|row| (0..n).map(move |column| (row, column))) {
                if if uplo == 1 { row <= column } else { row >= column } {
                    let terms = (0..k).map(|i| a[i * n + row] * a[i * n + column].conj());
                    let sum = terms.fold(Number::default(), |sum, term| sum + term);
                    let value = alpha * sum + beta * wanted[column * n + row];
                    wanted[column * n + row] = if hermitian && row == column { Number(value.0, 0.0) } else { value };
                }
            }
            self.close(name, &self.get(dc, n * n), &wanted);
            // trsm undoes trmm, from both sides.
            for (side, trans) in [(0, 0), (1, 0), (0, 2), (1, 1)] {
                let mut triangle = a.clone();
                (0..n).for_each(|i| triangle[i * n + i] = Number(2.5, 0.0));
                let (dt, dc) = (self.put(&triangle), self.put(&c));
                self.run("trmm_v2", &[side, uplo, trans, 0, n, n, at(&a1), dt, n, db, n, dc, n]);
                let back = self.host(Number(1.0 / 0.75, 0.0));
                self.run("trsm_v2", &[side, uplo, trans, 0, n, n, at(&back), dt, n, dc, n]);
                assert_close("trmm and trsm", &self.get(dc, n * n), &b, self.letter.tolerance() * 10.0);
            }
        }
        // aᵀ·alpha + b·beta, and rows times a vector.
        let dc = self.put(&c);
        self.run("geam", &[1, 0, n, n, at(&a1), da, n, at(&b1), db, n, dc, n]);
        let wanted: Vec<Number> = (0..n * n).map(|i| alpha * a[i % n * n + i / n] + beta * b[i]).collect();
        self.close("geam", &self.get(dc, n * n), &wanted);
        self.run("dgmm", &[0, n, n, da, n, db, 1, dc, n]);
        let wanted: Vec<Number> = (0..n * n).map(|i| a[i] * b[i % n]).collect();
        self.close("dgmm", &self.get(dc, n * n), &wanted);
    }

    /// Scalars and results in device memory.
    fn device_pointers(&self) {
        let n = 6;
        let x = self.letter.random(14, n);
        let (dx, dy) = (self.put(&x), self.put(&vec![Number::default(); n]));
        let (alpha, result) = (self.put(&[Number(2.0, 0.0)]), self.put(&[Number::default()]));
        self.library.run("cublasSetPointerMode_v2", &[self.handle, 1]);
        self.run("axpy_v2", &[n, alpha, dx, 1, dy, 1]);
        let dot = if self.letter.is_complex() { "dotc_v2" } else { "dot_v2" };
        self.run(dot, &[n, dx, 1, dy, 1, result]);
        self.library.run("cublasSetPointerMode_v2", &[self.handle, 0]);
        let wanted = x.iter().fold(0.0, |sum, x| sum + 2.0 * x.abs().powi(2));
        self.close("dot in device memory", &self.get(result, 1), &[Number(wanted, 0.0)]);
    }
}

/// Products whose types are arguments.
fn gemm_ex(blas: &Blas) {
    use sluice_softgpu::half::{to_bf16, to_f16};
    let n = 16;
    let whole = |i: usize, by: usize| (i * by % 13) as f32 - 6.0;
    let (a, b): (Vec<f32>, Vec<f32>) = (0..n * n).map(|i| (whole(i, 7), whole(i, 5))).unzip();
    let exact: Vec<f32> =
        (0..n * n).map(|i| (0..n).map(|k| a[k * n + i % n] * b[i / n * n + k]).sum::<f32>()).collect();
    let bytes = |kind: usize, data: &[f32]| -> Vec<u8> {
        match kind {
            0 => data.iter().flat_map(|x| x.to_le_bytes()).collect(),
            2 => data.iter().flat_map(|x| to_f16(f64::from(*x)).to_le_bytes()).collect(),
            3 => data.iter().map(|x| *x as i8 as u8).collect(),
            10 => data.iter().flat_map(|x| (*x as i32).to_le_bytes()).collect(),
            14 => data.iter().flat_map(|x| to_bf16(f64::from(*x)).to_le_bytes()).collect(),
            other => panic!("type {other}"),
        }
    };
    // (a and b, c, compute): half with single sums, pure half, bfloat, single, TF32, whole numbers
    for (input, output, compute) in
        [(2, 2, 68), (2, 2, 64), (14, 14, 68), (2, 0, 68), (0, 0, 68), (0, 0, 77), (3, 10, 72)]
    {
        let (da, db) = (upload(&bytes(input, &a)) as usize, upload(&bytes(input, &b)) as usize);
        let dc = upload(&bytes(output, &vec![0.0; n * n])) as usize;
        let (one, zero) = match compute {
            64 => (bytes(2, &[1.0]), bytes(2, &[0.0])),
            72 => (bytes(10, &[1.0]), bytes(10, &[0.0])),
            _ => (bytes(0, &[1.0]), bytes(0, &[0.0])),
        };
        let slots =
            [0, 0, n, n, n, at(&one), da, input, n, db, input, n, at(&zero), dc, output, n, compute, -1i32 as usize];
        blas.library.run("cublasGemmEx", &[&[blas.handle], &slots[..]].concat());
        let wanted = bytes(output, &exact);
        assert_eq!(download(dc as u64, wanted.len()), wanted, "types {input} {output} {compute}");
    }
    // What is not served is refused at the call, in cuBLAS's words.
    let one = 1f32.to_le_bytes();
    let slots = [0, 0, n, n, n, at(&one), 0, 28, n, 0, 28, n, at(&one), 0, 0, n, 68, 0];
    assert_eq!(blas.library.call("cublasGemmEx", &[&[blas.handle], &slots[..]].concat()), 15);
}

fn modes_and_errors(blas: &Blas) {
    let (library, handle) = (blas.library, blas.handle);
    let mut mode = 9u32;
    let out = &raw mut mode as usize;
    library.run("cublasGetMathMode", &[handle, out]);
    assert_eq!(mode, 0);
    library.run("cublasSetMathMode", &[handle, 3]);
    library.run("cublasGetMathMode", &[handle, out]);
    assert_eq!(mode, 3);
    library.run("cublasGetVersion_v2", &[handle, out]);
    assert!(mode >= 120_000);
    let one = 1f32.to_le_bytes();
    let negative = -1i32 as usize;
    assert_eq!(library.call("cublasSscal_v2", &[handle, negative, at(&one), 0, 1]), 7);
    assert_eq!(library.call("cublasSscal_v2", &[handle + 1, 1, at(&one), 0, 1]), 1);
    assert_eq!(library.call("cublasSscal_v2", &[handle, 0, at(&one), 0, 1]), 0);
    // Blocks with gaps, to the device and back.
    let data: Vec<u8> = (0..4 * 5 * 3).collect();
    let device = upload(&[0; 80]) as usize;
    library.run("cublasSetMatrix", &[4, 3, 4, at(&data), 5, device, 4]);
    let mut back = vec![0u8; 48];
    library.run("cublasGetMatrix", &[4, 3, 4, device, 4, back.as_mut_ptr() as usize, 4]);
    let wanted: Vec<u8> = data.chunks(20).flat_map(|column| column[..16].to_vec()).collect();
    assert_eq!(back, wanted);
}

#[test]
fn cublas_computes_what_it_should() {
    let gpud = Gpud::start("soft", &[]).expect("gpud");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    let library = Library::load("cublas", 13);
    let mut handle = 0usize;
    let place = &raw mut handle as usize;
    // Without a lease, the library says that it cannot start, and the sentence says why.
    assert_eq!(library.call("cublasCreate_v2", &[place]), 1);
    assert!(ask(&json!({ "op": "message" }))["message"].as_str().is_some_and(|text| text.contains("%gpu attach")));
    start();
    attach();
    library.run("cublasCreate_v2", &[place]);
    for letter in LETTERS {
        let blas = Blas { library, handle, letter };
        blas.level1();
        blas.level2();
        blas.gemm();
        blas.level3();
        blas.batches();
        blas.device_pointers();
    }
    let blas = Blas { library, handle, letter: Letter('S') };
    gemm_ex(&blas);
    modes_and_errors(&blas);

    // A new lease: the same handle works there, with its modes; memory of the old one is refused.
    let old = blas.put(&[Number(1.0, 0.0)]);
    let session = process::get().device(0).any_session().expect("attached");
    session.shared.lost("it was switched off");
    session.connection.die(sluice_client::error::CudaError::code(46));
    attach();
    blas.level1();
    let one = blas.host(Number(1.0, 0.0));
    assert_eq!(library.call("cublasSscal_v2", &[handle, 1, at(&one), old, 1]), 7);
    library.run("cublasDestroy_v2", &[handle]);
    assert_eq!(library.call("cublasSscal_v2", &[handle, 1, at(&one), old, 1]), 1);
    process::get().device(0).any_session().expect("attached").close();
}
