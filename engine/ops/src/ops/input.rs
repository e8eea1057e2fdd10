//! Getting data in: files, readers, records, examples, images, sound (white paper, section 4.5).

use super::shapes::{Inferred, none, scalar, unchanged};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpSpec, op, stateful};
use engine_core::shape::PartialShape;

const READER: &str = "-> reader_handle: resource";
const SHARED: &str = "container: string = ''; shared_name: string = ''";
const LINES: &str = "skip_header_lines: int = 0; container: string = ''; shared_name: string = ''";
const TFRECORD: &str = "container: string = ''; shared_name: string = ''; compression_type: string = ''";
const FIXED: &str = "header_bytes: int = 0; record_bytes: int; footer_bytes: int = 0; hop_bytes: int = 0; \
                     container: string = ''; shared_name: string = ''";
const FIXED_V2: &str = "header_bytes: int = 0; record_bytes: int; footer_bytes: int = 0; hop_bytes: int = 0; \
                        container: string = ''; shared_name: string = ''; encoding: string = ''";
const READ: &str = "reader_handle: resource, queue_handle: resource -> key: string, value: string";
const READ_UP_TO: &str =
    "reader_handle: resource, queue_handle: resource, num_records: int64 -> keys: string, values: string";
const COUNT: &str = "reader_handle: resource -> count: int64";
const OF_READER: &str = "reader_handle: resource ->";
const STATE: &str = "reader_handle: resource -> state: string";
const TO_READER: &str = "reader_handle: resource, state: string ->";

#[linkme::distributed_slice(OP_TABLES)]
static FILES: &[OpSpec] = &[
    stateful("ReadFile", "filename: string -> contents: string", "", scalar),
    stateful("WriteFile", "filename: string, contents: string ->", "", none),
    stateful("MatchingFiles", "pattern: string -> filenames: string", "", vector),
    stateful("TextLineReader", READER, LINES, scalar),
    stateful("TextLineReaderV2", READER, LINES, scalar),
    stateful("TFRecordReader", READER, TFRECORD, scalar),
    stateful("TFRecordReaderV2", READER, TFRECORD, scalar),
    stateful("FixedLengthRecordReader", READER, FIXED, scalar),
    stateful("FixedLengthRecordReaderV2", READER, FIXED_V2, scalar),
    stateful("WholeFileReader", READER, SHARED, scalar),
    stateful("WholeFileReaderV2", READER, SHARED, scalar),
    stateful("IdentityReader", READER, SHARED, scalar),
    stateful("IdentityReaderV2", READER, SHARED, scalar),
    stateful("ReaderRead", READ, "", scalars),
    stateful("ReaderReadV2", READ, "", scalars),
    stateful("ReaderReadUpTo", READ_UP_TO, "", vectors),
    stateful("ReaderReadUpToV2", READ_UP_TO, "", vectors),
    stateful("ReaderNumRecordsProduced", COUNT, "", scalar),
    stateful("ReaderNumRecordsProducedV2", COUNT, "", scalar),
    stateful("ReaderNumWorkUnitsCompleted", COUNT, "", scalar),
    stateful("ReaderNumWorkUnitsCompletedV2", COUNT, "", scalar),
    stateful("ReaderReset", OF_READER, "", none),
    stateful("ReaderResetV2", OF_READER, "", none),
    stateful("ReaderSerializeState", STATE, "", scalar),
    stateful("ReaderSerializeStateV2", STATE, "", scalar),
    stateful("ReaderRestoreState", TO_READER, "", none),
    stateful("ReaderRestoreStateV2", TO_READER, "", none),
];

const RAW_TYPES: &str = "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, \
                         complex128, bool, bfloat16}; little_endian: bool = true";
const CSV: &str = "OUT_TYPE: list(type); field_delim: string = ','; use_quote_delim: bool = true; \
                   na_value: string = ''; select_cols: list(int) = []";
const JPEG: &str = "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; \
                    try_recover_truncated: bool = false; acceptable_fraction: float = 1; dct_method: string = ''";
const EXAMPLE: &str = "Nsparse: int; Ndense: int; sparse_types: list(type); Tdense: list(type); \
                       dense_shapes: list(shape)";
const EXAMPLE_V2: &str = "Tdense: list(type); num_sparse: int; sparse_types: list(type); \
                          ragged_value_types: list(type); ragged_split_types: list(type); dense_shapes: list(shape)";
const SINGLE: &str = "num_sparse: int; sparse_keys: list(string); dense_keys: list(string); \
                      sparse_types: list(type); Tdense: list(type); dense_shapes: list(shape)";

#[linkme::distributed_slice(OP_TABLES)]
static DECODE: &[OpSpec] = &[
    op("DecodeRaw", "bytes: string -> output: out_type", RAW_TYPES, decode_raw),
    op("DecodePaddedRaw", "input_bytes: string, fixed_length: int32 -> output: out_type", RAW_TYPES, none),
    op("DecodeCSV", "records: string, record_defaults: OUT_TYPE -> output: OUT_TYPE", CSV, csv),
    op("DecodeCompressed", "bytes: string -> output: string", "compression_type: string = ''", unchanged),
    op("DecodePng", "contents: string -> image: dtype", "channels: int = 0; dtype: {uint8, uint16} = uint8", image),
    op("DecodeJpeg", "contents: string -> image: uint8", JPEG, image),
    op(
        "DecodeImage",
        "contents: string -> image: dtype",
        "channels: int = 0; dtype: {uint8, uint16, float} = uint8; expand_animations: bool = true",
        any_image,
    ),
    op("EncodePng", "image: T -> contents: string", "compression: int = -1; T: {uint8, uint16} = uint8", encode_png),
    op(
        "DecodeWav",
        "contents: string -> audio: float, sample_rate: int32",
        "desired_channels: int = -1; desired_samples: int = -1",
        wav,
    ),
    op("EncodeWav", "audio: float, sample_rate: int32 -> contents: string", "", scalar),
    op(
        "ParseExample",
        "serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: Ndense * string, \
         dense_defaults: Tdense -> sparse_indices: Nsparse * int64, sparse_values: sparse_types, \
         sparse_shapes: Nsparse * int64, dense_values: Tdense",
        EXAMPLE,
        |c| examples(c, true),
    ),
    op(
        "ParseExampleV2",
        "serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string, \
         dense_defaults: Tdense -> sparse_indices: num_sparse * int64, sparse_values: sparse_types, \
         sparse_shapes: num_sparse * int64, dense_values: Tdense, ragged_values: ragged_value_types, \
         ragged_row_splits: ragged_split_types",
        EXAMPLE_V2,
        none,
    ),
    op(
        "ParseSingleExample",
        "serialized: string, dense_defaults: Tdense -> sparse_indices: num_sparse * int64, \
         sparse_values: sparse_types, sparse_shapes: num_sparse * int64, dense_values: Tdense",
        SINGLE,
        |c| examples(c, false),
    ),
    op("ParseTensor", "serialized: string -> output: out_type", "out_type: type", none),
    op("SerializeTensor", "tensor: T -> serialized: string", "T: type", scalar),
];

fn vector(c: &mut InferContext<'_>) -> Inferred {
    c.set(0, PartialShape::of_rank(1));
    Ok(())
}

fn vectors(c: &mut InferContext<'_>) -> Inferred {
    c.set(1, PartialShape::of_rank(1));
    vector(c)
}

fn scalars(c: &mut InferContext<'_>) -> Inferred {
    c.set(1, PartialShape::scalar());
    scalar(c)
}

/// A dimension more: the numbers of each string.
fn decode_raw(c: &mut InferContext<'_>) -> Inferred {
    if let Some(dims) = c.input(0).dims() {
        let mut dims = dims.to_vec();
        dims.push(None);
        c.set(0, PartialShape::new(&dims));
    }
    Ok(())
}

fn csv(c: &mut InferContext<'_>) -> Inferred {
    for i in 0..c.n_outputs() {
        c.set(i, c.input(0));
    }
    Ok(())
}

fn image(c: &mut InferContext<'_>) -> Inferred {
    c.of_rank(0, 0)?;
    let channels = c.int("channels").and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    c.set(0, PartialShape::new(&[None, None, channels]));
    Ok(())
}

/// An animation would have a dimension more.
fn any_image(c: &mut InferContext<'_>) -> Inferred {
    match c.flag("expand_animations") {
        true => c.of_rank(0, 0).map(drop),
        false => image(c),
    }
}

fn encode_png(c: &mut InferContext<'_>) -> Inferred {
    if let Some(dims) = c.input(0).dims() {
        c.set(0, PartialShape::new(&dims[..dims.len().saturating_sub(3)]));
    }
    Ok(())
}

fn wav(c: &mut InferContext<'_>) -> Inferred {
    let known = |name: &str| c.int(name).and_then(|n| usize::try_from(n).ok());
    let shape = PartialShape::new(&[known("desired_samples"), known("desired_channels")]);
    c.set(0, shape);
    c.set(1, PartialShape::scalar());
    Ok(())
}

/// Outputs: indices, values and shapes of the sparse ones, then the dense ones.
fn examples(c: &mut InferContext<'_>, is_batch: bool) -> Inferred {
    let n_dense = match c.attr("Tdense") {
        Some(Attr::ListType(types)) => types.len(),
        _ => 0,
    };
    let n_sparse = c.n_outputs().saturating_sub(n_dense) / 3;
    let rank = if is_batch { 2 } else { 1 };
    for i in 0..n_sparse {
        c.set(i, PartialShape::new(&[None, Some(rank)]));
        c.set(n_sparse + i, PartialShape::of_rank(1));
        c.set(2 * n_sparse + i, PartialShape::new(&[Some(rank)]));
    }
    let batch = if is_batch { c.input(0).dims().and_then(|d| d.first().copied()).flatten() } else { None };
    let Some(Attr::ListShape(shapes)) = c.attr("dense_shapes").cloned() else { return Ok(()) };
    for (i, shape) in shapes.iter().enumerate().take(n_dense) {
        let Some(dims) = shape.dims() else { continue };
        let mut all = if is_batch { vec![batch] } else { Vec::new() };
        all.extend_from_slice(dims);
        c.set(3 * n_sparse + i, PartialShape::new(&all));
    }
    Ok(())
}
