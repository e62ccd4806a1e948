//! Graphs. Their structure is kept here, where the order of issue is known, so that every question is answered without
//! gpud; an executable graph is sent once, and launched by one posted frame.

pub mod dot;
pub mod exec;
pub mod flat;
pub mod generic;
pub mod layout;
pub mod lower;
pub mod memory;
pub mod nodes;
pub mod structure;
pub mod update;
pub mod user_object;

use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::host::Function as HostFunction;
use crate::library::Recording;
use crate::objects::{Event, Function, Table, new_handle};
use crate::process::Process;
use layout::{Copy3D, Fill};
use memory::Allocation;
use sluice_protocol::graph::{LaunchAttribute, MemoryOperation};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use user_object::UserObject;

/// CUgraphEdgeData
pub type EdgeData = [u8; 8];
/// An edge's other end.
pub type Edge = (u64, EdgeData);
/// The edge that orders a node fully behind another.
pub const FULL: EdgeData = [0; 8];

/// What the program made of graphs.
#[derive(Default)]
pub struct Graphs {
    pub graphs: Table<Graph>,
    /// The graph of each node.
    pub nodes: Table<Home>,
    pub executables: Table<exec::Executable>,
    pub user_objects: Table<user_object::Handle>,
    pub memory: memory::Memory,
}

/// Where a node belongs.
pub struct Home {
    pub graph: Arc<Graph>,
}

/// A graph.
pub struct Graph {
    pub handle: u64,
    pub id: u32,
    state: Mutex<State>,
}

/// A graph's nodes and what it keeps alive.
#[derive(Default)]
pub struct State {
    /// By handle, which is the order in which they were made.
    pub nodes: BTreeMap<u64, Node>,
    /// The node that holds this graph as its child.
    pub owner: Option<u64>,
    pub users: Vec<Arc<UserObject>>,
    /// The executable graph made of it, where there may be only one.
    pub instance: Weak<()>,
    next_local_id: u32,
}

/// A node.
#[derive(Clone)]
pub struct Node {
    pub work: Work,
    /// The nodes that it depends on, in the order in which they were named.
    pub after: Vec<Edge>,
    /// The node that it was cloned from.
    pub origin: u64,
    /// Number of the node in its graph.
    pub local_id: u32,
    /// What a question about its parameters points to.
    pub exposed: Option<nodes::Exposed>,
}

/// What a node does.
#[derive(Clone)]
pub enum Work {
    Empty,
    Kernel(Kernel),
    Copy(Copy3D),
    Fill(Fill),
    Host {
        function: HostFunction,
        data: usize,
    },
    Child(Arc<Graph>),
    WaitEvent(Arc<Event>),
    RecordEvent(Arc<Event>),
    Alloc(Arc<Allocation>),
    Free(u64),
    Memory(Vec<MemoryOperation>),
    /// A call to a library: to the program a child graph whose inside is the library's.
    Library(Arc<Recording>),
}

/// A kernel node.
#[derive(Clone)]
pub struct Kernel {
    pub function: Arc<Function>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub parameters: Vec<u8>,
    pub attributes: Vec<LaunchAttribute>,
}

impl Work {
    /// CUgraphNodeType
    pub fn kind(&self) -> u32 {
        match self {
            Self::Kernel(_) => 0,
            Self::Copy(_) => 1,
            Self::Fill(_) => 2,
            Self::Host { .. } => 3,
            Self::Child(_) | Self::Library(_) => 4,
            Self::Empty => 5,
            Self::WaitEvent(_) => 6,
            Self::RecordEvent(_) => 7,
            Self::Alloc(_) => 10,
            Self::Free(_) => 11,
            Self::Memory(_) => 12,
        }
    }
}

/// CUDA_ERROR_NOT_SUPPORTED with a reason.
pub fn refused(text: &str) -> CudaError {
    CudaError::new(sluice_protocol::cuda::ERROR_NOT_SUPPORTED, text)
}

impl Graph {
    /// An empty graph.
    pub fn new(process: &Process) -> Arc<Self> {
        static IDS: AtomicU32 = AtomicU32::new(1);
        let handle = new_handle();
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        process.objects.graphs.graphs.put(handle, Self { handle, id, state: Mutex::default() })
    }

    /// The graph of a handle.
    pub fn find(process: &Process, handle: usize) -> CudaResult<Arc<Self>> {
        process.objects.graphs.graphs.get(handle).map_err(|_| INVALID_VALUE)
    }

    /// The graph of a node.
    pub fn of_node(process: &Process, node: usize) -> CudaResult<Arc<Self>> {
        process.objects.graphs.nodes.get(node).map(|home| Arc::clone(&home.graph)).map_err(|_| INVALID_VALUE)
    }

    /// Its nodes; one graph's lock is taken before its child's.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a node.
    pub fn add(self: &Arc<Self>, process: &Process, work: Work, after: Vec<Edge>) -> CudaResult<u64> {
        let mut state = self.state();
        for (index, (node, _)) in after.iter().enumerate() {
            if !state.nodes.contains_key(node) || after[..index].iter().any(|(other, _)| other == node) {
                return Err(INVALID_VALUE);
            }
        }
        let handle = new_handle();
        if let Work::Child(child) = &work {
            child.state().owner = Some(handle);
        }
        let local_id = state.next_local_id;
        state.next_local_id += 1;
        state.nodes.insert(handle, Node { work, after, origin: 0, local_id, exposed: None });
        process.objects.graphs.nodes.put(handle, Home { graph: Arc::clone(self) });
        Ok(handle)
    }

    /// A copy with nodes of its own, child graphs included.
    pub fn copy(&self, process: &Process) -> CudaResult<Arc<Self>> {
        let copy = Self::new(process);
        let state = self.state();
        let mut handles = HashMap::new();
        let mut nodes = BTreeMap::new();
        for handle in order(&state.nodes)? {
            let Some(node) = state.nodes.get(&handle) else { continue };
            handles.insert(handle, new_handle());
            let after = node.after.iter().filter_map(|(from, data)| Some((*handles.get(from)?, *data)));
            let work = match &node.work {
                Work::Child(child) => Work::Child(child.copy(process)?),
                work => work.clone(),
            };
            let own = handles.get(&handle).copied().unwrap_or_default();
            if let Work::Child(child) = &work {
                child.state().owner = Some(own);
            }
            let made = Node { work, after: after.collect(), origin: handle, local_id: node.local_id, exposed: None };
            process.objects.graphs.nodes.put(own, Home { graph: Arc::clone(&copy) });
            nodes.insert(own, made);
        }
        {
            let mut made = copy.state();
            made.nodes = nodes;
            made.next_local_id = state.next_local_id;
            made.users.clone_from(&state.users);
        }
        Ok(copy)
    }

    /// Takes it and all that is in it out of the tables.
    pub fn forget(&self, process: &Process) {
        let _ = process.objects.graphs.graphs.remove(self.handle as usize);
        let nodes = std::mem::take(&mut self.state().nodes);
        for (handle, node) in nodes {
            let _ = process.objects.graphs.nodes.remove(handle as usize);
            if let Work::Child(child) = &node.work {
                child.forget(process);
            }
        }
        self.state().users.clear();
    }

    /// Whether it or a child has nodes of memory.
    pub fn has_memory(&self) -> bool {
        self.state().nodes.values().any(|node| match &node.work {
            Work::Alloc(_) | Work::Free(_) => true,
            Work::Child(child) => child.has_memory(),
            _ => false,
        })
    }
}

/// Nodes in an order in which each comes after those that it depends on, otherwise as they were made.
pub fn order(nodes: &BTreeMap<u64, Node>) -> CudaResult<Vec<u64>> {
    let mut missing: HashMap<u64, usize> = nodes.iter().map(|(handle, node)| (*handle, node.after.len())).collect();
    let mut followers: HashMap<u64, Vec<u64>> = HashMap::new();
    for (handle, node) in nodes {
        for (from, _) in &node.after {
            followers.entry(*from).or_default().push(*handle);
        }
    }
    let mut sorted = Vec::with_capacity(nodes.len());
    let mut turn: VecDeque<u64> =
        nodes.iter().filter(|(_, node)| node.after.is_empty()).map(|(handle, _)| *handle).collect();
    while let Some(handle) = turn.pop_front() {
        sorted.push(handle);
        for follower in followers.remove(&handle).unwrap_or_default() {
            if let Some(left) = missing.get_mut(&follower) {
                *left -= 1;
                if *left == 0 {
                    turn.push_back(follower);
                }
            }
        }
    }
    if sorted.len() == nodes.len() { Ok(sorted) } else { Err(INVALID_VALUE) }
}
