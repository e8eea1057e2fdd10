//! Layers: parts of models that have variables, and what ends a classifier. Parts without variables are methods of
//! [`Value`]: pools, activations, convolutions with filters of one's own.
//!
//! A layer's variables are f32 and named after the path that it is built at; a second call at the same path shares them, as the
//! network for evaluation does with the one for training. Its nodes are in a scope of that name too.
//!
//! ```
//! # use engine::layers::{Initial, Variables, dense, mean_cross_entropy};
//! # use engine::{DType, Graph};
//! # fn main() -> Result<(), engine::graph::GraphError> {
//! let g = Graph::new();
//! let mut variables = Variables::new(&g, 1);
//! let x = g.placeholder("x", DType::F32, [None, Some(784)]);
//! let labels = g.placeholder("labels", DType::I64, [None]);
//! let h = dense(x, &mut variables.at("hidden"), 128, Initial::He).relu();
//! let logits = dense(h, &mut variables.at("logits"), 10, Initial::Glorot);
//! let loss = mean_cross_entropy(logits, labels);
//! # assert_eq!(loss.shape().to_string(), "[]");
//! # g.check()
//! # }
//! ```

mod variables;

use engine_core::dtype::DType;
use engine_core::graph::{NodeId, Output, Padding, Value};
use engine_core::shape::PartialShape;
pub use variables::{Initial, Variable, VariableScope, Variables};

/// What a layer is for: some do other things in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Learning: dropout drops, batches are normalised by themselves.
    Training,
    /// Judging: nothing is dropped, batches are normalised by what training saw.
    Evaluation,
}

/// `x w + b`, along the last dimension of `x`, `[..., n]`: `[..., n_out]`. Variables `weights`, `[n, n_out]`, which begin as
/// `initial` says, and `biases`, `[n_out]`, 0 at first. The size `n` must be known.
pub fn dense<'g>(x: Value<'g>, variables: &mut VariableScope<'_>, n_out: usize, initial: Initial) -> Value<'g> {
    variables.layer(x, |x, variables| {
        let n = x.last_dim();
        let w = variables.get("weights", &[n, n_out], initial);
        let b = variables.get("biases", &[n_out], Initial::Constant(0.0));
        let shape = x.shape();
        let outer = shape.dims().and_then(|dims| Some(dims.split_last()?.1)).filter(|outer| outer.len() > 1);
        let rows = if outer.is_some() { x.reshape([-1, n as i64]) } else { x };
        let y = rows.matmul(w.value).bias_add(b.value);
        outer.map_or(y, |outer| with_outer_dims(y, x, outer, n_out))
    })
}

/// The rows of a matrix `[.., n]` in the places that they have in `x`, whose dimensions but for the last are `outer`.
fn with_outer_dims<'g>(rows: Value<'g>, x: Value<'g>, outer: &[Option<usize>], n: usize) -> Value<'g> {
    let g = x.graph();
    if outer.iter().filter(|dim| dim.is_none()).count() < 2 {
        let dims = outer.iter().map(|dim| dim.map_or(-1, |dim| dim as i64)).chain([n as i64]);
        return rows.reshape(&dims.collect::<Vec<_>>()[..]);
    }
    let sizes = x.shape_tensor().slice([0], [outer.len()]);
    let y = rows.reshape(g.concat(&[sizes, g.ints(&[n as i32])], 0));
    // Sizes that only a step knows hide those that are known. A value that could not be added has no shape.
    let dims: Vec<Option<usize>> = outer.iter().copied().chain([Some(n)]).collect();
    _ = g.set_shape(y.output(), PartialShape::new(&dims));
    y
}

/// Convolution of images `[batch, height, width, channels]` with `n_filters` filters of this height and width, and biases.
/// Variables `filters`, `[height, width, channels, n_filters]`, which begin as `initial` says, and `biases`, `[n_filters]`,
/// 0 at first. Without biases, before a [`batch_norm`] say, it is [`Value::conv2d`].
pub fn conv2d<'g>(
    x: Value<'g>,
    variables: &mut VariableScope<'_>,
    n_filters: usize,
    [height, width]: [usize; 2],
    strides: [usize; 2],
    padding: Padding,
    initial: Initial,
) -> Value<'g> {
    variables.layer(x, |x, variables| {
        let w = variables.get("filters", &[height, width, x.last_dim(), n_filters], initial);
        let b = variables.get("biases", &[n_filters], Initial::Constant(0.0));
        x.conv2d(w.value, strides, padding).bias_add(b.value)
    })
}

/// Rows of the variable `vectors`, `[n, width]`, at `ids`, integers below `n` of any shape: `[..., width]`. It begins as
/// `initial` says.
pub fn embedding<'g>(
    ids: Value<'g>,
    variables: &mut VariableScope<'_>,
    n: usize,
    width: usize,
    initial: Initial,
) -> Value<'g> {
    variables.layer(ids, |ids, variables| {
        let vectors = variables.get("vectors", &[n, width], initial);
        ids.graph().value(vectors.value).embedding_lookup(ids)
    })
}

/// Normalises along the last dimension of `x`, of size `n`, then scales and shifts (Ba et al. 2016): variables `scale` and
/// `offset`, `[n]`, at first 1 and 0. To the variance 0.001 is added, as in Keras; [`Value::layer_norm`] takes another number.
pub fn layer_norm<'g>(x: Value<'g>, variables: &mut VariableScope<'_>) -> Value<'g> {
    variables.layer(x, |x, variables| {
        let n = x.last_dim();
        let scale = variables.get("scale", &[n], Initial::Constant(1.0));
        let offset = variables.get("offset", &[n], Initial::Constant(0.0));
        x.layer_norm(scale.value, offset.value, 1e-3)
    })
}

/// Batch normalisation out of primitives (Ioffe and Szegedy 2015), over all but the last axis of images
/// `[batch, height, width, channels]`: with the batch's own mean and variance in training, with their moving averages in
/// evaluation. It shifts and does not scale, as in the third Inception: the rectified linear unit after it does not ask
/// for a scale.
///
/// Variables, `[channels]` each: `beta`, which is added at the end, 0 at first; `moving_mean` and `moving_variance`, not
/// trained, 0 and 1 at first. The averages keep 0.9 of themselves in a step, and 0.001 is added to a variance.
///
/// In training it appends the nodes that move the averages to `updates`: they must be targets of the steps that train
/// (`session.step().target(training.op).targets(&updates)`), or evaluation normalises by the first values. The network for
/// evaluation is a second one, built at the same paths.
pub fn batch_norm<'g>(
    x: Value<'g>,
    variables: &mut VariableScope<'_>,
    phase: Phase,
    updates: &mut Vec<NodeId>,
) -> Value<'g> {
    const DECAY: f32 = 0.9;
    const EPSILON: f64 = 1e-3;
    variables.layer(x, |x, variables| {
        x.in_scope("batch_norm", |x| {
            let shape = [x.last_dim()];
            let beta = variables.get("beta", &shape, Initial::Constant(0.0));
            let moving_mean = variables.state("moving_mean", &shape, Initial::Constant(0.0));
            let moving_variance = variables.state("moving_variance", &shape, Initial::Constant(1.0));
            let (mean, variance) = match phase {
                Phase::Evaluation => (x.graph().value(moving_mean.value), x.graph().value(moving_variance.value)),
                Phase::Training => {
                    let axes = x.graph().ints(&[0, 1, 2]);
                    let mean = x.mean(axes);
                    let variance = x.op_with("SquaredDifference", mean).mean(axes);
                    updates.push(moving_mean.assign_moving_average(mean, DECAY));
                    updates.push(moving_variance.assign_moving_average(variance, DECAY));
                    (mean, variance)
                }
            };
            let inverse = (variance + EPSILON).rsqrt();
            (x - mean) * inverse + beta.value
        })
    })
}

/// [`Value::dropout`] in training; `x` as it is in evaluation, or where the rate is 0.
pub fn dropout<'g>(x: Value<'g>, rate: f64, phase: Phase, seeds: (i64, i64)) -> Value<'g> {
    match phase {
        Phase::Training if rate > 0.0 => x.dropout(rate, seeds),
        _ => x,
    }
}

/// The mean cross entropy of logits `[n, classes]` with labels `[n]`, in scope `loss`.
pub fn mean_cross_entropy<'g>(logits: Value<'g>, labels: impl Into<Output>) -> Value<'g> {
    let labels = labels.into();
    logits.in_scope("loss", |logits| logits.sparse_cross_entropy(labels).mean_all())
}

/// The share of rows whose largest logit is their label's, in scope `accuracy`.
pub fn accuracy<'g>(logits: Value<'g>, labels: impl Into<Output>) -> Value<'g> {
    let labels = labels.into();
    logits.in_scope("accuracy", |logits| logits.arg_max(1).equal(labels).cast(DType::F32).mean_all())
}
