//! Gradients of conditionals: what a `Merge` joined a `Switch` parts, and the other way round.

use super::{GRADIENT_TABLES, GradientContext, GradientError, GradientSpec, Rule::Function, Rule::Zero};
use crate::graph::{Attr, Output};
use crate::tensor::Tensor;

type Done = Result<(), GradientError>;

#[linkme::distributed_slice(GRADIENT_TABLES)]
static CONTROL_FLOW: &[GradientSpec] = &[
    ("Switch", Function(switch)),
    ("RefSwitch", Function(switch)),
    ("Merge", Function(merge)),
    ("RefMerge", Function(merge)),
    ("IdentityN", Function(identity_n)),
    ("ToBool", Zero),
    ("OptionalNone", Zero),
    ("OptionalHasValue", Zero),
    ("OptionalFromValue", Function(from_value)),
    ("OptionalGetValue", Function(get_value)),
    ("StackV2", Zero),
    ("StackPushV2", Function(push)),
    ("StackPopV2", Function(pop)),
];

/// The gradient of the side that was taken; where nothing comes back from a side, zeros if that one was taken.
fn switch(c: &mut GradientContext<'_>) -> Done {
    let (data, pred) = (c.input(0), c.input(1));
    let mut sides = [c.arrived(0), c.arrived(1)];
    for (port, side) in sides.iter_mut().enumerate().filter(|(_, side)| side.is_none()) {
        let zeros = c.zeros(data)?;
        let switched = c.op("Switch", &[zeros, pred])?;
        *side = Some(Output { port: port as u32, ..switched });
    }
    let sides: Vec<Output> = sides.into_iter().flatten().collect();
    let grad = c.op_of_list("Merge", &sides, &[], &[])?;
    c.set(0, grad);
    Ok(())
}

/// To the input that was alive, and dead to the others.
fn merge(c: &mut GradientContext<'_>) -> Done {
    let Some(grad) = c.arrived(0) else { return Ok(()) };
    let n = c.node().inputs.len();
    if let Some((pred, side_of_first)) = c.sides_of_inputs() {
        let switch = c.op("Switch", &[grad, pred])?;
        c.set(0, Output { port: side_of_first, ..switch });
        c.set(1, Output { port: 1 - side_of_first, ..switch });
        return Ok(());
    }
    for i in 0..n {
        let index = c.constant(Tensor::scalar(i as i32))?;
        let alive = c.op_with("Equal", &[c.output(1), index], &[("incompatible_shape_error", Attr::Bool(true))])?;
        let switch = c.op("Switch", &[grad, alive])?;
        c.set(i, Output { port: 1, ..switch });
    }
    Ok(())
}

fn identity_n(c: &mut GradientContext<'_>) -> Done {
    for i in 0..c.node().inputs.len() {
        if let Some(grad) = c.arrived(i) {
            c.set(i, grad);
        }
    }
    Ok(())
}

/// A push passes its value on; what the way back popped of it comes with the loop that it is in.
fn push(c: &mut GradientContext<'_>) -> Done {
    let grad = c.grad(0)?;
    c.set(1, grad);
    Ok(())
}

/// Pushed, to be popped where the value was pushed.
fn pop(c: &mut GradientContext<'_>) -> Done {
    let grad = c.grad(0)?;
    c.push_gradient(grad)
}

fn from_value(c: &mut GradientContext<'_>) -> Done {
    let inputs = c.node().inputs.clone();
    let types = inputs.iter().map(|x| c.dtype(*x)).collect::<Result<Vec<_>, _>>()?;
    let shapes = inputs.iter().map(|x| c.shape(*x)).collect::<Result<Vec<_>, _>>()?;
    let attrs = [("output_types", Attr::ListType(types)), ("output_shapes", Attr::ListShape(shapes))];
    let grad = c.grad(0)?;
    let got = c.op_with("OptionalGetValue", &[grad], &attrs)?;
    (0..inputs.len()).for_each(|i| c.set(i, Output { port: i as u32, ..got }));
    Ok(())
}

fn get_value(c: &mut GradientContext<'_>) -> Done {
    let grads = (0..c.node().outputs.len()).map(|i| c.grad(i)).collect::<Result<Vec<_>, _>>()?;
    let value = c.op_of_list("OptionalFromValue", &grads, &[], &[])?;
    c.set(0, value);
    Ok(())
}
