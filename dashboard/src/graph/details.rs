//! What is known of the selected item, beside the picture.

use super::{
    attrs,
    changes::{Compared, Counts},
    model::{Edge, ItemId, Kind, Model, output_shape},
    over_steps::{self, StepCost},
    summaries::Tag,
    times::{MAX_STEPS, Times},
};
use crate::{
    ViewKind, format,
    theme::{metrics, palette},
};
use egui::{Grid, RichText, ScrollArea, Ui};
use std::ops::Range;

/// Rows of a list before the rest is counted.
const ROWS_MAX: usize = 40;

/// What the user asked for in the panel.
pub(super) enum Asked {
    /// Show this item.
    Reveal(ItemId),
    /// Switch the marking of everything the item depends on, or (forward) of what depends on it.
    Trace {
        /// Which direction.
        forward: bool,
    },
    /// Begin or end a way between two items.
    Way,
    /// Show the item's slices.
    Timeline,
    /// Show a step.
    Step {
        /// Of which trace.
        trace_idx: usize,
        /// When it was.
        ns: Range<i64>,
    },
    /// Show a summary of the item.
    Summary(Tag),
    /// Nothing selected any more.
    Close,
}

/// What is marked in the picture.
pub(super) struct Marks {
    /// Whether anything is.
    pub traced: bool,
    /// Where a way begins whose other end is to be picked.
    pub way_from: Option<ItemId>,
    /// What the user should know.
    pub notice: Option<&'static str>,
}

/// What others know of the items.
pub(super) struct Known<'a> {
    /// The traces.
    pub times: &'a Times,
    /// What the selected item took in each step.
    pub steps: &'a [StepCost],
    /// The tags that record the selected item.
    pub tags: &'a [Tag],
    /// Another graph, if one is compared with.
    pub changes: Option<&'a Compared>,
}

/// Shows the panel's contents.
pub(super) fn show(ui: &mut Ui, model: &Model, known: &Known<'_>, item: ItemId, marks: &Marks) -> Option<Asked> {
    let mut asked = None;
    ui.horizontal(|ui| {
        ui.heading(model.label(item).as_ref());
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if ui.small_button("Close").on_hover_text("Deselect (Esc)").clicked() {
                asked = Some(Asked::Close);
            }
        });
    });
    ui.add(egui::Label::new(RichText::new(model.name(item)).monospace().color(palette(ui).text_weak)).wrap());
    ui.add_space(metrics::GAP);
    ui.horizontal_wrapped(|ui| {
        if marks.traced {
            if ui.button("Unmark").on_hover_text("End the marking (t)").clicked() {
                asked = Some(Asked::Trace { forward: false });
            }
        } else {
            if ui.button("Trace inputs").on_hover_text("Mark everything it depends on (t)").clicked() {
                asked = Some(Asked::Trace { forward: false });
            }
            if ui.button("Trace outputs").on_hover_text("Mark everything that depends on it (o)").clicked() {
                asked = Some(Asked::Trace { forward: true });
            }
        }
        let way = if marks.way_from.is_some() { "Way to here" } else { "Way from here" };
        if ui.button(way).on_hover_text("Mark what lies between two items (p)").clicked() {
            asked = Some(Asked::Way);
        }
        if known.times.of(item).count > 0 && ui.button("Show in timeline").clicked() {
            asked = Some(Asked::Timeline);
        }
    });
    if let Some(from) = marks.way_from.filter(|from| *from != item) {
        ui.colored_label(palette(ui).text_weak, format!("a way begins at {}", model.name(from)));
    }
    if let Some(notice) = marks.notice {
        ui.colored_label(palette(ui).warning, notice);
    }
    ui.separator();
    ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        if let Some(changes) = known.changes {
            changed(ui, model, changes, item);
        }
        let inner =
            if model.is_op(item) { node(ui, model, known.times, item) } else { scope(ui, model, known.times, item) };
        asked = asked.take().or(inner);
        asked = asked.take().or(summaries(ui, known.tags));
        health(ui, known.times, item, model.is_op(item));
        time(ui, known.times, item);
        asked = asked.take().or(over_steps(ui, known.steps));
    });
    asked
}

/// What the other graph has otherwise: of a node, what; of a scope, how many nodes.
fn changed(ui: &mut Ui, model: &Model, changes: &Compared, item: ItemId) {
    let Counts { differ, only_here } = changes.of(item);
    section(ui, "Beside the other graph");
    if model.is_op(item) {
        if only_here > 0 {
            ui.label("only in this graph");
        } else if differ == 0 {
            ui.label("the same in both");
        }
        for (what, here, there) in changes.differences(model, item) {
            ui.label(RichText::new(what).color(palette(ui).text_weak));
            ui.add(egui::Label::new(format!("here: {here}")).wrap());
            ui.add(egui::Label::new(format!("there: {there}")).wrap());
        }
        return;
    }
    let nodes = |n: usize| format::counted(n as u64, "node");
    ui.label(format!("{} only in this graph, {} differ", nodes(only_here as usize), nodes(differ as usize)));
    let missing = changes.missing(model.name(item));
    if !missing.is_empty() {
        ui.label(format!("{} only in the other graph:", nodes(missing.len())));
        for name in missing.iter().take(ROWS_MAX) {
            ui.add(egui::Label::new(RichText::new(name).color(palette(ui).text_weak)).wrap());
        }
        if missing.len() > ROWS_MAX {
            ui.label(format!("and {} more", missing.len() - ROWS_MAX));
        }
    }
}

/// The tags that record the item; a click leads to the curve or the histogram.
fn summaries(ui: &mut Ui, tags: &[Tag]) -> Option<Asked> {
    if tags.is_empty() {
        return None;
    }
    section(ui, &format!("Summaries ({})", tags.len()));
    let mut asked = None;
    for tag in tags.iter().take(ROWS_MAX) {
        ui.horizontal(|ui| {
            if ui.link(&*tag.name).on_hover_text(format!("Show in {}", tag.view.title())).clicked() {
                asked = Some(Asked::Summary(tag.clone()));
            }
            let kind = if tag.view == ViewKind::Scalars { "scalar" } else { "histogram" };
            ui.label(RichText::new(kind).color(palette(ui).text_weak).small());
        });
    }
    if tags.len() > ROWS_MAX {
        ui.label(format!("and {} more", tags.len() - ROWS_MAX));
    }
    asked
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

fn node(ui: &mut Ui, model: &Model, times: &Times, item: ItemId) -> Option<Asked> {
    let def = model.node_def(item);
    Grid::new("node").num_columns(2).show(ui, |ui| {
        row(ui, "op", model.op(item));
        match times.device(model, item) {
            "" => row(ui, "device", "none given"),
            device if times.is_device_traced(model, item) => row(ui, "device", &format!("{device} (by the trace)")),
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
                row(ui, name, &attrs::text(attr));
            }
        });
    }
    let inputs: Vec<&Edge> = model.inputs(item).collect();
    let outputs: Vec<&Edge> = model.outputs(item).collect();
    let lists = [
        ("Inputs", links(ui, model, "Inputs", inputs.iter().filter(|e| !e.control).map(|e| (e.src, *e)))),
        (
            "Control inputs",
            links(ui, model, "Control inputs", inputs.iter().filter(|e| e.control).map(|e| (e.src, *e))),
        ),
        ("Outputs", links(ui, model, "Outputs", outputs.iter().filter(|e| !e.control).map(|e| (e.dst, *e)))),
        (
            "Control outputs",
            links(ui, model, "Control outputs", outputs.iter().filter(|e| e.control).map(|e| (e.dst, *e))),
        ),
    ];
    lists.into_iter().find_map(|(_, clicked)| clicked).map(Asked::Reveal)
}

/// A list of nodes that can be clicked, with the shapes of what they carry.
fn links<'e>(
    ui: &mut Ui,
    model: &Model,
    title: &str,
    edges: impl Iterator<Item = (ItemId, &'e Edge)>,
) -> Option<ItemId> {
    let edges: Vec<(ItemId, &Edge)> = edges.collect();
    if edges.is_empty() {
        return None;
    }
    section(ui, &format!("{title} ({})", edges.len()));
    let mut clicked = None;
    for &(other, edge) in edges.iter().take(ROWS_MAX) {
        ui.horizontal_wrapped(|ui| {
            if ui.link(model.name(other)).clicked() {
                clicked = Some(other);
            }
            let shape = model.node_def(edge.src).filter(|_| !edge.control).and_then(|def| output_shape(def, edge.port));
            if let Some(shape) = shape {
                ui.label(RichText::new(shape.to_string()).color(palette(ui).text_weak).small());
            }
        });
    }
    if edges.len() > ROWS_MAX {
        ui.label(format!("and {} more", edges.len() - ROWS_MAX));
    }
    clicked
}

fn scope(ui: &mut Ui, model: &Model, times: &Times, item: ItemId) -> Option<Asked> {
    Grid::new("scope").num_columns(2).show(ui, |ui| {
        row(ui, "kind", model.control(item).map_or(model.kind(item).name(), super::model::Control::name));
        row(ui, "nodes", &format::count(u64::from(model.n_nodes(item))));
        row(ui, "children", &format::count(model.children(item).len() as u64));
        let structure = model.structure(item);
        let text = match structure.n_members {
            0 | 1 => "found once".to_owned(),
            n => format!("the same in {n} places"),
        };
        row(ui, "structure", &text);
    });
    histogram(ui, "Ops", &model.op_counts(item).collect::<Vec<_>>());
    histogram(ui, "Devices", &times.device_counts(model, item));
    same_structure(ui, model, item).map(Asked::Reveal)
}

fn histogram(ui: &mut Ui, title: &str, counts: &[(&str, u32)]) {
    section(ui, &format!("{title} ({})", counts.len()));
    Grid::new(title).num_columns(2).show(ui, |ui| {
        for &(name, n) in counts.iter().take(ROWS_MAX) {
            row(ui, &format::count(u64::from(n)), if name.is_empty() { "none given" } else { name });
        }
    });
    if counts.len() > ROWS_MAX {
        ui.label(format!("and {} more", counts.len() - ROWS_MAX));
    }
}

fn same_structure(ui: &mut Ui, model: &Model, item: ItemId) -> Option<ItemId> {
    let class = model.structure(item);
    if class.n_members < 2 {
        return None;
    }
    section(ui, "Of the same structure");
    let others = model.items().filter(|&i| i != item && model.structure(i) == class);
    let mut clicked = None;
    for other in others.take(ROWS_MAX) {
        if ui.link(model.name(other)).clicked() {
            clicked = Some(other);
        }
    }
    clicked
}

/// Whether values are finite, where somebody looked.
fn health(ui: &mut Ui, times: &Times, item: ItemId, is_op: bool) {
    let health = times.of(item).health;
    let Some(text) = health.text(is_op) else { return };
    section(ui, "Values");
    let p = palette(ui);
    let color = match (health.nan, health.inf) {
        (0, 0) => p.good,
        (0, _) => p.warning,
        _ => p.error,
    };
    ui.colored_label(color, text);
}

fn time(ui: &mut Ui, times: &Times, item: ItemId) {
    let time = times.of(item);
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
            row(ui, "memory at the peak", &format::bytes(time.peak_bytes as u64));
        }
    });
}

/// What the item took in each step; a click leads to the step.
fn over_steps(ui: &mut Ui, steps: &[StepCost]) -> Option<Asked> {
    if steps.is_empty() {
        return None;
    }
    section(ui, "Over the steps");
    let clicked = over_steps::chart_ui(ui, steps);
    ui.add(egui::Label::new(RichText::new(over_steps::summary(steps)).color(palette(ui).text_weak)).wrap());
    clicked.map(|step| Asked::Step { trace_idx: step.trace_idx, ns: step.range.clone() })
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
