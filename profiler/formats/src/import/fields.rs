//! The fields of a staged event, and the numbers that a stage gives to processes, tracks and nodes.

use super::sites::SiteIdx;
use trace_model::{Event, EventKind, NO_ARGS, NO_NODE};

/// A process of a stage.
pub(super) type ProcessIdx = u32;
/// A track of a stage.
pub(super) type TrackIdx = u32;

/// Row of a stage's graph nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeIdx(pub(super) u32);

impl NodeIdx {
    /// No node.
    pub(super) const NONE: NodeIdx = NodeIdx(NO_NODE);
}

/// An event before its kind and time are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventFields {
    pub(super) site: SiteIdx,
    pub(super) node: NodeIdx,
    pub(super) correlation: u32,
    pub(super) arg: u64,
    pub(super) args: u32,
}

impl EventFields {
    pub(super) fn of(site: SiteIdx) -> EventFields {
        EventFields { site, node: NodeIdx::NONE, correlation: 0, arg: 0, args: NO_ARGS }
    }

    pub(super) fn with_args(self, args: u32) -> EventFields {
        EventFields { args, ..self }
    }

    pub(super) fn event(self, kind: EventKind, start: i64, end: i64) -> Event {
        let EventFields { site, node, correlation, arg, args } = self;
        Event { kind, depth: 0, start, end, site: site.0, node: node.0, correlation, arg, args }
    }
}
