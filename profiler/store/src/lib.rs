//! Stores traces: every trace that is looked at is a [`Store`], wherever its slices are.
//!
//! 1. `store`: the columns: tracks, lanes, slices, steps, counters, flows, names, warnings.
//! 2. [`seal`]: a finished trace as Parquet files with its pyramids; written, opened, paged.
//! 3. `follow`: reads a trace folder, growing or finished, damaged or not, into batches.
//! 4. [`sealing`]: seals the trace that a collector left in a folder.
//! 5. [`remote`]: a trace that another process has; what is shown of it comes from there.

mod cache;
mod follow;
pub mod remote;
pub mod seal;
pub mod sealing;
mod store;
#[cfg(any(test, feature = "testkit"))]
#[allow(clippy::unwrap_used, missing_docs, reason = "for tests")]
pub mod testkit;

#[cfg(test)]
mod lod_tests;

pub use follow::TraceReader;
pub use store::{Lane, Residency, Store, StoreOptions, StoreStats, Track, Update};
