//! The legend of the colours, in a corner of the view.

use super::scene::{Scene, paint_overlay};
use egui::{FontId, Rect, Stroke, StrokeKind, Ui, Vec2, pos2, vec2};
use ui::theme::metrics;

/// Entries of the legend, at most.
const MAX_LEGEND: usize = 10;

/// Returns the rect of a legend of this size, in the lower left corner of the view.
pub(crate) fn legend_rect(view: Rect, legend_size: Vec2) -> Rect {
    Rect::from_min_size(view.left_bottom() + vec2(metrics::PAD, -metrics::PAD - legend_size.y), legend_size)
}

/// Paints the legend in the lower left corner; returns its size.
pub(crate) fn legend_ui(ui: &Ui, scene: &Scene<'_>) -> Vec2 {
    let entries = scene.colors.legend(MAX_LEGEND);
    let (p, row) = (scene.palette(), metrics::TEXT_SMALL + metrics::GAP);
    let painter = ui.painter().with_clip_rect(scene.view);
    let font = FontId::proportional(metrics::TEXT_SMALL);
    let galleys: Vec<_> = entries
        .into_iter()
        .map(|(color, text)| (color, painter.layout_no_wrap(text, font.clone(), p.text_weak)))
        .collect();
    let width = galleys.iter().map(|(_, text)| text.size().x).fold(0.0, f32::max);
    let size = vec2(width + metrics::SWATCH + 3.0 * metrics::PAD, row * galleys.len() as f32 + 2.0 * metrics::GAP);
    let frame = legend_rect(scene.view, size);
    paint_overlay(&painter, scene, frame);
    let mut at = frame.min + vec2(metrics::PAD, metrics::GAP);
    for (color, text) in galleys {
        let swatch = Rect::from_min_size(at + vec2(0.0, (row - metrics::SWATCH) / 2.0), Vec2::splat(metrics::SWATCH));
        painter.rect(swatch, 2, color, Stroke::new(metrics::HAIRLINE, p.border), StrokeKind::Inside);
        let y = at.y + (row - text.size().y) / 2.0;
        painter.galley(pos2(swatch.right() + metrics::PAD, y), text, p.text_weak);
        at.y += row;
    }
    size
}
