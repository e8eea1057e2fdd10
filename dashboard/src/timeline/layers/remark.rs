//! A note in the corner that the analysis does not cover everything on the screen.

use super::{FrameContext, Layer};
use crate::{far, timeline::raster::label_font};
use egui::{Align2, Painter, vec2};
use ui::{
    format,
    theme::{Palette, metrics},
};

/// The note about missing stalls or slices.
pub struct Remark;

impl Layer for Remark {
    fn paint(&mut self, ctx: &FrameContext<'_>, painter: &Painter) {
        let Some(findings) = ctx.content.findings else { return };
        if let Some(text) = far::note(findings.residency) {
            paint_remark(painter, text, ctx.palette);
        } else if let Some(ns) = findings.stalls.only_last_ns {
            let analysed = format::duration_ns(ns);
            let text = format!("Stalls shown for the last {analysed}. Zoom in to analyse other ranges.");
            paint_remark(painter, &text, ctx.palette);
        }
    }
}

fn paint_remark(painter: &Painter, text: &str, p: &Palette) {
    let room = painter.clip_rect().shrink(metrics::PAD);
    let galley = painter.layout(text.to_owned(), label_font(), p.text_strong, room.width());
    let rect = Align2::LEFT_BOTTOM.anchor_size(room.left_bottom(), galley.size());
    painter.rect_filled(rect.expand2(vec2(metrics::GAP, 1.0)), f32::from(metrics::RADIUS), p.raised);
    painter.galley(rect.min, galley, p.text_strong);
}
