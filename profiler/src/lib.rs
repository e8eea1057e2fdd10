//! The profiler's members under one name.

pub use trace_analysis as analysis;
pub use trace_analysis::flame::FlameNode;
pub use trace_analysis::stalls::{Cause, CauseTotal, QueueWait, Stall, by_cause, queue_waits};
pub use trace_analysis::stats::{self, Figures, NodeStat, OpStat, TrackUse, node_stats, op_stats, track_use};
pub use trace_analysis::{flame, stalls};
pub use trace_formats::{export, import, locate};
pub use trace_model::layout::OpenError;
pub use trace_model::lod::Span;
pub use trace_model::{
    Args, Batch, Category, ClockOffset, Counter, Flow, FlowEnd, Frame, Function, InstantEvent, NodeInfo, OpenSlice,
    PagerStats, Pages, Process, SiteInfo, SliceId, SliceRef, Stack, Step, ThreadState, TrackId, TrackKind, Transfer,
    Warning, WarningKind,
};
pub use trace_model::{chunks, clocks};
pub use trace_record::{CollectError, Collector, CollectorOptions, CollectorReport, count, watch};
pub use trace_store::remote as far;
pub use trace_store::seal::{Pager, SealError, Sealed, SealedWriter};
pub use trace_store::sealing::SealReport;
pub use trace_store::{Lane, Residency, Store, StoreOptions, StoreStats, TraceReader, Track, Update};

/// What a source of events hands to the store.
pub mod batch {
    pub use trace_model::*;
}

/// A finished trace in its last form.
pub mod seal {
    pub use trace_model::layout::SEALED_FOLDER as FOLDER;
    pub use trace_store::seal::*;
    pub use trace_store::sealing::*;
}

/// The columns.
pub mod store {
    pub use trace_model::layout::SEGMENT;
    pub use trace_model::*;
    pub use trace_store::{Lane, Residency, Store, StoreOptions, StoreStats, Track, Update};
}

/// Following a trace folder.
pub mod follow {
    pub use trace_store::TraceReader;

    /// Gathered folders.
    pub mod gathered {
        pub use trace_model::layout::{
            GATHERED_FILE as FILE, GatheredInfo, SOURCE_FILE, SourceInfo, is_gathered, read_json,
        };
    }
}
