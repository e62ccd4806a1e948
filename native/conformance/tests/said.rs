//! What a program says of a library's objects decides whether a call is accepted, and what the answer to a question is:
//! work with other shapes waits once for the library's word, and a question is asked anew when what it is about has
//! changed. Where anything lies decides nothing.

use serde_json::{Value, json};
use sluice_client::generated::{
    sluice_cuCtxSetCurrent, sluice_cuDevicePrimaryCtxRetain, sluice_cuInit, sluice_cuMemAlloc_v2,
};
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{ask, attach};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::libraries::Library;
use std::sync::Arc;

const FLOAT: usize = 0;

fn made(library: &Library, function: &str) -> usize {
    let mut object = 0usize;
    library.run(function, &[(&raw mut object) as usize]);
    object
}

/// Convolutions: of one shape twice, of another, of the first again.
fn convolve(dnn: &Library, memory: usize) {
    let handle = made(dnn, "cudnnCreate");
    let [x, y] = [(); 2].map(|()| made(dnn, "cudnnCreateTensorDescriptor"));
    let w = made(dnn, "cudnnCreateFilterDescriptor");
    let convolution = made(dnn, "cudnnCreateConvolutionDescriptor");
    dnn.run("cudnnSetFilter4dDescriptor", &[w, FLOAT, 0, 8, 8, 3, 3]);
    dnn.run("cudnnSetConvolution2dDescriptor", &[convolution, 1, 1, 1, 1, 1, 1, 1, FLOAT]);
    let (one, zero) = (1f32, 0f32);
    let convolve = |width: usize, at: usize| {
        for tensor in [x, y] {
            dnn.run("cudnnSetTensor4dDescriptor", &[tensor, 0, FLOAT, 1, 8, 16, width]);
        }
        let [alpha, beta] = [&raw const one, &raw const zero].map(|scalar| scalar as usize);
        let slots = [handle, alpha, x, at, w, memory, convolution, 1, 0, 0, beta, y, at];
        dnn.run("cudnnConvolutionForward", &slots);
    };
    for (width, at) in [(16, 0), (16, 256), (32, 256), (16, 512), (32, 0)] {
        convolve(width, memory + at);
    }
}

/// The size of a buffer, for a matrix that is moved, and becomes one of several.
fn ask_for_sizes(sparse: &Library, memory: usize) {
    let handle = made(sparse, "cusparseCreate");
    let (mut a, mut b, mut c) = (0usize, 0usize, 0usize);
    let csr = [64, 64, 128, memory, memory, memory, 2, 2, 0, FLOAT];
    sparse.run("cusparseCreateCsr", &[&[(&raw mut a) as usize][..], &csr].concat());
    for dense in [&mut b, &mut c] {
        sparse.run("cusparseCreateDnMat", &[std::ptr::from_mut(dense) as usize, 64, 8, 64, memory, FLOAT, 1]);
    }
    let (one, mut bytes) = (1f32, 0usize);
    let scalar = (&raw const one) as usize;
    let mut size = || {
        let slots = [handle, 0, 0, scalar, a, b, scalar, c, FLOAT, 0, (&raw mut bytes) as usize];
        sparse.run("cusparseSpMM_bufferSize", &slots);
    };
    size();
    size();
    sparse.run("cusparseCsrSetPointers", &[a, memory + 256, memory + 256, memory + 256]);
    size();
    sparse.run("cusparseCsrSetStridedBatch", &[a, 4, 64, 128]);
    size();
    size();
}

#[test]
fn what_is_said_of_objects_decides_and_not_where_they_lie() {
    let file = std::env::temp_dir().join(format!("sluice-said-{}.jsonl", std::process::id()));
    let gpud = Gpud::start("null", &["--recording", &file.display().to_string()]).expect("gpud");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    attach();
    let (mut context, mut memory) = (0, 0);
    // SAFETY: live locals.
    unsafe {
        assert_eq!(sluice_cuInit(0), 0);
        assert_eq!(sluice_cuDevicePrimaryCtxRetain(&raw mut context, 0), 0);
        assert_eq!(sluice_cuCtxSetCurrent(context), 0);
        assert_eq!(sluice_cuMemAlloc_v2(&raw mut memory, 1 << 20), 0);
    }
    convolve(&Library::load("cudnn", 9), memory as usize);
    ask_for_sizes(&Library::load("cusparse", 12), memory as usize);
    ask(&json!({ "op": "detach" }));
    let recording = std::fs::read_to_string(&file).expect("a recording");
    let _ = std::fs::remove_file(&file);
    let lines = recording.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let calls: Vec<(String, bool)> =
        lines.filter_map(|line| Some((line["call"].as_str()?.to_owned(), line["blocking"] == true))).collect();
    let waits = |name: &str| calls.iter().filter(|(call, _)| call == name).map(|(_, waits)| *waits).collect::<Vec<_>>();
    assert_eq!(waits("cudnnConvolutionForward"), [true, false, true, false, false]);
    assert_eq!(waits("cusparseSpMM_bufferSize"), [true, true], "asked once, and again for several matrices");
}
