//! A tile: spans of a lane that the server made from its pyramids, and that the viewer draws.

use super::key::{TILE_PX, TableSizes, is_time};
use super::message;
use crate::store::{Lane, Store};
use std::ops::Range;
use trace_model::lod::{Node, Span, SpanMerger};
use trace_model::{Site, SliceHeader};

/// Maximum number of spans of a tile: two per pixel, one at each end, and the slice that reaches in.
const MAX_SPANS: usize = 2 * TILE_PX as usize + 3;

/// Consecutive spans of a lane.
#[derive(Debug)]
pub(super) struct Tile {
    /// Ordinal of the first slice that begins in the tile.
    first: u64,
    /// The slice before `first`, if it reaches into the tile.
    previous: Option<Node>,
    /// The spans with their numbers of slices.
    spans: Vec<(Node, u32)>,
    /// Whether each span is one slice.
    pub(super) is_exact: bool,
}

impl Tile {
    /// Feeds the spans that touch a view to `merger`. `base_ordinal` is the ordinal of the lane's index 0. The slice
    /// that reaches in is fed only if `is_first`, for the first tile of the view, since another tile has it otherwise.
    pub(super) fn feed_spans(&self, base_ordinal: u64, view: &Range<i64>, is_first: bool, merger: &mut SpanMerger<'_>) {
        let mut feed = |ordinal: u64, node: &Node, count: u32| {
            let touches = node.start < view.end && (node.end > view.start || node.start >= view.start);
            if let Some(index) = ordinal.checked_sub(base_ordinal).and_then(|index| u32::try_from(index).ok())
                && touches
            {
                merger.push(index, 0, count as usize, node);
            }
        };
        if let Some(previous) = self.previous.as_ref().filter(|_| is_first) {
            feed(self.first.wrapping_sub(1), previous, 1);
        }
        let mut ordinal = self.first;
        for (node, count) in &self.spans {
            feed(ordinal, node, *count);
            ordinal += u64::from(*count);
        }
    }

    /// Returns the span with its number of slices, if the tile has just one: the overview of a lane is such a tile.
    pub(super) fn only_span(&self) -> Option<(Node, u32)> {
        (self.spans.len() == 1).then(|| self.spans[0])
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Tile>() + self.spans.capacity() * size_of::<(Node, u32)>()
    }

    /// Converts a message; `None` if the message is invalid. Ordinals of slices have to be below `end_ordinal`.
    pub(super) fn from_message(tile: &message::Tile, end_ordinal: u64, tables: TableSizes) -> Option<Tile> {
        let n = tile.gap.len();
        let lens = [tile.length.len(), tile.count.len(), tile.site.len(), tile.node.len()];
        let n_joined = tile.count.iter().filter(|count| **count > 1).count();
        let has_details = [tile.busy.len(), tile.wait.len(), tile.longest.len(), tile.top.len()] == [n_joined; 4];
        if n > MAX_SPANS || lens != [n; 4] || !has_details || (tile.before && (n == 0 || tile.first == 0)) {
            return None;
        }
        let (mut end, mut ordinal, mut i_joined) = (tile.start, tile.first, 0);
        let (mut previous, mut spans) = (None, Vec::with_capacity(n));
        for i in 0..n {
            let start = end.checked_add(tile.gap[i]).filter(|start| *start >= end || (i == 0 && tile.before))?;
            let length = i64::try_from(tile.length[i]).ok()?;
            end = start.checked_add(length).filter(|end| is_time(start) && is_time(*end))?;
            let (site, node) = tables.check(tile.site[i], tile.node[i].wrapping_sub(1));
            let count = tile.count[i];
            if count == 0 {
                return None;
            }
            let mut span = Span { count, ..Span::from_slice(SliceHeader { start, end, site, node }, 0) };
            if count > 1 {
                let duration = |list: &[u64]| i64::try_from(list[i_joined]).ok().filter(|ns| *ns <= length);
                (span.busy_ns, span.wait_ns) = (duration(&tile.busy)?, duration(&tile.wait)?);
                (span.top_ns, span.top) = (duration(&tile.longest)?, tile.top[i_joined]);
                i_joined += 1;
                let max_top_ns = if span.waits { span.wait_ns } else { span.busy_ns };
                // The top slice waits only if no slice of the span works.
                let is_contradictory = span.waits && span.busy_ns > 0;
                if is_contradictory
                    || span.busy_ns + span.wait_ns > length
                    || span.top_ns > max_top_ns
                    || span.top >= count
                {
                    return None;
                }
            }
            if i == 0 && tile.before {
                previous = Some(Node::from_span(&span, 0));
                continue;
            }
            ordinal = ordinal.checked_add(u64::from(count)).filter(|ordinal| *ordinal <= end_ordinal)?;
            spans.push((Node::from_span(&span, 0), count));
        }
        Some(Tile { first: tile.first, previous, spans, is_exact: n_joined == 0 })
    }
}

/// Returns the message with the slices of a lane that begin in a range of time, as spans of at most `pixel_ns`. Waits
/// for the disk.
pub(super) fn to_message(store: &Store, lane: &Lane, range: &Range<i64>, pixel_ns: i64) -> message::Tile {
    let mut spans = Vec::new();
    let (first, previous) = lane.spans_beginning_in(range, pixel_ns, &mut spans);
    let mut tile = message::Tile {
        first: lane.evicted() + u64::from(first),
        start: range.start,
        before: previous.is_some(),
        ..message::Tile::default()
    };
    let previous =
        previous.map(|s| Span::from_slice(SliceHeader::from_event(&s, store.sites()), first.wrapping_sub(1)));
    let mut previous_end = range.start;
    for span in previous.iter().chain(&spans) {
        tile.gap.push(span.start.saturating_sub(previous_end));
        tile.length.push(span.end.abs_diff(span.start));
        tile.count.push(span.count);
        tile.site.push(Site::new(span.site, span.waits).to_code());
        tile.node.push(span.node.wrapping_add(1));
        if span.count > 1 {
            tile.busy.push(span.busy_ns.unsigned_abs());
            tile.wait.push(span.wait_ns.unsigned_abs());
            tile.longest.push(span.top_ns.unsigned_abs());
            tile.top.push(span.top - span.first);
        }
        previous_end = span.end;
    }
    tile
}
