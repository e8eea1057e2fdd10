//! Collects events, stores and indexes them, draws levels of detail, analyses.
//!
//! In reading order, which is the order in which data flows:
//!
//! 1. [`chunks`]: the file format of what was collected, and its scanner.
//! 2. [`collect`]: drains the rings of every process of a trace folder into a chunk file.
//! 3. [`follow`]: reads a trace folder, growing or finished, damaged or not, into batches.
//! 4. [`mod@import`]: reads other tools' traces into batches.
//!    [`locate`] says which traces a path holds.
//! 5. [`batch`]: what a source of events (the follower, an importer, a test) hands to the store.
//! 6. [`store`]: the columns: tracks, lanes, slices, steps, counters, flows, names, warnings.
//! 7. [`lod`]: the spans that a lane shows at a pixel width.
//! 8. [`seal`]: a finished trace as Parquet files, with its pyramids beside; written, opened, paged.
//! 9. [`far`]: a trace that another process has; what is shown of it comes from there.
//! 10. [`mod@export`]: writes a store as other tools' traces.
//! 11. [`stats`], [`mod@stalls`], [`mod@flame`] and [`analysis`]: pure functions over the store.
//!
//! What the kernel tells of a command's threads comes from [`watch`], which puts together `sched` (context switches), `sample` (call
//! stacks), `symbols` (the functions of sampled addresses) and [`count`] (what processor and kernel count of each thread).

pub mod analysis;
pub mod batch;
pub mod chunks;
pub mod clocks;
pub mod collect;
pub mod count;
pub mod export;
pub mod far;
pub mod flame;
pub mod follow;
pub mod import;
pub mod locate;
pub mod lod;
mod radix;
mod sample;
mod sched;
pub mod seal;
pub mod stalls;
pub mod stats;
pub mod store;
mod symbols;
pub mod watch;

#[cfg(test)]
mod testkit;

pub use batch::Batch;
pub use collect::{CollectError, Collector, CollectorOptions, CollectorReport};
pub use flame::{FlameNode, flame};
pub use follow::{OpenError, TraceReader};
pub use lod::Span;
pub use seal::{Pager, SealError, SealReport, Sealed, SealedWriter};
pub use stalls::{Cause, CauseTotal, QueueWait, Stall, by_cause, queue_waits, stalls};
pub use stats::{Figures, NodeStat, OpStat, TrackUse, node_stats, op_stats, track_use};
pub use store::{
    Args, AtHand, Category, ClockOffset, Counter, Flow, FlowEnd, Frame, Function, InstantEvent, Lane, NodeInfo,
    OpenSlice, PagerStats, Pages, Process, SiteInfo, SliceId, SliceRef, Stack, Step, Store, StoreOptions, StoreStats,
    ThreadState, Track, TrackId, TrackKind, Transfer, Warning, WarningKind,
};
