//! Children of a scope that go to its side area: bookkeeping and nodes of very high degree, as in the white paper's
//! Figure 10 and with TensorBoard's bounds (`render.ts`, `extractHighDegrees`).

use super::{build::is_summary, columns::Model, items::ItemId};
use rustc_hash::FxHashMap;

/// Fewest children for which degrees are compared.
const MIN_COMPARED: usize = 15;
/// More control edges than this on a node that has no others become annotations.
pub(crate) const CONTROL_MAX: u32 = 4;

/// Degrees of a child within its scope: data edges, or control edges where it has no others.
#[derive(Clone, Copy, Default)]
struct Degree {
    data_in: u32,
    data_out: u32,
    control_in: u32,
    control_out: u32,
}

/// Whether each of `scope`'s `children` is drawn in its side area: a great many edges leave it, or it is a `NoOp`, or
/// it only records summaries.
pub(crate) fn are_in_side_area(model: &Model, scope: ItemId, children: &[ItemId]) -> Vec<bool> {
    let index: FxHashMap<ItemId, usize> = children.iter().enumerate().map(|(idx, &c)| (c, idx)).collect();
    let mut degrees = vec![Degree::default(); children.len()];
    for edge in model.metaedges(scope) {
        let (Some(&src), Some(&dst)) = (index.get(&edge.src), index.get(&edge.dst)) else { continue };
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
        true => (bound(&ins, 1), bound(&outs, 4)),
        false => (u32::MAX, u32::MAX),
    };
    let is_auxiliary = |idx: usize| {
        let child = children[idx];
        model.op(child) == "NoOp" || ins[idx] > in_max || outs[idx] > out_max || records_only(model, child)
    };
    (0..children.len()).map(is_auxiliary).collect()
}

/// Whether a scope holds only summary ops and their constants: it has edges from everywhere and does not take part in
/// the computation.
fn records_only(model: &Model, child: ItemId) -> bool {
    let mut n_summaries = 0;
    let only = model.op_counts(child).all(|(op, n)| {
        let is_summary = is_summary(op);
        n_summaries += if is_summary { n } else { 0 };
        is_summary || op == "Const"
    });
    only && n_summaries > 0 && !model.is_op(child)
}

/// `max(4, Q3 + factor (Q3 - Q1))` of the degrees.
fn bound(degrees: &[u32], factor: u32) -> u32 {
    let mut sorted = degrees.to_vec();
    sorted.sort_unstable();
    let quartile = |k: usize| sorted[(sorted.len() * k / 4).min(sorted.len() - 1)];
    let (q1, q3) = (quartile(1), quartile(3));
    (q3 + factor * (q3 - q1)).max(4)
}
