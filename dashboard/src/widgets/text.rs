//! Text that ends in an ellipsis where there is no room.

use crate::theme::metrics;
use egui::{Color32, FontId, Rect, Ui, text::LayoutJob};

/// Draws one line in `rect`, centred up and down, cut with an ellipsis at its right edge.
pub fn text_elided(ui: &Ui, text: &str, rect: Rect, color: Color32) {
    let mut job = LayoutJob::simple_singleline(text.to_owned(), FontId::proportional(metrics::TEXT), color);
    job.wrap = egui::text::TextWrapping::truncate_at_width(rect.width());
    let galley = ui.fonts_mut(|fonts| fonts.layout_job(job));
    let at = egui::pos2(rect.left(), rect.center().y - galley.size().y / 2.0);
    ui.painter().galley(at, galley, color);
}
