//! A chart of stacked areas of bytes, a column for each pixel, with a line, marks and a pointer.

use egui::{Color32, FontId, Mesh, Painter, Pos2, Rect, Response, Sense, Stroke, Ui, pos2, vec2};
use ui::{
    chart::{
        Bounds, Scale,
        frame::Frame,
        input::{self, Command},
        ticks::Unit,
    },
    theme::{metrics, mix, palette},
    widgets::describe,
};

/// Room above the highest column, as a share of the height.
const HEADROOM: f64 = 0.12;
/// Points that the wheel turns while the zoom changes by a factor of e.
const WHEEL_PER_E: f32 = 240.0;
/// How much of another colour the areas without the pointer get.
const DIMMED: f32 = 0.45;

/// A vertical line with a label.
pub(super) struct Mark {
    pub x: f64,
    /// The bytes of the dot on it; `None` for a line only.
    pub bytes: Option<u64>,
    pub label: String,
    pub color: Color32,
}

/// Bytes of each layer, from the bottom upwards, and the value of the line.
pub(super) type Column<'a> = (&'a [u64], u64);

/// What a chart shows.
pub(super) struct Area<'a> {
    /// The part of the x axis that is shown.
    pub view: [f64; 2],
    pub x_unit: Unit,
    /// The x at which the first column begins and the last one ends.
    pub span: [f64; 2],
    pub n_columns: usize,
    pub column: &'a dyn Fn(usize) -> Column<'a>,
    pub colors: &'a [Color32],
    pub line: Option<Color32>,
    pub marks: &'a [Mark],
    /// The layer that stands out.
    pub strong: Option<usize>,
    /// Whether the bare wheel zooms, as the page does not scroll.
    pub wheel_zooms: bool,
    /// The chart in one sentence.
    pub text: &'a dyn Fn() -> String,
}

/// What the pointer does on a chart.
#[derive(Default)]
pub(super) struct AreaResponse {
    /// The column under the pointer, and the layer.
    pub hovered: Option<(usize, Option<usize>)>,
    /// The column that was clicked.
    pub clicked: Option<usize>,
    /// A part of the x axis to show.
    pub show: Option<[f64; 2]>,
    /// Whether everything is to be shown.
    pub fit: bool,
    pub response: Option<Response>,
}

impl Area<'_> {
    /// Shows the chart with this height.
    pub(super) fn ui(&self, ui: &mut Ui, height: f32) -> AreaResponse {
        let (outer, response) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::click_and_drag());
        describe(&response, || (self.text)());
        let most = (0..self.n_columns).map(|i| self.most_of(i)).max().unwrap_or(0);
        let marked = self.marks.iter().filter_map(|mark| mark.bytes.filter(|_| self.shows(mark.x))).max().unwrap_or(0);
        let y = [0.0, (most.max(marked).max(1) as f64) * (1.0 + HEADROOM)];
        let mut frame = Frame::new(outer, Bounds { x: self.view, y }, Scale::Linear);
        frame.inner.min.x += metrics::PAD;
        frame.inner.max.x -= metrics::PAD;
        frame.paint_units(ui, [self.x_unit, Unit::Bytes]);
        let painter = ui.painter_at(frame.inner.expand(0.5));
        let pointer = response.hover_pos().filter(|at| frame.inner.contains(*at));
        let hovered = pointer.and_then(|at| self.hovered(&frame, at));
        self.paint_layers(ui, &painter, &frame, hovered.and_then(|(_, layer)| layer).or(self.strong));
        self.paint_line(&painter, &frame);
        self.paint_marks(ui, &painter, &frame);
        if let Some(at) = pointer {
            painter.vline(at.x, frame.inner.y_range(), Stroke::new(metrics::HAIRLINE, palette(ui).highlight));
        }
        let clicked = hovered.filter(|_| response.clicked()).map(|(i, _)| i);
        let mut out = AreaResponse { hovered, clicked, ..AreaResponse::default() };
        self.gestures(ui, &response, &frame, &mut out);
        out.response = Some(response);
        out
    }

    fn shows(&self, x: f64) -> bool {
        (self.view[0]..=self.view[1]).contains(&x)
    }

    fn most_of(&self, i: usize) -> u64 {
        let (layers, line) = (self.column)(i);
        let sum = layers.iter().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        if self.line.is_some() { sum.max(line) } else { sum }
    }

    /// The x at which a column begins.
    fn x_of(&self, i: usize) -> f64 {
        self.span[0] + (self.span[1] - self.span[0]) * i as f64 / self.n_columns.max(1) as f64
    }

    /// The column at a position, and the layer.
    fn hovered(&self, frame: &Frame, at: Pos2) -> Option<(usize, Option<usize>)> {
        let x = frame.bounds.x_at(f64::from((at.x - frame.inner.left()) / frame.inner.width()));
        let share = (x - self.span[0]) / (self.span[1] - self.span[0]);
        if !(0.0..1.0).contains(&share) || self.n_columns == 0 {
            return None;
        }
        let i = ((share * self.n_columns as f64) as usize).min(self.n_columns - 1);
        let bytes = frame.bounds.y_at(f64::from((frame.inner.bottom() - at.y) / frame.inner.height()));
        let mut top = 0.0;
        let layer = (self.column)(i).0.iter().position(|layer| {
            top += *layer as f64;
            bytes < top
        });
        Some((i, layer))
    }

    /// The part of the axis that gestures ask for; `out.fit` for everything.
    fn gestures(&self, ui: &Ui, response: &Response, frame: &Frame, out: &mut AreaResponse) {
        match input::gestures(ui, response, frame) {
            Some(Command::Show(bounds)) => out.show = Some(bounds.x),
            Some(Command::Fit) => out.fit = true,
            None => {}
        }
        let Some(at) = response.hover_pos().filter(|_| self.wheel_zooms && out.show.is_none()) else { return };
        let across = f64::from((at.x - frame.inner.left()) / frame.inner.width());
        let wheel = ui.input_mut(|i| std::mem::take(&mut i.smooth_scroll_delta));
        if wheel.y != 0.0 {
            let factor = f64::from(wheel.y / WHEEL_PER_E).exp();
            out.show = Some(frame.bounds.zoomed([factor, 1.0], across, 0.0).x);
        } else if wheel.x != 0.0 {
            out.show = Some(frame.bounds.moved(f64::from(-wheel.x / frame.inner.width()), 0.0).x);
        }
    }

    fn paint_layers(&self, ui: &Ui, painter: &Painter, frame: &Frame, strong: Option<usize>) {
        let p = palette(ui);
        let color = |layer: usize| {
            let color = self.colors.get(layer).copied().unwrap_or(p.aggregate);
            if strong.is_none_or(|strong| strong == layer) { color } else { mix(color, p.canvas, DIMMED) }
        };
        let mut mesh = Mesh::default();
        let mut i = 0;
        while i < self.n_columns {
            let layers = (self.column)(i).0;
            // Columns that are the same are one rectangle.
            let mut end = i + 1;
            while end < self.n_columns && (self.column)(end).0 == layers {
                end += 1;
            }
            let (left, right) = (frame.x(self.x_of(i)), frame.x(self.x_of(end)));
            let mut sum = 0.0;
            for (layer, bytes) in layers.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
                let bottom = frame.y(sum);
                sum += *bytes as f64;
                let rect = Rect::from_min_max(pos2(left, frame.y(sum)), pos2(right, bottom));
                mesh.add_colored_rect(rect, color(layer));
            }
            i = end;
        }
        painter.add(mesh);
    }

    fn paint_line(&self, painter: &Painter, frame: &Frame) {
        let Some(color) = self.line else { return };
        let mut points = Vec::new();
        for i in 0..self.n_columns {
            let y = frame.y((self.column)(i).1 as f64);
            for x in [self.x_of(i), self.x_of(i + 1)] {
                points.push(pos2(frame.x(x), y));
            }
        }
        painter.line(points, Stroke::new(metrics::LINE, color));
    }

    fn paint_marks(&self, ui: &Ui, painter: &Painter, frame: &Frame) {
        let p = palette(ui);
        let font = FontId::proportional(metrics::TEXT_SMALL);
        let mut taken: Vec<Rect> = Vec::new();
        let marks = || self.marks.iter().filter(|mark| self.shows(mark.x));
        for mark in marks() {
            let x = frame.x(mark.x);
            painter.vline(x, frame.inner.y_range(), Stroke::new(metrics::HAIRLINE, mark.color));
            if let Some(bytes) = mark.bytes {
                let at = pos2(x, frame.y(bytes as f64));
                painter.circle(at, metrics::DOT, mark.color, Stroke::new(metrics::HAIRLINE, p.canvas));
            }
        }
        // Labels cover lines.
        for mark in marks() {
            let x = frame.x(mark.x);
            let galley = painter.layout_no_wrap(mark.label.clone(), font.clone(), mark.color);
            let mut left = x + metrics::DOT + metrics::GAP;
            if left + galley.size().x > frame.inner.right() {
                left = x - metrics::DOT - metrics::GAP - galley.size().x;
            }
            let mut label = Rect::from_min_size(pos2(left, frame.inner.top() + metrics::GAP), galley.size());
            // Below the labels that it would cover.
            while let Some(other) = taken.iter().find(|other| other.intersects(label.expand(1.0))) {
                label = label.translate(vec2(0.0, other.bottom() + 2.0 - label.top()));
            }
            if label.bottom() > frame.inner.bottom() {
                continue;
            }
            painter.rect_filled(label.expand(2.0), 2.0, p.canvas.gamma_multiply(0.85));
            painter.galley(label.min, galley, mark.color);
            taken.push(label);
        }
    }
}

/// Names a line above a chart: a dash in its colour.
pub(super) fn line_legend(ui: &mut Ui, color: Color32, name: &str) {
    let (rect, _) = ui.allocate_exact_size(vec2(2.0 * metrics::SWATCH, metrics::ROW_H), Sense::hover());
    ui.painter().hline(rect.x_range(), rect.center().y, Stroke::new(metrics::LINE, color));
    ui.label(name);
}

/// Names an area above a chart: a square in its colour.
pub(super) fn area_legend(ui: &mut Ui, color: Color32, name: &str) -> Response {
    let (rect, _) = ui.allocate_exact_size(vec2(metrics::SWATCH, metrics::ROW_H), Sense::hover());
    let square = Rect::from_center_size(rect.center(), vec2(metrics::SWATCH, metrics::SWATCH));
    let border = Stroke::new(metrics::HAIRLINE, palette(ui).border);
    ui.painter().rect(square, 2.0, color, border, egui::StrokeKind::Inside);
    ui.label(name)
}

/// A part of the whole that is at most the whole; `None` for everything.
pub(super) fn clamped([lo, hi]: [f64; 2], [start, end]: [f64; 2]) -> Option<[f64; 2]> {
    let width = (hi - lo).min(end - start);
    if width >= end - start || !width.is_finite() {
        return None;
    }
    let lo = lo.clamp(start, end - width);
    Some([lo, lo + width])
}

#[cfg(test)]
mod tests {
    use super::clamped;

    #[test]
    fn a_view_stays_inside() {
        assert_eq!(clamped([2.0, 4.0], [0.0, 10.0]), Some([2.0, 4.0]));
        assert_eq!(clamped([-1.0, 1.0], [0.0, 10.0]), Some([0.0, 2.0]));
        assert_eq!(clamped([9.0, 12.0], [0.0, 10.0]), Some([7.0, 10.0]));
        assert_eq!(clamped([-5.0, 20.0], [0.0, 10.0]), None);
    }
}
