//! Samplers of candidate classes, for losses that look at few of many classes (noise-contrastive, sampled softmax).

use super::shapes::Inferred;
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, op, random};

const SAMPLER: &str = "num_true: int; num_sampled: int; unique: bool; range_max: int; seed: int = 0; seed2: int = 0";
const SAMPLED: &str = "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, \
                       sampled_expected_count: float";

#[linkme::distributed_slice(OP_TABLES)]
static CANDIDATES: &[OpSpec] = &[
    random("UniformCandidateSampler", SAMPLED, SAMPLER, sampled),
    random("LogUniformCandidateSampler", SAMPLED, SAMPLER, sampled),
    op(
        "ComputeAccidentalHits",
        "true_classes: int64, sampled_candidates: int64 -> indices: int32, ids: int64, weights: float",
        "num_true: int; seed: int = 0; seed2: int = 0",
        |c| {
            c.of_rank(0, 2)?;
            (0..3).for_each(|i| c.set(i, [None]));
            Ok(())
        },
    ),
];

fn sampled(c: &mut InferContext<'_>) -> Inferred {
    let n = c.int("num_sampled").and_then(|n| usize::try_from(n).ok());
    let classes = c.of_rank(0, 2)?;
    c.set(0, [n]);
    c.set(1, classes);
    c.set(2, [n]);
    Ok(())
}
