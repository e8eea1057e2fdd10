//! Queues: rows that come in, wait, and go out.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::attempts::{Amount, Attempts, Refusal, Store};
use super::rows::{Row, stack, stack_padded, unstack};
use super::store::{Draw, Rows};
use crate::buffer::{AllocError, Allocator};
use crate::checkpoint::{CheckpointError, Checkpointed, Fields};
use crate::dtype::DType;
use crate::kernel::{Cancellation, KernelError, Registration};
use crate::memory;
use crate::shape::{PartialShape, Shape};
use crate::tensor::Tensor;

/// The order in which a queue gives its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueOrder {
    /// As they came.
    Fifo,
    /// As they came; batches of rows of different shapes are padded.
    Padding,
    /// At random, `min_after_dequeue` staying behind while the queue is open.
    Shuffled {
        /// How many stay.
        min_after_dequeue: usize,
        /// With `seed2`, fixes the order; both 0: a new one each time.
        seed: i64,
        /// See `seed`.
        seed2: i64,
    },
    /// By the first component, an i64, smallest first.
    Priority,
}

/// What a queue is made for. Nodes that share a queue must agree on it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueConfig {
    /// The op that makes such queues, for messages: `FIFOQueue`.
    pub kind: &'static str,
    /// Which row comes next.
    pub order: QueueOrder,
    /// The components' types.
    pub dtypes: Vec<DType>,
    /// The components' shapes; empty: any, and no batches can be taken out.
    pub shapes: Vec<PartialShape>,
    /// How many rows it holds at most.
    pub capacity: usize,
}

impl QueueConfig {
    /// Why another node's requested does not fit this queue, in words.
    pub fn difference(&self, requested: &QueueConfig) -> Option<String> {
        let differ = |what: &str, has: &dyn std::fmt::Debug, wants: &dyn std::fmt::Debug| {
            Some(format!("has {what} {has:?}, the node asks for {wants:?}"))
        };
        if self.kind != requested.kind {
            return differ("type", &self.kind, &requested.kind);
        }
        if self.capacity != requested.capacity {
            return differ("capacity", &self.capacity, &requested.capacity);
        }
        if self.order != requested.order {
            return differ("order", &self.order, &requested.order);
        }
        if self.dtypes != requested.dtypes {
            return differ("component types", &self.dtypes, &requested.dtypes);
        }
        if self.shapes != requested.shapes {
            return differ("component shapes", &self.shapes, &requested.shapes);
        }
        None
    }

    fn store(&self) -> Rows {
        match self.order {
            QueueOrder::Fifo | QueueOrder::Padding => Rows::Fifo(VecDeque::new()),
            QueueOrder::Shuffled { seed, seed2, .. } => {
                Rows::Shuffled(Vec::new(), Draw::new(seed as u64, seed2 as u64))
            }
            QueueOrder::Priority => Rows::ByPriority(Default::default(), 0),
        }
    }
}

/// A queue.
pub struct Queue {
    name: Arc<str>,
    config: QueueConfig,
    attempts: Attempts<Row, Rows, Registration>,
    /// What events of waits for rows, and of waits for room, say.
    sites: [OnceLock<events::SiteId>; 2],
}

/// Called with the result of a dequeue.
pub(crate) type Dequeued = Box<dyn FnOnce(Result<Vec<Row>, KernelError>) + Send>;
/// Called with the row that was looked at.
pub(crate) type Looked = Box<dyn FnOnce(Result<Row, KernelError>) + Send>;
/// Called with the result of an enqueue or a close.
pub type Finished = Box<dyn FnOnce(Result<(), KernelError>) + Send>;

impl Queue {
    /// An empty queue.
    pub fn new(name: Arc<str>, config: QueueConfig) -> Queue {
        let min_left = match config.order {
            QueueOrder::Shuffled { min_after_dequeue, .. } => min_after_dequeue,
            _ => 0,
        };
        let attempts = Attempts::new(config.store(), config.capacity, min_left);
        Queue { name, config, attempts, sites: Default::default() }
    }

    /// The call site of waits for rows.
    pub fn empty_site(&self) -> events::SiteId {
        *self.sites[0].get_or_init(|| events::site("parked", &format!("queue {} empty", self.name)))
    }

    /// The call site of waits for room.
    pub fn full_site(&self) -> events::SiteId {
        *self.sites[1].get_or_init(|| events::site("parked", &format!("queue {} full", self.name)))
    }

    /// What it was made for.
    pub fn config(&self) -> &QueueConfig {
        &self.config
    }

    /// How many rows it holds.
    pub fn len(&self) -> usize {
        self.attempts.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.attempts.is_closed()
    }

    /// How many enqueues (and closes) and how many dequeues wait.
    pub fn n_waiting(&self) -> (usize, usize) {
        self.attempts.n_waiting()
    }

    /// Puts rows in, waiting for room; checked by the caller ([`Queue::check`]).
    pub fn enqueue(self: &Arc<Self>, rows: Vec<Row>, cancellation: &Cancellation, done: Finished) {
        let this = Arc::clone(self);
        let id = self.attempts.enqueue(rows, Box::new(move |r| done(r.map_err(|e| this.error(&e)))));
        self.wait(id, cancellation);
    }

    /// Whether `n` rows more may be held, each with the room of its tensors' heads; what lies in buffers is counted there.
    ///
    /// # Errors
    /// The process has no memory for them.
    pub fn check_room(&self, n: usize) -> Result<(), AllocError> {
        memory::check((self.len() + n).saturating_mul(size_of::<Row>()))
    }

    /// Takes rows out, waiting for them.
    pub fn dequeue(self: &Arc<Self>, amount: Amount, cancellation: &Cancellation, done: Dequeued) {
        let this = Arc::clone(self);
        let id = self.attempts.dequeue(amount, Box::new(move |r| done(r.map_err(|e| this.error(&e)))));
        self.wait(id, cancellation);
    }

    /// Copies the row at this place of a queue that keeps its order, waiting for it.
    pub fn look(self: &Arc<Self>, place: usize, cancellation: &Cancellation, done: Looked) {
        let this = Arc::clone(self);
        let id = self.attempts.look(place, Box::new(move |r| done(r.map_err(|e| this.error(&e)))));
        self.wait(id, cancellation);
    }

    /// Drops all rows; who waits for room gets on.
    pub fn clear(&self) {
        self.attempts.replace(self.config.store(), self.is_closed());
    }

    /// Closes the queue: no rows come in any more. Pending enqueues come first, or are cancelled.
    pub fn close(self: &Arc<Self>, cancel_pending: bool, cancellation: &Cancellation, done: Finished) {
        let this = Arc::clone(self);
        let id = self.attempts.close(cancel_pending, Box::new(move |r| done(r.map_err(|e| this.error(&e)))));
        self.wait(id, cancellation);
    }

    /// Ends the attempt when the step does.
    fn wait(self: &Arc<Self>, id: u64, cancellation: &Cancellation) {
        let queue = Arc::downgrade(self);
        let at = Some((self.config.kind, Arc::clone(&self.name)));
        let registration = cancellation.register_at(at, move || {
            if let Some(queue) = queue.upgrade() {
                queue.attempts.cancel(id);
            }
        });
        self.attempts.keep(id, registration);
    }

    fn error(&self, refusal: &Refusal) -> KernelError {
        let (kind, name) = (self.config.kind, &self.name);
        match refusal {
            Refusal::Closed => KernelError::QueueClosed(format!("{kind} {name} is closed").into()),
            Refusal::AlreadyClosed => KernelError::QueueClosed(format!("{kind} {name} is already closed").into()),
            Refusal::EnqueueCancelled => {
                KernelError::QueueClosed(format!("{kind} {name} was closed, which cancelled the enqueue").into())
            }
            Refusal::TooFew { wanted, len } => {
                let (wanted, len) = (format!("requested {wanted}"), format!("current size {len}"));
                KernelError::OutOfRange(
                    format!("{kind} {name} is closed and has insufficient elements ({wanted}, {len})").into(),
                )
            }
            Refusal::StepEnded => KernelError::Cancelled,
        }
    }

    /// Checks the components of a row, or with `is_batch` of several rows: types, shapes, equal first dimensions.
    ///
    /// # Errors
    /// What does not fit.
    pub fn check(&self, components: &[Tensor], is_batch: bool) -> Result<(), KernelError> {
        let config = &self.config;
        if components.len() != config.dtypes.len() {
            let (expected, got) = (config.dtypes.len(), components.len());
            return Err(KernelError::invalid(format!("queue {} has {expected} components, got {got}", self.name)));
        }
        let mut n_rows = None;
        for (i, t) in components.iter().enumerate() {
            let bad = |expected: String| {
                let got = format!("{}{}", t.dtype(), t.shape());
                KernelError::invalid(format!("component {i} of queue {}: expected {expected}, got {got}", self.name))
            };
            if t.dtype() != config.dtypes[i] {
                return Err(bad(config.dtypes[i].to_string()));
            }
            let mut dims = t.dims();
            if is_batch {
                let (first, rest) = dims.split_first().ok_or_else(|| bad("a batch of rank 1 or more".into()))?;
                if *n_rows.get_or_insert(*first) != *first {
                    return Err(bad(format!("as many rows as component 0, {}", n_rows.unwrap_or_default())));
                }
                dims = rest;
            }
            if let Some(expected) = config.shapes.get(i)
                && !expected.admits(&Shape::new(dims))
            {
                return Err(bad(format!("{}{}{expected}", t.dtype(), if is_batch { " rows of " } else { "" })));
            }
        }
        Ok(())
    }

    /// The rows of a batch that was checked.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn split(&self, components: &[Tensor], allocator: &Allocator) -> Result<Vec<Row>, KernelError> {
        Ok(unstack(components, allocator)?)
    }

    /// A batch of rows: each component with a new first dimension.
    ///
    /// # Errors
    /// The queue's shapes are not known (but by padding), or there is no memory.
    pub fn batch(&self, rows: &[Row], allocator: &Allocator) -> Result<Row, KernelError> {
        self.check_batches()?;
        let mut out = Row::new();
        for (i, dtype) in self.config.dtypes.iter().enumerate() {
            let parts: Vec<&Tensor> = rows.iter().filter_map(|row| row.get(i)).collect();
            let min: Vec<usize> =
                self.config.shapes[i].dims().unwrap_or_default().iter().map(|d| d.unwrap_or(0)).collect();
            out.push(match self.config.order {
                QueueOrder::Padding => stack_padded(&parts, *dtype, &min)?,
                _ => stack(&parts, *dtype, &Shape::new(&min), allocator)?,
            });
        }
        Ok(out)
    }

    /// Whether batches can be taken out.
    ///
    /// # Errors
    /// The components' shapes are not specified.
    pub fn check_batches(&self) -> Result<(), KernelError> {
        let known = match self.config.order {
            QueueOrder::Padding => self.config.shapes.iter().all(|s| s.rank().is_some()),
            _ => self.config.shapes.iter().all(|s| s.known().is_some()),
        };
        if known && self.config.shapes.len() == self.config.dtypes.len() {
            return Ok(());
        }
        let kind = self.config.kind;
        Err(KernelError::invalid(format!(
            "{kind} {}: DequeueMany and DequeueUpTo require the components to have specified shapes",
            self.name
        )))
    }
}

#[linkme::distributed_slice(crate::checkpoint::CHECKPOINTED)]
static QUEUE: crate::checkpoint::AsCheckpointed =
    |object| object.downcast_ref::<Queue>().map(|q| q as &dyn Checkpointed);

/// Rows go to a checkpoint as one tensor per component where they have one shape, one by one otherwise.
impl Checkpointed for Queue {
    fn kind(&self) -> &'static str {
        "queue"
    }

    fn save(&self) -> Fields {
        self.attempts.inspect(|store, collected, is_closed| {
            // Those that a waiting dequeue has collected are in no step yet: they come first again.
            let all: Vec<&Row> = collected.into_iter().chain(store.in_order()).collect();
            let mut fields = Fields::new();
            fields.insert("closed".into(), Tensor::scalar(is_closed));
            fields.insert("n".into(), Tensor::scalar(all.len() as i64));
            if let Rows::Shuffled(_, draw) = store {
                fields.insert("draw".into(), Tensor::vector(&draw.state()));
            }
            for (i, dtype) in self.config.dtypes.iter().enumerate() {
                let parts: Vec<&Tensor> = all.iter().map(|row| &row[i]).collect();
                let Some(first) = parts.first() else { continue };
                let is_even = parts.iter().all(|t| t.shape() == first.shape());
                match stack(&parts, *dtype, first.shape(), Allocator::host()) {
                    Ok(stacked) if is_even => drop(fields.insert(format!("component{i}"), stacked)),
                    _ => fields.extend(parts.iter().enumerate().map(|(k, t)| (format!("row{k}.{i}"), (*t).clone()))),
                }
            }
            fields
        })
    }

    fn restore(&self, fields: &Fields) -> Result<(), CheckpointError> {
        let bad = |problem: &str| CheckpointError::state(&self.name, problem);
        let field = |name: &str| fields.get(name).ok_or_else(|| bad(&format!("the saved queue has no {name}")));
        let n = field("n")?.item::<i64>().ok().and_then(|n| usize::try_from(n).ok());
        let n =
            n.filter(|n| *n <= self.config.capacity).ok_or_else(|| bad("the saved rows do not fit its capacity"))?;
        let is_closed = field("closed")?.item::<bool>().map_err(|e| bad(&e.to_string()))?;
        let mut components = Vec::new();
        for i in 0..self.config.dtypes.len() {
            components.push(match fields.get(&format!("component{i}")) {
                Some(stacked) => {
                    let rows = unstack(std::slice::from_ref(stacked), Allocator::host());
                    rows.map_err(|e| bad(&e.to_string()))?.into_iter().flatten().collect::<Vec<_>>()
                }
                None => (0..n).map(|k| field(&format!("row{k}.{i}")).cloned()).collect::<Result<_, _>>()?,
            });
        }
        let mut store = self.config.store();
        if let Rows::Shuffled(_, draw) = &mut store {
            let state = field("draw")?.slice::<u32>().map_err(|e| bad(&e.to_string()))?;
            *draw = Draw::from_state(state).ok_or_else(|| bad("the saved state of its generator is not sound"))?;
        }
        for k in 0..n {
            let row: Option<Row> = components.iter().map(|c| c.get(k).cloned()).collect();
            let row = row.ok_or_else(|| bad("its components have different numbers of rows"))?;
            self.check(&row, false).map_err(|e| bad(&e.to_string()))?;
            store.push(row);
        }
        self.attempts.replace(store, is_closed);
        Ok(())
    }
}
