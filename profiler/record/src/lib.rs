//! Records: collects what traced processes emit, and what the Linux kernel reports of their threads.
//!
//! 1. `collect`: drains the rings of every process of a trace folder into a chunk file; tracks of the collector's own.
//! 2. [`watch`]: what the kernel reports of a command's threads, put together from `sched` (context switches), `sample` (call stacks),
//!    `symbols` (the functions of sampled addresses) and [`count`] (what processor and kernel count of each thread).
//!
//! Nothing that only looks at traces links this crate.

mod collect;
pub mod count;
mod proc;
mod sample;
mod sched;
mod symbols;
pub mod watch;

pub use collect::{CollectError, Collector, CollectorOptions, CollectorReport, Tracks};
