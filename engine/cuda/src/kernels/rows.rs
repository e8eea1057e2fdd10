//! Softmax and cross entropies.

use engine::geometry::Rows;
use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, KernelDef, KernelError, measure};
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
    gpu("SoftmaxCrossEntropyWithLogits", ("T", FLOATS), |node| cross_entropy(node, false)),
    gpu("SparseSoftmaxCrossEntropyWithLogits", ("T", FLOATS), |node| cross_entropy(node, true)),
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
        let Rows { n_rows, n } = Rows::new(x.shape())?;
        let gpu = device(ctx)?;
        let (y, to) = gpu.room(x.dtype(), x.shape().clone())?;
        let arguments = [n_rows.into(), n.into(), usize::from(is_log).into(), from.into(), to.into()];
        start(gpu, "softmax", x.dtype(), n_rows, &arguments)?;
        ctx.set(0, y);
        Ok(())
    })
}

/// The labels are the class of each row, or the probabilities of all.
fn cross_entropy(node: &Node, has_classes: bool) -> Built {
    kernel(node, move |ctx| {
        let Rows { n_rows, n } = measure::labelled_rows(ctx, has_classes)?;
        let ((x, from), (labels, at_labels)) = (operand(ctx, 0)?, operand(ctx, 1)?);
        let gpu = device(ctx)?;
        let ((loss, at), (grad, to)) =
            (gpu.room(x.dtype(), Shape::new(&[n_rows]))?, gpu.room(x.dtype(), x.shape().clone())?);
        let name = match labels.dtype() {
            DType::I64 if has_classes => "sparse64",
            _ if has_classes => "sparse32",
            _ => "cross_entropy",
        };
        let arguments = [n_rows.into(), n.into(), from.into(), at_labels.into(), at.into(), to.into()];
        start(gpu, name, x.dtype(), n_rows, &arguments)?;
        ctx.set(0, loss);
        ctx.set(1, grad);
        Ok(())
    })
}
