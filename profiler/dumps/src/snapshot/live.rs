//! How much memory was live at each event, and what it was.

use super::{
    lifetimes::Allocation,
    model::{Action, Device},
};

/// How much memory was in use after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivePoint {
    /// The number of the event. `None` before the first one.
    pub event: Option<u32>,
    /// Microseconds since 1970; 0 where the file has no times.
    pub time_us: i64,
    /// Bytes of live allocations, as the program asked for them.
    pub allocated: u64,
    /// Bytes that the allocator has from CUDA.
    pub reserved: u64,
}

/// The memory in use before the first event and after each, from the device's [`super::lifetimes()`].
pub fn live_bytes<'a>(device: &'a Device, allocations: &[Allocation]) -> impl Iterator<Item = LivePoint> + use<'a> {
    let mut changes = vec![0_i64; device.events.len()];
    let (mut allocated, mut reserved) =
        (0_i64, device.segments.iter().fold(0_i64, |sum, segment| sum.wrapping_add(segment.size as i64)));
    for allocation in allocations {
        let size = allocation.size as i64;
        match allocation.begin.and_then(|begin| changes.get_mut(begin as usize)) {
            Some(change) => *change = change.wrapping_add(size),
            None => allocated = allocated.wrapping_add(size),
        }
        if let Some(change) = allocation.end.and_then(|end| changes.get_mut(end as usize)) {
            *change = change.wrapping_sub(size);
        }
    }
    // The segments are those at the end of the trace: back to its beginning.
    for event in &device.events {
        reserved = reserved.wrapping_sub(reserved_change(event.action, event.size));
    }
    let first = device.events.first().map_or(0, |event| event.time_us);
    let before = LivePoint { event: None, time_us: first, allocated: bytes(allocated), reserved: bytes(reserved) };
    let after = device.events.iter().zip(changes).enumerate().map(move |(number, (event, change))| {
        allocated = allocated.wrapping_add(change);
        reserved = reserved.wrapping_add(reserved_change(event.action, event.size));
        let (allocated, reserved) = (bytes(allocated), bytes(reserved));
        LivePoint { event: Some(number as u32), time_us: event.time_us, allocated, reserved }
    });
    std::iter::once(before).chain(after)
}

/// A file may claim any sizes: none of them is negative here.
pub(super) fn bytes(sum: i64) -> u64 {
    u64::try_from(sum).unwrap_or(0)
}

pub(super) fn reserved_change(action: Action, size: u64) -> i64 {
    match action {
        Action::SegmentAlloc | Action::SegmentMap => size as i64,
        Action::SegmentFree | Action::SegmentUnmap => (size as i64).wrapping_neg(),
        _ => 0,
    }
}

/// The allocations that are live after an event, `None` for before the first one.
pub fn live_at(allocations: &[Allocation], event: Option<u32>) -> impl Iterator<Item = &Allocation> {
    // `None` is before all numbers.
    allocations.iter().filter(move |one| one.begin <= event && one.end.is_none_or(|end| Some(end) > event))
}

/// When most memory was live.
#[derive(Debug, Clone)]
pub struct Peak {
    /// The first event after which it was.
    pub point: LivePoint,
    /// What was live then.
    pub live: Vec<Allocation>,
}

/// The peak of a device's live bytes, from its [`super::lifetimes()`].
pub fn peak(device: &Device, allocations: &[Allocation]) -> Option<Peak> {
    let higher = |best: LivePoint, point: LivePoint| if point.allocated > best.allocated { point } else { best };
    let point = live_bytes(device, allocations).reduce(higher)?;
    Some(Peak { point, live: live_at(allocations, point.event).copied().collect() })
}
