//! The table below the cards: what each run did over the range of steps.

use super::range::{self, Column, Row, Steps};
use crate::{
    Data, Selection, ViewKind,
    catalogue::Catalogue,
    format,
    theme::{metrics, palette},
    widgets::{Edge, Extent, Sorting, beside, figure_column, side, sort_heading, swatch, wide_table, word_column},
};
use egui::{Align, Layout, Sense, Ui};
use egui_extras::TableBuilder;

/// A growing logdir's figures are made anew at most this often, seconds.
const REFRESH_S: f64 = 0.5;

/// The rows, kept while nothing that they depend on changes.
#[derive(Default)]
pub struct RangeTable {
    rows: Vec<Row>,
    of: Option<(Steps, u64, u64)>,
    at: f64,
    sorting: Sorting<Column>,
}

impl RangeTable {
    /// Shows the table at the bottom of `ui`'s space.
    pub fn ui(&mut self, ui: &mut Ui, catalogue: &Catalogue, data: &Data, steps: Steps, selection: &mut Selection) {
        self.update(catalogue, data, steps, ui.input(|i| i.time));
        side(ui, Edge::Bottom, "range table", Extent::Share(metrics::DETAILS_SHARE), |ui| {
            ui.horizontal_wrapped(|ui| {
                let [lo, hi] = steps.map(format::step);
                let n = format::counted(self.rows.len() as u64, "row");
                ui.label(format!("Steps {lo} to {hi}: {n}"));
                if ui.button("Copy as CSV").clicked() {
                    ui.ctx().copy_text(range::csv(&self.rows, steps));
                }
            });
            if self.rows.is_empty() {
                ui.weak("No run has a point in this range.");
            } else {
                wide_table(ui, |ui| self.table(ui, selection));
            }
        });
    }

    /// The table as CSV, in the order that it is shown in.
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
        let widths = Column::ALL.map(|column| match column {
            Column::Tag | Column::Run => word_column(metrics::NAME_W),
            figures => figure_column(ui, figures.title()),
        });
        let mut table =
            TableBuilder::new(ui).striped(true).sense(Sense::click()).cell_layout(Layout::left_to_right(Align::Center));
        for width in widths {
            table = table.column(width);
        }
        let (mut sort_by, mut picked) = (None, None);
        let (sorting, rows) = (self.sorting, &self.rows);
        let header = table.header(metrics::ROW_H, |mut line| {
            for column in Column::ALL {
                let mut is_clicked = false;
                let (_, cell) = line.col(|ui| {
                    let sorted = (sorting.column == column).then_some(sorting.descending);
                    is_clicked = sort_heading(ui, column.title(), column.help(), column.is_text(), sorted);
                });
                // Beside its words the heading's cell is clicked.
                if is_clicked || cell.clicked() {
                    sort_by = Some(column);
                }
            }
        });
        header.body(|body| {
            body.rows(metrics::ROW_H, rows.len(), |mut line| {
                let row = &rows[line.index()];
                line.set_selected(selection.run.get().is_some_and(|run| *run == row.label));
                for column in Column::ALL {
                    line.col(|ui| cell(ui, row, column));
                }
                if line.response().clicked() {
                    picked = Some(line.index());
                }
            });
        });
        if let Some(column) = sort_by {
            self.sorting.click(column, !column.is_text());
            range::sort(&mut self.rows, self.sorting.column, self.sorting.descending);
        }
        if let Some(row) = picked.and_then(|i: usize| self.rows.get(i)) {
            selection.run.set(ViewKind::Scalars, Some(row.label.clone()));
        }
    }
}

fn cell(ui: &mut Ui, row: &Row, column: Column) {
    beside(ui, column.is_text(), |ui| {
        if column == Column::Run {
            swatch(ui, palette(ui).series(row.color_idx));
        }
        let label = egui::Label::new(row.cell(column)).selectable(false);
        ui.add(if column.is_text() { label.truncate() } else { label });
    });
}
