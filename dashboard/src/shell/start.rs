//! The start screen: recent paths, what can be opened and how, and errors.

use super::dialogs::{
    browse,
    sources::{SourceAct, error_line, loading_ui},
};
use crate::{Data, config::Recent, data::Status};
use egui::{Rect, RichText, Role, ScrollArea, Sense, Ui, vec2};
use std::path::PathBuf;
use ui::{
    theme::{metrics, palette},
    widgets::{named, text_elided},
};

/// Kinds of things that open, and their contents.
const OPENS: [(&str, &str); 5] = [
    ("A run folder, or a folder of runs", "curves, graph and timeline of a run, linked"),
    ("TensorBoard event files", "scalars, histograms and the graph, while they grow"),
    ("A trace", "ours, PyTorch, Chrome, Perfetto, XPlane, RunMetadata, ftrace, perf script"),
    ("A graph", "GraphDef, SavedModel, meta graph, ONNX; gzipped or not"),
    ("Nothing yet?", "stepscope demo trains a model and opens this window on it"),
];

/// An action on the start screen.
#[derive(Clone, Debug, PartialEq)]
pub enum StartAct {
    Dialog,
    /// Open a recent path.
    Open(PathBuf),
    /// Remove a recent path.
    Forget(PathBuf),
    Source(SourceAct),
}

/// Shows the start screen; returns what was clicked.
pub fn start_screen(ui: &mut Ui, data: &Data, recent: &[Recent], open_keys: &str) -> Option<StartAct> {
    let p = palette(ui);
    let mut act = None;
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        ui.vertical_centered(|ui| {
            ui.add_space((ui.available_height() * 0.12).max(metrics::PAD));
            ui.label(RichText::new("stepscope").size(metrics::TEXT_HERO).color(p.text_strong));
            ui.weak("Drop files or folders here, or open them by name.");
            ui.add_space(metrics::GAP_WIDE);
            if ui.button(format!("Open a path ({open_keys})")).clicked() {
                act = Some(StartAct::Dialog);
            }
            ui.add_space(metrics::GAP_WIDE);
            for source in &data.sources {
                match source.status {
                    Status::Failed => {
                        ui.label(RichText::new(error_line(source)).color(p.error));
                    }
                    Status::Loading => {
                        if let Some(asked) = loading_ui(ui, source) {
                            act = Some(StartAct::Source(asked));
                        }
                    }
                    _ => {}
                }
            }
            if !recent.is_empty() {
                ui.add_space(metrics::GAP_WIDE);
                ui.label(RichText::new("Recent").color(p.text_strong));
                ui.add_space(metrics::GAP);
                for r in recent.iter().take(8) {
                    act = recent_row(ui, r).or(act.take());
                }
            }
            ui.add_space(2.0 * metrics::GAP_WIDE);
            for (what, shows) in OPENS {
                ui.label(RichText::new(what).color(p.text_strong));
                ui.label(RichText::new(shows).color(p.text_weak));
                ui.add_space(metrics::GAP);
            }
        });
    });
    act
}

/// A recent path: its name, what it is, and where.
fn recent_row(ui: &mut Ui, recent: &Recent) -> Option<StartAct> {
    let p = palette(ui);
    let width = metrics::RECENT_W.min(ui.available_width() - 2.0 * metrics::PAD);
    let (rect, response) = ui.allocate_exact_size(vec2(width, metrics::ROW_H), Sense::click());
    let name = recent.path.file_name().map_or_else(|| recent.path.to_string_lossy(), |n| n.to_string_lossy());
    named(&response, Role::Button, &format!("Open {name}, {}", recent.kind));
    if response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect, f32::from(metrics::RADIUS), p.hovered);
    }
    let inner = rect.shrink2(vec2(metrics::PAD, 0.0));
    let part = |from: f32, to: f32| {
        let x = |share: f32| inner.left() + share * inner.width();
        Rect::from_x_y_ranges(x(from)..=x(to) - metrics::PAD, inner.y_range())
    };
    text_elided(ui, &name, part(0.0, 0.4), p.text);
    text_elided(ui, &recent.kind, part(0.4, 0.55), p.text_weak);
    let folder = recent.path.parent().map_or_else(String::new, |f| f.display().to_string());
    text_elided(ui, &folder, part(0.55, 1.0), p.text_weak);
    let response = response.on_hover_text(recent.path.display().to_string());
    let mut act = response.clicked().then(|| StartAct::Open(recent.path.clone()));
    response.context_menu(|ui| {
        if ui.button("Remove from this list").clicked() {
            act = Some(StartAct::Forget(recent.path.clone()));
            ui.close();
        }
        if let Some(kind) = browse::kind_text(&recent.path) {
            ui.weak(kind);
        } else {
            ui.weak("no longer there");
        }
    });
    act
}
