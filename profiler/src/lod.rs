//! Level of detail: what a lane shows at a pixel width, as a pure function.
//!
//! Contract of [`spans`] for a half-open view of `V` ns on `px` pixels, with a pixel of `p = max(1, ceil(V / px))` ns:
//!
//! * Every slice that touches the view (see [`Lane::touching`]) is in exactly one span, and no other is: the
//!   `count`s add up to their number, `busy_ns` to the sum of the durations of those that work, and `wait_ns` to that of
//!   those that wait ([`SiteInfo::waits`](crate::store::SiteInfo::waits)). Durations are whole, not cut at the view's edges;
//!   the painter clips.
//! * A slice longer than `p` is a span of its own (`count == 1`).
//! * A span of several slices reaches from the first one's start to the last one's end, and that is at most `p`.
//! * Spans come in order and do not overlap. There are at most `2 * px + 2`.
//! * `top` is the longest slice of the span that works, however long others wait, or where none works the longest; the first of
//!   these on a tie. `site`, `node` and `top_ns` are its. `first` and `top` are indices of the lane as it is now.
//! * An empty or reversed view gives nothing; `px == 0` counts as 1.
//!
//! How: a pyramid over the slices' order (not over time, so that bursts and silence cost the same): 16 slices
//! to a node, then four nodes to a node; 56 bytes each, 4.7 bytes per slice (28 and 2.4 in a sealed trace, mostly). A query walks the view from left to
//! right and takes the largest complete node that begins here and fits into a pixel; only where a node is wider than a
//! pixel it looks inside. That visits a few nodes per pixel whatever the number of slices.
//!
//! A query never waits for the disk. Where the slices themselves are on disk only ([`crate::seal`]) it shows the lowest
//! nodes, of 16 slices, whole: such a span may be wider than a pixel, and at the view's edges it brings slices that only
//! its neighbours touch. `count`, `busy_ns` and `wait_ns` are what the span's own slices add up to, as ever. What is missing is
//! noted as a wish, `load_wished` reads it, and the next query is exact.

use crate::store::{Lane, SEGMENT, Site};
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
    /// Sum of the durations of those that work.
    pub busy_ns: i64,
    /// Sum of the durations of those that wait.
    pub wait_ns: i64,
    /// Duration of `top`.
    pub top_ns: i64,
    /// Index of the longest that works; of the longest, where none works.
    pub top: u32,
    /// Its row of the sites.
    pub site: u32,
    /// Whether it waits: then all of them do.
    pub waits: bool,
    /// Its row of the nodes, or `u32::MAX`.
    pub node: u32,
}

impl Span {
    /// One slice.
    pub(crate) fn of(slice: Brief, index: u32) -> Span {
        let Brief { start, end, site, node } = slice;
        let (top_ns, waits) = (end - start, site.waits());
        let (busy_ns, wait_ns) = if waits { (0, top_ns) } else { (top_ns, 0) };
        let (first, count, top, site) = (index, 1, index, site.row());
        Span { start, end, first, count, busy_ns, wait_ns, top_ns, top, site, waits, node }
    }
}

/// Slices per node of the lowest level.
pub(crate) const LEAF: usize = 16;
/// Nodes per node of the level above.
const FAN: usize = 4;
/// 16 * 4^5 = 16,384: the highest level has one node per segment.
pub(crate) const LEVELS: usize = 6;
/// The highest level whose slices are looked at without asking the nodes below, where a query is that near.
const RUN_LEVEL: usize = 2;
const _: () = assert!(LEAF * FAN.pow(LEVELS as u32 - 1) == SEGMENT);

/// What drawing needs of a slice.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Brief {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) site: Site,
    pub(crate) node: u32,
}

/// What decides which slice of several is `top`: any that works is above all that wait.
#[inline]
fn rank(dur: i64, site: Site) -> i64 {
    dur | (site.mask() & i64::MIN)
}

/// Several slices that follow each other.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Node {
    pub(crate) start: i64,
    pub(crate) end: i64,
    busy: i64,
    wait: i64,
    /// Duration of `top`.
    longest: i64,
    /// Index in the segment of the slice that stands for all.
    top: u32,
    site: Site,
    node: u32,
    zero: u32,
}

impl Node {
    /// As a span of a lane has it; `first` is the index from which `top` counts.
    pub(crate) fn of_span(span: &Span, first: u32) -> Node {
        let Span { start, end, busy_ns: busy, wait_ns: wait, top_ns: longest, site, waits, node, .. } = *span;
        Node { start, end, busy, wait, longest, top: span.top - first, site: Site::new(site, waits), node, zero: 0 }
    }

    /// No slice is longer.
    pub(crate) fn longest(&self) -> i64 {
        self.longest.max(self.wait)
    }

    /// Takes in what follows.
    fn join(&mut self, next: &Node) {
        self.end = next.end;
        self.busy += next.busy;
        self.wait += next.wait;
        if rank(next.longest, next.site) > rank(self.longest, self.site) {
            (self.longest, self.top, self.site, self.node) = (next.longest, next.top, next.site, next.node);
        }
    }
}

/// A node of a segment that is shorter than 2^32 ns and has sites of small rows, as a sealed trace has it: times from the
/// segment's start.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Narrow {
    start: u32,
    end: u32,
    busy: u32,
    wait: u32,
    longest: u32,
    /// `top` in the lower bits, above them the site's code.
    top_and_site: u32,
    node: u32,
}

/// Bits of a slice's index in its segment.
const TOP_BITS: u32 = SEGMENT.trailing_zeros();

impl Narrow {
    /// `None` where a time is too long, or the site's row too large.
    pub(crate) fn of(node: &Node, base: i64) -> Option<Narrow> {
        let time = |ns: i64| u32::try_from(ns).ok();
        let (start, end) = (time(node.start.checked_sub(base)?)?, time(node.end.checked_sub(base)?)?);
        let (busy, wait, longest) = (time(node.busy)?, time(node.wait)?, time(node.longest)?);
        let code = node.site.to_code();
        let fits = node.top >> TOP_BITS == 0 && code.leading_zeros() >= TOP_BITS;
        let top_and_site = fits.then_some(code << TOP_BITS | node.top)?;
        Some(Narrow { start, end, busy, wait, longest, top_and_site, node: node.node })
    }

    #[inline]
    fn wide(&self, base: i64) -> Node {
        let Narrow { start, end, busy, wait, longest, top_and_site, node } = *self;
        let [start, end, busy, wait, longest] = [start, end, busy, wait, longest].map(i64::from);
        // Of a damaged file the base may be any number.
        let (start, end) = (base.wrapping_add(start), base.wrapping_add(end));
        let (top, site) = (top_and_site % SEGMENT as u32, Site::of_code(top_and_site >> TOP_BITS));
        Node { start, end, busy, wait, longest, top, site, node, zero: 0 }
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
        let mut node = leaf(slices);
        node.top += (self.levels[0].len() * LEAF) as u32;
        self.levels[0].push(node);
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
    pub(crate) site: &'a [Site],
    pub(crate) node: &'a [u32],
}

/// Slices of a leaf, of which others keep no columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaf {
    start: [i64; LEAF],
    end: [i64; LEAF],
    site: [Site; LEAF],
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
    let mut merge = Merge { pixel: pixel.max(1), pending: None, rank: 0, out };
    walk(&mut merge);
    merge.flush();
}

/// Joins neighbours while they fit into a pixel.
pub(crate) struct Merge<'a> {
    pixel: i64,
    pending: Option<Span>,
    /// Of the pending span's top.
    rank: i64,
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
                let (mut all, mut wait, mut highest, mut top) = (0, 0, self.rank, n);
                while i < n && end[i] <= until {
                    let dur = end[i] - start[i];
                    all += dur;
                    wait += dur & site[i].mask();
                    // Chosen without a jump: which of a few slices is the longest cannot be guessed.
                    let rank = rank(dur, site[i]);
                    let is_higher = rank > highest;
                    highest = std::hint::select_unpredictable(is_higher, rank, highest);
                    top = std::hint::select_unpredictable(is_higher, i, top);
                    i += 1;
                }
                if i > from {
                    pending.end = end[i - 1];
                    pending.count += (i - from) as u32;
                    pending.busy_ns += all - wait;
                    pending.wait_ns += wait;
                }
                if top < n {
                    (pending.top, pending.site, pending.node) = (index + top as u32, site[top].row(), node[top]);
                    self.rank = highest;
                }
                if i == n {
                    return;
                }
            }
            self.flush();
            let slice = Brief { start: start[i], end: end[i], site: site[i], node: node[i] };
            self.rank = rank(slice.end - slice.start, slice.site);
            self.pending = Some(Span::of(slice, index + i as u32));
            i += 1;
        }
    }

    fn flush(&mut self) {
        if let Some(span) = self.pending.take() {
            self.out.push(Span { top_ns: self.rank & i64::MAX, waits: self.rank < 0, ..span });
        }
    }
}

/// Up to [`LEAF`] slices, at least one, as a node whose `top` counts from the first.
fn leaf(slices: &Columns<'_>) -> Node {
    let Columns { start, end, site, node } = *slices;
    let (mut all, mut wait, mut highest, mut top) = (0, 0, i64::MIN, 0);
    for (i, ((start, end), site)) in start.iter().zip(end).zip(site).enumerate() {
        let dur = end - start;
        all += dur;
        wait += dur & site.mask();
        let rank = rank(dur, *site);
        (highest, top) = if rank > highest { (rank, i) } else { (highest, top) };
    }
    let (start, end, longest) = (start[0], end[end.len() - 1], end[top] - start[top]);
    Node { start, end, busy: all - wait, wait, longest, top: top as u32, site: site[top], node: node[top], zero: 0 }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::batch::{Batch, Event, EventKind, NO_NODE, Name, TrackKey};
    use crate::store::{Store, StoreOptions};
    use proptest::prelude::*;

    /// A store with one lane of slices with these gaps before them and durations; those of an even duration wait.
    fn store(parts: &[(i64, i64)], options: StoreOptions) -> Store {
        let mut store = Store::with_options(options);
        let mut at = 0;
        for parts in parts.chunks(50_000) {
            let mut batch = Batch::new();
            batch.set_origin(0);
            for (id, category) in [(0, "test"), (1, "wait")] {
                batch.name(Name::Site { pid: 1, id, category: category.into(), name: "work".into() });
            }
            let events = &mut batch.track(TrackKey { pid: 1, ring: 0 }).events;
            for (gap, dur) in parts {
                let (start, end) = (at + gap, at + gap + dur);
                at = end;
                events.push(Event {
                    kind: EventKind::Slice,
                    depth: 0,
                    start,
                    end,
                    site: u32::from(dur % 2 == 0),
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
    pub(crate) fn check(store: &Store, lane: &Lane, view: Range<i64>, px: usize) {
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
            for i in span.first..span.first + span.count {
                assert_eq!(inside.next(), Some(i), "each slice of the view once, in order");
            }
            check_span(store, lane, span);
            let (first, last) = (lane.slice(span.first).unwrap(), lane.slice(span.first + span.count - 1).unwrap());
            assert_eq!((span.start, span.end), (first.start, last.end));
            assert!(span.count == 1 || span.end - span.start <= pixel);
            assert!(span.start >= until);
            until = span.end;
        }
        assert_eq!(inside.next(), None, "every slice of the view");
    }

    /// Counts the slices of a span one by one.
    pub(crate) fn check_span(store: &Store, lane: &Lane, span: &Span) {
        type Longest = Option<(i64, u32, u32, u32)>;
        let (mut busy, mut wait): (i64, i64) = (0, 0);
        let (mut works, mut waits): (Longest, Longest) = (None, None);
        for i in span.first..span.first + span.count {
            let s = lane.slice(i).unwrap();
            let is_wait = store.sites().get(s.site as usize).is_some_and(crate::store::SiteInfo::waits);
            let (sum, longest) = if is_wait { (&mut wait, &mut waits) } else { (&mut busy, &mut works) };
            *sum += s.dur();
            if longest.is_none_or(|(dur, ..)| s.dur() > dur) {
                *longest = Some((s.dur(), i, s.site, s.node));
            }
        }
        assert_eq!((span.busy_ns, span.wait_ns, span.waits), (busy, wait, works.is_none()));
        assert_eq!(Some((span.top_ns, span.top, span.site, span.node)), works.or(waits));
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
                check(&store, lane, a..b, px);
                check(&store, lane, a..a + 1 + b % 50, px);
            }
            check(&store, lane, i64::MIN / 4..i64::MAX / 4, 100);
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
                check(store, lane, view, px);
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
    fn a_short_op_is_seen_beside_a_long_wait() {
        // In each 1,000 ns a wait of 900 and work of 51; pixels of a few slices, of nodes of a segment, of several.
        let parts: Vec<(i64, i64)> = (0..40_000).flat_map(|_| [(9, 900), (40, 51)]).collect();
        let store = store(&parts, StoreOptions::UNBOUNDED);
        let mut spans = Vec::new();
        for (view, px) in [(0..16_000, 8), (0..16_384_000, 64), (0..40_000_000, 64)] {
            spans.clear();
            store.tracks()[0].lanes[0].spans(view.clone(), px, &mut spans);
            let sums = spans.iter().fold((0, 0), |(busy, wait), s| (busy + s.busy_ns, wait + s.wait_ns));
            assert_eq!(sums, (view.end / 1_000 * 51, view.end / 1_000 * 900));
            assert!(spans.iter().all(|s| !s.waits && s.top_ns == 51 && s.top % 2 == 1), "{view:?}");
        }
    }

    #[test]
    fn nodes_of_a_sealed_trace_are_as_before() {
        let node = |top, row, waits| {
            let site = Site::new(row, waits);
            Node { start: 1_000, end: 5_000, busy: 30, wait: 3_000, longest: 2_900, top, site, node: 7, zero: 0 }
        };
        for good in [node(0, 0, false), node(SEGMENT as u32 - 1, (1 << 17) - 1, true)] {
            assert_eq!(Narrow::of(&good, 900).unwrap().wide(900), good);
        }
        let long = Node { wait: 1 << 32, ..node(0, 0, false) };
        for bad in [node(SEGMENT as u32, 0, false), node(0, 1 << 17, false), node(0, u32::MAX >> 1, true), long] {
            assert_eq!(Narrow::of(&bad, 900), None);
        }
        assert_eq!((size_of::<Node>(), size_of::<Narrow>()), (56, 28));
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
