//! A tile: spans of a lane, from the server's pyramids, to draw from here.

use super::key::{Names, TILE_PX, is_time};
use super::message;
use crate::store::{Lane, Store};
use std::ops::Range;
use trace_model::lod::{Merge, Node, Span};
use trace_model::{Site, SliceHeader};

/// Spans of a tile, at most: two a pixel, and the slice that reaches in.
const MAX_SPANS: usize = 2 * TILE_PX as usize + 3;

/// Spans of a lane that follow each other.
#[derive(Debug)]
pub(super) struct Tile {
    /// Ordinal of the first slice that begins in it.
    first: u64,
    /// The slice before that one, where it reaches in.
    before: Option<Node>,
    /// Each with its number of slices.
    spans: Vec<(Node, u32)>,
    /// Whether each span is one slice.
    pub(super) is_exact: bool,
}

impl Tile {
    /// Feeds the spans that touch a view to `merge`. `base` is the ordinal of the lane's index 0. `reaches` says whether the
    /// slice that reaches in is wanted: it belongs to the first tile of a view.
    pub(super) fn walk(&self, base: u64, view: &Range<i64>, reaches: bool, merge: &mut Merge<'_>) {
        let mut give = |ordinal: u64, node: &Node, count: u32| {
            let is_shown = node.start < view.end && (node.end > view.start || node.start >= view.start);
            if let Some(index) = ordinal.checked_sub(base).and_then(|index| u32::try_from(index).ok())
                && is_shown
            {
                merge.push(index, 0, count as usize, node);
            }
        };
        if let Some(before) = self.before.as_ref().filter(|_| reaches) {
            give(self.first.wrapping_sub(1), before, 1);
        }
        let mut ordinal = self.first;
        for (node, count) in &self.spans {
            give(ordinal, node, *count);
            ordinal += u64::from(*count);
        }
    }

    /// What it is made of; for the span of a whole lane.
    pub(super) fn only_span(&self) -> Option<(Node, u32)> {
        (self.spans.len() == 1).then(|| self.spans[0])
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Tile>() + self.spans.capacity() * size_of::<(Node, u32)>()
    }

    /// Checks a message and takes it over. Slices of the lane have ordinals below `end`, their sites and nodes are
    /// among `names`.
    pub(super) fn of_message(tile: &message::Tile, end: u64, names: Names) -> Option<Tile> {
        let n = tile.gap.len();
        let lens = [tile.length.len(), tile.count.len(), tile.site.len(), tile.node.len()];
        let several = tile.count.iter().filter(|count| **count > 1).count();
        let has_several = [tile.busy.len(), tile.wait.len(), tile.longest.len(), tile.top.len()] == [several; 4];
        if n > MAX_SPANS || lens != [n; 4] || !has_several || (tile.before && (n == 0 || tile.first == 0)) {
            return None;
        }
        let (mut at, mut ordinal, mut more) = (tile.start, tile.first, 0);
        let (mut before, mut spans) = (None, Vec::with_capacity(n));
        for i in 0..n {
            let start = at.checked_add(tile.gap[i]).filter(|start| *start >= at || (i == 0 && tile.before))?;
            let length = i64::try_from(tile.length[i]).ok()?;
            at = start.checked_add(length).filter(|end| is_time(start) && is_time(*end))?;
            let (site, node) = names.of(tile.site[i], tile.node[i].wrapping_sub(1));
            let count = tile.count[i];
            if count == 0 {
                return None;
            }
            let mut span = Span { count, ..Span::of(SliceHeader { start, end: at, site, node }, 0) };
            if count > 1 {
                let ns = |list: &[u64]| i64::try_from(list[more]).ok().filter(|ns| *ns <= length);
                (span.busy_ns, span.wait_ns) = (ns(&tile.busy)?, ns(&tile.wait)?);
                (span.top_ns, span.top) = (ns(&tile.longest)?, tile.top[more]);
                more += 1;
                let most = if span.waits { span.wait_ns } else { span.busy_ns };
                let works = span.waits && span.busy_ns > 0;
                if works || span.busy_ns + span.wait_ns > length || span.top_ns > most || span.top >= count {
                    return None;
                }
            }
            if i == 0 && tile.before {
                before = Some(Node::of_span(&span, 0));
                continue;
            }
            ordinal = ordinal.checked_add(u64::from(count)).filter(|ordinal| *ordinal <= end)?;
            spans.push((Node::of_span(&span, 0), count));
        }
        Some(Tile { first: tile.first, before, spans, is_exact: several == 0 })
    }
}

/// The slices of a lane that begin in a range of time, as spans of at most `pixel` ns. Waits for the disk.
pub(super) fn message(store: &Store, lane: &Lane, range: &Range<i64>, pixel: i64) -> message::Tile {
    let mut spans = Vec::new();
    let (first, before) = lane.begun_in(range, pixel, &mut spans);
    let mut tile = message::Tile {
        first: lane.evicted() + u64::from(first),
        start: range.start,
        before: before.is_some(),
        ..message::Tile::default()
    };
    let before = before.map(|s| Span::of(SliceHeader::of(&s, store.sites()), first.wrapping_sub(1)));
    let mut at = range.start;
    for span in before.iter().chain(&spans) {
        tile.gap.push(span.start.saturating_sub(at));
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
        at = span.end;
    }
    tile
}
