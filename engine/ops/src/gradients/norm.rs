//! Gradients of normalisation.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function};
use engine_core::graph::Value;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static NORM: &[GradientSpec] = &[
    ("FusedBatchNorm", Function(|c| fused(c, "FusedBatchNormGrad", &[]))),
    ("FusedBatchNormV2", Function(|c| fused(c, "FusedBatchNormGradV2", &[]))),
    ("FusedBatchNormV3", Function(|c| fused(c, "FusedBatchNormGradV3", &[c.output(5)]))),
    ("FusedBatchNormGrad", Function(fused_grad)),
    ("FusedBatchNormGradV2", Function(fused_grad)),
    ("FusedBatchNormGradV3", Function(fused_grad)),
    ("BatchNormWithGlobalNormalization", Function(global)),
    ("LRN", Function(lrn)),
];

fn is_training(c: &GradientContext<'_>) -> bool {
    c.node().flag("is_training").copied().unwrap_or(true)
}

/// From `y` only: the statistics that the op gives are for keeping, not for training through.
fn fused(c: &GradientContext<'_>, op: &str, more: &[Value<'_>]) -> RuleResult {
    // In training the batch's statistics, else those that were given.
    let [mean, variance] = if is_training(c) { [3, 4].map(|i| c.output(i)) } else { [3, 4].map(|i| c.input(i)) };
    let mut inputs = vec![c.grad(0), c.input(0), c.input(1), mean, variance];
    inputs.extend(more);
    let grad = c.op_with_node_attrs(op, &inputs);
    (0..3).for_each(|i| c.set(i, grad.port(i as u32)));
    Ok(())
}

/// A second derivative, built of elementary ops from the formula of the first. With m and s the mean and inverse
/// deviation, n = (x - m) s and P v = v - mean(v) - n mean(v n): dx = scale s P dy, of which the adjoint in dy is the
/// same P; dscale = sum(dy n); doffset = sum(dy).
fn fused_grad(c: &GradientContext<'_>) -> RuleResult {
    let batch = Batch::new(c);
    let (dy, x) = (c.input(0), c.input(1));
    let [scale, mean, variance] = [2, 3, 4].map(|i| batch.spread(c.input(i)));
    let g_dx = c.arrived(0).unwrap_or_else(|| x.zeros_like());
    let [g_scale, g_offset] = [1, 2].map(|i| c.arrived(i).map_or_else(|| x.zeros_like(), |g| batch.spread(g)));

    let epsilon = f64::from(c.node().float("epsilon").copied().unwrap_or(1e-4));
    let s = (variance + epsilon).rsqrt();
    let n = (x - mean) * s;
    let factor = scale * s;
    let p_dy = batch.project(dy, n);
    c.set(0, factor * batch.project(g_dx, n) + g_scale * n + g_offset);
    // Through n (dx = scale s P dy holds n twice; dscale once) and, in training, through s.
    let to_n = g_scale * dy - (dy * batch.mean(g_dx * n) + g_dx * batch.mean(dy * n)) * factor;
    // dn/dx is s P where the statistics follow x, s where not; ds/dx is -s^2 n / count.
    c.set(1, s * batch.project(to_n, n) - n * s * batch.mean(g_dx * p_dy * factor));
    c.set(2, batch.reduce("Sum", g_dx * (s * p_dy)).reshape([-1]));
    Ok(())
}

/// The reductions that the second derivative is made of: over all but the channels.
struct Batch {
    axes: &'static [i32],
    /// That in which a vector of channels broadcasts against the data.
    shape: &'static [i32],
    training: bool,
}

impl Batch {
    fn new(c: &GradientContext<'_>) -> Batch {
        let (axes, shape): (&[i32], &[i32]) = match c.node().bytes("data_format").map(Vec::as_slice) {
            Ok(b"NCHW") => (&[0, 2, 3], &[1, -1, 1, 1]),
            Ok(b"NCDHW") => (&[0, 2, 3, 4], &[1, -1, 1, 1, 1]),
            Ok(b"NDHWC") => (&[0, 1, 2, 3], &[1, 1, 1, 1, -1]),
            _ => (&[0, 1, 2], &[1, 1, 1, -1]),
        };
        Batch { axes, shape, training: is_training(c) }
    }

    /// A vector of channels, in the shape that broadcasts against the data.
    fn spread<'a>(&self, v: Value<'a>) -> Value<'a> {
        v.reshape(v.graph().ints(self.shape))
    }

    fn reduce<'a>(&self, op: &'static str, v: Value<'a>) -> Value<'a> {
        let graph = v.graph();
        graph.add_node(op).input(v).input(graph.ints(self.axes)).attr("keep_dims", true).value()
    }

    /// The mean over a batch in training; otherwise statistics do not follow the data.
    fn mean<'a>(&self, v: Value<'a>) -> Value<'a> {
        let mean = self.reduce("Mean", v);
        if self.training { mean } else { mean.zeros_like() }
    }

    /// P v.
    fn project<'a>(&self, v: Value<'a>, n: Value<'a>) -> Value<'a> {
        v - self.mean(v) - n * self.mean(v * n)
    }
}

fn global(c: &GradientContext<'_>) -> RuleResult {
    let inputs = [c.input(0), c.input(1), c.input(2), c.input(4), c.grad(0)];
    let grad = c.op_with_node_attrs("BatchNormWithGlobalNormalizationGrad", &inputs);
    (0..5).for_each(|i| c.set(i, grad.port(i as u32)));
    Ok(())
}

fn lrn(c: &GradientContext<'_>) -> RuleResult {
    c.set(0, c.op_with_node_attrs("LRNGrad", &[c.grad(0), c.input(0), c.output(0)]));
    Ok(())
}
