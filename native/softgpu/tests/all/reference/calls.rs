//! Calls of functions: by name and by pointer, of functions that call themselves, that give several numbers, that have
//! memory of their own, and in which lanes work together.

use super::Kind::*;
use super::{Block, Maker, Statement, Text, put, warps};

/// The functions that programs call.
pub const FUNCTIONS: &str = "\
.func (.param .b32 r) mix(.param .b32 a, .param .b32 b)
{
.reg .pred %p; .reg .b32 %r<4>;
ld.param.u32 %r0, [a]; ld.param.u32 %r1, [b]; mad.lo.u32 %r2, %r0, 3, %r1; setp.gt.s32 %p, %r2, 0;
@%p bra end; xor.b32 %r2, %r2, 255;
end: st.param.b32 [r], %r2; ret;
}
.func (.param .b32 r) spread(.param .b32 a, .param .b32 b)
{
.reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<3>; .local .align 4 .b8 kept[64];
ld.param.u32 %r0, [a]; ld.param.u32 %r1, [b]; mov.u64 %d0, kept; mov.u32 %r2, 0;
fill: mad.wide.u32 %d1, %r2, 4, %d0; mad.lo.u32 %r3, %r0, %r2, %r1; st.local.u32 [%d1], %r3;
add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 16; @%p bra fill;
and.b32 %r4, %r1, 15; mad.wide.u32 %d1, %r4, 4, %d0; ld.local.u32 %r5, [%d1]; st.param.b32 [r], %r5; ret;
}
.func (.param .b32 r) difference(.param .b32 a, .param .b32 b)
{
.reg .b32 %r<3>;
ld.param.u32 %r0, [a]; ld.param.u32 %r1, [b]; sub.u32 %r2, %r0, %r1; st.param.b32 [r], %r2; ret;
}
.func (.param .b64 r) steps(.param .b32 n, .param .b64 x)
{
.reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d<4>;
ld.param.u32 %r0, [n]; ld.param.u64 %d0, [x]; mul.lo.u64 %d1, %d0, 5; cvt.u64.u32 %d2, %r0; add.u64 %d1, %d1, %d2;
setp.eq.u32 %p, %r0, 0; @%p bra end; sub.u32 %r1, %r0, 1;
{ .param .b32 m; .param .b64 y; .param .b64 z; st.param.b32 [m], %r1; st.param.b64 [y], %d1;
call (z), steps, (m, y); ld.param.b64 %d1, [z]; } xor.b64 %d1, %d1, %d0;
end: st.param.b64 [r], %d1; ret;
}
.func (.param .align 8 .b8 r[16]) divided(.param .align 8 .b8 q[16])
{
.reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d<4>;
ld.param.u64 %d0, [q]; ld.param.u32 %r0, [q+8]; or.b32 %r0, %r0, 1; cvt.u64.u32 %d1, %r0; div.u64 %d2, %d0, %d1;
rem.u64 %d3, %d0, %d1; cvt.u32.u64 %r1, %d3; st.param.b64 [r], %d2; st.param.b32 [r+8], %r1; ret;
}
.func (.param .b32 r) total(.param .b32 a, .param .b32 mask)
{
.reg .b32 %r<3>;
ld.param.u32 %r0, [a]; ld.param.u32 %r1, [mask]; redux.sync.add.u32 %r2, %r0, %r1; st.param.b32 [r], %r2; ret;
}";

type Function = (&'static str, fn(u32, u32) -> u32);

const PLAIN: [Function; 3] = [
    ("mix", |a, b| {
        let sum = a.wrapping_mul(3).wrapping_add(b);
        if sum as i32 > 0 { sum } else { sum ^ 255 }
    }),
    ("spread", |a, b| a.wrapping_mul(b & 15).wrapping_add(b)),
    ("difference", u32::wrapping_sub),
];

fn steps(n: u32, x: u64) -> u64 {
    let next = x.wrapping_mul(5).wrapping_add(u64::from(n));
    if n == 0 { next } else { steps(n - 1, next) ^ x }
}

enum Call {
    Named(usize),
    /// Each lane calls the function that its register's remainder names.
    Pointed(usize),
    /// As deep as the low three bits of the second operand say.
    Steps,
    Divided,
    Total,
}

/// A call with its result and operands.
struct Called(Call, usize, [usize; 2]);

pub fn make(maker: &mut Maker, _: &mut usize) -> Option<Box<dyn Statement>> {
    let call = match maker.pick(7) {
        0 | 1 => Call::Named(maker.pick(PLAIN.len())),
        2 | 3 => Call::Pointed(maker.register()),
        4 => Call::Steps,
        5 if maker.collective() => Call::Total,
        _ => Call::Divided,
    };
    Some(Box::new(Called(call, maker.register(), [maker.register(), maker.register()])))
}

impl Statement for Called {
    fn write(&self, text: &mut Text) {
        let Called(call, d, [a, b]) = self;
        let parameters = "{ .param .b32 x; .param .b32 y; .param .b32 z; st.param.b32 [x],";
        match call {
            Call::Named(function) => {
                let name = PLAIN[*function].0;
                put!(
                    text,
                    "{parameters} %r{a}; st.param.b32 [y], %r{b};\ncall (z), {name}, (x, y); ld.param.b32 %r{d}, [z]; }}"
                );
            }
            Call::Pointed(by) => {
                let label = text.label();
                put!(text, "rem.u32 %t8, %r{by}, 3; mov.u64 %a5, {};", PLAIN[0].0);
                for (number, (name, _)) in PLAIN.iter().enumerate().skip(1) {
                    put!(text, "setp.eq.u32 %q0, %t8, {number};\n@%q0 mov.u64 %a5, {name};");
                }
                put!(text, "{parameters} %r{a}; st.param.b32 [y], %r{b};");
                put!(text, "to{label}: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);");
                put!(text, "call (z), %a5, (x, y), to{label}; ld.param.b32 %r{d}, [z]; }}");
            }
            Call::Steps => {
                put!(
                    text,
                    "and.b32 %t8, %r{b}, 7;\n{{ .param .b32 n; .param .b64 x; .param .b64 z; st.param.b32 [n], %t8;"
                );
                put!(text, "st.param.b64 [x], %d{a}; call (z), steps, (n, x); ld.param.b64 %d{d}, [z]; }}");
            }
            Call::Divided => {
                put!(text, "{{ .param .align 8 .b8 q[16]; .param .align 8 .b8 z[16]; st.param.b64 [q], %d{a};");
                put!(text, "st.param.b32 [q+8], %r{b}; call (z), divided, (q);");
                put!(text, "ld.param.b64 %d{d}, [z]; ld.param.b32 %r{d}, [z+8]; }}");
            }
            Call::Total => {
                let mask = text.members();
                put!(
                    text,
                    "{parameters} %r{a}; st.param.b32 [y], {mask};\ncall (z), total, (x, y); ld.param.b32 %r{d}, [z]; }}"
                );
            }
        }
    }

    fn execute(&self, block: &mut Block, active: &[usize]) {
        let Called(call, d, [a, b]) = self;
        if let Call::Total = call {
            for warp in warps(active) {
                let sum: u64 = warp.iter().map(|at| block.lanes[*at].get(R, *a)).sum();
                warp.iter().for_each(|at| block.lanes[*at].set(R, *d, sum & 0xffff_ffff));
            }
            return;
        }
        for at in active {
            let lane = &mut block.lanes[*at];
            let (x, y, long) = (lane.get(R, *a) as u32, lane.get(R, *b) as u32, lane.get(D, *a));
            match call {
                Call::Named(function) => lane.set(R, *d, u64::from(PLAIN[*function].1(x, y))),
                Call::Pointed(by) => {
                    let function = lane.get(R, *by) as usize % PLAIN.len();
                    lane.set(R, *d, u64::from(PLAIN[function].1(x, y)));
                }
                Call::Steps => lane.set(D, *d, steps(y & 7, long)),
                _ => {
                    let divisor = u64::from(y | 1);
                    lane.set(D, *d, long / divisor);
                    lane.set(R, *d, long % divisor);
                }
            }
        }
    }
}
