//! The children of a scope that go to its side area: bookkeeping and nodes of very high degree, as in Figure 10 of the
//! TensorFlow white paper and with TensorBoard's bounds (`render.ts`, `extractHighDegrees`).

use super::{build::is_summary, columns::Model, items::ItemId};
use rustc_hash::FxHashMap;

/// Children of a scope, at least, for their degrees to be compared.
const MIN_COMPARED: usize = 15;
/// Control edges become annotations where one end has more than this number of them.
pub(crate) const MAX_CONTROL: u32 = 4;

/// The degrees of a child within its scope.
#[derive(Clone, Copy, Default)]
struct Degree {
    data_in: u32,
    data_out: u32,
    control_in: u32,
    control_out: u32,
}

/// Returns whether each of `scope`'s `children` is drawn in its side area: a `NoOp`, a child of very high degree, or a
/// scope of summaries. Degrees count data edges, or control edges for a child without data edges.
pub(crate) fn are_in_side_area(model: &Model, scope: ItemId, children: &[ItemId]) -> Vec<bool> {
    let idx_of: FxHashMap<ItemId, usize> = children.iter().enumerate().map(|(idx, &c)| (c, idx)).collect();
    let mut degrees = vec![Degree::default(); children.len()];
    for edge in model.metaedges(scope) {
        let (Some(&src), Some(&dst)) = (idx_of.get(&edge.src), idx_of.get(&edge.dst)) else { continue };
        if edge.is_control() {
            degrees[src].control_out += 1;
            degrees[dst].control_in += 1;
        } else {
            degrees[src].data_out += 1;
            degrees[dst].data_in += 1;
        }
    }
    let ins: Vec<u32> = degrees.iter().map(|d| if d.data_in > 0 { d.data_in } else { d.control_in }).collect();
    let outs: Vec<u32> = degrees.iter().map(|d| if d.data_out > 0 { d.data_out } else { d.control_out }).collect();
    let (in_max, out_max) = match children.len() >= MIN_COMPARED {
        true => (outlier_bound(&ins, 1), outlier_bound(&outs, 4)),
        false => (u32::MAX, u32::MAX),
    };
    let is_auxiliary = |idx: usize| {
        let child = children[idx];
        model.op(child) == "NoOp" || ins[idx] > in_max || outs[idx] > out_max || is_summary_scope(model, child)
    };
    (0..children.len()).map(is_auxiliary).collect()
}

/// Whether a scope holds only summary ops and their constants. Such a scope has edges from everywhere and takes no part
/// in the computation.
fn is_summary_scope(model: &Model, child: ItemId) -> bool {
    let mut n_summaries = 0;
    let has_only_summaries = model.op_counts(child).all(|(op, n)| {
        let is_summary = is_summary(op);
        n_summaries += if is_summary { n } else { 0 };
        is_summary || op == "Const"
    });
    has_only_summaries && n_summaries > 0 && !model.is_op(child)
}

/// Returns the greatest degree that is no outlier: `max(4, Q3 + factor (Q3 - Q1))`.
fn outlier_bound(degrees: &[u32], factor: u32) -> u32 {
    let mut sorted = degrees.to_vec();
    sorted.sort_unstable();
    let quartile = |k: usize| sorted[(sorted.len() * k / 4).min(sorted.len() - 1)];
    let (q1, q3) = (quartile(1), quartile(3));
    (q3 + factor * (q3 - q1)).max(4)
}
