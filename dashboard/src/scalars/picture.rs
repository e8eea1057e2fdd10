//! A card's lines as a picture, which another thread draws anew when something that the lines depend on changes. Until
//! then the card shows the previous picture where its bounds are now. The lines are prepared over several frames, a few
//! in each.

use super::{curve::CurveSettings, paint::StyledLine};
use egui::{ColorImage, Rect, TextureHandle, TextureOptions, Ui, emath::GuiRounding, pos2};
use parking_lot::Mutex;
use std::{ops::Range, sync::Arc};
use ui::{
    chart::{Bounds, Polylines, decimate::Mark, frame::Frame, raster::LineRaster},
    theme::{self, metrics},
};

/// Points that a frame smooths and cuts for pictures, about 2 ms. The curve that exceeds the budget is still finished.
const MAX_POINTS: usize = 50_000;

/// Bounds of the points that a line counts for: a short line has fixed costs, and of a long one few points are read.
const OF_LINE: std::ops::RangeInclusive<usize> = 250..=32_000;

/// The budget of points for preparing lines in one frame. Cards that waited longest come first, so that cards with
/// growing runs leave time for others.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameBudget {
    n_left: usize,
    /// The frame in which the picture was drawn that waited longest in the previous frame.
    longest: Option<u64>,
    /// The same for this frame.
    waiting: Option<u64>,
}

impl FrameBudget {
    /// The budget of the next frame.
    #[must_use]
    pub fn next(self) -> Self {
        Self { n_left: MAX_POINTS, longest: self.waiting, waiting: None }
    }

    /// Whether a curve may process `n` points now; if not, its card waits. `drawn`: the frame in which the card's
    /// picture was last drawn. Upper cards come first; once they are up to date the lower ones get their turn.
    pub fn take_points(&mut self, n: usize, drawn: u64) -> bool {
        let has_turn = self.n_left > 0;
        self.n_left = self.n_left.saturating_sub(n);
        if !has_turn {
            self.wait(drawn);
        }
        has_turn
    }

    /// The number of a picture's lines that may be cut now, given each line's points; the others wait. `at_once`: all
    /// or none.
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

/// The key of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Settings of the curves.
    pub settings: CurveSettings,
    /// The bounds in plot space.
    pub bounds: Bounds,
    /// Width and height in pixels.
    pub size: [usize; 2],
    /// Identifies theme and colours.
    pub palette: usize,
    /// A hash of each line's points, colour and weight.
    pub lines: u64,
}

/// A picture of which some lines are prepared.
struct Draft {
    key: Key,
    /// The number of lines, and of those that were requested.
    n: usize,
    n_requested: usize,
    lines: Vec<StyledLine>,
}

/// A picture that another thread draws, with its marks.
struct Pending {
    key: Key,
    marks: Vec<(Mark, egui::Color32)>,
    image: Arc<Mutex<Option<ColorImage>>>,
}

/// Lines drawn into a texture.
#[derive(Default)]
pub struct Picture {
    shown_key: Option<Key>,
    texture: Option<TextureHandle>,
    marks: Vec<(Mark, egui::Color32)>,
    draft: Option<Draft>,
    pending: Option<Pending>,
    /// The frame in which the picture was last requested; 0 before the first request.
    pub drawn: u64,
    /// The frame in which the picture was last shown.
    seen: u64,
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Picture").field("of", &self.shown_key).finish_non_exhaustive()
    }
}

impl Picture {
    /// Whether the picture has another key than `key` and nothing is being drawn. A drawing under way is never
    /// abandoned, so that a card whose runs grow all the time shows something.
    pub fn needs_drawing(&self, key: &Key) -> bool {
        self.pending.is_none() && self.shown_key.as_ref() != Some(key)
    }

    /// Takes a finished drawing from the other thread.
    pub fn receive(&mut self, ui: &Ui) {
        let Some(image) = self.pending.as_ref().and_then(|pending| pending.image.lock().take()) else { return };
        let Some(Pending { key, marks, .. }) = self.pending.take() else { return };
        match &mut self.texture {
            Some(texture) => texture.set(image, TextureOptions::LINEAR),
            none => *none = Some(ui.ctx().load_texture("curves", image, TextureOptions::LINEAR)),
        }
        (self.shown_key, self.marks) = (Some(key), marks);
    }

    /// The lines to prepare in this frame, given each line's number of points. A draft continues while only its points
    /// grow; a draft that has to start over prepares all lines at once, or it might never be finished.
    pub fn take(&mut self, key: &Key, lines: &[usize], budget: &mut FrameBudget) -> Range<usize> {
        let n = lines.len();
        let is_same = |draft: &Draft| draft.n == n && Key { lines: draft.key.lines, ..*key } == draft.key;
        let goes_on = self.draft.as_ref().is_some_and(is_same);
        let at_once = self.draft.is_some() && !goes_on;
        let draft = self.draft.take().filter(|_| goes_on);
        let mut draft = draft.unwrap_or_else(|| Draft { key: *key, n, n_requested: 0, lines: Vec::new() });
        let from = draft.n_requested;
        draft.n_requested += budget.take(lines[from..].iter().copied(), self.drawn, at_once);
        let taken = from..draft.n_requested;
        self.draft = Some(draft);
        taken
    }

    /// Adds prepared lines to the draft; once it has all, starts drawing. Returns whether lines are missing.
    pub fn add(&mut self, ui: &Ui, frame: &Frame, lines: impl Iterator<Item = StyledLine>) -> bool {
        let Some(mut draft) = self.draft.take() else { return false };
        draft.lines.extend(lines);
        if draft.n_requested < draft.n {
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
        let (result, frame, scale, ctx) = (Arc::downgrade(&image), *frame, ui.pixels_per_point(), ui.ctx().clone());
        self.pending = Some(Pending { key, marks, image });
        self.drawn = ctx.cumulative_frame_nr();
        rayon::spawn_fifo(move || {
            // The card left the screen and dropped its end.
            if result.strong_count() == 0 {
                return;
            }
            let mut raster = LineRaster::new(key.size);
            for StyledLine { lines, color, width, .. } in &lines {
                draw(&mut raster, lines, &frame, scale, (*width, *color));
            }
            if let Some(slot) = result.upgrade() {
                *slot.lock() = Some(raster.into_image());
            }
            ctx.request_repaint();
        });
    }

    /// Shows the picture where its bounds are in `frame`.
    pub fn show(&mut self, ui: &Ui, frame: &Frame) {
        self.seen = ui.ctx().cumulative_frame_nr();
        let (Some(key), Some(texture)) = (&self.shown_key, &self.texture) else { return };
        let Bounds { x, y, .. } = key.bounds;
        let rect = if key.bounds == frame.bounds {
            let scale = ui.pixels_per_point();
            let size = egui::vec2(key.size[0] as f32, key.size[1] as f32) / scale;
            // Aligned to pixels, so that the picture stays sharp.
            Rect::from_min_size(frame.inner.min.round_to_pixels(scale), size)
        } else {
            Rect::from_two_pos(frame.pos(x[0], y[1]), frame.pos(x[1], y[0]))
        };
        let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
        ui.painter_at(frame.inner).image(texture.id(), rect, whole, theme::UNTINTED);
        let painter = ui.painter_at(frame.inner);
        painter.extend(self.marks.iter().map(|(mark, color)| super::paint::mark_shape(frame, mark, *color)));
    }

    /// The bounds that the picture shows; `None` before the first one.
    pub fn bounds(&self) -> Option<Bounds> {
        self.shown_key.map(|key| key.bounds)
    }

    /// Frees a picture that was shown neither in this frame nor in the previous one.
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
