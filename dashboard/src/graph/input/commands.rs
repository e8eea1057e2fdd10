//! The panel's commands and its part of an address.

use crate::{
    Data,
    command::Entry,
    graph::{
        model::Model,
        paint::{COLOR_MODES, ColorBy, Export},
        state::GraphView,
    },
};
use std::sync::Arc;
use ui::address::Params;

const fn color(by: ColorBy) -> Entry {
    COLOR_MODES[by as usize].command
}

/// The commands and gestures of the panel.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry::gesture("Drag, wheel", "Pan, zoom at the pointer"),
    Entry::gesture("Double click, Enter", "Expand or collapse a scope"),
    Entry::command("fit", "F or 0", "Fit the graph"),
    Entry::command("search", "/", "Search nodes: names, op:, device:, attr:"),
    Entry::command("open level", "E", "Expand one level (of the selected scope, or of all)"),
    Entry::command("close", "C", "Collapse the selected scope, or all"),
    Entry::command("inputs", "T", "Highlight everything the selection depends on"),
    Entry::command("consumers", "O", "Highlight everything that depends on the selection"),
    Entry::command("path", "P", "Find a path: from the selection, then to the next selection"),
    Entry::command("children", "M", "Show all children of a large scope"),
    color(ColorBy::Structure),
    color(ColorBy::Op),
    color(ColorBy::Device),
    color(ColorBy::Time),
    color(ColorBy::Path),
    color(ColorBy::Memory),
    color(ColorBy::Health),
    Entry::command("first-non-finite", "", "Show the first node with a NaN or an infinity"),
    color(ColorBy::Change),
    Entry::command("svg", "", "Copy the graph as SVG"),
    Entry::command("dot", "", "Copy the visible graph as DOT"),
    Entry::gesture("Esc", "Deselect"),
];

/// Runs a command.
pub(crate) fn run(view: &mut GraphView, model: &Arc<Model>, id: &str) {
    match id {
        "fit" => view.needs_fit = true,
        "search" => view.search.focus(),
        "open level" => view.open_level(model),
        "close" => view.close(model),
        "inputs" => view.toggle_trace(model, false),
        "consumers" => view.toggle_trace(model, true),
        "path" => view.find_path(model),
        "children" => view.show_all_children(model),
        "first-non-finite" => {
            view.color_by(ColorBy::Health);
            view.seeks_first_non_finite = true;
        }
        "svg" => view.export = Some(Export::Svg),
        "dot" => view.export = Some(Export::Dot),
        id => {
            if let Some(mode) = COLOR_MODES.iter().find(|mode| mode.command.id == id) {
                view.color_by(mode.by);
            }
        }
    }
}

/// Reveals the first node with a NaN or an infinity, if requested, once the data is complete. Without one, the legend
/// shows that.
pub(crate) fn seek_first_non_finite(view: &mut GraphView, model: &Arc<Model>, data: &Data) {
    if !view.seeks_first_non_finite || !view.times.is_complete(data) {
        return;
    }
    view.seeks_first_non_finite = false;
    if let Some(item) = view.times.first_non_finite() {
        view.reveal(model, item);
    }
}

/// Returns the panel's part of an address: the graph, its colours, and the graph to compare with. The window adds the
/// selected node.
pub(crate) fn address(view: &GraphView, data: &Data) -> Params {
    let mut out = Params::default();
    let graph = data.graphs.get(view.graph_idx).filter(|_| data.graphs.len() > 1);
    out.set_some("graph", graph.map(|g| &g.name));
    out.set_some("colour", (view.color_by != ColorBy::default()).then(|| view.color_by.title()));
    let other = view.other_graph(data).filter(|_| view.color_by == ColorBy::Change);
    out.set_some("against", other.and_then(|idx| data.graphs.get(idx)).map(|g| &g.name));
    out
}
