//! Convolutions and their gradients: by the device's library where it has one that takes them (`library`), else by
//! products.
//!
//! A convolution is a product: its windows are written down as rows (`to_columns`), some images at a time, and
//! multiplied with the filter, whose memory is a matrix as it lies. Its gradients are the products the other way round.
//! Groups are products side by side: of a group's columns with a part of each row of the filter.

use engine::DType;
use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::window::{WindowGeometry, Windows};

use super::library;
use super::matmul::Product;
use super::support::{FLOATS, device, gpu, kernel, operand, run};
use super::windows::{Body, UNIT, arguments, channels_last};
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
    let windows = Windows::of(&node.attrs, 2)?;
    kernel(node, move |ctx| {
        if library::convolve(ctx, &windows, pass)? {
            return Ok(());
        }
        channels_last(ctx, &windows, (inputs, outputs), own)
    })
}

/// A convolution as products with its columns.
struct Columns<'a> {
    gpu: &'a Gpu,
    g: WindowGeometry,
    dtype: DType,
}

impl Columns<'_> {
    /// Elements of a window that a filter sees.
    fn window(&self) -> usize {
        self.g.window_pixels() * self.g.filter_channels
    }

    /// Channels of the output in one group.
    fn group_out(&self) -> usize {
        self.g.out_channels / self.g.groups()
    }

    /// Whether a window is one pixel and there is one for each: the image is its own columns.
    fn is_plain(&self) -> bool {
        self.g.axes.iter().all(|a| a.window == 1 && a.stride == 1 && a.before == 0 && a.output == a.input)
    }

    /// Elements from one row of the columns to the next, and from one group to the next, for `n` images.
    fn steps(&self, n: usize) -> (usize, usize) {
        match self.is_plain() {
            true => (self.g.channels, self.g.filter_channels),
            false => (self.window(), n * self.g.out_pixels() * self.window()),
        }
    }

    /// The products of all groups.
    fn products(&self, product: Product, rows: [usize; 3], strides: [usize; 3]) -> Product {
        Product { rows, strides, n_batches: self.g.groups(), ..product }
    }

    /// Where image `n` of the data begins.
    fn image(&self, base: Address, n: usize) -> Address {
        base + (n * self.g.in_pixels() * self.g.channels * self.dtype.size()) as u64
    }

    /// Where image `n` of the output begins.
    fn output(&self, base: Address, n: usize) -> Address {
        base + (n * self.g.out_pixels() * self.g.out_channels * self.dtype.size()) as u64
    }

    /// Calls `f` with images whose windows fit the memory that is set aside, and that memory: the first image, how
    /// many.
    fn some_at_once(
        &self,
        mut f: impl FnMut(usize, usize, Address) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let g = &self.g;
        let each = g.out_pixels() * self.window() * g.groups() * self.dtype.size();
        let at_once = (COLUMN_BYTES / each.max(1)).clamp(1, g.batch.max(1));
        let columns = if self.is_plain() { None } else { Some(self.gpu.block(at_once * each)?) };
        for first in (0..g.batch).step_by(at_once) {
            f(first, at_once.min(g.batch - first), columns.as_ref().map_or(0, |block| block.address()))?;
        }
        Ok(())
    }

    /// Writes the windows of `n` images down, group by group, where they do not lie so already: where they are then.
    fn write(&self, n: usize, image: Address, room: Address) -> Result<Address, KernelError> {
        if self.is_plain() {
            return Ok(image);
        }
        let elements = n * self.g.out_pixels() * self.window() * self.g.groups();
        let [a, b] = arguments(&self.g, n);
        let arguments = [elements.into(), a, b, image.into(), room.into()];
        // SAFETY: the kernel takes these; there is room for the windows of so many images.
        unsafe { run(self.gpu, (&UNIT, "to_columns", self.dtype), elements, &arguments)? };
        Ok(room)
    }
}

fn forward(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let ((image, from), (filter, weights)) = (operand(ctx, 0)?, operand(ctx, 1)?);
    let (g, dtype) = (windows.convolution(image.shape(), filter.shape())?, image.dtype());
    let (out, to) = gpu.room(dtype, g.output())?;
    if g.channels == 0 {
        gpu.zero(to, out.n_bytes())?;
        ctx.set(0, out);
        return Ok(());
    }
    let columns = Columns { gpu, g, dtype };
    let part = columns.group_out();
    columns.some_at_once(|first, n, room| {
        let rows = columns.write(n, columns.image(from, first), room)?;
        let (row, group) = columns.steps(n);
        let product = Product::packed(dtype, [n * g.out_pixels(), part, columns.window()], false, false);
        let product = columns.products(product, [row, g.out_channels, g.out_channels], [group, part, part]);
        product.run(gpu, rows, weights, columns.output(to, first))
    })?;
    ctx.set(0, out);
    Ok(())
}

fn to_input(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let shape = windows.listed(&ctx.ints(0)?)?;
    let ((filter, weights), (gradient, from)) = (operand(ctx, 1)?, operand(ctx, 2)?);
    let (g, dtype) = (windows.convolution(&shape, filter.shape())?, gradient.dtype());
    g.check_output("out_backprop", gradient.shape())?;
    let (out, to) = gpu.room(dtype, shape)?;
    if g.channels == 0 {
        ctx.set(0, out);
        return Ok(());
    }
    let columns = Columns { gpu, g, dtype };
    let part = columns.group_out();
    columns.some_at_once(|first, n, room| {
        let image = columns.image(to, first);
        let rows = if columns.is_plain() { image } else { room };
        let (row, group) = columns.steps(n);
        let product = Product::packed(dtype, [n * g.out_pixels(), columns.window(), part], false, true);
        let product = columns.products(product, [g.out_channels, g.out_channels, row], [part, part, group]);
        product.run(gpu, columns.output(from, first), weights, rows)?;
        if columns.is_plain() {
            return Ok(());
        }
        let elements = n * g.in_pixels() * g.channels;
        let [a, b] = arguments(&g, n);
        let arguments = [elements.into(), a, b, rows.into(), image.into()];
        // SAFETY: the kernel takes these; each image element is written once.
        unsafe { run(gpu, (&UNIT, "from_columns", dtype), elements, &arguments) }
    })?;
    ctx.set(0, out);
    Ok(())
}

fn to_filter(ctx: &mut KernelContext<'_>, windows: &Windows) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let shape = ctx.shape_input(1)?;
    let ((image, from), (gradient, at_gradient)) = (operand(ctx, 0)?, operand(ctx, 2)?);
    let (g, dtype) = (windows.convolution(image.shape(), &shape)?, image.dtype());
    g.check_output("out_backprop", gradient.shape())?;
    let (out, to) = gpu.room(dtype, shape)?;
    if g.batch == 0 || g.channels == 0 {
        gpu.zero(to, out.n_bytes())?;
        ctx.set(0, out);
        return Ok(());
    }
    let columns = Columns { gpu, g, dtype };
    let part = columns.group_out();
    columns.some_at_once(|first, n, room| {
        let rows = columns.write(n, columns.image(from, first), room)?;
        let (row, group) = columns.steps(n);
        let product = Product::packed(dtype, [columns.window(), part, n * g.out_pixels()], true, false);
        let product = columns.products(product, [row, g.out_channels, g.out_channels], [group, part, part]);
        Product { adds: first > 0, ..product }.run(gpu, rows, columns.output(at_gradient, first), to)
    })?;
    ctx.set(0, out);
    Ok(())
}
