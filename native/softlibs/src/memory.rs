//! Device memory as the libraries see it: vectors and column-major matrices are copied out, and results copied in.

use crate::meter;
use crate::number::Field;
use bytemuck::{Pod, Zeroable};

/// An access to memory that is not allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub address: u64,
    pub bytes: u64,
}

/// The device's memory.
pub trait Memory {
    /// Copies from the device.
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Fault>;
    /// Copies to the device.
    fn write(&self, address: u64, data: &[u8]) -> Result<(), Fault>;
}

/// `count` elements that lie one after the other.
pub fn load<T: Pod>(memory: &dyn Memory, address: u64, count: usize) -> Result<Vec<T>, Fault> {
    let bytes = count.checked_mul(size_of::<T>()).filter(|bytes| *bytes <= 1 << 40);
    if bytes.is_none() {
        return Err(Fault { address, bytes: u64::MAX });
    }
    // A range that is not there is seen before memory for it is taken.
    if count > 0 {
        let mut last = [0; 1];
        let bytes = (count * size_of::<T>()) as u64;
        memory.read(address.wrapping_add(bytes - 1), &mut last).map_err(|_| Fault { address, bytes })?;
    }
    let mut out = zeros(count);
    if count > 0 {
        memory.read(address, bytemuck::cast_slice_mut(&mut out))?;
    }
    Ok(out)
}

/// Writes elements one after the other.
pub fn store<T: Pod>(memory: &dyn Memory, address: u64, data: &[T]) -> Result<(), Fault> {
    if data.is_empty() { Ok(()) } else { memory.write(address, bytemuck::cast_slice(data)) }
}

/// As [`load`], of numbers that lie in memory in single precision where `single`.
pub fn load_numbers<T: Field>(memory: &dyn Memory, address: u64, count: usize, single: bool) -> Result<Vec<T>, Fault> {
    if !is_other::<T>(single) {
        return load(memory, address, count);
    }
    Ok(collected(count, load::<T::Single>(memory, address, count)?.into_iter().map(T::widened)))
}

/// As [`store`], of numbers that lie in memory in single precision where `single`.
pub fn store_numbers<T: Field>(memory: &dyn Memory, address: u64, data: &[T], single: bool) -> Result<(), Fault> {
    if !is_other::<T>(single) {
        return store(memory, address, data);
    }
    store(memory, address, &collected(data.len(), data.iter().map(|value| value.rounded())))
}

/// Whether numbers in memory are not what is computed with.
fn is_other<T: Field>(single: bool) -> bool {
    single && size_of::<T::Single>() != size_of::<T>()
}

/// Bytes of a number in memory.
pub fn bytes_of<T: Field>(single: bool) -> usize {
    if single { size_of::<T::Single>() } else { size_of::<T>() }
}

/// Steps from which a vector is read number by number: a row of a large matrix is not worth the whole of it.
const FAR: u64 = 16;

/// Where a BLAS vector lies.
#[derive(Clone, Copy, Debug)]
pub struct Vector {
    pub address: u64,
    pub count: usize,
    /// Elements from one to the next; negative ones run backwards.
    pub step: i64,
    /// Its numbers lie in memory in single precision.
    pub single: bool,
}

impl Vector {
    fn span(&self) -> usize {
        if self.count == 0 { 0 } else { (self.count - 1) * self.step.unsigned_abs() as usize + 1 }
    }

    fn place(&self, index: usize) -> usize {
        let index = if self.step < 0 { self.count - 1 - index } else { index };
        index * self.step.unsigned_abs() as usize
    }

    /// Its elements.
    pub fn load<T: Field>(&self, memory: &dyn Memory) -> Result<Vec<T>, Fault> {
        if self.step.unsigned_abs() > FAR {
            let at = |index| self.address + (self.place(index) * bytes_of::<T>(self.single)) as u64;
            let mut out = room(self.count);
            for index in 0..self.count {
                out.push(load_numbers(memory, at(index), 1, self.single)?[0]);
            }
            return Ok(out);
        }
        let all: Vec<T> = load_numbers(memory, self.address, self.span(), self.single)?;
        if self.step == 1 {
            return Ok(all);
        }
        Ok(collected(self.count, (0..self.count).map(|index| all[self.place(index)])))
    }

    /// Sets its elements; what lies between them stays.
    pub fn store<T: Field>(&self, memory: &dyn Memory, data: &[T]) -> Result<(), Fault> {
        if self.step == 1 {
            return store_numbers(memory, self.address, data, self.single);
        }
        for (index, value) in data.iter().enumerate() {
            let address = self.address + (self.place(index) * bytes_of::<T>(self.single)) as u64;
            store_numbers(memory, address, std::slice::from_ref(value), self.single)?;
        }
        Ok(())
    }
}

/// Where a column-major matrix lies.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub address: u64,
    pub rows: usize,
    pub columns: usize,
    /// Elements from one column to the next.
    pub lead: usize,
    /// Its numbers lie in memory in single precision.
    pub single: bool,
}

impl Place {
    /// A copy without gaps.
    pub fn load<T: Field>(&self, memory: &dyn Memory) -> Result<Matrix<T>, Fault> {
        let load = |address, count| load_numbers(memory, address, count, self.single);
        self.gather(bytes_of::<T>(self.single), load)
    }

    /// As [`Place::load`] of elements of so many bytes, by a way to load those that lie one after the other.
    pub fn gather<T>(
        &self,
        bytes: usize,
        load: impl Fn(u64, usize) -> Result<Vec<T>, Fault>,
    ) -> Result<Matrix<T>, Fault> {
        let Place { address, rows, columns, lead, .. } = *self;
        if rows == 0 || columns == 0 {
            return Ok(Matrix { rows, columns, data: Vec::new() });
        }
        if lead == rows {
            return Ok(Matrix { rows, columns, data: load(address, rows * columns)? });
        }
        let mut data = room(rows * columns);
        for column in 0..columns {
            data.extend(load(address + (column * lead * bytes) as u64, rows)?);
        }
        Ok(Matrix { rows, columns, data })
    }

    /// Writes a matrix of this size; what lies between the columns stays.
    pub fn store<T: Field>(&self, memory: &dyn Memory, matrix: &Matrix<T>) -> Result<(), Fault> {
        if self.rows == 0 || self.columns == 0 {
            return Ok(());
        }
        if self.lead == self.rows {
            return store_numbers(memory, self.address, &matrix.data, self.single);
        }
        for (column, data) in matrix.data.chunks_exact(self.rows).enumerate() {
            let address = self.address + (column * self.lead * bytes_of::<T>(self.single)) as u64;
            store_numbers(memory, address, data, self.single)?;
        }
        Ok(())
    }

    /// Writes one triangle of a square matrix, with its diagonal.
    pub fn store_triangle<T: Field>(&self, memory: &dyn Memory, matrix: &Matrix<T>, upper: bool) -> Result<(), Fault> {
        for column in 0..self.columns {
            let rows = if upper { 0..column + 1 } else { column..self.rows };
            let address = self.address + ((column * self.lead + rows.start) * bytes_of::<T>(self.single)) as u64;
            store_numbers(memory, address, &matrix.data[column * self.rows..][rows], self.single)?;
        }
        Ok(())
    }
}

/// Room for so many elements, if the lease has it: for what is pushed one by one, of which growing would take twice as much.
pub fn room<T>(count: usize) -> Vec<T> {
    let data = Vec::with_capacity(count);
    meter::check();
    data
}

/// So many elements, in such room.
pub fn collected<T>(count: usize, elements: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut data = room(count);
    data.extend(elements);
    data
}

/// So many zeros, if the lease has memory for them; nothing is written before that is known.
pub fn zeros<T: Zeroable>(count: usize) -> Vec<T> {
    let data = bytemuck::zeroed_vec(count);
    meter::check();
    data
}

/// A column-major matrix without gaps.
#[derive(Debug, PartialEq)]
pub struct Matrix<T> {
    pub rows: usize,
    pub columns: usize,
    pub data: Vec<T>,
}

impl<T: Copy + Zeroable> Matrix<T> {
    /// All zero.
    pub fn zero(rows: usize, columns: usize) -> Self {
        Self { rows, columns, data: zeros(rows * columns) }
    }

    /// One element.
    #[inline]
    pub fn at(&self, row: usize, column: usize) -> T {
        self.data[column * self.rows + row]
    }

    /// One element, to be changed.
    #[inline]
    pub fn at_mut(&mut self, row: usize, column: usize) -> &mut T {
        &mut self.data[column * self.rows + row]
    }

    /// A column.
    pub fn column(&self, column: usize) -> &[T] {
        &self.data[column * self.rows..][..self.rows]
    }

    /// A column, to be changed.
    pub fn column_mut(&mut self, column: usize) -> &mut [T] {
        let rows = self.rows;
        &mut self.data[column * rows..][..rows]
    }

    /// Each element by its row and column.
    pub fn build(rows: usize, columns: usize, element: impl Fn(usize, usize) -> T) -> Self {
        let mut data = room(rows * columns);
        for column in 0..columns {
            data.extend((0..rows).map(|row| element(row, column)));
        }
        Self { rows, columns, data }
    }
}

impl<T: Copy> Clone for Matrix<T> {
    fn clone(&self) -> Self {
        Self { data: collected(self.data.len(), self.data.iter().copied()), ..*self }
    }
}
