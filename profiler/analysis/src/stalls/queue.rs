//! Ops that were ready and had to wait for a worker.

use super::{overlap, text};
use std::ops::Range;
use trace_model::{Category, SliceId};
use trace_store::Store;

/// An op that was ready and had to wait for a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueWait {
    /// The op that waited, until its start.
    pub slice: SliceId,
    /// Since when it was ready, ns from the origin.
    pub start: i64,
    /// When it started.
    pub end: i64,
    /// What its worker ran meanwhile: the longest slice there that overlaps the wait.
    pub culprit: Option<SliceId>,
    /// As a sentence.
    pub text: String,
}

/// The waits of at least `at_least_ns` of ops that start in the half-open range, longest first.
#[must_use]
pub fn queue_waits(store: &Store, range: Range<i64>, at_least_ns: i64) -> Vec<QueueWait> {
    let mut out = Vec::new();
    for track in store.tracks() {
        for slice in track.lanes.iter().flat_map(|l| l.slices(&range)) {
            let wait = store.queue_wait_ns(&slice);
            if wait < at_least_ns.max(1) || store.category(&slice) != Category::Op || slice.start < range.start {
                continue;
            }
            let waited = slice.start - wait..slice.start;
            let ran = track.lanes.iter().flat_map(|l| l.slices(&waited));
            let culprit = ran
                .filter(|s| s.id != slice.id && matches!(store.category(s), Category::Op | Category::Shard))
                .max_by_key(|s| (overlap(s, &waited), s.id));
            let text = text::queue_wait(store, &slice, wait, culprit.as_ref());
            out.push(QueueWait {
                slice: slice.id,
                start: waited.start,
                end: waited.end,
                culprit: culprit.map(|c| c.id),
                text,
            });
        }
    }
    out.sort_by_key(|w| (w.start - w.end, w.start));
    out
}
