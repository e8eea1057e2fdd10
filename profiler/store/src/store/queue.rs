//! A queue of rows that are completed later: rows are found by key, and the oldest are evicted.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::Hash;

/// Rows in the order in which they were pushed.
#[derive(Debug)]
pub(super) struct KeyedQueue<K, V> {
    rows: VecDeque<V>,
    evicted: u64,
    /// The latest row with each key, as its number since the first row that was ever pushed.
    by_key: FxHashMap<K, u64>,
}

impl<K, V> Default for KeyedQueue<K, V> {
    fn default() -> Self {
        KeyedQueue { rows: VecDeque::new(), evicted: 0, by_key: FxHashMap::default() }
    }
}

impl<K: Hash + Eq, V> KeyedQueue<K, V> {
    /// Returns a queue of these rows; `key_of` returns `None` for a row that is complete.
    pub(super) fn from_rows(rows: Vec<V>, key_of: impl Fn(&V) -> Option<K>) -> KeyedQueue<K, V> {
        let by_key = rows.iter().zip(0..).filter_map(|(row, n)| Some((key_of(row)?, n))).collect();
        KeyedQueue { rows: rows.into(), evicted: 0, by_key }
    }

    pub(super) fn rows(&self) -> &VecDeque<V> {
        &self.rows
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<V>()
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let row = self.by_key.get(key)?.checked_sub(self.evicted)?;
        self.rows.get_mut(usize::try_from(row).ok()?)
    }

    /// Removes the key of a row that is complete.
    pub(super) fn remove_key(&mut self, key: &K) {
        self.by_key.remove(key);
    }

    pub(super) fn push(&mut self, key: K, row: V) {
        self.by_key.insert(key, self.evicted + self.rows.len() as u64);
        self.rows.push_back(row);
    }

    /// Removes and returns the oldest row; `key_of` computes a row's key.
    pub(super) fn pop(&mut self, key_of: impl Fn(&V) -> K) -> Option<V> {
        let oldest = self.rows.pop_front()?;
        let key = key_of(&oldest);
        if self.by_key.get(&key) == Some(&self.evicted) {
            self.by_key.remove(&key);
        }
        self.evicted += 1;
        Some(oldest)
    }
}
