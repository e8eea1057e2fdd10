//! Whether the ranks of a process group called the same operation on tensors that fit.

use std::collections::BTreeMap;

use super::{
    model::{Entry, Tensors},
    operation::{is_uneven, operation},
};
use crate::stacks::Stacks;

/// A rank of which an operation differs from what the others did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The rank that differs; `None` where only the sum over all ranks is wrong.
    pub rank: Option<u32>,
    /// In what.
    pub kind: MismatchKind,
    /// What the others have.
    pub expected: String,
    /// What it has.
    pub found: String,
}

/// In what an operation differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MismatchKind {
    /// Another operation.
    Operation,
    /// Sizes of its tensors.
    Sizes,
    /// Types of its tensors.
    Dtypes,
}

/// An operation of a rank.
pub(super) struct Call<'a> {
    pub rank: u32,
    pub entry: &'a Entry,
    pub stacks: &'a Stacks,
}

impl Call<'_> {
    pub fn operation(&self) -> &str {
        operation(self.stacks.text(self.entry.profiling_name))
    }

    fn tensors(&self) -> (&Tensors, &Tensors) {
        (&self.entry.inputs, &self.entry.outputs)
    }
}

/// What differs in the calls of one operation. What most ranks did is taken as right; of two that are as frequent, what the
/// lowest rank did. The rules are those of `torch.distributed.flight_recorder`.
pub(super) fn mismatches(calls: &[Call<'_>], group_size: usize) -> Vec<Mismatch> {
    let Some(reference) = reference(calls) else { return Vec::new() };
    let mut all = Vec::new();
    for call in calls {
        let difference = difference(reference, call, group_size);
        all.extend(difference.map(|(kind, expected, found)| Mismatch { rank: Some(call.rank), kind, expected, found }));
    }
    // The sums say something only where all ranks are there.
    if all.is_empty() && is_uneven(reference.operation()) && calls.len() == group_size {
        let sum = |tensors: fn(&Entry) -> &Tensors| {
            calls
                .iter()
                .filter_map(|call| tensors(call.entry).sizes.first())
                .map(|sizes| count(sizes))
                .fold(0, i128::saturating_add)
        };
        let (sent, received) = (sum(|entry| &entry.inputs), sum(|entry| &entry.outputs));
        if sent != received {
            let (expected, found) = (format!("{sent} elements"), format!("{received} elements"));
            all.push(Mismatch { rank: None, kind: MismatchKind::Sizes, expected, found });
        }
    }
    all
}

/// The first call of those that are most frequent.
fn reference<'a, 'b>(calls: &'a [Call<'b>]) -> Option<&'a Call<'b>> {
    let mut groups: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        let key = (call.operation(), (!is_uneven(call.operation())).then(|| call.tensors()));
        groups.entry(key).or_insert((0, at)).0 += 1;
    }
    let most = groups.into_values().max_by_key(|(n, first)| (*n, std::cmp::Reverse(*first)));
    most.and_then(|(_, first)| calls.get(first))
}

/// In what a call differs from the reference, the first that there is, with what was expected and found.
fn difference(reference: &Call<'_>, call: &Call<'_>, group_size: usize) -> Option<(MismatchKind, String, String)> {
    let operation = reference.operation();
    if operation != call.operation() {
        return Some((MismatchKind::Operation, operation.to_owned(), call.operation().to_owned()));
    }
    let ((own_in, own_out), (inputs, outputs)) = (reference.tensors(), call.tensors());
    let sizes = |expected: &Tensors, found: &Tensors| {
        (expected.sizes != found.sizes)
            .then(|| (MismatchKind::Sizes, format!("{:?}", expected.sizes), format!("{:?}", found.sizes)))
    };
    let is_uneven = is_uneven(operation);
    // The root alone has what is scattered, and what is gathered.
    let inputs_differ = if is_uneven || operation == "scatter" { None } else { sizes(own_in, inputs) };
    let outputs_differ = || if is_uneven || operation == "gather" { None } else { sizes(own_out, outputs) };
    let reduces = ["all_reduce", "allreduce_coalesced"].contains(&operation);
    let reduced_differ = || if reduces { sizes(own_in, outputs) } else { None };
    let differ = inputs_differ.or_else(outputs_differ).or_else(reduced_differ);
    differ
        .or_else(|| gathered_differ(operation, own_in, own_out, inputs, outputs, group_size))
        .or_else(|| dtypes_differ(operation, own_in, own_out, inputs, outputs))
}

fn count(sizes: &[i64]) -> i128 {
    sizes.iter().fold(1, |product: i128, size| product.saturating_mul(i128::from(*size)))
}

/// Whether what a call gathers is not as large as what all ranks have together.
fn gathered_differ(
    operation: &str,
    own_in: &Tensors,
    own_out: &Tensors,
    inputs: &Tensors,
    outputs: &Tensors,
    group_size: usize,
) -> Option<(MismatchKind, String, String)> {
    let (gathered, shard) = match operation {
        "all_gather" | "_all_gather_base" | "all_gather_into_tensor_coalesced" => (outputs, own_in),
        "reduce_scatter" | "_reduce_scatter_base" | "reduce_scatter_tensor_coalesced" => (inputs, own_out),
        _ => return None,
    };
    let sum = |tensors: &Tensors| tensors.sizes.iter().map(|sizes| count(sizes)).fold(0, i128::saturating_add);
    let first = |tensors: &Tensors| tensors.sizes.first().map(|sizes| count(sizes)).unwrap_or(0);
    let n = group_size as i128;
    // One tensor for all ranks, or a list with one for each.
    let fits_one = first(gathered) == first(shard).saturating_mul(n);
    let fits_list =
        gathered.sizes.len() == group_size * shard.sizes.len() && sum(gathered) == sum(shard).saturating_mul(n);
    let (expected, found) = (sum(shard).saturating_mul(n), sum(gathered));
    let report = || (MismatchKind::Sizes, format!("{expected} elements"), format!("{found} elements"));
    (!fits_one && !fits_list).then(report)
}

fn dtypes_differ(
    operation: &str,
    own_in: &Tensors,
    own_out: &Tensors,
    inputs: &Tensors,
    outputs: &Tensors,
) -> Option<(MismatchKind, String, String)> {
    // Empty tensors, as those of ranks that are no root, have no type to compare.
    let has = |tensors: &Tensors| tensors.sizes.first().is_some_and(|sizes| !sizes.is_empty());
    let set = |tensors: &Tensors| {
        let mut set = tensors.dtypes.clone();
        set.sort();
        set.dedup();
        set
    };
    let differ = |a: &Tensors, b: &Tensors| (set(a) != set(b) && has(a) && has(b)).then(|| (set(a), set(b)));
    let is = |names: &[&str]| names.contains(&operation);
    let own = if is(&["scatter", "gather", "broadcast"]) { None } else { differ(own_in, own_out) };
    let of_inputs = || if is(&["scatter", "broadcast"]) { None } else { differ(own_in, inputs) };
    let of_outputs = || if is(&["gather"]) { None } else { differ(own_out, outputs) };
    let sets = own.or_else(of_inputs).or_else(of_outputs);
    sets.map(|(expected, found)| (MismatchKind::Dtypes, expected.join(", "), found.join(", ")))
}
