//! A card's lines as a picture, made anew, by another thread, when something that they depend on changes. Until it is there the
//! card shows what it had, at the place that it has now. Its lines are looked up in frames, a few in each.

use super::{curve::CurveSettings, paint::StyledLine};
use egui::{ColorImage, Rect, TextureHandle, TextureOptions, Ui, emath::GuiRounding, pos2};
use parking_lot::Mutex;
use std::{ops::Range, sync::Arc};
use ui::{
    chart::{Bounds, Polylines, decimate::Mark, frame::Frame, raster::LineRaster},
    theme::{self, metrics},
};

/// Points that one frame smooths and looks up for pictures, about: 2 ms. The curve that exceeds it is still made ready.
const MAX_POINTS: usize = 50_000;

/// Points that a line counts for: it costs something however short it is, and of a long one few are looked at.
const OF_LINE: std::ops::RangeInclusive<usize> = 250..=32_000;

/// Who may look up lines for a picture in a frame: at most so many points, and those first who waited longest, so that cards whose
/// runs grow all the time leave others theirs.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameBudget {
    n_left: usize,
    /// The frame in which the one was drawn that waited longest in the frame before.
    longest: Option<u64>,
    /// The same of this frame.
    waiting: Option<u64>,
}

impl FrameBudget {
    /// Of the next frame.
    #[must_use]
    pub fn next(self) -> Self {
        Self { n_left: MAX_POINTS, longest: self.waiting, waiting: None }
    }

    /// Whether a curve of a picture, drawn in the frame `drawn` before, may take in `n` points now; else its card waits. Cards on top
    /// come first: what they waited for they have then, and the rest gets its turn.
    pub fn take_points(&mut self, n: usize, drawn: u64) -> bool {
        let has_turn = self.n_left > 0;
        self.n_left = self.n_left.saturating_sub(n);
        if !has_turn {
            self.wait(drawn);
        }
        has_turn
    }

    /// How many of a picture's lines, which have so many points each, may be looked up now; the others wait. All at once for one that
    /// cannot wait.
    pub fn take(&mut self, lines: impl ExactSizeIterator<Item = usize>, drawn: u64, at_once: bool) -> usize {
        let (n, mut taken) = (lines.len(), 0);
        if self.longest.is_none_or(|longest| drawn <= longest) {
            let is_all = at_once && self.n_left > 0;
            for n_points in lines {
                if self.n_left == 0 && !is_all {
                    break;
                }
                self.n_left = self.n_left.saturating_sub(n_points.clamp(*OF_LINE.start(), *OF_LINE.end()));
                taken += 1;
            }
        }
        if taken < n {
            self.wait(drawn);
        }
        taken
    }

    fn wait(&mut self, drawn: u64) {
        self.waiting = Some(self.waiting.map_or(drawn, |waiting| waiting.min(drawn)));
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
    /// Theme and colours.
    pub palette: usize,
    /// Of each line's points, colour and weight.
    pub lines: u64,
}

/// A picture of which the first lines are looked up.
struct Draft {
    key: Key,
    /// Lines that it is to have, and how many of them were looked up.
    n: usize,
    n_taken: usize,
    lines: Vec<StyledLine>,
}

/// What another thread draws: the marks that belong to it, and the image once it is there.
struct Pending {
    key: Key,
    marks: Vec<(Mark, egui::Color32)>,
    image: Arc<Mutex<Option<ColorImage>>>,
}

/// Lines drawn into a texture.
#[derive(Default)]
pub struct Picture {
    of: Option<Key>,
    texture: Option<TextureHandle>,
    marks: Vec<(Mark, egui::Color32)>,
    draft: Option<Draft>,
    pending: Option<Pending>,
    /// The frame in which it was asked for last; 0 before the first one.
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
    /// Whether `key` is to be drawn: it shows something else, and nothing is being drawn. What is under way is never abandoned,
    /// so that a card whose runs grow all the time shows something.
    pub fn wants(&self, key: &Key) -> bool {
        self.pending.is_none() && self.of.as_ref() != Some(key)
    }

    /// Takes over what another thread has drawn.
    pub fn receive(&mut self, ui: &Ui) {
        let Some(image) = self.pending.as_ref().and_then(|pending| pending.image.lock().take()) else { return };
        let Some(Pending { key, marks, .. }) = self.pending.take() else { return };
        match &mut self.texture {
            Some(texture) => texture.set(image, TextureOptions::LINEAR),
            none => *none = Some(ui.ctx().load_texture("curves", image, TextureOptions::LINEAR)),
        }
        (self.of, self.marks) = (Some(key), marks);
    }

    /// Which of the lines of the picture that `key` wants, of so many points each, are to be looked up in this frame. A draft goes on
    /// while only its points become more; one that has to begin anew looks all up at once, lest it never ends.
    pub fn take(&mut self, key: &Key, lines: &[usize], budget: &mut FrameBudget) -> Range<usize> {
        let n = lines.len();
        let is_same = |draft: &Draft| draft.n == n && Key { lines: draft.key.lines, ..*key } == draft.key;
        let goes_on = self.draft.as_ref().is_some_and(is_same);
        let at_once = self.draft.is_some() && !goes_on;
        let draft = self.draft.take().filter(|_| goes_on);
        let mut draft = draft.unwrap_or_else(|| Draft { key: *key, n, n_taken: 0, lines: Vec::new() });
        let from = draft.n_taken;
        draft.n_taken += budget.take(lines[from..].iter().copied(), self.drawn, at_once);
        let taken = from..draft.n_taken;
        self.draft = Some(draft);
        taken
    }

    /// Takes in lines that were looked up; once all are there, has the picture made anew. Whether some are missing.
    pub fn add(&mut self, ui: &Ui, frame: &Frame, lines: impl Iterator<Item = StyledLine>) -> bool {
        let Some(mut draft) = self.draft.take() else { return false };
        draft.lines.extend(lines);
        if draft.n_taken < draft.n {
            self.draft = Some(draft);
            return true;
        }
        self.draw(ui, frame, draft.key, draft.lines);
        false
    }

    fn draw(&mut self, ui: &Ui, frame: &Frame, key: Key, lines: Vec<StyledLine>) {
        let marked = lines.iter().filter(|line| line.has_marks);
        let marks = marked.flat_map(|line| line.lines.marks().iter().map(|mark| (*mark, line.color))).collect();
        let image = Arc::default();
        let (theirs, frame, scale, ctx) = (Arc::downgrade(&image), *frame, ui.pixels_per_point(), ui.ctx().clone());
        self.pending = Some(Pending { key, marks, image });
        self.drawn = ctx.cumulative_frame_nr();
        rayon::spawn_fifo(move || {
            // A card that left the screen meanwhile dropped its end.
            if theirs.strong_count() == 0 {
                return;
            }
            let mut raster = LineRaster::new(key.size);
            for StyledLine { lines, color, width, .. } in &lines {
                draw(&mut raster, lines, &frame, scale, (*width, *color));
            }
            if let Some(slot) = theirs.upgrade() {
                *slot.lock() = Some(raster.into_image());
            }
            ctx.request_repaint();
        });
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

    /// What it shows, once it shows something.
    pub fn bounds(&self) -> Option<Bounds> {
        self.of.map(|key| key.bounds)
    }

    /// Frees the memory of one that was not shown in this frame or the one before.
    pub fn forget_unseen(&mut self, frame_nr: u64) {
        let has_any = self.texture.is_some() || self.pending.is_some() || self.draft.is_some();
        if has_any && self.seen + 1 < frame_nr {
            *self = Self::default();
        }
    }
}

fn draw(raster: &mut LineRaster, lines: &Polylines, frame: &Frame, scale: f32, (width, color): (f32, egui::Color32)) {
    let origin = frame.inner.min;
    for line in lines.lines() {
        let width = if line.len() == 1 { 2.0 * metrics::DOT } else { width };
        let point = |[x, y]: &[f64; 2]| {
            let at = (frame.pos(*x, *y) - origin) * scale;
            [at.x, at.y]
        };
        raster.line(line.iter().map(point), width * scale, color);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_get_their_turn_though_some_always_want_one() {
        let (mut budget, mut drawn) = (FrameBudget::default(), [0_u64; 5]);
        for frame in 1..=10 {
            budget = budget.next();
            for last in &mut drawn {
                if budget.take(half(1), *last, false) > 0 {
                    *last = frame;
                }
            }
        }
        assert!(drawn.iter().all(|last| *last >= 7), "two in a frame, all five within three: {drawn:?}");
    }

    /// `n` lines, each of half the points of a frame.
    fn half(n: usize) -> impl ExactSizeIterator<Item = usize> {
        std::iter::repeat_n(MAX_POINTS / 2, n)
    }

    #[test]
    fn a_frame_looks_at_no_more_than_it_has_time_for() {
        let mut ready = FrameBudget::default().next();
        let taken = [MAX_POINTS - 1, MAX_POINTS, 1].map(|n| ready.take_points(n, 3));
        assert_eq!(taken, [true, true, false]);
        assert_eq!(ready.take(half(1), 0, false), 0, "pictures have what is left");
        assert_eq!(ready.next().take(half(1), 4, false), 0, "what is not ready waits too");
        let mut alone = FrameBudget::default().next();
        let taken = [alone.take(half(20), 0, false), alone.take(half(1), 0, false)];
        assert_eq!(taken, [2, 0], "one that is too large for a frame takes several");
        assert_eq!(alone.next().take(half(20), 0, true), 20, "but for one that cannot wait");
        let short = std::iter::repeat_n(1, MAX_POINTS);
        assert_eq!(FrameBudget::default().next().take(short, 0, false), MAX_POINTS / OF_LINE.start());
    }
}
