//! The Bottlenecks panel: what a run spends its time on and what to change first, each line with its evidence.
//!
//! [`model`] is the report; [`page`], [`chart`] and [`roofline`] show it, [`parts`] is what they share. A background thread analyses.

mod chart;
pub mod model;
mod page;
mod parts;
mod roofline;
#[cfg(test)]
mod tests;

use crate::{
    Data, Selection, View, ViewKind,
    data::TraceData,
    selection::{SlicePick, TimeRange},
    timeline::ticks,
};
use egui::{Frame, Margin, RichText, ScrollArea, Ui};
use model::{Question, Report, Request};
use parts::Target;
use std::sync::Arc;
use ui::address::{Addressed, Names, Params};
use ui::{
    address_fields,
    background::Refresher,
    command::Entry,
    theme::{metrics, palette},
    widgets::{busy, empty_state, toolbar},
};

const ME: ViewKind = ViewKind::Bottlenecks;
/// How often a growing trace is analysed anew, seconds, at most.
const REFRESH_S: f64 = 2.0;

/// What can be done in the panel.
const ENTRIES: &[Entry] = &[
    Entry::command("all steps", "", "Analyse all steps, however many"),
    Entry::gesture("Click a line", "Its evidence in Timeline or Graph"),
    Entry::gesture("Click a bar", "The step in Timeline"),
];

/// The state of the controls.
#[derive(Clone, Default)]
struct Settings {
    /// The trace that is shown, where there are several.
    trace: Option<Arc<str>>,
    all_steps: bool,
}

address_fields!(Settings { "trace" = trace: Option<Arc<str>>, "all" = all_steps: bool });

/// The panel's state.
#[derive(Default)]
pub struct BottlenecksView {
    trace_idx: usize,
    settings: Settings,
    analysis: Refresher<Question, Request, Report>,
}

impl View for BottlenecksView {
    fn kind(&self) -> ViewKind {
        ME
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn run(&mut self, id: &'static str) {
        self.settings.all_steps |= id == "all steps";
    }

    fn address(&self, data: &Data) -> Params {
        let trace = data.traces.get(self.trace_idx).filter(|_| data.traces.len() > 1).map(|trace| trace.name.clone());
        Settings { trace, ..self.settings.clone() }.params()
    }

    fn go_to(&mut self, params: &Params) {
        self.settings.set_params(params);
    }

    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        Some(model::csv(&*self.analysis.result()?))
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        // What a click here selected is evidence, not a question.
        let selected = selection.time.get().filter(|_| selection.time.by() != Some(ME)).cloned();
        if let Some(range) = &selected {
            self.trace_idx = range.trace_idx;
        }
        let Some(trace) = data.traces.get(self.trace_idx).or(data.traces.first()) else {
            let text = "Open a trace, or a run with one, to see what slows it down and what to change first.";
            return empty_state(ui, "No trace yet", text);
        };
        self.trace_idx = self.trace_idx.min(data.traces.len() - 1);
        let range = selected.filter(|r| r.trace_idx == self.trace_idx).map(|r| r.ns);
        let report = self.report(ui, trace, range);
        toolbar(ui, |ui| self.bar_ui(ui, data, report.as_deref()));
        let Some(report) = report.filter(|r| r.question.trace_idx == self.trace_idx) else {
            return empty_state(ui, "Analysing…", &format!("Reading {}", trace.n_slices()));
        };
        if let Some(note) = crate::far::note(report.hand) {
            return empty_state(ui, "Slices are missing", note);
        }
        let frame = Frame::new().inner_margin(Margin::symmetric(2 * metrics::PAD as i8, 0));
        let target = ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            let page = frame.show(ui, |ui| {
                ui.set_max_width(ui.available_width().min(metrics::PAGE_W));
                page::page_ui(ui, &trace.store, &report)
            });
            ui.add_space(metrics::GAP_WIDE);
            page.inner
        });
        if let Some(target) = target.inner {
            self.follow(target, data, selection);
        }
    }
}

impl BottlenecksView {
    fn report(&mut self, ui: &Ui, trace: &TraceData, range: Option<std::ops::Range<i64>>) -> Option<Arc<Report>> {
        let version = trace.store.version();
        let question = Question { trace_idx: self.trace_idx, version, range, all_steps: self.settings.all_steps };
        let is_growth = {
            let question = question.clone();
            move |asked: &Question| Question { version, ..asked.clone() } == question
        };
        let request = |question: &Question| Request { question: question.clone(), store: trace.store.shared() };
        let work = ("bottlenecks", model::answer as fn(Request) -> Report);
        self.analysis.ask(ui.ctx(), work, question, REFRESH_S, is_growth, request)
    }

    fn bar_ui(&mut self, ui: &mut Ui, data: &Data, report: Option<&Report>) {
        ui.horizontal_wrapped(|ui| {
            if data.traces.len() > 1 {
                let name = data.traces.get(self.trace_idx).map_or("", |t| &t.name);
                egui::ComboBox::from_label("trace").selected_text(name).show_ui(ui, |ui| {
                    for (i, trace) in data.traces.iter().enumerate() {
                        ui.selectable_value(&mut self.trace_idx, i, &*trace.name);
                    }
                });
            }
            let Some(report) = report else { return };
            let range = &report.analysis.range;
            let step = ticks::nice_step((range.end - range.start) / 500);
            let (from, to) = (ticks::position(range.start, step), ticks::position(range.end, step));
            let what = if report.question.range.is_some() { "selected range" } else { "trace" };
            ui.label(RichText::new(format!("{what}, {from} to {to}")).color(palette(ui).text_weak));
            if let Some(limit) = page::limit_text(report) {
                ui.label(RichText::new(limit).color(palette(ui).warning));
                if ui.button("All steps").on_hover_text("Takes longer").clicked() {
                    self.settings.all_steps = true;
                }
            }
            if self.analysis.is_busy() {
                busy(ui);
            }
        });
    }

    /// Shows where a line leads.
    fn follow(&self, target: Target, data: &Data, selection: &mut Selection) {
        let trace_idx = self.trace_idx;
        match target {
            Target::Time(ns, slice) => {
                selection.slice.set(ME, slice.map(|id| SlicePick { trace_idx, id }));
                selection.time.set(ME, Some(TimeRange { trace_idx, ns }));
                selection.show(ViewKind::Timeline);
            }
            Target::Node(node) => {
                selection.node.set(ME, Some(node));
                selection.show(if data.graphs.is_empty() { ViewKind::Timeline } else { ViewKind::Graph });
            }
            Target::Op(op) => {
                selection.op.set(ME, Some(op));
                selection.show(ViewKind::Timeline);
            }
        }
    }
}

/// What an address may say of this panel.
pub(crate) fn accepts() -> Names {
    Settings::accepts()
}
