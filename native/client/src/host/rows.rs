//! Rows of the program's memory that a graph copies from or to.

/// Where one side of a copy lies in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    pub address: usize,
    /// Bytes from row to row.
    pub pitch: usize,
    /// Bytes from plane to plane.
    pub slice: usize,
    /// Bytes a row, rows a plane, planes.
    pub extent: [usize; 3],
}

impl Rows {
    /// Bytes in all.
    pub fn bytes(&self) -> usize {
        self.extent.iter().product()
    }

    /// The pieces of memory that `length` bytes from `offset` fill when all rows are laid end to end: address, place in
    /// those bytes, length.
    fn pieces(&self, offset: usize, length: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let (rows, [width, height, _]) = (*self, self.extent);
        let end = (offset + length).min(self.bytes());
        let mut at = offset;
        std::iter::from_fn(move || {
            if at >= end || width == 0 {
                return None;
            }
            let (row, column) = (at / width, at % width);
            let piece = (width - column).min(end - at);
            let address = rows.address + row / height * rows.slice + row % height * rows.pitch + column;
            let place = at - offset;
            at += piece;
            Some((address, place, piece))
        })
    }

    /// Writes bytes of the copy that begin at `offset`.
    ///
    /// # Safety
    /// The rows are the program's memory, there for as long as the copy may run.
    pub unsafe fn scatter(&self, offset: usize, data: &[u8]) {
        for (address, place, length) in self.pieces(offset, data.len()) {
            // SAFETY: a piece of a row; the data are at least as long as the pieces together.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr().add(place), address as *mut u8, length) };
        }
    }

    /// Reads up to `length` bytes of the copy from `offset`.
    ///
    /// # Safety
    /// As [`Rows::scatter`].
    pub unsafe fn gather(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut data = Vec::with_capacity(length);
        for (address, _, length) in self.pieces(offset, length) {
            // SAFETY: a piece of a row.
            data.extend_from_slice(unsafe { std::slice::from_raw_parts(address as *const u8, length) });
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_gathered_and_scattered_in_any_pieces() {
        let memory: Vec<u8> = (0..100).collect();
        // Two planes of two rows of three bytes; rows 10 apart, planes 40 apart.
        let rows = Rows { address: memory.as_ptr() as usize + 1, pitch: 10, slice: 40, extent: [3, 2, 2] };
        let packed = [1, 2, 3, 11, 12, 13, 41, 42, 43, 51, 52, 53];
        // SAFETY: the memory is live and as large as the rows say.
        unsafe {
            assert_eq!(rows.gather(0, 12), packed);
            assert_eq!(rows.gather(2, 5), packed[2..7]);
            assert_eq!(rows.gather(10, 100), packed[10..]);
        }
        let mut target = vec![0u8; 100];
        let rows = Rows { address: target.as_mut_ptr() as usize + 1, ..rows };
        for start in (0..12).step_by(5) {
            // SAFETY: as above.
            unsafe { rows.scatter(start, &packed[start..(start + 5).min(12)]) };
        }
        for at in 0..100u8 {
            let expected = if packed.contains(&at) { at } else { 0 };
            assert_eq!(target[at as usize], expected, "{at}");
        }
    }
}
