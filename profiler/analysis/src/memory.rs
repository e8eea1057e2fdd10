//! Memory over time, by device, with the bytes of each node at the peak.

use rustc_hash::FxHashMap;
use trace_model::{Counter, MemoryEvent};
use trace_store::Store;

/// The memory of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// The device, as the events name it; with the process if several processes use one name.
    pub device: String,
    /// The times at which the allocated bytes changed, ns from the origin, and the bytes from then on: as a counter
    /// reports them, else the sum of the events.
    pub points: Vec<(i64, i64)>,
    /// The largest number of allocated bytes.
    pub peak_bytes: i64,
    /// The time at which the peak was first reached, ns from the origin.
    pub peak_time: i64,
    /// The bytes that were live at the peak, by node: full name (empty if the events name none) and bytes, the largest
    /// first.
    pub live_at_peak: Vec<(String, i64)>,
    /// The other bytes at the peak: allocated before the recording began, or in pieces too small for events of their
    /// own.
    pub rest_at_peak: i64,
}

/// The memory of each device with allocations or frees, the largest peak first.
#[must_use]
pub fn memory_timelines(store: &Store) -> Vec<DeviceMemory> {
    let mut by_device: FxHashMap<(u32, u32), Vec<&MemoryEvent>> = FxHashMap::default();
    for event in store.memory() {
        let process = store.track(event.track).map_or(u32::MAX, |track| track.process);
        by_device.entry((process, event.site)).or_default().push(event);
    }
    let name = |site: u32| store.sites().get(site as usize).map_or("", |site| &site.name);
    let mut n_devices: FxHashMap<&str, usize> = FxHashMap::default();
    by_device.keys().for_each(|(_, site)| *n_devices.entry(name(*site)).or_default() += 1);
    let counters = store.counters().iter().filter(|c| c.track.is_none() && !c.time.is_empty());
    let reported: FxHashMap<(u32, u32), &Counter> = counters.map(|c| ((c.process, c.site), c)).collect();
    let mut devices: Vec<DeviceMemory> = by_device
        .iter()
        .map(|(&(process, site), events)| {
            let device = match store.processes().get(process as usize) {
                Some(process) if n_devices[name(site)] > 1 => format!("{} of {}", name(site), process.name),
                _ => name(site).to_owned(),
            };
            // Events are stored thread by thread.
            let mut events = events.clone();
            events.sort_by_key(|event| event.time);
            timeline(store, device, reported.get(&(process, site)).copied(), &events)
        })
        .collect();
    devices.sort_by(|a, b| b.peak_bytes.cmp(&a.peak_bytes).then_with(|| a.device.cmp(&b.device)));
    devices
}

fn timeline(store: &Store, device: String, reported: Option<&Counter>, events: &[&MemoryEvent]) -> DeviceMemory {
    let sums: Vec<i64> = events
        .iter()
        .scan(0i64, |sum, event| {
            *sum = sum.saturating_add(event.bytes);
            Some(*sum)
        })
        .collect();
    let all: Vec<(i64, i64)> = match reported {
        Some(counter) => counter.time.iter().copied().zip(counter.value.iter().map(|value| *value as i64)).collect(),
        None => events.iter().map(|event| event.time).zip(sums.iter().copied()).collect(),
    };
    let (points, (peak_time, peak_bytes)) = (last_of_each_time(&all), first_peak(&all));
    // If several events have the time of the peak, the peak is after the event with the largest sum.
    let n_before = events.partition_point(|event| event.time < peak_time);
    let n_until = events.partition_point(|event| event.time <= peak_time);
    let n_live = (n_before..=n_until).rev().max_by_key(|n| n.checked_sub(1).map_or(0, |last| sums[last])).unwrap_or(0);
    let live_at_peak = live_by_node(store, &events[..n_live]);
    let rest_at_peak = (peak_bytes - live_at_peak.iter().map(|(_, bytes)| bytes).sum::<i64>()).max(0);
    DeviceMemory { device, points, peak_bytes, peak_time, live_at_peak, rest_at_peak }
}

/// Returns the bytes that are live after these events, by node, the largest first.
fn live_by_node(store: &Store, events: &[&MemoryEvent]) -> Vec<(String, i64)> {
    let mut live: FxHashMap<u32, i64> = FxHashMap::default();
    for event in events {
        *live.entry(event.node).or_default() += event.bytes;
    }
    let name = |node: u32| store.nodes().get(node as usize).map_or_else(String::new, |node| node.name.clone());
    let mut live: Vec<(String, i64)> = live.iter().map(|(node, bytes)| (name(*node), *bytes)).collect();
    // A negative sum stands for bytes that were allocated before the recording and freed in it.
    live.retain(|(_, bytes)| *bytes > 0);
    live.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    live
}

/// Returns the last value of each time.
fn last_of_each_time(all: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut points: Vec<(i64, i64)> = Vec::new();
    for (time, bytes) in all.iter().copied() {
        match points.last_mut() {
            Some(last) if last.0 == time => last.1 = bytes,
            _ => points.push((time, bytes)),
        }
    }
    points
}

/// Returns the time at which the largest value was first reached, and the value; (0, 0) if no value is above 0.
fn first_peak(all: &[(i64, i64)]) -> (i64, i64) {
    all.iter().copied().fold((0, 0), |peak, point| if point.1 > peak.1 { point } else { peak })
}
