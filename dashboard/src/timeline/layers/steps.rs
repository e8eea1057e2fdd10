//! Steps: their labels with the step of the summaries' x axis, in the lower half of the ruler.

use super::{FrameContext, Layer};
use crate::timeline::raster::{fitted, label_font};
use egui::{Align2, Mesh, Painter, Rect, pos2};
use ui::{
    format,
    theme::{metrics, mix},
};

/// The strip of steps.
pub struct Steps;

impl Layer for Steps {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let FrameContext { areas, frame, palette: p, .. } = ctx;
        let store = ctx.store();
        let strip =
            Rect::from_min_max(pos2(areas.ruler.left(), areas.ruler.bottom() - metrics::LANE_H), areas.ruler.max);
        painter.rect_filled(strip, 0.0, p.stripe);
        let steps = store.steps();
        let mut mesh = Mesh::default();
        let mut labels = Vec::new();
        let mut i = steps.partition_point(|s| s.end <= frame.view.start);
        while let Some(step) = steps.get(i).filter(|s| s.start < frame.view.end) {
            let (x0, x1) = frame.edges(step.start, step.end);
            let next = if x1 - x0 > 2.0 {
                i + 1
            } else {
                // Steps that begin in one pixel share one mark.
                let pixel_ns = frame.scale.ns_of_px(1.0);
                steps.partition_point(|s| s.start < step.start.saturating_add(pixel_ns)).max(i + 1)
            };
            let fill = if i.is_multiple_of(2) { p.hovered } else { mix(p.hovered, p.border, 0.6) };
            mesh.add_colored_rect(Rect::from_x_y_ranges(x0..=x1, strip.y_range()), fill);
            if x1 - x0 >= metrics::LABEL_MIN_W {
                let label = store.sites().get(step.site as usize).map_or("step", |s| &s.name);
                let number = format::step(step.summary_step);
                labels.push((x0, x1, format::step_name(label, step.summary_step), number));
            }
            i = next;
        }
        painter.add(mesh);
        for (x0, x1, full, short) in labels {
            let room = x1 - x0 - 2.0 * metrics::GAP;
            let text = fitted(painter, &full, room).filter(|t| *t == full).or_else(|| fitted(painter, &short, room));
            if let Some(text) = text {
                let at = pos2(x0 + metrics::GAP, strip.center().y);
                painter.text(at, Align2::LEFT_CENTER, text, label_font(), p.text);
            }
        }
    }
}
