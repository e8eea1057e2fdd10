//! A line at the pointer, with its time.

use super::{FrameContext, Layer, Tags};
use crate::timeline::layout::ticks;
use egui::{Align2, Painter, Stroke, pos2};
use ui::theme::metrics;

/// The line and its label.
pub struct PointerTime;

impl Layer for PointerTime {
    fn add_tags(&self, ctx: &FrameContext<'_>, painter: &Painter, tags: &mut Tags) {
        let Some(x) = pointer_x(ctx) else { return };
        let text = ticks::position_in_view(ctx.frame.scale.time_from_x(x), &ctx.frame.scale);
        let y = ctx.areas.ruler.top() + 1.0;
        let gap = 2.0 * metrics::GAP;
        let mut sides = [(pos2(x + gap, y), Align2::LEFT_TOP), (pos2(x - gap, y), Align2::RIGHT_TOP)];
        if x > (ctx.frame.scale.left() + ctx.frame.scale.right()) / 2.0 {
            sides.reverse();
        }
        tags.add_near(painter, text, &sides, ctx.palette);
    }

    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let Some(x) = pointer_x(ctx) else { return };
        let line = Stroke::new(metrics::HAIRLINE, ctx.palette.text_weak.gamma_multiply(0.7));
        let y = ctx.areas.ruler.top()..=ctx.areas.body.bottom();
        painter.vline(painter.round_to_pixel_center(x), y, line);
    }
}

/// The x of the pointer, where it points at a time.
fn pointer_x(ctx: &FrameContext<'_>) -> Option<f32> {
    ctx.pointer.filter(|pos| ctx.areas.has_time(*pos)).map(|pos| pos.x)
}
