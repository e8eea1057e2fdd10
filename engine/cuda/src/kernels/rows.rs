//! Softmax and cross entropies.

use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine::{DType, Shape};

use super::support::{FLOATS, THREADS, Unit, device, gpu, kernel, operand};
use crate::backend::Grid;
use crate::gpu::{Argument, Gpu};

/// Its kernels.
pub const UNIT: Unit = Unit {
    name: "rows.cu",
    text: include_str!("../cu/rows.cu"),
    kernels: &["softmax", "cross_entropy", "sparse32", "sparse64"],
    dtypes: FLOATS,
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static ROWS: &[KernelDef] = &[
    gpu("Softmax", ("T", FLOATS), |node| softmax(node, false)),
    gpu("LogSoftmax", ("T", FLOATS), |node| softmax(node, true)),
    gpu("SoftmaxCrossEntropyWithLogits", ("T", FLOATS), cross_entropy),
    gpu("SparseSoftmaxCrossEntropyWithLogits", ("T", FLOATS), sparse),
];

/// A block per row.
fn start(gpu: &Gpu, name: &str, dtype: DType, rows: usize, arguments: &[Argument]) -> Result<(), KernelError> {
    if rows == 0 {
        return Ok(());
    }
    let function = UNIT.kernel(gpu, name, dtype)?;
    let grid = Grid { blocks: [rows.min(1 << 20) as u32, 1, 1], threads: THREADS };
    // SAFETY: the callers give what the kernels take: rows of `n` elements, and as many results.
    unsafe { gpu.launch(function, grid, arguments) }
}

fn softmax(node: &Node, is_log: bool) -> Built {
    kernel(node, move |ctx| {
        let (x, from) = operand(ctx, 0)?;
        let Some(n) = x.dims().last().copied() else {
            return Err(KernelError::invalid("logits must have at least one dimension"));
        };
        let gpu = device(ctx)?;
        let (y, to) = gpu.room(x.dtype(), x.shape().clone())?;
        let rows = x.len().checked_div(n).unwrap_or(0);
        let arguments = [rows.into(), n.into(), usize::from(is_log).into(), from.into(), to.into()];
        start(gpu, "softmax", x.dtype(), rows, &arguments)?;
        ctx.set(0, y);
        Ok(())
    })
}

fn matrix(ctx: &KernelContext<'_>) -> Result<(usize, usize), KernelError> {
    match ctx.input(0)?.dims() {
        [rows, n] => Ok((*rows, *n)),
        _ => Err(KernelError::invalid(format!("logits must be a matrix, got shape {}", ctx.input(0)?.shape()))),
    }
}

fn cross_entropy(node: &Node) -> Built {
    kernel(node, |ctx| {
        let (rows, n) = matrix(ctx)?;
        let ((x, from), (labels, p)) = (operand(ctx, 0)?, operand(ctx, 1)?);
        if labels.shape() != x.shape() {
            let text = format!("logits {} and labels {} must have one shape", x.shape(), labels.shape());
            return Err(KernelError::invalid(text));
        }
        let gpu = device(ctx)?;
        let ((loss, at), (grad, to)) =
            (gpu.room(x.dtype(), Shape::new(&[rows]))?, gpu.room(x.dtype(), x.shape().clone())?);
        let arguments = [rows.into(), n.into(), from.into(), p.into(), at.into(), to.into()];
        start(gpu, "cross_entropy", x.dtype(), rows, &arguments)?;
        ctx.set(0, loss);
        ctx.set(1, grad);
        Ok(())
    })
}

fn sparse(node: &Node) -> Built {
    kernel(node, |ctx| {
        let (rows, n) = matrix(ctx)?;
        if ctx.input(1)?.len() != rows {
            return Err(KernelError::invalid(format!("{} labels for {rows} rows of logits", ctx.input(1)?.len())));
        }
        let ((x, from), (labels, at_labels)) = (operand(ctx, 0)?, operand(ctx, 1)?);
        let gpu = device(ctx)?;
        let ((loss, at), (grad, to)) =
            (gpu.room(x.dtype(), Shape::new(&[rows]))?, gpu.room(x.dtype(), x.shape().clone())?);
        let name = if labels.dtype() == DType::I64 { "sparse64" } else { "sparse32" };
        let arguments = [rows.into(), n.into(), from.into(), at_labels.into(), at.into(), to.into()];
        start(gpu, name, x.dtype(), rows, &arguments)?;
        ctx.set(0, loss);
        ctx.set(1, grad);
        Ok(())
    })
}
