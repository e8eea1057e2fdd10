//! The Timeline panel.

use crate::{Data, Selection, View, ViewKind, widgets::empty_state};

/// The panel's state.
#[derive(Default)]
pub struct TimelineView {}

impl View for TimelineView {
    fn kind(&self) -> ViewKind {
        ViewKind::Timeline
    }

    fn ui(&mut self, ui: &mut egui::Ui, _data: &Data, _selection: &mut Selection) {
        empty_state(
            ui,
            "No trace yet",
            "Open a run folder or its trace folder. Record any program with: stepscope record -- COMMAND",
        );
    }
}
