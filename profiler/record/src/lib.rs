//! Records traces: collects the events of traced processes, and the Linux kernel's reports of their threads.
//!
//! 1. `collect`: drains the rings of every process of a trace folder into a chunk file, and writes tracks that have no
//!    ring.
//! 2. [`watch`]: the kernel's reports of a command's threads, from `sched` (context switches), `sample` (call stacks),
//!    `symbols` (the functions of sampled addresses), [`count`] (counters of processor and kernel) and `proc` (files in
//!    `/proc`).
//!
//! Programs that only read traces do not link this crate.

mod collect;
pub mod count;
mod proc;
mod sample;
mod sched;
mod symbols;
pub mod watch;

pub use collect::{CollectError, Collector, CollectorOptions, CollectorReport, Tracks};
