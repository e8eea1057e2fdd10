//! The table of a comparison: the time of each slice name in A and B.

use super::range::{end_row, grid, number};
use crate::{
    data::Shared,
    timeline::model::{DurationHistogram, durations::duration_histograms},
};
use egui::{RichText, ScrollArea, Ui};
use rustc_hash::FxHashMap;
use std::{cmp::Reverse, ops::Range};
use trace_store::Store;
use ui::background::{Question, Refresher};
use ui::{format, natural, theme::palette, widgets::heading};

/// Names that are listed, at most.
const MAX_ROWS: usize = 200;

/// The traces and ranges of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableKey {
    pub traces: [usize; 2],
    pub versions: [u64; 2],
    pub ranges: [Range<i64>; 2],
}

struct TableRequest {
    key: TableKey,
    stores: [Shared<Store>; 2],
}

/// Slice names with their times in A and B.
#[derive(Debug, PartialEq)]
struct Table {
    key: TableKey,
    rows: Vec<NameRow>,
}

/// The number of slices of one name in A and B, and their time, ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NameRow {
    name: String,
    category: String,
    count: [u64; 2],
    ns: [i64; 2],
}

impl NameRow {
    fn delta_ns(&self) -> i64 {
        self.ns[1] - self.ns[0]
    }
}

/// The latest table, computed in a background thread.
#[derive(Default)]
pub struct CompareTable(Refresher<TableKey, TableRequest, Table>);

impl Question for TableKey {}

impl CompareTable {
    /// Shows the table below a title.
    pub fn ui(&mut self, ui: &mut Ui, title: &str, key: &TableKey, stores: impl Fn() -> [Shared<Store>; 2]) {
        let text = format!("{title}, B against A: {}", difference(&key.ranges[0], &key.ranges[1]));
        heading(ui, text);
        let request = |key, _| TableRequest { key, stores: stores() };
        let table = self.0.ask(ui.ctx(), ("timeline comparison", compute_table), 0.0, key.clone(), request);
        // While the view moves or a trace grows, the previous table stays on the screen.
        match table.filter(|table| table.key.traces == key.traces) {
            Some(table) => rows_ui(ui, &table.rows),
            None => _ = ui.label("Computing…"),
        }
    }
}

/// Sums the slices of each name in both ranges; the greatest difference comes first.
fn compute_table(request: TableRequest) -> Table {
    let [above, below] = &request.stores;
    let mut rows: FxHashMap<(String, String), NameRow> = FxHashMap::default();
    for (side, store, range) in [(0, above, &request.key.ranges[0]), (1, below, &request.key.ranges[1])] {
        // Recursive: a loader that waits to write must not block the window behind this read.
        for histogram in duration_histograms(&store.read_recursive(), range) {
            let DurationHistogram { name, category, count, total_ns, .. } = histogram;
            let row = rows.entry((category.clone(), name.clone()));
            let row = row.or_insert_with(|| NameRow { name, category, ..NameRow::default() });
            row.count[side] += count;
            row.ns[side] += total_ns;
        }
    }
    let mut rows: Vec<NameRow> = rows.into_values().collect();
    let descending_delta = |row: &NameRow| Reverse(row.delta_ns().abs());
    rows.sort_by(|a, b| descending_delta(a).cmp(&descending_delta(b)).then_with(|| natural::order(&a.name, &b.name)));
    Table { key: request.key, rows }
}

fn rows_ui(ui: &mut Ui, rows: &[NameRow]) {
    let p = palette(ui);
    ScrollArea::both().id_salt("comparison").auto_shrink([false, false]).show(ui, |ui| {
        grid(ui, "comparison", &["Name", "Category", "A", "B", "Δ (B − A)", "Count A", "Count B"], |ui| {
            for row in rows.iter().take(MAX_ROWS) {
                let name: String = row.name.chars().take(60).collect();
                ui.label(name);
                ui.weak(&row.category);
                for ns in row.ns {
                    number(ui, format::duration_ns(ns));
                }
                let delta = row.delta_ns();
                let sign = if delta > 0 { "+" } else { "" };
                let color = if delta > 0 { p.warning } else { p.text };
                number(ui, RichText::new(format!("{sign}{}", format::duration_ns(delta))).color(color));
                for count in row.count {
                    number(ui, format::count(count));
                }
                end_row(ui);
            }
        });
        if rows.len() > MAX_ROWS {
            ui.label(format!("and {} more", rows.len() - MAX_ROWS));
        }
    });
}

/// The difference between the lengths of B and A: `290 µs slower (18 %)`.
pub fn difference(a: &Range<i64>, b: &Range<i64>) -> String {
    let (a_ns, b_ns) = (a.end - a.start, b.end - b.start);
    let share = format::percent((b_ns - a_ns).abs() as f64 / a_ns.max(1) as f64);
    match b_ns.cmp(&a_ns) {
        std::cmp::Ordering::Equal => "same duration".to_owned(),
        std::cmp::Ordering::Greater => format!("{} slower ({share})", format::duration_ns(b_ns - a_ns)),
        std::cmp::Ordering::Less => format!("{} faster ({share})", format::duration_ns(a_ns - b_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::ReadGuard, timeline::testing::demo};

    #[test]
    fn names_are_summed_in_a_and_b() {
        let (above, below) = (ReadGuard::owned(demo(3)), ReadGuard::owned(demo(2)));
        let ranges = [104_000..203_000, 0..300_000];
        let key = TableKey { traces: [0, 1], versions: [0, 0], ranges: ranges.clone() };
        let table = compute_table(TableRequest { key, stores: [above.shared(), below.shared()] });
        let expected = |store: &Store, range: &Range<i64>, row: &NameRow| {
            let found = duration_histograms(store, range)
                .into_iter()
                .find(|s| s.name == row.name && s.category == row.category);
            found.map_or((0, 0), |s| (s.count, s.total_ns))
        };
        assert!(!table.rows.is_empty());
        for row in &table.rows {
            assert_eq!((row.count[0], row.ns[0]), expected(&above, &ranges[0], row), "{}", row.name);
            assert_eq!((row.count[1], row.ns[1]), expected(&below, &ranges[1], row), "{}", row.name);
        }
        assert!(table.rows.is_sorted_by_key(|r| Reverse(r.delta_ns().abs())));
    }

    #[test]
    fn durations_in_words() {
        assert_eq!(difference(&(0..100), &(50..150)), "same duration");
        assert_eq!(difference(&(0..1_000), &(0..1_250)), "250 ns slower (25.0 %)");
        assert_eq!(difference(&(0..1_000), &(0..500)), "500 ns faster (50.0 %)");
        assert_eq!(difference(&(0..0), &(0..1)), "1 ns slower (100.0 %)");
    }
}
