//! The common state of the pictures: the table, the user's choices, and the sessions that pass.

use super::{
    axis::{Axis, AxisScale},
    model::{Column, Filters, Key, Session, Statistic, Table},
};
use crate::Selection;
use egui::Ui;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use ui::address::Params;
use ui::{address::Choice, theme::palette, widgets::SortOrder};

/// A picture of the sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Table,
    Parallel,
    Scatter,
    Matrix,
}

impl Choice for Mode {
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Table, "table", "Table"),
        (Self::Parallel, "parallel", "Parallel coordinates"),
        (Self::Scatter, "scatter", "Scatter plot"),
        (Self::Matrix, "matrix", "Scatter matrix"),
    ];
}

/// The user's choices.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Choices {
    pub(super) mode: Mode,
    pub(super) statistic: Statistic,
    /// Columns that the user hid.
    pub(super) hidden: BTreeSet<Key>,
    pub(super) filters: Filters,
    pub(super) sorting: Option<SortOrder<Key>>,
    pub(super) scale: BTreeMap<Key, AxisScale>,
    pub(super) color: Option<Key>,
    pub(super) x: Option<Key>,
    pub(super) y: Option<Key>,
}

impl Choices {
    /// Returns the choices that differ from the defaults as parameters of an address.
    pub(super) fn params(&self) -> Params {
        let mut out = Params::default();
        out.set_some("mode", (self.mode != Mode::default()).then(|| self.mode.id()));
        out.set_some("metric", (self.statistic != Statistic::default()).then(|| self.statistic.id()));
        if let Some(sorting) = &self.sorting {
            out.set("sort", sorting.column.address());
            out.set_some("descending", sorting.descending.then_some(1));
        }
        for (name, key) in [("color", &self.color), ("x", &self.x), ("y", &self.y)] {
            out.set_some(name, key.as_ref().map(Key::address));
        }
        self.hidden.iter().for_each(|key| out.set("hide", key.address()));
        self.scale.iter().for_each(|(key, scale)| out.set("spread", format!("{}:{}", scale.id(), key.address())));
        for (key, [lo, hi]) in &self.filters.ranges {
            out.set("range", serde_json::json!([key.address(), lo, hi]));
        }
        for (key, excluded) in self.filters.excluded.iter().filter(|(_, excluded)| !excluded.is_empty()) {
            out.set("without", serde_json::json!([key.address(), excluded]));
        }
        out
    }
}

/// The sessions that pass, in order, with their colours; cached while their inputs stay the same.
#[derive(Default)]
pub(super) struct Arrangement {
    /// The inputs: choices, bits of the time of the table, filter of runs.
    pub(super) key: Option<(Choices, u64, String)>,
    /// Indices of the sessions in the table.
    pub(super) rows: Vec<usize>,
    /// The colour of each session: its position on the colour's axis, or the colour index of its run.
    pub(super) colors: Vec<Result<f64, usize>>,
    /// Incremented with every change.
    pub(super) revision: u64,
}

/// The table and the user's choices.
#[derive(Default)]
pub(super) struct State {
    pub(super) choices: Choices,
    pub(super) table: Table,
    pub(super) shown: Arrangement,
}

impl State {
    /// Returns the columns that are not hidden.
    pub(super) fn columns(&self) -> impl Iterator<Item = &Column> {
        self.table.columns.iter().filter(|column| !self.choices.hidden.contains(&column.key))
    }

    /// Updates the sessions that pass. `computed_at` is the time at which the table was computed.
    pub(super) fn arrange(&mut self, computed_at: f64, selection: &Selection) {
        let (computed_at, runs) = (computed_at.to_bits(), selection.runs.filter.text());
        let is_same = |key: &(Choices, u64, String)| key.0 == self.choices && key.1 == computed_at && key.2 == runs;
        if self.shown.key.as_ref().is_some_and(is_same) {
            return;
        }
        let order = self.choices.sorting.as_ref().map(|s| (&s.column, s.descending));
        self.shown.rows = self.table.filtered_rows(&self.choices.filters, order, |l| selection.runs.filter.matches(l));
        let axis = self.choices.color.as_ref().and_then(|key| self.axis(key));
        let color = |session: &Session| match &axis {
            Some(axis) => Ok(session.cells.get(&axis.key).and_then(|cell| axis.place(cell)).unwrap_or(f64::NAN)),
            None => Err(selection.runs.color(&session.label).unwrap_or(0)),
        };
        self.shown.colors = self.table.sessions.iter().map(color).collect();
        self.shown.key = Some((self.choices.clone(), computed_at, runs.to_owned()));
        self.shown.revision += 1;
    }

    /// Returns a column as an axis.
    pub(super) fn axis(&self, key: &Key) -> Option<Axis> {
        let column = self.table.column(key)?;
        let scale = self.choices.scale.get(key).copied().unwrap_or_else(|| AxisScale::default_for(column));
        Some(Axis::new(&self.table, column, scale))
    }

    /// Applies the parameters of an address, the inverse of [`Choices::params`]. Unknown columns are ignored.
    pub(super) fn apply_params(&mut self, params: &Params) {
        let key_of = |text: &str| self.table.columns.iter().map(|c| &c.key).find(|key| key.address() == text).cloned();
        let key = |name: &str| params.get(name).and_then(key_of);
        let json = |text: &str| serde_json::from_str::<Value>(text).ok();
        let mut choices = Choices {
            mode: params.get("mode").and_then(Mode::by_id).unwrap_or_default(),
            statistic: params.get("metric").and_then(Statistic::by_id).unwrap_or_default(),
            hidden: params.all("hide").filter_map(key_of).collect(),
            color: key("color"),
            x: key("x"),
            y: key("y"),
            ..Choices::default()
        };
        let descending = params.get("descending") == Some("1");
        choices.sorting = key("sort").map(|column| SortOrder { column, descending });
        let scale = |text: &str| {
            let (name, key) = text.split_once(':')?;
            Some((key_of(key)?, AxisScale::by_id(name)?))
        };
        choices.scale = params.all("spread").filter_map(scale).collect();
        let range = |value: Value| Some((key_of(value[0].as_str()?)?, [value[1].as_f64()?, value[2].as_f64()?]));
        choices.filters.ranges = params.all("range").filter_map(json).filter_map(range).collect();
        let excluded = |value: Value| {
            let values = value[1].as_array()?.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect();
            Some((key_of(value[0].as_str()?)?, values))
        };
        choices.filters.excluded = params.all("without").filter_map(json).filter_map(excluded).collect();
        self.choices = choices;
    }

    /// Returns the colour of a session.
    pub(super) fn color(&self, ui: &Ui, session: usize) -> egui::Color32 {
        match self.shown.colors.get(session) {
            Some(Ok(share)) => palette(ui).ramp(*share),
            Some(Err(color_idx)) => palette(ui).series(*color_idx),
            None => palette(ui).aggregate,
        }
    }
}
