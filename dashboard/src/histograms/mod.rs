//! The Histograms panel.

use crate::{Data, Selection, View, ViewKind, widgets::empty_state};

/// The panel's state.
#[derive(Default)]
pub struct HistogramsView {}

impl View for HistogramsView {
    fn kind(&self) -> ViewKind {
        ViewKind::Histograms
    }

    fn ui(&mut self, ui: &mut egui::Ui, _data: &Data, _selection: &mut Selection) {
        empty_state(ui, "No histograms yet", "Runs that write histogram summaries show them here.");
    }
}
