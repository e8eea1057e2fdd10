//! Slices of a track in order, each with the lane that shows its nesting.

use crate::batch::Event;
use std::cmp::Reverse;

/// Lanes that a store's track has; what does not fit goes to a track of its own.
const MAX_LANES: usize = 256;

/// Sorts slices by begin, the outer before the inner, and sets each one's depth: below the innermost slice around it. Gives
/// back those for which all lanes are taken, in order.
pub(super) fn arrange(slices: &mut Vec<Event>) -> Vec<Event> {
    let order = |e: &Event| (e.start, Reverse(e.end));
    if !slices.is_sorted_by_key(order) {
        // Stable: of slices at the same time the file's first is the outer one.
        slices.sort_by_key(order);
    }
    let mut lanes = Lanes { ends: Vec::new(), n_open: 0 };
    let mut left = Vec::new();
    slices.retain_mut(|slice| match lanes.place(slice.start, slice.end) {
        Some(depth) => {
            slice.depth = depth;
            true
        }
        None => {
            left.push(*slice);
            false
        }
    });
    left
}

/// When each lane is free again: the same rule as the store's, which takes the first free lane from a depth on.
struct Lanes {
    ends: Vec<i64>,
    /// Lanes from here on are free.
    n_open: usize,
}

impl Lanes {
    /// The depth to ask for; `None` where the store would find no free lane.
    fn place(&mut self, start: i64, end: i64) -> Option<u8> {
        while self.n_open > 0 && self.ends[self.n_open - 1] <= start {
            self.n_open -= 1;
        }
        let open = &self.ends[..self.n_open];
        let depth = open.iter().rposition(|e| *e > start && *e >= end).map_or(0, |around| around + 1);
        let lane = (depth..self.n_open).find(|lane| self.ends[*lane] <= start).unwrap_or(depth.max(self.n_open));
        if lane >= MAX_LANES {
            return None;
        }
        if lane == self.ends.len() {
            self.ends.push(end);
        }
        self.ends[lane] = end;
        self.n_open = self.n_open.max(lane + 1);
        u8::try_from(depth).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, EventKind, TrackKey};
    use crate::import::sites::SiteIdx;
    use crate::import::stage::What;
    use crate::{Store, StoreOptions};
    use proptest::prelude::*;

    fn slices(spans: &[(i64, i64)]) -> Vec<Event> {
        spans.iter().map(|(start, end)| What::of(SiteIdx(0)).event(EventKind::Slice, *start, *end)).collect()
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
            let left = arrange(&mut all);
            prop_assert_eq!(all.len() + left.len(), spans.len());
            let n = all.len();
            let mut batch = Batch::new();
            batch.track(TrackKey { pid: 1, ring: 0 }).events = all;
            let mut store = Store::with_options(StoreOptions::UNBOUNDED);
            store.apply(batch);
            if let Some(track) = store.tracks().first() {
                prop_assert_eq!((track.clipped, track.n_slices()), (0, n));
            }
        }
    }
}
