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
//! * `top` is the longest slice of the span, the first of these on a tie; `first` and `top` are indices of the
//!   lane as it is now.
//! * An empty or reversed view gives nothing; `px == 0` counts as 1.
//!
//! How: a pyramid over the slices' order (not over time, so that bursts and silence cost the same): 16 slices
//! to a node, then four nodes to a node; 32 bytes each, 2.7 bytes per slice. A query walks the view from left to
//! right and takes the largest complete node that begins here and fits into a pixel; only where a node is wider than a
//! pixel it looks inside. That visits a few nodes per pixel whatever the number of slices.

use crate::store::{Lane, SEGMENT};
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
    /// Index of the longest.
    pub top: u32,
}

/// Slices per node of the lowest level.
const LEAF: usize = 16;
/// Nodes per node of the level above.
const FAN: usize = 4;
/// 16 * 4^5 = 16,384: the highest level has one node per segment.
const LEVELS: usize = 6;
const _: () = assert!(LEAF * FAN.pow(LEVELS as u32 - 1) == SEGMENT);

/// Several slices that follow each other.
#[derive(Clone, Copy, Debug)]
struct Node {
    start: i64,
    end: i64,
    busy: i64,
    /// Index in the segment of the longest slice.
    top: u32,
}

/// The levels over the slices of one segment; only complete nodes.
#[derive(Debug, Default)]
pub(crate) struct Pyramid {
    levels: [Vec<Node>; LEVELS],
}

impl Pyramid {
    /// To call after each slice was appended to the columns.
    pub(crate) fn appended(&mut self, start: &[i64], end: &[i64]) {
        let n = start.len();
        if !n.is_multiple_of(LEAF) {
            return;
        }
        let first = n - LEAF;
        let mut leaf = Node { start: start[first], end: end[n - 1], busy: 0, top: first as u32 };
        let mut longest = -1;
        for i in first..n {
            let dur = end[i] - start[i];
            leaf.busy += dur;
            if dur > longest {
                (longest, leaf.top) = (dur, i as u32);
            }
        }
        self.levels[0].push(leaf);
        for level in 1..LEVELS {
            let below = &self.levels[level - 1];
            if !below.len().is_multiple_of(FAN) {
                break;
            }
            let four = &below[below.len() - FAN..];
            let mut node = Node { end: four[FAN - 1].end, busy: 0, ..four[0] };
            for child in four {
                node.busy += child.busy;
                if dur_of(start, end, child.top) > dur_of(start, end, node.top) {
                    node.top = child.top;
                }
            }
            self.levels[level].push(node);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.levels.iter().map(|l| l.capacity() * size_of::<Node>()).sum()
    }
}

fn dur_of(start: &[i64], end: &[i64], i: u32) -> i64 {
    end[i as usize] - start[i as usize]
}

/// Slices per node of `level`.
const fn width(level: usize) -> usize {
    LEAF << (2 * level)
}

/// See the module's notes. Appends to `out`.
pub fn spans(lane: &Lane, view: &Range<i64>, px: usize, out: &mut Vec<Span>) {
    let touching = lane.touching(view);
    let px = i64::try_from(px.max(1)).unwrap_or(i64::MAX);
    let view_ns = view.end.saturating_sub(view.start);
    let pixel = (view_ns / px + i64::from(view_ns % px != 0)).max(1);
    let mut merge = Merge { pixel, pending: None, longest: 0, out };
    let (mut i, to) = (touching.start as usize, touching.end as usize);
    while i < to {
        let segment_idx = i / SEGMENT;
        let base = segment_idx * SEGMENT;
        walk(&lane.segments()[segment_idx], base as u32, i - base..(to - base).min(SEGMENT), &mut merge);
        i = base + SEGMENT;
    }
    merge.flush();
}

/// Feeds the slices `range` of a segment to `merge`, in the largest pieces that fit into a pixel.
fn walk(segment: &crate::store::Segment, base: u32, range: Range<usize>, merge: &mut Merge<'_>) {
    let (start, end) = (&segment.start[..], &segment.end[..]);
    let levels = &segment.pyramid.levels;
    let mut i = range.start;
    // The level to try next: goes up where a node of the level above begins, and down where a node is too wide.
    let mut level = LEVELS - 1;
    while i < range.end {
        let step = width(level);
        let node = if i.is_multiple_of(step) && i + step <= range.end { levels[level].get(i / step) } else { None };
        if let Some(node) = node
            && node.end - node.start <= merge.pixel
        {
            merge.push(
                Span {
                    start: node.start,
                    end: node.end,
                    first: base + i as u32,
                    count: step as u32,
                    busy_ns: node.busy,
                    top: base + node.top,
                },
                dur_of(start, end, node.top),
            );
            i += step;
            while level + 1 < LEVELS && i.is_multiple_of(width(level + 1)) {
                level += 1;
            }
            continue;
        }
        if level > 0 {
            level -= 1;
            continue;
        }
        let to = (i / LEAF * LEAF + LEAF).min(range.end);
        for k in i..to {
            let (s, e) = (start[k], end[k]);
            let index = base + k as u32;
            merge.push(Span { start: s, end: e, first: index, count: 1, busy_ns: e - s, top: index }, e - s);
        }
        i = to;
        while level + 1 < LEVELS && i.is_multiple_of(width(level + 1)) {
            level += 1;
        }
    }
}

/// Joins neighbours while they fit into a pixel.
struct Merge<'a> {
    pixel: i64,
    pending: Option<Span>,
    /// Duration of the pending span's top.
    longest: i64,
    out: &'a mut Vec<Span>,
}

impl Merge<'_> {
    fn push(&mut self, span: Span, longest: i64) {
        if let Some(pending) = &mut self.pending
            && span.end - pending.start <= self.pixel
        {
            pending.end = span.end;
            pending.count += span.count;
            pending.busy_ns += span.busy_ns;
            if longest > self.longest {
                (pending.top, self.longest) = (span.top, longest);
            }
            return;
        }
        self.flush();
        self.pending = Some(span);
        self.longest = longest;
    }

    fn flush(&mut self) {
        if let Some(span) = self.pending.take() {
            self.out.push(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, Event, EventKind, NO_NODE, Name, TrackKey};
    use crate::store::{Store, StoreOptions};
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
    fn check(lane: &Lane, view: Range<i64>, px: usize) {
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
        assert!(stats.memory_bytes <= 44 << 20, "{} bytes", stats.memory_bytes);
    }
}
