//! Hyperparameters of runs with their results, as a table, as parallel coordinates and as points.
//!
//! [`model`] reads sessions in a thread and has the table and its axes, without egui; [`state`] is the common state;
//! [`columns`] is the list at the left; [`table`], [`parallel`] and [`scatter`] are the pictures.

mod columns;
mod legend;
mod model;
mod parallel;
mod scatter;
mod state;
mod table;

use crate::{Data, Selection, View, ViewKind};
use egui::{ComboBox, Role, Ui};
use model::{
    Key, Statistic, Table, axis,
    sessions::{self, SessionData, Source},
};
use state::{Mode, State};
use std::sync::Arc;
use table::TableColumn;
use ui::address::{Accepts, Names, Params};
use ui::{
    address::{Choice as _, Value as _},
    background::Refresher,
    command::Entry,
    format,
    theme::{metrics, palette},
    widgets::{choice_buttons, empty_state, group, named, side_panel, toolbar},
};

/// Least time between two updates of growing runs' metrics, seconds.
const REFRESH_S: f64 = 0.5;

/// The commands of the panel.
const ENTRIES: &[Entry] = &[
    Entry::command("table", "", "Show the table"),
    Entry::command("parallel", "", "Show parallel coordinates"),
    Entry::command("scatter", "", "Show the scatter plot"),
    Entry::command("matrix", "", "Show the scatter matrix"),
    Entry::gesture("Click a session", "Pick its run in every panel"),
    Entry::gesture("Drag along an axis", "Show the sessions that pass there; a click shows all again"),
];

/// The number of runs and of values.
type Stamp = (usize, usize);

/// The panel's state.
#[derive(Default)]
pub struct HParamsView {
    state: State,
    /// The address to apply once the columns are known.
    requested: Option<Params>,
    reader: Refresher<Stamp, (Stamp, Vec<Source>), (Stamp, SessionData)>,
    /// The key of the table: values, versions of the logdirs, statistic.
    table_key: Option<(Stamp, u64, Statistic)>,
    /// The time at which the table was computed, seconds of the window's clock.
    computed_at: f64,
    /// The reason why values are missing.
    read_error: Option<String>,
    parallel: parallel::LineCache,
}

impl View for HParamsView {
    fn kind(&self) -> ViewKind {
        ViewKind::HParams
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn run(&mut self, id: &'static str) {
        self.state.choices.mode = Mode::by_id(id).unwrap_or_default();
    }

    fn address(&self, _data: &Data) -> Params {
        self.state.choices.params()
    }

    fn go_to(&mut self, params: &Params) {
        self.requested = Some(params.clone());
    }

    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        let columns =
            [TableColumn::Run, TableColumn::Status].into_iter().chain(self.state.columns().map(TableColumn::Value));
        let columns: Vec<TableColumn<'_>> = columns.collect();
        Some(ui::widgets::csv(&columns, self.state.shown.rows.iter().map(|i| &self.state.table.sessions[*i])))
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        self.update(ui, data, selection);
        if self.state.table.sessions.is_empty() {
            let text = self.read_error.clone().unwrap_or_else(|| {
                "A run that writes hyperparameters (TensorBoard's hparams plugin, torch's add_hparams) is a session here,\n\
                 and so is one whose run.json has its command."
                    .to_owned()
            });
            let title = if self.reader.is_busy() { "Reading hyperparameters…" } else { "No hyperparameters yet" };
            return empty_state(ui, title, &text);
        }
        side_panel(ui, "hparams columns", |ui| columns::ui(ui, &self.state.table, &mut self.state.choices));
        toolbar(ui, |ui| self.toolbar_ui(ui, selection));
        if self.state.shown.rows.is_empty() {
            return empty_state(ui, "No matches", "Change the filters at the left, or of runs in Scalars.");
        }
        self.state.legend_ui(ui);
        let picked = match self.state.choices.mode {
            Mode::Table => self.state.table_ui(ui, selection),
            Mode::Parallel => self.state.parallel_ui(ui, &mut self.parallel, selection),
            Mode::Scatter => self.state.scatter_ui(ui, selection),
            Mode::Matrix => self.state.matrix_ui(ui, selection),
        };
        if let Some(label) = picked {
            selection.run.set(ViewKind::HParams, Some(label));
        }
    }
}

impl HParamsView {
    /// Requests new values; updates table, rows and colours.
    fn update(&mut self, ui: &Ui, data: &Data, selection: &Selection) {
        let read = |(stamp, sources)| (stamp, sessions::read(sources));
        let request = |stamp, _| (stamp, sessions::sources(data));
        let work = ("hyperparameters", read as fn(_) -> _);
        if let Some(answer) = self.reader.ask(ui.ctx(), work, 0.0, sessions::n_runs_and_values(data), request) {
            let version = data.logdirs.iter().fold(0, |sum, logdir| logdir.runs.version.wrapping_add(sum));
            let key = (answer.0, version, self.state.choices.statistic);
            let now = ui.input(|i| i.time);
            let is_growth = self.table_key.is_some_and(|old| (old.0, old.2) == (key.0, key.2));
            if self.table_key != Some(key) && !(is_growth && now - self.computed_at < REFRESH_S) {
                (self.table_key, self.computed_at) = (Some(key), now);
                self.state.table =
                    Table::from_sessions(sessions::sessions(&answer.1, data, self.state.choices.statistic));
                let unreadable = answer.1.unreadable.as_ref();
                self.read_error = unreadable.map(|(n, why)| format!("{n} values cannot be read: {why}"));
                self.state.shown.key = None;
            }
        }
        if !self.state.table.columns.is_empty()
            && let Some(params) = self.requested.take()
        {
            self.state.apply_params(&params);
        }
        self.state.arrange(self.computed_at, selection);
    }

    fn toolbar_ui(&mut self, ui: &mut Ui, selection: &mut Selection) {
        ui.horizontal_wrapped(|ui| {
            group(ui, "mode", |ui| choice_buttons(ui, "Show", &mut self.state.choices.mode));
            group(ui, "metrics", |ui| {
                ui.weak("Metrics");
                choice_buttons(ui, "Metrics", &mut self.state.choices.statistic);
            });
            group(ui, "columns", |ui| {
                column_combo(ui, "Colour", "run", &self.state.table, &mut self.state.choices.color);
                if self.state.choices.mode == Mode::Scatter {
                    column_combo(ui, "x", "choose", &self.state.table, &mut self.state.choices.x);
                    column_combo(ui, "y", "choose", &self.state.table, &mut self.state.choices.y);
                }
            });
            let n_all = format::count_of(self.state.table.sessions.len() as u64, "session");
            group(ui, "sessions", |ui| ui.weak(format!("{} of {n_all}", self.state.shown.rows.len())));
            let hint = "Every panel shows the runs of these sessions alone";
            if ui.button("Show only these runs").on_hover_text(hint).clicked() {
                let labels: Vec<&Arc<str>> =
                    self.state.shown.rows.iter().map(|i| &self.state.table.sessions[*i].label).collect();
                selection.runs.show_only(|run| labels.iter().any(|l| crate::selection::is_at_or_below(l, run)));
            }
            if let Some(error) = &self.read_error {
                ui.colored_label(palette(ui).warning, error);
            }
        });
    }
}

/// Shows a list of columns to choose from; `none` is the title of the choice of no column.
fn column_combo(ui: &mut Ui, name: &str, none: &str, table: &Table, chosen: &mut Option<Key>) {
    ui.weak(name);
    let text = chosen.as_ref().map_or_else(|| none.to_owned(), Key::title);
    let combo = ComboBox::from_id_salt(name).selected_text(&text).width(metrics::FILTER_W / 2.0).truncate();
    let response = combo.show_ui(ui, |ui| {
        ui.selectable_value(chosen, None, none);
        for column in &table.columns {
            ui.selectable_value(chosen, Some(column.key.clone()), column.key.title());
        }
    });
    named(&response.response, Role::ComboBox, &format!("{name}: {text}"));
}

/// The parameters of this panel in addresses.
pub(crate) fn accepts() -> Names {
    vec![
        ("mode", Mode::accepts()),
        ("metric", Statistic::accepts()),
        ("hide", Accepts::Text),
        ("color", Accepts::Text),
        ("x", Accepts::Text),
        ("y", Accepts::Text),
        ("sort", Accepts::Text),
        ("descending", Accepts::Flag),
        ("spread", Accepts::Text),
        ("range", Accepts::Text),
        ("without", Accepts::Text),
    ]
}
