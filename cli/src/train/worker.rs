//! `stepscope worker`: a task of a cluster, until it is told to end.

use std::io::Read;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};

use anyhow::Context;
use distributed::{Cluster, ResetWatcher, TaskName, Worker, WorkerOptions};
use engine::device::Device;
use engine::session::CancelToken;
use engine::tasks::{NextBatch, Task};
use engine::training::{tower_position, tower_queue};
use engine::{Graph, RunOptions, Session, SessionOptions};
use net::{Address, Limits, NetError, Security};
use parking_lot::Mutex;

use super::cluster::JOB;
use super::feeder::Feeder;
use super::names::{EnqueueNames, output_name};
use super::recorded;
use super::trainer::QUEUED;
use super::world;
use crate::args::{self, Verbosity};
use crate::out;
use crate::outcome::{Failure, Outcome};
use crate::signals;

/// Works until Ctrl-C or SIGTERM, or the end of standard input where that is wanted.
pub fn run(args: &args::Worker, verbosity: Verbosity) -> Outcome {
    if args.memory_limit.is_some() {
        engine::memory::set_limit(args.memory_limit);
    }
    let place = Place::of(args)?;
    let (job_id, task, address, security) = place.task()?;
    let options = WorkerOptions {
        job_id,
        devices: args.devices.into(),
        threads: args.threads.map(usize::from),
        security,
        limits: place.limits(),
        ..WorkerOptions::default()
    };
    let worker = Worker::start(&task, &address, &options).map_err(|error| match error {
        NetError::Address(_) => Failure::wrong_use(format_args!("{task}: {error}")),
        error => Failure::Work(anyhow::Error::new(error).context(format!("{task}: listening at {address}"))),
    })?;
    let cluster = place.cluster(&worker)?;
    recorded::serve(&worker);
    let input = args.input.map(|model| Input::of(args, model, &cluster, &worker)).transpose()?.map(Arc::new);
    if let Some(input) = &input {
        // A master may be there already, and resets what it finds.
        worker.watch_resets(Arc::clone(input) as Arc<dyn ResetWatcher>);
        input.start()?;
    }
    let stopped = told_to_end(args.until_stdin_ends, &place)?;
    if args.json {
        out::announce(1, serde_json::json!({ "task": task.to_string(), "address": worker.address().to_string() }))?;
    }
    if verbosity > Verbosity::Quiet {
        note!("stepscope: {task} listens at {}; Ctrl-C ends it", worker.address());
    }
    // Fails only where nobody is left who could tell.
    let _ = stopped.recv();
    let fed = input.map_or(Ok(()), |input| input.end());
    drop(worker);
    Ok(fed?)
}

/// Where this worker belongs.
enum Place {
    /// Told by a file, or by a launcher's environment.
    Known(Cluster, TaskName),
    /// Told by MPI.
    World(world::Place),
}

impl Place {
    fn of(args: &args::Worker) -> Result<Place, Failure> {
        match (&args.cluster, &args.job, args.task) {
            (Some(file), Some(job), Some(task)) => {
                Ok(Place::Known(Cluster::read(file).map_err(Failure::wrong_use)?, TaskName::new(job, task)))
            }
            (Some(file), ..) if world::is_meant(file) => Ok(Place::World(world::Place::join()?)),
            (Some(_), ..) => Err(Failure::wrong_use("--cluster FILE needs --job NAME and --task N")),
            _ => Cluster::from_environment(|name| std::env::var(name).ok())
                .map(|(cluster, task)| Place::Known(cluster, task))
                .map_err(|error| {
                    Failure::wrong_use(format_args!("{error}; or give --job NAME --task N --cluster FILE"))
                }),
        }
    }

    /// The cluster's id, which task this is, where it listens, and by what it shows who it is.
    fn task(&self) -> Result<(String, TaskName, Address, Option<Security>), Failure> {
        match self {
            Place::Known(cluster, task) => {
                let address = cluster.address(task).map_err(Failure::wrong_use)?;
                let security = cluster.security(Some(address)).map_err(Failure::wrong_use)?;
                Ok((cluster.id.clone(), task.clone(), address.clone(), security))
            }
            Place::World(place) => place.task(),
        }
    }

    /// Where MPI is wanted, large tensors go by MPI within a host, too.
    fn limits(&self) -> Limits {
        Limits { lends: matches!(self, Place::Known(..)), ..Limits::default() }
    }

    fn cluster(&self, worker: &Worker) -> Result<Cluster, Failure> {
        match self {
            Place::Known(cluster, _) => Ok(cluster.clone()),
            Place::World(place) => place.cluster(worker),
        }
    }
}

/// The input of this task's tower: the task's share of the batches, of N tasks each N-th. It begins when a training client says
/// where, and anew for the next client.
struct Input {
    make: Box<dyn Fn() -> Result<Feeder, Failure> + Send + Sync>,
    feeder: Mutex<Option<Feeder>>,
    task: String,
}

impl Input {
    fn of(args: &args::Worker, model: args::Model, cluster: &Cluster, worker: &Worker) -> Result<Input, Failure> {
        let towers: Vec<&TaskName> = cluster.tasks.keys().filter(|task| task.job == JOB).collect();
        let Some(tower) = towers.iter().position(|task| *task == worker.task()) else {
            let task = worker.task();
            return Err(Failure::wrong_use(format_args!("--input is for tasks of the job {JOB}, not for {task}")));
        };
        let (n, device, task) = (towers.len(), Arc::clone(&worker.devices()[0]), worker.task().to_string());
        let (data, seed) = (args.data.clone(), args.seed);
        let make = move || feeder(super::task(model, data.as_deref(), seed)?, &device, tower, n);
        Ok(Input { make: Box::new(make), feeder: Mutex::default(), task })
    }

    fn start(&self) -> Result<(), Failure> {
        let mut feeder = self.feeder.lock();
        if feeder.is_none() {
            *feeder = Some((self.make)()?);
        }
        Ok(())
    }

    fn end(&self) -> anyhow::Result<()> {
        self.feeder.lock().take().map_or(Ok(()), Feeder::end)
    }
}

impl ResetWatcher for Input {
    fn before_reset(&self) {
        if let Err(error) = self.end() {
            note!("warning: {}: {error:#}", self.task);
        }
    }

    fn after_reset(&self) {
        if let Err(error) = self.start() {
            note!("stepscope: {}: filling the input queue: {error:?}", self.task);
        }
    }
}

/// Fills the queue of a tower, from the batch on that a training client says.
fn feeder(task: Task, device: &Arc<Device>, tower: usize, n: usize) -> Result<Feeder, Failure> {
    let graph = Graph::new();
    let (_, enqueue) = tower_queue(&graph, task.network.as_ref(), tower, QUEUED).context("building the input")?;
    let position = tower_position(&graph, tower).context("building the input")?;
    let names = EnqueueNames::of(&graph, &enqueue).context("naming the input's nodes")?;
    let told = output_name(&graph, position.told).context("naming the input's nodes")?;
    let options = SessionOptions { devices: vec![Arc::clone(device)], threads: Some(1), ..SessionOptions::default() };
    let session = Session::new(&graph, options).context("starting the input's session")?;
    let mut next_batch = share(task.next_batch, tower, n);
    let begin = move |session: &Session, cancel: &CancelToken| {
        let options = RunOptions { label: "input", cancel: Some(cancel), ..RunOptions::default() };
        let first = session.run_step(&options, &[], &[&told], &[])?;
        let first = first[0].item::<i64>().unwrap_or(0);
        for _ in 0..first {
            if cancel.is_cancelled() {
                return Ok(None);
            }
            drop(next_batch());
        }
        Ok(Some(next_batch))
    };
    Ok(Feeder::start(Arc::new(session), names, begin)?)
}

/// Each `n`-th batch, from the `first` on.
fn share(mut all: NextBatch, first: usize, n: usize) -> NextBatch {
    Box::new(move || {
        (0..first).for_each(|_| drop(all()));
        let own = all();
        (first + 1..n).for_each(|_| drop(all()));
        own
    })
}

/// Tells when it is time to end.
fn told_to_end(with_stdin: bool, place: &Place) -> anyhow::Result<mpsc::Receiver<()>> {
    let (stop, stopped) = mpsc::channel();
    let tell = |stop: &mpsc::Sender<()>| {
        // It may be ending already.
        let _ = stop.send(());
    };
    let on_signal = stop.clone();
    match place {
        Place::Known(..) => signals::on_stop(move || tell(&on_signal)).context("taking over signals")?,
        Place::World(place) => {
            // MPI's launcher passes signals on to all at once: the client saves, and its end is the workers'.
            let n_signals = AtomicU32::new(0);
            let second = move || {
                if n_signals.fetch_add(1, Ordering::Relaxed) > 0 {
                    tell(&on_signal);
                }
            };
            signals::on_stop(second).context("taking over signals")?;
            let at_end = stop.clone();
            place.at_end(move || tell(&at_end))?;
        }
    }
    if with_stdin {
        let wait = move || {
            let mut scrap = [0; 64];
            while std::io::stdin().lock().read(&mut scrap).is_ok_and(|n| n > 0) {}
            tell(&stop);
        };
        std::thread::Builder::new().name("stdin".into()).spawn(wait).context("watching standard input")?;
    }
    Ok(stopped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Tensor;

    #[test]
    fn shares_are_disjoint_and_complete() {
        let numbers = || {
            let mut next = 0i32;
            let batches: NextBatch = Box::new(move || {
                next += 1;
                vec![Tensor::scalar(next - 1)]
            });
            batches
        };
        let mut shares: Vec<NextBatch> = (0..3).map(|first| share(numbers(), first, 3)).collect();
        let got: Vec<i32> = (0..12).map(|i| shares[i % 3]()[0].item::<i32>().unwrap()).collect();
        assert_eq!(got, (0..12).collect::<Vec<_>>());
    }
}
