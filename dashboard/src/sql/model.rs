//! Queries and their outcomes, and the time of a row.

use super::engine::{RowSet, Table};
use crate::{
    Data,
    data::{SourceInfo, SourceKind},
};
use std::{cmp::Ordering, ops::Range, path::Path, sync::Arc};
use ui::natural;

/// Rows of a result that are stored, at most: an aggregate or `limit` is more useful than a longer list.
pub const MAX_ROWS: usize = 10_000;
/// Queries in the history, at most.
const MAX_HISTORY: usize = 50;

/// The initial query.
pub const FIRST: &str =
    "select name, count(*) as n, sum(dur_ns) / 1e6 as total_ms\nfrom slices\ngroup by name\norder by total_ms desc";

/// The subjects of queries: logdirs with the traces in them, and traces.
pub fn subjects(data: &Data) -> Vec<&SourceInfo> {
    let asked = |source: &&SourceInfo| matches!(source.kind, SourceKind::Logdir | SourceKind::Trace);
    data.sources.iter().filter(asked).collect()
}

/// The outcome of a query.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub sql: String,
    pub path: Arc<Path>,
    pub tables: Vec<Table>,
    pub answer: Result<RowSet, String>,
    pub warnings: Vec<String>,
    pub took_ns: i64,
}

/// Appends a query to the history, which has each query once, the newest last.
pub fn remember(history: &mut Vec<String>, sql: &str) {
    history.retain(|known| known != sql);
    history.push(sql.to_owned());
    if history.len() > MAX_HISTORY {
        history.remove(0);
    }
}

/// The order of rows by a column: numbers by value, texts in natural order, null last. Equal rows stay in order.
pub fn order(answer: &RowSet, column: usize, descending: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..answer.rows.len()).collect();
    let cell = |row: usize| answer.rows[row].get(column).map_or("", String::as_str);
    let is_number = answer.are_numbers.get(column).copied().unwrap_or(false);
    let compare = |a: &str, b: &str| match is_number {
        true => a.parse::<f64>().unwrap_or(f64::NAN).total_cmp(&b.parse::<f64>().unwrap_or(f64::NAN)),
        false => natural::order(a, b),
    };
    order.sort_by(|a, b| match (cell(*a), cell(*b)) {
        ("", "") => Ordering::Equal,
        ("", _) => Ordering::Greater,
        (_, "") => Ordering::Less,
        (a, b) if descending => compare(b, a),
        (a, b) => compare(a, b),
    });
    order
}

/// The time of a row: its `ts_ns`, and its `dur_ns` if it has one.
pub fn time_of(answer: &RowSet, row: usize) -> Option<Range<i64>> {
    let cell = |name: &str| {
        let column = answer.columns.iter().position(|column| column == name)?;
        answer.rows.get(row)?.get(column)?.parse::<i64>().ok()
    };
    let start = cell("ts_ns")?;
    Some(start..start.saturating_add(cell("dur_ns").unwrap_or(1).max(1)))
}

/// The value of a row's column `what`, such as `name` or `node`.
pub fn value_of<'a>(answer: &'a RowSet, row: usize, what: &str) -> Option<&'a str> {
    let column = answer.columns.iter().position(|column| column == what)?;
    answer.rows.get(row)?.get(column).map(String::as_str).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(columns: &[&str], are_numbers: &[bool], rows: &[&[&str]]) -> RowSet {
        let text = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        RowSet {
            columns: text(columns),
            are_numbers: are_numbers.to_vec(),
            rows: rows.iter().map(|row| text(row)).collect(),
            has_more: false,
        }
    }

    #[test]
    fn rows_are_ordered_by_value_and_nulls_come_last() {
        let answer = answer(&["name", "n"], &[false, true], &[&["b", "10"], &["a", "9"], &["c", ""], &["a", "-1e3"]]);
        assert_eq!(order(&answer, 1, false), [3, 1, 0, 2]);
        assert_eq!(order(&answer, 1, true), [0, 1, 3, 2]);
        assert_eq!(order(&answer, 0, false), [1, 3, 0, 2]);
        assert_eq!(
            ui::widgets::csv(&super::super::table::columns(&answer), [1, 2].iter().map(|row| &answer.rows[*row])),
            "name,n\na,9\nc,\n"
        );
    }

    #[test]
    fn a_row_lies_where_its_columns_say() {
        let slices =
            answer(&["ts_ns", "dur_ns", "name"], &[true, true, false], &[&["5", "20", "MatMul"], &["7", "", ""]]);
        assert_eq!((time_of(&slices, 0), time_of(&slices, 1), time_of(&slices, 2)), (Some(5..25), Some(7..8), None));
        assert_eq!(
            (value_of(&slices, 0, "name"), value_of(&slices, 1, "name"), value_of(&slices, 0, "node")),
            (Some("MatMul"), None, None)
        );
    }

    #[test]
    fn each_question_is_remembered_once() {
        let mut history = Vec::new();
        for sql in ["a", "b", "a"] {
            remember(&mut history, sql);
        }
        assert_eq!(history, ["b", "a"]);
        (0..100).for_each(|i| remember(&mut history, &i.to_string()));
        assert_eq!((history.len(), history.last().map(String::as_str)), (MAX_HISTORY, Some("99")));
    }
}
