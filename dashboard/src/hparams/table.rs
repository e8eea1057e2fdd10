//! The sessions as a table: headings that sort, rows that pick a run. Only the rows on the screen are built.

use super::{
    HParamsView,
    model::{Cell, Column, Key},
};
use crate::{
    Selection,
    theme::{metrics, palette},
    widgets::{Sorting, beside, figure_column, sort_heading, swatch, wide_table, word_column},
};
use egui::{Align, Frame, Label, Layout, Margin, Sense, Ui};
use egui_extras::{Column as Width, TableBuilder};
use std::sync::Arc;

impl HParamsView {
    /// Shows the table; the run that was picked.
    pub(super) fn table_ui(&mut self, ui: &mut Ui, selection: &Selection) -> Option<Arc<str>> {
        let columns: Vec<&Column> = self.columns().collect();
        let has_status = self.table.sessions.iter().any(|session| !session.status.is_empty());
        let (mut sort_by, mut picked) = (None, None);
        let sorting = &self.choices.sorting;
        let frame = Frame::new().inner_margin(Margin::symmetric(metrics::PAD as i8, 0));
        frame.show(ui, |ui| {
            wide_table(ui, |ui| {
                let width = |column: &&Column| match column.extent {
                    Some(_) => figure_column(ui, &column.key.title()),
                    None => word_column(metrics::FIGURE_W),
                };
                let widths: Vec<Width> = columns.iter().map(width).collect();
                let mut table = TableBuilder::new(ui)
                    .striped(true)
                    .sense(Sense::click())
                    .cell_layout(Layout::left_to_right(Align::Center))
                    .column(word_column(metrics::NAME_W));
                table = widths.into_iter().fold(table, TableBuilder::column);
                if has_status {
                    table = table.column(word_column(metrics::FIGURE_W));
                }
                let header = table.header(metrics::ROW_H, |mut line| {
                    line.col(|ui| _ = ui.weak("Run"));
                    for column in &columns {
                        line.col(|ui| {
                            let sorted = sorting.as_ref().filter(|s| s.column == column.key).map(|s| s.descending);
                            let title = column.key.title();
                            if sort_heading(ui, &title, &title, column.extent.is_none(), sorted) {
                                sort_by = Some(column.key.clone());
                            }
                        });
                    }
                    if has_status {
                        line.col(|ui| _ = ui.weak("Status"));
                    }
                });
                header.body(|body| {
                    body.rows(metrics::ROW_H, self.shown.rows.len(), |mut line| {
                        let i = self.shown.rows[line.index()];
                        let session = &self.table.sessions[i];
                        line.set_selected(selection.run.get() == Some(&session.label));
                        line.col(|ui| {
                            swatch(ui, self.color(ui, i));
                            ui.add(Label::new(&*session.label).selectable(false).truncate());
                        });
                        for column in &columns {
                            line.col(|ui| cell_ui(ui, session.cells.get(&column.key)));
                        }
                        if has_status {
                            line.col(|ui| _ = ui.weak(session.status));
                        }
                        if line.response().clicked() {
                            picked = Some(session.label.clone());
                        }
                    });
                });
            });
        });
        if let Some(key) = sort_by {
            self.sort_by(key);
        }
        picked
    }

    fn sort_by(&mut self, key: Key) {
        match &mut self.choices.sorting {
            Some(sorting) => sorting.click(key, false),
            none => *none = Some(Sorting { column: key, descending: false }),
        }
    }

    /// The colour of a session.
    pub(super) fn color(&self, ui: &Ui, session: usize) -> egui::Color32 {
        match self.shown.colors.get(session) {
            Some(Ok(share)) => palette(ui).ramp(*share),
            Some(Err(color_idx)) => palette(ui).series(*color_idx),
            None => palette(ui).aggregate,
        }
    }
}

fn cell_ui(ui: &mut Ui, cell: Option<&Cell>) {
    let Some(cell) = cell else { return };
    beside(ui, matches!(cell, Cell::Text(_)), |ui| match cell {
        Cell::Number(_) => ui.add(Label::new(cell.text()).selectable(false)),
        Cell::Text(text) => ui.add(Label::new(&**text).selectable(false).truncate()),
    });
}
