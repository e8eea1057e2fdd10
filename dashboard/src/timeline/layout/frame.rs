//! How times and rows become points of the screen.

use super::viewport::{Scale, Viewport};

/// Sizes of rows; the theme gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    pub lane_h: f32,
    pub heading_h: f32,
    pub counter_h: f32,
    pub gap: f32,
}

/// The range of time on the screen, at which scale and row sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    pub view: Viewport,
    pub scale: Scale,
    pub pixels_per_point: f32,
    pub sizes: Sizes,
}

impl Frame {
    /// How many physical pixels the view has.
    pub fn width_px(&self) -> usize {
        (self.scale.width() * self.pixels_per_point).ceil().max(1.0) as usize
    }

    /// Left and right edge of a time range; at least a physical pixel wide, clipped to the view.
    pub fn edges(&self, start: i64, end: i64) -> (f32, f32) {
        let (left, right) = (self.scale.left(), self.scale.right());
        let least = 1.0 / self.pixels_per_point;
        let x0 = self.scale.x_from_time(start).clamp(left, right - least);
        let x1 = self.scale.x_from_time(end).clamp(left, right);
        (x0, x1.max(x0 + least))
    }
}
