//! The page of a snapshot: the chart, the table of a moment with its details, or the segments.

use super::{
    colors::color_of,
    moment::{self, LiveColumn, LiveRow, Moment, MomentKey},
    segments::Segments,
    side, table,
    timeline::{self, Axis, Picture, Request, View},
};
use crate::{
    data::{DeviceHistory, SnapshotData},
    memory::{
        area::{Area, AreaResponse, Mark, clamped, line_legend},
        settings::{Settings, Tab},
    },
};
use egui::{Color32, Frame, Margin, RichText, Ui};
use std::sync::Arc;
use torch_dumps::{Device, FrameId, StackId};
use ui::{
    background::Refresher,
    chart::ticks::Unit,
    format,
    theme::{Palette, metrics, palette},
    widgets::{self, Edge, Extent, SortOrder, empty_state},
};

/// Pixels of the chart's width that are columns, at most.
const MAX_COLUMNS: usize = 4096;
/// Failed allocations that have a button, at most; all of them have marks.
const MAX_FAILURES: usize = 4;
/// Share of the height that the chart takes by default.
const CHART_SHARE: f32 = 0.45;

/// The page of a snapshot.
pub(in crate::memory) struct SnapshotPage {
    pictures: Refresher<View, Request, Picture>,
    moments: Refresher<MomentKey, (MomentKey, SnapshotData), Moment>,
    order: SortOrder<LiveColumn>,
    sorted: SortedRows,
    /// The moment that was picked: after an event, or before the first one. `None`: the peak.
    event: Option<Option<u32>>,
    /// The selected place.
    selected: Option<(Option<FrameId>, StackId)>,
    /// The snapshot and device that the choices above are about.
    of: (usize, usize),
}

/// The rows of the table in order, cached while nothing that they depend on changes.
#[derive(Default)]
struct SortedRows {
    of: Option<(usize, SortOrder<LiveColumn>, String)>,
    rows: Vec<usize>,
}

impl Default for SnapshotPage {
    fn default() -> Self {
        Self {
            pictures: Refresher::default(),
            moments: Refresher::default(),
            order: moment::USUAL,
            sorted: SortedRows::default(),
            event: None,
            selected: None,
            of: (0, 0),
        }
    }
}

/// What the parts of the page share.
struct Subject<'a> {
    snapshot: &'a SnapshotData,
    of: &'a DeviceHistory,
    device: &'a Device,
    device_idx: usize,
}

impl Subject<'_> {
    /// Identifies the snapshot.
    fn id(&self) -> usize {
        Arc::as_ptr(&self.snapshot.snapshot) as usize
    }
}

impl SnapshotPage {
    /// Shows what was live at the peak.
    pub fn show_peak(&mut self) {
        self.event = None;
    }

    /// The table as CSV.
    pub fn csv(&self, settings: &Settings) -> Option<String> {
        let moment = self.moments.result()?;
        let shown = moment::sorted(&moment.rows, &settings.filter, self.order);
        Some(widgets::csv(&moment::COLUMNS, shown.iter().map(|i| &moment.rows[*i])))
    }

    /// Shows the page of a device.
    pub fn ui(&mut self, ui: &mut Ui, snapshot: &SnapshotData, device_idx: usize, settings: &mut Settings) {
        let Some(of) = snapshot.devices.get(device_idx) else { return };
        let device = &snapshot.snapshot.devices[of.device];
        let subject = Subject { snapshot, of, device, device_idx };
        let id = (subject.id(), device_idx);
        if self.of != id {
            (self.of, self.event, self.selected) = (id, None, None);
        }
        let picture = self.picture(ui, &subject, settings);
        let groups = picture.as_ref().map(|picture| Arc::clone(&picture.groups));
        match settings.tab {
            Tab::Segments if device.segments.is_empty() => {
                empty_state(ui, "No segments", "The snapshot has events, but no segments of this device.");
            }
            Tab::Segments => {
                let frame = Frame::new().inner_margin(Margin::symmetric(metrics::PAD as i8, metrics::GAP as i8));
                let segments = Segments { snapshot, of, groups: groups.as_deref() };
                frame.show(ui, |ui| segments.ui(ui, &mut settings.sort_by));
            }
            Tab::Timeline => self.timeline_ui(ui, &subject, settings, picture.as_deref()),
        }
    }

    fn picture(&mut self, ui: &Ui, subject: &Subject<'_>, settings: &Settings) -> Option<Arc<Picture>> {
        let axis = axis(subject.device, settings);
        let end = timeline::end_of(subject.device, axis);
        let n_columns = ui.available_width() * ui.pixels_per_point();
        let question = View {
            of: subject.id(),
            device_idx: subject.device_idx,
            axis,
            by: settings.by,
            view: settings.view.unwrap_or([0.0, end]),
            n_columns: (n_columns as usize).clamp(1, MAX_COLUMNS),
        };
        let work = ("memory timeline", timeline::answer as fn(_) -> _);
        let request = |view, previous| Request { view, snapshot: subject.snapshot.clone(), previous };
        let picture = self.pictures.ask(ui.ctx(), work, 0.0, question, request)?;
        // One of another axis would have other units.
        let known = &picture.view;
        let is_same = (known.of, known.device_idx, known.axis) == (subject.id(), subject.device_idx, axis);
        is_same.then_some(picture)
    }

    fn timeline_ui(&mut self, ui: &mut Ui, subject: &Subject<'_>, settings: &mut Settings, picture: Option<&Picture>) {
        let event = self.event.unwrap_or(subject.of.peak.and_then(|peak| peak.event));
        let when = MomentKey { of: subject.id(), device_idx: subject.device_idx, event, by: settings.by };
        let work = ("memory moment", moment::answer as fn(_) -> _);
        let moment = self.moments.ask(ui.ctx(), work, 0.0, when.clone(), |when, _| (when, subject.snapshot.clone()));
        let moment = moment.filter(|moment| (moment.when.of, moment.when.device_idx) == (when.of, when.device_idx));
        if subject.device.events.is_empty() {
            let text = "The file has no events: torch.cuda.memory._record_memory_history() records them. \
                        What is allocated now:";
            ui.add(egui::Label::new(RichText::new(text).color(palette(ui).text_weak)).wrap());
        } else {
            widgets::side(ui, Edge::Top, "memory chart", Extent::Share(CHART_SHARE), |ui| {
                self.chart_ui(ui, subject, settings, picture, event);
            });
        }
        let Some(moment) = moment else { return empty_state(ui, "Analysing…", "Sums of what was live") };
        self.heading_ui(ui, subject, &moment, event);
        let stacks = &subject.snapshot.snapshot.stacks;
        let row = moment.rows.iter().find(|row| self.is_selected(row, settings)).or(moment.rows.first());
        let failure = subject.of.out_of_memory.iter().find(|failure| failure.point.event == event);
        widgets::side(ui, Edge::Right, "memory side", Extent::Points(2.0 * metrics::SIDE_W), |ui| {
            side::side_ui(ui, stacks, subject.device, failure, row);
        });
        let key = (Arc::as_ptr(&moment) as usize, self.order, settings.filter.clone());
        if self.sorted.of.as_ref() != Some(&key) {
            let rows = moment::sorted(&moment.rows, &settings.filter, self.order);
            self.sorted = SortedRows { rows, of: Some(key) };
        }
        let shown = &self.sorted.rows;
        if shown.is_empty() {
            ui.weak(if moment.rows.is_empty() { "Nothing was live" } else { "No matches" });
            return;
        }
        let (groups, p) = (picture.map(|picture| &*picture.groups), palette(ui));
        let frame = Frame::new().inner_margin(Margin { left: metrics::PAD as i8, ..Margin::ZERO });
        let clicks = frame.show(ui, |ui| {
            let color = |row: &LiveRow| color_of(p, groups, row.stack);
            table::table_ui(ui, &moment.rows, shown, self.order, color, |row| self.is_selected(row, settings))
        });
        if let Some(column) = clicks.inner.sort_by {
            self.order.click(column, column != LiveColumn::Place);
        }
        if let Some(row) = clicks.inner.picked.map(|i| &moment.rows[i]) {
            let is_again = self.is_selected(row, settings);
            self.selected = (!is_again).then_some((row.frame, row.stack));
        }
    }

    fn is_selected(&self, row: &LiveRow, settings: &Settings) -> bool {
        self.selected.is_some_and(|(frame, stack)| match settings.by {
            timeline::GroupBy::Frame => row.frame == frame,
            timeline::GroupBy::Stack => row.stack == stack,
        })
    }

    fn heading_ui(&mut self, ui: &mut Ui, subject: &Subject<'_>, moment: &Moment, event: Option<u32>) {
        let frame = Frame::new().inner_margin(Margin::symmetric(metrics::PAD as i8, 0));
        frame.show(ui, |ui| {
            ui.horizontal_wrapped(|ui| {
                let is_peak = self.event.is_none();
                let title = match (subject.device.events.is_empty(), is_peak) {
                    (true, _) => "Now".to_owned(),
                    (_, true) => format!("Peak, {}", side::when(subject.device, event)),
                    (_, false) => format!("At {}", side::when(subject.device, event)),
                };
                widgets::heading(ui, title);
                let n = format::count_of(moment.count, "allocation");
                ui.label(format!("{} live in {n}", format::bytes(moment.bytes)));
                if !is_peak && ui.button("Peak").on_hover_text("What was live at the peak").clicked() {
                    self.event = None;
                }
                for failure in subject.of.out_of_memory.iter().take(MAX_FAILURES) {
                    let point = &failure.point;
                    let text = format!("Out of memory, {}", side::when(subject.device, point.event));
                    let text = RichText::new(text).color(palette(ui).error);
                    if ui.button(text).on_hover_text("What was live when an allocation failed").clicked() {
                        self.event = Some(point.event);
                    }
                }
            });
        });
    }

    fn chart_ui(
        &mut self,
        ui: &mut Ui,
        subject: &Subject<'_>,
        settings: &mut Settings,
        picture: Option<&Picture>,
        event: Option<u32>,
    ) {
        let p = palette(ui);
        let axis = axis(subject.device, settings);
        let end = timeline::end_of(subject.device, axis);
        let view = settings.view.unwrap_or([0.0, end]);
        ui.horizontal(|ui| {
            ui.add_space(metrics::PAD);
            if !settings.only_allocated {
                line_legend(ui, p.text_weak, "reserved");
            }
            ui.weak("areas: allocated, by place; the rest in grey");
        });
        let columns = picture.map_or(&[][..], |picture| &picture.columns);
        let n_groups = picture.map_or(0, |picture| picture.groups.list().len());
        let colors: Vec<Color32> = (0..n_groups).map(|group| p.mark(group)).chain([p.aggregate]).collect();
        let strong = self.selected.and_then(|(_, stack)| picture.map(|picture| picture.groups.of(stack)));
        let marks = self.marks(p, subject, axis, event);
        let column = |i: usize| columns.get(i).map_or((&[][..], 0), |column| (&column.by_group[..], column.reserved));
        let peak = subject.of.peak.map_or(0, |peak| peak.allocated);
        let area = Area {
            view,
            x_unit: if axis == Axis::Time { Unit::Seconds } else { Unit::Whole },
            span: picture.map_or(view, |picture| picture.view.view),
            n_columns: columns.len(),
            column: &column,
            colors: &colors,
            line: (!settings.only_allocated).then_some(p.text_weak),
            marks: &marks,
            strong,
            wheel_zooms: true,
            text: &|| format!("Memory over time: peak {}", format::bytes(peak)),
        };
        let height = (ui.available_height() - metrics::GAP).max(metrics::AXIS_LABEL_H * 3.0);
        let out = area.ui(ui, height);
        if out.fit {
            settings.view = None;
        } else if let Some(show) = out.show {
            settings.view = clamped(show, [0.0, end]);
        }
        if let Some(column) = out.clicked.and_then(|i| columns.get(i)) {
            self.event = Some(column.event);
        }
        if let Some(picture) = picture {
            tooltip(&out, subject, picture);
        }
    }

    fn marks(&self, p: &Palette, subject: &Subject<'_>, axis: Axis, event: Option<u32>) -> Vec<Mark> {
        let x = |event| timeline::x_of(subject.device, axis, event);
        let mut marks = Vec::new();
        if let Some(peak) = subject.of.peak {
            let label = format!("peak {}", format::bytes(peak.allocated));
            marks.push(Mark { x: x(peak.event), bytes: Some(peak.allocated), label, color: p.text_strong });
        }
        for failure in &subject.of.out_of_memory {
            let label = format!("out of memory: {} asked for", format::bytes(failure.requested));
            marks.push(Mark { x: x(failure.point.event), bytes: None, label, color: p.error });
        }
        if self.event.is_some() {
            marks.push(Mark { x: x(event), bytes: None, label: "shown below".to_owned(), color: p.accent });
        }
        marks
    }
}

/// The axis that is shown: events where the file has no times.
fn axis(device: &Device, settings: &Settings) -> Axis {
    if timeline::has_times(device) { settings.axis } else { Axis::Events }
}

fn tooltip(out: &AreaResponse, subject: &Subject<'_>, picture: &Picture) {
    let (Some((i, layer)), Some(response)) = (out.hovered, &out.response) else { return };
    let Some(column) = picture.columns.get(i) else { return };
    let stacks = &subject.snapshot.snapshot.stacks;
    response.clone().on_hover_ui_at_pointer(|ui| {
        if let Some(layer) = layer {
            let bytes = column.by_group[layer];
            let share = format::percent(bytes as f64 / column.allocated.max(1) as f64);
            match picture.groups.list().get(layer) {
                Some(group) => {
                    ui.label(RichText::new(super::place::short(stacks, group.frame)).color(palette(ui).text_strong));
                    ui.label(format!("{} here ({share})", format::bytes(bytes)));
                    ui.weak(format!("at most {}", format::bytes(group.most_bytes)));
                }
                None => _ = ui.label(format!("{} elsewhere ({share})", format::bytes(bytes))),
            }
        }
        let (allocated, reserved) = (format::bytes(column.allocated), format::bytes(column.reserved));
        ui.label(format!("{allocated} allocated, {reserved} reserved"));
        ui.weak(side::when(subject.device, column.event));
        ui.weak("click: what was live then");
    });
}
