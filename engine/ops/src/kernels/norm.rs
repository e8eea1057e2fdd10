//! Kernels of normalisation: by the statistics of each channel over a batch, and by the responses of neighbouring
//! channels.
//!
//! Sums over pixels are taken in blocks of fixed size, whose sums are added in their order in f64: the result does not
//! depend on the number of workers, and small numbers are not lost in large batches.

use super::formats::any_format;
use super::nn::Float;
use super::support::{Built, Computed, cpu, kernel, shard_slice};
use super::wide::vectorised;
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError, Sharder};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// Pixels whose sums are taken in one go.
const BLOCK: usize = 512;

/// The sums that `add(sums, first pixel, pixels)` makes of each block of pixels, added up: `n` numbers.
pub(super) fn sums_over_pixels<T: Float>(
    sharder: &dyn Sharder,
    n_pixels: usize,
    n: usize,
    add: impl Fn(&mut [T], usize, usize) + Sync,
) -> Vec<f64> {
    let n_blocks = n_pixels.div_ceil(BLOCK);
    let mut partial = vec![T::default(); n_blocks * n];
    let cost = (BLOCK * n / 4) as u64;
    let parts = parking_lot::Mutex::new(partial.chunks_exact_mut(n.max(1)).map(Some).collect::<Vec<_>>());
    sharder.parallel_for(n_blocks, cost.max(1), &|blocks| {
        for block in blocks {
            let Some(sums) = parts.lock().get_mut(block).and_then(Option::take) else { continue };
            let first = block * BLOCK;
            add(sums, first, BLOCK.min(n_pixels - first));
        }
    });
    drop(parts);
    let mut sums = vec![0.0; n];
    for part in partial.chunks_exact(n.max(1)) {
        sums.iter_mut().zip(part).for_each(|(s, p)| *s += p.to_f64());
    }
    sums
}

vectorised! {
    /// Adds each row of `x` to `sums`.
    pub(super) fn add_rows<T: Float>(sums: &mut [T], x: &[T]) {
        for row in x.chunks_exact(sums.len().max(1)) {
            sums.iter_mut().zip(row).for_each(|(s, x)| *s = *s + *x);
        }
    }

    /// Adds the squares of each row's distances from `mean`.
    fn add_squares<T: Float>(sums: &mut [T], x: &[T], mean: &[T]) {
        for row in x.chunks_exact(sums.len().max(1)) {
            for ((s, x), m) in sums.iter_mut().zip(row).zip(mean) {
                *s = *s + (*x - *m) * (*x - *m);
            }
        }
    }

    /// Adds each row of `dy` to the first half of `sums`, and times the distance from `mean` to the second.
    fn add_gradients<T: Float>(sums: &mut [T], dy: &[T], x: &[T], mean: &[T]) {
        let n = mean.len();
        let (plain, weighted) = sums.split_at_mut(n);
        for (dy, x) in dy.chunks_exact(n.max(1)).zip(x.chunks_exact(n.max(1))) {
            for ((((p, w), dy), x), m) in plain.iter_mut().zip(weighted.iter_mut()).zip(dy).zip(x).zip(mean) {
                *p = *p + *dy;
                *w = *w + *dy * (*x - *m);
            }
        }
    }

    /// `y = (x - mean) * factor + offset` for each row.
    fn scale_rows<T: Float>(y: &mut [T], x: &[T], mean: &[T], factor: &[T], offset: &[T]) {
        let n = mean.len().max(1);
        for (y, x) in y.chunks_exact_mut(n).zip(x.chunks_exact(n)) {
            for ((((y, x), m), f), o) in y.iter_mut().zip(x).zip(mean).zip(factor).zip(offset) {
                *y = (*x - *m) * *f + *o;
            }
        }
    }

    /// `dx = (dy - shift - (x - mean) * slope) * factor` for each row.
    fn scale_gradients<T: Float>(dx: &mut [T], dy: &[T], x: &[T], mean: &[T], by: &Factors<T>) {
        let n = mean.len().max(1);
        for ((dx, dy), x) in dx.chunks_exact_mut(n).zip(dy.chunks_exact(n)).zip(x.chunks_exact(n)) {
            let channels = mean.iter().zip(&by.shift).zip(&by.slope).zip(&by.factor);
            for (((dx, dy), x), (((m, shift), slope), factor)) in dx.iter_mut().zip(dy).zip(x).zip(channels) {
                *dx = (*dy - *shift - (*x - *m) * *slope) * *factor;
            }
        }
    }
}

/// What a gradient is scaled by, for each channel.
struct Factors<T> {
    shift: Vec<T>,
    slope: Vec<T>,
    factor: Vec<T>,
}

fn to<T: Float>(values: impl IntoIterator<Item = f64>) -> Vec<T> {
    values.into_iter().map(T::from_f64).collect()
}

/// Input `i` as f64, a vector with a number for each channel.
fn vector<T: Float>(c: &KernelContext<'_>, i: usize, channels: &Channels) -> Result<Vec<f64>, KernelError> {
    channels.check_vector(i, c.input(i)?.shape())?;
    Ok(c.slice::<T>(i)?.iter().map(|v| v.to_f64()).collect())
}

/// The channels of data that is normalised by channel.
#[derive(Debug, Clone, Copy)]
pub struct Channels {
    /// Where they lie in the data's shape.
    pub axis: usize,
    /// Their number.
    pub n: usize,
    /// Elements of each.
    pub pixels: usize,
}

impl Channels {
    /// Those of data of rank 4 or 5, in the second dimension or in the last.
    ///
    /// # Errors
    /// The data has another rank.
    pub fn of(data: &Shape, channels_first: bool) -> Result<Channels, KernelError> {
        let dims = data.dims();
        if !(4..=5).contains(&dims.len()) {
            return Err(KernelError::invalid(format!("the data must have rank 4 or 5, got shape {data}")));
        }
        let axis = if channels_first { 1 } else { dims.len() - 1 };
        let pixels = dims[..axis].iter().chain(&dims[axis + 1..]).product();
        Ok(Channels { axis, n: dims[axis], pixels })
    }

    /// Those of data `x` and of its gradient, which is called `name`.
    ///
    /// # Errors
    /// The data has another rank, or its gradient another shape.
    pub fn of_gradient(name: &str, gradient: &Shape, x: &Shape, channels_first: bool) -> Result<Channels, KernelError> {
        if gradient != x {
            return Err(KernelError::invalid(format!("{name} has shape {gradient}, the data {x}")));
        }
        Channels::of(x, channels_first)
    }

    /// That input `i`, of this shape, has a number for each channel.
    ///
    /// # Errors
    /// It has not.
    pub fn check_vector(&self, i: usize, shape: &Shape) -> Result<(), KernelError> {
        if shape.dims() == [self.n] {
            return Ok(());
        }
        Err(KernelError::invalid(format!("input {i} must be a vector of {} channels, got shape {shape}", self.n)))
    }
}

/// The attributes of batch normalisation and its gradient.
#[derive(Debug, Clone, Copy)]
pub struct BatchNorm {
    /// What is added to variances.
    pub epsilon: f64,
    /// How much of the batch's statistics goes into the running ones.
    pub share: f64,
    /// Whether the statistics are the batch's own.
    pub training: bool,
    /// Outputs of the op.
    pub n_outputs: usize,
}

impl BatchNorm {
    /// Those of a node.
    ///
    /// # Errors
    /// One is missing.
    pub fn of(node: &Node) -> Result<BatchNorm, KernelError> {
        let share = node.float("exponential_avg_factor").copied().unwrap_or(1.0);
        Ok(BatchNorm {
            epsilon: f64::from(*node.float("epsilon")?),
            share: f64::from(share),
            training: *node.flag("is_training")?,
            n_outputs: node.outputs.len(),
        })
    }
}

/// Mean and variance of each channel.
fn moments<T: Float>(c: &KernelContext<'_>, x: &[T], n: usize, pixels: usize) -> (Vec<f64>, Vec<f64>) {
    let count = pixels.max(1) as f64;
    let sums = sums_over_pixels::<T>(c.sharder, pixels, n, |s, at, k| add_rows(s, &x[at * n..(at + k) * n]));
    let mean: Vec<f64> = sums.iter().map(|s| s / count).collect();
    let rounded: Vec<T> = to(mean.iter().copied());
    let squares = sums_over_pixels::<T>(c.sharder, pixels, n, |s, at, k| {
        add_squares(s, &x[at * n..(at + k) * n], &rounded);
    });
    // What rounding the mean cost is taken off again.
    let off = mean.iter().zip(&rounded).map(|(m, r)| (m - r.to_f64()).powi(2));
    let variance = squares.iter().zip(off).map(|(s, off)| (s / count - off).max(0.0)).collect();
    (mean, variance)
}

fn batch_norm<T: Float>(c: &mut KernelContext<'_>, b: BatchNorm) -> Computed {
    let x = c.input(0)?;
    let channels = Channels::of(x.shape(), false)?;
    let Channels { n, pixels, .. } = channels;
    let vector = |i: usize| vector::<T>(c, i, &channels);
    let (scale, offset) = (vector(1)?, vector(2)?);
    let values = x.slice::<T>()?;
    let given = || Ok::<_, KernelError>((vector(3)?, vector(4)?));
    let (mean, variance) = if b.training { moments(c, values, n, pixels) } else { given()? };
    let factor: Vec<T> = to(scale.iter().zip(&variance).map(|(s, v)| s / (v + b.epsilon).sqrt()));
    let (means, offset) = (to::<T>(mean.iter().copied()), to::<T>(offset));
    let y = c.filled::<T>(x.shape().clone(), |y| {
        shard_slice(c.sharder, y, n, 300, |at, part| {
            scale_rows(part, &values[at..at + part.len()], &means, &factor, &offset);
        });
        Ok(())
    })?;
    let (mut running_mean, mut running_variance) = (mean.clone(), variance.clone());
    if b.training {
        let unbiased = pixels as f64 / pixels.saturating_sub(1).max(1) as f64;
        running_variance.iter_mut().for_each(|v| *v *= unbiased);
        if b.share != 1.0 {
            let (old_mean, old_variance) = given()?;
            let mix = |new: &mut Vec<f64>, old: Vec<f64>| {
                new.iter_mut().zip(old).for_each(|(new, old)| *new = old * (1.0 - b.share) + *new * b.share);
            };
            mix(&mut running_mean, old_mean);
            mix(&mut running_variance, old_variance);
        }
    }
    c.set(0, y);
    for (i, values) in [running_mean, running_variance, mean, variance].into_iter().enumerate() {
        c.set(i + 1, Tensor::from_vec([n], to::<T>(values))?);
    }
    if b.n_outputs > 5 {
        c.set(5, Tensor::from_vec([0], Vec::<T>::new())?);
    }
    Ok(())
}

fn batch_norm_grad<T: Float>(c: &mut KernelContext<'_>, b: BatchNorm) -> Computed {
    let (dy, x) = (c.input(0)?, c.input(1)?);
    let channels = Channels::of_gradient("y_backprop", dy.shape(), x.shape(), false)?;
    let Channels { n, pixels, .. } = channels;
    let vector = |i: usize| vector::<T>(c, i, &channels);
    let (scale, mean, variance) = (vector(2)?, vector(3)?, vector(4)?);
    let means: Vec<T> = to(mean);
    let (from, values) = (dy.slice::<T>()?, x.slice::<T>()?);
    let sums = sums_over_pixels::<T>(c.sharder, pixels, 2 * n, |s, at, k| {
        let range = at * n..(at + k) * n;
        add_gradients(s, &from[range.clone()], &values[range], &means);
    });
    let (plain, weighted) = sums.split_at(n);
    let inverse: Vec<f64> = variance.iter().map(|v| 1.0 / (v + b.epsilon).sqrt()).collect();
    // Where the statistics are the batch's own, they change with x too.
    let share = if b.training { 1.0 / pixels.max(1) as f64 } else { 0.0 };
    let by = Factors::<T> {
        shift: to(plain.iter().map(|s| s * share)),
        slope: to(weighted.iter().zip(&inverse).map(|(s, i)| s * i * i * share)),
        factor: to(scale.iter().zip(&inverse).map(|(s, i)| s * i)),
    };
    let dx = c.filled::<T>(x.shape().clone(), |dx| {
        shard_slice(c.sharder, dx, n, 400, |at, part| {
            let range = at..at + part.len();
            scale_gradients(part, &from[range.clone()], &values[range], &means, &by);
        });
        Ok(())
    })?;
    let of_scale: Vec<T> = to(weighted.iter().zip(&inverse).map(|(s, i)| s * i));
    let of_offset: Vec<T> = to(plain.iter().copied());
    c.set(0, dx);
    c.set(1, Tensor::from_vec([n], of_scale)?);
    c.set(2, Tensor::from_vec([n], of_offset)?);
    c.set(3, Tensor::from_vec([0], Vec::<T>::new())?);
    c.set(4, Tensor::from_vec([0], Vec::<T>::new())?);
    Ok(())
}

#[derive(Clone, Copy)]
struct Global {
    epsilon: f64,
    scaled: bool,
}

impl Global {
    fn of(node: &Node) -> Result<Global, KernelError> {
        let epsilon = f64::from(*node.float("variance_epsilon")?);
        Ok(Global { epsilon, scaled: *node.flag("scale_after_normalization")? })
    }

    /// `gamma` (or 1) over the deviation.
    fn factor(&self, variance: &[f64], gamma: &[f64]) -> Vec<f64> {
        let inverse = variance.iter().map(|v| 1.0 / (v + self.epsilon).sqrt());
        inverse.zip(gamma).map(|(i, g)| if self.scaled { i * g } else { i }).collect()
    }
}

fn global<T: Float>(c: &mut KernelContext<'_>, g: Global) -> Computed {
    let x = c.input(0)?;
    let channels = Channels::of(x.shape(), false)?;
    let (n, vector) = (channels.n, |i: usize| vector::<T>(c, i, &channels));
    let (mean, variance) = (vector(1)?, vector(2)?);
    let (beta, gamma) = (vector(3)?, if g.scaled { vector(4)? } else { vec![1.0; n] });
    let (mean, factor, beta) = (to::<T>(mean), to::<T>(g.factor(&variance, &gamma)), to::<T>(beta));
    let values = x.slice::<T>()?;
    let y = c.filled::<T>(x.shape().clone(), |y| {
        shard_slice(c.sharder, y, n, 300, |at, part| {
            scale_rows(part, &values[at..at + part.len()], &mean, &factor, &beta);
        });
        Ok(())
    })?;
    c.set(0, y);
    Ok(())
}

fn global_grad<T: Float>(c: &mut KernelContext<'_>, g: Global) -> Computed {
    let (x, dy) = (c.input(0)?, c.input(4)?);
    let channels = Channels::of_gradient("backprop", dy.shape(), x.shape(), false)?;
    let Channels { n, pixels, .. } = channels;
    let vector = |i: usize| vector::<T>(c, i, &channels);
    let (mean, variance) = (vector(1)?, vector(2)?);
    let gamma = if g.scaled { vector(3)? } else { vec![1.0; n] };
    let (means, factor) = (to::<T>(mean), g.factor(&variance, &gamma));
    let (from, values) = (dy.slice::<T>()?, x.slice::<T>()?);
    let sums = sums_over_pixels::<T>(c.sharder, pixels, 2 * n, |s, at, k| {
        let range = at * n..(at + k) * n;
        add_gradients(s, &from[range.clone()], &values[range], &means);
    });
    let (plain, weighted) = sums.split_at(n);
    let (zeros, factors) = (vec![T::default(); n], to::<T>(factor.iter().copied()));
    let dx = c.filled::<T>(x.shape().clone(), |dx| {
        shard_slice(c.sharder, dx, n, 300, |at, part| {
            scale_rows(part, &from[at..at + part.len()], &zeros, &factors, &zeros);
        });
        Ok(())
    })?;
    let of_mean = plain.iter().zip(&factor).map(|(s, f)| -s * f);
    let slopes = factor.iter().zip(&variance).map(|(f, v)| -0.5 * f / (v + g.epsilon));
    let of_variance = weighted.iter().zip(slopes).map(|(s, f)| s * f);
    let inverse = variance.iter().map(|v| 1.0 / (v + g.epsilon).sqrt());
    let of_gamma = weighted.iter().zip(inverse).map(|(s, i)| if g.scaled { s * i } else { 0.0 });
    let vectors = [to::<T>(of_mean), to(of_variance), to(plain.iter().copied()), to(of_gamma)];
    c.set(0, dx);
    for (i, values) in vectors.into_iter().enumerate() {
        c.set(i + 1, Tensor::from_vec([n], values)?);
    }
    Ok(())
}

/// Local response normalisation: `y = x / (bias + alpha * sum of x^2 over neighbouring channels) ^ beta`.
#[derive(Debug, Clone, Copy)]
pub struct Responses {
    /// Neighbours on either side.
    pub radius: usize,
    /// As in the formula.
    pub bias: f64,
    /// As in the formula.
    pub alpha: f64,
    /// As in the formula.
    pub beta: f64,
}

impl Responses {
    /// That of a node.
    ///
    /// # Errors
    /// An attribute is missing, or the radius is negative.
    pub fn of(node: &Node) -> Result<Responses, KernelError> {
        let radius = usize::try_from(*node.int("depth_radius")?);
        let radius = radius.map_err(|_| KernelError::invalid("depth_radius must not be negative"))?;
        let number = |name| node.float(name).map(|v| f64::from(*v));
        Ok(Responses { radius, bias: number("bias")?, alpha: number("alpha")?, beta: number("beta")? })
    }

    /// The channels of data `x`.
    ///
    /// # Errors
    /// The data does not have rank 4.
    pub fn channels(x: &Shape) -> Result<usize, KernelError> {
        match x.dims() {
            [_, _, _, n] => Ok(*n),
            _ => Err(KernelError::invalid(format!("the data must have rank 4, got shape {x}"))),
        }
    }

    /// The channels of data `x`, of the result `y` and of its gradient.
    ///
    /// # Errors
    /// The shapes differ, or the data does not have rank 4.
    pub fn gradient_channels(dy: &Shape, x: &Shape, y: &Shape) -> Result<usize, KernelError> {
        if dy != x || y != x {
            return Err(KernelError::invalid(format!("shapes {dy}, {x} and {y} must be equal")));
        }
        Responses::channels(x)
    }

    fn around(&self, channel: usize, n: usize) -> std::ops::Range<usize> {
        channel.saturating_sub(self.radius)..(channel.saturating_add(self.radius).saturating_add(1)).min(n)
    }

    /// The norm of each channel of a pixel.
    fn norms<T: Float>(&self, x: &[T], norms: &mut [f64]) {
        for (i, norm) in norms.iter_mut().enumerate() {
            let squares = x[self.around(i, x.len())].iter().map(|x| x.to_f64() * x.to_f64());
            *norm = self.bias + self.alpha * squares.sum::<f64>();
        }
    }
}

fn lrn<T: Float>(c: &mut KernelContext<'_>, r: Responses) -> Computed {
    let x = c.input(0)?;
    let n = Responses::channels(x.shape())?;
    let values = x.slice::<T>()?;
    let y = c.filled::<T>(x.shape().clone(), |y| {
        shard_slice(c.sharder, y, n, 30_000, |at, part| {
            let mut norms = vec![0.0; n];
            for (y, x) in part.chunks_exact_mut(n.max(1)).zip(values[at..].chunks_exact(n.max(1))) {
                r.norms(x, &mut norms);
                let all = y.iter_mut().zip(x).zip(&norms);
                all.for_each(|((y, x), norm)| *y = T::from_f64(x.to_f64() * norm.powf(-r.beta)));
            }
        });
        Ok(())
    })?;
    c.set(0, y);
    Ok(())
}

fn lrn_grad<T: Float>(c: &mut KernelContext<'_>, r: Responses) -> Computed {
    let (dy, x, y) = (c.input(0)?, c.input(1)?, c.input(2)?);
    let n = Responses::gradient_channels(dy.shape(), x.shape(), y.shape())?;
    let (from, values, outputs) = (dy.slice::<T>()?, x.slice::<T>()?, y.slice::<T>()?);
    let dx = c.filled::<T>(x.shape().clone(), |dx| {
        shard_slice(c.sharder, dx, n, 40_000, |at, part| {
            let mut norms = vec![0.0; n];
            for (i, dx) in part.chunks_exact_mut(n.max(1)).enumerate() {
                let range = at + i * n..at + (i + 1) * n;
                let (dy, x, y) = (&from[range.clone()], &values[range.clone()], &outputs[range]);
                r.norms(x, &mut norms);
                for (j, dx) in dx.iter_mut().enumerate() {
                    // x[j] is in the norms of its neighbours.
                    let through = r.around(j, n).map(|i| dy[i].to_f64() * y[i].to_f64() / norms[i]).sum::<f64>();
                    let own = dy[j].to_f64() * norms[j].powf(-r.beta);
                    *dx = T::from_f64(own - 2.0 * r.alpha * r.beta * x[j].to_f64() * through);
                }
            }
        });
        Ok(())
    })?;
    c.set(0, dx);
    Ok(())
}

fn normed<T: Float>(node: &Node) -> Built {
    let batch = BatchNorm::of(node)?;
    any_format(node, &[0], &[0], kernel(move |c| batch_norm::<T>(c, batch))?)
}

fn normed_grad<T: Float>(node: &Node) -> Built {
    let batch = BatchNorm::of(node)?;
    any_format(node, &[0, 1], &[0], kernel(move |c| batch_norm_grad::<T>(c, batch))?)
}

macro_rules! norms {
    ($($t:ty, $dtype:ident;)+) => { &[ $(
        cpu("FusedBatchNorm", ("T", &[DType::$dtype]), normed::<$t>),
        cpu("FusedBatchNormV2", ("T", &[DType::$dtype]), normed::<$t>),
        cpu("FusedBatchNormV3", ("T", &[DType::$dtype]), normed::<$t>),
        cpu("FusedBatchNormGrad", ("T", &[DType::$dtype]), normed_grad::<$t>),
        cpu("FusedBatchNormGradV2", ("T", &[DType::$dtype]), normed_grad::<$t>),
        cpu("FusedBatchNormGradV3", ("T", &[DType::$dtype]), normed_grad::<$t>),
        cpu("BatchNormWithGlobalNormalization", ("T", &[DType::$dtype]), |n| {
            let g = Global::of(n)?;
            kernel(move |c| global::<$t>(c, g))
        }),
        cpu("BatchNormWithGlobalNormalizationGrad", ("T", &[DType::$dtype]), |n| {
            let g = Global::of(n)?;
            kernel(move |c| global_grad::<$t>(c, g))
        }),
        cpu("LRN", ("T", &[DType::$dtype]), |n| {
            let r = Responses::of(n)?;
            kernel(move |c| lrn::<$t>(c, r))
        }),
        cpu("LRNGrad", ("T", &[DType::$dtype]), |n| {
            let r = Responses::of(n)?;
            kernel(move |c| lrn_grad::<$t>(c, r))
        }),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static NORMS: &[KernelDef] = norms! { f32, F32; f64, F64; };

#[linkme::distributed_slice(KERNEL_TABLES)]
static NARROW: &[KernelDef] = &[
    widened("FusedBatchNormV2", ("T", DType::NARROW_FLOATS)),
    widened("FusedBatchNormV3", ("T", DType::NARROW_FLOATS)),
    widened("FusedBatchNormGradV2", ("T", DType::NARROW_FLOATS)),
    widened("FusedBatchNormGradV3", ("T", DType::NARROW_FLOATS)),
    widened("BatchNormWithGlobalNormalization", ("T", DType::NARROW_FLOATS)),
    widened("BatchNormWithGlobalNormalizationGrad", ("T", DType::NARROW_FLOATS)),
    widened("LRN", ("T", DType::NARROW_FLOATS)),
    widened("LRNGrad", ("T", DType::NARROW_FLOATS)),
];
