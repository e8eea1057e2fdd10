//! A table of data: headings that sort, clickable rows, right-aligned figures. Only the rows on the screen are built.

use super::{SortOrder, aligned_cell, figure_column, sort_heading, wide_table, word_column};
use crate::{export, theme::metrics};
use egui::{Align, AsIdSalt, IdSalt, Label, Layout, Sense, Ui};
use egui_extras::{Column as Width, TableBuilder};
use std::borrow::Cow;

/// A column of rows of type `R`.
pub trait Column<R: ?Sized> {
    /// The heading.
    fn title(&self) -> Cow<'_, str>;

    /// The tooltip of the heading.
    fn help(&self) -> Cow<'_, str> {
        self.title()
    }

    /// Whether the column holds words, which align left and sort ascending first.
    fn is_text(&self) -> bool;

    /// Whether a click on the heading sorts the rows.
    fn can_sort(&self) -> bool {
        true
    }

    /// The text of a cell.
    fn text<'a>(&'a self, row: &'a R) -> Cow<'a, str>;

    /// The heading in CSV.
    fn csv_title(&self) -> Cow<'_, str> {
        self.title()
    }

    /// The text of a cell in CSV, with all digits.
    fn exact<'a>(&'a self, row: &'a R) -> Cow<'a, str> {
        self.text(row)
    }
}

/// Returns the rows with these columns as CSV.
pub fn csv<'a, R: 'a, C: Column<R>>(columns: &[C], rows: impl IntoIterator<Item = &'a R>) -> String {
    let titles: Vec<String> = columns.iter().map(|column| export::csv_field(&column.csv_title())).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let line = |row| columns.iter().map(|column| column.exact(row).into_owned()).collect::<Vec<_>>();
    export::csv(&titles, rows.into_iter().map(line))
}

/// Shows a cell with the text of its column.
pub fn text_cell<R>(ui: &mut Ui, column: &impl Column<R>, row: &R) {
    let label = Label::new(column.text(row)).selectable(false);
    ui.add(if column.is_text() { label.truncate() } else { label });
}

/// The clicks in a table.
pub struct TableClicks<C> {
    /// The column whose heading was clicked.
    pub sort_by: Option<C>,
    /// The index of the row that was clicked.
    pub picked: Option<usize>,
    /// Whether the row was double-clicked.
    pub is_double: bool,
}

/// A table of `rows`.
pub struct DataTable<'a, R, C> {
    id: IdSalt,
    columns: &'a [C],
    rows: &'a [R],
    order: Option<&'a [usize]>,
    /// Column indices with widths other than the default.
    widths: Vec<(usize, Width)>,
    /// The position of the row to scroll to.
    scroll_to: Option<usize>,
}

impl<'a, R, C: Column<R> + Clone> DataTable<'a, R, C> {
    /// A table of all rows in their order. The user's column widths are stored under `id`.
    pub fn new(id: impl AsIdSalt, columns: &'a [C], rows: &'a [R]) -> Self {
        Self { id: IdSalt::new(id), columns, rows, order: None, widths: Vec::new(), scroll_to: None }
    }

    /// Shows only the rows with these indices, in this order.
    #[must_use]
    pub fn order(self, order: &'a [usize]) -> Self {
        Self { order: Some(order), ..self }
    }

    /// Sets the width of a column.
    #[must_use]
    pub fn width(mut self, column: usize, width: Width) -> Self {
        self.widths.push((column, width));
        self
    }

    /// Scrolls to the row at this position.
    #[must_use]
    pub fn scroll_to(self, position: Option<usize>) -> Self {
        Self { scroll_to: position, ..self }
    }

    /// Shows the table. `sorted`: whether the rows descend, for the column by which they are sorted; `cell` draws
    /// a cell.
    pub fn show(
        self,
        ui: &mut Ui,
        sorted: impl Fn(&C) -> Option<bool>,
        is_selected: impl Fn(&R) -> bool,
        mut cell: impl FnMut(&mut Ui, &C, &R, usize),
    ) -> TableClicks<C> {
        let mut clicks = TableClicks { sort_by: None, picked: None, is_double: false };
        wide_table(ui, |ui| {
            let header = self.builder(ui).header(metrics::ROW_H, |mut line| {
                for column in self.columns {
                    let mut is_clicked = false;
                    let (_, heading) = line.col(|ui| {
                        if column.can_sort() {
                            let (title, help) = (column.title(), column.help());
                            is_clicked = sort_heading(ui, &title, &help, column.is_text(), sorted(column));
                        } else {
                            ui.weak(&*column.title());
                        }
                    });
                    // A click next to the heading's text hits the heading's cell.
                    if is_clicked || column.can_sort() && heading.clicked() {
                        clicks.sort_by = Some(column.clone());
                    }
                }
            });
            header.body(|body| {
                body.rows(metrics::ROW_H, self.order.map_or(self.rows.len(), <[usize]>::len), |mut line| {
                    let i = self.order.map_or(line.index(), |order| order[line.index()]);
                    let row = &self.rows[i];
                    line.set_selected(is_selected(row));
                    for column in self.columns {
                        line.col(|ui| aligned_cell(ui, column.is_text(), |ui| cell(ui, column, row, i)));
                    }
                    let response = line.response();
                    if response.clicked() {
                        (clicks.picked, clicks.is_double) = (Some(i), response.double_clicked());
                    }
                });
            });
        });
        clicks
    }

    fn builder<'b>(&self, ui: &'b mut Ui) -> TableBuilder<'b> {
        let width = |(i, column): (usize, &C)| match self.widths.iter().find(|(column_idx, _)| *column_idx == i) {
            Some((_, width)) => *width,
            None if column.is_text() => word_column(metrics::NAME_W),
            None => figure_column(ui, &column.title()),
        };
        let widths: Vec<Width> = self.columns.iter().enumerate().map(width).collect();
        let table = TableBuilder::new(ui).id_salt(self.id).striped(true).sense(Sense::click());
        let table = table.auto_shrink([false, false]).cell_layout(Layout::left_to_right(Align::Center));
        let table = match self.scroll_to {
            Some(position) => table.scroll_to_row(position, None),
            None => table,
        };
        widths.into_iter().fold(table, TableBuilder::column)
    }
}

impl<C: PartialEq> SortOrder<C> {
    /// Whether the rows descend, if they are sorted by `column`.
    pub fn descending_by(&self, column: &C) -> Option<bool> {
        (self.column == *column).then_some(self.descending)
    }
}

/// Shows a small table of figures with weak headings. `contents` adds the rows.
pub fn figure_grid(ui: &mut Ui, id: impl AsIdSalt, titles: &[&str], contents: impl FnOnce(&mut Ui)) {
    let grid = egui::Grid::new(id).num_columns(titles.len()).striped(true).spacing([metrics::GAP_WIDE, 2.0]);
    grid.show(ui, |ui| {
        titles.iter().for_each(|title| _ = ui.weak(*title));
        ui.end_row();
        contents(ui);
    });
}

/// Shows names with values in two columns.
pub fn pairs_grid(ui: &mut Ui, id: impl AsIdSalt, pairs: impl IntoIterator<Item = (String, String)>) {
    let spacing = [metrics::GAP_WIDE, metrics::GAP / 2.0];
    egui::Grid::new(id).num_columns(2).spacing(spacing).show(ui, |ui| {
        for (name, value) in pairs {
            ui.weak(name);
            ui.label(value);
            ui.end_row();
        }
    });
}
