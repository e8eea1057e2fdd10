//! A column as an axis: positions of values from 0 to 1, ticks, and the values in a range of it. No egui here.

use super::table::{Cell, Column, Filters, Key, Table};
use ui::{
    address::Choice,
    chart::ticks::{Unit, log_ticks, ticks},
    format,
};

/// The scale of an axis of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AxisScale {
    #[default]
    Linear,
    Log,
    Quantile,
}

impl Choice for AxisScale {
    const TABLE: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Linear, "linear", "linear"), (Self::Log, "log", "log"), (Self::Quantile, "quantile", "quantile")];
}

impl AxisScale {
    /// Returns the default scale of a column: logarithmic for values over three decades, and for a few values that are
    /// spaced more evenly by their logarithm (1e-4, 1e-3, 1e-2; 32, 64, 128).
    pub fn default_for(column: &Column) -> Self {
        let few: Vec<f64> = column.values.iter().filter_map(finite).collect();
        match column.extent {
            Some([lo, hi]) if lo > 0.0 && hi / lo >= 1e3 => Self::Log,
            Some([lo, _]) if lo > 0.0 && few.len() > 2 && unevenness(&few, f64::ln) < unevenness(&few, |x| x) => {
                Self::Log
            }
            _ => Self::Linear,
        }
    }

    /// Returns the next scale that the column supports.
    pub fn next(self, column: &Column) -> Self {
        let can_log = column.extent.is_some_and(|[lo, _]| lo > 0.0);
        match self {
            Self::Linear if can_log => Self::Log,
            Self::Linear | Self::Log => Self::Quantile,
            Self::Quantile => Self::Linear,
        }
    }
}

/// A column as an axis.
#[derive(Clone, Debug)]
pub struct Axis {
    pub key: Key,
    /// The scale of numbers; words are evenly spaced.
    pub scale: AxisScale,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Least and greatest number on the scale; and the numbers themselves where they are few.
    Numbers([f64; 2], Vec<f64>),
    /// All numbers, sorted: positions are ranks.
    Ranks(Vec<f64>),
    /// All values, evenly spaced.
    Values(Vec<Cell>),
}

impl Axis {
    pub fn new(table: &Table, column: &Column, scale: AxisScale) -> Self {
        let few = || column.values.iter().filter_map(finite).collect();
        let kind = match (column.extent, scale) {
            (None, _) => Kind::Values(column.values.clone()),
            (Some([lo, hi]), AxisScale::Log) if lo > 0.0 => Kind::Numbers(widened([lo.log10(), hi.log10()]), few()),
            (Some(_), AxisScale::Quantile) => {
                let cells = table.sessions.iter().filter_map(|session| session.cells.get(&column.key));
                let mut numbers: Vec<f64> = cells.filter_map(finite).collect();
                numbers.sort_by(f64::total_cmp);
                numbers.dedup();
                Kind::Ranks(numbers)
            }
            (Some(extent), _) => {
                let scale = AxisScale::Linear;
                return Self { key: column.key.clone(), scale, kind: Kind::Numbers(widened(extent), few()) };
            }
        };
        Self { key: column.key.clone(), scale, kind }
    }

    /// Returns the position of a value, 0 to 1; `None` for a value without one.
    pub fn place(&self, cell: &Cell) -> Option<f64> {
        match (&self.kind, cell) {
            (Kind::Numbers([lo, hi], _), Cell::Number(x)) => {
                let x = if self.scale == AxisScale::Log { x.log10() } else { *x };
                x.is_finite().then(|| (x - lo) / (hi - lo))
            }
            (Kind::Ranks(numbers), Cell::Number(x)) if x.is_finite() => {
                let below = numbers.partition_point(|y| y < x);
                Some(evenly_spaced(below, numbers.len()))
            }
            (Kind::Values(values), cell) => Some(evenly_spaced(values.iter().position(|v| v == cell)?, values.len())),
            _ => None,
        }
    }

    /// Returns about `n` ticks as (position, label).
    pub fn ticks(&self, n: usize) -> Vec<(f64, String)> {
        match &self.kind {
            Kind::Numbers(_, few) if !few.is_empty() => {
                let tick = |x: &f64| Some((self.place(&Cell::Number(*x))?, format::parameter(*x)));
                few.iter().filter_map(tick).collect()
            }
            Kind::Numbers([lo, hi], _) => {
                let ticks = if self.scale == AxisScale::Log {
                    log_ticks(*lo, *hi, n)
                } else {
                    ticks(Unit::Number, *lo, *hi, n)
                };
                ticks.into_iter().map(|tick| ((tick.at - lo) / (hi - lo), tick.label)).collect()
            }
            Kind::Ranks(numbers) => thinned(numbers.len(), n)
                .map(|i| (evenly_spaced(i, numbers.len()), format::value(numbers[i])))
                .collect(),
            Kind::Values(values) => {
                thinned(values.len(), n).map(|i| (evenly_spaced(i, values.len()), values[i].text())).collect()
            }
        }
    }

    /// Filters out the values outside of `range` (a part of 0 to 1). A range without values removes the filters.
    pub fn brush(&self, table: &Table, range: [f64; 2], filters: &mut Filters) {
        let is_inside = |cell: &Cell| self.place(cell).is_some_and(|at| (range[0]..=range[1]).contains(&at));
        filters.clear(&self.key);
        let cells = || table.sessions.iter().filter_map(|session| session.cells.get(&self.key));
        if let Kind::Values(values) = &self.kind {
            let excluded: std::collections::BTreeSet<String> =
                values.iter().filter(|v| !is_inside(v)).map(Cell::exact).collect();
            if excluded.len() < values.len() {
                filters.excluded.insert(self.key.clone(), excluded);
            }
            return;
        }
        let inside = cells().filter(|cell| is_inside(cell)).filter_map(finite);
        let [lo, hi] = inside.fold([f64::INFINITY, f64::NEG_INFINITY], |[lo, hi], x| [lo.min(x), hi.max(x)]);
        if lo <= hi {
            filters.ranges.insert(self.key.clone(), [lo, hi]);
        }
    }
}

fn finite(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Number(x) if x.is_finite() => Some(*x),
        _ => None,
    }
}

/// Returns the ratio of the widest to the narrowest gap of sorted numbers on the scale of `measure`; 1 without a gap.
fn unevenness(sorted: &[f64], measure: impl Fn(f64) -> f64) -> f64 {
    let gaps = sorted.windows(2).map(|pair| measure(pair[1]) - measure(pair[0])).filter(|gap| *gap > 0.0);
    let [min, max] = gaps.fold([f64::INFINITY, 0.0], |[min, max], gap| [min.min(gap), max.max(gap)]);
    if max > 0.0 { max / min } else { 1.0 }
}

/// Returns the position of the `i`-th of `n` evenly spaced values; a single value is in the middle.
fn evenly_spaced(i: usize, n: usize) -> f64 {
    if n > 1 { i as f64 / (n - 1) as f64 } else { 0.5 }
}

/// Returns at most `max` of `n` indices, but at least both ends.
fn thinned(n: usize, max: usize) -> impl Iterator<Item = usize> {
    let count = n.min(max.max(2));
    (0..count).map(move |i| if count > 1 { i * (n - 1) / (count - 1) } else { 0 })
}

/// Widens an empty interval.
fn widened([lo, hi]: [f64; 2]) -> [f64; 2] {
    if hi > lo {
        return [lo, hi];
    }
    let half = if lo == 0.0 { 0.5 } else { 0.05 * lo.abs() };
    [lo - half, hi + half]
}

#[cfg(test)]
mod tests {
    use super::super::table::Session;
    use super::*;
    use std::collections::BTreeMap;

    fn table(values: &[Cell]) -> Table {
        let session = |(i, cell): (usize, &Cell)| Session {
            label: i.to_string().into(),
            cells: BTreeMap::from([(Key::HParam("x".into()), cell.clone())]),
            status: "",
        };
        Table::from_sessions(values.iter().enumerate().map(session).collect())
    }

    fn places(table: &Table, scale: AxisScale) -> Vec<f64> {
        let axis = Axis::new(table, &table.columns[0], scale);
        let cells = table.sessions.iter().map(|s| &s.cells[&Key::HParam("x".into())]);
        cells.map(|cell| axis.place(cell).unwrap_or(f64::NAN)).collect()
    }

    #[test]
    fn numbers_by_value_logarithm_and_rank() {
        let table = table(&[1.0, 10.0, 10.0, 10_000.0].map(Cell::Number));
        assert_eq!(places(&table, AxisScale::Linear)[3], 1.0);
        assert_eq!(places(&table, AxisScale::Log), [0.0, 0.25, 0.25, 1.0]);
        assert_eq!(places(&table, AxisScale::Quantile), [0.0, 0.5, 0.5, 1.0]);
        assert_eq!(AxisScale::default_for(&table.columns[0]), AxisScale::Log);
    }

    #[test]
    fn words_and_lone_values() {
        let words = table(&[Cell::Text("b".into()), Cell::Text("a".into())]);
        assert_eq!(places(&words, AxisScale::Linear), [1.0, 0.0]);
        assert_eq!(places(&table(&[Cell::Number(0.0)]), AxisScale::Linear), [0.5]);
        let negative = table(&[-1.0, 1.0].map(Cell::Number));
        assert_eq!(places(&negative, AxisScale::Log), [0.0, 1.0], "no logarithm: as they are");
    }

    #[test]
    fn few_numbers_are_marked_themselves() {
        let check = |values: &[f64], scale: AxisScale, labels: &[&str]| {
            let cells: Vec<Cell> = values.iter().copied().map(Cell::Number).collect();
            let table = table(&cells);
            assert_eq!(AxisScale::default_for(&table.columns[0]), scale, "{values:?}");
            let ticks = Axis::new(&table, &table.columns[0], scale).ticks(5);
            assert_eq!(ticks.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>(), labels);
        };
        check(&[32.0, 128.0, 64.0, 32.0], AxisScale::Log, &["32", "64", "128"]);
        check(&[1e-4, 1e-3, 1e-2], AxisScale::Log, &["0.0001", "0.001", "0.01"]);
        check(&[0.1, 0.2, 0.3], AxisScale::Linear, &["0.1", "0.2", "0.3"]);
        check(&[0.0, 1.0], AxisScale::Linear, &["0", "1"]);
    }

    #[test]
    fn a_brush_becomes_a_filter() {
        let numbers = table(&[1.0, 2.0, 3.0, 5.0].map(Cell::Number));
        let axis = Axis::new(&numbers, &numbers.columns[0], AxisScale::Linear);
        let mut filters = Filters::default();
        axis.brush(&numbers, [0.2, 0.6], &mut filters);
        assert_eq!(filters.ranges.values().next(), Some(&[2.0, 3.0]));
        axis.brush(&numbers, [0.55, 0.6], &mut filters);
        assert_eq!(filters, Filters::default(), "nothing stands there");
        let words = table(&[Cell::Text("b".into()), Cell::Text("a".into())]);
        Axis::new(&words, &words.columns[0], AxisScale::Linear).brush(&words, [0.9, 1.0], &mut filters);
        assert!(!filters.passes(&words.sessions[1]) && filters.passes(&words.sessions[0]));
    }
}
