//! The profiler's members under one name.

pub use trace_analysis as analysis;
pub use trace_analysis::flame::FlameNode;
pub use trace_analysis::stalls::{Cause, CauseTotal, QueueWait, Stall, by_cause, queue_waits};
pub use trace_analysis::stats::{self, Figures, NodeStat, OpStat, TrackUse, node_stats, op_stats, track_use};
pub use trace_analysis::{flame, stalls};
pub use trace_formats::{export, import, locate};
pub use trace_model::args::Args;
pub use trace_model::batch::Batch;
pub use trace_model::layout::OpenError;
pub use trace_model::lod::Span;
pub use trace_model::names::{Category, ClockOffset, NodeInfo, Process, SiteInfo};
pub use trace_model::pages::{PagerStats, Pages};
pub use trace_model::rows::{Counter, Flow, FlowEnd, Step, Transfer};
pub use trace_model::slice::{SliceId, SliceRef};
pub use trace_model::stack::{Frame, Function, Stack};
pub use trace_model::thread_state::ThreadState;
pub use trace_model::track::{InstantEvent, OpenSlice, TrackId, TrackKind};
pub use trace_model::warning::{Warning, WarningKind};
pub use trace_model::{chunks, clocks};
pub use trace_record::collect::{self, CollectError, Collector, CollectorOptions, CollectorReport};
pub use trace_record::{count, watch};
pub use trace_store::follow::TraceReader;
pub use trace_store::remote as far;
pub use trace_store::seal::{Pager, SealError, Sealed, SealedWriter};
pub use trace_store::sealing::SealReport;
pub use trace_store::store::{Lane, Residency, Store, StoreOptions, StoreStats, Track, Update};

/// What a source of events hands to the store.
pub mod batch {
    pub use trace_model::batch::*;
    pub use trace_model::track::TrackKey;
    pub use trace_model::warning::Notice;
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
    pub use trace_model::names::*;
    pub use trace_model::rows::*;
    pub use trace_model::slice::*;
    pub use trace_model::stack::*;
    pub use trace_model::track::*;
    pub use trace_store::store::*;
}

/// Following a trace folder.
pub mod follow {
    pub use trace_store::follow::TraceReader;

    /// Gathered folders.
    pub mod gathered {
        pub use trace_model::layout::{
            GATHERED_FILE as FILE, GatheredInfo, SOURCE_FILE, SourceInfo, is_gathered, read_json,
        };
    }
}
