//! Array ops: constants and placeholders, shapes, and moving elements about.

use super::shapes::{Inferred, first_input_lists, from_value, none, scalar, second_input_lists, shape_attr, unchanged};
use engine_core::geometry::{axis, permutation, reshaped};
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpKind as K, OpSpec, ShapeError, op};
use engine_core::shape::PartialShape;
use engine_core::strided::{self, Masks};

const T: &str = "T: type";
const OUT: &str = "T: type; out_type: {int32, int64} = int32";
const STRIDED: &str = "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; \
                       ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0";

#[linkme::distributed_slice(OP_TABLES)]
static ARRAY: &[OpSpec] = &[
    op("Placeholder", "-> output: dtype", "dtype: type; shape: shape = unknown", shape_attr).kind(K::Placeholder),
    op("PlaceholderWithDefault", "input: dtype -> output: dtype", "dtype: type; shape: shape", shape_attr)
        .kind(K::PlaceholderWithDefault),
    op("Const", "-> output: dtype", "value: tensor; dtype: type", constant).kind(K::Const),
    op("NoOp", "->", "", none).kind(K::NoOp),
    op("Identity", "input: T -> output: T", T, unchanged).kind(K::Identity).view(),
    op("StopGradient", "input: T -> output: T", T, unchanged).view(),
    op("ZerosLike", "x: T -> y: T", T, unchanged),
    op("OnesLike", "x: T -> y: T", T, unchanged),
    op("Shape", "input: T -> output: out_type", OUT, shape),
    op("Size", "input: T -> output: out_type", OUT, scalar),
    op("Rank", "input: T -> output: int32", T, scalar),
    op("Reshape", "tensor: T, shape: Tshape -> output: T", "T: type; Tshape: {int32, int64} = int32", reshape).view(),
    op(
        "Fill",
        "dims: index_type, value: T -> output: T",
        "T: type; index_type: {int32, int64} = int32",
        first_input_lists,
    ),
    op(
        "BroadcastTo",
        "input: T, shape: Tidx -> output: T",
        "T: type; Tidx: {int32, int64} = int32",
        second_input_lists,
    ),
    op("BroadcastGradientArgs", "s0: T, s1: T -> r0: T, r1: T", "T: {int32, int64} = int32", vectors),
    op("ExpandDims", "input: T, dim: Tdim -> output: T", "T: type; Tdim: {int32, int64} = int32", expand_dims).view(),
    op("Squeeze", "input: T -> output: T", "T: type; squeeze_dims: list(int) = []", squeeze).view(),
    op("Transpose", "x: T, perm: Tperm -> y: T", "T: type; Tperm: {int32, int64} = int32", transpose),
    op("ConcatV2", "values: N * T, axis: Tidx -> output: T", "N: int; T: type; Tidx: {int32, int64} = int32", concat),
    op("Pack", "values: N * T -> output: T", "N: int; T: type; axis: int = 0", pack),
    op("Unpack", "value: T -> output: num * T", "num: int; T: type; axis: int = 0", unpack),
    op("Slice", "input: T, begin: Index, size: Index -> output: T", "T: type; Index: {int32, int64}", slice),
    op("StridedSlice", "input: T, begin: Index, end: Index, strides: Index -> output: T", STRIDED, strided_slice),
    op(
        "StridedSliceGrad",
        "shape: Index, begin: Index, end: Index, strides: Index, dy: T -> output: T",
        STRIDED,
        first_input_lists,
    ),
    op("Tile", "input: T, multiples: Tmultiples -> output: T", "T: type; Tmultiples: {int32, int64} = int32", tile),
    op(
        "GatherV2",
        "params: Tparams, indices: Tindices, axis: Taxis -> output: Tparams",
        "batch_dims: int = 0; Tparams: type; Tindices: {int16, int32, int64}; Taxis: {int32, int64}",
        gather,
    ),
];

fn constant(c: &mut InferContext<'_>) -> Inferred {
    // A value of another type than the node says is an error of the steps that run the node.
    let Some(Attr::Tensor(value)) = c.attr("value") else { return Ok(()) };
    let shape = PartialShape::from(value.shape());
    c.set(0, shape);
    Ok(())
}

fn shape(c: &mut InferContext<'_>) -> Inferred {
    let rank = c.input(0).rank();
    c.set(0, [rank]);
    Ok(())
}

fn vectors(c: &mut InferContext<'_>) -> Inferred {
    c.set(0, PartialShape::of_rank(1));
    c.set(1, PartialShape::of_rank(1));
    Ok(())
}

fn reshape(c: &mut InferContext<'_>) -> Inferred {
    let wanted = from_value(c, 1)?;
    let shape = match (c.input(0).known(), c.ints(1)) {
        (Some(of), Some(sizes)) => reshaped(&of, &sizes)?.into(),
        _ => wanted,
    };
    c.set(0, shape);
    Ok(())
}

fn expand_dims(c: &mut InferContext<'_>) -> Inferred {
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(()) };
    match c.ints(1).as_deref() {
        Some([at]) => {
            let mut out = dims.to_vec();
            out.insert(axis(*at, dims.len() + 1)?, Some(1));
            c.set(0, PartialShape::new(&out));
        }
        _ => c.set(0, PartialShape::of_rank(dims.len() + 1)),
    }
    Ok(())
}

fn strided_slice(c: &mut InferContext<'_>) -> Inferred {
    let (input, length) = (c.input(0), c.input(1).dims().and_then(|dims| *dims.first()?));
    let (Some(dims), Some(n)) = (input.dims(), length) else { return Ok(()) };
    let known = (|| Some([c.ints(1)?, c.ints(2)?, c.ints(3)?]))();
    let masks = Masks::of(c.attrs());
    let shape = strided::shape(dims, &masks, n, known.as_ref())?;
    c.set(0, PartialShape::new(&shape));
    Ok(())
}

fn squeeze(c: &mut InferContext<'_>) -> Inferred {
    let input = c.input(0);
    let (Some(dims), Some(Attr::ListInt(axes))) = (input.dims(), c.attr("squeeze_dims")) else { return Ok(()) };
    if axes.is_empty() {
        if dims.iter().all(Option::is_some) {
            let out: Vec<_> = dims.iter().copied().filter(|d| *d != Some(1)).collect();
            c.set(0, PartialShape::new(&out));
        }
        return Ok(());
    }
    let axes = axes.iter().map(|a| axis(*a, dims.len())).collect::<Result<Vec<_>, _>>()?;
    if let Some(a) = axes.iter().find(|a| dims[**a].is_some_and(|d| d != 1)) {
        return Err(ShapeError(format!("cannot squeeze axis {a} of {input}: it is not 1")));
    }
    let out: Vec<_> = dims.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| *d).collect();
    c.set(0, PartialShape::new(&out));
    Ok(())
}

pub(super) fn transpose(c: &mut InferContext<'_>) -> Inferred {
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(()) };
    let Some(perm) = c.ints(1) else {
        c.set(0, PartialShape::of_rank(dims.len()));
        return Ok(());
    };
    let out: Vec<_> = permutation(&perm, dims.len())?.iter().map(|axis| dims[*axis]).collect();
    c.set(0, PartialShape::new(&out));
    Ok(())
}

fn concat(c: &mut InferContext<'_>) -> Inferred {
    let n = c.n_inputs() - 1;
    let shape = concatenated(c, 0..n, c.ints(n).as_deref())?;
    c.set(0, shape);
    Ok(())
}

/// The shape of the inputs `parts`, one behind the other along the axis `at`.
pub(super) fn concatenated(
    c: &InferContext<'_>,
    parts: std::ops::Range<usize>,
    at: Option<&[i64]>,
) -> Result<PartialShape, ShapeError> {
    let Some(rank) = parts.clone().find_map(|i| c.input(i).rank()) else { return Ok(PartialShape::unknown()) };
    let Some(&[at]) = at else { return Ok(PartialShape::of_rank(rank)) };
    let at = axis(at, rank)?;
    let mut total = Some(0usize);
    let mut rest = PartialShape::of_rank(rank);
    for i in parts {
        let mut dims = c.of_rank(i, rank)?.dims().unwrap_or_default().to_vec();
        total = total.zip(dims[at]).and_then(|(t, d)| t.checked_add(d));
        dims[at] = None;
        rest = c.merge(&rest, &PartialShape::new(&dims))?;
    }
    let mut dims = rest.dims().unwrap_or_default().to_vec();
    dims[at] = total;
    Ok(PartialShape::new(&dims))
}

fn pack(c: &mut InferContext<'_>) -> Inferred {
    let n = c.n_inputs();
    let mut shape = PartialShape::unknown();
    for i in 0..n {
        shape = c.merge(&shape, &c.input(i))?;
    }
    let Some(dims) = shape.dims() else { return Ok(()) };
    let mut dims = dims.to_vec();
    dims.insert(axis(c.int("axis").unwrap_or(0), dims.len() + 1)?, Some(n));
    c.set(0, PartialShape::new(&dims));
    Ok(())
}

fn unpack(c: &mut InferContext<'_>) -> Inferred {
    let n = c.int("num").and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(()) };
    let mut dims = dims.to_vec();
    let got = dims.remove(axis(c.int("axis").unwrap_or(0), dims.len())?);
    if got.is_some_and(|got| got != n) {
        return Err(ShapeError(format!("attribute num is {n}, the axis has {}", got.unwrap_or(0))));
    }
    (0..n).for_each(|i| c.set(i, PartialShape::new(&dims)));
    Ok(())
}

fn slice(c: &mut InferContext<'_>) -> Inferred {
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(()) };
    let (begin, size) = (c.ints(1), c.ints(2));
    let dim = |i: usize| match (begin.as_ref()?.get(i)?, size.as_ref()?.get(i)?) {
        (b, -1) => dims[i]?.checked_sub(usize::try_from(*b).ok()?),
        (_, s) => usize::try_from(*s).ok(),
    };
    c.set(0, PartialShape::new(&(0..dims.len()).map(dim).collect::<Vec<_>>()));
    Ok(())
}

fn tile(c: &mut InferContext<'_>) -> Inferred {
    let input = c.input(0);
    let Some(dims) = input.dims() else { return Ok(()) };
    let multiples = from_value(c, 1)?;
    let dim = |i: usize| dims[i]?.checked_mul((*multiples.dims()?.get(i)?)?);
    c.set(0, PartialShape::new(&(0..dims.len()).map(dim).collect::<Vec<_>>()));
    Ok(())
}

fn gather(c: &mut InferContext<'_>) -> Inferred {
    let (params, indices) = (c.input(0), c.input(1));
    let (Some(p), Some(i)) = (params.dims(), indices.dims()) else { return Ok(()) };
    let batch = usize::try_from(c.int("batch_dims").unwrap_or(0)).unwrap_or(0);
    match c.ints(2).as_deref() {
        Some([at]) => {
            let at = axis(*at, p.len())?;
            let i = i.get(batch..).ok_or_else(|| ShapeError::new("batch_dims exceeds the rank of indices"))?;
            let out: Vec<_> = p[..at].iter().chain(i).chain(&p[at + 1..]).copied().collect();
            c.set(0, PartialShape::new(&out));
        }
        _ => c.set(0, PartialShape::of_rank((p.len() + i.len()).saturating_sub(1 + batch))),
    }
    Ok(())
}
