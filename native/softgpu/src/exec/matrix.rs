//! `mma`, `ldmatrix` and `wmma`: products of small matrices whose elements are spread over the lanes of a warp.
//!
//! Fragments of `mma` lie as the PTX ISA's figures show.  Those of `wmma` are the engine's own choice, as the ISA allows:
//! the elements in rows, as many in each lane, one after the other.  Products are exact, and are added in double
//! precision (integers: modulo 2^32) to the accumulator, which is rounded once.

use super::lanes::Frame;
use super::memory::{Bad, resolve};
use super::warp::{Context, Warp};
use crate::half::{from_bf16, from_f16, to_f16};
use crate::ir::*;
use crate::types::Type;

/// A matrix in rows.
struct Dense {
    columns: usize,
    values: Vec<f64>,
}

impl Dense {
    fn new(rows: usize, columns: usize) -> Dense {
        Dense { columns, values: vec![0.0; rows * columns] }
    }

    fn at(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.values[row * self.columns + column]
    }
}

/// The value of element `k` in a register.
fn element(ty: Type, bits: u64, k: usize) -> f64 {
    match ty {
        Type::F16 => f64::from(from_f16((bits >> (16 * k)) as u16)),
        Type::Bf16 => f64::from(from_bf16((bits >> (16 * k)) as u16)),
        Type::S8 => f64::from((bits >> (8 * k)) as i8),
        Type::U8 => f64::from((bits >> (8 * k)) as u8),
        Type::S4 => f64::from((bits >> (4 * k) << 4) as i8 >> 4),
        Type::U4 => f64::from((bits >> (4 * k) & 15) as u8),
        Type::B1 => f64::from((bits >> k & 1) as u8),
        Type::F64 => f64::from_bits(bits),
        Type::S32 => f64::from(bits as i32),
        // tf32: the low bits of the fraction are ignored.
        Type::Tf32 => f64::from(f32::from_bits(bits as u32 & !0x1fff)),
        _ => f64::from(f32::from_bits(bits as u32)),
    }
}

/// Puts element `k` of a register.
fn put_element(ty: Type, bits: &mut u64, k: usize, v: f64) {
    match ty {
        Type::F16 => *bits |= u64::from(to_f16(v)) << (16 * k),
        Type::F64 => *bits = v.to_bits(),
        Type::S32 => *bits = u64::from(v as i64 as u32),
        _ => *bits = u64::from(crate::float::single(v as f32)),
    }
}

unsafe fn read(f: Frame, row: u32, ty: Type) -> [u64; 32] {
    // SAFETY: the caller's.
    unsafe { if ty == Type::F64 { f.get::<u64>(row) } else { f.get::<u32>(row).map(u64::from) } }
}

unsafe fn write(f: Frame, row: u32, ty: Type, values: &[u64; 32], mask: u32) {
    // SAFETY: the caller's.
    unsafe {
        if ty == Type::F64 {
            f.put(row, values, mask);
        } else {
            f.put(row, &values.map(|v| v as u32), mask);
        }
    }
}

/// d = a b + c, each in rows, for sums of type `ty`.  `differ`: of single bits, the number of those that differ takes the
/// product's place.
fn multiply(a: &Dense, b: &Dense, c: &Dense, rows: usize, (ty, saturate, differ): (Type, bool, bool)) -> Dense {
    let (inner, columns) = (a.columns, b.columns);
    let mut d = Dense::new(rows, columns);
    for i in 0..rows {
        for j in 0..columns {
            let pairs = (0..inner).map(|k| (a.values[i * inner + k], b.values[k * columns + j]));
            if ty == Type::F64 {
                // One fused operation after the other.
                *d.at(i, j) = pairs.fold(c.values[i * columns + j], |sum, (x, y)| x.mul_add(y, sum));
                continue;
            }
            let sum: f64 =
                if differ { pairs.map(|(x, y)| (x - y).abs()).sum() } else { pairs.map(|(x, y)| x * y).sum() };
            let mut v = c.values[i * columns + j] + sum;
            if ty == Type::S32 {
                // Exact in double precision: at most 2^31 + 32 * 2^16.
                v = if saturate {
                    v.clamp(f64::from(i32::MIN), f64::from(i32::MAX))
                } else {
                    f64::from(v as i64 as i32)
                };
            }
            *d.at(i, j) = v;
        }
    }
    d
}

/// Executes an instruction on matrices.
///
/// # Safety
/// It was decoded for the frame's function.
pub unsafe fn execute(c: &Context, w: &mut Warp, f: Frame, m: &Matrix, mask: u32) -> Result<(), Bad> {
    // SAFETY (all of the function): decoding checked the rows; `resolve` gave the pointers.
    unsafe {
        match m {
            Matrix::Mma { shape, types, d, a, b, c: accumulator, saturate, differ } => {
                let [rows, columns, inner] = *shape;
                let [td, ta, tb, tc] = *types;
                let (mut x, mut y) = (Dense::new(rows, inner), Dense::new(inner, columns));
                let mut z = Dense::new(rows, columns);
                let tall = rows / 8;
                for (r, row) in a.iter().enumerate() {
                    let values = read(f, *row, ta);
                    for (l, bits) in values.iter().enumerate() {
                        for k in 0..ta.elements() {
                            let column = r / tall * 4 * ta.elements() + l % 4 * ta.elements() + k;
                            *x.at(l / 4 + 8 * (r % tall), column) = element(ta, *bits, k);
                        }
                    }
                }
                for (r, row) in b.iter().enumerate() {
                    let values = read(f, *row, tb);
                    for (l, bits) in values.iter().enumerate() {
                        for k in 0..tb.elements() {
                            *y.at(r * 4 * tb.elements() + l % 4 * tb.elements() + k, l / 4) = element(tb, *bits, k);
                        }
                    }
                }
                // Two elements side by side, then those eight rows further down.
                let place = |ty: Type, r: usize, l: usize, k: usize| {
                    let e = r * ty.elements() + k;
                    (l / 4 + 8 * (e / 2), l % 4 * 2 + e % 2)
                };
                for (r, row) in accumulator.iter().enumerate() {
                    let values = read(f, *row, tc);
                    for (l, bits) in values.iter().enumerate() {
                        for k in 0..tc.elements() {
                            let (i, j) = place(tc, r, l, k);
                            *z.at(i, j) = element(tc, *bits, k);
                        }
                    }
                }
                let mut product = multiply(&x, &y, &z, rows, (td, *saturate, *differ));
                for (r, row) in d.iter().enumerate() {
                    let mut out = [0u64; 32];
                    for (l, out) in out.iter_mut().enumerate() {
                        for k in 0..td.elements() {
                            let (i, j) = place(td, r, l, k);
                            put_element(td, out, k, *product.at(i, j));
                        }
                    }
                    write(f, *row, td, &out, mask);
                }
            }
            Matrix::Quads { types, by_column, d, a, b, c } => quads(f, *types, *by_column, (d, a, b, c), mask),
            Matrix::Load { d, address, space, transposed } => {
                let at = super::memory::addresses(f, address);
                for (number, row) in d.iter().enumerate() {
                    let mut tile = Tile::default();
                    for (i, line) in tile.iter_mut().enumerate() {
                        let lane = 8 * number + i;
                        let host = resolve(c, w, *space, lane, at[lane], 16, false)?;
                        for (j, value) in line.iter_mut().enumerate() {
                            *value = *(host.at(2 * j as u64) as *const u16);
                        }
                    }
                    f.put(*row, &lanes_of_tile(&tile, *transposed), mask);
                }
            }
            Matrix::Store { s, address, space, transposed } => {
                let at = super::memory::addresses(f, address);
                for (number, row) in s.iter().enumerate() {
                    let tile = tile_of_lanes(&f.get::<u32>(*row), *transposed);
                    for (i, line) in tile.iter().enumerate() {
                        let lane = 8 * number + i;
                        let host = resolve(c, w, *space, lane, at[lane], 16, true)?;
                        for (j, value) in line.iter().enumerate() {
                            *(host.at(2 * j as u64) as *mut u16) = *value;
                        }
                    }
                }
            }
            Matrix::Transpose { d, a } => {
                let tile = tile_of_lanes(&f.get::<u32>(*a), false);
                f.put(*d, &lanes_of_tile(&tile, true), mask);
            }
            Matrix::Fetch { d, address, space, stride, rows, columns, ty, by_column } => {
                fragment(c, w, f, d, (address, *space), *stride, (*rows, *columns), *ty, *by_column, mask, false)?;
            }
            Matrix::Put { s, address, space, stride, rows, columns, ty, by_column } => {
                fragment(c, w, f, s, (address, *space), *stride, (*rows, *columns), *ty, *by_column, mask, true)?;
            }
            Matrix::Wmma { shape, types, d, a, b, c: accumulator, saturate, differ } => {
                let [rows, columns, inner] = *shape;
                let [td, ta, tb, tc] = *types;
                let gather = |registers: &[u32], ty: Type, rows: usize, columns: usize| {
                    let mut out = Dense::new(rows, columns);
                    let count = rows * columns / 32;
                    for (r, row) in registers.iter().enumerate() {
                        let values = read(f, *row, ty);
                        for (l, bits) in values.iter().enumerate() {
                            for k in (0..ty.elements()).filter(|k| r * ty.elements() + k < count) {
                                out.values[l * count + r * ty.elements() + k] = element(ty, *bits, k);
                            }
                        }
                    }
                    out
                };
                let x = gather(a, ta, rows, inner);
                let y = gather(b, tb, inner, columns);
                let z = gather(accumulator, tc, rows, columns);
                let product = multiply(&x, &y, &z, rows, (td, *saturate, *differ));
                let count = rows * columns / 32;
                for (r, row) in d.iter().enumerate() {
                    let mut out = [0u64; 32];
                    for (l, out) in out.iter_mut().enumerate() {
                        for k in (0..td.elements()).filter(|k| r * td.elements() + k < count) {
                            put_element(td, out, k, product.values[l * count + r * td.elements() + k]);
                        }
                    }
                    write(f, *row, td, &out, mask);
                }
            }
        }
    }
    Ok(())
}

/// Where element `e` of a lane's accumulator is in the product of its quads.
fn in_quads(ty: Type, lane: usize, e: usize) -> (usize, usize) {
    let first = lane / 16 * 4;
    if ty == Type::F16 {
        (first + lane % 4, e)
    } else {
        (first + lane % 2 + e / 2 % 2 * 2, e / 4 * 4 + lane / 2 % 2 * 2 + e % 2)
    }
}

/// `mma.m8n8k4` of halves: lanes 0 to 3 and 16 to 19 hold the first of four products, and so on.
///
/// # Safety
/// The rows were decoded for the frame's function.
unsafe fn quads(
    f: Frame,
    [td, tc]: [Type; 2],
    by_column: [bool; 2],
    (d, a, b, c): (&[u32], &[u32], &[u32], &[u32]),
    mask: u32,
) {
    // SAFETY: the caller's.
    unsafe {
        let gather = |rows: &[u32], ty: Type| rows.iter().map(|row| read(f, *row, ty)).collect::<Vec<_>>();
        let (a, b, c) = (gather(a, Type::F16), gather(b, Type::F16), gather(c, tc));
        let value = |values: &[[u64; 32]], ty: Type, lane: usize, e: usize| {
            element(ty, values[e / ty.elements()][lane], e % ty.elements())
        };
        let mut out = vec![[0u64; 32]; d.len()];
        for pair in 0..4 {
            let (mut x, mut y, mut z) = (Dense::new(8, 4), Dense::new(4, 8), Dense::new(8, 8));
            let lanes = || (0..32).filter(|lane| lane % 16 / 4 == pair);
            for lane in lanes() {
                let (within, first) = (lane % 4, lane / 16 * 4);
                for e in 0..4 {
                    let (i, k) = if by_column[0] { (first + e, within) } else { (first + within, e) };
                    *x.at(i, k) = value(&a, Type::F16, lane, e);
                    let (k, j) = if by_column[1] { (e, first + within) } else { (within, first + e) };
                    *y.at(k, j) = value(&b, Type::F16, lane, e);
                }
                for e in 0..8 {
                    let (i, j) = in_quads(tc, lane, e);
                    *z.at(i, j) = value(&c, tc, lane, e);
                }
            }
            let mut product = multiply(&x, &y, &z, 8, (td, false, false));
            for lane in lanes() {
                for e in 0..8 {
                    let (i, j) = in_quads(td, lane, e);
                    put_element(td, &mut out[e / td.elements()][lane], e % td.elements(), *product.at(i, j));
                }
            }
        }
        for (row, values) in d.iter().zip(&out) {
            write(f, *row, td, values, mask);
        }
    }
}

/// `wmma.load` and `wmma.store`: a matrix of so many rows and columns between memory and the lanes.
#[allow(clippy::too_many_arguments)]
unsafe fn fragment(
    c: &Context,
    w: &mut Warp,
    f: Frame,
    registers: &[u32],
    (address, space): (&Address, Space),
    stride: u32,
    (rows, columns): (usize, usize),
    ty: Type,
    by_column: bool,
    mask: u32,
    store: bool,
) -> Result<(), Bad> {
    // SAFETY (all of the function): decoding checked the rows; `resolve` gave the pointers.
    unsafe {
        let at = super::memory::addresses(f, address);
        let stride = f.get::<u32>(stride);
        let (size, bits) = (ty.size(), ty.element_bits());
        let count = rows * columns / 32;
        for (r, row) in registers.iter().enumerate() {
            let mut values = if store { read(f, *row, ty) } else { [0; 32] };
            for l in (0..32).filter(|l| mask >> l & 1 == 1) {
                for k in (0..ty.elements()).filter(|k| r * ty.elements() + k < count) {
                    let e = l * count + r * ty.elements() + k;
                    let (i, j) = (e / columns, e % columns);
                    let step = u64::from(stride[l]);
                    let index = if by_column { j as u64 * step + i as u64 } else { i as u64 * step + j as u64 };
                    let here = at[l].wrapping_add(index * u64::from(bits) / 8);
                    let p = resolve(c, w, space, l, here, size, store)?.at(0);
                    let shift = bits as usize * k;
                    if bits < 8 {
                        let within = index * u64::from(bits) % 8;
                        values[l] |= (u64::from(*(p as *const u8)) >> within & ((1 << bits) - 1)) << shift;
                        continue;
                    }
                    match (size, store) {
                        (1, true) => *(p as *mut u8) = (values[l] >> shift) as u8,
                        (1, false) => values[l] |= u64::from(*(p as *const u8)) << shift,
                        (2, true) => *(p as *mut u16) = (values[l] >> shift) as u16,
                        (2, false) => values[l] |= u64::from(*(p as *const u16)) << shift,
                        (4, true) => *(p as *mut u32) = values[l] as u32,
                        (4, false) => values[l] = u64::from(*(p as *const u32)),
                        (_, true) => *(p as *mut u64) = values[l],
                        (_, false) => values[l] = *(p as *const u64),
                    }
                }
            }
            if !store {
                write(f, *row, ty, &values, mask);
            }
        }
    }
    Ok(())
}

/// A matrix of 16-bit elements that the lanes of a warp hold two each.
type Tile = [[u16; 8]; 8];

/// The two elements of a lane, of the matrix or of its transpose: row and column.
fn held(lane: usize, transposed: bool) -> [(usize, usize); 2] {
    let (i, j) = (lane / 4, lane % 4 * 2);
    if transposed { [(j, i), (j + 1, i)] } else { [(i, j), (i, j + 1)] }
}

fn lanes_of_tile(tile: &Tile, transposed: bool) -> [u32; 32] {
    std::array::from_fn(|lane| {
        let [low, high] = held(lane, transposed).map(|(i, j)| u32::from(tile[i][j]));
        low | high << 16
    })
}

fn tile_of_lanes(lanes: &[u32; 32], transposed: bool) -> Tile {
    let mut tile = Tile::default();
    for (lane, value) in lanes.iter().enumerate() {
        let [(i, j), (k, l)] = held(lane, transposed);
        (tile[i][j], tile[k][l]) = (*value as u16, (*value >> 16) as u16);
    }
    tile
}
