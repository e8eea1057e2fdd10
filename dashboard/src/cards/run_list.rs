//! The list of runs at the left of Scalars and Histograms.

use crate::runs::{RunEntry, RunList};
use egui::{Response, Role, ScrollArea, Sense, Ui, WidgetInfo, vec2};
use std::sync::Arc;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::filter_box,
};

/// Shows the filter, the switches for all runs, and a row for each run: a click shows or hides the run, a double click
/// shows it alone. The run `picked` stands out.
pub fn run_list(ui: &mut Ui, runs: &mut RunList, picked: Option<&Arc<str>>) {
    ui.add_space(metrics::PAD);
    let width = ui.available_width() - 2.0 * metrics::PAD;
    filter_box(ui, &mut runs.filter, "Filter runs (regex)", width);
    ui.horizontal(|ui| {
        let n_listed = runs.entries().iter().filter(|e| runs.filter.matches(&e.label)).count();
        let n_on = runs.entries().iter().filter(|e| runs.shown_color(&e.label).is_some()).count();
        ui.weak(format!("{n_on} of {} shown", format::count_of(n_listed as u64, "run")));
        let are_all_on = n_on == n_listed;
        if n_listed > 1 && ui.small_button(if are_all_on { "None" } else { "All" }).clicked() {
            runs.set_all(!are_all_on);
        }
    });
    ui.add_space(metrics::GAP);
    let listed_idxs: Vec<usize> =
        (0..runs.entries().len()).filter(|&i| runs.filter.matches(&runs.entries()[i].label)).collect();
    let mut clicked = None;
    ui.spacing_mut().item_spacing.y = 0.0;
    ScrollArea::vertical().auto_shrink(false).show_rows(ui, metrics::ROW_H, listed_idxs.len(), |ui, rows| {
        for &i in &listed_idxs[rows] {
            let entry = &runs.entries()[i];
            let response = row_ui(ui, runs, entry, picked == Some(&entry.label));
            if response.double_clicked() {
                clicked = Some((entry.label.clone(), true));
            } else if response.clicked() {
                clicked = Some((entry.label.clone(), false));
            }
        }
    });
    match clicked {
        // The first click has already switched the run: undo that, then show the run alone.
        Some((label, true)) => {
            runs.toggle(&label);
            runs.solo(&label);
        }
        Some((label, false)) => runs.toggle(&label),
        None => {}
    }
}

/// Shows the row of a run.
fn row_ui(ui: &mut Ui, runs: &RunList, entry: &RunEntry, is_picked: bool) -> Response {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), metrics::ROW_H), Sense::click());
    response.widget_info(|| WidgetInfo::selected(Role::CheckBox, true, entry.is_on, format!("Run {}", entry.label)));
    let p = palette(ui);
    if is_picked {
        ui.painter().rect_filled(rect, f32::from(metrics::RADIUS), p.selected);
    }
    if response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect, f32::from(metrics::RADIUS), p.hovered);
    }
    let color = p.series(entry.color_idx);
    let center = rect.left_center() + vec2(metrics::SWATCH, 0.0);
    let radius = metrics::SWATCH / 2.0;
    if entry.is_on {
        ui.painter().circle_filled(center, radius, color);
    } else {
        ui.painter().circle_stroke(center, radius, egui::Stroke::new(metrics::ICON_LINE, color));
    }
    let text_color = if entry.is_on { p.text } else { p.text_weak };
    let left = center.x + metrics::SWATCH;
    let room = egui::Rect::from_min_max(egui::pos2(left, rect.top()), rect.max);
    ui::widgets::text_elided_at(ui, runs.short(&entry.label), room, text_color, runs.differs_at(&entry.label));
    response.on_hover_text(format!("{}\nclick: show or hide · double click: show it alone", entry.label))
}
