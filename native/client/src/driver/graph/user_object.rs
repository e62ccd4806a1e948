//! User objects: what a program wants to live as long as its graphs.

use super::Graph;
use crate::driver::{put, ready};
use crate::error::{CudaResult, INVALID_VALUE};
use crate::host::Function;
use crate::objects::new_handle;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

/// CU_GRAPH_USER_OBJECT_MOVE
const MOVE: u32 = 1;

/// The object itself; each reference of CUDA's is an `Arc`. Destroyed with the last.
pub struct UserObject {
    handle: u64,
    destroy: Function,
    object: usize,
}

impl Drop for UserObject {
    fn drop(&mut self) {
        let (destroy, object) = (self.destroy, self.object);
        // CUDA destroys on a thread of its own, never inside the call that gave the last reference up.
        let _ = std::thread::Builder::new().name("sluice-destroy".into()).spawn(move || {
            // SAFETY: the program's function for this object, called once.
            unsafe { destroy(object as *mut c_void) };
        });
    }
}

/// The references that the program itself holds.
pub struct Handle {
    references: Mutex<Vec<Arc<UserObject>>>,
}

impl Handle {
    fn take(&self, count: u32) -> CudaResult<Vec<Arc<UserObject>>> {
        let mut references = self.references.lock().unwrap_or_else(PoisonError::into_inner);
        let left = references.len().checked_sub(count as usize).ok_or(INVALID_VALUE)?;
        Ok(references.split_off(left))
    }

    fn more(&self, count: u32) -> CudaResult<Vec<Arc<UserObject>>> {
        let references = self.references.lock().unwrap_or_else(PoisonError::into_inner);
        let one = references.first().ok_or(INVALID_VALUE)?;
        Ok((0..count).map(|_| Arc::clone(one)).collect())
    }
}

pub unsafe fn cuUserObjectCreate(
    object: *mut usize,
    pointer: *mut c_void,
    destroy: Option<Function>,
    count: u32,
    flags: u32,
) -> CudaResult {
    let process = ready()?;
    let destroy = destroy.filter(|_| flags == 1 && count > 0).ok_or(INVALID_VALUE)?;
    let handle = new_handle();
    // SAFETY: the caller's output.
    unsafe { put(object, handle as usize)? };
    let made = Arc::new(UserObject { handle, destroy, object: pointer as usize });
    let references = Mutex::new(vec![made; count as usize]);
    process.objects.graphs.user_objects.put(handle, Handle { references });
    Ok(())
}

pub unsafe fn cuUserObjectRetain(object: usize, count: u32) -> CudaResult {
    let found = ready()?.objects.graphs.user_objects.get(object).map_err(|_| INVALID_VALUE)?;
    let mut more = found.more(count)?;
    found.references.lock().unwrap_or_else(PoisonError::into_inner).append(&mut more);
    Ok(())
}

pub unsafe fn cuUserObjectRelease(object: usize, count: u32) -> CudaResult {
    let found = ready()?.objects.graphs.user_objects.get(object).map_err(|_| INVALID_VALUE)?;
    found.take(count).map(drop)
}

pub unsafe fn cuGraphRetainUserObject(graph: usize, object: usize, count: u32, flags: u32) -> CudaResult {
    let process = ready()?;
    let graph = Graph::find(process, graph)?;
    let found = process.objects.graphs.user_objects.get(object).map_err(|_| INVALID_VALUE)?;
    if count == 0 || flags > MOVE {
        return Err(INVALID_VALUE);
    }
    let mut references = if flags == MOVE { found.take(count)? } else { found.more(count)? };
    graph.state().users.append(&mut references);
    Ok(())
}

pub unsafe fn cuGraphReleaseUserObject(graph: usize, object: usize, count: u32) -> CudaResult {
    let graph = Graph::find(ready()?, graph)?;
    let mut state = graph.state();
    let held = state.users.iter().filter(|user| user.handle == object as u64).count();
    if held < count as usize {
        return Err(INVALID_VALUE);
    }
    let mut left = count;
    state.users.retain(|user| {
        let ends = left > 0 && user.handle == object as u64;
        left -= u32::from(ends);
        !ends
    });
    Ok(())
}
