//! Figures of runs over a range of steps: a row for each tag and run. No egui here.

use crate::{
    Data,
    catalogue::{Catalogue, Member, TagRow},
};
use std::{borrow::Cow, cmp::Ordering, sync::Arc};
use summaries::ScalarSeries;
use ui::{chart::decimate::lower_bound, export, format, natural, widgets};

/// First and last step, both included.
pub type Steps = [i64; 2];

/// A column of the table: see [`COLUMNS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Column {
    #[default]
    Tag,
    Run,
    Start,
    End,
    Change,
    Min,
    Max,
    Mean,
    Points,
}

/// Every column with its heading and explanation.
const COLUMNS: [(Column, &str, &str); 9] = [
    (Column::Tag, "Tag", "The tag"),
    (Column::Run, "Run", "The run"),
    (Column::Start, "Start", "The value at the range's first step that has one"),
    (Column::End, "End", "The value at the range's last step that has one"),
    (Column::Change, "Change", "From start to end, in % of the start"),
    (Column::Min, "Min", "The least finite value"),
    (Column::Max, "Max", "The greatest finite value"),
    (Column::Mean, "Mean", "The mean of the finite values"),
    (Column::Points, "Points", "The number of points, finite or not"),
];

impl Column {
    /// All columns, from left to right.
    pub fn all() -> [Self; 9] {
        COLUMNS.map(|row| row.0)
    }

    /// Whether the column holds words.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Tag | Self::Run)
    }
}

impl widgets::Column<Row> for Column {
    fn title(&self) -> Cow<'_, str> {
        COLUMNS[*self as usize].1.into()
    }

    fn help(&self) -> Cow<'_, str> {
        COLUMNS[*self as usize].2.into()
    }

    fn is_text(&self) -> bool {
        (*self).is_text()
    }

    fn text<'a>(&'a self, row: &'a Row) -> Cow<'a, str> {
        let value = row.figures.get(*self);
        match self {
            Self::Tag => Cow::from(&*row.tag),
            Self::Run => Cow::from(&*row.label),
            Self::Points => format::count(row.figures.n).into(),
            Self::Change if value.is_finite() => format!("{:+.2} %", 100.0 * value).into(),
            Self::Change => Cow::default(),
            Self::Min | Self::Max | Self::Mean if !value.is_finite() => Cow::default(),
            _ => format::value(value).into(),
        }
    }
}

/// The figures of a run and tag.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub tag: Arc<str>,
    /// The run.
    pub label: Arc<str>,
    pub color_idx: usize,
    pub figures: Figures,
}

/// The figures of a series over a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// The value at the first step; of several the newest.
    pub start: f64,
    /// The value at the last step; of several the newest.
    pub end: f64,
    /// The least finite value; infinity without any.
    pub min: f64,
    /// The greatest finite value; minus infinity without any.
    pub max: f64,
    /// The mean of the finite values; NaN without any.
    pub mean: f64,
    /// The number of values, finite or not.
    pub n: u64,
}

impl Figures {
    /// The figures of the points in the range, in time logarithmic in their number; `None` without points.
    pub(super) fn from_range(series: &ScalarSeries, [lo, hi]: Steps) -> Option<Self> {
        // Step and row.
        let mut first: Option<(i64, usize)> = None;
        let mut last = first;
        let (mut n, mut n_finite, mut sum, mut min, mut max) = (0, 0, 0.0, f64::INFINITY, f64::NEG_INFINITY);
        for piece in series.pieces() {
            let from = piece.start + lower_bound(piece.len(), |i| series.step(piece.start + i) < lo);
            let end = piece.start + lower_bound(piece.len(), |i| series.step(piece.start + i) <= hi);
            if from >= end {
                continue;
            }
            if first.is_none_or(|(step, _)| series.step(from) <= step) {
                first = Some((series.step(from), from));
            }
            if last.is_none_or(|(step, _)| series.step(end - 1) >= step) {
                last = Some((series.step(end - 1), end - 1));
            }
            let extent = series.values().extent(from..end);
            n += (end - from) as u64;
            n_finite += extent.n_finite;
            sum += extent.sum;
            (min, max) = (min.min(extent.min), max.max(extent.max));
        }
        let value = |at: Option<(i64, usize)>| Some(series.values().get(at?.1));
        Some(Self { start: value(first)?, end: value(last)?, min, max, mean: sum / n_finite as f64, n })
    }

    /// The change as a share of the start value.
    pub fn change(&self) -> f64 {
        (self.end - self.start) / self.start.abs()
    }

    fn get(&self, column: Column) -> f64 {
        match column {
            Column::Start => self.start,
            Column::End => self.end,
            Column::Change => self.change(),
            Column::Min => self.min,
            Column::Max => self.max,
            Column::Mean => self.mean,
            Column::Points => self.n as f64,
            Column::Tag | Column::Run => f64::NAN,
        }
    }
}

impl Row {
    fn order(&self, other: &Self, column: Column) -> Ordering {
        match column {
            Column::Tag => natural::order(&self.tag, &other.tag),
            Column::Run => natural::order(&self.label, &other.label),
            _ => self.figures.get(column).total_cmp(&other.figures.get(column)),
        }
    }
}

/// The rows of the page's tags and runs.
pub fn rows(catalogue: &Catalogue, data: &Data, steps: Steps) -> Vec<Row> {
    let row = |(row, member, series): (&TagRow, &Member, &ScalarSeries)| {
        let (tag, label, color_idx) = (row.tag.clone(), member.label.clone(), member.color_idx);
        Some(Row { tag, label, color_idx, figures: Figures::from_range(series, steps)? })
    };
    catalogue.series(data).filter_map(row).collect()
}

/// Sorts by a column; equal rows stay in their order.
pub fn sort(rows: &mut [Row], column: Column, descending: bool) {
    rows.sort_by(|a, b| if descending { b.order(a, column) } else { a.order(b, column) });
}

/// The table as CSV, with all digits.
pub fn csv(rows: &[Row], [lo, hi]: Steps) -> String {
    let headings = ["tag", "run", "first_step", "last_step", "start", "end", "change", "min", "max", "mean", "points"];
    let number = |value: f64| value.to_string();
    export::csv(
        &headings,
        rows.iter().map(|row| {
            let f = row.figures;
            let texts = [row.tag.to_string(), row.label.to_string(), lo.to_string(), hi.to_string()];
            let figures = [f.start, f.end, f.change(), f.min, f.max, f.mean].map(number);
            texts.into_iter().chain(figures).chain([f.n.to_string()]).collect::<Vec<_>>()
        }),
    )
}

/// The initial range: the last tenth of `steps`.
pub fn usual([lo, hi]: Steps) -> Steps {
    [hi - (hi.saturating_sub(lo)) / 10, hi]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalars::model::testing::series;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        let restarted = series(&[(0, 8.0), (1, 4.0), (2, 9.0), (1, 2.0), (2, f64::NAN), (3, 1.0)]);
        let got = Figures::from_range(&restarted, [1, 3]).unwrap();
        assert_eq!((got.start, got.end, got.min, got.max, got.mean, got.n), (2.0, 1.0, 1.0, 9.0, 4.0, 5));
        assert_eq!(got.change(), -0.5);
        assert_eq!(Figures::from_range(&restarted, [4, 9]), None);
        assert_eq!(usual([0, 100]), [90, 100]);
    }

    proptest! {
        #[test]
        fn equals_a_walk_over_all_points(
            points in prop::collection::vec((0i64..50, -9.0..9.0f64), 0..200),
            lo in 0i64..50,
            n in 0i64..50,
        ) {
            let series = series(&points);
            let inside: Vec<f64> = points.iter().filter(|p| (lo..=lo + n).contains(&p.0)).map(|p| p.1).collect();
            let got = Figures::from_range(&series, [lo, lo + n]);
            prop_assert_eq!(got.map_or(0, |f| f.n), inside.len() as u64);
            if let Some(got) = got {
                prop_assert_eq!(got.min, inside.iter().copied().fold(f64::INFINITY, f64::min));
                prop_assert_eq!(got.max, inside.iter().copied().fold(f64::NEG_INFINITY, f64::max));
                prop_assert!((got.mean - inside.iter().sum::<f64>() / inside.len() as f64).abs() < 1e-9);
            }
        }
    }
}
