//! The numbers that a stage gives to processes, tracks, names and nodes.

use trace_model::{Event, EventKind};

/// A process of a stage.
pub(super) type ProcessIdx = u32;
/// A track of a stage.
pub(super) type TrackIdx = u32;
/// Row of a stage's graph nodes, or [`NO_NODE`](trace_model::NO_NODE).
pub(super) type NodeIdx = u32;

/// Row of a stage's sites: category and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SiteIdx(pub(super) u32);

impl SiteIdx {
    /// The row that stands for no site.
    pub(super) const NONE: SiteIdx = SiteIdx(u32::MAX);

    /// A slice of this site.
    pub(super) fn slice(self, start: i64, end: i64) -> Event {
        Event::slice(self.0, start, end)
    }

    /// An event of this site that is not a slice.
    pub(super) fn at(self, kind: EventKind, time: i64) -> Event {
        Event::at(kind, self.0, time)
    }
}
