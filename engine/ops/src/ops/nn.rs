//! Neural-net ops: activations, biases, softmax and its cross entropies.

use super::shapes::{Inferred, all_equal, unchanged};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpSpec, ShapeError, op};
use engine_core::shape::PartialShape;

const T: &str = "T: {float, double}";
const BIAS: &str = "T: {float, double, int32, int64}; data_format: string = 'NHWC'";

#[linkme::distributed_slice(OP_TABLES)]
static NN: &[OpSpec] = &[
    op("Relu", "features: T -> activations: T", "T: {float, double, int32, int64}", unchanged),
    op("ReluGrad", "gradients: T, features: T -> backprops: T", T, all_equal),
    op("Softmax", "logits: T -> softmax: T", T, unchanged),
    op("LogSoftmax", "logits: T -> logsoftmax: T", T, unchanged),
    op("BiasAdd", "value: T, bias: T -> output: T", BIAS, bias_add),
    op("BiasAddV1", "value: T, bias: T -> output: T", "T: {float, double, int32, int64}", bias_add),
    op("BiasAddGrad", "out_backprop: T -> output: T", BIAS, bias_add_grad),
    op("SoftmaxCrossEntropyWithLogits", "features: T, labels: T -> loss: T, backprop: T", T, cross_entropy),
    op(
        "SparseSoftmaxCrossEntropyWithLogits",
        "features: T, labels: Tlabels -> loss: T, backprop: T",
        "T: {float, double}; Tlabels: {int32, int64} = int64",
        sparse_cross_entropy,
    ),
];

/// Where the channels of a value of this rank lie.
fn channel_axis(c: &InferContext<'_>, rank: usize) -> usize {
    match c.attr("data_format") {
        Some(Attr::Str(s)) if s == b"NCHW" || s == b"NCDHW" => 1,
        _ => rank - 1,
    }
}

fn bias_add(c: &mut InferContext<'_>) -> Inferred {
    let value = c.input(0);
    let bias = c.of_rank(1, 1)?;
    let Some(dims) = value.dims() else { return Ok(()) };
    if dims.len() < 2 {
        return Err(ShapeError(format!("the value must have rank 2 or more, got {value}")));
    }
    let axis = channel_axis(c, dims.len());
    let channels = c.merge(&[dims[axis]].into(), &bias)?;
    let mut out = dims.to_vec();
    out[axis] = channels.dims().and_then(|d| d[0]);
    c.set(0, PartialShape::new(&out));
    Ok(())
}

fn bias_add_grad(c: &mut InferContext<'_>) -> Inferred {
    let value = c.input(0);
    let channels = value.dims().filter(|d| d.len() >= 2).and_then(|d| d[channel_axis(c, d.len())]);
    c.set(0, [channels]);
    Ok(())
}

fn cross_entropy(c: &mut InferContext<'_>) -> Inferred {
    let both = c.merge(&c.of_rank(0, 2)?, &c.of_rank(1, 2)?)?;
    c.set(0, [both.dims().and_then(|d| d[0])]);
    c.set(1, both);
    Ok(())
}

fn sparse_cross_entropy(c: &mut InferContext<'_>) -> Inferred {
    let (logits, labels) = (c.of_rank(0, 2)?, c.of_rank(1, 1)?);
    let batch = [logits.dims().and_then(|d| d[0])];
    let loss = c.merge(&batch.into(), &labels)?;
    c.set(0, loss);
    c.set(1, logits);
    Ok(())
}
