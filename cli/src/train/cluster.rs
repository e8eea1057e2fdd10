//! Where training runs: in this process, or on the tasks of a cluster.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use distributed::{Cluster, DistributedError, Master, MasterOptions};
use engine::{Graph, RunOptions, Session, Tensor};

use super::stall::Watch;
use crate::outcome::Failure;

/// The job whose tasks train.
pub(super) const JOB: &str = "worker";
/// The container of the model's variables, and of the queues.
const CONTAINER: &str = engine::resources::ResourceManager::DEFAULT_CONTAINER;
/// How long a step may take on a cluster. A task that is lost ends it at once; this is for one that is there and never done.
const STEP: Duration = Duration::from_secs(600);

/// Where training runs.
#[derive(Debug, Clone)]
pub enum Place {
    /// In this process.
    Here,
    /// On the tasks that a cluster's file names.
    Cluster {
        /// The file.
        file: PathBuf,
        /// How long tasks that are not there are waited for.
        patience: Duration,
    },
}

/// What runs steps.
pub(super) enum Backend {
    /// In this process.
    Here(Arc<Session>),
    /// On the tasks of a cluster.
    Cluster(Box<distributed::Session>),
}

/// Runs steps, watched once the run began.
pub(super) struct Runner {
    pub backend: Backend,
    pub watch: Watch,
}

impl Runner {
    /// Of steps that nobody watches yet.
    pub fn new(backend: Backend) -> Runner {
        Runner { backend, watch: Watch::default() }
    }

    /// Runs a step, here or there.
    pub fn run_step(
        &self,
        options: &RunOptions<'_>,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> anyhow::Result<Vec<Tensor>> {
        self.watch.step(options, |options| {
            Ok(match &self.backend {
                Backend::Here(session) => session.run_step(options, feeds, fetches, targets)?,
                Backend::Cluster(session) => {
                    let options = RunOptions { timeout: options.timeout.or(Some(STEP)), ..options.clone() };
                    session.run_step(&options, feeds, fetches, targets)?
                }
            })
        })
    }
}

/// A cluster that is there.
pub(super) struct Connected(Master);

impl Connected {
    /// The cluster of a place; `None` where that is this process. Training takes it for itself: steps that others left end, and
    /// variables and queues are dropped.
    pub fn at(place: &Place) -> Result<Option<Connected>, Failure> {
        let Place::Cluster { file, patience } = place else { return Ok(None) };
        let cluster = cluster(file)?;
        let security = cluster.security(cluster.master.as_ref()).map_err(Failure::wrong_use)?;
        let master = Master::new(cluster, MasterOptions { security, patience: *patience, ..MasterOptions::default() });
        master.reset(&[CONTAINER]).context("reaching the workers")?;
        Ok(Some(Connected(master)))
    }

    /// A device for each tower: the first of each task of the job that trains.
    pub fn devices(&self) -> Result<Vec<String>, Failure> {
        let tasks = self.0.cluster().tasks.keys().filter(|task| task.job == JOB);
        let devices: Vec<String> = tasks.map(|task| format!("{task}/device:CPU:0")).collect();
        match devices.is_empty() {
            true => Err(Failure::wrong_use(format_args!("the cluster has no job {JOB}, whose tasks train"))),
            false => Ok(devices),
        }
    }

    /// A session on the cluster.
    pub fn session(&self, graph: &Graph) -> Result<Runner, Failure> {
        let session = self.0.session(graph).context("reaching the workers")?;
        Ok(Runner::new(Backend::Cluster(Box::new(session))))
    }
}

/// What `--cluster` means: a file, or the environment of a launcher.
pub(super) fn cluster(file: &std::path::Path) -> Result<Cluster, Failure> {
    match file.as_os_str() == "env" {
        true => Cluster::of_environment(|name| std::env::var(name).ok()).map_err(Failure::wrong_use),
        false => Cluster::read(file).map_err(Failure::wrong_use),
    }
}

/// Which task was lost, or cannot be reached, where that is what an error comes from.
pub(super) fn lost(error: &anyhow::Error) -> Option<String> {
    let of_cluster = error.chain().find_map(|cause| cause.downcast_ref::<DistributedError>())?;
    match of_cluster {
        DistributedError::Lost { task, why } => Some(format!("{task} was lost: {why}")),
        other => other.is_lost().then(|| other.to_string()),
    }
}
