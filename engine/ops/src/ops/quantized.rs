//! Quantised ops: floats to integers of few bits and back, arithmetic on those, and rounding that stays in floats.

use super::conv::forward;
use super::pool::pool;
use super::shapes::{Inferred, broadcast, none, scalar, unchanged};
use engine_core::geometry::axis;
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, op};
use engine_core::shape::PartialShape;

const FAKE: &str = "num_bits: int = 8; narrow_range: bool = false";
const FAKE_ARGS: &str = "min: float = -6; max: float = 6; num_bits: int = 8; narrow_range: bool = false";
const FAKE_GRAD: &str = "gradients: float, inputs: float, min: float, max: float -> \
                         backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float";
const RELU: &str = "Tinput: {quantized}; out_type: {quantized} = quint8";
const ROUND: &str = "signed_input: bool = true; num_bits: int = 8; range_given: bool = false; T: {floats}; \
                     round_mode: string = 'HALF_TO_EVEN'; narrow_range: bool = false; axis: int = -1";
const ROUND_ARGS: &str = "input: T, input_min: T, input_max: T -> output: T";

const BINARY: &str = "x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float -> \
                      z: Toutput, min_z: float, max_z: float";
const BINARY_TYPES: &str = "T1: {quantized}; T2: {quantized}; Toutput: {quantized} = qint32";
const POOL: &str = "input: T, min_input: float, max_input: float -> output: T, min_output: float, max_output: float";
const POOL_ATTRS: &str = "T: {quantized}; ksize: list(int); strides: list(int); padding: string";

#[linkme::distributed_slice(OP_TABLES)]
static QUANTIZED: &[OpSpec] = &[
    op(
        "QuantizeV2",
        "input: float, min_range: float, max_range: float -> output: T, output_min: float, output_max: float",
        "T: {quantized}; mode: string = 'MIN_COMBINED'; round_mode: string = 'HALF_AWAY_FROM_ZERO'; \
         narrow_range: bool = false; axis: int = -1; ensure_minimum_range: float = 0.01",
        with_ranges,
    ),
    op(
        "Dequantize",
        "input: T, min_range: float, max_range: float -> output: dtype",
        "T: {quantized}; mode: string = 'MIN_COMBINED'; narrow_range: bool = false; axis: int = -1; \
         dtype: {bfloat16, float} = float",
        unchanged,
    ),
    op("QuantizeAndDequantizeV2", ROUND_ARGS, ROUND, unchanged),
    op("QuantizeAndDequantizeV4", ROUND_ARGS, ROUND, unchanged),
    op(
        "QuantizeAndDequantizeV3",
        "input: T, input_min: T, input_max: T, num_bits: int32 -> output: T",
        "signed_input: bool = true; range_given: bool = true; T: {floats}; narrow_range: bool = false; axis: int = -1",
        unchanged,
    ),
    op(
        "QuantizeAndDequantizeV4Grad",
        "gradients: T, input: T, input_min: T, input_max: T -> \
         input_backprop: T, input_min_backprop: T, input_max_backprop: T",
        "T: {floats}; axis: int = -1",
        round_grad,
    ),
    op("FakeQuantWithMinMaxArgs", "inputs: float -> outputs: float", FAKE_ARGS, unchanged),
    op("FakeQuantWithMinMaxArgsGradient", "gradients: float, inputs: float -> backprops: float", FAKE_ARGS, unchanged),
    op("FakeQuantWithMinMaxVars", "inputs: float, min: float, max: float -> outputs: float", FAKE, unchanged),
    op("FakeQuantWithMinMaxVarsPerChannel", "inputs: float, min: float, max: float -> outputs: float", FAKE, unchanged),
    op("FakeQuantWithMinMaxVarsGradient", FAKE_GRAD, FAKE, round_grad),
    op("FakeQuantWithMinMaxVarsPerChannelGradient", FAKE_GRAD, FAKE, round_grad),
    op(
        "QuantizedMatMul",
        "a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float -> \
         out: Toutput, min_out: float, max_out: float",
        "T1: {quantized}; T2: {quantized}; Toutput: {quantized} = qint32; transpose_a: bool = false; \
         transpose_b: bool = false; Tactivation: {quantized} = quint8",
        matmul,
    ),
    op(
        "QuantizedBiasAdd",
        "input: T1, bias: T2, min_input: float, max_input: float, min_bias: float, max_bias: float -> \
         output: out_type, min_out: float, max_out: float",
        "T1: {quantized}; T2: {quantized}; out_type: {quantized}",
        with_range,
    ),
    op("QuantizedAdd", BINARY, BINARY_TYPES, |c| ranged(c, broadcast)),
    op("QuantizedMul", BINARY, BINARY_TYPES, |c| ranged(c, broadcast)),
    op(
        "QuantizedConv2D",
        "input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter: float, max_filter: float -> \
         output: out_type, min_output: float, max_output: float",
        "Tinput: {quantized}; Tfilter: {quantized}; out_type: {quantized} = qint32; strides: list(int); \
         padding: string; dilations: list(int) = [1, 1, 1, 1]",
        |c| ranged(c, |c| forward(c, 2, false)),
    ),
    op("QuantizedMaxPool", POOL, POOL_ATTRS, |c| ranged(c, |c| pool(c, 2))),
    op("QuantizedAvgPool", POOL, POOL_ATTRS, |c| ranged(c, |c| pool(c, 2))),
    op(
        "QuantizedConcat",
        "concat_dim: int32, values: N * T, input_mins: N * float, input_maxes: N * float -> \
         output: T, output_min: float, output_max: float",
        "N: int; T: type",
        |c| ranged(c, joined),
    ),
    op(
        "QuantizedRelu",
        "features: Tinput, min_features: float, max_features: float -> \
         activations: out_type, min_activations: float, max_activations: float",
        RELU,
        with_range,
    ),
    op(
        "QuantizedRelu6",
        "features: Tinput, min_features: float, max_features: float -> \
         activations: out_type, min_activations: float, max_activations: float",
        RELU,
        with_range,
    ),
    op(
        "QuantizedReluX",
        "features: Tinput, max_value: float, min_features: float, max_features: float -> \
         activations: out_type, min_activations: float, max_activations: float",
        RELU,
        with_range,
    ),
    op(
        "Requantize",
        "input: Tinput, input_min: float, input_max: float, requested_output_min: float, requested_output_max: float \
         -> output: out_type, output_min: float, output_max: float",
        "Tinput: {quantized}; out_type: {quantized}",
        with_range,
    ),
    op(
        "RequantizationRange",
        "input: Tinput, input_min: float, input_max: float -> output_min: float, output_max: float",
        "Tinput: {quantized}",
        |c| {
            scalar(c)?;
            c.set(1, PartialShape::scalar());
            Ok(())
        },
    ),
    op(
        "QuantizeDownAndShrinkRange",
        "input: Tinput, input_min: float, input_max: float -> output: out_type, output_min: float, output_max: float",
        "Tinput: {quantized}; out_type: {quantized}",
        with_range,
    ),
    op(
        "QuantizedReshape",
        "tensor: T, shape: Tshape, input_min: float, input_max: float -> \
         output: T, output_min: float, output_max: float",
        "T: type; Tshape: {int32, int64} = int32",
        none,
    ),
];

/// The shape of the first input, then two scalars.
fn with_range(c: &mut InferContext<'_>) -> Inferred {
    ranged(c, unchanged)
}

/// What `first` says of the first output, then two scalars.
fn ranged(c: &mut InferContext<'_>, first: fn(&mut InferContext<'_>) -> Inferred) -> Inferred {
    first(c)?;
    c.set(1, PartialShape::scalar());
    c.set(2, PartialShape::scalar());
    Ok(())
}

/// The values' shape, but for the dimension along which they are joined.
fn joined(c: &mut InferContext<'_>) -> Inferred {
    let n = c.int("N").and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let Some(mut dims) = c.input(1).dims().map(<[_]>::to_vec) else { return Ok(()) };
    let Some(at) = c.ints(0).and_then(|at| at.first().copied()) else {
        c.set(0, PartialShape::of_rank(dims.len()));
        return Ok(());
    };
    let at = axis(at, dims.len())?;
    let along = |i: usize| c.input(1 + i).dims().and_then(|d| d.get(at).copied()).flatten();
    dims[at] = (0..n).map(along).sum();
    c.set(0, PartialShape::new(&dims));
    Ok(())
}

/// The shape of the first input, then those of the ranges.
fn with_ranges(c: &mut InferContext<'_>) -> Inferred {
    unchanged(c)?;
    let ranges = c.input(1);
    let ranges = if c.int("axis") == Some(-1) { PartialShape::scalar() } else { ranges };
    c.set(1, ranges.clone());
    c.set(2, ranges);
    Ok(())
}

fn round_grad(c: &mut InferContext<'_>) -> Inferred {
    unchanged(c)?;
    for i in 1..3 {
        let range = c.input(i + 1);
        c.set(i, range);
    }
    Ok(())
}

fn matmul(c: &mut InferContext<'_>) -> Inferred {
    let (a, b) = (c.of_rank(0, 2)?, c.of_rank(1, 2)?);
    let dim = |shape: &PartialShape, at: usize| shape.dims().and_then(|dims| dims[at]);
    let rows = dim(&a, usize::from(c.flag("transpose_a")));
    let cols = dim(&b, usize::from(!c.flag("transpose_b")));
    c.set(0, [rows, cols]);
    c.set(1, PartialShape::scalar());
    c.set(2, PartialShape::scalar());
    Ok(())
}
