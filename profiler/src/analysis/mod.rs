//! Analyses of a trace: pure functions over the [`Store`](crate::Store). docs/analysis.md has the definitions.
//!
//! In reading order:
//!
//! 1. `spans`, `doing`: what a slice means for the analyses.
//! 2. `line`: each track's slices flattened into pieces that follow each other.
//! 3. `sync`, `collectives`, `linked`, `stepped`, `deps`: what had to happen before what, as recorded.
//! 4. `walk`: the backward walk through last-arriving predecessors; [`crate::stalls`](mod@crate::stalls) walks gaps,
//! 5. [`critical`] walks steps; `disjoint` makes one path of those of steps that overlap.
//! 6. [`breakdown`], [`ops`], [`counters`], [`roofline`], [`memory`], [`stragglers`], [`threads`]: tables.
//! 7. [`findings`]: what to change first; [`report`] has it all.
//! 8. [`diff`]: what changed between two traces.

pub mod breakdown;
pub(crate) mod collectives;
pub mod counters;
pub mod critical;
pub(crate) mod deps;
pub mod diff;
mod disjoint;
pub(crate) mod doing;
pub mod findings;
pub(crate) mod line;
mod linked;
pub mod memory;
pub mod ops;
pub mod report;
pub mod roofline;
pub(crate) mod spans;
pub(crate) mod stepped;
pub mod stragglers;
pub(crate) mod sync;
pub mod threads;
pub(crate) mod walk;

#[cfg(test)]
mod tests;
