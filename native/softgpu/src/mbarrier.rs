//! The 64-bit word of an `mbarrier` in shared memory: arrivals that its phase still waits for, how many a phase has,
//! bytes that are announced but have not come, its layout, and the phase's parity.

const COUNT_BITS: u32 = 20;
/// The arrivals that are missing in the phase of a word.
pub const COUNT: u64 = (1 << COUNT_BITS) - 1;
/// Bytes outstanding, in two's complement: they may come before they are announced.
const BYTES: u64 = (1 << 22) - 1;
const BYTES_AT: u32 = 2 * COUNT_BITS;
/// Where the number of its layout lies: 1 where what has come may be reported on.  Nothing here reports.
pub const LAYOUT: u32 = 62;
/// Where the phase's parity lies.
pub const PHASE: u32 = 63;

/// A barrier whose phases have so many arrivals, and its layout.
pub fn init(count: u64) -> u64 {
    let (count, layout) = (count & COUNT, count & 1 << LAYOUT);
    layout | count << COUNT_BITS | count
}

/// The word with these counts; a phase that misses nothing ends, and the next begins.
fn with(word: u64, pending: u64, expected: u64, bytes: u64) -> u64 {
    let (expected, bytes) = (expected & COUNT, bytes & BYTES);
    let done = pending == 0 && bytes == 0;
    let pending = if done { expected } else { pending };
    (word ^ u64::from(done) << PHASE) & (1 << PHASE | 1 << LAYOUT)
        | bytes << BYTES_AT
        | expected << COUNT_BITS
        | pending
}

fn parts(word: u64) -> (u64, u64, u64) {
    (word & COUNT, word >> COUNT_BITS & COUNT, word >> BYTES_AT & BYTES)
}

/// So many arrivals.
pub fn arrive(word: u64, count: u64) -> u64 {
    let (pending, expected, bytes) = parts(word);
    with(word, pending.saturating_sub(count), expected, bytes)
}

/// So many arrivals, which later phases do not wait for.
pub fn arrive_and_drop(word: u64, count: u64) -> u64 {
    let (pending, expected, bytes) = parts(word);
    with(word, pending.saturating_sub(count), expected.saturating_sub(count), bytes)
}

/// The phase waits for so many bytes more; it does not end by that.
pub fn expect(word: u64, count: u64) -> u64 {
    let (_, _, bytes) = parts(word);
    word & !(BYTES << BYTES_AT) | (bytes.wrapping_add(count) & BYTES) << BYTES_AT
}

/// So many bytes have come.
pub fn complete(word: u64, count: u64) -> u64 {
    let (pending, expected, bytes) = parts(word);
    with(word, pending, expected, bytes.wrapping_sub(count))
}
