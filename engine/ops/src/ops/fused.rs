//! Ops that only graph passes make: several of the user's ops in one node.

use super::shapes::none;
use engine_core::ops::{OP_TABLES, OpSpec, op};

#[linkme::distributed_slice(OP_TABLES)]
static FUSED: &[OpSpec] = &[
    op(
        "_FusedElementwise",
        "inputs: N * T -> outputs: M * T",
        "N: int; M: int = 1; T: {float, double}; ops: list(string); operands: list(int); windows: list(int) = []; \
         results: list(int) = []; joined: list(int) = []; originals: list(string) = []",
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
    op(
        "_PackedMatMul",
        "a: T, b: T, packed: T, args: num_args * T -> product: T",
        "transpose_a: bool = false; transpose_b: bool = false; T: {float, double}; num_args: int = 0; \
         fused_ops: list(string) = []; epsilon: float = 0.0001; leakyrelu_alpha: float = 0.2; \
         originals: list(string) = []",
        none,
    ),
    op("_PackMatrix", "b: T -> packed: T", "transpose_b: bool = false; T: {float, double}", none),
    op(
        "_SumOfProducts",
        "a: N * T, b: N * T -> sum: T",
        "N: int; transpose_a: bool = false; transpose_b: bool = false; T: {float, double}; \
         originals: list(string) = []",
        none,
    ),
    op("_BeginProducts", "sum: T -> products: variant", "T: {float, double}", none),
    op(
        "_AddProduct",
        "products: variant, a: T, b: T -> products_out: variant",
        "transpose_a: bool = false; transpose_b: bool = false; T: {float, double}; originals: list(string) = []",
        none,
    ),
    op(
        "_EndProducts",
        "products: variant -> sum: T",
        "transpose_a: bool = false; transpose_b: bool = false; T: {float, double}",
        none,
    ),
];
