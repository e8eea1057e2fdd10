//! The choice of a trace, where several are open.

use crate::Data;
use egui::{ComboBox, Ui};
use std::sync::Arc;

/// Shows the names of the traces, with a label.
pub(crate) fn trace_choice(ui: &mut Ui, label: &str, data: &Data, chosen: &mut usize) {
    if data.traces.len() < 2 {
        return;
    }
    let name = data.traces.get(*chosen).map_or("", |trace| &trace.name);
    ComboBox::from_label(label).selected_text(name).show_ui(ui, |ui| {
        for (i, trace) in data.traces.iter().enumerate() {
            ui.selectable_value(chosen, i, &*trace.name);
        }
    });
}

/// The name of a trace for addresses; `None` where only one is open.
pub(crate) fn trace_name(data: &Data, idx: usize) -> Option<Arc<str>> {
    data.traces.get(idx).filter(|_| data.traces.len() > 1).map(|trace| trace.name.clone())
}
