//! What kernels and those who run them name: nodes, slots, iterations.

use std::sync::Arc;

use crate::tensor::Tensor;

/// What a kernel needs to know of its node while it computes.
#[derive(Debug, Clone)]
pub struct NodeInfo {
    /// The node's full name.
    pub name: Arc<str>,
    /// The op.
    pub op: &'static str,
    /// The node's id among the events.
    pub event_id: u32,
}

/// Where a value of a step lives: `None` before it is there, after it was taken, and where it is dead.
pub type Slot = Option<Tensor>;

/// An iteration of a loop, by numbers that are the same on all devices and in all processes of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FrameTag {
    /// The frame; 0 outside of all loops.
    pub frame: u64,
    /// The iteration of the frame, from 0.
    pub iteration: u64,
}
