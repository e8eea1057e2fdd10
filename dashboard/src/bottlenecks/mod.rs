//! The Bottlenecks panel: the largest costs of a run and what to change first, each line with its evidence.
//!
//! [`model`] builds the report in a background thread; [`page`], [`chart`] and [`roofline`] show the report with the
//! widgets of [`parts`].

mod chart;
mod model;
mod page;
mod parts;
mod roofline;
#[cfg(test)]
mod tests;

use crate::{
    Data, Selection, View, ViewKind,
    ops::range_analysis::RangeAnalysis,
    selection::{SlicePick, TimeRange},
    timeline::{
        ticks,
        trace_choice::{trace_choice, trace_name},
    },
};
use egui::{Frame, Margin, RichText, ScrollArea, Ui};
use model::Report;
use parts::Target;
use std::sync::Arc;
use ui::address::{AddressState, Names, Params};
use ui::{
    address_fields,
    command::Entry,
    theme::{metrics, palette},
    widgets::{busy, empty_state, toolbar},
};

const KIND: ViewKind = ViewKind::Bottlenecks;
/// Least time between two analyses of a growing trace, seconds.
const REFRESH_S: f64 = 2.0;

/// The commands of the panel.
const ENTRIES: &[Entry] = &[
    Entry::command("all steps", "", "Analyse all steps, however many"),
    Entry::gesture("Click a line", "Its evidence in Timeline or Graph"),
    Entry::gesture("Click a bar", "The step in Timeline"),
];

/// The state of the controls.
#[derive(Clone, Default)]
struct Settings {
    /// The chosen trace; `None` for the first one.
    trace: Option<Arc<str>>,
    /// Whether to analyse all steps instead of the last [`model::MAX_STEPS`].
    all_steps: bool,
}

address_fields!(Settings { "trace" = trace: Option<Arc<str>>, "all" = all_steps: bool });

/// The panel's state.
#[derive(Default)]
pub struct BottlenecksView {
    settings: Settings,
    analysis: RangeAnalysis<Report>,
}

impl View for BottlenecksView {
    fn kind(&self) -> ViewKind {
        KIND
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn run(&mut self, id: &'static str) {
        self.settings.all_steps |= id == "all steps";
    }

    fn address(&self, data: &Data) -> Params {
        Settings { trace: trace_name(data, self.analysis.trace_idx), ..self.settings.clone() }.params()
    }

    fn go_to(&mut self, params: &Params) {
        self.settings.set_params(params);
    }

    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        Some(model::csv(&*self.analysis.refresher.result()?))
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        // A range that was selected here is evidence of the report and does not narrow the analysis.
        let selected = selection.time.get().filter(|_| selection.time.changed_by() != Some(KIND)).cloned();
        if let Some(range) = &selected {
            self.analysis.trace_idx = range.trace_idx;
        }
        let Some(trace) = self.analysis.trace(data) else {
            let text = "Open a trace, or a run with one, to see what slows it down and what to change first.";
            return empty_state(ui, "No trace yet", text);
        };
        let trace_idx = self.analysis.trace_idx;
        let range = selected.filter(|r| r.trace_idx == trace_idx).map(|r| r.ns);
        let work = ("bottlenecks", model::build_report as fn(_) -> _, REFRESH_S);
        let report = self.analysis.ask(ui, work, trace, range, self.settings.all_steps);
        toolbar(ui, |ui| self.bar_ui(ui, data, report.as_deref()));
        let Some(report) = report.filter(|r| r.question.trace_idx == trace_idx) else {
            return empty_state(ui, "Analysing…", &format!("Reading {}", trace.n_slices()));
        };
        if let Some(note) = crate::far::note(report.residency) {
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
    fn bar_ui(&mut self, ui: &mut Ui, data: &Data, report: Option<&Report>) {
        ui.horizontal_wrapped(|ui| {
            trace_choice(ui, "Trace", data, &mut self.analysis.trace_idx);
            let Some(report) = report else { return };
            let range = ticks::range_text(&report.analysis.range);
            let what = if report.question.range.is_some() { "selected range" } else { "trace" };
            ui.label(RichText::new(format!("{what}, {range}")).color(palette(ui).text_weak));
            if let Some(limit) = page::limit_text(report) {
                ui.label(RichText::new(limit).color(palette(ui).warning));
                if ui.button("All steps").on_hover_text("Takes longer").clicked() {
                    self.settings.all_steps = true;
                }
            }
            if self.analysis.refresher.is_busy() {
                busy(ui);
            }
        });
    }

    /// Shows a line's evidence in another panel.
    fn follow(&self, target: Target, data: &Data, selection: &mut Selection) {
        let trace_idx = self.analysis.trace_idx;
        match target {
            Target::Time(ns, slice) => {
                selection.slice.set(KIND, slice.map(|id| SlicePick { trace_idx, id }));
                selection.time.set(KIND, Some(TimeRange { trace_idx, ns }));
                selection.show(ViewKind::Timeline);
            }
            Target::Node(node) => {
                selection.node.set(KIND, Some(node));
                selection.show(if data.graphs.is_empty() { ViewKind::Timeline } else { ViewKind::Graph });
            }
            Target::Op(op) => {
                selection.op.set(KIND, Some(op));
                selection.show(ViewKind::Timeline);
            }
        }
    }
}

/// The parameters of this panel in addresses.
pub(crate) fn accepts() -> Names {
    Settings::accepts()
}
