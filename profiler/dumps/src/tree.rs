//! The data of a file: values of eight bytes and the tables that they point into.
//!
//! A dictionary of a known shape takes eight bytes for each of its values and nothing for its keys, so that the tree of a
//! snapshot is about as large as its file.

use std::collections::HashMap;

use crate::{
    shapes::Shapes,
    texts::{TextId, Texts},
    value::{Kind, Value},
};

/// In a dictionary without a shape only so many keys are looked at.
const MAX_SEARCHED: usize = 1024;

/// The data of a file. Containers may contain themselves: whoever walks needs a [`crate::fields::Budget`].
#[derive(Debug)]
pub(crate) struct Tree {
    pub texts: Texts,
    lists: Vec<Vec<Value>>,
    dicts: Vec<Dict>,
    /// The values of the dictionaries that have a shape.
    fields: Vec<Value>,
    shapes: Shapes,
    floats: Vec<f64>,
    wides: Vec<i128>,
    /// Tuples of two scalars: they occur in each event, and are mostly the same.
    pairs: HashMap<[Value; 2], Value>,
}

#[derive(Debug)]
enum Dict {
    Empty,
    Shaped {
        shape: u32,
        /// Of its first value.
        start: usize,
    },
    #[expect(clippy::box_collection, reason = "a rare case does not make each dictionary larger")]
    Pairs(Box<Vec<(Value, Value)>>),
}

impl Tree {
    pub fn new() -> Self {
        Self {
            texts: Texts::new(),
            lists: Vec::new(),
            dicts: Vec::new(),
            fields: Vec::new(),
            shapes: Shapes::default(),
            floats: Vec::new(),
            wides: Vec::new(),
            pairs: HashMap::new(),
        }
    }

    pub fn new_int(&mut self, value: i128) -> Value {
        i64::try_from(value).ok().and_then(Value::small_int).unwrap_or_else(|| {
            self.wides.push(value);
            Value::wide(self.wides.len() - 1)
        })
    }

    pub fn new_float(&mut self, value: f64) -> Value {
        self.floats.push(value);
        Value::float(self.floats.len() - 1)
    }

    pub fn new_text(&mut self, text: &str) -> Value {
        Value::text(self.texts.intern(text))
    }

    pub fn new_list(&mut self, items: Vec<Value>) -> Value {
        self.lists.push(items);
        Value::list(self.lists.len() - 1)
    }

    pub fn new_tuple(&mut self, items: &[Value]) -> Value {
        let pair = <[Value; 2]>::try_from(items).ok().filter(|pair| pair.iter().all(|item| item.is_scalar()));
        let Some(pair) = pair else { return self.new_list(items.to_vec()) };
        if let Some(value) = self.pairs.get(&pair) {
            return *value;
        }
        let value = self.new_list(items.to_vec());
        self.pairs.insert(pair, value);
        value
    }

    pub fn new_dict(&mut self) -> Value {
        self.dicts.push(Dict::Empty);
        Value::dict(self.dicts.len() - 1)
    }

    /// Adds to the end of a list. `false` where the value is no list.
    pub fn extend(&mut self, list: Value, items: impl Iterator<Item = Value>) -> bool {
        let Kind::List(index) = list.kind() else { return false };
        self.lists.get_mut(index).map(|list| list.extend(items)).is_some()
    }

    /// Adds to a dictionary what is given as key, value, key, value. `false` where the value is no dictionary.
    pub fn insert(&mut self, dict: Value, pairs: &[Value]) -> bool {
        let Kind::Dict(index) = dict.kind() else { return false };
        let Some(dict) = self.dicts.get_mut(index) else { return false };
        if matches!(dict, Dict::Empty)
            && let Some(shape) = self.shapes.of_pairs(pairs)
        {
            *dict = Dict::Shaped { shape, start: self.fields.len() };
            self.fields.extend(pairs.iter().skip(1).step_by(2));
            return true;
        }
        let new = pairs.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        match dict {
            Dict::Pairs(pairs) => pairs.extend(new),
            Dict::Empty => *dict = Dict::Pairs(Box::new(new.collect())),
            Dict::Shaped { shape, start } => {
                let keys = self.shapes.keys(*shape).iter().map(|key| Value::text(*key));
                let own = keys.zip(self.fields.iter().skip(*start).copied());
                *dict = Dict::Pairs(Box::new(own.chain(new).collect()));
            }
        }
        true
    }

    /// About how many bytes the containers take.
    pub fn n_bytes(&self) -> u64 {
        // A list is a vector and mostly a block of memory of its own.
        56 * self.lists.len() as u64 + 24 * self.dicts.len() as u64
    }

    pub fn n_shapes(&self) -> usize {
        self.shapes.len()
    }

    /// The items of a list, tuple or set.
    pub fn list(&self, value: Value) -> Option<&[Value]> {
        match value.kind() {
            Kind::List(index) => self.lists.get(index).map(Vec::as_slice),
            _ => None,
        }
    }

    /// The shape of a dictionary, its keys and its values. `None` for dictionaries without one.
    pub fn shaped(&self, value: Value) -> Option<(u32, &[TextId], &[Value])> {
        let Kind::Dict(index) = value.kind() else { return None };
        let Some(Dict::Shaped { shape, start }) = self.dicts.get(index) else { return None };
        let keys = self.shapes.keys(*shape);
        let values = self.fields.get(*start..*start + keys.len())?;
        Some((*shape, keys, values))
    }

    /// The pairs of a dictionary, at most 1024 of them, with those that were added last at the end.
    pub fn pairs(&self, value: Value) -> Vec<(Value, Value)> {
        if let Some((_, keys, values)) = self.shaped(value) {
            return keys.iter().map(|key| Value::text(*key)).zip(values.iter().copied()).collect();
        }
        match value.kind() {
            Kind::Dict(index) => match self.dicts.get(index) {
                Some(Dict::Pairs(pairs)) => pairs.iter().copied().take(MAX_SEARCHED).collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    pub fn is_dict(&self, value: Value) -> bool {
        matches!(value.kind(), Kind::Dict(_))
    }

    pub fn text_id(&self, value: Value) -> Option<TextId> {
        match value.kind() {
            Kind::Text(id) => Some(id),
            _ => None,
        }
    }

    pub fn text(&self, value: Value) -> Option<&str> {
        self.text_id(value).map(|id| self.texts.get(id))
    }

    /// A whole number of 64 bits. Python has them without a sign where C++ has one: both are the same bits here.
    pub fn int(&self, value: Value) -> Option<i64> {
        match value.kind() {
            Kind::Int(value) => Some(value),
            Kind::Wide(index) => {
                let value = *self.wides.get(index)?;
                i64::try_from(value).ok().or_else(|| u64::try_from(value).ok().map(|value| value as i64))
            }
            _ => None,
        }
    }

    /// A number.
    pub fn number(&self, value: Value) -> Option<f64> {
        match value.kind() {
            Kind::Float(index) => self.floats.get(index).copied(),
            _ => self.int(value).map(|value| value as f64),
        }
    }
}
