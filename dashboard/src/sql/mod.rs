//! The SQL panel: queries about the open data; rows lead to their time in the timeline.
//!
//! [`engine`] is the interface that the program may implement, [`worker`] the thread that calls it, [`model`] has
//! queries and results, [`table`] and [`mod@side`] show rows and the list of tables.

pub mod engine;
mod model;
mod side;
mod table;
#[cfg(test)]
mod tests;
mod worker;

use crate::{
    Data, Selection, View, ViewKind,
    data::{SourceInfo, Status},
    selection::TimeRange,
};
use egui::{Frame, Key, KeyboardShortcut, Margin, Modifiers, Panel, RichText, TextEdit, Ui};
use engine::{Engine, RowSet};
use model::Outcome;
use std::{path::Path, sync::Arc};
use ui::address::{AddressState, Names, Params};
use ui::{
    address_fields,
    command::Entry,
    format,
    theme::{metrics, palette},
    widgets::{self, Edge, Extent, SortOrder, busy, empty_state, named, scroll_area, side, toolbar},
};
use worker::{Query, Worker};

/// Runs the query in the editor.
const RUN: KeyboardShortcut = KeyboardShortcut::new(Modifiers::COMMAND, Key::Enter);
const EDITOR_ROWS: usize = 6;

const ENTRIES: &[Entry] = &[
    Entry::command("run", "Ctrl+Enter", "Run the query"),
    Entry::command("stop", "", "Stop the running query"),
    Entry::gesture("Click a heading", "Sort; click again to reverse"),
    Entry::gesture("Click a row", "Highlights its op and node in the other panels; with ts_ns, selects its time"),
    Entry::gesture("Double click a row", "Show it in Timeline"),
    Entry::gesture("Click a table or column at the side", "Put its name into the query"),
];

struct Editor {
    text: String,
}

/// The order in which rows are shown.
struct RowOrder {
    outcome: Arc<Outcome>,
    sorting: Option<SortOrder<usize>>,
    rows: Vec<usize>,
}

impl RowOrder {
    fn new(outcome: &Arc<Outcome>, answer: &RowSet, sorting: Option<SortOrder<usize>>) -> Self {
        let rows = match sorting {
            Some(sorting) => model::order(answer, sorting.column, sorting.descending),
            None => (0..answer.rows.len()).collect(),
        };
        Self { outcome: outcome.clone(), sorting, rows }
    }

    fn is_for(&self, outcome: &Arc<Outcome>, sorting: Option<SortOrder<usize>>) -> bool {
        Arc::ptr_eq(&self.outcome, outcome) && self.sorting == sorting
    }
}

impl Default for Editor {
    fn default() -> Self {
        Self { text: model::FIRST.to_owned() }
    }
}

address_fields!(Editor { "query" = text: String });

/// The panel's state.
pub struct SqlView {
    engine: Option<Arc<dyn Engine>>,
    worker: Option<Worker>,
    /// The chosen subject; `None` for the first open one.
    chosen: Option<Arc<Path>>,
    editor: Editor,
    history: Vec<String>,
    /// The path whose tables were requested.
    listed: Option<Arc<Path>>,
    sorting: Option<SortOrder<usize>>,
    row_order: Option<RowOrder>,
    is_run_wanted: bool,
}

impl SqlView {
    /// A panel on this engine; without one the panel explains how to get it.
    pub fn new(engine: Option<Arc<dyn Engine>>) -> Self {
        Self {
            engine,
            worker: None,
            chosen: None,
            editor: Editor::default(),
            history: Vec::new(),
            listed: None,
            sorting: None,
            row_order: None,
            is_run_wanted: false,
        }
    }
}

impl View for SqlView {
    fn kind(&self) -> ViewKind {
        ViewKind::Sql
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn run(&mut self, id: &'static str) {
        match id {
            "run" => self.is_run_wanted = true,
            _ => self.worker.iter().for_each(Worker::cancel),
        }
    }

    fn address(&self, _data: &Data) -> Params {
        self.editor.params()
    }

    fn go_to(&mut self, params: &Params) {
        self.editor.set_params(params);
    }

    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        let outcome = self.worker.as_ref()?.result()?;
        let answer = outcome.answer.as_ref().ok().filter(|answer| !answer.columns.is_empty())?;
        let order = RowOrder::new(&outcome, answer, self.sorting);
        Some(widgets::csv(&table::columns(answer), order.rows.iter().map(|row| &answer.rows[*row])))
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        let Some(engine) = &self.engine else {
            let how = "This program was built without SQL. Build it with: cargo build --release --features query";
            return empty_state(ui, "No SQL", how);
        };
        let subjects = model::subjects(data);
        let chosen = subjects.iter().find(|s| Some(&s.path) == self.chosen.as_ref()).or(subjects.first());
        let Some(&subject) = chosen else {
            return empty_state(ui, "Nothing to query", "Open a trace or a logdir: each is a set of tables here.");
        };
        if self.worker.is_none() {
            let ctx = ui.ctx().clone();
            self.worker = Some(worker::start(engine.clone(), move || ctx.request_repaint()));
        }
        let is_run = ui.input_mut(|i| i.consume_shortcut(&RUN)) | std::mem::take(&mut self.is_run_wanted);
        let is_run = toolbar(ui, |ui| self.bar_ui(ui, &subjects, subject)) | is_run;
        self.editor_ui(ui);
        let Some(worker) = &self.worker else { return };
        if is_run && !self.editor.text.trim().is_empty() {
            model::remember(&mut self.history, &self.editor.text);
            self.listed = Some(subject.path.clone());
            self.sorting = None;
            worker.request(query(subject, self.editor.text.clone()));
        } else if self.listed.as_ref() != Some(&subject.path) && !worker.is_busy() {
            self.listed = Some(subject.path.clone());
            worker.request(query(subject, String::new()));
        }
        let outcome = worker.result();
        self.contents_ui(ui, outcome.as_ref(), data, selection);
    }
}

impl SqlView {
    /// Shows the choice of the subject and the buttons; returns whether to run the query.
    fn bar_ui(&mut self, ui: &mut Ui, subjects: &[&SourceInfo], subject: &SourceInfo) -> bool {
        let is_busy = self.worker.as_ref().is_some_and(Worker::is_busy);
        let mut is_run = false;
        ui.horizontal_wrapped(|ui| {
            if subjects.len() > 1 {
                let combo = egui::ComboBox::from_id_salt("sql subject").selected_text(&*subject.name);
                let choice = combo.show_ui(ui, |ui| {
                    for other in subjects {
                        let is_this = other.path == subject.path;
                        if ui
                            .selectable_label(is_this, &*other.name)
                            .on_hover_text(other.path.display().to_string())
                            .clicked()
                        {
                            self.chosen = Some(other.path.clone());
                        }
                    }
                });
                named(&choice.response, egui::Role::ComboBox, &format!("Query: {}", subject.name));
            }
            is_run = ui.button("Run").on_hover_text(ui.ctx().format_shortcut(&RUN)).clicked();
            if ui.add_enabled(is_busy, egui::Button::new("Stop")).clicked() {
                self.worker.iter().for_each(Worker::cancel);
            }
            ui.add_enabled_ui(!self.history.is_empty(), |ui| self.history_ui(ui));
            if is_busy {
                busy(ui);
            }
        });
        is_run
    }

    /// Shows the editor.
    fn editor_ui(&mut self, ui: &mut Ui) {
        let most = ui.available_height() * metrics::EDITOR_SHARE;
        let margin = Margin::symmetric(metrics::PAD as i8, 0);
        let frame = Frame::new().fill(palette(ui).panel).inner_margin(margin);
        Panel::top("sql editor").frame(frame).show_separator_line(false).show(ui, |ui| {
            scroll_area(ui, [false, true], most).auto_shrink([false, true]).show(ui, |ui| {
                let editor = TextEdit::multiline(&mut self.editor.text).code_editor().desired_rows(EDITOR_ROWS);
                let editor = editor.desired_width(f32::INFINITY).hint_text("select ... from slices");
                ui.add(editor).accessible_name("SQL query");
            });
        });
    }

    fn history_ui(&mut self, ui: &mut Ui) {
        let combo = egui::ComboBox::from_id_salt("sql history").selected_text("Earlier queries");
        let shown = combo.show_ui(ui, |ui| {
            for sql in self.history.iter().rev() {
                let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
                if ui.selectable_label(*sql == self.editor.text, line.chars().take(80).collect::<String>()).clicked() {
                    self.editor.text.clone_from(sql);
                }
            }
        });
        named(&shown.response, egui::Role::ComboBox, "Earlier queries");
    }

    fn contents_ui(&mut self, ui: &mut Ui, outcome: Option<&Arc<Outcome>>, data: &Data, selection: &mut Selection) {
        let Some(outcome) = outcome else {
            ui.label("Opening the tables…");
            return;
        };
        let usual = Extent::Points(1.3 * metrics::SIDE_W);
        if let Some(name) = side(ui, Edge::Right, "sql tables", usual, |ui| side::side_ui(ui, &outcome.tables)) {
            if !self.editor.text.ends_with([' ', '\n', '(', '.']) && !self.editor.text.is_empty() {
                self.editor.text.push(' ');
            }
            self.editor.text += &name;
        }
        let frame = Frame::new().inner_margin(Margin::symmetric(metrics::PAD as i8, metrics::GAP as i8));
        frame.show(ui, |ui| self.outcome_ui(ui, outcome, data, selection));
    }

    fn outcome_ui(&mut self, ui: &mut Ui, outcome: &Arc<Outcome>, data: &Data, selection: &mut Selection) {
        let p = palette(ui);
        for warning in &outcome.warnings {
            ui.label(RichText::new(warning).color(p.warning));
        }
        let answer = match &outcome.answer {
            Ok(answer) => answer,
            Err(error) => {
                ui.add(egui::Label::new(RichText::new(error).color(p.error)).wrap());
                return;
            }
        };
        if answer.columns.is_empty() {
            return empty_state(
                ui,
                "No query yet",
                "Ctrl+Enter runs the query above; the tables are listed at the side.",
            );
        }
        let n = format::count_of(answer.rows.len() as u64, "row");
        let more = if answer.has_more { "the first " } else { "" };
        ui.label(RichText::new(format!("{more}{n} in {}", format::duration_ns(outcome.took_ns))).color(p.text_weak));
        let order = match self.row_order.take().filter(|order| order.is_for(outcome, self.sorting)) {
            Some(order) => order,
            None => RowOrder::new(outcome, answer, self.sorting),
        };
        let clicks = table::table_ui(ui, answer, &order.rows, self.sorting);
        self.row_order = Some(order);
        if let Some(column) = clicks.sort_by.map(|column| column.index) {
            let begins_descending = answer.are_numbers[column];
            match &mut self.sorting {
                Some(sorting) => sorting.click(column, begins_descending),
                None => self.sorting = Some(SortOrder { column, descending: begins_descending }),
            }
        }
        if let Some(row) = clicks.picked {
            pick(outcome, row, clicks.is_double, data, selection);
        }
    }
}

fn query(subject: &SourceInfo, sql: String) -> Query {
    let is_live = matches!(subject.status, Status::Live | Status::Loading);
    Query { path: subject.path.clone(), is_live, sql }
}

/// Selects the slice, node or time of a row in the other panels.
fn pick(outcome: &Outcome, row: usize, is_shown: bool, data: &Data, selection: &mut Selection) {
    let Ok(answer) = &outcome.answer else { return };
    let me = ViewKind::Sql;
    if let Some(op) = model::value_of(answer, row, "name") {
        selection.op.set(me, Some(op.into()));
    }
    if let Some(node) = model::value_of(answer, row, "node") {
        selection.node.set(me, Some(node.into()));
    }
    // Where a path has several traces, the row's column `trace` names the one.
    let label = model::value_of(answer, row, "trace");
    let fits = |trace: &crate::data::TraceData| {
        let is_named = label.is_none_or(|label| trace.path.ends_with(label));
        trace.path == outcome.path || trace.path.starts_with(&outcome.path) && is_named
    };
    let trace_idx = data.traces.iter().position(fits);
    if let (Some(ns), Some(trace_idx)) = (model::time_of(answer, row), trace_idx) {
        selection.time.set(me, Some(TimeRange { trace_idx, ns }));
    }
    if is_shown {
        selection.show(ViewKind::Timeline);
    }
}

pub(crate) fn accepts() -> Names {
    Editor::accepts()
}
