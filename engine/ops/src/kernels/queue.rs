//! Kernels of queues. Those that may wait are asynchronous: they hold no thread meanwhile.

use std::sync::Arc;

use super::resource::{self, Key};
use super::support::{Built, cheap, cpu_any};
use super::{
    ASYNC_KERNEL_TABLES, AsyncKernel, AsyncKernelDef, Completion, KERNEL_TABLES, KernelContext, KernelDef, KernelError,
    Outputs,
};
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node};
use engine_core::queues::{Amount, Queue, QueueConfig, QueueOrder};
use engine_core::shape::PartialShape;
use engine_core::tensor::Tensor;
use engine_core::trace::Awaits;

#[linkme::distributed_slice(KERNEL_TABLES)]
static QUEUES: &[KernelDef] = &[
    cpu_any("FIFOQueue", make),
    cpu_any("FIFOQueueV2", make),
    cpu_any("PaddingFIFOQueue", make),
    cpu_any("PaddingFIFOQueueV2", make),
    cpu_any("RandomShuffleQueue", make),
    cpu_any("RandomShuffleQueueV2", make),
    cpu_any("PriorityQueue", make),
    cpu_any("PriorityQueueV2", make),
    cpu_any("QueueIsClosed", |_| cheap(is_closed)),
    cpu_any("QueueIsClosedV2", |_| cheap(is_closed)),
    cpu_any("QueueSize", |_| cheap(size)),
    cpu_any("QueueSizeV2", |_| cheap(size)),
];

#[linkme::distributed_slice(ASYNC_KERNEL_TABLES)]
static WAITING: &[AsyncKernelDef] = &[
    wait("QueueEnqueue", |n| made(n, Enqueue { is_batch: false })),
    wait("QueueEnqueueV2", |n| made(n, Enqueue { is_batch: false })),
    wait("QueueEnqueueMany", |n| made(n, Enqueue { is_batch: true })),
    wait("QueueEnqueueManyV2", |n| made(n, Enqueue { is_batch: true })),
    wait("QueueDequeue", |n| made(n, Dequeue { amount: None })),
    wait("QueueDequeueV2", |n| made(n, Dequeue { amount: None })),
    wait("QueueDequeueMany", |n| made(n, Dequeue { amount: Some(Amount::Exactly) })),
    wait("QueueDequeueManyV2", |n| made(n, Dequeue { amount: Some(Amount::Exactly) })),
    wait("QueueDequeueUpTo", |n| made(n, Dequeue { amount: Some(Amount::UpTo) })),
    wait("QueueDequeueUpToV2", |n| made(n, Dequeue { amount: Some(Amount::UpTo) })),
    wait("QueueClose", close),
    wait("QueueCloseV2", close),
];

/// An asynchronous kernel that was made.
type Waiting = Result<Box<dyn AsyncKernel>, KernelError>;

const fn wait(op: &'static str, build: fn(&Node) -> Waiting) -> AsyncKernelDef {
    AsyncKernelDef { op, device: "CPU", dtypes: ("", &[]), build }
}

fn made(node: &Node, kernel: impl AsyncKernel + 'static) -> Waiting {
    if *node.int("timeout_ms")? != -1 {
        return Err(KernelError::invalid("timeout_ms is not supported: give the step a timeout"));
    }
    Ok(Box::new(kernel))
}

fn config(node: &Node) -> Result<QueueConfig, KernelError> {
    let kind = node.op.name.strip_suffix("V2").unwrap_or(node.op.name);
    let (mut dtypes, mut shapes) = match (node.attrs.get("component_types"), node.attrs.get("shapes")) {
        (Some(Attr::ListType(t)), Some(Attr::ListShape(s))) => (t.clone(), s.clone()),
        (Some(Attr::ListType(t)), _) => (t.clone(), Vec::new()),
        _ => (Vec::new(), Vec::new()),
    };
    if !shapes.is_empty() && shapes.len() != dtypes.len() {
        return Err(KernelError::invalid(format!("{} shapes for {} component types", shapes.len(), dtypes.len())));
    }
    let is_padding = kind == "PaddingFIFOQueue";
    if let Some(shape) = shapes.iter().find(|s| s.rank().is_none() || (!is_padding && s.known().is_none())) {
        return Err(KernelError::invalid(format!("component shape {shape}: all dimensions must be known")));
    }
    // -1 (any negative number) stands for no limit; TensorFlow's is that of an int32.
    let capacity = usize::try_from(*node.int("capacity")?).unwrap_or(i32::MAX as usize);
    let order = match kind {
        "RandomShuffleQueue" => {
            let min = *node.int("min_after_dequeue")?;
            let min_after_dequeue = usize::try_from(min)
                .map_err(|_| KernelError::invalid(format!("min_after_dequeue {min} must be >= 0")))?;
            if capacity <= min_after_dequeue {
                let text = format!("capacity {capacity} must be larger than min_after_dequeue {min_after_dequeue}");
                return Err(KernelError::invalid(text));
            }
            QueueOrder::Shuffled { min_after_dequeue, seed: *node.int("seed")?, seed2: *node.int("seed2")? }
        }
        "PriorityQueue" => {
            dtypes.insert(0, DType::I64);
            if dtypes.len() == 1 || !shapes.is_empty() {
                shapes.insert(0, PartialShape::scalar());
            }
            QueueOrder::Priority
        }
        "PaddingFIFOQueue" => {
            if shapes.is_empty() {
                return Err(KernelError::invalid("a PaddingFIFOQueue needs the shapes of its components"));
            }
            QueueOrder::Padding
        }
        _ => QueueOrder::Fifo,
    };
    if dtypes.is_empty() {
        return Err(KernelError::invalid("a queue needs component types"));
    }
    Ok(QueueConfig { kind, order, dtypes, shapes, capacity })
}

fn make(node: &Node) -> Built {
    let config = config(node)?;
    let key = Key::of(node)?;
    cheap(move |c| {
        let handle = key.object(c, || Queue::new(key.name.clone(), config.clone()))?;
        let queue = resource::object::<Queue>(&handle)?;
        if let Some(difference) = queue.config().difference(&config) {
            return Err(KernelError::invalid(format!("shared queue {} {difference}", key.name)));
        }
        c.set(0, handle);
        Ok(())
    })
}

fn queue(c: &KernelContext<'_>) -> Result<Arc<Queue>, KernelError> {
    resource::object::<Queue>(c.input(0)?)
}

fn is_closed(c: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let is = queue(c)?.is_closed();
    c.set(0, Tensor::scalar(is));
    Ok(())
}

fn size(c: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let n = queue(c)?.len();
    c.set(0, Tensor::scalar(i32::try_from(n).unwrap_or(i32::MAX)));
    Ok(())
}

struct Enqueue {
    is_batch: bool,
}

impl AsyncKernel for Enqueue {
    fn start(&self, ctx: &mut KernelContext<'_>, mut done: Completion) {
        let prepared = queue(ctx).and_then(|queue| {
            let components = ctx.inputs[1..].iter_mut().map(Option::take).collect::<Option<Vec<Tensor>>>();
            let components = components.ok_or(KernelError::MissingInput(1))?;
            queue.check(&components, self.is_batch)?;
            let rows = match self.is_batch {
                true => queue.split(&components, ctx.allocator)?,
                false => vec![components.into()],
            };
            queue.check_room(rows.len())?;
            Ok((queue, rows))
        });
        match prepared {
            Err(error) => done.finish(Err(error)),
            // As TensorFlow: nothing to put in is fine in a closed queue too.
            Ok((_, rows)) if rows.is_empty() => done.finish(Ok(Outputs::new())),
            Ok((queue, rows)) => {
                done.waits(queue.full_site(), Awaits::Room);
                let finished = Box::new(move |r: Result<(), KernelError>| done.finish(r.map(|()| Outputs::new())));
                queue.enqueue(rows, &ctx.cancellation(), finished);
            }
        }
    }
}

struct Dequeue {
    /// `None`: one row, without a batch dimension.
    amount: Option<fn(usize) -> Amount>,
}

impl Dequeue {
    fn prepare(&self, ctx: &KernelContext<'_>) -> Result<(Arc<Queue>, Amount), KernelError> {
        let queue = queue(ctx)?;
        let Some(amount) = self.amount else { return Ok((queue, Amount::Exactly(1))) };
        queue.check_batches()?;
        let n = ctx.item::<i32>(1)?;
        let n = usize::try_from(n).map_err(|_| KernelError::invalid(format!("cannot dequeue {n} elements")))?;
        // More would never be there at once, and the batch must fit into memory.
        Ok((queue, amount(n)))
    }
}

impl AsyncKernel for Dequeue {
    fn start(&self, ctx: &mut KernelContext<'_>, mut done: Completion) {
        let (queue, amount) = match self.prepare(ctx) {
            Ok(prepared) => prepared,
            Err(error) => return done.finish(Err(error)),
        };
        let is_batch = self.amount.is_some();
        let allocator = ctx.allocator.clone();
        let batch = move |queue: &Queue, mut rows: Vec<engine_core::queues::Row>| match is_batch {
            true => queue.batch(&rows, &allocator),
            false => rows.pop().ok_or(KernelError::Abandoned),
        };
        if matches!(amount, Amount::Exactly(0) | Amount::UpTo(0)) {
            let empty = batch(&queue, Vec::new());
            return done.finish(empty.map(|row| row.into_iter().map(Some).collect()));
        }
        done.waits(queue.empty_site(), Awaits::Row);
        let of = Arc::clone(&queue);
        let finished = move |rows: Result<Vec<_>, KernelError>| {
            let outputs = rows.and_then(|rows| batch(&of, rows));
            done.finish(outputs.map(|row| row.into_iter().map(Some).collect()));
        };
        queue.dequeue(amount, &ctx.cancellation(), Box::new(finished));
    }
}

struct Close {
    cancel_pending: bool,
}

fn close(node: &Node) -> Waiting {
    Ok(Box::new(Close { cancel_pending: *node.flag("cancel_pending_enqueues")? }))
}

impl AsyncKernel for Close {
    fn start(&self, ctx: &mut KernelContext<'_>, mut done: Completion) {
        match queue(ctx) {
            Err(error) => done.finish(Err(error)),
            Ok(queue) => {
                // Behind the enqueues that wait.
                done.waits(queue.full_site(), Awaits::Room);
                let finished = Box::new(move |r: Result<(), KernelError>| done.finish(r.map(|()| Outputs::new())));
                queue.close(self.cancel_pending, &ctx.cancellation(), finished);
            }
        }
    }
}
