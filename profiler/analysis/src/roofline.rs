//! Rooflines (Williams, Waterman, Patterson 2009): the floating-point operations per second that each op reached, and
//! the maximum that its device can reach at the same number of operations per byte of memory traffic.
//!
//! The work of an op is reported by its slices' arguments `flops` and `bytes_accessed` (XLA's cost analysis, in XPlane
//! traces), or by counters of its thread (`record --counters flops,cache-misses`). Nothing is estimated: an op without
//! either has no row.

use super::activity::Activities;
use super::counters::CounterTotals;
use super::ops::{OpRow, device_of};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;
use std::ops::Range;
use trace_model::{ArgsReader, SliceRef};
use trace_store::{Store, Track};

/// Floating-point operations per count of each counter (Intel's `FP_ARITH_INST_RETIRED`; a fused multiply-add counts
/// twice).
const FLOPS_PER_COUNT: [(&str, f64); 8] = [
    ("fp_arith_inst_retired.scalar_single", 1.0),
    ("fp_arith_inst_retired.128b_packed_single", 4.0),
    ("fp_arith_inst_retired.256b_packed_single", 8.0),
    ("fp_arith_inst_retired.512b_packed_single", 16.0),
    ("fp_arith_inst_retired.scalar_double", 1.0),
    ("fp_arith_inst_retired.128b_packed_double", 2.0),
    ("fp_arith_inst_retired.256b_packed_double", 4.0),
    ("fp_arith_inst_retired.512b_packed_double", 8.0),
];

/// Bytes that are loaded on a miss of the last-level cache.
const CACHE_LINE_BYTES: f64 = 64.0;

/// The limits in XPlane's device planes: name of the statistic, whether it limits operations (else bytes), and its
/// unit, per second.
const PEAKS: [(&str, bool, f64); 3] = [
    ("peak_teraflops_per_second", true, 1e12),
    ("peak_hbm_bw_gigabytes_per_second", false, 1e9),
    ("memory_bandwidth", false, 1.0),
];

/// Work, and the time that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes from and to the device's memory.
    pub bytes: f64,
    /// Duration, ns.
    pub ns: i64,
}

impl Work {
    fn add(&mut self, other: Work) {
        self.flops += other.flops;
        self.bytes += other.bytes;
        self.ns += other.ns;
    }

    /// Operations per second.
    #[must_use]
    pub fn flops_per_s(&self) -> f64 {
        self.flops * 1e9 / self.ns.max(1) as f64
    }

    /// Bytes per second.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes * 1e9 / self.ns.max(1) as f64
    }

    /// Arithmetic intensity: operations per byte. `None` where no memory was accessed.
    #[must_use]
    pub fn intensity(&self) -> Option<f64> {
        (self.bytes > 0.0).then(|| self.flops / self.bytes)
    }
}

/// The limit that keeps an op from being faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The device's arithmetic.
    Compute,
    /// The device's memory bandwidth.
    Memory,
}

impl Bound {
    /// The name: `compute` or `memory`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Bound::Compute => "compute",
            Bound::Memory => "memory",
        }
    }
}

/// The limits of a device; `None` where the trace does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Roof {
    /// Operations per second.
    pub flops_per_s: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
}

impl Roof {
    /// The intensity at which the two limits meet.
    #[must_use]
    pub fn ridge(&self) -> Option<f64> {
        self.flops_per_s.zip(self.bytes_per_s).map(|(flops, bytes)| flops / bytes)
    }

    /// The limit that is lower at this work's intensity; `None` unless both limits are known.
    #[must_use]
    pub fn bound(&self, work: &Work) -> Option<Bound> {
        let ridge = self.ridge()?;
        Some(if work.intensity().is_some_and(|at| at < ridge) { Bound::Memory } else { Bound::Compute })
    }

    /// The share of its limit that the work reached, 0..=1 where the reported limits are right; `None` unless both
    /// limits are known.
    #[must_use]
    pub fn share(&self, work: &Work) -> Option<f64> {
        Some(match self.bound(work)? {
            Bound::Compute => work.flops_per_s() / self.flops_per_s?,
            Bound::Memory => work.bytes_per_s() / self.bytes_per_s?,
        })
    }
}

/// The executions of one name on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct RooflineRow {
    /// The name, as in the op table.
    pub name: String,
    /// The category, as in the op table.
    pub category: String,
    /// Executions that reported their work.
    pub count: u64,
    /// The sum of the executions' work.
    pub work: Work,
}

/// The roofline of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roofline {
    /// The device, as in the op table; empty for a host.
    pub device: String,
    /// The device's limits.
    pub roof: Roof,
    /// The work of all ops; ops nested in an op that reported its work are not added again.
    pub total: Work,
    /// The ops, the longest time first.
    pub rows: Vec<RooflineRow>,
}

/// The rooflines of all devices with reported work, sorted by name. `ops` is the op table of the range.
#[must_use]
pub fn rooflines(store: &Store, range: &Range<i64>, counted: &CounterTotals, ops: &[OpRow]) -> Vec<Roofline> {
    let mut devices: FxHashMap<String, Roofline> = FxHashMap::default();
    add_reported(store, range, &mut devices);
    for op in ops {
        if let Some(work) = counted_work(counted, op) {
            let row =
                RooflineRow { name: op.name.clone(), category: op.category.clone(), count: op.figures.count, work };
            let roofline = roofline_of(&mut devices, &op.device);
            roofline.total.add(work);
            roofline.rows.push(row);
        }
    }
    let mut rooflines: Vec<Roofline> = devices.into_values().collect();
    for roofline in &mut rooflines {
        roofline.rows.sort_by(|a, b| b.work.ns.cmp(&a.work.ns).then_with(|| a.name.cmp(&b.name)));
        roofline.roof = roof_of(store, &roofline.device);
    }
    rooflines.sort_by(|a, b| a.device.cmp(&b.device));
    rooflines
}

fn roofline_of<'a>(devices: &'a mut FxHashMap<String, Roofline>, device: &str) -> &'a mut Roofline {
    let empty = || Roofline { device: device.to_owned(), ..Roofline::default() };
    devices.entry(device.to_owned()).or_insert_with(empty)
}

/// Returns the work that the counters of an op's thread counted in the op's self time.
fn counted_work(counted: &CounterTotals, op: &OpRow) -> Option<Work> {
    let flops = FLOPS_PER_COUNT.iter().filter_map(|(name, each)| Some(counted.value(&op.counts, name)? as f64 * each));
    let flops = flops.reduce(|a, b| a + b).filter(|flops| *flops > 0.0)?;
    let misses = counted.value(&op.counts, "cache-misses").unwrap_or(0);
    Some(Work { flops, bytes: misses as f64 * CACHE_LINE_BYTES, ns: op.figures.self_ns })
}

/// The arguments of a slice that reports its work.
#[derive(Deserialize)]
struct Cost {
    flops: Option<Value>,
    bytes_accessed: Option<Value>,
}

impl Cost {
    fn parse(text: &str) -> Option<Work> {
        if !text.contains("\"flops\"") && !text.contains("\"bytes_accessed\"") {
            return None;
        }
        let cost: Cost = serde_json::from_str(text).ok()?;
        let (flops, bytes) = (cost.flops.as_ref().and_then(number), cost.bytes_accessed.as_ref().and_then(number));
        flops.or(bytes)?;
        Some(Work { flops: flops.unwrap_or(0.0), bytes: bytes.unwrap_or(0.0), ns: 0 })
    }
}

/// Returns a number that is written as such, or as a text.
fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

/// Adds the work that slices report.
fn add_reported(store: &Store, range: &Range<i64>, devices: &mut FxHashMap<String, Roofline>) {
    let (activities, mut args) = (Activities::new(store), store.args().reader());
    // Whether the first slice with arguments of each site reported work: reading arguments may be slow, and most sites
    // report none.
    let mut has_work_by_site: FxHashMap<u32, bool> = FxHashMap::default();
    let mut rows: FxHashMap<(u32, String), (u64, Work)> = FxHashMap::default();
    for track in store.tracks() {
        let mut outer_end = i64::MIN;
        for (slice, mut work) in slices_with_work(track, range, &mut args, &mut has_work_by_site) {
            let inside = slice.end.min(range.end) - slice.start.max(range.start);
            let part = inside as f64 / slice.dur().max(1) as f64;
            if !activities.get(&slice).is_work() || inside <= 0 {
                continue;
            }
            (work.flops, work.bytes, work.ns) = (work.flops * part, work.bytes * part, inside);
            let device = device_of(store, &slice);
            if slice.end > outer_end {
                roofline_of(devices, device).total.add(work);
                outer_end = slice.end;
            }
            let (count, sum) = rows.entry((slice.site, device.to_owned())).or_default();
            *count += 1;
            sum.add(work);
        }
    }
    for ((site, device), (count, work)) in rows {
        let Some(site) = store.sites().get(site as usize) else { continue };
        let row = RooflineRow { name: site.name.clone(), category: site.category_name.clone(), count, work };
        roofline_of(devices, &device).rows.push(row);
    }
}

/// The slices of a track that report their work, the outer before the inner.
fn slices_with_work(
    track: &Track,
    range: &Range<i64>,
    args: &mut ArgsReader<'_>,
    has_work_by_site: &mut FxHashMap<u32, bool>,
) -> Vec<(SliceRef, Work)> {
    let mut found = Vec::new();
    for slice in track.lanes.iter().flat_map(|lane| lane.slices(range)).filter(|s| s.args != trace_model::NO_ARGS) {
        if has_work_by_site.get(&slice.site) == Some(&false) {
            continue;
        }
        let work = args.get(slice.args).and_then(Cost::parse);
        has_work_by_site.entry(slice.site).or_insert(work.is_some());
        found.extend(work.map(|work| (slice, work)));
    }
    found.sort_by_key(|(s, _)| (s.start, std::cmp::Reverse(s.end), s.id.lane));
    found
}

/// A device's limits, from the counters that are named after the device and a statistic of [`PEAKS`].
fn roof_of(store: &Store, device: &str) -> Roof {
    let mut roof = Roof::default();
    for counter in store.counters() {
        let Some(site) = store.sites().get(counter.site as usize) else { continue };
        let Some(stat) = site.name.strip_prefix(device).and_then(|rest| rest.strip_prefix(' ')) else { continue };
        let Some(value) = counter.value.back().copied().filter(|v| v.is_finite() && *v > 0.0) else { continue };
        if let Some((_, is_flops, unit)) = PEAKS.iter().find(|(name, ..)| *name == stat) {
            *(if *is_flops { &mut roof.flops_per_s } else { &mut roof.bytes_per_s }) = Some(value * unit);
        }
    }
    roof
}

/// Whether a statistic of a device's plane is one of its limits.
pub fn is_peak(stat: &str) -> bool {
    PEAKS.iter().any(|(name, ..)| *name == stat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::op_table;
    use trace_store::testkit;

    fn lines(text: &str) -> Vec<Roofline> {
        let store = testkit::store(text);
        let (counted, ops) = op_table(&store, store.range(), &[]);
        rooflines(&store, &store.range(), &counted, &ops)
    }

    #[test]
    fn slices_report_what_they_did() {
        // A loop of 100 ns says 1,000 operations, its body 800 of them; another kernel 300 in 50.
        let found = lines(
            r#"gpu7 kernel: while 0..100 says {"flops":1000,"bytes_accessed":"500"}
             >gpu7 kernel: dot 10..90 says {"flops":800,"bytes_accessed":100}
             gpu7 kernel: dot 100..120 says {"flops":200,"bytes_accessed":100}
             gpu7 kernel: copy 120..150 says {"bytes_accessed":7}
             gpu7 kernel: add 150..200 says {"flops":300,"bytes_accessed":3000}"#,
        );
        assert_eq!(found.len(), 1);
        let line = &found[0];
        assert_eq!((line.device.as_str(), line.roof), ("GPU 1", Roof::default()));
        assert_eq!(line.total, Work { flops: 1500.0, bytes: 3607.0, ns: 200 });
        let rows: Vec<(&str, u64, Work)> = line.rows.iter().map(|r| (r.name.as_str(), r.count, r.work)).collect();
        let work = |flops, bytes, ns| Work { flops, bytes, ns };
        let expected = [
            ("dot", 2, work(1000.0, 200.0, 100)),
            ("while", 1, work(1000.0, 500.0, 100)),
            ("add", 1, work(300.0, 3000.0, 50)),
            ("copy", 1, work(0.0, 7.0, 30)),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_range_takes_its_part_of_a_slice() {
        let store = testkit::store(r#"gpu7 kernel: dot 0..100 says {"flops":1000,"bytes_accessed":10}"#);
        let (counted, ops) = op_table(&store, 25..75, &[]);
        let line = &rooflines(&store, &(25..75), &counted, &ops)[0];
        assert_eq!(line.total, Work { flops: 500.0, bytes: 5.0, ns: 50 });
    }

    #[test]
    fn counters_report_what_a_thread_did() {
        let found = lines(
            "w0 MatMul 0..100
             w0 count fp_arith_inst_retired.256b_packed_single 0 0
             w0 count fp_arith_inst_retired.256b_packed_single 100 1000
             w0 count fp_arith_inst_retired.scalar_single 0 0
             w0 count fp_arith_inst_retired.scalar_single 100 40
             w0 count cache-misses 0 0
             w0 count cache-misses 100 10",
        );
        assert_eq!(found[0].rows[0].work, Work { flops: 8040.0, bytes: 640.0, ns: 100 });
        assert_eq!(found[0].total, found[0].rows[0].work);
    }

    #[test]
    fn what_reports_nothing_has_no_roofline() {
        assert_eq!(lines(r#"gpu7 kernel: dot 0..100 says {"flops":"many"}"#), []);
        assert_eq!(lines(r#"gpu7 kernel: dot 0..100 says {"flops":-1}"#), []);
        assert_eq!(lines("w0 MatMul 0..100\nw0 count cycles 0 0\nw0 count cycles 100 10"), []);
    }

    #[test]
    fn the_lower_limit_holds() {
        let roof = Roof { flops_per_s: Some(100e9), bytes_per_s: Some(10e9) };
        assert_eq!(roof.ridge(), Some(10.0));
        let low = Work { flops: 50.0, bytes: 100.0, ns: 20 };
        assert_eq!((roof.bound(&low), roof.share(&low)), (Some(Bound::Memory), Some(0.5)));
        let high = Work { flops: 2000.0, bytes: 100.0, ns: 80 };
        assert_eq!((roof.bound(&high), roof.share(&high)), (Some(Bound::Compute), Some(0.25)));
        let none = Work { flops: 2000.0, bytes: 0.0, ns: 80 };
        assert_eq!((none.intensity(), roof.bound(&none)), (None, Some(Bound::Compute)));
        let half = Roof { flops_per_s: None, ..roof };
        assert_eq!((half.bound(&low), half.share(&low)), (None, None));
    }
}
