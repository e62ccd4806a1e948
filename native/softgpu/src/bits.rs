//! Bit-field and byte-permute instructions (PTX ISA, "Integer Arithmetic Instructions").

/// A function of both halves.
pub fn each16(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// How far each byte of `a` is from that of `b`.
pub fn absolute_differences4(a: u32, b: u32, signed: bool) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    u32::from_le_bytes(
        [0, 1, 2, 3].map(|k| if signed { (a[k] as i8).abs_diff(b[k] as i8) } else { a[k].abs_diff(b[k]) }),
    )
}

/// `vabsdiff2` of unsigned or signed halves.
pub fn absolute_differences2(a: u32, b: u32, signed: bool) -> u32 {
    each16(a, b, |x, y| if signed { (x as i16).abs_diff(y as i16) } else { x.abs_diff(y) })
}

/// The sum of the four bytes.
pub fn sum4(a: u32) -> u32 {
    a.to_le_bytes().map(u32::from).iter().sum()
}

/// The sum of the two halves.
pub fn sum2(a: u32) -> u32 {
    (a & 0xffff) + (a >> 16)
}

/// `bfe.u32`
pub fn bfe_u32(a: u32, position: u32, length: u32) -> u32 {
    bfe_u64(u64::from(a), position, length) as u32
}

/// `bfe.s32`
pub fn bfe_s32(a: u32, position: u32, length: u32) -> u32 {
    let (position, length) = (position & 255, length & 255);
    if length == 0 {
        return 0;
    }
    let sign = a >> (position + length - 1).min(31) & 1;
    let field = bfe_u32(a, position, length);
    let valid = length.min(32u32.saturating_sub(position));
    if sign == 1 && valid < 32 { field | u32::MAX << valid } else { field }
}

/// `bfe.u64`
pub fn bfe_u64(a: u64, position: u32, length: u32) -> u64 {
    let (position, length) = (position & 255, length & 255);
    if position > 63 {
        return 0;
    }
    let field = a >> position;
    if length > 63 { field } else { field & ((1 << length) - 1) }
}

/// `bfe.s64`
pub fn bfe_s64(a: u64, position: u32, length: u32) -> u64 {
    let (position, length) = (position & 255, length & 255);
    if length == 0 {
        return 0;
    }
    let sign = a >> (position + length - 1).min(63) & 1;
    let field = bfe_u64(a, position, length);
    let valid = length.min(64u32.saturating_sub(position));
    if sign == 1 && valid < 64 { field | u64::MAX << valid } else { field }
}

/// `bfi` with a register of so many bits.
pub fn bfi(a: u64, b: u64, position: u32, length: u32, bits: u32) -> u64 {
    let (position, length) = (position & 255, length & 255);
    if position >= bits || length == 0 {
        return b;
    }
    let mask = if length >= 64 { u64::MAX } else { (1 << length) - 1 } << position;
    b & !mask | a << position & mask
}

/// `prmt.b32` in its default mode.
pub fn prmt(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    let mut out = 0;
    for i in 0..4 {
        let s = selector >> (4 * i) & 15;
        let mut byte = (bytes >> (8 * (s & 7))) as u8;
        if s & 8 != 0 {
            byte = ((byte as i8) >> 7) as u8;
        }
        out |= u32::from(byte) << (8 * i);
    }
    out
}

/// `prmt.b32` in the modes f4e, b4e, rc8, ecl, ecr, rc16 (0 to 5).
pub fn prmt_mode(a: u32, b: u32, selector: u32, mode: u32) -> u32 {
    let s = (selector & 3) as usize;
    let nibbles = match mode {
        0 => [0x3210, 0x4321, 0x5432, 0x6543][s],
        1 => [0x5670, 0x6701, 0x7012, 0x0123][s],
        2 => [0x0000, 0x1111, 0x2222, 0x3333][s],
        3 => [0x3210, 0x3211, 0x3222, 0x3333][s],
        4 => [0x0000, 0x1110, 0x2210, 0x3210][s],
        _ => [0x1010, 0x3232, 0x1010, 0x3232][s],
    };
    prmt(a, b, nibbles)
}

/// `dp4a`: four products of bytes, summed into c.
pub fn dp4a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    let byte = |v: u32, i: u32, signed: bool| {
        let b = (v >> (8 * i)) as u8;
        if signed { i32::from(b as i8) } else { i32::from(b) }
    };
    (0..4).fold(c, |sum, i| sum.wrapping_add((byte(a, i, a_signed) * byte(b, i, b_signed)) as u32))
}

/// `dp2a`: two products of 16-bit halves of a with bytes of b from the given one on, summed into c.
pub fn dp2a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool, first: u32) -> u32 {
    let half = |i: u32| {
        let h = (a >> (16 * i)) as u16;
        if a_signed { i32::from(h as i16) } else { i32::from(h) }
    };
    let byte = |i: u32| {
        let b = (b >> (8 * (first + i))) as u8;
        if b_signed { i32::from(b as i8) } else { i32::from(b) }
    };
    (0..2).fold(c, |sum, i| sum.wrapping_add(half(i).wrapping_mul(byte(i)) as u32))
}

/// `fns`: the place of the n-th set bit from `base` on, upward or downward; all ones if there is none.
pub fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    if offset == 0 {
        return if mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    let (mut at, step) = (base as i32, offset.signum());
    let mut left = offset.unsigned_abs();
    while (0..32).contains(&at) {
        if mask >> at & 1 == 1 {
            left -= 1;
            if left == 0 {
                return at as u32;
            }
        }
        at += step;
    }
    u32::MAX
}

/// `bmsk`: so many ones from a bit on.
pub fn bmsk(first: u32, count: u32, clamp: bool) -> u32 {
    let (first, count) = if clamp { (first.min(32), count.min(32)) } else { (first & 31, count & 31) };
    let ones = if count >= 32 { u32::MAX } else { (1 << count) - 1 };
    if first >= 32 { 0 } else { ones << first }
}
