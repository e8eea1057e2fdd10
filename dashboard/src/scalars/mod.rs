//! The Scalars panel.

mod curve;
mod points;
mod smooth;

pub use points::{Points, XAxis};

use crate::{Data, Selection, View, ViewKind, widgets::empty_state};

/// The panel's state.
#[derive(Default)]
pub struct ScalarsView {}

impl View for ScalarsView {
    fn kind(&self) -> ViewKind {
        ViewKind::Scalars
    }

    fn ui(&mut self, ui: &mut egui::Ui, _data: &Data, _selection: &mut Selection) {
        empty_state(ui, "No scalars yet", "Open a logdir, or start one with: stepscope demo");
    }
}
