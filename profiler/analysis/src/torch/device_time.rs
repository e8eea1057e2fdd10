//! The time of a device's work, by the call that enqueued it.

use crate::activity::Activities;
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::{NO_NODE, SliceRef};
use trace_store::Store;

/// Time inside a range, ns, by correlation.
pub(crate) struct DeviceTimes {
    /// By process of the work, and correlation.
    by_process: FxHashMap<(u32, u32), i64>,
    /// By correlation, where the work of one process only has it.
    alone: FxHashMap<u32, Option<(u32, i64)>>,
}

impl DeviceTimes {
    pub(crate) fn new(store: &Store, range: &Range<i64>) -> DeviceTimes {
        let activities = Activities::new(store);
        let mut times = DeviceTimes { by_process: FxHashMap::default(), alone: FxHashMap::default() };
        for track in store.tracks() {
            for slice in track.lanes.iter().flat_map(|lane| lane.slices(range)) {
                if activities.get(&slice).is_device() && slice.correlation != 0 && slice.correlation != NO_NODE {
                    times.add(track.process, slice.correlation, crate::nesting::inside_ns(&slice, range));
                }
            }
        }
        times
    }

    fn add(&mut self, process: u32, correlation: u32, ns: i64) {
        *self.by_process.entry((process, correlation)).or_default() += ns;
        let alone = self.alone.entry(correlation).or_insert(Some((process, 0)));
        *alone = alone.filter(|(other, _)| *other == process).map(|(process, sum)| (process, sum + ns));
    }

    /// The work that a call of a process enqueued; that of another process where no other has its correlation, since
    /// some tools list devices as processes.
    pub(crate) fn of_call(&self, process: u32, call: &SliceRef) -> i64 {
        let of_process = self.by_process.get(&(process, call.correlation)).copied();
        let alone = || self.alone.get(&call.correlation).copied().flatten().map(|(_, ns)| ns);
        of_process.or_else(alone).unwrap_or(0)
    }
}
