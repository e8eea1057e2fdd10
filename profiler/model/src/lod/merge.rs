//! A level-of-detail query: joins nodes and slices of a lane while they fit into a pixel.

use super::node::{LEAF, LEVELS, Node, Nodes, rank};
use super::span::Span;
use crate::columns::Columns;
use crate::slice::SliceHeader;
use std::ops::Range;

/// The highest level at which a query may read all slices of a too wide node without reading the nodes below.
const RUN_LEVEL: usize = 2;

/// Slices per node of `level`.
const fn width(level: usize) -> usize {
    LEAF << (2 * level)
}

/// The nodes and slices of a segment, as a query reads them.
pub trait SliceSource {
    /// Number of slices.
    fn n_slices(&self) -> usize;
    /// The nodes of a level; the last may cover fewer slices than the others.
    fn nodes(&self, level: usize) -> Nodes<'_>;
    /// Passes the slices of a range to `visit`. Returns false, and passes none, if they are not in memory as columns.
    fn visit_columns(&mut self, range: Range<usize>, visit: impl FnOnce(Columns<'_>)) -> bool;
    /// Passes the slices of a range within a leaf to `visit`. Returns false, and passes none, if they are not in
    /// memory.
    fn visit_leaf(&mut self, range: Range<usize>, visit: impl FnOnce(Columns<'_>)) -> bool;
}

/// Feeds the slices `range` of a segment to `merger`, as the largest nodes that fit into a pixel. `base` is the index in
/// the lane of the segment's first slice.
pub fn feed_spans(segment: &mut impl SliceSource, base: u32, range: Range<usize>, merger: &mut SpanMerger<'_>) {
    let len = segment.n_slices();
    let mut i = range.start;
    // The level to try next: one higher where a node of that level begins, one lower if a node is too wide.
    let mut level = LEVELS - 1;
    while i < range.end {
        let step = width(level);
        let node_end = (i + step).min(len);
        // Most of the tried nodes are too wide, so first only the width is read.
        let is_complete = i.is_multiple_of(step) && node_end <= range.end;
        let node_ns = if is_complete { segment.nodes(level).width_ns(i / step) } else { None };
        if node_ns.is_some_and(|ns| ns <= merger.pixel)
            && let Some(node) = segment.nodes(level).get(i / step)
        {
            merger.push(base, i, node_end - i, &node);
            i = node_end;
        } else if let Some(node_ns) = node_ns.filter(|_| (1..=RUN_LEVEL).contains(&level))
            // The node's leaves are on average wider than a pixel, so checking them one by one would gain little.
            && node_ns / (step / LEAF) as i64 > merger.pixel
            && segment.visit_columns(i..node_end, |slices| merger.push_slices(base + i as u32, &slices))
        {
            i = node_end;
        } else if level > 0 {
            level -= 1;
            continue;
        } else {
            let leaf_end = (i / LEAF * LEAF + LEAF).min(range.end);
            let is_in_memory = segment.visit_leaf(i..leaf_end, |slices| merger.push_slices(base + i as u32, &slices));
            if !is_in_memory && let Some(leaf) = segment.nodes(0).get(i / LEAF) {
                let first = i / LEAF * LEAF;
                merger.push(base, first, (first + LEAF).min(len) - first, &leaf);
            }
            i = leaf_end;
        }
        while level + 1 < LEVELS && i.is_multiple_of(width(level + 1)) {
            level += 1;
        }
    }
}

/// Width of a pixel in a view of `px` pixels, ns.
#[must_use]
pub fn pixel_ns(view: &Range<i64>, px: usize) -> i64 {
    let px = i64::try_from(px.max(1)).unwrap_or(i64::MAX);
    let view_ns = view.end.saturating_sub(view.start);
    (view_ns / px + i64::from(view_ns % px != 0)).max(1)
}

/// Appends to `out` the spans, for pixels of `pixel` ns, of the nodes and slices that `walk` feeds to its argument.
pub fn collect_spans(pixel: i64, out: &mut Vec<Span>, feed: impl FnOnce(&mut SpanMerger<'_>)) {
    let mut merger = SpanMerger { pixel: pixel.max(1), pending: None, rank: 0, out };
    feed(&mut merger);
    merger.flush();
}

/// Joins consecutive nodes and slices while they fit into a pixel.
pub struct SpanMerger<'a> {
    pixel: i64,
    pending: Option<Span>,
    /// Rank of `top` of the pending span.
    rank: i64,
    out: &'a mut Vec<Span>,
}

impl SpanMerger<'_> {
    /// Width of a pixel, ns.
    #[inline]
    pub fn pixel(&self) -> i64 {
        self.pixel
    }

    /// Appends a node of `count` slices; the first has the index `base + first` in the lane.
    #[inline]
    pub fn push(&mut self, base: u32, first: usize, count: usize, node: &Node) {
        if let Some(pending) = &mut self.pending
            && node.end - pending.start <= self.pixel
        {
            pending.end = node.end;
            pending.count += count as u32;
            pending.busy_ns += node.busy;
            pending.wait_ns += node.wait;
            let rank = rank(node.longest, node.site);
            if rank > self.rank {
                (pending.top, pending.site, pending.node) = (base + node.top, node.site.row(), node.node);
                self.rank = rank;
            }
            return;
        }
        self.flush();
        self.rank = rank(node.longest, node.site);
        self.pending = Some(Span {
            start: node.start,
            end: node.end,
            first: base + first as u32,
            count: count as u32,
            busy_ns: node.busy,
            wait_ns: node.wait,
            top_ns: node.longest,
            top: base + node.top,
            site: node.site.row(),
            waits: node.site.waits(),
            node: node.node,
        });
    }

    /// Appends slices; the first has the index `first_idx` in the lane.
    #[inline]
    fn push_slices(&mut self, first_idx: u32, slices: &Columns<'_>) {
        let Columns { start, end, site, node } = *slices;
        let n = start.len().min(end.len()).min(site.len()).min(node.len());
        let (start, end, site, node) = (&start[..n], &end[..n], &site[..n], &node[..n]);
        let mut i = 0;
        while i < n {
            if let Some(pending) = &mut self.pending {
                let (begin, limit) = (i, pending.start.saturating_add(self.pixel));
                let (mut total, mut wait, mut highest, mut top) = (0, 0, self.rank, n);
                while i < n && end[i] <= limit {
                    let dur = end[i] - start[i];
                    total += dur;
                    wait += dur & site[i].mask();
                    // Branchless: which slice is the longest cannot be predicted.
                    let rank = rank(dur, site[i]);
                    let is_higher = rank > highest;
                    highest = std::hint::select_unpredictable(is_higher, rank, highest);
                    top = std::hint::select_unpredictable(is_higher, i, top);
                    i += 1;
                }
                if i > begin {
                    pending.end = end[i - 1];
                    pending.count += (i - begin) as u32;
                    pending.busy_ns += total - wait;
                    pending.wait_ns += wait;
                }
                if top < n {
                    (pending.top, pending.site, pending.node) = (first_idx + top as u32, site[top].row(), node[top]);
                    self.rank = highest;
                }
                if i == n {
                    return;
                }
            }
            self.flush();
            let slice = SliceHeader { start: start[i], end: end[i], site: site[i], node: node[i] };
            self.rank = rank(slice.end - slice.start, slice.site);
            self.pending = Some(Span::from_slice(slice, first_idx + i as u32));
            i += 1;
        }
    }

    #[inline]
    fn flush(&mut self) {
        if let Some(span) = self.pending.take() {
            self.out.push(Span { top_ns: self.rank & i64::MAX, waits: self.rank < 0, ..span });
        }
    }
}
