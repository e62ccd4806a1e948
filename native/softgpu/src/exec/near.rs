//! How the addresses of a warp lie to each other: the distances from the first, their extent, and which groups of
//! eight are side by side or all the same.
//!
//! Spelled out for AVX2 as well, because the compiler makes scalar code of these reductions once they are inlined.

/// Eight lanes that are side by side, one element after the other.
pub const BESIDE: u8 = 1;
/// Eight lanes that point to the same element.
pub const UNIFORM: u8 = 2;

/// The distances of 32 addresses from one of them.  Lanes that do not take part are at distance 0.
pub struct Near {
    pub near: [i32; 32],
    pub low: i32,
    pub high: i32,
    /// All bits that are set in some distance.
    pub bits: i32,
    /// For each eight lanes [`BESIDE`], [`UNIFORM`] or 0.
    pub kind: [u8; 4],
}

/// Looks at 64-bit addresses; nothing if they are 2^30 or more apart from the first.
#[inline(always)]
pub fn wide<const V3: bool>(a: &[u64; 32], first: u64, mask: u32, step: u32) -> Option<Near> {
    #[cfg(target_arch = "x86_64")]
    if V3 {
        // SAFETY: V3 says that the processor has AVX2.
        return unsafe { avx2::wide(a, first, mask, step) };
    }
    let mut d = [0u64; 32];
    for l in 0..32 {
        d[l] = if mask >> l & 1 == 1 { a[l].wrapping_sub(first) } else { 0 };
    }
    let far = d.iter().fold(0, |far, d| far | d.wrapping_add(1 << 30)) >> 31 != 0;
    (!far).then(|| describe(d.map(|d| d as i32), step))
}

/// Looks at 32-bit addresses.
#[inline(always)]
pub fn short<const V3: bool>(a: &[u32; 32], first: u32, mask: u32, step: u32) -> Option<Near> {
    #[cfg(target_arch = "x86_64")]
    if V3 {
        // SAFETY: V3 says that the processor has AVX2.
        return unsafe { avx2::short(a, first, mask, step) };
    }
    let mut d = [0u32; 32];
    for l in 0..32 {
        d[l] = if mask >> l & 1 == 1 { a[l].wrapping_sub(first) } else { 0 };
    }
    let far = d.iter().fold(0, |far, d| far | d.wrapping_add(1 << 30)) >> 31 != 0;
    (!far).then(|| describe(d.map(|d| d as i32), step))
}

fn describe(near: [i32; 32], step: u32) -> Near {
    let mut kind = [0; 4];
    for (kind, eight) in kind.iter_mut().zip(near.chunks(8)) {
        if eight.iter().enumerate().all(|(j, d)| d.wrapping_sub(eight[0]) == (j as u32 * step) as i32) {
            *kind = BESIDE;
        } else if eight.iter().all(|d| *d == eight[0]) {
            *kind = UNIFORM;
        }
    }
    let (low, high) = near.iter().fold((i32::MAX, i32::MIN), |(low, high), d| (low.min(*d), high.max(*d)));
    Near { near, low, high, bits: near.iter().fold(0, |bits, d| bits | d), kind }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{BESIDE, Near, UNIFORM};
    use std::arch::x86_64::*;

    /// [`super::wide`]
    #[target_feature(enable = "avx2")]
    #[inline]
    pub fn wide(a: &[u64; 32], first: u64, mask: u32, step: u32) -> Option<Near> {
        let head = _mm256_set1_epi64x(first as i64);
        let bias = _mm256_set1_epi64x(1 << 30);
        let even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
        let bit = _mm256_setr_epi64x(1, 2, 4, 8);
        let mut far = _mm256_setzero_si256();
        let mut near = [_mm256_setzero_si256(); 4];
        for (k, near) in near.iter_mut().enumerate() {
            let mut halves = [_mm256_setzero_si256(); 2];
            for (h, half) in halves.iter_mut().enumerate() {
                let at = 8 * k + 4 * h;
                // SAFETY: four addresses from `at` on are within the array.
                let v = unsafe { _mm256_loadu_si256(a.as_ptr().add(at).cast()) };
                let mut d = _mm256_sub_epi64(v, head);
                if mask != u32::MAX {
                    let lanes = _mm256_set1_epi64x(i64::from(mask >> at));
                    d = _mm256_and_si256(d, _mm256_cmpeq_epi64(_mm256_and_si256(lanes, bit), bit));
                }
                far = _mm256_or_si256(far, _mm256_add_epi64(d, bias));
                *half = _mm256_permutevar8x32_epi32(d, even);
            }
            *near = _mm256_blend_epi32(halves[0], halves[1], 0xf0);
        }
        let beyond = _mm256_set1_epi64x(!0x7fff_ffff);
        if _mm256_testz_si256(far, beyond) == 0 { None } else { Some(describe(near, step)) }
    }

    /// [`super::short`]
    #[target_feature(enable = "avx2")]
    #[inline]
    pub fn short(a: &[u32; 32], first: u32, mask: u32, step: u32) -> Option<Near> {
        let head = _mm256_set1_epi32(first as i32);
        let bias = _mm256_set1_epi32(1 << 30);
        let bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let mut far = _mm256_setzero_si256();
        let mut near = [_mm256_setzero_si256(); 4];
        for (k, near) in near.iter_mut().enumerate() {
            // SAFETY: eight addresses from `8 * k` on are within the array.
            let v = unsafe { _mm256_loadu_si256(a.as_ptr().add(8 * k).cast()) };
            let mut d = _mm256_sub_epi32(v, head);
            if mask != u32::MAX {
                let lanes = _mm256_set1_epi32((mask >> (8 * k)) as i32);
                d = _mm256_and_si256(d, _mm256_cmpeq_epi32(_mm256_and_si256(lanes, bit), bit));
            }
            far = _mm256_or_si256(far, _mm256_add_epi32(d, bias));
            *near = d;
        }
        if _mm256_movemask_ps(_mm256_castsi256_ps(far)) != 0 { None } else { Some(describe(near, step)) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn describe(d: [__m256i; 4], step: u32) -> Near {
        let steps = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(step as i32));
        let (mut low, mut high, mut bits) = (d[0], d[0], d[0]);
        let mut kind = [0; 4];
        let mut near = [0i32; 32];
        for k in 0..4 {
            low = _mm256_min_epi32(low, d[k]);
            high = _mm256_max_epi32(high, d[k]);
            bits = _mm256_or_si256(bits, d[k]);
            let rest = _mm256_sub_epi32(d[k], _mm256_broadcastd_epi32(_mm256_castsi256_si128(d[k])));
            let gap = _mm256_xor_si256(rest, steps);
            kind[k] = if _mm256_testz_si256(gap, gap) != 0 {
                BESIDE
            } else if _mm256_testz_si256(rest, rest) != 0 {
                UNIFORM
            } else {
                0
            };
            // SAFETY: eight distances from `8 * k` on are within the array.
            unsafe { _mm256_storeu_si256(near.as_mut_ptr().add(8 * k).cast(), d[k]) };
        }
        Near {
            near,
            low: least(low),
            high: !least(_mm256_xor_si256(high, _mm256_set1_epi32(-1))),
            bits: any(bits),
            kind,
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn least(v: __m256i) -> i32 {
        let v = _mm_min_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        let v = _mm_min_epi32(v, _mm_shuffle_epi32(v, 0b0100_1110));
        _mm_cvtsi128_si32(_mm_min_epi32(v, _mm_shuffle_epi32(v, 0b1011_0001)))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn any(v: __m256i) -> i32 {
        let v = _mm_or_si128(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        let v = _mm_or_si128(v, _mm_shuffle_epi32(v, 0b0100_1110));
        _mm_cvtsi128_si32(_mm_or_si128(v, _mm_shuffle_epi32(v, 0b1011_0001)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn both_ways_say_the_same() {
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        let base = 0x7000_0000_1000u64;
        let patterns: [&dyn Fn(u64) -> u64; 7] = [
            &|l| base + 4 * l,
            &|_| base,
            &|l| base + l / 8 * 4,
            &|l| base.wrapping_sub(8 * l),
            &|l| base + l * l * 1000,
            &|l| if l == 31 { base + (1 << 30) } else { base },
            &|l| if l == 30 { u64::MAX } else { base },
        ];
        for pattern in patterns {
            let a: [u64; 32] = std::array::from_fn(|l| pattern(l as u64));
            for mask in [u32::MAX, 0xff, 0x8000_0001, 0x0ff0_1234] {
                let leader = a[mask.trailing_zeros() as usize];
                for step in [4, 8, 16] {
                    let view = |n: Option<Near>| n.map(|n| (n.near, n.low, n.high, n.bits, n.kind));
                    let portable = view(wide::<false>(&a, leader, mask, step));
                    assert_eq!(view(wide::<true>(&a, leader, mask, step)), portable);
                    let b = a.map(|v| v as u32);
                    let portable = view(short::<false>(&b, leader as u32, mask, step));
                    assert_eq!(view(short::<true>(&b, leader as u32, mask, step)), portable);
                }
            }
        }
    }
}
