//! Drafts in another generation: what a program still uses is written at the new server again, with all that it was made
//! of, though the program has ended most of that.

use serde_json::{Value, json};
use sluice_client::generated::*;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{ask, attach};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::libraries::Library;
use std::sync::Arc;

const ENGINECFG: usize = 3;
const HEURISTICS: usize = 4;
const PLAN: usize = 5;
const OPERATION: usize = 13;
const GRAPH: usize = 15;
const PACK: usize = 16;
const TENSOR: usize = 17;
const HANDLE: usize = 0;
const INT64: usize = 3;
const ADDRESS: usize = 6;
const DESCRIPTOR: usize = 15;
/// CUDNN_STATUS_BAD_PARAM
const BAD_PARAM: u32 = 2000;

/// cuDNN as a program calls it.
struct Dnn(Library);

impl Dnn {
    fn create(&self, kind: usize) -> usize {
        let mut descriptor = 0usize;
        self.0.run("cudnnBackendCreateDescriptor", &[kind, (&raw mut descriptor) as usize]);
        descriptor
    }

    /// A finalized descriptor with attributes of one element: name, type and value.
    fn described(&self, kind: usize, attributes: &[(usize, usize, usize)]) -> usize {
        let descriptor = self.create(kind);
        for (name, of, value) in attributes {
            let slots = [descriptor, *name, *of, 1, (&raw const *value) as usize];
            self.0.run("cudnnBackendSetAttribute", &slots);
        }
        self.0.run("cudnnBackendFinalize", &[descriptor]);
        descriptor
    }

    fn destroy(&self, descriptor: usize) {
        self.0.run("cudnnBackendDestroyDescriptor", &[descriptor]);
    }

    fn with_pack<T>(&self, body: impl FnOnce(usize) -> T) -> T {
        let factor = 1f32;
        let pack = self.described(PACK, &[(1001, ADDRESS, (&raw const factor) as usize)]);
        let answer = body(pack);
        self.destroy(pack);
        answer
    }

    fn execute(&self, handle: usize, plan: usize) {
        self.with_pack(|pack| self.0.run("cudnnBackendExecute", &[handle, plan, pack]));
    }

    /// A plan as a program's own graph, as XLA has it: a child of another one, with other addresses at each launch.
    fn execute_as_a_graph(&self, handle: usize, plan: usize) {
        let call =
            |function: &str, graph: usize| self.with_pack(|pack| self.0.call(function, &[handle, plan, pack, graph]));
        let (mut own, mut outer, mut node, mut exec) = (0, 0, 0, 0);
        // SAFETY: live locals, and handles of this process.
        unsafe {
            assert_eq!((sluice_cuGraphCreate(&raw mut own, 0), sluice_cuGraphCreate(&raw mut outer, 0)), (0, 0));
            assert_eq!(call("cudnnBackendUpdateCudaGraph", own), BAD_PARAM, "nothing is there yet");
            assert_eq!(call("cudnnBackendPopulateCudaGraph", own), 0);
            assert_eq!(call("cudnnBackendPopulateCudaGraph", own), BAD_PARAM, "it has been made");
            assert_eq!(call("cudnnBackendPopulateCudaGraph", 1), BAD_PARAM, "no graph");
            let mut count = 0;
            assert_eq!(sluice_cuGraphGetNodes(own, std::ptr::null_mut(), &raw mut count), 0);
            assert_eq!(count, 1);
            let after = std::ptr::null();
            assert_eq!(sluice_cuGraphAddChildGraphNode(&raw mut node, outer, after, 0, own), 0);
            assert_eq!(sluice_cuGraphInstantiateWithFlags(&raw mut exec, outer, 0), 0);
            assert_eq!(sluice_cuGraphLaunch(exec, 0), 0);
            assert_eq!(call("cudnnBackendUpdateCudaGraph", own), 0);
            assert_eq!(sluice_cuGraphExecChildGraphNodeSetParams(exec, node, own), 0);
            assert_eq!(sluice_cuGraphLaunch(exec, 0), 0);
            assert_eq!(sluice_cuCtxSynchronize(), 0);
            assert_eq!(sluice_cuGraphExecDestroy(exec), 0);
            assert_eq!((sluice_cuGraphDestroy(outer), sluice_cuGraphDestroy(own)), (0, 0));
        }
    }
}

/// What a recurrent network's descriptor was told, it answers: its dropout by the program's own handle.
fn asked_for_a_network(dnn: &Library) {
    let (mut network, mut dropout) = (0usize, 0usize);
    dnn.run("cudnnCreateRNNDescriptor", &[(&raw mut network) as usize]);
    dnn.run("cudnnCreateDropoutDescriptor", &[(&raw mut dropout) as usize]);
    let said = [1, 2, 3, 1, 0, 2, 0, 1, 64, 32, 16, 3, dropout, 1];
    let (mut told, mut handle) = ([0u32; 14], 0usize);
    let mut places: Vec<usize> = told.iter_mut().map(|place| std::ptr::from_mut(place) as usize).collect();
    places[12] = (&raw mut handle) as usize;
    let slots = [&[network][..], &places].concat();
    assert_eq!(dnn.call("cudnnGetRNNDescriptor_v8", &slots), BAD_PARAM, "nothing was said yet");
    dnn.run("cudnnSetRNNDescriptor_v8", &[&[network][..], &said].concat());
    dnn.run("cudnnGetRNNDescriptor_v8", &slots);
    told[12] = dropout as u32;
    assert_eq!((told.map(|value| value as usize), handle), (said.map(|value| value & 0xffff_ffff), dropout));
    dnn.run("cudnnDestroyRNNDescriptor", &[network]);
    dnn.run("cudnnDestroyDropoutDescriptor", &[dropout]);
}

#[test]
fn a_plan_is_made_again_with_all_that_it_was_made_of() {
    let file = std::env::temp_dir().join(format!("sluice-drafts-{}.jsonl", std::process::id()));
    let gpud = Gpud::start("null", &["--recording", &file.display().to_string()]).expect("gpud");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    attach();
    let mut context = 0;
    // SAFETY: a live local.
    unsafe {
        assert_eq!(sluice_cuInit(0), 0);
        assert_eq!(sluice_cuDevicePrimaryCtxRetain(&raw mut context, 0), 0);
        assert_eq!(sluice_cuCtxSetCurrent(context), 0);
    }
    let dnn = Dnn(Library::load("cudnn", 9));
    let mut handle = 0usize;
    dnn.0.run("cudnnCreate", &[(&raw mut handle) as usize]);
    asked_for_a_network(&dnn.0);
    let tensor = dnn.described(TENSOR, &[(906, INT64, 1)]);
    let operation = dnn.described(OPERATION, &[(751, DESCRIPTOR, tensor)]);
    let graph = dnn.described(GRAPH, &[(800, HANDLE, handle), (801, DESCRIPTOR, operation)]);
    let heuristics = dnn.described(HEURISTICS, &[(201, DESCRIPTOR, graph)]);
    let (mut count, configs) = (0i64, [dnn.create(ENGINECFG), dnn.create(ENGINECFG)]);
    let question = [heuristics, 202, DESCRIPTOR, 2, (&raw mut count) as usize, configs.as_ptr() as usize];
    dnn.0.run("cudnnBackendGetAttribute", &question);
    let plan = dnn.described(PLAN, &[(400, HANDLE, handle), (401, DESCRIPTOR, configs[0])]);
    [tensor, operation, graph, heuristics, configs[0], configs[1]].iter().for_each(|gone| dnn.destroy(*gone));
    dnn.execute(handle, plan);
    dnn.execute_as_a_graph(handle, plan);

    ask(&json!({ "op": "detach" }));
    attach();
    dnn.execute(handle, plan);
    ask(&json!({ "op": "detach" }));
    let recording = std::fs::read_to_string(&file).expect("a recording");
    let _ = std::fs::remove_file(&file);
    let calls: Vec<(String, bool)> = recording
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|line| Some((line["call"].as_str()?.to_owned(), line["blocking"] == true)))
        .collect();
    let kept = calls.iter().filter(|(call, _)| call == "record cudnnBackendExecute").count();
    let forgotten = calls.iter().filter(|(call, _)| call == "forget-library").count();
    assert_eq!((kept, forgotten), (2, 2), "one for the graph as it was made, one for it as it was changed");
    let again = calls.iter().rposition(|(call, _)| call.starts_with("open-library")).expect("opened twice");
    let wanted = "Create Set Create Create Create Set Create Create Set Finalize Set Finalize Set Finalize Set Finalize \
                  Create Get Destroy Set Finalize Create Set Finalize Execute Destroy";
    let short = |call: &str| call.replace("cudnnBackend", "").replace("Descriptor", "").replace("Attribute", "");
    let made: Vec<String> =
        calls[again..].iter().filter(|(call, _)| call.contains("Backend")).map(|(call, _)| short(call)).collect();
    assert_eq!(made.join(" "), wanted);
    let of_cudnn = calls[again..].iter().filter(|(call, waits)| *waits && call.starts_with("cudnn"));
    let waited: Vec<&str> = of_cudnn.map(|(call, _)| call.as_str()).collect();
    assert_eq!(waited, ["cudnnCreate", "cudnnBackendExecute"]);
}
