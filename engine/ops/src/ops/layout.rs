//! Array ops that move elements: pads, reversals, splits, blocks, diagonals.

use super::shapes::{Inferred, unchanged};
use engine_core::geometry::axis;
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpSpec, ShapeError, op, stateful};
use engine_core::shape::PartialShape;

const PADDED: &str = "input: T, paddings: Tpaddings -> output: T";
const PADDINGS: &str = "T: type; Tpaddings: {int32, int64} = int32";
const MIRROR: &str = "T: type; Tpaddings: {int32, int64} = int32; mode: string";
const BLOCK: &str = "T: type; block_size: int; data_format: string = 'NHWC'";
const SAME: &str = "input: T -> output: T";

#[linkme::distributed_slice(OP_TABLES)]
static MOVES: &[OpSpec] = &[
    op("Pad", PADDED, PADDINGS, pad),
    op("PadV2", "input: T, paddings: Tpaddings, constant_values: T -> output: T", PADDINGS, pad),
    op("MirrorPad", PADDED, MIRROR, pad),
    op("MirrorPadGrad", PADDED, MIRROR, unpad),
    op("Reverse", "tensor: T, dims: bool -> output: T", "T: {numbers, bool, string}", unchanged),
    op(
        "ReverseV2",
        "tensor: T, axis: Tidx -> output: T",
        "Tidx: {int32, int64} = int32; T: {numbers, bool, string}",
        unchanged,
    ),
    op(
        "ReverseSequence",
        "input: T, seq_lengths: Tlen -> output: T",
        "seq_dim: int; batch_dim: int = 0; T: type; Tlen: {int32, int64} = int64",
        unchanged,
    ),
    op(
        "Roll",
        "input: T, shift: Tshift, axis: Taxis -> output: T",
        "T: type; Tshift: {int32, int64}; Taxis: {int32, int64}",
        unchanged,
    ),
    op("Concat", "concat_dim: int32, values: N * T -> output: T", "N: int; T: type", concat),
    op(
        "ConcatOffset",
        "concat_dim: int32, shape: N * shape_type -> offset: N * shape_type",
        "N: int; shape_type: {int32, int64} = int32",
        concat_offset,
    ),
    op("Split", "split_dim: int32, value: T -> output: num_split * T", "num_split: int; T: type", split),
    op(
        "SplitV",
        "value: T, size_splits: Tlen, split_dim: int32 -> output: num_split * T",
        "num_split: int; T: type; Tlen: {int8, int32, int64} = int64",
        split_v,
    ),
    op(
        "ConjugateTranspose",
        "x: T, perm: Tperm -> y: T",
        "T: type; Tperm: {int32, int64} = int32",
        super::array::transpose,
    ),
    op(
        "SpaceToBatch",
        "input: T, paddings: Tpaddings -> output: T",
        "T: type; Tpaddings: {int32, int64} = int32; block_size: int",
        four,
    ),
    op(
        "SpaceToBatchND",
        "input: T, block_shape: Tblock_shape, paddings: Tpaddings -> output: T",
        "T: type; Tblock_shape: {int32, int64} = int32; Tpaddings: {int32, int64} = int32",
        space_to_batch,
    ),
    op(
        "BatchToSpace",
        "input: T, crops: Tidx -> output: T",
        "T: type; block_size: int; Tidx: {int32, int64} = int32",
        four,
    ),
    op(
        "BatchToSpaceND",
        "input: T, block_shape: Tblock_shape, crops: Tcrops -> output: T",
        "T: type; Tblock_shape: {int32, int64} = int32; Tcrops: {int32, int64} = int32",
        batch_to_space,
    ),
    op("SpaceToDepth", SAME, BLOCK, space_to_depth),
    op("DepthToSpace", SAME, BLOCK, depth_to_space),
    op(
        "ExtractImagePatches",
        "images: T -> patches: T",
        "ksizes: list(int); strides: list(int); rates: list(int); T: {numbers, bool}; padding: string",
        patches,
    ),
    op("PreventGradient", SAME, "T: type; message: string = ''", unchanged).view(),
    op("Snapshot", SAME, "T: type", unchanged).view(),
    op("EnsureShape", SAME, "shape: shape; T: type", ensure_shape),
    stateful("DeepCopy", "x: T -> y: T", "T: type", unchanged),
    op("Bitcast", "input: T -> output: type", "T: {numbers, quantized}; type: {numbers, quantized}", bitcast),
];

const DIAGONAL: &str = "T: {floats, complexes, int32, int64}";
const ALIGNED: &str = "T: type; align: string = 'RIGHT_LEFT'";
const DIAG_IN: &str = "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> output: T";

#[linkme::distributed_slice(OP_TABLES)]
static DIAGONALS: &[OpSpec] = &[
    op("Diag", "diagonal: T -> output: T", DIAGONAL, diag),
    op("DiagPart", "input: T -> diagonal: T", DIAGONAL, diag_part),
    op("MatrixDiag", "diagonal: T -> output: T", "T: type", matrix_diag),
    op("MatrixDiagV2", DIAG_IN, "T: type", matrix_diag_v3),
    op("MatrixDiagV3", DIAG_IN, ALIGNED, matrix_diag_v3),
    op("MatrixDiagPart", "input: T -> diagonal: T", "T: type", matrix_diag_part),
    op("MatrixDiagPartV2", "input: T, k: int32, padding_value: T -> diagonal: T", "T: type", matrix_diag_part_v3),
    op("MatrixDiagPartV3", "input: T, k: int32, padding_value: T -> diagonal: T", ALIGNED, matrix_diag_part_v3),
    op("MatrixSetDiag", "input: T, diagonal: T -> output: T", "T: type", unchanged),
    op("MatrixSetDiagV2", "input: T, diagonal: T, k: int32 -> output: T", "T: type", unchanged),
    op("MatrixSetDiagV3", "input: T, diagonal: T, k: int32 -> output: T", ALIGNED, unchanged),
    op(
        "MatrixBandPart",
        "input: T, num_lower: Tindex, num_upper: Tindex -> band: T",
        "T: type; Tindex: {int32, int64} = int64",
        unchanged,
    ),
    op("BatchMatrixBandPart", "input: T, num_lower: int64, num_upper: int64 -> band: T", "T: type", unchanged),
];

/// Each dimension with what is put before and behind it, where both are known.
fn padded(c: &InferContext<'_>, change: fn(usize, i64) -> Option<usize>) -> Result<PartialShape, ShapeError> {
    let (input, paddings) = (c.input(0), c.input(1));
    let Some(dims) = input.dims() else {
        return Ok(match paddings.dims() {
            Some([Some(rank), _]) => PartialShape::of_rank(*rank),
            _ => PartialShape::unknown(),
        });
    };
    c.merge(&paddings, &[Some(dims.len()), Some(2)].into())?;
    let Some(by) = c.ints(1) else { return Ok(PartialShape::of_rank(dims.len())) };
    let dim = |i: usize| {
        let total = by.get(2 * i).zip(by.get(2 * i + 1)).and_then(|(a, b)| a.checked_add(*b))?;
        change(dims[i]?, total)
    };
    Ok(PartialShape::new(&(0..dims.len()).map(dim).collect::<Vec<_>>()))
}

fn pad(c: &mut InferContext<'_>) -> Inferred {
    let shape = padded(c, |d, by| d.checked_add(usize::try_from(by).ok()?))?;
    c.set(0, shape);
    Ok(())
}

fn unpad(c: &mut InferContext<'_>) -> Inferred {
    let shape = padded(c, |d, by| d.checked_sub(usize::try_from(by).ok()?))?;
    c.set(0, shape);
    Ok(())
}

fn concat(c: &mut InferContext<'_>) -> Inferred {
    let shape = super::array::concatenated(c, 1..c.n_inputs(), c.ints(0).as_deref())?;
    c.set(0, shape);
    Ok(())
}

fn concat_offset(c: &mut InferContext<'_>) -> Inferred {
    for i in 1..c.n_inputs() {
        let shape = c.input(i);
        c.set(i - 1, shape);
    }
    Ok(())
}

/// The number of parts of a split.
fn n_parts(c: &InferContext<'_>) -> usize {
    c.int("num_split").and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

fn split(c: &mut InferContext<'_>) -> Inferred {
    let (n, input) = (n_parts(c), c.input(1));
    let Some(dims) = input.dims() else { return Ok(()) };
    let Some(&[at]) = c.ints(0).as_deref() else {
        (0..n).for_each(|i| c.set(i, PartialShape::of_rank(dims.len())));
        return Ok(());
    };
    let at = axis(at, dims.len())?;
    let mut dims = dims.to_vec();
    if let Some(d) = dims[at] {
        if n == 0 || !d.is_multiple_of(n) {
            return Err(ShapeError(format!("axis {at} of {input} does not split into {n} equal parts")));
        }
        dims[at] = Some(d / n);
    }
    (0..n).for_each(|i| c.set(i, PartialShape::new(&dims)));
    Ok(())
}

fn split_v(c: &mut InferContext<'_>) -> Inferred {
    let (n, input) = (n_parts(c), c.input(0));
    let Some(dims) = input.dims() else { return Ok(()) };
    let (Some(&[at]), sizes) = (c.ints(2).as_deref(), c.ints(1)) else {
        (0..n).for_each(|i| c.set(i, PartialShape::of_rank(dims.len())));
        return Ok(());
    };
    let at = axis(at, dims.len())?;
    for i in 0..n {
        let mut part = dims.to_vec();
        let own = sizes.as_ref().and_then(|s| s.get(i).copied());
        let others: i64 = sizes.iter().flatten().filter(|s| **s >= 0).sum();
        part[at] = match (own, dims[at]) {
            (Some(-1), Some(d)) => usize::try_from(others).ok().and_then(|o| d.checked_sub(o)),
            (Some(s), _) => usize::try_from(s).ok(),
            _ => None,
        };
        c.set(i, PartialShape::new(&part));
    }
    Ok(())
}

fn four(c: &mut InferContext<'_>) -> Inferred {
    c.of_rank(0, 4)?;
    c.set(0, PartialShape::of_rank(4));
    Ok(())
}

/// The blocks and paddings (or crops) of the spatial dimensions, where known.
fn blocks(c: &InferContext<'_>) -> Option<(Vec<usize>, Vec<i64>)> {
    let block: Option<Vec<usize>> = c.ints(1)?.iter().map(|b| usize::try_from(*b).ok().filter(|b| *b > 0)).collect();
    Some((block?, c.ints(2)?))
}

fn space_to_batch(c: &mut InferContext<'_>) -> Inferred {
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(()) };
    let Some((block, by)) = blocks(c).filter(|(b, by)| b.len() < dims.len() && by.len() == 2 * b.len()) else {
        c.set(0, PartialShape::of_rank(dims.len()));
        return Ok(());
    };
    let mut out = dims.to_vec();
    out[0] = out[0].and_then(|d| d.checked_mul(block.iter().product()));
    for (i, b) in block.iter().enumerate() {
        if let Some(d) = dims[i + 1] {
            let whole = usize::try_from(d as i64 + by[2 * i] + by[2 * i + 1]).ok().filter(|w| w.is_multiple_of(*b));
            let whole =
                whole.ok_or_else(|| ShapeError(format!("axis {} of {input} padded is no multiple of {b}", i + 1)))?;
            out[i + 1] = Some(whole / b);
        }
    }
    c.set(0, PartialShape::new(&out));
    Ok(())
}

fn batch_to_space(c: &mut InferContext<'_>) -> Inferred {
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(()) };
    let Some((block, by)) = blocks(c).filter(|(b, by)| b.len() < dims.len() && by.len() == 2 * b.len()) else {
        c.set(0, PartialShape::of_rank(dims.len()));
        return Ok(());
    };
    let n_blocks: usize = block.iter().product();
    let mut out = dims.to_vec();
    out[0] = dims[0].map(|d| d / n_blocks);
    for (i, b) in block.iter().enumerate() {
        out[i + 1] = dims[i + 1].and_then(|d| usize::try_from((d * b) as i64 - by[2 * i] - by[2 * i + 1]).ok());
    }
    c.set(0, PartialShape::new(&out));
    Ok(())
}

/// Where batch, channels and space are in a data format.
fn spatial(c: &InferContext<'_>) -> ([usize; 2], usize) {
    match c.attr("data_format") {
        Some(Attr::Str(s)) if s == b"NCHW" => ([2, 3], 1),
        _ => ([1, 2], 3),
    }
}

fn space_to_depth(c: &mut InferContext<'_>) -> Inferred {
    let b = c.int("block_size").and_then(|b| usize::try_from(b).ok()).filter(|b| *b > 0).unwrap_or(1);
    let Some(dims) = c.input(0).dims().map(<[_]>::to_vec).filter(|d| d.len() == 4) else { return Ok(()) };
    let (space, depth) = spatial(c);
    let mut out = dims.clone();
    space.iter().for_each(|i| out[*i] = dims[*i].map(|d| d / b));
    out[depth] = dims[depth].and_then(|d| d.checked_mul(b * b));
    c.set(0, PartialShape::new(&out));
    Ok(())
}

fn depth_to_space(c: &mut InferContext<'_>) -> Inferred {
    let b = c.int("block_size").and_then(|b| usize::try_from(b).ok()).filter(|b| *b > 0).unwrap_or(1);
    let Some(dims) = c.input(0).dims().map(<[_]>::to_vec).filter(|d| d.len() == 4) else { return Ok(()) };
    let (space, depth) = spatial(c);
    let mut out = dims.clone();
    space.iter().for_each(|i| out[*i] = dims[*i].and_then(|d| d.checked_mul(b)));
    out[depth] = dims[depth].map(|d| d / (b * b));
    c.set(0, PartialShape::new(&out));
    Ok(())
}

fn patches(c: &mut InferContext<'_>) -> Inferred {
    let input = c.of_rank(0, 4)?;
    c.set(0, [input.dims().and_then(|d| d[0]), None, None, None]);
    Ok(())
}

fn ensure_shape(c: &mut InferContext<'_>) -> Inferred {
    let Some(Attr::Shape(wanted)) = c.attr("shape") else { return Ok(()) };
    let shape = c.merge(&c.input(0), wanted)?;
    c.set(0, shape);
    Ok(())
}

/// Elements of another size come from, or make, an innermost dimension.
fn bitcast(c: &mut InferContext<'_>) -> Inferred {
    let input = c.input(0);
    let (Some(Attr::Type(from)), Some(Attr::Type(to))) = (c.attr("T"), c.attr("type")) else { return Ok(()) };
    let (from, to) = (from.size(), to.size());
    let Some(dims) = input.dims() else { return Ok(()) };
    let mut out = dims.to_vec();
    if from > to {
        out.push(Some(from / to));
    } else if from < to && out.pop().is_none_or(|d| d.is_some_and(|d| d != to / from)) {
        return Err(ShapeError(format!("the last dimension of {input} must be {}", to / from)));
    }
    c.set(0, PartialShape::new(&out));
    Ok(())
}

fn diag(c: &mut InferContext<'_>) -> Inferred {
    if let Some(dims) = c.input(0).dims() {
        let twice = [dims, dims].concat();
        c.set(0, PartialShape::new(&twice));
    }
    Ok(())
}

fn diag_part(c: &mut InferContext<'_>) -> Inferred {
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(()) };
    let (first, second) = dims.split_at(dims.len() / 2);
    if dims.is_empty() || first.len() != second.len() {
        return Err(ShapeError(format!("the rank of {input} is not even and positive")));
    }
    let shape = c.merge(&first.into(), &second.into())?;
    c.set(0, shape);
    Ok(())
}

fn matrix_diag(c: &mut InferContext<'_>) -> Inferred {
    if let Some(dims) = c.input(0).dims() {
        let mut out = dims.to_vec();
        out.push(dims.last().copied().flatten());
        c.set(0, PartialShape::new(&out));
    }
    Ok(())
}

fn matrix_diag_part(c: &mut InferContext<'_>) -> Inferred {
    let input = c.input(0);
    if let Some([batch @ .., m, n]) = input.dims() {
        let mut out = batch.to_vec();
        out.push(m.zip(*n).map(|(m, n)| m.min(n)));
        c.set(0, PartialShape::new(&out));
    }
    Ok(())
}

fn matrix_diag_v3(c: &mut InferContext<'_>) -> Inferred {
    let Some(rank) = c.input(0).rank() else { return Ok(()) };
    if let Some(k) = c.ints(1) {
        let bands = k.len() == 2 && k[0] != k[1];
        c.set(0, PartialShape::of_rank(rank + usize::from(!bands)));
    }
    Ok(())
}

fn matrix_diag_part_v3(c: &mut InferContext<'_>) -> Inferred {
    let Some(rank) = c.input(0).rank().filter(|r| *r >= 2) else { return Ok(()) };
    if let Some(k) = c.ints(1) {
        let bands = k.len() == 2 && k[0] != k[1];
        c.set(0, PartialShape::of_rank(rank - usize::from(!bands)));
    }
    Ok(())
}
