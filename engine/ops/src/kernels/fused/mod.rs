//! Fused element-wise kernels: a small program over blocks that stay in the cache, so that memory is touched once.
//!
//! The program's values are blocks of elements in registers (vectors in the first-level cache); each step is one vectorised
//! loop ([`run`]). Operands of the output's shape are read where they lie, scalars and rows are repeated into a block once
//! ([`layout`]). Inputs may be windows of larger tensors (what `Split` and `Slice` cut out), and results may be written side
//! by side (what `ConcatV2` puts together); any step's result can be an output. Where the inputs' shapes turn out otherwise
//! (columns, two kinds of rows, shapes that do not fit) the ops' own kernels run one by one ([`alone`]), with the results
//! and the errors that they have alone.
//!
//! ```text
//! inputs x, b (row), s (scalar)       ops      ["AddV2", "Tanh", "Mul"]
//! operands: numbers of inputs, then   operands [0, 1,   3, 3,   4, 2]
//! of results; a unary op has one twice
//! windows: axis, begin, size of each  windows  [-1, 0, 0,  -1, 0, 0,  -1, 0, 0]   (axis -1: the whole input)
//! results: steps that are outputs     results  [1, 2]
//! joined: axis and number of results  joined   [0, 1,  0, 1]                      (each output is one result)
//! of each output
//! ```

mod alone;
mod float;
mod layout;
mod program;
mod run;

use super::support::{Built, cpu};
use super::{KERNEL_TABLES, KernelDef};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use float::Float;

fn make<T: Float>(node: &Node) -> Built {
    Ok(Box::new(run::Fused::<T>::new(program::Program::new(node)?)))
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static FUSED: &[KernelDef] = &[
    cpu("_FusedElementwise", ("T", &[DType::F32]), make::<f32>),
    cpu("_FusedElementwise", ("T", &[DType::F64]), make::<f64>),
];
