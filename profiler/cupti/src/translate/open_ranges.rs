//! The open ranges of NVTX.

use crate::recent::Recent;
use crate::record::Payload;
use rustc_hash::FxHashMap;

/// Open ranges, at most; the oldest are evicted.
const OPEN: usize = 1 << 16;

#[derive(Clone, Copy, Default)]
pub(super) struct Data {
    pub(super) color: Option<u32>,
    pub(super) category: u32,
    pub(super) payload: Payload,
}

pub(super) struct OpenRange {
    pub(super) time: u64,
    pub(super) name: String,
    pub(super) domain: Option<String>,
    /// `None` for a range of the process.
    pub(super) thread: Option<u32>,
    pub(super) depth: u32,
}

/// The open ranges by id, the colours, categories and payloads by id, and each thread's depth.
#[derive(Default)]
pub(super) struct Ranges {
    pub(super) open: Recent<u32, OpenRange, OPEN>,
    pub(super) data: Recent<u32, Data, OPEN>,
    pub(super) depth: FxHashMap<u32, u32>,
}
