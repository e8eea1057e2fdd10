//! A series' distribution over steps as bands around its median.

use super::{
    axis,
    bands::{BandRow, Bands},
};
use crate::cards::XAxis;
use egui::{Color32, Pos2, Rect, Response, Shape, Stroke, Ui, pos2};
use summaries::{Histogram, HistogramSeries};
use ui::{
    chart::{
        strip,
        ticks::{Unit, date_time, ticks},
    },
    format,
    theme::{metrics, mix, palette},
};

/// Names of the quantiles, the greatest first.
const NAMES: [&str; Histogram::QUANTILES.len()] =
    ["greatest", "93 %", "84 %", "69 %", "median", "31 %", "16 %", "7 %", "least"];

/// Paints the bands with their axes and the tooltip.
pub fn show(ui: &Ui, response: &Response, bands: &Bands, axis: XAxis, color: Color32, series: &HistogramSeries) {
    let inner = response.rect;
    paint_axes(ui, inner, bands, axis);
    paint_bands(ui, inner, bands, color);
    hover_ui(ui, response, bands, series);
}

/// Returns the position of a value at `x` on the screen.
fn point(inner: Rect, bands: &Bands, x: f64, value: f64) -> Pos2 {
    let right = bands.bounds.across(x) as f32 * inner.width();
    pos2(inner.left() + right, inner.bottom() - bands.bounds.up(value) as f32 * inner.height())
}

fn paint_bands(ui: &Ui, inner: Rect, bands: &Bands, color: Color32) {
    let p = palette(ui);
    let painter = ui.painter_at(inner.expand(1.0));
    let n_bands = Histogram::QUANTILES.len() / 2;
    // From the outermost band inwards.
    for lower in 0..n_bands {
        let upper = Histogram::QUANTILES.len() - 1 - lower;
        let tone = mix(p.canvas, color, 0.15 + 0.5 * lower as f32 / n_bands as f32);
        let ends = |row: &BandRow| [lower, upper].map(|i| point(inner, bands, row.x, row.values[i]));
        painter.add(strip(bands.rows.iter().map(ends), tone));
    }
    let median: Vec<Pos2> = bands.rows.iter().map(|row| point(inner, bands, row.x, row.median())).collect();
    match &median[..] {
        // A single step has no width and is drawn as a vertical line.
        [only] => {
            let values = bands.rows[0].values;
            let ends = [values[0], values[values.len() - 1]].map(|v| point(inner, bands, bands.rows[0].x, v));
            painter.line_segment(ends, Stroke::new(metrics::LINE, mix(p.canvas, color, 0.5)));
            painter.circle_filled(*only, metrics::DOT, color);
        }
        _ => {
            painter.add(Shape::line(median, Stroke::new(metrics::LINE, color)));
        }
    }
}

/// Draws the axis of steps or times below, and of values at the right.
fn paint_axes(ui: &Ui, inner: Rect, bands: &Bands, axis: XAxis) {
    let ([left, right], [low, high]) = (bands.bounds.x, bands.bounds.y);
    let n_columns = (inner.width() / metrics::TICK_EVERY_X).round().max(2.0) as usize;
    axis::vertical_lines(ui, inner, &ticks(axis.unit(), left, right, n_columns), |at| point(inner, bands, at, low).x);
    let n_rows = (inner.height() / metrics::TICK_EVERY_Y).round().max(2.0) as usize;
    axis::horizontal_lines(ui, inner, &ticks(Unit::Number, low, high, n_rows), |at| point(inner, bands, left, at).y);
}

/// Shows the quantiles of the step under the pointer.
fn hover_ui(ui: &Ui, response: &Response, bands: &Bands, series: &HistogramSeries) {
    let inner = response.rect;
    let Some(at) = response.hover_pos() else {
        return;
    };
    let x = bands.bounds.x_at(f64::from((at.x - inner.left()) / inner.width()));
    let Some(row) = bands.nearest(x) else {
        return;
    };
    let p = palette(ui);
    let painter = ui.painter_at(inner.expand(metrics::DOT));
    let median = point(inner, bands, row.x, row.median());
    painter.vline(median.x, inner.y_range(), Stroke::new(metrics::HAIRLINE, p.highlight));
    painter.circle_filled(median, metrics::DOT, p.highlight);
    response.show_tooltip_ui(|ui| tooltip_ui(ui, row, series));
}

fn tooltip_ui(ui: &mut Ui, row: &BandRow, series: &HistogramSeries) {
    ui.label(format!("step {}", format::step(series.step[row.row])));
    for (name, value) in NAMES.iter().zip(row.values.iter().rev()) {
        ui.label(format!("{name}: {}", format::value(*value)));
    }
    ui.weak(date_time(series.wall[row.row]));
}
