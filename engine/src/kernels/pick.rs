//! Kernels whose outputs are elements of the inputs in another order: pads, reversals, rolls, diagonals, bands.
//!
//! Each says where an element of the output comes from; [`pick`] moves elements of any type.

use super::index::sum_into;
use super::reduce::{axis, axis_mask};
use super::support::{Built, Computed, by_word, cpu_any, kernel, shard_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::dtype::{DType, Element};
use crate::graph::Node;
use crate::memory;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Where an element comes from: the position in one of two tensors.
#[derive(Clone, Copy)]
pub(crate) enum From {
    First(usize),
    Second(usize),
}

/// A tensor whose element `i` is what `from(i)` says, of two tensors of one type.
pub(crate) fn pick(
    c: &KernelContext<'_>,
    sources: [&Tensor; 2],
    shape: Shape,
    from: &(dyn Fn(usize) -> From + Sync),
) -> Result<Tensor, KernelError> {
    fn of<T: Element>(
        c: &KernelContext<'_>,
        sources: [&Tensor; 2],
        shape: Shape,
        from: &(dyn Fn(usize) -> From + Sync),
    ) -> Result<Tensor, KernelError> {
        let (a, b) = (sources[0].words::<T>()?, sources[1].words::<T>()?);
        c.filled_words::<T>(sources[0].dtype(), shape, |out| {
            shard_slice(c.sharder, out, 1, 5000, |at, part| {
                for (i, o) in part.iter_mut().enumerate() {
                    *o = match from(at + i) {
                        From::First(k) => a[k],
                        From::Second(k) => b[k],
                    };
                }
            });
            Ok(())
        })
    }
    if sources[0].dtype() == DType::String {
        let (a, b) = (sources[0].strings()?, sources[1].strings()?);
        let one = |i| match from(i) {
            From::First(k) => a[k].clone(),
            From::Second(k) => b[k].clone(),
        };
        let mut out = memory::vec(shape.n_elements())?;
        out.extend((0..shape.n_elements()).map(one));
        return Ok(Tensor::from_strings(shape.clone(), out)?);
    }
    by_word!(sources[0].dtype(), of(c, sources, shape, from))
}

/// A scalar of zero bits, or an empty string.
pub(crate) fn zero(c: &KernelContext<'_>, dtype: DType) -> Result<Tensor, KernelError> {
    Ok(Tensor::zeros(dtype, Shape::scalar(), c.allocator)?)
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static PICKS: &[KernelDef] = &[
    cpu_any("Pad", |_| kernel(pad)),
    cpu_any("PadV2", |_| kernel(pad)),
    cpu_any("MirrorPad", mirror_pad),
    cpu_any("MirrorPadGrad", mirror_pad_grad),
    cpu_any("Reverse", |_| kernel(reverse_by_mask)),
    cpu_any("ReverseV2", |_| kernel(reverse)),
    cpu_any("ReverseSequence", reverse_sequence),
    cpu_any("Roll", |_| kernel(roll)),
];

/// What is put before and behind each dimension, checked.
fn paddings(c: &KernelContext<'_>) -> Result<Vec<[usize; 2]>, KernelError> {
    let (x, by) = (c.input(0)?, c.input(1)?);
    if by.dims() != [x.shape().rank(), 2] {
        let text =
            format!("paddings must have shape [{},2] for input {}, got {}", x.shape().rank(), x.shape(), by.shape());
        return Err(KernelError::invalid(text));
    }
    let by = c.ints(1)?;
    let size = |v: i64| usize::try_from(v).map_err(|_| KernelError::invalid(format!("padding {v} is negative")));
    by.as_chunks::<2>().0.iter().map(|[a, b]| Ok([size(*a)?, size(*b)?])).collect()
}

fn padded_shape(x: &Shape, by: &[[usize; 2]]) -> Result<Shape, KernelError> {
    let add = |(d, [a, b]): (&usize, &[usize; 2])| d.checked_add(*a)?.checked_add(*b);
    let dims: Option<Vec<usize>> = x.dims().iter().zip(by).map(add).collect();
    dims.map(|d| Shape::new(&d)).ok_or_else(|| KernelError::invalid("the padded shape is too large"))
}

fn pad(c: &mut KernelContext<'_>) -> Computed {
    let (x, by) = (c.input(0)?, paddings(c)?);
    let shape = padded_shape(x.shape(), &by)?;
    let value = if c.inputs.len() > 2 { c.input(2)?.clone() } else { zero(c, x.dtype())? };
    if value.len() != 1 {
        return Err(KernelError::invalid(format!("constant_values must be a scalar, got shape {}", value.shape())));
    }
    if x.dtype() == DType::String {
        let (own, whole) = (x.shape().strides(), shape.strides());
        let out = pick(c, [x, &value], shape.clone(), &|i| {
            let mut at = 0;
            for (k, d) in shape.dims().iter().enumerate() {
                let inside = (i / whole[k] % d).checked_sub(by[k][0]).filter(|v| *v < x.dims()[k]);
                let Some(inside) = inside else { return From::Second(0) };
                at += inside * own[k];
            }
            From::First(at)
        })?;
        c.set(0, out);
        return Ok(());
    }
    fn of<T: Element>(
        c: &KernelContext<'_>,
        value: &Tensor,
        shape: Shape,
        by: &[[usize; 2]],
    ) -> Result<Tensor, KernelError> {
        let x = c.input(0)?;
        let (from, fill) = (x.words::<T>()?, value.words::<T>()?[0]);
        let whole = shape.strides();
        let inner = x.dims().last().copied().unwrap_or(1);
        let first: usize = by.iter().zip(&whole).map(|([a, _], s)| a * s).sum();
        c.filled_words::<T>(x.dtype(), shape, |out| {
            out.fill(fill);
            // Row after row of the input to where it lies in the output.
            let outer = x.shape().rank().saturating_sub(1);
            let mut index = vec![0usize; outer];
            let mut to = first;
            for row in from.chunks_exact(inner.max(1)) {
                out[to..to + inner].copy_from_slice(row);
                for k in (0..outer).rev() {
                    index[k] += 1;
                    to += whole[k];
                    if index[k] < x.dims()[k] {
                        break;
                    }
                    to -= whole[k] * x.dims()[k];
                    index[k] = 0;
                }
            }
            Ok(())
        })
    }
    let out = by_word!(x.dtype(), of(c, &value, shape, &by))?;
    c.set(0, out);
    Ok(())
}

/// Whether a mirrored pad repeats the edge.
fn symmetric(node: &Node) -> Result<bool, KernelError> {
    match node.text("mode")?.as_str() {
        "SYMMETRIC" => Ok(true),
        "REFLECT" => Ok(false),
        other => Err(KernelError::invalid(format!("mode {other} is neither REFLECT nor SYMMETRIC"))),
    }
}

/// Where each element of a mirrored pad of `x` comes from.
fn mirrored(
    x: &Shape,
    whole: &Shape,
    by: &[[usize; 2]],
    symmetric: bool,
) -> Result<impl Fn(usize) -> usize + Sync + use<>, KernelError> {
    for (d, [a, b]) in x.dims().iter().zip(by) {
        let most = if symmetric { *d } else { d.saturating_sub(1) };
        if *a > most || *b > most {
            return Err(KernelError::invalid(format!("paddings {a} and {b} mirror more than a dimension of {d}")));
        }
    }
    let (x, whole, by) = (x.clone(), whole.clone(), by.to_vec());
    let (own, strides) = (x.strides(), whole.strides());
    let edge = usize::from(!symmetric);
    Ok(move |i: usize| {
        let mut at = 0;
        for (k, d) in whole.dims().iter().enumerate() {
            let (p, n, before) = (i / strides[k] % d, x.dims()[k], by[k][0]);
            let inside = match p.checked_sub(before) {
                None => before - p - 1 + edge,
                Some(q) if q < n => q,
                Some(q) => 2 * n - 1 - q - edge,
            };
            at += inside * own[k];
        }
        at
    })
}

fn mirror_pad(node: &Node) -> Built {
    let symmetric = symmetric(node)?;
    kernel(move |c| {
        let (x, by) = (c.input(0)?, paddings(c)?);
        let shape = padded_shape(x.shape(), &by)?;
        let from = mirrored(x.shape(), &shape, &by, symmetric)?;
        let out = pick(c, [x, x], shape, &|i| From::First(from(i)))?;
        c.set(0, out);
        Ok(())
    })
}

/// Adds up what was mirrored.
fn mirror_pad_grad(node: &Node) -> Built {
    let symmetric = symmetric(node)?;
    kernel(move |c| {
        let (x, by) = (c.input(0)?, paddings(c)?);
        let sub = |(d, [a, b]): (&usize, &[usize; 2])| d.checked_sub(a + b);
        let dims: Option<Vec<usize>> = x.dims().iter().zip(&by).map(sub).collect();
        let shape = Shape::new(&dims.ok_or_else(|| KernelError::invalid("the paddings exceed the shape"))?);
        let from = mirrored(&shape, x.shape(), &by, symmetric)?;
        let out = sum_into(c, x, shape, &from)?;
        c.set(0, out);
        Ok(())
    })
}

/// Reverses the dimensions of the mask.
fn reversed(c: &mut KernelContext<'_>, mask: &[bool]) -> Computed {
    let x = c.input(0)?;
    let strides = x.shape().strides();
    let dims = x.dims();
    let out = pick(c, [x, x], x.shape().clone(), &|i| {
        let mut at = i;
        for (k, _) in mask.iter().enumerate().filter(|(_, r)| **r) {
            let p = i / strides[k] % dims[k];
            at = at + (dims[k] - 1 - p) * strides[k] - p * strides[k];
        }
        From::First(at)
    })?;
    c.set(0, out);
    Ok(())
}

fn reverse(c: &mut KernelContext<'_>) -> Computed {
    let axes = c.ints(1)?;
    let mask = axis_mask(&axes, c.input(0)?.shape().rank())?;
    if mask.iter().filter(|m| **m).count() != axes.len() {
        return Err(KernelError::invalid(format!("axes {axes:?} name one twice")));
    }
    reversed(c, &mask)
}

fn reverse_by_mask(c: &mut KernelContext<'_>) -> Computed {
    let mask = c.slice::<bool>(1)?.to_vec();
    if mask.len() != c.input(0)?.shape().rank() {
        return Err(KernelError::invalid(format!("{} truth values for shape {}", mask.len(), c.input(0)?.shape())));
    }
    reversed(c, &mask)
}

fn reverse_sequence(node: &Node) -> Built {
    let (seq, batch) = (*node.int("seq_dim")?, *node.int("batch_dim")?);
    kernel(move |c| {
        let x = c.input(0)?;
        let rank = x.shape().rank();
        let (seq, batch) = (axis(seq, rank)?, axis(batch, rank)?);
        let lengths = c.ints(1)?;
        let (n, n_batch) = (x.dims()[seq], x.dims()[batch]);
        if seq == batch || lengths.len() != n_batch {
            let text = format!("{} lengths for axis {batch} of shape {}", lengths.len(), x.shape());
            return Err(KernelError::invalid(text));
        }
        if let Some(l) = lengths.iter().find(|l| !(0..=n as i64).contains(*l)) {
            return Err(KernelError::invalid(format!("length {l} is outside of [0, {n}]")));
        }
        let strides = x.shape().strides();
        let out = pick(c, [x, x], x.shape().clone(), &|i| {
            let (p, len) = (i / strides[seq] % n, lengths[i / strides[batch] % n_batch] as usize);
            if p >= len {
                return From::First(i);
            }
            From::First(i + (len - 1 - p) * strides[seq] - p * strides[seq])
        })?;
        c.set(0, out);
        Ok(())
    })
}

fn roll(c: &mut KernelContext<'_>) -> Computed {
    let x = c.input(0)?;
    let rank = x.shape().rank();
    let (shifts, axes) = (c.ints(1)?, c.ints(2)?);
    if shifts.len() != axes.len() {
        return Err(KernelError::invalid(format!("{} shifts for {} axes", shifts.len(), axes.len())));
    }
    let mut by = vec![0usize; rank];
    for (shift, a) in shifts.iter().zip(&axes) {
        let a = axis(*a, rank)?;
        let n = x.dims()[a].max(1) as i64;
        by[a] = ((by[a] as i64 + shift.rem_euclid(n)) % n) as usize;
    }
    let strides = x.shape().strides();
    let out = pick(c, [x, x], x.shape().clone(), &|i| {
        let one = |k: usize| {
            let d = x.dims()[k];
            (i / strides[k] % d + d - by[k]) % d * strides[k]
        };
        From::First((0..rank).map(one).sum())
    })?;
    c.set(0, out);
    Ok(())
}
