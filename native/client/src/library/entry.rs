//! Where the shims jump to: finds the arguments of a declared function in registers and on the stack.
//!
//! A shim's function puts the library's number and its own place in the list into two registers that carry no argument
//! (see `shims/libraries`), so what the caller passed is still where C's calling convention put it.

use super::call_declared;
use sluice_api::libraries::Kind;
use sluice_protocol::library::MOST_ARGUMENTS;
use std::arch::naked_asm;

/// Registers that integers and pointers are passed in.
#[cfg(target_arch = "x86_64")]
const INTEGERS: usize = 6;
#[cfg(target_arch = "aarch64")]
const INTEGERS: usize = 8;
/// Registers that floating-point numbers are passed in.
const FLOATS: usize = 8;

/// Registers at the call, as the entry saves them.
#[repr(C)]
struct Registers {
    integers: [usize; INTEGERS],
    floats: [usize; FLOATS],
}

/// Entry of every function of every shim.
///
/// # Safety
/// Jumped to by a shim, with the arguments that the function's declaration says.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn sluice_library_entry() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "sub rsp, 112",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        "movsd [rsp + 48], xmm0",
        "movsd [rsp + 56], xmm1",
        "movsd [rsp + 64], xmm2",
        "movsd [rsp + 72], xmm3",
        "movsd [rsp + 80], xmm4",
        "movsd [rsp + 88], xmm5",
        "movsd [rsp + 96], xmm6",
        "movsd [rsp + 104], xmm7",
        "mov edi, eax",
        "mov esi, r11d",
        "mov rdx, rsp",
        "lea rcx, [rbp + 16]",
        "call {entered}",
        "leave",
        "ret",
        entered = sym entered,
    )
}

/// Entry of every function of every shim.
///
/// # Safety
/// Jumped to by a shim, with the arguments that the function's declaration says.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn sluice_library_entry() {
    naked_asm!(
        "stp x29, x30, [sp, #-144]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "stp d0, d1, [sp, #80]",
        "stp d2, d3, [sp, #96]",
        "stp d4, d5, [sp, #112]",
        "stp d6, d7, [sp, #128]",
        "mov w0, w9",
        "mov w1, w10",
        "add x2, sp, #16",
        "add x3, sp, #144",
        "bl {entered}",
        "ldp x29, x30, [sp], #144",
        "ret",
        entered = sym entered,
    )
}

/// Puts the arguments into slots, one each.
///
/// # Safety
/// `registers` and `stack` are those of a call of this function.
unsafe extern "C" fn entered(library: u32, function: u32, registers: *const Registers, stack: *const usize) -> usize {
    // SAFETY: saved by the entry, and alive while it waits.
    let registers = unsafe { &*registers };
    call_declared(library, function, |declared, slots: &mut [usize; MOST_ARGUMENTS]| {
        let (mut integers, mut floats, mut stacked) = (0, 0, 0);
        for (slot, parameter) in slots.iter_mut().zip(&declared.parameters) {
            // On x86-64 such a structure lies among the arguments on the stack; on AArch64 it is passed by its address.
            if let (Kind::Block(bytes), true) = (&parameter.kind, cfg!(target_arch = "x86_64")) {
                // SAFETY: the caller put the structure there.
                *slot = unsafe { stack.add(stacked) } as usize;
                stacked += bytes.div_ceil(8) as usize;
                continue;
            }
            // Two floats fill one register on x86-64; on AArch64 each has its own.
            if let (Kind::Complex, true, Some([real, imaginary])) =
                (&parameter.kind, cfg!(target_arch = "aarch64"), registers.floats.get(floats..floats + 2))
            {
                *slot = real & 0xffff_ffff | imaginary << 32;
                floats += 2;
                continue;
            }
            let (used, registers): (&mut usize, &[usize]) = match parameter.kind {
                Kind::F32 | Kind::F64 | Kind::Complex => (&mut floats, &registers.floats),
                _ => (&mut integers, &registers.integers),
            };
            *slot = match registers.get(*used) {
                Some(value) => {
                    *used += 1;
                    *value
                }
                None => {
                    stacked += 1;
                    // SAFETY: what does not fit into registers lies on the stack, in order, eight bytes each.
                    unsafe { stack.add(stacked - 1).read() }
                }
            };
        }
    })
}
