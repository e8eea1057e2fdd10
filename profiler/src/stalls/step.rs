//! One step, indexed: what each worker ran in it, and which slice a node had.

use crate::store::{Category, SliceRef, Step, Store, Track, TrackId, TrackKind};
use std::ops::Range;

/// A gap: nothing ran, and what ran after it.
pub(super) struct Gap {
    pub range: Range<i64>,
    /// `None` where the step had nothing more for the worker.
    pub next: Option<SliceRef>,
}

/// A worker in a step.
pub(super) struct Worker {
    pub track: TrackId,
    /// Ops and shards, by start; nested ones too.
    pub ran: Vec<SliceRef>,
    /// When it slept, by start.
    pub waits: Vec<Range<i64>>,
}

impl Worker {
    /// The parts of the step in which nothing ran.
    pub(super) fn gaps(&self, step: &Step) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut until = step.start;
        for slice in &self.ran {
            if slice.start > until {
                gaps.push(Gap { range: until..slice.start.min(step.end), next: Some(*slice) });
            }
            until = until.max(slice.end);
        }
        if until < step.end {
            gaps.push(Gap { range: until..step.end, next: None });
        }
        gaps
    }
}

/// See the module's notes.
pub(super) struct StepIndex<'a> {
    pub step: &'a Step,
    workers: Vec<Worker>,
    /// Op slices by (node, end): a node may run several times in a step.
    ops: Vec<SliceRef>,
    /// First start and last end of any op or shard.
    pub active: Range<i64>,
}

impl<'a> StepIndex<'a> {
    /// `callers`: the tracks that run steps of their own.
    pub(super) fn new(store: &Store, step: &'a Step, callers: &[u32]) -> StepIndex<'a> {
        let process = store.tracks().get(step.slice.track as usize).map(|t| t.process);
        let tracks = store.tracks().iter().filter(|t| t.kind == TrackKind::Worker && Some(t.process) == process);
        // A thread that once ran a step (the one that initialised the variables) is no worker of another thread's.
        let takes_part = |w: &Worker| {
            let is_caller = w.track.0 != step.slice.track && callers.contains(&w.track.0);
            !is_caller || !w.ran.is_empty() || !w.waits.is_empty()
        };
        let workers: Vec<Worker> = tracks.map(|track| worker(store, track, step)).filter(takes_part).collect();
        let ran = || workers.iter().flat_map(|w| &w.ran);
        let mut ops: Vec<SliceRef> = ran().filter(|s| store.category(s) == Category::Op).copied().collect();
        ops.sort_unstable_by_key(|s| (s.node, s.end));
        let first = ran().map(|s| s.start).min().unwrap_or(step.end).clamp(step.start, step.end);
        let last = ran().map(|s| s.end).max().unwrap_or(step.end).clamp(first, step.end);
        StepIndex { step, workers, ops, active: first..last }
    }

    pub(super) fn workers(&self) -> &[Worker] {
        &self.workers
    }

    /// Number of op slices.
    pub(super) fn n_ops(&self) -> usize {
        self.ops.len()
    }

    /// The last execution of a node that ended by `time`.
    pub(super) fn ended_by(&self, node: u32, time: i64) -> Option<SliceRef> {
        let after = self.ops.partition_point(|s| (s.node, s.end) <= (node, time));
        let found = *self.ops.get(after.checked_sub(1)?)?;
        (found.node == node).then_some(found)
    }

    /// The last execution of a node that started by `time`.
    pub(super) fn started_by(&self, node: u32, time: i64) -> Option<SliceRef> {
        let from = self.ops.partition_point(|s| s.node < node);
        self.ops[from..].iter().take_while(|s| s.node == node).filter(|s| s.start <= time).last().copied()
    }
}

fn worker(store: &Store, track: &Track, step: &Step) -> Worker {
    let range = step.start..step.end;
    let mut worker = Worker { track: track.id, ran: Vec::new(), waits: Vec::new() };
    for slice in track.lanes.iter().flat_map(|l| l.slices(&range)) {
        if store.step_id_of(&slice) != Some(step.id) {
            continue;
        }
        match store.category(&slice) {
            Category::Op | Category::Shard => worker.ran.push(slice),
            Category::Wait => worker.waits.push(slice.start..slice.end),
            _ => {}
        }
    }
    worker.ran.sort_unstable_by_key(|s| (s.start, std::cmp::Reverse(s.end)));
    worker.waits.sort_unstable_by_key(|w| w.start);
    worker
}
