//! Stalls: for each gap on a worker's track inside a step, why nothing ran there, and which slice is to blame.
//!
//! A gap is a part of a step in which a track that runs ops has no op and no shard. It is divided into parts, each with
//! one cause; the parts of a gap follow each other and add up to it exactly, and what cannot be explained is a part
//! of its own. The walk is backward, from what ran after the gap to its last-arriving predecessor (the node whose end made it ready,
//! which the executor records), and on to that one's predecessor, until the gap's beginning is reached.
//!
//! A pure function over the store. Further causes are further variants of [`Cause`] and further arms of the walk.

mod step;
mod text;
mod walk;

use crate::store::{Category, SliceId, SliceRef, Store, TrackId};
use std::ops::Range;
use step::StepIndex;

/// Why nothing ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cause {
    /// An input was still being computed; the culprit is the op that computed it.
    InputLate,
    /// Work was ready while the worker slept.
    WakeUp,
    /// Work was ready and the worker awake, or an op on the way there started late: the executor's own time.
    Dispatch,
    /// The step had nothing more for this worker while other ops ran; the culprit is the longest of them.
    NothingReady,
    /// Before the step's first op: feeds, the plan.
    StepBegin,
    /// After the step's last op: fetches, cleaning up.
    StepEnd,
    /// The trace does not tell.
    Unexplained,
}

impl std::fmt::Display for Cause {
    /// Two words for tables: `input late`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Cause::InputLate => "input late",
            Cause::WakeUp => "wake-up",
            Cause::Dispatch => "dispatch",
            Cause::NothingReady => "nothing ready",
            Cause::StepBegin => "step begins",
            Cause::StepEnd => "step ends",
            Cause::Unexplained => "unexplained",
        })
    }
}

/// A part of a gap, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Where.
    pub track: TrackId,
    /// The step's id.
    pub step_id: u32,
    /// The gap of which this is a part.
    pub gap: Range<i64>,
    /// Begin, ns from the origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// Why.
    pub cause: Cause,
    /// The slice that is to blame: draw an arrow from it.
    pub culprit: Option<SliceId>,
    /// What ran after the gap: the arrow's head.
    pub blocked: Option<SliceId>,
    /// The cause as a sentence.
    pub text: String,
}

impl Stall {
    /// How long.
    #[must_use]
    pub fn dur(&self) -> i64 {
        self.end - self.start
    }
}

/// All stalls of one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseTotal {
    /// Which.
    pub cause: Cause,
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total_ns: i64,
}

/// The stalls of the steps that touch the half-open range, longest first. Gaps are whole, not cut at the range.
#[must_use]
pub fn stalls(store: &Store, range: Range<i64>) -> Vec<Stall> {
    let mut out = Vec::new();
    let mut callers: Vec<u32> = Vec::new();
    for step in store.steps() {
        if !callers.contains(&step.slice.track) {
            callers.push(step.slice.track);
        }
    }
    for step in store.steps().iter().filter(|s| s.start < range.end && s.end > range.start) {
        let index = StepIndex::new(store, step, &callers);
        for lane in index.workers() {
            for gap in lane.gaps(step) {
                walk::blame(store, &index, lane, &gap, &mut out);
            }
        }
    }
    out.sort_by_key(|s| (std::cmp::Reverse(s.dur()), s.start, s.track));
    out
}

/// Sums by cause, the largest first.
#[must_use]
pub fn by_cause(stalls: &[Stall]) -> Vec<CauseTotal> {
    let mut totals: Vec<CauseTotal> = Vec::new();
    for stall in stalls {
        match totals.iter_mut().find(|t| t.cause == stall.cause) {
            Some(total) => {
                total.count += 1;
                total.total_ns += stall.dur();
            }
            None => totals.push(CauseTotal { cause: stall.cause, count: 1, total_ns: stall.dur() }),
        }
    }
    totals.sort_by_key(|t| (std::cmp::Reverse(t.total_ns), t.cause));
    totals
}

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

/// How much of the range a slice covers.
fn overlap(slice: &SliceRef, range: &Range<i64>) -> i64 {
    (slice.end.min(range.end) - slice.start.max(range.start)).max(0)
}

#[cfg(test)]
mod tests;
