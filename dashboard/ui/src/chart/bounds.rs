//! The part of the plane that a chart shows, and how values map to it.
//!
//! A scale maps a value to *plot space* first (its logarithm, say); bounds, zoom and pan live in plot space, where
//! they are linear.

use crate::address::{Accepts, Value};

/// The mapping of values to plot space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// The values themselves.
    #[default]
    Linear,
    /// The decimal logarithm; values of zero and below have no place.
    Log10,
}

impl Scale {
    /// Maps a value to plot space; NaN where the scale has no place for it.
    pub fn forward(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log10 => {
                if value > 0.0 {
                    value.log10()
                } else {
                    f64::NAN
                }
            }
        }
    }

    /// Maps plot space to values.
    pub fn inverse(self, plot: f64) -> f64 {
        match self {
            Self::Linear => plot,
            Self::Log10 => 10f64.powf(plot),
        }
    }
}

impl Value for Scale {
    fn accepts() -> Accepts {
        Accepts::Flag
    }

    fn texts(&self) -> Vec<String> {
        (*self == Self::Log10).texts()
    }

    fn from_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        bool::from_texts(texts).map(|is_log| if is_log { Self::Log10 } else { Self::Linear })
    }
}

/// A rectangle in plot space, `min < max` on both axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Least and greatest x.
    pub x: [f64; 2],
    /// Least and greatest y.
    pub y: [f64; 2],
}

impl Bounds {
    /// Bounds around the extents of data. Empty extents are widened, and y gets a margin of 5 %. Extents that are not
    /// finite (no data) give the unit square.
    pub fn around(x: [f64; 2], y: [f64; 2]) -> Self {
        Self { x: widened(x, 0.0), y: widened(y, 0.05) }
    }

    /// Whether both axes have a finite, positive length that floating point can still divide.
    pub fn is_usable(&self) -> bool {
        [self.x, self.y].iter().all(|[lo, hi]| {
            let span = hi - lo;
            span.is_finite() && span > 1e-12 * lo.abs().max(hi.abs()).max(1e-290)
        })
    }

    /// Position of `x` across the chart: 0 at the left edge, 1 at the right.
    pub fn across(&self, x: f64) -> f64 {
        (x - self.x[0]) / (self.x[1] - self.x[0])
    }

    /// Position of plot-space `y` up the chart: 0 at the bottom, 1 at the top.
    pub fn up(&self, y: f64) -> f64 {
        (y - self.y[0]) / (self.y[1] - self.y[0])
    }

    /// The x at a position across; the inverse of [`across`](Self::across).
    pub fn x_at(&self, across: f64) -> f64 {
        self.x[0] + across * (self.x[1] - self.x[0])
    }

    /// The plot-space y at a position up; the inverse of [`up`](Self::up).
    pub fn y_at(&self, up: f64) -> f64 {
        self.y[0] + up * (self.y[1] - self.y[0])
    }

    /// Zooms by `factor` (above 1 shows less); the point at (`across`, `up`) stays where it is. Unchanged where the
    /// result would be finer than floating point can distinguish.
    pub fn zoomed(&self, factor: [f64; 2], across: f64, up: f64) -> Self {
        let zoom_axis = |[lo, hi]: [f64; 2], factor: f64, share: f64| {
            let pivot = lo + share * (hi - lo);
            [pivot - (pivot - lo) / factor, pivot + (hi - pivot) / factor]
        };
        let zoomed = Self { x: zoom_axis(self.x, factor[0], across), y: zoom_axis(self.y, factor[1], up) };
        if zoomed.is_usable() { zoomed } else { *self }
    }

    /// Moves by shares of width and height.
    pub fn moved(&self, across: f64, up: f64) -> Self {
        let shift = |[lo, hi]: [f64; 2], share: f64| {
            let delta = share * (hi - lo);
            [lo + delta, hi + delta]
        };
        Self { x: shift(self.x, across), y: shift(self.y, up) }
    }
}

/// The least and the greatest of the values; an empty interval where there are none.
pub fn extent(values: impl IntoIterator<Item = f64>) -> [f64; 2] {
    values.into_iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[lo, hi], value| [lo.min(value), hi.max(value)])
}

/// Widens an extent by `margin` times its length; an empty extent gets a length.
fn widened([lo, hi]: [f64; 2], margin: f64) -> [f64; 2] {
    if !(lo.is_finite() && hi.is_finite() && lo <= hi) {
        return [0.0, 1.0];
    }
    let span = hi - lo;
    if !span.is_finite() {
        return [lo / 2.0, hi / 2.0];
    }
    if span <= 1e-9 * lo.abs().max(hi.abs()) {
        let half = if lo == 0.0 { 0.5 } else { 0.05 * lo.abs() };
        return [lo - half, hi + half];
    }
    [lo - margin * span, hi + margin * span]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn degenerate_extents_are_widened() {
        assert_eq!(Bounds::around([f64::INFINITY, f64::NEG_INFINITY], [0.0, 0.0]).x, [0.0, 1.0]);
        assert_eq!(Bounds::around([5.0, 5.0], [0.0, 0.0]).y, [-0.5, 0.5]);
        assert!(Bounds::around([0.0, 1.0], [f64::MIN, f64::MAX]).y.iter().all(|y| y.is_finite()));
    }

    proptest! {
        #[test]
        fn around_is_usable_and_holds_the_data(a in -1e12..1e12f64, b in -1e12..1e12f64, c in -1e12..1e12f64) {
            let bounds = Bounds::around([a.min(b), a.max(b)], [c, c]);
            prop_assert!(bounds.is_usable());
            prop_assert!((0.0..=1.0).contains(&bounds.across(a)) && (0.0..=1.0).contains(&bounds.up(c)));
        }

        #[test]
        fn zoom_keeps_the_pivot(at in 0.0..1.0f64, factor in 0.1..10.0f64) {
            let bounds = Bounds { x: [10.0, 20.0], y: [-1.0, 1.0] };
            let pivot = bounds.x_at(at);
            let zoomed = bounds.zoomed([factor, 1.0], at, 0.5);
            prop_assert!((zoomed.x_at(at) - pivot).abs() < 1e-9);
        }
    }
}
