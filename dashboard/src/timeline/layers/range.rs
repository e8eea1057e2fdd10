//! The selected range: a band through ruler and rows, and its length.

use super::{FrameContext, Layer, Tags};
use egui::{Align2, Painter, Rect, Stroke, pos2};
use ui::{format, theme::metrics};

/// The band of the selected range.
pub struct SelectedRange;

impl Layer for SelectedRange {
    fn add_tags(&self, ctx: &FrameContext<'_>, painter: &Painter, tags: &mut Tags) {
        let Some((range, (x0, x1))) = ctx.state.range.as_ref().zip(edges(ctx)) else { return };
        // Over the middle of the visible part of the range.
        let ruler = ctx.areas.ruler;
        let pos = pos2((x0.max(ruler.left()) + x1.min(ruler.right())) / 2.0, ruler.top() + 1.0);
        let text = format::duration_ns(range.end - range.start);
        tags.add_if_free(painter, text, &[(pos, Align2::CENTER_TOP)], ctx.palette);
    }

    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let Some((x0, x1)) = edges(ctx) else { return };
        let band = Rect::from_min_max(pos2(x0, ctx.areas.ruler.top()), pos2(x1, ctx.areas.body.bottom()));
        painter.rect_filled(band, 0.0, ctx.palette.selected.gamma_multiply(0.6));
        for x in [x0, x1] {
            painter.vline(x, band.y_range(), Stroke::new(metrics::HAIRLINE, ctx.palette.accent));
        }
    }
}

/// The range's visible edges on the screen; `None` where the range is outside the view.
fn edges(ctx: &FrameContext<'_>) -> Option<(f32, f32)> {
    let range = ctx.state.range.as_ref().filter(|range| ctx.is_in_view(range))?;
    Some(ctx.frame.edges(range.start, range.end))
}
