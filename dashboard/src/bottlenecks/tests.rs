//! The page through the accessibility tree.

use super::BottlenecksView;
use crate::{
    Data, ViewKind,
    panel_test::{Panel, panel, wait_for},
    timeline::testing::demo,
};
use egui_kittest::kittest::Queryable as _;

fn harness(data: Data) -> Panel<BottlenecksView> {
    panel(BottlenecksView::default(), data, [1200.0, 1400.0])
}

#[test]
fn every_line_leads_to_its_evidence() {
    let mut harness = harness(Data::default().with_trace("demo", demo(4)));
    wait_for(&mut harness, "Top opportunities");
    let expected = {
        let store = &harness.state().data.traces[0].store;
        trace_analysis::report::analyse(store, store.range())
    };
    assert!(!expected.findings.is_empty());
    wait_for(&mut harness, &format!("1. {}", expected.findings[0].title));
    assert!(harness.query_by_label_contains("Step times: 4 steps, mean 88.0 µs, median 88.0 µs: compute").is_some());
    harness.get_all_by_label("Longest").next().unwrap().click();
    harness.run_steps(2);
    let selection = &mut harness.state_mut().selection;
    assert_eq!(selection.time.get().map(|t| t.ns.clone()), Some(expected.findings[0].range.clone()));
    assert_eq!(selection.slice.get().map(|s| s.id), expected.findings[0].slices.first().copied());
    assert_eq!(selection.take_show(), Some(ViewKind::Timeline));
    harness.run_steps(2);
    assert!(harness.query_by_label_contains("Step times: 4 steps").is_some(), "evidence is no question");
    harness.get_all_by_label("MatMul").next().unwrap().click();
    harness.run_steps(2);
    assert_eq!(harness.state().selection.op.get().map(|o| &**o), Some("MatMul"));
}

#[test]
fn ops_lie_below_their_devices_limits() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../profiler/formats/tests/fixtures/roofline.xplane.pb");
    let mut store = trace_store::Store::with_options(trace_store::StoreOptions::UNBOUNDED);
    trace_formats::import::open(&[path.into()]).unwrap().read_all(&mut store).unwrap();
    let mut harness = harness(Data::default().with_trace("tpu", store));
    wait_for(&mut harness, "Roofline of TPU:0");
    assert!(harness.query_by_label_contains("At most 197.00 TFLOP/s and 819.00 GB/s.").is_some());
    assert!(harness.query_by_label_contains("Roofline: 3 ops, operations a second by operations per byte").is_some());
    assert!(harness.query_by_label("133.32 TFLOP/s").is_some() && harness.query_by_label("bound by compute").is_some());
    harness.get_all_by_label("dot.1").next().unwrap().click();
    harness.run_steps(2);
    assert_eq!(harness.state().selection.op.get().map(|o| &**o), Some("dot.1"));
}

#[test]
fn a_selected_range_is_a_question_and_no_trace_says_so() {
    let mut harness_of_demo = harness(Data::default().with_trace("demo", demo(4)));
    wait_for(&mut harness_of_demo, "Step times: 4 steps");
    let ns = 100_000..200_000;
    let range = crate::selection::TimeRange { trace_idx: 0, ns };
    harness_of_demo.state_mut().selection.time.set(ViewKind::Timeline, Some(range));
    wait_for(&mut harness_of_demo, "Step times: 1 step,");
    let mut empty = harness(Data::default());
    empty.run_steps(2);
    assert!(empty.query_by_label("No trace yet").is_some());
}
