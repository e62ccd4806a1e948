//! cuBLAS through the wire on the software GPU, against straightforward computation.

use serde_json::json;
use sluice_client::connection::Notices;
use sluice_client::generated::sluice_cuMemcpyDtoH_v2;
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

fn sum(terms: impl Iterator<Item = Number>) -> Number {
    terms.fold(Number::default(), |sum, term| sum + term)
}

/// Where element `index` of a vector of `count` lies: a negative step runs backwards.
fn spot(index: usize, count: usize, step: i32) -> usize {
    let index = if step < 0 { count - 1 - index } else { index };
    index * step.unsigned_abs() as usize
}

/// A vector of `count` with this step, out of what lies in memory.
fn strided(all: &[Number], count: usize, step: i32) -> Vec<Number> {
    (0..count).map(|index| all[spot(index, count, step)]).collect()
}

/// A vector with this step, over what lies in memory.
fn put_strided(all: &mut [Number], values: &[Number], step: i32) {
    for (index, value) in values.iter().enumerate() {
        all[spot(index, values.len(), step)] = *value;
    }
}

/// Whether an element is in the triangle that `uplo` names.
fn given(uplo: usize, row: usize, column: usize) -> bool {
    if uplo == 1 { row <= column } else { row >= column }
}

fn pairs(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..columns).flat_map(move |column| (0..rows).map(move |row| (row, column)))
}

/// The steps of vectors: of both signs.
const STEPS: [i32; 4] = [1, 2, -1, -3];
/// How a triangle lies in memory.
const FORMS: [char; 3] = ['r', 'b', 'p'];

/// One triangle of a square matrix of `n` rows in one of the forms: `r` whole, `b` as a band of `k` diagonals beside the
/// main one, `p` packed.
#[derive(Clone, Copy)]
struct Triangle {
    form: char,
    uplo: usize,
    n: usize,
    k: usize,
    lead: usize,
}

impl Triangle {
    fn of(form: char, uplo: usize) -> Self {
        Self { form, uplo, n: 7, k: 2, lead: if form == 'b' { 4 } else { 9 } }
    }

    fn length(self) -> usize {
        if self.form == 'p' { self.n * (self.n + 1) / 2 } else { self.lead * self.n }
    }

    /// Where an element lies; none for what is not there.
    fn place(self, row: usize, column: usize) -> Option<usize> {
        if !given(self.uplo, row, column) || (self.form == 'b' && row.abs_diff(column) > self.k) {
            return None;
        }
        let before = |columns: usize| {
            if self.uplo == 1 { columns * (columns + 1) / 2 } else { (0..columns).map(|c| self.n - c).sum() }
        };
        Some(match (self.form, self.uplo) {
            ('r', _) => column * self.lead + row,
            ('b', 1) => column * self.lead + self.k + row - column,
            ('b', _) => column * self.lead + row - column,
            (_, 1) => before(column) + row,
            _ => before(column) + row - column,
        })
    }

    fn at(self, data: &[Number], row: usize, column: usize) -> Number {
        self.place(row, column).map_or(Number::default(), |place| data[place])
    }

    /// An element of the symmetric or Hermitian matrix of which this is given.
    fn whole(self, data: &[Number], hermitian: bool, row: usize, column: usize) -> Number {
        match (given(self.uplo, row, column), hermitian) {
            (true, true) if row == column => Number(self.at(data, row, column).0, 0.0),
            (true, _) => self.at(data, row, column),
            (false, false) => self.at(data, column, row),
            (false, true) => self.at(data, column, row).conj(),
        }
    }

    /// An element of op(triangle).
    fn turned(self, data: &[Number], trans: usize, unit: usize, row: usize, column: usize) -> Number {
        let (r, c) = if trans == 0 { (row, column) } else { (column, row) };
        match (r == c && unit == 1, trans) {
            (true, _) => Number(1.0, 0.0),
            (_, 2) => self.at(data, r, c).conj(),
            _ => self.at(data, r, c),
        }
    }

    /// A matrix's arguments: its address, and its leading dimension where it has one.
    fn slots(self, address: usize) -> Vec<usize> {
        if self.form == 'p' { vec![address] } else { vec![address, self.lead] }
    }

    /// The diagonals of a band.
    fn diagonals(self) -> Vec<usize> {
        if self.form == 'b' { vec![self.k] } else { Vec::new() }
    }
}

/// Device memory with the addresses of a batch's parts.
fn addresses(first: usize, bytes: usize, batch: usize) -> usize {
    upload(&(0..batch).flat_map(|index| (first + index * bytes).to_le_bytes()).collect::<Vec<u8>>()) as usize
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

    /// What has no complex form, or another name there.
    fn real(&self) -> Letter {
        if matches!(self.letter.0, 'S' | 'C') { Letter('S') } else { Letter('D') }
    }

    /// The remaining vector functions, for steps of both signs.
    fn vectors(&self) {
        let (n, complex, real) = (11, self.letter.is_complex(), self.real());
        let all = |seed| self.letter.random(seed, 3 * n);
        let (x, y) = (all(20), all(21));
        let size = |x: &Number| x.0.abs() + x.1.abs();
        let asum = match self.letter.0 {
            'C' => "cublasScasum_v2".to_owned(),
            'Z' => "cublasDzasum_v2".to_owned(),
            letter => format!("cublas{letter}asum_v2"),
        };
        for step in [1, 3] {
            let (dx, mut result, mut place) = (self.put(&x), real.encode(&[Number::default()]), [0u8; 4]);
            let values = strided(&x, n, step);
            self.library.run(&asum, &[self.handle, n, dx, step as usize, result.as_mut_ptr() as usize]);
            self.close("asum", &real.decode(&result), &[Number(values.iter().map(size).sum(), 0.0)]);
            let symbol = format!("cublasI{}amin_v2", self.letter.0.to_lowercase());
            self.library.run(&symbol, &[self.handle, n, dx, step as usize, place.as_mut_ptr() as usize]);
            let least = (0..n).fold(0, |best, i| if size(&values[i]) < size(&values[best]) { i } else { best });
            assert_eq!(i32::from_le_bytes(place), least as i32 + 1, "{symbol}");
        }
        // A rotation of each kind: (cosine, sine) as the function takes them.
        let (cosine, sine) = (Number(0.6, 0.0), Number(0.64, if complex { 0.48 } else { 0.0 }));
        for (step_x, step_y) in STEPS.into_iter().zip([-2, 1, 3, -1]) {
            let (a, b) = (strided(&x, n, step_x), strided(&y, n, step_y));
            let check = |name: &str, dx: usize, dy: usize, term: &dyn Fn(usize) -> (Number, Number)| {
                let (new_x, new_y): (Vec<Number>, Vec<Number>) = (0..n).map(term).unzip();
                let (mut wanted_x, mut wanted_y) = (x.clone(), y.clone());
                put_strided(&mut wanted_x, &new_x, step_x);
                put_strided(&mut wanted_y, &new_y, step_y);
                self.close(name, &self.get(dx, x.len()), &wanted_x);
                self.close(name, &self.get(dy, y.len()), &wanted_y);
            };
            let (steps, fresh) = ([step_x as usize, step_y as usize], || (self.put(&x), self.put(&y)));
            let (dx, dy) = fresh();
            self.run("swap_v2", &[n, dx, steps[0], dy, steps[1]]);
            check("swap", dx, dy, &|i| (b[i], a[i]));
            let (dx, dy) = fresh();
            let (c, s) = (real.encode(&[cosine]), self.host(sine));
            self.run("rot_v2", &[n, dx, steps[0], dy, steps[1], at(&c), at(&s)]);
            check("rot", dx, dy, &|i| (cosine * a[i] + sine * b[i], cosine * b[i] - sine.conj() * a[i]));
            if complex {
                let (dx, dy) = fresh();
                let (name, s) =
                    (if self.letter.0 == 'C' { "cublasCsrot_v2" } else { "cublasZdrot_v2" }, real.encode(&[sine]));
                self.library.run(name, &[self.handle, n, dx, steps[0], dy, steps[1], at(&c), at(&s)]);
                let sine = Number(sine.0, 0.0);
                check("rot by real numbers", dx, dy, &|i| (cosine * a[i] + sine * b[i], cosine * b[i] - sine * a[i]));
                continue;
            }
            // The four flags say which elements of the matrix are given.
            let h = [0.5, -1.25, 0.75, 2.0];
            for flag in [-2.0, -1.0, 0.0, 1.0] {
                let (dx, dy) = fresh();
                let param: Vec<Number> = [flag, h[0], h[1], h[2], h[3]].map(|x| Number(x, 0.0)).to_vec();
                let param = self.letter.encode(&param);
                self.run("rotm_v2", &[n, dx, steps[0], dy, steps[1], at(&param)]);
                let [h11, h21, h12, h22] = match flag as i32 {
                    -2 => [1.0, 0.0, 0.0, 1.0],
                    -1 => h,
                    0 => [1.0, h[1], h[2], 1.0],
                    _ => [h[0], -1.0, 1.0, h[3]],
                }
                .map(|x| Number(x, 0.0));
                check("rotm", dx, dy, &|i| (h11 * a[i] + h12 * b[i], h21 * a[i] + h22 * b[i]));
            }
        }
        self.rotations();
    }

    /// Rotations that are made: they take the second number to zero.
    fn rotations(&self) {
        let (complex, real) = (self.letter.is_complex(), self.real());
        let zero = Number::default();
        let imaginary = |x: f64| if complex { x } else { 0.0 };
        let cases = [(0.3, -0.8), (-0.9, 0.2), (0.7, 0.0), (0.0, -0.4), (0.0, 0.0)];
        for (a, b) in cases.map(|(a, b)| (Number(a, imaginary(a * 0.5)), Number(b, imaginary(b * -0.25)))) {
            let (mut ra, mut rb) = (self.host(a), self.host(b));
            let (mut c, mut s) = (real.encode(&[zero]), self.host(zero));
            let slots = [&mut ra, &mut rb, &mut c, &mut s].map(|bytes| bytes.as_mut_ptr() as usize);
            self.run("rotg_v2", &slots);
            let (r, c, s) = (self.letter.decode(&ra)[0], real.decode(&c)[0], self.letter.decode(&s)[0]);
            let rotated = [c * a + s * b, c * b - s.conj() * a, Number(c.0 * c.0 + s.abs() * s.abs(), 0.0)];
            self.close("rotg", &rotated, &[r, zero, Number(1.0, 0.0)]);
            if !complex {
                // z gives both back: the cosine by 1/z where it is above 1, else the sine.
                let z = self.letter.decode(&rb)[0].0;
                let (cosine, sine) = match z.abs() {
                    1.0 => (0.0, 1.0),
                    size if size < 1.0 => ((1.0 - z * z).sqrt(), z),
                    _ => (1.0 / z, (1.0 - 1.0 / (z * z)).sqrt()),
                };
                self.close("rotg's z", &[c, s], &[Number(cosine, 0.0), Number(sine, 0.0)]);
            }
        }
        if complex {
            return;
        }
        // Large and small factors are brought near one; a negative one makes everything zero.
        for (d1, d2, x1, y1) in [
            (0.5, 0.25, 0.75, 0.5),
            (0.25, 0.5, 0.5, -1.5),
            (0.5, 0.75, 0.5, 0.0),
            (1e10, 2e9, 3.0, 1.0),
            (1e-9, 2e-9, 1.0, 2.0),
            (-1.0, 0.5, 0.5, 0.5),
        ] {
            let mut hosts = [d1, d2, x1].map(|x| self.host(Number(x, 0.0)));
            let y = self.host(Number(y1, 0.0));
            let mut param = self.letter.encode(&[Number(9.0, 0.0), zero, zero, zero, zero]);
            let [p1, p2, p3] = hosts.each_mut().map(|bytes| bytes.as_mut_ptr() as usize);
            self.run("rotmg_v2", &[p1, p2, p3, at(&y), param.as_mut_ptr() as usize]);
            let [n1, n2, nx] = hosts.each_ref().map(|bytes| self.letter.decode(bytes)[0].0);
            let param: Vec<f64> = self.letter.decode(&param).iter().map(|x| x.0).collect();
            let [h11, h21, h12, h22] = match param[0] as i32 {
                -2 => [1.0, 0.0, 0.0, 1.0],
                -1 => [param[1], param[2], param[3], param[4]],
                0 => [1.0, param[2], param[3], 1.0],
                1 => [param[1], -1.0, 1.0, param[4]],
                flag => panic!("flag {flag}"),
            };
            if d1 < 0.0 {
                assert_eq!([n1, n2, nx, h11, h12, h21, h22], [0.0; 7]);
                continue;
            }
            // H takes (x1, y1) to (x, 0), and the weighted length d1 x1² + d2 y1² is kept.
            let near = |got: f64, wanted: f64, scale: f64| {
                let difference = (got - wanted).abs();
                assert!(
                    difference <= self.letter.tolerance() * scale,
                    "rotmg of {d1} {d2} {x1} {y1}: {got}, not {wanted}"
                );
            };
            near(h11 * x1 + h12 * y1, nx, 1.0 + nx.abs());
            near(h21 * x1 + h22 * y1, 0.0, 1.0 + (h21 * x1).abs());
            let length = d1 * x1 * x1 + d2 * y1 * y1;
            near(n1 * nx * nx, length, length);
            let range = 2f64.powi(-24)..=2f64.powi(24);
            assert!(range.contains(&n1) && range.contains(&n2), "rotmg: {n1} {n2}");
        }
    }

    /// Products of matrices, bands, triangles and vectors with steps of both signs.
    fn products(&self) {
        let complex = self.letter.is_complex();
        let alpha = Number(1.25, if complex { -0.5 } else { 0.0 });
        let beta = Number(-0.75, if complex { 0.25 } else { 0.0 });
        let (a1, b1) = (self.host(alpha), self.host(beta));
        let (x, y) = (self.letter.random(22, 32), self.letter.random(23, 32));
        let dx = self.put(&x);
        let steps: Vec<(i32, i32)> = STEPS.into_iter().zip([-2, 1, 3, -1]).collect();
        // y = alpha a x + beta y for what gives the elements of a.
        let check = |what: &str,
                     name: &str,
                     before: &[usize],
                     [rows, columns]: [usize; 2],
                     element: &dyn Fn(usize, usize) -> Number| {
            for (step_x, step_y) in &steps {
                let dy = self.put(&y);
                let after = [dx, *step_x as usize, at(&b1), dy, *step_y as usize];
                self.run(name, &[before, &after].concat());
                let (given, old) = (strided(&x, columns, *step_x), strided(&y, rows, *step_y));
                let value = |row| alpha * sum((0..columns).map(|k| element(row, k) * given[k])) + beta * old[row];
                let mut wanted = y.clone();
                put_strided(&mut wanted, &(0..rows).map(value).collect::<Vec<Number>>(), *step_y);
                self.close(what, &self.get(dy, y.len()), &wanted);
            }
        };
        // Whole matrices and bands; some bands have columns that lie beside the matrix.
        for (m, n, below, above) in [(8, 6, 2, 1), (4, 9, 1, 2), (5, 5, 0, 0), (6, 7, 9, 9)] {
            let lead = below + above + 2;
            let a = self.letter.random(24, lead.max(m) * n);
            let da = self.put(&a);
            for trans in 0..3 {
                let size = if trans == 0 { [m, n] } else { [n, m] };
                check("gemv", "gemv_v2", &[trans, m, n, at(&a1), da, m], size, &|row, column| {
                    op(&a, m, trans, row, column)
                });
                check("gbmv", "gbmv_v2", &[trans, m, n, below, above, at(&a1), da, lead], size, &|row, column| {
                    let (r, c) = if trans == 0 { (row, column) } else { (column, row) };
                    if r + above < c || r > c + below {
                        return Number::default();
                    }
                    let value = a[c * lead + above + r - c];
                    if trans == 2 { value.conj() } else { value }
                });
            }
        }
        for (form, uplo) in FORMS.into_iter().flat_map(|form| [(form, 0), (form, 1)]) {
            let triangle = Triangle::of(form, uplo);
            let (a, n) = (self.letter.random(25, triangle.length()), triangle.n);
            let da = self.put(&a);
            let (symmetric, hermitian) = match form {
                'r' => ("symv_v2", "hemv_v2"),
                'b' => ("sbmv_v2", "hbmv_v2"),
                _ => ("spmv_v2", "hpmv_v2"),
            };
            let before = [&[uplo, n][..], &triangle.diagonals(), &[at(&a1)], &triangle.slots(da)].concat();
            if !complex || form == 'r' {
                check(symmetric, symmetric, &before, [n, n], &|row, column| triangle.whole(&a, false, row, column));
            }
            if complex {
                check(hermitian, hermitian, &before, [n, n], &|row, column| triangle.whole(&a, true, row, column));
            }
        }
    }

    /// Triangles times vectors, and their solutions: every form, triangle, operation and diagonal, steps of both signs.
    fn triangles(&self) {
        let x = self.letter.random(26, 32);
        let kinds = (0..2).flat_map(|uplo| (0..3).flat_map(move |trans| (0..2).map(move |unit| (uplo, trans, unit))));
        for (form, (uplo, trans, unit)) in
            FORMS.into_iter().flat_map(|form| kinds.clone().map(move |kind| (form, kind)))
        {
            let triangle = Triangle::of(form, uplo);
            let n = triangle.n;
            let mut a = self.letter.random(27, triangle.length());
            for i in 0..n {
                let place = triangle.place(i, i).expect("the diagonal");
                a[place] = Number(2.5, a[place].1);
            }
            let da = self.put(&a);
            let before = [&[uplo, trans, unit, n][..], &triangle.diagonals(), &triangle.slots(da)].concat();
            let name = |end: &str| format!("t{form}{end}_v2");
            for step in STEPS {
                let dx = self.put(&x);
                let slots = [&before[..], &[dx, step as usize]].concat();
                self.run(&name("mv"), &slots);
                let given = strided(&x, n, step);
                let value = |row| sum((0..n).map(|k| triangle.turned(&a, trans, unit, row, k) * given[k]));
                let mut wanted = x.clone();
                put_strided(&mut wanted, &(0..n).map(value).collect::<Vec<Number>>(), step);
                self.close(&name("mv"), &self.get(dx, x.len()), &wanted);
                // What was just checked, solved for, is what there was.
                self.run(&name("sv"), &slots);
                assert_close(&name("sv"), &self.get(dx, x.len()), &x, self.letter.tolerance() * 10.0);
            }
        }
    }

    /// Updates of rank one and two of every form, and what copies one form to another.
    fn updates(&self) {
        let complex = self.letter.is_complex();
        let (x, y) = (self.letter.random(28, 32), self.letter.random(29, 32));
        let (dx, dy) = (self.put(&x), self.put(&y));
        let alpha = Number(1.5, if complex { 0.5 } else { 0.0 });
        let (whole, real) = (self.host(alpha), self.real().encode(&[alpha]));
        for (form, uplo, hermitian) in
            ['r', 'p'].into_iter().flat_map(|form| pairs(2, 2).map(move |(uplo, kind)| (form, uplo, kind == 1)))
        {
            if (hermitian && !complex) || (!hermitian && complex && form == 'p') {
                continue;
            }
            let triangle = Triangle::of(form, uplo);
            let (a, n) = (self.letter.random(30, triangle.length()), triangle.n);
            let other = |x: Number| if hermitian { x.conj() } else { x };
            let start = match (form, hermitian) {
                ('r', false) => "sy",
                ('r', true) => "he",
                (_, false) => "sp",
                _ => "hp",
            };
            for (step_x, step_y) in STEPS.into_iter().zip([-2, 1, 3, -1]) {
                let (vx, vy) = (strided(&x, n, step_x), strided(&y, n, step_y));
                let check = |name: &str, scalar: usize, second: &[usize], term: &dyn Fn(usize, usize) -> Number| {
                    let da = self.put(&a);
                    let before = [uplo, n, scalar, dx, step_x as usize];
                    self.run(name, &[&before[..], second, &triangle.slots(da)].concat());
                    let mut wanted = a.clone();
                    for (row, column) in pairs(n, n) {
                        if let Some(place) = triangle.place(row, column) {
                            let value = wanted[place] + term(row, column);
                            wanted[place] = if hermitian && row == column { Number(value.0, 0.0) } else { value };
                        }
                    }
                    self.close(name, &self.get(da, a.len()), &wanted);
                };
                let (scalar, factor) = if hermitian { (&real, Number(alpha.0, 0.0)) } else { (&whole, alpha) };
                check(&format!("{start}r_v2"), at(scalar), &[], &|row, column| factor * vx[row] * other(vx[column]));
                check(&format!("{start}r2_v2"), at(&whole), &[dy, step_y as usize], &|row, column| {
                    alpha * vx[row] * other(vy[column]) + other(alpha) * vy[row] * other(vx[column])
                });
            }
        }
        for (step_x, step_y) in STEPS.into_iter().zip([-2, 1, 3, -1]) {
            let (m, n, lead) = (6, 5, 8);
            let a = self.letter.random(31, lead * n);
            let (vx, vy) = (strided(&x, m, step_x), strided(&y, n, step_y));
            let names: &[&str] = if complex { &["geru_v2", "gerc_v2"] } else { &["ger_v2"] };
            for name in names {
                let da = self.put(&a);
                self.run(name, &[m, n, at(&whole), dx, step_x as usize, dy, step_y as usize, da, lead]);
                let mut wanted = a.clone();
                for (row, column) in pairs(m, n) {
                    let second = if *name == "gerc_v2" { vy[column].conj() } else { vy[column] };
                    wanted[column * lead + row] = wanted[column * lead + row] + alpha * vx[row] * second;
                }
                self.close(name, &self.get(da, a.len()), &wanted);
            }
        }
        for uplo in 0..2 {
            let (from, to) = (Triangle::of('p', uplo), Triangle::of('r', uplo));
            let (packed, whole) = (self.letter.random(32, from.length()), self.letter.random(33, to.length()));
            let (dp, dw) = (self.put(&packed), self.put(&whole));
            self.run("tpttr", &[uplo, from.n, dp, dw, to.lead]);
            let mut wanted = whole.clone();
            for (row, column) in pairs(from.n, from.n) {
                if let Some(place) = to.place(row, column) {
                    wanted[place] = from.at(&packed, row, column);
                }
            }
            self.close("tpttr", &self.get(dw, whole.len()), &wanted);
            let back = self.put(&vec![Number::default(); packed.len()]);
            self.run("trttp", &[uplo, from.n, dw, to.lead, back]);
            self.close("trttp", &self.get(back, packed.len()), &packed);
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
        let pointers = |first: usize| addresses(first, step * self.letter.bytes(), batch);
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

    /// Inverses, solutions and decompositions of batches.
    fn batches_of_factors(&self) {
        let (m, n, batch) = (6, 4, 3);
        let element = self.letter.bytes();
        let loose = self.letter.tolerance() * 100.0;
        let one = self.host(Number(1.0, 0.0));
        let matrices = |data: &[Number], length: usize| {
            let first = self.put(data);
            (first, addresses(first, length * element, batch))
        };
        // Of a matrix of n rows, taller than it: at its place and the sum of a row by a column.
        let product =
            |a: &[Number], lead: usize, x: &[Number], count: usize, row: usize, column: usize, lead_x: usize| {
                sum((0..count).map(|i| a[i * lead + row] * x[column * lead_x + i]))
            };

        let a = self.letter.random(40, n * n * batch);
        let (first, pa) = matrices(&a, n * n);
        let (inverse, pi) = matrices(&vec![Number::default(); n * n * batch], n * n);
        let infos = upload(&vec![9; 4 * batch]) as usize;
        self.run("matinvBatched", &[n, pa, n, pi, n, infos, batch]);
        assert_eq!(download(infos as u64, 4 * batch), vec![0; 4 * batch]);
        self.close("matinv leaves a", &self.get(first, a.len()), &a);
        let inverse = self.get(inverse, a.len());
        for (a, inverse) in a.chunks(n * n).zip(inverse.chunks(n * n)) {
            let got: Vec<Number> = pairs(n, n).map(|(row, column)| product(a, n, inverse, n, row, column, n)).collect();
            let unit: Vec<Number> = pairs(n, n).map(|(row, column)| Number(f64::from(row == column), 0.0)).collect();
            assert_close("matinv", &got, &unit, loose);
        }

        // Each as one alone.
        let b = self.letter.random(41, n * m * batch);
        for [uplo, trans, unit] in [[0, 0, 0], [1, 1, 0], [1, 2, 1], [0, 2, 0]] {
            let (alone, _) = matrices(&b, n * m);
            let (together, pb) = matrices(&b, n * m);
            self.run("trsmBatched", &[0, uplo, trans, unit, n, m, at(&one), pa, n, pb, n, batch]);
            for index in 0..batch {
                let (a, b) = (first + index * n * n * element, alone + index * n * m * element);
                self.run("trsm_v2", &[0, uplo, trans, unit, n, m, at(&one), a, n, b, n]);
            }
            assert_eq!(self.get(together, b.len()), self.get(alone, b.len()), "trsmBatched {uplo} {trans} {unit}");
        }

        // Reflections of the triangle give the matrix again.
        let a = self.letter.random(42, m * n * batch);
        let (decomposed, pa) = matrices(&a, m * n);
        let (taus, pt) = matrices(&vec![Number::default(); n * batch], n);
        let mut info = [9u8; 4];
        self.run("geqrfBatched", &[m, n, pa, m, pt, info.as_mut_ptr() as usize, batch]);
        assert_eq!(info, [0; 4]);
        let (decomposed, taus) = (self.get(decomposed, a.len()), self.get(taus, n * batch));
        for ((a, qr), taus) in a.chunks(m * n).zip(decomposed.chunks(m * n)).zip(taus.chunks(n)) {
            let mut got: Vec<Number> = pairs(m, n)
                .map(|(row, column)| if row <= column { qr[column * m + row] } else { Number::default() })
                .collect();
            for (at, tau) in taus.iter().enumerate().rev() {
                let v: Vec<Number> = (0..m)
                    .map(|row| match row.cmp(&at) {
                        std::cmp::Ordering::Less => Number::default(),
                        std::cmp::Ordering::Equal => Number(1.0, 0.0),
                        std::cmp::Ordering::Greater => qr[at * m + row],
                    })
                    .collect();
                for column in got.chunks_mut(m) {
                    let along = *tau * sum(v.iter().zip(column.iter()).map(|(v, x)| v.conj() * *x));
                    column.iter_mut().zip(&v).for_each(|(x, v)| *x = *x - *v * along);
                }
            }
            assert_close("geqrf", &got, a, loose);
        }

        // What is left over stands on all columns.
        let (columns, c) = (2, self.letter.random(43, m * 2 * batch));
        let (_, pa) = matrices(&a, m * n);
        let (solved, pc) = matrices(&c, m * columns);
        let infos = upload(&vec![9; 4 * batch]) as usize;
        self.run("gelsBatched", &[0, m, n, columns, pa, m, pc, m, info.as_mut_ptr() as usize, infos, batch]);
        assert_eq!((info, download(infos as u64, 4 * batch)), ([0; 4], vec![0; 4 * batch]));
        let solved = self.get(solved, c.len());
        for ((a, c), x) in a.chunks(m * n).zip(c.chunks(m * columns)).zip(solved.chunks(m * columns)) {
            let over: Vec<Number> = pairs(m, columns)
                .map(|(row, column)| product(a, m, x, n, row, column, m) - c[column * m + row])
                .collect();
            let got: Vec<Number> = pairs(n, columns)
                .map(|(row, column)| sum((0..m).map(|i| a[row * m + i].conj() * over[column * m + i])))
                .collect();
            assert_close("gels", &got, &vec![Number::default(); n * columns], loose);
        }
        let wide = [0, n, m, columns, pa, n, pc, m, info.as_mut_ptr() as usize, infos, batch];
        let symbol = format!("cublas{}gelsBatched", self.letter.0);
        assert_eq!(self.library.call(&symbol, &[&[self.handle], &wide[..]].concat()), 15, "more columns than rows");

        if self.letter.is_complex() {
            let (da, db) = (self.put(&a), self.put(&b));
            let products = ["gemm_v2", "gemm3m"].map(|name| {
                let dc = self.put(&vec![Number(1.0, 1.0); m * m]);
                self.run(name, &[0, 0, m, m, n, at(&one), da, m, db, n, at(&one), dc, m]);
                self.get(dc, m * m)
            });
            self.close("gemm3m", &products[1], &products[0]);
        }
    }

    /// Symmetric and Hermitian products and updates, on each side and of each triangle and operation.
    fn symmetric(&self) {
        let complex = self.letter.is_complex();
        let (m, n, k, lead) = (6, 5, 4, 8);
        let (a, b, c) = (self.letter.random(34, 64), self.letter.random(35, 64), self.letter.random(36, 64));
        let (da, db) = (self.put(&a), self.put(&b));
        let alpha = Number(0.75, if complex { -1.25 } else { 0.0 });
        let beta = Number(0.5, if complex { 0.25 } else { 0.0 });
        let (a1, b1) = (self.host(alpha), self.host(beta));
        let (ra, rb) = (self.real().encode(&[alpha]), self.real().encode(&[beta]));
        let kinds = [("symm_v2", false), ("hemm_v2", true)].into_iter().take(1 + usize::from(complex));
        for ((name, hermitian), (side, uplo)) in kinds.flat_map(|kind| pairs(2, 2).map(move |pair| (kind, pair))) {
            let order = if side == 1 { n } else { m };
            let triangle = Triangle { form: 'r', uplo, n: order, k: 0, lead };
            let dc = self.put(&c);
            self.run(name, &[side, uplo, m, n, at(&a1), da, lead, db, lead, at(&b1), dc, lead]);
            let mut wanted = c.clone();
            for (row, column) in pairs(m, n) {
                let whole = |row, column| triangle.whole(&a, hermitian, row, column);
                let product = if side == 1 {
                    sum((0..n).map(|i| b[i * lead + row] * whole(i, column)))
                } else {
                    sum((0..m).map(|i| whole(row, i) * b[column * lead + i]))
                };
                wanted[column * lead + row] = alpha * product + beta * c[column * lead + row];
            }
            self.close(name, &self.get(dc, c.len()), &wanted);
        }
        // (name, with a second matrix, both ways, Hermitian)
        let mut updates =
            vec![("syrk_v2", false, false, false), ("syr2k_v2", true, true, false), ("syrkx", true, false, false)];
        if complex {
            updates.extend([
                ("herk_v2", false, false, true),
                ("her2k_v2", true, true, true),
                ("herkx", true, false, true),
            ]);
        }
        for (name, second, both, hermitian) in updates {
            for (uplo, trans) in pairs(2, 3) {
                let turned = if hermitian { 2 } else { 1 };
                if complex && trans != 0 && trans != turned {
                    // Of complex matrices only one of the two is an update.
                    let slots = [uplo, trans, n, k, at(&a1), da, lead, db, lead, at(&b1), db, lead];
                    let slots = if second { slots.to_vec() } else { [&slots[..7], &slots[9..]].concat() };
                    let symbol = format!("cublas{}{name}", self.letter.0);
                    assert_eq!(
                        self.library.call(&symbol, &[&[self.handle], &slots[..]].concat()),
                        7,
                        "{symbol} {trans}"
                    );
                    continue;
                }
                // The scalars that are real: both of herk, and beta of the other Hermitian ones.
                let (real_alpha, real_beta) = (hermitian && !second, hermitian);
                let factor = if real_alpha { Number(alpha.0, 0.0) } else { alpha };
                let rest = if real_beta { Number(beta.0, 0.0) } else { beta };
                let (pa, pb) = (at(if real_alpha { &ra } else { &a1 }), at(if real_beta { &rb } else { &b1 }));
                let dc = self.put(&c);
                let middle = if second { vec![da, lead, db, lead] } else { vec![da, lead] };
                self.run(name, &[&[uplo, trans, n, k, pa], &middle[..], &[pb, dc, lead]].concat());
                let other = |x: Number| if hermitian { x.conj() } else { x };
                let product = |x: &[Number], y: &[Number], row: usize, column: usize| {
                    sum((0..k).map(|i| match trans {
                        0 => x[i * lead + row] * other(y[i * lead + column]),
                        _ => other(x[row * lead + i]) * y[column * lead + i],
                    }))
                };
                let mut wanted = c.clone();
                for (row, column) in pairs(n, n).filter(|(row, column)| given(uplo, *row, *column)) {
                    let right = if second { &b } else { &a };
                    let mut value = factor * product(&a, right, row, column) + rest * c[column * lead + row];
                    if both {
                        value = value + other(factor) * product(&b, &a, row, column);
                    }
                    if hermitian && row == column {
                        value.1 = 0.0;
                    }
                    wanted[column * lead + row] = value;
                }
                self.close(name, &self.get(dc, c.len()), &wanted);
            }
        }
    }

    /// Products with triangles and their solutions: every side, triangle, operation and diagonal.
    fn sided_triangles(&self) {
        let (m, n, lead) = (6, 5, 8);
        let (b, c) = (self.letter.random(38, lead * n), self.letter.random(39, lead * n));
        let alpha = Number(0.75, if self.letter.is_complex() { -0.5 } else { 0.0 });
        let (a1, one) = (self.host(alpha), self.host(Number(1.0, 0.0)));
        let db = self.put(&b);
        for ((side, uplo), (trans, unit)) in
            pairs(2, 2).flat_map(|first| pairs(3, 2).map(move |second| (first, second)))
        {
            let order = if side == 1 { n } else { m };
            let triangle = Triangle { form: 'r', uplo, n: order, k: 0, lead };
            let mut a = self.letter.random(37, lead * order);
            (0..order).for_each(|i| a[i * lead + i].0 = 2.5);
            let (da, dc) = (self.put(&a), self.put(&c));
            self.run("trmm_v2", &[side, uplo, trans, unit, m, n, at(&a1), da, lead, db, lead, dc, lead]);
            let (mut wanted, mut back) = (c.clone(), c.clone());
            for (row, column) in pairs(m, n) {
                let element = |row, column| triangle.turned(&a, trans, unit, row, column);
                let product = if side == 1 {
                    sum((0..n).map(|i| b[i * lead + row] * element(i, column)))
                } else {
                    sum((0..m).map(|i| element(row, i) * b[column * lead + i]))
                };
                wanted[column * lead + row] = alpha * product;
                back[column * lead + row] = alpha * b[column * lead + row];
            }
            self.close("trmm", &self.get(dc, c.len()), &wanted);
            self.run("trsm_v2", &[side, uplo, trans, unit, m, n, at(&one), da, lead, dc, lead]);
            assert_close("trsm", &self.get(dc, c.len()), &back, self.letter.tolerance() * 10.0);
        }
    }

    fn sums_and_diagonals(&self) {
        let n = 8;
        let (a, b, c) = (self.letter.random(11, n * n), self.letter.random(12, n * n), self.letter.random(13, n * n));
        let (alpha, beta) = (Number(0.75, 0.0), Number(0.5, 0.0));
        let (a1, b1) = (self.host(alpha), self.host(beta));
        let (da, db) = (self.put(&a), self.put(&b));
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

/// Whole numbers in one of the types, by its number.
fn typed(kind: usize, data: &[f32]) -> Vec<u8> {
    use sluice_softgpu::half::{to_bf16, to_f16};
    match kind {
        0 => data.iter().flat_map(|x| x.to_le_bytes()).collect(),
        1 => data.iter().flat_map(|x| f64::from(*x).to_le_bytes()).collect(),
        2 => data.iter().flat_map(|x| to_f16(f64::from(*x)).to_le_bytes()).collect(),
        3 => data.iter().map(|x| *x as i8 as u8).collect(),
        4 => data.iter().flat_map(|x| [x.to_le_bytes(), (2.0 * x).to_le_bytes()].concat()).collect(),
        10 => data.iter().flat_map(|x| (*x as i32).to_le_bytes()).collect(),
        14 => data.iter().flat_map(|x| to_bf16(f64::from(*x)).to_le_bytes()).collect(),
        other => panic!("type {other}"),
    }
}

/// Products of half precision, and batches of products whose types are arguments.
fn typed_products(blas: &Blas) {
    let (n, batch) = (8, 3);
    let length = n * n;
    let whole = |by: usize| (0..length * batch).map(|i| (i * by % 7) as f32 - 3.0).collect::<Vec<f32>>();
    let (a, b) = (whole(5), whole(3));
    let exact: Vec<f32> = (0..length * batch)
        .map(|i| {
            let (matrix, at) = (i / length * length, i % length);
            (0..n).map(|k| a[matrix + k * n + at % n] * b[matrix + at / n * n + k]).sum()
        })
        .collect();
    let run = |symbol: &str, slots: &[usize]| blas.library.run(symbol, &[&[blas.handle], slots].concat());
    // (a and b, c, the factors, compute)
    for (input, output, factors, compute) in
        [(2, 2, 2, 64), (2, 2, 0, 68), (14, 0, 0, 68), (3, 10, 10, 72), (0, 0, 0, 68)]
    {
        let size = |kind: usize| typed(kind, &[0.0]).len();
        let (one, zero) = (typed(factors, &[1.0]), typed(factors, &[0.0]));
        let (da, db) = (upload(&typed(input, &a)) as usize, upload(&typed(input, &b)) as usize);
        let lists = [(da, input), (db, input)].map(|(first, kind)| addresses(first, length * size(kind), batch));
        let wanted = typed(output, &exact);
        let expect = |symbol: &str, batch: usize, call: &dyn Fn(usize)| {
            let dc = upload(&typed(output, &vec![1.0; length * batch])) as usize;
            call(dc);
            let bytes = length * batch * size(output);
            assert_eq!(download(dc as u64, bytes), wanted[..bytes], "{symbol}, types {input} {output}");
        };
        let (shape, last) = ([0, 0, n, n, n, at(&one)], -1i32 as usize);
        expect("cublasGemmStridedBatchedEx", batch, &|dc| {
            let [a, b] = [da, db].map(|first| [first, input, n, length]);
            let c = [at(&zero), dc, output, n, length, batch, compute, last];
            run("cublasGemmStridedBatchedEx", &[&shape[..], &a, &b, &c].concat());
        });
        expect("cublasGemmBatchedEx", batch, &|dc| {
            let [a, b] = lists.map(|list| [list, input, n]);
            let pc = addresses(dc, length * size(output), batch);
            run(
                "cublasGemmBatchedEx",
                &[&shape[..], &a, &b, &[at(&zero), pc, output, n, batch, compute, last]].concat(),
            );
        });
        if (input, compute) == (2, 64) {
            expect("cublasHgemm", 1, &|dc| {
                run("cublasHgemm", &[&shape[..], &[da, n, db, n, at(&zero), dc, n]].concat());
            });
            expect("cublasHgemmStridedBatched", batch, &|dc| {
                let rest = [da, n, length, db, n, length, at(&zero), dc, n, length, batch];
                run("cublasHgemmStridedBatched", &[&shape[..], &rest].concat());
            });
            expect("cublasHgemmBatched", batch, &|dc| {
                let pc = addresses(dc, 2 * length, batch);
                let rest = [lists[0], n, lists[1], n, at(&zero), pc, n, batch];
                run("cublasHgemmBatched", &[&shape[..], &rest].concat());
            });
        }
        if factors == 0 {
            expect("cublasSgemmEx", 1, &|dc| {
                let rest = [da, input, n, db, input, n, at(&zero), dc, output, n];
                run("cublasSgemmEx", &[&shape[..], &rest].concat());
            });
        }
    }
    // Each number is x + 2xi: a product of two is (1 + 2i)² = -3 + 4i times that of the parts.
    let (da, db) = (upload(&typed(4, &a)) as usize, upload(&typed(4, &b)) as usize);
    let dc = upload(&typed(4, &vec![1.0; length])) as usize;
    let (one, zero) = (Letter('C').encode(&[Number(1.0, 0.0)]), Letter('C').encode(&[Number::default()]));
    run("cublasCgemmEx", &[0, 0, n, n, n, at(&one), da, 4, n, db, 4, n, at(&zero), dc, 4, n]);
    let wanted: Vec<Number> =
        exact[..length].iter().map(|x| Number(-3.0 * f64::from(*x), 4.0 * f64::from(*x))).collect();
    assert_eq!(Letter('C').decode(&download(dc as u64, 8 * length)), wanted);
}

/// Functions of vectors whose types are arguments.
fn typed_vectors(blas: &Blas) {
    let (x, y): (Vec<f32>, Vec<f32>) =
        ((1..=9).map(|i| i as f32).collect(), (1..=9).map(|i| (10 - i) as f32).collect());
    let (n, run) =
        (x.len(), |symbol: &str, slots: &[usize]| blas.library.run(symbol, &[&[blas.handle], slots].concat()));
    let dot: f32 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
    for kind in [0, 1, 2, 14] {
        // The sums of halves are made in single precision.
        let wide = if kind == 1 { 1 } else { 0 };
        let three = typed(wide, &[3.0]);
        let (dx, dy) = (upload(&typed(kind, &x)) as usize, upload(&typed(kind, &y)) as usize);
        let mut result = typed(kind, &[0.0]);
        for symbol in ["cublasDotEx", "cublasDotcEx"] {
            result.fill(9);
            run(symbol, &[n, dx, kind, 1, dy, kind, 1, result.as_mut_ptr() as usize, kind, wide]);
            assert_eq!(result, typed(kind, &[dot]), "{symbol} of type {kind}");
        }
        run("cublasNrm2Ex", &[2, dx + 2 * result.len(), kind, 1, result.as_mut_ptr() as usize, kind, wide]);
        assert_eq!(result, typed(kind, &[5.0]), "the length of 3 and 4 of type {kind}");
        run("cublasAxpyEx", &[n, at(&three), wide, dx, kind, 1, dy, kind, -1i32 as usize, wide]);
        let sums: Vec<f32> = y.iter().enumerate().map(|(at, y)| y + 3.0 * x[n - 1 - at]).collect();
        assert_eq!(download(dy as u64, n * result.len()), typed(kind, &sums), "axpy of type {kind}");
        run("cublasScalEx", &[n / 2 + 1, at(&three), wide, dx, kind, 2, wide]);
        let scaled: Vec<f32> = x.iter().enumerate().map(|(at, x)| if at % 2 == 0 { 3.0 * x } else { *x }).collect();
        assert_eq!(download(dx as u64, n * result.len()), typed(kind, &scaled), "scal of type {kind}");
    }
    // Of x + 2xi with itself: 5x² where one is conjugated, and (-3 + 4i)x² where none is.
    let squares: f64 = x.iter().map(|x| f64::from(x * x)).sum();
    let dx = upload(&typed(4, &x)) as usize;
    let mut result = Letter('C').encode(&[Number::default()]);
    for (symbol, factor) in [("cublasDotEx", Number(-3.0, 4.0)), ("cublasDotcEx", Number(5.0, 0.0))] {
        run(symbol, &[n, dx, 4, 1, dx, 4, 1, result.as_mut_ptr() as usize, 4, 4]);
        assert_eq!(result, Letter('C').encode(&[Number(squares, 0.0) * factor]), "{symbol}");
    }
}

/// Products whose types are arguments.
fn gemm_ex(blas: &Blas) {
    let n = 16;
    let whole = |i: usize, by: usize| (i * by % 13) as f32 - 6.0;
    let (a, b): (Vec<f32>, Vec<f32>) = (0..n * n).map(|i| (whole(i, 7), whole(i, 5))).unzip();
    let exact: Vec<f32> =
        (0..n * n).map(|i| (0..n).map(|k| a[k * n + i % n] * b[i / n * n + k]).sum::<f32>()).collect();
    // (a and b, c, compute): half with single sums, pure half, bfloat, single, TF32, whole numbers
    for (input, output, compute) in
        [(2, 2, 68), (2, 2, 64), (14, 14, 68), (2, 0, 68), (0, 0, 68), (0, 0, 77), (3, 10, 72)]
    {
        let (da, db) = (upload(&typed(input, &a)) as usize, upload(&typed(input, &b)) as usize);
        let dc = upload(&typed(output, &vec![0.0; n * n])) as usize;
        let (one, zero) = match compute {
            64 => (typed(2, &[1.0]), typed(2, &[0.0])),
            72 => (typed(10, &[1.0]), typed(10, &[0.0])),
            _ => (typed(0, &[1.0]), typed(0, &[0.0])),
        };
        let slots =
            [0, 0, n, n, n, at(&one), da, input, n, db, input, n, at(&zero), dc, output, n, compute, -1i32 as usize];
        blas.library.run("cublasGemmEx", &[&[blas.handle], &slots[..]].concat());
        let wanted = typed(output, &exact);
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

/// What cuBLAS asks of a call's numbers is refused at the call, also where calls with the same operations have been
/// accepted and are posted since; the GPU goes on.
fn refused_at_the_call(blas: &Blas) {
    let (library, handle) = (blas.library, blas.handle);
    let one = 1f32.to_le_bytes();
    let data = upload(&[0; 400]) as usize;
    let gemm = |alpha: usize, lda: usize, a: usize| {
        library.call("cublasSgemm_v2", &[handle, 0, 0, 5, 5, 5, alpha, a, lda, data, 5, at(&one), data, 5])
    };
    let gemv = |step: usize| {
        library.call("cublasSgemv_v2", &[handle, 0, 5, 5, at(&one), data, 5, data, step, at(&one), data, 1])
    };
    for _ in 0..2 {
        assert_eq!((gemm(at(&one), 5, data), gemv(1)), (0, 0));
        assert_eq!((gemm(at(&one), 4, data), gemm(0, 5, data), gemv(0)), (7, 7, 7));
    }
    let ex = |a: usize, b: usize| {
        let numbers = [handle, 0, 0, 5, 5, 5, at(&one), data, a, 5, data, b, 5, at(&one), data, 0, 5, 68, 0];
        library.call("cublasGemmEx", &numbers)
    };
    assert_eq!((ex(2, 2), ex(2, 3)), (0, 15));
    // Level 1 takes step 0, and sums of nothing are zero.
    assert_eq!(library.call("cublasSaxpy_v2", &[handle, 5, at(&one), data, 0, data, 1]), 0);
    for symbol in ["cublasSnrm2_v2", "cublasSasum_v2"] {
        let mut sum = 1f32;
        library.run(symbol, &[handle, 0, data, 1, &raw mut sum as usize]);
        assert_eq!(sum.to_bits(), 0, "{symbol}");
    }
    assert_eq!(download(data as u64, 400), [0; 400]);
}

/// A call that is refused after it was posted fails the next one that waits: what it should have computed is not handed
/// out.
fn failed_afterwards(library: Library) {
    let mut handle = 0usize;
    library.run("cublasCreate_v2", &[&raw mut handle as usize]);
    let data = upload(&[0; 64]);
    let inverse = |n: usize| {
        let address = data as usize;
        library.call("cublasSmatinvBatched", &[handle, n, address, 64, address, 64, address, 0])
    };
    assert_eq!((inverse(1), inverse(33)), (0, 0), "the second one is posted");
    let mut out = [1u8; 64];
    // SAFETY: a live local.
    let copied = unsafe { sluice_cuMemcpyDtoH_v2(out.as_mut_ptr().cast(), data, out.len()) };
    assert_eq!(copied, 719);
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
        blas.vectors();
        blas.products();
        blas.triangles();
        blas.updates();
        blas.gemm();
        blas.sums_and_diagonals();
        blas.symmetric();
        blas.sided_triangles();
        blas.batches();
        blas.batches_of_factors();
        blas.device_pointers();
    }
    let blas = Blas { library, handle, letter: Letter('S') };
    gemm_ex(&blas);
    typed_products(&blas);
    typed_vectors(&blas);
    modes_and_errors(&blas);
    refused_at_the_call(&blas);

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
    failed_afterwards(library);
    process::get().device(0).any_session().expect("attached").close();
}
