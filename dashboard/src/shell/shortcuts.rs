//! The window that lists keys and gestures.

use crate::{
    ViewKind,
    theme::{metrics, palette},
};
use egui::{Align2, Context, Grid, RichText, ScrollArea, Window};

/// Keys that work everywhere.
const EVERYWHERE: &[(&str, &str)] = &[
    ("1 … 6", "Scalars, Histograms, Graph, Timeline, Ops, Media"),
    ("Ctrl+O", "open a path"),
    ("T", "dark, light or the desktop's theme"),
    ("F1 or ?", "this list"),
    ("Esc", "clear the selection; close a dialog"),
    ("Drag a tab", "put a panel beside another"),
    ("Ctrl+plus, Ctrl+minus", "larger, smaller"),
];

/// The window.
#[derive(Default)]
pub struct ShortcutsWindow {
    /// Whether it is shown.
    pub is_open: bool,
}

impl ShortcutsWindow {
    /// Shows it while it is open.
    pub fn ui(&mut self, ctx: &Context, panels: &[(ViewKind, &'static [(&'static str, &'static str)])]) {
        if !self.is_open {
            return;
        }
        Window::new("Shortcuts")
            .open(&mut self.is_open)
            .anchor(Align2::CENTER_CENTER, [0.0, 0.0])
            .collapsible(false)
            .resizable(false)
            .show(ctx, |ui| {
                ScrollArea::vertical().max_height(metrics::DIALOG_H).show(ui, |ui| {
                    section(ui, "Everywhere", EVERYWHERE);
                    for (kind, keys) in panels {
                        section(ui, kind.title(), keys);
                    }
                });
            });
    }
}

fn section(ui: &mut egui::Ui, title: &str, keys: &[(&str, &str)]) {
    let p = palette(ui);
    ui.add_space(metrics::GAP);
    ui.label(RichText::new(title).color(p.text_strong));
    Grid::new(title).num_columns(2).min_col_width(metrics::KEY_COLUMN_W).show(ui, |ui| {
        for (key, what) in keys {
            ui.label(RichText::new(*key).monospace().color(p.accent));
            ui.label(*what);
            ui.end_row();
        }
    });
}
