//! The panel through the accessibility tree, on a snapshot that PyTorch wrote.

use super::MemoryView;
use crate::{
    Data, View as _, ViewKind,
    loader::read_snapshot_file,
    panel_test::{Panel, panel, torch_step, wait_for},
};
use egui_kittest::kittest::Queryable as _;
use std::path::Path;

fn harness(name: &str) -> Panel<MemoryView> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiler/dumps/tests/fixtures").join(name);
    let mut data = Data::default();
    data.snapshots.push(read_snapshot_file(&path).unwrap());
    panel(MemoryView::default(), data, [1300.0, 800.0])
}

#[test]
fn the_peak_is_taken_apart_by_place() {
    let mut harness = harness("gpu_p4.pickle");
    wait_for(&mut harness, "Peak, ");
    let state = harness.state();
    let of = &state.data.snapshots[0].devices[0];
    let peak = of.peak.unwrap().allocated;
    let csv = state.view.table(&state.data, &state.selection).unwrap();
    let bytes = |line: &str| line.rsplit(',').nth(2).unwrap().parse::<u64>().unwrap();
    assert_eq!(csv.lines().skip(1).map(bytes).sum::<u64>(), peak, "{csv}");
    assert!(harness.query_all_by_label_contains("Memory over time: peak ").next().is_some());
    assert!(harness.query_by_label("Asked for").is_none());
    harness.query_all_by_label_contains("Out of memory, ").next().unwrap().click();
    wait_for(&mut harness, "Asked for");
    harness.get_by_label("Peak").click();
    wait_for(&mut harness, "Peak, ");
}

#[test]
fn segments_are_listed_with_their_use() {
    let mut harness = harness("gpu_p4.pickle");
    harness.run_steps(2);
    harness.get_by_label("Show: Segments").click();
    wait_for(&mut harness, "Segment 0x");
    let n = harness.query_all_by_label_contains("Segment 0x").count();
    let state = harness.state();
    let snapshot = &state.data.snapshots[0];
    assert_eq!(n, snapshot.snapshot.devices[snapshot.devices[0].device].segments.len());
}

#[test]
fn a_trace_has_its_devices() {
    let mut harness = panel(MemoryView::default(), Data::default().with_trace("step", torch_step()), [900.0, 600.0]);
    wait_for(&mut harness, "Memory of cpu: peak ");
    harness.get_by_label("Show in Timeline").click();
    harness.run_steps(4);
    let state = harness.state_mut();
    assert_eq!(state.selection.take_show(), Some(ViewKind::Timeline));
    let range = state.selection.time.get().unwrap().ns.clone();
    let peak = trace_analysis::memory::memory_timelines(&state.data.traces[0].store)[0].peak_time;
    assert!(range.contains(&peak), "{range:?} {peak}");
}
