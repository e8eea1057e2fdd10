//! Grey-scale dilation: the largest of `data + filter` over windows, and where its gradient goes.

use super::{F32, F64, built};
use crate::kernels::nn::Float;
use crate::kernels::support::{Computed, cpu};
use crate::kernels::{KERNEL_TABLES, KernelContext, KernelDef};
use engine_core::window::{WindowGeometry, Windows};

#[linkme::distributed_slice(KERNEL_TABLES)]
static DILATION: &[KernelDef] = &[
    cpu("Dilation2D", F32, |n| built(n, 2, &[], &[], forward::<f32>)),
    cpu("Dilation2D", F64, |n| built(n, 2, &[], &[], forward::<f64>)),
    cpu("Dilation2DBackpropInput", F32, |n| built(n, 2, &[], &[], |c, a| backward::<f32>(c, a, 0))),
    cpu("Dilation2DBackpropInput", F64, |n| built(n, 2, &[], &[], |c, a| backward::<f64>(c, a, 0))),
    cpu("Dilation2DBackpropFilter", F32, |n| built(n, 2, &[], &[], |c, a| backward::<f32>(c, a, 1))),
    cpu("Dilation2DBackpropFilter", F64, |n| built(n, 2, &[], &[], |c, a| backward::<f64>(c, a, 1))),
];

/// Calls `f(output, largest sum, (its input, its filter element))` for each output, in order.
fn each<T: Float>(g: &WindowGeometry, data: &[T], filter: &[T], mut f: impl FnMut(usize, T, Option<(usize, usize)>)) {
    let [_, y, x] = &g.axes;
    let mut output = 0;
    for image in 0..g.batch {
        for oy in 0..y.output {
            for ox in 0..x.output {
                for c in 0..g.channels {
                    let (mut best, mut from) = (T::LOWEST, None);
                    for ky in 0..y.window {
                        let Some(iy) = y.position(oy, ky) else { continue };
                        for kx in 0..x.window {
                            let Some(ix) = x.position(ox, kx) else { continue };
                            let i = ((image * y.input + iy) * x.input + ix) * g.channels + c;
                            let k = (ky * x.window + kx) * g.channels + c;
                            let sum = data[i] + filter[k];
                            if sum > best {
                                (best, from) = (sum, Some((i, k)));
                            }
                        }
                    }
                    f(output, best, from);
                    output += 1;
                }
            }
        }
    }
}

fn forward<T: Float>(c: &mut KernelContext<'_>, windows: &Windows) -> Computed {
    let g = windows.dilation(c.input(0)?.shape(), c.input(1)?.shape())?;
    let (data, filter) = (c.slice::<T>(0)?, c.slice::<T>(1)?);
    let y = c.filled::<T>(g.output(), |y| {
        each(&g, data, filter, |i, best, _| y[i] = best);
        Ok(())
    })?;
    c.set(0, y);
    Ok(())
}

/// Each output's gradient goes to the element of the input (`of` = 0) or of the filter (1) that made it.
fn backward<T: Float>(c: &mut KernelContext<'_>, windows: &Windows, of: usize) -> Computed {
    let g = windows.dilation(c.input(0)?.shape(), c.input(1)?.shape())?;
    g.check_output("out_backprop", c.input(2)?.shape())?;
    let (data, filter, gradient) = (c.slice::<T>(0)?, c.slice::<T>(1)?, c.slice::<T>(2)?);
    let grad = c.filled::<T>(c.input(of)?.shape().clone(), |grad| {
        grad.fill(T::default());
        each(&g, data, filter, |i, _, from| {
            if let Some((data, filter)) = from {
                let to = if of == 0 { data } else { filter };
                grad[to] = grad[to] + gradient[i];
            }
        });
        Ok(())
    })?;
    c.set(0, grad);
    Ok(())
}
