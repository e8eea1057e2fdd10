//! One panel without a window, driven through the accessibility tree.

use crate::{Data, Selection, View};
use egui::Vec2;
use egui_kittest::{
    Harness,
    kittest::{NodeT as _, Queryable as _},
};
use std::{path::Path, time::Duration};
use trace_store::{Store, StoreOptions};
use ui::theme;

pub struct PanelState<V> {
    pub view: V,
    pub data: Data,
    pub selection: Selection,
}

/// The panel on a screen of its own.
pub type Panel<V> = Harness<'static, PanelState<V>>;

pub fn panel<V: View + 'static>(view: V, data: Data, size: impl Into<Vec2>) -> Panel<V> {
    let shown = PanelState { view, data, selection: Selection::default() };
    let mut is_installed = false;
    Harness::builder().with_size(size).with_step_dt(0.2).build_ui_state(
        move |ui, shown: &mut PanelState<V>| {
            if !std::mem::replace(&mut is_installed, true) {
                theme::install(ui.ctx());
            }
            shown.view.ui(ui, &shown.data, &mut shown.selection);
        },
        shown,
    )
}

/// A training step that PyTorch's profiler recorded.
pub(crate) fn torch_step() -> Store {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../profiler/formats/tests/fixtures/torch/step.trace.json.gz");
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    trace_formats::import::open(&[path]).unwrap().read_all(&mut store).unwrap();
    store
}

/// Shows frames until something is named so: other threads may have to find it first.
pub fn wait_for<V>(panel: &mut Panel<V>, what: &str) {
    for _ in 0..6_000 {
        panel.run_steps(1);
        if panel.query_all_by_label_contains(what).next().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let labels: Vec<String> =
        panel.query_all_by_label_contains("").filter_map(|node| node.accesskit_node().label()).collect();
    panic!("never shown: {what}, but {labels:?}");
}
