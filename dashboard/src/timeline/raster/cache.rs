//! Slices of a few pixels, cached as pixels while the view moves.
//!
//! A lane of short slices has about as many bars as pixels. Drawing all of them in every frame of a moving view would
//! take most of the frame's time, so each is drawn once: as columns of pixels on a grid that is fixed in time while the
//! zoom stays the same. A moving view adds the columns that come into sight. The columns are in a ring, with two rows
//! of pixels for each lane: one is stretched over the lane's height, the other over the lane's middle, where waits are
//! drawn. Wider slices stay spans, for rectangles and labels.
//!
//! Another zoom needs another grid. While the zoom changes from frame to frame and there is much to draw, a column is
//! several physical pixels wide.

use super::{
    scene::Scene,
    span_buffer::SourceVersion,
    strips::{BarStyle, MAX_NARROW_PX, full_rect, middle_rect},
};
use crate::timeline::{
    command::ColorBy,
    layout::{
        Bar, Frame, LaneBand, LaneSpans, RowPosition, Slices,
        bars::{self, bars},
    },
    model::Row,
};
use egui::{Color32, ColorImage, Context, Mesh, Painter, Rect, Shape, TextureHandle, TextureOptions, pos2};
use std::ops::Range;
use trace_model::TrackId;
use trace_model::lod::Span;
use ui::theme::UNTINTED;

/// The columns of the view divided by those that are drawn ahead in the direction of a move.
const AHEAD_DIVISOR: i64 = 8;

/// Columns of all lanes that one frame draws while the zoom changes, at most,
const MAX_COLUMNS_IN_MOTION: usize = 30_000;
/// as long as a column is no wider than this many physical pixels.
const MAX_COLUMN_PX: usize = 4;

/// Greatest index of a column, which floats represent exactly; no view shows such a time and the origin at once.
const MAX_COLUMN: f64 = (1_u64 << 52) as f64;

/// The inputs of the pixels, except the start of the view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RasterKey {
    pub source: SourceVersion,
    pub rows: Range<usize>,
    /// Length of the view, ns.
    pub view_ns: i64,
    /// Width of the view, physical pixels.
    pub view_px: usize,
    pub color_by: ColorBy,
    pub palette: usize,
    /// Whether slices are dimmed, as others are highlighted.
    pub dim: bool,
    /// Whether the zoom differs from the previous frame's.
    pub in_motion: bool,
}

/// A lane with its wide slices.
struct CachedLane {
    row: usize,
    /// Index among the row's visible lanes.
    row_lane: usize,
    track: TrackId,
    lane: u32,
    /// Spans that are too wide for the pixels, from left to right.
    wide: Vec<Span>,
}

/// The cached pixels and wide slices.
#[derive(Default)]
pub struct RasterCache {
    key: Option<RasterKey>,
    /// Start of column 0, ns.
    origin: i64,
    columns_per_ns: f64,
    /// Width of a column, physical pixels; 0 before the first frame.
    column_px: usize,
    /// The columns that are in the ring.
    drawn: Range<i64>,
    /// The columns of the view.
    view: Range<i64>,
    /// The length of the ring, columns.
    capacity: usize,
    /// Two rows of the ring for each lane: over its height, and over its middle.
    pixels: Vec<Color32>,
    lanes: Vec<CachedLane>,
    texture: Option<TextureHandle>,
    /// Scratch memory for the spans of one lane.
    spans: Vec<Span>,
}

impl RasterCache {
    /// Draws the columns of the view that are missing, with colours by `style`. Returns whether a texture of at most
    /// `max_side` pixels per side can hold them.
    pub fn show(
        &mut self,
        ctx: &Context,
        max_side: usize,
        key: RasterKey,
        scene: &Scene<'_>,
        frame: &Frame,
        style: impl Fn(&Slices) -> BarStyle,
    ) -> bool {
        let is_current = self.key.as_ref() == Some(&key);
        if !is_current {
            self.lanes = lanes(scene, key.rows.clone());
            let column_px = (self.lanes.len() * key.view_px).div_ceil(MAX_COLUMNS_IN_MOTION);
            self.column_px = if key.in_motion { column_px.clamp(1, MAX_COLUMN_PX) } else { 1 };
        }
        let width = key.view_px.div_ceil(self.column_px);
        let capacity = (width + width / 2).min(max_side);
        if capacity < width || 2 * self.lanes.len() > max_side {
            *self = Self::default();
            return false;
        }
        let width = width as i64;
        self.view = self.column(frame.view.start)..self.column(frame.view.start) + width;
        let ahead = (width / AHEAD_DIVISOR).min(capacity as i64 - width);
        if is_current && self.drawn.start < self.view.end && self.view.start < self.drawn.end {
            let Range { start, end } = self.drawn.clone();
            if self.view.end > end {
                self.draw(ctx, end..self.view.end + ahead, scene, style);
            } else if self.view.start < start {
                self.draw(ctx, self.view.start - ahead..start, scene, style);
            }
        } else {
            self.origin = frame.view.start;
            self.columns_per_ns = key.view_px as f64 / self.column_px as f64 / key.view_ns.max(1) as f64;
            (self.capacity, self.drawn, self.view) = (capacity, 0..0, 0..width);
            self.lanes.iter_mut().for_each(|lane| lane.wide.clear());
            self.pixels.clear();
            self.pixels.resize(2 * self.lanes.len() * capacity, Color32::TRANSPARENT);
            self.draw(ctx, 0..width, scene, style);
        }
        // A change of zoom that did not coarsen the columns needs no second drawing.
        self.key = Some(RasterKey { in_motion: self.is_coarse(), ..key });
        true
    }

    fn px_per_ns(&self) -> f64 {
        self.columns_per_ns * self.column_px as f64
    }

    /// Whether columns are wider than a physical pixel, so that another frame must follow.
    pub fn is_coarse(&self) -> bool {
        self.column_px > 1
    }

    /// The column with the start nearest to a time.
    fn column(&self, time: i64) -> i64 {
        // Rounds halves up on both sides of the origin. This is `floor`, for which not every processor has an
        // instruction.
        let column = time.saturating_sub(self.origin) as f64 * self.columns_per_ns + 0.5;
        let column = column.clamp(-MAX_COLUMN, MAX_COLUMN);
        let truncated = column as i64;
        truncated - i64::from((truncated as f64) > column)
    }

    /// Draws columns next to those in the ring, and drops columns at the other end for which the ring has no room.
    fn draw(&mut self, ctx: &Context, columns: Range<i64>, scene: &Scene<'_>, style: impl Fn(&Slices) -> BarStyle) {
        let capacity = self.capacity as i64;
        let goes_right = columns.start == self.drawn.end;
        self.drawn = match goes_right {
            true => self.drawn.start.max(columns.end - capacity)..columns.end,
            false => columns.start..self.drawn.end.min(columns.start + capacity),
        };
        let (origin, columns_per_ns) = (self.origin, self.columns_per_ns);
        let px_per_ns = self.px_per_ns();
        let time_from_column = |column: i64| origin.saturating_add((column as f64 / columns_per_ns).round() as i64);
        // A span that ends half a column before the first may round into it.
        let read = columns.start - 1..columns.end;
        let window = time_from_column(read.start)..time_from_column(read.end);
        let n_read = (read.end - read.start) as usize;
        let first_slot = slot(columns.start, self.capacity);
        let (mut lanes, mut spans) = (std::mem::take(&mut self.lanes), std::mem::take(&mut self.spans));
        for (lane_idx, lane) in lanes.iter_mut().enumerate() {
            self.clear(lane_idx, &columns);
            spans.clear();
            if let Some(stored) = scene.store.track(lane.track).and_then(|t| t.lanes.get(lane.lane as usize)) {
                stored.spans(window.clone(), n_read, &mut spans);
            }
            for span in spans.iter().filter(|span| !is_wide(span, px_per_ns)) {
                let style = style(&bars::bar_slices(span, lane.track, lane.lane, 1.0 / columns_per_ns));
                self.fill(lane_idx, span, &columns, first_slot, style);
            }
            self.add_wide(&mut lane.wide, &spans, goes_right);
        }
        (self.lanes, self.spans) = (lanes, spans);
        self.upload(ctx, &columns);
    }

    /// Adds the new wide spans of `spans` to `cached`, and drops those that no column shows.
    fn add_wide(&self, cached: &mut Vec<Span>, spans: &[Span], goes_right: bool) {
        let wide = spans.iter().filter(|span| is_wide(span, self.px_per_ns())).copied();
        if goes_right {
            let last = cached.last().map(|span| span.first);
            cached.extend(wide.filter(|span| last.is_none_or(|last| last < span.first)));
        } else {
            let first = cached.first().map(|span| span.first);
            cached.splice(0..0, wide.filter(|span| first.is_none_or(|first| span.first < first)));
        }
        cached.retain(|span| self.column(span.end) >= self.drawn.start && self.column(span.start) <= self.drawn.end);
    }

    /// Makes a lane's pixels in these columns transparent.
    fn clear(&mut self, lane_idx: usize, columns: &Range<i64>) {
        for part in ring_parts(columns, self.capacity) {
            for row in [2 * lane_idx, 2 * lane_idx + 1] {
                self.pixels[row * self.capacity..][part.clone()].fill(Color32::TRANSPARENT);
            }
        }
    }

    /// Draws the part of a narrow span that is in `columns`, at least a pixel. `first_slot`: the first column's slot
    /// in the ring.
    fn fill(&mut self, lane_idx: usize, span: &Span, columns: &Range<i64>, first_slot: usize, style: BarStyle) {
        let from = self.column(span.start);
        let to = self.column(span.end).max(from + 1);
        let (full, middle) = self.pixels[2 * lane_idx * self.capacity..].split_at_mut(self.capacity);
        for column in from.max(columns.start)..to.min(columns.end) {
            let offset = first_slot + (column - columns.start) as usize;
            let slot = if offset < self.capacity { offset } else { offset - self.capacity };
            if let Some(color) = style.full {
                full[slot] = color;
            }
            // Work covers an earlier wait of the pixel.
            if let Some(color) = style.middle.or(style.full) {
                middle[slot] = color;
            }
        }
    }

    /// Uploads the columns to the texture; all of them, if there is no texture of this size.
    fn upload(&mut self, ctx: &Context, columns: &Range<i64>) {
        let (capacity, n_rows) = (self.capacity, 2 * self.lanes.len());
        if n_rows == 0 {
            self.texture = None;
            return;
        }
        match self.texture.as_mut().filter(|texture| texture.size() == [capacity, n_rows]) {
            Some(texture) => {
                for part in ring_parts(columns, capacity) {
                    let rows = self.pixels.chunks_exact(capacity).flat_map(|row| &row[part.clone()]).copied();
                    let image = ColorImage::new([part.len(), n_rows], rows.collect());
                    texture.set_partial([part.start, 0], image, TextureOptions::NEAREST);
                }
            }
            None => {
                let image = ColorImage::new([capacity, n_rows], self.pixels.clone());
                self.texture = Some(ctx.load_texture("slices", image, TextureOptions::NEAREST));
            }
        }
    }

    /// The wide slices in the view.
    pub fn wide_bars(&self, positions: &[RowPosition], frame: &Frame) -> impl Iterator<Item = Bar> {
        let view = frame.view.range();
        let lanes = self.lanes.iter().map(move |CachedLane { row, row_lane, track, lane, wide }| {
            let first = wide.partition_point(|span| span.end <= view.start);
            let last = wide.partition_point(|span| span.start < view.end).max(first);
            LaneSpans { row: *row, row_lane: *row_lane, track: *track, lane: *lane, spans: &wide[first..last] }
        });
        bars(lanes, positions, frame)
    }

    /// Paints the pixels. `on_screen` moves a lane to its position on the screen.
    pub fn paint(
        &self,
        painter: &Painter,
        positions: &[RowPosition],
        frame: &Frame,
        on_screen: impl Fn(LaneBand) -> LaneBand,
    ) {
        let Some(texture) = &self.texture else { return };
        let mut mesh = Mesh::with_texture(texture.id());
        let [capacity, n_rows] = texture.size().map(|n| n as f32);
        let column_w = self.column_px as f32 / frame.pixels_per_point;
        let x_from_column = |column: i64| frame.scale.left() + (column - self.view.start) as f32 * column_w;
        for (lane_idx, cached) in self.lanes.iter().enumerate() {
            let lane = on_screen(positions[cached.row].lane(cached.row_lane));
            let mut from = self.view.start;
            for part in ring_parts(&self.view, self.capacity) {
                let to = from + part.len() as i64;
                let (x0, x1) = (x_from_column(from), x_from_column(to));
                for (row, rect) in (2 * lane_idx..).zip([full_rect(lane, x0, x1), middle_rect(lane, x0, x1)]) {
                    let (v0, v1) = (row as f32 / n_rows, (row + 1) as f32 / n_rows);
                    let (u0, u1) = (part.start as f32 / capacity, part.end as f32 / capacity);
                    mesh.add_rect_with_uv(rect, Rect::from_min_max(pos2(u0, v0), pos2(u1, v1)), UNTINTED);
                }
                from = to;
            }
        }
        painter.add(Shape::mesh(mesh));
    }
}

/// The lanes of rows, without spans.
fn lanes(scene: &Scene<'_>, rows: Range<usize>) -> Vec<CachedLane> {
    let mut out = Vec::new();
    for row in rows {
        let Row::Track { track, lanes, .. } = &scene.layout.rows.list[row] else { continue };
        let to_cached = |(row_lane, lane): (usize, &u32)| CachedLane {
            row,
            row_lane,
            track: *track,
            lane: *lane,
            wide: Vec::new(),
        };
        out.extend(lanes.iter().enumerate().map(to_cached));
    }
    out
}

/// Whether a span is too wide for the pixels.
fn is_wide(span: &Span, px_per_ns: f64) -> bool {
    (span.end - span.start) as f64 * px_per_ns > f64::from(MAX_NARROW_PX)
}

/// The slot of a column in a ring.
fn slot(column: i64, capacity: usize) -> usize {
    column.rem_euclid(capacity as i64) as usize
}

/// The slots of columns in a ring: one range, or two around the ring's end.
fn ring_parts(columns: &Range<i64>, capacity: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let n = (columns.end - columns.start).max(0) as usize;
    let start = if n == 0 { 0 } else { slot(columns.start, capacity) };
    let first = n.min(capacity - start);
    [start..start + first, 0..n - first].into_iter().filter(|part| !part.is_empty())
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
