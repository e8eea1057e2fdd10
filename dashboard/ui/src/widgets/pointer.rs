//! Where the pointer is, for what paints next to it.

use egui::{Pos2, Ui};

/// Where the pointer is, if it is over `ui`'s layer: neither a dialog nor a menu or another window covers that there.
pub fn pointer(ui: &Ui) -> Option<Pos2> {
    let at = ui.input(|input| input.pointer.hover_pos())?;
    (ui.layer_id_at(at) == Some(ui.layer_id())).then_some(at)
}
