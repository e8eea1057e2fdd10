//! `--cluster mpi`: the processes that MPI's launcher started, as a cluster.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use distributed::{Cluster, Member, TaskName, Worker};
use net::{Address, Security};

use crate::error::{Result, TrainError};
use crate::worker_processes::scratch_folder;

/// The time between two checks whether the client has ended.
const POLL_PERIOD: Duration = Duration::from_millis(20);
/// How long workers may take to notice that the client has ended.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether the value of `--cluster` is `mpi`.
pub fn is_requested(cluster: &Path) -> bool {
    cluster.as_os_str() == "mpi"
}

/// Calls `train` with the file of the cluster that the worker processes form, then lets them end.
///
/// # Errors
/// The error of `train`, or one of MPI.
pub fn run_in_cluster<E: From<TrainError>>(
    train: impl FnOnce(&Path) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let member = join(false)?;
    let scratch = scratch_folder().map_err(TrainError::Work)?;
    let file = scratch.path().join("cluster.toml");
    let text = member.cluster(None).map_err(TrainError::wrong_use)?.text();
    let written = std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()));
    written.map_err(TrainError::Work)?;
    train(&file)?;
    Ok(member.end(END_TIMEOUT).context("ending the workers").map_err(TrainError::Work)?)
}

fn join(is_worker: bool) -> Result<Member> {
    Member::join(is_worker, |name| std::env::var(name).ok()).map_err(TrainError::wrong_use)
}

/// A worker's membership in the MPI job. Drop it after the `Worker`.
pub(crate) struct Membership(Member);

impl Membership {
    /// Joins the MPI job as a worker.
    pub fn join() -> Result<Membership> {
        join(true).map(Membership)
    }

    /// The job id of the cluster, and the task's name, listening address and credentials.
    pub fn task(&self) -> Result<(String, TaskName, Address, Option<Security>)> {
        let task = self.0.task().cloned().context("a worker is a task")?;
        Ok((self.0.id(), task, self.0.address(), self.0.security().map_err(TrainError::wrong_use)?))
    }

    /// The cluster that the workers form.
    pub fn cluster(&self, worker: &Worker) -> Result<Cluster> {
        self.0.cluster(Some(worker.address())).map_err(TrainError::wrong_use)
    }

    /// Calls `end` when the client has ended.
    pub fn on_client_end(&self, end: impl Fn() + Send + 'static) -> anyhow::Result<()> {
        let mut leave_request = self.0.leave().context("waiting for the client's end")?;
        let wait = move || {
            // An MPI error also means that the job is over.
            while !leave_request.is_over().unwrap_or(true) {
                std::thread::sleep(POLL_PERIOD);
            }
            end();
        };
        std::thread::Builder::new().name("mpi-end".into()).spawn(wait).context("waiting for the client's end")?;
        Ok(())
    }
}
