//! The points of one tag in one run, as columns.
//!
//! Columns only grow, so that the length of a series serves as the version of what a view derives from it.

use std::ops::Range;

use crate::{
    column::{Floats, Numbers, Steps, pieces},
    histograms::HistogramSeries,
    media::MediaSeries,
};

/// The points of a tag, of the kind of its first value. The variants are boxed, because a map of few tags reserves room
/// for many: unboxed series would take most of the memory of thousands of small runs.
#[derive(Debug, Clone)]
pub enum Series {
    /// Numbers.
    Scalar(Box<ScalarSeries>),
    /// Distributions.
    Histogram(Box<HistogramSeries>),
    /// Everything else: images, audio, text, tensors, hyperparameters, ...
    Media(Box<MediaSeries>),
}

impl Series {
    /// The number of points, which grows with every change and so serves as the version for caches.
    pub fn n_points(&self) -> usize {
        match self {
            Self::Scalar(s) => s.len(),
            Self::Histogram(s) => s.len(),
            Self::Media(s) => s.len(),
        }
    }

    /// The graph node that makes the values; empty when the file does not say.
    pub fn node_name(&self) -> &str {
        match self {
            Self::Scalar(s) => &s.node_name,
            Self::Histogram(s) => &s.node_name,
            Self::Media(s) => &s.node_name,
        }
    }

    /// The kind: `scalars`, `histograms`, or the plugin that shows the values, as the file names it.
    pub fn kind(&self) -> &str {
        match self {
            Self::Scalar(_) => "scalars",
            Self::Histogram(_) => "histograms",
            Self::Media(s) => s.kind(),
        }
    }

    /// Step and wall time (Unix seconds) of the newest point.
    pub fn last(&self) -> Option<(i64, f64)> {
        match self {
            Self::Scalar(s) => s.last().map(|p| (p.step, p.wall)),
            Self::Histogram(s) => s.step.last().copied().zip(s.wall.last().copied()),
            Self::Media(s) => s.last(),
        }
    }
}

/// One number of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The x axis: the program's step.
    pub step: i64,
    /// Unix seconds at which the value was written.
    pub wall: f64,
    /// The value, which may be NaN or infinite; in most files a 32-bit float.
    pub value: f64,
}

/// Numbers by step. Rows are in the order of arrival, which is the order in the file: after a restart of the program
/// steps repeat (see [`pieces`](Self::pieces)). All rows are stored, in 13 to 25 bytes each.
#[derive(Debug, Clone, Default)]
pub struct ScalarSeries {
    step: Steps,
    wall: Floats,
    value: Numbers,
    /// The graph node that makes the values; empty when the file does not say.
    pub node_name: String,
    restarts: Vec<usize>,
}

impl ScalarSeries {
    pub(crate) fn for_node(node_name: String) -> Self {
        Self { node_name, ..Self::default() }
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.step.len()
    }

    /// Whether the series has no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The step at `row`. Panics when there is no such row.
    pub fn step(&self, row: usize) -> i64 {
        self.step.get(row)
    }

    /// The wall time at `row` in Unix seconds. Panics when there is no such row.
    pub fn wall(&self, row: usize) -> f64 {
        self.wall.get(row)
    }

    /// The values, with the extent of any range of rows.
    pub fn values(&self) -> &Numbers {
        &self.value
    }

    /// The point at `row`. Panics when there is no such row.
    pub fn point(&self, row: usize) -> Point {
        Point { step: self.step(row), wall: self.wall(row), value: self.value.get(row) }
    }

    /// The newest point.
    pub fn last(&self) -> Option<Point> {
        self.len().checked_sub(1).map(|row| self.point(row))
    }

    /// All points in the order of their arrival.
    pub fn points(&self) -> impl ExactSizeIterator<Item = Point> + '_ {
        (0..self.len()).map(|row| self.point(row))
    }

    /// Ranges of rows within which the step does not fall: one, or one more for every restart of the run.
    pub fn pieces(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        pieces(&self.restarts, self.step.len())
    }

    /// Adds a point.
    pub fn push(&mut self, point: Point) {
        if self.step.last().is_some_and(|last| point.step < last) {
            self.restarts.push(self.len());
        }
        self.step.push(point.step);
        self.wall.extend(std::iter::once(point.wall));
        self.value.push(point.value);
    }
}

impl Extend<Point> for ScalarSeries {
    fn extend<T: IntoIterator<Item = Point>>(&mut self, points: T) {
        points.into_iter().for_each(|point| self.push(point));
    }
}

impl ScalarSeries {
    /// Adds points, column by column.
    pub(crate) fn append(&mut self, points: &[Point]) {
        for point in points {
            if self.step.last().is_some_and(|last| point.step < last) {
                self.restarts.push(self.step.len());
            }
            self.step.push(point.step);
        }
        self.wall.extend(points.iter().map(|point| point.wall));
        self.value.append(points.iter().map(|point| point.value));
    }
}

impl FromIterator<Point> for ScalarSeries {
    fn from_iter<T: IntoIterator<Item = Point>>(points: T) -> Self {
        let mut series = Self::default();
        series.extend(points);
        series
    }
}
