//! The 16 bytes with which `clusterlaunchcontrol.try_cancel` answers: whether a block was taken out of the launch, and
//! where it stands in the grid.

/// Bytes of an answer.
pub const BYTES: u64 = 16;
/// Where the block's x, y and z are, and a word that says nothing: the half of the answer, and the bits below.
pub const PLACE: [(usize, u64); 4] = [(0, 32), (1, 0), (1, 32), (0, 0)];

/// The answer for a block that was taken, in halves; the low word of the first is not zero.
pub fn answer(block: [u32; 3]) -> [u64; 2] {
    let [x, y, z] = block.map(u64::from);
    [x << 32 | 1, z << 32 | y]
}
