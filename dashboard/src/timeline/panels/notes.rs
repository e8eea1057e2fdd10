//! The editor and the list of bookmarks.

use crate::{
    config::Note,
    timeline::{command::Command, layout::ticks},
};
use egui::{Context, TextEdit, Ui};
use ui::{
    theme::{metrics, palette},
    widgets::Dialog,
};

/// Shows the editor of the bookmark at `time`; returns whether it was closed. `notes` stay sorted by time.
pub fn editor_ui(ctx: &Context, notes: &mut Vec<Note>, time: i64) -> bool {
    let idx = notes.partition_point(|n| n.time < time);
    if notes.get(idx).is_none_or(|n| n.time != time) {
        notes.insert(idx, Note { time, text: String::new() });
    }
    let (mut is_done, mut is_deleted) = (false, false);
    let dialog = Dialog::new("bookmark").title("Bookmark").width(metrics::NOTE_W).at_top().show(ctx, |ui| {
        ui.label(ticks::position(time, 1));
        let field = TextEdit::singleline(&mut notes[idx].text).hint_text("What is here?").desired_width(f32::INFINITY);
        let response = ui.add(field).accessible_name("Note");
        // Read before `request_focus` below changes it.
        let has_lost_focus = response.lost_focus();
        if ui.memory(|m| m.focused().is_none()) {
            response.request_focus();
        }
        is_done = has_lost_focus && ui.input(|i| i.key_pressed(egui::Key::Enter) || i.key_pressed(egui::Key::Escape));
        ui.horizontal_wrapped(|ui| {
            is_done |= ui.button("Done").clicked();
            is_deleted = ui.button("Delete bookmark").clicked();
        });
    });
    if is_deleted {
        notes.remove(idx);
    }
    is_done || is_deleted || dialog.is_closed
}

/// The menu with the list of bookmarks.
pub fn list_ui(ui: &mut Ui, notes: &[Note], out: &mut Vec<Command>) {
    if notes.is_empty() {
        return;
    }
    ui.menu_button(format!("Bookmarks ({})", notes.len()), |ui| {
        for note in notes {
            let text = if note.text.is_empty() { "Untitled" } else { &note.text };
            if ui.button(format!("{}  {text}", ticks::position(note.time, 1))).clicked() {
                out.push(Command::CentreOn(note.time));
                ui.close();
            }
        }
        ui.colored_label(palette(ui).text_weak, "Click a flag in the ruler to edit");
    });
}
