//! The backward walk over one gap.

use super::step::{Gap, StepIndex, Worker};
use super::{Cause, Stall, overlap, text};
use crate::batch::NO_NODE;
use crate::store::{Category, SliceId, SliceRef, Store};
use std::ops::Range;

/// Divides the gap among causes: parts from its end to its beginning, without holes.
struct Parts<'a> {
    store: &'a Store,
    index: &'a StepIndex<'a>,
    worker: &'a Worker,
    gap: &'a Gap,
    /// Everything from here to the gap's end has its cause.
    explained_from: i64,
    out: &'a mut Vec<Stall>,
}

/// Appends the stalls of a gap.
pub(super) fn blame(store: &Store, index: &StepIndex<'_>, worker: &Worker, gap: &Gap, out: &mut Vec<Stall>) {
    let mut parts = Parts { store, index, worker, gap, explained_from: gap.range.end, out };
    match &gap.next {
        Some(next) => parts.walk(*next),
        None => parts.nothing_more(),
    }
    debug_assert_eq!(parts.explained_from, gap.range.start);
}

/// What had to happen before a slice could start.
enum Before {
    /// This op had to end.
    End(SliceRef),
    /// A shard: its op had to start.
    Start(SliceRef),
    /// Nothing but the step's begin; it was ready at this time.
    ReadyAt(i64),
    /// The trace lacks it.
    Unknown,
}

impl Parts<'_> {
    /// Explains back to `from`, as far as it lies in the gap and is not explained yet.
    fn part(&mut self, from: i64, cause: Cause, culprit: Option<&SliceRef>) {
        let from = from.max(self.gap.range.start);
        if from >= self.explained_from {
            return;
        }
        let range = from..self.explained_from;
        self.explained_from = from;
        let text = text::stall(self.store, self.index.step, self.worker.track, &range, cause, culprit, self.gap);
        self.out.push(Stall {
            track: self.worker.track,
            step_id: self.index.step.id,
            gap: self.gap.range.clone(),
            start: range.start,
            end: range.end,
            cause,
            culprit: culprit.map(|c| c.id),
            blocked: self.gap.next.map(|n| n.id),
            text,
        });
    }

    fn is_explained(&self) -> bool {
        self.explained_from <= self.gap.range.start
    }

    fn before(&self, slice: &SliceRef) -> Before {
        if self.store.category(slice) == Category::Shard {
            let op = self.index.started_by(slice.node, slice.start);
            return op.map_or(Before::Unknown, Before::Start);
        }
        if slice.correlation == NO_NODE {
            return Before::ReadyAt(slice.start - self.store.queue_wait_ns(slice));
        }
        let by = self.index.ended_by(slice.correlation, slice.start);
        by.filter(|p| p.id != slice.id).map_or(Before::Unknown, Before::End)
    }

    /// From what ran after the gap back through its last-arriving predecessors.
    fn walk(&mut self, next: SliceRef) {
        let mut blocked = next;
        let own: SliceId = next.id;
        // A damaged trace may claim that two ops made each other ready.
        let mut left = self.index.n_ops() + 2;
        while !self.is_explained() {
            left -= 1;
            if left == 0 {
                return self.part(i64::MIN, Cause::Unexplained, None);
            }
            let ready = match self.before(&blocked) {
                Before::End(predecessor) => {
                    self.late_start(predecessor.end, &blocked, own);
                    self.part(predecessor.start, Cause::InputLate, Some(&predecessor));
                    blocked = predecessor;
                    continue;
                }
                Before::Start(op) => {
                    self.late_start(op.start, &blocked, own);
                    blocked = op;
                    continue;
                }
                Before::ReadyAt(time) => time,
                Before::Unknown => i64::MAX,
            };
            self.late_start(ready, &blocked, own);
            if ready != i64::MAX {
                self.part(self.index.active.start.min(ready), Cause::Unexplained, None);
                self.part(i64::MIN, Cause::StepBegin, None);
            }
            self.part(i64::MIN, Cause::Unexplained, None);
        }
    }

    /// `blocked` could have started at `ready`: the worker slept, or was awake and did not start it.
    fn late_start(&mut self, ready: i64, blocked: &SliceRef, own: SliceId) {
        if blocked.id != own {
            // It ran elsewhere, and not at once: on this worker's clock that is the executor's time.
            self.part(ready, Cause::Dispatch, Some(blocked));
            return;
        }
        let late: Range<i64> = ready.max(self.gap.range.start)..self.explained_from;
        let worker = self.worker;
        let after = worker.waits.partition_point(|w| w.start < late.end);
        for wait in worker.waits[..after].iter().rev() {
            if wait.end <= late.start {
                break;
            }
            self.part(wait.end.max(late.start), Cause::Dispatch, None);
            self.part(wait.start.max(late.start), Cause::WakeUp, None);
        }
        self.part(late.start, Cause::Dispatch, None);
    }

    /// The step had nothing more for this worker.
    fn nothing_more(&mut self) {
        let active = self.index.active.clone();
        self.part(active.end, Cause::StepEnd, None);
        let others = self.index.workers().iter().filter(|w| w.track != self.worker.track);
        let left = self.gap.range.start..self.explained_from;
        let longest = others
            .flat_map(|w| &w.ran)
            .filter(|s| overlap(s, &left) > 0)
            .max_by_key(|s| (overlap(s, &left), std::cmp::Reverse(s.id)));
        let cause = if longest.is_some() { Cause::NothingReady } else { Cause::Unexplained };
        self.part(active.start, cause, longest);
        self.part(i64::MIN, Cause::StepBegin, None);
    }
}
