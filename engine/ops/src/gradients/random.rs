//! Random numbers do not change with their parameters, gamma numbers excepted.

use super::rule::RuleResult;
use super::{GRADIENT_TABLES, GradientContext, GradientSpec, Rule::Function, Rule::Zero};

#[linkme::distributed_slice(GRADIENT_TABLES)]
static RANDOM: &[GradientSpec] = &[
    ("RandomGamma", Function(|c| gamma(c, 1))),
    ("StatelessRandomGammaV2", Function(|c| gamma(c, 2))),
    ("RandomUniform", Zero),
    ("RandomUniformInt", Zero),
    ("RandomStandardNormal", Zero),
    ("TruncatedNormal", Zero),
    ("ParameterizedTruncatedNormal", Zero),
    ("Multinomial", Zero),
    ("StatelessMultinomial", Zero),
    ("StatelessRandomUniform", Zero),
    ("StatelessRandomNormal", Zero),
    ("StatelessTruncatedNormal", Zero),
    ("StatelessRandomUniformV2", Zero),
    ("StatelessRandomNormalV2", Zero),
    ("StatelessTruncatedNormalV2", Zero),
    ("RandomPoissonV2", Zero),
    ("StatelessRandomPoisson", Zero),
];

/// As the quantile of a fixed probability moves (Figurnov et al., "Implicit reparameterization gradients", 2018).
fn gamma(c: &GradientContext<'_>, at: usize) -> RuleResult {
    let (g, alpha, sample) = (c.grad(0), c.input(at), c.output(0));
    let shape = c.shape_of(alpha);
    let axes = shape.op_with("BroadcastGradientArgs", c.shape_of(sample));
    c.set(at, (g * alpha.op_with("RandomGammaGrad", sample)).sum(axes).reshape(shape));
    Ok(())
}
