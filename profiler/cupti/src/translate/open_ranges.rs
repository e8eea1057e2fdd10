//! Ranges that are open, until their end comes.

use crate::recent::Recent;
use crate::record::Payload;
use rustc_hash::FxHashMap;

/// Ranges that are open, at most.
const OPEN: usize = 1 << 16;

#[derive(Clone, Copy, Default)]
pub(super) struct Data {
    pub(super) color: Option<u32>,
    pub(super) category: u32,
    pub(super) payload: Payload,
}

pub(super) struct Begun {
    pub(super) time: u64,
    pub(super) name: String,
    pub(super) domain: Option<String>,
    /// `None` for one of the process.
    pub(super) thread: Option<u32>,
    pub(super) depth: u32,
}

/// Ranges that have begun, and what is known of each.
#[derive(Default)]
pub(super) struct Ranges {
    pub(super) open: Recent<u32, Begun, OPEN>,
    pub(super) data: Recent<u32, Data, OPEN>,
    pub(super) depth: FxHashMap<u32, u32>,
}
