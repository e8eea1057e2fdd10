//! Random numbers do not change with their parameters, gamma numbers excepted.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};

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
fn gamma(c: &mut GradientContext<'_>, at: usize) -> Result<(), GradientError> {
    let (g, alpha, sample) = (c.grad(0)?, c.input(at), c.output(0));
    let slope = c.op("RandomGammaGrad", &[alpha, sample])?;
    let product = c.op("Mul", &[g, slope])?;
    let (own, whole) = (c.shape_of(alpha)?, c.shape_of(sample)?);
    let axes = c.op("BroadcastGradientArgs", &[own, whole])?;
    let sum = c.op("Sum", &[product, axes])?;
    let of_alpha = c.op("Reshape", &[sum, own])?;
    c.set(at, of_alpha);
    Ok(())
}
