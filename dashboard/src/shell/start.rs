//! The start screen: errors, recent paths, and hints about what can be opened.

use super::dialogs::{
    browse,
    sources::{SourceAction, error_line, loading_ui},
};
use crate::{Data, config::Recent, data::Status};
use egui::{Rect, RichText, Role, ScrollArea, Sense, Ui, vec2};
use std::path::PathBuf;
use ui::{
    theme::{metrics, palette},
    widgets::{named, text_elided},
};

/// Hints about what can be opened: the kind, and its contents or formats.
const OPEN_HINTS: [(&str, &str); 6] = [
    ("A run folder, or a folder of runs", "series, graph and timeline of a run, linked"),
    ("TensorBoard event files", "scalars, histograms and the graph, while they grow"),
    (
        "A trace",
        "stepscope, PyTorch, Chrome, Perfetto, XPlane, Nsight Systems, RunMetadata, ftrace, trace.dat, perf script",
    ),
    ("A graph", "GraphDef, SavedModel, meta graph, ONNX; gzipped or not"),
    ("A memory snapshot of PyTorch", "what torch.cuda.memory._dump_snapshot wrote"),
    ("Nothing yet?", "stepscope demo trains a model and opens this window on it"),
];

/// Recent paths that are listed, at most.
const MAX_RECENT: usize = 8;

/// An action on the start screen.
#[derive(Clone, Debug, PartialEq)]
pub enum StartAction {
    /// Show the dialog that opens a path.
    Dialog,
    /// Open a recent path.
    Open(PathBuf),
    /// Remove a recent path.
    Forget(PathBuf),
    /// Stop or retry a source.
    Source(SourceAction),
}

/// Shows the start screen; returns the action that was clicked. `open_keys`: the shortcut of the dialog.
pub fn start_screen(ui: &mut Ui, data: &Data, recent: &[Recent], open_keys: &str) -> Option<StartAction> {
    let colors = palette(ui);
    let mut action = None;
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        ui.vertical_centered(|ui| {
            ui.add_space((ui.available_height() * metrics::START_TOP_SHARE).max(metrics::PAD));
            ui.label(RichText::new("stepscope").size(metrics::TEXT_HERO).color(colors.text_strong));
            ui.weak("Drop files or folders here, or open them by name");
            ui.add_space(metrics::GAP_WIDE);
            if ui.button(format!("Open a file or folder… ({open_keys})")).clicked() {
                action = Some(StartAction::Dialog);
            }
            ui.add_space(metrics::GAP_WIDE);
            for source in &data.sources {
                match source.status {
                    Status::Failed => {
                        ui.label(RichText::new(error_line(source)).color(colors.error));
                    }
                    Status::Loading => {
                        if let Some(source_action) = loading_ui(ui, source) {
                            action = Some(StartAction::Source(source_action));
                        }
                    }
                    _ => {}
                }
            }
            if !recent.is_empty() {
                ui.add_space(metrics::GAP_WIDE);
                ui.label(RichText::new("Recent").color(colors.text_strong));
                ui.add_space(metrics::GAP);
                for entry in recent.iter().take(MAX_RECENT) {
                    action = recent_row(ui, entry).or(action.take());
                }
            }
            ui.add_space(2.0 * metrics::GAP_WIDE);
            for (kind, contents) in OPEN_HINTS {
                ui.label(RichText::new(kind).color(colors.text_strong));
                ui.label(RichText::new(contents).color(colors.text_weak));
                ui.add_space(metrics::GAP);
            }
        });
    });
    action
}

/// A row of a recent path: its name, its kind, and the folder it is in.
fn recent_row(ui: &mut Ui, recent: &Recent) -> Option<StartAction> {
    let colors = palette(ui);
    let width = metrics::RECENT_W.min(ui.available_width() - 2.0 * metrics::PAD);
    let (rect, response) = ui.allocate_exact_size(vec2(width, metrics::ROW_H), Sense::click());
    let name = recent.path.file_name().map_or_else(|| recent.path.to_string_lossy(), |n| n.to_string_lossy());
    named(&response, Role::Button, &format!("Open {name}, {}", recent.kind));
    if response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect, f32::from(metrics::RADIUS), colors.hovered);
    }
    let inner = rect.shrink2(vec2(metrics::PAD, 0.0));
    let [kind_at, folder_at] = metrics::RECENT_COLUMNS;
    let column = |from: f32, to: f32| {
        let x = |share: f32| inner.left() + share * inner.width();
        Rect::from_x_y_ranges(x(from)..=x(to) - metrics::PAD, inner.y_range())
    };
    text_elided(ui, &name, column(0.0, kind_at), colors.text);
    text_elided(ui, &recent.kind, column(kind_at, folder_at), colors.text_weak);
    let folder = recent.path.parent().map_or_else(String::new, |f| f.display().to_string());
    text_elided(ui, &folder, column(folder_at, 1.0), colors.text_weak);
    let response = response.on_hover_text(recent.path.display().to_string());
    let mut action = response.clicked().then(|| StartAction::Open(recent.path.clone()));
    response.context_menu(|ui| {
        if ui.button("Remove from this list").clicked() {
            action = Some(StartAction::Forget(recent.path.clone()));
            ui.close();
        }
        if let Some(kind) = browse::kind_text(&recent.path) {
            ui.weak(kind);
        } else {
            ui.weak("no longer there");
        }
    });
    action
}
