//! The needs of a piece: what must have happened before it began, or before it could go on.
//!
//! [`super::walk`] follows the need that arrived last; [`super::replay`] holds to all of them.

use super::activity::Activity;
use super::deps::Deps;
use super::lines::{Piece, PieceId};
use trace_model::{NO_NODE, SliceRef, Transfer};

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
    /// The piece handed its thread's work to another thread.
    Call,
}

/// The event by which a need arrived.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
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
pub(crate) struct Link<'a> {
    pub arrival: i64,
    pub via: Edge,
    pub next: Target<'a>,
}

/// The needs of a piece that had arrived when it began.
pub(crate) struct StartNeeds<'a> {
    /// The work before it on its line.
    pub order: Option<Link<'a>>,
    /// What ended the thread's last wait since that work.
    pub wait: Option<Link<'a>>,
    /// A flow, gradients, and up to three needs of its slice.
    pub others: [Option<Link<'a>>; 5],
}

/// Finds needs in the dependency index.
#[derive(Clone, Copy)]
pub(crate) struct Needs<'d, 'a>(pub &'d Deps<'a>);

impl<'d> Needs<'d, '_> {
    fn piece(self, piece_id: PieceId) -> &'d Piece {
        self.0.lines.piece(piece_id)
    }

    /// Continues at the piece that ran on a line just before `time`.
    pub(crate) fn find_running(self, line: u32, time: i64, via: Edge) -> Option<Target<'d>> {
        let piece = self.0.lines.line(line).row_before(time)?;
        Some(Target::Run(PieceId { line, piece }, time, via))
    }

    /// The link to a piece that ran before on the same line.
    pub(crate) fn link_to_piece(self, piece_id: PieceId) -> Link<'d> {
        self.link_to_end_of_piece(piece_id, Edge::Order)
    }

    pub(crate) fn link_to_end_of_piece(self, piece_id: PieceId, via: Edge) -> Link<'d> {
        let end = self.piece(piece_id).end;
        Link { arrival: end, via, next: Target::Run(piece_id, end, via) }
    }

    /// The link to the end of a piece's slice.
    pub(crate) fn link_to_end(self, piece_id: PieceId, via: Edge) -> Link<'d> {
        let end = self.0.lines.slice(piece_id).end;
        let last = self
            .0
            .lines
            .line(piece_id.line)
            .row_before_near(piece_id.piece, end)
            .map_or(piece_id, |piece| PieceId { piece, ..piece_id });
        // A slice without a duration has no piece before its end.
        let last = if self.piece(piece_id).start == end { piece_id } else { last };
        Link { arrival: end, via, next: Target::Run(last, end, via) }
    }

    /// The need of a piece that arrived last.
    pub(crate) fn find_last_arrival(self, piece_id: PieceId) -> Link<'d> {
        let start = self.piece(piece_id).start;
        // Of links that arrive at the same time, the later one wins, since it says more than the order of the line.
        let needs = self.of_start(piece_id);
        let [flow, gradients, others @ ..] = needs.others;
        let last = [needs.order, flow, gradients, needs.wait]
            .into_iter()
            .chain(others)
            .flatten()
            .reduce(|last, link| if last.arrival <= link.arrival { link } else { last });
        last.unwrap_or(Link { arrival: start, via: Edge::Order, next: Target::Unknown })
    }

    pub(crate) fn of_start(self, piece_id: PieceId) -> StartNeeds<'d> {
        let line = self.0.lines.line(piece_id.line);
        let start = self.piece(piece_id).start;
        let order = line.work_before(piece_id.piece);
        let order_link = order.map(|piece| self.link_to_piece(PieceId { piece, ..piece_id }));
        let idle_since = order_link.map_or(i64::MIN, |o| o.arrival);
        let is_fresh = start == self.0.lines.slice(piece_id).start;
        let of_slice = if is_fresh { self.of_slice(piece_id, idle_since) } else { [None; 3] };
        let flow_link = if of_slice.iter().all(Option::is_none) {
            self.0.last_begun_flow(piece_id.line, idle_since, start).and_then(|flow| {
                let next = self.find_running(flow.from_line, flow.from, Edge::Flow)?;
                Some(Link { arrival: flow.from, via: Edge::Flow, next })
            })
        } else {
            None
        };
        let gradients_link = self.find_gradients(piece_id.line, idle_since, start);
        let arrived = |link: Option<Link<'d>>| link.filter(|link| link.arrival <= start);
        let [first, second, third] = of_slice;
        StartNeeds {
            order: arrived(order_link),
            wait: arrived(self.find_wait_end(piece_id, order)),
            others: [flow_link, gradients_link, first, second, third].map(arrived),
        }
    }

    /// The link between a thread that asks for gradients and the thread that computes them, where a line of either that
    /// was idle since `idle_since` works again at `time`.
    fn find_gradients(self, line: u32, idle_since: i64, time: i64) -> Option<Link<'d>> {
        let (lines, autograd) = (&self.0.lines, &self.0.autograd);
        if let Some(last) = autograd.awaited_by(lines, line, idle_since, time) {
            return Some(self.link_to_end_of_piece(last, Edge::Sync));
        }
        let caller = autograd.called_by(lines, line, idle_since, time)?;
        let arrival = self.piece(caller).end.min(time);
        Some(Link { arrival, via: Edge::Call, next: Target::Run(caller, arrival, Edge::Call) })
    }

    /// The needs of a piece's slice, apart from the order of its line, on which nothing ran since `idle_since`.
    fn of_slice(self, piece_id: PieceId, idle_since: i64) -> [Option<Link<'d>>; 3] {
        let (piece, slice) = (self.piece(piece_id), self.0.lines.slice(piece_id));
        match piece.activity {
            Activity::Op if slice.correlation == NO_NODE => {
                let ready = slice.start - self.0.store.queue_wait_ns(slice);
                [Some(Link { arrival: ready, via: Edge::Ready, next: Target::Root(ready) }), None, None]
            }
            Activity::Op => {
                let op = self.0.correlated(piece_id).filter(|by| *by != piece_id);
                let parked = op.and_then(|by| {
                    let wait = self.0.parked(slice.correlation, self.0.lines.slice(by).start, slice.start)?;
                    Some(Link { arrival: wait.end, via: Edge::Ready, next: Target::Parked(*wait, by) })
                });
                let op = op.map(|by| self.link_to_end(by, Edge::Ready));
                [op, self.find_received_value(slice.correlation, slice.start), parked]
            }
            Activity::Shard => {
                let start_of = |op| Link { arrival: self.piece(op).start, via: Edge::Ready, next: Target::Start(op) };
                [self.0.started_by(slice.node, slice.start).map(start_of), None, None]
            }
            activity if activity.is_device() => {
                let launch = self.0.correlated(piece_id);
                let launched = launch.map(|l| self.piece(l).start.min(piece.start));
                let by = launch.zip(launched);
                let launch =
                    by.map(|(launch, arrival)| Link { arrival, via: Edge::Launch, next: Target::Start(launch) });
                let event = launched.and_then(|time| self.0.awaited_by_stream(piece_id, time));
                let launched = launched.unwrap_or(i64::MIN);
                let event = event.or_else(|| self.0.presumably_awaited(piece_id, idle_since, launched));
                [launch, event.map(|work| self.link_to_end(work, Edge::Sync)), None]
            }
            _ => [None; 3],
        }
    }

    /// The link to the value that a receiver got last, by a time.
    fn find_received_value(self, receiver: u32, time: i64) -> Option<Link<'d>> {
        let (arrival, transfer) = self.0.received_by(receiver, time)?;
        Some(Link { arrival, via: Edge::Transfer, next: Target::Transfer(transfer, arrival) })
    }

    /// The link to what ended a thread's last wait between the work `order` and a piece.
    pub(crate) fn find_wait_end(self, piece_id: PieceId, order: Option<u32>) -> Option<Link<'d>> {
        let line = self.0.lines.line(piece_id.line);
        (order.map_or(0, |o| o + 1)..piece_id.piece).rev().find_map(|piece| {
            let wait = PieceId { piece, ..piece_id };
            match line.pieces[piece as usize].activity {
                Activity::Sync => {
                    let link = self.link_to_end(self.0.awaited_by_host(wait)?, Edge::Sync);
                    (link.arrival > self.piece(wait).start).then_some(link)
                }
                Activity::Asleep => {
                    let waker = self.0.thread(self.0.lines.slice(wait).correlation)?;
                    let arrival = self.piece(wait).end;
                    let next = self.find_running(waker, arrival, Edge::Wake).filter(|_| waker != piece_id.line)?;
                    Some(Link { arrival, via: Edge::Wake, next })
                }
                _ => None,
            }
        })
    }

    /// The link to what a piece of work waited for while it ran: a peer, a copy or a value.
    pub(crate) fn find_wait_inside(self, piece_id: PieceId, until: i64) -> Option<Link<'d>> {
        let (piece, slice) = (self.piece(piece_id), self.0.lines.slice(piece_id));
        let inside = |time: i64| time > piece.start && time <= until.min(piece.end);
        match piece.activity {
            Activity::Collective => {
                let last = self.0.exchanges.last_peer(piece_id)?;
                let arrival = self.piece(last).start;
                inside(arrival).then_some(Link { arrival, via: Edge::Peer, next: Target::Start(last) })
            }
            Activity::Launch => {
                // Copies may block; a kernel that ends before its launch returns does not.
                let work = self.0.correlated(piece_id).filter(|work| self.piece(*work).activity == Activity::Copy)?;
                let link = self.link_to_end(work, Edge::Sync);
                inside(link.arrival).then_some(link)
            }
            Activity::Op => self.find_received_value(slice.node, until).filter(|link| inside(link.arrival)),
            Activity::Host | Activity::Enclosing => {
                let last = self.0.autograd.awaited_by(&self.0.lines, piece_id.line, piece.start, until)?;
                Some(self.link_to_end_of_piece(last, Edge::Sync)).filter(|link| inside(link.arrival))
            }
            _ => None,
        }
    }

    /// The `_Send` of a transfer.
    pub(crate) fn find_send(self, transfer: &Transfer) -> Option<PieceId> {
        self.0.started_by(transfer.sender, transfer.sent.or(transfer.left)?)
    }
}
