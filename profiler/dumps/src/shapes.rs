//! The shapes of dictionaries: dictionaries with the same keys in the same order share a list of keys.

use std::collections::HashMap;

use crate::{
    texts::TextId,
    value::{Kind, Value},
};

/// Dictionaries with more keys have no shape.
pub(crate) const MAX_FIELDS: usize = 64;
/// How many of the shapes that were last in use are tried before the table.
const N_RECENT: usize = 4;

/// The shapes of a tree.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    keys: Vec<Box<[TextId]>>,
    numbers: HashMap<Box<[TextId]>, u32>,
    recent: [u32; N_RECENT],
    next_recent: usize,
}

impl Shapes {
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn keys(&self, shape: u32) -> &[TextId] {
        self.keys.get(shape as usize).map_or(&[], |keys| keys)
    }

    /// The shape of a dictionary given as key, value, key, value. `None` where it has none: too many keys, keys that are no
    /// texts, a key twice.
    pub fn of_pairs(&mut self, pairs: &[Value]) -> Option<u32> {
        for shape in self.recent {
            let keys = self.keys(shape);
            let has_keys = keys.len() * 2 == pairs.len()
                && keys.iter().zip(pairs.iter().step_by(2)).all(|(own, key)| *key == Value::text(*own));
            if has_keys && !keys.is_empty() {
                return Some(shape);
            }
        }
        if pairs.len() > MAX_FIELDS * 2 {
            return None;
        }
        let text = |key: &Value| match key.kind() {
            Kind::Text(id) => Some(id),
            _ => None,
        };
        let keys: Box<[TextId]> = pairs.iter().step_by(2).map(text).collect::<Option<_>>()?;
        let shape = self.intern(keys)?;
        self.recent[self.next_recent] = shape;
        self.next_recent = (self.next_recent + 1) % N_RECENT;
        Some(shape)
    }

    fn intern(&mut self, keys: Box<[TextId]>) -> Option<u32> {
        if let Some(shape) = self.numbers.get(&keys) {
            return Some(*shape);
        }
        let is_twice = keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key));
        if is_twice {
            return None;
        }
        let shape = u32::try_from(self.keys.len()).ok()?;
        self.keys.push(keys.clone());
        self.numbers.insert(keys, shape);
        Some(shape)
    }
}
