//! cuBLASLt, cuFFT and cuRAND through the wire on the software GPU, against straightforward computation.

use serde_json::json;
use sluice_client::generated::*;
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{ask, attach, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::libraries::{Library, download, upload};
use sluice_conformance::numbers::{Letter, Number, assert_close};
use std::ffi::{CStr, c_char};
use std::sync::Arc;

const S: Letter = Letter('S');
const C: Letter = Letter('C');
const Z: Letter = Letter('Z');
const D: Letter = Letter('D');

fn at<T>(data: &T) -> usize {
    std::ptr::from_ref(data) as usize
}

fn out<T>(data: &mut T) -> usize {
    std::ptr::from_mut(data) as usize
}

/// `relu(2 aᵀ b + bias)` by descriptions, with what the heuristic proposes.
fn matmul() {
    let lt = Library::load("cublaslt", 13);
    let (m, n, k) = (6usize, 5usize, 4usize);
    let mut handle = 0usize;
    lt.run("cublasLtCreate", &[out(&mut handle)]);
    let (a, b, bias) = (S.random(1, k * m), S.random(2, k * n), S.random(3, m));
    let [da, db, dbias] = [&a, &b, &bias].map(|numbers| upload(&S.encode(numbers)) as usize);
    let dd = upload(&vec![0xff; 4 * m * n]) as usize;
    let make = |symbol: &str, slots: &[usize]| {
        let mut made = 0usize;
        lt.run(symbol, &[&[out(&mut made)], slots].concat());
        made
    };
    let wanted: Vec<Number> = (0..m * n)
        .map(|i| {
            let sum: f64 = (0..k).map(|l| a[i % m * k + l].0 * b[i / m * k + l].0).sum();
            Number((2.0 * sum + bias[i % m].0).max(0.0), 0.0)
        })
        .collect();
    // Twice: the second time everything is known, and only the product itself is posted.
    for _ in 0..2 {
        let desc = make("cublasLtMatmulDescCreate", &[68, 0]);
        let (turned, epilogue, address) = (1u32, 6u32, dbias as u64);
        lt.run("cublasLtMatmulDescSetAttribute", &[desc, 3, at(&turned), 4]);
        lt.run("cublasLtMatmulDescSetAttribute", &[desc, 7, at(&epilogue), 4]);
        lt.run("cublasLtMatmulDescSetAttribute", &[desc, 8, at(&address), 8]);
        let layout_a = make("cublasLtMatrixLayoutCreate", &[0, k, m, k]);
        let layout_b = make("cublasLtMatrixLayoutCreate", &[0, k, n, k]);
        let layout_d = make("cublasLtMatrixLayoutCreate", &[0, m, n, m]);
        let preference = make("cublasLtMatmulPreferenceCreate", &[]);
        let (mut rows, mut written, mut kept) = (0u64, 0usize, 0u32);
        lt.run("cublasLtMatrixLayoutGetAttribute", &[layout_d, 2, out(&mut rows), 8, out(&mut written)]);
        lt.run("cublasLtMatmulDescGetAttribute", &[desc, 7, out(&mut kept), 4, 0]);
        assert_eq!((rows, written, kept), (m as u64, 8, epilogue));
        let (mut results, mut found) = ([0u8; 96 * 2], 0i32);
        lt.run(
            "cublasLtMatmulAlgoGetHeuristic",
            &[handle, desc, layout_a, layout_b, layout_d, layout_d, preference, 2, out(&mut results), out(&mut found)],
        );
        assert_eq!(found, 1);
        let (alpha, beta) = (2f32, 0f32);
        lt.run(
            "cublasLtMatmul",
            &[
                handle,
                desc,
                at(&alpha),
                da,
                layout_a,
                db,
                layout_b,
                at(&beta),
                dd,
                layout_d,
                dd,
                layout_d,
                results.as_ptr() as usize,
                0,
                0,
                0,
            ],
        );
        let got = S.decode(&download(dd as u64, 4 * m * n));
        assert_close("matmul", &got, &wanted, 1e-5);
        for layout in [layout_a, layout_b, layout_d] {
            lt.run("cublasLtMatrixLayoutDestroy", &[layout]);
        }
        lt.run("cublasLtMatmulPreferenceDestroy", &[preference]);
        lt.run("cublasLtMatmulDescDestroy", &[desc]);
    }
    // Sizes that do not fit are refused at the question, and at the product though others were accepted; the one after
    // it goes on.
    let desc = make("cublasLtMatmulDescCreate", &[68, 0]);
    let layout = make("cublasLtMatrixLayoutCreate", &[0, 3, 4, 3]);
    let square = make("cublasLtMatrixLayoutCreate", &[0, 2, 2, 2]);
    let (alpha, beta) = (1f32, 0f32);
    let multiply = |layout: usize, a: usize| {
        let (alpha, beta) = (at(&alpha), at(&beta));
        let slots = [handle, desc, alpha, a, layout, db, layout, beta, dd, layout, dd, layout, 0, 0, 0, 0];
        lt.call("cublasLtMatmul", &slots)
    };
    assert_eq!([multiply(square, da), multiply(layout, da), multiply(square, da)], [0, 7, 0]);
    // So is an address that does not suit the elements, though the same product at a better one was accepted.
    assert_eq!([multiply(square, da + 2), multiply(square, da)], [7, 0]);
    let wanted = [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(row, column): (usize, usize)| {
        Number((0..2).map(|l| a[l * 2 + row].0 * b[column * 2 + l].0).sum::<f64>(), 0.0)
    });
    assert_close("the product after", &S.decode(&download(dd as u64, 16)), &wanted, 1e-5);
    let preference = make("cublasLtMatmulPreferenceCreate", &[]);
    let (mut results, mut found) = ([0u8; 96], 0i32);
    let slots = [handle, desc, layout, layout, layout, layout, preference, 1, out(&mut results), out(&mut found)];
    assert_eq!(lt.call("cublasLtMatmulAlgoGetHeuristic", &slots), 7);
    lt.run("cublasLtDestroy", &[handle]);
    handle = 0;
    assert_eq!(lt.call("cublasLtDestroy", &[handle]), 1);
}

/// A product that was proposed for matrices of some alignment, and for a work space, is posted where its own are no
/// worse. Elsewhere the first one waits for cuBLASLt's answer.
fn proposed() {
    let lt = Library::load("cublaslt", 13);
    let (mut handle, memory) = (0usize, upload(&[0; 4096]) as usize);
    lt.run("cublasLtCreate", &[out(&mut handle)]);
    let make = |symbol: &str, slots: &[usize]| {
        let mut made = 0usize;
        lt.run(symbol, &[&[out(&mut made)], slots].concat());
        made
    };
    let desc = make("cublasLtMatmulDescCreate", &[68, 0]);
    let layout = make("cublasLtMatrixLayoutCreate", &[0, 7, 7, 7]);
    let preference = make("cublasLtMatmulPreferenceCreate", &[]);
    let (alignment, mut results, mut found) = (16u32, [0u8; 96], 0i32);
    lt.run("cublasLtMatmulPreferenceSetAttribute", &[preference, 5, at(&alignment), 4]);
    let question = [handle, desc, layout, layout, layout, layout, preference, 1, out(&mut results), out(&mut found)];
    lt.run("cublasLtMatmulAlgoGetHeuristic", &question);
    let (alpha, beta) = (1f32, 0f32);
    let waits = |a: usize, b: usize| {
        let matrices = [at(&alpha), memory + a, layout, memory + 1024 + b, layout, at(&beta)];
        let result = [memory + 2048, layout, memory + 2048, layout, results.as_ptr() as usize, 0, 0, 0];
        ask(&json!({ "op": "trace", "on": true }));
        lt.run("cublasLtMatmul", &[&[handle, desc][..], &matrices, &result].concat());
        ask(&json!({ "op": "trace", "on": false }))["blocking"].as_u64().expect("a number")
    };
    assert_eq!([(0, 0), (16, 0), (32, 256)].map(|(a, b)| waits(a, b)), [0; 3], "as proposed");
    assert_eq!([(8, 0), (8, 0), (24, 0)].map(|(a, b)| waits(a, b)), [1, 0, 0], "a worse left matrix");
    assert_eq!([(0, 16), (0, 16), (0, 96)].map(|(a, b)| waits(a, b)), [1, 0, 0], "a worse right matrix");
    lt.run("cublasLtMatmulPreferenceDestroy", &[preference]);
    lt.run("cublasLtMatrixLayoutDestroy", &[layout]);
    lt.run("cublasLtMatmulDescDestroy", &[desc]);
    lt.run("cublasLtDestroy", &[handle]);
}

/// What is done to a product's elements, and its slope.
fn gelu(x: f64) -> (f64, f64) {
    let root = (2.0 / std::f64::consts::PI).sqrt();
    let value = |x: f64| 0.5 * x * (1.0 + (root * (x + 0.044715 * x.powi(3))).tanh());
    let step = 1e-5;
    (value(x), (value(x + step) - value(x - step)) / (2.0 * step))
}

/// Every epilogue of cuBLASLt over both operations, in a batch of two.
fn epilogues() {
    let lt = Library::load("cublaslt", 13);
    // Rows that fill no byte of a mask; leading dimensions with gaps.
    let (m, n, k, batch) = (13usize, 5usize, 4usize, 2usize);
    let mut handle = 0usize;
    lt.run("cublasLtCreate", &[out(&mut handle)]);
    let make = |symbol: &str, slots: &[usize]| {
        let mut made = 0usize;
        lt.run(symbol, &[&[out(&mut made)], slots].concat());
        made
    };
    let layout = |rows: usize, columns: usize| {
        let layout = make("cublasLtMatrixLayoutCreate", &[0, rows, columns, rows]);
        let (count, stride) = (batch as i32, (rows * columns) as i64);
        lt.run("cublasLtMatrixLayoutSetAttribute", &[layout, 5, at(&count), 4]);
        lt.run("cublasLtMatrixLayoutSetAttribute", &[layout, 6, at(&stride), 8]);
        layout
    };
    let (a, b) = (S.random(41, m * k * batch), S.random(42, k * n * batch));
    let (da, db) = (upload(&S.encode(&a)) as usize, upload(&S.encode(&b)) as usize);
    let bias = S.random(43, m.max(n) * batch);
    let (alpha, beta) = (1.5f32, 0f32);
    const GAP: u8 = 0x5a;
    let preference = make("cublasLtMatmulPreferenceCreate", &[]);
    let set = |desc: usize, number: usize, value: i64, bytes: usize| {
        lt.run("cublasLtMatmulDescSetAttribute", &[desc, number, at(&value), bytes]);
    };
    let multiply = |desc: usize, layouts: [usize; 3], dd: usize| {
        let [la, lb, ld] = layouts;
        let (alpha, beta) = (at(&alpha), at(&beta));
        lt.call("cublasLtMatmul", &[handle, desc, alpha, da, la, db, lb, beta, dd, ld, dd, ld, 0, 0, 0, 0])
    };
    let numbers = [1u32, 2, 4, 6, 32, 36, 130, 134, 136, 152, 160, 164, 192, 208, 256, 512];
    let kinds = numbers.into_iter().flat_map(|number| (0..4u32).map(move |ops| (number, ops & 1, ops >> 1)));
    for (number, ta, tb) in kinds {
        let (masked, gradient) = (number & 10 != 0, number & 72 != 0);
        let kept = number & 128 != 0;
        // The values that came into GELU may be kept in another type.
        let aux_type = if kept && !masked && ta == 1 { D } else { S };
        let lead = if masked { 128 } else { 16 };
        let stride = lead * n + lead;
        let bytes = |elements: usize| if masked { elements / 8 } else { elements * aux_type.bytes() };
        let before: Vec<f64> = S.random(44, m * n * batch).iter().map(|x| x.0).collect();
        let mut aux = vec![GAP; bytes(stride * batch)];
        let write = |aux: &mut [u8], values: &[f64]| {
            for (index, value) in values.iter().enumerate() {
                let (row, column, matrix) = (index % m, index / m % n, index / (m * n));
                let place = matrix * stride + column * lead + row;
                if masked {
                    // The rest of a column's last byte is zero.
                    let keep = if row % 8 == 0 { 0 } else { aux[place / 8] };
                    aux[place / 8] = keep | u8::from(*value >= 0.0) << (row % 8);
                } else {
                    aux[bytes(place)..bytes(place + 1)].copy_from_slice(&aux_type.encode(&[Number(*value, 0.0)]));
                }
            }
        };
        if gradient {
            write(&mut aux, &before);
        }
        let daux = upload(&aux);
        let dbias = upload(&S.encode(&bias));
        let dd = upload(&vec![0xff; 4 * m * n * batch]) as usize;
        let desc = make("cublasLtMatmulDescCreate", &[68, 0]);
        set(desc, 3, i64::from(ta), 4);
        set(desc, 4, i64::from(tb), 4);
        set(desc, 7, i64::from(number), 4);
        let bias_stride = if number == 512 { n } else { m };
        set(desc, 8, dbias as i64, 8);
        set(desc, 10, bias_stride as i64, 8);
        if kept {
            set(desc, 11, daux as i64, 8);
            set(desc, 12, lead as i64, 8);
            set(desc, 13, stride as i64, 8);
            if aux_type == D {
                set(desc, 22, 1, 4);
            }
        }
        let layouts = [
            if ta == 1 { layout(k, m) } else { layout(m, k) },
            if tb == 1 { layout(n, k) } else { layout(k, n) },
            layout(m, n),
        ];
        assert_eq!(multiply(desc, layouts, dd), 0, "epilogue {number}: {:?}", sluice_client::message::take());
        let element_a =
            |matrix: usize, row: usize, i: usize| a[matrix * m * k + if ta == 1 { row * k + i } else { i * m + row }].0;
        let element_b = |matrix: usize, i: usize, column: usize| {
            b[matrix * k * n + if tb == 1 { i * n + column } else { column * k + i }].0
        };
        let (mut wanted, mut values, mut wanted_bias) = (Vec::new(), Vec::new(), bias.clone());
        for (index, before) in before.into_iter().enumerate() {
            let (row, column, matrix) = (index % m, index / m % n, index / (m * n));
            let mut x = (0..k).map(|i| element_a(matrix, row, i) * element_b(matrix, i, column)).sum::<f64>() * 1.5;
            if number & 4 != 0 {
                x += bias[matrix * m + row].0;
            }
            values.push(x);
            wanted.push(Number(
                match number & 106 {
                    2 => x.max(0.0),
                    8 if before >= 0.0 => x,
                    8 => 0.0,
                    32 => gelu(x).0,
                    64 => x * gelu(before).1,
                    _ => x,
                },
                0.0,
            ));
        }
        for matrix in 0..batch {
            for place in 0..bias_stride {
                let sum: f64 = match number {
                    256 => (0..k).map(|i| element_a(matrix, place, i)).sum(),
                    512 => (0..k).map(|i| element_b(matrix, i, place)).sum(),
                    152 | 208 => (0..n).map(|column| wanted[matrix * m * n + column * m + place].0).sum(),
                    _ => continue,
                };
                wanted_bias[matrix * bias_stride + place] = Number(sum, 0.0);
            }
        }
        let what = format!("epilogue {number} of operations {ta} {tb}");
        assert_close(&what, &S.decode(&download(dd as u64, 4 * m * n * batch)), &wanted, 1e-5);
        assert_close(&what, &S.decode(&download(dbias, 4 * bias.len())), &wanted_bias, 1e-5);
        let got = download(daux, aux.len());
        if kept && !gradient {
            write(&mut aux, &values);
        }
        if kept && !masked {
            let (places, got) = (0..stride * batch, aux_type.decode(&got));
            let is_gap = |place: usize| place % stride % lead >= m || place % stride >= lead * n;
            for (place, wanted) in places.zip(aux_type.decode(&aux)) {
                let near = (got[place].0 - wanted.0).abs() <= 1e-5;
                assert!(if is_gap(place) { got[place] == wanted } else { near }, "{what}: element {place}");
            }
        } else {
            assert_eq!(got, aux, "{what}");
        }
        if kept {
            // A leading dimension that does not fit is refused at the question.
            set(desc, 12, lead as i64 - 1, 8);
            let (mut results, mut found) = ([0u8; 96], 0i32);
            let [la, lb, ld] = layouts;
            let slots = [handle, desc, la, lb, ld, ld, preference, 1, out(&mut results), out(&mut found)];
            assert_eq!(lt.call("cublasLtMatmulAlgoGetHeuristic", &slots), 7, "{what}");
        }
        layouts.iter().for_each(|layout| lt.run("cublasLtMatrixLayoutDestroy", &[*layout]));
        lt.run("cublasLtMatmulDescDestroy", &[desc]);
    }
    // The defaults of what was not set.
    let desc = make("cublasLtMatmulDescCreate", &[68, 0]);
    for (number, bytes, default) in [(11, 8, 0u64), (12, 8, 0), (13, 8, 0), (22, 4, 0xffff_ffff), (26, 4, 0xffff_ffff)]
    {
        let (mut value, mut written) = (0u64, 0usize);
        lt.run("cublasLtMatmulDescGetAttribute", &[desc, number, out(&mut value), bytes, out(&mut written)]);
        assert_eq!((value, written), (default, bytes), "attribute {number}");
    }
    lt.run("cublasLtMatmulDescDestroy", &[desc]);
    lt.run("cublasLtMatmulPreferenceDestroy", &[preference]);
    lt.run("cublasLtDestroy", &[handle]);
}

/// The discrete Fourier transform by its definition, of several dimensions.
fn transform(data: &[Number], sizes: &[usize], sign: f64) -> Vec<Number> {
    let places: Vec<Vec<usize>> = (0..data.len())
        .map(|index| {
            let mut rest = index;
            let mut place: Vec<usize> = sizes.iter().rev().map(|size| (rest % size, rest /= size).0).collect();
            place.reverse();
            place
        })
        .collect();
    let term = |to: &[usize], from: &[usize]| {
        let turns: f64 = to.iter().zip(from).zip(sizes).map(|((a, b), size)| (a * b) as f64 / *size as f64).sum();
        let angle = sign * std::f64::consts::TAU * turns;
        Number(angle.cos(), angle.sin())
    };
    let sum = |to: &Vec<usize>| {
        data.iter().zip(&places).fold(Number::default(), |sum, (value, from)| sum + *value * term(to, from))
    };
    places.iter().map(sum).collect()
}

fn fourier() {
    let fft = Library::load("cufft", 12);
    let plan_of = |symbol: &str, slots: &[usize]| {
        let mut plan = 0u32;
        fft.run(symbol, &[&[out(&mut plan)], slots].concat());
        plan as usize
    };
    // One dimension, a batch of three, in place.
    let (size, batch) = (12, 3);
    let data = C.random(4, size * batch);
    let place = upload(&C.encode(&data)) as usize;
    let plan = plan_of("cufftPlan1d", &[size, 0x29, batch]);
    fft.run("cufftExecC2C", &[plan, place, place, -1i32 as usize]);
    let wanted: Vec<Number> = data.chunks(size).flat_map(|line| transform(line, &[size], -1.0)).collect();
    assert_close("C2C", &C.decode(&download(place as u64, 8 * size * batch)), &wanted, 1e-5);
    assert_eq!(fft.call("cufftExecR2C", &[plan, place, place]), 4, "the plan is of another type");
    fft.run("cufftDestroy", &[plan]);
    // Three dimensions of odd and even sizes, double.
    let sizes = [3, 4, 5];
    let data = Z.random(5, 60);
    let (from, to) = (upload(&Z.encode(&data)) as usize, upload(&[0; 960]) as usize);
    let plan = plan_of("cufftPlan3d", &[3, 4, 5, 0x69]);
    fft.run("cufftExecZ2Z", &[plan, from, to, 1]);
    assert_close("Z2Z", &Z.decode(&download(to as u64, 960)), &transform(&data, &sizes, 1.0), 1e-12);
    // Real to complex and back, by the 64-bit way that PyTorch and CuPy take.
    for (rows, columns) in [(4usize, 6usize), (3, 5)] {
        let half = columns / 2 + 1;
        let data = D.random(6, rows * columns);
        let from = upload(&D.encode(&data)) as usize;
        let middle = upload(&vec![0; 16 * rows * half]) as usize;
        let plan = plan_of("cufftCreate", &[]);
        let (n, mut bytes) = ([rows as i64, columns as i64], 0u64);
        let none = 0;
        let forward = [plan, 2, at(&n), none, 1, 1, 1, none, 1, 1, 5, 1, out(&mut bytes), 5];
        fft.run("cufftXtMakePlanMany", &forward);
        fft.run("cufftXtExec", &[plan, from, middle, -1i32 as usize]);
        let all = transform(&data, &[rows, columns], -1.0);
        let wanted: Vec<Number> = all.chunks(columns).flat_map(|row| row[..half].to_vec()).collect();
        assert_close("D2Z", &Z.decode(&download(middle as u64, 16 * rows * half)), &wanted, 1e-12);
        let plan = plan_of("cufftPlan2d", &[rows, columns, 0x6c]);
        fft.run("cufftExecZ2D", &[plan, middle, from]);
        let scale = (rows * columns) as f64;
        let wanted: Vec<Number> = data.iter().map(|value| Number(value.0 * scale, 0.0)).collect();
        assert_close("Z2D", &D.decode(&download(from as u64, 8 * rows * columns)), &wanted, 1e-12);
    }
    // A layout of its own: every second element, rows with gaps.
    let (n, embed) = ([5i32], [7i32]);
    let data = C.random(7, 32);
    let (from, to) = (upload(&C.encode(&data)) as usize, upload(&C.encode(&data)) as usize);
    let plan = plan_of("cufftPlanMany", &[1, at(&n), at(&embed), 2, 14, at(&embed), 1, 6, 0x29, 2]);
    fft.run("cufftExecC2C", &[plan, from, to, -1i32 as usize]);
    let mut wanted = data.clone();
    for batch in 0..2 {
        let line: Vec<Number> = (0..5).map(|i| data[batch * 14 + 2 * i]).collect();
        for (i, value) in transform(&line, &[5], -1.0).into_iter().enumerate() {
            wanted[batch * 6 + i] = value;
        }
    }
    assert_close("a layout", &C.decode(&download(to as u64, 256)), &wanted, 1e-5);
    let mut plan = 0u32;
    assert_eq!(fft.call("cufftPlan1d", &[out(&mut plan), 8, 0x11, 1]), 4, "there is no such type");
    assert_eq!(fft.call("cufftPlan1d", &[out(&mut plan), 0, 0x29, 1]), 8, "nothing has no transform");
    fft.run("cufftPlan1d", &[out(&mut plan), 8, 0x29, 1]);
    let forward = -1i32 as usize;
    let run = |symbol: &str, source: usize, direction: usize| fft.call(symbol, &[plan as usize, source, to, direction]);
    for _ in 0..2 {
        assert_eq!(run("cufftExecC2C", to, forward), 0);
        let wrong = [("cufftExecC2C", to, 5), ("cufftExecC2C", 0, forward), ("cufftExecZ2Z", to, forward)];
        assert!(wrong.into_iter().all(|(symbol, source, direction)| run(symbol, source, direction) == 4));
    }
    assert_eq!(fft.call("cufftExecC2C", &[plan as usize + 1000, to, to, forward]), 1, "there is no such plan");
}

fn random() {
    let library = Library::load("curand", 10);
    let mut generator = 0usize;
    library.run("curandCreateGenerator", &[out(&mut generator), 161]);
    let count = 40_000;
    let place = upload(&vec![0; 4 * count]) as usize;
    let draw = |symbol: &str, more: &[usize]| -> Vec<f64> {
        library.run(symbol, &[&[generator, place, count], more].concat());
        S.decode(&download(place as u64, 4 * count)).into_iter().map(|number| number.0).collect()
    };
    library.run("curandSetPseudoRandomGeneratorSeed", &[generator, 7]);
    let first = draw("curandGenerateUniform", &[]);
    assert!(first.iter().all(|x| *x > 0.0 && *x <= 1.0));
    assert!((first.iter().sum::<f64>() / count as f64 - 0.5).abs() < 0.01);
    let next = draw("curandGenerateUniform", &[]);
    assert_ne!(first, next);
    library.run("curandSetPseudoRandomGeneratorSeed", &[generator, 7]);
    assert_eq!(draw("curandGenerateUniform", &[]), first);
    let bits = |value: f32| value.to_bits() as usize;
    let normal = draw("curandGenerateNormal", &[bits(2.0), bits(3.0)]);
    let mean = normal.iter().sum::<f64>() / count as f64;
    let deviation = (normal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count as f64).sqrt();
    assert!((mean - 2.0).abs() < 0.1 && (deviation - 3.0).abs() < 0.1, "{mean} {deviation}");
    let odd = library.call("curandGenerateNormal", &[generator, place, 7, bits(0.0), bits(1.0)]);
    let wide = library.call("curandGenerateLongLong", &[generator, place, 8]);
    assert_eq!((odd, wide), (105, 103), "normal numbers come in pairs, and these are of 32 bits");
    library.run("curandDestroyGenerator", &[generator]);
    let mut other = 0usize;
    assert_eq!(library.call("curandCreateGenerator", &[out(&mut other), 201]), 103, "Sobol is not served");
}

/// A transform and random numbers in one graph. The plan and the generator are gone before it runs, the numbers are
/// those of the capture each time, and a launch waits for nothing.
fn captured() {
    let (fft, rand) = (Library::load("cufft", 12), Library::load("curand", 10));
    let (mut plan, mut generator, mut stream, mut graph, mut executable) = (0u32, 0usize, 0usize, 0usize, 0usize);
    let (place, drawn) = (upload(&[0; 64]), upload(&[0; 4 * 64]));
    fft.run("cufftPlan1d", &[out(&mut plan), 8, 0x29, 1]);
    rand.run("curandCreateGenerator", &[out(&mut generator), 161]);
    rand.run("curandSetPseudoRandomGeneratorSeed", &[generator, 7]);
    // SAFETY: live locals.
    unsafe {
        assert_eq!(sluice_cuStreamCreate(&raw mut stream, 1), 0);
        fft.run("cufftSetStream", &[plan as usize, stream]);
        rand.run("curandSetStream", &[generator, stream]);
        assert_eq!(sluice_cuStreamBeginCapture_v2(stream, 0), 0);
        fft.run("cufftExecC2C", &[plan as usize, place as usize, place as usize, -1i32 as usize]);
        rand.run("curandGenerateUniform", &[generator, drawn as usize, 64]);
        assert_eq!(sluice_cuStreamEndCapture(stream, &raw mut graph), 0);
        assert_eq!(sluice_cuGraphInstantiateWithFlags(&raw mut executable, graph, 0), 0);
    }
    // The next draw goes on where the captured one ended.
    let next = upload(&[0; 4 * 64]);
    rand.run("curandGenerateUniform", &[generator, next as usize, 64]);
    let next = download(next, 4 * 64);
    fft.run("cufftDestroy", &[plan as usize]);
    rand.run("curandDestroyGenerator", &[generator]);
    let mut first = Vec::new();
    for seed in 0..3 {
        let data = C.random(seed, 8);
        let bytes = C.encode(&data);
        // SAFETY: live data, and a graph made here.
        unsafe { assert_eq!(sluice_cuMemcpyHtoD_v2(place, bytes.as_ptr().cast(), bytes.len()), 0) };
        ask(&json!({ "op": "trace", "on": true }));
        // SAFETY: as above.
        unsafe { assert_eq!(sluice_cuGraphLaunch(executable, stream), 0) };
        assert_eq!(ask(&json!({ "op": "trace", "on": false }))["blocking"], 0);
        // SAFETY: as above.
        unsafe { assert_eq!(sluice_cuStreamSynchronize(stream), 0) };
        let wanted: Vec<Number> = (0..8)
            .map(|to| {
                let turn = |at: usize| -std::f64::consts::TAU * (at * to % 8) as f64 / 8.0;
                let terms = data.iter().enumerate().map(|(at, x)| *x * Number(turn(at).cos(), turn(at).sin()));
                terms.fold(Number::default(), |sum, term| sum + term)
            })
            .collect();
        assert_close("a captured transform", &C.decode(&download(place, 64)), &wanted, C.tolerance());
        let numbers = download(drawn, 4 * 64);
        assert_ne!(numbers, next);
        assert!(first.is_empty() || first == numbers, "each launch draws what was captured");
        first = numbers;
    }
    // SAFETY: as above.
    unsafe {
        assert_eq!(sluice_cuGraphExecDestroy(executable), 0);
        assert_eq!(sluice_cuGraphDestroy(graph), 0);
    }
}

/// What this server does not have is refused in the library's own words.
fn refused() {
    let dnn = Library::load("cudnn", 9);
    assert_eq!(dnn.call("cudnnBackendExecute", &[0, 0, 0]), 3000);
    let solver = Library::load("cusolver", 12);
    assert_eq!(solver.call("cusolverSpCreate", &[0]), 9);
    // NVSHMEM was never initialized, has no memory and no ranks; cuFile reads nothing, and not so many bytes.
    let shared = Library::load("nvshmem", 3);
    assert_eq!((shared.call("nvshmem_init", &[]), shared.call("nvshmemid_init_status", &[])), (3, 0));
    assert_eq!((shared.answer("nvshmem_malloc", &[64]), shared.call("nvshmem_team_my_pe", &[0]) as i32), (0, -1));
    let files = Library::load("cufile", 0);
    assert_eq!(
        (files.call("cuFileHandleRegister", &[0, 0]), files.answer("cuFileRead", &[0; 5]) as isize),
        (5007, -5007)
    );
}

/// A profiler names the result with which it was refused: PyTorch's ends in an error when it has no name.
fn results_of_cupti_have_names() {
    let cupti = Library::load("cupti", 28);
    let refused = cupti.call("cuptiActivityEnable", &[0]);
    let mut text: *const c_char = std::ptr::null();
    for (symbol, wanted) in [
        ("cuptiGetResultString", "CUPTI_ERROR_NOT_SUPPORTED"),
        ("cuptiGetErrorMessage", "a remote GPU cannot be profiled from here"),
    ] {
        cupti.run(symbol, &[refused as usize, out(&mut text)]);
        // SAFETY: the text stays.
        assert_eq!(unsafe { CStr::from_ptr(text) }.to_str(), Ok(wanted));
        assert_eq!(cupti.call(symbol, &[0, 0]), 1);
    }
}

#[test]
fn libraries_compute_what_they_should() {
    let gpud = Gpud::start("soft", &[]).expect("gpud");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    start();
    attach();
    matmul();
    proposed();
    epilogues();
    fourier();
    random();
    captured();
    refused();
    results_of_cupti_have_names();
    process::get().device(0).any_session().expect("attached").close();
}
