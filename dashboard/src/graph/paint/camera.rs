//! The camera: the part of the picture that is on the screen.

use egui::{Pos2, Rect, Vec2, pos2, vec2};

/// Greatest zoom of a fitted picture.
const MAX_FIT_ZOOM: f32 = 1.6;
/// Points on the screen for a point of the picture.
const ZOOM_RANGE: std::ops::RangeInclusive<f32> = 0.002..=6.0;

/// A centre in the picture and a scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Camera {
    pub center: Vec2,
    pub zoom: f32,
}

impl Default for Camera {
    fn default() -> Self {
        Self { center: Vec2::ZERO, zoom: 1.0 }
    }
}

impl Camera {
    pub fn to_screen(self, view: Rect, [x, y]: [f32; 2]) -> Pos2 {
        view.center() + (vec2(x, y) - self.center) * self.zoom
    }

    pub fn rect_to_screen(self, view: Rect, [x0, y0, x1, y1]: [f32; 4]) -> Rect {
        Rect::from_min_max(self.to_screen(view, [x0, y0]), self.to_screen(view, [x1, y1]))
    }

    pub fn to_picture(self, view: Rect, at: Pos2) -> [f32; 2] {
        let p = (at - view.center()) / self.zoom + self.center;
        [p.x, p.y]
    }

    pub fn pan(&mut self, by: Vec2) {
        self.center -= by / self.zoom;
    }

    /// Zooms by `factor`; the point of the picture at `at` stays there.
    pub fn zoom_at(&mut self, view: Rect, at: Pos2, factor: f32) {
        let before = self.to_picture(view, at);
        self.zoom = (self.zoom * factor).clamp(*ZOOM_RANGE.start(), *ZOOM_RANGE.end());
        self.move_point_to(view, before, at);
    }

    /// Moves the camera so that a point of the picture is at `at`.
    pub fn move_point_to(&mut self, view: Rect, [x, y]: [f32; 2], at: Pos2) {
        self.center = vec2(x, y) - (at - view.center()) / self.zoom;
    }

    /// Fits `bounds` into the view.
    pub fn fit(&mut self, view: Rect, [x0, y0, x1, y1]: [f32; 4]) {
        let (w, h) = ((x1 - x0).max(1.0), (y1 - y0).max(1.0));
        self.zoom = (view.width() / w).min(view.height() / h).min(MAX_FIT_ZOOM).max(*ZOOM_RANGE.start()) * 0.94;
        self.center = vec2((x0 + x1) / 2.0, (y0 + y1) / 2.0);
    }

    /// Fits `bounds` into a part of the view.
    fn fit_into(&mut self, view: Rect, part: Rect, bounds: [f32; 4]) {
        self.fit(part, bounds);
        self.center -= (part.center() - view.center()) / self.zoom;
    }

    /// Fits `bounds` so that none of `boxes` lies under a covered `corner` of the view: to the right of the corner or
    /// above it, whichever allows a greater zoom.
    pub fn fit_around(&mut self, view: Rect, corner: Rect, bounds: [f32; 4], boxes: impl Fn() -> Vec<[f32; 4]>) {
        self.fit(view, bounds);
        let is_covered = |camera: Self| boxes().into_iter().any(|b| camera.rect_to_screen(view, b).intersects(corner));
        if !is_covered(*self) {
            return;
        }
        let right = Rect::from_min_max(pos2(corner.right(), view.top()), view.max);
        let above = Rect::from_min_max(view.min, pos2(view.right(), corner.top()));
        let parts = [right, above].into_iter().filter(|part| part.width() > 1.0 && part.height() > 1.0);
        let fitted = parts.map(|part| {
            let mut camera = *self;
            camera.fit_into(view, part, bounds);
            camera
        });
        *self = fitted.max_by(|a, b| a.zoom.total_cmp(&b.zoom)).unwrap_or(*self);
    }

    /// Interpolates between two cameras, `t` in 0..=1.
    pub fn lerp(self, to: Self, t: f32) -> Self {
        let zoom = (self.zoom.ln() + (to.zoom.ln() - self.zoom.ln()) * t).exp();
        Self { center: self.center + (to.center - self.center) * t, zoom }
    }

    /// Returns left, top, right, bottom of the part of the picture in view.
    pub fn visible_part(self, view: Rect) -> [f32; 4] {
        let (a, b) = (self.to_picture(view, view.min), self.to_picture(view, view.max));
        [a[0], a[1], b[0], b[1]]
    }
}

/// Whether two boxes (left, top, right, bottom) overlap.
pub(super) fn overlaps(a: &[f32; 4], b: &[f32; 4]) -> bool {
    a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3]
}

/// Maps a point from one rect to another, at the same shares of width and height.
pub(super) fn map_point(from: [f32; 4], to: [f32; 4], p: Pos2) -> Pos2 {
    let share = |a: f32, b: f32, x: f32| if b > a { (x - a) / (b - a) } else { 0.5 };
    let (sx, sy) = (share(from[0], from[2], p.x), share(from[1], from[3], p.y));
    pos2(to[0] + sx * (to[2] - to[0]), to[1] + sy * (to[3] - to[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zooming_keeps_what_is_under_the_pointer() {
        let view = Rect::from_min_size(pos2(10.0, 20.0), vec2(400.0, 300.0));
        let mut camera = Camera { center: vec2(70.0, -30.0), zoom: 0.7 };
        let at = pos2(77.0, 222.0);
        let before = camera.to_picture(view, at);
        camera.zoom_at(view, at, 3.0);
        let after = camera.to_screen(view, before);
        assert!((after - at).length() < 0.01);
    }

    #[test]
    fn fitting_leaves_a_covered_corner_free() {
        let view = Rect::from_min_size(pos2(10.0, 20.0), vec2(400.0, 300.0));
        let corner = Rect::from_min_max(pos2(18.0, 240.0), pos2(120.0, 312.0));
        for bounds in [[0.0, 0.0, 800.0, 100.0], [0.0, 0.0, 90.0, 900.0], [0.0, 0.0, 500.0, 400.0]] {
            let mut camera = Camera::default();
            camera.fit_around(view, corner, bounds, || vec![bounds]);
            let shown = camera.rect_to_screen(view, bounds);
            assert!(view.contains_rect(shown) && !shown.intersects(corner), "{bounds:?}: {shown:?}");
        }
        let mut camera = Camera::default();
        camera.fit_around(view, corner, [0.0, 0.0, 500.0, 400.0], || vec![[400.0, 0.0, 500.0, 100.0]]);
        let mut plain = Camera::default();
        plain.fit(view, [0.0, 0.0, 500.0, 400.0]);
        assert_eq!(camera, plain, "nothing lies there");
    }

    #[test]
    fn fitting_shows_all() {
        let view = Rect::from_min_size(pos2(10.0, 20.0), vec2(400.0, 300.0));
        let mut camera = Camera::default();
        camera.fit(view, [-50.0, 0.0, 5000.0, 100.0]);
        assert!(view.contains_rect(camera.rect_to_screen(view, [-50.0, 0.0, 5000.0, 100.0])));
    }
}
