//! Names on slices, shortened to fit.

use egui::{Align2, Color32, FontId, Painter, Pos2, Rect, pos2};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use ui::theme::metrics;

/// Labels of a picture, at most.
const MAX_LABELS: usize = 1_000;
/// Shortened names that are cached, at most.
const MAX_FITS: usize = 20_000;

/// A label on a slice.
pub struct Label {
    /// The slice's track.
    pub track: u32,
    pub pos: Pos2,
    /// The name, shortened to fit.
    pub text: Arc<str>,
    pub color: Color32,
}

/// The key of a shortened name: node, site, and room in points.
type Fit = (u32, u32, u16);

#[derive(Default)]
pub struct Labels {
    /// The labels of this picture.
    pub all: Vec<Label>,
    /// Shortened names of earlier pictures of the same trace and scale; `None` where nothing fits.
    fits: FxHashMap<Fit, Option<Arc<str>>>,
    fits_of: Option<(usize, u32)>,
}

impl Labels {
    /// Removes all labels; a change of trace or scale clears the cache too.
    pub fn start(&mut self, trace_idx: usize, pixels_per_point: f32) {
        self.all.clear();
        let fits_of = Some((trace_idx, pixels_per_point.to_bits()));
        if self.fits_of != fits_of || self.fits.len() > MAX_FITS {
            self.fits.clear();
            self.fits_of = fits_of;
        }
    }

    /// Whether more labels may be added.
    pub fn have_room(&self) -> bool {
        self.all.len() < MAX_LABELS
    }

    /// The name of a node and site, shortened to `room` points.
    pub fn fit(&mut self, painter: &Painter, (node, site): (u32, u32), full: &str, room: f32) -> Option<Arc<str>> {
        let entry = self.fits.entry((node, site, room as u16));
        entry.or_insert_with(|| fitted(painter, full, room.floor()).map(Into::into)).clone()
    }
}

/// The font of labels on slices.
pub fn label_font() -> FontId {
    FontId::proportional(metrics::TEXT_SMALL)
}

/// A name shortened to `room` points: the full name, its last part (`MatMul` of `layer1/MatMul`), or the begin of that.
pub fn fitted(painter: &Painter, full: &str, room: f32) -> Option<String> {
    let width = |text: &str| painter.layout_no_wrap(text.to_owned(), label_font(), Color32::PLACEHOLDER).size().x;
    if width(full) <= room {
        return Some(full.to_owned());
    }
    let leaf = full.rsplit('/').next().unwrap_or(full);
    if leaf.len() < full.len() && width(leaf) <= room {
        return Some(leaf.to_owned());
    }
    let galley = painter.layout_no_wrap(leaf.to_owned(), label_font(), Color32::PLACEHOLDER);
    let row = galley.rows.first()?;
    let ellipsis_width = metrics::TEXT_SMALL * 0.75;
    let n = row.glyphs.iter().take_while(|g| g.max_x() <= room - ellipsis_width).count();
    (n >= 2).then(|| leaf.chars().take(n).chain(['…']).collect())
}

/// Writes a name, shortened to fit, at the left of a rectangle.
pub fn label_in(painter: &Painter, rect: Rect, name: &str, color: Color32) {
    if let Some(text) = fitted(painter, name, rect.width() - 2.0 * metrics::GAP) {
        let pos = pos2(rect.left() + metrics::GAP, rect.center().y);
        painter.text(pos, Align2::LEFT_CENTER, text, label_font(), color);
    }
}
