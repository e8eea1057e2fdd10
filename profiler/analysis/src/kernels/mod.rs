//! Device time by kind of kernel: matrix products, attention, and so on.

mod kind;

pub use kind::KernelKind;

use crate::activity::{Activities, Activity};
use crate::nesting::inside_ns;
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::SliceRef;
use trace_store::Store;

/// The kernels, copies and collectives of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelKindRow {
    /// What they do.
    pub kind: KernelKind,
    /// How many began in the range.
    pub count: u64,
    /// Their time in the range, ns, added up over streams.
    pub ns: i64,
}

/// The op that launched a device's work: its site, by process and correlation of the launch.
pub(crate) type Launchers = FxHashMap<(u32, u32), u32>;

/// The device's work in a range by kind, the most time first: a kernel is of the kind of the op that launched it, else
/// of its own name's.
pub(crate) fn kernel_kinds(store: &Store, range: &Range<i64>, launchers: &Launchers) -> Vec<KernelKindRow> {
    let activities = Activities::new(store);
    // By site of the kernel, and of the op or none.
    let mut kinds: FxHashMap<(u32, Option<u32>), KernelKind> = FxHashMap::default();
    let mut rows: FxHashMap<KernelKind, (u64, i64)> = FxHashMap::default();
    for track in store.tracks() {
        for slice in track.lanes.iter().flat_map(|lane| lane.slices(range)) {
            let activity = activities.get(&slice);
            if !activity.is_device() {
                continue;
            }
            let op = launchers.get(&(track.process, slice.correlation)).copied();
            let kind = kinds.entry((slice.site, op)).or_insert_with(|| kind_of(store, activity, &slice, op));
            let (count, ns) = rows.entry(*kind).or_default();
            *count += u64::from(slice.start >= range.start);
            *ns += inside_ns(&slice, range);
        }
    }
    let mut rows: Vec<KernelKindRow> =
        rows.into_iter().map(|(kind, (count, ns))| KernelKindRow { kind, count, ns }).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.ns), row.kind));
    rows
}

fn kind_of(store: &Store, activity: Activity, slice: &SliceRef, op: Option<u32>) -> KernelKind {
    match activity {
        Activity::Collective => KernelKind::Communication,
        Activity::Copy => KernelKind::Memory,
        _ => {
            let op = op.and_then(|site| store.sites().get(site as usize)).map_or("", |site| site.name.as_str());
            KernelKind::new(store.slice_name(slice), op)
        }
    }
}
