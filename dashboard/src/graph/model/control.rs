//! Scopes that are loops or conditionals.
//!
//! A loop contains a `LoopCond`; a conditional contains a `Switch` and a `Merge`. Every exporter puts these nodes
//! directly into the scope of the loop or conditional (`while/LoopCond`, `cond/Merge`), with its body in that scope and
//! below.

use super::{
    columns::Model,
    items::{Control, ItemId},
};
use rustc_hash::FxHashMap;

/// Whether a scope has the ops that mark a loop or a conditional.
#[derive(Clone, Copy, Default)]
struct Markers {
    loop_cond: bool,
    switch: bool,
    merge: bool,
}

/// Returns the scopes that are loops or conditionals.
pub(super) fn find(model: &Model) -> FxHashMap<ItemId, Control> {
    let mut markers: FxHashMap<ItemId, Markers> = FxHashMap::default();
    for item in model.items() {
        let scope = model.parent(item);
        if scope == ItemId::ROOT {
            continue;
        }
        match model.op(item) {
            "LoopCond" => markers.entry(scope).or_default().loop_cond = true,
            "Switch" | "RefSwitch" => markers.entry(scope).or_default().switch = true,
            "Merge" | "RefMerge" => markers.entry(scope).or_default().merge = true,
            _ => {}
        }
    }
    let control = |markers: Markers| match markers {
        Markers { loop_cond: true, .. } => Some(Control::Loop),
        Markers { switch: true, merge: true, .. } => Some(Control::Conditional),
        _ => None,
    };
    markers.into_iter().filter_map(|(scope, markers)| Some((scope, control(markers)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::model::tests::graph;

    #[test]
    fn scopes_that_loop_or_branch() {
        let text = "x = Placeholder()
            a/while/Enter = Enter(x)
            a/while/Merge = Merge(a/while/Enter, a/while/Next)
            a/while/Less = Less(a/while/Merge)
            a/while/LoopCond = LoopCond(a/while/Less)
            a/while/Switch = Switch(a/while/Merge, a/while/LoopCond)
            a/while/body/Add = Add(a/while/Switch:1)
            a/while/cond/Switch = Switch(a/while/body/Add)
            a/while/cond/Merge = Merge(a/while/cond/Switch)
            a/while/Next = NextIteration(a/while/cond/Merge)
            b/Switch = Switch(x)
            Merge = Merge(x)";
        let model = Model::build(graph(text));
        let of = |name: &str| model.control(model.find(name).unwrap());
        assert_eq!(of("a/while"), Some(Control::Loop));
        assert_eq!(of("a/while/cond"), Some(Control::Conditional));
        assert_eq!((of("a"), of("a/while/body"), of("b")), (None, None, None));
        assert_eq!(model.control(ItemId::ROOT), None);
    }
}
