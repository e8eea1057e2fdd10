//! A frame's mapping from times and rows to points of the screen.

use super::viewport::{Scale, Viewport};

/// Heights of rows, points; the theme sets them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    pub lane_h: f32,
    pub heading_h: f32,
    pub counter_h: f32,
    pub gap: f32,
}

/// The view, its scale and the sizes of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    pub view: Viewport,
    pub scale: Scale,
    pub pixels_per_point: f32,
    pub sizes: Sizes,
}

impl Frame {
    /// The width of the view in physical pixels.
    pub fn width_px(&self) -> usize {
        (self.scale.width() * self.pixels_per_point).ceil().max(1.0) as usize
    }

    /// Left and right edge of a time range, clipped to the view and at least a physical pixel apart.
    pub fn edges(&self, start: i64, end: i64) -> (f32, f32) {
        let (left, right) = (self.scale.left(), self.scale.right());
        let pixel = 1.0 / self.pixels_per_point;
        let x0 = self.scale.x_from_time(start).clamp(left, right - pixel);
        let x1 = self.scale.x_from_time(end).clamp(left, right);
        (x0, x1.max(x0 + pixel))
    }
}
