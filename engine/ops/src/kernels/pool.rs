//! Pools over windows of two or three spatial dimensions, and their gradients. Channels lie last, so that the innermost
//! loops go over channels.
//!
//! The gradient of a maximum goes to the first element of its window that is the maximum. It is found again by
//! comparing the input with the output, which costs less than writing down and reading back where each came from.

use super::formats::any_format;
use super::nn::Float;
use super::support::{Built, Computed, cpu, kernel, shard_slice, unique_slice};
use super::wide::vectorised;
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::{DType, Element};
use engine_core::graph::{Attr, Node};
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;
use engine_core::window::{WindowGeometry, Windows};

/// A type that pools take the largest of.
trait Number: Element + PartialOrd + Default + std::ops::Add<Output = Self> {
    const LOWEST: Self;
    const ONE: Self;
}
macro_rules! numbers {
    ($($t:ty: $lowest:expr, $one:expr;)+) => { $(
        impl Number for $t {
            const LOWEST: $t = $lowest;
            const ONE: $t = $one;
        }
    )+ };
}
numbers! {
    f32: f32::NEG_INFINITY, 1.0;
    f64: f64::NEG_INFINITY, 1.0;
    i32: i32::MIN, 1;
    i64: i64::MIN, 1;
}

/// Which windows a node pools over: those of its attributes, or of sizes and strides that are inputs.
#[derive(Debug, Clone)]
struct Pool {
    windows: Windows,
    /// Sizes and strides are the node's last two inputs, from this one on.
    inputs: Option<usize>,
}

impl Pool {
    fn geometry(&self, c: &KernelContext<'_>, data: &Shape) -> Result<WindowGeometry, KernelError> {
        Ok(match self.inputs {
            None => self.windows.pool(data)?,
            Some(first) => self.windows.clone().with_sizes(&c.ints(first)?, &c.ints(first + 1)?)?.pool(data)?,
        })
    }
}

/// Picoseconds per output element.
fn cost(g: &WindowGeometry) -> u64 {
    150 * g.window_pixels() as u64 + 100
}

vectorised! {
    /// The maxima of output pixels from `first` on.
    fn maxima<T: Number>(g: &WindowGeometry, x: &[T], first: usize, out: &mut [T]) {
        let n = g.channels;
        for (i, out) in out.chunks_exact_mut(n).enumerate() {
            out.fill(T::LOWEST);
            g.each(first + i, |pixel| {
                for (o, x) in out.iter_mut().zip(&x[pixel * n..][..n]) {
                    // What is not a number stays.
                    #[expect(clippy::eq_op, reason = "of any number type")]
                    let wins = *x > *o || *x != *x;
                    *o = if wins { *x } else { *o };
                }
            });
        }
    }

    /// Adds gradients of the output pixels from `first` on to the elements that were the maxima. `left` has room for
    /// a pixel.
    fn maxima_back<T: Number>(g: &WindowGeometry, x: &[T], y: &[T], dy: &[T], first: usize, n_pixels: usize, left: &mut [T], dx: &mut [T]) {
        let n = g.channels;
        let origin = first / g.out_pixels() * g.in_pixels();
        for i in first..first + n_pixels {
            let (y, left) = (&y[i * n..][..n], &mut left[..n]);
            left.copy_from_slice(&dy[i * n..][..n]);
            g.each(i, |pixel| {
                let dx = &mut dx[(pixel - origin) * n..][..n];
                for (((dx, x), y), left) in dx.iter_mut().zip(&x[pixel * n..][..n]).zip(y).zip(left.iter_mut()) {
                    let hit = *x == *y;
                    *dx = *dx + if hit { *left } else { T::default() };
                    *left = if hit { T::default() } else { *left };
                }
            });
        }
    }

    /// Takes for each output pixel from `first` on what lies at its maximum.
    fn at_maxima<T: Number>(g: &WindowGeometry, x: &[T], y: &[T], of: &[T], first: usize, left: &mut [T], out: &mut [T]) {
        let n = g.channels;
        for (i, out) in out.chunks_exact_mut(n).enumerate() {
            let (y, left) = (&y[(first + i) * n..][..n], &mut left[..n]);
            left.fill(T::ONE);
            out.fill(T::default());
            g.each(first + i, |pixel| {
                let at = pixel * n;
                for ((((o, x), y), left), of) in
                    out.iter_mut().zip(&x[at..][..n]).zip(y).zip(left.iter_mut()).zip(&of[at..][..n])
                {
                    let hit = *x == *y && *left != T::default();
                    *o = if hit { *of } else { *o };
                    *left = if hit { T::default() } else { *left };
                }
            });
        }
    }

    /// The means of output pixels from `first` on.
    fn means<T: Float>(g: &WindowGeometry, x: &[T], first: usize, out: &mut [T]) {
        let n = g.channels;
        for (i, out) in out.chunks_exact_mut(n).enumerate() {
            out.fill(T::default());
            g.each(first + i, |pixel| {
                out.iter_mut().zip(&x[pixel * n..][..n]).for_each(|(o, x)| *o = *o + *x);
            });
            let share = T::from_f64(1.0 / g.count(first + i).max(1) as f64);
            out.iter_mut().for_each(|o| *o = *o * share);
        }
    }

    /// Adds gradients of the output pixels from `first` on to their windows.
    fn means_back<T: Float>(g: &WindowGeometry, dy: &[T], first: usize, n_pixels: usize, dx: &mut [T]) {
        let n = g.channels;
        let origin = first / g.out_pixels() * g.in_pixels();
        for i in first..first + n_pixels {
            let share = T::from_f64(1.0 / g.count(i).max(1) as f64);
            g.each(i, |pixel| {
                let dx = &mut dx[(pixel - origin) * n..][..n];
                dx.iter_mut().zip(&dy[i * n..][..n]).for_each(|(dx, dy)| *dx = *dx + *dy * share);
            });
        }
    }
}

fn max<T: Number>(c: &mut KernelContext<'_>, pool: &Pool) -> Computed {
    let g = pool.geometry(c, c.input(0)?.shape())?;
    let x = c.slice::<T>(0)?;
    let y = by_pixel::<T>(c, &g, |first, part| maxima(&g, x, first, part))?;
    c.set(0, y);
    Ok(())
}

/// Fills an output: `fill(first pixel, pixels)`.
fn by_pixel<T: Element + Default>(
    c: &KernelContext<'_>,
    g: &WindowGeometry,
    fill: impl Fn(usize, &mut [T]) + Sync,
) -> Result<Tensor, KernelError> {
    let n = g.channels;
    c.filled::<T>(g.output(), |y| {
        shard_slice(c.sharder, y, n, cost(g), |at, part| {
            if let Some(first) = at.checked_div(n) {
                fill(first, part);
            }
        });
        Ok(())
    })
}

/// Fills an input's gradient image by image: `back(first output pixel, their number, the image)`.
fn by_image<T: Element + Default>(
    c: &KernelContext<'_>,
    g: &WindowGeometry,
    shape: Shape,
    back: impl Fn(usize, usize, &mut [T]) + Sync,
) -> Result<Tensor, KernelError> {
    let (image, pixels) = (g.in_pixels() * g.channels, g.out_pixels());
    c.filled::<T>(shape, |dx| {
        shard_slice(c.sharder, dx, image, cost(g), |at, part| {
            part.fill(T::default());
            if pixels == 0 {
                return;
            }
            for (i, dx) in part.chunks_exact_mut(image.max(1)).enumerate() {
                back((at / image + i) * pixels, pixels, dx);
            }
        });
        Ok(())
    })
}

fn max_grad<T: Number>(c: &mut KernelContext<'_>, pool: &Pool) -> Computed {
    let shape = c.input(0)?.shape().clone();
    let g = pool.geometry(c, &shape)?;
    g.check_output("orig_output", c.input(1)?.shape())?;
    g.check_output("grad", c.input(2)?.shape())?;
    let (x, y, dy) = (c.slice::<T>(0)?, c.slice::<T>(1)?, c.slice::<T>(2)?);
    let dx = by_image::<T>(c, &g, shape, |first, n, dx| {
        let mut left = vec![T::default(); g.channels];
        maxima_back(&g, x, y, dy, first, n, &mut left, dx);
    })?;
    c.set(0, dx);
    Ok(())
}

fn max_grad_grad<T: Number>(c: &mut KernelContext<'_>, pool: &Pool) -> Computed {
    let g = pool.geometry(c, c.input(0)?.shape())?;
    g.check_output("orig_output", c.input(1)?.shape())?;
    if c.input(2)?.shape() != c.input(0)?.shape() {
        let (grad, x) = (c.input(2)?.shape(), c.input(0)?.shape());
        return Err(KernelError::invalid(format!("grad has shape {grad}, orig_input {x}")));
    }
    let (x, y, of) = (c.slice::<T>(0)?, c.slice::<T>(1)?, c.slice::<T>(2)?);
    let out = by_pixel::<T>(c, &g, |first, part| {
        at_maxima(&g, x, y, of, first, &mut vec![T::default(); g.channels], part);
    })?;
    c.set(0, out);
    Ok(())
}

fn average<T: Float>(c: &mut KernelContext<'_>, pool: &Pool) -> Computed {
    let g = pool.geometry(c, c.input(0)?.shape())?;
    let x = c.slice::<T>(0)?;
    let y = by_pixel::<T>(c, &g, |first, part| means(&g, x, first, part))?;
    c.set(0, y);
    Ok(())
}

fn average_grad<T: Float>(c: &mut KernelContext<'_>, pool: &Pool) -> Computed {
    let shape = pool.windows.listed(&c.ints(0)?)?;
    let g = pool.geometry(c, &shape)?;
    g.check_output("grad", c.input(1)?.shape())?;
    let dy = c.slice::<T>(1)?;
    let dx = by_image::<T>(c, &g, shape, |first, n, dx| means_back(&g, dy, first, n, dx))?;
    c.set(0, dx);
    Ok(())
}

/// Positions of maxima: counted within the image, or over the batch.
#[derive(Clone, Copy)]
struct Positions {
    over_batch: bool,
    dtype: DType,
}

impl Positions {
    fn of(node: &Node) -> Result<Positions, KernelError> {
        Ok(Positions { over_batch: *node.flag("include_batch_in_index")?, dtype: *node.dtype("Targmax")? })
    }
}

fn max_with_argmax<T: Number>(c: &mut KernelContext<'_>, pool: &Pool, p: Positions) -> Computed {
    let g = pool.geometry(c, c.input(0)?.shape())?;
    let x = c.slice::<T>(0)?;
    let (n, image) = (g.channels, g.in_pixels());
    let mut argmax = memory::filled(0i64, g.output().n_elements())?;
    let y = c.filled::<T>(g.output(), |y| {
        for (i, (y, argmax)) in y.chunks_exact_mut(n.max(1)).zip(argmax.chunks_exact_mut(n.max(1))).enumerate() {
            y.fill(T::LOWEST);
            let mut first = true;
            g.each(i, |pixel| {
                let counted = if p.over_batch { pixel } else { pixel % image };
                for (k, ((y, argmax), x)) in y.iter_mut().zip(argmax.iter_mut()).zip(&x[pixel * n..]).enumerate() {
                    if *x > *y || first {
                        (*y, *argmax) = (*x, (counted * n + k) as i64);
                    }
                }
                first = false;
            });
        }
        Ok(())
    })?;
    c.set(0, y);
    let argmax = match p.dtype {
        DType::I32 => c.filled::<i32>(g.output(), |out| {
            out.iter_mut().zip(&argmax).for_each(|(o, v)| *o = *v as i32);
            Ok(())
        })?,
        _ => Tensor::from_vec(g.output(), argmax)?,
    };
    c.set(1, argmax);
    Ok(())
}

/// Where the maxima lie in the whole input, checked.
fn positions(c: &KernelContext<'_>, g: &WindowGeometry, p: Positions) -> Result<Vec<usize>, KernelError> {
    let (image, out_image) = (g.in_pixels() * g.channels, g.out_pixels() * g.channels);
    let at = |(i, v): (usize, &i64)| {
        let limit = if p.over_batch { image * g.batch } else { image };
        let first = if p.over_batch { 0 } else { i / out_image.max(1) * image };
        let v = usize::try_from(*v).ok().filter(|v| *v < limit);
        v.map(|v| first + v)
            .ok_or_else(|| KernelError::invalid(format!("argmax has a position outside of [0, {limit})")))
    };
    c.ints(2)?.iter().enumerate().map(at).collect()
}

fn max_grad_with_argmax<T: Number>(c: &mut KernelContext<'_>, pool: &Pool, p: Positions) -> Computed {
    let shape = c.input(0)?.shape().clone();
    let g = pool.geometry(c, &shape)?;
    g.check_output("grad", c.input(1)?.shape())?;
    g.check_output("argmax", c.input(2)?.shape())?;
    let (dy, positions) = (c.slice::<T>(1)?, positions(c, &g, p)?);
    let dx = c.filled::<T>(shape, |dx| {
        dx.fill(T::default());
        dy.iter().zip(positions).for_each(|(dy, at)| dx[at] = dx[at] + *dy);
        Ok(())
    })?;
    c.set(0, dx);
    Ok(())
}

fn max_grad_grad_with_argmax<T: Number>(c: &mut KernelContext<'_>, pool: &Pool, p: Positions) -> Computed {
    let g = pool.geometry(c, c.input(0)?.shape())?;
    g.check_output("argmax", c.input(2)?.shape())?;
    if c.input(1)?.shape() != c.input(0)?.shape() {
        return Err(KernelError::invalid("grad must have the input's shape"));
    }
    let (of, positions) = (c.slice::<T>(1)?, positions(c, &g, p)?);
    let mut out = c.room::<T>(g.output())?;
    unique_slice::<T>(&mut out)?.iter_mut().zip(positions).for_each(|(o, at)| *o = of[at]);
    c.set(0, out);
    Ok(())
}

type Compute = fn(&mut KernelContext<'_>, &Pool) -> Computed;
type Turned = &'static [usize];

/// A pool of `n` spatial dimensions whose `turned` inputs and first output follow the data format.
fn built(node: &Node, n: usize, turned: Turned, compute: Compute) -> Built {
    let pool = Pool { windows: Windows::of(&node.attrs, n)?, inputs: None };
    any_format(node, turned, &[0], kernel(move |c| compute(c, &pool))?)
}

/// A pool of the second version: sizes and strides are inputs, from `first` on.
fn built_v2(node: &Node, first: usize, compute: Compute) -> Built {
    if matches!(node.attrs.get("data_format"), Some(Attr::Str(s)) if s != b"NHWC") {
        return Err(KernelError::invalid("data_format must be NHWC where sizes are inputs"));
    }
    let pool = Pool { windows: Windows::of(&node.attrs, 2)?, inputs: Some(first) };
    kernel(move |c| compute(c, &pool))
}

fn with_argmax(node: &Node, compute: fn(&mut KernelContext<'_>, &Pool, Positions) -> Computed) -> Built {
    let pool = Pool { windows: Windows::of(&node.attrs, 2)?, inputs: None };
    let positions = Positions::of(node)?;
    kernel(move |c| compute(c, &pool, positions))
}

macro_rules! pools {
    ($($t:ty, $dtype:ident;)+) => { &[ $(
        cpu("MaxPool", ("T", &[DType::$dtype]), |n| built(n, 2, &[0], max::<$t>)),
        cpu("MaxPoolV2", ("T", &[DType::$dtype]), |n| built_v2(n, 1, max::<$t>)),
        cpu("MaxPoolGrad", ("T", &[DType::$dtype]), |n| built(n, 2, &[0, 1, 2], max_grad::<$t>)),
        cpu("MaxPoolGradV2", ("T", &[DType::$dtype]), |n| built_v2(n, 3, max_grad::<$t>)),
        cpu("MaxPoolGradGrad", ("T", &[DType::$dtype]), |n| built(n, 2, &[0, 1, 2], max_grad_grad::<$t>)),
        cpu("MaxPoolGradGradV2", ("T", &[DType::$dtype]), |n| built_v2(n, 3, max_grad_grad::<$t>)),
        cpu("MaxPoolWithArgmax", ("T", &[DType::$dtype]), |n| with_argmax(n, max_with_argmax::<$t>)),
        cpu("MaxPoolGradWithArgmax", ("T", &[DType::$dtype]), |n| with_argmax(n, max_grad_with_argmax::<$t>)),
        cpu("MaxPoolGradGradWithArgmax", ("T", &[DType::$dtype]), |n| with_argmax(n, max_grad_grad_with_argmax::<$t>)),
        cpu("MaxPool3D", ("T", &[DType::$dtype]), |n| built(n, 3, &[0], max::<$t>)),
        cpu("MaxPool3DGrad", ("T", &[DType::$dtype]), |n| built(n, 3, &[0, 1, 2], max_grad::<$t>)),
        cpu("MaxPool3DGradGrad", ("T", &[DType::$dtype]), |n| built(n, 3, &[0, 1, 2], max_grad_grad::<$t>)),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static MAXIMA: &[KernelDef] = pools! { f32, F32; f64, F64; i32, I32; i64, I64; };

#[linkme::distributed_slice(KERNEL_TABLES)]
static AVERAGES: &[KernelDef] = &[
    cpu("AvgPool", ("T", &[DType::F32]), |n| built(n, 2, &[0], average::<f32>)),
    cpu("AvgPool", ("T", &[DType::F64]), |n| built(n, 2, &[0], average::<f64>)),
    cpu("AvgPoolGrad", ("T", &[DType::F32]), |n| built(n, 2, &[1], average_grad::<f32>)),
    cpu("AvgPoolGrad", ("T", &[DType::F64]), |n| built(n, 2, &[1], average_grad::<f64>)),
    cpu("AvgPool3D", ("T", &[DType::F32]), |n| built(n, 3, &[0], average::<f32>)),
    cpu("AvgPool3D", ("T", &[DType::F64]), |n| built(n, 3, &[0], average::<f64>)),
    cpu("AvgPool3DGrad", ("T", &[DType::F32]), |n| built(n, 3, &[1], average_grad::<f32>)),
    cpu("AvgPool3DGrad", ("T", &[DType::F64]), |n| built(n, 3, &[1], average_grad::<f64>)),
];

#[linkme::distributed_slice(KERNEL_TABLES)]
static NARROW: &[KernelDef] = &[
    widened("MaxPool", ("T", DType::NARROW_REAL)),
    widened("MaxPoolV2", ("T", DType::NARROW_REAL)),
    widened("MaxPoolGrad", ("T", DType::NARROW_REAL)),
    widened("MaxPoolGradV2", ("T", DType::NARROW_REAL)),
    widened("MaxPoolGradGrad", ("T", DType::NARROW_REAL)),
    widened("MaxPoolGradGradV2", ("T", DType::NARROW_REAL)),
    widened("MaxPoolWithArgmax", ("T", DType::NARROW_REAL)),
    widened("MaxPoolGradWithArgmax", ("T", DType::NARROW_REAL)),
    widened("MaxPoolGradGradWithArgmax", ("T", DType::NARROW_REAL)),
    widened("MaxPool3D", ("T", DType::NARROW_FLOATS)),
    widened("MaxPool3DGrad", ("T", DType::NARROW_FLOATS)),
    widened("MaxPool3DGradGrad", ("T", DType::NARROW_FLOATS)),
    widened("AvgPool", ("T", DType::NARROW_FLOATS)),
    widened("AvgPoolGrad", ("T", DType::NARROW_FLOATS)),
    widened("AvgPool3D", ("T", DType::NARROW_FLOATS)),
    widened("AvgPool3DGrad", ("T", DType::NARROW_FLOATS)),
];
