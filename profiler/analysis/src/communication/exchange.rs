//! Each exchange, divided in waiting for the last rank, and transfer.

use crate::collectives::Call;
use crate::deps::Deps;
use std::ops::Range;
use trace_model::SliceId;

/// A collective that several ranks of the trace took part in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeRow {
    /// Row of [`Communication::collectives`](super::Communication::collectives): that of the rank that came last.
    pub collective: usize,
    /// Whether no rank can leave before the last one has come, so that all others wait for it. Of a transfer between two
    /// ranks the receiver waits for the sender.
    pub synchronises: bool,
    /// The ranks, by the time at which they came.
    pub participants: Vec<Participant>,
}

/// An execution of a collective on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participant {
    /// Row of the processes.
    pub process: u32,
    /// The slice on the device.
    pub slice: SliceId,
    /// Start, ns from the origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// From its start until the last rank came, at most to its end, ns.
    pub wait_ns: i64,
    /// The delay after the rank in the middle, which is the first of two, ns.
    pub late_ns: i64,
    /// The part of `late_ns` that came with the collective before, which ended later here than on the rank in the
    /// middle, ns.
    pub carried_ns: i64,
}

impl Participant {
    /// From the last rank's start to the end, ns.
    #[must_use]
    pub fn transfer_ns(&self) -> i64 {
        self.end - self.start - self.wait_ns
    }

    /// The part of the delay that did not come with the collective before, ns.
    #[must_use]
    pub fn own_late_ns(&self) -> i64 {
        self.late_ns - self.carried_ns
    }
}

impl ExchangeRow {
    /// The delay of the last rank after the first, ns.
    #[must_use]
    pub fn late_ns(&self) -> i64 {
        let (first, last) = (self.participants.first(), self.participants.last());
        first.zip(last).map_or(0, |(first, last)| last.start - first.start)
    }

    /// The rank that came in the middle, of an even number the earlier one: ranks are late by its measure.
    pub(crate) fn middle(&self) -> Option<&Participant> {
        self.participants.get(self.participants.len().saturating_sub(1) / 2)
    }

    /// The ends on the ranks of two later participants, at most their starts, since collectives may overlap.
    pub(super) fn ends(&self, middle: &Participant, late: &Participant) -> Option<(i64, i64)> {
        let end = |later: &Participant| {
            let before = self.participants.iter().find(|before| before.process == later.process)?;
            Some(before.end.min(later.start))
        };
        Some((end(middle)?, end(late)?))
    }

    /// The shortest of the executions, ns: that of a rank that waited least. It does not depend on how well the ranks'
    /// clocks agree.
    #[must_use]
    pub fn shortest_ns(&self) -> i64 {
        self.participants.iter().map(|participant| participant.end - participant.start).min().unwrap_or(0)
    }

    /// Whether ranks wait for the last one.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.synchronises || self.waiting_ns() > 0
    }

    /// The sum of all waits, ns.
    pub(crate) fn waiting_ns(&self) -> i64 {
        self.participants.iter().map(|participant| participant.wait_ns).sum()
    }
}

/// The exchanges whose last rank came in the range; `row_of` is the row of the collectives by signature.
pub(super) fn exchanges(
    deps: &Deps<'_>,
    range: &Range<i64>,
    row_of: impl Fn(u32) -> Option<usize>,
) -> Vec<ExchangeRow> {
    let rows = deps.exchanges.rows.iter().filter_map(|exchange| {
        let calls = deps.exchanges.calls_of(exchange);
        let last = calls.clone().next_back().filter(|last| range.contains(&last.start))?;
        let middle = calls.clone().nth((exchange.calls.len() - 1) / 2)?;
        let participant = |call: &Call| Participant {
            process: call.process,
            slice: deps.lines.slice(call.piece_id).id,
            start: call.start,
            end: call.end,
            wait_ns: if deps.exchanges.waits(exchange, call) { last.start.min(call.end) - call.start } else { 0 },
            late_ns: (call.start - middle.start).max(0),
            carried_ns: 0,
        };
        let collective = row_of(last.signature)?;
        let synchronises = exchange.kind.synchronises();
        Some(ExchangeRow { collective, synchronises, participants: calls.map(participant).collect() })
    });
    rows.collect()
}
