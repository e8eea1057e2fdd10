//! The Ops panel.

use crate::{Data, Selection, View, ViewKind, widgets::empty_state};

/// The panel's state.
#[derive(Default)]
pub struct OpsView {}

impl View for OpsView {
    fn kind(&self) -> ViewKind {
        ViewKind::Ops
    }

    fn ui(&mut self, ui: &mut egui::Ui, _data: &Data, _selection: &mut Selection) {
        empty_state(ui, "No trace yet", "Statistics of ops appear with the first slices of a trace.");
    }
}
