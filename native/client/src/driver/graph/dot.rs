//! A graph as text for Graphviz (`cuGraphDebugDotPrint`).

use super::{Graph, State, Work};
use crate::driver::{ready, text};
use crate::error::{CudaError, CudaResult};
use sluice_protocol::cuda;
use std::ffi::c_char;
use std::fmt::Write;

fn label(work: &Work) -> String {
    match work {
        Work::Empty => "EMPTY".into(),
        Work::Kernel(kernel) => {
            let ([x, y, z], [bx, by, bz]) = (kernel.grid, kernel.block);
            // A name may hold quotes only as part of broken PTX; they would break the text.
            let name = kernel.function.name.replace(['"', '\\'], "_");
            format!("KERNEL\\n{name}\\n<<<({x},{y},{z}),({bx},{by},{bz}),{}>>>", kernel.shared_bytes)
        }
        Work::Copy(copy) => format!("MEMCPY\\n{} x {} x {} bytes", copy.width, copy.height, copy.depth),
        Work::Fill(fill) => {
            format!("MEMSET\\n{:#x}\\n{} x {} of {}", fill.address, fill.width, fill.height, fill.element)
        }
        Work::Host { .. } => "HOST".into(),
        Work::Child(graph) => format!("CHILD_GRAPH\\ngraph {}", graph.id),
        Work::WaitEvent(event) => format!("EVENT_WAIT\\n{:#x}", event.handle),
        Work::RecordEvent(event) => format!("EVENT_RECORD\\n{:#x}", event.handle),
        Work::Alloc(allocation) => format!("MEM_ALLOC\\n{:#x}\\n{} bytes", allocation.address, allocation.bytes),
        Work::Free(address) => format!("MEM_FREE\\n{address:#x}"),
        Work::Library(recording) => format!("LIBRARY\\n{}", recording.symbol),
        Work::Memory(operations) => format!("BATCH_MEM_OP\\n{} operations", operations.len()),
    }
}

fn write(out: &mut String, id: u32, state: &State) {
    let _ = writeln!(out, "subgraph cluster_{id} {{\nlabel=\"graph_{id}\" graph[style=\"dashed\"];");
    let name = |handle: u64| state.nodes.get(&handle).map_or(0, |node| node.local_id);
    for node in state.nodes.values() {
        let (local, text) = (node.local_id, label(&node.work));
        let _ = writeln!(
            out,
            "\"graph_{id}_node_{local}\" [style=\"solid\" shape=\"rectangle\" label=\"{local}\\n{text}\"];"
        );
        for (from, _) in &node.after {
            let _ = writeln!(out, "\"graph_{id}_node_{}\" -> \"graph_{id}_node_{local}\";", name(*from));
        }
    }
    out.push_str("}\n");
    for node in state.nodes.values() {
        if let Work::Child(child) = &node.work {
            write(out, child.id, &child.state());
        }
    }
}

/// `flags` choose how much is said of each node; everything is said always.
pub unsafe fn cuGraphDebugDotPrint(graph: usize, path: *const c_char, _flags: u32) -> CudaResult {
    let found = Graph::find(ready()?, graph)?;
    // SAFETY: the caller's path.
    let path = unsafe { text(path)? };
    let mut out = "digraph dot {\n".to_owned();
    write(&mut out, found.id, &found.state());
    out.push_str("}\n");
    std::fs::write(path, out)
        .map_err(|error| CudaError::new(cuda::ERROR_OPERATING_SYSTEM, format!("{path} cannot be written: {error}")))
}
