//! Distributions over steps: as ridges, and as bands.

use plotters::prelude::*;

use super::paint::{Area, DrawResult, Paint, padded_range};
use crate::histogram::Histogram;

/// The least height of the tallest ridge, in rows.
const MIN_RIDGE_ROWS: f64 = 4.0;

pub(super) fn draw_ridges<DB: DrawingBackend>(
    area: &Area<DB>,
    paint: &Paint,
    title: &str,
    rows: &[(i64, Histogram)],
) -> DrawResult<(), DB> {
    let x = padded_range(rows.iter().flat_map(|(_, h)| [h.min, h.max]).filter(|v| v.is_finite()), 0.02);
    let densities: Vec<Vec<(f64, f64)>> = rows.iter().map(|(_, histogram)| density(histogram)).collect();
    let tallest = densities.iter().flatten().map(|p| p.1).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let n_rows = rows.len().max(1) as f64;
    let ridge_height = MIN_RIDGE_ROWS.max(n_rows / 4.0);
    let mut chart = paint.frame(area, title, (x, [0.0, n_rows + ridge_height]))?;
    let step = |y: f64| {
        let row = (rows.len() as f64 - 1.0 - y.round()).max(-1.0);
        let is_row = row >= 0.0 && (y - y.round()).abs() < 1e-6;
        is_row.then(|| rows.get(row as usize)).flatten().map_or_else(String::new, |(step, _)| step.to_string())
    };
    paint.axes(&mut chart, ("", "step"), Some(&step))?;
    for (row, outline) in densities.iter().enumerate() {
        let base = (rows.len() - 1 - row) as f64;
        let ridge: Vec<(f64, f64)> = outline.iter().map(|&(x, y)| (x, base + y / tallest * ridge_height)).collect();
        let opacity = 0.4 + 0.6 * row as f64 / n_rows;
        let color = paint.color(0);
        chart.draw_series([Polygon::new(ridge.clone(), paint.background.mix(0.85))])?;
        chart.draw_series([Polygon::new(ridge.clone(), color.mix(0.25 * opacity))])?;
        paint.line(&mut chart, ridge, color.mix(opacity).stroke_width(paint.px(1)))?;
    }
    Ok(())
}

pub(super) fn draw_distributions<DB: DrawingBackend>(
    area: &Area<DB>,
    paint: &Paint,
    title: &str,
    rows: &[(i64, Histogram)],
) -> DrawResult<(), DB> {
    let line = |q: f64| -> Vec<(f64, f64)> {
        let points = rows.iter().map(|(step, histogram)| (*step as f64, histogram.quantile(q)));
        points.filter(|(_, y)| y.is_finite()).collect()
    };
    let lines = Histogram::QUANTILES.map(line);
    let all_points = || lines.iter().flatten().copied();
    let (x, y) = (padded_range(all_points().map(|p| p.0), 0.0), padded_range(all_points().map(|p| p.1), 0.05));
    let mut chart = paint.frame(area, title, (x, y))?;
    paint.axes(&mut chart, ("step", ""), None)?;
    for outer in 0..4 {
        let outline = lines[outer].iter().chain(lines[8 - outer].iter().rev()).copied().collect::<Vec<_>>();
        chart.draw_series([Polygon::new(outline, paint.color(0).mix(0.22))])?;
    }
    paint.line(&mut chart, lines[4].clone(), paint.color(0).stroke_width(paint.px(2)))?;
    Ok(())
}

/// Returns the outline of a histogram: counts per width, with 0 at both ends.
fn density(histogram: &Histogram) -> Vec<(f64, f64)> {
    let finite_buckets = histogram.buckets.iter().filter(|b| [b.left, b.right, b.count].iter().all(|v| v.is_finite()));
    let points: Vec<(f64, f64)> = finite_buckets
        .map(|b| {
            let width = (b.right - b.left).abs().max(f64::MIN_POSITIVE);
            let share = width / (histogram.max - histogram.min).max(f64::MIN_POSITIVE);
            ((b.left + b.right) / 2.0, b.count / share.max(1e-3))
        })
        .collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let ends = ((first.0, 0.0), (last.0, 0.0));
    [ends.0].into_iter().chain(points.iter().copied()).chain([ends.1]).collect()
}
