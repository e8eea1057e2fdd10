//! The optimizers' updates of variables behind handles and references: dense, and of the rows that indices list.
//!
//! Those of gradient descent, momentum and Adam behind handles are with the variables' own ops.

use super::shapes::{none, unchanged};
use super::{OP_TABLES, OpSpec, stateful};

const T: &str = "T: {floats}; use_locking: bool = false";
const NESTEROV: &str = "T: {floats}; use_locking: bool = false; use_nesterov: bool = false";
const SLOTS: &str = "T: {floats}; use_locking: bool = false; update_slots: bool = true";
const FTRL: &str = "T: {floats}; use_locking: bool = false; multiply_linear_by_lr: bool = false";
const SPARSE_T: &str = "T: {floats}; Tindices: {int32, int64}; use_locking: bool = false";
const SPARSE_NESTEROV: &str =
    "T: {floats}; Tindices: {int32, int64}; use_locking: bool = false; use_nesterov: bool = false";
const SPARSE_SLOTS: &str =
    "T: {floats}; Tindices: {int32, int64}; use_locking: bool = false; update_slots: bool = true";
const SPARSE_FTRL: &str =
    "T: {floats}; Tindices: {int32, int64}; use_locking: bool = false; multiply_linear_by_lr: bool = false";

#[linkme::distributed_slice(OP_TABLES)]
static TRAINING: &[OpSpec] = &[
    stateful("ResourceApplyProximalGradientDescent", "var: resource, alpha: T, l1: T, l2: T, delta: T ->", T, none),
    stateful(
        "ResourceApplyKerasMomentum",
        "var: resource, accum: resource, lr: T, grad: T, momentum: T ->",
        NESTEROV,
        none,
    ),
    stateful("ResourceApplyAdagrad", "var: resource, accum: resource, lr: T, grad: T ->", SLOTS, none),
    stateful("ResourceApplyAdagradV2", "var: resource, accum: resource, lr: T, epsilon: T, grad: T ->", SLOTS, none),
    stateful(
        "ResourceApplyAdagradDA",
        "var: resource, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, \
         lr: T, l1: T, l2: T, global_step: int64 ->",
        T,
        none,
    ),
    stateful(
        "ResourceApplyProximalAdagrad",
        "var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T ->",
        T,
        none,
    ),
    stateful(
        "ResourceApplyAdadelta",
        "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T ->",
        T,
        none,
    ),
    stateful(
        "ResourceApplyRMSProp",
        "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T ->",
        T,
        none,
    ),
    stateful(
        "ResourceApplyCenteredRMSProp",
        "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, \
         grad: T ->",
        T,
        none,
    ),
    stateful(
        "ResourceApplyAdamWithAmsgrad",
        "var: resource, m: resource, v: resource, vhat: resource, beta1_power: T, beta2_power: T, lr: T, \
         beta1: T, beta2: T, epsilon: T, grad: T ->",
        T,
        none,
    ),
    stateful(
        "ResourceApplyAdaMax",
        "var: resource, m: resource, v: resource, beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, \
         grad: T ->",
        T,
        none,
    ),
    stateful(
        "ResourceApplyFtrl",
        "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, lr_power: T ->",
        FTRL,
        none,
    ),
    stateful(
        "ResourceApplyFtrlV2",
        "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, \
         lr_power: T ->",
        FTRL,
        none,
    ),
    stateful(
        "ResourceApplyAddSign",
        "var: resource, m: resource, lr: T, alpha: T, sign_decay: T, beta: T, grad: T ->",
        T,
        none,
    ),
    stateful(
        "ResourceApplyPowerSign",
        "var: resource, m: resource, lr: T, logbase: T, sign_decay: T, beta: T, grad: T ->",
        T,
        none,
    ),
    stateful(
        "ApplyProximalGradientDescent",
        "var: Ref(T), alpha: T, l1: T, l2: T, delta: T -> out: Ref(T)",
        T,
        unchanged,
    ),
    stateful("ApplyAdagrad", "var: Ref(T), accum: Ref(T), lr: T, grad: T -> out: Ref(T)", SLOTS, unchanged),
    stateful(
        "ApplyAdagradV2",
        "var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T -> out: Ref(T)",
        SLOTS,
        unchanged,
    ),
    stateful(
        "ApplyAdagradDA",
        "var: Ref(T), gradient_accumulator: Ref(T), gradient_squared_accumulator: Ref(T), grad: T, lr: T, \
         l1: T, l2: T, global_step: int64 -> out: Ref(T)",
        T,
        unchanged,
    ),
    stateful(
        "ApplyProximalAdagrad",
        "var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T -> out: Ref(T)",
        T,
        unchanged,
    ),
    stateful(
        "ApplyAdadelta",
        "var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, grad: T -> out: Ref(T)",
        T,
        unchanged,
    ),
    stateful(
        "ApplyRMSProp",
        "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T -> out: Ref(T)",
        T,
        unchanged,
    ),
    stateful(
        "ApplyCenteredRMSProp",
        "var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, \
         grad: T -> out: Ref(T)",
        T,
        unchanged,
    ),
    stateful(
        "ApplyAdaMax",
        "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, \
         grad: T -> out: Ref(T)",
        T,
        unchanged,
    ),
    stateful(
        "ApplyFtrl",
        "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, lr_power: T -> out: Ref(T)",
        FTRL,
        unchanged,
    ),
    stateful(
        "ApplyFtrlV2",
        "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, \
         lr_power: T -> out: Ref(T)",
        FTRL,
        unchanged,
    ),
    stateful(
        "ApplyAddSign",
        "var: Ref(T), m: Ref(T), lr: T, alpha: T, sign_decay: T, beta: T, grad: T -> out: Ref(T)",
        T,
        unchanged,
    ),
    stateful(
        "ApplyPowerSign",
        "var: Ref(T), m: Ref(T), lr: T, logbase: T, sign_decay: T, beta: T, grad: T -> out: Ref(T)",
        T,
        unchanged,
    ),
    stateful(
        "ApplyMomentum",
        "var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T -> out: Ref(T)",
        NESTEROV,
        unchanged,
    ),
    stateful("ApplyGradientDescent", "var: Ref(T), alpha: T, delta: T -> out: Ref(T)", T, unchanged),
    stateful(
        "ApplyAdam",
        "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, \
         epsilon: T, grad: T -> out: Ref(T)",
        NESTEROV,
        unchanged,
    ),
    stateful(
        "ResourceSparseApplyProximalGradientDescent",
        "var: resource, alpha: T, l1: T, l2: T, grad: T, indices: Tindices ->",
        SPARSE_T,
        none,
    ),
    stateful(
        "ResourceSparseApplyMomentum",
        "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T ->",
        SPARSE_NESTEROV,
        none,
    ),
    stateful(
        "ResourceSparseApplyKerasMomentum",
        "var: resource, accum: resource, lr: T, grad: T, indices: Tindices, momentum: T ->",
        SPARSE_NESTEROV,
        none,
    ),
    stateful(
        "ResourceSparseApplyAdagrad",
        "var: resource, accum: resource, lr: T, grad: T, indices: Tindices ->",
        SPARSE_SLOTS,
        none,
    ),
    stateful(
        "ResourceSparseApplyAdagradV2",
        "var: resource, accum: resource, lr: T, epsilon: T, grad: T, indices: Tindices ->",
        SPARSE_SLOTS,
        none,
    ),
    stateful(
        "ResourceSparseApplyAdagradDA",
        "var: resource, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, \
         indices: Tindices, lr: T, l1: T, l2: T, global_step: int64 ->",
        SPARSE_T,
        none,
    ),
    stateful(
        "ResourceSparseApplyProximalAdagrad",
        "var: resource, accum: resource, lr: T, l1: T, l2: T, grad: T, indices: Tindices ->",
        SPARSE_T,
        none,
    ),
    stateful(
        "ResourceSparseApplyAdadelta",
        "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T, \
         indices: Tindices ->",
        SPARSE_T,
        none,
    ),
    stateful(
        "ResourceSparseApplyRMSProp",
        "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T, \
         indices: Tindices ->",
        SPARSE_T,
        none,
    ),
    stateful(
        "ResourceSparseApplyCenteredRMSProp",
        "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, \
         grad: T, indices: Tindices ->",
        SPARSE_T,
        none,
    ),
    stateful(
        "ResourceSparseApplyFtrl",
        "var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, \
         l2: T, lr_power: T ->",
        SPARSE_FTRL,
        none,
    ),
    stateful(
        "ResourceSparseApplyFtrlV2",
        "var: resource, accum: resource, linear: resource, grad: T, indices: Tindices, lr: T, l1: T, \
         l2: T, l2_shrinkage: T, lr_power: T ->",
        SPARSE_FTRL,
        none,
    ),
    stateful(
        "SparseApplyProximalGradientDescent",
        "var: Ref(T), alpha: T, l1: T, l2: T, grad: T, indices: Tindices -> out: Ref(T)",
        SPARSE_T,
        unchanged,
    ),
    stateful(
        "SparseApplyMomentum",
        "var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices, momentum: T -> out: Ref(T)",
        SPARSE_NESTEROV,
        unchanged,
    ),
    stateful(
        "SparseApplyAdagrad",
        "var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices -> out: Ref(T)",
        SPARSE_SLOTS,
        unchanged,
    ),
    stateful(
        "SparseApplyAdagradV2",
        "var: Ref(T), accum: Ref(T), lr: T, epsilon: T, grad: T, indices: Tindices -> out: Ref(T)",
        SPARSE_SLOTS,
        unchanged,
    ),
    stateful(
        "SparseApplyAdagradDA",
        "var: Ref(T), gradient_accumulator: Ref(T), gradient_squared_accumulator: Ref(T), grad: T, \
         indices: Tindices, lr: T, l1: T, l2: T, global_step: int64 -> out: Ref(T)",
        SPARSE_T,
        unchanged,
    ),
    stateful(
        "SparseApplyProximalAdagrad",
        "var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T, grad: T, indices: Tindices -> out: Ref(T)",
        SPARSE_T,
        unchanged,
    ),
    stateful(
        "SparseApplyAdadelta",
        "var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T, grad: T, \
         indices: Tindices -> out: Ref(T)",
        SPARSE_T,
        unchanged,
    ),
    stateful(
        "SparseApplyRMSProp",
        "var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, grad: T, \
         indices: Tindices -> out: Ref(T)",
        SPARSE_T,
        unchanged,
    ),
    stateful(
        "SparseApplyCenteredRMSProp",
        "var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T, \
         grad: T, indices: Tindices -> out: Ref(T)",
        SPARSE_T,
        unchanged,
    ),
    stateful(
        "SparseApplyFtrl",
        "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T, l1: T, l2: T, \
         lr_power: T -> out: Ref(T)",
        SPARSE_FTRL,
        unchanged,
    ),
    stateful(
        "SparseApplyFtrlV2",
        "var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T, l1: T, l2: T, \
         l2_shrinkage: T, lr_power: T -> out: Ref(T)",
        SPARSE_FTRL,
        unchanged,
    ),
];
