//! A histogram of durations.

use crate::timeline::model::{DurationHistogram, durations::BARS};
use egui::{Align2, FontId, Mesh, Rect, Sense, Ui, pos2, vec2};
use ui::{
    format,
    theme::{metrics, palette},
    widgets::describe,
};

/// Shows the durations of a name as bars, each of which stands for twice the duration of the bar before.
pub fn histogram_ui(ui: &mut Ui, histogram: &DurationHistogram) {
    let p = palette(ui);
    let height = 4.0 * metrics::ROW_H;
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
    let is_used = |i: &usize| histogram.bars[*i] > 0;
    let (Some(first), Some(last)) = ((0..BARS).find(is_used), (0..BARS).rfind(is_used)) else { return };
    let max_count = histogram.bars.iter().max().copied().unwrap_or(0).max(1);
    let (short, long) = (format::duration_ns(histogram.min_ns), format::duration_ns(histogram.max_ns));
    describe(&response, || {
        let n = format::count_of(histogram.count, "slice");
        format!("Durations of {}: {n} from {short} to {long}", histogram.name)
    });
    let painter = ui.painter_at(rect);
    painter.rect_filled(rect, f32::from(metrics::RADIUS), p.canvas);
    let inner = Rect::from_min_max(rect.min, pos2(rect.right(), rect.bottom() - metrics::AXIS_LABEL_H));
    let bar_w = inner.width() / (last - first + 1) as f32;
    let mut mesh = Mesh::default();
    for (column, i) in (first..=last).enumerate() {
        let left = inner.left() + column as f32 * bar_w;
        let bar_height = histogram.bars[i] as f32 / max_count as f32 * (inner.height() - metrics::GAP);
        let bar_height = if histogram.bars[i] > 0 { bar_height.max(1.0) } else { 0.0 };
        let bar =
            Rect::from_min_max(pos2(left + 1.0, inner.bottom() - bar_height), pos2(left + bar_w - 1.0, inner.bottom()));
        mesh.add_colored_rect(bar, p.mark_of_name(&histogram.name));
    }
    painter.add(mesh);
    let font = FontId::proportional(metrics::TEXT_TICK);
    let start = format::duration_ns(1_i64 << first);
    let end = format::duration_ns(1_i64 << (last + 1).min(62));
    painter.text(rect.left_bottom() + vec2(metrics::GAP, -2.0), Align2::LEFT_BOTTOM, start, font.clone(), p.text_weak);
    painter.text(rect.right_bottom() - vec2(metrics::GAP, 2.0), Align2::RIGHT_BOTTOM, end, font, p.text_weak);
    if let Some(pos) = response.hover_pos().filter(|pos| inner.contains(*pos)) {
        let i = first + (((pos.x - inner.left()) / bar_w) as usize).min(last - first);
        let (from, to) = (format::duration_ns(1_i64 << i), format::duration_ns(1_i64 << (i + 1).min(62)));
        let n = format::count_of(u64::from(histogram.bars[i]), "slice");
        response.on_hover_text_at_pointer(format!("{from} to {to}: {n}"));
    }
}
