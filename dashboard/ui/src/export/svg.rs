//! The shapes of a panel as an SVG document: vectors, and text as text.

use egui::{
    Color32, Pos2, Rect, Shape, Stroke, Vec2,
    epaint::{ClippedShape, CubicBezierShape, Mesh, PathShape, PathStroke, QuadraticBezierShape, RectShape, TextShape},
};
use std::fmt::Write as _;

/// The shapes in `rect` on a background.
pub fn document<'a>(shapes: impl Iterator<Item = &'a ClippedShape>, rect: Rect, background: Color32) -> String {
    let mut out = Writer { rect, body: String::new(), clips: Vec::new() };
    for ClippedShape { clip_rect, shape, .. } in shapes {
        let clip = clip_rect.intersect(rect);
        if !clip.is_positive() || !shape.visual_bounding_rect().intersects(clip) {
            continue;
        }
        // Most shapes lie inside their clip rectangle and need no clip path.
        let needs_clip = !clip.contains_rect(shape.visual_bounding_rect());
        if needs_clip {
            let id = out.clip_id(clip);
            let _ = writeln!(out.body, "<g clip-path=\"url(#c{id})\">");
        }
        out.write_shape(shape);
        if needs_clip {
            out.body.push_str("</g>\n");
        }
    }
    let (w, h) = (rect.width(), rect.height());
    let mut head = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" viewBox=\"0 0 {w:.0} {h:.0}\" \
         font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" {}/>\n",
        paint("fill", background)
    );
    for (id, clip) in out.clips.iter().enumerate() {
        let (Vec2 { x, y }, Vec2 { x: w, y: h }) = (clip.min - rect.min, clip.size());
        let area = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\"");
        let _ = writeln!(head, "<clipPath id=\"c{id}\"><rect {area}/></clipPath>");
    }
    head + &out.body + "</svg>\n"
}

/// A document under construction.
struct Writer {
    rect: Rect,
    body: String,
    clips: Vec<Rect>,
}

impl Writer {
    /// The index of a clip rectangle, which is added if it is missing.
    fn clip_id(&mut self, clip: Rect) -> usize {
        let existing = self.clips.iter().rposition(|c| *c == clip);
        existing.unwrap_or_else(|| {
            self.clips.push(clip);
            self.clips.len() - 1
        })
    }

    fn write_shape(&mut self, shape: &Shape) {
        match shape {
            // Panels paint no bands; the contents of a callback are unknown.
            Shape::Noop | Shape::Callback(_) | Shape::Band(_) => {}
            Shape::Vec(shapes) => shapes.iter().for_each(|s| self.write_shape(s)),
            Shape::Rect(rect) => self.write_rect(rect),
            Shape::Circle(c) => {
                let (Pos2 { x, y }, r, paint) =
                    (self.to_document(c.center), c.radius, fill_and_stroke(c.fill, c.stroke));
                let _ = writeln!(self.body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\" {paint}/>");
            }
            Shape::Ellipse(e) => {
                let (Pos2 { x, y }, Vec2 { x: rx, y: ry }) = (self.to_document(e.center), e.radius);
                let (at, paint) = (format!("cx=\"{x:.1}\" cy=\"{y:.1}\""), fill_and_stroke(e.fill, e.stroke));
                let _ = writeln!(self.body, "<ellipse {at} rx=\"{rx:.1}\" ry=\"{ry:.1}\" {paint}/>");
            }
            Shape::LineSegment { points, stroke } => {
                let path = self.points(points);
                let _ = writeln!(
                    self.body,
                    "<polyline points=\"{path}\" {}/>",
                    fill_and_stroke(Color32::TRANSPARENT, *stroke)
                );
            }
            Shape::Path(path) => self.write_path(path),
            Shape::Text(text) => self.write_text(text),
            Shape::Mesh(mesh) => self.write_mesh(mesh),
            Shape::QuadraticBezier(QuadraticBezierShape { points, fill, stroke, .. }) => {
                self.write_curve('Q', points, *fill, stroke);
            }
            Shape::CubicBezier(CubicBezierShape { points, fill, stroke, .. }) => {
                self.write_curve('C', points, *fill, stroke);
            }
        }
    }

    /// A position of the screen in the document.
    fn to_document(&self, pos: Pos2) -> Pos2 {
        pos - self.rect.min.to_vec2()
    }

    fn points(&self, points: &[Pos2]) -> String {
        let text: Vec<String> =
            points.iter().map(|p| self.to_document(*p)).map(|p| format!("{:.1},{:.1}", p.x, p.y)).collect();
        text.join(" ")
    }

    fn write_rect(&mut self, shape: &RectShape) {
        let (Pos2 { x, y }, Vec2 { x: w, y: h }) = (self.to_document(shape.rect.min), shape.rect.size());
        let (radius, paint) = (shape.corner_radius.average(), fill_and_stroke(shape.fill, shape.stroke));
        let at = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\"");
        let _ = writeln!(self.body, "<rect {at} rx=\"{radius:.1}\" {paint}/>");
    }

    fn write_path(&mut self, path: &PathShape) {
        let (points, name) = (self.points(&path.points), if path.closed { "polygon" } else { "polyline" });
        let _ =
            writeln!(self.body, "<{name} points=\"{points}\" {}/>", fill_and_stroke(path.fill, solid(&path.stroke)));
    }

    fn write_curve(&mut self, letter: char, points: &[Pos2], fill: Color32, stroke: &PathStroke) {
        let Some((first, rest)) = points.split_first() else { return };
        let (first, rest) = (self.points(&[*first]), self.points(rest));
        let _ = writeln!(self.body, "<path d=\"M{first} {letter}{rest}\" {}/>", fill_and_stroke(fill, solid(stroke)));
    }

    fn write_text(&mut self, text: &TextShape) {
        for row in &text.galley.rows {
            let mut words = row.row.text();
            words.truncate(words.trim_end().len());
            if words.is_empty() {
                continue;
            }
            let at = self.to_document(text.pos + row.pos.to_vec2());
            // Labels have one format. Of several formats the first is used for the entire text.
            let format = text.galley.job.sections.first();
            let size = format.map_or(12.0, |s| s.format.font_id.size);
            let text_color = format.map(|s| s.format.color).filter(|c| *c != Color32::PLACEHOLDER);
            let color = text.override_text_color.or(text_color).unwrap_or(text.fallback_color);
            let baseline = at.y + row.row.glyphs.first().map_or(row.row.size.y, |g| g.pos.y);
            let _ = writeln!(
                self.body,
                "<text x=\"{:.1}\" y=\"{baseline:.1}\" font-size=\"{size}\" textLength=\"{:.1}\" \
                 lengthAdjust=\"spacingAndGlyphs\" {}>{}</text>",
                at.x,
                row.row.size.x,
                paint("fill", color.gamma_multiply(text.opacity_factor)),
                escaped(&words)
            );
        }
    }

    /// Writes a mesh as quads of one colour (slices) or as triangles. Textured meshes (fonts, images) are left out.
    fn write_mesh(&mut self, mesh: &Mesh) {
        if mesh.texture_id != egui::TextureId::default() {
            return;
        }
        let vertex = |i: u32| mesh.vertices.get(i as usize);
        let mut indices = &mesh.indices[..];
        while let Some((triangle, tail)) = indices.split_at_checked(3) {
            let corners: Vec<_> = triangle.iter().filter_map(|i| vertex(*i)).collect();
            let [a, b, c] = corners[..] else { return };
            // A rectangle is two triangles of its four corners, in the order left top, right top, left bottom, right
            // bottom.
            let fourth =
                tail.get(..3).and_then(|next| next.iter().find(|i| !triangle.contains(i))).and_then(|i| vertex(*i));
            let is_rect = fourth.is_some_and(|d| {
                a.pos.y == b.pos.y && a.pos.x == c.pos.x && d.pos == egui::pos2(b.pos.x, c.pos.y) && a.color == d.color
            });
            if is_rect {
                let (Pos2 { x, y }, w, h) = (self.to_document(a.pos), b.pos.x - a.pos.x, c.pos.y - a.pos.y);
                let at = format!("x=\"{x:.2}\" y=\"{y:.1}\" width=\"{w:.2}\" height=\"{h:.1}\"");
                let _ = writeln!(self.body, "<rect {at} {}/>", paint("fill", a.color));
                indices = &tail[3..];
            } else {
                let points = self.points(&[a.pos, b.pos, c.pos]);
                let _ = writeln!(self.body, "<polygon points=\"{points}\" {}/>", paint("fill", a.color));
                indices = tail;
            }
        }
    }
}

/// A path's stroke in one colour; strokes with a gradient are left out.
fn solid(stroke: &PathStroke) -> Stroke {
    match stroke.color {
        egui::epaint::ColorMode::Solid(color) => Stroke::new(stroke.width, color),
        egui::epaint::ColorMode::UV(_) => Stroke::NONE,
    }
}

fn fill_and_stroke(fill: Color32, stroke: Stroke) -> String {
    let mut out = paint("fill", fill);
    if stroke.width > 0.0 && stroke.color != Color32::TRANSPARENT {
        let _ = write!(out, " {} stroke-width=\"{:.1}\"", paint("stroke", stroke.color), stroke.width);
    }
    out
}

/// A colour as attributes `fill` or `stroke`.
fn paint(attribute: &str, color: Color32) -> String {
    let [r, g, b, a] = color.to_srgba_unmultiplied();
    match a {
        0 => format!("{attribute}=\"none\""),
        255 => format!("{attribute}=\"#{r:02x}{g:02x}{b:02x}\""),
        _ => format!("{attribute}=\"#{r:02x}{g:02x}{b:02x}\" {attribute}-opacity=\"{:.3}\"", f32::from(a) / 255.0),
    }
}

/// Escapes text for XML. Control characters, which XML cannot contain, become spaces.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Palette;
    use egui::{Align2, FontId, LayerId, pos2, vec2};

    fn background() -> Color32 {
        Palette::for_theme(true).canvas
    }

    fn color(idx: usize) -> Color32 {
        Palette::for_theme(true).fill(idx)
    }

    /// Returns the document of the shapes that `paint` adds in an area of 100 by 50 points at (10, 10).
    fn check(paint: impl Fn(&egui::Painter)) -> String {
        let ctx = egui::Context::default();
        let mut out = String::new();
        // The first frame has no fonts yet.
        for _ in 0..2 {
            let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
                let area = Rect::from_min_size(pos2(10.0, 10.0), vec2(100.0, 50.0));
                paint(&ui.painter_at(area));
                let layer: LayerId = ui.layer_id();
                out = ui.ctx().graphics(|g| {
                    document(
                        g.get(layer).into_iter().flat_map(egui::layers::PaintList::all_entries),
                        area,
                        background(),
                    )
                });
            });
            output.textures_delta.clear();
        }
        out
    }

    #[test]
    fn slices_are_rectangles_and_text_stays_text() {
        let svg = check(|painter| {
            let mut mesh = Mesh::default();
            mesh.add_colored_rect(Rect::from_min_size(pos2(20.0, 20.0), vec2(30.0, 5.0)), color(0));
            mesh.add_colored_rect(Rect::from_min_size(pos2(60.0, 20.0), vec2(5.0, 5.0)), color(1));
            painter.add(mesh);
            painter.text(pos2(20.0, 40.0), Align2::LEFT_CENTER, "a < b", FontId::proportional(12.0), color(2));
        });
        assert!(svg.starts_with("<svg xmlns") && svg.ends_with("</svg>\n"));
        assert!(
            svg.contains(&format!(
                "<rect x=\"10.00\" y=\"10.0\" width=\"30.00\" height=\"5.0\" {}/>",
                paint("fill", color(0))
            )),
            "{svg}"
        );
        assert!(svg.contains(&paint("fill", color(1))) && svg.contains(">a &lt; b</text>"), "{svg}");
        assert_eq!(svg.matches("<rect x=").count(), 2, "{svg}");
    }

    #[test]
    fn what_reaches_over_the_edge_is_clipped_and_what_is_outside_is_left_out() {
        let svg = check(|painter| {
            painter.rect_filled(Rect::from_min_size(pos2(90.0, 20.0), vec2(90.0, 5.0)), 2.0, color(3));
            painter.circle_filled(pos2(500.0, 20.0), 5.0, color(0));
        });
        assert!(svg.contains("<clipPath id=\"c0\">") && svg.contains("clip-path=\"url(#c0)\""), "{svg}");
        assert!(!svg.contains("<circle"), "{svg}");
    }
}
