//! A fused node's ops one by one, with their own kernels: where shapes do not suit its program.

use std::sync::Arc;

use smallvec::SmallVec;

use super::float::Float;
use super::layout::{apart, shape_of};
use super::program::{Joined, Program, Step, Window};
use crate::kernels::support::unique_slice;
use crate::kernels::{AnyKernel, Kernel, KernelContext, KernelError, Slot, build};
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node};
use engine_core::ops;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// The ops' own kernels, one by one.
pub(super) fn alone<T: Float>(
    program: &Program,
    ctx: &mut KernelContext<'_>,
    inputs: SmallVec<[Tensor; 8]>,
) -> Result<SmallVec<[Tensor; 4]>, KernelError> {
    let kernels =
        program.alone.get_or_init(|| program.steps.iter().map(|step| own_kernel(step, program.dtype)).collect());
    let Some(kernels) = kernels else {
        return Err(KernelError::invalid("an op of the fused node has no kernel of its own"));
    };
    let mut values: Vec<Tensor> = Vec::with_capacity(inputs.len() + kernels.len());
    for (input, window) in inputs.into_iter().zip(&program.windows) {
        values.push(match window {
            Some(window) => cut::<T>(ctx, &input, *window)?,
            None => input,
        });
    }
    for (step, kernel) in program.steps.iter().zip(kernels) {
        let operands = step.operands.iter().take(step.def.n_operands);
        let mut inputs: SmallVec<[Slot; 2]> = operands.map(|o| Some(values[*o].clone())).collect();
        let mut outputs: [Slot; 1] = [None];
        let mut own = KernelContext { inputs: &mut inputs, outputs: &mut outputs, ..*ctx };
        kernel.compute(&mut own).map_err(|error| KernelError::invalid(format!("{}: {error}", step.def.name)))?;
        let [output] = outputs;
        values.push(output.ok_or(KernelError::MissingInput(0))?);
    }
    let results = &values[program.n_inputs..];
    program.outputs.iter().map(|joined| join::<T>(ctx, joined, results)).collect()
}

/// What a window shows of a tensor.
fn cut<T: Float>(ctx: &KernelContext<'_>, input: &Tensor, window: Window) -> Result<Tensor, KernelError> {
    let Some(shape) = shape_of(input.shape(), Some(window)) else {
        let Window { axis, begin, size } = window;
        let text = format!("{size} positions from {begin} on along axis {axis} are not within shape {}", input.shape());
        return Err(KernelError::invalid(text));
    };
    let (lie, values, n) = (apart(input.shape(), window), input.slice::<T>()?, shape.n_elements());
    ctx.filled::<T>(shape, |out| {
        if n > 0 {
            lie.runs(0, n, |here, there, n| out[here..here + n].copy_from_slice(&values[there..there + n]));
        }
        Ok(())
    })
}

/// Results side by side.
fn join<T: Float>(ctx: &KernelContext<'_>, joined: &Joined, results: &[Tensor]) -> Result<Tensor, KernelError> {
    let first = &results[joined.results[0]];
    if joined.results.len() == 1 {
        return Ok(first.clone());
    }
    let parts = || joined.results.iter().map(|result| &results[*result]);
    let mut dims: SmallVec<[usize; 4]> = SmallVec::from_slice(first.dims());
    let is_alike = |t: &Tensor| {
        let is_same = |i: usize| i == joined.axis || t.dims()[i] == first.dims()[i];
        t.shape().rank() == first.shape().rank() && (0..t.shape().rank()).all(is_same)
    };
    if joined.axis >= dims.len() || !parts().all(is_alike) {
        let shapes: Vec<&Shape> = parts().map(Tensor::shape).collect();
        return Err(KernelError::invalid(format!("shapes {shapes:?} do not join along axis {}", joined.axis)));
    }
    dims[joined.axis] = parts().map(|part| part.dims()[joined.axis]).sum();
    let mut output = ctx.room::<T>(Shape::new(&dims))?;
    let (shape, out) = (output.shape().clone(), unique_slice::<T>(&mut output)?);
    let mut begin = 0;
    for part in parts() {
        let size = part.dims()[joined.axis];
        let values = part.slice::<T>()?;
        if !values.is_empty() {
            let lie = apart(&shape, Window { axis: joined.axis, begin, size });
            lie.runs(0, values.len(), |here, there, n| out[there..there + n].copy_from_slice(&values[here..here + n]));
        }
        begin += size;
    }
    Ok(output)
}

fn own_kernel(step: &Step, dtype: DType) -> Option<Arc<dyn Kernel>> {
    let op = ops::lookup(step.def.name)?;
    let default = |attr: &ops::AttrDef| match attr.name {
        "T" => Some(Attr::Type(dtype)),
        "N" => Some(Attr::Int(2)),
        _ => attr.default.clone(),
    };
    let attrs = op.attrs.iter().filter_map(|attr| Some((attr.name.to_owned(), default(attr)?))).collect();
    let node = Node {
        id: engine_core::graph::NodeId(u32::MAX),
        name: step.def.name.into(),
        op,
        attrs,
        inputs: Vec::new(),
        control_inputs: Vec::new(),
        device: "".into(),
        outputs: Vec::new(),
    };
    match build(&node, "CPU").ok()? {
        AnyKernel::Sync(kernel) => Some(kernel),
        AnyKernel::Async(_) => None,
    }
}
