//! Operators on shapes, positions and order.

use engine::graph::{Attr, Value};
use engine::{DType, Shape, Tensor};

use super::super::load;
use super::super::map::{Map, MapError, Mapped, One, axis, cast, longs};

/// One output, which may be an error.
fn single(one: One<'_>) -> Option<Mapped<'_>> {
    Some(one.map(|o| vec![o]))
}

pub fn map(m: &Map) -> Option<Mapped<'_>> {
    match m.node.op_type.as_str() {
        "Constant" => single(constant(m)),
        "ConstantOfShape" => single(constant_of_shape(m)),
        "Shape" => single(shape(m)),
        "Size" => single(m.value(0).map(|v| m.constant(Tensor::scalar(v.len() as i64)))),
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
        "Tile" => single(m.x(0).and_then(|x| Ok(x.op_with("Tile", m.x(1)?)))),
        "Pad" => single(pad(m)),
        "OneHot" => single(one_hot(m)),
        "NonZero" => single(nonzero(m)),
        "Range" => single(m.xs().map(|xs| m.op("Range", &xs))),
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

fn constant(m: &Map) -> One<'_> {
    if let Some(t) = m.attr_tensor("value") {
        return Ok(m.constant(t?));
    }
    if let Some(list) = m.int_list("value_ints") {
        return Ok(m.longs(&list));
    }
    if let Some(list) = m.attr_floats("value_floats") {
        return Ok(m.constant(Tensor::vector(&list)));
    }
    if m.has_attr("value_int") {
        return Ok(m.constant(Tensor::scalar(m.int("value_int", 0))));
    }
    if m.has_attr("value_float") {
        return Ok(m.constant(Tensor::scalar(m.float("value_float", 0.0) as f32)));
    }
    Err(m.uncovered("of this kind"))
}

fn constant_of_shape(m: &Map) -> One<'_> {
    let value = m.attr_tensor("value").unwrap_or_else(|| Ok(Tensor::scalar(0f32)))?;
    let value = value.into_shape(Shape::scalar()).map_err(|e| MapError::Engine(e.to_string()))?;
    Ok(m.x(0)?.op_with("Fill", m.constant(value)))
}

fn shape(m: &Map) -> One<'_> {
    let rank = m.dims(0)?.len() as i64;
    let bound = |v: i64| (if v < 0 { v + rank } else { v }).clamp(0, rank);
    let (start, end) = (bound(m.int("start", 0)), bound(m.int("end", rank)));
    let whole = m.op_with("Shape", &[m.x(0)?], &[("out_type", Attr::Type(DType::I64))]);
    Ok(m.op("Slice", &[whole, m.longs(&[start]), m.longs(&[(end - start).max(0)])]))
}

fn reshape(m: &Map) -> One<'_> {
    let dims = m.dims(0)?;
    let mut wanted = m.ints_of("shape", 1)?.unwrap_or_default();
    if m.int("allowzero", 0) == 0 {
        for (i, w) in wanted.iter_mut().enumerate().filter(|(_, w)| **w == 0) {
            *w = dims.get(i).copied().unwrap_or(0) as i64;
        }
    }
    Ok(m.x(0)?.reshape(m.longs(&wanted)))
}

fn flatten(m: &Map) -> One<'_> {
    let dims = m.dims(0)?;
    let at = axis(m.int("axis", 1), dims.len());
    Ok(m.reshape(m.x(0)?, &[dims[..at].iter().product(), dims[at..].iter().product()]))
}

fn squeeze(m: &Map) -> One<'_> {
    let dims = m.dims(0)?;
    let axes = m.ints_of("axes", 1)?;
    let gone = |i: usize| match &axes {
        Some(axes) => axes.iter().any(|a| axis(*a, dims.len()) == i),
        None => dims[i] == 1,
    };
    let kept: Vec<usize> = (0..dims.len()).filter(|i| !gone(*i)).map(|i| dims[i]).collect();
    Ok(m.reshape(m.x(0)?, &kept))
}

fn unsqueeze(m: &Map) -> One<'_> {
    let mut dims = m.dims(0)?;
    let axes = m.ints_of("axes", 1)?.unwrap_or_default();
    let rank = dims.len() + axes.len();
    let mut axes: Vec<usize> = axes.iter().map(|a| axis(*a, rank)).collect();
    axes.sort_unstable();
    axes.iter().for_each(|a| dims.insert(*a, 1));
    Ok(m.reshape(m.x(0)?, &dims))
}

fn transpose(m: &Map) -> One<'_> {
    let rank = m.dims(0)?.len();
    let order = m.int_list("perm").unwrap_or_else(|| (0..rank as i64).rev().collect());
    Ok(m.x(0)?.transpose(m.longs(&order)))
}

fn concat(m: &Map) -> One<'_> {
    let list = m.xs()?;
    let at = m.scalar(m.int("axis", 1));
    Ok(if list.len() == 1 { list[0] } else { m.op_of_list("ConcatV2", &list, &[at], &[]) })
}

fn split(m: &Map) -> Mapped<'_> {
    let dims = m.dims(0)?;
    let at = axis(m.int("axis", 0), dims.len());
    let n = m.node.output.len();
    let sizes = m.ints_of("split", 1)?.unwrap_or_else(|| {
        let per = dims[at].div_ceil(n);
        (0..n).map(|i| dims[at].saturating_sub(i * per).min(per) as i64).collect()
    });
    let inputs = [m.x(0)?, m.longs(&sizes), m.scalar(at as i64)];
    let first = m.op_with("SplitV", &inputs, &[("num_split", Attr::Int(n as i64))]);
    Ok((0..n as u32).map(|i| first.port(i)).collect())
}

fn slice(m: &Map) -> One<'_> {
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
    let masks = [("begin_mask", Attr::Int(open_begin)), ("end_mask", Attr::Int(open_end))];
    Ok(m.op_with("StridedSlice", &[m.x(0)?, m.longs(&begin), m.longs(&end), m.longs(&by)], &masks))
}

/// Indices, input `i`, of which negative ones count from the end of an axis of `n`.
fn wrapped(m: &Map, i: usize, n: usize) -> One<'_> {
    Ok(cast(m.x(i)?, DType::I64).op_with("FloorMod", n as f64))
}

/// The same of rows of indices, each into these dimensions.
fn wrapped_rows<'g>(m: &'g Map, i: usize, dims: &[usize]) -> One<'g> {
    Ok(m.x(i)?.op_with("FloorMod", m.longs(&longs(dims))))
}

fn gather(m: &Map) -> One<'_> {
    let dims = m.dims(0)?;
    let at = axis(m.int("axis", 0), dims.len());
    Ok(m.op("GatherV2", &[m.x(0)?, wrapped(m, 1, dims[at])?, m.scalar(at as i64)]))
}

/// For each element of an index tensor, its position with the index itself along one axis: rows for `GatherNd`.
fn positions<'g>(m: &'g Map, indices: Value<'g>, dims: &[usize], at: usize) -> Value<'g> {
    let n: usize = dims.iter().product();
    let column = |(k, d): (usize, &usize)| {
        if k == at {
            return m.reshape(indices, &[n]);
        }
        let inner: usize = dims[k + 1..].iter().product();
        m.longs(&(0..n).map(|i| (i / inner % d) as i64).collect::<Vec<_>>())
    };
    let columns: Vec<Value<'_>> = dims.iter().enumerate().map(column).collect();
    m.op_of_list("Pack", &columns, &[], &[("axis", Attr::Int(1))])
}

fn gather_elements(m: &Map) -> One<'_> {
    let (dims, of) = (m.dims(0)?, m.dims(1)?);
    let at = axis(m.int("axis", 0), dims.len());
    let rows = positions(m, wrapped(m, 1, dims[at])?, &of, at);
    Ok(m.reshape(m.x(0)?.op_with("GatherNd", rows), &of))
}

fn gather_nd(m: &Map) -> One<'_> {
    let (dims, of) = (m.dims(0)?, m.dims(1)?);
    let batch = m.int("batch_dims", 0) as usize;
    let (outer, depth) = (&of[..of.len() - 1], of[of.len() - 1]);
    let mut indices = wrapped_rows(m, 1, &dims[batch..batch + depth])?;
    for k in (0..batch).rev() {
        let inner: usize = outer[k + 1..].iter().product();
        let n: usize = outer.iter().product();
        let column = m.longs(&(0..n).map(|i| (i / inner % outer[k]) as i64).collect::<Vec<_>>());
        let column = m.reshape(column, &[outer, &[1]].concat());
        indices = m.op_of_list("ConcatV2", &[column, indices], &[m.scalar(-1)], &[]);
    }
    Ok(m.x(0)?.op_with("GatherNd", indices))
}

fn scatter_op(m: &Map) -> Result<&'static str, MapError> {
    Ok(match m.text("reduction", "none").as_str() {
        "none" => "TensorScatterUpdate",
        "add" => "TensorScatterAdd",
        "max" => "TensorScatterMax",
        "min" => "TensorScatterMin",
        _ => return Err(m.uncovered("of products")),
    })
}

fn scatter_elements(m: &Map) -> One<'_> {
    let (dims, of) = (m.dims(0)?, m.dims(1)?);
    let at = axis(m.int("axis", 0), dims.len());
    let rows = positions(m, wrapped(m, 1, dims[at])?, &of, at);
    let updates = m.reshape(m.x(2)?, &[of.iter().product()]);
    Ok(m.op(scatter_op(m)?, &[m.x(0)?, rows, updates]))
}

fn scatter_nd(m: &Map) -> One<'_> {
    let (dims, of) = (m.dims(0)?, m.dims(1)?);
    let indices = wrapped_rows(m, 1, &dims[..of[of.len() - 1]])?;
    Ok(m.op(scatter_op(m)?, &[m.x(0)?, indices, m.x(2)?]))
}

fn expand(m: &Map) -> One<'_> {
    let full = m.longs(&longs(&m.dims(0)?)).op_with("BroadcastArgs", m.x(1)?);
    Ok(m.x(0)?.broadcast_to(full))
}

fn pad(m: &Map) -> One<'_> {
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
        return Ok(pad_by_index(m, x, &dims, &by, mode == "wrap"));
    }
    let by = m.reshape(m.longs(by.as_flattened()), &[dims.len(), 2]);
    if mode == "reflect" {
        return Ok(m.op_with("MirrorPad", &[x, by], &[("mode", Attr::from("REFLECT"))]));
    }
    let value = if m.has(2) { m.reshape(m.x(2)?, &[]) } else { x.number(m.float("value", 0.0)) };
    Ok(m.op("PadV2", &[x, by, value]))
}

/// Axis after axis, elements taken from the edge or from the other side.
fn pad_by_index<'g>(m: &'g Map, mut x: Value<'g>, dims: &[usize], by: &[[i64; 2]], wrap: bool) -> Value<'g> {
    for (k, [before, after]) in by.iter().enumerate() {
        let n = dims[k] as i64;
        let from = |i: i64| if wrap { i.rem_euclid(n) } else { i.clamp(0, n - 1) };
        x = m.gather(x, &(-before..n + after).map(from).collect::<Vec<_>>(), k as i64);
    }
    x
}

fn one_hot(m: &Map) -> One<'_> {
    let depth = m.ints(1)?[0];
    let values = m.reshape(m.x(2)?, &[m.value(2)?.len()]);
    let pick = |i: i64| m.op("GatherV2", &[values, m.constant(Tensor::scalar(i)), m.scalar(0)]);
    let indices = wrapped(m, 0, depth as usize)?;
    let at = ("axis", Attr::Int(axis(m.int("axis", -1), m.dims(0)?.len() + 1) as i64));
    Ok(m.op_with("OneHot", &[indices, m.scalar(depth), pick(1), pick(0)], &[at]))
}

fn nonzero(m: &Map) -> One<'_> {
    Ok(m.x(0)?.op("Where").transpose([1, 0]))
}

fn eye(m: &Map) -> One<'_> {
    let dims = m.dims(0)?;
    let to = if m.has_attr("dtype") { load::dtype(m.int("dtype", 1))? } else { m.dtype(0)? };
    let k = m.int("k", 0);
    let ones: Vec<f64> =
        (0..dims[0] * dims[1]).map(|i| f64::from(u8::from((i % dims[1]) as i64 - (i / dims[1]) as i64 == k))).collect();
    Ok(cast(m.constant(Tensor::from_vec([dims[0], dims[1]], ones).unwrap()), to))
}

/// Of the upper part with diagonal k: all from (i, i + k) on; as what the lower one, or band, leaves.
fn trilu(m: &Map) -> One<'_> {
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
    Ok(m.constant(mask.unwrap()).select(x, x.zeros_like()))
}

fn depth_to_space(m: &Map) -> One<'_> {
    let (dims, b) = (m.dims(0)?, m.int("blocksize", 1) as usize);
    if m.text("mode", "DCR") == "DCR" {
        let attrs = [("block_size", Attr::Int(b as i64)), ("data_format", Attr::from("NCHW"))];
        return Ok(m.op_with("DepthToSpace", &[m.x(0)?], &attrs));
    }
    let (n, c, h, w) = (dims[0], dims[1] / (b * b), dims[2], dims[3]);
    let moved = m.reshape(m.x(0)?, &[n, c, b, b, h, w]).transpose([0, 1, 4, 2, 5, 3]);
    Ok(m.reshape(moved, &[n, c, h * b, w * b]))
}

fn space_to_depth(m: &Map) -> One<'_> {
    let attrs = [("block_size", Attr::Int(m.int("blocksize", 1))), ("data_format", Attr::from("NCHW"))];
    Ok(m.op_with("SpaceToDepth", &[m.x(0)?], &attrs))
}

fn reverse_sequence(m: &Map) -> One<'_> {
    let attrs = [("seq_dim", Attr::Int(m.int("time_axis", 0))), ("batch_dim", Attr::Int(m.int("batch_axis", 1)))];
    Ok(m.op_with("ReverseSequence", &[m.x(0)?, m.x(1)?], &attrs))
}

fn compress(m: &Map) -> One<'_> {
    let chosen = m.x(1)?.op("Where").reshape([-1]);
    if !m.has_attr("axis") {
        return Ok(m.x(0)?.reshape([-1]).embedding_lookup(chosen));
    }
    let at = axis(m.int("axis", 0), m.dims(0)?.len());
    Ok(m.op("GatherV2", &[m.x(0)?, chosen, m.scalar(at as i64)]))
}

fn top_k(m: &Map) -> Mapped<'_> {
    let (x, dims) = (m.x(0)?, m.dims(0)?);
    let at = axis(m.int("axis", -1), dims.len());
    let k = m.ints_of("k", 1)?.and_then(|k| k.first().copied()).unwrap_or(m.int("k", 1));
    let mut order: Vec<usize> = (0..dims.len()).filter(|i| *i != at).collect();
    order.push(at);
    let largest = m.int("largest", 1) != 0;
    let mut rows = m.transpose(x, &order);
    if !largest {
        if x.dtype().is_integer() && x.dtype() != DType::I64 {
            return Err(m.uncovered("of the smallest unsigned numbers"));
        }
        rows = -rows;
    }
    let first = m.op_with("TopKV2", &[rows, m.scalar(k)], &[("index_type", Attr::Type(DType::I64))]);
    let mut back: Vec<usize> = (0..dims.len()).collect();
    order.iter().enumerate().for_each(|(to, from)| back[*from] = to);
    let values = if largest { first } else { -first };
    Ok([values, first.port(1)].map(|rows| m.transpose(rows, &back)).into())
}

/// Sorted, or in the order of their first places; with first places, inverse and counts.
fn unique(m: &Map) -> Mapped<'_> {
    if m.has_attr("axis") || m.int("sorted", 1) != 0 {
        return Err(m.uncovered("sorted or along an axis"));
    }
    let n = m.value(0)?.len();
    let x = m.reshape(m.x(0)?, &[n]);
    let first = m.op_with("UniqueWithCounts", &[x], &[("out_idx", Attr::Type(DType::I64))]);
    let [inverse, counts] = [1, 2].map(|port| first.port(port));
    // The first place of a value: the smallest position among those that have it.
    let positions = m.longs(&(0..n as i64).collect::<Vec<_>>());
    let places = m.op("UnsortedSegmentMin", &[positions, inverse, m.reshape(counts.shape_tensor(), &[])]);
    Ok(vec![first, places, inverse, counts])
}

fn center_crop_pad(m: &Map) -> One<'_> {
    let (mut x, dims, wanted) = (m.x(0)?, m.dims(0)?, m.ints(1)?);
    let axes = m.int_list("axes").unwrap_or_else(|| (0..dims.len() as i64).collect());
    for (a, want) in axes.iter().zip(&wanted) {
        let a = axis(*a, dims.len());
        let (n, want) = (dims[a], *want as usize);
        if want > n {
            let mut by = vec![[0; 2]; dims.len()];
            by[a] = [(want - n) / 2, (want - n).div_ceil(2)];
            x = m.pad(x, &by, 0.0);
        } else if want < n {
            let from = (n - want) / 2;
            x = m.gather(x, &longs(&(from..from + want).collect::<Vec<_>>()), a as i64);
        }
    }
    Ok(x)
}
