//! The optimizers' updates of variables behind handles and references: dense, and of the rows that indices list.
//!
//! Those of gradient descent, momentum and Adam behind handles are with the variables' own ops.

use super::shapes::{none, unchanged};
use engine_core::ops::{OP_TABLES, OpSpec, stateful};

// An optimizer is a line: its name, the variable's slots, the inputs up to the gradient, those behind it, its own
// attributes. Each macro makes an op of a line: the variables are handles or references, the gradient is of all rows or
// of some.

macro_rules! resource {
    ($name:literal [$($slot:literal)*] $inputs:literal $behind:literal $attrs:literal) => {
        stateful(
            concat!("ResourceApply", $name),
            concat!("var: resource", $(", ", $slot, ": resource",)* ", ", $inputs, $behind, " ->"),
            concat!("T: {floats}; use_locking: bool = false", $attrs),
            none,
        )
    };
}

macro_rules! reference {
    ($name:literal [$($slot:literal)*] $inputs:literal $behind:literal $attrs:literal) => {
        stateful(
            concat!("Apply", $name),
            concat!("var: Ref(T)", $(", ", $slot, ": Ref(T)",)* ", ", $inputs, $behind, " -> out: Ref(T)"),
            concat!("T: {floats}; use_locking: bool = false", $attrs),
            unchanged,
        )
    };
}

macro_rules! resource_rows {
    ($name:literal [$($slot:literal)*] $inputs:literal $behind:literal $attrs:literal) => {
        stateful(
            concat!("ResourceSparseApply", $name),
            concat!(
                "var: resource", $(", ", $slot, ": resource",)* ", ", $inputs, ", indices: Tindices", $behind, " ->"
            ),
            concat!("T: {floats}; Tindices: {int32, int64}; use_locking: bool = false", $attrs),
            none,
        )
    };
}

macro_rules! reference_rows {
    ($name:literal [$($slot:literal)*] $inputs:literal $behind:literal $attrs:literal) => {
        stateful(
            concat!("SparseApply", $name),
            concat!(
                "var: Ref(T)", $(", ", $slot, ": Ref(T)",)* ", ", $inputs, ", indices: Tindices", $behind,
                " -> out: Ref(T)"
            ),
            concat!("T: {floats}; Tindices: {int32, int64}; use_locking: bool = false", $attrs),
            unchanged,
        )
    };
}

/// Tables of the ops that these macros make of the lines.
macro_rules! optimizers {
    ($($make:ident)+: $lines:tt) => { $( optimizers! { @table $make $lines } )+ };
    (@table $make:ident { $($line:tt)+ }) => {
        const _: () = {
            #[linkme::distributed_slice(OP_TABLES)]
            static OPTIMIZERS: &[OpSpec] = &[ $( $make! $line ),+ ];
        };
    };
}

optimizers! { resource reference resource_rows reference_rows: {
    ("Adagrad" ["accum"] "lr: T, grad: T" "" "; update_slots: bool = true")
    ("AdagradV2" ["accum"] "lr: T, epsilon: T, grad: T" "" "; update_slots: bool = true")
    (
        "AdagradDA" ["gradient_accumulator" "gradient_squared_accumulator"]
        "grad: T" ", lr: T, l1: T, l2: T, global_step: int64" ""
    )
    ("ProximalAdagrad" ["accum"] "lr: T, l1: T, l2: T, grad: T" "" "")
    ("Adadelta" ["accum" "accum_update"] "lr: T, rho: T, epsilon: T, grad: T" "" "")
    ("RMSProp" ["ms" "mom"] "lr: T, rho: T, momentum: T, epsilon: T, grad: T" "" "")
    ("CenteredRMSProp" ["mg" "ms" "mom"] "lr: T, rho: T, momentum: T, epsilon: T, grad: T" "" "")
    (
        "Ftrl" ["accum" "linear"] "grad: T" ", lr: T, l1: T, l2: T, lr_power: T"
        "; multiply_linear_by_lr: bool = false"
    )
    (
        "FtrlV2" ["accum" "linear"] "grad: T" ", lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T"
        "; multiply_linear_by_lr: bool = false"
    )
} }
optimizers! { reference resource_rows reference_rows: {
    ("Momentum" ["accum"] "lr: T, grad: T" ", momentum: T" "; use_nesterov: bool = false")
} }
optimizers! { resource resource_rows: {
    ("KerasMomentum" ["accum"] "lr: T, grad: T" ", momentum: T" "; use_nesterov: bool = false")
} }
optimizers! { resource reference: {
    ("ProximalGradientDescent" [] "alpha: T, l1: T, l2: T, delta: T" "" "")
    ("AdaMax" ["m" "v"] "beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T" "" "")
    ("AddSign" ["m"] "lr: T, alpha: T, sign_decay: T, beta: T, grad: T" "" "")
    ("PowerSign" ["m"] "lr: T, logbase: T, sign_decay: T, beta: T, grad: T" "" "")
} }
optimizers! { resource_rows reference_rows: {
    ("ProximalGradientDescent" [] "alpha: T, l1: T, l2: T, grad: T" "" "")
} }
optimizers! { reference: {
    ("GradientDescent" [] "alpha: T, delta: T" "" "")
    (
        "Adam" ["m" "v"] "beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T" ""
        "; use_nesterov: bool = false"
    )
} }
optimizers! { resource: {
    (
        "AdamWithAmsgrad" ["m" "v" "vhat"]
        "beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T" "" ""
    )
} }
