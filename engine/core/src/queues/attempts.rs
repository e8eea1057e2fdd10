//! Who waits at a queue, and in which order they get on: the part of a queue that knows nothing of tensors.
//!
//! Each enqueue, dequeue and close is an *attempt*; those of one side wait in the order in which they came. After every
//! change, attempts of both sides are tried in turn until nothing moves. The callback of an attempt that is
//! over is called outside the lock. The rules are TensorFlow's (core/kernels/queue_base.cc, fifo_queue.cc), but for one:
//! what a cancelled dequeue had collected goes back to the queue, there it is lost.

use std::collections::VecDeque;

use super::sync::Mutex;

/// Where the rows of a queue lie.
pub(crate) trait Store<R> {
    fn len(&self) -> usize;
    fn push(&mut self, row: R);
    /// The row that stands at this place of the order, where the order is known.
    fn get(&self, place: usize) -> Option<&R>;
    /// The row that is next. Called only where there is one.
    fn pop(&mut self) -> Option<R>;
    /// Puts back what was taken, in the order in which it was taken.
    fn give_back(&mut self, rows: Vec<R>);
}

/// Why an attempt ended without success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The queue is closed to further rows.
    Closed,
    /// It was closed before.
    AlreadyClosed,
    /// It is closed and has fewer rows than the dequeue needs.
    TooFew { wanted: usize, len: usize },
    /// The queue was closed with its pending enqueues cancelled.
    EnqueueCancelled,
    /// The step that waits ended otherwise.
    StepEnded,
}

/// Called once, with the result of an attempt.
pub type AttemptCallback<T> = Box<dyn FnOnce(Result<T, Refusal>) + Send>;

/// How many rows a dequeue takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many, or none.
    Exactly(usize),
    /// So many; of a closed queue what is left, but at least one.
    UpTo(usize),
}

enum Incoming<R> {
    Rows { rows: VecDeque<R>, done: AttemptCallback<()> },
    Close { done: AttemptCallback<()> },
}

struct Outgoing<R> {
    amount: Amount,
    missing: usize,
    got: Vec<R>,
    done: AttemptCallback<Vec<R>>,
}

/// Somebody who wants to see a row, and holds up nobody.
struct Looking<R> {
    place: usize,
    done: AttemptCallback<R>,
}

/// An attempt that waits, with what is to be dropped when it is over.
struct Waiting<A, K> {
    id: u64,
    attempt: A,
    kept: Option<K>,
}

struct State<R, S, K> {
    store: S,
    is_closed: bool,
    next_id: u64,
    incoming: VecDeque<Waiting<Incoming<R>, K>>,
    outgoing: VecDeque<Waiting<Outgoing<R>, K>>,
    looking: Vec<Waiting<Looking<R>, K>>,
}

/// The rows of a queue and those who wait for rows or room. `K`: what an attempt keeps while it waits.
pub(crate) struct Attempts<R, S, K> {
    capacity: usize,
    /// Rows that stay in an open queue.
    min_left: usize,
    state: Mutex<State<R, S, K>>,
}

/// A callback that is due, and what it kept.
struct Due<K> {
    call: Box<dyn FnOnce() + Send>,
    kept: Option<K>,
}

/// How far an attempt got.
enum Progress {
    None,
    Some,
    Over,
}

impl<R: Clone + Send + 'static, S: Store<R>, K> Attempts<R, S, K> {
    pub fn new(store: S, capacity: usize, min_left: usize) -> Self {
        let (incoming, outgoing, looking) = (VecDeque::new(), VecDeque::new(), Vec::new());
        let state = State { store, is_closed: false, next_id: 0, incoming, outgoing, looking };
        Attempts { capacity, min_left, state: Mutex::new(state) }
    }

    /// Puts rows in, in parts where room comes in parts. The id is for [`Attempts::cancel`] and [`Attempts::keep`].
    pub fn enqueue(&self, rows: Vec<R>, done: AttemptCallback<()>) -> u64 {
        self.with(|state| state.add_incoming(Incoming::Rows { rows: rows.into(), done }))
    }

    pub fn dequeue(&self, amount: Amount, done: AttemptCallback<Vec<R>>) -> u64 {
        let (Amount::Exactly(missing) | Amount::UpTo(missing)) = amount;
        self.with(|state| {
            let id = state.id();
            let attempt = Outgoing { amount, missing, got: Vec::new(), done };
            state.outgoing.push_back(Waiting { id, attempt, kept: None });
            id
        })
    }

    /// Gives a copy of the row at this place as soon as there is one; it stays.
    pub fn look(&self, place: usize, done: AttemptCallback<R>) -> u64 {
        self.with(|state| {
            let id = state.id();
            state.looking.push(Waiting { id, attempt: Looking { place, done }, kept: None });
            id
        })
    }

    /// Closes, once those who came before have put their rows in; or at once, cancelling those.
    pub fn close(&self, cancel_pending: bool, done: AttemptCallback<()>) -> u64 {
        if !cancel_pending {
            return self.with(|state| state.add_incoming(Incoming::Close { done }));
        }
        let (cancelled, id) = {
            let mut state = self.state.lock();
            state.is_closed = true;
            (std::mem::take(&mut state.incoming), state.id())
        };
        for waiting in cancelled {
            let (Incoming::Rows { done, .. } | Incoming::Close { done }) = waiting.attempt;
            done(Err(Refusal::EnqueueCancelled));
        }
        done(Ok(()));
        self.with(|_| id)
    }

    /// Ends an attempt that still waits; what a dequeue had collected goes back.
    pub fn cancel(&self, id: u64) {
        let mut due = Vec::new();
        {
            let mut state = self.state.lock();
            if let Some(i) = state.incoming.iter().position(|w| w.id == id)
                && let Some(waiting) = state.incoming.remove(i)
            {
                let (Incoming::Rows { done, .. } | Incoming::Close { done }) = waiting.attempt;
                due.push(Due { call: Box::new(move || done(Err(Refusal::StepEnded))), kept: waiting.kept });
            }
            if let Some(i) = state.outgoing.iter().position(|w| w.id == id)
                && let Some(waiting) = state.outgoing.remove(i)
            {
                let Outgoing { got, done, .. } = waiting.attempt;
                state.store.give_back(got);
                due.push(Due { call: Box::new(move || done(Err(Refusal::StepEnded))), kept: waiting.kept });
            }
            if let Some(i) = state.looking.iter().position(|w| w.id == id) {
                let Waiting { attempt: Looking { done, .. }, kept, .. } = state.looking.remove(i);
                due.push(Due { call: Box::new(move || done(Err(Refusal::StepEnded))), kept });
            }
        }
        run(due);
        self.with(|_| ());
    }

    /// Has the attempt keep `kept` until it is over; drops it at once where it already is.
    pub fn keep(&self, id: u64, kept: K) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let incoming = state.incoming.iter_mut().map(|w| (w.id, &mut w.kept));
        let outgoing = state.outgoing.iter_mut().map(|w| (w.id, &mut w.kept));
        let looking = state.looking.iter_mut().map(|w| (w.id, &mut w.kept));
        // The latest is the likeliest.
        match incoming.rev().chain(outgoing.rev()).chain(looking.rev()).find(|(i, _)| *i == id) {
            Some((_, slot)) => *slot = Some(kept),
            None => drop(kept),
        }
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    pub fn len(&self) -> usize {
        self.state.lock().store.len()
    }

    /// How many enqueues and dequeues wait.
    pub fn n_waiting(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.incoming.len(), state.outgoing.len())
    }

    /// Looks at the rows, with those that waiting dequeues have collected, in the order in which they were taken.
    pub fn inspect<T>(&self, f: impl FnOnce(&S, Vec<&R>, bool) -> T) -> T {
        let state = self.state.lock();
        let collected = state.outgoing.iter().flat_map(|w| &w.attempt.got).collect();
        f(&state.store, collected, state.is_closed)
    }

    /// Replaces the rows.
    pub fn replace(&self, store: S, is_closed: bool) {
        self.with(|state| {
            state.store = store;
            state.is_closed = is_closed;
        });
    }

    /// Changes the state, then lets everybody get on who can.
    fn with<T>(&self, change: impl FnOnce(&mut State<R, S, K>) -> T) -> T {
        let mut due = Vec::new();
        let result = {
            let mut state = self.state.lock();
            let result = change(&mut state);
            while state.try_incoming(self.capacity, &mut due) | state.try_outgoing(self.min_left, &mut due) {}
            state.try_looking(&mut due);
            result
        };
        run(due);
        result
    }
}

fn run<K>(due: Vec<Due<K>>) {
    for Due { call, kept } in due {
        call();
        drop(kept);
    }
}

impl<R: Clone + Send + 'static, S: Store<R>, K> State<R, S, K> {
    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn add_incoming(&mut self, attempt: Incoming<R>) -> u64 {
        let id = self.id();
        self.incoming.push_back(Waiting { id, attempt, kept: None });
        id
    }

    fn try_incoming(&mut self, capacity: usize, due: &mut Vec<Due<K>>) -> bool {
        let mut moved = false;
        while let Some(Waiting { id, attempt, kept }) = self.incoming.pop_front() {
            let (done, result) = match attempt {
                Incoming::Close { done } if self.is_closed => (done, Err(Refusal::AlreadyClosed)),
                Incoming::Close { done } => {
                    self.is_closed = true;
                    (done, Ok(()))
                }
                Incoming::Rows { done, .. } if self.is_closed => (done, Err(Refusal::Closed)),
                Incoming::Rows { mut rows, done } => {
                    while self.store.len() < capacity
                        && let Some(row) = rows.pop_front()
                    {
                        self.store.push(row);
                        moved = true;
                    }
                    if !rows.is_empty() {
                        self.incoming.push_front(Waiting { id, attempt: Incoming::Rows { rows, done }, kept });
                        return moved;
                    }
                    (done, Ok(()))
                }
            };
            moved = true;
            due.push(Due { call: Box::new(move || done(result)), kept });
        }
        moved
    }

    fn try_outgoing(&mut self, min_left: usize, due: &mut Vec<Due<K>>) -> bool {
        let mut moved = false;
        while let Some(mut waiting) = self.outgoing.pop_front() {
            let (progress, refusal) = self.take_rows(&mut waiting.attempt, min_left);
            moved |= !matches!(progress, Progress::None);
            if !matches!(progress, Progress::Over) {
                self.outgoing.push_front(waiting);
                return moved;
            }
            let Outgoing { got, done, .. } = waiting.attempt;
            let result = refusal.map_or(Ok(got), Err);
            due.push(Due { call: Box::new(move || done(result)), kept: waiting.kept });
        }
        moved
    }

    fn try_looking(&mut self, due: &mut Vec<Due<K>>) {
        let mut i = 0;
        while let Some(waiting) = self.looking.get(i) {
            let Some(row) = self.store.get(waiting.attempt.place).cloned() else {
                i += 1;
                continue;
            };
            let Waiting { attempt: Looking { done, .. }, kept, .. } = self.looking.remove(i);
            due.push(Due { call: Box::new(move || done(Ok(row))), kept });
        }
    }

    fn take_rows(&mut self, attempt: &mut Outgoing<R>, min_left: usize) -> (Progress, Option<Refusal>) {
        if self.is_closed && self.store.len() < attempt.missing {
            // Fewer will ever come than are missing: back with those it has, others may need less.
            self.store.give_back(std::mem::take(&mut attempt.got));
            let (Amount::Exactly(wanted) | Amount::UpTo(wanted)) = attempt.amount;
            let len = self.store.len();
            match attempt.amount {
                Amount::UpTo(_) if len > 0 => attempt.missing = len,
                // Someone who came before the close may still bring some.
                Amount::UpTo(_) if !self.incoming.is_empty() => {
                    attempt.missing = wanted;
                    return (Progress::Some, None);
                }
                _ => return (Progress::Over, Some(Refusal::TooFew { wanted, len })),
            }
        }
        let min_left = if self.is_closed { 0 } else { min_left };
        let mut progress = Progress::None;
        while attempt.missing > 0
            && self.store.len() > min_left
            && let Some(row) = self.store.pop()
        {
            attempt.got.push(row);
            attempt.missing -= 1;
            progress = Progress::Some;
        }
        if attempt.missing == 0 { (Progress::Over, None) } else { (progress, None) }
    }
}
