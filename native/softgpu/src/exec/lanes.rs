//! Rows of 32 lanes, and operations that map lanes to lanes.

/// 32 lanes of 32 bits; a 64-bit register takes two rows.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub struct Row(pub [u32; 32]);

impl Row {
    /// A row of zeros.
    pub const ZERO: Row = Row([0; 32]);
}

/// A lane's type: how it lies in a row.
pub trait Lane: Copy {
    /// `u32` or `u64`.
    type Raw: Copy + Default;
    fn from_raw(raw: Self::Raw) -> Self;
    fn raw(self) -> Self::Raw;
}

macro_rules! lane {
    ($t:ty, $raw:ty, |$a:ident| $from:expr, |$b:ident| $to:expr) => {
        impl Lane for $t {
            type Raw = $raw;
            #[inline(always)]
            fn from_raw($a: $raw) -> $t {
                $from
            }
            #[inline(always)]
            fn raw(self) -> $raw {
                let $b = self;
                $to
            }
        }
    };
}

lane!(u16, u32, |a| a as u16, |b| u32::from(b));
lane!(i16, u32, |a| a as i16, |b| u32::from(b as u16));
lane!(u32, u32, |a| a, |b| b);
lane!(i32, u32, |a| a as i32, |b| b as u32);
lane!(f32, u32, |a| f32::from_bits(a), |b| crate::float::single(b));
lane!(u64, u64, |a| a, |b| b);
lane!(i64, u64, |a| a as i64, |b| b as u64);
lane!(f64, u64, |a| f64::from_bits(a), |b| b.to_bits());

/// The registers of the frame that runs: a pointer to its first row.
#[derive(Clone, Copy)]
pub struct Frame(pub *mut Row);

impl Frame {
    /// The lanes of a register.
    ///
    /// # Safety
    /// `row` is a register of the frame of this width (which decoding checked), and the frame is the one in front.
    #[inline(always)]
    pub unsafe fn at<R>(self, row: u32) -> *mut [R; 32] {
        // SAFETY: the caller's.
        unsafe { self.0.add(row as usize).cast() }
    }

    /// Reads the lanes of a register.
    ///
    /// # Safety
    /// As [`Frame::at`].
    #[inline(always)]
    pub unsafe fn get<T: Lane>(self, row: u32) -> [T::Raw; 32] {
        // SAFETY: the caller's.
        unsafe { *self.at(row) }
    }

    /// Writes the lanes in the mask.
    ///
    /// # Safety
    /// As [`Frame::at`].
    #[inline(always)]
    pub unsafe fn put<R: Copy>(self, row: u32, values: &[R; 32], mask: u32) {
        // SAFETY: the caller's.
        unsafe {
            let to = &mut *self.at::<R>(row);
            if mask == u32::MAX {
                *to = *values;
            } else {
                for l in 0..32 {
                    to[l] = if mask >> l & 1 == 1 { values[l] } else { to[l] };
                }
            }
        }
    }

    /// A predicate or other lane mask.
    ///
    /// # Safety
    /// As [`Frame::at`].
    #[inline(always)]
    pub unsafe fn mask(self, row: u32) -> u32 {
        // SAFETY: the caller's.
        unsafe { (*self.0.add(row as usize)).0[0] }
    }

    /// Sets the bits of a predicate in the mask.
    ///
    /// # Safety
    /// As [`Frame::at`].
    #[inline(always)]
    pub unsafe fn set_mask(self, row: u32, value: u32, mask: u32) {
        // SAFETY: the caller's.
        let word = unsafe { &mut (*self.0.add(row as usize)).0[0] };
        *word = *word & !mask | value & mask;
    }
}

/// `d = f(a)` in the lanes of the mask.
///
/// # Safety
/// As [`Frame::at`] for each row.
#[inline(always)]
pub unsafe fn map1<A: Lane, D: Lane>(f: Frame, d: u32, a: u32, mask: u32, op: impl Fn(A) -> D) {
    // SAFETY: the caller's.
    unsafe {
        let a = f.get::<A>(a);
        let mut out = [D::Raw::default(); 32];
        for l in 0..32 {
            out[l] = op(A::from_raw(a[l])).raw();
        }
        f.put(d, &out, mask);
    }
}

/// `d = f(a, b)` in the lanes of the mask.
///
/// # Safety
/// As [`Frame::at`] for each row.
#[inline(always)]
pub unsafe fn map2<A: Lane, B: Lane, D: Lane>(f: Frame, d: u32, a: u32, b: u32, mask: u32, op: impl Fn(A, B) -> D) {
    // SAFETY: the caller's.
    unsafe {
        let (a, b) = (f.get::<A>(a), f.get::<B>(b));
        let mut out = [D::Raw::default(); 32];
        for l in 0..32 {
            out[l] = op(A::from_raw(a[l]), B::from_raw(b[l])).raw();
        }
        f.put(d, &out, mask);
    }
}

/// `d = f(a, b, c)` in the lanes of the mask.
///
/// # Safety
/// As [`Frame::at`] for each row.
#[inline(always)]
pub unsafe fn map3<A: Lane, B: Lane, C: Lane, D: Lane>(
    f: Frame,
    d: u32,
    (a, b, c): (u32, u32, u32),
    mask: u32,
    op: impl Fn(A, B, C) -> D,
) {
    // SAFETY: the caller's.
    unsafe {
        let (a, b, c) = (f.get::<A>(a), f.get::<B>(b), f.get::<C>(c));
        let mut out = [D::Raw::default(); 32];
        for l in 0..32 {
            out[l] = op(A::from_raw(a[l]), B::from_raw(b[l]), C::from_raw(c[l])).raw();
        }
        f.put(d, &out, mask);
    }
}
