//! The family of rectifiers and their smooth relatives.

use super::shapes::{all_equal, unchanged};
use engine_core::ops::{OP_TABLES, OpSpec, op};

const T: &str = "T: {floats}";
const NUM: &str = "T: {reals}";
const ALPHA: &str = "alpha: float = 0.2; T: {floats} = float";
const FORWARD: &str = "features: T -> activations: T";
const OF_FEATURES: &str = "gradients: T, features: T -> backprops: T";
const OF_OUTPUTS: &str = "gradients: T, outputs: T -> backprops: T";

#[linkme::distributed_slice(OP_TABLES)]
static ACTIVATION: &[OpSpec] = &[
    op("Relu6", FORWARD, NUM, unchanged),
    op("Relu6Grad", OF_FEATURES, NUM, all_equal),
    op("LeakyRelu", FORWARD, ALPHA, unchanged),
    op("LeakyReluGrad", OF_FEATURES, ALPHA, all_equal),
    op("Elu", FORWARD, T, unchanged),
    op("EluGrad", OF_OUTPUTS, T, all_equal),
    op("Selu", FORWARD, T, unchanged),
    op("SeluGrad", OF_OUTPUTS, T, all_equal),
    op("Softplus", FORWARD, T, unchanged),
    op("SoftplusGrad", OF_FEATURES, T, all_equal),
    op("Softsign", FORWARD, T, unchanged),
    op("SoftsignGrad", OF_FEATURES, T, all_equal),
];
