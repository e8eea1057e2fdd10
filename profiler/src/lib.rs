//! Collects events, stores and indexes them, draws levels of detail, analyses.
//!
//! In reading order, which is the order in which data flows:
//!
//! 1. [`batch`]: what a source of events (the follower, an importer, a test) hands to the store.
//! 2. [`store`]: the columns: tracks, lanes, slices, steps, counters, flows, names, warnings.
//! 3. [`lod`]: the spans that a lane shows at a pixel width.
//! 4. [`stats`]: pure functions over the store.

pub mod batch;
pub mod lod;
pub mod stats;
pub mod store;

pub use batch::Batch;
pub use lod::Span;
pub use stats::{Figures, NodeStat, OpStat, TrackUse, node_stats, op_stats, track_use};
pub use store::{
    Category, Counter, Flow, InstantEvent, Lane, NodeInfo, OpenSlice, Process, SiteInfo, SliceId,
    SliceRef, Step, Store, StoreOptions, StoreStats, Track, TrackId, TrackKind, Warning,
    WarningKind,
};
