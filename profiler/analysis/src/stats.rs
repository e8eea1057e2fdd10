//! Statistics over a range of time: by name of the work, by node, by track. Pure functions over the store.
//!
//! For a half-open range, over the slices that touch it:
//! * `total_ns` and `self_ns` are the parts inside the range, so that they add up over adjacent ranges;
//! * `count`, `mean_ns`, `p50_ns`, `p99_ns`, `min_ns`, `max_ns` are of complete slices;
//! * the self time of a slice is the time that no slice nested directly in it on the same track covers; the self time
//!   of a node includes that of its shards, on all threads;
//! * percentiles are exact, by nearest rank.

use crate::activity::{Activities, Activity};
use crate::intervals::union_ns;
use crate::nesting::{inside_ns, self_times};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::ops::Range;
use trace_model::{Category, NO_NODE, SliceRef, TrackId};
use trace_store::{Store, Track};

/// The figures of a group of slices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Slices that touch the range.
    pub count: u64,
    /// The slices' time inside the range.
    pub total_ns: i64,
    /// The part of `total_ns` that no nested slice covers.
    pub self_ns: i64,
    /// Mean duration.
    pub mean_ns: f64,
    /// Median duration.
    pub p50_ns: i64,
    /// 99th percentile of the duration.
    pub p99_ns: i64,
    /// Shortest duration.
    pub min_ns: i64,
    /// Longest duration.
    pub max_ns: i64,
    /// Share of the `self_ns` of all groups, 0..=1.
    pub share: f64,
}

/// The figures of all slices with one name: an op type, a kernel, a call, a span.
#[derive(Clone, Debug, PartialEq)]
pub struct OpStat {
    /// The slices' name.
    pub op: String,
    /// The category as recorded: `op`, `kernel`, `shard`, ...
    pub category: String,
    /// Row of the sites.
    pub site: u32,
    /// The slices' figures.
    pub figures: Figures,
}

/// A node's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStat {
    /// Row of the nodes.
    pub node: u32,
    /// Full name.
    pub name: String,
    /// Op type.
    pub op: String,
    /// Device.
    pub device: String,
    /// The node's figures.
    pub figures: Figures,
}

/// The times of a track in a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrackUse {
    /// The track.
    pub track: TrackId,
    /// Time in ops and shards, kernels, copies, collectives, launches and the making of input, or of a CPU in which
    /// threads ran, ns; overlapping slices count once. In a trace without such slices, time in any slice that is no
    /// wait; on a track that has only scheduling, the time on a CPU.
    pub busy_ns: i64,
    /// Time in waits and synchronisations, ns; on a track that has only scheduling, the time off the CPU.
    pub wait_ns: i64,
    /// `busy_ns` over the range's length, 0..=1.
    pub utilisation: f64,
}

/// The figures by name of slices that work or wait for a device, the longest time first. Steps, waits for work and
/// scheduling are left out.
#[must_use]
pub fn op_stats(store: &Store, range: Range<i64>) -> Vec<OpStat> {
    let activities = Activities::new(store);
    let group_of = |slice: &SliceRef| match activities.get(slice) {
        activity if activity.is_work() || activity == Activity::Sync => Some((slice.site, true)),
        _ => None,
    };
    groups(store, &range, group_of)
        .into_iter()
        .filter_map(|(site, figures)| {
            let info = store.sites().get(site as usize)?;
            Some(OpStat { op: info.name.clone(), category: info.category_name.clone(), site, figures })
        })
        .collect()
}

/// The figures by graph node, the longest time first: of ops, and of devices' work that a trace assigns to nodes.
#[must_use]
pub fn node_stats(store: &Store, range: Range<i64>) -> Vec<NodeStat> {
    let group_of = |slice: &SliceRef| match store.category(slice) {
        Category::Op => Some((slice.node, true)),
        Category::Kernel | Category::Copy | Category::Collective if slice.node != NO_NODE => Some((slice.node, true)),
        Category::Shard if slice.node != NO_NODE => Some((slice.node, false)),
        _ => None,
    };
    groups(store, &range, group_of)
        .into_iter()
        .filter_map(|(node, figures)| {
            let info = store.nodes().get(node as usize)?;
            let (name, op, device) = (info.name.clone(), info.op.clone(), info.device.clone());
            Some(NodeStat { node, name, op, device, figures })
        })
        .collect()
}

/// The times of each track with slices in a range, in the store's order.
#[must_use]
pub fn track_use(store: &Store, range: Range<i64>) -> Vec<TrackUse> {
    let length = range.end.saturating_sub(range.start).max(1);
    let mut rows: Vec<TrackUse> = store
        .tracks()
        .iter()
        .filter(|track| track.n_slices() > 0)
        .map(|track| TrackUse { track: track.id, busy_ns: 0, wait_ns: 0, utilisation: 0.0 })
        .collect();
    let has_work = store.sites().iter().any(|site| is_work(site.category) && site.category != Category::Running);
    let is_busy =
        |category: Category| is_work(category) || (!has_work && matches!(category, Category::Other | Category::Python));
    let is_wait = |category: Category| matches!(category, Category::Wait | Category::Sync);
    for part in store.parts(range) {
        for row in &mut rows {
            let Some(track) = store.track(row.track) else { continue };
            if let Some((on, off)) = cpu_times(store, track, &part) {
                row.busy_ns += on;
                row.wait_ns += off;
                continue;
            }
            row.busy_ns += covered_ns(store, track, &part, is_busy);
            row.wait_ns += covered_ns(store, track, &part, is_wait);
        }
    }
    for row in &mut rows {
        row.utilisation = row.busy_ns as f64 / length as f64;
    }
    rows
}

/// Whether a slice of this category makes its track busy.
fn is_work(category: Category) -> bool {
    use Category as C;
    matches!(category, C::Op | C::Shard | C::Kernel | C::Copy | C::Collective | C::Launch | C::Input | C::Running)
}

/// The time on and off the CPU from a thread's first wait for a CPU to its last; `None` for a track that has other
/// slices.
fn cpu_times(store: &Store, track: &Track, range: &Range<i64>) -> Option<(i64, i64)> {
    let mut lanes = track.lanes.iter().filter(|lane| !lane.is_empty());
    let (lane, None) = (lanes.next()?, lanes.next()) else { return None };
    let recorded = lane.range()?;
    let range = recorded.start.max(range.start)..recorded.end.min(range.end);
    let mut off = 0;
    for slice in lane.slices(&range) {
        if store.category(&slice) != Category::OffCpu {
            return None;
        }
        off += inside_ns(&slice, &range);
    }
    (off > 0).then_some(((range.end - range.start - off).max(0), off))
}

/// The time in the range that slices of matching categories cover, ns.
fn covered_ns(store: &Store, track: &Track, range: &Range<i64>, is_counted_category: impl Fn(Category) -> bool) -> i64 {
    let slices =
        track.lanes.iter().flat_map(|lane| lane.slices(range)).filter(|s| is_counted_category(store.category(s)));
    union_ns(slices.map(|s| (s.start.max(range.start), s.end.min(range.end))).collect())
}

/// Collects durations and sums of one group.
#[derive(Default)]
pub(crate) struct Group {
    durs: Vec<i64>,
    total_ns: i64,
    self_ns: i64,
}

impl Group {
    /// Adds a slice: its duration, or `None` if the slice was counted before; its time inside the range; its self time.
    pub(crate) fn add(&mut self, dur: Option<i64>, inside_ns: i64, self_ns: i64) {
        self.durs.extend(dur);
        self.total_ns += inside_ns;
        self.self_ns += self_ns;
    }

    /// Returns the figures. `all_ns` is the self time of all groups.
    pub(crate) fn figures(mut self, all_ns: i64) -> Figures {
        let n = self.durs.len();
        let mut rank = |percent: usize| match n {
            0 => 0,
            _ => *self.durs.select_nth_unstable((n * percent).div_ceil(100).clamp(1, n) - 1).1,
        };
        let (p50_ns, p99_ns, min_ns, max_ns) = (rank(50), rank(99), rank(0), rank(100));
        let sum: f64 = self.durs.iter().map(|d| *d as f64).sum();
        Figures {
            count: n as u64,
            total_ns: self.total_ns,
            self_ns: self.self_ns,
            mean_ns: sum / n.max(1) as f64,
            p50_ns,
            p99_ns,
            min_ns,
            max_ns,
            share: if all_ns > 0 { self.self_ns as f64 / all_ns as f64 } else { 0.0 },
        }
    }
}

/// The figures of groups of slices, the longest time first. `group_of` returns a slice's group and whether the slice
/// counts in it. A slice that does not count (the shard of an op) adds its self time only.
fn groups(
    store: &Store,
    range: &Range<i64>,
    group_of: impl Fn(&SliceRef) -> Option<(u32, bool)>,
) -> Vec<(u32, Figures)> {
    let mut groups: FxHashMap<u32, Group> = FxHashMap::default();
    let mut all_ns = 0;
    // Times of adjacent parts add up; a slice is counted in the first part that it touches.
    for part in store.parts(range.clone()) {
        for track in store.tracks() {
            self_times(track, &part, |slice, self_ns| {
                let Some((key, is_counted)) = group_of(slice) else { return };
                let group = groups.entry(key).or_default();
                all_ns += self_ns;
                let is_first = slice.start >= part.start || part.start == range.start;
                let dur = (is_counted && is_first).then_some(slice.dur());
                group.add(dur, if is_counted { inside_ns(slice, &part) } else { 0 }, self_ns);
            });
        }
    }
    let mut rows: Vec<(u32, Figures)> = groups.into_iter().map(|(k, g)| (k, g.figures(all_ns))).collect();
    rows.sort_by_key(|(key, f)| (Reverse(f.total_ns), *key));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_store::testkit;

    #[test]
    fn figures_by_hand() {
        // MatMul: 10, 20 and 60 long; the last with a Cast of 15 nested in it.
        let store = testkit::store(
            "step 1: 0..200
             w0 a/MatMul 0..10
             w0 a/MatMul 20..40
             >w0 Cast 110..125
             w0 b/MatMul 100..160",
        );
        let ops = op_stats(&store, store.range());
        let names: Vec<&str> = ops.iter().map(|o| o.op.as_str()).collect();
        assert_eq!(names, ["MatMul", "Cast"]);
        let f = ops[0].figures;
        assert_eq!((f.count, f.total_ns, f.self_ns, f.mean_ns), (3, 90, 75, 30.0));
        assert_eq!((f.p50_ns, f.p99_ns, f.min_ns, f.max_ns), (20, 60, 10, 60));
        assert!((f.share - 75.0 / 90.0).abs() < 1e-12, "of the self time: nothing is counted twice");
        // Ranges that adjoin add up.
        let parts: i64 = [0..30, 30..115, 115..200].map(|r| op_stats(&store, r)[0].figures.self_ns).iter().sum();
        assert_eq!(parts, 75);
        assert_eq!(node_stats(&store, store.range())[0].name, "b/MatMul");
        let used = track_use(&store, 0..200);
        assert_eq!(used.iter().map(|u| u.busy_ns).collect::<Vec<_>>(), [0, 90]);
    }
}
