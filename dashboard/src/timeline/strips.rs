//! Bars of a few pixels as pictures: a strip of pixels for each lane, stretched over its height.
//!
//! A lane of short slices has about as many bars as it has pixels. A rectangle is four corners and six indices, over a
//! hundred bytes that every frame copies and bounds; its pixel is four bytes.

use super::layout::Frame;
use crate::theme::UNTINTED;
use egui::{Color32, ColorImage, Context, Mesh, Painter, Rect, Shape, TextureHandle, TextureOptions, pos2};
use rustc_hash::FxHashMap;

/// Physical pixels up to which a bar is drawn into its lane's strip.
const WIDEST_PX: f32 = 3.0;

/// Strips being filled.
pub struct Strips {
    left: f32,
    pixels_per_point: f32,
    /// Pixels of a strip.
    width: usize,
    most: usize,
    pixels: Vec<Color32>,
    /// Top and bottom of each strip.
    heights: Vec<(f32, f32)>,
    /// Each strip's place by its top and bottom.
    place: FxHashMap<(u32, u32), usize>,
    last: Option<((f32, f32), usize)>,
}

impl Strips {
    /// Strips over a frame's width, of a texture with at most `max_side` pixels either way.
    pub fn new(frame: &Frame, max_side: usize) -> Self {
        let width = frame.width_px();
        Self {
            left: frame.scale.left(),
            pixels_per_point: frame.pixels_per_point,
            width,
            most: if width <= max_side { max_side } else { 0 },
            pixels: Vec::new(),
            heights: Vec::new(),
            place: FxHashMap::default(),
            last: None,
        }
    }

    /// Draws a bar, if it is narrow enough and there is room for its strip; whether it did.
    pub fn fill(&mut self, bar: Rect, color: Color32) -> bool {
        if bar.width() * self.pixels_per_point > WIDEST_PX {
            return false;
        }
        let Some(strip) = self.strip((bar.top(), bar.bottom())) else { return false };
        let column = |x: f32| ((x - self.left) * self.pixels_per_point + 0.5).max(0.0) as usize;
        let from = column(bar.left()).min(self.width - 1);
        let to = column(bar.right()).clamp(from + 1, self.width);
        self.pixels[strip * self.width..][from..to].fill(color);
        true
    }

    /// The strip of these heights, perhaps a new one.
    fn strip(&mut self, height: (f32, f32)) -> Option<usize> {
        if let Some((last, strip)) = self.last
            && last == height
        {
            return Some(strip);
        }
        let n = self.heights.len();
        let strip = match self.place.get(&(height.0.to_bits(), height.1.to_bits())) {
            Some(known) => *known,
            None if n >= self.most => return None,
            None => {
                self.place.insert((height.0.to_bits(), height.1.to_bits()), n);
                self.heights.push(height);
                self.pixels.resize((n + 1) * self.width, Color32::TRANSPARENT);
                n
            }
        };
        self.last = Some((height, strip));
        Some(strip)
    }
}

/// Strips that are shown.
#[derive(Default)]
pub struct Shown {
    texture: Option<TextureHandle>,
    mesh: Option<std::sync::Arc<Mesh>>,
}

impl Shown {
    /// Shows these from now on.
    pub fn set(&mut self, ctx: &Context, strips: Strips) {
        self.mesh = None;
        let n = strips.heights.len();
        if n == 0 {
            self.texture = None;
            return;
        }
        let image = ColorImage::new([strips.width, n], strips.pixels);
        match &mut self.texture {
            Some(texture) => texture.set(image, TextureOptions::NEAREST),
            none => *none = Some(ctx.load_texture("slices", image, TextureOptions::NEAREST)),
        }
        let Some(texture) = &self.texture else { return };
        let mut mesh = Mesh::with_texture(texture.id());
        let right = strips.left + strips.width as f32 / strips.pixels_per_point;
        // A lower one lies on a higher one: a wait on the work beside it.
        let mut order: Vec<(usize, (f32, f32))> = strips.heights.into_iter().enumerate().collect();
        order.sort_by(|(_, (top, bottom)), (_, (other_top, other_bottom))| {
            (other_bottom - other_top).total_cmp(&(bottom - top))
        });
        for (i, (top, bottom)) in order {
            let rect = Rect::from_min_max(pos2(strips.left, top), pos2(right, bottom));
            let (v0, v1) = (i as f32 / n as f32, (i + 1) as f32 / n as f32);
            mesh.add_rect_with_uv(rect, Rect::from_min_max(pos2(0.0, v0), pos2(1.0, v1)), UNTINTED);
        }
        self.mesh = Some(mesh.into());
    }

    /// Paints them.
    pub fn paint(&self, painter: &Painter) {
        if let Some(mesh) = &self.mesh {
            painter.add(Shape::Mesh(std::sync::Arc::clone(mesh)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Palette;
    use crate::timeline::{
        layout::Sizes,
        viewport::{Scale, Viewport},
    };

    fn frame() -> Frame {
        let view = Viewport { start: 0, end: 1_000 };
        let sizes = Sizes { lane_h: 18.0, heading_h: 20.0, counter_h: 30.0, gap: 2.0, label_min_w: 30.0 };
        Frame { view, scale: Scale::new(view, 100.0, 10.0), pixels_per_point: 2.0, sizes }
    }

    fn ink(i: usize) -> Color32 {
        Palette::of(true).fill(i)
    }

    fn bar(x0: f32, x1: f32, top: f32) -> Rect {
        Rect::from_min_max(pos2(x0, top), pos2(x1, top + 18.0))
    }

    #[test]
    fn narrow_bars_become_pixels_of_their_lane() {
        let mut strips = Strips::new(&frame(), 64);
        assert!(strips.fill(bar(100.0, 100.5, 0.0), ink(0)));
        assert!(strips.fill(bar(101.0, 102.5, 0.0), ink(1)));
        assert!(strips.fill(bar(109.9, 110.4, 20.0), ink(2)), "the last pixel, not beyond it");
        assert!(!strips.fill(bar(103.0, 105.0, 0.0), ink(0)), "wide ones stay rectangles");
        let row = |i: usize| &strips.pixels[i * 20..(i + 1) * 20];
        let (none, r, b) = (Color32::TRANSPARENT, ink(0), ink(1));
        assert_eq!(row(0)[..7], [r, none, b, b, b, none, none]);
        assert_eq!(row(1)[18..], [none, ink(2)]);
        assert_eq!(strips.heights, [(0.0, 18.0), (20.0, 38.0)]);
    }

    #[test]
    fn what_a_texture_cannot_hold_stays_rectangles() {
        let mut strips = Strips::new(&frame(), 20);
        let filled = (0..21).filter(|i| strips.fill(bar(100.0, 100.5, *i as f32), ink(0))).count();
        assert_eq!(filled, 20);
        assert!(!Strips::new(&frame(), 19).fill(bar(100.0, 100.5, 0.0), ink(0)));
    }
}
