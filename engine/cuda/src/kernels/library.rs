//! Convolutions by the device's library, where it has one: values are laid out as the library takes them (filters always,
//! images where channels lie elsewhere or zeros are missing on one side), and results back.

use engine::kernels::{KernelContext, KernelError};
use engine::window::{WindowGeometry, Windows};
use engine::{DType, Shape, Tensor};

use super::matmul::allows_tf32;
use super::pointwise::move_elements;
use super::support::{c_word, device, operand};
use crate::backend::Address;
use crate::convolution::{Convolution, PaddedConvolution, Pass, describe};
use crate::gpu::Gpu;

/// Sizes of an image, rows last but one: batch, channels, rows, columns.
type Sizes4 = [usize; 4];

/// Elements from one position to the next, of batch, channels, rows and columns of packed images.
fn steps([_, channels, rows, columns]: Sizes4, channels_last: bool) -> [i64; 4] {
    let [c, h, w] = [channels, rows, columns].map(|n| n as i64);
    if channels_last { [h * w * c, 1, w * c, c] } else { [c * h * w, h * w, w, 1] }
}

/// A value in memory, and its steps.
#[derive(Debug, Clone, Copy)]
struct Lies {
    at: Address,
    steps: [i64; 4],
}

/// A convolution for the library.
struct Task<'a> {
    gpu: &'a Gpu,
    dtype: DType,
    padded: PaddedConvolution,
    /// Whether the node's images have their channels first.
    channels_first: bool,
    /// Rows and columns of the node's images.
    image: [usize; 2],
}

/// Convolves, where the device has a library that takes it. What does not fit together is left to who computes it otherwise, and says so.
pub(super) fn convolve(ctx: &mut KernelContext<'_>, windows: &Windows, pass: Pass) -> Result<bool, KernelError> {
    let gpu = device(ctx)?;
    let first = windows.channels_first;
    let Some((g, dtype)) = geometry(ctx, windows, pass) else { return Ok(false) };
    let Some(padded) = describe(dtype, allows_tf32(), &g) else { return Ok(false) };
    let Some(workspace) = gpu.convolution_workspace(&padded.convolution, pass) else { return Ok(false) };
    let image = [g.axes[1].input, g.axes[2].input];
    let task = Task { gpu, dtype, padded, channels_first: first, image };
    let out = match pass {
        Pass::Forward => task.forward(ctx, workspace)?,
        Pass::ToImage => task.to_image(ctx, workspace)?,
        Pass::ToFilter => task.to_filter(ctx, workspace)?,
    };
    let Some(out) = out else { return Ok(false) };
    ctx.set(0, out);
    Ok(true)
}

/// The sizes of a node's convolution and its element type, where its inputs fit together.
fn geometry(ctx: &KernelContext<'_>, windows: &Windows, pass: Pass) -> Option<(WindowGeometry, DType)> {
    let image = match pass {
        Pass::ToImage => windows.listed(&ctx.ints(0).ok()?).ok()?,
        _ => windows.channels_last(ctx.input(0).ok()?.dims()).ok()?,
    };
    let filter = match pass {
        Pass::ToFilter => ctx.shape_input(1).ok()?,
        _ => ctx.input(1).ok()?.shape().clone(),
    };
    let g = windows.convolution(&image, &filter).ok()?;
    if pass == Pass::Forward {
        return Some((g, ctx.input(0).ok()?.dtype()));
    }
    let gradient = ctx.input(2).ok()?;
    let fits = windows.channels_last(gradient.dims()).ok()? == g.output();
    fits.then(|| (g, gradient.dtype()))
}

impl Task<'_> {
    fn convolution(&self) -> &Convolution {
        &self.padded.convolution
    }

    /// Batch, channels, rows and columns of the library's image.
    fn padded(&self) -> Sizes4 {
        let c = self.convolution();
        [c.batch, c.channels, c.image[0], c.image[1]]
    }

    /// Those of the node's image.
    fn own(&self) -> Sizes4 {
        let c = self.convolution();
        [c.batch, c.channels, self.image[0], self.image[1]]
    }

    fn result(&self) -> Sizes4 {
        let c = self.convolution();
        let [rows, columns] = c.result().unwrap_or([0, 0]);
        [c.batch, c.to, rows, columns]
    }

    fn is_same_layout(&self) -> bool {
        self.convolution().channels_last != self.channels_first
    }

    /// A tensor of the node's layout.
    fn room(&self, [n, c, h, w]: Sizes4) -> Result<(Tensor, Address), KernelError> {
        let dims = if self.channels_first { [n, c, h, w] } else { [n, h, w, c] };
        Ok(self.gpu.room(self.dtype, Shape::new(&dims))?)
    }

    /// Memory for as many elements, that goes back with the tensor.
    fn scratch(&self, sizes: Sizes4) -> Result<(Tensor, Address), KernelError> {
        Ok(self.gpu.room(self.dtype, Shape::new(&[sizes.iter().product()]))?)
    }

    /// Moves elements of the library's sizes from one place to another.
    fn place(&self, sizes: Sizes4, from: Lies, to: Lies) -> Result<(), KernelError> {
        // The order in which the target lies: neighbouring threads write neighbouring elements.
        let mut order = [0, 1, 2, 3];
        order.sort_by_key(|d| std::cmp::Reverse(to.steps[*d]));
        let by = |of: [i64; 4]| order.map(|d| of[d]);
        let (dims, word) = (order.map(|d| sizes[d]), c_word(self.dtype)?);
        // SAFETY: the callers' steps are those of values with at least these sizes.
        unsafe { move_elements(self.gpu, word, &dims, (from.at, &by(from.steps)), (to.at, &by(to.steps))) }
    }

    /// Where the node's image lies in the library's: the sizes of what both have, and the two places.
    fn overlap(&self, node: Address, library: Address) -> (Sizes4, Lies, Lies) {
        let (own, padded) = (self.own(), self.padded());
        let begin = self.padded.begin.unwrap_or([0, 0]);
        let shared = |i: usize| own[2 + i].min(padded[2 + i].saturating_sub(begin[i]));
        let node = Lies { at: node, steps: steps(own, !self.channels_first) };
        let steps = steps(padded, self.convolution().channels_last);
        let skipped = begin[0] as i64 * steps[2] + begin[1] as i64 * steps[3];
        let library = Lies { at: library.wrapping_add_signed(skipped * self.dtype.size() as i64), steps };
        ([own[0], own[1], shared(0), shared(1)], node, library)
    }

    /// The image as the library takes it. The tensor that comes with the address keeps it there.
    fn image_in(&self, image: &Tensor, from: Address) -> Result<(Tensor, Address), KernelError> {
        if self.padded.begin.is_none() && self.is_same_layout() {
            return Ok((image.clone(), from));
        }
        let (room, at) = self.scratch(self.padded())?;
        if self.padded.begin.is_some() {
            self.gpu.zero(at, room.n_bytes())?;
        }
        let (sizes, node, library) = self.overlap(from, at);
        if !sizes.contains(&0) {
            self.place(sizes, node, library)?;
        }
        Ok((room, at))
    }

    /// A result, or its gradient, as the library takes it.
    fn result_in(&self, result: &Tensor, from: Address) -> Result<(Tensor, Address), KernelError> {
        if self.is_same_layout() {
            return Ok((result.clone(), from));
        }
        let (room, at) = self.scratch(self.result())?;
        self.turn(from, at, false)?;
        Ok((room, at))
    }

    /// Turns a result between the node's layout and the library's.
    fn turn(&self, from: Address, to: Address, back: bool) -> Result<(), KernelError> {
        let (sizes, last) = (self.result(), self.convolution().channels_last);
        let (own, library) = (steps(sizes, !self.channels_first), steps(sizes, last));
        let (a, b) = if back { (library, own) } else { (own, library) };
        self.place(sizes, Lies { at: from, steps: a }, Lies { at: to, steps: b })
    }

    /// Moves a filter from the node's layout, `[rows, columns, each, to]`, to the library's, or back.
    fn filter(&self, from: Address, to: Address, back: bool) -> Result<(), KernelError> {
        let c = self.convolution();
        let sizes = [c.to, c.channels / c.groups, c.window[0], c.window[1]];
        let [to_channels, each, _, columns] = sizes.map(|n| n as i64);
        let own = [1, to_channels, columns * each * to_channels, each * to_channels];
        let library = steps(sizes, c.channels_last);
        let (a, b) = if back { (library, own) } else { (own, library) };
        self.place(sizes, Lies { at: from, steps: a }, Lies { at: to, steps: b })
    }

    fn filter_room(&self) -> Result<(Tensor, Address), KernelError> {
        let c = self.convolution();
        self.scratch([c.to, c.channels / c.groups, c.window[0], c.window[1]])
    }

    fn forward(&self, ctx: &KernelContext<'_>, workspace: usize) -> Result<Option<Tensor>, KernelError> {
        let ((image, from), (_filter, weights)) = (operand(ctx, 0)?, operand(ctx, 1)?);
        let ((_image, x), (_room, w)) = (self.image_in(&image, from)?, self.filter_room()?);
        self.filter(weights, w, false)?;
        let (out, to) = self.room(self.result())?;
        if self.is_same_layout() {
            return Ok(self.gpu.convolve(self.convolution(), Pass::Forward, [x, w, to], workspace).then_some(out));
        }
        let (_turned, y) = self.scratch(self.result())?;
        if !self.gpu.convolve(self.convolution(), Pass::Forward, [x, w, y], workspace) {
            return Ok(None);
        }
        self.turn(y, to, true)?;
        Ok(Some(out))
    }

    fn to_image(&self, ctx: &KernelContext<'_>, workspace: usize) -> Result<Option<Tensor>, KernelError> {
        let ((_filter, weights), (gradient, from)) = (operand(ctx, 1)?, operand(ctx, 2)?);
        let ((_gradient, y), (_room, w)) = (self.result_in(&gradient, from)?, self.filter_room()?);
        self.filter(weights, w, false)?;
        let (out, to) = self.room(self.own())?;
        if self.padded.begin.is_none() && self.is_same_layout() {
            return Ok(self.gpu.convolve(self.convolution(), Pass::ToImage, [to, w, y], workspace).then_some(out));
        }
        let (_padded, x) = self.scratch(self.padded())?;
        if !self.gpu.convolve(self.convolution(), Pass::ToImage, [x, w, y], workspace) {
            return Ok(None);
        }
        let (sizes, node, library) = self.overlap(to, x);
        if sizes != self.own() {
            // No window reached the rest.
            self.gpu.zero(to, out.n_bytes())?;
        }
        if !sizes.contains(&0) {
            self.place(sizes, library, node)?;
        }
        Ok(Some(out))
    }

    fn to_filter(&self, ctx: &KernelContext<'_>, workspace: usize) -> Result<Option<Tensor>, KernelError> {
        let ((image, from), (gradient, at_gradient)) = (operand(ctx, 0)?, operand(ctx, 2)?);
        let (_image, x) = self.image_in(&image, from)?;
        let (_gradient, y) = self.result_in(&gradient, at_gradient)?;
        let (_room, w) = self.filter_room()?;
        if !self.gpu.convolve(self.convolution(), Pass::ToFilter, [x, w, y], workspace) {
            return Ok(None);
        }
        let c = self.convolution();
        let dims = [c.window[0], c.window[1], c.channels / c.groups, c.to];
        let (out, to) = self.gpu.room(self.dtype, Shape::new(&dims))?;
        self.filter(w, to, true)?;
        Ok(Some(out))
    }
}
