//! A device's address space: a reserved range of this process, of which only allocated bytes can be touched.

use std::io;
use std::ops::{Deref, Range};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

/// The granularity of [`Arena::map`].
pub const PAGE: u64 = 4096;

/// What the addresses of [`Arena::allocate`] are multiples of: of each granule, the bytes up to some end are allocated.
pub const GRANULE: u64 = 512;
const GRANULES: u64 = PAGE / GRANULE;

/// The size of a large page of the host.
const HUGE: u64 = 2 << 20;

/// `base..base+len`, reserved without access.  Device pointers are host addresses in it.
///
/// A launch holds the arena: [`Arena::attach`] and [`Arena::unmap`] wait for launches in flight, [`Arena::discard`] does not.
///
/// An arena that [`Arena::reserve_shared`] made lies in a file, its tables behind its bytes: another process that has the
/// file [views](Arena::view) it at the same addresses, and reaches there what is allocated now.
pub struct Arena {
    base: u64,
    len: u64,
    /// One bit a page: mapped.
    pages: Table<AtomicU64>,
    /// One bit a page: all of its bytes are allocated.
    whole: Table<AtomicU64>,
    /// For each granule of the other pages, how many of its bytes are allocated.
    ends: Table<AtomicU16>,
    /// One bit a page: its bytes are not the arena's own ([`Arena::attach`]).
    attached: Table<AtomicU64>,
    file: Option<OwnedFd>,
    in_use: RwLock<()>,
    /// Arenas of other processes whose bytes count as this one's.
    views: RwLock<Vec<Arc<Arena>>>,
    has_views: AtomicBool,
}

/// Atomic integers, zero at first; the system provides memory for those that are written.
struct Table<T> {
    start: *mut T,
    count: usize,
}

// SAFETY: atomic integers, reached through shared references alone.
unsafe impl<T: Sync> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Table<T> {}

impl<T> Table<T> {
    fn bytes(count: u64) -> u64 {
        (count * size_of::<T>() as u64).next_multiple_of(PAGE)
    }

    /// So many of them, in memory of this process or behind the bytes of a file up to `*place`, which moves on.
    fn map(count: u64, file: Option<BorrowedFd<'_>>, place: &mut u64) -> io::Result<Table<T>> {
        let bytes = Self::bytes(count) as usize;
        let (kind, descriptor) =
            file.map_or((libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1), |file| (libc::MAP_SHARED, file.as_raw_fd()));
        let (access, offset) = (libc::PROT_READ | libc::PROT_WRITE, file.map_or(0, |_| *place));
        let flags = kind | libc::MAP_NORESERVE;
        // SAFETY: a fresh mapping, of whole pages that start as zeros.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, descriptor, offset as i64) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        *place += bytes as u64;
        Ok(Table { start: start.cast(), count: count as usize })
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: mapped for this value's life; any bits are an atomic integer.
        unsafe { std::slice::from_raw_parts(self.start, self.count) }
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and nobody can hold a borrow of it any more.
        unsafe { libc::munmap(self.start.cast(), Self::bytes(self.count as u64) as usize) };
    }
}

/// The numbers of an arena's tables: pages (three times) in words of bits, then granules.
fn sizes(len: u64) -> (u64, u64) {
    ((len / PAGE).div_ceil(64), len / GRANULE)
}

/// How long the file of an arena is.
fn file_bytes(len: u64) -> u64 {
    let (words, granules) = sizes(len);
    len + 3 * Table::<AtomicU64>::bytes(words) + Table::<AtomicU16>::bytes(granules)
}

impl Arena {
    /// Reserves the range at exactly this address; fails if anything is mapped in it.  Both numbers are multiples of
    /// 4096.
    pub fn reserve(base: u64, len: u64) -> io::Result<Arena> {
        Arena::make(base, len, None, libc::PROT_NONE)
    }

    /// The same, in a file that other processes can be given ([`Arena::file`]).
    pub fn reserve_shared(base: u64, len: u64) -> io::Result<Arena> {
        // SAFETY: a literal name and a flag.
        let descriptor = unsafe { libc::memfd_create(c"device-memory".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: fresh, and nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // SAFETY: an open descriptor; the file has no memory behind what is not written.
        if unsafe { libc::ftruncate(descriptor, file_bytes(len) as i64) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Arena::make(base, len, Some(file), libc::PROT_NONE)
    }

    /// Another process's arena at its own addresses, by its file. Nothing can be allocated there from here.
    pub fn view(base: u64, len: u64, file: OwnedFd) -> io::Result<Arena> {
        // SAFETY: zeros are a valid value.
        let mut about: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: an open descriptor and a live local.
        if unsafe { libc::fstat(file.as_raw_fd(), &raw mut about) } != 0 {
            return Err(io::Error::last_os_error());
        }
        if len >= 1 << 47 || about.st_size as u64 != file_bytes(len) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an arena's file"));
        }
        Arena::make(base, len, Some(file), libc::PROT_READ | libc::PROT_WRITE)
    }

    fn make(base: u64, len: u64, file: Option<OwnedFd>, access: i32) -> io::Result<Arena> {
        let invalid = |message: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        if base == 0 || len == 0 || !base.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) {
            return invalid("base and length must be multiples of the page size, and not zero");
        }
        if base.checked_add(len).is_none_or(|end| end > 1 << 47) {
            return invalid("the range leaves the address space of a process");
        }
        // SAFETY: MAP_FIXED_NOREPLACE never replaces an existing mapping, so no memory of ours changes.
        let got = unsafe { map_bytes((base, len), access, libc::MAP_FIXED_NOREPLACE, file.as_ref(), 0) };
        if got == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if got as u64 != base {
            // A kernel that does not know the flag takes the address as a hint.
            // SAFETY: the range was just mapped here and nothing refers to it.
            unsafe { libc::munmap(got, len as usize) };
            return Err(io::Error::from(io::ErrorKind::AddrInUse));
        }
        let tables = || {
            let ((words, granules), mut place, file) = (sizes(len), len, file.as_ref().map(AsFd::as_fd));
            let mut bits = || Table::map(words, file, &mut place);
            let (pages, whole, attached) = (bits()?, bits()?, bits()?);
            Ok((pages, whole, attached, Table::map(granules, file, &mut place)?))
        };
        let (pages, whole, attached, ends) = tables().inspect_err(|_: &io::Error| {
            // SAFETY: the range was just mapped here and nothing refers to it.
            unsafe { libc::munmap(got, len as usize) };
        })?;
        let (in_use, views, has_views) = Default::default();
        Ok(Arena { base, len, pages, whole, ends, attached, file, in_use, views, has_views })
    }

    /// What [`Arena::view`] takes; nothing of an arena that is this process's alone.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    fn views(&self) -> RwLockReadGuard<'_, Vec<Arc<Arena>>> {
        self.views.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on what is allocated in the view may be used as if it were here.
    pub fn add_view(&self, view: Arena) {
        self.views.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(view));
        self.has_views.store(true, Ordering::Release);
    }

    /// Ends the view of the arena that begins there, when no launch or copy is under way.
    pub fn end_view(&self, base: u64) {
        loop {
            // Waiting for the lock would have launches wait that those under way may wait for.
            if let Ok(_alone) = self.in_use.try_write() {
                self.views.write().unwrap_or_else(PoisonError::into_inner).retain(|view| view.base != base);
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The view in which these bytes are allocated.
    #[cold]
    fn view_of(&self, addr: u64, len: u64) -> Option<Arc<Arena>> {
        let views = self.views();
        let found = views.iter().find(|view| view.contains(addr, len) && !view.is_attached(addr, len))?;
        Some(Arc::clone(found))
    }

    /// Whether any of the pages is another file's.
    fn is_attached(&self, addr: u64, len: u64) -> bool {
        let offset = addr - self.base;
        (offset / PAGE..(offset + len.max(1)).div_ceil(PAGE)).any(|page| bit(&self.attached, page))
    }

    /// Where the range begins.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// How long the range is.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.pages.iter().all(|w| w.load(Ordering::Relaxed) == 0)
    }

    fn span(&self, addr: u64, len: u64) -> io::Result<(u64, u64)> {
        let inside = addr >= self.base && addr.checked_add(len).is_some_and(|end| end <= self.base + self.len);
        if len == 0 || !inside || !addr.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not whole pages of the arena"));
        }
        Ok(((addr - self.base) / PAGE, len / PAGE))
    }

    /// Makes whole pages usable; new pages are zero.  Pages already mapped keep their contents.
    pub fn map(&self, addr: u64, len: u64) -> io::Result<()> {
        let (first, count) = self.span(addr, len)?;
        let parts = self.in_parts(first, count);
        self.back(addr, len)?;
        self.fill_pages(first, count, parts);
        Ok(())
    }

    /// Makes exactly these bytes usable, beside what else is on their pages; new pages are zero.  The address is a multiple
    /// of [`GRANULE`].  Two threads may not change what is on the same page at the same time, here or in [`Arena::share`].
    pub fn allocate(&self, addr: u64, bytes: u64) -> io::Result<()> {
        let end = addr.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(PAGE));
        let end = end.filter(|_| addr.is_multiple_of(GRANULE) && bytes > 0);
        let end =
            end.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not where an allocation may begin"))?;
        let from = addr / PAGE * PAGE;
        let (first, last) = (addr.next_multiple_of(PAGE), (addr + bytes) / PAGE * PAGE);
        let (filled, count) = (first.wrapping_sub(self.base) / PAGE, last.saturating_sub(first) / PAGE);
        self.span(from, end - from)?;
        let parts = self.in_parts(filled, count);
        self.back(from, end - from)?;
        self.fill_pages(filled, count, parts);
        let mut ends = vec![from, last];
        ends.dedup();
        for page in ends.into_iter().filter(|page| !(first..last).contains(page) && *page < addr + bytes) {
            let page = (page - self.base) / PAGE;
            if bit(&self.whole, page) {
                continue;
            }
            let wanted = self.parts(page, addr..addr + bytes);
            for (end, bytes) in self.granules(page).iter().zip(wanted) {
                end.fetch_max(bytes, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Makes exactly these ranges of a mapped page usable, and nothing else of it.
    pub fn share(&self, page: u64, ranges: &[Range<u64>]) -> io::Result<()> {
        let (page, _) = self.span(page, PAGE)?;
        let mut wanted = [0; GRANULES as usize];
        for range in ranges {
            let own = self.parts(page, range.clone());
            wanted.iter_mut().zip(own).for_each(|(all, own)| *all = own.max(*all));
        }
        self.granules(page).iter().zip(wanted).for_each(|(end, bytes)| end.store(bytes, Ordering::Release));
        mark(&self.whole, page, 1, false);
        Ok(())
    }

    /// How many bytes of each of a page's granules lie in a range.
    fn parts(&self, page: u64, range: Range<u64>) -> [u16; GRANULES as usize] {
        let start = self.base + page * PAGE;
        std::array::from_fn(|index| {
            let granule = start + index as u64 * GRANULE;
            let begins = range.start < granule + GRANULE;
            if begins { range.end.saturating_sub(granule).min(GRANULE) as u16 } else { 0 }
        })
    }

    fn granules(&self, page: u64) -> &[AtomicU16] {
        &self.ends[(page * GRANULES) as usize..][..GRANULES as usize]
    }

    /// Puts memory behind whole pages that nobody may use yet.
    fn back(&self, addr: u64, len: u64) -> io::Result<()> {
        let (first, count) = self.span(addr, len)?;
        // SAFETY: the pages lie in the range that `reserve` mapped for this arena alone.
        let rc = unsafe { libc::mprotect(addr as *mut _, len as usize, libc::PROT_READ | libc::PROT_WRITE) };
        if rc != 0 {
            return Err(io::Error::last_os_error());
        }
        if len >= HUGE {
            // Kernels walk down columns: a page of the host for each row costs more than the data.
            // SAFETY: advice about pages that are the arena's.
            unsafe { libc::madvise(addr as *mut _, len as usize, libc::MADV_HUGEPAGE) };
        }
        mark(&self.pages, first, count, true);
        Ok(())
    }

    /// Makes whole pages usable that are the file's from `offset` on: the same pages may appear at other addresses.
    pub fn attach(&self, addr: u64, len: u64, file: BorrowedFd<'_>, offset: u64) -> io::Result<()> {
        let (first, count) = self.span(addr, len)?;
        let _alone = self.in_use.write().unwrap_or_else(|e| e.into_inner());
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the pages are the arena's; the lock shows that no launch or copy is using them.
        let got = unsafe { libc::mmap(addr as *mut _, len as usize, access, flags, file.as_raw_fd(), offset as i64) };
        if got == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let parts = self.in_parts(first, count);
        mark(&self.attached, first, count, true);
        mark(&self.pages, first, count, true);
        self.fill_pages(first, count, parts);
        Ok(())
    }

    /// Gives whole pages back to the system.  Waits for launches and copies in flight.
    pub fn unmap(&self, addr: u64, len: u64) -> io::Result<()> {
        let (first, count) = self.span(addr, len)?;
        let _alone = self.in_use.write().unwrap_or_else(|e| e.into_inner());
        self.withdraw(first, count);
        if self.file.is_some() {
            self.forget(addr, len)?;
        }
        // SAFETY: the pages are the arena's; the lock shows that no launch or copy is using them.
        let got =
            unsafe { map_bytes((addr, len), libc::PROT_NONE, libc::MAP_FIXED, self.file.as_ref(), addr - self.base) };
        if got == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        mark(&self.attached, first, count, false);
        Ok(())
    }

    /// Makes whole pages unusable and gives their memory back, whatever runs: a launch in flight that had found them usable
    /// meets zeros there. Not for pages that were [`Arena::attach`]ed.
    pub fn discard(&self, addr: u64, len: u64) -> io::Result<()> {
        let (first, count) = self.span(addr, len)?;
        self.withdraw(first, count);
        if self.file.is_some() {
            return self.forget(addr, len);
        }
        // SAFETY: the pages are the arena's own; they stay mapped, so that no access to them can fail.
        let rc = unsafe { libc::madvise(addr as *mut _, len as usize, libc::MADV_DONTNEED) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Gives the memory behind these bytes of the arena's file back; they are zeros from now on.
    fn forget(&self, addr: u64, len: u64) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let (hole, offset) = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, addr - self.base);
        // SAFETY: an open descriptor, and bytes of the file that are the arena's.
        let rc = unsafe { libc::fallocate(file.as_raw_fd(), hole, offset as i64, len as i64) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Makes mapped pages usable as a whole; `parts` are those of them that were used in parts.
    fn fill_pages(&self, first: u64, count: u64, parts: Vec<u64>) {
        mark(&self.whole, first, count, true);
        // Whole pages say nothing of their granules.
        parts.into_iter().for_each(|page| self.clear_granules(page));
    }

    /// Makes pages unusable.
    fn withdraw(&self, first: u64, count: u64) {
        self.in_parts(first, count).into_iter().for_each(|page| self.clear_granules(page));
        mark(&self.whole, first, count, false);
        mark(&self.pages, first, count, false);
    }

    /// Those pages of which parts may be allocated: mapped, and not wholly allocated.
    fn in_parts(&self, first: u64, count: u64) -> Vec<u64> {
        let words = first / 64..(first + count).div_ceil(64);
        let words = words.map(|word| (word, self.pages[word as usize].load(Ordering::Relaxed)));
        let words = words.map(|(word, mapped)| (word, mapped & !self.whole[word as usize].load(Ordering::Relaxed)));
        let pages = words
            .filter(|(_, parts)| *parts != 0)
            .flat_map(|(word, parts)| (0..64).filter(move |bit| parts >> bit & 1 == 1).map(move |bit| word * 64 + bit));
        pages.filter(|page| (first..first + count).contains(page)).collect()
    }

    fn clear_granules(&self, page: u64) {
        self.granules(page).iter().for_each(|end| end.store(0, Ordering::Release));
    }

    /// Whether all of these bytes are allocated.
    #[inline]
    pub fn contains(&self, addr: u64, len: u64) -> bool {
        let (offset, len) = (addr.wrapping_sub(self.base), len.max(1));
        if offset >= self.len || len > self.len - offset {
            return offset >= self.len && self.has_views.load(Ordering::Relaxed) && self.view_of(addr, len).is_some();
        }
        let (mut at, end) = (offset, offset + len);
        while at < end {
            let page = at / PAGE;
            let next = if bit(&self.whole, page) { (page + 1) * PAGE } else { (at / GRANULE + 1) * GRANULE };
            if !bit(&self.whole, page) && !self.within(at, end.min(next) - at) {
                return false;
            }
            at = next;
        }
        true
    }

    /// Whether bytes of one granule are allocated.
    #[inline(always)]
    fn within(&self, offset: u64, len: u64) -> bool {
        let end = self.ends[(offset / GRANULE) as usize].load(Ordering::Relaxed);
        offset % GRANULE + len <= u64::from(end)
    }

    /// Whether an aligned access, of at most a granule, is to allocated bytes.
    #[inline(always)]
    pub(crate) fn touches(&self, addr: u64, len: u64) -> bool {
        let offset = addr.wrapping_sub(self.base);
        if offset < self.len {
            return bit(&self.whole, offset / PAGE) || self.within(offset, len);
        }
        self.has_views.load(Ordering::Relaxed) && self.view_of(addr, len).is_some()
    }

    /// The allocated bytes around an allocated address, at most 128 MiB to either side.
    pub(crate) fn run(&self, addr: u64) -> (u64, u64) {
        const FAR: u64 = (128 << 20) / PAGE;
        if addr.wrapping_sub(self.base) >= self.len {
            let Some(view) = self.view_of(addr, 1) else { return (addr, addr) };
            let (low, end) = view.run(addr);
            let page = addr / PAGE * PAGE;
            // Pages of another file among them are none of the view's.
            let own = !view.is_attached(low, end - low);
            return if own { (low, end) } else { (low.max(page), end.min(page + PAGE)) };
        }
        let offset = addr - self.base;
        let here = offset / PAGE;
        let all = |word: u64| self.whole[word as usize].load(Ordering::Relaxed) == u64::MAX;
        // In its own page, and on to the pages beside it where it goes on.
        let (mut first, mut end) = (here, here + 1);
        let (low, high) = if bit(&self.whole, here) { (0, PAGE) } else { self.run_in_page(here, offset % PAGE) };
        if low == 0 {
            while first > 0 && here - first < FAR {
                if first.is_multiple_of(64) && all(first / 64 - 1) {
                    first -= 64;
                } else if bit(&self.whole, first - 1) {
                    first -= 1;
                } else {
                    break;
                }
            }
        }
        let last = self.len / PAGE;
        if high == PAGE {
            while end < last && end - here < FAR {
                if end.is_multiple_of(64) && end + 64 <= last && all(end / 64) {
                    end += 64;
                } else if bit(&self.whole, end) {
                    end += 1;
                } else {
                    break;
                }
            }
        }
        // What is allocated of the pages at the ends.
        let before = if low == 0 && first > 0 { PAGE - self.run_in_page(first - 1, PAGE).0 } else { 0 };
        let behind = if high == PAGE && end < last { self.run_in_page(end, 0).1 } else { 0 };
        (self.base + first * PAGE + low - before, self.base + (end - 1) * PAGE + high + behind)
    }

    /// The allocated bytes around a place in a page that is not wholly allocated: the place itself where there are none.
    fn run_in_page(&self, page: u64, place: u64) -> (u64, u64) {
        let ends: Vec<u64> = self.granules(page).iter().map(|end| u64::from(end.load(Ordering::Relaxed))).collect();
        let granule = |at: u64| ends.get((at / GRANULE) as usize).copied().unwrap_or(0);
        let (mut low, mut high) = (place, place);
        if granule(place) > place % GRANULE {
            low = place / GRANULE * GRANULE;
            high = low + granule(place);
        }
        while low > 0 && low.is_multiple_of(GRANULE) && granule(low - 1) == GRANULE {
            low -= GRANULE;
        }
        while high < PAGE && high.is_multiple_of(GRANULE) && granule(high) > 0 {
            high += granule(high);
        }
        (low, high)
    }

    /// Holds the arena for use: nothing is unmapped meanwhile.
    pub(crate) fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.in_use.read().unwrap_or_else(|e| e.into_inner())
    }

    fn checked(&self, addr: u64, len: usize) -> io::Result<()> {
        if len == 0 || self.contains(addr, len as u64) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{addr:#x}+{len} is not allocated")))
    }

    /// Copies from the arena.
    pub fn read(&self, addr: u64, out: &mut [u8]) -> io::Result<()> {
        let _held = self.hold();
        self.checked(addr, out.len())?;
        // SAFETY: the bytes are mapped and stay so while the arena is held; `out` is ours.
        unsafe { std::ptr::copy_nonoverlapping(addr as *const u8, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    /// Copies into the arena.
    pub fn write(&self, addr: u64, data: &[u8]) -> io::Result<()> {
        let _held = self.hold();
        self.checked(addr, data.len())?;
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), addr as *mut u8, data.len()) };
        Ok(())
    }

    /// Copies within the arena; the ranges may overlap.
    pub fn copy(&self, to: u64, from: u64, len: usize) -> io::Result<()> {
        let _held = self.hold();
        self.checked(from, len)?;
        self.checked(to, len)?;
        // SAFETY: both ranges are mapped and stay so while the arena is held.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, len) };
        Ok(())
    }

    /// Fills with a repeated pattern of 1, 2, 4 or 8 bytes.
    pub fn fill(&self, addr: u64, pattern: &[u8], count: usize) -> io::Result<()> {
        let _held = self.hold();
        let len = pattern.len().checked_mul(count).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.checked(addr, len)?;
        for i in 0..count {
            // SAFETY: as in `write`.
            unsafe {
                let to = (addr as *mut u8).add(i * pattern.len());
                std::ptr::copy_nonoverlapping(pattern.as_ptr(), to, pattern.len());
            }
        }
        Ok(())
    }
}

/// Puts bytes of a file, or none yet, at addresses.
///
/// # Safety
/// What lies there may be replaced, unless the flags keep it.
unsafe fn map_bytes(
    (addr, len): (u64, u64),
    access: i32,
    flags: i32,
    file: Option<&OwnedFd>,
    offset: u64,
) -> *mut libc::c_void {
    let kind = if file.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS };
    let (descriptor, offset) = file.map_or((-1, 0), |file| (file.as_raw_fd(), offset));
    let flags = flags | kind | libc::MAP_NORESERVE;
    // SAFETY: as the caller's.
    unsafe { libc::mmap(addr as *mut _, len as usize, access, flags, descriptor, offset as i64) }
}

/// Sets the bits of these pages.
fn mark(bits: &[AtomicU64], first: u64, count: u64, set: bool) {
    let (mut at, end) = (first, first + count);
    while at < end {
        let (word, bit) = ((at / 64) as usize, at % 64);
        let take = (64 - bit).min(end - at);
        let mask = if take == 64 { u64::MAX } else { ((1 << take) - 1) << bit };
        if set {
            bits[word].fetch_or(mask, Ordering::Release);
        } else {
            bits[word].fetch_and(!mask, Ordering::Release);
        }
        at += take;
    }
}

#[inline(always)]
fn bit(bits: &[AtomicU64], page: u64) -> bool {
    // A page of the arena is in the map: `reserve` sized it so.
    bits[(page / 64) as usize].load(Ordering::Relaxed) >> (page % 64) & 1 == 1
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the arena owns the range, and nobody can hold a borrow of it any more.
        unsafe { libc::munmap(self.base as *mut _, self.len as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As two processes have it, in one: an arena in a range, and its view in another, by the same file.
    #[test]
    fn a_view_has_what_is_allocated_now_and_nothing_of_other_files() {
        let (base, len) = (0x1_6300_0000_0000 >> 4, 4u64 << 20);
        let owner = Arena::reserve_shared(base, len).unwrap();
        owner.allocate(base, 2 * PAGE + 100).unwrap();
        owner.write(base + 40, &[7; 100]).unwrap();
        let file = owner.file().unwrap().try_clone_to_owned().unwrap();
        assert!(Arena::view(base, len, file.try_clone().unwrap()).is_err(), "the addresses are taken here");
        assert!(Arena::view(base + len, 2 * len, file.try_clone().unwrap()).is_err(), "not of this length");
        // Its addresses differ from the owner's here, so that what it reaches is named by where it lies.
        let (at, here) = (base + len, Arena::reserve(base + 2 * len, len).unwrap());
        assert!(!here.contains(at, 1));
        here.add_view(Arena::view(at, len, file).unwrap());
        let mut bytes = [0; 100];
        here.read(at + 40, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 100]);
        here.write(at + 2 * PAGE, &[8; 100]).unwrap();
        owner.read(base + 2 * PAGE, &mut bytes).unwrap();
        assert_eq!(bytes, [8; 100]);
        assert!(here.touches(at + 2 * PAGE + 96, 4) && !here.touches(at + 2 * PAGE + 100, 4));
        assert!(here.contains(at, 2 * PAGE + 100) && !here.contains(at, 2 * PAGE + 101));
        assert_eq!(here.run(at + PAGE), (at, at + 2 * PAGE + 100));
        owner.allocate(base + 8 * PAGE, PAGE).unwrap();
        assert!(here.contains(at + 8 * PAGE, PAGE), "what is allocated later is there, too");
        owner.discard(base, 2 * PAGE).unwrap();
        assert!(!here.contains(at, 1) && here.contains(at + 2 * PAGE, 100));
        // What the owner maps of another file the view does not have.
        // SAFETY: a literal name.
        let other = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC)) };
        // SAFETY: an open descriptor.
        assert_eq!(unsafe { libc::ftruncate(other.as_raw_fd(), PAGE as i64) }, 0);
        owner.attach(base + 9 * PAGE, PAGE, other.as_fd(), 0).unwrap();
        assert!(owner.contains(base + 8 * PAGE, 2 * PAGE) && !here.contains(at + 8 * PAGE, 2 * PAGE));
        assert!(!here.touches(at + 9 * PAGE, 4));
        assert_eq!(here.run(at + 8 * PAGE), (at + 8 * PAGE, at + 9 * PAGE));
        owner.unmap(base + 9 * PAGE, PAGE).unwrap();
        owner.allocate(base + 9 * PAGE, PAGE).unwrap();
        assert!(here.contains(at + 8 * PAGE, 2 * PAGE));
        here.end_view(at);
        assert!(!here.contains(at + 8 * PAGE, 1));
        drop(Arena::reserve(at, len).unwrap());
    }

    /// Kernels may wait for one that begins later: nothing may stop it.
    #[test]
    fn memory_is_given_back_while_a_launch_runs_and_another_begins() {
        let arena = Arena::reserve(0x1_6200_0000_0000 >> 4, 1 << 20).unwrap();
        let at = arena.base();
        arena.allocate(at, 3 * PAGE).unwrap();
        arena.write(at, &[7; 100]).unwrap();
        let running = arena.hold();
        arena.discard(at, 3 * PAGE).unwrap();
        assert!(!arena.contains(at, 1) && arena.in_use.try_read().is_ok());
        arena.allocate(at, 100).unwrap();
        drop(running);
        let mut bytes = [1; 100];
        arena.read(at, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 100]);
    }
}
