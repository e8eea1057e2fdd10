//! Stalls: a band where a worker ran nothing, its cause as text, an arrow from the culprit.

use super::{FrameContext, Layer, Tooltip, shapes::arrow};
use crate::timeline::{
    command::{ColorBy, Command},
    model::exact,
    raster::label_in,
};
use egui::{Color32, Painter, Pos2, Rect, Stroke, StrokeKind, pos2};
use trace_analysis::stalls::{Cause, Stall};
use trace_model::Category;
use ui::{
    theme::{Palette, metrics, mix},
    widgets::with_names,
};

/// Whether the cause is a delay by something else; otherwise this worker had no work.
fn is_lost(cause: Cause) -> bool {
    !matches!(cause, Cause::NothingReady | Cause::StepBegin | Cause::StepEnd)
}

/// The colour of a stall with this cause.
pub fn color(cause: Cause, p: &Palette) -> Color32 {
    if is_lost(cause) { p.error } else { mix(p.stripe, p.warning, 0.7) }
}

/// The bands of the stalls that are wide enough to be visible.
pub struct StallBands;

impl Layer for StallBands {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let p = ctx.palette;
        let mut mesh = egui::Mesh::default();
        let mut labels = Vec::new();
        for stall in ctx.content.stalls() {
            let Some(rect) = band(ctx, stall) else { continue };
            let (color, strength) = match ctx.state.color_by {
                ColorBy::Cause => (p.vivid_mark_of_name(stall.cause.name()), 0.6),
                _ => (color(stall.cause, p), if is_lost(stall.cause) { 0.28 } else { 0.14 }),
            };
            mesh.add_colored_rect(rect, color.gamma_multiply(strength));
            let top_edge = Rect::from_min_max(rect.min, pos2(rect.right(), rect.top() + 2.0));
            mesh.add_colored_rect(top_edge, color);
            if rect.width() >= 1.5 * metrics::LABEL_MIN_W {
                labels.push((rect, stall.cause.to_string()));
            }
        }
        painter.add(mesh);
        for (rect, text) in labels {
            label_in(painter, rect, &text, p.text);
        }
    }

    fn tooltip<'a>(&self, ctx: &'a FrameContext<'_>, pos: Pos2) -> Option<Tooltip<'a>> {
        let (stall, p) = (stall_at(ctx, pos)?, ctx.palette);
        Some(Box::new(move |ui| {
            ui.set_max_width(ui.spacing().tooltip_width);
            let text = with_names(&stall.text(ctx.store()), metrics::TEXT, p.text_strong);
            ui.add(egui::Label::new(text).wrap_mode(egui::TextWrapMode::Extend));
            ui.colored_label(p.text_weak, format!("Stall: {}, {}", stall.cause, exact(stall.dur())));
        }))
    }

    fn click(&self, ctx: &FrameContext<'_>, pos: Pos2) -> Option<Command> {
        let stall = stall_at(ctx, pos)?;
        let slice = ctx.slice_at(pos, metrics::CLICK_SLACK);
        let is_idle = slice.is_none_or(|s| ctx.store().category(&s) == Category::Wait);
        is_idle.then(|| Command::SelectStall(Box::new(stall.clone())))
    }
}

/// The arrow from the culprit to the end of the stall that is selected or under the pointer, and outlines of both.
pub struct StallCulprit;

impl Layer for StallCulprit {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let hovered = || ctx.pointer.and_then(|pos| stall_at(ctx, pos));
        let Some(stall) = ctx.state.stall.as_deref().or_else(hovered) else { return };
        let color = color(stall.cause, ctx.palette);
        let outline = |rect| painter.rect_stroke(rect, 1.0, Stroke::new(metrics::LINE, color), StrokeKind::Outside);
        let Some(rect) = ctx.work_rect(stall.track.0, &(stall.start..stall.end)) else { return };
        outline(rect);
        let culprit = stall.culprit.and_then(|id| ctx.store().slice(id));
        let Some(from) = culprit.and_then(|slice| ctx.slice_rect(&slice)) else { return };
        outline(from);
        arrow(painter, from.right_center(), rect.right_center(), color);
    }
}

/// The rectangle of a stall; `None` where it is outside the view or too narrow.
fn band(ctx: &FrameContext<'_>, stall: &Stall) -> Option<Rect> {
    let range = stall.start..stall.end;
    let rect = ctx.is_in_view(&range).then(|| ctx.work_rect(stall.track.0, &range))??;
    (rect.width() >= metrics::STALL_MIN_W).then_some(rect)
}

/// The stall whose band is at a point; of overlapping bands the shortest stall.
fn stall_at<'a>(ctx: &'a FrameContext<'_>, pos: Pos2) -> Option<&'a Stall> {
    if !ctx.areas.body.contains(pos) {
        return None;
    }
    ctx.content.stalls().iter().rev().find(|s| band(ctx, s).is_some_and(|rect| rect.contains(pos)))
}
