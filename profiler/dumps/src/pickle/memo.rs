//! What a pickle stored to refer to it later.

use rustc_hash::FxHashMap;

use crate::value::Value;

/// Values by number. Numbers that follow each other, as PyTorch and Python write them, are in a vector; a file may also
/// claim any number, without memory for those below it.
#[derive(Default)]
pub(super) struct Memo {
    dense: Vec<Value>,
    sparse: FxHashMap<u32, Value>,
}

impl Memo {
    #[inline]
    pub fn put(&mut self, number: u32, value: Value) {
        let at = number as usize;
        if at == self.dense.len() {
            self.dense.push(value);
        } else if let Some(slot) = self.dense.get_mut(at) {
            *slot = value;
        } else {
            self.sparse.insert(number, value);
        }
    }

    /// Stores under the next number (`MEMOIZE`).
    #[inline]
    pub fn push(&mut self, value: Value) {
        self.put(self.len() as u32, value);
    }

    #[inline]
    pub fn get(&self, number: u32) -> Option<Value> {
        self.dense.get(number as usize).or_else(|| self.sparse.get(&number)).copied()
    }

    pub fn len(&self) -> usize {
        self.dense.len() + self.sparse.len()
    }
}
