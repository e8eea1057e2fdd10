//! Data with the channels first: kernels work on channels last, these turn what goes in and comes out.

use super::support::{Built, Computed, by_word};
use super::{Kernel, KernelContext, KernelError};
use engine_core::dtype::Element;
use engine_core::graph::{Attr, Node};
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// A kernel of channels-last data, for data with the channels first.
struct ChannelsFirst {
    inner: Box<dyn Kernel>,
    inputs: &'static [usize],
    outputs: &'static [usize],
}

/// `inner`, a kernel of channels-last data, for the node's format: these inputs and outputs are turned if need be.
pub(super) fn any_format(
    node: &Node,
    inputs: &'static [usize],
    outputs: &'static [usize],
    inner: Box<dyn Kernel>,
) -> Built {
    match node.attrs.get("data_format") {
        Some(Attr::Str(s)) => match s.as_slice() {
            b"NHWC" | b"NDHWC" => Ok(inner),
            b"NCHW" | b"NCDHW" => Ok(Box::new(ChannelsFirst { inner, inputs, outputs })),
            other => {
                let name = String::from_utf8_lossy(other);
                Err(KernelError::invalid(format!("data_format {name} is not supported")))
            }
        },
        _ => Ok(inner),
    }
}

impl Kernel for ChannelsFirst {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Computed {
        for i in self.inputs {
            let x = ctx.take(*i)?;
            let rank = x.shape().rank();
            let turned = if rank < 3 { x } else { turn(ctx, &x, rank - 1, |d| &d[2..])? };
            ctx.inputs[*i] = Some(turned);
        }
        self.inner.compute(ctx)?;
        for o in self.outputs {
            if let Some(y) = ctx.outputs[*o].take() {
                let y = if y.shape().rank() < 3 { y } else { turn(ctx, &y, 1, |d| &d[1..d.len() - 1])? };
                ctx.outputs[*o] = Some(y);
            }
        }
        Ok(())
    }
}

/// Moves the channels to position `to`, which is the last or the second; `spatial` picks the dimensions between.
fn turn(
    ctx: &KernelContext<'_>,
    x: &Tensor,
    to: usize,
    spatial: fn(&[usize]) -> &[usize],
) -> Result<Tensor, KernelError> {
    let dims = x.dims();
    let last = to == dims.len() - 1;
    let channels = if last { dims[1] } else { dims[dims.len() - 1] };
    let pixels: usize = spatial(dims).iter().product();
    let mut shape = vec![dims[0]];
    if !last {
        shape.push(channels);
    }
    shape.extend(spatial(dims));
    if last {
        shape.push(channels);
    }
    let (rows, columns) = if last { (channels, pixels) } else { (pixels, channels) };
    fn of<T: Element>(
        ctx: &KernelContext<'_>,
        x: &Tensor,
        shape: &[usize],
        (rows, columns): (usize, usize),
    ) -> Result<Tensor, KernelError> {
        let from = x.words::<T>()?;
        ctx.filled_words::<T>(x.dtype(), Shape::new(shape), |out| {
            let n = (rows * columns).max(1);
            super::support::shard_slice(ctx.sharder, out, n, 600, |at, part| {
                for (to, from) in part.chunks_exact_mut(n).zip(from[at..].chunks_exact(n)) {
                    transpose(from, to, rows, columns);
                }
            });
            Ok(())
        })
    }
    by_word!(x.dtype(), of(ctx, x, &shape, (rows, columns)))
}

/// `to[j][i] = from[i][j]`, in squares that stay in the first cache.
fn transpose<T: Copy>(from: &[T], to: &mut [T], rows: usize, columns: usize) {
    const SIDE: usize = 16;
    for i0 in (0..rows).step_by(SIDE) {
        for j0 in (0..columns).step_by(SIDE) {
            for j in j0..(j0 + SIDE).min(columns) {
                for i in i0..(i0 + SIDE).min(rows) {
                    to[j * rows + i] = from[i * columns + j];
                }
            }
        }
    }
}
