//! Gamma and Poisson numbers by rejection: each output has 256 calls of the generator to itself.

use super::philox::{Philox, normal_f64, uniform_f64};
use super::random::{Origin, RESERVED};
use super::special_functions::ln_gamma;
use super::support::{Built, cpu_any, kernel_with_state, shard_slice, unique_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::convert::convert;
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// Pairs of numbers, handed out second first, as TensorFlow does.
#[derive(Default)]
struct Pairs {
    values: [f64; 2],
    n_left: usize,
}

impl Pairs {
    fn next(&mut self, draw: impl FnOnce() -> [f64; 2]) -> f64 {
        if self.n_left == 0 {
            self.values = draw();
            self.n_left = 2;
        }
        self.n_left -= 1;
        self.values[self.n_left]
    }
}

fn uniforms(g: &mut Philox) -> [f64; 2] {
    let x = g.next4();
    [uniform_f64(x[0], x[1]), uniform_f64(x[2], x[3])]
}

/// A gamma number of shape `alpha` (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000).
fn gamma(alpha: f64, g: &mut Philox) -> f64 {
    let (mut normal, mut uniform) = (Pairs::default(), Pairs::default());
    if alpha == 1.0 {
        return -(1.0 - uniform.next(|| uniforms(g))).ln();
    }
    let is_small = alpha < 1.0;
    let d = alpha + if is_small { 2.0 / 3.0 } else { -1.0 / 3.0 };
    let c = 1.0 / 3.0 / d.sqrt();
    // A NaN would never be accepted.
    if d.is_nan() || d <= 0.0 {
        return f64::NAN;
    }
    loop {
        let x = normal.next(|| normal_f64(g.next4()));
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        let u = uniform.next(|| uniforms(g));
        if u < 1.0 - 0.0331 * (x * x) * (x * x) || u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
            let boost = if is_small { uniform.next(|| uniforms(g)).powf(1.0 / alpha) } else { 1.0 };
            return d * v * boost;
        }
    }
}

/// A Poisson number of this rate, at most `highest`: for small rates by multiplying uniform numbers (Knuth), for others
/// by transformed rejection (Hoermann, "The transformed rejection method for generating Poisson random variables",
/// 1993).
fn poisson(rate: f64, highest: f64, g: &mut Philox) -> f64 {
    let mut uniform = Pairs::default();
    if rate.is_nan() || rate < 0.0 {
        return f64::NAN;
    }
    if rate.is_infinite() {
        return f64::INFINITY;
    }
    if rate < 10.0 {
        let limit = (-rate).exp();
        let (mut product, mut x) = (1.0, 0.0);
        loop {
            product *= uniform.next(|| uniforms(g));
            if product <= limit && x <= highest {
                return x;
            }
            x += 1.0;
        }
    }
    let log_rate = rate.ln();
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    loop {
        let u = uniform.next(|| uniforms(g)) - 0.5;
        let v = uniform.next(|| uniforms(g));
        let shifted = 0.5 - u.abs();
        let k = ((2.0 * a / shifted + b) * u + rate + 0.43).floor();
        if k > highest {
            continue;
        }
        if shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2.0) {
            return k;
        }
        if k < 0.0 || (shifted < 0.013 && v > shifted) {
            continue;
        }
        let s = (v * inverse_alpha / (a / (shifted * shifted) + b)).ln();
        if s <= -rate + k * log_rate - ln_gamma(k + 1.0) {
            return k;
        }
    }
}

/// For each parameter (input `at`) as many numbers as the shape in input 0 says. The output has that shape, then the
/// parameters'; with a seed that is an input the shape already ends with the parameters'.
fn by_parameter(
    c: &mut KernelContext<'_>,
    origin: &Origin,
    at: usize,
    dtype: DType,
    draw: impl Fn(f64, &mut Philox) -> f64 + Sync,
) -> Result<Tensor, KernelError> {
    let (shape, parameters) = (c.shape_input(0)?, c.input(at)?);
    let values = parameters.to_f64()?;
    let whole = match origin {
        Origin::Own(_) => Shape::new(&[shape.dims(), parameters.dims()].concat()),
        _ if shape.dims().ends_with(parameters.dims()) => shape,
        _ => {
            let text = format!("shape {shape} does not end with the parameters' {}", parameters.shape());
            return Err(KernelError::invalid(text));
        }
    };
    let n = whole.checked_n_elements().ok_or_else(|| KernelError::invalid(format!("shape {whole} is too large")))?;
    let base = origin.begin(c, (n as u64).wrapping_mul(RESERVED))?;
    let n_parameters = values.len().max(1);
    let per_parameter = n / n_parameters;
    let mut out = c.room::<f64>(whole)?;
    shard_slice(c.sharder, unique_slice::<f64>(&mut out)?, 1, 60_000, |first, part| {
        for (i, v) in part.iter_mut().enumerate() {
            // The sequence goes through all samples of a parameter first.
            let (sample, parameter) = ((first + i) / n_parameters, (first + i) % n_parameters);
            let mut g = base;
            g.skip(RESERVED.wrapping_mul((parameter * per_parameter + sample) as u64));
            *v = draw(values[parameter], &mut g);
        }
    });
    Ok(convert(&out, dtype, c.allocator)?)
}

fn gamma_kernel(node: &Node, origin: Origin, at: usize, attr: &str) -> Built {
    let dtype = *node.dtype(attr)?;
    kernel_with_state(origin.state(), move |c| {
        let out = by_parameter(c, &origin, at, dtype, gamma)?;
        c.set(0, out);
        Ok(())
    })
}

fn poisson_kernel(node: &Node, origin: Origin, at: usize) -> Built {
    let dtype = *node.dtype("dtype")?;
    let highest = match dtype {
        DType::I32 => f64::from(i32::MAX),
        DType::I64 => i64::MAX as f64,
        DType::F16 => 65_504.0,
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    kernel_with_state(origin.state(), move |c| {
        let out = by_parameter(c, &origin, at, dtype, |rate, g| poisson(rate, highest, g))?;
        c.set(0, out);
        Ok(())
    })
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static DISTRIBUTIONS: &[KernelDef] = &[
    cpu_any("RandomGamma", |n| gamma_kernel(n, Origin::of_seeds(n)?, 1, "T")),
    cpu_any("StatelessRandomGammaV2", |n| gamma_kernel(n, Origin::Seed(1), 2, "dtype")),
    cpu_any("RandomPoisson", |n| poisson_kernel(n, Origin::of_seeds(n)?, 1)),
    cpu_any("RandomPoissonV2", |n| poisson_kernel(n, Origin::of_seeds(n)?, 1)),
    cpu_any("StatelessRandomPoisson", |n| poisson_kernel(n, Origin::Seed(1), 2)),
];
