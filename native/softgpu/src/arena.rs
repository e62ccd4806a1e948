//! A device's address space: a reserved range of this process, of which only mapped pages can be touched.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{RwLock, RwLockReadGuard};

/// The granularity of [`Arena::map`].
pub const PAGE: u64 = 4096;

/// The size of a large page of the host.
const HUGE: u64 = 2 << 20;

/// `base..base+len`, reserved without access.  Device pointers are host addresses in it.
///
/// A launch holds the arena: [`Arena::unmap`] waits for launches in flight, as `cuMemFree` does.
pub struct Arena {
    base: u64,
    len: u64,
    /// One bit a page: mapped.
    pages: Box<[AtomicU64]>,
    in_use: RwLock<()>,
}

impl Arena {
    /// Reserves the range at exactly this address; fails if anything is mapped in it.  Both numbers are multiples of
    /// 4096.
    pub fn reserve(base: u64, len: u64) -> io::Result<Arena> {
        let invalid = |message: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        if base == 0 || len == 0 || !base.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) {
            return invalid("base and length must be multiples of the page size, and not zero");
        }
        if base.checked_add(len).is_none_or(|end| end > 1 << 47) {
            return invalid("the range leaves the address space of a process");
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: MAP_FIXED_NOREPLACE never replaces an existing mapping, so no memory of ours changes.
        let got = unsafe { libc::mmap(base as *mut _, len as usize, libc::PROT_NONE, flags, -1, 0) };
        if got == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if got as u64 != base {
            // A kernel that does not know the flag takes the address as a hint.
            // SAFETY: the range was just mapped here and nothing refers to it.
            unsafe { libc::munmap(got, len as usize) };
            return Err(io::Error::from(io::ErrorKind::AddrInUse));
        }
        let words = (len / PAGE).div_ceil(64) as usize;
        let mut pages = Vec::new();
        pages.resize_with(words, AtomicU64::default);
        Ok(Arena { base, len, pages: pages.into_boxed_slice(), in_use: RwLock::new(()) })
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
        self.mark(first, count, true);
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
        self.mark(first, count, true);
        Ok(())
    }

    /// Gives whole pages back to the system.  Waits for launches and copies in flight.
    pub fn unmap(&self, addr: u64, len: u64) -> io::Result<()> {
        let (first, count) = self.span(addr, len)?;
        let _alone = self.in_use.write().unwrap_or_else(|e| e.into_inner());
        self.mark(first, count, false);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: the pages are the arena's; the lock shows that no launch or copy is using them.
        let got = unsafe { libc::mmap(addr as *mut _, len as usize, libc::PROT_NONE, flags, -1, 0) };
        if got == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn mark(&self, first: u64, count: u64, mapped: bool) {
        let (mut at, end) = (first, first + count);
        while at < end {
            let (word, bit) = ((at / 64) as usize, at % 64);
            let take = (64 - bit).min(end - at);
            let mask = if take == 64 { u64::MAX } else { ((1 << take) - 1) << bit };
            if mapped {
                self.pages[word].fetch_or(mask, Ordering::Release);
            } else {
                self.pages[word].fetch_and(!mask, Ordering::Release);
            }
            at += take;
        }
    }

    /// Whether all of these bytes are mapped.
    #[inline]
    pub fn contains(&self, addr: u64, len: u64) -> bool {
        let offset = addr.wrapping_sub(self.base);
        if offset >= self.len || len > self.len - offset {
            return false;
        }
        let (first, last) = (offset / PAGE, (offset + len.max(1) - 1) / PAGE);
        (first..=last).all(|page| self.page(page))
    }

    #[inline(always)]
    fn page(&self, page: u64) -> bool {
        // A page of the arena is in the map: `reserve` sized it so.
        self.pages[(page / 64) as usize].load(Ordering::Relaxed) >> (page % 64) & 1 == 1
    }

    /// Whether an aligned access of at most a page is mapped.
    #[inline(always)]
    pub(crate) fn touches(&self, addr: u64) -> bool {
        let offset = addr.wrapping_sub(self.base);
        offset < self.len && self.page(offset / PAGE)
    }

    /// The mapped range around a mapped address, at least its page and at most 128 MiB to either side.
    pub(crate) fn run(&self, addr: u64) -> (u64, u64) {
        const FAR: u64 = (128 << 20) / PAGE;
        let here = (addr - self.base) / PAGE;
        let whole = |word: u64| self.pages[word as usize].load(Ordering::Relaxed) == u64::MAX;
        let mut first = here;
        while first > 0 && here - first < FAR {
            if first.is_multiple_of(64) && whole(first / 64 - 1) {
                first -= 64;
            } else if self.page(first - 1) {
                first -= 1;
            } else {
                break;
            }
        }
        let (mut end, last) = (here + 1, self.len / PAGE);
        while end < last && end - here < FAR {
            if end.is_multiple_of(64) && end + 64 <= last && whole(end / 64) {
                end += 64;
            } else if self.page(end) {
                end += 1;
            } else {
                break;
            }
        }
        (self.base + first * PAGE, self.base + end * PAGE)
    }

    /// Holds the arena for use: nothing is unmapped meanwhile.
    pub(crate) fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.in_use.read().unwrap_or_else(|e| e.into_inner())
    }

    fn checked(&self, addr: u64, len: usize) -> io::Result<()> {
        if len == 0 || self.contains(addr, len as u64) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{addr:#x}+{len} is not mapped")))
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

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the arena owns the range, and nobody can hold a borrow of it any more.
        unsafe { libc::munmap(self.base as *mut _, self.len as usize) };
    }
}
