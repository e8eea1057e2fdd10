//! Convolutions that keep channels apart: each channel has filters of its own.

use super::attributes::{Attributes, F32, F64};
use crate::kernels::formats::any_format;
use crate::kernels::nn::Float;
use crate::kernels::support::{Built, Computed, cpu, kernel, shard_slice};
use crate::kernels::wide::vectorised;
use crate::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::shape::Shape;
use crate::window::Axis;

#[linkme::distributed_slice(KERNEL_TABLES)]
static DEPTHWISE: &[KernelDef] = &[
    cpu("DepthwiseConv2dNative", F32, |n| built(n, &[0], &[0], forward::<f32>)),
    cpu("DepthwiseConv2dNative", F64, |n| built(n, &[0], &[0], forward::<f64>)),
    cpu("DepthwiseConv2dNativeBackpropInput", F32, |n| built(n, &[2], &[0], to_input::<f32>)),
    cpu("DepthwiseConv2dNativeBackpropInput", F64, |n| built(n, &[2], &[0], to_input::<f64>)),
    cpu("DepthwiseConv2dNativeBackpropFilter", F32, |n| built(n, &[0, 2], &[], to_filter::<f32>)),
    cpu("DepthwiseConv2dNativeBackpropFilter", F64, |n| built(n, &[0, 2], &[], to_filter::<f64>)),
];

type Compute = fn(&mut KernelContext<'_>, &Attributes) -> Computed;

fn built(node: &crate::graph::Node, inputs: &'static [usize], outputs: &'static [usize], compute: Compute) -> Built {
    let attributes = Attributes::of(node, 2)?;
    any_format(node, inputs, outputs, kernel(move |c| compute(c, &attributes))?)
}

/// The sizes: of a window over height and width, and channels.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    y: Axis,
    x: Axis,
    channels: usize,
    /// Filters of each channel.
    multiplier: usize,
}

impl Sizes {
    fn of(a: &Attributes, data: &Shape, filter: &Shape) -> Result<Sizes, KernelError> {
        a.check_ranks(data, filter)?;
        let (channels, multiplier) = (data.dims()[3], filter.dims()[3]);
        if filter.dims()[2] != channels {
            let text = format!("channels of the input {data} do not fit the filter {filter}");
            return Err(KernelError::invalid(text));
        }
        let [_, y, x] = a.axes(data, filter)?;
        Ok(Sizes { batch: data.dims()[0], y, x, channels, multiplier })
    }

    fn output(&self) -> Shape {
        Shape::new(&[self.batch, self.y.output, self.x.output, self.channels * self.multiplier])
    }

    /// Calls `f(filter element, input pixel)` for each element of the window of an output pixel that lies in the data;
    /// pixels are counted within an image.
    #[inline]
    fn each_tap(&self, oy: usize, ox: usize, mut f: impl FnMut(usize, usize)) {
        for ky in 0..self.y.window {
            let Some(iy) = position(&self.y, oy, ky) else { continue };
            for kx in 0..self.x.window {
                if let Some(ix) = position(&self.x, ox, kx) {
                    f(ky * self.x.window + kx, iy * self.x.input + ix);
                }
            }
        }
    }
}

fn position(axis: &Axis, output: usize, tap: usize) -> Option<usize> {
    (output * axis.stride + tap * axis.dilation).checked_sub(axis.before).filter(|i| *i < axis.input)
}

vectorised! {
    /// `out[c * m + q] += x[c] * w[c * m + q]`.
    fn add_products<T: Float>(out: &mut [T], x: &[T], w: &[T], m: usize) {
        if m == 1 {
            for ((o, x), w) in out.iter_mut().zip(x).zip(w) {
                *o = *o + *x * *w;
            }
            return;
        }
        for ((o, x), w) in out.chunks_exact_mut(m).zip(x).zip(w.chunks_exact(m)) {
            o.iter_mut().zip(w).for_each(|(o, w)| *o = *o + *x * *w);
        }
    }

    /// `out[c] += sum over q of g[c * m + q] * w[c * m + q]`.
    fn add_dots<T: Float>(out: &mut [T], g: &[T], w: &[T], m: usize) {
        if m == 1 {
            for ((o, g), w) in out.iter_mut().zip(g).zip(w) {
                *o = *o + *g * *w;
            }
            return;
        }
        for ((o, g), w) in out.iter_mut().zip(g.chunks_exact(m)).zip(w.chunks_exact(m)) {
            *o = *o + g.iter().zip(w).map(|(g, w)| *g * *w).sum();
        }
    }
}

fn forward<T: Float>(c: &mut KernelContext<'_>, a: &Attributes) -> Computed {
    let s = Sizes::of(a, c.input(0)?.shape(), c.input(1)?.shape())?;
    let (x, w) = (c.slice::<T>(0)?, c.slice::<T>(1)?);
    let (n, n_in) = (s.channels * s.multiplier, s.channels);
    let (out_pixels, in_pixels) = (s.y.output * s.x.output, s.y.input * s.x.input);
    let ps = 300 * (s.y.window * s.x.window) as u64;
    let y = c.filled::<T>(s.output(), |y| {
        shard_slice(c.sharder, y, n, ps, |at, part| {
            for (i, row) in part.chunks_exact_mut(n.max(1)).enumerate() {
                let pixel = at / n + i;
                let (image, within) = (pixel / out_pixels, pixel % out_pixels);
                row.fill(T::default());
                s.each_tap(within / s.x.output, within % s.x.output, |tap, from| {
                    let x = &x[(image * in_pixels + from) * n_in..][..n_in];
                    add_products(row, x, &w[tap * n..][..n], s.multiplier);
                });
            }
        });
        Ok(())
    })?;
    c.set(0, y);
    Ok(())
}

fn to_input<T: Float>(c: &mut KernelContext<'_>, a: &Attributes) -> Computed {
    let shape = a.listed(c, 0)?;
    let s = Sizes::of(a, &shape, c.input(1)?.shape())?;
    a.check_gradient(&s.output(), c.input(2)?.shape())?;
    let (w, g) = (c.slice::<T>(1)?, c.slice::<T>(2)?);
    let (n, n_in) = (s.channels * s.multiplier, s.channels);
    let (out_pixels, image) = (s.y.output * s.x.output, s.y.input * s.x.input * n_in);
    let ps = 300 * (s.y.window * s.x.window) as u64;
    let x = c.filled::<T>(shape, |x| {
        shard_slice(c.sharder, x, image, ps, |at, part| {
            part.fill(T::default());
            for (i, x) in part.chunks_exact_mut(image.max(1)).enumerate() {
                let first = (at / image + i) * out_pixels;
                for pixel in 0..out_pixels {
                    let g = &g[(first + pixel) * n..][..n];
                    s.each_tap(pixel / s.x.output, pixel % s.x.output, |tap, to| {
                        add_dots(&mut x[to * n_in..][..n_in], g, &w[tap * n..][..n], s.multiplier);
                    });
                }
            }
        });
        Ok(())
    })?;
    c.set(0, x);
    Ok(())
}

fn to_filter<T: Float>(c: &mut KernelContext<'_>, a: &Attributes) -> Computed {
    let shape = c.shape_input(1)?;
    let s = Sizes::of(a, c.input(0)?.shape(), &shape)?;
    a.check_gradient(&s.output(), c.input(2)?.shape())?;
    let (x, g) = (c.slice::<T>(0)?, c.slice::<T>(2)?);
    let (n, n_in) = (s.channels * s.multiplier, s.channels);
    let (out_pixels, in_pixels) = (s.y.output * s.x.output, s.y.input * s.x.input);
    let cost = s.batch * out_pixels * n / 4;
    let w = c.filled::<T>(shape, |w| {
        // Each shard sums its elements of the window over all pixels, in their order.
        let rows = w.len() / n.max(1);
        let parts = parking_lot::Mutex::new(w.chunks_exact_mut(n.max(1)).map(Some).collect::<Vec<_>>());
        c.sharder.parallel_for(rows, (cost as u64).max(1), &|taps| {
            for tap in taps {
                let Some(row) = parts.lock()[tap].take() else { continue };
                row.fill(T::default());
                for pixel in 0..s.batch * out_pixels {
                    let (image, within) = (pixel / out_pixels, pixel % out_pixels);
                    let (ky, kx) = (tap / s.x.window, tap % s.x.window);
                    let at = position(&s.y, within / s.x.output, ky).zip(position(&s.x, within % s.x.output, kx));
                    let Some((iy, ix)) = at else { continue };
                    let x = &x[(image * in_pixels + iy * s.x.input + ix) * n_in..][..n_in];
                    add_products(row, x, &g[pixel * n..][..n], s.multiplier);
                }
            }
        });
        Ok(())
    })?;
    c.set(0, w);
    Ok(())
}
