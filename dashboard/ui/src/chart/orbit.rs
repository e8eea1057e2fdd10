//! An orbit camera on a 3-D scene: a drag turns the scene, Ctrl and the wheel zoom, Shift and a drag move it.

use crate::command::Entry;
use egui::{PointerButton, Pos2, Rect, Response, Ui, Vec2};

/// The gestures, for the list of shortcuts.
pub const GESTURES: [Entry; 3] = [
    Entry::gesture("Drag (3-D)", "Turn it"),
    Entry::gesture("Shift + drag (3-D)", "Move it"),
    Entry::gesture("Ctrl + wheel, double click (3-D)", "Zoom; reset"),
];

/// Angle of a drag over the entire height, radians.
const DRAG_ANGLE: f32 = 3.0;
/// Distance of the eye from the middle of a scene of size 1.
const EYE_DISTANCE: f32 = 3.0;

/// The camera.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Orbit {
    /// Angles around the upright axis and upwards, radians.
    pub angles: [f32; 2],
    /// Magnification; above 1 is closer.
    pub zoom: f32,
    /// Offset as a share of the picture's height.
    pub shift: Vec2,
}

impl Default for Orbit {
    fn default() -> Self {
        Self { angles: [0.6, 0.35], zoom: 1.0, shift: Vec2::ZERO }
    }
}

impl Orbit {
    /// Handles the gestures; returns whether the camera moved. In two dimensions a drag moves the picture instead of
    /// turning it.
    pub fn input(&mut self, ui: &Ui, response: &Response, is_flat: bool) -> bool {
        let previous = *self;
        let height = response.rect.height().max(1.0);
        let (shift, zoom) = ui.input(|i| (i.modifiers.shift, i.zoom_delta()));
        let is_move = shift || is_flat || response.dragged_by(PointerButton::Middle);
        if response.dragged() && is_move {
            self.shift += response.drag_delta() / height;
        } else if response.dragged() {
            let turn = response.drag_delta() / height * DRAG_ANGLE;
            self.angles[0] += turn.x;
            self.angles[1] = (self.angles[1] + turn.y).clamp(-1.55, 1.55);
        }
        if let (true, Some(at)) = (zoom != 1.0, response.hover_pos()) {
            let zoomed = (self.zoom * zoom).clamp(0.05, 500.0);
            // The point under the pointer stays there.
            let pivot = (at - response.rect.center()) / height;
            self.shift = pivot + (self.shift - pivot) * (zoomed / self.zoom);
            self.zoom = zoomed;
        }
        if response.double_clicked() {
            *self = Self::default();
        }
        *self != previous
    }

    /// The screen position of a point in the unit ball, and its depth: greater is farther.
    pub fn project(&self, rect: Rect, [x, y, z]: [f32; 3], is_flat: bool) -> (Pos2, f32) {
        let scale = 0.45 * rect.height().min(rect.width()) * self.zoom;
        let middle = rect.center() + self.shift * rect.height();
        if is_flat {
            return (middle + scale * Vec2::new(x, -y), 0.0);
        }
        let ([sin_a, cos_a], [sin_b, cos_b]) =
            ([self.angles[0].sin(), self.angles[0].cos()], [self.angles[1].sin(), self.angles[1].cos()]);
        let (x, z) = (cos_a * x + sin_a * z, cos_a * z - sin_a * x);
        let (y, z) = (cos_b * y - sin_b * z, cos_b * z + sin_b * y);
        let perspective = EYE_DISTANCE / (EYE_DISTANCE - z).max(0.2);
        (middle + scale * perspective * Vec2::new(x, -y), -z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::{pos2, vec2};

    #[test]
    fn straight_ahead_is_as_it_is_and_near_things_are_larger() {
        let rect = Rect::from_min_size(pos2(0.0, 0.0), vec2(100.0, 100.0));
        let ahead = Orbit { angles: [0.0, 0.0], ..Orbit::default() };
        let (pos, depth) = ahead.project(rect, [1.0, 0.0, 0.0], false);
        assert!(pos.distance(pos2(95.0, 50.0)) < 1e-3 && depth == 0.0);
        let (near, depth) = ahead.project(rect, [0.5, 0.5, 0.5], false);
        assert!(near.x > 72.6 && near.y < 27.4 && depth < 0.0, "{near:?}");
        let aside = Orbit { angles: [std::f32::consts::FRAC_PI_2, 0.0], ..ahead };
        let (pos, _) = aside.project(rect, [1.0, 0.0, 0.0], false);
        assert!(pos.distance(pos2(50.0, 50.0)) < 1e-2, "turned away: {pos:?}");
    }
}
