//! The bar at the top: what runs, how it does, what is wrong, theme and help.

use super::{RunFacts, n_problems};
use crate::{
    Data, Theme,
    data::Status,
    format,
    theme::{metrics, palette},
    widgets::{Icon, icon_button, named, paint_icon},
};
use egui::{Align, Layout, Rect, RichText, Role, Sense, Ui, vec2};

/// What was clicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopBarAction {
    /// Open something.
    Open,
    /// Show what is wrong.
    Problems,
    /// Show the shortcuts.
    Help,
    /// Use another theme.
    NextTheme,
    /// Show the settings.
    Settings,
    /// Show the command palette.
    Palette,
}

/// The bar.
pub struct TopBar<'a> {
    /// What is open.
    pub data: &'a Data,
    /// What it says of a run, if there is one.
    pub facts: Option<&'a RunFacts>,
    /// The theme in force.
    pub theme: Theme,
    /// Problems of the window itself.
    pub n_notices: u64,
}

impl TopBar<'_> {
    /// Shows the bar; what was clicked, if anything.
    pub fn ui(&self, ui: &mut Ui) -> Option<TopBarAction> {
        let mut action = None;
        ui.horizontal_centered(|ui| {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                action = self.buttons(ui);
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| self.facts(ui));
            });
        });
        action
    }

    fn buttons(&self, ui: &mut Ui) -> Option<TopBarAction> {
        let mut action = None;
        if icon_button(ui, Icon::Help, "Shortcuts (F1)", false).clicked() {
            action = Some(TopBarAction::Help);
        }
        if icon_button(ui, Icon::Settings, "Settings (Ctrl+,)", false).clicked() {
            action = Some(TopBarAction::Settings);
        }
        let theme = format!("Theme: {} (Ctrl+Shift+D)", self.theme.name());
        if icon_button(ui, Icon::Theme, &theme, false).clicked() {
            action = Some(TopBarAction::NextTheme);
        }
        if icon_button(ui, Icon::Open, "Open (Ctrl+O)", false).clicked() {
            action = Some(TopBarAction::Open);
        }
        if icon_button(ui, Icon::Search, "Find anything (Ctrl+K)", false).clicked() {
            action = Some(TopBarAction::Palette);
        }
        let n = n_problems(self.data).saturating_add(self.n_notices);
        if n > 0 && warnings_badge(ui, n).clicked() {
            action = Some(TopBarAction::Problems);
        }
        action
    }

    /// How much of what is being read is read.
    fn loading(&self, ui: &mut Ui) {
        let loading = || self.data.sources.iter().filter(|s| s.status == Status::Loading);
        let shares: Vec<f32> = loading().filter_map(|s| s.progress).collect();
        let text = format!("loading {}", format::counted(loading().count() as u64, "path"));
        if shares.is_empty() {
            ui.weak(text);
        } else {
            let mean = shares.iter().sum::<f32>() / shares.len() as f32;
            ui.weak(format!("{text}, {:.0} %", mean * 100.0));
        }
    }

    fn facts(&self, ui: &mut Ui) {
        let p = palette(ui);
        ui.add_space(metrics::PAD);
        let Some(facts) = self.facts else {
            let n_loading = self.data.sources.iter().filter(|s| s.status == Status::Loading).count();
            ui.label(RichText::new("stepscope").color(p.text_strong));
            if n_loading > 0 {
                self.loading(ui);
            } else if let Some(trace) = self.data.traces.first() {
                ui.weak(&*trace.name);
                status_dot(ui, trace.status);
            } else if let Some(graph) = self.data.graphs.first() {
                ui.weak(&*graph.name);
            }
            return;
        };
        ui.label(RichText::new(&*facts.label).color(p.text_strong)).on_hover_text(facts.text());
        status_dot(ui, facts.status);
        fact(ui, "step", &format::step(facts.step));
        if let Some(rate) = facts.steps_per_second.filter(|_| facts.status == Status::Live) {
            fact(ui, "steps/s", &format::value(rate));
        }
        for (name, value) in &facts.values {
            fact(ui, name, &format::value(*value));
        }
    }
}

/// A weak name and its value.
fn fact(ui: &mut Ui, name: &str, value: &str) {
    ui.spacing_mut().item_spacing.x = metrics::GAP;
    ui.add_space(metrics::PAD);
    ui.weak(name);
    ui.label(value);
}

/// A dot and the status in words.
pub fn status_dot(ui: &mut Ui, status: Status) {
    let p = palette(ui);
    let color = match status {
        Status::Live => p.good,
        Status::Loading => p.accent,
        Status::Finished => p.aggregate,
        Status::Crashed | Status::Stopped => p.warning,
        Status::Failed => p.error,
    };
    ui.spacing_mut().item_spacing.x = metrics::GAP;
    let (rect, _) = ui.allocate_exact_size(vec2(metrics::SWATCH, metrics::ROW_H), Sense::hover());
    ui.painter().circle_filled(rect.center(), metrics::SWATCH * 0.4, color);
    ui.label(RichText::new(status.name()).color(p.text_weak));
}

fn warnings_badge(ui: &mut Ui, n: u64) -> egui::Response {
    let p = palette(ui);
    let font = egui::FontId::proportional(metrics::TEXT);
    let galley = ui.painter().layout_no_wrap(format::count(n), font, p.warning);
    let size = vec2(metrics::ROW_H + galley.size().x + metrics::PAD, metrics::ROW_H);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    named(&response, Role::Button, &format::counted(n, "warning"));
    if response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect, f32::from(metrics::RADIUS), p.hovered);
    }
    let icon = Rect::from_min_size(rect.min, vec2(rect.height(), rect.height()));
    paint_icon(ui.painter(), Icon::Warning, icon.shrink(metrics::ICON_INSET), p.warning);
    let at = egui::pos2(icon.right(), rect.center().y - galley.size().y / 2.0);
    ui.painter().galley(at, galley, p.warning);
    response.on_hover_text(format!("{}: click for details", format::counted(n, "warning")))
}
