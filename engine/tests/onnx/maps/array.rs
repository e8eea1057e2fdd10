//! Operators on shapes, positions and order.

use engine::graph::Attr;
use engine::{DType, Output, Shape, Tensor};

use crate::load;
use crate::map::{Map, MapError, Mapped, One, axis};

pub fn map(m: &Map<'_>) -> Option<Mapped> {
    let single = |one: One| Some(one.map(|o| vec![o]));
    match m.node.op_type.as_str() {
        "Constant" => single(constant(m)),
        "ConstantOfShape" => single(constant_of_shape(m)),
        "Shape" => single(shape(m)),
        "Size" => single(m.dims(0).and_then(|d| m.constant(Tensor::scalar(d.iter().product::<usize>() as i64)))),
        "Reshape" => single(reshape(m)),
        "Flatten" => single(flatten(m)),
        "Squeeze" => single(squeeze(m)),
        "Unsqueeze" => single(unsqueeze(m)),
        "Transpose" => single(transpose(m)),
        "Concat" => single(concat(m)),
        "Split" => Some(split(m)),
        "Slice" => single(slice(m)),
        "Gather" => single(gather(m)),
        "GatherElements" => single(gather_elements(m)),
        "GatherND" => single(gather_nd(m)),
        "ScatterElements" | "Scatter" => single(scatter_elements(m)),
        "ScatterND" => single(scatter_nd(m)),
        "Expand" => single(expand(m)),
        "Tile" => single(m.x(0).and_then(|x| m.op("Tile", &[x, m.x(1)?]))),
        "Pad" => single(pad(m)),
        "OneHot" => single(one_hot(m)),
        "NonZero" => single(nonzero(m)),
        "Range" => single(m.x(0).and_then(|x| m.op("Range", &[x, m.x(1)?, m.x(2)?]))),
        "EyeLike" => single(eye(m)),
        "Trilu" => single(trilu(m)),
        "DepthToSpace" => single(depth_to_space(m)),
        "SpaceToDepth" => single(space_to_depth(m)),
        "ReverseSequence" => single(reverse_sequence(m)),
        "Compress" => single(compress(m)),
        "TopK" => Some(top_k(m)),
        "Unique" => Some(unique(m)),
        "CenterCropPad" => single(center_crop_pad(m)),
        _ => None,
    }
}

fn port(o: Output, port: u32) -> Output {
    Output { port, ..o }
}

fn constant(m: &Map<'_>) -> One {
    if let Some(t) = m.attr_tensor("value") {
        return m.constant(t?);
    }
    if let Some(list) = m.int_list("value_ints") {
        return m.int_vector(&list);
    }
    if let Some(list) = m.attr_floats("value_floats") {
        return m.constant(Tensor::vector(&list));
    }
    if m.has_attr("value_int") {
        return m.constant(Tensor::scalar(m.int("value_int", 0)));
    }
    if m.has_attr("value_float") {
        return m.constant(Tensor::scalar(m.float("value_float", 0.0) as f32));
    }
    Err(m.uncovered("of this kind"))
}

fn constant_of_shape(m: &Map<'_>) -> One {
    let value = m.attr_tensor("value").unwrap_or_else(|| Ok(Tensor::scalar(0f32)))?;
    let value = m.constant(value.into_shape(Shape::scalar()).map_err(|e| MapError::Engine(e.to_string()))?)?;
    m.op("Fill", &[m.x(0)?, value])
}

fn shape(m: &Map<'_>) -> One {
    let dims: Vec<i64> = m.dims(0)?.iter().map(|d| *d as i64).collect();
    let rank = dims.len() as i64;
    let bound = |v: i64| (if v < 0 { v + rank } else { v }).clamp(0, rank);
    let (start, end) = (bound(m.int("start", 0)), bound(m.int("end", rank)));
    let whole = m.op_with("Shape", &[m.x(0)?], &[("out_type", Attr::Type(DType::I64))])?;
    let (start, size) = (m.int_vector(&[start])?, m.int_vector(&[(end - start).max(0)])?);
    m.op("Slice", &[whole, start, size])
}

fn reshape(m: &Map<'_>) -> One {
    let dims = m.dims(0)?;
    let mut wanted = m.ints_of("shape", 1)?.unwrap_or_default();
    if m.int("allowzero", 0) == 0 {
        for (i, w) in wanted.iter_mut().enumerate().filter(|(_, w)| **w == 0) {
            *w = dims.get(i).copied().unwrap_or(0) as i64;
        }
    }
    let shape = m.int_vector(&wanted)?;
    m.op("Reshape", &[m.x(0)?, shape])
}

fn flatten(m: &Map<'_>) -> One {
    let dims = m.dims(0)?;
    let at = axis(m.int("axis", 1), dims.len());
    m.reshape(m.x(0)?, &[dims[..at].iter().product(), dims[at..].iter().product()])
}

fn squeeze(m: &Map<'_>) -> One {
    let dims = m.dims(0)?;
    let axes = m.ints_of("axes", 1)?;
    let gone = |i: usize| match &axes {
        Some(axes) => axes.iter().any(|a| axis(*a, dims.len()) == i),
        None => dims[i] == 1,
    };
    let kept: Vec<usize> = (0..dims.len()).filter(|i| !gone(*i)).map(|i| dims[i]).collect();
    m.reshape(m.x(0)?, &kept)
}

fn unsqueeze(m: &Map<'_>) -> One {
    let mut dims = m.dims(0)?;
    let axes = m.ints_of("axes", 1)?.unwrap_or_default();
    let rank = dims.len() + axes.len();
    let mut axes: Vec<usize> = axes.iter().map(|a| axis(*a, rank)).collect();
    axes.sort_unstable();
    axes.iter().for_each(|a| dims.insert(*a, 1));
    m.reshape(m.x(0)?, &dims)
}

fn transpose(m: &Map<'_>) -> One {
    let rank = m.dims(0)?.len();
    let order = m.int_list("perm").unwrap_or_else(|| (0..rank as i64).rev().collect());
    let order = m.int_vector(&order)?;
    m.op("Transpose", &[m.x(0)?, order])
}

fn concat(m: &Map<'_>) -> One {
    let list = (0..m.inputs.len()).map(|i| m.x(i)).collect::<Result<Vec<_>, _>>()?;
    let at = m.scalar(m.int("axis", 1))?;
    if list.len() == 1 { Ok(list[0]) } else { m.op_of_list("ConcatV2", &list, &[at], &[]) }
}

fn split(m: &Map<'_>) -> Mapped {
    let dims = m.dims(0)?;
    let at = axis(m.int("axis", 0), dims.len());
    let n = m.node.output.len();
    let sizes = m.ints_of("split", 1)?.unwrap_or_else(|| {
        let per = dims[at].div_ceil(n);
        (0..n).map(|i| dims[at].saturating_sub(i * per).min(per) as i64).collect()
    });
    let sizes = m.int_vector(&sizes)?;
    let at = m.scalar(at as i64)?;
    let first = m.op_with("SplitV", &[m.x(0)?, sizes, at], &[("num_split", Attr::Int(n as i64))])?;
    Ok((0..n as u32).map(|i| port(first, i)).collect())
}

fn slice(m: &Map<'_>) -> One {
    let rank = m.dims(0)?.len();
    let starts = m.ints_of("starts", 1)?.unwrap_or_default();
    let ends = m.ints_of("ends", 2)?.unwrap_or_default();
    let axes = m.ints_of("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = if m.has(4) { m.ints(4)? } else { vec![1; starts.len()] };
    let (mut begin, mut end, mut by) = (vec![0i64; rank], vec![0i64; rank], vec![1i64; rank]);
    let (mut open_begin, mut open_end) = ((1i64 << rank) - 1, (1i64 << rank) - 1);
    for (k, a) in axes.iter().enumerate() {
        let a = axis(*a, rank);
        (begin[a], end[a], by[a]) = (starts[k], ends[k], steps[k]);
        open_begin &= !(1 << a);
        open_end &= !(1 << a);
    }
    let [begin, end, by] = [begin, end, by].map(|v| m.int_vector(&v));
    let masks = [("begin_mask", Attr::Int(open_begin)), ("end_mask", Attr::Int(open_end))];
    m.op_with("StridedSlice", &[m.x(0)?, begin?, end?, by?], &masks)
}

/// Indices of which negative ones count from the end of an axis of `n`.
fn wrapped(m: &Map<'_>, i: usize, n: usize) -> One {
    let n = m.constant(Tensor::scalar(n as i64))?;
    m.op("FloorMod", &[m.cast(m.x(i)?, DType::I64)?, n])
}

fn gather(m: &Map<'_>) -> One {
    let dims = m.dims(0)?;
    let at = axis(m.int("axis", 0), dims.len());
    let indices = wrapped(m, 1, dims[at])?;
    m.op("GatherV2", &[m.x(0)?, indices, m.scalar(at as i64)?])
}

/// For each element of an index tensor, its position with the index itself along one axis: rows for `GatherNd`.
fn positions(m: &Map<'_>, indices: Output, dims: &[usize], at: usize) -> One {
    let n: usize = dims.iter().product();
    let mut columns = Vec::new();
    for (k, d) in dims.iter().enumerate() {
        if k == at {
            columns.push(m.reshape(indices, &[n])?);
            continue;
        }
        let inner: usize = dims[k + 1..].iter().product();
        let column: Vec<i64> = (0..n).map(|i| (i / inner % d) as i64).collect();
        columns.push(m.int_vector(&column)?);
    }
    m.op_of_list("Pack", &columns, &[], &[("axis", Attr::Int(1))])
}

fn gather_elements(m: &Map<'_>) -> One {
    let (dims, of) = (m.dims(0)?, m.dims(1)?);
    let at = axis(m.int("axis", 0), dims.len());
    let rows = positions(m, wrapped(m, 1, dims[at])?, &of, at)?;
    let y = m.op("GatherNd", &[m.x(0)?, rows])?;
    m.reshape(y, &of)
}

fn gather_nd(m: &Map<'_>) -> One {
    let (dims, of) = (m.dims(0)?, m.dims(1)?);
    let batch = m.int("batch_dims", 0) as usize;
    let (outer, depth) = (&of[..of.len() - 1], of[of.len() - 1]);
    let last = m.int_vector(&dims[batch..batch + depth].iter().map(|d| *d as i64).collect::<Vec<_>>())?;
    let mut indices = m.op("FloorMod", &[m.x(1)?, last])?;
    for k in (0..batch).rev() {
        let inner: usize = outer[k + 1..].iter().product();
        let n: usize = outer.iter().product();
        let column = m.int_vector(&(0..n).map(|i| (i / inner % outer[k]) as i64).collect::<Vec<_>>())?;
        let column = m.reshape(column, &[outer, &[1]].concat())?;
        indices = m.op_of_list("ConcatV2", &[column, indices], &[m.scalar(-1)?], &[])?;
    }
    m.op("GatherNd", &[m.x(0)?, indices])
}

fn scatter_op(m: &Map<'_>) -> Result<&'static str, MapError> {
    Ok(match m.text("reduction", "none").as_str() {
        "none" => "TensorScatterUpdate",
        "add" => "TensorScatterAdd",
        "max" => "TensorScatterMax",
        "min" => "TensorScatterMin",
        _ => return Err(m.uncovered("of products")),
    })
}

fn scatter_elements(m: &Map<'_>) -> One {
    let (dims, of) = (m.dims(0)?, m.dims(1)?);
    let at = axis(m.int("axis", 0), dims.len());
    let rows = positions(m, wrapped(m, 1, dims[at])?, &of, at)?;
    let updates = m.reshape(m.x(2)?, &[of.iter().product()])?;
    m.op(scatter_op(m)?, &[m.x(0)?, rows, updates])
}

fn scatter_nd(m: &Map<'_>) -> One {
    let (dims, of) = (m.dims(0)?, m.dims(1)?);
    let depth = of[of.len() - 1];
    let last = m.int_vector(&dims[..depth].iter().map(|d| *d as i64).collect::<Vec<_>>())?;
    let indices = m.op("FloorMod", &[m.x(1)?, last])?;
    m.op(scatter_op(m)?, &[m.x(0)?, indices, m.x(2)?])
}

fn expand(m: &Map<'_>) -> One {
    let own = m.int_vector(&m.dims(0)?.iter().map(|d| *d as i64).collect::<Vec<_>>())?;
    let full = m.op("BroadcastArgs", &[own, m.x(1)?])?;
    m.op("BroadcastTo", &[m.x(0)?, full])
}

fn pad(m: &Map<'_>) -> One {
    let (x, dims) = (m.x(0)?, m.dims(0)?);
    let pads = m.ints_of("pads", 1)?.unwrap_or_default();
    let axes = if m.has(3) { m.ints(3)? } else { (0..dims.len() as i64).collect() };
    let mode = m.text("mode", "constant");
    let mut by = vec![[0i64; 2]; dims.len()];
    for (k, a) in axes.iter().enumerate() {
        by[axis(*a, dims.len())] = [pads[k], pads[k + axes.len()]];
    }
    if by.iter().flatten().any(|v| *v < 0) {
        return Err(m.uncovered("with negative pads"));
    }
    if mode == "edge" || mode == "wrap" {
        return pad_by_index(m, x, &dims, &by, mode == "wrap");
    }
    let flat: Vec<i64> = by.iter().flatten().copied().collect();
    let by = m.reshape(m.int_vector(&flat)?, &[dims.len(), 2])?;
    if mode == "reflect" {
        return m.op_with("MirrorPad", &[x, by], &[("mode", Attr::from("REFLECT"))]);
    }
    let value = if m.has(2) { m.reshape(m.x(2)?, &[])? } else { m.number(m.float("value", 0.0), x)? };
    m.op("PadV2", &[x, by, value])
}

/// Axis after axis, elements taken from the edge or from the other side.
fn pad_by_index(m: &Map<'_>, mut x: Output, dims: &[usize], by: &[[i64; 2]], wrap: bool) -> One {
    for (k, [before, after]) in by.iter().enumerate() {
        let n = dims[k] as i64;
        let from = |i: i64| if wrap { i.rem_euclid(n) } else { i.clamp(0, n - 1) };
        let indices: Vec<i64> = (-before..n + after).map(from).collect();
        x = m.op("GatherV2", &[x, m.int_vector(&indices)?, m.scalar(k as i64)?])?;
    }
    Ok(x)
}

fn one_hot(m: &Map<'_>) -> One {
    let depth = m.ints(1)?[0];
    let values = m.dims(2)?;
    let pick = |i: i64| -> One {
        let at = m.constant(Tensor::scalar(i))?;
        let flat = m.reshape(m.x(2)?, &[values.iter().product()])?;
        m.op("GatherV2", &[flat, at, m.scalar(0)?])
    };
    let indices = wrapped(m, 0, depth as usize)?;
    let at = ("axis", Attr::Int(axis(m.int("axis", -1), m.dims(0)?.len() + 1) as i64));
    m.op_with("OneHot", &[indices, m.scalar(depth)?, pick(1)?, pick(0)?], &[at])
}

fn nonzero(m: &Map<'_>) -> One {
    let found = m.op("Where", &[m.x(0)?])?;
    m.transpose(found, &[1, 0])
}

fn eye(m: &Map<'_>) -> One {
    let dims = m.dims(0)?;
    let to = if m.has_attr("dtype") { load::dtype(m.int("dtype", 1))? } else { m.dtype(0)? };
    let k = m.int("k", 0);
    let ones: Vec<f64> =
        (0..dims[0] * dims[1]).map(|i| f64::from(u8::from((i % dims[1]) as i64 - (i / dims[1]) as i64 == k))).collect();
    let ones = Tensor::from_vec([dims[0], dims[1]], ones).map_err(|e| MapError::Engine(e.to_string()))?;
    m.cast(m.constant(ones)?, to)
}

/// Of the upper part with diagonal k: all from (i, i + k) on; as what the lower one, or band, leaves.
fn trilu(m: &Map<'_>) -> One {
    let (x, k) = (m.x(0)?, if m.has(1) { m.ints(1)?[0] } else { 0 });
    let dims = m.dims(0)?;
    if dims.contains(&0) {
        return Ok(x);
    }
    let upper = m.int("upper", 1) != 0;
    let (rows, cols) = (dims[dims.len() - 2], dims[dims.len() - 1]);
    let keep = |i: usize| {
        let d = (i % cols) as i64 - (i / cols) as i64;
        if upper { d >= k } else { d <= k }
    };
    let mask = Tensor::from_vec([rows, cols], (0..rows * cols).map(keep).collect::<Vec<bool>>());
    let mask = m.constant(mask.map_err(|e| MapError::Engine(e.to_string()))?)?;
    let zeros = m.op("ZerosLike", &[x])?;
    m.op("SelectV2", &[mask, x, zeros])
}

fn depth_to_space(m: &Map<'_>) -> One {
    let (dims, b) = (m.dims(0)?, m.int("blocksize", 1) as usize);
    if m.text("mode", "DCR") == "DCR" {
        let attrs = [("block_size", Attr::Int(b as i64)), ("data_format", Attr::from("NCHW"))];
        return m.op_with("DepthToSpace", &[m.x(0)?], &attrs);
    }
    let (n, c, h, w) = (dims[0], dims[1] / (b * b), dims[2], dims[3]);
    let cut = m.reshape(m.x(0)?, &[n, c, b, b, h, w])?;
    let moved = m.transpose(cut, &[0, 1, 4, 2, 5, 3])?;
    m.reshape(moved, &[n, c, h * b, w * b])
}

fn space_to_depth(m: &Map<'_>) -> One {
    let attrs = [("block_size", Attr::Int(m.int("blocksize", 1))), ("data_format", Attr::from("NCHW"))];
    m.op_with("SpaceToDepth", &[m.x(0)?], &attrs)
}

fn reverse_sequence(m: &Map<'_>) -> One {
    let attrs = [("seq_dim", Attr::Int(m.int("time_axis", 0))), ("batch_dim", Attr::Int(m.int("batch_axis", 1)))];
    m.op_with("ReverseSequence", &[m.x(0)?, m.x(1)?], &attrs)
}

fn compress(m: &Map<'_>) -> One {
    let dims = m.dims(0)?;
    let found = m.op("Where", &[m.x(1)?])?;
    let flat = m.int_vector(&[-1])?;
    let chosen = m.op("Reshape", &[found, flat])?;
    if !m.has_attr("axis") {
        let x = m.op("Reshape", &[m.x(0)?, flat])?;
        return m.op("GatherV2", &[x, chosen, m.scalar(0)?]);
    }
    let at = axis(m.int("axis", 0), dims.len());
    m.op("GatherV2", &[m.x(0)?, chosen, m.scalar(at as i64)?])
}

fn top_k(m: &Map<'_>) -> Mapped {
    let (x, dims) = (m.x(0)?, m.dims(0)?);
    let at = axis(m.int("axis", -1), dims.len());
    let k = m.ints_of("k", 1)?.and_then(|k| k.first().copied()).unwrap_or(m.int("k", 1));
    let mut order: Vec<usize> = (0..dims.len()).filter(|i| *i != at).collect();
    order.push(at);
    let largest = m.int("largest", 1) != 0;
    let mut rows = m.transpose(x, &order)?;
    if !largest {
        if m.type_of(rows).is_integer() && m.type_of(rows) != DType::I64 {
            return Err(m.uncovered("of the smallest unsigned numbers"));
        }
        rows = m.op("Neg", &[rows])?;
    }
    let first = m.op_with("TopKV2", &[rows, m.scalar(k)?], &[("index_type", Attr::Type(DType::I64))])?;
    let mut back: Vec<usize> = (0..dims.len()).collect();
    order.iter().enumerate().for_each(|(to, from)| back[*from] = to);
    let values = if largest { first } else { m.op("Neg", &[first])? };
    Ok(vec![m.transpose(values, &back)?, m.transpose(port(first, 1), &back)?])
}

/// Sorted, or in the order of their first places; with first places, inverse and counts.
fn unique(m: &Map<'_>) -> Mapped {
    if m.has_attr("axis") || m.int("sorted", 1) != 0 {
        return Err(m.uncovered("sorted or along an axis"));
    }
    let n: usize = m.dims(0)?.iter().product();
    let x = m.reshape(m.x(0)?, &[n])?;
    let first = m.op_with("UniqueWithCounts", &[x], &[("out_idx", Attr::Type(DType::I64))])?;
    // The first place of a value: the smallest position among those that have it.
    let positions = m.int_vector(&(0..n as i64).collect::<Vec<_>>())?;
    let counted = m.op_with("Shape", &[port(first, 2)], &[("out_type", Attr::Type(DType::I32))])?;
    let counted = m.reshape(counted, &[])?;
    let places = m.op("UnsortedSegmentMin", &[positions, port(first, 1), counted])?;
    Ok(vec![first, places, port(first, 1), port(first, 2)])
}

fn center_crop_pad(m: &Map<'_>) -> One {
    let (mut x, dims, wanted) = (m.x(0)?, m.dims(0)?, m.ints(1)?);
    let axes = m.int_list("axes").unwrap_or_else(|| (0..dims.len() as i64).collect());
    for (a, want) in axes.iter().zip(&wanted) {
        let a = axis(*a, dims.len());
        let (n, want) = (dims[a], *want as usize);
        if want > n {
            let mut by = vec![[0; 2]; dims.len()];
            by[a] = [(want - n) / 2, (want - n).div_ceil(2)];
            let zero = m.number(0.0, x)?;
            x = m.pad(x, &by, zero)?;
        } else if want < n {
            let from = (n - want) / 2;
            let kept: Vec<i64> = (from..from + want).map(|i| i as i64).collect();
            x = m.op("GatherV2", &[x, m.int_vector(&kept)?, m.scalar(a as i64)?])?;
        }
    }
    Ok(x)
}
