//! What could not be opened, what was damaged, what was dropped: one line each. And the sheet shown while files hover.

use super::top_bar::status_dot;
use crate::{
    Data,
    data::{SourceInfo, SourceKind, Status},
    format,
    theme::{metrics, palette},
};
use egui::{Align2, Context, FontId, Id, LayerId, Order, RichText, ScrollArea, Ui, Window};

/// How many things are wrong: failed paths and counted warnings.
pub fn n_problems(data: &Data) -> u64 {
    let of = |s: &SourceInfo| u64::from(s.error.is_some()) + s.warnings.iter().map(|w| w.count).sum::<u64>();
    data.sources.iter().map(of).fold(0, u64::saturating_add)
}

/// The window with the details. It opens by itself when a path cannot be opened.
#[derive(Default)]
pub struct ProblemsWindow {
    /// Whether it is shown.
    pub is_open: bool,
    n_failed: usize,
}

impl ProblemsWindow {
    /// Shows it while it is open.
    pub fn ui(&mut self, ctx: &Context, data: &Data) {
        let n_failed = data.sources.iter().filter(|s| s.status == Status::Failed).count();
        // The start screen already says what failed while nothing else is open.
        let is_empty = data.logdirs.is_empty() && data.traces.is_empty() && data.graphs.is_empty();
        self.is_open |= n_failed > self.n_failed && !is_empty;
        self.n_failed = n_failed;
        if !self.is_open {
            return;
        }
        Window::new("Sources and warnings")
            .open(&mut self.is_open)
            .anchor(Align2::RIGHT_TOP, [-metrics::PAD, metrics::TOP_BAR_H + metrics::TAB_BAR_H + metrics::PAD])
            .default_width(metrics::DIALOG_W)
            .collapsible(false)
            .show(ctx, |ui| {
                ScrollArea::vertical().max_height(metrics::DIALOG_H).show(ui, |ui| {
                    for source in &data.sources {
                        source_rows(ui, source);
                    }
                });
            });
    }
}

/// A source's state, its error and its warnings.
fn source_rows(ui: &mut Ui, source: &SourceInfo) {
    let p = palette(ui);
    ui.horizontal(|ui| {
        let what = match source.kind {
            SourceKind::Logdir => "summaries",
            SourceKind::Trace => "trace",
            SourceKind::Graph => "graph",
            SourceKind::Unknown => "path",
        };
        ui.weak(what);
        ui.label(RichText::new(&*source.name).color(p.text_strong)).on_hover_text(source.path.display().to_string());
        status_dot(ui, source.status);
    });
    if source.error.is_some() {
        ui.label(RichText::new(error_line(source)).color(p.error));
    }
    for warning in source.warnings.iter() {
        let times = if warning.count == 1 { String::new() } else { format!("{} × ", format::count(warning.count)) };
        ui.label(RichText::new(format!("{times}{}", warning.text)).color(p.warning));
    }
    ui.add_space(metrics::PAD);
}

/// `PATH: why it cannot be opened`.
pub fn error_line(source: &SourceInfo) -> String {
    let reason = source.error.as_deref().unwrap_or_default();
    let path = source.path.display().to_string();
    if reason.starts_with(&path) { reason.to_owned() } else { format!("{path}: {reason}") }
}

/// Paths dropped in this frame; while files hover over the window, a sheet says that they may be dropped.
pub fn drop_target(ctx: &Context) -> Vec<std::path::PathBuf> {
    let (n_hovering, dropped) = ctx.input(|i| {
        let dropped = i.raw.dropped_files.iter().map(|file| file.path().to_owned()).collect();
        (i.raw.hovered_files.len(), dropped)
    });
    if n_hovering > 0 {
        let p = crate::theme::Palette::of(ctx.theme() == egui::Theme::Dark);
        let painter = ctx.layer_painter(LayerId::new(Order::Foreground, Id::unique("drop")));
        let rect = ctx.content_rect();
        painter.rect_filled(rect, 0.0, p.selected);
        let text = format!("Drop to open {}", format::counted(n_hovering as u64, "path"));
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
