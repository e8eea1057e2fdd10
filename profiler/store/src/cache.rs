//! A cache that evicts the least recently used values to stay within a budget of bytes.

use std::hash::Hash;
use std::sync::Arc;

/// Values by key, of which the least recently used are evicted over `budget` bytes.
pub(crate) struct Cache<K: Hash + Eq, V> {
    /// The values with their sizes, bytes.
    entries: lru::LruCache<K, (Arc<V>, usize)>,
    /// Sum of the sizes.
    bytes: usize,
    budget: usize,
}

impl<K: Hash + Eq, V> Cache<K, V> {
    pub(crate) fn new(budget: usize) -> Cache<K, V> {
        Cache { entries: lru::LruCache::unbounded(), bytes: 0, budget }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn budget(&self) -> usize {
        self.budget
    }

    pub(crate) fn set_budget(&mut self, budget: usize) {
        self.budget = budget;
        self.evict();
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.entries.iter().map(|(key, _)| key)
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.entries.contains(key)
    }

    /// The value of a key, which becomes the most recently used one.
    pub(crate) fn get(&mut self, key: &K) -> Option<Arc<V>> {
        self.entries.get(key).map(|(value, _)| Arc::clone(value))
    }

    /// Adds a value of `bytes` bytes, and evicts others over the budget.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) -> Arc<V> {
        let value = Arc::new(value);
        self.bytes += bytes;
        if let Some((_, old_bytes)) = self.entries.put(key, (Arc::clone(&value), bytes)) {
            self.bytes -= old_bytes;
        }
        self.evict();
        value
    }

    /// Evicts the least recently used values. The most recently used one stays, whatever its size.
    fn evict(&mut self) {
        while self.bytes > self.budget
            && self.entries.len() > 1
            && let Some((_, (_, bytes))) = self.entries.pop_lru()
        {
            self.bytes -= bytes;
        }
    }
}
