//! Kernels that lowered function nodes need, and that of a call which is made while a step runs.

use super::support::{Built, Computed, cheap, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static FUNCTIONAL: &[KernelDef] = &[
    cpu_any("ToBool", |_| cheap(to_bool)),
    cpu_any("IdentityN", identity_n),
    cpu_any("_RecursiveCall", recursive_call),
];

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
