//! Turns the parts of the backward walk into stalls, each with one cause and one culprit.

use super::cause::Cause;
use super::gaps::{Gap, Window, Windows, step_of};
use super::stall::Stall;
use crate::activity::Activity;
use crate::deps::Deps;
use crate::lines::{Line, LineKind, PieceId};
use crate::needs::Edge;
use crate::walk::{PartKind, Walk, WalkPart, parked_cause};
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::SliceId;

/// Maximum number of parts of one gap; the rest of the gap is one more part. Thus the many threads that wait for one
/// long chain of ops do not each repeat the chain.
const MAX_PARTS: usize = 64;

/// Finds causes and culprits of gaps.
pub(super) struct Blame<'d, 'a> {
    deps: &'d Deps<'a>,
    windows: &'d Windows,
    pub stalls: Vec<Stall>,
    parts: Vec<WalkPart>,
    /// The work by process and window, computed when first needed.
    work: FxHashMap<(u32, u32), WindowWork>,
}

/// The work that the workers of a process ran in a window.
struct WindowWork {
    /// Start and id of each piece of work, sorted by start.
    starts: Vec<(i64, PieceId)>,
    /// By index of `starts`: the longest piece from there on.
    longest: Vec<PieceId>,
}

/// The gap that is being divided.
struct GapContext<'g> {
    gap: &'g Gap,
    step_id: Option<u32>,
    /// First start and last end of any worker's work in the step.
    active: Option<Range<i64>>,
}

impl<'d, 'a> Blame<'d, 'a> {
    pub(super) fn new(deps: &'d Deps<'a>, windows: &'d Windows) -> Blame<'d, 'a> {
        Blame { deps, windows, stalls: Vec::new(), parts: Vec::new(), work: FxHashMap::default() }
    }

    fn line(&self, line: u32) -> &'d Line {
        self.deps.lines.line(line)
    }

    /// Adds the stalls of a gap.
    pub(super) fn explain_gap(&mut self, gap: &Gap) {
        let process = self.line(gap.line).process;
        let window = gap.window.and_then(|row| self.windows.window(process, row));
        let step = window.and_then(|w| step_of(self.deps, w, gap));
        let active = window.map(Window::active_or_end);
        let context = GapContext { gap, step_id: step.map(|s| s.id), active };
        let Some(next) = gap.next else { return self.explain_rest_of_step(&context) };
        let mut parts = std::mem::take(&mut self.parts);
        let explained_from = Walk::explain_start(self.deps, next, &gap.range, MAX_PARTS, &mut parts);
        for part in parts.drain(..) {
            self.push_part(&context, &part);
        }
        self.parts = parts;
        if explained_from > gap.range.start {
            let longest = self.find_longest_work(&context, gap.range.start..explained_from);
            self.push(&context, gap.range.start..explained_from, Cause::InputLate, longest);
        }
    }

    /// Adds a part of the walk as a stall of the gap.
    fn push_part(&mut self, context: &GapContext<'_>, part: &WalkPart) {
        let range = part.start..part.end;
        match part.kind {
            PartKind::Runs(piece_id, via) => {
                let culprit = self.deps.lines.slice(piece_id).id;
                self.push(context, range, self.run_cause(context.gap.line, piece_id, via), Some(culprit));
            }
            PartKind::Idle(Cause::Unexplained, _) => self.push(context, range, Cause::Unexplained, None),
            PartKind::Begin => {
                let first = context.active.as_ref().map_or(range.start, |a| a.start.clamp(range.start, range.end));
                self.push(context, first..range.end, Cause::Unexplained, None);
                self.push(context, range.start..first, Cause::StepBegin, None);
            }
            PartKind::Untraced => {
                let is_host_of_device =
                    part.line != context.gap.line && self.line(context.gap.line).kind == LineKind::Device;
                let cause = if is_host_of_device { Cause::HostLate } else { Cause::Unexplained };
                self.push(context, range, self.idle_cause(context.gap.line, part, cause), None);
            }
            PartKind::Idle(cause, culprit) => {
                // A predecessor that was ready and started late is itself the culprit.
                let is_next = Some(part.blocked) == context.gap.next;
                let is_late = !is_next && matches!(cause, Cause::Dispatch | Cause::WakeUp);
                let blocked = is_late.then(|| self.deps.lines.slice(part.blocked).id);
                self.push(context, range, self.idle_cause(context.gap.line, part, cause), blocked.or(culprit));
            }
        }
    }

    /// The cause of a wait of the line `waiting` while a piece ran.
    fn run_cause(&self, waiting: u32, piece_id: PieceId, via: Edge) -> Cause {
        let (waiter, runner) = (self.line(waiting), self.line(piece_id.line));
        let is_peer = waiter.process != runner.process;
        match self.deps.lines.piece(piece_id).activity {
            Activity::Collective if !is_peer => Cause::Network,
            _ if is_peer => Cause::PeerLate,
            Activity::Copy => Cause::Dma,
            Activity::Memory => Cause::Memory,
            Activity::Launch => Cause::Launch,
            Activity::Input => Cause::InputLate,
            Activity::Kernel if via == Edge::Sync => Cause::Synchronisation,
            Activity::Kernel => Cause::InputLate,
            Activity::Op | Activity::Shard if via == Edge::Order && runner.kind == LineKind::Worker => Cause::Dispatch,
            _ if waiter.kind == LineKind::Device => Cause::HostLate,
            _ => Cause::InputLate,
        }
    }

    /// The cause of a wait while nothing ran. In another process, every cause except those between processes becomes
    /// [`Cause::PeerLate`].
    fn idle_cause(&self, waiting: u32, part: &WalkPart, cause: Cause) -> Cause {
        let is_peer = self.line(part.line).process != self.line(waiting).process;
        let is_between = matches!(cause, Cause::Network | Cause::Dma | Cause::ScheduledOut)
            || matches!(cause, Cause::QueueEmpty | Cause::QueueFull | Cause::OtherStep);
        if is_peer && !is_between { Cause::PeerLate } else { cause }
    }

    /// Explains a gap after the last work that the step had for the track.
    fn explain_rest_of_step(&mut self, context: &GapContext<'_>) {
        let range = context.gap.range.clone();
        let Some(active) = context.active.clone() else {
            return self.push(context, range, Cause::Unexplained, None);
        };
        let (first, last) = (active.start.clamp(range.start, range.end), active.end.clamp(range.start, range.end));
        let last = last.max(first);
        self.push(context, last..range.end, Cause::StepEnd, None);
        let last = self.push_parked_wait(context, first..last);
        let longest = self.find_longest_work(context, first..last);
        let cause = if longest.is_some() { Cause::NothingReady } else { Cause::Unexplained };
        self.push(context, first..last, cause, longest);
        self.push(context, range.start..first, Cause::StepBegin, None);
    }

    /// Adds the end of `range` as a stall if an op waited there without a thread and nothing else ran. Returns the end
    /// of the rest of the range.
    fn push_parked_wait(&mut self, context: &GapContext<'_>, range: Range<i64>) -> i64 {
        let waits = self.deps.parked_in(self.line(context.gap.line).process);
        let first = waits.partition_point(|wait| wait.end < range.end);
        let Some(wait) = waits.get(first).filter(|wait| wait.start < range.end).copied() else { return range.end };
        let from = wait.start.max(range.start);
        if self.find_longest_work(context, from..range.end).is_some() {
            return range.end;
        }
        self.push(context, from..range.end, parked_cause(&wait), Some(wait.id));
        from
    }

    /// The work of the gap's process that covers most of a part of the gap.
    fn find_longest_work(&mut self, context: &GapContext<'_>, range: Range<i64>) -> Option<SliceId> {
        let (deps, process) = (self.deps, self.line(context.gap.line).process);
        if range.is_empty() {
            return None;
        }
        let workers =
            || deps.lines.lines.iter().enumerate().filter(|(_, l)| l.process == process && l.kind == LineKind::Worker);
        let covering =
            workers().filter_map(|(line, l)| Some(PieceId { line: line as u32, piece: l.row_before(range.start)? }));
        let mut candidates: Vec<PieceId> = covering.collect();
        if let (Some(row), Some(window)) =
            (context.gap.window, context.gap.window.and_then(|row| self.windows.window(process, row)))
        {
            let work = self.work.entry((process, row));
            let work = work.or_insert_with(|| WindowWork::new(deps, process, &window.range));
            candidates.extend(work.longest_from(range.start));
        }
        let covers = |piece_id: &PieceId| {
            let piece = deps.lines.piece(*piece_id);
            if piece.activity.is_work() { piece.end.min(range.end) - piece.start.max(range.start) } else { 0 }
        };
        let best = candidates.into_iter().filter(|piece_id| piece_id.line != context.gap.line && covers(piece_id) > 0);
        best.max_by_key(|piece_id| (covers(piece_id), std::cmp::Reverse(piece_id.line)))
            .map(|piece_id| deps.lines.slice(piece_id).id)
    }

    /// Adds a stall for each collective of a line, from its start until its last peer joined.
    pub(super) fn explain_collectives(&mut self, line: u32, range: &Range<i64>) {
        for (piece, p) in self.line(line).pieces.iter().enumerate() {
            if p.activity != Activity::Collective || p.start >= range.end || p.end <= range.start {
                continue;
            }
            let piece_id = PieceId { line, piece: piece as u32 };
            let Some(last) = self.deps.exchanges.last_peer(piece_id) else { continue };
            let last_start = self.deps.lines.piece(last).start.min(p.end);
            if last_start > p.start {
                let gap = Gap { line, range: p.start..last_start, next: Some(piece_id), window: None };
                let context = GapContext { gap: &gap, step_id: None, active: None };
                let culprit = Some(self.deps.lines.slice(last).id);
                self.push(&context, gap.range.clone(), Cause::PeerLate, culprit);
            }
        }
    }

    fn push(&mut self, context: &GapContext<'_>, range: Range<i64>, cause: Cause, culprit: Option<SliceId>) {
        if range.is_empty() {
            return;
        }
        let culprit = culprit.and_then(|id| self.deps.lines.culprit(id));
        self.stalls.push(Stall {
            track: self.line(context.gap.line).track,
            step_id: context.step_id,
            gap: context.gap.range.clone(),
            start: range.start,
            end: range.end,
            cause,
            culprit,
            blocked: context.gap.next.map(|piece_id| self.deps.lines.slice(piece_id).id),
        });
    }
}

impl Window {
    /// Returns [`Window::active`], or the window's end if nothing ran.
    fn active_or_end(&self) -> Range<i64> {
        if self.active.start <= self.active.end { self.active.clone() } else { self.range.end..self.range.end }
    }
}

impl WindowWork {
    fn new(deps: &Deps<'_>, process: u32, window: &Range<i64>) -> WindowWork {
        let mut starts: Vec<(i64, PieceId)> = Vec::new();
        for (index, line) in deps.lines.lines.iter().enumerate() {
            if line.process != process || line.kind != LineKind::Worker {
                continue;
            }
            let first = line.pieces.partition_point(|p| p.start < window.start);
            let within = line.pieces[first..].iter().take_while(|p| p.start < window.end).enumerate();
            let work = within.filter(|(_, p)| p.activity.is_work());
            starts.extend(work.map(|(i, p)| (p.start, PieceId { line: index as u32, piece: (first + i) as u32 })));
        }
        starts.sort_by_key(|(start, _)| *start);
        let length = |piece_id: &PieceId| deps.lines.piece(*piece_id).end - deps.lines.piece(*piece_id).start;
        let mut longest: Vec<PieceId> = Vec::with_capacity(starts.len());
        for (_, piece_id) in starts.iter().rev() {
            let before = longest.last().copied().unwrap_or(*piece_id);
            longest.push(if length(piece_id) >= length(&before) { *piece_id } else { before });
        }
        longest.reverse();
        WindowWork { starts, longest }
    }

    /// The longest piece that started at or after `time`.
    fn longest_from(&self, time: i64) -> Option<PieceId> {
        self.longest.get(self.starts.partition_point(|(start, _)| *start < time)).copied()
    }
}
