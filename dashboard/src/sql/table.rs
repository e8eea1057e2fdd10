//! The rows of a result as a table.

use super::engine::RowSet;
use egui::Ui;
use std::borrow::Cow;
use ui::{
    theme::metrics,
    widgets::{Column, DataTable, SortOrder, TableClicks, text_cell, word_column},
};

/// Rows that determine the initial width of a column.
const MEASURED: usize = 200;
/// Least and greatest initial width of a column, characters.
const CHARS: [usize; 2] = [6, 48];

#[derive(Clone)]
pub struct AnswerColumn<'a> {
    pub index: usize,
    title: &'a str,
    is_number: bool,
}

impl Column<Vec<String>> for AnswerColumn<'_> {
    fn title(&self) -> Cow<'_, str> {
        self.title.into()
    }

    fn is_text(&self) -> bool {
        !self.is_number
    }

    fn text<'a>(&'a self, row: &'a Vec<String>) -> Cow<'a, str> {
        row.get(self.index).map_or("", String::as_str).into()
    }
}

pub fn columns(answer: &RowSet) -> Vec<AnswerColumn<'_>> {
    let all = answer.columns.iter().zip(&answer.are_numbers).enumerate();
    all.map(|(index, (title, is_number))| AnswerColumn { index, title, is_number: *is_number }).collect()
}

/// Shows the rows `order` of a result.
pub fn table_ui<'a>(
    ui: &mut Ui,
    answer: &'a RowSet,
    order: &[usize],
    sorting: Option<SortOrder<usize>>,
) -> TableClicks<AnswerColumn<'a>> {
    let columns = columns(answer);
    // The user's widths are stored under the columns' names.
    let mut table = DataTable::new(&answer.columns, &columns, &answer.rows).order(order);
    for column in columns.iter().filter(|column| column.is_text()) {
        let cells = answer.rows.iter().take(MEASURED).map(|row| column.text(row).chars().count());
        let n_chars = cells.max().unwrap_or(0).max(column.title.chars().count() + 2);
        let width = n_chars.clamp(CHARS[0], CHARS[1]) as f32 * metrics::TEXT * 0.55 + metrics::PAD;
        table = table.width(column.index, word_column(width));
    }
    let sorted = |column: &AnswerColumn<'_>| sorting.and_then(|sorting| sorting.descending_by(&column.index));
    table.show(ui, sorted, |_| false, |ui, column, row, _| text_cell(ui, column, row))
}
