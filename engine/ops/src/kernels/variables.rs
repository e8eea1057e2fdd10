//! Kernels of references and of what counts, adds to and destroys variables.
//!
//! A reference is, while a step runs, a handle to the variable, as a resource variable's handle is.

use std::sync::Arc;

use super::rows::{Combine, row_function};
use super::state::{is_initialized, var_handle};
use super::support::{Built, Computed, by_word, cheap, cpu_any, kernel, unique_slice};
use super::update::variable;
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::convert::convert;
use engine_core::dtype::{Complex64, DType, Element};
use engine_core::graph::Node;
use engine_core::resources::Variable;
use engine_core::shape::Shape;
use engine_core::tensor::{ResourceHandle, Tensor};

#[linkme::distributed_slice(KERNEL_TABLES)]
static VARIABLES: &[KernelDef] = &[
    cpu_any("Variable", var_handle),
    cpu_any("VariableV2", var_handle),
    cpu_any("TemporaryVariable", temporary),
    cpu_any("DestroyTemporaryVariable", |_| cheap(destroy_temporary)),
    cpu_any("RefIdentity", |_| {
        cheap(|c| {
            let reference = c.take(0)?;
            c.set(0, reference);
            Ok(())
        })
    }),
    cpu_any("ReadReference", |_| cheap(read)),
    cpu_any("Assign", assign),
    cpu_any("AssignAdd", |_| kernel(|c| accumulate(c, Combine::Add))),
    cpu_any("AssignSub", |_| kernel(|c| accumulate(c, Combine::Sub))),
    cpu_any("AssignAddVariableOp", |_| kernel(|c| accumulate(c, Combine::Add))),
    cpu_any("AssignSubVariableOp", |_| kernel(|c| accumulate(c, Combine::Sub))),
    cpu_any("IsVariableInitialized", |_| cheap(is_initialized)),
    cpu_any("CountUpTo", count_up_to),
    cpu_any("ResourceCountUpTo", count_up_to),
    cpu_any("DestroyResourceOp", destroy),
    cpu_any("VariableShape", variable_shape),
];

/// Gives the reference on to output 0, where the op has one.
pub(super) fn pass_on(c: &mut KernelContext<'_>) -> Computed {
    if !c.outputs.is_empty() {
        let reference = c.take(0)?;
        c.set(0, reference);
    }
    Ok(())
}

/// Calls `f` with the value of the variable that input `i` is the handle of, for writing: copied first where a reader
/// shares it.
pub(super) fn with_value<R>(
    c: &KernelContext<'_>,
    i: usize,
    f: impl FnOnce(&mut Tensor) -> Result<R, KernelError>,
) -> Result<R, KernelError> {
    let (variable, name) = variable(c, i)?;
    let mut slot = variable.value.write();
    let value = slot.as_mut().ok_or(KernelError::Uninitialised(name))?;
    if !value.is_unique() && value.dtype() != DType::String {
        *value = copied(c, value)?;
    }
    f(value)
}

/// The value of the variable that input `i` is the handle of.
pub(super) fn value_of(c: &KernelContext<'_>, i: usize) -> Result<Tensor, KernelError> {
    let (variable, name) = variable(c, i)?;
    let value = variable.value.read().clone();
    value.ok_or(KernelError::Uninitialised(name))
}

/// The same elements in memory of their own.
pub(super) fn copied(c: &KernelContext<'_>, t: &Tensor) -> Result<Tensor, KernelError> {
    fn of<T: Element>(c: &KernelContext<'_>, t: &Tensor) -> Result<Tensor, KernelError> {
        let from = t.words::<T>()?;
        c.filled_words::<T>(t.dtype(), t.shape().clone(), |out| {
            out.copy_from_slice(from);
            Ok(())
        })
    }
    by_word!(t.dtype(), of(c, t))
}

fn read(c: &mut KernelContext<'_>) -> Computed {
    let value = value_of(c, 0)?;
    c.set(0, value);
    Ok(())
}

fn assign(node: &Node) -> Built {
    let validate = *node.flag("validate_shape")?;
    cheap(move |c| {
        let (variable, name) = variable(c, 0)?;
        let value = c.take(1)?;
        let mut slot = variable.value.write();
        if let Some(old) = slot.as_ref().filter(|old| validate && old.shape() != value.shape()) {
            let (old, new) = (old.shape(), value.shape());
            return Err(KernelError::invalid(format!("variable {name} has shape {old}, the value {new}")));
        }
        *slot = Some(value);
        drop(slot);
        pass_on(c)
    })
}

/// Adds to, or subtracts from, the variable's value.
fn accumulate(c: &mut KernelContext<'_>, how: Combine) -> Computed {
    let delta = c.input(1)?.clone();
    with_value(c, 0, |value| {
        if value.shape() != delta.shape() || value.dtype() != delta.dtype() {
            let text = format!(
                "the variable is {}{}, the update {}{}",
                value.dtype(),
                value.shape(),
                delta.dtype(),
                delta.shape()
            );
            return Err(KernelError::invalid(text));
        }
        combine_all(c, value, &delta, how)
    })?;
    pass_on(c)
}

/// `value = value how update`, of any number type; the shapes are equal.
fn combine_all(c: &KernelContext<'_>, value: &mut Tensor, update: &Tensor, how: Combine) -> Computed {
    fn of<T: super::rows::Arith>(c: &KernelContext<'_>, value: &mut Tensor, update: &Tensor, how: Combine) -> Computed {
        let (f, from) = (row_function::<T>(how), update.slice::<T>()?);
        let to = unique_slice::<T>(value)?;
        super::support::shard_slice(c.sharder, to, 1, 300, |at, part| {
            let n = part.len();
            f(part, &from[at..at + n]);
        });
        Ok(())
    }
    let dtype = value.dtype();
    match dtype {
        DType::F32 => of::<f32>(c, value, update, how),
        DType::F64 => of::<f64>(c, value, update, how),
        DType::I32 => of::<i32>(c, value, update, how),
        DType::I64 => of::<i64>(c, value, update, how),
        DType::U64 => of::<u64>(c, value, update, how),
        DType::C128 => of::<Complex64>(c, value, update, how),
        _ => {
            let wide = dtype.computes_as().ok_or_else(|| KernelError::invalid(format!("{dtype} is no number")))?;
            let mut sum = convert(value, wide, c.allocator)?;
            combine_all(c, &mut sum, &convert(update, wide, c.allocator)?, how)?;
            *value = convert(&sum, dtype, c.allocator)?;
            Ok(())
        }
    }
}

/// The value before it was counted up by one; an error once it has reached the limit.
fn count_up_to(node: &Node) -> Built {
    let limit = *node.int("limit")?;
    cheap(move |c| {
        let before = with_value(c, 0, |value| {
            let before = value.clone();
            let now = match value.dtype() {
                DType::I32 => i64::from(value.item::<i32>()?),
                _ => value.item::<i64>()?,
            };
            if now >= limit {
                return Err(KernelError::invalid(format!("reached limit of {limit}")));
            }
            *value = convert(&Tensor::scalar(now + 1), value.dtype(), c.allocator)?;
            Ok(before)
        })?;
        c.set(0, before);
        Ok(())
    })
}

/// A variable of the step's own, its elements anything until they are assigned.
fn temporary(node: &Node) -> Built {
    let dtype = *node.dtype("dtype")?;
    let shape = node.shape("shape")?.known().unwrap_or_else(Shape::scalar);
    let name: Arc<str> = match node.text("var_name")? {
        name if name.is_empty() => node.name.clone(),
        name => name.into(),
    };
    cheap(move |c| {
        let container: Arc<str> = "temporary".into();
        let object = c.step_resources.find_or_create(&container, &name, Variable::default)?;
        *object.value.write() = Some(Tensor::zeros(dtype, shape.clone(), c.allocator)?);
        c.set(0, Tensor::resource(ResourceHandle { container, name: name.clone(), object }));
        Ok(())
    })
}

fn destroy_temporary(c: &mut KernelContext<'_>) -> Computed {
    let (variable, name) = variable(c, 0)?;
    let value = variable.value.write().take().ok_or(KernelError::Uninitialised(name))?;
    c.set(0, value);
    Ok(())
}

/// The object goes with its last user; its name is free at once.
fn destroy(node: &Node) -> Built {
    let ignore = *node.flag("ignore_lookup_error")?;
    cheap(move |c| {
        let handle = c.input(0)?.handle()?;
        if !c.resources.remove(&handle.container, &handle.name) && !ignore {
            let (container, name) = (&handle.container, &handle.name);
            return Err(KernelError::invalid(format!("there is no resource {container}/{name}")));
        }
        if let Ok(variable) = handle.object.clone().downcast::<Variable>() {
            *variable.value.write() = None;
        }
        Ok(())
    })
}

fn variable_shape(node: &Node) -> Built {
    let out_type = *node.dtype("out_type")?;
    cheap(move |c| {
        let value = value_of(c, 0)?;
        let dims: Vec<i64> = value.dims().iter().map(|d| *d as i64).collect();
        let out = super::support::indices(out_type, Shape::new(&[dims.len()]), &dims)?;
        c.set(0, out);
        Ok(())
    })
}
