//! The panel driven through the accessibility tree, without a window.

use super::{model::tests::graph, *};
use crate::panel_test::{Panel, wait_for};
use egui::{Key, Role};
use egui_kittest::kittest::Queryable;
use std::time::Duration;

fn panel(text: &str) -> Panel<GraphView> {
    let def = Arc::unwrap_or_clone(graph(text));
    let mut harness =
        crate::panel_test::panel(GraphView::default(), Data::default().with_graph("test", def), [1100.0, 800.0]);
    settle(&mut harness);
    harness
}

/// Runs frames until the worker has answered and nothing moves.
fn settle(harness: &mut Panel<GraphView>) {
    for _ in 0..12_000 {
        harness.run_steps(2);
        if !harness.state().view.is_busy() {
            harness.run_steps(20);
            if !harness.state().view.is_busy() {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the worker did not answer");
}

const TEXT: &str = "x = Placeholder()
    layer1/w = VariableV2()
    layer1/mul = MatMul(x, layer1/w)
    layer1/act/relu = Relu(layer1/mul)
    layer2/mul = MatMul(layer1/act/relu)
    loss = Mean(layer2/mul)";

fn has(harness: &Panel<GraphView>, label: &str) -> bool {
    harness.query_by_label(label).is_some()
}

#[test]
fn a_click_on_the_button_opens_and_closes_a_scope() {
    let mut harness = panel(TEXT);
    assert!(has(&harness, "scope layer1, 3 nodes, collapsed"));
    assert!(!has(&harness, "node layer1/mul, MatMul"));
    harness.get_by_role_and_label(Role::Button, "Expand layer1").click();
    settle(&mut harness);
    assert!(has(&harness, "scope layer1, 3 nodes, expanded"));
    assert!(has(&harness, "node layer1/mul, MatMul"));
    harness.get_by_role_and_label(Role::Button, "Collapse layer1").click();
    settle(&mut harness);
    assert!(!has(&harness, "node layer1/mul, MatMul"));
}

#[test]
fn the_keyboard_opens_levels_and_closes_all() {
    let mut harness = panel(TEXT);
    harness.key_press(Key::E);
    settle(&mut harness);
    assert!(has(&harness, "node layer2/mul, MatMul") && has(&harness, "scope layer1/act, 1 node, collapsed"));
    harness.key_press(Key::E);
    settle(&mut harness);
    assert!(has(&harness, "node layer1/act/relu, Relu"));
    harness.key_press(Key::C);
    settle(&mut harness);
    assert!(has(&harness, "scope layer1, 3 nodes, collapsed") && !has(&harness, "node layer2/mul, MatMul"));
}

#[test]
fn a_click_selects_and_enter_opens() {
    let mut harness = panel(TEXT);
    harness.get_by_label("scope layer1, 3 nodes, collapsed").click();
    settle(&mut harness);
    assert_eq!(harness.state().selection.node.get().map(|n| &**n), Some("layer1"));
    assert!(harness.query_by_label("Ops (3)").is_some(), "details list the ops");
    harness.key_press(Key::Enter);
    settle(&mut harness);
    assert!(has(&harness, "node layer1/w, VariableV2"));
}

#[test]
fn search_reveals_what_is_hidden() {
    let mut harness = panel(TEXT);
    harness.key_press(Key::Slash);
    harness.run_steps(3);
    let field = harness.get_by_role(Role::TextInput);
    field.type_text("relu");
    harness.run_steps(3);
    assert!(has(&harness, "1 hit"));
    harness.get_by_role_and_label(Role::Button, "layer1/act/relu").click();
    settle(&mut harness);
    assert!(has(&harness, "node layer1/act/relu, Relu"));
    assert_eq!(harness.state().selection.node.get().map(|n| &**n), Some("layer1/act/relu"));
}

#[test]
fn a_node_picked_elsewhere_is_revealed() {
    let mut harness = panel(TEXT);
    harness.state_mut().selection.node.set(ViewKind::Timeline, Some("layer1/mul".into()));
    settle(&mut harness);
    assert!(has(&harness, "node layer1/mul, MatMul"));
    let selected =
        harness.state().view.selected.map(|i| harness.state().view.model.as_ref().unwrap().name(i).to_owned());
    assert_eq!(selected.as_deref(), Some("layer1/mul"));
}

#[test]
fn every_color_and_an_empty_graph_are_painted() {
    for text in [TEXT, ""] {
        let mut harness = panel(text);
        for by in ColorBy::all() {
            harness.state_mut().view.color_by(by);
            settle(&mut harness);
        }
    }
}

#[test]
fn a_graph_is_compared_with_the_one_before_it() {
    let mut harness = panel(TEXT);
    let after = TEXT.replace("layer1/mul = MatMul(x, layer1/w)", "layer1/mul = _Fused(x, layer1/w)");
    let after = after.replace("layer1/act/relu = Relu(layer1/mul)", "layer1/bias = Const()");
    let data = std::mem::take(&mut harness.state_mut().data);
    harness.state_mut().data = data.with_graph("after", Arc::unwrap_or_clone(graph(&after)));
    harness.state_mut().view.graph_idx = 1;
    harness.state_mut().view.color_by(ColorBy::Change);
    harness.state_mut().selection.node.set(ViewKind::Timeline, Some("layer1/mul".into()));
    // The other graph is compared in a thread of its own, which the layout does not wait for.
    wait_for(&mut harness, "here: _Fused");
    wait_for(&mut harness, "there: MatMul");
    harness.state_mut().selection.node.set(ViewKind::Timeline, Some("layer1".into()));
    settle(&mut harness);
    assert!(has(&harness, "1 node only in this graph, 1 node differ"));
    assert!(has(&harness, "1 node only in the other graph:") && has(&harness, "layer1/act/relu"));
    let state = harness.state();
    assert_eq!(state.view.address(&state.data).get("against"), Some("test"));
}

#[test]
fn loops_are_said_to_be_loops() {
    let text = "x = Placeholder()
        while/Merge = Merge(x, while/Next)
        while/LoopCond = LoopCond(while/Merge)
        while/Switch = Switch(while/Merge, while/LoopCond)
        while/Next = NextIteration(while/Switch:1)";
    let mut harness = panel(text);
    assert!(has(&harness, "scope while, loop, 4 nodes, collapsed"));
    harness.get_by_role_and_label(Role::Button, "Expand while").click();
    settle(&mut harness);
    assert!(has(&harness, "scope while, loop, 4 nodes, expanded"));
}

#[test]
fn a_trace_has_the_devices_that_the_graph_does_not_name() {
    let def = Arc::unwrap_or_clone(graph("layer1/MatMul = MatMul()\nlayer1/Add = Add(layer1/MatMul)\nother = Neg()"));
    let data = Data::default().with_graph("test", def).with_trace("demo", crate::timeline::testing::demo(1));
    let mut harness = crate::panel_test::panel(GraphView::default(), data, [1100.0, 800.0]);
    settle(&mut harness);
    for (node, device) in [("layer1/MatMul", "cpu:0 (from the trace)"), ("other", "not assigned"), ("layer1", "cpu:0")]
    {
        harness.state_mut().selection.node.select(Some(node.into()));
        wait_for(&mut harness, device);
    }
    harness.key_press(Key::Slash);
    harness.run_steps(3);
    harness.get_by_role(Role::TextInput).type_text("device:cpu");
    wait_for(&mut harness, "2 hits");
    let shown = harness.state();
    let table = shown.view.table(&shown.data, &shown.selection).unwrap();
    assert!(table.contains("\nlayer1/Add,Add,cpu:0,") && table.contains("\nother,Neg,,"), "{table}");
}

#[test]
fn the_first_nan_is_looked_for_as_long_as_there_may_be_one() {
    let can = |shown: &crate::panel_test::PanelState<GraphView>| shown.view.can("first-non-finite", &shown.data);
    let def = Arc::unwrap_or_clone(graph("layer1/MatMul = MatMul()"));
    let data = Data::default().with_graph("test", def).with_trace("demo", crate::timeline::testing::demo(1));
    let mut view = GraphView::default();
    assert!(view.can("first-non-finite", &data), "nobody looked yet");
    view.run("first-non-finite");
    let mut harness = crate::panel_test::panel(view, data, [1100.0, 800.0]);
    settle(&mut harness);
    wait_for(&mut harness, "layer1");
    for _ in 0..12_000 {
        harness.run_steps(1);
        if !can(harness.state()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!can(harness.state()), "this trace has none");
    assert_eq!(harness.state().view.color_by, ColorBy::Health);
    assert!(!harness.state().view.seeks_first_non_finite);
}
