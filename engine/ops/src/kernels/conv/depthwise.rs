//! Convolutions that keep channels apart: each channel has filters of its own.

use super::{F32, F64, built};
use crate::kernels::nn::Float;
use crate::kernels::support::{Computed, cpu, shard_slice};
use crate::kernels::wide::vectorised;
use crate::kernels::{KERNEL_TABLES, KernelContext, KernelDef};
use engine_core::window::{WindowGeometry, Windows};

#[linkme::distributed_slice(KERNEL_TABLES)]
static DEPTHWISE: &[KernelDef] = &[
    cpu("DepthwiseConv2dNative", F32, |n| built(n, 2, &[0], &[0], forward::<f32>)),
    cpu("DepthwiseConv2dNative", F64, |n| built(n, 2, &[0], &[0], forward::<f64>)),
    cpu("DepthwiseConv2dNativeBackpropInput", F32, |n| built(n, 2, &[2], &[0], to_input::<f32>)),
    cpu("DepthwiseConv2dNativeBackpropInput", F64, |n| built(n, 2, &[2], &[0], to_input::<f64>)),
    cpu("DepthwiseConv2dNativeBackpropFilter", F32, |n| built(n, 2, &[0, 2], &[], to_filter::<f32>)),
    cpu("DepthwiseConv2dNativeBackpropFilter", F64, |n| built(n, 2, &[0, 2], &[], to_filter::<f64>)),
];

/// Calls `f(filter element, input pixel)` for each element of the window of an output pixel that lies in the data;
/// pixels are counted within an image.
#[inline]
fn each_tap(g: &WindowGeometry, oy: usize, ox: usize, mut f: impl FnMut(usize, usize)) {
    let [_, y, x] = &g.axes;
    for ky in 0..y.window {
        let Some(iy) = y.position(oy, ky) else { continue };
        for kx in 0..x.window {
            if let Some(ix) = x.position(ox, kx) {
                f(ky * x.window + kx, iy * x.input + ix);
            }
        }
    }
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
        for ((o, g), w) in out.iter_mut().zip(g.chunks_exact(m.max(1))).zip(w.chunks_exact(m.max(1))) {
            *o = *o + g.iter().zip(w).map(|(g, w)| *g * *w).sum();
        }
    }
}

/// Picoseconds of an output element.
fn cost(g: &WindowGeometry) -> u64 {
    300 * g.window_pixels() as u64
}

fn forward<T: Float>(c: &mut KernelContext<'_>, windows: &Windows) -> Computed {
    let g = windows.depthwise(c.input(0)?.shape(), c.input(1)?.shape())?;
    let (x, w) = (c.slice::<T>(0)?, c.slice::<T>(1)?);
    let (n, n_in, each, width) = (g.out_channels, g.channels, g.multiplier(), g.axes[2].output);
    let (out_pixels, in_pixels) = (g.out_pixels(), g.in_pixels());
    let y = c.filled::<T>(g.output(), |y| {
        shard_slice(c.sharder, y, n, cost(&g), |at, part| {
            for (i, row) in part.chunks_exact_mut(n.max(1)).enumerate() {
                let pixel = at / n + i;
                let (image, within) = (pixel / out_pixels, pixel % out_pixels);
                row.fill(T::default());
                each_tap(&g, within / width, within % width, |tap, from| {
                    let x = &x[(image * in_pixels + from) * n_in..][..n_in];
                    add_products(row, x, &w[tap * n..][..n], each);
                });
            }
        });
        Ok(())
    })?;
    c.set(0, y);
    Ok(())
}

fn to_input<T: Float>(c: &mut KernelContext<'_>, windows: &Windows) -> Computed {
    let shape = windows.listed(&c.ints(0)?)?;
    let g = windows.depthwise(&shape, c.input(1)?.shape())?;
    g.check_output("out_backprop", c.input(2)?.shape())?;
    let (w, dy) = (c.slice::<T>(1)?, c.slice::<T>(2)?);
    let (n, n_in, each, width) = (g.out_channels, g.channels, g.multiplier(), g.axes[2].output);
    let (out_pixels, image) = (g.out_pixels(), g.in_pixels() * n_in);
    let x = c.filled::<T>(shape, |x| {
        shard_slice(c.sharder, x, image, cost(&g), |at, part| {
            part.fill(T::default());
            for (i, x) in part.chunks_exact_mut(image.max(1)).enumerate() {
                let first = (at / image + i) * out_pixels;
                for pixel in 0..out_pixels {
                    let dy = &dy[(first + pixel) * n..][..n];
                    each_tap(&g, pixel / width, pixel % width, |tap, to| {
                        add_dots(&mut x[to * n_in..][..n_in], dy, &w[tap * n..][..n], each);
                    });
                }
            }
        });
        Ok(())
    })?;
    c.set(0, x);
    Ok(())
}

fn to_filter<T: Float>(c: &mut KernelContext<'_>, windows: &Windows) -> Computed {
    let shape = c.shape_input(1)?;
    let g = windows.depthwise(c.input(0)?.shape(), &shape)?;
    g.check_output("out_backprop", c.input(2)?.shape())?;
    let (x, dy) = (c.slice::<T>(0)?, c.slice::<T>(2)?);
    let [_, y_axis, x_axis] = g.axes;
    let (n, n_in, each, width) = (g.out_channels, g.channels, g.multiplier(), x_axis.output);
    let (out_pixels, in_pixels) = (g.out_pixels(), g.in_pixels());
    let cost = g.batch * out_pixels * n / 4;
    let w = c.filled::<T>(shape, |w| {
        // Each shard sums its elements of the window over all pixels, in their order.
        let rows = w.len() / n.max(1);
        let parts = parking_lot::Mutex::new(w.chunks_exact_mut(n.max(1)).map(Some).collect::<Vec<_>>());
        c.sharder.parallel_for(rows, (cost as u64).max(1), &|taps| {
            for tap in taps {
                let Some(row) = parts.lock()[tap].take() else { continue };
                row.fill(T::default());
                let (ky, kx) = (tap / x_axis.window, tap % x_axis.window);
                for pixel in 0..g.batch * out_pixels {
                    let (image, within) = (pixel / out_pixels, pixel % out_pixels);
                    let at = y_axis.position(within / width, ky).zip(x_axis.position(within % width, kx));
                    let Some((iy, ix)) = at else { continue };
                    let x = &x[(image * in_pixels + iy * x_axis.input + ix) * n_in..][..n_in];
                    add_products(row, x, &dy[pixel * n..][..n], each);
                }
            }
        });
        Ok(())
    })?;
    c.set(0, w);
    Ok(())
}
