//! How the values of a series are distributed at each step: quantiles of its histograms, thinned to what fits. No egui.

use super::bins::{position, thinned};
use crate::cards::XAxis;
use summaries::{Histogram, HistogramSeries};
use ui::chart::{Bounds, extent};

/// Steps of a card at most.
pub const MAX_STEPS: usize = 400;
const N: usize = Histogram::QUANTILES.len();

/// The quantiles of one histogram.
#[derive(Clone, Debug)]
pub struct BandRow {
    /// Its row in the series.
    pub row: usize,
    /// Its place on the chosen axis.
    pub x: f64,
    /// By [`Histogram::QUANTILES`], least first.
    pub values: [f64; N],
}

impl BandRow {
    /// The value that half of the values are below.
    pub fn median(&self) -> f64 {
        self.values[N / 2]
    }
}

/// The bands of a series; made anew when it grew or the axis changed.
#[derive(Clone, Debug)]
pub struct Bands {
    /// Oldest first.
    pub rows: Vec<BandRow>,
    /// What they span.
    pub bounds: Bounds,
    stamp: Option<(usize, XAxis)>,
}

impl Default for Bands {
    fn default() -> Self {
        Self { rows: Vec::new(), bounds: Bounds::around([0.0, 1.0], [0.0, 1.0]), stamp: None }
    }
}

impl Bands {
    /// Takes in a series. Many rows are thinned: the newest is always there. One that cannot be read, or whose values are
    /// not finite, is left out.
    pub fn update(&mut self, series: &HistogramSeries, axis: XAxis) {
        let stamp = Some((series.len(), axis));
        if self.stamp == stamp {
            return;
        }
        self.stamp = stamp;
        let band = |row: usize| {
            let histogram = series.histogram(row).ok()?;
            let values = Histogram::QUANTILES.map(|q| histogram.quantile(q));
            values.iter().all(|v| v.is_finite()).then(|| BandRow { row, x: position(series, row, axis), values })
        };
        self.rows = thinned(series.len(), MAX_STEPS).into_iter().filter_map(band).collect();
        let (x, y) = (self.rows.iter().map(|row| row.x), self.rows.iter().flat_map(|row| row.values));
        self.bounds = Bounds::around(extent(x), extent(y));
    }

    /// The row whose place is next to `x`.
    pub fn nearest(&self, x: f64) -> Option<&BandRow> {
        self.rows.iter().min_by(|a, b| (a.x - x).abs().total_cmp(&(b.x - x).abs()))
    }
}
