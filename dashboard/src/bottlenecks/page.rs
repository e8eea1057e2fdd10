//! The page's sections: findings, steps, critical path, stalls, memory, stragglers, rooflines, ops. Each line leads to
//! its evidence.

use super::{
    chart,
    model::{self, Report},
    parts::{Target, heading, row_ui},
    roofline::rooflines_ui,
};
use egui::{RichText, Ui};
use trace_analysis::findings::Finding;
use trace_model::{SliceId, SliceRef};
use trace_store::Store;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{columns, figure_grid, with_names},
};

/// Ops that are listed, at most.
const MAX_OPS: usize = 30;
/// Characters of a slice's or op's name that are shown, at most.
const MAX_NAME: usize = 80;
/// Nodes of a memory peak that are listed, at most.
const MAX_LIVE: usize = 6;

/// Shows the page; returns the evidence whose link was clicked.
pub(super) fn page_ui(ui: &mut Ui, store: &Store, report: &Report) -> Option<Target> {
    let mut target = None;
    if store.tracks().iter().all(|track| track.n_slices() == 0) {
        ui.label("The trace has no slices. See Warnings (top right) for what could not be read.");
        return None;
    }
    findings_ui(ui, store, &report.analysis.findings, &mut target);
    steps_ui(ui, report, &mut target);
    columns(ui, 2, |columns| {
        if let [left, right] = columns {
            path_ui(left, store, report, &mut target);
            causes_ui(right, store, report, &mut target);
        }
    });
    memory_ui(ui, store, report, &mut target);
    stragglers_ui(ui, store, report, &mut target);
    rooflines_ui(ui, &report.analysis.rooflines, &mut target);
    ops_ui(ui, report, &mut target);
    target
}

fn findings_ui(ui: &mut Ui, store: &Store, findings: &[Finding], target: &mut Option<Target>) {
    heading(ui, "Top opportunities");
    if findings.is_empty() {
        ui.label("Nothing stands out: no single thing holds up the steps by more than 1 %.");
    }
    let p = palette(ui);
    for (i, finding) in findings.iter().enumerate() {
        let frame = egui::Frame::new().fill(p.raised).corner_radius(metrics::RADIUS).inner_margin(metrics::PAD);
        frame.stroke(egui::Stroke::new(metrics::HAIRLINE, p.border)).show(ui, |ui| {
            ui.set_width(ui.available_width());
            ui.horizontal(|ui| {
                let title = format!("{}. {}", i + 1, finding.title);
                ui.label(with_names(&title, metrics::TEXT, p.text_strong));
                let saves = format::duration_ns(finding.saves_ns);
                let most = if finding.is_replayed { "saves" } else { "saves up to" };
                let share = format::percent(finding.share);
                ui.label(RichText::new(format!("{most} {saves}, {share}")).color(p.accent));
            });
            ui.add(egui::Label::new(with_names(&finding.text, metrics::TEXT, p.text)).wrap());
            ui.horizontal_wrapped(|ui| {
                if ui.link("Longest").on_hover_text("Show it in Timeline").clicked() {
                    let covers_range = |id: &&SliceId| {
                        store.slice(**id).is_some_and(|s| s.start <= finding.range.start && s.end >= finding.range.end)
                    };
                    let slice = finding.slices.iter().find(covers_range).or(finding.slices.first());
                    *target = Some(Target::Time(finding.range.clone(), slice.copied()));
                }
                for slice in finding.slices.iter().filter_map(|id| store.slice(*id)) {
                    evidence_ui(ui, store, &slice, target);
                }
            });
        });
        ui.add_space(metrics::GAP);
    }
}

/// Shows a slice and its link to the graph as one block, so that no line break separates them.
fn evidence_ui(ui: &mut Ui, store: &Store, slice: &SliceRef, target: &mut Option<Target>) {
    let (name, duration) = (store.slice_name(slice), format::duration_ns(slice.dur()));
    let (text, node) = (format!("{}, {duration}", format::shortened(name, MAX_NAME)), store.node_of(slice));
    let style = ui.style();
    let mut width = text_width(ui, &text, &egui::TextStyle::Body);
    if node.is_some() {
        let padding = style.spacing.item_spacing.x + 2.0 * style.spacing.button_padding.x;
        width += padding + text_width(ui, "graph", &egui::TextStyle::Small);
    }
    let size = egui::vec2(width.ceil(), ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(size, egui::Layout::left_to_right(egui::Align::Center), |ui| {
        if ui.link(text).on_hover_text("Show this slice in Timeline").clicked() {
            *target = Some(Target::Time(slice.start..slice.end, Some(slice.id)));
        }
        if let Some(node) = node
            && ui.small_button("graph").on_hover_text(format!("Show {} in Graph", node.name)).clicked()
        {
            *target = Some(Target::Node(node.name.as_str().into()));
        }
    });
}

fn text_width(ui: &Ui, text: &str, style: &egui::TextStyle) -> f32 {
    let font = style.resolve(ui.style());
    ui.painter().layout_no_wrap(text.to_owned(), font, palette(ui).text).size().x
}

fn steps_ui(ui: &mut Ui, report: &Report, target: &mut Option<Target>) {
    heading(ui, "Time of the steps by part");
    if report.steps.is_empty() {
        let times = report.analysis.breakdown.clone();
        ui.label("The trace has no steps: its complete range is shown");
        let range_bar = [model::StepBar { name: "complete range".to_owned(), times }];
        chart::legend_ui(ui, &range_bar);
        return;
    }
    if let Some((mean, median)) = model::step_times(&report.steps) {
        let n = format::count_of(report.steps.len() as u64, "step");
        let limit = if report.n_steps > report.steps.len() {
            format!(" (the last of {})", format::count(report.n_steps as u64))
        } else {
            String::new()
        };
        let (mean, median) = (format::duration_ns(mean), format::duration_ns(median));
        ui.label(format!("{n}{limit}: mean {mean}, median {median}"));
    }
    chart::legend_ui(ui, &report.steps);
    if let Some(step) = chart::chart_ui(ui, &report.steps).and_then(|i| report.steps.get(i)) {
        *target = Some(Target::Time(step.times.range.clone(), None));
    }
}

fn path_ui(ui: &mut Ui, store: &Store, report: &Report, target: &mut Option<Target>) {
    heading(ui, "Critical path");
    ui.weak("Only what is on it delays the end of a step");
    figure_grid(ui, "path", &["Part", "Time", "Share", "Count"], |ui| {
        for row in &report.path {
            let (time, share) = (format::duration_ns(row.total_ns), format::percent(row.share));
            let slice = row.longest.slice.and_then(|id| store.slice(id));
            let name = slice.map_or("?", |slice| store.slice_name(&slice));
            let hint =
                format!("Longest: {} at {name}. Click: show it in Timeline", format::duration_ns(row.longest.dur()));
            if row_ui(ui, &model::path_kind_name(row.kind), &[time, share, format::count(row.count)], &hint) {
                *target = Some(Target::Time(row.longest.start..row.longest.end, row.longest.slice));
            }
        }
    });
}

fn causes_ui(ui: &mut Ui, store: &Store, report: &Report, target: &mut Option<Target>) {
    heading(ui, "Stalls by cause");
    ui.weak("Idle time of workers, streams and threads, summed over all of them");
    if report.causes.is_empty() {
        ui.label("None");
    }
    figure_grid(ui, "causes", &["Cause", "Time", "Stalls"], |ui| {
        for row in &report.causes {
            let figures = [format::duration_ns(row.total_ns), format::count(row.count)];
            let hint = format!("Longest: {}. Click: show it in Timeline", row.longest.text(store));
            if row_ui(ui, row.longest.cause.name(), &figures, &hint) {
                *target = Some(Target::Time(row.longest.start..row.longest.end, row.longest.culprit));
            }
        }
    });
}

fn memory_ui(ui: &mut Ui, store: &Store, report: &Report, target: &mut Option<Target>) {
    if report.analysis.memory.is_empty() {
        return;
    }
    heading(ui, "Peak memory");
    for device in &report.analysis.memory {
        let peak = format!("{}: {}", device.device, format::bytes(device.peak_bytes.max(0) as u64));
        if ui.link(peak).on_hover_text("Show that moment in Timeline").clicked() {
            let margin_ns = (store.range().end - store.range().start) / 200;
            *target = Some(Target::Time(device.peak_time - margin_ns..device.peak_time + margin_ns.max(1), None));
        }
        ui.indent(&device.device, |ui| {
            for (node, bytes) in device.live_at_peak.iter().take(MAX_LIVE) {
                ui.horizontal(|ui| {
                    ui.label(format::bytes((*bytes).max(0) as u64));
                    if node.is_empty() {
                        ui.weak("no node");
                    } else if ui.link(node).on_hover_text("Show it in Graph").clicked() {
                        *target = Some(Target::Node(node.as_str().into()));
                    }
                });
            }
            let more = device.live_at_peak.len().saturating_sub(MAX_LIVE);
            if more > 0 {
                ui.weak(format!("and {} more", format::count(more as u64)));
            }
            if device.rest_at_peak > 0 {
                ui.horizontal(|ui| {
                    ui.label(format::bytes(device.rest_at_peak as u64));
                    ui.weak("allocated before the recording, or in small pieces");
                });
            }
        });
    }
}

fn stragglers_ui(ui: &mut Ui, store: &Store, report: &Report, target: &mut Option<Target>) {
    let stragglers = &report.analysis.stragglers;
    if stragglers.processes.is_empty() {
        return;
    }
    heading(ui, "Stragglers");
    figure_grid(ui, "stragglers", &["Process", "Count", "Late in total", "Others waited"], |ui| {
        for row in &stragglers.processes {
            let process = store.processes().get(row.process as usize);
            let name = process.map_or_else(|| "?".to_owned(), |p| format!("{} {}", p.title(), p.host));
            let figures =
                [format::count(row.times_last), format::duration_ns(row.late_ns), format::duration_ns(row.waited_ns)];
            if row_ui(ui, &name, &figures, "Show its latest in Timeline") {
                let delays =
                    stragglers.collectives.iter().chain(&stragglers.steps).filter(|l| l.process == row.process);
                let latest = delays.max_by_key(|l| l.late_ns).and_then(|l| store.slice(l.slice));
                *target = latest.map(|slice| Target::Time(slice.start..slice.end, Some(slice.id)));
            }
        }
    });
}

fn ops_ui(ui: &mut Ui, report: &Report, target: &mut Option<Target>) {
    heading(ui, "Ops, by their time on the critical path");
    let mut ops: Vec<_> = report.analysis.ops.iter().collect();
    ops.sort_by_key(|op| (std::cmp::Reverse(op.critical_ns), std::cmp::Reverse(op.figures.self_ns)));
    figure_grid(
        ui,
        "bottleneck ops",
        &["Name", "Kind", "Device", "Count", "Self", "Critical", "Share of path"],
        |ui| {
            for op in ops.iter().take(MAX_OPS) {
                let figures = [
                    op.category.clone(),
                    op.device.clone(),
                    format::count(op.figures.count),
                    format::duration_ns(op.figures.self_ns),
                    format::duration_ns(op.critical_ns),
                    format::percent(op.critical_share),
                ];
                let name: String = op.name.chars().take(MAX_NAME).collect();
                if row_ui(ui, &name, &figures, "Highlights its slices in Timeline") {
                    *target = Some(Target::Op(op.name.as_str().into()));
                }
            }
        },
    );
    if ops.len() > MAX_OPS {
        ui.weak(format!("and {} more: see Ops", format::count((ops.len() - MAX_OPS) as u64)));
    }
}

/// Returns a note if only a part of the range is analysed.
pub(super) fn limit_text(report: &Report) -> Option<String> {
    let (range, requested) = (&report.analysis.range, &report.requested);
    if report.n_steps > report.steps.len() {
        return Some(format!("the last {} of {} steps", report.steps.len(), format::count(report.n_steps as u64)));
    }
    let [analysed, all] = [range, requested].map(|r| format::duration_ns(r.end - r.start));
    (range.start > requested.start).then(|| format!("the last {analysed} of {all}"))
}
