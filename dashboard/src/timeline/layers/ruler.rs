//! The ruler: ticks with their times, and light lines through the rows.

use super::{FrameContext, Layer};
use crate::timeline::layout::ticks;
use egui::{FontId, Painter, Rect, Stroke, pos2};
use ui::theme::metrics;

/// The ruler. Labels under a text of [`Tags`](super::Tags) are not drawn.
pub struct Ruler;

impl Layer for Ruler {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let FrameContext { areas, frame, palette: p, .. } = ctx;
        let ruler = ticks::ruler(frame.view, &frame.scale);
        painter.rect_filled(areas.ruler, 0.0, p.panel);
        let ticks_top = areas.ruler.top();
        for tick in &ruler.ticks {
            let x = painter.round_to_pixel_center(frame.scale.x_from_time(tick.time));
            let (length, color) = if tick.has_label { (metrics::PAD, p.text_weak) } else { (metrics::GAP, p.border) };
            painter.vline(x, ticks_top..=ticks_top + length, Stroke::new(metrics::HAIRLINE, color));
            if tick.has_label {
                painter.vline(x, areas.body.y_range(), Stroke::new(metrics::HAIRLINE, p.grid));
                let text = ticks::position(tick.time, ruler.step);
                let text_pos = pos2(x + metrics::GAP, ticks_top + 2.0);
                let galley = painter.layout_no_wrap(text, FontId::proportional(metrics::TEXT_TICK), p.text_weak);
                let rect = Rect::from_min_size(text_pos, galley.size());
                // A label that is cut off would show another time.
                if !ctx.tags.covers(rect) && rect.right() <= areas.ruler.right() {
                    painter.galley(text_pos, galley, p.text_weak);
                }
            }
        }
    }
}

/// The texts over the ruler.
pub struct TagLabels;

impl Layer for TagLabels {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        ctx.tags.paint(painter, ctx.palette);
    }
}
