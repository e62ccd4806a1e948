//! What a warp will load next is asked for in advance.
//!
//! A GPU hides the time of its memory behind other warps; here a block's warps take turns, and each would wait for its
//! own loads.  Many a kernel moves on by the same distance from barrier to barrier (the next tile), so a warp that comes
//! to one asks the processor's caches for what lies as far from its last loads as those lay from the ones before.

/// Most accesses of a kernel that are followed.
pub const MOST: usize = 8;

/// Where half a warp's load began: since the last barrier, and before it.  Compiled code writes `now`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Trail {
    now: u64,
    before: u64,
}

/// Both halves of each access that is followed.
pub type Trails = [[Trail; 2]; MOST];

impl Trail {
    /// Asks for what will be loaded next if the load goes on as it did.
    pub fn ahead(&mut self) {
        let distance = self.now.wrapping_sub(self.before);
        if distance != 0 {
            self.before = self.now;
            prefetch(self.now.wrapping_add(distance));
        }
    }
}

/// Whether asking in advance has an effect on this processor.
pub const fn works() -> bool {
    cfg!(target_arch = "x86_64")
}

fn prefetch(address: u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing and fails at no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
