//! The pipeline of passes: which there are, in which order, and what each did.
//!
//! A graph never changes: each signature has its own copy of the nodes that it needs, and a node that survives keeps its name.
//! After each pass the [`verify`] table of rules is checked in debug builds.

use std::sync::atomic::{AtomicU32, Ordering};

use super::passes::dump::Dump;
use super::passes::{
    Pass, PassContext, branches, collectives, cse, fold, fuse, fuse_matmul, memory, pack, products, prune, references,
    simplify, verify,
};
use super::{CompileError, WorkGraph, partition, placement};

/// The pass that takes the graph of a step out of the whole one.
const PRUNE: &str = "prune";

/// All passes, in the order in which they run.
pub const PIPELINE: &[Pass] = &[
    Pass { name: PRUNE, is_optional: false, run: prune::run },
    Pass { name: "references", is_optional: false, run: references::run },
    Pass { name: "collectives", is_optional: false, run: collectives::run },
    // Before anything is removed or merged: no request for a device is lost with a node.
    Pass { name: "place", is_optional: false, run: placement::place },
    Pass { name: "fold", is_optional: true, run: fold::run },
    Pass { name: "branches", is_optional: true, run: branches::run },
    Pass { name: "simplify", is_optional: true, run: simplify::run },
    Pass { name: "cse", is_optional: true, run: cse::run },
    Pass { name: "partition", is_optional: false, run: partition::partition },
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

/// Runs the pipeline: the graph of a step, and what each pass did to it.
///
/// # Errors
/// A pass cannot do without something that the graph lacks.
pub(crate) fn run(passes: &Passes, context: &PassContext<'_>) -> Result<(WorkGraph, Vec<PassReport>), CompileError> {
    static N_DUMPED: AtomicU32 = AtomicU32::new(0);
    let mut dump = context.dump.map(|folder| {
        let n = N_DUMPED.fetch_add(1, Ordering::Relaxed);
        Dump::new(folder, format!("plan-{}-{n}", std::process::id()))
    });
    let mut graph = WorkGraph::default();
    let mut reports = Vec::with_capacity(PIPELINE.len());
    for pass in PIPELINE.iter().filter(|pass| passes.is_on(pass)) {
        let (n_before, begin) = (graph.len(), events::clock::mono_now());
        let n_changes = (pass.run)(&mut graph, context)?;
        let elapsed_ns = events::clock::mono_now() - begin;
        if cfg!(debug_assertions) {
            verify::verify(&graph, pass.name)?;
        }
        dump.as_mut().map_or(Ok(()), |dump| dump.write(&graph, pass.name)).map_err(CompileError::Dump)?;
        if pass.name != PRUNE {
            reports.push(PassReport { name: pass.name, n_before, n_after: graph.len(), n_changes, elapsed_ns });
        }
    }
    Ok((graph, reports))
}
