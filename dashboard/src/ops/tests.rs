//! The panel through the accessibility tree.

use super::OpsView;
use crate::{
    Data, Selection, View, ViewKind,
    selection::TimeRange,
    theme,
    timeline::testing::{STEP_NS, demo},
};
use egui::vec2;
use egui_kittest::{Harness, kittest::Queryable as _};
use std::time::Duration;

struct State {
    view: OpsView,
    data: Data,
    selection: Selection,
}

fn harness() -> Harness<'static, State> {
    let state = State {
        view: OpsView::default(),
        data: Data::default().with_trace("demo", demo(3)),
        selection: Selection::default(),
    };
    let mut installed = false;
    let mut harness = Harness::builder().with_size(vec2(1300.0, 600.0)).with_step_dt(0.2).build_ui_state(
        move |ui, state: &mut State| {
            if !std::mem::replace(&mut installed, true) {
                theme::install(ui.ctx());
            }
            state.view.ui(ui, &state.data, &mut state.selection);
        },
        state,
    );
    wait_for(&mut harness, "Sort by Total, sorted, greatest first");
    harness
}

fn wait_for(harness: &mut Harness<'_, State>, what: &str) {
    for _ in 0..500 {
        harness.run_steps(1);
        if harness.query_all_by_label_contains(what).next().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never shown: {what}");
}

fn y(harness: &Harness<'_, State>, label: &str) -> f32 {
    harness.get_by_label(label).rect().center().y
}

#[test]
fn headings_sort_and_rows_pick_the_op() {
    let mut harness = harness();
    assert!(y(&harness, "MatMul") < y(&harness, "Add"));
    harness.get_by_label("Sort by Op").click();
    harness.run_steps(4);
    assert!(y(&harness, "Add") < y(&harness, "MatMul"));
    harness.get_by_label("Add").click();
    harness.run_steps(4);
    assert_eq!(harness.state().selection.op.get().map(|o| &**o), Some("Add"));
    harness.get_by_label("Add").click();
    harness.run_steps(4);
    assert_eq!(harness.state().selection.op.get(), None);
}

#[test]
fn nodes_of_the_selected_range_only() {
    let mut harness = harness();
    harness.get_by_label("Per node").click();
    harness.run_steps(4);
    assert!(harness.query_by_label("layer1/Add").is_some());
    let ns = 0..72_000;
    harness.state_mut().selection.time.set(ViewKind::Timeline, Some(TimeRange { trace_idx: 0, ns }));
    wait_for(&mut harness, "to 72.0 µs (72.0 µs)");
    assert!(harness.query_by_label("layer1/Add").is_none() && harness.query_by_label("layer1/MatMul").is_some());
    harness.get_by_label("Whole trace").click();
    let whole = crate::format::duration_ns(3 * STEP_NS - 12_000);
    wait_for(&mut harness, &format!("({whole})"));
    assert!(harness.query_by_label("layer1/Add").is_some());
}
