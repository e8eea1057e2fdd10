//! The panel through the accessibility tree.

use super::OpsView;
use crate::{
    Data, ViewKind,
    panel_test::{Panel, panel, wait_for},
    selection::TimeRange,
    timeline::testing::{STEP_NS, demo},
};
use egui_kittest::kittest::Queryable as _;

fn harness() -> Panel<OpsView> {
    let mut harness = panel(OpsView::default(), Data::default().with_trace("demo", demo(3)), [1300.0, 600.0]);
    wait_for(&mut harness, "Sort by Self, sorted, highest first");
    harness
}

fn y(harness: &Panel<OpsView>, label: &str) -> f32 {
    // The first of several: an op's, before its shards'.
    harness.get_all_by_label(label).next().map_or(f32::NAN, |node| node.rect().center().y)
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
    let whole = ui::format::duration_ns(3 * STEP_NS - 12_000);
    wait_for(&mut harness, &format!("({whole})"));
    assert!(harness.query_by_label("layer1/Add").is_some());
}
