//! The position of the pointer for tooltips and crosshairs.

use egui::{Pos2, Ui};

/// The position of the pointer over `ui`'s layer; `None` where a dialog, menu or window covers the layer there.
pub fn pointer(ui: &Ui) -> Option<Pos2> {
    let pos = ui.input(|input| input.pointer.hover_pos())?;
    (ui.layer_id_at(pos) == Some(ui.layer_id())).then_some(pos)
}
