//! Arrows and error bars.

use egui::{Color32, Painter, Pos2, Shape, Stroke, vec2};
use ui::theme::metrics;

/// Draws an arrow from the end of one slice to the start of another, bent so that it is visible between adjacent rows.
pub fn arrow(painter: &Painter, from: Pos2, to: Pos2, color: Color32) {
    let bend = ((to.x - from.x).abs() * 0.5).clamp(12.0, 60.0);
    let points = [from, from + vec2(bend, 0.0), to - vec2(bend, 0.0), to];
    let stroke = Stroke::new(metrics::LINE, color);
    painter.add(Shape::CubicBezier(egui::epaint::CubicBezierShape::from_points_stroke(
        points,
        false,
        Color32::TRANSPARENT,
        stroke,
    )));
    let head = metrics::ARROW_HEAD;
    let triangle = vec![to, to + vec2(-head, -head * 0.6), to + vec2(-head, head * 0.6)];
    painter.add(Shape::convex_polygon(triangle, color, Stroke::NONE));
}

/// Draws an error bar: a line over the range of possible times with a vertical line at each end.
pub fn error_bar(painter: &Painter, x: std::ops::RangeInclusive<f32>, y: f32, color: Color32) {
    let stroke = Stroke::new(metrics::HAIRLINE, color);
    let (half_height, ends) = (metrics::ARROW_HEAD / 2.0, [*x.start(), *x.end()]);
    // A bar narrower than the arrow's head would be hidden by it.
    if ends[1] - ends[0] > metrics::ARROW_HEAD {
        painter.hline(x, y, stroke);
        for end in ends {
            painter.vline(end, y - half_height..=y + half_height, stroke);
        }
    }
}
