//! The critical paths of the steps on the screen: a line along the slices that delay the steps' ends.

use super::{FrameContext, Layer};
use egui::{Mesh, Painter, Pos2, Rect, Stroke, pos2};
use trace_analysis::critical::PathKind;
use ui::theme::metrics;

/// The paths: a thick line along slices, a thin one along stalls, and an upright one where a path changes tracks.
pub struct CriticalPaths;

impl Layer for CriticalPaths {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let (store, view, p) = (ctx.store(), ctx.frame.view, ctx.palette);
        let paths = ctx.content.findings.filter(|_| ctx.state.critical).map_or(&[][..], |f| &f.paths);
        let mut mesh = Mesh::default();
        for path in paths.iter().filter(|path| ctx.is_in_view(&path.range)) {
            let mut last_end: Option<(u32, Pos2)> = None;
            let mut last_line = Rect::NOTHING;
            let from = path.segments.partition_point(|s| s.end <= view.start);
            for segment in path.segments[from..].iter().take_while(|s| s.start < view.end) {
                let range = segment.start..segment.end;
                let slice = segment.slice.filter(|id| id.track == segment.track.0).and_then(|id| store.slice(id));
                let rect = match slice {
                    Some(slice) => ctx.rect(slice.id.track, slice.id.lane, &range),
                    None => ctx.work_rect(segment.track.0, &range),
                };
                let Some(rect) = rect else {
                    last_end = None;
                    continue;
                };
                let thickness = if matches!(segment.kind, PathKind::Stall(_)) { 1.0 } else { metrics::PATH_LINE };
                let line = Rect::from_min_max(pos2(rect.left(), rect.bottom() - thickness), rect.right_bottom());
                // Many short segments share a pixel: each pixel is drawn once.
                if !last_line.contains_rect(line) {
                    mesh.add_colored_rect(line, p.highlight);
                    last_line = line;
                }
                if let Some((_, end)) = last_end.filter(|(track, _)| *track != segment.track.0) {
                    painter.line_segment([end, pos2(end.x, rect.bottom())], Stroke::new(metrics::LINE, p.highlight));
                }
                last_end = Some((segment.track.0, rect.right_bottom()));
            }
        }
        painter.add(mesh);
    }
}
