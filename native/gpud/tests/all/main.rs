//! A real gpud, spoken to frame by frame. One program, because each takes seconds to build.

mod bounds;
mod contract;
mod fuzz;
mod gone;
mod hardening;
mod hello;
mod joining;
mod leases;
mod links;
mod memory;
mod metering;
mod modules;
mod peers;
mod pinned;
mod sessions;
mod support;
