//! Counters of processor and kernel, attributed to the slices that threads ran (`stepscope record --counters`).
//!
//! Between two points a thread's counter rises linearly. Each rise is divided among the slices that ran meanwhile, by
//! the length of their pieces (the parts without nested slices); the rest is counted outside. All numbers are integers,
//! and the parts add up to the total.

use super::activity::{Activities, Activity};
use super::lines::flatten;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::ops::Range;
use trace_model::{Counter, SliceRef, TrackKind};
use trace_store::{Store, Track};

/// The counts of a range, in all threads whose counters were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterTotals {
    /// The counters, by their names in `perf stat`.
    pub names: Vec<String>,
    /// The total count of each counter.
    pub total: Vec<u64>,
    /// The part of each counter's total that lies in no slice of work.
    pub outside: Vec<u64>,
}

impl CounterTotals {
    /// Whether counters of threads were recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The value of the counter with this name in a row of values, such as [`CounterTotals::total`].
    #[must_use]
    pub fn value(&self, values: &[u64], name: &str) -> Option<u64> {
        values.get(self.names.iter().position(|n| n == name)?).copied()
    }

    /// Instructions per cycle in a row of values.
    #[must_use]
    pub fn per_cycle(&self, values: &[u64]) -> Option<f64> {
        ratio(self.value(values, "instructions")?, self.value(values, "cycles")?)
    }

    /// Cache misses per 1,000 instructions in a row of values.
    #[must_use]
    pub fn misses_per_1000(&self, values: &[u64]) -> Option<f64> {
        ratio(self.value(values, "cache-misses")?, self.value(values, "instructions")?).map(|misses| misses * 1000.0)
    }
}

fn ratio(count: u64, per: u64) -> Option<f64> {
    (per > 0).then(|| count as f64 / per as f64)
}

/// Interpolates a counter at increasing times.
struct CounterCursor<'a> {
    counter: &'a Counter,
    /// The number of points at or before the time of the last query.
    n_passed: usize,
}

impl CounterCursor<'_> {
    /// The count up to a time.
    fn count_at(&mut self, time: i64) -> u64 {
        let Counter { time: times, value: values, .. } = self.counter;
        while times.get(self.n_passed).is_some_and(|t| *t <= time) {
            self.n_passed += 1;
        }
        let value_at = |i: usize| values.get(i).map_or(0, |v| v.max(0.0) as u64);
        let Some(last) = self.n_passed.checked_sub(1) else { return value_at(0) };
        let (Some(from), Some(to)) = (times.get(last), times.get(self.n_passed)) else { return value_at(last) };
        let rise = u128::from(value_at(self.n_passed).saturating_sub(value_at(last)));
        let (part, all) = (i128::from(time - from).unsigned_abs(), i128::from(to - from).unsigned_abs().max(1));
        value_at(last) + (rise * part / all) as u64
    }
}

/// Counters by (process, thread), each with its row among the names.
type CountersByThread<'a> = FxHashMap<(u32, u32), Vec<(usize, &'a Counter)>>;

/// The counters of threads, and their names.
fn thread_counters(store: &Store) -> (Vec<String>, CountersByThread<'_>) {
    let (mut names, mut threads): (Vec<String>, CountersByThread<'_>) = (Vec::new(), CountersByThread::default());
    for counter in store.counters() {
        let Some(track) = counter.track.and_then(|id| store.track(id)) else { continue };
        let Some(site) = store.sites().get(counter.site as usize) else { continue };
        let row = names.iter().position(|name| *name == site.name).unwrap_or_else(|| {
            names.push(site.name.clone());
            names.len() - 1
        });
        threads.entry((track.process, track.tid)).or_default().push((row, counter));
    }
    (names, threads)
}

/// The slices of all tracks of a thread by start, outer before inner, without those in which the thread did not run.
fn running_slices(tracks: &[&Track], activities: &Activities<'_>, range: &Range<i64>) -> Vec<SliceRef> {
    let all = tracks.iter().flat_map(|t| &t.lanes).flat_map(|lane| lane.slices(range));
    let has_run = |s: &SliceRef| !matches!(activities.get(s), Activity::Asleep | Activity::Runnable);
    let mut slices: Vec<SliceRef> = all.filter(has_run).collect();
    slices.sort_by_key(|s| (s.start, std::cmp::Reverse(s.end), s.id.lane));
    slices
}

/// The counters' totals of a range, and their values by a key of the slices, in the order of the names.
pub(crate) fn count_by_key<K: Eq + Hash>(
    store: &Store,
    range: &Range<i64>,
    key: impl Fn(&SliceRef) -> K,
) -> (CounterTotals, FxHashMap<K, Vec<u64>>) {
    let (names, threads) = thread_counters(store);
    let (activities, n) = (Activities::new(store), names.len());
    let mut totals = CounterTotals { total: vec![0; n], outside: vec![0; n], names };
    let mut rows: FxHashMap<K, Vec<u64>> = FxHashMap::default();
    let mut tracks: FxHashMap<(u32, u32), Vec<&Track>> = FxHashMap::default();
    for track in store.tracks().iter().filter(|t| matches!(t.kind, TrackKind::Thread | TrackKind::Worker)) {
        tracks.entry((track.process, track.tid)).or_default().push(track);
    }
    for (thread, counters) in threads {
        let slices = running_slices(tracks.get(&thread).map_or(&[], Vec::as_slice), &activities, range);
        let pieces = flatten(&activities, &slices);
        for (row, counter) in counters {
            let mut cursor = CounterCursor { counter, n_passed: 0 };
            let before = cursor.count_at(range.start);
            let mut inside = 0;
            for piece in pieces.iter().filter(|p| p.activity.is_work() && p.start < range.end && p.end > range.start) {
                let from = cursor.count_at(piece.start.max(range.start));
                let part = cursor.count_at(piece.end.min(range.end)).saturating_sub(from);
                if part > 0 {
                    rows.entry(key(&slices[piece.slice as usize])).or_insert_with(|| vec![0; n])[row] += part;
                    inside += part;
                }
            }
            let total = cursor.count_at(range.end).saturating_sub(before);
            totals.total[row] += total;
            totals.outside[row] += total.saturating_sub(inside);
        }
    }
    (totals, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::op_table;
    use proptest::prelude::*;
    use trace_store::testkit;

    #[test]
    fn a_rise_goes_to_what_ran() {
        // 100 faults from 0 to 100: A runs for 30 of them, of which B has 10; C in its second half for 40, 10 of them
        // after the last point.
        let store = testkit::store(
            "w0 A 0..30
             >w0 B 10..20
             w0 C 60..110
             w0 idle 40..60
             w1 D 0..100
             w0 count page-faults 0 0
             w0 count page-faults 100 100
             w1 count page-faults 0 7
             w1 count page-faults 50 7
             w1 count page-faults 100 9",
        );
        let rows = |range: Range<i64>| {
            let (counted, ops) = op_table(&store, range, &[]);
            let mut rows: Vec<(String, u64)> = ops.iter().map(|op| (op.name.clone(), op.counts[0])).collect();
            rows.sort();
            assert_eq!(counted.names, ["page-faults"]);
            assert_eq!(rows.iter().map(|r| r.1).sum::<u64>() + counted.outside[0], counted.total[0]);
            (rows, counted.total[0])
        };
        let of = |a, b, c, d| [("A", a), ("B", b), ("C", c), ("D", d)].map(|(name, n)| (name.to_owned(), n)).to_vec();
        assert_eq!(rows(0..110), (of(20, 10, 40, 2), 102));
        assert_eq!(rows(0..50), ([("A", 20), ("B", 10), ("D", 0)].map(|(n, v)| (n.to_owned(), v)).to_vec(), 50));
        assert_eq!(rows(50..110).1, 52, "ranges that adjoin add up");
    }

    #[test]
    fn ratios_need_both_counters() {
        let names = ["cycles", "instructions", "cache-misses"].map(str::to_owned).to_vec();
        let counted = CounterTotals { names, ..CounterTotals::default() };
        assert_eq!(counted.per_cycle(&[400, 1_000, 5]), Some(2.5));
        assert_eq!(counted.misses_per_1000(&[400, 1_000, 5]), Some(5.0));
        assert_eq!((counted.per_cycle(&[0, 0, 0]), counted.misses_per_1000(&[9, 0, 0])), (None, None));
        assert_eq!(CounterTotals::default().per_cycle(&[]), None);
    }

    proptest! {
        #[test]
        fn parts_add_up(
            slices in prop::collection::vec((0i64..1000, 1i64..300, 0u8..3), 0..12),
            points in prop::collection::vec((0i64..200, 0u64..1_000_000), 0..12),
            cut in 0i64..1200,
        ) {
            let mut text = String::new();
            for (n, (start, dur, depth)) in slices.iter().enumerate() {
                text += &format!("{}w0 {} {start}..{}\n", ">".repeat(*depth as usize), ["A", "B", "C"][n % 3], start + dur);
            }
            let (mut time, mut value) = (0, 0);
            for (step, rise) in &points {
                (time, value) = (time + step, value + rise);
                text += &format!("w0 count cycles {time} {value}\n");
            }
            let store = testkit::store(&text);
            let total = |range: Range<i64>| {
                let (counted, rows) = count_by_key(&store, &range, |s| s.site);
                let inside: u64 = rows.values().map(|v| v[0]).sum();
                let whole = counted.total.first().copied().unwrap_or(0);
                assert_eq!(inside + counted.outside.first().copied().unwrap_or(0), whole);
                whole
            };
            let first = points.first().map_or(0, |p| p.1);
            prop_assert_eq!(total(-1..i64::MAX), value - first);
            prop_assert_eq!(total(-1..cut) + total(cut..i64::MAX), value - first);
        }
    }
}
