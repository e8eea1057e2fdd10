//! Values by name, in the order of their names.

use std::ops::Deref;

use indexmap::{IndexMap, map};
use rustc_hash::FxBuildHasher;

/// A map that iterates in the order of names and looks names up by hash: a page of charts looks up thousands in each
/// frame.
///
/// Reading methods come from [`IndexMap`]. Inserting after the last name takes constant time; inserting before others
/// moves them.
#[derive(Debug, Clone)]
pub struct NameMap<V>(IndexMap<String, V, FxBuildHasher>);

impl<V> NameMap<V> {
    /// Sets the value of `name`; returns its previous value.
    pub fn insert(&mut self, name: String, value: V) -> Option<V> {
        self.0.insert_sorted(name, value).1
    }

    /// Returns the value of `name`, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        self.0.get_mut(name)
    }
}

impl<V: Default> NameMap<V> {
    /// Returns the value of `name`, to be changed; inserts the default where there is none.
    pub fn get_or_default(&mut self, name: &str) -> &mut V {
        let idx = self.0.get_index_of(name).unwrap_or_else(|| self.0.insert_sorted(name.to_owned(), V::default()).0);
        &mut self.0[idx]
    }
}

impl<V> Default for NameMap<V> {
    fn default() -> Self {
        Self(IndexMap::default())
    }
}

impl<V> Deref for NameMap<V> {
    type Target = IndexMap<String, V, FxBuildHasher>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<V> FromIterator<(String, V)> for NameMap<V> {
    fn from_iter<T: IntoIterator<Item = (String, V)>>(values: T) -> Self {
        let mut map: IndexMap<String, V, FxBuildHasher> = values.into_iter().collect();
        map.sort_unstable_keys();
        Self(map)
    }
}

impl<'a, V> IntoIterator for &'a NameMap<V> {
    type Item = (&'a String, &'a V);
    type IntoIter = map::Iter<'a, String, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn names_are_in_order_however_they_come() {
        let names = ["b", "a/1", "", "c", "a", "b", "é", "a/1"];
        let values = || names.iter().zip(0..).map(|(name, n)| ((*name).to_owned(), n));
        let expected: BTreeMap<String, i32> = values().collect();
        let mut one_by_one = NameMap::default();
        let mut known = BTreeMap::new();
        for (name, n) in values() {
            assert_eq!(one_by_one.insert(name.clone(), n), known.insert(name, n));
        }
        let at_once: NameMap<i32> = values().collect();
        for map in [&one_by_one, &at_once] {
            assert!(map.iter().eq(&expected));
            assert!(expected.iter().all(|(name, n)| map.get(name.as_str()) == Some(n)));
            assert_eq!(map.get("nobody"), None);
        }
        *one_by_one.get_or_default("aa") += 7;
        *one_by_one.get_or_default("aa") += 1;
        assert_eq!(one_by_one.keys().nth(3).zip(one_by_one.get("aa")), Some((&"aa".to_owned(), &8)));
    }
}
