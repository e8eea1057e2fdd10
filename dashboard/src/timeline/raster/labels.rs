//! Names on slices, shortened to fit.

use egui::{Align2, Color32, FontId, Painter, Pos2, Rect, pos2};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use ui::theme::metrics;

/// Labels of a picture, at most.
const MAX_LABELS: usize = 1_000;
/// Shortened names that are cached, at most.
const MAX_CACHED: usize = 20_000;

/// A label on a slice.
pub struct Label {
    /// The slice's track.
    pub track: u32,
    pub pos: Pos2,
    /// The name, shortened to fit.
    pub text: Arc<str>,
    pub color: Color32,
}

/// The key of a shortened name: node, site, and available width in points.
type FitKey = (u32, u32, u16);

/// The labels of a picture, with a cache of shortened names.
#[derive(Default)]
pub struct Labels {
    /// The labels of this picture.
    pub all: Vec<Label>,
    /// Shortened names of earlier pictures of the same trace and scale; `None` where nothing fits.
    fits: FxHashMap<FitKey, Option<Arc<str>>>,
    /// The trace and the bits of the scale of the cached names.
    fits_source: Option<(usize, u32)>,
}

impl Labels {
    /// Removes all labels; a change of trace or scale clears the cache too.
    pub fn start(&mut self, trace_idx: usize, pixels_per_point: f32) {
        self.all.clear();
        let fits_source = Some((trace_idx, pixels_per_point.to_bits()));
        if self.fits_source != fits_source || self.fits.len() > MAX_CACHED {
            self.fits.clear();
            self.fits_source = fits_source;
        }
    }

    /// Whether more labels may be added.
    pub fn has_room(&self) -> bool {
        self.all.len() < MAX_LABELS
    }

    /// The name of a node and site, shortened to `width` points; `None` where nothing fits.
    pub fn fit(&mut self, painter: &Painter, (node, site): (u32, u32), name: &str, width: f32) -> Option<Arc<str>> {
        let entry = self.fits.entry((node, site, width as u16));
        entry.or_insert_with(|| fitted(painter, name, width.floor()).map(Into::into)).clone()
    }
}

/// The font of labels on slices.
pub fn label_font() -> FontId {
    FontId::proportional(metrics::TEXT_SMALL)
}

/// A name shortened to `max_w` points: the full name, its last part (`MatMul` of `layer1/MatMul`), or the start of the
/// last part; `None` where nothing fits.
pub fn fitted(painter: &Painter, name: &str, max_w: f32) -> Option<String> {
    let width = |text: &str| painter.layout_no_wrap(text.to_owned(), label_font(), Color32::PLACEHOLDER).size().x;
    if width(name) <= max_w {
        return Some(name.to_owned());
    }
    let leaf = name.rsplit('/').next().unwrap_or(name);
    if leaf.len() < name.len() && width(leaf) <= max_w {
        return Some(leaf.to_owned());
    }
    let galley = painter.layout_no_wrap(leaf.to_owned(), label_font(), Color32::PLACEHOLDER);
    let row = galley.rows.first()?;
    let ellipsis_width = metrics::TEXT_SMALL * 0.75;
    let n = row.glyphs.iter().take_while(|g| g.max_x() <= max_w - ellipsis_width).count();
    (n >= 2).then(|| leaf.chars().take(n).chain(['…']).collect())
}

/// Writes a name, shortened to fit, at the left of a rectangle.
pub fn label_in(painter: &Painter, rect: Rect, name: &str, color: Color32) {
    if let Some(text) = fitted(painter, name, rect.width() - 2.0 * metrics::GAP) {
        let pos = pos2(rect.left() + metrics::GAP, rect.center().y);
        painter.text(pos, Align2::LEFT_CENTER, text, label_font(), color);
    }
}
