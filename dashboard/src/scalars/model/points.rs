//! A series as a chart reads it: steps, wall times and values, the chosen x axis, and its pieces.

use std::ops::Range;

use crate::cards::XAxis;
use crate::catalogue::Member;
use summaries::{Numbers, ScalarSeries};
use ui::chart::Scale;

/// Another tag's values in place of the axis.
#[derive(Clone, Debug, Default)]
pub struct TagX {
    /// The x of each point, smoothed where the values are.
    pub x: Vec<f64>,
    /// The smoothed values and the raw points; `None` without smoothing.
    pub smoothed: Option<SmoothedPoints>,
}

/// Points that were smoothed over their steps, before they were put in the order of another tag's values.
#[derive(Clone, Debug, Default)]
pub struct SmoothedPoints {
    pub values: Numbers,
    /// The x of the raw points, ascending,
    pub raw_x: Vec<f64>,
    /// and their values.
    pub raw: Numbers,
}

/// The points of one series.
#[derive(Clone, Copy, Debug)]
pub struct Points<'a> {
    series: &'a ScalarSeries,
    own: Option<&'a TagX>,
    x_scale: Scale,
}

impl<'a> Points<'a> {
    /// The points of a series on the axis of the settings.
    pub fn new(series: &'a ScalarSeries) -> Self {
        Self { series, own: None, x_scale: Scale::Linear }
    }

    /// The points of a series with another tag's values as x.
    ///
    /// # Panics
    /// When a point beyond the end of `x` is read.
    pub fn at(series: &'a ScalarSeries, own: &'a TagX) -> Self {
        Self { series, own: Some(own), x_scale: Scale::Linear }
    }

    /// The points on an x axis of this scale.
    #[must_use]
    pub fn with_x_scale(self, x_scale: Scale) -> Self {
        Self { x_scale, ..self }
    }

    /// Whether x are another tag's values, which are ascending whatever the steps.
    pub fn has_tag_x(&self) -> bool {
        self.own.is_some()
    }

    /// The values that were smoothed before another tag's values became x; `None` for others.
    pub fn smoothed(&self) -> Option<&'a SmoothedPoints> {
        self.own?.smoothed.as_ref()
    }

    pub fn series(&self) -> &'a ScalarSeries {
        self.series
    }

    pub fn len(&self) -> usize {
        self.series.len()
    }

    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    pub fn values(&self) -> &'a Numbers {
        self.series.values()
    }

    /// The x of a point in plot space; minus infinity where the scale has no place for it. Exact for steps below 2^53.
    pub fn x(&self, axis: XAxis, i: usize) -> f64 {
        let x = match (self.own, axis) {
            (Some(own), _) => own.x[i],
            (None, XAxis::Step) => self.series.step(i) as f64,
            (None, XAxis::Relative) => self.series.wall(i) - self.series.wall(0),
            (None, XAxis::Wall) => self.series.wall(i),
        };
        self.place(x)
    }

    /// Maps an x to plot space.
    pub fn place(&self, x: f64) -> f64 {
        match self.x_scale {
            Scale::Linear => x,
            // Before all other points, so that x stays ascending.
            Scale::Log10 if x <= 0.0 => f64::NEG_INFINITY,
            scale => scale.forward(x),
        }
    }

    /// Seconds since the first point.
    pub fn relative_s(&self, i: usize) -> f64 {
        let begin = match self.own {
            None => self.series.wall(0),
            Some(_) => self.series.points().map(|point| point.wall).fold(f64::INFINITY, f64::min),
        };
        self.series.wall(i) - begin
    }
}

/// Ranges of indices over which x never decreases. A run that was restarted from a checkpoint has a range for each
/// start; each is drawn as a separate line.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    starts: Vec<usize>,
    n: usize,
    x_min: f64,
    x_max: f64,
}

impl Pieces {
    /// Adds the points after those added before; the axis must be the same.
    pub fn update(&mut self, points: Points<'_>, axis: XAxis) {
        if points.len() < self.n {
            *self = Self::default();
        }
        if self.n == 0 {
            (self.x_min, self.x_max) = (f64::INFINITY, f64::NEG_INFINITY);
        }
        for i in self.n..points.len() {
            let x = points.x(axis, i);
            if i == 0 || x < points.x(axis, i - 1) || x.is_nan() {
                self.starts.push(i);
            }
            if x.is_finite() {
                self.x_min = self.x_min.min(x);
                self.x_max = self.x_max.max(x);
            }
        }
        self.n = points.len();
    }

    /// The number of points added.
    pub fn len(&self) -> usize {
        self.n
    }

    /// The ranges in the order they were written.
    pub fn ranges(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + '_ {
        (0..self.starts.len()).map(|i| self.starts[i]..self.starts.get(i + 1).copied().unwrap_or(self.n))
    }

    /// The minimum and maximum x; meaningless before the first update, and an empty interval without points.
    pub fn x_extent(&self) -> [f64; 2] {
        [self.x_min, self.x_max]
    }

    /// The point with the nearest x; of equally near ones the newest.
    pub fn nearest(&self, points: Points<'_>, axis: XAxis, x: f64) -> Option<usize> {
        let mut best: Option<(f64, usize)> = None;
        for range in self.ranges().rev() {
            let after =
                range.start + ui::chart::decimate::lower_bound(range.len(), |i| points.x(axis, range.start + i) < x);
            for i in [after, after.wrapping_sub(1)] {
                if range.contains(&i) {
                    let distance = (points.x(axis, i) - x).abs();
                    if best.is_none_or(|(least, _)| distance < least) {
                        best = Some((distance, i));
                    }
                }
            }
        }
        best.map(|(_, i)| i)
    }
}

/// A line of a card in one frame.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    pub member: &'a Member,
    /// The line's points, at least one.
    pub points: Points<'a>,
    /// The generation of the points: see [`Curve::update`](super::curve::Curve::update).
    pub generation: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalars::model::testing;

    fn series(steps: &[i64]) -> ScalarSeries {
        testing::series(&steps.iter().map(|step| (*step, 0.0)).collect::<Vec<_>>())
    }

    fn pieces(steps: &[i64]) -> (Pieces, ScalarSeries) {
        let mut pieces = Pieces::default();
        // In two parts, as a growing file gives them.
        pieces.update(Points::new(&series(&steps[..steps.len() / 2])), XAxis::Step);
        let series = series(steps);
        pieces.update(Points::new(&series), XAxis::Step);
        (pieces, series)
    }

    #[test]
    fn a_restart_begins_a_new_piece() {
        let (pieces, series) = pieces(&[0, 1, 2, 3, 2, 3, 4, 4, 0]);
        assert_eq!(pieces.ranges().collect::<Vec<_>>(), [0..4, 4..8, 8..9]);
        assert_eq!(pieces.x_extent(), [0.0, 4.0]);
        let points = Points::new(&series);
        assert_eq!(pieces.nearest(points, XAxis::Step, 2.9), Some(5), "the newer of two points at step 3");
        assert_eq!(pieces.nearest(points, XAxis::Step, 99.0), Some(7));
        assert_eq!(pieces.nearest(points, XAxis::Step, -5.0), Some(8));
    }

    #[test]
    fn nothing_is_nearest_to_nothing() {
        let (pieces, series) = pieces(&[]);
        assert_eq!(pieces.nearest(Points::new(&series), XAxis::Step, 1.0), None);
        assert!(pieces.x_extent()[0] > pieces.x_extent()[1]);
    }
}
