//! Default streams of threads.

use super::{Program, add, alloc, download, load, start};
use crate::driver::{Driver, table};
use std::ffi::c_void;

pub const PROGRAMS: &[Program] =
    &[("own_default_streams", own_default_streams), ("own_stream_waits_for_legacy", own_stream_waits_for_legacy)];

table! {
    PerThread;
    cuStreamGetId(usize, *mut u64);
    cuStreamGetId_ptsz(usize, *mut u64);
    cuStreamGetFlags_ptsz(usize, *mut u32);
    cuMemsetD32Async_ptsz(u64, u32, usize, usize);
    cuMemcpyDtoH_v2_ptds(*mut c_void, u64, usize);
    cuStreamSynchronize_ptsz(usize);
    cuCtxCreate_v2(*mut usize, u32, i32);
    cuCtxDestroy_v2(usize);
}

fn id(function: unsafe extern "C" fn(usize, *mut u64) -> u32, stream: usize) -> u64 {
    let mut id = 0;
    // SAFETY: a live local.
    assert_eq!(unsafe { function(stream, &raw mut id) }, 0);
    id
}

/// Each thread has one of its own in each context; the handle 2 names it, 1 the legacy one, in every variant.
fn own_default_streams(driver: &Driver) {
    let context = start(driver);
    let own = PerThread::of(driver.library);
    let legacy = id(own.cuStreamGetId, 0);
    let mine = id(own.cuStreamGetId_ptsz, 0);
    assert_ne!(mine, legacy);
    assert_eq!(id(own.cuStreamGetId_ptsz, 0), mine);
    assert_eq!((id(own.cuStreamGetId, 2), id(own.cuStreamGetId_ptsz, 2)), (mine, mine));
    assert_eq!((id(own.cuStreamGetId, 1), id(own.cuStreamGetId_ptsz, 1)), (legacy, legacy));
    let others: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    // SAFETY: a context of this process.
                    assert_eq!(unsafe { (driver.cuCtxSetCurrent)(context) }, 0);
                    id(own.cuStreamGetId_ptsz, 0)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("answers")).collect()
    });
    for (at, other) in others.iter().enumerate() {
        assert!(*other != mine && *other != legacy && !others[..at].contains(other));
    }
    let (mut flags, mut second) = (9, 0);
    // SAFETY: live locals; the context is destroyed once.
    unsafe {
        assert_eq!((own.cuStreamGetFlags_ptsz)(0, &raw mut flags), 0);
        assert_eq!(flags, 0, "it waits for the legacy default stream");
        assert_eq!((own.cuCtxCreate_v2)(&raw mut second, 0, 0), 0);
        assert_ne!(id(own.cuStreamGetId_ptsz, 0), mine);
        assert_eq!((own.cuCtxDestroy_v2)(second), 0);
        assert_eq!((driver.cuCtxSetCurrent)(context), 0);
    }
    assert_eq!(id(own.cuStreamGetId_ptsz, 0), mine);
}

/// Threads work in their own streams; what the legacy default stream does comes after it.
fn own_stream_waits_for_legacy(driver: &Driver) {
    let context = start(driver);
    let own = PerThread::of(driver.library);
    let (_, function) = load(driver, "add");
    let address = alloc(driver, 4 << 14);
    std::thread::scope(|scope| {
        for number in 0..4u32 {
            let own = &own;
            scope.spawn(move || {
                let part = address + u64::from(number) * (1 << 14);
                let mut word = 0u32;
                // SAFETY: a context of this process, an allocation of this size, a live local.
                unsafe {
                    assert_eq!((driver.cuCtxSetCurrent)(context), 0);
                    assert_eq!((own.cuMemsetD32Async_ptsz)(part, number, 1 << 12, 0), 0);
                    for _ in 0..20 {
                        assert_eq!(add(driver, function, part, 1 << 12, 1, 2), 0);
                    }
                    assert_eq!((own.cuMemcpyDtoH_v2_ptds)((&raw mut word).cast(), part, 4), 0);
                    assert_eq!(word, number + 20);
                    // Not waited for here: the stream ends with its thread, its work does not.
                    assert_eq!(add(driver, function, part, 1 << 12, 1, 2), 0);
                }
            });
        }
    });
    // The legacy default stream waits for all of them.
    let words = download(driver, address, 1 << 14);
    assert!(
        words.iter().enumerate().all(|(at, word)| *word == (at as u32 >> 12) + 21),
        "a thread's work was not waited for"
    );
    // SAFETY: a default stream.
    assert_eq!(unsafe { (own.cuStreamSynchronize_ptsz)(0) }, 0);
}
