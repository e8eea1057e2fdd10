//! Orders the slices of a track, and finds the lane that shows the nesting of each.

use std::cmp::Reverse;
use trace_model::{Event, MAX_LANES};

/// Tracks of the store into which a track of a file is split, at most: a slice that overlaps more than 4,096 others is
/// clipped by the store, and counted.
const MAX_TRACKS: usize = 16;

/// Sorts slices by start, the outer before the inner, and sets the depth of each to one more than that of the innermost
/// slice around it. Removes and returns those for which the track has no lane, by further track and in order.
pub(super) fn arrange(slices: &mut Vec<Event>) -> Vec<Vec<Event>> {
    let order = |e: &Event| (e.start, Reverse(e.end));
    if !slices.is_sorted_by_key(order) {
        // Stable: of slices with the same times the first in the file is the outer one.
        slices.sort_by_key(order);
    }
    let mut lanes = Lanes::default();
    let mut further: Vec<Vec<Event>> = Vec::new();
    slices.retain_mut(|slice| {
        let (depth, lane) = lanes.place(slice.start, slice.end);
        // If no lane is free: the last lane of the last track.
        let lane = lane.unwrap_or(MAX_LANES * MAX_TRACKS - 1);
        if let Some(track) = (lane / MAX_LANES).checked_sub(1) {
            if further.len() <= track {
                further.resize_with(track + 1, Vec::new);
            }
            // Depth 0, from which the store finds a free lane: these slices need no more lanes than a track has.
            further[track].push(Event { depth: 0, ..*slice });
            return false;
        }
        slice.depth = u8::try_from(depth).unwrap_or(u8::MAX);
        true
    });
    further
}

/// The end of the last slice of each lane. A slice takes the first free lane from its depth on, as in the store.
///
/// The ends are the leaves of a tree, whose nodes have the smallest and largest end below. So a slice costs the
/// logarithm of the number of lanes, whatever overlaps it.
#[derive(Default)]
struct Lanes {
    /// Smallest and largest end below each node; node 1 is the root, the leaves are the second half.
    nodes: Vec<(i64, i64)>,
    /// Nodes that were looked at.
    #[cfg(test)]
    n_visited: u64,
}

/// The ends of a lane without slices.
const FREE: (i64, i64) = (i64::MIN, i64::MIN);

impl Lanes {
    /// The depth of a slice, and the lane that the store will choose; `None` if none is free.
    fn place(&mut self, start: i64, end: i64) -> (usize, Option<usize>) {
        let depth = self.innermost(end.max(start.saturating_add(1))).map_or(0, |around| around + 1);
        let lane = loop {
            let n = self.nodes.len() / 2;
            match self.free_from(depth, start) {
                None if n < MAX_LANES * MAX_TRACKS => self.grow((2 * n).max(1)),
                lane => break lane,
            }
        };
        if let Some(lane) = lane {
            self.set(lane, end);
        }
        (depth, lane)
    }

    /// The last lane whose end is `end` or later.
    fn innermost(&mut self, end: i64) -> Option<usize> {
        let n = self.nodes.len() / 2;
        self.nodes.get(1).filter(|(_, last)| *last >= end)?;
        let mut node = 1;
        while node < n {
            self.visit();
            node = if self.nodes[2 * node + 1].1 >= end { 2 * node + 1 } else { 2 * node };
        }
        Some(node - n)
    }

    /// The first lane from `lane` on that is free at `time`.
    fn free_from(&mut self, lane: usize, time: i64) -> Option<usize> {
        let n = self.nodes.len() / 2;
        let mut node = (lane < n).then_some(lane + n)?;
        while self.nodes[node].0 > time {
            self.visit();
            // To the next subtree on the right: up as long as this one is a right child.
            node >>= node.trailing_ones();
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < n {
            self.visit();
            node = if self.nodes[2 * node].0 <= time { 2 * node } else { 2 * node + 1 };
        }
        Some(node - n)
    }

    fn set(&mut self, lane: usize, end: i64) {
        let mut node = lane + self.nodes.len() / 2;
        self.nodes[node] = (end, end);
        while node > 1 {
            self.visit();
            node /= 2;
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            self.nodes[node] = (left.0.min(right.0), left.1.max(right.1));
        }
    }

    fn grow(&mut self, n: usize) {
        let ends: Vec<(i64, i64)> = self.nodes.split_off(self.nodes.len() / 2);
        self.nodes = vec![FREE; 2 * n];
        for (lane, (end, _)) in ends.into_iter().enumerate() {
            self.set(lane, end);
        }
    }

    fn visit(&mut self) {
        #[cfg(test)]
        {
            self.n_visited += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trace_model::{Batch, TrackKey};
    use trace_store::{Store, StoreOptions};

    fn slices(spans: &[(i64, i64)]) -> Vec<Event> {
        spans.iter().map(|(start, end)| Event::slice(0, *start, *end)).collect()
    }

    fn depths(spans: &[(i64, i64)]) -> Vec<(i64, i64, u8)> {
        let mut slices = slices(spans);
        assert!(arrange(&mut slices).is_empty());
        slices.iter().map(|s| (s.start, s.end, s.depth)).collect()
    }

    #[test]
    fn the_depth_is_the_nesting() {
        assert_eq!(depths(&[(2, 3), (1, 9), (2, 5)]), [(1, 9, 0), (2, 5, 1), (2, 3, 2)]);
        // One that overlaps without nesting asks for the same depth, and what is inside it for the one below.
        assert_eq!(depths(&[(0, 10), (5, 15), (11, 14)]), [(0, 10, 0), (5, 15, 0), (11, 14, 2)]);
        assert_eq!(depths(&[(0, 4), (4, 4), (4, 6), (6, 6)]), [(0, 4, 0), (4, 6, 0), (4, 4, 1), (6, 6, 0)]);
    }

    proptest! {
        #[test]
        fn the_store_takes_all_and_clips_none(spans in prop::collection::vec((0_i64..500, 0_i64..200), 0..600)) {
            let spans: Vec<_> = spans.iter().map(|(start, length)| (*start, start + length)).collect();
            let mut all = slices(&spans);
            let left: usize = arrange(&mut all).iter().map(Vec::len).sum();
            prop_assert_eq!(all.len() + left, spans.len());
            let n = all.len();
            let mut batch = Batch::new();
            batch.track(TrackKey { pid: 1, ring: 0 }).events = all;
            let mut store = Store::with_options(StoreOptions::UNBOUNDED);
            store.apply(batch);
            if let Some(track) = store.tracks().first() {
                prop_assert_eq!((track.clipped, track.n_slices()), (0, n));
            }
        }

        /// The rule as its words say it, by looking at every lane.
        #[test]
        fn the_tree_finds_what_a_search_finds(spans in prop::collection::vec((0_i64..300, 0_i64..200), 0..300)) {
            let (mut lanes, mut ends) = (Lanes::default(), vec![i64::MIN; 400]);
            let mut spans: Vec<_> = spans.iter().map(|(start, length)| (*start, start + length)).collect();
            spans.sort_by_key(|(start, end)| (*start, Reverse(*end)));
            for (start, end) in spans {
                let depth = ends.iter().rposition(|e| *e > start && *e >= end).map_or(0, |around| around + 1);
                let lane = (depth..400).find(|lane| ends[*lane] <= start).unwrap();
                prop_assert_eq!(lanes.place(start, end), (depth, Some(lane)));
                ends[lane] = end;
            }
        }
    }

    /// Shapes that took a time which grew with their square: each slice looks at a number of nodes that does not depend
    /// on how many there are.
    #[test]
    fn work_per_slice_is_bounded_whatever_they_look_like() {
        type Shape = fn(i64, i64) -> (i64, i64);
        let shapes: [(&str, Shape); 4] = [
            ("equal", |_, _| (0, 10)),
            ("overlapping", |i, n| (i, i + n)),
            ("nested", |i, n| (i, 2 * n - i)),
            ("one after the other", |i, _| (i, i + 1)),
        ];
        for (name, shape) in shapes {
            for n in [2_000, 20_000] {
                let mut lanes = Lanes::default();
                (0..n).for_each(|i| _ = lanes.place(shape(i, n).0, shape(i, n).1));
                let most = (MAX_LANES * MAX_TRACKS).ilog2() * 4 + 2;
                assert!(lanes.n_visited <= n as u64 * u64::from(most), "{name}, {n}: {}", lanes.n_visited);
            }
        }
    }

    /// What has no lane is shortened and counted by the store, not lost; and no more tracks are made for it.
    #[test]
    fn more_than_all_lanes_are_still_all_there() {
        let n = MAX_LANES * MAX_TRACKS + 1_000;
        let mut main = slices(&vec![(0, 10); n]);
        let further = arrange(&mut main);
        assert_eq!((main.len(), further.len()), (MAX_LANES, MAX_TRACKS - 1));
        let mut store = Store::with_options(StoreOptions::UNBOUNDED);
        let mut batch = Batch::new();
        for (ring, events) in std::iter::once(main).chain(further).enumerate() {
            batch.track(TrackKey { pid: 1, ring: ring as u32 }).events = events;
        }
        store.apply(batch);
        assert_eq!(store.tracks().iter().map(trace_store::Track::n_slices).sum::<usize>(), n);
        assert_eq!(store.tracks().iter().map(|t| t.clipped).sum::<u64>(), 1_000);
        assert!(store.warnings().iter().any(|w| w.count == 1_000), "{:?}", store.warnings());
    }
}
