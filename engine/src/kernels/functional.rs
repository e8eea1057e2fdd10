//! Kernels that lowered function nodes need, and calls of functions while a step runs.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::support::{Built, Computed, cheap, cpu_any, kernel};
use super::{Cancellation, KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use crate::checkpoint::{CheckpointError, Fields};
use crate::dtype::DType;
use crate::graph::{FuncRef, Node};
use crate::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static FUNCTIONAL: &[KernelDef] = &[
    cpu_any("ToBool", |_| cheap(to_bool)),
    cpu_any("IdentityN", identity_n),
    cpu_any("_RecursiveCall", recursive_call),
];

/// Runs functions of the graph's library within a step, in the caller's thread.
pub(crate) trait Functions: Sync {
    /// What the function gives for these arguments; `types` of its results. Ends early when `cancellation` says so.
    fn call(
        &self,
        f: &FuncRef,
        args: Vec<Tensor>,
        types: &[DType],
        cancellation: Cancellation,
    ) -> Result<Vec<Tensor>, KernelError>;

    /// The kernels of the session, whose own state checkpoints have; `None` outside of sessions.
    fn kernels(&self) -> Option<&dyn KernelStates> {
        None
    }
}

/// The state that a session's kernels hold themselves (random generators), by the names of their nodes.
pub(crate) trait KernelStates {
    /// The state of those that were made.
    fn save(&self) -> Vec<(Arc<str>, Fields)>;

    /// Gives them their state, those that are made later included.
    fn restore(&self, state: FxHashMap<Arc<str>, Fields>) -> Result<(), CheckpointError>;
}

/// There are none: outside of sessions.
pub(crate) struct NoFunctions;

impl Functions for NoFunctions {
    fn call(&self, f: &FuncRef, _: Vec<Tensor>, _: &[DType], _: Cancellation) -> Result<Vec<Tensor>, KernelError> {
        Err(KernelError::invalid(format!("function {} cannot be called outside of a session", f.name)))
    }
}

fn recursive_call(node: &Node) -> Built {
    let (f, types) = (node.func("f")?.clone(), node.dtypes("Tout")?.clone());
    kernel(move |c| {
        let args = (0..c.inputs.len()).map(|i| c.take(i)).collect::<Result<Vec<_>, _>>()?;
        let results = c.functions.call(&f, args, &types, c.cancellation())?;
        results.into_iter().enumerate().for_each(|(i, value)| c.set(i, value));
        Ok(())
    })
}

/// A scalar is true unless it is zero or an empty string; any other tensor unless it has no elements.
fn to_bool(ctx: &mut KernelContext<'_>) -> Computed {
    let x = ctx.input(0)?;
    let truth = match (x.shape().rank(), x.dtype()) {
        (1.., _) => !x.is_empty(),
        (0, DType::F32) => x.item::<f32>()? != 0.0,
        (0, DType::F64) => x.item::<f64>()? != 0.0,
        (0, DType::String) => x.strings()?.iter().any(|s| !s.is_empty()),
        (0, DType::Resource | DType::Variant) => {
            return Err(KernelError::invalid(format!("a {} is neither true nor false", x.dtype())));
        }
        // Of the 16-bit floats only zeros have no bit but the sign.
        (0, DType::F16 | DType::BF16) => matches!(x.bytes(), [low, high] if *low != 0 || high & 0x7f != 0),
        (0, _) => x.bytes().iter().any(|b| *b != 0),
    };
    ctx.set(0, Tensor::scalar(truth));
    Ok(())
}

fn identity_n(_: &Node) -> Built {
    cheap(|c| {
        for i in 0..c.inputs.len() {
            let x = c.take(i)?;
            c.set(i, x);
        }
        Ok(())
    })
}
