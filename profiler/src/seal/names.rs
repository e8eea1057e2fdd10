//! The store's names as columns by dictionary.

use crate::batch::NO_NODE;
use crate::store::Store;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use std::sync::Arc;

/// The names of sites and nodes, by row.
pub(super) struct Names {
    n_sites: usize,
    n_nodes: usize,
    site_names: ArrayRef,
    site_categories: ArrayRef,
    node_names: ArrayRef,
    node_ops: ArrayRef,
    node_devices: ArrayRef,
}

fn texts<'a>(texts: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(texts))
}

impl Names {
    pub(super) fn of(store: &Store) -> Names {
        let (sites, nodes) = (store.sites(), store.nodes());
        Names {
            n_sites: sites.len(),
            n_nodes: nodes.len(),
            site_names: texts(sites.iter().map(|s| s.name.as_str())),
            site_categories: texts(sites.iter().map(|s| s.category_name.as_str())),
            node_names: texts(nodes.iter().map(|n| n.name.as_str())),
            node_ops: texts(nodes.iter().map(|n| n.op.as_str())),
            node_devices: texts(nodes.iter().map(|n| n.device.as_str())),
        }
    }

    /// Follows a store that got more names.
    pub(super) fn refresh(&mut self, store: &Store) {
        if (self.n_sites, self.n_nodes) != (store.sites().len(), store.nodes().len()) {
            *self = Names::of(store);
        }
    }

    /// Categories and names of sites.
    pub(super) fn sites(&self, rows: impl Iterator<Item = u32>) -> [ArrayRef; 2] {
        let keys = Int32Array::from_iter_values(rows.map(|row| row as i32));
        [by_dictionary(&keys, &self.site_categories), by_dictionary(&keys, &self.site_names)]
    }

    /// Ops, names and devices of nodes; null where there is none.
    pub(super) fn nodes(&self, rows: impl Iterator<Item = u32>) -> [ArrayRef; 3] {
        let keys: Int32Array = rows.map(|row| (row != NO_NODE).then_some(row as i32)).collect();
        [&self.node_ops, &self.node_names, &self.node_devices].map(|values| by_dictionary(&keys, values))
    }
}

fn by_dictionary(keys: &Int32Array, values: &ArrayRef) -> ArrayRef {
    // The rows are the store's own, so they are in its tables.
    Arc::new(DictionaryArray::<Int32Type>::new(keys.clone(), Arc::clone(values)))
}

/// A column of texts by dictionary.
pub(super) fn text_column<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<DictionaryArray<Int32Type>>())
}
