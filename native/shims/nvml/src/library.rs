//! Starting and ending the library. Both are counted, as NVML counts them.

use crate::status::{Answer, NvmlReturn, UNINITIALIZED};
use crate::{client, unguarded};
use std::sync::atomic::{AtomicU32, Ordering};

static STARTED: AtomicU32 = AtomicU32::new(0);

/// Between `nvmlInit` and `nvmlShutdown`.
pub fn initialised() -> bool {
    STARTED.load(Ordering::Acquire) > 0
}

fn start() -> Answer {
    STARTED.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// `nvmlInit` of before CUDA 5.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit() -> NvmlReturn {
    unguarded(start)
}

/// `nvmlInit`: asks nobody yet.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> NvmlReturn {
    unguarded(start)
}

/// `nvmlInitWithFlags`: the flags say that a missing device is no error; there always is one here.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: u32) -> NvmlReturn {
    unguarded(start)
}

/// `nvmlShutdown`.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> NvmlReturn {
    unguarded(|| {
        client::forget();
        let ended = STARTED.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
        ended.map(|_| ()).map_err(|_| UNINITIALIZED)
    })
}
