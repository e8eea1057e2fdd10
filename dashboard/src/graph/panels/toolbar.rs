//! The controls above the picture.

use crate::{
    Data,
    graph::{
        model::{ItemId, Model},
        paint::{COLOR_MODES, ColorBy, Export},
        state::GraphView,
    },
};
use egui::{ComboBox, RichText, Ui};
use std::sync::Arc;
use ui::{
    format,
    theme::palette,
    widgets::{busy, named},
};

impl GraphView {
    /// Shows the controls.
    pub(crate) fn toolbar_ui(&mut self, ui: &mut Ui, data: &Data, model: &Arc<Model>) {
        if data.graphs.len() > 1 {
            let name = data.graphs.get(self.graph_idx).map_or("", |graph| &*graph.name);
            let choice = ComboBox::from_id_salt("graph").selected_text(name).show_ui(ui, |ui| {
                for (idx, graph) in data.graphs.iter().enumerate() {
                    if ui.selectable_value(&mut self.graph_idx, idx, &*graph.name).clicked() {
                        self.requested_graph = None;
                    }
                }
            });
            named(&choice.response, egui::Role::ComboBox, &format!("Graph: {name}"));
        }
        let label = ui.label(RichText::new("Colour").color(palette(ui).text_weak));
        let choice = ComboBox::from_id_salt("colour").selected_text(self.color_by.title()).show_ui(ui, |ui| {
            for mode in &COLOR_MODES {
                ui.selectable_value(&mut self.color_by, mode.by, mode.title).on_hover_text(mode.command.what);
            }
        });
        choice.response.labelled_by(label.id);
        if let Some(other) = self.other_graph(data).filter(|_| self.color_by == ColorBy::Change) {
            let label = ui.label(RichText::new("Compare with").color(palette(ui).text_weak));
            let choice = ComboBox::from_id_salt("against").selected_text(&*data.graphs[other].name).show_ui(ui, |ui| {
                for (_, graph) in data.graphs.iter().enumerate().filter(|(idx, _)| *idx != self.graph_idx) {
                    if ui.selectable_label(*graph.name == *data.graphs[other].name, &*graph.name).clicked() {
                        self.compare_with = Some((*graph.name).into());
                    }
                }
            });
            choice.response.labelled_by(label.id);
        }
        if ui.button("Fit").on_hover_text("Fit the graph (F)").clicked() {
            self.needs_fit = true;
        }
        if ui.button("Expand one level").on_hover_text("Expand one level of scopes (E)").clicked() {
            self.open_level(model);
        }
        if ui.button("Collapse all").on_hover_text("Collapse all scopes").clicked() {
            self.close_all(model);
        }
        if let Some(hit) = self.search.field_ui(ui, model, &self.times) {
            self.reveal(model, hit);
        }
        ui.menu_button("Copy", |ui| {
            if ui.button("Picture as SVG").clicked() {
                self.export = Some(Export::Svg);
            }
            if ui.button("Visible graph as DOT").on_hover_text("For Graphviz").clicked() {
                self.export = Some(Export::Dot);
            }
        });
        let weak = palette(ui).text_weak;
        let nodes = format::count_of(u64::from(model.n_nodes(ItemId::ROOT)), "node");
        let edges = format::count_of(model.n_edges() as u64, "edge");
        ui.label(RichText::new(format!("{nodes}, {edges}")).color(weak));
        if !model.warnings().is_empty() {
            let list: Vec<String> = model.warnings().iter().map(|w| format!("{} × {}", w.count, w.text)).collect();
            let n: u64 = model.warnings().iter().map(|w| w.count).sum();
            ui.colored_label(palette(ui).warning, format::count_of(n, "warning")).on_hover_text(list.join("\n"));
        }
        if self.is_busy() {
            busy(ui);
        }
    }
}
