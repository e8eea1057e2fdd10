//! The Modules panel: the modules of a PyTorch model as a tree with their times, operations and memory, and the ops by
//! the shapes of their inputs.
//!
//! [`analysis`] computes the figures in a thread, [`model`] decides which rows are visible, [`table`] and [`shapes`] show
//! them, [`mod@side`] the details of a module, [`keys`] moves the selection.

mod analysis;
mod keys;
mod model;
mod shapes;
mod side;
mod table;
#[cfg(test)]
mod tests;

use crate::{
    Data, Selection, View, ViewKind,
    ops::range_analysis::RangeAnalysis,
    selection::SlicePick,
    timeline::{
        ticks,
        trace_choice::{trace_choice, trace_name},
    },
};
use analysis::Report;
use egui::{Frame, Margin, TextEdit, Ui};
use model::{Column, Folding, Module, Rows, ShapeColumn};
use std::{ops::Range, sync::Arc};
use table::TreeTable;
use ui::{
    address::{AddressState, Choice, Names, Params},
    address_fields,
    command::Entry,
    format,
    theme::metrics,
    widgets::{Edge, Extent, SortOrder, busy, choice_buttons, empty_state, side, toolbar, trailing_text},
};

const KIND: ViewKind = ViewKind::Modules;
/// Least time between two computations for a growing trace, seconds.
const REFRESH_S: f64 = 1.0;

/// The commands of the panel.
const ENTRIES: &[Entry] = &[
    Entry::command("modules", "", "Tree of modules"),
    Entry::command("shapes", "", "Ops by the shapes of their inputs"),
    Entry::command("unfold all", "", "Unfold all modules"),
    Entry::command("fold all", "", "Fold all modules"),
    Entry::command("timeline", "Enter", "Show the selected module in Timeline"),
    Entry::command("copy", "", "Copy the rows as text"),
    Entry::gesture("Click a row", "Its figures; highlights its forward passes in Timeline"),
    Entry::gesture("Double click a row", "Go to its longest forward pass in Timeline"),
    Entry::gesture("Up, Down", "The previous or next row"),
    Entry::gesture("Right, Left", "Unfold or fold; the first module inside, the one around"),
];

/// The table that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tab {
    #[default]
    Modules,
    Shapes,
}

impl Choice for Tab {
    const TABLE: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Modules, "modules", "Modules"), (Self::Shapes, "shapes", "Ops by shapes")];
}

/// The state of the controls.
#[derive(Clone, Default)]
struct Settings {
    /// The chosen trace; `None` for the first one.
    trace: Option<Arc<str>>,
    tab: Tab,
    filter: String,
    /// The path of the selected module.
    selected: Option<Arc<str>>,
}

address_fields!(Settings {
    "trace" = trace: Option<Arc<str>>,
    "show" = tab: Tab,
    "filter" = filter: String,
    "module" = selected: Option<Arc<str>>,
});

/// The panel's state.
pub struct ModulesView {
    settings: Settings,
    order: SortOrder<Column>,
    shape_order: SortOrder<ShapeColumn>,
    folding: Folding,
    /// Whether the figures cover the entire trace although a range is selected.
    ignore_range: bool,
    analysis: RangeAnalysis<Report>,
    arranged: Arranged,
    /// Whether the selection moved by keys, so that its row is scrolled to.
    follows: bool,
    /// A command of the palette that needs the report.
    pending: Option<&'static str>,
}

impl Default for ModulesView {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            order: model::USUAL,
            shape_order: model::USUAL_SHAPES,
            folding: Folding::default(),
            ignore_range: false,
            analysis: RangeAnalysis::default(),
            arranged: Arranged::default(),
            follows: false,
            pending: None,
        }
    }
}

/// What the visible rows depend on: the report, the table, folding, both orders and the filter.
type ArrangedKey = (usize, Tab, Folding, SortOrder<Column>, SortOrder<ShapeColumn>, String);

/// The visible rows, cached while nothing that they depend on changes.
#[derive(Default)]
struct Arranged {
    of: Option<ArrangedKey>,
    rows: Rows,
}

impl View for ModulesView {
    fn kind(&self) -> ViewKind {
        KIND
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn run(&mut self, id: &'static str) {
        match id {
            "modules" => self.settings.tab = Tab::Modules,
            "shapes" => self.settings.tab = Tab::Shapes,
            "unfold all" => self.folding.set_depth(usize::MAX),
            "fold all" => self.folding.set_depth(0),
            _ => self.pending = Some(id),
        }
    }

    fn address(&self, data: &Data) -> Params {
        Settings { trace: trace_name(data, self.analysis.trace_idx), ..self.settings.clone() }.params()
    }

    fn go_to(&mut self, params: &Params) {
        self.settings.set_params(params);
        self.follows = true;
    }

    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        let report = self.analysis.refresher.result()?;
        Some(match self.settings.tab {
            Tab::Modules => model::csv(&report.tree, &self.rows(&report).shown),
            Tab::Shapes => model::shapes_csv(&report.shapes, &self.rows(&report).shown),
        })
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        if let Some(range) = selection.time.get() {
            self.analysis.trace_idx = range.trace_idx;
        }
        let wanted = self.settings.trace.take();
        if let Some(idx) = data.traces.iter().position(|trace| Some(&trace.name) == wanted.as_ref()) {
            self.analysis.trace_idx = idx;
        }
        let Some(trace) = self.analysis.trace(data) else {
            let text = "The modules of a PyTorch model appear with a trace of its training or inference.";
            return empty_state(ui, "No trace yet", text);
        };
        let trace_idx = self.analysis.trace_idx;
        let selected = selection.time.get().filter(|r| r.trace_idx == trace_idx).map(|r| r.ns.clone());
        let range = selected.clone().filter(|_| !self.ignore_range);
        let report = self.analysis.ask(ui, ("modules", analysis::answer, REFRESH_S), trace, range, false);
        toolbar(ui, |ui| self.bar_ui(ui, data, selected.as_ref(), report.as_deref()));
        let Some(report) = report.filter(|r| r.question.trace_idx == trace_idx) else {
            return empty_state(ui, "Analysing…", &format!("Reading {}", trace.n_slices()));
        };
        if let Some(note) = crate::far::note(report.residency) {
            return empty_state(ui, "Slices are missing", note);
        }
        self.arrange(&report);
        match self.settings.tab {
            Tab::Modules if report.tree.is_empty() => {
                let text = "Record with torch.profiler.profile(with_stack=True, record_shapes=True, profile_memory=True),\n\
                            or with the hooks of stepscope.torch.";
                empty_state(ui, "The trace names no modules", text);
            }
            Tab::Shapes if report.shapes.is_empty() => {
                let text = "Record with torch.profiler.profile(record_shapes=True).";
                empty_state(ui, "The trace has no shapes of inputs", text);
            }
            Tab::Modules => self.modules_ui(ui, &report, selection),
            Tab::Shapes => self.shapes_ui(ui, &report, selection),
        }
    }
}

impl ModulesView {
    fn bar_ui(&mut self, ui: &mut Ui, data: &Data, selected: Option<&Range<i64>>, report: Option<&Report>) {
        ui.horizontal_wrapped(|ui| {
            trace_choice(ui, "Trace", data, &mut self.analysis.trace_idx);
            choice_buttons(ui, "Show", &mut self.settings.tab);
            let hint = if self.settings.tab == Tab::Modules { "Filter modules" } else { "Filter ops" };
            let edit = TextEdit::singleline(&mut self.settings.filter).hint_text(hint).desired_width(150.0);
            ui.add(edit).accessible_name(hint);
            if selected.is_some() {
                ui.selectable_value(&mut self.ignore_range, false, "Selected range");
                ui.selectable_value(&mut self.ignore_range, true, "Whole trace");
            }
            if self.analysis.refresher.is_busy() {
                busy(ui);
            }
            if let Some(report) = report {
                let length = format::duration_ns(report.range.end - report.range.start);
                trailing_text(ui, &format!("{} ({length})", ticks::range_text(&report.range)));
            }
        });
    }

    /// The rows of the table in front.
    fn rows(&self, report: &Report) -> Rows {
        match self.settings.tab {
            Tab::Modules => model::rows(&report.tree, &self.folding, &self.settings.filter, self.order),
            Tab::Shapes => {
                let shown = model::sorted_shapes(&report.shapes, &self.settings.filter, self.shape_order);
                Rows { n_matches: shown.len(), shown }
            }
        }
    }

    fn arrange(&mut self, report: &Arc<Report>) {
        let key = (
            Arc::as_ptr(report) as usize,
            self.settings.tab,
            self.folding.clone(),
            self.order,
            self.shape_order,
            self.settings.filter.clone(),
        );
        if self.arranged.of.as_ref() != Some(&key) {
            self.arranged = Arranged { rows: self.rows(report), of: Some(key) };
        }
    }

    fn modules_ui(&mut self, ui: &mut Ui, report: &Report, selection: &mut Selection) {
        let selected = self.settings.selected.as_deref().and_then(|path| report.tree.find(path));
        let module = &report.tree.modules[selected.unwrap_or(0)];
        let panel = ui.max_rect();
        let action = side(ui, Edge::Right, "modules side", Extent::Points(1.25 * metrics::SIDE_W), |ui| {
            side::side_ui(ui, report, module)
        });
        if action == Some(side::Action::Longest) {
            self.show_longest(report, module, selection);
        }
        if self.arranged.rows.shown.is_empty() {
            ui.label(format!("No matches among {}", format::count_of(report.tree.modules.len() as u64, "module")));
            return;
        }
        let tree = TreeTable {
            tree: &report.tree,
            shown: &self.arranged.rows.shown,
            folding: &self.folding,
            order: self.order,
            selected: Some(&module.path),
            follows: std::mem::take(&mut self.follows),
        };
        let frame = Frame::new().inner_margin(Margin { left: metrics::PAD as i8, ..Margin::ZERO });
        let clicks = frame.show(ui, |ui| tree.ui(ui)).inner;
        if let Some(module) = clicks.toggled.map(|i| &report.tree.modules[i]) {
            self.folding.toggle(&module.path);
        } else if let Some(module) = clicks.table.picked.map(|i| &report.tree.modules[i]) {
            let is_again = self.settings.selected.as_ref() == Some(&module.path);
            self.select((!is_again || clicks.table.is_double).then_some(module), report, selection);
            if clicks.table.is_double {
                self.show_longest(report, module, selection);
            }
        }
        if let Some(column) = clicks.table.sort_by {
            self.order.click(column.0, !column.0.is_text());
        }
        self.keys(ui, panel, report, selection);
    }

    /// Selects a module, whose forward passes are highlighted in the timeline; or none.
    fn select(&mut self, module: Option<&Module>, report: &Report, selection: &mut Selection) {
        self.settings.selected = module.map(|module| module.path.clone());
        let passes = module.and_then(|module| report.passes.get(&module.row.name));
        selection.op.set(KIND, passes.map(|passes| passes.slice_name.clone()));
    }

    /// Shows the longest forward pass of a module in the timeline.
    fn show_longest(&mut self, report: &Report, module: &Module, selection: &mut Selection) {
        let Some(passes) = report.passes.get(&module.row.name) else { return };
        self.select(Some(module), report, selection);
        let trace_idx = self.analysis.trace_idx;
        selection.slice.set(KIND, Some(SlicePick { trace_idx, id: passes.longest }));
        selection.show(ViewKind::Timeline);
    }

    fn shapes_ui(&mut self, ui: &mut Ui, report: &Report, selection: &mut Selection) {
        let shown = &self.arranged.rows.shown;
        if shown.is_empty() {
            ui.label(format!("No matches among {}", format::count_of(report.shapes.len() as u64, "row")));
            return;
        }
        let selected = selection.op.get().cloned();
        let frame = Frame::new().inner_margin(Margin { left: metrics::PAD as i8, ..Margin::ZERO });
        let clicks =
            frame.show(ui, |ui| shapes::table_ui(ui, &report.shapes, shown, self.shape_order, selected.as_deref()));
        if let Some(column) = clicks.inner.sort_by {
            let is_text = ui::widgets::Column::is_text(&column);
            self.shape_order.click(column, !is_text);
        }
        if let Some(row) = clicks.inner.picked.map(|i| &report.shapes[i]) {
            let is_again = selected.as_deref() == Some(&*row.name) && !clicks.inner.is_double;
            selection.op.set(KIND, (!is_again).then(|| row.name.as_str().into()));
            if clicks.inner.is_double {
                selection.show(ViewKind::Timeline);
            }
        }
        if self.pending.take() == Some("copy") {
            let has_device = report.tree.has_device || report.shapes.iter().any(|row| row.device_ns > 0);
            ui.ctx().copy_text(model::shapes_text(&report.shapes, &self.arranged.rows.shown, has_device));
        }
    }
}

/// The parameters of this panel in addresses.
pub(crate) fn accepts() -> Names {
    Settings::accepts()
}
