//! Counters: a value over time, as a filled line.

use super::{FrameContext, Layer, Tooltip};
use crate::timeline::{
    layout::{Hit, counters::counter_columns, ticks},
    model::Row,
};
use egui::{FontId, Mesh, Painter, Pos2, Rect, pos2, vec2};
use trace_model::Category;
use ui::{
    format,
    theme::{metrics, mix},
};

pub struct Counters;

impl Layer for Counters {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let (p, frame, top) = (ctx.palette, &ctx.frame, ctx.top());
        for (row, position) in ctx.layout.iter(ctx.visible.clone()) {
            let Row::Counter { counter, bytes, .. } = *row else { continue };
            let Some(c) = ctx.store().counters().get(counter) else { continue };
            let ((t0, t1), (v0, v1)) = (c.time.as_slices(), c.value.as_slices());
            let columns = counter_columns(&[t0, t1], &[v0, v1], frame);
            let max = columns.iter().map(|c| c.2).filter(|v| v.is_finite()).fold(0.0, f64::max);
            let bottom = top + position.bottom();
            let height = position.height - metrics::GAP;
            let y = |v: f64| bottom - if max > 0.0 { (v.max(0.0) / max) as f32 * height } else { 0.0 };
            let mut mesh = Mesh::default();
            let fill = mix(p.stripe, p.accent, 0.35);
            for pair in columns.windows(2) {
                let ((x0, _, value), (x1, ..)) = (pair[0], pair[1]);
                mesh.add_colored_rect(Rect::from_min_max(pos2(x0, y(value)), pos2(x1, bottom)), fill);
                let line = y(value);
                mesh.add_colored_rect(Rect::from_min_max(pos2(x0, line - 0.5), pos2(x1, line + 0.5)), p.accent);
            }
            painter.add(mesh);
            let most = if bytes { format::bytes(max as u64) } else { format::value(max) };
            let at = pos2(frame.scale.left() + metrics::GAP, top + position.top + 1.0);
            let galley = painter.layout_no_wrap(most, FontId::proportional(metrics::TEXT_TICK), p.text);
            // The background keeps the counter's line from crossing the text.
            painter.rect_filled(Rect::from_min_size(at, galley.size()).expand2(vec2(2.0, 0.0)), 2.0, p.panel);
            painter.galley(at, galley, p.text);
        }
    }

    fn hit<'a>(&self, ctx: &'a FrameContext<'_>, at: Pos2) -> Option<Tooltip<'a>> {
        let Hit::Counter(counter) = ctx.row_at(at)? else { return None };
        let (store, time) = (ctx.store(), ctx.frame.scale.time_from_x(at.x));
        let c = store.counters().get(counter)?;
        let i = c.time.partition_point(|t| *t <= time).checked_sub(1)?;
        let (since, value) = (*c.time.get(i)?, *c.value.get(i)?);
        let bytes = store.sites().get(c.site as usize).is_some_and(|s| s.category == Category::Alloc);
        Some(Box::new(move |ui| {
            ui.label(if bytes { format::bytes(value.max(0.0) as u64) } else { format::value(value) });
            ui.label(format!("since {}", ticks::position(since, 1)));
        }))
    }
}
