//! The points of one tag in one run, as columns.
//!
//! Columns only grow: a series' length is the stamp by which a view knows whether what it derived is still right.

use std::ops::Range;

use crate::histogram::Histogram;

/// A tag's points, by the kind of its first value.
#[derive(Debug, Clone)]
pub enum Series {
    /// Numbers.
    Scalar(ScalarSeries),
    /// Distributions.
    Histogram(HistogramSeries),
    /// What is counted but not shown yet.
    Other(OtherSeries),
}

impl Series {
    /// How many points have arrived; grows with every change, so it serves as the stamp for caches.
    pub fn n_points(&self) -> usize {
        match self {
            Self::Scalar(s) => s.value.len(),
            Self::Histogram(s) => s.value.len(),
            Self::Other(s) => s.count,
        }
    }

    /// The graph node that makes the values; empty when the file does not say.
    pub fn node_name(&self) -> &str {
        match self {
            Self::Scalar(s) => &s.node_name,
            Self::Histogram(s) => &s.node_name,
            Self::Other(s) => &s.node_name,
        }
    }
}

impl Series {
    /// A series of the same kind without points.
    pub(crate) fn empty_like(&self) -> Self {
        match self {
            Self::Scalar(_) => Self::Scalar(ScalarSeries::default()),
            Self::Histogram(_) => Self::Histogram(HistogramSeries::default()),
            Self::Other(s) => Self::Other(OtherSeries { kind: s.kind.clone(), ..OtherSeries::default() }),
        }
    }

    /// Moves the points of `other`, which is of the same kind, to the end.
    pub(crate) fn append(&mut self, other: &mut Self) {
        match (self, other) {
            (Self::Scalar(this), Self::Scalar(other)) => this.append(other),
            (Self::Histogram(this), Self::Histogram(other)) => this.append(other),
            (Self::Other(this), Self::Other(other)) => this.append(other),
            _ => debug_assert!(false, "a tag keeps its kind"),
        }
    }
}

/// Numbers by step. The columns have one length; row `i` is one point. Rows are in the order of arrival, which is the
/// order in the file: after a restart of the program steps repeat (see [`pieces`](Self::pieces)).
#[derive(Debug, Clone, Default)]
pub struct ScalarSeries {
    /// The x axis: the program's step.
    pub step: Vec<i64>,
    /// Unix seconds at which the value was written.
    pub wall: Vec<f64>,
    /// The value, NaN and infinities as they are; from a 32-bit float in most files.
    pub value: Vec<f64>,
    /// The graph node that makes the values; empty when the file does not say.
    pub node_name: String,
    pub(crate) restarts: Vec<usize>,
}

impl ScalarSeries {
    /// Ranges of rows within which the step does not fall: one, or one more for every restart of the run.
    pub fn pieces(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        pieces(&self.restarts, self.step.len())
    }

    pub(crate) fn push(&mut self, step: i64, wall: f64, value: f64) {
        self.step.push(step);
        self.wall.push(wall);
        self.value.push(value);
    }

    pub(crate) fn append(&mut self, other: &mut Self) {
        note_restarts(&mut self.restarts, &self.step, &other.step);
        self.step.append(&mut other.step);
        self.wall.append(&mut other.wall);
        self.value.append(&mut other.value);
        if self.node_name.is_empty() {
            self.node_name = std::mem::take(&mut other.node_name);
        }
    }
}

/// Distributions by step; rows as in [`ScalarSeries`].
#[derive(Debug, Clone, Default)]
pub struct HistogramSeries {
    /// The x axis: the program's step.
    pub step: Vec<i64>,
    /// Unix seconds at which the value was written.
    pub wall: Vec<f64>,
    /// The distributions.
    pub value: Vec<Histogram>,
    /// The graph node that makes the values; empty when the file does not say.
    pub node_name: String,
    pub(crate) restarts: Vec<usize>,
}

impl HistogramSeries {
    /// Ranges of rows within which the step does not fall.
    pub fn pieces(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        pieces(&self.restarts, self.step.len())
    }

    pub(crate) fn push(&mut self, step: i64, wall: f64, value: Histogram) {
        self.step.push(step);
        self.wall.push(wall);
        self.value.push(value);
    }

    pub(crate) fn append(&mut self, other: &mut Self) {
        note_restarts(&mut self.restarts, &self.step, &other.step);
        self.step.append(&mut other.step);
        self.wall.append(&mut other.wall);
        self.value.append(&mut other.value);
        if self.node_name.is_empty() {
            self.node_name = std::mem::take(&mut other.node_name);
        }
    }
}

/// A tag whose values are counted only.
#[derive(Debug, Clone, Default)]
pub struct OtherSeries {
    /// The plugin that shows it, as the file names it: `images`, `audio`, `text`, `pr_curves`, `hparams`, `tensor`, ...
    pub kind: String,
    /// How many values.
    pub count: usize,
    /// The last one's step.
    pub last_step: i64,
    /// The graph node that makes the values; empty when the file does not say.
    pub node_name: String,
}

impl OtherSeries {
    pub(crate) fn push(&mut self, step: i64) {
        self.count += 1;
        self.last_step = step;
    }

    pub(crate) fn append(&mut self, other: &mut Self) {
        self.count += std::mem::take(&mut other.count);
        self.last_step = other.last_step;
        if self.node_name.is_empty() {
            self.node_name = std::mem::take(&mut other.node_name);
        }
    }
}

/// Adds the rows at which the step falls when `new` follows `old`.
fn note_restarts(restarts: &mut Vec<usize>, old: &[i64], new: &[i64]) {
    let mut last = old.last().copied().unwrap_or(i64::MIN);
    for (i, &step) in new.iter().enumerate() {
        if step < last {
            restarts.push(old.len() + i);
        }
        last = step;
    }
}

fn pieces(restarts: &[usize], len: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    let starts = std::iter::once(0).chain(restarts.iter().copied());
    let ends = restarts.iter().copied().chain(std::iter::once(len));
    starts.zip(ends).filter(|(start, end)| start < end).map(|(start, end)| start..end)
}
