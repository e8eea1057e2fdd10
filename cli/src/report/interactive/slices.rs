//! The slices of the page: those of a track that are too many for its share of the budget are merged, the short ones
//! first, into bars that name their number and the time in them.

use std::ops::Range;

use serde_json::{Value, json};
use trace_model::SliceRef;
use trace_store::Track;

use super::array::{array, deltas};

/// A slice, or several short ones of a lane as one bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Begin, ns from the trace's origin.
    pub start: i64,
    /// End (not included).
    pub end: i64,
    /// Lane.
    pub depth: usize,
    /// Row of the page's names: of several slices that of the longest.
    pub name: usize,
    /// The number of slices.
    pub count: u64,
    /// The sum of their durations, ns.
    pub busy_ns: i64,
    /// The longest duration, ns.
    longest_ns: i64,
    /// Row of the store's arguments.
    pub args: u32,
}

/// The bars of a track.
#[derive(Debug, Default)]
pub struct Bars {
    /// The bars by lane, in each by start.
    pub bars: Vec<Bar>,
    /// Slices that are shorter may be merged; 0 where none are.
    pub merged_below_ns: i64,
    /// The number of slices in bars of several.
    pub n_merged: u64,
}

/// Divides a budget of bars among tracks: a track that needs less than an equal part leaves the rest to the others.
pub fn shares(counts: &[usize], budget: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|row| counts[*row]);
    let (mut shares, mut left) = (vec![0; counts.len()], budget);
    for (i, row) in order.iter().enumerate() {
        shares[*row] = counts[*row].min(left / (counts.len() - i));
        left -= shares[*row];
    }
    shares
}

/// The bars of a track, at most `max`, except that each lane has one at least.
pub fn bars(track: &Track, range: &Range<i64>, max: usize, name_of: &mut dyn FnMut(&SliceRef) -> usize) -> Bars {
    let length = range.end.saturating_sub(range.start);
    let mut merged_below_ns = if track.n_slices() <= max { 0 } else { 1000 };
    loop {
        let mut all = Vec::new();
        for (depth, lane) in track.lanes.iter().enumerate() {
            let mut merger = Merger { below_ns: merged_below_ns, bars: &mut all, open: None };
            // A page has the whole trace: the range ends after its last event.
            lane.visit(&(i64::MIN..i64::MAX), |slice| merger.add(depth, slice, name_of(slice)));
            merger.flush();
        }
        if all.len() <= max || merged_below_ns > length || merged_below_ns == 0 {
            let n_merged = all.iter().filter(|bar| bar.count > 1).map(|bar| bar.count).sum();
            return Bars { bars: all, merged_below_ns, n_merged };
        }
        merged_below_ns = merged_below_ns.saturating_mul(2);
    }
}

/// Merges short slices that follow each other in a lane.
struct Merger<'a> {
    below_ns: i64,
    bars: &'a mut Vec<Bar>,
    open: Option<Bar>,
}

impl Merger<'_> {
    fn add(&mut self, depth: usize, slice: &SliceRef, name: usize) {
        let ns = slice.dur();
        let (start, end) = (slice.start, slice.end);
        let bar = Bar { start, end, depth, name, count: 1, busy_ns: ns, longest_ns: ns, args: slice.args };
        if ns >= self.below_ns {
            self.flush();
            self.bars.push(bar);
            return;
        }
        match &mut self.open {
            Some(open) if end.saturating_sub(open.start) <= self.below_ns => {
                if ns > open.longest_ns {
                    (open.name, open.longest_ns) = (name, ns);
                }
                (open.end, open.count, open.busy_ns) = (end, open.count + 1, open.busy_ns + ns);
            }
            _ => {
                self.flush();
                self.open = Some(bar);
            }
        }
    }

    fn flush(&mut self) {
        self.bars.extend(self.open.take());
    }
}

/// The bars as columns, in which begins are differences, lane by lane: the end of a lane is where its number ends.
pub fn columns(bars: &Bars, origin: i64) -> Value {
    let column = |value: &dyn Fn(&Bar) -> f64| bars.bars.iter().map(value).collect::<Vec<f64>>();
    let n_lanes = bars.bars.iter().map(|bar| bar.depth + 1).max().unwrap_or(0);
    let mut begins = Vec::with_capacity(n_lanes);
    for depth in 0..n_lanes {
        let lane = bars.bars.iter().filter(|bar| bar.depth == depth);
        begins.push(deltas(&lane.map(|bar| (bar.start - origin) as f64).collect::<Vec<f64>>()));
    }
    let mut columns = json!({
        "begin": begins,
        "dur": array(&column(&|bar| (bar.end - bar.start) as f64)),
        "name": array(&column(&|bar| bar.name as f64)),
    });
    if bars.n_merged > 0 {
        columns["count"] = array(&column(&|bar| bar.count as f64));
        columns["busy"] = array(&column(&|bar| bar.busy_ns as f64));
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_tracks_are_complete_and_large_ones_share_the_rest() {
        assert_eq!(shares(&[10, 1000, 500], 300), [10, 145, 145]);
        assert_eq!(shares(&[10, 20], 300), [10, 20]);
        assert_eq!(shares(&[], 300), [0; 0]);
    }

    #[test]
    fn short_slices_are_merged_and_none_is_lost() {
        let mut all = Vec::new();
        let mut merger = Merger { below_ns: 100, bars: &mut all, open: None };
        let slice = |start, end| SliceRef {
            id: trace_model::SliceId { track: 0, lane: 0, ordinal: 0 },
            event: trace_model::Event::slice(0, start, end),
        };
        for (name, (start, end)) in [(0, 10), (20, 50), (60, 90), (200, 400), (400, 410), (600, 605)].iter().enumerate()
        {
            merger.add(0, &slice(*start, *end), name);
        }
        merger.flush();
        let rows: Vec<_> = all.iter().map(|bar| (bar.start, bar.end, bar.count, bar.busy_ns, bar.name)).collect();
        assert_eq!(rows, [(0, 90, 3, 70, 1), (200, 400, 1, 200, 3), (400, 410, 1, 10, 4), (600, 605, 1, 5, 5)]);
    }
}
