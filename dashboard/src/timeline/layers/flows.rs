//! Arrows from the slices that caused the selected slice, and to the slices that it caused.

use super::{
    FrameContext, Layer,
    shapes::{arrow, error_bar},
};
use egui::{Painter, Pos2, pos2};
use trace_model::FlowEnd;

/// The arrows of the selected slice.
pub struct Flows;

impl Layer for Flows {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let Some(slice) = ctx.state.selected_slice(ctx.store()) else { return };
        let Some(rect) = ctx.slice_rect(&slice) else { return };
        let p = ctx.palette;
        if let Some(from) = ctx.content.predecessor.as_ref().and_then(|predecessor| ctx.slice_rect(predecessor)) {
            arrow(painter, from.right_center(), rect.left_center(), p.highlight);
        }
        for flow in ctx.content.arrows {
            let other_lane = flow.other_slice.map_or(0, |s| s.id.lane);
            let ends = (end_pos(ctx, flow.this_end, slice.id.lane), end_pos(ctx, flow.other_end, other_lane));
            let (Some(this_pos), Some(other_pos)) = ends else { continue };
            let (from, to) = if flow.leaves { (this_pos, other_pos) } else { (other_pos, this_pos) };
            arrow(painter, from, to, p.accent);
            if flow.error_ns > 0 {
                let time = flow.other_end.time;
                let (from, to) = (time.saturating_sub(flow.error_ns), time.saturating_add(flow.error_ns));
                let (x0, x1) = ctx.frame.edges(from, to);
                error_bar(painter, x0..=x1, other_pos.y, p.accent);
            }
        }
    }
}

fn end_pos(ctx: &FrameContext<'_>, end: FlowEnd, lane: u32) -> Option<Pos2> {
    let rect = ctx.rect(end.track.0, lane, &(end.time..end.time))?;
    Some(pos2(ctx.frame.scale.x_from_time(end.time), rect.center().y))
}
