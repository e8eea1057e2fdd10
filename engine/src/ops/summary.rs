//! Summary ops: string tensors that hold a serialised `Summary` (white paper, section 9.1).

use super::shapes::scalar;
use super::{OP_TABLES, OpSpec, op};

#[linkme::distributed_slice(OP_TABLES)]
static SUMMARY: &[OpSpec] = &[
    op("ScalarSummary", "tags: string, values: T -> summary: string", "T: {reals}", scalar),
    op("HistogramSummary", "tag: string, values: T -> summary: string", "T: {reals} = float", scalar),
    op("MergeSummary", "inputs: N * string -> summary: string", "N: int", scalar),
    op(
        "ImageSummary",
        "tag: string, tensor: T -> summary: string",
        "max_images: int = 3; T: {uint8, float, half, double} = float; bad_color: tensor = uint8[255,0,0,255]",
        scalar,
    ),
    op(
        "AudioSummary",
        "tag: string, tensor: float -> summary: string",
        "sample_rate: float; max_outputs: int = 3",
        scalar,
    ),
    op(
        "AudioSummaryV2",
        "tag: string, tensor: float, sample_rate: float -> summary: string",
        "max_outputs: int = 3",
        scalar,
    ),
    op(
        "TensorSummary",
        "tensor: T -> summary: string",
        "T: type; description: string = ''; labels: list(string) = []; display_name: string = ''",
        scalar,
    ),
    op(
        "TensorSummaryV2",
        "tag: string, tensor: T, serialized_summary_metadata: string -> summary: string",
        "T: type",
        scalar,
    ),
];
