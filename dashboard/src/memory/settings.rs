//! The state of the panel's controls.

use super::snapshot::{Axis, GroupBy, SortBy};
use std::sync::Arc;
use ui::{address::Choice, address_fields};

/// What is shown of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tab {
    /// Bytes over time, and what was live at a moment.
    #[default]
    Timeline,
    /// Segments with their blocks.
    Segments,
}

impl Choice for Tab {
    const TABLE: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Timeline, "timeline", "Over time"), (Self::Segments, "segments", "Segments")];
}

/// The state of the controls.
#[derive(Clone, Default)]
pub(super) struct Settings {
    /// The name of the chosen snapshot or trace; `None` for the first snapshot, or else the first trace.
    pub source: Option<Arc<str>>,
    /// The device's number; `None` for the first one.
    pub device: Option<usize>,
    pub tab: Tab,
    pub axis: Axis,
    pub by: GroupBy,
    pub sort_by: SortBy,
    /// Whether the chart leaves out the reserved bytes, which may be far more than what is allocated.
    pub only_allocated: bool,
    pub filter: String,
    /// The part of the axis; `None` for everything.
    pub view: Option<[f64; 2]>,
}

address_fields!(Settings {
    "source" = source: Option<Arc<str>>,
    "device" = device: Option<usize>,
    "show" = tab: Tab,
    "axis" = axis: Axis,
    "by" = by: GroupBy,
    "sort" = sort_by: SortBy,
    "allocated" = only_allocated: bool,
    "filter" = filter: String,
    "view" = view: Option<[f64; 2]>,
});
