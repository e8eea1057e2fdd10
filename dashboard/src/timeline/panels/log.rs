//! The list of log messages, which scrolls with the pointer's time.

use crate::timeline::{
    command::Command,
    layout::ticks,
    model::log::{LogLine, text},
};
use egui::{Align, Label, RichText, ScrollArea, Sense, Ui};
use trace_store::Store;
use ui::theme::{metrics, palette};

/// Shows the list. `cursor`: the pointer's time, to which the list scrolls.
pub fn panel_ui(ui: &mut Ui, store: &Store, lines: Option<&[LogLine]>, cursor: Option<i64>) -> Vec<Command> {
    let mut out = Vec::new();
    let p = palette(ui);
    // Without a minimum, short messages would make the panel narrow.
    ui.set_min_width(ui.available_width());
    let Some(lines) = lines else {
        ui.label("Loading…");
        return out;
    };
    if lines.is_empty() {
        ui.label("The trace has no log messages. Programs that use tracing record theirs as events.");
        return out;
    }
    // The last message before the pointer's time.
    let current = cursor.map(|time| lines.partition_point(|l| l.time <= time).saturating_sub(1));
    let row_h = metrics::ROW_H;
    let mut area = ScrollArea::vertical().id_salt("log").auto_shrink(false);
    let id = ui.scope_id().with("log follows");
    let previous: Option<usize> = ui.data(|d| d.get_temp(id)).flatten();
    if current != previous {
        ui.data_mut(|d| d.insert_temp(id, current));
        if let Some(i) = current {
            let middle = (ui.available_height() - row_h) / 2.0;
            area = area.vertical_scroll_offset((i as f32 * row_h - middle).max(0.0));
        }
    }
    ui.spacing_mut().item_spacing.y = 0.0;
    area.show_rows(ui, row_h, lines.len(), |ui, rows| {
        for i in rows {
            let line = &lines[i];
            let site = store.sites().get(line.site as usize);
            let message = text(store, line);
            let fill = if current == Some(i) { p.selected } else { egui::Color32::TRANSPARENT };
            let frame = egui::Frame::new().fill(fill);
            let row = frame.show(ui, |ui| {
                ui.horizontal(|ui| {
                    ui.set_min_height(row_h);
                    ui.set_width(ui.available_width());
                    ui.label(RichText::new(ticks::position(line.time, 1)).monospace().color(p.text_weak));
                    let color = match site.map_or("", |s| s.category_name.as_str()) {
                        level if level.contains("ERROR") || level == "numerics" => p.error,
                        level if level.contains("WARN") => p.warning,
                        _ => p.text,
                    };
                    ui.with_layout(egui::Layout::left_to_right(Align::Center).with_main_wrap(false), |ui| {
                        ui.add(Label::new(RichText::new(&message).color(color)).truncate().sense(Sense::click()))
                    })
                    .inner
                })
                .inner
            });
            let track = store.track(line.track).map_or("?", |t| &t.name);
            let category = site.map_or("", |s| &s.category_name);
            let response = row.inner.on_hover_text(format!("{message}\n{track}, {category}\nClick: show in Timeline"));
            if response.clicked() {
                out.extend([Command::RevealTrack(line.track.0), Command::CentreOn(line.time)]);
            }
        }
    });
    out
}
