//! Folding of nodes whose names differ in the trailing `_N` only.
//!
//! TensorBoard folds by `^(\D*)(\d+)$`, which no op name with a digit of its own matches (`RestoreV2_7`, `Conv2D_3`):
//! such scopes stay thousands of boxes wide. Therefore only the last `_N` is removed here.

use rustc_hash::FxHashMap;

/// Nodes of a series, at least.
pub(super) const MIN_MEMBERS: usize = 5;

/// A set of nodes to fold; members are indices in the argument of [`fold`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fold {
    /// `RestoreV2_[0…41]`.
    pub label: String,
    pub members: Vec<usize>,
}

/// Finds the series among the (label, op) pairs of one scope, in the order of their first members.
pub(super) fn fold(nodes: &[(&str, u32)]) -> Vec<Fold> {
    let mut groups: Vec<(&str, Vec<(u64, usize)>)> = Vec::new();
    let mut group_of: FxHashMap<(u32, &str), usize> = FxHashMap::default();
    for (idx, &(label, op)) in nodes.iter().enumerate() {
        let (prefix, number) = split_number(label);
        let group = *group_of.entry((op, prefix)).or_insert_with(|| {
            groups.push((prefix, Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push((number, idx));
    }
    groups.retain(|(_, members)| members.len() >= MIN_MEMBERS);
    groups.into_iter().map(|(prefix, members)| series(prefix, members)).collect()
}

fn series(prefix: &str, mut members: Vec<(u64, usize)>) -> Fold {
    members.sort_unstable();
    let first = members.first().map_or(0, |m| m.0);
    let last = members.last().map_or(0, |m| m.0);
    Fold { label: format!("{prefix}_[{first}…{last}]"), members: members.into_iter().map(|(_, idx)| idx).collect() }
}

/// `Conv2D_3` is (`Conv2D`, 3); a name without a trailing `_N` is its own prefix, number 0.
fn split_number(label: &str) -> (&str, u64) {
    match label.rsplit_once('_') {
        Some((prefix, digits)) if !prefix.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().map_or((label, 0), |n| (prefix, n))
        }
        _ => (label, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(labels: &[&str], expected: &[&str]) {
        let nodes: Vec<_> = labels.iter().map(|&label| (label, 0)).collect();
        let got: Vec<_> = fold(&nodes).iter().map(|f| format!("{} {}", f.label, f.members.len())).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn only_the_trailing_number_is_taken_off() {
        check(&["Conv2D", "Conv2D_1", "Conv2D_2", "Conv2D_3", "Conv2D_4"], &["Conv2D_[0…4] 5"]);
        check(&["a_1", "a_2", "a_3", "a_4"], &[]);
        check(&["a1", "a2", "a3", "a4", "a5"], &[]);
        check(&["a_1_2", "a_1_3", "a_1_4", "a_1_5", "a_1_6", "a_2"], &["a_1_[2…6] 5"]);
        check(&["_1", "_2", "_3", "_4", "_5"], &[]);
    }

    #[test]
    fn different_ops_stay_apart() {
        let nodes: Vec<_> = (0..10).map(|_| "x_1").zip([0, 1].into_iter().cycle()).collect();
        assert_eq!(fold(&nodes).len(), 2);
    }
}
