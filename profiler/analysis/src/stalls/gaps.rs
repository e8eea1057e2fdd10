//! Gaps: the intervals in which a busy track did no work, and their steps.

use crate::deps::Deps;
use crate::lines::{Line, LineKind, PieceId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use trace_model::Step;

/// An interval in which a line did no work.
pub(super) struct Gap {
    pub line: u32,
    pub range: Range<i64>,
    /// The piece that ran after the gap; `None` if the step had no more work for the track.
    pub next: Option<PieceId>,
    /// Index of the process's windows; `None` if the track does not work in steps.
    pub window: Option<u32>,
}

/// An interval in which one or more overlapping steps of one process ran.
pub(super) struct Window {
    pub range: Range<i64>,
    /// Rows of the store's steps.
    pub steps: Vec<u32>,
    /// The range from the first start of any worker's work to the last end of work or of a wait for a queue after it;
    /// inverted if nothing ran.
    pub active: Range<i64>,
}

/// The windows of each process that has workers and steps.
pub(super) struct Windows {
    by_process: FxHashMap<u32, Vec<Window>>,
    /// Processes with workers.
    workers: FxHashSet<u32>,
    /// Tracks whose threads start steps.
    callers: FxHashSet<u32>,
}

impl Windows {
    pub(super) fn new(deps: &Deps<'_>, range: &Range<i64>) -> Windows {
        let lines = &deps.lines.lines;
        let workers: FxHashSet<u32> = lines.iter().filter(|l| l.kind == LineKind::Worker).map(|l| l.process).collect();
        let mut by_process: FxHashMap<u32, Vec<Window>> = FxHashMap::default();
        let mut callers = FxHashSet::default();
        for (row, step) in deps.store.steps().iter().enumerate() {
            callers.insert(step.slice.track);
            let Some(track) = deps.store.tracks().get(step.slice.track as usize) else { continue };
            if step.start >= range.end || step.end <= range.start || !workers.contains(&track.process) {
                continue;
            }
            let windows = by_process.entry(track.process).or_default();
            match windows.last_mut() {
                Some(last) if step.start < last.range.end => {
                    last.range.end = last.range.end.max(step.end);
                    last.steps.push(row as u32);
                }
                _ => windows.push(Window {
                    range: step.start..step.end,
                    steps: vec![row as u32],
                    active: step.end..step.start,
                }),
            }
        }
        let mut windows = Windows { by_process, workers, callers };
        for line in lines.iter().filter(|l| l.kind == LineKind::Worker) {
            windows.extend_active(line);
        }
        for (process, windows) in &mut windows.by_process {
            for wait in deps.parked_in(*process) {
                let row = windows.partition_point(|w| w.range.end < wait.end);
                if let Some(window) = windows.get_mut(row).filter(|w| w.active.start <= wait.end) {
                    window.active.end = window.active.end.max(wait.end);
                }
            }
        }
        windows
    }

    fn extend_active(&mut self, line: &Line) {
        let Some(windows) = self.by_process.get_mut(&line.process) else { return };
        let mut row = 0;
        for piece in line.pieces.iter().filter(|p| p.activity.is_work()) {
            while windows
                .get(row)
                .is_some_and(|w| w.range.end <= piece.start && w.range.end < piece.end.max(piece.start + 1))
            {
                row += 1;
            }
            let Some(window) = windows.get_mut(row) else { return };
            if piece.end >= window.range.start {
                window.active.start = window.active.start.min(piece.start.max(window.range.start));
                window.active.end = window.active.end.max(piece.end.min(window.range.end));
            }
        }
    }

    pub(super) fn window(&self, process: u32, row: u32) -> Option<&Window> {
        self.by_process.get(&process)?.get(row as usize)
    }

    /// Replaces the contents of `gaps` by the gaps of a line that touch the range.
    pub(super) fn find_gaps(&self, deps: &Deps<'_>, line_idx: u32, range: &Range<i64>, gaps: &mut Vec<Gap>) {
        let line = deps.lines.line(line_idx);
        gaps.clear();
        match (line.kind, self.by_process.get(&line.process)) {
            (LineKind::Worker, Some(windows)) => self.gaps_in_steps(deps, line_idx, windows, gaps),
            (LineKind::Host, _) if self.workers.contains(&line.process) || line.is_only_scheduled() => {}
            _ => {
                if let Some(extent) = line.extent() {
                    gaps_within(line, line_idx, &extent, None, &mut 0, gaps);
                }
            }
        }
        gaps.retain(|g| g.range.start < range.end && g.range.end > range.start);
    }

    fn gaps_in_steps(&self, deps: &Deps<'_>, line_idx: u32, windows: &[Window], gaps: &mut Vec<Gap>) {
        let line = deps.lines.line(line_idx);
        let is_caller = self.callers.contains(&line.track.0);
        let mut piece = 0;
        for (row, window) in windows.iter().enumerate() {
            let n_before = gaps.len();
            let first = piece;
            gaps_within(line, line_idx, &window.range, Some(row as u32), &mut piece, gaps);
            // A thread that starts steps of its own (such as the one that initialised the variables) does not wait for
            // the steps of other threads.
            let is_caller_of = |step: &u32| deps.store.steps()[*step as usize].slice.track == line.track.0;
            let has_part = || line.pieces[first..piece].iter().any(|p| p.end > window.range.start);
            if is_caller && !window.steps.iter().any(is_caller_of) && !has_part() {
                gaps.truncate(n_before);
            }
        }
    }
}

/// Adds the gaps of a line in a window. `piece` is the first piece that may touch the window; it is advanced to the
/// first piece that may touch the next window.
fn gaps_within(
    line: &Line,
    line_idx: u32,
    window: &Range<i64>,
    row: Option<u32>,
    piece: &mut usize,
    gaps: &mut Vec<Gap>,
) {
    let mut until = window.start;
    while let Some(p) = line.pieces.get(*piece)
        && p.start < window.end
    {
        if p.activity.is_work() && p.end >= window.start {
            if p.start > until {
                let next = Some(PieceId { line: line_idx, piece: *piece as u32 });
                gaps.push(Gap { line: line_idx, range: until..p.start, next, window: row });
            }
            until = until.max(p.end);
        }
        if p.end > window.end {
            break;
        }
        *piece += 1;
    }
    if until < window.end {
        gaps.push(Gap { line: line_idx, range: until..window.end, next: None, window: row });
    }
}

/// Maximum number of overlapping steps that are considered: those that began last.
const MAX_CONCURRENT: usize = 64;

/// The step in which a gap lies. Of several overlapping steps, this is the step of the piece after the gap, else the
/// step that began last.
pub(super) fn step_of<'a>(deps: &Deps<'a>, window: &Window, gap: &Gap) -> Option<&'a Step> {
    let step = |row: &u32| &deps.store.steps()[*row as usize];
    let n_begun = window.steps.partition_point(|row| step(row).start < gap.range.end);
    let last = window.steps[..n_begun].iter().rev().take(MAX_CONCURRENT).map(step);
    let mut touching = last.filter(|s| s.end > gap.range.start);
    let next = gap.next.and_then(|piece_id| deps.store.step_id_of(deps.lines.slice(piece_id)));
    touching.clone().find(|s| Some(s.id) == next).or_else(|| touching.next())
}
