//! The input of the layers in a frame: the trace, the user's state, and the positions of rows and times.

use super::tags::Tags;
use crate::{
    config::Note,
    timeline::{
        layout::{Frame, Hit, RowLayout, Scale, Sizes},
        model::{Arrow, Findings, Matches, Row, find},
        raster::Scene,
        state::State,
    },
};
use egui::{Pos2, Rect, Ui, pos2, vec2};
use std::ops::Range;
use trace_analysis::stalls::Stall;
use trace_model::{SliceRef, TrackId};
use trace_store::Store;
use ui::theme::{Palette, metrics, palette};

/// The parts of the canvas.
#[derive(Clone, Copy, Debug)]
pub struct Areas {
    /// The minimap of the entire trace, at the top.
    pub minimap: Rect,
    /// The ruler: time ticks and steps.
    pub ruler: Rect,
    /// The rows' lanes and charts, right of the track labels.
    pub body: Rect,
    /// The track labels.
    pub labels: Rect,
}

impl Areas {
    /// Divides the canvas.
    pub fn new(canvas: Rect) -> Self {
        let left = canvas.left() + metrics::TRACK_LABELS_W.min(canvas.width() * 0.4);
        let minimap = Rect::from_min_max(canvas.min, pos2(canvas.right(), canvas.top() + metrics::MINIMAP_H));
        let ruler_h = metrics::RULER_H + metrics::LANE_H;
        let ruler = Rect::from_min_size(pos2(left, minimap.bottom() + 1.0), vec2(canvas.right() - left, ruler_h));
        let top = ruler.bottom() + metrics::GAP;
        let body = Rect::from_min_max(pos2(left, top), canvas.max.max(pos2(left, top)));
        let labels = Rect::from_min_max(pos2(canvas.left(), top), body.left_bottom());
        Self { minimap, ruler, body, labels }
    }

    /// The ruler and the rows, where x is a time.
    pub fn timed(&self) -> Rect {
        Rect::from_min_max(self.ruler.min, self.body.max)
    }

    /// Whether a point has a time: in the ruler or the rows.
    pub fn has_time(&self, pos: Pos2) -> bool {
        self.body.contains(pos) || self.ruler.contains(pos)
    }
}

/// The trace that a canvas shows, with its findings, arrows and bookmarks.
pub struct Content<'a> {
    pub trace_idx: usize,
    pub store: &'a Store,
    /// From the trace's start to its end; a live trace ends now.
    pub trace_range: &'a Range<i64>,
    /// The latest results of the analysis, which may be of an earlier view or version of the trace.
    pub findings: Option<&'a Findings>,
    /// Whether slices that do not match the search are dimmed.
    pub dims_others: bool,
    /// The rectangle of the panel, with toolbar and details.
    pub panel: Rect,
    /// The slice that made the selected slice ready.
    pub predecessor: Option<SliceRef>,
    /// The arrows from and to the selected slice.
    pub arrows: &'a [Arrow],
    pub notes: Vec<Note>,
}

impl Content<'_> {
    /// The stalls on the screen, longest first.
    pub fn stalls(&self) -> &[Stall] {
        self.findings.map_or(&[], |f| &f.stalls.top)
    }

    /// The slices that match the search; `None` without a search.
    fn matches(&self) -> Option<&Matches> {
        self.findings.map(|f| &*f.matches).filter(|_| self.dims_others)
    }
}

/// The input of every layer in a frame.
pub struct FrameContext<'a> {
    pub content: &'a Content<'a>,
    /// The user's view, selection and choices.
    pub state: &'a State,
    pub layout: &'a RowLayout,
    /// Indices of the rows on the screen.
    pub visible_rows: Range<usize>,
    pub areas: Areas,
    /// Times and row sizes in points.
    pub frame: Frame,
    pub palette: &'static Palette,
    /// The position of the pointer, unless it drags.
    pub pointer: Option<Pos2>,
    pub tags: Tags,
}

impl<'a> FrameContext<'a> {
    /// The context of a frame, without the pointer.
    pub fn new(ui: &Ui, content: &'a Content<'a>, state: &'a State, layout: &'a RowLayout, areas: Areas) -> Self {
        let view = state.eased.view(ui.input(|i| i.time));
        let frame = Frame {
            view,
            scale: Scale::new(view, areas.body.left(), areas.body.width()),
            pixels_per_point: ui.pixels_per_point(),
            sizes: sizes(ui),
        };
        let visible_rows = layout.visible_rows(state.scroll, state.scroll + areas.body.height());
        let (palette, tags) = (palette(ui), Tags::default());
        Self { content, state, layout, visible_rows, areas, frame, palette, pointer: None, tags }
    }

    pub fn store(&self) -> &'a Store {
        self.content.store
    }

    /// The input of the picture of the visible rows.
    pub fn scene(&self) -> Scene<'a> {
        let (store, layout, palette) = (self.content.store, self.layout, self.palette);
        Scene { store, layout, matches: self.content.matches(), palette }
    }

    /// The screen y of the top of all rows.
    pub fn top(&self) -> f32 {
        self.areas.body.top() - self.state.scroll
    }

    /// Whether there are more rows than fit.
    pub fn is_scrollable(&self) -> bool {
        self.layout.height() > self.areas.body.height()
    }

    /// Whether a time range touches the view.
    pub fn is_in_view(&self, range: &Range<i64>) -> bool {
        range.end > self.frame.view.start && range.start < self.frame.view.end
    }

    /// The lane or counter at a point.
    pub fn row_at(&self, pos: Pos2) -> Option<Hit> {
        self.layout.hit(pos.y - self.top()).filter(|_| self.areas.body.contains(pos))
    }

    /// The slice at a point, or else the nearest one at most `slack_px` points away.
    pub fn slice_at(&self, pos: Pos2, slack_px: f32) -> Option<SliceRef> {
        let Hit::Lane { track, lane } = self.row_at(pos)? else { return None };
        let scale = &self.frame.scale;
        find::slice_at(self.store(), track, lane, scale.time_from_x(pos.x), scale.ns_of_px(slack_px))
    }

    /// The rectangle of a time range in a lane; a range outside the view becomes a pixel at the edge.
    pub fn rect(&self, track: u32, lane: u32, range: &Range<i64>) -> Option<Rect> {
        let band = self.layout.lane_band(TrackId(track), lane)?;
        let (x0, x1) = self.frame.edges(range.start, range.end);
        let y = self.top() + band.top;
        Some(Rect::from_min_max(pos2(x0, y), pos2(x1, y + band.height - 1.0)))
    }

    /// The rectangle of a time range in the outermost lane of a track's work.
    pub fn work_rect(&self, track: u32, range: &Range<i64>) -> Option<Rect> {
        let (Row::Track { work_lane, .. }, _) = self.layout.track_row(TrackId(track))? else { return None };
        self.rect(track, *work_lane, range)
    }

    pub fn slice_rect(&self, slice: &SliceRef) -> Option<Rect> {
        self.rect(slice.id.track, slice.id.lane, &(slice.start..slice.end))
    }
}

/// The sizes of rows, at the density of the controls.
pub fn sizes(ui: &Ui) -> Sizes {
    let density = ui.spacing().interact_size.y / metrics::ROW_H;
    Sizes {
        lane_h: (metrics::LANE_H * density).round(),
        heading_h: (metrics::ROW_H * density).round(),
        counter_h: (metrics::COUNTER_H * density).round(),
        gap: metrics::GAP,
    }
}
