//! Kernels of narrow element types by those of wide ones: inputs are converted, the wide kernel computes, outputs are
//! converted back.
//!
//! 16-bit floats compute as f32 and round once per op, as TensorFlow's kernels do; small integers compute as i64 and
//! wrap; complex64 computes as complex128. So an op needs kernels for a few types only, and lists the others:
//!
//! ```text
//! widened("AddV2", ("T", DType::NARROW))
//! ```

use std::sync::Arc;

use smallvec::SmallVec;

use super::support::{Built, Computed};
use super::{AnyKernel, Kernel, KernelContext, KernelDef, KernelError};
use engine_core::convert::convert;
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node};
use engine_core::ops::{ArgDef, ArgType};

/// A line of a kernel table: the op, for these types, by the kernel of the wider type. For all type attributes that
/// are narrow and give the type of an input.
pub const fn widened(op: &'static str, dtypes: (&'static str, &'static [DType])) -> KernelDef {
    super::support::cpu(op, dtypes, |node| build(node, DType::computes_as))
}

/// As [`widened`] with f32 computed in f64 too: functions that are rare, and hard in f32.
pub const fn in_f64(op: &'static str, dtypes: (&'static str, &'static [DType])) -> KernelDef {
    super::support::cpu(op, dtypes, |node| {
        build(node, |dtype| match dtype {
            DType::F16 | DType::BF16 | DType::F32 => Some(DType::F64),
            other => other.computes_as(),
        })
    })
}

/// The wide kernel between conversions.
struct Widened {
    inner: Arc<dyn Kernel>,
    /// For each input, the type that it is converted to.
    inputs: SmallVec<[Option<DType>; 4]>,
    /// For each output, the type that it is converted back to.
    outputs: SmallVec<[Option<DType>; 2]>,
}

fn build(node: &Node, computes_as: fn(DType) -> Option<DType>) -> Built {
    let mut wide = node.clone();
    let of_input = |attr: &str| node.op.inputs.iter().any(|arg| type_attr(arg) == Some(attr));
    let mut changed: SmallVec<[(&str, DType, DType); 2]> = SmallVec::new();
    for (name, attr) in &mut wide.attrs {
        if let Attr::Type(dtype) = attr
            && let Some(to) = computes_as(*dtype)
            && of_input(name)
        {
            let (name, _) = node.attrs.get_key_value(name).ok_or(KernelError::MissingInput(0))?;
            changed.push((name, *dtype, to));
            *dtype = to;
        }
    }
    if changed.is_empty() {
        return Err(KernelError::NoKernel { op: node.op.name, wanted: "CPU: its types have no wider ones".into() });
    }
    let change = |arg: &ArgDef| changed.iter().find(|c| type_attr(arg) == Some(c.0));
    let mut inputs = SmallVec::new();
    for arg in &node.op.inputs {
        let to = change(arg).map(|c| c.2);
        inputs.extend(std::iter::repeat_n(to, n_ports(node, arg)));
    }
    let mut outputs: SmallVec<[Option<DType>; 2]> = SmallVec::new();
    for arg in &node.op.outputs {
        let back = change(arg).map(|c| c.1);
        outputs.extend(std::iter::repeat_n(back, n_ports(node, arg)));
    }
    for (port, back) in wide.outputs.iter_mut().zip(&outputs) {
        if let Some(to) = back.and_then(computes_as) {
            port.dtype = to;
        }
    }
    match super::build(&wide, "CPU")? {
        AnyKernel::Sync(inner) => Ok(Box::new(Widened { inner, inputs, outputs })),
        AnyKernel::Async(_) => Err(KernelError::invalid("an op that waits is not computed through a wider type")),
    }
}

/// The attribute that gives an argument's type.
fn type_attr(arg: &ArgDef) -> Option<&'static str> {
    match arg.ty {
        ArgType::Attr(attr) | ArgType::Repeat(_, attr) => Some(attr),
        _ => None,
    }
}

/// How many ports an argument stands for.
fn n_ports(node: &Node, arg: &ArgDef) -> usize {
    match &arg.ty {
        ArgType::Repeat(n, _) | ArgType::RepeatFixed(n, _) => {
            node.attrs.get(*n).map_or(0, |n| if let Attr::Int(n) = n { usize::try_from(*n).unwrap_or(0) } else { 0 })
        }
        ArgType::List(types) => {
            node.attrs.get(*types).map_or(0, |t| if let Attr::ListType(t) = t { t.len() } else { 0 })
        }
        _ => 1,
    }
}

impl Kernel for Widened {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Computed {
        for (slot, to) in ctx.inputs.iter_mut().zip(&self.inputs) {
            if let (Some(value), Some(to)) = (slot.as_mut(), to) {
                *value = convert(value, *to, ctx.allocator)?;
            }
        }
        self.inner.compute(ctx)?;
        for (slot, back) in ctx.outputs.iter_mut().zip(&self.outputs) {
            if let (Some(value), Some(back)) = (slot.as_mut(), back) {
                *value = convert(value, *back, ctx.allocator)?;
            }
        }
        Ok(())
    }

    fn is_expensive(&self) -> bool {
        self.inner.is_expensive()
    }
}
