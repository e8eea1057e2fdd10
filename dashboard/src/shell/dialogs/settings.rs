//! The dialog with the settings.

use crate::{Theme, config::Settings};
use egui::{Context, Grid, RichText, Slider, Ui};
use ui::{
    format::TimeUnit,
    theme::{Colours, Density, metrics, palette},
    widgets::Dialog,
};

/// The window.
#[derive(Default)]
pub struct SettingsWindow {
    /// Whether it is shown.
    pub is_open: bool,
}

impl SettingsWindow {
    /// Shows it while it is open; returns the settings as changed by the user. `is_stored`: whether they are stored.
    pub fn ui(&mut self, ctx: &Context, settings: Settings, is_stored: bool) -> Settings {
        let mut settings = settings;
        if !self.is_open {
            return settings;
        }
        let dialog = Dialog::new("settings").title("Settings").width(metrics::SETTINGS_W);
        let shown = dialog.show(ctx, |ui| {
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
        self.is_open = !shown.is_closed;
        settings
    }
}

fn rows(ui: &mut Ui, settings: &mut Settings) {
    let name = |ui: &mut Ui, text: &str| ui.label(RichText::new(text).color(palette(ui).text_weak));
    name(ui, "Theme");
    choices(ui, "Theme", &mut settings.theme, Theme::ALL.map(|t| (t, t.name())));
    ui.end_row();
    name(ui, "Colours");
    choices(ui, "Colours", &mut settings.colours, Colours::ALL.map(|c| (c, c.name())));
    ui.end_row();
    name(ui, "Density");
    choices(ui, "Density", &mut settings.density, Density::ALL.map(|d| (d, d.name())));
    ui.end_row();
    name(ui, "Duration units");
    choices(ui, "Duration units", &mut settings.time_unit, TimeUnit::ALL.map(|u| (u, u.name())));
    ui.end_row();
    let label = name(ui, "Size");
    ui.horizontal(|ui| {
        let mut percent = settings.scale * 100.0;
        let range = metrics::SCALE[0] * 100.0..=metrics::SCALE[1] * 100.0;
        let slider = Slider::new(&mut percent, range).step_by(10.0).fixed_decimals(0).suffix(" %");
        // While it is dragged the size stays, or else the slider runs away from the pointer.
        let response = ui.add(slider.update_while_editing(false)).labelled_by(label.id);
        if response.drag_stopped() || (response.changed() && !response.dragged()) {
            settings.scale = percent / 100.0;
        }
    });
    ui.end_row();
}

fn choices<T: PartialEq + Copy, const N: usize>(ui: &mut Ui, of: &str, value: &mut T, all: [(T, &'static str); N]) {
    ui.horizontal(|ui| {
        for (choice, name) in all {
            let response = ui.selectable_value(value, choice, name);
            let is_on = *value == choice;
            let role = egui::Role::RadioButton;
            response.widget_info(|| egui::WidgetInfo::selected(role, true, is_on, format!("{of}: {name}")));
        }
    });
}
