//! Everything that is drawn around and over the slices: ruler, steps, overview, counters, open slices, marks, arrows.

use super::{
    input::Areas,
    layout::{self, Frame, Place},
    model::{Row, Rows},
    picture::{Scene, fitted, label_font},
    tags::Tags,
    ticks,
    viewport::{Scale, Viewport},
};
use crate::theme::{Palette, metrics, mix, on_fill};
use egui::{Align2, Color32, FontId, Mesh, Painter, Pos2, Rect, Shape, Stroke, pos2, vec2};
use profiler::{SliceRef, Store, Track};
use std::ops::Range;

/// Draws the ruler's ticks with their labels, and light lines through the rows.
///
/// No label is drawn where one of `tags` will stand.
pub fn ruler(painter: &Painter, areas: &Areas, frame: &Frame, tags: &Tags, p: &Palette) {
    let ruler = ticks::ruler(frame.view, &frame.scale);
    painter.rect_filled(areas.ruler, 0.0, p.panel);
    let ticks_top = areas.ruler.top();
    for tick in &ruler.ticks {
        let x = painter.round_to_pixel_center(frame.scale.x_from_time(tick.time));
        let (length, color) = if tick.labelled { (metrics::PAD, p.text_weak) } else { (metrics::GAP, p.border) };
        painter.vline(x, ticks_top..=ticks_top + length, Stroke::new(metrics::HAIRLINE, color));
        if tick.labelled {
            painter.vline(x, areas.body.y_range(), Stroke::new(metrics::HAIRLINE, p.grid));
            let text = ticks::position(tick.time, ruler.step);
            let at = pos2(x + metrics::GAP, ticks_top + 2.0);
            let galley = painter.layout_no_wrap(text, FontId::proportional(metrics::TEXT_TICK), p.text_weak);
            let place = Rect::from_min_size(at, galley.size());
            // A label that is cut says another time.
            if !tags.covers(place) && place.right() <= areas.ruler.right() {
                painter.galley(at, galley, p.text_weak);
            }
        }
    }
}

/// Draws the steps in the lower half of the ruler: label and step on the summaries' axis.
pub fn steps(painter: &Painter, strip: Rect, store: &Store, frame: &Frame, p: &Palette) {
    painter.rect_filled(strip, 0.0, p.stripe);
    let all = store.steps();
    let mut mesh = Mesh::default();
    let mut labels = Vec::new();
    let mut i = all.partition_point(|s| s.end <= frame.view.start);
    while let Some(step) = all.get(i).filter(|s| s.start < frame.view.end) {
        let (x0, x1) = frame.edges(step.start, step.end);
        let next = if x1 - x0 > 2.0 {
            i + 1
        } else {
            // All that begin in this pixel are one mark.
            let pixel = frame.scale.ns_of_px(1.0);
            all.partition_point(|s| s.start < step.start.saturating_add(pixel)).max(i + 1)
        };
        let ground = if i.is_multiple_of(2) { p.hovered } else { mix(p.hovered, p.border, 0.6) };
        mesh.add_colored_rect(Rect::from_x_y_ranges(x0..=x1, strip.y_range()), ground);
        if x1 - x0 >= metrics::LABEL_MIN_W {
            let label = store.sites().get(step.site as usize).map_or("step", |s| &s.name);
            let number = crate::format::step(step.summary_step);
            labels.push((x0, x1, crate::format::step_name(label, step.summary_step), number));
        }
        i = next;
    }
    painter.add(mesh);
    for (x0, x1, full, short) in labels {
        let room = x1 - x0 - 2.0 * metrics::GAP;
        let text = fitted(painter, &full, room).filter(|t| *t == full).or_else(|| fitted(painter, &short, room));
        if let Some(text) = text {
            let at = pos2(x0 + metrics::GAP, strip.center().y);
            painter.text(at, Align2::LEFT_CENTER, text, label_font(), p.text);
        }
    }
}

/// Draws how busy all tracks together were, over the whole trace, and above that in grey how many waited; with the
/// view's frame.
pub fn minimap(painter: &Painter, area: Rect, density: &[Density], trace: &Range<i64>, view: Viewport, p: &Palette) {
    painter.rect_filled(area, 0.0, p.canvas);
    let mut mesh = Mesh::default();
    let column = area.width() / density.len().max(1) as f32;
    for (i, d) in density.iter().enumerate() {
        let x = area.left() + i as f32 * column;
        let mut bottom = area.bottom();
        for (share, color) in [(d.busy, mix(p.canvas, p.accent, 0.65)), (d.waiting, mix(p.canvas, p.text_weak, 0.2))] {
            if share > 0.0 {
                // Whatever was is seen, be it short.
                let top = (bottom - (share * (area.height() - 2.0)).max(1.0)).max(area.top());
                mesh.add_colored_rect(Rect::from_min_max(pos2(x, top), pos2(x + column, bottom)), color);
                bottom = top;
            }
        }
    }
    painter.add(mesh);
    let scale = Scale::new(Viewport::whole(trace), area.left(), area.width());
    let x = |time| scale.x_from_time(time).clamp(area.left(), area.right());
    let window = Rect::from_x_y_ranges(x(view.start)..=x(view.end).max(x(view.start) + 2.0), area.y_range());
    let shade = mix(p.canvas, p.text_weak, 0.5).gamma_multiply(0.35);
    painter.rect_filled(Rect::from_x_y_ranges(area.left()..=window.left(), area.y_range()), 0.0, shade);
    painter.rect_filled(Rect::from_x_y_ranges(window.right()..=area.right(), area.y_range()), 0.0, shade);
    let line = Stroke::new(metrics::HAIRLINE, p.text_weak);
    painter.rect_stroke(window, 0.0, line, egui::StrokeKind::Inside);
}

/// Draws the counters in the visible rows.
pub fn counters(painter: &Painter, scene: &Scene<'_>, visible: Range<usize>, top: f32, frame: &Frame) {
    let p = scene.palette;
    for i in visible {
        let Row::Counter { counter, bytes, .. } = scene.rows.rows[i] else { continue };
        let Some(c) = scene.store.counters().get(counter) else { continue };
        let place = scene.places[i];
        let ((t0, t1), (v0, v1)) = (c.time.as_slices(), c.value.as_slices());
        let columns = layout::counter_columns(&[t0, t1], &[v0, v1], frame);
        let max = columns.iter().map(|c| c.2).filter(|v| v.is_finite()).fold(0.0, f64::max);
        let bottom = top + place.bottom();
        let height = place.height - metrics::GAP;
        let y = |v: f64| bottom - if max > 0.0 { (v.max(0.0) / max) as f32 * height } else { 0.0 };
        let mut mesh = Mesh::default();
        let fill = mix(p.stripe, p.accent, 0.35);
        for pair in columns.windows(2) {
            let ((x0, _, held), (x1, ..)) = (pair[0], pair[1]);
            mesh.add_colored_rect(Rect::from_min_max(pos2(x0, y(held)), pos2(x1, bottom)), fill);
            let line = y(held);
            mesh.add_colored_rect(Rect::from_min_max(pos2(x0, line - 0.5), pos2(x1, line + 0.5)), p.accent);
        }
        painter.add(mesh);
        let most = if bytes { crate::format::bytes(max as u64) } else { crate::format::value(max) };
        let at = pos2(frame.scale.left() + metrics::GAP, top + place.top + 1.0);
        let galley = painter.layout_no_wrap(most, FontId::proportional(metrics::TEXT_TICK), p.text);
        // A ground of its own, so that the line does not strike it through.
        painter.rect_filled(Rect::from_min_size(at, galley.size()).expand2(vec2(2.0, 0.0)), 2.0, p.panel);
        painter.galley(at, galley, p.text);
    }
}

/// Draws slices that have not ended: hatched, fading towards `now`.
pub fn open_slices(painter: &Painter, scene: &Scene<'_>, visible: Range<usize>, top: f32, frame: &Frame, now: i64) {
    let (store, p) = (scene.store, scene.palette);
    let mut mesh = Mesh::default();
    for i in visible {
        let Row::Track { track, lanes, .. } = &scene.rows.rows[i] else { continue };
        let open = store.track(*track).map_or(&[][..], |t: &Track| &t.open);
        for slice in open.iter().filter(|o| o.start < frame.view.end && now > frame.view.start) {
            let Some(nth) = lanes.iter().position(|l| *l == u32::from(slice.depth)) else { continue };
            let (x0, x1) = frame.edges(slice.start, now.max(slice.start));
            let lane_h = scene.places[i].lane_h;
            let y = top + scene.places[i].top + nth as f32 * lane_h;
            let rect = Rect::from_min_max(pos2(x0, y), pos2(x1, y + lane_h - 1.0));
            let site = store.sites().get(slice.site as usize);
            let fill = site.map_or(p.aggregate, |s| p.mark_of_name(&s.name));
            fading(&mut mesh, rect, mix(p.stripe, fill, 0.8), mix(p.stripe, fill, 0.15));
            hatch(&mut mesh, rect, p.stripe);
            let name = store.nodes().get(slice.node as usize).map(|n| &n.name).or(site.map(|s| &s.name));
            let text = name.and_then(|n| fitted(painter, n, rect.width() - 2.0 * metrics::GAP));
            if let (Some(text), true) = (text, rect.width() >= metrics::LABEL_MIN_W) {
                painter.add(std::mem::take(&mut mesh));
                let at = pos2(x0 + metrics::GAP, rect.center().y);
                painter.text(at, Align2::LEFT_CENTER, text, label_font(), on_fill(mix(p.stripe, fill, 0.8)));
            }
        }
    }
    painter.add(mesh);
}

fn fading(mesh: &mut Mesh, rect: Rect, from: Color32, to: Color32) {
    let first = mesh.vertices.len() as u32;
    for (corner, color) in
        [(rect.left_top(), from), (rect.right_top(), to), (rect.left_bottom(), from), (rect.right_bottom(), to)]
    {
        mesh.colored_vertex(corner, color);
    }
    mesh.add_triangle(first, first + 1, first + 2);
    mesh.add_triangle(first + 2, first + 1, first + 3);
}

/// Slanted stripes; at most a few hundred.
fn hatch(mesh: &mut Mesh, rect: Rect, color: Color32) {
    let slant = rect.height() / 2.0;
    let pitch = (rect.width() / 300.0).max(7.0);
    let mut x = rect.left() + slant;
    while x + 1.5 < rect.right() {
        let first = mesh.vertices.len() as u32;
        for (dx, y) in [(0.0, rect.top()), (1.5, rect.top()), (-slant, rect.bottom()), (1.5 - slant, rect.bottom())] {
            mesh.colored_vertex(pos2(x + dx, y), color);
        }
        mesh.add_triangle(first, first + 1, first + 2);
        mesh.add_triangle(first + 2, first + 1, first + 3);
        x += pitch;
    }
}

/// Where slices are, for marks over them.
#[derive(Clone, Copy)]
pub struct Marks<'a> {
    /// The rows.
    pub rows: &'a Rows,
    /// Where they are.
    pub places: &'a [Place],
    /// The screen y of the top of all rows.
    pub top: f32,
    /// Time to pixels.
    pub frame: &'a Frame,
}

impl Marks<'_> {
    /// The rectangle of a time range in a lane. Off the screen it lies at the edge.
    pub fn rect(&self, track: u32, lane: u32, range: &Range<i64>) -> Option<Rect> {
        let (y, lane_h) = layout::lane_at(self.rows, self.places, track, lane)?;
        let (x0, x1) = self.frame.edges(range.start, range.end);
        let y = self.top + y;
        Some(Rect::from_min_max(pos2(x0, y), pos2(x1, y + lane_h - 1.0)))
    }

    /// The rectangle of a time range in the lane of what runs on a track.
    pub fn work(&self, track: u32, range: &Range<i64>) -> Option<Rect> {
        let lane = self.rows.rows.iter().find_map(|row| match row {
            Row::Track { track: t, work_lane, .. } if t.0 == track => Some(*work_lane),
            _ => None,
        })?;
        self.rect(track, lane, range)
    }

    /// The rectangle of a slice.
    pub fn slice(&self, slice: &SliceRef) -> Option<Rect> {
        self.rect(slice.id.track, slice.id.lane, &(slice.start..slice.end))
    }
}

/// Outlines the selected slice.
pub fn outline(painter: &Painter, rect: Rect, p: &Palette) {
    let ring = rect.expand(1.0);
    painter.rect_stroke(ring, 1.0, Stroke::new(2.0, p.highlight), egui::StrokeKind::Outside);
}

/// An arrow from the end of one slice to the begin of another, bent so that it is seen between neighbouring rows.
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

/// How wrong a time may be: a bar through it with an upright at each end.
pub fn error_bar(painter: &Painter, x: std::ops::RangeInclusive<f32>, y: f32, color: Color32) {
    let stroke = Stroke::new(metrics::HAIRLINE, color);
    let (half, ends) = (metrics::ARROW_HEAD / 2.0, [*x.start(), *x.end()]);
    // Narrower than the arrow's head it tells nothing.
    if ends[1] - ends[0] > metrics::ARROW_HEAD {
        painter.hline(x, y, stroke);
        for end in ends {
            painter.vline(end, y - half..=y + half, stroke);
        }
    }
}

/// Where the selected range is on the screen, if it is.
fn range_edges(range: &Range<i64>, frame: &Frame) -> Option<(f32, f32)> {
    let is_seen = range.end > frame.view.start && range.start < frame.view.end;
    is_seen.then(|| frame.edges(range.start, range.end))
}

/// Puts the length of the selected range over the middle of what is seen of it.
pub fn range_tag(tags: &mut Tags, painter: &Painter, areas: &Areas, range: &Range<i64>, frame: &Frame, p: &Palette) {
    let Some((x0, x1)) = range_edges(range, frame) else { return };
    let middle = (x0.max(areas.ruler.left()) + x1.min(areas.ruler.right())) / 2.0;
    let at = pos2(middle, areas.ruler.top() + 1.0);
    tags.put(painter, crate::format::duration_ns(range.end - range.start), &[(at, Align2::CENTER_TOP)], p);
}

/// The selected range: a band through ruler and rows.
pub fn range_band(painter: &Painter, areas: &Areas, range: &Range<i64>, frame: &Frame, p: &Palette) {
    let Some((x0, x1)) = range_edges(range, frame) else { return };
    let band = Rect::from_min_max(pos2(x0, areas.ruler.top()), pos2(x1, areas.body.bottom()));
    painter.rect_filled(band, 0.0, p.selected.gamma_multiply(0.6));
    for x in [x0, x1] {
        painter.vline(x, band.y_range(), Stroke::new(metrics::HAIRLINE, p.accent));
    }
}

/// Puts the pointer's time beside it.
pub fn pointer_tag(tags: &mut Tags, painter: &Painter, areas: &Areas, x: f32, frame: &Frame, p: &Palette) {
    let text = ticks::position_in_view(frame.scale.time_from_x(x), &frame.scale);
    let y = areas.ruler.top() + 1.0;
    let mut sides =
        [(pos2(x + 2.0 * metrics::GAP, y), Align2::LEFT_TOP), (pos2(x - 2.0 * metrics::GAP, y), Align2::RIGHT_TOP)];
    if x > (frame.scale.left() + frame.scale.right()) / 2.0 {
        sides.reverse();
    }
    tags.put_somewhere(painter, text, &sides, p);
}

/// A vertical line under the pointer.
pub fn crosshair(painter: &Painter, areas: &Areas, x: f32, p: &Palette) {
    let line = Stroke::new(metrics::HAIRLINE, p.text_weak.gamma_multiply(0.7));
    painter.vline(painter.round_to_pixel_center(x), areas.ruler.top()..=areas.body.bottom(), line);
}

/// Of the tracks, in a column of the overview.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Density {
    /// Share that ran something.
    pub busy: f32,
    /// Share that waited.
    pub waiting: f32,
}

/// How busy the tracks were in each of `n` columns of the trace, by the slices of their outermost lanes.
pub fn density(store: &Store, trace: &Range<i64>, n: usize) -> Vec<Density> {
    let view = Viewport::whole(trace);
    let scale = Scale::new(view, 0.0, n as f32);
    let mut out = vec![Density::default(); n];
    let mut spans = Vec::new();
    let tracks = store.tracks().iter().filter(|t| t.n_slices() > 0).count().max(1) as f32;
    for lane in store.tracks().iter().filter_map(|t| t.lanes.iter().find(|l| !l.is_empty())) {
        spans.clear();
        lane.spans(view.range(), n, &mut spans);
        for span in &spans {
            let (x0, x1) = (scale.x_from_time(span.start), scale.x_from_time(span.end));
            let share = |ns: i64| ns as f32 / (span.end - span.start).max(1) as f32 / tracks;
            let (busy, waiting) = (share(span.busy_ns), share(span.wait_ns));
            let first = x0.max(0.0) as usize;
            for (column, sum) in out.iter_mut().enumerate().take(x1.max(0.0) as usize + 1).skip(first) {
                let covered = (x1.min(column as f32 + 1.0) - x0.max(column as f32)).max(0.0);
                sum.busy += busy * covered;
                sum.waiting += waiting * covered;
            }
        }
    }
    out
}

/// A sentence in the corner, about the whole picture.
pub fn note(painter: &Painter, text: &str, p: &Palette) {
    let room = painter.clip_rect().shrink(metrics::PAD);
    let galley = painter.layout(text.to_owned(), label_font(), p.text_strong, room.width());
    let rect = Align2::LEFT_BOTTOM.anchor_size(room.left_bottom(), galley.size());
    painter.rect_filled(rect.expand2(vec2(metrics::GAP, 1.0)), f32::from(metrics::RADIUS), p.raised);
    painter.galley(rect.min, galley, p.text_strong);
}
