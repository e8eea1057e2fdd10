//! The fields of dictionaries by name, and how much of a tree may be walked.

use crate::{texts::TextId, tree::Tree, value::Value};

/// Finds the fields of dictionaries that mostly have the same shape: names are compared once for each shape.
pub(crate) struct Fields<const N: usize> {
    names: [Option<TextId>; N],
    /// By shape: where each field is among the values.
    positions: Vec<Option<[u8; N]>>,
}

/// The position of a field that a shape lacks.
const ABSENT: u8 = u8::MAX;

impl<const N: usize> Fields<N> {
    pub fn new(tree: &Tree, names: [&str; N]) -> Self {
        Self { names: names.map(|name| tree.texts.find(name)), positions: vec![None; tree.n_shapes()] }
    }

    /// The values of the fields, [`Value::NONE`] for those it lacks; `None` where it is no dictionary.
    pub fn of(&mut self, tree: &Tree, dict: Value) -> Option<[Value; N]> {
        let Some((shape, keys, values)) = tree.shaped(dict) else {
            return tree.is_dict(dict).then(|| self.of_pairs(tree, dict));
        };
        let names = &self.names;
        let positions = self.positions.get_mut(shape as usize)?.get_or_insert_with(|| {
            names.map(|name| {
                let at = keys.iter().position(|key| Some(*key) == name);
                // A shape has at most 64 keys.
                at.map_or(ABSENT, |at| at as u8)
            })
        });
        Some(positions.map(|at| values.get(usize::from(at)).copied().unwrap_or(Value::NONE)))
    }

    fn of_pairs(&self, tree: &Tree, dict: Value) -> [Value; N] {
        let pairs = tree.pairs(dict);
        self.names.map(|name| {
            let key = name.map(Value::text);
            let last = pairs.iter().rev().find(|(own, _)| Some(*own) == key);
            last.map_or(Value::NONE, |(_, value)| *value)
        })
    }
}

/// How many values may still be visited. A file may refer to the same list thousands of times: who walks it as often does
/// far more work than its size justifies.
pub(crate) struct Budget(u64);

impl Budget {
    /// Enough for a file of that many bytes: a value that is no reference takes at least one.
    pub fn of_file(n_bytes: u64) -> Self {
        Self(n_bytes.saturating_mul(4).saturating_add(1024))
    }

    /// Takes one visit for each item: the items that may be visited.
    pub fn take<'a>(&mut self, items: &'a [Value]) -> &'a [Value] {
        // A list costs something even where it is empty.
        let n = (items.len() as u64).saturating_add(1).min(self.0);
        self.0 -= n;
        if self.is_spent() { &[] } else { items }
    }

    pub fn is_spent(&self) -> bool {
        self.0 == 0
    }
}
