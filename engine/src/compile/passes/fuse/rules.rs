//! Which nodes may be fused, and which of them have a place for their value.

use rustc_hash::FxHashMap;

use crate::compile::{Source, Uses, WorkGraph, WorkId, WorkNode};
use engine_core::dtype::DType;
use engine_core::graph::Attr;
use engine_core::shape::PartialShape;
use engine_ops::kernels::formula::{Operands, fused_op};

/// Steps of one program.
pub(super) const MAX_STEPS: usize = 48;
/// Outputs of one fused node.
pub(super) const MAX_OUTPUTS: usize = 16;

/// Steps that a node becomes.
pub(super) fn n_steps(node: &WorkNode) -> usize {
    if node.op() == "AddN" { node.inputs.len().saturating_sub(1) } else { 1 }
}

pub(super) fn is_fusable(graph: &WorkGraph, node: &WorkNode) -> bool {
    let Some(def) = fused_op(node.op()) else { return false };
    let [output] = node.outputs() else { return false };
    let is_default = |name: &str, value: &[u8]| match node.def.attrs.get(name) {
        Some(Attr::Str(v)) => v == value,
        _ => true,
    };
    let n_fits = match def.operands {
        Operands::Several => node.inputs.len() >= 2,
        _ => node.inputs.len() == def.n_operands,
    };
    let repeats = |source: &Source| {
        graph.port(*source).is_some_and(|(dtype, shape)| dtype == output.dtype && repeats_whole(shape, &output.shape))
    };
    n_fits
        && matches!(output.dtype, DType::F32 | DType::F64)
        && is_default("data_format", b"NHWC")
        && node.inputs.iter().all(repeats)
}

/// Whether an input of this shape runs along the output as a scalar, as a row or entirely, as far as known.
fn repeats_whole(input: &PartialShape, output: &PartialShape) -> bool {
    let (Some(input), Some(output)) = (input.dims(), output.dims()) else { return true };
    let begin = input.iter().position(|d| *d != Some(1)).unwrap_or(input.len());
    output.ends_with(&input[begin..])
}

pub(super) fn is_same_place(a: &WorkNode, b: &WorkNode) -> bool {
    a.device == b.device && a.def.device == b.def.device
}

/// Where members are, by number.
pub(super) type Members = FxHashMap<WorkId, usize>;

/// Whether a member's value is used outside of its cluster.
pub(super) fn is_exposed(uses: &Uses, id: WorkId, is_member: impl Fn(WorkId) -> bool) -> bool {
    uses.is_wanted(id) || uses.of_node(id).iter().any(|one| one.edge.is_none() || !is_member(one.consumer))
}
