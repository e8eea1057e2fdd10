//! Kernels of stateful ops: variables and the updates of the optimizers.
//!
//! Reading a variable shares its value; an update happens in place when no reader holds the value, and otherwise
//! makes a new one, so that a reader never sees a value change (white paper, section 3.1).

use std::sync::Arc;

use super::nn::Float;
use super::support::{Computed, cheap, cpu, cpu_any, kernel, shard_slice, shard_slices};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError, Sharder};
use crate::dtype::{DType, Element};
use crate::graph::Node;
use crate::resources::{ResourceManager, Variable};
use crate::tensor::{ResourceHandle, Tensor};

#[linkme::distributed_slice(KERNEL_TABLES)]
static STATE: &[KernelDef] = &[
    cpu_any("VarHandleOp", var_handle),
    cpu_any("VarIsInitializedOp", |_| cheap(is_initialized)),
    cpu_any("ReadVariableOp", read),
    cpu_any("AssignVariableOp", assign),
    cpu("ResourceApplyGradientDescent", ("T", &[DType::F32]), |_| kernel(gradient_descent::<f32>)),
    cpu("ResourceApplyGradientDescent", ("T", &[DType::F64]), |_| kernel(gradient_descent::<f64>)),
    cpu("ResourceApplyMomentum", ("T", &[DType::F32]), momentum::<f32>),
    cpu("ResourceApplyMomentum", ("T", &[DType::F64]), momentum::<f64>),
    cpu("ResourceApplyAdam", ("T", &[DType::F32]), adam::<f32>),
    cpu("ResourceApplyAdam", ("T", &[DType::F64]), adam::<f64>),
];

pub(super) fn var_handle(node: &Node) -> super::support::Built {
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

/// The variable whose handle is input `i`, and its name.
pub(super) fn variable(ctx: &KernelContext<'_>, i: usize) -> Result<(Arc<Variable>, Arc<str>), KernelError> {
    let handle = ctx.input(i)?.handle()?;
    match handle.object.clone().downcast::<Variable>() {
        Ok(v) => Ok((v, handle.name.clone())),
        Err(_) => Err(KernelError::invalid(format!("{} is not a variable", handle.name))),
    }
}

pub(super) fn is_initialized(ctx: &mut KernelContext<'_>) -> Computed {
    let is = variable(ctx, 0)?.0.value.read().is_some();
    ctx.set(0, Tensor::scalar(is));
    Ok(())
}

fn read(node: &Node) -> super::support::Built {
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

fn assign(node: &Node) -> super::support::Built {
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

/// Calls `f` with the variable's elements for writing, copied first where a reader shares them.
fn update<T: Element>(
    ctx: &KernelContext<'_>,
    i: usize,
    expected: &Tensor,
    f: impl FnOnce(&mut [T], &dyn Sharder) -> Computed,
) -> Computed {
    let (variable, name) = variable(ctx, i)?;
    let mut slot = variable.value.write();
    let value = slot.as_mut().ok_or_else(|| KernelError::Uninitialised(name.clone()))?;
    if value.shape() != expected.shape() {
        let (is, got) = (value.shape(), expected.shape());
        return Err(KernelError::invalid(format!("variable {name} has shape {is}, the update {got}")));
    }
    if !value.is_unique() {
        let copy = ctx.filled::<T>(value.shape().clone(), |out| {
            out.copy_from_slice(value.slice::<T>()?);
            Ok(())
        })?;
        *value = copy;
    }
    f(super::support::unique_slice::<T>(value)?, ctx.sharder)
}

/// `var -= alpha * delta`.
fn gradient_descent<T: Float>(ctx: &mut KernelContext<'_>) -> Computed {
    let alpha = ctx.item::<T>(1)?;
    let delta = ctx.input(2)?;
    let d = delta.slice::<T>()?;
    update::<T>(ctx, 0, delta, |value, sharder| {
        shard_slice(sharder, value, 1, 300, |at, part| {
            part.iter_mut().zip(&d[at..]).for_each(|(v, d)| *v = *v - alpha * *d);
        });
        Ok(())
    })
}

/// `accum = momentum * accum + grad; var -= lr * accum` (Nesterov: `var -= lr * (grad + momentum * accum)`).
fn momentum<T: Float>(node: &Node) -> super::support::Built {
    let nesterov = *node.flag("use_nesterov")?;
    kernel(move |c| {
        let (lr, mu) = (c.item::<T>(2)?, c.item::<T>(4)?);
        let grad = c.input(3)?;
        let g = grad.slice::<T>()?;
        distinct(c, &[0, 1])?;
        update::<T>(c, 0, grad, |value, sharder| {
            update::<T>(c, 1, grad, |accum, _| {
                // One pass: what counts is how often memory is gone over.
                shard_slices(sharder, value, [accum], 400, |at, value, [accum]| {
                    let all = value.iter_mut().zip(accum).zip(&g[at..]);
                    match nesterov {
                        false => all.for_each(|((v, a), g)| {
                            *a = *a * mu + *g;
                            *v = *v - lr * *a;
                        }),
                        true => all.for_each(|((v, a), g)| {
                            *a = *a * mu + *g;
                            *v = *v - lr * (*g + mu * *a);
                        }),
                    }
                });
                Ok(())
            })
        })
    })
}

/// Adam, with the bias correction in the rate: `lr * sqrt(1 - beta2^t) / (1 - beta1^t)`.
fn adam<T: Float>(node: &Node) -> super::support::Built {
    let nesterov = *node.flag("use_nesterov")?;
    kernel(move |c| {
        let one = T::from_f64(1.0);
        let (p1, p2, lr) = (c.item::<T>(3)?, c.item::<T>(4)?, c.item::<T>(5)?);
        let (b1, b2, eps) = (c.item::<T>(6)?, c.item::<T>(7)?, c.item::<T>(8)?);
        let grad = c.input(9)?;
        let g = grad.slice::<T>()?;
        let rate = lr * (one - p2).sqrt() / (one - p1);
        distinct(c, &[0, 1, 2])?;
        update::<T>(c, 0, grad, |value, sharder| {
            update::<T>(c, 1, grad, |m, _| {
                update::<T>(c, 2, grad, |v, _| {
                    shard_slices(sharder, value, [m, v], 1500, |at, value, [m, v]| {
                        for (((value, m), v), g) in value.iter_mut().zip(m).zip(v).zip(&g[at..]) {
                            *m = *m + (*g - *m) * (one - b1);
                            *v = *v + (*g * *g - *v) * (one - b2);
                            let direction = if nesterov { *g * (one - b1) + b1 * *m } else { *m };
                            *value = *value - rate * direction / (v.sqrt() + eps);
                        }
                    });
                    Ok(())
                })
            })
        })
    })
}

/// One variable in two roles would wait for its own lock.
fn distinct(ctx: &KernelContext<'_>, inputs: &[usize]) -> Computed {
    for (n, i) in inputs.iter().enumerate() {
        for j in &inputs[..n] {
            if Arc::ptr_eq(&variable(ctx, *i)?.0, &variable(ctx, *j)?.0) {
                return Err(KernelError::invalid("the variable and its slots must be different variables"));
            }
        }
    }
    Ok(())
}
