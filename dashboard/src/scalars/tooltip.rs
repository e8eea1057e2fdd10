//! What the runs' values are at the pointer, greatest first.

use super::{card::Line, curve::Curve, curve::CurveSettings, points::XAxis};
use crate::{
    chart::ticks::Moment,
    format,
    theme::{metrics, palette},
    widgets::swatch,
};
use egui::{Grid, RichText, Ui, vec2};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// One run's point that is nearest to the pointer.
#[derive(Debug)]
pub struct Row {
    label: Arc<str>,
    /// The run.
    pub run_label: Arc<str>,
    /// Index of the run's colour.
    pub color_idx: usize,
    /// Place on the x axis.
    pub x: f64,
    /// Its step.
    pub step: i64,
    wall: f64,
    relative_s: f64,
    /// As written.
    pub value: f64,
    /// After smoothing, where it is on.
    pub smoothed: Option<f64>,
}

/// The nearest points to `x`, greatest value first, NaN last.
pub fn rows(curves: &FxHashMap<Arc<str>, Curve>, lines: &[Line<'_>], settings: CurveSettings, x: f64) -> Vec<Row> {
    let mut rows: Vec<Row> = lines
        .iter()
        .filter_map(|line| {
            let curve = curves.get(&line.member.label)?;
            let i = curve.nearest(line.points, settings, x)?;
            Some(Row {
                label: line.member.label.clone(),
                run_label: line.member.run_label.clone(),
                color_idx: line.member.color_idx,
                x: line.points.x(settings.axis, i),
                step: line.points.series().step(i),
                wall: line.points.series().wall(i),
                relative_s: line.points.x(XAxis::Relative, i),
                value: line.points.values().get(i),
                smoothed: curve.smoothed(i, settings),
            })
        })
        .collect();
    let key = |row: &Row| row.smoothed.unwrap_or(row.value);
    let order = |value: f64| if value.is_nan() { f64::NEG_INFINITY } else { value };
    rows.sort_by(|a, b| order(key(b)).total_cmp(&order(key(a))));
    rows
}

/// The rows as a table.
pub fn show(ui: &mut Ui, rows: &[Row], settings: CurveSettings) {
    let p = palette(ui);
    let is_smoothed = settings.smoothing > 0.0;
    Grid::new("values").num_columns(6).spacing(vec2(metrics::GAP_WIDE, metrics::GAP / 2.0)).show(ui, |ui| {
        let titles = ["", "Run", "Smoothed", "Value", "Step", "Relative"];
        for title in titles.iter().filter(|title| is_smoothed || **title != "Smoothed") {
            ui.weak(*title);
        }
        ui.end_row();
        for row in rows.iter().take(metrics::TOOLTIP_ROWS) {
            swatch(ui, p.series(row.color_idx));
            ui.label(RichText::new(&*row.label).color(p.text_strong));
            if let Some(smoothed) = row.smoothed {
                ui.label(RichText::new(format::value(smoothed)).color(p.text_strong));
            }
            ui.label(format::value(row.value));
            ui.label(format::step(row.step));
            ui.label(format::duration_ns((row.relative_s * 1e9) as i64));
            ui.end_row();
        }
    });
    if let Some(row) = rows.first() {
        ui.weak(Moment::of(row.wall).full());
    }
    if rows.len() > metrics::TOOLTIP_ROWS {
        ui.weak(format!("and {} more", rows.len() - metrics::TOOLTIP_ROWS));
    }
}
