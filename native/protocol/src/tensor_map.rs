//! What a tensor map (`CUtensorMap`) describes, for the driver that encodes it.

use crate::wire::{DecodeError, Reader, Wire};

/// Bytes of an encoded map.
pub const TENSOR_MAP_BYTES: usize = 128;
/// Most dimensions of a tensor.
pub const MOST_DIMENSIONS: usize = 5;

/// A tensor in device memory and how its elements are read; its lists begin with the innermost dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorMap {
    /// `CUtensorMapDataType`.
    pub data_type: u32,
    pub address: u64,
    /// Elements, one number a dimension.
    pub sizes: Vec<u64>,
    /// Bytes from one element to the next, of all dimensions but the innermost.
    pub strides: Vec<u64>,
    pub window: TensorWindow,
    /// Every how many elements one is read, one number a dimension.
    pub element_strides: Vec<u32>,
    /// `CUtensorMapInterleave`, `CUtensorMapSwizzle`, `CUtensorMapL2promotion` and `CUtensorMapFloatOOBfill`.
    pub modes: [u32; 4],
}

/// What one copy reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TensorWindow {
    /// A box of so many elements, one number a dimension.
    Tiled(Vec<u32>),
    /// Columns of an image: corners of the box of pixels, one number a dimension but for channels and images.
    Columns { lower: Vec<i32>, upper: Vec<i32>, channels: u32, pixels: u32 },
}

impl Default for TensorWindow {
    fn default() -> Self {
        Self::Tiled(Vec::new())
    }
}

impl TensorMap {
    /// Whether every list has the length that the number of dimensions asks for.
    pub fn is_whole(&self) -> bool {
        let rank = self.sizes.len();
        let window = match &self.window {
            TensorWindow::Tiled(sizes) => sizes.len() == rank,
            TensorWindow::Columns { lower, upper, .. } => {
                rank >= 3 && [lower, upper].iter().all(|corner| corner.len() == rank - 2)
            }
        };
        (1..=MOST_DIMENSIONS).contains(&rank)
            && self.strides.len() == rank - 1
            && self.element_strides.len() == rank
            && window
    }
}

impl<'a> Wire<'a> for TensorMap {
    fn put(&self, out: &mut Vec<u8>) {
        self.data_type.put(out);
        self.address.put(out);
        self.sizes.put(out);
        self.strides.put(out);
        match &self.window {
            TensorWindow::Tiled(sizes) => {
                0u8.put(out);
                sizes.put(out);
            }
            TensorWindow::Columns { lower, upper, channels, pixels } => {
                1u8.put(out);
                lower.put(out);
                upper.put(out);
                channels.put(out);
                pixels.put(out);
            }
        }
        self.element_strides.put(out);
        self.modes.iter().for_each(|mode| mode.put(out));
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            data_type: Wire::take(reader)?,
            address: Wire::take(reader)?,
            sizes: Wire::take(reader)?,
            strides: Wire::take(reader)?,
            window: match u8::take(reader)? {
                0 => TensorWindow::Tiled(Wire::take(reader)?),
                1 => TensorWindow::Columns {
                    lower: Wire::take(reader)?,
                    upper: Wire::take(reader)?,
                    channels: Wire::take(reader)?,
                    pixels: Wire::take(reader)?,
                },
                other => return Err(DecodeError::Tag(other)),
            },
            element_strides: Wire::take(reader)?,
            modes: [u32::take(reader)?, u32::take(reader)?, u32::take(reader)?, u32::take(reader)?],
        })
    }
}
