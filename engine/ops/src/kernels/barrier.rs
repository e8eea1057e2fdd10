//! Kernels of barriers: values that belong together by a key come in one component at a time, and are taken out once all
//! are there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::resource::{self, Key};
use super::support::{Built, Computed, cheap, cpu_any, kernel};
use super::{
    ASYNC_KERNEL_TABLES, AsyncKernel, AsyncKernelDef, Completion, KERNEL_TABLES, KernelContext, KernelDef, KernelError,
};
use engine_core::buffer::Allocator;
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node};
use engine_core::queues::{Amount, Queue, QueueConfig, QueueOrder, Row};
use engine_core::shape::PartialShape;
use engine_core::tensor::Tensor;
use engine_core::trace::Awaits;

#[linkme::distributed_slice(KERNEL_TABLES)]
static BARRIER: &[KernelDef] = &[
    cpu_any("Barrier", make),
    cpu_any("BarrierInsertMany", insert_many),
    cpu_any("BarrierClose", close),
    cpu_any("BarrierReadySize", |_| cheap(|c| count(c, |barrier| barrier.ready.len()))),
    cpu_any("BarrierIncompleteSize", |_| cheap(|c| count(c, |barrier| barrier.state.lock().incomplete.len()))),
];

#[linkme::distributed_slice(ASYNC_KERNEL_TABLES)]
static TAKE: &[AsyncKernelDef] =
    &[AsyncKernelDef { op: "BarrierTakeMany", device: "CPU", dtypes: ("", &[]), build: take_many }];

/// The components of a key that came so far.
struct Incomplete {
    /// Which key came first, second, ...
    index: i64,
    components: Vec<Option<Tensor>>,
}

struct State {
    incomplete: BTreeMap<Vec<u8>, Incomplete>,
    next_index: i64,
    /// No new keys come in.
    is_closed: bool,
}

/// A barrier of a container. What is complete is in a queue: (index, key, components), by index.
struct Barrier {
    name: Arc<str>,
    dtypes: Vec<DType>,
    state: Mutex<State>,
    ready: Arc<Queue>,
}

fn make(node: &Node) -> Built {
    let (dtypes, key) = (node.dtypes("component_types")?.clone(), Key::of(node)?);
    let listed = match node.attrs.get("shapes") {
        Some(Attr::ListShape(shapes)) if !shapes.is_empty() => shapes.clone(),
        _ => vec![PartialShape::unknown(); dtypes.len()],
    };
    if listed.len() != dtypes.len() || dtypes.is_empty() {
        return Err(KernelError::invalid(format!("{} shapes for {} component types", listed.len(), dtypes.len())));
    }
    if *node.int("capacity")? != -1 {
        return Err(KernelError::invalid("a barrier's capacity must be -1: it is not limited"));
    }
    let types = [&[DType::I64, DType::String], dtypes.as_slice()].concat();
    let shapes = [&[PartialShape::scalar(), PartialShape::scalar()], listed.as_slice()].concat();
    let config = QueueConfig {
        kind: "Barrier",
        order: QueueOrder::Priority,
        dtypes: types,
        shapes,
        capacity: i32::MAX as usize,
    };
    cheap(move |c| {
        let state = State { incomplete: BTreeMap::new(), next_index: i64::MIN, is_closed: false };
        let name = Arc::clone(&key.name);
        let ready = Arc::new(Queue::new(Arc::clone(&name), config.clone()));
        let handle = key.object(c, || Barrier { name, dtypes: dtypes.clone(), state: Mutex::new(state), ready })?;
        let shared = resource::object::<Barrier>(&handle)?;
        if shared.ready.config() != &config {
            return Err(KernelError::invalid(format!("shared barrier {} is of other components", key.name)));
        }
        c.set(0, handle);
        Ok(())
    })
}

fn barrier(c: &KernelContext<'_>) -> Result<Arc<Barrier>, KernelError> {
    resource::object::<Barrier>(c.input(0)?)
}

fn count(c: &mut KernelContext<'_>, of: impl Fn(&Barrier) -> usize) -> Computed {
    let n = of(&*barrier(c)?);
    c.set(0, Tensor::scalar(i32::try_from(n).unwrap_or(i32::MAX)));
    Ok(())
}

fn insert_many(node: &Node) -> Built {
    let component = *node.int("component_index")?;
    kernel(move |c| {
        let barrier = barrier(c)?;
        let component = usize::try_from(component).ok().filter(|i| *i < barrier.dtypes.len());
        let component = component.ok_or_else(|| {
            KernelError::invalid(format!("barrier {} has {} components", barrier.name, barrier.dtypes.len()))
        })?;
        let values = c.input(2)?;
        if values.dtype() != barrier.dtypes[component] || values.shape().rank() == 0 {
            let (got, expected) = (format!("{}{}", values.dtype(), values.shape()), barrier.dtypes[component]);
            return Err(KernelError::invalid(format!(
                "barrier {}: expected rows of {expected}, got {got}",
                barrier.name
            )));
        }
        let rows = engine_core::queues::unstack(std::slice::from_ref(values), c.allocator)?;
        let keys = c.input(1)?.strings()?;
        if keys.len() != rows.len() {
            return Err(KernelError::invalid(format!("{} keys for {} values", keys.len(), rows.len())));
        }
        let values = rows.into_iter().filter_map(|mut row| row.pop());
        let complete = barrier.insert(component, keys, values)?;
        barrier.hand_over(c, complete)
    })
}

impl Barrier {
    /// Why a component of these keys cannot come in.
    fn check(&self, state: &State, component: usize, keys: &[Vec<u8>]) -> Computed {
        let mut seen = BTreeSet::new();
        for key in keys {
            let known = state.incomplete.get(key);
            let text =
                |problem: String| format!("barrier {}: key {} {problem}", self.name, String::from_utf8_lossy(key));
            if known.is_none() && state.is_closed {
                return Err(KernelError::QueueClosed(text("is new, but the barrier is closed".into()).into()));
            }
            if known.is_some_and(|entry| entry.components[component].is_some()) || !seen.insert(key) {
                return Err(KernelError::invalid(text(format!("already has component {component}"))));
            }
        }
        Ok(())
    }

    /// Puts in a component of several keys; gives the rows that are complete with it.
    fn insert(
        &self,
        component: usize,
        keys: &[Vec<u8>],
        values: impl Iterator<Item = Tensor>,
    ) -> Result<Vec<Row>, KernelError> {
        let mut state = self.state.lock();
        let state = &mut *state;
        self.check(state, component, keys)?;
        let (index, n_before) = (state.next_index, state.incomplete.len());
        let mut complete = Vec::new();
        for (key, value) in keys.iter().zip(values) {
            let none = || Incomplete { index, components: vec![None; self.dtypes.len()] };
            state.incomplete.entry(key.clone()).or_insert_with(none).components[component] = Some(value);
        }
        // Keys that come first at once share an index.
        if state.incomplete.len() > n_before {
            state.next_index = state.next_index.wrapping_add(1);
        }
        for key in keys {
            let is_complete = |entry: &Incomplete| entry.components.iter().all(Option::is_some);
            if state.incomplete.get(key).is_some_and(is_complete)
                && let Some(entry) = state.incomplete.remove(key)
            {
                let leading = [Tensor::scalar(entry.index), Tensor::string(key.clone())];
                complete.push(leading.into_iter().chain(entry.components.into_iter().flatten()).collect());
            }
        }
        Ok(complete)
    }

    /// Puts complete rows into the queue of those that can be taken; closed, and nothing incomplete left: closes it.
    fn hand_over(&self, c: &KernelContext<'_>, complete: Vec<Row>) -> Computed {
        for row in &complete {
            self.ready.check(row, false)?;
        }
        // There is always room, so that it never waits.
        if !complete.is_empty() {
            self.ready.enqueue(complete, &c.cancellation(), Box::new(drop));
        }
        let is_over = {
            let state = self.state.lock();
            state.is_closed && state.incomplete.is_empty()
        };
        if is_over && !self.ready.is_closed() {
            self.ready.close(false, &c.cancellation(), Box::new(drop));
        }
        Ok(())
    }
}

fn close(node: &Node) -> Built {
    let cancels = *node.flag("cancel_pending_enqueues")?;
    kernel(move |c| {
        let barrier = barrier(c)?;
        {
            let mut state = barrier.state.lock();
            if state.is_closed && !cancels {
                return Err(KernelError::QueueClosed(format!("barrier {} is already closed", barrier.name).into()));
            }
            state.is_closed = true;
            if cancels {
                state.incomplete.clear();
            }
        }
        barrier.hand_over(c, Vec::new())
    })
}

struct TakeMany {
    allows_small_batch: bool,
}

fn take_many(node: &Node) -> Result<Box<dyn AsyncKernel>, KernelError> {
    if *node.flag("wait_for_incomplete")? {
        return Err(KernelError::invalid("wait_for_incomplete is not supported"));
    }
    if *node.int("timeout_ms")? != -1 {
        return Err(KernelError::invalid("timeout_ms is not supported: give the step a timeout"));
    }
    Ok(Box::new(TakeMany { allows_small_batch: *node.flag("allow_small_batch")? }))
}

/// Each component of several rows, stacked: they may have any shape as long as it is one.
fn batch(rows: &[Row], dtypes: &[DType], allocator: &Allocator) -> Result<Row, KernelError> {
    let column = |i: usize| -> Vec<&Tensor> { rows.iter().filter_map(|row| row.get(i)).collect() };
    let stacked = dtypes.iter().enumerate().map(|(i, dtype)| {
        let parts = column(i);
        let Some(first) = parts.first() else { return Err(KernelError::Abandoned) };
        if let Some(other) = parts.iter().find(|part| part.shape() != first.shape()) {
            let shapes = format!("{} and {}", first.shape(), other.shape());
            return Err(KernelError::invalid(format!("values of shapes {shapes} are taken at once")));
        }
        Ok(engine_core::queues::stack(&parts, *dtype, first.shape(), allocator)?)
    });
    stacked.collect()
}

impl AsyncKernel for TakeMany {
    fn start(&self, ctx: &mut KernelContext<'_>, mut done: Completion) {
        let prepared = barrier(ctx).and_then(|barrier| {
            let n = ctx.item::<i32>(1)?;
            let n = usize::try_from(n).ok().filter(|n| *n > 0);
            Ok((barrier, n.ok_or_else(|| KernelError::invalid("num_elements must be positive"))?))
        });
        let (barrier, n) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return done.finish(Err(error)),
        };
        let amount = if self.allows_small_batch { Amount::UpTo(n) } else { Amount::Exactly(n) };
        let ready = Arc::clone(&barrier.ready);
        let types = ready.config().dtypes.clone();
        let allocator = ctx.allocator.clone();
        done.waits(ready.empty_site(), Awaits::Row);
        let finished = move |rows: Result<Vec<Row>, KernelError>| {
            let outputs = rows.and_then(|rows| batch(&rows, &types, &allocator));
            done.finish(outputs.map(|row| row.into_iter().map(Some).collect()));
        };
        ready.dequeue(amount, &ctx.cancellation(), Box::new(finished));
    }
}
