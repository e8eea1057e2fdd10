//! Images in other sizes by cubic convolution (Keys 1981), and its gradient.
//!
//! A pixel is a weighted sum of four by four of the input's. As in TensorFlow the weights come from a table of 1,024
//! steps between two pixels. With half pixel centres the kernel's parameter is -1/2 and pixels outside of the image
//! weigh nothing; without them it is -3/4 and the image goes on as its edge.

use super::nn::Float;
use super::resize::{Sampling, Shares, built, images, shared_grad, size};
use super::support::{Computed, cpu, cpu_any, shard_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef};
use engine_core::convert::convert;
use engine_core::dtype::DType;
use engine_core::shape::Shape;

#[linkme::distributed_slice(KERNEL_TABLES)]
static CUBIC: &[KernelDef] = &[
    cpu_any("ResizeBicubic", |n| built(n, bicubic)),
    cpu("ResizeBicubicGrad", ("T", &[DType::F32]), |n| built(n, bicubic_grad::<f32>)),
    cpu("ResizeBicubicGrad", ("T", &[DType::F64]), |n| built(n, bicubic_grad::<f64>)),
];

/// Steps between two pixels.
const STEPS: f32 = 1024.0;

/// Which pixels of the input, and how much of each.
type Taps = Shares<4>;

/// The kernel at a distance below 1, and below 2.
fn near(a: f32, x: f32) -> f32 {
    ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
}

fn far(a: f32, x: f32) -> f32 {
    ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
}

/// For each of `output` pixels, what it is made of.
fn taps(s: Sampling, input: usize, output: usize) -> Vec<Taps> {
    let scale = s.scale(input, output);
    let a = if s.half_pixel_centers { -0.5 } else { -0.75 };
    let of = |i: usize| {
        let at = if s.half_pixel_centers { (i as f32 + 0.5) * scale - 0.5 } else { i as f32 * scale };
        let first = at.floor();
        let step = ((at - first) * STEPS).round_ties_even() / STEPS;
        let weights = [far(a, step + 1.0), near(a, step), near(a, 1.0 - step), far(a, 2.0 - step)];
        let mut taps = [(0, 0.0); 4];
        for (k, (tap, weight)) in taps.iter_mut().zip(weights).enumerate() {
            let place = first as i64 - 1 + k as i64;
            let bounded = place.clamp(0, input as i64 - 1);
            *tap = (bounded as usize, if s.half_pixel_centers && bounded != place { 0.0 } else { weight });
        }
        let sum: f32 = taps.iter().map(|tap| tap.1).sum();
        if s.half_pixel_centers && sum.abs() >= 1000.0 * f32::MIN_POSITIVE {
            taps.iter_mut().for_each(|tap| tap.1 /= sum);
        }
        taps
    };
    (0..output).map(of).collect()
}

fn bicubic(c: &mut KernelContext<'_>, s: Sampling) -> Computed {
    let [batch, in_y, in_x, n] = images(c.input(0)?.shape())?;
    let [out_y, out_x] = size(c, 1)?;
    let x = convert(c.input(0)?, DType::F32, c.allocator)?;
    let x = x.slice::<f32>()?;
    let (ys, xs) = (taps(s, in_y, out_y), taps(s, in_x, out_x));
    let y = c.filled::<f32>(Shape::new(&[batch, out_y, out_x, n]), |y| {
        shard_slice(c.sharder, y, out_x * n, 8000, |at, part| {
            for (i, line) in part.chunks_exact_mut((out_x * n).max(1)).enumerate() {
                let line_idx = at / (out_x * n) + i;
                let (image, rows) = (line_idx / out_y * in_y, &ys[line_idx % out_y]);
                for (pixel, columns) in line.chunks_exact_mut(n.max(1)).zip(&xs) {
                    for (k, v) in pixel.iter_mut().enumerate() {
                        let row = |row: usize| -> f32 {
                            let at = |column: usize| x[((image + row) * in_x + column) * n + k];
                            columns.iter().map(|(column, weight)| at(*column) * weight).sum()
                        };
                        *v = rows.iter().map(|(y, weight)| row(*y) * weight).sum();
                    }
                }
            }
        });
        Ok(())
    })?;
    c.set(0, y);
    Ok(())
}

fn bicubic_grad<T: Float>(c: &mut KernelContext<'_>, s: Sampling) -> Computed {
    shared_grad::<T, 4>(c, |input, output| taps(s, input, output))
}
