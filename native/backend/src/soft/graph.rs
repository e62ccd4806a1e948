//! Graphs on the software GPU: each launch queues the nodes as steps of the timeline.

use super::{Job, LIGHT_BYTES, SoftDevice, bad_address};
use crate::error::{CudaError, CudaResult, code};
use crate::graph::{Executable, Extent, GraphId, NodeWork, Planes, sized};
use crate::timeline::{Step, StepWork};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unknown() -> CudaError {
    CudaError::new(code::INVALID_HANDLE, "there is no such graph")
}

/// How many bytes a copy has, whose rows must lie one behind the other on each side.
pub(super) fn length(extent: Extent, sides: &[Planes]) -> CudaResult<u64> {
    let lies = sides.iter().all(|side| extent.lies_in(*side));
    let text = "rows that overlap, or more of them than memory has";
    extent.bytes().filter(|_| lies).ok_or_else(|| CudaError::new(code::INVALID_VALUE, text))
}

impl SoftDevice {
    fn graphs(&self) -> MutexGuard<'_, HashMap<GraphId, Arc<Executable>>> {
        lock(&self.graphs)
    }

    /// The executable graph of a handle.
    pub(super) fn graph(&self, graph: GraphId) -> CudaResult<Arc<Executable>> {
        self.graphs().get(&graph).cloned().ok_or_else(unknown)
    }

    /// Files a graph after a look at every node: what cannot run is told now.
    pub(super) fn instantiate(&self, graph: GraphId, executable: Executable) -> CudaResult<()> {
        executable.steps(|work| self.step(&executable, work))?;
        if self.graphs().contains_key(&graph) {
            return Err(CudaError::new(code::INVALID_HANDLE, "the graph's handle is already in use"));
        }
        self.graphs().insert(graph, Arc::new(executable));
        Ok(())
    }

    /// Changes nodes of a graph; launches that are queued keep what they had.
    pub(super) fn update(&self, graph: GraphId, changes: Vec<(u32, bool, NodeWork)>) -> CudaResult<()> {
        let now = self.graph(graph)?;
        let mut next = Executable { nodes: now.nodes.clone(), host: Arc::clone(&now.host) };
        for (place, enabled, work) in changes {
            self.step(&next, &work)?;
            let node = next.nodes.get_mut(place as usize);
            let node = node.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "there is no such node"))?;
            node.enabled = enabled;
            node.work = work;
        }
        self.graphs().insert(graph, Arc::new(next));
        Ok(())
    }

    /// What one launch of a graph does.
    pub(super) fn steps(&self, graph: GraphId) -> CudaResult<Vec<Step>> {
        let executable = self.graph(graph)?;
        executable.steps(|work| self.step(&executable, work))
    }

    /// Forgets a graph.
    pub(super) fn forget(&self, graph: GraphId) -> CudaResult<()> {
        self.graphs().remove(&graph).map(drop).ok_or_else(unknown)
    }

    fn step(&self, executable: &Executable, work: &NodeWork) -> CudaResult<StepWork> {
        Ok(match work {
            NodeWork::Kernel { function, config } => StepWork::Heavy(self.kernel_job(*function, config.clone())?),
            NodeWork::Fill(fill) => {
                let (light, job) = self.fill_job(*fill)?;
                sized(light, job)
            }
            NodeWork::Copy { target, source, extent } => self.copy_step(*target, *source, *extent)?,
            NodeWork::CopyIn { target, extent, copy } => self.copy_in_step(executable, *target, *extent, *copy)?,
            NodeWork::CopyOut { source, extent, copy } => self.copy_out_step(executable, *source, *extent, *copy)?,
            NodeWork::Library(recording) => self.library_step(*recording)?,
            NodeWork::Memory(operations) => StepWork::Later(self.words.work(&self.shared, operations.clone())?),
            NodeWork::Empty | NodeWork::Host { .. } | NodeWork::RecordEvent(_) | NodeWork::WaitEvent(_) => {
                StepWork::Marker
            }
        })
    }

    fn copy_step(&self, target: Planes, source: Planes, extent: Extent) -> CudaResult<StepWork> {
        let (light, job) = self.copy_job(target, source, extent)?;
        Ok(sized(light, job))
    }

    /// A copy inside the device, and whether it takes microseconds.
    pub(super) fn copy_job(&self, target: Planes, source: Planes, extent: Extent) -> CudaResult<(bool, Job)> {
        let (bytes, shared) = (length(extent, &[target, source])?, Arc::clone(&self.shared));
        let job = Box::new(move || {
            let arena = shared.memory()?.arena();
            for ((to, _), (from, _)) in extent.rows(target).zip(extent.rows(source)) {
                arena.copy(to, from, extent.width as usize).map_err(|error| bad_address(&error))?;
            }
            Ok(())
        });
        Ok((bytes <= LIGHT_BYTES, job))
    }

    fn copy_in_step(&self, executable: &Executable, target: Planes, extent: Extent, copy: u64) -> CudaResult<StepWork> {
        let (bytes, shared, host) =
            (length(extent, &[target])?, Arc::clone(&self.shared), Arc::clone(&executable.host));
        Ok(StepWork::Later(Box::new(move |done| {
            let write = move |data: Vec<u8>| {
                let arena = shared.memory()?.arena();
                for (to, at) in extent.rows(target) {
                    let row = data.get(at as usize..(at + extent.width) as usize);
                    let row = row.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "the client sent too little"))?;
                    arena.write(to, row).map_err(|error| bad_address(&error))?;
                }
                Ok(())
            };
            host.fetch(copy, bytes, Box::new(move |data| done(write(data))));
        })))
    }

    fn copy_out_step(
        &self,
        executable: &Executable,
        source: Planes,
        extent: Extent,
        copy: u64,
    ) -> CudaResult<StepWork> {
        let (bytes, shared, host) =
            (length(extent, &[source])?, Arc::clone(&self.shared), Arc::clone(&executable.host));
        let job = Box::new(move || {
            let arena = shared.memory()?.arena();
            let fault = |row: u64| bad_address(&std::io::Error::other(format!("{row:#x}, {} bytes", extent.width)));
            if let Some((row, _)) = extent.rows(source).find(|(row, _)| !arena.contains(*row, extent.width)) {
                return Err(fault(row));
            }
            let mut data = vec![0; bytes as usize];
            for (from, at) in extent.rows(source) {
                let row = data.get_mut(at as usize..(at + extent.width) as usize).ok_or_else(|| fault(from))?;
                arena.read(from, row).map_err(|error| bad_address(&error))?;
            }
            host.deliver(copy, data);
            Ok(())
        });
        Ok(sized(bytes <= LIGHT_BYTES, job))
    }
}
