//! The details of the selected range.

use super::{flame::flame_ui, histogram::histogram_ui, stalls::list_ui};
use crate::{
    far,
    timeline::{
        command::{Command, RangeTab},
        layout::ticks,
        model::{RangeFacts, flame::MAX_SLICES},
        state::State,
    },
};
use egui::{ScrollArea, Ui};
use std::ops::Range;
use trace_store::Store;
use ui::{
    address::Choice as _,
    format,
    theme::{metrics, palette},
    widgets::heading,
};

/// Shows the details; returns the commands of clicks. `facts`: `None` while the facts are being computed.
pub fn range_ui(
    ui: &mut Ui,
    store: &Store,
    range: &Range<i64>,
    state: &State,
    facts: Option<&RangeFacts>,
) -> Vec<Command> {
    let mut out = Vec::new();
    let p = palette(ui);
    ui.horizontal(|ui| {
        let text = format!("Range {}: {}", ticks::range_text(range), format::duration_ns(range.end - range.start));
        heading(ui, text);
        if ui.small_button("Zoom").on_hover_text("Show this range (F)").clicked() {
            out.push(Command::Show(range.clone()));
        }
        if ui.small_button("Clear").on_hover_text("Select no range (Esc)").clicked() {
            out.push(Command::SelectRange(None));
        }
    });
    let Some(facts) = facts.filter(|f| f.range == *range) else {
        ui.label("Computing…");
        return out;
    };
    if let Some(note) = far::note(facts.residency) {
        ui.label(note);
        return out;
    }
    let ops = facts.ops.iter().filter(|o| o.category == "op");
    let (n_ops, ops_ns) = ops.fold((0, 0), |(n, ns), o| (n + o.figures.count, ns + o.figures.total_ns));
    let slices = format::count_of(facts.n_slices, "slice");
    ui.label(format!("{slices}, {} taking {}", format::count_of(n_ops, "op"), format::duration_ns(ops_ns)));
    ui.horizontal_wrapped(|ui| {
        for tab in RangeTab::all() {
            if ui.selectable_label(state.range_tab == tab, tab.title()).clicked() {
                out.push(Command::RangeTab(tab));
            }
        }
    });
    ScrollArea::both().id_salt(("range facts", state.range_tab.title())).auto_shrink([false, false]).show(ui, |ui| {
        match state.range_tab {
            RangeTab::Ops => ops_ui(ui, store, facts, &mut out),
            RangeTab::Names => names_ui(ui, facts, state.durations_name.as_deref(), &mut out),
            RangeTab::Tracks => tracks_ui(ui, store, facts, &mut out),
            RangeTab::Flame => {
                if facts.flame_is_cut {
                    let max = format::count(MAX_SLICES as u64);
                    ui.colored_label(
                        p.warning,
                        format!("Only the first {max} slices are shown. Select a shorter range for all."),
                    );
                }
                flame_ui(ui, "slices", &facts.flame, |ns| format::duration_ns(ns as i64));
            }
            RangeTab::Samples if facts.samples.is_empty() => {
                ui.label(
                    "No call stacks were sampled here. Record some with: stepscope record --sample 1000 -- COMMAND",
                );
            }
            RangeTab::Samples => {
                flame_ui(ui, "samples", &facts.samples, |n| format::count_of(n, "sample"));
            }
        }
    });
    out
}

/// Shows the ops and the longest stalls.
fn ops_ui(ui: &mut Ui, store: &Store, facts: &RangeFacts, out: &mut Vec<Command>) {
    grid(ui, "range ops", &["Name", "Category", "Count", "Total", "Self", "Share"], |ui| {
        for op in facts.ops.iter().take(MAX_OPS) {
            ui.label(op.op.chars().take(MAX_NAME).collect::<String>());
            ui.weak(&op.category);
            number(ui, format::count(op.figures.count));
            number(ui, format::duration_ns(op.figures.total_ns));
            number(ui, format::duration_ns(op.figures.self_ns));
            number(ui, format::percent(op.figures.share));
            end_row(ui);
        }
    });
    if facts.ops.len() > MAX_OPS {
        ui.label(format!("and {} more: see Ops", facts.ops.len() - MAX_OPS));
    }
    ui.weak("Longest stalls of its steps");
    if facts.stalls.top.is_empty() {
        ui.label("None");
    }
    if let Some(stall) = list_ui(ui, store, &facts.stalls.top, MAX_STALLS) {
        out.push(Command::SelectStall(Box::new(stall.clone())));
    }
}

/// Ops of a range that are listed, at most; the Ops panel has all.
const MAX_OPS: usize = 20;
/// Letters of a name in a table, at most.
const MAX_NAME: usize = 60;
/// Stalls of a range that are listed, at most.
const MAX_STALLS: usize = 10;
/// Names that are listed, at most.
const MAX_NAMES: usize = 100;

/// Shows the durations by name, and a histogram for the chosen name.
fn names_ui(ui: &mut Ui, facts: &RangeFacts, chosen: Option<&str>, out: &mut Vec<Command>) {
    // The default is a name with several slices, as one slice has no distribution.
    let default = || facts.names.iter().find(|n| n.count > 1).or(facts.names.first());
    let selected = chosen.and_then(|name| facts.names.iter().find(|n| n.name == name)).or_else(default);
    if let Some(histogram) = selected {
        ui.weak(format!("Durations of {}", histogram.name));
        histogram_ui(ui, histogram);
    }
    grid(ui, "range names", &["Name", "Category", "Count", "Total", "Mean", "Shortest", "Longest"], |ui| {
        for row in facts.names.iter().take(MAX_NAMES) {
            let is_selected = selected.is_some_and(|s| s.name == row.name);
            let name: String = row.name.chars().take(MAX_NAME).collect();
            if ui.selectable_label(is_selected, name).on_hover_text("Show its durations").clicked() {
                out.push(Command::ShowDurations(row.name.clone()));
            }
            ui.weak(&row.category);
            number(ui, format::count(row.count));
            for ns in [row.total_ns, row.mean_ns, row.min_ns, row.max_ns] {
                number(ui, format::duration_ns(ns));
            }
            end_row(ui);
        }
    });
    if facts.names.len() > MAX_NAMES {
        ui.label(format!("and {} more", facts.names.len() - MAX_NAMES));
    }
}

/// Shows the utilisation of each track.
fn tracks_ui(ui: &mut Ui, store: &Store, facts: &RangeFacts, out: &mut Vec<Command>) {
    grid(ui, "range tracks", &["Track", "Busy", "Waiting", "Utilisation"], |ui| {
        for track_use in &facts.tracks {
            let name = store.track(track_use.track).map_or("?", |t| &t.name);
            if ui.link(name).on_hover_text("Scroll to this track").clicked() {
                out.push(Command::RevealTrack(track_use.track.0));
            }
            number(ui, format::duration_ns(track_use.busy_ns));
            number(ui, format::duration_ns(track_use.wait_ns));
            number(ui, format::percent(track_use.utilisation));
            end_row(ui);
        }
    });
}

/// A striped grid with headings.
pub(super) fn grid(ui: &mut Ui, id: &str, titles: &[&str], rows: impl FnOnce(&mut Ui)) {
    let grid = egui::Grid::new(id).num_columns(titles.len() + 1).striped(true).spacing([metrics::GAP_WIDE, 2.0]);
    grid.show(ui, |ui| {
        for title in titles {
            let heading = ui.weak(*title);
            if *title == "Total" {
                heading.on_hover_text("Time inside the range; the other columns are about whole slices");
            }
        }
        ui.end_row();
        rows(ui);
    });
}

/// Ends a row with an empty cell. The last column takes the remaining width, where a right-aligned number would be far
/// from the others.
pub(super) fn end_row(ui: &mut Ui) {
    ui.label("");
    ui.end_row();
}

/// Shows a number, aligned right.
pub(super) fn number(ui: &mut Ui, text: impl Into<egui::WidgetText>) {
    ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| ui.label(text));
}
