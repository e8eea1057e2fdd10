//! What a pass is, and what it knows besides the graph.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use super::memory::PeakEstimate;
use crate::compile::partition::TransferOptions;
use crate::compile::placement::{Pins, PlacementOptions, RelaxedRequest};
use crate::compile::{CompileError, Signature, WorkGraph, WorkNode};
use engine_core::device::Device;
use engine_core::graph::Graph;
use engine_core::kernel;

/// One step of the pipeline.
pub struct Pass {
    /// Its name: in options, reports and dumps.
    pub name: &'static str,
    /// Whether it can be switched off: without it the graph could not run.
    pub is_optional: bool,
    /// Rewrites the graph; gives how many changes it made.
    pub run: fn(&mut WorkGraph, &PassContext<'_>) -> Result<usize, CompileError>,
}

/// What passes know besides the graph.
pub struct PassContext<'a> {
    /// The graph that the first pass takes nodes from, and what is asked of it; `None` where all nodes are there already.
    pub(crate) source: Option<(&'a Graph, &'a Signature)>,
    /// The session's devices; a node's device is a position among them.
    pub devices: &'a [Arc<Device>],
    /// A folder that gets the graph before the first pass and after each.
    pub dump: Option<&'a Path>,
    /// How nodes are placed.
    pub placement: &'a PlacementOptions,
    /// How values get from device to device.
    pub transfers: &'a TransferOptions,
    /// Where the nodes that hold state are already.
    pub pins: &'a Pins,
    /// What dimensions that shapes leave open are taken for, where sizes are estimated.
    pub unknown_dim: usize,
    /// What the memory pass estimated, by device.
    pub peaks: RefCell<Vec<PeakEstimate>>,
    /// The requests that placement did not meet.
    pub relaxed: RefCell<Vec<RelaxedRequest>>,
}

impl PassContext<'_> {
    /// Whether the device of a node has kernels of an op that a pass makes.
    pub(super) fn has_kernel(&self, node: &WorkNode, op: &str) -> bool {
        let device = self.devices.get(node.device as usize);
        device.is_none_or(|device| device.is_host() || kernel::has_kernel(op, device.kind()))
    }
}
