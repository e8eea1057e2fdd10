//! Finds the rows of a store's tables from the names in a row group.

use super::columns::Texts;
use arrow_array::Array;
use rustc_hash::FxHashMap;
use trace_model::{Category, NO_NODE, NodeInfo, Site, SiteInfo};

/// The row of a name that the tables lack.
const UNKNOWN: u32 = u32::MAX - 1;

/// Rows of sites and nodes by their names.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    sites: FxHashMap<(String, String), (Site, Category)>,
    nodes: FxHashMap<(String, String, String), u32>,
}

impl Resolver {
    pub(super) fn of(sites: &[SiteInfo], nodes: &[NodeInfo]) -> Resolver {
        let site = |(row, s): (usize, &SiteInfo)| {
            ((s.category_name.clone(), s.name.clone()), (Site::new(row as u32, s.waits()), s.category))
        };
        let node = |(row, n): (usize, &NodeInfo)| ((n.op.clone(), n.name.clone(), n.device.clone()), row as u32);
        Resolver {
            sites: sites.iter().enumerate().map(site).collect(),
            nodes: nodes.iter().enumerate().map(node).collect(),
        }
    }

    /// The site of each row, with its category.
    pub(super) fn sites(&self, category: &Texts<'_>, name: &Texts<'_>, n: usize) -> Vec<(Site, Category)> {
        let find = |i: usize| {
            let key = (category.at(i).to_owned(), name.at(i).to_owned());
            let unknown = || (Site::new(UNKNOWN, false), Category::from_name(&key.0));
            self.sites.get(&key).copied().unwrap_or_else(unknown)
        };
        by_keys([category, name], n, find)
    }

    /// The node of each row.
    pub(super) fn nodes(&self, op: &Texts<'_>, node: &Texts<'_>, device: &Texts<'_>, n: usize) -> Vec<u32> {
        let find = |i: usize| {
            let Some(name) = node.get(i) else { return NO_NODE };
            let key = (op.at(i).to_owned(), name.to_owned(), device.at(i).to_owned());
            self.nodes.get(&key).copied().unwrap_or(UNKNOWN)
        };
        by_keys([op, node, device], n, find)
    }
}

/// The result of `find` for each row; it is called once for all rows that have the same keys in the dictionaries.
fn by_keys<T: Copy, const N: usize>(columns: [&Texts<'_>; N], n: usize, find: impl Fn(usize) -> T) -> Vec<T> {
    let dictionaries = columns.map(Texts::keys);
    if dictionaries.iter().any(Option::is_none) {
        return (0..n).map(find).collect();
    }
    let n_values = dictionaries.each_ref().map(|d| d.as_ref().map_or(0, |(_, values)| values.len()));
    let keys = dictionaries.map(|d| d.map(|(keys, _)| keys).unwrap_or_default());
    // The last result for each text of the largest dictionary: a text is nearly always combined with the same others.
    let widest = (0..N).max_by_key(|c| n_values[*c]).unwrap_or(0);
    let mut last: Vec<Option<([u32; N], T)>> = vec![None; n_values[widest] + 1];
    let mut found: FxHashMap<[u32; N], T> = FxHashMap::default();
    let find_cached = |i: usize| {
        let key: [u32; N] = std::array::from_fn(|c| keys[c][i]);
        // Null has the slot after the last text's.
        let slot = &mut last[(key[widest] as usize).min(n_values[widest])];
        match slot {
            Some((last_key, value)) if *last_key == key => *value,
            _ => {
                let value = *found.entry(key).or_insert_with(|| find(i));
                *slot = Some((key, value));
                value
            }
        }
    };
    (0..n).map(find_cached).collect()
}
