//! Rows in the order in which they came, of which the parts that come later are found by a key, and the oldest are evicted.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::Hash;

#[derive(Debug)]
pub(super) struct KeyedQueue<K, V> {
    rows: VecDeque<V>,
    evicted: u64,
    /// How many rows there were before the latest one of a key.
    by_key: FxHashMap<K, u64>,
}

impl<K, V> Default for KeyedQueue<K, V> {
    fn default() -> Self {
        KeyedQueue { rows: VecDeque::new(), evicted: 0, by_key: FxHashMap::default() }
    }
}

impl<K: Hash + Eq, V> KeyedQueue<K, V> {
    /// Rows, each with its key if more may come for it.
    pub(super) fn of_rows(rows: Vec<V>, key: impl Fn(&V) -> Option<K>) -> KeyedQueue<K, V> {
        let by_key = rows.iter().zip(0..).filter_map(|(row, n)| Some((key(row)?, n))).collect();
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

    /// Nothing more comes for a key.
    pub(super) fn forget(&mut self, key: &K) {
        self.by_key.remove(key);
    }

    pub(super) fn push(&mut self, key: K, row: V) {
        self.by_key.insert(key, self.evicted + self.rows.len() as u64);
        self.rows.push_back(row);
    }

    /// Takes the oldest row out, whose key this is.
    pub(super) fn pop(&mut self, key: impl Fn(&V) -> K) -> Option<V> {
        let old = self.rows.pop_front()?;
        let key = key(&old);
        if self.by_key.get(&key) == Some(&self.evicted) {
            self.by_key.remove(&key);
        }
        self.evicted += 1;
        Some(old)
    }
}
