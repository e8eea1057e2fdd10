//! Adjacent columns.

use egui::{Align, Layout, Rect, Ui, UiBuilder, pos2};

/// Shows columns of equal width, with their contents aligned left. The layout of `egui::Ui::columns` is justified,
/// which stretches the words of wrapped text.
pub fn columns<R>(ui: &mut Ui, n: usize, contents: impl FnOnce(&mut [Ui]) -> R) -> R {
    let n = n.max(1);
    let (area, gap) = (ui.available_rect_before_wrap(), ui.spacing().item_spacing.x);
    let width = ((area.width() - gap * (n - 1) as f32) / n as f32).max(0.0);
    let column_rect = |i: usize| {
        let left = area.left() + i as f32 * (width + gap);
        Rect::from_min_max(pos2(left, area.top()), pos2(left + width, area.bottom()))
    };
    let layout = Layout::top_down(Align::Min);
    let mut columns: Vec<Ui> = (0..n)
        .map(|i| ui.new_child(UiBuilder::new().id_salt(("column", i)).max_rect(column_rect(i)).layout(layout)))
        .collect();
    let result = contents(&mut columns);
    let bottom = columns.iter().map(|column| column.min_rect().bottom()).fold(area.top(), f32::max);
    ui.advance_cursor_after_rect(Rect::from_min_max(area.min, pos2(area.right(), bottom)));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_wraps_is_not_stretched() {
        let ctx = egui::Context::default();
        let mut spaces = Vec::new();
        let mut output = ctx.run_ui(egui::RawInput::default(), |ui| {
            ui.set_max_width(300.0);
            columns(ui, 2, |columns| {
                let text = "What this thread waited for was a value that the other one had not made by then";
                let response = columns[1].label(text);
                assert!(response.rect.width() <= 150.0 && response.rect.left() >= 150.0, "{:?}", response.rect);
                let (_, galley, _) = egui::Label::new(text).layout_in_ui(&mut columns[1]);
                assert!(galley.rows.len() > 2, "it wraps");
                for row in &galley.rows {
                    let glyphs = row.glyphs.iter().filter(|glyph| glyph.chr == ' ');
                    spaces.extend(glyphs.map(|glyph| glyph.advance_width));
                }
            });
        });
        output.textures_delta.clear();
        assert!(spaces.windows(2).all(|pair| (pair[0] - pair[1]).abs() < 0.01), "{spaces:?}");
    }
}
