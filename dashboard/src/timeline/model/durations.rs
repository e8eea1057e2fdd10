//! Durations of the slices of one name in a range: count, sum, mean and distribution.

use std::ops::Range;
use trace_model::{Category, SiteInfo};
use trace_store::Store;
use ui::natural;

/// Bars of a histogram, one for each power of two ns: up to 2^47 ns, a day and a half.
pub const BARS: usize = 48;

/// The distribution of the durations of one name's slices.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationHistogram {
    pub name: String,
    /// The slices' category: `op`, `kernel`, ...
    pub category: String,
    pub count: u64,
    /// Time of the slices inside the range, ns.
    pub total_ns: i64,
    /// Mean of the slices' durations, including their parts outside the range, ns.
    pub mean_ns: i64,
    pub min_ns: i64,
    pub max_ns: i64,
    /// The number of slices of 2^i ns to below 2^(i+1) ns.
    pub bars: [u32; BARS],
}

/// The durations of every name in a range, the greatest total time first. Reads every slice: not for the UI thread.
pub fn duration_histograms(store: &Store, range: &Range<i64>) -> Vec<DurationHistogram> {
    let empty = |site: &SiteInfo| DurationHistogram {
        name: site.name.clone(),
        category: site.category_name.clone(),
        count: 0,
        total_ns: 0,
        mean_ns: 0,
        min_ns: i64::MAX,
        max_ns: 0,
        bars: [0; BARS],
    };
    let mut rows: Vec<Option<DurationHistogram>> = vec![None; store.sites().len()];
    let lanes = store.tracks().iter().flat_map(|t| &t.lanes);
    for slice in lanes.flat_map(|lane| lane.slices(range)) {
        let Some(site) = store.sites().get(slice.site as usize).filter(|s| s.category != Category::Wait) else {
            continue;
        };
        let Some(row) = rows.get_mut(slice.site as usize) else { continue };
        let row = row.get_or_insert_with(|| empty(site));
        let dur = slice.dur().max(0);
        row.count += 1;
        row.total_ns += slice.end.min(range.end) - slice.start.max(range.start);
        // The sum, until it is divided below.
        row.mean_ns = row.mean_ns.saturating_add(dur);
        row.min_ns = row.min_ns.min(dur);
        row.max_ns = row.max_ns.max(dur);
        row.bars[(dur.max(1).ilog2() as usize).min(BARS - 1)] += 1;
    }
    let mut out: Vec<DurationHistogram> = rows.into_iter().flatten().collect();
    out.iter_mut().for_each(|row| row.mean_ns /= (row.count as i64).max(1));
    out.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| natural::order(&a.name, &b.name)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::demo;

    #[test]
    fn counts_times_and_bars_of_a_name() {
        let store = demo(3);
        let all = duration_histograms(&store, &store.range());
        let names: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
        assert!(names.contains(&"train") && !names.contains(&"idle"), "{names:?}");
        let add = all.iter().find(|s| s.name == "Add").unwrap();
        assert_eq!((add.count, add.total_ns, add.min_ns, add.max_ns), (3, 24_000, 8_000, 8_000));
        assert_eq!(add.bars[12], 3, "8,000 ns lie from 4,096 to 8,192");
        let part = duration_histograms(&store, &(76_000..80_000));
        let add = part.iter().find(|s| s.name == "Add").unwrap();
        assert_eq!((add.count, add.total_ns), (1, 4_000), "time inside");
        assert_eq!((add.mean_ns, add.max_ns), (8_000, 8_000), "lengths whole");
    }
}
