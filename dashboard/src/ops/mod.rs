//! The Ops panel: time per op type or node and per track, and the largest stalls.
//!
//! [`analysis`] computes the figures in a thread, [`model`] orders the rows, [`table`] shows them, [`mod@side`] shows
//! how tracks were used and the largest stalls.

mod analysis;
mod model;
pub(crate) mod range_analysis;
mod side;
mod table;
#[cfg(test)]
mod tests;

use crate::{
    Data, Selection, View, ViewKind,
    timeline::{ticks, trace_choice::trace_choice},
};
use analysis::Findings;
use egui::{Frame, Margin, TextEdit, Ui};
use model::{Column, Grouping};
use range_analysis::RangeAnalysis;
use std::{ops::Range, sync::Arc};
use ui::address::{AddressState, Names, Params};
use ui::{
    address::Choice as _,
    address_fields,
    command::Entry,
    format,
    theme::metrics,
    widgets::{Edge, Extent, SortOrder, empty_state, side, toolbar, trailing_text},
};

/// Least time between two computations for a growing trace, seconds.
const REFRESH_S: f64 = 0.5;

/// The commands of the panel.
const ENTRIES: &[Entry] = &[
    Entry::command("per op", "", "Statistics per op, kernel, call or span"),
    Entry::command("per node", "", "Statistics per node"),
    Entry::gesture("Click a heading", "Sort; click again to reverse"),
    Entry::gesture("Click a row", "Highlights its slices in Timeline, its nodes in Graph"),
    Entry::gesture("Double click a row", "Go there in Timeline"),
];

/// The state of the controls.
#[derive(Default)]
struct Settings {
    grouping: Grouping,
    filter: String,
}

address_fields!(Settings { "per" = grouping: Grouping, "filter" = filter: String });

/// The panel's state.
pub struct OpsView {
    settings: Settings,
    order: SortOrder<Column>,
    /// Whether the figures cover the entire trace although a range is selected.
    ignore_range: bool,
    analysis: RangeAnalysis<Findings>,
    arranged: RowOrder,
}

impl Default for OpsView {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            order: model::USUAL,
            ignore_range: false,
            analysis: RangeAnalysis::default(),
            arranged: RowOrder::default(),
        }
    }
}

/// The order of rows, cached while nothing that it depends on changes.
#[derive(Default)]
struct RowOrder {
    of: Option<(usize, Grouping, SortOrder<Column>, String)>,
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
        self.settings.grouping = if id == "per node" { Grouping::Node } else { Grouping::Op };
    }

    fn address(&self, _data: &Data) -> Params {
        self.settings.params()
    }

    fn go_to(&mut self, params: &Params) {
        self.settings.set_params(params);
    }

    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        let findings = self.analysis.refresher.result()?;
        let rows = if self.settings.grouping == Grouping::Op { &findings.ops } else { &findings.nodes };
        Some(model::csv(rows, &model::arranged(rows, &self.settings.filter, self.order)))
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        if let Some(range) = selection.time.get() {
            self.analysis.trace_idx = range.trace_idx;
        }
        let Some(trace) = self.analysis.trace(data) else {
            return empty_state(ui, "No trace yet", "Statistics of ops appear with the first slices of a trace.");
        };
        let trace_idx = self.analysis.trace_idx;
        let selected = selection.time.get().filter(|r| r.trace_idx == trace_idx).map(|r| r.ns.clone());
        let range = selected.clone().filter(|_| !self.ignore_range);
        let findings = self.analysis.ask(ui, ("ops analysis", analysis::answer, REFRESH_S), trace, range, false);
        toolbar(ui, |ui| self.bar_ui(ui, data, selected.as_ref(), findings.as_deref()));
        let Some(findings) = findings.filter(|f| f.question.trace_idx == trace_idx) else {
            return empty_state(ui, "Computing…", &format!("Reading {}", trace.n_slices()));
        };
        if let Some(note) = crate::far::note(findings.residency) {
            return empty_state(ui, "Slices are missing", note);
        }
        if findings.ops.is_empty() {
            let text = "Only waits and steps ran in this range. See Timeline.";
            return empty_state(ui, "No ops", text);
        }
        side(ui, Edge::Right, "ops side", Extent::Points(1.5 * metrics::SIDE_W), |ui| {
            side::side_ui(ui, &trace.store, trace_idx, &findings, selection);
        });
        let frame = Frame::new().inner_margin(Margin { left: metrics::PAD as i8, ..Margin::ZERO });
        frame.show(ui, |ui| self.table_ui(ui, &findings, selection));
    }
}

impl OpsView {
    fn bar_ui(&mut self, ui: &mut Ui, data: &Data, selected: Option<&Range<i64>>, findings: Option<&Findings>) {
        ui.horizontal_wrapped(|ui| {
            trace_choice(ui, "Trace", data, &mut self.analysis.trace_idx);
            for grouping in Grouping::all() {
                ui.selectable_value(&mut self.settings.grouping, grouping, grouping.title());
            }
            let edit = TextEdit::singleline(&mut self.settings.filter).hint_text("Filter ops").desired_width(150.0);
            ui.add(edit).accessible_name("Filter ops");
            if selected.is_some() {
                ui.selectable_value(&mut self.ignore_range, false, "Selected range");
                ui.selectable_value(&mut self.ignore_range, true, "Whole trace");
            }
            if let Some(f) = findings {
                let length = format::duration_ns(f.range.end - f.range.start);
                trailing_text(ui, &format!("{} ({length})", ticks::range_text(&f.range)));
            }
        });
    }

    fn table_ui(&mut self, ui: &mut Ui, findings: &Arc<Findings>, selection: &mut Selection) {
        let rows = if self.settings.grouping == Grouping::Op { &findings.ops } else { &findings.nodes };
        let key = (Arc::as_ptr(findings) as usize, self.settings.grouping, self.order, self.settings.filter.clone());
        if self.arranged.of.as_ref() != Some(&key) {
            self.arranged = RowOrder { rows: model::arranged(rows, &self.settings.filter, self.order), of: Some(key) };
        }
        let shown = &self.arranged.rows;
        if shown.is_empty() {
            ui.label(format!("No matches among {}", format::count_of(rows.len() as u64, "row")));
            return;
        }
        let order = self.order;
        let clicks = table::table_ui(ui, rows, shown, self.settings.grouping, order, selection);
        if let Some(column) = clicks.sort_by {
            self.order.click(column.0, !column.0.is_text());
        }
        let Some(row) = clicks.picked.map(|i| &rows[i]) else { return };
        let name: Arc<str> = row.name.as_str().into();
        let me = ViewKind::Ops;
        // A second click clears the highlight.
        match self.settings.grouping {
            Grouping::Op => {
                let again = selection.op.get() == Some(&name);
                selection.op.set(me, (!again).then_some(name));
            }
            Grouping::Node => {
                let again = selection.node.get() == Some(&name);
                selection.node.set(me, (!again).then_some(name));
            }
        }
        if clicks.is_double {
            selection.show(ViewKind::Timeline);
        }
    }
}

/// The parameters of this panel in addresses.
pub(crate) fn accepts() -> Names {
    Settings::accepts()
}
