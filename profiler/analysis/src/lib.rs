//! Analyses of a trace: pure functions over the [`Store`](trace_store::Store). docs/use/analysis.md has the definitions.
//!
//! 1. `spans`, `doing`: what a slice means for the analyses.
//! 2. `line`: each track's slices flattened into pieces that follow each other.
//! 3. `sync`, `collectives`, `linked`, `stepped`, `deps`: what had to happen before what, as recorded.
//! 4. `walk`: the backward walk through last-arriving predecessors; [`stalls`](mod@stalls) walks gaps,
//! 5. [`critical`] walks steps; `disjoint` makes one path of those of steps that overlap.
//! 6. [`stats`], [`flame`](mod@flame), [`breakdown`], [`ops`], [`counters`], [`roofline`], [`memory`], [`stragglers`], [`threads`]: tables.
//! 7. [`findings`]: what to change first; [`report`] has it all.
//! 8. [`diff`]: what changed between two traces.

mod activity;
pub mod breakdown;
mod collectives;
pub mod counters;
pub mod critical;
mod deps;
pub mod diff;
mod disjoint;
pub mod findings;
pub mod flame;
mod intervals;
mod line;
mod linked;
pub mod memory;
mod near;
pub mod ops;
pub mod report;
pub mod roofline;
mod spans;
pub mod stalls;
pub mod stats;
mod stepped;
pub mod stragglers;
mod sync;
pub mod threads;
mod walk;

pub use flame::flame;
pub use stalls::stalls;

#[cfg(test)]
mod tests;
