//! Gradients of normalisation.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function};
use crate::graph::{Attr, Output};

type Done = Result<(), GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static NORM: &[GradientSpec] = &[
    ("FusedBatchNorm", Function(|c| fused(c, "FusedBatchNormGrad", 0))),
    ("FusedBatchNormV2", Function(|c| fused(c, "FusedBatchNormGradV2", 0))),
    ("FusedBatchNormV3", Function(|c| fused(c, "FusedBatchNormGradV3", 1))),
    ("FusedBatchNormGrad", Function(fused_grad)),
    ("FusedBatchNormGradV2", Function(fused_grad)),
    ("FusedBatchNormGradV3", Function(fused_grad)),
    ("BatchNormWithGlobalNormalization", Function(global)),
    ("LRN", Function(lrn)),
];

fn attrs(c: &GradientContext<'_>, names: &[&'static str]) -> Vec<(&'static str, Attr)> {
    names.iter().filter_map(|name| c.node().attrs.get(*name).map(|v| (*name, v.clone()))).collect()
}

/// From `y` only: the statistics that the op gives are for keeping, not for training through.
fn fused(c: &mut GradientContext<'_>, op: &str, n_more: usize) -> Done {
    let g = c.grad(0)?;
    let training = c.node().flag("is_training").copied().unwrap_or(true);
    // In training the batch's statistics, else those that were given.
    let statistics = if training { [c.output(3), c.output(4)] } else { [c.input(3), c.input(4)] };
    let mut inputs = vec![g, c.input(0), c.input(1), statistics[0], statistics[1]];
    inputs.extend((0..n_more).map(|_| c.output(5)));
    let attrs = attrs(c, &["epsilon", "data_format", "is_training"]);
    let grad = c.op_with(op, &inputs, &attrs)?;
    for i in 0..3 {
        c.set(i, Output { port: i as u32, ..grad });
    }
    Ok(())
}

/// A second derivative, built of elementary ops from the formula of the first: with m and s the mean and inverse
/// deviation, `dx = scale s (dy - mean(dy) - (x - m) s^2 mean(dy (x - m)))`.
fn fused_grad(c: &mut GradientContext<'_>) -> Done {
    let (dy, x, scale) = (c.input(0), c.input(1), c.input(2));
    let again = Again::new(c)?;
    let zeros = |c: &mut GradientContext<'_>, like| c.op("ZerosLike", &[like]);
    let g_dx = match c.arrived(0) {
        Some(g) => g,
        None => zeros(c, x)?,
    };
    let g_scale = match c.arrived(1) {
        Some(g) => again.spread(c, g)?,
        None => zeros(c, x)?,
    };
    let g_offset = match c.arrived(2) {
        Some(g) => again.spread(c, g)?,
        None => zeros(c, x)?,
    };
    let scale = again.spread(c, scale)?;
    let (of_dy, of_x, of_scale) = again.rules(c, [dy, x, scale], [g_dx, g_scale, g_offset])?;
    c.set(0, of_dy);
    c.set(1, of_x);
    let of_scale = again.sum(c, of_scale)?;
    let whole = c.vector(&[-1i32])?;
    let of_scale = c.op("Reshape", &[of_scale, whole])?;
    c.set(2, of_scale);
    Ok(())
}

/// What the second derivative is made of: reductions over all but the channels.
struct Again {
    axes: Vec<i32>,
    shape: Vec<i32>,
    training: bool,
    /// `x - m` and `s`.
    centred: Output,
    inverse: Output,
}

impl Again {
    fn new(c: &mut GradientContext<'_>) -> Result<Again, GradientError> {
        let (axes, shape): (&[i32], &[i32]) = match c.node().bytes("data_format").map(Vec::as_slice) {
            Ok(b"NCHW") => (&[0, 2, 3], &[1, -1, 1, 1]),
            Ok(b"NCDHW") => (&[0, 2, 3, 4], &[1, -1, 1, 1, 1]),
            Ok(b"NDHWC") => (&[0, 1, 2, 3], &[1, 1, 1, 1, -1]),
            _ => (&[0, 1, 2], &[1, 1, 1, -1]),
        };
        let training = c.node().flag("is_training").copied().unwrap_or(true);
        let epsilon = f64::from(c.node().float("epsilon").copied().unwrap_or(1e-4));
        let (x, mean, variance) = (c.input(1), c.input(3), c.input(4));
        let mut again = Again { axes: axes.to_vec(), shape: shape.to_vec(), training, centred: x, inverse: x };
        let (mean, variance) = (again.spread(c, mean)?, again.spread(c, variance)?);
        again.centred = c.op("Sub", &[x, mean])?;
        let epsilon = c.scalar_like(epsilon, variance)?;
        let shifted = c.op("AddV2", &[variance, epsilon])?;
        again.inverse = c.op("Rsqrt", &[shifted])?;
        Ok(again)
    }

    /// A vector of channels, in the shape that broadcasts against the data.
    fn spread(&self, c: &mut GradientContext<'_>, v: Output) -> Result<Output, GradientError> {
        let shape = c.vector(&self.shape)?;
        c.op("Reshape", &[v, shape])
    }

    fn reduce(&self, c: &mut GradientContext<'_>, op: &str, v: Output) -> Result<Output, GradientError> {
        let axes = c.vector(&self.axes)?;
        c.op_with(op, &[v, axes], &[("keep_dims", Attr::Bool(true))])
    }

    fn sum(&self, c: &mut GradientContext<'_>, v: Output) -> Result<Output, GradientError> {
        self.reduce(c, "Sum", v)
    }

    /// The mean over a batch in training; otherwise statistics do not follow the data.
    fn mean(&self, c: &mut GradientContext<'_>, v: Output) -> Result<Output, GradientError> {
        if self.training {
            return self.reduce(c, "Mean", v);
        }
        let sum = self.reduce(c, "Mean", v)?;
        c.op("ZerosLike", &[sum])
    }

    /// With n = (x - m) s and P v = v - mean(v) - n mean(v n): dx = scale s P dy, of which the adjoint in dy is the
    /// same P; dscale = sum(dy n); doffset = sum(dy).
    fn rules(
        &self,
        c: &mut GradientContext<'_>,
        [dy, _x, scale]: [Output; 3],
        [g_dx, g_scale, g_offset]: [Output; 3],
    ) -> Result<(Output, Output, Output), GradientError> {
        let n = c.op("Mul", &[self.centred, self.inverse])?;
        let factor = c.op("Mul", &[scale, self.inverse])?;
        let p_g = self.project(c, g_dx, n)?;
        let p_dy = self.project(c, dy, n)?;
        // By dy: scale s P g_dx + g_scale n + g_offset.
        let through = c.op("Mul", &[factor, p_g])?;
        let weighted = c.op("Mul", &[g_scale, n])?;
        let of_dy = c.op("AddV2", &[through, weighted])?;
        let of_dy = c.op("AddV2", &[of_dy, g_offset])?;
        // By scale: sum of g_dx s P dy.
        let scaled = c.op("Mul", &[self.inverse, p_dy])?;
        let of_scale = c.op("Mul", &[g_dx, scaled])?;
        // By x, through n (dx = scale s P dy holds n twice; dscale once) and, in training, through s.
        let gn = c.op("Mul", &[g_dx, n])?;
        let mean_gn = self.mean(c, gn)?;
        let dyn_ = c.op("Mul", &[dy, n])?;
        let mean_dyn = self.mean(c, dyn_)?;
        let a = c.op("Mul", &[dy, mean_gn])?;
        let b = c.op("Mul", &[g_dx, mean_dyn])?;
        let ab = c.op("AddV2", &[a, b])?;
        let ab = c.op("Mul", &[ab, factor])?;
        let direct = c.op("Mul", &[g_scale, dy])?;
        let to_n = c.op("Sub", &[direct, ab])?;
        // dn/dx is s P where the statistics follow x, s where not; ds/dx is -s^2 n / count.
        let p_n = self.project(c, to_n, n)?;
        let of_x = c.op("Mul", &[self.inverse, p_n])?;
        let gp = c.op("Mul", &[g_dx, p_dy])?;
        let gp = c.op("Mul", &[gp, factor])?;
        let mean_gp = self.mean(c, gp)?;
        let by_s = c.op("Mul", &[n, self.inverse])?;
        let by_s = c.op("Mul", &[by_s, mean_gp])?;
        let of_x = c.op("Sub", &[of_x, by_s])?;
        Ok((of_dy, of_x, of_scale))
    }

    /// `v - mean(v) - n mean(v n)`.
    fn project(&self, c: &mut GradientContext<'_>, v: Output, n: Output) -> Result<Output, GradientError> {
        let mean = self.mean(c, v)?;
        let centred = c.op("Sub", &[v, mean])?;
        let vn = c.op("Mul", &[v, n])?;
        let slope = self.mean(c, vn)?;
        let along = c.op("Mul", &[n, slope])?;
        c.op("Sub", &[centred, along])
    }
}

fn global(c: &mut GradientContext<'_>) -> Done {
    let g = c.grad(0)?;
    let attrs = attrs(c, &["variance_epsilon", "scale_after_normalization"]);
    let inputs = [c.input(0), c.input(1), c.input(2), c.input(4), g];
    let grad = c.op_with("BatchNormWithGlobalNormalizationGrad", &inputs, &attrs)?;
    for i in 0..5 {
        c.set(i, Output { port: i as u32, ..grad });
    }
    Ok(())
}

fn lrn(c: &mut GradientContext<'_>) -> Done {
    let (g, x, y) = (c.grad(0)?, c.input(0), c.output(0));
    let attrs = attrs(c, &["depth_radius", "bias", "alpha", "beta"]);
    let of_x = c.op_with("LRNGrad", &[g, x, y], &attrs)?;
    c.set(0, of_x);
    Ok(())
}
