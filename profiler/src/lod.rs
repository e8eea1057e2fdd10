//! Level of detail: what a lane shows at a pixel width, as a pure function.
//!
//! Contract of [`spans`] for a half-open view of `V` ns on `px` pixels, with a pixel of `p = max(1, ceil(V / px))` ns:
//!
//! * Every slice that touches the view (see [`Lane::touching`]) is in exactly one span, and no other is: the
//!   `count`s add up to their number, and `busy_ns` to the sum of their durations. Durations are whole, not
//!   cut at the view's edges; the painter clips.
//! * A slice longer than `p` is a span of its own (`count == 1`).
//! * A span of several slices reaches from the first one's start to the last one's end, and that is at most `p`.
//! * Spans come in order and do not overlap. There are at most `2 * px + 2`.
//! * `top` is the longest slice of the span, the first of these on a tie, `site` and `node` are its; `first` and `top`
//!   are indices of the lane as it is now.
//! * An empty or reversed view gives nothing; `px == 0` counts as 1.
//!
//! How: a pyramid over the slices' order (not over time, so that bursts and silence cost the same): 16 slices
//! to a node, then four nodes to a node; 48 bytes each, 4 bytes per slice (28 and 2.4 in a sealed trace, mostly). A query walks the view from left to
//! right and takes the largest complete node that begins here and fits into a pixel; only where a node is wider than a
//! pixel it looks inside. That visits a few nodes per pixel whatever the number of slices.
//!
//! A query never waits for the disk. Where the slices themselves are on disk only ([`crate::seal`]) it shows the lowest
//! nodes, of 16 slices, whole: such a span may be wider than a pixel, and at the view's edges it brings slices that only
//! its neighbours touch. `count` and `busy_ns` are what the span's own slices add up to, as ever. What is missing is
//! noted as a wish, `load_wished` reads it, and the next query is exact.

use crate::store::Lane;
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// What a lane shows in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start of its first slice, ns from the origin.
    pub start: i64,
    /// End of its last slice (not included).
    pub end: i64,
    /// Index of its first slice in the lane.
    pub first: u32,
    /// Number of its slices, which follow each other.
    pub count: u32,
    /// Sum of their durations.
    pub busy_ns: i64,
    /// Duration of the longest.
    pub longest_ns: i64,
    /// Index of the longest.
    pub top: u32,
    /// The longest one's row of the sites.
    pub site: u32,
    /// The longest one's row of the nodes, or `u32::MAX`.
    pub node: u32,
}

/// Slices per node of the lowest level.
pub(crate) const LEAF: usize = 16;
/// Nodes per node of the level above.
const FAN: usize = 4;
/// 16 * 4^5 = 16,384: the highest level has one node per segment.
pub(crate) const LEVELS: usize = 6;
/// The highest level whose slices are looked at without asking the nodes below, where a query is that near.
const RUN_LEVEL: usize = 2;
const _: () = assert!(LEAF * FAN.pow(LEVELS as u32 - 1) == crate::store::SEGMENT);

/// What drawing needs of a slice.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Brief {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) site: u32,
    pub(crate) node: u32,
}

/// Several slices that follow each other.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Node {
    pub(crate) start: i64,
    pub(crate) end: i64,
    busy: i64,
    /// Duration of `top`.
    longest: i64,
    /// Index in the segment of the longest slice.
    top: u32,
    site: u32,
    node: u32,
    zero: u32,
}

impl Node {
    /// As a span of a lane has it; `first` is the index from which `top` counts.
    pub(crate) fn of_span(span: &Span, first: u32) -> Node {
        let Span { start, end, busy_ns: busy, longest_ns: longest, site, node, .. } = *span;
        Node { start, end, busy, longest, top: span.top - first, site, node, zero: 0 }
    }

    /// Duration of the longest slice.
    pub(crate) fn longest(&self) -> i64 {
        self.longest
    }

    /// Takes in what follows.
    fn join(&mut self, next: &Node) {
        self.end = next.end;
        self.busy += next.busy;
        if next.longest > self.longest {
            (self.longest, self.top, self.site, self.node) = (next.longest, next.top, next.site, next.node);
        }
    }
}

/// A node of a segment that is shorter than 2^32 ns, as a sealed trace has it: times from the segment's start.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Narrow {
    start: u32,
    end: u32,
    busy: u32,
    longest: u32,
    top: u32,
    site: u32,
    node: u32,
}

impl Narrow {
    /// `None` where a time is too long.
    pub(crate) fn of(node: &Node, base: i64) -> Option<Narrow> {
        let time = |ns: i64| u32::try_from(ns).ok();
        let (start, end) = (time(node.start.checked_sub(base)?)?, time(node.end.checked_sub(base)?)?);
        let (busy, longest) = (time(node.busy)?, time(node.longest)?);
        Some(Narrow { start, end, busy, longest, top: node.top, site: node.site, node: node.node })
    }

    #[inline]
    fn wide(&self, base: i64) -> Node {
        let Narrow { start, end, busy, longest, top, site, node } = *self;
        let [start, end, busy, longest] = [start, end, busy, longest].map(i64::from);
        // Of a damaged file the base may be any number.
        let (start, end) = (base.wrapping_add(start), base.wrapping_add(end));
        Node { start, end, busy, longest, top, site, node, zero: 0 }
    }
}

/// The nodes of a level of a segment, in either form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Nodes<'a> {
    Wide(&'a [Node]),
    /// With the segment's start.
    Narrow(&'a [Narrow], i64),
}

impl Nodes<'_> {
    #[inline]
    pub(crate) fn get(&self, i: usize) -> Option<Node> {
        match self {
            Nodes::Wide(nodes) => nodes.get(i).copied(),
            Nodes::Narrow(nodes, base) => nodes.get(i).map(|node| node.wide(*base)),
        }
    }

    pub(crate) fn partition_point(&self, before: impl Fn(&Node) -> bool) -> usize {
        match self {
            Nodes::Wide(nodes) => nodes.partition_point(before),
            Nodes::Narrow(nodes, base) => nodes.partition_point(|node| before(&node.wide(*base))),
        }
    }
}

/// The levels over the slices of one segment.
#[derive(Debug, Default)]
pub(crate) struct Pyramid {
    levels: [Vec<Node>; LEVELS],
}

impl Pyramid {
    /// Takes in the next [`LEAF`] slices; fewer, but not none, only as the last ones.
    pub(crate) fn push(&mut self, slices: &Columns<'_>) {
        let (busy, longest, top) = busy_and_longest(slices.start, slices.end);
        let (start, end) = (slices.start[0], slices.end[slices.end.len() - 1]);
        let (site, node) = (slices.site[top], slices.node[top]);
        let top = (self.levels[0].len() * LEAF + top) as u32;
        self.levels[0].push(Node { start, end, busy, longest, top, site, node, zero: 0 });
        for level in 1..LEVELS {
            let below = &self.levels[level - 1];
            if !below.len().is_multiple_of(FAN) {
                break;
            }
            let node = joined(&below[below.len() - FAN..]);
            self.levels[level].extend(node);
        }
    }

    /// Adds the last node of each level, over what does not fill it: for a segment that is complete.
    pub(crate) fn close(&mut self) {
        for level in 1..LEVELS {
            let rest = &self.levels[level - 1][self.levels[level].len() * FAN..];
            let node = joined(rest);
            self.levels[level].extend(node);
        }
    }

    /// The nodes of a level, the lowest first.
    pub(crate) fn level(&self, level: usize) -> &[Node] {
        &self.levels[level]
    }

    pub(crate) fn bytes(&self) -> usize {
        self.levels.iter().map(|l| l.capacity() * size_of::<Node>()).sum()
    }
}

fn joined(nodes: &[Node]) -> Option<Node> {
    let (first, rest) = nodes.split_first()?;
    let mut node = *first;
    rest.iter().for_each(|next| node.join(next));
    Some(node)
}

/// Nodes of each level of a closed segment of `n` slices.
pub(crate) fn level_lens(n: usize) -> [usize; LEVELS] {
    let mut lens = [n.div_ceil(LEAF); LEVELS];
    for level in 1..LEVELS {
        lens[level] = lens[level - 1].div_ceil(FAN);
    }
    lens
}

/// Slices per node of `level`.
const fn width(level: usize) -> usize {
    LEAF << (2 * level)
}

/// A segment as a query sees it.
pub(crate) trait Slices {
    /// Number of slices.
    fn len(&self) -> usize;
    /// A node of a level; the last may cover fewer slices than the others.
    fn node(&self, level: usize, i: usize) -> Option<Node>;
    /// Gives the slices of a range to `see`; false, and none, where they do not lie side by side in memory.
    fn side_by_side(&mut self, range: Range<usize>, see: impl FnOnce(Columns<'_>)) -> bool;
    /// Gives the slices of a range within a leaf to `see`; false, and none, where they are not in memory.
    fn leaf(&mut self, range: Range<usize>, see: impl FnOnce(Columns<'_>)) -> bool;
}

/// What drawing needs of neighbouring slices, a structure of arrays of the same length: what a query reads of most slices is
/// when they begin and end.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub(crate) start: &'a [i64],
    pub(crate) end: &'a [i64],
    pub(crate) site: &'a [u32],
    pub(crate) node: &'a [u32],
}

/// Slices of a leaf, of which others keep no columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaf {
    start: [i64; LEAF],
    end: [i64; LEAF],
    site: [u32; LEAF],
    node: [u32; LEAF],
    n: usize,
}

impl Leaf {
    /// Up to [`LEAF`] slices; `None` where one is not to be had.
    pub(crate) fn of(slices: impl Iterator<Item = Option<Brief>>) -> Option<Leaf> {
        let mut leaf = Leaf::default();
        for slice in slices.take(LEAF) {
            leaf.push(slice?);
        }
        Some(leaf)
    }

    /// Adds a slice, of which there is room for [`LEAF`]; true if it was the last one.
    pub(crate) fn push(&mut self, slice: Brief) -> bool {
        let (i, Brief { start, end, site, node }) = (self.n, slice);
        (self.start[i], self.end[i], self.site[i], self.node[i]) = (start, end, site, node);
        self.n += 1;
        self.n == LEAF
    }

    /// Gives its slices to a pyramid, if it has some.
    pub(crate) fn end(&mut self, pyramid: &mut Pyramid) {
        if self.n > 0 {
            pyramid.push(&self.columns());
            self.n = 0;
        }
    }

    pub(crate) fn columns(&self) -> Columns<'_> {
        let n = self.n;
        Columns { start: &self.start[..n], end: &self.end[..n], site: &self.site[..n], node: &self.node[..n] }
    }
}

/// See the module's notes. Appends to `out`.
pub fn spans(lane: &Lane, view: &Range<i64>, px: usize, out: &mut Vec<Span>) {
    let px = i64::try_from(px.max(1)).unwrap_or(i64::MAX);
    let view_ns = view.end.saturating_sub(view.start);
    let pixel = (view_ns / px + i64::from(view_ns % px != 0)).max(1);
    merged(pixel, out, |merge| lane.walk(view, merge));
}

/// Feeds the slices `range` of a segment to `merge`, in the largest pieces that fit into a pixel. `base` is the index in
/// the lane of the segment's first slice.
pub(crate) fn walk(segment: &mut impl Slices, base: u32, range: Range<usize>, merge: &mut Merge<'_>) {
    let len = segment.len();
    let mut i = range.start;
    // The level to try next: goes up where a node of the level above begins, and down where a node is too wide.
    let mut level = LEVELS - 1;
    while i < range.end {
        let step = width(level);
        let to = (i + step).min(len);
        let node = if i.is_multiple_of(step) && to <= range.end { segment.node(level, i / step) } else { None };
        if let Some(node) = &node
            && node.end - node.start <= merge.pixel
        {
            merge.push(base, i, to - i, node);
            i = to;
        } else if let Some(node) = node.filter(|_| (1..=RUN_LEVEL).contains(&level))
            // No more than LEAF slices a pixel, and on average its leaves are too wide: they need not be asked one by one.
            && (node.end - node.start) / (step / LEAF) as i64 > merge.pixel
            && segment.side_by_side(i..to, |slices| merge.slices(base + i as u32, &slices))
        {
            i = to;
        } else if level > 0 {
            level -= 1;
            continue;
        } else {
            let to = (i / LEAF * LEAF + LEAF).min(range.end);
            let is_there = segment.leaf(i..to, |slices| merge.slices(base + i as u32, &slices));
            if !is_there && let Some(leaf) = segment.node(0, i / LEAF) {
                let first = i / LEAF * LEAF;
                merge.push(base, first, (first + LEAF).min(len) - first, &leaf);
            }
            i = to;
        }
        while level + 1 < LEVELS && i.is_multiple_of(width(level + 1)) {
            level += 1;
        }
    }
}

/// Feeds what `walk` has of a lane to a merge with pixels of `pixel` ns; appends the spans to `out`.
pub(crate) fn merged(pixel: i64, out: &mut Vec<Span>, walk: impl FnOnce(&mut Merge<'_>)) {
    let mut merge = Merge { pixel: pixel.max(1), pending: None, longest: 0, out };
    walk(&mut merge);
    merge.flush();
}

/// Joins neighbours while they fit into a pixel.
pub(crate) struct Merge<'a> {
    pixel: i64,
    pending: Option<Span>,
    /// Duration of the pending span's top.
    longest: i64,
    out: &'a mut Vec<Span>,
}

impl Merge<'_> {
    /// Of one pixel, ns.
    pub(crate) fn pixel(&self) -> i64 {
        self.pixel
    }

    /// `count` slices that follow each other, the first of which is the lane's `base + first`.
    #[inline]
    pub(crate) fn push(&mut self, base: u32, first: usize, count: usize, node: &Node) {
        if let Some(pending) = &mut self.pending
            && node.end - pending.start <= self.pixel
        {
            pending.end = node.end;
            pending.count += count as u32;
            pending.busy_ns += node.busy;
            if node.longest > self.longest {
                (pending.top, pending.site, pending.node) = (base + node.top, node.site, node.node);
                self.longest = node.longest;
            }
            return;
        }
        self.flush();
        self.longest = node.longest;
        self.pending = Some(Span {
            start: node.start,
            end: node.end,
            first: base + first as u32,
            count: count as u32,
            busy_ns: node.busy,
            longest_ns: node.longest,
            top: base + node.top,
            site: node.site,
            node: node.node,
        });
    }

    /// Slices that follow, the first of which is the lane's `index`.
    #[inline]
    fn slices(&mut self, index: u32, slices: &Columns<'_>) {
        let Columns { start, end, site, node } = *slices;
        let n = start.len().min(end.len()).min(site.len()).min(node.len());
        let (start, end, site, node) = (&start[..n], &end[..n], &site[..n], &node[..n]);
        let mut i = 0;
        while i < n {
            if let Some(pending) = &mut self.pending {
                let (from, until) = (i, pending.start.saturating_add(self.pixel));
                let (mut busy, mut longest, mut top) = (0, self.longest, n);
                while i < n && end[i] <= until {
                    let dur = end[i] - start[i];
                    busy += dur;
                    // Chosen without a jump: which of a few slices is the longest cannot be guessed.
                    let is_longer = dur > longest;
                    longest = std::hint::select_unpredictable(is_longer, dur, longest);
                    top = std::hint::select_unpredictable(is_longer, i, top);
                    i += 1;
                }
                if i > from {
                    pending.end = end[i - 1];
                    pending.count += (i - from) as u32;
                    pending.busy_ns += busy;
                }
                if top < n {
                    (pending.top, pending.site, pending.node) = (index + top as u32, site[top], node[top]);
                    self.longest = longest;
                }
                if i == n {
                    return;
                }
            }
            self.flush();
            let (first, busy_ns) = (index + i as u32, end[i] - start[i]);
            self.longest = busy_ns;
            let (start, end, site, node) = (start[i], end[i], site[i], node[i]);
            self.pending =
                Some(Span { start, end, first, count: 1, busy_ns, longest_ns: busy_ns, top: first, site, node });
            i += 1;
        }
    }

    fn flush(&mut self) {
        if let Some(span) = self.pending.take() {
            self.out.push(Span { longest_ns: self.longest, ..span });
        }
    }
}

/// The sum of durations, the longest, and the index of the first that is as long.
fn busy_and_longest(start: &[i64], end: &[i64]) -> (i64, i64, usize) {
    let (mut busy, mut longest, mut top) = (0, -1, 0);
    for (i, (start, end)) in start.iter().zip(end).enumerate() {
        let dur = end - start;
        busy += dur;
        (longest, top) = if dur > longest { (dur, i) } else { (longest, top) };
    }
    (busy, longest, top)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::batch::{Batch, Event, EventKind, NO_NODE, Name, TrackKey};
    use crate::store::{SEGMENT, Store, StoreOptions};
    use proptest::prelude::*;

    /// A store with one lane of slices with these gaps before them and durations.
    fn store(parts: &[(i64, i64)], options: StoreOptions) -> Store {
        let mut store = Store::with_options(options);
        let mut at = 0;
        for parts in parts.chunks(50_000) {
            let mut batch = Batch::new();
            batch.set_origin(0);
            batch.name(Name::Site { pid: 1, id: 0, category: "test".into(), name: "work".into() });
            let events = &mut batch.track(TrackKey { pid: 1, ring: 0 }).events;
            for (gap, dur) in parts {
                let (start, end) = (at + gap, at + gap + dur);
                at = end;
                events.push(Event {
                    kind: EventKind::Slice,
                    depth: 0,
                    start,
                    end,
                    site: 0,
                    node: NO_NODE,
                    correlation: 0,
                    arg: 0,
                    args: crate::batch::NO_ARGS,
                });
            }
            store.apply(batch);
        }
        store
    }

    /// Holds the spans of a view against the contract at the top of the file, by brute force.
    pub(crate) fn check(lane: &Lane, view: Range<i64>, px: usize) {
        let mut spans = Vec::new();
        lane.spans(view.clone(), px, &mut spans);
        let touches = |i: &u32| {
            let s = lane.slice(*i).unwrap();
            view.start < view.end && s.start < view.end && (s.end > view.start || s.start >= view.start)
        };
        let mut inside = (0..lane.len() as u32).filter(touches).peekable();
        let px = px.max(1);
        let pixel = ((view.end - view.start + px as i64 - 1) / px as i64).max(1);
        assert!(spans.len() <= 2 * px + 2, "{} spans on {px} pixels", spans.len());
        let mut until = i64::MIN;
        for span in &spans {
            let (mut busy, mut longest, mut top) = (0, -1, 0);
            for i in span.first..span.first + span.count {
                assert_eq!(inside.next(), Some(i), "each slice of the view once, in order");
                let s = lane.slice(i).unwrap();
                busy += s.dur();
                if s.dur() > longest {
                    (longest, top) = (s.dur(), i);
                }
            }
            assert_eq!((span.busy_ns, span.top), (busy, top));
            let (first, last) = (lane.slice(span.first).unwrap(), lane.slice(span.first + span.count - 1).unwrap());
            assert_eq!((span.start, span.end), (first.start, last.end));
            assert!(span.count == 1 || span.end - span.start <= pixel);
            assert!(span.start >= until);
            until = span.end;
        }
        assert_eq!(inside.next(), None, "every slice of the view");
    }

    proptest! {
        #[test]
        fn spans_are_as_promised(
            // Bursts of short slices, silence, long slices.
            runs in prop::collection::vec((1usize..200, 0i64..30, 0i64..50, 0i64..5_000), 1..12),
            views in prop::collection::vec((0i64..60_000, 0i64..60_000, 0usize..300), 1..6),
        ) {
            let parts: Vec<(i64, i64)> = runs
                .iter()
                .flat_map(|(n, gap, dur, pause)| (0..*n).map(move |i| (if i == 0 { *pause } else { *gap }, dur * (1 + i as i64 % 3))))
                .collect();
            let store = store(&parts, StoreOptions::UNBOUNDED);
            let lane = &store.tracks()[0].lanes[0];
            for (a, b, px) in views {
                check(lane, a..b, px);
                check(lane, a..a + 1 + b % 50, px);
            }
            check(lane, i64::MIN / 4..i64::MAX / 4, 100);
        }
    }

    #[test]
    fn many_segments_and_giving_up_the_oldest() {
        let parts: Vec<(i64, i64)> = (0..70_000).map(|i| (i % 7, 1 + i * i % 13)).collect();
        let whole = store(&parts, StoreOptions::UNBOUNDED);
        let bounded = store(&parts, StoreOptions { slices_per_lane: 20_000, ..StoreOptions::UNBOUNDED });
        let end = whole.range().end;
        for store in [&whole, &bounded] {
            let lane = &store.tracks()[0].lanes[0];
            for (view, px) in
                [(0..end, 1), (0..end, 50), (end / 3..end / 2, 1_920), (end - 900..end, 300), (0..end, 100_000)]
            {
                check(lane, view, px);
            }
        }
        let lane = &bounded.tracks()[0].lanes[0];
        assert_eq!(lane.len() as u64 + lane.evicted(), 70_000);
        assert!(lane.len() >= 20_000 && lane.len() < 20_000 + 2 * SEGMENT);
        // An identity stays good; that of a slice that is gone finds nothing.
        let last = lane.slice(lane.len() as u32 - 1).unwrap();
        assert_eq!(last.id.ordinal, 69_999);
        assert_eq!(bounded.slice(last.id), Some(last));
        assert_eq!(whole.slice(last.id), Some(last));
        assert_eq!(bounded.slice(whole.tracks()[0].lanes[0].slice(0).unwrap().id), None);
        let warning = &bounded.warnings()[0];
        assert_eq!((warning.kind, warning.count), (crate::WarningKind::Evicted, lane.evicted()));
    }

    #[test]
    fn memory_of_the_pyramid() {
        let store = store(&vec![(1, 10); 1 << 20], StoreOptions::UNBOUNDED);
        let stats = store.stats();
        assert_eq!(stats.slices, 1 << 20);
        assert!(stats.lod_bytes <= 5 << 20, "{} bytes", stats.lod_bytes);
        assert!(stats.memory_bytes <= 45 << 20, "{} bytes", stats.memory_bytes);
    }
}
