//! Stateful ops: variables behind resource handles, and the optimizers' updates of them.

use super::shapes::{Inferred, none, scalar};
use engine_core::ops::{InferContext, OP_TABLES, OpKind as K, OpSpec, reads, stateful};

const HANDLE: &str = "container: string = ''; shared_name: string = ''; debug_name: string = ''; dtype: type; \
                      shape: shape; allowed_devices: list(string) = []";
const ASSIGN: &str = "resource: resource, value: dtype ->";
const T: &str = "T: {float, double}; use_locking: bool = false";
const NESTEROV: &str = "T: {float, double}; use_locking: bool = false; use_nesterov: bool = false";

#[linkme::distributed_slice(OP_TABLES)]
static STATE: &[OpSpec] = &[
    reads("VarHandleOp", "-> resource: resource", HANDLE, scalar).kind(K::VarHandle),
    reads("VarIsInitializedOp", "resource: resource -> is_initialized: bool", "", scalar),
    reads("ReadVariableOp", "resource: resource -> value: dtype", "dtype: type", read).kind(K::ReadVariable),
    stateful("AssignVariableOp", ASSIGN, "dtype: type; validate_shape: bool = false", assign),
    stateful("ResourceApplyGradientDescent", "var: resource, alpha: T, delta: T ->", T, none),
    stateful("ResourceApplyMomentum", "var: resource, accum: resource, lr: T, grad: T, momentum: T ->", NESTEROV, none),
    stateful(
        "ResourceApplyAdam",
        "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, \
         epsilon: T, grad: T ->",
        NESTEROV,
        none,
    ),
];

fn read(c: &mut InferContext<'_>) -> Inferred {
    let shape = c.variable_shape(0);
    c.set(0, shape);
    Ok(())
}

fn assign(c: &mut InferContext<'_>) -> Inferred {
    c.merge(&c.variable_shape(0), &c.input(1)).map(drop)
}
