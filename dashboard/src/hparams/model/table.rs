//! Sessions with their hyperparameters and metrics as a table: columns, filters, order.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use summaries::HParam;
use ui::{address::Choice, format, natural};

/// A hyperparameter or a metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The name of a hyperparameter.
    HParam(Arc<str>),
    /// A scalar of the session: the run below the session's (empty for its own) and the tag.
    Metric(Arc<str>, Arc<str>),
}

impl Key {
    /// The title of the column: `learning_rate`, `validation/loss`.
    pub fn title(&self) -> String {
        match self {
            Self::HParam(name) => name.to_string(),
            Self::Metric(group, tag) if group.is_empty() => tag.to_string(),
            Self::Metric(group, tag) => format!("{group}/{tag}"),
        }
    }

    /// Whether the column is a metric, rather than a hyperparameter.
    pub fn is_metric(&self) -> bool {
        matches!(self, Self::Metric(..))
    }

    /// The column's name in addresses, unlike the title unique among hyperparameters and metrics.
    pub fn address(&self) -> String {
        match self {
            Self::HParam(name) => format!("h:{name}"),
            Self::Metric(..) => format!("m:{}", self.title()),
        }
    }
}

/// The value of a metric's series that stands for the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistic {
    #[default]
    Last,
    Min,
    Max,
}

impl Choice for Statistic {
    const TABLE: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Last, "Last", "Last"), (Self::Min, "Min", "Min"), (Self::Max, "Max", "Max")];
}

/// The value of a hyperparameter or metric.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Number(f64),
    /// A word; a bool is `true` or `false`.
    Text(Arc<str>),
}

impl From<&HParam> for Cell {
    fn from(value: &HParam) -> Self {
        match value {
            HParam::Number(x) => Self::Number(*x),
            HParam::Text(text) => Self::Text(text.as_str().into()),
            HParam::Bool(value) => Self::Text(if *value { "true" } else { "false" }.into()),
        }
    }
}

impl Cell {
    /// The value as shown.
    pub fn text(&self) -> String {
        match self {
            Self::Number(x) => format::parameter(*x),
            Self::Text(text) => text.to_string(),
        }
    }

    /// The value with all digits.
    pub fn exact(&self) -> String {
        match self {
            Self::Number(x) => x.to_string(),
            Self::Text(text) => text.to_string(),
        }
    }

    /// Compares two values; numbers come before words.
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => natural::order(a, b),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

/// A run with its hyperparameters, metrics and status.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The run's name in the window.
    pub label: Arc<str>,
    pub cells: BTreeMap<Key, Cell>,
    /// The final status, where it is known: `success`.
    pub status: &'static str,
}

/// A column of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub key: Key,
    /// Least and greatest finite number; `None` without numbers or with words among the values.
    pub extent: Option<[f64; 2]>,
    /// Every value in order, if there are few or they are words.
    pub values: Vec<Cell>,
}

/// Different numbers up to which a column can also be filtered by value.
const MAX_VALUES: usize = 8;

/// All sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The hyperparameters, then the metrics, each sorted by name.
    pub columns: Vec<Column>,
    /// The sessions in the order of their runs.
    pub sessions: Vec<Session>,
}

impl Table {
    /// Builds the table of sessions.
    pub fn from_sessions(sessions: Vec<Session>) -> Self {
        let mut by_key: BTreeMap<&Key, Vec<&Cell>> = BTreeMap::new();
        for (key, cell) in sessions.iter().flat_map(|session| &session.cells) {
            by_key.entry(key).or_default().push(cell);
        }
        let columns = by_key.into_iter().map(|(key, cells)| column(key.clone(), &cells)).collect();
        Self { columns, sessions }
    }

    pub fn column(&self, key: &Key) -> Option<&Column> {
        self.columns.iter().find(|column| column.key == *key)
    }

    /// Returns the indices of the sessions that pass the filters and whose label is shown. `order` is a column and
    /// whether it is descending; without it, the sessions keep their order.
    pub fn filtered_rows(
        &self,
        filters: &Filters,
        order: Option<(&Key, bool)>,
        is_shown: impl Fn(&str) -> bool,
    ) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.sessions.len())
            .filter(|&i| is_shown(&self.sessions[i].label) && filters.passes(&self.sessions[i]))
            .collect();
        if let Some((key, descending)) = order {
            let cell = |i: &usize| self.sessions[*i].cells.get(key);
            rows.sort_by(|a, b| match (cell(a), cell(b)) {
                (Some(a), Some(b)) if descending => b.order(a),
                (Some(a), Some(b)) => a.order(b),
                // Sessions without a value come last in either direction.
                (a, b) => a.is_none().cmp(&b.is_none()),
            });
        }
        rows
    }
}

fn column(key: Key, cells: &[&Cell]) -> Column {
    let mut values: Vec<Cell> = Vec::new();
    let mut sorted: Vec<&Cell> = cells.to_vec();
    sorted.sort_by(|a, b| a.order(b));
    sorted.dedup();
    let is_text = sorted.iter().any(|cell| matches!(cell, Cell::Text(_)));
    if is_text || (sorted.len() <= MAX_VALUES && !key.is_metric()) {
        values.extend(sorted.iter().map(|cell| (*cell).clone()));
    }
    let numbers = cells.iter().filter_map(|cell| match cell {
        Cell::Number(x) if x.is_finite() => Some(*x),
        _ => None,
    });
    let [lo, hi] = numbers.fold([f64::INFINITY, f64::NEG_INFINITY], |[lo, hi], x| [lo.min(x), hi.max(x)]);
    Column { key, extent: (!is_text && lo <= hi).then_some([lo, hi]), values }
}

/// The filters of the sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    /// Least and greatest number that pass.
    pub ranges: BTreeMap<Key, [f64; 2]>,
    /// Values that are filtered out, as text with all digits.
    pub excluded: BTreeMap<Key, BTreeSet<String>>,
}

impl Filters {
    /// Whether a session passes. A session without a value fails where its column is filtered.
    pub fn passes(&self, session: &Session) -> bool {
        let in_range = |(key, [lo, hi]): (&Key, &[f64; 2])| match session.cells.get(key) {
            Some(Cell::Number(x)) => (*lo..=*hi).contains(x),
            _ => false,
        };
        let is_included = |(key, excluded): (&Key, &BTreeSet<String>)| {
            excluded.is_empty() || session.cells.get(key).is_some_and(|cell| !excluded.contains(&cell.exact()))
        };
        self.ranges.iter().all(in_range) && self.excluded.iter().all(is_included)
    }

    /// Removes the filters of a column.
    pub fn clear(&mut self, key: &Key) {
        self.ranges.remove(key);
        self.excluded.remove(key);
    }

    /// Whether a column is filtered.
    pub fn is_set(&self, key: &Key) -> bool {
        self.ranges.contains_key(key) || self.excluded.get(key).is_some_and(|excluded| !excluded.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::HParam(name.into())
    }

    fn session(label: &str, rate: f64, optimizer: Option<&str>, loss: f64) -> Session {
        let mut cells = BTreeMap::from([
            (key("rate"), Cell::Number(rate)),
            (Key::Metric("".into(), "loss".into()), Cell::Number(loss)),
        ]);
        if let Some(name) = optimizer {
            cells.insert(key("optimizer"), Cell::Text(name.into()));
        }
        Session { label: label.into(), cells, status: "" }
    }

    fn table() -> Table {
        Table::from_sessions(vec![
            session("a", 0.1, Some("sgd"), 3.0),
            session("b", 0.01, Some("adam"), 1.0),
            session("c", 0.001, None, 2.0),
        ])
    }

    fn shown(filters: &Filters, order: Option<(&Key, bool)>) -> String {
        let table = table();
        let rows = table.filtered_rows(filters, order, |_| true);
        rows.iter().map(|&i| &*table.sessions[i].label).collect()
    }

    #[test]
    fn columns_know_their_values() {
        let table = table();
        let titles: Vec<String> = table.columns.iter().map(|c| c.key.title()).collect();
        assert_eq!(titles, ["optimizer", "rate", "loss"]);
        assert_eq!(table.columns[1].extent, Some([0.001, 0.1]));
        assert_eq!((table.columns[0].extent, table.columns[0].values.len()), (None, 2));
        assert!(table.columns[2].values.is_empty(), "a metric has no choices");
    }

    #[test]
    fn order_and_filters() {
        let loss = Key::Metric("".into(), "loss".into());
        assert_eq!(shown(&Filters::default(), None), "abc");
        assert_eq!(shown(&Filters::default(), Some((&loss, false))), "bca");
        assert_eq!(shown(&Filters::default(), Some((&key("optimizer"), true))), "abc", "without a value last");
        let mut filters = Filters::default();
        filters.ranges.insert(key("rate"), [0.001, 0.01]);
        assert_eq!(shown(&filters, None), "bc");
        filters.excluded.insert(key("optimizer"), BTreeSet::from(["sgd".to_owned()]));
        assert_eq!(shown(&filters, None), "b", "c has no optimizer");
        filters.clear(&key("rate"));
        filters.clear(&key("optimizer"));
        assert_eq!(filters, Filters::default());
    }
}
