//! A graph as text for Graphviz (`cuGraphDebugDotPrint`), in the form of NVIDIA's driver.
//!
//! Kernel, copy and fill nodes, child graphs and edges follow output of CUDA 12 that others have published
//! (pytorch/pytorch#126753). The published output has no other kinds of nodes: they follow the same pattern.

use super::layout::{ARRAY, Copy3D, DEVICE, Fill, HOST, Side};
use super::{Graph, Kernel, State, Work};
use crate::driver::{ready, text};
use crate::error::{CudaError, CudaResult};
use sluice_protocol::cuda;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_char;
use std::fmt::Write;
use std::sync::Arc;

/// CU_GRAPH_DEBUG_DOT_FLAGS_*
mod flags {
    pub const VERBOSE: u32 = 1;
    pub const KERNEL_NODE_PARAMS: u32 = 1 << 2;
    pub const MEMCPY_NODE_PARAMS: u32 = 1 << 3;
    pub const MEMSET_NODE_PARAMS: u32 = 1 << 4;
    pub const HOST_NODE_PARAMS: u32 = 1 << 5;
    pub const EVENT_NODE_PARAMS: u32 = 1 << 6;
    pub const KERNEL_NODE_ATTRIBUTES: u32 = 1 << 9;
    pub const HANDLES: u32 = 1 << 10;
    pub const MEM_ALLOC_NODE_PARAMS: u32 = 1 << 11;
    pub const MEM_FREE_NODE_PARAMS: u32 = 1 << 12;
    pub const BATCH_MEM_OP_NODE_PARAMS: u32 = 1 << 13;
}

/// The flags that ask for details of a node of this kind.
fn flags_of(work: &Work) -> u32 {
    let own = match work {
        Work::Kernel(_) => flags::KERNEL_NODE_PARAMS | flags::KERNEL_NODE_ATTRIBUTES,
        Work::Copy(_) => flags::MEMCPY_NODE_PARAMS,
        Work::Fill(_) => flags::MEMSET_NODE_PARAMS,
        Work::Host { .. } => flags::HOST_NODE_PARAMS,
        Work::WaitEvent(_) | Work::RecordEvent(_) => flags::EVENT_NODE_PARAMS,
        Work::Alloc(_) => flags::MEM_ALLOC_NODE_PARAMS,
        Work::Free(_) => flags::MEM_FREE_NODE_PARAMS,
        Work::Memory(_) => flags::BATCH_MEM_OP_NODE_PARAMS,
        Work::Empty | Work::Child(_) | Work::Library(_) => 0,
    };
    own | flags::VERBOSE | flags::HANDLES
}

/// Text within a label of shape "record", whose fields end at `|` and braces.
fn escaped(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            let special = matches!(c, '<' | '>' | '{' | '}' | '|' | '"' | '\\');
            special.then_some('\\').into_iter().chain([c])
        })
        .collect()
}

/// `16`, or `\{16,10,4\}` where more than the first number differs from 1.
fn dimensions([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("\\{{{x},{y}\\}}"),
        _ => format!("\\{{{x},{y},{z}\\}}"),
    }
}

fn pointer(address: u64) -> String {
    format!("0x{address:016X}")
}

/// A number of a launch attribute, as its bytes.
fn part<const N: usize>(value: &[u8; 64], at: usize) -> [u8; N] {
    std::array::from_fn(|index| value[at + index])
}

fn kernel_label(kernel: &Kernel, id: &str, handle: u64) -> String {
    let attribute =
        |id: u32| kernel.attributes.iter().find(|found| found.id == id).map_or([0; 64], |found| found.value);
    // CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, COOPERATIVE and PRIORITY
    let (window, cooperative, priority) = (attribute(1), attribute(2), attribute(8));
    let property = |bytes: [u8; 4]| match u32::from_ne_bytes(bytes) {
        0 => "N",
        1 => "S",
        _ => "P",
    };
    let name = escaped(&kernel.function.name);
    let (grid, block, shared) = (dimensions(kernel.grid), dimensions(kernel.block), kernel.shared_bytes);
    [
        "{KERNEL".to_owned(),
        format!("| {{ID | {id} | {name}\\<\\<\\<{grid},{block},{shared}\\>\\>\\>}}"),
        format!("| {{{{node handle | func handle}} | {{{} | {}}}}}", pointer(handle), pointer(kernel.function.handle)),
        format!(
            "| {{accessPolicyWindow | {{base_ptr | num_bytes | hitRatio | hitProp | missProp}} | \
             {{{} | {} | {:.6} | {} | {}}}}}",
            pointer(u64::from_ne_bytes(part(&window, 0))),
            u64::from_ne_bytes(part(&window, 8)),
            f32::from_ne_bytes(part(&window, 16)),
            property(part(&window, 20)),
            property(part(&window, 24)),
        ),
        format!("| {{cooperative | {}}}", u32::from_ne_bytes(part(&cooperative, 0))),
        format!("| {{priority | {}}}", i32::from_ne_bytes(part(&priority, 0))),
        "}".to_owned(),
    ]
    .join("\n")
}

fn copy_label(Copy3D { source, target, width, height, depth }: &Copy3D, id: &str, handle: u64) -> String {
    let start = |side: &Side| match side.kind {
        HOST => side.host as u64,
        ARRAY => side.array as u64,
        _ => side.device,
    };
    let place = |side: &Side| match side.kind {
        HOST => "HOST",
        DEVICE => "DEVICE",
        ARRAY => "ARRAY",
        _ => "UNIFIED",
    };
    // `xsize` is the runtime's; a driver's copy has none.
    let pitched = |side: &Side| format!("{} | {} | 0 | {}", side.pitch, pointer(start(side)), side.height);
    let position = |Side { x, y, z, .. }: &Side| format!("{{{{x | {x}}} | {{y | {y}}} | {{z | {z}}}}}");
    let (from, to) = (place(source), place(target));
    [
        "{\nMEMCPY".to_owned(),
        format!("| {{{{ID | node handle}} | {{{id} | {}}}}}", pointer(handle)),
        format!("| {{kind | {}to{} ({from} to {to})}}", &from[..1], &to[..1]),
        format!(
            "| {{{{srcPtr | dstPtr}} | {{pitch | ptr | xsize | ysize | pitch | ptr | xsize | ysize}} | {{{} | {}}}}}",
            pitched(source),
            pitched(target),
        ),
        format!(
            "| {{{{srcPos | {}}} | {{dstPos | {}}} | \
             {{Extent | {{{{Width | {width}}} | {{Height | {height}}} | {{Depth | {depth}}}}}}}}}",
            position(source),
            position(target),
        ),
        "}".to_owned(),
    ]
    .join("\n")
}

/// A record of one table: the names of the columns and their values.
fn table(title: &str, id: &str, handle: u64, columns: &[(&str, String)]) -> String {
    let names: String = columns.iter().map(|(name, _)| format!(" | {name}")).collect();
    let values: String = columns.iter().map(|(_, value)| format!(" | {value}")).collect();
    format!("{{\n{title}\n| {{{{ID | node handle{names}}} | {{{id} | {}{values}}}}}}}", pointer(handle))
}

fn fill_label(fill: &Fill, id: &str, handle: u64) -> String {
    let columns = [
        ("dptr", pointer(fill.address)),
        ("pitch", fill.pitch.to_string()),
        ("value", fill.value.to_string()),
        ("elementSize", fill.element.to_string()),
        ("width", fill.width.to_string()),
        ("height", fill.height.to_string()),
    ];
    table("MEMSET", id, handle, &columns)
}

/// The label with all details. `id`: number and place of the node.
fn detailed(work: &Work, id: &str, handle: u64) -> String {
    match work {
        Work::Kernel(work) => kernel_label(work, id, handle),
        Work::Copy(work) => copy_label(work, id, handle),
        Work::Fill(work) => fill_label(work, id, handle),
        Work::Empty => table("EMPTY", id, handle, &[]),
        Work::Host { function, data } => {
            let columns = [("fn", pointer(*function as usize as u64)), ("userData", pointer(*data as u64))];
            table("HOST", id, handle, &columns)
        }
        Work::Child(graph) => table("GRAPH", id, handle, &[("child graph", format!("graph_{}", graph.id))]),
        Work::Library(recording) => table("GRAPH", id, handle, &[("library", escaped(recording.symbol))]),
        Work::WaitEvent(event) => table("WAIT_EVENT", id, handle, &[("event", pointer(event.handle))]),
        Work::RecordEvent(event) => table("EVENT_RECORD", id, handle, &[("event", pointer(event.handle))]),
        Work::Alloc(memory) => {
            let columns = [("dptr", pointer(memory.address)), ("bytesize", memory.bytes.to_string())];
            table("MEM_ALLOC", id, handle, &columns)
        }
        Work::Free(address) => table("MEM_FREE", id, handle, &[("dptr", pointer(*address))]),
        Work::Memory(operations) => table("BATCH_MEM_OP", id, handle, &[("count", operations.len().to_string())]),
    }
}

/// The name of a node without its details.
fn brief(work: &Work) -> String {
    match work {
        Work::Kernel(kernel) => escaped(&kernel.function.name),
        Work::Copy(_) => "MEMCPY".into(),
        Work::Fill(_) => "MEMSET".into(),
        Work::Empty => "EMPTY".into(),
        Work::Host { .. } => "HOST".into(),
        Work::Child(graph) => format!("graph_{}", graph.id),
        Work::Library(recording) => escaped(recording.symbol),
        Work::WaitEvent(_) => "WAIT_EVENT".into(),
        Work::RecordEvent(_) => "EVENT_RECORD".into(),
        Work::Alloc(_) => "MEM_ALLOC".into(),
        Work::Free(_) => "MEM_FREE".into(),
        Work::Memory(_) => "BATCH_MEM_OP".into(),
    }
}

/// Each node's place in an order that its edges permit, counted from the last one as NVIDIA's driver does.
fn places(state: &State) -> BTreeMap<u64, usize> {
    let mut missing: BTreeMap<u64, usize> = BTreeMap::new();
    let mut later: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (handle, node) in &state.nodes {
        missing.insert(*handle, node.after.len());
        node.after.iter().for_each(|(from, _)| later.entry(*from).or_default().push(*handle));
    }
    let mut ready: BTreeSet<u64> =
        missing.iter().filter(|(_, count)| **count == 0).map(|(handle, _)| *handle).collect();
    let mut places = BTreeMap::new();
    while let Some(handle) = ready.pop_first() {
        places.insert(handle, state.nodes.len() - 1 - places.len());
        for next in later.get(&handle).into_iter().flatten() {
            if let Some(count) = missing.get_mut(next) {
                *count -= 1;
                if *count == 0 {
                    ready.insert(*next);
                }
            }
        }
    }
    places
}

fn write_subgraph(out: &mut String, id: u32, state: &State, flags: u32) {
    let _ = writeln!(out, "subgraph cluster_{id} {{\nlabel=\"graph_{id}\" graph[style=\"dashed\"];");
    let places = places(state);
    for (handle, node) in &state.nodes {
        let (local, work) = (node.local_id, &node.work);
        let is_kernel = matches!(work, Work::Kernel(_));
        let style = if is_kernel { "bold" } else { "solid" };
        let (shape, label) = if flags & flags_of(work) != 0 {
            let id = format!("{local} (topoId: {})", places.get(handle).copied().unwrap_or_default());
            ("record", detailed(work, &id, *handle))
        } else {
            (if is_kernel { "octagon" } else { "rectangle" }, format!("{local}\n{}\n", brief(work)))
        };
        let _ = writeln!(out, "\"graph_{id}_node_{local}\"[style=\"{style}\" shape=\"{shape}\" label=\"{label}\"];");
    }
    let local = |handle: u64| state.nodes.get(&handle).map_or(0, |node| node.local_id);
    for node in state.nodes.values() {
        for (from, data) in &node.after {
            // The second byte of an edge is the port at its head.
            let (from, to, port) = (local(*from), node.local_id, data[1]);
            let _ = writeln!(out, "\"graph_{id}_node_{from}\" -> \"graph_{id}_node_{to}\" [headlabel={port}];");
        }
    }
    out.push_str("}\n");
    for node in state.nodes.values() {
        if let Work::Child(child) = &node.work {
            write_subgraph(out, child.id, &child.state(), flags);
        }
    }
}

/// The text of a graph and of the graphs inside it.
fn digraph(graph: &Arc<Graph>, flags: u32) -> String {
    let mut out = "digraph dot {\n".to_owned();
    write_subgraph(&mut out, graph.id, &graph.state(), flags);
    out.push_str("}\n");
    out
}

/// `flags` choose the kinds of nodes whose details are written.
pub unsafe fn cuGraphDebugDotPrint(graph: usize, path: *const c_char, flags: u32) -> CudaResult {
    let found = Graph::find(ready()?, graph)?;
    // SAFETY: the caller's path.
    let path = unsafe { text(path)? };
    std::fs::write(path, digraph(&found, flags))
        .map_err(|error| CudaError::new(cuda::ERROR_OPERATING_SYSTEM, format!("{path} cannot be written: {error}")))
}
