//! How the slices of a track are nested.
//!
//! A slice is nested directly in the shortest slice of the same track that contains it. Slices that overlap without
//! containment do not reduce each other's self time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use trace_model::SliceRef;
use trace_store::{Lane, Track};

/// A step of a visit: each slice is entered, and left after all that begin in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Visit<'a> {
    Enter(&'a SliceRef),
    /// With the self time inside the range, ns.
    Leave(&'a SliceRef, i64),
}

/// The part of a slice inside a range that it touches, ns.
pub(crate) fn inside_ns(slice: &SliceRef, range: &Range<i64>) -> i64 {
    slice.end.min(range.end) - slice.start.max(range.start)
}

/// Passes the slices of a track that touch the range to `take`, each with its self time inside the range. An inner
/// slice is passed before the slice that contains it.
pub(crate) fn self_times(track: &Track, range: &Range<i64>, mut take: impl FnMut(&SliceRef, i64)) {
    let mut lanes = track.lanes.iter().filter(|lane| !lane.is_empty());
    if let (Some(lane), None) = (lanes.next(), lanes.next()) {
        return lane.visit(range, |slice| take(slice, inside_ns(slice, range)));
    }
    visit(track, range, |step| {
        if let Visit::Leave(slice, self_ns) = step {
            take(slice, self_ns);
        }
    });
}

/// Enters and leaves the slices of a track that touch the range, in order of time.
pub(crate) fn visit(track: &Track, range: &Range<i64>, mut take: impl FnMut(Visit<'_>)) {
    let lanes: Vec<&Lane> = track.lanes.iter().filter(|lane| !lane.is_empty()).collect();
    // The stack of slices that may contain later slices, with their self times so far. A slice that ends before a later
    // slice ends is popped: slices that begin after it count as nested in the later one. So ends fall from the bottom
    // to the top of the stack, and each slice is popped once.
    let mut enclosing: Vec<(SliceRef, i64)> = Vec::new();
    for slice in outer_before_inner(lanes.iter().map(|lane| lane.slices(range)).collect()) {
        while let Some((outer, self_ns)) =
            enclosing.pop_if(|(outer, _)| outer.end <= slice.start || outer.end < slice.end)
        {
            take(Visit::Leave(&outer, self_ns));
        }
        let inside = inside_ns(&slice, range);
        if let Some((_, self_ns)) = enclosing.last_mut() {
            *self_ns -= inside;
        }
        take(Visit::Enter(&slice));
        enclosing.push((slice, inside));
    }
    enclosing.into_iter().rev().for_each(|(slice, self_ns)| take(Visit::Leave(&slice, self_ns)));
}

/// Returns the slices of all lanes by start. Of slices with one start the longer is first, of equal slices that of the
/// outer lane.
fn outer_before_inner(mut lanes: Vec<impl Iterator<Item = SliceRef>>) -> impl Iterator<Item = SliceRef> {
    // For each lane that goes on, its next slice's key; of the slices only the keys are moved.
    // Slices without duration contain nothing: they come first, as in their lanes.
    let key = |slice: &SliceRef, lane: usize| Reverse((slice.start, slice.dur() > 0, Reverse(slice.end), lane));
    let mut next: Vec<Option<SliceRef>> = lanes.iter_mut().map(Iterator::next).collect();
    let first_keys = next.iter().enumerate().filter_map(|(lane, slice)| Some(key(slice.as_ref()?, lane)));
    let mut keys: BinaryHeap<_> = first_keys.collect();
    std::iter::from_fn(move || {
        let mut first_key = keys.peek_mut()?;
        let Reverse((.., lane)) = *first_key;
        let slice = std::mem::replace(&mut next[lane], lanes[lane].next());
        match &next[lane] {
            Some(following) => *first_key = key(following, lane),
            None => drop(PeekMut::pop(first_key)),
        }
        slice
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trace_store::testkit;

    proptest! {
        /// The rule as its words say it, by looking at all pairs.
        #[test]
        fn self_time_is_what_no_slice_directly_in_it_has(spans in prop::collection::vec((0_i64..60, 0_i64..30), 1..40)) {
            let lines = spans.iter().map(|(start, length)| format!("w0 A {start}..{}", start + length));
            let store = testkit::store(&lines.collect::<Vec<_>>().join("\n"));
            let track = store.tracks().iter().find(|t| t.n_slices() > 0).unwrap();
            let mut found = Vec::new();
            self_times(track, &(i64::MIN..i64::MAX), |slice, self_ns| found.push((*slice, self_ns)));
            found.sort_by_key(|(slice, _)| (slice.start, Reverse(slice.end), slice.id.lane, slice.id.ordinal));
            for (at, (outer, self_ns)) in found.iter().enumerate() {
                let contains = |o: &SliceRef, i: &SliceRef| o.start <= i.start && i.end <= o.end && o.end > i.start;
                let direct = found[at + 1..].iter().enumerate().filter(|(n, (inner, _))| {
                    let between = &found[at + 1..at + 1 + n];
                    contains(outer, inner) && !between.iter().any(|(middle, _)| contains(middle, inner))
                });
                prop_assert_eq!(*self_ns, outer.dur() - direct.map(|(_, (inner, _))| inner.dur()).sum::<i64>());
            }
        }
    }
}
