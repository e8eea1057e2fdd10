//! A card's lines as a picture, made anew when something that they depend on changes. A frame makes few pictures: the others
//! show what they had, at the place that it has now.

use super::{curve::CurveSettings, paint::Stroked};
use crate::{
    chart::{Bounds, Polylines, decimate::Mark, frame::Frame, ink::Ink},
    theme::{self, metrics},
};
use egui::{Rect, TextureHandle, TextureOptions, Ui, emath::GuiRounding, pos2};

/// Lines that one frame draws into pictures, about: a few ms. The picture that exceeds it is still drawn.
const MAX_DRAWN: usize = 100;

/// Who may draw a picture in a frame: at most so many lines, and those first who waited longest, so that cards whose runs
/// grow all the time leave others theirs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    n_drawable: usize,
    /// The frame in which the one was drawn that waited longest in the frame before.
    longest: Option<u64>,
    /// The same of this frame.
    waiting: Option<u64>,
}

impl Turn {
    /// Of the next frame.
    #[must_use]
    pub fn next(self) -> Self {
        Self { n_drawable: MAX_DRAWN, longest: self.waiting, waiting: None }
    }

    /// Whether a picture of `n` lines, drawn in the frame `drawn` before, may be drawn now; else it waits.
    pub fn take(&mut self, n: usize, drawn: u64) -> bool {
        let has_turn = self.n_drawable > 0 && self.longest.is_none_or(|longest| drawn <= longest);
        if has_turn {
            self.n_drawable = self.n_drawable.saturating_sub(n);
        } else {
            self.waiting = Some(self.waiting.map_or(drawn, |waiting| waiting.min(drawn)));
        }
        has_turn
    }
}

/// Everything that a card's lines depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// How they look.
    pub settings: CurveSettings,
    /// What is shown.
    pub bounds: Bounds,
    /// Width and height in pixels.
    pub size: [usize; 2],
    /// Theme.
    pub dark: bool,
    /// Of each line's points, colour and weight.
    pub lines: u64,
}

/// See the module's notes.
#[derive(Default)]
pub struct Picture {
    of: Option<Key>,
    texture: Option<TextureHandle>,
    marks: Vec<(Mark, egui::Color32)>,
    /// The frame in which it was drawn last; 0 before the first one.
    pub drawn: u64,
    /// The frame in which it was last shown.
    seen: u64,
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Picture").field("of", &self.of).finish_non_exhaustive()
    }
}

impl Picture {
    /// Whether it shows something else than `key`.
    pub fn is_old(&self, key: &Key) -> bool {
        self.of.as_ref() != Some(key)
    }

    /// Makes it anew.
    pub fn draw<'a>(&mut self, ui: &Ui, frame: &Frame, key: Key, lines: impl Iterator<Item = Stroked<'a>>) {
        let scale = ui.pixels_per_point();
        let mut ink = Ink::new(key.size);
        self.marks.clear();
        for Stroked { lines, color, width, has_marks } in lines {
            draw(&mut ink, lines, frame, scale, (width, color));
            if has_marks {
                self.marks.extend(lines.marks().iter().map(|mark| (*mark, color)));
            }
        }
        let image = ink.into_image();
        match &mut self.texture {
            Some(texture) => texture.set(image, TextureOptions::LINEAR),
            none => *none = Some(ui.ctx().load_texture("curves", image, TextureOptions::LINEAR)),
        }
        (self.of, self.drawn) = (Some(key), ui.ctx().cumulative_frame_nr());
    }

    /// Shows it: where what it shows is now.
    pub fn show(&mut self, ui: &Ui, frame: &Frame) {
        self.seen = ui.ctx().cumulative_frame_nr();
        let (Some(key), Some(texture)) = (&self.of, &self.texture) else { return };
        let Bounds { x, y, .. } = key.bounds;
        let rect = if key.bounds == frame.bounds {
            let scale = ui.pixels_per_point();
            let size = egui::vec2(key.size[0] as f32, key.size[1] as f32) / scale;
            // On whole pixels, so that it is as sharp as it was made.
            Rect::from_min_size(frame.inner.min.round_to_pixels(scale), size)
        } else {
            Rect::from_two_pos(frame.pos(x[0], y[1]), frame.pos(x[1], y[0]))
        };
        let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
        ui.painter_at(frame.inner).image(texture.id(), rect, whole, theme::UNTINTED);
        let painter = ui.painter_at(frame.inner);
        painter.extend(self.marks.iter().map(|(mark, color)| super::paint::mark_shape(frame, mark, *color)));
    }

    /// Frees the memory of one that was not shown in this frame or the one before.
    pub fn forget_unseen(&mut self, frame_nr: u64) {
        if self.texture.is_some() && self.seen + 1 < frame_nr {
            *self = Self::default();
        }
    }
}

fn draw(ink: &mut Ink, lines: &Polylines, frame: &Frame, scale: f32, (width, color): (f32, egui::Color32)) {
    let origin = frame.inner.min;
    for line in lines.lines() {
        let width = if line.len() == 1 { 2.0 * metrics::DOT } else { width };
        let point = |[x, y]: &[f64; 2]| {
            let at = (frame.pos(*x, *y) - origin) * scale;
            [at.x, at.y]
        };
        ink.line(line.iter().map(point), width * scale, color);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_get_their_turn_though_some_always_want_one() {
        let (mut turn, mut drawn) = (Turn::default(), [0_u64; 5]);
        for frame in 1..=10 {
            turn = turn.next();
            for last in &mut drawn {
                if turn.take(MAX_DRAWN / 2, *last) {
                    *last = frame;
                }
            }
        }
        assert!(drawn.iter().all(|last| *last >= 7), "two in a frame, all five within three: {drawn:?}");
        let mut alone = Turn::default().next();
        assert!(alone.take(10 * MAX_DRAWN, 0) && !alone.take(1, 0), "one that is too large for a frame is still drawn");
    }
}
