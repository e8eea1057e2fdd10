//! What can be chosen for a session, and for a step.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::compile::partition::TransferOptions;
use crate::compile::placement::PlacementOptions;
use crate::compile::{Numerics, Passes, SharedKernels};
use crate::run::executor::{CancelToken, OnStall};
use engine_core::device::Device;
use engine_core::functions::MAX_NODES;
use engine_core::kernel::Rendezvous;

/// What can be chosen for a session.
#[derive(Clone)]
pub struct SessionOptions {
    /// Threads that a step may use, its caller's included; `None`: the process's pool, as wide as its cores.
    pub threads: Option<usize>,
    /// Bytes that the session's own device hands out at most. All devices of the host together have what
    /// [`engine_core::memory::limit`] says.
    pub memory_limit: usize,
    /// Nodes that the graph may have with the bodies of functions in the place of their calls.
    pub max_nodes: usize,
    /// The devices to run on, with their variables; none: one CPU device of its own.
    pub devices: Vec<Arc<Device>>,
    /// The graph passes that its plans go through.
    pub passes: Passes,
    /// A folder that gets the graph of every plan before the first pass and after each, as files for the graph view.
    pub dump_graphs: Option<PathBuf>,
    /// How nodes are placed on the devices.
    pub placement: PlacementOptions,
    /// How values get from device to device.
    pub transfers: TransferOptions,
    /// What dimensions that shapes leave open (the examples of a batch) are taken for where sizes are estimated.
    pub unknown_dim: usize,
    /// What is done about results that are no finite numbers.
    pub numerics: Numerics,
    /// The kernels with state, where other sessions run other parts of the same graph.
    pub kernels: SharedKernels,
}

impl SessionOptions {
    /// With `n` CPU devices of its own, `/job:localhost/device:cpu:0` and on.
    pub fn devices(n: usize) -> SessionOptions {
        SessionOptions { devices: Device::cpus(n, usize::MAX), ..SessionOptions::default() }
    }
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions {
            threads: None,
            memory_limit: usize::MAX,
            max_nodes: MAX_NODES,
            devices: Vec::new(),
            passes: Passes::all(),
            dump_graphs: None,
            placement: PlacementOptions::default(),
            transfers: TransferOptions::default(),
            unknown_dim: 64,
            numerics: Numerics::Ignore,
            kernels: SharedKernels::default(),
        }
    }
}

/// What can be chosen for a step.
#[derive(Debug, Clone)]
pub struct RunOptions<'a> {
    /// Names the step in traces: `train`, `eval`, ...
    pub label: &'a str,
    /// The step on the summaries' axis (in traces -1 where there is none).
    pub summary_step: Option<i64>,
    /// Ends the step early, between two kernels.
    pub cancel: Option<&'a CancelToken>,
    /// How long the step may take; it ends early between two kernels.
    pub timeout: Option<Duration>,
    /// Reports what the step waits for, where nothing happens in it.
    pub on_stall: Option<OnStall<'a>>,
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        RunOptions { label: "run", summary_step: None, cancel: None, timeout: None, on_stall: None }
    }
}

/// What joins a part of a step with the other ones.
#[derive(Clone)]
pub struct Meeting {
    /// The step's number in traces, the same in all tasks.
    pub step_id: u64,
    /// Where sends and receives meet.
    pub rendezvous: Arc<dyn Rendezvous>,
}
