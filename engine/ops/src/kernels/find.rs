//! Kernels that find elements by value, and small ones that compute with shapes and positions.

use rustc_hash::FxHashMap;

use super::layout::viewed;
use super::support::{Built, Computed, by_word, cheap, cpu_any, kernel, shard_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::convert::{convert, wide_of};
use engine_core::dtype::{DType, Element};
use engine_core::geometry::{OneHot, View, axis, one};
use engine_core::graph::Node;
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static FIND: &[KernelDef] = &[
    cpu_any("Where", |_| kernel(nonzero)),
    cpu_any("Unique", unique),
    cpu_any("UniqueV2", unique),
    cpu_any("UniqueWithCounts", unique),
    cpu_any("UniqueWithCountsV2", unique),
    cpu_any("ListDiff", list_diff),
    cpu_any("LowerBound", |n| bound(n, false)),
    cpu_any("UpperBound", |n| bound(n, true)),
    cpu_any("InvertPermutation", |_| kernel(invert_permutation)),
    cpu_any("OneHot", one_hot),
    cpu_any("ShapeN", |n| {
        let to = *n.dtype("out_type")?;
        cheap(move |c| {
            for i in 0..c.inputs.len() {
                let dims: Vec<i64> = c.input(i)?.dims().iter().map(|d| *d as i64).collect();
                let out = sizes(c, &dims, to)?;
                c.set(i, out);
            }
            Ok(())
        })
    }),
    cpu_any("BroadcastArgs", |_| {
        cheap(|c| {
            let shape = super::broadcast::broadcast_shape(&c.shape_input(0)?, &c.shape_input(1)?)?;
            let dims: Vec<i64> = shape.dims().iter().map(|d| *d as i64).collect();
            let out = sizes(c, &dims, c.input(0)?.dtype())?;
            c.set(0, out);
            Ok(())
        })
    }),
    cpu_any("ConcatOffset", |_| cheap(concat_offset)),
    cpu_any("Bitcast", bitcast),
    cpu_any("EnsureShape", ensure_shape),
    cpu_any("PreventGradient", |_| cheap(super::elementwise::forward)),
    cpu_any("Snapshot", |_| cheap(super::elementwise::forward)),
    cpu_any("DeepCopy", |_| {
        kernel(|c| {
            let copy = c.input(0)?.clone();
            let copy = super::index::owned(c, copy)?;
            c.set(0, copy);
            Ok(())
        })
    }),
    cpu_any("Empty", |n| {
        let dtype = *n.dtype("dtype")?;
        kernel(move |c| {
            let zeros = Tensor::zeros(dtype, c.shape_input(0)?, c.allocator)?;
            c.set(0, zeros);
            Ok(())
        })
    }),
    cpu_any("Bincount", |_| kernel(bincount)),
    cpu_any("HistogramFixedWidth", histogram),
];

/// Integers as a vector of another integer type, which must hold them.
fn sizes(c: &KernelContext<'_>, values: &[i64], to: DType) -> Result<Tensor, KernelError> {
    if to == DType::I32 && values.iter().any(|v| i32::try_from(*v).is_err()) {
        return Err(KernelError::invalid("the sizes do not fit int32: ask for int64"));
    }
    Ok(convert(&Tensor::vector(values), to, c.allocator)?)
}

/// The indices of all elements that are not zero, in order.
fn nonzero(c: &mut KernelContext<'_>) -> Computed {
    let x = c.input(0)?;
    let truth = convert(x, DType::Bool, c.allocator)?;
    let strides = x.shape().strides();
    let mut found: Vec<i64> = Vec::new();
    let mut n = 0;
    for (i, _) in truth.slice::<bool>()?.iter().enumerate().filter(|(_, v)| **v) {
        n += 1;
        found.extend(strides.iter().zip(x.dims()).map(|(s, d)| (i / s % d) as i64));
    }
    c.set(0, Tensor::from_vec([n, x.shape().rank()], found)?);
    Ok(())
}

/// The bytes of each of `n` items of a tensor, so that equal items have equal bytes.
fn keys(c: &KernelContext<'_>, x: &Tensor, n: usize) -> Result<Vec<Vec<u8>>, KernelError> {
    let per = x.len() / n.max(1);
    if x.dtype() == DType::String {
        let item =
            |s: &[Vec<u8>]| s.iter().flat_map(|s| [&(s.len() as u64).to_le_bytes(), s.as_slice()].concat()).collect();
        return Ok((0..n).map(|i| item(&x.strings().unwrap_or_default()[i * per..(i + 1) * per])).collect());
    }
    // -0 equals 0: adding 0 makes it so.
    let same = match x.dtype() {
        DType::F32 => super::elementwise::map_to::<f32, f32>(c, x, 300, |v| v + 0.0)?,
        DType::F64 => super::elementwise::map_to::<f64, f64>(c, x, 300, |v| v + 0.0)?,
        d if d.is_float() => convert(x, DType::F32, c.allocator)?,
        _ => x.clone(),
    };
    let bytes = same.bytes();
    let per = bytes.len() / n.max(1);
    Ok((0..n).map(|i| bytes[i * per..(i + 1) * per].to_vec()).collect())
}

/// Items of the first dimension, by position.
fn items(c: &KernelContext<'_>, x: &Tensor, chosen: &[usize]) -> Result<Tensor, KernelError> {
    let inner: usize = x.dims()[1..].iter().product();
    let shape = Shape::new(&[&[chosen.len()], &x.dims()[1..]].concat());
    super::pick::pick(c, [x, x], shape, &|i| {
        super::pick::ElementSource::First(chosen[i / inner.max(1)] * inner + i % inner.max(1))
    })
}

/// The tensor with one axis brought to the front, or back from there.
fn axis_first(c: &KernelContext<'_>, x: &Tensor, at: usize, back: bool) -> Result<Tensor, KernelError> {
    let mut order: Vec<usize> = (0..x.shape().rank()).collect();
    if back {
        order.remove(0);
        order.insert(at, 0);
    } else {
        order.remove(at);
        order.insert(0, at);
    }
    viewed(c, x, &View::permuted(x.shape(), &order))
}

/// Distinct items in the order of their first places, where each item is among them, and how often.
fn unique(node: &Node) -> Built {
    let to = *node.dtype("out_idx")?;
    kernel(move |c| {
        let x = c.input(0)?;
        let axes = if c.inputs.len() > 1 { c.ints(1)? } else { Vec::new() };
        let at = match axes.as_slice() {
            [] if x.shape().rank() == 1 => 0,
            [a] => axis(*a, x.shape().rank())?,
            _ => return Err(KernelError::invalid(format!("axes {axes:?} of shape {}", x.shape()))),
        };
        let front = axis_first(c, x, at, false)?;
        let n = front.dims()[0];
        let (mut places, mut firsts, mut counts) = (Vec::with_capacity(n), Vec::new(), Vec::new());
        let mut seen: FxHashMap<Vec<u8>, usize> = FxHashMap::default();
        for (i, key) in keys(c, &front, n)?.into_iter().enumerate() {
            let id = *seen.entry(key).or_insert(firsts.len());
            if id == firsts.len() {
                firsts.push(i);
                counts.push(0i64);
            }
            counts[id] += 1;
            places.push(id as i64);
        }
        let y = items(c, &front, &firsts)?;
        let y = axis_first(c, &y, at, true)?;
        let idx = sizes(c, &places, to)?;
        c.set(0, y);
        c.set(1, idx);
        if c.outputs.len() > 2 {
            let counts = sizes(c, &counts, to)?;
            c.set(2, counts);
        }
        Ok(())
    })
}

/// The elements of x that are not in y, and where they were.
fn list_diff(node: &Node) -> Built {
    let to = *node.dtype("out_idx")?;
    kernel(move |c| {
        let (x, y) = (c.input(0)?, c.input(1)?);
        if x.shape().rank() != 1 || y.shape().rank() != 1 {
            return Err(KernelError::invalid(format!("x and y must be vectors, got {} and {}", x.shape(), y.shape())));
        }
        let gone: std::collections::HashSet<Vec<u8>> = keys(c, y, y.len())?.into_iter().collect();
        let own = keys(c, x, x.len())?;
        let left: Vec<usize> = (0..x.len()).filter(|i| !gone.contains(&own[*i])).collect();
        let out = items(c, x, &left)?;
        let idx = sizes(c, &left.iter().map(|i| *i as i64).collect::<Vec<_>>(), to)?;
        c.set(0, out);
        c.set(1, idx);
        Ok(())
    })
}

/// For each value, how many of its row's sorted numbers are below it (`upper`: not above it).
fn bound(node: &Node, upper: bool) -> Built {
    let to = *node.dtype("out_type")?;
    kernel(move |c| {
        let (sorted, values) = (c.input(0)?, c.input(1)?);
        let (&[batch, n], &[batch2, m]) = (sorted.dims(), values.dims()) else {
            return Err(KernelError::invalid("sorted_inputs and values must be matrices"));
        };
        if batch != batch2 {
            return Err(KernelError::invalid(format!("{batch} rows of sorted_inputs, {batch2} of values")));
        }
        fn of<T: Element + PartialOrd>(
            sorted: &Tensor,
            values: &Tensor,
            n: usize,
            m: usize,
            upper: bool,
        ) -> Result<Vec<i64>, KernelError> {
            let (sorted, values) = (sorted.slice::<T>()?, values.slice::<T>()?);
            let one = |(i, v): (usize, &T)| {
                let row = &sorted[i / m * n..(i / m + 1) * n];
                row.partition_point(|s| if upper { s <= v } else { s < v }) as i64
            };
            Ok(values.iter().enumerate().map(one).collect())
        }
        let wide = wide_of(sorted.dtype()).ok_or_else(|| KernelError::invalid("values must be numbers"))?;
        let (sorted, values) = (convert(sorted, wide, c.allocator)?, convert(values, wide, c.allocator)?);
        let found = match wide {
            DType::F64 => of::<f64>(&sorted, &values, n, m, upper)?,
            DType::I64 => of::<i64>(&sorted, &values, n, m, upper)?,
            DType::U64 => of::<u64>(&sorted, &values, n, m, upper)?,
            other => return Err(KernelError::invalid(format!("{other} has no order"))),
        };
        let out = sizes(c, &found, to)?.into_shape(Shape::new(&[batch, m]))?;
        c.set(0, out);
        Ok(())
    })
}

fn invert_permutation(c: &mut KernelContext<'_>) -> Computed {
    let perm = c.ints(0)?;
    let mut inverse = vec![-1i64; perm.len()];
    for (to, from) in perm.iter().enumerate() {
        let slot = usize::try_from(*from).ok().and_then(|f| inverse.get_mut(f)).filter(|s| **s < 0);
        *slot.ok_or_else(|| KernelError::invalid(format!("{perm:?} is not a permutation")))? = to as i64;
    }
    let out = sizes(c, &inverse, c.input(0)?.dtype())?;
    c.set(0, out);
    Ok(())
}

fn one_hot(node: &Node) -> Built {
    let geometry = super::measure::one_hot(node)?;
    kernel(move |c| {
        let to = geometry(c)?;
        let (values, on, off) = (c.ints(0)?, c.input(2)?, c.input(3)?);
        let out = if on.dtype() == DType::String {
            let OneHot { shape, depth, inner } = to;
            super::pick::pick(c, [on, off], shape, &|i| {
                let (k, rest) = (i / inner % depth, i / inner / depth * inner + i % inner);
                if values[rest] == k as i64 {
                    super::pick::ElementSource::First(0)
                } else {
                    super::pick::ElementSource::Second(0)
                }
            })?
        } else {
            by_word!(on.dtype(), set_one_in_each(c, &to, &values))?
        };
        c.set(0, out);
        Ok(())
    })
}

/// Off everywhere, and on where a value says.
fn set_one_in_each<T: Element>(c: &KernelContext<'_>, to: &OneHot, values: &[i64]) -> Result<Tensor, KernelError> {
    let (on, off) = (c.words::<T>(2)?[0], c.words::<T>(3)?[0]);
    let OneHot { depth, inner, .. } = *to;
    c.filled_words::<T>(c.input(2)?.dtype(), to.shape.clone(), |out| {
        shard_slice(c.sharder, out, 1, 1, |_, part| part.fill(off));
        for (i, value) in values.iter().enumerate() {
            if let Some(k) = usize::try_from(*value).ok().filter(|k| *k < depth) {
                out[(i / inner * depth + k) * inner + i % inner] = on;
            }
        }
        Ok(())
    })
}

/// Where each part of a concatenation begins.
fn concat_offset(c: &mut KernelContext<'_>) -> Computed {
    let first = c.ints(1)?;
    let at = axis(one("the axis", &c.ints(0)?)?, first.len())?;
    let mut begin = 0;
    for i in 1..c.inputs.len() {
        let shape = c.ints(i)?;
        let fits = shape.len() == first.len() && (0..first.len()).all(|k| k == at || shape[k] == first[k]);
        if !fits {
            return Err(KernelError::invalid(format!("shapes {first:?} and {shape:?} differ elsewhere than at {at}")));
        }
        let mut offset = vec![0i64; shape.len()];
        offset[at] = begin;
        begin += shape[at];
        let out = sizes(c, &offset, c.input(i)?.dtype())?;
        c.set(i - 1, out);
    }
    Ok(())
}

/// The same bytes as elements of another type.
fn bitcast(node: &Node) -> Built {
    let to = *node.dtype("type")?;
    kernel(move |c| {
        let x = c.input(0)?;
        let (a, b) = (x.dtype().size(), to.size());
        let mut dims = x.dims().to_vec();
        if a > b {
            dims.push(a / b);
        } else if a < b && dims.pop() != Some(b / a) {
            return Err(KernelError::invalid(format!("the last dimension of {} must be {}", x.shape(), b / a)));
        }
        let out = Tensor::from_bytes(to, Shape::new(&dims), x.bytes(), c.allocator)?;
        c.set(0, out);
        Ok(())
    })
}

fn ensure_shape(node: &Node) -> Built {
    let wanted = node.shape("shape")?.clone();
    cheap(move |c| {
        let x = c.take(0)?;
        if !wanted.admits(x.shape()) {
            return Err(KernelError::invalid(format!("shape {} is not {wanted}", x.shape())));
        }
        c.set(0, x);
        Ok(())
    })
}

/// How often each number below `size` occurs, or the sums of its weights.
fn bincount(c: &mut KernelContext<'_>) -> Computed {
    let (values, weights) = (c.ints(0)?, c.input(2)?);
    let n = match c.ints(1)?.as_slice() {
        [n] => usize::try_from(*n).map_err(|_| KernelError::invalid(format!("size {n} is negative")))?,
        more => return Err(KernelError::invalid(format!("size must be a scalar, got {more:?}"))),
    };
    if let Some(v) = values.iter().find(|v| **v < 0) {
        return Err(KernelError::invalid(format!("{v} is negative")));
    }
    if !weights.is_empty() && weights.len() != values.len() {
        return Err(KernelError::invalid(format!("{} weights for {} numbers", weights.len(), values.len())));
    }
    let each = weights.to_f64()?;
    let mut sums = memory::filled(0f64, n)?;
    for (i, v) in values.iter().enumerate() {
        if let Some(sum) = sums.get_mut(*v as usize) {
            *sum += each.get(i).copied().unwrap_or(1.0);
        }
    }
    let out = convert(&Tensor::vector(&sums), weights.dtype(), c.allocator)?;
    c.set(0, out);
    Ok(())
}

/// How many values lie in each of `nbins` equal parts of a range; those outside count in the first and last.
fn histogram(node: &Node) -> Built {
    let to = *node.dtype("dtype")?;
    kernel(move |c| {
        let (values, range) = (c.input(0)?.to_f64()?, c.input(1)?.to_f64()?);
        let n = c.ints(2)?.first().and_then(|n| usize::try_from(*n).ok()).filter(|n| *n > 0);
        let (Some(n), &[low, high]) = (n, range.as_slice()) else {
            return Err(KernelError::invalid("value_range must be two numbers, nbins positive"));
        };
        if !(low < high) {
            return Err(KernelError::invalid(format!("value_range [{low}, {high}] is empty")));
        }
        let mut counts = memory::filled(0i64, n)?;
        let step = (high - low) / n as f64;
        for v in values {
            let bin = ((v - low) / step).floor().clamp(0.0, (n - 1) as f64);
            counts[bin as usize] += 1;
        }
        let out = sizes(c, &counts, to)?;
        c.set(0, out);
        Ok(())
    })
}
