//! The facts about the selected slice.

use crate::{
    Selection, ViewKind,
    timeline::{
        command::Command,
        model::{Fact, Link},
    },
};
use egui::Ui;
use ui::{theme::metrics, widgets::heading};

/// Shows a slice's facts below its name; returns the commands of clicks.
pub fn details_ui(ui: &mut Ui, title: &str, facts: &[Fact], selection: &mut Selection) -> Vec<Command> {
    let mut out = Vec::new();
    ui.horizontal(|ui| {
        heading(ui, title);
        if ui.small_button("<").on_hover_text("Previous slice of this name (,)").clicked() {
            out.push(Command::SameName { forward: false });
        }
        if ui.small_button(">").on_hover_text("Next slice of this name (.)").clicked() {
            out.push(Command::SameName { forward: true });
        }
    });
    // In two columns, where there is room, all facts fit under the canvas.
    let spacing = [metrics::GAP_WIDE, 2.0];
    let n_columns = if ui.available_width() > metrics::TWO_FACTS_W { 2 } else { 1 };
    egui::Grid::new(("slice facts", n_columns)).num_columns(2 * n_columns).spacing(spacing).show(ui, |ui| {
        let n_rows = facts.len().div_ceil(n_columns);
        for i in 0..n_rows {
            for fact in facts.iter().skip(i).step_by(n_rows) {
                ui.weak(&*fact.name);
                ui.horizontal(|ui| {
                    fact_ui(ui, fact, selection, &mut out);
                    ui.add_space(metrics::GAP_WIDE);
                });
            }
            ui.end_row();
        }
    });
    out
}

fn fact_ui(ui: &mut Ui, fact: &Fact, selection: &mut Selection, out: &mut Vec<Command>) {
    match &fact.link {
        None => {
            ui.label(&fact.value);
        }
        Some(Link::Node(node)) => {
            if ui.link(&**node).on_hover_text("Highlight all slices of this node").clicked() {
                out.push(Command::SelectNode(Some(node.clone())));
            }
            for (view, label) in [(ViewKind::Graph, "graph"), (ViewKind::Scalars, "summaries")] {
                if ui.small_button(label).on_hover_text(format!("Show this node in {}", view.title())).clicked() {
                    out.push(Command::SelectNode(Some(node.clone())));
                    selection.show(view);
                }
            }
        }
        Some(Link::Slice(slice)) => {
            if ui.link(&fact.value).on_hover_text("Go to that slice").clicked() {
                out.push(Command::Reveal(slice.id));
            }
        }
        Some(Link::Step(range)) => {
            if ui.link(&fact.value).on_hover_text("Show this step").clicked() {
                out.push(Command::Show(range.clone()));
            }
        }
    }
}
