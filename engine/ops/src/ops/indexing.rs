//! Array ops that choose elements by indices, or find them by value.

use super::shapes::{Inferred, first_input_lists, unchanged};
use engine_core::geometry::axis;
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, ShapeError, op, stateful};
use engine_core::shape::PartialShape;

const FOUND: &str = "T: type; out_idx: {int32, int64} = int32";
const FOUND_AXIS: &str = "T: type; Taxis: {int32, int64} = int64; out_idx: {int32, int64} = int32";
const BOUND: &str = "sorted_inputs: T, values: T -> output: out_type";
const BOUNDS: &str = "T: type; out_type: {int32, int64} = int32";
const TOP: &str = "sorted: bool = true; T: {reals}; Tk: {int16, int32, int64} = int32; \
                   index_type: {int16, int32, int64} = int32";

#[linkme::distributed_slice(OP_TABLES)]
static INDEXING: &[OpSpec] = &[
    op(
        "Gather",
        "params: Tparams, indices: Tindices -> output: Tparams",
        "validate_indices: bool = true; Tparams: type; Tindices: {int32, int64}",
        gather,
    ),
    op(
        "GatherNd",
        "params: Tparams, indices: Tindices -> output: Tparams",
        "Tparams: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''",
        gather_nd,
    ),
    op(
        "OneHot",
        "indices: TI, depth: int32, on_value: T, off_value: T -> output: T",
        "axis: int = -1; T: type; TI: {uint8, int8, int32, int64} = int64",
        one_hot,
    ),
    op("Where", "input: T -> index: int64", "T: {numbers, quantized, bool} = bool", nonzero),
    op("Unique", "x: T -> y: T, idx: out_idx", FOUND, unique),
    op("UniqueWithCounts", "x: T -> y: T, idx: out_idx, count: out_idx", FOUND, unique),
    op("UniqueV2", "x: T, axis: Taxis -> y: T, idx: out_idx", FOUND_AXIS, unique_axis),
    op("UniqueWithCountsV2", "x: T, axis: Taxis -> y: T, idx: out_idx, count: out_idx", FOUND_AXIS, unique_axis),
    op("ListDiff", "x: T, y: T -> out: T, idx: out_idx", FOUND, two_vectors),
    op("LowerBound", BOUND, BOUNDS, second),
    op("UpperBound", BOUND, BOUNDS, second),
    op("InvertPermutation", "x: T -> y: T", "T: {int32, int64} = int32", unchanged),
    op("ShapeN", "input: N * T -> output: N * out_type", "N: int; T: type; out_type: {int32, int64} = int32", shape_n),
    op("BroadcastArgs", "s0: T, s1: T -> r0: T", "T: {int32, int64} = int32", broadcast_args),
    op("LinSpace", "start: T, stop: T, num: Tidx -> output: T", "T: {floats}; Tidx: {int32, int64} = int32", lin_space),
    stateful("Empty", "shape: int32 -> output: dtype", "dtype: type; init: bool = false", first_input_lists),
    op("TopK", "input: T -> values: T, indices: int32", "k: int; sorted: bool = true; T: {reals}", top_k),
    op("TopKV2", "input: T, k: Tk -> values: T, indices: index_type", TOP, top_k),
    op("InTopK", "predictions: float, targets: T -> precision: bool", "k: int; T: {int32, int64} = int32", second),
    op("InTopKV2", "predictions: float, targets: T, k: T -> precision: bool", "T: {int32, int64} = int32", second),
];

const SCAN: &str = "x: T, axis: Tidx -> out: T";
const SCANNED: &str =
    "exclusive: bool = false; reverse: bool = false; T: {numbers, quantized}; Tidx: {int32, int64} = int32";
const SCANNED_FLOAT: &str = "exclusive: bool = false; reverse: bool = false; T: {floats}; Tidx: {int32, int64} = int32";

#[linkme::distributed_slice(OP_TABLES)]
static SCANS: &[OpSpec] = &[
    op("Cumsum", SCAN, SCANNED, unchanged),
    op("Cumprod", SCAN, SCANNED, unchanged),
    op("CumulativeLogsumexp", SCAN, SCANNED_FLOAT, unchanged),
    op("Bincount", "arr: int32, size: int32, weights: T -> bins: T", "T: {int32, int64, float, double}", bincount),
    op(
        "HistogramFixedWidth",
        "values: T, value_range: T, nbins: int32 -> out: dtype",
        "T: {int32, int64, float, double}; dtype: {int32, int64} = int32",
        histogram,
    ),
];

fn gather(c: &mut InferContext<'_>) -> Inferred {
    let (params, indices) = (c.input(0), c.input(1));
    if let (Some([_, rest @ ..]), Some(i)) = (params.dims(), indices.dims()) {
        let out = [i, rest].concat();
        c.set(0, PartialShape::new(&out));
    }
    Ok(())
}

fn gather_nd(c: &mut InferContext<'_>) -> Inferred {
    let (params, indices) = (c.input(0), c.input(1));
    if let (Some(p), Some([outer @ .., Some(depth)])) = (params.dims(), indices.dims()) {
        let rest =
            p.get(*depth..).ok_or_else(|| ShapeError(format!("indices {indices} go deeper than params {params}")))?;
        let out = [outer, rest].concat();
        c.set(0, PartialShape::new(&out));
    }
    Ok(())
}

fn one_hot(c: &mut InferContext<'_>) -> Inferred {
    let indices = c.input(0);
    let Some(dims) = indices.dims() else { return Ok(()) };
    let depth = c.ints(1).and_then(|d| d.first().copied()).and_then(|d| usize::try_from(d).ok());
    let mut out = dims.to_vec();
    out.insert(axis(c.int("axis").unwrap_or(-1), dims.len() + 1)?, depth);
    c.set(0, PartialShape::new(&out));
    Ok(())
}

fn nonzero(c: &mut InferContext<'_>) -> Inferred {
    let rank = c.input(0).rank();
    c.set(0, [None, rank]);
    Ok(())
}

fn unique(c: &mut InferContext<'_>) -> Inferred {
    let input = c.of_rank(0, 1)?;
    c.set(0, PartialShape::of_rank(1));
    c.set(1, input);
    if c.n_outputs() > 2 {
        c.set(2, PartialShape::of_rank(1));
    }
    Ok(())
}

fn unique_axis(c: &mut InferContext<'_>) -> Inferred {
    if let Some(rank) = c.input(0).rank() {
        c.set(0, PartialShape::of_rank(rank));
    }
    (1..c.n_outputs()).for_each(|i| c.set(i, PartialShape::of_rank(1)));
    Ok(())
}

fn two_vectors(c: &mut InferContext<'_>) -> Inferred {
    c.of_rank(0, 1)?;
    c.of_rank(1, 1)?;
    c.set(0, PartialShape::of_rank(1));
    c.set(1, PartialShape::of_rank(1));
    Ok(())
}

fn second(c: &mut InferContext<'_>) -> Inferred {
    let shape = c.input(1);
    c.set(0, shape);
    Ok(())
}

fn shape_n(c: &mut InferContext<'_>) -> Inferred {
    for i in 0..c.n_inputs() {
        let rank = c.input(i).rank();
        c.set(i, [rank]);
    }
    Ok(())
}

fn broadcast_args(c: &mut InferContext<'_>) -> Inferred {
    let (a, b) = (c.of_rank(0, 1)?, c.of_rank(1, 1)?);
    let n = |s: &PartialShape| s.dims().and_then(|d| d[0]);
    c.set(0, [n(&a).zip(n(&b)).map(|(a, b)| a.max(b))]);
    Ok(())
}

fn lin_space(c: &mut InferContext<'_>) -> Inferred {
    let n = c.ints(2).and_then(|n| n.first().copied()).and_then(|n| usize::try_from(n).ok());
    c.set(0, [n]);
    Ok(())
}

fn top_k(c: &mut InferContext<'_>) -> Inferred {
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(()) };
    let k = match c.int("k") {
        Some(k) => Some(k),
        None => c.ints(1).and_then(|k| k.first().copied()),
    };
    let k = k.and_then(|k| usize::try_from(k).ok());
    let Some((last, outer)) = dims.split_last() else {
        return Err(ShapeError::new("input must have at least one dimension"));
    };
    if last.zip(k).is_some_and(|(n, k)| n < k) {
        return Err(ShapeError(format!("input {input} has fewer than k = {} columns", k.unwrap_or(0))));
    }
    let out = [outer, &[k]].concat();
    c.set(0, PartialShape::new(&out));
    c.set(1, PartialShape::new(&out));
    Ok(())
}

fn bincount(c: &mut InferContext<'_>) -> Inferred {
    let n = c.ints(1).and_then(|n| n.first().copied()).and_then(|n| usize::try_from(n).ok());
    c.set(0, [n]);
    Ok(())
}

fn histogram(c: &mut InferContext<'_>) -> Inferred {
    let n = c.ints(2).and_then(|n| n.first().copied()).and_then(|n| usize::try_from(n).ok());
    c.set(0, [n]);
    Ok(())
}
