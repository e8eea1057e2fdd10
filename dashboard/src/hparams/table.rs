//! The sessions as a table: headings that sort, rows that pick a run. Only the rows on the screen are built.

use super::{
    HParamsView,
    model::{Cell, Column, Key},
};
use crate::{
    Selection,
    theme::{metrics, palette},
    widgets::{Sorting, beside, figure_column, named, sort_heading, swatch, text_elided_at, wide_table, word_column},
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
        let names = self.names_w(ui, selection);
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
                    .column(word_column(names));
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
                            let (runs, label) = (&selection.runs, &*session.label);
                            let (room, response) =
                                ui.allocate_exact_size(ui.available_size_before_wrap(), Sense::hover());
                            let color = ui.visuals().text_color();
                            text_elided_at(ui, runs.short(label), room, color, runs.differs_at(label));
                            named(&response, egui::Role::Label, label);
                            response.on_hover_text(label);
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

    /// How wide the column of runs is at first: as its longest name, but never more than a share of the room.
    fn names_w(&self, ui: &Ui, selection: &Selection) -> f32 {
        let labels = self.table.sessions.iter().map(|session| selection.runs.short(&session.label));
        let font = egui::FontId::proportional(metrics::TEXT);
        let longest = labels.max_by_key(|label| label.chars().count()).unwrap_or_default();
        let galley = ui.painter().layout_no_wrap(longest.to_owned(), font, egui::Color32::PLACEHOLDER);
        let width = galley.size().x + metrics::SWATCH + 3.0 * metrics::PAD;
        width.clamp(metrics::NAME_W, metrics::NAME_W.max(ui.available_width() * metrics::NAMES_SHARE))
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
