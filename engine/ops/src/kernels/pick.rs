//! Kernels whose outputs are elements of the inputs in another order, which no strides describe: pads, rolls, mirrors.
//!
//! Each says where an element of the output comes from; [`pick`] moves elements of any type.

use super::index::sum_into;
use super::layout::place;
use super::support::{Built, Computed, by_word, cpu_any, kernel, shard_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError, measure};
use engine_core::dtype::{DType, Element};
use engine_core::geometry::{Pad, axis};
use engine_core::graph::Node;
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// Where an element comes from: the position in one of two tensors.
#[derive(Clone, Copy)]
pub enum ElementSource {
    First(usize),
    Second(usize),
}

/// A tensor whose element `i` is what `from(i)` says, of two tensors of one type.
pub(crate) fn pick(
    c: &KernelContext<'_>,
    sources: [&Tensor; 2],
    shape: Shape,
    from: &(dyn Fn(usize) -> ElementSource + Sync),
) -> Result<Tensor, KernelError> {
    fn of<T: Element>(
        c: &KernelContext<'_>,
        sources: [&Tensor; 2],
        shape: Shape,
        from: &(dyn Fn(usize) -> ElementSource + Sync),
    ) -> Result<Tensor, KernelError> {
        let (a, b) = (sources[0].words::<T>()?, sources[1].words::<T>()?);
        c.filled_words::<T>(sources[0].dtype(), shape, |out| {
            shard_slice(c.sharder, out, 1, 5000, |at, part| {
                for (i, o) in part.iter_mut().enumerate() {
                    *o = match from(at + i) {
                        ElementSource::First(k) => a[k],
                        ElementSource::Second(k) => b[k],
                    };
                }
            });
            Ok(())
        })
    }
    if sources[0].dtype() == DType::String {
        let (a, b) = (sources[0].strings()?, sources[1].strings()?);
        let one = |i| match from(i) {
            ElementSource::First(k) => a[k].clone(),
            ElementSource::Second(k) => b[k].clone(),
        };
        let mut out = memory::vec(shape.n_elements())?;
        out.extend((0..shape.n_elements()).map(one));
        return Ok(Tensor::from_strings(shape.clone(), out)?);
    }
    by_word!(sources[0].dtype(), of(c, sources, shape, from))
}

/// A scalar of zero bits, or an empty string.
pub fn zero(c: &KernelContext<'_>, dtype: DType) -> Result<Tensor, KernelError> {
    Ok(Tensor::zeros(dtype, Shape::scalar(), c.allocator)?)
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static PICKS: &[KernelDef] = &[
    cpu_any("Pad", |_| kernel(pad)),
    cpu_any("PadV2", |_| kernel(pad)),
    cpu_any("MirrorPad", mirror_pad),
    cpu_any("MirrorPadGrad", mirror_pad_grad),
    cpu_any("ReverseSequence", reverse_sequence),
    cpu_any("Roll", |_| kernel(roll)),
];

fn pad(c: &mut KernelContext<'_>) -> Computed {
    fn of<T: Element>(c: &KernelContext<'_>, value: &Tensor, pad: Pad) -> Result<Tensor, KernelError> {
        let (from, fill) = (c.words::<T>(0)?, value.words::<T>()?[0]);
        c.filled_words::<T>(value.dtype(), pad.shape, |out| {
            out.fill(fill);
            place(from, &pad.inside, out);
            Ok(())
        })
    }
    let (pad, x) = (measure::pad(c)?, c.input(0)?);
    let value = if c.inputs.len() > 2 { c.input(2)?.clone() } else { zero(c, x.dtype())? };
    let out = if x.dtype() == DType::String {
        let mut out = memory::filled(value.strings()?[0].clone(), pad.shape.n_elements())?;
        place(x.strings()?, &pad.inside, &mut out);
        Tensor::from_strings(pad.shape, out)?
    } else {
        by_word!(x.dtype(), of(c, &value, pad))?
    };
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
        let (x, by) = (c.input(0)?, measure::paddings_of(c)?);
        let shape = Pad::new(x.shape(), &by)?.shape;
        let from = mirrored(x.shape(), &shape, &by, symmetric)?;
        let out = pick(c, [x, x], shape, &|i| ElementSource::First(from(i)))?;
        c.set(0, out);
        Ok(())
    })
}

/// Adds up what was mirrored.
fn mirror_pad_grad(node: &Node) -> Built {
    let symmetric = symmetric(node)?;
    kernel(move |c| {
        let (x, by) = (c.input(0)?, measure::paddings_of(c)?);
        let sub = |(d, [a, b]): (&usize, &[usize; 2])| d.checked_sub(a + b);
        let dims: Option<Vec<usize>> = x.dims().iter().zip(&by).map(sub).collect();
        let shape = Shape::new(&dims.ok_or_else(|| KernelError::invalid("the paddings exceed the shape"))?);
        let from = mirrored(&shape, x.shape(), &by, symmetric)?;
        let out = sum_into(c, x, shape, &from)?;
        c.set(0, out);
        Ok(())
    })
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
                return ElementSource::First(i);
            }
            ElementSource::First(i + (len - 1 - p) * strides[seq] - p * strides[seq])
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
        ElementSource::First((0..rank).map(one).sum())
    })?;
    c.set(0, out);
    Ok(())
}
