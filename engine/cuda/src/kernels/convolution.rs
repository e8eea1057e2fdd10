//! Convolutions and their gradients: by the device's library where it has one that takes them (`library`), else by products.
//!
//! A convolution is a product: its windows are written down as rows (`to_columns`), some images at a time, and multiplied with
//! the filter, whose memory is a matrix as it lies. Its gradients are the products the other way round. Groups are products side
//! by side: of a group's columns with a part of each row of the filter.

use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::window::Windows;
use engine::{DType, Shape};

use super::library;
use super::matmul::Product;
use super::parts::Parts;
use super::support::{FLOATS, device, gpu, kernel, operand, run};
use super::windows::{Body, UNIT, channels_last, check, listed};
use crate::backend::Address;
use crate::convolution::Pass;
use crate::gpu::Gpu;

/// Bytes of windows that are written down at once.
const COLUMN_BYTES: usize = 512 << 20;

#[linkme::distributed_slice(KERNEL_TABLES)]
static CONVOLUTION: &[KernelDef] = &[
    gpu("Conv2D", ("T", FLOATS), |node| convolution(node, Pass::Forward, forward, &[0], &[0])),
    gpu("Conv2DBackpropInput", ("T", FLOATS), |node| convolution(node, Pass::ToImage, to_input, &[2], &[0])),
    gpu("Conv2DBackpropFilter", ("T", FLOATS), |node| convolution(node, Pass::ToFilter, to_filter, &[0, 2], &[])),
];

/// A convolution whose inputs and outputs of these numbers are images.
fn convolution(node: &Node, pass: Pass, own: Body, inputs: &'static [usize], outputs: &'static [usize]) -> Built {
    let windows = Windows::new(|name| node.attrs.get(name), 2).map_err(KernelError::from)?;
    kernel(node, move |ctx| {
        if library::convolve(ctx, &windows, pass)? {
            return Ok(());
        }
        channels_last(ctx, &windows, (inputs, outputs), own)
    })
}

/// Calls `f` with images whose windows fit the memory that is set aside, and that memory: the first image, how many.
fn some_at_once(
    gpu: &Gpu,
    p: &Parts,
    dtype: DType,
    mut f: impl FnMut(usize, usize, Address) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let s = &p.sizes;
    let each = s.out_pixels() * p.window() * p.n_groups() * dtype.size();
    let at_once = (COLUMN_BYTES / each.max(1)).clamp(1, s.batch.max(1));
    let columns = if p.is_plain() { None } else { Some(gpu.block(at_once * each)?) };
    for first in (0..s.batch).step_by(at_once) {
        f(first, at_once.min(s.batch - first), columns.as_ref().map_or(0, |block| block.address()))?;
    }
    Ok(())
}

/// Writes the windows of `n` images down, group by group, where they do not lie so already: where they are then.
fn columns(
    gpu: &Gpu,
    p: &Parts,
    dtype: DType,
    n: usize,
    image: Address,
    room: Address,
) -> Result<Address, KernelError> {
    if p.is_plain() {
        return Ok(image);
    }
    let elements = n * p.sizes.out_pixels() * p.window() * p.n_groups();
    let [a, b] = p.sizes.arguments_in_groups(n, p.each);
    // SAFETY: the kernel takes these; there is room for the windows of so many images.
    unsafe { run(gpu, (&UNIT, "to_columns", dtype), elements, &[elements.into(), a, b, image.into(), room.into()])? };
    Ok(room)
}

fn at(base: Address, n: usize, each: usize, dtype: DType) -> Address {
    base + (n * each * dtype.size()) as u64
}

fn forward(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let ((image, from), (filter, weights)) = (operand(ctx, 0)?, operand(ctx, 1)?);
    let p = Parts::new(windows, image.dims(), filter.dims())?;
    let (s, dtype) = (p.sizes, image.dtype());
    let (out, to) = gpu.room(dtype, Shape::new(&[s.batch, s.y.output, s.x.output, p.to]))?;
    if s.channels == 0 {
        gpu.zero(to, out.n_bytes())?;
        ctx.set(0, out);
        return Ok(());
    }
    let part = p.to / p.n_groups();
    some_at_once(gpu, &p, dtype, |first, n, room| {
        let image = at(from, first, s.in_pixels() * s.channels, dtype);
        let rows = columns(gpu, &p, dtype, n, image, room)?;
        let (row, group) = p.columns(n);
        let product = Product::packed(dtype, [n * s.out_pixels(), part, p.window()], false, false);
        let product = p.products(product, [row, p.to, p.to], [group, part, part]);
        product.run(gpu, rows, weights, at(to, first, s.out_pixels() * p.to, dtype))
    })?;
    ctx.set(0, out);
    Ok(())
}

fn to_input(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let dims = listed(ctx, 0, windows.channels_first)?;
    let ((filter, weights), (gradient, from)) = (operand(ctx, 1)?, operand(ctx, 2)?);
    let p = Parts::new(windows, &dims, filter.dims())?;
    let (s, dtype) = (p.sizes, gradient.dtype());
    check(&s, p.to, &gradient)?;
    let (out, to) = gpu.room(dtype, Shape::new(&dims))?;
    if s.channels == 0 {
        ctx.set(0, out);
        return Ok(());
    }
    let part = p.to / p.n_groups();
    some_at_once(gpu, &p, dtype, |first, n, room| {
        let image = at(to, first, s.in_pixels() * s.channels, dtype);
        let rows = if p.is_plain() { image } else { room };
        let (row, group) = p.columns(n);
        let product = Product::packed(dtype, [n * s.out_pixels(), p.window(), part], false, true);
        let product = p.products(product, [p.to, p.to, row], [part, part, group]);
        product.run(gpu, at(from, first, s.out_pixels() * p.to, dtype), weights, rows)?;
        if p.is_plain() {
            return Ok(());
        }
        let elements = n * s.in_pixels() * s.channels;
        let [a, b] = s.arguments_in_groups(n, p.each);
        let arguments = [elements.into(), a, b, rows.into(), image.into()];
        // SAFETY: the kernel takes these; each image element is written once.
        unsafe { run(gpu, (&UNIT, "from_columns", dtype), elements, &arguments) }
    })?;
    ctx.set(0, out);
    Ok(())
}

fn to_filter(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let dims = listed(ctx, 1, false)?;
    let ((image, from), (gradient, at_gradient)) = (operand(ctx, 0)?, operand(ctx, 2)?);
    let p = Parts::new(windows, image.dims(), &dims)?;
    let (s, dtype) = (p.sizes, image.dtype());
    check(&s, p.to, &gradient)?;
    let (out, to) = gpu.room(dtype, Shape::new(&dims))?;
    if s.batch == 0 || s.channels == 0 {
        gpu.zero(to, out.n_bytes())?;
        ctx.set(0, out);
        return Ok(());
    }
    let part = p.to / p.n_groups();
    some_at_once(gpu, &p, dtype, |first, n, room| {
        let image = at(from, first, s.in_pixels() * s.channels, dtype);
        let rows = columns(gpu, &p, dtype, n, image, room)?;
        let (row, group) = p.columns(n);
        let product = Product::packed(dtype, [p.window(), part, n * s.out_pixels()], true, false);
        let product = p.products(product, [row, p.to, p.to], [group, part, part]);
        let gradient = at(at_gradient, first, s.out_pixels() * p.to, dtype);
        Product { adds: first > 0, ..product }.run(gpu, rows, gradient, to)
    })?;
    ctx.set(0, out);
    Ok(())
}
