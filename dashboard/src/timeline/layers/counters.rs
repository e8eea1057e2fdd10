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
        for (row, position) in ctx.layout.iter(ctx.visible_rows.clone()) {
            let Row::Counter { counter, bytes, .. } = *row else { continue };
            let Some(series) = ctx.store().counters().get(counter) else { continue };
            let ((t0, t1), (v0, v1)) = (series.time.as_slices(), series.value.as_slices());
            let columns = counter_columns(&[t0, t1], &[v0, v1], frame);
            let max = columns.iter().map(|c| c.max).filter(|v| v.is_finite()).fold(0.0, f64::max);
            let bottom = top + position.bottom();
            let height = position.height - metrics::GAP;
            let y_from_value = |v: f64| bottom - if max > 0.0 { (v.max(0.0) / max) as f32 * height } else { 0.0 };
            let mut mesh = Mesh::default();
            let fill = mix(p.stripe, p.accent, 0.35);
            for pair in columns.windows(2) {
                let (x0, x1, y) = (pair[0].x, pair[1].x, y_from_value(pair[0].max));
                mesh.add_colored_rect(Rect::from_min_max(pos2(x0, y), pos2(x1, bottom)), fill);
                mesh.add_colored_rect(Rect::from_min_max(pos2(x0, y - 0.5), pos2(x1, y + 0.5)), p.accent);
            }
            painter.add(mesh);
            let max_text = if bytes { format::bytes(max as u64) } else { format::value(max) };
            let text_pos = pos2(frame.scale.left() + metrics::GAP, top + position.top + 1.0);
            let galley = painter.layout_no_wrap(max_text, FontId::proportional(metrics::TEXT_TICK), p.text);
            // The background keeps the counter's line from crossing the text.
            painter.rect_filled(Rect::from_min_size(text_pos, galley.size()).expand2(vec2(2.0, 0.0)), 2.0, p.panel);
            painter.galley(text_pos, galley, p.text);
        }
    }

    fn tooltip<'a>(&self, ctx: &'a FrameContext<'_>, pos: Pos2) -> Option<Tooltip<'a>> {
        let Hit::Counter(counter) = ctx.row_at(pos)? else { return None };
        let (store, time) = (ctx.store(), ctx.frame.scale.time_from_x(pos.x));
        let series = store.counters().get(counter)?;
        let i = series.time.partition_point(|t| *t <= time).checked_sub(1)?;
        let (since, value) = (*series.time.get(i)?, *series.value.get(i)?);
        let bytes = store.sites().get(series.site as usize).is_some_and(|s| s.category == Category::Alloc);
        Some(Box::new(move |ui| {
            ui.label(if bytes { format::bytes(value.max(0.0) as u64) } else { format::value(value) });
            ui.label(format!("since {}", ticks::position(since, 1)));
        }))
    }
}
