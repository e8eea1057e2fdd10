//! The Ops panel: where the time went, per op type or node, per track, and what held things up.
//!
//! [`model`] orders the rows, [`table`] shows them, [`mod@side`] shows how tracks were used and the largest stalls. A background thread computes the figures.

pub mod model;
pub mod side;
pub mod table;
#[cfg(test)]
mod tests;

use crate::{
    Data, Selection, View, ViewKind,
    accepts::{Accepts, Names},
    address::Params,
    command::Entry,
    data::{Shared, TraceData},
    format,
    theme::metrics,
    timeline::{
        analysis::{Stalls, stalls_of},
        background::Background,
        ticks,
    },
    widgets::{Edge, Extent, at_the_end, empty_state, side, toolbar, wide_table},
};
use egui::{Frame, Margin, TextEdit, Ui};
use model::{Grouping, Order, Row};
use profiler::{Residency, Store, TrackUse, node_stats, op_stats, track_use};
use std::{ops::Range, sync::Arc};

/// How often the figures of a growing trace are computed anew, seconds.
const REFRESH_S: f64 = 0.5;

/// What can be done in the panel.
const ENTRIES: &[Entry] = &[
    Entry::command("per op", "", "Statistics per op, kernel, call or span"),
    Entry::command("per node", "", "Statistics per node"),
    Entry::gesture("Click a heading", "Sort; again: the other way around"),
    Entry::gesture("Click a row", "Its slices stand out in Timeline, its nodes in Graph"),
    Entry::gesture("Double click a row", "Go there in Timeline"),
];

/// Which figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Question {
    trace_idx: usize,
    version: u64,
    /// `None` for the whole trace.
    range: Option<Range<i64>>,
}

/// The figures of a range.
#[derive(Default)]
pub struct Findings {
    question: Question,
    /// Whether its slices were here; else there are no figures.
    hand: Residency,
    /// The range that they are about.
    pub range: Range<i64>,
    /// Rows per op type.
    pub ops: Vec<Row>,
    /// Rows per node.
    pub nodes: Vec<Row>,
    /// How tracks spent the range.
    pub track_use: Vec<TrackUse>,
    /// Stalls of its steps.
    pub stalls: Stalls,
}

struct Request {
    question: Question,
    store: Shared<Store>,
}

fn answer(request: Request) -> Findings {
    let store = request.store.read_recursive();
    let question = Question { version: store.version(), ..request.question };
    let range = question.range.clone().unwrap_or_else(|| store.range());
    let hand = store.residency(&range);
    if hand != Residency::Resident {
        return Findings { question, range, hand, ..Findings::default() };
    }
    Findings {
        hand,
        ops: op_stats(&store, range.clone()).iter().map(Row::from).collect(),
        nodes: node_stats(&store, range.clone()).iter().map(Row::from).collect(),
        track_use: track_use(&store, range.clone()),
        stalls: stalls_of(&store, &range),
        question,
        range,
    }
}

/// The panel's state.
#[derive(Default)]
pub struct OpsView {
    trace_idx: usize,
    grouping: Grouping,
    order: Order,
    filter: String,
    /// Whether the figures are about the whole trace although a range is selected.
    ignore_range: bool,
    analysis: Option<Background<Request, Findings>>,
    asked: Option<(Question, f64)>,
    arranged: Arranged,
}

/// The order of rows, kept while nothing that it depends on changes.
#[derive(Default)]
struct Arranged {
    of: Option<(usize, Grouping, Order, String)>,
    rows: Vec<usize>,
}

impl View for OpsView {
    fn kind(&self) -> ViewKind {
        ViewKind::Ops
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn run(&mut self, id: &'static str) {
        self.grouping = if id == "per node" { Grouping::Node } else { Grouping::Op };
    }

    fn address(&self, _data: &Data) -> Params {
        let mut out = Params::default();
        out.set_some("per", (self.grouping == Grouping::Node).then_some("node"));
        out.set_some("filter", Some(&self.filter).filter(|f| !f.is_empty()));
        out
    }

    fn go_to(&mut self, params: &Params) {
        self.grouping = if params.get("per") == Some("node") { Grouping::Node } else { Grouping::Op };
        params.get("filter").unwrap_or_default().clone_into(&mut self.filter);
    }

    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        let findings = self.analysis.as_ref()?.result()?;
        let rows = if self.grouping == Grouping::Op { &findings.ops } else { &findings.nodes };
        Some(model::csv(rows, &model::arranged(rows, &self.filter, self.order)))
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        if let Some(range) = selection.time.get() {
            self.trace_idx = range.trace_idx;
        }
        let Some(trace) = data.traces.get(self.trace_idx).or(data.traces.first()) else {
            return empty_state(ui, "No trace yet", "Statistics of ops appear with the first slices of a trace.");
        };
        self.trace_idx = self.trace_idx.min(data.traces.len() - 1);
        let selected = selection.time.get().filter(|r| r.trace_idx == self.trace_idx).map(|r| r.ns.clone());
        let range = selected.clone().filter(|_| !self.ignore_range);
        let findings = self.findings(ui, trace, range);
        toolbar(ui, |ui| self.bar_ui(ui, data, selected.as_ref(), findings.as_deref()));
        let Some(findings) = findings.filter(|f| f.question.trace_idx == self.trace_idx) else {
            return empty_state(ui, "Counting …", &format!("{} are looked at.", trace.n_slices()));
        };
        if let Some(note) = crate::far::note(findings.hand) {
            return empty_state(ui, "Not all is here", note);
        }
        if findings.ops.is_empty() {
            let text = "Nothing ran in this range but waits and steps. Timeline shows them.";
            return empty_state(ui, "No ops", text);
        }
        side(ui, Edge::Right, "ops side", Extent::Points(1.5 * metrics::SIDE_W), |ui| {
            side::side_ui(ui, &trace.store, self.trace_idx, &findings, selection);
        });
        let frame = Frame::new().inner_margin(Margin { left: metrics::PAD as i8, ..Margin::ZERO });
        frame.show(ui, |ui| self.table_ui(ui, &findings, selection));
    }
}

impl OpsView {
    fn findings(&mut self, ui: &Ui, trace: &TraceData, range: Option<Range<i64>>) -> Option<Arc<Findings>> {
        let now = ui.input(|i| i.time);
        let question = Question { trace_idx: self.trace_idx, version: trace.store.version(), range };
        let analysis = self.analysis.get_or_insert_with(|| {
            let ctx = ui.ctx().clone();
            Background::start("ops analysis", answer, move || ctx.request_repaint())
        });
        let due = match &self.asked {
            None => true,
            Some((asked, _)) if *asked == question => false,
            Some((asked, at)) => {
                let only_grown = asked.range == question.range && asked.trace_idx == question.trace_idx;
                !only_grown || now - at >= analysis.refresh_s(REFRESH_S)
            }
        };
        if due && !analysis.is_busy() {
            analysis.request(Request { question: question.clone(), store: trace.store.shared() });
            self.asked = Some((question, now));
        } else if self.asked.as_ref().is_none_or(|(asked, _)| *asked != question) {
            ui.ctx().request_repaint_after_secs(analysis.refresh_s(REFRESH_S) as f32);
        }
        analysis.result()
    }

    fn bar_ui(&mut self, ui: &mut Ui, data: &Data, selected: Option<&Range<i64>>, findings: Option<&Findings>) {
        ui.horizontal_wrapped(|ui| {
            if data.traces.len() > 1 {
                let name = data.traces.get(self.trace_idx).map_or("", |t| &t.name);
                egui::ComboBox::from_label("trace").selected_text(name).show_ui(ui, |ui| {
                    for (i, trace) in data.traces.iter().enumerate() {
                        ui.selectable_value(&mut self.trace_idx, i, &*trace.name);
                    }
                });
            }
            ui.selectable_value(&mut self.grouping, Grouping::Op, "Per op");
            ui.selectable_value(&mut self.grouping, Grouping::Node, "Per node");
            let edit = TextEdit::singleline(&mut self.filter).hint_text("filter").desired_width(150.0);
            ui.add(edit).accessible_name("Filter ops");
            if selected.is_some() {
                ui.selectable_value(&mut self.ignore_range, false, "Selected range");
                ui.selectable_value(&mut self.ignore_range, true, "Whole trace");
            }
            if let Some(f) = findings {
                let length = f.range.end - f.range.start;
                let step = ticks::nice_step(length / 500);
                let (from, to) = (ticks::position(f.range.start, step), ticks::position(f.range.end, step));
                let text = format!("{from} to {to} ({})", format::duration_ns(length));
                at_the_end(ui, &text);
            }
        });
    }

    fn table_ui(&mut self, ui: &mut Ui, findings: &Arc<Findings>, selection: &mut Selection) {
        let rows = if self.grouping == Grouping::Op { &findings.ops } else { &findings.nodes };
        let key = (Arc::as_ptr(findings) as usize, self.grouping, self.order, self.filter.clone());
        if self.arranged.of.as_ref() != Some(&key) {
            self.arranged = Arranged { rows: model::arranged(rows, &self.filter, self.order), of: Some(key) };
        }
        let shown = &self.arranged.rows;
        if shown.is_empty() {
            ui.label(format!("None of {} fits the filter.", format::counted(rows.len() as u64, "row")));
            return;
        }
        let acts = wide_table(ui, |ui| table::table_ui(ui, rows, shown, self.grouping, self.order, selection));
        if let Some(column) = acts.order_by {
            self.order = self.order.clicked(column);
        }
        let Some(row) = acts.picked.map(|i| &rows[i]) else { return };
        let name: Arc<str> = row.name.as_str().into();
        let me = ViewKind::Ops;
        // A second click takes the highlight away again.
        match self.grouping {
            Grouping::Op => {
                let again = selection.op.get() == Some(&name);
                selection.op.set(me, (!again).then_some(name));
            }
            Grouping::Node => {
                let again = selection.node.get() == Some(&name);
                selection.node.set(me, (!again).then_some(name));
            }
        }
        if acts.show {
            selection.show(ViewKind::Timeline);
        }
    }
}

/// What an address may say of this panel.
pub(crate) fn accepts() -> Names {
    vec![("per", Accepts::Words(vec!["op", "node"])), ("filter", Accepts::Text)]
}
