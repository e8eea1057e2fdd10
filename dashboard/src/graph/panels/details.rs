//! The details of the selected item, to the right of the picture.

use super::step_chart;
use crate::{
    ViewKind,
    graph::{
        analysis::{ChangeCounts, GraphDiff, MAX_STEPS, StepCost, Tag, Times, step_summary},
        model::{Control, Edge, ItemId, Kind, Model, attr_text, output_shape},
        state::GraphView,
    },
};
use egui::{Grid, RichText, ScrollArea, Ui};
use std::ops::Range;
use ui::{
    format,
    theme::{metrics, palette},
};

/// Rows of a list that are shown; the rest is counted.
const MAX_ROWS: usize = 40;

/// An action on the selected item.
pub(crate) enum Action {
    Reveal(ItemId),
    /// Toggle the highlight of all that the item depends on, or (`forward`) of all that depends on the item.
    Trace {
        forward: bool,
    },
    /// Start or end a path between two items.
    Path,
    /// Show the item's slices.
    Timeline,
    /// Show a step in the timeline.
    Step {
        trace_idx: usize,
        ns: Range<i64>,
    },
    /// Show a summary of the item.
    Summary(Tag),
    /// Deselect.
    Close,
}

impl GraphView {
    /// Shows the details of an item; returns the action that was clicked.
    pub(crate) fn details(&self, ui: &mut Ui, model: &Model, item: ItemId) -> Option<Action> {
        let (times, is_op) = (&self.times, model.is_op(item));
        let header = self.header_ui(ui, model, item);
        ui.separator();
        let area = ScrollArea::vertical().auto_shrink([false, false]);
        let content = area.show(ui, |ui| {
            if let Some(diff) = self.changes.diff() {
                changes_ui(ui, model, diff, item);
            }
            let link = if is_op { node_ui(ui, model, times, item) } else { scope_ui(ui, model, times, item) };
            let tag = summaries_ui(ui, self.summaries.tags());
            health_ui(ui, times, item, is_op);
            time_ui(ui, times, item);
            let step = steps_ui(ui, self.step_costs.steps());
            link.or(tag).or(step)
        });
        header.or(content.inner)
    }

    /// Shows the name and the buttons.
    fn header_ui(&self, ui: &mut Ui, model: &Model, item: ItemId) -> Option<Action> {
        let mut action = None;
        ui.horizontal(|ui| {
            ui.heading(model.label(item).as_ref());
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                if ui.small_button("Close").on_hover_text("Deselect (Esc)").clicked() {
                    action = Some(Action::Close);
                }
            });
        });
        ui.add(egui::Label::new(RichText::new(model.name(item)).monospace().color(palette(ui).text_weak)).wrap());
        ui.add_space(metrics::GAP);
        ui.horizontal_wrapped(|ui| {
            let mut button = |text: &str, hint: &str, on_click: Action| {
                let response = ui.button(text);
                let response = if hint.is_empty() { response } else { response.on_hover_text(hint) };
                if response.clicked() {
                    action = Some(on_click);
                }
            };
            if self.traced.is_some() {
                button("Clear highlight", "Clear the highlight (T)", Action::Trace { forward: false });
            } else {
                let hint = "Highlight everything it depends on (T)";
                button("Trace inputs", hint, Action::Trace { forward: false });
                let hint = "Highlight everything that depends on it (O)";
                button("Trace outputs", hint, Action::Trace { forward: true });
            }
            let path = if self.path_from.is_some() { "Find path to here" } else { "Find path from here" };
            button(path, "Highlight the nodes between two items (P)", Action::Path);
            if self.times.get(item).count > 0 {
                button("Show in timeline", "", Action::Timeline);
            }
        });
        if let Some(from) = self.path_from.filter(|from| *from != item) {
            ui.colored_label(palette(ui).text_weak, format!("Path from {}", model.name(from)));
        }
        if let Some(notice) = self.notice {
            ui.colored_label(palette(ui).warning, notice);
        }
        action
    }
}

/// Shows the differences from the other graph: of a node in full, of a scope as counts.
fn changes_ui(ui: &mut Ui, model: &Model, diff: &GraphDiff, item: ItemId) {
    let ChangeCounts { n_differ, n_only_here } = diff.counts(item);
    section(ui, "Compared with the other graph");
    if model.is_op(item) {
        if n_only_here > 0 {
            ui.label("only in this graph");
        } else if n_differ == 0 {
            ui.label("the same in both");
        }
        for (property, here, there) in diff.differences(model, item) {
            ui.label(RichText::new(property).color(palette(ui).text_weak));
            ui.add(egui::Label::new(format!("here: {here}")).wrap());
            ui.add(egui::Label::new(format!("there: {there}")).wrap());
        }
        return;
    }
    let nodes = |n: usize| format::count_of(n as u64, "node");
    ui.label(format!("{} only in this graph, {} differ", nodes(n_only_here as usize), nodes(n_differ as usize)));
    let missing = diff.missing(model.name(item));
    if !missing.is_empty() {
        ui.label(format!("{} only in the other graph:", nodes(missing.len())));
        rows(ui, missing, |ui, name| {
            ui.add(egui::Label::new(RichText::new(name).weak()).wrap());
        });
    }
}

/// Shows the tags that record the item; a click leads to the chart or the histogram.
fn summaries_ui(ui: &mut Ui, tags: &[Tag]) -> Option<Action> {
    if tags.is_empty() {
        return None;
    }
    section(ui, &format!("Summaries ({})", tags.len()));
    let mut action = None;
    rows(ui, tags, |ui, tag| {
        ui.horizontal(|ui| {
            if ui.link(&*tag.name).on_hover_text(format!("Show in {}", tag.view.title())).clicked() {
                action = Some(Action::Summary(tag.clone()));
            }
            let kind = if tag.view == ViewKind::Scalars { "scalar" } else { "histogram" };
            ui.label(RichText::new(kind).weak().small());
        });
    });
    action
}

/// Shows the first rows of a list and the number of others.
fn rows<T>(ui: &mut Ui, all: &[T], mut row_ui: impl FnMut(&mut Ui, &T)) {
    all.iter().take(MAX_ROWS).for_each(|row| row_ui(ui, row));
    if all.len() > MAX_ROWS {
        ui.label(format!("and {} more", all.len() - MAX_ROWS));
    }
}

fn section(ui: &mut Ui, title: &str) {
    ui.add_space(metrics::GAP);
    ui.label(RichText::new(title).strong());
}

fn row(ui: &mut Ui, name: &str, value: &str) {
    ui.label(RichText::new(name).color(palette(ui).text_weak));
    ui.add(egui::Label::new(value).wrap());
    ui.end_row();
}

fn node_ui(ui: &mut Ui, model: &Model, times: &Times, item: ItemId) -> Option<Action> {
    let def = model.node_def(item);
    Grid::new("node").num_columns(2).show(ui, |ui| {
        row(ui, "op", model.op(item));
        match times.device(model, item) {
            "" => row(ui, "device", "not assigned"),
            device if times.is_device_traced(model, item) => row(ui, "device", &format!("{device} (from the trace)")),
            device => row(ui, "device", device),
        }
        for port in 0..16 {
            let Some(shape) = def.and_then(|def| output_shape(def, port)) else { break };
            row(ui, &format!("output {port}"), &shape.to_string());
        }
    });
    if let Some(def) = def.filter(|def| !def.attr.is_empty()) {
        section(ui, "Attributes");
        Grid::new("attributes").num_columns(2).show(ui, |ui| {
            for (name, attr) in def.attr.iter().filter(|(name, _)| *name != "_output_shapes") {
                row(ui, name, &attr_text(attr));
            }
        });
    }
    let mut clicked = None;
    let inputs: Vec<(ItemId, &Edge)> = model.inputs(item).map(|e| (e.src, e)).collect();
    let outputs: Vec<(ItemId, &Edge)> = model.outputs(item).map(|e| (e.dst, e)).collect();
    for (edges, titles) in [(inputs, ["Inputs", "Control inputs"]), (outputs, ["Outputs", "Control outputs"])] {
        for (title, control) in titles.into_iter().zip([false, true]) {
            let group: Vec<_> = edges.iter().copied().filter(|(_, e)| e.is_control == control).collect();
            clicked = clicked.or(links_ui(ui, model, title, &group));
        }
    }
    clicked.map(Action::Reveal)
}

/// Shows the nodes at the other ends of edges as links, with the shapes of the tensors.
fn links_ui(ui: &mut Ui, model: &Model, title: &str, edges: &[(ItemId, &Edge)]) -> Option<ItemId> {
    if edges.is_empty() {
        return None;
    }
    section(ui, &format!("{title} ({})", edges.len()));
    let mut clicked = None;
    rows(ui, edges, |ui, &(other, edge)| {
        ui.horizontal_wrapped(|ui| {
            if ui.link(model.name(other)).clicked() {
                clicked = Some(other);
            }
            let shape =
                model.node_def(edge.src).filter(|_| !edge.is_control).and_then(|def| output_shape(def, edge.port));
            if let Some(shape) = shape {
                ui.label(RichText::new(shape.to_string()).weak().small());
            }
        });
    });
    clicked
}

fn scope_ui(ui: &mut Ui, model: &Model, times: &Times, item: ItemId) -> Option<Action> {
    Grid::new("scope").num_columns(2).show(ui, |ui| {
        row(ui, "kind", model.control(item).map_or(model.kind(item).name(), Control::name));
        row(ui, "nodes", &format::count(u64::from(model.n_nodes(item))));
        row(ui, "children", &format::count(model.children(item).len() as u64));
        let structure = model.structure(item);
        let text = match structure.n_members {
            0 | 1 => "unique".to_owned(),
            n => format!("same in {n} places"),
        };
        row(ui, "structure", &text);
    });
    counts_ui(ui, "Ops", &model.op_counts(item).collect::<Vec<_>>());
    counts_ui(ui, "Devices", &times.device_counts(model, item));
    same_structure_ui(ui, model, item).map(Action::Reveal)
}

fn counts_ui(ui: &mut Ui, title: &str, counts: &[(&str, u32)]) {
    section(ui, &format!("{title} ({})", counts.len()));
    Grid::new(title).num_columns(2).show(ui, |ui| {
        for &(name, n) in counts.iter().take(MAX_ROWS) {
            row(ui, &format::count(u64::from(n)), if name.is_empty() { "not assigned" } else { name });
        }
    });
    if counts.len() > MAX_ROWS {
        ui.label(format!("and {} more", counts.len() - MAX_ROWS));
    }
}

fn same_structure_ui(ui: &mut Ui, model: &Model, item: ItemId) -> Option<ItemId> {
    let class = model.structure(item);
    if class.n_members < 2 {
        return None;
    }
    section(ui, "Same structure");
    let others = model.items().filter(|&i| i != item && model.structure(i) == class);
    let mut clicked = None;
    for other in others.take(MAX_ROWS) {
        if ui.link(model.name(other)).clicked() {
            clicked = Some(other);
        }
    }
    clicked
}

/// Shows whether values are finite, where they were checked.
fn health_ui(ui: &mut Ui, times: &Times, item: ItemId, is_op: bool) {
    let health = times.get(item).health;
    let Some(text) = health.text(is_op) else { return };
    section(ui, "Values");
    let p = palette(ui);
    let color = match (health.n_nan, health.n_inf) {
        (0, 0) => p.good,
        (0, _) => p.warning,
        _ => p.error,
    };
    ui.colored_label(color, text);
}

fn time_ui(ui: &mut Ui, times: &Times, item: ItemId) {
    let time = times.get(item);
    if time.count == 0 {
        return;
    }
    section(ui, "Time in the open traces");
    Grid::new("time").num_columns(2).show(ui, |ui| {
        row(ui, "executions", &format::count(time.count));
        row(ui, "total", &format::duration_ns(time.total_ns));
        row(ui, "mean", &format::duration_ns(time.total_ns / time.count.min(i64::MAX as u64) as i64));
        row(ui, "share", &format::percent(f64::from(times.share(item))));
        if time.path_ns > 0 {
            let share = format::percent(f64::from(times.share_of(item, |time| time.path_ns)));
            let path = format::duration_ns(time.path_ns);
            row(ui, "on critical paths", &format!("{path} ({share}) of the newest {MAX_STEPS} steps"));
        }
        if time.peak_bytes > 0 {
            row(ui, "peak memory", &format::bytes(time.peak_bytes as u64));
        }
    });
}

/// Shows the item's time in each step; a click leads to the step.
fn steps_ui(ui: &mut Ui, steps: &[StepCost]) -> Option<Action> {
    if steps.is_empty() {
        return None;
    }
    section(ui, "Time per step");
    let clicked = step_chart::chart_ui(ui, steps);
    ui.add(egui::Label::new(RichText::new(step_summary(steps)).color(palette(ui).text_weak)).wrap());
    clicked.map(|step| Action::Step { trace_idx: step.trace_idx, ns: step.range.clone() })
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Root => "graph",
            Self::Scope => "name scope",
            Self::Series => "series of nodes",
            Self::Library => "function library",
            Self::Function => "function",
            Self::Op => "node",
        }
    }
}
