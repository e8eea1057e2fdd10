//! Operators of neural nets: softmax, convolutions, pools, normalisations, losses.

use engine::DType;
use engine::graph::{Attr, Value};

use super::super::map::{Map, MapError, Mapped, One, axis, cast};

/// One output, which may be an error.
fn single(one: One<'_>) -> Option<Mapped<'_>> {
    Some(one.map(|o| vec![o]))
}

pub fn map(m: &Map) -> Option<Mapped<'_>> {
    match m.node.op_type.as_str() {
        "Softmax" | "LogSoftmax" | "Hardmax" => single(softmax(m)),
        "Conv" => single(m.x(0).and_then(|x| conv(m, x, m.x(1)?, true))),
        "ConvInteger" => single(conv_integer(m)),
        "MaxPool" if m.node.output.len() == 1 => single(m.x(0).and_then(|x| pool(m, x, true, false))),
        "AveragePool" => single(m.x(0).and_then(|x| pool(m, x, false, m.int("count_include_pad", 0) != 0))),
        "LpPool" => single(lp_pool(m)),
        "ConvTranspose" => single(conv_transpose(m)),
        "GlobalAveragePool" => single(global(m, "Mean")),
        "GlobalMaxPool" => single(global(m, "Max")),
        "BatchNormalization" if m.int("training_mode", 0) == 0 && m.node.output.len() == 1 => single(batch_norm(m)),
        "InstanceNormalization" => single(instance_norm(m)),
        "LayerNormalization" => Some(layer_norm(m)),
        "GroupNormalization" => single(group_norm(m)),
        "MeanVarianceNormalization" => single(mean_variance(m)),
        "LRN" => single(lrn(m)),
        "NegativeLogLikelihoodLoss" => single(m.x(0).and_then(|x| nll(m, x))),
        "SoftmaxCrossEntropyLoss" => Some(cross_entropy(m)),
        "Dropout" => Some(dropout(m)),
        _ => None,
    }
}

/// Along an axis; before operator set 13, along it and all after it.
fn softmax(m: &Map) -> One<'_> {
    let (x, dims) = (m.x(0)?, m.dims(0)?);
    if m.opset < 13 {
        let at = axis(m.int("axis", 1), dims.len());
        let flat = m.reshape(x, &[dims[..at].iter().product(), dims[at..].iter().product()]);
        return Ok(m.reshape(soft_last(m, flat)?, &dims));
    }
    let at = axis(m.int("axis", -1), dims.len());
    let mut order: Vec<usize> = (0..dims.len()).collect();
    order.swap(at, dims.len() - 1);
    Ok(m.transpose(soft_last(m, m.transpose(x, &order))?, &order))
}

fn soft_last<'g>(m: &'g Map, x: Value<'g>) -> One<'g> {
    if m.node.op_type != "Hardmax" {
        return Ok(x.op(&m.node.op_type));
    }
    let dims = m.shape(x)?;
    let depth = m.scalar(dims[dims.len() - 1] as i64);
    Ok(m.op("OneHot", &[x.arg_max(-1), depth, x.number(1.0), x.number(0.0)]))
}

/// The window of a convolution or pool along each spatial axis.
struct Window {
    size: Vec<usize>,
    step: Vec<usize>,
    rate: Vec<usize>,
    pads: Vec<[usize; 2]>,
}

fn window(m: &Map, space: &[usize], size: Vec<usize>) -> Result<Window, MapError> {
    let n = space.len();
    let list = |name: &str| m.int_list(name).map_or(vec![1; n], |l| l.iter().map(|v| *v as usize).collect());
    let (step, rate) = (list("strides"), list("dilations"));
    let given = m.int_list("pads").unwrap_or_else(|| vec![0; 2 * n]);
    let auto = m.text("auto_pad", "NOTSET");
    let pads = (0..n).map(|i| {
        let extent = (size[i] - 1) * rate[i] + 1;
        let need = ((space[i].div_ceil(step[i]) - 1) * step[i] + extent).saturating_sub(space[i]);
        match auto.as_str() {
            "SAME_UPPER" => [need / 2, need.div_ceil(2)],
            "SAME_LOWER" => [need.div_ceil(2), need / 2],
            "VALID" => [0, 0],
            _ => [given[i] as usize, given[i + n] as usize],
        }
    });
    let pads = pads.collect();
    Ok(Window { size, step, rate, pads })
}

/// Channels from behind the batch to the end, or back.
pub fn channels_last<'g>(m: &'g Map, x: Value<'g>) -> One<'g> {
    let rank = m.shape(x)?.len();
    let order: Vec<usize> = std::iter::once(0).chain(2..rank).chain([1]).collect();
    Ok(m.transpose(x, &order))
}

pub fn channels_first<'g>(m: &'g Map, x: Value<'g>) -> One<'g> {
    let rank = m.shape(x)?.len();
    let order: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    Ok(m.transpose(x, &order))
}

/// As a 2-D or 3-D convolution of a padded input, group by group; one dimension becomes two.
fn conv<'g>(m: &'g Map, x: Value<'g>, w: Value<'g>, biased: bool) -> One<'g> {
    let (mut dims, mut filter) = (m.shape(x)?, m.shape(w)?);
    let mut win = window(m, &dims[2..], filter[2..].to_vec())?;
    let is_line = dims.len() == 3;
    if is_line {
        dims.push(1);
        filter.push(1);
        win.size.push(1);
        win.step.push(1);
        win.rate.push(1);
        win.pads.push([0, 0]);
    }
    let op = match dims.len() {
        4 => "Conv2D",
        5 => "Conv3D",
        _ => return Err(m.uncovered("of this rank")),
    };
    let by = [&[[0, 0], [0, 0]], win.pads.as_slice()].concat();
    let x = channels_last(m, m.pad(m.reshape(x, &dims), &by, 0.0))?;
    // Filters last: space, inputs, outputs.
    let order: Vec<usize> = (2..filter.len()).chain([1, 0]).collect();
    let w = m.transpose(m.reshape(w, &filter), &order);
    let n_groups = m.int("group", 1) as usize;
    let spatial =
        |v: &[usize]| Attr::ListInt(std::iter::once(1).chain(v.iter().map(|v| *v as i64)).chain([1]).collect());
    let attrs = [("strides", spatial(&win.step)), ("dilations", spatial(&win.rate)), ("padding", Attr::from("VALID"))];
    let mut y = if n_groups == 1 {
        m.op_with(op, &[x, w], &attrs)
    } else {
        let last = m.scalar(dims.len() as i64 - 1);
        let split = |of: Value<'g>| m.op_with("Split", &[last, of], &[("num_split", Attr::Int(n_groups as i64))]);
        let (xs, ws) = (split(x), split(w));
        let part = |g: u32| m.op_with(op, &[xs.port(g), ws.port(g)], &attrs);
        m.op_of_list("ConcatV2", &(0..n_groups as u32).map(part).collect::<Vec<_>>(), &[last], &[])
    };
    if biased && m.has(2) {
        y = y + m.x(2)?;
    }
    let y = channels_first(m, y)?;
    let mut out = m.shape(y)?;
    if is_line {
        out.pop();
    }
    Ok(m.reshape(y, &out))
}

/// The part of the whole transposed convolution along one axis that is kept: from where, and how much.
fn kept(m: &Map, axis: usize, n_axes: usize, n: usize, step: usize, extent: usize) -> (usize, usize) {
    let list = |name: &str| m.int_list(name);
    let auto = m.text("auto_pad", "NOTSET");
    let extra = list("output_padding").map_or(0, |l| l[axis] as usize);
    let whole = (n - 1) * step + extent + extra;
    let wanted = match list("output_shape") {
        Some(shape) => Some(shape[shape.len() - n_axes + axis] as usize),
        None if auto.starts_with("SAME") => Some(n * step),
        None => None,
    };
    if let Some(wanted) = wanted {
        let cut = whole.saturating_sub(wanted);
        return (if auto == "SAME_UPPER" { cut / 2 } else { cut.div_ceil(2) }, wanted);
    }
    let pads = list("pads").unwrap_or_else(|| vec![0; 2 * n_axes]);
    let (before, after) = (pads[axis] as usize, pads[axis + n_axes] as usize);
    (before, whole - before - after)
}

/// As the gradient of a convolution by its input, of which pads are cut off.
fn conv_transpose(m: &Map) -> One<'_> {
    let (mut dims, mut filter) = (m.dims(0)?, m.dims(1)?);
    let n_axes = dims.len() - 2;
    let list = |name: &str| m.int_list(name).unwrap_or_else(|| vec![1; n_axes]);
    let (mut step, mut rate) = (list("strides"), list("dilations"));
    if m.int("group", 1) != 1 {
        return Err(m.uncovered("of groups"));
    }
    let extent: Vec<usize> = (0..n_axes).map(|i| (filter[i + 2] - 1) * rate[i] as usize + 1).collect();
    let kept: Vec<_> = (0..n_axes).map(|i| kept(m, i, n_axes, dims[i + 2], step[i] as usize, extent[i])).collect();
    let mut whole: Vec<usize> = (0..n_axes).map(|i| (dims[i + 2] - 1) * step[i] as usize + extent[i]).collect();
    if n_axes == 1 {
        dims.push(1);
        filter.push(1);
        whole.push(1);
        step.push(1);
        rate.push(1);
    }
    let op = match dims.len() {
        4 => "Conv2DBackpropInput",
        5 => "Conv3DBackpropInputV2",
        _ => return Err(m.uncovered("of this rank")),
    };
    let order: Vec<usize> = (2..filter.len()).chain([1, 0]).collect();
    let w = m.transpose(m.reshape(m.x(1)?, &filter), &order);
    let x = channels_last(m, m.reshape(m.x(0)?, &dims))?;
    let sizes: Vec<i32> = [&[dims[0]], whole.as_slice(), &[filter[1]]].concat().iter().map(|n| *n as i32).collect();
    let spatial = |v: &[i64]| Attr::ListInt(std::iter::once(1).chain(v.iter().copied()).chain([1]).collect());
    let attrs = [("strides", spatial(&step)), ("dilations", spatial(&rate)), ("padding", Attr::from("VALID"))];
    let sizes = m.constant(engine::Tensor::vector(&sizes));
    let mut y = channels_first(m, m.op_with(op, &[sizes, w, x], &attrs))?;
    for (i, (from, n)) in kept.iter().enumerate() {
        // What is asked for beyond the whole is zeros.
        let mut by = vec![[0; 2]; dims.len()];
        by[i + 2][1] = (from + n).saturating_sub(whole[i]);
        let rows: Vec<i64> = (*from..from + n).map(|r| r as i64).collect();
        y = m.gather(m.pad(y, &by, 0.0), &rows, i as i64 + 2);
    }
    let mut out = m.shape(y)?;
    out.truncate(n_axes + 2);
    y = m.reshape(y, &out);
    Ok(if m.has(2) { y + per_channel(m, 2, out.len())? } else { y })
}

/// In f64, which holds the products of bytes exactly.
fn conv_integer(m: &Map) -> One<'_> {
    let centred = |i: usize, zero: usize| -> One<'_> {
        let x = cast(m.x(i)?, DType::F64);
        Ok(if m.has(zero) { x - cast(m.x(zero)?, DType::F64) } else { x })
    };
    Ok(cast(conv(m, centred(0, 2)?, centred(1, 3)?, false)?, DType::I32))
}

/// The root of the sum of powers in each window: what an average that counts pads is, times the elements.
fn lp_pool(m: &Map) -> One<'_> {
    let p = m.int("p", 2) as f64;
    let mean = pool(m, m.x(0)?.abs().pow(p), false, true)?;
    let n = m.int_list("kernel_shape").unwrap_or_default().iter().product::<i64>();
    Ok((mean * n as f64).pow(p.recip()))
}

/// Maxima or averages, of which the latter may count pads.
fn pool<'g>(m: &'g Map, x: Value<'g>, max: bool, counts_pads: bool) -> One<'g> {
    let mut dims = m.dims(0)?;
    if !x.dtype().is_float() {
        return Err(m.uncovered("of integers"));
    }
    let size: Vec<usize> = m.int_list("kernel_shape").unwrap_or_default().iter().map(|v| *v as usize).collect();
    let mut win = window(m, &dims[2..], size)?;
    if win.rate.iter().any(|r| *r != 1) {
        return Err(m.uncovered("with dilations"));
    }
    if m.int("ceil_mode", 0) != 0 {
        if counts_pads {
            return Err(m.uncovered("with ceil_mode and counted pads"));
        }
        // The last window may hang over: pad it.
        for (i, d) in dims[2..].iter().enumerate() {
            let whole = d + win.pads[i][0] + win.pads[i][1];
            let mut n = (whole.saturating_sub(win.size[i])).div_ceil(win.step[i]) + 1;
            // A window that begins beyond the input and what is before it does not count.
            if (n - 1) * win.step[i] >= d + win.pads[i][0] {
                n -= 1;
            }
            win.pads[i][1] += ((n - 1) * win.step[i] + win.size[i]).saturating_sub(whole);
        }
    }
    let is_line = dims.len() == 3;
    if is_line {
        dims.push(1);
        win.size.push(1);
        win.step.push(1);
        win.pads.push([0, 0]);
    }
    let (op, rank) = match (dims.len(), max) {
        (4, true) => ("MaxPool", 4),
        (4, false) => ("AvgPool", 4),
        (5, true) => ("MaxPool3D", 5),
        (5, false) => ("AvgPool3D", 5),
        _ => return Err(m.uncovered("of this rank")),
    };
    let spatial =
        |v: &[usize]| Attr::ListInt(std::iter::once(1).chain(v.iter().map(|v| *v as i64)).chain([1]).collect());
    let attrs = [("ksize", spatial(&win.size)), ("strides", spatial(&win.step)), ("padding", Attr::from("VALID"))];
    let by = [&[[0, 0], [0, 0]], win.pads.as_slice()].concat();
    let pooled = |x: Value<'g>, edge: f64| -> One<'g> {
        let padded = channels_last(m, m.pad(x, &by, edge))?;
        channels_first(m, m.op_with(op, &[padded], &attrs))
    };
    let x = m.reshape(x, &dims);
    let mut y = pooled(x, if max { f64::NEG_INFINITY } else { 0.0 })?;
    if !max && !counts_pads {
        // The share of each window that lies on the input.
        y = y / pooled(x.ones_like(), 0.0)?;
    }
    if is_line {
        let mut out = m.shape(y)?;
        out.truncate(rank - 1);
        return Ok(m.reshape(y, &out));
    }
    Ok(y)
}

fn global<'g>(m: &'g Map, op: &str) -> One<'g> {
    let axes: Vec<i64> = (2..m.dims(0)?.len() as i64).collect();
    Ok(m.reduce(op, m.x(0)?, &axes, true))
}

/// Input `i`, one number per channel, shaped to run along axis 1.
fn per_channel(m: &Map, i: usize, rank: usize) -> One<'_> {
    channels(m, m.x(i)?, rank)
}

/// A vector of one number per channel, shaped to run along axis 1.
fn channels<'g>(m: &'g Map, v: Value<'g>, rank: usize) -> One<'g> {
    let mut dims = vec![1; rank];
    dims[1.min(rank - 1)] = m.shape(v)?.iter().product();
    Ok(m.reshape(v, &dims))
}

/// `(x - mean) / sqrt(variance + epsilon)`
fn normalised<'g>(m: &'g Map, x: Value<'g>, mean: Value<'g>, variance: Value<'g>) -> Value<'g> {
    (x - mean) * (variance + m.float("epsilon", 1e-5)).rsqrt()
}

fn batch_norm(m: &Map) -> One<'_> {
    let (x, rank) = (m.x(0)?, m.dims(0)?.len());
    let v = |i: usize| per_channel(m, i, rank);
    Ok(normalised(m, x, v(3)?, v(4)?) * v(1)? + v(2)?)
}

/// Mean and variance along axes, kept.
fn moments<'g>(m: &'g Map, x: Value<'g>, axes: &[i64]) -> (Value<'g>, Value<'g>) {
    let mean = m.reduce("Mean", x, axes, true);
    (mean, m.reduce("Mean", x.op_with("SquaredDifference", mean), axes, true))
}

fn instance_norm(m: &Map) -> One<'_> {
    let (x, rank) = (m.x(0)?, m.dims(0)?.len());
    let axes: Vec<i64> = (2..rank as i64).collect();
    let (mean, variance) = moments(m, x, &axes);
    Ok(normalised(m, x, mean, variance) * per_channel(m, 1, rank)? + per_channel(m, 2, rank)?)
}

fn layer_norm(m: &Map) -> Mapped<'_> {
    let (x, rank) = (m.x(0)?, m.dims(0)?.len());
    let axes: Vec<i64> = (axis(m.int("axis", -1), rank) as i64..rank as i64).collect();
    let (mean, variance) = moments(m, x, &axes);
    let mut y = normalised(m, x, mean, variance) * m.x(1)?;
    if m.has(2) {
        y = y + m.x(2)?;
    }
    Ok(vec![y, mean, (variance + m.float("epsilon", 1e-5)).rsqrt()])
}

fn group_norm(m: &Map) -> One<'_> {
    let (x, dims) = (m.x(0)?, m.dims(0)?);
    let n_groups = m.int("num_groups", 1) as usize;
    let rest: usize = dims[1..].iter().product();
    let grouped = m.reshape(x, &[dims[0], n_groups, rest / n_groups]);
    let (mean, variance) = moments(m, grouped, &[2]);
    let y = m.reshape(normalised(m, grouped, mean, variance), &dims);
    // One number per group (before operator set 21), or per channel.
    let spread = |i: usize| -> One<'_> {
        let v = m.dims(i)?[0];
        let times = m.longs(&[1, (dims[1] / v) as i64]);
        channels(m, m.reshape(m.x(i)?, &[v, 1]).op_with("Tile", times), dims.len())
    };
    Ok(y * spread(1)? + spread(2)?)
}

fn mean_variance(m: &Map) -> One<'_> {
    let x = m.x(0)?;
    let axes = m.int_list("axes").unwrap_or_else(|| vec![0, 2, 3]);
    let (mean, variance) = moments(m, x, &axes);
    Ok((x - mean) / (variance.sqrt() + 1e-9))
}

fn lrn(m: &Map) -> One<'_> {
    let size = m.int("size", 1);
    if size % 2 == 0 {
        return Err(m.uncovered("of an even size"));
    }
    let attrs = [
        ("depth_radius", Attr::Int((size - 1) / 2)),
        ("bias", Attr::Float(m.float("bias", 1.0) as f32)),
        ("alpha", Attr::Float((m.float("alpha", 1e-4) / size as f64) as f32)),
        ("beta", Attr::Float(m.float("beta", 0.75) as f32)),
    ];
    channels_first(m, m.op_with("LRN", &[channels_last(m, m.x(0)?)?], &attrs))
}

/// Minus the entry of each class in x, which is [batch, classes, ...], weighted; classes of `ignore_index` weigh nothing.
fn nll<'g>(m: &'g Map, x: Value<'g>) -> One<'g> {
    let dims = m.shape(x)?;
    let n_classes = dims[1];
    let labels = cast(m.x(1)?, DType::I64);
    let zero = x.number(0.0);
    // Classes last, so that they meet the one-hot labels.
    let mut order: Vec<usize> = (0..dims.len()).filter(|i| *i != 1).collect();
    order.push(1);
    let logits = m.transpose(x, &order);
    let chosen = m.op("OneHot", &[labels, m.scalar(n_classes as i64), x.number(1.0), zero]);
    let weighted = if m.has(2) { chosen * m.x(2)? } else { chosen };
    let last = [dims.len() as i64 - 1];
    let mut weight = m.reduce("Sum", weighted, &last, false);
    let mut loss = -m.reduce("Sum", logits * weighted, &last, false);
    if m.has_attr("ignore_index") {
        let ignored = labels.equal(m.int("ignore_index", 0) as f64);
        [weight, loss] = [weight, loss].map(|of| ignored.select(zero, of));
    }
    let all: Vec<i64> = (0..dims.len() as i64 - 1).collect();
    let sum = |of: Value<'g>| m.reduce("Sum", of, &all, false);
    Ok(match m.text("reduction", "mean").as_str() {
        "none" => loss,
        "sum" => sum(loss),
        _ => sum(loss) / sum(weight),
    })
}

fn cross_entropy(m: &Map) -> Mapped<'_> {
    let dims = m.dims(0)?;
    let mut order: Vec<usize> = (0..dims.len()).collect();
    order.swap(1, dims.len() - 1);
    let log = m.transpose(m.transpose(m.x(0)?, &order).log_softmax(), &order);
    Ok(vec![nll(m, log)?, log])
}

/// Without training, the input; the mask says that everything was kept.
fn dropout(m: &Map) -> Mapped<'_> {
    let trains = m.has(2) && m.value(2)?.item::<bool>().unwrap_or(false);
    let ratio = if m.has(1) { m.value(1)?.to_f64().unwrap_or_default().first().copied().unwrap_or(0.5) } else { 0.5 };
    if trains && ratio != 0.0 {
        return Err(m.uncovered("in training"));
    }
    let x = m.x(0)?;
    let zero = x.zeros_like();
    Ok(vec![x.identity(), zero.equal(zero)])
}
