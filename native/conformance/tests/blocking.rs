//! Blocking round trips of training and inference in PyTorch, without PyTorch: `recorded/` holds the calls of one
//! steady iteration of each program in `bench/remoting` (made by its `record.py`), which are repeated here against the
//! null backend. In steady state a program waits where it reads results, and nowhere else.

use serde_json::{Value, json};
use sluice_client::generated::*;
use sluice_client::runtime::generated::*;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{add, ask, attach, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::libraries::Library;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;

/// Name, calls, blocking calls of a steady iteration, and at most so many of the first and of the second.
///
/// In the first each has its cause: the module of a kernel that is used first (asked for and loaded), a library and its
/// handle, the first product with its choices and a proposal for each description of one, and memory (the credit
/// grows). In the second: the first question about an event.
const PROGRAMS: [(&str, &str, u64, [u64; 2]); 3] = [
    ("gpt", include_str!("../recorded/gpt.txt"), 1, [27, 1]),
    ("mlp", include_str!("../recorded/mlp.txt"), 1, [7, 1]),
    ("inference", include_str!("../recorded/inference.txt"), 0, [3, 1]),
];
const ITERATIONS: usize = 6;

const ARENA: usize = 32 << 20;
/// CUDA_SUCCESS and CUDA_ERROR_NOT_READY.
const READY: [u32; 2] = [0, 600];
/// cudaEventDisableTiming
const NO_TIMING: u32 = 2;

fn at<T>(data: &T) -> usize {
    std::ptr::from_ref(data) as usize
}

fn out<T>(data: &mut T) -> usize {
    std::ptr::from_mut(data) as usize
}

fn run(code: u32) {
    assert_eq!(code, 0, "{:?}", sluice_client::message::take());
}

/// What the calls work on: memory, a kernel, library handles, and events as PyTorch's allocator keeps them.
struct Replay {
    kernel: usize,
    arena: u64,
    host: Vec<u8>,
    blas: (Library, usize),
    lt: Library,
    iteration: u64,
    /// Recorded and not yet known to be passed, oldest first; and free ones.
    events: (VecDeque<usize>, Vec<usize>),
}

impl Replay {
    fn new(kernel: usize) -> Self {
        let (mut arena, mut handle) = (0, 0usize);
        // SAFETY: a live local.
        run(unsafe { sluice_cudaMalloc(&raw mut arena, ARENA) });
        let (blas, lt) = (Library::load("cublas", 13), Library::load("cublaslt", 13));
        blas.run("cublasCreate_v2", &[out(&mut handle)]);
        Self {
            kernel,
            arena,
            host: vec![0; 1 << 20],
            blas: (blas, handle),
            lt,
            iteration: 0,
            events: Default::default(),
        }
    }

    /// One line of the recorded calls.
    fn call(&mut self, line: &str, index: usize) {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers: Vec<usize> = words[1..].iter().map(|word| word.parse().expect("a number")).collect();
        let (mut device, mut state, mut memory, mut attributes) = (0i32, 0u32, 0u64, [0u64; 32]);
        let host = self.host.as_mut_ptr();
        // SAFETY: live locals, memory of the test's own that is large enough for every recorded copy.
        unsafe {
            match (words[0], &numbers[..]) {
                ("cudaGetDevice", []) => run(sluice_cudaGetDevice(&raw mut device)),
                // Programs take the word that an event was not passed yet out of the way with it.
                ("cudaGetLastError", []) => assert!(READY.contains(&sluice_cudaGetLastError())),
                ("cudaStreamIsCapturing", []) => run(sluice_cudaStreamIsCapturing(0, &raw mut state)),
                // The runtime asks the driver, which knows it from the module.
                ("cudaFuncGetAttributes", []) => run(sluice_cuFuncGetAttribute(&raw mut device, 0, self.kernel)),
                ("cudaPointerGetAttributes", []) => {
                    run(sluice_cudaPointerGetAttributes_13(attributes.as_mut_ptr().cast(), host as u64));
                }
                ("cudaMalloc", [bytes]) => run(sluice_cudaMalloc(&raw mut memory, *bytes)),
                ("cudaHostAlloc", [bytes]) => {
                    let mut pinned: *mut c_void = std::ptr::null_mut();
                    run(sluice_cudaHostAlloc(&raw mut pinned, *bytes, 0));
                }
                ("to", [bytes]) => run(sluice_cudaMemcpyAsync(self.arena, host as u64, *bytes, 1, 0)),
                ("from", [bytes]) => run(sluice_cudaMemcpyAsync(host as u64, self.arena, *bytes, 2, 0)),
                ("fill", [bytes]) => run(sluice_cudaMemsetAsync(self.arena, 0, *bytes, 0)),
                ("launch", []) => run(add(self.kernel, self.arena, 128, 1)),
                ("cudaStreamSynchronize", []) => run(sluice_cudaStreamSynchronize(0)),
                ("cudaEventQuery", []) => self.look_at_oldest_event(),
                ("record", []) => self.record_event(),
                ("linear", &[m, n, k]) => self.linear(m, n, k, index),
                ("product", &[left, right, m, n, k]) => self.product([left, right], m, n, k),
                _ => panic!("{line}: record.py writes no such line"),
            }
        }
    }

    fn look_at_oldest_event(&mut self) {
        let Some(oldest) = self.events.0.front().copied() else { return };
        // SAFETY: no pointers.
        let code = unsafe { sluice_cudaEventQuery(oldest) };
        assert!(READY.contains(&code), "{code}");
        if code == 0 {
            self.events.0.pop_front();
            self.events.1.push(oldest);
        }
    }

    fn record_event(&mut self) {
        let event = self.events.1.pop().unwrap_or_else(|| {
            let mut event = 0;
            // SAFETY: a live local.
            run(unsafe { sluice_cudaEventCreateWithFlags(&raw mut event, NO_TIMING) });
            event
        });
        // SAFETY: no pointers.
        run(unsafe { sluice_cudaEventRecordWithFlags(event, 0, 0) });
        self.events.0.push_back(event);
    }

    /// `aᵀ b + bias` as PyTorch's linear layer asks cuBLASLt for it, each layer with a bias of its own. With mixed precision
    /// that is a copy, which lies elsewhere in each iteration.
    fn linear(&self, m: usize, n: usize, k: usize, index: usize) {
        let (lt, handle, memory) = (&self.lt, self.blas.1, self.arena as usize);
        let make = |symbol: &str, slots: &[usize]| {
            let mut made = 0usize;
            lt.run(symbol, &[&[out(&mut made)], slots].concat());
            made
        };
        let (turned, straight, epilogue, bias) =
            (1u32, 0u32, 4u32, self.arena + 4096 * index as u64 + 256 * self.iteration);
        let (workspace, aligned, one, zero) = (0u64, 256u32, 1f32, 0f32);
        let preference = make("cublasLtMatmulPreferenceCreate", &[]);
        let desc = make("cublasLtMatmulDescCreate", &[68, 0]);
        for (number, value) in [(3, &turned), (4, &straight), (7, &epilogue)] {
            lt.run("cublasLtMatmulDescSetAttribute", &[desc, number, at(value), 4]);
        }
        lt.run("cublasLtMatmulDescSetAttribute", &[desc, 8, at(&bias), 8]);
        let layouts = [[k, m, k], [k, n, k], [m, n, m]]
            .map(|[rows, columns, lead]| make("cublasLtMatrixLayoutCreate", &[0, rows, columns, lead]));
        lt.run("cublasLtMatmulPreferenceSetAttribute", &[preference, 1, at(&workspace), 8]);
        for number in 5..9 {
            lt.run("cublasLtMatmulPreferenceSetAttribute", &[preference, number, at(&aligned), 4]);
        }
        let ([a, b, d], mut results, mut found) = (layouts, [0u8; 96], 0i32);
        let proposal = [handle, desc, a, b, d, d, preference, 1, out(&mut results), out(&mut found)];
        lt.run("cublasLtMatmulAlgoGetHeuristic", &proposal);
        let matrices = [at(&one), memory, a, memory, b, at(&zero), memory, d, memory, d];
        let last = [at(&results), memory, 0, 0];
        lt.run("cublasLtMatmul", &[&[handle, desc][..], &matrices, &last].concat());
        layouts.iter().rev().for_each(|layout| lt.run("cublasLtMatrixLayoutDestroy", &[*layout]));
        lt.run("cublasLtMatmulDescDestroy", &[desc]);
        lt.run("cublasLtMatmulPreferenceDestroy", &[preference]);
    }

    /// A product of matrices as PyTorch asks cuBLAS for it: stream, work space and mode are set each time.
    fn product(&self, turned: [usize; 2], m: usize, n: usize, k: usize) {
        let ((blas, handle), memory) = (self.blas, self.arena as usize);
        let (one, zero) = (1f32, 0f32);
        blas.run("cublasSetStream_v2", &[handle, 0]);
        blas.run("cublasSetWorkspace_v2", &[handle, memory, 8 << 20]);
        blas.run("cublasSetMathMode", &[handle, 0]);
        let leads = [if turned[0] == 0 { m } else { k }, if turned[1] == 0 { k } else { n }];
        let matrices = [at(&one), memory, leads[0], memory, leads[1], at(&zero), memory, m];
        blas.run("cublasSgemm_v2", &[&[handle, turned[0], turned[1], m, n, k][..], &matrices].concat());
    }
}

/// The blocking calls of one iteration.
fn iterate(replay: &mut Replay, calls: &str) -> (u64, Value) {
    replay.iteration += 1;
    ask(&json!({ "op": "trace", "on": true }));
    for (index, line) in calls.lines().filter(|line| !line.starts_with('#')).enumerate() {
        let (call, count) = line.rsplit_once(" x").unwrap_or((line, "1"));
        (0..count.parse().expect("a number")).for_each(|_| replay.call(call, index));
    }
    let mut trace = ask(&json!({ "op": "trace", "on": false }));
    let calls = trace["calls"].as_array_mut().expect("a list");
    calls.retain(|call| call["blocking"] == true);
    (trace["blocking"].as_u64().expect("a number"), trace["calls"].take())
}

#[test]
fn steady_iterations_wait_only_where_they_read_results() {
    let gpud = Gpud::start("null", &[]).expect("gpud");
    let broker = Broker::start(Arc::new(gpud), 1 << 30).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    let kernel = start();
    attach();
    for (name, calls, steady, most) in PROGRAMS {
        let mut replay = Replay::new(kernel);
        for iteration in 0..ITERATIONS {
            let (blocking, which) = iterate(&mut replay, calls);
            match most.get(iteration) {
                Some(most) => assert!(blocking <= *most, "{name}, iteration {}: {which:#}", iteration + 1),
                None => assert_eq!(blocking, steady, "{name}, iteration {}: {which:#}", iteration + 1),
            }
        }
    }
}
