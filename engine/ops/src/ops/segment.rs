//! Segment ops: rows reduced by segment, dealt out to parts, put together.

use super::shapes::Inferred;
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, ShapeError, op};
use engine_core::shape::PartialShape;

const SORTED: &str = "T: {numbers}; Tindices: {int32, int64}";
const UNSORTED: &str = "T: {numbers}; Tindices: {int16, int32, int64}; Tnumsegments: {int32, int64} = int32";
const SPARSE: &str = "T: {numbers}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; \
                      sparse_gradient: bool = false";
const SPARSE_COUNTED: &str = "T: {numbers}; Tidx: {int32, int64} = int32; Tnumsegments: {int32, int64} = int32; \
                              Tsegmentids: {int32, int64} = int32; sparse_gradient: bool = false";
const SPARSE_GRAD: &str = "T: {numbers}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32";
const IDS: &str = "data: T, segment_ids: Tindices -> output: T";
const IDS_COUNTED: &str = "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T";
const CHOSEN: &str = "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T";
const CHOSEN_COUNTED: &str =
    "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments -> output: T";
const CHOSEN_GRAD: &str = "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32 -> output: T";
const STITCH: &str = "indices: N * int32, data: N * T -> merged: T";

#[linkme::distributed_slice(OP_TABLES)]
static SEGMENT: &[OpSpec] = &[
    op("SegmentSum", IDS, SORTED, sorted),
    op("SegmentMean", IDS, SORTED, sorted),
    op("SegmentProd", IDS, SORTED, sorted),
    op("SegmentMin", IDS, SORTED, sorted),
    op("SegmentMax", IDS, SORTED, sorted),
    op("SegmentSumV2", IDS_COUNTED, UNSORTED, |c| counted(c, 2)),
    op("SegmentProdV2", IDS_COUNTED, UNSORTED, |c| counted(c, 2)),
    op("SegmentMinV2", IDS_COUNTED, UNSORTED, |c| counted(c, 2)),
    op("SegmentMaxV2", IDS_COUNTED, UNSORTED, |c| counted(c, 2)),
    op("UnsortedSegmentSum", IDS_COUNTED, UNSORTED, |c| counted(c, 2)),
    op("UnsortedSegmentProd", IDS_COUNTED, UNSORTED, |c| counted(c, 2)),
    op("UnsortedSegmentMin", IDS_COUNTED, UNSORTED, |c| counted(c, 2)),
    op("UnsortedSegmentMax", IDS_COUNTED, UNSORTED, |c| counted(c, 2)),
    op("SparseSegmentSum", CHOSEN, SPARSE, chosen),
    op("SparseSegmentMean", CHOSEN, SPARSE, chosen),
    op("SparseSegmentSqrtN", CHOSEN, SPARSE, chosen),
    op("SparseSegmentSumWithNumSegments", CHOSEN_COUNTED, SPARSE_COUNTED, chosen_counted),
    op("SparseSegmentMeanWithNumSegments", CHOSEN_COUNTED, SPARSE_COUNTED, chosen_counted),
    op("SparseSegmentSqrtNWithNumSegments", CHOSEN_COUNTED, SPARSE_COUNTED, chosen_counted),
    op("SparseSegmentSumGrad", CHOSEN_GRAD, SPARSE_GRAD, chosen_counted),
    op("SparseSegmentMeanGrad", CHOSEN_GRAD, SPARSE_GRAD, chosen_counted),
    op("SparseSegmentSqrtNGrad", CHOSEN_GRAD, SPARSE_GRAD, chosen_counted),
    op(
        "DynamicPartition",
        "data: T, partitions: int32 -> outputs: num_partitions * T",
        "num_partitions: int; T: type",
        parts,
    ),
    op("DynamicStitch", STITCH, "N: int; T: type", stitch),
    op("ParallelDynamicStitch", STITCH, "N: int; T: type", stitch),
];

/// `n` rows such as those of input 0 behind its first `skipped` dimensions.
fn rows(c: &InferContext<'_>, n: Option<usize>, skipped: usize) -> Result<PartialShape, ShapeError> {
    let data = c.input(0);
    let Some(dims) = data.dims() else { return Ok(PartialShape::unknown()) };
    let rest = dims.get(skipped..).ok_or_else(|| ShapeError::new("the ids have more dimensions than the data"))?;
    Ok(PartialShape::new(&[&[n], rest].concat()))
}

/// The value of input `i` as a count, where it is known.
fn count(c: &InferContext<'_>, i: usize) -> Result<Option<usize>, ShapeError> {
    match c.ints(i).as_deref() {
        Some([n]) => usize::try_from(*n).map(Some).map_err(|_| ShapeError(format!("{n} segments"))),
        _ => Ok(None),
    }
}

fn sorted(c: &mut InferContext<'_>) -> Inferred {
    c.of_rank(1, 1)?;
    let shape = rows(c, None, 1)?;
    c.set(0, shape);
    Ok(())
}

fn counted(c: &mut InferContext<'_>, at: usize) -> Inferred {
    let n = count(c, at)?;
    let Some(rank) = c.input(1).rank() else { return Ok(()) };
    let shape = rows(c, n, rank)?;
    c.set(0, shape);
    Ok(())
}

fn chosen(c: &mut InferContext<'_>) -> Inferred {
    c.merge(&c.of_rank(1, 1)?, &c.of_rank(2, 1)?)?;
    let shape = rows(c, None, 1)?;
    c.set(0, shape);
    Ok(())
}

fn chosen_counted(c: &mut InferContext<'_>) -> Inferred {
    c.merge(&c.of_rank(1, 1)?, &c.of_rank(2, 1)?)?;
    let n = count(c, 3)?;
    let shape = rows(c, n, 1)?;
    c.set(0, shape);
    Ok(())
}

fn parts(c: &mut InferContext<'_>) -> Inferred {
    let Some(rank) = c.input(1).rank() else { return Ok(()) };
    let shape = rows(c, None, rank)?;
    (0..c.n_outputs()).for_each(|i| c.set(i, shape.clone()));
    Ok(())
}

fn stitch(c: &mut InferContext<'_>) -> Inferred {
    let n = c.n_inputs() / 2;
    let mut inner = PartialShape::unknown();
    let mut last = Some(-1);
    for i in 0..n {
        last = last.zip(c.ints(i)).map(|(last, ints)| ints.into_iter().fold(last, i64::max));
        let (data, index) = (c.input(n + i), c.input(i));
        if let (Some(data), Some(rank)) = (data.dims(), index.rank()) {
            let rest = data.get(rank..).ok_or_else(|| ShapeError::new("indices have more dimensions than the data"))?;
            inner = c.merge(&inner, &PartialShape::new(rest))?;
        }
    }
    let Some(inner) = inner.dims() else { return Ok(()) };
    let n_rows = last.and_then(|last| usize::try_from(last + 1).ok());
    c.set(0, PartialShape::new(&[&[n_rows], inner].concat()));
    Ok(())
}
