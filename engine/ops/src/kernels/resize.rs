//! Images in other sizes: bilinear and nearest-neighbour interpolation, and their gradients.
//!
//! Both sample the input at `scale * i` (with half pixel centres: `scale * (i + 0.5) - 0.5`); the scale is that of the
//! sizes, or, with aligned corners, that of the distances between the first and the last pixel.

use super::nn::Float;
use super::support::{Built, Computed, by_word, cpu, cpu_any, kernel, shard_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::convert::convert;
use engine_core::dtype::{DType, Element};
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

#[derive(Clone, Copy)]
pub(super) struct Sampling {
    align_corners: bool,
    pub half_pixel_centers: bool,
}

/// Between which pixels of the input a pixel of the output lies, and how far from the lower one.
#[derive(Clone, Copy)]
struct Between {
    lower: usize,
    upper: usize,
    part: f32,
}

impl Sampling {
    pub fn of(node: &Node) -> Result<Sampling, KernelError> {
        let s = Sampling {
            align_corners: *node.flag("align_corners")?,
            half_pixel_centers: *node.flag("half_pixel_centers")?,
        };
        if s.align_corners && s.half_pixel_centers {
            return Err(KernelError::invalid("align_corners and half_pixel_centers exclude each other"));
        }
        Ok(s)
    }

    pub fn scale(&self, input: usize, output: usize) -> f32 {
        match self.align_corners && output > 1 {
            true => (input - 1) as f32 / (output - 1) as f32,
            false => input as f32 / output as f32,
        }
    }

    /// For each of `output` pixels, between which of the `input` pixels it lies.
    fn between(&self, input: usize, output: usize) -> Vec<Between> {
        let scale = self.scale(input, output);
        let of = |i: usize| {
            let at = if self.half_pixel_centers { (i as f32 + 0.5) * scale - 0.5 } else { i as f32 * scale };
            let lower = at.floor();
            let upper = (at.ceil().max(0.0) as usize).min(input - 1);
            Between { lower: (lower.max(0.0) as usize).min(input - 1), upper, part: at - lower }
        };
        (0..output).map(of).collect()
    }

    /// For each of `output` pixels, the input's nearest.
    fn nearest(&self, input: usize, output: usize) -> Vec<usize> {
        let scale = self.scale(input, output);
        let of = |i: usize| {
            let at = if self.half_pixel_centers { (i as f32 + 0.5) * scale } else { i as f32 * scale };
            let at = if self.align_corners { at.round() } else { at.floor() };
            (at as usize).min(input - 1)
        };
        (0..output).map(of).collect()
    }
}

/// Images: batch, height, width, channels.
pub(super) fn images(shape: &Shape) -> Result<[usize; 4], KernelError> {
    let dims = <[usize; 4]>::try_from(shape.dims());
    let dims = dims.map_err(|_| KernelError::invalid(format!("images must have rank 4, got shape {shape}")))?;
    if dims[1] == 0 || dims[2] == 0 {
        return Err(KernelError::invalid(format!("images of shape {shape} have no pixels")));
    }
    Ok(dims)
}

/// The height and width that input `i` lists.
pub(super) fn size(c: &KernelContext<'_>, i: usize) -> Result<[usize; 2], KernelError> {
    let size = c.shape_input(i)?;
    match size.dims() {
        &[height, width] if height > 0 && width > 0 => Ok([height, width]),
        _ => Err(KernelError::invalid(format!("the size must be a positive height and width, got {size}"))),
    }
}

fn bilinear(c: &mut KernelContext<'_>, s: Sampling) -> Computed {
    let [batch, in_y, in_x, n] = images(c.input(0)?.shape())?;
    let [out_y, out_x] = size(c, 1)?;
    let x = convert(c.input(0)?, DType::F32, c.allocator)?;
    let x = x.slice::<f32>()?;
    let (ys, xs) = (s.between(in_y, out_y), s.between(in_x, out_x));
    let y = c.filled::<f32>(Shape::new(&[batch, out_y, out_x, n]), |y| {
        shard_slice(c.sharder, y, out_x * n, 2000, |at, part| {
            for (i, line) in part.chunks_exact_mut((out_x * n).max(1)).enumerate() {
                let line_idx = at / (out_x * n) + i;
                let (image, by) = (line_idx / out_y * in_y, ys[line_idx % out_y]);
                let (top, bottom) = ((image + by.lower) * in_x, (image + by.upper) * in_x);
                for (pixel, bx) in line.chunks_exact_mut(n.max(1)).zip(&xs) {
                    let corner = |line: usize, column: usize, k: usize| x[(line + column) * n + k];
                    for (k, v) in pixel.iter_mut().enumerate() {
                        let (a, b) = (corner(top, bx.lower, k), corner(top, bx.upper, k));
                        let (c, d) = (corner(bottom, bx.lower, k), corner(bottom, bx.upper, k));
                        let (upper, lower) = (a + (b - a) * bx.part, c + (d - c) * bx.part);
                        *v = upper + (lower - upper) * by.part;
                    }
                }
            }
        });
        Ok(())
    })?;
    c.set(0, y);
    Ok(())
}

/// The pixels of the input along one side, and how much of each, that a pixel of the output is made of.
pub(super) type Shares<const N: usize> = [(usize, f32); N];

fn bilinear_grad<T: Float>(c: &mut KernelContext<'_>, s: Sampling) -> Computed {
    let shares = |input: usize, output: usize| -> Vec<Shares<2>> {
        s.between(input, output).iter().map(|b| [(b.lower, 1.0 - b.part), (b.upper, b.part)]).collect()
    };
    shared_grad::<T, 2>(c, shares)
}

/// Each gradient goes to the pixels that its pixel was made of, in their shares.
pub(super) fn shared_grad<T: Float, const N: usize>(
    c: &mut KernelContext<'_>,
    shares: impl Fn(usize, usize) -> Vec<Shares<N>>,
) -> Computed {
    let [batch, out_y, out_x, n] = images(c.input(0)?.shape())?;
    let shape = c.input(1)?.shape().clone();
    let [in_batch, in_y, in_x, in_n] = images(&shape)?;
    if (in_batch, in_n) != (batch, n) {
        return Err(KernelError::invalid(format!("grads of shape {} are not of images {shape}", c.input(0)?.shape())));
    }
    let g = c.slice::<f32>(0)?;
    let (ys, xs) = (shares(in_y, out_y), shares(in_x, out_x));
    let image = in_y * in_x * n;
    let cost = 700 * (N * N) as u64;
    let dx = c.filled::<T>(shape, |dx| {
        shard_slice(c.sharder, dx, image, cost, |at, part| {
            part.fill(T::default());
            for (i, dx) in part.chunks_exact_mut(image.max(1)).enumerate() {
                let first = (at / image + i) * out_y;
                for (p, g) in g[first * out_x * n..][..out_y * out_x * n].chunks_exact(n.max(1)).enumerate() {
                    for (row, of_row) in ys[p / out_x] {
                        for (column, of_column) in xs[p % out_x] {
                            let to = &mut dx[(row * in_x + column) * n..][..n];
                            let share = f64::from(of_row * of_column);
                            let add = |(to, g): (&mut T, &f32)| *to = *to + T::from_f64(f64::from(*g) * share);
                            to.iter_mut().zip(g).for_each(add);
                        }
                    }
                }
            }
        });
        Ok(())
    })?;
    c.set(0, dx);
    Ok(())
}

fn nearest(c: &mut KernelContext<'_>, s: Sampling) -> Computed {
    fn of<T: Element>(c: &KernelContext<'_>, s: Sampling) -> Result<Tensor, KernelError> {
        let [batch, in_y, in_x, n] = images(c.input(0)?.shape())?;
        let [out_y, out_x] = size(c, 1)?;
        let x = c.words::<T>(0)?;
        let (ys, xs) = (s.nearest(in_y, out_y), s.nearest(in_x, out_x));
        c.filled_words::<T>(c.input(0)?.dtype(), Shape::new(&[batch, out_y, out_x, n]), |out| {
            let mut pixels = out.chunks_exact_mut(n.max(1));
            for image in 0..batch {
                for y in &ys {
                    for (x_at, pixel) in xs.iter().zip(&mut pixels) {
                        pixel.copy_from_slice(&x[((image * in_y + y) * in_x + x_at) * n..][..n]);
                    }
                }
            }
            Ok(())
        })
    }
    let y = by_word!(c.input(0)?.dtype(), of(c, s))?;
    c.set(0, y);
    Ok(())
}

fn nearest_grad<T: Float>(c: &mut KernelContext<'_>, s: Sampling) -> Computed {
    let [batch, out_y, out_x, n] = images(c.input(0)?.shape())?;
    let [in_y, in_x] = size(c, 1)?;
    let g = c.slice::<T>(0)?;
    let (ys, xs) = (s.nearest(in_y, out_y), s.nearest(in_x, out_x));
    let dx = c.filled::<T>(Shape::new(&[batch, in_y, in_x, n]), |dx| {
        dx.fill(T::default());
        let mut pixels = g.chunks_exact(n.max(1));
        for image in 0..batch {
            for y in &ys {
                for (x_at, pixel) in xs.iter().zip(&mut pixels) {
                    let to = &mut dx[((image * in_y + y) * in_x + x_at) * n..][..n];
                    to.iter_mut().zip(pixel).for_each(|(to, g)| *to = *to + *g);
                }
            }
        }
        Ok(())
    })?;
    c.set(0, dx);
    Ok(())
}

pub(super) fn built(node: &Node, compute: fn(&mut KernelContext<'_>, Sampling) -> Computed) -> Built {
    let sampling = Sampling::of(node)?;
    kernel(move |c| compute(c, sampling))
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static RESIZE: &[KernelDef] = &[
    cpu_any("ResizeBilinear", |n| built(n, bilinear)),
    cpu("ResizeBilinearGrad", ("T", &[DType::F32]), |n| built(n, bilinear_grad::<f32>)),
    cpu("ResizeBilinearGrad", ("T", &[DType::F64]), |n| built(n, bilinear_grad::<f64>)),
    cpu_any("ResizeNearestNeighbor", |n| built(n, nearest)),
    cpu("ResizeNearestNeighborGrad", ("T", &[DType::F32]), |n| built(n, nearest_grad::<f32>)),
    cpu("ResizeNearestNeighborGrad", ("T", &[DType::F64]), |n| built(n, nearest_grad::<f64>)),
];
