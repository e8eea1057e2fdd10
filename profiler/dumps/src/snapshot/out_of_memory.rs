//! Allocations that failed.

use super::{
    lifetimes::Allocation,
    live::{LivePoint, live_bytes},
    model::{Action, Device},
};
use crate::stacks::StackId;

/// An allocation that failed. What was live then: [`super::live_at`] its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The event, and what was in use.
    pub point: LivePoint,
    /// Bytes that the program asked for.
    pub requested: u64,
    /// Bytes that CUDA reported as free.
    pub device_free: u64,
    /// Where the program asked for them.
    pub stack: StackId,
}

/// The allocations that failed, in order, from the device's [`super::lifetimes()`].
pub fn out_of_memory(device: &Device, allocations: &[Allocation]) -> Vec<OutOfMemory> {
    let points = live_bytes(device, allocations).skip(1);
    let failed = device.events.iter().zip(points).filter(|(event, _)| event.action == Action::OutOfMemory);
    let report = |(event, point): (&super::model::Event, LivePoint)| OutOfMemory {
        point,
        requested: event.size,
        device_free: event.address,
        stack: event.stack,
    };
    failed.map(report).collect()
}
