//! Differences between two graphs: before and after a pass or the partitioning, or two versions of a model. Nodes
//! correspond if their full names are equal.

use super::input::PtrEq;
use crate::graph::model::{ItemId, Model, attr_text, function_prefix};
use egui::Context;
use formats::proto::{GraphDef, NodeDef};
use rustc_hash::FxHashMap;
use std::{borrow::Cow, sync::Arc};
use ui::background::{Question, Refresher};
use ui::natural;

/// Characters of a value that are shown, at most.
const MAX_VALUE: usize = 120;

/// Counts of changed nodes: all those below an item, or the node itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangeCounts {
    /// Nodes that the other graph has too, but with another op, device, inputs or attributes.
    pub n_differ: u32,
    /// Nodes that only this graph has.
    pub n_only_here: u32,
}

impl ChangeCounts {
    /// Nodes that are not the same in both graphs.
    pub fn n_changed(self) -> u32 {
        self.n_differ + self.n_only_here
    }
}

/// A pair of graphs to compare.
#[derive(Clone, PartialEq)]
struct Pair {
    model: PtrEq<Model>,
    other: PtrEq<GraphDef>,
}

impl Question for Pair {}

/// The differences of a graph from another one.
pub(crate) struct GraphDiff {
    pair: Pair,
    /// The counts of each item.
    counts: Vec<ChangeCounts>,
    /// Full names of nodes that only the other graph has, in order.
    missing: Vec<String>,
}

/// Compares graphs in a separate thread.
#[derive(Default)]
pub(crate) struct Changes {
    comparison: Refresher<Pair, Pair, GraphDiff>,
    diff: Option<Arc<GraphDiff>>,
}

impl Changes {
    /// Requests the comparison with `other`, unless it was requested before.
    pub fn update(&mut self, ctx: &Context, model: &Arc<Model>, other: &Arc<GraphDef>) {
        let pair = Pair { model: PtrEq(Arc::clone(model)), other: PtrEq(Arc::clone(other)) };
        let diff = self.comparison.ask(ctx, ("graph changes", compare), 0.0, pair.clone(), |pair, _| pair);
        self.diff = diff.filter(|diff| diff.pair == pair);
    }

    /// Drops the comparison.
    pub fn clear(&mut self) {
        self.comparison.forget();
        self.diff = None;
    }

    /// Whether there is another graph to compare with.
    pub fn is_requested(&self) -> bool {
        self.comparison.last_question().is_some()
    }

    pub fn diff(&self) -> Option<&GraphDiff> {
        self.diff.as_deref()
    }
}

impl GraphDiff {
    /// Counts the changed nodes at or below an item.
    pub fn counts(&self, item: ItemId) -> ChangeCounts {
        self.counts.get(item.idx()).copied().unwrap_or_default()
    }

    /// Returns the full names of nodes below a scope (of the root: anywhere) that only the other graph has, in order.
    pub fn missing(&self, scope: &str) -> &[String] {
        if scope.is_empty() {
            return &self.missing;
        }
        // Names below `a` begin with `a/`, and `0` is the character after the slash.
        let from = self.missing.partition_point(|name| name.as_str() < format!("{scope}/").as_str());
        let to = self.missing.partition_point(|name| name.as_str() < format!("{scope}0").as_str());
        &self.missing[from..to.max(from)]
    }

    /// Returns the differences of a node that both graphs have: (property, value here, value in the other graph).
    pub fn differences(&self, model: &Model, item: ItemId) -> Vec<(String, String, String)> {
        let here = model.node_def(item);
        let Some((here, there)) = here.and_then(|here| Some((here, find_node(&self.pair.other.0, model.name(item))?)))
        else {
            return Vec::new();
        };
        let truncated = |text: String| text.chars().take(MAX_VALUE).collect::<String>();
        let mut out = Vec::new();
        let mut compare_property = |property: &str, here: String, there: String| {
            if here != there {
                out.push((property.to_owned(), truncated(here), truncated(there)));
            }
        };
        compare_property("op", here.op.clone(), there.op.clone());
        compare_property("device", here.device.clone(), there.device.clone());
        compare_property("inputs", inputs(here).join(", "), inputs(there).join(", "));
        let names = here.attr.keys().chain(there.attr.keys().filter(|name| !here.attr.contains_key(*name)));
        for name in names.filter(|name| here.attr.get(*name) != there.attr.get(*name)) {
            let text = |node: &NodeDef| node.attr.get(name).map_or_else(|| "none".to_owned(), attr_text);
            out.push((name.clone(), truncated(text(here)), truncated(text(there))));
        }
        out
    }
}

/// Returns a node's inputs in canonical form: data in order, then sorted control inputs; `x:0` is `x`.
fn inputs(node: &NodeDef) -> Vec<&str> {
    let plain_len = |input: &'_ str| -> usize {
        let node = input.strip_suffix(":0").filter(|node| !node.contains(':'));
        node.unwrap_or(input).len()
    };
    let mut out: Vec<&str> = node.input.iter().map(|input| &input[..plain_len(input)]).collect();
    // Stable, so that data stays in order.
    out.sort_by_key(|input| if input.starts_with('^') { (true, *input) } else { (false, "") });
    out
}

fn is_same(a: &NodeDef, b: &NodeDef) -> bool {
    a.op == b.op && a.device == b.device && a.attr == b.attr && (a.input == b.input || inputs(a) == inputs(b))
}

/// Returns every node of a graph with its full name in a model.
fn nodes(def: &GraphDef) -> impl Iterator<Item = (Cow<'_, str>, &NodeDef)> {
    let functions = def.library.iter().flat_map(|library| &library.function);
    let bodies = functions.flat_map(|function| {
        let prefix = function_prefix(function.signature.as_ref().map_or("", |s| &s.name));
        function.node_def.iter().map(move |node| (Cow::from(format!("{prefix}{}", node.name)), node))
    });
    def.node.iter().map(|node| (Cow::from(node.name.as_str()), node)).chain(bodies)
}

fn find_node<'a>(def: &'a GraphDef, name: &str) -> Option<&'a NodeDef> {
    nodes(def).find(|(full, _)| full == name).map(|(_, node)| node)
}

fn compare(pair: Pair) -> GraphDiff {
    let (model, other) = (&pair.model.0, &pair.other.0);
    let mut other_nodes: FxHashMap<Cow<'_, str>, &NodeDef> = FxHashMap::default();
    for (name, node) in nodes(other) {
        other_nodes.entry(name).or_insert(node);
    }
    let mut counts = vec![ChangeCounts::default(); model.n_items()];
    for item in model.items() {
        let Some(node) = model.node_def(item) else { continue };
        match other_nodes.get(model.name(item)) {
            None => counts[item.idx()].n_only_here = 1,
            Some(other) if !is_same(node, other) => counts[item.idx()].n_differ = 1,
            Some(_) => {}
        }
    }
    model.add_to_scopes(&mut counts, |scope, child| {
        scope.n_differ += child.n_differ;
        scope.n_only_here += child.n_only_here;
    });
    let is_node = |name: &str| model.find(name).is_some_and(|item| model.node_def(item).is_some());
    let missing = other_nodes.into_keys().filter(|name| !is_node(name));
    let mut missing: Vec<String> = missing.map(Cow::into_owned).collect();
    missing.sort_by(|a, b| natural::order(a, b));
    GraphDiff { counts, missing, pair }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::model::tests::graph;

    fn diff(here: &str, there: &str) -> GraphDiff {
        compare(Pair { model: PtrEq(Arc::new(Model::build(graph(here)))), other: PtrEq(graph(there)) })
    }

    const BEFORE: &str = "x = Placeholder()
        a/mul = MatMul(x)
        a/add = Add(a/mul, x)
        a/dead = Neg(x)
        loss = Mean(a/add, ^a/mul)";

    #[test]
    fn what_a_pass_did() {
        let after = "x = Placeholder()
            a/mul = MatMul(x:0)
            a/add = _Fused(a/mul, x)
            a/const = Const()
            loss = Mean(a/add, ^a/mul)";
        let diff = diff(after, BEFORE);
        let model = &diff.pair.model.0;
        let of = |name: &str| {
            let ChangeCounts { n_differ, n_only_here } = diff.counts(model.find(name).unwrap());
            (n_differ, n_only_here)
        };
        assert_eq!((of("a/add"), of("a/const")), ((1, 0), (0, 1)));
        assert_eq!((of("a/mul"), of("loss"), of("x")), ((0, 0), (0, 0), (0, 0)), "x and x:0 are the same input");
        assert_eq!(of("a"), (1, 1));
        assert_eq!(diff.counts(ItemId::ROOT), ChangeCounts { n_differ: 1, n_only_here: 1 });
        assert_eq!((diff.missing(""), diff.missing("a")), (&["a/dead".to_owned()][..], &["a/dead".to_owned()][..]));
        assert!(diff.missing("loss").is_empty());
        let found = diff.differences(model, model.find("a/add").unwrap());
        assert_eq!(found, [("op".to_owned(), "_Fused".to_owned(), "Add".to_owned())]);
        assert!(diff.differences(model, model.find("a/mul").unwrap()).is_empty());
    }

    #[test]
    fn a_graph_is_the_same_as_itself_and_shares_nothing_with_an_empty_one() {
        let same = diff(BEFORE, BEFORE);
        assert_eq!((same.counts(ItemId::ROOT), same.missing.len()), (ChangeCounts::default(), 0));
        let all = diff(BEFORE, "");
        assert_eq!(all.counts(ItemId::ROOT), ChangeCounts { n_differ: 0, n_only_here: 5 });
        assert_eq!(diff("", BEFORE).missing.len(), 5);
    }
}
