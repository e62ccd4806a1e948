//! Matrices of 8 x 8 halves between shared memory and the registers of a warp.

use super::Kind::R;
use super::memory::Area;
use super::{Block, EACH, Maker, OWN, Statement, Text, put, warps};

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Load,
    Store,
    /// From registers to registers, transposed.
    Move,
}

/// So many matrices, each row at the beginning of some lane's shared memory (and so many rows of 16 bytes behind it);
/// the first of the registers.
struct Fragments {
    way: Way,
    count: usize,
    transposed: bool,
    first: usize,
    row: usize,
}

pub fn make(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    if !maker.uniform() {
        return None;
    }
    let way = maker.of(&[Way::Load, Way::Store, Way::Move]);
    Some(Box::new(Fragments {
        way,
        count: maker.of(&[1, 2, 4]),
        transposed: maker.coin(),
        first: maker.register(),
        row: maker.pick(OWN / 16),
    }))
}

/// The halves that lane `lane` has of a matrix: their rows and columns.
fn places(lane: usize, transposed: bool) -> [(usize, usize); 2] {
    [0, 1].map(|half| {
        let (row, column) = (lane / 4, lane % 4 * 2 + half);
        if transposed { (column, row) } else { (row, column) }
    })
}

impl Statement for Fragments {
    fn write(&self, text: &mut Text) {
        let list: Vec<String> = (0..self.count).map(|n| format!("%r{}", (self.first + n) % EACH)).collect();
        let (list, trans) = (format!("{{{}}}", list.join(", ")), if self.transposed { ".trans" } else { "" });
        let (count, at) = (self.count, format!("[%o0+{}]", 16 * self.row));
        let form = format!("sync.aligned.m8n8.x{count}{trans}.shared.b16");
        match self.way {
            Way::Load => put!(text, "bar.warp.sync -1; ldmatrix.{form} {list}, {at}; bar.warp.sync -1;"),
            Way::Store => put!(text, "bar.warp.sync -1; stmatrix.{form} {at}, {list}; bar.warp.sync -1;"),
            Way::Move => put!(text, "movmatrix.sync.aligned.m8n8.trans.b16 %r{}, %r{};", self.row, self.first),
        }
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        for warp in warps(active) {
            let registers: Vec<_> = warp.iter().map(|at| block.lanes[*at].registers[R as usize]).collect();
            if self.way == Way::Move {
                for (lane, at) in warp.iter().enumerate() {
                    let half = |(row, column): (usize, usize)| {
                        registers[row * 4 + column / 2][self.first] >> (16 * (column % 2)) & 0xffff
                    };
                    let [low, high] = places(lane, true).map(half);
                    block.lanes[*at].set(R, self.row, high << 16 | low);
                }
                continue;
            }
            for matrix in 0..self.count {
                let register = (self.first + matrix) % EACH;
                for (lane, at) in warp.iter().enumerate() {
                    let mut value = 0;
                    for (half, (row, column)) in places(lane, self.transposed).into_iter().enumerate() {
                        let memory = &mut block.lanes[warp[8 * matrix + row]].own[Area::Shared as usize];
                        let bytes = &mut memory[16 * self.row + 2 * column..16 * self.row + 2 * column + 2];
                        if self.way == Way::Store {
                            bytes.copy_from_slice(&(registers[lane][register] >> (16 * half)).to_le_bytes()[..2]);
                        }
                        value |= (u64::from(bytes[1]) << 8 | u64::from(bytes[0])) << (16 * half);
                    }
                    block.lanes[*at].set(R, register, value);
                }
            }
        }
    }
}
