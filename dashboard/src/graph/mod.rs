//! The Graph panel.

use crate::{Data, Selection, View, ViewKind, widgets::empty_state};

/// The panel's state.
#[derive(Default)]
pub struct GraphView {}

impl View for GraphView {
    fn kind(&self) -> ViewKind {
        ViewKind::Graph
    }

    fn ui(&mut self, ui: &mut egui::Ui, _data: &Data, _selection: &mut Selection) {
        empty_state(ui, "No graph yet", "Open a graph file (.pb, .pbtxt), or a run whose event file holds its graph.");
    }
}
