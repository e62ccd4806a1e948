//! Execution: warps of 32 lanes, blocks of warps, a pool of threads for blocks.

mod alu;
mod apart;
mod block;
mod builtin;
mod busy;
mod cast;
mod collective;
mod engine;
mod jit;
mod lanes;
mod loaded;
mod matrix;
mod memory;
mod progress;
mod queue;
mod room;
mod trail;
mod warp;

pub use busy::Working;
pub use engine::{Aside, Engine, Launch, LaunchStats};
pub use loaded::LoadedModule;
pub(crate) use loaded::provided;
pub use progress::Running;
pub use room::Lender;
