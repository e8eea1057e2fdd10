//! Random ops. With both seeds 0 the numbers differ from run to run, otherwise they are TensorFlow's.

use super::shapes::{Inferred, first_input_lists, from_value, scalar, unchanged};
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, op, random, reads};
use engine_core::shape::PartialShape;

const FLOAT: &str = "seed: int = 0; seed2: int = 0; dtype: {floats}; T: {int32, int64}";
const STATELESS: &str = "dtype: {floats} = float; T: {int32, int64} = int32; Tseed: {int32, int64} = int64";
const KEYED: &str = "dtype: {floats} = float; Tshape: {int32, int64} = int32";
const BY_KEY: &str = "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype";
const MULTINOMIAL: &str = "seed: int = 0; seed2: int = 0; T: {reals}; output_dtype: {int32, int64} = int64";

#[linkme::distributed_slice(OP_TABLES)]
static RANDOM: &[OpSpec] = &[
    random("RandomUniform", "shape: T -> output: dtype", FLOAT, first_input_lists),
    random("RandomStandardNormal", "shape: T -> output: dtype", FLOAT, first_input_lists),
    random("TruncatedNormal", "shape: T -> output: dtype", FLOAT, first_input_lists),
    random(
        "ParameterizedTruncatedNormal",
        "shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype",
        FLOAT,
        first_input_lists,
    ),
    random(
        "RandomUniformInt",
        "shape: T, minval: Tout, maxval: Tout -> output: Tout",
        "seed: int = 0; seed2: int = 0; Tout: {int32, int64}; T: {int32, int64}",
        first_input_lists,
    ),
    random("RandomShuffle", "value: T -> output: T", "seed: int = 0; seed2: int = 0; T: type", unchanged),
    random("Multinomial", "logits: T, num_samples: int32 -> output: output_dtype", MULTINOMIAL, multinomial),
    random(
        "RandomGamma",
        "shape: S, alpha: T -> output: T",
        "seed: int = 0; seed2: int = 0; S: {int32, int64}; T: {half, float, double}",
        by_parameter,
    ),
    random(
        "RandomPoisson",
        "shape: S, rate: dtype -> output: dtype",
        "seed: int = 0; seed2: int = 0; S: {int32, int64}; dtype: {half, float, double}",
        by_parameter,
    ),
    random(
        "RandomPoissonV2",
        "shape: S, rate: R -> output: dtype",
        "seed: int = 0; seed2: int = 0; S: {int32, int64}; R: {half, float, double, int32, int64} = double; \
         dtype: {half, float, double, int32, int64} = int64",
        by_parameter,
    ),
    op("StatelessRandomUniform", "shape: T, seed: Tseed -> output: dtype", STATELESS, first_input_lists),
    op("StatelessRandomNormal", "shape: T, seed: Tseed -> output: dtype", STATELESS, first_input_lists),
    op("StatelessTruncatedNormal", "shape: T, seed: Tseed -> output: dtype", STATELESS, first_input_lists),
    op(
        "StatelessRandomUniformInt",
        "shape: T, seed: Tseed, minval: dtype, maxval: dtype -> output: dtype",
        "dtype: {int32, int64}; T: {int32, int64}; Tseed: {int32, int64} = int64",
        first_input_lists,
    ),
    op(
        "StatelessRandomUniformFullInt",
        "shape: T, seed: Tseed -> output: dtype",
        "dtype: {int32, int64, uint32, uint64} = uint64; T: {int32, int64} = int32; \
         Tseed: {int32, int64, uint32, uint64} = int64",
        first_input_lists,
    ),
    op(
        "StatelessMultinomial",
        "logits: T, num_samples: int32, seed: Tseed -> output: output_dtype",
        "T: {reals}; Tseed: {int32, int64} = int64; output_dtype: {int32, int64} = int64",
        multinomial,
    ),
    op(
        "StatelessRandomGammaV2",
        "shape: T, seed: Tseed, alpha: dtype -> output: dtype",
        "dtype: {half, float, double}; T: {int32, int64}; Tseed: {int32, int64} = int64",
        first_input_lists,
    ),
    op(
        "StatelessRandomPoisson",
        "shape: T, seed: Tseed, lam: Rtype -> output: dtype",
        "Rtype: {half, float, double, int32, int64}; dtype: {half, float, double, int32, int64}; T: {int32, int64}; \
         Tseed: {int32, int64} = int64",
        first_input_lists,
    ),
    op("StatelessRandomUniformV2", BY_KEY, KEYED, first_input_lists),
    op("StatelessRandomNormalV2", BY_KEY, KEYED, first_input_lists),
    op("StatelessTruncatedNormalV2", BY_KEY, KEYED, first_input_lists),
    op(
        "StatelessRandomUniformFullIntV2",
        BY_KEY,
        "dtype: {int32, int64, uint32, uint64} = uint64; Tshape: {int32, int64} = int32",
        first_input_lists,
    ),
    op(
        "StatelessRandomUniformIntV2",
        "shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, maxval: dtype -> output: dtype",
        "dtype: {int32, int64, uint32, uint64}; Tshape: {int32, int64} = int32",
        first_input_lists,
    ),
    op(
        "StatelessRandomGetKeyCounter",
        "seed: Tseed -> key: uint64, counter: uint64",
        "Tseed: {int32, int64} = int64",
        key,
    ),
    op(
        "StatelessRandomGetKeyCounterAlg",
        "seed: Tseed -> key: uint64, counter: uint64, alg: int32",
        "Tseed: {int32, int64} = int64",
        key,
    ),
    reads("StatelessRandomGetAlg", "-> alg: int32", "", scalar),
];

fn multinomial(c: &mut InferContext<'_>) -> Inferred {
    let logits = c.of_rank(0, 2)?;
    let n = c.ints(1).and_then(|n| usize::try_from(*n.first()?).ok());
    c.set(0, [logits.dims().and_then(|dims| dims[0]), n]);
    Ok(())
}

/// The shape that input 0 lists, then that of the parameters.
fn by_parameter(c: &mut InferContext<'_>) -> Inferred {
    let (shape, parameters) = (from_value(c, 0)?, c.input(1));
    if let (Some(shape), Some(parameters)) = (shape.dims(), parameters.dims()) {
        c.set(0, PartialShape::new(&[shape, parameters].concat()));
    }
    Ok(())
}

fn key(c: &mut InferContext<'_>) -> Inferred {
    c.set(0, [1]);
    c.set(1, [2]);
    if c.n_outputs() > 2 {
        c.set(2, PartialShape::scalar());
    }
    Ok(())
}
