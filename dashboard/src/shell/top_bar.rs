//! The bar at the top: the run and its figures, warnings, theme and help.

use super::{dialogs::n_problems, run_facts::RunFacts, status::status_dot};
use crate::{Data, Theme, command::ShellCommand, data::Status};
use egui::{Align, Color32, Label, Layout, Rect, Response, RichText, Role, Sense, Ui, vec2};
use ui::{
    address::Choice as _,
    format,
    theme::{metrics, palette},
    widgets::{Icon, icon_button, named, paint_icon},
};

pub struct TopBar<'a> {
    pub data: &'a Data,
    pub facts: Option<&'a RunFacts>,
    pub theme: Theme,
    /// Problems of the window itself.
    pub n_notices: u64,
}

impl TopBar<'_> {
    /// Shows the bar; returns what was clicked.
    pub fn ui(&self, ui: &mut Ui) -> Option<ShellCommand> {
        let mut command = None;
        ui.horizontal_centered(|ui| {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                command = self.buttons(ui);
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| self.facts(ui));
            });
        });
        command
    }

    fn buttons(&self, ui: &mut Ui) -> Option<ShellCommand> {
        let theme = format!("Theme: {} (Ctrl+Shift+D)", self.theme.title());
        let buttons = [
            (Icon::Help, "Shortcuts (F1)", ShellCommand::Shortcuts),
            (Icon::Settings, "Settings (Ctrl+,)", ShellCommand::Settings),
            (Icon::Theme, &theme, ShellCommand::Theme),
            (Icon::Open, "Open (Ctrl+O)", ShellCommand::Open),
            (Icon::Search, "Find anything (Ctrl+K)", ShellCommand::Palette),
        ];
        let mut command = None;
        for (icon, label, of) in buttons {
            command = icon_button(ui, icon, label, false).clicked().then_some(of).or(command);
        }
        let n = n_problems(self.data).saturating_add(self.n_notices);
        if n > 0 && warnings_badge(ui, n).clicked() {
            command = Some(ShellCommand::Problems);
        }
        command
    }

    /// The share that is read of the sources being loaded.
    fn loading(&self, ui: &mut Ui) {
        let loading = || self.data.sources.iter().filter(|s| s.status == Status::Loading);
        let shares: Vec<f32> = loading().filter_map(|s| s.progress).collect();
        let text = format!("Loading {}", format::count_of(loading().count() as u64, "path"));
        if shares.is_empty() {
            ui.weak(text);
        } else {
            let mean = shares.iter().sum::<f32>() / shares.len() as f32;
            ui.weak(format!("{text}, {:.0} %", mean * 100.0));
        }
    }

    fn facts(&self, ui: &mut Ui) {
        let p = palette(ui);
        ui.shrink_clip_rect(ui.max_rect());
        ui.add_space(metrics::PAD);
        let Some(facts) = self.facts else {
            let is_loading = self.data.sources.iter().any(|s| s.status == Status::Loading);
            let (trace, graph) = (self.data.traces.first(), self.data.graphs.first());
            let snapshot = self.data.snapshots.first().map(|snapshot| &snapshot.name);
            let other = graph.map(|graph| &graph.name).or(snapshot);
            match (is_loading, trace) {
                (true, ..) => {
                    ui.label(RichText::new("stepscope").color(p.text_strong));
                    self.loading(ui);
                }
                (false, Some(trace)) => _ = subject(ui, &trace.name, Some(trace.status)),
                (false, None) => _ = subject(ui, other.map_or("stepscope", |name| name), None),
            }
            return;
        };
        subject(ui, &facts.label, Some(facts.status)).on_hover_text(facts.text());
        // Figures are not cut: those without room are in the tooltip of the name.
        for (name, value) in facts.figures() {
            if !fact(ui, name, &value) {
                break;
            }
        }
    }
}

/// The width of a text.
fn width(ui: &Ui, text: &str) -> f32 {
    let font = egui::FontId::proportional(metrics::TEXT);
    ui.painter().layout_no_wrap(text.to_owned(), font, Color32::PLACEHOLDER).size().x.ceil()
}

/// The name of what is open and its status: the name is shortened where there is no room for both.
fn subject(ui: &mut Ui, name: &str, status: Option<Status>) -> Response {
    let gaps = ui.spacing().item_spacing.x + metrics::GAP;
    let for_status = status.map_or(0.0, |status| gaps + metrics::SWATCH + width(ui, status.name()) + 1.0);
    let room = (ui.available_width() - for_status).max(0.0);
    let response = ui.scope(|ui| {
        ui.set_max_width(room);
        ui.add(Label::new(RichText::new(name).color(palette(ui).text_strong)).truncate())
    });
    if let Some(status) = status {
        status_dot(ui, status);
    }
    response.inner
}

/// Shows a weak name and its value where both have room; returns whether they had.
fn fact(ui: &mut Ui, name: &str, value: &str) -> bool {
    let gap = ui.spacing().item_spacing.x;
    let has_room = metrics::PAD + 3.0 * gap + width(ui, name) + width(ui, value) <= ui.available_width();
    if has_room {
        ui.add_space(metrics::PAD);
        ui.weak(name);
        ui.label(value);
    }
    has_room
}

fn warnings_badge(ui: &mut Ui, n: u64) -> Response {
    let p = palette(ui);
    let font = egui::FontId::proportional(metrics::TEXT);
    let galley = ui.painter().layout_no_wrap(format::count(n), font, p.warning);
    let size = vec2(metrics::ROW_H + galley.size().x + metrics::PAD, metrics::ROW_H);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    named(&response, Role::Button, &format::count_of(n, "warning"));
    if response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect, f32::from(metrics::RADIUS), p.hovered);
    }
    let icon = Rect::from_min_size(rect.min, vec2(rect.height(), rect.height()));
    paint_icon(ui.painter(), Icon::Warning, icon.shrink(metrics::ICON_INSET), p.warning);
    let at = egui::pos2(icon.right(), rect.center().y - galley.size().y / 2.0);
    ui.painter().galley(at, galley, p.warning);
    response.on_hover_text(format!("{}: click for details", format::count_of(n, "warning")))
}
