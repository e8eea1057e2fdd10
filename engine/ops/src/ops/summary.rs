//! Summary ops: string tensors that hold a serialised `Summary` (white paper, section 9.1), and ops that write event files where they run.

use super::shapes::{none, scalar};
use engine_core::ops::{OP_TABLES, OpSpec, op, stateful};

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

#[linkme::distributed_slice(OP_TABLES)]
static WRITERS: &[OpSpec] = &[
    stateful("SummaryWriter", "-> writer: resource", "shared_name: string = ''; container: string = ''", scalar),
    stateful(
        "CreateSummaryFileWriter",
        "writer: resource, logdir: string, max_queue: int32, flush_millis: int32, filename_suffix: string ->",
        "",
        none,
    ),
    stateful("FlushSummaryWriter", "writer: resource ->", "", none),
    stateful("CloseSummaryWriter", "writer: resource ->", "", none),
    stateful(
        "WriteSummary",
        "writer: resource, step: int64, tensor: T, tag: string, summary_metadata: string ->",
        "T: type",
        none,
    ),
    stateful("WriteRawProtoSummary", "writer: resource, step: int64, tensor: string ->", "", none),
    stateful("ImportEvent", "writer: resource, event: string ->", "", none),
    stateful("WriteScalarSummary", "writer: resource, step: int64, tag: string, value: T ->", "T: {reals}", none),
    stateful(
        "WriteHistogramSummary",
        "writer: resource, step: int64, tag: string, values: T ->",
        "T: {reals} = float",
        none,
    ),
    stateful("WriteGraphSummary", "writer: resource, step: int64, tensor: string ->", "", none),
    stateful("Timestamp", "-> ts: double", "", scalar),
];
