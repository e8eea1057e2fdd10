//! Convolutions of quantised numbers: of the levels less the level of zero, so that padding is zero.
//!
//! The levels are convolved as f64 by the same tiles; sums of products of 8 bits are exact there, whatever the filter's
//! size.

use super::compute;
use crate::kernels::quantize::{Levels, float, levels, of_levels};
use crate::kernels::quantized::{product_range, set_range};
use crate::kernels::support::{Built, cpu_any, kernel};
use crate::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::window::Windows;

#[linkme::distributed_slice(KERNEL_TABLES)]
static QUANTIZED: &[KernelDef] = &[cpu_any("QuantizedConv2D", convolution)];

/// The levels of input `i` in the range of inputs `range` and the next, less that of zero; and the range.
fn centred(c: &KernelContext<'_>, i: usize, of: Levels, range: usize) -> Result<(Vec<f64>, [f32; 2]), KernelError> {
    let [min, max] = [float(c, range)?, float(c, range + 1)?];
    let zero = of.unclamped(0.0, min, max);
    Ok((levels(c, i)?.into_iter().map(|v| (v - zero) as f64).collect(), [min, max]))
}

fn convolution(node: &Node) -> Built {
    let windows = Windows::of(&node.attrs, 2)?;
    let (of_x, of_filter) = (Levels::of(*node.dtype("Tinput")?)?, Levels::of(*node.dtype("Tfilter")?)?);
    if *node.dtype("out_type")? != DType::QI32 {
        return Err(KernelError::invalid("out_type must be qint32"));
    }
    kernel(move |c| {
        let g = windows.convolution(c.input(0)?.shape(), c.input(1)?.shape())?;
        let shape = g.output();
        let (x, [x0, x1]) = centred(c, 0, of_x, 2)?;
        let (filter, [f0, f1]) = centred(c, 1, of_filter, 4)?;
        let sums = c.filled::<f64>(shape.clone(), |y| match y.is_empty() {
            true => Ok(()),
            false => compute::forward(&g, c, &x, &filter, y),
        })?;
        let sums = sums.slice::<f64>()?.iter().map(|v| v.round() as i64).collect();
        let out = of_levels(c, DType::QI32, shape, sums)?;
        c.set(0, out);
        let (min, max) = product_range((of_x, x0, x1), (of_filter, f0, f1));
        set_range(c, min, max);
        Ok(())
    })
}
