//! A search query: each word is a regular expression for names or ops, and `op:`, `device:` and `attr:` narrow it.
//!
//! `conv op:Conv2D device:gpu attr:padding=SAME` finds nodes that match every term. The values of `op:`, `device:` and
//! `attr:NAME=` match substrings; `attr:NAME` alone matches nodes that have the attribute.

use super::{attrs::attr_text, columns::Model, items::ItemId};
use ui::filter::Filter;

/// A parsed query.
#[derive(Default)]
pub(crate) struct Query {
    typed: String,
    words: Vec<Filter>,
    op: Option<String>,
    device: Option<String>,
    attrs: Vec<(String, Option<String>)>,
}

impl Query {
    /// The query as typed.
    pub fn text(&self) -> &str {
        &self.typed
    }

    /// The error of the first word that is not a regular expression.
    pub fn error(&self) -> Option<&str> {
        self.words.iter().find_map(Filter::error)
    }

    /// Parses a new query.
    pub fn set(&mut self, typed: &str) {
        *self = Query { typed: typed.to_owned(), ..Query::default() };
        for word in typed.split_whitespace() {
            let lower = word.to_lowercase();
            if let Some(op) = lower.strip_prefix("op:") {
                self.op = Some(op.to_owned());
            } else if let Some(device) = lower.strip_prefix("device:") {
                self.device = Some(device.to_owned());
            } else if let Some(attr) = lower.strip_prefix("attr:") {
                let (name, value) = attr.split_once('=').map_or((attr, None), |(name, value)| (name, Some(value)));
                self.attrs.push((name.to_owned(), value.map(str::to_owned)));
            } else {
                let mut filter = Filter::default();
                filter.set(word);
                self.words.push(filter);
            }
        }
    }

    /// Whether the query has a `device:` term.
    pub fn has_device(&self) -> bool {
        self.device.is_some()
    }

    /// Whether an item that runs on `device` matches.
    pub fn matches(&self, model: &Model, item: ItemId, device: &str) -> bool {
        let matches = |word: &Filter| word.matches(model.name(item)) || word.matches(model.op(item));
        let has_terms = self.op.is_some() || self.device.is_some() || !self.attrs.is_empty();
        let contains = |text: &str, part: &Option<String>| {
            part.as_ref().is_none_or(|part| text.to_lowercase().contains(part.as_str()))
        };
        if has_terms && !model.is_op(item) {
            return false;
        }
        contains(model.op(item), &self.op)
            && contains(device, &self.device)
            && self.words.iter().all(matches)
            && self.attrs.iter().all(|(name, value)| has_attr(model, item, name, value))
    }
}

/// Whether a node has an attribute whose value contains `value`.
fn has_attr(model: &Model, item: ItemId, name: &str, value: &Option<String>) -> bool {
    let Some(def) = model.node_def(item) else { return false };
    let mut attrs = def.attr.iter().filter(|(key, _)| key.to_lowercase() == name);
    let contains_value = |text: String| value.as_ref().is_none_or(|part| text.to_lowercase().contains(part.as_str()));
    attrs.any(|(_, attr)| contains_value(attr_text(attr)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::model::tests::graph;
    use formats::proto::{AttrValue, attr_value::Value};
    use std::sync::Arc;

    #[test]
    fn words_and_narrowing_are_joined_by_and() {
        let mut def = (*graph("a/conv = Conv2D()\nb/conv = Conv2D()\nb/relu = Relu(b/conv)")).clone();
        def.node[0].device = "/gpu:0".into();
        let same = AttrValue { value: Some(Value::S(b"SAME".to_vec())) };
        def.node[1].attr.insert("padding".into(), same);
        let model = Model::build(Arc::new(def));
        let check = |typed: &str, expected: &[&str]| {
            let mut query = Query::default();
            query.set(typed);
            let found: Vec<&str> = model
                .items()
                .skip(1)
                .filter(|&i| query.matches(&model, i, model.device(i)))
                .map(|i| model.name(i))
                .collect();
            assert_eq!(found, expected, "{typed}");
        };
        check("op:conv2d", &["a/conv", "b/conv"]);
        check("^b op:conv", &["b/conv"]);
        check("device:GPU", &["a/conv"]);
        check("attr:padding", &["b/conv"]);
        check("attr:padding=same op:conv", &["b/conv"]);
        check("attr:padding=valid", &[]);
        check("relu|^a$", &["a", "b/relu"]);
        check("conv ^b/", &["b/conv"]);
    }
}
