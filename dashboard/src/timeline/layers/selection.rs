//! The selected slice: an outline.

use super::{FrameContext, Layer};
use egui::{Painter, Stroke, StrokeKind};

/// The outline of the selected slice.
pub struct SelectedSlice;

impl Layer for SelectedSlice {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let slice = ctx.state.selected_slice(ctx.store()).filter(|s| ctx.is_in_view(&(s.start..s.end)));
        if let Some(rect) = slice.and_then(|s| ctx.slice_rect(&s)) {
            painter.rect_stroke(rect.expand(1.0), 1.0, Stroke::new(2.0, ctx.palette.highlight), StrokeKind::Outside);
        }
    }
}
