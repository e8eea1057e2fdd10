//! The colour of a run as a dot.

use crate::theme::metrics;
use egui::{Color32, Sense, Ui, vec2};

/// Paints the dot before the next widget.
pub fn swatch(ui: &mut Ui, color: Color32) {
    let (rect, _) = ui.allocate_exact_size(vec2(metrics::SWATCH, metrics::SWATCH), Sense::hover());
    ui.painter().circle_filled(rect.center(), metrics::SWATCH / 2.0, color);
}
