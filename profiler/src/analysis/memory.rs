//! Memory over time, by device, and what was live at the peak.

use crate::batch::NO_NODE;
use crate::store::Store;
use rustc_hash::FxHashMap;

/// The memory of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// The device, as the events name it.
    pub device: String,
    /// When it changed, ns from the origin, and how many bytes were taken from then on.
    pub points: Vec<(i64, i64)>,
    /// The most bytes.
    pub peak_bytes: i64,
    /// When it was first reached.
    pub peak_time: i64,
    /// What was live then by node: full name (empty where the events name none) and bytes, the most first.
    pub live_at_peak: Vec<(String, i64)>,
}

/// One per device that took or gave back memory.
#[must_use]
pub fn memory_timelines(store: &Store) -> Vec<DeviceMemory> {
    let mut by_site: FxHashMap<u32, Vec<(i64, u32, i64)>> = FxHashMap::default();
    for event in store.memory() {
        by_site.entry(event.site).or_default().push((event.time, event.node, event.bytes));
    }
    let mut devices: Vec<DeviceMemory> = by_site
        .into_iter()
        .map(|(site, mut events)| {
            // Threads are read one after the other.
            events.sort_by_key(|(time, ..)| *time);
            let device = store.sites().get(site as usize).map_or_else(String::new, |s| s.name.clone());
            timeline(store, device, &events)
        })
        .collect();
    devices.sort_by(|a, b| b.peak_bytes.cmp(&a.peak_bytes).then_with(|| a.device.cmp(&b.device)));
    devices
}

fn timeline(store: &Store, device: String, events: &[(i64, u32, i64)]) -> DeviceMemory {
    let mut points: Vec<(i64, i64)> = Vec::new();
    let (mut bytes, mut peak_bytes, mut peak_time, mut peak_events) = (0i64, 0, 0, 0);
    for (i, (time, _, change)) in events.iter().enumerate() {
        bytes = bytes.saturating_add(*change);
        match points.last_mut() {
            Some(last) if last.0 == *time => last.1 = bytes,
            _ => points.push((*time, bytes)),
        }
        if bytes > peak_bytes {
            (peak_bytes, peak_time, peak_events) = (bytes, *time, i + 1);
        }
    }
    let mut live: FxHashMap<u32, i64> = FxHashMap::default();
    for (_, node, change) in &events[..peak_events] {
        *live.entry(*node).or_default() += change;
    }
    let name = |node: u32| match store.nodes().get(node as usize) {
        Some(node) => node.name.clone(),
        None => String::new(),
    };
    let mut live_at_peak: Vec<(String, i64)> =
        live.into_iter().filter(|(node, bytes)| *bytes != 0 || *node == NO_NODE).map(|(n, b)| (name(n), b)).collect();
    live_at_peak.retain(|(_, bytes)| *bytes != 0);
    live_at_peak.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    DeviceMemory { device, points, peak_bytes, peak_time, live_at_peak }
}
