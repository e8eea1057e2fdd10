//! The Graph panel: the dataflow graph, collapsed by name scope.
//!
//! `model` (GraphDef to columns) -> `layered` and `layout` (geometry) -> `paint`, `edges`, `minimap` (shapes) ->
//! `canvas` (events to commands). Models and layouts are made in `worker`'s thread. `state` holds what the panel shows;
//! `search`, `details`, `trace`, `times`, `over_steps`, `health`, `devices`, `changes` and `colour` are what the user asks of it.

mod attrs;
mod camera;
mod canvas;
mod changes;
mod colour;
mod command;
mod details;
mod devices;
mod edges;
mod export;
mod health;
pub mod layered;
pub mod layout;
mod minimap;
pub mod model;
mod over_steps;
mod paint;
mod query;
mod search;
mod state;
mod summaries;
mod times;
mod trace;
mod transition;
mod worker;

#[cfg(test)]
mod tests;

pub use colour::ColourBy;
pub use state::GraphView;

use crate::{
    Data, Selection, View, ViewKind,
    accepts::{Accepts, Names},
    address::Params,
    command::Entry,
    format,
    selection::TimeRange,
    theme::{metrics, palette},
    widgets::{Edge, Extent, busy, empty_state, named, side, toolbar},
};
use details::Asked;
use egui::{ComboBox, RichText, Ui};
use model::{ItemId, Model};
use std::sync::Arc;

impl View for GraphView {
    fn kind(&self) -> ViewKind {
        ViewKind::Graph
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        // It may be read later than the first that is shown.
        let is_wanted = |name: &str| Some(name) == self.wanted_graph.as_deref();
        if let Some(idx) = data.graphs.iter().position(|graph| is_wanted(&graph.name)) {
            self.graph_idx = idx;
            self.wanted_graph = None;
        }
        self.update(ui.ctx(), data, selection);
        let Some(model) = self.model.clone() else {
            if self.is_busy() {
                empty_state(ui, "Reading the graph …", "Names become scopes, edges become bundles.");
            } else {
                empty_state(
                    ui,
                    "No graph yet",
                    "Open a graph (.pb, .pbtxt, .onnx, a SavedModel), or a run whose event file holds its graph.",
                );
            }
            return;
        };
        if let Some(id) = self.asked.take() {
            command::run(self, &model, id);
        }
        command::seek_first_sick(self, &model, data);
        toolbar(ui, |ui| {
            ui.horizontal_wrapped(|ui| self.tools(ui, data, &model));
            if self.search.has_hits()
                && let Some(hit) = self.search.list(ui, &model)
            {
                self.reveal(&model, hit);
            }
        });
        if let Some(item) = self.selected.filter(|&i| i != ItemId::ROOT) {
            self.summaries.update(&model, self.selected, data);
            self.over_steps.update(ui.ctx(), &model, item, data, ui.input(|i| i.time));
            side(ui, Edge::Right, "graph details", Extent::Points(metrics::graph::DETAILS_W), |ui| {
                let marks =
                    details::Marks { traced: self.traced.is_some(), way_from: self.way_from, notice: self.notice };
                let known = details::Known {
                    times: &self.times,
                    steps: self.over_steps.steps(),
                    tags: self.summaries.tags(),
                    changes: self.changes.found(),
                };
                match details::show(ui, &model, &known, item, &marks) {
                    Some(Asked::Reveal(other)) => self.reveal(&model, other),
                    Some(Asked::Trace { forward }) => self.toggle_trace(&model, forward),
                    Some(Asked::Way) => self.way(&model),
                    Some(Asked::Timeline) => {
                        self.share_selection(&model, selection);
                        selection.show(ViewKind::Timeline);
                    }
                    Some(Asked::Step { trace_idx, ns }) => {
                        self.share_selection(&model, selection);
                        selection.time.set(ViewKind::Graph, Some(TimeRange { trace_idx, ns }));
                        selection.show(ViewKind::Timeline);
                    }
                    Some(Asked::Summary(tag)) => {
                        self.share_selection(&model, selection);
                        selection.tag.set(ViewKind::Graph, Some(tag.name));
                        selection.show(tag.view);
                    }
                    Some(Asked::Close) => self.select(None),
                    None => {}
                }
            });
        }
        canvas::show(self, ui, &model);
        self.share_selection(&model, selection);
    }

    fn entries(&self) -> &'static [Entry] {
        command::ENTRIES
    }

    fn can(&self, id: &'static str, data: &Data) -> bool {
        id != "first sick" || !self.times.is_known(data) || self.times.first_sick().is_some()
    }

    fn run(&mut self, id: &'static str) {
        self.asked = Some(id);
    }

    fn table(&self, _data: &Data, _selection: &Selection) -> Option<String> {
        self.model.as_ref().map(|model| export::csv(model, &self.times))
    }

    fn address(&self, data: &Data) -> Params {
        command::address(self, data)
    }

    fn go_to(&mut self, params: &Params) {
        self.wanted_graph = params.get("graph").map(Into::into);
        self.compare_with = params.get("against").map(Into::into);
        let by = params.get("colour");
        self.colour(ColourBy::ALL.into_iter().find(|c| Some(c.name()) == by).unwrap_or_default());
    }
}

impl GraphView {
    fn tools(&mut self, ui: &mut Ui, data: &Data, model: &Arc<Model>) {
        if data.graphs.len() > 1 {
            let name = data.graphs.get(self.graph_idx).map_or("", |graph| &*graph.name);
            let choice = ComboBox::from_id_salt("graph").selected_text(name).show_ui(ui, |ui| {
                for (idx, graph) in data.graphs.iter().enumerate() {
                    if ui.selectable_value(&mut self.graph_idx, idx, &*graph.name).clicked() {
                        self.wanted_graph = None;
                    }
                }
            });
            named(&choice.response, egui::Role::ComboBox, &format!("Graph: {name}"));
        }
        let label = ui.label(RichText::new("Colour").color(palette(ui).text_weak));
        let choice = ComboBox::from_id_salt("colour").selected_text(self.colour_by.name()).show_ui(ui, |ui| {
            for by in ColourBy::ALL {
                ui.selectable_value(&mut self.colour_by, by, by.name());
            }
        });
        choice.response.labelled_by(label.id);
        if let Some(other) = self.against(data).filter(|_| self.colour_by == ColourBy::Change) {
            let label = ui.label(RichText::new("Against").color(palette(ui).text_weak));
            let choice = ComboBox::from_id_salt("against").selected_text(&*data.graphs[other].name).show_ui(ui, |ui| {
                for (_, graph) in data.graphs.iter().enumerate().filter(|(idx, _)| *idx != self.graph_idx) {
                    if ui.selectable_label(*graph.name == *data.graphs[other].name, &*graph.name).clicked() {
                        self.compare_with = Some((*graph.name).into());
                    }
                }
            });
            choice.response.labelled_by(label.id);
        }
        if ui.button("Fit").on_hover_text("Show the whole graph (F)").clicked() {
            self.fit = true;
        }
        if ui.button("Open level").on_hover_text("Open one level of scopes (e)").clicked() {
            self.open_level(model);
        }
        if ui.button("Close all").on_hover_text("Close all scopes").clicked() {
            self.close_all(model);
        }
        if let Some(hit) = self.search.field(ui, model, &self.times) {
            self.reveal(model, hit);
        }
        ui.menu_button("Copy", |ui| {
            if ui.button("Picture as SVG").clicked() {
                self.export = Some(export::Export::Svg);
            }
            if ui.button("Visible graph as DOT").on_hover_text("For Graphviz").clicked() {
                self.export = Some(export::Export::Dot);
            }
        });
        let weak = palette(ui).text_weak;
        let nodes = format::counted(u64::from(model.n_nodes(ItemId::ROOT)), "node");
        let edges = format::counted(model.n_edges() as u64, "edge");
        ui.label(RichText::new(format!("{nodes}, {edges}")).color(weak));
        if !model.warnings().is_empty() {
            let list: Vec<String> = model.warnings().iter().map(|w| format!("{} × {}", w.count, w.text)).collect();
            let n: u64 = model.warnings().iter().map(|w| w.count).sum();
            ui.colored_label(palette(ui).warning, format::counted(n, "warning")).on_hover_text(list.join("\n"));
        }
        if self.is_busy() {
            busy(ui);
        }
    }
}

/// What an address may say of this panel.
pub(crate) fn accepts() -> Names {
    vec![
        ("graph", Accepts::Text),
        ("against", Accepts::Text),
        ("colour", Accepts::Words(ColourBy::ALL.iter().map(|by| by.name()).collect())),
    ]
}
