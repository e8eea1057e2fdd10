//! Pools of quantised numbers: levels keep their order, so that maxima and means are those of the levels.

use super::quantize::{levels, of_levels};
use super::support::{Built, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelDef};
use engine_core::graph::Node;
use engine_core::window::{WindowGeometry, Windows};

#[linkme::distributed_slice(KERNEL_TABLES)]
static POOLS: &[KernelDef] =
    &[cpu_any("QuantizedMaxPool", |n| pool(n, maximum)), cpu_any("QuantizedAvgPool", |n| pool(n, mean))];

/// What an output pixel of channel `k` is, from the levels of its window.
type Pooled = fn(g: &WindowGeometry, x: &[i64], pixel: usize, k: usize) -> i64;

fn maximum(g: &WindowGeometry, x: &[i64], pixel: usize, k: usize) -> i64 {
    let mut largest = i64::MIN;
    g.each(pixel, |i| largest = largest.max(x[i * g.channels + k]));
    largest
}

/// Rounded towards zero, as TensorFlow's.
fn mean(g: &WindowGeometry, x: &[i64], pixel: usize, k: usize) -> i64 {
    let (mut sum, mut n) = (0, 0);
    g.each(pixel, |i| (sum, n) = (sum + x[i * g.channels + k], n + 1));
    sum / n.max(1)
}

fn pool(node: &Node, pooled: Pooled) -> Built {
    let windows = Windows::of(&node.attrs, 2)?;
    let dtype = *node.dtype("T")?;
    kernel(move |c| {
        let g = windows.pool(c.input(0)?.shape())?;
        let x = levels(c, 0)?;
        let shape = g.output();
        let n = g.channels.max(1);
        let all = (0..shape.n_elements()).map(|i| pooled(&g, &x, i / n, i % n)).collect();
        let out = of_levels(c, dtype, shape, all)?;
        let (min, max) = (c.take(1)?, c.take(2)?);
        c.set(0, out);
        c.set(1, min);
        c.set(2, max);
        Ok(())
    })
}
