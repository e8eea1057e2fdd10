//! The memory of a trace's devices, and the columns of their charts, computed in threads.

use crate::ops::range_analysis::{RangeQuestion, Request};
use std::{ops::Range, sync::Arc};
use trace_analysis::memory::{DeviceMemory, memory_timelines};
use trace_store::Residency;
use ui::background::Question;

/// The memory of a trace's devices.
#[derive(Default)]
pub(in crate::memory) struct TraceMemory {
    pub question: RangeQuestion,
    /// Whether the trace's slices were resident.
    pub residency: Residency,
    /// The times of the trace.
    pub range: Range<i64>,
    pub devices: Vec<DeviceMemory>,
}

/// Analyses the trace.
pub(super) fn answer(request: Request) -> TraceMemory {
    // Recursive: a loader that waits to write must not hold up the window behind this read.
    let store = request.store.read_recursive();
    let question = RangeQuestion { version: store.version(), ..request.question };
    let (range, residency) = (store.range(), store.residency(&store.range()));
    TraceMemory { question, residency, range, devices: memory_timelines(&store) }
}

/// The part of the time that charts show, and their width in columns.
#[derive(Clone, PartialEq)]
pub(super) struct View {
    /// Identifies the memory.
    pub of: usize,
    /// Seconds from the trace's origin.
    pub view: [f64; 2],
    pub n_columns: usize,
}

impl Question for View {}

/// The columns of the charts of all devices.
pub(super) struct Columns {
    pub view: View,
    /// By device: for each column the most bytes in it.
    pub devices: Vec<Vec<u64>>,
}

/// Takes the most bytes of each column.
pub(super) fn columns((view, memory): (View, Arc<TraceMemory>)) -> Columns {
    let devices = memory.devices.iter().map(|device| most_in_columns(&device.points, &view)).collect();
    Columns { view, devices }
}

fn most_in_columns(points: &[(i64, i64)], view: &View) -> Vec<u64> {
    let [start, end] = view.view;
    let edge = |i: usize| ((start + (end - start) * i as f64 / view.n_columns as f64) * 1e9).round() as i64;
    let mut at = points.partition_point(|(time, _)| *time < edge(0));
    let mut now = at.checked_sub(1).map_or(0, |last| points[last].1);
    let column = |i: usize| {
        let mut most = now;
        while let Some((_, bytes)) = points.get(at).filter(|(time, _)| *time < edge(i + 1)) {
            (now, most, at) = (*bytes, most.max(*bytes), at + 1);
        }
        most.max(0).cast_unsigned()
    };
    (0..view.n_columns).map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_most_bytes() {
        let points = [(100, 5), (110, 50), (115, 7), (300, 0)];
        let columns = |view: [f64; 2], n_columns| {
            most_in_columns(&points, &View { of: 0, view: view.map(|ns| ns * 1e-9), n_columns })
        };
        assert_eq!(columns([0.0, 400.0], 4), [0, 50, 7, 7]);
        assert_eq!(columns([120.0, 200.0], 2), [7, 7], "what is live between two changes");
        assert_eq!(columns([300.0, 400.0], 2), [7, 0]);
    }
}
