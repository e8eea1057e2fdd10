//! The backward walk: from a piece through its last-arriving predecessors, until a time is reached.
//!
//! At each piece the walk asks which of the piece's needs arrived last, continues at that need, and so on. The parts
//! that the walk appends follow each other from the end to the beginning without holes. A gap's stalls and a step's
//! critical path are both such walks.

use super::activity::Activity;
use super::deps::{AWAITS_QUEUE_ROOM, AWAITS_QUEUE_ROW, Arrow, Deps};
use super::lines::{LineKind, Piece, PieceId};
use super::step_index::LastAct;
use crate::stalls::cause::Cause;
use std::ops::Range;
use trace_model::{NO_NODE, SliceId, SliceRef, Transfer};

/// The longest time that a device takes between two pieces of work that were both queued before: HTA measures 1 to 5
/// µs.
const QUEUED_GAP_NS: i64 = 10_000;
/// Iterations without progress after which the walk stops: contradictory records may say that two ops made each other
/// ready.
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
    /// An arrow begins in the piece.
    Arrow,
    /// The piece woke the thread.
    Wake,
    /// The piece came last to a collective.
    Peer,
}

/// The kind of a part of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    Runs(PieceId, Edge),
    /// Nothing that was waited for ran: the cause, and the slice that was waited for or the wait itself.
    Idle(Cause, Option<SliceId>),
    /// Host code that left no slice.
    Untraced,
    /// The time before the step's first op, which needed nothing and was not ready yet.
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

/// What the walk explains next.
#[derive(Clone, Copy)]
enum Next<'a> {
    /// Why this piece did not start earlier.
    Start(PieceId),
    /// This piece's work until a time.
    Run(PieceId, i64, Edge),
    /// The way of a value, which unblocked its receiver at a time.
    Transfer(&'a Transfer, i64),
    /// An op's wait that held no thread, and the op.
    Parked(SliceRef, PieceId),
    /// An op that needed nothing but its step, and the time at which it was ready.
    Root(i64),
    /// The line that a message left, and when.
    Sent(u32, i64),
    /// The trace does not say.
    Unknown,
}

/// A need of a piece: when it arrived, by which edge, and where the walk continues.
#[derive(Clone, Copy)]
struct Link<'a> {
    arrival: i64,
    via: Edge,
    next: Next<'a>,
}

pub(crate) struct Walk<'d, 'a> {
    deps: &'d Deps<'a>,
    /// The time from which on everything is explained.
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
        at: PieceId,
        range: &Range<i64>,
        max_parts: usize,
        out: &'d mut Vec<WalkPart>,
    ) -> i64 {
        Walk { deps, cursor: range.end, limit: range.start, max_parts: out.len() + max_parts, out }
            .run(Next::Start(at), at)
    }

    /// Appends all parts of `range`, from its end to its beginning, where the step's last act ended with the range.
    pub(crate) fn explain_last_act(deps: &'d Deps<'a>, last: LastAct, range: &Range<i64>, out: &'d mut Vec<WalkPart>) {
        let walk = Walk { deps, cursor: range.end, limit: range.start, max_parts: usize::MAX, out };
        match last {
            LastAct::Piece(at) => walk.run(Next::Run(at, range.end, Edge::Order), at),
            LastAct::Wait(wait, op) => walk.run(Next::Parked(wait, op), op),
        };
    }

    fn run(mut self, first: Next<'d>, at: PieceId) -> i64 {
        let (mut next, mut blocked, mut standstill) = (first, at, 0);
        while self.cursor > self.limit && self.out.len() < self.max_parts {
            let before = self.cursor;
            next = match next {
                Next::Start(at) => {
                    blocked = at;
                    let link = self.find_last_arrival(at);
                    self.explain_delay(at, at.piece, &link);
                    link.next
                }
                Next::Run(at, until, via) => self.explain_run(at, until, via, &mut blocked),
                Next::Transfer(transfer, unblocked) => self.follow_transfer(transfer, unblocked, blocked),
                Next::Parked(wait, op) => {
                    self.push_part(
                        wait.start,
                        PartKind::Idle(parked_cause(&wait), Some(wait.id)),
                        blocked.line,
                        blocked,
                    );
                    self.link_to_end(op, Edge::Ready).next
                }
                Next::Root(ready) => {
                    self.push_part(ready, PartKind::Idle(Cause::Dispatch, None), blocked.line, blocked);
                    self.explain_step_begin(blocked)
                }
                Next::Sent(line, time) => self.explain_act_before(line, time, blocked),
                Next::Unknown => {
                    self.push_part(self.limit, PartKind::Idle(Cause::Unexplained, None), blocked.line, blocked);
                    break;
                }
            };
            standstill = if self.cursor < before { 0 } else { standstill + 1 };
            if standstill > MAX_STANDSTILL {
                next = Next::Unknown;
            }
        }
        self.cursor.max(self.limit)
    }

    /// Appends a part from `from` to the cursor and moves the cursor there; nothing where the cursor is earlier
    /// already.
    fn push_part(&mut self, from: i64, kind: PartKind, line: u32, blocked: PieceId) {
        let from = from.max(self.limit);
        if from < self.cursor {
            self.out.push(WalkPart { start: from, end: self.cursor, kind, line, blocked });
            self.cursor = from;
        }
    }

    fn piece(&self, at: PieceId) -> &'d Piece {
        self.deps.lines.piece(at)
    }

    /// Continues at the piece that ran on a line just before `time`.
    fn find_running(&self, line: u32, time: i64, via: Edge) -> Option<Next<'d>> {
        let piece = self.deps.lines.line(line).row_before(time)?;
        Some(Next::Run(PieceId { line, piece }, time, via))
    }

    /// The link to a piece that ran before on the same line.
    fn link_to_piece(&self, at: PieceId) -> Link<'d> {
        let end = self.piece(at).end;
        Link { arrival: end, via: Edge::Order, next: Next::Run(at, end, Edge::Order) }
    }

    /// The link to the end of a piece's slice.
    fn link_to_end(&self, at: PieceId, via: Edge) -> Link<'d> {
        let end = self.deps.lines.slice(at).end;
        let last = self.deps.lines.line(at.line).before_near(at.piece, end).map_or(at, |piece| PieceId { piece, ..at });
        // A slice of no length has no piece before its end.
        let last = if self.piece(at).start == end { at } else { last };
        Link { arrival: end, via, next: Next::Run(last, end, via) }
    }

    /// The need of a piece that arrived last: of its line, its slice, its thread's waits or an arrow.
    fn find_last_arrival(&self, at: PieceId) -> Link<'d> {
        let line = self.deps.lines.line(at.line);
        let start = self.piece(at).start;
        let order = line.work_before(at.piece);
        let ordered = order.map(|piece| self.link_to_piece(PieceId { piece, ..at }));
        let is_fresh = start == self.deps.lines.slice(at).start;
        let needed = if is_fresh { self.find_last_need(at) } else { None };
        let waited = self.find_wait_end(at, order);
        let arrived = if needed.is_none() {
            let after = ordered.map_or(i64::MIN, |o| o.arrival);
            self.deps.arrow(at.line, after, start).and_then(|arrow| {
                let next = self.find_running(arrow.from_line, arrow.from, Edge::Arrow)?;
                Some(Link { arrival: arrow.from, via: Edge::Arrow, next })
            })
        } else {
            None
        };
        // Of links that arrive at the same time the later one in this array wins: it says more than the order of the
        // line.
        let last = [arrived, waited, needed].into_iter().fold(ordered.filter(|l| l.arrival <= start), |last, link| {
            let is_later = |l: &Link<'_>| l.arrival <= start && last.is_none_or(|last| last.arrival <= l.arrival);
            link.filter(is_later).or(last)
        });
        last.unwrap_or(Link { arrival: start, via: Edge::Order, next: Next::Unknown })
    }

    /// The last need of a piece's slice, whatever its line did.
    fn find_last_need(&self, at: PieceId) -> Option<Link<'d>> {
        let (piece, slice) = (self.piece(at), self.deps.lines.slice(at));
        match piece.activity {
            Activity::Op if slice.correlation == NO_NODE => {
                let ready = slice.start - self.deps.store.queue_wait_ns(slice);
                Some(Link { arrival: ready, via: Edge::Ready, next: Next::Root(ready) })
            }
            Activity::Op => {
                let op = self.deps.correlated(at).filter(|by| *by != at);
                let parked = op.and_then(|by| {
                    let wait = self.deps.parked(slice.correlation, self.deps.lines.slice(by).start, slice.start)?;
                    Some(Link { arrival: wait.end, via: Edge::Ready, next: Next::Parked(*wait, by) })
                });
                let op = op.map(|by| self.link_to_end(by, Edge::Ready));
                let received = self.find_received_value(slice.correlation, slice.start);
                op.into_iter().chain(received).chain(parked).max_by_key(|l| l.arrival)
            }
            Activity::Shard => {
                let op = self.deps.started_by(slice.node, slice.start)?;
                Some(Link { arrival: self.piece(op).start, via: Edge::Ready, next: Next::Start(op) })
            }
            activity if activity.is_device() => {
                let launch = self.deps.correlated(at);
                let launched = launch.map(|l| self.piece(l).start.min(piece.start));
                let by = launch.zip(launched);
                let launch = by.map(|(launch, arrival)| Link { arrival, via: Edge::Launch, next: Next::Start(launch) });
                let event = launched.and_then(|time| self.deps.awaited_by_stream(at, time));
                let event = event.map(|work| self.link_to_end(work, Edge::Sync)).filter(|l| l.arrival <= piece.start);
                launch.into_iter().chain(event).max_by_key(|l| l.arrival)
            }
            _ => None,
        }
    }

    /// The link to the value that a receiver got last, by a time.
    fn find_received_value(&self, receiver: u32, time: i64) -> Option<Link<'d>> {
        let (arrival, transfer) = self.deps.received_by(receiver, time)?;
        Some(Link { arrival, via: Edge::Transfer, next: Next::Transfer(transfer, arrival) })
    }

    /// The link to what ended a thread's last wait between the work `order` and a piece.
    fn find_wait_end(&self, at: PieceId, order: Option<u32>) -> Option<Link<'d>> {
        let line = self.deps.lines.line(at.line);
        (order.map_or(0, |o| o + 1)..at.piece).rev().find_map(|piece| {
            let wait = PieceId { piece, ..at };
            match line.pieces[piece as usize].activity {
                Activity::Sync => {
                    let link = self.link_to_end(self.deps.awaited_by_host(wait)?, Edge::Sync);
                    (link.arrival > self.piece(wait).start).then_some(link)
                }
                Activity::Asleep => {
                    let waker = self.deps.thread(self.deps.lines.slice(wait).correlation)?;
                    let arrival = self.piece(wait).end;
                    let next = self.find_running(waker, arrival, Edge::Wake).filter(|_| waker != at.line)?;
                    Some(Link { arrival, via: Edge::Wake, next })
                }
                _ => None,
            }
        })
    }

    /// Explains the time from a need's arrival to a piece's start: by the line's waits before `end_piece`, else by the
    /// kind of edge.
    fn explain_delay(&mut self, at: PieceId, end_piece: u32, link: &Link<'d>) {
        let deps = self.deps;
        let line = deps.lines.line(at.line);
        let is_known = !matches!(link.next, Next::Unknown);
        let (from, to) = (link.arrival, self.cursor);
        if !is_known || from >= to {
            return;
        }
        let is_remote = matches!(link.next, Next::Run(by, ..) if deps.lines.line(by.line).process != line.process);
        let cause = match delay_cause(line.kind, link.via, to - from) {
            Some(Cause::Dispatch) if is_remote && link.via == Edge::Arrow => Some(Cause::Network),
            cause => cause,
        };
        if cause == Some(Cause::Unexplained)
            && let Some((launch_end, launch)) = self.find_late_launch(at, from)
        {
            let rest = if to - launch_end > QUEUED_GAP_NS { Cause::Unexplained } else { Cause::Launch };
            let culprit = Some(launch).filter(|_| rest == Cause::Launch);
            self.push_part(launch_end, PartKind::Idle(rest, culprit), at.line, at);
            self.push_part(from, PartKind::Idle(Cause::Launch, Some(launch)), at.line, at);
            return;
        }
        let culprit = self.find_culprit(link).filter(|_| cause.is_some());
        let idle = cause.map_or(PartKind::Untraced, |cause| PartKind::Idle(cause, culprit));
        for piece in (0..end_piece).rev() {
            let wait = &line.pieces[piece as usize];
            if wait.end <= from || !wait.activity.is_wait() {
                break;
            }
            self.push_part(wait.end.max(from), idle, at.line, at);
            let culprit = if wait.activity == Activity::Idle { culprit } else { Some(line.slice(wait).id) };
            let kind = PartKind::Idle(wait_cause(wait.activity, link.via), culprit);
            self.push_part(wait.start.max(from), kind, at.line, at);
        }
        self.push_part(from, idle, at.line, at);
    }

    /// The slice to blame for the delay after a link; `None` where the line's own order is the link.
    fn find_culprit(&self, link: &Link<'d>) -> Option<SliceId> {
        let piece = match link.next {
            Next::Start(launch) if link.via == Edge::Launch => Some(launch),
            Next::Run(piece, ..) if link.via != Edge::Order => Some(piece),
            Next::Transfer(transfer, _) => self.find_send(transfer),
            _ => None,
        };
        piece.map(|at| self.deps.lines.slice(at).id)
    }

    /// The launch of a device's work that was still under way at `from`, when the device was free: its end, at most the
    /// work's start, and the launch's slice.
    fn find_late_launch(&self, at: PieceId, from: i64) -> Option<(i64, SliceId)> {
        let (work, launch) = (self.deps.lines.slice(at), self.deps.correlated(at)?);
        let launch = self.deps.lines.slice(launch);
        let is_late = self.piece(at).start == work.start && launch.end > from;
        is_late.then_some((launch.end.min(work.start), launch.id))
    }

    /// Explains a piece that ran until a time, back to its start or to the end of a wait inside it.
    fn explain_run(&mut self, at: PieceId, until: i64, via: Edge, blocked: &mut PieceId) -> Next<'d> {
        let piece = self.piece(at);
        if piece.activity.is_wait() {
            return self.explain_wait(at, until);
        }
        // An arrow may begin after the piece's end, where no slice was recorded.
        self.push_part(piece.end.min(until), PartKind::Untraced, at.line, *blocked);
        if let Some(link) = self.find_wait_inside(at, until) {
            self.push_part(link.arrival, PartKind::Runs(at, via), at.line, *blocked);
            *blocked = at;
            return link.next;
        }
        self.push_part(piece.start, PartKind::Runs(at, via), at.line, *blocked);
        Next::Start(at)
    }

    /// The link to what a piece of work waited for while it ran: a peer, a copy or a value.
    fn find_wait_inside(&self, at: PieceId, until: i64) -> Option<Link<'d>> {
        let (piece, slice) = (self.piece(at), self.deps.lines.slice(at));
        let inside = |time: i64| time > piece.start && time <= until.min(piece.end);
        match piece.activity {
            Activity::Collective => {
                let last = self.deps.exchanges.last_peer(at)?;
                let arrival = self.piece(last).start;
                inside(arrival).then_some(Link { arrival, via: Edge::Peer, next: Next::Start(last) })
            }
            Activity::Launch => {
                // Copies may block; a kernel that ends before its launch returns does not.
                let work = self.deps.correlated(at).filter(|work| self.piece(*work).activity == Activity::Copy)?;
                let link = self.link_to_end(work, Edge::Sync);
                inside(link.arrival).then_some(link)
            }
            Activity::Op => self.find_received_value(slice.node, until).filter(|link| inside(link.arrival)),
            _ => None,
        }
    }

    /// Explains a thread's wait until a time.
    fn explain_wait(&mut self, at: PieceId, until: i64) -> Next<'d> {
        let after = PieceId { piece: at.piece + 1, ..at };
        let line = self.deps.lines.line(at.line);
        // The wait and the piece after it on the line waited for the same: the search is that of the piece after it.
        let order = line.work_before(at.piece);
        let ordered = order.map(|piece| self.link_to_piece(PieceId { piece, ..at }));
        let waited = self.find_wait_end(after, order).filter(|l| l.arrival <= until);
        let unknown = Link { arrival: until, via: Edge::Order, next: Next::Unknown };
        let link = waited.or(ordered).unwrap_or(unknown);
        self.explain_delay(at, after.piece, &link);
        link.next
    }

    /// Explains the begin of the step of `root`, an op that needed nothing, and what came before it: a message of
    /// another process, or the previous step of the same thread.
    fn explain_step_begin(&mut self, root: PieceId) -> Next<'d> {
        let deps = self.deps;
        let (process, slice) = (deps.lines.line(root.line).process, deps.lines.slice(root));
        let id = deps.store.step_id_of(slice);
        // The step at the op's start, not at the time at which the op was ready, which may be before the step's own
        // stamp.
        let row = id.and_then(|id| deps.steps.row(deps.store, process, id, slice.start));
        let step = row.and_then(|row| deps.store.steps().get(row as usize));
        let Some(step) = step.filter(|step| step.start > self.limit && step.start <= slice.start) else {
            self.push_part(self.limit, PartKind::Begin, root.line, root);
            return Next::Unknown;
        };
        self.push_part(step.start, PartKind::Idle(Cause::StepBegin, None), root.line, root);
        self.explain_act_before(step.slice.track, step.start, root)
    }

    /// Explains a line back to its last act before it began a step or sent a message at `time`: a message that arrived,
    /// a step that ended, or a piece of work.
    fn explain_act_before(&mut self, line: u32, time: i64, blocked: PieceId) -> Next<'d> {
        let deps = self.deps;
        let step = deps.steps.ended_by(deps.store, line, time);
        let arrow = deps.arrived_on(line, time);
        let piece = deps.lines.line(line).row_before(time).map(|piece| PieceId { line, piece });
        let ended = |at: &PieceId| self.piece(*at).end.min(time);
        let work = piece.filter(|at| self.piece(*at).activity.is_work() && arrow.is_none_or(|a| a.to < ended(at)));
        if let Some(arrow) = arrow.filter(|a| step.is_none_or(|(_, step)| step.end <= a.to) && work.is_none()) {
            return self.follow_message(arrow, blocked);
        }
        if let Some((row, step)) = step.filter(|(_, step)| work.as_ref().is_none_or(|at| ended(at) <= step.end)) {
            self.push_part(step.end, PartKind::Idle(Cause::HostLate, None), line, blocked);
            let Some((end, last)) = deps.steps.last_act(row) else { return Next::Unknown };
            self.push_part(end, PartKind::Idle(Cause::StepEnd, None), line, blocked);
            return match last {
                LastAct::Piece(at) => Next::Run(at, end, Edge::Order),
                LastAct::Wait(wait, op) => Next::Parked(wait, op),
            };
        }
        work.map_or(Next::Unknown, |at| Next::Run(at, time, Edge::Arrow))
    }

    /// Explains a message back to the time at which it left its sender.
    fn follow_message(&mut self, arrow: &Arrow, blocked: PieceId) -> Next<'d> {
        self.push_part(arrow.to, PartKind::Idle(Cause::Dispatch, None), arrow.line, blocked);
        self.push_part(arrow.from, PartKind::Idle(Cause::Network, None), arrow.from_line, blocked);
        Next::Sent(arrow.from_line, arrow.from)
    }

    /// The `_Send` of a transfer.
    fn find_send(&self, transfer: &Transfer) -> Option<PieceId> {
        self.deps.started_by(transfer.sender, transfer.sent.or(transfer.left)?)
    }

    /// Explains a value back to its `_Send`, or to the time at which it was enqueued or left where no `_Send` is
    /// recorded.
    fn follow_transfer(&mut self, transfer: &'d Transfer, unblocked: i64, blocked: PieceId) -> Next<'d> {
        let deps = self.deps;
        let line_of = |track: Option<trace_model::TrackId>| track.map_or(blocked.line, |t| t.0);
        let process_of = |line: u32| deps.lines.lines.get(line as usize).map(|l| l.process);
        let (from, to) = (line_of(transfer.from), line_of(transfer.to));
        let on_way = if process_of(from) == process_of(to) { Cause::Dma } else { Cause::Network };
        let arrived = transfer.arrived.unwrap_or(unblocked);
        let left = transfer.sent.or(transfer.left);
        let send = self.find_send(transfer);
        let sender = send.map(|at| deps.lines.slice(at).id);
        self.push_part(arrived, PartKind::Idle(Cause::Dispatch, sender), to, blocked);
        let Some(left) = left else { return Next::Unknown };
        self.push_part(left, PartKind::Idle(on_way, sender), from, blocked);
        match (send, transfer.enqueued) {
            (Some(send), _) => Next::Start(send),
            (None, Some(enqueued)) => {
                self.push_part(enqueued, PartKind::Idle(Cause::Dispatch, None), from, blocked);
                Next::Unknown
            }
            (None, None) => Next::Unknown,
        }
    }
}

/// The cause of a piece's start `late_ns` after its last need arrived, where no wait of its thread explains it; `None`:
/// host code that left no slice.
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
