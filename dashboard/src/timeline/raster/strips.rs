//! Narrow bars as pixels, for bars that are drawn in each frame: two strips of pixels for each lane, one stretched over
//! the lane's height and one over its middle, where waits are.
//!
//! A rectangle takes four corners and six indices, over a hundred bytes that every frame copies and checks; the
//! pixels of a narrow bar take eight bytes.

use crate::timeline::layout::{Frame, LaneBand};
use egui::{Color32, ColorImage, Context, Mesh, Painter, Rect, Shape, TextureHandle, TextureOptions, pos2};
use rustc_hash::FxHashMap;
use ui::theme::{UNTINTED, metrics};

/// Width up to which a bar is drawn into its lane's strip, physical pixels.
pub const MAX_NARROW_PX: f32 = 3.0;

/// The rectangle of a lane between two edges.
pub fn full_rect(lane: LaneBand, x0: f32, x1: f32) -> Rect {
    Rect::from_min_max(pos2(x0, lane.top), pos2(x1, lane.top + lane.height))
}

/// The rectangle of a lane's middle, where waits are drawn, between two edges.
pub fn middle_rect(lane: LaneBand, x0: f32, x1: f32) -> Rect {
    let top = lane.top + (lane.height - metrics::WAIT_H) / 2.0;
    Rect::from_min_max(pos2(x0, top), pos2(x1, top + metrics::WAIT_H))
}

/// The colours of a bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BarStyle {
    /// The colour of the work; `None` where the bar is a wait.
    pub full: Option<Color32>,
    /// The colour of the wait over the work; `None` without a wait.
    pub middle: Option<Color32>,
}

/// Strips under construction: for each lane one over its height, followed by one over its middle.
pub struct Strips {
    left: f32,
    pixels_per_point: f32,
    width: usize,
    /// Lanes for which the texture has room.
    max_lanes: usize,
    pixels: Vec<Color32>,
    lanes: Vec<LaneBand>,
    /// The index of each lane's strips, by the lane's top and height.
    index: FxHashMap<(u32, u32), usize>,
    /// The lane of the last bar, and the index of its strips.
    last: Option<(LaneBand, usize)>,
}

impl Strips {
    /// Strips over a frame's width, in a texture of at most `max_side` pixels per side.
    pub fn new(frame: &Frame, max_side: usize) -> Self {
        let width = frame.width_px();
        Self {
            left: frame.scale.left(),
            pixels_per_point: frame.pixels_per_point,
            width,
            max_lanes: if width <= max_side { max_side / 2 } else { 0 },
            pixels: Vec::new(),
            lanes: Vec::new(),
            index: FxHashMap::default(),
            last: None,
        }
    }

    /// Draws a bar if it is narrow enough and its strips have room; returns whether it was drawn.
    pub fn fill(&mut self, lane: LaneBand, x0: f32, x1: f32, style: BarStyle) -> bool {
        if (x1 - x0) * self.pixels_per_point > MAX_NARROW_PX {
            return false;
        }
        let Some(lane_idx) = self.index_of(lane) else { return false };
        let column_from_x = |x: f32| ((x - self.left) * self.pixels_per_point + 0.5).max(0.0) as usize;
        let from = column_from_x(x0).min(self.width - 1);
        let to = column_from_x(x1).clamp(from + 1, self.width);
        let (full, middle) = self.pixels[2 * lane_idx * self.width..].split_at_mut(self.width);
        if let Some(color) = style.full {
            full[from..to].fill(color);
        }
        // Work covers an earlier wait of the pixel.
        if let Some(color) = style.middle.or(style.full) {
            middle[from..to].fill(color);
        }
        true
    }

    /// The index of a lane's strips, which are added if they are missing.
    fn index_of(&mut self, lane: LaneBand) -> Option<usize> {
        if let Some((last, lane_idx)) = self.last
            && last == lane
        {
            return Some(lane_idx);
        }
        let n_lanes = self.lanes.len();
        let key = (lane.top.to_bits(), lane.height.to_bits());
        let lane_idx = match self.index.get(&key) {
            Some(existing) => *existing,
            None if n_lanes >= self.max_lanes => return None,
            None => {
                self.index.insert(key, n_lanes);
                self.lanes.push(lane);
                self.pixels.resize(2 * (n_lanes + 1) * self.width, Color32::TRANSPARENT);
                n_lanes
            }
        };
        self.last = Some((lane, lane_idx));
        Some(lane_idx)
    }
}

/// Strips as a texture, with the rectangles that show it.
#[derive(Default)]
pub struct StripTexture {
    texture: Option<TextureHandle>,
    mesh: Option<std::sync::Arc<Mesh>>,
}

impl StripTexture {
    /// Replaces the strips.
    pub fn set(&mut self, ctx: &Context, strips: Strips) {
        self.mesh = None;
        let n_strips = 2 * strips.lanes.len();
        if n_strips == 0 {
            self.texture = None;
            return;
        }
        let image = ColorImage::new([strips.width, n_strips], strips.pixels);
        match &mut self.texture {
            Some(texture) => texture.set(image, TextureOptions::NEAREST),
            empty => *empty = Some(ctx.load_texture("slices", image, TextureOptions::NEAREST)),
        }
        let Some(texture) = &self.texture else { return };
        let mut mesh = Mesh::with_texture(texture.id());
        let right = strips.left + strips.width as f32 / strips.pixels_per_point;
        let rects =
            strips.lanes.iter().flat_map(|l| [full_rect(*l, strips.left, right), middle_rect(*l, strips.left, right)]);
        for (i, rect) in rects.enumerate() {
            let (v0, v1) = (i as f32 / n_strips as f32, (i + 1) as f32 / n_strips as f32);
            mesh.add_rect_with_uv(rect, Rect::from_min_max(pos2(0.0, v0), pos2(1.0, v1)), UNTINTED);
        }
        self.mesh = Some(mesh.into());
    }

    pub fn paint(&self, painter: &Painter) {
        if let Some(mesh) = &self.mesh {
            painter.add(Shape::Mesh(std::sync::Arc::clone(mesh)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::layout::{Scale, Sizes, Viewport};
    use ui::theme::Palette;

    fn frame() -> Frame {
        let view = Viewport { start: 0, end: 1_000 };
        let sizes = Sizes { lane_h: 18.0, heading_h: 20.0, counter_h: 30.0, gap: 2.0 };
        Frame { view, scale: Scale::new(view, 100.0, 10.0), pixels_per_point: 2.0, sizes }
    }

    fn color(i: usize) -> Color32 {
        Palette::for_theme(true).fill(i)
    }

    const LANE: LaneBand = LaneBand { top: 0.0, height: 18.0 };

    fn work(i: usize) -> BarStyle {
        BarStyle { full: Some(color(i)), middle: None }
    }

    #[test]
    fn narrow_bars_become_pixels_of_their_lane() {
        let mut strips = Strips::new(&frame(), 64);
        let below = LaneBand { top: 20.0, ..LANE };
        assert!(strips.fill(LANE, 100.0, 100.5, work(0)));
        assert!(strips.fill(LANE, 101.0, 102.5, work(1)));
        assert!(strips.fill(below, 109.9, 110.4, work(2)), "the last pixel, not beyond it");
        assert!(!strips.fill(LANE, 103.0, 105.0, work(0)), "wide ones stay rectangles");
        let row = |i: usize| &strips.pixels[i * 20..(i + 1) * 20];
        let (none, r, b) = (Color32::TRANSPARENT, color(0), color(1));
        assert_eq!(row(0)[..7], [r, none, b, b, b, none, none]);
        assert_eq!(row(1), row(0), "work is there from top to bottom");
        assert_eq!(row(2)[18..], [none, color(2)]);
        assert_eq!(strips.lanes, [LANE, below]);
    }

    #[test]
    fn waits_are_in_the_middle_over_work_and_below_later_work() {
        let mut strips = Strips::new(&frame(), 64);
        let wait = |full| BarStyle { full, middle: Some(color(3)) };
        strips.fill(LANE, 100.0, 101.0, wait(None));
        strips.fill(LANE, 101.0, 102.0, wait(Some(color(1))));
        strips.fill(LANE, 100.5, 101.0, work(2));
        let none = Color32::TRANSPARENT;
        assert_eq!(strips.pixels[..5], [none, color(2), color(1), color(1), none]);
        assert_eq!(strips.pixels[20..25], [color(3), color(2), color(3), color(3), none]);
        assert_eq!(middle_rect(LANE, 0.0, 1.0).center(), full_rect(LANE, 0.0, 1.0).center());
    }

    #[test]
    fn what_a_texture_cannot_hold_stays_rectangles() {
        let mut strips = Strips::new(&frame(), 20);
        let lane = |i: usize| LaneBand { top: i as f32, ..LANE };
        assert_eq!((0..21).filter(|i| strips.fill(lane(*i), 100.0, 100.5, work(0))).count(), 10);
        assert!(!Strips::new(&frame(), 19).fill(LANE, 100.0, 100.5, work(0)));
    }
}
