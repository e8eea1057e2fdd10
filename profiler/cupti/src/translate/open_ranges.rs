//! The open ranges of NVTX.

use crate::recent::RecentMap;
use crate::record::Payload;
use rustc_hash::FxHashMap;

/// Open ranges, at most; beyond, the oldest is evicted.
const MAX_OPEN: usize = 1 << 16;

/// The colour, category and payload of a marker.
#[derive(Clone, Copy, Default)]
pub(super) struct MarkerAttrs {
    pub(super) color: Option<u32>,
    pub(super) category: u32,
    pub(super) payload: Payload,
}

/// A range that has begun and not ended, or a mark.
pub(super) struct OpenRange {
    /// The begin, ticks.
    pub(super) time: u64,
    pub(super) name: String,
    pub(super) domain: Option<String>,
    /// `None` for a range of the process.
    pub(super) thread: Option<u32>,
    pub(super) depth: u32,
}

/// The open ranges and the attributes of markers by marker id, and the number of open ranges by thread.
#[derive(Default)]
pub(super) struct NvtxRanges {
    pub(super) open: RecentMap<u32, OpenRange, MAX_OPEN>,
    pub(super) data: RecentMap<u32, MarkerAttrs, MAX_OPEN>,
    pub(super) depth: FxHashMap<u32, u32>,
}
