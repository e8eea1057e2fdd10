//! Annotations of boxes: constants, summaries, and the other ends of edges that are not drawn.

use super::scene::{Scene, paint_text};
use crate::graph::layout::{BoxLayout, Note, NoteKind};
use egui::{Align2, FontId, Painter, Pos2, Rect, Shape, Stroke, pos2, vec2};
use ui::theme::{metrics, metrics::graph as m, mix};

/// Paints the annotations at both sides of a box.
pub(super) fn paint_notes(painter: &Painter, scene: &Scene<'_>, box_layout: &BoxLayout, rect: Rect) {
    let Some(font) = scene.font(m::LABEL_SMALL) else { return };
    for (list, is_left) in scene.picture.notes(box_layout).into_iter().zip([true, false]) {
        let height = m::NOTE_H * scene.camera.zoom;
        let mut y = rect.center().y - height * (list.len() as f32 - 1.0) / 2.0;
        for note in list {
            let at = pos2(if is_left { rect.left() } else { rect.right() }, y);
            NoteMark { note, at, middle: rect.center().y, is_left }.paint(painter, scene, &font);
            y += height;
        }
    }
}

/// An annotation at a border of its box.
struct NoteMark<'a> {
    note: &'a Note,
    at: Pos2,
    /// The middle (y) of the box, towards which the line converges.
    middle: f32,
    is_left: bool,
}

impl NoteMark<'_> {
    fn paint(&self, painter: &Painter, scene: &Scene<'_>, font: &FontId) {
        let &Self { note, at, middle, is_left } = self;
        let (p, zoom) = (scene.palette(), scene.camera.zoom);
        let is_dimmed = scene.traced.is_some();
        let color = if is_dimmed { mix(p.text_weak, p.canvas, 0.7) } else { p.text_weak };
        let sign = if is_left { -1.0 } else { 1.0 };
        let mark = pos2(at.x + sign * 12.0 * zoom, at.y);
        let line = [pos2(at.x, middle + (at.y - middle) * 0.4), mark];
        let stroke = Stroke::new(metrics::HAIRLINE, mix(color, p.canvas, 0.3));
        match note.kind {
            NoteKind::Control => painter.extend(Shape::dashed_line(&line, stroke, 2.0, 2.0)),
            NoteKind::More(_) => {}
            _ => {
                painter.line_segment(line, stroke);
            }
        }
        match note.kind {
            NoteKind::Constant => {
                painter.circle(mark, 3.0 * zoom, p.raised, Stroke::new(metrics::HAIRLINE, color));
            }
            NoteKind::Summary => {
                let bar = |dx: f32, h: f32| {
                    Rect::from_min_max(mark + vec2(dx, 3.0 - h) * zoom, mark + vec2(dx + 1.6, 3.0) * zoom)
                };
                for (dx, h) in [(-3.0, 3.0), (-0.8, 6.0), (1.4, 4.5)] {
                    painter.rect_filled(bar(dx, h), 0, p.accent);
                }
            }
            _ => {}
        }
        let text = match note.kind {
            NoteKind::More(n) => format!("{n} more"),
            _ => scene.model.label(note.item).into_owned(),
        };
        let ends = [mark.x + sign * 6.0 * zoom, at.x + sign * m::NOTE_W * zoom];
        let [start, end] = if is_left { [ends[1], ends[0]] } else { ends };
        let room = Rect::from_min_max(pos2(start, at.y - 7.0 * zoom), pos2(end, at.y + 7.0 * zoom));
        let align = if is_left { Align2::RIGHT_CENTER } else { Align2::LEFT_CENTER };
        paint_text(painter, &text, font.clone(), color, room, align);
    }
}
