//! The names of a store's sites and nodes as columns with dictionaries.

use super::dictionary::NULL;
use crate::store::Store;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The texts of a table's rows; equal texts are stored once.
pub(super) struct NameColumn {
    /// For each row of the table, the row of its text in `texts`.
    numbers: Vec<u32>,
    texts: Arc<StringArray>,
}

impl NameColumn {
    fn from_texts<'a>(texts: impl Iterator<Item = &'a str>) -> NameColumn {
        let (mut unique, mut rows): (Vec<&str>, FxHashMap<&str, u32>) = (Vec::new(), FxHashMap::default());
        let number = |text: &'a str| {
            *rows.entry(text).or_insert_with(|| {
                unique.push(text);
                unique.len() as u32 - 1
            })
        };
        let numbers = texts.map(number).collect();
        NameColumn { numbers, texts: Arc::new(StringArray::from_iter_values(unique)) }
    }

    /// The row in [`texts`](Self::texts) of the text of a table's row; [`NULL`] if the table has no such row.
    #[inline]
    pub(super) fn number(&self, row: u32) -> u32 {
        self.numbers.get(row as usize).copied().unwrap_or(NULL)
    }

    pub(super) fn texts(&self) -> &StringArray {
        &self.texts
    }

    /// Returns a column with the texts of these rows of the table, null where the table has no such row.
    pub(super) fn column(&self, rows: impl Iterator<Item = u32>) -> ArrayRef {
        let keys: Int32Array = rows.map(|row| self.numbers.get(row as usize).map(|number| *number as i32)).collect();
        // `new` cannot panic: every number is a row of `texts`.
        Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::clone(&self.texts) as ArrayRef))
    }
}

/// The names of sites and nodes, by row.
pub(super) struct Names {
    pub(super) site_names: NameColumn,
    pub(super) site_categories: NameColumn,
    pub(super) node_names: NameColumn,
    pub(super) node_ops: NameColumn,
    pub(super) node_devices: NameColumn,
}

impl Names {
    pub(super) fn from_store(store: &Store) -> Names {
        let (sites, nodes) = (store.sites(), store.nodes());
        Names {
            site_names: NameColumn::from_texts(sites.iter().map(|s| s.name.as_str())),
            site_categories: NameColumn::from_texts(sites.iter().map(|s| s.category_name.as_str())),
            node_names: NameColumn::from_texts(nodes.iter().map(|n| n.name.as_str())),
            node_ops: NameColumn::from_texts(nodes.iter().map(|n| n.op.as_str())),
            node_devices: NameColumn::from_texts(nodes.iter().map(|n| n.device.as_str())),
        }
    }

    /// Collects the names again if the store has more of them.
    pub(super) fn refresh(&mut self, store: &Store) {
        if (self.site_names.numbers.len(), self.node_names.numbers.len()) != (store.sites().len(), store.nodes().len())
        {
            *self = Names::from_store(store);
        }
    }
}

/// Returns a column of texts with a dictionary.
pub(super) fn text_column<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<DictionaryArray<Int32Type>>())
}
