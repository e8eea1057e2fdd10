//! Layers that several models are made of.

use super::{Initial, Phase, Variables};
use crate::dtype::DType;
use crate::graph::{Built, Graph, GraphError, NodeId, Output};
use crate::tensor::Tensor;

/// Where a window may reach over the image's border.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    Same,
    Valid,
}

impl Padding {
    fn name(self) -> &'static str {
        match self {
            Padding::Same => "SAME",
            Padding::Valid => "VALID",
        }
    }
}

/// `x w + b`: variables `NAME/weights` and `NAME/biases`.
pub(super) fn dense(
    g: &Graph,
    variables: &mut Variables,
    x: Output,
    name: &str,
    (n_in, n_out): (usize, usize),
    initial: Initial,
) -> Built {
    let w = variables.get(&format!("{name}/weights"), &[n_in, n_out], initial)?;
    let b = variables.get(&format!("{name}/biases"), &[n_out], Initial::Constant(0.0))?;
    g.bias_add(g.matmul(x, w.value)?, b.value)
}

/// A convolution without bias over images f32 `[n, height, width, n_in]`.
pub(super) fn conv(g: &Graph, x: Output, filters: Output, stride: i64, padding: Padding) -> Built {
    let node = g.add_node("Conv2D").input(x).input(filters);
    node.attr("strides", vec![1, stride, stride, 1]).attr("padding", padding.name()).output()
}

/// The largest of each window.
pub(super) fn max_pool(g: &Graph, x: Output, size: i64, stride: i64, padding: Padding) -> Built {
    pool(g, "MaxPool", x, size, stride, padding)
}

/// The mean of each window.
pub(super) fn avg_pool(g: &Graph, x: Output, size: i64, stride: i64, padding: Padding) -> Built {
    pool(g, "AvgPool", x, size, stride, padding)
}

fn pool(g: &Graph, op: &str, x: Output, size: i64, stride: i64, padding: Padding) -> Built {
    let node = g.add_node(op).input(x).attr("ksize", vec![1, size, size, 1]);
    node.attr("strides", vec![1, stride, stride, 1]).attr("padding", padding.name()).output()
}

/// Joins along an axis.
pub(super) fn concat(g: &Graph, xs: &[Output], axis: i32) -> Built {
    g.add_node("ConcatV2").inputs(xs).input(g.constant(Tensor::scalar(axis))?).output()
}

/// `x` in another shape; at most one dimension may be -1.
pub(super) fn reshape(g: &Graph, x: Output, dims: &[i32]) -> Built {
    g.reshape(x, g.int_vector(dims)?)
}

/// Sets a share of the elements to 0 and enlarges the others so that the mean stays.
pub(super) fn dropout(g: &Graph, x: Output, drop: f32, seed: i64) -> Built {
    let scope = g.scope("dropout");
    let shape = scope.add_node("Shape").input(x).output()?;
    let random = scope.add_node("RandomUniform").input(shape).attr("dtype", DType::F32);
    let random = random.attr("seed", seed).attr("seed2", 17i64).output()?;
    let kept = scope.add_node("GreaterEqual").input(random).input(scope.constant(drop)?).output()?;
    let mask = scope.cast(kept, DType::F32)?;
    scope.mul(scope.mul(x, scope.constant(1.0 / (1.0 - drop))?)?, mask)
}

/// Batch normalisation out of primitives (Ioffe and Szegedy 2015), over all but the last axis of images: with the
/// batch's own moments in training, which moving averages follow, and with those in evaluation. It shifts and does not
/// scale, as in the third Inception: the rectified linear unit after it does not ask for a scale.
pub(super) fn batch_norm(
    g: &Graph,
    variables: &mut Variables,
    x: Output,
    name: &str,
    (n, phase): (usize, Phase),
    updates: &mut Vec<NodeId>,
) -> Built {
    const DECAY: f32 = 0.9;
    const EPSILON: f32 = 1e-3;
    let scope = g.scope("batch_norm");
    let beta = variables.get(&format!("{name}/beta"), &[n], Initial::Constant(0.0))?;
    let moving_mean = variables.state(&format!("{name}/moving_mean"), &[n], Initial::Constant(0.0))?;
    let moving_variance = variables.state(&format!("{name}/moving_variance"), &[n], Initial::Constant(1.0))?;
    let (mean, variance) = match phase {
        Phase::Evaluation => (moving_mean.value, moving_variance.value),
        Phase::Training => {
            let axes = scope.int_vector(&[0, 1, 2])?;
            let mean = scope.mean(x, axes)?;
            let away = scope.add_node("SquaredDifference").input(x).input(mean).output()?;
            let variance = scope.mean(away, axes)?;
            updates.push(Variables::average(&scope, moving_mean, mean, DECAY)?);
            updates.push(Variables::average(&scope, moving_variance, variance, DECAY)?);
            (mean, variance)
        }
    };
    let inverse = scope.add_node("Rsqrt").input(scope.add(variance, scope.constant(EPSILON)?)?).output()?;
    scope.add(scope.mul(scope.sub(x, mean)?, inverse)?, beta.value)
}

/// The mean cross entropy of logits `[n, classes]` with labels `[n]`, in scope `loss`.
pub(super) fn mean_cross_entropy(g: &Graph, logits: Output, labels: Output) -> Built {
    let scope = g.scope("loss");
    scope.mean_all(scope.sparse_cross_entropy(logits, labels)?)
}

/// The share of rows whose largest logit is their label's, in scope `accuracy`.
pub(super) fn accuracy(g: &Graph, logits: Output, labels: Output) -> Result<Output, GraphError> {
    let scope = g.scope("accuracy");
    let guess = scope.arg_max(logits, 1)?;
    let right = scope.cast(scope.equal(guess, labels)?, DType::F32)?;
    scope.mean_all(right)
}
