//! What every picture keeps: siblings apart, children inside, every edge drawn or noted, the same picture twice.

use super::{cache::visible_scopes, *};
use crate::graph::model::{ItemId, Kind, Model, Role, tests::graph};
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;

fn picture(model: &Model, open: &[ItemId]) -> Picture {
    let open = Expansion { open: open.iter().copied().collect(), ..Expansion::default() };
    LayoutCache::default().picture(model, &open, &AtomicBool::new(false)).unwrap()
}

fn check(model: &Model, open: &[ItemId]) {
    let picture = picture(model, open);
    for (idx, a) in picture.boxes.iter().enumerate() {
        for b in &picture.boxes[..idx] {
            let nested = model.is_below(a.item, b.item) || model.is_below(b.item, a.item);
            let apart = a.rect[2] <= b.rect[0] + 0.1
                || b.rect[2] <= a.rect[0] + 0.1
                || a.rect[3] <= b.rect[1] + 0.1
                || b.rect[3] <= a.rect[1] + 0.1;
            assert!(nested || apart, "{} overlaps {}", model.name(a.item), model.name(b.item));
        }
        let parent = model.parent(a.item);
        let outer = match parent {
            ItemId::ROOT => [0.0, 0.0, picture.size[0], picture.size[1]],
            _ => picture.find(parent).unwrap().rect,
        };
        let inside = outer[0] <= a.rect[0] && outer[1] <= a.rect[1] && a.rect[2] <= outer[2] && a.rect[3] <= outer[3];
        assert!(inside, "{} {:?} leaves {outer:?}", model.name(a.item), a.rect);
    }
    for scope in visible_scopes(model, &Expansion { open: open.iter().copied().collect(), ..Expansion::default() }) {
        for edge in model.metaedges(scope) {
            let drawn = picture.edges.iter().any(|e| e.metaedge.src == edge.src && e.metaedge.dst == edge.dst);
            let noted = |item, other| {
                let b = picture.find(item).unwrap();
                b.is_open
                    || picture
                        .notes(b)
                        .into_iter()
                        .flatten()
                        .any(|n| n.item == other || matches!(n.kind, NoteKind::More(_)))
            };
            assert!(drawn || (noted(edge.src, edge.dst) && noted(edge.dst, edge.src)));
        }
    }
    assert_eq!(picture, self::picture(model, open));
}

#[test]
fn an_edge_into_an_open_scope_goes_on_inside() {
    let model = Model::build(graph("x = Placeholder()\ns/a = Neg(x)\ns/b = Neg(s/a)\ny = Neg(s/b)"));
    let scope = model.find("s").unwrap();
    check(&model, &[scope]);
    let picture = picture(&model, &[scope]);
    let parts: Vec<_> = picture.edges.iter().filter(|e| model.name(e.metaedge.src) == "x").collect();
    assert_eq!(parts.len(), 2);
    let (outer, inner) = if parts[0].has_head { (parts[1], parts[0]) } else { (parts[0], parts[1]) };
    assert_eq!(model.name(inner.metaedge.dst), "s/a");
    let (end, start) = (picture.points(outer).last().unwrap(), picture.points(inner).next().unwrap());
    assert!((end[0] - start[0]).abs() < 0.5 && (end[1] - start[1]).abs() < 0.5, "{end:?} {start:?}");
    let tops = |name: &str| picture.find(model.find(name).unwrap()).unwrap().rect[1];
    assert!(tops("y") < tops("s/b") && tops("s/b") < tops("s/a") && tops("s/a") < tops("x"), "flow goes upwards");
}

#[test]
fn a_closed_and_opened_scope_is_not_laid_out_again() {
    let model = Model::build(graph("x = Placeholder()\ns/a = Neg(x)\ns/b = Neg(s/a)"));
    let mut layouts = LayoutCache::default();
    let open = Expansion { open: [model.find("s").unwrap()].into_iter().collect(), ..Expansion::default() };
    let go = AtomicBool::new(false);
    for expansion in [&open, &Expansion::default(), &open] {
        layouts.picture(&model, expansion, &go).unwrap();
    }
    assert_eq!(layouts.layouts.len(), 3, "root closed, root open, s");
}

#[test]
fn a_flat_scope_shows_its_first_children_and_counts_the_rest() {
    let text: String = (0..MAX_CHILDREN + 300).map(|i| format!("s/op{i}x = Op{i}()\n")).collect();
    let model = Model::build(graph(&text));
    let scope = model.find("s").unwrap();
    let picture = picture(&model, &[scope]);
    assert_eq!(picture.find(scope).unwrap().n_hidden, 300);
    assert_eq!(picture.boxes.len(), MAX_CHILDREN + 1);
}

#[test]
fn bookkeeping_and_hubs_go_to_the_side() {
    let mut text = String::from("hub = Fill()\ninit = NoOp(^n3)\n");
    for i in 0..30 {
        text += &format!("n{i} = Op{i}({})\n", if i > 0 { format!("n{}, hub", i - 1) } else { "hub".into() });
    }
    let model = Model::build(graph(&text));
    let picture = picture(&model, &[]);
    let side: Vec<_> = picture.boxes.iter().filter(|b| b.is_auxiliary).map(|b| model.name(b.item)).collect();
    assert_eq!(side, ["hub", "init"]);
    check(&model, &[]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_graph_keeps_the_invariants(
        nodes in prop::collection::vec(
            ("[ab]{1}(/[abc]){0,3}", 0..4_u8, prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..4)),
            1..40,
        ),
        mask in any::<u64>(),
    ) {
        let text: String = nodes.iter().map(|(name, op, inputs)| {
            let input = |(index, control): &(prop::sample::Index, bool)| {
                format!("{}{}", if *control { "^" } else { "" }, nodes[index.index(nodes.len())].0)
            };
            let inputs: Vec<_> = inputs.iter().map(input).collect();
            format!("{name} = {}({})\n", ["Add", "Const", "NoOp", "XSummary"][*op as usize], inputs.join(","))
        }).collect();
        let model = Model::build(graph(&text));
        let open: Vec<_> = model
            .items()
            .filter(|&i| model.kind(i) != Kind::Op && model.role(i) == Role::Shown && mask >> (i.0 % 64) & 1 == 1)
            .collect();
        check(&model, &open);
    }
}
