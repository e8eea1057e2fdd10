//! Sessions as points: one column against another, and every column against every other.

use super::{axis::Axis, model::Key, parallel::session_tooltip, state::State};
use crate::Selection;
use egui::{Align2, FontId, Mesh, Pos2, Rect, Response, Sense, Stroke, Ui, pos2};
use std::sync::Arc;
use ui::{
    chart::dots,
    format,
    theme::{metrics, palette},
    widgets,
};

/// Columns that the matrix shows, at most.
const MAX_MATRIX: usize = 7;

/// The square of one plot.
struct Plot {
    inner: Rect,
    x: Axis,
    y: Axis,
}

impl Plot {
    /// Returns the position of a pair of shares on the screen.
    fn pos(&self, x: f64, y: f64) -> Pos2 {
        // The margin leaves room for points at the edges.
        let room = self.inner.shrink(metrics::PAD);
        pos2(room.left() + x as f32 * room.width(), room.bottom() - y as f32 * room.height())
    }
}

impl State {
    /// Shows one column against another; returns the run that was picked.
    pub(super) fn scatter_ui(&mut self, ui: &mut Ui, selection: &Selection) -> Option<Arc<str>> {
        let first_of_kind = |is_metric: bool| self.table.columns.iter().find(|c| c.key.is_metric() == is_metric);
        let first = |is_metric: bool| first_of_kind(is_metric).or(self.table.columns.first()).map(|c| c.key.clone());
        let (x, y) =
            (self.choices.x.clone().or_else(|| first(false))?, self.choices.y.clone().or_else(|| first(true))?);
        let (x, y) = (self.axis(&x)?, self.axis(&y)?);
        let outer = ui.available_rect_before_wrap().shrink(metrics::PAD);
        let mut inner = outer;
        inner.min.x += 1.5 * metrics::AXIS_LABEL_W;
        inner.max.y -= metrics::AXIS_LABEL_H + metrics::ROW_H;
        let plot = Plot { inner, x, y };
        let response = ui.allocate_rect(outer, Sense::click());
        paint_labels(ui, &plot);
        self.points_ui(ui, &plot, &response, selection)
    }

    /// Shows every visible column against every other; returns the run that was picked.
    pub(super) fn matrix_ui(&mut self, ui: &mut Ui, selection: &Selection) -> Option<Arc<str>> {
        let keys: Vec<Key> = self.columns().map(|column| column.key.clone()).collect();
        let axes: Vec<Axis> = keys.iter().take(MAX_MATRIX).filter_map(|key| self.axis(key)).collect();
        if keys.len() > MAX_MATRIX {
            let n = format::count_of(keys.len() as u64, "column");
            ui.weak(format!("The first {MAX_MATRIX} of {n}; hide some at the left to see others."));
        }
        let mut outer = ui.available_rect_before_wrap().shrink(metrics::PAD);
        outer.min.x += metrics::ROW_H;
        outer.max.y -= metrics::ROW_H;
        let n = axes.len().max(1) as f32;
        let size = outer.size() / n;
        let mut picked = None;
        for (row, y) in axes.iter().enumerate() {
            for (column, x) in axes.iter().enumerate() {
                let min = outer.min + egui::vec2(column as f32 * size.x, row as f32 * size.y);
                let inner = Rect::from_min_size(min, size).shrink(metrics::GAP / 2.0);
                let plot = Plot { inner, x: x.clone(), y: y.clone() };
                let id = ui.scope_id().with(("matrix", row, column));
                let response = ui.interact(inner, id, Sense::click());
                picked = self.points_ui(ui, &plot, &response, selection).or(picked);
                if row + 1 == axes.len() {
                    paint_name(ui, &x.key, pos2(inner.center().x, inner.bottom() + metrics::GAP), false);
                }
                if column == 0 {
                    paint_name(ui, &y.key, pos2(inner.left() - metrics::GAP, inner.center().y), true);
                }
            }
        }
        picked
    }

    /// Shows the points and the tooltip; returns the run that was picked.
    fn points_ui(&self, ui: &Ui, plot: &Plot, response: &Response, selection: &Selection) -> Option<Arc<str>> {
        let p = palette(ui);
        let painter = ui.painter_at(plot.inner);
        painter.rect(plot.inner, 0.0, p.canvas, Stroke::new(metrics::HAIRLINE, p.border), egui::StrokeKind::Inside);
        let place = |i: usize| {
            let cells = &self.table.sessions[i].cells;
            Some(plot.pos(plot.x.place(cells.get(&plot.x.key)?)?, plot.y.place(cells.get(&plot.y.key)?)?))
        };
        let points: Vec<(usize, Pos2)> = self.shown.rows.iter().filter_map(|&i| Some((i, place(i)?))).collect();
        let mut mesh = Mesh::default();
        for (i, pos) in &points {
            dots::add(&mut mesh, *pos, metrics::DOT, self.color(ui, *i));
        }
        painter.add(mesh);
        widgets::describe(response, || {
            let n = format::count_of(points.len() as u64, "session");
            format!("{} against {}: {n}", plot.y.key.title(), plot.x.key.title())
        });
        let is_picked = |i: usize| selection.run.get() == Some(&self.table.sessions[i].label);
        for (_, pos) in points.iter().filter(|(i, _)| is_picked(*i)) {
            painter.circle_stroke(*pos, 1.6 * metrics::DOT, Stroke::new(metrics::LINE, p.highlight));
        }
        let at = response.hover_pos()?;
        let (i, pos) = points.iter().min_by(|a, b| a.1.distance(at).total_cmp(&b.1.distance(at)))?;
        if pos.distance(at) > metrics::PICK_SLACK {
            return None;
        }
        painter.circle_stroke(*pos, 1.6 * metrics::DOT, Stroke::new(metrics::LINE, p.accent));
        let session = &self.table.sessions[*i];
        response.show_tooltip_ui(|ui| session_tooltip(ui, session));
        response.clicked().then(|| session.label.clone())
    }
}

/// Paints ticks and names of both axes.
fn paint_labels(ui: &Ui, plot: &Plot) {
    let p = palette(ui);
    let (painter, font) = (ui.painter(), FontId::proportional(metrics::TEXT_TICK));
    for (share, label) in plot.x.ticks((plot.inner.width() / metrics::TICK_EVERY_X).max(2.0) as usize) {
        let label_pos = pos2(plot.pos(share, 0.0).x, plot.inner.bottom() + metrics::GAP / 2.0);
        painter.text(label_pos, Align2::CENTER_TOP, label, font.clone(), p.text_weak);
    }
    for (share, label) in plot.y.ticks((plot.inner.height() / metrics::TICK_EVERY_Y).max(2.0) as usize) {
        let label_pos = pos2(plot.inner.left() - metrics::GAP, plot.pos(0.0, share).y);
        painter.text(label_pos, Align2::RIGHT_CENTER, label, font.clone(), p.text_weak);
    }
    paint_name(ui, &plot.x.key, pos2(plot.inner.center().x, plot.inner.bottom() + metrics::AXIS_LABEL_H), false);
    paint_name(ui, &plot.y.key, pos2(plot.inner.left() - metrics::AXIS_LABEL_W, plot.inner.center().y), true);
}

/// Paints a column's name below a plot, or upright next to it.
fn paint_name(ui: &Ui, key: &Key, label_pos: Pos2, is_upright: bool) {
    let p = palette(ui);
    let galley = ui.painter().layout_no_wrap(key.title(), FontId::proportional(metrics::TEXT_SMALL), p.text);
    if is_upright {
        let start = pos2(label_pos.x - galley.size().y, label_pos.y + galley.size().x / 2.0);
        let text = egui::epaint::TextShape::new(start, galley, p.text).with_angle(-std::f32::consts::FRAC_PI_2);
        ui.painter().add(text);
    } else {
        let start = pos2(label_pos.x - galley.size().x / 2.0, label_pos.y);
        ui.painter().galley(start, galley, p.text);
    }
}
