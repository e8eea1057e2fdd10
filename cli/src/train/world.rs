//! `--cluster mpi`: the processes that MPI's launcher started, as a cluster.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use distributed::{Cluster, Member, TaskName, Worker};
use net::{Address, Security};

use super::workers;
use crate::args::{self, Verbosity};
use crate::outcome::{Failure, Outcome};

/// Between two looks at whether the client has ended.
const PERIOD: Duration = Duration::from_millis(20);
/// How long workers may take to notice that it has.
const TO_END: Duration = Duration::from_secs(10);

/// Whether this is what `--cluster` says.
pub(super) fn is_meant(cluster: &Path) -> bool {
    cluster.as_os_str() == "mpi"
}

/// Trains on the workers among the processes, and lets them end.
pub(super) fn train(args: &args::Train, verbosity: Verbosity) -> Outcome {
    let member = join(false)?;
    let scratch = workers::scratch()?;
    let file = scratch.path().join("cluster.toml");
    let text = member.cluster(None).map_err(Failure::wrong_use)?.text();
    std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    super::run(&args::Train { cluster: Some(file), ..args.clone() }, verbosity)?;
    Ok(member.end(TO_END).context("ending the workers")?)
}

fn join(is_worker: bool) -> Result<Member, Failure> {
    Member::join(is_worker, |name| std::env::var(name).ok()).map_err(Failure::wrong_use)
}

/// A worker's place among the processes. To be dropped after its worker.
pub(super) struct Place(Member);

impl Place {
    /// Takes part as a worker.
    pub fn join() -> Result<Place, Failure> {
        join(true).map(Place)
    }

    /// The cluster's id, which task this is, where it is to listen, and by what it shows who it is.
    pub fn task(&self) -> Result<(String, TaskName, Address, Option<Security>), Failure> {
        let task = self.0.task().cloned().context("a worker is a task")?;
        Ok((self.0.id(), task, self.0.address(), self.0.security().map_err(Failure::wrong_use)?))
    }

    /// The cluster, of which this worker is one.
    pub fn cluster(&self, worker: &Worker) -> Result<Cluster, Failure> {
        self.0.cluster(Some(worker.address())).map_err(Failure::wrong_use)
    }

    /// Calls `end` when the client has ended.
    pub fn at_end(&self, end: impl Fn() + Send + 'static) -> anyhow::Result<()> {
        let mut leaving = self.0.leave().context("waiting for the client's end")?;
        let wait = move || {
            // What MPI cannot say any more is over.
            while !leaving.is_over().unwrap_or(true) {
                std::thread::sleep(PERIOD);
            }
            end();
        };
        std::thread::Builder::new().name("mpi-end".into()).spawn(wait).context("waiting for the client's end")?;
        Ok(())
    }
}
