//! Kernels of variables behind handles. Their updates: [`super::training`].
//!
//! Reading a variable shares its value; an update happens in place when no reader holds the value, and otherwise
//! makes a new one, so that a reader never sees a value change (white paper, section 3.1).

use std::sync::Arc;

use super::support::{Built, Computed, cheap, cpu_any};
use super::update::variable;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::graph::Node;
use engine_core::resources::{ResourceManager, Variable};
use engine_core::tensor::{ResourceHandle, Tensor};

#[linkme::distributed_slice(KERNEL_TABLES)]
static STATE: &[KernelDef] = &[
    cpu_any("VarHandleOp", var_handle),
    cpu_any("VarIsInitializedOp", |_| cheap(is_initialized)),
    cpu_any("ReadVariableOp", read),
    cpu_any("AssignVariableOp", assign),
];

pub(super) fn var_handle(node: &Node) -> Built {
    let container = match node.text("container")? {
        c if c.is_empty() => ResourceManager::DEFAULT_CONTAINER.into(),
        c => Arc::<str>::from(c),
    };
    let name = match node.text("shared_name")? {
        s if s.is_empty() => node.name.clone(),
        s => s.into(),
    };
    cheap(move |c| {
        let object = c.resources.find_or_create(&container, &name, Variable::default)?;
        c.set(0, Tensor::resource(ResourceHandle { container: container.clone(), name: name.clone(), object }));
        Ok(())
    })
}

pub(super) fn is_initialized(ctx: &mut KernelContext<'_>) -> Computed {
    let is = variable(ctx, 0)?.0.value.read().is_some();
    ctx.set(0, Tensor::scalar(is));
    Ok(())
}

fn read(node: &Node) -> Built {
    let dtype = *node.dtype("dtype")?;
    cheap(move |c| {
        let (variable, name) = variable(c, 0)?;
        let value = variable.value.read().clone().ok_or(KernelError::Uninitialised(name))?;
        if value.dtype() != dtype {
            return Err(KernelError::invalid(format!("the variable holds {}, expected {dtype}", value.dtype())));
        }
        c.set(0, value);
        Ok(())
    })
}

fn assign(node: &Node) -> Built {
    let validate = *node.flag("validate_shape")?;
    cheap(move |c| {
        let variable = variable(c, 0)?.0;
        let value = c.take(1)?;
        let mut slot = variable.value.write();
        if let Some(old) = slot.as_ref().filter(|_| validate)
            && old.shape() != value.shape()
        {
            let (old, new) = (old.shape(), value.shape());
            return Err(KernelError::invalid(format!("the variable has shape {old}, the value {new}")));
        }
        *slot = Some(value);
        Ok(())
    })
}
