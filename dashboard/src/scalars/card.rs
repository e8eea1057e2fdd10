//! One tag's card: title, last values, chart.

use super::{
    curve::{Curve, CurveSettings},
    points::{Points, XAxis},
    tooltip,
};
use crate::{
    Data, Selection, ViewKind,
    catalogue::{Member, TagRow},
    chart::{
        Bounds, Polylines, XWindow,
        decimate::MarkKind,
        frame::Frame,
        input::{self, Command},
        ticks::Unit,
    },
    format,
    theme::{metrics, mix, palette},
    widgets::{self, CardFrame},
};
use egui::{Color32, Pos2, Sense, Shape, Stroke, Ui, pos2};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use summaries::ScalarSeries;

/// A card's zoom and its curves.
#[derive(Debug, Default)]
pub struct Card {
    curves: FxHashMap<Arc<str>, Curve>,
    /// `None` shows everything and follows growth.
    zoom: Option<Bounds>,
    zoom_of: Option<CurveSettings>,
}

/// One line of the card in this frame.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    /// The run.
    pub member: &'a Member,
    /// Its points, at least one.
    pub points: Points<'a>,
}

impl Card {
    /// Shows the card in all of `ui`'s space; whether its width is to change. `view`: how curves are drawn, and the
    /// step that the pointer was at in the frame before, in whichever card.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        row: &TagRow,
        data: &Data,
        view: (CurveSettings, Option<i64>),
        selection: &mut Selection,
        is_wide: bool,
    ) -> bool {
        let settings = view.0;
        let lines: Vec<Line<'_>> = lines(row, data).collect();
        let target = row.target();
        let is_selected = row.is_selected(selection);
        let frame = CardFrame { name: &row.name, tag: &row.tag, node: target.map(|n| &**n), is_selected, is_wide };
        let (header, outer) = frame.ui(ui, |ui| last_values(ui, &lines));
        if header.is_clicked {
            selection.node.set(ViewKind::Scalars, target.cloned());
            selection.tag.set(ViewKind::Scalars, Some(row.tag.clone()));
        }
        self.forget_old_zoom(settings);
        for line in &lines {
            self.curves.entry(line.member.label.clone()).or_default().update(line.points, settings);
        }
        let bounds = self.zoom.unwrap_or_else(|| self.fit(&lines, settings));
        let frame = Frame::new(outer, bounds, settings.scale);
        let response = ui.interact(frame.inner, ui.scope_id().with("chart"), Sense::click_and_drag());
        widgets::describe(&response, || summary(row, &lines));
        frame.paint(ui, unit(settings.axis));
        self.paint_lines(ui, &frame, &lines, settings);
        match input::gestures(ui, &response, &frame) {
            Some(Command::Show(bounds)) => self.zoom = Some(bounds),
            Some(Command::Fit) => self.zoom = None,
            None => {}
        }
        self.pointer(ui, &response, &frame, &lines, view, selection);
        header.is_width_toggled
    }

    /// A zoom belongs to the axes that it was made on.
    fn forget_old_zoom(&mut self, settings: CurveSettings) {
        let is_other = |old: CurveSettings| old.axis != settings.axis || old.scale != settings.scale;
        if self.zoom_of.is_none_or(is_other) {
            self.zoom = None;
        }
        self.zoom_of = Some(settings);
    }

    fn fit(&mut self, lines: &[Line<'_>], settings: CurveSettings) -> Bounds {
        let union = |a: [f64; 2], b: [f64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        let empty = [f64::INFINITY, f64::NEG_INFINITY];
        let (mut x, mut y) = (empty, empty);
        for line in lines {
            if let Some(curve) = self.curves.get_mut(&line.member.label) {
                x = union(x, curve.x_extent());
                y = union(y, curve.y_extent(line.points, settings));
            }
        }
        Bounds::around(x, y)
    }

    /// Raw values faintly behind, the smoothed line in front; marks at the edges.
    fn paint_lines(&mut self, ui: &Ui, frame: &Frame, lines: &[Line<'_>], settings: CurveSettings) {
        let p = palette(ui);
        let painter = ui.painter_at(frame.inner);
        let [lo, hi] = frame.bounds.x;
        let n_columns = (frame.inner.width() * ui.pixels_per_point()).round().max(1.0) as u32;
        let window = XWindow { lo, hi, n_columns };
        for line in lines {
            let Some(curve) = self.curves.get_mut(&line.member.label) else {
                continue;
            };
            let color = p.series(line.member.color_idx);
            let (raw, smooth) = curve.lines(line.points, settings, window);
            if settings.smoothing > 0.0 {
                painter.extend(shapes(raw, frame, mix(p.canvas, color, 0.35), metrics::HAIRLINE));
                painter.extend(shapes(smooth, frame, color, metrics::LINE));
            } else {
                painter.extend(shapes(raw, frame, color, metrics::LINE));
            }
            painter.extend(raw.marks().iter().map(|mark| mark_shape(frame, mark.x, mark.kind, color)));
        }
    }

    /// Crosshair and tooltip under the pointer, and the crosshair of the other cards' pointer.
    fn pointer(
        &self,
        ui: &Ui,
        response: &egui::Response,
        frame: &Frame,
        lines: &[Line<'_>],
        (settings, pointed): (CurveSettings, Option<i64>),
        selection: &mut Selection,
    ) {
        let p = palette(ui);
        let hairline = Stroke::new(metrics::HAIRLINE, p.text_weak);
        let line_at = |step: i64, stroke: Stroke| {
            let x = step as f64;
            if settings.axis == XAxis::Step && (frame.bounds.x[0]..=frame.bounds.x[1]).contains(&x) {
                ui.painter().vline(frame.x(x), frame.inner.y_range(), stroke);
            }
        };
        if let Some(step) = selection.step.get() {
            line_at(*step, Stroke::new(metrics::HAIRLINE, p.accent));
        }
        let Some(at) = response.hover_pos().filter(|_| !response.dragged()) else {
            if let Some(step) = pointed {
                line_at(step, hairline);
            }
            return;
        };
        let x = frame.bounds.x_at(f64::from((at.x - frame.inner.left()) / frame.inner.width()));
        let rows = tooltip::rows(&self.curves, lines, settings, x);
        if let Some(nearest) = rows.iter().min_by(|a, b| (a.x - x).abs().total_cmp(&(b.x - x).abs())) {
            ui.painter().vline(frame.x(nearest.x), frame.inner.y_range(), hairline);
            selection.pointed_step = Some(nearest.step);
            if response.clicked() {
                selection.step.set(ViewKind::Scalars, Some(nearest.step));
            }
        }
        let painter = ui.painter_at(frame.inner.expand(metrics::DOT));
        for row in &rows {
            let y = settings.scale.forward(row.smoothed.unwrap_or(row.value));
            if y.is_finite() {
                painter.circle_filled(frame.pos(row.x, y), metrics::DOT, p.series(row.color_idx));
            }
        }
        if !rows.is_empty() {
            response.show_tooltip_ui(|ui| tooltip::show(ui, &rows, settings));
        }
    }
}

/// The tag's series that have points.
fn lines<'a>(row: &'a TagRow, data: &'a Data) -> impl Iterator<Item = Line<'a>> {
    row.members.iter().filter_map(|member| {
        let series = member.series::<ScalarSeries>(data, &row.tag)?;
        let points = Points(series);
        (!points.is_empty()).then_some(Line { member, points })
    })
}

/// What the axis' numbers mean.
fn unit(axis: XAxis) -> Unit {
    match axis {
        XAxis::Step => Unit::Whole,
        XAxis::Relative => Unit::Seconds,
        XAxis::Wall => Unit::Wall,
    }
}

/// The newest value of each run, in its colour, as far as there is room.
fn last_values(ui: &mut Ui, lines: &[Line<'_>]) {
    let p = palette(ui);
    for line in lines.iter().rev() {
        let Some(last) = line.points.values().last() else {
            continue;
        };
        if ui.available_width() < metrics::VALUE_W {
            return;
        }
        let color = if lines.len() == 1 { p.text_strong } else { p.series(line.member.color_idx) };
        ui.label(egui::RichText::new(format::value(last)).color(color))
            .on_hover_text(format!("last value of {}", line.member.label));
    }
}

/// `loss: 2 runs, 1,234 points, last 0.0312 at step 1,200`, for assistive technology; the value is the longest run's.
fn summary(row: &TagRow, lines: &[Line<'_>]) -> String {
    let n_points: usize = lines.iter().map(|line| line.points.len()).sum();
    let mut text = format!(
        "{}: {}, {}",
        row.tag,
        format::counted(lines.len() as u64, "run"),
        format::counted(n_points as u64, "point")
    );
    let longest = lines.iter().max_by_key(|line| line.points.len());
    if let Some(last) = longest.and_then(|l| l.points.0.last()) {
        text += &format!(", last {} at step {}", format::value(last.value), format::step(last.step));
    }
    text
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

/// A triangle at the edge: at the bottom for NaN (pointing up) and minus infinity (down), at the top for infinity.
fn mark_shape(frame: &Frame, x: f64, kind: MarkKind, color: Color32) -> Shape {
    let x = frame.x(x);
    let size = metrics::MARK;
    let (y, tip) = match kind {
        MarkKind::PosInf => (frame.inner.top() + 2.0 * size, -2.0 * size),
        MarkKind::NegInf => (frame.inner.bottom() - 2.0 * size, 2.0 * size),
        MarkKind::Nan => (frame.inner.bottom(), -2.0 * size),
    };
    Shape::convex_polygon(vec![pos2(x - size, y), pos2(x, y + tip), pos2(x + size, y)], color, Stroke::NONE)
}
