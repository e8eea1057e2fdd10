//! The cache of one series for drawing: smoothed values, extents, and lines cut to a window. It is valid until its
//! input changes, so that an unchanged frame costs nothing and a new point costs O(1).

use super::points::{Pieces, Points};
use super::smooth::Smoother;
use crate::cards::XAxis;
use std::ops::Range;
use summaries::{Extent, Numbers};
use ui::chart::{Polylines, Scale, XWindow, decimate::lower_bound, extent};

/// Settings of curves, common to all cards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveSettings {
    /// The quantity on the x axis,
    pub axis: XAxis,
    /// unless another tag's values are x.
    pub by_tag: bool,
    /// Weight of the moving average, 0..1; 0 draws values as they are.
    pub smoothing: f64,
    /// How y maps to plot space.
    pub scale: Scale,
    /// Whether x is logarithmic; wall time never is.
    pub log_x: bool,
    /// Whether the y axis fits all values, rather than those between the 5 % and the 95 % quantile.
    pub shows_outliers: bool,
}

impl Default for CurveSettings {
    /// TensorBoard's defaults.
    fn default() -> Self {
        Self {
            axis: XAxis::Step,
            by_tag: false,
            smoothing: 0.6,
            scale: Scale::Linear,
            log_x: false,
            shows_outliers: true,
        }
    }
}

impl CurveSettings {
    /// The mapping of x to plot space.
    pub fn x_scale(&self) -> Scale {
        let has_log = self.by_tag || self.axis != XAxis::Wall;
        if self.log_x && has_log { Scale::Log10 } else { Scale::Linear }
    }
}

/// The cache of one series.
#[derive(Debug, Default)]
pub struct Curve {
    of: (XAxis, Scale, u64),
    pieces: Pieces,
    smoother: Smoother,
    extent: Option<(usize, CurveSettings, [f64; 2])>,
}

impl Curve {
    /// Adds new points, and recomputes everything after a change of axis, weight or `generation`. Call in every frame
    /// before the other methods. Points of another `generation` are different from the first one on.
    pub fn update(&mut self, points: Points<'_>, generation: u64, settings: CurveSettings) {
        let of = (settings.axis, settings.x_scale(), generation);
        if of.2 != self.of.2 {
            *self = Self::default();
        }
        if of != self.of {
            self.of = of;
            self.pieces = Pieces::default();
        }
        self.pieces.update(points, settings.axis);
        if settings.smoothing > 0.0 && points.smoothed().is_none() {
            self.smoother.update(points.values(), settings.smoothing);
        }
    }

    /// The number of points that an update with these arguments would process.
    pub fn n_stale(&self, points: Points<'_>, generation: u64, settings: CurveSettings) -> usize {
        if self.of != (settings.axis, settings.x_scale(), generation) {
            return points.len();
        }
        let n_current = self.pieces.len();
        let is_smoothed_here = settings.smoothing > 0.0 && points.smoothed().is_none();
        let n_current =
            if is_smoothed_here { n_current.min(self.smoother.len_at(settings.smoothing)) } else { n_current };
        points.len().checked_sub(n_current).unwrap_or(points.len())
    }

    /// Least and greatest x.
    pub fn x_extent(&self, points: Points<'_>) -> [f64; 2] {
        let [lo, hi] = self.pieces.x_extent();
        match points.smoothed().map(|smoothed| &smoothed.raw_x[..]) {
            Some([first, .., last]) => {
                let ends = [*first, *last].map(|x| points.place(x)).map(|x| x.is_finite().then_some(x));
                [ends[0].map_or(lo, |x| lo.min(x)), ends[1].map_or(hi, |x| hi.max(x))]
            }
            _ => [lo, hi],
        }
    }

    /// Least and greatest y in plot space; an empty interval where no value has a place there.
    pub fn y_extent(&mut self, points: Points<'_>, settings: CurveSettings) -> [f64; 2] {
        match self.extent {
            Some((n, of, extent)) if n == points.len() && of == settings => extent,
            _ => {
                let extent = y_extent(points.values(), settings);
                self.extent = Some((points.len(), settings, extent));
                extent
            }
        }
    }

    /// The raw and the smoothed line in a window, in plot space; the smoothed one is empty without smoothing.
    pub fn lines_in_window(
        &self,
        points: Points<'_>,
        settings: CurveSettings,
        window: XWindow,
    ) -> (Polylines, Polylines) {
        let (mut raw, mut smooth) = (Polylines::default(), Polylines::default());
        let place = |y: f64| if y.is_finite() { settings.scale.forward(y) } else { y };
        let add = |to: &mut Polylines, range: Range<usize>, x: &dyn Fn(usize) -> f64, values: &Numbers| {
            // Points without a place on the axis come first.
            let from = range.start + lower_bound(range.len(), |i| x(range.start + i) == f64::NEG_INFINITY);
            let extent =
                |rows| Some(values.extent(rows)).filter(Extent::is_finite).map(|extent| [extent.min, extent.max]);
            to.add_numbers(from..range.end, window, x, |row| values.get(row), extent, place);
        };
        let x = |i: usize| points.x(settings.axis, i);
        let smoothed = self.smooth_values(points, settings);
        for range in self.pieces.ranges() {
            // Points that were smoothed before they got another tag's x have their raw values at other x, in another
            // order.
            if points.smoothed().is_none() {
                add(&mut raw, range.clone(), &x, points.values());
            }
            if let Some(smoothed) = smoothed {
                add(&mut smooth, range, &x, smoothed);
            }
        }
        if let Some(own) = points.smoothed() {
            add(&mut raw, 0..own.raw_x.len(), &|i| points.place(own.raw_x[i]), &own.raw);
        }
        (raw, smooth)
    }

    fn smooth_values<'a>(&'a self, points: Points<'a>, settings: CurveSettings) -> Option<&'a Numbers> {
        let own = points.smoothed().map(|smoothed| &smoothed.values);
        own.or_else(|| (settings.smoothing > 0.0).then(|| self.smoother.values()))
    }

    /// The smoothed value of a point; `None` without smoothing.
    pub fn smoothed(&self, points: Points<'_>, i: usize, settings: CurveSettings) -> Option<f64> {
        self.smooth_values(points, settings).map(|values| values.get(i))
    }

    pub fn nearest(&self, points: Points<'_>, settings: CurveSettings, x: f64) -> Option<usize> {
        self.pieces.nearest(points, settings.axis, x)
    }
}

fn y_extent(values: &Numbers, settings: CurveSettings) -> [f64; 2] {
    let all = values.extent(0..values.len());
    let ends = [all.min, all.max].map(|y| settings.scale.forward(y));
    if settings.shows_outliers && ends.iter().all(|y| y.is_finite()) {
        return ends;
    }
    let places = values.iter().map(|y| settings.scale.forward(y)).filter(|y| y.is_finite());
    if settings.shows_outliers {
        return extent(places);
    }
    let mut places: Vec<f64> = places.collect();
    if places.is_empty() {
        return extent(places);
    }
    let mut quantile = |q: f64| {
        let place = (q * (places.len() - 1) as f64).round() as usize;
        *places.select_nth_unstable_by(place, f64::total_cmp).1
    };
    [quantile(0.05), quantile(0.95)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalars::model::testing;
    use summaries::ScalarSeries;

    fn plain() -> CurveSettings {
        CurveSettings { smoothing: 0.0, ..CurveSettings::default() }
    }

    fn series(values: &[f64]) -> ScalarSeries {
        testing::series(&(0..).zip(values.iter().copied()).collect::<Vec<_>>())
    }

    fn drawn_extent(values: &[f64], settings: CurveSettings) -> [f64; 2] {
        let series = series(values);
        let points = Points::new(&series);
        let mut curve = Curve::default();
        curve.update(points, 0, settings);
        curve.y_extent(points, settings)
    }

    #[test]
    fn extents_skip_what_has_no_place() {
        assert_eq!(drawn_extent(&[1.0, f64::NAN, 3.0, f64::INFINITY], plain()), [1.0, 3.0]);
        assert_eq!(
            drawn_extent(&[0.0, -5.0, 10.0, 1000.0], CurveSettings { scale: Scale::Log10, ..plain() }),
            [1.0, 3.0]
        );
        let none = drawn_extent(&[f64::NAN], plain());
        assert!(none[0] > none[1]);
    }

    #[test]
    fn outliers_are_left_out_by_quantile() {
        let mut values: Vec<f64> = (0..=100).map(f64::from).collect();
        values[50] = 1e9;
        let got = drawn_extent(&values, CurveSettings { shows_outliers: false, ..plain() });
        assert_eq!(got, [5.0, 96.0]);
    }

    #[test]
    fn a_logarithmic_x_leaves_out_what_has_no_place() {
        let series = testing::series(&[(-1, 5.0), (0, 6.0), (10, 7.0), (1000, 8.0)]);
        let settings = CurveSettings { log_x: true, ..plain() };
        let points = Points::new(&series).with_x_scale(settings.x_scale());
        let mut curve = Curve::default();
        assert_eq!(curve.n_stale(points, 0, settings), 4);
        curve.update(points, 0, settings);
        assert_eq!((curve.n_stale(points, 0, settings), curve.n_stale(points, 0, plain())), (0, 4));
        assert_eq!(curve.x_extent(points), [1.0, 3.0]);
        let (raw, _) = curve.lines_in_window(points, settings, XWindow { lo: 0.0, hi: 4.0, n_columns: 10 });
        assert_eq!(raw.lines().flatten().copied().collect::<Vec<_>>(), [[1.0, 7.0], [3.0, 8.0]]);
        assert_eq!(CurveSettings { axis: XAxis::Wall, ..settings }.x_scale(), Scale::Linear);
    }

    #[test]
    fn lines_of_a_window() {
        let values = [1.0, 2.0, 3.0];
        let series = series(&values);
        let points = Points::new(&series);
        let window = XWindow { lo: 0.0, hi: 2.0, n_columns: 10 };
        let mut curve = Curve::default();
        let settings = CurveSettings { smoothing: 0.6, ..plain() };
        curve.update(points, 0, settings);
        let (raw, smooth) = curve.lines_in_window(points, settings, window);
        assert_eq!((raw.n_points(), smooth.n_points()), (3, 3));
        let (raw, smooth) = curve.lines_in_window(points, plain(), window);
        assert_eq!((raw.n_points(), smooth.n_points()), (3, 0));
    }
}
