//! The backward walk: from a piece through its last-arriving predecessors, until a time is reached.
//!
//! Everything waited for what ran just before: at each piece the walk asks which of the things that it needed
//! came last, goes there, and so on. The parts that it gives follow each other from the end to the beginning without
//! holes. A gap's stalls and a step's critical path are both such walks.

use super::activity::Activity;
use super::deps::{Arrow, Deps};
use super::line::{LineKind, Piece, PieceId};
use super::stepped::Last;
use crate::stalls::cause::Cause;
use std::ops::Range;
use trace_model::{NO_NODE, SliceId, SliceRef, Transfer};

/// A device takes no longer than this between two pieces of work that were both given to it before: HTA finds 1 to 5 us.
const QUEUED_GAP_NS: i64 = 10_000;
/// Steps of the walk that get nowhere: records that contradict each other may say that two ops made each other ready.
const MAX_STANDSTILL: u32 = 256;

/// By what kind of edge the walk came to a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// It ran before on the same line.
    Order,
    /// Its end made the op ready.
    Ready,
    /// It launched the work.
    Launch,
    /// A stream or a host waited for it.
    Sync,
    /// It sent the value.
    Transfer,
    /// An arrow begins there.
    Arrow,
    /// It woke the thread.
    Wake,
    /// It came last to a collective.
    Peer,
}

/// The kind of a part of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    Runs(PieceId, Edge),
    /// Nothing ran that was waited for: why, and what was waited for, or the wait.
    Idle(Cause, Option<SliceId>),
    /// Code of a host that left no slice.
    Untraced,
    /// It needed nothing, and was not ready yet: before the step's first op.
    Begin,
}

/// Why a wait that held no thread was one, by its `arg` (docs/formats/trace-format.md).
pub(crate) fn parked_cause(wait: &SliceRef) -> Cause {
    match wait.arg {
        1 => Cause::QueueEmpty,
        2 => Cause::QueueFull,
        _ => Cause::OtherStep,
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkPart {
    pub start: i64,
    pub end: i64,
    pub what: PartKind,
    /// The line that ran, or should have.
    pub line: u32,
    /// The piece whose start is explained.
    pub blocked: PieceId,
}

/// The next question of the walk.
#[derive(Clone, Copy)]
enum Next<'a> {
    /// Why this piece did not start before.
    Start(PieceId),
    /// This piece's work until a time.
    Run(PieceId, i64, Edge),
    /// How this value came.
    Transfer(&'a Transfer, i64),
    /// An op's wait that held no thread, and the op.
    Parked(SliceRef, PieceId),
    /// It was ready at this time, and needed nothing but its step.
    Root(i64),
    /// A message left this line at this time.
    Sent(u32, i64),
    /// The trace lacks it.
    Unknown,
}

/// The last thing that a piece needed: when it was there, and what it was.
#[derive(Clone, Copy)]
struct Link<'a> {
    arrival: i64,
    via: Edge,
    next: Next<'a>,
}

pub(crate) struct Walk<'d, 'a> {
    deps: &'d Deps<'a>,
    /// Everything from here on is explained.
    cursor: i64,
    /// How far to explain.
    limit: i64,
    out: &'d mut Vec<WalkPart>,
    most: usize,
}

impl<'d, 'a> Walk<'d, 'a> {
    /// Appends the parts of `range`, from its end to its beginning, which explain why a piece did not start before the
    /// range's end. After `most` parts the rest is left to the caller: gives how far it came.
    pub(crate) fn start(
        deps: &'d Deps<'a>,
        at: PieceId,
        range: &Range<i64>,
        most: usize,
        out: &'d mut Vec<WalkPart>,
    ) -> i64 {
        Walk { deps, cursor: range.end, limit: range.start, most: out.len() + most, out }.go(Next::Start(at), at)
    }

    /// The same without a limit, where this ended with the range.
    pub(crate) fn last(deps: &'d Deps<'a>, last: Last, range: &Range<i64>, out: &'d mut Vec<WalkPart>) {
        let walk = Walk { deps, cursor: range.end, limit: range.start, most: usize::MAX, out };
        match last {
            Last::Ran(at) => walk.go(Next::Run(at, range.end, Edge::Order), at),
            Last::Waited(wait, op) => walk.go(Next::Parked(wait, op), op),
        };
    }

    fn go(mut self, first: Next<'d>, at: PieceId) -> i64 {
        let (mut next, mut blocked, mut standstill) = (first, at, 0);
        while self.cursor > self.limit && self.out.len() < self.most {
            let before = self.cursor;
            next = match next {
                Next::Start(at) => {
                    blocked = at;
                    let link = self.last_arrival(at);
                    self.late(at, at.piece, &link);
                    link.next
                }
                Next::Run(at, until, via) => self.ran(at, until, via, &mut blocked),
                Next::Transfer(transfer, unblocked) => self.transferred(transfer, unblocked, blocked),
                Next::Parked(wait, op) => {
                    self.part(wait.start, PartKind::Idle(parked_cause(&wait), Some(wait.id)), blocked.line, blocked);
                    self.end_of(op, Edge::Ready).next
                }
                Next::Root(ready) => {
                    self.part(ready, PartKind::Idle(Cause::Dispatch, None), blocked.line, blocked);
                    self.began(blocked)
                }
                Next::Sent(line, time) => self.sent(line, time, blocked),
                Next::Unknown => {
                    self.part(self.limit, PartKind::Idle(Cause::Unexplained, None), blocked.line, blocked);
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

    /// Explains back to `from`, as far as it is not explained yet.
    fn part(&mut self, from: i64, what: PartKind, line: u32, blocked: PieceId) {
        let from = from.max(self.limit);
        if from < self.cursor {
            self.out.push(WalkPart { start: from, end: self.cursor, what, line, blocked });
            self.cursor = from;
        }
    }

    fn piece(&self, at: PieceId) -> &'d Piece {
        self.deps.lines.piece(at)
    }

    /// The piece that ran on a line just before `time`.
    fn running(&self, line: u32, time: i64, via: Edge) -> Option<Next<'d>> {
        let piece = self.deps.lines.lines[line as usize].before(time)?;
        Some(Next::Run(PieceId { line, piece }, time, via))
    }

    /// A piece that ran before on the same line, as something that was waited for.
    fn ran_before(&self, at: PieceId) -> Link<'d> {
        let end = self.piece(at).end;
        Link { arrival: end, via: Edge::Order, next: Next::Run(at, end, Edge::Order) }
    }

    /// The end of a slice, as something that was waited for.
    fn end_of(&self, at: PieceId, via: Edge) -> Link<'d> {
        let end = self.deps.lines.slice(at).end;
        let last = self.deps.lines.lines[at.line as usize]
            .before_near(at.piece, end)
            .map_or(at, |piece| PieceId { piece, ..at });
        // A slice of no length has no piece before its end.
        let last = if self.piece(at).start == end { at } else { last };
        Link { arrival: end, via, next: Next::Run(last, end, via) }
    }

    fn last_arrival(&self, at: PieceId) -> Link<'d> {
        let line = &self.deps.lines.lines[at.line as usize];
        let start = self.piece(at).start;
        let order = line.work_before(at.piece);
        let ordered = order.map(|piece| self.ran_before(PieceId { piece, ..at }));
        let is_fresh = start == self.deps.lines.slice(at).start;
        let needed = if is_fresh { self.needed(at) } else { None };
        let waited = self.waited(at, order);
        let arrived = if needed.is_none() {
            let after = ordered.map_or(i64::MIN, |o| o.arrival);
            self.deps.arrow(at.line, after, start).and_then(|arrow| {
                let next = self.running(arrow.from_line, arrow.from, Edge::Arrow)?;
                Some(Link { arrival: arrow.from, via: Edge::Arrow, next })
            })
        } else {
            None
        };
        // Of equals the later of these.
        let last = [arrived, waited, needed].into_iter().fold(ordered.filter(|l| l.arrival <= start), |last, link| {
            let is_later = |l: &Link<'_>| l.arrival <= start && last.is_none_or(|last| last.arrival <= l.arrival);
            link.filter(is_later).or(last)
        });
        last.unwrap_or(Link { arrival: start, via: Edge::Order, next: Next::Unknown })
    }

    /// The last need of a piece's slice itself, not of its line.
    fn needed(&self, at: PieceId) -> Option<Link<'d>> {
        let (piece, slice) = (self.piece(at), self.deps.lines.slice(at));
        match piece.doing {
            Activity::Op if slice.correlation == NO_NODE => {
                let ready = slice.start - self.deps.store.queue_wait_ns(slice);
                Some(Link { arrival: ready, via: Edge::Ready, next: Next::Root(ready) })
            }
            Activity::Op => {
                let op = self.deps.linked(at).filter(|by| *by != at);
                let parked = op.and_then(|by| {
                    let wait = self.deps.parked(slice.correlation, self.deps.lines.slice(by).start, slice.start)?;
                    Some(Link { arrival: wait.end, via: Edge::Ready, next: Next::Parked(*wait, by) })
                });
                let op = op.map(|by| self.end_of(by, Edge::Ready));
                let received = self.received(slice.correlation, slice.start);
                op.into_iter().chain(received).chain(parked).max_by_key(|l| l.arrival)
            }
            Activity::Shard => {
                let op = self.deps.started_by(slice.node, slice.start)?;
                Some(Link { arrival: self.piece(op).start, via: Edge::Ready, next: Next::Start(op) })
            }
            doing if doing.is_device() => {
                let launch = self.deps.linked(at);
                let launched = launch.map(|l| self.piece(l).start.min(piece.start));
                let by = launch.zip(launched);
                let launch = by.map(|(launch, arrival)| Link { arrival, via: Edge::Launch, next: Next::Start(launch) });
                let event = launched.and_then(|time| self.deps.awaited_by_stream(at, time));
                let event = event.map(|work| self.end_of(work, Edge::Sync)).filter(|l| l.arrival <= piece.start);
                launch.into_iter().chain(event).max_by_key(|l| l.arrival)
            }
            _ => None,
        }
    }

    /// The value that came to a receiver last, by a time.
    fn received(&self, receiver: u32, time: i64) -> Option<Link<'d>> {
        let (arrival, transfer) = self.deps.received_by(receiver, time)?;
        Some(Link { arrival, via: Edge::Transfer, next: Next::Transfer(transfer, arrival) })
    }

    /// The end of a thread's wait between its last work and a piece.
    fn waited(&self, at: PieceId, order: Option<u32>) -> Option<Link<'d>> {
        let line = &self.deps.lines.lines[at.line as usize];
        (order.map_or(0, |o| o + 1)..at.piece).rev().find_map(|piece| {
            let wait = PieceId { piece, ..at };
            match line.pieces[piece as usize].doing {
                Activity::Sync => {
                    let link = self.end_of(self.deps.awaited_by_host(wait)?, Edge::Sync);
                    (link.arrival > self.piece(wait).start).then_some(link)
                }
                Activity::Asleep => {
                    let waker = self.deps.thread(self.deps.lines.slice(wait).correlation)?;
                    let arrival = self.piece(wait).end;
                    let next = self.running(waker, arrival, Edge::Wake).filter(|_| waker != at.line)?;
                    Some(Link { arrival, via: Edge::Wake, next })
                }
                _ => None,
            }
        })
    }

    /// Explains from the arrival of what a piece needed to its start; the line's waits before `upto` say why it was late.
    fn late(&mut self, at: PieceId, upto: u32, link: &Link<'d>) {
        let deps = self.deps;
        let line = &deps.lines.lines[at.line as usize];
        let is_known = !matches!(link.next, Next::Unknown);
        let (from, to) = (link.arrival, self.cursor);
        if !is_known || from >= to {
            return;
        }
        let is_remote =
            matches!(link.next, Next::Run(by, ..) if deps.lines.lines[by.line as usize].process != line.process);
        let base = match base(line.kind, link.via, to - from) {
            Some(Cause::Dispatch) if is_remote && link.via == Edge::Arrow => Some(Cause::Network),
            base => base,
        };
        if base == Some(Cause::Unexplained)
            && let Some((given, launch)) = self.given_late(at, from)
        {
            let rest = if to - given > QUEUED_GAP_NS { Cause::Unexplained } else { Cause::Launch };
            let culprit = Some(launch).filter(|_| rest == Cause::Launch);
            self.part(given, PartKind::Idle(rest, culprit), at.line, at);
            self.part(from, PartKind::Idle(Cause::Launch, Some(launch)), at.line, at);
            return;
        }
        let culprit = match link.next {
            Next::Start(by) if link.via == Edge::Launch => Some(deps.lines.slice(by).id),
            Next::Run(by, ..) if link.via != Edge::Order => Some(deps.lines.slice(by).id),
            Next::Transfer(transfer, _) => self.sender(transfer).map(|send| deps.lines.slice(send).id),
            _ => None,
        };
        let culprit = culprit.filter(|_| base.is_some());
        let idle = base.map_or(PartKind::Untraced, |cause| PartKind::Idle(cause, culprit));
        for piece in (0..upto).rev() {
            let p = &line.pieces[piece as usize];
            if p.end <= from || !p.doing.is_wait() {
                break;
            }
            self.part(p.end.max(from), idle, at.line, at);
            let why = match p.doing {
                Activity::Sync => Cause::Synchronisation,
                Activity::Idle => Cause::WakeUp,
                Activity::Asleep if matches!(link.via, Edge::Wake | Edge::Ready | Edge::Transfer) => Cause::WakeUp,
                _ => Cause::ScheduledOut,
            };
            let culprit = if p.doing == Activity::Idle { culprit } else { Some(line.slice(p).id) };
            self.part(p.start.max(from), PartKind::Idle(why, culprit), at.line, at);
        }
        self.part(from, idle, at.line, at);
    }

    /// A call that began before a device's work could have begun, at `from`, and was still giving it when it could: until when, and which.
    fn given_late(&self, at: PieceId, from: i64) -> Option<(i64, SliceId)> {
        let (work, launch) = (self.deps.lines.slice(at), self.deps.linked(at)?);
        let launch = self.deps.lines.slice(launch);
        let is_late = self.piece(at).start == work.start && launch.end > from;
        is_late.then_some((launch.end.min(work.start), launch.id))
    }

    /// A piece ran until a time: explains back to its start.
    fn ran(&mut self, at: PieceId, until: i64, via: Edge, blocked: &mut PieceId) -> Next<'d> {
        let piece = self.piece(at);
        if piece.doing.is_wait() {
            return self.waits(at, until);
        }
        // An arrow may begin where nothing was recorded.
        self.part(piece.end.min(until), PartKind::Untraced, at.line, *blocked);
        if let Some(cause) = self.waited_inside(at, until) {
            self.part(cause.arrival, PartKind::Runs(at, via), at.line, *blocked);
            *blocked = at;
            return cause.next;
        }
        self.part(piece.start, PartKind::Runs(at, via), at.line, *blocked);
        Next::Start(at)
    }

    /// The end of a wait of a piece of work while it ran: for a peer, a copy, a value.
    fn waited_inside(&self, at: PieceId, until: i64) -> Option<Link<'d>> {
        let (piece, slice) = (self.piece(at), self.deps.lines.slice(at));
        let inside = |time: i64| time > piece.start && time <= until.min(piece.end);
        match piece.doing {
            Activity::Collective => {
                let last = self.deps.exchanges.last_peer(at)?;
                let arrival = self.piece(last).start;
                inside(arrival).then_some(Link { arrival, via: Edge::Peer, next: Next::Start(last) })
            }
            Activity::Launch => {
                // Copies may block; a kernel that ends before its launch returns does not.
                let work = self.deps.linked(at).filter(|work| self.piece(*work).doing == Activity::Copy)?;
                let link = self.end_of(work, Edge::Sync);
                inside(link.arrival).then_some(link)
            }
            Activity::Op => self.received(slice.node, until).filter(|link| inside(link.arrival)),
            _ => None,
        }
    }

    /// A thread waited until a time: what for.
    fn waits(&mut self, at: PieceId, until: i64) -> Next<'d> {
        let after = PieceId { piece: at.piece + 1, ..at };
        let line = &self.deps.lines.lines[at.line as usize];
        // As if what comes next on the line had been waited for: it waited for the same.
        let order = line.work_before(at.piece);
        let ordered = order.map(|piece| self.ran_before(PieceId { piece, ..at }));
        let waited = self.waited(after, order).filter(|l| l.arrival <= until);
        let unknown = Link { arrival: until, via: Edge::Order, next: Next::Unknown };
        let link = waited.or(ordered).unwrap_or(unknown);
        self.late(at, after.piece, &link);
        link.next
    }

    /// The step of an op that needed nothing began: with a message of another process, else after the step before on the same thread.
    fn began(&mut self, root: PieceId) -> Next<'d> {
        let deps = self.deps;
        let (process, slice) = (deps.lines.lines[root.line as usize].process, deps.lines.slice(root));
        let id = deps.store.step_id_of(slice);
        // Not when it was ready: that may be before the clock was read for its step.
        let row = id.and_then(|id| deps.stepped.row(deps.store, process, id, slice.start));
        let step = row.and_then(|row| deps.store.steps().get(row as usize));
        let Some(step) = step.filter(|step| step.start > self.limit && step.start <= slice.start) else {
            self.part(self.limit, PartKind::Begin, root.line, root);
            return Next::Unknown;
        };
        self.part(step.start, PartKind::Idle(Cause::StepBegin, None), root.line, root);
        self.sent(step.slice.track, step.start, root)
    }

    /// The last act of a line before a time at which it began a step or sent a message: explains back to that.
    fn sent(&mut self, line: u32, time: i64, blocked: PieceId) -> Next<'d> {
        let deps = self.deps;
        let step = deps.stepped.ended_by(deps.store, line, time);
        let arrow = deps.arrived_on(line, time);
        let piece = deps.lines.lines[line as usize].before(time).map(|piece| PieceId { line, piece });
        let ended = |at: &PieceId| self.piece(*at).end.min(time);
        let work = piece.filter(|at| self.piece(*at).doing.is_work() && arrow.is_none_or(|a| a.to < ended(at)));
        if let Some(arrow) = arrow.filter(|a| step.is_none_or(|(_, step)| step.end <= a.to) && work.is_none()) {
            return self.came(arrow, blocked);
        }
        if let Some((row, step)) = step.filter(|(_, step)| work.as_ref().is_none_or(|at| ended(at) <= step.end)) {
            self.part(step.end, PartKind::Idle(Cause::HostLate, None), line, blocked);
            let Some((end, last)) = deps.stepped.last(row) else { return Next::Unknown };
            self.part(end, PartKind::Idle(Cause::StepEnd, None), line, blocked);
            return match last {
                Last::Ran(at) => Next::Run(at, end, Edge::Order),
                Last::Waited(wait, op) => Next::Parked(wait, op),
            };
        }
        work.map_or(Next::Unknown, |at| Next::Run(at, time, Edge::Arrow))
    }

    /// A message came: explains back to where it left.
    fn came(&mut self, arrow: &Arrow, blocked: PieceId) -> Next<'d> {
        self.part(arrow.to, PartKind::Idle(Cause::Dispatch, None), arrow.line, blocked);
        self.part(arrow.from, PartKind::Idle(Cause::Network, None), arrow.from_line, blocked);
        Next::Sent(arrow.from_line, arrow.from)
    }

    /// The `_Send` of a transfer.
    fn sender(&self, transfer: &Transfer) -> Option<PieceId> {
        self.deps.started_by(transfer.sender, transfer.sent.or(transfer.left)?)
    }

    /// A value came to its receiver: explains back to where it left.
    fn transferred(&mut self, transfer: &'d Transfer, unblocked: i64, blocked: PieceId) -> Next<'d> {
        let deps = self.deps;
        let line_of = |track: Option<trace_model::TrackId>| track.map_or(blocked.line, |t| t.0);
        let process_of = |line: u32| deps.lines.lines.get(line as usize).map(|l| l.process);
        let (from, to) = (line_of(transfer.from), line_of(transfer.to));
        let on_way = if process_of(from) == process_of(to) { Cause::Dma } else { Cause::Network };
        let arrived = transfer.arrived.unwrap_or(unblocked);
        let left = transfer.sent.or(transfer.left);
        let send = self.sender(transfer);
        let sender = send.map(|at| deps.lines.slice(at).id);
        self.part(arrived, PartKind::Idle(Cause::Dispatch, sender), to, blocked);
        let Some(left) = left else { return Next::Unknown };
        self.part(left, PartKind::Idle(on_way, sender), from, blocked);
        match (send, transfer.enqueued) {
            (Some(send), _) => Next::Start(send),
            (None, Some(enqueued)) => {
                self.part(enqueued, PartKind::Idle(Cause::Dispatch, None), from, blocked);
                Next::Unknown
            }
            (None, None) => Next::Unknown,
        }
    }
}

/// Why a piece of a line started later than the last thing that it needed, where no wait of its thread says; `None`: code of a host
/// that left no slice.
fn base(kind: LineKind, via: Edge, late_ns: i64) -> Option<Cause> {
    match (kind, via) {
        (_, Edge::Launch) => Some(Cause::Launch),
        (LineKind::Host, Edge::Order | Edge::Sync | Edge::Wake) => None,
        (_, Edge::Sync) => Some(Cause::Synchronisation),
        (LineKind::Device, Edge::Order) if late_ns > QUEUED_GAP_NS => Some(Cause::Unexplained),
        (LineKind::Device, _) => Some(Cause::Launch),
        (LineKind::Host | LineKind::Worker, _) => Some(Cause::Dispatch),
    }
}
