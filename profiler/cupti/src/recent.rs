//! A bounded map that evicts its oldest entries, for entries that are looked up soon after they were added.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::Hash;

/// A map of at most `CAPACITY` entries that evicts its oldest ones.
pub(crate) struct RecentMap<K, V, const CAPACITY: usize> {
    by_key: FxHashMap<K, V>,
    insertion_order: VecDeque<K>,
    /// The number of evicted entries.
    pub(crate) n_evicted: u64,
}

impl<K, V, const CAPACITY: usize> Default for RecentMap<K, V, CAPACITY> {
    fn default() -> Self {
        RecentMap { by_key: FxHashMap::default(), insertion_order: VecDeque::new(), n_evicted: 0 }
    }
}

impl<K: Hash + Eq + Copy, V, const CAPACITY: usize> RecentMap<K, V, CAPACITY> {
    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.by_key.get(&key)
    }

    pub(crate) fn take(&mut self, key: K) -> Option<V> {
        self.by_key.remove(&key)
    }

    /// Returns the entry of a key, made by `make` if new; a new key evicts the oldest entry of a full map.
    pub(crate) fn entry(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if !self.by_key.contains_key(&key) {
            // Keys of removed entries stay in `insertion_order` until they are the oldest, and count until then.
            while self.insertion_order.len() >= CAPACITY {
                let oldest = self.insertion_order.pop_front();
                self.n_evicted += u64::from(oldest.is_some_and(|key| self.by_key.remove(&key).is_some()));
            }
            self.insertion_order.push_back(key);
        }
        self.by_key.entry(key).or_insert_with(make)
    }

    pub(crate) fn set(&mut self, key: K, value: V)
    where
        V: Copy,
    {
        *self.entry(key, || value) = value;
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (K, V)> + '_ {
        self.insertion_order.clear();
        self.by_key.drain()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room_and_is_counted() {
        let mut recent = RecentMap::<_, _, 2>::default();
        recent.set(1, 'a');
        recent.set(2, 'b');
        recent.set(1, 'c');
        recent.set(3, 'd');
        assert_eq!((recent.get(1), recent.get(2), recent.n_evicted), (None, Some(&'b'), 1));
        assert_eq!(recent.take(2), Some('b'));
        recent.set(4, 'e');
        assert_eq!((recent.get(3), recent.get(4), recent.n_evicted), (Some(&'d'), Some(&'e'), 1));
    }
}
