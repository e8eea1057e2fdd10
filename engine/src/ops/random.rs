//! Random ops. With both seeds 0 the numbers differ from run to run, otherwise they are TensorFlow's.

use super::shapes::first_input_lists;
use super::{OP_TABLES, OpSpec, stateful};

const FLOAT: &str = "seed: int = 0; seed2: int = 0; dtype: {float, double}; T: {int32, int64}";

#[linkme::distributed_slice(OP_TABLES)]
static RANDOM: &[OpSpec] = &[
    stateful("RandomUniform", "shape: T -> output: dtype", FLOAT, first_input_lists),
    stateful("RandomStandardNormal", "shape: T -> output: dtype", FLOAT, first_input_lists),
    stateful("TruncatedNormal", "shape: T -> output: dtype", FLOAT, first_input_lists),
];
