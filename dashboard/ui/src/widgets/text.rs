//! Text that is cut in its middle where it does not fit: names of runs, tags and threads often differ only at their
//! ends.

use super::named;
use crate::theme::{metrics, palette};
use egui::{Color32, FontId, Galley, Rect, Response, RichText, Role, Ui};

/// Share of the room that the begin of a cut text gets.
const HEAD_SHARE: f32 = 0.4;

/// Paints one line in `rect`, centred vertically, with an ellipsis in its middle where it does not fit.
pub fn text_elided(ui: &Ui, text: &str, rect: Rect, color: Color32) {
    line_of(ui, text, rect, color, without_middle);
}

/// Paints one line in `rect`, centred vertically. Where it does not fit, the part around the byte `differs_at` stays,
/// from which on it differs from adjacent lines.
pub fn text_elided_at(ui: &Ui, text: &str, rect: Rect, color: Color32, differs_at: usize) {
    let nth = text.char_indices().take_while(|(at, _)| *at < differs_at).count();
    line_of(
        ui,
        text,
        rect,
        color,
        |line, room| if nth == 0 { without_middle(line, room) } else { excerpt(line, room, nth) },
    );
}

/// Shows a heading.
pub fn heading(ui: &mut Ui, text: impl Into<RichText>) -> Response {
    let text = text.into().size(metrics::TEXT_TITLE).color(palette(ui).text_strong);
    let response = ui.label(text.clone());
    named(&response, Role::Heading, text.text());
    response
}

fn line_of(ui: &Ui, text: &str, rect: Rect, color: Color32, shorten: impl Fn(&Galley, f32) -> String) {
    let painter = ui.painter();
    let font = FontId::proportional(metrics::TEXT);
    let mut galley = painter.layout_no_wrap(text.to_owned(), font.clone(), color);
    if galley.size().x > rect.width() {
        galley = painter.layout_no_wrap(shorten(&galley, rect.width() - font.size), font, color);
    }
    let pos = egui::pos2(rect.left(), rect.center().y - galley.size().y / 2.0);
    painter.with_clip_rect(rect.intersect(ui.clip_rect())).galley(pos, galley, color);
}

/// The letters of a line that fit into `room`, from its begin and its end.
fn without_middle(line: &Galley, room: f32) -> String {
    let glyphs = || line.rows.iter().flat_map(|row| &row.glyphs);
    let head: Vec<char> = glyphs().take_while(|g| g.max_x() <= room * HEAD_SHARE).map(|g| g.chr).collect();
    let used = glyphs().nth(head.len()).map_or(0.0, |g| g.pos.x);
    let cut = line.size().x - (room - used).max(0.0);
    let tail = glyphs().skip(head.len()).skip_while(|g| g.pos.x < cut).map(|g| g.chr);
    head.iter().copied().chain(['…']).chain(tail).collect()
}

/// The letters of a line that fit into `room`: those from the `nth` on up to their share of the room, and as many
/// before them as fit.
fn excerpt(line: &Galley, room: f32, nth: usize) -> String {
    let glyphs: Vec<_> = line.rows.iter().flat_map(|row| &row.glyphs).collect();
    let nth = nth.min(glyphs.len().saturating_sub(1));
    let Some(from) = glyphs.get(nth).map(|glyph| glyph.pos.x) else { return String::new() };
    let fits = glyphs[nth..].iter().take_while(|glyph| glyph.max_x() - from <= room * (1.0 - HEAD_SHARE)).count();
    let end = nth + fits.max(1);
    let right = glyphs[end - 1].max_x();
    let start = glyphs.iter().position(|glyph| right - glyph.pos.x <= room).unwrap_or(nth).min(nth);
    let ellipsis = |is_cut: bool| is_cut.then_some('…');
    let letters = glyphs[start..end].iter().map(|glyph| glyph.chr);
    ellipsis(start > 0).into_iter().chain(letters).chain(ellipsis(end < glyphs.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Runs a test with what lays out a line.
    fn with_lines(test: impl Fn(&dyn Fn(&str) -> Arc<Galley>)) {
        let ctx = egui::Context::default();
        let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
            test(&|text| ui.painter().layout_no_wrap(text.to_owned(), FontId::default(), Color32::PLACEHOLDER));
        });
        output.textures_delta.clear();
    }

    #[test]
    fn what_differs_stays() {
        with_lines(|line| {
            let (begin, stamp) = ("sweep_a/lr0.01_momentum0.9_batch", "32/1795431346.94");
            let full = line(&format!("{begin}{stamp}"));
            for part in [0.3, 0.5, 0.8] {
                let room = full.size().x * part;
                let short = excerpt(&full, room, begin.len());
                let fits = line(&short).size().x <= room + 2.0 * FontId::default().size;
                assert!(short.contains("32/1") && fits, "{short}");
                assert!(short.starts_with('…') || begin.starts_with(&short[..5]), "{short}");
            }
            assert_eq!(excerpt(&line("ab12"), 1000.0, 2), "ab12");
            assert_eq!(excerpt(&line(""), 10.0, 3), "");
            assert_eq!(excerpt(&line("abc"), 0.0, 9), "…c");
        });
    }

    #[test]
    fn begin_and_end_stay() {
        with_lines(|line| {
            let full = line("tensorboardX_summaries/both/a");
            for part in [0.3, 0.5, 0.8] {
                let room = full.size().x * part;
                let short = without_middle(&full, room);
                let (head, tail) = short.split_once('…').unwrap();
                let is_whole = full.text().starts_with(head) && full.text().ends_with(tail);
                assert!(is_whole && tail.len() > head.len(), "{short}");
                let width = line(head).size().x + line(tail).size().x;
                assert!((room * 0.7..=room + 1.0).contains(&width), "{short}: {width} of {room}");
            }
            assert_eq!(without_middle(&full, 0.0), "…");
        });
    }
}
