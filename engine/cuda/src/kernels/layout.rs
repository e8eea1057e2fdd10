//! Ops that put elements elsewhere: all are copies by strides.

use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::strided::{Masks, resolve};
use engine::{Shape, Tensor};

use super::elementwise::broadcast_strides;
use super::pointwise::move_elements;
use super::support::{axis, c_type, c_word, count, device, gpu, ints, is_small, kernel, operand, strides};
use crate::backend::Address;
use crate::gpu::Gpu;

macro_rules! lines {
    ($name:ident; $($op:literal $build:expr;)*) => {
        #[linkme::distributed_slice(KERNEL_TABLES)]
        static $name: &[KernelDef] = &[$(gpu($op, ("", &[]), $build)),*];
    };
}

lines! { LAYOUT;
"Transpose" transpose; "ConcatV2" concat; "Split" split; "SplitV" split_v; "Slice" slice; "StridedSlice" strided_slice; "StridedSliceGrad" strided_slice_grad;
"Pad" pad; "PadV2" pad; "Tile" tile; "BroadcastTo" broadcast_to; "Pack" pack; "Unpack" unpack; "Fill" fill;
"ZerosLike" |node| like(node, 0); "OnesLike" |node| like(node, 1); "ReverseV2" reverse; }

/// A kernel for types that can be moved; the host computes the others, and what is small.
fn moved(node: &Node, f: fn(&mut KernelContext<'_>) -> Result<(), KernelError>) -> Built {
    kernel(node, f)
}

fn bytes(at: Address, elements: i64, t: &Tensor) -> Address {
    at.wrapping_add_signed(elements * t.dtype().size() as i64)
}

/// Copies a part of an input, `dims` elements from its element `first` on by these steps, to a new tensor.
fn cut(
    gpu: &Gpu,
    (input, from): (&Tensor, Address),
    dims: &[usize],
    first: i64,
    steps: &[i64],
    shape: Shape,
) -> Result<Tensor, KernelError> {
    let (out, to) = gpu.room(input.dtype(), shape)?;
    let of = c_word(input.dtype())?;
    // SAFETY: the callers' steps stay within the input; the output was made for these elements.
    unsafe { move_elements(gpu, of, dims, (bytes(from, first, input), steps), (to, &strides(dims)))? };
    Ok(out)
}

fn transpose(node: &Node) -> Built {
    moved(node, |ctx| {
        let order = ints(ctx, 1)?;
        let (input, from) = operand(ctx, 0)?;
        let rank = input.shape().rank();
        let order = order.iter().map(|a| axis(*a, rank)).collect::<Result<Vec<_>, _>>()?;
        let mut seen = vec![false; rank];
        order.iter().for_each(|a| seen[*a] = true);
        if order.len() != rank || seen.contains(&false) {
            return Err(KernelError::invalid(format!("{order:?} is no order of {rank} dimensions")));
        }
        let own = strides(input.dims());
        let dims: Vec<usize> = order.iter().map(|a| input.dims()[*a]).collect();
        let steps: Vec<i64> = order.iter().map(|a| own[*a]).collect();
        let out = cut(device(ctx)?, (&input, from), &dims, 0, &steps, Shape::new(&dims))?;
        ctx.set(0, out);
        Ok(())
    })
}

/// The axis is the last input.
fn concat(node: &Node) -> Built {
    moved(node, |ctx| {
        let n = ctx.inputs.len() - 1;
        let first = ctx.input(0)?.shape().clone();
        let [along] = ints(ctx, n)?[..] else { return Err(KernelError::invalid("the axis must be one number")) };
        let along = axis(along, first.rank())?;
        let mut dims = first.dims().to_vec();
        dims[along] = 0;
        for i in 0..n {
            let own = ctx.input(i)?.dims();
            let fits = own.len() == dims.len() && (0..dims.len()).all(|d| d == along || own[d] == dims[d]);
            if !fits {
                return Err(KernelError::invalid(format!("shapes {first} and {} do not fit", ctx.input(i)?.shape())));
            }
            dims[along] += own[along];
        }
        join(ctx, n, along, &dims)
    })
}

/// Copies the first `n` inputs side by side along an axis of a value of these dimensions.
fn join(ctx: &mut KernelContext<'_>, n: usize, along: usize, dims: &[usize]) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let (out, to) = gpu.room(ctx.input(0)?.dtype(), Shape::new(dims))?;
    let steps = strides(dims);
    let mut at = 0;
    for i in 0..n {
        let (part, from) = operand(ctx, i)?;
        let of = c_word(part.dtype())?;
        let place = bytes(to, at * steps[along], &part);
        // SAFETY: parts lie side by side in the output, whose size along the axis is the sum of theirs.
        unsafe { move_elements(gpu, of, part.dims(), (from, &strides(part.dims())), (place, &steps))? };
        at += part.dims()[along] as i64;
    }
    ctx.set(0, out);
    Ok(())
}

/// Cuts an input along an axis into parts of these sizes.
fn parts(ctx: &mut KernelContext<'_>, input: usize, along: usize, sizes: &[usize]) -> Result<(), KernelError> {
    let (input, from) = operand(ctx, input)?;
    let steps = strides(input.dims());
    if sizes.iter().sum::<usize>() != input.dims()[along] || sizes.len() != ctx.outputs.len() {
        return Err(KernelError::invalid(format!("sizes {sizes:?} do not divide shape {}", input.shape())));
    }
    let mut at = 0;
    for (i, size) in sizes.iter().enumerate() {
        let mut dims = input.dims().to_vec();
        dims[along] = *size;
        let out = cut(device(ctx)?, (&input, from), &dims, at * steps[along], &steps, Shape::new(&dims))?;
        ctx.set(i, out);
        at += *size as i64;
    }
    Ok(())
}

fn split(node: &Node) -> Built {
    moved(node, |ctx| {
        let [along] = ints(ctx, 0)?[..] else { return Err(KernelError::invalid("the axis must be one number")) };
        let along = axis(along, ctx.input(1)?.shape().rank())?;
        let (n, size) = (ctx.outputs.len(), ctx.input(1)?.dims()[along]);
        if n == 0 || size % n != 0 {
            return Err(KernelError::invalid(format!("{size} elements cannot be divided into {n} equal parts")));
        }
        parts(ctx, 1, along, &vec![size / n; n])
    })
}

fn split_v(node: &Node) -> Built {
    moved(node, |ctx| {
        let [along] = ints(ctx, 2)?[..] else { return Err(KernelError::invalid("the axis must be one number")) };
        let along = axis(along, ctx.input(0)?.shape().rank())?;
        let sizes = ints(ctx, 1)?;
        // One size may be left open.
        let known: i64 = sizes.iter().filter(|size| **size >= 0).sum();
        let rest = ctx.input(0)?.dims()[along] as i64 - known;
        let size = |size: &i64| usize::try_from(if *size < 0 { rest } else { *size });
        let sizes: Result<Vec<usize>, _> = sizes.iter().map(size).collect();
        let sizes = sizes.map_err(|_| KernelError::invalid("the sizes are larger than the value"))?;
        parts(ctx, 0, along, &sizes)
    })
}

fn slice(node: &Node) -> Built {
    moved(node, |ctx| {
        let (begin, size) = (ints(ctx, 1)?, ints(ctx, 2)?);
        let (input, from) = operand(ctx, 0)?;
        let steps = strides(input.dims());
        if begin.len() != steps.len() || size.len() != steps.len() {
            return Err(KernelError::invalid(format!("begin and size must list {} numbers", steps.len())));
        }
        let (mut dims, mut first) = (Vec::with_capacity(steps.len()), 0);
        for (d, dim) in input.dims().iter().enumerate() {
            let dim = *dim as i64;
            let size = if size[d] == -1 { dim - begin[d] } else { size[d] };
            if begin[d] < 0 || size < 0 || begin[d] + size > dim {
                let text = format!("{size} elements from {} are not in dimension {d} of {}", begin[d], input.shape());
                return Err(KernelError::invalid(text));
            }
            dims.push(size as usize);
            first += begin[d] * steps[d];
        }
        let out = cut(device(ctx)?, (&input, from), &dims, first, &steps, Shape::new(&dims))?;
        ctx.set(0, out);
        Ok(())
    })
}

/// Begin, end, steps and masks are resolved by the engine's own function.
fn strided_slice(node: &Node) -> Built {
    let masks = Masks::of(&node.attrs);
    kernel(node, move |ctx| {
        let (begin, end, step) = (ints(ctx, 1)?, ints(ctx, 2)?, ints(ctx, 3)?);
        let (input, from) = operand(ctx, 0)?;
        let slice = resolve(input.shape(), &masks, &begin, &end, &step)?;
        let steps: Vec<i64> = slice.strides.iter().map(|step| *step as i64).collect();
        let out = cut(device(ctx)?, (&input, from), &slice.dims, slice.first as i64, &steps, slice.shape)?;
        ctx.set(0, out);
        Ok(())
    })
}

/// Zeros with the gradient where the slice was taken.
fn strided_slice_grad(node: &Node) -> Built {
    let masks = Masks::of(&node.attrs);
    kernel(node, move |ctx| {
        let dims: Result<Vec<usize>, _> = ints(ctx, 0)?.iter().map(|d| usize::try_from(*d)).collect();
        let shape = Shape::new(&dims.map_err(|_| KernelError::invalid("a negative number is no size"))?);
        let slice = resolve(&shape, &masks, &ints(ctx, 1)?, &ints(ctx, 2)?, &ints(ctx, 3)?)?;
        let (gradient, from) = operand(ctx, 4)?;
        if *gradient.shape() != slice.shape {
            let (got, is) = (gradient.shape(), &slice.shape);
            return Err(KernelError::invalid(format!("dy has shape {got}, the slice {is}")));
        }
        let gpu = device(ctx)?;
        let (out, to) = gpu.room(gradient.dtype(), shape)?;
        gpu.zero(to, out.n_bytes())?;
        let steps: Vec<i64> = slice.strides.iter().map(|step| *step as i64).collect();
        let (of, place) = (c_word(gradient.dtype())?, bytes(to, slice.first as i64, &gradient));
        // SAFETY: the slice lies within the shape that it was resolved for.
        unsafe { move_elements(gpu, of, &slice.dims, (from, &strides(&slice.dims)), (place, &steps))? };
        ctx.set(0, out);
        Ok(())
    })
}

fn pad(node: &Node) -> Built {
    moved(node, |ctx| {
        let pads = ints(ctx, 1)?;
        let (input, from) = operand(ctx, 0)?;
        let rank = input.shape().rank();
        let pads: Result<Vec<usize>, _> = pads.iter().map(|p| usize::try_from(*p)).collect();
        let pads = pads.ok().filter(|pads| pads.len() == 2 * rank);
        let pads = pads.ok_or_else(|| KernelError::invalid(format!("paddings do not fit shape {}", input.shape())))?;
        let dims: Vec<usize> = input.dims().iter().zip(pads.chunks(2)).map(|(dim, p)| dim + p[0] + p[1]).collect();
        let gpu = device(ctx)?;
        let (out, to) = gpu.room(input.dtype(), Shape::new(&dims))?;
        let (of, steps) = (c_word(input.dtype())?, strides(&dims));
        match ctx.inputs.get(2) {
            Some(Some(_)) => {
                let (_value, value) = operand(ctx, 2)?;
                // SAFETY: one element is read, all of the output are written.
                unsafe { move_elements(gpu, of, &dims, (value, &vec![0; rank]), (to, &steps))? };
            }
            _ => gpu.zero(to, out.n_bytes())?,
        }
        let first: i64 = pads.chunks(2).zip(&steps).map(|(p, step)| p[0] as i64 * step).sum();
        // SAFETY: the output has room for the input behind what is before it in each dimension.
        unsafe {
            move_elements(gpu, of, input.dims(), (from, &strides(input.dims())), (bytes(to, first, &input), &steps))?;
        };
        ctx.set(0, out);
        Ok(())
    })
}

fn tile(node: &Node) -> Built {
    moved(node, |ctx| {
        let times = ints(ctx, 1)?;
        let (input, from) = operand(ctx, 0)?;
        let times: Result<Vec<usize>, _> = times.iter().map(|n| usize::try_from(*n)).collect();
        let times = times.ok().filter(|times| times.len() == input.shape().rank());
        let times = times.ok_or_else(|| KernelError::invalid("multiples must list one number for each dimension"))?;
        // Each dimension is walked twice: as often as it is repeated, from its beginning, then along itself.
        let own = strides(input.dims());
        let pairs = input.dims().iter().zip(&times).zip(&own);
        let (mut dims, mut steps) = (Vec::new(), Vec::new());
        for ((dim, times), own) in pairs {
            dims.extend([*times, *dim]);
            steps.extend([0, *own]);
        }
        let shape: Vec<usize> = input.dims().iter().zip(&times).map(|(dim, times)| dim * times).collect();
        count(&Shape::new(&shape))?;
        let out = cut(device(ctx)?, (&input, from), &dims, 0, &steps, Shape::new(&shape))?;
        ctx.set(0, out);
        Ok(())
    })
}

fn broadcast_to(node: &Node) -> Built {
    moved(node, |ctx| {
        let dims: Result<Vec<usize>, _> = ints(ctx, 1)?.iter().map(|d| usize::try_from(*d)).collect();
        let shape = Shape::new(&dims.map_err(|_| KernelError::invalid("a negative number is no size"))?);
        let (input, from) = operand(ctx, 0)?;
        if super::elementwise::broadcast(&[input.shape(), &shape])? != shape {
            return Err(KernelError::invalid(format!("shape {} cannot be broadcast to {shape}", input.shape())));
        }
        let steps = broadcast_strides(input.shape(), &shape);
        let out = cut(device(ctx)?, (&input, from), shape.dims(), 0, &steps, shape.clone())?;
        ctx.set(0, out);
        Ok(())
    })
}

/// A new dimension, along which the inputs lie one behind the other.
fn pack(node: &Node) -> Built {
    let along = *node.int("axis")?;
    kernel(node, move |ctx| {
        let first = ctx.input(0)?.shape().clone();
        let along = axis(along, first.rank() + 1)?;
        let n = ctx.inputs.len();
        for i in 0..n {
            let own = ctx.input(i)?;
            if *own.shape() != first {
                return Err(KernelError::invalid(format!("shapes {first} and {} differ", own.shape())));
            }
            let mut dims = first.dims().to_vec();
            dims.insert(along, 1);
            ctx.inputs[i] = Some(own.reshaped(Shape::new(&dims))?);
        }
        let mut dims = first.dims().to_vec();
        dims.insert(along, n);
        join(ctx, n, along, &dims)
    })
}

fn unpack(node: &Node) -> Built {
    let along = *node.int("axis")?;
    kernel(node, move |ctx| {
        let along = axis(along, ctx.input(0)?.shape().rank())?;
        let n = ctx.outputs.len();
        parts(ctx, 0, along, &vec![1; n])?;
        for output in ctx.outputs.iter_mut().flatten() {
            let mut dims = output.dims().to_vec();
            dims.remove(along);
            *output = output.reshaped(Shape::new(&dims))?;
        }
        Ok(())
    })
}

fn fill(node: &Node) -> Built {
    // Sizes alone say nothing of how large the result is.
    let cpu = super::support::on_the_host(node)?;
    engine::kernels::support::cheap(move |ctx| {
        let dims: Result<Vec<usize>, _> = ints(ctx, 0)?.iter().map(|d| usize::try_from(*d)).collect();
        let shape = Shape::new(&dims.map_err(|_| KernelError::invalid("a negative number is no size"))?);
        let value = ctx.input(1)?;
        if c_type(value.dtype()).is_none() || is_small(value) && count(&shape)? <= 1 {
            return cpu.compute(ctx);
        }
        let (value, from) = operand(ctx, 1)?;
        let steps = vec![0; shape.rank()];
        let out = cut(device(ctx)?, (&value, from), shape.dims(), 0, &steps, shape.clone())?;
        ctx.set(0, out);
        Ok(())
    })
}

fn like(node: &Node, value: u8) -> Built {
    kernel(node, move |ctx| {
        let input = ctx.input(0)?;
        let (dtype, shape) = (input.dtype(), input.shape().clone());
        let gpu = device(ctx)?;
        let (out, to) = gpu.room(dtype, shape)?;
        if value == 0 {
            gpu.zero(to, out.n_bytes())?;
        } else {
            let one = engine::convert::convert(&Tensor::scalar(1i32), dtype, ctx.allocator)?;
            let (_one, from) = gpu.bring(&one)?;
            let (dims, of) = (out.dims(), c_word(dtype)?);
            // SAFETY: one element is read, all of the output are written.
            unsafe { move_elements(gpu, of, dims, (from, &vec![0; dims.len()]), (to, &strides(dims)))? };
        }
        ctx.set(0, out);
        Ok(())
    })
}

fn reverse(node: &Node) -> Built {
    moved(node, |ctx| {
        let axes = ints(ctx, 1)?;
        let (input, from) = operand(ctx, 0)?;
        let (mut steps, mut first) = (strides(input.dims()), 0);
        for a in axes {
            let a = axis(a, steps.len())?;
            if input.dims()[a] > 0 {
                first += (input.dims()[a] as i64 - 1) * steps[a];
            }
            steps[a] = -steps[a];
        }
        let dims = input.dims().to_vec();
        let out = cut(device(ctx)?, (&input, from), &dims, first, &steps, input.shape().clone())?;
        ctx.set(0, out);
        Ok(())
    })
}
