//! The details next to the table: an allocation that failed, and the selected place with its largest allocations.

use super::{moment::LiveRow, place};
use egui::{RichText, Ui};
use torch_dumps::{Allocation, Device, OutOfMemory, StackId, Stacks};
use ui::{
    format,
    theme::{metrics, palette},
    widgets::{figure_grid, heading, pairs_grid, scroll_area},
};

/// Frames of a stack that are listed, at most.
const MAX_FRAMES: usize = 40;

/// Shows the details: the allocation that failed at the moment, if one did, and the selected place.
pub(super) fn side_ui(
    ui: &mut Ui,
    stacks: &Stacks,
    device: &Device,
    failure: Option<&OutOfMemory>,
    row: Option<&LiveRow>,
) {
    let height = ui.available_height();
    scroll_area(ui, [true, true], height).auto_shrink([false, false]).show(ui, |ui| {
        ui.add_space(metrics::GAP);
        if let Some(failure) = failure {
            failure_ui(ui, stacks, device, failure);
        }
        if let Some(row) = row {
            row_ui(ui, stacks, device, row);
        }
    });
}

fn failure_ui(ui: &mut Ui, stacks: &Stacks, device: &Device, failure: &OutOfMemory) {
    ui.label(RichText::new("Out of memory").size(metrics::TEXT_TITLE).color(palette(ui).error));
    let point = &failure.point;
    let figures = [
        ("Asked for", format::bytes(failure.requested)),
        ("Allocated then", format::bytes(point.allocated)),
        ("Reserved then", format::bytes(point.reserved)),
        ("Free on the device", format::bytes(failure.device_free)),
        ("Time", when(device, point.event)),
    ];
    pairs_grid(ui, ("failure", point.event), figures.map(|(name, value)| (name.to_owned(), value)));
    stack_ui(ui, stacks, failure.stack);
    ui.add_space(metrics::GAP_WIDE);
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
