//! The charts of a trace's devices, and the table of what was live at a peak.

use super::analysis::{self, Columns, TraceMemory, View};
use crate::{
    Data, Selection, ViewKind,
    data::TraceData,
    memory::area::{Area, AreaResponse, Mark, clamped},
    ops::range_analysis::RangeAnalysis,
    selection::TimeRange,
};
use egui::{RichText, ScrollArea, Ui};
use std::sync::Arc;
use trace_analysis::memory::DeviceMemory;
use ui::{
    background::Refresher,
    chart::ticks::Unit,
    format,
    theme::{metrics, palette},
    widgets::{empty_state, figure_grid, heading},
};

/// Nodes of a peak that are listed, at most.
const MAX_LIVE: usize = 40;
/// Pixels of a chart's width that are columns, at most.
const MAX_COLUMNS: usize = 4096;
/// Why a peak is not taken apart.
const UNNAMED: &str =
    "The trace's allocations do not say what they are for; a memory snapshot of PyTorch has the stack of each.";
const KIND: ViewKind = ViewKind::Memory;

/// The page of a trace.
#[derive(Default)]
pub(in crate::memory) struct TracePage {
    pub analysis: RangeAnalysis<TraceMemory>,
    columns: Refresher<View, (View, Arc<TraceMemory>), Columns>,
    /// The revision of the range that other panels select.
    seen: u64,
}

impl TracePage {
    /// The bytes of each device over time as CSV.
    pub fn csv(&self) -> Option<String> {
        let memory = self.analysis.refresher.result()?;
        let points = memory.devices.iter().flat_map(|device| {
            device.points.iter().map(|(ns, bytes)| vec![device.device.clone(), ns.to_string(), bytes.to_string()])
        });
        Some(ui::export::csv(&["device", "time_ns", "bytes"], points))
    }

    /// Shows the page of the chosen trace. `view`: the part of the time, seconds from its origin; `None` for all.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        data: &Data,
        trace: &TraceData,
        view: &mut Option<[f64; 2]>,
        selection: &mut Selection,
    ) {
        let trace_idx = self.analysis.trace_idx;
        let memory = self.analysis.ask(ui, ("memory", analysis::answer as fn(_) -> _, 1.0), trace, None, false);
        let Some(memory) = memory.filter(|memory| memory.question.trace_idx == trace_idx) else {
            return empty_state(ui, "Analysing…", &format!("Reading {}", trace.n_slices()));
        };
        if let Some(note) = crate::far::note(memory.residency) {
            return empty_state(ui, "Slices are missing", note);
        }
        if memory.devices.is_empty() {
            let text = "Record with torch.profiler.profile(profile_memory=True), or open a memory snapshot:\n\
                        a file that torch.cuda.memory._dump_snapshot wrote.";
            return empty_state(ui, "The trace has no allocations", text);
        }
        if let Some(range) = selection.time.news(KIND, &mut self.seen).filter(|range| range.trace_idx == trace_idx) {
            *view = Some([range.ns.start, range.ns.end].map(|ns| ns as f64 * 1e-9));
        }
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            egui::Frame::new().inner_margin(egui::Margin::symmetric(metrics::PAD as i8, 0)).show(ui, |ui| {
                self.devices_ui(ui, data, &memory, view, selection);
                if !memory.devices.iter().any(has_nodes) {
                    ui.add_space(metrics::GAP_WIDE);
                    ui.horizontal_wrapped(|ui| {
                        ui.label(RichText::new(UNNAMED).color(palette(ui).text_weak));
                        if ui.link("Modules has what each module retains").clicked() {
                            selection.show(ViewKind::Modules);
                        }
                    });
                }
                ui.add_space(metrics::GAP_WIDE);
            });
        });
    }

    fn devices_ui(
        &mut self,
        ui: &mut Ui,
        data: &Data,
        memory: &Arc<TraceMemory>,
        chosen: &mut Option<[f64; 2]>,
        selection: &mut Selection,
    ) {
        let all = [memory.range.start, memory.range.end].map(|ns| ns as f64 * 1e-9);
        let view = chosen.unwrap_or(all);
        let n_columns = (ui.available_width() as usize).clamp(1, MAX_COLUMNS);
        let question = View { of: Arc::as_ptr(memory) as usize, view, n_columns };
        let work = ("memory columns", analysis::columns as fn(_) -> _);
        let columns = self.columns.ask(ui.ctx(), work, 0.0, question, |question, _| (question, Arc::clone(memory)));
        let columns = columns.filter(|columns| columns.view.of == Arc::as_ptr(memory) as usize);
        let height = (ui.available_height() * 0.45 / memory.devices.len() as f32)
            .clamp(metrics::CARD_CHART_H[0], metrics::CARD_CHART_H[1]);
        for (i, device) in memory.devices.iter().enumerate() {
            ui.add_space(metrics::GAP);
            heading(ui, &device.device);
            let shown = columns.as_deref().map(|columns| (&columns.view, &columns.devices[i][..]));
            let response = chart_ui(ui, device, i, view, shown, height);
            if response.fit {
                *chosen = None;
            } else if let Some(show) = response.show {
                *chosen = clamped(show, all);
            }
            if let (Some(column), Some((view, _))) = (response.clicked, shown) {
                let [start, end] = view.view;
                let second = start + (end - start) * (column as f64 + 0.5) / view.n_columns as f64;
                self.show_moment((second * 1e9) as i64, memory, selection);
            }
            self.live_ui(ui, data, device, memory, selection);
        }
    }

    /// Shows a moment in the timeline.
    fn show_moment(&self, ns: i64, memory: &TraceMemory, selection: &mut Selection) {
        let margin = ((memory.range.end - memory.range.start) / 200).max(1);
        let trace_idx = self.analysis.trace_idx;
        selection.time.set(KIND, Some(TimeRange { trace_idx, ns: ns - margin..ns + margin }));
        selection.show(ViewKind::Timeline);
    }

    fn live_ui(
        &self,
        ui: &mut Ui,
        data: &Data,
        device: &DeviceMemory,
        memory: &TraceMemory,
        selection: &mut Selection,
    ) {
        let p = palette(ui);
        let peak = format::bytes(bytes(device.peak_bytes));
        ui.horizontal_wrapped(|ui| {
            ui.label(RichText::new(format!("Peak {peak}")).color(p.text_strong));
            ui.label(format!("at {}", format::duration_ns(device.peak_time)));
            if ui.button("Show in Timeline").clicked() {
                self.show_moment(device.peak_time, memory, selection);
            }
        });
        if !has_nodes(device) {
            return;
        }
        figure_grid(ui, ("live at peak", &device.device), &["Live at the peak", "Bytes", "Share"], |ui| {
            let share = |bytes: i64| format::percent(bytes as f64 / device.peak_bytes.max(1) as f64);
            for (node, live) in device.live_at_peak.iter().take(MAX_LIVE) {
                if node.is_empty() {
                    ui.weak("no node");
                } else if ui.link(format::shortened(node, 80)).on_hover_text("Show it in Graph").clicked() {
                    selection.node.set(KIND, Some(node.as_str().into()));
                    let has_graph = !data.graphs.is_empty();
                    selection.show(if has_graph { ViewKind::Graph } else { ViewKind::Timeline });
                }
                ui.label(format::bytes(bytes(*live)));
                ui.label(share(*live));
                ui.end_row();
            }
            if device.rest_at_peak > 0 {
                ui.weak("allocated before the recording, or in small pieces");
                ui.label(format::bytes(bytes(device.rest_at_peak)));
                ui.label(share(device.rest_at_peak));
                ui.end_row();
            }
        });
        if device.live_at_peak.len() > MAX_LIVE {
            ui.weak(format!("and {} more", format::count((device.live_at_peak.len() - MAX_LIVE) as u64)));
        }
    }
}

/// Whether the allocations of a device name their nodes.
fn has_nodes(device: &DeviceMemory) -> bool {
    device.live_at_peak.iter().any(|(node, _)| !node.is_empty())
}

fn bytes(bytes: i64) -> u64 {
    bytes.max(0).cast_unsigned()
}

/// Shows the chart of the `i`-th device.
fn chart_ui(
    ui: &mut Ui,
    device: &DeviceMemory,
    i: usize,
    view: [f64; 2],
    shown: Option<(&View, &[u64])>,
    height: f32,
) -> AreaResponse {
    let p = palette(ui);
    let peak = format::bytes(bytes(device.peak_bytes));
    let seconds = device.peak_time as f64 * 1e-9;
    let label = format!("peak {peak}");
    let marks = [Mark { x: seconds, bytes: Some(bytes(device.peak_bytes)), label, color: p.text_strong }];
    let (span, columns): ([f64; 2], &[u64]) = shown.map_or((view, &[]), |(view, columns)| (view.view, columns));
    let column = |i: usize| (columns.get(i).map_or(&[][..], std::slice::from_ref), 0);
    let area = Area {
        view,
        x_unit: Unit::Seconds,
        span,
        n_columns: columns.len(),
        column: &column,
        colors: &[p.mark(i)],
        line: None,
        marks: &marks,
        strong: None,
        wheel_zooms: false,
        text: &|| format!("Memory of {}: peak {peak}", device.device),
    };
    let out = area.ui(ui, height);
    if let (Some((i, _)), Some(response)) = (out.hovered, &out.response) {
        let second = span[0] + (span[1] - span[0]) * (i as f64 + 0.5) / columns.len().max(1) as f64;
        response.clone().on_hover_ui_at_pointer(|ui| {
            ui.label(format!("{} allocated", format::bytes(columns[i])));
            ui.label(format!("at {}", format::duration_ns((second * 1e9) as i64)));
            ui.weak("click: show in Timeline");
        });
    }
    out
}
