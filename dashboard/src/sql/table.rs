//! The rows. Only those on the screen are built.

use super::engine::Answer;
use crate::{
    theme::metrics,
    widgets::{Sorting, beside, figure_column, sort_heading, wide_table, word_column},
};
use egui::{Sense, Ui};
use egui_extras::{Column, TableBuilder};

/// Rows whose cells say how wide a column begins.
const MEASURED: usize = 200;
/// Characters that a column begins with at least and at most.
const CHARS: [usize; 2] = [6, 48];

/// What was clicked.
#[derive(Default)]
pub struct Acts {
    /// A heading.
    pub order_by: Option<usize>,
    /// A row, by its index in the answer.
    pub picked: Option<usize>,
    /// A double click: it is to be shown in the timeline.
    pub is_shown: bool,
}

/// Shows the rows `order` of an answer.
pub fn table_ui(ui: &mut Ui, answer: &Answer, order: &[usize], sorting: Option<Sorting<usize>>) -> Acts {
    let mut acts = Acts::default();
    wide_table(ui, |ui| rows_ui(ui, answer, order, sorting, &mut acts));
    acts
}

fn rows_ui(ui: &mut Ui, answer: &Answer, order: &[usize], sorting: Option<Sorting<usize>>, acts: &mut Acts) {
    let text_width = metrics::TEXT * 0.55;
    // Widths that the user gave hold for the columns that they were given to.
    let figures: Vec<Column> = answer.columns.iter().map(|name| figure_column(ui, name)).collect();
    let mut table =
        TableBuilder::new(ui).id_salt(&answer.columns).striped(true).sense(Sense::click()).auto_shrink([false, false]);
    for column in 0..answer.columns.len() {
        let cells = answer.rows.iter().take(MEASURED).map(|row| row[column].chars().count());
        let n_chars = cells.max().unwrap_or(0).max(answer.columns[column].chars().count() + 2);
        let width = n_chars.clamp(CHARS[0], CHARS[1]) as f32 * text_width + metrics::PAD;
        table = table.column(if answer.are_numbers[column] { figures[column] } else { word_column(width) });
    }
    let table = table.header(metrics::ROW_H, |mut header| {
        for (column, name) in answer.columns.iter().enumerate() {
            header.col(|ui| {
                let sorted = sorting.filter(|sorting| sorting.column == column).map(|sorting| sorting.descending);
                if sort_heading(ui, name, name, !answer.are_numbers[column], sorted) {
                    acts.order_by = Some(column);
                }
            });
        }
    });
    table.body(|body| {
        body.rows(metrics::ROW_H, order.len(), |mut line| {
            let row = order[line.index()];
            for (column, cell) in answer.rows[row].iter().enumerate() {
                line.col(|ui| {
                    beside(ui, !answer.are_numbers[column], |ui| {
                        let label = egui::Label::new(cell).selectable(false);
                        ui.add(if answer.are_numbers[column] { label } else { label.truncate() });
                    });
                });
            }
            let response = line.response();
            if response.clicked() {
                acts.picked = Some(row);
                acts.is_shown = response.double_clicked();
            }
        });
    });
}
