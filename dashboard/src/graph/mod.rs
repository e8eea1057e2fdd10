//! The Graph panel: the dataflow graph, collapsed by name scope.
//!
//! `model` (GraphDef to tables) -> `analysis` (facts from traces, summaries and other graphs) -> `layout`
//! (geometry, without egui) -> `paint` (shapes) -> `panels` (toolbar, search, details) -> `input` (pointer and keys to
//! commands). A thread in `layout` builds models and layouts; `state` is the state of the panel.

mod analysis;
mod input;
mod layout;
mod model;
mod paint;
mod panels;
mod state;

#[cfg(test)]
mod tests;

pub use paint::ColorBy;
pub use state::GraphView;

use crate::{Data, Selection, View, ViewKind, command::Entry, selection::TimeRange};
use analysis::Input;
use egui::Ui;
use input::{canvas, commands};
use model::{ItemId, Model};
use panels::details::Action;
use std::sync::Arc;
use ui::address::Params;
use ui::{
    address::{Accepts, Names},
    theme::metrics,
    widgets::{Edge, Extent, empty_state, side, toolbar},
};

impl View for GraphView {
    fn kind(&self) -> ViewKind {
        ViewKind::Graph
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        // The graph that an address names may be loaded after others.
        let is_requested = |name: &str| Some(name) == self.requested_graph.as_deref();
        if let Some(idx) = data.graphs.iter().position(|graph| is_requested(&graph.name)) {
            self.graph_idx = idx;
            self.requested_graph = None;
        }
        self.update(ui.ctx(), data, selection);
        let Some(model) = self.model.clone() else {
            if self.is_busy() {
                empty_state(ui, "Reading the graph…", "Names become scopes, edges become bundles.");
            } else {
                empty_state(
                    ui,
                    "No graph yet",
                    "Open a graph (.pb, .pbtxt, .onnx, a SavedModel), or a run whose event file holds its graph.",
                );
            }
            return;
        };
        if let Some(id) = self.command.take() {
            commands::run(self, &model, id);
        }
        commands::seek_first_non_finite(self, &model, data);
        toolbar(ui, |ui| {
            ui.horizontal_wrapped(|ui| self.toolbar_ui(ui, data, &model));
            if self.search.has_hits()
                && let Some(hit) = self.search.list_ui(ui, &model)
            {
                self.reveal(&model, hit);
            }
        });
        if let Some(item) = self.selected.filter(|&i| i != ItemId::ROOT) {
            self.details_ui(ui, data, selection, &model, item);
        }
        canvas::show(self, ui, &model);
        self.share_selection(&model, selection);
    }

    fn entries(&self) -> &'static [Entry] {
        commands::ENTRIES
    }

    fn can(&self, id: &'static str, data: &Data) -> bool {
        id != "first-non-finite" || !self.times.is_complete(data) || self.times.first_non_finite().is_some()
    }

    fn run(&mut self, id: &'static str) {
        self.command = Some(id);
    }

    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        self.model.as_ref().map(|model| paint::csv(model, &self.times))
    }

    fn address(&self, data: &Data) -> Params {
        commands::address(self, data)
    }

    fn go_to(&mut self, params: &Params) {
        self.requested_graph = params.get("graph").map(Into::into);
        self.compare_with = params.get("against").map(Into::into);
        let by = params.get("colour");
        self.color_by(ColorBy::all().find(|c| Some(c.title()) == by).unwrap_or_default());
    }
}

impl GraphView {
    fn details_ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection, model: &Arc<Model>, item: ItemId) {
        self.summaries.update(model, self.selected, data);
        let input = Input { ctx: ui.ctx(), model, data };
        self.step_costs.update(input, item);
        let extent = Extent::Points(metrics::graph::DETAILS_W);
        let action = side(ui, Edge::Right, "graph details", extent, |ui| self.details(ui, model, item));
        match action {
            Some(Action::Reveal(other)) => self.reveal(model, other),
            Some(Action::Trace { forward }) => self.toggle_trace(model, forward),
            Some(Action::Path) => self.find_path(model),
            Some(Action::Timeline) => {
                self.share_selection(model, selection);
                selection.show(ViewKind::Timeline);
            }
            Some(Action::Step { trace_idx, ns }) => {
                self.share_selection(model, selection);
                selection.time.set(ViewKind::Graph, Some(TimeRange { trace_idx, ns }));
                selection.show(ViewKind::Timeline);
            }
            Some(Action::Summary(tag)) => {
                self.share_selection(model, selection);
                selection.tag.set(ViewKind::Graph, Some(tag.name));
                selection.show(tag.view);
            }
            Some(Action::Close) => self.select(None),
            None => {}
        }
    }
}

/// The names that an address may set in this panel.
pub(crate) fn accepts() -> Names {
    vec![
        ("graph", Accepts::Text),
        ("against", Accepts::Text),
        ("colour", Accepts::Words(ColorBy::all().map(ColorBy::title).collect())),
    ]
}
