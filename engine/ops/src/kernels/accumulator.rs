//! Kernels of accumulators: gradients of one training step are added up, and their mean is taken when enough have come;
//! those of earlier steps are dropped (synchronous data parallelism; white paper, section 7).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::resource::{Key, object};
use super::support::{Built, Computed, cheap, cpu_any, kernel};
use super::{
    ASYNC_KERNEL_TABLES, AsyncKernel, AsyncKernelDef, Completion, KERNEL_TABLES, KernelContext, KernelDef, KernelError,
    Outputs, Registration,
};
use engine_core::buffer::Allocator;
use engine_core::convert::convert;
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::{PartialShape, Shape};
use engine_core::tensor::Tensor;
use engine_core::trace::Awaits;

#[linkme::distributed_slice(KERNEL_TABLES)]
static ACCUMULATORS: &[KernelDef] = &[
    cpu_any("ConditionalAccumulator", make),
    cpu_any("ResourceConditionalAccumulator", make),
    cpu_any("SparseConditionalAccumulator", make),
    cpu_any("AccumulatorApplyGradient", |_| kernel(apply)),
    cpu_any("ResourceAccumulatorApplyGradient", |_| kernel(apply)),
    cpu_any("SparseAccumulatorApplyGradient", |n| {
        let has_shape = *n.flag("has_known_shape")?;
        kernel(move |c| apply_sparse(c, has_shape))
    }),
    cpu_any("AccumulatorNumAccumulated", |_| cheap(n_accumulated)),
    cpu_any("ResourceAccumulatorNumAccumulated", |_| cheap(n_accumulated)),
    cpu_any("AccumulatorSetGlobalStep", |_| cheap(set_step)),
    cpu_any("ResourceAccumulatorSetGlobalStep", |_| cheap(set_step)),
];

#[linkme::distributed_slice(ASYNC_KERNEL_TABLES)]
static TAKES: &[AsyncKernelDef] =
    &[take("AccumulatorTakeGradient"), take("ResourceAccumulatorTakeGradient"), take("SparseAccumulatorTakeGradient")];

const fn take(op: &'static str) -> AsyncKernelDef {
    AsyncKernelDef { op, device: "CPU", dtypes: ("", &[]), build: |_| Ok(Box::new(Take)) }
}

/// What an accumulator is made for.
#[derive(Debug, Clone, PartialEq)]
struct Config {
    dtype: DType,
    shape: PartialShape,
    is_mean: bool,
    is_sparse: bool,
}

/// Adds gradients up.
struct Accumulator {
    config: Config,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    step: i64,
    n: i32,
    sum: Sum,
    next_id: u64,
    waiting: VecDeque<Waiting>,
}

/// The sum so far, in f64 (integers are exact up to 2^53).
#[derive(Default)]
enum Sum {
    #[default]
    Nothing,
    Dense(Shape, Vec<f64>),
    /// Rows by their index, how often each was added to, and the shape of a row; the whole shape where it is known.
    Sparse {
        rows: BTreeMap<i64, (Vec<f64>, u32)>,
        row: Shape,
        whole: Option<Vec<i64>>,
    },
}

struct Waiting {
    id: u64,
    n_required: i32,
    done: Completion,
    registration: Option<Registration>,
}

fn make(node: &Node) -> Built {
    let is_mean = match node.text("reduction_type")?.as_str() {
        "MEAN" => true,
        "SUM" => false,
        other => return Err(KernelError::invalid(format!("reduction_type {other} is neither MEAN nor SUM"))),
    };
    let is_sparse = node.op.name.starts_with("Sparse");
    let config = Config { dtype: *node.dtype("dtype")?, shape: node.shape("shape")?.clone(), is_mean, is_sparse };
    let key = Key::of(node)?;
    cheap(move |c| {
        let handle = key.object(c, || Accumulator { config: config.clone(), state: Mutex::default() })?;
        let made = object::<Accumulator>(&handle)?;
        if made.config != config {
            let text = format!("shared accumulator {} is {:?}, the node asks for {config:?}", key.name, made.config);
            return Err(KernelError::invalid(text));
        }
        c.set(0, handle);
        Ok(())
    })
}

fn accumulator(c: &KernelContext<'_>) -> Result<Arc<Accumulator>, KernelError> {
    object::<Accumulator>(c.input(0)?)
}

fn n_accumulated(c: &mut KernelContext<'_>) -> Computed {
    let n = accumulator(c)?.state.lock().n;
    c.set(0, Tensor::scalar(n));
    Ok(())
}

fn set_step(c: &mut KernelContext<'_>) -> Computed {
    let step = c.item::<i64>(1)?;
    accumulator(c)?.state.lock().step = step;
    Ok(())
}

fn numbers(config: &Config, t: &Tensor) -> Result<Vec<f64>, KernelError> {
    if t.dtype() != config.dtype {
        return Err(KernelError::invalid(format!("expected a gradient of {}, got {}", config.dtype, t.dtype())));
    }
    Ok(t.to_f64()?)
}

fn apply(c: &mut KernelContext<'_>) -> Computed {
    let (of, local_step, gradient) = (accumulator(c)?, c.item::<i64>(1)?, c.input(2)?);
    if of.config.is_sparse {
        return Err(KernelError::invalid("the accumulator takes sparse gradients"));
    }
    if !of.config.shape.admits(gradient.shape()) {
        let (wanted, got) = (&of.config.shape, gradient.shape());
        return Err(KernelError::invalid(format!("the accumulator has shape {wanted}, the gradient {got}")));
    }
    let values = numbers(&of.config, gradient)?;
    let mut state = of.state.lock();
    if local_step < state.step {
        // Of a step that is over.
        return Ok(());
    }
    match &mut state.sum {
        Sum::Dense(shape, sum) if shape == gradient.shape() => sum.iter_mut().zip(&values).for_each(|(s, v)| *s += v),
        Sum::Dense(shape, _) => {
            let text = format!("gradients before had shape {shape}, this one {}", gradient.shape());
            return Err(KernelError::invalid(text));
        }
        sum => *sum = Sum::Dense(gradient.shape().clone(), values),
    }
    state.n += 1;
    drop(state);
    of.serve();
    Ok(())
}

fn apply_sparse(c: &mut KernelContext<'_>, has_shape: bool) -> Computed {
    let (of, local_step) = (accumulator(c)?, c.item::<i64>(1)?);
    let (indices, gradient) = (c.slice::<i64>(2)?, c.input(3)?);
    let whole = if has_shape { Some(c.slice::<i64>(4)?.to_vec()) } else { None };
    let values = numbers(&of.config, gradient)?;
    let Some((&n, row)) = gradient.dims().split_first().filter(|(n, _)| **n == indices.len()) else {
        let text = format!("{} indices for values of shape {}", indices.len(), gradient.shape());
        return Err(KernelError::invalid(text));
    };
    let row = Shape::new(row);
    let limit = whole.as_ref().and_then(|w| w.first().copied()).or_else(|| {
        let dims = of.config.shape.dims()?;
        dims.first().copied().flatten().map(|d| d as i64)
    });
    if let Some(i) = indices.iter().find(|i| **i < 0 || limit.is_some_and(|l| **i >= l)) {
        return Err(KernelError::invalid(format!("index {i} is outside of the accumulator's rows")));
    }
    let mut state = of.state.lock();
    if local_step < state.step {
        return Ok(());
    }
    if matches!(state.sum, Sum::Nothing) {
        state.sum = Sum::Sparse { rows: BTreeMap::new(), row: row.clone(), whole: whole.clone() };
    }
    let Sum::Sparse { rows, row: known, .. } = &mut state.sum else {
        return Err(KernelError::invalid("the accumulator takes dense gradients"));
    };
    if *known != row {
        return Err(KernelError::invalid(format!("rows before had shape {known}, these {row}")));
    }
    let each = row.n_elements();
    for k in 0..n {
        let (sum, count) = rows.entry(indices[k]).or_insert_with(|| (vec![0.0; each], 0));
        sum.iter_mut().zip(&values[k * each..(k + 1) * each]).for_each(|(s, v)| *s += v);
        *count += 1;
    }
    state.n += 1;
    drop(state);
    of.serve();
    Ok(())
}

impl Accumulator {
    /// Gives the mean to those who wait, as long as there is enough for the first of them.
    fn serve(&self) {
        loop {
            let (waiting, n, sum) = {
                let mut state = self.state.lock();
                let enough = state.waiting.front().is_some_and(|w| state.n >= w.n_required);
                let Some(waiting) = (if enough { state.waiting.pop_front() } else { None }) else { return };
                state.step += 1;
                (waiting, std::mem::take(&mut state.n), std::mem::take(&mut state.sum))
            };
            drop(waiting.registration);
            waiting.done.finish(self.outputs(sum, n));
        }
    }

    fn outputs(&self, sum: Sum, n: i32) -> Result<Outputs, KernelError> {
        let of = |shape: Shape, values: Vec<f64>| -> Result<Tensor, KernelError> {
            let values = Tensor::from_vec(shape, values)?;
            Ok(convert(&values, self.config.dtype, Allocator::host())?)
        };
        let scale = |values: &mut [f64], n: f64| {
            if self.config.is_mean {
                // Whole numbers divide as TensorFlow's do: towards zero.
                let is_whole = !self.config.dtype.is_float();
                values.iter_mut().for_each(|v| *v = if is_whole { (*v / n).trunc() } else { *v / n });
            }
        };
        Ok(match sum {
            Sum::Nothing => return Err(KernelError::invalid("nothing was accumulated")),
            Sum::Dense(shape, mut values) => {
                scale(&mut values, f64::from(n));
                [Some(of(shape, values)?)].into_iter().collect()
            }
            Sum::Sparse { rows, row, whole } => {
                let indices: Vec<i64> = rows.keys().copied().collect();
                let mut values = Vec::with_capacity(rows.len() * row.n_elements());
                for (mut sum, count) in rows.into_values() {
                    // As TensorFlow: each row by how many gradients had it.
                    scale(&mut sum, f64::from(count));
                    values.extend(sum);
                }
                let mut dims = vec![indices.len()];
                dims.extend_from_slice(row.dims());
                let known = || self.config.shape.known().map(|s| s.dims().iter().map(|d| *d as i64).collect());
                let shape = whole
                    .or_else(known)
                    .unwrap_or_else(|| std::iter::once(-1).chain(row.dims().iter().map(|d| *d as i64)).collect());
                let values = of(Shape::new(&dims), values)?;
                [Some(Tensor::vector(&indices)), Some(values), Some(Tensor::vector(&shape))].into_iter().collect()
            }
        })
    }

    fn cancel(&self, id: u64) {
        let waiting = {
            let mut state = self.state.lock();
            let at = state.waiting.iter().position(|w| w.id == id);
            at.and_then(|at| state.waiting.remove(at))
        };
        if let Some(waiting) = waiting {
            waiting.done.finish(Err(KernelError::Cancelled));
        }
        self.serve();
    }
}

struct Take;

impl AsyncKernel for Take {
    fn start(&self, ctx: &mut KernelContext<'_>, mut done: Completion) {
        let prepared = accumulator(ctx).and_then(|of| {
            let n = ctx.item::<i32>(1)?;
            if n <= 0 {
                return Err(KernelError::invalid(format!("num_required {n} must be positive")));
            }
            Ok((of, n))
        });
        let (of, n_required) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return done.finish(Err(error)),
        };
        done.waits(events::site!("parked", "gradients"), Awaits::Turn);
        let id = {
            let mut state = of.state.lock();
            state.next_id += 1;
            let id = state.next_id;
            state.waiting.push_back(Waiting { id, n_required, done, registration: None });
            id
        };
        let weak = Arc::downgrade(&of);
        let registration = ctx.cancellation().register(move || {
            if let Some(of) = weak.upgrade() {
                of.cancel(id);
            }
        });
        if let Some(waiting) = of.state.lock().waiting.iter_mut().find(|w| w.id == id) {
            waiting.registration = Some(registration);
        }
        of.serve();
    }
}
