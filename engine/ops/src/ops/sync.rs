//! What steps synchronise by: mutexes, and accumulators of gradients (white paper, sections 4.6 and 7).
//!
//! A lock and a first-version accumulator, which TensorFlow passes as a variant and a reference to a string, are
//! resources here.

use super::shapes::{Inferred, none, scalar};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpSpec, checks, stateful};

const SHARED: &str = "container: string = ''; shared_name: string = ''";
const ACCUMULATOR: &str = "dtype: {float, double, half, bfloat16, int32, int64}; shape: shape; container: string = ''; \
                           shared_name: string = ''; reduction_type: string = 'MEAN'";
const T: &str = "dtype: {float, double, half, bfloat16, int32, int64}";
const APPLY: &str = "handle: resource, local_step: int64, gradient: dtype ->";
const APPLY_SPARSE: &str = "handle: resource, local_step: int64, gradient_indices: int64, gradient_values: dtype, \
                            gradient_shape: int64 ->";
const SPARSE_T: &str = "dtype: {float, double, half, bfloat16, int32, int64}; has_known_shape: bool";
const TAKE: &str = "handle: resource, num_required: int32 -> average: dtype";
const TAKE_SPARSE: &str = "handle: resource, num_required: int32 -> indices: int64, values: dtype, shape: int64";
const COUNT: &str = "handle: resource -> num_accumulated: int32";
const SET: &str = "handle: resource, new_global_step: int64 ->";

#[linkme::distributed_slice(OP_TABLES)]
static SYNC: &[OpSpec] = &[
    stateful("MutexV2", "-> resource: resource", SHARED, scalar),
    stateful("MutexLock", "mutex: resource -> mutex_lock: resource", "", scalar),
    stateful("ConsumeMutexLock", "mutex_lock: resource ->", "", none),
    stateful("ConditionalAccumulator", "-> handle: resource", ACCUMULATOR, scalar),
    stateful("ResourceConditionalAccumulator", "-> handle: resource", ACCUMULATOR, scalar),
    stateful("AccumulatorApplyGradient", APPLY, T, none),
    stateful("ResourceAccumulatorApplyGradient", APPLY, T, none),
    stateful("AccumulatorTakeGradient", TAKE, T, taken),
    stateful("ResourceAccumulatorTakeGradient", TAKE, T, taken),
    stateful("AccumulatorNumAccumulated", COUNT, "", scalar),
    stateful("ResourceAccumulatorNumAccumulated", COUNT, "", scalar),
    stateful("AccumulatorSetGlobalStep", SET, "", none),
    stateful("ResourceAccumulatorSetGlobalStep", SET, "", none),
    stateful("SparseConditionalAccumulator", "-> handle: resource", ACCUMULATOR, scalar),
    stateful("SparseAccumulatorApplyGradient", APPLY_SPARSE, SPARSE_T, none),
    stateful("SparseAccumulatorTakeGradient", TAKE_SPARSE, T, none),
    checks("CheckNumerics", "tensor: T -> output: T", "T: {bfloat16, half, float, double}; message: string", same),
    checks("CheckNumericsV2", "tensor: T -> output: T", "T: {bfloat16, half, float, double}; message: string", same),
];

fn same(c: &mut InferContext<'_>) -> Inferred {
    super::shapes::unchanged(c)
}

fn taken(c: &mut InferContext<'_>) -> Inferred {
    if let Some(Attr::Shape(shape)) = c.source_attr(0, "shape").cloned() {
        c.set(0, shape);
    }
    Ok(())
}
