//! Memory that one worker lends to another one, on a stand-in for the driver's memory of both.

use super::super::loader::{AllocationProperties, Handle, Pointer, Status};
use super::super::{CudaDevice, lock};
use super::{Bench, INVALID_VALUE, MATMUL};
use crate::device::Device;
use crate::peer::{Borrower, Part};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What all processes together have of the card.
struct Card {
    next: u64,
    /// Handles, and the physical memory that each names.
    handles: BTreeMap<u64, u64>,
    /// What is mapped: process and address, and the physical memory.
    mapped: BTreeMap<(usize, u64), u64>,
}

static CARD: Mutex<Card> = Mutex::new(Card { next: 0, handles: BTreeMap::new(), mapped: BTreeMap::new() });

impl Card {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn name(&mut self, physical: u64) -> u64 {
        let handle = self.number();
        self.handles.insert(handle, physical);
        handle
    }
}

thread_local! {
    /// The context, which stands for the process here.
    static PROCESS: Cell<usize> = const { Cell::new(0) };
}

pub unsafe extern "C" fn context_set(context: Handle) -> Status {
    PROCESS.set(context.addr());
    0
}

pub unsafe extern "C" fn address_reserve(at: *mut Pointer, _: usize, _: usize, wish: Pointer, _: u64) -> Status {
    // SAFETY: the caller's local.
    unsafe { *at = wish };
    0
}

pub unsafe extern "C" fn granularity(chunk: *mut usize, _: *const AllocationProperties, _: c_int) -> Status {
    // SAFETY: the caller's local.
    unsafe { *chunk = CHUNK as usize };
    0
}

pub unsafe extern "C" fn memory_create(
    handle: *mut u64,
    _: usize,
    properties: *const AllocationProperties,
    _: u64,
) -> Status {
    // SAFETY: the caller's.
    if unsafe { (*properties).handle_types } != 1 {
        return INVALID_VALUE;
    }
    let mut card = lock(&CARD);
    let physical = card.number();
    // SAFETY: the caller's local.
    unsafe { *handle = card.name(physical) };
    0
}

pub unsafe extern "C" fn memory_release(handle: u64) -> Status {
    if lock(&CARD).handles.remove(&handle).is_some() { 0 } else { INVALID_VALUE }
}

pub unsafe extern "C" fn memory_export(descriptor: *mut c_void, handle: u64, kind: c_int, _: u64) -> Status {
    let physical = lock(&CARD).handles.get(&handle).copied();
    let Some(physical) = physical.filter(|_| kind == 1) else { return INVALID_VALUE };
    // SAFETY: a literal name; the descriptor is nobody else's.
    let mut file = unsafe { File::from_raw_fd(libc::memfd_create(c"piece".as_ptr(), libc::MFD_CLOEXEC)) };
    file.write_all(&physical.to_le_bytes()).expect("written");
    // SAFETY: the caller's local.
    unsafe { *descriptor.cast::<c_int>() = file.into_raw_fd() };
    0
}

pub unsafe extern "C" fn memory_import(handle: *mut u64, descriptor: *mut c_void, _: c_int) -> Status {
    // SAFETY: the caller's descriptor, which it keeps.
    let file =
        unsafe { BorrowedFd::borrow_raw(descriptor.addr() as c_int) }.try_clone_to_owned().expect("a descriptor");
    let (mut file, mut physical) = (File::from(file), [0; 8]);
    file.rewind().expect("a file");
    file.read_exact(&mut physical).expect("read");
    // SAFETY: the caller's local.
    unsafe { *handle = lock(&CARD).name(u64::from_le_bytes(physical)) };
    0
}

pub unsafe extern "C" fn memory_map(at: Pointer, _: usize, _: usize, handle: u64, _: u64) -> Status {
    let mut card = lock(&CARD);
    let Some(physical) = card.handles.get(&handle).copied() else { return INVALID_VALUE };
    if card.mapped.insert((PROCESS.get(), at), physical).is_some() { INVALID_VALUE } else { 0 }
}

pub unsafe extern "C" fn memory_unmap(at: Pointer, _: usize) -> Status {
    if lock(&CARD).mapped.remove(&(PROCESS.get(), at)).is_some() { 0 } else { INVALID_VALUE }
}

const CHUNK: u64 = 2 << 20;

/// A worker to which memory is lent, without a line in between.
struct Other {
    device: Arc<CudaDevice>,
    refuses: AtomicBool,
    ended: AtomicBool,
    given: AtomicU64,
    has: Mutex<BTreeSet<u64>>,
}

impl Borrower for Other {
    fn give(&self, part: Part, memory: BorrowedFd<'_>) -> io::Result<()> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(io::Error::other("no"));
        }
        // The other worker has a thread for this.
        let (device, memory) = (Arc::clone(&self.device), memory.try_clone_to_owned()?);
        let taken = std::thread::spawn(move || device.borrow(part, memory)).join().expect("no panic");
        taken.map_err(|error| io::Error::other(error.to_string()))?;
        self.given.fetch_add(1, Ordering::SeqCst);
        lock(&self.has).insert(part.address);
        Ok(())
    }

    fn take_back(&self, address: u64, done: Box<dyn FnOnce() + Send>) {
        lock(&self.has).remove(&address);
        let device = Arc::clone(&self.device);
        std::thread::spawn(move || device.give_back(address, done)).join().expect("no panic");
    }

    fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

/// Two workers, of which the first has a range; their numbers are the test's own.
struct Pair {
    owner: Bench,
    reader: super::Bench,
    other: Arc<Other>,
    numbers: [usize; 2],
    base: u64,
}

impl Pair {
    fn new(numbers: [usize; 2]) -> Pair {
        let [owner, mut reader] = numbers.map(Bench::in_context);
        let base = (numbers[0] as u64) << 40;
        owner.device.shared.shares.store(true, Ordering::SeqCst);
        owner.device.reserve(base, 64 * CHUNK).expect("a range");
        // The reader's streams are the bench's, and its device the borrower's.
        let device = std::mem::replace(&mut reader.device, Bench::in_context(0).device);
        let other = Other {
            device: Arc::new(device),
            refuses: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            given: AtomicU64::new(0),
            has: Mutex::default(),
        };
        Pair { owner, reader, other: Arc::new(other), numbers, base }
    }

    fn lend(&self) -> crate::CudaResult<()> {
        self.owner.device.lend(Arc::clone(&self.other) as Arc<dyn Borrower>)
    }

    /// What both have mapped, in chunks from the beginning: the same memory at the same addresses, or the test fails.
    fn mapped(&self) -> [Vec<u64>; 2] {
        let card = lock(&CARD);
        let of = |number: usize| -> BTreeMap<u64, u64> {
            let all = card.mapped.range((number, self.base)..(number, self.base + 64 * CHUNK));
            all.map(|((_, at), physical)| ((at - self.base) / CHUNK, *physical)).collect()
        };
        let [owner, other] = self.numbers.map(of);
        for (at, physical) in &other {
            assert!(owner.get(at).is_none_or(|own| own == physical), "other memory at {at}");
        }
        [owner, other].map(|mapped| mapped.into_keys().collect())
    }

    fn until(&self, owner: &[u64], other: &[u64]) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.mapped() != [owner, other] {
            assert!(Instant::now() < deadline, "{:?} instead of {owner:?} and {other:?}", self.mapped());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn alloc(&self, chunk: u64, bytes: u64) {
        self.owner.device.alloc(self.base + chunk * CHUNK, bytes).expect("allocated");
    }

    fn free(&self, chunk: u64) {
        self.owner.device.free(self.base + chunk * CHUNK, Box::new(|_| ())).expect("freed");
    }

    fn backing(&self) -> u64 {
        self.owner.device.backing().expect("measured")
    }
}

#[test]
fn a_piece_is_lent_as_long_as_it_is_allocated_and_comes_back_before_it_is_gone() {
    let pair = Pair::new([101, 102]);
    pair.alloc(0, 3 * CHUNK);
    pair.lend().expect("lent");
    assert_eq!(pair.mapped(), [vec![0], vec![0]], "what there was");
    pair.alloc(5, 100);
    assert_eq!(pair.mapped(), [vec![0, 5], vec![0, 5]], "what is allocated later, when the call returns");
    pair.owner.device.alloc(pair.base + 5 * CHUNK + 512, 100).expect("on the same piece");
    assert_eq!(pair.other.given.load(Ordering::SeqCst), 2, "no piece is given twice");
    // The other worker's kernels may use it: it stays there until they have run, and counts here.
    let number = Arc::clone(&pair.other);
    let function = crate::FunctionRef { module: crate::ModuleId(1), index: MATMUL };
    number.device.launch(super::STREAMS[0], function, super::config()).expect("launched");
    pair.free(0);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!((pair.mapped(), pair.backing()), ([vec![0, 5], vec![0, 5]], 4 * CHUNK));
    // Allocated anew meanwhile, it stays for good.
    pair.alloc(0, 3 * CHUNK);
    assert_eq!(number.given.load(Ordering::SeqCst), 3);
    pair.reader.lanes[0].end(1);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!((pair.mapped(), pair.backing()), ([vec![0, 5], vec![0, 5]], 4 * CHUNK));
    pair.free(0);
    pair.until(&[5], &[5]);
    assert_eq!((pair.backing(), &*lock(&number.has)), (CHUNK, &BTreeSet::from([pair.base + 5 * CHUNK])));
}

#[test]
fn parked_memory_is_with_nobody_else_and_is_lent_again_afterwards() {
    let pair = Pair::new([103, 104]);
    pair.alloc(2, 2 * CHUNK);
    pair.lend().expect("lent");
    assert_eq!(pair.mapped(), [vec![2], vec![2]]);
    pair.owner.device.recall();
    assert_eq!(pair.mapped(), [vec![2], vec![]]);
    pair.owner.device.park().expect("parked");
    assert_eq!((pair.mapped(), pair.backing()), ([vec![], vec![]], 0));
    pair.owner.device.unpark().expect("back");
    assert_eq!(pair.mapped(), [vec![2], vec![2]]);
}

#[test]
fn who_cannot_take_what_is_lent_has_nothing() {
    let pair = Pair::new([105, 106]);
    pair.alloc(0, CHUNK);
    pair.other.refuses.store(true, Ordering::SeqCst);
    assert_eq!(pair.lend().expect_err("refused").code, crate::code::PEER_ACCESS_UNSUPPORTED);
    assert!(pair.other.ended.load(Ordering::SeqCst));
    pair.other.refuses.store(false, Ordering::SeqCst);
    pair.lend().expect("another try");
    assert_eq!(pair.mapped(), [vec![0], vec![0]]);
    pair.other.refuses.store(true, Ordering::SeqCst);
    pair.alloc(1, CHUNK);
    assert_eq!((pair.mapped(), pair.other.given.load(Ordering::SeqCst)), ([vec![0, 1], vec![0]], 1));
}
