//! The sessions as a table; a click picks a run.

use super::{
    model::{Column, Key, Session},
    state::State,
};
use crate::Selection;
use egui::{Frame, Margin, Sense, Ui};
use std::{borrow::Cow, sync::Arc};
use ui::{
    theme::metrics,
    widgets::{self, DataTable, SortOrder, named, names_column, swatch, text_cell, text_elided_at, word_column},
};

#[derive(Clone, Copy)]
pub(super) enum TableColumn<'a> {
    /// The session's run.
    Run,
    /// A hyperparameter or metric.
    Value(&'a Column),
    /// How the session ended.
    Status,
}

impl widgets::Column<Session> for TableColumn<'_> {
    fn title(&self) -> Cow<'_, str> {
        match self {
            Self::Run => "Run".into(),
            Self::Value(column) => column.key.title().into(),
            Self::Status => "Status".into(),
        }
    }

    fn is_text(&self) -> bool {
        !matches!(self, Self::Value(Column { extent: Some(_), .. }))
    }

    fn can_sort(&self) -> bool {
        matches!(self, Self::Value(_))
    }

    fn text<'a>(&'a self, session: &'a Session) -> Cow<'a, str> {
        match self {
            Self::Run => Cow::from(&*session.label),
            Self::Value(column) => session.cells.get(&column.key).map_or_else(Cow::default, |cell| cell.text().into()),
            Self::Status => session.status.into(),
        }
    }

    fn csv_title(&self) -> Cow<'_, str> {
        match self {
            Self::Run => "run".into(),
            Self::Value(_) => self.title(),
            Self::Status => "status".into(),
        }
    }

    fn exact<'a>(&'a self, session: &'a Session) -> Cow<'a, str> {
        match self {
            Self::Value(column) => session.cells.get(&column.key).map_or_else(Cow::default, |cell| cell.exact().into()),
            _ => self.text(session),
        }
    }
}

impl State {
    /// Shows the table; returns the run that was picked.
    pub(super) fn table_ui(&mut self, ui: &mut Ui, selection: &Selection) -> Option<Arc<str>> {
        let has_status = self.table.sessions.iter().any(|session| !session.status.is_empty());
        let columns: Vec<TableColumn<'_>> = std::iter::once(TableColumn::Run)
            .chain(self.columns().map(TableColumn::Value))
            .chain(has_status.then_some(TableColumn::Status))
            .collect();
        let mut table = DataTable::new("sessions", &columns, &self.table.sessions).order(&self.shown.rows);
        for (i, column) in columns.iter().enumerate().filter(|(_, column)| widgets::Column::is_text(*column)) {
            let labels = self.table.sessions.iter().map(|session| selection.runs.short(&session.label));
            let is_run = matches!(column, TableColumn::Run);
            table = table.width(i, if is_run { names_column(ui, labels) } else { word_column(metrics::FIGURE_W) });
        }
        let sorted = |column: &TableColumn<'_>| match (column, &self.choices.sorting) {
            (TableColumn::Value(column), Some(sorting)) => sorting.descending_by(&column.key),
            _ => None,
        };
        let is_selected = |session: &Session| selection.run.get() == Some(&session.label);
        let frame = Frame::new().inner_margin(Margin::symmetric(metrics::PAD as i8, 0));
        let clicks = frame.show(ui, |ui| {
            table.show(ui, sorted, is_selected, |ui, column, session, i| match column {
                TableColumn::Run => self.run_ui(ui, session, i, selection),
                TableColumn::Value(_) => text_cell(ui, column, session),
                TableColumn::Status => _ = ui.weak(session.status),
            })
        });
        let picked = clicks.inner.picked.map(|i| self.table.sessions[i].label.clone());
        if let Some(TableColumn::Value(column)) = clicks.inner.sort_by {
            let key = column.key.clone();
            self.sort_by(key);
        }
        picked
    }

    fn run_ui(&self, ui: &mut Ui, session: &Session, i: usize, selection: &Selection) {
        swatch(ui, self.color(ui, i));
        let (runs, label) = (&selection.runs, &*session.label);
        let (room, response) = ui.allocate_exact_size(ui.available_size_before_wrap(), Sense::hover());
        text_elided_at(ui, runs.short(label), room, ui.visuals().text_color(), runs.differs_at(label));
        named(&response, egui::Role::Label, label);
        response.on_hover_text(label);
    }

    fn sort_by(&mut self, key: Key) {
        match &mut self.choices.sorting {
            Some(sorting) => sorting.click(key, false),
            none => *none = Some(SortOrder { column: key, descending: false }),
        }
    }
}
