//! The steps of processes whose threads run graph nodes: what each did last, and which came before it on its thread.
//!
//! Steps of one process may overlap (the step that fills a queue next to the one that trains): an op says in which it ran.

use super::activity::Activity;
use super::line::{LineKind, Lines, PieceId};
use super::linked::Executions;
use rustc_hash::FxHashMap;
use trace_model::{SliceRef, Step};
use trace_store::Store;

/// The last act of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Last {
    Ran(PieceId),
    /// This wait held no thread; and its op.
    Waited(SliceRef, PieceId),
}

/// Rows are those of [`Store::steps`].
#[derive(Default)]
pub(crate) struct Stepped {
    /// By process and step id, rows by start: ids of a cluster's steps and of a process's own may be equal.
    by_id: FxHashMap<(u32, u32), Vec<u32>>,
    /// By track, rows by start.
    by_track: FxHashMap<u32, Vec<u32>>,
    /// By row: when it ended, and what it was.
    last: Vec<Option<(i64, Last)>>,
}

impl Stepped {
    /// From the lines of a range and its waits that held no thread.
    pub(super) fn new(store: &Store, lines: &Lines, parked: &[SliceRef], ops: &Executions) -> Stepped {
        let mut stepped = Stepped { last: vec![None; store.steps().len()], ..Stepped::default() };
        for (row, step) in (0..).zip(store.steps()) {
            if let Some(line) = lines.lines.get(step.slice.track as usize) {
                stepped.by_id.entry((line.process, step.id)).or_default().push(row);
                stepped.by_track.entry(step.slice.track).or_default().push(row);
            }
        }
        let by_start = |rows: &mut Vec<u32>| rows.sort_by_key(|row| store.steps()[*row as usize].start);
        stepped.by_id.values_mut().for_each(by_start);
        stepped.by_track.values_mut().for_each(by_start);
        for (line_row, line) in (0..).zip(&lines.lines).filter(|(_, line)| line.kind == LineKind::Worker) {
            // Neighbours are of one step, mostly.
            let mut near = (u32::MAX, None);
            for (piece, p) in (0..).zip(&line.pieces).filter(|(_, p)| matches!(p.doing, Activity::Op | Activity::Shard))
            {
                let Some(id) = store.step_id_of(line.slice(p)) else { continue };
                if near.0 != id {
                    near = (id, stepped.row(store, line.process, id, p.start));
                }
                stepped.note(near.1, p.end, Last::Ran(PieceId { line: line_row, piece }));
            }
        }
        for wait in parked {
            let Some(process) = lines.lines.get(wait.id.track as usize).map(|line| line.process) else { continue };
            let row = stepped.row(store, process, wait.correlation, wait.start);
            if let Some(op) = ops.started_by(lines, wait.node, wait.start) {
                stepped.note(row, wait.end, Last::Waited(*wait, op));
            }
        }
        stepped
    }

    fn note(&mut self, row: Option<u32>, end: i64, last: Last) {
        let Some(known) = row.and_then(|row| self.last.get_mut(row as usize)) else { return };
        if known.as_ref().is_none_or(|(before, _)| *before < end) {
            *known = Some((end, last));
        }
    }

    /// The step with an id that a process was in at a time.
    pub(crate) fn row(&self, store: &Store, process: u32, id: u32, time: i64) -> Option<u32> {
        let rows = self.by_id.get(&(process, id))?;
        let begun = rows.partition_point(|row| store.steps()[*row as usize].start <= time);
        Some(rows[begun.saturating_sub(1)])
    }

    /// The last act of a step, and when it ended.
    pub(crate) fn last(&self, row: u32) -> Option<(i64, Last)> {
        *self.last.get(row as usize)?
    }

    /// The step on a track that ended last, by a time.
    pub(crate) fn ended_by<'a>(&self, store: &'a Store, track: u32, time: i64) -> Option<(u32, &'a Step)> {
        let rows = self.by_track.get(&track)?;
        let begun = rows.partition_point(|row| store.steps()[*row as usize].start <= time);
        let ended = rows[..begun].iter().rev().map(|row| (*row, &store.steps()[*row as usize]));
        // Steps of one thread follow each other.
        ended.take(2).find(|(_, step)| step.end <= time)
    }
}
