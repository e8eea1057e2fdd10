//! A task of a cluster: runs steps for its master, fills the queue of its tower, and records for runs that ask.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use distributed::{Cluster, ResetWatcher, TaskName, Worker, WorkerOptions};
use engine::device::Device;
use engine::session::CancelToken;
use engine::tasks::{NextBatch, Task};
use engine::training::{tower_position, tower_queue};
use engine::{Graph, RunOptions, Session, SessionOptions};
use net::{Address, Limits, NetError, Security};
use parking_lot::Mutex;

use crate::backend::JOB;
use crate::error::{Result, TrainError};
use crate::event::{Event, Observer};
use crate::feeder::Feeder;
use crate::mpi;
use crate::named_graph::NodeNames;
use crate::options::QUEUE_CAPACITY;
use crate::recorder;
use crate::task::TaskSpec;

/// How a task finds its cluster.
#[derive(Clone, Debug)]
pub enum TaskAddress {
    /// The file of the cluster, and which of its tasks this is.
    File {
        /// The file.
        file: PathBuf,
        /// The job.
        job: String,
        /// The number of the task in its job.
        task: u32,
    },
    /// The environment that a launcher such as torchrun or Slurm sets.
    Environment,
    /// The processes that the same mpirun started.
    Mpi,
}

/// Options of a task.
#[derive(Clone, Debug)]
pub struct WorkerTaskOptions {
    /// The task.
    pub address: TaskAddress,
    /// CPU devices.
    pub devices: usize,
    /// Worker threads.
    pub threads: Option<usize>,
    /// Bytes that the tensors of this process may take.
    pub memory_limit: Option<usize>,
    /// The task whose batches fill the queue of its tower.
    pub input: Option<TaskSpec>,
}

/// A running task of a cluster.
pub struct WorkerTask {
    // Dropped in this order.
    input: Option<Arc<TowerInput>>,
    worker: Worker,
    membership: Membership,
}

impl WorkerTask {
    /// Starts to listen, and to fill the queue of the tower where there is input.
    ///
    /// # Errors
    /// `TrainError::Usage` when the cluster or the task in it is not known, `TrainError::Work` when it cannot listen.
    pub fn start(options: &WorkerTaskOptions, observer: Arc<dyn Observer>) -> Result<WorkerTask> {
        if options.memory_limit.is_some() {
            engine::memory::set_limit(options.memory_limit);
        }
        let membership = Membership::find(&options.address)?;
        let (job_id, task, address, security) = membership.task()?;
        let worker_options = WorkerOptions {
            job_id,
            devices: options.devices,
            threads: options.threads,
            security,
            limits: membership.limits(),
            ..WorkerOptions::default()
        };
        let worker = Worker::start(&task, &address, &worker_options).map_err(|error| match error {
            NetError::Address(_) => TrainError::wrong_use(format_args!("{task}: {error}")),
            error => TrainError::Work(anyhow::Error::new(error).context(format!("{task}: listening at {address}"))),
        })?;
        let cluster = membership.cluster(&worker)?;
        recorder::serve(&worker);
        let input = options.input.as_ref().map(|spec| TowerInput::new(spec, &cluster, &worker, observer));
        let input = input.transpose()?.map(Arc::new);
        if let Some(input) = &input {
            // The watcher comes first: a master that is already connected may reset the queue at any time.
            worker.watch_resets(Arc::clone(input) as Arc<dyn ResetWatcher>);
            input.start()?;
        }
        Ok(WorkerTask { input, worker, membership })
    }

    /// The task's name: `/job:worker/task:0`.
    pub fn name(&self) -> String {
        self.worker.task().to_string()
    }

    /// The address at which the task listens.
    pub fn address(&self) -> String {
        self.worker.address().to_string()
    }

    /// Whether the task ignores the first signal to end: mpirun signals all processes at once, and the client must
    /// still save with its workers. They end when the client ends.
    pub fn ignores_first_signal(&self) -> bool {
        matches!(self.membership, Membership::Mpi(_))
    }

    /// Calls `end` when the client of this task's MPI job ends; never for other tasks.
    ///
    /// # Errors
    /// An MPI call failed.
    pub fn on_client_end(&self, end: impl Fn() + Send + 'static) -> anyhow::Result<()> {
        match &self.membership {
            Membership::Static(..) => Ok(()),
            Membership::Mpi(membership) => membership.on_client_end(end),
        }
    }

    /// Ends the task.
    ///
    /// # Errors
    /// The input failed before.
    pub fn end(self) -> Result<()> {
        Ok(self.input.as_ref().map_or(Ok(()), |input| input.end())?)
    }
}

/// The cluster that a task belongs to.
enum Membership {
    /// A cluster of a file, or of a launcher's environment.
    Static(Cluster, TaskName),
    /// The processes of an MPI job.
    Mpi(mpi::Membership),
}

impl Membership {
    fn find(address: &TaskAddress) -> Result<Membership> {
        match address {
            TaskAddress::File { file, job, task } => {
                let cluster = Cluster::read(file).map_err(TrainError::wrong_use)?;
                Ok(Membership::Static(cluster, TaskName::new(job, *task)))
            }
            TaskAddress::Mpi => mpi::Membership::join().map(Membership::Mpi),
            TaskAddress::Environment => {
                let found = Cluster::from_environment(|name| std::env::var(name).ok());
                found.map(|(cluster, task)| Membership::Static(cluster, task)).map_err(|error| {
                    TrainError::wrong_use(format_args!("{error}; or give --job NAME --task N --cluster FILE"))
                })
            }
        }
    }

    /// The job id of the cluster, the task's name, the address where it listens, and its credentials.
    fn task(&self) -> Result<(String, TaskName, Address, Option<Security>)> {
        match self {
            Membership::Static(cluster, task) => {
                let address = cluster.address(task).map_err(TrainError::wrong_use)?;
                let security = cluster.security(Some(address)).map_err(TrainError::wrong_use)?;
                Ok((cluster.id.clone(), task.clone(), address.clone(), security))
            }
            Membership::Mpi(membership) => membership.task(),
        }
    }

    /// The limits of connections. Under MPI they lend no memory: MPI moves large tensors within a host, too.
    fn limits(&self) -> Limits {
        Limits { lends: matches!(self, Membership::Static(..)), ..Limits::default() }
    }

    fn cluster(&self, worker: &Worker) -> Result<Cluster> {
        match self {
            Membership::Static(cluster, _) => Ok(cluster.clone()),
            Membership::Mpi(membership) => membership.cluster(worker),
        }
    }
}

/// The input of this task's tower: each of N tasks takes every N-th batch. Every training client sends the position of
/// the first batch anew.
struct TowerInput {
    make_feeder: Box<dyn Fn() -> Result<Feeder> + Send + Sync>,
    feeder: Mutex<Option<Feeder>>,
    task: String,
    observer: Arc<dyn Observer>,
}

impl TowerInput {
    fn new(spec: &TaskSpec, cluster: &Cluster, worker: &Worker, observer: Arc<dyn Observer>) -> Result<TowerInput> {
        let towers: Vec<&TaskName> = cluster.tasks.keys().filter(|task| task.job == JOB).collect();
        let Some(tower) = towers.iter().position(|task| *task == worker.task()) else {
            let task = worker.task();
            return Err(TrainError::wrong_use(format_args!("--input is for tasks of the job {JOB}, not for {task}")));
        };
        let (n_towers, device, task) = (towers.len(), Arc::clone(&worker.devices()[0]), worker.task().to_string());
        let spec = spec.clone();
        let make_feeder = move || start_feeder(spec.load()?, &device, tower, n_towers);
        Ok(TowerInput { make_feeder: Box::new(make_feeder), feeder: Mutex::default(), task, observer })
    }

    fn start(&self) -> Result<()> {
        let mut feeder = self.feeder.lock();
        if feeder.is_none() {
            *feeder = Some((self.make_feeder)()?);
        }
        Ok(())
    }

    fn end(&self) -> anyhow::Result<()> {
        self.feeder.lock().take().map_or(Ok(()), Feeder::end)
    }
}

impl ResetWatcher for TowerInput {
    fn before_reset(&self) {
        if let Err(error) = self.end() {
            self.observer.on_event(&Event::Warning(&format!("{}: {error:#}", self.task)));
        }
    }

    fn after_reset(&self) {
        if let Err(error) = self.start() {
            self.observer.on_event(&Event::InputFailed { task: &self.task, error: &format!("{error:?}") });
        }
    }
}

/// Starts to fill the queue of a tower, from the batch that the training client sends.
fn start_feeder(task: Task, device: &Arc<Device>, tower: usize, n_towers: usize) -> Result<Feeder> {
    let graph = Graph::new();
    let (_, enqueue) =
        tower_queue(&graph, task.network.as_ref(), tower, QUEUE_CAPACITY).context("building the input")?;
    let position = tower_position(&graph, tower).context("building the input")?;
    let names = NodeNames::from_graph(&graph);
    let position = names.name(position.received).to_owned();
    let options = SessionOptions { devices: vec![Arc::clone(device)], threads: Some(1), ..SessionOptions::default() };
    let session = Session::new(&graph, options).context("starting the input's session")?;
    let mut next_batch = every_nth(task.next_batch, tower, n_towers);
    let begin = move |session: &Session, cancel: &CancelToken| {
        let options = RunOptions { label: "input", cancel: Some(cancel), ..RunOptions::default() };
        let position = session.run_step(&options, &[], &[&position], &[])?;
        let n_taken = position[0].item::<i64>().unwrap_or(0);
        for _ in 0..n_taken {
            if cancel.is_cancelled() {
                return Ok(None);
            }
            drop(next_batch());
        }
        Ok(Some(next_batch))
    };
    Ok(Feeder::start(Arc::new(session), &names, &enqueue, begin)?)
}

/// Returns every `n`-th batch of `all`, beginning with number `first`.
fn every_nth(mut all: NextBatch, first: usize, n: usize) -> NextBatch {
    Box::new(move || {
        (0..first).for_each(|_| drop(all()));
        let batch = all();
        (first + 1..n).for_each(|_| drop(all()));
        batch
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::input::tests::numbers;

    #[test]
    fn shares_are_disjoint_and_complete() {
        let mut shares: Vec<NextBatch> = (0..3).map(|first| every_nth(numbers(), first, 3)).collect();
        let batches: Vec<i32> = (0..12).map(|i| shares[i % 3]()[0].item::<i32>().unwrap()).collect();
        assert_eq!(batches, (0..12).collect::<Vec<_>>());
    }
}
