//! The tooltip with the runs' values at the pointer.

use super::{curve::Curve, curve::CurveSettings, points::Line};
use egui::{Grid, RichText, Ui, vec2};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use ui::address::Choice;
use ui::{
    chart::ticks::date_time,
    format, natural,
    theme::{metrics, palette},
    widgets::swatch,
};

/// The order of runs in the tooltip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The greatest value first.
    #[default]
    Greatest,
    /// The least value first.
    Least,
    /// The curve nearest to the pointer first.
    Nearest,
    Name,
}

impl Choice for Order {
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Greatest, "Greatest first", "Highest first"),
        (Self::Least, "Least first", "Lowest first"),
        (Self::Nearest, "Nearest first", "Nearest first"),
        (Self::Name, "By name", "By name"),
    ];
}

impl Order {
    /// Sorts rows, NaN last. `y`: the pointer's y in plot space.
    pub fn sort(self, rows: &mut [Row], settings: CurveSettings, y: f64) {
        let value = |row: &Row| row.smoothed.unwrap_or(row.value);
        let or_last = |key: f64| if key.is_nan() { f64::INFINITY } else { key };
        match self {
            Self::Greatest => rows.sort_by(|a, b| or_last(-value(a)).total_cmp(&or_last(-value(b)))),
            Self::Least => rows.sort_by(|a, b| or_last(value(a)).total_cmp(&or_last(value(b)))),
            Self::Nearest => {
                let far = |row: &Row| or_last((settings.scale.forward(value(row)) - y).abs());
                rows.sort_by(|a, b| far(a).total_cmp(&far(b)));
            }
            Self::Name => rows.sort_by(|a, b| natural::order(&a.label, &b.label)),
        }
    }
}

/// A run's point that is nearest to the pointer.
#[derive(Debug)]
pub struct Row {
    label: Arc<str>,
    pub run_label: Arc<str>,
    pub color_idx: usize,
    /// The point's x.
    pub x: f64,
    pub step: i64,
    wall: f64,
    relative_s: f64,
    /// The value as written.
    pub value: f64,
    /// The smoothed value; `None` without smoothing.
    pub smoothed: Option<f64>,
}

/// The points nearest to `x`, in no particular order.
pub fn rows(curves: &FxHashMap<Arc<str>, Curve>, lines: &[Line<'_>], settings: CurveSettings, x: f64) -> Vec<Row> {
    lines
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
                relative_s: line.points.relative_s(i),
                value: line.points.values().get(i),
                smoothed: curve.smoothed(line.points, i, settings),
            })
        })
        .collect()
}

/// Shows the rows as a table.
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
        ui.weak(date_time(row.wall));
    }
    if rows.len() > metrics::TOOLTIP_ROWS {
        ui.weak(format!("and {} more", rows.len() - metrics::TOOLTIP_ROWS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_stand_in_the_order_of_choice() {
        let row = |label: &str, value: f64| {
            let label: Arc<str> = label.into();
            let (run_label, color_idx, x, step) = (label.clone(), 0, 0.0, 0);
            Row { label, run_label, color_idx, x, step, wall: 0.0, relative_s: 0.0, value, smoothed: None }
        };
        let check = |order: Order, expected: &str| {
            let mut rows = [row("c", 1.0), row("a", f64::NAN), row("b", 10.0), row("d", 4.0)];
            let settings = super::super::settings::Settings::default().curve;
            order.sort(&mut rows, settings, 4.5);
            assert_eq!(rows.map(|row| row.label.to_string()).join(""), expected, "{order:?}");
        };
        check(Order::Greatest, "bdca");
        check(Order::Least, "cdba");
        check(Order::Nearest, "dcba");
        check(Order::Name, "abcd");
    }
}
