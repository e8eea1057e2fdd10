//! Beside the table: how busy each track was.

use super::Findings;
use crate::{
    Selection, format,
    theme::{metrics, palette},
};
use egui::{Rect, RichText, Sense, Ui, vec2};
use profiler::Store;

/// Shows the use of tracks.
pub fn side_ui(ui: &mut Ui, store: &Store, _trace_idx: usize, findings: &Findings, _selection: &mut Selection) {
    let p = palette(ui);
    egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        ui.label(RichText::new("Tracks").size(metrics::TEXT_TITLE).color(p.text_strong));
        egui::Grid::new("track use").num_columns(4).spacing([metrics::GAP_WIDE, 2.0]).show(ui, |ui| {
            for title in ["Track", "Busy", "", "Waiting"] {
                ui.label(RichText::new(title).color(p.text_weak));
            }
            ui.end_row();
            for used in &findings.track_use {
                let Some(track) = store.track(used.track) else { continue };
                ui.label(&track.name);
                ui.label(format::percent(used.utilisation));
                let (bar, _) = ui.allocate_exact_size(vec2(80.0, metrics::PAD), Sense::hover());
                ui.painter().rect_filled(bar, 2.0, p.hovered);
                let full = vec2(bar.width() * used.utilisation.clamp(0.0, 1.0) as f32, bar.height());
                ui.painter().rect_filled(Rect::from_min_size(bar.min, full), 2.0, p.accent);
                ui.label(format::duration_ns(used.wait_ns));
                ui.end_row();
            }
        });
    });
}
