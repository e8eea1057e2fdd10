//! Parallel coordinates: an upright axis for each column, a line for each session. A drag along an axis filters; a
//! click on its name changes the scale of its numbers.

use super::{
    axis::Axis,
    model::{Key, Session},
    state::State,
};
use crate::Selection;
use egui::{
    Align2, FontId, Mesh, Pos2, Rect, Response, Role, Sense, Shape, Stroke, Ui, emath::TSTransform,
    epaint::ClippedShape, pos2, vec2,
};
use std::sync::Arc;
use ui::address::Choice as _;
use ui::{
    theme::{metrics, mix, palette},
    widgets::{self, text_elided},
};

/// The lines as triangles, cached by the inputs on which they depend.
#[derive(Default)]
pub(super) struct LineCache {
    /// Revision, bits of the corners, palette and number of axes.
    key: Option<(u64, [u32; 4], usize, usize)>,
    meshes: Vec<Arc<Mesh>>,
}

/// The geometry of the axes.
struct AxesLayout {
    /// The rectangle of the lines.
    inner: Rect,
    /// The axes with their positions (x).
    axes: Vec<(Axis, f32)>,
}

impl AxesLayout {
    fn y(&self, share: f64) -> f32 {
        self.inner.bottom() - share as f32 * self.inner.height()
    }

    fn share(&self, y: f32) -> f64 {
        f64::from((self.inner.bottom() - y) / self.inner.height()).clamp(0.0, 1.0)
    }

    /// Returns the points of a session's line, interrupted where the session has no value.
    fn line_parts(&self, session: &Session) -> Vec<Vec<Pos2>> {
        let mut parts = vec![Vec::new()];
        for (axis, x) in &self.axes {
            match (session.cells.get(&axis.key).and_then(|cell| axis.place(cell)), parts.last_mut()) {
                (Some(share), Some(part)) => part.push(pos2(*x, self.y(share))),
                _ => parts.push(Vec::new()),
            }
        }
        parts
    }

    /// Returns the vertical distance of a session's line from a point.
    fn distance(&self, session: &Session, at: Pos2) -> f32 {
        let parts = self.line_parts(session);
        let segments = parts.iter().flat_map(|part| part.windows(2));
        let crossing = segments.filter(|pair| (pair[0].x..=pair[1].x).contains(&at.x)).map(|pair| {
            let share = (at.x - pair[0].x) / (pair[1].x - pair[0].x).max(1.0);
            (pair[0].y + share * (pair[1].y - pair[0].y) - at.y).abs()
        });
        crossing.fold(f32::INFINITY, f32::min)
    }
}

impl State {
    /// Shows the axes and lines; returns the run that was picked.
    pub(super) fn parallel_ui(
        &mut self,
        ui: &mut Ui,
        cache: &mut LineCache,
        selection: &Selection,
    ) -> Option<Arc<str>> {
        let outer = ui.available_rect_before_wrap().shrink(metrics::PAD);
        let keys: Vec<Key> = self.columns().map(|column| column.key.clone()).collect();
        if keys.is_empty() {
            widgets::empty_state(ui, "No column is shown", "Enable columns on the left.");
            return None;
        }
        let mut inner = outer.shrink2(vec2(metrics::AXIS_LABEL_W, metrics::GAP_WIDE));
        inner.min.y += metrics::ROW_H;
        let step = if keys.len() > 1 { inner.width() / (keys.len() - 1) as f32 } else { 0.0 };
        let axes = keys.iter().enumerate();
        let axes = axes.filter_map(|(i, key)| Some((self.axis(key)?, inner.left() + i as f32 * step)));
        let layout = AxesLayout { inner, axes: axes.collect() };
        let response = ui.allocate_rect(outer, Sense::click());
        widgets::describe(&response, || {
            let n = ui::format::count_of(self.shown.rows.len() as u64, "session");
            format!("Parallel coordinates: {n} on {} axes", layout.axes.len())
        });
        self.paint_lines(ui, cache, outer, &layout);
        let hovered = response.hover_pos().and_then(|at| self.nearest(&layout, at));
        let picked = self.shown.rows.iter().find(|i| selection.run.get() == Some(&self.table.sessions[**i].label));
        for i in [picked.copied(), hovered].into_iter().flatten() {
            let color = if Some(i) == hovered { palette(ui).highlight } else { self.color(ui, i) };
            for part in layout.line_parts(&self.table.sessions[i]).into_iter().filter(|part| part.len() > 1) {
                ui.painter().add(Shape::line(part, Stroke::new(metrics::LINE_STRONG, color)));
            }
        }
        for (axis, x) in &layout.axes {
            self.axis_ui(ui, &layout, axis, (*x, step));
        }
        let session = &self.table.sessions[hovered?];
        response.show_tooltip_ui(|ui| session_tooltip(ui, session));
        response.clicked().then(|| session.label.clone())
    }

    fn nearest(&self, layout: &AxesLayout, at: Pos2) -> Option<usize> {
        let distances = self.shown.rows.iter().map(|i| (*i, layout.distance(&self.table.sessions[*i], at)));
        let (i, distance) = distances.min_by(|a, b| a.1.total_cmp(&b.1))?;
        (distance <= metrics::PICK_SLACK).then_some(i)
    }

    /// Paints the lines, the faint ones of filtered-out sessions first.
    fn paint_lines(&self, ui: &Ui, cache: &mut LineCache, outer: Rect, layout: &AxesLayout) {
        let p = palette(ui);
        let key = (
            self.shown.revision,
            [layout.inner.min.x, layout.inner.min.y, layout.inner.max.x, layout.inner.max.y].map(f32::to_bits),
            p.id(),
            layout.axes.len(),
        );
        if cache.key != Some(key) {
            let is_shown: rustc_hash::FxHashSet<usize> = self.shown.rows.iter().copied().collect();
            let filtered_out = (0..self.table.sessions.len()).filter(|i| !is_shown.contains(i));
            let faint = mix(p.panel, p.aggregate, 0.35);
            let back = filtered_out.map(|i| (i, faint, metrics::HAIRLINE));
            let front = self.shown.rows.iter().map(|i| (*i, self.color(ui, *i), metrics::LINE));
            let shapes: Vec<ClippedShape> = back
                .chain(front)
                .flat_map(|(i, color, width)| {
                    let parts = layout.line_parts(&self.table.sessions[i]).into_iter().filter(|part| part.len() > 1);
                    parts.map(move |part| Shape::line(part, Stroke::new(width, color)))
                })
                .map(|shape| ClippedShape {
                    clip_rect: outer,
                    shape,
                    transform_after_tessellation: TSTransform::IDENTITY,
                })
                .collect();
            *cache = LineCache { key: Some(key), meshes: tessellated(ui, shapes) };
        }
        ui.painter().extend(cache.meshes.iter().map(|mesh| Shape::Mesh(Arc::clone(mesh))));
    }

    /// Shows an axis with its ticks and name, and reacts to the pointer.
    fn axis_ui(&mut self, ui: &mut Ui, layout: &AxesLayout, axis: &Axis, (x, step): (f32, f32)) {
        let p = palette(ui);
        let inner = layout.inner;
        ui.painter().vline(x, inner.y_range(), Stroke::new(metrics::HAIRLINE, p.text_weak));
        let font = FontId::proportional(metrics::TEXT_TICK);
        for (share, label) in axis.ticks((inner.height() / metrics::TICK_EVERY_Y).max(2.0) as usize) {
            let at = pos2(x + metrics::GAP, layout.y(share));
            let galley = ui.painter().layout_no_wrap(label, font.clone(), p.text);
            let rect = Align2::LEFT_CENTER.anchor_size(at, galley.size());
            ui.painter().rect_filled(rect.expand(1.0), 2.0, p.panel.gamma_multiply(0.75));
            ui.painter().galley(rect.min, galley, p.text);
        }
        let name_w = if step > 0.0 { step.min(metrics::NAME_W) } else { metrics::NAME_W };
        let mut name_rect =
            Rect::from_center_size(pos2(x, inner.top() - metrics::ROW_H), vec2(name_w - metrics::GAP, metrics::ROW_H));
        let screen = ui.max_rect();
        let shift = (screen.left() + metrics::GAP - name_rect.left()).max(0.0)
            - (name_rect.right() - screen.right() + metrics::GAP).max(0.0);
        name_rect = name_rect.translate(vec2(shift, 0.0));
        self.name_ui(ui, axis, name_rect);
        let grip = Rect::from_x_y_ranges(x - metrics::PAD..=x + metrics::PAD, inner.y_range());
        let response = ui.interact(grip, ui.scope_id().with(("axis", axis.key.address())), Sense::click_and_drag());
        widgets::named(&response, Role::Slider, &format!("Filter of {}", axis.key.title()));
        self.brush(ui, layout, axis, x, &response);
    }

    fn name_ui(&mut self, ui: &Ui, axis: &Axis, rect: Rect) {
        let p = palette(ui);
        let Some(column) = self.table.column(&axis.key) else { return };
        let title = axis.key.title();
        let response = ui.interact(rect, ui.scope_id().with(("name", axis.key.address())), Sense::click());
        let color = if response.hovered() { p.accent } else { p.text_strong };
        let font = FontId::proportional(metrics::TEXT);
        let width = ui.painter().layout_no_wrap(title.clone(), font, color).size().x.min(rect.width());
        text_elided(ui, &title, Rect::from_center_size(rect.center(), vec2(width, rect.height())), color);
        if column.extent.is_none() {
            widgets::named(&response, Role::Label, &title);
            return;
        }
        widgets::named(&response, Role::Button, &format!("Scale of {title}: {}", axis.scale.title()));
        let next = axis.scale.next(column);
        let hint = format!("{title}, {}\nclick: {}", axis.scale.title(), next.title());
        if response.on_hover_text(hint).clicked() {
            self.choices.scale.insert(axis.key.clone(), next);
        }
    }

    /// Marks the part of the axis that passes, and filters after a drag or a click.
    fn brush(&mut self, ui: &Ui, layout: &AxesLayout, axis: &Axis, x: f32, response: &Response) {
        let p = palette(ui);
        let id = response.id.with("from");
        if response.drag_started()
            && let Some(origin) = ui.input(|i| i.pointer.press_origin())
        {
            ui.data_mut(|d| d.insert_temp(id, origin.y));
        }
        let from: Option<f32> = ui.data(|d| d.get_temp(id));
        if let (Some(from), Some(at)) = (from, response.interact_pointer_pos()) {
            let ends = [layout.share(from.max(at.y)), layout.share(from.min(at.y))];
            axis.brush(&self.table, ends, &mut self.choices.filters);
            let rect =
                Rect::from_x_y_ranges(x - metrics::GAP..=x + metrics::GAP, layout.y(ends[1])..=layout.y(ends[0]));
            ui.painter().rect_filled(rect, 2.0, p.accent.gamma_multiply(0.5));
        } else if self.choices.filters.is_set(&axis.key) {
            let passing =
                self.shown.rows.iter().filter_map(|i| axis.place(self.table.sessions[*i].cells.get(&axis.key)?));
            let [lo, hi] = passing.fold([1.0_f64, 0.0_f64], |[lo, hi], share| [lo.min(share), hi.max(share)]);
            let y = [layout.y(hi) - metrics::GAP, layout.y(lo) + metrics::GAP];
            let rect = Rect::from_x_y_ranges(x - metrics::GAP..=x + metrics::GAP, y[0]..=y[1]);
            ui.painter().rect_filled(rect, 2.0, p.accent.gamma_multiply(0.5));
        }
        if response.drag_stopped() {
            ui.data_mut(|d| d.remove::<f32>(id));
        }
        if response.clicked() {
            self.choices.filters.clear(&axis.key);
        }
        response.clone().on_hover_text(format!("{}\ndrag: filter · click: all", axis.key.title()));
    }
}

/// Converts shapes to triangles, which can be painted many times.
fn tessellated(ui: &Ui, shapes: Vec<ClippedShape>) -> Vec<Arc<Mesh>> {
    let primitives = ui.ctx().tessellate(shapes, ui.pixels_per_point());
    let mesh = |primitive: egui::ClippedPrimitive| match primitive.primitive {
        egui::epaint::Primitive::Mesh(mesh) => Some(Arc::new(mesh)),
        egui::epaint::Primitive::Callback(_) => None,
    };
    primitives.into_iter().filter_map(mesh).collect()
}

/// Shows a session's values.
pub(super) fn session_tooltip(ui: &mut Ui, session: &Session) {
    ui.label(egui::RichText::new(&*session.label).color(palette(ui).text_strong));
    let cells = session.cells.iter().map(|(key, cell)| (key.title(), cell.text()));
    widgets::pairs_grid(ui, "session", cells.take(3 * metrics::TOOLTIP_ROWS));
}
