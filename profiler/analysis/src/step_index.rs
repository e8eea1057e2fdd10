//! The index of steps in processes whose threads run graph nodes: the last act of each step, and the previous step of
//! its thread.
//!
//! Steps of one process may overlap (one fills a queue while another trains), so an op's step id, not its time, says to
//! which step the op belongs.

use super::activity::Activity;
use super::correlation::Executions;
use super::lines::{LineKind, Lines, PieceId};
use rustc_hash::FxHashMap;
use trace_model::{SliceRef, Step};
use trace_store::Store;

/// The last act of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LastAct {
    /// The last piece of work.
    Piece(PieceId),
    /// A wait that held no thread, and its op.
    Wait(SliceRef, PieceId),
}

/// Steps by id and by track, and the last act of each. Rows are those of [`Store::steps`].
#[derive(Default)]
pub(crate) struct StepIndex {
    /// Rows by process and step id, sorted by start: ids of a cluster's steps and of a process's own may be equal.
    by_id: FxHashMap<(u32, u32), Vec<u32>>,
    /// Rows by track, sorted by start.
    by_track: FxHashMap<u32, Vec<u32>>,
    /// End and last act of each step, by row.
    last_acts: Vec<Option<(i64, LastAct)>>,
}

impl StepIndex {
    /// Indexes the steps, from a range's lines and its waits that held no thread (`parked`).
    pub(super) fn new(store: &Store, lines: &Lines, parked: &[SliceRef], ops: &Executions) -> StepIndex {
        let mut steps = StepIndex { last_acts: vec![None; store.steps().len()], ..StepIndex::default() };
        for (row, step) in (0..).zip(store.steps()) {
            if let Some(line) = lines.lines.get(step.slice.track as usize) {
                steps.by_id.entry((line.process, step.id)).or_default().push(row);
                steps.by_track.entry(step.slice.track).or_default().push(row);
            }
        }
        let by_start = |rows: &mut Vec<u32>| rows.sort_by_key(|row| store.steps()[*row as usize].start);
        steps.by_id.values_mut().for_each(by_start);
        steps.by_track.values_mut().for_each(by_start);
        for (line_row, line) in (0..).zip(&lines.lines).filter(|(_, line)| line.kind == LineKind::Worker) {
            // Adjacent ops mostly belong to one step: the last look-up is cached.
            let mut cached = (u32::MAX, None);
            for (piece, p) in
                (0..).zip(&line.pieces).filter(|(_, p)| matches!(p.activity, Activity::Op | Activity::Shard))
            {
                let Some(id) = store.step_id_of(line.slice(p)) else { continue };
                if cached.0 != id {
                    cached = (id, steps.row(store, line.process, id, p.start));
                }
                steps.record_act(cached.1, p.end, LastAct::Piece(PieceId { line: line_row, piece }));
            }
        }
        for wait in parked {
            let Some(process) = lines.lines.get(wait.id.track as usize).map(|line| line.process) else { continue };
            let row = steps.row(store, process, wait.correlation, wait.start);
            if let Some(op) = ops.started_by(lines, wait.node, wait.start) {
                steps.record_act(row, wait.end, LastAct::Wait(*wait, op));
            }
        }
        steps
    }

    fn record_act(&mut self, row: Option<u32>, end: i64, last: LastAct) {
        let Some(slot) = row.and_then(|row| self.last_acts.get_mut(row as usize)) else { return };
        if slot.as_ref().is_none_or(|(last_end, _)| *last_end < end) {
            *slot = Some((end, last));
        }
    }

    /// The row of the step with this id that a process ran at `time`: an id may be used again.
    pub(crate) fn row(&self, store: &Store, process: u32, id: u32, time: i64) -> Option<u32> {
        let rows = self.by_id.get(&(process, id))?;
        let n_begun = rows.partition_point(|row| store.steps()[*row as usize].start <= time);
        Some(rows[n_begun.saturating_sub(1)])
    }

    /// The end of a step's last act, and the act.
    pub(crate) fn last_act(&self, row: u32) -> Option<(i64, LastAct)> {
        *self.last_acts.get(row as usize)?
    }

    /// The step on a track that ended last by `time`.
    pub(crate) fn last_ended_step<'a>(&self, store: &'a Store, track: u32, time: i64) -> Option<(u32, &'a Step)> {
        let rows = self.by_track.get(&track)?;
        let n_begun = rows.partition_point(|row| store.steps()[*row as usize].start <= time);
        let ended = rows[..n_begun].iter().rev().map(|row| (*row, &store.steps()[*row as usize]));
        // Steps of one thread follow each other: only the last one to begin may still run.
        ended.take(2).find(|(_, step)| step.end <= time)
    }
}
