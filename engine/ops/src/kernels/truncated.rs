//! Normal numbers between bounds, a mean, a deviation and two bounds for each row of the result.
//!
//! Three ways to reject, by where the bounds lie (Robert, "Simulation of truncated normal variables", 1995): normal numbers
//! where much of the distribution is within, uniform ones where the bounds are close to each other, exponential
//! ones in a tail. The rows are drawn one after the other from one sequence, as TensorFlow does on one thread.

use num_traits::Float;

use super::philox::{Philox, normal_f32, normal_f64, uniform_f32, uniform_f64};
use super::random::Origin;
use super::support::{Built, cpu, kernel_with_state};
use super::widen::widened;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::{DType, Element};
use engine_core::graph::Node;

/// Rejections in a row after which the parameters must be at fault.
const MAX_REJECTED: u64 = 1000;
/// Rows that have their parameters in common are drawn as if each had so many numbers.
const COMMON_ROW: usize = 100;

/// A type of which a call of the generator gives a few numbers.
trait Drawn: Element + Float {
    const N: usize;
    /// The first `N` are set.
    fn uniform(g: &mut Philox) -> [Self; 4];
    fn normal(g: &mut Philox) -> [Self; 4];
}

impl Drawn for f32 {
    const N: usize = 4;
    fn uniform(g: &mut Philox) -> [f32; 4] {
        g.next4().map(uniform_f32)
    }
    fn normal(g: &mut Philox) -> [f32; 4] {
        let x = g.next4();
        let ([a, b], [c, d]) = (normal_f32(x[0], x[1]), normal_f32(x[2], x[3]));
        [a, b, c, d]
    }
}

impl Drawn for f64 {
    const N: usize = 2;
    fn uniform(g: &mut Philox) -> [f64; 4] {
        let x = g.next4();
        [uniform_f64(x[0], x[1]), uniform_f64(x[2], x[3]), 0.0, 0.0]
    }
    fn normal(g: &mut Philox) -> [f64; 4] {
        let [a, b] = normal_f64(g.next4());
        [a, b, 0.0, 0.0]
    }
}

fn number<T: Float>(x: f64) -> T {
    T::from(x).unwrap_or_else(T::nan)
}

/// The bounds in deviations from the mean, turned so that a single bound is the lower one.
struct Standard<T> {
    mean: T,
    /// Negative where turned.
    deviation: T,
    low: T,
    high: T,
}

impl<T: Drawn> Standard<T> {
    fn new([mean, mut deviation, mut low, mut high]: [T; 4]) -> Result<Standard<T>, KernelError> {
        if !(deviation > T::zero() && low < high && (low.is_finite() || high.is_finite())) {
            let text = |v: T| v.to_f64().unwrap_or(f64::NAN);
            return Err(KernelError::invalid(format!(
                "a deviation of {} and bounds {} to {}: the deviation must be above 0, the lower bound below the upper one, \
                 and one of them finite",
                text(deviation),
                text(low),
                text(high)
            )));
        }
        if low == T::neg_infinity() || high < mean {
            (low, high, deviation) = (high, low, -deviation);
        }
        Ok(Standard { mean, deviation, low: (low - mean) / deviation, high: (high - mean) / deviation })
    }

    /// Fills `out` with accepted numbers: `propose` draws a few with what became of them.
    fn fill(&self, out: &mut [T], mut propose: impl FnMut(&mut dyn FnMut(T, bool) -> bool)) -> Result<(), KernelError> {
        let (mut n, mut n_rejected) = (0, 0);
        while n < out.len() {
            propose(&mut |z, accepted| {
                if accepted {
                    out[n] = z * self.deviation + self.mean;
                    (n, n_rejected) = (n + 1, 0);
                } else {
                    n_rejected += 1;
                }
                n < out.len()
            });
            if n_rejected > MAX_REJECTED {
                return Err(KernelError::invalid("no number between the bounds was found in 1000 attempts"));
            }
        }
        Ok(())
    }

    fn draw(&self, g: &mut Philox, out: &mut [T]) -> Result<(), KernelError> {
        let &Standard { low, high, .. } = self;
        let (zero, two, four, wide) = (T::zero(), number::<T>(2.0), number::<T>(4.0), number::<T>(1.3));
        let root = (low * low + four).sqrt();
        let cutoff = two * (number::<T>(0.5) + (low * (low - root)) / four).exp() / (low + root);
        if (low < -wide && high >= zero) || (high > wide && low <= zero) {
            return self.fill(out, |take| {
                let z = T::normal(g);
                let _ = z[..T::N].iter().all(|z| take(*z, *z >= low && *z <= high));
            });
        }
        let width = high - low;
        if width < cutoff {
            let plus = if low < zero { zero } else { low * low };
            return self.fill(out, |take| {
                let z = T::uniform(g).map(|u| u * width + low);
                let u = T::uniform(g);
                let accepted = |i: usize| u[i] <= ((plus - z[i] * z[i]) / two).exp();
                let _ = (0..T::N).all(|i| take(z[i], accepted(i)));
            });
        }
        let alpha = (low + root) / two;
        self.fill(out, |take| {
            let u = T::uniform(g);
            let _ = u[..T::N].chunks_exact(2).all(|pair| {
                let z = -pair[0].ln() / alpha + low;
                let x = if low < alpha { alpha - z } else { low - alpha };
                take(z, pair[1] <= (-x * x / two).exp() && z < high)
            });
        })
    }
}

fn truncated<T: Drawn>(node: &Node) -> Built {
    let origin = Origin::of_seeds(node)?;
    kernel_with_state(origin.state(), move |c| {
        let shape = c.shape_input(0)?;
        let n =
            shape.checked_n_elements().ok_or_else(|| KernelError::invalid(format!("shape {shape} is too large")))?;
        let n_rows = *shape.dims().first().ok_or_else(|| KernelError::invalid("the result must not be a scalar"))?;
        let parameters = parameters::<T>(c, n_rows)?;
        let is_common = parameters.iter().all(|p| p.len() == 1)
            && [3, 4].iter().all(|i| c.input(*i).is_ok_and(|t| t.shape().rank() == 0));
        let (rows, per_row) = match is_common {
            true => (n.div_ceil(COMMON_ROW), COMMON_ROW),
            false => (n_rows, n.checked_div(n_rows).unwrap_or(0)),
        };
        let reserved = (rows as u64 * 2 * MAX_REJECTED).wrapping_mul(per_row as u64 + 3) / 4;
        let mut g = origin.begin(c, reserved)?;
        let y = c.filled::<T>(shape, |y| {
            for (row, out) in y.chunks_mut(per_row.max(1)).enumerate() {
                let of_row = |p: &Vec<T>| p[if p.len() == 1 { 0 } else { row }];
                Standard::new(parameters.each_ref().map(of_row))?.draw(&mut g, out)?;
            }
            Ok(())
        })?;
        c.set(0, y);
        Ok(())
    })
}

/// Means, deviations and both bounds: one for all rows, or one for each.
fn parameters<T: Drawn>(c: &KernelContext<'_>, n_rows: usize) -> Result<[Vec<T>; 4], KernelError> {
    let mut all: [Vec<T>; 4] = Default::default();
    for (i, (values, name)) in all.iter_mut().zip(["means", "stdevs", "minvals", "maxvals"]).enumerate() {
        let given = c.input(i + 1)?;
        if given.shape().rank() > 1 || ![1, n_rows].contains(&given.len()) {
            let text = format!("{name} must be one or {n_rows} values, got shape {}", given.shape());
            return Err(KernelError::invalid(text));
        }
        *values = given.slice::<T>()?.to_vec();
    }
    Ok(all)
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static TRUNCATED: &[KernelDef] = &[
    cpu("ParameterizedTruncatedNormal", ("dtype", &[DType::F32]), truncated::<f32>),
    cpu("ParameterizedTruncatedNormal", ("dtype", &[DType::F64]), truncated::<f64>),
    widened("ParameterizedTruncatedNormal", ("dtype", &[DType::F16, DType::BF16])),
];
