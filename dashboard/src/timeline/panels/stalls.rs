//! The selected stall, and lists of stalls.

use crate::timeline::{command::Command, layers::stalls::color, model::exact};
use egui::Ui;
use trace_analysis::stalls::Stall;
use trace_store::Store;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::with_names,
};

/// Shows the selected stall; returns the commands of its links.
pub fn details_ui(ui: &mut Ui, store: &Store, stall: &Stall) -> Vec<Command> {
    let mut out = Vec::new();
    let p = palette(ui);
    ui.label(with_names(&stall.text(store), metrics::TEXT_TITLE, p.text_strong));
    egui::Grid::new("stall facts").num_columns(2).spacing([metrics::GAP_WIDE, 2.0]).show(ui, |ui| {
        let facts =
            [("Cause", stall.cause.to_string()), ("Duration", exact(stall.dur())), ("Start", exact(stall.start))];
        for (name, value) in facts {
            ui.weak(name);
            ui.label(value);
            ui.end_row();
        }
        for (label, id) in [("Culprit", stall.culprit), ("Next slice", stall.blocked)] {
            let Some(slice) = id.and_then(|id| store.slice(id)) else { continue };
            ui.weak(label);
            if ui.link(store.slice_name(&slice)).on_hover_text("Go to that slice").clicked() {
                out.push(Command::Reveal(slice.id));
            }
            ui.end_row();
        }
    });
    out
}

/// Lists at most `max` stalls; returns the stall that was clicked.
pub fn list_ui<'a>(ui: &mut Ui, store: &Store, stalls: &'a [Stall], max: usize) -> Option<&'a Stall> {
    let p = palette(ui);
    let mut clicked = None;
    for stall in stalls.iter().take(max) {
        ui.horizontal(|ui| {
            let (dot, _) = ui.allocate_exact_size(egui::Vec2::splat(metrics::SWATCH), egui::Sense::hover());
            ui.painter().rect_filled(dot, 2.0, color(stall.cause, p));
            ui.label(format::duration_ns(stall.dur()));
            // The tooltip has the full text.
            ui.style_mut().wrap_mode = Some(egui::TextWrapMode::Truncate);
            let text = stall.text(store);
            let link = ui.add(egui::Link::new(with_names(&text, metrics::TEXT, ui.visuals().hyperlink_color)));
            let hint = with_names(&format!("{text}\nClick: show in Timeline"), metrics::TEXT, p.text);
            if link.on_hover_text(hint).clicked() {
                clicked = Some(stall);
            }
        });
    }
    clicked
}
