//! Kernels of values that may be missing: such a value is the list of its components, empty where it is missing.

use super::support::{Built, Computed, cheap, cpu_any};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::PartialShape;
use engine_core::tensor::Tensor;
use engine_core::tensor_list::TensorList;

#[linkme::distributed_slice(KERNEL_TABLES)]
static OPTIONAL: &[KernelDef] = &[
    cpu_any("OptionalFromValue", |_| cheap(from_value)),
    cpu_any("OptionalNone", |_| cheap(missing)),
    cpu_any("OptionalHasValue", |_| cheap(has_value)),
    cpu_any("OptionalGetValue", get_value),
    cpu_any("_SwitchN", |_| cheap(switch_n)),
];

fn from_value(ctx: &mut KernelContext<'_>) -> Computed {
    let components = (0..ctx.inputs.len()).map(|i| Ok(Some(ctx.take(i)?))).collect::<Result<Vec<_>, KernelError>>()?;
    let list = TensorList::new(DType::Variant, PartialShape::unknown()).with(components);
    ctx.set(0, Tensor::list(list));
    Ok(())
}

fn missing(ctx: &mut KernelContext<'_>) -> Computed {
    ctx.set(0, Tensor::list(TensorList::new(DType::Variant, PartialShape::unknown())));
    Ok(())
}

fn has_value(ctx: &mut KernelContext<'_>) -> Computed {
    let has = !ctx.input(0)?.as_list()?.tensors.is_empty();
    ctx.set(0, Tensor::scalar(has));
    Ok(())
}

fn get_value(node: &Node) -> Built {
    let types = node.dtypes("output_types")?.clone();
    cheap(move |c| {
        let list = c.input(0)?.as_list()?.clone();
        if list.tensors.is_empty() {
            return Err(KernelError::invalid("the value is missing"));
        }
        let got: Vec<DType> = list.tensors.iter().flatten().map(Tensor::dtype).collect();
        if got != types {
            return Err(KernelError::invalid(format!("the value is of {got:?}, expected {types:?}")));
        }
        for (i, component) in list.tensors.iter().flatten().enumerate() {
            c.set(i, component.clone());
        }
        Ok(())
    })
}

/// The value at the output that the index says, the last one where it says none; the others stay empty: dead.
fn switch_n(ctx: &mut KernelContext<'_>) -> Computed {
    let (value, index) = (ctx.take(0)?, ctx.item::<i32>(1)?);
    let last = ctx.outputs.len().saturating_sub(1);
    let side = usize::try_from(index).map_or(last, |side| side.min(last));
    if !ctx.outputs.is_empty() {
        ctx.set(side, value);
    }
    Ok(())
}
