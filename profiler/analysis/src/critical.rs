//! The critical path: the chain of last-arriving predecessors from the end of a step to its start, across threads,
//! streams and processes. Only the slices on this path delay the step's end.

use super::activity::Activity;
use super::deps::Deps;
use super::lines::{LineKind, PieceId};
use super::step_index::LastAct;
use super::walk::{PartKind, Walk, WalkPart};
use crate::stalls::cause::Cause;
use std::ops::Range;
use trace_model::{SliceId, Step, TrackId};
use trace_store::Store;

/// The kind of a part of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathKind {
    /// An op of a graph ran.
    Op,
    /// A device computed.
    Kernel,
    /// A device copied.
    Copy,
    /// Devices exchanged data.
    Collective,
    /// A host launched work.
    Launch,
    /// The step's input was made.
    Input,
    /// A host ran other code.
    Host,
    /// Memory was allocated or freed.
    Memory,
    /// A thread whose scheduling alone is recorded had a CPU.
    Running,
    /// The profiler that recorded the trace worked.
    Profiler,
    /// Nothing ran.
    Stall(Cause),
}

/// A part of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Start, ns from the origin.
    pub start: i64,
    /// End (not included): the start of the next segment.
    pub end: i64,
    /// The track that ran, or that should have run.
    pub track: TrackId,
    /// The kind of work, or the stall.
    pub kind: PathKind,
    /// The slice that ran, or the culprit of a stall. `None` if only a slice that encloses much other work is recorded.
    pub slice: Option<SliceId>,
}

impl Segment {
    /// The duration, ns.
    #[must_use]
    pub fn dur(&self) -> i64 {
        self.end - self.start
    }
}

/// The critical path of a range. The segments follow each other from the start of the range to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPath {
    /// The id of the step; `None` for the path of another range.
    pub step_id: Option<u32>,
    /// The range: a step's, extended to the end of the last device work that was launched in the step.
    pub range: Range<i64>,
    /// The parts of the path, in order of time.
    pub segments: Vec<Segment>,
}

/// The critical path of a step.
#[must_use]
pub fn critical_path(store: &Store, step: &Step) -> CriticalPath {
    let range = step.start..step.end;
    step_path(&Deps::new(store, &crate::stalls::widen_to_steps(store, &range)), step)
}

/// The critical path that ends with the work that ended last in a range, whatever steps the range has.
#[must_use]
pub fn critical_path_of_range(store: &Store, range: Range<i64>) -> CriticalPath {
    range_path(&Deps::new(store, &range), range)
}

pub(crate) fn range_path(deps: &Deps<'_>, range: Range<i64>) -> CriticalPath {
    let all: Vec<u32> = (0..deps.lines.lines.len() as u32).collect();
    let mut path = path_from_last_work(deps, range, &all, Cause::Unexplained);
    if deps.store.steps().is_empty() {
        // Without steps the time before the first work and after the last is no part of a step.
        let step_causes = [PathKind::Stall(Cause::StepBegin), PathKind::Stall(Cause::StepEnd)];
        let unknown = path.segments.iter_mut().filter(|segment| step_causes.contains(&segment.kind));
        unknown.for_each(|segment| segment.kind = PathKind::Stall(Cause::Unexplained));
    }
    path
}

pub(crate) fn step_path(deps: &Deps<'_>, step: &Step) -> CriticalPath {
    let lines = &deps.lines.lines;
    let process = lines.get(step.slice.track as usize).map(|l| l.process);
    let process_lines: Vec<u32> =
        (0..lines.len() as u32).filter(|l| Some(lines[*l as usize].process) == process).collect();
    let mut range = step.start..step.end;
    if !process_lines.iter().any(|l| lines[*l as usize].kind == LineKind::Worker) {
        range.end = range.end.max(launched_work_end(deps, &range, &process_lines));
    }
    let last_act = process.and_then(|process| deps.steps.row(deps.store, process, step.id, step.start));
    let last_act = last_act.and_then(|row| deps.steps.last_act(row)).filter(|(end, _)| *end > range.start);
    let mut path = match last_act {
        // The step's own last act: other steps may run at the same time and end later.
        Some((end, last)) => walk_back(deps, range, end, last, Cause::StepEnd),
        None => path_from_last_work(deps, range, &process_lines, Cause::StepEnd),
    };
    path.step_id = Some(step.id);
    path
}

/// The path back from an act that ended at `end`. The rest of the range after the act is a stall with `rest_cause`.
fn walk_back(deps: &Deps<'_>, range: Range<i64>, end: i64, last: LastAct, rest_cause: Cause) -> CriticalPath {
    let end = end.min(range.end);
    let (LastAct::Piece(piece_id) | LastAct::Wait(_, piece_id)) = last;
    let mut path = CriticalPath { step_id: None, range: range.clone(), segments: Vec::new() };
    path.push(end..range.end, deps.lines.line(piece_id.line).track, PathKind::Stall(rest_cause), None);
    let mut parts = Vec::new();
    Walk::explain_last_act(deps, last, &(range.start..end), &mut parts);
    parts.iter().for_each(|part| path.push_part(deps, part));
    path.segments.reverse();
    path
}

/// The end of the last device work that the lines' threads launched in a range, at least the range's end.
fn launched_work_end(deps: &Deps<'_>, range: &Range<i64>, lines: &[u32]) -> i64 {
    let mut end = range.end;
    for line_idx in lines {
        let line = deps.lines.line(*line_idx);
        let first = line.pieces.partition_point(|p| p.start < range.start);
        let within = line.pieces[first..].iter().take_while(|p| p.start < range.end).enumerate();
        for (piece, _) in within.filter(|(_, p)| p.activity == Activity::Launch) {
            let work = deps.correlated(PieceId { line: *line_idx, piece: (first + piece) as u32 });
            end = work.map_or(end, |work| end.max(deps.lines.slice(work).end));
        }
    }
    end
}

/// The path back from the last work on these lines. The rest of the range after the work is a stall with `rest_cause`.
fn path_from_last_work(deps: &Deps<'_>, range: Range<i64>, lines: &[u32], rest_cause: Cause) -> CriticalPath {
    let last = lines.iter().filter_map(|line| last_work(deps, *line, &range));
    let last = last.max_by_key(|(end, piece_id)| {
        let order = (*end, deps.lines.piece(*piece_id).start, std::cmp::Reverse(piece_id.line));
        (can_end_program(deps, piece_id.line), order)
    });
    let Some((end, piece_id)) = last else {
        let track = lines.first().map_or(TrackId(0), |l| deps.lines.line(*l).track);
        let mut path = CriticalPath { step_id: None, range: range.clone(), segments: Vec::new() };
        path.push(range, track, PathKind::Stall(Cause::Unexplained), None);
        return path;
    };
    walk_back(deps, range, end, LastAct::Piece(piece_id), rest_cause)
}

/// Whether a line's last work can be the program's last. If only scheduling is recorded, this is the first thread's
/// last work, since any helper thread may run on after it.
fn can_end_program(deps: &Deps<'_>, line: u32) -> bool {
    let line = deps.lines.line(line);
    let pid = deps.store.processes().get(line.process as usize).map(|p| p.pid);
    !line.is_only_scheduled() || deps.store.track(line.track).map(|track| track.tid) == pid
}

/// The end, cut at the range, and the piece of a line's last work in the range.
fn last_work(deps: &Deps<'_>, line: u32, range: &Range<i64>) -> Option<(i64, PieceId)> {
    let pieces = &deps.lines.line(line).pieces;
    let after = pieces.partition_point(|p| p.start < range.end);
    // The search ends with the range: a thread's last work may lie far before it.
    let mut within = (0..after).rev().take_while(|i| pieces[*i].end > range.start);
    let piece = within.find(|i| pieces[*i].activity.is_work())?;
    let end = pieces[piece].end.min(range.end);
    (end > range.start).then_some((end, PieceId { line, piece: piece as u32 }))
}

impl CriticalPath {
    fn push_part(&mut self, deps: &Deps<'_>, part: &WalkPart) {
        let range = part.start..part.end;
        let track = |line: u32| deps.lines.lines.get(line as usize).map_or(TrackId(0), |l| l.track);
        let (kind, track, slice) = match part.kind {
            PartKind::Runs(piece_id, _) => (
                path_kind(deps.lines.piece(piece_id).activity),
                track(piece_id.line),
                Some(deps.lines.slice(piece_id).id),
            ),
            PartKind::Idle(cause, culprit) => (PathKind::Stall(cause), track(part.line), culprit),
            PartKind::Untraced => (PathKind::Stall(Cause::HostLate), track(part.line), None),
            PartKind::Begin => (PathKind::Stall(Cause::StepBegin), track(part.line), None),
        };
        self.push(range, track, kind, slice.and_then(|id| deps.lines.culprit(id)));
    }

    /// Adds a segment that ends where the last added segment starts.
    fn push(&mut self, range: Range<i64>, track: TrackId, kind: PathKind, slice: Option<SliceId>) {
        if range.is_empty() {
            return;
        }
        if let Some(last) = self.segments.last_mut()
            && (last.track, last.kind, last.slice) == (track, kind, slice)
            && last.start == range.end
        {
            last.start = range.start;
            return;
        }
        self.segments.push(Segment { start: range.start, end: range.end, track, kind, slice });
    }
}

fn path_kind(activity: Activity) -> PathKind {
    match activity {
        Activity::Op | Activity::Shard => PathKind::Op,
        Activity::Kernel => PathKind::Kernel,
        Activity::Copy => PathKind::Copy,
        Activity::Collective => PathKind::Collective,
        Activity::Launch => PathKind::Launch,
        Activity::Input => PathKind::Input,
        Activity::Memory => PathKind::Memory,
        Activity::Running => PathKind::Running,
        Activity::Profiler => PathKind::Profiler,
        Activity::HostOp
        | Activity::Host
        | Activity::Enclosing
        | Activity::Call
        | Activity::Sync
        | Activity::Idle
        | Activity::Asleep
        | Activity::Runnable
        | Activity::Frame => PathKind::Host,
    }
}
