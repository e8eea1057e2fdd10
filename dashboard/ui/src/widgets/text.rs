//! Text that is cut in its middle where it does not fit: names of runs, tags and threads often differ only at their
//! ends.

use super::named;
use crate::theme::{metrics, palette};
use egui::{Color32, FontId, Galley, Rect, Response, RichText, Role, Ui};

/// Share of the width that the start of a cut text gets.
const HEAD_SHARE: f32 = 0.4;

/// Paints one line in `rect`, centred vertically, with an ellipsis in the middle where the text does not fit.
pub fn text_elided(ui: &Ui, text: &str, rect: Rect, color: Color32) {
    paint_line(ui, text, rect, color, elide_middle);
}

/// Paints one line in `rect`, centred vertically. Where the line does not fit, the part around the byte `differs_at`
/// stays, from which on the line differs from adjacent ones.
pub fn text_elided_at(ui: &Ui, text: &str, rect: Rect, color: Color32, differs_at: usize) {
    let char_idx = text.char_indices().take_while(|(byte, _)| *byte < differs_at).count();
    paint_line(ui, text, rect, color, |line, width| {
        if char_idx == 0 { elide_middle(line, width) } else { excerpt(line, width, char_idx) }
    });
}

/// Shows a heading.
pub fn heading(ui: &mut Ui, text: impl Into<RichText>) -> Response {
    let text = text.into().size(metrics::TEXT_TITLE).color(palette(ui).text_strong);
    let response = ui.label(text.clone());
    named(&response, Role::Heading, text.text());
    response
}

/// Paints one line, shortened where it does not fit.
fn paint_line(ui: &Ui, text: &str, rect: Rect, color: Color32, shorten: impl Fn(&Galley, f32) -> String) {
    let painter = ui.painter();
    let font = FontId::proportional(metrics::TEXT);
    let mut galley = painter.layout_no_wrap(text.to_owned(), font.clone(), color);
    if galley.size().x > rect.width() {
        galley = painter.layout_no_wrap(shorten(&galley, rect.width() - font.size), font, color);
    }
    let pos = egui::pos2(rect.left(), rect.center().y - galley.size().y / 2.0);
    painter.with_clip_rect(rect.intersect(ui.clip_rect())).galley(pos, galley, color);
}

/// The letters from the start and the end of a line that fit into `width`, with an ellipsis between them.
fn elide_middle(line: &Galley, width: f32) -> String {
    let glyphs = || line.rows.iter().flat_map(|row| &row.glyphs);
    let head: Vec<char> = glyphs().take_while(|g| g.max_x() <= width * HEAD_SHARE).map(|g| g.chr).collect();
    let head_w = glyphs().nth(head.len()).map_or(0.0, |g| g.pos.x);
    let tail_left = line.size().x - (width - head_w).max(0.0);
    let tail = glyphs().skip(head.len()).skip_while(|g| g.pos.x < tail_left).map(|g| g.chr);
    head.iter().copied().chain(['…']).chain(tail).collect()
}

/// The letters of a line that fit into `width`: those from `char_idx` on up to their share of the width, and as many
/// before them as fit.
fn excerpt(line: &Galley, width: f32, char_idx: usize) -> String {
    let glyphs: Vec<_> = line.rows.iter().flat_map(|row| &row.glyphs).collect();
    let char_idx = char_idx.min(glyphs.len().saturating_sub(1));
    let Some(from) = glyphs.get(char_idx).map(|glyph| glyph.pos.x) else { return String::new() };
    let n_fits = glyphs[char_idx..].iter().take_while(|g| g.max_x() - from <= width * (1.0 - HEAD_SHARE)).count();
    let end = char_idx + n_fits.max(1);
    let right = glyphs[end - 1].max_x();
    let start = glyphs.iter().position(|glyph| right - glyph.pos.x <= width).unwrap_or(char_idx).min(char_idx);
    let ellipsis = |is_cut: bool| is_cut.then_some('…');
    let letters = glyphs[start..end].iter().map(|glyph| glyph.chr);
    ellipsis(start > 0).into_iter().chain(letters).chain(ellipsis(end < glyphs.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Runs a test with a function that lays out a line.
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
                let short = elide_middle(&full, room);
                let (head, tail) = short.split_once('…').unwrap();
                let is_whole = full.text().starts_with(head) && full.text().ends_with(tail);
                assert!(is_whole && tail.len() > head.len(), "{short}");
                let width = line(head).size().x + line(tail).size().x;
                assert!((room * 0.7..=room + 1.0).contains(&width), "{short}: {width} of {room}");
            }
            assert_eq!(elide_middle(&full, 0.0), "…");
        });
    }
}
