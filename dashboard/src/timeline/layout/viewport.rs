//! The range of time on the screen and how times become pixels.
//!
//! Times stay integers: a [`Viewport`] is half open, `[start, end)` in ns from the trace's origin, and a [`Scale`]
//! converts to floats only after subtracting the view's start. So a slice of 12 ns an hour into a trace is drawn as
//! exactly as one at its beginning.

use std::ops::Range;

/// The shortest view, ns. Times are whole ns, so a shorter view would show nothing more.
const MIN_NS: i64 = 10;
/// Duration of a smooth change of view, seconds.
const EASE_S: f64 = 0.16;

/// The range of time on the screen: at least [`MIN_NS`] long, within the trace and a small margin around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Viewport {
    pub start: i64,
    pub end: i64,
}

impl Viewport {
    /// The view of the entire `trace` with a margin.
    pub fn of_trace(trace: &Range<i64>) -> Self {
        let bounds = bounds(trace);
        Self { start: bounds.start, end: bounds.end }
    }

    /// The length of the view, ns.
    pub fn ns(self) -> i64 {
        self.end.saturating_sub(self.start)
    }

    /// The view as a range, ns.
    pub fn range(self) -> Range<i64> {
        self.start..self.end
    }

    /// Shows `factor` times as much time; the time at `anchor` (0 left edge, 1 right edge) stays where it is.
    #[must_use]
    pub fn zoomed(self, factor: f64, anchor: f64, trace: &Range<i64>) -> Self {
        let len = self.ns() as f64;
        let new_len = (len * factor).round().clamp(MIN_NS as f64, bounds_len(trace) as f64);
        let start = self.start.saturating_add(((len - new_len) * anchor).round() as i64);
        Self { start, end: start.saturating_add(new_len as i64) }.clamped(trace)
    }

    /// Moves by `share` of the view's length, to the right when positive.
    #[must_use]
    pub fn panned(self, share: f64, trace: &Range<i64>) -> Self {
        self.moved((self.ns() as f64 * share).round() as i64, trace)
    }

    /// Moves by `ns`, also beyond the end of the trace.
    #[must_use]
    pub fn shifted(self, ns: i64) -> Self {
        Self { start: self.start.saturating_add(ns), end: self.end.saturating_add(ns) }
    }

    /// Moves by `ns` within the trace, to the right when positive.
    #[must_use]
    pub fn moved(self, ns: i64, trace: &Range<i64>) -> Self {
        self.shifted(ns).clamped(trace)
    }

    /// Shows `range` with a tenth of its length on each side.
    #[must_use]
    pub fn fitted(range: &Range<i64>, trace: &Range<i64>) -> Self {
        let len = range.end.saturating_sub(range.start).max(MIN_NS);
        let margin = len / 10;
        Self { start: range.start.saturating_sub(margin), end: range.start.saturating_add(len + margin) }.clamped(trace)
    }

    /// Makes `range` visible: unchanged where `range` is in the view already, else centred on `range` at the same
    /// length. A `range` that is longer than the view is fitted.
    #[must_use]
    pub fn revealing(self, range: &Range<i64>, trace: &Range<i64>) -> Self {
        let len = range.end.saturating_sub(range.start);
        if len >= self.ns() {
            return Self::fitted(range, trace);
        }
        if range.start >= self.start && range.end <= self.end {
            return self;
        }
        let middle = range.start.saturating_add(len / 2);
        let start = middle.saturating_sub(self.ns() / 2);
        Self { start, end: start.saturating_add(self.ns()) }.clamped(trace)
    }

    /// Moves the view so that it ends at `end`.
    #[must_use]
    pub fn ending_at(self, end: i64) -> Self {
        Self { start: end.saturating_sub(self.ns()), end }
    }

    /// Moves and shortens the view into the trace's bounds; a view below [`MIN_NS`] becomes that long.
    #[must_use]
    pub fn clamped(self, trace: &Range<i64>) -> Self {
        let bounds = bounds(trace);
        let len = self.ns().clamp(MIN_NS, bounds.end - bounds.start);
        let start = self.start.clamp(bounds.start, bounds.end - len);
        Self { start, end: start + len }
    }

    /// Interpolates between `self` (`t` = 0) and `to` (`t` = 1). The length changes by a constant factor per time, so
    /// that a long zoom looks even.
    #[must_use]
    pub fn lerp(self, to: Self, t: f64) -> Self {
        if t >= 1.0 {
            return to;
        }
        let (from_len, to_len) = (self.ns().max(1) as f64, to.ns().max(1) as f64);
        let len = from_len * (to_len / from_len).powf(t);
        // As a share of the change of length, so that the time which both views show at the same x stays there.
        let share = if (to_len - from_len).abs() < 1.0 { t } else { (len - from_len) / (to_len - from_len) };
        let start = self.start.saturating_add(((to.start as f64 - self.start as f64) * share).round() as i64);
        Self { start, end: start.saturating_add((len.round() as i64).max(1)) }
    }
}

/// The bounds of a view: the trace with a fiftieth of its length on each side.
fn bounds(trace: &Range<i64>) -> Range<i64> {
    let len = trace.end.saturating_sub(trace.start).max(0);
    let margin = (len / 50).max(MIN_NS);
    trace.start.saturating_sub(margin)..trace.start.saturating_add(len).saturating_add(margin)
}

fn bounds_len(trace: &Range<i64>) -> i64 {
    let bounds = bounds(trace);
    bounds.end - bounds.start
}

/// Converts between times of a view and x on the screen, in points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    start: i64,
    left: f32,
    width: f32,
    ns_per_px: f64,
    px_per_ns: f64,
}

impl Scale {
    /// The scale of a `view` that is drawn from x `left` to `left + width`.
    pub fn new(view: Viewport, left: f32, width: f32) -> Self {
        let width = width.max(1.0);
        let (ns, px) = (view.ns().max(1) as f64, f64::from(width));
        Self { start: view.start, left, width, ns_per_px: ns / px, px_per_ns: px / ns }
    }

    /// The x of `time`. Times outside the view lie at most one view's width beyond its edge.
    pub fn x_from_time(&self, time: i64) -> f32 {
        let px = time.saturating_sub(self.start) as f64 * self.px_per_ns;
        let width = f64::from(self.width);
        self.left + px.clamp(-width, 2.0 * width) as f32
    }

    /// The time at `x`, ns.
    pub fn time_from_x(&self, x: f32) -> i64 {
        self.start.saturating_add((f64::from(x - self.left) * self.ns_per_px).floor() as i64)
    }

    /// The time per point, ns.
    pub fn ns_per_px(&self) -> f64 {
        self.ns_per_px
    }

    /// The time that `px` points cover, ns; at least 1.
    pub fn ns_of_px(&self, px: f32) -> i64 {
        (f64::from(px) * self.ns_per_px).ceil().max(1.0) as i64
    }

    pub fn left(&self) -> f32 {
        self.left
    }

    pub fn right(&self) -> f32 {
        self.left + self.width
    }

    pub fn width(&self) -> f32 {
        self.width
    }
}

/// A view that moves to its target smoothly. Input during the move applies to the target, so that no input waits for
/// the end of the move.
#[derive(Clone, Copy, Debug, Default)]
pub struct EasedViewport {
    from: Viewport,
    target: Viewport,
    /// The start of the move on the frame's clock, seconds.
    start_s: f64,
}

impl EasedViewport {
    /// A view that does not move.
    pub fn resting(view: Viewport) -> Self {
        Self { from: view, target: view, start_s: f64::NEG_INFINITY }
    }

    /// The view at `now`, seconds on the frame's clock.
    pub fn view(&self, now: f64) -> Viewport {
        let t = ((now - self.start_s) / EASE_S).clamp(0.0, 1.0);
        // Cubic ease-out.
        self.from.lerp(self.target, 1.0 - (1.0 - t).powi(3))
    }

    /// The view at the end of the move.
    pub fn target(&self) -> Viewport {
        self.target
    }

    /// Shifts both views of the move by `ns`.
    #[must_use]
    pub fn shifted(&self, ns: i64) -> Self {
        Self { from: self.from.shifted(ns), target: self.target.shifted(ns), start_s: self.start_s }
    }

    /// Whether `now` is during a move.
    pub fn is_moving(&self, now: f64) -> bool {
        self.from != self.target && now - self.start_s < EASE_S
    }

    /// Starts a move from the view at `now` to `target`.
    pub fn glide(&mut self, target: Viewport, now: f64) {
        if target != self.target {
            *self = Self { from: self.view(now), target, start_s: now };
        }
    }

    /// Shows `target` at once, as drags, scrolling and following do.
    pub fn jump(&mut self, target: Viewport) {
        *self = Self::resting(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TRACE: Range<i64> = 0..1_000_000;

    proptest! {
        #[test]
        fn a_pixel_and_back_is_within_a_pixel(
            start in -1_i64 << 60..1 << 60, len in 10_i64..1 << 50, at in 0.0_f64..1.0, width in 50.0_f32..4000.0,
        ) {
            let view = Viewport { start, end: start + len };
            let scale = Scale::new(view, 100.0, width);
            let time = start + (len as f64 * at) as i64;
            let back = scale.time_from_x(scale.x_from_time(time));
            let tolerance = (scale.ns_per_px() * 0.01).max(1.0) + scale.ns_per_px() * f64::from(width) * 1e-6;
            prop_assert!((back - time).abs() as f64 <= tolerance, "{time} -> {back}");
        }

        #[test]
        fn zooming_keeps_the_time_under_the_cursor(
            start in 0_i64..900_000, len in 1_000_i64..100_000, at in 0.0_f64..1.0, factor in 0.2_f64..2.0,
        ) {
            let wide = -10_000_000..20_000_000;
            let view = Viewport { start, end: start + len };
            let zoomed = view.zoomed(factor, at, &wide);
            let before = start as f64 + len as f64 * at;
            let after = zoomed.start as f64 + zoomed.ns() as f64 * at;
            prop_assert!((before - after).abs() <= 2.0);
        }

        #[test]
        fn any_sequence_stays_in_bounds(steps in proptest::collection::vec((0_u8..4, -3.0_f64..3.0), 0..50)) {
            let mut view = Viewport::of_trace(&TRACE);
            for (what, x) in steps {
                view = match what {
                    0 => view.zoomed(x.exp2().powi(6), 0.3, &TRACE),
                    1 => view.panned(x, &TRACE),
                    2 => view.moved((x * 1e9) as i64, &TRACE),
                    _ => Viewport::fitted(&(0..(x * 1e6) as i64), &TRACE),
                };
                prop_assert!(view.ns() >= MIN_NS);
                prop_assert!(view.start >= -20_000 && view.end <= 1_020_000, "{view:?}");
            }
        }
    }

    #[test]
    fn the_smallest_and_largest_views() {
        let view = Viewport::of_trace(&TRACE);
        assert_eq!(view, Viewport { start: -20_000, end: 1_020_000 });
        assert_eq!(view.zoomed(100.0, 0.5, &TRACE), view);
        assert_eq!(view.zoomed(1e-12, 0.5, &TRACE).ns(), MIN_NS);
        assert_eq!(Viewport::of_trace(&(0..0)), Viewport { start: -10, end: 10 });
        assert_eq!(Viewport::of_trace(&(5..6)).ns(), 21);
        let huge = Viewport::of_trace(&(-(1 << 61)..1 << 61));
        assert!(huge.ns() > 1 << 62);
    }

    #[test]
    fn revealing_moves_only_when_needed() {
        let view = Viewport { start: 100, end: 200 };
        assert_eq!(view.revealing(&(120..130), &TRACE), view);
        assert_eq!(view.revealing(&(500..510), &TRACE), Viewport { start: 455, end: 555 });
        assert_eq!(view.revealing(&(500..700), &TRACE), Viewport { start: 480, end: 720 });
    }

    #[test]
    fn easing_begins_and_ends_exactly() {
        let (a, b) = (Viewport { start: 0, end: 1000 }, Viewport { start: 400, end: 500 });
        let mut eased = EasedViewport::resting(a);
        eased.glide(b, 10.0);
        assert_eq!(eased.view(10.0), a);
        assert_eq!(eased.view(10.0 + EASE_S), b);
        assert!(eased.is_moving(10.05) && !eased.is_moving(10.2));
        let middle = eased.view(10.05);
        assert!(middle.ns() < a.ns() && middle.ns() > b.ns());
        assert!(middle.start <= b.start && middle.end >= b.end, "{middle:?}");
    }
}
