//! Everything a node depends on.

use super::model::{ItemId, Model};
use rustc_hash::FxHashSet;

/// `item`, all nodes that its nodes get anything from, and the scopes around these.
pub(super) fn upstream(model: &Model, item: ItemId) -> FxHashSet<ItemId> {
    let mut found: FxHashSet<ItemId> = FxHashSet::default();
    let mut stack: Vec<ItemId> = (item.0..model.end(item).0).map(ItemId).collect();
    found.extend(&stack);
    while let Some(at) = stack.pop() {
        for edge in model.inputs(at) {
            if found.insert(edge.src) {
                stack.push(edge.src);
            }
        }
    }
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
}
