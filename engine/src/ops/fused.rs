//! Ops that only graph passes make: several of the user's ops in one node.

use super::shapes::none;
use super::{OP_TABLES, OpSpec, op};

#[linkme::distributed_slice(OP_TABLES)]
static FUSED: &[OpSpec] = &[
    op(
        "_FusedElementwise",
        "inputs: N * T -> output: T",
        "N: int; T: {float, double}; ops: list(string); operands: list(int); originals: list(string) = []",
        none,
    ),
    op(
        "_FusedMatMul",
        "a: T, b: T, args: num_args * T -> product: T",
        "transpose_a: bool = false; transpose_b: bool = false; T: {float, double}; num_args: int; \
         fused_ops: list(string) = []; epsilon: float = 0.0001; leakyrelu_alpha: float = 0.2; \
         originals: list(string) = []",
        none,
    ),
];
