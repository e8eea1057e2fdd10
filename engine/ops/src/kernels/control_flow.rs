//! Kernels of the control-flow primitives.
//!
//! The executor does what they say itself in plans with control flow; the kernels are for who computes single nodes.

use super::support::{Built, Computed, cheap, cpu_any};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::graph::Node;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static CONTROL_FLOW: &[KernelDef] = &[
    cpu_any("Switch", |_| cheap(switch)),
    cpu_any("RefSwitch", |_| cheap(switch)),
    cpu_any("Merge", |_| cheap(merge)),
    cpu_any("RefMerge", |_| cheap(merge)),
    cpu_any("Enter", |_| cheap(forward)),
    cpu_any("RefEnter", |_| cheap(forward)),
    cpu_any("Exit", |_| cheap(forward)),
    cpu_any("RefExit", |_| cheap(forward)),
    cpu_any("NextIteration", |_| cheap(forward)),
    cpu_any("RefNextIteration", |_| cheap(forward)),
    cpu_any("LoopCond", |_| cheap(forward)),
    cpu_any("ControlTrigger", |_| cheap(|_| Ok(()))),
    cpu_any("Abort", abort),
];

fn forward(c: &mut KernelContext<'_>) -> Computed {
    let value = c.take(0)?;
    c.set(0, value);
    Ok(())
}

/// The other output stays empty: dead.
fn switch(c: &mut KernelContext<'_>) -> Computed {
    let port = usize::from(c.item::<bool>(1)?);
    let value = c.take(0)?;
    c.set(port, value);
    Ok(())
}

fn merge(c: &mut KernelContext<'_>) -> Computed {
    let first = c.inputs.iter().position(Option::is_some).ok_or_else(|| KernelError::MissingInput(0))?;
    let value = c.take(first)?;
    c.set(0, value);
    c.set(1, Tensor::scalar(first as i32));
    Ok(())
}

/// Ends the step. TensorFlow ends the process; a library does not.
fn abort(node: &Node) -> Built {
    let (message, is_quiet) = (node.text("error_msg")?, *node.flag("exit_without_error")?);
    cheap(move |_| match is_quiet {
        true => Err(KernelError::invalid("aborted")),
        false => Err(KernelError::invalid(format!("aborted: {message}"))),
    })
}
