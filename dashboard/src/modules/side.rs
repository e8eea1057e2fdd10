//! The figures of the selected module.

use super::{analysis::Report, model::Module};
use egui::{RichText, Ui};
use trace_analysis::torch::ModuleCost;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{figure_grid, heading, scroll_area},
};

/// What the user wants to see of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Its longest forward pass in the timeline.
    Longest,
}

/// A row of figures: title, figure, whether it is shown for this report.
type Figure = (&'static str, fn(&ModuleCost) -> String, fn(&Report) -> bool);

const HOST: Figure = ("Host", |cost| format::duration_ns(cost.host_ns), |_| true);
const DEVICE: Figure = ("Device", |cost| format::duration_ns(cost.device_ns), |report| report.tree.has_device);
const FLOP: Figure = ("FLOP", |cost| operations(cost.flop), |report| report.tree.has_flop);
const ALLOCATED: Figure = ("Allocated", |cost| bytes(cost.allocated_bytes), |report| report.tree.has_memory);
const RETAINED: Figure = ("Retained", |cost| bytes(cost.net_bytes), |report| report.tree.has_memory);

/// Shows the figures of a module; returns the action that was clicked.
pub(super) fn side_ui(ui: &mut Ui, report: &Report, module: &Module) -> Option<Action> {
    let p = palette(ui);
    let mut action = None;
    let height = ui.available_height();
    scroll_area(ui, [true, true], height).auto_shrink([false, false]).show(ui, |ui| {
        ui.add_space(metrics::GAP);
        heading(ui, module.title());
        if module.row.parent.is_some() {
            ui.add(egui::Label::new(RichText::new(&*module.path).color(p.text_weak)).wrap());
        }
        ui.add_space(metrics::GAP);
        if let Some(passes) = report.passes.get(&module.row.name) {
            ui.horizontal_wrapped(|ui| {
                let calls = format::count_of_irregular(module.row.calls, "forward pass", "forward passes");
                ui.label(calls);
                let hint = "The longest forward pass; all of them are highlighted";
                if ui.button("Show in Timeline").on_hover_text(hint).clicked() {
                    action = Some(Action::Longest);
                }
            });
            ui.label(format!("Longest {}", format::duration_ns(passes.longest_ns)));
        } else if module.is_outside() {
            ui.add(egui::Label::new("Ops that no module's forward pass called, such as the optimizer's").wrap());
        }
        ui.add_space(metrics::GAP_WIDE);
        let row = &module.row;
        if module.children.is_empty() {
            costs_ui(ui, report, "Costs", [&row.forward, &row.backward]);
        } else {
            costs_ui(ui, report, "With inner modules", [&row.forward, &row.backward]);
            costs_ui(ui, report, "Without inner modules", [&row.own_forward, &row.own_backward]);
        }
    });
    action
}

fn costs_ui(ui: &mut Ui, report: &Report, title: &str, costs: [&ModuleCost; 2]) {
    heading(ui, title);
    figure_grid(ui, title, &["", "Forward", "Backward"], |ui| {
        for (name, text, _) in [HOST, DEVICE, FLOP, ALLOCATED, RETAINED].iter().filter(|figure| figure.2(report)) {
            ui.weak(*name);
            costs.iter().for_each(|cost| _ = ui.label(text(cost)));
            ui.end_row();
        }
    });
    ui.add_space(metrics::GAP_WIDE);
}

fn operations(flop: f64) -> String {
    if flop > 0.0 { format::prefixed(flop, "").trim_end().to_owned() } else { "-".to_owned() }
}

/// A number of bytes that may be negative: gradients free what forward passes allocated.
fn bytes(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    format!("{sign}{}", format::bytes(bytes.unsigned_abs()))
}
