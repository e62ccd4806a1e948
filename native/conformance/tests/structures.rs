//! Structures of cuSPARSELt's in another generation: what a program still uses is made at the new server again, after what
//! it was made of, though the program has ended that.

use serde_json::{Value, json};
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{ask, attach, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::libraries::{Library, upload};
use std::sync::Arc;

/// An object as programs hold it.
type Structure = [u64; 64];

fn place(structure: &mut Structure) -> usize {
    structure.as_mut_ptr() as usize
}

#[test]
fn a_plan_is_made_again_after_what_it_was_made_of() {
    let file = std::env::temp_dir().join(format!("sluice-structures-{}.jsonl", std::process::id()));
    let gpud = Gpud::start("null", &["--recording", &file.display().to_string()]).expect("gpud");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    start();
    attach();
    let lt = Library::load("cusparselt", 0);
    let mut structures = [[0; 64]; 6];
    let [handle, sparse, dense, product, selection, plan] = structures.each_mut().map(place);
    lt.run("cusparseLtInit", &[handle]);
    lt.run("cusparseLtStructuredDescriptorInit", &[handle, sparse, 32, 32, 32, 16, 2, 1, 0]);
    lt.run("cusparseLtDenseDescriptorInit", &[handle, dense, 32, 32, 32, 16, 2, 1]);
    // Made twice at one place: the first is gone.
    for relu in [0u32, 1] {
        lt.run("cusparseLtMatmulDescriptorInit", &[handle, product, 0, 0, sparse, dense, dense, dense, 2]);
        lt.run("cusparseLtMatmulDescSetAttribute", &[handle, product, 0, (&raw const relu) as usize, 4]);
    }
    lt.run("cusparseLtMatmulAlgSelectionInit", &[handle, selection, product, 0]);
    lt.run("cusparseLtMatmulPlanInit", &[handle, plan, product, selection]);
    lt.run("cusparseLtMatDescriptorDestroy", &[sparse]);
    lt.run("cusparseLtMatDescriptorDestroy", &[dense]);

    ask(&json!({ "op": "detach" }));
    attach();
    let (memory, one, stream) = (upload(&[0; 4096]) as usize, 1f32, 0usize);
    let (one, streams) = ((&raw const one) as usize, (&raw const stream) as usize);
    lt.run("cusparseLtMatmul", &[handle, plan, one, memory, memory, one, memory, memory, memory, streams, 1]);
    ask(&json!({ "op": "detach" }));
    let recording = std::fs::read_to_string(&file).expect("a recording");
    let _ = std::fs::remove_file(&file);
    let calls: Vec<String> = recording
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|line| Some(line["call"].as_str()?.to_owned()))
        .collect();
    let again = calls.iter().rposition(|call| call.starts_with("open-library")).expect("opened twice");
    let of = |calls: &[String]| -> Vec<String> {
        calls.iter().filter_map(|call| Some(call.strip_prefix("cusparseLt")?.to_owned())).collect()
    };
    let products = of(&calls[..again]).iter().filter(|call| *call == "MatmulDescriptorInit").count();
    assert_eq!(products, 3, "two are made, and one is forgotten");
    let wanted = "Init StructuredDescriptorInit DenseDescriptorInit MatmulDescriptorInit MatmulDescSetAttribute \
                  MatmulAlgSelectionInit MatmulPlanInit Matmul";
    assert_eq!(of(&calls[again..]).join(" "), wanted);
}
