//! Bookmarks on the trace's time, with words: flags in the ruler, an editor, a list. They are kept between sessions.

use super::{input::Areas, layout::Frame, state::Command, tags::Tags, ticks, viewport::Scale};
use crate::{
    config::Note,
    theme::{Palette, metrics, palette},
    widgets::Dialog,
};
use egui::{Align2, Context, Painter, Pos2, Shape, Stroke, TextEdit, Ui, pos2};

/// Letters of a note that stand beside its flag, at most.
const MAX_SHOWN: usize = 40;

/// Puts the words of the notes beside their flags.
pub fn tag(tags: &mut Tags, painter: &Painter, areas: &Areas, notes: &[Note], frame: &Frame, p: &Palette) {
    let in_view = |n: &&Note| (frame.view.start..frame.view.end).contains(&n.time) && !n.text.is_empty();
    for note in notes.iter().filter(in_view) {
        let text = note.text.chars().take(MAX_SHOWN).collect();
        let at = pos2(frame.scale.x_from_time(note.time) + metrics::FLAG + 2.0 * metrics::GAP, areas.ruler.top() + 1.0);
        tags.put(painter, text, &[(at, Align2::LEFT_TOP)], p);
    }
}

/// Draws the flags with their lines.
pub fn paint(painter: &Painter, areas: &Areas, notes: &[Note], frame: &Frame, p: &Palette) {
    let in_view = |n: &&Note| (frame.view.start..frame.view.end).contains(&n.time);
    for note in notes.iter().filter(in_view) {
        let x = frame.scale.x_from_time(note.time);
        let top = areas.ruler.top();
        painter.vline(x, top..=areas.body.bottom(), Stroke::new(metrics::HAIRLINE, p.accent));
        let flag = vec![pos2(x, top), pos2(x + metrics::FLAG, top + metrics::FLAG / 2.0), pos2(x, top + metrics::FLAG)];
        painter.add(Shape::convex_polygon(flag, p.accent, Stroke::NONE));
    }
}

/// The note whose flag is under the pointer.
pub fn under(pos: Pos2, areas: &Areas, notes: &[Note], scale: &Scale) -> Option<i64> {
    if !areas.ruler.contains(pos) || pos.y > areas.ruler.top() + metrics::FLAG + metrics::GAP {
        return None;
    }
    let is_near = |n: &&Note| {
        let x = scale.x_from_time(n.time);
        (x - metrics::GAP..=x + metrics::FLAG + metrics::GAP).contains(&pos.x)
    };
    notes.iter().find(is_near).map(|n| n.time)
}

/// The editor of the bookmark at `time`; whether it was closed. Bookmarks stay in order of time.
pub fn editor_ui(ctx: &Context, notes: &mut Vec<Note>, time: i64) -> bool {
    let at = notes.partition_point(|n| n.time < time);
    if notes.get(at).is_none_or(|n| n.time != time) {
        notes.insert(at, Note { time, text: String::new() });
    }
    let (mut is_done, mut is_deleted) = (false, false);
    let shown = Dialog::new("bookmark").title("Bookmark").width(metrics::NOTE_W).at_top().show(ctx, |ui| {
        ui.label(ticks::position(time, 1));
        let field = TextEdit::singleline(&mut notes[at].text).hint_text("What is here?").desired_width(f32::INFINITY);
        let response = ui.add(field).accessible_name("Note");
        // Before the field gets the keyboard back.
        let left = response.lost_focus();
        if ui.memory(|m| m.focused().is_none()) {
            response.request_focus();
        }
        is_done = left && ui.input(|i| i.key_pressed(egui::Key::Enter) || i.key_pressed(egui::Key::Escape));
        ui.horizontal_wrapped(|ui| {
            is_done |= ui.button("Done").clicked();
            is_deleted = ui.button("Delete bookmark").clicked();
        });
    });
    if is_deleted {
        notes.remove(at);
    }
    is_done || is_deleted || shown.is_closed
}

/// The list of bookmarks in the bar.
pub fn list_ui(ui: &mut Ui, notes: &[Note], out: &mut Vec<Command>) {
    if notes.is_empty() {
        return;
    }
    ui.menu_button(format!("Bookmarks ({})", notes.len()), |ui| {
        for note in notes {
            let text = if note.text.is_empty() { "no words" } else { &note.text };
            if ui.button(format!("{}  {text}", ticks::position(note.time, 1))).clicked() {
                out.push(Command::CentreOn(note.time));
                ui.close();
            }
        }
        ui.colored_label(palette(ui).text_weak, "Click a flag in the ruler to edit");
    });
}
