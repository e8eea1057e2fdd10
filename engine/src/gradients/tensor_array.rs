//! Gradients of arrays of tensors: an array of gradients for each, which the same places of it are read and written.
//!
//! The gradient of an array's `flow` orders the accesses of the array of gradients. That array is found by the handle of
//! the one that it belongs to and by the name of the call of [`super::gradients`], its `source`.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use crate::graph::{Attr, Output};

type Done = Result<(), GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static TENSOR_ARRAY: &[GradientSpec] = &[
    ("TensorArrayV3", Zero),
    ("TensorArrayGradV3", Zero),
    ("TensorArraySizeV3", Zero),
    ("TensorArrayCloseV3", Zero),
    ("TensorArrayReadV3", Function(read)),
    ("TensorArrayWriteV3", Function(write)),
    ("TensorArrayGatherV3", Function(gather)),
    ("TensorArrayScatterV3", Function(scatter)),
    ("TensorArrayConcatV3", Function(concat)),
    ("TensorArraySplitV3", Function(split)),
];

/// The array of gradients, once `flow` is there: its handle and flow.
fn array(c: &mut GradientContext<'_>, flow: Output) -> Result<(Output, Output), GradientError> {
    let source = c.source();
    let handle = c.op_with("TensorArrayGradV3", &[c.input(0), flow], &[("source", Attr::from(source.as_str()))])?;
    let ordered = c.op("Identity", &[flow])?;
    Ok((handle, c.after(ordered, handle)?))
}

fn element_type(c: &GradientContext<'_>, of: Output) -> Result<(&'static str, Attr), GradientError> {
    Ok(("dtype", Attr::Type(c.dtype(of)?)))
}

/// What was read is written to.
fn read(c: &mut GradientContext<'_>) -> Done {
    let (index, flow, grad) = (c.input(1), c.input(2), c.grad(0)?);
    let (handle, flow) = array(c, flow)?;
    let written = c.op("TensorArrayWriteV3", &[handle, index, grad, flow])?;
    c.set(2, written);
    Ok(())
}

/// What was written is read.
fn write(c: &mut GradientContext<'_>) -> Done {
    let (index, value, flow) = (c.input(1), c.input(2), c.grad(0)?);
    let (handle, ordered) = array(c, flow)?;
    let dtype = element_type(c, value)?;
    let grad = c.op_with("TensorArrayReadV3", &[handle, index, ordered], &[dtype])?;
    let grad = c.with_shape_of(grad, value)?;
    c.set(2, grad);
    c.set(3, flow);
    Ok(())
}

fn gather(c: &mut GradientContext<'_>) -> Done {
    let (indices, flow, grad) = (c.input(1), c.input(2), c.grad(0)?);
    let (handle, flow) = array(c, flow)?;
    let scattered = c.op("TensorArrayScatterV3", &[handle, indices, grad, flow])?;
    c.set(2, scattered);
    Ok(())
}

fn scatter(c: &mut GradientContext<'_>) -> Done {
    let (indices, value, flow) = (c.input(1), c.input(2), c.grad(0)?);
    let (handle, ordered) = array(c, flow)?;
    let dtype = element_type(c, value)?;
    let grad = c.op_with("TensorArrayGatherV3", &[handle, indices, ordered], &[dtype])?;
    let grad = c.with_shape_of(grad, value)?;
    c.set(2, grad);
    c.set(3, flow);
    Ok(())
}

fn concat(c: &mut GradientContext<'_>) -> Done {
    let (flow, grad, lengths) = (c.input(1), c.grad(0)?, c.output(1));
    let (handle, flow) = array(c, flow)?;
    let written = c.op("TensorArraySplitV3", &[handle, grad, lengths, flow])?;
    c.set(1, written);
    Ok(())
}

fn split(c: &mut GradientContext<'_>) -> Done {
    let (value, flow) = (c.input(1), c.grad(0)?);
    let (handle, ordered) = array(c, flow)?;
    let dtype = element_type(c, value)?;
    let grad = c.op_with("TensorArrayConcatV3", &[handle, ordered], &[dtype])?;
    let grad = c.with_shape_of(grad, value)?;
    c.set(1, grad);
    c.set(3, flow);
    Ok(())
}
