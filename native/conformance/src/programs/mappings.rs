//! The program's own virtual memory management, pools, and what is known of addresses.

use super::{Program, add, download, load, start, upload};
use crate::driver::{Driver, table};
use sluice_client::driver::abi::{Access, AllocationProperties, Location, PoolProperties};
use std::ffi::c_void;

pub const PROGRAMS: &[Program] = &[("mappings", mappings), ("pools", pools), ("host_memory", host_memory)];

table! {
    Memory;
    cuDeviceGetAttribute(*mut i32, i32, i32);
    cuMemGetAllocationGranularity(*mut usize, *const AllocationProperties, u32);
    cuMemAddressReserve(*mut u64, usize, usize, u64, u64);
    cuMemAddressFree(u64, usize);
    cuMemCreate(*mut u64, usize, *const AllocationProperties, u64);
    cuMemRelease(u64);
    cuMemMap(u64, usize, usize, u64, u64);
    cuMemUnmap(u64, usize);
    cuMemSetAccess(u64, usize, *const Access, usize);
    cuMemGetAccess(*mut u64, *const Location, u64);
    cuMemRetainAllocationHandle(*mut u64, *const c_void);
    cuMemGetAllocationPropertiesFromHandle(*mut AllocationProperties, u64);
    cuMemExportToShareableHandle(*mut c_void, u64, u32, u64);
    cuMemAllocAsync(*mut u64, usize, usize);
    cuMemAllocFromPoolAsync(*mut u64, usize, usize, usize);
    cuMemFreeAsync(u64, usize);
    cuDeviceGetDefaultMemPool(*mut usize, i32);
    cuDeviceGetMemPool(*mut usize, i32);
    cuDeviceSetMemPool(i32, usize);
    cuMemPoolCreate(*mut usize, *const PoolProperties);
    cuMemPoolDestroy(usize);
    cuMemPoolTrimTo(usize, usize);
    cuMemPoolGetAttribute(usize, u32, *mut c_void);
    cuMemPoolSetAttribute(usize, u32, *const c_void);
    cuMemPoolGetAccess(*mut u32, usize, *const Location);
    cuPointerGetAttribute(*mut c_void, u32, u64);
    cuMemGetAddressRange_v2(*mut u64, *mut usize, u64);
    cuMemHostAlloc(*mut *mut c_void, usize, u32);
    cuMemFreeHost(*mut c_void);
    cuMemHostRegister_v2(*mut c_void, usize, u32);
    cuMemHostUnregister(*mut c_void);
    cuMemHostGetFlags(*mut u32, *mut c_void);
    cuMemHostGetDevicePointer_v2(*mut u64, *mut c_void, u32);
    cuMemAllocManaged(*mut u64, usize, u32);
}

const HERE: Location = Location { kind: 1, id: 0 };

fn properties() -> AllocationProperties {
    AllocationProperties { kind: 1, handle_types: 0, location: HERE, windows: std::ptr::null_mut(), flags: [0; 8] }
}

fn pointer(memory: &Memory, attribute: u32, address: u64) -> (u32, u64) {
    let mut value = 0u64;
    // SAFETY: no attribute is longer than 64 bits.
    (unsafe { (memory.cuPointerGetAttribute)((&raw mut value).cast(), attribute, address) }, value)
}

fn attribute(memory: &Memory, number: i32) -> i32 {
    let mut value = -1;
    // SAFETY: a live local.
    assert_eq!(unsafe { (memory.cuDeviceGetAttribute)(&raw mut value, number, 0) }, 0);
    value
}

fn mappings(driver: &Driver) {
    start(driver);
    let (_, function) = load(driver, "add");
    let memory = Memory::of(driver.library);
    assert_eq!(attribute(&memory, 102), 1, "virtual memory management is said to work");
    let (mut unit, mut base, mut first, mut second, mut free, mut total) = (0, 0, 0, 0, 0, 0);
    let access = Access { location: HERE, flags: 3 };
    // SAFETY: live locals; addresses and handles are made here, wrong ones must be refused.
    unsafe {
        assert_eq!((memory.cuMemGetAllocationGranularity)(&raw mut unit, &properties(), 0), 0);
        assert_eq!((memory.cuMemAddressReserve)(&raw mut base, unit + 1, 0, 0, 0), 1);
        assert_eq!((memory.cuMemAddressReserve)(&raw mut base, 4 * unit, 0, 0, 0), 0);
        assert!(base.is_multiple_of(unit as u64));
        assert_eq!((driver.cuMemGetInfo_v2)(&raw mut free, &raw mut total), 0);
        let before = free;
        assert_eq!((memory.cuMemCreate)(&raw mut first, unit, &properties(), 0), 0);
        assert_eq!((memory.cuMemCreate)(&raw mut second, 2 * unit, &properties(), 0), 0);
        assert_eq!((driver.cuMemGetInfo_v2)(&raw mut free, &raw mut total), 0);
        assert!(before - free >= 3 * unit, "physical memory is charged");
        let mut passable = 0;
        let wanted = AllocationProperties { handle_types: 1, ..properties() };
        assert_eq!((memory.cuMemCreate)(&raw mut passable, unit, &wanted, 0), 0, "as PyTorch's segments want it");
        assert_eq!((memory.cuMemRelease)(passable), 0);
        let (mut none, too_much) = (0, (total / unit + 1) * unit);
        assert_eq!((memory.cuMemCreate)(&raw mut none, too_much, &properties(), 0), 2);

        // Nothing can be touched before it is mapped and accessible.
        let word = 7u32;
        let write = |address| (driver.cuMemcpyHtoD_v2)(address, (&raw const word).cast(), 4);
        assert_eq!(write(base), 1);
        assert_eq!((memory.cuMemMap)(base, unit, 0, first, 0), 0);
        assert_eq!((memory.cuMemMap)(base, 2 * unit, 0, second, 0), 1, "something is there");
        assert_eq!((memory.cuMemMap)(base + unit as u64, unit, 0, second, 0), 801, "a part of the memory");
        assert_eq!((memory.cuMemMap)(base + unit as u64, 2 * unit, 0, second, 0), 0);
        if driver.is_ours() {
            // NVIDIA's driver 580 maps beyond the end of a reservation, and had better not be asked.
            assert_eq!((memory.cuMemMap)(base + 3 * unit as u64, 2 * unit, 0, second, 0), 1, "not reserved");
            assert_eq!(write(base), 1);
        }
        assert_eq!((memory.cuMemSetAccess)(base, 3 * unit, &access, 1), 0);
        let mut flags = 0;
        assert_eq!((memory.cuMemGetAccess)(&raw mut flags, &HERE, base + 5), 0);
        assert_eq!(flags, 3);

        // A kernel and copies go over the border of two mappings.
        let (at, words) = (base + unit as u64 - 4096, 4096u32);
        upload(driver, at, &vec![3; words as usize]);
        assert_eq!(add(driver, function, at, words, 4, 0), 0);
        assert!(download(driver, at, words as usize) == vec![7; words as usize]);
        if driver.is_ours() {
            assert_eq!(download(driver, base, 1), [0], "new memory is zeroed");
        }
        let (mut start, mut bytes) = (0, 0);
        assert_eq!((memory.cuMemGetAddressRange_v2)(&raw mut start, &raw mut bytes, at + 5000), 0);
        assert_eq!((start, bytes), (base + unit as u64, 2 * unit));

        // The same memory at another address; the handle may go while it is mapped.
        let mut other = 0;
        assert_eq!((memory.cuMemAddressReserve)(&raw mut other, 2 * unit, 4 * unit, 0, 0), 0);
        assert!(other.is_multiple_of(4 * unit as u64));
        assert_eq!((memory.cuMemMap)(other, 2 * unit, 0, second, 0), 0);
        assert_eq!((memory.cuMemSetAccess)(other, 2 * unit, &access, 1), 0);
        assert_eq!(download(driver, other, 1), [7]);
        let mut again = 0;
        assert_eq!((memory.cuMemRetainAllocationHandle)(&raw mut again, (other + 9) as *const c_void), 0);
        assert_eq!(again, second);
        let mut known = AllocationProperties { kind: 0, ..properties() };
        assert_eq!((memory.cuMemGetAllocationPropertiesFromHandle)(&raw mut known, second), 0);
        assert_eq!((known.kind, known.location), (1, HERE));
        let mut exported = 0u64;
        assert_ne!((memory.cuMemExportToShareableHandle)((&raw mut exported).cast(), second, 1, 0), 0);
        assert_eq!((memory.cuMemRelease)(second), 0);
        assert_eq!((memory.cuMemRelease)(second), 0);
        if driver.is_ours() {
            assert_eq!((memory.cuMemRelease)(second), 1);
        }
        assert_eq!((memory.cuMemRelease)(first), 0);

        // Whole mappings alone; then everything is as before.
        assert_eq!((memory.cuMemUnmap)(base, 2 * unit), 1);
        assert_eq!((memory.cuMemAddressFree)(base, 4 * unit), 1);
        assert_eq!((memory.cuMemUnmap)(base, 3 * unit), 0);
        assert_eq!(download(driver, other, 1), [7]);
        assert_eq!(write(base), 1);
        assert_eq!((memory.cuMemUnmap)(other, 2 * unit), 0);
        assert_eq!((memory.cuMemAddressFree)(base, 4 * unit), 0);
        assert_eq!((memory.cuMemAddressFree)(other, 2 * unit), 0);
        let mut most = 0;
        assert_eq!((memory.cuMemCreate)(&raw mut most, before / unit / 8 * 7 * unit, &properties(), 0), 0);
        assert_eq!((memory.cuMemRelease)(most), 0);
    }
}

fn pool_value(memory: &Memory, pool: usize, attribute: u32) -> u64 {
    let mut value = 0u64;
    // SAFETY: no attribute is longer than 64 bits.
    assert_eq!(unsafe { (memory.cuMemPoolGetAttribute)(pool, attribute, (&raw mut value).cast()) }, 0);
    value
}

/// What a pool may charge for so many bytes: a driver rounds them up.
fn piece(bytes: u64) -> std::ops::RangeInclusive<u64> {
    bytes..=bytes.next_multiple_of(512)
}

fn free_bytes(driver: &Driver) -> usize {
    let (mut free, mut total) = (0, 0);
    // SAFETY: live locals.
    assert_eq!(unsafe { (driver.cuMemGetInfo_v2)(&raw mut free, &raw mut total) }, 0);
    free
}

/// A pool reserves more than it is asked for, and what is freed stays its own until a synchronization.
fn keeps_until_synchronized(driver: &Driver, memory: &Memory, pool: usize, stream: usize) {
    let reserved = || pool_value(memory, pool, 5) as usize;
    let (before, mut address) = (free_bytes(driver), 0);
    // SAFETY: a live local; what is allocated is freed once.
    unsafe {
        assert_eq!((memory.cuMemAllocFromPoolAsync)(&raw mut address, 1 << 20, pool, stream), 0);
        let held = reserved();
        assert!(held > 1 << 20 && held.is_multiple_of(2 << 20), "{held}");
        assert_eq!((memory.cuMemFreeAsync)(address, stream), 0);
        assert_eq!((pool_value(memory, pool, 7), reserved()), (0, held));
        assert!(free_bytes(driver) <= before - held, "{} of {before}", free_bytes(driver));
        assert_eq!((driver.cuStreamSynchronize)(stream), 0);
    }
    assert_eq!(reserved(), 0);
    // Others use a real card too.
    assert!(!driver.is_ours() || free_bytes(driver) == before, "{} of {before}", free_bytes(driver));
    let (threshold, none) = (64u64 << 20, 0u64);
    // SAFETY: live locals; what is allocated is freed once.
    unsafe {
        assert_eq!((memory.cuMemPoolSetAttribute)(pool, 4, (&raw const threshold).cast()), 0);
        assert_eq!((memory.cuMemAllocFromPoolAsync)(&raw mut address, 1 << 20, pool, stream), 0);
        assert_eq!((memory.cuMemFreeAsync)(address, stream), 0);
        assert_eq!((driver.cuStreamSynchronize)(stream), 0);
        assert!(reserved() > 0, "less than the threshold stays");
        assert_eq!((memory.cuMemPoolSetAttribute)(pool, 4, (&raw const none).cast()), 0);
        assert_eq!((memory.cuMemPoolTrimTo)(pool, 0), 0);
        assert_eq!(reserved(), 0);
    }
    assert!(pool_value(memory, pool, 6) > 0, "the most that was reserved");
}

fn pools(driver: &Driver) {
    start(driver);
    let (_, function) = load(driver, "add");
    let memory = Memory::of(driver.library);
    let (mut default, mut own, mut current, mut stream) = (0, 0, 0, 0);
    let wanted = PoolProperties {
        kind: 1,
        handle_types: 0,
        location: HERE,
        windows: std::ptr::null_mut(),
        most_bytes: 1 << 20,
        usage: 0,
        reserved: [0; 54],
    };
    // SAFETY: live locals; what is allocated is freed once.
    unsafe {
        assert_eq!((memory.cuDeviceGetDefaultMemPool)(&raw mut default, 0), 0);
        assert_eq!((memory.cuMemPoolCreate)(&raw mut own, &wanted), 0);
        // MEMPOOL_SUPPORTED_HANDLE_TYPES
        let shareable = PoolProperties { handle_types: 1, ..wanted };
        let answer = (memory.cuMemPoolCreate)(&raw mut current, &shareable);
        assert_eq!(answer == 0, attribute(&memory, 119) & 1 != 0, "{answer}");
        // CU_MEM_ALLOCATION_TYPE_MANAGED, CONCURRENT_MANAGED_ACCESS
        let managed = PoolProperties { kind: 2, most_bytes: 0, ..wanted };
        let answer = (memory.cuMemPoolCreate)(&raw mut current, &managed);
        assert_eq!(answer == 801, attribute(&memory, 89) == 0, "{answer}");
        assert_eq!((driver.cuStreamCreate)(&raw mut stream, 1), 0);
        keeps_until_synchronized(driver, &memory, default, stream);
        let threshold = 64u64 << 10;
        assert_eq!((memory.cuMemPoolSetAttribute)(own, 4, (&raw const threshold).cast()), 0);
        assert_eq!(pool_value(&memory, own, 4), threshold);

        // Memory that is used again in stream order holds what the stream wrote last.
        let (mut address, mut words) = (0, vec![0u32; 1000]);
        for round in 0..50u32 {
            assert_eq!((memory.cuMemAllocFromPoolAsync)(&raw mut address, 4000, own, stream), 0);
            assert_eq!((driver.cuMemsetD8Async)(address, 0, 4000, stream), 0);
            assert_eq!(add(driver, function, address, 1000, round, stream), 0);
            if round == 49 {
                assert_eq!((driver.cuStreamSynchronize)(stream), 0);
                words = download(driver, address, 1000);
                assert_eq!(pointer(&memory, 17, address), (0, own as u64));
                assert!(piece(4000).contains(&pool_value(&memory, own, 7)));
            }
            assert_eq!((memory.cuMemFreeAsync)(address, stream), 0);
        }
        assert!(words == vec![49; 1000]);
        assert_eq!((driver.cuStreamSynchronize)(stream), 0);
        assert_eq!(pool_value(&memory, own, 7), 0);
        assert!(piece(4000).contains(&pool_value(&memory, own, 8)));
        assert_eq!((memory.cuMemPoolTrimTo)(own, 0), 0);
        assert_eq!(pool_value(&memory, own, 5), 0);
        let zero = 0u64;
        assert_eq!((memory.cuMemPoolSetAttribute)(own, 8, (&raw const zero).cast()), 0);
        assert_eq!(pool_value(&memory, own, 8), 0);
        assert_eq!((memory.cuMemAllocFromPoolAsync)(&raw mut address, 1 << 30, own, stream), 2, "its limit");

        // The device's pool is the one that was set last.
        assert_eq!((memory.cuDeviceSetMemPool)(0, own), 0);
        assert_eq!((memory.cuDeviceGetMemPool)(&raw mut current, 0), 0);
        assert_eq!(current, own);
        assert_eq!((memory.cuMemAllocAsync)(&raw mut address, 100, stream), 0);
        assert!(piece(100).contains(&pool_value(&memory, own, 7)));
        let mut flags = 0;
        assert_eq!((memory.cuMemPoolGetAccess)(&raw mut flags, own, &HERE), 0);
        assert_eq!(flags, 3);
        assert_eq!((memory.cuMemPoolDestroy)(own), 0);
        assert_eq!((memory.cuMemFreeAsync)(address, stream), 0);
        assert_eq!((memory.cuMemFreeAsync)(address, stream), 1);
        assert_eq!((memory.cuDeviceGetMemPool)(&raw mut current, 0), 0);
        assert_eq!(current, default);
        assert_ne!((memory.cuMemPoolDestroy)(default), 0);
    }
}

fn host_memory(driver: &Driver) {
    start(driver);
    let memory = Memory::of(driver.library);
    let (mut pinned, mut flags, mut device) = (std::ptr::null_mut(), 0, 0);
    let mut own = vec![0u32; 4096];
    // SAFETY: live locals; what is allocated is freed once.
    unsafe {
        assert_eq!((memory.cuMemHostAlloc)(&raw mut pinned, 4096, 1), 0);
        assert_eq!((memory.cuMemHostGetFlags)(&raw mut flags, pinned), 0);
        assert_eq!(flags & 1, 1);
        assert_eq!(pointer(&memory, 2, pinned as u64 + 100), (0, 1));
        assert_eq!(pointer(&memory, 11, pinned as u64 + 100), (0, pinned as u64));
        let address = super::alloc(driver, 4096);
        assert_eq!((pointer(&memory, 2, address + 8), pointer(&memory, 12, address + 8)), ((0, 2), (0, 4096)));
        assert_eq!((pointer(&memory, 8, address), pointer(&memory, 9, address)), ((0, 0), (0, 0)));
        assert_eq!(pointer(&memory, 2, own.as_ptr() as u64).0, 1, "plain host memory is not known");
        upload(driver, address, &[11; 1024]);
        assert_eq!((driver.cuMemcpyDtoH_v2)(pinned, address, 4096), 0);
        assert_eq!(*pinned.cast::<u32>().add(1023), 11);
        let part = own.as_mut_ptr().cast();
        assert_eq!((memory.cuMemHostRegister_v2)(part, 4096, 0), 0);
        assert_eq!((memory.cuMemHostRegister_v2)(part, 4096, 0), 712);
        assert_eq!((memory.cuMemHostUnregister)(part), 0);
        assert_eq!((memory.cuMemHostUnregister)(part), 713);
        // Where mapped and managed memory are said not to work, they do not.
        let mapped = (memory.cuMemHostGetDevicePointer_v2)(&raw mut device, pinned, 0);
        assert_eq!(mapped == 0, attribute(&memory, 19) != 0);
        let managed = (memory.cuMemAllocManaged)(&raw mut device, 4096, 1);
        assert_eq!(managed == 0, attribute(&memory, 83) != 0);
        assert!(!driver.is_ours() || (mapped != 0 && managed != 0));
        assert_eq!((memory.cuMemFreeHost)(pinned), 0);
        assert_eq!((memory.cuMemFreeHost)(pinned), 1);
    }
}
