//! Tensor maps. Their encoding is the driver's own, so a driver is asked, once for each map.

use super::here;
use crate::answers::Answers;
use crate::error::{CudaError, CudaResult, INVALID_VALUE};
use crate::session::Session;
use sluice_protocol::messages::{TensorMapEncode, TensorMapReplaceAddress};
use sluice_protocol::tensor_map::{MOST_DIMENSIONS, TENSOR_MAP_BYTES, TensorMap, TensorWindow};
use sluice_protocol::{TENSOR_MAPS, cuda};
use std::sync::Arc;

type Encoded = [u8; TENSOR_MAP_BYTES];

/// What a driver has encoded.
pub type TensorMapCache = Answers<TensorMapQuestion, Encoded>;

/// A map to encode in one generation, or an encoded one to move to an address.
#[derive(PartialEq, Eq, Hash)]
pub enum TensorMapQuestion {
    Encode { generation: u64, map: TensorMap },
    Move { generation: u64, encoded: Encoded, address: u64 },
}

/// CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED
const TENSOR_MAP_ACCESS: i32 = 127;
/// A map's place in memory is a multiple of this.
const ALIGNMENT: usize = 64;

/// A session whose device has tensor maps.
fn session() -> CudaResult<Arc<Session>> {
    let device = here()?;
    let session = device.session()?;
    let profile = device.process.profile();
    let serves = session.welcome.features.iter().any(|name| name == TENSOR_MAPS);
    if serves && profile.attribute(TENSOR_MAP_ACCESS) == Some(1) {
        return Ok(session);
    }
    let text = format!("{} has no tensor maps", profile.device.name);
    Err(CudaError::new(cuda::ERROR_NOT_SUPPORTED, text))
}

/// Where a map lies.
fn place(map: *mut Encoded) -> CudaResult<*mut Encoded> {
    if !map.is_null() && map.addr().is_multiple_of(ALIGNMENT) { Ok(map) } else { Err(INVALID_VALUE) }
}

fn encoded(answer: &[u8]) -> CudaResult<Encoded> {
    answer.try_into().map_err(|_| CudaError::new(cuda::ERROR_UNKNOWN, "the GPU server's tensor map has another length"))
}

/// Copies an argument's array.
///
/// # Safety
/// `list` is null or points to so many.
unsafe fn copied<T: Copy>(list: *const T, count: usize) -> CudaResult<Vec<T>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if list.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, and the caller answers for the length.
    Ok((0..count).map(|index| unsafe { list.add(index).read_unaligned() }).collect())
}

/// The number of dimensions, of which a window may need some.
fn dimensions(rank: u32, least: usize) -> CudaResult<usize> {
    let rank = rank as usize;
    if (least..=MOST_DIMENSIONS).contains(&rank) { Ok(rank) } else { Err(INVALID_VALUE) }
}

/// What maps of all windows are made of; the window is still to be put in.
///
/// # Safety
/// Each list is null or as long as the rank says, the strides by one shorter.
unsafe fn described(
    rank: usize,
    data_type: u32,
    address: u64,
    sizes: *const u64,
    strides: *const u64,
    element_strides: *const u32,
    modes: [u32; 4],
) -> CudaResult<TensorMap> {
    // SAFETY: as the caller's.
    let (sizes, strides, element_strides) =
        unsafe { (copied(sizes, rank)?, copied(strides, rank - 1)?, copied(element_strides, rank)?) };
    Ok(TensorMap { data_type, address, sizes, strides, element_strides, modes, ..TensorMap::default() })
}

/// Has a map encoded and writes it.
///
/// # Safety
/// `to` is null or points to a map.
unsafe fn encode(to: *mut Encoded, map: TensorMap) -> CudaResult {
    let to = place(to)?;
    let session = session()?;
    let answers = &here()?.process.objects.tensor_maps;
    let question = TensorMapQuestion::Encode { generation: session.generation, map };
    let map = answers.answer(question, |question| {
        let TensorMapQuestion::Encode { map, .. } = question else { return Err(INVALID_VALUE) };
        let answer = session.connection.call(&TensorMapEncode { map: map.clone() })?;
        encoded(&answer.encoded.0)
    })?;
    // SAFETY: the caller's map.
    unsafe { to.write(map) };
    Ok(())
}

pub unsafe fn cuTensorMapEncodeTiled(
    to: *mut Encoded,
    data_type: u32,
    rank: u32,
    address: u64,
    sizes: *const u64,
    strides: *const u64,
    box_sizes: *const u32,
    element_strides: *const u32,
    interleave: u32,
    swizzle: u32,
    promotion: u32,
    fill: u32,
) -> CudaResult {
    super::ready()?;
    let rank = dimensions(rank, 1)?;
    // SAFETY: the caller's arrays, as long as the rank says.
    unsafe {
        let modes = [interleave, swizzle, promotion, fill];
        let map = described(rank, data_type, address, sizes, strides, element_strides, modes)?;
        encode(to, TensorMap { window: TensorWindow::Tiled(copied(box_sizes, rank)?), ..map })
    }
}

pub unsafe fn cuTensorMapEncodeIm2col(
    to: *mut Encoded,
    data_type: u32,
    rank: u32,
    address: u64,
    sizes: *const u64,
    strides: *const u64,
    lower: *const i32,
    upper: *const i32,
    channels: u32,
    pixels: u32,
    element_strides: *const u32,
    interleave: u32,
    swizzle: u32,
    promotion: u32,
    fill: u32,
) -> CudaResult {
    super::ready()?;
    let rank = dimensions(rank, 3)?;
    // SAFETY: the caller's arrays, as long as the rank says.
    unsafe {
        let modes = [interleave, swizzle, promotion, fill];
        let map = described(rank, data_type, address, sizes, strides, element_strides, modes)?;
        let (lower, upper) = (copied(lower, rank - 2)?, copied(upper, rank - 2)?);
        encode(to, TensorMap { window: TensorWindow::Columns { lower, upper, channels, pixels }, ..map })
    }
}

pub unsafe fn cuTensorMapReplaceAddress(map: *mut Encoded, address: u64) -> CudaResult {
    super::ready()?;
    let place = place(map)?;
    let session = session()?;
    // SAFETY: the caller's map.
    let before = unsafe { place.read() };
    let question = TensorMapQuestion::Move { generation: session.generation, encoded: before, address };
    let moved = here()?.process.objects.tensor_maps.answer(question, |_| {
        let answer = session.connection.call(&TensorMapReplaceAddress { encoded: &before, address })?;
        encoded(&answer.encoded.0)
    })?;
    // SAFETY: as above.
    unsafe { place.write(moved) };
    Ok(())
}
