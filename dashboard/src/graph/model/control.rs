//! Loops and conditionals: which scopes are one.
//!
//! A loop is what goes round a `LoopCond`; a conditional is what lies between a `Switch` and a `Merge`. Those nodes stand in
//! the scope of the loop or conditional itself, whoever wrote the file (`while/LoopCond`, `cond/Merge`); what it does is in
//! that scope and below.

use super::{ItemId, Model};
use rustc_hash::FxHashMap;

/// What runs a scope's nodes more than once, or not always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Again and again.
    Loop,
    /// One of two branches.
    Conditional,
}

impl Control {
    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Conditional => "conditional",
        }
    }
}

/// Which of the nodes that tell stand in a scope.
#[derive(Clone, Copy, Default)]
struct Seen {
    loop_cond: bool,
    switch: bool,
    merge: bool,
}

/// The scopes that are loops or conditionals.
pub(super) fn find(model: &Model) -> FxHashMap<ItemId, Control> {
    let mut seen: FxHashMap<ItemId, Seen> = FxHashMap::default();
    for item in model.items() {
        let scope = model.parent(item);
        if scope == ItemId::ROOT {
            continue;
        }
        match model.op(item) {
            "LoopCond" => seen.entry(scope).or_default().loop_cond = true,
            "Switch" | "RefSwitch" => seen.entry(scope).or_default().switch = true,
            "Merge" | "RefMerge" => seen.entry(scope).or_default().merge = true,
            _ => {}
        }
    }
    let control = |seen: Seen| match seen {
        Seen { loop_cond: true, .. } => Some(Control::Loop),
        Seen { switch: true, merge: true, .. } => Some(Control::Conditional),
        _ => None,
    };
    seen.into_iter().filter_map(|(scope, seen)| Some((scope, control(seen)?))).collect()
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
