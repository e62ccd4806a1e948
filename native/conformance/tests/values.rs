//! What calls of cuBLASLt, cuDNN and NCCL carry: each number, address and piece of memory that the program gave arrives at
//! the recording backend in its place.

use serde_json::Value;
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{attach, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::libraries::{Library, download, upload};
use std::sync::Arc;

/// CUDA_R_32F, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUBLAS_OP_T
const R_32F: usize = 0;
const R_16BF: usize = 14;
const COMPUTE_32F: usize = 68;
const OP_T: u32 = 1;

fn at<T>(value: &T) -> usize {
    std::ptr::from_ref(value) as usize
}

/// Where a call writes.
fn place<T>(value: &mut T) -> usize {
    std::ptr::from_mut(value) as usize
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn ints(values: &[i32]) -> String {
    format!("in {}", hex(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>()))
}

fn word(value: impl TryInto<u64>) -> String {
    format!("word {}", value.try_into().unwrap_or(u64::MAX))
}

/// The recorded calls of libraries, with their arguments.
struct Recording(Vec<(String, Vec<Value>)>);

impl Recording {
    /// The arguments of the only call of this function.
    fn only(&self, function: &str) -> &[Value] {
        let mut found = self.0.iter().filter(|(call, _)| call == function);
        let (_, arguments) = found.next().unwrap_or_else(|| panic!("{function} did not travel: {:?}", self.0));
        assert!(found.next().is_none(), "{function} travelled twice");
        arguments
    }

    /// The object that a function made.
    fn made(&self, function: &str) -> String {
        let number = self.only(function).iter().find_map(|argument| argument.as_str()?.strip_prefix("new "));
        format!("object {}", number.unwrap_or_else(|| panic!("{function} made nothing")))
    }

    fn is(&self, function: &str, wanted: &[&str]) {
        assert_eq!(self.only(function), wanted, "{function}");
    }
}

/// A product of 7 x 5 and 5 x 3 in bfloat16 with a work space, as PyTorch asks for it.
fn products(device: u64, stream: usize) -> impl FnOnce(&Recording) {
    let lt = Library::load("cublaslt", 13);
    let (mut handle, mut desc, mut layouts) = (0usize, 0usize, [0usize; 3]);
    lt.run("cublasLtCreate", &[place(&mut handle)]);
    lt.run("cublasLtMatmulDescCreate", &[place(&mut desc), COMPUTE_32F, R_32F]);
    // CUBLASLT_MATMUL_DESC_TRANSA
    lt.run("cublasLtMatmulDescSetAttribute", &[desc, 3, at(&OP_T), 4]);
    for (layout, [rows, columns, leading]) in layouts.iter_mut().zip([[5, 7, 6], [5, 3, 5], [7, 3, 8]]) {
        lt.run("cublasLtMatrixLayoutCreate", &[place(layout), R_16BF, rows, columns, leading]);
    }
    let algorithm: Vec<u8> = (1..=64).collect();
    let (alpha, beta) = (1.5f32, -0.25f32);
    let [a, b, c, work] = [0u64, 512, 1024, 2048].map(|offset| device + offset);
    let slots = [
        handle,
        desc,
        at(&alpha),
        a as usize,
        layouts[0],
        b as usize,
        layouts[1],
        at(&beta),
        c as usize,
        layouts[2],
        c as usize,
        layouts[2],
        algorithm.as_ptr() as usize,
        work as usize,
        1 << 10,
        stream,
    ];
    lt.run("cublasLtMatmul", &slots);
    move |recording| {
        let desc = recording.made("cublasLtMatmulDescCreate");
        let made = |arguments: &[Value]| -> Vec<String> {
            arguments.iter().filter_map(|argument| Some(argument.as_str()?.to_owned())).collect()
        };
        assert_eq!(made(recording.only("cublasLtMatmulDescCreate"))[1..], [word(COMPUTE_32F), word(R_32F)]);
        let attribute = [desc.as_str(), "word 3", "in 01000000", "word 4"];
        recording.is("cublasLtMatmulDescSetAttribute", &attribute);
        let layouts: Vec<Vec<String>> = recording
            .0
            .iter()
            .filter(|(call, _)| call == "cublasLtMatrixLayoutCreate")
            .map(|(_, arguments)| made(arguments))
            .collect();
        let shapes: Vec<&[String]> = layouts.iter().map(|layout| &layout[1..]).collect();
        let wanted = [[5, 7, 6], [5, 3, 5], [7, 3, 8]]
            .map(|shape| [vec![word(R_16BF)], shape.iter().map(|size| word(*size as u64)).collect()].concat());
        assert_eq!(shapes, wanted);
        let layout = |index: usize| layouts[index][0].replacen("new", "object", 1);
        let wanted = [
            recording.made("cublasLtCreate"),
            desc,
            format!("in {}", hex(&alpha.to_le_bytes())),
            word(a),
            layout(0),
            word(b),
            layout(1),
            format!("in {}", hex(&beta.to_le_bytes())),
            word(c),
            layout(2),
            word(c),
            layout(2),
            format!("in {}", hex(&algorithm)),
            word(work),
            word(1u64 << 10),
            format!("stream {stream}"),
        ];
        recording.is("cublasLtMatmul", &wanted.each_ref().map(String::as_str));
    }
}

/// A convolution whose image is in double precision, so that its scalars are of eight bytes; and an attribute of a graph.
fn convolutions(device: u64) -> impl FnOnce(&Recording) {
    let dnn = Library::load("cudnn", 9);
    let (mut handle, mut image, mut filter, mut convolution, mut tensor) = (0usize, 0usize, 0usize, 0usize, 0usize);
    dnn.run("cudnnCreate", &[place(&mut handle)]);
    dnn.run("cudnnCreateTensorDescriptor", &[place(&mut image)]);
    let (dims, strides) = ([2i32, 3, 16, -1], [768i32, 256, 16, 1]);
    let (padding, steps, dilation) = ([1i32, 2], [3i32, 4], [5i32, 6]);
    // CUDNN_DATA_DOUBLE is 1.
    dnn.run("cudnnSetTensorNdDescriptor", &[image, 1, 4, dims.as_ptr() as usize, strides.as_ptr() as usize]);
    dnn.run("cudnnCreateFilterDescriptor", &[place(&mut filter)]);
    dnn.run("cudnnSetFilter4dDescriptor", &[filter, 1, 0, 8, 3, 5, 7]);
    dnn.run("cudnnCreateConvolutionDescriptor", &[place(&mut convolution)]);
    let lists = [padding, steps, dilation].map(Box::new);
    let [padding_at, steps_at, dilation_at] = lists.each_ref().map(|list| list.as_ptr() as usize);
    dnn.run("cudnnSetConvolutionNdDescriptor", &[convolution, 2, padding_at, steps_at, dilation_at, 1, 1]);
    let (alpha, beta) = (2.5f64, -1e300f64);
    let [x, w, y, work] = [0u64, 256, 768, 4096].map(|offset| device + offset);
    let slots = [
        handle,
        at(&alpha),
        image,
        x as usize,
        filter,
        w as usize,
        convolution,
        6,
        work as usize,
        0x1_0000_0001,
        at(&beta),
        image,
        y as usize,
    ];
    dnn.run("cudnnConvolutionForward", &slots);
    // CUDNN_BACKEND_TENSOR_DESCRIPTOR, _TENSOR_DIMENSIONS, CUDNN_TYPE_INT64
    dnn.run("cudnnBackendCreateDescriptor", &[17, place(&mut tensor)]);
    let shape = [7i64, -1, 1 << 40];
    dnn.run("cudnnBackendSetAttribute", &[tensor, 901, 3, 3, shape.as_ptr() as usize]);
    dnn.run("cudnnBackendFinalize", &[tensor]);
    move |recording| {
        let handle = recording.made("cudnnCreate");
        let image = recording.made("cudnnCreateTensorDescriptor");
        let filter = recording.made("cudnnCreateFilterDescriptor");
        let convolution = recording.made("cudnnCreateConvolutionDescriptor");
        let wanted = [image.as_str(), "word 1", "word 4", &ints(&dims), &ints(&strides)];
        recording.is("cudnnSetTensorNdDescriptor", &wanted);
        let wanted = [filter.as_str(), "word 1", "word 0", "word 8", "word 3", "word 5", "word 7"];
        recording.is("cudnnSetFilter4dDescriptor", &wanted);
        let (padding, steps, dilation) = (ints(&padding), ints(&steps), ints(&dilation));
        let wanted = [convolution.as_str(), "word 2", &padding, &steps, &dilation, "word 1", "word 1"];
        recording.is("cudnnSetConvolutionNdDescriptor", &wanted);
        let wanted = [
            handle,
            format!("in {}", hex(&alpha.to_le_bytes())),
            image.clone(),
            word(x),
            filter,
            word(w),
            convolution,
            word(6u64),
            word(work),
            word(0x1_0000_0001u64),
            format!("in {}", hex(&beta.to_le_bytes())),
            image,
            word(y),
        ];
        recording.is("cudnnConvolutionForward", &wanted.each_ref().map(String::as_str));
        let tensor = recording.made("cudnnBackendCreateDescriptor");
        let shape: Vec<u8> = shape.iter().flat_map(|size| size.to_le_bytes()).collect();
        let shape = format!("in {}", hex(&shape));
        recording.is("cudnnBackendSetAttribute", &[&tensor, "word 901", "word 3", "word 3", &shape]);
        recording.is("cudnnBackendFinalize", &[&tensor]);
    }
}

/// Calls of one group travel as one, in their order.
fn collectives(device: u64, stream: usize) -> impl FnOnce(&Recording) {
    const FLOAT: usize = 7;
    const HALF: usize = 6;
    let nccl = Library::load("nccl", 2);
    let id: [u8; 128] = std::array::from_fn(|at| at as u8);
    let mut comm = 0usize;
    nccl.run("ncclCommInitRank", &[place(&mut comm), 1, id.as_ptr() as usize, 0]);
    let [a, b] = [device, device + 4096];
    nccl.run("ncclGroupStart", &[]);
    nccl.run("ncclAllReduce", &[a as usize, b as usize, 1000, FLOAT, 2, comm, stream]);
    nccl.run("ncclBroadcast", &[b as usize, a as usize, 0x2_0000_0003, HALF, 0, comm, 0]);
    nccl.run("ncclSend", &[a as usize, 17, FLOAT, 0, comm, stream]);
    nccl.run("ncclGroupEnd", &[]);
    move |recording| {
        let ends: Vec<&[Value]> =
            recording.0.iter().filter(|(call, _)| call == "ncclGroupEnd").map(|(_, calls)| &calls[..]).collect();
        let [joined, group] = ends.as_slice() else { panic!("not two groups: {ends:?}") };
        let join = &joined[0][0];
        assert_eq!(join[0], "ncclCommInitRank");
        let number = join[1][0].as_str().and_then(|text| text.strip_prefix("new ")).expect("a communicator");
        assert_eq!([&join[1][1], &join[1][2]], [&word(1u64), &format!("block {}", hex(&id))]);
        let (comm, own, none) = (format!("object {number}"), format!("stream {stream}"), "stream 0".to_owned());
        let wanted = [
            (
                "ncclAllReduce",
                vec![word(a), word(b), word(1000u64), word(FLOAT), word(2u64), comm.clone(), own.clone()],
            ),
            (
                "ncclBroadcast",
                vec![word(b), word(a), word(0x2_0000_0003u64), word(HALF), word(0u64), comm.clone(), none],
            ),
            ("ncclSend", vec![word(a), word(17u64), word(FLOAT), word(0u64), comm, own]),
        ];
        assert_eq!(group[0].as_array().map(Vec::len), Some(3), "{group:?}");
        for (call, (name, arguments)) in group[0].as_array().into_iter().flatten().zip(wanted) {
            assert_eq!(call[0], name);
            assert_eq!(call[1], Value::from(arguments), "{name}");
        }
    }
}

#[test]
fn what_a_call_carries_arrives_in_its_place() {
    let file = std::env::temp_dir().join(format!("sluice-values-{}.jsonl", std::process::id()));
    let gpud = Gpud::start("null", &["--recording", &file.display().to_string()]).expect("gpud");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    start();
    attach();
    let device = upload(&[0; 1 << 16]);
    let mut stream = 0usize;
    // SAFETY: a live local.
    assert_eq!(unsafe { sluice_client::generated::sluice_cuStreamCreate(&raw mut stream, 1) }, 0);
    let products = products(device, stream);
    let convolutions = convolutions(device);
    let collectives = collectives(device, stream);
    // All that was posted has arrived when this answers.
    download(device, 8);
    process::get().device(0).any_session().expect("attached").close();
    let recorded = std::fs::read_to_string(&file).expect("a recording");
    let _ = std::fs::remove_file(&file);
    let lines = recorded.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let calls =
        lines.filter_map(|line| Some((line["call"].as_str()?.to_owned(), line["arguments"].as_array()?.clone())));
    let recording = Recording(calls.collect());
    products(&recording);
    convolutions(&recording);
    collectives(&recording);
}
