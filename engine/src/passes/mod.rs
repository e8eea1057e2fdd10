//! Graph passes: what happens to the part of a graph that a step needs before it is compiled (white paper section 5).
//!
//! A session takes the nodes that a signature needs out of its graph into a [`WorkGraph`] ([`prune`]), runs the
//! [`PIPELINE`] over it, and compiles what is left. The graph itself never changes: each signature has its own copy, and
//! a node that survives keeps its name. After each pass the [`verify`] table of rules is checked in debug builds.

mod branches;
pub mod collectives;
mod constants;
mod cse;
pub(crate) mod dump;
pub mod fold;
mod fuse;
mod fuse_matmul;
pub mod graph;
pub mod memory;
mod pack;
mod products;
pub mod prune;
pub mod redirect;
mod references;
pub mod region;
mod simplify;
pub mod verify;

use std::sync::atomic::{AtomicU32, Ordering};

use crate::plan::PlanError;
use dump::Dump;
pub use graph::{NewNode, Source, Use, Uses, WorkFeed, WorkGraph, WorkId, WorkNode};
pub use redirect::Redirects;

/// One step of the pipeline.
pub struct Pass {
    /// Its name: in options, reports and dumps.
    pub name: &'static str,
    /// Whether it can be switched off: without it the graph could not run.
    pub is_optional: bool,
    /// Rewrites the graph; gives how many changes it made.
    pub run: fn(&mut WorkGraph, &PassContext<'_>) -> Result<usize, PlanError>,
}

/// What passes know besides the graph.
pub struct PassContext<'a> {
    /// The session's devices; a node's device is a position among them.
    pub devices: &'a [std::sync::Arc<crate::device::Device>],
    /// A folder that gets the graph before the first pass and after each.
    pub dump: Option<&'a std::path::Path>,
    /// How nodes are placed.
    pub placement: &'a crate::placement::PlacementOptions,
    /// How values get from device to device.
    pub transfers: &'a crate::partition::TransferOptions,
    /// Where the nodes that hold state are already.
    pub pins: &'a crate::placement::Pins,
    /// What dimensions that shapes leave open are taken for, where sizes are estimated.
    pub unknown_dim: usize,
    /// What the memory pass estimated, by device.
    pub peaks: std::cell::RefCell<Vec<memory::PeakEstimate>>,
    /// The requests that placement did not meet.
    pub relaxed: std::cell::RefCell<Vec<crate::placement::RelaxedRequest>>,
}

impl PassContext<'_> {
    /// Whether the device of a node has kernels of an op that a pass makes.
    fn has_kernel(&self, node: &WorkNode, op: &str) -> bool {
        let device = self.devices.get(node.device as usize);
        device.is_none_or(|device| device.is_host() || crate::kernels::has_kernel(op, device.kind()))
    }
}

/// All passes, in the order in which they run.
pub const PIPELINE: &[Pass] = &[
    Pass { name: "references", is_optional: false, run: references::run },
    Pass { name: "collectives", is_optional: false, run: collectives::run },
    // Before anything is removed or merged: no request for a device is lost with a node.
    Pass { name: "place", is_optional: false, run: crate::placement::place },
    Pass { name: "fold", is_optional: true, run: fold::run },
    Pass { name: "branches", is_optional: true, run: branches::run },
    Pass { name: "simplify", is_optional: true, run: simplify::run },
    Pass { name: "cse", is_optional: true, run: cse::run },
    Pass { name: "partition", is_optional: false, run: crate::partition::partition },
    Pass { name: "products", is_optional: true, run: products::run },
    Pass { name: "fuse_matmul", is_optional: true, run: fuse_matmul::run },
    Pass { name: "pack", is_optional: true, run: pack::run },
    Pass { name: "fuse", is_optional: true, run: fuse::run },
    Pass { name: "memory", is_optional: true, run: memory::run },
];

/// What a pass did to a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassReport {
    /// The pass.
    pub name: &'static str,
    /// Nodes before.
    pub n_before: usize,
    /// Nodes after.
    pub n_after: usize,
    /// How many changes it counts.
    pub n_changes: usize,
    /// How long it took.
    pub elapsed_ns: i64,
}

/// Which passes a session runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passes {
    off: Vec<String>,
}

impl Passes {
    /// All of them.
    pub fn all() -> Passes {
        Passes::default()
    }

    /// None but those without which a graph cannot run.
    pub fn none() -> Passes {
        Passes { off: PIPELINE.iter().map(|pass| pass.name.to_owned()).collect() }
    }

    /// These without the one of this name.
    pub fn without(mut self, name: &str) -> Passes {
        self.off.push(name.to_owned());
        self
    }

    /// These with the one of this name.
    pub fn with(mut self, name: &str) -> Passes {
        self.off.retain(|off| off != name);
        self
    }

    /// Whether the pass runs.
    pub fn is_on(&self, pass: &Pass) -> bool {
        !pass.is_optional || !self.off.iter().any(|off| off == pass.name)
    }
}

/// Runs the pipeline.
///
/// # Errors
/// A pass cannot do without something that the graph lacks.
pub fn run(graph: &mut WorkGraph, passes: &Passes, context: &PassContext<'_>) -> Result<Vec<PassReport>, PlanError> {
    static N_DUMPED: AtomicU32 = AtomicU32::new(0);
    let mut dump = context.dump.map(|folder| {
        let n = N_DUMPED.fetch_add(1, Ordering::Relaxed);
        Dump::new(folder, format!("plan-{}-{n}", std::process::id()))
    });
    let mut after = |graph: &WorkGraph, pass: &'static str| {
        if cfg!(debug_assertions) {
            verify::verify(graph, pass)?;
        }
        dump.as_mut().map_or(Ok(()), |dump| dump.write(graph, pass)).map_err(PlanError::Dump)
    };
    after(graph, "prune")?;
    let mut reports = Vec::with_capacity(PIPELINE.len());
    for pass in PIPELINE.iter().filter(|pass| passes.is_on(pass)) {
        let (n_before, begin) = (graph.len(), events::clock::mono_now());
        let n_changes = (pass.run)(graph, context)?;
        let elapsed_ns = events::clock::mono_now() - begin;
        after(graph, pass.name)?;
        reports.push(PassReport { name: pass.name, n_before, n_after: graph.len(), n_changes, elapsed_ns });
    }
    Ok(reports)
}
