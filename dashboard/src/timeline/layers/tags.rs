//! Tags, the texts over the ruler: a range's length, bookmarks, the pointer's time. Each has its own background.

use crate::timeline::raster::label_font;
use egui::{Align2, Galley, Painter, Pos2, Rect, pos2, vec2};
use std::sync::Arc;
use ui::theme::{Palette, metrics};

/// Layers add the most important first: a later text gets only the room that is left.
#[derive(Default)]
pub struct Tags {
    tags: Vec<(Rect, Arc<Galley>)>,
}

impl Tags {
    /// Adds a text at the first of `positions` that is free; drops the text where none is.
    pub fn add_if_free(&mut self, painter: &Painter, text: String, positions: &[(Pos2, Align2)], p: &Palette) {
        let galley = painter.layout_no_wrap(text, label_font(), p.text_strong);
        let free = positions.iter().map(|position| background(&galley, *position)).find(|rect| !self.covers(*rect));
        self.tags.extend(free.map(|rect| (rect, galley)));
    }

    /// Adds a text at the first of `positions` that is free, or else at the nearest free place next to another text.
    pub fn add_near(&mut self, painter: &Painter, text: String, positions: &[(Pos2, Align2)], p: &Palette) {
        let Some((preferred, _)) = positions.first() else { return };
        let galley = painter.layout_no_wrap(text, label_font(), p.text_strong);
        let adjacent = |(rect, _): &(Rect, Arc<Galley>)| {
            let gap = 2.0 * metrics::GAP;
            let (left, right) = (pos2(rect.left() - gap, preferred.y), pos2(rect.right() + gap, preferred.y));
            [(left, Align2::RIGHT_TOP), (right, Align2::LEFT_TOP)]
        };
        let visible_x = painter.clip_rect().x_range();
        let mut others: Vec<Rect> =
            self.tags.iter().flat_map(adjacent).map(|position| background(&galley, position)).collect();
        others.retain(|rect| visible_x.contains(rect.left()) && visible_x.contains(rect.right()));
        let distance = |rect: &Rect| (rect.center().x - preferred.x).abs();
        others.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        let mut candidates = positions.iter().map(|position| background(&galley, *position)).chain(others);
        // In a full ruler the text covers others: the pointer's time is the most useful.
        let first = background(&galley, positions[0]);
        let rect = candidates.find(|rect| !self.covers(*rect)).unwrap_or(first);
        self.tags.push((rect, galley));
    }

    /// Paints the texts.
    pub fn paint(&self, painter: &Painter, p: &Palette) {
        for (rect, galley) in &self.tags {
            painter.rect_filled(*rect, f32::from(metrics::RADIUS), p.raised);
            painter.galley(rect.min + MARGIN, Arc::clone(galley), p.text_strong);
        }
    }

    /// Whether a text overlaps `rect`.
    pub fn covers(&self, rect: Rect) -> bool {
        self.tags.iter().any(|(tag, _)| tag.intersects(rect))
    }
}

/// Space between a text and the edge of its background.
const MARGIN: egui::Vec2 = vec2(metrics::GAP, 1.0);

/// The rectangle of a text's background.
fn background(galley: &Galley, (pos, align): (Pos2, Align2)) -> Rect {
    align.anchor_size(pos, galley.size()).expand2(MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pointers_time_stands_next_to_what_was_there() {
        let ctx = egui::Context::default();
        let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
            let (p, painter) = (Palette::for_theme(true), ui.painter());
            for x in (0..400).map(|x| 100.0 + x as f32) {
                let mut tags = Tags::default();
                let centre = [(pos2(300.0, 0.0), Align2::CENTER_TOP)];
                tags.add_if_free(painter, "121.35 ms".into(), &centre, p);
                tags.add_if_free(painter, "left out".into(), &centre, p);
                assert_eq!(tags.tags.len(), 1);
                let sides = [(pos2(x + 4.0, 0.0), Align2::LEFT_TOP), (pos2(x - 4.0, 0.0), Align2::RIGHT_TOP)];
                tags.add_near(painter, "1.234 567 s".into(), &sides, p);
                assert!(!tags.tags[0].0.intersects(tags.tags[1].0), "at {x}");
                assert!((tags.tags[1].0.center().x - x).abs() < 200.0);
            }
        });
        output.textures_delta.clear();
    }
}
