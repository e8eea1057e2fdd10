//! Layers: parts of models that have variables, and what ends a classifier. Parts without variables are methods of
//! [`Value`]: convolutions, pools, activations, dropout.
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

use crate::dtype::DType;
use crate::graph::{NodeId, Output, Value};
pub use variables::{Initial, Variable, VariableScope, Variables};

/// What a layer is for: some do other things in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Learning: dropout drops, batches are normalised by themselves.
    Training,
    /// Judging: nothing is dropped, batches are normalised by what training saw.
    Evaluation,
}

/// `x w + b`, to `n_out` values: variables `weights` and `biases`.
pub fn dense<'g>(x: Value<'g>, variables: &mut VariableScope<'_>, n_out: usize, initial: Initial) -> Value<'g> {
    let w = variables.get("weights", &[x.last_dim(), n_out], initial);
    let b = variables.get("biases", &[n_out], Initial::Constant(0.0));
    x.matmul(w.value).bias_add(b.value)
}

/// Batch normalisation out of primitives (Ioffe and Szegedy 2015), over all but the last axis of images: with the
/// batch's own moments in training, which moving averages follow (nodes in `updates`), and with those in evaluation. It
/// shifts and does not scale, as in the third Inception: the rectified linear unit after it does not ask for a scale.
pub fn batch_norm<'g>(
    x: Value<'g>,
    variables: &mut VariableScope<'_>,
    phase: Phase,
    updates: &mut Vec<NodeId>,
) -> Value<'g> {
    const DECAY: f32 = 0.9;
    const EPSILON: f64 = 1e-3;
    let shape = [x.last_dim()];
    x.in_scope("batch_norm", |x| {
        let beta = variables.get("beta", &shape, Initial::Constant(0.0));
        let moving_mean = variables.state("moving_mean", &shape, Initial::Constant(0.0));
        let moving_variance = variables.state("moving_variance", &shape, Initial::Constant(1.0));
        let (mean, variance) = match phase {
            Phase::Evaluation => (x.graph().value(moving_mean.value), x.graph().value(moving_variance.value)),
            Phase::Training => {
                let axes = x.graph().ints(&[0, 1, 2]);
                let mean = x.mean(axes);
                let variance = x.op_with("SquaredDifference", mean).mean(axes);
                updates.push(Variables::average(moving_mean, mean, DECAY));
                updates.push(Variables::average(moving_variance, variance, DECAY));
                (mean, variance)
            }
        };
        let inverse = (variance + EPSILON).rsqrt();
        (x - mean) * inverse + beta.value
    })
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
