//! Values by name, in the order of their names.

use std::ops::Deref;

use indexmap::{IndexMap, map};
use rustc_hash::FxBuildHasher;

/// A map that is walked in the order of its names, and in which a name is found by its hash: a page of charts looks thousands up in
/// each frame.
///
/// Everything that only reads is [`IndexMap`]'s. A name that comes after all others is added at once, any other moves those behind it.
#[derive(Debug, Clone)]
pub struct ByName<V>(IndexMap<String, V, FxBuildHasher>);

impl<V> ByName<V> {
    /// Gives `name` this value; what it had before.
    pub fn insert(&mut self, name: String, value: V) -> Option<V> {
        self.0.insert_sorted(name, value).1
    }

    /// The value of `name`, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        self.0.get_mut(name)
    }
}

impl<V: Default> ByName<V> {
    /// The value of `name`, to be changed; made where there is none.
    pub fn get_or_default(&mut self, name: &str) -> &mut V {
        let at = self.0.get_index_of(name).unwrap_or_else(|| self.0.insert_sorted(name.to_owned(), V::default()).0);
        &mut self.0[at]
    }
}

impl<V> Default for ByName<V> {
    fn default() -> Self {
        Self(IndexMap::default())
    }
}

impl<V> Deref for ByName<V> {
    type Target = IndexMap<String, V, FxBuildHasher>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<V> FromIterator<(String, V)> for ByName<V> {
    fn from_iter<T: IntoIterator<Item = (String, V)>>(values: T) -> Self {
        let mut map: IndexMap<String, V, FxBuildHasher> = values.into_iter().collect();
        map.sort_unstable_keys();
        Self(map)
    }
}

impl<'a, V> IntoIterator for &'a ByName<V> {
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
        let mut one_by_one = ByName::default();
        let mut known = BTreeMap::new();
        for (name, n) in values() {
            assert_eq!(one_by_one.insert(name.clone(), n), known.insert(name, n));
        }
        let at_once: ByName<i32> = values().collect();
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
