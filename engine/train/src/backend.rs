//! The location of training: this process, or the tasks of a cluster.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use distributed::{Cluster, DistributedError, Master, MasterOptions};
use engine::session::Steps;
use engine::{Graph, RunOptions, Session, Tensor};

use crate::error::{Result, TrainError};
use crate::stall::StallWatch;

/// The job whose tasks train.
pub(crate) const JOB: &str = "worker";
/// The container of the model's variables, and of the queues.
const CONTAINER: &str = engine::resources::ResourceManager::DEFAULT_CONTAINER;
/// The longest a step may take on a cluster. A lost task ends its step at once; this timeout ends a step that hangs.
const STEP_TIMEOUT: Duration = Duration::from_secs(600);

/// The location of training.
#[derive(Debug, Clone)]
pub enum Location {
    /// In this process.
    Local,
    /// On the tasks that a cluster's file names.
    Cluster {
        /// The file, or `env`: a launcher's environment.
        file: PathBuf,
        /// How long to wait for tasks that cannot be reached.
        patience: Duration,
    },
}

/// A session in this process or on a cluster.
pub(crate) enum Backend {
    /// In this process.
    Local(Arc<Session>),
    /// On the tasks of a cluster.
    Cluster(Box<distributed::Session>),
}

/// Runs steps on a backend, under a watch that reports stalls.
pub(crate) struct StepRunner {
    pub backend: Backend,
    pub watch: StallWatch,
}

impl StepRunner {
    /// Runs a step.
    pub fn run_step(
        &self,
        options: &RunOptions<'_>,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> anyhow::Result<Vec<Tensor>> {
        self.watch.run_step(options, |options| {
            Ok(match &self.backend {
                Backend::Local(session) => session.run_step(options, feeds, fetches, targets)?,
                Backend::Cluster(session) => {
                    let options = RunOptions { timeout: options.timeout.or(Some(STEP_TIMEOUT)), ..options.clone() };
                    session.run_step(&options, feeds, fetches, targets)?
                }
            })
        })
    }
}

/// A path as a string tensor, to be fed.
pub(crate) fn path_tensor(path: &Path) -> Tensor {
    Tensor::string(path.to_string_lossy().into_owned())
}

/// A connection to a cluster.
pub(crate) struct Connection(Master);

impl Connection {
    /// Connects to the cluster of a location; `None` for this process. Training takes the cluster for itself: it ends
    /// the steps that earlier clients left, and drops their variables and queues.
    pub fn open(location: &Location) -> Result<Option<Connection>> {
        let Location::Cluster { file, patience } = location else { return Ok(None) };
        let cluster = read_cluster(file)?;
        let security = cluster.security(cluster.master.as_ref()).map_err(TrainError::wrong_use)?;
        let master = Master::new(cluster, MasterOptions { security, patience: *patience, ..MasterOptions::default() });
        master.reset(&[CONTAINER]).context("reaching the workers")?;
        Ok(Some(Connection(master)))
    }

    /// A device for each tower: the first device of each task of the job `worker`.
    pub fn devices(&self) -> Result<Vec<String>> {
        let tasks = self.0.cluster().tasks.keys().filter(|task| task.job == JOB);
        let devices: Vec<String> = tasks.map(|task| format!("{task}/device:CPU:0")).collect();
        match devices.is_empty() {
            true => Err(TrainError::wrong_use(format_args!("the cluster has no job {JOB}, whose tasks train"))),
            false => Ok(devices),
        }
    }

    /// A session on the cluster.
    pub fn session(&self, graph: &Graph) -> Result<Backend> {
        Ok(Backend::Cluster(Box::new(self.0.session(graph).context("reaching the workers")?)))
    }
}

/// The cluster of a file, or of a launcher's environment (`env`).
pub(crate) fn read_cluster(file: &Path) -> Result<Cluster> {
    match file.as_os_str() == "env" {
        true => Cluster::of_environment(|name| std::env::var(name).ok()).map_err(TrainError::wrong_use),
        false => Cluster::read(file).map_err(TrainError::wrong_use),
    }
}

/// The task that was lost or cannot be reached, where that caused the error.
pub(crate) fn lost_task(error: &anyhow::Error) -> Option<String> {
    let cluster_error = error.chain().find_map(|cause| cause.downcast_ref::<DistributedError>())?;
    match cluster_error {
        DistributedError::Lost { task, why } => Some(format!("{task} was lost: {why}")),
        other => other.is_lost().then(|| other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use distributed::TaskName;

    #[test]
    fn a_lost_task_is_found_below_its_context() {
        let lost = DistributedError::Lost { task: TaskName::new("worker", 1).to_string(), why: "it is silent".into() };
        let error = anyhow::Error::new(lost).context("step 7");
        assert_eq!(lost_task(&error).as_deref(), Some("/job:worker/task:1 was lost: it is silent"));
        assert_eq!(lost_task(&anyhow::anyhow!("no data").context("step 7")), None);
    }

    #[test]
    fn a_cluster_without_workers_is_wrong_use() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cluster.toml");
        assert!(matches!(read_cluster(&file), Err(TrainError::Usage(_))), "there is no such file");
        std::fs::write(&file, "id = \"x\"\n[jobs]\nps = [\"127.0.0.1:4001\"]\n").unwrap();
        let connection = Connection(Master::new(read_cluster(&file).unwrap(), MasterOptions::default()));
        let Err(TrainError::Usage(error)) = connection.devices() else { panic!("it has devices") };
        assert_eq!(error.to_string(), "the cluster has no job worker, whose tasks train");
    }
}
