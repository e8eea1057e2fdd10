//! The figures of a range of a trace, computed in a thread.

use super::{
    model::Row,
    range_analysis::{RangeQuestion, Request},
};
use crate::timeline::analysis::{Stalls, stalls_of};
use std::ops::Range;
use trace_analysis::stats::{TrackUse, node_stats, op_stats, track_use};
use trace_store::Residency;

/// The figures of a range.
#[derive(Default)]
pub struct Findings {
    pub question: RangeQuestion,
    /// Whether the range's slices were resident; if not, there are no figures.
    pub residency: Residency,
    /// The range of the figures.
    pub range: Range<i64>,
    pub ops: Vec<Row>,
    pub nodes: Vec<Row>,
    /// Busy and waiting time of each track in the range.
    pub track_use: Vec<TrackUse>,
    pub stalls: Stalls,
}

/// Computes the figures.
pub fn answer(request: Request) -> Findings {
    let store = request.store.read_recursive();
    let question = RangeQuestion { version: store.version(), ..request.question };
    let range = question.range.clone().unwrap_or_else(|| store.range());
    let residency = store.residency(&range);
    if residency != Residency::Resident {
        return Findings { question, range, residency, ..Findings::default() };
    }
    Findings {
        residency,
        ops: op_stats(&store, range.clone()).iter().map(Row::from).collect(),
        nodes: node_stats(&store, range.clone()).iter().map(Row::from).collect(),
        track_use: track_use(&store, range.clone()),
        stalls: stalls_of(&store, &range),
        question,
        range,
    }
}
