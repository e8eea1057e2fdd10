//! Everything that a frame paints, and fonts for its zoom.

use super::{camera::Camera, color::Colors};
use crate::graph::{
    layout::{BoxLayout, Picture},
    model::{ItemId, Model},
};
use egui::{Align2, Color32, FontId, Painter, Rect, Stroke, StrokeKind};
use rustc_hash::FxHashSet;
use ui::theme::{Palette, metrics};

/// Boxes or edges in view above which there are neither labels nor curves.
pub(super) const MAX_DETAIL: usize = 1_000;

/// Everything that a frame paints.
pub(crate) struct Scene<'a> {
    pub model: &'a Model,
    pub picture: &'a Picture,
    pub colors: &'a Colors<'a>,
    pub camera: Camera,
    pub view: Rect,
    pub selected: Option<ItemId>,
    pub hovered: Option<ItemId>,
    /// Highlighted items; everything else is dimmed.
    pub traced: Option<&'a FxHashSet<ItemId>>,
    /// Opacity of edges while they fade in, 0..=1.
    pub fade: f32,
    /// Returns the rect of a box, also while boxes move between two pictures.
    pub rect_of: &'a dyn Fn(&BoxLayout) -> [f32; 4],
}

impl Scene<'_> {
    pub fn palette(&self) -> &'static Palette {
        self.colors.palette
    }

    pub fn is_dimmed(&self, item: ItemId) -> bool {
        self.traced.is_some_and(|traced| !traced.contains(&item))
    }

    /// Returns a font for the zoom, in half points so that the atlas holds few sizes; `None` if illegible.
    pub fn font(&self, size: f32) -> Option<FontId> {
        let size = (size * self.camera.zoom * 2.0).round() / 2.0;
        (size >= 6.5).then(|| FontId::proportional(size.min(24.0)))
    }

    /// Returns the font of a box's name: that of [`Self::font`], or else the smallest legible one, if the box is high
    /// enough.
    pub fn name_font(&self, size: f32, rect: Rect) -> Option<FontId> {
        let smallest = FontId::proportional(metrics::TEXT_TICK);
        self.font(size).filter(|f| f.size >= smallest.size).or((rect.height() >= smallest.size).then_some(smallest))
    }
}

/// Paints text on one line, cut with an ellipsis if it does not fit.
pub(super) fn paint_text(painter: &Painter, text: &str, font: FontId, color: Color32, rect: Rect, align: Align2) {
    if rect.width() < font.size {
        return;
    }
    let mut job = egui::text::LayoutJob::simple_singleline(text.to_owned(), font, color);
    job.wrap = egui::text::TextWrapping::truncate_at_width(rect.width());
    let galley = painter.layout_job(job);
    let at = align.align_size_within_rect(galley.size(), rect).min;
    painter.galley(at, galley, color);
}

/// Paints the background of an overlay in a corner of the view.
pub(super) fn paint_overlay(painter: &Painter, scene: &Scene<'_>, rect: Rect) {
    let p = scene.palette();
    let (fill, stroke) = (p.panel.gamma_multiply(0.94), Stroke::new(metrics::HAIRLINE, p.border));
    painter.rect(rect, metrics::RADIUS, fill, stroke, StrokeKind::Inside);
}
