//! PTX executed on the CPU: the software GPU behind laptops, continuous integration and courses without hardware.
//!
//! A pure library.  It knows nothing of leases, networks or the driver API: it parses PTX, keeps a guarded address
//! space, and runs kernels.  It reports itself as compute capability 7.5 would behave; correct first, then fast.
//!
//! ```
//! use sluice_softgpu::{Arena, Engine, Launch, LoadedModule, Module};
//! use std::sync::{Arc, atomic::AtomicBool};
//!
//! let ptx = b".version 7.5
//! .target sm_75
//! .address_size 64
//! .visible .entry fill(.param .u64 to) {
//!     .reg .b32 %r<2>; .reg .b64 %d<4>;
//!     ld.param.u64 %d1, [to];
//!     mov.u32 %r1, %tid.x;
//!     mad.wide.u32 %d2, %r1, 4, %d1;
//!     st.global.u32 [%d2], %r1;
//!     ret;
//! }";
//! let arena = Arena::reserve(0x3000_0000_0000, 1 << 24).unwrap();
//! arena.map(0x3000_0000_0000, 4096).unwrap();
//! let module = Arc::new(Module::parse(ptx).unwrap());
//! let module = LoadedModule::new(module, |_| Ok::<_, ()>(0)).unwrap();
//! let launch = Launch {
//!     module: &module,
//!     kernel: "fill",
//!     grid: [1, 1, 1],
//!     block: [64, 1, 1],
//!     dynamic_shared: 0,
//!     params: &0x3000_0000_0000u64.to_le_bytes(),
//!     cooperative: false,
//!     heap: None,
//! };
//! Engine::new(2).launch(&arena, &launch, &AtomicBool::new(false)).unwrap();
//! let mut out = [0; 4];
//! arena.read(0x3000_0000_0000 + 4 * 63, &mut out).unwrap();
//! assert_eq!(out, 63u32.to_le_bytes());
//! ```
//!
//! # From text to a running kernel
//!
//! 1. `lexer` and `parser` read the module: directives, variables, functions.
//! 2. `lower` turns each statement into the `ir`'s instructions: a register machine whose registers are rows of 32
//!    lanes, and whose constants are rows as well, so that an operand is always the number of a row.  An instruction
//!    that the engine lacks does not fail the module; it marks the kernels that can reach it
//!    ([`KernelInfo::unsupported`]), and launching one of those is [`Fault::Unsupported`].
//! 3. [`LoadedModule`] has the addresses of variables that the caller chose, resolves constants, lays out shared
//!    memory and compiles, kernel by kernel at the first launch.
//! 4. [`Engine::launch`] hands out blocks in the order of their numbers to a pool of threads (scans with look-back
//!    rely on the order); a block runs on one thread, its warps in turn; a cooperative launch keeps all its blocks
//!    going in turn.
//!
//! # How a warp runs
//!
//! What lies between two places where control may go elsewhere is compiled for the host with Cranelift (`exec::jit`):
//! loops over the lanes of the warp, four at a time in vectors of 128 bits, whose registers are rows of memory.  Loads
//! compare addresses with what is known to be mapped.  An instruction that has no such form is a call of its Rust
//! function for the whole warp; branches, barriers, calls and warp-wide instructions are executed between the segments.
//! Lanes that stand at the same instruction in the same frame run together; of several such
//! groups the deepest call and then the lowest address goes first, and a group that keeps jumping backward is set
//! aside for the others, so that spin locks between the lanes of a warp make progress.  `.sync` instructions wait for
//! the members of their mask.  A barrier of the whole block counts threads, one for a number of threads whole warps
//! (those whose lanes have all come or exited); both may stand in diverged code.
//!
//! Calls are real calls, with frames of registers stacked in each lane; recursion and function pointers work.
//! Parameters of functions, like all local memory, lie in granules of 8 bytes, the 32 lanes side by side.
//!
//! # Addresses
//!
//! Device pointers are host addresses inside an [`Arena`].  Every access is checked against the arena's map of pages
//! *before* it is made: a wild pointer is CUDA's error 700, never a signal in this process.  Shared, local and
//! parameter memory appear above 2^48, where no host address is.
//!
//! # What differs from a GPU
//!
//! - Floating point: `.approx` instructions are as accurate as the host's functions; `.ftz` looks at the rounded result.
//! - Directed rounding and results that are no numbers are exact: a NaN of single precision is `0x7fffffff`, one of
//!   half precision `0x7fff`, as cards have them.
//! - The stack of a thread ends at 512 KiB of local memory; registers, local and shared memory of the threads that run
//!   at the same time take at most 288 MiB, so that large ones run on fewer of the host's cores, and a block that needs
//!   more is refused (701). What is more than 16 MiB for all launches together is borrowed ([`Lender`]).
//! - Blocks of an ordinary launch begin in order; where those that run do not end, the next begin beside them, up to
//!   the 4096 threads and 64 blocks that the device's four multiprocessors hold, and take turns.
//! - A modifier that an instruction does not have, a parameter's bytes that are none, and an offset of more than 32 bits
//!   are refused with line and column.
//! - Asynchronous copies and reductions, bulk ones too, and answers of `clusterlaunchcontrol` are made at once; a
//!   cluster is one block, which waits for itself at its barrier.
//! - 128 bits that are accessed with an order (`ld.acquire.b128`, `atom.cas.b128`, …) are whole for each other, not for
//!   accesses to their halves.
//! - Matrix products are added in double precision and rounded once; fragments of `wmma` lie as the engine likes.
//! - Not there: textures and surfaces, `wgmma` and tensor memory, copies of tensors, dynamic parallelism, 8-bit
//!   floats in matrix products, floats of fewer bits, video instructions but `vabsdiff2` and `vabsdiff4` (the ones that
//!   nvcc writes), `st.bulk`, 32-bit addresses.

mod arena;
mod bits;
mod cancelled;
mod error;
mod exact;
mod exec;
mod expression;
mod float;
mod fp8;
pub mod half;
mod heap;
mod ir;
mod lexer;
mod lower;
mod mbarrier;
mod module;
mod names;
mod parser;
mod types;

pub use arena::{Arena, GRANULE, PAGE};
pub use error::{Fault, Place, PtxError, Space};
pub use exec::{Aside, Engine, Launch, LaunchStats, Lender, LoadedModule, Running, Working};
pub use heap::{DEFAULT_HEAP, Heap, NotAllocated};
pub use lower::OPCODES;
pub use module::{GlobalInfo, KernelInfo, Module, ParamInfo, Relocation, Symbol};
pub use names::plain_name;
