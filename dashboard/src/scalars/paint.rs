//! The parts of a card's chart: lines, bands, marks.

use super::{band::Band, curve::CurveSettings};
use egui::{Color32, Painter, Pos2, Shape, Stroke, pos2};
use ui::{
    chart::{
        Polylines,
        decimate::{Mark, MarkKind},
        frame::Frame,
        strip,
    },
    theme::{Palette, metrics, mix},
};

/// The emphasis of a line, given the picked run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// No run is picked.
    Usual,
    /// The line's run is picked.
    Picked,
    /// Another run is picked.
    Dimmed,
}

/// A line with its style.
#[derive(Clone)]
pub struct StyledLine {
    pub lines: Polylines,
    pub color: Color32,
    /// Width of the line, points.
    pub width: f32,
    /// Whether values without a place on the axis have marks.
    pub has_marks: bool,
}

/// The styled lines of a curve: the raw values faint, the smoothed line over them.
pub fn styled(
    (raw, smooth): (Polylines, Polylines),
    settings: CurveSettings,
    p: &Palette,
    color: Color32,
    weight: Weight,
) -> impl Iterator<Item = StyledLine> {
    let (color, width) = match weight {
        Weight::Usual => (color, metrics::LINE),
        Weight::Picked => (color, metrics::LINE_STRONG),
        Weight::Dimmed => (mix(p.canvas, color, 0.3), metrics::HAIRLINE),
    };
    if settings.smoothing > 0.0 {
        let faint = mix(p.canvas, color, 0.35);
        let behind = StyledLine { lines: raw, color: faint, width: metrics::HAIRLINE, has_marks: true };
        [Some(behind), Some(StyledLine { lines: smooth, color, width, has_marks: false })]
    } else {
        [Some(StyledLine { lines: raw, color, width, has_marks: true }), None]
    }
    .into_iter()
    .flatten()
}

/// Paints a line as shapes, with its marks.
pub fn curve(painter: &Painter, frame: &Frame, styled: &StyledLine) {
    let StyledLine { lines, color, width, has_marks } = styled;
    painter.extend(shapes(lines, frame, *color, *width));
    if *has_marks {
        painter.extend(lines.marks().iter().map(|mark| mark_shape(frame, mark, *color)));
    }
}

/// Paints the band of a group and the line of its mean.
pub fn band(painter: &Painter, frame: &Frame, band: &Band, settings: CurveSettings, color: Color32) {
    let at = |x: f64, value: f64| pos2(frame.x(x), frame.y(settings.scale.forward(value)));
    let has_place = |values: &[f64; 3]| values.iter().all(|v| settings.scale.forward(*v).is_finite());
    for part in band.places.split(|(_, values)| !has_place(values)) {
        let ends = part.iter().map(|(x, [lo, _, hi])| [at(*x, *lo), at(*x, *hi)]);
        painter.add(strip(ends, color.gamma_multiply(0.22)));
        match &part.iter().map(|(x, [_, mean, _])| at(*x, *mean)).collect::<Vec<Pos2>>()[..] {
            [] => {}
            [only] => _ = painter.circle_filled(*only, metrics::DOT, color),
            line => _ = painter.add(Shape::line(line.to_vec(), Stroke::new(metrics::LINE_STRONG, color))),
        }
    }
}

fn shapes<'a>(
    lines: &'a Polylines,
    frame: &'a Frame,
    color: Color32,
    width: f32,
) -> impl Iterator<Item = Shape> + use<'a> {
    lines.lines().map(move |line| match line {
        [point] => Shape::circle_filled(frame.pos(point[0], point[1]), metrics::DOT, color),
        _ => {
            let points: Vec<Pos2> = line.iter().map(|point| frame.pos(point[0], point[1])).collect();
            Shape::line(points, Stroke::new(width, color))
        }
    })
}

/// The triangle of a mark: at the bottom for NaN (pointing up) and minus infinity (down), at the top for infinity.
pub fn mark_shape(frame: &Frame, mark: &Mark, color: Color32) -> Shape {
    let x = frame.x(mark.x);
    let size = metrics::MARK;
    let (y, tip) = match mark.kind {
        MarkKind::PosInf => (frame.inner.top() + 2.0 * size, -2.0 * size),
        MarkKind::NegInf => (frame.inner.bottom() - 2.0 * size, 2.0 * size),
        MarkKind::Nan => (frame.inner.bottom(), -2.0 * size),
    };
    Shape::convex_polygon(vec![pos2(x - size, y), pos2(x, y + tip), pos2(x + size, y)], color, Stroke::NONE)
}
