//! The panel's commands, and what of it an address tells.

use super::{ColourBy, GraphView, export::Export, model::Model};
use crate::{Data, address::Params, command::Entry};
use std::sync::Arc;

/// What can be done in the panel.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::gesture("Drag, wheel", "Pan, zoom at the pointer"),
    Entry::gesture("Double click, Enter", "Open or close a scope"),
    Entry::command("fit", "F or 0", "Show the whole graph"),
    Entry::command("search", "/", "Search nodes: names, op:, device:, attr:"),
    Entry::command("open level", "E", "Open one level (of the selected scope, or of all)"),
    Entry::command("close", "C", "Close the selected scope, or all"),
    Entry::command("inputs", "T", "Mark everything the selection depends on"),
    Entry::command("consumers", "O", "Mark everything that depends on the selection"),
    Entry::command("way", "P", "Begin a way at the selection; again, at its other end: mark what lies between"),
    Entry::command("children", "M", "Show all children of a large scope"),
    Entry::command("colour structure", "", "Colour nodes by structure"),
    Entry::command("colour op", "", "Colour nodes by op"),
    Entry::command("colour device", "", "Colour nodes by device"),
    Entry::command("colour time", "", "Colour nodes by time"),
    Entry::command("colour path", "", "Colour nodes by their part of the critical paths"),
    Entry::command("colour memory", "", "Colour nodes by memory at its peak"),
    Entry::command("colour health", "", "Colour nodes by whether their values are finite"),
    Entry::command("first sick", "", "Show the node that was the first to have a NaN or an infinity"),
    Entry::command("colour change", "", "Colour nodes by what another open graph has otherwise"),
    Entry::command("svg", "", "Copy the whole graph as SVG"),
    Entry::command("dot", "", "Copy the visible graph as DOT"),
    Entry::gesture("Esc", "Deselect"),
];

/// Carries out a command.
pub(super) fn run(view: &mut GraphView, model: &Arc<Model>, id: &str) {
    match id {
        "fit" => view.fit = true,
        "search" => view.search.focus(),
        "open level" => view.open_level(model),
        "close" => view.close(model),
        "inputs" => view.toggle_trace(model, false),
        "consumers" => view.toggle_trace(model, true),
        "way" => view.way(model),
        "children" => view.show_all_children(model),
        "colour structure" => view.colour(ColourBy::Structure),
        "colour op" => view.colour(ColourBy::Op),
        "colour device" => view.colour(ColourBy::Device),
        "colour time" => view.colour(ColourBy::Time),
        "colour path" => view.colour(ColourBy::Path),
        "colour memory" => view.colour(ColourBy::Memory),
        "colour health" => view.colour(ColourBy::Health),
        "first sick" => {
            view.colour(ColourBy::Health);
            view.seeks_first_sick = true;
        }
        "colour change" => view.colour(ColourBy::Change),
        "svg" => view.export = Some(Export::Svg),
        "dot" => view.export = Some(Export::Dot),
        _ => {}
    }
}

/// Shows the first node with a NaN or an infinity, where that was asked for, as soon as it is known. That there is none the legend
/// tells.
pub(super) fn seek_first_sick(view: &mut GraphView, model: &Arc<Model>, data: &Data) {
    if !view.seeks_first_sick || !view.times.is_known(data) {
        return;
    }
    view.seeks_first_sick = false;
    if let Some(item) = view.times.first_sick() {
        view.reveal(model, item);
    }
}

/// What an address tells: which of several graphs, its colours, and what it is compared with. The selected node is the window's.
pub(super) fn address(view: &GraphView, data: &Data) -> Params {
    let mut out = Params::default();
    let graph = data.graphs.get(view.graph_idx).filter(|_| data.graphs.len() > 1);
    out.set_some("graph", graph.map(|g| &g.name));
    out.set_some("colour", (view.colour_by != ColourBy::default()).then(|| view.colour_by.name()));
    let against = view.against(data).filter(|_| view.colour_by == ColourBy::Change);
    out.set_some("against", against.and_then(|idx| data.graphs.get(idx)).map(|g| &g.name));
    out
}
