//! Normalisation: of batches, and of responses across neighbouring channels.

use super::shapes::{Inferred, all_equal, unchanged};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpSpec, ShapeError, op};
use engine_core::shape::PartialShape;

const BATCH: &str = "T: {floats}; epsilon: float = 0.0001; exponential_avg_factor: float = 1; \
                     data_format: string = 'NHWC'; is_training: bool = true";
const BATCH_V2: &str = "T: {floats}; U: {floats}; epsilon: float = 0.0001; \
                        exponential_avg_factor: float = 1; data_format: string = 'NHWC'; is_training: bool = true";
const BATCH_GRAD: &str = "T: {floats}; epsilon: float = 0.0001; data_format: string = 'NHWC'; is_training: bool = true";
const BATCH_GRAD_V2: &str = "T: {floats}; U: {floats}; epsilon: float = 0.0001; \
                             data_format: string = 'NHWC'; is_training: bool = true";
const GLOBAL: &str = "T: {floats}; variance_epsilon: float; scale_after_normalization: bool";
const LRN: &str = "depth_radius: int = 5; bias: float = 1; alpha: float = 1; beta: float = 0.5; \
                   T: {floats} = float";

#[linkme::distributed_slice(OP_TABLES)]
static NORM: &[OpSpec] = &[
    op(
        "FusedBatchNorm",
        "x: T, scale: T, offset: T, mean: T, variance: T -> y: T, batch_mean: T, batch_variance: T, \
         reserve_space_1: T, reserve_space_2: T",
        BATCH,
        fused,
    ),
    op(
        "FusedBatchNormV2",
        "x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U, batch_variance: U, \
         reserve_space_1: U, reserve_space_2: U",
        BATCH_V2,
        fused,
    ),
    op(
        "FusedBatchNormV3",
        "x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U, batch_variance: U, \
         reserve_space_1: U, reserve_space_2: U, reserve_space_3: U",
        BATCH_V2,
        |c| {
            fused(c)?;
            c.set(5, PartialShape::of_rank(1));
            Ok(())
        },
    ),
    op(
        "FusedBatchNormGrad",
        "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T -> x_backprop: T, \
         scale_backprop: T, offset_backprop: T, reserve_space_3: T, reserve_space_4: T",
        BATCH_GRAD,
        fused_grad,
    ),
    op(
        "FusedBatchNormGradV2",
        "y_backprop: T, x: T, scale: U, reserve_space_1: U, reserve_space_2: U -> x_backprop: T, \
         scale_backprop: U, offset_backprop: U, reserve_space_3: U, reserve_space_4: U",
        BATCH_GRAD_V2,
        fused_grad,
    ),
    op(
        "FusedBatchNormGradV3",
        "y_backprop: T, x: T, scale: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U -> \
         x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_4: U, reserve_space_5: U",
        BATCH_GRAD_V2,
        fused_grad,
    ),
    op("BatchNormWithGlobalNormalization", "t: T, m: T, v: T, beta: T, gamma: T -> result: T", GLOBAL, global),
    op(
        "BatchNormWithGlobalNormalizationGrad",
        "t: T, m: T, v: T, gamma: T, backprop: T -> dx: T, dm: T, dv: T, db: T, dg: T",
        GLOBAL,
        |c| {
            let channels = channels_of(c, 0, 3, 1..4)?;
            let x = c.merge(&c.of_rank(0, 4)?, &c.input(4))?;
            c.set(0, x);
            (1..5).for_each(|i| c.set(i, [channels]));
            Ok(())
        },
    ),
    op("LRN", "input: T -> output: T", LRN, |c| {
        c.of_rank(0, 4)?;
        unchanged(c)
    }),
    op("LRNGrad", "input_grads: T, input_image: T, output_image: T -> output: T", LRN, all_equal),
];

/// The channels of input `i`, at `axis`, with what the vectors `of` say of their number.
fn channels_of(
    c: &InferContext<'_>,
    i: usize,
    axis: usize,
    of: std::ops::Range<usize>,
) -> Result<Option<usize>, ShapeError> {
    let mut channels = PartialShape::from([c.input(i).dims().and_then(|d| d.get(axis).copied()).flatten()]);
    for vector in of {
        channels = c.merge(&channels, &c.of_rank(vector, 1)?)?;
    }
    Ok(channels.dims().and_then(|d| d[0]))
}

/// Rank and channel axis of the data format.
fn layout(c: &InferContext<'_>) -> (usize, usize) {
    match c.attr("data_format") {
        Some(Attr::Str(s)) => match s.as_slice() {
            b"NCHW" => (4, 1),
            b"NDHWC" => (5, 4),
            b"NCDHW" => (5, 1),
            _ => (4, 3),
        },
        _ => (4, 3),
    }
}

fn fused(c: &mut InferContext<'_>) -> Inferred {
    let (rank, axis) = layout(c);
    let x = c.of_rank(0, rank)?;
    let statistics = if c.flag("is_training") { 1..3 } else { 1..5 };
    let channels = channels_of(c, 0, axis, statistics)?;
    c.set(0, x);
    (1..5).for_each(|i| c.set(i, [channels]));
    Ok(())
}

fn fused_grad(c: &mut InferContext<'_>) -> Inferred {
    let (rank, axis) = layout(c);
    let x = c.merge(&c.of_rank(0, rank)?, &c.input(1))?;
    let channels = channels_of(c, 1, axis, 2..5)?;
    c.set(0, x);
    (1..3).for_each(|i| c.set(i, [channels]));
    (3..5).for_each(|i| c.set(i, [0]));
    Ok(())
}

fn global(c: &mut InferContext<'_>) -> Inferred {
    channels_of(c, 0, 3, 1..5)?;
    let x = c.of_rank(0, 4)?;
    c.set(0, x);
    Ok(())
}
