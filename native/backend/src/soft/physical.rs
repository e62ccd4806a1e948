//! The program's own physical memory: files without a name, mapped into the arena where the program wants them.

use super::memory::Memory;
use crate::error::{CudaError, CudaResult, code};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::fd::{AsFd, FromRawFd};

/// See the module.
#[derive(Default)]
pub struct Physical {
    memory: HashMap<u64, (File, u64)>,
    /// Address to bytes and handle.
    mappings: BTreeMap<u64, (u64, u64)>,
}

fn invalid(text: &str) -> CudaError {
    CudaError::new(code::INVALID_VALUE, text)
}

fn out_of_memory(error: &std::io::Error) -> CudaError {
    CudaError::new(code::OUT_OF_MEMORY, error.to_string())
}

impl Physical {
    /// New memory, all zeros.
    pub fn create(&mut self, handle: u64, bytes: u64) -> CudaResult<()> {
        // SAFETY: a C string; the descriptor that comes back is nobody else's.
        let descriptor = unsafe { libc::memfd_create(c"device-memory".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(out_of_memory(&std::io::Error::last_os_error()));
        }
        // SAFETY: just opened, owned by nobody else.
        let file = unsafe { File::from_raw_fd(descriptor) };
        file.set_len(bytes).map_err(|error| out_of_memory(&error))?;
        self.memory.insert(handle, (file, bytes));
        Ok(())
    }

    /// Ends memory that is mapped nowhere.
    pub fn release(&mut self, handle: u64) -> CudaResult<()> {
        if self.mappings.values().any(|(_, mapped)| *mapped == handle) {
            return Err(invalid("the memory is still mapped"));
        }
        self.memory.remove(&handle).map(drop).ok_or_else(|| invalid("there is no such memory"))
    }

    /// Notes a mapping; nothing can be touched there yet.
    pub fn map(&mut self, memory: &Memory, address: u64, bytes: u64, handle: u64) -> CudaResult<()> {
        let (_, most) = self.memory.get(&handle).ok_or_else(|| invalid("there is no such memory"))?;
        let end = address.checked_add(bytes).filter(|_| bytes > 0 && bytes <= *most);
        let end = end.ok_or_else(|| invalid("the mapping is longer than the memory"))?;
        let overlaps = self.mappings.range(..end).next_back().is_some_and(|(at, (length, _))| at + length > address);
        if overlaps || !memory.is_free(address, bytes) {
            return Err(invalid("something is mapped or allocated there already, or it is not the session's"));
        }
        self.mappings.insert(address, (bytes, handle));
        Ok(())
    }

    /// The mappings that fill the range.
    fn whole(&self, address: u64, bytes: u64) -> CudaResult<Vec<(u64, u64, u64)>> {
        let end = address.checked_add(bytes).ok_or_else(|| invalid("the range is too long"))?;
        let found = self.mappings.range(address..end).map(|(at, (length, handle))| (*at, *length, *handle));
        let found: Vec<_> = found.collect();
        let filled = found.iter().try_fold(address, |at, (start, length, _)| (at == *start).then_some(start + length));
        if filled == Some(end) && !found.is_empty() { Ok(found) } else { Err(invalid("not whole mappings")) }
    }

    /// Ends whole mappings.
    pub fn unmap(&mut self, memory: &Memory, address: u64, bytes: u64) -> CudaResult<()> {
        self.set_access(memory, address, bytes, false)?;
        for (at, _, _) in self.whole(address, bytes)? {
            self.mappings.remove(&at);
        }
        Ok(())
    }

    /// Makes whole mappings accessible, or not.
    pub fn set_access(&self, memory: &Memory, address: u64, bytes: u64, accessible: bool) -> CudaResult<()> {
        for (at, length, handle) in self.whole(address, bytes)? {
            let (file, _) = self.memory.get(&handle).ok_or_else(|| invalid("there is no such memory"))?;
            let arena = memory.arena();
            let done = if accessible { arena.attach(at, length, file.as_fd(), 0) } else { arena.unmap(at, length) };
            done.map_err(|error| out_of_memory(&error))?;
        }
        Ok(())
    }

    /// All of it.
    pub fn bytes(&self) -> u64 {
        self.memory.values().map(|(_, bytes)| bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u64 = 2 << 20;

    #[test]
    fn one_memory_at_two_addresses_is_one_memory() {
        let memory = Memory::reserve(0x30_0000_0000, 4 << 30, true, false).expect("range");
        let (arena, base) = (memory.arena(), memory.arena().base());
        let mut physical = Physical::default();
        physical.create(16, 2 * UNIT).expect("memory");
        physical.map(&memory, base, UNIT, 16).expect("first");
        physical.map(&memory, base + 4 * UNIT, 2 * UNIT, 16).expect("second");
        assert!(physical.map(&memory, base + 5 * UNIT, UNIT, 16).is_err(), "something is there");
        assert!(arena.write(base, &[1]).is_err(), "not accessible yet");
        physical.set_access(&memory, base, UNIT, true).expect("accessible");
        physical.set_access(&memory, base + 4 * UNIT, 2 * UNIT, true).expect("accessible");
        arena.write(base + 100, &[42]).expect("written");
        let mut byte = [0];
        arena.read(base + 4 * UNIT + 100, &mut byte).expect("read");
        assert_eq!(byte, [42]);
        assert!(physical.release(16).is_err(), "mapped");
        assert!(physical.unmap(&memory, base + 4 * UNIT, UNIT).is_err(), "half a mapping");
        physical.unmap(&memory, base, UNIT).expect("unmapped");
        assert!(arena.read(base, &mut byte).is_err());
        physical.unmap(&memory, base + 4 * UNIT, 2 * UNIT).expect("unmapped");
        physical.release(16).expect("released");
        assert!(memory.alloc(base, 4096).is_ok() && physical.bytes() == 0);
    }
}
