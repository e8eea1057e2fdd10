//! Ops that put elements elsewhere: all are copies by strides.

use engine::geometry::View;
use engine::graph::Node;
use engine::kernels::support::{Built, cheap};
use engine::kernels::{KERNEL_TABLES, KernelDef, KernelError, measure};
use engine::{DType, Shape, Tensor};
use smallvec::SmallVec;

use super::elementwise::Placed;
use super::pointwise::move_elements;
use super::support::{c_type, c_word, device, gpu, is_small, kernel, on_the_host, operand, strides};
use crate::backend::Address;
use crate::gpu::Gpu;

macro_rules! lines {
    ($name:ident; $($op:literal $build:expr;)*) => {
        #[linkme::distributed_slice(KERNEL_TABLES)]
        static $name: &[KernelDef] = &[$(gpu($op, ("", &[]), $build)),*];
    };
}

lines! { LAYOUT;
"Transpose" view; "BroadcastTo" view; "Slice" view; "StridedSlice" view; "Tile" view; "ReverseV2" view; "StridedSliceGrad" strided_slice_grad;
"ConcatV2" join; "Pack" join; "Split" split; "SplitV" split; "Unpack" split; "Pad" pad; "PadV2" pad; "Fill" fill;
"ZerosLike" |node| like(node, 0); "OnesLike" |node| like(node, 1); }

/// Where a view of memory at `at` begins, and its steps.
fn begin(at: Address, view: &View, dtype: DType) -> (Address, SmallVec<[i64; 8]>) {
    let first = at.wrapping_add_signed(view.first as i64 * dtype.size() as i64);
    (first, view.strides.iter().map(|step| *step as i64).collect())
}

/// A new tensor that is a view of another.
pub(super) fn viewed(gpu: &Gpu, (input, from): &Placed, view: &View) -> Result<Placed, KernelError> {
    let dtype = input.dtype();
    let (out, to) = gpu.room(dtype, view.shape.clone())?;
    let (first, steps) = begin(*from, view, dtype);
    // SAFETY: the view is one of the input's shape; the output was made for its elements.
    unsafe { move_elements(gpu, c_word(dtype)?, &view.dims, (first, &steps), (to, &strides(&view.dims)))? };
    Ok((out, to))
}

fn zeros(gpu: &Gpu, dtype: DType, shape: Shape) -> Result<Placed, KernelError> {
    let (out, to) = gpu.room(dtype, shape)?;
    gpu.zero(to, out.n_bytes())?;
    Ok((out, to))
}

/// Copies a tensor to where a view of memory at `to` says.
///
/// # Safety
/// There is memory of the shape that the view is one of; the tensor has the view's.
unsafe fn place(gpu: &Gpu, (input, from): &Placed, view: &View, to: Address) -> Result<(), KernelError> {
    let (first, steps) = begin(to, view, input.dtype());
    // SAFETY: as the caller promises.
    unsafe { move_elements(gpu, c_word(input.dtype())?, &view.dims, (*from, &strides(&view.dims)), (first, &steps)) }
}

fn view(node: &Node) -> Built {
    let geometry = measure::view(node)?;
    kernel(node, move |ctx| {
        let view = geometry(ctx)?;
        let (out, _) = viewed(device(ctx)?, &operand(ctx, 0)?, &view)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn join(node: &Node) -> Built {
    let geometry = measure::join(node)?;
    kernel(node, move |ctx| {
        let (input, partition) = geometry(ctx)?;
        let gpu = device(ctx)?;
        let (out, to) = gpu.room(ctx.input(input)?.dtype(), partition.shape.clone())?;
        for (i, view) in partition.views().enumerate() {
            // SAFETY: the output has the shape that the parts lie in.
            unsafe { place(gpu, &operand(ctx, input + i)?, &view, to)? };
        }
        ctx.set(0, out);
        Ok(())
    })
}

fn split(node: &Node) -> Built {
    let geometry = measure::split(node)?;
    kernel(node, move |ctx| {
        let (input, partition) = geometry(ctx)?;
        let input = operand(ctx, input)?;
        for (i, view) in partition.views().enumerate() {
            let (part, _) = viewed(device(ctx)?, &input, &view)?;
            ctx.set(i, part);
        }
        Ok(())
    })
}

/// Zeros with the gradient where the slice was taken.
fn strided_slice_grad(node: &Node) -> Built {
    let geometry = measure::strided_slice_grad(node);
    kernel(node, move |ctx| {
        let (shape, view) = geometry(ctx)?;
        let (gpu, gradient) = (device(ctx)?, operand(ctx, 4)?);
        let (out, to) = zeros(gpu, gradient.0.dtype(), shape)?;
        // SAFETY: the output has the shape that the slice was resolved for, the gradient that of the slice.
        unsafe { place(gpu, &gradient, &view, to)? };
        ctx.set(0, out);
        Ok(())
    })
}

fn pad(node: &Node) -> Built {
    kernel(node, |ctx| {
        let pad = measure::pad(ctx)?;
        let (gpu, input) = (device(ctx)?, operand(ctx, 0)?);
        let (out, to) = match ctx.inputs.len() {
            2 => zeros(gpu, input.0.dtype(), pad.shape)?,
            _ => viewed(gpu, &operand(ctx, 2)?, &View::repeated(&pad.shape))?,
        };
        // SAFETY: the output has the padded shape, in which the input lies.
        unsafe { place(gpu, &input, &pad.inside, to)? };
        ctx.set(0, out);
        Ok(())
    })
}

fn fill(node: &Node) -> Built {
    // Sizes alone say nothing of how large the result is.
    let cpu = on_the_host(node)?;
    cheap(move |ctx| {
        let (view, value) = (measure::fill(ctx)?, ctx.input(1)?);
        if c_type(value.dtype()).is_none() || is_small(value) && view.shape.n_elements() <= 1 {
            return cpu.compute(ctx);
        }
        let (out, _) = viewed(device(ctx)?, &operand(ctx, 1)?, &view)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn like(node: &Node, value: u8) -> Built {
    kernel(node, move |ctx| {
        let (dtype, shape) = (ctx.input(0)?.dtype(), ctx.input(0)?.shape().clone());
        let gpu = device(ctx)?;
        let (out, _) = match value {
            0 => zeros(gpu, dtype, shape)?,
            _ => viewed(gpu, &gpu.bring(&Tensor::number(dtype, 1.0)?)?, &View::repeated(&shape))?,
        };
        ctx.set(0, out);
        Ok(())
    })
}
