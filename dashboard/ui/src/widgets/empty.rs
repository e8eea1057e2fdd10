//! The empty state of a panel.

use crate::theme::{metrics, palette};
use egui::{RichText, Ui};

/// Shows a title and an explanation in the middle of the remaining space: what is missing and how to get it.
pub fn empty_state(ui: &mut Ui, title: &str, explanation: &str) {
    let p = palette(ui);
    let space = (ui.available_height() * 0.35).max(metrics::PAD);
    ui.vertical_centered(|ui| {
        ui.add_space(space);
        ui.label(RichText::new(title).size(metrics::TEXT_TITLE).color(p.text_strong));
        ui.add_space(metrics::GAP);
        ui.label(RichText::new(explanation).color(p.text_weak));
    });
}
