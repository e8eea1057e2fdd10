//! Text that gives up its middle where there is no room: names of runs, tags and threads often differ at their ends only.

use crate::theme::metrics;
use egui::{Color32, FontId, Galley, Rect, Ui};

/// Of the room for letters, what the begin of a text gets.
const HEAD_SHARE: f32 = 0.4;

/// Draws one line in `rect`, centred up and down, with an ellipsis in its middle where it is too long.
pub fn text_elided(ui: &Ui, text: &str, rect: Rect, color: Color32) {
    let painter = ui.painter();
    let font = FontId::proportional(metrics::TEXT);
    let mut galley = painter.layout_no_wrap(text.to_owned(), font.clone(), color);
    if galley.size().x > rect.width() {
        galley = painter.layout_no_wrap(without_middle(&galley, rect.width() - font.size), font, color);
    }
    let at = egui::pos2(rect.left(), rect.center().y - galley.size().y / 2.0);
    painter.with_clip_rect(rect.intersect(ui.clip_rect())).galley(at, galley, color);
}

/// What of a line's letters fits into `room`, from its begin and its end.
fn without_middle(line: &Galley, room: f32) -> String {
    let glyphs = || line.rows.iter().flat_map(|row| &row.glyphs);
    let head: Vec<char> = glyphs().take_while(|g| g.max_x() <= room * HEAD_SHARE).map(|g| g.chr).collect();
    let used = glyphs().nth(head.len()).map_or(0.0, |g| g.pos.x);
    let cut = line.size().x - (room - used).max(0.0);
    let tail = glyphs().skip(head.len()).skip_while(|g| g.pos.x < cut).map(|g| g.chr);
    head.iter().copied().chain(['…']).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begin_and_end_stay() {
        let ctx = egui::Context::default();
        let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
            let line =
                |text: &str| ui.painter().layout_no_wrap(text.to_owned(), FontId::default(), Color32::PLACEHOLDER);
            let full = line("tensorboardX_summaries/both/a");
            for part in [0.3, 0.5, 0.8] {
                let room = full.size().x * part;
                let short = without_middle(&full, room);
                let (head, tail) = short.split_once('…').unwrap();
                assert!(
                    full.text().starts_with(head) && full.text().ends_with(tail) && tail.len() > head.len(),
                    "{short}"
                );
                let width = line(head).size().x + line(tail).size().x;
                assert!((room * 0.7..=room + 1.0).contains(&width), "{short}: {width} of {room}");
            }
            assert_eq!(without_middle(&full, 0.0), "…");
        });
        output.textures_delta.clear();
    }
}
