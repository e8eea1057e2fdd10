//! The details next to the table: allocations that failed, and the selected place with its largest allocations.

use super::{moment::LiveRow, place};
use crate::data::DeviceHistory;
use egui::{RichText, Ui};
use torch_dumps::{Allocation, Device, OutOfMemory, StackId, Stacks};
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{figure_grid, heading, scroll_area},
};

/// Frames of a stack that are listed, at most.
const MAX_FRAMES: usize = 40;

/// Shows the details; returns the event that was clicked: what was live after it is to be shown.
pub(super) fn side_ui(
    ui: &mut Ui,
    stacks: &Stacks,
    of: &DeviceHistory,
    device: &Device,
    row: Option<&LiveRow>,
) -> Option<Option<u32>> {
    let mut picked = None;
    let height = ui.available_height();
    scroll_area(ui, [true, true], height).auto_shrink([false, false]).show(ui, |ui| {
        ui.add_space(metrics::GAP);
        for failure in &of.out_of_memory {
            if failure_ui(ui, stacks, device, failure) {
                picked = Some(failure.point.event);
            }
        }
        match row {
            Some(row) => row_ui(ui, stacks, device, row),
            None => _ = ui.weak("Select a row for its stack and its largest allocations"),
        }
    });
    picked
}

fn failure_ui(ui: &mut Ui, stacks: &Stacks, device: &Device, failure: &OutOfMemory) -> bool {
    let p = palette(ui);
    ui.label(RichText::new("Out of memory").size(metrics::TEXT_TITLE).color(p.error));
    let point = &failure.point;
    let figures = [
        ("Asked for", format::bytes(failure.requested)),
        ("Allocated then", format::bytes(point.allocated)),
        ("Reserved then", format::bytes(point.reserved)),
        ("Free on the device", format::bytes(failure.device_free)),
        ("When", when(device, point.event)),
        ("Where", place::short(stacks, stacks.user_frame(failure.stack))),
    ];
    ui::widgets::pairs_grid(ui, ("failure", point.event), figures.map(|(name, value)| (name.to_owned(), value)));
    let is_clicked = ui.button("What was live then").clicked();
    ui.add_space(metrics::GAP_WIDE);
    is_clicked
}

fn row_ui(ui: &mut Ui, stacks: &Stacks, device: &Device, row: &LiveRow) {
    heading(ui, &row.title);
    let n = format::count_of(row.count, "allocation");
    ui.label(format!("{} in {n} from {}", format::bytes(row.bytes), format::count_of(row.n_stacks as u64, "stack")));
    ui.add_space(metrics::GAP_WIDE);
    heading(ui, if row.n_stacks > 1 { "Stack of the largest" } else { "Stack" });
    stack_ui(ui, stacks, row.stack);
    ui.add_space(metrics::GAP_WIDE);
    heading(ui, "Largest allocations");
    figure_grid(ui, "largest", &["Size", "Allocated", "Freed"], |ui| {
        for one in &row.largest {
            ui.label(format::bytes(one.size));
            ui.label(when(device, one.begin));
            ui.label(freed(device, one));
            ui.end_row();
        }
    });
}

/// Lists the frames of a stack, the innermost one of the user first.
pub(super) fn stack_ui(ui: &mut Ui, stacks: &Stacks, stack: StackId) {
    let frames = place::frames(stacks, stack, MAX_FRAMES);
    if frames.is_empty() {
        ui.weak("No stack was recorded");
    }
    for frame in frames {
        let text = place::short(stacks, Some(frame));
        ui.add(egui::Label::new(text).extend()).on_hover_text(place::full(stacks, frame));
    }
}

/// When an event was, since the first one.
pub(super) fn when(device: &Device, event: Option<u32>) -> String {
    let Some(event) = event else { return "before the first event".to_owned() };
    let first = device.events.first().map_or(0, |event| event.time_us);
    let time = device.events.get(event as usize).map_or(0, |event| event.time_us);
    match time {
        0 => format!("event {}", format::count(u64::from(event))),
        _ => format::duration_ns(time.saturating_sub(first).saturating_mul(1000)),
    }
}

/// When an allocation was freed.
pub(super) fn freed(device: &Device, one: &Allocation) -> String {
    match (one.end, one.requested) {
        (Some(end), _) => when(device, Some(end)),
        (None, Some(_)) => "pending: a stream may use it".to_owned(),
        (None, None) => "not freed".to_owned(),
    }
}
