//! The Memory panel: the memory of a trace's devices over time, and memory snapshots of PyTorch's CUDA allocator.
//!
//! [`trace`] is the page of a trace, [`snapshot`] that of a snapshot; [`area`] is their chart.

mod area;
mod settings;
mod snapshot;
#[cfg(test)]
mod tests;
mod trace;

use crate::{Data, Selection, View, ViewKind, data::SnapshotData};
use egui::{ComboBox, TextEdit, Ui};
use settings::{Settings, Tab};
use snapshot::SnapshotPage;
use std::sync::Arc;
use trace::TracePage;
use ui::{
    address::{AddressState, Names, Params},
    command::Entry,
    format,
    widgets::{choice_buttons, empty_state, toolbar, trailing_text},
};

/// The commands of the panel.
const ENTRIES: &[Entry] = &[
    Entry::command("over time", "", "Snapshot: live bytes over time"),
    Entry::command("segments", "", "Snapshot: segments and their blocks"),
    Entry::command("peak", "", "Snapshot: what was live at the peak"),
    Entry::command("fit", "", "Show all of the time"),
    Entry::gesture("Drag, Ctrl + wheel", "Zoom in on a part of the time; over a snapshot the wheel alone does"),
    Entry::gesture("Shift + drag", "Move along the time"),
    Entry::gesture("Click the chart", "Snapshot: what was live then; trace: that moment in Timeline"),
    Entry::gesture("Double click the chart", "Show all of the time"),
];

/// The panel's state.
#[derive(Default)]
pub struct MemoryView {
    settings: Settings,
    trace: TracePage,
    snapshot: SnapshotPage,
    /// A command that needs the data.
    pending: Option<&'static str>,
}

/// What the panel shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// An index into [`Data::snapshots`].
    Snapshot(usize),
    /// An index into [`Data::traces`].
    Trace(usize),
}

/// What the panel can show, with names.
fn sources(data: &Data) -> Vec<(Source, &Arc<str>)> {
    let snapshots = data.snapshots.iter().enumerate().map(|(i, snapshot)| (Source::Snapshot(i), &snapshot.name));
    snapshots.chain(data.traces.iter().enumerate().map(|(i, trace)| (Source::Trace(i), &trace.name))).collect()
}

impl View for MemoryView {
    fn kind(&self) -> ViewKind {
        ViewKind::Memory
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn can(&self, id: &'static str, data: &Data) -> bool {
        id == "fit" || !data.snapshots.is_empty()
    }

    fn run(&mut self, id: &'static str) {
        match id {
            "over time" => self.settings.tab = Tab::Timeline,
            "segments" => self.settings.tab = Tab::Segments,
            _ => self.pending = Some(id),
        }
    }

    fn address(&self, _data: &Data) -> Params {
        self.settings.params()
    }

    fn go_to(&mut self, params: &Params) {
        self.settings.set_params(params);
    }

    fn table(&self, data: &Data, _selection: &Selection) -> Option<String> {
        match self.source(data)? {
            Source::Snapshot(_) => self.snapshot.csv(&self.settings),
            Source::Trace(_) => self.trace.csv(),
        }
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        let Some(source) = self.source(data) else {
            let text = "Open a trace that was recorded with profile_memory=True, or a memory snapshot:\n\
                        a file that torch.cuda.memory._dump_snapshot wrote.";
            return empty_state(ui, "No trace or snapshot yet", text);
        };
        if let Some(id) = self.pending.take() {
            self.settings.view = if id == "fit" { None } else { self.settings.view };
            self.snapshot.show_peak();
        }
        toolbar(ui, |ui| ui.horizontal_wrapped(|ui| self.bar_ui(ui, data, source)));
        match source {
            Source::Snapshot(i) => {
                let snapshot = &data.snapshots[i];
                let device_idx = self.device_idx(snapshot);
                self.snapshot.ui(ui, snapshot, device_idx, &mut self.settings);
            }
            Source::Trace(i) => {
                self.trace.analysis.trace_idx = i;
                self.trace.ui(ui, data, &data.traces[i], &mut self.settings.view, selection);
            }
        }
    }
}

impl MemoryView {
    fn source(&self, data: &Data) -> Option<Source> {
        let all = sources(data);
        let chosen = all.iter().find(|(_, name)| Some(*name) == self.settings.source.as_ref());
        chosen.or(all.first()).map(|(source, _)| *source)
    }

    /// The index of the chosen device among those with contents.
    fn device_idx(&self, snapshot: &SnapshotData) -> usize {
        snapshot.devices.iter().position(|of| Some(of.device) == self.settings.device).unwrap_or(0)
    }

    fn bar_ui(&mut self, ui: &mut Ui, data: &Data, source: Source) {
        let all = sources(data);
        if all.len() > 1 {
            let name = all.iter().find(|(one, _)| *one == source).map_or("", |(_, name)| name);
            ComboBox::from_label("Source").selected_text(name).show_ui(ui, |ui| {
                for (one, name) in &all {
                    if ui.selectable_label(*one == source, &***name).clicked() {
                        (self.settings.source, self.settings.view) = (Some(Arc::clone(name)), None);
                    }
                }
            });
        }
        match source {
            Source::Snapshot(i) => self.snapshot_bar_ui(ui, &data.snapshots[i]),
            Source::Trace(i) => {
                if self.settings.view.is_some() && ui.button("Fit").on_hover_text("Show all of the time").clicked() {
                    self.settings.view = None;
                }
                let store = &data.traces[i].store;
                trailing_text(
                    ui,
                    &format::count_of_irregular(
                        store.memory().len() as u64,
                        "allocation or free",
                        "allocations and frees",
                    ),
                );
            }
        }
    }

    fn snapshot_bar_ui(&mut self, ui: &mut Ui, snapshot: &SnapshotData) {
        let device_idx = self.device_idx(snapshot);
        let of = &snapshot.devices[device_idx];
        if snapshot.devices.len() > 1 {
            let name = |number: usize| format!("device {number}");
            ComboBox::from_label("Device").selected_text(name(of.device)).show_ui(ui, |ui| {
                for one in snapshot.devices.iter() {
                    if ui.selectable_label(one.device == of.device, name(one.device)).clicked() {
                        (self.settings.device, self.settings.view) = (Some(one.device), None);
                    }
                }
            });
        }
        choice_buttons(ui, "Show", &mut self.settings.tab);
        if self.settings.tab == Tab::Timeline {
            ui.separator();
            ui.weak("Axis");
            let axis = self.settings.axis;
            choice_buttons(ui, "Axis", &mut self.settings.axis);
            if axis != self.settings.axis {
                self.settings.view = None;
            }
            ui.separator();
            ui.weak("By");
            choice_buttons(ui, "By", &mut self.settings.by);
            ui.separator();
            let hint = "Leaves out the line of reserved bytes";
            ui.toggle_value(&mut self.settings.only_allocated, "Allocated only").on_hover_text(hint);
            let edit = TextEdit::singleline(&mut self.settings.filter).hint_text("Filter places").desired_width(140.0);
            ui.add(edit).accessible_name("Filter places");
            if self.settings.view.is_some() && ui.button("Fit").on_hover_text("Show all of the time").clicked() {
                self.settings.view = None;
            }
        }
        let device = &snapshot.snapshot.devices[of.device];
        let reserved: u64 = device.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.size));
        let (segments, events) = (device.segments.len() as u64, device.events.len() as u64);
        let text = format!(
            "{} reserved in {} · {}",
            format::bytes(reserved),
            format::count_of(segments, "segment"),
            format::count_of(events, "event")
        );
        trailing_text(ui, &text);
    }
}

/// The parameters of this panel in addresses.
pub(crate) fn accepts() -> Names {
    Settings::accepts()
}
