//! The table below the cards: figures of each run over the range of steps.

use super::range::{self, Column, Row, Steps};
use crate::{Data, Selection, ViewKind, catalogue::Catalogue};
use egui::Ui;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{DataTable, Edge, Extent, SortOrder, side, swatch, text_cell},
};

/// Least time between two updates of a growing logdir's figures, seconds.
const REFRESH_S: f64 = 0.5;

/// The rows, cached while nothing that they depend on changes.
#[derive(Default)]
pub struct RangeTable {
    rows: Vec<Row>,
    of: Option<(Steps, u64, u64)>,
    at: f64,
    sorting: SortOrder<Column>,
}

impl RangeTable {
    /// Shows the table at the bottom of `ui`'s space.
    pub fn ui(&mut self, ui: &mut Ui, catalogue: &Catalogue, data: &Data, steps: Steps, selection: &mut Selection) {
        self.update(catalogue, data, steps, ui.input(|i| i.time));
        side(ui, Edge::Bottom, "range table", Extent::Share(metrics::DETAILS_SHARE), |ui| {
            ui.horizontal_wrapped(|ui| {
                let [lo, hi] = steps.map(format::step);
                let n = format::count_of(self.rows.len() as u64, "row");
                ui.label(format!("Steps {lo} to {hi}: {n}"));
                if ui.button("Copy as CSV").clicked() {
                    ui.ctx().copy_text(range::csv(&self.rows, steps));
                }
            });
            if self.rows.is_empty() {
                ui.weak("No run has a point in this range.");
            } else {
                self.table(ui, selection);
            }
        });
    }

    /// The table as CSV, in the order of the rows on the screen.
    pub fn csv(&self, steps: Steps) -> String {
        range::csv(&self.rows, steps)
    }

    fn update(&mut self, catalogue: &Catalogue, data: &Data, steps: Steps, now: f64) {
        let version = data.logdirs.iter().fold(0, |sum, logdir| logdir.runs.version.wrapping_add(sum));
        let of = (steps, catalogue.revision, version);
        let is_growth = self.of.is_some_and(|old| (old.0, old.1) == (of.0, of.1));
        if self.of == Some(of) || (is_growth && now - self.at < REFRESH_S) {
            return;
        }
        (self.of, self.at) = (Some(of), now);
        self.rows = range::rows(catalogue, data, steps);
        range::sort(&mut self.rows, self.sorting.column, self.sorting.descending);
    }

    fn table(&mut self, ui: &mut Ui, selection: &mut Selection) {
        let clicks = DataTable::new("range", &Column::all(), &self.rows).show(
            ui,
            |column| self.sorting.descending_by(column),
            |row| selection.run.get().is_some_and(|run| *run == row.label),
            |ui, column, row, _| {
                if *column == Column::Run {
                    swatch(ui, palette(ui).series(row.color_idx));
                }
                text_cell(ui, column, row);
            },
        );
        if let Some(row) = clicks.picked.and_then(|i| self.rows.get(i)) {
            selection.run.set(ViewKind::Scalars, Some(row.label.clone()));
        }
        if let Some(column) = clicks.sort_by {
            self.sorting.click(column, !column.is_text());
            range::sort(&mut self.rows, self.sorting.column, self.sorting.descending);
        }
    }
}
