//! Finds the rows of a store's tables from the names in a row group.

use super::columns::Texts;
use arrow_array::Array;
use rustc_hash::FxHashMap;
use trace_model::{Category, NO_NODE, NodeInfo, Site, SiteInfo};

/// The row of a name that the tables lack.
const MISSING_ROW: u32 = u32::MAX - 1;

/// Rows of sites and nodes by their names.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    sites: FxHashMap<(String, String), (Site, Category)>,
    nodes: FxHashMap<(String, String, String), u32>,
}

impl Resolver {
    pub(super) fn new(sites: &[SiteInfo], nodes: &[NodeInfo]) -> Resolver {
        let site = |(row, s): (usize, &SiteInfo)| {
            ((s.category_name.clone(), s.name.clone()), (Site::new(row as u32, s.waits()), s.category))
        };
        let node = |(row, n): (usize, &NodeInfo)| ((n.op.clone(), n.name.clone(), n.device.clone()), row as u32);
        Resolver {
            sites: sites.iter().enumerate().map(site).collect(),
            nodes: nodes.iter().enumerate().map(node).collect(),
        }
    }

    /// Returns the site of each row, with its category.
    pub(super) fn sites(&self, category: &Texts<'_>, name: &Texts<'_>, n: usize) -> Vec<(Site, Category)> {
        let find = |i: usize| {
            let key = (category.value(i).to_owned(), name.value(i).to_owned());
            let missing = || (Site::new(MISSING_ROW, false), Category::from_name(&key.0));
            self.sites.get(&key).copied().unwrap_or_else(missing)
        };
        resolve_rows([category, name], n, find)
    }

    /// Returns the node of each row.
    pub(super) fn nodes(&self, op: &Texts<'_>, node: &Texts<'_>, device: &Texts<'_>, n: usize) -> Vec<u32> {
        let find = |i: usize| {
            let Some(name) = node.get(i) else { return NO_NODE };
            let key = (op.value(i).to_owned(), name.to_owned(), device.value(i).to_owned());
            self.nodes.get(&key).copied().unwrap_or(MISSING_ROW)
        };
        resolve_rows([op, node, device], n, find)
    }
}

/// Returns the result of `find` for each row. Calls `find` once for rows that have the same keys in the dictionaries.
fn resolve_rows<T: Copy, const N: usize>(columns: [&Texts<'_>; N], n: usize, find: impl Fn(usize) -> T) -> Vec<T> {
    let dictionaries = columns.map(Texts::keys);
    if dictionaries.iter().any(Option::is_none) {
        return (0..n).map(find).collect();
    }
    let n_values = dictionaries.each_ref().map(|d| d.as_ref().map_or(0, |(_, values)| values.len()));
    let keys = dictionaries.map(|d| d.map(|(keys, _)| keys).unwrap_or_default());
    // The last result for each text of the largest dictionary: a text nearly always occurs with the same other texts.
    let widest = (0..N).max_by_key(|c| n_values[*c]).unwrap_or(0);
    let mut last_by_text: Vec<Option<([u32; N], T)>> = vec![None; n_values[widest] + 1];
    let mut cache: FxHashMap<[u32; N], T> = FxHashMap::default();
    let find_cached = |i: usize| {
        let key: [u32; N] = std::array::from_fn(|c| keys[c][i]);
        // The slot after the last text is for null.
        let slot = &mut last_by_text[(key[widest] as usize).min(n_values[widest])];
        match slot {
            Some((last_key, value)) if *last_key == key => *value,
            _ => {
                let value = *cache.entry(key).or_insert_with(|| find(i));
                *slot = Some((key, value));
                value
            }
        }
    };
    (0..n).map(find_cached).collect()
}
