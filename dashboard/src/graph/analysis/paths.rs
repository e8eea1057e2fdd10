//! The nodes upstream and downstream of a node, and the nodes between two nodes.

use crate::graph::model::{ItemId, Model};
use rustc_hash::FxHashSet;

/// Returns `item`, all nodes that it depends on, and the scopes around these nodes.
pub(crate) fn upstream(model: &Model, item: ItemId) -> FxHashSet<ItemId> {
    with_scopes(model, reachable(model, item, false))
}

/// Returns `item`, all nodes that depend on it, and the scopes around these nodes.
pub(crate) fn downstream(model: &Model, item: ItemId) -> FxHashSet<ItemId> {
    with_scopes(model, reachable(model, item, true))
}

/// Returns the nodes on all paths between two items in either direction, both included; `None` without a path.
pub(crate) fn nodes_between(model: &Model, a: ItemId, b: ItemId) -> Option<FxHashSet<ItemId>> {
    let has_any =
        |item: ItemId, found: &FxHashSet<ItemId>| (item.0..model.end(item).0).any(|i| found.contains(&ItemId(i)));
    for (from, to) in [(a, b), (b, a)] {
        let after = reachable(model, from, true);
        if has_any(to, &after) {
            let before = reachable(model, to, false);
            return Some(with_scopes(model, after.intersection(&before).copied().collect()));
        }
    }
    None
}

/// Returns the nodes of an item, and all nodes upstream or (`forward`) downstream of them.
fn reachable(model: &Model, item: ItemId, forward: bool) -> FxHashSet<ItemId> {
    let mut stack: Vec<ItemId> = (item.0..model.end(item).0).map(ItemId).collect();
    let mut found: FxHashSet<ItemId> = stack.iter().copied().collect();
    while let Some(node) = stack.pop() {
        let mut visit = |next: ItemId| {
            if found.insert(next) {
                stack.push(next);
            }
        };
        if forward {
            model.outputs(node).for_each(|edge| visit(edge.dst));
        } else {
            model.inputs(node).for_each(|edge| visit(edge.src));
        }
    }
    found
}

/// Adds the scopes around the nodes.
fn with_scopes(model: &Model, mut found: FxHashSet<ItemId>) -> FxHashSet<ItemId> {
    let nodes: Vec<ItemId> = found.iter().copied().collect();
    for node in nodes {
        let mut scope = model.parent(node);
        while scope != ItemId::ROOT && found.insert(scope) {
            scope = model.parent(scope);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::model::tests::graph;

    #[test]
    fn what_a_node_depends_on_is_found_through_scopes_and_cycles() {
        let text = "x = P()\ns/a = Neg(x, s/l:1)\ns/l = NextIteration(s/a)\nb = Neg(x)\ny = Neg(s/a)";
        let model = Model::build(graph(text));
        let found = upstream(&model, model.find("y").unwrap());
        let mut names: Vec<_> = found.iter().map(|&i| model.name(i)).collect();
        names.sort_unstable();
        assert_eq!(names, ["s", "s/a", "s/l", "x", "y"]);
    }

    #[test]
    fn paths_lie_between_two_nodes_in_either_order() {
        let text = "x = P()\nz = P()\ns/a = Neg(x)\ns/b = Add(s/a, z)\ny = Neg(s/b)\nside = Neg(x)";
        let model = Model::build(graph(text));
        let item = |name: &str| model.find(name).unwrap();
        let sorted = |found: FxHashSet<ItemId>| {
            let mut names: Vec<_> = found.into_iter().map(|i| model.name(i).to_owned()).collect();
            names.sort_unstable();
            names
        };
        let path = sorted(nodes_between(&model, item("x"), item("y")).unwrap());
        assert_eq!(path, ["s", "s/a", "s/b", "x", "y"]);
        assert_eq!(sorted(nodes_between(&model, item("y"), item("x")).unwrap()), path);
        assert_eq!(nodes_between(&model, item("side"), item("y")), None);
        assert_eq!(sorted(downstream(&model, item("z"))), ["s", "s/b", "y", "z"]);
    }
}
