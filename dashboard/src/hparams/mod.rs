//! Hyperparameters: which choices led to which results, as a table, as parallel coordinates and as points.
//!
//! [`sessions`]: what the runs tell, read by a thread. [`model`]: columns, filters, order; [`axis`]: values along a line;
//! both without egui. [`columns`]: the list at the left; [`table`], [`parallel`], [`scatter`]: the pictures.

mod axis;
mod columns;
mod legend;
mod model;
mod parallel;
mod scatter;
mod sessions;
mod table;

use crate::{
    Data, Selection, View, ViewKind,
    accepts::{Accepts, Names},
    address::Params,
    command::Entry,
    export, format,
    theme::metrics,
    timeline::background::Background,
    widgets::{Sorting, empty_state, named, side_panel, together, toolbar},
};
use axis::{Axis, Spread};
use egui::{ComboBox, Role, Ui};
use model::{Cell, Column, Filters, Key, Statistic, Table};
use serde_json::Value;
use sessions::{Found, Source};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use table::TableColumn;

/// The metrics of growing runs are looked up anew at most this often, seconds.
const REFRESH_S: f64 = 0.5;

/// What is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Table,
    Parallel,
    Scatter,
    Matrix,
}

impl Mode {
    const ALL: [Self; 4] = [Self::Table, Self::Parallel, Self::Scatter, Self::Matrix];

    fn name(self) -> &'static str {
        match self {
            Self::Table => "Table",
            Self::Parallel => "Parallel coordinates",
            Self::Scatter => "Scatter",
            Self::Matrix => "Scatter matrix",
        }
    }

    /// Its name in addresses.
    fn id(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Parallel => "parallel",
            Self::Scatter => "scatter",
            Self::Matrix => "matrix",
        }
    }
}

/// What can be done in the panel.
const ENTRIES: &[Entry] = &[
    Entry::command("table", "", "Hyperparameters as a table"),
    Entry::command("parallel", "", "Hyperparameters as parallel coordinates"),
    Entry::command("scatter", "", "Hyperparameters as points"),
    Entry::command("matrix", "", "Hyperparameters as a matrix of points"),
    Entry::gesture("Click a session", "Pick its run in every panel"),
    Entry::gesture("Drag along an axis", "Show the sessions that pass there; a click shows all again"),
];

/// What the user chose.
#[derive(Clone, Debug, Default, PartialEq)]
struct Choices {
    mode: Mode,
    statistic: Statistic,
    /// Columns that are not shown.
    hidden: BTreeSet<Key>,
    filters: Filters,
    sorting: Option<Sorting<Key>>,
    spread: BTreeMap<Key, Spread>,
    color: Option<Key>,
    x: Option<Key>,
    y: Option<Key>,
}

/// Reads what the runs say; a question and its answer carry how many runs and values there were.
type Reader = Background<((usize, usize), Vec<Source>), ((usize, usize), Found)>;

/// The panel's state.
#[derive(Default)]
pub struct HParamsView {
    choices: Choices,
    /// An address whose columns are not known yet.
    wanted: Option<Params>,
    reader: Option<Reader>,
    asked: Option<(usize, usize)>,
    table: Table,
    /// What `table` was made from, and when.
    of: Option<((usize, usize), u64, Statistic)>,
    made_at: f64,
    /// Why some values are missing.
    trouble: Option<String>,
    shown: Shown,
    parallel: parallel::Cache,
}

/// The sessions that pass, in order, with their colours; kept while nothing that they depend on changes.
#[derive(Default)]
struct Shown {
    of: Option<(Choices, u64, String)>,
    rows: Vec<usize>,
    /// By session: its place on the colour's axis, or the index of its run's colour.
    colors: Vec<Result<f64, usize>>,
    /// Grows with each change.
    revision: u64,
}

impl View for HParamsView {
    fn kind(&self) -> ViewKind {
        ViewKind::HParams
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn run(&mut self, id: &'static str) {
        self.choices.mode = Mode::ALL.into_iter().find(|mode| mode.id() == id).unwrap_or_default();
    }

    fn address(&self, _data: &Data) -> Params {
        let now = &self.choices;
        let mut out = Params::default();
        out.set_some("mode", (now.mode != Mode::default()).then(|| now.mode.id()));
        out.set_some("metric", (now.statistic != Statistic::default()).then(|| now.statistic.name()));
        if let Some(sorting) = &now.sorting {
            out.set("sort", sorting.column.address());
            out.set_some("descending", sorting.descending.then_some(1));
        }
        for (name, key) in [("color", &now.color), ("x", &now.x), ("y", &now.y)] {
            out.set_some(name, key.as_ref().map(Key::address));
        }
        now.hidden.iter().for_each(|key| out.set("hide", key.address()));
        now.spread.iter().for_each(|(key, spread)| out.set("spread", format!("{}:{}", spread.name(), key.address())));
        for (key, [lo, hi]) in &now.filters.ranges {
            out.set("range", serde_json::json!([key.address(), lo, hi]));
        }
        for (key, without) in now.filters.without.iter().filter(|(_, without)| !without.is_empty()) {
            out.set("without", serde_json::json!([key.address(), without]));
        }
        out
    }

    fn go_to(&mut self, params: &Params) {
        self.wanted = Some(params.clone());
    }

    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        let columns = [TableColumn::Run, TableColumn::Status].into_iter().chain(self.columns().map(TableColumn::Value));
        let columns: Vec<TableColumn<'_>> = columns.collect();
        Some(ui::widgets::csv(&columns, self.shown.rows.iter().map(|i| &self.table.sessions[*i])))
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        self.update(ui, data, selection);
        if self.table.sessions.is_empty() {
            let text = self.trouble.clone().unwrap_or_else(|| {
                "A run that writes hyperparameters (TensorBoard's hparams plugin, torch's add_hparams) is a session here,\n\
                 and so is one whose run.json tells its command."
                    .to_owned()
            });
            let title = if self.is_reading() { "Reading hyperparameters" } else { "No hyperparameters yet" };
            return empty_state(ui, title, &text);
        }
        side_panel(ui, "hparams columns", |ui| columns::ui(ui, &self.table, &mut self.choices));
        toolbar(ui, |ui| self.toolbar_ui(ui, selection));
        if self.shown.rows.is_empty() {
            return empty_state(
                ui,
                "Nothing passes the filters",
                "Change the filters at the left, or of runs in Scalars.",
            );
        }
        self.legend_ui(ui);
        let picked = match self.choices.mode {
            Mode::Table => self.table_ui(ui, selection),
            Mode::Parallel => self.parallel_ui(ui, selection),
            Mode::Scatter => self.scatter_ui(ui, selection),
            Mode::Matrix => self.matrix_ui(ui, selection),
        };
        if let Some(label) = picked {
            selection.run.set(ViewKind::HParams, Some(label));
        }
    }
}

impl HParamsView {
    fn is_reading(&self) -> bool {
        self.reader.as_ref().is_some_and(Background::is_busy)
    }

    /// The columns that are shown.
    fn columns(&self) -> impl Iterator<Item = &Column> {
        self.table.columns.iter().filter(|column| !self.choices.hidden.contains(&column.key))
    }

    /// Asks for what is new, and brings table, rows and colours up to date.
    fn update(&mut self, ui: &Ui, data: &Data, selection: &Selection) {
        let n_values = sessions::n_values(data);
        let ctx = ui.ctx().clone();
        let answer = |(stamp, sources): ((usize, usize), Vec<Source>)| (stamp, sessions::read(sources));
        let reader = self
            .reader
            .get_or_insert_with(|| Background::start("hyperparameters", answer, move || ctx.request_repaint()));
        if self.asked != Some(n_values) && !reader.is_busy() {
            self.asked = Some(n_values);
            reader.request((n_values, sessions::sources(data)));
        }
        if let Some(answer) = reader.result() {
            let version = data.logdirs.iter().fold(0, |sum, logdir| logdir.runs.version.wrapping_add(sum));
            let of = (answer.0, version, self.choices.statistic);
            let now = ui.input(|i| i.time);
            let is_growth = self.of.is_some_and(|old| (old.0, old.2) == (of.0, of.2));
            if self.of != Some(of) && !(is_growth && now - self.made_at < REFRESH_S) {
                (self.of, self.made_at) = (Some(of), now);
                self.table = Table::of(sessions::sessions(&answer.1, data, self.choices.statistic));
                self.trouble = answer.1.unreadable.as_ref().map(|(n, why)| format!("{n} values cannot be read: {why}"));
                self.shown.of = None;
            }
        }
        if !self.table.columns.is_empty()
            && let Some(params) = self.wanted.take()
        {
            self.arrive(&params);
        }
        self.update_shown(selection);
    }

    fn update_shown(&mut self, selection: &Selection) {
        let (made_at, runs) = (self.made_at.to_bits(), selection.runs.filter.text());
        let is_same = |of: &(Choices, u64, String)| of.0 == self.choices && of.1 == made_at && of.2 == runs;
        if self.shown.of.as_ref().is_some_and(is_same) {
            return;
        }
        let order = self.choices.sorting.as_ref().map(|s| (&s.column, s.descending));
        self.shown.rows = self.table.arranged(&self.choices.filters, order, |l| selection.runs.filter.matches(l));
        let axis = self.choices.color.as_ref().and_then(|key| self.axis(key));
        let color = |session: &model::Session| match &axis {
            Some(axis) => Ok(session.cells.get(&axis.key).and_then(|cell| axis.place(cell)).unwrap_or(f64::NAN)),
            None => Err(selection.runs.color(&session.label).unwrap_or(0)),
        };
        self.shown.colors = self.table.sessions.iter().map(color).collect();
        self.shown.of = Some((self.choices.clone(), made_at, runs.to_owned()));
        self.shown.revision += 1;
    }

    fn axis(&self, key: &Key) -> Option<Axis> {
        let column = self.table.column(key)?;
        let spread = self.choices.spread.get(key).copied().unwrap_or_else(|| Spread::usual(column));
        Some(Axis::of(&self.table, column, spread))
    }

    /// The inverse of [`View::address`], once the columns are known. What is not there is left out.
    fn arrive(&mut self, params: &Params) {
        let key_of = |text: &str| self.table.columns.iter().map(|c| &c.key).find(|key| key.address() == text).cloned();
        let key = |name: &str| params.get(name).and_then(key_of);
        let json = |text: &str| serde_json::from_str::<Value>(text).ok();
        let mut now = Choices {
            mode: Mode::ALL.into_iter().find(|m| Some(m.id()) == params.get("mode")).unwrap_or_default(),
            statistic: Statistic::ALL.into_iter().find(|s| Some(s.name()) == params.get("metric")).unwrap_or_default(),
            hidden: params.all("hide").filter_map(key_of).collect(),
            color: key("color"),
            x: key("x"),
            y: key("y"),
            ..Choices::default()
        };
        let descending = params.get("descending") == Some("1");
        now.sorting = key("sort").map(|column| Sorting { column, descending });
        let spread = |text: &str| {
            let (name, key) = text.split_once(':')?;
            Some((key_of(key)?, Spread::ALL.into_iter().find(|s| s.name() == name)?))
        };
        now.spread = params.all("spread").filter_map(spread).collect();
        let range = |value: Value| Some((key_of(value[0].as_str()?)?, [value[1].as_f64()?, value[2].as_f64()?]));
        now.filters.ranges = params.all("range").filter_map(json).filter_map(range).collect();
        let without = |value: Value| {
            let out = value[1].as_array()?.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect();
            Some((key_of(value[0].as_str()?)?, out))
        };
        now.filters.without = params.all("without").filter_map(json).filter_map(without).collect();
        self.choices = now;
    }

    fn toolbar_ui(&mut self, ui: &mut Ui, selection: &mut Selection) {
        ui.horizontal_wrapped(|ui| {
            together(ui, "mode", |ui| {
                for mode in Mode::ALL {
                    let response = ui.selectable_value(&mut self.choices.mode, mode, mode.name());
                    named(&response, Role::RadioButton, &format!("Show: {}", mode.name()));
                }
            });
            together(ui, "metrics", |ui| {
                ui.weak("metrics");
                for statistic in Statistic::ALL {
                    let response = ui.selectable_value(&mut self.choices.statistic, statistic, statistic.name());
                    named(&response, Role::RadioButton, &format!("Metrics: {}", statistic.name()));
                }
            });
            together(ui, "columns", |ui| {
                column_combo(ui, "colour", "run", &self.table, &mut self.choices.color);
                if self.choices.mode == Mode::Scatter {
                    column_combo(ui, "x", "choose", &self.table, &mut self.choices.x);
                    column_combo(ui, "y", "choose", &self.table, &mut self.choices.y);
                }
            });
            let n_all = format::counted(self.table.sessions.len() as u64, "session");
            together(ui, "sessions", |ui| ui.weak(format!("{} of {n_all}", self.shown.rows.len())));
            let hint = "Every panel shows the runs of these sessions alone";
            if ui.button("Show only these runs").on_hover_text(hint).clicked() {
                let labels: Vec<&Arc<str>> = self.shown.rows.iter().map(|i| &self.table.sessions[*i].label).collect();
                selection.runs.show_only(|run| labels.iter().any(|l| crate::selection::is_at_or_below(l, run)));
            }
            if let Some(trouble) = &self.trouble {
                ui.colored_label(crate::theme::palette(ui).warning, trouble);
            }
        });
    }
}

/// A choice of a column; `none` is what stands for no column.
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

/// What an address may say of this panel.
pub(crate) fn accepts() -> Names {
    vec![
        ("mode", Accepts::Words(Mode::ALL.iter().map(|mode| mode.id()).collect())),
        ("metric", Accepts::Words(Statistic::ALL.iter().map(|statistic| statistic.name()).collect())),
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
