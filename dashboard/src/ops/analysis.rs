//! The figures of a range of a trace, computed by a thread.

use super::model::Row;
use crate::{
    data::Shared,
    timeline::analysis::{Stalls, stalls_of},
};
use std::ops::Range;
use trace_analysis::stats::{TrackUse, node_stats, op_stats, track_use};
use trace_store::{Residency, Store};

/// The trace and range that figures are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Index of the trace.
    pub trace_idx: usize,
    /// The version of its store.
    pub version: u64,
    /// `None` for the whole trace.
    pub range: Option<Range<i64>>,
}

/// The figures of a range.
#[derive(Default)]
pub struct Findings {
    /// The question.
    pub question: Question,
    /// Whether its slices were resident; else there are no figures.
    pub hand: Residency,
    /// The range that they are about.
    pub range: Range<i64>,
    /// Rows per op type.
    pub ops: Vec<Row>,
    /// Rows per node.
    pub nodes: Vec<Row>,
    /// How tracks spent the range.
    pub track_use: Vec<TrackUse>,
    /// Stalls of its steps.
    pub stalls: Stalls,
}

/// A question with the store that answers it.
pub struct Request {
    /// The question.
    pub question: Question,
    /// The trace.
    pub store: Shared<Store>,
}

/// Computes the figures.
pub fn answer(request: Request) -> Findings {
    let store = request.store.read_recursive();
    let question = Question { version: store.version(), ..request.question };
    let range = question.range.clone().unwrap_or_else(|| store.range());
    let hand = store.residency(&range);
    if hand != Residency::Resident {
        return Findings { question, range, hand, ..Findings::default() };
    }
    Findings {
        hand,
        ops: op_stats(&store, range.clone()).iter().map(Row::from).collect(),
        nodes: node_stats(&store, range.clone()).iter().map(Row::from).collect(),
        track_use: track_use(&store, range.clone()),
        stalls: stalls_of(&store, &range),
        question,
        range,
    }
}
