//! Differences between two graphs: before and after a pass or the partitioning, or two versions of a model. Nodes
//! correspond if their full names are equal.

use super::input::Same;
use crate::graph::model::{ItemId, Model, attr_text, function_prefix};
use egui::Context;
use formats::proto::{GraphDef, NodeDef};
use rustc_hash::FxHashMap;
use std::{borrow::Cow, sync::Arc};
use ui::background::{Question, Refresher};
use ui::natural;

/// Characters of a value that are shown.
const VALUE_MAX: usize = 120;

/// Nodes below an item, or the node itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Nodes that the other graph has too, but with another op, device, inputs or attributes.
    pub differ: u32,
    /// Nodes that only this graph has.
    pub only_here: u32,
}

impl Counts {
    /// Nodes that are not the same in both graphs.
    pub fn changed(self) -> u32 {
        self.differ + self.only_here
    }
}

/// A pair of graphs to compare.
#[derive(Clone, PartialEq)]
struct Pair {
    model: Same<Model>,
    other: Same<GraphDef>,
}

impl Question for Pair {}

pub(crate) struct GraphDiff {
    of: Pair,
    counts: Vec<Counts>,
    /// Full names of nodes that only the other graph has, in order.
    missing: Vec<String>,
}

/// Comparisons, made in a thread of their own.
#[derive(Default)]
pub(crate) struct Changes {
    comparison: Refresher<Pair, Pair, GraphDiff>,
    diff: Option<Arc<GraphDiff>>,
}

impl Changes {
    /// Requests the comparison with `other`, unless it was requested before.
    pub fn update(&mut self, ctx: &Context, model: &Arc<Model>, other: &Arc<GraphDef>) {
        let pair = Pair { model: Same(Arc::clone(model)), other: Same(Arc::clone(other)) };
        let diff = self.comparison.ask(ctx, ("graph changes", compare), 0.0, pair.clone(), |pair, _| pair);
        self.diff = diff.filter(|diff| diff.of == pair);
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
    /// Changed nodes at or below an item.
    pub fn of(&self, item: ItemId) -> Counts {
        self.counts.get(item.idx()).copied().unwrap_or_default()
    }

    /// Full names of nodes below a scope (of the root: anywhere) that only the other graph has, in order.
    pub fn missing(&self, scope: &str) -> &[String] {
        if scope.is_empty() {
            return &self.missing;
        }
        // Names below `a` begin with `a/`, and `0` is the character after the slash.
        let from = self.missing.partition_point(|name| name.as_str() < format!("{scope}/").as_str());
        let to = self.missing.partition_point(|name| name.as_str() < format!("{scope}0").as_str());
        &self.missing[from..to.max(from)]
    }

    /// Differences of a node that both graphs have, as (property, here, there).
    pub fn differences(&self, model: &Model, item: ItemId) -> Vec<(String, String, String)> {
        let here = model.node_def(item);
        let Some((here, there)) = here.and_then(|here| Some((here, find_node(&self.of.other.0, model.name(item))?)))
        else {
            return Vec::new();
        };
        let cut = |text: String| text.chars().take(VALUE_MAX).collect::<String>();
        let mut out = Vec::new();
        let mut add = |what: &str, here: String, there: String| {
            if here != there {
                out.push((what.to_owned(), cut(here), cut(there)));
            }
        };
        add("op", here.op.clone(), there.op.clone());
        add("device", here.device.clone(), there.device.clone());
        add("inputs", inputs(here).join(", "), inputs(there).join(", "));
        let names = here.attr.keys().chain(there.attr.keys().filter(|name| !here.attr.contains_key(*name)));
        for name in names.filter(|name| here.attr.get(*name) != there.attr.get(*name)) {
            let text = |node: &NodeDef| node.attr.get(name).map_or_else(|| "none".to_owned(), attr_text);
            out.push((name.clone(), cut(text(here)), cut(text(there))));
        }
        out
    }
}

/// A node's inputs: data in order, then control inputs; `x:0` is `x`.
fn inputs(node: &NodeDef) -> Vec<&str> {
    let plain = |input: &'_ str| -> usize {
        let node = input.strip_suffix(":0").filter(|node| !node.contains(':'));
        node.unwrap_or(input).len()
    };
    let mut out: Vec<&str> = node.input.iter().map(|input| &input[..plain(input)]).collect();
    // Stable, so that data stays in order.
    out.sort_by_key(|input| if input.starts_with('^') { (true, *input) } else { (false, "") });
    out
}

fn is_same(a: &NodeDef, b: &NodeDef) -> bool {
    a.op == b.op && a.device == b.device && a.attr == b.attr && (a.input == b.input || inputs(a) == inputs(b))
}

/// Every node of a graph by the full name that a model gives it.
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

fn compare(of: Pair) -> GraphDiff {
    let (model, other) = (&of.model.0, &of.other.0);
    let mut there: FxHashMap<Cow<'_, str>, &NodeDef> = FxHashMap::default();
    for (name, node) in nodes(other) {
        there.entry(name).or_insert(node);
    }
    let mut counts = vec![Counts::default(); model.n_items()];
    for item in model.items() {
        let Some(node) = model.node_def(item) else { continue };
        match there.get(model.name(item)) {
            None => counts[item.idx()].only_here = 1,
            Some(known) if !is_same(node, known) => counts[item.idx()].differ = 1,
            Some(_) => {}
        }
    }
    model.add_to_scopes(&mut counts, |above, own| {
        above.differ += own.differ;
        above.only_here += own.only_here;
    });
    let is_node = |name: &str| model.find(name).is_some_and(|item| model.node_def(item).is_some());
    let missing = there.into_keys().filter(|name| !is_node(name));
    let mut missing: Vec<String> = missing.map(Cow::into_owned).collect();
    missing.sort_by(|a, b| natural::order(a, b));
    GraphDiff { counts, missing, of }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::model::tests::graph;

    fn diff(here: &str, there: &str) -> GraphDiff {
        compare(Pair { model: Same(Arc::new(Model::build(graph(here)))), other: Same(graph(there)) })
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
        let model = &diff.of.model.0;
        let of = |name: &str| {
            let Counts { differ, only_here } = diff.of(model.find(name).unwrap());
            (differ, only_here)
        };
        assert_eq!((of("a/add"), of("a/const")), ((1, 0), (0, 1)));
        assert_eq!((of("a/mul"), of("loss"), of("x")), ((0, 0), (0, 0), (0, 0)), "x and x:0 are the same input");
        assert_eq!(of("a"), (1, 1));
        assert_eq!(diff.of(ItemId::ROOT), Counts { differ: 1, only_here: 1 });
        assert_eq!((diff.missing(""), diff.missing("a")), (&["a/dead".to_owned()][..], &["a/dead".to_owned()][..]));
        assert!(diff.missing("loss").is_empty());
        let found = diff.differences(model, model.find("a/add").unwrap());
        assert_eq!(found, [("op".to_owned(), "_Fused".to_owned(), "Add".to_owned())]);
        assert!(diff.differences(model, model.find("a/mul").unwrap()).is_empty());
    }

    #[test]
    fn a_graph_is_the_same_as_itself_and_shares_nothing_with_an_empty_one() {
        let same = diff(BEFORE, BEFORE);
        assert_eq!((same.of(ItemId::ROOT), same.missing.len()), (Counts::default(), 0));
        let all = diff(BEFORE, "");
        assert_eq!(all.of(ItemId::ROOT), Counts { differ: 0, only_here: 5 });
        assert_eq!(diff("", BEFORE).missing.len(), 5);
    }
}
