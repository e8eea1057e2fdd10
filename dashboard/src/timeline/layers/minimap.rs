//! The minimap: the mean utilisation of all tracks over the entire trace, and the part of the trace in view.

use super::{Content, FrameContext, Layer};
use crate::timeline::{
    command::Command,
    layout::{Scale, Viewport},
};
use egui::{Mesh, Painter, Pos2, Rect, Stroke, pos2};
use std::ops::Range;
use trace_store::Store;
use ui::theme::{metrics, mix};

/// The minimap: busy time at the bottom, above it waits in grey.
#[derive(Default)]
pub struct Minimap {
    key: Option<DensityKey>,
    densities: Vec<Density>,
}

/// The inputs of the densities.
struct DensityKey {
    trace_range: Range<i64>,
    n_columns: usize,
    /// The pager's version, if slices were missing; the densities are recomputed once other slices have arrived.
    incomplete_at: Option<u64>,
}

impl Minimap {
    /// Recomputes the densities if the trace grew by a column or missing slices arrived.
    fn update(&mut self, content: &Content<'_>, width: f32) {
        let n_columns = (width / 2.0).max(1.0) as usize;
        // The end of a live trace moves in every frame: small moves change no column.
        let trace_range = content.trace_range;
        let column_ns = (trace_range.end - trace_range.start) / n_columns as i64 + 1;
        // The pager's version changes with every slice that arrives.
        let pager = content.store.pager();
        let pager_version = pager.map_or(0, |pager| pager.version());
        let is_current = self.key.as_ref().is_some_and(|key| {
            let end_moved_by = (key.trace_range.end - trace_range.end).abs();
            let is_same =
                key.n_columns == n_columns && key.trace_range.start == trace_range.start && end_moved_by < column_ns;
            is_same && key.incomplete_at.is_none_or(|version| version == pager_version)
        });
        if !is_current {
            self.densities = densities(content.store, trace_range, n_columns);
            let is_incomplete = pager.is_some_and(|pager| pager.has_requests());
            self.key = Some(DensityKey {
                trace_range: trace_range.clone(),
                n_columns,
                incomplete_at: is_incomplete.then_some(pager_version),
            });
        }
    }
}

impl Layer for Minimap {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let (area, view, p) = (ctx.areas.minimap, ctx.frame.view, ctx.palette);
        self.update(ctx.content, area.width());
        painter.rect_filled(area, 0.0, p.canvas);
        let mut mesh = Mesh::default();
        let column_w = area.width() / self.densities.len().max(1) as f32;
        for (i, density) in self.densities.iter().enumerate() {
            let x = area.left() + i as f32 * column_w;
            let mut bottom = area.bottom();
            for (share, color) in
                [(density.busy, mix(p.canvas, p.accent, 0.65)), (density.waiting, mix(p.canvas, p.text_weak, 0.2))]
            {
                if share > 0.0 {
                    // At least a pixel, so that every share is visible.
                    let top = (bottom - (share * (area.height() - 2.0)).max(1.0)).max(area.top());
                    mesh.add_colored_rect(Rect::from_min_max(pos2(x, top), pos2(x + column_w, bottom)), color);
                    bottom = top;
                }
            }
        }
        painter.add(mesh);
        let scale = scale(area, ctx.content.trace_range);
        let x_from_time = |time| scale.x_from_time(time).clamp(area.left(), area.right());
        let (left, right) = (x_from_time(view.start), x_from_time(view.end));
        let window = Rect::from_x_y_ranges(left..=right.max(left + 2.0), area.y_range());
        let shade = mix(p.canvas, p.text_weak, 0.5).gamma_multiply(0.35);
        painter.rect_filled(Rect::from_x_y_ranges(area.left()..=window.left(), area.y_range()), 0.0, shade);
        painter.rect_filled(Rect::from_x_y_ranges(window.right()..=area.right(), area.y_range()), 0.0, shade);
        let line = Stroke::new(metrics::HAIRLINE, p.text_weak);
        painter.rect_stroke(window, 0.0, line, egui::StrokeKind::Inside);
    }

    fn click(&self, ctx: &FrameContext<'_>, pos: Pos2) -> Option<Command> {
        ctx.areas.minimap.contains(pos).then(|| centre_on(ctx, pos.x))
    }
}

/// The command that moves the view to the pointer's time in the minimap.
pub fn centre_on(ctx: &FrameContext<'_>, x: f32) -> Command {
    Command::CentreOn(scale(ctx.areas.minimap, ctx.content.trace_range).time_from_x(x))
}

fn scale(area: Rect, trace_range: &Range<i64>) -> Scale {
    Scale::new(Viewport::of_trace(trace_range), area.left(), area.width())
}

/// The utilisation of the tracks in a column, as shares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Density {
    busy: f32,
    waiting: f32,
}

/// The utilisation of the tracks in each of `n_columns` columns of the trace, by the slices of their outermost lanes.
fn densities(store: &Store, trace: &Range<i64>, n_columns: usize) -> Vec<Density> {
    let view = Viewport::of_trace(trace);
    let scale = Scale::new(view, 0.0, n_columns as f32);
    let mut out = vec![Density::default(); n_columns];
    let mut spans = Vec::new();
    let n_tracks = store.tracks().iter().filter(|t| t.n_slices() > 0).count().max(1) as f32;
    for lane in store.tracks().iter().filter_map(|t| t.lanes.iter().find(|l| !l.is_empty())) {
        spans.clear();
        lane.spans(view.range(), n_columns, &mut spans);
        for span in &spans {
            let (x0, x1) = (scale.x_from_time(span.start), scale.x_from_time(span.end));
            let share = |ns: i64| ns as f32 / (span.end - span.start).max(1) as f32 / n_tracks;
            let (busy, waiting) = (share(span.busy_ns), share(span.wait_ns));
            let first = x0.max(0.0) as usize;
            for (column, sum) in out.iter_mut().enumerate().take(x1.max(0.0) as usize + 1).skip(first) {
                let covered = (x1.min(column as f32 + 1.0) - x0.max(column as f32)).max(0.0);
                sum.busy += busy * covered;
                sum.waiting += waiting * covered;
            }
        }
    }
    out
}
