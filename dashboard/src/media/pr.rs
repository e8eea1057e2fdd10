//! Precision over recall, a line for each run.

use super::{decode::MediaValue, rows::RunValue};
use egui::{Grid, Pos2, RichText, Sense, Shape, Stroke, Ui, vec2};
use summaries::PrCurve;
use ui::{
    chart::{Bounds, Scale, frame::Frame, ticks::Unit},
    format,
    theme::{metrics, palette},
    widgets::{self, swatch},
};

/// A run's point nearest to the pointer.
struct NearestPoint<'a> {
    value: &'a RunValue<'a>,
    curve: &'a PrCurve,
    /// Index of the threshold.
    i: usize,
    pos: Pos2,
}

/// Shows the lines of all runs.
pub fn ui(ui: &mut Ui, tag: &str, values: &[RunValue<'_>]) {
    let p = palette(ui);
    let bounds = Bounds { x: [0.0, 1.0], y: [0.0, 1.05] };
    let outer = ui.max_rect();
    let frame = Frame::new(outer, bounds, Scale::Linear);
    let response = ui.interact(frame.inner, ui.scope_id().with("chart"), Sense::hover());
    frame.paint(ui, Unit::Number);
    let curves: Vec<(&RunValue<'_>, &PrCurve)> = values
        .iter()
        .filter_map(|value| match &*value.shown {
            MediaValue::PrCurve(curve) => Some((value, curve)),
            _ => None,
        })
        .collect();
    widgets::describe(&response, || {
        let areas = curves.iter().map(|(v, c)| format!(", {} area {}", v.member.label, format::value(area(c))));
        let n_runs = format::count_of(curves.len() as u64, "run");
        format!("Precision over recall of {tag}: {n_runs}{}", areas.collect::<String>())
    });
    let painter = ui.painter_at(frame.inner.expand(metrics::DOT));
    for (value, curve) in &curves {
        let points: Vec<Pos2> = (0..n_defined(curve)).map(|i| frame.pos(curve.recall[i], curve.precision[i])).collect();
        painter.add(Shape::line(points, Stroke::new(metrics::LINE, p.series(value.member.color_idx))));
    }
    let Some(at) = response.hover_pos() else { return };
    let near: Vec<NearestPoint<'_>> = curves
        .iter()
        .filter_map(|(value, curve)| {
            let points = (0..n_defined(curve)).map(|i| (i, frame.pos(curve.recall[i], curve.precision[i])));
            let (i, pos) = points.min_by(|a, b| a.1.distance(at).total_cmp(&b.1.distance(at)))?;
            Some(NearestPoint { value, curve, i, pos })
        })
        .collect();
    for near in &near {
        painter.circle_filled(near.pos, metrics::DOT, p.series(near.value.member.color_idx));
    }
    response.show_tooltip_ui(|ui| tooltip(ui, &near));
}

fn tooltip(ui: &mut Ui, near: &[NearestPoint<'_>]) {
    let p = palette(ui);
    Grid::new("values").num_columns(9).spacing(vec2(metrics::GAP_WIDE, metrics::GAP / 2.0)).show(ui, |ui| {
        for title in ["", "Run", "Threshold", "Precision", "Recall", "TP", "FP", "TN", "FN"] {
            ui.weak(title);
        }
        ui.end_row();
        for NearestPoint { value, curve, i, .. } in near.iter().take(metrics::TOOLTIP_ROWS) {
            swatch(ui, p.series(value.member.color_idx));
            ui.label(RichText::new(&*value.member.label).color(p.text_strong));
            ui.label(format!("{:.3}", threshold(curve, *i)));
            ui.label(format!("{:.4}", curve.precision[*i]));
            ui.label(format!("{:.4}", curve.recall[*i]));
            let counts = [&curve.true_positives, &curve.false_positives, &curve.true_negatives, &curve.false_negatives];
            for counts in counts {
                ui.label(format::value(counts[*i]));
            }
            ui.end_row();
        }
    });
    if near.len() > metrics::TOOLTIP_ROWS {
        ui.weak(format!("and {} more", near.len() - metrics::TOOLTIP_ROWS));
    }
}

/// The threshold of an index: evenly spaced from 0 to 1.
fn threshold(curve: &PrCurve, i: usize) -> f64 {
    i as f64 / (curve.recall.len().max(2) - 1) as f64
}

/// The number of thresholds up to the last one with a positive prediction. Precision is undefined beyond (TensorBoard,
/// `pr_curves_plugin`).
fn n_defined(curve: &PrCurve) -> usize {
    let positives = curve.true_positives.iter().zip(&curve.false_positives).map(|(tp, fp)| tp + fp);
    let last = positives.enumerate().filter(|(_, n)| *n > 0.0).map(|(i, _)| i).max();
    last.map_or(usize::from(!curve.recall.is_empty()), |i| i + 1)
}

/// The area under the curve, by trapezoids.
fn area(curve: &PrCurve) -> f64 {
    let n = n_defined(curve);
    let strip = |i: usize| {
        let (a, b) = (curve.recall[i], curve.recall[i + 1]);
        (a - b) * (curve.precision[i] + curve.precision[i + 1]) / 2.0
    };
    (0..n.saturating_sub(1)).map(strip).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_without_predictions_is_left_out() {
        let pairs = [(true, 0.9), (true, 0.6), (false, 0.4), (false, 0.1)];
        let curve = PrCurve::from_predictions(pairs, 11);
        assert_eq!(n_defined(&curve), 10, "nothing is predicted at 1.0");
        assert_eq!((threshold(&curve, 0), threshold(&curve, 5)), (0.0, 0.5));
        assert!((area(&curve) - 0.5).abs() < 0.51 && area(&curve) > 0.4, "{}", area(&curve));
        assert_eq!(n_defined(&PrCurve::default()), 0);
    }
}
