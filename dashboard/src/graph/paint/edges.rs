//! Edges as shapes: width by tensor size, control edges dashed, writes to variables in another colour, arrow heads,
//! shapes of tensors when there is room.

use super::{
    camera::meets,
    scene::{DETAIL_MAX, Scene},
};
use crate::graph::{
    layout::{PicBox, PicEdge},
    model::{MetaEdge, Model, output_shape},
};
use egui::{Color32, Mesh, Painter, Pos2, Rect, Shape, Stroke, pos2, vec2};
use ui::theme::{metrics, metrics::graph as m, mix};

/// Additional width of highlighted edges.
const MARKED_W: f32 = 0.8;
/// Least horizontal distance between labels, points; vertically half of it.
const LABEL_GAP: f32 = 8.0;
/// Positions along a segment at which a label is tried, in this order.
const LABEL_AT: [f32; 3] = [0.5, 0.3, 0.7];
/// Edges in view above which none is labelled.
const LABELS_MAX: usize = 300;

pub(super) fn paint(painter: &Painter, scene: &Scene<'_>, seen: &[f32; 4]) {
    let in_view: Vec<&PicEdge> = scene.picture.edges.iter().filter(|e| meets(&e.bounds, seen)).collect();
    let colors = EdgeColors::new(scene);
    if in_view.len() > DETAIL_MAX {
        painter.add(Shape::mesh(lines(scene, &colors, &in_view)));
        return;
    }
    let mut marked = Vec::new();
    for edge in &in_view {
        let touches =
            [scene.selected, scene.hovered].iter().flatten().any(|&i| edge.edge.src == i || edge.edge.dst == i);
        if touches { marked.push(*edge) } else { curve(painter, scene, edge, colors.of(scene, &edge.edge), 0.0) }
    }
    for edge in &marked {
        curve(painter, scene, edge, marked_color(scene, &edge.edge), MARKED_W);
    }
    let labelled = if in_view.len() <= LABELS_MAX { &in_view } else { &marked };
    if labelled.is_empty() {
        return;
    }
    let rects = scene.picture.boxes.iter().flat_map(|b| occupied(scene, b));
    let mut taken: Vec<Rect> = rects.filter(|rect| rect.intersects(scene.view)).collect();
    // Highlighted edges first, so that these get labels where room is scarce.
    let rest = labelled.iter().filter(|e| !marked.iter().any(|m| std::ptr::eq(*m, **e)));
    for edge in marked.iter().chain(rest) {
        label(painter, scene, edge, &mut taken);
    }
}

/// Rects without edge labels: the title of an open box; a closed box and its notes.
fn occupied(scene: &Scene<'_>, b: &PicBox) -> Vec<Rect> {
    let (zoom, rect) = (scene.camera.zoom, scene.camera.rect_to_screen(scene.view, (scene.rect_of)(b)));
    if b.open {
        return vec![Rect::from_min_size(rect.min, vec2(rect.width(), m::TITLE_H * zoom))];
    }
    let mut all = vec![rect];
    for (list, left) in scene.picture.notes(b).into_iter().zip([true, false]) {
        let size = vec2(m::NOTE_W, m::NOTE_H * list.len() as f32) * zoom;
        let x = if left { rect.left() - size.x / 2.0 } else { rect.right() + size.x / 2.0 };
        if !list.is_empty() {
            all.push(Rect::from_center_size(pos2(x, rect.center().y), size));
        }
    }
    all
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

    /// The colour of writes to variables, control edges or data.
    fn of(&self, scene: &Scene<'_>, edge: &MetaEdge) -> Color32 {
        let kind = match edge {
            _ if edge.n_reference > 0 => 0,
            _ if edge.is_control() => 1,
            _ => 2,
        };
        self.0[kind][usize::from(scene.is_dimmed(edge.src) || scene.is_dimmed(edge.dst))]
    }
}

/// Edges in view as straight lines in one mesh.
fn lines(scene: &Scene<'_>, colors: &EdgeColors, edges: &[&PicEdge]) -> Mesh {
    let mut mesh = Mesh::default();
    let zoom = scene.camera.zoom;
    // Edges and stretches shorter than this on the screen are not drawn.
    let least = 0.5 / zoom;
    let seen = edges.iter().filter(|e| e.bounds[2] - e.bounds[0] + e.bounds[3] - e.bounds[1] >= least);
    for edge in seen {
        let color = colors.of(scene, &edge.edge);
        let half = (edge.width * zoom / 2.0).clamp(0.35, 3.0);
        let mut points = scene.picture.points(edge).map(|p| scene.camera.to_screen(scene.view, p));
        let Some(mut last) = points.next() else { continue };
        for b in points {
            let a = std::mem::replace(&mut last, b);
            if (b - a).length_sq() < 0.25 {
                continue;
            }
            let side = (b - a).normalized().rot90() * half;
            let first = mesh.vertices.len() as u32;
            for corner in [a - side, a + side, b + side, b - side] {
                mesh.colored_vertex(corner, color);
            }
            mesh.add_triangle(first, first + 1, first + 2);
            mesh.add_triangle(first, first + 2, first + 3);
        }
    }
    mesh
}

fn marked_color(scene: &Scene<'_>, edge: &MetaEdge) -> Color32 {
    let p = scene.palette();
    let dimmed = scene.is_dimmed(edge.src) || scene.is_dimmed(edge.dst);
    let color = if dimmed { mix(p.accent, p.canvas, 0.8) } else { p.accent };
    color.gamma_multiply(scene.fade)
}

fn curve(painter: &Painter, scene: &Scene<'_>, edge: &PicEdge, color: Color32, extra_w: f32) {
    let screen: Vec<Pos2> = scene.picture.points(edge).map(|p| scene.camera.to_screen(scene.view, p)).collect();
    let zoom = scene.camera.zoom;
    let thick = (edge.width * zoom.min(1.5)).clamp(0.6, 12.0) + extra_w;
    let arrow = (m::ARROW * zoom + thick * 1.3).min(18.0);
    let draws_head = edge.has_head && zoom > 0.25;
    let mut points = smooth(&screen);
    if draws_head {
        shorten(&mut points, arrow * 0.8);
    }
    let stroke = Stroke::new(thick, color);
    if edge.edge.is_control() {
        painter.extend(Shape::dashed_line(&points, stroke, 5.0, 4.0));
    } else {
        painter.add(Shape::line(points.clone(), stroke));
    }
    if draws_head && let (Some(&tip), Some(&from)) = (screen.last(), points.last()) {
        let along = (tip - from).normalized();
        let side = along.rot90() * arrow * 0.5;
        let base = tip - along * arrow;
        painter.add(Shape::convex_polygon(vec![tip, base + side, base - side], color, Stroke::NONE));
    }
}

/// A curve through the points with vertical tangents, as edges leave and enter ranks upright.
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

/// The label of an edge: `128×512`, `3 tensors`; `None` where the file has no shape.
pub(super) fn text(model: &Model, edge: &MetaEdge) -> Option<String> {
    match edge.n_data {
        0 => None,
        1 => model.node_def(edge.sample.src).and_then(|def| output_shape(def, edge.sample.port)).map(|s| s.to_string()),
        n => Some(format!("{n} tensors")),
    }
}

/// The first place at a distance from all taken ones, as labels that nearly touch read as one.
fn free(places: impl IntoIterator<Item = Rect>, taken: &[Rect]) -> Option<Rect> {
    let is_free =
        |rect: &Rect| !taken.iter().any(|other| other.intersects(rect.expand2(vec2(LABEL_GAP, LABEL_GAP / 2.0))));
    places.into_iter().find(is_free)
}

/// Labels an edge on its longest segment without boxes and other labels, if there is one.
fn label(painter: &Painter, scene: &Scene<'_>, edge: &PicEdge, taken: &mut Vec<Rect>) {
    let Some(font) = scene.font(m::LABEL_SMALL) else { return };
    if font.size < 8.0 {
        return;
    }
    let Some(text) = text(scene.model, &edge.edge) else { return };
    let p = scene.palette();
    let color = if scene.is_dimmed(edge.edge.src) { mix(p.text_weak, p.canvas, 0.7) } else { p.text_weak };
    let galley = painter.layout_no_wrap(text, font, color);
    let points: Vec<[f32; 2]> = scene.picture.points(edge).collect();
    let mut stretches: Vec<&[[f32; 2]]> = points.windows(2).collect();
    let length = |w: &[[f32; 2]]| (w[0][1] - w[1][1]).abs();
    stretches.sort_by(|a, b| length(b).total_cmp(&length(a)));
    let places =
        stretches.iter().flat_map(|w| LABEL_AT.map(|t| [0, 1].map(|axis| w[0][axis] + (w[1][axis] - w[0][axis]) * t)));
    let rects = places.map(|place| {
        let at = scene.camera.to_screen(scene.view, place);
        Rect::from_center_size(at, galley.size() + vec2(4.0, 0.0))
    });
    let Some(rect) = free(rects, taken) else { return };
    taken.push(rect);
    painter.rect_filled(rect, metrics::RADIUS, p.canvas.gamma_multiply(0.8 * scene.fade));
    painter.galley(rect.min + vec2(2.0, 0.0), galley, color);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_away_from_words() {
        let at = |x: f32, y: f32| Rect::from_min_size(pos2(x, y), vec2(40.0, 12.0));
        let taken = [at(0.0, 0.0)];
        assert_eq!(free([at(20.0, 4.0)], &taken), None, "over it");
        assert_eq!(free([at(42.0, 0.0)], &taken), None, "next to it both read as one");
        assert_eq!(free([at(0.0, 14.0)], &taken), None, "and so it does right below");
        assert_eq!(free([at(42.0, 0.0), at(60.0, 0.0)], &taken), Some(at(60.0, 0.0)));
        assert_eq!(free([at(0.0, 17.0)], &taken), Some(at(0.0, 17.0)));
    }
}
