//! The backward walk: from a piece through its last-arriving predecessors, until a time is reached.
//!
//! At each piece the walk finds the need of the piece that arrived last, continues there, and so on. The parts that the
//! walk appends follow each other from the end to the start without holes. The stalls of a gap and the critical path of
//! a step are both such walks.

use super::activity::Activity;
use super::deps::{AWAITS_QUEUE_ROOM, AWAITS_QUEUE_ROW, Deps, IncomingFlow};
use super::lines::{LineKind, Piece, PieceId};
use super::step_index::LastAct;
use crate::stalls::cause::Cause;
use std::ops::Range;
use trace_model::{NO_NODE, SliceId, SliceRef, Transfer};

/// The longest time that a device takes between two pieces of work that were both queued before: HTA measures 1 to 5
/// µs.
const QUEUED_GAP_NS: i64 = 10_000;
/// Iterations without progress after which the walk stops, since contradictory records may say that two ops made each
/// other ready.
const MAX_STANDSTILL: u32 = 256;

/// The kind of edge by which the walk reached a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// The piece ran before on the same line.
    Order,
    /// The piece's end made the op ready.
    Ready,
    /// The piece launched the device's work.
    Launch,
    /// A stream or a host waited for the piece.
    Sync,
    /// The piece sent the value.
    Transfer,
    /// A flow begins in the piece.
    Flow,
    /// The piece woke the thread.
    Wake,
    /// The piece came last to a collective.
    Peer,
}

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

/// The event that the walk explains next.
#[derive(Clone, Copy)]
enum Target<'a> {
    /// The start of a piece: why it was not earlier.
    Start(PieceId),
    /// This piece's work until a time.
    Run(PieceId, i64, Edge),
    /// The transfer of a value, which unblocked its receiver at a time.
    Transfer(&'a Transfer, i64),
    /// An op's wait that held no thread, and the op.
    Parked(SliceRef, PieceId),
    /// An op that needed no other op, by the time at which it was ready.
    Root(i64),
    /// A message, by the line that it left and the time.
    Sent(u32, i64),
    /// The trace does not say what comes before.
    Unknown,
}

/// A need of a piece: time of arrival, edge, and target at which the walk continues.
#[derive(Clone, Copy)]
struct Link<'a> {
    arrival: i64,
    via: Edge,
    next: Target<'a>,
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

    fn run(mut self, first: Target<'d>, piece_id: PieceId) -> i64 {
        let (mut next, mut blocked, mut n_standstill) = (first, piece_id, 0);
        while self.cursor > self.limit && self.out.len() < self.max_parts {
            let before = self.cursor;
            next = match next {
                Target::Start(piece_id) => {
                    blocked = piece_id;
                    let link = self.find_last_arrival(piece_id);
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
                    self.link_to_end(op, Edge::Ready).next
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

    fn piece(&self, piece_id: PieceId) -> &'d Piece {
        self.deps.lines.piece(piece_id)
    }

    /// Continues at the piece that ran on a line just before `time`.
    fn find_running(&self, line: u32, time: i64, via: Edge) -> Option<Target<'d>> {
        let piece = self.deps.lines.line(line).row_before(time)?;
        Some(Target::Run(PieceId { line, piece }, time, via))
    }

    /// The link to a piece that ran before on the same line.
    fn link_to_piece(&self, piece_id: PieceId) -> Link<'d> {
        let end = self.piece(piece_id).end;
        Link { arrival: end, via: Edge::Order, next: Target::Run(piece_id, end, Edge::Order) }
    }

    /// The link to the end of a piece's slice.
    fn link_to_end(&self, piece_id: PieceId, via: Edge) -> Link<'d> {
        let end = self.deps.lines.slice(piece_id).end;
        let last = self
            .deps
            .lines
            .line(piece_id.line)
            .row_before_near(piece_id.piece, end)
            .map_or(piece_id, |piece| PieceId { piece, ..piece_id });
        // A slice without a duration has no piece before its end.
        let last = if self.piece(piece_id).start == end { piece_id } else { last };
        Link { arrival: end, via, next: Target::Run(last, end, via) }
    }

    /// The need of a piece that arrived last: of its line, its slice, its thread's waits or a flow.
    fn find_last_arrival(&self, piece_id: PieceId) -> Link<'d> {
        let line = self.deps.lines.line(piece_id.line);
        let start = self.piece(piece_id).start;
        let order = line.work_before(piece_id.piece);
        let order_link = order.map(|piece| self.link_to_piece(PieceId { piece, ..piece_id }));
        let is_fresh = start == self.deps.lines.slice(piece_id).start;
        let need_link = if is_fresh { self.find_last_need(piece_id) } else { None };
        let wait_link = self.find_wait_end(piece_id, order);
        let flow_link = if need_link.is_none() {
            let after = order_link.map_or(i64::MIN, |o| o.arrival);
            self.deps.last_begun_flow(piece_id.line, after, start).and_then(|flow| {
                let next = self.find_running(flow.from_line, flow.from, Edge::Flow)?;
                Some(Link { arrival: flow.from, via: Edge::Flow, next })
            })
        } else {
            None
        };
        // Of links that arrive at the same time, the later one in this array wins, since it says more than the order of
        // the line.
        let last = [flow_link, wait_link, need_link].into_iter().fold(
            order_link.filter(|l| l.arrival <= start),
            |last, link| {
                let is_later = |l: &Link<'_>| l.arrival <= start && last.is_none_or(|last| last.arrival <= l.arrival);
                link.filter(is_later).or(last)
            },
        );
        last.unwrap_or(Link { arrival: start, via: Edge::Order, next: Target::Unknown })
    }

    /// The last need of a piece's slice, apart from the order of its line.
    fn find_last_need(&self, piece_id: PieceId) -> Option<Link<'d>> {
        let (piece, slice) = (self.piece(piece_id), self.deps.lines.slice(piece_id));
        match piece.activity {
            Activity::Op if slice.correlation == NO_NODE => {
                let ready = slice.start - self.deps.store.queue_wait_ns(slice);
                Some(Link { arrival: ready, via: Edge::Ready, next: Target::Root(ready) })
            }
            Activity::Op => {
                let op = self.deps.correlated(piece_id).filter(|by| *by != piece_id);
                let parked = op.and_then(|by| {
                    let wait = self.deps.parked(slice.correlation, self.deps.lines.slice(by).start, slice.start)?;
                    Some(Link { arrival: wait.end, via: Edge::Ready, next: Target::Parked(*wait, by) })
                });
                let op = op.map(|by| self.link_to_end(by, Edge::Ready));
                let received = self.find_received_value(slice.correlation, slice.start);
                op.into_iter().chain(received).chain(parked).max_by_key(|l| l.arrival)
            }
            Activity::Shard => {
                let op = self.deps.started_by(slice.node, slice.start)?;
                Some(Link { arrival: self.piece(op).start, via: Edge::Ready, next: Target::Start(op) })
            }
            activity if activity.is_device() => {
                let launch = self.deps.correlated(piece_id);
                let launched = launch.map(|l| self.piece(l).start.min(piece.start));
                let by = launch.zip(launched);
                let launch =
                    by.map(|(launch, arrival)| Link { arrival, via: Edge::Launch, next: Target::Start(launch) });
                let event = launched.and_then(|time| self.deps.awaited_by_stream(piece_id, time));
                let event = event.map(|work| self.link_to_end(work, Edge::Sync)).filter(|l| l.arrival <= piece.start);
                launch.into_iter().chain(event).max_by_key(|l| l.arrival)
            }
            _ => None,
        }
    }

    /// The link to the value that a receiver got last, by a time.
    fn find_received_value(&self, receiver: u32, time: i64) -> Option<Link<'d>> {
        let (arrival, transfer) = self.deps.received_by(receiver, time)?;
        Some(Link { arrival, via: Edge::Transfer, next: Target::Transfer(transfer, arrival) })
    }

    /// The link to what ended a thread's last wait between the work `order` and a piece.
    fn find_wait_end(&self, piece_id: PieceId, order: Option<u32>) -> Option<Link<'d>> {
        let line = self.deps.lines.line(piece_id.line);
        (order.map_or(0, |o| o + 1)..piece_id.piece).rev().find_map(|piece| {
            let wait = PieceId { piece, ..piece_id };
            match line.pieces[piece as usize].activity {
                Activity::Sync => {
                    let link = self.link_to_end(self.deps.awaited_by_host(wait)?, Edge::Sync);
                    (link.arrival > self.piece(wait).start).then_some(link)
                }
                Activity::Asleep => {
                    let waker = self.deps.thread(self.deps.lines.slice(wait).correlation)?;
                    let arrival = self.piece(wait).end;
                    let next = self.find_running(waker, arrival, Edge::Wake).filter(|_| waker != piece_id.line)?;
                    Some(Link { arrival, via: Edge::Wake, next })
                }
                _ => None,
            }
        })
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
            Target::Transfer(transfer, _) => self.find_send(transfer),
            _ => None,
        };
        piece.map(|piece_id| self.deps.lines.slice(piece_id).id)
    }

    /// The launch of a device's work that was still under way at `from`, when the device was free: its end, at most the
    /// work's start, and the launch's slice.
    fn find_late_launch(&self, piece_id: PieceId, from: i64) -> Option<(i64, SliceId)> {
        let (work, launch) = (self.deps.lines.slice(piece_id), self.deps.correlated(piece_id)?);
        let launch = self.deps.lines.slice(launch);
        let is_late = self.piece(piece_id).start == work.start && launch.end > from;
        is_late.then_some((launch.end.min(work.start), launch.id))
    }

    /// Explains a piece that ran until a time, back to its start or to the end of a wait inside it.
    fn explain_run(&mut self, piece_id: PieceId, until: i64, via: Edge, blocked: &mut PieceId) -> Target<'d> {
        let piece = self.piece(piece_id);
        if piece.activity.is_wait() {
            return self.explain_wait(piece_id, until);
        }
        // A flow may begin after the piece's end, where no slice was recorded.
        self.push_part(piece.end.min(until), PartKind::Untraced, piece_id.line, *blocked);
        if let Some(link) = self.find_wait_inside(piece_id, until) {
            self.push_part(link.arrival, PartKind::Runs(piece_id, via), piece_id.line, *blocked);
            *blocked = piece_id;
            return link.next;
        }
        self.push_part(piece.start, PartKind::Runs(piece_id, via), piece_id.line, *blocked);
        Target::Start(piece_id)
    }

    /// The link to what a piece of work waited for while it ran: a peer, a copy or a value.
    fn find_wait_inside(&self, piece_id: PieceId, until: i64) -> Option<Link<'d>> {
        let (piece, slice) = (self.piece(piece_id), self.deps.lines.slice(piece_id));
        let inside = |time: i64| time > piece.start && time <= until.min(piece.end);
        match piece.activity {
            Activity::Collective => {
                let last = self.deps.exchanges.last_peer(piece_id)?;
                let arrival = self.piece(last).start;
                inside(arrival).then_some(Link { arrival, via: Edge::Peer, next: Target::Start(last) })
            }
            Activity::Launch => {
                // Copies may block; a kernel that ends before its launch returns does not.
                let work =
                    self.deps.correlated(piece_id).filter(|work| self.piece(*work).activity == Activity::Copy)?;
                let link = self.link_to_end(work, Edge::Sync);
                inside(link.arrival).then_some(link)
            }
            Activity::Op => self.find_received_value(slice.node, until).filter(|link| inside(link.arrival)),
            _ => None,
        }
    }

    /// Explains a thread's wait until a time.
    fn explain_wait(&mut self, piece_id: PieceId, until: i64) -> Target<'d> {
        let after = PieceId { piece: piece_id.piece + 1, ..piece_id };
        let line = self.deps.lines.line(piece_id.line);
        // The wait and the next piece on the line have the same need, so the need of the next piece is searched.
        let order = line.work_before(piece_id.piece);
        let order_link = order.map(|piece| self.link_to_piece(PieceId { piece, ..piece_id }));
        let wait_link = self.find_wait_end(after, order).filter(|l| l.arrival <= until);
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
        let ended = |piece_id: &PieceId| self.piece(*piece_id).end.min(time);
        let work = piece
            .filter(|piece_id| self.piece(*piece_id).activity.is_work() && flow.is_none_or(|f| f.to < ended(piece_id)));
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

    /// The `_Send` of a transfer.
    fn find_send(&self, transfer: &Transfer) -> Option<PieceId> {
        self.deps.started_by(transfer.sender, transfer.sent.or(transfer.left)?)
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
        let send = self.find_send(transfer);
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
