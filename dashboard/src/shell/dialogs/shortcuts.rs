//! The dialog that lists keys and gestures, from the tables that the keys themselves are read from.

use crate::{
    ViewKind,
    command::{Entry, GESTURES, SHELL, key_text, keys_text},
};
use egui::{Context, Grid, Label, RichText};
use ui::{
    theme::{metrics, palette},
    widgets::Dialog,
};

/// Shows the dialog while it is open.
pub fn shortcuts_ui(ctx: &Context, is_open: &mut bool, panels: &[(ViewKind, &'static [Entry])]) {
    Dialog::new("shortcuts").title("Shortcuts").show_while(is_open, ctx, |ui| {
        let shell = SHELL.iter().map(|entry| {
            let others = entry.keys.iter().map(|keys| key_text(ctx, keys));
            (others.collect::<Vec<_>>().join(", "), entry.what)
        });
        let shell = shell.filter(|(keys, _)| !keys.is_empty());
        section(ui, "Everywhere", shell.chain(GESTURES.iter().map(|e| (e.keys.to_owned(), e.what))));
        for (kind, entries) in panels {
            let with_keys = entries.iter().filter(|e| !e.keys.is_empty());
            section(ui, kind.title(), with_keys.map(|e| (e.keys.to_owned(), e.what)));
        }
        let palette = SHELL.first().map_or_else(String::new, |entry| keys_text(ctx, entry));
        ui.weak(format!("Commands without keys are in the palette: {palette}."));
    });
}

fn section(ui: &mut egui::Ui, title: &str, keys: impl Iterator<Item = (String, &'static str)>) {
    let p = palette(ui);
    ui.add_space(metrics::GAP);
    ui.label(RichText::new(title).color(p.text_strong));
    // Text that is too long for its column wraps.
    let key_w = metrics::KEY_COLUMN_W.min(ui.available_width() * metrics::KEY_COLUMN_SHARE);
    let most = ui.available_width() - key_w - ui.spacing().item_spacing.x;
    Grid::new(title).num_columns(2).min_col_width(key_w).max_col_width(most).show(ui, |ui| {
        for (key, what) in keys {
            ui.scope(|ui| {
                ui.set_max_width(key_w);
                ui.add(Label::new(RichText::new(key).monospace().color(p.accent)).wrap());
            });
            ui.add(Label::new(what).wrap());
            ui.end_row();
        }
    });
}
