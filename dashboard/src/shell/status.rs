//! The status of a source: a dot and a word.

use crate::data::Status;
use egui::{RichText, Sense, Ui, vec2};
use ui::theme::{metrics, palette};

/// Shows a dot and the status in words.
pub fn status_dot(ui: &mut Ui, status: Status) {
    let p = palette(ui);
    let color = match status {
        Status::Live => p.good,
        Status::Loading => p.accent,
        Status::Finished => p.aggregate,
        Status::Crashed | Status::Stopped => p.warning,
        Status::Failed => p.error,
    };
    let spacing = std::mem::replace(&mut ui.spacing_mut().item_spacing.x, metrics::GAP);
    let (rect, _) = ui.allocate_exact_size(vec2(metrics::SWATCH, metrics::ROW_H), Sense::hover());
    ui.painter().circle_filled(rect.center(), metrics::SWATCH * 0.4, color);
    ui.label(RichText::new(status.name()).color(p.text_weak));
    ui.spacing_mut().item_spacing.x = spacing;
}
