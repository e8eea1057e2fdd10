//! The columns of the chart: live bytes by place for each pixel, computed in a thread.

use crate::data::SnapshotData;
use std::sync::Arc;
use torch_dumps::{Device, Grouping, HistoryColumn, HistoryGroups};
use ui::{address::Choice, background::Question};

/// What the x axis shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::memory) enum Axis {
    /// The number of events, each of the same width: a busy moment is as wide as it has events.
    #[default]
    Events,
    /// Seconds since the first event.
    Time,
}

impl Choice for Axis {
    const TABLE: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Events, "events", "Events"), (Self::Time, "time", "Time")];
}

/// What the areas are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::memory) enum GroupBy {
    #[default]
    Frame,
    Stack,
}

impl Choice for GroupBy {
    const TABLE: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Frame, "frame", "Frame"), (Self::Stack, "stack", "Stack")];
}

impl GroupBy {
    pub(super) fn grouping(self) -> Grouping {
        if self == Self::Frame { Grouping::Frame } else { Grouping::Stack }
    }
}

/// What is asked for.
#[derive(Clone, PartialEq)]
pub(super) struct View {
    /// Identifies the snapshot.
    pub of: usize,
    /// An index into its devices with contents.
    pub device_idx: usize,
    pub axis: Axis,
    pub by: GroupBy,
    /// The part of the axis.
    pub view: [f64; 2],
    pub n_columns: usize,
}

impl Question for View {}

/// A question with the snapshot, and the previous answer.
pub(super) struct Request {
    pub view: View,
    pub snapshot: SnapshotData,
    pub previous: Option<Arc<Picture>>,
}

/// The columns of a chart.
pub(super) struct Picture {
    pub view: View,
    pub columns: Vec<HistoryColumn>,
    pub groups: Arc<HistoryGroups>,
}

/// Computes the columns.
pub(super) fn answer(request: Request) -> Picture {
    let Request { view, snapshot, previous } = request;
    let of = &snapshot.devices[view.device_idx];
    let is_same = |known: &View| (known.of, known.device_idx, known.by) == (view.of, view.device_idx, view.by);
    let groups = match previous.filter(|previous| is_same(&previous.view)) {
        Some(previous) => Arc::clone(&previous.groups),
        None => Arc::new(of.history.groups(&snapshot.snapshot.stacks, view.by.grouping())),
    };
    let columns = of.history.columns(&groups, &edges(&snapshot.snapshot.devices[of.device], &view));
    Picture { view, columns, groups }
}

/// The first event of each column, and the one after the last column.
fn edges(device: &Device, view: &View) -> Vec<u32> {
    let [lo, hi] = view.view;
    let first = device.events.first().map_or(0, |event| event.time_us);
    let n_events = device.events.len();
    let edge = |i: usize| {
        let x = lo + (hi - lo) * i as f64 / view.n_columns as f64;
        let event = match view.axis {
            Axis::Events => x.ceil().max(0.0) as usize,
            Axis::Time => device.events.partition_point(|event| seconds(event.time_us, first) < x),
        };
        event.min(n_events) as u32
    };
    let mut edges: Vec<u32> = (0..=view.n_columns).map(edge).collect();
    // Times of a damaged file may go back.
    for i in 1..edges.len() {
        edges[i] = edges[i].max(edges[i - 1]);
    }
    // The last event is at the very end of the axis.
    if hi >= end_of(device, view.axis)
        && let Some(last) = edges.last_mut()
    {
        *last = n_events as u32;
    }
    edges
}

fn seconds(time_us: i64, first_us: i64) -> f64 {
    time_us.saturating_sub(first_us) as f64 * 1e-6
}

/// The end of an axis; it begins at 0.
pub(super) fn end_of(device: &Device, axis: Axis) -> f64 {
    let times = device.events.first().zip(device.events.last());
    match axis {
        Axis::Events => device.events.len().max(1) as f64,
        Axis::Time => times.map_or(1.0, |(first, last)| seconds(last.time_us, first.time_us).max(1e-6)),
    }
}

/// Where the moment after an event is on an axis.
pub(super) fn x_of(device: &Device, axis: Axis, event: Option<u32>) -> f64 {
    let Some(event) = event else { return 0.0 };
    match axis {
        Axis::Events => f64::from(event),
        Axis::Time => {
            let first = device.events.first().map_or(0, |event| event.time_us);
            device.events.get(event as usize).map_or(0.0, |event| seconds(event.time_us, first))
        }
    }
}

/// Whether the file has times: some versions of PyTorch write none.
pub(super) fn has_times(device: &Device) -> bool {
    device.events.first().zip(device.events.last()).is_some_and(|(first, last)| last.time_us > first.time_us)
}
