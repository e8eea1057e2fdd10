//! The backward walk: from a piece through its last-arriving predecessors, until a time is reached.
//!
//! At each piece the walk finds the need of the piece that arrived last, continues there, and so on. The parts that the
//! walk appends follow each other from the end to the start without holes. The stalls of a gap and the critical path of
//! a step are both such walks.

use super::activity::Activity;
use super::deps::{AWAITS_QUEUE_ROOM, AWAITS_QUEUE_ROW, Deps};
use super::incoming::IncomingFlow;
use super::lines::{LineKind, PieceId};
use super::needs::{Edge, Link, Needs, Target};
use super::step_index::LastAct;
use crate::stalls::cause::Cause;
use std::ops::Range;
use trace_model::{SliceId, SliceRef, Transfer};

/// The longest time that a device takes between two pieces of work that were both queued before: HTA measures 1 to 5
/// µs.
const QUEUED_GAP_NS: i64 = 10_000;
/// Iterations without progress after which the walk stops, since contradictory records may say that two ops made each
/// other ready.
const MAX_STANDSTILL: u32 = 256;

/// The kind of a part of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// The piece ran; the walk reached it by the edge.
    Runs(PieceId, Edge),
    /// Nothing that was waited for ran: the cause, and the slice that was waited for or the wait itself.
    Idle(Cause, Option<SliceId>),
    /// Host code that left no slice.
    Untraced,
    /// The time before the step's first op was ready. That op needed no other op.
    Begin,
}

/// The cause of a wait that held no thread, by its `arg`.
pub(crate) fn parked_cause(wait: &SliceRef) -> Cause {
    match wait.arg {
        AWAITS_QUEUE_ROW => Cause::QueueEmpty,
        AWAITS_QUEUE_ROOM => Cause::QueueFull,
        _ => Cause::OtherStep,
    }
}

/// A part of the walk: an interval with one explanation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkPart {
    pub start: i64,
    pub end: i64,
    pub kind: PartKind,
    /// The line that ran, or that should have run.
    pub line: u32,
    /// The piece whose start is explained.
    pub blocked: PieceId,
}

pub(crate) struct Walk<'d, 'a> {
    deps: &'d Deps<'a>,
    /// The time from which on the range is explained.
    cursor: i64,
    /// The time back to which the walk explains.
    limit: i64,
    out: &'d mut Vec<WalkPart>,
    /// The length of `out` at which the walk stops.
    max_parts: usize,
}

impl<'d, 'a> Walk<'d, 'a> {
    /// Appends the parts of `range`, from its end to its beginning, that explain why a piece did not start before the
    /// range's end. Stops after `max_parts` parts; returns the time back to which the range is explained.
    pub(crate) fn explain_start(
        deps: &'d Deps<'a>,
        piece_id: PieceId,
        range: &Range<i64>,
        max_parts: usize,
        out: &'d mut Vec<WalkPart>,
    ) -> i64 {
        Walk { deps, cursor: range.end, limit: range.start, max_parts: out.len() + max_parts, out }
            .run(Target::Start(piece_id), piece_id)
    }

    /// Appends all parts of `range`, from its end to its beginning, where the step's last act ended with the range.
    pub(crate) fn explain_last_act(deps: &'d Deps<'a>, last: LastAct, range: &Range<i64>, out: &'d mut Vec<WalkPart>) {
        let walk = Walk { deps, cursor: range.end, limit: range.start, max_parts: usize::MAX, out };
        match last {
            LastAct::Piece(piece_id) => walk.run(Target::Run(piece_id, range.end, Edge::Order), piece_id),
            LastAct::Wait(wait, op) => walk.run(Target::Parked(wait, op), op),
        };
    }

    fn needs(&self) -> Needs<'d, 'a> {
        Needs(self.deps)
    }

    fn run(mut self, first: Target<'d>, piece_id: PieceId) -> i64 {
        let (mut next, mut blocked, mut n_standstill) = (first, piece_id, 0);
        while self.cursor > self.limit && self.out.len() < self.max_parts {
            let before = self.cursor;
            next = match next {
                Target::Start(piece_id) => {
                    blocked = piece_id;
                    let link = self.needs().find_last_arrival(piece_id);
                    self.explain_delay(piece_id, piece_id.piece, &link);
                    link.next
                }
                Target::Run(piece_id, until, via) => self.explain_run(piece_id, until, via, &mut blocked),
                Target::Transfer(transfer, unblocked) => self.follow_transfer(transfer, unblocked, blocked),
                Target::Parked(wait, op) => {
                    self.push_part(
                        wait.start,
                        PartKind::Idle(parked_cause(&wait), Some(wait.id)),
                        blocked.line,
                        blocked,
                    );
                    self.needs().link_to_end(op, Edge::Ready).next
                }
                Target::Root(ready) => {
                    self.push_part(ready, PartKind::Idle(Cause::Dispatch, None), blocked.line, blocked);
                    self.explain_step_begin(blocked)
                }
                Target::Sent(line, time) => self.explain_act_before(line, time, blocked),
                Target::Unknown => {
                    self.push_part(self.limit, PartKind::Idle(Cause::Unexplained, None), blocked.line, blocked);
                    break;
                }
            };
            n_standstill = if self.cursor < before { 0 } else { n_standstill + 1 };
            if n_standstill > MAX_STANDSTILL {
                next = Target::Unknown;
            }
        }
        self.cursor.max(self.limit)
    }

    /// Appends a part from `from` to the cursor, and moves the cursor to `from`. Does nothing if the cursor is earlier
    /// already.
    fn push_part(&mut self, from: i64, kind: PartKind, line: u32, blocked: PieceId) {
        let from = from.max(self.limit);
        if from < self.cursor {
            self.out.push(WalkPart { start: from, end: self.cursor, kind, line, blocked });
            self.cursor = from;
        }
    }

    /// Explains the time from a need's arrival to a piece's start: by the line's waits before `end_piece`, else by the
    /// kind of edge.
    fn explain_delay(&mut self, piece_id: PieceId, end_piece: u32, link: &Link<'d>) {
        let deps = self.deps;
        let line = deps.lines.line(piece_id.line);
        let has_target = !matches!(link.next, Target::Unknown);
        let (from, to) = (link.arrival, self.cursor);
        if !has_target || from >= to {
            return;
        }
        let is_remote = matches!(link.next, Target::Run(by, ..) if deps.lines.line(by.line).process != line.process);
        let cause = match delay_cause(line.kind, link.via, to - from) {
            Some(Cause::Dispatch) if is_remote && link.via == Edge::Flow => Some(Cause::Network),
            cause => cause,
        };
        if cause == Some(Cause::Unexplained)
            && let Some((launch_end, launch)) = self.find_late_launch(piece_id, from)
        {
            let rest = if to - launch_end > QUEUED_GAP_NS { Cause::Unexplained } else { Cause::Launch };
            let culprit = Some(launch).filter(|_| rest == Cause::Launch);
            self.push_part(launch_end, PartKind::Idle(rest, culprit), piece_id.line, piece_id);
            self.push_part(from, PartKind::Idle(Cause::Launch, Some(launch)), piece_id.line, piece_id);
            return;
        }
        let culprit = self.find_culprit(link).filter(|_| cause.is_some());
        let idle = cause.map_or(PartKind::Untraced, |cause| PartKind::Idle(cause, culprit));
        for piece in (0..end_piece).rev() {
            let wait = &line.pieces[piece as usize];
            if wait.end <= from || !wait.activity.is_wait() {
                break;
            }
            self.push_part(wait.end.max(from), idle, piece_id.line, piece_id);
            let culprit = if wait.activity == Activity::Idle { culprit } else { Some(line.slice(wait).id) };
            let kind = PartKind::Idle(wait_cause(wait.activity, link.via), culprit);
            self.push_part(wait.start.max(from), kind, piece_id.line, piece_id);
        }
        self.push_part(from, idle, piece_id.line, piece_id);
    }

    /// The slice to blame for the delay after a link; `None` if the link is the order of the line.
    fn find_culprit(&self, link: &Link<'d>) -> Option<SliceId> {
        let piece = match link.next {
            Target::Start(launch) if link.via == Edge::Launch => Some(launch),
            Target::Run(piece, ..) if link.via != Edge::Order => Some(piece),
            Target::Transfer(transfer, _) => self.needs().find_send(transfer),
            _ => None,
        };
        piece.map(|piece_id| self.deps.lines.slice(piece_id).id)
    }

    /// The launch of a device's work that was still under way at `from`, when the device was free: its end, at most the
    /// work's start, and the launch's slice.
    fn find_late_launch(&self, piece_id: PieceId, from: i64) -> Option<(i64, SliceId)> {
        let (work, launch) = (self.deps.lines.slice(piece_id), self.deps.correlated(piece_id)?);
        let launch = self.deps.lines.slice(launch);
        let is_late = self.deps.lines.piece(piece_id).start == work.start && launch.end > from;
        is_late.then_some((launch.end.min(work.start), launch.id))
    }

    /// Explains a piece that ran until a time, back to its start or to the end of a wait inside it.
    fn explain_run(&mut self, piece_id: PieceId, until: i64, via: Edge, blocked: &mut PieceId) -> Target<'d> {
        let piece = self.deps.lines.piece(piece_id);
        if piece.activity.is_wait() {
            return self.explain_wait(piece_id, until);
        }
        // A flow may begin after the piece's end, where no slice was recorded.
        self.push_part(piece.end.min(until), PartKind::Untraced, piece_id.line, *blocked);
        if let Some(link) = self.needs().find_wait_inside(piece_id, until) {
            self.push_part(link.arrival, PartKind::Runs(piece_id, via), piece_id.line, *blocked);
            *blocked = piece_id;
            return link.next;
        }
        self.push_part(piece.start, PartKind::Runs(piece_id, via), piece_id.line, *blocked);
        Target::Start(piece_id)
    }

    /// Explains a thread's wait until a time.
    fn explain_wait(&mut self, piece_id: PieceId, until: i64) -> Target<'d> {
        let after = PieceId { piece: piece_id.piece + 1, ..piece_id };
        let line = self.deps.lines.line(piece_id.line);
        // The wait and the next piece on the line have the same need, so the need of the next piece is searched.
        let order = line.work_before(piece_id.piece);
        let order_link = order.map(|piece| self.needs().link_to_piece(PieceId { piece, ..piece_id }));
        let wait_link = self.needs().find_wait_end(after, order).filter(|l| l.arrival <= until);
        let unknown = Link { arrival: until, via: Edge::Order, next: Target::Unknown };
        let link = wait_link.or(order_link).unwrap_or(unknown);
        self.explain_delay(piece_id, after.piece, &link);
        link.next
    }

    /// Explains the start of the step of `root`, an op that needed no other op, and its predecessor: a message of
    /// another process, or the previous step of the same thread.
    fn explain_step_begin(&mut self, root: PieceId) -> Target<'d> {
        let deps = self.deps;
        let (process, slice) = (deps.lines.line(root.line).process, deps.lines.slice(root));
        let id = deps.store.step_id_of(slice);
        // The step is searched at the op's start, since the op may be ready before the step's own stamp.
        let row = id.and_then(|id| deps.steps.row(deps.store, process, id, slice.start));
        let step = row.and_then(|row| deps.store.steps().get(row as usize));
        let Some(step) = step.filter(|step| step.start > self.limit && step.start <= slice.start) else {
            self.push_part(self.limit, PartKind::Begin, root.line, root);
            return Target::Unknown;
        };
        self.push_part(step.start, PartKind::Idle(Cause::StepBegin, None), root.line, root);
        self.explain_act_before(step.slice.track, step.start, root)
    }

    /// Explains a line back to its last act before it began a step or sent a message at `time`: a message that arrived,
    /// a step that ended, or a piece of work.
    fn explain_act_before(&mut self, line: u32, time: i64, blocked: PieceId) -> Target<'d> {
        let deps = self.deps;
        let step = deps.steps.last_ended_step(deps.store, line, time);
        let flow = deps.last_arrived_flow(line, time);
        let piece = deps.lines.line(line).row_before(time).map(|piece| PieceId { line, piece });
        let ended = |piece_id: &PieceId| self.deps.lines.piece(*piece_id).end.min(time);
        let work = piece.filter(|piece_id| {
            self.deps.lines.piece(*piece_id).activity.is_work() && flow.is_none_or(|f| f.to < ended(piece_id))
        });
        if let Some(flow) = flow.filter(|f| step.is_none_or(|(_, step)| step.end <= f.to) && work.is_none()) {
            return self.follow_message(flow, blocked);
        }
        if let Some((row, step)) =
            step.filter(|(_, step)| work.as_ref().is_none_or(|piece_id| ended(piece_id) <= step.end))
        {
            self.push_part(step.end, PartKind::Idle(Cause::HostLate, None), line, blocked);
            let Some((end, last)) = deps.steps.last_act(row) else { return Target::Unknown };
            self.push_part(end, PartKind::Idle(Cause::StepEnd, None), line, blocked);
            return match last {
                LastAct::Piece(piece_id) => Target::Run(piece_id, end, Edge::Order),
                LastAct::Wait(wait, op) => Target::Parked(wait, op),
            };
        }
        work.map_or(Target::Unknown, |piece_id| Target::Run(piece_id, time, Edge::Flow))
    }

    /// Explains a message back to the time at which it left its sender.
    fn follow_message(&mut self, flow: &IncomingFlow, blocked: PieceId) -> Target<'d> {
        self.push_part(flow.to, PartKind::Idle(Cause::Dispatch, None), flow.line, blocked);
        self.push_part(flow.from, PartKind::Idle(Cause::Network, None), flow.from_line, blocked);
        Target::Sent(flow.from_line, flow.from)
    }

    /// Explains a value back to its `_Send`, or, if no `_Send` is recorded, to the time at which it was enqueued or
    /// left.
    fn follow_transfer(&mut self, transfer: &'d Transfer, unblocked: i64, blocked: PieceId) -> Target<'d> {
        let deps = self.deps;
        let line_of = |track: Option<trace_model::TrackId>| track.map_or(blocked.line, |t| t.0);
        let process_of = |line: u32| deps.lines.lines.get(line as usize).map(|l| l.process);
        let (from, to) = (line_of(transfer.from), line_of(transfer.to));
        let transit_cause = if process_of(from) == process_of(to) { Cause::Dma } else { Cause::Network };
        let arrived = transfer.arrived.unwrap_or(unblocked);
        let left = transfer.sent.or(transfer.left);
        let send = self.needs().find_send(transfer);
        let sender = send.map(|piece_id| deps.lines.slice(piece_id).id);
        self.push_part(arrived, PartKind::Idle(Cause::Dispatch, sender), to, blocked);
        let Some(left) = left else { return Target::Unknown };
        self.push_part(left, PartKind::Idle(transit_cause, sender), from, blocked);
        match (send, transfer.enqueued) {
            (Some(send), _) => Target::Start(send),
            (None, Some(enqueued)) => {
                self.push_part(enqueued, PartKind::Idle(Cause::Dispatch, None), from, blocked);
                Target::Unknown
            }
            (None, None) => Target::Unknown,
        }
    }
}

/// The cause of a piece's start `late_ns` after its last need arrived, if no wait of its thread explains the delay;
/// `None` for host code that left no slice.
fn delay_cause(kind: LineKind, via: Edge, late_ns: i64) -> Option<Cause> {
    match (kind, via) {
        (_, Edge::Launch) => Some(Cause::Launch),
        (_, Edge::Call) => Some(Cause::WakeUp),
        (LineKind::Host, Edge::Order | Edge::Sync | Edge::Wake) => None,
        (_, Edge::Sync) => Some(Cause::Synchronisation),
        (LineKind::Device, Edge::Order) if late_ns > QUEUED_GAP_NS => Some(Cause::Unexplained),
        (LineKind::Device, _) => Some(Cause::Launch),
        (LineKind::Host | LineKind::Worker, _) => Some(Cause::Dispatch),
    }
}

/// The cause of a thread's wait after a need had arrived by an edge.
fn wait_cause(wait: Activity, via: Edge) -> Cause {
    match wait {
        Activity::Sync => Cause::Synchronisation,
        Activity::Idle => Cause::WakeUp,
        Activity::Asleep if matches!(via, Edge::Wake | Edge::Ready | Edge::Transfer) => Cause::WakeUp,
        _ => Cause::ScheduledOut,
    }
}
