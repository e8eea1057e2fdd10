//! The critical path: the chain of last-arriving predecessors from the end of a step to its begin, across threads,
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
    /// A thread of which only its scheduling is known had a CPU.
    Running,
    /// The profiler that recorded the trace worked.
    Profiler,
    /// Nothing ran.
    Stall(Cause),
}

/// A part of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Begin, ns from the origin.
    pub start: i64,
    /// End (not included), the next segment's begin.
    pub end: i64,
    /// The track that ran, or that should have run.
    pub track: TrackId,
    /// The kind of work, or the stall.
    pub kind: PathKind,
    /// The slice that ran; of a stall, the culprit. `None` where only a span around much else is recorded.
    pub slice: Option<SliceId>,
}

impl Segment {
    /// The duration, ns.
    #[must_use]
    pub fn dur(&self) -> i64 {
        self.end - self.start
    }
}

/// The critical path of a range. The segments follow each other from its begin to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPath {
    /// The id of the step; `None` for the path of another range.
    pub step_id: Option<u32>,
    /// The range: a step's, extended to the end of the last device work that was launched in the step.
    pub range: Range<i64>,
    /// In order of time.
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
    let mut path = walk(deps, range, &all, Cause::Unexplained);
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
        range.end = range.end.max(launched_until(deps, &range, &process_lines));
    }
    let worked = process.and_then(|process| deps.steps.row(deps.store, process, step.id, step.start));
    let worked = worked.and_then(|row| deps.steps.last_act(row)).filter(|(end, _)| *end > range.start);
    let mut path = match worked {
        // The step's own last act: other steps may run at the same time and end later.
        Some((end, last)) => walk_back(deps, range, end, last, Cause::StepEnd),
        None => walk(deps, range, &process_lines, Cause::StepEnd),
    };
    path.step_id = Some(step.id);
    path
}

/// The path back from an act that ended at `end`. The rest of the range after it is a stall with the cause `after`.
fn walk_back(deps: &Deps<'_>, range: Range<i64>, end: i64, last: LastAct, after: Cause) -> CriticalPath {
    let end = end.min(range.end);
    let (LastAct::Piece(at) | LastAct::Wait(_, at)) = last;
    let mut path = CriticalPath { step_id: None, range: range.clone(), segments: Vec::new() };
    path.push(end..range.end, deps.lines.line(at.line).track, PathKind::Stall(after), None);
    let mut parts = Vec::new();
    Walk::explain_last_act(deps, last, &(range.start..end), &mut parts);
    parts.iter().for_each(|part| path.push_part(deps, part));
    path.segments.reverse();
    path
}

/// The end of the last device work that the lines' threads launched in a range, at least the range's end.
fn launched_until(deps: &Deps<'_>, range: &Range<i64>, lines: &[u32]) -> i64 {
    let mut until = range.end;
    for line_idx in lines {
        let line = deps.lines.line(*line_idx);
        let first = line.pieces.partition_point(|p| p.start < range.start);
        let within = line.pieces[first..].iter().take_while(|p| p.start < range.end).enumerate();
        for (piece, _) in within.filter(|(_, p)| p.activity == Activity::Launch) {
            let work = deps.correlated(PieceId { line: *line_idx, piece: (first + piece) as u32 });
            until = work.map_or(until, |work| until.max(deps.lines.slice(work).end));
        }
    }
    until
}

fn walk(deps: &Deps<'_>, range: Range<i64>, lines: &[u32], after: Cause) -> CriticalPath {
    let last = lines.iter().filter_map(|line| last_work(deps, *line, &range));
    let last = last.max_by_key(|(end, at)| {
        let order = (*end, deps.lines.piece(*at).start, std::cmp::Reverse(at.line));
        (ends_the_program(deps, at.line), order)
    });
    let Some((end, at)) = last else {
        let nowhere = lines.first().map_or(TrackId(0), |l| deps.lines.line(*l).track);
        let mut path = CriticalPath { step_id: None, range: range.clone(), segments: Vec::new() };
        path.push(range, nowhere, PathKind::Stall(Cause::Unexplained), None);
        return path;
    };
    walk_back(deps, range, end, LastAct::Piece(at), after)
}

/// Whether a line's last work can be the program's last: where only scheduling is recorded that is the first thread's,
/// since any helper thread may run on after it.
fn ends_the_program(deps: &Deps<'_>, line: u32) -> bool {
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
            PartKind::Runs(at, _) => {
                (kind(deps.lines.piece(at).activity), track(at.line), Some(deps.lines.slice(at).id))
            }
            PartKind::Idle(cause, culprit) => (PathKind::Stall(cause), track(part.line), culprit),
            PartKind::Untraced => (PathKind::Stall(Cause::HostLate), track(part.line), None),
            PartKind::Begin => (PathKind::Stall(Cause::StepBegin), track(part.line), None),
        };
        self.push(range, track, kind, slice.and_then(|id| deps.lines.culprit(id)));
    }

    /// Adds a segment that ends where the one before begins.
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

fn kind(activity: Activity) -> PathKind {
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
        | Activity::Around
        | Activity::Call
        | Activity::Sync
        | Activity::Idle
        | Activity::Asleep
        | Activity::Runnable
        | Activity::Frame => PathKind::Host,
    }
}
