//! Edges as shapes: width by tensor size, control edges dashed, writes to variables in another colour, arrow heads,
//! shapes of tensors where there is room.

use super::{
    camera::overlaps,
    scene::{MAX_DETAIL, Scene},
};
use crate::graph::{
    layout::{BoxLayout, EdgeLayout},
    model::{MetaEdge, Model, output_shape},
};
use egui::{Color32, Mesh, Painter, Pos2, Rect, Shape, Stroke, pos2, vec2};
use ui::theme::{metrics, metrics::graph as m, mix};

/// Additional width of highlighted edges, points.
const HIGHLIGHT_W: f32 = 0.8;
/// Least horizontal distance between labels, points; vertically half of it.
const LABEL_GAP: f32 = 8.0;
/// Positions along a segment at which a label is tried, in this order.
const LABEL_AT: [f32; 3] = [0.5, 0.3, 0.7];
/// Edges in view above which none is labelled.
const MAX_LABELS: usize = 300;

pub(super) fn paint(painter: &Painter, scene: &Scene<'_>, viewport: &[f32; 4]) {
    let in_view: Vec<&EdgeLayout> = scene.picture.edges.iter().filter(|e| overlaps(&e.bounds, viewport)).collect();
    let colors = EdgeColors::new(scene);
    if in_view.len() > MAX_DETAIL {
        painter.add(Shape::mesh(line_mesh(scene, &colors, &in_view)));
        return;
    }
    let mut highlighted = Vec::new();
    for edge in &in_view {
        let ends = [edge.metaedge.src, edge.metaedge.dst].map(Some);
        let is_adjacent = ends.contains(&scene.selected) || ends.contains(&scene.hovered);
        if is_adjacent {
            highlighted.push(*edge);
        } else {
            curve(painter, scene, edge, colors.color(scene, &edge.metaedge), 0.0);
        }
    }
    for edge in &highlighted {
        curve(painter, scene, edge, highlight_color(scene, &edge.metaedge), HIGHLIGHT_W);
    }
    let labelled = if in_view.len() <= MAX_LABELS { &in_view } else { &highlighted };
    if labelled.is_empty() {
        return;
    }
    let rects = scene.picture.boxes.iter().flat_map(|b| obstacles(scene, b));
    let mut occupied: Vec<Rect> = rects.filter(|rect| rect.intersects(scene.view)).collect();
    // Highlighted edges first, so that these get labels where room is scarce.
    let rest = labelled.iter().filter(|e| !highlighted.iter().any(|other| std::ptr::eq(*other, **e)));
    for edge in highlighted.iter().chain(rest) {
        paint_label(painter, scene, edge, &mut occupied);
    }
}

/// Returns the rects of a box that labels must not cover: an open box's title; a closed box and its notes.
fn obstacles(scene: &Scene<'_>, b: &BoxLayout) -> Vec<Rect> {
    let (zoom, rect) = (scene.camera.zoom, scene.camera.rect_to_screen(scene.view, (scene.rect_of)(b)));
    if b.is_open {
        return vec![Rect::from_min_size(rect.min, vec2(rect.width(), m::TITLE_H * zoom))];
    }
    let mut rects = vec![rect];
    for (list, left) in scene.picture.notes(b).into_iter().zip([true, false]) {
        let size = vec2(m::NOTE_W, m::NOTE_H * list.len() as f32) * zoom;
        let x = if left { rect.left() - size.x / 2.0 } else { rect.right() + size.x / 2.0 };
        if !list.is_empty() {
            rects.push(Rect::from_center_size(pos2(x, rect.center().y), size));
        }
    }
    rects
}

/// Colours of edges that are not highlighted, plain and dimmed.
struct EdgeColors([[Color32; 2]; 3]);

impl EdgeColors {
    fn new(scene: &Scene<'_>) -> Self {
        let p = scene.palette();
        let colors =
            [mix(p.warning, p.canvas, 0.25), mix(p.aggregate, p.canvas, 0.25), mix(p.aggregate, p.text_weak, 0.35)];
        let faded = |color: Color32| color.gamma_multiply(0.85 * scene.fade);
        Self(colors.map(|color| [faded(color), faded(mix(color, p.canvas, 0.8))]))
    }

    /// Returns the colour of writes to variables, of control edges or of data.
    fn color(&self, scene: &Scene<'_>, edge: &MetaEdge) -> Color32 {
        let kind = match edge {
            _ if edge.n_reference > 0 => 0,
            _ if edge.is_control() => 1,
            _ => 2,
        };
        self.0[kind][usize::from(scene.is_dimmed(edge.src) || scene.is_dimmed(edge.dst))]
    }
}

/// Returns the edges as straight lines in one mesh.
fn line_mesh(scene: &Scene<'_>, colors: &EdgeColors, edges: &[&EdgeLayout]) -> Mesh {
    let mut mesh = Mesh::default();
    let zoom = scene.camera.zoom;
    // Edges and segments shorter than half a point on the screen are not drawn.
    let min_length = 0.5 / zoom;
    let long = edges.iter().filter(|e| e.bounds[2] - e.bounds[0] + e.bounds[3] - e.bounds[1] >= min_length);
    for edge in long {
        let color = colors.color(scene, &edge.metaedge);
        let half = (edge.width * zoom / 2.0).clamp(0.35, 3.0);
        let mut points = scene.picture.points(edge).map(|p| scene.camera.to_screen(scene.view, p));
        let Some(mut last) = points.next() else { continue };
        for end in points {
            let start = std::mem::replace(&mut last, end);
            if (end - start).length_sq() < 0.25 {
                continue;
            }
            let side = (end - start).normalized().rot90() * half;
            let first = mesh.vertices.len() as u32;
            for corner in [start - side, start + side, end + side, end - side] {
                mesh.colored_vertex(corner, color);
            }
            mesh.add_triangle(first, first + 1, first + 2);
            mesh.add_triangle(first, first + 2, first + 3);
        }
    }
    mesh
}

fn highlight_color(scene: &Scene<'_>, edge: &MetaEdge) -> Color32 {
    let p = scene.palette();
    let is_dimmed = scene.is_dimmed(edge.src) || scene.is_dimmed(edge.dst);
    let color = if is_dimmed { mix(p.accent, p.canvas, 0.8) } else { p.accent };
    color.gamma_multiply(scene.fade)
}

/// Paints an edge as a curve with its arrow head.
fn curve(painter: &Painter, scene: &Scene<'_>, edge: &EdgeLayout, color: Color32, extra_w: f32) {
    let screen: Vec<Pos2> = scene.picture.points(edge).map(|p| scene.camera.to_screen(scene.view, p)).collect();
    let zoom = scene.camera.zoom;
    let line_w = (edge.width * zoom.min(1.5)).clamp(0.6, 12.0) + extra_w;
    let arrow = (m::ARROW * zoom + line_w * 1.3).min(18.0);
    let has_head = edge.has_head && zoom > 0.25;
    let mut points = smooth(&screen);
    if has_head {
        shorten(&mut points, arrow * 0.8);
    }
    let stroke = Stroke::new(line_w, color);
    if edge.metaedge.is_control() {
        painter.extend(Shape::dashed_line(&points, stroke, 5.0, 4.0));
    } else {
        painter.add(Shape::line(points.clone(), stroke));
    }
    if has_head && let (Some(&tip), Some(&from)) = (screen.last(), points.last()) {
        let along = (tip - from).normalized();
        let side = along.rot90() * arrow * 0.5;
        let base = tip - along * arrow;
        painter.add(Shape::convex_polygon(vec![tip, base + side, base - side], color, Stroke::NONE));
    }
}

/// Returns a curve through the points with vertical tangents, because edges leave and enter ranks vertically.
fn smooth(points: &[Pos2]) -> Vec<Pos2> {
    let mut out = Vec::with_capacity(points.len() * 6);
    let Some(&first) = points.first() else { return out };
    out.push(first);
    for ends in points.windows(2) {
        let (a, b) = (ends[0], ends[1]);
        if (a.x - b.x).abs() < 1.0 {
            out.push(b);
            continue;
        }
        let middle = (a.y + b.y) / 2.0;
        let n = ((b - a).length() / 9.0).clamp(4.0, 24.0) as usize;
        for step in 1..=n {
            let t = step as f32 / n as f32;
            let (u, s) = (1.0 - t, t * t * (3.0 - 2.0 * t));
            let y = u * u * u * a.y + 3.0 * u * u * t * middle + 3.0 * u * t * t * middle + t * t * t * b.y;
            out.push(pos2(a.x + (b.x - a.x) * s, y));
        }
    }
    out
}

/// Shortens a path by `by` at its end, to make room for the arrow head.
fn shorten(points: &mut Vec<Pos2>, mut by: f32) {
    while let [.., before, last] = points[..] {
        let length = (last - before).length();
        if length > by {
            let end = last - (last - before) * (by / length);
            points.pop();
            points.push(end);
            return;
        }
        if points.len() == 2 {
            return;
        }
        by -= length;
        points.pop();
    }
}

/// Returns the label of an edge: `128×512`, `3 tensors`; `None` if the file has no shape.
pub(super) fn label_text(model: &Model, edge: &MetaEdge) -> Option<String> {
    match edge.n_data {
        0 => None,
        1 => model.node_def(edge.sample.src).and_then(|def| output_shape(def, edge.sample.port)).map(|s| s.to_string()),
        n => Some(format!("{n} tensors")),
    }
}

/// Returns the first rect at a distance from all occupied ones, because labels that nearly touch read as one.
fn first_free(rects: impl IntoIterator<Item = Rect>, occupied: &[Rect]) -> Option<Rect> {
    let is_free =
        |rect: &Rect| !occupied.iter().any(|other| other.intersects(rect.expand2(vec2(LABEL_GAP, LABEL_GAP / 2.0))));
    rects.into_iter().find(is_free)
}

/// Labels an edge on its longest segment that is clear of boxes and other labels, if there is one.
fn paint_label(painter: &Painter, scene: &Scene<'_>, edge: &EdgeLayout, occupied: &mut Vec<Rect>) {
    let Some(font) = scene.font(m::LABEL_SMALL) else { return };
    if font.size < 8.0 {
        return;
    }
    let Some(text) = label_text(scene.model, &edge.metaedge) else { return };
    let p = scene.palette();
    let color = if scene.is_dimmed(edge.metaedge.src) { mix(p.text_weak, p.canvas, 0.7) } else { p.text_weak };
    let galley = painter.layout_no_wrap(text, font, color);
    let points: Vec<[f32; 2]> = scene.picture.points(edge).collect();
    let mut segments: Vec<&[[f32; 2]]> = points.windows(2).collect();
    let length = |w: &[[f32; 2]]| (w[0][1] - w[1][1]).abs();
    segments.sort_by(|a, b| length(b).total_cmp(&length(a)));
    let places =
        segments.iter().flat_map(|w| LABEL_AT.map(|t| [0, 1].map(|axis| w[0][axis] + (w[1][axis] - w[0][axis]) * t)));
    let rects = places.map(|place| {
        let at = scene.camera.to_screen(scene.view, place);
        Rect::from_center_size(at, galley.size() + vec2(4.0, 0.0))
    });
    let Some(rect) = first_free(rects, occupied) else { return };
    occupied.push(rect);
    painter.rect_filled(rect, metrics::RADIUS, p.canvas.gamma_multiply(0.8 * scene.fade));
    painter.galley(rect.min + vec2(2.0, 0.0), galley, color);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_away_from_words() {
        let at = |x: f32, y: f32| Rect::from_min_size(pos2(x, y), vec2(40.0, 12.0));
        let occupied = [at(0.0, 0.0)];
        assert_eq!(first_free([at(20.0, 4.0)], &occupied), None, "over it");
        assert_eq!(first_free([at(42.0, 0.0)], &occupied), None, "next to it both read as one");
        assert_eq!(first_free([at(0.0, 14.0)], &occupied), None, "and so it does right below");
        assert_eq!(first_free([at(42.0, 0.0), at(60.0, 0.0)], &occupied), Some(at(60.0, 0.0)));
        assert_eq!(first_free([at(0.0, 17.0)], &occupied), Some(at(0.0, 17.0)));
    }
}
