//! Summary ops: string tensors that hold a serialised `Summary` (white paper, section 9.1).

use super::shapes::scalar;
use super::{OP_TABLES, OpSpec, op};

const T: &str = "T: {float, double, int32, int64, uint8} = float";

#[linkme::distributed_slice(OP_TABLES)]
static SUMMARY: &[OpSpec] = &[
    op("ScalarSummary", "tags: string, values: T -> summary: string", T, scalar),
    op("HistogramSummary", "tag: string, values: T -> summary: string", T, scalar),
    op("MergeSummary", "inputs: N * string -> summary: string", "N: int", scalar),
];
