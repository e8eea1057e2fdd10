//! What the window says while nothing is open: what can be opened, how, and what could not be.

use super::problems::error_line;
use crate::{
    Data,
    data::Status,
    theme::{metrics, palette},
};
use egui::{RichText, Ui};

/// Kinds of things that open, and what they show.
const OPENS: [(&str, &str); 4] = [
    ("A run folder or a folder of runs", "TensorBoard event files: scalars, histograms, graph"),
    ("A trace folder", "timeline and statistics of every op and thread"),
    ("A graph file", "GraphDef as .pb or .pbtxt, gzipped or not"),
    ("Nothing yet?", "stepscope demo trains a model and opens this window on it"),
];

/// Fills the window; whether the open button was clicked.
pub fn start_screen(ui: &mut Ui, data: &Data) -> bool {
    let p = palette(ui);
    let mut is_clicked = false;
    ui.vertical_centered(|ui| {
        ui.add_space((ui.available_height() * 0.2).max(metrics::PAD));
        ui.label(RichText::new("stepscope").size(metrics::TEXT_HERO).color(p.text_strong));
        ui.weak("Drop files or folders here, or open them by name.");
        ui.add_space(metrics::GAP_WIDE);
        is_clicked = ui.button("Open a path (Ctrl+O)").clicked();
        ui.add_space(2.0 * metrics::GAP_WIDE);
        for (what, shows) in OPENS {
            ui.label(RichText::new(what).color(p.text_strong));
            ui.label(RichText::new(shows).color(p.text_weak));
            ui.add_space(metrics::GAP);
        }
        ui.add_space(metrics::GAP_WIDE);
        for source in &data.sources {
            match source.status {
                Status::Failed => {
                    ui.label(RichText::new(error_line(source)).color(p.error));
                }
                Status::Loading => {
                    ui.label(RichText::new(format!("{}: loading", source.path.display())).color(p.text_weak));
                }
                _ => {}
            }
        }
    });
    is_clicked
}
