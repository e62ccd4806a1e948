//! Branches, loops, and branches by a number.

use super::Kind::R;
use super::{Block, Maker, Statement, Text, put};

type Body = Vec<Box<dyn Statement>>;

/// Lanes part by a predicate.
struct If(usize, Body, Body);

pub fn make_if(maker: &mut Maker, left: &mut usize) -> Option<Box<dyn Statement>> {
    if maker.depth >= 3 || *left <= 4 {
        return None;
    }
    let part = *left / 3;
    *left -= 2 * part;
    Some(Box::new(If(maker.register(), maker.deeper(part), maker.deeper(part))))
}

/// Writes which lanes go one way and which the other, by a predicate: the registers with them.
fn part(text: &mut Text, predicate: &str) -> [usize; 2] {
    if text.mask == usize::MAX {
        return [usize::MAX; 2];
    }
    let (all, yes, no) = (text.mask, text.new_mask(), text.new_mask());
    put!(text, "vote.sync.ballot.b32 %g{yes}, {predicate}, %g{all}; xor.b32 %g{no}, %g{all}, %g{yes};");
    [yes, no]
}

impl Statement for If {
    fn write(&self, text: &mut Text) {
        let (label, If(p, yes, no)) = (text.label(), self);
        let [with, without] = part(text, &format!("%p{p}"));
        put!(text, "@!%p{p} bra $else{label};");
        text.block(yes, with);
        put!(text, "bra $end{label};\n$else{label}:");
        text.block(no, without);
        put!(text, "$end{label}:");
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let (with, without): (Vec<usize>, Vec<usize>) = active.iter().partition(|at| block.lanes[**at].holds(self.0));
        block.run(&self.1, &with);
        block.run(&self.2, &without);
    }
}

/// As often as the low two bits of the register say, and once more.
struct Loop(usize, Body);

pub fn make_loop(maker: &mut Maker, left: &mut usize) -> Option<Box<dyn Statement>> {
    if maker.depth >= 2 || *left <= 4 {
        return None;
    }
    let part = *left / 3;
    *left -= part;
    Some(Box::new(Loop(maker.register(), maker.deeper(part))))
}

impl Statement for Loop {
    fn write(&self, text: &mut Text) {
        let (label, Loop(times, body)) = (text.label(), self);
        text.counters += 1;
        let (counter, together) = (text.counters, text.mask != usize::MAX);
        let mask = if together { text.new_mask() } else { usize::MAX };
        if together {
            put!(text, "mov.b32 %g{mask}, %g{};", text.mask);
        }
        put!(text, "and.b32 %n{counter}, %r{times}, 3;\n$loop{label}:");
        text.block(body, mask);
        put!(text, "sub.u32 %n{counter}, %n{counter}, 1; setp.ge.s32 %q0, %n{counter}, 0;");
        if together {
            put!(text, "vote.sync.ballot.b32 %g{mask}, %q0, %g{mask};");
        }
        put!(text, "@%q0 bra $loop{label};");
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let rounds: Vec<u64> = active.iter().map(|at| block.lanes[*at].get(R, self.0) & 3).collect();
        for round in 0..4 {
            let still = active.iter().zip(&rounds).filter(|(_, rounds)| round <= **rounds);
            let still: Vec<usize> = still.map(|(at, _)| *at).collect();
            block.run(&self.1, &still);
        }
    }
}

/// A branch by a register's remainder.
struct Switch(usize, [Body; 3]);

pub fn make_switch(maker: &mut Maker, left: &mut usize) -> Option<Box<dyn Statement>> {
    if maker.depth >= 2 || *left <= 6 {
        return None;
    }
    let part = *left / 4;
    *left -= 3 * part;
    let register = maker.register();
    Some(Box::new(Switch(register, [(); 3].map(|()| maker.deeper(part)))))
}

impl Statement for Switch {
    fn write(&self, text: &mut Text) {
        let (label, Switch(register, bodies)) = (text.label(), self);
        put!(
            text,
            "$way{label}: .branchtargets $way{label}a0, $way{label}a1, $way{label}a2;\nrem.u32 %t8, %r{register}, 3;"
        );
        let masks = [0, 1, 2].map(|way| {
            put!(text, "setp.eq.u32 %q0, %t8, {way};");
            part(text, "%q0")[0]
        });
        put!(text, "brx.idx %t8, $way{label};");
        for (way, (body, mask)) in bodies.iter().zip(masks).enumerate() {
            put!(text, "$way{label}a{way}:");
            text.block(body, mask);
            put!(text, "bra $end{label};");
        }
        put!(text, "$end{label}:");
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let ways: Vec<u64> = active.iter().map(|at| block.lanes[*at].get(R, self.0) % 3).collect();
        for (way, body) in (0..).zip(&self.1) {
            let here: Vec<usize> = active.iter().zip(&ways).filter(|(_, w)| **w == way).map(|(at, _)| *at).collect();
            block.run(body, &here);
        }
    }
}
