//! Analyses of a trace: pure functions over the [`Store`](trace_store::Store). docs/use/analysis.md has the
//! definitions.
//!
//! 1. `spans`, `activity`: what a slice means for the analyses.
//! 2. `lines`: each track's slices flattened into pieces that follow each other.
//! 3. `sync_record`, `collectives`, `correlation`, `autograd`, `step_index`: what happened before what, as recorded; `deps` indexes
//!    all of them.
//! 4. `walk`: the backward walk through last-arriving predecessors. [`stalls`](mod@stalls) walks gaps, [`critical`]
//!    walks steps.
//! 5. `disjoint`: one path from the critical paths of steps that overlap.
//! 6. [`stats`], [`flame`](mod@flame), [`breakdown`], [`ops`], [`counters`], [`roofline`], [`kernels`], [`memory`],
//!    [`stragglers`], [`threads`], [`communication`](mod@communication): tables.
//! 7. [`findings`]: the changes to make first. [`report`]: the results of 4 to 7 together.
//! 8. [`diff`]: the changes between two traces.
//!
//! Helpers: `nesting` (slices in slices), `search` (a binary search from a position near the result), `intervals` (lengths of unions).

mod activity;
mod autograd;
pub mod breakdown;
mod collectives;
pub mod communication;
mod correlation;
pub mod counters;
pub mod critical;
mod deps;
pub mod diff;
mod disjoint;
pub mod findings;
pub mod flame;
mod incoming;
mod intervals;
pub mod kernels;
mod launching;
mod lines;
pub mod memory;
mod needs;
mod nesting;
pub mod ops;
mod replay;
pub mod report;
pub mod roofline;
mod search;
mod spans;
pub mod stalls;
pub mod stats;
mod step_index;
pub mod stragglers;
mod sync_record;
pub mod threads;
pub mod torch;
mod walk;
mod whatif;

pub use flame::flame;
pub use stalls::stalls;

#[cfg(test)]
mod tests;
