//! Grey-scale dilation: the largest of `data + filter` over windows, and where its gradient goes.

use super::attributes::{Attributes, F32, F64};
use crate::kernels::nn::Float;
use crate::kernels::support::{Built, Computed, cpu, kernel};
use crate::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::shape::Shape;
use crate::window::Axis;

#[linkme::distributed_slice(KERNEL_TABLES)]
static DILATION: &[KernelDef] = &[
    cpu("Dilation2D", F32, |n| built(n, forward::<f32>)),
    cpu("Dilation2D", F64, |n| built(n, forward::<f64>)),
    cpu("Dilation2DBackpropInput", F32, |n| built(n, |c, a| backward::<f32>(c, a, 0))),
    cpu("Dilation2DBackpropInput", F64, |n| built(n, |c, a| backward::<f64>(c, a, 0))),
    cpu("Dilation2DBackpropFilter", F32, |n| built(n, |c, a| backward::<f32>(c, a, 1))),
    cpu("Dilation2DBackpropFilter", F64, |n| built(n, |c, a| backward::<f64>(c, a, 1))),
];

fn built(node: &crate::graph::Node, compute: fn(&mut KernelContext<'_>, &Attributes) -> Computed) -> Built {
    let attributes = Attributes::of(node, 2)?;
    kernel(move |c| compute(c, &attributes))
}

struct Sizes {
    batch: usize,
    y: Axis,
    x: Axis,
    channels: usize,
}

impl Sizes {
    fn of(a: &Attributes, data: &Shape, filter: &Shape) -> Result<Sizes, KernelError> {
        if data.rank() != 4 || filter.rank() != 3 || data.dims()[3] != filter.dims()[2] {
            return Err(KernelError::invalid(format!("the input {data} does not fit the filter {filter}")));
        }
        let [_, y, x] = a.axes(data, filter)?;
        Ok(Sizes { batch: data.dims()[0], y, x, channels: data.dims()[3] })
    }

    fn output(&self) -> Shape {
        Shape::new(&[self.batch, self.y.output, self.x.output, self.channels])
    }

    /// Calls `f(output, largest sum, (its input, its filter element))` for each output, in order.
    fn each<T: Float>(&self, data: &[T], filter: &[T], mut f: impl FnMut(usize, T, Option<(usize, usize)>)) {
        let at = |axis: &Axis, o: usize, k: usize| {
            (o * axis.stride + k * axis.dilation).checked_sub(axis.before).filter(|i| *i < axis.input)
        };
        let mut output = 0;
        for image in 0..self.batch {
            for oy in 0..self.y.output {
                for ox in 0..self.x.output {
                    for c in 0..self.channels {
                        let (mut best, mut from) = (T::LOWEST, None);
                        for ky in 0..self.y.window {
                            let Some(iy) = at(&self.y, oy, ky) else { continue };
                            for kx in 0..self.x.window {
                                let Some(ix) = at(&self.x, ox, kx) else { continue };
                                let i = ((image * self.y.input + iy) * self.x.input + ix) * self.channels + c;
                                let k = (ky * self.x.window + kx) * self.channels + c;
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
}

fn forward<T: Float>(c: &mut KernelContext<'_>, a: &Attributes) -> Computed {
    let s = Sizes::of(a, c.input(0)?.shape(), c.input(1)?.shape())?;
    let (data, filter) = (c.slice::<T>(0)?, c.slice::<T>(1)?);
    let y = c.filled::<T>(s.output(), |y| {
        s.each(data, filter, |i, best, _| y[i] = best);
        Ok(())
    })?;
    c.set(0, y);
    Ok(())
}

/// Each output's gradient goes to the element of the input (`of` = 0) or of the filter (1) that made it.
fn backward<T: Float>(c: &mut KernelContext<'_>, a: &Attributes, of: usize) -> Computed {
    let s = Sizes::of(a, c.input(0)?.shape(), c.input(1)?.shape())?;
    a.check_gradient(&s.output(), c.input(2)?.shape())?;
    let (data, filter, gradient) = (c.slice::<T>(0)?, c.slice::<T>(1)?, c.slice::<T>(2)?);
    let grad = c.filled::<T>(c.input(of)?.shape().clone(), |grad| {
        grad.fill(T::default());
        s.each(data, filter, |i, _, from| {
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
