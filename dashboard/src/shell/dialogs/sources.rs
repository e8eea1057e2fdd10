//! The dialog "Sources and warnings": failed, damaged and stopped sources, a line each; and the sheet shown while files
//! hover.

use crate::{
    Data,
    data::{SourceInfo, Status},
    shell::{contents::layout_key, status::status_dot},
};
use egui::{Align2, Context, FontId, Id, LayerId, Order, RichText, Ui};
use std::{path::Path, sync::Arc};
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{Dialog, busy, named},
};

/// The number of problems: failed paths and counted warnings.
pub fn n_problems(data: &Data) -> u64 {
    let of = |s: &SourceInfo| u64::from(s.error.is_some()) + s.warnings.iter().map(|w| w.count).sum::<u64>();
    data.sources.iter().map(of).fold(0, u64::saturating_add)
}

/// The dialog with the details. It opens by itself when a path cannot be opened.
#[derive(Default)]
pub struct ProblemsWindow {
    pub is_open: bool,
    n_failed: usize,
}

/// An action on a source.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceAction {
    /// Stop reading it; what was read stays.
    Stop(Arc<Path>),
    /// Try again to open it.
    Retry(Arc<Path>),
}

impl ProblemsWindow {
    /// Shows the dialog while it is open. `notices`: problems of the window itself.
    pub fn ui(&mut self, ctx: &Context, data: &Data, notices: &[String]) -> Option<SourceAction> {
        let n_failed = data.sources.iter().filter(|s| s.status == Status::Failed).count();
        // The start screen already says what failed while nothing else is open.
        let is_empty = layout_key(data).is_none();
        self.is_open |= n_failed > self.n_failed && !is_empty;
        // A failure while another source loads is reported once that one is read.
        if !is_empty || data.sources.iter().all(|s| s.status != Status::Loading) {
            self.n_failed = n_failed;
        }
        let mut act = None;
        Dialog::new("sources").title("Sources and warnings").show_while(&mut self.is_open, ctx, |ui| {
            for notice in notices {
                ui.colored_label(palette(ui).warning, notice);
                ui.add_space(metrics::PAD);
            }
            if data.sources.is_empty() {
                ui.weak("Nothing is open");
            }
            for source in &data.sources {
                act = source_rows(ui, source).or(act.take());
            }
            if data.sources.iter().any(|s| !s.warnings.is_empty() || s.error.is_some())
                && ui.button("Copy all as text").clicked()
            {
                ctx.copy_text(all_text(data));
            }
        });
        act
    }
}

/// Every source with its error and warnings, a line each.
fn all_text(data: &Data) -> String {
    let lines = data.sources.iter().flat_map(|s| {
        let head = format!("{} ({}, {})", s.path.display(), s.kind.name(), s.status.name());
        let error = s.error.iter().map(|e| format!("  error: {e}"));
        let warnings = s.warnings.iter().map(|w| format!("  {} x {}", w.count, w.text));
        std::iter::once(head).chain(error).chain(warnings).collect::<Vec<_>>()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A source's state, its error and its warnings.
fn source_rows(ui: &mut Ui, source: &SourceInfo) -> Option<SourceAction> {
    let p = palette(ui);
    let mut act = None;
    if source.status == Status::Loading {
        act = loading_ui(ui, source);
    } else {
        ui.horizontal_wrapped(|ui| {
            ui.weak(source.kind.name());
            let name = ui.label(RichText::new(&*source.name).color(p.text_strong));
            name.on_hover_text(source.path.display().to_string());
            status_dot(ui, source.status);
            let again = matches!(source.status, Status::Failed | Status::Stopped);
            if again && ui.small_button("Try again").clicked() {
                act = Some(SourceAction::Retry(source.path.clone()));
            }
        });
    }
    if source.error.is_some() {
        ui.label(RichText::new(error_line(source)).color(p.error));
    }
    if source.status == Status::Stopped {
        ui.weak("Reading was stopped. What was read until then is shown.");
    }
    for warning in source.warnings.iter() {
        let times = if warning.count == 1 { String::new() } else { format!("{} × ", format::count(warning.count)) };
        ui.label(RichText::new(format!("{times}{}", warning.text)).color(p.warning));
    }
    ui.add_space(metrics::PAD);
    act
}

/// Shows a path that is being read: its progress and a button that stops it.
pub fn loading_ui(ui: &mut Ui, source: &SourceInfo) -> Option<SourceAction> {
    let mut is_stopped = false;
    let row = egui::vec2(ui.available_width().min(metrics::RECENT_W), metrics::ROW_H);
    ui.allocate_ui_with_layout(row, egui::Layout::left_to_right(egui::Align::Center), |ui| {
        match source.progress {
            Some(share) => {
                let bar = egui::ProgressBar::new(share).desired_width(metrics::PROGRESS_W).show_percentage();
                let response = ui.add(bar);
                named(
                    &response,
                    egui::Role::ProgressIndicator,
                    &format!("{}: {:.0} % read", source.name, share * 100.0),
                );
            }
            None => {
                busy(ui);
            }
        }
        let name = ui.label(format!("Loading {}…", source.name));
        name.on_hover_text(source.path.display().to_string());
        let stop = ui.small_button("Stop").on_hover_text("Stop reading; what was read stays");
        named(&stop, egui::Role::Button, &format!("Stop loading {}", source.name));
        is_stopped = stop.clicked();
    });
    is_stopped.then(|| SourceAction::Stop(source.path.clone()))
}

/// `PATH: error`.
pub fn error_line(source: &SourceInfo) -> String {
    let reason = source.error.as_deref().unwrap_or_default();
    let path = source.path.display().to_string();
    if reason.starts_with(&path) { reason.to_owned() } else { format!("{path}: {reason}") }
}

/// Paths dropped in this frame; while files hover over the window, a sheet invites to drop them.
pub fn drop_target(ctx: &Context) -> Vec<std::path::PathBuf> {
    let (n_hovering, dropped) = ctx.input(|i| {
        let dropped = i.raw.dropped_files.iter().map(|file| file.path().to_owned()).collect();
        (i.raw.hovered_files.len(), dropped)
    });
    if n_hovering > 0 {
        let p = ui::theme::Palette::for_theme(ctx.theme() == egui::Theme::Dark);
        let painter = ctx.layer_painter(LayerId::new(Order::Foreground, Id::unique("drop")));
        let rect = ctx.content_rect();
        painter.rect_filled(rect, 0.0, p.selected);
        let text = format!("Drop to open {}", format::count_of(n_hovering as u64, "path"));
        painter.text(
            rect.center(),
            Align2::CENTER_CENTER,
            text,
            FontId::proportional(metrics::TEXT_HERO),
            p.text_strong,
        );
    }
    dropped
}
