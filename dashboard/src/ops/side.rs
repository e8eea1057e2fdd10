//! The list next to the table: busy time and waits of each track, and the largest stalls.

use super::analysis::Findings;
use crate::{
    Selection, ViewKind,
    selection::{SlicePick, TimeRange},
    timeline::stalls,
};
use egui::{Rect, Sense, Ui, vec2};
use trace_store::Store;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{heading, scroll_area},
};

/// Letters of a track's name that are shown, at most.
const MAX_NAME: usize = 40;

/// Shows the use of tracks and the stalls; a click on a stall goes to the timeline.
pub fn side_ui(ui: &mut Ui, store: &Store, trace_idx: usize, findings: &Findings, selection: &mut Selection) {
    let p = palette(ui);
    let height = ui.available_height();
    scroll_area(ui, [true, true], height).auto_shrink([false, false]).show(ui, |ui| {
        ui.style_mut().wrap_mode = Some(egui::TextWrapMode::Extend);
        heading(ui, "Tracks");
        egui::Grid::new("track use").num_columns(4).spacing([metrics::GAP_WIDE, 2.0]).show(ui, |ui| {
            for title in ["Track", "Busy", "", "Waiting"] {
                ui.weak(title);
            }
            ui.end_row();
            for used in &findings.track_use {
                let Some(track) = store.track(used.track) else { continue };
                let name = |most| format::shortened(&track.name, most).into_owned();
                ui.label(name(MAX_NAME)).on_hover_text(name(1_000));
                ui.label(format::percent(used.utilisation));
                let (bar, _) = ui.allocate_exact_size(vec2(80.0, metrics::PAD), Sense::hover());
                ui.painter().rect_filled(bar, 2.0, p.hovered);
                let full = vec2(bar.width() * used.utilisation.clamp(0.0, 1.0) as f32, bar.height());
                ui.painter().rect_filled(Rect::from_min_size(bar.min, full), 2.0, p.accent);
                ui.label(format::duration_ns(used.wait_ns));
                ui.end_row();
            }
        });
        stalls_ui(ui, store, trace_idx, findings, selection);
    });
}

fn stalls_ui(ui: &mut Ui, store: &Store, trace_idx: usize, findings: &Findings, selection: &mut Selection) {
    let found = &findings.stalls;
    ui.add_space(metrics::GAP_WIDE);
    heading(ui, "Stalls by cause");
    if let Some(ns) = found.only_last_ns {
        ui.label(format!("of the last {} of the range", format::duration_ns(ns)));
    }
    if found.by_cause.is_empty() {
        ui.label("No stalls: no worker waited inside a step.");
        return;
    }
    egui::Grid::new("stall causes").num_columns(3).spacing([metrics::GAP_WIDE, 2.0]).show(ui, |ui| {
        for total in &found.by_cause {
            ui.label(total.cause.to_string());
            ui.label(format::duration_ns(total.total_ns));
            ui.label(format::count_of(total.count, "stall"));
            ui.end_row();
        }
    });
    ui.add_space(metrics::GAP_WIDE);
    heading(ui, "Largest stalls");
    if let Some(stall) = stalls::list_ui(ui, store, &found.top, 30) {
        // The slice after the stall: in the timeline, the stall's band is right before it.
        match stall.blocked.or(stall.culprit) {
            Some(id) => selection.slice.set(ViewKind::Ops, Some(SlicePick { trace_idx, id })),
            None => {
                let ns = stall.start..stall.end;
                selection.time.set(ViewKind::Ops, Some(TimeRange { trace_idx, ns }));
            }
        }
        selection.show(ViewKind::Timeline);
    }
}
