//! Stores traces: every trace that is shown or analysed is a [`Store`], wherever its slices are.
//!
//! 1. `store`: the rows of a trace: tracks, lanes, slices, steps, counters, flows, names, warnings.
//! 2. [`seal`]: a finished trace as Parquet files with its pyramids, whose slices are loaded on demand.
//! 3. `follow`: reads a trace folder, growing or finished, damaged or not, into batches.
//! 4. [`sealing`]: seals the trace that a collector left in a folder.
//! 5. [`remote`]: shows a trace that is in another process, and fetches only what is shown.

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
