//! The distribution of a series' values at each step: quantiles of its histograms, thinned to the card's width. No
//! egui.

use super::bins::{position, thinned};
use crate::cards::XAxis;
use summaries::{Histogram, HistogramSeries};
use ui::chart::{Bounds, extent};

/// Steps that a card shows, at most.
pub const MAX_STEPS: usize = 400;
/// The number of quantiles.
const N: usize = Histogram::QUANTILES.len();

/// The quantiles of one histogram.
#[derive(Clone, Debug)]
pub struct BandRow {
    /// The histogram's row in the series.
    pub row: usize,
    /// Position on the chosen axis.
    pub x: f64,
    /// Values of the quantiles [`Histogram::QUANTILES`], the least first.
    pub values: [f64; N],
}

impl BandRow {
    /// The median.
    pub fn median(&self) -> f64 {
        self.values[N / 2]
    }
}

/// The bands of a series, recomputed when the series grew or the axis changed.
#[derive(Clone, Debug)]
pub struct Bands {
    /// The bands' rows, the oldest first.
    pub rows: Vec<BandRow>,
    /// The bounds of all rows.
    pub bounds: Bounds,
    /// The number of rows and the axis for which the bands were computed.
    stamp: Option<(usize, XAxis)>,
}

impl Default for Bands {
    fn default() -> Self {
        Self { rows: Vec::new(), bounds: Bounds::around([0.0, 1.0], [0.0, 1.0]), stamp: None }
    }
}

impl Bands {
    /// Updates the bands. A series of many rows is thinned; its newest row always stays. Rows that cannot be read or
    /// have values that are not finite are left out.
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

    /// Returns the row whose position is nearest to `x`.
    pub fn nearest(&self, x: f64) -> Option<&BandRow> {
        self.rows.iter().min_by(|a, b| (a.x - x).abs().total_cmp(&(b.x - x).abs()))
    }
}
