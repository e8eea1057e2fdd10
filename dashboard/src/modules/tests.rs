//! The panel through the accessibility tree, on a training step that PyTorch's profiler recorded.

use super::ModulesView;
use crate::{
    Data, View as _, ViewKind,
    panel_test::{Panel, panel, torch_step, wait_for},
    timeline::testing::demo,
};
use egui::Key;
use egui_kittest::kittest::Queryable as _;

fn harness() -> Panel<ModulesView> {
    let mut harness = panel(ModulesView::default(), Data::default().with_trace("step", torch_step()), [1400.0, 700.0]);
    wait_for(&mut harness, "Fold Net_0");
    harness
}

fn key(harness: &mut Panel<ModulesView>, key: Key) {
    harness.key_press(key);
    harness.run_steps(4);
}

fn selected(harness: &Panel<ModulesView>) -> Option<String> {
    harness.state().view.settings.selected.as_deref().map(str::to_owned)
}

#[test]
fn rows_fold_by_click_and_key() {
    let mut harness = harness();
    assert!(harness.query_by_label("Attention_0").is_some());
    assert!(harness.query_by_label("Sort by Device fwd").is_none(), "the trace has no device");
    harness.get_by_label("Fold Net_0/Block_0").click();
    harness.run_steps(4);
    assert!(harness.query_by_label("Attention_0").is_none() && harness.query_by_label("Attention_1").is_some());
    for pressed in [Key::ArrowDown, Key::ArrowDown, Key::ArrowDown] {
        key(&mut harness, pressed);
    }
    assert_eq!(selected(&harness).as_deref(), Some("Net_0/Block_0"));
    key(&mut harness, Key::ArrowRight);
    assert!(harness.query_by_label("Attention_0").is_some());
    key(&mut harness, Key::ArrowRight);
    assert_eq!(selected(&harness).as_deref(), Some("Net_0/Block_0/LayerNorm_0"));
    key(&mut harness, Key::ArrowLeft);
    assert_eq!(selected(&harness).as_deref(), Some("Net_0/Block_0"));
}

#[test]
fn a_module_leads_to_its_passes_in_the_timeline() {
    let mut harness = harness();
    harness.get_by_label("Conv2d_0").click();
    harness.run_steps(4);
    let op = harness.state().selection.op.get().cloned();
    assert_eq!(op.as_deref(), Some("nn.Module: Conv2d_0"));
    harness.get_by_label("Show in Timeline").click();
    harness.run_steps(4);
    let state = harness.state_mut();
    let slice = state.selection.slice.get().and_then(|pick| state.data.traces[0].store.slice(pick.id)).unwrap();
    assert_eq!(state.data.traces[0].store.slice_name(&slice), "nn.Module: Conv2d_0");
    assert_eq!(state.selection.take_show(), Some(ViewKind::Timeline));
}

#[test]
fn filters_tables_and_shapes() {
    let mut harness = harness();
    let table = |harness: &Panel<ModulesView>| {
        let state = harness.state();
        state.view.table(&state.data, &state.selection).unwrap()
    };
    assert!(table(&harness).starts_with("module,share,calls,host_forward_ns,"));
    harness.state_mut().view.settings.filter = "conv2d".to_owned();
    harness.run_steps(4);
    let modules: Vec<String> =
        table(&harness).lines().skip(1).map(|line| line[..line.find(',').unwrap()].to_owned()).collect();
    assert_eq!(modules, ["Net_0", "Net_0/Conv2d_0"]);
    harness.state_mut().view.settings.filter.clear();
    harness.get_by_label("Show: Ops by shapes").click();
    wait_for(&mut harness, "Sort by Shapes of inputs");
    harness.get_by_label("Sort by FLOP").click();
    harness.run_steps(4);
    assert!(table(&harness).lines().nth(1).unwrap().starts_with("aten::_scaled_dot_product_flash_attention_"));
}

#[test]
fn a_trace_without_modules_says_what_to_record() {
    let mut harness = panel(ModulesView::default(), Data::default().with_trace("demo", demo(2)), [900.0, 500.0]);
    wait_for(&mut harness, "The trace names no modules");
    assert!(harness.query_all_by_label_contains("with_stack=True").next().is_some());
}
