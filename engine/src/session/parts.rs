//! Steps of which several processes run a part each (white paper section 3.3): a master divides a signature, workers run the
//! parts. Both use what a step within one process uses: passes, placement, partition, plans, executor.

use std::sync::Arc;

use super::client::Session;
use super::error::RunError;
use super::options::{Meeting, RunOptions, SessionOptions};
use crate::compile::partition::Part;
use crate::compile::{CompileError, Passes, Signature, Source};
use crate::run::executor::Executable;
use engine_core::graph::{Graph, ImportError};
use engine_core::tensor::Tensor;

/// A signature divided among tasks.
#[derive(Debug, Clone)]
pub struct Division {
    /// What each task does.
    pub parts: Vec<Part>,
    /// Fetches that are feeds: the position of the fetch, and that of the feed.
    pub passed_on: Vec<(usize, usize)>,
    /// How many feeds there are.
    pub n_feeds: usize,
    /// How many fetches there are.
    pub n_fetches: usize,
}

/// Why a part of a step cannot be run here.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// The part's graph does not fit together, or has ops that are unknown here.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// It cannot be planned.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Session {
    /// Divides what a signature needs among the tasks of the session's devices, which may be other processes'
    /// ([`engine_core::device::Device::elsewhere`]).
    ///
    /// # Errors
    /// What is asked cannot be placed or divided.
    pub fn divide(&self, signature: &Signature) -> Result<Division, RunError> {
        let graph = self.compiler.rewritten(signature)?.graph;
        let library = self.graph().nodes().functions().to_def();
        let parts = graph.parts(self.devices(), library.as_ref()).map_err(CompileError::from)?;
        let fed = graph.fetches.iter().enumerate().filter_map(|(position, source)| match source {
            Source::Feed(feed) => Some((position, *feed as usize)),
            Source::Port(..) => None,
        });
        Ok(Division {
            parts,
            passed_on: fed.collect(),
            n_feeds: signature.feeds.len(),
            n_fetches: signature.fetches.len(),
        })
    }
}

/// A task's part of a step, ready to run any number of times.
pub struct TaskSession {
    session: Session,
    plan: Arc<Executable>,
}

impl TaskSession {
    /// The passes of a session that only divides: what concerns the whole graph.
    pub fn passes_of_master() -> Passes {
        ["fold", "branches", "simplify", "cse"].iter().fold(Passes::none(), |passes, name| passes.with(name))
    }

    /// The passes over a part: what concerns one device.
    fn passes_of_part() -> Passes {
        let own = ["products", "fuse_matmul", "pack", "fuse", "memory"];
        own.iter().fold(Passes::none(), |passes, name| passes.with(name))
    }

    /// Compiles a part. The options name the task's devices and the kernels with state that all parts of a client's
    /// graph share.
    ///
    /// # Errors
    /// See [`PartError`].
    pub fn new(part: &Part, options: SessionOptions) -> Result<TaskSession, PartError> {
        let graph = Graph::new();
        graph.import(&part.graph, "")?;
        let session = Session::new(&graph, SessionOptions { passes: TaskSession::passes_of_part(), ..options })?;
        let fetches: Vec<&str> = part.fetches.iter().map(|(_, name)| name.as_str()).collect();
        let targets: Vec<&str> = part.targets.iter().map(String::as_str).collect();
        let feeds: Vec<&str> = part.feeds.iter().map(|(_, name)| name.as_str()).collect();
        let signature = session.signature(&feeds, &fetches, &targets)?;
        let plan = session.plan(signature).map_err(RunError::from)?;
        Ok(TaskSession { session, plan })
    }

    /// Runs the part in the caller's thread, with feeds and fetches in the part's order.
    ///
    /// # Errors
    /// See [`RunError`]; what another task's failure causes here is [`crate::run::rendezvous::RendezvousError`].
    pub fn run(&self, options: &RunOptions<'_>, meeting: &Meeting, feeds: &[Tensor]) -> Result<Vec<Tensor>, RunError> {
        self.session.execute(&self.plan, options, feeds, Some(meeting))
    }
}
