//! Operators of neural nets: softmax, convolutions, pools, normalisations, losses.

use engine::graph::Attr;
use engine::{DType, Output};

use crate::map::{Map, Mapped, One, axis};

pub fn map(m: &Map<'_>) -> Option<Mapped> {
    let single = |one: One| Some(one.map(|o| vec![o]));
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
fn softmax(m: &Map<'_>) -> One {
    let (x, dims) = (m.x(0)?, m.dims(0)?);
    if m.opset < 13 {
        let at = axis(m.int("axis", 1), dims.len());
        let flat = m.reshape(x, &[dims[..at].iter().product(), dims[at..].iter().product()])?;
        let y = soft_last(m, flat)?;
        return m.reshape(y, &dims);
    }
    let at = axis(m.int("axis", -1), dims.len());
    let mut order: Vec<usize> = (0..dims.len()).collect();
    order.swap(at, dims.len() - 1);
    let y = soft_last(m, m.transpose(x, &order)?)?;
    m.transpose(y, &order)
}

fn soft_last(m: &Map<'_>, x: Output) -> One {
    if m.node.op_type != "Hardmax" {
        return m.op(&m.node.op_type, &[x]);
    }
    let dims = m.shape(x)?;
    let first = m.op("ArgMax", &[x, m.scalar(-1)?])?;
    let depth = m.scalar(dims[dims.len() - 1] as i64)?;
    m.op("OneHot", &[first, depth, m.number(1.0, x)?, m.number(0.0, x)?])
}

/// The window of a convolution or pool along each spatial axis.
struct Window {
    size: Vec<usize>,
    step: Vec<usize>,
    rate: Vec<usize>,
    pads: Vec<[usize; 2]>,
}

fn window(m: &Map<'_>, space: &[usize], size: Vec<usize>) -> Result<Window, crate::map::MapError> {
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
pub fn channels_last(m: &Map<'_>, x: Output) -> One {
    let rank = m.shape(x)?.len();
    let order: Vec<usize> = std::iter::once(0).chain(2..rank).chain([1]).collect();
    m.transpose(x, &order)
}

pub fn channels_first(m: &Map<'_>, x: Output) -> One {
    let rank = m.shape(x)?.len();
    let order: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    m.transpose(x, &order)
}

/// As a 2-D or 3-D convolution of a padded input, group by group; one dimension becomes two.
fn conv(m: &Map<'_>, x: Output, w: Output, biased: bool) -> One {
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
    let x = m.reshape(x, &dims)?;
    let by = [&[[0, 0], [0, 0]], win.pads.as_slice()].concat();
    let x = channels_last(m, m.pad(x, &by, m.number(0.0, x)?)?)?;
    // Filters last: space, inputs, outputs.
    let order: Vec<usize> = (2..filter.len()).chain([1, 0]).collect();
    let w = m.transpose(m.reshape(w, &filter)?, &order)?;
    let n_groups = m.int("group", 1) as usize;
    let spatial =
        |v: &[usize]| Attr::ListInt(std::iter::once(1).chain(v.iter().map(|v| *v as i64)).chain([1]).collect());
    let attrs = [("strides", spatial(&win.step)), ("dilations", spatial(&win.rate)), ("padding", Attr::from("VALID"))];
    let last = m.scalar(dims.len() as i64 - 1)?;
    let mut parts = Vec::new();
    if n_groups == 1 {
        parts.push(m.op_with(op, &[x, w], &attrs)?);
    } else {
        let split = [("num_split", Attr::Int(n_groups as i64))];
        let (xs, ws) = (m.op_with("Split", &[last, x], &split)?, m.op_with("Split", &[last, w], &split)?);
        for g in 0..n_groups as u32 {
            parts.push(m.op_with(op, &[Output { port: g, ..xs }, Output { port: g, ..ws }], &attrs)?);
        }
    }
    let mut y = if parts.len() == 1 { parts[0] } else { m.op_of_list("ConcatV2", &parts, &[last], &[])? };
    if biased && m.has(2) {
        y = m.op("AddV2", &[y, m.x(2)?])?;
    }
    let y = channels_first(m, y)?;
    let mut out = m.shape(y)?;
    if is_line {
        out.pop();
        return m.reshape(y, &out);
    }
    Ok(y)
}

/// The part of the whole transposed convolution along one axis that is kept: from where, and how much.
fn kept(m: &Map<'_>, axis: usize, n_axes: usize, n: usize, step: usize, extent: usize) -> (usize, usize) {
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
fn conv_transpose(m: &Map<'_>) -> One {
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
    let w = m.transpose(m.reshape(m.x(1)?, &filter)?, &order)?;
    let x = channels_last(m, m.reshape(m.x(0)?, &dims)?)?;
    let sizes: Vec<i32> = [&[dims[0]], whole.as_slice(), &[filter[1]]].concat().iter().map(|n| *n as i32).collect();
    let spatial = |v: &[i64]| Attr::ListInt(std::iter::once(1).chain(v.iter().copied()).chain([1]).collect());
    let attrs = [("strides", spatial(&step)), ("dilations", spatial(&rate)), ("padding", Attr::from("VALID"))];
    let sizes = m.constant(engine::Tensor::vector(&sizes))?;
    let mut y = channels_first(m, m.op_with(op, &[sizes, w, x], &attrs)?)?;
    for (i, (from, n)) in kept.iter().enumerate() {
        // What is asked for beyond the whole is zeros.
        let mut by = vec![[0; 2]; dims.len()];
        by[i + 2][1] = (from + n).saturating_sub(whole[i]);
        y = m.pad(y, &by, m.number(0.0, y)?)?;
        let rows: Vec<i64> = (*from..from + n).map(|r| r as i64).collect();
        y = m.op("GatherV2", &[y, m.int_vector(&rows)?, m.scalar(i as i64 + 2)?])?;
    }
    let mut out = m.shape(y)?;
    out.truncate(n_axes + 2);
    y = m.reshape(y, &out)?;
    if m.has(2) { m.op("AddV2", &[y, per_channel(m, m.x(2)?, out.len())?]) } else { Ok(y) }
}

/// In f64, which holds the products of bytes exactly.
fn conv_integer(m: &Map<'_>) -> One {
    let centred = |i: usize, zero: usize| -> One {
        let x = m.cast(m.x(i)?, DType::F64)?;
        if m.has(zero) { m.op("Sub", &[x, m.cast(m.x(zero)?, DType::F64)?]) } else { Ok(x) }
    };
    let y = conv(m, centred(0, 2)?, centred(1, 3)?, false)?;
    m.cast(y, DType::I32)
}

/// The root of the sum of powers in each window: what an average that counts pads is, times the elements.
fn lp_pool(m: &Map<'_>) -> One {
    let x = m.x(0)?;
    let p = m.int("p", 2) as f64;
    let powers = m.op("Pow", &[m.op("Abs", &[x])?, m.number(p, x)?])?;
    let mean = pool(m, powers, false, true)?;
    let n = m.int_list("kernel_shape").unwrap_or_default().iter().product::<i64>();
    let sum = m.op("Mul", &[mean, m.number(n as f64, x)?])?;
    m.op("Pow", &[sum, m.number(p.recip(), x)?])
}

/// Maxima or averages, of which the latter may count pads.
fn pool(m: &Map<'_>, x: Output, max: bool, counts_pads: bool) -> One {
    let mut dims = m.dims(0)?;
    if !m.type_of(x).is_float() {
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
    let pooled = |x: Output, edge: f64| -> One {
        let padded = m.pad(x, &by, m.number(edge, x)?)?;
        let y = m.op_with(op, &[channels_last(m, padded)?], &attrs)?;
        channels_first(m, y)
    };
    let x = m.reshape(x, &dims)?;
    let mut y = pooled(x, if max { f64::NEG_INFINITY } else { 0.0 })?;
    if !max && !counts_pads {
        // The share of each window that lies on the input.
        let share = pooled(m.op("OnesLike", &[x])?, 0.0)?;
        y = m.op("RealDiv", &[y, share])?;
    }
    if is_line {
        let mut out = m.shape(y)?;
        out.truncate(rank - 1);
        return m.reshape(y, &out);
    }
    Ok(y)
}

fn global(m: &Map<'_>, op: &str) -> One {
    let axes: Vec<i64> = (2..m.dims(0)?.len() as i64).collect();
    m.reduce(op, m.x(0)?, &axes, true)
}

/// A vector of one number per channel, shaped to run along axis 1.
fn per_channel(m: &Map<'_>, v: Output, rank: usize) -> One {
    let n = m.shape(v)?.iter().product();
    let mut dims = vec![1; rank];
    dims[1.min(rank - 1)] = n;
    m.reshape(v, &dims)
}

/// `(x - mean) / sqrt(variance + epsilon)`
fn normalised(m: &Map<'_>, x: Output, mean: Output, variance: Output, epsilon: f64) -> One {
    let centred = m.op("Sub", &[x, mean])?;
    let shifted = m.op("AddV2", &[variance, m.number(epsilon, variance)?])?;
    let inverse = m.op("Rsqrt", &[shifted])?;
    m.op("Mul", &[centred, inverse])
}

fn batch_norm(m: &Map<'_>) -> One {
    let (x, rank) = (m.x(0)?, m.dims(0)?.len());
    let v = |i: usize| per_channel(m, m.x(i)?, rank);
    let y = normalised(m, x, v(3)?, v(4)?, m.float("epsilon", 1e-5))?;
    let y = m.op("Mul", &[y, v(1)?])?;
    m.op("AddV2", &[y, v(2)?])
}

/// Mean and variance along axes, kept.
fn moments(m: &Map<'_>, x: Output, axes: &[i64]) -> Result<(Output, Output), crate::map::MapError> {
    let mean = m.reduce("Mean", x, axes, true)?;
    let squares = m.op("SquaredDifference", &[x, mean])?;
    Ok((mean, m.reduce("Mean", squares, axes, true)?))
}

fn instance_norm(m: &Map<'_>) -> One {
    let (x, rank) = (m.x(0)?, m.dims(0)?.len());
    let axes: Vec<i64> = (2..rank as i64).collect();
    let (mean, variance) = moments(m, x, &axes)?;
    let y = normalised(m, x, mean, variance, m.float("epsilon", 1e-5))?;
    let y = m.op("Mul", &[y, per_channel(m, m.x(1)?, rank)?])?;
    m.op("AddV2", &[y, per_channel(m, m.x(2)?, rank)?])
}

fn layer_norm(m: &Map<'_>) -> Mapped {
    let (x, rank) = (m.x(0)?, m.dims(0)?.len());
    let axes: Vec<i64> = (axis(m.int("axis", -1), rank) as i64..rank as i64).collect();
    let (mean, variance) = moments(m, x, &axes)?;
    let epsilon = m.float("epsilon", 1e-5);
    let mut y = normalised(m, x, mean, variance, epsilon)?;
    y = m.op("Mul", &[y, m.x(1)?])?;
    if m.has(2) {
        y = m.op("AddV2", &[y, m.x(2)?])?;
    }
    let shifted = m.op("AddV2", &[variance, m.number(epsilon, variance)?])?;
    Ok(vec![y, mean, m.op("Rsqrt", &[shifted])?])
}

fn group_norm(m: &Map<'_>) -> One {
    let (x, dims) = (m.x(0)?, m.dims(0)?);
    let n_groups = m.int("num_groups", 1) as usize;
    let rest: usize = dims[1..].iter().product();
    let grouped = m.reshape(x, &[dims[0], n_groups, rest / n_groups])?;
    let (mean, variance) = moments(m, grouped, &[2])?;
    let y = m.reshape(normalised(m, grouped, mean, variance, m.float("epsilon", 1e-5))?, &dims)?;
    // One number per group (before operator set 21), or per channel.
    let spread = |i: usize| -> One {
        let v = m.dims(i)?[0];
        let times = dims[1] / v;
        let wide = m.op("Tile", &[m.reshape(m.x(i)?, &[v, 1])?, m.int_vector(&[1, times as i64])?])?;
        per_channel(m, wide, dims.len())
    };
    let y = m.op("Mul", &[y, spread(1)?])?;
    m.op("AddV2", &[y, spread(2)?])
}

fn mean_variance(m: &Map<'_>) -> One {
    let x = m.x(0)?;
    let axes = m.int_list("axes").unwrap_or_else(|| vec![0, 2, 3]);
    let (mean, variance) = moments(m, x, &axes)?;
    let centred = m.op("Sub", &[x, mean])?;
    let deviation = m.op("Sqrt", &[variance])?;
    let deviation = m.op("AddV2", &[deviation, m.number(1e-9, x)?])?;
    m.op("RealDiv", &[centred, deviation])
}

fn lrn(m: &Map<'_>) -> One {
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
    let y = m.op_with("LRN", &[channels_last(m, m.x(0)?)?], &attrs)?;
    channels_first(m, y)
}

/// Minus the entry of each class in x, which is [batch, classes, ...], weighted; classes of `ignore_index` weigh nothing.
fn nll(m: &Map<'_>, x: Output) -> One {
    let dims = m.shape(x)?;
    let n_classes = dims[1];
    let labels = m.cast(m.x(1)?, DType::I64)?;
    let depth = m.scalar(n_classes as i64)?;
    let (one, zero) = (m.number(1.0, x)?, m.number(0.0, x)?);
    // Classes last, so that they meet the one-hot labels.
    let mut order: Vec<usize> = (0..dims.len()).filter(|i| *i != 1).collect();
    order.push(1);
    let logits = m.transpose(x, &order)?;
    let chosen = m.op("OneHot", &[labels, depth, one, zero])?;
    let weighted = if m.has(2) { m.op("Mul", &[chosen, m.x(2)?])? } else { chosen };
    let last = [dims.len() as i64 - 1];
    let mut weight = m.reduce("Sum", weighted, &last, false)?;
    let mut loss = m.op("Mul", &[logits, weighted])?;
    loss = m.op("Neg", &[m.reduce("Sum", loss, &last, false)?])?;
    if m.has_attr("ignore_index") {
        let ignored = m.op("Equal", &[labels, m.number(m.int("ignore_index", 0) as f64, labels)?])?;
        weight = m.op("SelectV2", &[ignored, zero, weight])?;
        loss = m.op("SelectV2", &[ignored, zero, loss])?;
    }
    let all: Vec<i64> = (0..dims.len() as i64 - 1).collect();
    match m.text("reduction", "mean").as_str() {
        "none" => Ok(loss),
        "sum" => m.reduce("Sum", loss, &all, false),
        _ => {
            let (loss, weight) = (m.reduce("Sum", loss, &all, false)?, m.reduce("Sum", weight, &all, false)?);
            m.op("RealDiv", &[loss, weight])
        }
    }
}

fn cross_entropy(m: &Map<'_>) -> Mapped {
    let dims = m.dims(0)?;
    let mut order: Vec<usize> = (0..dims.len()).collect();
    order.swap(1, dims.len() - 1);
    let log = m.op("LogSoftmax", &[m.transpose(m.x(0)?, &order)?])?;
    let log = m.transpose(log, &order)?;
    Ok(vec![nll(m, log)?, log])
}

/// Without training, the input; the mask says that all of it was kept.
fn dropout(m: &Map<'_>) -> Mapped {
    let trains = m.has(2) && m.value(2)?.item::<bool>().unwrap_or(false);
    let ratio = if m.has(1) { m.value(1)?.to_f64().unwrap_or_default().first().copied().unwrap_or(0.5) } else { 0.5 };
    if trains && ratio != 0.0 {
        return Err(m.uncovered("in training"));
    }
    let x = m.x(0)?;
    let zero = m.op("ZerosLike", &[x])?;
    let differs = m.op("NotEqual", &[zero, zero])?;
    Ok(vec![m.op("Identity", &[x])?, m.op("LogicalNot", &[differs])?])
}
