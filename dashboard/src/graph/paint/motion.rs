//! Motion between two pictures and between two cameras: short, and skipped by any input.

use super::camera::{Camera, map_point};
use crate::graph::{
    layout::{BoxLayout, Picture},
    model::Model,
};
use egui::{Pos2, pos2};
use std::sync::Arc;

/// Duration of a transition or flight, seconds.
const DURATION: f64 = 0.2;

/// A transition to a new picture: boxes move from their places in the old one.
pub(crate) struct Transition {
    from: Arc<Picture>,
    /// Added to the old picture's coordinates, so that the clicked box stays where it is.
    shift: [f32; 2],
    start: f64,
}

/// Returns the progress of a motion, 0 to 1, slow at both ends.
fn ease(start: f64, now: f64) -> f32 {
    let t = ((now - start) / DURATION).clamp(0.0, 1.0) as f32;
    t * t * (3.0 - 2.0 * t)
}

impl Transition {
    pub fn new(from: Arc<Picture>, shift: [f32; 2], start: f64) -> Self {
        Self { from, shift, start }
    }

    pub fn progress(&self, now: f64) -> f32 {
        ease(self.start, now)
    }

    /// Returns the rect of a box of the new picture at progress `t`. New boxes come out of the box around them.
    pub fn rect_of(&self, model: &Model, to: &Picture, b: &BoxLayout, t: f32) -> [f32; 4] {
        let Some(old) = self.from.innermost_box(model, b.item) else { return b.rect };
        let [dx, dy] = self.shift;
        let moved = [old.rect[0] + dx, old.rect[1] + dy, old.rect[2] + dx, old.rect[3] + dy];
        let start = if old.item == b.item {
            moved
        } else {
            let Some(outer) = to.find(old.item) else { return b.rect };
            let map = |corner: Pos2| map_point(outer.rect, moved, corner);
            let (min, max) = (map(pos2(b.rect[0], b.rect[1])), map(pos2(b.rect[2], b.rect[3])));
            [min.x, min.y, max.x, max.y]
        };
        std::array::from_fn(|i| start[i] + (b.rect[i] - start[i]) * t)
    }
}

/// The camera moving to another place.
pub(crate) struct Flight {
    pub from: Camera,
    pub to: Camera,
    pub start: f64,
}

impl Flight {
    /// Returns the camera at `now`, and whether the flight has ended.
    pub fn camera_at(&self, now: f64) -> (Camera, bool) {
        let t = ease(self.start, now);
        (self.from.lerp(self.to, t), t >= 1.0)
    }
}
