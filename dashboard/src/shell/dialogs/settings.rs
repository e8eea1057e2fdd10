//! The dialog with the settings.

use crate::config::Settings;
use egui::{Context, Grid, Response, RichText, Slider, Ui};
use ui::{
    address::Choice,
    theme::{metrics, palette},
    widgets::{Dialog, choice_buttons},
};

/// Shows the dialog while it is open; returns the settings as changed by the user. `is_stored`: whether they are
/// stored.
pub fn settings_ui(ctx: &Context, is_open: &mut bool, mut settings: Settings, is_stored: bool) -> Settings {
    let dialog = Dialog::new("settings").title("Settings").width(metrics::SETTINGS_W);
    dialog.show_while(is_open, ctx, |ui| {
        Grid::new("settings").num_columns(2).spacing([metrics::GAP_WIDE, metrics::PAD]).show(ui, |ui| {
            rows(ui, &mut settings);
        });
        ui.add_space(metrics::PAD);
        ui.horizontal_wrapped(|ui| {
            if ui.button("Defaults").clicked() {
                settings = Settings::default();
            }
            if !is_stored {
                ui.colored_label(palette(ui).warning, "Not stored: see Sources and warnings");
            }
        });
    });
    settings
}

fn rows(ui: &mut Ui, settings: &mut Settings) {
    choices(ui, "Theme", &mut settings.theme);
    choices(ui, "Colours", &mut settings.colors);
    choices(ui, "Density", &mut settings.density);
    choices(ui, "Duration units", &mut settings.time_unit);
    let label = name(ui, "Size");
    ui.horizontal(|ui| {
        let mut percent = settings.scale * 100.0;
        let range = metrics::SCALE[0] * 100.0..=metrics::SCALE[1] * 100.0;
        let slider = Slider::new(&mut percent, range).step_by(10.0).fixed_decimals(0).suffix(" %");
        // The scale changes only after the drag: otherwise the slider would move away from the pointer.
        let response = ui.add(slider.update_while_editing(false)).labelled_by(label.id);
        if response.drag_stopped() || (response.changed() && !response.dragged()) {
            settings.scale = percent / 100.0;
        }
    });
    ui.end_row();
}

fn choices<T: Choice>(ui: &mut Ui, of: &str, value: &mut T) {
    name(ui, of);
    ui.horizontal(|ui| choice_buttons(ui, of, value));
    ui.end_row();
}

fn name(ui: &mut Ui, text: &str) -> Response {
    ui.label(RichText::new(text).color(palette(ui).text_weak))
}
